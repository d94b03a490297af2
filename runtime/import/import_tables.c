/* Tables that refer to each other: every row is a node, every reference an edge from the row to
 * the row it names.  A source (import_source.h) gives rows, one after another.
 *
 * Tables are read twice where others refer to them: first their keys, so that each reference finds
 * its row when it is read, whatever leads to what, in a circle, too.  Rows are numbered as they
 * come; where one is left out, edges are renumbered at the end. */
#include <stdio.h>
#include <string.h>

#include "import_build.h"
#include "import_datum.h"
#include "import_index.h"
#include "import_key_column.h"
#include "import_source.h"
#include "import_table.h"

enum { PROGRESS = 1 << 16, SHOWN = 120 };

/* The rows of a table by some of its columns. */
typedef struct {
    RtKeyIndex rows;
    int table;
    RtKeyColumns columns;
} Index;

/* What becomes of a reference. */
typedef struct {
    Index *to;
    int32_t *src, *dst;
    int64_t n, n_absent, n_lost; /* lost: they lead to no row */
    char first_lost[2 * SHOWN];
} Edges;

typedef struct {
    const RtSourceTable *s;
    RtTable *node;
    int64_t n;      /* rows that stay */
    int32_t *stays; /* by the row's number: its new one, -1 = left out; NULL: all stay */
    Edges *edges;   /* of the references */
} Table;

typedef struct {
    RtBuild b;
    RtPool pool;
    RtSource *source;
    RtImport *how;
    RtError *err;
    Table *table;
    Index *index;
    int n_index;
    int64_t n_lost; /* references that lead to no row, where that ends the import */
} Tables;

/* What is read of a table now. */
typedef struct {
    Tables *x;
    Table *t;
    int n, *column;       /* columns that are asked for */
    int *place;           /* of a column of the table among them, -1: none */
    RtDatum *cell;        /* [n] */
    const RtDatum **list; /* room for [n] */
    int64_t row, line;    /* of the row that is in `cell`, from 0; and what messages call it */
    RtFields fields;      /* of CSV */
    RtDatumFields cells;  /* of others */
    RtPool scratch;
    RtKeyColumn keys;
} Reading;

static gnnc_status no_memory(Tables *x) {
    return rt_fail_nomem(x->err, "import");
}

/* ---- reading -------------------------------------------------------------------------- */
/* Adds a column to those that rows are read with, once. */
static void want(Reading *r, int column) {
    if (r->place[column] < 0) {
        r->place[column] = r->n;
        r->column[r->n++] = column;
    }
}

static void want_all(Reading *r, const RtKeyColumns *c) {
    for (int i = 0; i < c->n; i++) want(r, c->at[i]);
}

/* Makes room to read a table row by row. */
static gnnc_status reading_new(Tables *x, Table *t, Reading *r) {
    int n = t->s->n_columns;
    *r = (Reading){.x = x, .t = t, .row = -1};
    rt_pool_init(&r->scratch, &x->pool.from);
    r->column = RT_NEWN(&r->scratch, int, n);
    r->place = RT_NEWN(&r->scratch, int, n);
    r->cell = RT_NEWN(&r->scratch, RtDatum, n);
    r->list = RT_NEWN(&r->scratch, const RtDatum *, n + RT_KEY_COLUMNS);
    if (!r->column || !r->place || !r->cell || !r->list) return no_memory(x);
    for (int i = 0; i < n; i++) r->place[i] = -1;
    return GNNC_OK;
}

static gnnc_status begin(Reading *r) {
    RtSource *s = r->x->source;
    return s->form->begin(s, (int)(r->t - r->x->table), r->column, r->n, r->x->err);
}

/* *more = false: there is no row left. */
static gnnc_status next(Reading *r, bool *more) {
    Tables *x = r->x;
    RtSource *s = x->source;
    gnnc_status st = s->form->next(s, r->cell, &r->line, x->err);
    *more = st == GNNC_OK && r->line;
    if (!*more && x->how->on_progress && r->row >= PROGRESS - 1)
        x->how->on_progress(x->how->user, r->t->s->name, r->t->s->n_rows, r->t->s->n_rows);
    if (!*more) return st;
    if (++r->row == r->t->s->n_rows)
        return rt_fail(x->err, GNNC_E_IO, "%s: rows were added while they were read",
                       r->t->s->name);
    if (x->how->on_progress && r->row % PROGRESS == PROGRESS - 1 && r->row + 1 < r->t->s->n_rows)
        x->how->on_progress(x->how->user, r->t->s->name, r->row + 1, r->t->s->n_rows);
    return GNNC_OK;
}

static const RtDatum *const *cells_of(Reading *r, const RtKeyColumns *c) {
    for (int i = 0; i < c->n; i++) r->list[i] = &r->cell[r->place[c->at[i]]];
    return r->list;
}

/* Writes the row's key as messages show it: "'a', 12". */
static void show(Reading *r, const RtKeyColumns *c, char to[SHOWN]) {
    size_t n = 0;
    const RtDatum *const *cell = cells_of(r, c);
    for (int i = 0; i < c->n && n < SHOWN - 1; i++)
        n += (size_t)snprintf(to + n, SHOWN - n, "%s%s", i ? ", " : "", rt_datum_shown(cell[i]).s);
}

/* Writes the columns of a key as messages show them: "column 'a', 'b'". */
static void show_columns(const RtSourceTable *t, const RtKeyColumns *c, char to[SHOWN]) {
    size_t n = 0;
    for (int i = 0; i < c->n && n < SHOWN - 1; i++)
        n += (size_t)snprintf(to + n, SHOWN - n, "%s'%.40s'", i ? ", " : "column ",
                              t->columns[c->at[i]].name);
}

/* Tells of a bad row. A database has no lines: the key names the row as well. */
static void bad_row(Reading *r, const char *what) {
    const RtSourceTable *s = r->t->s;
    char text[600], key[SHOWN] = "";
    if (!s->csv && s->key.n) show(r, &s->key, key);
    snprintf(text, sizeof text, "%s%s%s%s", *key ? "key " : "", key, *key ? ": " : "", what);
    rt_import_bad_row(r->x->how, s->name, r->line, text);
}

/* ---- keys --------------------------------------------------------------------------------- */
/* The index over these columns of the table, made if it is the first to want it. */
static Index *find_index(Tables *x, int table, const RtKeyColumns *c) {
    for (int i = 0; i < x->n_index; i++)
        if (x->index[i].table == table && memcmp(&x->index[i].columns, c, sizeof *c) == 0)
            return &x->index[i];
    Index *k = &x->index[x->n_index++];
    *k = (Index){.table = table, .columns = *c};
    rt_key_index_init(&k->rows, &x->pool, &x->source->tables[table], c);
    return k;
}

/* Finds which indexes over keys are needed: of own keys, and of those that others refer to. */
static gnnc_status plan_indexes(Tables *x, int n_refs) {
    x->index = RT_NEWN(&x->pool, Index, n_refs + x->source->n_tables);
    if (!x->index) return no_memory(x);
    for (int i = 0; i < x->source->n_tables; i++) {
        const RtSourceTable *s = x->table[i].s;
        if (s->key.n && !s->unique) find_index(x, i, &s->key);
        x->table[i].edges = RT_NEWN(&x->pool, Edges, s->n_references);
        if (!x->table[i].edges) return no_memory(x);
        for (int j = 0; j < s->n_references; j++) {
            const RtReference *ref = &s->references[j];
            x->table[i].edges[j].to = find_index(x, ref->table, &ref->to);
        }
    }
    return GNNC_OK;
}

/* Adds the row to the indexes over its table. */
static gnnc_status add_keys_of_row(Reading *r) {
    Tables *x = r->x;
    int32_t first;
    for (int i = 0; i < x->n_index; i++) {
        Index *k = &x->index[i];
        if (&x->table[k->table] != r->t) continue;
        gnnc_status st =
            rt_key_index_add(&k->rows, cells_of(r, &k->columns), (int32_t)r->row, &first, x->err);
        if (st != GNNC_OK) return st;
    }
    return GNNC_OK;
}

/* Reads a table's keys into its indexes; references are found by these when all are read. */
static gnnc_status read_keys(Tables *x, Table *t) {
    Reading r;
    bool more = true;
    gnnc_status st = reading_new(x, t, &r);
    for (int i = 0; i < x->n_index && st == GNNC_OK; i++)
        if (&x->table[x->index[i].table] == t) want_all(&r, &x->index[i].columns);
    if (st == GNNC_OK && r.n) {
        st = begin(&r);
        while (st == GNNC_OK && (st = next(&r, &more)) == GNNC_OK && more) st = add_keys_of_row(&r);
        x->source->form->end(x->source);
    }
    rt_pool_free(&r.scratch);
    return st;
}

/* ---- rows that are bad, or lead nowhere ---------------------------------------------------- */
/* Why the row's key is bad, or there twice; NULL: it is neither. */
static const char *bad_key(Reading *r, char *text, size_t cap) {
    Tables *x = r->x;
    const RtKeyColumns *key = &r->t->s->key;
    const RtDatum *const *cell = cells_of(r, key);
    for (int i = 0; i < key->n; i++) {
        const char *bad = cell[i]->type == RT_DATUM_TEXT ? rt_datum_bad_text(cell[i]) : NULL;
        if (cell[i]->type == RT_DATUM_NULL) return "no key";
        if (cell[i]->type == RT_DATUM_BLOB) return "its key is binary data";
        if (bad) return snprintf(text, cap, "its key is %s", bad), text;
    }
    for (int i = 0; i < x->n_index; i++) {
        Index *k = &x->index[i];
        int32_t first;
        char shown[SHOWN];
        if (&x->table[k->table] != r->t) continue;
        if (r->t->s->unique && memcmp(&k->columns, key, sizeof *key) == 0) continue;
        cell = cells_of(r, &k->columns);
        if (rt_key_index_find(&k->rows, cell, &first, x->err) != GNNC_OK) return "no memory";
        if (first < 0 || first == r->row) continue;
        show(r, &k->columns, shown);
        snprintf(text, cap, "its key %s is repeated: row %lld has it", shown,
                 (long long)(r->t->s->csv ? r->t->s->csv->line[first] : first + 1));
        return text;
    }
    return NULL;
}

/* ---- references ------------------------------------------------------------------------------ */
/* Row of a key; where it is not spelt so, "12.0" is 12, as pandas writes keys that may be absent.
 * -1: no such row. */
static gnnc_status find_row(Reading *r, Index *to, const RtKeyColumns *from, int32_t *row) {
    char plain[32];
    int64_t v;
    const RtDatum *const *cell = cells_of(r, from);
    gnnc_status st = rt_key_index_find(&to->rows, cell, row, r->x->err);
    if (st != GNNC_OK || *row >= 0 || from->n > 1) return st;
    if (cell[0]->type != RT_DATUM_TEXT || !rt_cell_is_integer(cell[0]->s, &v)) return st;
    RtDatum other = {.type = RT_DATUM_TEXT, .s = plain};
    other.n = (size_t)snprintf(plain, sizeof plain, "%lld", (long long)v);
    return rt_key_index_find(&to->rows, &(const RtDatum *){&other}, row, r->x->err);
}

/* Has the reference an empty part, so that it leads to no row? */
static bool is_absent(Reading *r, const RtKeyColumns *from) {
    const RtDatum *const *cell = cells_of(r, from);
    for (int i = 0; i < from->n; i++)
        if (rt_datum_empty(cell[i])) return true;
    return false;
}

/* Says so, and whether the row stays. */
static bool lost_reference(Reading *r, const RtReference *ref, Edges *e) {
    char shown[SHOWN], columns[SHOWN], what[3 * SHOWN];
    rt_dangling how = r->x->how->dangling;
    show(r, &ref->from, shown);
    show_columns(r->t->s, &ref->from, columns);
    snprintf(what, sizeof what, "%s: %s is no key of %.40s", columns, shown,
             r->x->table[ref->table].s->type);
    if (how == RT_DANGLING_BAD || how == RT_DANGLING_STOP) {
        r->x->n_lost += how == RT_DANGLING_STOP;
        bad_row(r, what);
        return true;
    }
    if (e->n_lost++ == 0)
        snprintf(e->first_lost, sizeof e->first_lost, "row %lld: %.200s", (long long)r->line, what);
    return how == RT_DANGLING_KEEP;
}

/* The row's edges, as those of row t->n; *stays = false: it is to be left out. */
static gnnc_status add_edges(Reading *r, bool *stays) {
    *stays = true;
    for (int i = 0; i < r->t->s->n_references && *stays; i++) {
        const RtReference *ref = &r->t->s->references[i];
        Edges *e = &r->t->edges[i];
        int32_t row;
        gnnc_status st = find_row(r, e->to, &ref->from, &row);
        if (st != GNNC_OK) return st;
        if (row >= 0) {
            e->src[e->n] = (int32_t)r->t->n;
            e->dst[e->n++] = row;
        } else if (is_absent(r, &ref->from)) {
            e->n_absent++;
        } else {
            *stays = lost_reference(r, ref, e);
        }
    }
    for (int i = 0; i < r->t->s->n_references && !*stays; i++) {
        Edges *e = &r->t->edges[i];
        if (e->n && e->src[e->n - 1] == r->t->n) e->n--;
    }
    return GNNC_OK;
}

/* ---- rows -------- */
/* Leaves the row out: from then on it is listed where the rows that stay are. */
static gnnc_status leave_out(Reading *r) {
    Table *t = r->t;
    if (!t->stays) {
        t->stays = rt_import_reserve(&r->x->pool, t->s->n_rows, sizeof *t->stays, r->x->err);
        if (!t->stays) return GNNC_E_NOMEM;
        for (int64_t i = 0; i < r->row; i++) t->stays[i] = (int32_t)i;
    }
    t->stays[r->row] = -1;
    return GNNC_OK;
}

/* Stores the columns of a row. NULL: they are good; else why not. */
static const char *store(Reading *r) {
    const RtSourceTable *s = r->t->s;
    if (s->csv) return rt_fields_store(&r->fields, s->csv, r->row, r->t->n);
    for (int i = 0; i < r->cells.n; i++) r->list[i] = &r->cell[r->place[r->cells.v[i].column]];
    return rt_datum_fields_store(&r->cells, r->list, r->t->n);
}

/* Stores a row, its edges and its key. A bad row is told and left out. */
static gnnc_status store_row(Reading *r) {
    char text[3 * SHOWN];
    bool stays = true;
    const char *what = bad_key(r, text, sizeof text);
    if (!what) what = store(r);
    gnnc_status st = r->cells.st;
    if (what) bad_row(r, what);
    if (st == GNNC_OK && !what) st = add_edges(r, &stays);
    if (st != GNNC_OK) return st;
    if (what || !stays) return leave_out(r);
    if (r->t->s->key.n) st = rt_key_column_add(&r->keys, cells_of(r, &r->t->s->key), r->t->n);
    if (r->t->stays) r->t->stays[r->row] = (int32_t)r->t->n;
    r->t->n++;
    return st;
}

/* Columns that become values: no reference, and no key of one column, which is kept by itself. */
static bool has_value(const RtSourceTable *s, int c) {
    bool key = s->key.n == 1 && s->key.at[0] == c;
    return !s->columns[c].refers && (!key || s->columns[c].declared == RT_DECLARED_TIME);
}

/* Makes the fields of the table's columns that are neither keys nor references. */
static gnnc_status make_fields(Reading *r) {
    const RtSourceTable *s = r->t->s;
    RtPool *keep = &r->x->b.d->pool;
    int *kind = RT_NEWN(&r->scratch, int, s->n_columns);
    bool *take = RT_NEWN(&r->scratch, bool, s->n_columns);
    RtWish *wish = RT_NEWN(&r->scratch, RtWish, s->n_columns);
    if (!kind || !take || !wish) return no_memory(r->x);
    for (int i = 0; i < s->n_columns; i++) {
        take[i] = has_value(s, i);
        kind[i] = take[i] ? s->columns[i].kind : RT_KIND_SKIP;
        wish[i] = s->columns[i].wish;
    }
    RtFieldsWanted wanted = {s->type, r->x->how, kind, wish};
    if (s->csv) return rt_fields_make(keep, &r->x->pool, s->csv, &wanted, &r->fields, r->x->err);
    gnnc_status st =
        rt_datum_fields_make(keep, &r->scratch, s, take, r->x->how, &r->cells, r->x->err);
    for (int i = 0; i < r->cells.n && st == GNNC_OK; i++) want(r, r->cells.v[i].column);
    return st;
}

/* Makes room for an edge from each row, by each reference. */
static gnnc_status make_edges(Reading *r) {
    RtPool *keep = &r->x->b.d->pool;
    for (int i = 0; i < r->t->s->n_references; i++) {
        Edges *e = &r->t->edges[i];
        e->src = rt_import_reserve(keep, r->t->s->n_rows, sizeof *e->src, r->x->err);
        e->dst =
            e->src ? rt_import_reserve(keep, r->t->s->n_rows, sizeof *e->dst, r->x->err) : NULL;
        if (!e->dst) return GNNC_E_NOMEM;
        want_all(r, &r->t->s->references[i].from);
    }
    return GNNC_OK;
}

/* Gives the node type the columns that were read. */
static gnnc_status add_columns(Reading *r) {
    Tables *x = r->x;
    RtColumn *columns;
    int n;
    gnnc_status st = GNNC_OK;
    if (!r->t->s->csv)
        st = rt_datum_fields_columns(&r->cells, r->t->n, &columns, &n);
    else if (!(columns = rt_fields_columns(&x->b.d->pool, &r->fields, r->t->n, &n)))
        st = no_memory(x);
    for (int i = 0; st == GNNC_OK && i < n; i++) {
        RtColumn *c = rt_build_column(&x->b, r->t->node, columns[i].kind, columns[i].name);
        if (!c) return x->b.st;
        const char *name = c->name;
        *c = columns[i];
        c->name = name;
    }
    return st;
}

/* Reads all rows of a table and makes its node type. */
static gnnc_status read_rows(Reading *r) {
    Tables *x = r->x;
    bool more = true;
    gnnc_status st;
    TRY(st, make_fields(r));
    TRY(st, make_edges(r));
    TRY(st, rt_key_column_begin(&r->keys, &r->x->b.d->pool, r->t->s, r->x->err));
    want_all(r, &r->t->s->key);
    for (int i = 0; i < x->n_index; i++)
        if (&x->table[x->index[i].table] == r->t) want_all(r, &x->index[i].columns);
    st = begin(r);
    while (st == GNNC_OK && (st = next(r, &more)) == GNNC_OK && more) st = store_row(r);
    x->source->form->end(x->source);
    if (st == GNNC_OK) st = rt_build_nodes(&x->b, r->t->s->type, r->t->n, &r->t->node);
    if (st == GNNC_OK) st = add_columns(r);
    if (st == GNNC_OK) st = rt_key_column_end(&r->keys, &x->b, r->t->node);
out:
    return st;
}

/* Reads a table with memory of its own for rows. */
static gnnc_status read_table(Tables *x, Table *t) {
    Reading r;
    gnnc_status st = reading_new(x, t, &r);
    if (st == GNNC_OK) st = read_rows(&r);
    rt_pool_free(&r.scratch);
    return st;
}

/* ---- edge types -------- */
/* Says what a reference's edges are, for the report; NULL: no memory. */
static const char *reference_why(Tables *x, const char *columns, const Edges *e) {
    RtPool *pool = &x->b.d->pool;
    const char *why = columns;
    if (e->n_absent)
        why = rt_pool_printf(pool, "%s, absent in %lld rows", why, (long long)e->n_absent);
    if (why && e->n_lost && x->how->dangling == RT_DANGLING_KEEP)
        why = rt_pool_printf(pool, "%s, %lld lead to no row", why, (long long)e->n_lost);
    return why ? rt_pool_strndup(pool, why, strlen(why)) : NULL;
}

/* Tells how many references lead to no row, or to rows that are left out. */
static void warn_of_lost(const Tables *x, const Table *t, const RtReference *ref, const Edges *e,
                         int64_t n_gone) {
    char columns[SHOWN];
    show_columns(t->s, &ref->from, columns);
    if (e->n_lost && x->how->dangling == RT_DANGLING_KEEP)
        rt_import_warn(x->how, "%s: %s: %lld rows lead to none and have no edge (%s)", t->s->name,
                       columns, (long long)e->n_lost, e->first_lost);
    if (e->n_lost && x->how->dangling == RT_DANGLING_DROP)
        rt_import_warn(x->how, "%s: %s: %lld rows lead to none and are left out (%s)", t->s->name,
                       columns, (long long)e->n_lost, e->first_lost);
    if (n_gone)
        rt_import_warn(x->how, "%s: %s: %lld rows lead to rows that are left out: no edge",
                       t->s->name, columns, (long long)n_gone);
}

/* orders__customer; a second one of the same columns is orders__customer_2. */
static const char *edge_name(Tables *x, const Table *t, const RtKeyColumns *from) {
    char column[27];
    size_t at = 0;
    for (int i = 0; i < from->n && at < sizeof column - 1; i++)
        at += (size_t)snprintf(column + at, sizeof column - at, "%s%s", i ? "_" : "",
                               t->s->columns[from->at[i]].name);
    for (int k = 1;; k++) {
        const char *name = k == 1
                               ? rt_pool_printf(&x->pool, "%.28s__%s", t->s->type, column)
                               : rt_pool_printf(&x->pool, "%.26s__%.24s_%d", t->s->type, column, k);
        const char *id = name ? rt_identifier(&x->pool, name, strlen(name)) : NULL;
        if (!id || !rt_dataset_edges(x->b.d, id)) return id;
    }
}

/* The columns that refer, "shop,day"; NULL: no memory. */
static const char *key_columns(Tables *x, const Table *t, const RtKeyColumns *from) {
    RtPool *pool = &x->b.d->pool;
    const char *key = "";
    for (int i = 0; i < from->n && key; i++) {
        const char *raw = t->s->columns[from->at[i]].name;
        const char *id = rt_identifier(&x->pool, raw, strlen(raw));
        key = id ? rt_pool_printf(pool, "%s%s%s", key, i ? "," : "", id) : NULL;
    }
    return key;
}

/* Makes an edge type of a reference. Rows that were left out have moved the numbers of those behind
 * them. */
static gnnc_status add_reference(Tables *x, Table *t, int i) {
    const RtReference *ref = &t->s->references[i];
    const Table *to = &x->table[ref->table];
    Edges *e = &t->edges[i];
    RtTable *edges;
    char columns[SHOWN];
    int64_t n = 0;
    const char *name = edge_name(x, t, &ref->from);
    if (!name) return no_memory(x);
    for (int64_t k = 0; k < e->n; k++) {
        int32_t row = to->stays ? to->stays[e->dst[k]] : e->dst[k];
        e->src[n] = e->src[k];
        e->dst[n] = row;
        n += row >= 0;
    }
    warn_of_lost(x, t, ref, e, e->n - n);
    show_columns(t->s, &ref->from, columns);
    gnnc_status st = rt_build_edges(&x->b, name, t->node, to->node, n, e->src, e->dst, &edges);
    if (st == GNNC_OK && !(edges->key = key_columns(x, t, &ref->from))) st = no_memory(x);
    if (st == GNNC_OK && !(edges->why = reference_why(x, columns, e))) st = no_memory(x);
    return st;
}

/* Reads all tables: keys first, then rows, then edges. */
static gnnc_status read_all(Tables *x, const RtAlloc *from, const RtNamedBytes *map) {
    RtSource *s = x->source;
    int n_refs = 0;
    gnnc_status st;
    TRY(st, rt_source_keys(s, map, x->how, x->err));
    x->table = RT_NEWN(&x->pool, Table, s->n_tables);
    if (!x->table) return no_memory(x);
    for (int i = 0; i < s->n_tables; i++) {
        x->table[i].s = &s->tables[i];
        n_refs += s->tables[i].n_references;
        if (s->tables[i].n_rows > INT32_MAX)
            return rt_fail(x->err, GNNC_E_RANGE, "%s: %lld rows: at most 2^31 - 1 are possible",
                           s->tables[i].name, (long long)s->tables[i].n_rows);
    }
    TRY(st, plan_indexes(x, n_refs));
    TRY(st, rt_build_begin(&x->b, from, s->name, x->how, s->n_tables, n_refs, 0, x->err));
    for (int i = 0; i < s->n_tables; i++) TRY(st, read_keys(x, &x->table[i]));
    for (int i = 0; i < s->n_tables; i++) TRY(st, read_table(x, &x->table[i]));
    if (x->n_lost)
        return rt_fail(x->err, GNNC_E_FORMAT, "%s: %lld references lead to no row (%.200s)",
                       s->name, (long long)x->n_lost, x->how->first_bad);
    for (int i = 0; i < s->n_tables; i++)
        for (int j = 0; j < s->tables[i].n_references; j++)
            TRY(st, add_reference(x, &x->table[i], j));
    if (!n_refs)
        rt_import_warn(x->how,
                       "%s: no table refers to another, so there are no edges; --map FILE says "
                       "which columns are keys and references",
                       s->name);
    st = rt_build_finish(&x->b);
out:
    return st;
}

gnnc_status rt_import_source(const RtAlloc *from, RtSource *s, const RtNamedBytes *mapping,
                             RtImport *how, RtDataset **out, RtError *err) {
    Tables x = {.source = s, .how = how, .err = err};
    rt_pool_init(&x.pool, from);
    gnnc_status st = read_all(&x, from, mapping);
    return rt_build_end(&x.b, &x.pool, st, out);
}
