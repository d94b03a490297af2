/* Sessions of one model in threads, while another thread opens and drops models, and others append
 * papers to the graph and commit them: what each predicts is what one session alone did, to the
 * bit. For tests/tsan, with a program of --infer and Cora.  With -DTRAINERS two trainers of
 * different models learn of the same graph meanwhile, what a trainer alone does, and one of them
 * gives models that are served.
 *
 *     sessions_threads WEIGHTS DATA */
#include <gnnc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const gnnc_program model_program;
#ifdef TRAINERS
extern const gnnc_program gcn_program, gat_program;
enum { LEARNERS = 2, EPOCHS = 2 };
static const gnnc_program *const LEARNED[] = {&gcn_program, &gat_program};
#else
enum { LEARNERS = 0, EPOCHS = 0 };
static const gnnc_program *const LEARNED[] = {NULL};
#endif

enum { THREADS = 3, RELOADS = 4, WRITERS = 2, PAPERS = 20 };

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

/* A trainer of the snapshot that there was, and what one alone made of that. */
typedef struct {
    gnnc_trainer *t;
    gnnc_graph *graph;
    float *want;
    int64_t n;
    int serves, bad;
} Learner;

static gnnc_trainer *learner_of(const gnnc_program *p, gnnc_graph *g) {
    gnnc_trainer *t = NULL;
    gnnc_status st = gnnc_trainer_create(&t, p);
    if (st == GNNC_OK) st = gnnc_trainer_set_int(t, "threads", 2);
    if (st == GNNC_OK) st = gnnc_trainer_set_int(t, "serial_ns", 0);
    if (st == GNNC_OK) st = gnnc_trainer_load_graph(t, g);
    if (st == GNNC_OK) return t;
    fprintf(stderr, "%s\n", t ? gnnc_trainer_error(t) : gnnc_status_text(st));
    exit(1);
}

/* What there is to predict after the last epoch. */
static const float *learned(gnnc_trainer *t, int64_t *n) {
    const float *data = NULL;
    int rank;
    int64_t dim[GNNC_MAX_RANK];
    *n = 1;
    for (int i = 0; i < EPOCHS; i++)
        if (gnnc_trainer_epoch(t) != GNNC_OK) return NULL;
    if (gnnc_trainer_predict(t, &data, &rank, dim) != GNNC_OK) return NULL;
    for (int i = 0; i < rank; i++) *n *= dim[i];
    return data;
}

static void learner_new(Learner *l, int i, gnnc_graph *g) {
    gnnc_trainer *alone = learner_of(LEARNED[i], g);
    const float *data = learned(alone, &l->n);
    l->want = data ? malloc((size_t)l->n * sizeof *data) : NULL;
    if (!l->want) exit(1);
    memcpy(l->want, data, (size_t)l->n * sizeof *data);
    gnnc_trainer_destroy(alone);
    l->t = learner_of(LEARNED[i], g);
    l->graph = g;
    l->serves = i == 0;
}

static void *learn(void *arg) {
    Learner *l = arg;
    gnnc_model *m = NULL;
    gnnc_session *s = NULL;
    float row[64];
    int64_t n, id = 7;
    const float *got = learned(l->t, &n);
    l->bad = !got || n != l->n || memcmp(got, l->want, (size_t)n * sizeof *got) != 0;
    if (l->serves && !l->bad)
        l->bad = gnnc_trainer_to_model(l->t, &model_program, &m) || gnnc_session_create(&s) ||
                 gnnc_session_open(s, m, l->graph) || gnnc_session_predict(s, 1, &id, row);
    gnnc_session_destroy(s);
    gnnc_model_release(m);
    gnnc_trainer_destroy(l->t);
    free(l->want);
    return NULL;
}

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

/* Every row by itself. */
static float *alone(gnnc_session *s, int64_t rows, int64_t width) {
    float *all = malloc((size_t)(rows * width) * sizeof *all);
    for (int64_t i = 0; i < rows && all; i++)
        if (gnnc_session_predict(s, 1, &i, all + i * width) != GNNC_OK) exit(1);
    return all;
}

/* Papers of two words, each of which cites one that was there and is cited by it. */
static gnnc_status append_one(gnnc_graph *g, int64_t old) {
    const int64_t ptr[] = {0, 2};
    const int32_t words[] = {5, 700};
    gnnc_array p = {.struct_size = sizeof p, .data = ptr, .dtype = GNNC_DT_I64, .rank = 1}, w = p,
               ends[2];
    p.shape[0] = 2;
    w.data = words, w.dtype = GNNC_DT_I32, w.shape[0] = 2;
    const gnnc_values x = {.struct_size = sizeof x, .column = "x", .ptr = &p, .idx = &w};
    gnnc_rows papers = {
        .struct_size = sizeof papers, .table = "paper", .count = 1, .columns = &x, .n_columns = 1};
    gnnc_status st = gnnc_graph_append(g, &papers);
    if (st != GNNC_OK) fprintf(stderr, "%s\n", papers.error);
    if (st != GNNC_OK) return st;
    const int64_t src[] = {papers.first, old}, dst[] = {old, papers.first};
    ends[0] = ends[1] = p;
    ends[0].data = src;
    ends[1].data = dst;
    gnnc_rows cites = {.struct_size = sizeof cites,
                       .table = "cites",
                       .count = 2,
                       .src = &ends[0],
                       .dst = &ends[1]};
    return gnnc_graph_append(g, &cites);
}

static void *append(void *arg) {
    Reloads *r = arg;
    for (int64_t i = 0; i < PAPERS; i++) {
        if (append_one(r->graph, i * 7) != GNNC_OK) r->bad = 1;
        if (i % 5 == 4 && gnnc_graph_commit(r->graph) != GNNC_OK) r->bad = 1;
    }
    return NULL;
}

/* All papers are there, whoever appended them. */
static int all_appended(const char *weights, gnnc_graph *g, int64_t rows, int64_t width) {
    gnnc_session *s = gnnc_graph_commit(g) == GNNC_OK ? opened(weights, g) : NULL;
    float *last = s ? alone(s, gnnc_session_rows(s), width) : NULL;
    int good = last && gnnc_session_rows(s) == rows + WRITERS * PAPERS;
    free(last);
    gnnc_session_destroy(s);
    return good;
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

int main(int argc, char **argv) {
    gnnc_graph *g = NULL;
    Client c[THREADS];
    Learner learner[LEARNERS + 1] = {{0}};
    pthread_t thread[THREADS], writer[WRITERS], trainer[LEARNERS + 1], reloader;
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
    Reloads r = {.weights = argv[1], .graph = g}, w[WRITERS];
    for (int i = 0; i < THREADS; i++) {
        c[i] = (Client){.want = want, .rows = rows, .width = width, .first = i};
        if (!want || gnnc_session_clone(&c[i].s, s)) return 1;
    }
    gnnc_session_destroy(s); /* clones go on */
    for (int i = 0; i < LEARNERS; i++) learner_new(&learner[i], i, g);
    for (int i = 0; i < LEARNERS; i++) pthread_create(&trainer[i], NULL, learn, &learner[i]);
    pthread_create(&reloader, NULL, reload, &r);
    for (int i = 0; i < WRITERS; i++) {
        w[i] = r;
        pthread_create(&writer[i], NULL, append, &w[i]);
    }
    for (int i = 0; i < THREADS; i++) pthread_create(&thread[i], NULL, serve, &c[i]);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        bad |= c[i].bad;
    }
    for (int i = 0; i < WRITERS; i++) {
        pthread_join(writer[i], NULL);
        bad |= w[i].bad;
    }
    for (int i = 0; i < LEARNERS; i++) {
        pthread_join(trainer[i], NULL);
        bad |= learner[i].bad;
    }
    pthread_join(reloader, NULL);
    bad |= !all_appended(argv[1], g, rows, width);
    free(want);
    gnnc_graph_release(g);
    return bad || r.bad;
}
