/* Running a kernel: blocks one after another, the threads of a block as fibers.
 *
 * A fiber takes threads that have not begun, one after another, for as long as none has to
 * wait; a kernel without barriers therefore needs one fiber and no switch.  Who waits or ends
 * switches to who is next himself. */
#include "cudasim_impl.h"
#include "fiber.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_THREADS = 1024, WARP = 32 };
typedef enum { NOT_BEGUN, READY, AT_BARRIER, AT_EXCHANGE, DONE } State;

/* What each switch looks at fits one line of the caches; where the thread is stands elsewhere. */
typedef struct {
    _Alignas(64) Fiber *fiber; /* it is on; NULL = has not begun */
    uint64_t value;
    State state;
    unsigned mask;
    int arrived; /* lanes of the masks whose first lane this is, at an exchange */
    int got;     /* the exchange of its warp that it reads, + 1; 0 = none */
} Thread;

/* What the lanes of a mask gave each other, while any of them may read it. */
typedef struct {
    int readers;
    uint64_t value[WARP];
} Exchange;

typedef struct {
    Thread thread[MAX_THREADS];
    cudasim_place place[MAX_THREADS];
    Exchange exchange[MAX_THREADS / WARP][WARP + 1]; /* a lane reads one, and one is made */
    Fiber *fiber[MAX_THREADS];                       /* made so far, idle ones first */
    int n_fibers, n_idle;
    int order[MAX_THREADS]; /* in which threads begin */
    int n, n_begun, n_done, n_waiting;
    int ready[MAX_THREADS], n_ready;
    Thread *now;
    uint64_t random;
    void (*call)(void *);
    void *closure;
} Machine;

static Machine *machine(void) {
    static Machine m;
    return &m;
}

/* Knuth's linear congruential generator, drawn from at each switch: its high bits are the random
 * ones. */
static uint64_t draw(Machine *m) {
    return m->random = m->random * 6364136223846793005u + 1442695040888963407u;
}

/* Less than n. */
static int draw_below(Machine *m, int n) {
    return (int)((draw(m) >> 32) * (uint64_t)n >> 32);
}

static void shuffle(Machine *m, int *v, int n) {
    for (int i = 0; i < n; i++) v[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int j = draw_below(m, i + 1), t = v[i];
        v[i] = v[j];
        v[j] = t;
    }
}

void cudasim_seed(uint64_t seed) {
    machine()->random = seed;
}

const cudasim_place *cudasim_now(void) {
    Machine *m = machine();
    if (!m->now) cudasim_fail("device code runs outside a kernel");
    return &m->place[m->now - m->thread];
}

void cudasim_fail(const char *what) {
    Machine *m = machine();
    fprintf(stderr, "cudasim: %s", what);
    if (m->now)
        fprintf(stderr, " (block %u, thread %u)", m->place[m->now - m->thread].block.x,
                (unsigned)(m->now - m->thread));
    fputs("\n", stderr);
    abort();
}

/* ---- fibers ------------------------------------------------------------------------ */
static void begin_threads(void *arg);

static Fiber *idle_fiber(Machine *m) {
    if (m->n_idle == 0) {
        Fiber *f = m->n_fibers < MAX_THREADS ? fiber_new(begin_threads, m, m->n_fibers) : NULL;
        if (!f) cudasim_fail("no memory for another thread");
        m->n_fibers++;
        return f;
    }
    return m->fiber[--m->n_idle];
}

static void make_ready(Machine *m, Thread *t) {
    m->ready[m->n_ready++] = (int)(t - m->thread);
}

/* All that have not ended wait at the barrier: on they go. */
static void open_barrier(Machine *m) {
    if (m->n_waiting == 0 || m->n_waiting + m->n_done < m->n)
        cudasim_fail("threads wait for others that never come: a barrier or a shuffle is not "
                     "reached by all");
    for (int i = 0; i < m->n; i++)
        if (m->thread[i].state == AT_BARRIER) make_ready(m, &m->thread[i]);
    m->n_waiting = 0;
}

/* The fiber of the thread that runs next: one that can go on, or one that begins. */
static Fiber *next(Machine *m) {
    if (m->n_done == m->n) return fiber_host();
    bool may_begin = m->n_begun < m->n;
    if (!may_begin && !m->n_ready) open_barrier(m);
    uint64_t r = draw(m); /* its highest bit, and the 32 below */
    if (m->n_ready > 0 && (!may_begin || r >> 63)) {
        int i = (int)((r << 1 >> 32) * (uint64_t)m->n_ready >> 32), t = m->ready[i];
        m->ready[i] = m->ready[--m->n_ready];
        m->now = &m->thread[t];
        m->now->state = READY;
    } else {
        m->now = &m->thread[m->order[m->n_begun++]];
        m->now->fiber = idle_fiber(m);
    }
    return m->now->fiber;
}

/* What a fiber does: one thread after another, until another fiber is next. */
static void begin_threads(void *arg) {
    Machine *m = arg;
    for (;;) {
        Fiber *self = m->now->fiber;
        m->call(m->closure);
        m->now->state = DONE;
        m->n_done++;
        m->fiber[m->n_idle++] = self;
        Fiber *to = next(m);
        if (to != self) fiber_switch(self, to);
    }
}

static void wait_here(Machine *m, State s) {
    Thread *t = m->now;
    t->state = s;
    Fiber *to = next(m);
    if (to != t->fiber) fiber_switch(t->fiber, to);
}

void cudasim_sync_block(void) {
    Machine *m = machine();
    m->n_waiting++;
    wait_here(m, AT_BARRIER);
}

/* ---- exchange between the lanes of a mask -------- */
static void give(Machine *m, Thread *warp, unsigned mask, const Thread *self) {
    Exchange *of_warp = m->exchange[(warp - m->thread) / WARP];
    int at = 0;
    while (of_warp[at].readers > 0) at++; /* of 33 no more than 32 are read */
    for (unsigned left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        Thread *t = &warp[lane];
        of_warp[at].value[lane] = t->value;
        of_warp[at].readers++;
        t->got = at + 1;
        t->state = READY;
        if (t != self) make_ready(m, t);
    }
}

const uint64_t *cudasim_exchange(unsigned mask, uint64_t value) {
    Machine *m = machine();
    Thread *self = m->now;
    unsigned flat = (unsigned)(self - m->thread);
    Thread *warp = m->thread + flat / WARP * WARP;
    if (!(mask >> flat % WARP & 1)) cudasim_fail("a lane outside its own mask");
    int lanes = mask == UINT32_MAX ? WARP : __builtin_popcount(mask); /* which asks a library */
    Exchange *of_warp = m->exchange[(warp - m->thread) / WARP];
    if (self->got) of_warp[self->got - 1].readers--;
    self->got = 0;
    self->mask = mask;
    self->value = value;
    self->state = AT_EXCHANGE;
    Thread *first = warp + __builtin_ctz(mask);
    bool all = ++first->arrived >= lanes;
    for (unsigned left = mask; all && left; left &= left - 1) {
        const Thread *t = warp + __builtin_ctz(left);
        all = t < m->thread + m->n && t->state == AT_EXCHANGE && t->mask == mask;
    }
    if (all) {
        first->arrived -= lanes; /* of another mask some may wait there, too */
        give(m, warp, mask, self);
    } else {
        wait_here(m, AT_EXCHANGE);
    }
    return of_warp[self->got - 1].value;
}

/* ---- a launch -------- */
static void run_block(Machine *m) {
    shuffle(m, m->order, m->n);
    m->n_begun = m->n_done = m->n_waiting = m->n_ready = 0;
    for (int i = 0; i < m->n; i++) {
        Thread *t = &m->thread[i];
        t->state = NOT_BEGUN;
        t->fiber = NULL;
        t->arrived = t->got = 0;
    }
    for (int w = 0; w * WARP < m->n; w++)
        for (int i = 0; i <= WARP; i++) m->exchange[w][i].readers = 0;
    fiber_switch(fiber_host(), next(m));
    m->now = NULL;
}

static void place_threads(Machine *m, const CudasimLaunch *l) {
    const unsigned *g = l->grid, *d = l->block;
    for (unsigned t = 0; t < (unsigned)m->n; t++) {
        cudasim_place *p = &m->place[t];
        p->flat = t;
        p->thread.x = t % d[0], p->thread.y = t / d[0] % d[1], p->thread.z = t / d[0] / d[1];
        p->block_dim.x = d[0], p->block_dim.y = d[1], p->block_dim.z = d[2];
        p->grid_dim.x = g[0], p->grid_dim.y = g[1], p->grid_dim.z = g[2];
    }
}

static void place_block(Machine *m, const CudasimLaunch *l, unsigned b) {
    const unsigned *g = l->grid, x = b % g[0], y = b / g[0] % g[1], z = b / g[0] / g[1];
    for (int i = 0; i < m->n; i++) {
        cudasim_place *p = &m->place[i];
        p->block.x = x, p->block.y = y, p->block.z = z;
    }
}

/* Blocks from a random one on, forwards or backwards. */
void cudasim_run(const CudasimLaunch *l) {
    Machine *m = machine();
    unsigned n_blocks = l->grid[0] * l->grid[1] * l->grid[2];
    m->n = (int)(l->block[0] * l->block[1] * l->block[2]);
    m->call = l->call;
    m->closure = l->closure;
    unsigned first = (unsigned)((draw(m) >> 32) * n_blocks >> 32);
    bool backwards = draw(m) >> 63;
    place_threads(m, l);
    for (unsigned i = 0; i < n_blocks; i++) {
        place_block(m, l, (first + (backwards ? n_blocks - i : i)) % n_blocks);
        run_block(m);
    }
}

bool cudasim_fits(const unsigned grid[3], const unsigned block[3]) {
    uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    uint64_t blocks = (uint64_t)grid[0] * grid[1] * grid[2];
    return threads > 0 && threads <= MAX_THREADS && blocks > 0 && blocks < 1u << 31 &&
           grid[1] < 65536 && grid[2] < 65536;
}
