/* DGL GraphBolt's OnDiskDataset: metadata.yaml names .npy and headerless .csv files.
 *     graph: nodes (type, num), edges (type "a:r:b", format, path)
 *     feature_data: domain, type, name, format, path
 *     tasks: train_set, validation_set, test_set of (type, data: seeds, labels, ..)
 * The first task gives labels and splits: seeds [M] are nodes, with labels the column y;
 * seeds [M, 2] are links, an edge type `target` (`label` = 0 for those that are none).
 * Older releases say seed_nodes and node_pairs for seeds. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/data/csv.h"
#include "import_build.h"
#include "import_folder.h"
#include "runtime/data/number.h"
#include "yaml.h"

typedef struct {
    RtBuild b;
    RtPool pool;
    const RtFolder *f;
} OnDisk;

static const char FILE_NAME[] = "metadata.yaml";

static gnnc_status bad(OnDisk *o, const RtJson *at, const char *what) {
    return rt_fail(o->b.err, GNNC_E_FORMAT, "%s/%s:%d: %s", o->f->name, FILE_NAME,
                   at ? at->line : 1, what);
}

static const char *text_of(const RtJson *v, const char *key) {
    const RtJson *t = rt_json_get(v, key);
    return t && t->kind == RT_JSON_STRING ? t->text : NULL;
}

static const RtJson *list_of(const RtJson *v, const char *key) {
    const RtJson *l = rt_json_get(v, key);
    return l && l->kind == RT_JSON_ARRAY ? l->first : NULL;
}

/* The array that `path` and `format` of an entry name, row-major. */
static gnnc_status read_array(OnDisk *o, const RtJson *v, RtArray *a, const char **where) {
    const char *path = text_of(v, "path"), *format = text_of(v, "format");
    RtPool *pool = &o->b.d->pool;
    RtBytes file;
    bool found;
    if (!path || !format) return bad(o, v, "'path' and 'format' are needed");
    char *name = rt_pool_printf(&o->pool, "%s/%s", o->f->name, path);
    if (!name) return rt_fail_nomem(o->b.err, path);
    *where = name;
    if (strcmp(format, "numpy") != 0 && strcmp(format, "csv") != 0)
        return bad(o, v, "format: 'numpy' and 'csv' are read, 'torch' is not");
    gnnc_status st = rt_folder_get(pool, o->f, path, &file, &found, o->b.err);
    if (st != GNNC_OK) return st;
    if (!found) return rt_fail(o->b.err, GNNC_E_MISSING, "%s: no such file", name);
    if (strcmp(format, "csv") == 0) return rt_numbers(pool, file, name, a, o->b.err);
    st = rt_npy_parse(pool, file, name, a, o->b.err);
    if (st != GNNC_OK) return st;
    *a = rt_array_row_major(pool, a);
    return a->data ? GNNC_OK : rt_fail_nomem(o->b.err, name);
}

/* ---- the graph --------------------------------------------------------------------- */
/* Makes the node types; one without a name has the option's. */
static gnnc_status read_nodes(OnDisk *o, const RtJson *graph) {
    gnnc_status st = GNNC_OK;
    const char *one = o->b.how->node ? o->b.how->node : "vertex";
    for (const RtJson *v = list_of(graph, "nodes"); v && st == GNNC_OK; v = v->next) {
        RtTable *t;
        int64_t n;
        const char *type = text_of(v, "type"), *num = text_of(v, "num");
        if (!num || !rt_cell_integer(num, &n)) return bad(o, v, "'num' is no number of nodes");
        st = rt_build_nodes(&o->b, type ? type : one, n, &t);
    }
    if (st == GNNC_OK && o->b.d->n_nodes == 0) return bad(o, graph, "no 'nodes' under 'graph'");
    return st;
}

/* The table that a type names; none given: the only one. */
static RtTable *table_of(OnDisk *o, RtTable *all, int n, const char *type) {
    if (!type) return n == 1 ? all : NULL;
    char *id = rt_identifier(&o->pool, type, strlen(type));
    for (int i = 0; id && i < n; i++)
        if (strcmp(all[i].name, id) == 0) return &all[i];
    return NULL;
}

/* "user:follows:user" as user__follows__user; *src, *dst = its node types, or NULL. */
static char *edge_name(OnDisk *o, const char *type, RtTable **src, RtTable **dst) {
    RtDataset *d = o->b.d;
    const char *a = strchr(type, ':'), *b = a ? strchr(a + 1, ':') : NULL;
    *src = *dst = NULL;
    if (!b) return NULL;
    char *from = rt_pool_strndup(&o->pool, type, (size_t)(a - type));
    *src = from ? table_of(o, d->nodes, d->n_nodes, from) : NULL;
    *dst = table_of(o, d->nodes, d->n_nodes, b + 1);
    return rt_pool_printf(&o->pool, "%.*s__%.*s__%s", (int)(a - type), type, (int)(b - a - 1),
                          a + 1, b + 1);
}

/* [2, E], or rows of two in a text file. */
static gnnc_status split_ends(OnDisk *o, const RtJson *v, const RtArray *a, bool rows, int64_t *n,
                              int32_t **from, int32_t **to) {
    if (a->rank != 2 || rt_dtype_kind(a->dt) == 'f' || (a->count && a->shape[rows ? 1 : 0] != 2))
        return bad(o, v,
                   rows ? "rows of two node numbers are expected"
                        : "whole numbers [2, edges] are expected");
    *n = a->count / 2;
    *from = RT_NEWN(&o->b.d->pool, int32_t, *n);
    *to = RT_NEWN(&o->b.d->pool, int32_t, *n);
    if (!*from || !*to) return rt_fail_nomem(o->b.err, FILE_NAME);
    for (int64_t i = 0; i < a->count; i++) {
        int64_t x = rt_array_i64(a, i);
        if (x < 0 || x >= INT32_MAX)
            return rt_fail(o->b.err, GNNC_E_RANGE, "%s/%s:%d: edge %lld: %lld is no node number",
                           o->f->name, FILE_NAME, v->line, (long long)(rows ? i / 2 : i % *n),
                           (long long)x);
        bool second = rows ? i % 2 : i >= *n;
        (second ? *to : *from)[rows ? i / 2 : i % *n] = (int32_t)x;
    }
    return GNNC_OK;
}

/* Reads all edge types. */
static gnnc_status read_edges(OnDisk *o, const RtJson *graph) {
    gnnc_status st = GNNC_OK;
    for (const RtJson *v = list_of(graph, "edges"); v && st == GNNC_OK; v = v->next) {
        RtTable *src = o->b.d->nodes, *dst = src, *t;
        RtArray a;
        int32_t *from = NULL, *to = NULL;
        int64_t n = 0;
        const char *where, *type = text_of(v, "type"), *format = text_of(v, "format");
        const char *name = o->b.how->edge ? o->b.how->edge : "link";
        if (type) name = edge_name(o, type, &src, &dst);
        if (!type && o->b.d->n_nodes != 1) return bad(o, v, "edges of several types need 'type'");
        if (!name || !src || !dst) return bad(o, v, "type: node types 'a:relation:b' are expected");
        TRY(st, read_array(o, v, &a, &where));
        TRY(st, split_ends(o, v, &a, strcmp(format, "csv") == 0, &n, &from, &to));
        st = rt_build_edges(&o->b, name, src, dst, n, from, to, &t);
    }
out:
    return st;
}

/* Reads the columns that the list describes. */
static gnnc_status read_features(OnDisk *o, const RtJson *list) {
    gnnc_status st = GNNC_OK;
    RtDataset *d = o->b.d;
    for (const RtJson *v = list; v && st == GNNC_OK; v = v->next) {
        const char *domain = text_of(v, "domain"), *type = text_of(v, "type"), *where;
        const char *name = text_of(v, "name");
        RtTable *t = NULL, *src, *dst;
        RtArray a;
        if (!domain || !name) return bad(o, v, "'domain' and 'name' are needed");
        if (strcmp(domain, "node") == 0) t = table_of(o, d->nodes, d->n_nodes, type);
        if (strcmp(domain, "edge") == 0)
            t = table_of(o, d->edges, d->n_edges, type ? edge_name(o, type, &src, &dst) : NULL);
        if (!t) return bad(o, v, "'domain' and 'type' name no table of the graph");
        TRY(st, read_array(o, v, &a, &where));
        st = rt_build_array(&o->b, t, name, where, &a);
    }
out:
    return st;
}

/* ---- the first task ------------------------------------------------------------------ */
typedef struct {
    const RtJson *at;
    const char *type, *where;
    int part;
    RtArray seeds, labels;
    bool has_labels;
} Set;

enum { MOST_SETS = 256 };

static bool is_seeds(const char *name) {
    return strcmp(name, "seeds") == 0 || strcmp(name, "seed_nodes") == 0 ||
           strcmp(name, "node_pairs") == 0;
}

/* Reads one set of seeds, with their labels if it has some. */
static gnnc_status read_set(OnDisk *o, const RtJson *v, int part, Set *s) {
    gnnc_status st = GNNC_OK;
    bool seeds = false;
    *s = (Set){.at = v, .type = text_of(v, "type"), .part = part};
    for (const RtJson *x = list_of(v, "data"); x && st == GNNC_OK; x = x->next) {
        const char *name = text_of(x, "name"), *where;
        if (!name) return bad(o, x, "'name' is needed");
        if (is_seeds(name)) {
            TRY(st, read_array(o, x, &s->seeds, &s->where));
            seeds = true;
        } else if (strcmp(name, "labels") == 0) {
            TRY(st, read_array(o, x, &s->labels, &where));
            s->has_labels = true;
        }
    }
    if (!seeds) return bad(o, v, "no data are called 'seeds'");
    if (s->seeds.rank == 2 && s->seeds.shape[1] == 1) s->seeds.rank = 1; /* a text file */
    if (rt_dtype_kind(s->seeds.dt) == 'f') return bad(o, v, "seeds are whole numbers");
    if (s->has_labels && (s->labels.rank < 1 || s->labels.shape[0] != s->seeds.shape[0] ||
                          s->labels.count != s->labels.shape[0]))
        return bad(o, v, "one label for every seed is expected");
out:
    return st;
}

/* Reads the sets of all three parts; seeds are nodes [M] or pairs [M, 2]. */
static gnnc_status read_sets(OnDisk *o, const RtJson *task, Set *set, int *n) {
    static const char *const parts[] = {"train_set", "validation_set", "test_set"};
    gnnc_status st = GNNC_OK;
    *n = 0;
    for (int p = 0; p < 3; p++)
        for (const RtJson *v = list_of(task, parts[p]); v && st == GNNC_OK; v = v->next) {
            if (*n == MOST_SETS) return bad(o, v, "too many sets");
            st = read_set(o, v, p + 1, &set[(*n)++]);
            if (st == GNNC_OK && (set[*n - 1].seeds.rank < 1 || set[*n - 1].seeds.rank > 2))
                return bad(o, v, "seeds are [M] or [M, 2]");
        }
    return st;
}

static bool same_type(const Set *a, const Set *b) {
    return a->seeds.rank == b->seeds.rank &&
           (a->type ? b->type && !strcmp(a->type, b->type) : !b->type);
}

/* Labels and split of a node type from all sets like s. */
static gnnc_status add_node_task(OnDisk *o, const Set *s, const Set *end, int64_t n_classes) {
    RtTable *t = table_of(o, o->b.d->nodes, o->b.d->n_nodes, s->type);
    RtColumn *split;
    gnnc_status st;
    if (!t) return bad(o, s->at, "'type' names no node type");
    double *y = RT_NEWN(&o->b.d->pool, double, t->count);
    int64_t *whole = RT_NEWN(&o->b.d->pool, int64_t, t->count);
    if (!y || !whole) return rt_fail_nomem(o->b.err, FILE_NAME);
    for (int64_t i = 0; i < t->count; i++) y[i] = NAN, whole[i] = -1;
    bool labels = false, real = false;
    TRY(st, rt_build_split(&o->b, t, 1, &split));
    for (const Set *x = s; x < end; x++) {
        if (!same_type(x, s)) continue;
        labels |= x->has_labels;
        real |= x->has_labels && rt_dtype_kind(x->labels.dt) == 'f';
        for (int64_t i = 0; i < x->seeds.count; i++) {
            int64_t row = rt_array_i64(&x->seeds, i);
            TRY(st, rt_build_part(&o->b, split, 0, x->where, row, x->part));
            if (!x->has_labels) continue;
            y[row] = rt_array_f64(&x->labels, i);
            whole[row] = rt_array_i64(&x->labels, i);
        }
    }
    if (!labels) return GNNC_OK;
    RtArray a = {.dt = real ? RT_DT_F64 : RT_DT_I64,
                 .rank = 1,
                 .shape = {t->count},
                 .count = t->count,
                 .data = real ? (void *)y : (void *)whole};
    TRY(st, rt_build_array(&o->b, t, "y", "labels", &a));
    RtColumn *c = &t->columns[t->n_columns - 1];
    if (c->kind == RT_COL_CLASS && c->n_categories < n_classes) c->n_categories = n_classes;
out:
    return st;
}

/* Makes an edge type of the pairs in all sets of a type, with split and labels. */
static gnnc_status add_link_task(OnDisk *o, const Set *s, const Set *end) {
    RtTable *src = o->b.d->nodes, *dst = src, *t;
    RtColumn *split;
    int64_t n = 0, at = 0;
    bool labels = false;
    gnnc_status st;
    const char *name = "target";
    if (s->type) {
        name = edge_name(o, s->type, &src, &dst);
        name = name ? rt_pool_printf(&o->pool, "target__%s", name) : NULL;
    }
    if (!name || !src || !dst) return bad(o, s->at, "'type' names no edge type");
    for (const Set *x = s; x < end; x++) {
        if (!same_type(x, s)) continue;
        if (x->seeds.shape[1] != 2) return bad(o, x->at, "seeds are [M] or [M, 2]");
        n += x->seeds.shape[0];
        labels |= x->has_labels;
    }
    int32_t *ends = RT_NEWN(&o->b.d->pool, int32_t, 2 * n), *y = RT_NEWN(&o->b.d->pool, int32_t, n);
    if (!ends || !y) return rt_fail_nomem(o->b.err, FILE_NAME);
    TRY(st, rt_build_edges(&o->b, name, src, dst, n, ends, ends + n, &t));
    TRY(st, rt_build_split(&o->b, t, 1, &split));
    for (const Set *x = s; x < end; x++) {
        if (!same_type(x, s)) continue;
        for (int64_t i = 0; i < x->seeds.shape[0]; i++, at++) {
            int64_t u = rt_array_i64(&x->seeds, 2 * i), v = rt_array_i64(&x->seeds, 2 * i + 1);
            if (u < 0 || v < 0 || u >= src->count || v >= dst->count)
                return rt_fail(o->b.err, GNNC_E_RANGE, "%s: row %lld: there is no such node",
                               x->where, (long long)i);
            ends[at] = (int32_t)u, ends[n + at] = (int32_t)v;
            y[at] = !x->has_labels || rt_array_f64(&x->labels, i) != 0;
            TRY(st, rt_build_part(&o->b, split, 0, x->where, at, x->part));
        }
    }
    if (!labels) return GNNC_OK;
    RtColumn *c = rt_build_column(&o->b, t, RT_COL_CLASS, "label");
    if (!c) return o->b.st;
    c->i32 = y;
    c->n_categories = 2;
out:
    return st;
}

/* Reads a task: of nodes or of pairs, each type once. */
static gnnc_status read_task(OnDisk *o, const RtJson *task) {
    Set *set = RT_NEWN(&o->pool, Set, MOST_SETS);
    int n = 0;
    int64_t n_classes = 0;
    const char *classes = text_of(task, "num_classes");
    gnnc_status st;
    if (!set) return rt_fail_nomem(o->b.err, FILE_NAME);
    if (classes && (!rt_cell_integer(classes, &n_classes) || n_classes > 1 << 24))
        return bad(o, task, "'num_classes' is no number of classes");
    TRY(st, read_sets(o, task, set, &n));
    for (int i = 0; i < n && st == GNNC_OK; i++) {
        bool first = true;
        for (int j = 0; j < i; j++) first &= !same_type(&set[j], &set[i]);
        if (!first) continue;
        st = set[i].seeds.rank == 1 ? add_node_task(o, &set[i], set + n, n_classes)
                                    : add_link_task(o, &set[i], set + n);
    }
out:
    return st;
}

/* ---- all of it ---------------------------------------------------------------------- */
static int count_list(const RtJson *v, const char *key) {
    const RtJson *l = rt_json_get(v, key);
    return l && l->kind == RT_JSON_ARRAY ? l->n : 0;
}

/* Reads the description of a data set, and what it names. */
static gnnc_status read_all(OnDisk *o, const RtAlloc *from, RtImport *how, RtError *err) {
    RtBytes text;
    RtJson *meta;
    bool found;
    gnnc_status st;
    o->b.err = err;
    TRY(st, rt_folder_get(&o->pool, o->f, FILE_NAME, &text, &found, err));
    if (!found) return rt_fail(err, GNNC_E_MISSING, "%s: no %s", o->f->name, FILE_NAME);
    TRY(st, rt_yaml_parse(&o->pool, text, FILE_NAME, &meta, err));
    const RtJson *graph = rt_json_get(meta, "graph"), *task = list_of(meta, "tasks");
    if (!graph) return bad(o, meta, "no 'graph'");
    if (!how->name) how->name = text_of(meta, "dataset_name");
    TRY(st, rt_build_begin(&o->b, from, o->f->name, how, count_list(graph, "nodes"),
                           count_list(graph, "edges") + MOST_SETS, 0, err));
    TRY(st, read_nodes(o, graph));
    TRY(st, read_edges(o, graph));
    TRY(st, read_features(o, list_of(graph, "feature_data")));
    TRY(st, read_features(o, list_of(meta, "feature_data")));
    if (task) TRY(st, read_task(o, task));
    st = rt_build_finish(&o->b);
out:
    return st;
}

/* Reads a folder of an OnDiskDataset of DGL. */
gnnc_status rt_import_ondisk(const RtAlloc *from, const RtFolder *f, RtImport *how, RtDataset **out,
                             RtError *err) {
    OnDisk o = {.f = f};
    const char *name = how->name;
    rt_pool_init(&o.pool, from);
    gnnc_status st = read_all(&o, from, how, err);
    how->name = name; /* not one that lives in our pool */
    return rt_build_end(&o.b, &o.pool, st, out);
}
