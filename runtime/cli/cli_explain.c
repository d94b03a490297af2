/* explain: what the prediction of one row hangs on, as text or as a JSON object. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli_predict.h"

typedef struct {
    RtCli *c;
    RtCliServed *s;
    gnnc_legend_info legend;
    gnnc_explanation *e;
    gnnc_explanation_info is;
    int64_t row;
    float converted; /* what the loss makes of the number that is explained */
    FILE *to;
} Told;

static int failed(const RtCli *c, const char *why) {
    fprintf(stderr, "%s: error: %s\n", c->prog, why);
    return RT_EXIT_FAILED;
}

/* ---- what is asked ------------------------------------------------------------------- */
static const char *asked_at(const RtCli *c) {
    gnnc_option o = {.struct_size = sizeof o};
    for (int i = 0; gnnc_trainer_option(c->t, i, &o) == GNNC_OK; i++)
        if (strcmp(o.name, "at") == 0 && o.is_set) return o.text_value;
    return NULL;
}

/* A whole number below n; -1: it is none. */
static int64_t number(const char *s, int64_t n) {
    char *end;
    errno = 0;
    long long v = strtoll(s, &end, 10);
    return *s >= '0' && *s <= '9' && !*end && !errno && v < n ? v : -1;
}

/* Finds the row that --id or --node names. */
static int find_row(Told *t) {
    const RtCli *c = t->c;
    int64_t n = gnnc_session_rows(t->s->session);
    char why[300];
    if (c->id && t->legend.has_ids)
        return gnnc_legend_find(t->s->legend, c->id, &t->row) == GNNC_OK
                   ? RT_EXIT_OK
                   : failed(c, gnnc_legend_error(t->s->legend));
    t->row = number(c->id ? c->id : c->node, n);
    snprintf(why, sizeof why, "'%.64s' has no row '%.64s': %lld, from 0", t->legend.table,
             c->id ? c->id : c->node, (long long)n);
    return t->row < 0 ? failed(c, why) : RT_EXIT_OK;
}

/* By its name, else by its number; -1 where none is asked for. */
static int find_output(Told *t, int64_t *output) {
    const char *s = t->c->of_class, *name;
    char why[200];
    *output = -1;
    for (int64_t i = 0; s && *output < 0 && (name = gnnc_legend_value(t->s->legend, i)); i++)
        if (strcmp(name, s) == 0) *output = i;
    if (s && *output < 0) *output = number(s, t->legend.width);
    snprintf(why, sizeof why, "--class: there is no '%.64s' of %lld", s ? s : "",
             (long long)t->legend.width);
    return s && *output < 0 ? failed(t->c, why) : RT_EXIT_OK;
}

/* ---- what is said ---------------------------------------------------------------------- */
static const char *const KINDS[] = {[GNNC_PART_TABLE] = "tables",
                                    [GNNC_PART_PATH] = "paths",
                                    [GNNC_PART_COLUMN] = "columns",
                                    [GNNC_PART_AGE] = "ages"};
enum { N_KINDS = sizeof KINDS / sizeof *KINDS };

/* Prints the time that the row was asked about. */
static void put_date(const Told *t) {
    time_t seconds = (time_t)floor(t->is.at);
    struct tm day;
    char text[64] = "";
    if (gmtime_r(&seconds, &day)) strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &day);
    fputs(text, t->to);
}

static const char *row_name(const Told *t, char room[32]) {
    const char *id = gnnc_legend_id(t->s->legend, 0, t->row);
    snprintf(room, 32, "%lld", (long long)t->row);
    return id ? id : room;
}

/* The next part of this kind, from *i on. */
static bool next_part(const Told *t, int kind, int64_t *i, gnnc_part *p) {
    *p = (gnnc_part){.struct_size = sizeof *p};
    while (gnnc_explanation_part(t->e, (*i)++, p) == GNNC_OK)
        if (p->kind == kind) return true;
    return false;
}

static bool is_in(const Told *t, int64_t n) {
    return !t->c->top || n < t->c->top;
}

/* Prints a part of the explanation: its name, rows, and both measures. */
static void put_part(const Told *t, const gnnc_part *p) {
    fprintf(t->to, "  %-46s %6lld ", p->name, (long long)p->n_rows);
    if (isnan(p->ablation))
        fprintf(t->to, "%12s", "-");
    else
        fprintf(t->to, "%12.6g", p->ablation);
    fprintf(t->to, " %18.6g\n", p->gradient);
}

/* Prints the explanation as text. */
static void put_text(const Told *t) {
    char room[32];
    const char *value = gnnc_legend_value(t->s->legend, t->is.output);
    fprintf(t->to, "%s %s", t->legend.table, row_name(t, room));
    if (!isnan(t->is.at)) {
        fputs(", asked at ", t->to);
        put_date(t);
    }
    fprintf(t->to, "\n  %s %s%s%.6g, score %.6g; with nothing known %.6g\n", t->legend.word,
            value ? value : "", value && *value ? " " : "", (double)t->converted, t->is.score,
            t->is.without);
    fprintf(t->to,
            "  gradient x input adds up to %.6g, of the %.6g that the data make of the score\n",
            t->is.gradient, t->is.score - t->is.without);
    for (int k = 0; k < N_KINDS; k++) {
        gnnc_part p;
        int64_t i = 0, n = 0;
        for (; next_part(t, k, &i, &p) && is_in(t, n); n++) {
            if (n == 0)
                fprintf(t->to, "\n%-48s %6s %12s %18s\n", KINDS[k], "rows", "ablation",
                        "gradient x input");
            put_part(t, &p);
        }
    }
}

static void put_member(const Told *t, const char *name, double v) {
    fprintf(t->to, ",\"%s\":", name);
    rt_cli_put_json_number(v, t->to);
}

/* Prints the parts of a kind as a member of a JSON object. */
static void put_json_parts(const Told *t, int kind) {
    gnnc_part p;
    int64_t i = 0, n = 0;
    fprintf(t->to, ",\"%s\":[", KINDS[kind]);
    for (; next_part(t, kind, &i, &p) && is_in(t, n); n++) {
        fprintf(t->to, "%s{\"name\":", n ? "," : "");
        rt_cli_put_json_string(p.name, t->to);
        fprintf(t->to, ",\"rows\":%lld", (long long)p.n_rows);
        put_member(t, "ablation", p.ablation);
        put_member(t, "gradient", p.gradient);
        putc('}', t->to);
    }
    putc(']', t->to);
}

/* Prints the explanation as JSON. */
static void put_json(const Told *t) {
    char room[32];
    const char *value = gnnc_legend_value(t->s->legend, t->is.output);
    fputs("{\"table\":", t->to);
    rt_cli_put_json_string(t->legend.table, t->to);
    fputs(",\"id\":", t->to);
    rt_cli_put_json_string(row_name(t, room), t->to);
    fprintf(t->to, ",\"row\":%lld,\"at\":", (long long)t->row);
    fputs(isnan(t->is.at) ? "null" : "\"", t->to);
    if (!isnan(t->is.at)) {
        put_date(t);
        putc('"', t->to);
    }
    fprintf(t->to, ",\"output\":%lld,\"class\":", (long long)t->is.output);
    rt_cli_put_json_string(value ? value : "", t->to);
    put_member(t, t->legend.word, (double)t->converted);
    if (strcmp(t->legend.word, "score") != 0) put_member(t, "score", t->is.score);
    put_member(t, "without", t->is.without);
    put_member(t, "gradient", t->is.gradient);
    put_member(t, "gap", t->is.score - t->is.without - t->is.gradient);
    for (int k = 0; k < N_KINDS; k++) put_json_parts(t, k);
    fputs("}\n", t->to);
}

/* ---- where it goes ----------------------------------------------------------------------- */
/* Prints the explanation in the form that was asked for. */
static void put(Told *t, FILE *to) {
    t->to = to;
    if (t->c->format == RT_FORMAT_JSON)
        put_json(t);
    else
        put_text(t);
}

/* A file is replaced whole or not at all. */
static int put_file(Told *t, const char *path) {
    char part[4096], why[4400];
    int n = snprintf(part, sizeof part, "%s.%ld.part", path, (long)getpid());
    bool fits = n < (int)sizeof part;
    int fd = fits ? open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666) : -1;
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    bool ok = f != NULL;
    if (f) {
        put(t, f);
        ok = fflush(f) == 0 && !ferror(f) && fsync(fd) == 0;
        ok = fclose(f) == 0 && ok && rename(part, path) == 0;
    }
    if (ok) return RT_EXIT_OK;
    snprintf(why, sizeof why, "cannot write %.4000s: %s", path,
             strerror(fits ? errno : ENAMETOOLONG));
    if (fd >= 0 && !f) close(fd);
    if (fd >= 0) unlink(part);
    return failed(t->c, why);
}

/* Explains the row and predicts it. output: -1, or the number of what is explained. */
static gnnc_status ask(Told *t, int64_t output) {
    gnnc_session *s = t->s->session;
    float *v = t->s->values = calloc((size_t)t->legend.width + 1, 2 * sizeof *v);
    if (!v) return GNNC_E_NOMEM;
    gnnc_status st = gnnc_session_explain(s, t->row, output, &t->e);
    if (st == GNNC_OK) st = gnnc_session_predict(s, 1, &t->row, v);
    if (st != GNNC_OK) return st;
    t->is.struct_size = sizeof t->is;
    gnnc_explanation_describe(t->e, &t->is);
    gnnc_legend_convert(t->s->legend, 1, v, v + t->legend.width);
    t->converted = v[t->legend.width + t->is.output];
    return GNNC_OK;
}

/* Opens the data, finds row and output, and prints or writes the explanation. */
static int explain(Told *t) {
    RtCli *c = t->c;
    int64_t output;
    if (rt_cli_served_open(c, asked_at(c), t->s) != GNNC_OK)
        return failed(c, rt_cli_served_error(t->s));
    t->legend.struct_size = sizeof t->legend;
    gnnc_legend_describe(t->s->legend, &t->legend);
    int code = find_row(t);
    if (code == RT_EXIT_OK) code = find_output(t, &output);
    if (code != RT_EXIT_OK) return code;
    if (ask(t, output) != GNNC_OK)
        return failed(c, t->s->values ? rt_cli_served_error(t->s) : "out of memory");
    if (c->out) return put_file(t, c->out);
    put(t, stdout);
    return RT_EXIT_OK;
}

/* `explain`: what a prediction rests on. */
int rt_cli_explain(RtCli *c) {
    RtCliServed s = {.graph = NULL};
    Told t = {.c = c, .s = &s};
    if (!c->rows) return failed(c, "explain: this was compiled without --explain");
    if (rt_cli_sets_what_weights_say(c))
        return failed(c, "explain: the weights say what --set and --fanout would");
    int code = explain(&t);
    gnnc_explanation_destroy(t.e);
    rt_cli_served_close(&s);
    return code;
}
