/* Training inside a product: its own arrays, its own progress bar, cancelled and resumed from
 * memory, and the result served at once.
 *
 * The model is there twice: `churn` trains (--emit=lib), `score` predicts rows (--emit=infer). */
#include <gnnc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "churn.h"
#include "score.h"

/* ---- the product's data --------------------------------------------------------------- */
enum { CUSTOMERS = 800, FEATURES = 8, CALLS = 5 * CUSTOMERS };

typedef struct {
    float x[CUSTOMERS][FEATURES];
    int32_t leaves[CUSTOMERS]; /* 0 or 1; -1 = not known */
    int8_t split[CUSTOMERS];   /* 1 train, 2 validation, 3 test */
    int64_t from[CALLS], to[CALLS];
} Data;

static int drawn(uint32_t *seed, int n) {
    *seed = *seed * 1664525u + 1013904223u;
    return (int)(*seed / 65536u % (unsigned)n);
}

/* Those who leave mostly call each other, and their features tell a little of it. */
static void invent(Data *d) {
    uint32_t seed = 1;
    for (int i = 0; i < CUSTOMERS; i++) {
        d->leaves[i] = i % 2;
        d->split[i] = (int8_t)(1 + i / 2 % 3);
        for (int j = 0; j < FEATURES; j++)
            d->x[i][j] = (float)(drawn(&seed, 200) - 100) / 100 + (float)d->leaves[i] * 0.2f;
    }
    for (int e = 0; e < CALLS; e++) {
        int from = drawn(&seed, CUSTOMERS), alike = drawn(&seed, 4) > 0;
        int to = drawn(&seed, CUSTOMERS / 2) * 2;
        d->from[e] = from;
        d->to[e] = to + (alike ? from % 2 : drawn(&seed, 2));
    }
}

/* Read where it lies: it must not change while the graph is there. */
static gnnc_array lent(gnnc_element type, const void *data, int64_t rows, int64_t columns) {
    gnnc_array a = {0};
    a.struct_size = sizeof a;
    a.data = data;
    a.dtype = type;
    a.rank = columns ? 2 : 1;
    a.shape[0] = rows;
    a.shape[1] = columns;
    a.borrowed = 1;
    return a;
}

static gnnc_status graph_of(const Data *d, gnnc_graph **g) {
    const gnnc_array x = lent(GNNC_DT_F32, d->x, CUSTOMERS, FEATURES),
                     leaves = lent(GNNC_DT_I32, d->leaves, CUSTOMERS, 0),
                     split = lent(GNNC_DT_I8, d->split, CUSTOMERS, 0),
                     from = lent(GNNC_DT_I64, d->from, CALLS, 0),
                     to = lent(GNNC_DT_I64, d->to, CALLS, 0);
    const char *t = "customer";
    gnnc_status st = gnnc_graph_create(g);
    if (st == GNNC_OK) st = gnnc_graph_add_nodes(*g, t, CUSTOMERS);
    if (st == GNNC_OK) st = gnnc_graph_add_edges(*g, "calls", t, t, &from, &to);
    if (st == GNNC_OK) st = gnnc_graph_add_column(*g, t, "x", GNNC_COL_FLOAT, &x, -1, NULL);
    if (st == GNNC_OK)
        st = gnnc_graph_add_column(*g, t, "leaves", GNNC_COL_CLASS, &leaves, 2, NULL);
    if (st == GNNC_OK) st = gnnc_graph_add_column(*g, t, "split", GNNC_COL_SPLIT, &split, -1, NULL);
    if (st == GNNC_OK) st = gnnc_graph_commit(*g);
    return st;
}

/* ---- training -------------------------------------------------------------------------- */
typedef struct {
    char *p;
    size_t n;
} Bytes;

static int take(void *user, const void *data, size_t n_bytes, size_t n_left) {
    Bytes *to = user;
    if (!to->n && !(to->p = malloc(n_bytes + n_left))) return 1;
    memcpy(to->p + to->n, data, n_bytes);
    to->n += n_bytes;
    return 0;
}

/* What the user sees, and when he presses "cancel". */
typedef struct {
    int64_t cancel_at; /* steps; -1 = he does not */
    int draws;
} User;

static int hear(void *user, const gnnc_progress *now) {
    const User *u = user;
    int done = (int)(now->epochs_done * 20 / now->epochs_total);
    if (u->draws)
        fprintf(stderr, "\r[%.*s%.*s] loss %.3f ", done, "####################", 20 - done,
                "                    ", now->loss);
    return now->steps == u->cancel_at;
}

/* Trains from `unfinished`, where there is something, to the end, or until the user cancels:
 * GNNC_E_STOPPED, and `to` is where it stands.  Else `to` has the weights. */
static gnnc_status train(gnnc_graph *g, User *u, const Bytes *unfinished, Bytes *to,
                         double *accuracy) {
    gnnc_trainer *t = NULL;
    gnnc_status st = gnnc_trainer_create(&t, &churn_program);
    if (st == GNNC_OK) st = gnnc_trainer_set_progress(t, hear, u);
    if (st == GNNC_OK && unfinished->n)
        st = gnnc_trainer_resume_from(t, unfinished->p, unfinished->n);
    if (st == GNNC_OK) st = gnnc_trainer_load_graph(t, g);
    while (st == GNNC_OK && !gnnc_trainer_done(t)) st = gnnc_trainer_epoch(t);
    if (st == GNNC_E_STOPPED) {
        gnnc_status saved = gnnc_trainer_save_to(t, take, to);
        if (saved != GNNC_OK) st = saved;
    } else if (st == GNNC_OK && (st = gnnc_trainer_keep_best(t, NULL)) == GNNC_OK) {
        st = gnnc_trainer_metric(t, "accuracy.test", accuracy);
        if (st == GNNC_OK) st = gnnc_trainer_save_weights_to(t, take, to);
    }
    if (st != GNNC_OK && st != GNNC_E_STOPPED)
        fprintf(stderr, "train: %s\n", t ? gnnc_trainer_error(t) : gnnc_status_text(st));
    gnnc_trainer_destroy(t);
    if (u->draws) fputs("\n", stderr);
    return st;
}

/* ---- serving ------------------------------------------------------------------------------ */
static gnnc_status score(const Bytes *weights, gnnc_graph *g, int64_t customer, float out[2]) {
    gnnc_model *m = NULL;
    gnnc_session *s = NULL;
    gnnc_status st = gnnc_model_create(&m, &score_program);
    if (st == GNNC_OK) st = gnnc_model_load_from(m, weights->p, weights->n);
    if (st == GNNC_OK) st = gnnc_session_create(&s);
    if (st == GNNC_OK) st = gnnc_session_open(s, m, g);
    if (st == GNNC_OK) st = gnnc_session_predict(s, 1, &customer, out);
    if (st != GNNC_OK)
        fprintf(stderr, "score: %s\n", s ? gnnc_session_error(s) : gnnc_status_text(st));
    gnnc_session_destroy(s);
    gnnc_model_release(m);
    return st;
}

int main(void) {
    static Data data;
    gnnc_graph *g = NULL;
    Bytes none = {0}, unfinished = {0}, weights = {0}, straight = {0};
    User impatient = {25, 1}, patient = {-1, 1}, nobody = {-1, 0};
    double accuracy = 0;
    float out[2];
    invent(&data);
    int ok = graph_of(&data, &g) == GNNC_OK;
    if (!ok) fprintf(stderr, "graph: %s\n", g ? gnnc_graph_error(g) : "out of memory");
    ok = ok && train(g, &impatient, &none, &unfinished, &accuracy) == GNNC_E_STOPPED;
    if (ok) printf("cancelled after %d steps\n", (int)impatient.cancel_at);
    ok = ok && train(g, &patient, &unfinished, &weights, &accuracy) == GNNC_OK;
    if (ok) printf("resumed; test accuracy above 0.8: %s\n", accuracy > 0.8 ? "yes" : "no");
    ok = ok && train(g, &nobody, &none, &straight, &accuracy) == GNNC_OK;
    if (ok)
        printf("the weights of a training that was never cancelled: %s\n",
               weights.n == straight.n && !memcmp(weights.p, straight.p, weights.n) ? "the same"
                                                                                    : "others");
    ok = ok && score(&weights, g, 7, out) == GNNC_OK;
    if (ok) printf("customer 7 %s\n", out[1] > out[0] ? "leaves" : "stays");
    free(unfinished.p);
    free(weights.p);
    free(straight.p);
    gnnc_graph_release(g);
    return !ok;
}
