/* A folder of CSV tables as a source: each file is read as a whole, its cells are texts without
 * declared types. */
#include <stdio.h>
#include <string.h>

#include "import_build.h"
#include "import_folder.h"
#include "import_source.h"
#include "import_table.h"

enum { MOST_TABLES = 256 };

typedef struct {
    RtSource s;
    RtCsv csv[MOST_TABLES];
    const RtFolder *f;
    RtImport *how;
    /* what is read */
    const RtCsv *at;
    const int *column;
    int n;
    int64_t row;
} Csvs;

static void on_bad_row(void *user, const char *file, int64_t line, const char *what) {
    rt_import_bad_row(((Csvs *)user)->how, file, line, what);
}

/* ---- the catalogue -------------------------------------------------------------------- */
/* Names the columns: "a column" of a header "a column:kind". */
static gnnc_status name_columns(Csvs *x, RtSourceTable *t, RtError *err) {
    if (!rt_source_columns(&x->s.pool, t, t->csv->n_columns)) return rt_fail_nomem(err, t->name);
    for (int i = 0; i < t->n_columns; i++) {
        const char *h = t->csv->header[i];
        t->columns[i].name = rt_pool_strndup(&x->s.pool, h, strcspn(h, ":"));
        if (!t->columns[i].name) return rt_fail_nomem(err, t->name);
    }
    return GNNC_OK;
}

/* Reads one CSV file of the folder as a table; n_stem characters of its name are the type's. */
static gnnc_status read_table(Csvs *x, const char *file, size_t n_stem, RtError *err) {
    RtBytes text;
    bool found;
    int at = x->s.n_tables;
    gnnc_status st;
    if (at == MOST_TABLES) return rt_fail(err, GNNC_E_LIMIT, "%s: too many tables", x->f->name);
    RtSourceTable *t = &x->s.tables[x->s.n_tables++];
    char *plain = rt_pool_printf(&x->s.pool, "%.*s.csv", (int)n_stem, file);
    t->type = rt_identifier(&x->s.pool, file, n_stem);
    if (!plain || !t->type) return rt_fail_nomem(err, x->f->name);
    t->name = plain;
    TRY(st, rt_folder_text(&x->s.pool, x->f, plain, &text, &found, err));
    if (!found) return rt_fail(err, GNNC_E_MISSING, "%s: %s: no such file", x->f->name, plain);
    RtHeader header = rt_import_header(x->how, plain);
    TRY(st, rt_csv_parse(&x->s.pool, text, plain, header, on_bad_row, x, &x->csv[at], err));
    t->csv = &x->csv[at];
    t->n_rows = t->csv->n_rows;
    if (t->csv->headerless && header != RT_HEADER_NO)
        return rt_fail(
            err, GNNC_E_FORMAT,
            "%s: row 1: a header with column names is expected, not numbers; --header %s=no "
            "calls them column_1, column_2, .., for --map",
            plain, plain);
    st = name_columns(x, t, err);
out:
    return st;
}

/* Reads all CSV files of the folder. */
static gnnc_status read_folder(Csvs *x, RtError *err) {
    const char **names;
    int n;
    gnnc_status st = rt_folder_list(&x->s.pool, x->f, "", &names, &n, err);
    for (int i = 0; i < n && st == GNNC_OK; i++) {
        const char *dot = strrchr(names[i], '.');
        if (dot && strcmp(dot, ".gz") == 0 && dot - names[i] > 4) dot -= 4;
        bool csv = dot && (strcmp(dot, ".csv") == 0 || strcmp(dot, ".csv.gz") == 0);
        if (!csv || dot == names[i]) continue;
        st = read_table(x, names[i], (size_t)(dot - names[i]), err);
    }
    if (st == GNNC_OK && x->s.n_tables == 0)
        return rt_fail(err, GNNC_E_MISSING,
                       "%s: nothing in it is known: neither metadata.yaml, raw/, train.txt, *.npz "
                       "nor *.csv",
                       x->f->name);
    return st;
}

/* ---- rows -------------------------------------------------------------------------------- */
/* Begins to read n columns of a table, from the first row. */
static gnnc_status begin_rows(RtSource *s, int table, const int *column, int n, RtError *err) {
    Csvs *x = s->state;
    (void)err;
    x->at = s->tables[table].csv;
    x->column = column;
    x->n = n;
    x->row = 0;
    return GNNC_OK;
}

/* Gives the wanted cells of the next row; *line 0: there is none. */
static gnnc_status next_row(RtSource *s, RtDatum *cell, int64_t *line, RtError *err) {
    Csvs *x = s->state;
    (void)err;
    *line = 0;
    if (x->row == x->at->n_rows) return GNNC_OK;
    for (int i = 0; i < x->n; i++) {
        const char *text = x->at->cell[x->row * x->at->n_columns + x->column[i]];
        cell[i] = (RtDatum){.type = *text ? RT_DATUM_TEXT : RT_DATUM_NULL};
        cell[i].n = strlen(text);
        cell[i].s = text;
    }
    *line = x->at->line[x->row++];
    return GNNC_OK;
}

static void end_rows(RtSource *s) {
    (void)s;
}

static const RtSourceForm csv_form = {begin_rows, next_row, end_rows, end_rows, NULL};

/* ---- the import ----------------------------------------------------------------------------- */
static bool is_feature(const RtSourceTable *t, int c) {
    return c >= 0 && t->columns[c].kind == RT_KIND_GUESS && !t->columns[c].refers;
}

/* Tells that a table of edges became nodes, which it does beside others unless its ends are
 * references. */
static void warn_of_edges(const Csvs *x, const RtSourceTable *t) {
    bool src = is_feature(t, rt_source_column(t, "src", 3));
    bool dst = is_feature(t, rt_source_column(t, "dst", 3));
    if (!src || !dst) return;
    rt_import_warn(
        x->how,
        "%s: its rows became nodes, 'src' and 'dst' features: edges are gnnc import "
        "[%s/NODES.csv] %s/%s, or --map FILE with '%s.src -> TABLE' and '%s.dst -> TABLE'",
        t->name, x->f->name, x->f->name, t->name, t->type, t->type);
}

/* Reads a folder of CSV files as tables that refer to each other. */
static gnnc_status read_all(const RtAlloc *from, Csvs *x, const RtNamedBytes *mapping,
                            RtDataset **out, RtError *err) {
    gnnc_status st;
    x->s.tables = RT_NEWN(&x->s.pool, RtSourceTable, MOST_TABLES);
    if (!x->s.tables) return rt_fail_nomem(err, x->f->name);
    TRY(st, read_folder(x, err));
    TRY(st, rt_source_order(&x->s, err));
    TRY(st, rt_import_source(from, &x->s, mapping, x->how, out, err));
    for (int i = 0; i < x->s.n_tables; i++) warn_of_edges(x, &x->s.tables[i]);
out:
    return st;
}

gnnc_status rt_import_tables(const RtAlloc *from, const RtFolder *f, const RtNamedBytes *mapping,
                             RtImport *how, RtDataset **out, RtError *err) {
    RtPool pool;
    *out = NULL;
    rt_pool_init(&pool, from);
    Csvs *x = RT_NEW(&pool, Csvs);
    if (!x) return rt_fail_nomem(err, f->name);
    x->f = f;
    x->how = how;
    x->s = (RtSource){.form = &csv_form, .state = x, .name = f->name};
    rt_pool_init(&x->s.pool, from);
    gnnc_status st = read_all(from, x, mapping, out, err);
    rt_pool_free(&x->s.pool);
    rt_pool_free(&pool);
    return st;
}
