/* Index arrays of the maps that leave one space: where relations and columns already
 * hold them they are used as they are; the rest is made here, and only when asked for.
 *
 * Balanced loops: the rows of a map are cut into RT_CHUNKS runs of nearly equal work
 * (rt_balance_rows; cf. the edge-balanced "merge path" of Merrill and Garland 2016, of which
 * this is the row-aligned form). */
#include "bind.h"
#include "runtime/device/device_maps.h"
#include "runtime/exec/distributed.h"

typedef struct {
    RtDeviceMaps *on; /* where they are made; NULL: here */
    const int32_t *idx;
    const int64_t *ptr;
    const int32_t *perm;
    int64_t n_from, n_to;
} Arrays;

static void set_groups(Arrays *a, const RtGroups *g) {
    a->ptr = g->ptr;
    a->perm = g->perm;
}

/* Kernels read positions and ids of edges in 32 bits, and count them in as many. */
static gnnc_status too_many(RtExec *x, int space) {
    const RtRelation *r = &x->rt->bound->rel[space];
    return rt_fail(
        &x->rt->err, GNNC_E_RANGE,
        "edge type '%s': its %lld edges are numbered up to %lld, and %s numbers and counts at most "
        "2^31 - 1 where it runs over all of them; it can draw batches of any number, and "
        "'evaluate drawn'",
        x->program->spaces[space].name, (long long)r->n_edges, (long long)r->id_bound,
        x->program->source);
}

/* Uses the host's array, or its copy on the device if the maps are made there. */
static gnnc_status use_host_index(Arrays *a, const int32_t *here) {
    const void *p = here;
    gnnc_status st = a->on ? rt_on_device_copy(a->on, here, a->n_from, sizeof *here, &p) : GNNC_OK;
    a->idx = p;
    return st;
}

/* Codes of a column: the device may take a batch's by itself, and then the host has none. */
static gnnc_status of_codes(const RtExec *x, const rt_map *m, Arrays *a) {
    const RtColumn *c = x->rt->bound->col[m->col];
    if (a->on && rt_on_device_takes_codes(a->on, m->col))
        return rt_on_device_codes(a->on, m->col, a->n_from, &a->idx);
    return c ? use_host_index(a, c->i32) : GNNC_OK;
}

/* Takes bounds that the host has, copied to the device if the arrays are wanted there. */
static gnnc_status take_ptr(Arrays *a, const int64_t *here) {
    const void *p = here;
    gnnc_status st =
        a->on ? rt_on_device_copy(a->on, here, a->n_to + 1, sizeof *here, &p) : GNNC_OK;
    a->ptr = p;
    return st;
}

/* The map from nodes to graphs: its bounds are the data's graph_ptr, and targets are made of
 * these. */
static gnnc_status of_graph(RtExec *x, const rt_map *m, Arrays *a) {
    const RtTable *t = x->rt->bound->table[m->from];
    const RtBound *b = x->rt->bound;
    if (!t->graph_ptr || t->graph < 0)
        return rt_fail(&x->rt->err, GNNC_E_MISSING,
                       "%s: node type '%s' is not divided into graphs (no graph_ptr)", b->dir,
                       t->name);
    if (&b->data->graphs[t->graph] != b->table[m->to])
        return rt_fail(&x->rt->err, GNNC_E_SHAPE,
                       "%s: node type '%s' is divided into '%s', in the model into '%s'", b->dir,
                       t->name, b->data->graphs[t->graph].name, b->table[m->to]->name);
    gnnc_status st = take_ptr(a, t->graph_ptr);
    if (m->idx_buf < 0 || st != GNNC_OK) return st;
    if (a->on) return rt_on_device_rows(a->on, a->ptr, a->n_to, a->n_from, &a->idx);
    return rt_table_graph_of(&x->rt->pool, t, a->n_to, &a->idx, &x->rt->err);
}

/* The maps from a sparse column's stored entries to rows and to columns; a device groups them by
 * itself. */
static gnnc_status of_entries(RtExec *x, const rt_map *m, Arrays *a) {
    int col = x->program->spaces[m->from].col;
    const RtCsr *csr = &x->rt->bound->col[col]->csr;
    RtNz *nz = &x->rt->bound->nz[col];
    bool rows = m->kind == RT_MAP_ROW;
    gnnc_status st = rows ? take_ptr(a, csr->ptr) : use_host_index(a, csr->col);
    if (st != GNNC_OK) return st;
    if (a->on) return rows ? rt_on_device_rows(a->on, a->ptr, a->n_to, a->n_from, &a->idx) : st;
    if (!nz->row) st = rt_csr_nz(&x->rt->pool, csr, nz, &x->rt->err);
    if (rows)
        a->idx = nz->row;
    else
        set_groups(a, &nz->by_col);
    return st;
}

/* The bounds of each source's edges, of 2^31 edges or more, whose order has 64 bits. */
static gnnc_status bounds_of_sources(RtExec *x, RtRelation *r, Arrays *a) {
    if (!r->by_src.ptr) r->by_src.ptr = rt_group_bounds(&x->rt->pool, r->src, r->n_edges, r->n_src);
    a->ptr = r->by_src.ptr;
    return a->ptr ? GNNC_OK : rt_fail_nomem(&x->rt->err, "index arrays");
}

/* The map from edges to sources: edges are grouped by source where bounds or their order are
 * read. */
static gnnc_status of_sources(RtExec *x, const rt_map *m, Arrays *a) {
    RtRelation *r = &x->rt->bound->rel[m->from];
    if (a->on || (m->ptr_buf < 0 && m->perm_buf < 0)) return GNNC_OK;
    if (r->n_edges > INT32_MAX)
        return m->perm_buf >= 0 ? too_many(x, m->from) : bounds_of_sources(x, r, a);
    gnnc_status st = rt_relation_group_src(&x->rt->pool, r, &x->rt->err);
    if (st == GNNC_OK) set_groups(a, &r->by_src);
    return st;
}

static gnnc_status find_arrays(RtExec *x, const rt_map *m, Arrays *a);

/* Finds the targets of the map `map`, one of those that a `pair` is made of, whether or not the
 * program has a buffer for them: idx_buf 0 stands for "targets are wanted". */
static gnnc_status find_component_map(RtExec *x, int map, Arrays *a) {
    const rt_map *m = &x->program->maps[map];
    rt_map wanted = *m;
    *a = (Arrays){.n_from = rt_size(x->program, x->n, m->from),
                  .n_to = rt_map_rows(x->program, x->n, map)};
    wanted.idx_buf = 0;
    wanted.ptr_buf = wanted.perm_buf = -1;
    return find_arrays(x, &wanted, a);
}

/* The place of each row in the targets of two maps.  They are made here, as the device has no
 * kernel for it. */
static gnnc_status of_pair(RtExec *x, const rt_map *m, Arrays *a) {
    const rt_map *maps = x->program->maps;
    Arrays half[2], base = {0};
    gnnc_status st;
    if (a->on) return rt_fail(&x->rt->err, GNNC_E_RANGE, "pairs are made by the host");
    if (a->n_to > INT32_MAX)
        return rt_fail(&x->rt->err, GNNC_E_RANGE,
                       "'%s' times '%s' is %lld rows: more than 2^31 - 1 have no index",
                       x->program->spaces[maps[m->pair[0]].to].name,
                       x->program->spaces[maps[m->pair[1]].to].name, (long long)a->n_to);
    for (int k = 0; k < 2; k++) TRY(st, find_component_map(x, m->pair[k], &half[k]));
    if (m->through >= 0) TRY(st, find_component_map(x, m->through, &base));
    int32_t *idx = RT_NEWN(&x->rt->pool, int32_t, a->n_from);
    if (!idx) return rt_fail_nomem(&x->rt->err, "index arrays");
    for (int64_t i = 0; i < a->n_from; i++) {
        int32_t at[2];
        for (int k = 0; k < 2; k++) {
            int64_t row = maps[m->pair[k]].from == m->from ? i : base.idx[i];
            at[k] = row < 0 ? -1 : half[k].idx[row];
        }
        idx[i] = at[0] < 0 || at[1] < 0 ? -1 : (int32_t)(at[0] * half[1].n_to + at[1]);
    }
    a->idx = idx;
out:
    return st;
}

/* Finds a category code for each distinct row of a batch: that of the first node that the row
 * is. */
static gnnc_status codes_of_distinct_rows(RtExec *x, const rt_map *m, Arrays *a) {
    const int32_t *code = x->rt->bound->col[m->col]->i32,
                  *first = x->rt->bound->distinct[m->from].first;
    int32_t *idx = RT_NEWN(&x->rt->pool, int32_t, a->n_from);
    if (!idx) return rt_fail_nomem(&x->rt->err, "index arrays");
    for (int64_t i = 0; i < a->n_from; i++) idx[i] = code[first[i]];
    a->idx = idx;
    return GNNC_OK;
}

/* The array of a map to or from the distinct rows of a batch, which the host has found (a device
 * has no kernel for that). FIRST: the node at which each distinct row stands first; VIA: its
 * category code; else the distinct row of each node. */
static gnnc_status map_of_distinct_rows(RtExec *x, const rt_map *m, Arrays *a) {
    if (a->on) return rt_fail(&x->rt->err, GNNC_E_RANGE, "distinct rows are found by the host");
    if (m->kind == RT_MAP_VIA) return codes_of_distinct_rows(x, m, a);
    bool first = m->kind == RT_MAP_FIRST;
    a->idx = first ? x->rt->bound->distinct[m->from].first : x->rt->bound->distinct[m->to].distinct;
    return GNNC_OK;
}

/* Finds or makes the index arrays of a map, by its kind. */
static gnnc_status find_arrays(RtExec *x, const rt_map *m, Arrays *a) {
    const RtBound *b = x->rt->bound;
    const RtRelation *r = a->on ? rt_device_relation_arrays(a->on, m->from) : &b->rel[m->from];
    switch (m->kind) {
    case RT_MAP_SRC:
        a->idx = r->src;
        return of_sources(x, m, a);
    case RT_MAP_DST:
        a->idx = r->dst;
        a->ptr = r->ptr;
        break;
    case RT_MAP_GRAPH:
        return of_graph(x, m, a);
    case RT_MAP_COL:
        return of_codes(x, m, a);
    case RT_MAP_ROW:
    case RT_MAP_NZCOL:
        return of_entries(x, m, a);
    case RT_MAP_ORIG:
        if (r->wide) return too_many(x, m->from);
        a->idx = r->orig[m->which];
        break;
    case RT_MAP_CELL:
        a->idx = r->cell;
        break;
    case RT_MAP_PAIR:
        return of_pair(x, m, a);
    case RT_MAP_DISTINCT:
    case RT_MAP_FIRST:
    case RT_MAP_VIA:
        return map_of_distinct_rows(x, m, a);
    }
    return GNNC_OK;
}

/* Segments of a map that nobody has grouped yet; the identity where they are in order. */
static gnnc_status complete(RtExec *x, const rt_map *m, Arrays *a) {
    RtPool *pool = &x->rt->pool;
    bool wants_order = m->perm_buf >= 0 && !a->perm;
    if (!wants_order && (m->ptr_buf < 0 || a->ptr)) return GNNC_OK;
    bool edges = x->program->spaces[m->from].kind == RT_SP_EDGE;
    if (edges && a->n_from > INT32_MAX) return too_many(x, m->from);
    if (!a->ptr) {
        RtGroups g = {0};
        gnnc_status st = a->on ? rt_on_device_group(a->on, a->idx, a->n_from, a->n_to, &g)
                               : rt_group(pool, a->idx, a->n_from, a->n_to, &g, &x->rt->err);
        set_groups(a, &g);
        return st;
    }
    if (a->on) return rt_on_device_gather(a->on, NULL, NULL, NULL, a->n_from, &a->perm);
    int32_t *perm = RT_NEWN(pool, int32_t, a->n_from);
    if (!perm) return rt_fail_nomem(&x->rt->err, "index arrays");
    for (int64_t i = 0; i < a->n_from; i++) perm[i] = (int32_t)i;
    a->perm = perm;
    return GNNC_OK;
}

/* Cuts the map's segments into runs, of which threads take some each. */
static gnnc_status balance(RtExec *x, int map, const Arrays *a) {
    int64_t *bound = RT_NEWN(&x->rt->pool, int64_t, RT_CHUNKS + 1);
    if (!bound) return rt_fail_nomem(&x->rt->err, "index arrays");
    rt_balance_rows(a->ptr, a->n_to, bound);
    x->rt->bound->balance[map] = bound;
    return GNNC_OK;
}

/* Buffer b is an array of n elements; one of the host's is compared with the device's, if that
 * has made it too. */
static gnnc_status point(RtExec *x, RtDeviceMaps *on, int b, const void *p, int64_t n,
                         size_t size) {
    RtDeviceMaps *both = rt_device_maps(x);
    if (b < 0) return GNNC_OK;
    if (on) {
        rt_on_device_point(on, b, p);
        return GNNC_OK;
    }
    x->buf[b] = (void *)p; /* kernels only read MAP and LOGICAL buffers */
    return both ? rt_on_device_compare(both, b, p, n, size) : GNNC_OK;
}

/* Points the buffers of a map (targets, bounds, order) to their arrays, on the host, or on the
 * device `on`. */
static gnnc_status bind_map(RtExec *x, int map, RtDeviceMaps *on) {
    const rt_map *m = &x->program->maps[map];
    const rt_program *p = x->program;
    Arrays a = {.on = on, .n_from = rt_size(p, x->n, m->from), .n_to = rt_map_rows(p, x->n, map)};
    gnnc_status st;
    TRY(st, find_arrays(x, m, &a));
    TRY(st, complete(x, m, &a));
    TRY(st, point(x, on, m->idx_buf, a.idx, a.n_from, sizeof *a.idx));
    TRY(st, point(x, on, m->ptr_buf, a.ptr, a.n_to + 1, sizeof *a.ptr));
    TRY(st, point(x, on, m->perm_buf, a.perm, on || !a.ptr ? 0 : a.ptr[a.n_to], sizeof *a.perm));
    if (m->ptr_buf >= 0 && !on) st = balance(x, map, &a);
out:
    return st;
}

/* Lists a map's targets as bind_by() does, of 2^31 edges or more: without an array of their order,
 * which has 64 bits. */
static gnnc_status bind_by_wide(RtExec *x, int buf) {
    const rt_buf *b = &x->program->bufs[buf];
    int space = x->program->maps[b->map].from;
    int64_t n = rt_size(x->program, x->n, space);
    RtPool *pool = &x->rt->pool;
    Arrays to, by;
    gnnc_status st;
    if (x->program->maps[b->by].kind != RT_MAP_SRC) return too_many(x, space);
    TRY(st, find_component_map(x, b->map, &to));
    TRY(st, find_component_map(x, b->by, &by));
    int64_t *next = rt_group_bounds(pool, by.idx, n, by.n_to);
    int32_t *idx = RT_NEWN(pool, int32_t, n);
    if (!next || !idx) return rt_fail_nomem(&x->rt->err, "index arrays");
    for (int64_t e = 0; e < n; e++) idx[next[by.idx[e]]++] = to.idx[e];
    rt_pool_drop(pool, next);
    st = point(x, NULL, buf, idx, n, sizeof *idx);
out:
    return st;
}

/* Lists a map's targets in the order of another map's segments: the far ends of a node's edges side
 * by side, where a kernel runs through them. */
static gnnc_status bind_by(RtExec *x, int buf, RtDeviceMaps *on) {
    const rt_buf *b = &x->program->bufs[buf];
    rt_map m = x->program->maps[b->map], by = x->program->maps[b->by];
    const rt_program *p = x->program;
    Arrays to = {
        .on = on, .n_from = rt_size(p, x->n, m.from), .n_to = rt_map_rows(p, x->n, b->map)};
    Arrays order = {.on = on, .n_from = to.n_from, .n_to = rt_map_rows(p, x->n, b->by)};
    const int32_t *there;
    gnnc_status st;
    if (!on && p->spaces[m.from].kind == RT_SP_EDGE && to.n_from > INT32_MAX)
        return bind_by_wide(x, buf);
    m.idx_buf = by.ptr_buf = by.perm_buf = buf; /* wanted */
    TRY(st, find_arrays(x, &m, &to));
    TRY(st, find_arrays(x, &by, &order));
    TRY(st, complete(x, &by, &order));
    if (on) {
        TRY(st,
            rt_on_device_gather(on, to.idx, order.perm, order.ptr + order.n_to, to.n_from, &there));
        return point(x, on, buf, there, to.n_from, sizeof *there);
    }
    int32_t *idx = RT_NEWN(&x->rt->pool, int32_t, to.n_from);
    if (!idx) return rt_fail_nomem(&x->rt->err, "index arrays");
    for (int64_t k = 0; k < order.ptr[order.n_to]; k++) idx[k] = to.idx[order.perm[k]];
    st = point(x, on, buf, idx, to.n_from, sizeof *idx);
out:
    return st;
}

/* Binds the numbers that nodes or graphs had before the data were partitioned; without parts, 0,
 * 1, 2, .. */
static gnnc_status bind_global_row_ids(RtExec *x, int buf) {
    const RtTable *t = x->rt->bound->table[x->program->bufs[buf].space];
    int32_t *same = t->part_rows ? NULL : RT_NEWN(&x->rt->pool, int32_t, t->count + 1);
    if (!t->part_rows && !same) return rt_fail_nomem(&x->rt->err, "index arrays");
    for (int64_t i = 0; same && i < t->count; i++) same[i] = (int32_t)i;
    return point(x, NULL, buf, same ? same : t->part_rows, t->count, sizeof *same);
}

/* Points the buffer to the logical ids of a relation's edges, which random numbers are drawn by; of
 * other rows to their numbers in data without parts. */
static gnnc_status bind_logical(RtExec *x, int buf, RtDeviceMaps *on) {
    int space = x->program->bufs[buf].space;
    if (x->program->spaces[space].kind != RT_SP_EDGE) return bind_global_row_ids(x, buf);
    const RtRelation *r = &x->rt->bound->rel[space];
    const int32_t *id = on ? rt_device_relation_arrays(on, space)->id : r->id;
    if (r->wide) return too_many(x, space);
    return point(x, on, buf, id, r->n_edges, sizeof *id);
}

typedef gnnc_status Bind(RtExec *x, int of, RtDeviceMaps *on);

/* Binds on the device if it makes such arrays, else on the host; to compare, on both. A device that
 * cannot leaves it to the host. */
static gnnc_status bind_where(RtExec *x, Bind *bind, int of, int buf, bool there) {
    RtDeviceMaps *m = there ? rt_device_maps(x) : NULL;
    gnnc_status st = m ? bind(x, of, m) : GNNC_OK;
    if (m && rt_device_maps_fall_back(x, x->program->bufs[buf].name, &st)) m = NULL;
    if (st != GNNC_OK || (m && !rt_device_maps_check(m))) return st;
    return bind(x, of, NULL);
}

/* Whose name a message may have; -1: nobody wants the map. */
static int buffer_of(const rt_map *m) {
    return m->idx_buf >= 0 ? m->idx_buf : m->ptr_buf >= 0 ? m->ptr_buf : m->perm_buf;
}

static bool is_read(const RtExec *x, int buf) {
    return buf >= 0 && (!x->rt->bound->for_request || x->program->bufs[buf].in_batches);
}

bool rt_bind_of_edges(const rt_program *p, int map) {
    const rt_map *m = &p->maps[map];
    bool follows = m->kind == RT_MAP_SRC || m->kind == RT_MAP_DST || m->kind == RT_MAP_ORIG;
    return follows && !p->spaces[m->from].of_batch;
}

bool rt_bind_by_of_edges(const rt_program *p, int buf) {
    const rt_buf *b = &p->bufs[buf];
    return rt_bind_of_edges(p, b->map) && rt_bind_of_edges(p, b->by);
}

/* Has the file of index arrays given it? */
static bool is_found(const RtExec *x, int buf) {
    const rt_program *p = x->program;
    const rt_buf *b = &p->bufs[buf];
    bool keys = b->kind == RT_BUF_LOGICAL && p->spaces[b->space].kind == RT_SP_EDGE;
    return x->rt->bound->found && (keys || (b->kind == RT_BUF_MAP && rt_bind_by_of_edges(p, buf)));
}

/* Is the map made of a column of which processes pull rows? */
static bool is_pulled(const RtExec *x, int map) {
    for (int c = 0; c < x->program->n_columns && map >= 0; c++)
        if (rt_bind_is_pulled(x, c) && rt_bind_is_of_column(x->program, map, c)) return true;
    return false;
}

/* Does no phase but those over batches read what lies in 32 bits? */
static bool runs_over_batches(const rt_program *p) {
    for (int i = 0; i < p->n_phases; i++)
        if (!p->phases[i].batches) return false;
    return true;
}

/* Binds each map from `space` that kernels read, then the buffers that list its targets in another
 * map's order, or logical ids. What the index file gave is left as it is. */
gnnc_status rt_bind_space(RtExec *x, int space) {
    const rt_program *p = x->program;
    const bool found = x->rt->bound->found;
    const RtDeviceMaps *on = rt_device_maps(x);
    gnnc_status st = GNNC_OK;
    bool of_batches = p->spaces[space].kind == RT_SP_EDGE && x->rt->bound->rel[space].wide &&
                      runs_over_batches(p);
    if (p->spaces[space].numbered && x->rt->bound->rel[space].n_edges > INT32_MAX)
        return too_many(x, space);
    for (int i = 0; i < p->n_maps && st == GNNC_OK && !of_batches; i++) {
        const rt_map *m = &p->maps[i];
        bool read = is_read(x, m->idx_buf) || is_read(x, m->ptr_buf) || is_read(x, m->perm_buf);
        int buf = buffer_of(m);
        bool whole =
            m->kind == RT_MAP_DISTINCT && !x->rt->bound->distinct; /* no batch has rows twice */
        if (m->from == space && read && !whole && !is_pulled(x, i) &&
            !(found && rt_bind_of_edges(p, i)))
            st = bind_where(x, bind_map, i, buf, on && rt_device_makes(on, i));
    }
    for (int b = 0; b < p->n_bufs && st == GNNC_OK && !of_batches; b++) {
        const rt_buf *buf = &p->bufs[b];
        bool by = buf->kind == RT_BUF_MAP && buf->by >= 0 && p->maps[buf->map].from == space;
        bool logical = buf->kind == RT_BUF_LOGICAL && buf->space == space;
        if (!(by || logical) || !is_read(x, b) || is_found(x, b)) continue;
        if (by && (is_pulled(x, buf->map) || is_pulled(x, buf->by))) continue;
        bool there = on && (by ? rt_device_makes(on, buf->map) && rt_device_makes(on, buf->by)
                               : rt_device_has_edges(on, space));
        if (by) st = bind_where(x, bind_by, b, b, there);
        if (logical && st == GNNC_OK) st = bind_where(x, bind_logical, b, b, there);
    }
    return st == GNNC_OK ? rt_dist_bind(x, space) : st;
}
