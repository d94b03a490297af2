/* Matrix products with a bias, a cut at 0 or the sum of an operand at their end, by cuBLASLt.
 *
 * What cuBLASLt is asked for stands in a plan: descriptors and an algorithm, chosen by its
 * heuristics when a product is first made.  Sizes of the same power of two share a plan.  Where
 * sizes come from data, as those of mini-batches and of parts that processes share, the algorithm
 * is chosen anew for each other size, so that bits do not depend on which sizes came before.
 * Elsewhere it is checked against the new sizes, and chosen anew only if it does not do.  Nothing
 * of that touches the device or waits for it.
 *
 * Where the library is not there, has no algorithm or fails at it, *within stays false and the
 * caller makes the steps themselves.  So it does where an operand's sum would cost the product its
 * parallelism: the gradient of a weight is a small matrix with a long sum, which fills a GPU only
 * when the sum is split.  The heuristics tell how much of the GPU an algorithm fills ("waves"); one
 * with the sum must fill half of what the plain product's does. */
#include "cuda.h"

#include <dlfcn.h>
#include <string.h>

#define LIBRARY "libcublasLt.so." CUDA_TEXT(CUBLAS_VER_MAJOR)

enum { PLANS_MAX = 512 }; /* beyond, products go without */

/* What a product shares a plan by. */
typedef struct {
    rt_epilogue_kind kind;
    cublasOperation_t op_a, op_b;
    int m, n, k;                              /* bits of the sizes */
    uint32_t align_a, align_b, align_d, side; /* of the pointers, at most 16 */
} LtKey;

typedef struct {
    int64_t rows, cols, ld;
} LtShape;

typedef struct LtPlan {
    struct LtPlan *next;
    LtKey key;
    bool refused;    /* the library fails at it, of whatever sizes */
    bool usable;     /* there is an algorithm for the sizes */
    bool told;       /* that the library failed at it */
    LtShape a, b, d; /* that it was made or checked for */
    cublasLtMatmulDesc_t op;
    cublasLtMatrixLayout_t at_a, at_b, at_d;
    cublasLtMatmulPreference_t wants;
    cublasLtMatmulAlgo_t algorithm;
} LtPlan;

/* ---- open and close ------------------------------------------------------------------------- */
/* Loads cuBLASLt and finds its functions; that it is missing is no error, since products are made
 * without it. */
static void load(CudaLt *l) {
    void *at;
    l->tried = true;
    l->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!l->library) return;
#define FIND(f)                                                                                    \
    at = dlsym(l->library, CUDA_TEXT(f));                                                          \
    if (!at) return;                                                                               \
    memcpy(&l->p_##f, &at, sizeof at);
    CUDA_LT_FUNCTIONS(FIND)
#undef FIND
    if (l->p_cublasLtCreate(&l->handle) != CUBLAS_STATUS_SUCCESS) l->handle = NULL;
}

/* Destroys the descriptors of a planned cuBLASLt product. */
static void drop_plan(const CudaLt *l, LtPlan *p) {
    if (p->op) l->p_cublasLtMatmulDescDestroy(p->op);
    if (p->at_a) l->p_cublasLtMatrixLayoutDestroy(p->at_a);
    if (p->at_b) l->p_cublasLtMatrixLayoutDestroy(p->at_b);
    if (p->at_d) l->p_cublasLtMatrixLayoutDestroy(p->at_d);
    if (p->wants) l->p_cublasLtMatmulPreferenceDestroy(p->wants);
}

void rt_cuda_lt_close(Cuda *c) {
    for (LtPlan *p = c->lt.plans; p; p = p->next) drop_plan(&c->lt, p);
    if (c->lt.handle) c->lt.p_cublasLtDestroy(c->lt.handle);
    c->lt = (CudaLt){.tried = false}; /* the library stays, as cuBLAS does */
}

/* ---- a plan --------------------------------------------------------------------------------- */
/* cuBLASLt's word for an epilogue. */
static cublasLtEpilogue_t end_of(rt_epilogue_kind k) {
    switch (k) {
    case RT_EPILOGUE_NONE:
        break;
    case RT_EPILOGUE_BIAS:
        return CUBLASLT_EPILOGUE_BIAS;
    case RT_EPILOGUE_RELU:
        return CUBLASLT_EPILOGUE_RELU;
    case RT_EPILOGUE_RELU_BIAS:
        return CUBLASLT_EPILOGUE_RELU_BIAS;
    case RT_EPILOGUE_SUM_A: /* our A is its B: see CudaStored */
        return CUBLASLT_EPILOGUE_BGRADB;
    case RT_EPILOGUE_SUM_B:
        return CUBLASLT_EPILOGUE_BGRADA;
    }
    return CUBLASLT_EPILOGUE_DEFAULT;
}

/* Sets the number of rows and columns and the leading dimension of the layout `at`. False: the
 * library refused. */
static bool set_shape(const CudaLt *l, cublasLtMatrixLayout_t at, const LtShape *s) {
    uint64_t rows = (uint64_t)s->rows, cols = (uint64_t)s->cols;
    return l->p_cublasLtMatrixLayoutSetAttribute(at, CUBLASLT_MATRIX_LAYOUT_ROWS, &rows,
                                                 sizeof rows) == CUBLAS_STATUS_SUCCESS &&
           l->p_cublasLtMatrixLayoutSetAttribute(at, CUBLASLT_MATRIX_LAYOUT_COLS, &cols,
                                                 sizeof cols) == CUBLAS_STATUS_SUCCESS &&
           l->p_cublasLtMatrixLayoutSetAttribute(at, CUBLASLT_MATRIX_LAYOUT_LD, &s->ld,
                                                 sizeof s->ld) == CUBLAS_STATUS_SUCCESS;
}

static bool set_op(const CudaLt *l, const LtPlan *p, cublasLtMatmulDescAttributes_t what,
                   const void *v, size_t n_bytes) {
    return l->p_cublasLtMatmulDescSetAttribute(p->op, what, v, n_bytes) == CUBLAS_STATUS_SUCCESS;
}

static bool set_end(const CudaLt *l, const LtPlan *p, cublasLtEpilogue_t end) {
    return set_op(l, p, CUBLASLT_MATMUL_DESC_EPILOGUE, &end, sizeof end);
}

static bool set_wish(const CudaLt *l, const LtPlan *p, cublasLtMatmulPreferenceAttributes_t what,
                     const void *v, size_t n_bytes) {
    return l->p_cublasLtMatmulPreferenceSetAttribute(p->wants, what, v, n_bytes) ==
           CUBLAS_STATUS_SUCCESS;
}

/* Makes the descriptors of a planned product. Matrices are row-major here and column-major there,
 * so cuBLASLt's A is our B. */
static bool make_plan(const CudaLt *l, LtPlan *p, bool tf32) {
    const LtKey *k = &p->key;
    size_t room = RT_BLAS_WORKSPACE_BYTES;
    cublasComputeType_t sum = tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    const cublasLtMatrixLayout_t none = NULL;
    p->at_a = p->at_b = p->at_d = none;
    if (l->p_cublasLtMatmulDescCreate(&p->op, sum, CUDA_R_32F) != CUBLAS_STATUS_SUCCESS ||
        l->p_cublasLtMatrixLayoutCreate(&p->at_a, CUDA_R_32F, (uint64_t)p->a.rows,
                                        (uint64_t)p->a.cols, p->a.ld) != CUBLAS_STATUS_SUCCESS ||
        l->p_cublasLtMatrixLayoutCreate(&p->at_b, CUDA_R_32F, (uint64_t)p->b.rows,
                                        (uint64_t)p->b.cols, p->b.ld) != CUBLAS_STATUS_SUCCESS ||
        l->p_cublasLtMatrixLayoutCreate(&p->at_d, CUDA_R_32F, (uint64_t)p->d.rows,
                                        (uint64_t)p->d.cols, p->d.ld) != CUBLAS_STATUS_SUCCESS ||
        l->p_cublasLtMatmulPreferenceCreate(&p->wants) != CUBLAS_STATUS_SUCCESS)
        return false;
    return set_op(l, p, CUBLASLT_MATMUL_DESC_TRANSA, &k->op_a, sizeof k->op_a) &&
           set_op(l, p, CUBLASLT_MATMUL_DESC_TRANSB, &k->op_b, sizeof k->op_b) &&
           set_wish(l, p, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room, sizeof room) &&
           set_wish(l, p, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &k->align_a, 4) &&
           set_wish(l, p, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &k->align_b, 4) &&
           set_wish(l, p, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &k->align_d, 4) &&
           set_wish(l, p, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &k->align_d, 4);
}

/* Asks cuBLASLt for its best algorithm for the planned product; *r gets it. False: there is none
 * within the workspace. */
static bool ask(const CudaLt *l, LtPlan *p, cublasLtMatmulHeuristicResult_t *r) {
    int n = 0;
    cublasStatus_t s = l->p_cublasLtMatmulAlgoGetHeuristic(l->handle, p->op, p->at_a, p->at_b,
                                                           p->at_d, p->at_d, p->wants, 1, r, &n);
    return s == CUBLAS_STATUS_SUCCESS && n > 0 && r->state == CUBLAS_STATUS_SUCCESS &&
           r->workspaceSize <= RT_BLAS_WORKSPACE_BYTES;
}

static bool sums(const LtPlan *p) {
    return p->key.kind == RT_EPILOGUE_SUM_A || p->key.kind == RT_EPILOGUE_SUM_B;
}

/* Chooses an algorithm for the sizes of the plan. False: there is none, or, with the sum of a
 * factor, it has less than half as many waves of blocks as the product alone: then two calls are
 * faster. */
static bool choose(const CudaLt *l, LtPlan *p) {
    cublasLtMatmulHeuristicResult_t plain, with;
    if (sums(p) && (!set_end(l, p, CUBLASLT_EPILOGUE_DEFAULT) || !ask(l, p, &plain))) return false;
    if (!set_end(l, p, end_of(p->key.kind)) || !ask(l, p, &with)) return false;
    if (sums(p) && 2 * with.wavesCount < plain.wavesCount) return false;
    p->algorithm = with.algo;
    return true;
}

/* Does the plan's algorithm, which was chosen for other sizes, serve the sizes that are set now,
 * within the workspace? */
static bool algorithm_still_fits(const CudaLt *l, const LtPlan *p) {
    cublasLtMatmulHeuristicResult_t r;
    return l->p_cublasLtMatmulAlgoCheck(l->handle, p->op, p->at_a, p->at_b, p->at_d, p->at_d,
                                        &p->algorithm, &r) == CUBLAS_STATUS_SUCCESS &&
           r.workspaceSize <= RT_BLAS_WORKSPACE_BYTES;
}

/* ---- products -------- */
/* The number of bits of n. */
static int bits(int64_t n) {
    int b = 0;
    while (n >> b) b++;
    return b;
}

static uint32_t alignment(const void *p) {
    uint32_t low = (uint32_t)((uintptr_t)p & 15);
    return low ? low & -low : 16;
}

static LtShape shape(cublasOperation_t op, int64_t rows, int64_t cols, int64_t ld) {
    return op == CUBLAS_OP_N ? (LtShape){rows, cols, ld} : (LtShape){cols, rows, ld};
}

static bool same_shape(const LtShape *x, const LtShape *y) {
    return x->rows == y->rows && x->cols == y->cols && x->ld == y->ld;
}

/* The key (sizes, alignment of addresses, epilogue) by which a product finds its plan, and the
 * shapes of its matrices. */
static LtPlan describe(const rt_gemm *g, const rt_epilogue *e, const float *a, const float *b) {
    CudaStored sa = rt_cuda_stored(g->m, g->k, g->a_row, g->a_col);
    CudaStored sb = rt_cuda_stored(g->k, g->n, g->b_row, g->b_col);
    LtPlan p;
    memset(&p, 0, sizeof p); /* keys are compared whole */
    p.key.kind = e->kind;
    p.key.op_a = sb.op, p.key.op_b = sa.op;
    p.key.m = bits(g->m), p.key.n = bits(g->n), p.key.k = bits(g->k);
    p.key.align_a = alignment(b), p.key.align_b = alignment(a);
    p.key.align_d = alignment(e->out), p.key.side = alignment(e->side);
    p.a = shape(sb.op, g->n, g->k, sb.ld);
    p.b = shape(sa.op, g->k, g->m, sa.ld);
    p.d = (LtShape){g->n, g->m, g->c_row > g->n ? g->c_row : g->n};
    return p;
}

/* The plan with the same key; NULL: none was made yet. */
static LtPlan *find(const CudaLt *l, const LtPlan *like) {
    LtPlan *p = l->plans;
    while (p && memcmp(&p->key, &like->key, sizeof p->key) != 0) p = p->next;
    return p;
}

/* Whether what is chosen for a product may depend on its own sizes alone. */
static bool is_exact(const RtDevice *d) {
    return d->x->program->by_parts || d->x->program->sampling.batch;
}

/* The plan for such a product, made or fitted to its sizes; NULL: none, or no memory. */
static LtPlan *plan_for(RtDevice *d, const LtPlan *like, const void *side, gnnc_status *st) {
    CudaLt *l = &rt_cuda_of(d)->lt;
    LtPlan *p = find(l, like);
    bool known = p != NULL;
    if (!known) {
        if (l->n_plans >= PLANS_MAX) return NULL;
        p = RT_NEW(&d->x->rt->pool, LtPlan);
        if (!p) *st = rt_fail_nomem(&d->x->rt->err, "a matrix product");
        if (!p) return NULL;
        *p = *like;
        p->next = l->plans;
        l->plans = p;
        l->n_plans++;
        p->refused = !make_plan(l, p, d->tf32);
    }
    const bool shared = known && !is_exact(d);
    p->refused |= side && !set_op(l, p, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &side, sizeof side);
    bool same =
        same_shape(&p->a, &like->a) && same_shape(&p->b, &like->b) && same_shape(&p->d, &like->d);
    if (p->refused || (shared && !p->usable)) return NULL;
    if (known && same) return p->usable ? p : NULL;
    p->a = like->a, p->b = like->b, p->d = like->d;
    p->usable = set_shape(l, p->at_a, &p->a) && set_shape(l, p->at_b, &p->b) &&
                set_shape(l, p->at_d, &p->d) &&
                ((shared && algorithm_still_fits(l, p)) || choose(l, p));
    return p->usable ? p : NULL;
}

/* Makes a product with its epilogue by one call of cuBLASLt; *within: whether it could. */
gnnc_status rt_cuda_gemm_with(RtDevice *d, const rt_gemm *g, const rt_epilogue *e, const float *a,
                              const float *b, bool *within) {
    static const float one = 1, zero = 0;
    CudaLt *l = &rt_cuda_of(d)->lt;
    gnnc_status st =
        rt_cuda_blas_open(d); /* whose workspace it shares: in a stream, one at a time */
    if (st != GNNC_OK) return st;
    if (!l->tried) load(l);
    if (!l->handle) return GNNC_OK;
    LtPlan like = describe(g, e, a, b);
    LtPlan *p = plan_for(d, &like, e->side, &st);
    if (!p) return st;
    cublasStatus_t s = l->p_cublasLtMatmul(l->handle, p->op, &one, b, p->at_a, a, p->at_b, &zero,
                                           e->out, p->at_d, e->out, p->at_d, &p->algorithm,
                                           rt_cuda_blas_queue(rt_cuda_of(d))->workspace,
                                           RT_BLAS_WORKSPACE_BYTES, rt_cuda_of(d)->stream);
    *within = s == CUBLAS_STATUS_SUCCESS;
    if (*within) return GNNC_OK;
    cudaGetLastError(); /* as in rt_cuda_failed() */
    p->usable = false;
    p->refused = !is_exact(d);
    if (!p->told)
        rt_message(d->x->rt, "products: cublasLtMatmul: %s; its end is made by kernels",
                   rt_cuda_of(d)->blas.p_cublasGetStatusString(s));
    p->told = true;
    return GNNC_OK;
}
