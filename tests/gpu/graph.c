/* A synthetic graph of a given size as a data directory (docs/data.md) and as the .npy files that
 * the scripts of bench/peers read: power-law popularity, two of three edges within a class,
 * features that tell the class apart.  Ids say nothing of popularity, as in most data.
 *
 *     graph OUT NODES EDGES FEATURES CLASSES      EDGES before both directions are stored
 *
 * Random numbers are splitmix64 (Steele, Lea, Flood 2014) of a counter, so a graph is the same
 * everywhere. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}
static double uniform(uint64_t stream, uint64_t i) {
    return (double)(mix(mix(stream) + i) >> 11) * 0x1p-53;
}

typedef struct {
    const char *out;
    long long n, e, f, c, kept; /* kept: edges stored */
    long long step;             /* prime to n: rank r has the id r * step % n */
    uint64_t *key;              /* [kept] src * n + dst, ascending */
} Graph;

static FILE *npy(const Graph *g, const char *name, const char *descr, long long rows,
                 long long cols) {
    char path[4096], head[128];
    snprintf(path, sizeof path, "%s/%s.npy", g->out, name);
    FILE *f = fopen(path, "wb");
    if (!f) return NULL;
    int n =
        cols ? snprintf(head, sizeof head,
                        "{'descr': '%s', 'fortran_order': False, 'shape': (%lld, %lld), }", descr,
                        rows, cols)
             : snprintf(head, sizeof head,
                        "{'descr': '%s', 'fortran_order': False, 'shape': (%lld,), }", descr, rows);
    memset(head + n, ' ', sizeof head - (size_t)n);
    head[117] = '\n';
    fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, f);
    fwrite(head, 1, 118, f);
    return f;
}

static int done(FILE *f) {
    int bad = ferror(f);
    return fclose(f) == 0 && !bad;
}

static long long class_of(const Graph *g, long long v) {
    return v % g->c;
}

static long long common_divisor(long long x, long long y) {
    return y ? common_divisor(y, x % y) : x;
}

/* The golden section of n, or the next number that is prime to n. */
static long long step_of(long long n) {
    long long s = (long long)(.6180339887 * (double)n);
    for (s += s < 1; common_divisor(s, n) > 1;) s++;
    return s;
}

static long long id_of(const Graph *g, long long rank) {
    return rank * g->step % g->n;
}

/* Popularity falls with a power of the node's rank: a node is uniform^2.5 of the way. */
static long long popular(const Graph *g, uint64_t i, long long same_class_as) {
    long long v = (long long)((double)g->n * pow(uniform(2, i), 2.5));
    if (same_class_as >= 0) v = v - class_of(g, v) + class_of(g, same_class_as);
    return v < g->n ? v : g->n - 1;
}

static int ascending(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static int make_edges(Graph *g) {
    g->key = malloc((size_t)(2 * g->e + 1) * sizeof *g->key);
    if (!g->key) return 0;
    long long n = 0;
    for (long long i = 0; i < g->e; i++) {
        long long s = (long long)((double)g->n * uniform(1, (uint64_t)i));
        long long d = popular(g, (uint64_t)i, uniform(3, (uint64_t)i) < .65 ? s : -1);
        if (s == d) continue;
        s = id_of(g, s), d = id_of(g, d);
        g->key[n++] = (uint64_t)s * (uint64_t)g->n + (uint64_t)d;
        g->key[n++] = (uint64_t)d * (uint64_t)g->n + (uint64_t)s;
    }
    qsort(g->key, (size_t)n, sizeof *g->key, ascending);
    for (long long i = 0; i < n; i++)
        if (g->kept == 0 || g->key[i] != g->key[g->kept - 1]) g->key[g->kept++] = g->key[i];
    return 1;
}

/* Ours: i32 [2, E] by destination; the graph is symmetric, so the keys' halves change places. */
static int write_edges(const Graph *g) {
    FILE *ours = npy(g, "edges", "<i4", 2, g->kept),
         *theirs = npy(g, "edge_index", "<i8", 2, g->kept);
    if (!ours || !theirs) return 0;
    for (int half = 0; half < 2; half++)
        for (long long i = 0; i < g->kept; i++) {
            int64_t v = (int64_t)(half ? g->key[i] / (uint64_t)g->n : g->key[i] % (uint64_t)g->n);
            int32_t w = (int32_t)v;
            fwrite(&w, sizeof w, 1, ours);
            fwrite(&v, sizeof v, 1, theirs);
        }
    return done(ours) & done(theirs);
}

static int write_nodes(const Graph *g) {
    static const char *const part[] = {"train_idx", "val_idx", "test_idx"};
    FILE *x = npy(g, "x", "<f4", g->n, g->f), *y = npy(g, "y", "<i8", g->n, 0);
    FILE *label = npy(g, "label", "<i4", g->n, 0), *split = npy(g, "split", "|i1", g->n, 0),
         *idx[3];
    if (!x || !y || !label || !split) return 0;
    long long count[3] = {0}, *rank = malloc((size_t)g->n * sizeof *rank);
    if (!rank) return 0;
    for (long long r = 0; r < g->n; r++) rank[id_of(g, r)] = r;
    for (long long v = 0; v < g->n; v++) {
        int64_t c = class_of(g, rank[v]);
        int32_t c32 = (int32_t)c;
        double u = uniform(4, (uint64_t)v);
        int8_t s = u < .54 ? 1 : u < .72 ? 2 : 3;
        count[s - 1]++;
        fwrite(&c, sizeof c, 1, y);
        fwrite(&c32, sizeof c32, 1, label);
        fwrite(&s, 1, 1, split);
        for (long long k = 0; k < g->f; k++) {
            float z = (float)(uniform(5, (uint64_t)(v * g->f + k)) - .5 +
                              .3 * uniform(6, (uint64_t)(c * g->f + k)));
            fwrite(&z, sizeof z, 1, x);
        }
    }
    free(rank);
    for (int s = 0; s < 3; s++) {
        if (!(idx[s] = npy(g, part[s], "<i8", count[s], 0))) return 0;
        for (int64_t v = 0; v < g->n; v++) {
            double u = uniform(4, (uint64_t)v);
            if ((u < .54 ? 0 : u < .72 ? 1 : 2) == s) fwrite(&v, sizeof v, 1, idx[s]);
        }
        if (!done(idx[s])) return 0;
    }
    return done(x) & done(y) & done(label) & done(split);
}

static int write_schema(const Graph *g) {
    char path[4096];
    snprintf(path, sizeof path, "%s/schema.json", g->out);
    FILE *f = fopen(path, "w");
    if (!f) return 0;
    fprintf(f,
            "{\"format\": 1, \"nodes\": {\"paper\": {\"count\": %lld, \"columns\": {\n"
            " \"x\": {\"kind\": \"float\", \"shape\": [%lld, %lld], \"file\": \"x.npy\"},\n"
            " \"y\": {\"kind\": \"class\", \"categories\": %lld, \"file\": \"label.npy\"},\n"
            " \"split\": {\"kind\": \"split\", \"file\": \"split.npy\"}}}},\n"
            " \"edges\": {\"cites\": {\"count\": %lld, \"src\": \"paper\", \"dst\": \"paper\", "
            "\"file\": \"edges.npy\", "
            "\"columns\": {}}}}\n",
            g->n, g->n, g->f, g->c, g->kept);
    return done(f);
}

int main(int argc, char **argv) {
    Graph g = {.out = argc == 6 ? argv[1] : NULL};
    if (!g.out) {
        fprintf(stderr, "usage: graph OUT NODES EDGES FEATURES CLASSES\n");
        return 2;
    }
    g.n = atoll(argv[2]), g.e = atoll(argv[3]), g.f = atoll(argv[4]), g.c = atoll(argv[5]);
    if (g.n < 1 || g.n > INT32_MAX || g.e < 0 || g.f < 1 || g.c < 1) return 2;
    g.step = step_of(g.n);
    int ok = make_edges(&g) && write_edges(&g) && write_nodes(&g) && write_schema(&g);
    free(g.key);
    if (ok) printf("%lld nodes, %lld edges\n", g.n, g.kept);
    return !ok;
}
