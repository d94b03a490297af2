/* One lock, one condition: a thread waits for exchanges, the trainer for their end. */
#include "background.h"

#include "team.h"

typedef struct {
    const RtMessages *messages; /* NULL: a job */
    RtBackgroundJob *job;
    void *user; /* of job */
} Todo;

struct RtBackground {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    const gnnc_processes *processes;
    /* Under the lock: */
    Todo todo[RT_BESIDE_MOST];
    int n, done;        /* of these that were asked for, and that are done, since the last wait */
    bool is_over;       /* the thread shall end */
    gnnc_status status; /* of the first of them that failed */
};

static gnnc_status exchange(const gnnc_processes *p, const RtMessages *m) {
    return p->exchange(p->user, m->out, m->n_out, m->in, m->n_in);
}

/* Makes the next exchange or does the next job, with the lock released meanwhile. */
static void make_next(RtBackground *b) {
    Todo next = b->todo[b->done];
    gnnc_status st = b->status;
    pthread_mutex_unlock(&b->lock);
    if (st == GNNC_OK)
        st = next.messages ? exchange(b->processes, next.messages) : next.job(next.user);
    pthread_mutex_lock(&b->lock);
    b->status = st;
    b->done++;
    pthread_cond_broadcast(&b->changed);
}

/* The thread: makes one exchange after the other as they are asked for. */
static void *work(void *arg) {
    RtBackground *b = arg;
    pthread_mutex_lock(&b->lock);
    while (!b->is_over || b->done < b->n) {
        if (b->done < b->n)
            make_next(b);
        else
            pthread_cond_wait(&b->changed, &b->lock);
    }
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

RtBackground *rt_background_new(RtPool *pool, const gnnc_processes *p) {
    RtBackground *b = RT_NEW(pool, RtBackground);
    if (!b) return NULL;
    b->processes = p;
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->changed, NULL);
    if (rt_thread_start(&b->thread, work, b)) return b;
    pthread_cond_destroy(&b->changed);
    pthread_mutex_destroy(&b->lock);
    rt_pool_drop(pool, b);
    return NULL;
}

void rt_background_end(RtBackground *b) {
    if (!b) return;
    pthread_mutex_lock(&b->lock);
    b->is_over = true;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
    pthread_join(b->thread, NULL);
    pthread_cond_destroy(&b->changed);
    pthread_mutex_destroy(&b->lock);
}

static void add(RtBackground *b, Todo todo) {
    pthread_mutex_lock(&b->lock);
    b->todo[b->n++] = todo;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
}

void rt_background_exchange(RtBackground *b, const RtMessages *m) {
    add(b, (Todo){.messages = m});
}

void rt_background_run(RtBackground *b, RtBackgroundJob *job, void *user) {
    add(b, (Todo){.job = job, .user = user});
}

gnnc_status rt_background_wait(RtBackground *b) {
    pthread_mutex_lock(&b->lock);
    while (b->done < b->n) pthread_cond_wait(&b->changed, &b->lock);
    gnnc_status st = b->status;
    b->n = b->done = 0;
    b->status = GNNC_OK;
    pthread_mutex_unlock(&b->lock);
    return st;
}
