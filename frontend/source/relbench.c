/* RelBench's folders: manifest.yaml says what the tables of db/ are, their keys and times, and
 * tasks/NAME/ has the rows to learn from, with their answers.  Rows are in the order of the files.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "parquet.h"
#include "runtime/data/dates.h"
#include "runtime/import/import_build.h"
#include "runtime/import/import_table.h"
#include "source.h"

enum { PARTS = 3, TASK_TIME = 0, TASK_ENTITY, TASK_TARGET, TASK_SPLIT, TASK_COLUMNS };
static const char *const parts[PARTS] = {"train", "val", "test"};

/* A table's `state`: its files, and what its columns are called there. */
typedef struct {
    const char *file[PARTS];
    int n_files;
    RtSourceTable has[PARTS]; /* of a task: its columns in each file; one may lack the answers */
} Files;

typedef struct {
    const char *dir;
    Parquet parquet;
    const RtJson *manifest, *task; /* task: NULL = none is asked for */
    RtImport *how;
    /* what is read */
    const RtSourceTable *t;
    const int *column;
    int n, part;
    int at[TASK_COLUMNS]; /* of a task: where a column stands among those that are read, -1 */
    int64_t row, left;    /* left: of rows of which no column is read */
} RelBench;

static const char *text_of(const RtJson *object, const char *key) {
    const RtJson *v = rt_json_get(object, key);
    return v && v->kind == RT_JSON_STRING ? v->text : NULL;
}

static gnnc_status no_memory(const RtSource *s, RtError *err) {
    return rt_fail_nomem(err, s->name);
}

/* ---- manifests ------------------------------------------------------------------------------ */
/* Reads a manifest, which must be a mapping. path NULL: memory ran out before. */
static gnnc_status read_yaml(RtSource *s, const char *path, const RtJson **out, RtError *err) {
    RtBytes text;
    RtJson *v;
    gnnc_status st = path ? rt_file_read(&s->pool, path, &text, err) : no_memory(s, err);
    if (st == GNNC_OK) st = source_yaml(&s->pool, text, path, &v, err);
    if (st == GNNC_OK && v->kind != RT_JSON_OBJECT)
        st = rt_fail(err, GNNC_E_FORMAT, "%s: no manifest", path);
    *out = st == GNNC_OK ? v : NULL;
    return st;
}

/* The place of the table of that name; -1: there is none. name may be NULL. */
static int find_table(const RtSource *s, const char *name) {
    for (int i = 0; name && i < s->n_tables; i++)
        if (strcmp(s->tables[i].name, name) == 0) return i;
    return -1;
}

static int find_column(const RtSourceTable *t, const char *name) {
    return name ? rt_source_column(t, name, strlen(name)) : -1;
}

/* Reports a column that a manifest names at `at` and the table does not have. */
static gnnc_status no_column(const RtSource *s, const RtJson *at, const char *table,
                             const char *name, RtError *err) {
    return rt_fail(err, GNNC_E_FORMAT, "%s/manifest.yaml:%d: %s: there is no column '%.80s'",
                   s->name, at->line, table, name);
}

/* Tells the import by which column the rows of a table have their time, or that they have none,
 * as the manifest says. */
static gnnc_status say_time(RtSource *s, const RtSourceTable *t, const RtJson *is, RtError *err) {
    RelBench *x = s->state;
    const char *column = text_of(is, "time_col");
    const char *type = rt_identifier(&s->pool, t->name, strlen(t->name));
    bool timed = column != NULL;
    if (!type) return no_memory(s, err);
    if (column && find_column(t, column) < 0) return no_column(s, is, t->name, column, err);
    for (int i = 0; i < t->n_columns && !timed; i++)
        timed = t->columns[i].declared == RT_DECLARED_TIME;
    if (!timed) return GNNC_OK;
    const char *id = column ? rt_identifier(&s->pool, column, strlen(column)) : "";
    const char *said = id ? rt_pool_printf(&s->pool, "%s%s%s", type, *id ? "." : "", id) : NULL;
    if (!said) return no_memory(s, err);
    if (column) t->columns[find_column(t, column)].kind = RT_COL_TIME;
    if (rt_import_say_row_time(x->how, RT_SAID_BY_SOURCE, said, strlen(said), !column))
        return GNNC_OK;
    return rt_fail(err, GNNC_E_LIMIT, "%s: too many tables with times", s->name);
}

/* Reads one table as its manifest describes it: its file, columns, key and time. */
static gnnc_status read_table(RtSource *s, RtSourceTable *t, const RtJson *is, RtError *err) {
    RelBench *x = s->state;
    const char *key = text_of(is, "pkey");
    Files *f = t->state = RT_NEW(&s->pool, Files);
    gnnc_status st;
    t->name = is->key;
    if (!f || !(f->file[0] = rt_pool_printf(&s->pool, "%s/db/%s.parquet", x->dir, t->name)))
        return no_memory(s, err);
    f->n_files = 1;
    if (strchr(t->name, '/'))
        return rt_fail(err, GNNC_E_FORMAT, "%s: '%.80s' is no name of a file", s->name, t->name);
    TRY(st, parquet_describe(&x->parquet, &s->pool, f->file[0], t, err));
    if (key && find_column(t, key) < 0) return no_column(s, is, t->name, key, err);
    if (key) t->key = (RtKeyColumns){1, {find_column(t, key)}};
    st = say_time(s, t, is, err);
out:
    return st;
}

/* Reads the foreign keys of a table. */
static gnnc_status read_references(RtSource *s, RtSourceTable *t, const RtJson *is, RtError *err) {
    const RtJson *keys = rt_json_get(is, "fkeys");
    for (const RtJson *k = keys ? keys->first : NULL; k; k = k->next) {
        int column = find_column(t, k->key), to = find_table(s, k->text);
        if (column < 0) return no_column(s, k, t->name, k->key ? k->key : "", err);
        if (to < 0)
            return rt_fail(err, GNNC_E_FORMAT, "%s/manifest.yaml:%d: %s: there is no table '%.80s'",
                           s->name, k->line, t->name, k->text ? k->text : "");
        RtReference r = {.from = {1, {column}}, .table = to};
        if (!rt_source_refer(&s->pool, t, &r)) return no_memory(s, err);
    }
    return GNNC_OK;
}

/* Reads all tables of the manifest, then their foreign keys, which may name any of them. */
static gnnc_status read_tables(RtSource *s, RtError *err) {
    RelBench *x = s->state;
    const RtJson *tables = rt_json_get(x->manifest, "tables");
    gnnc_status st = GNNC_OK;
    if (!tables || tables->kind != RT_JSON_OBJECT)
        return rt_fail(err, GNNC_E_FORMAT, "%s/manifest.yaml: 'tables' are missing", s->name);
    s->tables = RT_NEWN(&s->pool, RtSourceTable, tables->n + 1);
    if (!s->tables) return no_memory(s, err);
    for (const RtJson *v = tables->first; v && st == GNNC_OK; v = v->next)
        st = read_table(s, &s->tables[s->n_tables++], v, err);
    int i = 0;
    for (const RtJson *v = tables->first; v && st == GNNC_OK; v = v->next)
        st = read_references(s, &s->tables[i++], v, err);
    return st;
}

/* ---- tasks -------- */
/* Reports a mistake in the manifest of the task. */
static gnnc_status no_task(const RtSource *s, const char *why, RtError *err) {
    const RelBench *x = s->state;
    return rt_fail(err, GNNC_E_FORMAT, "%s: task '%.80s': %s", s->name, x->how->source_task.name,
                   why);
}

/* Sets *to to the date that the dataset's manifest has under `key`. */
static gnnc_status read_time(const RtSource *s, const char *key, double *to, RtError *err) {
    const RelBench *x = s->state;
    const char *text = text_of(x->manifest, key);
    if (text && rt_cell_time(text, to) && isfinite(*to)) return GNNC_OK;
    return rt_fail(err, GNNC_E_FORMAT, "%s/manifest.yaml: '%s' is no date", s->name, key);
}

/* Writes a task about a column as a query: "table"."target" KNOWN AFTER the columns of its table
 * that would give the answer away. Such columns of other tables are left out of the import. */
static gnnc_status make_column_query(RtSource *s, RtError *err) {
    RelBench *x = s->state;
    const char *table = text_of(x->task, "entity_table"), *target = text_of(x->task, "target_col");
    const RtJson *late = rt_json_get(x->task, "remove_columns");
    RtSourceTask *g = &x->how->source_task;
    size_t room = sizeof g->query, n;
    if (!table || !target) return no_task(s, "'entity_table' or 'target_col' is missing", err);
    n = (size_t)snprintf(g->query, room, "\"%s\".\"%s\"", table, target);
    const char *before = " KNOWN AFTER ";
    for (const RtJson *v = late ? late->first : NULL; v && n < room; v = v->next) {
        const char *of = v->first ? v->first->text : NULL;
        const char *column = of && v->first->next ? v->first->next->text : NULL;
        int t = find_table(s, of), c = t >= 0 ? find_column(&s->tables[t], column) : -1;
        if (!column) return no_task(s, "'remove_columns' are pairs of a table and a column", err);
        if (c >= 0 && strcmp(of, table) != 0) s->tables[t].columns[c].kind = RT_KIND_SKIP;
        if (c < 0 || strcmp(of, table) != 0) continue;
        n += (size_t)snprintf(g->query + n, room - n, "%s\"%s\"", before, column);
        before = ", ";
    }
    x->how->asked = g->query;
    return n < room ? GNNC_OK : no_task(s, "it names too many columns", err);
}

/* Makes the four columns of a task's table: time, entity, target and split. raw: what its files
 * call them. */
static gnnc_status task_columns(RtSource *s, RtSourceTable *t, const char *const *raw,
                                RtError *err) {
    RelBench *x = s->state;
    static const char *const name[] = {"time", "", "y", "split"};
    Files *f = t->state;
    const char *type = text_of(x->task, "task_type");
    bool number = type && strcmp(type, "regression") == 0;
    bool class = type && (strcmp(type, "binary_classification") == 0 ||
                          strcmp(type, "multiclass_classification") == 0);
    if (!number && !class)
        return no_task(s,
                       "'task_type' is none of regression, binary_classification and "
                       "multiclass_classification",
                       err);
    if (!rt_source_columns(&s->pool, t, TASK_COLUMNS)) return no_memory(s, err);
    for (int i = 0; i < TASK_COLUMNS; i++)
        t->columns[i].name = i == TASK_ENTITY ? text_of(x->task, "entity_table") : name[i];
    t->columns[TASK_TIME].kind = RT_COL_TIME;
    t->columns[TASK_TIME].declared = RT_DECLARED_TIME;
    t->columns[TASK_ENTITY].declared = RT_DECLARED_INTEGER;
    t->columns[TASK_TARGET].kind = number ? RT_COL_FLOAT : RT_COL_CLASS;
    t->columns[TASK_TARGET].declared = number ? RT_DECLARED_REAL : RT_DECLARED_INTEGER;
    t->columns[TASK_SPLIT].kind = RT_COL_SPLIT;
    t->columns[TASK_SPLIT].declared = RT_DECLARED_TEXT;
    for (int k = 0; k < f->n_files; k++) {
        int entity = find_column(&f->has[k], raw[TASK_ENTITY]);
        if (entity < 0 || find_column(&f->has[k], raw[TASK_TIME]) < 0)
            return no_task(s, "a part lacks the column of the times, or of the entities", err);
        if (f->has[k].columns[entity].declared == RT_DECLARED_TEXT)
            t->columns[TASK_ENTITY].declared = RT_DECLARED_TEXT;
    }
    return GNNC_OK;
}

/* Makes the table of a task: rows with their times, entities and answers, from the files of the
 * three splits. */
static gnnc_status make_task(RtSource *s, RtError *err) {
    RelBench *x = s->state;
    const RtSourceTask *g = &x->how->source_task;
    const char *raw[] = {text_of(x->task, "time_col"), text_of(x->task, "entity_col"),
                         text_of(x->task, "target_col")};
    int entity = find_table(s, text_of(x->task, "entity_table"));
    gnnc_status st;
    if (entity < 0 || !raw[0] || !raw[1] || !raw[2])
        return no_task(s, "'entity_table', 'entity_col', 'time_col' or 'target_col' is missing",
                       err);
    RtSourceTable *t = &s->tables[s->n_tables++];
    Files *f = t->state = RT_NEW(&s->pool, Files);
    if (!f || !(t->name = rt_pool_strndup(&s->pool, g->table, strlen(g->table))))
        return no_memory(s, err);
    for (int k = 0; k < PARTS; k++) {
        f->file[k] = rt_pool_printf(&s->pool, "%s/tasks/%s/%s.parquet", x->dir, g->name, parts[k]);
        if (!f->file[k]) return no_memory(s, err);
        TRY(st, parquet_describe(&x->parquet, &s->pool, f->file[k], &f->has[k], err));
        f->n_files++;
        t->n_rows += f->has[k].n_rows;
    }
    TRY(st, task_columns(s, t, raw, err));
    RtReference r = {.from = {1, {TASK_ENTITY}}, .table = entity};
    if (!rt_source_refer(&s->pool, t, &r)) st = no_memory(s, err);
out:
    return st;
}

/* Reads the task that the user asks for, if the folder has one of that name. */
static gnnc_status read_task(RtSource *s, RtError *err) {
    RelBench *x = s->state;
    RtSourceTask *g = &x->how->source_task;
    const char *path =
        g->name ? rt_pool_printf(&s->pool, "%s/tasks/%s/manifest.yaml", x->dir, g->name) : NULL;
    gnnc_status st = GNNC_OK;
    if (!path || strchr(g->name, '/') || access(path, R_OK) != 0) return st;
    TRY(st, read_yaml(s, path, &x->task, err));
    TRY(st, read_time(s, "val_timestamp", &g->val_time, err));
    TRY(st, read_time(s, "test_timestamp", &g->test_time, err));
    const char *kind = text_of(x->task, "kind");
    g->found = true;
    st = kind && strcmp(kind, "autocomplete") == 0 ? make_column_query(s, err) : make_task(s, err);
out:
    return st;
}

/* ---- rows -------- */
static const char *raw_name(const RelBench *x, int column) {
    static const char *const key[] = {"time_col", "entity_col", "target_col"};
    return text_of(x->task, key[column]);
}

static bool is_task(const RtSourceTable *t) {
    return ((const Files *)t->state)->n_files > 1;
}

/* Begins to read file number x->part of the present table. */
static gnnc_status begin_part(RelBench *x, RtError *err) {
    const Files *f = x->t->state;
    int list[TASK_COLUMNS], n = 0;
    x->row = 0;
    x->left = is_task(x->t) ? f->has[x->part].n_rows : x->t->n_rows;
    if (!x->n) return GNNC_OK;
    if (!is_task(x->t)) return parquet_begin(&x->parquet, f->file[0], x->t, x->column, x->n, err);
    for (int i = 0; i < x->n; i++) {
        int c = x->column[i];
        int at = c == TASK_SPLIT ? -1 : find_column(&f->has[x->part], raw_name(x, c));
        x->at[i] = at < 0 ? -1 : n;
        if (at >= 0) list[n++] = at;
    }
    if (!n) return GNNC_OK;
    return parquet_begin(&x->parquet, f->file[x->part], &f->has[x->part], list, n, err);
}

/* Begins to read n columns of a table, from its first file. */
static gnnc_status begin_rows(RtSource *s, int table, const int *column, int n, RtError *err) {
    RelBench *x = s->state;
    x->t = &s->tables[table];
    x->column = column;
    x->n = n;
    x->part = 0;
    return begin_part(x, err);
}

/* Makes whole numbers of the keys, references and classes in a row, as keys that may be absent
 * are often stored as reals. */
static void to_whole(const RelBench *x, RtDatum *cell) {
    const RtKeyColumns *key = &x->t->key;
    for (int i = 0; i < x->n; i++) {
        const RtSourceColumn *c = &x->t->columns[x->column[i]];
        bool whole = c->refers || c->kind == RT_COL_CLASS || (key->n && key->at[0] == x->column[i]);
        RtDatum *v = &cell[i];
        if (!whole || v->type != RT_DATUM_REAL) continue;
        if (isnan(v->d))
            v->type = RT_DATUM_NULL;
        else if (v->d == floor(v->d) && fabs(v->d) < 0x1p53)
            *v = (RtDatum){.type = RT_DATUM_INTEGER, .i = (int64_t)v->d};
    }
}

/* Sets the cells of the next row of a task's table; the split is that of the file. *more is
 * false at the file's end. */
static gnnc_status next_task_row(RelBench *x, RtDatum *cell, bool *more, RtError *err) {
    RtDatum got[TASK_COLUMNS];
    gnnc_status st = GNNC_OK;
    *more = x->left > 0;
    if (x->parquet.reads) st = parquet_next(&x->parquet, got, more, err);
    if (st != GNNC_OK || !*more) return st;
    for (int i = 0; i < x->n; i++) {
        cell[i] = x->at[i] >= 0 ? got[x->at[i]] : (RtDatum){.type = RT_DATUM_NULL};
        if (x->column[i] != TASK_SPLIT) continue;
        cell[i] = (RtDatum){.type = RT_DATUM_TEXT, .s = parts[x->part]};
        cell[i].n = strlen(cell[i].s);
    }
    return GNNC_OK;
}

static gnnc_status too_few_rows(const RelBench *x, RtError *err) {
    return rt_fail(err, GNNC_E_FORMAT, "%s: ends %lld rows before its end",
                   ((const Files *)x->t->state)->file[x->part], (long long)x->left);
}

/* Sets the cells of the next row, over all files of the table, and *line to its number in the
 * file; *line is 0 when there is none. */
static gnnc_status next_row(RtSource *s, RtDatum *cell, int64_t *line, RtError *err) {
    RelBench *x = s->state;
    bool more = false;
    gnnc_status st = GNNC_OK;
    *line = 0;
    for (;;) {
        if (is_task(x->t))
            st = next_task_row(x, cell, &more, err);
        else if (x->n)
            st = parquet_next(&x->parquet, cell, &more, err);
        else
            more = x->left > 0;
        if (st != GNNC_OK || more) break;
        if (x->left) return too_few_rows(x, err);
        if (++x->part >= ((const Files *)x->t->state)->n_files) break;
        parquet_end(&x->parquet);
        if ((st = begin_part(x, err)) != GNNC_OK) break;
    }
    if (st != GNNC_OK || !more) return st;
    x->left--;
    to_whole(x, cell);
    *line = ++x->row;
    return GNNC_OK;
}

static void end_rows(RtSource *s) {
    RelBench *x = s->state;
    parquet_end(&x->parquet);
}

/* Stops the reader of Parquet files and frees all that was read. */
static void close_folder(RtSource *s) {
    RelBench *x = s->state;
    parquet_close(&x->parquet);
    rt_pool_free(&s->pool);
}

static const RtSourceForm form = {begin_rows, next_row, end_rows, close_folder, NULL};

/* Opens a folder of RelBench's format and reads what tables, keys and task it has. */
gnnc_status source_relbench_open(const RtAlloc *from, const char *input, RtImport *how,
                                 RtSource *out, RtError *err) {
    gnnc_status st;
    *out = (RtSource){.name = input, .declares = true};
    rt_pool_init(&out->pool, from);
    RelBench *x = RT_NEW(&out->pool, RelBench);
    if (!x) return rt_fail_nomem(err, input);
    x->dir = input;
    x->how = how;
    x->parquet.fd = -1;
    out->state = x;
    out->form = &form;
    TRY(st,
        read_yaml(out, rt_pool_printf(&out->pool, "%s/manifest.yaml", input), &x->manifest, err));
    TRY(st, parquet_open(&x->parquet, err));
    TRY(st, read_tables(out, err));
    st = read_task(out, err);
out:
    return st;
}
