/* Element types and conversions between them. */
#include "npy.h"

#include <math.h>
#include <string.h>

typedef struct {
    const char *npy, *name;
    size_t bytes;
    char kind;
} DtypeInfo;

static const DtypeInfo infos[RT_N_DT] = {
#define INFO(id, npy, st, bytes, kind) [RT_DT_##id] = {npy, st, bytes, kind},
    RT_DTYPE_MAP(INFO)
#undef INFO
};

const char *rt_dtype_npy(RtDtype dt) {
    return infos[dt].npy;
}
const char *rt_dtype_name(RtDtype dt) {
    return infos[dt].name;
}
size_t rt_dtype_bytes(RtDtype dt) {
    return infos[dt].bytes;
}
char rt_dtype_kind(RtDtype dt) {
    return infos[dt].kind;
}

bool rt_array_bytes(RtArray *a, size_t *n_bytes) {
    if (a->rank < 0 || a->rank > RT_ARRAY_RANK) return false;
    int64_t count = 1;
    bool empty = false, over = false;
    for (int i = 0; i < a->rank; i++) {
        if (a->shape[i] < 0) return false;
        if (a->shape[i] == 0) empty = true;
        over = over || __builtin_mul_overflow(count, a->shape[i], &count);
    }
    if (empty) count = 0;
    if (over && !empty) return false;
    a->count = count;
    return !__builtin_mul_overflow((size_t)count, rt_dtype_bytes(a->dt), n_bytes);
}

/* The number that the bits are of. */
static float bits_f32(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

float rt_bf16_to_f32(uint16_t bits) {
    return bits_f32((uint32_t)bits << 16);
}

float rt_f16_to_f32(uint16_t bits) {
    uint32_t sign = (uint32_t)(bits & 0x8000u) << 16;
    int e = bits >> 10 & 31;
    uint32_t m = bits & 1023u;
    if (e == 31) return bits_f32(sign | 0x7f800000u | m << 13);
    if (e > 0) return bits_f32(sign | (uint32_t)(e + 112) << 23 | m << 13);
    float tiny = ldexpf((float)m, -24); /* subnormal or zero */
    return sign ? -tiny : tiny;
}

#define AT(T) (((const T *)a->data)[i])

double rt_array_f64(const RtArray *a, int64_t i) {
    switch (a->dt) {
    case RT_DT_F16:
        return rt_f16_to_f32(AT(uint16_t));
    case RT_DT_BF16:
        return rt_bf16_to_f32(AT(uint16_t));
    case RT_DT_F32:
        return AT(float);
    case RT_DT_F64:
        return AT(double);
    case RT_DT_U64:
        return (double)AT(uint64_t);
    default:
        return (double)rt_array_i64(a, i);
    }
}

/* Rounds toward 0 to i64; what is beyond gets the nearest, NaN the least. */
static int64_t i64_from_f64(double x) {
    if (isnan(x)) return INT64_MIN;
    if (x >= 0x1p63) return INT64_MAX;
    return x <= -0x1p63 ? INT64_MIN : (int64_t)x;
}

int64_t rt_array_i64(const RtArray *a, int64_t i) {
    switch (a->dt) {
    case RT_DT_I8:
        return AT(int8_t);
    case RT_DT_I16:
        return AT(int16_t);
    case RT_DT_I32:
        return AT(int32_t);
    case RT_DT_I64:
        return AT(int64_t);
    case RT_DT_U8:
        return AT(uint8_t);
    case RT_DT_U16:
        return AT(uint16_t);
    case RT_DT_U32:
        return AT(uint32_t);
    case RT_DT_U64:
        return AT(uint64_t) > INT64_MAX ? INT64_MAX : (int64_t)AT(uint64_t);
    case RT_DT_BOOL:
        return AT(uint8_t) != 0;
    default:
        return i64_from_f64(rt_array_f64(a, i));
    }
}
#undef AT

/* Storage position of the row-major element i of a column-major array. */
static int64_t fortran_position(const RtArray *a, int64_t i) {
    int64_t index[RT_ARRAY_RANK], pos = 0;
    for (int d = a->rank - 1; d >= 0; d--) index[d] = i % a->shape[d], i /= a->shape[d];
    for (int d = a->rank - 1; d >= 0; d--) pos = pos * a->shape[d] + index[d];
    return pos;
}

RtArray rt_array_row_major(RtPool *pool, const RtArray *a) {
    RtArray r = *a;
    if (!a->fortran) return r;
    size_t size = rt_dtype_bytes(a->dt);
    char *to = rt_pool_alloc(pool, (size_t)a->count, size);
    r.data = to;
    r.fortran = false;
    for (int64_t i = 0; to && i < a->count; i++)
        memcpy(to + (size_t)i * size, (const char *)a->data + (size_t)fortran_position(a, i) * size,
               size);
    return r;
}

const float *rt_array_as_f32(RtPool *pool, const RtArray *a) {
    RtArray r = rt_array_row_major(pool, a);
    if (!r.data || r.dt == RT_DT_F32) return r.data;
    float *to = RT_NEWN(pool, float, r.count);
    for (int64_t i = 0; to && i < r.count; i++) to[i] = (float)rt_array_f64(&r, i);
    return to;
}

/* The array as f64, row by row; NULL: no memory. */
const double *rt_array_as_f64(RtPool *pool, const RtArray *a) {
    RtArray r = rt_array_row_major(pool, a);
    if (!r.data || r.dt == RT_DT_F64) return r.data;
    double *to = RT_NEWN(pool, double, r.count);
    for (int64_t i = 0; to && i < r.count; i++) to[i] = rt_array_f64(&r, i);
    return to;
}

const int64_t *rt_array_as_i64(RtPool *pool, const RtArray *a) {
    RtArray r = rt_array_row_major(pool, a);
    if (!r.data || r.dt == RT_DT_I64) return r.data;
    int64_t *to = RT_NEWN(pool, int64_t, r.count);
    for (int64_t i = 0; to && i < r.count; i++) to[i] = rt_array_i64(&r, i);
    return to;
}

bool rt_integer_put(RtDtype dt, void *to, int64_t i, int64_t v) {
    size_t bytes = rt_dtype_bytes(dt);
    int bits = (int)bytes * 8;
    bool is_unsigned = rt_dtype_kind(dt) == 'u';
    int64_t most = ((int64_t)1 << (is_unsigned ? bits : bits - 1)) - 1;
    memcpy((char *)to + (size_t)i * bytes, &v, bytes); /* little endian, as the files */
    return v <= most && v >= (is_unsigned ? 0 : -most - 1);
}

/* The array, row by row, as integers of type dt; fails where a number does not fit. */
static gnnc_status as_integers(RtPool *pool, const RtArray *a, RtDtype dt, const char *name,
                               const void **out, RtError *err) {
    RtArray r = rt_array_row_major(pool, a);
    if (rt_dtype_kind(r.dt) == 'f')
        return rt_fail(err, GNNC_E_DTYPE, "%s: holds %s, integers wanted", name,
                       rt_dtype_name(r.dt));
    if (!r.data) return rt_fail_nomem(err, name);
    *out = r.data;
    if (r.dt == dt) return GNNC_OK;
    void *to = rt_pool_alloc(pool, (size_t)r.count, rt_dtype_bytes(dt));
    if (!to) return rt_fail_nomem(err, name);
    for (int64_t i = 0; i < r.count; i++) {
        int64_t v = rt_array_i64(&r, i);
        if (!rt_integer_put(dt, to, i, v))
            return rt_fail(err, GNNC_E_RANGE, "%s: element %lld is %lld, beyond %s%d bits", name,
                           (long long)i, (long long)v, rt_dtype_kind(dt) == 'u' ? "unsigned " : "",
                           (int)rt_dtype_bytes(dt) * 8);
    }
    *out = to;
    return GNNC_OK;
}

gnnc_status rt_array_as_i32(RtPool *pool, const RtArray *a, const char *name, const int32_t **out,
                            RtError *err) {
    const void *to;
    gnnc_status st = as_integers(pool, a, RT_DT_I32, name, &to, err);
    if (st == GNNC_OK) *out = to;
    return st;
}

gnnc_status rt_array_as(RtPool *pool, const RtArray *a, RtDtype dt, const char *name,
                        const void **out, RtError *err) {
    if (dt == RT_DT_F32)
        *out = rt_array_as_f32(pool, a);
    else if (dt == RT_DT_F64)
        *out = rt_array_as_f64(pool, a);
    else if (dt == RT_DT_I64 && rt_dtype_kind(a->dt) != 'f')
        *out = rt_array_as_i64(pool, a);
    else
        return as_integers(pool, a, dt, name, out, err);
    return *out ? GNNC_OK : rt_fail_nomem(err, name);
}
