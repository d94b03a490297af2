/* Tables, splits and names for the readers of many-type forms. */
#include "import_build.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "runtime/data/csv.h"
#include "runtime/data/names.h"
#include "runtime/data/relation.h"

gnnc_status rt_build_begin(RtBuild *b, const RtAlloc *from, const char *name, RtImport *how,
                           int n_nodes, int n_edges, int n_graphs, RtError *err) {
    *b = (RtBuild){.how = how, .err = err, .name = name, .room = {n_nodes, n_edges, n_graphs}};
    RtDataset *d = rt_dataset_new(from);
    if (!d) return rt_fail_nomem(err, name);
    const char *const text[] = {how->name, how->source, how->licence};
    const char **const to[] = {&d->name, &d->source, &d->licence};
    bool ok = true;
    for (int i = 0; i < 3; i++) {
        *to[i] = rt_pool_strndup(&d->pool, text[i] ? text[i] : "", text[i] ? strlen(text[i]) : 0);
        ok = ok && *to[i];
    }
    d->nodes = RT_NEWN(&d->pool, RtTable, n_nodes);
    d->edges = RT_NEWN(&d->pool, RtTable, n_edges);
    d->graphs = RT_NEWN(&d->pool, RtTable, n_graphs);
    b->d = d;
    if (ok && d->nodes && d->edges && d->graphs) return GNNC_OK;
    rt_dataset_close(d);
    b->d = NULL;
    return rt_fail_nomem(err, name);
}

/* ---- names ------------------------------------------------------------------------ */
/* Is it a word of the language, which cannot name anything? */
static bool is_word(const char *s) {
    static const char *const words[] = {
        "import", "const", "graph", "node",  "edge", "model", "train", "layer", "fn",
        "extern", "param", "state", "for",   "in",   "if",    "else",  "while", "return",
        "and",    "or",    "not",   "where", "as",   "true",  "false", "none",  "csr",
        "f32",    "f64",   "f16",   "bf16",  "i32",  "i64",   "bool"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(s, words[i]) == 0) return true;
    return false;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* Puts the character at s: as it is, as its code where ASCII lacks it, so that tables of other
 * scripts differ, or '_'.  How many bytes it has. */
static size_t put_character(const char *s, size_t n, char **to) {
    const unsigned char *u = (const unsigned char *)s;
    size_t k = *u < 0x80 ? 1 : rt_utf8_length(u, n);
    uint32_t code = *u & (k == 2 ? 0x1f : k == 3 ? 0x0f : 0x07);
    bool plain = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || is_digit(*s);
    for (size_t i = 1; i < k; i++) code = code << 6 | (u[i] & 0x3f);
    if (k > 1)
        *to += sprintf(*to, "u%04x", code);
    else
        *(*to)++ = plain ? *s : '_';
    return k ? k : 1;
}

/* Hashes n characters by FNV-1a of 32 bits. */
static uint32_t hash_of(const char *s, size_t n) {
    uint32_t h = 0x811c9dc5u;
    for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)s[i]) * 0x01000193u;
    return h;
}

/* What is too long ends in a hash of all of it. */
char *rt_identifier(RtPool *pool, const char *s, size_t n) {
    enum { MOST = 56, HASH = 9, WIDEST = 8 }; /* "_01234567", "u10ffff" */
    char name[2 + MOST + WIDEST], *p = name;
    if (n && is_digit(*s)) *p++ = '_';
    for (size_t i = 0; i < n && s[i] && p <= name + MOST;) i += put_character(s + i, n - i, &p);
    *p = '\0';
    if (p > name + MOST) snprintf(name + MOST - HASH, HASH + 1, "_%08x", hash_of(s, strnlen(s, n)));
    return rt_pool_printf(pool, "%s%s", name, is_word(name) ? "_" : "");
}

/* Is the name in the list, which ends with NULL? */
static bool is_one_of(const char *name, const char *const *list) {
    for (; *list; list++)
        if (strcmp(name, *list) == 0) return true;
    return false;
}

bool rt_is_label(const char *name) {
    return is_one_of(name, (const char *const[]){"y", "label", "labels", "class", NULL});
}

bool rt_is_time(const char *name) {
    return is_one_of(name, (const char *const[]){"t", "time", "timestamp", "date", NULL}) ||
           rt_ends_with(name, "_time") || rt_ends_with(name, "_date");
}

bool rt_may_be_time(const char *name) {
    static const char *const ends[] = {"date", "time", "day"};
    size_t n = strlen(name);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t k = strlen(ends[i]);
        if (n >= k && strcasecmp(name + n - k, ends[i]) == 0) return true;
    }
    return false;
}

static bool is_lower(char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

size_t rt_id_stem(const char *name, size_t n, bool *sure) {
    *sure = false;
    if (n < 3 || strncasecmp(name + n - 2, "id", 2) != 0) return 0;
    bool apart = name[n - 3] == '_', raised = name[n - 2] == 'I' && is_lower(name[n - 3]);
    *sure = apart || raised;
    return apart ? n - 3 : n - 2;
}

bool rt_is_id(const char *name) {
    bool sure;
    return strcasecmp(name, "id") == 0 || (rt_id_stem(name, strlen(name), &sure) && sure);
}

gnnc_status rt_lines(RtPool *pool, RtBytes text, const char *name, const char ***line, int64_t *n,
                     RtError *err) {
    char *s = rt_pool_strndup(pool, (const char *)text.p, text.n), *end = s ? s + text.n : NULL;
    int64_t cap = 1;
    for (size_t i = 0; i < text.n; i++) cap += text.p[i] == '\n';
    *line = s ? RT_NEWN(pool, const char *, cap) : NULL;
    *n = 0;
    if (!*line) return rt_fail_nomem(err, name);
    while (s < end) {
        char *eol = memchr(s, '\n', (size_t)(end - s)), *stop = eol ? eol : end;
        if (memchr(s, 0, (size_t)(stop - s)))
            return rt_fail(err, GNNC_E_FORMAT, "%s: row %lld: holds a NUL byte", name,
                           (long long)*n + 1);
        (*line)[(*n)++] = s;
        s = stop + 1;
        if (stop > (*line)[*n - 1] && stop[-1] == '\r') stop--;
        *stop = 0;
    }
    return GNNC_OK;
}

/* ---- tables ------------------------------------------------------------------------ */
/* Adds a table; names become those that models can use, and differ. */
static gnnc_status new_table(RtBuild *b, int section, RtTable *all, int *n, const char *name,
                             int64_t count, RtTable **out) {
    if (count < 0 || count > INT32_MAX)
        return rt_fail(b->err, GNNC_E_RANGE, "%s: %s: %lld rows: at most 2^31 - 1 are possible",
                       b->name, name, (long long)count);
    if (*n >= b->room[section])
        return rt_fail(b->err, GNNC_E_LIMIT, "%s: %s: too many tables", b->name, name);
    char *id = rt_identifier(&b->d->pool, name, strlen(name));
    if (!id) return rt_fail_nomem(b->err, name);
    if (!*id) return rt_fail(b->err, GNNC_E_FORMAT, "%s: a table has no name", b->name);
    for (int i = 0; i < *n; i++)
        if (strcmp(all[i].name, id) == 0)
            return rt_fail(b->err, GNNC_E_FORMAT, "%s: two types are called '%s'", b->name, id);
    *out = &all[(*n)++];
    **out = (RtTable){.name = id, .count = count, .graph = -1, .src_type = -1, .dst_type = -1};
    return GNNC_OK;
}

gnnc_status rt_build_nodes(RtBuild *b, const char *name, int64_t count, RtTable **out) {
    return new_table(b, 0, b->d->nodes, &b->d->n_nodes, name, count, out);
}

gnnc_status rt_build_graphs(RtBuild *b, const char *name, int64_t count, RtTable **out) {
    return new_table(b, 2, b->d->graphs, &b->d->n_graphs, name, count, out);
}

gnnc_status rt_build_edges(RtBuild *b, const char *name, const RtTable *src, const RtTable *dst,
                           int64_t n, const int32_t *from, const int32_t *to, RtTable **out) {
    gnnc_status st = new_table(b, 1, b->d->edges, &b->d->n_edges, name, n, out);
    if (st != GNNC_OK) return st;
    (*out)->src_type = (int)(src - b->d->nodes);
    (*out)->dst_type = (int)(dst - b->d->nodes);
    (*out)->src = from;
    (*out)->dst = to;
    return GNNC_OK;
}

RtColumn *rt_build_column(RtBuild *b, RtTable *t, rt_col_kind kind, const char *name) {
    RtPool *pool = &b->d->pool;
    char *id = rt_identifier(pool, name, strlen(name));
    bool taken = id && rt_table_column(t, id);
    if (id && !*id) {
        b->st = rt_fail(b->err, GNNC_E_FORMAT, "%s: '%s' has a column without a name", b->name,
                        t->name);
        return NULL;
    }
    RtColumn *c = id && !taken ? rt_table_add_column(pool, t) : NULL;
    if (taken)
        b->st =
            rt_fail(b->err, GNNC_E_FORMAT, "%s: '%s' has two columns '%s'", b->name, t->name, id);
    else if (!c)
        b->st = rt_fail_nomem(b->err, name);
    if (!c) return NULL;
    *c = (RtColumn){.name = id, .kind = kind, .n_rows = t->count, .rank = 1};
    c->shape[0] = t->count;
    return c;
}

gnnc_status rt_build_names(RtBuild *b, RtTable *t, const char *const *names) {
    RtPool *pool = &b->d->pool;
    int32_t *v = RT_NEWN(pool, int32_t, t->count);
    const char **copy = RT_NEWN(pool, const char *, t->count);
    if (!v || !copy) return rt_fail_nomem(b->err, t->name);
    for (int64_t i = 0; i < t->count; i++) {
        v[i] = (int32_t)i;
        if (!(copy[i] = rt_pool_strndup(pool, names[i], strlen(names[i]))))
            return rt_fail_nomem(b->err, t->name);
    }
    RtColumn *c = rt_build_column(b, t, RT_COL_CAT, "name");
    if (!c) return b->st;
    c->i32 = v;
    c->names = copy;
    c->n_categories = t->count;
    return GNNC_OK;
}

/* ---- splits ------------------------------------------------------------------------- */
gnnc_status rt_build_split(RtBuild *b, RtTable *t, int n_splits, RtColumn **out) {
    RtColumn *c = (RtColumn *)(uintptr_t)rt_table_column(t, "split");
    *out = c;
    if (c && c->kind == RT_COL_SPLIT && c->n_splits == n_splits) return GNNC_OK;
    int8_t *to = rt_pool_alloc(&b->d->pool, (size_t)n_splits, (size_t)t->count);
    if (!to) return rt_fail_nomem(b->err, t->name);
    *out = c = rt_build_column(b, t, RT_COL_SPLIT, "split");
    if (!c) return b->st;
    c->n_splits = n_splits;
    c->splits = to;
    return GNNC_OK;
}

gnnc_status rt_build_part(RtBuild *b, RtColumn *split, int k, const char *where, int64_t row,
                          int part) {
    int8_t *to = (int8_t *)(uintptr_t)split->splits + k * split->n_rows;
    if (row < 0 || row >= split->n_rows)
        return rt_fail(b->err, GNNC_E_RANGE, "%s: there is no row %lld: there are %lld", where,
                       (long long)row, (long long)split->n_rows);
    if (to[row])
        return rt_fail(b->err, GNNC_E_RANGE, "%s: row %lld is in two parts of the split", where,
                       (long long)row);
    to[row] = (int8_t)part;
    return GNNC_OK;
}

/* ---- the end -------------------------------------------------------------------------- */
gnnc_status rt_build_finish(RtBuild *b) {
    gnnc_status st = rt_import_finish(b->d, b->how, b->err);
    for (int i = 0; i < b->d->n_edges && st == GNNC_OK && b->how->undirected; i++) {
        if (b->d->edges[i].src_type == b->d->edges[i].dst_type)
            st = rt_import_undirected(b->d, &b->d->edges[i], b->err);
        else
            st = rt_fail(b->err, GNNC_E_ARG,
                         "%s: edges '%s' join two types: they have no second direction", b->name,
                         b->d->edges[i].name);
    }
    return st;
}

gnnc_status rt_build_end(RtBuild *b, RtPool *scratch, gnnc_status st, RtDataset **out) {
    rt_pool_free(scratch);
    *out = st == GNNC_OK ? b->d : NULL;
    if (st != GNNC_OK) rt_dataset_close(b->d);
    return st;
}
