/* Arrays of the caller: checked, made row-major, kept or converted.  What is kept is read where it
 * lies; kernels count on RT_ALIGN, so that what begins elsewhere is copied. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "graph.h"

#define RT_DTYPE(id, npy, st, bytes, kind)                                                         \
    _Static_assert((int)GNNC_DT_##id == (int)RT_DT_##id + 1, #id);
RT_DTYPE_MAP(RT_DTYPE)
#undef RT_DTYPE
_Static_assert((int)GNNC_ALIGN == (int)RT_ALIGN, "what kernels count on");
_Static_assert((int)GNNC_MAX_RANK == (int)RT_ARRAY_RANK, "dimensions of an array");
_Static_assert(sizeof(gnnc_array) == 176, "a published struct");

void rt_borrowed_begin(RtBorrowed *x, const gnnc_graph *g, const gnnc_array *in,
                       const char *where) {
    *x = (RtBorrowed){.where = where ? where : ""};
    rt_pool_init(&x->scratch, g ? &g->from : NULL);
    if (!in || in->struct_size != sizeof *in) return;
    x->in = *in;
    x->is_given = true;
}

void rt_borrowed_end(gnnc_graph *g, RtBorrowed *x, gnnc_status st) {
    rt_pool_free(&x->scratch);
    if (st == GNNC_OK && x->loan) {
        *x->loan = (RtLoan){g->loans, x->in.done, x->in.user, x->table};
        g->loans = x->loan;
    } else if (x->in.done) {
        x->in.done(x->in.user);
    }
}

/* ---- what there is ---------------------------------------------------------------- */
/* Row by row without gaps?  Dimensions of one index have no stride that matters. */
static bool is_packed(const gnnc_array *in, const RtArray *a) {
    int64_t step = (int64_t)rt_dtype_bytes(a->dt);
    for (int i = a->rank - 1; i >= 0; i--) {
        if (a->shape[i] != 1 && in->stride[i] != step) return false;
        step *= a->shape[i];
    }
    return true;
}

/* Elements in row-major order, one after the other. */
static void gather(char *to, const gnnc_array *in, const RtArray *a) {
    size_t size = rt_dtype_bytes(a->dt);
    int64_t at[RT_ARRAY_RANK] = {0}, offset = 0;
    for (int64_t i = 0; i < a->count; i++) {
        memcpy(to + (size_t)i * size, (const char *)in->data + offset, size);
        for (int d = a->rank - 1; d >= 0; d--) {
            offset += in->stride[d];
            if (++at[d] < a->shape[d]) break;
            offset -= in->stride[d] * a->shape[d];
            at[d] = 0;
        }
    }
}

static gnnc_status bad_struct(gnnc_graph *g, const RtBorrowed *x) {
    return rt_fail(&g->err, GNNC_E_ARG, "%s: no array was given, or its struct_size is not %zu",
                   x->where, sizeof(gnnc_array));
}

/* Checks the caller's array, without a look at its elements; *n_bytes: all of them. */
static gnnc_status read_struct(gnnc_graph *g, RtBorrowed *x, size_t *n_bytes) {
    const gnnc_array *in = &x->in;
    if (!x->is_given) return bad_struct(g, x);
    if (in->dtype < 1 || in->dtype > RT_N_DT)
        return rt_fail(&g->err, GNNC_E_DTYPE, "%s: %d is no element type", x->where, in->dtype);
    if (in->rank < 1 || in->rank > GNNC_MAX_RANK)
        return rt_fail(&g->err, GNNC_E_SHAPE, "%s: rank %d: 1 to %d are possible", x->where,
                       in->rank, GNNC_MAX_RANK);
    x->a = (RtArray){.dt = (RtDtype)(in->dtype - 1), .rank = in->rank, .data = in->data};
    memcpy(x->a.shape, in->shape, (size_t)in->rank * sizeof *in->shape);
    if (!rt_array_bytes(&x->a, n_bytes))
        return rt_fail(&g->err, GNNC_E_SHAPE, "%s: a size is negative, or all is too large",
                       x->where);
    if (!in->data && x->a.count)
        return rt_fail(&g->err, GNNC_E_ARG, "%s: the array's data are NULL", x->where);
    return GNNC_OK;
}

gnnc_status rt_borrowed_to_host(gnnc_graph *g, RtBorrowed *x) {
    size_t n_bytes;
    gnnc_status st = read_struct(g, x, &n_bytes);
    if (st != GNNC_OK) return st;
    if (x->a.dt != RT_DT_F32)
        return rt_fail(&g->err, GNNC_E_DTYPE, "%s: %s in a device's memory: f32 is read there",
                       x->where, rt_dtype_name(x->a.dt));
    if (x->in.strided && !is_packed(&x->in, &x->a))
        return rt_fail(&g->err, GNNC_E_SHAPE,
                       "%s: in a device's memory elements must lie row by row without gaps",
                       x->where);
    x->loan = RT_NEW(&g->data->pool, RtLoan);
    return x->loan ? GNNC_OK : rt_fail_nomem(&g->err, x->where);
}

gnnc_status rt_borrowed_open(gnnc_graph *g, RtBorrowed *x) {
    const gnnc_array *in = &x->in;
    size_t n_bytes;
    gnnc_status st = read_struct(g, x, &n_bytes);
    if (st != GNNC_OK) return st;
    bool packed = !in->strided || is_packed(in, &x->a);
    x->is_callers = packed && (uintptr_t)in->data % rt_dtype_bytes(x->a.dt) == 0 && in->data;
    if (x->is_callers) return GNNC_OK;
    char *to = rt_pool_alloc(&x->scratch, n_bytes, 1);
    if (!to) return rt_fail_nomem(&g->err, x->where);
    x->a.data = to;
    if (!packed)
        gather(to, in, &x->a);
    else if (n_bytes)
        memcpy(to, in->data, n_bytes);
    return GNNC_OK;
}

gnnc_status rt_borrowed_shape(gnnc_graph *g, const RtBorrowed *x, int rank, const int64_t *shape) {
    const RtArray *a = &x->a;
    if (a->rank != rank)
        return rt_fail(&g->err, GNNC_E_SHAPE, "%s: %d dimensions, %d wanted", x->where, a->rank,
                       rank);
    for (int i = 0; i < rank; i++)
        if (shape[i] >= 0 && a->shape[i] != shape[i])
            return rt_fail(&g->err, GNNC_E_SHAPE, "%s: size %lld in dimension %d, %lld wanted",
                           x->where, (long long)a->shape[i], i, (long long)shape[i]);
    return GNNC_OK;
}

/* Fails unless the array holds integers. */
gnnc_status rt_borrowed_integers(gnnc_graph *g, const RtBorrowed *x) {
    if (rt_dtype_kind(x->a.dt) != 'f') return GNNC_OK;
    return rt_fail(&g->err, GNNC_E_DTYPE, "%s: holds %s, integers wanted", x->where,
                   rt_dtype_name(x->a.dt));
}

/* ---- what becomes of it -------------------------------------------------------------- */
gnnc_status rt_borrowed_keep(gnnc_graph *g, RtBorrowed *x, size_t align, const void **out) {
    RtPool *pool = &g->data->pool;
    size_t size = rt_dtype_bytes(x->a.dt);
    if (x->is_callers && x->in.borrowed && (uintptr_t)x->a.data % align == 0) {
        if (!(x->loan = RT_NEW(pool, RtLoan))) return rt_fail_nomem(&g->err, x->where);
        *out = x->a.data;
        return GNNC_OK;
    }
    void *to = rt_pool_alloc(pool, (size_t)x->a.count, size);
    if (!to) return rt_fail_nomem(&g->err, x->where);
    if (x->a.count) memcpy(to, x->a.data, (size_t)x->a.count * size);
    *out = to;
    return GNNC_OK;
}

int64_t rt_borrowed_row(const RtBorrowed *x, int64_t element) {
    return x->a.shape[0] ? element / (x->a.count / x->a.shape[0]) : 0;
}

/* Fails: the wanted type has no place for element i. */
static gnnc_status beyond(gnnc_graph *g, const RtBorrowed *x, int64_t i, const char *type) {
    bool real = rt_dtype_kind(x->a.dt) == 'f';
    long long row = (long long)rt_borrowed_row(x, i);
    if (real)
        return rt_fail(&g->err, GNNC_E_RANGE, "%s: row %lld: %g is beyond %s", x->where, row,
                       rt_array_f64(&x->a, i), type);
    return rt_fail(&g->err, GNNC_E_RANGE, "%s: row %lld: %lld is beyond %s", x->where, row,
                   (long long)rt_array_i64(&x->a, i), type);
}

gnnc_status rt_borrowed_f32(gnnc_graph *g, RtBorrowed *x, const float **out) {
    const void *p;
    if (x->a.dt == RT_DT_F32) {
        gnnc_status st = rt_borrowed_keep(g, x, RT_ALIGN, &p);
        *out = p;
        return st;
    }
    float *to = RT_NEWN(&g->data->pool, float, x->a.count);
    if (!to) return rt_fail_nomem(&g->err, x->where);
    for (int64_t i = 0; i < x->a.count; i++) {
        double v = rt_array_f64(&x->a, i);
        to[i] = (float)v;
        if (isinf(to[i]) && !isinf(v)) return beyond(g, x, i, "f32");
    }
    *out = to;
    return GNNC_OK;
}

/* The array as f64: itself if it is that, else a copy that the graph owns. */
gnnc_status rt_borrowed_f64(gnnc_graph *g, RtBorrowed *x, const double **out) {
    const void *p;
    if (x->a.dt == RT_DT_F64) {
        gnnc_status st = rt_borrowed_keep(g, x, RT_ALIGN, &p);
        *out = p;
        return st;
    }
    double *to = RT_NEWN(&g->data->pool, double, x->a.count);
    if (!to) return rt_fail_nomem(&g->err, x->where);
    for (int64_t i = 0; i < x->a.count; i++) to[i] = rt_array_f64(&x->a, i);
    *out = to;
    return GNNC_OK;
}

/* The array as i64: itself if it is that, else a copy that the graph owns. */
gnnc_status rt_borrowed_i64(gnnc_graph *g, RtBorrowed *x, const int64_t **out) {
    const void *p;
    gnnc_status st = rt_borrowed_integers(g, x);
    if (st != GNNC_OK) return st;
    if (x->a.dt == RT_DT_I64) {
        st = rt_borrowed_keep(g, x, RT_ALIGN, &p);
        *out = p;
        return st;
    }
    int64_t *to = RT_NEWN(&g->data->pool, int64_t, x->a.count);
    if (!to) return rt_fail_nomem(&g->err, x->where);
    for (int64_t i = 0; i < x->a.count; i++) {
        to[i] = rt_array_i64(&x->a, i);
        if (x->a.dt == RT_DT_U64 && ((const uint64_t *)x->a.data)[i] > INT64_MAX)
            return beyond(g, x, i, "i64");
    }
    *out = to;
    return GNNC_OK;
}

/* Integers of at most 32 bits. */
static gnnc_status as_integers(gnnc_graph *g, RtBorrowed *x, RtDtype dt, const void **out) {
    char type[] = {rt_dtype_kind(dt) == 'u' ? 'u' : 'i', '\0', '\0', '\0'};
    gnnc_status st = rt_borrowed_integers(g, x);
    if (st != GNNC_OK) return st;
    void *to = rt_pool_alloc(&g->data->pool, (size_t)x->a.count, rt_dtype_bytes(dt));
    if (!to) return rt_fail_nomem(&g->err, x->where);
    snprintf(type + 1, sizeof type - 1, "%d", (int)rt_dtype_bytes(dt) * 8);
    for (int64_t i = 0; i < x->a.count; i++)
        if (!rt_integer_put(dt, to, i, rt_array_i64(&x->a, i))) return beyond(g, x, i, type);
    *out = to;
    return GNNC_OK;
}

/* The array as i32: itself if it is that, and aligned, else a copy that the graph owns. */
gnnc_status rt_borrowed_i32(gnnc_graph *g, RtBorrowed *x, size_t align, const int32_t **out) {
    const void *p;
    gnnc_status st =
        x->a.dt == RT_DT_I32 ? rt_borrowed_keep(g, x, align, &p) : as_integers(g, x, RT_DT_I32, &p);
    if (st == GNNC_OK) *out = p;
    return st;
}

/* The array as type dt: itself if it is that, else a copy that the graph owns. */
gnnc_status rt_borrowed_as(gnnc_graph *g, RtBorrowed *x, RtDtype dt, const void **out) {
    const float *f32 = NULL;
    const double *f64 = NULL;
    const int64_t *i64 = NULL;
    gnnc_status st;
    if (x->a.dt == dt) return rt_borrowed_keep(g, x, RT_ALIGN, out);
    switch (dt) {
    case RT_DT_F32:
        st = rt_borrowed_f32(g, x, &f32);
        *out = f32;
        return st;
    case RT_DT_F64:
        st = rt_borrowed_f64(g, x, &f64);
        *out = f64;
        return st;
    case RT_DT_I64:
        st = rt_borrowed_i64(g, x, &i64);
        *out = i64;
        return st;
    default:
        return as_integers(g, x, dt, out);
    }
}
