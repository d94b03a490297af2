/* What the machine does at best, measured with the trainer's own threads: the numbers that
 * a profile divides by.
 *
 * Memory: the triad a = b + s c of McCalpin's STREAM over arrays beyond the last-level
 * cache of common machines, each member on its own part; 3 streams are counted, as STREAM
 * does.  Arithmetic: the runtime's own matrix product of 4096 x 256 by 256 x 256, the shape
 * of a wide layer.  The best of several runs, since only disturbances make them slower.
 *
 * On a device: a copy from memory to memory, of which both sides count, and the same product with
 * more rows; sizes grow until one run takes long enough to be timed. */
#include <string.h>

#include "runtime/device/device.h"
#include "runtime/clock.h"
#include "runtime/trainer/trainer.h"

enum { STREAM_FLOATS = 16 << 20, STREAM_RUNS = 4, M = 4096, N = 256, GEMM_RUNS = 8 };

typedef struct {
    float *a, *b, *c;
} Triad;

/* A member's share of STREAM's triad: a = b + 3 c. */
static void triad(void *arg, int member, int n_members) {
    const Triad *t = arg;
    float *restrict a = t->a;
    const float *restrict b = t->b, *restrict c = t->c;
    int64_t lo = (int64_t)STREAM_FLOATS * member / n_members;
    int64_t hi = (int64_t)STREAM_FLOATS * (member + 1) / n_members;
    for (int64_t i = lo; i < hi; i++) a[i] = b[i] + 3.0f * c[i];
}

/* Bytes per second that the memory moves, the best of several runs; the first is not counted. */
static double stream_rate(gnnc_trainer *t, float *block) {
    Triad x = {block, block + STREAM_FLOATS, block + 2 * (int64_t)STREAM_FLOATS};
    double best = 0;
    for (int i = 0; i <= STREAM_RUNS; i++) { /* the first one maps the pages */
        double begin = rt_now();
        rt_team_run(t->rt.team, triad, &x);
        double rate = 3.0 * sizeof(float) * STREAM_FLOATS / (rt_now() - begin);
        if (i > 0 && rate > best) best = rate;
    }
    return best;
}

/* The product of a layer of N inputs and N outputs on so many rows. */
static rt_gemm wide_layer(int64_t rows) {
    return (rt_gemm){.batch = 1,
                     .m = rows,
                     .n = N,
                     .k = N,
                     .a_row = N,
                     .a_col = 1,
                     .b_row = N,
                     .b_col = 1,
                     .c_row = N};
}

/* Floating-point operations per second of a wide layer's product, the best of several runs; the
 * first is not counted. */
static gnnc_status gemm_rate(gnnc_trainer *t, float *block, double *best) {
    rt_gemm g = wide_layer(M);
    float *a = block, *b = a + (int64_t)M * N, *c = b + (int64_t)N * N;
    *best = 0;
    for (int64_t i = 0; i < (int64_t)M * N + (int64_t)N * N; i++) block[i] = 0.5f;
    for (int i = 0; i <= GEMM_RUNS; i++) {
        double begin = rt_now();
        gnnc_status st = rt_gemm_f32(&t->x, &g, a, b, c);
        if (st != GNNC_OK) return st;
        double rate = 2.0 * M * N * N / (rt_now() - begin);
        if (i > 0 && rate > *best) *best = rate;
    }
    return GNNC_OK;
}

/* ---- a device ------------------------------------------------------------------------------ */
enum { PROBE_ROWS = 1 << 10, MOST_ROWS = 1 << 18, LONG_NS = 200000 };

typedef struct {
    RtDevice *d;
    float *a, *b, *w; /* [MOST_ROWS, N] twice, [N, N] */
    int64_t rows;
} Probe;

typedef gnnc_status run_probe(Probe *p);

static gnnc_status probe_copy(Probe *p) {
    return p->d->ops->copy(p->d, p->b, p->a, (size_t)(p->rows * N) * sizeof(float));
}

static gnnc_status probe_gemm(Probe *p) {
    rt_gemm g = wide_layer(p->rows);
    return p->d->ops->gemm(p->d, &g, p->a, p->w, p->b);
}

/* The best time of a run at p->rows. */
static gnnc_status time_probe(Probe *p, run_probe *run, int64_t *best) {
    enum { RUNS = 5 };
    int64_t ns[RUNS];
    gnnc_status st;
    TRY(st, run(p)); /* libraries load their kernels */
    TRY(st, p->d->ops->stamp(p->d, 0));
    for (int i = 0; i < RUNS; i++) {
        TRY(st, run(p));
        TRY(st, p->d->ops->stamp(p->d, i + 1));
    }
    TRY(st, p->d->ops->stamps(p->d, RUNS, ns));
    *best = ns[0];
    for (int i = 1; i < RUNS; i++) *best = ns[i] < *best ? ns[i] : *best;
    if (*best < 1) *best = 1;
out:
    return st;
}

/* Runs a probe on more and more rows until it takes long enough to be measured; the rate of the
 * last run. */
static gnnc_status grow_probe(Probe *p, run_probe *run, double work_per_row, double *rate) {
    gnnc_status st = GNNC_OK;
    int64_t ns = 0;
    for (p->rows = PROBE_ROWS; ns < LONG_NS && p->rows <= MOST_ROWS; p->rows *= 4) {
        st = time_probe(p, run, &ns);
        if (st != GNNC_OK) return st;
        *rate = work_per_row * (double)p->rows / (1e-9 * (double)ns);
    }
    return st;
}

/* Measures the device: copies for the memory, products for the arithmetic. */
static gnnc_status device_limits(RtDevice *d, gnnc_limits *out) {
    Probe p = {.d = d};
    size_t big = (size_t)MOST_ROWS * N * sizeof(float);
    void *a = NULL, *b = NULL, *w = NULL;
    gnnc_status st;
    TRY(st, d->ops->alloc(d, big, &a));
    TRY(st, d->ops->alloc(d, big, &b));
    TRY(st, d->ops->alloc(d, N * N * sizeof(float), &w));
    p.a = a, p.b = b, p.w = w;
    TRY(st, grow_probe(&p, probe_copy, 2.0 * N * sizeof(float), &out->bytes_per_s));
    st = grow_probe(&p, probe_gemm, 2.0 * N * N, &out->flops_per_s);
out:
    d->ops->release(d, a);
    d->ops->release(d, b);
    d->ops->release(d, w);
    return st;
}

/* Measures the host. What it launches is not counted as the program's work. */
static gnnc_status host_limits(gnnc_trainer *t, gnnc_limits *out) {
    gnnc_status st;
    RtPool pool;
    rt_pool_init(&pool, &t->outer);
    int64_t launches = t->rt.count.launches, library_calls = t->rt.count.library_calls;
    float *block = RT_NEWN(&pool, float, 3 * (int64_t)STREAM_FLOATS);
    if (block) {
        out->bytes_per_s = stream_rate(t, block);
        st = gemm_rate(t, block, &out->flops_per_s);
    } else {
        st = rt_fail_nomem(&t->rt.err, "measuring the machine");
    }
    t->rt.count.launches = launches; /* the probe is none of the program's work */
    t->rt.count.library_calls = library_calls;
    rt_pool_free(&pool);
    return st;
}

gnnc_status gnnc_trainer_measure_limits(gnnc_trainer *t, gnnc_limits *out) {
    RT_NOT_NULL(t, out);
    rt_trainer_begin(t);
    gnnc_limits own = {0};
    gnnc_status st = RT_STRUCT_CHECK(&t->rt.err, gnnc_limits, out, flops_per_s);
    if (st == GNNC_OK) st = rt_trainer_need_data(t);
    if (st == GNNC_OK) st = t->rt.device ? device_limits(t->rt.device, &own) : host_limits(t, &own);
    if (st == GNNC_OK) rt_struct_copy_out(out, &own, sizeof own);
    return st;
}
