/* Which columns of a source's tables are keys and references: by the catalogue, by a mapping, and
 * where the catalogue has no foreign key by names.  A mapping has a line for each column, or for
 * several that are one key:
 *     races.raceId          key                 other tables name rows by it
 *     results.raceId        -> races            edge type results__raceId
 *     stops.raceId,lap      -> laps
 *     stops.code            -> codes.short      by another column than the table's key
 * and what import_map.h has of a column's kind.
 * Of columns that it does not name `id`, `<table>_id` and `<table>Id` are keys, and such a column
 * of another table refers to it: in any case, and of the table's name in the singular, too. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "import_build.h"
#include "import_source.h"
#include "import_table.h"

typedef struct {
    RtSource *s;
    RtImport *how;
    RtPool *pool;
    bool *mapped; /* the table's key is the mapping's */
} Keys;

/* ---- a catalogue ---------------------------------------------------------------------- */
RtSourceTable *rt_source_add(RtSource *s) {
    RtSourceTable *v = RT_NEWN(&s->pool, RtSourceTable, s->n_tables + 1);
    if (!v) return NULL;
    if (s->n_tables) memcpy(v, s->tables, (size_t)s->n_tables * sizeof *v);
    s->tables = v;
    return &v[s->n_tables++];
}

bool rt_source_columns(RtPool *pool, RtSourceTable *t, int n) {
    t->columns = RT_NEWN(pool, RtSourceColumn, n);
    t->n_columns = t->columns ? n : 0;
    for (int i = 0; i < t->n_columns; i++) t->columns[i].kind = RT_KIND_GUESS;
    return t->columns;
}

bool rt_source_refer(RtPool *pool, RtSourceTable *t, const RtReference *r) {
    if (t->n_references == t->room) {
        int room = t->room ? 2 * t->room : 4;
        RtReference *v = RT_NEWN(pool, RtReference, room);
        if (!v) return false;
        if (t->n_references) memcpy(v, t->references, (size_t)t->n_references * sizeof *v);
        rt_pool_drop(pool, t->references);
        t->references = v;
        t->room = room;
    }
    t->references[t->n_references++] = *r;
    for (int i = 0; i < r->from.n; i++) t->columns[r->from.at[i]].refers = true;
    return true;
}

int rt_source_column(const RtSourceTable *t, const char *name, size_t n) {
    for (int i = 0; i < t->n_columns; i++) {
        const char *c = t->columns[i].name;
        if (strlen(c) == n && memcmp(c, name, n) == 0) return i;
    }
    return -1;
}

/* Tables of another order: references follow. */
static bool sort_tables(RtSource *s) {
    RtSourceTable *v = RT_NEWN(&s->pool, RtSourceTable, s->n_tables);
    const char **name = RT_NEWN(&s->pool, const char *, s->n_tables);
    int *to = RT_NEWN(&s->pool, int, s->n_tables);
    if (!v || !name || !to) return false;
    for (int i = 0; i < s->n_tables; i++) name[i] = s->tables[i].name;
    qsort(name, (size_t)s->n_tables, sizeof *name, rt_by_text);
    for (int i = 0; i < s->n_tables; i++)
        for (int j = 0; j < s->n_tables; j++)
            if (name[i] == s->tables[j].name) v[i] = s->tables[j], to[j] = i;
    for (int i = 0; i < s->n_tables; i++)
        for (int j = 0; j < v[i].n_references; j++)
            v[i].references[j].table = to[v[i].references[j].table];
    s->tables = v;
    return true;
}

/* Sorts references by their first column, then by the table they lead to: catalogues list them in
 * any order. */
static int by_column(const void *x, const void *y) {
    const RtReference *a = x, *b = y;
    for (int i = 0; i < a->from.n && i < b->from.n; i++)
        if (a->from.at[i] != b->from.at[i]) return a->from.at[i] - b->from.at[i];
    return a->from.n != b->from.n ? a->from.n - b->from.n : a->table - b->table;
}

gnnc_status rt_source_order(RtSource *s, RtError *err) {
    if (!sort_tables(s)) return rt_fail_nomem(err, s->name);
    for (int i = 0; i < s->n_tables; i++) {
        RtSourceTable *t = &s->tables[i];
        if (t->n_references)
            qsort(t->references, (size_t)t->n_references, sizeof *t->references, by_column);
        if (!t->type && !(t->type = rt_identifier(&s->pool, t->name, strlen(t->name))))
            return rt_fail_nomem(err, s->name);
        for (int j = 0; j < i; j++)
            if (strcmp(t->type, s->tables[j].type) == 0)
                return rt_fail(err, GNNC_E_FORMAT, "%s: tables '%s' and '%s' are both called '%s'",
                               s->name, s->tables[j].name, t->name, t->type);
    }
    return GNNC_OK;
}

/* ---- by names --------------------------------------------------------------------------- */
static bool is_free(const RtSourceColumn *c) {
    return c->kind == RT_KIND_GUESS && !c->refers;
}

/* Is column c a part of the table's key? */
static bool in_key(const RtSourceTable *t, int c) {
    for (int i = 0; i < t->key.n; i++)
        if (t->key.at[i] == c) return true;
    return false;
}

static size_t id_stem(const char *name) {
    bool sure;
    return rt_id_stem(name, strlen(name), &sure);
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

/* Guesses the table's key: a column called id, or by the table's name with id. */
static void guess_key(RtSourceTable *t) {
    int key = -1;
    for (int c = 0; c < t->n_columns && key < 0; c++)
        if (strcasecmp(t->columns[c].name, "id") == 0) key = c;
    if (key >= 0 && !is_free(&t->columns[key])) key = -1;
    for (int c = 0; c < t->n_columns && key < 0; c++) {
        const char *name = t->columns[c].name;
        if (is_free(&t->columns[c]) && names_table(name, id_stem(name), t->type)) key = c;
    }
    if (key >= 0) t->key = (RtKeyColumns){1, {key}};
}

/* The table that a column's name leads to: spelt alike if there is such one, else in any case if
 * there is one only; -1: none, -2: several. */
static int table_of_id(const RtSource *s, const char *name) {
    int found = -1;
    size_t n = id_stem(name);
    for (int j = 0; j < s->n_tables; j++) {
        if (s->tables[j].key.n != 1 || !names_table(name, n, s->tables[j].type)) continue;
        if (strncmp(name, s->tables[j].type, n) == 0) return j;
        found = found == -1 ? j : -2;
    }
    return found;
}

/* Tells of a column that looks like a reference, but makes no edges. */
static void warn_of_lone_id(const Keys *k, const RtSourceTable *t, const char *column, int to) {
    if (to == -2)
        rt_import_warn(k->how, "%s: column '%s' may refer to several tables: --map FILE says which",
                       t->name, column);
    else if (id_stem(column))
        rt_import_warn(k->how,
                       "%s: column '%s' looks like a reference, and no table has such a key: it "
                       "gives no edges; --map FILE with '%s.%s -> TABLE' makes them",
                       t->name, column, t->type, column);
}

/* Is the column called like a key, and does it hold whole numbers? */
static bool is_key_like(const RtSourceTable *t, int c) {
    if (t->csv && strchr(t->csv->header[c], ':')) return false;
    bool whole =
        t->csv ? rt_column_is_integer(t->csv, c) : t->columns[c].declared == RT_DECLARED_INTEGER;
    return rt_is_id(t->columns[c].name) && whole;
}

/* Guesses which columns refer to other tables, by their names; false: no memory. */
static bool guess_references(const Keys *k, RtSourceTable *t) {
    for (int c = 0; c < t->n_columns; c++) {
        const char *name = t->columns[c].name;
        if (!is_free(&t->columns[c]) || in_key(t, c)) continue;
        int to = table_of_id(k->s, name);
        RtReference r = {.from = {1, {c}}, .table = to};
        if (to >= 0 && !rt_source_refer(k->pool, t, &r)) return false;
        if (to < 0 && is_key_like(t, c)) warn_of_lone_id(k, t, name, to);
    }
    return true;
}

/* Guesses the keys and references that no rule names; false: no memory. */
static bool guess_keys(const Keys *k) {
    for (int i = 0; i < k->s->n_tables; i++)
        if (!k->s->tables[i].key.n) guess_key(&k->s->tables[i]);
    for (int i = 0; i < k->s->n_tables; i++)
        if (!guess_references(k, &k->s->tables[i])) return false;
    return true;
}

/* ---- the mapping -------------------------------------------------------------------------- */
/* The table whose type has that name of n characters; -1: there is none. */
static int find_table(const RtSource *s, const char *name, size_t n) {
    for (int i = 0; i < s->n_tables; i++) {
        const char *type = s->tables[i].type;
        if (strlen(type) == n && memcmp(type, name, n) == 0) return i;
    }
    return -1;
}

static const char *or_no_memory(const char *text) {
    return text ? text : rt_map_no_memory;
}

static const char *listed(const Keys *k, const char *list, const char *name) {
    return or_no_memory(rt_pool_printf(k->pool, "%s%s%s", list, *list ? ", " : "", name));
}

/* Why a mapping is wrong: there is no such table. */
static const char *no_table(const Keys *k, const char *name, size_t n) {
    const char *list = "";
    for (int i = 0; i < k->s->n_tables; i++) list = listed(k, list, k->s->tables[i].type);
    return or_no_memory(
        rt_pool_printf(k->pool, "there is no table '%.*s'; there are %s", (int)n, name, list));
}

/* Why a mapping is wrong: the table has no such column. */
static const char *no_column(const Keys *k, const RtSourceTable *t, const char *name, size_t n) {
    const char *list = "";
    for (int i = 0; i < t->n_columns; i++) list = listed(k, list, t->columns[i].name);
    return or_no_memory(
        rt_pool_printf(k->pool, "%s has no column '%.*s'; it has %s", t->type, (int)n, name, list));
}

/* Does the name spell the column, with '_' where that has a blank or a comma? */
static bool is_spelt(const char *column, const char *name, size_t n) {
    if (strlen(column) != n) return false;
    for (size_t i = 0; i < n; i++)
        if (name[i] != (strchr(". ,\t#", column[i]) ? '_' : column[i])) return false;
    return true;
}

/* Or as a model spells it. */
static bool is_identifier(const Keys *k, const char *column, const char *name, size_t n) {
    const char *id = rt_identifier(k->pool, column, strlen(column));
    return id && strlen(id) == n && memcmp(id, name, n) == 0;
}

/* The column of that name: exactly, then whatever its case, then as names in models are made; -1:
 * none. */
static int find_spelt(const Keys *k, const RtSourceTable *t, const char *name, size_t n) {
    int c = rt_source_column(t, name, n);
    for (int i = 0; i < t->n_columns && c < 0; i++)
        if (is_spelt(t->columns[i].name, name, n)) c = i;
    for (int i = 0; i < t->n_columns && c < 0; i++)
        if (is_identifier(k, t->columns[i].name, name, n)) c = i;
    return c;
}

/* "a" or "a,b". */

/* Reads the columns of a key, "a,b". NULL: they are good; else why not. */
static const char *read_columns(Keys *k, const RtSourceTable *t, const char *s, size_t n,
                                RtKeyColumns *to) {
    to->n = 0;
    for (size_t at = 0; at <= n;) {
        size_t m = strcspn(s + at, ",");
        if (m > n - at) m = n - at;
        int c = find_spelt(k, t, s + at, m);
        if (c < 0) return no_column(k, t, s + at, m);
        if (to->n == RT_KEY_COLUMNS) return "that are more columns than a key can have";
        to->at[to->n++] = c;
        at += m + 1;
    }
    return NULL;
}

/* Drops what other sources say of references by these columns, as a rule says otherwise. */
static void forget_references(RtSourceTable *t, const RtKeyColumns *c) {
    int n = 0;
    for (int i = 0; i < t->n_references; i++) {
        const RtReference *r = &t->references[i];
        bool same = false;
        for (int a = 0; a < r->from.n; a++)
            for (int b = 0; b < c->n; b++) same |= r->from.at[a] == c->at[b];
        if (!same) t->references[n++] = *r;
    }
    t->n_references = n;
    for (int i = 0; i < t->n_columns; i++) t->columns[i].refers = false;
    for (int i = 0; i < n; i++)
        for (int a = 0; a < t->references[i].from.n; a++)
            t->columns[t->references[i].from.at[a]].refers = true;
}

/* Reads "races" or "codes.short", which a rule says that columns refer to. NULL: it is good; else
 * why not. */
static const char *refer(Keys *k, RtSourceTable *t, const RtKeyColumns *from, const char *s) {
    size_t n = strcspn(s, ".");
    RtReference r = {.from = *from, .table = find_table(k->s, s, n)};
    if (r.table < 0) return no_table(k, s, n);
    const RtSourceTable *to = &k->s->tables[r.table];
    const char *what = s[n] ? read_columns(k, to, s + n + 1, strlen(s + n + 1), &r.to) : NULL;
    if (what) return what;
    if (r.to.n && r.to.n != from->n) return "as many columns are expected on both sides";
    return rt_source_refer(k->pool, t, &r) ? NULL : rt_map_no_memory;
}

/* Makes the columns the table's key. NULL: it is good; else why not. */
static const char *make_key(RtSourceTable *t, const RtKeyColumns *c, bool *mapped) {
    if (*mapped && memcmp(&t->key, c, sizeof *c) != 0) return "the table has a key already";
    t->unique = t->unique && memcmp(&t->key, c, sizeof *c) == 0;
    t->key = *c;
    *mapped = true;
    return NULL;
}

/* One line of the mapping; NULL or what is wrong with it. */
static const char *read_rule(void *user, const char *s) {
    Keys *k = user;
    size_t n_table = strcspn(s, ". \t"), n_column;
    RtKeyColumns c = {0};
    if (s[n_table] != '.') return "'table.column what' is expected";
    int i = find_table(k->s, s, n_table);
    if (i < 0) return no_table(k, s, n_table);
    RtSourceTable *t = &k->s->tables[i];
    s += n_table + 1;
    n_column = strcspn(s, " \t");
    const char *what = read_columns(k, t, s, n_column, &c);
    if (what) return what;
    s += n_column + strspn(s + n_column, " \t");
    if (strcmp(s, "key") == 0) return make_key(t, &c, &k->mapped[i]);
    forget_references(t, &c);
    if (strncmp(s, "->", 2) == 0) return refer(k, t, &c, s + 2 + strspn(s + 2, " \t"));
    for (int j = 0; j < c.n && !what; j++) {
        RtSourceColumn *column = &t->columns[c.at[j]];
        what = rt_map_column(k->pool, s, &column->kind, &column->wish);
        if (!what)
            what = rt_map_row_time(k->pool, k->how, &column->wish, t->type, column->name,
                                   strlen(column->name));
    }
    return what;
}

/* Does each reference lead to a key, of as many columns? */
static gnnc_status check_references(const RtSource *s, const char *name, RtError *err) {
    for (int i = 0; i < s->n_tables; i++)
        for (int j = 0; j < s->tables[i].n_references; j++) {
            const RtSourceTable *t = &s->tables[i];
            RtReference *r = &t->references[j];
            const RtSourceTable *to = &s->tables[r->table];
            const char *column = t->columns[r->from.at[0]].name;
            if (!r->to.n) r->to = to->key;
            if (!r->to.n)
                return rt_fail(err, GNNC_E_MISSING, "%s: %s.%s refers to %s, which has no key",
                               name, t->type, column, to->type);
            if (r->to.n != r->from.n)
                return rt_fail(err, GNNC_E_FORMAT,
                               "%s: %s.%s refers to %s, whose key has %d columns, not %d", name,
                               t->type, column, to->type, r->to.n, r->from.n);
        }
    return GNNC_OK;
}

gnnc_status rt_source_keys(RtSource *s, const RtNamedBytes *mapping, RtImport *how, RtError *err) {
    Keys k = {s, how, &s->pool, RT_NEWN(&s->pool, bool, s->n_tables)};
    if (!k.mapped) return rt_fail_nomem(err, s->name);
    gnnc_status st = mapping ? rt_map_read(&s->pool, mapping, read_rule, &k, err) : GNNC_OK;
    if (st != GNNC_OK) return st;
    if (!s->declares && !guess_keys(&k)) return rt_fail_nomem(err, s->name);
    return check_references(s, mapping ? mapping->name : s->name, err);
}
