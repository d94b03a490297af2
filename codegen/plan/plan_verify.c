/* What every plan must hold: buffers fit what is done with them, nothing is read
 * before it is written nor after another value took its place, what a kernel writes it
 * reads under one name only, and what has room for a block of rows is used in its loop. */
#include <string.h>

#include "codegen/plan/plan.h"
#include "codegen/plan_passes/plan_order.h"
#include "codegen/plan_passes/plan_reads.h"

/* What a buffer holds. */
typedef struct {
    bool is_written; /* temporaries and outputs: written in this phase */
    bool scratch;    /* what no operation of the graph names */
    const Op *value; /* NULL: what it held when the phase began */
} Contents;

/* The verification of a plan. */
typedef struct {
    Ctx *c;
    const Plan *p;
    const PPhase *phase;   /* the one being checked */
    const PStep *step;     /* .. and its step */
    Contents *holds;       /* by buffer id */
    VEC(Contents *) loops; /* the same before the first iteration of each open loop */
    bool ok;
} Check;

static bool plan_error(Check *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Adds an error about the current step; returns false. */
static bool plan_error(Check *c, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    const char *what = arena_vprintf(c->c->a, fmt, ap);
    va_end(ap);
    diag_add(c->c, DIAG_E0542, span_or(c->step->in_text, c->step->span), "@%s, '%s': %s",
             c->phase->name, c->step->note ? c->step->note : "", what);
    return c->ok = false;
}

/* Checks a step that is wrong for the reason `misfit`, if there is one. */
static bool check_fit(Check *c, const char *misfit) {
    return !misfit || plan_error(c, "%s", misfit);
}

/* Whether phases write buffers of this kind, rather than finding them filled. */
static bool is_phase_written(const PBuf *b) {
    return b->kind == PB_TEMP || b->kind == PB_OUTPUT || b->kind == PB_SAVED;
}

/* The index of the current phase in the plan. */
static int phase_index(const Check *c) {
    for (int i = 0; i < c->p->phases.n; i++)
        if (c->p->phases.v[i] == c->phase) return i;
    return -1;
}

/* Checks that a buffer may be read here: it has been written, and belongs to this phase. */
static bool check_read(Check *c, int id) {
    const PBuf *b = c->p->bufs.v[id];
    bool is_own = is_phase_written(b) && b->phase == phase_index(c);
    if (is_own && !c->holds[id].is_written)
        return plan_error(c, "%s is read before it is written", b->name);
    if (b->kind == PB_TEMP && !is_own) return plan_error(c, "%s belongs to another phase", b->name);
    return true;
}

/* Checks that a buffer may be written here. value: the op that it holds from now on; NULL: scratch
 * data. */
static bool check_write(Check *c, int id, const Op *value) {
    const PBuf *b = c->p->bufs.v[id];
    bool is_own = is_phase_written(b) && b->phase == phase_index(c);
    if (!is_own && b->kind != PB_VAR) return plan_error(c, "%s must not be written here", b->name);
    c->holds[id] = (Contents){.is_written = true, .scratch = !value, .value = value};
    return true;
}

/* ---- whose value it is ------------------------------------------------------------------ */
/* Whether the buffer still holds what it held before the loop's first iteration, the loop's
 * operand. */
static bool holds_first_operand(const Check *c, int id) {
    const Contents *contents = &c->holds[id], *first = &c->loops.v[c->loops.n - 1][id];
    return contents->value == first->value && contents->is_written == first->is_written;
}

/* Whether the buffer holds the value of op at this step. */
static bool holds_value(const Check *c, int id, const Op *op) {
    const Contents *contents = &c->holds[id];
    if (contents->scratch) return true;
    for (; op; op = op->kind == OP_VIEW || op->kind == OP_SLICE ? op->in[0] : NULL) {
        if (contents->value == op || (op->kind == OP_RESULT && contents->value == op->in[0]))
            return true;
        if (op->kind == OP_ARG && c->loops.n) return holds_first_operand(c, id);
        if (op_has(op, OPT_SOURCE)) return !contents->value;
    }
    return false;
}

/* Checks that the step may read op from a buffer: nothing has overwritten it. */
static bool check_reads_value(Check *c, int id, const Op *op) {
    if (!check_read(c, id)) return false;
    if (!op || holds_value(c, id, op)) return true;
    return plan_error(c, "%s is read as '%s', which another value has overwritten",
                      c->p->bufs.v[id]->name, op->hint ? op->hint : op_mnemonic(op->kind));
}

/* Checks that the step may read one of its op's operands from a buffer. */
static bool check_reads_operand(Check *c, int id) {
    const Op *op = c->step->op;
    if (!check_read(c, id)) return false;
    for (int i = 0; i < op->n_in; i++)
        if (holds_value(c, id, op->in[i])) return true;
    return plan_error(c, "%s is read as an operand, which another value has overwritten",
                      c->p->bufs.v[id]->name);
}

/* The number of elements of a kernel argument. */
static const Expr *element_count(Arena *a, const LBuf *b) {
    const Expr *n = expr_const(a, 1);
    for (int i = 0; i < b->rank; i++) n = expr_mul(a, n, b->dim[i]);
    return n;
}

/* Whether the argument has the element type of op; NULL: any. */
static bool has_type_of(const LBuf *l, const Op *op) {
    return !op || op->type.dt == l->dt;
}

/* Checks argument number i of a kernel: type and size fit the buffer, and no written buffer is
 * passed twice. */
static bool check_argument(Check *c, const LKernel *k, const int *bufs, int i) {
    const LBuf *l = k->bufs.v[i];
    const PBuf *b = c->p->bufs.v[bufs[i]];
    if (l->dt != b->dt)
        return plan_error(c, "%s is %s, not %s", b->name, dtype_name(b->dt), dtype_name(l->dt));
    if (!has_type_of(l, l->value) || !has_type_of(l, l->value_before))
        return plan_error(c, "%s is %s, its value is of another type", b->name, dtype_name(l->dt));
    if (!plan_holds_elements(c->c->a, b, element_count(c->c->a, l), l->written ? NULL : l->value))
        return plan_error(c, "%s has another size", b->name);
    for (int j = 0; j < k->bufs.n; j++)
        if (j != i && bufs[j] == b->id && (l->written || k->bufs.v[j]->written))
            return plan_error(c, "%s is written and read under two names", b->name);
    return true;
}

/* Checks a kernel and the n buffers that it is called with. */
static bool check_kernel_call(Check *c, const LKernel *k, const int *bufs, int n) {
    if (!k || k->bufs.n != n) return plan_error(c, "arguments do not fit");
    if (!c->p->scheduled_for && loop_is_scheduled_for_cpu(k))
        return plan_error(c, "loops are arranged for a processor, and those of the plan are not");
    if (!k->stages.n && !loop_verify(c->c, c->p->m, k)) return c->ok = false;
    for (int i = 0; i < k->stages.n; i++)
        if (!loop_verify(c->c, c->p->m, k->stages.v[i])) return c->ok = false;
    for (int i = 0; i < n; i++)
        if (!check_argument(c, k, bufs, i)) return false;
    return true;
}

/* Checks the kernel that zeroes padding rows of a product's operands: it writes rows behind the
 * batch's own, of these operands only. */
static bool check_clear_padding(Check *c) {
    const PStep *s = c->step;
    const PClear *clear = s->clear;
    if (!clear) return true;
    if (s->kind != PS_GEMM || !c->p->device)
        return plan_error(c, "only a device's products clear rows");
    for (int i = 0; i < clear->n_bufs; i++)
        if (clear->bufs[i] != s->bufs[0] && clear->bufs[i] != s->bufs[1])
            return plan_error(c, "rows are cleared of what is no operand");
    if (clear->n_bufs != 1 + (s->bufs[0] != s->bufs[1]))
        return plan_error(c, "rows are cleared of one operand, and the product has two");
    if (clear->kernel->stages.n || !clear->kernel->body)
        return plan_error(c, "what clears rows is loops over them alone");
    for (const LStmt *l = clear->kernel->body; l; l = l->next)
        if (l->kind != L_FOR || l->range != LR_BEHIND)
            return plan_error(c, "rows are cleared that are the batch's own");
    return check_kernel_call(c, clear->kernel, clear->bufs, clear->n_bufs);
}

/* Checks that the maps by whose entries rows are divided have these rows. */
static bool check_divided_rows(Check *c, const PStep *s) {
    for (int i = 0; i < s->balance.n; i++)
        if (!s->extent || !expr_eq(s->balance.v[i]->to->size, s->extent))
            return plan_error(c, "its rows are divided by entries of other rows");
    return true;
}

/* Checks that the step runs its kernel, or each stage of it, for as many rows as its loops have. */
static bool check_extents(Check *c, const PStep *s) {
    int n_stages = s->kernel->stages.n;
    for (int i = 0; i < (n_stages ? n_stages : 1); i++) {
        const LKernel *k = n_stages ? s->kernel->stages.v[i] : s->kernel;
        const Expr *rows = plan_kernel_extent(c->c->a, k);
        if (!rows != !s->extent || (rows && !expr_eq(rows, s->extent)))
            return plan_error(c, "it is run for another number of rows than its loops have");
    }
    return check_divided_rows(c, s) && check_fit(c, plan_own_misfit(c->c->a, c->p, s));
}

/* Checks a step that runs a kernel: what it reads is there, and what it writes may be. */
static bool check_kernel(Check *c) {
    const PStep *s = c->step;
    if (!check_kernel_call(c, s->kernel, s->bufs, s->n_bufs)) return false;
    if (!check_extents(c, s)) return false;
    if (loop_is_behind(s->kernel))
        return plan_error(c, "a kernel that clears rows behind a batch runs only for a product");
    for (int i = 0; i < s->n_bufs; i++) {
        const LBuf *b = s->kernel->bufs.v[i];
        const Op *value = b->written ? b->value_before : b->value;
        if ((!b->written || b->value_before) && !check_reads_value(c, s->bufs[i], value))
            return false;
    }
    for (int i = 0; i < s->n_bufs; i++) {
        const LBuf *b = s->kernel->bufs.v[i];
        if (b->written && !check_write(c, s->bufs[i], b->value)) return false;
    }
    return true;
}

/* Checks a step that reads operands of its op, and may write its result last. */
static bool check_runtime_call(Check *c) {
    const PStep *s = c->step;
    for (int i = 0; i < s->n_bufs; i++)
        if (plan_step_writes_at(s, i) ? !check_write(c, s->bufs[i], s->op)
                                      : !check_reads_operand(c, s->bufs[i]))
            return false;
    return true;
}

/* Whether the buffer has so many elements of f32. */
static bool is_f32_of(const Check *c, int buf, const Expr *n) {
    const PBuf *b = buf >= 0 && buf < c->p->bufs.n ? c->p->bufs.v[buf] : NULL;
    return b && b->dt == DT_F32 && expr_eq(b->count, n);
}

/* Checks that a kernel which a device leaves to a library computes what the library is told, by its
 * facts.  Loops that have been arranged for a target cannot be compared with these. */
static bool check_left_to_library(Check *c, const PStep *s) {
    return c->p->scheduled_for || plan_is_as_computed(c->c->a, s) ||
           plan_error(c, "'%s' is left to a library, and its loops are not what its facts say",
                      s->note ? s->note : "");
}

/* Checks what a product does at its end: its buffers, and the steps that it covers. */
static bool check_epilogue(Check *c) {
    const PEpilogue *e = c->step->epilogue;
    const PGemm *g = &c->step->gemm;
    if (!e || e->kind == PE_NONE) return true;
    if (e->kind != PE_RELU && !is_f32_of(c, e->side, e->kind == PE_SUM_A ? g->m : g->n))
        return plan_error(c, "a bias, or a sum of rows, has another size or type");
    if (!is_f32_of(c, e->out, expr_mul(c->c->a, g->m, g->n)))
        return plan_error(c, "the result of an epilogue has another size or type");
    for (int i = 0; i < e->n_covers; i++)
        if (e->covers[i]->partition != c->step->partition || (c->step->partition && g->long_k))
            return plan_error(c, "processes share other rows of what an epilogue replaces");
    for (int i = 0; i < e->n_covers; i++)
        if (!check_left_to_library(c, e->covers[i])) return false;
    return true;
}

/* Whether the buffer is a map's index array with so many elements, if any is there. */
static bool is_index_array_of(const Check *c, int buf, const Expr *n) {
    const PBuf *b = buf >= 0 && buf < c->p->bufs.n ? c->p->bufs.v[buf] : NULL;
    return b && b->kind == PB_MAP && expr_eq(b->count, n);
}

/* Checks a kernel that a device leaves to its library as a sparse product. */
static bool check_sparse_product(Check *c) {
    const PSpmm *x = c->step->spmm;
    Arena *a = c->c->a;
    if (!x || x->index < 0) return true;
    bool fits = is_index_array_of(c, x->ptr, expr_add(a, x->rows, expr_const(a, 1))) &&
                is_index_array_of(c, x->idx, x->entries) &&
                (x->perm < 0 || is_index_array_of(c, x->perm, x->entries)) &&
                is_f32_of(c, x->dense, expr_mul(a, x->cols, x->width)) &&
                is_f32_of(c, x->out, expr_mul(a, x->rows, x->width));
    if (!fits) return plan_error(c, "a buffer of a sparse product has another size or type");
    return check_left_to_library(c, c->step);
}

/* Checks that the last of the step's buffers, its result, is none of the others. */
static bool check_result_apart(Check *c) {
    const PStep *s = c->step;
    for (int i = 0; i < s->n_bufs - 1; i++)
        if (s->bufs[i] == s->bufs[s->n_bufs - 1])
            return plan_error(c, "%s is read and written", c->p->bufs.v[s->bufs[i]]->name);
    return true;
}

/* Checks that the rows of a product that processes own are its m, or its k where that is summed. */
static bool check_gemm_partition(Check *c) {
    const PStep *s = c->step;
    const Expr *rows = s->gemm.long_k ? s->gemm.k : s->gemm.m;
    return !s->partition || expr_eq(s->partition->size, rows) ||
           plan_error(c, "processes own other rows than it computes");
}

/* Whether both types have the same dimensions, in any order. */
static bool same_spaces(const Type *x, const Type *y) {
    for (int i = 0; i < x->rank; i++)
        if (!type_has(y, x->dim[i])) return false;
    return x->rank == y->rank;
}

/* The order in which matrix A (i = 0) or B (1) of a product lies: its value's own, or that of a
 * copy that was made for the product. */
static const Type *matrix_order(const Check *c, int i) {
    int buf = c->step->bufs[i];
    const Type *own = &cg_gemm_operand(c->step->op, i)->type, *copy = &c->p->bufs.v[buf]->type;
    return c->holds[buf].scratch && same_spaces(copy, own) ? copy : own;
}

/* Checks a matrix product: its buffers, sizes and strides. */
static bool check_gemm(Check *c) {
    const PStep *s = c->step;
    for (int i = 0; i < 2; i++)
        if (!check_reads_value(c, s->bufs[i], cg_gemm_operand(s->op, i))) return false;
    const char *misfit = plan_gemm_misfit(c->c->a, c->p, s, matrix_order(c, 0), matrix_order(c, 1));
    return check_gemm_partition(c) && check_write(c, s->bufs[2], s->op) && check_result_apart(c) &&
           check_fit(c, misfit) && check_clear_padding(c) && check_epilogue(c);
}

/* Checks ranks: their buffers and sizes. */
static bool check_rank(Check *c) {
    return check_runtime_call(c) && check_result_apart(c) &&
           check_fit(c, plan_rank_misfit(c->c->a, c->p, c->step));
}

/* Checks a copy. One that initialises a loop's carried value makes the target hold the loop's
 * value; any other makes it hold the copied value. */
static bool check_copy(Check *c) {
    const PStep *s = c->step;
    if (!check_runtime_call(c)) return false;
    if (s->op->kind != OP_LOOP) c->holds[s->bufs[1]].value = s->op->in[0];
    const PBuf *from = c->p->bufs.v[s->bufs[0]], *to = c->p->bufs.v[s->bufs[1]];
    bool fit = from->dt == to->dt && expr_eq(from->count, to->count);
    bool of_rows =
        from->type.rank && s->partition && expr_eq(from->type.dim[0]->size, s->partition->size);
    if (s->partition && !s->partials && !of_rows)
        return plan_error(c, "processes own other rows than it copies");
    return fit || plan_error(c, "%s and %s differ in size", from->name, to->name);
}

/* Checks a call of a C function: results are no other argument's buffer, as C functions assume. */
static bool check_user_call(Check *c) {
    const PStep *s = c->step;
    if (!s->op || !s->op->ext || s->n_in > s->n_bufs) return plan_error(c, "no function");
    for (int i = 0; i < s->n_in; i++)
        if (!check_reads_value(c, s->bufs[i], s->op->in[i + s->op->when])) return false;
    for (int i = s->n_in; i < s->n_bufs; i++) {
        for (int j = 0; j < i; j++)
            if (s->bufs[j] == s->bufs[i])
                return plan_error(c, "%s is given twice", c->p->bufs.v[s->bufs[i]]->name);
        if (!check_write(c, s->bufs[i], s->op)) return false;
    }
    for (int i = 0; i < s->n_bufs; i++)
        if (!expr_eq(type_count(c->c->a, s->types[i]), c->p->bufs.v[s->bufs[i]]->count))
            return plan_error(c, "%s has another size", c->p->bufs.v[s->bufs[i]]->name);
    return true;
}

/* Where index arrays lead: rows of `space`, or, where it is NULL, positions in the segments of
 * `segments_of`. */
typedef struct {
    const Space *space;
    const Map *segments_of;
} IndexTarget;

/* Whether array b can be indexed with rows `target`; *target is then what its elements are indices
 * of. Of a map m: ptr leads from m's targets to segment positions, perm from these to its sources,
 * idx from sources to targets. */
static bool follow_index_array(const PBuf *b, IndexTarget *target) {
    const Map *m = b->map;
    if (b->kind != PB_MAP || !m) return false;
    bool is_bounds = b->map_part == LB_MAP_PTR, is_sorted = map_is_sorted(m);
    bool is_permutation = b->map_part == LB_MAP_PERM;
    if (is_bounds ? target->space != m->to
        : is_permutation || b->by
            ? target->space || target->segments_of != (is_permutation ? m : b->by)
            : target->space != m->from)
        return false;
    if (is_bounds)
        *target = (IndexTarget){is_sorted ? m->from : NULL, is_sorted ? NULL : m};
    else
        *target = (IndexTarget){is_permutation ? m->from : m->to, NULL};
    return true;
}

/* Whether the buffer is state of an optimizer, such as a momentum. */
static bool is_optimizer_state(const Plan *p, int buf) {
    return p->bufs.v[buf]->kind == PB_VAR && p->bufs.v[buf]->var->kind == VAR_SLOT;
}

/* Checks that the index arrays of a halo lead from local rows to rows of the exchange's space. */
static bool check_halo(Check *c, const PHalo *halo) {
    IndexTarget target = {halo->from, NULL};
    if (!plan_is_partitioned_space(halo->from))
        return plan_error(c, "rows are reached from what nobody owns");
    for (int k = 0; k < halo->n_via; k++)
        if (halo->via[k] < 0 || halo->via[k] >= c->p->bufs.n ||
            !follow_index_array(c->p->bufs.v[halo->via[k]], &target))
            return plan_error(c, "rows are reached through no index array of such rows");
    return target.space == c->step->partition || plan_error(c, "rows are reached of another space");
}

/* Checks what says which rows need not wait for the exchange: the step behind it computes rows one
 * by one, and all paths from these to rows that are brought are there.  The steps of the phase have
 * been checked. */
static bool check_beside(Check *c) {
    const PStep *s = c->step, *reader;
    PHaloList paths = {0};
    if (!s->beside.n) return true;
    const char *why =
        plan_beside_paths(c->c->a, c->p, c->phase, plan_step_index(c->phase, s), &reader, &paths);
    if (!s->halos.n) return plan_error(c, "no step computes rows beside it");
    if (why) return plan_error(c, "no rows are computed beside it: the step behind it %s", why);
    for (int k = 0; k < s->beside.n; k++) {
        if (s->beside.v[k].from != reader->partition)
            return plan_error(c, "the step beside it computes no rows of %s",
                              s->beside.v[k].from->name);
        if (!check_halo(c, &s->beside.v[k])) return false;
    }
    for (int k = 0; k < paths.n; k++)
        if (!plan_has_halo(&s->beside, &paths.v[k]))
            return plan_error(c, "rows beside it read rows that it brings");
    return true;
}

/* Checks an exchange between processes: its index arrays lead from local rows to rows of the
 * buffer's space. */
static bool check_exchange(Check *c) {
    const PStep *s = c->step;
    if (!s->partition) return plan_error(c, "rows of no value");
    if (s->partials && s->halos.n) return plan_error(c, "partial sums go to all");
    if (s->to_first && (s->partials || !is_optimizer_state(c->p, s->bufs[0])))
        return plan_error(c,
                          "rows for the first process alone, of what is no state of an optimizer");
    if (s->folds && (!s->partials || c->p->bufs.v[s->bufs[0]]->dt != DT_F32))
        return plan_error(c, "a sum of what are no partial sums of f32");
    for (int i = 0; i < s->halos.n; i++)
        if (!check_halo(c, &s->halos.v[i])) return false;
    if (s->sampled && c->p->device) return plan_error(c, "rows are sampled, and a device computes");
    bool draws =
        s->halos.n && c->phase->func->phase == PHASE_TRAIN && c->p->m->recipe.sampled_boundary != 0;
    for (int i = 0; i < s->halos.n; i++) draws &= plan_is_drawn(c->p, &s->halos.v[i]);
    if (s->sampled && !draws) return plan_error(c, "rows are sampled that no step draws");
    return check_read(c, s->bufs[0]);
}

/* Checks that a step on partitioned rows is in a program for several processes. */
static bool check_partition(Check *c) {
    const PStep *s = c->step;
    if (!s->partition) return !s->partials || plan_error(c, "cuts of no rows");
    if (!c->p->partitioned) return plan_error(c, "own rows in a program without 'by_parts'");
    return plan_is_partitioned_space(s->partition) ||
           plan_error(c, "rows of %s belong to nobody", s->partition->name);
}

/* Checks that the buffer is one truth value that may be read here. False after a diagnostic. */
static bool check_condition(Check *c, int buf) {
    const PBuf *b = c->p->bufs.v[buf];
    int64_t n;
    bool is_one = b->dt == DT_I1 && expr_is_const(b->count, &n) && n == 1;
    return (is_one || plan_error(c, "%s is no condition", b->name)) && check_read(c, buf);
}

/* Records what buffers hold before the first iteration of a loop. */
static void enter_loop_steps(Check *c) {
    size_t n = (size_t)c->p->bufs.n;
    Contents *before_loop = NEWN(c->c->a, Contents, n + 1);
    memcpy(before_loop, c->holds, n * sizeof *before_loop);
    vec_push(c->c->a, &c->loops, before_loop);
}

/* After a loop: buffers of its carried values hold its operands again, or its results. */
static void leave_loop_steps(Check *c) {
    const Contents *before_loop = c->loops.v[--c->loops.n];
    for (int i = 0; i < c->p->bufs.n; i++)
        if (before_loop[i].value == c->step->op) c->holds[i] = before_loop[i];
}

/* Checks that a loop step and its end refer to each other, and that the condition can be read. */
static bool check_loop(Check *c) {
    const PStep *s = c->step;
    bool is_in_phase = s->other >= 0 && s->other < c->phase->steps.n;
    const PStep *partner = is_in_phase ? c->phase->steps.v[s->other] : s;
    bool fit = partner->kind != s->kind && partner->bufs[0] == s->bufs[0] &&
               (partner->kind == PS_LOOP || partner->kind == PS_END);
    if (!fit || (s->kind == PS_END && !c->loops.n)) return plan_error(c, "a loop without its end");
    if (!check_condition(c, s->bufs[0])) return false;
    (s->kind == PS_LOOP ? enter_loop_steps : leave_loop_steps)(c);
    return true;
}

/* Checks the current step: its buffers exist and may be read, and what its kind wants holds. False
 * after a diagnostic. */
static bool check_step(Check *c) {
    const int n = plan_step_facts(c->step->kind)->n_bufs;
    if (n >= 0 && c->step->n_bufs != n)
        return plan_error(c, "%d buffers, not %d", c->step->n_bufs, n);
    for (int i = 0; i < c->step->n_bufs; i++)
        if (c->step->bufs[i] < 0 || c->step->bufs[i] >= c->p->bufs.n)
            return plan_error(c, "no such buffer");
    if (c->step->pred >= c->p->bufs.n) return plan_error(c, "no such buffer");
    if (c->step->pred >= 0 && !check_condition(c, c->step->pred)) return false;
    if (!check_partition(c)) return false;
    switch (c->step->kind) {
    case PS_KERNEL:
        return check_kernel(c) && check_sparse_product(c);
    case PS_GEMM:
        return check_gemm(c);
    case PS_RANK:
        return check_rank(c);
    case PS_COPY:
        return check_copy(c);
    case PS_RELATION:
        return (c->step->space || plan_error(c, "no relation")) && check_runtime_call(c);
    case PS_CALL:
        return check_user_call(c);
    case PS_LOOP:
    case PS_END:
        return check_loop(c);
    case PS_PRINT:
    case PS_ASSERT:
        return check_runtime_call(c);
    case PS_EXCHANGE:
        return check_exchange(c);
    }
    return plan_error(c, "an unknown step");
}

/* Checks that temporaries are used only while they are live: those of a group in all of it, as its
 * steps are done at once. */
static bool check_lifetimes(Check *c, int position) {
    const PGroup *g = c->step->group;
    int first = position, last = position;
    for (int i = 0; g && i < g->steps.n; i++)
        if (g->steps.v[i] == c->step) first = position - i, last = first + g->steps.n - 1;
    for (int i = 0; i < c->step->n_bufs; i++) {
        const PBuf *b = c->p->bufs.v[c->step->bufs[i]];
        if (c->p->flags & PLAN_LIVES && b->kind == PB_TEMP && (first < b->first || last > b->last))
            return plan_error(c, "%s is used outside of its life", b->name);
    }
    return true;
}

/* ---- loops over blocks of rows ---------------------------------------------------------- */
/* The loop over blocks that the buffer is local to; NULL = there is none. */
static const PBlocks *block_loop(const PPhase *ph, const PBuf *b) {
    return b->block < ph->blocks.n ? &ph->blocks.v[b->block] : NULL;
}

/* Checks that a buffer which holds one block of rows is used inside its loop only. */
static bool check_block_local(Check *c, int position, int id) {
    const PBuf *b = c->p->bufs.v[id];
    const PBlocks *blocks = b->block < 0 ? NULL : block_loop(c->phase, b);
    if (b->block < 0 || (blocks && position >= blocks->first && position <= blocks->last))
        return true;
    return plan_error(c, "%s is used outside of the loop over blocks that has it", b->name);
}

/* The loop over blocks that the step at this position is in; NULL = in none. */
static const PBlocks *blocks_around(const PPhase *ph, int at) {
    for (int i = 0; i < ph->blocks.n; i++)
        if (at >= ph->blocks.v[i].first && at <= ph->blocks.v[i].last) return &ph->blocks.v[i];
    return NULL;
}

/* Checks that a step of a loop over blocks can be run on a part of the loop's rows, and finds what
 * holds one block only at its own rows.  Loops that have been arranged for a target do not show
 * their rows. */
static bool check_runs_on_block(Check *c, const PBlocks *blocks) {
    const PStep *s = c->step;
    if (!blocks || c->p->scheduled_for) return true;
    StepAccesses t = plan_step_accesses(c->c->a, c->p, s);
    if (!t.rows || !expr_eq(t.rows, blocks->rows) || t.by_chunk != s->by_chunk)
        return plan_error(c, "it cannot be run on blocks of these rows");
    for (int i = 0; i < s->n_bufs; i++)
        if (c->p->bufs.v[s->bufs[i]]->block >= 0 && t.at[i] & ~(unsigned)AT_ROW)
            return plan_error(c, "it needs other rows of %s than its own",
                              c->p->bufs.v[s->bufs[i]]->name);
    return true;
}

/* Checks the current step's place in a loop over blocks, or outside of all. */
static bool check_blocks(Check *c, int at) {
    if (!check_runs_on_block(c, blocks_around(c->phase, at))) return false;
    for (int i = 0; i < c->step->n_bufs; i++)
        if (!check_block_local(c, at, c->step->bufs[i])) return false;
    return c->step->pred < 0 || check_block_local(c, at, c->step->pred);
}

/* Checks that each buffer which holds one block of rows has a loop over blocks. */
static bool check_block_loops(Ctx *ctx, const Plan *p) {
    bool ok = true;
    for (int i = 0; i < p->bufs.n; i++) {
        const PBuf *b = p->bufs.v[i];
        bool has = b->block < 0 || (b->kind == PB_TEMP && b->phase >= 0 && b->phase < p->phases.n &&
                                    block_loop(p->phases.v[b->phase], b));
        if (!has)
            diag_add(ctx, DIAG_E0542, (Span){0}, "%s holds a block, and no loop has it", b->name);
        ok &= has;
    }
    return ok;
}

/* ---- streams ----------------------------------------------------------------------------- */
/* Checks that steps which may run beside each other need nothing of each other, nor have bytes in
 * common. */
static bool check_streams(Check *c) {
    int at = 0, *last = NEWN(c->c->a, int, (size_t)c->p->bufs.n + 1);
    const char *why = plan_streams_misfit(c->c->a, c->p, c->phase, &at);
    if (why) c->step = c->phase->steps.v[at];
    if (why) return plan_error(c, "%s", why);
    if (!(c->p->flags & PLAN_LIVES)) return true;
    plan_stream_lives(c->c->a, c->p, c->phase, last);
    for (int i = 0; i < c->p->bufs.n; i++) {
        if (last[i] <= c->p->bufs.v[i]->last) continue;
        c->step = c->phase->steps.v[last[i]];
        return plan_error(c, "%s may be in use beside it, and its life has ended",
                          c->p->bufs.v[i]->name);
    }
    return true;
}

/* ---- the end of a phase ------------------------------------------------------------------ */
/* Adds an error about the end of the current phase; returns false. */
static bool end_error(Check *c, Span at, const char *buf, const char *what) {
    diag_add(c->c, DIAG_E0542, span_or(c->phase->in_text, at), "@%s: %s %s", c->phase->name, buf,
             what);
    return c->ok = false;
}

/* By Var.id: the function's assignment to the variable, or NULL. */
static const Op **find_assignments(const Check *c, const Func *f) {
    const Op **assigns = NEWN(c->c->a, const Op *, (size_t)c->p->m->vars.n + 1);
    for (const Op *op = f->first; op; op = op->next)
        if (op->kind == OP_ASSIGN) assigns[op->var->id] = op;
    return assigns;
}

/* Whether the variable has its next value in the buffer: it was written there, or it is the value
 * that the variable has. */
static bool holds_next_value(const Check *c, const PBuf *b, const Op *assign) {
    const Op *x = assign->in[0];
    if (c->holds[b->id].is_written) return holds_value(c, b->id, x);
    while (x->kind == OP_VIEW) x = x->in[0];
    return x->kind == OP_VAR && x->var == b->var;
}

/* Checks that outputs are written in the end, and variables have the values that are assigned to
 * them, and no others. */
static bool check_results(Check *c) {
    const Op **assigns = find_assignments(c, c->phase->func);
    int phase = phase_index(c);
    for (int i = 0; i < c->p->bufs.n; i++) {
        const PBuf *b = c->p->bufs.v[i];
        bool output = (b->kind == PB_OUTPUT || b->kind == PB_SAVED) && b->phase == phase;
        const Op *assign = b->kind == PB_VAR ? assigns[b->var->id] : NULL;
        if (output && !c->holds[i].is_written)
            return end_error(c, c->phase->func->span, b->name, "is an output, and not written");
        if (assign && !holds_next_value(c, b, assign))
            return end_error(c, assign->span, b->name, "does not get what is assigned to it");
        if (b->kind == PB_VAR && !assign && c->holds[i].is_written)
            return end_error(c, c->phase->func->span, b->name,
                             "is written, and nothing is assigned to it");
    }
    return true;
}

/* Checks that one launch can run the kernels of the current step's group. */
static bool check_launch(Check *c) {
    const char *why = plan_launch_misfit(c->p, c->step->group);
    return !why || plan_error(c, "one launch of several kernels: %s", why);
}

/* Checks a phase whose steps have been checked one by one. False after a diagnostic. */
static bool check_phase(Check *c) {
    for (int i = 0; i < c->phase->steps.n; i++) {
        c->step = c->phase->steps.v[i];
        if (c->step->kind == PS_EXCHANGE && !check_beside(c)) return false;
        if (c->step->kind == PS_KERNEL && plan_leads_group(c->step) && !check_launch(c))
            return false;
    }
    if (plan_has_streams(c->phase) && !check_streams(c)) return false;
    return !(c->p->flags & PLAN_STEPS) || check_results(c);
}

/* Checks that what a device holds of buffers is what steps read. Scheduled kernels are not looked
 * into. */
static bool check_held(Ctx *ctx, const Plan *p) {
    const PBuf *wrong = NULL;
    if (!(p->flags & PLAN_STEPS) || p->scheduled_for || plan_is_held_rightly(ctx->a, p, &wrong))
        return true;
    diag_add(ctx, DIAG_E0542, (Span){0}, "%s: these are not the rows that a device must hold",
             wrong->name);
    return false;
}

/* Checks that a plan of sampled boundaries is one whose rows processes share on the CPU. */
static bool check_sampled_boundary(Ctx *ctx, const Plan *p) {
    if (p->m->recipe.sampled_boundary == 0 || (p->partitioned && !p->device)) return true;
    diag_add(ctx, DIAG_E0542, (Span){0}, "'sampled_boundary': %s",
             p->device ? "a device computes" : "the plan is not 'by_parts'");
    return false;
}

/* Checks the plan: each step's buffers fit it and hold what it reads. False after diagnostics. */
bool plan_verify(Ctx *ctx, const Plan *p) {
    Check c = {.c = ctx, .p = p, .ok = check_block_loops(ctx, p) && plan_verify_fusions(ctx, p)};
    c.holds = NEWN(ctx->a, Contents, (size_t)p->bufs.n + 1);
    for (int i = 0; i < p->phases.n; i++) {
        c.phase = p->phases.v[i];
        c.loops.n = 0;
        memset(c.holds, 0, (size_t)p->bufs.n * sizeof *c.holds);
        for (int k = 0; k < c.phase->steps.n; k++) {
            c.step = c.phase->steps.v[k];
            if (!check_step(&c) || !check_lifetimes(&c, k) || !check_blocks(&c, k)) break;
        }
        if (c.ok) check_phase(&c);
    }
    return c.ok && check_held(ctx, p) && check_sampled_boundary(ctx, p);
}
