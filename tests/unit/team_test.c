/* Teams of threads, and what runs on them: loops and matrix products, the same bits for
 * every team. */
#include "test.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "rt_test_util.h"
#include "runtime/exec/background.h"
#include "runtime/exec/exec.h"
#include "runtime/exec/rng.h"

enum { MOST = 8 };

typedef struct {
    int64_t sum[MOST * 16]; /* a cache line each */
    int n;
} Sums;

static void add_member(void *arg, int member, int n_members) {
    Sums *s = arg;
    s->sum[member * 16] += member + 1;
    if (member == 0) s->n = n_members;
}

/* Of this thread. */
static int blocked_signals(void) {
    sigset_t s;
    pthread_sigmask(SIG_SETMASK, NULL, &s);
    return sigismember(&s, SIGTERM) + 2 * sigismember(&s, SIGSEGV);
}

typedef struct {
    atomic_int member, caller; /* what they block; 9: did not look yet */
} Signals;

/* The caller takes its time, so that the member is awake before the caller does its share, too. */
static void look_at_signals(void *arg, int member, int n_members) {
    (void)n_members;
    Signals *s = arg;
    if (member == 1) atomic_store(&s->member, blocked_signals());
    while (member == 0 && atomic_load(&s->member) == 9) usleep(100);
    if (member == 0) atomic_store(&s->caller, blocked_signals());
}

TEST(the_hosts_signals_stay_with_the_host) {
    RtAlloc from = rt_alloc_default();
    RtTeam *t;
    Signals seen = {9, 9};
    CHECK(rt_team_start(&t, &from, 2, 2, NULL) == GNNC_OK);
    rt_team_run(t, look_at_signals, &seen);
    CHECK(seen.caller == 0 && seen.member == 1);
    rt_team_stop(t);
}

static gnnc_status look_in_exchange(void *user, const void *const *out, const size_t *n_out,
                                    void *const *in, const size_t *n_in) {
    (void)out, (void)n_out, (void)in, (void)n_in;
    *(int *)user = blocked_signals();
    return GNNC_OK;
}

/* The host's handler hears of a fault in the host's own function. */
TEST(exchanges_in_a_thread_leave_faults_to_the_host) {
    static const RtMessages none;
    int seen = 9;
    gnnc_processes p = {.exchange = look_in_exchange, .user = &seen};
    RtPool pool;
    rt_pool_init(&pool, NULL);
    RtBackground *b = rt_background_new(&pool, &p);
    CHECK(b != NULL);
    rt_background_exchange(b, &none);
    CHECK(rt_background_wait(b) == GNNC_OK && seen == 1 && blocked_signals() == 0);
    rt_background_end(b);
    rt_pool_free(&pool);
}

static gnnc_status double_it(void *user) {
    *(int *)user *= 2;
    return *(int *)user > 8 ? GNNC_E_VALUE : GNNC_OK;
}

/* Jobs are done one after the other, and none behind one that failed. */
TEST(a_thread_does_jobs_in_order) {
    gnnc_processes none = {0};
    RtPool pool;
    int n = 3;
    rt_pool_init(&pool, NULL);
    RtBackground *b = rt_background_new(&pool, &none);
    CHECK(b != NULL);
    rt_background_run(b, double_it, &n);
    CHECK(rt_background_wait(b) == GNNC_OK && n == 6);
    for (int i = 0; i < 3; i++) rt_background_run(b, double_it, &n);
    CHECK(rt_background_wait(b) == GNNC_E_VALUE && n == 12);
    rt_background_run(b, double_it, &n);
    CHECK(rt_background_wait(b) == GNNC_E_VALUE && n == 24);
    rt_background_end(b);
    rt_pool_free(&pool);
}

/* Rounds follow each other faster than members wake, and slower than they fall asleep. */
TEST(every_member_runs_every_round) {
    RtAlloc from = rt_alloc_default();
    for (int n = 1; n <= MOST; n *= 2)
        for (int cores = 1; cores <= MOST; cores += 7) {
            RtTeam *t;
            Sums s = {.n = 0};
            CHECK(rt_team_start(&t, &from, n, cores, NULL) == GNNC_OK);
            for (int round = 0; round < 400; round++) {
                rt_team_run(t, add_member, &s);
                if (round % 100 == 0) usleep(1000);
            }
            rt_team_stop(t);
            CHECK(s.n == n);
            for (int m = 0; m < n; m++) CHECK(s.sum[m * 16] == 400 * (m + 1));
        }
    Sums alone = {.n = 0};
    rt_team_run(NULL, add_member, &alone);
    CHECK(alone.n == 1 && alone.sum[0] == 1);
    rt_team_stop(NULL);
}

typedef struct {
    pthread_t caller;
    atomic_int others; /* shares of other members that the caller did */
    atomic_int all;
} Done;

static void note_thread(void *arg, int member, int n_members) {
    (void)n_members;
    Done *d = arg;
    atomic_fetch_add(&d->all, 1);
    if (member > 0 && pthread_equal(pthread_self(), d->caller)) atomic_fetch_add(&d->others, 1);
}

/* A member that is asleep, as members of a team larger than the machine soon are, keeps nobody
 * waiting. */
TEST(the_caller_does_the_shares_of_members_that_sleep) {
    RtAlloc from = rt_alloc_default();
    RtTeam *t;
    Done d = {.caller = pthread_self()};
    int round = 0;
    CHECK(rt_team_start(&t, &from, MOST, 1, NULL) == GNNC_OK);
    for (; round < 10000 && !atomic_load(&d.others); round++) rt_team_run(t, note_thread, &d);
    rt_team_stop(t);
    CHECK(d.others > 0 && d.all == MOST * round);
}

TEST(no_memory_no_team) {
    FailingAlloc f;
    RtTeam *t;
    RtError err = {""};
    RtAlloc from = failing(&f, 0);
    CHECK(rt_team_start(&t, &from, 4, 4, &err) == GNNC_E_NOMEM && !t && err.text[0]);
    from = failing(&f, 1);
    CHECK(rt_team_start(&t, &from, 4, 4, &err) == GNNC_OK);
    rt_team_stop(t);
    CHECK(f.n_live == 0);
}

/* ---- matrix products against their definition ------------------------------------------ */
typedef struct {
    RtExec x;
    RtRuntime rt;
} Run;

static void run_open(Run *r, int threads) {
    *r = (Run){.x = {.threads = threads}};
    rt_pool_init(&r->rt.pool, NULL);
    r->x.rt = &r->rt;
    CHECK(rt_team_start(&r->rt.team, &r->rt.pool.from, threads, threads, NULL) == GNNC_OK);
}

static void run_close(Run *r) {
    rt_team_stop(r->rt.team);
    rt_pool_free(&r->rt.pool);
}

static void product_of(int64_t batch, int64_t m, int64_t n, int64_t k, bool ta, bool tb) {
    size_t na = (size_t)(batch * m * k), nb = (size_t)(batch * k * n), nc = (size_t)(batch * m * n);
    float *a = calloc(na + 1, 4), *b = calloc(nb + 1, 4), *c = calloc(nc + 1, 4);
    float *first = calloc(nc + 1, 4);
    for (size_t i = 0; i < na; i++) a[i] = rt_uniform((RtKey){1, 1}, (uint32_t)i, 0) - .5f;
    for (size_t i = 0; i < nb; i++) b[i] = rt_uniform((RtKey){2, 2}, (uint32_t)i, 0) - .5f;
    rt_gemm g = {batch,      m,          n,     k, m * k,    ta ? 1 : k, ta ? m : 1, k * n,
                 tb ? 1 : n, tb ? k : 1, m * n, n, k > 2000, RT_F32,     RT_F32};
    int threads[] = {1, 2, 3, 7};
    for (int t = 0; t < 4; t++) {
        Run r;
        run_open(&r, threads[t]);
        CHECK(rt_gemm_f32(&r.x, &g, a, b, c) == GNNC_OK);
        if (t == 0) memcpy(first, c, nc * 4);
        CHECK(memcmp(first, c, nc * 4) == 0);
        run_close(&r);
    }
    double worst = 0;
    for (int64_t h = 0; h < batch; h++)
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                double sum = 0;
                for (int64_t p = 0; p < k; p++)
                    sum += (double)a[h * g.a_batch + i * g.a_row + p * g.a_col] *
                           b[h * g.b_batch + p * g.b_row + j * g.b_col];
                worst = fmax(worst, fabs(sum - c[h * m * n + i * n + j]));
            }
    CHECK_MSG(worst < 1e-5 * sqrt((double)k + 1) * 3, "%lld x %lld x %lld: off by %g", (long long)m,
              (long long)n, (long long)k, worst);
    free(a), free(b), free(c), free(first);
}

TEST(products_have_the_same_bits_for_every_team) {
    product_of(1, 300, 7, 33, false, false);
    product_of(1, 16, 33, 5000, true, false); /* a gradient: split over a long k */
    product_of(1, 130, 16, 40, false, true);
    product_of(3, 20, 1, 16, true, true);
    product_of(1, 1, 1, 1, false, false);
    product_of(1, 5, 4, 0, false, false);
    product_of(1, 0, 4, 3, false, false);
}

/* ---- loops ----------------------------------------------------------------------------------- */
static void count_rows(void *const *arg, const int64_t *n, int64_t lo, int64_t hi) {
    int32_t *seen = arg[0];
    (void)n;
    for (int64_t i = lo; i < hi; i++) seen[i]++;
}

TEST(loops_visit_every_row_once) {
    static int32_t seen[5000];
    int64_t extents[] = {0, 1, 2, 63, 64, 65, 1000, 1024, 4999};
    for (int threads = 1; threads <= 7; threads += 2) {
        Run r;
        run_open(&r, threads);
        for (size_t e = 0; e < sizeof extents / sizeof *extents; e++) {
            memset(seen, 0, sizeof seen);
            rt_launch(&r.x, count_rows, (void *const[]){seen}, extents[e]);
            for (int64_t i = 0; i < 5000; i++) CHECK(seen[i] == (i < extents[e]));
        }
        CHECK(r.rt.count.launches == (int64_t)(sizeof extents / sizeof *extents));
        run_close(&r);
    }
}

TEST_MAIN()
