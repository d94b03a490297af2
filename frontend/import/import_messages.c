/* What `gnnc import` prints: what it made of the data, warnings, progress and errors. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "import_job.h"
#include "runtime/data/dates.h"

/* Prints how many splits a column has, and how many rows are in each part of the first. */
static void print_split(FILE *out, const RtColumn *c) {
    int64_t n[4] = {0};
    for (int64_t i = 0; i < c->n_rows; i++) n[c->splits[i]]++;
    fprintf(out, "%d split%s, first: %lld train, %lld validation, %lld test", c->n_splits,
            c->n_splits == 1 ? "" : "s", (long long)n[1], (long long)n[2], (long long)n[3]);
}

/* Names of tables and columns may hold anything: a line stays one, and moves no cursor. */
static void put_plain(FILE *out, const char *text) {
    for (; *text; text++) fputc((unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text, out);
}

/* Prints why something was decided, if that is known, and ends the line. */
static void print_why(FILE *out, const char *why) {
    if (why) {
        fputs("  (", out);
        put_plain(out, why);
        fputc(')', out);
    }
    fputc('\n', out);
}

/* Prints how many rows of a column of ids have none. */
static void print_absent(FILE *out, const RtColumn *c) {
    int64_t none = 0;
    for (int64_t i = 0; c->kind == RT_COL_ID && i < c->n_rows; i++)
        none += c->i64[i] == RT_ID_ABSENT;
    if (none) fprintf(out, ", %lld absent", (long long)none);
}

/* Prints how a column was made of its values, if an encoder did it. */
static void print_encoder(FILE *out, const RtColumn *c) {
    char told[120] = "";
    if (c->encoder) rt_encoder_told(c->encoder, told, sizeof told);
    if (*told) fprintf(out, ", %s", told);
}

/* Prints a line about a column: its name, kind, sizes, and what it lacks. */
static void print_column(FILE *out, const RtColumn *c) {
    fprintf(out, "    %-10s ", c->name);
    if (c->kind == RT_COL_SPLIT) {
        print_split(out, c);
    } else {
        fprintf(out, "%s", rt_col_kind_name(c->kind));
        for (int i = 1; i < c->rank; i++) fprintf(out, " [%lld]", (long long)c->shape[i]);
    }
    if (c->low) fprintf(out, ", %s", c->low_dt == RT_DT_BF16 ? "bf16" : "f16");
    if (c->kind == RT_COL_CSR) fprintf(out, ", %lld stored", (long long)c->csr.nnz);
    if (c->kind == RT_COL_CLASS) {
        int64_t none = 0;
        for (int64_t i = 0; i < c->n_rows; i++) none += c->i32[i] < 0;
        fprintf(out, ", %lld classes, %lld without label", (long long)c->n_categories,
                (long long)none);
    }
    if (c->kind == RT_COL_CAT) fprintf(out, ", %lld categories", (long long)c->n_categories);
    print_absent(out, c);
    print_encoder(out, c);
    print_why(out, c->why);
}

/* Prints how many bad rows were left out of which files. */
static void print_bad(FILE *out, const RtImport *how) {
    int64_t others = how->n_bad;
    for (int i = 0; i < how->n_bad_files; i++) {
        const RtBadFile *f = &how->bad_files[i];
        fprintf(out, "  %lld bad row%s left out of ", (long long)f->n, f->n == 1 ? "" : "s");
        put_plain(out, f->file);
        fputc('\n', out);
        others -= f->n;
    }
    if (others) fprintf(out, "  %lld bad rows left out of other files\n", (long long)others);
}

/* Ends the line of a table with the column that its rows have their time by, and why: ", at
 * order_date (its name is an event's)". */
static void print_time(FILE *out, const RtTable *t) {
    if (t->time && *t->time)
        fprintf(out, ", at %s  (%s)\n", t->time, t->time_why);
    else
        fputc('\n', out);
}

/* Prints the date from which on rows are in a part; nothing if there is none. */
static void print_date(FILE *out, const char *what, double t) {
    char text[RT_DATE_TEXT];
    if (!isnan(t)) fprintf(out, "    %s from %s on\n", what, rt_date_text(t, text));
}

/* Prints how many rows a task has, its times, and what is reached without learning. */
static void print_task(FILE *out, const ImportJob *o) {
    const RtTaskMade *m = &o->made;
    fprintf(out, "  task %s: %s\n", m->table, m->asked);
    fprintf(out, "    %lld rows to learn from, %lld to choose by, %lld to judge on\n",
            (long long)m->n[1], (long long)m->n[2], (long long)m->n[3]);
    print_date(out, "validation", m->val_time);
    print_date(out, "test", m->test_time);
    fprintf(out, "    without learning, %-24s validation      test\n", m->baselines->metric);
    for (int i = 0; i < m->n_baselines; i += m->n_metrics)
        fprintf(out, "      %-40s %10.4g%10.4g\n", m->baselines[i].name, m->baselines[i].val,
                m->baselines[i].test);
}

void import_print_counts(FILE *out, const ImportJob *o, const RtDataset *d) {
    fprintf(out, "%s:\n", o->dir);
    for (int i = 0; i < d->n_nodes; i++) {
        fprintf(out, "  node %s: %lld%s", d->nodes[i].name, (long long)d->nodes[i].count,
                d->nodes[i].names ? ", with names" : "");
        print_time(out, &d->nodes[i]);
        for (int j = 0; j < d->nodes[i].n_columns; j++) print_column(out, &d->nodes[i].columns[j]);
    }
    for (int i = 0; i < d->n_graphs; i++) {
        fprintf(out, "  graph: %lld\n", (long long)d->graphs[i].count);
        for (int j = 0; j < d->graphs[i].n_columns; j++)
            print_column(out, &d->graphs[i].columns[j]);
    }
    for (int i = 0; i < d->n_edges; i++) {
        const RtTable *t = &d->edges[i];
        fprintf(out, "  edge %s: %s -> %s: %lld", t->name, d->nodes[t->src_type].name,
                d->nodes[t->dst_type].name, (long long)t->count);
        print_why(out, t->why);
        for (int j = 0; j < t->n_columns; j++) print_column(out, &t->columns[j]);
    }
    if (o->made.asked) print_task(out, o);
    print_bad(out, &o->how);
}

/* Prints a message behind its heading; what a terminal would obey in it is not printed as it is. */
static void put_told(FILE *err, const char *what, const char *text) {
    fprintf(err, "gnnc import: %s", what);
    put_plain(err, text);
    fputc('\n', err);
}

/* RtImport.on_bad: prints a row that cannot be read. */
static void on_bad(void *user, const char *text) {
    put_told(user, "", text);
}

/* RtImport.on_warning */
static void on_warning(void *user, const char *text) {
    put_told(user, "warning: ", text);
}

/* Shows how many rows of a table were read, over and over on one line of the terminal. */
static void on_progress(void *user, const char *table, int64_t n, int64_t n_all) {
    fputs("\r\x1b[K", user);
    put_plain(user, table);
    fprintf(user, ": %lld of %lld rows", (long long)n, (long long)n_all);
    if (n == n_all) fputs("\r\x1b[K", user);
    fflush(user);
}

void import_listen(ImportJob *o, FILE *err) {
    int fd = fileno(err);
    o->how.on_bad = on_bad;
    o->how.on_warning = on_warning;
    o->how.on_progress = fd >= 0 && isatty(fd) ? on_progress : NULL;
    o->how.user = err;
}

void import_print_error(FILE *err, const ImportJob *o, const RtError *e) {
    const char *cure = o->how.n_bad && !o->how.skip_bad ? "--skip-bad leaves them out" : "";
    if (*cure && *o->how.cure) cure = o->how.cure;
    fputs("gnnc import: error: ", err);
    put_plain(err, e->text);
    fprintf(err, "%s%s\n", *cure ? "; " : "", cure);
}
