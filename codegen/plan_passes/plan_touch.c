/* How the steps of a plan touch their buffers: at the rows that they are run on, anywhere, or in
 * parts that are summed.  Read off the loops of kernels and the strides of products. */
#include "codegen/plan_passes/plan_order.h"

/* Whether the step accesses the buffer, or is conditional on it. */
bool plan_step_accesses_buf(const PStep *s, int buf) {
    for (int i = 0; i < s->n_bufs; i++)
        if (s->bufs[i] == buf) return true;
    return s->pred == buf;
}

bool plan_step_writes(const PStep *s, int buf) {
    for (int i = 0; i < s->n_bufs; i++)
        if (s->bufs[i] == buf && plan_step_writes_at(s, i)) return true;
    return false;
}

/* Whether the type is dense with node, edge or graph rows. */
static bool has_rows(const Type *t) {
    return t->rank > 0 && t->layout == LAYOUT_DENSE && t->dim[0]->kind != SP_DIM;
}

/* ---- kernels ---------------------------------------------------------------------------- */
/* A walk over a kernel's accesses. */
typedef struct {
    const LReg *outer, *chunk; /* the parallel variable; the one that runs through its chunk */
    StepAccesses *accesses;
} AccessWalk;

/* Records an access to b, whose first index is `index`. */
static void record_access(AccessWalk *w, const LBuf *b, const LReg *index) {
    if (b->kind == LB_LOCAL) return;
    AccessPlace at = ANYWHERE;
    if (w->chunk && b->written)
        at = index == w->outer ? AS_PARTIAL_SUM : ANYWHERE;
    else if (index && index == (w->chunk ? w->chunk : w->outer))
        at = AT_ROW;
    w->accesses->at[b->id] |= at;
}

/* Visits a list of statements. */
static void walk_list(AccessWalk *w, const LStmt *s) {
    for (; s; s = s->next) {
        if (loop_is_access(s)) record_access(w, s->buf, s->buf->rank ? s->idx[0] : NULL);
        if (s->kind == L_FOR && s->range == LR_SEGMENT) record_access(w, s->ptr, NULL);
        walk_list(w, s->body);
    }
}

/* The parallel loop of a kernel, or NULL. */
static const LStmt *parallel_loop(const LKernel *k) {
    for (const LStmt *s = k->body; s; s = s->next)
        if (s->kind == L_FOR && s->sched.parallel) return s;
    return NULL;
}

/* The loop over the chunk that belongs to an iteration, or NULL. */
static const LStmt *chunk_loop(const LStmt *loop) {
    for (const LStmt *s = loop->body; s; s = s->next)
        if (s->kind == L_FOR && s->range == LR_CHUNK && s->at == loop->var &&
            expr_eq(s->n_chunks, loop->extent))
            return s;
    return NULL;
}

/* The rows that a kernel without chunks runs over: those of the first buffer that it writes. A flat
 * loop over all elements takes the elements of a row together. */
static const Expr *kernel_rows(const Plan *p, const PStep *s) {
    for (int i = 0; i < s->n_bufs; i++) {
        const LBuf *l = s->kernel->bufs.v[i];
        const PBuf *b = p->bufs.v[s->bufs[i]];
        if (!l->written) continue;
        if (!has_rows(&b->type) || l->rank == 0) return NULL;
        bool flat = l->rank == 1 && expr_eq(b->count, s->extent);
        bool by_row = expr_eq(b->type.dim[0]->size, s->extent) && expr_eq(l->dim[0], s->extent);
        return flat || by_row ? b->type.dim[0]->size : NULL;
    }
    return NULL;
}

/* Corrects accesses to buffers that have another number of rows than the kernel. */
static void check_lengths(const Plan *p, const PStep *s, StepAccesses *t) {
    for (int i = 0; i < s->n_bufs; i++) {
        const PBuf *b = p->bufs.v[s->bufs[i]];
        const LBuf *l = s->kernel->bufs.v[i];
        const Expr *length = t->by_chunk ? t->rows : s->extent;
        bool fits = l->rank && expr_eq(l->dim[0], length);
        bool whole = has_rows(&b->type) && expr_eq(b->type.dim[0]->size, t->rows);
        if (t->at[i] == AT_ROW && !(fits && whole)) t->at[i] = ANYWHERE;
    }
}

/* Finds how a kernel accesses its buffers, and by which rows it can be run in parts: t->rows stays
 * NULL where something is written that is not at its own row or chunk. */
static void analyze_kernel(const Plan *p, const PStep *s, StepAccesses *t) {
    const LStmt *loop = s->extent ? parallel_loop(s->kernel) : NULL;
    if (!loop) return;
    const LStmt *chunk = chunk_loop(loop);
    t->by_chunk = chunk != NULL;
    t->rows = chunk ? chunk->extent : kernel_rows(p, s);
    if (!t->rows) return;
    AccessWalk w = {.outer = loop->var, .chunk = chunk ? chunk->var : NULL, .accesses = t};
    walk_list(&w, s->kernel->body);
    check_lengths(p, s, t);
    for (int i = 0; i < s->n_bufs; i++)
        if (t->written[i] && t->at[i] != (chunk ? AS_PARTIAL_SUM : AT_ROW)) t->rows = NULL;
}

/* ---- products ---------------------------------------------------------------------------- */
/* Whether a step of `stride` elements leads from row to row of the buffer. */
static bool has_row_stride(Arena *a, const PBuf *b, const Expr *rows, const Expr *stride) {
    return has_rows(&b->type) && expr_eq(b->type.dim[0]->size, rows) &&
           expr_eq(expr_mul(a, rows, stride), b->count);
}

/* Finds how a matrix product accesses its buffers. */
static void analyze_gemm(Arena *a, const Plan *p, const PStep *s, StepAccesses *t) {
    const PGemm *g = &s->gemm;
    const PBuf *x = p->bufs.v[s->bufs[0]], *y = p->bufs.v[s->bufs[1]], *z = p->bufs.v[s->bufs[2]];
    int64_t batch;
    if (!expr_is_const(g->batch, &batch) || batch != 1) return;
    const Expr *rows = g->long_k ? g->k : g->m;
    bool x_rows = has_row_stride(a, x, rows, g->long_k ? g->a_col : g->a_row);
    bool y_rows = g->long_k && has_row_stride(a, y, rows, g->b_row);
    bool z_rows = !g->long_k && has_row_stride(a, z, rows, g->c_row);
    if (g->long_k ? !x_rows || !y_rows : !z_rows) return;
    t->rows = rows;
    t->at[0] = x_rows ? AT_ROW : ANYWHERE;
    t->at[1] = y_rows ? AT_ROW : ANYWHERE;
    t->at[2] = z_rows ? AT_ROW : AS_PARTIAL_SUM;
}

StepAccesses plan_step_accesses_where_run(Arena *a, const Plan *p, const PStep *s) {
    StepAccesses t = {.at = NEWN(a, unsigned, (size_t)s->n_bufs + 1),
                      .written = NEWN(a, bool, (size_t)s->n_bufs + 1)};
    for (int i = 0; i < s->n_bufs; i++) t.written[i] = plan_step_writes_at(s, i);
    if (s->kind == PS_KERNEL) analyze_kernel(p, s, &t);
    if (s->kind == PS_GEMM) analyze_gemm(a, p, s, &t);
    return t;
}

StepAccesses plan_step_accesses(Arena *a, const Plan *p, const PStep *s) {
    StepAccesses t = plan_step_accesses_where_run(a, p, s);
    if (s->pred >= 0) t.rows = NULL;
    return t;
}
