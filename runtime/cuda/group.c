/* Several matrix products with one call of cuBLAS: batched where all have one shape, else grouped.
 *
 * Both take the operands' addresses from arrays in device memory, which are there since sizes were
 * bound, or came with the batch (device/device.h: RtPlaces.pointers); shapes are the host's.  So a
 * call copies and allocates nothing, and can be recorded.  Where the library lacks the function
 * (before cuBLAS 12.5), declines these types once or fails at them, products are made one by one
 * from then on: the first run of a phase, which is not recorded, finds that out. */
#include "cuda.h"
#include "group_cost.h"

#include <stddef.h>
#include <string.h>

/* By product; cuBLAS computes C' = B' A' (CudaStored). */
typedef struct CudaShapes {
    struct CudaShapes *next;
    int products;
    cublasOperation_t op_a[RT_GROUP_MAX], op_b[RT_GROUP_MAX];
    int m[RT_GROUP_MAX], n[RT_GROUP_MAX], k[RT_GROUP_MAX];
    int ld_a[RT_GROUP_MAX], ld_b[RT_GROUP_MAX], ld_c[RT_GROUP_MAX], size[RT_GROUP_MAX];
    float one[RT_GROUP_MAX], zero[RT_GROUP_MAX];
} Shapes;

/* What a recording was given stays where it is as long as the device: cuBLAS does not say whether
 * it copies these arrays, or the graph's node does in each run.  Equal ones are kept once. */
static const Shapes *keep(RtDevice *d, const Shapes *s) {
    Cuda *c = rt_cuda_of(d);
    size_t from = offsetof(Shapes, products);
    for (const Shapes *k = c->shapes; k; k = k->next)
        if (memcmp((const char *)k + from, (const char *)s + from, sizeof *s - from) == 0) return k;
    Shapes *k = RT_NEW(&d->x->rt->pool, Shapes);
    if (!k) return NULL;
    *k = *s;
    k->next = c->shapes;
    return c->shapes = k;
}

/* false: too large for an int */
static bool describe(Shapes *s, int i, const rt_gemm *g) {
    CudaStored a = rt_cuda_stored(g->m, g->k, g->a_row, g->a_col);
    CudaStored b = rt_cuda_stored(g->k, g->n, g->b_row, g->b_col);
    int64_t ldc = g->c_row > g->n ? g->c_row : g->n;
    const int64_t size[] = {g->m, g->n, g->k, a.ld, b.ld, ldc};
    for (size_t k = 0; k < sizeof size / sizeof *size; k++)
        if (size[k] > INT32_MAX) return false;
    s->op_a[i] = b.op, s->op_b[i] = a.op;
    s->m[i] = (int)g->n, s->n[i] = (int)g->m, s->k[i] = (int)g->k;
    s->ld_a[i] = (int)b.ld, s->ld_b[i] = (int)a.ld, s->ld_c[i] = (int)ldc;
    s->size[i] = 1;
    s->one[i] = 1, s->zero[i] = 0;
    return true;
}

/* Has product i of the group the shapes, strides and layouts of the first? */
static bool is_like_first(const Shapes *s, int i) {
    return s->op_a[i] == s->op_a[0] && s->op_b[i] == s->op_b[0] && s->m[i] == s->m[0] &&
           s->n[i] == s->n[0] && s->k[i] == s->k[0] && s->ld_a[i] == s->ld_a[0] &&
           s->ld_b[i] == s->ld_b[0] && s->ld_c[i] == s->ld_c[0];
}

/* Whether one grouped call is estimated to be faster than n single products. */
static bool pays(RtDevice *d, int n, const rt_gemm *g) {
    RtProduct p[RT_GROUP_MAX];
    for (int i = 0; i < n; i++) p[i] = (RtProduct){g[i].m, g[i].n, g[i].k};
    bool low = d->tf32 || rt_cuda_type(g->in) != CUDA_R_32F;
    RtGroupCost c = rt_group_cost(p, n, rt_cuda_of(d)->units, low);
    return rt_group_pays(&c);
}

/* What a call is for: a bit of CudaBlas.declined. */
static unsigned use_of(bool equal, cudaDataType_t in, bool tf32) {
    int type = in == CUDA_R_16F ? 0 : in == CUDA_R_16BF ? 1 : tf32 ? 2 : 3;
    return 1u << (2 * type + equal);
}

/* One cuBLAS call for n products of different shapes, where the library has it. */
static cublasStatus_t grouped(const CudaBlas *b, cublasHandle_t handle, const Shapes *s, int n,
                              const void *const *p, void *const *out, cudaDataType_t type,
                              cublasComputeType_t sum) {
#if CUDA_BLAS_HAS_GROUPED
    if (b->p_cublasGemmGroupedBatchedEx)
        return b->p_cublasGemmGroupedBatchedEx(handle, s->op_a, s->op_b, s->m, s->n, s->k, s->one,
                                               p + n, type, s->ld_a, p, type, s->ld_b, s->zero, out,
                                               type, s->ld_c, n, s->size, sum);
#else
    (void)b, (void)handle, (void)s, (void)n, (void)p, (void)out, (void)type, (void)sum;
#endif
    return CUBLAS_STATUS_NOT_SUPPORTED;
}

/* One cuBLAS call for n products of the same shape. */
static cublasStatus_t batched(const CudaBlas *b, cublasHandle_t handle, const Shapes *s, int n,
                              const void *const *p, void *const *out, cudaDataType_t in,
                              cudaDataType_t type, cublasComputeType_t sum) {
    if (!b->p_cublasGemmBatchedEx) return CUBLAS_STATUS_NOT_SUPPORTED;
    return b->p_cublasGemmBatchedEx(handle, s->op_a[0], s->op_b[0], s->m[0], s->n[0], s->k[0],
                                    s->one, p + n, in, s->ld_a[0], p, in, s->ld_b[0], s->zero, out,
                                    type, s->ld_c[0], n, sum, CUBLAS_GEMM_DEFAULT);
}

/* Makes n products in one call of cuBLAS; *made: whether that was possible and pays. pointers:
 * device table of all A, all B, all C. */
gnnc_status rt_cuda_gemm_group(RtDevice *d, int n, const rt_gemm *g, void *const *pointers,
                               bool *made) {
    Shapes here;
    bool equal = true;
    *made = false;
    if (n > RT_GROUP_MAX || !pays(d, n, g)) return GNNC_OK;
    gnnc_status st = rt_cuda_blas_open(d);
    if (st != GNNC_OK) return st;
    memset(&here, 0, sizeof here);
    here.products = n;
    for (int i = 0; i < n; i++) {
        if (!describe(&here, i, &g[i])) return GNNC_OK; /* a call for each says so */
        equal = equal && is_like_first(&here, i);
    }
    const Shapes *s = rt_device_records(d) ? keep(d, &here) : &here;
    if (!s) return rt_fail_nomem(&d->x->rt->err, "shapes of products");
    CudaBlas *b = &rt_cuda_of(d)->blas;
    cublasHandle_t handle = rt_cuda_blas_queue(rt_cuda_of(d))->handle;
    cudaDataType_t in = rt_cuda_type(g->in), type = rt_cuda_type(g->out);
    bool tf32 = d->tf32 && in == CUDA_R_32F;
    cublasComputeType_t sum = tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    const void *const *p = (const void *const *)pointers;
    void *const *out = pointers + 2 * n;
    unsigned use = use_of(equal, in, tf32);
    if ((b->declined & use) || (!equal && in != type)) return GNNC_OK;
    cublasStatus_t done = equal ? batched(b, handle, s, n, p, out, in, type, sum)
                                : grouped(b, handle, s, n, p, out, type, sum);
    *made = done == CUBLAS_STATUS_SUCCESS;
    if (!*made) b->declined |= use;
    if (!*made) cudaGetLastError(); /* as in rt_cuda_failed() */
    if (!*made && done != CUBLAS_STATUS_NOT_SUPPORTED)
        rt_message(d->x->rt, "products: cublas, several at once: %s; each gets a call of its own",
                   b->p_cublasGetStatusString(done));
    return GNNC_OK;
}
