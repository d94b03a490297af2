/* --profile: a line per kernel and library call, the costliest first, against what this
 * machine does at best.  --trace=FILE: every step on a time line. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

enum { MAX_EVENTS = 1 << 19 /* about 24 MB, and 100 MB of JSON */ };

int rt_cli_profile_begin(RtCli *c) {
    if (!c->profile && !c->trace) return RT_EXIT_OK;
    gnnc_status st = gnnc_trainer_profile(c->t, c->trace ? MAX_EVENTS : 0);
    return st == GNNC_OK ? RT_EXIT_OK : rt_cli_failed(c);
}

int rt_cli_profile_limits(RtCli *c) {
    if (!c->profile) return RT_EXIT_OK;
    gnnc_status st = gnnc_trainer_measure_limits(c->t, &c->limits);
    return st == GNNC_OK ? RT_EXIT_OK : rt_cli_failed(c);
}

/* ---- the table --------------------------------------------------------------------------- */
typedef struct {
    gnnc_step_info s;
    double per_call, bytes, share;
    double rate, part; /* of what bounds it: per second, and as part of the limit */
    bool by_flops;
} Row;

static int by_time(const void *a, const void *b) {
    double x = ((const Row *)a)->s.seconds, y = ((const Row *)b)->s.seconds;
    return (x < y) - (x > y);
}

/* The larger of the times that its bytes and its FLOPs take at best bounds a step. */
static Row row_of(const RtCli *c, const gnnc_step_info *s) {
    Row r = {.s = *s, .per_call = s->seconds / (double)s->calls};
    r.bytes = (double)(s->read_bytes + s->written_bytes);
    double flops = (double)s->flops;
    double by_bytes = r.bytes / c->limits.bytes_per_s, by_flops = flops / c->limits.flops_per_s;
    r.by_flops = by_flops > by_bytes;
    if (r.per_call <= 0) return r;
    r.rate = (r.by_flops ? flops : r.bytes) / r.per_call;
    r.part = (r.by_flops ? by_flops : by_bytes) / r.per_call;
    return r;
}

static int collect(RtCli *c, Row *row, double *seconds) {
    int n = 0;
    *seconds = 0;
    for (int i = 0; i < gnnc_trainer_n_steps(c->t); i++) {
        gnnc_step_info s;
        if (gnnc_trainer_step_info(c->t, i, &s) != GNNC_OK || s.calls == 0) continue;
        row[n++] = row_of(c, &s);
        *seconds += s.seconds;
    }
    for (int i = 0; i < n && *seconds > 0; i++) row[i].share = row[i].s.seconds / *seconds;
    qsort(row, (size_t)n, sizeof *row, by_time);
    return n;
}

static void print_text(RtCli *c, const Row *row, int n, double seconds) {
    gnnc_counters count;
    gnnc_trainer_counters(c->t, &count);
    printf("\nprofile: %.1f ms in steps; this machine: %.1f GB/s, %.1f GFLOP/s\n", 1e3 * seconds,
           1e-9 * c->limits.bytes_per_s, 1e-9 * c->limits.flops_per_s);
    printf("%6s %10s %8s %10s %10s %10s %14s %7s  %s\n", "share", "ms", "calls", "us/call",
           "MB/call", "MFLOP/call", "achieved", "limit", "step");
    for (int i = 0; i < n; i++) {
        const Row *r = &row[i];
        printf("%5.1f%% %10.3f %8lld %10.2f %10.3f %10.3f %6.1f %-7s %6.1f%%  %s %s  %s\n",
               100 * r->share, 1e3 * r->s.seconds, (long long)r->s.calls, 1e6 * r->per_call,
               1e-6 * r->bytes, 1e-6 * (double)r->s.flops, 1e-9 * r->rate,
               r->by_flops ? "GFLOP/s" : "GB/s", 100 * r->part, r->s.phase, r->s.name, r->s.lines);
    }
    printf("in all %lld kernel launches, %lld library calls, %lld read-backs\n",
           (long long)count.launches, (long long)count.library_calls, (long long)count.read_backs);
    gnnc_pipeline p;
    if (gnnc_trainer_pipeline(c->t, &p) == GNNC_OK)
        printf(
            "%lld batches made by %lld worker%s in %.3f s; steps waited %.3f s for them, workers "
            "%.3f s for room\n",
            (long long)p.batches, (long long)p.workers, p.workers == 1 ? "" : "s", p.prepare_s,
            p.step_wait_s, p.worker_wait_s);
    puts("(bytes as the program asks for them: above 100 % of the limit they came from caches)");
}

static void json_row(const Row *r) {
    fputs("{\"phase\":", stdout);
    rt_cli_json_string(r->s.phase);
    fputs(",\"name\":", stdout);
    rt_cli_json_string(r->s.name);
    fputs(",\"note\":", stdout);
    rt_cli_json_string(r->s.note);
    fputs(",\"lines\":", stdout);
    rt_cli_json_string(r->s.lines);
    printf(",\"calls\":%lld,\"ms\":%.6f,\"share\":%.5f", (long long)r->s.calls, 1e3 * r->s.seconds,
           r->share);
    printf(",\"read\":%lld,\"gathered\":%lld,\"written\":%lld,\"flops\":%lld",
           (long long)r->s.read_bytes, (long long)r->s.gathered_bytes,
           (long long)r->s.written_bytes, (long long)r->s.flops);
    printf(",\"%s\":%.4g,\"limit\":%.4f}", r->by_flops ? "gflop_per_s" : "gb_per_s", 1e-9 * r->rate,
           r->part);
}

static void print_json(RtCli *c, const Row *row, int n, double seconds) {
    printf("{\"profile\":{\"ms\":%.6f,\"gb_per_s\":%.4g,\"gflop_per_s\":%.4g,\"steps\":[",
           1e3 * seconds, 1e-9 * c->limits.bytes_per_s, 1e-9 * c->limits.flops_per_s);
    for (int i = 0; i < n; i++) {
        if (i) putchar(',');
        json_row(&row[i]);
    }
    fputs("]", stdout);
    gnnc_pipeline p;
    if (gnnc_trainer_pipeline(c->t, &p) == GNNC_OK)
        printf(",\"batches\":{\"made\":%lld,\"workers\":%lld,\"prepare_s\":%.6f,"
               "\"step_wait_s\":%.6f,\"worker_wait_s\":%.6f}",
               (long long)p.batches, (long long)p.workers, p.prepare_s, p.step_wait_s,
               p.worker_wait_s);
    puts("}}");
}

static int print_profile(RtCli *c) {
    double seconds;
    int n_steps = gnnc_trainer_n_steps(c->t);
    Row *row = malloc(sizeof *row * (size_t)(n_steps > 0 ? n_steps : 1));
    if (!row) {
        fprintf(stderr, "%s: error: out of memory\n", c->prog);
        return RT_EXIT_FAILED;
    }
    int n = collect(c, row, &seconds);
    (c->json || c->log == RT_LOG_JSON ? print_json : print_text)(c, row, n, seconds);
    free(row);
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
