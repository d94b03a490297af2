/* Memory and orders for the device's sampler.
 *
 * A slot is one block on both sides, laid out alike:
 *
 *     asked    tables of pointers, keys, fan-outs, seeds     crosses to the device, one copy
 *     sizes    of nodes and edges by hops, seeds' numbers    crosses back, one copy, then the
 *     arrays   ids; pointers, ends and places of edges       parts of the arrays that are filled
 *
 * Room is for what cannot be exceeded: a hop has no more edges of a relation than its rows times
 * the fan-out, without replacement all hops together no more than the relation, and a type no more
 * nodes than the data.  So no batch is looked at before it is drawn, and nothing grows. */
#include "device_sample.h"

#include <string.h>

#include "runtime/cuda/sample_list.h"
#include "runtime/device_maps.h"
#include "sample_key.h"

typedef struct {
    char *host, *there; /* page-locked; on the device */
} Slot;

/* Offsets in a slot. */
typedef struct {
    size_t types, rels, n_seeds, key, fanout, seed, asked_end;
    size_t sizes, seed_at, sizes_end;
    size_t *id;                            /* [n_types] */
    size_t *ptr, *src, *dst, *pos, *names; /* [n_rels] */
    size_t end;
} Layout;

typedef struct {
    int64_t *nodes;              /* [n_types] */
    int64_t *edges;              /* [n_rels] */
    int64_t rows, drawn;         /* of the largest hop */
    int64_t all_nodes, all_ends; /* of all types; ends of all relations */
} Most;

struct RtDeviceSampler {
    RtPool pool;
    RtDevice *d;
    rt_device_kernel *kernel;
    RtSampleGraph g; /* borrowed: sizes and types */
    RtSampleSpec spec;
    int type, n_slots;
    int64_t n_seeds;
    Most most;
    Layout at;
    Slot *slot;
    void *work;
    RtDraw draw;      /* but for the slot's pointers */
    RtDrawType *of;   /* [n_types] marks */
    RtDrawRel *graph; /* [n_rels + 1] the graph there */
    RtRelation *has;  /* [n_rels] arrays of it that were there before; NULL: they are its own */
};

const char *rt_device_sampler_lacks(const rt_program *p) {
    const rt_sampling *s = &p->sampling;
    if (!s->batch || s->seeds != RT_SEEDS_ROWS || s->n_hops == 0)
        return "batches are not of rows and their neighbours";
    if (s->train_links != RT_LINKS_NONE) return "batches are of links";
    if (s->n_times) return "neighbours are drawn by time";
    if (s->n_weights) return "neighbours are drawn by weight";
    if (s->disjoint) return "each seed has a tree of its own";
    if (s->edges != RT_EDGES_DIRECTIONAL) return "batches have more edges than were drawn";
    return p->device_sample ? NULL : "the program has no kernels for it";
}

/* ---- how large may a batch be? ------------------------------------------------------- */
static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Edges that so many rows draw; INT32_MAX + 1 stands for more. */
static int64_t edges_of(const RtSampleRel *r, int64_t rows, int32_t fanout, bool replace) {
    int64_t n = fanout < 0 ? r->n_edges : least(rows * fanout, (int64_t)INT32_MAX + 1);
    if (rows == 0) return 0;
    return replace && fanout >= 0 ? n : least(n, r->n_edges);
}

/* One hop: rows[t] of the last one, of which `next` gets those it brings. */
static void bound_hop(RtDeviceSampler *s, int hop, const int64_t *rows, int64_t *next) {
    Most *m = &s->most;
    int64_t n_rows = 0, drawn = 0;
    for (int t = 0; t < s->g.n_types; t++) next[t] = 0;
    for (int r = 0; r < s->g.n_rels; r++) {
        const RtSampleRel *rel = &s->g.rel[r];
        int64_t n = edges_of(rel, rows[rel->dst_type], s->spec.fanout[hop * s->g.n_rels + r],
                             s->spec.replace);
        n_rows += rows[rel->dst_type];
        drawn += n;
        m->edges[r] += n;
        if (!s->spec.replace) m->edges[r] = least(m->edges[r], rel->n_edges);
        next[rel->src_type] += n;
    }
    for (int t = 0; t < s->g.n_types; t++) {
        next[t] = least(next[t], s->g.type[t].n);
        m->nodes[t] = least(m->nodes[t] + next[t], s->g.type[t].n);
    }
    if (n_rows > m->rows) m->rows = n_rows;
    if (drawn > m->drawn) m->drawn = drawn;
}

static gnnc_status bound(RtDeviceSampler *s, RtError *err) {
    int n_types = s->g.n_types, n_rels = s->g.n_rels;
    Most *m = &s->most;
    m->nodes = RT_NEWN(&s->pool, int64_t, n_types);
    m->edges = RT_NEWN(&s->pool, int64_t, n_rels + 1);
    int64_t *rows = RT_NEWN(&s->pool, int64_t, n_types);
    int64_t *next = RT_NEWN(&s->pool, int64_t, n_types);
    if (!m->nodes || !m->edges || !rows || !next) return rt_fail_nomem(err, "a sampler");
    rows[s->type] = m->nodes[s->type] = least(s->n_seeds, s->g.type[s->type].n);
    for (int h = 0; h < s->spec.n_hops; h++) {
        bound_hop(s, h, rows, next);
        memcpy(rows, next, (size_t)n_types * sizeof *rows);
    }
    for (int t = 0; t < n_types; t++) m->all_nodes += m->nodes[t];
    for (int r = 0; r < n_rels; r++) m->all_ends += m->nodes[s->g.rel[r].dst_type];
    bool fits = m->drawn < INT32_MAX && m->rows < INT32_MAX;
    for (int r = 0; r < n_rels; r++) fits = fits && m->edges[r] < INT32_MAX;
    if (fits) return GNNC_OK;
    return rt_fail(err, GNNC_E_RANGE, "a hop may have %lld edges: fewer than 2^31 - 1 are possible",
                   (long long)m->drawn);
}

/* ---- where things lie ---------------------------------------------------------------------- */
/* Calls with `n` of `size` bytes give the offsets of one thing after another. */
typedef struct {
    size_t align, used;
} Lay;

static size_t lay(Lay *l, int64_t n, size_t size) {
    size_t at = l->used;
    l->used += ((size_t)n * size + l->align) / l->align * l->align;
    return at;
}

static int64_t n_sizes(const RtDeviceSampler *s) {
    return (s->g.n_types + s->g.n_rels) * ((int64_t)s->spec.n_hops + 2);
}

static gnnc_status lay_slot(RtDeviceSampler *s, RtError *err) {
    int n_types = s->g.n_types, n_rels = s->g.n_rels;
    int64_t n_keys = (int64_t)s->spec.n_hops * n_rels;
    Layout *a = &s->at;
    Lay l = {.align = s->d->ops->align};
    size_t *all = RT_NEWN(&s->pool, size_t, n_types + 5 * n_rels);
    if (!all) return rt_fail_nomem(err, "a sampler");
    a->types = lay(&l, n_types, sizeof(RtDrawType));
    a->rels = lay(&l, n_rels + 1, sizeof(RtDrawRel));
    a->n_seeds = lay(&l, 1, sizeof(int64_t));
    a->key = lay(&l, n_keys, sizeof(uint64_t));
    a->fanout = lay(&l, n_keys, sizeof(int32_t));
    a->seed = lay(&l, s->n_seeds, sizeof(int32_t));
    a->asked_end = l.used;
    a->sizes = lay(&l, n_sizes(s), sizeof(int64_t));
    a->seed_at = lay(&l, s->n_seeds, sizeof(int32_t));
    a->sizes_end = l.used;
    a->id = all;
    a->ptr = all + n_types;
    a->src = a->ptr + n_rels;
    a->dst = a->src + n_rels;
    a->pos = a->dst + n_rels;
    a->names = a->pos + n_rels;
    for (int t = 0; t < n_types; t++) a->id[t] = lay(&l, s->most.nodes[t], sizeof(int32_t));
    for (int r = 0; r < n_rels; r++) {
        int64_t n = s->most.edges[r];
        a->ptr[r] = lay(&l, s->most.nodes[s->g.rel[r].dst_type] + 1, sizeof(int64_t));
        a->src[r] = lay(&l, n, sizeof(int32_t));
        a->dst[r] = lay(&l, n, sizeof(int32_t));
        a->pos[r] = lay(&l, n, sizeof(int64_t));
        a->names[r] = lay(&l, s->g.rel[r].id ? n : 0, sizeof(int32_t));
    }
    a->end = l.used;
    return GNNC_OK;
}

/* The graph, marks and what a hop needs meanwhile: offsets where there is no memory yet. */
static size_t lay_work(RtDeviceSampler *s, char *base) {
    RtDraw *d = &s->draw;
    const Most *m = &s->most;
    int64_t entries = m->drawn > s->n_seeds ? m->drawn : s->n_seeds;
    Lay l = {.align = s->d->ops->align};
#define LAY(p, n) ((p) = (void *)(base + lay(&l, (n), sizeof *(p))))
    for (int t = 0; t < s->g.n_types; t++) LAY(s->of[t].mark, s->g.type[t].n);
    for (int r = 0; r < s->g.n_rels; r++) {
        const RtSampleRel *rel = &s->g.rel[r];
        RtDrawRel *to = &s->graph[r];
        *to = (RtDrawRel){.src_type = rel->src_type,
                          .dst_type = rel->dst_type,
                          .ptr = s->has[r].ptr,
                          .src = s->has[r].src,
                          .id = rel->id ? s->has[r].id : NULL};
        if (!to->ptr) LAY(to->ptr, s->g.type[rel->dst_type].n + 1);
        if (!to->src) LAY(to->src, rel->n_edges);
        if (!to->id && rel->id) LAY(to->id, rel->n_edges);
    }
    LAY(d->node_from, s->g.n_types);
    LAY(d->row_first, s->g.n_rels + 1);
    LAY(d->row_node, s->g.n_rels);
    LAY(d->drawn_first, s->g.n_rels + 2);
    LAY(d->new_at, s->g.n_rels + 1);
    LAY(d->edges_at, s->g.n_rels);
    LAY(d->part, RT_DRAW_PARTS);
    LAY(d->row_at, m->rows + 1);
    LAY(d->row_of, entries);
    LAY(d->node, entries);
    LAY(d->pos, entries);
    LAY(d->new_before, entries + 1);
#undef LAY
    return l.used;
}

/* ---- life ------------------------------------------------------------------------------------ */
/* What maps were built there; else what buffers are, which the host has too. */
static gnnc_status find_graph(RtDeviceSampler *s, const int *space) {
    RtExec *x = s->d->x;
    gnnc_status st = GNNC_OK;
    for (int r = 0; r < s->g.n_rels; r++) {
        const RtSampleRel *rel = &s->g.rel[r];
        RtRelation *has = &s->has[r];
        const void *ptr, *src, *id;
        *has = rt_device_relation_kept(x, space[r]);
        TRY(st, rt_device_has(x, rel->ptr, &ptr));
        TRY(st, rt_device_has(x, rel->src, &src));
        TRY(st, rt_device_has(x, rel->id, &id));
        if (!has->ptr) has->ptr = ptr;
        if (!has->src) has->src = src;
        if (!has->id) has->id = id;
    }
out:
    return st;
}

static gnnc_status upload_graph(RtDeviceSampler *s) {
    RtDevice *d = s->d;
    gnnc_status st = GNNC_OK;
    for (int r = 0; r < s->g.n_rels; r++) {
        const RtSampleRel *from = &s->g.rel[r];
        const RtDrawRel *to = &s->graph[r];
        const RtRelation *has = &s->has[r];
        size_t n_dst = (size_t)s->g.type[from->dst_type].n, n = (size_t)from->n_edges;
        if (!has->ptr)
            TRY(st, d->ops->upload(d, (void *)to->ptr, from->ptr, (n_dst + 1) * sizeof *to->ptr));
        if (!has->src) TRY(st, d->ops->upload(d, (void *)to->src, from->src, n * sizeof *to->src));
        if (from->id && !has->id)
            TRY(st, d->ops->upload(d, (void *)to->id, from->id, n * sizeof *to->id));
    }
    st = d->ops->wait(d); /* what comes is in another queue */
out:
    return st;
}

/* Tables and fan-outs of a slot, which its batches have in common. */
static void write_tables(RtDeviceSampler *s, const Slot *slot) {
    const Layout *a = &s->at;
    RtDrawType *type = (void *)(slot->host + a->types);
    RtDrawRel *rel = (void *)(slot->host + a->rels);
    memset(slot->host, 0, a->asked_end);
    for (int t = 0; t < s->g.n_types; t++)
        type[t] = (RtDrawType){s->of[t].mark, (void *)(slot->there + a->id[t])};
    for (int r = 0; r < s->g.n_rels; r++) {
        rel[r] = s->graph[r];
        rel[r].to_ptr = (void *)(slot->there + a->ptr[r]);
        rel[r].to_src = (void *)(slot->there + a->src[r]);
        rel[r].to_dst = (void *)(slot->there + a->dst[r]);
        rel[r].to_pos = (void *)(slot->there + a->pos[r]);
        rel[r].to_id = (void *)(slot->there + a->names[r]);
    }
    rel[s->g.n_rels] = (RtDrawRel){.src_type = s->type, .dst_type = s->type};
    if (s->g.n_rels)
        memcpy(slot->host + a->fanout, s->spec.fanout,
               (size_t)(s->spec.n_hops * s->g.n_rels) * sizeof *s->spec.fanout);
}

static gnnc_status take_memory(RtDeviceSampler *s) {
    RtDevice *d = s->d;
    RtError *err = &d->x->rt->err;
    size_t work = lay_work(s, (char *)s->d->ops->align); /* some address: sizes are wanted */
    size_t all = work + s->at.end * (size_t)s->n_slots;
    gnnc_status st;
    TRY(st, d->ops->alloc(d, work, &s->work));
    lay_work(s, s->work);
    for (int i = 0; i < s->n_slots; i++) {
        void *host, *there;
        TRY(st, d->ops->alloc(d, s->at.end, &there));
        s->slot[i].there = there;
        TRY(st, d->ops->pin(d, s->at.end, &host));
        s->slot[i].host = host;
        write_tables(s, &s->slot[i]);
    }
    d->sampler_bytes = all;
    st = upload_graph(s);
out:
    if (st == GNNC_E_NOMEM)
        rt_fail(
            err, st,
            "a sampler on the device, with room for any batch and what is not there of the graph, "
            "takes %zu MiB",
            (all >> 20) + 1);
    return st;
}

static gnnc_status make(RtDeviceSampler *s, const int *space) {
    RtError *err = &s->d->x->rt->err;
    gnnc_status st;
    s->of = RT_NEWN(&s->pool, RtDrawType, s->g.n_types);
    s->graph = RT_NEWN(&s->pool, RtDrawRel, s->g.n_rels + 1);
    s->slot = RT_NEWN(&s->pool, Slot, s->n_slots);
    s->has = RT_NEWN(&s->pool, RtRelation, s->g.n_rels + 1);
    if (!s->of || !s->graph || !s->slot || !s->has) return rt_fail_nomem(err, "a sampler");
    TRY(st, bound(s, err));
    TRY(st, lay_slot(s, err));
    TRY(st, s->d->ops->side_open(s->d));
    TRY(st, find_graph(s, space));
    st = take_memory(s);
out:
    return st;
}

gnnc_status rt_device_sampler_new(RtDeviceSampler **out, RtExec *x, const RtSampleGraph *g,
                                  const int *space, const RtSampleSpec *spec, int type,
                                  int64_t n_seeds, int n_slots) {
    RtPool pool;
    *out = NULL;
    rt_pool_init(&pool, &x->rt->pool.from);
    RtDeviceSampler *s = RT_NEW(&pool, RtDeviceSampler); /* inside its own pool */
    if (!s) return rt_fail_nomem(&x->rt->err, "a sampler");
    *s = (RtDeviceSampler){.pool = pool,
                           .d = x->rt->device,
                           .kernel = x->program->device_sample,
                           .g = *g,
                           .spec = *spec,
                           .type = type,
                           .n_slots = n_slots,
                           .n_seeds = n_seeds};
    gnnc_status st = make(s, space);
    if (st == GNNC_OK)
        *out = s;
    else
        rt_device_sampler_free(s);
    return st;
}

void rt_device_sampler_free(RtDeviceSampler *s) {
    if (!s) return;
    RtDevice *d = s->d;
    for (int i = 0; s->slot && i < s->n_slots; i++) {
        d->ops->unpin(d, s->slot[i].host);
        d->ops->release(d, s->slot[i].there);
    }
    d->ops->release(d, s->work);
    d->sampler_bytes = 0;
    RtPool pool = s->pool; /* s itself goes away with it */
    rt_pool_free(&pool);
}

/* ---- a batch -----------------------------------------------------------------------------------
 */
static RtDraw draw_of(const RtDeviceSampler *s, const Slot *slot) {
    RtDraw d = s->draw;
    const Layout *a = &s->at;
    int64_t n_ends = s->spec.n_hops + 1;
    d.n_types = s->g.n_types;
    d.n_rels = s->g.n_rels;
    d.n_hops = s->spec.n_hops;
    d.replace = s->spec.replace;
    d.type = (const void *)(slot->there + a->types);
    d.rel = (const void *)(slot->there + a->rels);
    d.n_seeds = (const void *)(slot->there + a->n_seeds);
    d.key = (const void *)(slot->there + a->key);
    d.fanout = (const void *)(slot->there + a->fanout);
    d.seed = (const void *)(slot->there + a->seed);
    d.n_nodes = (void *)(slot->there + a->sizes);
    d.node_end = d.n_nodes + d.n_types;
    d.n_edges = d.node_end + d.n_types * n_ends;
    d.edge_end = d.n_edges + d.n_rels;
    d.seed_at = (void *)(slot->there + a->seed_at);
    d.most_seeds = s->n_seeds;
    d.most_rows = s->most.rows;
    d.most_drawn = s->most.drawn;
    d.most_nodes = s->most.all_nodes;
    d.most_dst = s->most.all_ends;
    return d;
}

static void ask(const RtDeviceSampler *s, const Slot *slot, const RtSampleAt *at,
                const int32_t *seed, int64_t n) {
    uint64_t *key = (void *)(slot->host + s->at.key);
    for (int i = 0; i < s->spec.n_hops * s->g.n_rels; i++)
        key[i] = rt_draw_key(at->seed, at->epoch, at->batch, RT_DRAW_HOP + (uint64_t)i);
    memcpy(slot->host + s->at.n_seeds, &n, sizeof n);
    memcpy(slot->host + s->at.seed, seed, (size_t)n * sizeof *seed);
}

static void *at_host(const Slot *slot, size_t offset) {
    return slot->host + offset;
}

/* Sizes, and where arrays will be. */
static void fill(const RtDeviceSampler *s, const Slot *slot, const RtSampleAt *at, int64_t n_seeds,
                 RtBatch *b) {
    const Layout *a = &s->at;
    int64_t n_ends = s->spec.n_hops + 1;
    const int64_t *n_nodes = at_host(slot, a->sizes), *node_end = n_nodes + b->n_types;
    const int64_t *n_edges = node_end + b->n_types * n_ends, *edge_end = n_edges + b->n_rels;
    if (b->first_epoch == 0) b->first_epoch = at->epoch + 1;
    b->growth.roomy = b->first_epoch == at->epoch + 1;
    b->number = (int64_t)at->batch;
    b->by_hop = true;
    b->n_groups = 1;
    b->n_seeds[0] = n_seeds;
    b->seed[0] = at_host(slot, a->seed_at);
    for (int t = 0; t < b->n_types; t++) {
        b->nodes[t].n = n_nodes[t];
        b->nodes[t].id = at_host(slot, a->id[t]);
        b->nodes[t].tree = NULL;
        memcpy(b->nodes[t].end, node_end + t * n_ends, (size_t)n_ends * sizeof *node_end);
    }
    for (int r = 0; r < b->n_rels; r++) {
        RtBatchEdges *e = &b->edges[r];
        e->n = n_edges[r];
        e->ptr = at_host(slot, a->ptr[r]);
        e->src = at_host(slot, a->src[r]);
        e->dst = at_host(slot, a->dst[r]);
        e->pos = at_host(slot, a->pos[r]);
        e->id = s->g.rel[r].id ? at_host(slot, a->names[r]) : NULL;
        e->id_bound = s->g.rel[r].id_bound;
        e->by_src = (RtGroups){0};
        memcpy(e->end, edge_end + r * n_ends, (size_t)n_ends * sizeof *edge_end);
    }
}

static gnnc_status read_back(const RtDeviceSampler *s, const Slot *slot, size_t at, int64_t n,
                             size_t size, RtError *err) {
    return s->d->ops->side_download(s->d, slot->host + at, slot->there + at, (size_t)n * size, err);
}

static gnnc_status read_arrays(const RtDeviceSampler *s, const Slot *slot, const RtBatch *b,
                               RtError *err) {
    const Layout *a = &s->at;
    gnnc_status st = GNNC_OK;
    for (int t = 0; t < b->n_types; t++)
        TRY(st, read_back(s, slot, a->id[t], b->nodes[t].n, sizeof(int32_t), err));
    for (int r = 0; r < b->n_rels; r++) {
        int64_t n = b->edges[r].n, n_dst = b->nodes[s->g.rel[r].dst_type].n;
        TRY(st, read_back(s, slot, a->ptr[r], n_dst + 1, sizeof(int64_t), err));
        TRY(st, read_back(s, slot, a->src[r], n, sizeof(int32_t), err));
        TRY(st, read_back(s, slot, a->dst[r], n, sizeof(int32_t), err));
        TRY(st, read_back(s, slot, a->pos[r], n, sizeof(int64_t), err));
        if (b->edges[r].id) TRY(st, read_back(s, slot, a->names[r], n, sizeof(int32_t), err));
    }
    st = s->d->ops->side_wait(s->d, err);
out:
    return st;
}

gnnc_status rt_device_sample(RtDeviceSampler *s, const RtSampleAt *at, const int32_t *seed,
                             int64_t n, int number, RtBatch *b, RtError *err) {
    const RtDeviceOps *ops = s->d->ops;
    const Slot *slot = &s->slot[number];
    const Layout *a = &s->at;
    RtDraw draw = draw_of(s, slot);
    void *const arg[] = {&draw};
    gnnc_status st;
    if (n < 0 || n > s->n_seeds)
        return rt_fail(err, GNNC_E_RANGE, "%lld seeds: a batch has at most %lld", (long long)n,
                       (long long)s->n_seeds);
    ask(s, slot, at, seed, n);
    TRY(st, ops->side_upload(s->d, slot->there, slot->host, a->asked_end, err));
    TRY(st, ops->side_launch(s->d, s->kernel, "sampling", arg, err));
    TRY(st, ops->side_download(s->d, slot->host + a->sizes, slot->there + a->sizes,
                               a->sizes_end - a->sizes, err));
    TRY(st, ops->side_wait(s->d, err));
    fill(s, slot, at, n, b);
    st = read_arrays(s, slot, b, err);
out:
    return st;
}

/* ---- proof -------------------------------------------------------------------------------------
 */
static bool same(const void *a, const void *b, int64_t n, size_t size) {
    if (n == 0 || (!a && !b)) return true;
    return a && b && memcmp(a, b, (size_t)n * size) == 0;
}

static const char *node_difference(const RtBatchNodes *a, const RtBatchNodes *b, int n_hops) {
    if (a->n != b->n) return "count";
    if (!same(a->end, b->end, n_hops + 1, sizeof *a->end)) return "ends of hops";
    return same(a->id, b->id, a->n, sizeof *a->id) ? NULL : "ids";
}

static const char *edge_difference(const RtBatchEdges *a, const RtBatchEdges *b, int n_hops,
                                   int64_t n_dst) {
    if (a->n != b->n) return "count";
    if (!same(a->end, b->end, n_hops + 1, sizeof *a->end)) return "ends of hops";
    if (!same(a->ptr, b->ptr, n_dst + 1, sizeof *a->ptr)) return "pointers";
    if (!same(a->src, b->src, a->n, sizeof *a->src)) return "sources";
    if (!same(a->dst, b->dst, a->n, sizeof *a->dst)) return "destinations";
    if (!same(a->pos, b->pos, a->n, sizeof *a->pos)) return "positions";
    return same(a->id, b->id, a->n, sizeof *a->id) ? NULL : "logical ids";
}

gnnc_status rt_device_sample_check(const RtDeviceSampler *s, const RtBatch *a, const RtBatch *b,
                                   RtError *err) {
    const char *what = NULL;
    for (int t = 0; t < a->n_types; t++)
        if ((what = node_difference(&a->nodes[t], &b->nodes[t], a->n_hops)))
            return rt_fail(err, GNNC_E_ASSERT, "batch %lld: '%s': other %s on the device",
                           (long long)a->number, s->g.type[t].name, what);
    for (int r = 0; r < a->n_rels; r++)
        if ((what = edge_difference(&a->edges[r], &b->edges[r], a->n_hops,
                                    a->nodes[s->g.rel[r].dst_type].n)))
            return rt_fail(err, GNNC_E_ASSERT, "batch %lld: '%s': other %s on the device",
                           (long long)a->number, s->g.rel[r].name, what);
    if (a->n_seeds[0] == b->n_seeds[0] &&
        same(a->seed[0], b->seed[0], a->n_seeds[0], sizeof *a->seed[0]))
        return GNNC_OK;
    return rt_fail(err, GNNC_E_ASSERT, "batch %lld: other numbers of seeds on the device",
                   (long long)a->number);
}
