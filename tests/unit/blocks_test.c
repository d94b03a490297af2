/* Loops over blocks of rows: every row once, by the thread count's leave; a local buffer that
 * holds one block stands for the whole; sums over chunks and products are those of all rows. */
#include "test.h"

#include <math.h>

#include "runtime/exec/blocks.h"
#include "runtime/exec/exec.h"

enum { N_LOCAL, N_PTR, WIDTH = 5, OUT = 3 };

typedef struct {
    int64_t rows;
    int blocks; /* expected */
} Case;

static const Case cases[] = {{0, 1},    {1, 1},    {1025, 1},  {4096, 1},
                             {8192, 2}, {9000, 3}, {20000, 5}, {100003, 16}};

static int64_t buf_count(int buf, const int64_t *n) {
    return buf == N_LOCAL ? n[0] * WIDTH : n[0] + 1;
}

/* arg: out [rows, WIDTH]; out[r, :] = r */
static void rows_kernel(void *const *arg, const int64_t *n, int64_t lo, int64_t hi) {
    float *out = arg[0];
    (void)n;
    for (int64_t r = lo; r < hi; r++)
        for (int i = 0; i < WIDTH; i++) out[r * WIDTH + i] = (float)(r % 1000);
}

/* arg: local, out [rows, WIDTH]; flat: out += local */
static void flat_kernel(void *const *arg, const int64_t *n, int64_t lo, int64_t hi) {
    const float *x = arg[0];
    float *out = arg[1];
    (void)n;
    for (int64_t i = lo; i < hi; i++) out[i] += x[i];
}

/* arg: local, partial [chunks] */
static void chunk_kernel(void *const *arg, const int64_t *n, int64_t lo, int64_t hi) {
    const float *x = arg[0];
    double *part = arg[1];
    int64_t chunks = n[1], size = chunks ? (n[0] + chunks - 1) / chunks : 0;
    for (int64_t c = lo; c < hi; c++) {
        part[c] = 0;
        for (int64_t r = c * size; r < (c + 1) * size && r < n[0]; r++) part[c] += x[r * WIDTH];
    }
}

typedef struct {
    RtExec *x;
    float *out, *w, *y, *gw, *gy; /* out[rows, WIDTH], y = out w, gw = out' gy */
    double part[RT_SUM_CHUNKS];
} Run;

/* local = r;  out += local;  y = local w;  gw = local' gy;  part = sums of local */
static int run(Run *u, bool in_blocks) {
    RtExec *x = u->x;
    int64_t rows = x->n[0];
    const int local[] = {N_LOCAL};
    int n = 0;
    rt_gemm m = {.batch = 1,
                 .m = rows,
                 .n = OUT,
                 .k = WIDTH,
                 .a_row = WIDTH,
                 .a_col = 1,
                 .b_row = OUT,
                 .b_col = 1,
                 .c_row = OUT};
    rt_gemm k = {.batch = 1,
                 .m = WIDTH,
                 .n = OUT,
                 .k = rows,
                 .a_row = 1,
                 .a_col = WIDTH,
                 .b_row = OUT,
                 .b_col = 1,
                 .c_row = OUT,
                 .long_k = true};
    if (in_blocks) rt_blocks_begin(x, rows, local, 1);
    while (in_blocks ? rt_blocks_next(x) : n == 0) {
        CHECK((uintptr_t)x->buf[N_LOCAL] % RT_ALIGN == 0);
        rt_launch_balanced(x, rows_kernel, (void *const[]){x->buf[N_LOCAL]}, x->program->n_maps,
                           (const int[]){0, 1});
        rt_launch(x, flat_kernel, (void *const[]){x->buf[N_LOCAL], u->out}, rows * WIDTH);
        CHECK(rt_gemm_f32(x, &m, x->buf[N_LOCAL], u->w, u->y) == GNNC_OK);
        CHECK(rt_gemm_f32(x, &k, x->buf[N_LOCAL], u->gy, u->gw) == GNNC_OK);
        rt_launch_chunks(x, chunk_kernel, (void *const[]){x->buf[N_LOCAL], u->part}, x->n[1]);
        n++;
    }
    return n;
}

static float *floats(int64_t n) {
    float *x = aligned_alloc(64, ((size_t)n * sizeof *x / 64 + 1) * 64);
    for (int64_t i = 0; x && i < n; i++) x[i] = (float)(i % 7) - 3;
    return x;
}

static Run run_new(RtExec *x) {
    int64_t n = x->n[0];
    Run u = {x,
             floats(n * WIDTH),
             floats(WIDTH * OUT),
             floats(n * OUT),
             floats(WIDTH * OUT),
             floats(n * OUT),
             {0}};
    return u;
}

static void run_free(Run *u) {
    free(u->out), free(u->w), free(u->y), free(u->gw), free(u->gy);
}

static bool same(const float *x, const float *y, int64_t n) {
    return n == 0 || !memcmp(x, y, (size_t)n * sizeof *x);
}

static bool close_to(const float *x, const float *y, int n) {
    bool ok = true;
    for (int i = 0; i < n; i++) ok &= fabsf(x[i] - y[i]) <= 1e-4f * (1 + fabsf(y[i]));
    return ok;
}

static void check_case(RtExec *x, const Case *c, int threads, const Run *whole, Run *first) {
    gnnc_counters before = x->rt->count;
    RtError err = {""};
    RtAlloc from = rt_alloc_default();
    if (threads > 1) CHECK(rt_team_start(&x->rt->team, &from, threads, 2, &err) == GNNC_OK);
    void *at = x->buf[N_LOCAL];
    Run u = run_new(x);
    CHECK(run(&u, true) == c->blocks);
    CHECK(x->buf[N_LOCAL] == at);
    CHECK(x->rt->count.launches == before.launches + 3);
    CHECK(x->rt->count.library_calls == before.library_calls + 2);
    CHECK(same(u.out, whole->out, c->rows * WIDTH) && same(u.y, whole->y, c->rows * OUT));
    CHECK(!memcmp(u.part, whole->part, sizeof u.part));
    CHECK(close_to(u.gw, whole->gw, WIDTH * OUT));
    if (threads == 1)
        memcpy(first->gw, u.gw, WIDTH * OUT * sizeof *u.gw);
    else
        CHECK(same(u.gw, first->gw, WIDTH * OUT));
    run_free(&u);
    rt_team_stop(x->rt->team);
    x->rt->team = NULL;
}

TEST(blocks_do_what_all_rows_do) {
    static const rt_buf bufs[] = {{.name = "local", .kind = RT_BUF_TEMP, .dt = RT_F32},
                                  {.name = "ptr", .kind = RT_BUF_MAP, .dt = RT_I64, .block = -1}};
    static const rt_map maps[] = {{.ptr_buf = N_PTR}, {.ptr_buf = N_PTR}};
    static const rt_space spaces[] = {{.name = "rows", .fixed = -1}};
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        const Case *c = &cases[i / 2];
        const rt_program p = {.bufs = bufs,
                              .n_bufs = 2,
                              .spaces = spaces,
                              .n_spaces = 1,
                              .maps = maps,
                              .n_maps = 1 + (int)(i % 2),
                              .buf_count = buf_count};
        RtRuntime rt = {.scratch_bytes = 0};
        rt_pool_init(&rt.pool, NULL);
        int64_t chunks = (c->rows + RT_SUM_ROWS - 1) / RT_SUM_ROWS,
                *ptr = malloc((size_t)(c->rows + 1) * 8);
        int64_t n[2] = {c->rows, chunks < 1 ? 1 : chunks > RT_SUM_CHUNKS ? RT_SUM_CHUNKS : chunks};
        for (int64_t r = 0; r <= c->rows; r++) ptr[r] = r < 10 ? 100 * r : 1000 + r;
        int64_t all[RT_CHUNKS + 1];
        for (int k = 0; k <= RT_CHUNKS; k++) all[k] = c->rows * k / RT_CHUNKS;
        const int64_t *balance[] = {all};
        int64_t block = rt_block_bytes(c->rows * WIDTH * 4, c->rows ? c->rows : 1, RT_ALIGN);
        void *buf[2] = {floats(c->rows * WIDTH), ptr};
        RtExec x = {.program = &p, .n = n, .buf = buf, .balance = balance, .threads = 1, .rt = &rt};
        Run whole = run_new(&x), first = run_new(&x);
        run(&whole, false);
        free(buf[N_LOCAL]);
        buf[N_LOCAL] = floats(block / 4); /* under a sanitizer: and not one element more */
        for (int threads = 1; threads <= 3; threads += 2)
            check_case(&x, c, threads, &whole, &first);
        run_free(&whole), run_free(&first);
        free(buf[N_LOCAL]), free(ptr);
        rt_pool_free(&rt.pool);
    }
}

/* arg: the end of the first thread's rows */
static void first_rows(void *const *arg, const int64_t *n, int64_t lo, int64_t hi) {
    (void)n;
    if (lo == 0) *(int64_t *)arg[0] = hi;
}

/* One relation has its entries at the first row, the other at the last: only both show the half. */
TEST(rows_of_several_maps_are_cut_by_the_entries_of_all) {
    enum { ROWS = 1000 };
    static const rt_space spaces[] = {{.name = "rows", .fixed = -1}};
    static const rt_map maps[] = {{.ptr_buf = 0}, {.ptr_buf = 1}};
    const rt_program p = {.spaces = spaces, .n_spaces = 1, .maps = maps, .n_maps = 2};
    int64_t first[ROWS + 1], last[ROWS + 1], n[] = {ROWS}, end = 0;
    for (int r = 0; r <= ROWS; r++) first[r] = r ? 5000 : 0;
    for (int r = 0; r <= ROWS; r++) last[r] = r == ROWS ? 5000 : 0;
    RtRuntime rt = {.scratch_bytes = 0};
    RtError err = {""};
    RtAlloc from = rt_alloc_default();
    RtExec x = {.program = &p, .n = n, .buf = (void *[]){first, last}, .threads = 2, .rt = &rt};
    CHECK(rt_team_start(&rt.team, &from, 2, 2, &err) == GNNC_OK);
    rt_launch_balanced(&x, first_rows, (void *const[]){&end}, 2, (const int[]){0, 1});
    CHECK_MSG(end > ROWS / 2 - 20 && end < ROWS / 2 + 20, "cut at row %lld", (long long)end);
    CHECK(rt.count.launches == 1);
    rt_team_stop(rt.team);
}

TEST(a_block_never_outgrows_its_room) {
    int64_t room = 0;
    for (int64_t rows = 1; rows < 70000; rows++) {
        int64_t block = rt_block_rows(rows) < rows ? rt_block_rows(rows) : rows;
        CHECK(rt_block_most(rows) >= room); /* of fewer rows, too: a batch may have any number */
        room = rt_block_most(rows);
        CHECK(block <= room);
    }
}

TEST_MAIN()
