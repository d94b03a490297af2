/* --profile: a line per kernel and library call, the costliest first, against what this
 * machine does at best.  --trace=FILE: every step on a time line. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "cli_options.h"

enum { MAX_EVENTS = 1 << 19 /* about 24 MB, and 100 MB of JSON */ };

int rt_cli_profile_begin(RtCli *c) {
    if (!c->profile && !c->trace) return RT_EXIT_OK;
    gnnc_status st = gnnc_trainer_profile(c->t, c->trace ? MAX_EVENTS : 0);
    return st == GNNC_OK ? RT_EXIT_OK : rt_cli_failed(c);
}

int rt_cli_profile_limits(RtCli *c) {
    if (!c->profile) return RT_EXIT_OK;
    c->limits.struct_size = sizeof c->limits;
    gnnc_status st = gnnc_trainer_measure_limits(c->t, &c->limits);
    return st == GNNC_OK ? RT_EXIT_OK : rt_cli_failed(c);
}

/* ---- a step, here and in info ------------------------------------------------------------- */
void rt_cli_print_step(const gnnc_step_info *s) {
    fputs(s->name, stdout);
    if (!s->is_kernel && *s->note) printf(" %s", s->note);
    if (s->m) fputs(" [", stdout);
    if (s->m && s->batch > 1) printf("%lld of ", (long long)s->batch);
    if (s->m) printf("%lld x %lld x %lld]", (long long)s->m, (long long)s->n, (long long)s->k);
    printf("  %s\n", *s->site ? s->site : s->lines);
}

void rt_cli_json_what(const gnnc_step_info *s) {
    fputs(",\"note\":", stdout);
    rt_cli_json_string(s->note);
    fputs(",\"site\":", stdout);
    rt_cli_json_string(s->site);
    if (s->m)
        printf(",\"product\":[%lld,%lld,%lld,%lld]", (long long)s->batch, (long long)s->m,
               (long long)s->n, (long long)s->k);
}

/* ---- the table ---------------------------------------------------------------------------
 * A phase's first run takes memory and fills caches: where there are more runs, and where bench
 * has not warmed up before, its time is told apart. */
typedef struct {
    gnnc_step_info s;
    int64_t calls; /* counted */
    double seconds;
    double apart; /* not counted, of the first run */
    double per_call, bytes, share;
    double rate, part; /* of what bounds it: per second, and as part of the limit */
    bool by_flops;
} Row;

static int by_time(const void *a, const void *b) {
    double x = ((const Row *)a)->seconds, y = ((const Row *)b)->seconds;
    return (x < y) - (x > y);
}

static bool first_is_apart(const RtCli *c, const gnnc_step_info *s) {
    return !c->warm && s->runs > 1;
}

/* The larger of the times that its bytes and its FLOPs take at best bounds a step. */
static Row row_of(const RtCli *c, const gnnc_step_info *s) {
    Row r = {.s = *s, .calls = s->calls, .seconds = s->seconds};
    if (first_is_apart(c, s)) {
        r.calls -= s->first_calls;
        r.apart = s->first_seconds;
        r.seconds -= r.apart;
    }
    r.per_call = r.calls ? r.seconds / (double)r.calls : 0;
    r.bytes = (double)(s->read_bytes + s->written_bytes);
    double flops = (double)s->flops;
    double by_bytes = r.bytes / c->limits.bytes_per_s, by_flops = flops / c->limits.flops_per_s;
    r.by_flops = by_flops > by_bytes;
    if (r.per_call <= 0) return r;
    r.rate = (r.by_flops ? flops : r.bytes) / r.per_call;
    r.part = (r.by_flops ? by_flops : by_bytes) / r.per_call;
    return r;
}

typedef struct {
    Row *row;
    int n;
    double seconds, apart;
} Table;

static void collect(RtCli *c, Table *t) {
    for (int i = 0; i < gnnc_trainer_n_steps(c->t); i++) {
        gnnc_step_info s = {.struct_size = sizeof s};
        if (gnnc_trainer_step_info(c->t, i, &s) != GNNC_OK || s.calls == 0) continue;
        t->row[t->n++] = row_of(c, &s);
        t->seconds += t->row[t->n - 1].seconds;
        t->apart += t->row[t->n - 1].apart;
    }
    for (int i = 0; i < t->n && t->seconds > 0; i++)
        t->row[i].share = t->row[i].seconds / t->seconds;
    qsort(t->row, (size_t)t->n, sizeof *t->row, by_time);
}

/* A step of that phase; NULL: none of it ran. */
static const gnnc_step_info *of_phase(const Table *t, const char *phase) {
    for (int i = 0; i < t->n; i++)
        if (strcmp(t->row[i].s.phase, phase) == 0) return &t->row[i].s;
    return NULL;
}

/* A step of the next phase that ran, from the *i-th on; NULL: there is no further one. */
static const gnnc_step_info *next_phase(const RtCli *c, const Table *t, int *i) {
    gnnc_phase_info ph = {.struct_size = sizeof ph};
    while (gnnc_trainer_phase_info(c->t, (*i)++, &ph) == GNNC_OK) {
        const gnnc_step_info *s = of_phase(t, ph.name);
        if (s) return s;
    }
    return NULL;
}

static const char *choice(const RtCli *c) {
    gnnc_variant_info v = {.struct_size = sizeof v};
    for (int i = 0; gnnc_trainer_variant_info(c->t, i, &v) == GNNC_OK; i++)
        if (v.in_use) return v.choice;
    return NULL;
}

static void print_runs(RtCli *c, const Table *t) {
    const char *before = "", *chosen = choice(c);
    const gnnc_step_info *s;
    printf("\nprofile: %.1f ms in the steps of", 1e3 * t->seconds);
    for (int i = 0; (s = next_phase(c, t, &i));) {
        int64_t n = s->runs - first_is_apart(c, s);
        printf("%s %lld %s of @%s", before, (long long)n, n == 1 ? "run" : "runs", s->phase);
        before = ",";
    }
    puts("");
    if (t->apart > 0)
        printf("not in it: %.1f ms of the first run of each that ran again\n", 1e3 * t->apart);
    if (chosen) printf("variant %lld: %s\n", rt_cli_option_int(c, "variant"), chosen);
    printf("this machine at best: %.1f GB/s, %.1f GFLOP/s\n", 1e-9 * c->limits.bytes_per_s,
           1e-9 * c->limits.flops_per_s);
}

static void print_text(RtCli *c, const Table *t) {
    gnnc_counters count = {.struct_size = sizeof count};
    gnnc_trainer_counters(c->t, &count);
    print_runs(c, t);
    printf("%6s %10s %8s %10s %10s %10s %14s %7s  %s\n", "share", "ms", "calls", "us/call",
           "MB/call", "MFLOP/call", "achieved", "limit", "step, and the model's lines");
    for (int i = 0; i < t->n; i++) {
        const Row *r = &t->row[i];
        printf("%5.1f%% %10.3f %8lld %10.2f %10.3f %10.3f %6.1f %-7s %6.1f%%  ", 100 * r->share,
               1e3 * r->seconds, (long long)r->calls, 1e6 * r->per_call, 1e-6 * r->bytes,
               1e-6 * (double)r->s.flops, 1e-9 * r->rate, r->by_flops ? "GFLOP/s" : "GB/s",
               100 * r->part);
        printf("%s ", r->s.phase);
        rt_cli_print_step(&r->s);
    }
    printf("in all %lld kernel launches, %lld library calls, %lld read-backs\n",
           (long long)count.launches, (long long)count.library_calls, (long long)count.read_backs);
    gnnc_pipeline p = {.struct_size = sizeof p};
    if (gnnc_trainer_pipeline(c->t, &p) == GNNC_OK)
        printf(
            "%lld batches made by %lld worker%s in %.3f s; steps waited %.3f s for them, workers "
            "%.3f s for room\n",
            (long long)p.batches, (long long)p.workers, p.workers == 1 ? "" : "s", p.prepare_s,
            p.step_wait_s, p.worker_wait_s);
    puts("(bytes as the program asks for them: above 100 % of the limit they came from caches;\n"
         " a product of [m x n x k] is one of m x k by k x n)");
}

static void json_row(const Row *r) {
    fputs("{\"phase\":", stdout);
    rt_cli_json_string(r->s.phase);
    fputs(",\"name\":", stdout);
    rt_cli_json_string(r->s.name);
    fputs(",\"lines\":", stdout);
    rt_cli_json_string(r->s.lines);
    rt_cli_json_what(&r->s);
    printf(",\"calls\":%lld,\"ms\":%.6f,\"share\":%.5f,\"first_ms\":%.6f", (long long)r->calls,
           1e3 * r->seconds, r->share, 1e3 * r->apart);
    printf(",\"read\":%lld,\"gathered\":%lld,\"written\":%lld,\"flops\":%lld",
           (long long)r->s.read_bytes, (long long)r->s.gathered_bytes,
           (long long)r->s.written_bytes, (long long)r->s.flops);
    printf(",\"%s\":%.4g,\"limit\":%.4f}", r->by_flops ? "gflop_per_s" : "gb_per_s", 1e-9 * r->rate,
           r->part);
}

static void json_runs(const RtCli *c, const Table *t) {
    const char *before = "";
    const gnnc_step_info *s;
    fputs("\"runs\":{", stdout);
    for (int i = 0; (s = next_phase(c, t, &i));) {
        printf("%s\"%s\":%lld", before, s->phase, (long long)(s->runs - first_is_apart(c, s)));
        before = ",";
    }
    fputs("},", stdout);
}

static void print_json(RtCli *c, const Table *t) {
    printf("{\"profile\":{\"ms\":%.6f,\"first_ms\":%.6f,", 1e3 * t->seconds, 1e3 * t->apart);
    printf("\"variant\":%lld,", rt_cli_option_int(c, "variant"));
    json_runs(c, t);
    printf("\"gb_per_s\":%.4g,\"gflop_per_s\":%.4g,\"steps\":[", 1e-9 * c->limits.bytes_per_s,
           1e-9 * c->limits.flops_per_s);
    for (int i = 0; i < t->n; i++) {
        if (i) putchar(',');
        json_row(&t->row[i]);
    }
    fputs("]", stdout);
    gnnc_pipeline p = {.struct_size = sizeof p};
    if (gnnc_trainer_pipeline(c->t, &p) == GNNC_OK)
        printf(",\"batches\":{\"made\":%lld,\"workers\":%lld,\"prepare_s\":%.6f,"
               "\"step_wait_s\":%.6f,\"worker_wait_s\":%.6f}",
               (long long)p.batches, (long long)p.workers, p.prepare_s, p.step_wait_s,
               p.worker_wait_s);
    puts("}}");
}

static int print_profile(RtCli *c) {
    int n_steps = gnnc_trainer_n_steps(c->t);
    Table t = {.row = malloc(sizeof *t.row * (size_t)(n_steps > 0 ? n_steps : 1))};
    if (!t.row) {
        fprintf(stderr, "%s: error: out of memory\n", c->prog);
        return RT_EXIT_FAILED;
    }
    collect(c, &t);
    (c->json || c->log == RT_LOG_JSON ? print_json : print_text)(c, &t);
    free(t.row);
    return RT_EXIT_OK;
}

int rt_cli_profile_end(RtCli *c) {
    int64_t dropped = 0;
    if (c->profile && print_profile(c) != RT_EXIT_OK) return RT_EXIT_FAILED;
    if (!c->trace) return RT_EXIT_OK;
    if (gnnc_trainer_trace(c->t, c->trace, &dropped) != GNNC_OK) return rt_cli_failed(c);
    if (dropped)
        fprintf(stderr, "%s: %s holds the first %d events; %lld came later\n", c->prog, c->trace,
                MAX_EVENTS, (long long)dropped);
    return RT_EXIT_OK;
}
