/* Trainers of one model in threads that share the rows of data in parts, or the steps of updates,
 * and send them to each other by copies; rows are computed while others come, batches are drawn
 * while steps are sent.  The first saves what they learned, which is to be the same for any number
 * of them.  For tests/tsan, with a program of --parts, or one whose recipe has `accumulate`.
 *
 *     rows_threads DATA PROCESSES OUT [steps|pulls]     pulls: steps, and features in parts
 *     rows_threads DATA PROCESSES OUT resume FROM       then one epoch more, from a checkpoint */
#include <gnnc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const gnnc_program model_program;

enum { MOST = 8, EPOCHS = 3 };

/* What all of them send by: each puts its messages here, all wait, each copies what is for it. */
typedef struct {
    int n;
    pthread_barrier_t all;
    const void *const *out[MOST];
    const size_t *n_out[MOST];
    void *bytes; /* that are broadcast */
} Wire;

typedef struct {
    Wire *wire;
    int rank;
    const char *data, *out, *from; /* from: the checkpoint, or NULL */
    bool steps;                    /* they share no rows .. */
    bool pulls;                    /* .. and have features in parts */
    gnnc_counters count;
    pthread_t thread;
} Process;

static gnnc_status broadcast(void *user, void *bytes, size_t n_bytes, int from) {
    Process *p = user;
    if (p->rank == from) p->wire->bytes = bytes;
    pthread_barrier_wait(&p->wire->all);
    if (p->rank != from) memcpy(bytes, p->wire->bytes, n_bytes);
    pthread_barrier_wait(&p->wire->all);
    return GNNC_OK;
}

static gnnc_status exchange(void *user, const void *const *out, const size_t *n_out,
                            void *const *in, const size_t *n_in) {
    Process *p = user;
    Wire *w = p->wire;
    gnnc_status st = GNNC_OK;
    w->out[p->rank] = out;
    w->n_out[p->rank] = n_out;
    pthread_barrier_wait(&w->all);
    for (int r = 0; r < w->n; r++) {
        if (r == p->rank) continue;
        if (w->n_out[r][p->rank] != n_in[r])
            st = GNNC_E_IO;
        else if (n_in[r])
            memcpy(in[r], w->out[r][p->rank], n_in[r]);
    }
    pthread_barrier_wait(&w->all);
    return st;
}

static gnnc_status learn(Process *p, gnnc_trainer *t) {
    gnnc_processes is = {.struct_size = sizeof is,
                         .rank = p->rank,
                         .n = p->wire->n,
                         .broadcast = broadcast,
                         .exchange = exchange,
                         .exchange_in_thread = 1,
                         .user = p};
    gnnc_status st = gnnc_trainer_set_int(t, "threads", 2);
    if (st == GNNC_OK) st = gnnc_trainer_set_int(t, "serial_ns", 0);
    if (st == GNNC_OK && p->steps) st = gnnc_trainer_set_int(t, "workers", 2);
    if (st == GNNC_OK && p->pulls) st = gnnc_trainer_set_int(t, "pull_rows", 1);
    if (st == GNNC_OK && p->pulls) st = gnnc_trainer_set_int(t, "pull_cache", 640);
    if (st == GNNC_OK) st = gnnc_trainer_set_processes(t, &is);
    if (st == GNNC_OK) st = gnnc_trainer_load(t, p->data);
    for (int i = 0; i < EPOCHS && st == GNNC_OK; i++) st = gnnc_trainer_epoch(t);
    if (st == GNNC_OK && p->from) st = gnnc_trainer_resume(t, p->from);
    if (st == GNNC_OK && p->from) st = gnnc_trainer_epoch(t);
    if (st == GNNC_OK && p->rank == 0) st = gnnc_trainer_save(t, p->out);
    p->count.struct_size = sizeof p->count;
    return st == GNNC_OK ? gnnc_trainer_counters(t, &p->count) : st;
}

static void *process(void *arg) {
    Process *p = arg;
    gnnc_trainer *t = NULL;
    gnnc_status st = gnnc_trainer_create(&t, &model_program);
    if (st == GNNC_OK) st = learn(p, t);
    if (st != GNNC_OK) {
        fprintf(stderr, "rank %d: %s\n", p->rank, t ? gnnc_trainer_error(t) : gnnc_status_text(st));
        exit(1); /* the others wait for it */
    }
    gnnc_trainer_destroy(t);
    return NULL;
}

int main(int argc, char **argv) {
    bool pulls = argc == 5 && strcmp(argv[4], "pulls") == 0;
    bool steps = pulls || (argc == 5 && strcmp(argv[4], "steps") == 0);
    const char *from = argc == 6 && strcmp(argv[4], "resume") == 0 ? argv[5] : NULL;
    Wire wire = {.n = argc == 4 || steps || from ? atoi(argv[2]) : 0};
    Process all[MOST];
    if (wire.n < 1 || wire.n > MOST) return 2;
    pthread_barrier_init(&wire.all, NULL, (unsigned)wire.n);
    for (int r = 0; r < wire.n; r++) {
        all[r] = (Process){&wire, r, argv[1], argv[3], from, steps, pulls, {0}, 0};
        if (pthread_create(&all[r].thread, NULL, process, &all[r])) return 1;
    }
    for (int r = 0; r < wire.n; r++) pthread_join(all[r].thread, NULL);
    for (int r = 0; r < wire.n; r++)
        if (wire.n > 1 && !from && (!steps || pulls) && all[r].count.beside_bytes == 0) {
            fprintf(stderr, "rank %d computed nothing while rows came\n", r);
            return 1;
        }
    return 0;
}
