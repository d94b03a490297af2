/* Predictions of single rows through the C interface, one after the other; and data to do it on.
 *
 *     serve generate DIR NODES EDGES FEATURES CLASSES
 *     serve requests DATA WEIGHTS REQUESTS THREADS
 *
 * `requests` opens the graph and the model, prints "ready", waits for a line, and asks for rows
 * k * 2654435761 mod N, so that other systems can ask for the same; a hundredth as many, at least
 * 200, come before that.  Each thread has a session of its own.  One line of JSON.  The model is
 * the program called `served`: cc serve.c -I. libserved.so -pthread, where gnnc wrote served.h. */
#include <errno.h>
#include <gnnc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "served.h"

enum { MOST_THREADS = 256, LEAST_WARM = 200, SHOWN = 8 };

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
    pthread_barrier_t *begin;
    gnnc_session *session;
    int64_t requests, warm, first, step, width;
    double *seconds; /* [requests] */
    float *out;      /* [width] */
    float *shown;    /* [SHOWN, width]; of the first thread */
    double since, until;
    gnnc_status st;
} Asker;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void predict(Asker *a, int64_t k) {
    uint64_t n = (uint64_t)gnnc_session_rows(a->session);
    int64_t id = (int64_t)((uint64_t)k * 2654435761u % n);
    if (a->st == GNNC_OK) a->st = gnnc_session_predict(a->session, 1, &id, a->out);
}

static void *ask(void *arg) {
    Asker *a = arg;
    for (int64_t i = 0; i < a->warm; i++) predict(a, a->requests * a->step + i);
    pthread_barrier_wait(a->begin);
    double t = a->since = now();
    for (int64_t i = 0; i < a->requests; i++) {
        predict(a, a->first + i * a->step);
        double after = now();
        a->seconds[i] = after - t;
        t = after;
        if (a->shown && i < SHOWN)
            memcpy(a->shown + i * a->width, a->out, (size_t)a->width * sizeof *a->out);
    }
    a->until = t;
    return NULL;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(const Asker *a, int threads, double opened) {
    double since = a[0].since, until = a[0].until, *all = a[0].seconds;
    int64_t n = threads * a[0].requests;
    for (int i = 1; i < threads; i++) {
        if (a[i].since < since) since = a[i].since;
        if (a[i].until > until) until = a[i].until;
    }
    qsort(all, (size_t)n, sizeof *all, by_size);
    printf("{\"system\": \"gnnc\", \"threads\": %d, \"requests\": %lld, \"open_s\": %.3f, "
           "\"median_us\": %.2f, \"p99_us\": %.2f, \"requests_per_s\": %.1f, \"rows\": [",
           threads, (long long)n, opened, all[n / 2] * 1e6, all[n * 99 / 100] * 1e6,
           (double)n / (until - since));
    for (int64_t i = 0; i < SHOWN && i < a[0].requests; i++)
        for (int64_t j = 0; j < a[0].width; j++)
            printf("%s%.9g%s",
                   j   ? ", "
                   : i ? ", ["
                       : "[",
                   (double)a[0].shown[i * a[0].width + j], j + 1 < a[0].width ? "" : "]");
    printf("]}\n");
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

static int serve(const char *data, const char *weights, int64_t requests, int threads) {
    static Asker a[MOST_THREADS];
    gnnc_session *s = NULL;
    pthread_barrier_t begin;
    int rank;
    int64_t dim[GNNC_MAX_RANK], width = 1;
    double since = now();
    const char *why = open_first(data, weights, &s);
    if (why || gnnc_session_row_shape(s, &rank, dim)) {
        fprintf(stderr, "serve: %s\n", why ? why : "no rows");
        return 1;
    }
    double opened = now() - since;
    for (int i = 0; i < rank; i++) width *= dim[i];
    double *seconds = calloc((size_t)(requests * threads), sizeof *seconds);
    float *out = calloc((size_t)((threads + SHOWN) * width), sizeof *out);
    if (!seconds || !out) return 1;
    pthread_barrier_init(&begin, NULL, (unsigned)threads);
    for (int i = 0; i < threads; i++) {
        a[i] = (Asker){.begin = &begin, .requests = requests, .first = i, .step = threads};
        a[i].warm = requests / 100 > LEAST_WARM ? requests / 100 : LEAST_WARM;
        a[i].width = width;
        a[i].seconds = seconds + i * requests;
        a[i].out = out + i * width;
        a[i].shown = i ? NULL : out + threads * width;
        if (gnnc_session_clone(&a[i].session, s) != GNNC_OK) return 1;
    }
    printf("ready\n");
    fflush(stdout);
    if (getchar() == EOF) return 1;
    for (int i = 0; i < threads; i++)
        if (pthread_create(&a[i].thread, NULL, ask, &a[i]) != 0) return 1;
    int bad = 0;
    for (int i = 0; i < threads; i++) {
        pthread_join(a[i].thread, NULL);
        if (a[i].st != GNNC_OK && !bad++) fprintf(stderr, "%s\n", gnnc_session_error(a[i].session));
        gnnc_session_destroy(a[i].session);
    }
    if (!bad) report(a, threads, opened);
    gnnc_session_destroy(s);
    pthread_barrier_destroy(&begin);
    free(seconds);
    free(out);
    return bad != 0;
}

int main(int argc, char **argv) {
    if (argc == 7 && strcmp(argv[1], "generate") == 0) {
        Wanted w = {argv[2], atoll(argv[3]), atoll(argv[4]), atoll(argv[5]), atoll(argv[6])};
        if (w.nodes < 1 || w.edges < 0 || w.features < 1 || w.classes < 1) return 2;
        if (generate(&w)) return 0;
        fprintf(stderr, "serve: %s: %s\n", w.dir, strerror(errno));
        return 1;
    }
    if (argc != 6 || strcmp(argv[1], "requests") != 0) return 2;
    int64_t requests = atoll(argv[4]);
    int threads = atoi(argv[5]);
    if (requests < 1 || threads < 1 || threads > MOST_THREADS) return 2;
    return serve(argv[2], argv[3], requests, threads);
}
