/* Snapshots: made of the one before and the log, entered, left.  A commit copies the tables that
 * rows were appended to, and nothing else; whoever reads an older snapshot sees none of it. */
#include <string.h>

#include "graph.h"

/* ---- readers ------------------------------------------------------------------------ */
RtSnapshot *rt_graph_enter(gnnc_graph *g) {
    pthread_mutex_lock(&g->lock);
    RtSnapshot *s = g->newest;
    s->n_refs++;
    pthread_mutex_unlock(&g->lock);
    return s;
}

void rt_graph_enter_too(gnnc_graph *g, RtSnapshot *s) {
    pthread_mutex_lock(&g->lock);
    s->n_refs++;
    pthread_mutex_unlock(&g->lock);
}

/* What nobody reads any more: unlinked under the lock, released without it, as the host's functions
 * may take long, or call the graph. */
typedef struct {
    RtVersion *versions;
    RtPool arrays; /* of what was built */
    RtLoan *loans;
} Gone;

/* Moves what was lent for a table to `gone`. */
static void unlink_loans(gnnc_graph *g, const char *table, Gone *gone) {
    for (RtLoan **at = &g->loans, *l; (l = *at);) {
        if (l->table != table) {
            at = &l->next;
            continue;
        }
        *at = l->next;
        l->next = gone->loans;
        gone->loans = l;
    }
}

/* Moves a column's arrays to `gone`. */
static void unlink_column(RtPool *pool, const RtColumn *c, Gone *gone) {
    rt_pool_move(pool, c->low, &gone->arrays);
    if (rt_column_kind(c->kind)->layout != RT_LAYOUT_CSR) {
        rt_pool_move(pool, c->values, &gone->arrays);
        return;
    }
    rt_pool_move(pool, c->csr.ptr, &gone->arrays);
    rt_pool_move(pool, c->csr.col, &gone->arrays);
    rt_pool_move(pool, c->csr.val, &gone->arrays);
}

/* Moves what an old version of a table holds to `gone`, to be freed outside the lock. An appended
 * version (not `built`) goes as a whole. The first has its arrays in the graph's own pool, or lent
 * by the host; its names stay, as callers may have them. */
static void unlink_version(gnnc_graph *g, int table, RtVersion *v, Gone *gone) {
    if (!v->built) {
        v->next = gone->versions;
        gone->versions = v;
        return;
    }
    const RtTable *t = rt_snapshot_table(g->data, table);
    RtPool *pool = &g->data->pool;
    for (int i = 0; i < t->n_columns; i++) unlink_column(pool, &t->columns[i], gone);
    rt_pool_move(pool, t->src, &gone->arrays);
    rt_pool_move(pool, t->dst, &gone->arrays);
    unlink_loans(g, t->name, gone);
}

/* Releases what no version of the graph reads any more. It is called without the lock, as callers'
 * functions may call back. */
static void release_gone(Gone *gone) {
    for (RtVersion *v; (v = gone->versions);) {
        RtPool pool = v->pool; /* v lies in it */
        gone->versions = v->next;
        rt_pool_free(&pool);
    }
    rt_pool_free(&gone->arrays);
    for (RtLoan *l = gone->loans; l; l = l->next)
        if (l->done) l->done(l->user);
}

void rt_graph_leave(gnnc_graph *g, RtSnapshot *s) {
    Gone gone = {0};
    if (!s) return;
    rt_pool_init(&gone.arrays, &g->from);
    /* A graph that goes has no other user: a request over a subgraph takes no lock. */
    bool shared = atomic_load_explicit(&g->n_refs, memory_order_relaxed) > 0;
    if (shared) pthread_mutex_lock(&g->lock);
    bool last = --s->n_refs == 0;
    for (int i = 0; last && i < rt_graph_n_tables(g); i++)
        if (--s->of[i]->n_refs == 0) unlink_version(g, i, s->of[i], &gone);
    if (shared) pthread_mutex_unlock(&g->lock);
    if (last && s->data != g->data) rt_dataset_close(s->data); /* s lies in it */
    release_gone(&gone);
}

/* ---- the first one ------------------------------------------------------------------------ */
gnnc_status rt_graph_freeze(gnnc_graph *g) {
    RtPool *pool = &g->data->pool;
    int n = rt_graph_n_tables(g);
    RtSnapshot *s = RT_NEW(pool, RtSnapshot);
    RtVersion *v = RT_NEWN(pool, RtVersion, n);
    RtTail *tail = RT_NEWN(pool, RtTail, n);
    if (!s || !v || !tail || !(s->of = RT_NEWN(pool, RtVersion *, n)))
        return rt_fail_nomem(&g->err, "a snapshot");
    for (int i = 0; i < n; i++) {
        const RtTable *t = rt_snapshot_table(g->data, i);
        tail[i].nnz = RT_NEWN(pool, int64_t, t->n_columns);
        tail[i].known = RT_NEWN(pool, RtDictionary *, t->n_columns);
        if (!tail[i].nnz || !tail[i].known) return rt_fail_nomem(&g->err, "a snapshot");
        tail[i].count = t->count;
        for (int k = 0; k < t->n_columns; k++)
            if (t->columns[k].kind == RT_COL_CSR) tail[i].nnz[k] = t->columns[k].csr.nnz;
        v[i] = (RtVersion){.n_refs = 1, .built = true};
        s->of[i] = &v[i];
    }
    s->n_refs = 1;
    s->data = g->data;
    g->tail = tail;
    g->newest = s;
    atomic_init(&g->refused, "");
    g->committed = true;
    return GNNC_OK;
}

/* ---- the next one --------------------------------------------------------------------------- */
/* What a commit takes of the log of a table; the log may grow behind `last` meanwhile. */
typedef struct {
    RtLogged *first, *last; /* NULL: nothing */
} Span;

typedef struct {
    RtPool *pool, *scratch;
    RtTable *t; /* of the snapshot to come; still as that before */
    const RtLogged *first, *last;
    int64_t n; /* calls */
} Growth;

/* The sources (or destinations) of the table and of the rows that were appended, in one array;
 * NULL: no memory. */
static const int32_t *join_ends(const Growth *w, bool dst, int64_t count) {
    int32_t *to = RT_NEWN(w->pool, int32_t, count), *at = to;
    int64_t n = w->t->count;
    if (to && n) memcpy(at, dst ? w->t->dst : w->t->src, (size_t)n * sizeof *to);
    for (const RtLogged *l = w->first; to; l = l->next) {
        at += n;
        n = l->t.count;
        if (n) memcpy(at, dst ? l->t.dst : l->t.src, (size_t)n * sizeof *to);
        if (l == w->last) break;
    }
    return to;
}

/* Makes each column of the table and of the appended rows one. */
static gnnc_status join_columns(const Growth *w, RtError *err) {
    const RtColumn **part = RT_NEWN(w->scratch, const RtColumn *, w->n + 1);
    gnnc_status st = part ? GNNC_OK : rt_fail_nomem(err, w->t->name);
    for (int k = 0; k < w->t->n_columns && st == GNNC_OK; k++) {
        RtColumn was = w->t->columns[k];
        const RtLogged *l = w->first;
        part[0] = &was;
        for (int64_t i = 1; i <= w->n; i++) {
            part[i] = &l->t.columns[k];
            if (i < w->n) l = l->next;
        }
        st = rt_column_join(w->pool, part, w->n + 1, &w->t->columns[k], err);
    }
    return st;
}

/* Puts the appended rows into the table. Names of nodes and parts were of the old rows alone, and
 * go. */
static gnnc_status grow(const Growth *w, RtError *err) {
    RtTable *t = w->t;
    gnnc_status st = join_columns(w, err);
    int64_t count = t->count;
    if (st != GNNC_OK) return st;
    for (const RtLogged *l = w->first;; l = l->next) {
        count += l->t.count;
        if (l == w->last) break;
    }
    if (t->src_type >= 0) {
        const int32_t *src = join_ends(w, false, count), *dst = join_ends(w, true, count);
        if (!src || !dst) return rt_fail_nomem(err, t->name);
        t->src = src;
        t->dst = dst;
    }
    if (count > t->count) t->names = NULL, t->names_file = NULL; /* new rows have none */
    if (count > t->count) t->n_parts = 0, t->part_ptr = NULL, t->part_rows = NULL;
    t->count = count;
    return GNNC_OK;
}

/* *out lies in its own memory; nothing is left of it after a failure. */
static gnnc_status new_version(gnnc_graph *g, Growth *w, RtVersion **out, RtError *err) {
    RtPool pool, scratch;
    rt_pool_init(&pool, &g->from);
    rt_pool_init(&scratch, &g->from);
    w->pool = &pool;
    w->scratch = &scratch;
    w->n = 1;
    for (const RtLogged *l = w->first; l != w->last; l = l->next) w->n++;
    RtVersion *v = RT_NEW(&pool, RtVersion);
    gnnc_status st = v ? grow(w, err) : rt_fail_nomem(err, w->t->name);
    rt_pool_free(&scratch);
    if (st == GNNC_OK)
        v->pool = pool;
    else
        rt_pool_free(&pool);
    *out = st == GNNC_OK ? v : NULL;
    return st;
}

/* Frees the versions in `of` that `was` does not have. */
static void drop_new(RtVersion **of, const RtSnapshot *was, int n) {
    for (int i = 0; i < n; i++) {
        if (!of[i] || of[i] == was->of[i]) continue;
        RtPool pool = of[i]->pool;
        rt_pool_free(&pool);
    }
}

/* Makes a snapshot of `was` and the appended rows `log`; NULL: no memory. */
static RtSnapshot *next_snapshot(gnnc_graph *g, const RtSnapshot *was, const Span *log) {
    int n = rt_graph_n_tables(g);
    gnnc_status st = GNNC_OK;
    RtError err = {{0}};
    RtDataset *d = rt_dataset_view(&g->from, was->data);
    if (!d) return NULL;
    d->of = g->data; /* whose files stay open */
    RtSnapshot *s = RT_NEW(&d->pool, RtSnapshot);
    if (s) *s = (RtSnapshot){1, d, RT_NEWN(&d->pool, RtVersion *, n)};
    if (!s || !s->of) {
        rt_dataset_close(d);
        return NULL;
    }
    for (int i = 0; i < n && st == GNNC_OK; i++) {
        Growth w = {.t = rt_snapshot_table(d, i), .first = log[i].first, .last = log[i].last};
        s->of[i] = was->of[i];
        if (log[i].last) st = new_version(g, &w, &s->of[i], &err);
    }
    if (st == GNNC_OK) return s;
    drop_new(s->of, was, n);
    rt_dataset_close(d);
    return NULL;
}

/* Takes the rows that were put into the table out of the log. */
static void cut(RtTail *t, const Span *s) {
    if (!s->last) return;
    t->first = s->last->next;
    if (!t->first) t->last = NULL;
    s->last->next = NULL;
}

/* Releases a list of appended rows. */
static void free_logged(gnnc_graph *g, RtLogged *l) {
    for (RtLogged *next; l; l = next) {
        next = l->next;
        g->from.release(g->from.user, l);
    }
}

/* Gives the snapshot before, for the caller to leave. */
static RtSnapshot *publish(gnnc_graph *g, RtSnapshot *s, const Span *log) {
    int n = rt_graph_n_tables(g);
    pthread_mutex_lock(&g->lock);
    RtSnapshot *was = g->newest;
    g->newest = s;
    for (int i = 0; i < n; i++) {
        s->of[i]->n_refs++;
        cut(&g->tail[i], &log[i]);
    }
    pthread_mutex_unlock(&g->lock);
    for (int i = 0; i < n; i++) free_logged(g, log[i].first);
    return was;
}

gnnc_status rt_graph_commit_log(gnnc_graph *g) {
    RtPool scratch;
    int n = rt_graph_n_tables(g);
    bool any = false;
    gnnc_status st = GNNC_E_NOMEM;
    rt_pool_init(&scratch, &g->from);
    Span *log = RT_NEWN(&scratch, Span, n);
    pthread_mutex_lock(&g->committing);
    pthread_mutex_lock(&g->lock);
    for (int i = 0; i < n && log; i++) {
        log[i] = (Span){g->tail[i].first, g->tail[i].last};
        any |= log[i].last != NULL;
    }
    pthread_mutex_unlock(&g->lock);
    RtSnapshot *s = any ? next_snapshot(g, g->newest, log) : NULL; /* nobody else replaces it */
    RtSnapshot *was = s ? publish(g, s, log) : NULL;
    pthread_mutex_unlock(&g->committing);
    rt_graph_leave(g, was); /* calls `done`, which may commit */
    if (s || (log && !any)) st = GNNC_OK;
    if (st != GNNC_OK)
        atomic_store(&g->refused, "a snapshot: out of memory; appended rows stay in the log");
    rt_pool_free(&scratch);
    return st;
}

/* Frees the log of rows that were appended, and the dictionaries of categories. */
void rt_graph_drop_log(gnnc_graph *g) {
    for (int i = 0; g->tail && i < rt_graph_n_tables(g); i++) {
        free_logged(g, g->tail[i].first);
        for (int k = 0; k < rt_snapshot_table(g->data, i)->n_columns; k++) {
            if (!g->tail[i].known[k]) continue;
            RtPool pool = g->tail[i].known[k]->pool; /* it lies in it */
            rt_pool_free(&pool);
        }
    }
}
