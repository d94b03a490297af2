/* Matrix products of f32, bf16 and f16 by the runtime itself: GFLOP/s of each type, and its ratio
 * to f32's, of sizes that graph networks have.  One line of JSON a product.
 *   products [THREADS [amx | dot | f32]]
 * THREADS: 1 where not said.  amx, or no word: all that the machine has; dot: AVX512-BF16, no AMX;
 * f32: neither.
 * Each product is run for a tenth of a second, seven times; the median counts.  The types of one
 * size take turns, so that a slower moment of the machine meets them all. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/clock.h"
#include "runtime/exec/exec.h"
#include "runtime/gemm/gemm.h"
#include "runtime/gemm/gemm_amx.h"
#include "runtime/gemm/gemm_pieces.h"
#include "runtime/exec/round_16.h"
#include "runtime/exec/team.h"

enum { ROUNDS = 7, ROUND_NS = 100000000 };

typedef struct {
    const char *what;
    int64_t m, n, k;
    bool a_by_cols, b_by_cols, long_k;
} Size;

/* Rows of ogbn-arxiv, of a batch and of Cora. */
static const Size sizes[] = {
    {"forward", 169343, 256, 128, false, false, false},
    {"forward", 169343, 256, 256, false, false, false},
    {"classes", 169343, 40, 256, false, false, false},
    {"input's gradient", 169343, 256, 256, false, true, false},
    {"input's gradient", 169343, 256, 40, false, true, false},
    {"weight's gradient", 256, 256, 169343, true, false, true},
    {"weight's gradient", 128, 256, 169343, true, false, true},
    {"weight's gradient", 256, 40, 169343, true, false, true},
    {"batch", 10240, 128, 128, false, false, false},
    {"narrow", 169343, 8, 64, false, false, false},
    {"Cora", 2708, 16, 1433, false, false, false},
    {"one row", 1, 128, 128, false, false, false},
};

typedef struct {
    rt_dtype in, out;
    const char *name;
    double gflops[ROUNDS];
} Type;

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x) {
    qsort(x, ROUNDS, sizeof *x, by_value);
    return x[ROUNDS / 2];
}

static float *floats(int64_t n) {
    float *x = aligned_alloc(64, ((size_t)n * sizeof *x / 64 + 2) * 64);
    uint32_t seed = 7;
    for (int64_t i = 0; x && i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(seed >> 8) * 0x1p-23f - 1;
    }
    return x;
}

static bool once(RtExec *x, const rt_gemm *g, const void *a, const void *b, void *c) {
    gnnc_status st = g->in == RT_F32 ? rt_gemm_f32(x, g, a, b, c) : rt_gemm_16(x, g, a, b, c);
    return st == GNNC_OK;
}

static bool run(RtExec *x, const Size *s, Type *types, size_t n_types) {
    int64_t n_a = s->m * s->k, n_b = s->k * s->n, n_c = s->m * s->n;
    float *a = floats(n_a), *b = floats(n_b);
    uint16_t *a16 = (uint16_t *)floats(n_a / 2 + 1), *b16 = (uint16_t *)floats(n_b / 2 + 1);
    void *c = floats(n_c);
    bool ok = a && b && a16 && b16 && c;
    for (int round = 0; ok && round < ROUNDS; round++)
        for (size_t i = 0; i < n_types; i++) {
            Type *t = &types[i];
            rt_gemm g = {.batch = 1, .m = s->m, .n = s->n, .k = s->k, .c_row = s->n};
            g.a_row = s->a_by_cols ? 1 : s->k, g.a_col = s->a_by_cols ? s->m : 1;
            g.b_row = s->b_by_cols ? 1 : s->n, g.b_col = s->b_by_cols ? s->k : 1;
            g.long_k = s->long_k, g.in = t->in, g.out = s->long_k ? RT_F32 : t->out;
            bool low = t->in != RT_F32;
            if (low) rt_from_f32(t->in, a16, a, n_a), rt_from_f32(t->in, b16, b, n_b);
            const void *from_a = low ? (void *)a16 : a, *from_b = low ? (void *)b16 : b;
            ok = once(x, &g, from_a, from_b, c);
            int64_t since = rt_now_ns(), n = 0, now = since;
            for (; ok && now - since < ROUND_NS; n++, now = rt_now_ns())
                ok = once(x, &g, from_a, from_b, c);
            double flops = 2.0 * (double)s->m * (double)s->n * (double)s->k;
            t->gflops[round] = flops * (double)n / (double)(now - since);
        }
    free(a), free(b), free(a16), free(b16), free(c);
    if (!ok) return false;
    printf("{\"product\": \"%s\", \"m\": %lld, \"n\": %lld, \"k\": %lld", s->what, (long long)s->m,
           (long long)s->n, (long long)s->k);
    double f32 = 0;
    for (size_t i = 0; i < n_types; i++) {
        double x_here = median(types[i].gflops);
        if (i == 0) f32 = x_here;
        printf(", \"%s\": %.1f", types[i].name, x_here);
        if (i) printf(", \"%s/f32\": %.2f", types[i].name, x_here / f32);
    }
    printf("}\n");
    return fflush(stdout) == 0;
}

static bool find_way(const char *name, RtProducts16 *way) {
    static const char *const names[] = {"amx", "dot", "f32"};
    const RtProducts16 ways[] = {rt_products_16(true), RT_BY_DOT_PRODUCTS, RT_BY_F32};
    for (int i = 0; i < 3; i++)
        if (!strcmp(name, names[i])) return *way = ways[i], rt_products_16_here(*way);
    return false;
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    RtProducts16 fastest;
    const char *name = argc < 3 ? "amx" : argv[2];
    if (!find_way(name, &fastest))
        return fprintf(stderr, "products: there is no way %s here\n", name), 2;
    bool amx = !strcmp(name, "amx");
    Type types[] = {{.in = RT_F32, .out = RT_F32, .name = "f32"},
                    {.in = RT_BF16, .out = RT_BF16, .name = "bf16"},
                    {.in = RT_F16, .out = RT_F16, .name = "f16"}};
    RtRuntime rt = {.amx = amx && rt_amx_use() && rt_pieces_available(), .products16 = fastest};
    RtExec x = {.threads = threads, .rt = &rt};
    RtAlloc from = rt_alloc_default();
    RtError err = {""};
    rt_pool_init(&rt.pool, NULL);
    if (threads < 1 || (threads > 1 && rt_team_start(&rt.team, &from, threads, 2, &err))) {
        fprintf(stderr, "products: %s\n", threads < 1 ? "no threads" : err.text);
        return 1;
    }
    bool ok = true;
    for (size_t i = 0; ok && i < sizeof sizes / sizeof *sizes; i++)
        ok = run(&x, &sizes[i], types, sizeof types / sizeof *types);
    rt_team_stop(rt.team);
    rt_pool_free(&rt.pool);
    if (!ok) fprintf(stderr, "products: no memory\n");
    return !ok;
}
