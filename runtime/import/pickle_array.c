/* NumPy arrays and SciPy matrices out of unpickled values: what
 * numpy.ndarray.__setstate__ and csr_matrix.__dict__ hold. */
#include "pickle.h"

#include <stdlib.h>
#include <string.h>

static gnnc_status bad(const char *name, const char *what, RtError *err) {
    return rt_fail(err, GNNC_E_FORMAT, "%s: %s", name, what);
}

static bool text_is(const RtPy *v, const char *s) {
    return v && v->kind == RT_PY_STRING && v->s.n == strlen(s) && memcmp(v->s.p, s, v->s.n) == 0;
}

/* The last part of "module name", so that numpy.core and numpy._core agree. */
static bool global_ends(const RtPy *v, const char *name) {
    size_t n = strlen(name);
    return v && v->kind == RT_PY_GLOBAL && v->s.n > n && memcmp(v->s.p + v->s.n - n, name, n) == 0;
}

/* The value of a dictionary's key; NULL: it has none. */
static const RtPy *dict_get(const RtPy *d, const char *key) {
    for (int64_t i = 0; d && d->kind == RT_PY_DICT && i + 1 < d->n; i += 2)
        if (text_is(d->v[i], key)) return d->v[i + 1];
    return NULL;
}

/* dtype('i4', ..) with state (3, '<', ..) */
static bool read_dtype(const RtPy *v, RtDtype *dt) {
    if (!v || v->kind != RT_PY_OBJECT || !global_ends(v->callee, " dtype") || v->args->n < 1)
        return false;
    const RtPy *state = v->state;
    if (state && state->kind == RT_PY_TUPLE && state->n > 1 && text_is(state->v[1], ">"))
        return false;
    for (int i = 0; i < RT_N_DT; i++) {
        *dt = (RtDtype)i;
        if (rt_dtype_npy(*dt) && text_is(v->args->v[0], rt_dtype_npy(*dt) + 1)) return true;
    }
    return false;
}

/* Reads an array's shape; false: it is none. */
static bool read_shape(const RtPy *v, RtArray *a) {
    if (!v || v->kind != RT_PY_TUPLE || v->n > RT_ARRAY_RANK) return false;
    for (a->rank = 0; a->rank < v->n; a->rank++) {
        if (v->v[a->rank]->kind != RT_PY_INT || v->v[a->rank]->i < 0) return false;
        a->shape[a->rank] = v->v[a->rank]->i;
    }
    return true;
}

/* The four parts of an array in either form:
 *   _reconstruct(..) with state (version, shape, dtype, fortran, bytes)
 *   _frombuffer(bytes, dtype, shape, order), protocol 5 */
static bool find_parts(const RtPy *v, const RtPy **shape, const RtPy **dtype, const RtPy **bytes,
                       bool *fortran) {
    if (!v || v->kind != RT_PY_OBJECT) return false;
    const RtPy *s = v->state;
    if (global_ends(v->callee, " _reconstruct") && s && s->kind == RT_PY_TUPLE && s->n == 5) {
        *shape = s->v[1], *dtype = s->v[2], *bytes = s->v[4];
        return *fortran = s->v[3]->i != 0, (*bytes)->kind == RT_PY_STRING;
    }
    s = v->args;
    if (!global_ends(v->callee, " _frombuffer") || s->n != 4) return false;
    *bytes = s->v[0], *dtype = s->v[1], *shape = s->v[2];
    return *fortran = text_is(s->v[3], "F"), (*bytes)->kind == RT_PY_STRING;
}

gnnc_status rt_pickle_array(RtPool *pool, const RtPy *v, const char *name, RtArray *out,
                            RtError *err) {
    const RtPy *shape, *dtype, *bytes;
    RtArray a = {0};
    size_t n;
    if (!find_parts(v, &shape, &dtype, &bytes, &a.fortran))
        return bad(name, "a NumPy array is expected", err);
    if (!read_dtype(dtype, &a.dt)) return bad(name, "element type is not supported", err);
    if (!read_shape(shape, &a) || !rt_array_bytes(&a, &n) || n != bytes->s.n)
        return bad(name, "an array's shape does not fit its bytes", err);
    void *copy = rt_pool_alloc(pool, n, 1); /* aligned, and free of the file */
    if (!copy) return rt_fail_nomem(err, name);
    if (n) memcpy(copy, bytes->s.p, n);
    a.data = copy;
    if (a.rank < 2) a.fortran = false;
    *out = a;
    return GNNC_OK;
}

typedef struct {
    int32_t col;
    float val;
} Entry;

static int by_col(const void *x, const void *y) {
    const Entry *a = x, *b = y;
    return (a->col > b->col) - (a->col < b->col);
}

/* SciPy does not promise sorted rows. */
static bool sort_rows(RtPool *pool, RtCsr *m) {
    Entry *e = RT_NEWN(pool, Entry, m->nnz);
    int32_t *col = RT_NEWN(pool, int32_t, m->nnz);
    float *val = RT_NEWN(pool, float, m->nnz);
    if (!e || !col || !val) return false;
    for (int64_t i = 0; i < m->nnz; i++) e[i] = (Entry){m->col[i], m->val[i]};
    for (int64_t r = 0; r < m->n_rows; r++)
        qsort(e + m->ptr[r], (size_t)(m->ptr[r + 1] - m->ptr[r]), sizeof *e, by_col);
    for (int64_t i = 0; i < m->nnz; i++) col[i] = e[i].col, val[i] = e[i].val;
    m->col = col;
    m->val = val;
    return true;
}

/* Are the bounds and columns of the sparse matrix sound? */
static bool rows_fit(const RtCsr *m) {
    if (m->ptr[0] != 0 || m->ptr[m->n_rows] != m->nnz) return false;
    for (int64_t r = 0; r < m->n_rows; r++)
        if (m->ptr[r + 1] < m->ptr[r]) return false;
    for (int64_t i = 0; i < m->nnz; i++)
        if (m->col[i] < 0 || m->col[i] >= m->n_cols) return false;
    return true;
}

gnnc_status rt_pickle_csr(RtPool *pool, const RtPy *v, const char *name, RtCsr *out, RtError *err) {
    RtArray ptr, col, val, size = {0};
    gnnc_status st;
    if (!v || v->kind != RT_PY_OBJECT || !global_ends(v->callee, " csr_matrix") || !v->state)
        return bad(name, "a SciPy csr_matrix is expected", err);
    const RtPy *shape = dict_get(v->state, "_shape");
    if (!shape) shape = dict_get(v->state, "shape");
    if (!read_shape(shape, &size) || size.rank != 2)
        return bad(name, "the matrix has no shape", err);
    TRY(st, rt_pickle_array(pool, dict_get(v->state, "indptr"), name, &ptr, err));
    TRY(st, rt_pickle_array(pool, dict_get(v->state, "indices"), name, &col, err));
    TRY(st, rt_pickle_array(pool, dict_get(v->state, "data"), name, &val, err));
    if (size.shape[0] > INT32_MAX || size.shape[1] > INT32_MAX || ptr.count != size.shape[0] + 1 ||
        col.count != val.count)
        return bad(name, "the matrix's arrays do not fit each other", err);
    *out = (RtCsr){.n_rows = size.shape[0], .n_cols = size.shape[1], .nnz = col.count};
    TRY(st, rt_array_as_i32(pool, &col, name, &out->col, err));
    out->ptr = rt_array_as_i64(pool, &ptr);
    out->val = rt_array_as_f32(pool, &val);
    if (!out->ptr || !out->val) return rt_fail_nomem(err, name);
    if (!rows_fit(out)) return bad(name, "the matrix's indices are out of range", err);
    if (!sort_rows(pool, out)) st = rt_fail_nomem(err, name);
out:
    return st;
}
