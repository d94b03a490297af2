#include "partition.h"

#include <string.h>

#include "runtime/memory.h"
#include "runtime/partition/metis_cut.h"

enum {
    WEIGHTS_MOST = 8 /* that METIS balances: each makes its cut worse */
};

/* ---- units ----------------------------------------------------------------------------------- */
/* Lists what is dealt to parts: rows of node types, and of graphs, whose nodes go with them. Each
 * table's units are consecutive. */
static gnnc_status list_units(RtUnits *u, RtError *err) {
    const RtDataset *d = u->d;
    RtPool *pool = u->pool;
    gnnc_status st = GNNC_OK;
    int most = d->n_nodes + d->n_graphs;
    u->table = RT_NEWN(pool, const RtTable *, most + 1);
    u->first = RT_NEWN(pool, int64_t, most + 1);
    u->of_type = RT_NEWN(pool, int, d->n_nodes);
    u->graph = RT_NEWN(pool, const int32_t *, d->n_nodes);
    if (!u->table || !u->first || !u->of_type || !u->graph) return rt_fail_nomem(err, "parts");
    for (int i = 0; i < d->n_nodes; i++) {
        if (d->nodes[i].graph >= 0) continue;
        u->of_type[i] = u->n_tables;
        u->table[u->n_tables++] = &d->nodes[i];
    }
    int graphs = u->n_tables;
    for (int i = 0; i < d->n_graphs; i++) u->table[u->n_tables++] = &d->graphs[i];
    for (int t = 0; t < u->n_tables; t++) u->first[t + 1] = u->first[t] + u->table[t]->count;
    u->n = u->first[u->n_tables];
    for (int i = 0; i < d->n_nodes && st == GNNC_OK; i++) {
        const RtTable *t = &d->nodes[i];
        if (t->graph < 0) continue;
        u->of_type[i] = graphs + t->graph;
        st = rt_table_graph_of(pool, t, d->graphs[t->graph].count, &u->graph[i], err);
    }
    for (int i = 0; i < d->n_edges; i++) {
        u->n_edges += d->edges[i].count;
        if (st == GNNC_OK && d->edges[i].count > INT32_MAX)
            st = rt_fail(err, GNNC_E_RANGE, "%s: %lld edges: at most 2^31 - 1 are cut into parts",
                         d->edges[i].name, (long long)d->edges[i].count);
    }
    if (st == GNNC_OK && (u->n >= INT32_MAX || u->n < u->n_parts))
        st = rt_fail(err, GNNC_E_RANGE, "%lld rows cannot be cut into %d parts", (long long)u->n,
                     u->n_parts);
    return st;
}

static int64_t unit_of(const RtUnits *u, int type, int32_t row) {
    return u->first[u->of_type[type]] + (u->graph[type] ? u->graph[type][row] : row);
}

/* ---- what is balanced ------------------------------------------------------------------------ */
/* Adds an edge to the work of the units at its ends. */
static void count_work(void *arg, int64_t a, int64_t b) {
    const RtUnits *u = arg;
    u->work[a] += u->work[a] < UINT32_MAX;
    u->work[b] += u->work[b] < UINT32_MAX;
}

/* Marks, in u->train, the rows of table t that its split column has in the training set. */
static void mark_train(const RtUnits *u, int t) {
    const RtTable *table = u->table[t];
    for (int k = 0; k < table->n_columns; k++) {
        const RtColumn *c = &table->columns[k];
        if (c->kind != RT_COL_SPLIT) continue;
        for (int64_t i = 0; i < table->count; i++) u->train[u->first[t] + i] = c->splits[i] == 1;
        return;
    }
}

/* 3 in 100 more than its share, and what one unit more makes of it. */
static int64_t cap_of(int64_t all, int n_parts, int64_t one) {
    return all / n_parts + all / n_parts * 3 / 100 + one;
}

/* Fills in the units' work (nodes and edges) and which are for training, and the most that a part
 * may have of each load (RtUnits.cap). */
static gnnc_status weigh(RtUnits *u, RtError *err) {
    int64_t work = 0, most = 1, n_caps = rt_n_loads(u), n_loads = n_caps * u->n_parts;
    u->work = RT_NEWN(u->pool, uint32_t, u->n);
    u->train = RT_NEWN(u->pool, uint8_t, u->n);
    u->load = RT_NEWN(u->pool, int64_t, n_loads);
    u->cap = RT_NEWN(u->pool, int64_t, n_caps);
    if (!u->work || !u->train || !u->load || !u->cap) return rt_fail_nomem(err, "parts");
    for (int i = 0; i < u->d->n_nodes; i++)
        for (int64_t v = 0; v < u->d->nodes[i].count; v++) u->work[unit_of(u, i, (int32_t)v)]++;
    for (int64_t v = 0; v < u->n; v++) u->work[v] += !u->work[v]; /* a graph without nodes */
    rt_units_edges(u, count_work, u);
    for (int64_t v = 0; v < u->n; v++) {
        work += u->work[v];
        if (u->work[v] > most) most = u->work[v];
    }
    u->cap[0] = cap_of(work, u->n_parts, most);
    for (int t = 0; t < u->n_tables; t++) {
        int64_t train = 0;
        mark_train(u, t);
        for (int64_t v = u->first[t]; v < u->first[t + 1]; v++) train += u->train[v];
        u->cap[1 + t] = cap_of(u->table[t]->count, u->n_parts, 1);
        u->cap[1 + u->n_tables + t] = cap_of(train, u->n_parts, 1);
    }
    return GNNC_OK;
}

/* ---- ways to cut ----------------------------------------------------------------------------- */
/* Chooses the loads that METIS balances, each by a weight: load[0] = 0 is the work, then of u->cap
 * rows of tables and training rows of tables. A load of at most 16 a part is left out, and so are
 * training rows where all rows are. */
static int choose_weights(const RtUnits *u, int load[WEIGHTS_MOST]) {
    int n = 1;
    load[0] = 0;
    for (int i = 1; i < rt_n_loads(u) && n < WEIGHTS_MOST; i++) {
        bool both = i > u->n_tables && u->cap[i] == u->cap[i - u->n_tables];
        if (u->cap[i] > 16 && !both) load[n++] = i;
    }
    return n;
}

static void each_edge(void *u, RtEdgeVisit *visit, void *to) {
    rt_units_edges(u, visit, to);
}

/* Cuts the units into parts with METIS, balancing the loads that choose_weights() chooses; part[v]
 * gets the part of unit v. */
gnnc_status rt_units_metis(const RtUnits *u, uint64_t seed, int32_t *part, RtError *err) {
    RtPool pool;
    int load[WEIGHTS_MOST], n = choose_weights(u, load);
    if (u->step >= RT_STEP_CUT) return rt_units_refine(u, 6, part, err);
    rt_pool_init(&pool, &u->pool->from);
    int32_t *weight = RT_NEWN(&pool, int32_t, n * u->n);
    gnnc_status st = weight ? GNNC_OK : rt_fail_nomem(err, "parts");
    for (int t = 0; t < u->n_tables && weight; t++)
        for (int64_t v = u->first[t]; v < u->first[t + 1]; v++) /* halves: sums stay small */
            for (int k = 0; k < n; k++)
                weight[v * n + k] = load[k] == 0       ? (int32_t)((u->work[v] + 1) / 2)
                                    : load[k] == 1 + t ? 1
                                    : load[k] == 1 + u->n_tables + t ? u->train[v]
                                                                     : 0;
    RtMetisGraph how = {"parts", u->n,   u->n_edges, each_edge, (void *)(uintptr_t)u,
                        n,       weight, u->n_parts, seed};
    if (st == GNNC_OK) st = rt_metis_partition(&how, &pool.from, part, err);
    rt_pool_free(&pool);
    if (st != GNNC_OK) return st;
    rt_units_keep(u, RT_STEP_CUT, part);
    return rt_units_refine(u, 6, part, err);
}

/* Each table by itself: a part has as many rows of it as any. */
static void cut_rows(const RtUnits *u, int32_t *part) {
    for (int t = 0; t < u->n_tables; t++)
        for (int64_t v = u->first[t]; v < u->first[t + 1]; v++)
            part[v] = (int32_t)((v - u->first[t]) * u->n_parts / u->table[t]->count);
}

/* The method to cut with: the one asked for, or else METIS where it is there and fits into memory,
 * and streaming otherwise. */
static RtPartitionMethod choose(const RtUnits *u, const RtPartitionOptions *how) {
    int load[WEIGHTS_MOST];
    int64_t most = how->memory ? how->memory : (int64_t)rt_memory_limit(0).n_bytes;
    int64_t want = rt_metis_bytes(u->n, u->n_edges, choose_weights(u, load));
    if (how->by != RT_PARTITION_CHOOSE) return how->by;
    return rt_has_metis() && want <= most && u->n_edges < INT32_MAX / 2 ? RT_PARTITION_METIS
                                                                        : RT_PARTITION_STREAM;
}

/* Cuts the units into parts with the method u->by; part[v] gets the part of unit v. */
static gnnc_status cut(const RtUnits *u, const RtPartitionOptions *how, int32_t *part,
                       RtError *err) {
    switch (u->by) {
    case RT_PARTITION_METIS:
        return rt_units_metis(u, how->seed, part, err);
    case RT_PARTITION_STREAM:
        return rt_units_stream(u, part, err);
    case RT_PARTITION_CHOOSE:
    case RT_PARTITION_ROWS:
        cut_rows(u, part);
        break;
    }
    return GNNC_OK;
}

/* ---- where rows go --------------------------------------------------------------------------- */
/* Orders rows by part, and within a part as they were. Row i is in part[of[i]], or part[i]
 * without `of`. */
static gnnc_status order_rows_by_part(RtPool *pool, const RtTable *t, const int32_t *part,
                                      const int32_t *of, int n_parts, RtMove *to, RtError *err) {
    int32_t *rows = RT_NEWN(pool, int32_t, t->count), *place = RT_NEWN(pool, int32_t, t->count);
    int64_t *ptr = RT_NEWN(pool, int64_t, n_parts + 2);
    int32_t *original = t->part_rows ? RT_NEWN(pool, int32_t, t->count) : rows;
    if (!rows || !place || !ptr || !original) return rt_fail_nomem(err, t->name);
    for (int64_t i = 0; i < t->count; i++) ptr[part[of ? of[i] : i] + 2]++;
    for (int p = 0; p < n_parts; p++) ptr[p + 2] += ptr[p + 1];
    for (int64_t i = 0; i < t->count; i++) {
        int64_t at = ptr[part[of ? of[i] : i] + 1]++;
        rows[at] = (int32_t)i;
        place[i] = (int32_t)at;
    }
    for (int64_t i = 0; t->part_rows && i < t->count; i++) original[i] = t->part_rows[rows[i]];
    *to = (RtMove){rows, place, ptr, original};
    return GNNC_OK;
}

/* Orders the rows of all tables of nodes and graphs by part: m gets where each row moves to. */
static gnnc_status order_all(const RtUnits *u, const int32_t *part, RtMoves *m, RtError *err) {
    const RtDataset *d = u->d;
    RtMove *nodes = RT_NEWN(u->pool, RtMove, d->n_nodes);
    RtMove *graphs = RT_NEWN(u->pool, RtMove, d->n_graphs);
    if (!nodes || !graphs) return rt_fail_nomem(err, "parts");
    gnnc_status st = GNNC_OK;
    for (int i = 0; i < d->n_nodes && st == GNNC_OK; i++)
        st = order_rows_by_part(u->pool, &d->nodes[i], part + u->first[u->of_type[i]], u->graph[i],
                                u->n_parts, &nodes[i], err);
    for (int i = 0; i < d->n_graphs && st == GNNC_OK; i++)
        st = order_rows_by_part(u->pool, &d->graphs[i],
                                part + u->first[u->n_tables - d->n_graphs + i], NULL, u->n_parts,
                                &graphs[i], err);
    *m = (RtMoves){u->n_parts, nodes, graphs};
    return st;
}

/* ---- the report ------------------------------------------------------------------------------ */
typedef struct {
    const RtUnits *u;
    const int32_t *part;
    RtPartition *out;
    const int64_t *type_first; /* [n_nodes + 1] first number of a node type */
    uint64_t *seen;            /* [nodes] parts that were told of it, */
    int base;                  /* .. of 64 from this one on */
} Told;

/* Counts a node once for each part that reads it from another part, 64 parts at a time. */
static int64_t count_halo_rows(Told *w, int64_t node, int part) {
    if (part < w->base || part >= w->base + 64) return 0;
    uint64_t bit = (uint64_t)1 << (part - w->base), had = w->seen[node] & bit;
    w->seen[node] |= bit;
    return !had;
}

/* Edge e of table t, whose ends lie in these parts. */
typedef void EdgeFn(Told *w, const RtTable *t, int64_t e, int src, int dst);

/* Calls `tell` for each edge of the data, with the parts of its source and its destination. */
static void tell_edges(Told *w, EdgeFn *tell) {
    const RtUnits *u = w->u;
    for (int k = 0; k < u->d->n_edges; k++) {
        const RtTable *t = &u->d->edges[k];
        for (int64_t e = 0; e < t->count; e++) {
            tell(w, t, e, w->part[unit_of(u, t->src_type, t->src[e])],
                 w->part[unit_of(u, t->dst_type, t->dst[e])]);
            if (e % RT_FORGET_EDGES == RT_FORGET_EDGES - 1) rt_dataset_forget_pages(u->d);
        }
        rt_dataset_forget_pages(u->d);
    }
}

/* Rows that the edges of parts base .. base + 63 lead to, or come from, in other parts. */
static void far_out(Told *w, const RtTable *t, int64_t e, int src, int dst) {
    if (src != dst)
        w->out->part[src].out += count_halo_rows(w, w->type_first[t->dst_type] + t->dst[e], src);
}

static void far_in(Told *w, const RtTable *t, int64_t e, int src, int dst) {
    if (src != dst)
        w->out->part[dst].in += count_halo_rows(w, w->type_first[t->src_type] + t->src[e], dst);
}

/* Counts an edge for the report: to the part of its destination, and as cut if it leaves a part. */
static void count_edge(Told *w, const RtTable *t, int64_t e, int src, int dst) {
    (void)t, (void)e;
    w->out->part[dst].edges++;
    w->out->cut += src != dst;
}

/* Counts each part's halo, the rows of other parts at the far ends of its edges, once each; 64
 * parts in one walk over the edges, a bit each, for incoming and for outgoing edges. */
static gnnc_status tell_halo(RtPool *pool, Told *w, RtError *err) {
    const RtDataset *d = w->u->d;
    int64_t *first = RT_NEWN(pool, int64_t, d->n_nodes + 1);
    for (int i = 0; first && i < d->n_nodes; i++) first[i + 1] = first[i] + d->nodes[i].count;
    w->type_first = first;
    w->seen = first ? RT_NEWN(pool, uint64_t, first[d->n_nodes]) : NULL;
    if (!w->seen) return rt_fail_nomem(err, "parts");
    static EdgeFn *const ways[] = {far_in, far_out};
    for (w->base = 0; w->base < w->u->n_parts; w->base += 64)
        for (int i = 0; i < 2; i++) {
            memset(w->seen, 0, (size_t)first[d->n_nodes] * sizeof *w->seen);
            tell_edges(w, ways[i]);
        }
    return GNNC_OK;
}

/* Counts, for each table, its rows and training rows and how evenly they lie on the parts. */
static void tell_tables(Told *w) {
    const RtUnits *u = w->u;
    RtPartition *o = w->out;
    memset(u->load, 0, (size_t)(u->n_parts * rt_n_loads(u)) * sizeof *u->load);
    for (int t = 0; t < u->n_tables; t++) {
        RtPartTable *to = &o->table[t];
        *to = (RtPartTable){.name = u->table[t]->name, .rows = u->table[t]->count};
        for (int64_t v = u->first[t]; v < u->first[t + 1]; v++) {
            u->load[w->part[v] * rt_n_loads(u) + 1 + t]++;
            u->load[w->part[v] * rt_n_loads(u) + 1 + u->n_tables + t] += u->train[v];
            to->train += u->train[v];
        }
        for (int p = 0; p < u->n_parts; p++) {
            const int64_t *load = u->load + p * rt_n_loads(u);
            if (load[1 + t] > to->most) to->most = load[1 + t];
            if (load[1 + u->n_tables + t] > to->most_train)
                to->most_train = load[1 + u->n_tables + t];
            o->part[p].train += load[1 + u->n_tables + t];
            if (t >= u->n_tables - u->d->n_graphs) o->part[p].graphs += load[1 + t];
        }
    }
    o->n_tables = u->n_tables;
}

/* Fills in the numbers that describe the partition: sizes of parts, cut edges, halos and balance.
 */
static gnnc_status tell(const RtUnits *u, const int32_t *part, RtPartition *o, RtError *err) {
    RtPool pool;
    double all = 0, same = 0;
    Told w = {.u = u, .part = part, .out = o};
    o->part = RT_NEWN(u->pool, RtPartStats, u->n_parts);
    o->table = RT_NEWN(u->pool, RtPartTable, u->n_tables);
    if (!o->part || !o->table) return rt_fail_nomem(err, "parts");
    for (int i = 0; i < u->d->n_nodes; i++)
        for (int p = 0; p < u->n_parts; p++)
            o->part[p].nodes += o->moves.nodes[i].ptr[p + 1] - o->moves.nodes[i].ptr[p];
    for (int p = 0; p < u->n_parts; p++) {
        all += (double)o->part[p].nodes;
        same += (double)o->part[p].nodes * (double)o->part[p].nodes;
    }
    o->by_chance = all > 0 ? 1 - same / all / all : 0;
    tell_tables(&w);
    tell_edges(&w, count_edge);
    o->edges = u->n_edges;
    rt_pool_init(&pool, &u->pool->from);
    gnnc_status st = tell_halo(&pool, &w, err);
    rt_pool_free(&pool);
    return st;
}

/* Cuts the rows of a data set into how->n_parts parts; *out gets the order of rows by part and the
 * numbers that describe it. Its memory is the pool's. */
gnnc_status rt_partition(RtPool *pool, const RtDataset *d, const RtPartitionOptions *how,
                         RtPartition *out, RtError *err) {
    RtUnits u = {.pool = pool, .d = d, .n_parts = how->n_parts};
    int32_t *part;
    gnnc_status st;
    if (how->n_parts < 1 || how->n_parts > RT_PARTS_MOST)
        return rt_fail(err, GNNC_E_RANGE, "%d parts: there may be 1 to %d", how->n_parts,
                       RT_PARTS_MOST);
    TRY(st, list_units(&u, err));
    TRY(st, weigh(&u, err));
    part = RT_NEWN(pool, int32_t, u.n);
    if (!part) return rt_fail_nomem(err, "parts");
    TRY(st, rt_units_find(&u, how, part, err));
    out->resumed = u.step > 0;
    if (!out->resumed) u.by = choose(&u, how);
    out->by = u.by;
    if (u.step < RT_STEP_DONE) {
        TRY(st, cut(&u, how, part, err));
        rt_units_keep(&u, RT_STEP_DONE, part);
    }
    TRY(st, order_all(&u, part, &out->moves, err));
    st = tell(&u, part, out, err);
out:
    return st;
}
