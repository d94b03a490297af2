/* The pipeline: order, errors, cancelling, resuming; columns of batches. */
#include "sample_util.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "runtime/batch/pipeline.h"

enum { SLOTS = 3 };

typedef struct {
    int64_t slot[16];
    int64_t fails_at;
    atomic_int busy[16], clashes;
    int ns;
} Maker;

static void nap(int ns) {
    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

static gnnc_status make(void *user, int worker, int64_t number, int slot, RtError *err) {
    Maker *m = user;
    (void)worker;
    if (atomic_fetch_add(&m->busy[slot], 1)) atomic_fetch_add(&m->clashes, 1);
    m->slot[slot] = number * number;
    if (m->ns) nap(m->ns * (int)(1 + number % 3));
    atomic_fetch_sub(&m->busy[slot], 1);
    if (number == m->fails_at)
        return rt_fail(err, GNNC_E_VALUE, "item %lld is bad", (long long)number);
    return GNNC_OK;
}

static RtPipeline *pipeline_of(Maker *m, int n_workers) {
    RtPipeline *p;
    RtPipelineSpec spec = {make, m, n_workers, SLOTS, 1};
    CHECK(rt_pipeline_start(&p, NULL, &spec, NULL) == GNNC_OK);
    return p;
}

TEST(items_come_in_order_each_in_a_slot_of_its_own) {
    for (int workers = 0; workers <= 5; workers++)
        for (int slow = 0; slow < 3; slow++) {
            Maker m = {.fails_at = -1, .ns = slow == 1 ? 20000 : 0};
            RtPipeline *p = pipeline_of(&m, workers);
            int64_t number;
            int slot;
            for (int64_t first = 0; first < 80; first += 37) { /* the middle of an epoch too */
                rt_pipeline_begin(p, first, 60);
                for (int64_t k = first; k < 60; k++) {
                    CHECK(rt_pipeline_next(p, &number, &slot, NULL) == GNNC_OK);
                    CHECK(number == k && slot >= 0 && m.slot[slot] == k * k);
                    if (slow == 2) nap(20000);
                    CHECK(m.slot[slot] == k * k); /* still mine */
                }
                CHECK(rt_pipeline_next(p, &number, &slot, NULL) == GNNC_OK && slot == -1);
            }
            RtPipelineStats s = rt_pipeline_stats(p);
            CHECK(s.n_items == 60 + 23 && s.prepare_ns > 0);
            if (workers && slow == 1) CHECK(s.consumer_ns > 0);
            if (workers && slow == 2) CHECK(s.producer_ns > 0);
            rt_pipeline_stop(p);
            CHECK(atomic_load(&m.clashes) == 0);
        }
    rt_pipeline_stop(NULL);
}

TEST(items_may_stay_until_the_next_is_held_too) {
    for (int workers = 0; workers <= 3; workers++) {
        Maker m = {.fails_at = -1};
        RtPipeline *p;
        RtPipelineSpec spec = {make, &m, workers, workers ? SLOTS : 2, 2};
        CHECK(rt_pipeline_start(&p, NULL, &spec, NULL) == GNNC_OK);
        int64_t number;
        int slot, before = 0;
        rt_pipeline_begin(p, 5, 40);
        for (int64_t k = 5; k < 40; k++) {
            CHECK(rt_pipeline_next(p, &number, &slot, NULL) == GNNC_OK && number == k);
            nap(20000);
            CHECK(m.slot[slot] == k * k && (k == 5 || m.slot[before] == (k - 1) * (k - 1)));
            before = slot;
        }
        rt_pipeline_stop(p);
        CHECK(atomic_load(&m.clashes) == 0);
        spec.n_slots = workers ? 2 : 1; /* which are held, and none is filled */
        CHECK(rt_pipeline_start(&p, NULL, &spec, NULL) == GNNC_E_ARG && !p);
    }
}

TEST(the_first_failure_comes_in_its_turn) {
    for (int workers = 0; workers <= 4; workers++) {
        Maker m = {.fails_at = 7, .ns = 1000};
        RtPipeline *p = pipeline_of(&m, workers);
        int64_t number;
        int slot;
        rt_pipeline_begin(p, 0, 100);
        for (int64_t k = 0; k < 7; k++)
            CHECK(rt_pipeline_next(p, &number, &slot, NULL) == GNNC_OK && number == k);
        for (int again = 0; again < 3; again++) {
            RtError err = {""};
            CHECK(rt_pipeline_next(p, &number, &slot, &err) == GNNC_E_VALUE && slot == -1);
            CHECK_STR(err.text, "item 7 is bad");
        }
        rt_pipeline_begin(p, 8, 12); /* and is over with the next run */
        for (int64_t k = 8; k < 12; k++)
            CHECK(rt_pipeline_next(p, &number, &slot, NULL) == GNNC_OK && number == k);
        CHECK(rt_pipeline_next(p, &number, &slot, NULL) == GNNC_OK && slot == -1);
        rt_pipeline_stop(p);
    }
}

static void *cancel_soon(void *p) {
    nap(300000);
    rt_pipeline_cancel(p);
    return NULL;
}

TEST(cancelling_and_stopping_in_the_middle) {
    for (int workers = 0; workers <= 4; workers++) {
        Maker m = {.fails_at = -1, .ns = 50000};
        RtPipeline *p = pipeline_of(&m, workers);
        pthread_t other;
        int64_t number;
        int slot = 0;
        gnnc_status st = GNNC_OK;
        rt_pipeline_begin(p, 0, 1000000);
        CHECK(pthread_create(&other, NULL, cancel_soon, p) == 0);
        while (st == GNNC_OK) st = rt_pipeline_next(p, &number, &slot, NULL);
        CHECK(st == GNNC_E_STATE && slot == -1);
        pthread_join(other, NULL);
        rt_pipeline_begin(p, 5, 1000000); /* goes on after that */
        CHECK(rt_pipeline_next(p, &number, &slot, NULL) == GNNC_OK && number == 5);
        rt_pipeline_stop(p); /* with work under way */
    }
}

TEST(what_no_pipeline_is_made_of) {
    RtPipeline *p;
    Maker m = {.fails_at = -1};
    FailingAlloc f;
    RtAlloc from = failing(&f, 0);
    RtPipelineSpec spec = {make, &m, 2, 1, 1};
    CHECK(rt_pipeline_start(&p, NULL, &spec, NULL) == GNNC_E_ARG && !p);
    spec.n_slots = 2;
    CHECK(rt_pipeline_start(&p, &from, &spec, NULL) == GNNC_E_NOMEM && !p);
    from = failing(&f, 1);
    CHECK(rt_pipeline_start(&p, &from, &spec, NULL) == GNNC_OK);
    rt_pipeline_stop(p);
    CHECK(f.n_live == 0);
}

/* ---- batches through it ------------------------------------------------------------------- */
static const int32_t FAN[2 * N_RELS] = {4, 3, 5, 2, 5, 3, 2, 2, 3, 5};

typedef struct {
    World w;
    RtSampler *s[4];
    RtBatch *b[SLOTS];
} Job;

static gnnc_status sample_one(void *user, int worker, int64_t k, int slot, RtError *err) {
    Job *j = user;
    int32_t seeds[5];
    for (int i = 0; i < 5; i++) seeds[i] = (int32_t)(k * 5 + i) % N_USERS;
    RtSeeds q = {.n = 5, .id = seeds};
    return rt_sample_nodes(j->s[worker], &(RtSampleAt){3, 1, (uint64_t)k}, &q, j->b[slot], err);
}

TEST(batches_are_the_same_however_they_are_prepared) {
    static Job j;
    RtSampleSpec spec = {.how.n_hops = 2, .fanout = FAN};
    int64_t sum[4] = {0}, number;
    int slot;
    world_open(&j.w, 1);
    for (int workers = 0; workers < 4; workers++) {
        RtPipeline *p;
        for (int i = 0; i < 4; i++)
            CHECK(rt_sampler_new(&j.s[i], NULL, &j.w.g, &spec, NULL, 1, NULL) == GNNC_OK);
        for (int i = 0; i < SLOTS; i++) CHECK(rt_sampler_batch(j.s[0], &j.b[i], NULL) == GNNC_OK);
        RtPipelineSpec ps = {sample_one, &j, workers, SLOTS, 1};
        CHECK(rt_pipeline_start(&p, NULL, &ps, NULL) == GNNC_OK);
        rt_pipeline_begin(p, 0, 40);
        while (rt_pipeline_next(p, &number, &slot, NULL) == GNNC_OK && slot >= 0) {
            check_batch(&j.w.g, j.b[slot]);
            for (int r = 0; r < N_RELS; r++)
                for (int64_t e = 0; e < j.b[slot]->edges[r].n; e++)
                    sum[workers] = sum[workers] * 31 % 1000003 + j.b[slot]->edges[r].pos[e];
        }
        rt_pipeline_stop(p);
        for (int i = 0; i < SLOTS; i++) rt_batch_free(j.b[i]);
        for (int i = 0; i < 4; i++) rt_sampler_free(j.s[i]);
        CHECK(sum[workers] == sum[0] && sum[0] != 0);
    }
    world_close(&j.w);
}

/* ---- columns -------- */
enum { ROWS = 50, TAKEN = 3000 };

static void fill(RtPool *pool, RtColumn *c, rt_col_kind kind, int64_t width) {
    float *f = RT_NEWN(pool, float, ROWS *width);
    int32_t *k = RT_NEWN(pool, int32_t, ROWS *width);
    double *d = RT_NEWN(pool, double, ROWS);
    int64_t *l = RT_NEWN(pool, int64_t, ROWS);
    int8_t *s = RT_NEWN(pool, int8_t, 2 * ROWS);
    for (int64_t i = 0; i < ROWS * width; i++) f[i] = (float)i + .5f, k[i] = (int32_t)i;
    for (int i = 0; i < ROWS; i++) d[i] = i * 1.25, l[i] = i - ((int64_t)1 << 40);
    for (int i = 0; i < 2 * ROWS; i++) s[i] = (int8_t)(i % 4);
    *c = (RtColumn){.name = "c", .kind = kind, .n_rows = ROWS, .rank = 2, .shape = {ROWS, width}};
    c->n_splits = 2;
    c->values = kind == RT_COL_CAT     ? (const void *)k
                : kind == RT_COL_TIME  ? (const void *)d
                : kind == RT_COL_ID    ? (const void *)l
                : kind == RT_COL_SPLIT ? (const void *)s
                                       : f;
    if (kind != RT_COL_CSR) return;
    int64_t *ptr = RT_NEWN(pool, int64_t, ROWS + 1);
    for (int i = 0; i < ROWS; i++) ptr[i + 1] = ptr[i] + (i % 3 ? 1 : 0);
    c->csr = (RtCsr){ROWS, 9, ptr[ROWS], ptr, k, f};
}

static gnnc_status take_all(const RtAlloc *from, RtTeam *team, const RtColumn *c, RtRows rows,
                            const RtColumn *want, int64_t width) {
    RtBatch *b;
    RtColumnBuf buf = {.a = {0}};
    RtColumn y;
    gnnc_status st = rt_batch_new(&b, from, 1, 1, 0, NULL);
    if (st != GNNC_OK) return st;
    st = rt_batch_column(b, team, c, rows, 1, &buf, &y, NULL);
    for (int64_t i = 0; st == GNNC_OK && i < rows.n; i++) {
        int64_t row = rows.i32 ? rows.i32[i] : rows.i64[i];
        CHECK(y.n_rows == rows.n && y.shape[0] == rows.n);
        if (c->kind == RT_COL_FLOAT)
            CHECK(same_bytes(y.f32 + i * width, want->f32 + row * width, width, 4));
        if (c->kind == RT_COL_CAT)
            CHECK(same_bytes(y.i32 + i * width, want->i32 + row * width, width, 4));
        if (c->kind == RT_COL_TIME) CHECK(y.f64[i] == want->f64[row]);
        if (c->kind == RT_COL_ID) CHECK(y.i64[i] == want->i64[row]);
        if (c->kind == RT_COL_SPLIT)
            CHECK(y.n_splits == 1 && y.splits[i] == want->splits[ROWS + row]);
        if (c->kind == RT_COL_CSR) {
            int64_t n = c->csr.ptr[row + 1] - c->csr.ptr[row];
            CHECK(y.csr.ptr[i + 1] - y.csr.ptr[i] == n);
            CHECK(same_bytes(y.csr.col + y.csr.ptr[i], c->csr.col + c->csr.ptr[row], n, 4));
            CHECK(same_bytes(y.csr.val + y.csr.ptr[i], c->csr.val + c->csr.ptr[row], n, 4));
        }
    }
    rt_batch_column_free(b, &buf);
    rt_batch_free(b);
    return st;
}

TEST(columns_of_a_batch) {
    const rt_col_kind kinds[] = {RT_COL_FLOAT, RT_COL_CAT, RT_COL_TIME,
                                 RT_COL_ID,    RT_COL_CSR, RT_COL_SPLIT};
    static int32_t i32[TAKEN];
    static int64_t i64[TAKEN];
    RtAlloc plain = rt_alloc_default();
    RtTeam *team;
    RtPool pool;
    rt_pool_init(&pool, NULL);
    CHECK(rt_team_start(&team, &plain, 3, 2, NULL) == GNNC_OK);
    for (uint32_t i = 0; i < TAKEN; i++) i64[i] = i32[i] = (int32_t)some(1, i, ROWS);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int64_t width = 1; width < 200; width = width * 5 + 1) {
            RtColumn c;
            if (kinds[k] != RT_COL_FLOAT && kinds[k] != RT_COL_CAT && width > 1) continue;
            fill(&pool, &c, kinds[k], width);
            if (c.kind == RT_COL_TIME || c.kind == RT_COL_ID) c.rank = 1;
            CHECK(take_all(NULL, team, &c, (RtRows){TAKEN, i32, NULL}, &c, width) == GNNC_OK);
            CHECK(take_all(NULL, NULL, &c, (RtRows){TAKEN, NULL, i64}, &c, width) == GNNC_OK);
            CHECK(take_all(NULL, NULL, &c, (RtRows){0, i32, NULL}, &c, width) == GNNC_OK);
            gnnc_status st = GNNC_E_NOMEM;
            for (long n = 0; st != GNNC_OK && n < 50; n++) {
                FailingAlloc f;
                RtAlloc from = failing(&f, n);
                st = take_all(&from, NULL, &c, (RtRows){TAKEN, i32, NULL}, &c, width);
                CHECK((st == GNNC_OK || st == GNNC_E_NOMEM) && f.n_live == 0);
            }
        }
    rt_team_stop(team);
    rt_pool_free(&pool);
}

/* Only a mapped column of more bytes than memory has is marked; its rows, of which many are asked
 * for ahead, are the same.  The system is told so when a batch takes some, not before, nor while
 * all of it is read; a copy is in memory. */
TEST(rows_beyond_memory) {
    enum { N = 5000, WIDTH = 37, MANY = 20000 };
    const size_t n_bytes = sizeof(float) * N * WIDTH;
    static int32_t row[MANY];
    RtAlloc plain = rt_alloc_default();
    RtTeam *team;
    RtPool pool;
    void *file;
    rt_pool_init(&pool, NULL);
    CHECK(rt_team_start(&team, &plain, 3, 2, NULL) == GNNC_OK);
    CHECK(rt_file_scratch(&pool, n_bytes, &file, NULL) == GNNC_OK);
    for (int i = 0; i < N * WIDTH; i++) ((float *)file)[i] = (float)i;
    for (uint32_t i = 0; i < MANY; i++) row[i] = (int32_t)some(7, i, N);
    RtColumn c = {.name = "x", .kind = RT_COL_FLOAT, .n_rows = N, .rank = 2, .shape = {N, WIDTH}};
    RtColumn copy = c;
    c.f32 = file;
    copy.f32 = RT_NEWN(&pool, float, N *WIDTH);
    rt_column_beyond_memory(&copy, &pool, 0);
    rt_column_beyond_memory(&c, &pool, n_bytes);
    CHECK(!copy.beyond_memory && !c.beyond_memory);
    rt_column_beyond_memory(&c, &pool, n_bytes - 1);
    CHECK(c.beyond_memory && !is_read_in_no_order(file));
    for (int64_t n = 1; n <= MANY; n = n < 256 ? n + 255 : n * 78 + 32) {
        CHECK(take_all(NULL, team, &c, (RtRows){n, row, NULL}, &c, WIDTH) == GNNC_OK);
        CHECK(take_all(NULL, NULL, &c, (RtRows){n, row, NULL}, &c, WIDTH) == GNNC_OK);
    }
    CHECK(is_read_in_no_order(file));
    rt_column_begin_in_order(&c);
    CHECK(!is_read_in_no_order(file));
    CHECK(take_all(NULL, team, &c, (RtRows){9, row, NULL}, &c, WIDTH) == GNNC_OK);
    CHECK(!is_read_in_no_order(file));
    rt_column_end_in_order(&c);
    CHECK(take_all(NULL, team, &c, (RtRows){9, row, NULL}, &c, WIDTH) == GNNC_OK);
    CHECK(is_read_in_no_order(file));
    const RtColumn *low;
    CHECK(rt_column_take(&pool, &c, row, 10, &copy, NULL) == GNNC_OK && !copy.beyond_memory);
    CHECK(rt_column_as(&pool, team, &c, RT_BF16, &low, NULL) == GNNC_OK && !low->beyond_memory);
    rt_team_stop(team);
    rt_pool_free(&pool);
}

/* Rows of a column that was rounded once are the rounded rows of the column. */
static void rows_are_rounded(RtTeam *team, const RtColumn *c, rt_dtype t, const int32_t *row,
                             int64_t width) {
    RtPool pool;
    RtBatch *b;
    RtColumnBuf buf[2] = {{.a = {0}}, {.a = {0}}};
    RtColumn y, all;
    const RtColumn *low, *after;
    RtRows rows = {TAKEN, row, NULL};
    rt_pool_init(&pool, NULL);
    CHECK(rt_batch_new(&b, NULL, 1, 1, 0, NULL) == GNNC_OK);
    CHECK(rt_column_as(&pool, team, c, t, &low, NULL) == GNNC_OK && low->low && !low->f32);
    CHECK(rt_batch_column(b, team, low, rows, 0, &buf[0], &y, NULL) == GNNC_OK);
    CHECK(rt_batch_column(b, team, c, rows, 0, &buf[1], &all, NULL) == GNNC_OK);
    CHECK(rt_column_as(&pool, NULL, &all, t, &after, NULL) == GNNC_OK);
    CHECK(!y.f32 && y.n_rows == TAKEN && rt_column_value_bytes(&y) == 2);
    CHECK(same_bytes(y.low, after->low, TAKEN * width, 2));
    for (int i = 0; i < 2; i++) rt_batch_column_free(b, &buf[i]);
    rt_batch_free(b);
    rt_pool_free(&pool);
}

TEST(rows_of_sixteen_bits) {
    static int32_t row[TAKEN];
    RtAlloc plain = rt_alloc_default();
    RtTeam *team;
    CHECK(rt_team_start(&team, &plain, 3, 2, NULL) == GNNC_OK);
    for (uint32_t i = 0; i < TAKEN; i++) row[i] = (int32_t)some(5, i, ROWS);
    for (int64_t width = 1; width < 200; width = width * 3 + 1) {
        RtPool pool;
        RtColumn c;
        rt_pool_init(&pool, NULL);
        fill(&pool, &c, RT_COL_FLOAT, width);
        for (int64_t i = 0; i < ROWS * width; i++) ((float *)c.f32)[i] /= 3;
        rows_are_rounded(team, &c, RT_BF16, row, width);
        rows_are_rounded(team, &c, RT_F16, row, width);
        rt_pool_free(&pool);
    }
    rt_team_stop(team);
}

/* So many bytes that they are written past the caches, where rows and their place allow. */
TEST(rows_that_fit_no_cache) {
    enum { N = 60000, FROM = 700, MOST = 80 };
    static unsigned char from[FROM * MOST];
    static int32_t row[N];
    static _Alignas(64) unsigned char to[N * MOST + 64];
    RtAlloc plain = rt_alloc_default();
    RtTeam *team;
    CHECK(rt_team_start(&team, &plain, 3, 2, NULL) == GNNC_OK);
    for (uint32_t i = 0; i < sizeof from; i++) from[i] = (unsigned char)some(3, i, 256);
    for (uint32_t i = 0; i < N; i++) row[i] = (int32_t)some(4, i, FROM);
    for (size_t width = 46; width <= MOST; width += 2)
        for (size_t off = 0; off < 32; off += 8) {
            RtRows rows = {.n = N, .i32 = row};
            int64_t wrong = 0;
            memset(to, 0, sizeof to);
            rt_gather_rows(off % 16 ? NULL : team, from, width, rows, to + off);
            for (size_t i = 0; i < N; i++)
                wrong += memcmp(to + off + i * width, from + (size_t)row[i] * width, width) != 0;
            CHECK(wrong == 0 && to[off + N * width] == 0);
        }
    rt_team_stop(team);
}

TEST_MAIN()
