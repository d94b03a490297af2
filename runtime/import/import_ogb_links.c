/* Links to predict of the Open Graph Benchmark: train.pt, valid.pt and test.pt are dicts of
 * NumPy arrays, saved with torch.save():
 *     edge [M, 2], or source_node and target_node [M], or head and tail [M]
 *     relation, weight, year [M]     columns rel, weight, year
 *     edge_neg [M, 2]                pairs that are none: edge type no_<name>
 * As a zip archive (PyTorch 1.6 and later) the dict is <name>/data.pkl; older files are
 * pickles in a row: a magic number, a version, a description, then the dict.  Nothing in
 * a pickle is executed.  Lists of wrong ends per link (target_node_neg, head_neg) are
 * left out: they are no edges, and are drawn anew for training. */
#include <string.h>

#include "import_ogb.h"
#include "pickle.h"
#include "zip.h"

typedef struct {
    const RtPy *dict;
    const char *where;
    int part;
    RtArray ends[2]; /* [M] each, or both in ends[0] [M, 2] */
    bool pairs;
    int64_t n;
} Links;

enum { MOST_COLUMNS = 3 };
static const char *const extra[MOST_COLUMNS][2] = {
    {"relation", "rel"}, {"weight", "weight"}, {"year", "year"}};

/* ---- the dict ------------------------------------------------------------------- */
/* Finds the pickle in a file of PyTorch: in a zip archive, or behind three small ones in the older
 * form. */
static gnnc_status find_pickle(Ogb *o, RtBytes file, const char *where, RtBytes *out) {
    if (file.n > 4 && memcmp(file.p, "PK\3\4", 4) == 0) {
        RtZip z;
        gnnc_status st = rt_zip_open(&o->pool, file, where, &z, o->b.err);
        for (int i = 0; i < z.n && st == GNNC_OK; i++)
            if (rt_ends_with(z.entries[i].name, "/data.pkl"))
                return rt_zip_read(&o->pool, &z, &z.entries[i], out, o->b.err);
        return st != GNNC_OK ? st
                             : rt_fail(o->b.err, GNNC_E_FORMAT, "%s: no data.pkl in it", where);
    }
    *out = file;
    size_t at = 0;
    for (int k = 0; k < 3; k++) {
        while (at + 3 < file.n && memcmp(file.p + at, ".\x80\x02", 3) != 0) at++;
        if (at + 3 >= file.n) return GNNC_OK; /* one plain pickle */
        at++;
    }
    *out = (RtBytes){file.p + at, file.n - at};
    return GNNC_OK;
}

/* The value of a dictionary's key; NULL: it has none. */
static const RtPy *entry(const RtPy *dict, const char *key) {
    size_t n = strlen(key);
    for (int64_t i = 0; i + 1 < dict->n; i += 2) {
        const RtPy *k = dict->v[i];
        if (k->kind == RT_PY_STRING && k->s.n == n && memcmp(k->s.p, key, n) == 0)
            return dict->v[i + 1];
    }
    return NULL;
}

/* Reads an array of a split's file, row by row. */
static gnnc_status read_array(Ogb *o, const Links *l, const char *key, RtArray *a) {
    char *where = rt_pool_printf(&o->pool, "%s: %s", l->where, key);
    if (!where) return rt_fail_nomem(o->b.err, key);
    gnnc_status st = rt_pickle_array(&o->pool, entry(l->dict, key), where, a, o->b.err);
    if (st != GNNC_OK) return st;
    *a = rt_array_row_major(&o->pool, a);
    return a->data ? GNNC_OK : rt_fail_nomem(o->b.err, key);
}

/* Fills l->ends from `edge`-like keys; n = 0 where there are none. */
static gnnc_status read_ends(Ogb *o, Links *l, const char *pairs) {
    static const char *const keys[][2] = {{"source_node", "target_node"}, {"head", "tail"}};
    gnnc_status st = GNNC_OK;
    l->n = 0;
    l->pairs = entry(l->dict, pairs);
    if (l->pairs) {
        TRY(st, read_array(o, l, pairs, &l->ends[0]));
        if (l->ends[0].rank != 2 || l->ends[0].shape[1] != 2)
            return rt_fail(o->b.err, GNNC_E_SHAPE, "%s: %s: not [links, 2]", l->where, pairs);
        l->n = l->ends[0].shape[0];
        return GNNC_OK;
    }
    if (strcmp(pairs, "edge") != 0) return GNNC_OK;
    for (int k = 0; k < 2; k++) {
        if (!entry(l->dict, keys[k][0]) || !entry(l->dict, keys[k][1])) continue;
        for (int i = 0; i < 2; i++) TRY(st, read_array(o, l, keys[k][i], &l->ends[i]));
        l->n = l->ends[0].count;
        if (l->ends[0].rank != 1 || l->ends[1].rank != 1 || l->ends[1].count != l->n)
            return rt_fail(o->b.err, GNNC_E_SHAPE, "%s: %s: not as long as the other end", l->where,
                           keys[k][1]);
        return GNNC_OK;
    }
    st = rt_fail(o->b.err, GNNC_E_MISSING, "%s: no links: edge, source_node or head", l->where);
out:
    return st;
}

static int64_t end_of(const Links *l, int64_t i, int which) {
    return l->pairs ? rt_array_i64(&l->ends[0], 2 * i + which) : rt_array_i64(&l->ends[which], i);
}

/* ---- edges ----------------------------------------------------------------------- */
/* Copies the ends of pairs, which must be nodes. */
static gnnc_status copy_ends(Ogb *o, const Links *l, const RtTable *nodes, int32_t *from,
                             int32_t *to) {
    for (int64_t i = 0; i < l->n; i++) {
        int64_t v[2] = {end_of(l, i, 0), end_of(l, i, 1)};
        for (int k = 0; k < 2; k++)
            if (v[k] < 0 || v[k] >= nodes->count)
                return rt_fail(o->b.err, GNNC_E_RANGE, "%s: row %lld: there is no node %lld",
                               l->where, (long long)i, (long long)v[k]);
        from[i] = (int32_t)v[0];
        to[i] = (int32_t)v[1];
    }
    return GNNC_OK;
}

/* Adds a column that all parts have, as year; where one lacks it nothing is added. */
static gnnc_status add_extra(Ogb *o, Links *all, int n, RtTable *t, const char *key,
                             const char *name) {
    double *v = RT_NEWN(&o->b.d->pool, double, t->count);
    int64_t at = 0;
    bool whole = true;
    gnnc_status st = GNNC_OK;
    if (!v) return rt_fail_nomem(o->b.err, key);
    for (int i = 0; i < n; i++) {
        RtArray a;
        if (!entry(all[i].dict, key)) return GNNC_OK;
        TRY(st, read_array(o, &all[i], key, &a));
        if (a.count != all[i].n)
            return rt_fail(o->b.err, GNNC_E_SHAPE, "%s: %s: not one per link", all[i].where, key);
        whole &= rt_dtype_kind(a.dt) != 'f';
        for (int64_t j = 0; j < a.count; j++) v[at++] = rt_array_f64(&a, j);
    }
    int64_t *ints =
        (int64_t *)(void *)v; /* the same bytes, so that whole numbers may be categories */
    for (int64_t j = 0; whole && j < t->count; j++) {
        double x = v[j];
        int64_t k = (int64_t)x;
        memcpy(&ints[j], &k, sizeof k);
    }
    RtArray column = {.dt = whole ? RT_DT_I64 : RT_DT_F64,
                      .rank = 1,
                      .shape = {t->count},
                      .count = t->count,
                      .data = v};
    st = rt_build_array(&o->b, t, name, key, &column);
out:
    return st;
}

/* Makes an edge type of the pairs in all parts, with the split that they are in. */
static gnnc_status add_links(Ogb *o, const RtTable *nodes, Links *all, int n, const char *pairs,
                             const char *name) {
    int64_t total = 0, at = 0;
    RtTable *t;
    RtColumn *split;
    gnnc_status st = GNNC_OK;
    for (int i = 0; i < n; i++) {
        TRY(st, read_ends(o, &all[i], pairs));
        total += all[i].n;
    }
    if (total == 0) return GNNC_OK;
    int32_t *from = RT_NEWN(&o->b.d->pool, int32_t, total);
    int32_t *to = RT_NEWN(&o->b.d->pool, int32_t, total);
    if (!from || !to) return rt_fail_nomem(o->b.err, name);
    TRY(st, rt_build_edges(&o->b, name, nodes, nodes, total, from, to, &t));
    TRY(st, rt_build_split(&o->b, t, 1, &split));
    for (int i = 0; i < n; i++) {
        TRY(st, copy_ends(o, &all[i], nodes, from + at, to + at));
        memset((int8_t *)(uintptr_t)split->splits + at, all[i].part, (size_t)all[i].n);
        at += all[i].n;
    }
    for (int i = 0; i < MOST_COLUMNS && strcmp(pairs, "edge") == 0 && st == GNNC_OK; i++)
        st = add_extra(o, all, n, t, extra[i][0], extra[i][1]);
out:
    return st;
}

gnnc_status rt_ogb_links(Ogb *o, const RtTable *nodes, const char *dir) {
    static const char *const parts[] = {"train", "valid", "test"};
    Links all[3];
    int n = 0;
    gnnc_status st = GNNC_OK;
    for (int p = 0; p < 3; p++) {
        RtBytes file, pickle;
        RtPy *dict;
        bool found;
        char *name = rt_pool_printf(&o->pool, "%s/%s.pt", dir, parts[p]);
        if (!name) return rt_fail_nomem(o->b.err, dir);
        TRY(st, rt_folder_get(&o->pool, o->f, name, &file, &found, o->b.err));
        if (!found) continue;
        TRY(st, find_pickle(o, file, name, &pickle));
        TRY(st, rt_pickle_parse(&o->pool, pickle, name, &dict, o->b.err));
        if (dict->kind != RT_PY_DICT)
            return rt_fail(o->b.err, GNNC_E_FORMAT, "%s: a dict of arrays is expected", name);
        all[n++] = (Links){.dict = dict, .where = name, .part = p + 1};
    }
    if (n == 0) return GNNC_OK;
    TRY(st, add_links(o, nodes, all, n, "edge", "target"));
    st = add_links(o, nodes, all, n, "edge_neg", "no_target");
out:
    return st;
}
