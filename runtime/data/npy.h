/* Arrays, and the .npy files that hold them (NumPy's format, NEP 1), versions 1
 * and 2, little endian. */
#ifndef RUNTIME_NPY_H
#define RUNTIME_NPY_H

#include "io.h"

/* X(id, .npy descr or NULL, safetensors name or NULL, bytes, kind)   kind: f i u b */
#define RT_DTYPE_MAP(X)                                                                            \
    X(F16, "<f2", "F16", 2, 'f')                                                                   \
    X(F32, "<f4", "F32", 4, 'f')                                                                   \
    X(F64, "<f8", "F64", 8, 'f')                                                                   \
    X(I8, "|i1", "I8", 1, 'i')                                                                     \
    X(I16, "<i2", "I16", 2, 'i')                                                                   \
    X(I32, "<i4", "I32", 4, 'i')                                                                   \
    X(I64, "<i8", "I64", 8, 'i')                                                                   \
    X(U8, "|u1", "U8", 1, 'u')                                                                     \
    X(U16, "<u2", "U16", 2, 'u')                                                                   \
    X(U32, "<u4", "U32", 4, 'u')                                                                   \
    X(U64, "<u8", "U64", 8, 'u')                                                                   \
    X(BOOL, "|b1", "BOOL", 1, 'b')                                                                 \
    X(BF16, NULL, "BF16", 2, 'f')

typedef enum {
#define RT_DTYPE(id, npy, st, bytes, kind) RT_DT_##id,
    RT_DTYPE_MAP(RT_DTYPE)
#undef RT_DTYPE
        RT_N_DT
} RtDtype;
const char *rt_dtype_npy(RtDtype dt);  /* "<f4", or NULL */
const char *rt_dtype_name(RtDtype dt); /* "F32" */
size_t rt_dtype_bytes(RtDtype dt);
char rt_dtype_kind(RtDtype dt);

#define RT_ARRAY_RANK 8 /* = RT_ARRAY_RANK of program.h, which this file does not need */
typedef struct RtArray {
    RtDtype dt;
    int rank;
    int64_t shape[RT_ARRAY_RANK];
    int64_t count;    /* product of shape */
    const void *data; /* aligned to the element size */
    bool fortran;     /* column-major; never set where rank < 2 */
} RtArray;

/* count * element size; fails on overflow, on rank > RT_ARRAY_RANK and on a
 * negative size.  Sets a->count. */
bool rt_array_bytes(RtArray *a, size_t *n_bytes);
/* The element as a number, any dtype; i counts in storage order. */
double rt_array_f64(const RtArray *a, int64_t i);
int64_t rt_array_i64(const RtArray *a, int64_t i); /* floats truncate, saturating */
/* `a` in row-major order: itself, or a copy in the pool.  NULL data: no memory. */
RtArray rt_array_row_major(RtPool *pool, const RtArray *a);
/* Row-major copies of another element type, or `a`'s own data where it fits. */
const float *rt_array_as_f32(RtPool *pool, const RtArray *a);
const double *rt_array_as_f64(RtPool *pool, const RtArray *a);
/* E_RANGE names the first element that does not fit. */
gnnc_status rt_array_as_i32(RtPool *pool, const RtArray *a, const char *name, const int32_t **out,
                            RtError *err);
const int64_t *rt_array_as_i64(RtPool *pool, const RtArray *a); /* integers only */
/* to[i] = v in an integer type of at most 32 bits; false: it does not fit. */
bool rt_integer_put(RtDtype dt, void *to, int64_t i, int64_t v);
/* The same for F32, F64 and integers but U64; of these E_DTYPE: `a` holds floats, E_RANGE: as
 * above.  `name` is the file's, for messages. */
gnnc_status rt_array_as(RtPool *pool, const RtArray *a, RtDtype dt, const char *name,
                        const void **out, RtError *err);

/* `name` is what messages call the file.  The array points into `file` where it
 * is aligned, else to a copy in the pool. */
gnnc_status rt_npy_parse(RtPool *pool, RtBytes file, const char *name, RtArray *out, RtError *err);
gnnc_status rt_npy_open(RtPool *pool, const char *path, RtArray *out, RtError *err);
/* Row-major arrays only. Replaces `path` atomically. */
gnnc_status rt_npy_save(const RtAlloc *from, const char *path, const RtArray *a, RtError *err);
/* The same as a new file of a directory that is renamed as a whole (rt_out_create).  half: where
 * the last half of the elements lies; NULL: behind the first. */
gnnc_status rt_npy_create(const RtAlloc *from, const char *path, const RtArray *a, const void *half,
                          RtError *err);
/* The head alone of what replaces `path`: its elements follow by rt_out_write, and rt_out_commit.
 */
gnnc_status rt_npy_begin(RtOut *o, const RtAlloc *from, const char *path, const RtArray *a,
                         RtError *err);

/* float16 and bfloat16 bits to float. */
float rt_f16_to_f32(uint16_t bits);
float rt_bf16_to_f32(uint16_t bits);

#endif
