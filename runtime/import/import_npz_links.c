/* Knowledge graphs, links to predict, and event streams in .npz archives.
 *     triples [T, 3], num_nodes, num_relations, train_idx, train_y, test_idx, test_y
 *     train, valid, test [T, 3]                     head, relation, tail
 *     num_nodes, train_edges, val_edges, test_edges [2, M], val_neg, test_neg
 *     num_users, num_items, train, val, test [2, M] user, item
 *     src, dst [M], t [M], train_end, val_end       rows before are train / validation */
#include <string.h>

#include "import_npz.h"

typedef struct {
    const char *key;
    int part;
} Part;

/* ---- triples -------------------------------------------------------------------- */
typedef struct {
    int32_t *head, *rel, *tail;
    int8_t *split;
    int64_t n, n_entities, n_relations; /* counts: what the numbers say */
} Triples;

/* Adds rows (head, relation, tail) of a part. */
static gnnc_status append_triples(Npz *z, Triples *t, const char *key, const RtArray *a, int part) {
    for (int64_t i = 0; i < a->shape[0]; i++) {
        int64_t v[3];
        for (int k = 0; k < 3; k++) {
            v[k] = rt_array_i64(a, 3 * i + k);
            if (v[k] < 0 || v[k] >= INT32_MAX)
                return rt_fail(z->b.err, GNNC_E_RANGE, "%s: %s: row %lld: %lld is no number of %s",
                               z->zip.name, key, (long long)i, (long long)v[k],
                               k == 1 ? "a relation" : "an entity");
        }
        t->head[t->n] = (int32_t)v[0], t->rel[t->n] = (int32_t)v[1], t->tail[t->n] = (int32_t)v[2];
        t->split[t->n++] = (int8_t)part;
        if (v[0] >= t->n_entities) t->n_entities = v[0] + 1;
        if (v[2] >= t->n_entities) t->n_entities = v[2] + 1;
        if (v[1] >= t->n_relations) t->n_relations = v[1] + 1;
    }
    return GNNC_OK;
}

/* The arrays live in `keep`, which the data set's pool takes over by copying. */
static gnnc_status gather_triples(Npz *z, const Part *parts, int n_parts, Triples *t) {
    RtArray a[4];
    bool found[4] = {false};
    int64_t n = 0;
    gnnc_status st = GNNC_OK;
    for (int i = 0; i < n_parts; i++) {
        TRY(st, rt_npz_find(z, &z->pool, parts[i].key, &a[i], &found[i]));
        if (!found[i]) continue;
        if (a[i].rank != 2 || a[i].shape[1] != 3)
            return rt_npz_bad(z, GNNC_E_SHAPE, parts[i].key, "not [triples, 3]");
        if (rt_dtype_kind(a[i].dt) == 'f')
            return rt_npz_bad(z, GNNC_E_DTYPE, parts[i].key, "whole numbers are expected");
        n += a[i].shape[0];
    }
    t->head = RT_NEWN(&z->pool, int32_t, n);
    t->rel = RT_NEWN(&z->pool, int32_t, n);
    t->tail = RT_NEWN(&z->pool, int32_t, n);
    t->split = RT_NEWN(&z->pool, int8_t, n);
    if (!t->head || !t->rel || !t->tail || !t->split) return rt_fail_nomem(z->b.err, z->zip.name);
    for (int i = 0; i < n_parts && st == GNNC_OK; i++)
        if (found[i]) st = append_triples(z, t, parts[i].key, &a[i], parts[i].part);
out:
    return st;
}

/* Reads a count, which must not be less than the numbers say. */
static gnnc_status read_count(Npz *z, const char *key, const char *beside, int64_t n_beside,
                              int64_t *n) {
    int64_t given = beside ? n_beside : *n;
    gnnc_status st = rt_npz_has(z, key) ? rt_npz_count(z, key, &given) : GNNC_OK;
    if (st != GNNC_OK) return st;
    if (given < *n)
        return rt_fail(z->b.err, GNNC_E_RANGE, "%s: a triple names number %lld, %s has %lld",
                       z->zip.name, (long long)*n - 1, rt_npz_has(z, key) ? key : beside,
                       (long long)given);
    *n = given;
    return GNNC_OK;
}

/* Labels of the entities that train_idx and test_idx list. */
static gnnc_status read_entity_labels(Npz *z, RtTable *entities) {
    static const Part parts[] = {{"train", 1}, {"val", 2}, {"test", 3}};
    RtColumn *split, *y;
    gnnc_status st;
    if (!rt_npz_has(z, "train_y")) return GNNC_OK;
    TRY(st, rt_build_split(&z->b, entities, 1, &split));
    int32_t *to = RT_NEWN(&z->b.d->pool, int32_t, entities->count);
    if (!to) return rt_fail_nomem(z->b.err, "y");
    for (int64_t i = 0; i < entities->count; i++) to[i] = -1;
    y = rt_build_column(&z->b, entities, RT_COL_CLASS, "y");
    if (!y) return z->b.st;
    split = (RtColumn *)(uintptr_t)rt_table_column(entities, "split"); /* columns may have moved */
    y->i32 = to;
    for (int p = 0; p < 3; p++) {
        RtArray idx, label;
        const char *key_idx = rt_pool_printf(&z->pool, "%s_idx", parts[p].key);
        const char *key_y = rt_pool_printf(&z->pool, "%s_y", parts[p].key);
        if (!key_idx || !key_y) return rt_fail_nomem(z->b.err, "y");
        if (!rt_npz_has(z, key_idx)) continue;
        TRY(st, rt_npz_need(z, &z->pool, key_idx, 1, &idx));
        TRY(st, rt_npz_need(z, &z->pool, key_y, 1, &label));
        if (idx.count != label.count)
            return rt_npz_bad(z, GNNC_E_SHAPE, key_y, "not as long as its indices");
        for (int64_t i = 0; i < idx.count; i++) {
            int64_t row = rt_array_i64(&idx, i), c = rt_array_i64(&label, i);
            TRY(st, rt_build_part(&z->b, split, 0, key_idx, row, parts[p].part));
            if (c < 0 || c >= 1 << 24)
                return rt_npz_bad(z, GNNC_E_RANGE, key_y, "a class is not negative and below 2^24");
            to[row] = (int32_t)c;
            if (c >= y->n_categories) y->n_categories = c + 1;
        }
    }
out:
    return st;
}

gnnc_status rt_npz_read_triples(Npz *z, const RtAlloc *from) {
    static const Part rdf[] = {{"triples", 0}};
    static const Part parts[] = {{"train", 1}, {"valid", 2}, {"val", 2}, {"test", 3}};
    Triples t = {0};
    RtTable *entities;
    gnnc_status st;
    bool one = rt_npz_has(z, "triples");
    TRY(st, gather_triples(z, one ? rdf : parts, one ? 1 : 4, &t));
    const char *e_names = z->entities ? "the file of entities" : NULL;
    const char *r_names = z->relations ? "the file of relations" : NULL;
    TRY(st, read_count(z, "num_nodes", e_names, z->n_entities, &t.n_entities));
    TRY(st, read_count(z, "num_relations", r_names, z->n_relations, &t.n_relations));
    if (t.n_relations > 1 << 16)
        return rt_npz_bad(z, GNNC_E_RANGE, "relations", "more than 65536 relations");
    RtTriples all = {.n = t.n,
                     .n_entities = t.n_entities,
                     .n_relations = t.n_relations,
                     .head = t.head,
                     .rel = t.rel,
                     .tail = t.tail,
                     .split = one ? NULL : t.split};
    if (z->n_entities == t.n_entities) all.entities = z->entities;
    if (z->n_relations == t.n_relations) all.relations = z->relations;
    TRY(st, rt_build_begin(&z->b, from, z->zip.name, z->b.how, 1,
                           rt_triples_tables(z->b.how, t.n_relations), 0, z->b.err));
    TRY(st, rt_build_triples(&z->b, &all, &entities));
    TRY(st, read_entity_labels(z, entities));
    z->home = entities;
    st = rt_npz_columns(z);
out:
    return st;
}

/* ---- links ----------------------------------------------------------------------- */
/* The parts' pairs behind each other, as edges with a split; none of them there: no type. */
static gnnc_status read_parts(Npz *z, const char *name, const RtTable *src, const RtTable *dst,
                              const Part *parts, int n_parts) {
    const int32_t *v[4];
    int64_t n[4] = {0}, all = 0, at = 0;
    RtTable *t;
    RtColumn *split;
    gnnc_status st = GNNC_OK;
    bool any = false;
    for (int i = 0; i < n_parts; i++) {
        if (!rt_npz_has(z, parts[i].key)) continue;
        any = true;
        TRY(st, rt_npz_pair(z, parts[i].key, &n[i], &v[i]));
        all += n[i];
    }
    if (!any) return GNNC_OK;
    int32_t *from = RT_NEWN(&z->b.d->pool, int32_t, all);
    int32_t *to = RT_NEWN(&z->b.d->pool, int32_t, all);
    if (!from || !to) return rt_fail_nomem(z->b.err, name);
    TRY(st, rt_build_edges(&z->b, name, src, dst, all, from, to, &t));
    TRY(st, rt_build_split(&z->b, t, 1, &split));
    for (int i = 0; i < n_parts; i++) {
        if (n[i] == 0) continue;
        memcpy(from + at, v[i], (size_t)n[i] * sizeof *from);
        memcpy(to + at, v[i] + n[i], (size_t)n[i] * sizeof *to);
        memset((int8_t *)(uintptr_t)split->splits + at, parts[i].part, (size_t)n[i]);
        at += n[i];
    }
out:
    return st;
}

gnnc_status rt_npz_read_links(Npz *z, const RtAlloc *from) {
    static const Part edges[] = {{"train_edges", 1}, {"val_edges", 2}, {"test_edges", 3}};
    static const Part wrong[] = {{"train_neg", 1}, {"val_neg", 2}, {"test_neg", 3}};
    static const Part rated[] = {{"train", 1}, {"val", 2}, {"valid", 2}, {"test", 3}};
    RtImport *how = z->b.how;
    RtTable *a, *b;
    int64_t n, m;
    gnnc_status st;
    const char *edge = how->edge ? how->edge : "link";
    TRY(st, rt_build_begin(&z->b, from, z->zip.name, how, 2, 2, 0, z->b.err));
    if (rt_npz_has(z, "num_users")) {
        TRY(st, rt_npz_count(z, "num_users", &n));
        TRY(st, rt_npz_count(z, "num_items", &m));
        TRY(st, rt_build_nodes(&z->b, "user", n, &a));
        TRY(st, rt_build_nodes(&z->b, "item", m, &b));
        TRY(st, read_parts(z, edge, a, b, rated, 4));
    } else {
        TRY(st, rt_npz_count(z, "num_nodes", &n));
        TRY(st, rt_build_nodes(&z->b, how->node ? how->node : "vertex", n, &a));
        TRY(st, read_parts(z, edge, a, a, edges, 3));
        char *no = rt_pool_printf(&z->b.d->pool, "no_%s", edge);
        if (!no) return rt_fail_nomem(z->b.err, edge);
        TRY(st, read_parts(z, no, a, a, wrong, 3));
        z->home = a;
    }
    st = rt_npz_columns(z);
out:
    return st;
}

/* ---- events ---------------------------------------------------------------------- */
/* Splits events, which lie in order of time, at train_end and val_end. */
static gnnc_status read_event_split(Npz *z, RtTable *events) {
    int64_t train, val;
    RtColumn *split;
    gnnc_status st;
    if (!rt_npz_has(z, "train_end")) return GNNC_OK;
    TRY(st, rt_npz_count(z, "train_end", &train));
    val = train;
    if (rt_npz_has(z, "val_end")) TRY(st, rt_npz_count(z, "val_end", &val));
    if (train > val || val > events->count)
        return rt_npz_bad(z, GNNC_E_RANGE, "val_end",
                          "train_end <= val_end <= events does not hold");
    TRY(st, rt_build_split(&z->b, events, 1, &split));
    int8_t *to = (int8_t *)(uintptr_t)split->splits;
    for (int64_t i = 0; i < events->count; i++) to[i] = i < train ? 1 : i < val ? 2 : 3;
out:
    return st;
}

/* One more than the largest number, and at least `most`. */
static int64_t largest(const int32_t *v, int64_t n, int64_t most) {
    for (int64_t i = 0; i < n; i++)
        if (v[i] >= most) most = (int64_t)v[i] + 1;
    return most;
}

gnnc_status rt_npz_read_events(Npz *z, const RtAlloc *from) {
    RtImport *how = z->b.how;
    RtTable *nodes, *events;
    RtArray src, dst;
    const int32_t *s, *d;
    int64_t n;
    gnnc_status st;
    TRY(st, rt_build_begin(&z->b, from, z->zip.name, how, 1, 1, 0, z->b.err));
    TRY(st, rt_npz_i32(z, "src", 1, &src, &s));
    TRY(st, rt_npz_i32(z, "dst", 1, &dst, &d));
    if (src.count != dst.count) return rt_npz_bad(z, GNNC_E_SHAPE, "dst", "not as long as src");
    n = largest(d, dst.count, largest(s, src.count, 0));
    if (rt_npz_has(z, "num_nodes"))
        TRY(st, rt_npz_count(z, "num_nodes", &n));
    else
        TRY(st, rt_import_check_ids(how, z->zip.name, n, src.count, z->b.err));
    TRY(st, rt_build_nodes(&z->b, how->node ? how->node : "vertex", n, &nodes));
    TRY(st, rt_build_edges(&z->b, how->edge ? how->edge : "event", nodes, nodes, src.count, s, d,
                           &events));
    TRY(st, read_event_split(z, events));
    z->home = events;
    st = rt_npz_columns(z);
out:
    return st;
}
