/* Matrix products: every way of storing the operands, batches, split sums and empty sizes
 * against plain loops, and the same bits on any number of threads. */
#include "test.h"

#include <math.h>

#include "exec.h"
#include "team.h"

int omp_get_max_threads(void);

typedef struct {
    int64_t batch, m, n, k;
    bool a_by_cols, b_by_cols, long_k, c_apart; /* rows of C with a gap between them */
} Shape;

static const Shape shapes[] = {
    {1, 1, 1, 1, false, false, false, false},
    {1, 5, 7, 3, true, false, false, true},
    {1, 300, 7, 16, false, true, false, false},
    {1, 16, 7, 5000, true, false, true, false},
    {3, 130, 16, 33, false, false, false, true},
    {8, 40, 8, 9, true, true, false, false},
    {1, 1, 300, 20, false, false, false, false},
    {1, 300, 1, 20, false, true, false, false},
    {1, 9, 5, 1, true, true, false, false},
    {1, 70, 260, 2100, false, false, true, true},
    {2, 4, 3, 4100, true, false, true, true},
    {1, 6, 4, 0, false, false, false, true},
    {1, 0, 4, 3, false, false, false, false},
    {0, 2, 2, 2, false, false, false, false},
    {1, 2000, 3, 2, false, false, false, false},
    {1, 301, 40, 70, false, true, false, true},
    {2, 125, 64, 300, true, false, false, true},
    {1, 13, 600, 513, false, true, false, true},
    {1, 50, 113, 257, true, true, false, false},
    {1, 41, 300, 3000, true, false, true, true},
    {1, 245, 48, 1100, false, true, true, false},
    {1, 100, 49, 5000000 / 49 / 49, false, false, false, false},
    {1, 2, 4100, 1100, false, false, false, false}, /* B too large to pack */
};

static uint32_t seed_ = 7;
static float rnd(void) {
    seed_ = seed_ * 1664525u + 1013904223u;
    return (float)(seed_ >> 8) * 0x1p-23f - 1;
}

static float *matrix(int64_t n) {
    float *x = aligned_alloc(64, ((size_t)n * sizeof *x / 64 + 2) * 64);
    for (int64_t i = 0; x && i < n + 16; i++) x[i] = rnd();
    return x;
}

static rt_gemm layout(const Shape *s) {
    return (rt_gemm){.batch = s->batch,
                     .m = s->m,
                     .n = s->n,
                     .k = s->k,
                     .a_batch = s->m * s->k,
                     .a_row = s->a_by_cols ? 1 : s->k,
                     .a_col = s->a_by_cols ? s->m : 1,
                     .b_batch = s->k * s->n,
                     .b_row = s->b_by_cols ? 1 : s->n,
                     .b_col = s->b_by_cols ? s->k : 1,
                     .c_batch = s->m * (s->n + s->c_apart),
                     .c_row = s->n + s->c_apart,
                     .long_k = s->long_k};
}

static double product(const rt_gemm *g, const float *a, const float *b, int64_t t, int64_t i,
                      int64_t j) {
    double sum = 0;
    for (int64_t p = 0; p < g->k; p++)
        sum += (double)a[t * g->a_batch + i * g->a_row + p * g->a_col] *
               (double)b[t * g->b_batch + p * g->b_row + j * g->b_col];
    return sum;
}

static int wrong(const rt_gemm *g, const float *a, const float *b, const float *c) {
    int bad = 0;
    for (int64_t t = 0; t < g->batch; t++)
        for (int64_t i = 0; i < g->m; i++)
            for (int64_t j = 0; j < g->n; j++) {
                double want = product(g, a, b, t, i, j);
                bad += !(fabs(want - (double)c[t * g->c_batch + i * g->c_row + j]) <=
                         1e-6 * (8 + sqrt((double)g->k) * 8));
            }
    return bad;
}

static void check_shape(RtExec *x, const Shape *s) {
    rt_gemm g = layout(s);
    int64_t n_c = g.batch * g.c_batch;
    float *a = matrix(g.batch * g.a_batch), *b = matrix(g.batch * g.b_batch), *first = matrix(n_c),
          *c = matrix(n_c);
    memcpy(first, c, ((size_t)n_c + 16) * sizeof *c); /* gaps and what follows must survive */
    float *gap = matrix(n_c);
    memcpy(gap, c, ((size_t)n_c + 16) * sizeof *c);
    CHECK(rt_gemm_f32(x, &g, a, b, first) == GNNC_OK);
    CHECK_MSG(wrong(&g, a, b, first) == 0, "%d x %d x %d: wrong", (int)s->m, (int)s->n, (int)s->k);
    for (int64_t r = 0; s->c_apart && r < g.batch * g.m; r++)
        CHECK(first[r * g.c_row + g.n] == gap[r * g.c_row + g.n]);
    CHECK(memcmp(first + n_c, gap + n_c, 16 * sizeof *c) == 0);
    for (int threads = 2; threads <= 5; threads++) {
        RtError err = {""};
        RtAlloc from = rt_alloc_default();
        CHECK(rt_team_start(&x->rt->team, &from, threads, 2, &err) == GNNC_OK);
        x->threads = threads;
        CHECK(rt_gemm_f32(x, &g, a, b, c) == GNNC_OK);
        CHECK_MSG(memcmp(first, c, ((size_t)n_c + 16) * sizeof *c) == 0,
                  "other bits with %d threads", threads);
        rt_team_stop(x->rt->team);
        x->rt->team = NULL, x->threads = 1;
    }
    free(a), free(b), free(c), free(first), free(gap);
}

TEST(every_layout_and_any_number_of_threads) {
    RtRuntime rt = {.scratch_bytes = 0};
    rt_pool_init(&rt.pool, NULL);
    RtExec x = {.threads = 1, .rt = &rt};
    int before = omp_get_max_threads();
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) check_shape(&x, &shapes[i]);
    CHECK(omp_get_max_threads() == before);
    rt_pool_free(&rt.pool);
}

TEST_MAIN()
