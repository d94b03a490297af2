/* Phases over mini-batches that a device may record for rounded sizes ("buckets").
 *
 * A recording is of one size, batches are of many.  So a step is recorded for sizes that are
 * rounded up: buffers, grids and matrix products have the rounded ones, and kernels read the
 * batch's own from the device, where they lie beside what the batch brings.  Rows behind the
 * batch's own are then touched by matrix products alone: as rows of a product they make rows that
 * nobody reads; as rows that are summed over (long_k) they have to be zeros, which `clear-tails`
 * (plan_clear.c) has written before it.  It may only write where nothing is: an operand can be the
 * first rows of a larger value. */
#include "codegen/lower/lower.h"

#include <string.h>

/* Whether the size differs from batch to batch. */
static bool varies_by_batch(const Module *m, const Expr *e) {
    if (e->kind == EX_CONST) return false;
    if (e->kind == EX_SYM) return e->sym->of && space_varies(m, e->sym->of);
    return varies_by_batch(m, e->a) || varies_by_batch(m, e->b);
}

/* The number of rows of the operand's buffer that hold values; NULL: it is not known. */
static const Expr *valid_rows(Arena *a, const PBuf *b, const Expr *others, const Expr *k,
                              const Expr *stride) {
    if (b->kind != PB_TEMP && b->kind != PB_DATA) return NULL;
    if (expr_eq(b->count, expr_mul(a, others, k))) return k;
    if (!b->type.rank) return NULL;
    const Expr *rows = b->type.dim[0]->size;
    return expr_eq(b->count, expr_mul(a, rows, stride)) ? rows : NULL;
}

bool plan_padded_operands(Arena *a, const Plan *p, const PStep *s, PPaddedOperand out[2]) {
    const PGemm *g = &s->gemm;
    if (s->kind != PS_GEMM || !varies_by_batch(p->m, g->k)) return false;
    const Expr *const others[] = {g->m, g->n}, *const row[] = {g->a_row, g->b_col},
                      *const step[] = {g->a_col, g->b_row},
                      *const batch[] = {g->a_batch, g->b_batch};
    for (int i = 0; i < 2; i++) {
        const Expr *rest = expr_mul(a, g->batch, others[i]);
        out[i] = (PPaddedOperand){.buf = s->bufs[i],
                                  .n = others[i],
                                  .batch = batch[i],
                                  .row = row[i],
                                  .step = step[i],
                                  .valid_rows =
                                      valid_rows(a, p->bufs.v[s->bufs[i]], rest, g->k, step[i])};
    }
    return true;
}

/* Why a product cannot be done on rounded sizes; NULL: it can. */
static const char *product_obstacle(Arena *a, const Plan *p, const PStep *s, bool cleared) {
    const PGemm *g = &s->gemm;
    const Expr *const same[] = {g->batch,   g->n,     g->a_batch, g->a_row,   g->a_col,
                                g->b_batch, g->b_row, g->b_col,   g->c_batch, g->c_row};
    PPaddedOperand operands[2];
    for (size_t i = 0; i < COUNT(same); i++)
        if (varies_by_batch(p->m, same[i]))
            return "a product's columns are as many as a batch has rows";
    if (!plan_padded_operands(a, p, s, operands)) return NULL;
    bool known = operands[0].valid_rows && operands[1].valid_rows &&
                 (expr_eq(operands[0].valid_rows, g->k) || expr_eq(operands[1].valid_rows, g->k));
    if (!known) return "a product sums over rows of a batch that do not stand alone";
    return s->clear || !cleared ? NULL : "'clear-tails' has not run";
}

/* Why a copy cannot; it can if there is space for the padding rows. */
static const char *copy_obstacle(const Plan *p, const PStep *s) {
    const PBuf *from = p->bufs.v[s->bufs[0]], *to = p->bufs.v[s->bufs[1]];
    bool has_space = (from->kind == PB_TEMP || from->kind == PB_DATA) && to->kind == PB_TEMP;
    return has_space || !varies_by_batch(p->m, from->count) ? NULL : "rows of a batch are copied";
}

/* Why a step cannot be done on rounded sizes; NULL: it can. */
static const char *step_obstacle(Arena *a, const Plan *p, const PStep *s, bool cleared) {
    switch (s->kind) {
    case PS_KERNEL:
        return NULL;
    case PS_GEMM:
        return product_obstacle(a, p, s, cleared);
    case PS_COPY:
        return copy_obstacle(p, s);
    case PS_LOOP:
        return s->limit ? NULL : "the host reads the condition of a 'while' without 'limit'";
    case PS_END:
        return NULL;
    case PS_RANK:
        return "ranks would count rows behind the batch's own";
    case PS_CALL:
        return "a C function would be called with rounded sizes";
    case PS_RELATION:
    case PS_PRINT:
    case PS_ASSERT:
    case PS_EXCHANGE:
        break;
    }
    return "the host takes part";
}

/* The first step of the phase that a device cannot run for rounded sizes, with the reason in *why;
 * NULL: there is none. cleared: a product whose padding rows no kernel clears is such a step, too;
 * these are looked for last. */
const PStep *plan_bucket_obstacle(Arena *a, const Plan *p, const PPhase *ph, bool cleared,
                                  const char **why) {
    for (int i = 0; i < ph->steps.n; i++)
        if ((*why = step_obstacle(a, p, ph->steps.v[i], false))) return ph->steps.v[i];
    for (int i = 0; i < ph->steps.n && cleared; i++) /* what a pass gives is said last */
        if ((*why = step_obstacle(a, p, ph->steps.v[i], true))) return ph->steps.v[i];
    return NULL;
}

/* Whether the phase trains on batches. */
bool plan_trains_on_batches(const Plan *p, const PPhase *ph) {
    return p->m->recipe.sample.batch && ph->func->phase == PHASE_TRAIN;
}

/* Whether a device may record the phase for rounded sizes. */
bool plan_has_buckets(Arena *a, const Plan *p, const PPhase *ph) {
    const char *why;
    return plan_trains_on_batches(p, ph) && !plan_bucket_obstacle(a, p, ph, true, &why);
}
