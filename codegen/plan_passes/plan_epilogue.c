/* What a device's library can do at the end of a matrix product, in place of steps beside it.
 *
 *     z = x @ w;  y = z + b;  h = max(y, 0)        one product that adds a bias and cuts at 0
 *     dw = g' @ x;  db = sum of g over rows        one product that sums an operand it reads anyway
 *
 * NVIDIA calls these epilogues (cuBLASLt; Thakkar et al., CUTLASS).  A step that a product covers
 * stays in the plan: the host runs it, and so does the device, right behind the product, where the
 * library has no algorithm for the sizes.  So nothing here changes what is computed, and steps that
 * are covered are not joined with others.
 *
 * The library's gelu is the tanh approximation, ours is exact: not used.  Its bit mask for the
 * backward pass of relu (RELU_AUX) is not either: the backward pass reads h itself, which the next
 * layer's weights need anyway. */
#include "codegen/plan_passes/plan_order.h"
#include "codegen/plan_passes/plan_pass.h"
#include "ir/text.h"
#include "passes/rewrite.h"

/* The search for steps that one matrix product can do, too. */
typedef struct {
    Arena *a;
    const Plan *p;
    PPhase *ph;
    int gemm_at; /* the product's position in the phase */
    PStep *gemm; /* the product */
} GroupSearch;

/* Whether the buffer holds f32. */
static bool is_f32_buf(const Plan *p, int buf) {
    return p->bufs.v[buf]->dt == DT_F32;
}

/* Whether a step strictly between two positions of the phase accesses the buffer. written: only
 * writes count. */
static bool is_accessed_between(const PPhase *ph, int from, int to, int buf, bool written) {
    for (int i = from + 1; i < to; i++)
        if (written ? plan_step_writes(ph->steps.v[i], buf)
                    : plan_step_accesses_buf(ph->steps.v[i], buf))
            return true;
    return false;
}

/* Whether no loop begins or ends at or between the two positions of the phase, so that their steps
 * run equally often. */
static bool same_loop(const PPhase *ph, int from, int to) {
    for (int i = from; i <= to; i++) {
        PStepKind k = ph->steps.v[i]->kind;
        if (k == PS_LOOP || k == PS_END) return false;
    }
    return true;
}

/* ---- a bias, a cut at 0 ------------------------------------------------------------------- */
/* Whether op computes an element of its result from the elements of its operands at the same place,
 * or from nothing. */
static bool is_elementwise(const Op *op) {
    return op_has(op, OPT_ELEM) || op->kind == OP_VIEW || op->kind == OP_CONST ||
           op->kind == OP_SIZE;
}

/* What else the kernel does than compute and store one value element by element, in words; NULL:
 * nothing. */
static const char *store_obstacle(const LKernel *k) {
    bool segment = false, sum = false, random = false, gather = false, other = false;
    for (int i = 0; i < k->computes.n; i++) {
        const Op *op = k->computes.v[i];
        segment |= op->kind == OP_SEGMENT;
        sum |= op_has(op, OPT_REDUCE);
        random |= op->kind == OP_RANDOM;
        gather |= op->kind == OP_GATHER;
        other |= !is_elementwise(op);
    }
    return segment                 ? "sums entries of its rows"
           : sum                   ? "sums over its rows"
           : random                ? "draws random numbers"
           : gather                ? "gathers rows"
           : other                 ? "is no plain loop over its elements"
           : !plan_stored_value(k) ? "stores more than one value"
                                   : NULL;
}

/* Whether the value is the constant 0. */
static bool is_zero(const Op *op) {
    return op->kind == OP_CONST && op->imm == 0;
}

/* The value whose elements the kernel passes on as op's. */
static const Op *passed_value(const LKernel *k, const Op *op) {
    while (plan_passes_on(op) && plan_computes(k, op)) op = op->in[0];
    return op;
}

/* The operand x if op is max(x, 0) and computed in the kernel, and sets *is_relu; otherwise op
 * itself. */
static const Op *relu_operand(const LKernel *k, const Op *op, bool *is_relu) {
    if (op->kind != OP_MAX || !plan_computes(k, op)) return op;
    for (int i = 0; i < 2; i++)
        if (is_zero(op->in[i])) {
            *is_relu = true;
            return passed_value(k, op->in[!i]);
        }
    return op;
}

/* Whether the dimensions of x are the last ones of y, in the same order. */
static bool has_last_dims(const Type *x, const Type *y) {
    int skip = y->rank - x->rank;
    for (int i = 0; skip >= 0 && i < x->rank; i++)
        if (x->dim[i] != y->dim[skip + i]) return false;
    return skip >= 0;
}

/* The value of which the kernel makes op by another view, whose dimensions have the same sizes in
 * the same order; op itself: there is none. *type: where it is type op's, it becomes the value's.
 */
static const Op *viewed_value(const LKernel *k, const Op *op, const Type **type) {
    const Op *x = op->kind == OP_VIEW && plan_computes(k, op) ? op->in[0] : op;
    if (x == op || x->type.rank != op->type.rank || !type_same_spaces(*type, &op->type)) return op;
    for (int i = 0; i < op->type.rank; i++)
        if (!expr_eq(x->type.dim[i]->size, op->type.dim[i]->size)) return op;
    *type = &x->type;
    return passed_value(k, x);
}

/* The number of elementwise operations that the kernel carries out for each element. */
static int count_computed(const LKernel *k) {
    int n = 0;
    for (int i = 0; i < k->computes.n; i++) {
        const Op *op = k->computes.v[i];
        n += op_has(op, OPT_ELEM) && !plan_passes_on(op);
    }
    return n;
}

/* The buffer from which the kernel of step s reads the result of op; -1: it does not. */
static int read_buf(const PStep *s, const Op *op) {
    return plan_argument_buf(s, plan_argument(s->kernel, op));
}

/* The buffer that the kernel of step s writes; it must write one. */
static int written_buf(const PStep *s) {
    int i = 0;
    while (!s->kernel->bufs.v[i]->written) i++;
    return s->bufs[i];
}

/* Why the kernel of step k cannot be done at the end of the matrix product f->gemm; NULL: it can,
 * and *e says how: a bias, a cut at 0 (relu), or both. */
static const char *match_epilogue(const GroupSearch *f, const PStep *k, PEpilogue *e) {
    const PGemm *g = &f->gemm->gemm;
    const int product = f->gemm->bufs[2];
    const char *why = store_obstacle(k->kernel);
    if (why) return why;
    const Op *stored = plan_stored_value(k->kernel), *z, *bias = NULL;
    if (!expr_eq(type_count(f->a, &stored->type), expr_mul(f->a, g->m, g->n)))
        return "makes another number of elements";
    bool is_relu = false;
    const Type *made = &stored->type; /* of what the product makes, seen through views */
    z = relu_operand(k->kernel, passed_value(k->kernel, stored), &is_relu);
    z = viewed_value(k->kernel, z, &made);
    if (z->kind == OP_ADD && plan_computes(k->kernel, z)) {
        const Op *x = passed_value(k->kernel, z->in[0]), *y = passed_value(k->kernel, z->in[1]);
        bool second = read_buf(k, x) != product;
        bias = second ? x : y;
        z = second ? y : x;
        int side = read_buf(k, bias);
        if (side < 0 || side == product || !has_last_dims(&bias->type, made) ||
            !expr_eq(type_count(f->a, &bias->type), g->n))
            return "adds what is no bias";
    }
    if (read_buf(k, z) != product || !has_last_dims(&z->type, made) || z->type.rank != made->rank ||
        count_computed(k->kernel) != is_relu + (bias != NULL))
        return "computes more than a bias and a cut at 0";
    if (!is_relu && !bias) return "is a copy";
    if (!plan_is_as_computed(f->a, k)) return "has loops that are not what its facts say";
    e->kind = is_relu ? bias ? PE_RELU_BIAS : PE_RELU : PE_BIAS;
    e->side = bias ? read_buf(k, bias) : -1;
    e->out = written_buf(k);
    if (!is_f32_buf(f->p, e->out)) return "stores 16 bits";
    return e->side < 0 || is_f32_buf(f->p, e->side) ? NULL : "adds a bias of 16 bits";
}

/* The position of the first step behind position `from` that accesses the buffer; -1: there is
 * none. */
static int next_use(const PPhase *ph, int from, int buf) {
    for (int i = from + 1; i < ph->steps.n; i++)
        if (plan_step_accesses_buf(ph->steps.v[i], buf)) return i;
    return -1;
}

/* Why the step that reads the product's result cannot be done at the end of the product; NULL: it
 * can, as *e says. */
static const char *find_epilogue(const GroupSearch *f, PEpilogue *e) {
    const PPhase *ph = f->ph;
    int z = f->gemm->bufs[2], at = next_use(ph, f->gemm_at, z);
    PStep *k = at < 0 ? NULL : ph->steps.v[at];
    if (!k) return "nobody in the phase reads its result";
    if (k->kind != PS_KERNEL) return "a library call or a copy reads its result";
    if (k->covered_by || k->pred >= 0) return "what reads its result is not always wanted";
    if (k->partition != f->gemm->partition || k->partials)
        return "processes share other rows of what reads its result";
    if (!same_loop(ph, f->gemm_at, at)) return "what reads its result is in another loop";
    const char *why = match_epilogue(f, k, e);
    if (why) return arena_printf(f->a, "%s %s", k->kernel->name, why);
    bool only_reader = f->p->bufs.v[z]->kind == PB_TEMP && next_use(ph, at, z) < 0;
    if (e->out != z && !only_reader) return "its result is read elsewhere, too";
    if (e->out == f->gemm->bufs[0] || e->out == f->gemm->bufs[1] ||
        is_accessed_between(ph, f->gemm_at, at, e->out, false) ||
        (e->side >= 0 &&
         (is_accessed_between(ph, f->gemm_at, at, e->side, true) || e->side == e->out)))
        return arena_printf(f->a, "%s writes what is in use until then", k->kernel->name);
    e->covers[e->n_covers++] = k;
    return NULL;
}

/* ---- sums of an operand's rows -------- */
/* Whether the op of step s sums f32 values over the first dimension of its operand. */
static bool sums_rows(const PStep *s) {
    const Op *op = s->op;
    if (!op || op->kind != OP_REDUCE || op->red != RED_SUM || op->type.dt != DT_F32) return false;
    const Type *x = &op->in[0]->type, *y = &op->type;
    if (x->rank != y->rank + 1 || x->dt != DT_F32) return false;
    for (int i = 0; i < y->rank; i++)
        if (y->dim[i] != x->dim[i + 1]) return false;
    return true;
}

/* The buffer whose rows the kernel of step s sums in chunks; -1: it does something else or
 * something more. */
static int summed_buffer(const PStep *s) {
    if (s->kind != PS_KERNEL || s->n_bufs != 2 || s->pred >= 0 || s->covered_by || !sums_rows(s))
        return -1;
    const LKernel *k = s->kernel;
    bool chunked = k->computes.n == 1 && k->bufs.v[0]->written && k->bufs.v[0]->partial;
    return chunked ? read_buf(s, s->op->in[0]) : -1;
}

/* Whether operand i (0: A, 1: B) of the product lies as contiguous rows of `count` elements, over
 * which the product sums. */
static bool is_rows_of(const PGemm *g, int i, const Expr *count) {
    int64_t one;
    const Expr *step = i ? g->b_col : g->a_row, *row = i ? g->b_row : g->a_col;
    return expr_is_const(step, &one) && one == 1 && expr_eq(row, count) &&
           expr_eq(i ? g->n : g->m, count);
}

/* Why the sum that begins with the step at position `at` cannot be made with the product, as sum of
 * its operand i (0: A, 1: B); NULL: it can, as *e says. The sum takes two steps: partial sums of
 * chunks, then their sum. */
static const char *try_sum(const GroupSearch *f, int at, int i, PEpilogue *e) {
    const PPhase *ph = f->ph;
    PStep *parts = ph->steps.v[at], *sum = NULL;
    int sum_at = -1;
    for (int k = at + 1; k < ph->steps.n && !sum; k++)
        if (ph->steps.v[k]->kind == PS_KERNEL &&
            plan_step_accesses_buf(ph->steps.v[k], parts->bufs[0]))
            sum = ph->steps.v[sum_at = k];
    if (!sum || sum->op != parts->op || sum->n_bufs != 2 || sum->pred >= 0) return "shares its sum";
    if (!plan_is_as_computed(f->a, parts) || !plan_is_as_computed(f->a, sum))
        return "has loops that are not what its facts say";
    int db = sum->bufs[0], lo = at < f->gemm_at ? at : f->gemm_at,
        hi = sum_at > f->gemm_at ? sum_at : f->gemm_at;
    if (!same_loop(ph, lo, hi)) return "is in another loop";
    if (is_accessed_between(ph, lo, hi, f->gemm->bufs[i], true)) return "sums what takes its place";
    if (sum_at < f->gemm_at && is_accessed_between(ph, sum_at, f->gemm_at, db, false))
        return "is wanted before it";
    if (sum_at > f->gemm_at && is_accessed_between(ph, f->gemm_at, sum_at, db, false))
        return "is made over another value";
    if (plan_step_accesses_buf(f->gemm, db) || !is_f32_buf(f->p, db)) return "is of 16 bits";
    e->kind = i ? PE_SUM_B : PE_SUM_A;
    e->side = db;
    e->out = f->gemm->bufs[2];
    e->covers[e->n_covers++] = parts;
    e->covers[e->n_covers++] = sum;
    return NULL;
}

/* Why no step that sums the rows of an operand can be done with the product; NULL: one can, as *e
 * says. */
static const char *find_operand_sum(const GroupSearch *f, PEpilogue *e) {
    const char *why = "no step sums an operand over the same rows";
    for (int at = 0; at < f->ph->steps.n && !e->kind; at++) {
        const PStep *s = f->ph->steps.v[at];
        int buf = summed_buffer(s);
        for (int i = 0; i < 2 && buf >= 0 && !e->kind; i++) {
            const Expr *count = type_count(f->a, &s->op->type);
            const Space *rows = s->op->in[0]->type.dim[0];
            if (buf != f->gemm->bufs[i] || !is_rows_of(&f->gemm->gemm, i, count) ||
                !expr_eq(f->gemm->gemm.k, rows->size))
                continue;
            const char *obstacle = try_sum(f, at, i, e);
            if (obstacle) why = arena_printf(f->a, "%s %s", s->kernel->name, obstacle);
        }
    }
    return e->kind ? NULL : why;
}

/* ---- all -------- */
/* Why the product does no other step's work; NULL: it does, as *e says. */
static const char *find_cover(const GroupSearch *f, PEpilogue *e) {
    const PStep *s = f->gemm;
    int64_t one;
    for (int i = 0; i < 3; i++)
        if (!is_f32_buf(f->p, s->bufs[i])) return "its operands are of 16 bits";
    if (s->pred >= 0) return "it is not always wanted";
    if (!expr_is_const(s->gemm.batch, &one) || one != 1) return "it is several matrices at once";
    if (!expr_eq(s->gemm.c_row, s->gemm.n)) return "its rows lie apart";
    if (!s->gemm.long_k) return find_epilogue(f, e);
    return s->partition ? "it sums rows that processes share" : find_operand_sum(f, e);
}

/* Finds which other steps the product f->gemm can do, records that in both, and remarks on it. */
static void cover_steps(PassCtx *pc, GroupSearch *f) {
    PEpilogue *e = NEW(f->a, PEpilogue);
    const char *why_not = find_cover(f, e);
    if (why_not) *e = (PEpilogue){.side = -1, .out = -1, .why_not = why_not};
    f->gemm->epilogue = e;
    for (int i = 0; i < e->n_covers; i++) e->covers[i]->covered_by = f->gemm;
    if (why_not)
        pass_refusal(pc, f->gemm->span, "epilogues", "'%s' covers nothing: %s", f->gemm->note,
                     why_not);
    else
        pass_remark(pc, f->gemm->span, "epilogues", "'%s' %s", f->gemm->note,
                    plan_epilogue_text(e));
}

/* Looks for other steps that each matrix product can do. Only a plan for a device has such
 * products. */
static bool run(PassCtx *pc, Plan *p) {
    for (int i = 0; i < p->phases.n && p->device; i++) {
        GroupSearch f = {.a = pc->a, .p = p, .ph = p->phases.v[i]};
        for (f.gemm_at = 0; f.gemm_at < f.ph->steps.n; f.gemm_at++) {
            f.gemm = f.ph->steps.v[f.gemm_at];
            if (f.gemm->kind == PS_GEMM) cover_steps(pc, &f);
        }
    }
    return true;
}

const Pass plan_pass_epilogues = {
    .name = "epilogues",
    .summary = "let a device's matrix products add biases, cut at 0 and sum operands",
    .needs = PLAN_STEPS,
    .gives = PLAN_EPILOGUES,
    .bars = PLAN_EPILOGUES | PLAN_GROUPS | PLAN_STREAMS,
    .run_plan = run,
};

/* The position of step s in its phase; the number of steps if it is none of them. */
int plan_step_index(const PPhase *ph, const PStep *s) {
    int i = 0;
    while (i < ph->steps.n && ph->steps.v[i] != s) i++;
    return i;
}

/* What the epilogue does, in words. */
const char *plan_epilogue_text(const PEpilogue *e) {
    return text_PEpilogueKind.word[e->kind];
}
