/* Matrix products: every way of storing the operands, batches, split sums and empty sizes
 * against plain loops, and the same bits on any number of threads. */
#include "test.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

#include "runtime/exec/exec.h"
#include "runtime/gemm/gemm.h"
#include "runtime/gemm/gemm_amx.h"
#include "runtime/gemm/gemm_kernel.h"
#include "runtime/gemm/gemm_pieces.h"
#include "runtime/gemm/gemm_serial.h"
#include "runtime/data/npy.h"
#include "runtime/exec/round_16.h"
#include "runtime/exec/team.h"

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
    {1, 300, 200, 290, false, true, false, true},   /* what AMX takes: remains of each side */
    {2, 330, 250, 120, true, false, false, false},
    {1, 320, 300, 290, false, false, false, true},
    {1, 270, 257, 1500, true, true, true, false},
    {1, 161, 195, 2100, true, false, true, true},
    {1, 170, 190, 1500, false, false, true, false},
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

/* B that was packed before gives the same bits, and there is no room for it. */
static void check_packed(RtExec *x, const rt_gemm *g, const void *a, const void *b,
                         const void *want, int64_t n_bytes) {
    size_t packed_bytes = rt_gemm_packed_bytes(x, g);
    if (!packed_bytes) return;
    float *data = matrix((int64_t)(packed_bytes + 3) / 4);
    char *c = malloc((size_t)n_bytes + 1);
    RtPacked p = {.b = b, .k = g->k, .n = g->n, .b_row = g->b_row, .b_col = g->b_col, .data = data};
    CHECK(data && c);
    rt_gemm_pack_whole(x, g, b, data);
    size_t before = rt_gemm_scratch(x, g, b);
    x->rt->packed = &p;
    CHECK(rt_gemm_packed(x, g, b) == data && !rt_gemm_packed(x, g, a));
    CHECK(before == 0 || x->rt->amx || rt_gemm_scratch(x, g, b) < before);
    memcpy(c, want, (size_t)n_bytes); /* with what lies between rows */
    bool low = g->in == RT_F16 || g->in == RT_BF16;
    CHECK((low ? rt_gemm_16(x, g, a, b, c) : rt_gemm_f32(x, g, a, b, (float *)(void *)c)) ==
          GNNC_OK);
    CHECK_MSG(memcmp(c, want, (size_t)n_bytes) == 0, "other bits of a packed B");
    if (!x->rt->amx) data[0] += 1; /* it is what was read */
    CHECK((low ? rt_gemm_16(x, g, a, b, c) : rt_gemm_f32(x, g, a, b, (float *)(void *)c)) ==
          GNNC_OK);
    CHECK(x->rt->amx || g->m == 0 || memcmp(c, want, (size_t)n_bytes) != 0);
    x->rt->packed = NULL;
    free(c), free(data);
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
    check_packed(x, &g, a, b, first, n_c * (int64_t)sizeof *c);
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

static RtExec host(RtRuntime *rt, bool amx) {
    *rt = (RtRuntime){.amx = amx};
    rt_pool_init(&rt->pool, NULL);
    return (RtExec){.threads = 1, .rt = rt};
}

static void check_shapes(bool amx) {
    RtRuntime rt;
    RtExec x = host(&rt, amx);
    int before = omp_get_max_threads();
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) check_shape(&x, &shapes[i]);
    CHECK(omp_get_max_threads() == before);
    rt_pool_free(&rt.pool);
}

TEST(every_layout_and_any_number_of_threads) {
    check_shapes(false);
}

/* The product of programs that need no library. */
static void check_plain(int64_t m, int64_t n, int64_t k, bool a_by_cols, bool b_by_cols) {
    const Shape s = {1, m, n, k, a_by_cols, b_by_cols, false, true};
    rt_gemm g = layout(&s);
    float *a = matrix(m * k), *b = matrix(k * n), *c = matrix(m * g.c_row);
    RtStored sa = {a_by_cols ? 'T' : 'N', a_by_cols ? m : k};
    RtStored sb = {b_by_cols ? 'T' : 'N', b_by_cols ? k : n};
    float *gap = matrix(m * g.c_row);
    memcpy(gap, c, (size_t)(m * g.c_row) * sizeof *c);
    CHECK(rt_sgemm_plain(sa, sb, m, n, k, a, b, c, g.c_row));
    CHECK_MSG(wrong(&g, a, b, c) == 0, "%d x %d x %d: wrong", (int)m, (int)n, (int)k);
    for (int64_t r = 0; r < m; r++) CHECK(c[r * g.c_row + n] == gap[r * g.c_row + n]);
    for (int64_t r = 0; r < m; r++) { /* a row by itself has the same bits */
        float *row = matrix(n);
        CHECK(rt_sgemm_plain(sa, sb, 1, n, k, a + r * g.a_row, b, row, n));
        CHECK(memcmp(row, c + r * g.c_row, (size_t)n * sizeof *c) == 0);
        free(row);
    }
    free(a), free(b), free(c), free(gap);
}

TEST(a_product_without_a_library) {
    for (int by = 0; by < 4; by++)
        for (int64_t m = 1; m < 16; m += 5) {
            check_plain(m, 1, 1, by & 1, by & 2);
            check_plain(m, 16, 256, by & 1, by & 2);
            check_plain(m, 39, 600, by & 1, by & 2);
        }
}

/* What our own kernels promise: a chain of fused operations for each block of k, and the blocks
 * added in order. */
static float chain(const RtTile *t, int64_t i, int64_t j) {
    float all = 0;
    for (int64_t p = 0; p < t->k; p += RT_PANEL_K) {
        float sum = 0;
        for (int64_t q = p; q < t->k && q < p + RT_PANEL_K; q++)
            sum = fmaf(t->a[i * t->a_row + q * t->a_col], t->b[q * t->b_row + j * t->b_col], sum);
        all = p ? all + sum : sum;
    }
    return all;
}

/* By vectors of sixteen, where the machine has them, and of eight; rows of C have a gap. */
static void check_own(int64_t m, int64_t n, int64_t k, bool a_by_cols) {
    int64_t c_row = n + 3;
    float *a = matrix(m * k), *b = matrix(k * n), *c = matrix(m * c_row), *gap = matrix(m * c_row);
    float *packed = matrix(k * n);
    RtTile t = {.a = a, .a_row = a_by_cols ? 1 : k, .a_col = a_by_cols ? m : 1, .packed = packed};
    t.b = b, t.b_row = 1, t.b_col = k, t.c = c, t.c_row = c_row, t.m = m, t.n = n, t.k = k;
    for (int64_t i = 0; i * RT_PANEL < n; i++) rt_gemm_pack(&t, packed, i);
    for (int narrow = 0; narrow < 2; narrow++) {
        memcpy(c, gap, (size_t)(m * c_row) * sizeof *c);
        t.narrow = narrow;
        rt_gemm_tile(&t);
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < c_row; j++)
                CHECK_MSG(c[i * c_row + j] == (j < n ? chain(&t, i, j) : gap[i * c_row + j]),
                          "%d x %d x %d: element %d, %d", (int)m, (int)n, (int)k, (int)i, (int)j);
    }
    free(a), free(b), free(c), free(gap), free(packed);
}

TEST(our_own_kernels_are_chains_whatever_the_vectors) {
    if (!rt_gemm_own()) {
        fprintf(stderr, "no kernels of our own here: skipped\n");
        return;
    }
    for (int64_t m = 1; m < 20; m += m < 9 ? 1 : 5)
        for (int64_t n = 1; n < 150; n += n < 18 ? 1 : 43)
            for (int64_t k = 1; k < 300; k += k < 9 ? 5 : 251) {
                check_own(m, n, k, false);
                check_own(m, n, k, true);
            }
}

static bool amx_here(void) {
    (void)rt_amx_use();
    if (!rt_pieces_available()) fprintf(stderr, "no AMX here: skipped\n");
    return rt_pieces_available();
}

TEST(on_amx_too) {
    if (amx_here()) check_shapes(true);
}

/* c = a b with the runtime's product, with AMX or without. */
static void multiply(const rt_gemm *g, bool amx, const float *a, const float *b, float *c) {
    RtRuntime rt;
    RtExec x = host(&rt, amx);
    CHECK(rt_gemm_f32(&x, g, a, b, c) == GNNC_OK);
    rt_pool_free(&rt.pool);
}

static double square_error(const rt_gemm *g, const float *a, const float *b, const float *c) {
    double sum = 0;
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            double e = product(g, a, b, 0, i, j) - (double)c[i * g->c_row + j];
            sum += e * e;
        }
    return sum;
}

/* Three bf16 for an f32 are no approximation of f32: less is rounded than without them. */
TEST(amx_is_as_exact_as_f32) {
    static const Shape some[] = {{1, 256, 160, 256, false, true, false, false},
                                 {1, 256, 160, 1000, false, false, false, false},
                                 {1, 160, 192, 5000, true, false, true, false}};
    for (int i = 0; i < 3 && amx_here(); i++) {
        rt_gemm g = layout(&some[i]);
        float *a = matrix(g.m * g.k), *b = matrix(g.k * g.n), *c = matrix(g.m * g.n);
        multiply(&g, false, a, b, c);
        double plain = square_error(&g, a, b, c);
        multiply(&g, true, a, b, c);
        double amx = square_error(&g, a, b, c);
        CHECK_MSG(amx < 0.5 * plain, "square error %g, without AMX %g", amx, plain);
        free(a), free(b), free(c);
    }
}

/* Where pieces do not exist the result is what it is without AMX; far sizes are multiplied. */
static void check_strange(const Shape *s, float strange, bool in_b) {
    rt_gemm g = layout(s);
    float *a = matrix(g.m * g.k), *b = matrix(g.k * g.n);
    float *c = matrix(g.m * g.n), *want = matrix(g.m * g.n);
    (in_b ? b : a)[(in_b ? g.n : g.m) * g.k / 2] = strange;
    multiply(&g, false, a, b, want);
    multiply(&g, true, a, b, c);
    for (int64_t i = 0; i < g.m * g.n; i++) {
        bool same = isnan(want[i])   ? isnan(c[i])
                    : isinf(want[i]) ? want[i] == c[i]
                                     : fabsf(want[i] - c[i]) <= 1e-6f * (400 + fabsf(want[i]));
        CHECK_MSG(same, "%g in %s: %g is not %g", (double)strange, in_b ? "B" : "A", (double)c[i],
                  (double)want[i]);
        if (!same) break;
    }
    free(a), free(b), free(c), free(want);
}

TEST(strange_numbers_on_amx) {
    static const float strange[] = {INFINITY, -INFINITY, NAN,       0x1.fffffep127f, -0x1.fep127f,
                                    0x1p100f, 0x1p-100f, 0x1p-130f, 0x1.000002p0f};
    static const Shape some[] = {{1, 300, 200, 290, false, true, false, false},
                                 {1, 160, 192, 1500, true, false, true, false}};
    for (size_t i = 0; i < sizeof strange / sizeof *strange && amx_here(); i++)
        for (int k = 0; k < 4; k++) check_strange(&some[k / 2], strange[i], k % 2);
}

/* All of an operand so small that its pieces are subnormal: lost, but nothing else is changed. */
TEST(tiny_numbers_on_amx) {
    static const float tiny[] = {0x1p-105f, 0x1p-115f, 0x1p-120f, 0x1p-128f, 0x1p-134f};
    static const Shape some[] = {{1, 300, 200, 290, false, true, false, false},
                                 {1, 160, 192, 1500, true, false, true, false}};
    for (int i = 0; i < 20 && amx_here(); i++) {
        rt_gemm g = layout(&some[i % 2]);
        float *a = matrix(g.m * g.k), *b = matrix(g.k * g.n), *c = matrix(g.m * g.n);
        float *x = i % 4 < 2 ? b : a, most = 0;
        for (int64_t p = 0; p < (x == b ? g.n : g.m) * g.k; p++) x[p] *= tiny[i / 4];
        multiply(&g, true, a, b, c);
        for (int64_t p = 0; p < g.m * g.n; p++) most = fmaxf(most, fabsf(c[p]));
        CHECK_MSG(most < tiny[i / 4] * (float)g.k, "%g times at most 1: %g", (double)tiny[i / 4],
                  (double)most);
        free(a), free(b), free(c);
    }
}

/* Cuts of C change no bit. */
TEST(rows_by_themselves_on_amx) {
    if (!amx_here()) return;
    rt_gemm g = layout(&(Shape){1, 400, 200, 290, false, true, false, false});
    float *a = matrix(g.m * g.k), *b = matrix(g.k * g.n), *c = matrix(g.m * g.n);
    float *part = matrix(g.m * g.n);
    multiply(&g, true, a, b, c);
    g.m = 350;
    multiply(&g, true, a + 50 * g.k, b, part);
    CHECK(memcmp(part, c + 50 * g.n, (size_t)(g.m * g.n) * sizeof *c) == 0);
    free(a), free(b), free(c), free(part);
}

/* ---- signals ----------------------------------------------------------------------------- */
static uintptr_t stack_lo, stack_hi;
static volatile sig_atomic_t caught, elsewhere;

static void where_are_we(int signal) {
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    (void)signal;
    caught++;
    if (here < stack_lo || here >= stack_hi) elsewhere++;
}

/* A handler's frame lies where the stack pointer points to, and that is the thread's stack
 * whenever a signal is heard: a library's kernels may have it point into the heap. */
TEST(signals_meet_a_stack) {
    pthread_attr_t of;
    void *lo = NULL;
    size_t n = 0;
    CHECK(pthread_getattr_np(pthread_self(), &of) == 0 && !pthread_attr_getstack(&of, &lo, &n));
    pthread_attr_destroy(&of);
    stack_lo = (uintptr_t)lo, stack_hi = stack_lo + n;
    struct sigaction before, now = {.sa_handler = where_are_we};
    struct itimerval soon = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
    CHECK(sigaction(SIGALRM, &now, &before) == 0);
    rt_gemm g = layout(&(Shape){1, 16, 7, 2708, true, false, true, false});
    float *a = matrix(g.m * g.k), *b = matrix(g.k * g.n), *c = matrix(g.m * g.n);
    setitimer(ITIMER_REAL, &soon, NULL);
    for (int i = 0; i < 100000 && caught < 1000; i++) multiply(&g, false, a, b, c);
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &before, NULL);
    CHECK_MSG(caught > 100 && elsewhere == 0, "%d signals, of them %d not on the stack",
              (int)caught, (int)elsewhere);
    free(a), free(b), free(c);
}

/* ---- 16 bits ---------------------------------------------------------------------------- */
typedef struct {
    rt_dtype in, out;
    double epsilon; /* of the result's type */
} Low;

static const Low lows[] = {{RT_BF16, RT_F32, 0x1p-24},
                           {RT_BF16, RT_BF16, 0x1p-8},
                           {RT_F16, RT_F32, 0x1p-24},
                           {RT_F16, RT_F16, 0x1p-11}};

static uint16_t *rounded(rt_dtype t, float *x, int64_t n) {
    uint16_t *y = aligned_alloc(64, ((size_t)n * sizeof *y / 64 + 2) * 64);
    if (!y) return NULL;
    rt_from_f32(t, y, x, n + 16);
    rt_to_f32(t, x, y, n + 16);
    return y;
}

/* Bytes of C, and its elements as f32. */
static void check_low(RtExec *x, const Shape *s, const Low *l) {
    rt_gemm g = layout(s);
    if (g.long_k && l->out != RT_F32) return;
    g.in = l->in, g.out = l->out;
    int64_t n_c = g.batch * g.c_batch, size = l->out == RT_F32 ? 4 : 2;
    float *a = matrix(g.batch * g.a_batch), *b = matrix(g.batch * g.b_batch), *c = matrix(n_c);
    uint16_t *a16 = rounded(l->in, a, g.batch * g.a_batch);
    uint16_t *b16 = rounded(l->in, b, g.batch * g.b_batch);
    char *first = (char *)matrix(n_c), *other = (char *)matrix(n_c);
    memcpy(first, other, (size_t)((n_c + 16) * size));
    char *gap = (char *)matrix(n_c);
    memcpy(gap, other, (size_t)((n_c + 16) * size));
    CHECK(rt_gemm_16(x, &g, a16, b16, first) == GNNC_OK);
    if (size == 2)
        rt_to_f32(l->out, c, (const uint16_t *)(const void *)first, n_c);
    else
        memcpy(c, first, (size_t)(n_c * size));
    int bad = 0;
    for (int64_t t = 0; t < g.batch; t++)
        for (int64_t i = 0; i < g.m; i++)
            for (int64_t j = 0; j < g.n; j++) {
                double want = product(&g, a, b, t, i, j);
                double got = (double)c[t * g.c_batch + i * g.c_row + j];
                double sum = 1e-6 * (8 + sqrt((double)g.k) * 8);
                bad += !(fabs(want - got) <= sum + l->epsilon * fabs(want));
            }
    CHECK_MSG(bad == 0, "%d x %d x %d: %d wrong", (int)s->m, (int)s->n, (int)s->k, bad);
    for (int64_t r = 0; s->c_apart && r < g.batch * g.m; r++)
        CHECK(!memcmp(first + (r * g.c_row + g.n) * size, gap + (r * g.c_row + g.n) * size,
                      (size_t)size));
    CHECK(memcmp(first + n_c * size, gap + n_c * size, (size_t)(16 * size)) == 0);
    check_packed(x, &g, a16, b16, first, n_c * size);
    RtError err = {""};
    RtAlloc from = rt_alloc_default();
    CHECK(rt_team_start(&x->rt->team, &from, 3, 2, &err) == GNNC_OK);
    x->threads = 3;
    CHECK(rt_gemm_16(x, &g, a16, b16, other) == GNNC_OK);
    CHECK_MSG(memcmp(first, other, (size_t)((n_c + 16) * size)) == 0, "other bits with 3 threads");
    rt_team_stop(x->rt->team);
    x->rt->team = NULL;
    x->threads = 1;
    free(a), free(b), free(c), free(a16), free(b16), free(first), free(other), free(gap);
}

/* By every way that this machine has. */
TEST(sixteen_bits) {
    enum { END = RT_BY_TILE_REGISTERS + 1 };
    for (int by = RT_BY_F32; by < END + amx_here(); by++) {
        RtRuntime rt;
        RtExec x = host(&rt, by == END); /* at last in f32, but on AMX */
        rt.products16 = by == END ? RT_BY_F32 : (RtProducts16)by;
        if (!rt_products_16_here(rt.products16)) continue;
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
            for (size_t k = 0; k < sizeof lows / sizeof *lows; k++)
                check_low(&x, &shapes[i], &lows[k]);
        rt_pool_free(&rt.pool);
    }
}

/* Converted operands have the bits that f32's product of them has. */
static void check_widened(const Shape *s, rt_dtype in) {
    rt_gemm g = layout(s);
    float *a = matrix(g.m * g.k), *b = matrix(g.k * g.n), *c = matrix(g.m * g.n);
    float *want = matrix(g.m * g.n);
    uint16_t *a16 = rounded(in, a, g.m * g.k), *b16 = rounded(in, b, g.k * g.n);
    multiply(&g, false, a, b, want);
    RtRuntime rt;
    RtExec x = host(&rt, false);
    rt.products16 = RT_BY_F32;
    g.in = in, g.out = RT_F32;
    CHECK(rt_gemm_16(&x, &g, a16, b16, c) == GNNC_OK);
    CHECK_MSG(!memcmp(c, want, (size_t)(g.m * g.n) * sizeof *c), "%d x %d x %d: not f32's bits",
              (int)s->m, (int)s->n, (int)s->k);
    rt_pool_free(&rt.pool);
    free(a), free(b), free(c), free(want), free(a16), free(b16);
}

TEST(widened_is_the_product_in_f32) {
    static const Shape some[] = {{1, 1, 128, 128, false, false, false, false},
                                 {1, 2500, 3, 9, false, true, false, false},
                                 {1, 250, 300, 600, true, false, false, false},
                                 {1, 121, 65, 513, true, true, false, false}};
    for (size_t i = 0; rt_gemm_own() && i < sizeof some / sizeof *some; i++) {
        check_widened(&some[i], RT_BF16);
        check_widened(&some[i], RT_F16);
    }
}

/* Two pieces of bf16 hold an f16: on AMX, too, the bits are those of f32's product. */
TEST(two_pieces_hold_f16) {
    static const Shape some[] = {{1, 300, 200, 290, false, true, false, false},
                                 {1, 250, 144, 600, true, false, false, false},
                                 {1, 160, 192, 1500, true, false, true, false}};
    for (int i = 0; i < 3 && amx_here(); i++) {
        rt_gemm g = layout(&some[i]);
        float *a = matrix(g.m * g.k), *b = matrix(g.k * g.n), *c = matrix(g.m * g.n);
        float *want = matrix(g.m * g.n);
        uint16_t *a16 = rounded(RT_F16, a, g.m * g.k), *b16 = rounded(RT_F16, b, g.k * g.n);
        multiply(&g, true, a, b, want);
        RtRuntime rt;
        RtExec x = host(&rt, true);
        rt.products16 = RT_BY_F32, g.in = RT_F16, g.out = RT_F32;
        CHECK(rt_gemm_16(&x, &g, a16, b16, c) == GNNC_OK);
        CHECK_MSG(!memcmp(c, want, (size_t)(g.m * g.n) * sizeof *c), "shape %d: other bits", i);
        rt_pool_free(&rt.pool);
        free(a), free(b), free(c), free(want), free(a16), free(b16);
    }
}

/* Infinities and what is no number, in A and in B, are what they are in f32; and so by any cut. */
static void check_strange_16(const Shape *s, float strange, bool in_b) {
    rt_gemm g = layout(s);
    float *a = matrix(g.m * g.k), *b = matrix(g.k * g.n);
    float *c = matrix(g.m * g.n), *want = matrix(g.m * g.n);
    (in_b ? b : a)[(in_b ? g.n : g.m) * g.k / 2] = strange;
    uint16_t *a16 = rounded(RT_F16, a, g.m * g.k), *b16 = rounded(RT_F16, b, g.k * g.n);
    multiply(&g, false, a, b, want);
    RtRuntime rt;
    RtExec x = host(&rt, amx_here());
    rt.products16 = RT_BY_F32, g.in = RT_F16, g.out = RT_F32;
    CHECK(rt_gemm_16(&x, &g, a16, b16, c) == GNNC_OK);
    for (int64_t i = 0; i < g.m * g.n; i++) {
        bool same = isnan(want[i]) ? isnan(c[i])
                    : isinf(want[i])
                        ? want[i] == c[i]
                        : fabsf(want[i] - c[i]) <=
                              1e-6f * (2000 + (fabsf(strange) < INFINITY ? fabsf(strange) : 0));
        CHECK_MSG(same, "%g in %s: %g is not %g", (double)strange, in_b ? "B" : "A", (double)c[i],
                  (double)want[i]);
        if (!same) break;
    }
    rt_pool_free(&rt.pool);
    free(a), free(b), free(c), free(want), free(a16), free(b16);
}

TEST(strange_numbers_of_sixteen_bits) {
    static const float strange[] = {INFINITY, -INFINITY, NAN, 65504.0f, 0x1p-24f};
    static const Shape some[] = {{1, 300, 200, 600, false, true, false, false},
                                 {1, 160, 192, 1500, true, false, true, false}};
    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++)
        for (int k = 0; k < 4; k++) check_strange_16(&some[k / 2], strange[i], k % 2);
}

/* Cuts of C change no bit, by any way. */
TEST(rows_of_sixteen_bits_by_themselves) {
    rt_gemm g = layout(&(Shape){1, 400, 200, 290, false, true, false, false});
    float *a = matrix(g.m * g.k), *b = matrix(g.k * g.n);
    float *c = matrix(g.m * g.n), *part = matrix(g.m * g.n);
    uint16_t *a16 = rounded(RT_BF16, a, g.m * g.k), *b16 = rounded(RT_BF16, b, g.k * g.n);
    g.in = RT_BF16, g.out = RT_F32;
    for (RtProducts16 by = RT_BY_F32; by <= RT_BY_TILE_REGISTERS; by++) {
        if (!rt_products_16_here(by)) continue;
        RtRuntime rt;
        RtExec x = host(&rt, false);
        rt.products16 = by, g.m = 400;
        CHECK(rt_gemm_16(&x, &g, a16, b16, c) == GNNC_OK);
        g.m = 339;
        CHECK(rt_gemm_16(&x, &g, a16 + 61 * g.k, b16, part) == GNNC_OK);
        CHECK(!memcmp(part, c + 61 * g.n, (size_t)(g.m * g.n) * sizeof *c));
        rt_pool_free(&rt.pool);
    }
    free(a), free(b), free(c), free(part), free(a16), free(b16);
}

/* Every bf16 there is, exactly, and what lies between two of them; in plain and in wide code. */
TEST(rounding_bf16) {
    for (uint32_t i = 0; i < 0x10000; i++) {
        uint32_t bits = i << 16 | 0x8000; /* halfway to the next, for what is finite */
        uint16_t in[17], out[17];
        float f[17], x;
        memcpy(&x, &bits, sizeof x);
        for (int k = 0; k < 17; k++) in[k] = (uint16_t)i;
        rt_to_f32(RT_BF16, f, in, 17);
        CHECK(!memcmp(f, &(float){rt_bf16_to_f32(in[0])}, sizeof *f) &&
              !memcmp(f, f + 16, sizeof *f));
        rt_from_f32(RT_BF16, out, f, 17);
        bool nan = (i & 0x7fff) > 0x7f80;
        CHECK(out[0] == (nan ? i | 0x40 : i) && out[16] == out[0]);
        if ((i & 0x7fff) >= 0x7f80) continue;
        for (int k = 0; k < 17; k++) f[k] = x;
        rt_from_f32(RT_BF16, out, f, 17);
        CHECK(out[0] == i + (i & 1) && out[16] == out[0]);
    }
}

/* Every f16 there is, and what lies between two of them. */
TEST(rounding) {
    for (uint32_t i = 0; i < 0x7c00; i++) {
        uint16_t in[2] = {(uint16_t)i, (uint16_t)(i + 1)}, out[17];
        float f[17], x[2];
        rt_to_f32(RT_F16, x, in, 2);
        CHECK(x[0] == rt_f16_to_f32(in[0]));
        if (i + 1 == 0x7c00) break;
        for (int k = 0; k < 17; k++) f[k] = x[0] + (x[1] - x[0]) * 0.5f; /* plain and wide code */
        rt_from_f32(RT_F16, out, f, 17);
        CHECK(out[0] == in[i & 1] && out[16] == in[i & 1]);
    }
    float special[] = {INFINITY, 65519.f, 65520.f, -0.f, 0x1p-25f, 0x1.8p-25f, NAN};
    uint16_t out[7], want[] = {0x7c00, 0x7bff, 0x7c00, 0x8000, 0, 1};
    rt_from_f32(RT_F16, out, special, 7);
    CHECK(!memcmp(out, want, sizeof want) && (out[6] & 0x7fff) > 0x7c00);
    float pair[] = {1.00390625f, 1.01171875f, NAN}; /* halfway: to even */
    rt_from_f32(RT_BF16, out, pair, 3);
    CHECK(out[0] == 0x3f80 && out[1] == 0x3f82 && (out[2] & 0x7fff) > 0x7f80);
}

TEST_MAIN()
