/* One lock, two conditions.  An item costs milliseconds, so nothing finer pays. */
#include "pipeline.h"

#include <pthread.h>
#include <string.h>

#include "runtime/clock.h"
#include "runtime/exec/team.h"

typedef struct {
    RtPipeline *p;
    int number;
    pthread_t thread;
} Worker;

typedef struct {
    bool is_ready;
    gnnc_status status;
    RtError err;
} Slot;

struct RtPipeline {
    RtAlloc from;
    RtPipelineSpec spec;
    Worker *workers;
    Slot *slots;
    int n_workers; /* started */
    pthread_mutex_t lock;
    pthread_cond_t more_room, more_items;
    /* under the lock */
    int64_t todo, end; /* the next item to prepare; the end of the run */
    int64_t first;     /* item of the run */
    int64_t taken;     /* the next item to hand out */
    int64_t oldest;    /* item in use: of the consumer's, else the next to be handed out */
    int n_busy;        /* workers inside prepare */
    bool is_cancelled, is_over;
    gnnc_status status; /* of the run: what `next` keeps returning */
    RtError err;
    RtPipelineStats stats;
};

/* Waits for the condition, with the lock held, and adds the time to *total_ns. */
static void wait_on(RtPipeline *p, pthread_cond_t *c, int64_t *total_ns) {
    int64_t start = rt_now_ns();
    pthread_cond_wait(c, &p->lock);
    *total_ns += rt_now_ns() - start;
}

/* ---- workers --------------------------------------------------------------------------- */
static bool has_room(const RtPipeline *p) {
    return !p->is_cancelled && p->todo < p->end && p->todo - p->oldest < p->spec.n_slots;
}

/* A worker prepares the next item, with the lock released meanwhile, and notes how that went in the
 * item's slot. After a failure no later item is begun. */
static void prepare_one(RtPipeline *p, int worker) {
    int64_t number = p->todo++;
    int slot = (int)(number % p->spec.n_slots);
    RtError err = {""};
    p->n_busy++;
    pthread_mutex_unlock(&p->lock);
    int64_t start = rt_now_ns();
    gnnc_status st = p->spec.prepare(p->spec.user, worker, number, slot, &err);
    int64_t took = rt_now_ns() - start;
    pthread_mutex_lock(&p->lock);
    p->n_busy--;
    p->stats.prepare_ns += took;
    p->slots[slot] = (Slot){true, st, err};
    if (st != GNNC_OK) p->end = number < p->end ? number + 1 : p->end; /* none after it */
    pthread_cond_broadcast(&p->more_items);
}

/* A worker: prepares items as long as there are slots, until the pipeline is stopped. Only waits
 * for room count as its waiting. */
static void *work(void *arg) {
    Worker *w = arg;
    RtPipeline *p = w->p;
    pthread_mutex_lock(&p->lock);
    while (!p->is_over) {
        if (has_room(p))
            prepare_one(p, w->number);
        else
            wait_on(p, &p->more_room, p->todo < p->end ? &p->stats.producer_ns : &(int64_t){0});
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* ---- life ----------------------------------------------------------------------------------- */
/* Starts the workers, as many as there can be. */
static void start_workers(RtPipeline *p) {
    for (int i = 0; i < p->spec.n_workers; i++) {
        p->workers[i] = (Worker){.p = p, .number = i};
        if (!rt_thread_start(&p->workers[i].thread, work, &p->workers[i])) break;
        p->n_workers++;
    }
}

gnnc_status rt_pipeline_start(RtPipeline **out, const RtAlloc *from, const RtPipelineSpec *spec,
                              RtError *err) {
    *out = NULL;
    int more = spec->n_held > 1 ? spec->n_held - 1 : 0;
    if (spec->n_workers < 0 || spec->n_slots < more + (spec->n_workers ? 2 : 1))
        return rt_fail(err, GNNC_E_ARG, "a pipeline of %d workers and %d slots", spec->n_workers,
                       spec->n_slots);
    RtAlloc a = from ? *from : rt_alloc_default();
    size_t n = sizeof(RtPipeline) + sizeof(Worker) * (size_t)spec->n_workers +
               sizeof(Slot) * (size_t)spec->n_slots;
    RtPipeline *p = a.alloc(a.user, n);
    if (!p) return rt_fail_nomem(err, "a pipeline");
    p->from = a;
    p->spec = *spec;
    p->workers = (Worker *)(p + 1);
    p->slots = (Slot *)(p->workers + spec->n_workers);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->more_room, NULL);
    pthread_cond_init(&p->more_items, NULL);
    start_workers(p);
    *out = p;
    return GNNC_OK;
}

void rt_pipeline_stop(RtPipeline *p) {
    if (!p) return;
    pthread_mutex_lock(&p->lock);
    p->is_over = p->is_cancelled = true;
    pthread_cond_broadcast(&p->more_room);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->n_workers; i++) pthread_join(p->workers[i].thread, NULL);
    pthread_cond_destroy(&p->more_items);
    pthread_cond_destroy(&p->more_room);
    pthread_mutex_destroy(&p->lock);
    p->from.release(p->from.user, p);
}

/* ---- the consumer -------- */
void rt_pipeline_begin(RtPipeline *p, int64_t first, int64_t end) {
    pthread_mutex_lock(&p->lock);
    p->is_cancelled = true;
    while (p->n_busy) pthread_cond_wait(&p->more_items, &p->lock);
    for (int i = 0; i < p->spec.n_slots; i++) p->slots[i].is_ready = false;
    p->todo = p->taken = p->oldest = p->first = first;
    p->end = end;
    p->status = GNNC_OK;
    p->err.text[0] = 0;
    p->is_cancelled = false;
    pthread_cond_broadcast(&p->more_room);
    pthread_mutex_unlock(&p->lock);
}

/* Ends the run with a failure, which every later call then gives. */
static gnnc_status end_run(RtPipeline *p, gnnc_status st, const char *text) {
    p->status = st;
    memcpy(p->err.text, text, strlen(text) + 1);
    p->is_cancelled = true;
    return st;
}

/* Waits for item `taken`; with no worker prepares it here. */
static gnnc_status wait_for_item(RtPipeline *p) {
    Slot *s = &p->slots[p->taken % p->spec.n_slots];
    while (p->status == GNNC_OK && !s->is_ready && !p->is_cancelled) {
        if (p->n_workers == 0)
            prepare_one(p, 0);
        else
            wait_on(p, &p->more_items, &p->stats.consumer_ns);
    }
    if (p->status != GNNC_OK) return p->status;
    if (p->is_cancelled) return end_run(p, GNNC_E_STATE, "cancelled");
    return s->status == GNNC_OK ? GNNC_OK : end_run(p, s->status, s->err.text);
}

gnnc_status rt_pipeline_next(RtPipeline *p, int64_t *number, int *slot, RtError *err) {
    pthread_mutex_lock(&p->lock);
    int64_t oldest = p->taken - (p->spec.n_held > 1 ? p->spec.n_held - 1 : 0);
    p->oldest = oldest > p->first ? oldest : p->first;
    pthread_cond_broadcast(&p->more_room);
    bool is_last = p->taken >= p->end && p->status == GNNC_OK && !p->is_cancelled;
    gnnc_status st = is_last ? GNNC_OK : wait_for_item(p);
    *slot = -1;
    if (st == GNNC_OK && !is_last) {
        *number = p->taken++;
        *slot = (int)(*number % p->spec.n_slots);
        p->slots[*slot].is_ready = false;
        p->stats.n_items++;
    }
    if (st != GNNC_OK) rt_fail(err, st, "%s", p->err.text);
    pthread_mutex_unlock(&p->lock);
    return st;
}

void rt_pipeline_cancel(RtPipeline *p) {
    pthread_mutex_lock(&p->lock);
    p->is_cancelled = true;
    pthread_cond_broadcast(&p->more_items);
    pthread_mutex_unlock(&p->lock);
}

/* Copies the counters under the lock. */
RtPipelineStats rt_pipeline_stats(RtPipeline *p) {
    pthread_mutex_lock(&p->lock);
    RtPipelineStats s = p->stats;
    pthread_mutex_unlock(&p->lock);
    return s;
}
