/* Asks a service for predictions as fast as it answers, and checks every number.
 *
 *     load PORT DATA WEIGHTS OTHER CONNECTIONS REQUESTS RELOADS
 *
 * The service began with WEIGHTS.  While the requests run, it is told RELOADS times to take the
 * OTHER ones, or the first ones again; an answer is right that is the named model's, and not of one
 * before that of which the service had told when the request was sent. */
#include <arpa/inet.h>
#include <cjson/cJSON.h>
#include <gnnc.h>
#include <math.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gcn.h"

enum { MOST_IDS = 8, MOST_TEXT = 1 << 16, MOST_CONNECTIONS = 256 };

typedef struct {
    struct Load *of;
    pthread_t thread;
    int fd;
    unsigned seed;
    int64_t n, room, meanwhile; /* answers; those that came while a model was loaded */
    double *seconds;
    bool ok;
    char text[MOST_TEXT]; /* of the last answer */
} Connection;

typedef struct Load {
    int port;
    const char *weights[2];
    int64_t rows, width, requests, reloads;
    float *want[2];       /* [rows, width] of each model */
    atomic_llong model;   /* the service has told of */
    atomic_llong loading; /* counts up at each begin and end: odd = a model is being loaded */
    atomic_bool reloaded; /* all of them */
    Connection *c[MOST_CONNECTIONS + 1];
} Load;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- HTTP ------------------------------------------------------------------------------------ */
static int open_connection(int port) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        return fd;
    }
    if (fd >= 0) close(fd);
    return -1;
}

/* The body of the answer, in c->text; NULL: none has come. */
static const char *post(Connection *c, const char *path, const char *body) {
    char ask[1024];
    int n = snprintf(ask, sizeof ask,
                     "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n%s", path,
                     strlen(body), body);
    if (n >= (int)sizeof ask || write(c->fd, ask, (size_t)n) != n) return NULL;
    for (size_t have = 0; have < MOST_TEXT - 1;) {
        ssize_t k = read(c->fd, c->text + have, MOST_TEXT - 1 - have);
        if (k <= 0) return NULL;
        c->text[have += (size_t)k] = '\0';
        const char *end = strstr(c->text, "\r\n\r\n"), *size = strstr(c->text, "Content-Length: ");
        if (end && size && have >= (size_t)(end + 4 - c->text) + strtoul(size + 16, NULL, 10))
            return strncmp(c->text, "HTTP/1.1 200", 12) == 0 ? end + 4 : NULL;
    }
    return NULL;
}

/* ---- answers -------------------- */
/* To 1e-6 of the row's largest value. */
static bool is_row(const cJSON *row, const float *want, int64_t n) {
    float most = 0;
    for (int64_t i = 0; i < n; i++) most = fmaxf(most, fabsf(want[i]));
    if (cJSON_GetArraySize(row) != n) return false;
    const cJSON *x = row->child;
    for (int64_t i = 0; i < n; i++, x = x->next)
        if (!(fabs(x->valuedouble - (double)want[i]) <= 1e-6 * (double)most)) return false;
    return true;
}

static bool is_right(const Load *l, const char *text, int n, const int64_t *id, int64_t least) {
    cJSON *o = cJSON_Parse(text), *rows = cJSON_GetObjectItem(o, "scores");
    const cJSON *model = cJSON_GetObjectItem(o, "model");
    bool ok = cJSON_IsNumber(model) && model->valueint >= least && cJSON_GetArraySize(rows) == n;
    const cJSON *row = ok ? rows->child : NULL;
    for (int i = 0; i < n && ok; i++, row = row->next) /* model 1 has the first weights */
        ok = is_row(row, l->want[!(model->valueint % 2)] + id[i] * l->width, l->width);
    cJSON_Delete(o);
    return ok;
}

static bool note(Connection *c, double seconds) {
    if (c->n == c->room) {
        c->room = c->room ? 2 * c->room : 1024;
        double *p = realloc(c->seconds, (size_t)c->room * sizeof *p);
        if (!p) return false;
        c->seconds = p;
    }
    c->seconds[c->n++] = seconds;
    return true;
}

static bool ask_once(Connection *c) {
    Load *l = c->of;
    int64_t id[MOST_IDS];
    char body[256] = "{\"ids\": [";
    int n = 1 + rand_r(&c->seed) % MOST_IDS, at = (int)strlen(body);
    for (int i = 0; i < n; i++) {
        id[i] = rand_r(&c->seed) % l->rows;
        at += snprintf(body + at, sizeof body - (size_t)at, "%s%d", i ? ", " : "", (int)id[i]);
    }
    snprintf(body + at, sizeof body - (size_t)at, "]}");
    int64_t least = atomic_load(&l->model), loading = atomic_load(&l->loading);
    double since = now();
    const char *text = post(c, "/predict", body);
    if (!text || !note(c, now() - since)) return false;
    c->meanwhile += loading % 2 && atomic_load(&l->loading) == loading;
    return is_right(l, text, n, id, least);
}

static void *ask(void *arg) {
    Connection *c = arg;
    while (c->ok && (c->n < c->of->requests || !atomic_load(&c->of->reloaded))) c->ok = ask_once(c);
    return NULL;
}

static void *reload(void *arg) {
    Connection *c = arg;
    Load *l = c->of;
    for (int64_t i = 0; i < l->reloads && c->ok; i++) {
        char body[512];
        double since = now();
        snprintf(body, sizeof body, "{\"weights\": \"%s\"}", l->weights[(i + 1) % 2]);
        atomic_fetch_add(&l->loading, 1);
        const char *text = post(c, "/reload", body);
        atomic_fetch_add(&l->loading, 1);
        cJSON *o = text ? cJSON_Parse(text) : NULL;
        const cJSON *model = cJSON_GetObjectItem(o, "model");
        c->ok = cJSON_IsNumber(model) && model->valueint == i + 2 && note(c, now() - since);
        atomic_store(&l->model, i + 2);
        cJSON_Delete(o);
    }
    atomic_store(&l->reloaded, true);
    return NULL;
}

/* ---- what is right, and what it took -------- */
static gnnc_status expect(Load *l, gnnc_graph *g, int which) {
    gnnc_model *m = NULL;
    gnnc_session *s = NULL;
    int rank;
    int64_t dim[GNNC_MAX_RANK];
    gnnc_status st = gnnc_model_create(&m, &gcn_program);
    if (st == GNNC_OK) st = gnnc_model_load(m, l->weights[which]);
    if (st == GNNC_OK) st = gnnc_session_create(&s);
    if (st == GNNC_OK) st = gnnc_session_open(s, m, g);
    if (st == GNNC_OK) st = gnnc_session_row_shape(s, &rank, dim);
    if (st == GNNC_OK) {
        l->rows = gnnc_session_rows(s);
        l->width = dim[0];
        float *to = l->want[which] = calloc((size_t)(l->rows * l->width), sizeof *to);
        for (int64_t i = 0; i < l->rows && to && st == GNNC_OK; i++)
            st = gnnc_session_predict(s, 1, &i, to + i * l->width);
        if (!to) st = GNNC_E_NOMEM;
    }
    gnnc_session_destroy(s);
    gnnc_model_release(m);
    return st;
}

static bool expect_both(Load *l, const char *data) {
    gnnc_graph *g = NULL;
    bool ok = !gnnc_graph_create(&g) && !gnnc_graph_read(g, data, 1) && !gnnc_graph_commit(g) &&
              !expect(l, g, 0) && !expect(l, g, 1);
    gnnc_graph_release(g);
    return ok;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of the connections [0, n). */
static void report(const Load *l, int n, double seconds) {
    int64_t all = 0, meanwhile = 0;
    for (int i = 0; i < n; i++) all += l->c[i]->n, meanwhile += l->c[i]->meanwhile;
    double *t = malloc((size_t)all * sizeof *t), *to = t;
    for (int i = 0; t && i < n; i++)
        memcpy(to, l->c[i]->seconds, (size_t)l->c[i]->n * sizeof *t), to += l->c[i]->n;
    if (t) qsort(t, (size_t)all, sizeof *t, by_size);
    if (t && all)
        printf(
            "%lld requests by %d connections: %.0f requests/s, p50 %.3f ms, p99 %.3f ms, longest "
            "%.3f ms\n",
            (long long)all, n, (double)all / seconds, t[all / 2] * 1e3, t[all * 99 / 100] * 1e3,
            t[all - 1] * 1e3);
    printf("%lld reloads; %lld answers came while a model was loaded\n", (long long)l->c[n]->n,
           (long long)meanwhile);
    free(t);
}

int main(int argc, char **argv) {
    static Load l;
    if (argc != 8) return 2;
    l.port = atoi(argv[1]);
    l.weights[0] = argv[3];
    l.weights[1] = argv[4];
    int n = atoi(argv[5]);
    if (n < 1 || n > MOST_CONNECTIONS || !expect_both(&l, argv[2])) return 2;
    l.requests = atoll(argv[6]) / n;
    l.reloads = atoll(argv[7]);
    atomic_init(&l.model, 1);
    double since = now();
    int made = 0, bad = 0;
    for (; made <= n; made++) { /* the last one reloads */
        Connection *c = l.c[made] = calloc(1, sizeof *c);
        if (!c) return 2;
        *c = (Connection){.of = &l, .seed = (unsigned)made + 1, .ok = true};
        c->fd = open_connection(l.port);
        if (c->fd < 0 || pthread_create(&c->thread, NULL, made < n ? ask : reload, c) != 0)
            return 2;
    }
    for (int i = 0; i < made; i++) {
        pthread_join(l.c[i]->thread, NULL);
        if (!l.c[i]->ok && !bad++) fprintf(stderr, "load: wrong: %s\n", l.c[i]->text);
    }
    report(&l, n, now() - since);
    printf("%d wrong\n", bad);
    for (int i = 0; i < made; i++) {
        close(l.c[i]->fd);
        free(l.c[i]->seconds);
        free(l.c[i]);
    }
    free(l.want[0]);
    free(l.want[1]);
    return bad != 0;
}
