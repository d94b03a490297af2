/* A graph's life: made, filled, committed, shared, released.  Columns are in graph_column.c, rows
 * that come later in graph_append.c. */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

gnnc_status gnnc_graph_create_with(gnnc_graph **out, gnnc_alloc_fn *alloc, gnnc_release_fn *release,
                                   void *user) {
    if (out) *out = NULL;
    if (!out || !alloc || !release) return GNNC_E_ARG;
    gnnc_graph *g = alloc(user, sizeof *g);
    if (!g) return GNNC_E_NOMEM;
    g->from = (RtAlloc){alloc, release, user};
    atomic_init(&g->n_refs, 1);
    g->data = rt_dataset_new(&g->from);
    if (!g->data) {
        release(user, g);
        return GNNC_E_NOMEM;
    }
    pthread_mutex_init(&g->lock, NULL);
    pthread_mutex_init(&g->committing, NULL);
    *out = g;
    return GNNC_OK;
}

gnnc_status gnnc_graph_create(gnnc_graph **out) {
    RtAlloc a = rt_alloc_default();
    return gnnc_graph_create_with(out, a.alloc, a.release, a.user);
}

void gnnc_graph_retain(gnnc_graph *g) {
    if (g) atomic_fetch_add_explicit(&g->n_refs, 1, memory_order_relaxed);
}

void gnnc_graph_release(gnnc_graph *g) {
    if (!g || atomic_fetch_sub_explicit(&g->n_refs, 1, memory_order_acq_rel) > 1) return;
    RtAlloc from = g->from;
    rt_graph_drop_log(g);
    rt_graph_leave(g, g->newest);
    rt_graph_release_loans(g);
    rt_dataset_close(g->data);
    pthread_mutex_destroy(&g->lock);
    pthread_mutex_destroy(&g->committing);
    from.release(from.user, g);
}

const char *gnnc_graph_error(const gnnc_graph *g) {
    if (!g) return "";
    return g->committed ? atomic_load(&g->refused) : g->err.text;
}

gnnc_status rt_graph_begin(gnnc_graph *g) {
    if (!g) return GNNC_E_ARG;
    if (g->committed) {
        atomic_store(&g->refused,
                     "the graph is committed: rows are appended to it, and nothing else is added");
        return GNNC_E_STATE;
    }
    g->err.text[0] = '\0';
    return GNNC_OK;
}

gnnc_status rt_graph_null(gnnc_graph *g, const char *name) {
    gnnc_status st = rt_graph_begin(g);
    if (st != GNNC_OK) return st;
    return rt_fail(&g->err, GNNC_E_ARG, "the argument '%s' is NULL", name);
}

/* ---- a directory -------------------------------------------------------------------- */
/* Reads a data directory into a graph that has nothing yet. */
static gnnc_status read_directory(gnnc_graph *g, const char *directory, bool map,
                                  int64_t late_edges, RtShare share) {
    gnnc_status st = rt_graph_begin(g);
    if (st != GNNC_OK) return st;
    RtDataset *d = g->data, *read;
    if (d->n_nodes + d->n_edges + d->n_graphs || d->dir)
        return rt_fail(&g->err, GNNC_E_STATE,
                       "%s: a directory is read before anything is in the graph", directory);
    st = rt_dataset_open_late(&g->from, directory, map, late_edges, share, &read, &g->err);
    if (st != GNNC_OK) return st;
    rt_dataset_close(d);
    g->data = read;
    g->room[GNNC_NODES] = read->n_nodes;
    g->room[GNNC_EDGES] = read->n_edges;
    g->room[GNNC_GRAPHS] = read->n_graphs;
    return GNNC_OK;
}

gnnc_status rt_graph_open(const RtAlloc *from, const char *dir, bool map, int64_t late_edges,
                          RtShare share, gnnc_graph **out, RtError *err) {
    gnnc_graph *g;
    gnnc_status st = gnnc_graph_create_with(&g, from->alloc, from->release, from->user);
    *out = NULL;
    if (st != GNNC_OK) return rt_fail_nomem(err, dir);
    st = read_directory(g, dir, map, late_edges, share);
    if (st == GNNC_OK) st = gnnc_graph_commit(g);
    if (st == GNNC_OK)
        *out = g;
    else
        rt_fail(err, st, "%s", g->err.text);
    if (st != GNNC_OK) gnnc_graph_release(g);
    return st;
}

gnnc_status gnnc_graph_read(gnnc_graph *g, const char *directory, int map) {
    if (!g || !directory) return rt_graph_null(g, "directory");
    return read_directory(g, directory, map != 0, 0, (RtShare){0});
}

/* ---- tables ---------------------------------------------------------------------------- */
typedef struct {
    RtTable **all;
    int *n;
} Section;

/* The dataset's list of tables of a kind, and its length. */
static Section section_of(RtDataset *d, gnnc_table kind) {
    if (kind == GNNC_NODES) return (Section){&d->nodes, &d->n_nodes};
    if (kind == GNNC_EDGES) return (Section){&d->edges, &d->n_edges};
    return (Section){&d->graphs, &d->n_graphs};
}

/* The first table of that name, and how many have it: a directory may use one for several. */
static RtTable *find(gnnc_graph *g, const char *name, gnnc_table *kind, int *n_found) {
    RtTable *found = NULL;
    *n_found = 0;
    for (int k = GNNC_NODES; k <= GNNC_GRAPHS; k++) {
        Section s = section_of(g->data, (gnnc_table)k);
        for (int i = 0; i < *s.n; i++) {
            if (strcmp((*s.all)[i].name, name) != 0) continue;
            if (!(*n_found)++) found = &(*s.all)[i], *kind = (gnnc_table)k;
        }
    }
    return found;
}

RtTable *rt_graph_table(gnnc_graph *g, const char *name) {
    gnnc_table kind;
    int n;
    RtTable *t = find(g, name, &kind, &n);
    if (n == 1) return t;
    rt_fail(&g->err, GNNC_E_MISSING, n ? "'%s' is the name of %d tables" : "there is no table '%s'",
            name, n);
    return NULL;
}

/* Finds a node or graph type by name; NULL: the error says that there is none. */
static RtTable *find_in(gnnc_graph *g, gnnc_table kind, const char *name) {
    Section s = section_of(g->data, kind);
    for (int i = 0; i < *s.n; i++)
        if (strcmp((*s.all)[i].name, name) == 0) return &(*s.all)[i];
    rt_fail(&g->err, GNNC_E_MISSING, "there is no %s type '%s'",
            kind == GNNC_NODES ? "node" : "graph", name);
    return NULL;
}

/* Is it a number of rows that row numbers of 32 bits can count? */
static gnnc_status check_count(gnnc_graph *g, const char *name, int64_t count) {
    if (count >= 0 && count <= INT32_MAX) return GNNC_OK;
    return rt_fail(&g->err, GNNC_E_RANGE, "%s: %lld rows: 0 to 2^31 - 1 are possible", name,
                   (long long)count);
}

/* Room for one more in its section; what is there may move. */
static gnnc_status reserve(gnnc_graph *g, gnnc_table kind, const char *name) {
    Section s = section_of(g->data, kind);
    int room = *s.n < 4 ? 4 : 2 * *s.n;
    if (*s.n < g->room[kind]) return GNNC_OK;
    RtTable *more = RT_NEWN(&g->data->pool, RtTable, room);
    if (!more) return rt_fail_nomem(&g->err, name);
    if (*s.n) memcpy(more, *s.all, (size_t)*s.n * sizeof *more);
    *s.all = more;
    g->room[kind] = room;
    return GNNC_OK;
}

/* Begins a table that is not there yet, or one in the place of edges that are (*out). */
static gnnc_status new_table(gnnc_graph *g, gnnc_table kind, const char *name, bool shares_name,
                             RtTable *made, RtTable **out) {
    gnnc_table is = kind;
    int n = 0;
    if (!*name) return rt_fail(&g->err, GNNC_E_ARG, "a table has a name of at least a letter");
    RtTable *t = *out = shares_name ? NULL : find(g, name, &is, &n);
    if (n > 1 || (n == 1 && (is != GNNC_EDGES || kind != GNNC_EDGES)))
        return rt_fail(&g->err, GNNC_E_ARG, "there is a table '%s' already", name);
    *made = (RtTable){.graph = -1, .src_type = -1, .dst_type = -1};
    made->name = t ? t->name : rt_pool_strndup(&g->data->pool, name, strlen(name));
    if (!made->name) return rt_fail_nomem(&g->err, name);
    return GNNC_OK;
}

/* Puts the new table into the graph, in the place of `old` if that is given. */
static gnnc_status put_table(gnnc_graph *g, gnnc_table kind, const RtTable *made, RtTable *old) {
    Section s = section_of(g->data, kind);
    gnnc_status st = old ? GNNC_OK : reserve(g, kind, made->name);
    if (st != GNNC_OK) return st;
    *(old ? old : &(*s.all)[(*s.n)++]) = *made;
    g->changed = true;
    return GNNC_OK;
}

/* Adds a node type, or a kind of graph, of so many rows. */
static gnnc_status add_rows(gnnc_graph *g, gnnc_table kind, const char *type, int64_t count) {
    RtTable made, *old;
    if (!g || !type) return rt_graph_null(g, "type");
    gnnc_status st;
    TRY(st, rt_graph_begin(g));
    TRY(st, check_count(g, type, count));
    TRY(st, new_table(g, kind, type, false, &made, &old));
    made.count = count;
    st = put_table(g, kind, &made, NULL);
out:
    return st;
}

gnnc_status gnnc_graph_add_nodes(gnnc_graph *g, const char *type, int64_t count) {
    return add_rows(g, GNNC_NODES, type, count);
}

gnnc_status gnnc_graph_add_graphs(gnnc_graph *g, const char *type, int64_t count) {
    return add_rows(g, GNNC_GRAPHS, type, count);
}

/* Says which nodes belong to which graph: node i to graph g if ptr[g] <= i < ptr[g + 1]. */
static gnnc_status divide(gnnc_graph *g, const char *nodes, const char *graphs, RtBorrowed *ptr) {
    gnnc_status st;
    RtTable *t, *of;
    const int64_t *at;
    if (!g || !nodes || !graphs) return rt_graph_null(g, !nodes ? "nodes" : "graphs");
    TRY(st, rt_graph_begin(g));
    t = find_in(g, GNNC_NODES, nodes);
    of = t ? find_in(g, GNNC_GRAPHS, graphs) : NULL;
    if (!of) return GNNC_E_MISSING;
    TRY(st, rt_borrowed_open(g, ptr));
    TRY(st, rt_borrowed_integers(g, ptr));
    TRY(st, rt_borrowed_shape(g, ptr, 1, (int64_t[]){of->count + 1}));
    TRY(st, rt_borrowed_i64(g, ptr, &at));
    ptr->table = t->name;
    t->graph = (int)(of - g->data->graphs);
    t->graph_ptr = at;
    g->changed = true;
out:
    return st;
}

gnnc_status gnnc_graph_divide(gnnc_graph *g, const char *nodes, const char *graphs,
                              const gnnc_array *ptr) {
    RtBorrowed x;
    rt_borrowed_begin(&x, g, ptr, nodes);
    gnnc_status st = divide(g, nodes, graphs, &x);
    rt_borrowed_end(g, &x, st);
    return st;
}

/* ---- edges ------------------------------------------------------------------------------- */
typedef struct {
    const char *name, *src_type, *dst_type;
    const gnnc_array *in[2];
    const gnnc_by *by; /* compressed: in[0] are pointers; NULL = both ends are listed */
    bool shares_name;  /* a node type may have it, too, as in a directory */
} Edges;

/* "cites: sources", for messages. */
static const char *what_of(RtBorrowed *x, const char *name, const char *what) {
    const char *text = name ? rt_pool_printf(&x->scratch, "%s: %s", name, what) : NULL;
    return text ? text : what;
}

/* Makes an end for each edge of the bounds that say where each node's edges begin. */
static gnnc_status expand(gnnc_graph *g, const RtBorrowed *ptr, int64_t n_edges,
                          const int32_t **out) {
    const RtArray *a = &ptr->a;
    int32_t *to = RT_NEWN(&g->data->pool, int32_t, n_edges);
    int64_t n = a->count - 1, at = 0;
    if (!to) return rt_fail_nomem(&g->err, ptr->where);
    for (int64_t v = 0; v <= n; v++) {
        int64_t end = rt_array_i64(a, v);
        if (end < at || end > n_edges || (v == 0 && end != 0))
            return rt_fail(&g->err, GNNC_E_FORMAT,
                           "%s: row %lld: they must ascend from 0 to %lld, and %lld follows %lld",
                           ptr->where, (long long)v, (long long)n_edges, (long long)end,
                           (long long)at);
        while (at < end) to[at++] = (int32_t)(v - 1);
    }
    *out = to;
    if (at == n_edges) return GNNC_OK;
    return rt_fail(&g->err, GNNC_E_FORMAT, "%s: they end at %lld of %lld edges", ptr->where,
                   (long long)at, (long long)n_edges);
}

/* Reads and checks the two arrays of edges: sources and destinations, or (e->by) the bounds of
 * compressed rows and the other ends. */
static gnnc_status open_ends(gnnc_graph *g, const Edges *e, RtBorrowed x[2], RtTable *made) {
    const RtTable *of = g->data->nodes;
    gnnc_status st;
    const int32_t *end[2];
    bool by_dst = e->by && *e->by == GNNC_BY_DESTINATION;
    int64_t n_nodes = of[by_dst ? made->dst_type : made->src_type].count;
    for (int i = 0; i < 2; i++) {
        TRY(st, rt_borrowed_open(g, &x[i]));
        TRY(st, rt_borrowed_integers(g, &x[i]));
        TRY(st, rt_borrowed_shape(g, &x[i], 1, (int64_t[]){-1}));
    }
    made->count = x[1].a.count;
    TRY(st, check_count(g, made->name, made->count));
    TRY(st, rt_borrowed_shape(g, &x[0], 1, (int64_t[]){e->by ? n_nodes + 1 : made->count}));
    if (e->by)
        TRY(st, expand(g, &x[0], made->count, &end[0]));
    else
        TRY(st, rt_borrowed_i32(g, &x[0], sizeof(int32_t), &end[0]));
    TRY(st, rt_borrowed_i32(g, &x[1], sizeof(int32_t), &end[1]));
    made->src = end[by_dst];
    made->dst = end[!by_dst];
    st = rt_dataset_check_ends(g->data, made, &g->err);
out:
    return st;
}

/* Adds an edge type between two node types that are there. */
static gnnc_status add_edges(gnnc_graph *g, const Edges *e, RtBorrowed x[2]) {
    RtTable made, *old;
    gnnc_status st;
    if (!g || !e->name || !e->src_type || !e->dst_type)
        return rt_graph_null(g, !e->name ? "name" : !e->src_type ? "src_type" : "dst_type");
    TRY(st, rt_graph_begin(g));
    if (e->by && *e->by != GNNC_BY_SOURCE && *e->by != GNNC_BY_DESTINATION)
        return rt_fail(&g->err, GNNC_E_ARG, "%s: edges are compressed by source or by destination",
                       e->name);
    const RtTable *src = find_in(g, GNNC_NODES, e->src_type);
    const RtTable *dst = src ? find_in(g, GNNC_NODES, e->dst_type) : NULL;
    if (!dst) return GNNC_E_MISSING;
    TRY(st, new_table(g, GNNC_EDGES, e->name, e->shares_name, &made, &old));
    x[0].table = x[1].table = made.name;
    made.src_type = (int)(src - g->data->nodes);
    made.dst_type = (int)(dst - g->data->nodes);
    TRY(st, open_ends(g, e, x, &made));
    st = put_table(g, GNNC_EDGES, &made, old);
out:
    return st;
}

/* Adds edges that lie in the caller's arrays, used without a copy where they can be: sources and
 * destinations, or compressed, pointers and the other ends. */
static gnnc_status add_borrowed_edges(gnnc_graph *g, const Edges *e) {
    RtBorrowed x[2];
    for (int i = 0; i < 2; i++) {
        rt_borrowed_begin(&x[i], g, e->in[i], NULL);
        x[i].where = what_of(&x[i], e->name,
                             i       ? e->by ? "other ends" : "destinations"
                             : e->by ? "pointers"
                                     : "sources");
    }
    gnnc_status st = add_edges(g, e, x);
    for (int i = 0; i < 2; i++) rt_borrowed_end(g, &x[i], st);
    return st;
}

gnnc_status gnnc_graph_add_edges(gnnc_graph *g, const char *name, const char *src_type,
                                 const char *dst_type, const gnnc_array *src,
                                 const gnnc_array *dst) {
    return add_borrowed_edges(g, &(Edges){name, src_type, dst_type, {src, dst}, NULL, false});
}

gnnc_status rt_graph_add_new_edges(gnnc_graph *g, const char *name, const char *src_type,
                                   const char *dst_type, const gnnc_array *src,
                                   const gnnc_array *dst) {
    return add_borrowed_edges(g, &(Edges){name, src_type, dst_type, {src, dst}, NULL, true});
}

gnnc_status gnnc_graph_add_edges_csr(gnnc_graph *g, const char *name, const char *src_type,
                                     const char *dst_type, gnnc_by by, const gnnc_array *ptr,
                                     const gnnc_array *idx) {
    return add_borrowed_edges(g, &(Edges){name, src_type, dst_type, {ptr, idx}, &by, false});
}

/* ---- the end of building -------------------------------------------------------------------- */
gnnc_status gnnc_graph_commit(gnnc_graph *g) {
    if (g && g->committed) return rt_graph_commit_log(g);
    gnnc_status st = rt_graph_begin(g);
    if (st == GNNC_OK && g->changed) st = rt_dataset_check(g->data, &g->err);
    return st == GNNC_OK ? rt_graph_freeze(g) : st;
}

/* ---- what is in it -------- */
/* Table i: node types first, then edge types, then kinds of graphs; NULL: there is none. */
static const RtTable *table_at(RtDataset *d, int i, gnnc_table *kind) {
    for (int k = GNNC_NODES; i >= 0 && k <= GNNC_GRAPHS; k++) {
        Section s = section_of(d, (gnnc_table)k);
        *kind = (gnnc_table)k;
        if (i < *s.n) return &(*s.all)[i];
        i -= *s.n;
    }
    return NULL;
}

int gnnc_graph_n_tables(const gnnc_graph *g) {
    return g ? g->data->n_nodes + g->data->n_edges + g->data->n_graphs : 0;
}

/* What a caller may look at: the newest snapshot, which is left afterwards, or what is being
 * built. */
static RtSnapshot *see(gnnc_graph *g, RtDataset **d) {
    RtSnapshot *s = g->committed ? rt_graph_enter(g) : NULL;
    *d = s ? s->data : g->data;
    return s;
}

/* Describes a table for the caller. */
static gnnc_status tell_table(RtDataset *d, int table, gnnc_table_info *out) {
    gnnc_table kind;
    const RtTable *t = table_at(d, table, &kind);
    if (!t) return GNNC_E_RANGE;
    gnnc_table_info is = {.name = t->name,
                          .count = t->count,
                          .kind = kind,
                          .n_columns = t->n_columns,
                          .src_type = t->src_type < 0 ? NULL : d->nodes[t->src_type].name,
                          .dst_type = t->dst_type < 0 ? NULL : d->nodes[t->dst_type].name,
                          .graphs = t->graph < 0 ? NULL : d->graphs[t->graph].name};
    rt_struct_copy_out(out, &is, sizeof is);
    return GNNC_OK;
}

/* Describes a column for the caller. */
static gnnc_status tell_column(RtDataset *d, int table, int column, gnnc_column_info *out) {
    gnnc_table kind;
    const RtTable *t = table_at(d, table, &kind);
    if (!t || column < 0 || column >= t->n_columns) return GNNC_E_RANGE;
    const RtColumn *c = &t->columns[column];
    bool coded = c->kind == RT_COL_CAT || c->kind == RT_COL_CLASS;
    gnnc_column_info is = {.name = c->name,
                           .kind = (int32_t)c->kind,
                           .rank = c->rank,
                           .n_categories = coded ? c->n_categories : 0,
                           .names = coded ? c->names : NULL,
                           .n_entries = c->kind == RT_COL_CSR ? c->csr.nnz : 0,
                           .n_splits = c->kind == RT_COL_SPLIT ? c->n_splits : 0};
    memcpy(is.shape, c->shape, (size_t)c->rank * sizeof *c->shape);
    rt_struct_copy_out(out, &is, sizeof is);
    return GNNC_OK;
}

/* Counting readers changes nothing that anybody sees. */
static gnnc_graph *unsealed(const gnnc_graph *g) {
    return (gnnc_graph *)(uintptr_t)g;
}

gnnc_status gnnc_graph_table_info(const gnnc_graph *g, int table, gnnc_table_info *out) {
    RtDataset *d;
    if (!g || !out) return GNNC_E_ARG;
    gnnc_status st = RT_STRUCT_CHECK(NULL, gnnc_table_info, out, graphs);
    if (st != GNNC_OK) return st;
    RtSnapshot *s = see(unsealed(g), &d);
    st = tell_table(d, table, out);
    rt_graph_leave(unsealed(g), s);
    return st;
}

gnnc_status gnnc_graph_column_info(const gnnc_graph *g, int table, int column,
                                   gnnc_column_info *out) {
    RtDataset *d;
    if (!g || !out) return GNNC_E_ARG;
    gnnc_status st = RT_STRUCT_CHECK(NULL, gnnc_column_info, out, n_splits);
    if (st != GNNC_OK) return st;
    RtSnapshot *s = see(unsealed(g), &d);
    st = tell_column(d, table, column, out);
    rt_graph_leave(unsealed(g), s);
    return st;
}

void rt_graph_release_loans(gnnc_graph *g) {
    for (RtLoan *l = g->loans; l; l = l->next)
        if (l->done) l->done(l->user);
    g->loans = NULL;
}
