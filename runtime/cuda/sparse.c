/* Sparse products by cuSPARSE: SpMM of a CSR matrix with a dense one, both by rows, in f32.
 *
 * A product has a matrix descriptor of its own, even over arrays that others have, too: what
 * cusparseSpMM_preprocess() finds out stays in the workspace, and the descriptor knows one.  From
 * then on values of either matrix may change, indices and the workspace must not.
 *
 * The algorithm is CUSPARSE_SPMM_CSR_ALG3.  It is the only one for CSR whose results the manual
 * calls the same from run to run (ALG2, best for matrices by rows, is not), and it is one of the
 * two that preprocessing helps. */
#include "cuda.h"

#include <dlfcn.h>
#include <string.h>

#include "runtime/device/device_spmm.h"

#define LIBRARY "libcusparse.so." CUDA_TEXT(CUSPARSE_VER_MAJOR)

typedef struct {
    const char *name, *lines;
    cusparseSpMatDescr_t a;
    cusparseDnMatDescr_t b, c;
    void *workspace;
    size_t n_bytes;
} Product;

/* Reports that a call of cuSPARSE failed, for lack of memory or otherwise. */
static gnnc_status failed(RtDevice *d, const Product *p, const char *call, cusparseStatus_t s) {
    const CudaSparse *l = &rt_cuda_of(d)->sparse;
    cudaGetLastError(); /* nobody shall find it: kernels go on */
    gnnc_status st =
        s == CUSPARSE_STATUS_INSUFFICIENT_RESOURCES || s == CUSPARSE_STATUS_ALLOC_FAILED
            ? GNNC_E_NOMEM
            : GNNC_E_DEVICE;
    const char *lines = p && p->lines && *p->lines ? p->lines : NULL;
    return rt_fail(&d->x->rt->err, st, "cuda: %s%s%s%s%s: %s", call, p ? " for " : "",
                   p ? p->name : "", lines ? " of " : "", lines ? lines : "",
                   l->p_cusparseGetErrorString(s));
}

#define SPARSE_CHECK(d, p, f, ...)                                                                 \
    do {                                                                                           \
        cusparseStatus_t sparse_status = rt_cuda_of(d)->sparse.p_##f(__VA_ARGS__);                 \
        if (sparse_status != CUSPARSE_STATUS_SUCCESS) return failed((d), (p), #f, sparse_status);  \
    } while (0)

/* ---- open and close ------------------------------------------------------------------------- */
/* Loads cuSPARSE and finds its functions; that it is missing is no error, since kernels can make
 * all products. */
static gnnc_status load(RtDevice *d) {
    CudaSparse *l = &rt_cuda_of(d)->sparse;
    void *at = NULL;
    if (l->tried) return GNNC_OK;
    l->tried = true;
    l->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
#define FIND(f)                                                                                    \
    at = l->library ? dlsym(l->library, #f) : NULL;                                                \
    if (!at) goto missing;                                                                         \
    memcpy(&l->p_##f, &at, sizeof at);
    CUDA_SPARSE_FUNCTIONS(FIND)
#undef FIND
    cusparseHandle_t handle;
    SPARSE_CHECK(d, NULL, cusparseCreate, &handle);
    cusparseStatus_t s = l->p_cusparseSetStream(handle, rt_cuda_of(d)->stream);
    if (s == CUSPARSE_STATUS_SUCCESS) {
        l->handle = handle;
        l->stream = rt_cuda_of(d)->stream;
        return GNNC_OK;
    }
    l->p_cusparseDestroy(handle);
    return failed(d, NULL, "cusparseSetStream", s);
missing:
    rt_message(d->x->rt, "spmm: no %s; the program's kernels make sparse products", LIBRARY);
    return GNNC_OK;
}

void rt_cuda_sparse_close(Cuda *c) {
    if (c->sparse.handle) c->sparse.p_cusparseDestroy(c->sparse.handle);
    c->sparse = (CudaSparse){.tried = false}; /* the library stays, as cuBLAS does */
}

/* ---- a product ------------------------------------------------------------------------------ */
static const float one = 1, zero = 0;

#define SPMM(l, p)                                                                                 \
    (l)->handle, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, (p)->a, \
        (p)->b, &zero, (p)->c, CUDA_R_32F, CUSPARSE_SPMM_CSR_ALG3

/* Makes cuSPARSE's descriptors of the operands and the result of a product. */
static gnnc_status describe(RtDevice *d, const RtSparse *s, Product *p) {
    void *bounds = (void *)(uintptr_t)s->bounds, *idx = (void *)(uintptr_t)s->idx,
         *weights = (void *)(uintptr_t)s->weights, *dense = (void *)(uintptr_t)s->dense;
    SPARSE_CHECK(d, p, cusparseCreateCsr, &p->a, s->rows, s->cols, s->entries, bounds, idx, weights,
                 CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F);
    SPARSE_CHECK(d, p, cusparseCreateDnMat, &p->b, s->cols, s->width, s->width, dense, CUDA_R_32F,
                 CUSPARSE_ORDER_ROW);
    SPARSE_CHECK(d, p, cusparseCreateDnMat, &p->c, s->rows, s->width, s->width, s->out, CUDA_R_32F,
                 CUSPARSE_ORDER_ROW);
    return GNNC_OK;
}

/* *usable = false: the library has no such algorithm. */
static gnnc_status settle(RtDevice *d, Product *p, bool *usable) {
    const CudaSparse *l = &rt_cuda_of(d)->sparse;
    cusparseStatus_t s = l->p_cusparseSpMM_bufferSize(SPMM(l, p), &p->n_bytes);
    *usable = s != CUSPARSE_STATUS_NOT_SUPPORTED;
    if (!*usable) return GNNC_OK;
    if (s != CUSPARSE_STATUS_SUCCESS) return failed(d, p, "cusparseSpMM_bufferSize", s);
    gnnc_status st = d->ops->alloc(d, p->n_bytes, &p->workspace);
    if (st != GNNC_OK) return st;
    d->spmms.n_bytes += p->n_bytes;
    SPARSE_CHECK(d, p, cusparseSpMM_preprocess, SPMM(l, p), p->workspace);
    return GNNC_OK;
}

/* Plans a sparse product by cuSPARSE; *product gets the plan, NULL where the library cannot make
 * it. */
gnnc_status rt_cuda_spmm_open(RtDevice *d, const RtSparse *s, void **product) {
    bool usable = false;
    *product = NULL;
    gnnc_status st = load(d);
    if (st != GNNC_OK || !rt_cuda_of(d)->sparse.handle) return st;
    Product *p = RT_NEW(&d->x->rt->pool, Product);
    if (!p) return rt_fail_nomem(&d->x->rt->err, "a sparse product");
    *p = (Product){.name = s->name, .lines = s->lines};
    st = describe(d, s, p);
    if (st == GNNC_OK) st = settle(d, p, &usable);
    if (st == GNNC_OK && usable)
        *product = p;
    else
        rt_cuda_spmm_close(d, p);
    return st;
}

/* Releases a planned sparse product, after the work that uses it. */
void rt_cuda_spmm_close(RtDevice *d, void *product) {
    const CudaSparse *l = &rt_cuda_of(d)->sparse;
    Product *p = product;
    cudaStreamSynchronize(rt_cuda_of(d)->stream);
    if (p->a) l->p_cusparseDestroySpMat(p->a);
    if (p->b) l->p_cusparseDestroyDnMat(p->b);
    if (p->c) l->p_cusparseDestroyDnMat(p->c);
    d->ops->release(d, p->workspace);
    *p = (Product){.name = p->name};
}

/* Makes a planned sparse product by cuSPARSE, with these addresses of the dense matrix and the
 * result. */
gnnc_status rt_cuda_spmm(RtDevice *d, void *product, const void *dense, void *out) {
    CudaSparse *l = &rt_cuda_of(d)->sparse;
    const Product *p = product;
    if (l->stream != rt_cuda_of(d)->stream)
        SPARSE_CHECK(d, p, cusparseSetStream, l->handle, rt_cuda_of(d)->stream);
    l->stream = rt_cuda_of(d)->stream;
    SPARSE_CHECK(d, p, cusparseDnMatSetValues, p->b, (void *)(uintptr_t)dense);
    SPARSE_CHECK(d, p, cusparseDnMatSetValues, p->c, out);
    SPARSE_CHECK(d, p, cusparseSpMM, SPMM(l, p), p->workspace);
    return GNNC_OK;
}
