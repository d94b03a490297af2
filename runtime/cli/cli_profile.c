/* --profile: a line per kernel and library call, the costliest first, against what this
 * machine does at best.  --trace=FILE: every step on a time line. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

void rt_cli_json_what(const gnnc_step_info *s, FILE *to) {
    fputs(",\"note\":", to);
    rt_cli_put_json_string(s->note, to);
    fputs(",\"site\":", to);
    rt_cli_put_json_string(s->site, to);
    if (s->m)
        fprintf(to, ",\"product\":[%lld,%lld,%lld,%lld]", (long long)s->batch, (long long)s->m,
                (long long)s->n, (long long)s->k);
}

/* ---- the table ---------------------------------------------------------------------------
 * A phase's first run takes memory and fills caches: where there are more runs, and where bench
 * has not warmed up before, its time is told apart. */
typedef struct {
    gnnc_step_info s;
    int index;     /* of its phase's steps */
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

/* Fills the table with the steps that ran, slowest first, and their shares of the time. */
static void collect(RtCli *c, Table *t) {
    const char *phase = NULL;
    for (int i = 0, index = 0; i < gnnc_trainer_n_steps(c->t); i++, index++) {
        gnnc_step_info s = {.struct_size = sizeof s};
        if (gnnc_trainer_step_info(c->t, i, &s) != GNNC_OK) continue;
        if (!phase || strcmp(phase, s.phase) != 0) index = 0;
        phase = s.phase;
        if (s.calls == 0) continue;
        t->row[t->n] = row_of(c, &s);
        t->row[t->n++].index = index;
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

/* Prints how often phases ran, and what this machine does at best. */
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

/* Prints the profile as text. */
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

/* Prints a step of the profile as JSON. */
static void json_row(const Row *r, FILE *to) {
    fprintf(to, "{\"index\":%d,\"phase\":", r->index);
    rt_cli_put_json_string(r->s.phase, to);
    fputs(",\"name\":", to);
    rt_cli_put_json_string(r->s.name, to);
    fputs(",\"lines\":", to);
    rt_cli_put_json_string(r->s.lines, to);
    rt_cli_json_what(&r->s, to);
    fprintf(to, ",\"calls\":%lld,\"ms\":%.6f,\"share\":%.5f,\"first_ms\":%.6f", (long long)r->calls,
            1e3 * r->seconds, r->share, 1e3 * r->apart);
    fprintf(to, ",\"read\":%lld,\"gathered\":%lld,\"written\":%lld,\"flops\":%lld",
            (long long)r->s.read_bytes, (long long)r->s.gathered_bytes,
            (long long)r->s.written_bytes, (long long)r->s.flops);
    fprintf(to, ",\"%s\":%.4g,\"limit\":%.4f}", r->by_flops ? "gflop_per_s" : "gb_per_s",
            1e-9 * r->rate, r->part);
}

/* Prints how often phases ran as a JSON member. */
static void json_runs(const RtCli *c, const Table *t, FILE *to) {
    const char *before = "";
    const gnnc_step_info *s;
    fputs("\"runs\":{", to);
    for (int i = 0; (s = next_phase(c, t, &i));) {
        fprintf(to, "%s\"%s\":%lld", before, s->phase, (long long)(s->runs - first_is_apart(c, s)));
        before = ",";
    }
    fputs("},", to);
}

/* Prints the profile as a JSON member. */
static void put_profile(RtCli *c, const Table *t, FILE *to) {
    fprintf(to, "\"profile\":{\"ms\":%.6f,\"first_ms\":%.6f,", 1e3 * t->seconds, 1e3 * t->apart);
    fprintf(to, "\"variant\":%lld,", rt_cli_option_int(c, "variant"));
    json_runs(c, t, to);
    fprintf(to, "\"gb_per_s\":%.4g,\"gflop_per_s\":%.4g,\"steps\":[", 1e-9 * c->limits.bytes_per_s,
            1e-9 * c->limits.flops_per_s);
    for (int i = 0; i < t->n; i++) {
        if (i) fputc(',', to);
        json_row(&t->row[i], to);
    }
    fputs("]", to);
    gnnc_pipeline p = {.struct_size = sizeof p};
    if (gnnc_trainer_pipeline(c->t, &p) == GNNC_OK)
        fprintf(to,
                ",\"batches\":{\"made\":%lld,\"workers\":%lld,\"prepare_s\":%.6f,"
                "\"step_wait_s\":%.6f,\"worker_wait_s\":%.6f}",
                (long long)p.batches, (long long)p.workers, p.prepare_s, p.step_wait_s,
                p.worker_wait_s);
    fputs("}", to);
}

/* Prints the profile as JSON. */
static void print_json(RtCli *c, const Table *t) {
    putchar('{');
    put_profile(c, t, stdout);
    puts("}");
}

/* ---- the page of gnnc --emit=html ----------------------------------------------------------
 * What is measured takes the place of what its element `measured` has, so a page is measured as
 * often as one likes.  The page must be of this program. */
static void put_measured(RtCli *c, const Table *t, FILE *to) {
    gnnc_memory m = {.struct_size = sizeof m};
    fputs("{\"data\":", to);
    rt_cli_put_json_string(c->data, to);
    if (gnnc_trainer_memory(c->t, &m) == GNNC_OK)
        fprintf(to, ",\"memory\":{\"arena\":%zu,\"all\":%zu}", m.arena_bytes, m.all_bytes);
    fputc(',', to);
    put_profile(c, t, to);
    fputs("}", to);
}

static int bad_page(const RtCli *c, const char *why) {
    fprintf(stderr, "%s: error: --html: %s %s\n", c->prog, c->html, why);
    return RT_EXIT_FAILED;
}

/* The text of a file, to be freed; NULL: it cannot be read whole. */
static char *read_all(const char *path) {
    FILE *f = fopen(path, "r");
    long n = f && fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
    char *text = n >= 0 ? malloc((size_t)n + 1) : NULL;
    if (text) rewind(f);
    bool whole = text && fread(text, 1, (size_t)n, f) == (size_t)n;
    if (f) fclose(f);
    if (whole) {
        text[n] = '\0';
        if (strlen(text) != (size_t)n) *text = '\0'; /* no text, so no page */
        return text;
    }
    free(text); /* a part of it must not replace it */
    return NULL;
}

/* Where what was measured begins in the page, and, at *end, the rest; NULL: it is no page. */
static char *measured_in(char *page, char **end) {
    static const char mark[] = "<script type=\"application/json\" id=\"measured\">";
    char *at = strstr(page, mark);
    if (at) at += sizeof mark - 1;
    *end = at ? strstr(at, "</script>") : NULL;
    return *end ? at : NULL;
}

/* Was the page made for this program? */
static bool is_of_program(const RtCli *c, const char *page) {
    char print[48];
    snprintf(print, sizeof print, "\"fingerprint\": \"%016llx\"",
             (unsigned long long)c->is.fingerprint);
    return strstr(page, print) != NULL;
}

/* No '<' of a name ends the element: in JSON it stands in texts alone. */
static void put_escaped(const char *s, FILE *to) {
    for (; *s; s++) {
        if (*s == '<')
            fputs("\\u003c", to);
        else
            fputc(*s, to);
    }
}

/* A file is replaced whole or not at all, where a link leads, and is read by those who read it. */
static int write_page(const RtCli *c, const char *page, const char *at, const char *measured,
                      const char *rest) {
    char part[PATH_MAX + 32], path[PATH_MAX];
    struct stat s;
    if (!realpath(c->html, path) || stat(path, &s) != 0) return bad_page(c, "cannot be written");
    snprintf(part, sizeof part, "%s.%ld.part", path, (long)getpid());
    FILE *f = fopen(part, "wx");
    if (!f) return bad_page(c, "cannot be written");
    bool ok = fchmod(fileno(f), s.st_mode & 07777) == 0;
    fwrite(page, 1, (size_t)(at - page), f);
    put_escaped(measured, f);
    fputs(rest, f);
    ok = fflush(f) == 0 && !ferror(f) && ok;
    ok = fclose(f) == 0 && ok && rename(part, path) == 0;
    if (!ok) unlink(part);
    return ok ? RT_EXIT_OK : bad_page(c, "cannot be written");
}

/* Writes the measured times into the page that gnnc --emit=html made (--html). */
static int measure_page(RtCli *c, const Table *t) {
    char *page = read_all(c->html), *measured = NULL, *rest = NULL;
    size_t n = 0;
    FILE *to = page ? open_memstream(&measured, &n) : NULL;
    if (to) put_measured(c, t, to);
    bool told = to && fclose(to) == 0;
    char *at = told ? measured_in(page, &rest) : NULL;
    int code = !page   ? bad_page(c, "cannot be read: gnnc MODEL.gnn --emit=html -o FILE makes it")
               : !told ? bad_page(c, "is left as it is: out of memory")
               : !at   ? bad_page(c, "is no page of gnnc --emit=html")
               : !is_of_program(c, page) ? bad_page(c, "is the page of another program")
                                         : write_page(c, page, at, measured, rest);
    free(page);
    free(measured);
    return code;
}

/* Prints the profile, and writes it into the page if one is named. */
static int print_profile(RtCli *c) {
    int n_steps = gnnc_trainer_n_steps(c->t);
    Table t = {.row = malloc(sizeof *t.row * (size_t)(n_steps > 0 ? n_steps : 1))};
    if (!t.row) {
        fprintf(stderr, "%s: error: out of memory\n", c->prog);
        return RT_EXIT_FAILED;
    }
    collect(c, &t);
    (c->json || c->log == RT_LOG_JSON ? print_json : print_text)(c, &t);
    int code = c->html ? measure_page(c, &t) : RT_EXIT_OK;
    free(t.row);
    return code;
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
