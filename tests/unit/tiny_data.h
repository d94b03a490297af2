/* A data directory for tiny_program.h: 40 nodes, 160 edges, every node with one. */
#ifndef TESTS_TINY_DATA_H
#define TESTS_TINY_DATA_H

#include "rt_test_util.h"
#include "runtime/exec/rng.h"

enum { N = 40, E = 160, F = 3 };

static const char SCHEMA[] =
    "{\"format\": 1, \"nodes\": {\"n\": {\"count\": 40, \"columns\": {"
    "\"x\": {\"kind\": \"float\", \"shape\": [40, 3], \"file\": \"x.npy\"},"
    "\"t\": {\"kind\": \"float\", \"shape\": [40], \"file\": \"t.npy\"},"
    "\"split\": {\"kind\": \"split\", \"file\": \"split.npy\"}}}},"
    "\"edges\": {\"e\": {\"count\": 160, \"src\": \"n\", \"dst\": \"n\", \"file\": \"e.npy\","
    "\"columns\": {\"w\": {\"kind\": \"float\", \"shape\": [160], \"file\": \"w.npy\"}}}}}";

static inline void write_text(const char *dir, const char *name, const char *text) {
    char path[300];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    write_file(path, text, strlen(text));
}

/* Targets are a linear function of the mean over neighbours, so training can succeed. */
static inline void make_data(const char *dir) {
    static float x[N * F], t[N], w[E];
    static int32_t e[2 * E];
    int8_t split[N];
    uint32_t r = 1;
    for (int i = 0; i < N * F; i++) x[i] = rt_uniform((RtKey){1, 2}, (uint32_t)i, 0) - 0.5f;
    for (int i = 0; i < E; i++) {
        e[i] = (int32_t)(rt_mix32(r++) % N);
        e[E + i] = i < N ? i : (int32_t)(rt_mix32(r++) % N);
        w[i] = (float)(i % 4) / 4;
    }
    int deg[N] = {0};
    for (int v = 0; v < N; v++) split[v] = (int8_t)(1 + v % 3), t[v] = 0;
    for (int i = 0; i < E; i++) deg[e[E + i]]++;
    for (int i = 0; i < E; i++)
        t[e[E + i]] += (2 * x[e[i] * F] - x[e[i] * F + 2]) / (float)deg[e[E + i]];
    save_npy(dir, "x.npy", RT_DT_F32, 2, N, F, x);
    save_npy(dir, "t.npy", RT_DT_F32, 1, N, 0, t);
    save_npy(dir, "w.npy", RT_DT_F32, 1, E, 0, w);
    save_npy(dir, "e.npy", RT_DT_I32, 2, 2, E, e);
    save_npy(dir, "split.npy", RT_DT_I8, 1, N, 0, split);
    write_text(dir, "schema.json", SCHEMA);
}

#endif
