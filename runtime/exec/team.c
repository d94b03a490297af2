/* Fork and join for loops of tens of microseconds.  Waiting is a short spin, then sleep in
 * the kernel (futex): as fast as spinning while the cores are ours, and harmless when
 * they are not.  libgomp was tried first: it spins for milliseconds per barrier, so a
 * step of 1 ms took 200 ms beside a compile job on the same two cores.
 *
 * Each trainer has its own team, so that two trainers share nothing. */
#include "team.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    SPINS = 3000, /* of a pause instruction: 30 to 150 us */
    OFFER = 64    /* after so many the core is offered to others: who makes batches may want it */
};

typedef struct {
    RtTeam *team;
    int number;
    pthread_t thread;
    _Alignas(64) atomic_uint taken; /* the last round whose share of this member somebody took */
} Member;

struct RtTeam {
    RtAlloc from;
    Member *members; /* [n], 0 unused: the caller */
    int n, spins;
    rt_team_fn *fn; /* of this round; NULL = go home */
    void *arg;
    /* On lines of their own: the waiting side reads them all the time. */
    _Alignas(64) atomic_uint round;
    atomic_int sleepers; /* members asleep on `round` */
    _Alignas(64) atomic_uint left;
    atomic_int caller_sleeps; /* on `left` */
};

static void futex_wait(atomic_uint *at, unsigned value) {
    syscall(SYS_futex, at, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake(atomic_uint *at) {
    syscall(SYS_futex, at, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* One turn of a loop that waits. */
static void pause_core(int turn) {
    if (turn % OFFER == OFFER - 1) sched_yield();
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* ---- members ----------------------------------------------------------------- */
/* Takes member m's share of a round; false: another has taken it.  Shares are taken in the rounds'
 * order, so a member that still thinks of an earlier round takes none. */
static bool take_share(Member *m, unsigned round) {
    unsigned before = round - 1;
    return atomic_compare_exchange_strong(&m->taken, &before, round);
}

/* The sleeper counts itself before it looks again, the waker changes the value before it
 * looks at the count: one of them sees the other (sequential consistency). */
static unsigned wait_for_round(RtTeam *t, unsigned seen) {
    unsigned round;
    for (int i = 0; i < t->spins; i++) {
        if ((round = atomic_load_explicit(&t->round, memory_order_acquire)) != seen) return round;
        pause_core(i);
    }
    atomic_fetch_add(&t->sleepers, 1);
    while ((round = atomic_load(&t->round)) == seen) futex_wait(&t->round, seen);
    atomic_fetch_sub(&t->sleepers, 1);
    return round;
}

static void report_done(RtTeam *t) {
    if (atomic_fetch_sub(&t->left, 1) == 1 && atomic_load(&t->caller_sleeps)) futex_wake(&t->left);
}

/* What a thread of the team does all its life: waits for a round of work, does its share, reports
 * it. */
static void *live(void *arg) {
    Member *m = arg;
    RtTeam *t = m->team;
    for (unsigned round = 0;;) {
        round = wait_for_round(t, round);
        if (!take_share(m, round)) continue;
        if (!t->fn) return NULL;
        t->fn(t->arg, m->number, t->n);
        report_done(t);
    }
}

/* ---- the caller ----------------------------------------------------------------- */
/* Starts fn on all members of the team, and wakes those that sleep. */
static void begin_round(RtTeam *t, rt_team_fn *fn, void *arg) {
    t->fn = fn;
    t->arg = arg;
    atomic_store(&t->left, (unsigned)(t->n - 1));
    atomic_fetch_add(&t->round, 1);
    if (atomic_load(&t->sleepers)) futex_wake(&t->round);
}

/* Does the shares of members that have not woken yet: beside another thread on their core that
 * takes longer than a short share. */
static void do_shares_left(RtTeam *t) {
    unsigned round = atomic_load_explicit(&t->round, memory_order_relaxed);
    for (int i = 1; i < t->n; i++) {
        if (!take_share(&t->members[i], round)) continue;
        t->fn(t->arg, i, t->n);
        atomic_fetch_sub(&t->left, 1);
    }
}

/* Waits until all other members have done their share: spins first, then sleeps. */
static void wait_for_members(RtTeam *t) {
    for (int i = 0; i < t->spins; i++) {
        if (atomic_load_explicit(&t->left, memory_order_acquire) == 0) return;
        pause_core(i);
    }
    atomic_store(&t->caller_sleeps, 1);
    for (unsigned left; (left = atomic_load(&t->left)) != 0;) futex_wait(&t->left, left);
    atomic_store(&t->caller_sleeps, 0);
}

/* Runs fn(arg, member, n_members) for all members of the team, the caller being member 0 and each
 * that is not awake when it has done its own share, and waits for them. t NULL: on the caller
 * alone. */
void rt_team_run(RtTeam *t, rt_team_fn *fn, void *arg) {
    if (!t || t->n == 1) {
        fn(arg, 0, 1);
        return;
    }
    begin_round(t, fn, arg);
    fn(arg, 0, t->n);
    do_shares_left(t);
    wait_for_members(t);
}

bool rt_thread_start(pthread_t *out, void *(*fn)(void *), void *arg) {
    static const int fault[] = {SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP};
    sigset_t s, before;
    sigfillset(&s);
    for (size_t i = 0; i < sizeof fault / sizeof *fault; i++) sigdelset(&s, fault[i]);
    pthread_sigmask(SIG_BLOCK, &s, &before); /* the thread inherits that */
    bool started = pthread_create(out, NULL, fn, arg) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

/* Members read t->n in their first round only, so it may still shrink here. */
static void start_members(RtTeam *t, int n_members) {
    t->n = 1;
    for (int i = 1; i < n_members; i++) {
        t->members[i] = (Member){.team = t, .number = i};
        if (!rt_thread_start(&t->members[i].thread, live, &t->members[i])) return;
        t->n++;
    }
}

/* Starts a team of n_members threads, the caller being one of them. */
gnnc_status rt_team_start(RtTeam **out, const RtAlloc *from, int n_members, int n_cores,
                          RtError *err) {
    size_t n_bytes = sizeof(RtTeam) + sizeof(void *) + 64 + sizeof(Member) * (size_t)n_members;
    char *block = from->alloc(from->user, n_bytes);
    *out = NULL;
    if (!block) return rt_fail_nomem(err, "threads");
    /* The block's address is kept in front of the aligned team for the release. */
    RtTeam *t = (RtTeam *)(((uintptr_t)block + sizeof(void *) + 63) / 64 * 64);
    ((void **)t)[-1] = block;
    t->from = *from;
    t->members = (Member *)(t + 1);
    t->spins = n_members <= n_cores ? SPINS : 0;
    start_members(t, n_members);
    *out = t;
    return GNNC_OK;
}

void rt_team_stop(RtTeam *t) {
    if (!t) return;
    if (t->n > 1) begin_round(t, NULL, NULL);
    for (int i = 1; i < t->n; i++) pthread_join(t->members[i].thread, NULL);
    t->from.release(t->from.user, ((void **)t)[-1]);
}
