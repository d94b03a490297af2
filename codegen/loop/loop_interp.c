#include "codegen/loop/loop_interp.h"

#include <math.h>
#include <string.h>

#include "ir/op/elementwise.h"

typedef struct {
    int64_t n;
    double *v;
} Array;

struct LoopRun {
    Ctx *c;
    const Plan *p;
    Interp *in;
    Array *buf; /* by PBuf id */
    const char *error;
    LoopStored *stored; /* or NULL */
    void *user;
    /* the kernel being run */
    const PStep *step;
    const LKernel *k;
    double *reg;
    bool *is_set; /* registers that hold a value */
    Array *local;
    Array *room; /* by LBuf.id: between the stages of the step's kernel */
};

static bool run_error(LoopRun *r, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Records the first error of the run; returns false. */
static bool run_error(LoopRun *r, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    if (!r->error) {
        const char *what = arena_vprintf(r->c->a, fmt, ap);
        r->error = arena_printf(r->c->a, "%s: %s", r->k ? r->k->name : "plan", what);
    }
    va_end(ap);
    return false;
}

/* An array of NaN. */
static Array new_array(LoopRun *r, int64_t n) {
    Array a = {.n = n, .v = NEWN(r->c->a, double, (size_t)n + 1)};
    for (int64_t i = 0; i < n; i++) a.v[i] = NAN;
    return a;
}

/* An array with the elements of x. */
static Array copy_array(LoopRun *r, int64_t n, const double *x) {
    Array a = new_array(r, n);
    if (x) memcpy(a.v, x, (size_t)n * sizeof *x);
    return a;
}

/* ---- what is given -------------------------------------------------------------------- */
/* For each of `rows` targets the position in segment order of its first entry; entries with target
 * -1 are in no segment. */
static int64_t *segment_bounds(LoopRun *r, const int64_t *to, int64_t n, int64_t rows) {
    int64_t *ptr = NEWN(r->c->a, int64_t, (size_t)rows + 2);
    for (int64_t i = 0; i < n; i++)
        if (to[i] >= 0 && to[i] < rows) ptr[to[i] + 1]++;
    for (int64_t v = 0; v < rows; v++) ptr[v + 1] += ptr[v];
    return ptr;
}

/* One of the index arrays of map m: targets (idx), segment bounds (ptr) or permutation into segment
 * order (perm). */
static Array map_array(LoopRun *r, const Map *m, LBufKind kind, int64_t count) {
    const int64_t *to = interp_map(r->in, m);
    int64_t n = interp_size(r->in, m->from), rows = interp_size(r->in, m->to);
    Array a = new_array(r, count);
    if (!to) return a;
    for (int64_t i = 0; kind == LB_MAP_IDX && i < n; i++) a.v[i] = (double)to[i];
    if (kind == LB_MAP_IDX) return a;
    int64_t *ptr = segment_bounds(r, to, n, rows);
    for (int64_t v = 0; kind == LB_MAP_PTR && v <= rows; v++) a.v[v] = (double)ptr[v];
    for (int64_t i = 0; kind == LB_MAP_PERM && i < n; i++)
        if (to[i] >= 0 && to[i] < rows && ptr[to[i]] < count) a.v[ptr[to[i]]++] = (double)i;
    return a;
}

/* The targets of map m in the segment order of another map: m(perm[k]). */
static Array map_sorted_by(LoopRun *r, const Map *m, const Map *order, int64_t count) {
    Array perm = map_array(r, order, LB_MAP_PERM, count), a = new_array(r, count);
    const int64_t *to = interp_map(r->in, m);
    for (int64_t k = 0; to && k < count; k++)
        if (!isnan(perm.v[k])) a.v[k] = (double)to[(int64_t)perm.v[k]];
    return a;
}

/* A sparse feature column (CSR) expanded to dense rows, for a variant of the program that reads it
 * so. */
static Array dense_rows(LoopRun *r, const PBuf *b, int64_t n_elements) {
    const int64_t *row = interp_map(r->in, map_row(r->p->m, b->col->nz));
    const int64_t *col = interp_map(r->in, map_nzcol(r->p->m, b->col->nz));
    const double *v = interp_column(r->in, b->col);
    int64_t width = interp_size(r->in, b->col->type.dim[1]);
    Array a = {.n = n_elements, .v = NEWN(r->c->a, double, (size_t)n_elements + 1)};
    for (int64_t k = 0; row && col && k < interp_size(r->in, b->col->nz); k++)
        a.v[row[k] * width + col[k]] = v[k];
    return a;
}

/* The elements of a column, as the plan's buffer has them. */
static Array load_data(LoopRun *r, const PBuf *b, int64_t n) {
    bool is_dense = b->col->kind == COL_CSR && !type_has(&b->type, b->col->nz);
    return is_dense ? dense_rows(r, b, n) : copy_array(r, n, interp_column(r->in, b->col));
}

/* The elements of a variable, rounded to its storage type. */
static Array load_variable(LoopRun *r, const Var *v, int64_t n) {
    const double *initial = interp_var(r->in, v);
    Array a = copy_array(r, n, initial);
    if (initial) interp_as_stored(r->in, v, initial, a.v);
    return a;
}

/* What a buffer holds before the first step of a run. */
static Array initial_array(LoopRun *r, const PBuf *b) {
    int64_t n = interp_expr(r->in, b->count);
    switch (b->kind) {
    case PB_DATA:
        return load_data(r, b, n);
    case PB_VAR:
        return load_variable(r, b->var, n);
    case PB_INPUT:
        return copy_array(r, n, interp_input(r->in, b->io_name, n));
    case PB_MAP:
        if (b->by) return map_sorted_by(r, b->map, b->by, n);
        return map_array(r, b->map, b->map_part, n);
    case PB_LOGICAL: {
        Array a = new_array(r, n);
        bool edges = b->space->kind == SP_EDGE;
        const InterpEdges *e = edges ? interp_edges(r->in, b->space) : NULL;
        for (int64_t i = 0; !edges && i < n; i++) a.v[i] = (double)i;
        for (int64_t i = 0; e && i < n; i++) a.v[i] = (double)e->key[i];
        return a;
    }
    case PB_CUTS: {
        Array a = new_array(r, n);
        int64_t rows = interp_size(r->in, b->space);
        for (int64_t i = 0; i < n; i++) a.v[i] = (double)(rows * i / (n - 1));
        return a;
    }
    case PB_KEY: {
        RtKey key = interp_stream_key(r->in, b->stream);
        return copy_array(r, 2, (double[]){key.k0, key.k1});
    }
    default:
        return new_array(r, n);
    }
}

/* A new interpreter of the plan's kernels, over the data of interpreter `in`. */
LoopRun *loop_run_new(Ctx *c, const Plan *p, Interp *in) {
    LoopRun *r = NEW(c->a, LoopRun);
    *r = (LoopRun){.c = c, .p = p, .in = in};
    r->buf = NEWN(c->a, Array, (size_t)p->bufs.n);
    for (int i = 0; i < p->m->spaces.n; i++) /* derived relations get their sizes */
        if (p->m->spaces.v[i]->kind == SP_EDGE) interp_edges(in, p->m->spaces.v[i]);
    return r;
}

const char *loop_run_error(const LoopRun *r) {
    return r->error;
}

/* The array of a buffer, made on first use. */
static Array *buf_at(LoopRun *r, int id) {
    if (!r->buf[id].v) r->buf[id] = initial_array(r, r->p->bufs.v[id]);
    return &r->buf[id];
}

/* ---- kernels ------------------------------------------------------------------------------ */
/* The array of a buffer that statements access. */
static Array *array_of(LoopRun *r, const LBuf *b) {
    if (b->kind == LB_LOCAL) return &r->local[b->id];
    if (b->kind == LB_ROOM) return &r->room[b->id];
    return buf_at(r, r->step->bufs[b->id]);
}

/* The array element that an access reaches; NULL after an error if an index is not set or out of
 * range. */
static double *checked_element(LoopRun *r, const LBuf *b, LReg *const *idx) {
    Array *a = array_of(r, b);
    int64_t at = 0, count = 1;
    for (int i = 0; i < b->rank; i++) {
        int64_t n = interp_expr(r->in, b->dim[i]), x = (int64_t)r->reg[idx[i]->id];
        if (!r->is_set[idx[i]->id]) run_error(r, "an index of %s is not set", b->name);
        if (x < 0 || x >= n)
            run_error(r, "index %lld of %s[%lld]", (long long)x, b->name, (long long)n);
        at = at * n + x;
        count *= n;
    }
    if (count > a->n || at < 0 || at >= a->n)
        run_error(r, "%s has %lld elements", b->name, (long long)a->n);
    return r->error ? NULL : &a->v[at];
}

/* Sets a register. True. */
static bool set_register(LoopRun *r, const LReg *dst, double v) {
    r->reg[dst->id] = v;
    return r->is_set[dst->id] = true;
}

/* The random number of a key (x[0], x[1]), a row x[2] and a column x[3]. */
static double random_number(const double *x) {
    return (double)rt_uniform((RtKey){(uint32_t)x[0], (uint32_t)x[1]}, (uint32_t)x[2],
                              (uint32_t)x[3]);
}

/* The result of a scalar function of the values x. */
static double scalar_result(LoopRun *r, const LStmt *s, const double *x) {
    switch (s->fn) {
    case L_FN_OP: {
        Op in[3] = {0}, *ins[3] = {&in[0], &in[1], &in[2]};
        Op op = {.kind = s->op, .type = {.dt = s->dst->dt}, .n_in = s->n_arg, .in = ins};
        for (int i = 0; i < s->n_arg; i++) in[i].type.dt = s->arg[i]->dt;
        return op_elementwise_apply(&op, x);
    }
    case L_FN_CONST:
        return s->imm;
    case L_FN_SIZE:
        return (double)interp_expr(r->in, s->size);
    case L_FN_IADD:
        return x[0] + x[1];
    case L_FN_ISUB:
        return x[0] - x[1];
    case L_FN_IMUL:
        return x[0] * x[1];
    case L_FN_IDIV:
        return x[1] == 0 ? 0 : floor(x[0] / x[1]);
    case L_FN_IREM:
        return x[1] == 0 ? 0 : fmod(x[0], x[1]);
    case L_FN_ILT:
        return x[0] < x[1];
    case L_FN_IGE:
        return x[0] >= x[1];
    case L_FN_IEQ:
        return x[0] == x[1];
    case L_FN_RANDOM:
        return random_number(x);
    case L_FN_LE_RANDOM:
        return s->imm <= random_number(x);
    }
    return NAN;
}

static bool run_list(LoopRun *r, const LStmt *s);

/* Runs a loop over [lo, hi). Parallel and vector loops run backwards, so that results which depend
 * on the order of iterations are noticed. */
static bool run_iterations(LoopRun *r, const LStmt *s, int64_t lo, int64_t hi) {
    bool backwards = s->sched.parallel || s->sched.vector;
    for (int64_t i = lo; i < hi; i++) {
        int64_t k = backwards ? hi - 1 - (i - lo) : i;
        set_register(r, s->var, (double)k);
        if (!run_list(r, s->body)) return false;
    }
    return true;
}

/* Whether this one of two versions of a parallel loop runs at the data's sizes. */
static bool is_chosen_version(const LoopRun *r, const LSched *s) {
    return !s->where || (interp_expr(r->in, s->where) > s->max) == s->is_second;
}

/* Runs a loop of the loop IR. */
static bool run_loop(LoopRun *r, const LStmt *s) {
    if (!is_chosen_version(r, &s->sched)) return true;
    if (s->range == LR_EXTENT) return run_iterations(r, s, 0, interp_expr(r->in, s->extent));
    if (s->range == LR_BEHIND) return true; /* sizes are the batch's own */
    int64_t at = (int64_t)r->reg[s->at->id];
    if (s->range == LR_SEGMENT || s->ptr) {
        const Array *ptr = buf_at(r, r->step->bufs[s->ptr->id]);
        if (at < 0 || at + 1 >= ptr->n) return run_error(r, "segment %lld", (long long)at);
        return run_iterations(r, s, (int64_t)ptr->v[at], (int64_t)ptr->v[at + 1]);
    }
    int64_t n = interp_expr(r->in, s->extent), c = interp_expr(r->in, s->n_chunks);
    int64_t len = c ? (n + c - 1) / c : 0, lo = at * len, hi = (at + 1) * len;
    return run_iterations(r, s, lo, hi < n ? hi : n);
}

/* Runs an L_LET. */
static bool run_let(LoopRun *r, const LStmt *s) {
    double x[4];
    for (int i = 0; i < s->n_arg; i++) {
        if (!r->is_set[s->arg[i]->id]) return run_error(r, "register %d is not set", s->arg[i]->id);
        x[i] = r->reg[s->arg[i]->id];
    }
    return set_register(r, s->dst, scalar_result(r, s, x));
}

/* Declares a local array: NaN in all elements, so that reads before writes are noticed. */
static void declare_local(LoopRun *r, const LBuf *b) {
    Array *a = &r->local[b->id];
    int64_t n = 1;
    for (int i = 0; i < b->rank; i++) n *= interp_expr(r->in, b->dim[i]);
    if (!a->v || a->n < n) *a = new_array(r, n);
    a->n = n;
    for (int64_t i = 0; i < n; i++) a->v[i] = NAN;
}

/* Runs a statement. */
static bool run_statement(LoopRun *r, const LStmt *s) {
    double *at;
    switch (s->kind) {
    case L_FOR:
        return run_loop(r, s);
    case L_IF:
        return r->reg[s->cond->id] == 0 || run_list(r, s->body);
    case L_PREFETCH:
        return true;
    case L_TILE:
    case L_COLUMNS:
        return run_list(r, s->body);
    case L_BARRIER:
    case L_FOLD: /* one thread has added up all of it */
        return true;
    case L_LET:
        return run_let(r, s);
    case L_LOAD:
        at = checked_element(r, s->buf, s->idx);
        return at && set_register(r, s->dst, *at);
    case L_STORE:
        at = checked_element(r, s->buf, s->idx);
        if (at) *at = r->reg[s->src->id];
        return at != NULL;
    case L_ACC:
        at = checked_element(r, s->buf, s->idx);
        if (at) *at = interp_combine(s->red, *at, r->reg[s->src->id]);
        return at != NULL;
    case L_LOCAL:
        declare_local(r, s->buf);
        return true;
    }
    return false;
}

/* Runs a list of statements. */
static bool run_list(LoopRun *r, const LStmt *s) {
    for (; s; s = s->next)
        if (!run_statement(r, s)) return false;
    return true;
}

/* Begins the arrays that a stage fills for the next one. */
static void begin_rooms(LoopRun *r, const LKernel *k) {
    for (int i = loop_n_arguments(k); i < k->bufs.n; i++) {
        const LBuf *b = k->bufs.v[i];
        int64_t n = 1;
        for (int d = 0; d < b->rank; d++) n *= interp_expr(r->in, b->dim[d]);
        if (b->written && !b->begun) r->room[i] = new_array(r, n);
    }
}

/* Runs a kernel. */
static bool run_kernel(LoopRun *r, const LKernel *k) {
    begin_rooms(r, k);
    r->k = k;
    r->reg = NEWN(r->c->a, double, (size_t)k->n_regs + 1);
    r->is_set = NEWN(r->c->a, bool, (size_t)k->n_regs + 1);
    r->local = NEWN(r->c->a, Array, (size_t)k->locals.n + 1);
    bool ok = run_list(r, k->body);
    r->k = NULL;
    return ok;
}

/* Runs the stages of a kernel step, and reports the values that it has stored. */
static bool run_kernel_step(LoopRun *r, const PStep *s) {
    const LKernel *k = s->kernel;
    int n_rooms = 0;
    r->step = s;
    for (int i = 0; i < k->stages.n; i++)
        if (k->stages.v[i]->bufs.n > n_rooms) n_rooms = k->stages.v[i]->bufs.n;
    r->room = NEWN(r->c->a, Array, (size_t)n_rooms + 1);
    bool ok = k->stages.n || run_kernel(r, k);
    for (int i = 0; i < k->stages.n && ok; i++) ok = run_kernel(r, k->stages.v[i]);
    for (int i = 0; i < k->bufs.n && ok && r->stored; i++) {
        const LBuf *b = k->bufs.v[i];
        const Array *a = b->value && b->written ? buf_at(r, s->bufs[i]) : NULL;
        if (a) r->stored(r->user, b->value, a->n, a->v);
    }
    return ok;
}

void loop_run_on_store(LoopRun *r, LoopStored *stored, void *user) {
    r->stored = stored;
    r->user = user;
}

/* ---- library calls -------- */
/* Element i of an operand of a matrix product, checked. */
static double read_element(LoopRun *r, const Array *a, int64_t i) {
    if (i >= 0 && i < a->n) return a->v[i];
    run_error(r, "gemm reads element %lld of %lld", (long long)i, (long long)a->n);
    return 0;
}

/* Runs a matrix product, by its sizes and strides. */
static bool run_gemm(LoopRun *r, const PStep *s) {
    const PGemm *g = &s->gemm;
    int64_t sizes[PLAN_GEMM_SIZES];
    for (int i = 0; i < PLAN_GEMM_SIZES; i++) sizes[i] = interp_expr(r->in, plan_gemm_size(g, i));
    if ((sizes[5] != 1 && sizes[6] != 1) || (sizes[8] != 1 && sizes[9] != 1))
        return run_error(r, "gemm: no stride is 1");
    const Array *A = buf_at(r, s->bufs[0]), *B = buf_at(r, s->bufs[1]);
    Array *C = buf_at(r, s->bufs[2]);
    for (int64_t b = 0; b < sizes[0]; b++)
        for (int64_t i = 0; i < sizes[1]; i++)
            for (int64_t j = 0; j < sizes[2]; j++) {
                double sum = 0;
                for (int64_t k = 0; k < sizes[3]; k++)
                    sum += read_element(r, A, b * sizes[4] + i * sizes[5] + k * sizes[6]) *
                           read_element(r, B, b * sizes[7] + k * sizes[8] + j * sizes[9]);
                int64_t to = b * sizes[10] + i * sizes[11] + j;
                if (to < 0 || to >= C->n)
                    return run_error(r, "gemm writes element %lld", (long long)to);
                C->v[to] = sum;
            }
    return !r->error;
}

/* Ranks elements along an axis, among those that the mask selects: 1 + how many are smaller, plus a
 * share of the equal ones. */
static bool run_rank(LoopRun *r, const PStep *s) {
    const Op *op = s->op;
    const Type *t = &op->type;
    int64_t n = interp_size(r->in, t->dim[s->rank_axis]), inner = 1;
    for (int i = s->rank_axis + 1; i < t->rank; i++) inner *= interp_size(r->in, t->dim[i]);
    const Array *x = buf_at(r, s->bufs[0]), *mask = buf_at(r, s->bufs[1]);
    Array *ranks = buf_at(r, s->bufs[2]);
    if (mask->n != x->n || ranks->n < x->n)
        return run_error(r, "rank: a mask or result of another shape");
    if (x->n && (n < 1 || inner < 1)) return run_error(r, "rank: an empty axis");
    for (int64_t i = 0; i < x->n; i++) {
        int64_t first = i - i / inner % n * inner;
        double rank = 1;
        for (int64_t k = 0; k < n; k++) {
            int64_t j = first + k * inner;
            if (mask->v[j] != 0 && j != i)
                rank += x->v[j] < x->v[i] ? 1 : x->v[j] == x->v[i] ? op->imm : 0;
        }
        ranks->v[i] = mask->v[i] != 0 ? rank : 0;
    }
    return true;
}

/* Runs a copy. */
static bool run_copy(LoopRun *r, const PStep *s) {
    const Array *from = buf_at(r, s->bufs[0]);
    Array *to = buf_at(r, s->bufs[1]);
    if (from->n != to->n) return run_error(r, "copy of %lld elements", (long long)from->n);
    memcpy(to->v, from->v, (size_t)from->n * sizeof *from->v);
    return true;
}

/* ---- the user's functions ------------------------------------------------------------------ */
/* A buffer as an argument of a C function. */
static OpTensor tensor_of(LoopRun *r, const Type *t, Array *a) {
    OpTensor x = {.type = *t, .count = a->n, .v = a->v};
    for (int i = 0; i < t->rank; i++) x.shape[i] = interp_size(r->in, t->dim[i]);
    return x;
}

/* Runs a call of a C function. */
static bool run_call(LoopRun *r, const PStep *s) {
    OpTensor *t = NEWN(r->c->a, OpTensor, (size_t)s->n_bufs + 1);
    const OpTensor **in = NEWN(r->c->a, const OpTensor *, (size_t)s->n_bufs + 1);
    OpTensor **out = NEWN(r->c->a, OpTensor *, (size_t)s->n_bufs + 1);
    for (int i = 0; i < s->n_bufs; i++) {
        t[i] = tensor_of(r, s->types[i], buf_at(r, s->bufs[i]));
        if (i < s->n_in)
            in[i] = &t[i];
        else
            out[i - s->n_in] = &t[i];
    }
    bool ok = interp_call(r->in, s->op, cg_symbol(s->op), s->n_in, in, s->n_bufs - s->n_in, out);
    return ok || run_error(r, "%s", interp_error(r->in));
}

/* Sets the results of a call that its condition skips to 0. */
static bool clear_results(LoopRun *r, const PStep *s) {
    for (int i = s->n_in; i < s->n_bufs; i++) {
        Array *a = buf_at(r, s->bufs[i]);
        memset(a->v, 0, (size_t)a->n * sizeof *a->v);
    }
    return true;
}

/* Reports the result of a library call, which is in its third buffer. */
static bool report_result(LoopRun *r, const PStep *s) {
    const Array *a = buf_at(r, s->bufs[2]);
    if (r->stored && s->op) r->stored(r->user, s->op, a->n, a->v);
    return true;
}

/* Runs a step, unless its condition forbids it. */
static bool run_step(LoopRun *r, const PStep *s) {
    bool is_run = s->pred < 0 || (buf_at(r, s->pred)->v[0] != 0) != s->pred_not;
    if (!is_run) return s->kind != PS_CALL || clear_results(r, s);
    switch (s->kind) {
    case PS_KERNEL:
        return run_kernel_step(r, s);
    case PS_GEMM:
        return run_gemm(r, s) && report_result(r, s);
    case PS_RANK:
        return run_rank(r, s) && report_result(r, s);
    case PS_CALL:
        return run_call(r, s);
    case PS_COPY:
        return run_copy(r, s);
    default:
        return true;
    }
}

static bool run_steps(LoopRun *r, const PPhase *ph, int from, int to);

/* Runs the loop of steps that begins at position `at`, while its condition holds. */
static bool run_loop_steps(LoopRun *r, const PPhase *ph, int at) {
    const PStep *s = ph->steps.v[at];
    for (int64_t n = 0; buf_at(r, s->bufs[0])->v[0] != 0 && (!s->limit || n < s->limit); n++)
        if (!run_steps(r, ph, at + 1, s->other)) return false;
    return true;
}

/* Runs the steps from .. to - 1 of a phase, with the loops among them. */
static bool run_steps(LoopRun *r, const PPhase *ph, int from, int to) {
    for (int i = from; i < to; i++) {
        const PStep *s = ph->steps.v[i];
        if (!(s->kind == PS_LOOP ? run_loop_steps(r, ph, i) : run_step(r, s))) return false;
        if (s->kind == PS_LOOP) i = s->other;
    }
    return true;
}

/* Runs a phase of the plan. Its temporaries and outputs are NaN at the start. */
bool loop_run_phase(LoopRun *r, int phase) {
    const PPhase *ph = r->p->phases.v[phase];
    r->error = NULL;
    for (int i = 0; i < r->p->bufs.n; i++) {
        const PBuf *b = r->p->bufs.v[i];
        bool is_phase_written = b->kind == PB_TEMP || b->kind == PB_OUTPUT || b->kind == PB_SAVED;
        bool is_new_each_step = b->kind == PB_INPUT || b->kind == PB_KEY; /* of each step */
        if (is_new_each_step) r->buf[i].v = NULL;
        if (is_phase_written && b->phase == phase) r->buf[i] = initial_array(r, b);
    }
    return run_steps(r, ph, 0, ph->steps.n);
}

/* The elements of output or saved value `name` of a phase, their number in *n; NULL: there is none.
 */
const double *loop_run_output(LoopRun *r, int phase, const char *name, int64_t *n) {
    for (int i = 0; i < r->p->bufs.n; i++) {
        const PBuf *b = r->p->bufs.v[i];
        if ((b->kind != PB_OUTPUT && b->kind != PB_SAVED) || b->phase != phase) continue;
        if (strcmp(b->io_name, name)) continue;
        *n = buf_at(r, i)->n;
        return r->buf[i].v;
    }
    return NULL;
}

const double *loop_run_var(LoopRun *r, const Var *v) {
    for (int i = 0; i < r->p->bufs.n; i++)
        if (r->p->bufs.v[i]->kind == PB_VAR && r->p->bufs.v[i]->var == v) return buf_at(r, i)->v;
    return NULL;
}
