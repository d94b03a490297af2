/* Several CSV tables that refer to each other: every row is a node, every reference an edge
 * from the row to the row it names.  A mapping says what a column is, a line each:
 *     races.raceId     key                 other tables name rows by it
 *     results.raceId   -> races            edge type results__raceId
 *     results.date     time                or float, cat, class, id, split
 *     races.url        drop
 * Of columns that it does not name `id`, `<table>_id` and `<table>Id` are keys, and such a column
 * of another table refers to it: in any case, and of the table's name in the singular, too. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "import_build.h"
#include "import_folder.h"
#include "import_table.h"

enum { MOST_TABLES = 256, REFERS = -3 };

typedef struct {
    const char *name; /* of the node type */
    RtCsv csv;
    int *kind;    /* [columns] RtFieldsWanted.kind, or REFERS */
    RtWish *wish; /* [columns] */
    int *target;  /* [columns] the table that a column REFERS to */
    int key;      /* column, -1 = none */
    RtNames keys; /* of the good rows, where there is a key */
    int64_t *row; /* [good rows] of the csv */
    int64_t n;    /* good rows */
    RtTable *node;
} Table;

typedef struct {
    RtBuild b;
    RtPool pool;
    RtImport *how;
    RtError *err;
    Table *table;
    int n;
} Tables;

static void on_bad_row(void *user, const char *file, int64_t line, const char *what) {
    rt_import_bad_row(((Tables *)user)->how, file, line, what);
}

static gnnc_status no_memory(Tables *x) {
    return rt_fail_nomem(x->err, "import");
}

/* ---- reading -------------------------------------------------------------------- */
static gnnc_status read_table(Tables *x, const RtFolder *f, const char *file, size_t n_stem) {
    RtBytes text;
    bool found;
    Table *t = &x->table[x->n];
    gnnc_status st;
    if (x->n == MOST_TABLES) return rt_fail(x->err, GNNC_E_LIMIT, "%s: too many tables", f->name);
    x->n++;
    t->key = -1;
    t->name = rt_identifier(&x->pool, file, n_stem);
    if (!t->name) return no_memory(x);
    char *plain = rt_pool_printf(&x->pool, "%.*s.csv", (int)n_stem, file);
    if (!plain) return no_memory(x);
    TRY(st, rt_folder_text(&x->pool, f, plain, &text, &found, x->err));
    if (!found) return rt_fail(x->err, GNNC_E_MISSING, "%s: %s: no such file", f->name, plain);
    RtHeader header = rt_import_header(x->how, plain);
    TRY(st, rt_csv_parse(&x->pool, text, plain, header, on_bad_row, x, &t->csv, x->err));
    if (t->csv.headerless && header != RT_HEADER_NO)
        return rt_fail(
            x->err, GNNC_E_FORMAT,
            "%s: row 1: a header with column names is expected, not numbers; --header %s=no "
            "calls them column_1, column_2, .., for --map",
            plain, plain);
    t->kind = RT_NEWN(&x->pool, int, t->csv.n_columns);
    t->target = RT_NEWN(&x->pool, int, t->csv.n_columns);
    t->wish = RT_NEWN(&x->pool, RtWish, t->csv.n_columns);
    if (!t->kind || !t->target || !t->wish) return no_memory(x);
    for (int i = 0; i < t->csv.n_columns; i++) t->kind[i] = RT_KIND_GUESS;
out:
    return st;
}

static gnnc_status read_folder(Tables *x, const RtFolder *f) {
    const char **names;
    int n;
    gnnc_status st = rt_folder_list(&x->pool, f, "", &names, &n, x->err);
    for (int i = 0; i < n && st == GNNC_OK; i++) {
        const char *dot = strrchr(names[i], '.');
        if (dot && strcmp(dot, ".gz") == 0 && dot - names[i] > 4) dot -= 4;
        bool csv = dot && (strcmp(dot, ".csv") == 0 || strcmp(dot, ".csv.gz") == 0);
        if (!csv || dot == names[i]) continue;
        st = read_table(x, f, names[i], (size_t)(dot - names[i]));
    }
    if (st == GNNC_OK && x->n == 0)
        return rt_fail(x->err, GNNC_E_MISSING,
                       "%s: nothing in it is known: neither metadata.yaml, raw/, train.txt, *.npz "
                       "nor *.csv",
                       f->name);
    return st;
}

/* ---- what columns are -------------------------------------------------------------- */
static int find_table(const Tables *x, const char *name, size_t n) {
    for (int i = 0; i < x->n; i++)
        if (strlen(x->table[i].name) == n && memcmp(x->table[i].name, name, n) == 0) return i;
    return -1;
}

/* "a column" of a header "a column:kind". */
static int find_column(const Table *t, const char *name, size_t n) {
    for (int i = 0; i < t->csv.n_columns; i++) {
        const char *h = t->csv.header[i];
        if (strcspn(h, ":") == n && memcmp(h, name, n) == 0) return i;
    }
    return -1;
}

static size_t id_stem(const char *header) {
    bool sure;
    return rt_id_stem(header, strcspn(header, ":"), &sure);
}

/* Is the stem the table's name, or the singular of it: race of races, box of boxes, category of
 * categories?  In any case of the letters. */
static bool names_table(const char *stem, size_t n, const char *table) {
    size_t k = strlen(table);
    if (!n || k < n || k > n + 2) return false;
    bool y = k == n + 2 && (stem[n - 1] == 'y' || stem[n - 1] == 'Y');
    if (y) return strncasecmp(stem, table, n - 1) == 0 && strcasecmp(table + n - 1, "ies") == 0;
    const char *end = table + n;
    bool plural = strcasecmp(end, "s") == 0 || strcasecmp(end, "es") == 0;
    return (k == n || plural) && strncasecmp(stem, table, n) == 0;
}

static int find_id(const Table *t) {
    for (int c = 0; c < t->csv.n_columns; c++) {
        const char *h = t->csv.header[c];
        if (strcspn(h, ":") == 2 && strncasecmp(h, "id", 2) == 0) return c;
    }
    return -1;
}

static void guess_key(Table *t) {
    int id = find_id(t);
    if (id >= 0 && t->kind[id] == RT_KIND_GUESS) t->key = id;
    for (int c = 0; c < t->csv.n_columns && t->key < 0; c++)
        if (t->kind[c] == RT_KIND_GUESS &&
            names_table(t->csv.header[c], id_stem(t->csv.header[c]), t->name))
            t->key = c;
    if (t->key >= 0) t->kind[t->key] = RT_KIND_SKIP;
}

/* The table that a column's name leads to: spelt alike if there is such one, else in any case if
 * there is one only; -1: none, -2: several. */
static int table_of_id(const Tables *x, const char *header) {
    int found = -1;
    size_t n = id_stem(header);
    for (int j = 0; j < x->n; j++) {
        if (x->table[j].key < 0 || !names_table(header, n, x->table[j].name)) continue;
        if (strncmp(header, x->table[j].name, n) == 0) return j;
        found = found == -1 ? j : -2;
    }
    return found;
}

static void warn_of_lone_id(const Tables *x, const Table *t, const char *header, int to) {
    int n = (int)strcspn(header, ":");
    if (to == -2)
        rt_import_warn(x->how,
                       "%s: column '%.*s' may refer to several tables: --map FILE says which",
                       t->csv.name, n, header);
    else if (rt_id_stem(header, (size_t)n, &(bool){false}))
        rt_import_warn(x->how,
                       "%s: column '%.*s' looks like a reference, and no table has such a key: it "
                       "gives no edges; --map FILE with '%s.%.*s -> TABLE' makes them",
                       t->csv.name, n, header, t->name, n, header);
}

static bool is_key_like(const Table *t, int c) {
    char name[64];
    size_t n = strcspn(t->csv.header[c], ":");
    if (n >= sizeof name || t->csv.header[c][n]) return false;
    memcpy(name, t->csv.header[c], n);
    name[n] = 0;
    return rt_is_id(name) && rt_column_whole(&t->csv, c);
}

static void guess_references(const Tables *x, Table *t) {
    for (int c = 0; c < t->csv.n_columns; c++) {
        const char *h = t->csv.header[c];
        if (t->kind[c] != RT_KIND_GUESS) continue;
        int to = table_of_id(x, h);
        if (to >= 0) {
            t->kind[c] = REFERS;
            t->target[c] = to;
        } else if (is_key_like(t, c))
            warn_of_lone_id(x, t, h, to);
    }
}

/* Of what no rule names; a key that a rule names is the table's. */
static void guess_keys(Tables *x) {
    for (int i = 0; i < x->n; i++)
        if (x->table[i].key < 0) guess_key(&x->table[i]);
    for (int i = 0; i < x->n; i++) guess_references(x, &x->table[i]);
}

static const char *or_no_memory(const char *text) {
    return text ? text : "out of memory";
}

static const char *listed(Tables *x, const char *list, const char *name, size_t n) {
    return or_no_memory(
        rt_pool_printf(&x->pool, "%s%s%.*s", list, *list ? ", " : "", (int)n, name));
}

static const char *no_table(Tables *x, const char *name, size_t n) {
    const char *list = "";
    for (int i = 0; i < x->n; i++)
        list = listed(x, list, x->table[i].name, strlen(x->table[i].name));
    return or_no_memory(
        rt_pool_printf(&x->pool, "there is no table '%.*s'; there are %s", (int)n, name, list));
}

static const char *no_column(Tables *x, const Table *t, const char *name, size_t n) {
    const char *list = "";
    for (int i = 0; i < t->csv.n_columns; i++)
        list = listed(x, list, t->csv.header[i], strcspn(t->csv.header[i], ":"));
    return or_no_memory(rt_pool_printf(&x->pool, "%s has no column '%.*s'; it has %s", t->name,
                                       (int)n, name, list));
}

/* One line of the mapping; NULL or what is wrong with it. */
static const char *read_rule(void *user, const char *s) {
    Tables *x = user;
    size_t n_table = strcspn(s, ". \t"), n_column;
    if (s[n_table] != '.') return "'table.column what' is expected";
    int i = find_table(x, s, n_table);
    if (i < 0) return no_table(x, s, n_table);
    Table *t = &x->table[i];
    s += n_table + 1;
    n_column = strcspn(s, " \t");
    int c = find_column(t, s, n_column);
    if (c < 0) return no_column(x, t, s, n_column);
    s += n_column + strspn(s + n_column, " \t");
    if (strncmp(s, "->", 2) == 0) {
        s += 2 + strspn(s + 2, " \t");
        t->target[c] = find_table(x, s, strlen(s));
        if (t->target[c] < 0) return no_table(x, s, strlen(s));
        t->kind[c] = REFERS;
    } else if (strcmp(s, "key") == 0) {
        if (t->key >= 0 && t->key != c) return "the table has a key already";
        t->key = c;
        t->kind[c] = RT_KIND_SKIP;
    } else {
        return rt_map_column(&x->pool, s, &t->kind[c], &t->wish[c]);
    }
    return NULL;
}

static gnnc_status read_mapping(Tables *x, const RtNamedBytes *map) {
    gnnc_status st = rt_map_read(&x->pool, map, read_rule, x, x->err);
    if (st == GNNC_OK) guess_keys(x);
    for (int i = 0; i < x->n && st == GNNC_OK; i++)
        for (int c = 0; c < x->table[i].csv.n_columns; c++) {
            const Table *t = &x->table[i];
            if (t->kind[c] != REFERS || x->table[t->target[c]].key >= 0) continue;
            return rt_fail(x->err, GNNC_E_MISSING, "%s: %s.%s refers to %s, which has no key",
                           map->name, t->name, t->csv.header[c], x->table[t->target[c]].name);
        }
    return st;
}

/* ---- rows ----------------------------------------------------------------------------- */
static gnnc_status store_rows(Tables *x, Table *t, RtFields *f) {
    RtKeys seen;
    char repeated[120];
    t->row = RT_NEWN(&x->pool, int64_t, t->csv.n_rows);
    if (!t->row || !rt_names_new(&x->pool, &t->keys, t->csv.n_rows) ||
        !rt_keys_new(&x->pool, &seen, t->csv.n_rows))
        return no_memory(x);
    for (int64_t r = 0; r < t->csv.n_rows; r++) {
        const char *key = t->key >= 0 ? t->csv.cell[r * t->csv.n_columns + t->key] : NULL, *what;
        int64_t first = key && *key ? rt_keys_take(&seen, key, t->csv.line[r]) : 0;
        if (first)
            snprintf(repeated, sizeof repeated, "its key %s is repeated: row %lld has it",
                     rt_cell_quoted(key).s, (long long)first);
        if (key && !*key)
            what = "no key";
        else
            what = first ? repeated : rt_fields_store(f, &t->csv, r, t->n);
        if (what) {
            on_bad_row(x, t->csv.name, t->csv.line[r], what);
            continue;
        }
        if (key) rt_names_add(&t->keys, key);
        t->row[t->n++] = r;
    }
    return GNNC_OK;
}

/* The keys as a column where all are whole numbers, else as names: lets results be joined back. */
static gnnc_status add_keys(Tables *x, Table *t) {
    const int64_t *v;
    gnnc_status st = rt_keep_keys(&x->b.d->pool, t->node, &t->keys, &v, x->err);
    if (st != GNNC_OK || !v) return st;
    const char *h = t->csv.header[t->key];
    char *name = rt_identifier(&x->pool, h, strcspn(h, ":"));
    if (!name) return no_memory(x);
    RtColumn *c = rt_build_column(&x->b, t->node, RT_COL_ID, name);
    if (!c) return GNNC_E_FORMAT;
    c->i64 = v;
    c->why = "key of the table";
    c->encoder = rt_key_encoder(&x->b.d->pool, c->name);
    return c->encoder ? GNNC_OK : no_memory(x);
}

static gnnc_status add_nodes(Tables *x, Table *t) {
    RtPool *keep = &x->b.d->pool;
    RtFields f;
    int n;
    gnnc_status st;
    int *kind = RT_NEWN(&x->pool, int, t->csv.n_columns);
    if (!kind) return no_memory(x);
    for (int i = 0; i < t->csv.n_columns; i++)
        kind[i] = t->kind[i] == REFERS ? RT_KIND_SKIP : t->kind[i];
    RtFieldsWanted wanted = {t->name, x->how, kind, t->wish};
    TRY(st, rt_fields_make(keep, &x->pool, &t->csv, &wanted, &f, x->err));
    TRY(st, store_rows(x, t, &f));
    TRY(st, rt_build_nodes(&x->b, t->name, t->n, &t->node));
    RtColumn *columns = rt_fields_columns(keep, &f, t->n, &n);
    if (!columns) return no_memory(x);
    for (int i = 0; i < n; i++) {
        RtColumn *c = rt_build_column(&x->b, t->node, columns[i].kind, columns[i].name);
        if (!c) return GNNC_E_FORMAT;
        const char *name = c->name;
        *c = columns[i];
        c->name = name;
    }
    if (t->key >= 0) st = add_keys(x, t);
out:
    return st;
}

/* Row of a key; where it is not spelt so, "12.0" is 12, as pandas writes keys that may be absent.
 * -1: no such row. */
static int32_t find_row(const RtNames *keys, const char *key) {
    char plain[32];
    int64_t v;
    int32_t row = rt_names_find(keys, key);
    if (row >= 0 || !rt_cell_whole(key, &v)) return row;
    snprintf(plain, sizeof plain, "%lld", (long long)v);
    return rt_names_find(keys, plain);
}

/* What a reference's edges are, for the report. */
static const char *reference_why(Tables *x, const char *header, int64_t n_absent) {
    int n = (int)strcspn(header, ":");
    if (!n_absent) return rt_pool_printf(&x->b.d->pool, "column '%.*s'", n, header);
    return rt_pool_printf(&x->b.d->pool, "column '%.*s', absent in %lld rows", n, header,
                          (long long)n_absent);
}

/* Empty references are none; one that names no row is a bad row, though its node stays. */
static gnnc_status add_reference(Tables *x, const Table *t, int c) {
    const Table *to = &x->table[t->target[c]];
    int32_t *src = RT_NEWN(&x->b.d->pool, int32_t, t->n);
    int32_t *dst = RT_NEWN(&x->b.d->pool, int32_t, t->n);
    int64_t n = 0, n_absent = 0;
    RtTable *edges;
    const char *h = t->csv.header[c];
    char *name = rt_pool_printf(&x->pool, "%.28s__%.*s", t->name,
                                (int)(strcspn(h, ":") < 26 ? strcspn(h, ":") : 26), h);
    if (!src || !dst || !name) return no_memory(x);
    for (int64_t i = 0; i < t->n; i++) {
        const char *key = t->csv.cell[t->row[i] * t->csv.n_columns + c];
        int32_t row = find_row(&to->keys, key);
        if (row >= 0) {
            src[n] = (int32_t)i;
            dst[n++] = row;
        } else if (rt_cell_absent(key)) {
            n_absent++;
        } else {
            char what[160];
            snprintf(what, sizeof what, "column '%.40s': '%.40s' is no key of %.40s", h, key,
                     to->name);
            on_bad_row(x, t->csv.name, t->csv.line[t->row[i]], what);
        }
    }
    gnnc_status st = rt_build_edges(&x->b, name, t->node, to->node, n, src, dst, &edges);
    if (st == GNNC_OK && !(edges->why = reference_why(x, h, n_absent))) st = no_memory(x);
    return st;
}

/* A table of edges beside others has rows that are nodes, unless its ends are references. */
static void warn_of_edges(const Tables *x, const RtFolder *f, const Table *t) {
    int src = find_column(t, "src", 3), dst = find_column(t, "dst", 3);
    if (src < 0 || dst < 0 || t->kind[src] != RT_KIND_GUESS || t->kind[dst] != RT_KIND_GUESS)
        return;
    rt_import_warn(
        x->how,
        "%s: its rows became nodes, 'src' and 'dst' features: edges are gnnc import "
        "[%s/NODES.csv] %s/%s, or --map FILE with '%s.src -> TABLE' and '%s.dst -> TABLE'",
        t->csv.name, f->name, f->name, t->csv.name, t->name, t->name);
}

static gnnc_status read_all(Tables *x, const RtAlloc *from, const RtFolder *f,
                            const RtNamedBytes *map) {
    int n_refs = 0;
    gnnc_status st;
    x->table = RT_NEWN(&x->pool, Table, MOST_TABLES);
    if (!x->table) return no_memory(x);
    TRY(st, read_folder(x, f));
    if (map)
        TRY(st, read_mapping(x, map));
    else
        guess_keys(x);
    for (int i = 0; i < x->n; i++)
        for (int c = 0; c < x->table[i].csv.n_columns; c++) n_refs += x->table[i].kind[c] == REFERS;
    TRY(st, rt_build_begin(&x->b, from, f->name, x->how, x->n, n_refs, 0, x->err));
    for (int i = 0; i < x->n; i++) TRY(st, add_nodes(x, &x->table[i]));
    for (int i = 0; i < x->n; i++)
        for (int c = 0; c < x->table[i].csv.n_columns; c++)
            if (x->table[i].kind[c] == REFERS) TRY(st, add_reference(x, &x->table[i], c));
    for (int i = 0; i < x->n; i++) warn_of_edges(x, f, &x->table[i]);
    if (!n_refs)
        rt_import_warn(x->how,
                       "%s: no table refers to another, so there are no edges; --map FILE says "
                       "which columns are keys and references",
                       f->name);
    st = rt_build_finish(&x->b);
out:
    return st;
}

gnnc_status rt_import_tables(const RtAlloc *from, const RtFolder *f, const RtNamedBytes *mapping,
                             RtImport *how, RtDataset **out, RtError *err) {
    Tables x = {.how = how, .err = err};
    rt_pool_init(&x.pool, from);
    gnnc_status st = read_all(&x, from, f, mapping);
    return rt_build_end(&x.b, &x.pool, st, out);
}
