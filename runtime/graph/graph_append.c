/* Rows that come once a graph is committed.  Those of one call are first a graph of one table by
 * themselves, where they are checked and converted as any graph's are; then they lie in one block
 * of memory in the log.
 *
 * The graph's lock is held twice and shortly: to read how many nodes there are, and to put the
 * block into the log.  No more is needed, as numbers of rows only grow: an end that was checked
 * against the first stays one of a node. */
#include <stdio.h>
#include <string.h>

#include "graph.h"

_Static_assert(sizeof(((gnnc_rows *)0)->error) == sizeof(RtError), "a whole message");

typedef struct {
    gnnc_graph *g;
    gnnc_rows in;
    gnnc_graph one; /* the rows of this call */
    const RtTable *like;
    int number; /* of the table */
} Call;

/* ---- the call itself ------------------------------------------------------------------- */
static gnnc_status check_columns(Call *a) {
    return rt_values_check(a->in.columns, &a->in.n_columns, &a->one.err);
}

/* Says why rows cannot be appended to the table of that name. */
static gnnc_status no_table(Call *a, bool edges) {
    const RtDataset *d = a->g->data;
    const char *name = a->in.table;
    RtError *err = &a->one.err;
    if (!edges && rt_dataset_edges(d, name))
        return rt_fail(err, GNNC_E_ARG, "%s: edges have sources and destinations", name);
    if (edges && rt_dataset_nodes(d, name))
        return rt_fail(err, GNNC_E_ARG, "%s: nodes have no sources and destinations", name);
    if (rt_dataset_graphs(d, name))
        return rt_fail(err, GNNC_E_ARG, "%s: nodes and edges are appended, not graphs", name);
    return rt_fail(err, GNNC_E_MISSING, "there is no table '%s'", name);
}

/* Finds the table that rows are appended to, and checks that it takes any. */
static gnnc_status find_table(Call *a) {
    const RtDataset *d = a->g->data;
    const gnnc_rows *r = &a->in;
    bool edges = r->src || r->dst;
    if (!r->table) return rt_fail(&a->one.err, GNNC_E_ARG, "the name of the table is NULL");
    a->like = edges ? rt_dataset_edges(d, r->table) : rt_dataset_nodes(d, r->table);
    if (!a->like) return no_table(a, edges);
    a->number = edges ? d->n_nodes + (int)(a->like - d->edges) : (int)(a->like - d->nodes);
    for (int k = 0; k < a->like->n_columns; k++)
        if (a->like->columns[k].there)
            return rt_fail(&a->one.err, GNNC_E_ARG,
                           "%s: '%s' lies in a device's memory: no rows are appended to it",
                           r->table, a->like->columns[k].name);
    if (a->like->graph < 0) return GNNC_OK;
    return rt_fail(&a->one.err, GNNC_E_ARG,
                   "%s: nodes that are divided into graphs are not appended to", r->table);
}

/* Rows of a table with those that were appended, read under the lock. */
static int64_t count_of(gnnc_graph *g, int number) {
    pthread_mutex_lock(&g->lock);
    int64_t n = g->tail[number].count;
    pthread_mutex_unlock(&g->lock);
    return n;
}

/* Gives the call's data a node type with as many rows as there are by now, with the log's, by which
 * new edges are checked. */
static gnnc_status add_ends_of(Call *a, int type) {
    const RtTable *t = &a->g->data->nodes[type];
    if (rt_dataset_nodes(a->one.data, t->name)) return GNNC_OK;
    return gnnc_graph_add_nodes(&a->one, t->name, count_of(a->g, type));
}

/* Makes a graph of one table of the appended rows, to check them as any other rows. It takes
 * over the arrays of ends. */
static gnnc_status add_staging_table(Call *a) {
    const gnnc_rows *r = &a->in;
    const RtTable *like = a->like, *nodes = a->g->data->nodes;
    gnnc_array src, dst;
    if (like->src_type < 0) return gnnc_graph_add_nodes(&a->one, r->table, r->count);
    gnnc_status st = add_ends_of(a, like->src_type);
    if (st == GNNC_OK) st = add_ends_of(a, like->dst_type);
    if (st != GNNC_OK) {
        rt_borrowed_release(r->src);
        rt_borrowed_release(r->dst);
        return st;
    }
    st = rt_graph_add_new_edges(&a->one, r->table, nodes[like->src_type].name,
                                nodes[like->dst_type].name, rt_borrowed_lock(r->src, &src),
                                rt_borrowed_lock(r->dst, &dst));
    a->one.data->n_nodes = 0; /* the ends are checked; the name is now that of the edges alone */
    if (st != GNNC_OK || a->one.data->edges->count == r->count) return st;
    return rt_fail(&a->one.err, GNNC_E_SHAPE, "%s: %lld edges, and their count is %lld", r->table,
                   (long long)a->one.data->edges->count, (long long)r->count);
}

static RtTable *table_of(const Call *a) {
    return a->like->src_type < 0 ? a->one.data->nodes : a->one.data->edges;
}

/* ---- columns ------------------------------------------------------------------------------ */
/* Has the column that is appended the shape of the table's? */
static gnnc_status check_shape(Call *a, const RtColumn *like, const RtColumn *c) {
    RtError *err = &a->one.err;
    const char *table = a->in.table;
    if (c->rank != like->rank)
        return rt_fail(err, GNNC_E_SHAPE, "%s.%s: %d dimensions, %d wanted", table, c->name,
                       c->rank, like->rank);
    for (int i = 1; i < c->rank; i++)
        if (c->shape[i] != like->shape[i])
            return rt_fail(err, GNNC_E_SHAPE, "%s.%s: size %lld in dimension %d, %lld wanted",
                           table, c->name, (long long)c->shape[i], i, (long long)like->shape[i]);
    if (c->kind != RT_COL_SPLIT || c->n_splits == like->n_splits) return GNNC_OK;
    return rt_fail(err, GNNC_E_SHAPE, "%s.%s: %d splits, %d wanted", table, c->name, c->n_splits,
                   like->n_splits);
}

/* Numbers in the form of the column: 16 bits are widened without loss, and f32 is not rounded. */
static gnnc_status take_form(Call *a, const RtColumn *like, RtColumn *c) {
    const RtColumn *wide = c;
    if (c->kind != RT_COL_FLOAT) return GNNC_OK;
    if (!like->f32 && like->low && (!c->low || c->low_dt != like->low_dt))
        return rt_fail(&a->one.err, GNNC_E_DTYPE, "%s.%s: holds %s, the column %s", a->in.table,
                       c->name, rt_dtype_name(c->stored), rt_dtype_name(like->low_dt));
    if (!like->f32) return GNNC_OK;
    gnnc_status st = rt_column_as(&a->one.data->pool, NULL, c, RT_F32, &wide, &a->one.err);
    *c = *wide;
    return st;
}

/* A dictionary of the names that a column has codes for; NULL: no memory. */
static RtDictionary *new_known(gnnc_graph *g, const RtColumn *c) {
    RtPool pool;
    rt_pool_init(&pool, &g->from);
    RtDictionary *k = RT_NEW(&pool, RtDictionary);
    if (!k || !rt_names_new(&pool, &k->names, c->n_categories + 1)) {
        rt_pool_free(&pool);
        return NULL;
    }
    for (int64_t i = 0; i < c->n_categories; i++) rt_names_add(&k->names, c->names[i]);
    k->pool = pool;
    return k;
}

/* Made once for all calls; threads that come first at once each make them, and one's stay.  NULL:
 * no memory. */
static const RtNames *known_names(Call *a, const RtColumn *like) {
    gnnc_graph *g = a->g;
    RtDictionary **at = &g->tail[a->number].known[like - a->like->columns];
    pthread_mutex_lock(&g->lock);
    RtDictionary *k = *at;
    pthread_mutex_unlock(&g->lock);
    if (k) return &k->names;
    RtDictionary *made = new_known(g, like);
    if (!made) return NULL;
    pthread_mutex_lock(&g->lock);
    if (!*at) *at = made;
    k = *at;
    pthread_mutex_unlock(&g->lock);
    if (k != made) {
        RtPool pool = made->pool; /* it lies in it */
        rt_pool_free(&pool);
    }
    return &k->names;
}

/* Codes by the call's own names become the column's of the same names. */
static gnnc_status translate(Call *a, const RtColumn *like, RtColumn *c, const gnnc_values *v) {
    RtPool *pool = &a->one.data->pool;
    RtError *err = &a->one.err;
    int64_t n = c->n_rows * rt_column_width(c);
    if (!v->names || !rt_column_has_codes(c)) return GNNC_OK;
    if (!like->names)
        return rt_fail(err, GNNC_E_ARG, "%s.%s: the column's categories have no names", a->in.table,
                       c->name);
    int32_t *to = RT_NEWN(pool, int32_t, n);
    const RtNames *known = known_names(a, like);
    if (!to || !known) return rt_fail_nomem(err, c->name);
    for (int64_t i = 0; i < n; i++) {
        const char *name = c->i32[i] < 0 ? NULL : c->names[c->i32[i]];
        to[i] = name ? rt_names_find(known, name) : -1;
        if (name && to[i] < 0)
            return rt_fail(err, GNNC_E_RANGE,
                           "%s.%s: row %lld: '%.64s' is no %s of the column, which has %lld",
                           a->in.table, c->name, (long long)(i / rt_column_width(c)), name,
                           c->kind == RT_COL_CLASS ? "class" : "category",
                           (long long)like->n_categories);
    }
    c->i32 = to;
    return GNNC_OK;
}

/* Is the given column one of the table's, given once, and in the right form? */
static gnnc_status check_given(Call *a, const gnnc_values *v, const RtColumn **like) {
    RtError *err = &a->one.err;
    if (!v->column) return rt_fail(err, GNNC_E_ARG, "%s: a column has no name", a->in.table);
    *like = rt_table_column(a->like, v->column);
    if (!*like)
        return rt_fail(err, GNNC_E_MISSING, "%s: there is no column '%s'", a->in.table, v->column);
    if (rt_table_column(table_of(a), v->column))
        return rt_fail(err, GNNC_E_ARG, "%s.%s: given twice", a->in.table, v->column);
    if ((*like)->kind != RT_COL_CSR && (v->ptr || v->idx))
        return rt_fail(err, GNNC_E_ARG, "%s.%s: only stored entries have `ptr` and `idx`",
                       a->in.table, v->column);
    return GNNC_OK;
}

/* Reads the given values as a column of the same kind as the table's. */
static gnnc_status add_column(Call *a, const RtColumn *like, const gnnc_values *v) {
    return rt_values_add(&a->one, a->in.table, v, (gnnc_kind)like->kind,
                         rt_column_has_codes(like) ? like->n_categories : -1,
                         like->kind == RT_COL_CSR ? like->csr.n_cols : 0);
}

/* The arrays of a column are taken over, whatever `st` is by now. */
static gnnc_status take_column(Call *a, const gnnc_values *v, gnnc_status st) {
    const RtColumn *like = NULL;
    gnnc_values own;
    if (st == GNNC_OK) st = check_given(a, v, &like);
    if (st == GNNC_OK)
        st =
            rt_values_check_encoding(v, a->in.table, like->encoder, "the graph", &own, &a->one.err);
    if (st != GNNC_OK) {
        rt_values_release(v);
        return st;
    }
    st = add_column(a, like, v = &own);
    if (st != GNNC_OK) return st;
    RtColumn *c = (RtColumn *)(uintptr_t)rt_table_column(table_of(a), v->column);
    st = check_shape(a, like, c);
    if (st == GNNC_OK) st = take_form(a, like, c);
    return st == GNNC_OK ? translate(a, like, c, v) : st;
}

/* Fills a column that is not given with unknown values; only those that training alone reads may be
 * left out. */
static gnnc_status fill_column(Call *a, const RtColumn *like) {
    RtPool *pool = &a->one.data->pool;
    RtError *err = &a->one.err;
    int64_t n = a->in.count * rt_column_width(like);
    bool split = like->kind == RT_COL_SPLIT;
    if (!split && like->kind != RT_COL_CLASS && like->kind != RT_COL_MULTILABEL)
        return rt_fail(err, GNNC_E_MISSING, "%s.%s: the new rows lack this column", a->in.table,
                       like->name);
    RtColumn *c = rt_table_add_column(pool, table_of(a));
    if (!c) return rt_fail_nomem(err, like->name);
    *c = *like;
    c->n_rows = c->shape[0] = a->in.count;
    c->values = rt_pool_alloc(pool, (size_t)n * (size_t)(split ? like->n_splits : 1),
                              rt_dtype_bytes(rt_column_kind(like->kind)->element));
    if (!c->values) return rt_fail_nomem(err, like->name);
    rt_column_fill_unknown(c, n);
    return GNNC_OK;
}

/* Takes all columns that are given, and fills the others with unknown values. After a failure the
 * rest is only given back. */
static gnnc_status take_columns(Call *a, gnnc_status st) {
    for (int i = 0; i < a->in.n_columns; i++)
        st = take_column(a, rt_values_at(a->in.columns, i), st);
    for (int k = 0; st == GNNC_OK && k < a->like->n_columns; k++)
        if (!rt_table_column(table_of(a), a->like->columns[k].name))
            st = fill_column(a, &a->like->columns[k]);
    return st;
}

/* ---- into the log --------------------------------------------------------------------------- */
/* Arrays one after the other; to = NULL counts their bytes. */
typedef struct {
    char *to;
    size_t n;
} Packing;

/* Copies n elements into the block, 8-byte aligned; without a block only counts the bytes. */
static const void *pack(Packing *p, const void *from, int64_t n, size_t size) {
    size_t n_bytes = (size_t)n * size;
    char *at = p->to ? p->to + p->n : NULL;
    if (at && n_bytes) memcpy(at, from, n_bytes);
    p->n += (n_bytes + 7) / 8 * 8;
    return at;
}

/* A column whose arrays are packed into the block. */
static RtColumn pack_column(Packing *p, const RtColumn *c) {
    int64_t n = c->n_rows * rt_column_width(c);
    RtColumn to = *c;
    switch (rt_column_kind(c->kind)->layout) {
    case RT_LAYOUT_ROWS:
        if (c->values)
            to.values = pack(p, c->values, n, rt_dtype_bytes(rt_column_kind(c->kind)->element));
        if (c->low) to.low = pack(p, c->low, n, sizeof *c->low);
        break;
    case RT_LAYOUT_CSR:
        to.csr.ptr = pack(p, c->csr.ptr, c->csr.n_rows + 1, sizeof *c->csr.ptr);
        to.csr.col = pack(p, c->csr.col, c->csr.nnz, sizeof *c->csr.col);
        to.csr.val = pack(p, c->csr.val, c->csr.nnz, sizeof *c->csr.val);
        break;
    case RT_LAYOUT_SPLITS:
        to.splits = pack(p, c->splits, n * c->n_splits, sizeof *c->splits);
        break;
    }
    return to;
}

/* Packs the table, with its columns in the order of `like`, into one block of memory. Called
 * twice: with p->to NULL it only counts bytes. */
static void pack_table(Packing *p, const RtTable *t, const RtTable *like, RtTable *to) {
    for (int k = 0; k < like->n_columns; k++) {
        RtColumn c = pack_column(p, rt_table_column(t, like->columns[k].name));
        c.name = like->columns[k].name;
        c.names = NULL; /* the column's own */
        if (p->to) to->columns[k] = c;
    }
    if (!t->src) return;
    to->src = pack(p, t->src, t->count, sizeof *t->src);
    to->dst = pack(p, t->dst, t->count, sizeof *t->dst);
}

/* Makes a copy of the appended rows in one block, which the log owns; NULL: no memory. */
static RtLogged *logged(Call *a) {
    const RtTable *t = table_of(a);
    size_t head = sizeof(RtLogged) + (size_t)a->like->n_columns * sizeof(RtColumn);
    Packing count = {NULL, 0};
    pack_table(&count, t, a->like, &(RtTable){.columns = NULL});
    RtLogged *l = a->g->from.alloc(a->g->from.user, head + count.n);
    if (!l) return NULL;
    *l = (RtLogged){.t = {.count = t->count, .columns = (RtColumn *)(l + 1)}};
    pack_table(&(Packing){(char *)l + head, 0}, t, a->like, &l->t);
    return l;
}

/* Is there a number for every row, and every stored entry? */
static gnnc_status check_room(Call *a, const RtTail *tail, const RtTable *t) {
    if (tail->count + t->count > INT32_MAX)
        return rt_fail(&a->one.err, GNNC_E_RANGE, "%s: %lld more rows than 2^31 - 1", a->in.table,
                       (long long)(tail->count + t->count - INT32_MAX));
    for (int k = 0; k < a->like->n_columns; k++)
        if (t->columns[k].kind == RT_COL_CSR && tail->nnz[k] + t->columns[k].csr.nnz > INT32_MAX)
            return rt_fail(&a->one.err, GNNC_E_RANGE, "%s.%s: more than 2^31 - 1 stored entries",
                           a->in.table, t->columns[k].name);
    return GNNC_OK;
}

/* Adds the rows to the table's log, if there is room for them; *first is the number of the
 * first. */
static gnnc_status put(Call *a, RtLogged *l, int64_t *first) {
    RtTail *tail = &a->g->tail[a->number];
    pthread_mutex_lock(&a->g->lock);
    gnnc_status st = check_room(a, tail, &l->t);
    if (st == GNNC_OK) {
        *first = tail->count;
        tail->count += l->t.count;
        for (int k = 0; k < a->like->n_columns; k++)
            if (l->t.columns[k].kind == RT_COL_CSR) tail->nnz[k] += l->t.columns[k].csr.nnz;
        if (tail->last)
            tail->last->next = l;
        else
            tail->first = l;
        tail->last = l;
    }
    pthread_mutex_unlock(&a->g->lock);
    return st;
}

/* Copies the rows and adds them to the log. */
static gnnc_status to_log(Call *a, int64_t *first) {
    RtLogged *l = logged(a);
    if (!l) return rt_fail_nomem(&a->one.err, a->in.table);
    gnnc_status st = put(a, l, first);
    if (st != GNNC_OK) a->g->from.release(a->g->from.user, l);
    return st;
}

/* ---- all of it ------------------------------------------------------------------------------- */
/* Checks the call, finds the table, and makes a data set for the one table of new rows. */
static gnnc_status begin(Call *a) {
    gnnc_status st = check_columns(a);
    if (st != GNNC_OK) return st;
    if (!a->g) return rt_fail(&a->one.err, GNNC_E_ARG, "the graph is NULL");
    if (!a->g->committed)
        return rt_fail(&a->one.err, GNNC_E_STATE,
                       "the graph is not committed: its first rows are added, not appended");
    st = find_table(a);
    if (st != GNNC_OK) return st;
    a->one.from = a->g->from;
    a->one.data = rt_dataset_new(&a->g->from);
    return a->one.data ? GNNC_OK : rt_fail_nomem(&a->one.err, a->in.table);
}

gnnc_status gnnc_graph_append(gnnc_graph *g, gnnc_rows *rows) {
    if (!rows || RT_STRUCT_CHECK(NULL, gnnc_rows, rows, error) != GNNC_OK) return GNNC_E_ARG;
    Call a = {.g = g};
    memcpy(&a.in, rows, rows->struct_size < sizeof a.in ? rows->struct_size : sizeof a.in);
    gnnc_status st = begin(&a);
    if (st == GNNC_OK) {
        st = add_staging_table(&a);
    } else {
        rt_borrowed_release(a.in.src);
        rt_borrowed_release(a.in.dst);
    }
    st = take_columns(&a, st);
    rows->first = -1;
    if (st == GNNC_OK) st = to_log(&a, &rows->first);
    rt_graph_release_loans(&a.one);
    rt_dataset_close(a.one.data);
    memcpy(rows->error, a.one.err.text, sizeof rows->error);
    return st;
}
