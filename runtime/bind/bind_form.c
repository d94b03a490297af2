/* A matrix of features in the form that the program reads, stored entries or dense rows,
 * whichever of both the data hold.  Entries that are 0 are not stored; which form is read is the
 * program's choice (passes/density.c), so a model fits data of either kind. */
#include "bind.h"

static bool is_matrix(const RtColumn *c) {
    return c->rank == 2 && (c->kind == RT_COL_FLOAT || c->kind == RT_COL_CSR);
}

bool rt_form_fits(const rt_column *want, const RtColumn *have) {
    bool matrix = want->rank == 1 && (want->kind == RT_COL_FLOAT || want->kind == RT_COL_CSR);
    return want->kind == have->kind || (matrix && is_matrix(have));
}

int64_t rt_form_stored(const RtColumn *c) {
    if (c->kind == RT_COL_CSR) return c->csr.nnz;
    int64_t n = 0;
    for (int64_t i = 0; i < c->n_rows * c->shape[1]; i++) n += c->f32[i] != 0;
    return n;
}

size_t rt_form_bytes(rt_col_kind want, const RtColumn *c, int64_t nnz) {
    if (want == c->kind) return 0;
    if (want == RT_COL_FLOAT) return (size_t)c->n_rows * (size_t)c->csr.n_cols * sizeof(float);
    return (size_t)(c->n_rows + 1) * sizeof(int64_t) +
           (size_t)nnz * (sizeof(int32_t) + sizeof(float));
}

/* Makes a dense column of a sparse one; elements that are not stored are 0, as memory comes
 * zeroed. */
static gnnc_status to_rows(RtPool *pool, const RtColumn *c, RtColumn *out, RtError *err) {
    const RtCsr *m = &c->csr;
    float *x = rt_pool_alloc(pool, (size_t)c->n_rows, (size_t)m->n_cols * sizeof *x);
    if (!x) return rt_fail_nomem(err, c->name);
    for (int64_t r = 0; r < m->n_rows; r++)
        for (int64_t k = m->ptr[r]; k < m->ptr[r + 1]; k++)
            x[r * m->n_cols + m->col[k]] = m->val[k];
    out->kind = RT_COL_FLOAT;
    out->f32 = x;
    return GNNC_OK;
}

/* Makes a sparse column of a dense one, of the elements that are not 0. */
static gnnc_status to_entries(RtPool *pool, const RtColumn *c, RtColumn *out, RtError *err) {
    int64_t w = c->shape[1], nnz = rt_form_stored(c), k = 0;
    if (w > INT32_MAX || nnz > INT32_MAX)
        return rt_fail(err, GNNC_E_RANGE, "%s: more than 2^31 - 1 columns or stored entries",
                       c->name);
    int64_t *ptr = RT_NEWN(pool, int64_t, c->n_rows + 1);
    int32_t *col = RT_NEWN(pool, int32_t, nnz);
    float *val = RT_NEWN(pool, float, nnz);
    if (!ptr || !col || !val) return rt_fail_nomem(err, c->name);
    for (int64_t r = 0; r < c->n_rows; r++) {
        for (int64_t j = 0; j < w; j++)
            if (c->f32[r * w + j] != 0) col[k] = (int32_t)j, val[k++] = c->f32[r * w + j];
        ptr[r + 1] = k;
    }
    out->kind = RT_COL_CSR;
    out->f32 = NULL;
    out->csr = (RtCsr){c->n_rows, w, nnz, ptr, col, val};
    return GNNC_OK;
}

/* Converts a column to the form (sparse or dense) that is wanted. */
gnnc_status rt_form_column(RtPool *pool, rt_col_kind want, const RtColumn *c, RtColumn *out,
                           RtError *err) {
    *out = *c;
    out->beyond_memory = NULL;
    return want == RT_COL_CSR ? to_entries(pool, c, out, err) : to_rows(pool, c, out, err);
}
