/* A prediction service over HTTP and JSON.
 *
 *     serve PORT DATA WEIGHTS [WORKERS]      PORT 0 = any; on the loopback alone
 *
 *     POST /predict {"ids": [3, 17]}         {"model": 1, "scores": [[..], [..]]}
 *     POST /reload  {"weights": "new.ckpt"}  {"model": 2}
 *     POST /subgraph {..}                    as /predict, of nodes and edges that are sent
 * (subgraph.h)
 *
 * libmicrohttpd's thread reads requests and suspends them.  Each worker has a session and takes all
 * requests that wait: those that arrive together are one prediction.  A keeper opens models that
 * come later and hands each worker a session of them, which it takes up before its next prediction.
 * Nobody waits for that, and a request sent after /reload has answered gets the new model. */
#include <arpa/inet.h>
#include <cjson/cJSON.h>
#include <gnnc.h>
#include <microhttpd.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gcn.h"
#include "subgraph.h"

enum { MOST_BYTES = 1 << 20, MOST_IDS = 4096, MOST_WORKERS = 64 };

/* ---- what there is ------------------------------------------------------------------------ */
typedef struct Request {
    struct Request *next;
    struct MHD_Connection *from;
    char *body; /* a text */
    size_t n_body;
    int64_t *id;
    int64_t n;
    cJSON *subgraph; /* what the rows are of; NULL: the graph */
    char *answer;    /* NULL: not yet */
    unsigned status;
} Request;

/* Requests in the order of their arrival. */
typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t come;
    Request *first, **last;
    struct Served *retired; /* the keeper's: sessions that workers have done with */
    bool ended;
} Queue;

/* Sessions of a model, over the graph and alone. */
typedef struct {
    gnnc_session *over, *alone;
} Sessions;

/* Those of one worker, and the model's number. */
typedef struct Served {
    struct Served *next;
    Sessions of;
    int64_t model;
} Served;

typedef struct {
    struct Service *of;
    pthread_t thread;
    Served *now;
    _Atomic(Served *) newer; /* from the keeper; NULL = none */
    int64_t *id;             /* [MOST_IDS] of a prediction */
    float *score;            /* [MOST_IDS, width] */
} Worker;

typedef struct Service {
    gnnc_graph *graph;
    int64_t rows, width, model;
    Queue asked, reloads;
    int n_workers;
    Worker worker[MOST_WORKERS];
    pthread_t keeper;
} Service;

/* ---- queues ------------------------------------------------------------------------------- */
static void queue_init(Queue *q) {
    *q = (Queue){.lock = PTHREAD_MUTEX_INITIALIZER, .come = PTHREAD_COND_INITIALIZER};
    q->last = &q->first;
}

/* False: it has ended. */
static bool queue_put(Queue *q, Request *r) {
    pthread_mutex_lock(&q->lock);
    bool ok = !q->ended;
    if (ok) {
        r->next = NULL;
        *q->last = r;
        q->last = &r->next;
        pthread_cond_signal(&q->come);
    }
    pthread_mutex_unlock(&q->lock);
    return ok;
}

static void queue_end(Queue *q) {
    pthread_mutex_lock(&q->lock);
    q->ended = true;
    pthread_cond_broadcast(&q->come);
    pthread_mutex_unlock(&q->lock);
}

/* Those that wait, up to so many ids; *retired (may be NULL): what workers gave back.  Nothing of
 * both: it has ended. */
static Request *queue_take(Queue *q, int64_t most_ids, Served **retired) {
    pthread_mutex_lock(&q->lock);
    while (!q->first && !q->retired && !q->ended) pthread_cond_wait(&q->come, &q->lock);
    Request *r = q->first, **end = &r;
    for (int64_t n = 0; *end && (n += (*end)->n) <= most_ids;) end = &(*end)->next;
    q->first = *end;
    if (!q->first) q->last = &q->first;
    *end = NULL;
    if (retired) {
        *retired = q->retired;
        q->retired = NULL;
    }
    pthread_mutex_unlock(&q->lock);
    return r;
}

/* ---- answers -------------------------------------------------------------------------------- */
/* Takes the object over; NULL: there was no memory for it. */
static void answer(Request *r, unsigned status, cJSON *object) {
    r->answer = object ? cJSON_PrintUnformatted(object) : NULL;
    r->status = r->answer ? status : MHD_HTTP_INTERNAL_SERVER_ERROR;
    if (!r->answer) r->answer = strdup("{}");
    cJSON_Delete(object);
}

static void refuse(Request *r, unsigned status, const char *why) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "error", why);
    answer(r, status, o);
}

static cJSON *object_of(int64_t model) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "model", (double)model);
    return o;
}

static void give_scores(Request *r, int64_t model, const float *score, int64_t width) {
    cJSON *o = object_of(model), *rows = cJSON_AddArrayToObject(o, "scores");
    for (int64_t i = 0; i < r->n; i++)
        cJSON_AddItemToArray(rows, cJSON_CreateFloatArray(score + i * width, (int)width));
    answer(r, MHD_HTTP_OK, o);
}

/* ---- workers -------------------------------------------------------------------------------- */
static void retire(Queue *q, Served *s) {
    pthread_mutex_lock(&q->lock);
    s->next = q->retired;
    q->retired = s;
    pthread_cond_signal(&q->come);
    pthread_mutex_unlock(&q->lock);
}

static void take_newer(Worker *w) {
    Served *s = atomic_exchange(&w->newer, NULL);
    if (!s) return;
    retire(&w->of->reloads, w->now); /* freeing a model takes a while */
    w->now = s;
}

/* `score` has room for the request's rows. */
static void predict_subgraph(const Served *by, Request *r, float *score, int64_t width) {
    Subgraph sent;
    gnnc_session *s = by->of.alone;
    gnnc_status st = fill_subgraph(s, r->subgraph, &sent);
    bool filled = st == GNNC_OK;
    if (filled) st = gnnc_session_predict_subgraph(s, r->n, r->id, score);
    if (st == GNNC_OK)
        give_scores(r, by->model, score, width);
    else
        refuse(r, st == GNNC_E_NOMEM ? MHD_HTTP_INTERNAL_SERVER_ERROR : MHD_HTTP_BAD_REQUEST,
               !filled && *sent.why ? sent.why : gnnc_session_error(s));
}

static void *work(void *arg) {
    Worker *w = arg;
    int64_t width = w->of->width;
    for (Request *r; (r = queue_take(&w->of->asked, MOST_IDS, NULL));) {
        int64_t n = 0;
        take_newer(w);
        for (Request *i = r; i; i = i->next) {
            if (i->subgraph) continue;
            memcpy(w->id + n, i->id, (size_t)i->n * sizeof *w->id);
            n += i->n;
        }
        gnnc_session *over = w->now->of.over;
        gnnc_status st = gnnc_session_predict(over, n, w->id, w->score);
        float *score = w->score, *rest = w->score + n * width;
        for (Request *next; r; r = next) {
            next = r->next; /* r is the connection's when that is resumed */
            if (r->subgraph)
                predict_subgraph(w->now, r, rest, width);
            else if (st == GNNC_OK)
                give_scores(r, w->now->model, score, width);
            else
                refuse(r, MHD_HTTP_INTERNAL_SERVER_ERROR, gnnc_session_error(over));
            if (!r->subgraph) score += r->n * width;
            MHD_resume_connection(r->from);
        }
    }
    return NULL;
}

/* ---- models that come later -------------------- */
static void end(Sessions s) {
    gnnc_session_destroy(s.over);
    gnnc_session_destroy(s.alone);
}

static void drop(Served *s) {
    if (s) end(s->of);
    free(s);
}

static Served *served(const Sessions *s, int64_t model) {
    Served *to = calloc(1, sizeof *to);
    if (to && gnnc_session_clone(&to->of.over, s->over) == GNNC_OK &&
        gnnc_session_clone(&to->of.alone, s->alone) == GNNC_OK) {
        to->model = model;
        return to;
    }
    drop(to);
    return NULL;
}

/* Sessions of the weights in the file; or false, and why. */
static bool open_sessions(gnnc_graph *g, const char *weights, Sessions *s, char *why,
                          size_t n_why) {
    gnnc_model *m = NULL;
    *s = (Sessions){0};
    gnnc_status st = gnnc_model_create(&m, &gcn_program);
    if (st == GNNC_OK) st = gnnc_model_load(m, weights);
    if (st == GNNC_OK) st = gnnc_session_create(&s->alone);
    if (st == GNNC_OK) st = gnnc_session_create(&s->over);
    if (st == GNNC_OK) st = gnnc_session_open(s->over, m, g);
    bool over = st == GNNC_OK;
    if (over) st = gnnc_session_open_model(s->alone, m);
    if (st != GNNC_OK) {
        const char *said = over      ? gnnc_session_error(s->alone)
                           : s->over ? gnnc_session_error(s->over)
                                     : gnnc_model_error(m);
        snprintf(why, n_why, "%s", *said ? said : gnnc_status_text(st));
        end(*s);
    }
    gnnc_model_release(m); /* the sessions keep it */
    return st == GNNC_OK;
}

/* Sessions for every worker, or for none. */
static bool publish(Service *v, const Sessions *s) {
    Served *made[MOST_WORKERS];
    int n = 0;
    while (n < v->n_workers && (made[n] = served(s, v->model + 1))) n++;
    if (n < v->n_workers) {
        while (n) drop(made[--n]);
        return false;
    }
    v->model++;
    for (int i = 0; i < n; i++) drop(atomic_exchange(&v->worker[i].newer, made[i]));
    return true;
}

static void reload(Service *v, Request *r) {
    char why[512];
    cJSON *o = cJSON_Parse(r->body);
    const char *weights = cJSON_GetStringValue(cJSON_GetObjectItem(o, "weights"));
    Sessions s = {0};
    bool opened = weights && open_sessions(v->graph, weights, &s, why, sizeof why);
    if (!opened)
        refuse(r, MHD_HTTP_BAD_REQUEST, weights ? why : "wanted: {\"weights\": FILE}");
    else if (!publish(v, &s))
        refuse(r, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory: the model is the one before");
    else
        answer(r, MHD_HTTP_OK, object_of(v->model));
    if (opened) end(s);
    cJSON_Delete(o);
}

static void *keep(void *arg) {
    Service *v = arg;
    for (;;) {
        Served *retired;
        Request *r = queue_take(&v->reloads, 0, &retired), *next;
        bool ended = !r && !retired;
        for (Served *after; retired; retired = after) {
            after = retired->next;
            drop(retired);
        }
        for (; r; r = next) {
            next = r->next;
            reload(v, r);
            MHD_resume_connection(r->from);
        }
        if (ended) return NULL;
    }
}

/* ---- HTTP -------- */
static bool take_ids(Request *r, const cJSON *ids, int64_t rows) {
    int n = cJSON_IsArray(ids) ? cJSON_GetArraySize(ids) : 0;
    bool ok = n > 0 && n <= MOST_IDS && (r->id = calloc((size_t)n, sizeof *r->id));
    for (const cJSON *i = ok ? ids->child : NULL; i && ok; i = i->next) {
        double id = i->valuedouble;
        ok = cJSON_IsNumber(i) && id >= 0 && id < (double)rows && id == (double)(int64_t)id;
        if (ok) r->id[r->n++] = (int64_t)id;
    }
    return ok;
}

/* What is wanted, where the body is none; NULL: it is one. */
static const char *take_request(const Service *v, Request *r, bool brings) {
    cJSON *o = cJSON_Parse(r->body);
    bool ok =
        take_ids(r, cJSON_GetObjectItem(o, brings ? "rows" : "ids"), brings ? INT32_MAX : v->rows);
    if (ok && brings)
        r->subgraph = o;
    else
        cJSON_Delete(o);
    if (ok) return NULL;
    return brings ? "wanted: {\"nodes\": {..}, \"edges\": {..}, \"rows\": [..]}"
                  : "wanted: {\"ids\": [..]}, numbers of rows";
}

/* True: there is an answer.  False: the connection is suspended until there is, and from then on
 * another thread's. */
static bool route(Service *v, Request *r, const char *method, const char *url) {
    bool posts = strcmp(method, MHD_HTTP_METHOD_POST) == 0;
    bool reloads = posts && strcmp(url, "/reload") == 0,
         brings = posts && strcmp(url, "/subgraph") == 0;
    const char *wanted = NULL;
    if (r->n_body > MOST_BYTES) {
        refuse(r, MHD_HTTP_CONTENT_TOO_LARGE, "too large");
    } else if (!reloads && !brings && !(posts && strcmp(url, "/predict") == 0)) {
        refuse(r, MHD_HTTP_NOT_FOUND, "there are POST /predict, /subgraph and /reload");
    } else if (!reloads && (wanted = take_request(v, r, brings))) {
        refuse(r, MHD_HTTP_BAD_REQUEST, wanted);
    } else {
        MHD_suspend_connection(r->from); /* before anyone can resume it */
        if (queue_put(reloads ? &v->reloads : &v->asked, r)) return false;
        refuse(r, MHD_HTTP_SERVICE_UNAVAILABLE, "the service ends");
        MHD_resume_connection(r->from);
        return false;
    }
    return true;
}

static enum MHD_Result reply(Request *r) {
    struct MHD_Response *to =
        MHD_create_response_from_buffer(strlen(r->answer), r->answer, MHD_RESPMEM_MUST_COPY);
    if (!to) return MHD_NO;
    MHD_add_response_header(to, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json");
    enum MHD_Result ok = MHD_queue_response(r->from, r->status, to);
    MHD_destroy_response(to);
    return ok;
}

static bool add_body(Request *r, const char *data, size_t n) {
    if (r->n_body + n <= MOST_BYTES) {
        char *p = realloc(r->body, r->n_body + n + 1);
        if (!p) return false;
        memcpy(p + r->n_body, data, n);
        p[r->n_body + n] = '\0';
        r->body = p;
    }
    r->n_body += n; /* of one that is too large nothing more is kept */
    return true;
}

/* Called when the headers have come, with each part of the body, at its end, and when an answer is
 * there. */
static enum MHD_Result handle(void *user, struct MHD_Connection *c, const char *url,
                              const char *method, const char *version, const char *data,
                              size_t *n_data, void **state) {
    (void)version;
    Request *r = *state;
    if (!r) {
        *state = r = calloc(1, sizeof *r);
        if (r) r->from = c;
        return r ? MHD_YES : MHD_NO;
    }
    if (*n_data) {
        bool ok = add_body(r, data, *n_data);
        *n_data = 0;
        return ok ? MHD_YES : MHD_NO;
    }
    if (r->answer) return reply(r);
    return route(user, r, method, url) ? reply(r) : MHD_YES;
}

static void completed(void *user, struct MHD_Connection *c, void **state,
                      enum MHD_RequestTerminationCode how) {
    (void)user, (void)c, (void)how;
    Request *r = *state;
    if (!r) return;
    free(r->body);
    cJSON_Delete(r->subgraph);
    free(r->id);
    free(r->answer);
    free(r);
}

/* ---- life -------- */
static bool open_service(Service *v, const char *data, const char *weights) {
    char why[512];
    int rank;
    int64_t dim[GNNC_MAX_RANK];
    queue_init(&v->asked);
    queue_init(&v->reloads);
    if (gnnc_graph_create(&v->graph) || gnnc_graph_read(v->graph, data, 1) ||
        gnnc_graph_commit(v->graph)) {
        fprintf(stderr, "serve: %s\n", v->graph ? gnnc_graph_error(v->graph) : "out of memory");
        return false;
    }
    Sessions s;
    if (!open_sessions(v->graph, weights, &s, why, sizeof why)) {
        fprintf(stderr, "serve: %s\n", why);
        return false;
    }
    gnnc_session_row_shape(s.over, &rank, dim);
    v->rows = gnnc_session_rows(s.over);
    v->width = 1;
    for (int i = 0; i < rank; i++) v->width *= dim[i];
    bool ok = publish(v, &s);
    end(s);
    for (int i = 0; i < v->n_workers && ok; i++) {
        Worker *w = &v->worker[i];
        w->of = v;
        w->now = atomic_exchange(&w->newer, NULL);
        w->id = calloc(MOST_IDS, sizeof *w->id);
        w->score = calloc(MOST_IDS * (size_t)v->width, sizeof *w->score);
        ok = w->id && w->score && pthread_create(&w->thread, NULL, work, w) == 0;
    }
    return ok && pthread_create(&v->keeper, NULL, keep, v) == 0;
}

static void close_service(Service *v) {
    queue_end(&v->asked);
    for (int i = 0; i < v->n_workers; i++) {
        Worker *w = &v->worker[i];
        pthread_join(w->thread, NULL);
        drop(w->now);
        free(w->id);
        free(w->score);
    }
    queue_end(&v->reloads);
    pthread_join(v->keeper, NULL);
    for (int i = 0; i < v->n_workers; i++) drop(v->worker[i].newer);
    gnnc_graph_release(v->graph);
}

int main(int argc, char **argv) {
    static Service v;
    sigset_t ends;
    int signal;
    if (argc < 4 || argc > 5) return 2;
    v.n_workers = argc > 4 ? atoi(argv[4]) : 2;
    if (v.n_workers < 1 || v.n_workers > MOST_WORKERS) return 2;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ends, NULL); /* of all threads: this one waits for them */
    if (!open_service(&v, argv[2], argv[3])) return 1;

    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1]))};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    struct MHD_Daemon *d =
        MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
                         handle, &v, MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&at,
                         MHD_OPTION_NOTIFY_COMPLETED, completed, NULL, MHD_OPTION_END);
    if (!d) {
        fprintf(stderr, "serve: cannot listen on port %s\n", argv[1]);
        return 1;
    }
    printf("listening on port %d\n", MHD_get_daemon_info(d, MHD_DAEMON_INFO_BIND_PORT)->port);
    fflush(stdout);
    sigwait(&ends, &signal);
    close_service(&v); /* every request that waits is answered first */
    MHD_stop_daemon(d);
    return 0;
}
