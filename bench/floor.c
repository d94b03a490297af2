/* How fast this machine can gather rows: a plain sparse product over a graph, as a yardstick for
 * compiled kernels that knows nothing of them.
 *
 *     floor EDGES.npy N_NODES WIDTH THREADS     (EDGES: i32[2, E], sources and destinations)
 *
 * y[v, :] = sum of w[e] x[src(e), :] over the entries e of v, sorted by destination, cut among the
 * threads by entries; 64 columns at a time in registers, and each entry asks for what the
 * 16th after it will want.  Prints one line of JSON: seconds (the best of ten runs), bytes
 * gathered. cc -O3 -march=native floor.c -pthread */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { TILE = 64, AHEAD = 16, RUNS = 10, MAX_THREADS = 256 };

typedef struct {
    int64_t n, width, n_edges, *ptr;
    int32_t *src;
    float *w, *x, *y;
} Graph;

typedef struct {
    const Graph *g;
    int64_t lo, hi;
} Part;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *block(int64_t n_bytes) {
    enum { PAGE = 2 << 20 };
    int64_t n = (n_bytes + PAGE) / PAGE * PAGE;
    void *p = aligned_alloc(PAGE, (size_t)n);
    if (!p) {
        fputs("floor: out of memory\n", stderr);
        exit(1);
    }
    madvise(p, (size_t)n, MADV_HUGEPAGE);
    return memset(p, 0, (size_t)n);
}

static void tile(const Graph *g, int64_t v, int64_t at) {
    float acc[TILE] = {0};
    for (int64_t e = g->ptr[v]; e < g->ptr[v + 1]; e++) {
        int64_t next = e + AHEAD < g->n_edges ? e + AHEAD : g->n_edges - 1;
        const float *row = g->x + g->src[e] * g->width + at;
        const float *far = g->x + g->src[next] * g->width + at;
        for (int k = 0; k < TILE; k += 16) __builtin_prefetch(far + k);
        for (int k = 0; k < TILE; k++) acc[k] += g->w[e] * row[k];
    }
    memcpy(g->y + v * g->width + at, acc, sizeof acc);
}

static void *run(void *arg) {
    const Part *p = arg;
    for (int64_t v = p->lo; v < p->hi; v++)
        for (int64_t at = 0; at < p->g->width; at += TILE) tile(p->g, v, at);
    return NULL;
}

static double measure(const Graph *g, int threads) {
    pthread_t thread[MAX_THREADS];
    Part part[MAX_THREADS];
    double best = 1e9;
    for (int t = 0; t < threads; t++) {
        int64_t v = t ? part[t - 1].hi : 0;
        part[t] = (Part){g, v, v};
        while (v < g->n && g->ptr[v] < g->n_edges * (t + 1) / threads) v++;
        part[t].hi = t == threads - 1 ? g->n : v;
    }
    for (int r = 0; r < RUNS; r++) {
        double begin = now();
        for (int t = 1; t < threads; t++)
            if (pthread_create(&thread[t], NULL, run, &part[t]) != 0) exit(1);
        run(&part[0]);
        for (int t = 1; t < threads; t++) pthread_join(thread[t], NULL);
        double s = now() - begin;
        if (s < best) best = s;
    }
    return best;
}

/* The array of the file starts after its header, whose length is in bytes 8 and 9. */
static int32_t *read_edges(const char *path, int64_t *n_edges) {
    FILE *f = fopen(path, "rb");
    unsigned char head[10];
    if (!f || fread(head, 1, sizeof head, f) != sizeof head) return NULL;
    long start = 10 + head[8] + 256 * head[9];
    fseek(f, 0, SEEK_END);
    *n_edges = (ftell(f) - start) / 8;
    fseek(f, start, SEEK_SET);
    int32_t *v = block(8 * *n_edges);
    if (fread(v, 8, (size_t)*n_edges, f) != (size_t)*n_edges) v = NULL;
    fclose(f);
    return v;
}

static void sort_by_destination(Graph *g, const int32_t *src, const int32_t *dst) {
    int64_t *at = block(8 * (g->n + 1));
    for (int64_t e = 0; e < g->n_edges; e++) g->ptr[dst[e] + 1]++;
    for (int64_t v = 0; v < g->n; v++) g->ptr[v + 1] += g->ptr[v];
    memcpy(at, g->ptr, (size_t)(8 * g->n));
    for (int64_t e = 0; e < g->n_edges; e++) g->src[at[dst[e]]++] = src[e];
    free(at);
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fputs("usage: floor EDGES.npy N_NODES WIDTH THREADS\n", stderr);
        return 2;
    }
    Graph g = {.n = atoll(argv[2]), .width = atoll(argv[3])};
    int threads = atoi(argv[4]);
    int32_t *edges = read_edges(argv[1], &g.n_edges);
    if (!edges || g.n < 1 || g.width < TILE || g.width % TILE || threads < 1 ||
        threads > MAX_THREADS) {
        fprintf(stderr, "floor: cannot use %s, or WIDTH is no multiple of %d\n", argv[1], TILE);
        return 1;
    }
    g.ptr = block(8 * (g.n + 2)), g.src = block(4 * g.n_edges), g.w = block(4 * g.n_edges);
    g.x = block(4 * g.n * g.width), g.y = block(4 * g.n * g.width);
    sort_by_destination(&g, edges, edges + g.n_edges);
    for (int64_t e = 0; e < g.n_edges; e++) g.w[e] = 1;
    for (int64_t i = 0; i < g.n * g.width; i++) g.x[i] = (float)(i % 7);
    double s = measure(&g, threads);
    printf("{\"seconds\": %.6f, \"gathered\": %lld, \"gb_per_s\": %.3f}\n", s,
           (long long)(4 * g.n_edges * g.width), 4e-9 * (double)(g.n_edges * g.width) / s);
    return 0;
}
