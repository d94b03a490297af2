/* Steps that run block by block of rows give what they give one after the other, to the last
 * bit: for few and many rows, none at all, parts, and any number of threads. */
#include "test.h"

#include "exec.h"

enum { WIDE = 300, NARROW = 20, MOST = 2500 };

/* h = z + 1 in place: flat, an iteration per element */
static void add_one(void *const *arg, const int64_t *n, int64_t lo, int64_t hi) {
    (void)n;
    float *z = arg[0];
    for (int64_t i = lo; i < hi; i++) z[i] += 1;
}

/* y = y + 2 h[:, 0..NARROW): an iteration per row */
static void add_rows(void *const *arg, const int64_t *n, int64_t lo, int64_t hi) {
    (void)n;
    float *y = arg[0];
    const float *h = arg[1];
    for (int64_t r = lo; r < hi; r++)
        for (int64_t j = 0; j < NARROW; j++) y[r * NARROW + j] += 2 * h[r * WIDE + j];
}

/* part[c] = sum of y's rows of part c: n = {rows, parts} */
static void sum_part(void *const *arg, const int64_t *n, int64_t lo, int64_t hi) {
    float *part = arg[0];
    const float *y = arg[1];
    int64_t len = (n[0] + n[1] - 1) / n[1];
    for (int64_t c = lo; c < hi; c++) {
        part[c] = 0;
        for (int64_t r = c * len; r < (c + 1) * len && r < n[0]; r++)
            for (int64_t j = 0; j < NARROW; j++) part[c] += y[r * NARROW + j];
    }
}

typedef struct {
    float x[MOST * NARROW], w[NARROW * WIDE], z[MOST * WIDE], y[MOST * NARROW], part[16];
} Values;

static Values *values(void) {
    Values *v = calloc(1, sizeof *v);
    uint32_t seed = 7;
    float *f = v ? v->x : NULL;
    for (size_t i = 0; v && i < MOST * NARROW + NARROW * WIDE; i++) {
        seed = seed * 1664525u + 1013904223u;
        f[i] = (float)(seed >> 8) * 0x1p-23f - 1;
    }
    return v;
}

/* z = x w; z += 1; y = z w^T; y += 2 z; part = sums of y */
static gnnc_status run(RtExec *x, Values *v, int64_t parts, bool together) {
    int64_t rows = x->n[0];
    rt_gemm up = {.batch = 1, .m = rows, .n = WIDE, .k = NARROW, .a_row = NARROW, .a_col = 1};
    up.b_row = WIDE, up.b_col = 1, up.c_row = WIDE;
    rt_gemm down = {.batch = 1, .m = rows, .n = NARROW, .k = WIDE, .a_row = WIDE, .a_col = 1};
    down.b_row = 1, down.b_col = WIDE, down.c_row = NARROW;
    void *const up_arg[] = {v->x, v->w, v->z}, *const down_arg[] = {v->z, v->w, v->y};
    void *const one_arg[] = {v->z}, *const rows_arg[] = {v->y, v->z};
    void *const part_arg[] = {v->part, v->y};
    const rt_link link[] = {{.arg = up_arg, .gemm = &up},
                            {.kernel = add_one, .arg = one_arg, .per_row = WIDE},
                            {.arg = down_arg, .gemm = &down},
                            {.kernel = add_rows, .arg = rows_arg, .per_row = 1},
                            {.kernel = sum_part, .arg = part_arg}};
    if (together) return rt_chain(x, parts ? 5 : 4, link, rows, parts);
    gnnc_status st = rt_gemm_f32(x, &up, v->x, v->w, v->z);
    rt_launch(x, add_one, one_arg, rows * WIDE);
    if (st == GNNC_OK) st = rt_gemm_f32(x, &down, v->z, v->w, v->y);
    rt_launch(x, add_rows, rows_arg, rows);
    if (parts) rt_launch(x, sum_part, part_arg, parts);
    return st;
}

static void check_rows(RtExec *x, int64_t rows, int64_t parts, int threads) {
    Values *want = values(), *got = values();
    int64_t n[] = {rows, parts};
    RtError err = {""};
    RtAlloc from = rt_alloc_default();
    CHECK(want && got);
    x->n = n;
    CHECK(run(x, want, parts, false) == GNNC_OK);
    CHECK(rt_team_start(&x->rt->team, &from, threads, 2, &err) == GNNC_OK);
    x->threads = threads;
    x->rt->count = (gnnc_counters){.launches = 0};
    got->part[0] = 99; /* no row: 0, not what was there */
    CHECK(run(x, got, parts, true) == GNNC_OK);
    CHECK(x->rt->count.library_calls == 2 && x->rt->count.launches == 2 + (parts > 0));
    if (!parts) got->part[0] = 0;
    CHECK_MSG(memcmp(want, got, sizeof *want) == 0, "%d rows in %d parts, %d threads: other bits",
              (int)rows, (int)parts, threads);
    rt_team_stop(x->rt->team);
    x->rt->team = NULL, x->threads = 1;
    free(want), free(got);
}

TEST(together_as_one_after_the_other) {
    static const int64_t rows[] = {0, 1, 23, 24, 25, 700, MOST};
    RtRuntime rt = {.scratch_bytes = 0};
    rt_pool_init(&rt.pool, NULL);
    RtExec x = {.threads = 1, .rt = &rt};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int threads = 1; threads <= 3; threads++) {
            check_rows(&x, rows[i], 0, threads);
            check_rows(&x, rows[i], 1 + rows[i] / 256, threads);
        }
    rt_pool_free(&rt.pool);
}

TEST_MAIN()
