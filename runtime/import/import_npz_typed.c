/* Several node and edge types in an .npz archive:
 *     num_<type> []          the node types
 *     a__b [2, E]            edges from type a to type b; a__how__b names the relation
 *     <type>_y, train_idx..  the labelled type and its split
 *     <type>_<column>, a__b_<column>    columns (rt_npz_columns) */
#include <string.h>

#include "import_npz.h"

/* Makes a node type of each entry num_TYPE. */
static gnnc_status read_node_types(Npz *z) {
    gnnc_status st = GNNC_OK;
    for (int i = 0; i < z->zip.n && st == GNNC_OK; i++) {
        RtTable *t;
        int64_t n;
        const char *key = rt_npz_key(z, i);
        if (!key) return GNNC_E_NOMEM;
        if (strncmp(key, "num_", 4) != 0) continue;
        TRY(st, rt_npz_count(z, key, &n));
        st = rt_build_nodes(&z->b, key + 4, n, &t);
    }
out:
    return st;
}

/* The type that [s, s+n) names, or NULL. */
static RtTable *node_type(const Npz *z, const char *s, size_t n) {
    RtDataset *d = z->b.d;
    for (int i = 0; i < d->n_nodes; i++)
        if (strlen(d->nodes[i].name) == n && memcmp(d->nodes[i].name, s, n) == 0)
            return &d->nodes[i];
    return NULL;
}

/* Finds the node types that a key joins: "a__b" or "a__how__b", no column behind it; false: it does
 * not. */
static bool edge_ends(const Npz *z, const char *key, const RtTable **src, const RtTable **dst) {
    const char *first = strstr(key, "__"), *last = NULL;
    if (!first) return false;
    for (const char *s = first; s; s = strstr(s + 1, "__")) last = s;
    *src = node_type(z, key, (size_t)(first - key));
    *dst = node_type(z, last + 2, strlen(last + 2));
    return *src && *dst;
}

/* Makes an edge type of each entry whose name joins two node types: a__b. */
static gnnc_status read_edge_types(Npz *z) {
    gnnc_status st = GNNC_OK;
    for (int i = 0; i < z->zip.n && st == GNNC_OK; i++) {
        const RtTable *src, *dst;
        RtTable *t;
        const int32_t *ends;
        int64_t n;
        const char *key = rt_npz_key(z, i);
        if (!key) return GNNC_E_NOMEM;
        if (!edge_ends(z, key, &src, &dst)) continue;
        TRY(st, rt_npz_pair(z, key, &n, &ends));
        st = rt_build_edges(&z->b, key, src, dst, n, ends, ends + n, &t);
    }
    if (st == GNNC_OK && z->b.d->n_edges == 0)
        return rt_npz_bad(z, GNNC_E_MISSING, "a__b",
                          "no entry joins two of the types num_a, num_b");
out:
    return st;
}

/* Splits belong to the type that has labels. */
static gnnc_status find_labelled(Npz *z) {
    bool split = rt_npz_has(z, "train_idx") || rt_npz_has(z, "train_masks");
    for (int i = 0; i < z->zip.n; i++) split |= strncmp(z->zip.entries[i].name, "train_", 6) == 0;
    for (int i = 0; i < z->b.d->n_nodes; i++) {
        char *key = rt_pool_printf(&z->pool, "%s_y", z->b.d->nodes[i].name);
        if (!key) return rt_fail_nomem(z->b.err, z->zip.name);
        if (!rt_npz_has(z, key)) continue;
        if (z->label && split)
            return rt_npz_bad(z, GNNC_E_FORMAT, key, "a second labelled type: whose is the split?");
        z->label = &z->b.d->nodes[i];
    }
    return GNNC_OK;
}

gnnc_status rt_npz_read_typed(Npz *z, const RtAlloc *from) {
    gnnc_status st;
    TRY(st, rt_build_begin(&z->b, from, z->zip.name, z->b.how, z->zip.n, z->zip.n, 0, z->b.err));
    TRY(st, read_node_types(z));
    TRY(st, read_edge_types(z));
    TRY(st, find_labelled(z));
    st = rt_npz_columns(z);
out:
    return st;
}
