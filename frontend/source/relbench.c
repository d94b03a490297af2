/* RelBench's folders: manifest.yaml says what the tables of db/ are, their keys and times, and
 * tasks/NAME/ has the rows to learn from, with their answers.  Rows are in the order of the files.
 * Where answers are lists, an element is a row. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "parquet.h"
#include "runtime/data/dates.h"
#include "runtime/import/import_build.h"
#include "runtime/import/import_table.h"
#include "source.h"

enum { PARTS = 3, TASK_TIME = 0, TASK_ENTITY, TASK_TARGET, TASK_SPLIT, TASK_ROW, TASK_COLUMNS };
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
    RtSourceTable *t;
    const int *column;
    int n, part;
    int at[TASK_COLUMNS]; /* of a task: where a column stands among those that are read, -1 */
    int64_t row, left;    /* row: of the file; left: those behind it */
    /* of a task with lists */
    RtDatum got[TASK_COLUMNS]; /* what was read of the row */
    int list;                  /* which of it is the list */
    int64_t item, n_items;     /* elements: the next one, and how many there are */
    int64_t n_null;            /* .. that are NULL, of all rows */
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

/* What the files of a task call a column; NULL: the manifest does not say. */
static const char *raw_name(const RelBench *x, int column) {
    static const char *const key[][2] = {[TASK_TIME] = {"time_col", "time_col"},
                                         [TASK_ENTITY] = {"entity_col", "src_entity_col"},
                                         [TASK_TARGET] = {"target_col", "dst_entity_col"}};
    bool link = x->how->source_task.links.top;
    return column <= TASK_TARGET ? text_of(x->task, key[column][link]) : NULL;
}

/* Says what the columns of a task's table are: time, entity, target and split; of links the row of
 * the file, too. */
static gnnc_status task_columns(RtSource *s, RtSourceTable *t, bool number, RtError *err) {
    RelBench *x = s->state;
    static const char *const name[] = {"time", "", "y", "split", "row"};
    bool link = x->how->source_task.links.top;
    Files *f = t->state;
    if (!rt_source_columns(&s->pool, t, link ? TASK_COLUMNS : TASK_ROW)) return no_memory(s, err);
    for (int i = 0; i < t->n_columns; i++) t->columns[i].name = name[i];
    t->columns[TASK_ENTITY].name =
        link ? raw_name(x, TASK_ENTITY) : text_of(x->task, "entity_table");
    t->columns[TASK_TIME].kind = RT_COL_TIME;
    t->columns[TASK_TIME].declared = RT_DECLARED_TIME;
    t->columns[TASK_ENTITY].declared = RT_DECLARED_INTEGER;
    t->columns[TASK_TARGET].kind = number ? RT_COL_FLOAT : RT_COL_CLASS;
    t->columns[TASK_TARGET].declared = number ? RT_DECLARED_REAL : RT_DECLARED_INTEGER;
    t->columns[TASK_SPLIT].kind = RT_COL_SPLIT;
    t->columns[TASK_SPLIT].declared = RT_DECLARED_TEXT;
    if (link) {
        t->columns[TASK_TARGET].name = raw_name(x, TASK_TARGET);
        t->columns[TASK_ROW].kind = RT_COL_ID;
        t->columns[TASK_ROW].declared = RT_DECLARED_INTEGER;
    }
    for (int k = 0; k < f->n_files; k++) {
        int entity = find_column(&f->has[k], raw_name(x, TASK_ENTITY));
        if (entity < 0 || find_column(&f->has[k], raw_name(x, TASK_TIME)) < 0)
            return no_task(s, "a part lacks the column of the times, or of the entities", err);
        if (f->has[k].columns[entity].declared == RT_DECLARED_TEXT)
            t->columns[TASK_ENTITY].declared = RT_DECLARED_TEXT;
    }
    return GNNC_OK;
}

/* Adds the table of a task with its files, and a reference to the table of the entities. */
static gnnc_status add_task_table(RtSource *s, bool number, int entity, RtSourceTable **out,
                                  RtError *err) {
    RelBench *x = s->state;
    const RtSourceTask *g = &x->how->source_task;
    gnnc_status st;
    RtSourceTable *t = *out = &s->tables[s->n_tables++];
    Files *f = t->state = RT_NEW(&s->pool, Files);
    if (!f || !(t->name = rt_pool_strndup(&s->pool, g->table, strlen(g->table))))
        return no_memory(s, err);
    if (x->how->source_task.links.top) t->sql = ""; /* its columns are its own, also with --like */
    for (int k = 0; k < PARTS; k++) {
        f->file[k] = rt_pool_printf(&s->pool, "%s/tasks/%s/%s.parquet", x->dir, g->name, parts[k]);
        if (!f->file[k]) return no_memory(s, err);
        TRY(st, parquet_describe(&x->parquet, &s->pool, f->file[k], &f->has[k], err));
        f->n_files++;
        t->n_rows += f->has[k].n_rows;
    }
    TRY(st, task_columns(s, t, number, err));
    RtReference r = {.from = {1, {TASK_ENTITY}}, .table = entity};
    if (!rt_source_refer(&s->pool, t, &r)) st = no_memory(s, err);
out:
    return st;
}

/* Makes the table of a task: rows with their times, entities and answers, from the files of the
 * three splits. */
static gnnc_status make_task(RtSource *s, RtError *err) {
    RelBench *x = s->state;
    RtSourceTable *t;
    int entity = find_table(s, text_of(x->task, "entity_table"));
    const char *type = text_of(x->task, "task_type");
    bool number = type && strcmp(type, "regression") == 0;
    bool class = type && (strcmp(type, "binary_classification") == 0 ||
                          strcmp(type, "multiclass_classification") == 0);
    if (!number && !class)
        return no_task(s,
                       "'task_type' is none of regression, binary_classification, "
                       "multiclass_classification and link_prediction",
                       err);
    if (entity < 0 || !raw_name(x, TASK_TIME) || !raw_name(x, TASK_ENTITY) ||
        !raw_name(x, TASK_TARGET))
        return no_task(s, "'entity_table', 'entity_col', 'time_col' or 'target_col' is missing",
                       err);
    return add_task_table(s, number, entity, &t, err);
}

/* ---- tasks whose answers are lists -------- */
/* Seconds of "365 days", "12 hours 00:00:00"; 0: the text says none. */
static double seconds_of(const char *text) {
    static const struct {
        const char *unit;
        double seconds;
    } known[] = {{"second", 1}, {"minute", 60}, {"hour", 3600}, {"day", 86400}, {"week", 604800}};
    char *end = NULL;
    double n = text ? strtod(text, &end) : 0;
    if (!text || end == text || !(n > 0) || !(n < 1e6)) return 0;
    while (*end == ' ') end++;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t len = strlen(known[i].unit);
        if (strncmp(end, known[i].unit, len) != 0) continue;
        end += len;
        end += *end == 's';
        return *end && strcmp(end, " 00:00:00") != 0 ? 0 : n * known[i].seconds;
    }
    return 0;
}

/* Reads what the manifest says of a task whose rows are lists: of what, how many, how far. */
static gnnc_status read_links(RtSource *s, RtError *err) {
    RelBench *x = s->state;
    RtSourceTask *g = &x->how->source_task;
    const char *top = text_of(x->task, "eval_k"), *sql = text_of(x->task, "sql");
    char *end = NULL;
    long n = top ? strtol(top, &end, 10) : 0;
    if (n < 1 || n > 1000 || *end) return no_task(s, "'eval_k' is no number of 1 to 1000", err);
    g->links.top = (int)n;
    if (!(g->links.window = seconds_of(text_of(x->task, "timedelta"))))
        return no_task(s, "'timedelta' is no time such as '365 days'", err);
    const char *time = raw_name(x, TASK_TIME), *entity = raw_name(x, TASK_ENTITY);
    const char *item = raw_name(x, TASK_TARGET);
    if (!time || !entity || !item)
        return no_task(s, "'time_col', 'src_entity_col' or 'dst_entity_col' is missing", err);
    if (strcmp(time, item) == 0 || strcmp(entity, item) == 0 || strcmp(time, entity) == 0)
        return no_task(s, "'time_col', 'src_entity_col' and 'dst_entity_col' are three columns",
                       err);
    int a = snprintf(g->links.entity, sizeof g->links.entity, "%s", entity);
    int b = snprintf(g->links.item, sizeof g->links.item, "%s", item);
    if (a >= (int)sizeof g->links.entity || b >= (int)sizeof g->links.item)
        return no_task(s, "the name of a column is too long", err);
    snprintf(g->links.sql, sizeof g->links.sql, "%s", sql ? sql : "");
    return GNNC_OK;
}

/* Makes the table of a task whose answers are lists of rows of another table: a row for each of
 * their elements. */
static gnnc_status make_link_task(RtSource *s, RtError *err) {
    RelBench *x = s->state;
    RtSourceTable *t;
    gnnc_status st;
    int from = find_table(s, text_of(x->task, "src_entity_table"));
    int to = find_table(s, text_of(x->task, "dst_entity_table"));
    if (from < 0 || to < 0)
        return no_task(s, "'src_entity_table' or 'dst_entity_table' is no table", err);
    TRY(st, read_links(s, err));
    TRY(st, add_task_table(s, false, from, &t, err));
    const Files *f = t->state;
    const char *list = raw_name(x, TASK_TARGET);
    t->n_rows = 0;
    for (int k = 0; k < f->n_files; k++) {
        int64_t n = 0;
        if (find_column(&f->has[k], list) < 0)
            return rt_fail(err, GNNC_E_FORMAT, "%s: there is no column '%.80s', the answers",
                           f->file[k], list);
        TRY(st, parquet_count_items(&x->parquet, f->file[k], list, &n, err));
        t->n_rows = n > INT64_MAX - t->n_rows ? INT64_MAX : t->n_rows + n;
    }
    RtReference r = {.from = {1, {TASK_TARGET}}, .table = to};
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
    const char *kind = text_of(x->task, "kind"), *type = text_of(x->task, "task_type");
    g->found = true;
    if (kind && strcmp(kind, "autocomplete") == 0)
        st = make_column_query(s, err);
    else
        st = type && strcmp(type, "link_prediction") == 0 ? make_link_task(s, err)
                                                          : make_task(s, err);
out:
    return st;
}

/* ---- rows -------- */
static bool is_task(const RtSourceTable *t) {
    return ((const Files *)t->state)->n_files > 1;
}

static bool has_lists(const RelBench *x) {
    return is_task(x->t) && x->how->source_task.links.top;
}

/* Begins to read file number x->part of the present table. */
static gnnc_status begin_part(RelBench *x, RtError *err) {
    const Files *f = x->t->state;
    int list[TASK_COLUMNS], n = 0;
    x->row = x->item = x->n_items = 0;
    if (is_task(x->t)) x->t->name = f->file[x->part]; /* rows are told by their file */
    x->left = is_task(x->t) ? f->has[x->part].n_rows : x->t->n_rows;
    if (!x->n) return GNNC_OK;
    if (!is_task(x->t))
        return parquet_begin(&x->parquet, f->file[0], x->t, x->column, x->n, NULL, err);
    for (int i = 0; i < x->n; i++) {
        int c = x->column[i];
        int at = find_column(&f->has[x->part], raw_name(x, c));
        x->at[i] = at < 0 ? -1 : n;
        if (c == TASK_TARGET) x->list = x->at[i];
        if (at >= 0) list[n++] = at;
    }
    if (!n) return GNNC_OK;
    return parquet_begin(&x->parquet, f->file[x->part], &f->has[x->part], list, n,
                         has_lists(x) ? raw_name(x, TASK_TARGET) : NULL, err);
}

/* Begins to read n columns of a table, from its first file. */
static gnnc_status begin_rows(RtSource *s, int table, const int *column, int n, RtError *err) {
    RelBench *x = s->state;
    x->t = &s->tables[table];
    x->column = column;
    x->n = n;
    x->part = 0;
    x->list = -1;
    x->n_null = 0;
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

/* Reads the next row of the present file of a task into x->got. *more is false at the file's end.
 */
static gnnc_status next_file_row(RelBench *x, bool *more, RtError *err) {
    gnnc_status st = GNNC_OK;
    *more = x->left > 0;
    if (x->parquet.reads) st = parquet_next(&x->parquet, x->got, more, err);
    if (st != GNNC_OK || !*more) return st;
    x->left--;
    x->row++;
    return GNNC_OK;
}

/* Moves on to the next element of a list that is not NULL, and puts it in the list's place. */
static gnnc_status next_item(RelBench *x, bool *more, RtError *err) {
    gnnc_status st = GNNC_OK;
    for (*more = true; st == GNNC_OK && *more;) {
        if (x->item < x->n_items) {
            x->got[x->list] = arrow_item(&x->parquet.rows, x->list, x->item++);
            if (x->got[x->list].type != RT_DATUM_NULL) break;
            x->n_null++;
        } else if ((st = next_file_row(x, more, err)) == GNNC_OK && *more) {
            const RtDatum *list = &x->got[x->list];
            x->item = 0;
            x->n_items = list->type == RT_DATUM_NULL ? 0 : list->i;
        }
    }
    return st;
}

/* Sets the cells of the next row of a task's table; the split is that of the file. *more is
 * false at the file's end. */
static gnnc_status next_task_row(RelBench *x, RtDatum *cell, bool *more, RtError *err) {
    gnnc_status st =
        has_lists(x) && x->list >= 0 ? next_item(x, more, err) : next_file_row(x, more, err);
    if (st != GNNC_OK || !*more) return st;
    for (int i = 0; i < x->n; i++) {
        cell[i] = x->at[i] >= 0 ? x->got[x->at[i]] : (RtDatum){.type = RT_DATUM_NULL};
        if (x->column[i] == TASK_ROW) cell[i] = (RtDatum){.type = RT_DATUM_INTEGER, .i = x->row};
        if (x->column[i] != TASK_SPLIT) continue;
        cell[i] = (RtDatum){.type = RT_DATUM_TEXT, .s = parts[x->part]};
        cell[i].n = strlen(cell[i].s);
    }
    return GNNC_OK;
}

/* Tells of elements that were left out, when all rows were read. */
static void warn_of_nulls(const RelBench *x) {
    if (x->n_null)
        rt_import_warn(x->how, "%s: column '%s': %lld elements of lists are NULL and left out",
                       x->how->source_task.name, raw_name(x, TASK_TARGET), (long long)x->n_null);
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
    if (st == GNNC_OK && !more) warn_of_nulls(x);
    if (st != GNNC_OK || !more) return st;
    if (!is_task(x->t)) x->left--, x->row++;
    to_whole(x, cell);
    *line = x->row;
    return GNNC_OK;
}

static void end_rows(RtSource *s) {
    RelBench *x = s->state;
    if (is_task(x->t)) x->t->name = x->how->source_task.table;
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
