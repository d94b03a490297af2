/* What a run says: one line per epoch as text or JSON, or a progress line where a person
 * watches.  JSON has one object per line; its last one is the result. */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "cli.h"
#include "runtime/clock.h"
#include "runtime/contract.h"
#include "runtime/trainer.h"

/* ---- messages ---------------------------------------------------------------- */
static void clear_progress(RtCli *c) {
    if (!c->on_terminal) return;
    fputs("\r\033[K", stdout);
    fflush(stdout);
}

int rt_cli_usage(const RtCli *c, const char *fmt, ...) {
    va_list ap;
    fprintf(stderr, "%s: ", c->prog);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fprintf(stderr, "\n'%s --help' lists commands and options\n", c->prog);
    return RT_EXIT_USAGE;
}

int rt_cli_failed(RtCli *c) {
    clear_progress(c);
    fprintf(stderr, "%s: error: %s\n", c->prog, gnnc_trainer_error(c->t));
    return RT_EXIT_FAILED;
}

void rt_cli_message(void *cli, const char *text) {
    RtCli *c = cli;
    clear_progress(c);
    fprintf(stderr, "%s: %s\n", c->prog, text);
}

/* ---- metrics ------------------------------------------------------------------- */
static int split_of(const RtScalar *s) {
    return s->of_split ? s->of_split : s->split;
}

/* Has it a value, and which? */
static bool is_known(RtCli *c, const RtScalar *s, double *v) {
    return gnnc_trainer_metric(c->t, s->name, v) == GNNC_OK;
}

static bool has_split(RtCli *c, int split) {
    double v;
    for (int i = 0; i < c->t->n_scalars; i++)
        if (split_of(&c->t->scalars[i]) == split && is_known(c, &c->t->scalars[i], &v)) return true;
    return false;
}

void rt_cli_json_string(const char *s) {
    putchar('"');
    for (; *s; s++) {
        unsigned char ch = (unsigned char)*s;
        if (ch == '"' || ch == '\\')
            printf("\\%c", ch);
        else if (ch < 0x20)
            printf("\\u%04x", ch);
        else
            putchar(ch);
    }
    putchar('"');
}

static void json_number(double v) {
    if (isfinite(v))
        printf("%.9g", v);
    else
        fputs("null", stdout);
}

static void json_split(RtCli *c, int split) {
    printf(",\"%s\":{", rt_split_words.word[split]);
    const char *comma = "";
    for (int i = 0; i < c->t->n_scalars; i++) {
        const RtScalar *s = &c->t->scalars[i];
        double v;
        if (split_of(s) != split || !is_known(c, s, &v)) continue;
        printf("%s\"%s\":", comma, s->of);
        json_number(v);
        comma = ",";
    }
    putchar('}');
}

static void json_splits(RtCli *c) {
    for (int split = RT_SPLIT_TRAIN; split <= RT_SPLIT_TEST; split++)
        if (has_split(c, split)) json_split(c, split);
}

static void text_split(RtCli *c, int split) {
    printf("  %s", rt_split_words.word[split]);
    for (int i = 0; i < c->t->n_scalars; i++) {
        const RtScalar *s = &c->t->scalars[i];
        double v;
        if (split_of(s) == split && is_known(c, s, &v)) printf(" %s %.4f", s->of, v);
    }
}

static void text_splits(RtCli *c) {
    for (int split = RT_SPLIT_TRAIN; split <= RT_SPLIT_TEST; split++)
        if (has_split(c, split)) text_split(c, split);
}

/* ---- what the model logs ------------------------------------------------------------ */
static void text_logged(RtCli *c) {
    for (int i = 0; i < c->t->n_scalars; i++) {
        const RtScalar *s = &c->t->scalars[i];
        double v;
        if (s->role == RT_OUT_LOG && is_known(c, s, &v)) printf("  %s %.6g", s->of, v);
    }
}

static void json_logged(RtCli *c) {
    const char *before = ",\"log\":{";
    for (int i = 0; i < c->t->n_scalars; i++) {
        const RtScalar *s = &c->t->scalars[i];
        double v;
        if (s->role != RT_OUT_LOG || !is_known(c, s, &v)) continue;
        fputs(before, stdout);
        rt_cli_json_string(s->of);
        putchar(':');
        json_number(v);
        before = ",";
    }
    if (strcmp(before, ",") == 0) putchar('}');
}

/* ---- epochs ---------------------------------------------------------------------- */
static int64_t epochs_wanted(const RtCli *c) {
    return gnnc_trainer_epochs_total(c->t);
}

static void draw_bar(int64_t done, int64_t all) {
    enum { WIDTH = 24 };
    int full = all > 0 ? (int)((double)done / (double)all * WIDTH) : 0;
    putchar('[');
    for (int i = 0; i < WIDTH; i++) putchar(i < full ? '=' : i == full ? '>' : ' ');
    putchar(']');
}

/* At most twenty times a second: a terminal is slower than an epoch on a small graph. */
static void progress_line(RtCli *c, int64_t epoch, double loss) {
    double now = rt_now();
    if (now - c->shown_at < 0.05 && epoch < epochs_wanted(c)) return;
    c->shown_at = now;
    clear_progress(c);
    draw_bar(epoch, epochs_wanted(c));
    printf(" %lld/%lld loss %.4f", (long long)epoch, (long long)epochs_wanted(c), loss);
    if (has_split(c, RT_SPLIT_VAL)) text_split(c, RT_SPLIT_VAL);
    text_logged(c);
    fflush(stdout);
}

static void json_epoch(RtCli *c, int64_t epoch, double loss, double ms, double eval_ms) {
    double lr = NAN;
    gnnc_trainer_metric(c->t, "lr", &lr);
    printf("{\"epoch\":%lld,\"lr\":", (long long)epoch);
    json_number(lr);
    fputs(",\"loss\":", stdout);
    json_number(loss);
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
        printf("epoch %lld/%lld  loss %.4f", (long long)epoch, (long long)epochs_wanted(c), loss);
        text_splits(c);
        text_logged(c);
        printf("  %.2f ms, evaluation %.2f\n", 1e3 * seconds, eval_ms);
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
    long long done = gnnc_trainer_epochs_done(c->t);
    char place[96];
    rt_cli_place(c, place, sizeof place);
    if (epoch > done)
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
    bool skips = epoch > 0 && rt_trainer_skipped(c->t, &skipped, &scale);
    if (c->log == RT_LOG_JSON) {
        printf("{\"kept_epoch\":%lld,\"epochs\":%lld,\"seconds\":%.3f", (long long)epoch,
               (long long)gnnc_trainer_epochs_done(c->t), seconds);
        if (epoch > gnnc_trainer_epochs_done(c->t))
            printf(",\"step\":%lld,\"steps\":%lld", (long long)gnnc_trainer_steps_done(c->t),
                   (long long)steps_of_epoch(c));
        json_splits(c);
        json_logged(c);
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
        printf("%s:", c->p->name);
    text_splits(c);
    text_logged(c);
    putchar('\n');
}
