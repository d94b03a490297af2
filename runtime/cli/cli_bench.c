/* bench: median and interquartile range of a train step and of an inference, and what
 * the library counted per step.  Steps read nothing back, as in the peers' scripts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "cli.h"
#include "cli_options.h"

typedef struct {
    double median, q1, q3, mean; /* ms */
} Quartiles;

typedef struct {
    double load_s, first_step_s, total_s;
    Quartiles train, infer;
    gnnc_counters before, after;
    int64_t n;
    double loss;
} Bench;

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The value at fraction f of n sorted values, between two of them if need be. */
static double at_fraction(const double *v, int64_t n, double f) {
    double pos = f * (double)(n - 1);
    int64_t i = (int64_t)floor(pos);
    return i + 1 < n ? v[i] + (pos - (double)i) * (v[i + 1] - v[i]) : v[i];
}

/* Quartiles and mean of n times, in ms. Sorts s. */
static Quartiles quartiles(double *s, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += s[i];
    qsort(s, (size_t)n, sizeof *s, ascending);
    return (Quartiles){1e3 * at_fraction(s, n, .5), 1e3 * at_fraction(s, n, .25),
                       1e3 * at_fraction(s, n, .75), 1e3 * sum / (double)n};
}

/* A GPU takes steps faster than the host can wait for each: it is waited for after a few, and
 * each of them counts as one. */
static int64_t steps_at_once(const RtCli *c) {
    enum { ON_DEVICE = 10 };
    return strcmp(gnnc_trainer_device(c->t), "cpu") == 0 ? 1 : ON_DEVICE;
}

/* Times n runs of a phase, in s [n] seconds; a device makes several at a time. False after an
 * error. */
static bool time_phase(RtCli *c, const char *phase, int64_t n, double *s) {
    int64_t at_once = steps_at_once(c);
    for (int64_t i = 0; i < n; i += at_once) {
        int64_t some = n - i < at_once ? n - i : at_once;
        double begin = rt_cli_now();
        for (int64_t k = 0; k < some; k++)
            if (gnnc_trainer_run_phase(c->t, phase) != GNNC_OK) return false;
        if (gnnc_trainer_wait(c->t) != GNNC_OK) return false;
        for (int64_t k = 0; k < some; k++) s[i + k] = (rt_cli_now() - begin) / (double)some;
    }
    return true;
}

/* From here on, so that warm steps alone are in it. */
static bool profile(RtCli *c) {
    c->warm = true;
    return rt_cli_profile_limits(c) == RT_EXIT_OK && rt_cli_profile_begin(c) == RT_EXIT_OK;
}

static bool times_training(const RtCli *c) {
    return c->is.trains && c->bench_phase != RT_BENCH_PREDICT;
}

static const char *infer_phase(const RtCli *c) {
    if (c->bench_phase == RT_BENCH_TRAIN) return NULL;
    return c->is.predicts ? "predict" : c->is.evaluates ? "eval" : NULL;
}

static const char *machine(const RtCli *c) {
    const char *kind = gnnc_trainer_machine(c->t);
    return *kind ? kind : "a machine that memory ran out to name";
}

/* Five runs of a phase before the timed ones, or fewer: where one takes seconds, so many change
 * nothing any more. False after an error. */
static bool warm_up(RtCli *c, const char *phase) {
    enum { RUNS = 5, SECONDS = 5 };
    double s[RUNS], begin = rt_cli_now();
    for (int i = 0; i < RUNS && rt_cli_now() - begin < SECONDS; i++)
        if (!time_phase(c, phase, 1, s)) return false;
    return true;
}

/* Loads the data and times first steps, then b->n steps of training and of inference, behind some
 * that warm up. s: room for so many times. False after an error. */
static bool measure(RtCli *c, Bench *b, double *s) {
    double begin = rt_cli_now();
    gnnc_trainer_set_int(c->t, "labels", 1);
    if (gnnc_trainer_load(c->t, c->data) != GNNC_OK) return false;
    b->load_s = rt_cli_now() - begin;
    const char *infer = infer_phase(c);
    if (times_training(c)) {
        if (!time_phase(c, "train", 1, s)) return false;
        b->first_step_s = rt_cli_now() - begin;
        if (!warm_up(c, "train")) return false;
    }
    if (infer && !warm_up(c, infer)) return false;
    if (!profile(c)) return false;
    if (times_training(c)) {
        gnnc_trainer_counters(c->t, &b->before);
        if (!time_phase(c, "train", b->n, s)) return false;
        gnnc_trainer_counters(c->t, &b->after);
        b->train = quartiles(s, b->n);
    }
    if (infer) {
        if (!time_phase(c, infer, b->n, s)) return false;
        b->infer = quartiles(s, b->n);
    }
    b->total_s = rt_cli_now() - begin;
    const float *loss;
    int rank;
    int64_t dim[GNNC_MAX_RANK];
    b->loss = gnnc_trainer_output(c->t, "loss", &loss, &rank, dim) == GNNC_OK ? loss[0] : NAN;
    return true;
}

static double per_step(int64_t after, int64_t before, int64_t n) {
    return (double)(after - before) / (double)n;
}

/* Prints the measurements as one line of JSON, with the names that bench/ reads. */
static void print_json(RtCli *c, const Bench *b, long rss_kib) {
    const char *slash = strrchr(c->data, '/');
    fputs("{\"system\":\"gnnc\",\"data\":", stdout);
    rt_cli_json_string(slash && slash[1] ? slash + 1 : c->data);
    fputs(",\"model\":", stdout);
    rt_cli_json_string(c->is.name);
    printf(",\"mode\":\"%s\",\"device_mib\":%.1f,\"threads\":%lld,\"machine\":",
           gnnc_trainer_device(c->t), (double)gnnc_trainer_device_bytes(c->t) / (1 << 20),
           rt_cli_option_int(c, "threads"));
    rt_cli_json_string(machine(c));
    printf(",\"import_s\":0,\"load_s\":%.4f,\"first_step_s\":%.4f", b->load_s, b->first_step_s);
    printf(",\"train_ms\":%.4f,\"train_q1_ms\":%.4f,\"train_q3_ms\":%.4f,\"train_mean_ms\":%.4f",
           b->train.median, b->train.q1, b->train.q3, b->train.mean);
    printf(",\"infer_ms\":%.4f,\"infer_q1_ms\":%.4f,\"infer_q3_ms\":%.4f", b->infer.median,
           b->infer.q1, b->infer.q3);
    printf(",\"rss_mib\":%ld,\"total_s\":%.3f,\"steps\":%lld", rss_kib / 1024, b->total_s,
           (long long)b->n);
    const gnnc_counters *x = &b->before, *y = &b->after;
    printf(",\"launches_per_step\":%g,\"library_calls_per_step\":%g",
           per_step(y->launches, x->launches, b->n),
           per_step(y->library_calls, x->library_calls, b->n));
    printf(",\"allocations_per_step\":%g,\"read_backs_per_step\":%g",
           per_step(y->allocations, x->allocations, b->n),
           per_step(y->read_backs, x->read_backs, b->n));
    if (isfinite(b->loss)) printf(",\"loss\":%.9g", b->loss);
    puts("}");
}

/* Prints the median and quartiles of a step. */
static void print_times(const RtCli *c, const char *what, const Quartiles *q, int64_t n) {
    int64_t at_once = steps_at_once(c);
    printf("%-11s median %.3f ms (quartiles %.3f .. %.3f), %lld timed", what, q->median, q->q1,
           q->q3, (long long)n);
    if (at_once > 1) printf(", %lld at a time", (long long)at_once);
    puts("");
}

/* Prints the measurements as text. */
static void print_text(RtCli *c, const Bench *b, long rss_kib) {
    const gnnc_counters *x = &b->before, *y = &b->after;
    if (times_training(c)) print_times(c, "train step", &b->train, b->n);
    if (infer_phase(c)) print_times(c, "inference", &b->infer, b->n);
    printf("on %s: %lld threads, %s\n", gnnc_trainer_device(c->t), rt_cli_option_int(c, "threads"),
           machine(c));
    printf("load %.1f ms, first step done after %.1f ms, peak memory %ld MiB\n", 1e3 * b->load_s,
           1e3 * b->first_step_s, rss_kib / 1024);
    printf("per step: %g launches, %g library calls, %g allocations, %g read-backs\n",
           per_step(y->launches, x->launches, b->n),
           per_step(y->library_calls, x->library_calls, b->n),
           per_step(y->allocations, x->allocations, b->n),
           per_step(y->read_backs, x->read_backs, b->n));
}

/* `bench`: times steps of training and inference. */
int rt_cli_bench(RtCli *c) {
    Bench b = {.n = c->n_epochs > 0 ? c->n_epochs : 200,
               .before.struct_size = sizeof b.before,
               .after.struct_size = sizeof b.after};
    double *s = calloc((size_t)b.n, sizeof *s);
    if (!s) {
        fprintf(stderr, "%s: error: out of memory\n", c->prog);
        return RT_EXIT_FAILED;
    }
    bool ok = measure(c, &b, s);
    free(s);
    if (!ok) return rt_cli_failed(c);
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    if (c->json)
        print_json(c, &b, u.ru_maxrss);
    else
        print_text(c, &b, u.ru_maxrss);
    return rt_cli_profile_end(c);
}

/* At most this long beyond one step of each way, so that it ends within a minute. */
int rt_cli_tune(RtCli *c) {
    enum { SECONDS = 30 };
    gnnc_trainer_set_int(c->t, "tuned", 0);
    gnnc_trainer_set_int(c->t, "labels", 1);
    if (gnnc_trainer_load(c->t, c->data) != GNNC_OK) return rt_cli_failed(c);
    if (gnnc_trainer_tune(c->t, SECONDS) != GNNC_OK) return rt_cli_failed(c);
    return RT_EXIT_OK;
}
