/* What the machine does at best, measured with the trainer's own threads: the numbers that
 * a profile divides by.
 *
 * Memory: the triad a = b + s c of McCalpin's STREAM over arrays beyond the last-level
 * cache of common machines, each member on its own part; 3 streams are counted, as STREAM
 * does.  Arithmetic: the runtime's own matrix product of 4096 x 256 by 256 x 256, the shape
 * of a wide layer.  The best of several runs, since only disturbances make them slower. */
#include <string.h>
#include <time.h>

#include "device.h"
#include "trainer.h"

enum { STREAM_FLOATS = 16 << 20, STREAM_RUNS = 4, M = 4096, N = 256, GEMM_RUNS = 8 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct {
    float *a, *b, *c;
} Triad;

static void triad(void *arg, int member, int n_members) {
    const Triad *t = arg;
    float *restrict a = t->a;
    const float *restrict b = t->b, *restrict c = t->c;
    int64_t lo = (int64_t)STREAM_FLOATS * member / n_members;
    int64_t hi = (int64_t)STREAM_FLOATS * (member + 1) / n_members;
    for (int64_t i = lo; i < hi; i++) a[i] = b[i] + 3.0f * c[i];
}

static double stream_rate(gnnc_trainer *t, float *block) {
    Triad x = {block, block + STREAM_FLOATS, block + 2 * (int64_t)STREAM_FLOATS};
    double best = 0;
    for (int i = 0; i <= STREAM_RUNS; i++) { /* the first one maps the pages */
        double begin = now();
        rt_team_run(t->rt.team, triad, &x);
        double rate = 3.0 * sizeof(float) * STREAM_FLOATS / (now() - begin);
        if (i > 0 && rate > best) best = rate;
    }
    return best;
}

static gnnc_status gemm_rate(gnnc_trainer *t, float *block, double *best) {
    rt_gemm g = {.batch = 1,
                 .m = M,
                 .n = N,
                 .k = N,
                 .a_row = N,
                 .a_col = 1,
                 .b_row = N,
                 .b_col = 1,
                 .c_row = N};
    float *a = block, *b = a + (int64_t)M * N, *c = b + (int64_t)N * N;
    *best = 0;
    for (int64_t i = 0; i < (int64_t)M * N + (int64_t)N * N; i++) block[i] = 0.5f;
    for (int i = 0; i <= GEMM_RUNS; i++) {
        double begin = now();
        gnnc_status st = rt_gemm_f32(&t->x, &g, a, b, c);
        if (st != GNNC_OK) return st;
        double rate = 2.0 * M * N * N / (now() - begin);
        if (i > 0 && rate > *best) *best = rate;
    }
    return GNNC_OK;
}

gnnc_status gnnc_trainer_measure_limits(gnnc_trainer *t, gnnc_limits *out) {
    rt_trainer_begin(t);
    gnnc_status st = rt_trainer_need_data(t);
    if (st != GNNC_OK) return st;
    if (t->rt.device)
        return rt_fail(&t->rt.err, GNNC_E_STATE, "the limits of %s are not measured",
                       t->program->device->name);
    RtPool pool;
    rt_pool_init(&pool, &t->outer);
    gnnc_counters before = t->rt.count;
    float *block = RT_NEWN(&pool, float, 3 * (int64_t)STREAM_FLOATS);
    if (block) {
        out->bytes_per_s = stream_rate(t, block);
        st = gemm_rate(t, block, &out->flops_per_s);
    } else {
        st = rt_fail_nomem(&t->rt.err, "measuring the machine");
    }
    t->rt.count = before; /* the probe is none of the program's work */
    rt_pool_free(&pool);
    return st;
}
