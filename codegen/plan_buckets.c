/* Phases over mini-batches that a device may record for rounded sizes ("buckets").
 *
 * A recording is of one size, batches are of many.  So a step is recorded for sizes that are
 * rounded up: buffers, grids and matrix products have the rounded ones, and kernels read the
 * batch's own from the device, where they lie beside what the batch brings.  Rows behind the
 * batch's own are then touched by matrix products alone: as rows of a product they make rows that
 * nobody reads; as rows that are summed over (long_k) they have to be zeros, which step "tail"
 * writes before it.  It may only write where nothing is: an operand can be the first rows of a
 * larger value. */
#include "codegen/lower.h"

#include <string.h>

/* Is it the size of rows or edges, which each batch has its own of? */
static bool is_rows(const Module *m, const Sym *sym) {
    for (int i = 0; i < m->spaces.n; i++) {
        const Space *s = m->spaces.v[i];
        if (s->kind != SP_DIM && s->size->kind == EX_SYM && s->size->sym == sym) return true;
    }
    return false;
}

static bool varies(const Module *m, const Expr *e) {
    if (e->kind == EX_CONST) return false;
    if (e->kind == EX_SYM) return is_rows(m, e->sym);
    return varies(m, e->a) || varies(m, e->b);
}

/* Rows of k that the operand's buffer holds; NULL: they cannot be told. */
static const Expr *own_rows(Arena *a, const PBuf *b, const Expr *others, const Expr *k,
                            const Expr *stride) {
    if (b->kind != PB_TEMP && b->kind != PB_DATA) return NULL;
    if (expr_eq(b->count, expr_mul(a, others, k))) return k;
    if (!b->type.rank) return NULL;
    const Expr *rows = b->type.dim[0]->size;
    return expr_eq(b->count, expr_mul(a, rows, stride)) ? rows : NULL;
}

bool plan_tails(Arena *a, const Plan *p, const PStep *s, PTail out[2]) {
    const PGemm *g = &s->gemm;
    if (s->kind != PS_GEMM || !varies(p->m, g->k)) return false;
    const Expr *const others[] = {g->m, g->n}, *const row[] = {g->a_row, g->b_col},
                      *const step[] = {g->a_col, g->b_row},
                      *const batch[] = {g->a_batch, g->b_batch};
    for (int i = 0; i < 2; i++) {
        const Expr *rest = expr_mul(a, g->batch, others[i]);
        out[i] = (PTail){.buf = s->bufs[i],
                         .n = others[i],
                         .batch = batch[i],
                         .row = row[i],
                         .step = step[i],
                         .own = own_rows(a, p->bufs.v[s->bufs[i]], rest, g->k, step[i])};
    }
    return true;
}

static bool product_fits(Arena *a, const Plan *p, const PStep *s) {
    const PGemm *g = &s->gemm;
    const Expr *const same[] = {g->batch,   g->n,     g->a_batch, g->a_row,   g->a_col,
                                g->b_batch, g->b_row, g->b_col,   g->c_batch, g->c_row};
    PTail t[2];
    for (size_t i = 0; i < COUNT(same); i++)
        if (varies(p->m, same[i])) return false;
    if (!plan_tails(a, p, s, t)) return true;
    return t[0].own && t[1].own && (expr_eq(t[0].own, g->k) || expr_eq(t[1].own, g->k));
}

bool plan_has_buckets(Arena *a, const Plan *p, const PPhase *ph) {
    const Sampling *sample = &p->m->recipe.sample;
    if (!sample->batch || sample->train_links || strcmp(ph->name, "train")) return false;
    for (int i = 0; i < ph->steps.n; i++) {
        const PStep *s = ph->steps.v[i];
        bool fits = s->kind == PS_KERNEL || (s->kind == PS_GEMM && product_fits(a, p, s)) ||
                    (s->kind == PS_COPY && !varies(p->m, p->bufs.v[s->bufs[0]]->count));
        if (!fits) return false;
    }
    return true;
}

const char *plan_tail_name(Arena *a, const Plan *p, const PPhase *ph, int step) {
    return arena_printf(a, "%s_%s_tail_%d", cg_ident(a, p->m->name), cg_ident(a, ph->name), step);
}
