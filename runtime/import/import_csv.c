/* nodes.csv and edges.csv, tables with headers (docs/data.md):
 *
 *     id,age,city:cat,x.0,x.1,y,split          src,dst,weight,when:time
 *     ann,31,Rome,0.5,1,2,train                ann,bob,0.5,2020-01-01 */
#include "import_build.h"
#include "import_pairs.h"
#include "import_table.h"
#include "runtime/data/number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A line of --map: what a column of a table is. */
typedef struct Rule {
    struct Rule *next;
    const char *column; /* "vertex.age" */
    int kind;
    RtWish wish;
    bool used;
} Rule;

typedef struct {
    RtPool scratch; /* texts, cells and dictionaries */
    RtImport *how;
    RtDataset *d;
    RtError *err;
    RtNames
        ids[2]; /* of sources and destinations; where they are of one type, the first is of both */
    bool two_types; /* --node user,item */
    Rule *rules;
    char what[120]; /* is wrong with a row */
} Csv;

static void on_bad_row(void *user, const char *file, int64_t line, const char *what) {
    rt_import_bad_row(((Csv *)user)->how, file, line, what);
}

static const char *const ID[] = {"id", "node", NULL};
static const char *const SRC[] = {"src", "source", "from", NULL};
static const char *const DST[] = {"dst", "target", "to", NULL};

static bool is_listed(const char *const *list, const char *name) {
    while (*list && strcmp(*list, name) != 0) list++;
    return *list;
}

/* The column is told where it was taken for want of a better name. */
static const char *bad_end(Csv *c, const char *end, const char *id, const char *column) {
    bool named = is_listed(SRC, column) || is_listed(DST, column);
    snprintf(c->what, sizeof c->what, *id ? "its %s %s is no node%s%.40s%s" : "it has no %s", end,
             rt_cell_quoted(id).s, named ? "" : " (column '", named ? "" : column,
             named ? "" : "')");
    return c->what;
}

/* Why a row is bad: its id was there before, in row `first`. */
static const char *repeated(Csv *c, const char *id, int64_t first) {
    snprintf(c->what, sizeof c->what, "the id %s is repeated: row %lld has it",
             rt_cell_quoted(id).s, (long long)first);
    return c->what;
}

static gnnc_status no_memory(Csv *c) {
    return rt_fail_nomem(c->err, "import");
}

/* The first column that has one of the names, in the order of the list; else `otherwise`. */
static int find_column(const RtCsv *t, const char *const *names, int otherwise) {
    for (; *names; names++)
        for (int i = 0; i < t->n_columns; i++)
            if (strcmp(t->header[i], *names) == 0) return i;
    return otherwise;
}

/* ---- what columns are --------------------------------------------------------------- */
/* Reads a line of the mapping. NULL: it is good; else why not. */
static const char *read_rule(void *user, const char *line) {
    Csv *c = user;
    size_t n = strcspn(line, " \t");
    Rule *r = RT_NEW(&c->scratch, Rule);
    const char *column = rt_pool_strndup(&c->scratch, line, n);
    if (!r || !column) return "out of memory";
    if (!strchr(column, '.')) return "'table.column what' is expected";
    *r = (Rule){.next = c->rules, .column = column};
    c->rules = r;
    const char *what =
        rt_map_column(&c->scratch, line + n + strspn(line + n, " \t"), &r->kind, &r->wish);
    if (what) return what;
    size_t dot = strcspn(column, ".");
    const char *table = rt_pool_strndup(&c->scratch, column, dot);
    if (!table) return rt_map_no_memory;
    return rt_map_row_time(&c->scratch, c->how, &r->wish, table, column + dot + 1, n - dot - 1);
}

/* Does a rule name this column, as the header spells it or as a model does? */
static bool names_column(Csv *c, const char *rule, const char *table, const char *header) {
    size_t n = strlen(table), k = strcspn(header, ":");
    if (strncmp(rule, table, n) != 0 || rule[n] != '.') return false;
    const char *column = rule + n + 1, *id = rt_identifier(&c->scratch, header, k);
    return (strlen(column) == k && memcmp(column, header, k) == 0) || (id && !strcmp(id, column));
}

/* How the columns of a table are read, of which a and b (-1 = none) are keys. */
static gnnc_status want_fields(Csv *c, const RtCsv *t, const char *table, int a, int b,
                               RtFieldsWanted *to) {
    int *kind = RT_NEWN(&c->scratch, int, t->n_columns);
    RtWish *wish = RT_NEWN(&c->scratch, RtWish, t->n_columns);
    if (!kind || !wish) return no_memory(c);
    for (int i = 0; i < t->n_columns; i++) {
        kind[i] = i == a || i == b ? RT_KIND_SKIP : RT_KIND_GUESS;
        for (Rule *r = c->rules; r && kind[i] == RT_KIND_GUESS; r = r->next) {
            if (!names_column(c, r->column, table, t->header[i])) continue;
            r->used = true;
            kind[i] = r->kind;
            wish[i] = r->wish;
        }
    }
    *to = (RtFieldsWanted){table, c->how, kind, wish};
    return GNNC_OK;
}

/* Was each rule of --map used? One that was not names a column that is not there. */
static gnnc_status check_rules(Csv *c) {
    for (const Rule *r = c->rules; r; r = r->next)
        if (!r->used)
            return rt_fail(c->err, GNNC_E_MISSING, "%s: there is no column '%s' beside the keys",
                           c->how->map->name, r->column);
    return GNNC_OK;
}

/* Columns that only a table of nodes has, and none that names an end of an edge. */
static bool looks_like_nodes(const RtCsv *t) {
    static const char *const other[] = {"split", "y", "label", "class", "x.0", NULL};
    bool ends = find_column(t, SRC, -1) >= 0 || find_column(t, DST, -1) >= 0;
    return !ends && (find_column(t, ID, -1) >= 0 || find_column(t, other, -1) >= 0);
}

static bool looks_like_edges(const RtCsv *t) {
    return find_column(t, SRC, -1) >= 0 && find_column(t, DST, -1) >= 0 &&
           find_column(t, ID, -1) < 0;
}

static gnnc_status parse(Csv *c, const RtNamedBytes *file, RtCsv *t) {
    return rt_csv_parse(&c->scratch, file->text, file->name, rt_import_header(c->how, file->name),
                        on_bad_row, c, t, c->err);
}

/* ---- nodes ---------------------------------------------------------------------- */
/* Adds the ids of nodes as a column. */
static gnnc_status add_id_column(Csv *c, RtTable *t, const int64_t *v, bool headerless) {
    RtColumn *id = &t->columns[t->n_columns++];
    *id = (RtColumn){.name = "id",
                     .kind = RT_COL_ID,
                     .n_rows = t->count,
                     .rank = 1,
                     .shape = {t->count},
                     .i64 = v};
    id->why = headerless ? "names the nodes; no header: row 1 is one" : "names the nodes";
    id->encoder = rt_key_encoder(&c->d->pool, "id");
    return id->encoder ? GNNC_OK : no_memory(c);
}

/* The ids as a column where all are whole numbers, else as names: lets results be joined back. */
static gnnc_status add_ids(Csv *c, RtTable *t, const RtNames *ids, bool headerless) {
    const int64_t *v;
    gnnc_status st = rt_keep_keys(&c->d->pool, t, ids, &v, c->err);
    if (st != GNNC_OK || !v || rt_table_column(t, "id")) return st;
    return add_id_column(c, t, v, headerless);
}

/* Stores the rows of nodes and their ids. An id counts as taken even where its own row is bad: the
 * second row that bears it is wrong whatever becomes of the first. */
static void store_nodes(Csv *c, const RtCsv *t, int key, RtFields *f, RtKeys *seen, RtNames *ids) {
    for (int64_t r = 0; r < t->n_rows; r++) {
        const char *id = t->cell[r * t->n_columns + key], *what;
        int64_t first = *id ? rt_keys_take(seen, id, t->line[r]) : 0;
        if (!*id)
            what = "no id";
        else
            what = first ? repeated(c, id, first) : rt_fields_store(f, t, r, ids->n);
        if (what)
            on_bad_row(c, t->name, t->line[r], what);
        else
            rt_names_add(ids, id);
    }
}

/* Reads the table of nodes: a row each, found by the ids that are in `ids` then. */
static gnnc_status read_nodes(Csv *c, const RtAlloc *from, const RtNamedBytes *file, RtNames *ids) {
    RtCsv t;
    RtFields f;
    RtFieldsWanted wanted;
    RtKeys seen;
    gnnc_status st;
    TRY(st, rt_import_begin(from, c->how, 0, 0, &c->d, c->err));
    TRY(st, parse(c, file, &t));
    if (t.headerless) t.header[0] = "id";
    if (looks_like_edges(&t))
        return rt_fail(
            c->err, GNNC_E_FORMAT,
            "%s: row 1: '%s' and '%s' are ends of edges: the table of nodes comes first, "
            "gnnc import NODES.csv EDGES.csv",
            t.name, t.header[find_column(&t, SRC, 0)], t.header[find_column(&t, DST, 0)]);
    int key = find_column(&t, ID, 0);
    if (!rt_names_new(&c->scratch, ids, t.n_rows) || !rt_keys_new(&c->scratch, &seen, t.n_rows))
        return no_memory(c);
    TRY(st, want_fields(c, &t, c->d->nodes->name, key, -1, &wanted));
    TRY(st, rt_fields_make(&c->d->pool, &c->scratch, &t, &wanted, &f, c->err));
    store_nodes(c, &t, key, &f, &seen, ids);
    RtTable *nodes = c->d->nodes;
    nodes->count = ids->n;
    nodes->columns = rt_fields_columns(&c->d->pool, &f, ids->n, &nodes->n_columns);
    st = nodes->columns ? add_ids(c, nodes, ids, t.headerless) : no_memory(c);
out:
    return st;
}

/* Sorts ids that are numbers by their value. */
static int by_number(const void *x, const void *y) {
    const char *a = *(const char *const *)x, *b = *(const char *const *)y;
    int64_t i = 0, j = 0;
    rt_cell_integer(a, &i);
    rt_cell_integer(b, &j);
    return i != j ? (i < j ? -1 : 1) : strcmp(a, b);
}

/* The ids in `n` columns: numbers in ascending order, texts in order of appearance.  Among numbers
 * a text is a slip, so no node. */
static bool collect_ids(Csv *c, const RtCsv *t, const int *key, int n, RtNames *ids) {
    RtNames seen;
    int64_t v;
    bool whole = true;
    for (int i = 0; i < n; i++) whole &= rt_column_is_integer(t, key[i]);
    if (!rt_names_new(&c->scratch, &seen, n * t->n_rows) ||
        !rt_names_new(&c->scratch, ids, n * t->n_rows))
        return false;
    for (int64_t r = 0; r < n * t->n_rows; r++) {
        const char *id = t->cell[r / n * t->n_columns + key[r % n]];
        if (*id && (!whole || rt_cell_integer(id, &v))) rt_names_add(&seen, id);
    }
    if (whole) qsort(seen.keys, (size_t)seen.n, sizeof *seen.keys, by_number);
    for (int64_t i = 0; i < seen.n; i++) rt_names_add(ids, seen.keys[i]);
    return true;
}

/* Sources are of the type before the comma of --node, destinations of that behind it. */
static gnnc_status split_types(Csv *c) {
    const char *comma = strchr(c->how->node, ',');
    RtPool *pool = &c->d->pool;
    RtTable *two = RT_NEWN(pool, RtTable, 2);
    if (!two) return no_memory(c);
    two[0] = two[1] = c->d->nodes[0];
    two[0].name = rt_pool_strndup(pool, c->how->node, (size_t)(comma - c->how->node));
    two[1].name = rt_pool_strndup(pool, comma + 1, strlen(comma + 1));
    two[1].columns = RT_NEW(pool, RtColumn);
    two[1].count = c->ids[1].n;
    c->d->nodes = two;
    c->d->n_nodes = 2;
    return two[0].name && two[1].name && two[1].columns ? GNNC_OK : no_memory(c);
}

/* Makes nodes of what the edges name, as there is no table of nodes. */
static gnnc_status collect_nodes(Csv *c, const RtCsv *t, const int key[2], const RtAlloc *from) {
    gnnc_status st;
    int n = c->two_types ? 1 : 2;
    if (!collect_ids(c, t, key, n, &c->ids[0])) return no_memory(c);
    if (c->two_types && !collect_ids(c, t, key + 1, 1, &c->ids[1])) return no_memory(c);
    TRY(st, rt_import_begin(from, c->how, c->ids[0].n, 1, &c->d, c->err));
    if (c->two_types) TRY(st, split_types(c));
    for (int i = 0; i < c->d->n_nodes; i++) TRY(st, add_ids(c, &c->d->nodes[i], &c->ids[i], false));
out:
    return st;
}

/* ---- the header of edges -------------------------------------------------------- */
/* Names the columns of a file without a header as edge lists are written: two ends, and the weight
 * that may follow them. */
static void name_ends(RtCsv *t) {
    static const char *const names[] = {"src", "dst", "weight"};
    for (int i = 0; i < t->n_columns && i < (t->n_columns == 3 ? 3 : 2); i++)
        t->header[i] = names[i];
}

/* The row whose ends hold the text; 0: none. */
static int64_t row_of(const RtCsv *t, const int key[2], const char *text) {
    for (int64_t r = 0; r < t->n_rows; r++)
        for (int i = 0; i < 2; i++)
            if (strcmp(t->cell[r * t->n_columns + key[i]], text) == 0) return t->line[r];
    return 0;
}

/* Characters of "user" in "user_id". */
static int stem_length(const char *name) {
    enum { MOST = 40 };
    bool sure;
    size_t n = strlen(name), stem = rt_id_stem(name, n, &sure);
    if (sure) n = stem;
    return n < MOST ? (int)n : MOST;
}

/* Whoever calls the ends "user" and "item" may mean two types; where both have numbers, user 5 and
 * item 5 would be one node. */
static void warn_of_header(Csv *c, const RtCsv *t, const int key[2], bool types_are_said) {
    const char *a = t->header[key[0]], *b = t->header[key[1]];
    char types[160] = "";
    if (!types_are_said)
        snprintf(types, sizeof types,
                 "; an id of both columns is one node: --node %.*s,%.*s if they are two types",
                 stem_length(a), a, stem_length(b), b);
    rt_import_warn(c->how,
                   "%s: row 1 is taken for names of columns, '%.40s' and '%.40s' for the ends; "
                   "--header %s=no if it is an edge%s",
                   t->name, a, b, t->name, types);
}

/* Fails if the first row of texts may be an edge: it is one where a node bears such a name. */
static gnnc_status check_header(Csv *c, const RtCsv *t, const int key[2], const RtNames *ids) {
    if (t->headerless || rt_import_header(c->how, t->name) != RT_HEADER_AUTO) return GNNC_OK;
    for (int i = 0; i < 2; i++)
        if (is_listed(SRC, t->header[key[i]]) || is_listed(DST, t->header[key[i]])) return GNNC_OK;
    for (int i = 0; i < 2; i++) {
        const char *name = t->header[key[i]];
        int64_t row = row_of(t, key, name);
        if (row || (ids && rt_names_find(ids, name) >= 0))
            return rt_fail(c->err, GNNC_E_FORMAT,
                           "%s: row 1: %s is the name of a node, too: is this a header? "
                           "--header %s=yes, or no",
                           t->name, rt_cell_quoted(name).s, t->name);
    }
    warn_of_header(c, t, key, ids || c->two_types);
    return GNNC_OK;
}

/* ---- edges ---------------------------------------------------------------------- */
/* Returns the number of good edges. */
static int64_t store_edges(Csv *c, const RtCsv *t, const int key[2], RtFields *f, int32_t *src,
                           int32_t *dst) {
    const RtNames *to = &c->ids[c->two_types];
    int64_t n = 0;
    for (int64_t r = 0; r < t->n_rows; r++) {
        const char *const *row = &t->cell[r * t->n_columns];
        src[n] = rt_names_find(&c->ids[0], row[key[0]]);
        dst[n] = rt_names_find(to, row[key[1]]);
        const char *what = src[n] < 0   ? bad_end(c, "source", row[key[0]], t->header[key[0]])
                           : dst[n] < 0 ? bad_end(c, "destination", row[key[1]], t->header[key[1]])
                                        : rt_fields_store(f, t, r, n);
        if (what)
            on_bad_row(c, t->name, t->line[r], what);
        else
            n++;
    }
    return n;
}

/* Reads a line "src,dst" that says which columns are ends, and what parts them; returns where the
 * first name ends, 0: it is none. */
static size_t plain_header(RtBytes text, char *separator, bool *swapped, size_t *length) {
    char name[2][16] = {"", ""};
    const char *s = (const char *)text.p, *eol = text.n ? memchr(s, '\n', text.n) : NULL;
    size_t n = eol ? (size_t)(eol - s) : 0, first = 0;
    *length = n + 1;
    if (n && s[n - 1] == '\r') n--;
    while (first < n && !strchr(",;\t", s[first])) first++;
    if (first >= n || !s[first] || first >= sizeof name[0] || n - first - 1 >= sizeof name[1])
        return 0;
    memcpy(name[0], s, first);
    memcpy(name[1], s + first + 1, n - first - 1);
    *separator = s[first];
    *swapped = is_listed(DST, name[0]) && is_listed(SRC, name[1]);
    return *swapped || (is_listed(SRC, name[0]) && is_listed(DST, name[1])) ? first : 0;
}

/* Two columns of whole numbers alone, both ends of edges: what read_edges() makes, without a cell
 * or a name for each.  *done false: the file is another. */
static gnnc_status read_pairs(Csv *c, const RtAlloc *from, const RtNamedBytes *file, bool *done) {
    RtPairs p;
    bool swapped = false;
    char separator;
    size_t length, header = plain_header(file->text, &separator, &swapped, &length);
    RtBytes rows = file->text;
    int64_t *id, n;
    gnnc_status st;
    *done = false;
    if (c->d || c->two_types || !header || rt_import_header(c->how, file->name) == RT_HEADER_NO)
        return GNNC_OK;
    rows.p += length;
    rows.n -= length;
    if (!rt_pairs_read(&c->scratch, rows, separator, &p)) return GNNC_OK;
    RtDataset *d;
    TRY(st, rt_import_begin(from, c->how, 0, 1, &d, c->err));
    c->d = d;
    if (!rt_pairs_number(&c->scratch, &d->pool, &p, &id, &n)) {
        rt_dataset_close(d);
        c->d = NULL;
        return GNNC_OK;
    }
    *done = true;
    d->nodes->count = n;
    TRY(st, add_id_column(c, d->nodes, id, false));
    int32_t *ends = RT_NEWN(&d->pool, int32_t, 2 * p.n);
    if (!ends) return no_memory(c);
    memcpy(ends, swapped ? p.second : p.first, (size_t)p.n * sizeof *ends);
    memcpy(ends + p.n, swapped ? p.first : p.second, (size_t)p.n * sizeof *ends);
    st = rt_import_edges(d, c->how, p.n, ends, ends + p.n, 0, NULL, c->err);
out:
    return st;
}

/* Reads the table of edges. Without a table of nodes, the ids in it are the nodes. */
static gnnc_status read_edges(Csv *c, const RtAlloc *from, const RtNamedBytes *file) {
    RtCsv t;
    RtFields f;
    RtFieldsWanted wanted;
    gnnc_status st;
    TRY(st, parse(c, file, &t));
    if (t.headerless) name_ends(&t);
    if (looks_like_nodes(&t))
        return rt_fail(c->err, GNNC_E_FORMAT,
                       c->d
                           ? "%s: row 1: this is a table of nodes, too; edges have columns src and "
                             "dst (several node types: put all tables in a folder and import that)"
                           : "%s: row 1: this is a table of nodes; edges have columns src and dst: "
                             "gnnc import NODES.csv EDGES.csv",
                       t.name);
    if (t.n_columns < 2)
        return rt_fail(c->err, GNNC_E_FORMAT, "%s: row 1: two columns of node ids are needed",
                       t.name);
    int key[2];
    key[0] = find_column(&t, SRC, 0);
    key[1] = find_column(&t, DST, key[0] == 1 ? 0 : 1);
    if (key[0] == key[1]) key[0] = 1; /* only "dst" has its name, and stands first */
    TRY(st, check_header(c, &t, key, c->d ? &c->ids[0] : NULL));
    if (!c->d) TRY(st, collect_nodes(c, &t, key, from));
    const char *name = c->how->edge ? c->how->edge : "link";
    TRY(st, want_fields(c, &t, name, key[0], key[1], &wanted));
    TRY(st, rt_fields_make(&c->d->pool, &c->scratch, &t, &wanted, &f, c->err));
    int32_t *src = RT_NEWN(&c->d->pool, int32_t, t.n_rows);
    int32_t *dst = RT_NEWN(&c->d->pool, int32_t, t.n_rows);
    if (!src || !dst) return no_memory(c);
    int64_t n = store_edges(c, &t, key, &f, src, dst);
    int n_columns;
    RtColumn *columns = rt_fields_columns(&c->d->pool, &f, n, &n_columns);
    if (!columns) return no_memory(c);
    TRY(st, rt_import_edges(c->d, c->how, n, src, dst, n_columns, columns, c->err));
    if (c->two_types) c->d->edges->dst_type = 1;
    if (t.headerless) c->d->edges->why = "no header: row 1 is an edge";
out:
    return st;
}

/* Two types, "user,item", are those of the ends of edges alone: fails where that cannot be. */
static gnnc_status check_types(Csv *c, const RtNamedBytes *nodes) {
    c->two_types = c->how->node && strchr(c->how->node, ',');
    if (!c->two_types) return GNNC_OK;
    if (nodes)
        return rt_fail(c->err, GNNC_E_ARG,
                       "--node %.100s: two types are those of the ends of edges alone; tables of "
                       "several types of nodes are imported by their folder",
                       c->how->node);
    if (c->how->undirected)
        return rt_fail(c->err, GNNC_E_ARG,
                       "--undirected: edges between two types (--node %.100s) have one direction; "
                       "the model reads the other with reverse(..)",
                       c->how->node);
    return GNNC_OK;
}

/* Reads tables of nodes (or NULL) and edges. */
gnnc_status rt_import_csv_bytes(const RtAlloc *from, const RtNamedBytes *nodes,
                                const RtNamedBytes *edges, RtImport *how, RtDataset **out,
                                RtError *err) {
    Csv c = {.how = how, .err = err};
    gnnc_status st;
    *out = NULL;
    rt_pool_init(&c.scratch, from);
    TRY(st, check_types(&c, nodes));
    if (how->map) TRY(st, rt_map_read(&c.scratch, how->map, read_rule, &c, err));
    if (nodes) TRY(st, read_nodes(&c, from, nodes, &c.ids[0]));
    bool done;
    TRY(st, read_pairs(&c, from, edges, &done));
    if (!done) TRY(st, read_edges(&c, from, edges));
    TRY(st, check_rules(&c));
    st = rt_import_finish(c.d, how, err);
out:
    rt_pool_free(&c.scratch);
    if (st == GNNC_OK)
        *out = c.d;
    else
        rt_dataset_close(c.d);
    return st;
}

gnnc_status rt_import_csv(const RtAlloc *from, const char *nodes, const char *edges, RtImport *how,
                          RtDataset **out, RtError *err) {
    RtPool pool;
    RtNamedBytes n = {.name = nodes}, e = {.name = edges};
    gnnc_status st;
    *out = NULL;
    rt_pool_init(&pool, from);
    if (nodes) TRY(st, rt_file_map(&pool, nodes, &n.text, err));
    TRY(st, rt_file_map(&pool, edges, &e.text, err));
    st = rt_import_csv_bytes(from, nodes ? &n : NULL, &e, how, out, err);
out:
    rt_pool_free(&pool);
    return st;
}
