/* Matrix products: a library's sgemm, called serially on tiles.
 *
 * A threaded BLAS splits by the number of threads, and so gives other bits for other
 * thread counts.  Here the split depends on the sizes only: tiles of C, and for a long
 * k (a sum over nodes or edges) a fixed number of k ranges whose products are added in
 * order.  Our own team runs the tiles, each member having told OpenMP, which oneDNN
 * asks, that it is alone. */
#include "device.h"

#include <stdatomic.h>
#include <string.h>

/* Of libgomp, as oneDNN is; declared here because clang's <omp.h> is another package's. */
int omp_get_max_threads(void);
void omp_set_num_threads(int n);

#if RT_GEMM_DNNL
#include <oneapi/dnnl/dnnl.h>
enum { TILE_M = 128, TILE_N = 256, SPLIT_K = 1024, TILE_M_THIN = 1024 };
#else
#include <cblas.h>
/* A tile of at most 2^18 multiplications: OpenBLAS runs those on the calling thread. */
enum { TILE_M = 64, TILE_N = 64, SPLIT_K = 1024, TILE_M_THIN = 64 };
#endif
enum {
    WANTED_TILES = 32,
    MAX_SPLITS = 32,
    TILE_WORK = 1 << 16 /* multiplications that hide a call */
};

typedef struct {
    rt_gemm g;
    const float *a, *b;
    float *c;
    float *part; /* [splits - 1][batch][m][n]: products of the k ranges after the first */
    int64_t tile_m, tiles_m, tiles_n, splits, k_len, n_tiles;
    atomic_llong next; /* tile that nobody has taken yet */
    atomic_bool failed;
} Job;

static int64_t ceil_div(int64_t x, int64_t y) {
    return (x + y - 1) / y;
}
static int64_t least(int64_t x, int64_t y) {
    return x < y ? x : y;
}
static int64_t most(int64_t x, int64_t y) {
    return x > y ? x : y;
}

/* One operand as BLAS wants it: rows x cols, stored by rows ('N') or by columns ('T'). */
typedef struct {
    char trans;
    int64_t ld;
} Stored;
static Stored stored(int64_t rows, int64_t cols, int64_t row, int64_t col) {
    if (col == 1 && (row >= cols || rows == 1)) return (Stored){'N', most(row, most(cols, 1))};
    return (Stored){'T', most(col, most(rows, 1))};
}

/* False: the library could not. */
static bool sgemm(Stored sa, Stored sb, int64_t m, int64_t n, int64_t k, const float *a,
                  const float *b, float *c, int64_t ldc) {
#if RT_GEMM_DNNL
    return dnnl_sgemm(sa.trans, sb.trans, m, n, k, 1.0f, a, sa.ld, b, sb.ld, 0.0f, c, ldc) ==
           dnnl_success;
#else
    for (int64_t p = 0; p < k; p += TILE_M) { /* keeps each call below the threading limit */
        const float *ap = a + (sa.trans == 'N' ? p : p * sa.ld);
        const float *bp = b + (sb.trans == 'N' ? p * sb.ld : p);
        cblas_sgemm(CblasRowMajor, sa.trans == 'N' ? CblasNoTrans : CblasTrans,
                    sb.trans == 'N' ? CblasNoTrans : CblasTrans, (int)m, (int)n,
                    (int)least(TILE_M, k - p), 1.0f, ap, (int)sa.ld, bp, (int)sb.ld,
                    p ? 1.0f : 0.0f, c, (int)ldc);
    }
    return true;
#endif
}

static bool run_tile(const Job *j, int64_t tile) {
    const rt_gemm *g = &j->g;
    int64_t tn = tile % j->tiles_n, tm = tile / j->tiles_n % j->tiles_m;
    int64_t split = tile / (j->tiles_n * j->tiles_m) % j->splits;
    int64_t batch = tile / (j->tiles_n * j->tiles_m * j->splits);
    int64_t i = tm * j->tile_m, l = tn * TILE_N, p = split * j->k_len;
    int64_t m = least(j->tile_m, g->m - i), n = least(TILE_N, g->n - l),
            k = least(j->k_len, g->k - p);
    float *c = j->c + batch * g->c_batch + i * g->c_row + l;
    int64_t ldc = g->c_row;
    if (split > 0) {
        c = j->part + (((split - 1) * g->batch + batch) * g->m + i) * g->n + l;
        ldc = g->n;
    }
    return sgemm(stored(g->m, g->k, g->a_row, g->a_col), stored(g->k, g->n, g->b_row, g->b_col), m,
                 n, k, j->a + batch * g->a_batch + i * g->a_row + p * g->a_col,
                 j->b + batch * g->b_batch + p * g->b_row + l * g->b_col, c, most(ldc, n));
}

/* Adds the k ranges in order, rows [lo, hi) of all batches. */
static void add_parts(const Job *j, int64_t lo, int64_t hi) {
    const rt_gemm *g = &j->g;
    for (int64_t r = lo; r < hi; r++) {
        float *c = j->c + r / g->m * g->c_batch + r % g->m * g->c_row;
        for (int64_t s = 1; s < j->splits; s++) {
            const float *p = j->part + ((s - 1) * g->batch * g->m + r) * g->n;
            for (int64_t i = 0; i < g->n; i++) c[i] += p[i];
        }
    }
}

/* The setting is the calling thread's own; a caller in the host's thread gets his back. */
static void run_tiles(void *arg, int member, int n_members) {
    (void)member, (void)n_members;
    Job *j = arg;
    int was = omp_get_max_threads();
    omp_set_num_threads(1);
    for (int64_t i; (i = atomic_fetch_add(&j->next, 1)) < j->n_tiles;)
        if (!run_tile(j, i)) atomic_store(&j->failed, true);
    omp_set_num_threads(was);
}

static void run_sums(void *arg, int member, int n_members) {
    const Job *j = arg;
    int64_t rows = j->g.batch * j->g.m;
    add_parts(j, rows * member / n_members, rows * (member + 1) / n_members);
}

static void fill_zero(const rt_gemm *g, float *c) {
    for (int64_t b = 0; b < g->batch; b++)
        for (int64_t i = 0; i < g->m; i++)
            memset(c + b * g->c_batch + i * g->c_row, 0, (size_t)g->n * sizeof *c);
}

static void plan_tiles(Job *j) {
    const rt_gemm *g = &j->g;
    int64_t rows = TILE_WORK / g->n / g->k / TILE_M * TILE_M; /* a thin product: taller tiles */
    j->tile_m = most(TILE_M, least(TILE_M_THIN, rows));
    j->tiles_m = ceil_div(g->m, j->tile_m);
    j->tiles_n = ceil_div(g->n, TILE_N);
    int64_t tiles = j->tiles_m * j->tiles_n * g->batch, want = 1;
    if (g->long_k && tiles < WANTED_TILES)
        want = least(least(ceil_div(WANTED_TILES, tiles), MAX_SPLITS), ceil_div(g->k, SPLIT_K));
    j->k_len = ceil_div(g->k, want);
    j->splits = ceil_div(g->k, j->k_len);
}

static size_t part_bytes(const Job *j) {
    return (size_t)((j->splits - 1) * j->g.batch * j->g.m * j->g.n) * sizeof(float);
}

size_t rt_gemm_scratch(const rt_gemm *g) {
    if (g->batch <= 0 || g->m <= 0 || g->n <= 0 || g->k <= 0) return 0;
    Job j = {.g = *g};
    plan_tiles(&j);
    return part_bytes(&j);
}

gnnc_status rt_gemm_f32(RtExec *x, const rt_gemm *g, const float *a, const float *b, float *c) {
    x->rt->count.library_calls++;
    if (x->rt->device) return rt_device_gemm(x, g, a, b, c);
    if (g->batch <= 0 || g->m <= 0 || g->n <= 0) return GNNC_OK;
    if (g->k <= 0) {
        fill_zero(g, c);
        return GNNC_OK;
    }
    Job j = {.g = *g, .a = a, .b = b, .c = c};
    atomic_init(&j.next, 0);
    atomic_init(&j.failed, false);
    plan_tiles(&j);
    if (j.splits > 1) {
        j.part = rt_scratch(x, part_bytes(&j));
        if (!j.part) return GNNC_E_NOMEM;
    }
    j.n_tiles = j.tiles_m * j.tiles_n * j.splits * g->batch;
    rt_team_run(j.n_tiles > 1 ? rt_step_team(x) : NULL, run_tiles, &j);
    if (atomic_load(&j.failed)) return rt_fail_nomem(&x->rt->err, "a matrix product");
    if (j.splits > 1) rt_team_run(rt_step_team(x), run_sums, &j);
    return GNNC_OK;
}
