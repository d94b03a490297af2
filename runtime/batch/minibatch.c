/* A mini-batch is bound as the whole data are (bind.c), but for where tables come from: node
 * columns are taken by the batch's ids, edge columns by canonical position, and base
 * relations are the sampled edges.  Derived relations, maps and balanced loops are made by
 * the same code, in memory that the next batch reuses. */
#include "minibatch.h"

#include <string.h>

#include "runtime/device/device_bind.h"

/* Numbers the node types and relations that a batch is sampled of, and lists the spaces they are in
 * the program. Spaces that are the first rows of others have no number. */
gnnc_status rt_batch_map(RtPool *pool, const rt_program *p, RtBatchMap *m, RtError *err) {
    *m = (RtBatchMap){.graph_space = -1};
    m->space_of_type = RT_NEWN(pool, int, p->n_spaces);
    m->space_of_rel = RT_NEWN(pool, int, p->n_spaces);
    m->type_of_space = RT_NEWN(pool, int, p->n_spaces);
    m->rel_of_space = RT_NEWN(pool, int, p->n_spaces);
    if (!m->space_of_type || !m->space_of_rel || !m->type_of_space || !m->rel_of_space)
        return rt_fail_nomem(err, "batches");
    for (int s = 0; s < p->n_spaces; s++) {
        const rt_space *sp = &p->spaces[s];
        m->type_of_space[s] = m->rel_of_space[s] = -1;
        if (sp->first) continue;
        if (sp->kind == RT_SP_GRAPH) m->graph_space = s;
        if (sp->kind == RT_SP_NODE) m->space_of_type[m->type_of_space[s] = m->n_types++] = s;
        if (p->spaces[s].sampled) m->space_of_rel[m->rel_of_space[s] = m->n_rels++] = s;
    }
    return GNNC_OK;
}

/* ---- life ------------------------------------------------------------------------------ */
/* Starts with the bindings of the full data; each step then replaces those of its batch. */
static void inherit_full_data(RtMinibatch *m, const RtBound *data) {
    const rt_program *p = m->x.program;
    m->bound.split = data->split;
    m->bound.has_conditions = data->has_conditions;
    m->bound.nz = data->nz;
    memcpy(m->bound.rel, data->rel, sizeof *data->rel * (size_t)p->n_spaces);
    memcpy(m->bound.ready, data->ready, sizeof *data->ready * (size_t)p->n_spaces);
    memcpy(m->bound.col, data->col, sizeof *data->col * (size_t)p->n_columns);
    memcpy(m->bound.balance, data->balance, sizeof *data->balance * (size_t)p->n_maps);
}

void rt_minibatch_over(RtMinibatch *m, const RtExec *x) {
    const rt_program *p = x->program;
    memcpy(m->x.buf, x->buf, sizeof *x->buf * (size_t)p->n_bufs);
    memcpy(m->bound.table, x->rt->bound->table, sizeof *m->bound.table * (size_t)p->n_spaces);
    if (!m->batch) inherit_full_data(m, x->rt->bound);
}

gnnc_status rt_minibatch_new(RtPool *pool, const RtAlloc *from, const RtExec *x, RtBatch *batch,
                             RtMinibatch *m, RtError *err) {
    const rt_program *p = x->program;
    *m = (RtMinibatch){.batch = batch, .x = *x, .bound = *x->rt->bound};
    rt_recycle_init(&m->memory, from);
    m->x.profile = NULL;
    m->x.n = RT_NEWN(pool, int64_t, p->n_syms);
    m->x.buf = RT_NEWN(pool, void *, p->n_bufs);
    m->column = RT_NEWN(pool, RtColumn, p->n_columns);
    m->column_buf = RT_NEWN(pool, RtColumnBuf, p->n_columns);
    m->bound.rel = RT_NEWN(pool, RtRelation, p->n_spaces);
    m->bound.ready = RT_NEWN(pool, bool, p->n_spaces);
    m->bound.table = RT_NEWN(pool, const RtTable *, p->n_spaces);
    m->nodes = RT_NEWN(pool, RtTable, p->n_spaces);
    m->distinct = RT_NEWN(pool, RtDistinctRows, p->n_spaces);
    m->bound.distinct = batch ? m->distinct : NULL;
    m->bound.col = RT_NEWN(pool, const RtColumn *, p->n_columns);
    m->bound.nz = RT_NEWN(pool, RtNz, p->n_columns);
    m->defers = x->rt->device && x->rt->device->gathers;
    bool gathers = x->rt->device && p->device_gather;
    if (gathers && !(m->gathers = RT_NEWN(pool, RtDeviceGather, p->n_bufs)))
        return rt_fail_nomem(err, "batches");
    m->bound.balance = RT_NEWN(pool, const int64_t *, p->n_maps);
    if (!m->x.n || !m->x.buf || !m->column || !m->column_buf || !m->bound.rel || !m->bound.ready ||
        !m->bound.table || !m->nodes || !m->distinct || !m->bound.col || !m->bound.nz ||
        !m->bound.balance)
        return rt_fail_nomem(err, "batches");
    m->x.balance = m->bound.balance;
    m->bound.split = 0; /* of a taken column only the chosen split is there */
    m->bound.has_conditions = true;
    m->bound.maps = NULL;
    m->bound.pulled = NULL; /* a batch has all its rows, once they came */
    m->bound.file = NULL;   /* whose arrays are of the whole data */
    m->bound.found = false;
    m->bound.for_request = p->sampling.serve;
    rt_minibatch_over(m, x);
    return GNNC_OK;
}

/* Releases the batch, its columns and its memory. */
void rt_minibatch_free(RtMinibatch *m) {
    rt_device_bind_free(m->bound.maps);
    for (int c = 0; m->batch && m->column_buf && c < m->x.program->n_columns; c++)
        rt_batch_column_free(m->batch, &m->column_buf[c]);
    if (m->batch) rt_batch_free(m->batch);
    if (m->memory.growth.from.alloc) rt_recycle_free(&m->memory);
}

gnnc_status rt_minibatch_reserve(RtMinibatch *m, const RtMinibatch *like, RtError *err) {
    gnnc_status st = GNNC_OK;
    if (m->batch) TRY(st, rt_batch_reserve(m->batch, like->batch, err));
    for (int c = 0; m->batch && c < m->x.program->n_columns; c++) {
        RtGrowth *g = &m->batch->growth;
        RtColumnBuf *to = &m->column_buf[c];
        const RtColumnBuf *from = &like->column_buf[c];
        TRY(st, rt_grow_like(g, &to->a, &from->a, err));
        TRY(st, rt_grow_like(g, &to->b, &from->b, err));
        TRY(st, rt_grow_like(g, &to->c, &from->c, err));
    }
    st = rt_grow_like(&m->memory.growth, &m->memory.block, &like->memory.block, err);
out:
    return st;
}

/* ---- binding ------------------------------------------------------------------------------ */
RtPool *rt_minibatch_begin(RtMinibatch *m, const RtExec *data, bool first) {
    const rt_program *p = data->program;
    m->memory.growth.roomy = first;
    rt_recycle_reset(&m->memory);
    RtAlloc a = rt_recycle_alloc(&m->memory);
    m->rt = (RtRuntime){.bound = &m->bound};
    rt_pool_init(&m->rt.pool, &a);
    m->x.rt = &m->rt;
    memcpy(m->x.n, data->n, sizeof *m->x.n * (size_t)p->n_syms);
    if (!m->batch) return &m->rt.pool;
    if (m->bound.maps) rt_device_bind_begin(m->bound.maps);
    memset(m->bound.ready, 0, sizeof *m->bound.ready * (size_t)p->n_spaces);
    memset(m->bound.rel, 0, sizeof *m->bound.rel * (size_t)p->n_spaces);
    return &m->rt.pool;
}

/* The seeds of the whole graph are all its nodes. */
static void bind_whole(RtMinibatch *m) {
    const rt_space *all = m->x.program->spaces;
    for (int s = 0; s < m->x.program->n_spaces; s++)
        if (all[s].first && all[s].kind == RT_SP_NODE)
            m->x.n[all[s].sym] = m->x.n[all[all[s].whole].sym];
}

/* The edges of a space where the device drew them, if it binds them. */
static void bind_there(RtMinibatch *m, int space) {
    RtRelation r = m->bound.rel[space];
    if (!m->bound.maps) return;
    r.ptr = rt_batch_there(m->batch, r.ptr);
    r.src = rt_batch_there(m->batch, r.src);
    r.dst = rt_batch_there(m->batch, r.dst);
    r.id = rt_batch_there(m->batch, r.id);
    rt_device_bind_edges(m->bound.maps, space, &r);
}

/* Binds the sampled node types and relations of the program to the batch: sizes and edges. */
static void bind_base(RtMinibatch *m, const RtBatchMap *map) {
    const rt_program *p = m->x.program;
    for (int t = 0; t < map->n_types; t++)
        m->x.n[p->spaces[map->space_of_type[t]].sym] = m->batch->nodes[t].n;
    for (int r = 0; r < map->n_rels; r++) {
        int s = map->space_of_rel[r];
        const rt_space *sp = &p->spaces[s];
        m->bound.rel[s] = rt_batch_relation(m->batch, r, map->type_of_space[sp->src],
                                            map->type_of_space[sp->dst]);
        m->bound.ready[s] = true;
        m->x.n[sp->sym] = m->batch->edges[r].n;
        bind_there(m, s);
    }
}

/* The first nodes and edges, where they are. */
static void bind_prefix(RtMinibatch *m, const RtBatchMap *map, int space) {
    const rt_space *s = &m->x.program->spaces[space], *ends = m->x.program->spaces;
    const RtBatch *b = m->batch;
    if (s->kind == RT_SP_NODE) {
        m->x.n[s->sym] = rt_batch_nodes_needed(b, map->type_of_space[s->whole], s->hops);
        return;
    }
    const rt_space *whole = &ends[s->whole];
    int src = map->type_of_space[whole->src], dst = map->type_of_space[whole->dst];
    int rel = map->rel_of_space[s->whole];
    RtRelation *r = &m->bound.rel[space];
    *r = rt_batch_relation(b, rel, src, dst);
    r->n_src = rt_batch_nodes_needed(b, src, s->hops + 1);
    r->n_dst = rt_batch_nodes_needed(b, dst, s->hops);
    r->n_edges = rt_batch_edges_needed(b, rel, s->hops);
    r->by_src = (RtGroups){0};
    r->nested = whole->src == whole->dst;
    m->bound.ready[space] = true;
    m->x.n[s->sym] = r->n_edges;
    bind_there(m, space);
}

/* Binds a space of the distinct rows of a node type in the batch. They are found once for a type; a
 * space has the first of them, by how many belong to the nodes of its hops. */
static gnnc_status bind_distinct_rows(RtMinibatch *m, const RtExec *data, const RtBatchMap *map,
                                      int space) {
    const rt_program *p = m->x.program;
    const rt_space *s = &p->spaces[space];
    int type = map->type_of_space[s->whole], like = 0;
    while (!p->spaces[like].once || p->spaces[like].whole != s->whole) like++;
    RtDistinctRows *to = &m->distinct[space];
    *to = m->distinct[like];
    if (like == space) {
        int64_t n_all = data->n[p->spaces[s->whole].sym];
        gnnc_status st = rt_batch_once(&m->rt.pool, &m->batch->nodes[type], n_all, to, &m->rt.err);
        if (st != GNNC_OK) return st;
    }
    m->x.n[s->sym] = rt_distinct_among(to, rt_batch_nodes_needed(m->batch, type, s->hops));
    return GNNC_OK;
}

/* Nodes come graph by graph: where those of each begin. */
static gnnc_status bind_graphs(RtMinibatch *m, const RtExec *data, const RtBatchMap *map) {
    const rt_program *p = m->x.program;
    bool drawn = m->bound.for_request && p->sampling.seeds != RT_SEEDS_GRAPHS;
    if (map->graph_space < 0 || drawn) return GNNC_OK; /* rows of graphs are no batch's */
    m->x.n[p->spaces[map->graph_space].sym] = m->graphs.n;
    for (int t = 0; t < map->n_types; t++) {
        const RtBatchNodes *v = &m->batch->nodes[t];
        int space = map->space_of_type[t];
        RtTable *nodes = &m->nodes[space];
        int64_t *ptr = RT_NEWN(&m->rt.pool, int64_t, m->graphs.n + 1);
        if (!ptr) return rt_fail_nomem(&m->rt.err, "a batch");
        for (int64_t i = 0; i < v->n; i++) ptr[v->tree[i] + 1]++;
        for (int64_t g = 0; g < m->graphs.n; g++) ptr[g + 1] += ptr[g];
        *nodes = *data->rt->bound->table[space];
        nodes->count = v->n;
        nodes->graph_ptr = ptr;
        m->bound.table[space] = nodes;
    }
    return GNNC_OK;
}

/* The rows of the data that the batch has of a space: of graphs, of nodes, or positions of
 * edges. */
static RtRows rows_of(const RtMinibatch *m, const RtBatchMap *map, int space) {
    int type = map->type_of_space[space], rel = map->rel_of_space[space];
    if (space == map->graph_space) return m->graphs;
    if (type >= 0) return (RtRows){.n = m->batch->nodes[type].n, .i32 = m->batch->nodes[type].id};
    if (rel >= 0) return (RtRows){.n = m->batch->edges[rel].n, .i64 = m->batch->edges[rel].pos};
    return (RtRows){0};
}

/* Only seeds are learned from, or judged: the rows that came along are in no split. */
static void keep_seeds(const RtMinibatch *m, int column) {
    enum { SEED = 4 }; /* beside a split, which is 0 to 3 */
    int8_t *split = m->column_buf[column].a.p;
    for (int64_t i = 0; i < m->batch->n_seeds[0]; i++) split[m->batch->seed[0][i]] |= SEED;
    for (int64_t i = 0; i < m->column[column].n_rows; i++)
        split[i] = split[i] & SEED ? (int8_t)(split[i] - SEED) : 0;
}

/* ---- what is left to the device -------- */
/* The batch's rows of a space, as the device takes them. */
static RtDeviceGather rows_taken(const RtMinibatch *m, const RtBatchMap *map, int space,
                                 int64_t row_bytes) {
    RtDeviceGather g = {.row_bytes = row_bytes,
                        .space = space,
                        .wide = map->rel_of_space[space] >= 0,
                        .rows = rows_of(m, map, space)};
    if (m->bound.maps && space != map->graph_space)
        g.row = rt_batch_there(m->batch, g.wide ? (const void *)g.rows.i64 : g.rows.i32);
    return g;
}

/* Is a map nothing but codes of all rows of its column, which the device has? */
static bool is_codes_alone(const RtExec *data, int map) {
    const rt_program *p = data->program;
    const rt_map *of = &p->maps[map];
    const RtDevice *d = data->rt->device;
    bool plain = of->kind == RT_MAP_COL && of->from == p->columns[of->col].space;
    if (!plain || of->idx_buf < 0 || of->ptr_buf >= 0 || of->perm_buf >= 0) return false;
    for (int b = 0; b < p->n_bufs; b++) {
        const rt_buf *buf = &p->bufs[b];
        if (buf->kind == RT_BUF_MAP && buf->by >= 0 && (buf->map == map || buf->by == map))
            return false;
    }
    return data->buf[of->idx_buf] || (d->built && d->built[of->idx_buf]);
}

/* Index arrays that are made of a column: by the device, or codes as they are. */
static bool defer_index_arrays(RtMinibatch *m, const RtExec *data, const RtBatchMap *map, int c) {
    const rt_program *p = data->program;
    for (int i = 0; i < p->n_maps; i++) {
        if (!rt_bind_is_of_column(p, i, c)) continue;
        if (m->bound.maps ? !rt_device_bind_takes(m->bound.maps, i) : !is_codes_alone(data, i))
            return false;
    }
    for (int i = 0; i < p->n_maps && !m->bound.maps; i++)
        if (rt_bind_is_of_column(p, i, c))
            m->gathers[p->maps[i].idx_buf] =
                rows_taken(m, map, p->columns[c].space, sizeof(int32_t));
    return true;
}

/* Are the seeds the first nodes, so that a split is that of these, and others are in none?  As the
 * device reads it, if nothing else was done to the split there. */
static bool are_first(const RtMinibatch *m, const RtExec *data) {
    const int32_t *seed = m->batch->seed[0];
    int64_t i = 0;
    while (i < m->batch->n_seeds[0] && seed[i] == i) i++;
    return i == m->batch->n_seeds[0] && !data->rt->bound->judges_some;
}

/* Values that kernels read. */
static bool defer_values(RtMinibatch *m, const RtExec *data, const RtBatchMap *map, int c) {
    const rt_program *p = data->program;
    const RtColumn *all = data->rt->bound->col[c];
    const rt_column *want = &p->columns[c];
    bool split = rt_column_kind(all->kind)->layout == RT_LAYOUT_SPLITS;
    bool of_seeds = c == p->sampling.split && p->sampling.seeds == RT_SEEDS_ROWS;
    int64_t row_bytes = split ? (int64_t)sizeof(int32_t) : (int64_t)rt_column_value_bytes(all);
    if (want->buf < 0) return true;
    RtDeviceGather *g = &m->gathers[want->buf];
    for (int i = 1; i < all->rank; i++) row_bytes *= all->shape[i];
    g->row_bytes = 0;
    if (row_bytes == 0 || (of_seeds && !are_first(m, data))) return false;
    *g = rows_taken(m, map, want->space, row_bytes);
    if (of_seeds) g->n_zeros = g->rows.n - m->batch->n_seeds[0];
    return true;
}

/* Columns that only kernels read are not gathered on the host: the device does it. */
static bool defer_gather_to_device(RtMinibatch *m, const RtExec *data, const RtBatchMap *map,
                                   int c) {
    const RtColumn *all = data->rt->bound->col[c];
    const rt_column *want = &data->program->columns[c];
    int space = want->space;
    bool rows = all->kind == want->kind && rt_column_kind(all->kind)->layout != RT_LAYOUT_CSR;
    bool of_batch = space == map->graph_space || map->type_of_space[space] >= 0 ||
                    map->rel_of_space[space] >= 0;
    if (!m->defers || !rows || !of_batch) return false;
    if (m->bound.maps) {
        RtDeviceGather codes = rows_taken(m, map, space, sizeof(int32_t));
        rt_device_bind_rows(m->bound.maps, c, &codes);
    }
    return defer_index_arrays(m, data, map, c) && defer_values(m, data, map, c);
}

/* In place of rows that another process sends, which are not to be read here: any that is. */
static gnnc_status only_own(RtMinibatch *m, const RtPulledColumn *p, RtRows *rows) {
    int32_t *here = RT_NEWN(&m->rt.pool, int32_t, rows->n);
    if (!here) return rt_fail_nomem(&m->rt.err, "a batch");
    for (int64_t i = 0; i < rows->n; i++) {
        int32_t row = rows->i32[i];
        here[i] = row >= p->lo && row < p->hi ? row : p->lo < p->hi ? (int32_t)p->lo : 0;
    }
    rows->i32 = here;
    return GNNC_OK;
}

/* Takes the batch's rows out of each column that batches read, unless the device gathers them
 * itself. */
static gnnc_status bind_columns(RtMinibatch *m, const RtExec *data, const RtBatchMap *map) {
    const rt_program *p = m->x.program;
    const RtPulledColumn *pulled = data->rt->bound->pulled;
    RtError *err = &m->rt.err;
    gnnc_status st = GNNC_OK;
    for (int c = 0; c < p->n_columns; c++) {
        const RtColumn *all = data->rt->bound->col[c];
        const rt_column *want = &p->columns[c];
        if (!all || !rt_bind_reads(p, c)) continue;
        if (defer_gather_to_device(m, data, map, c)) continue;
        if (rt_bind_is_pulled(data, c) && all->kind == RT_COL_CSR) { /* pull.c makes it */
            if (want->nz >= 0) m->x.n[p->spaces[want->nz].sym] = 0;
            continue;
        }
        RtRows rows = rows_of(m, map, want->space);
        if (rt_bind_is_pulled(data, c)) TRY(st, only_own(m, &pulled[c], &rows));
        TRY(st, rt_batch_column(m->batch, m->team, all, rows, data->rt->bound->split,
                                &m->column_buf[c], &m->column[c], err));
        if (c == p->sampling.split && p->sampling.seeds == RT_SEEDS_ROWS) keep_seeds(m, c);
        m->bound.col[c] = &m->column[c];
        if (m->edit) m->edit(m, c, m->editor);
        TRY(st, rt_bind_device_gather(&m->x, c));
    }
out:
    return st;
}

/* Rows of parameters: of nodes that a request brings others than theirs in it. */
static gnnc_status to_parameters(RtMinibatch *m, int space, RtRows *rows) {
    const int32_t *row = m->row ? m->row[space] : NULL;
    if (!row || !rows->i32) return GNNC_OK;
    int32_t *to = RT_NEWN(&m->rt.pool, int32_t, rows->n);
    if (!to) return rt_fail_nomem(&m->rt.err, "a batch");
    for (int64_t i = 0; i < rows->n; i++) to[i] = row[rows->i32[i]];
    rows->i32 = to;
    return GNNC_OK;
}

/* Gathers, for a program that serves, the batch's rows of what was computed of all rows, and of
 * parameters with a row for each. */
static gnnc_status bind_whole_rows(RtMinibatch *m, const RtExec *data, const RtBatchMap *map) {
    const rt_program *p = m->x.program;
    for (int b = 0; b < p->n_bufs && p->sampling.serve; b++) {
        const rt_buf *buf = &p->bufs[b];
        bool whole = buf->kind == RT_BUF_SAVED || buf->kind == RT_BUF_VAR;
        if (!whole || buf->space < 0 || !buf->in_batches) continue;
        RtRows rows = rows_of(m, map, buf->space);
        int64_t n_all = data->n[p->spaces[buf->space].sym];
        gnnc_status st = buf->kind == RT_BUF_VAR ? to_parameters(m, buf->space, &rows) : GNNC_OK;
        if (st != GNNC_OK) return st;
        size_t all = (size_t)p->buf_count(b, data->n) * (size_t)rt_type_bytes(buf->dt);
        size_t row_bytes = n_all ? all / (size_t)n_all : 0;
        bool of_batch = map->type_of_space[buf->space] >= 0 || map->rel_of_space[buf->space] >= 0;
        if (m->defers && of_batch && row_bytes && row_bytes % 2 == 0) { /* in the kernel's words */
            m->gathers[b] = (RtDeviceGather){.row_bytes = (int64_t)row_bytes,
                                             .space = buf->space,
                                             .wide = map->rel_of_space[buf->space] >= 0,
                                             .rows = rows};
            continue;
        }
        if (!rows.i32 && !rows.i64) continue; /* of no rows of the batch */
        m->x.buf[b] = rt_pool_alloc(&m->rt.pool, (size_t)rows.n, row_bytes);
        if (!m->x.buf[b]) return rt_fail_nomem(&m->rt.err, "a batch");
        rt_gather_rows(m->team, data->buf[b], row_bytes, rows, m->x.buf[b]);
    }
    return GNNC_OK;
}

/* Takes the conditions of the batch's edges out of those of `where`, which were computed for all
 * edges, in the order of the data. */
static gnnc_status bind_conditions(RtMinibatch *m, const RtExec *data, const RtBatchMap *map) {
    const rt_program *p = m->x.program;
    for (int s = 0; s < p->n_spaces; s++) {
        const rt_space *sp = &p->spaces[s];
        if (sp->kind != RT_SP_EDGE || sp->rel != RT_REL_WHERE) continue;
        RtRows rows = rows_of(m, map, sp->base[0]);
        if (m->x.program->spaces[sp->base[0]].first)
            continue; /* a hop's first edges: those of its relation */
        /* not drawn along: the request's condition of all its edges stays */
        if (m->bound.for_request && map->rel_of_space[sp->base[0]] < 0) continue;
        uint8_t *taken = RT_NEWN(&m->rt.pool, uint8_t, rows.n);
        if (!taken) return rt_fail_nomem(&m->rt.err, "a batch");
        rt_gather_rows(m->team, data->buf[sp->cond_buf], 1, rows, taken);
        m->x.buf[sp->cond_buf] = taken;
    }
    return GNNC_OK;
}

/* Are index arrays of the space made of a column whose rows other processes send?  They wait for
 * these. */
static bool waits(const RtExec *data, int space) {
    const rt_program *p = data->program;
    for (int i = 0; i < p->n_maps && data->rt->bound->pulled; i++)
        for (int c = 0; c < p->n_columns && p->maps[i].from == space; c++)
            if (rt_bind_is_pulled(data, c) && rt_bind_is_of_column(p, i, c)) return true;
    return false;
}

/* Binds the columns that index: what came, and this process's own, which lies in a file, is checked
 * first. */
static gnnc_status bind_pulled_columns(RtMinibatch *m, const RtExec *data) {
    const rt_program *p = data->program;
    gnnc_status st = GNNC_OK;
    for (int c = 0; c < p->n_columns; c++) {
        const RtColumn *y = &m->column[c];
        if (!rt_bind_is_pulled(data, c) || !rt_column_indexes(y)) continue;
        TRY(st, rt_column_check(y, p->spaces[p->columns[c].space].name, &m->rt.err));
        TRY(st, rt_bind_device_gather(&m->x, c));
    }
out:
    return st;
}

gnnc_status rt_minibatch_bind_pulled(RtMinibatch *m, const RtExec *data, RtError *err) {
    gnnc_status st;
    m->x.rt = &m->rt; /* a step that failed has left the trainer's */
    TRY(st, bind_pulled_columns(m, data));
    for (int s = 0; s < data->program->n_spaces; s++)
        if (waits(data, s)) TRY(st, rt_bind_space(&m->x, s));
out:
    return st == GNNC_OK ? st : rt_fail(err, st, "%s", m->rt.err.text);
}

/* Binds what was drawn: tables and columns, then what is made of them. */
static gnnc_status bind_drawn(RtMinibatch *m, const RtExec *data, const RtBatchMap *map) {
    gnnc_status st = GNNC_OK;
    bind_base(m, map);
    for (int s = 0; s < m->x.program->n_spaces; s++) {
        const rt_space *sp = &m->x.program->spaces[s];
        if (sp->once) TRY(st, bind_distinct_rows(m, data, map, s));
        if (sp->first && !sp->once) bind_prefix(m, map, s);
    }
    TRY(st, bind_graphs(m, data, map));
    TRY(st, bind_columns(m, data, map));
    TRY(st, bind_whole_rows(m, data, map));
    TRY(st, bind_conditions(m, data, map));
    TRY(st, rt_bind_derived(&m->x));
    for (int s = 0; s < m->x.program->n_spaces; s++)
        if (!m->x.program->spaces[s].drawn && !waits(data, s)) TRY(st, rt_bind_space(&m->x, s));
out:
    return st;
}

gnnc_status rt_minibatch_bind(RtMinibatch *m, const RtExec *data, const RtBatchMap *map,
                              RtError *err) {
    if (!m->batch) {
        bind_whole(m);
        return GNNC_OK;
    }
    gnnc_status st = bind_drawn(m, data, map);
    if (m->bound.maps) st = rt_device_bind_end(m->bound.maps, st, m->gathers);
    return st == GNNC_OK ? st : rt_fail(err, st, "%s", m->rt.err.text);
}
