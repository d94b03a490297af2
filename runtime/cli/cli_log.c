/* What a run says: one line per epoch as text or JSON, or a progress line where a person
 * watches.  JSON has one object per line; its last one is the result. */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "cli.h"

/* ---- messages ---------------------------------------------------------------- */
/* Clears the line with the progress, before something else is printed. */
static void clear_progress(RtCli *c) {
    if (!c->on_terminal) return;
    fputs("\r\033[K", stdout);
    fflush(stdout);
}

int rt_cli_usage(const RtCli *c, const char *fmt, ...) {
    va_list ap;
    rt_ranks_wait_for_first(c); /* which most often has the same words */
    if (rt_ranks_number(c)) fprintf(stderr, "rank %d: ", rt_ranks_number(c));
    fprintf(stderr, "%s: ", c->prog);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fprintf(stderr, "\n'%s --help' lists commands and options\n", c->prog);
    return RT_EXIT_USAGE;
}

int rt_cli_failed(RtCli *c) {
    clear_progress(c);
    int rank = rt_ranks_number(c);
    if (!rt_ranks_tells(c)) return RT_EXIT_FAILED;
    if (rank) fprintf(stderr, "rank %d: ", rank);
    fprintf(stderr, "%s: error: %s", c->prog, gnnc_trainer_error(c->t));
    int64_t waited = rt_ranks_waited(c);
    if (waited) fprintf(stderr, " (waited %lld s: --patience)", (long long)waited);
    fputc('\n', stderr);
    return RT_EXIT_FAILED;
}

void rt_cli_message(void *cli, const char *text) {
    RtCli *c = cli;
    if (rt_ranks_number(c)) return; /* the first one has it, too */
    clear_progress(c);
    fprintf(stderr, "%s: %s\n", c->prog, text);
}

/* ---- metrics ------------------------------------------------------------------- */
/* The next of them that has a value, from *i on, of this split or ("log") logged by the model. */
static bool next_known(RtCli *c, const char *which, int *i, gnnc_metric_info *m) {
    *m = (gnnc_metric_info){.struct_size = sizeof *m};
    while (gnnc_trainer_metric_info(c->t, (*i)++, m) == GNNC_OK)
        if (m->known && strcmp(m->is_logged ? "log" : m->split, which) == 0) return true;
    return false;
}

static const char *const SPLITS[] = {"train", "val", "test"};
enum { N_SPLITS = 3 };

void rt_cli_put_json_string(const char *s, FILE *f) {
    putc('"', f);
    for (; *s; s++) {
        unsigned char ch = (unsigned char)*s;
        if (ch == '"' || ch == '\\')
            fprintf(f, "\\%c", ch);
        else if (ch < 0x20)
            fprintf(f, "\\u%04x", ch);
        else
            putc(ch, f);
    }
    putc('"', f);
}

void rt_cli_put_json_number(double v, FILE *f) {
    if (isfinite(v))
        fprintf(f, "%.9g", v);
    else
        fputs("null", f);
}

void rt_cli_json_string(const char *s) {
    rt_cli_put_json_string(s, stdout);
}

double rt_cli_shown(double v) {
    return isnan(v) ? (double)NAN : v;
}

void rt_cli_json_number(double v) {
    rt_cli_put_json_number(v, stdout);
}

/* ,"val":{"loss":0.5,"accuracy":0.8}; nothing of which nothing is known */
static void json_known(RtCli *c, const char *which) {
    gnnc_metric_info m;
    int n = 0;
    for (int i = 0; next_known(c, which, &i, &m); n++) {
        if (n == 0) printf(",\"%s\":{", which);
        if (n > 0) putchar(',');
        rt_cli_json_string(m.of);
        putchar(':');
        rt_cli_json_number(m.value);
    }
    if (n) putchar('}');
}

static void json_splits(RtCli *c) {
    for (int k = 0; k < N_SPLITS; k++) json_known(c, SPLITS[k]);
}

/* Prints the metrics of a split. */
static void text_split(RtCli *c, const char *split) {
    gnnc_metric_info m;
    for (int i = 0, n = 0; next_known(c, split, &i, &m); n++)
        printf("%s%s %s %.4f", n ? "" : "  ", n ? "" : split, m.of, rt_cli_shown(m.value));
}

static void text_splits(RtCli *c) {
    for (int k = 0; k < N_SPLITS; k++) text_split(c, SPLITS[k]);
}

/* ---- beside the results ------------------------------------------------------------- */
/* The i-th of what is reached without learning; false: there are no more. */
static bool baseline(RtCli *c, int i, gnnc_baseline *b) {
    *b = (gnnc_baseline){.struct_size = sizeof *b};
    return i < gnnc_trainer_n_baselines(c->t) && gnnc_trainer_baseline(c->t, i, b) == GNNC_OK;
}

/* Those from *i on that have one name: of validation, or of test. */
static void text_baseline(RtCli *c, int i, const char *name, bool test) {
    gnnc_baseline b;
    for (int n = 0; baseline(c, i, &b) && strcmp(b.name, name) == 0; i++) {
        double v = test ? b.test : b.val;
        if (isfinite(v)) printf("%s %s %.4f", n++ ? "" : test ? "  test" : "  val", b.metric, v);
    }
}

/* Prints the metrics of simple predictions, a line for each of these. */
static void text_baselines(RtCli *c) {
    gnnc_baseline b, next;
    for (int i = 0; baseline(c, i, &b);) {
        printf("  without learning, %s:", b.name);
        text_baseline(c, i, b.name, false);
        text_baseline(c, i, b.name, true);
        putchar('\n');
        while (baseline(c, ++i, &next) && strcmp(next.name, b.name) == 0) continue;
    }
}

/* Prints the metrics of a simple prediction as a JSON member: those from number i on that have this
 * name. */
static void json_baseline(RtCli *c, int i, const char *name, bool test) {
    gnnc_baseline b;
    printf(",\"%s\":{", test ? "test" : "val");
    for (int n = 0; baseline(c, i, &b) && strcmp(b.name, name) == 0; i++, n++) {
        if (n) putchar(',');
        rt_cli_json_string(b.metric);
        putchar(':');
        rt_cli_json_number(test ? b.test : b.val);
    }
    putchar('}');
}

/* ,"baselines":[{"name":"mean of its customers","val":{"roc_auc":0.7},"test":{..}}] */
static void json_baselines(RtCli *c) {
    gnnc_baseline b, next;
    for (int i = 0; baseline(c, i, &b);) {
        fputs(i ? ",{\"name\":" : ",\"baselines\":[{\"name\":", stdout);
        rt_cli_json_string(b.name);
        json_baseline(c, i, b.name, false);
        json_baseline(c, i, b.name, true);
        putchar('}');
        while (baseline(c, ++i, &next) && strcmp(next.name, b.name) == 0) continue;
    }
    if (gnnc_trainer_n_baselines(c->t)) putchar(']');
}

void rt_cli_baselines(RtCli *c) {
    if (c->log == RT_LOG_JSON) json_baselines(c);
    if (c->log == RT_LOG_TEXT) text_baselines(c);
}

/* ---- what the model logs ------------------------------------------------------------ */
static void text_logged(RtCli *c) {
    gnnc_metric_info m;
    for (int i = 0; next_known(c, "log", &i, &m);) printf("  %s %.6g", m.of, m.value);
}

static void json_logged(RtCli *c) {
    json_known(c, "log");
}

/* ---- epochs ---------------------------------------------------------------------- */
static int64_t epochs_wanted(const RtCli *c) {
    return gnnc_trainer_epochs_total(c->t);
}

/* Prints how much is done as a bar. */
static void draw_bar(int64_t done, int64_t all) {
    enum { WIDTH = 24 };
    int full = all > 0 ? (int)((double)done / (double)all * WIDTH) : 0;
    putchar('[');
    for (int i = 0; i < WIDTH; i++) putchar(i < full ? '=' : i == full ? '>' : ' ');
    putchar(']');
}

/* At most twenty times a second: a terminal is slower than an epoch on a small graph. */
static void progress_line(RtCli *c, int64_t epoch, double loss) {
    double now = rt_cli_now();
    if (now - c->shown_at < 0.05 && epoch < epochs_wanted(c)) return;
    c->shown_at = now;
    clear_progress(c);
    draw_bar(epoch, epochs_wanted(c));
    printf(" %lld/%lld loss %.4f", (long long)epoch, (long long)epochs_wanted(c),
           rt_cli_shown(loss));
    text_split(c, "val");
    text_logged(c);
    fflush(stdout);
}

/* Prints an epoch as a line of JSON. ms: of it all; eval_ms: of its evaluation. */
static void json_epoch(RtCli *c, int64_t epoch, double loss, double ms, double eval_ms) {
    double lr = NAN;
    gnnc_trainer_metric(c->t, "lr", &lr);
    printf("{\"epoch\":%lld,\"lr\":", (long long)epoch);
    rt_cli_json_number(lr);
    fputs(",\"loss\":", stdout);
    rt_cli_json_number(loss);
    json_splits(c);
    json_logged(c);
    printf(",\"ms\":%.3f,\"train_ms\":%.3f,\"eval_ms\":%.3f}\n", ms, ms - eval_ms, eval_ms);
}

/* Of the epoch that was just done. */
static double evaluation_ms(RtCli *c) {
    gnnc_counters n = {.struct_size = sizeof n};
    gnnc_trainer_counters(c->t, &n);
    int64_t before = c->eval_ns;
    c->eval_ns = n.eval_ns;
    return 1e-6 * (double)(n.eval_ns - before);
}

void rt_cli_epoch(RtCli *c, double seconds) {
    int64_t epoch = gnnc_trainer_epochs_done(c->t);
    double loss = NAN, eval_ms = evaluation_ms(c);
    gnnc_trainer_metric(c->t, "loss", &loss);
    if (c->log == RT_LOG_NONE) return;
    if (c->log == RT_LOG_JSON) {
        json_epoch(c, epoch, loss, 1e3 * seconds, eval_ms);
    } else if (c->on_terminal) {
        progress_line(c, epoch, loss);
        return;
    } else {
        printf("epoch %lld/%lld  loss %.4f", (long long)epoch, (long long)epochs_wanted(c),
               rt_cli_shown(loss));
        text_splits(c);
        text_logged(c);
        printf("  %.2f ms, evaluation %.2f\n", 1e3 * seconds, eval_ms);
    }
    fflush(stdout);
}

void rt_cli_step(RtCli *c, const gnnc_progress *now) {
    long long epoch = now->epochs_done + 1, done = now->steps_done, all = done + now->steps_left;
    double loss = NAN;
    gnnc_trainer_metric(c->t, "loss", &loss);
    if (c->log == RT_LOG_NONE) return;
    if (c->log == RT_LOG_JSON) {
        printf("{\"epoch\":%lld,\"step\":%lld,\"steps\":%lld,\"loss\":", epoch, done, all);
        rt_cli_json_number(loss);
        json_splits(c);
        puts("}");
    } else {
        clear_progress(c);
        printf("epoch %lld, step %lld of %lld  loss %.4f", epoch, done, all, loss);
        text_splits(c);
        putchar('\n');
    }
    fflush(stdout);
}

static int64_t steps_of_epoch(const RtCli *c) {
    return gnnc_trainer_steps_done(c->t) + gnnc_trainer_steps_left(c->t);
}

void rt_cli_place(const RtCli *c, char *to, size_t n) {
    long long epoch = gnnc_trainer_epochs_done(c->t), step = gnnc_trainer_steps_done(c->t);
    if (step)
        snprintf(to, n, "epoch %lld, step %lld of %lld", epoch + 1, step,
                 (long long)steps_of_epoch(c));
    else
        snprintf(to, n, "epoch %lld", epoch);
}

/* What was kept: the epoch, or what was done of the one under way. */
static void text_kept(const RtCli *c, int64_t epoch, double seconds) {
    long long done = gnnc_trainer_epochs_done(c->t), step = gnnc_trainer_kept_step(c->t);
    char place[96];
    rt_cli_place(c, place, sizeof place);
    if (step)
        printf("kept epoch %lld, step %lld of %lld (%.2f s):", (long long)epoch, step,
               (long long)steps_of_epoch(c), seconds);
    else if (epoch > done)
        printf("kept %s (%.2f s):", place, seconds);
    else
        printf("kept epoch %lld of %lld (%.2f s):", (long long)epoch, done, seconds);
}

void rt_cli_saved(RtCli *c) {
    clear_progress(c);
    if (c->log != RT_LOG_TEXT || !c->saved) return;
    char place[96];
    rt_cli_place(c, place, sizeof place);
    printf("%s: checkpoint of %s\n", c->checkpoint, place);
}

void rt_cli_result(RtCli *c, int64_t epoch, double seconds) {
    clear_progress(c);
    if (c->log == RT_LOG_NONE) return;
    double skipped, scale;
    bool skips = epoch > 0 && gnnc_trainer_loss_scale(c->t, &scale, &skipped) == GNNC_OK;
    if (c->log == RT_LOG_JSON) {
        printf("{\"kept_epoch\":%lld,\"epochs\":%lld,\"seconds\":%.3f", (long long)epoch,
               (long long)gnnc_trainer_epochs_done(c->t), seconds);
        long long step = gnnc_trainer_kept_step(c->t);
        if (!step && epoch > gnnc_trainer_epochs_done(c->t)) step = gnnc_trainer_steps_done(c->t);
        if (step) printf(",\"step\":%lld,\"steps\":%lld", step, (long long)steps_of_epoch(c));
        json_splits(c);
        json_logged(c);
        rt_cli_baselines(c);
        if (skips) printf(",\"skipped_steps\":%.0f,\"loss_scale\":%g", skipped, scale);
        puts("}");
        return;
    }
    if (skips && skipped > 0)
        printf("%.0f steps were skipped, as gradients overflowed f16; the loss is scaled by %g%s\n",
               skipped, scale, scale <= 1 ? ", the least: try bf16, or --precision=auto" : "");
    if (epoch > 0)
        text_kept(c, epoch, seconds);
    else
        printf("%s:", c->is.name);
    text_splits(c);
    text_logged(c);
    putchar('\n');
    rt_cli_baselines(c);
}
