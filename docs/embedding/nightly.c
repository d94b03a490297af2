/* A product that learns each night from what the day has brought, while it goes on answering.
 *
 * Two threads answer without end.  Each night customers and calls are appended to the graph, the
 * last night's model is trained further on the new snapshot, and the threads get sessions of the
 * result, which they take up between two answers: nobody waits for anybody. */
#include <gnnc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "churn.h" /* trains: --emit=lib */
#include "score.h" /* predicts: --emit=infer */

enum { NIGHTS = 3, THREADS = 2, A_DAY = 200, FEATURES = 8, CALLS = 5 * A_DAY };
static const char TABLE[] = "customer";

/* ---- what a day brings ------------------------------------------------------------------ */
typedef struct {
    float x[A_DAY][FEATURES];
    int32_t leaves[A_DAY];
    int8_t split[A_DAY];
    int64_t from[CALLS], to[CALLS];
} Day;

static int drawn(uint32_t *seed, int n) {
    *seed = *seed * 1664525u + 1013904223u;
    return (int)(*seed / 65536u % (unsigned)n);
}

/* Customers `first` and up, who call each other and earlier ones; every second one leaves. */
static void invent(Day *d, int first, uint32_t *seed) {
    for (int i = 0; i < A_DAY; i++) {
        d->leaves[i] = i % 2;
        d->split[i] = (int8_t)(1 + i / 2 % 3);
        for (int j = 0; j < FEATURES; j++)
            d->x[i][j] = (float)(drawn(seed, 200) - 100) / 100 + (float)(i % 2) * 0.2f;
    }
    for (int e = 0; e < CALLS; e++) {
        int to = drawn(seed, A_DAY), like = drawn(seed, 4) > 0 ? to % 2 : drawn(seed, 2);
        d->to[e] = first + to;
        d->from[e] = drawn(seed, (first + A_DAY) / 2) * 2 + like;
    }
}

/* Its columns and ends as arrays; copied by the calls they go to. */
typedef struct {
    gnnc_array x, leaves, split, from, to;
} Arrays;

static gnnc_array array(gnnc_element type, const void *data, int64_t rows, int64_t columns) {
    gnnc_array a = {0};
    a.struct_size = sizeof a;
    a.data = data;
    a.dtype = type;
    a.rank = columns ? 2 : 1;
    a.shape[0] = rows;
    a.shape[1] = columns;
    return a;
}

static Arrays arrays_of(const Day *d) {
    return (Arrays){.x = array(GNNC_DT_F32, d->x, A_DAY, FEATURES),
                    .leaves = array(GNNC_DT_I32, d->leaves, A_DAY, 0),
                    .split = array(GNNC_DT_I8, d->split, A_DAY, 0),
                    .from = array(GNNC_DT_I64, d->from, CALLS, 0),
                    .to = array(GNNC_DT_I64, d->to, CALLS, 0)};
}

static gnnc_status first_day(gnnc_graph *g, const Day *d) {
    const Arrays a = arrays_of(d);
    gnnc_status st = gnnc_graph_add_nodes(g, TABLE, A_DAY);
    if (st == GNNC_OK) st = gnnc_graph_add_edges(g, "calls", TABLE, TABLE, &a.from, &a.to);
    if (st == GNNC_OK) st = gnnc_graph_add_column(g, TABLE, "x", GNNC_COL_FLOAT, &a.x, -1, NULL);
    if (st == GNNC_OK)
        st = gnnc_graph_add_column(g, TABLE, "leaves", GNNC_COL_CLASS, &a.leaves, 2, NULL);
    if (st == GNNC_OK)
        st = gnnc_graph_add_column(g, TABLE, "split", GNNC_COL_SPLIT, &a.split, -1, NULL);
    return st == GNNC_OK ? gnnc_graph_commit(g) : st;
}

static gnnc_values values(const char *column, const gnnc_array *a) {
    gnnc_values v = {0};
    v.struct_size = sizeof v;
    v.column = column;
    v.values = a;
    return v;
}

static gnnc_status next_day(gnnc_graph *g, const Day *d) {
    const Arrays a = arrays_of(d);
    const gnnc_values columns[] = {values("x", &a.x), values("leaves", &a.leaves),
                                   values("split", &a.split)};
    gnnc_rows customers = {0}, calls = {0};
    customers.struct_size = calls.struct_size = sizeof customers;
    customers.table = TABLE;
    customers.count = A_DAY;
    customers.columns = columns;
    customers.n_columns = 3;
    calls.table = "calls";
    calls.count = CALLS;
    calls.src = &a.from;
    calls.dst = &a.to;
    gnnc_status st = gnnc_graph_append(g, &customers);
    if (st == GNNC_OK) st = gnnc_graph_append(g, &calls);
    if (st != GNNC_OK) fprintf(stderr, "append: %s%s\n", customers.error, calls.error);
    return st == GNNC_OK ? gnnc_graph_commit(g) : st;
}

/* ---- answers -------------------------------------------------------------------------------- */
typedef struct {
    pthread_t thread;
    _Atomic(gnnc_session *) newer; /* the nights' result; NULL = none */
    atomic_llong answers, rows;    /* given; that the session knows */
    atomic_bool ended;
    atomic_int st; /* a gnnc_status */
} Server;

static void *serve(void *arg) {
    Server *s = arg;
    gnnc_session *now = atomic_exchange(&s->newer, NULL), *newer;
    uint32_t seed = 7;
    float score[2];
    for (; !atomic_load(&s->ended) && s->st == GNNC_OK; atomic_fetch_add(&s->answers, 1)) {
        if ((newer = atomic_exchange(&s->newer, NULL))) {
            gnnc_session_destroy(now); /* the last one of a snapshot frees it */
            now = newer;
        }
        int64_t id = drawn(&seed, (int)gnnc_session_rows(now));
        s->st = gnnc_session_predict(now, 1, &id, score);
        atomic_store(&s->rows, gnnc_session_rows(now));
    }
    gnnc_session_destroy(now);
    return NULL;
}

/* ---- a night -------------------- */
/* Trains the model further, or from the beginning where there is none yet: *model is the result. */
static gnnc_status train(gnnc_graph *g, gnnc_model **model) {
    gnnc_trainer *t = NULL;
    gnnc_model *newer = NULL;
    gnnc_status st = gnnc_trainer_create(&t, &churn_program);
    if (st == GNNC_OK && *model) st = gnnc_trainer_set_int(t, "epochs", 20);
    if (st == GNNC_OK && *model) st = gnnc_trainer_load_model(t, *model);
    if (st == GNNC_OK) st = gnnc_trainer_load_graph(t, g);
    while (st == GNNC_OK && !gnnc_trainer_done(t)) st = gnnc_trainer_epoch(t);
    if (st == GNNC_OK) st = gnnc_trainer_keep_best(t, NULL);
    if (st == GNNC_OK) st = gnnc_trainer_to_model(t, &score_program, &newer);
    if (st != GNNC_OK)
        fprintf(stderr, "train: %s\n", t ? gnnc_trainer_error(t) : gnnc_status_text(st));
    gnnc_trainer_destroy(t);
    if (st != GNNC_OK) return st;
    gnnc_model_release(*model); /* sessions of it keep it */
    *model = newer;
    return st;
}

/* A session for each thread, of the model and the graph's last snapshot. */
static gnnc_status publish(gnnc_graph *g, gnnc_model *m, Server *server) {
    gnnc_session *s = NULL, *clone;
    gnnc_status st = gnnc_session_create(&s);
    if (st == GNNC_OK) st = gnnc_session_open(s, m, g);
    for (int i = 0; i < THREADS && st == GNNC_OK; i++) {
        st = gnnc_session_clone(&clone, s);
        if (st == GNNC_OK) gnnc_session_destroy(atomic_exchange(&server[i].newer, clone));
    }
    if (st != GNNC_OK)
        fprintf(stderr, "publish: %s\n", s ? gnnc_session_error(s) : gnnc_status_text(st));
    gnnc_session_destroy(s);
    return st;
}

static int64_t answers(const Server *server) {
    int64_t n = 0;
    for (int i = 0; i < THREADS; i++) n += atomic_load(&server[i].answers);
    return n;
}

static gnnc_status night(gnnc_graph *g, const Day *d, gnnc_model **model, Server *server) {
    int64_t before = answers(server);
    gnnc_status st = next_day(g, d);
    if (st == GNNC_OK) st = train(g, model);
    int64_t meanwhile = answers(server) - before;
    if (st == GNNC_OK) st = publish(g, *model, server);
    if (st != GNNC_OK) return st;
    fprintf(stderr, "%lld answers were given meanwhile\n", (long long)meanwhile);
    printf("learned of %d more customers\n", A_DAY);
    return st;
}

int main(void) {
    static Server server[THREADS];
    static Day day;
    gnnc_graph *g = NULL;
    gnnc_model *m = NULL;
    uint32_t seed = 1;
    int started = 0;
    invent(&day, 0, &seed);
    gnnc_status st = gnnc_graph_create(&g);
    if (st == GNNC_OK) st = first_day(g, &day);
    if (st == GNNC_OK) st = train(g, &m);
    if (st == GNNC_OK) st = publish(g, m, server);
    while (started < THREADS && st == GNNC_OK)
        if (pthread_create(&server[started].thread, NULL, serve, &server[started]) == 0)
            started++;
        else
            st = GNNC_E_NOMEM;
    for (int i = 1; i <= NIGHTS && st == GNNC_OK; i++) {
        invent(&day, i * A_DAY, &seed);
        st = night(g, &day, &m, server);
    }
    for (int i = 0; i < started; i++) {
        Server *s = &server[i];
        while (st == GNNC_OK && s->st == GNNC_OK && atomic_load(&s->rows) != (NIGHTS + 1) * A_DAY)
            sched_yield(); /* until it has taken the last session up */
        atomic_store(&s->ended, true);
        pthread_join(s->thread, NULL);
        if (st == GNNC_OK) st = s->st;
        if (st == GNNC_OK) printf("%d customers can be asked for\n", (int)s->rows);
    }
    for (int i = 0; i < THREADS; i++) gnnc_session_destroy(server[i].newer);
    gnnc_model_release(m);
    if (st != GNNC_OK) fprintf(stderr, "nightly: %s\n", gnnc_status_text(st));
    gnnc_graph_release(g);
    return st != GNNC_OK;
}
