/* Streams and events: when queued work runs.  CUDA promises no more than that the work of a stream
 * runs in its order, behind the events that the stream waits for.  CUDASIM_ORDER chooses one of the
 * orders that this allows:
 *     eager          at once (the default)
 *     lazy           only when the host waits for it, and then no more than it has to
 *     lazy:others    likewise, but whatever else may run comes before it
 *     random:SEED    streams take turns at random, ahead of the host's waits or because of them
 * Copies from ordinary memory are taken when they run, as the host takes no part in them on a
 * device that reads its memory; random orders may also take them at the call.
 *
 * Transfers between processes run when their other end lets them, and what is behind them in their
 * stream then, in any order: a host that asks for an event of such a stream lets its work go on. */
#include "cudasim_impl.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct CUevent_st {
    struct timespec at;  /* of the last record that ran */
    int64_t asked, done; /* records */
    cudaStream_t by;     /* of the last record */
    int waiting;         /* tasks that name the event */
    CudasimMark mark;    /* where the last record was recorded */
    bool destroyed;
    int device;
};

typedef enum { TASK_NODE, TASK_GRAPH, TASK_RECORD, TASK_WAIT } TaskKind;

typedef struct Task {
    struct Task *next;
    TaskKind kind;
    Node node;
    void *taken; /* a copy of node.from, or NULL */
    cudaGraphExec_t graph;
    cudaEvent_t event;
    int64_t record;  /* of the event: the one that is made or waited for */
    cudaStream_t by; /* TASK_WAIT: the stream that makes it */
} Task;

typedef enum { ORDER_UNKNOWN, EAGER, LAZY, OTHERS, RANDOM } Order;

typedef struct {
    pthread_mutex_t lock; /* taken before the device's */
    cudaStream_t streams;
    Order order;
    uint64_t random;
} Queues;

static Queues *queues(void) {
    static Queues q = {.lock = PTHREAD_MUTEX_INITIALIZER};
    return &q;
}

static void read_order(Queues *q, const char *order) {
    static const struct {
        const char *name;
        Order order;
    } all[] = {{"eager", EAGER}, {"lazy", LAZY}, {"lazy:others", OTHERS}};
    bool random = strncmp(order, "random:", 7) == 0;
    q->order = random ? RANDOM : ORDER_UNKNOWN;
    q->random = random ? strtoull(order + 7, NULL, 10) * 2 + 1 : 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(order, all[i].name) == 0) q->order = all[i].order;
    if (q->order == ORDER_UNKNOWN)
        cudasim_fail("CUDASIM_ORDER is not eager, lazy, lazy:others or random:SEED");
}

static Queues *lock(void) {
    Queues *q = queues();
    const char *order = getenv("CUDASIM_ORDER");
    pthread_mutex_lock(&q->lock);
    if (q->order == ORDER_UNKNOWN) read_order(q, order ? order : "eager");
    return q;
}

static void unlock(Queues *q) {
    pthread_mutex_unlock(&q->lock);
}

static unsigned draw(Queues *q, unsigned n) {
    q->random = q->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(q->random >> 33) % n;
}

int cudasim_pick(int n) {
    Queues *q = queues();
    if (n == 1) return 0;
    return q->order == LAZY ? n - 1 : q->order == OTHERS ? 0 : (int)draw(q, (unsigned)n);
}

/* ---- running ------------------------------------------------------------------------------- */
static void let_go(cudaEvent_t e) {
    if (e->destroyed && !e->waiting) free(e);
}

static void free_task(Task *t) {
    if (t->kind == TASK_NODE && t->node.launch.drop) t->node.launch.drop(t->node.launch.closure);
    if (t->event) {
        t->event->waiting--;
        let_go(t->event);
    }
    free(t->taken);
    free(t);
}

static bool is_ready(const Task *t) {
    const CudasimLaunch *of = &t->node.launch;
    if (t->kind == TASK_NODE && t->node.kind == NODE_TRANSFER) return of->ready(of->closure);
    return t->kind != TASK_WAIT || t->event->done >= t->record;
}

static void run_first(cudaStream_t s) {
    Task *t = s->first;
    if (t->kind == TASK_NODE) cudasim_perform(&t->node);
    if (t->kind == TASK_GRAPH) cudasim_run_graph(t->graph);
    if (t->kind == TASK_RECORD) {
        clock_gettime(CLOCK_MONOTONIC, &t->event->at);
        t->event->done = t->record;
    }
    s->first = t->next;
    if (!s->first) s->tail = &s->first;
    free_task(t);
}

/* Some stream's first task, of those that may run; false: there is none. */
static bool run_some(Queues *q) {
    unsigned n = 0;
    cudaStream_t chosen = NULL;
    for (cudaStream_t s = q->streams; s; s = s->next)
        if (s->first && is_ready(s->first) && draw(q, ++n) == 0) chosen = s;
    if (chosen) run_first(chosen);
    return chosen;
}

static bool run_other(Queues *q, cudaStream_t than) {
    cudaStream_t s = q->streams;
    while (s && (s == than || !s->first || !is_ready(s->first))) s = s->next;
    if (s) run_first(s);
    return s;
}

/* Others take their turns meanwhile. */
static void wait_for_other_end(Queues *q) {
    pthread_mutex_unlock(&q->lock);
    nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    pthread_mutex_lock(&q->lock);
}

/* Until the stream is empty, or that record of the event was made, if one is named. */
static void drain(Queues *q, cudaStream_t s, cudaEvent_t e, int64_t record) {
    while (s->first && (!e || e->done < record)) {
        const Task *t = s->first;
        if (q->order == RANDOM) {
            if (!run_some(q)) wait_for_other_end(q);
        } else if (q->order == OTHERS && run_other(q, s)) {
            continue;
        } else if (is_ready(t)) {
            run_first(s);
        } else if (t->kind == TASK_WAIT) {
            drain(q, t->by, t->event, t->record);
        } else {
            wait_for_other_end(q);
        }
    }
}

/* The first task of the stream, or what it waits for. */
static void advance_by_one(Queues *q, cudaStream_t s) {
    const Task *t = s->first;
    if (t && is_ready(t))
        run_first(s);
    else if (t && t->kind == TASK_WAIT)
        advance_by_one(q, t->by);
}

static void advance(Queues *q, cudaStream_t s) {
    while (q->order == EAGER && s->first && is_ready(s->first)) run_first(s);
    while (q->order == RANDOM && draw(q, 2) && run_some(q)) {
    }
}

static cudaError_t enqueue(Queues *q, cudaStream_t s, const Task *what) {
    Task *t = malloc(sizeof *t);
    if (!t) return cudasim_note(cudaErrorMemoryAllocation);
    *t = *what;
    t->next = NULL;
    *s->tail = t;
    s->tail = &t->next;
    if (t->event) t->event->waiting++;
    advance(q, s);
    return cudaSuccess;
}

static void take_now(Task *t) {
    t->taken = malloc(t->node.n_bytes);
    if (!t->taken) return;
    memcpy(t->taken, t->node.from, t->node.n_bytes);
    t->node.from = t->taken;
}

void cudasim_order(const char *order) {
    Queues *q = lock();
    for (cudaStream_t s = q->streams; s; s = s->next) drain(q, s, NULL, 0);
    read_order(q, order);
    unlock(q);
}

cudaError_t cudasim_queue(cudaStream_t s, const Node *n, bool from_ordinary) {
    Queues *q = lock();
    Task t = {.kind = TASK_NODE, .node = *n};
    if (from_ordinary && q->order == RANDOM && draw(q, 2)) take_now(&t);
    cudaError_t e = enqueue(q, s, &t);
    unlock(q);
    return e;
}

cudaError_t cudasim_queue_graph(cudaStream_t s, cudaGraphExec_t x) {
    Queues *q = lock();
    cudaError_t e = enqueue(q, s, &(Task){.kind = TASK_GRAPH, .graph = x});
    unlock(q);
    return e;
}

static bool names(const Task *t, const void *p, size_t n_bytes, cudaGraphExec_t x) {
    const char *lo = p, *to = t->node.to, *from = t->node.from;
    NodeKind k = t->node.kind;
    bool moves = t->kind == TASK_NODE && (k == NODE_COPY || k == NODE_FILL || k == NODE_TRANSFER);
    if (t->kind == TASK_GRAPH) return x && t->graph == x;
    return p && moves && ((to >= lo && to < lo + n_bytes) || (from >= lo && from < lo + n_bytes));
}

bool cudasim_is_queued(const void *p, size_t n_bytes, cudaGraphExec_t x) {
    Queues *q = lock();
    bool found = false;
    for (cudaStream_t s = q->streams; s; s = s->next)
        for (const Task *t = s->first; t; t = t->next) found |= names(t, p, n_bytes, x);
    unlock(q);
    return found;
}

/* ---- streams: what they record is in graphs.c -------- */
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned flags) {
    (void)flags;
    *s = calloc(1, sizeof **s);
    if (!*s) return cudasim_note(cudaErrorMemoryAllocation);
    cudaGetDevice(&(*s)->device);
    Queues *q = lock();
    (*s)->tail = &(*s)->first;
    (*s)->next = q->streams;
    q->streams = *s;
    unlock(q);
    return cudaSuccess;
}

/* CUDA gives a stream up when its work is done: that may be now. */
cudaError_t cudaStreamDestroy(cudaStream_t s) {
    Queues *q = lock();
    drain(q, s, NULL, 0);
    cudaStream_t *at = &q->streams;
    while (*at != s) at = &(*at)->next;
    *at = s->next;
    unlock(q);
    free(s);
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t s) {
    if (s && s->captured) return cudasim_note(cudaErrorStreamCaptureUnsupported);
    cudasim_count_wait(false);
    Queues *q = lock();
    if (s) drain(q, s, NULL, 0);
    unlock(q);
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void) {
    cudasim_count_wait(false);
    Queues *q = lock();
    for (cudaStream_t s = q->streams; s; s = s->next) drain(q, s, NULL, 0);
    unlock(q);
    return cudaSuccess;
}

/* For the last record that was asked for by now; of none there is nothing to wait for.  What is
 * given to the default stream runs at once, and so what it waits for does. */
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags) {
    (void)flags;
    if (s && (s->captured || e->mark.graph)) return cudasim_await_mark(s, &e->mark);
    Queues *q = lock();
    Task t = {.kind = TASK_WAIT, .event = e, .record = e->asked, .by = e->by};
    cudaError_t error = cudaSuccess;
    if (s && e->by && e->by->has_transfers) s->has_transfers = true; /* as it waits for them */
    if (e->done < e->asked && s) error = enqueue(q, s, &t);
    if (e->done < e->asked && !s) drain(q, e->by, e, e->asked);
    unlock(q);
    return error;
}

/* ---- events --------------------------------------------------------------------------------- */
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned flags) {
    (void)flags;
    *e = calloc(1, sizeof **e);
    if (!*e) return cudasim_note(cudaErrorMemoryAllocation);
    cudaGetDevice(&(*e)->device);
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t e) {
    Queues *q = lock();
    e->destroyed = true;
    let_go(e);
    unlock(q);
    return cudaSuccess;
}

/* As with CUDA, by a stream of the event's GPU. */
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
    int device = s ? s->device : 0;
    if (!s) cudaGetDevice(&device);
    if (device != e->device) return cudasim_note(cudaErrorInvalidResourceHandle);
    e->mark.graph = NULL;
    if (s && s->captured) {
        cudasim_mark(s, &e->mark);
        return cudaSuccess;
    }
    Queues *q = lock();
    cudaError_t error = cudaSuccess;
    e->by = s;
    if (s)
        error = enqueue(q, s, &(Task){.kind = TASK_RECORD, .event = e, .record = ++e->asked});
    else
        e->done = ++e->asked;
    unlock(q);
    return error;
}

/* As with CUDA, "not ready" stays the last error until somebody asks for it. */
cudaError_t cudaEventQuery(cudaEvent_t e) {
    Queues *q = lock();
    bool done = e->done == e->asked;
    if (!done && e->by->has_transfers) advance_by_one(q, e->by);
    unlock(q);
    return done ? cudaSuccess : cudasim_note(cudaErrorNotReady);
}

cudaError_t cudaEventSynchronize(cudaEvent_t e) {
    cudasim_count_wait(true);
    Queues *q = lock();
    if (e->done < e->asked) drain(q, e->by, e, e->asked);
    unlock(q);
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to) {
    if (from->done < from->asked || to->done < to->asked) return cudasim_note(cudaErrorNotReady);
    double s = (double)(to->at.tv_sec - from->at.tv_sec);
    *ms = (float)(s * 1e3 + (double)(to->at.tv_nsec - from->at.tv_nsec) * 1e-6);
    return cudaSuccess;
}
