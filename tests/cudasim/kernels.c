/* Running a kernel: blocks one after another, the threads of a block as fibers.
 *
 * A fiber takes threads that have not begun, one after another, for as long as none has to
 * wait; a kernel without barriers therefore needs one fiber and no switch. */
#include "cudasim_impl.h"
#include "fiber.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_THREADS = 1024, WARP = 32 };
typedef enum { NOT_BEGUN, READY, AT_BARRIER, AT_EXCHANGE, DONE } State;

typedef struct {
    State state;
    cudasim_place place;
    Fiber *fiber; /* it is on; NULL = has not begun */
    unsigned mask;
    int arrived; /* lanes of the masks whose first lane this is, at an exchange */
    uint64_t value, got[WARP];
} Thread;

typedef struct {
    Thread thread[MAX_THREADS];
    Fiber *fiber[MAX_THREADS]; /* made so far, idle ones first */
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

static uint64_t draw(Machine *m) { /* splitmix64 */
    uint64_t x = m->random += 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

static void shuffle(Machine *m, int *v, int n) {
    for (int i = 0; i < n; i++) v[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int j = (int)(draw(m) % (uint64_t)(i + 1)), t = v[i];
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
    return &m->now->place;
}

void cudasim_fail(const char *what) {
    Machine *m = machine();
    fprintf(stderr, "cudasim: %s", what);
    if (m->now)
        fprintf(stderr, " (block %u, thread %u)", m->now->place.block.x, m->now->place.flat);
    fputs("\n", stderr);
    abort();
}

/* ---- fibers ------------------------------------------------------------------------ */
static void begin_threads(void *arg);

static Fiber *idle_fiber(Machine *m) {
    if (m->n_idle == 0) {
        Fiber *f = m->n_fibers < MAX_THREADS ? fiber_new(begin_threads, m) : NULL;
        if (!f) cudasim_fail("no memory for another thread");
        m->n_fibers++;
        return f;
    }
    return m->fiber[--m->n_idle];
}

/* What a fiber does: threads to begin, then back to the host for what else is to be done. */
static void begin_threads(void *arg) {
    Machine *m = arg;
    for (;;) {
        Fiber *self = m->now->fiber;
        m->call(m->closure);
        m->now->state = DONE;
        m->n_done++;
        bool resume = m->n_ready > 0 && draw(m) % 2;
        if (m->n_begun < m->n && !resume) {
            m->now = &m->thread[m->order[m->n_begun++]];
            m->now->fiber = self;
            continue;
        }
        m->fiber[m->n_idle++] = self;
        fiber_switch(self, fiber_host());
    }
}

static void begin_one(Machine *m) {
    m->now = &m->thread[m->order[m->n_begun++]];
    m->now->fiber = idle_fiber(m);
    fiber_switch(fiber_host(), m->now->fiber);
}

static void resume_one(Machine *m) {
    int i = (int)(draw(m) % (uint64_t)m->n_ready), t = m->ready[i];
    m->ready[i] = m->ready[--m->n_ready];
    m->now = &m->thread[t];
    m->now->state = READY;
    fiber_switch(fiber_host(), m->now->fiber);
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

static void wait_here(Machine *m, State s) {
    Thread *t = m->now;
    t->state = s;
    fiber_switch(t->fiber, fiber_host());
}

void cudasim_sync_block(void) {
    Machine *m = machine();
    m->n_waiting++;
    wait_here(m, AT_BARRIER);
}

/* ---- exchange between the lanes of a mask ------------------------------------------------------
 */
const uint64_t *cudasim_exchange(unsigned mask, uint64_t value) {
    Machine *m = machine();
    Thread *self = m->now, *warp = m->thread + self->place.flat / WARP * WARP;
    if (!(mask >> self->place.flat % WARP & 1)) cudasim_fail("a lane outside its own mask");
    self->mask = mask;
    self->value = value;
    self->state = AT_EXCHANGE;
    Thread *first = warp + __builtin_ctz(mask);
    bool all = ++first->arrived >= __builtin_popcount(mask);
    for (unsigned left = mask; all && left; left &= left - 1) {
        const Thread *t = warp + __builtin_ctz(left);
        all = t < m->thread + m->n && t->state == AT_EXCHANGE && t->mask == mask;
    }
    if (!all) {
        wait_here(m, AT_EXCHANGE);
        return self->got;
    }
    first->arrived -= __builtin_popcount(mask); /* of another mask some may wait there, too */
    for (unsigned to = mask; to; to &= to - 1) {
        Thread *t = warp + __builtin_ctz(to);
        for (unsigned from = mask; from; from &= from - 1) {
            int lane = __builtin_ctz(from);
            t->got[lane] = warp[lane].value;
        }
        t->state = READY;
        if (t != self) make_ready(m, t);
    }
    return self->got;
}

/* ---- a launch ----------------------------------------------------------------------------------
 */
static void run_block(Machine *m) {
    shuffle(m, m->order, m->n);
    m->n_begun = m->n_done = m->n_waiting = m->n_ready = 0;
    for (int i = 0; i < m->n; i++) {
        Thread *t = &m->thread[i];
        t->state = NOT_BEGUN;
        t->fiber = NULL;
        t->arrived = 0;
    }
    while (m->n_done < m->n) {
        bool may_begin = m->n_begun < m->n;
        if (m->n_ready > 0 && (!may_begin || draw(m) % 2))
            resume_one(m);
        else if (may_begin)
            begin_one(m);
        else
            open_barrier(m);
        m->now = NULL;
    }
}

static void place_threads(Machine *m, const CudasimLaunch *l, unsigned b) {
    const unsigned *g = l->grid, *d = l->block;
    for (int i = 0; i < m->n; i++) {
        cudasim_place *p = &m->thread[i].place;
        unsigned t = (unsigned)i;
        p->flat = t;
        p->thread.x = t % d[0], p->thread.y = t / d[0] % d[1], p->thread.z = t / d[0] / d[1];
        p->block.x = b % g[0], p->block.y = b / g[0] % g[1], p->block.z = b / g[0] / g[1];
        p->block_dim.x = d[0], p->block_dim.y = d[1], p->block_dim.z = d[2];
        p->grid_dim.x = g[0], p->grid_dim.y = g[1], p->grid_dim.z = g[2];
    }
}

/* Blocks from a random one on, forwards or backwards. */
void cudasim_run(const CudasimLaunch *l) {
    Machine *m = machine();
    unsigned n_blocks = l->grid[0] * l->grid[1] * l->grid[2];
    m->n = (int)(l->block[0] * l->block[1] * l->block[2]);
    m->call = l->call;
    m->closure = l->closure;
    unsigned first = (unsigned)(draw(m) % n_blocks);
    bool backwards = draw(m) % 2;
    for (unsigned i = 0; i < n_blocks; i++) {
        unsigned b = (first + (backwards ? n_blocks - i : i)) % n_blocks;
        place_threads(m, l, b);
        run_block(m);
    }
}

bool cudasim_fits(const unsigned grid[3], const unsigned block[3]) {
    uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    uint64_t blocks = (uint64_t)grid[0] * grid[1] * grid[2];
    return threads > 0 && threads <= MAX_THREADS && blocks > 0 && blocks < 1u << 31 &&
           grid[1] < 65536 && grid[2] < 65536;
}
