/* Predictions of single rows through the C interface, one after the other; and data to do it on.
 *
 *     serve generate DIR NODES EDGES FEATURES CLASSES
 *     serve requests DATA WEIGHTS THREADS FIRST WORKERS
 *
 * `requests` opens the graph and the model and prints the first rows, as a line of JSON.  Then each
 * line BEGIN SECONDS that it reads is a measurement: its threads, each with a session of its own,
 * ask for one row after the other, from now on, and what they were given from BEGIN, by
 * CLOCK_MONOTONIC, to SECONDS later is the next line.  Threads of one process and several
 * processes that are given the same BEGIN are so measured alike, over the same time, all of them
 * busy in all of it.
 *
 * Row k * 2654435761 mod N is the k-th, so that other systems can ask for the same.  Threads are
 * the workers FIRST, FIRST + 1, .. of WORKERS, who have every WORKERS-th row: of several processes
 * none is helped by what another has just read into a cache that they share.  The model is the
 * program called `served`: cc serve.c -I. libserved.so -pthread, where gnnc wrote served.h. */
#include <errno.h>
#include <gnnc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "served.h"

enum { MOST_THREADS = 256, SHOWN = 8 };
enum { LINE = 128 }; /* bytes that a core takes from another at once */
#define FASTEST 1e-6 /* seconds of a request: what there is room for */

/* ---- data ----------------------------------------------------------------------------------- */
static uint64_t drawn(uint64_t *state) { /* splitmix64: Steele, Lea and Flood 2014 */
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Opens DIR/name for an array, its header written; shape as Python writes it. */
static FILE *npy(const char *dir, const char *name, const char *type, const char *shape) {
    char path[4096], head[118];
    int n = snprintf(head, sizeof head, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }",
                     type, shape);
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = n < (int)sizeof head ? fopen(path, "wb") : NULL;
    if (f) fprintf(f, "%c%s%c%c%c%c%-117s\n", 0x93, "NUMPY", 1, 0, 118, 0, head);
    return f;
}

typedef struct {
    const char *dir;
    int64_t nodes, edges, features, classes;
} Wanted;

static int write_schema(const Wanted *w) {
    char path[4096];
    snprintf(path, sizeof path, "%s/schema.json", w->dir);
    FILE *f = fopen(path, "w");
    if (!f) return 0;
    fprintf(f,
            "{\"format\": 1, \"name\": \"generated\", \"nodes\": {\"paper\": {\"count\": %lld, "
            "\"columns\": {\n"
            "  \"x\": {\"kind\": \"float\", \"shape\": [%lld, %lld], \"file\": \"x.npy\"},\n"
            "  \"y\": {\"kind\": \"class\", \"categories\": %lld, \"file\": \"y.npy\"},\n"
            "  \"split\": {\"kind\": \"split\", \"file\": \"split.npy\"}}}},\n"
            " \"edges\": {\"cites\": {\"count\": %lld, \"src\": \"paper\", \"dst\": \"paper\", "
            "\"file\": \"cites.npy\", \"columns\": {}}}}\n",
            (long long)w->nodes, (long long)w->nodes, (long long)w->features, (long long)w->classes,
            (long long)w->edges);
    return fclose(f) == 0;
}

/* Ends are uniform: a node has EDGES / NODES in-edges, give or take. */
static int generate(const Wanted *w) {
    char nodes[64], rows[64], ends[64];
    uint64_t seed = 1;
    snprintf(nodes, sizeof nodes, "%lld,", (long long)w->nodes);
    snprintf(rows, sizeof rows, "%lld, %lld", (long long)w->nodes, (long long)w->features);
    snprintf(ends, sizeof ends, "2, %lld", (long long)w->edges);
    if (mkdir(w->dir, 0777) != 0 && errno != EEXIST) return 0;
    FILE *x = npy(w->dir, "x.npy", "<f4", rows), *y = npy(w->dir, "y.npy", "<i4", nodes),
         *split = npy(w->dir, "split.npy", "|i1", nodes),
         *e = npy(w->dir, "cites.npy", "<i4", ends);
    int ok = x && y && split && e;
    for (int64_t i = 0; i < w->nodes && ok; i++) {
        int32_t class = (int32_t)(drawn(&seed) % (uint64_t)w->classes);
        int8_t part = (int8_t)(1 + i % 3);
        for (int64_t j = 0; j < w->features; j++) {
            float v = (float)(drawn(&seed) >> 40) * 0x1p-23f - 1;
            fwrite(&v, sizeof v, 1, x);
        }
        ok = fwrite(&class, sizeof class, 1, y) == 1 && fwrite(&part, sizeof part, 1, split) == 1;
    }
    for (int64_t i = 0; i < 2 * w->edges && ok; i++) {
        int32_t end = (int32_t)(drawn(&seed) % (uint64_t)w->nodes);
        ok = fwrite(&end, sizeof end, 1, e) == 1;
    }
    FILE *all[] = {x, y, split, e};
    for (int i = 0; i < 4; i++) ok = all[i] && !ferror(all[i]) && fclose(all[i]) == 0 && ok;
    return ok && write_schema(w);
}

/* ---- requests -------------------- */
typedef struct {
    pthread_t thread;
    gnnc_session *session;
    int64_t next, step; /* of k */
    double begin, end;
    int64_t room, n; /* requests of [begin, end] */
    float *seconds;  /* [n] */
    float *out;      /* of a row; no line of it is another worker's */
    double took;     /* all n of them */
    double kept_off; /* .. of which others had the processor */
    gnnc_status st;
    char apart[LINE];
} Asker;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* How long this thread was ready and other programs had its processor; a wait for a lock is none of
 * it.  0 where the system does not tell. */
static double kept_off(void) {
    long long ran, waited = 0;
    FILE *f = fopen("/proc/thread-self/schedstat", "r");
    if (f && fscanf(f, "%lld %lld", &ran, &waited) != 2) waited = 0;
    if (f) fclose(f);
    return 1e-9 * (double)waited;
}

static gnnc_status predict(gnnc_session *s, int64_t k, float *out) {
    uint64_t n = (uint64_t)gnnc_session_rows(s);
    int64_t id = (int64_t)((uint64_t)k * 2654435761u % n);
    return gnnc_session_predict(s, 1, &id, out);
}

static void *ask(void *arg) {
    Asker *a = arg;
    double begin, off, t, after;
    int64_t k = a->next;
    a->n = 0;
    do {
        a->st = predict(a->session, k, a->out);
        k += a->step;
    } while ((t = now()) < a->begin && a->st == GNNC_OK);
    off = kept_off();
    for (begin = t = now(); a->n < a->room && a->st == GNNC_OK; t = after) {
        a->st = predict(a->session, k, a->out);
        k += a->step;
        if ((after = now()) > a->end && a->n) break; /* one there is, however long it took */
        a->seconds[a->n++] = (float)(after - t);
    }
    a->took = t - begin;
    a->kept_off = kept_off() - off;
    a->next = k;
    return NULL;
}

static int by_size(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static int report(const Asker *a, int threads) {
    int64_t n = 0, least = a[0].n;
    double rate = 0, off = 0;
    for (int i = 0; i < threads; i++) n += a[i].n;
    for (int i = 0; i < threads; i++) least = a[i].n < least ? a[i].n : least;
    float *all = least ? malloc((size_t)n * sizeof *all) : NULL;
    if (!all) return 0;
    n = 0;
    for (int i = 0; i < threads; n += a[i++].n) {
        memcpy(all + n, a[i].seconds, (size_t)a[i].n * sizeof *all);
        rate += (double)a[i].n / a[i].took;
        if (a[i].kept_off / a[i].took > off) off = a[i].kept_off / a[i].took;
    }
    qsort(all, (size_t)n, sizeof *all, by_size);
    printf("{\"requests\": %lld, \"median_us\": %.2f, \"p99_us\": %.2f, \"requests_per_s\": %.1f, "
           "\"kept_off\": %.4f}\n",
           (long long)n, (double)all[n / 2] * 1e6, (double)all[n * 99 / 100] * 1e6, rate, off);
    fflush(stdout);
    free(all);
    return 1;
}

/* One measurement: 0 after a failure. */
static int measure(Asker *a, int threads, double begin, double seconds) {
    int bad = 0, n = 0;
    for (int i = 0; i < threads; i++) {
        a[i].begin = begin;
        a[i].end = begin + seconds;
        a[i].room = (int64_t)(seconds / FASTEST) + 1;
        a[i].seconds = malloc((size_t)a[i].room * sizeof *a[i].seconds);
        if (a[i].seconds) /* pages that are there before the time is taken */
            memset(a[i].seconds, 1, (size_t)a[i].room * sizeof *a[i].seconds);
        bad |= !a[i].seconds;
    }
    while (!bad && n < threads && pthread_create(&a[n].thread, NULL, ask, &a[n]) == 0) n++;
    bad |= n < threads;
    for (int i = 0; i < n; i++) {
        pthread_join(a[i].thread, NULL);
        if (a[i].st != GNNC_OK && !bad++)
            fprintf(stderr, "serve: %s\n", gnnc_session_error(a[i].session));
    }
    if (!bad && !report(a, threads)) bad = fprintf(stderr, "serve: not one request has ended\n");
    for (int i = 0; i < threads; i++) free(a[i].seconds);
    return !bad;
}

static const char *open_first(const char *data, const char *weights, gnnc_session **s) {
    static char why[1024];
    gnnc_graph *g = NULL;
    gnnc_model *m = NULL;
    gnnc_status st = gnnc_graph_create(&g);
    if (st == GNNC_OK) st = gnnc_graph_read(g, data, 1);
    if (st == GNNC_OK) st = gnnc_graph_commit(g);
    if (st != GNNC_OK) snprintf(why, sizeof why, "%s", gnnc_graph_error(g));
    if (st == GNNC_OK) st = gnnc_model_create(&m, &served_program);
    if (st == GNNC_OK && (st = gnnc_model_load(m, weights)) != GNNC_OK)
        snprintf(why, sizeof why, "%s", gnnc_model_error(m));
    if (st == GNNC_OK) st = gnnc_session_create(s);
    if (st == GNNC_OK && (st = gnnc_session_open(*s, m, g)) != GNNC_OK)
        snprintf(why, sizeof why, "%s", gnnc_session_error(*s));
    gnnc_graph_release(g);
    gnnc_model_release(m);
    return st == GNNC_OK ? NULL : *why ? why : gnnc_status_text(st);
}

/* The first rows, and how long it took to be able to answer. */
static int show(gnnc_session *s, double opened, int64_t width, float *out) {
    printf("{\"system\": \"gnnc\", \"open_s\": %.3f, \"rows\": [", opened);
    for (int64_t k = 0; k < SHOWN; k++) {
        if (predict(s, k, out) != GNNC_OK) return 0;
        printf(k ? ", [" : "[");
        for (int64_t j = 0; j < width; j++) printf(j ? ", %.9g" : "%.9g", (double)out[j]);
        printf("]");
    }
    printf("]}\n");
    fflush(stdout);
    return 1;
}

static int serve(const char *data, const char *weights, int threads, int first, int workers) {
    static Asker a[MOST_THREADS];
    gnnc_session *s = NULL;
    int rank;
    int64_t dim[GNNC_MAX_RANK], width = 1;
    double since = now(), begin, seconds;
    const char *why = open_first(data, weights, &s);
    if (why || gnnc_session_row_shape(s, &rank, dim)) {
        fprintf(stderr, "serve: %s\n", why ? why : "no rows");
        return 1;
    }
    double opened = now() - since;
    for (int i = 0; i < rank; i++) width *= dim[i];
    size_t row = ((size_t)width * sizeof(float) / LINE + 2) * LINE;
    char *out = calloc((size_t)threads, row);
    int ok = out && show(s, opened, width, (float *)out);
    for (int i = 0; i < threads && ok; i++) {
        a[i] = (Asker){.next = first + i, .step = workers};
        a[i].out = (float *)(out + (size_t)i * row);
        ok = gnnc_session_clone(&a[i].session, s) == GNNC_OK;
    }
    while (ok && scanf("%lf %lf", &begin, &seconds) == 2) ok = measure(a, threads, begin, seconds);
    for (int i = 0; i < threads; i++) gnnc_session_destroy(a[i].session);
    gnnc_session_destroy(s);
    free(out);
    return !ok;
}

int main(int argc, char **argv) {
    if (argc == 7 && strcmp(argv[1], "generate") == 0) {
        Wanted w = {argv[2], atoll(argv[3]), atoll(argv[4]), atoll(argv[5]), atoll(argv[6])};
        if (w.nodes < 1 || w.edges < 0 || w.features < 1 || w.classes < 1) return 2;
        if (generate(&w)) return 0;
        fprintf(stderr, "serve: %s: %s\n", w.dir, strerror(errno));
        return 1;
    }
    if (argc != 7 || strcmp(argv[1], "requests") != 0) return 2;
    int threads = atoi(argv[4]), first = atoi(argv[5]), workers = atoi(argv[6]);
    if (threads < 1 || threads > MOST_THREADS || first < 0 || first + threads > workers) return 2;
    return serve(argv[2], argv[3], threads, first, workers);
}
