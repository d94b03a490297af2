/* Memory and orders for the device's sampler.
 *
 * A slot is one block on both sides, laid out alike:
 *
 *     asked    tables of pointers, keys, fan-outs, seeds     crosses to the device, one copy
 *     seeds    where the device chooses them
 *     sizes    of nodes and edges by hops, seeds' numbers    crosses back, one copy, then the
 *     arrays   ids; pointers, ends and places of edges       parts of the arrays that are filled
 *
 * Room is for what cannot be exceeded (device_sample_room.c). */
#include <string.h>

#include "device_sample_impl.h"
#include "runtime/device/device_maps.h"

/* Why the device cannot draw the program's batches, in words; NULL: it can. */
const char *rt_device_sampler_lacks(const rt_program *p) {
    const rt_sampling *s = &p->sampling;
    bool links = s->train_links != RT_LINKS_NONE;
    if (!s->batch || (!links && s->seeds != RT_SEEDS_ROWS) || s->n_hops == 0)
        return "batches are not of rows or links and their neighbours";
    if (s->train_links == RT_LINKS_QUERIES) return "batches are of queries";
    if (s->edges != RT_EDGES_DIRECTIONAL) return "batches have more edges than were drawn";
    return p->device_sample ? NULL : "the program has no kernels for it";
}

static const double *time_of(const RtDeviceSampler *s, const RtSampleRel *rel) {
    return s->spec.temporal ? rel->time : NULL;
}
static const double *src_time_of(const RtDeviceSampler *s, const RtSampleRel *rel) {
    return s->spec.temporal ? s->g.type[rel->src_type].time : NULL;
}

/* What the kernels that draw need to know of relation r, of arrays that the device had before
 * sampling. */
static RtDrawRel described(const RtDeviceSampler *s, int r) {
    const RtSampleRel *rel = &s->g.rel[r];
    const RtDrawHas *has = &s->has[r];
    return (RtDrawRel){.src_type = rel->src_type,
                       .dst_type = rel->dst_type,
                       .ptr = has->ptr,
                       .src = has->src,
                       .id = rel->id ? has->id : NULL,
                       .weight = has->weight,
                       .time = has->time,
                       .by_time = has->by_time,
                       .src_time = s->of[rel->src_type].time,
                       .inclusive = rel->inclusive,
                       .src_inclusive = s->g.type[rel->src_type].inclusive,
                       .sorted = s->spec.temporal && rel->time_sorted,
                       .own = rel->own,
                       .hides = rel->hides};
}

static const int32_t *by_time_of(const RtDeviceSampler *s, const RtSampleRel *rel) {
    return s->spec.temporal ? rel->by_time : NULL;
}

/* Are places of edges noted, before they are in order? */
static bool chooses(const RtDeviceSampler *s) {
    bool any = s->draw.scans;
    for (int r = 0; r < s->g.n_rels; r++) any |= by_time_of(s, &s->g.rel[r]) != NULL;
    return any;
}

/* Whether edges of a row must be looked at one by one to know which may be drawn. */
static bool scans(const RtDeviceSampler *s) {
    bool any = false;
    for (int r = 0; r < s->g.n_rels; r++) {
        const RtSampleRel *rel = &s->g.rel[r];
        bool by_time = time_of(s, rel) || src_time_of(s, rel);
        any |= rel->weight || rel->hides || (by_time && !described(s, r).sorted);
    }
    return any;
}

/* p gets room for n elements, behind what was laid out before. */
#define LAY(p, n) ((p) = (void *)(base + rt_lay(l, (n), sizeof *(p))))
/* Lays out what is kept of each type and relation: marks of nodes, then times, edges and weights
 * that are not on the device already. */
static void lay_graph(RtDeviceSampler *s, RtLay *l, char *base) {
    const RtDrawMost *m = &s->most;
    for (int t = 0; t < s->g.n_types; t++) {
        RtDrawType *of = &s->of[t];
        of->slots = s->g.type[t].n;
        if (s->spec.how.disjoint) {
            for (of->slots = 2; of->slots < 2 * m->nodes[t];) of->slots *= 2;
            LAY(of->key, of->slots);
            LAY(of->slot_of, m->nodes[t]);
        }
        LAY(of->mark, of->slots);
    }
    s->marks_bytes = l->used;
    for (int t = 0; t < s->g.n_types; t++)
        if (!s->like && s->spec.temporal && s->g.type[t].time) LAY(s->of[t].time, s->g.type[t].n);
    for (int r = 0; r < s->g.n_rels; r++) {
        const RtSampleRel *rel = &s->g.rel[r];
        RtDrawRel *to = &s->graph[r];
        *to = described(s, r);
        if (!to->ptr) LAY(to->ptr, s->g.type[rel->dst_type].n + 1);
        if (!to->src) LAY(to->src, rel->n_edges);
        if (!to->id && rel->id) LAY(to->id, rel->n_edges);
        if (!to->weight && rel->weight) LAY(to->weight, rel->n_edges);
        if (!to->time && time_of(s, rel)) LAY(to->time, rel->n_edges);
        if (!to->by_time && by_time_of(s, rel)) LAY(to->by_time, rel->n_edges);
    }
}

/* Lays out what a batch is drawn in. */
static void lay_draw(RtDeviceSampler *s, RtLay *l, char *base) {
    RtDraw *d = &s->draw;
    const RtDrawMost *m = &s->most;
    int64_t seeds = s->n_groups * s->n_seeds, entries = m->drawn > seeds ? m->drawn : seeds;
    LAY(d->node_from, s->g.n_types);
    LAY(d->row_first, s->g.n_rels + 1);
    LAY(d->row_node, s->g.n_rels);
    LAY(d->drawn_first, s->g.n_rels + s->n_groups + 1);
    LAY(d->new_at, s->g.n_rels + s->n_groups);
    LAY(d->edges_at, s->g.n_rels);
    LAY(d->part, RT_DRAW_PARTS);
    LAY(d->row_at, m->rows + 1);
    LAY(d->row_of, entries);
    LAY(d->node, entries);
    LAY(d->pos, entries);
    d->slot = d->node;
    if (s->spec.how.disjoint) LAY(d->slot, entries);
    LAY(d->row_known, m->rows);
    LAY(d->choice, chooses(s) ? entries : 0);
    LAY(d->new_before, entries + 1);
}
#undef LAY

/* Lays out the sampler's workspace on the device. Without memory (NULL) it only computes offsets,
 * and so the size. */
static size_t layout_workspace(RtDeviceSampler *s, char *base) {
    RtLay l = {.align = s->d->ops->align};
    lay_graph(s, &l, base);
    rt_draw_ends_lay(&s->ends, &l, base);
    lay_draw(s, &l, base);
    return l.used;
}

/* ---- life ------------------------------------------------------------------------------------ */
/* What maps were built there; else what buffers are, which the host has too. */
static gnnc_status find_graph(RtDeviceSampler *s, const int *space) {
    RtExec *x = s->d->x;
    gnnc_status st = GNNC_OK;
    for (int t = 0; t < s->g.n_types && s->like; t++) s->of[t].time = s->like->of[t].time;
    for (int r = 0; r < s->g.n_rels; r++) {
        const RtSampleRel *rel = &s->g.rel[r];
        if (s->like) {
            const RtDrawRel *of = &s->like->graph[r];
            s->has[r] = (RtDrawHas){of->ptr, of->src, of->id, of->weight, of->time, of->by_time};
            continue;
        }
        RtRelation kept = rt_device_relation_kept(x, space[r]);
        RtDrawHas *has = &s->has[r];
        TRY(st, rt_device_has(x, rel->ptr, &has->ptr));
        TRY(st, rt_device_has(x, rel->src, &has->src));
        TRY(st, rt_device_has(x, rel->id, &has->id));
        if (kept.ptr) has->ptr = kept.ptr;
        if (kept.src) has->src = kept.src;
        if (kept.id) has->id = kept.id;
    }
out:
    return st;
}

/* Uploads the arrays of the graph that sampling reads and that the device does not have yet. */
static gnnc_status upload_graph(RtDeviceSampler *s) {
    gnnc_status st = GNNC_OK;
    for (int r = 0; r < s->g.n_rels; r++) {
        const RtSampleRel *rel = &s->g.rel[r];
        const RtDrawRel *to = &s->graph[r];
        const RtDrawHas *has = &s->has[r];
        int64_t n = rel->n_edges, n_dst = s->g.type[rel->dst_type].n;
        TRY(st, rt_draw_bring(s->d, has->ptr, to->ptr, rel->ptr, n_dst + 1, sizeof *to->ptr));
        TRY(st, rt_draw_bring(s->d, has->src, to->src, rel->src, n, sizeof *to->src));
        TRY(st, rt_draw_bring(s->d, has->id, to->id, rel->id, n, sizeof *to->id));
        TRY(st, rt_draw_bring(s->d, has->weight, to->weight, rel->weight, n, sizeof *to->weight));
        TRY(st, rt_draw_bring(s->d, has->time, to->time, time_of(s, rel), n, sizeof *to->time));
        TRY(st, rt_draw_bring(s->d, has->by_time, to->by_time, by_time_of(s, rel), n,
                              sizeof *to->by_time));
    }
    for (int t = 0; t < s->g.n_types; t++) {
        const RtSampleType *type = &s->g.type[t];
        const RtDrawType *to = &s->of[t];
        if (to->time)
            TRY(st, rt_draw_bring(s->d, s->like, to->time, type->time, type->n, sizeof *to->time));
    }
out:
    return st;
}

/* Writes to the slot the tables of node types and relations and the fan-outs, which are the same
 * for all its batches. */
static void write_tables(RtDeviceSampler *s, const RtDrawSlot *slot) {
    const RtDrawLayout *a = &s->at;
    RtDrawType *type = (void *)(slot->host + a->types);
    RtDrawRel *rel = (void *)(slot->host + a->rels);
    memset(slot->host, 0, a->seed_end);
    for (int t = 0; t < s->g.n_types; t++) {
        type[t] = s->of[t];
        type[t].id = (void *)(slot->there + a->id[t]);
        if (s->spec.how.disjoint) type[t].tree = (void *)(slot->there + a->tree[t]);
    }
    for (int r = 0; r < s->g.n_rels; r++) {
        rel[r] = s->graph[r];
        rel[r].to_ptr = (void *)(slot->there + a->ptr[r]);
        rel[r].to_src = (void *)(slot->there + a->src[r]);
        rel[r].to_dst = (void *)(slot->there + a->dst[r]);
        rel[r].to_pos = (void *)(slot->there + a->pos[r]);
        rel[r].to_id = (void *)(slot->there + a->names[r]);
    }
    for (int g = 0; g < s->n_groups; g++)
        rel[s->g.n_rels + g] = (RtDrawRel){.src_type = s->type[g], .dst_type = s->type[g]};
    if (s->g.n_rels)
        memcpy(slot->host + a->fanout, s->spec.fanout,
               (size_t)(s->spec.how.n_hops * s->g.n_rels) * sizeof *s->spec.fanout);
}

/* Allocates the sampler's working memory and the memory of its slots, on the device and (pinned) on
 * the host. */
static gnnc_status take_memory(RtDeviceSampler *s) {
    RtDevice *d = s->d;
    RtError *err = &d->x->rt->err;
    size_t work =
        layout_workspace(s, (char *)s->d->ops->align); /* some address: sizes are wanted */
    size_t all = work + s->at.end * (size_t)s->n_slots;
    gnnc_status st;
    TRY(st, d->ops->alloc(d, work, &s->work));
    layout_workspace(s, s->work);
    for (int i = 0; i < s->n_slots; i++) {
        void *host, *there;
        TRY(st, d->ops->alloc(d, s->at.end, &there));
        s->slot[i].there = there;
        TRY(st, d->ops->pin(d, s->at.end, &host));
        s->slot[i].host = host;
        write_tables(s, &s->slot[i]);
    }
    s->n_bytes = all;
    d->sampler_bytes += all;
    TRY(st, upload_graph(s));
    TRY(st, rt_draw_ends_bring(d, &s->ends));
    st = d->ops->wait(d); /* what comes is in another queue */
out:
    if (st == GNNC_E_NOMEM)
        rt_fail(
            err, st,
            "a sampler on the device, with room for any batch and what is not there of the graph, "
            "takes %zu MiB",
            (all >> 20) + 1);
    return st;
}

static bool hides_any(const RtDeviceSampler *s) {
    for (int r = 0; r < s->g.n_rels; r++)
        if (s->g.rel[r].hides) return true;
    return false;
}

/* Builds the sampler's tables, memory and copy of the graph. */
static gnnc_status make(RtDeviceSampler *s, const RtDeviceSamplerSpec *spec) {
    RtError *err = &s->d->x->rt->err;
    gnnc_status st;
    s->of = RT_NEWN(&s->pool, RtDrawType, s->g.n_types);
    s->graph = RT_NEWN(&s->pool, RtDrawRel, s->g.n_rels + 1);
    bool hides = hides_any(s);
    if (hides) s->hidden = RT_NEWN(&s->pool, RtDrawHidden, 2 * s->n_trees + 1);
    s->slot = RT_NEWN(&s->pool, RtDrawSlot, s->n_slots);
    s->has = RT_NEWN(&s->pool, RtDrawHas, s->g.n_rels + 1);
    if (!s->of || !s->graph || !s->slot || !s->has || (hides && !s->hidden))
        return rt_fail_nomem(err, "a sampler");
    TRY(st, rt_draw_bound(s, err));
    TRY(st, rt_draw_lay_slot(s, err));
    TRY(st, s->d->ops->side_open(s->d, &s->queue));
    TRY(st, find_graph(s, spec->space));
    TRY(st, rt_draw_ends_find(s->d, &s->ends, spec->base, NULL));
    s->draw.scans = scans(s);
    st = take_memory(s);
out:
    return st;
}

gnnc_status rt_device_sampler_new(RtDeviceSampler **out, RtExec *x,
                                  const RtDeviceSamplerSpec *spec) {
    RtPool pool;
    *out = NULL;
    rt_pool_init(&pool, &x->rt->pool.from);
    RtDeviceSampler *s = RT_NEW(&pool, RtDeviceSampler); /* inside its own pool */
    if (!s) return rt_fail_nomem(&x->rt->err, "a sampler");
    *s = (RtDeviceSampler){.pool = pool,
                           .d = x->rt->device,
                           .kernel = x->program->device_sample,
                           .g = *spec->g,
                           .spec = *spec->how,
                           .n_groups = spec->n_groups,
                           .type = {spec->type[0], spec->type[1]},
                           .n_slots = spec->n_slots,
                           .n_seeds = spec->n_seeds,
                           .n_trees = spec->n_trees,
                           .like = spec->like,
                           .ends = {.links = spec->links, .how = spec->negatives},
                           .reads_edges = true,
                           .reads_positions = true};
    gnnc_status st = make(s, spec);
    if (st == GNNC_OK)
        *out = s;
    else
        rt_device_sampler_free(s);
    return st;
}

/* Releases the sampler and its device memory. */
void rt_device_sampler_free(RtDeviceSampler *s) {
    if (!s) return;
    RtDevice *d = s->d;
    for (int i = 0; s->slot && i < s->n_slots; i++) {
        d->ops->unpin(d, s->slot[i].host);
        d->ops->release(d, s->slot[i].there);
    }
    d->ops->release(d, s->work);
    if (s->queue) d->ops->side_close(d, s->queue);
    d->sampler_bytes -= s->n_bytes;
    RtPool pool = s->pool; /* s itself goes away with it */
    rt_pool_free(&pool);
}

/* ---- a batch -------- */
/* The arguments of the kernels that draw a batch into the slot. */
static RtDraw draw_of(const RtDeviceSampler *s, const RtDrawSlot *slot) {
    RtDraw d = s->draw;
    const RtDrawLayout *a = &s->at;
    int64_t n_ends = s->spec.how.n_hops + 1;
    d.n_types = s->g.n_types;
    d.n_rels = s->g.n_rels;
    d.n_hops = s->spec.how.n_hops;
    d.replace = s->spec.how.replace;
    d.recent = s->spec.how.pick == RT_PICK_RECENT;
    d.type = (const void *)(slot->there + a->types);
    d.rel = (const void *)(slot->there + a->rels);
    d.n_seeds = (const void *)(slot->there + a->n_seeds);
    d.key = (const void *)(slot->there + a->key);
    d.fanout = (const void *)(slot->there + a->fanout);
    d.n_groups = s->n_groups;
    d.seed = (void *)(slot->there + a->seed);
    if (s->spec.how.disjoint) {
        d.seed_tree = (const void *)(slot->there + a->seed_tree);
        d.tree_key = (const void *)(slot->there + a->tree_key);
    }
    if (s->spec.temporal) d.tree_time = (const void *)(slot->there + a->tree_time);
    if (s->hidden) {
        d.hide_first = (const void *)(slot->there + a->hide_first);
        d.hide_node = (const void *)(slot->there + a->hide_node);
        d.hide_src = (const void *)(slot->there + a->hide_src);
    }
    d.pairs = s->ends.links != NULL;
    d.links = rt_draw_ends_links(&s->ends);
    d.n_links = (const void *)(slot->there + a->n_links);
    d.negative_key = (const void *)(slot->there + a->negative_key);
    d.edge = (const void *)(slot->there + a->edge);
    d.n_nodes = (void *)(slot->there + a->sizes);
    d.node_end = d.n_nodes + d.n_types;
    d.n_edges = d.node_end + d.n_types * n_ends;
    d.edge_end = d.n_edges + d.n_rels;
    d.seed_at = (void *)(slot->there + a->seed_at);
    d.most_seeds = s->n_groups * s->n_seeds;
    d.most_rows = s->most.rows;
    d.most_drawn = s->most.drawn;
    d.most_nodes = s->most.all_nodes;
    d.most_dst = s->most.all_ends;
    return d;
}

static void *at_host(const RtDrawSlot *slot, size_t offset) {
    return slot->host + offset;
}

/* Fills in the sizes of the batch, and the places in the slot where its arrays will be. */
static void fill(const RtDeviceSampler *s, const RtDrawSlot *slot, const RtSampleAt *at,
                 int64_t n_seeds, RtBatch *b) {
    int32_t *seed_at = at_host(slot, s->at.seed_at);
    const RtDrawLayout *a = &s->at;
    int64_t n_ends = s->spec.how.n_hops + 1;
    const int64_t *n_nodes = at_host(slot, a->sizes), *node_end = n_nodes + b->n_types;
    const int64_t *n_edges = node_end + b->n_types * n_ends, *edge_end = n_edges + b->n_rels;
    if (b->first_epoch == 0) b->first_epoch = at->epoch + 1;
    b->growth.roomy = b->first_epoch == at->epoch + 1;
    b->number = (int64_t)at->batch;
    b->by_hop = true;
    b->here = slot->host;
    b->there = slot->there;
    b->n_groups = s->n_groups;
    for (int g = 0; g < s->n_groups; g++) {
        b->n_seeds[g] = n_seeds;
        b->seed[g] = seed_at + g * n_seeds;
    }
    for (int t = 0; t < b->n_types; t++) {
        b->nodes[t].n = n_nodes[t];
        b->nodes[t].id = at_host(slot, a->id[t]);
        b->nodes[t].tree = s->spec.how.disjoint ? at_host(slot, a->tree[t]) : NULL;
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

static gnnc_status read_back(const RtDeviceSampler *s, const RtDrawSlot *slot, size_t at, int64_t n,
                             size_t size, RtError *err) {
    return s->d->ops->side_download(s->d, s->queue, slot->host + at, slot->there + at,
                                    (size_t)n * size, err);
}

/* Copies what the host reads of the nodes and edges of a batch from the device to the slot's memory
 * here. */
static gnnc_status read_arrays(const RtDeviceSampler *s, const RtDrawSlot *slot, const RtBatch *b,
                               RtError *err) {
    const RtDrawLayout *a = &s->at;
    gnnc_status st = GNNC_OK;
    for (int t = 0; t < b->n_types; t++) {
        int64_t n = b->nodes[t].n;
        TRY(st, read_back(s, slot, a->id[t], n, sizeof(int32_t), err));
        if (s->spec.how.disjoint) TRY(st, read_back(s, slot, a->tree[t], n, sizeof(int32_t), err));
    }
    for (int r = 0; r < b->n_rels; r++) {
        int64_t n = b->edges[r].n, n_dst = b->nodes[s->g.rel[r].dst_type].n;
        if (s->reads_positions) TRY(st, read_back(s, slot, a->pos[r], n, sizeof(int64_t), err));
        if (!s->reads_edges) continue;
        TRY(st, read_back(s, slot, a->ptr[r], n_dst + 1, sizeof(int64_t), err));
        TRY(st, read_back(s, slot, a->src[r], n, sizeof(int32_t), err));
        TRY(st, read_back(s, slot, a->dst[r], n, sizeof(int32_t), err));
        if (b->edges[r].id) TRY(st, read_back(s, slot, a->names[r], n, sizeof(int32_t), err));
    }
    st = s->d->ops->side_wait(s->d, s->queue, err);
out:
    return st;
}

static const double *tree_times(const RtDeviceSampler *s, const RtDrawSlot *slot) {
    return at_host(slot, s->at.tree_time);
}

void rt_device_sampler_keep_edges(RtDeviceSampler *s, bool positions) {
    s->reads_edges = s->spec.check;
    s->reads_positions = positions || s->spec.check;
}

/* Draws one batch on the device into slot `number` and brings it to the host, where b refers to it.
 * It is the batch that the host would draw. */
gnnc_status rt_device_sample(RtDeviceSampler *s, const RtSampleAt *at, const RtSeeds *groups,
                             const RtDrawnPairs *pairs, int number, RtBatch *b, RtError *err) {
    const RtDeviceOps *ops = s->d->ops;
    const RtDrawSlot *slot = &s->slot[number];
    const RtDrawLayout *a = &s->at;
    RtDraw draw = draw_of(s, slot);
    void *const arg[] = {&draw};
    gnnc_status st;
    bool unfinished = s->unfinished;
    TRY(st, rt_draw_ask(s, slot, at, groups, pairs, err));
    s->unfinished = true;
    TRY(st, ops->side_after(s->d, s->queue, err)); /* what was in the slot has been taken */
    if (unfinished) TRY(st, ops->side_clear(s->d, s->queue, s->work, s->marks_bytes, err));
    TRY(st, ops->side_upload(s->d, s->queue, slot->there, slot->host, a->asked_end, err));
    TRY(st, ops->side_launch(s->d, s->queue, s->kernel, "sampling", arg, err));
    TRY(st, ops->side_download(s->d, s->queue, slot->host + a->sizes, slot->there + a->sizes,
                               a->sizes_end - a->sizes, err));
    TRY(st, ops->side_wait(s->d, s->queue, err));
    s->unfinished = false;
    fill(s, slot, at, groups->n, b);
    TRY(st, read_arrays(s, slot, b, err));
    if (s->spec.check && s->spec.temporal) st = rt_sample_check(&s->g, tree_times(s, slot), b, err);
out:
    if (s->unfinished) ops->side_wait(s->d, s->queue, NULL); /* nothing reads the slot any more */
    return st;
}
