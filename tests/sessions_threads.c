/* Sessions of one model in threads, while another thread opens and drops models: what each predicts
 * is what one session alone did, to the bit.  For tests/tsan, with a program of --infer.
 *
 *     sessions_threads WEIGHTS DATA */
#include <gnnc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const gnnc_program model_program;

enum { THREADS = 3, RELOADS = 4 };

typedef struct {
    gnnc_session *s;
    const float *want; /* [rows, width] */
    int64_t rows, width, first;
    int bad;
} Client;

typedef struct {
    const char *weights;
    gnnc_graph *graph;
    int bad;
} Reloads;

static gnnc_session *opened(const char *weights, gnnc_graph *g) {
    gnnc_model *m = NULL;
    gnnc_session *s = NULL;
    gnnc_status st = gnnc_model_create(&m, &model_program);
    if (st == GNNC_OK) st = gnnc_model_load(m, weights);
    if (st == GNNC_OK) st = gnnc_session_create(&s);
    if (st == GNNC_OK) st = gnnc_session_open(s, m, g);
    gnnc_model_release(m);
    if (st == GNNC_OK) return s;
    fprintf(stderr, "%s\n", s ? gnnc_session_error(s) : gnnc_status_text(st));
    gnnc_session_destroy(s);
    return NULL;
}

static void *serve(void *arg) {
    Client *c = arg;
    float *out = malloc((size_t)c->width * sizeof *out);
    c->bad = !out;
    for (int64_t i = c->first; i < c->rows && !c->bad; i += THREADS) {
        c->bad = gnnc_session_predict(c->s, 1, &i, out) != GNNC_OK ||
                 memcmp(out, c->want + i * c->width, (size_t)c->width * sizeof *out) != 0;
    }
    free(out);
    gnnc_session_destroy(c->s);
    return NULL;
}

static void *reload(void *arg) {
    Reloads *r = arg;
    for (int i = 0; i < RELOADS; i++) {
        gnnc_session *s = opened(r->weights, r->graph);
        if (!s) r->bad = 1;
        gnnc_session_destroy(s);
    }
    return NULL;
}

/* Every row by itself. */
static float *alone(gnnc_session *s, int64_t rows, int64_t width) {
    float *all = malloc((size_t)(rows * width) * sizeof *all);
    for (int64_t i = 0; i < rows && all; i++)
        if (gnnc_session_predict(s, 1, &i, all + i * width) != GNNC_OK) exit(1);
    return all;
}

int main(int argc, char **argv) {
    gnnc_graph *g = NULL;
    Client c[THREADS];
    pthread_t thread[THREADS], reloader;
    int rank, bad = 0;
    int64_t dim[GNNC_MAX_RANK], width = 1;
    if (argc != 3 || gnnc_graph_create(&g) || gnnc_graph_read(g, argv[2], 0) ||
        gnnc_graph_commit(g))
        return 2;
    gnnc_session *s = opened(argv[1], g);
    if (!s || gnnc_session_row_shape(s, &rank, dim)) return 1;
    for (int i = 0; i < rank; i++) width *= dim[i];
    int64_t rows = gnnc_session_rows(s);
    float *want = alone(s, rows, width);
    Reloads r = {.weights = argv[1], .graph = g};
    for (int i = 0; i < THREADS; i++) {
        c[i] = (Client){.want = want, .rows = rows, .width = width, .first = i};
        if (!want || gnnc_session_clone(&c[i].s, s)) return 1;
    }
    gnnc_session_destroy(s); /* clones go on */
    pthread_create(&reloader, NULL, reload, &r);
    for (int i = 0; i < THREADS; i++) pthread_create(&thread[i], NULL, serve, &c[i]);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        bad |= c[i].bad;
    }
    pthread_join(reloader, NULL);
    free(want);
    gnnc_graph_release(g);
    return bad || r.bad;
}
