/* Samplers: life, checks of what is asked, and the course of a batch. */
#include "sample.h"

#include <math.h>
#include <string.h>

#include "sample_impl.h"

RtSampleRel rt_sample_rel(const char *name, int src_type, int dst_type, const RtRelation *r) {
    return (RtSampleRel){
        .name = name,
        .src_type = src_type,
        .dst_type = dst_type,
        .n_edges = r->n_edges,
        .ptr = r->ptr,
        .src = r->src,
        .id = r->id,
        .id_bound = r->wide ? RT_WIDE_IDS : r->id_bound,
        .wide = r->wide,
        .wide_id = r->wide_id,
        .by_src = r->by_src.ptr ? &r->by_src : NULL,
        .dst = r->dst,
        .reverse = -1,
    };
}

/* ---- is it possible? ---------------------------------------------------------------- */
/* Are all weights of the relation finite and not negative? */
static gnnc_status check_weights(const RtSampleRel *r, RtError *err) {
    for (int64_t e = 0; r->weight && e < r->n_edges; e++)
        if (!(r->weight[e] >= 0) || isinf(r->weight[e]))
            return rt_fail(err, GNNC_E_VALUE,
                           "sampling '%s': edge %lld: weight %g is no finite number from 0",
                           r->name, (long long)e, (double)r->weight[e]);
    return GNNC_OK;
}

/* Is the relation that leads back (r->reverse) one between the same node types, with its edges
 * grouped by source? */
static gnnc_status check_reverse(const RtSampleGraph *g, const RtSampleRel *r, RtError *err) {
    if (r->reverse < 0) return GNNC_OK;
    const RtSampleRel *back = r->reverse < g->n_rels ? &g->rel[r->reverse] : NULL;
    if (!back || back->src_type != r->dst_type || back->dst_type != r->src_type)
        return rt_fail(err, GNNC_E_ARG, "sampling '%s': its reverse is no edge type back", r->name);
    if (back->by_src && back->dst) return GNNC_OK;
    return rt_fail(err, GNNC_E_ARG, "sampling '%s' both ways needs '%s' by source too", r->name,
                   back->name);
}

/* Can edges be drawn along relation k: its arrays, fan-outs, weights, and the relation back where
 * batches want it? */
static gnnc_status check_rel(const RtSampleGraph *g, const RtSampleSpec *spec, int k,
                             RtError *err) {
    const RtSampleRel *r = &g->rel[k];
    if (r->src_type < 0 || r->src_type >= g->n_types || r->dst_type < 0 ||
        r->dst_type >= g->n_types)
        return rt_fail(err, GNNC_E_RANGE, "sampling '%s': a node type that is none", r->name);
    if (!r->ptr || (!r->src && r->n_edges) || r->n_edges < 0)
        return rt_fail(err, GNNC_E_ARG, "sampling '%s': no edges by destination", r->name);
    for (int h = 0; h < spec->how.n_hops; h++)
        if (spec->fanout[h * g->n_rels + k] < -1)
            return rt_fail(err, GNNC_E_RANGE, "sampling '%s': hop %d: a fan-out of %d; -1 is all",
                           r->name, h + 1, spec->fanout[h * g->n_rels + k]);
    if (spec->how.edges == RT_EDGES_BIDIRECTIONAL) {
        gnnc_status st = check_reverse(g, r, err);
        if (st != GNNC_OK) return st;
    }
    return check_weights(r, err);
}

/* Do the graph and the way to draw fit together? Later code relies on all that is checked here. */
static gnnc_status check_all(const RtSampleGraph *g, const RtSampleSpec *spec, int n_threads,
                             RtError *err) {
    gnnc_status st = GNNC_OK;
    if (g->n_types < 1 || g->n_rels < 0 || spec->how.n_hops < 0 || n_threads < 1)
        return rt_fail(err, GNNC_E_ARG, "sampling needs node types, hops and threads");
    if (spec->how.n_hops && g->n_rels && !spec->fanout)
        return rt_fail(err, GNNC_E_ARG, "sampling needs a fan-out per hop and edge type");
    if (spec->temporal && !spec->how.disjoint)
        return rt_fail(err, GNNC_E_ARG,
                       "temporal sampling must be disjoint: seeds of other times share no node");
    if (spec->how.pick == RT_PICK_RECENT && !spec->temporal)
        return rt_fail(err, GNNC_E_ARG, "the most recent neighbours need temporal sampling");
    for (int t = 0; t < g->n_types; t++)
        if (g->type[t].n < 0 || g->type[t].n > INT32_MAX)
            return rt_fail(err, GNNC_E_RANGE, "sampling: %lld nodes '%s': ids have 31 bits",
                           (long long)g->type[t].n, g->type[t].name);
    for (int r = 0; r < g->n_rels && st == GNNC_OK; r++) st = check_rel(g, spec, r, err);
    return st;
}

/* ---- life ------------------------------------------------------------------------------ */
/* Copies the tables of types and relations; the arrays that they point to are shared. */
static void copy_graph(RtSampler *s, const RtSampleGraph *g) {
    memcpy(s->type, g->type, (size_t)g->n_types * sizeof *s->type);
    if (g->n_rels) memcpy(s->rel, g->rel, (size_t)g->n_rels * sizeof *s->rel);
    s->g = (RtSampleGraph){g->n_types, g->n_rels, s->type, s->rel};
}

/* Makes the sampler's tables, and copies of the graph's tables and the fan-outs, which may go then;
 * edges stay where they are. False: no memory. */
static bool copy_tables(RtSampler *s, const RtSampleGraph *g, const RtSampleSpec *spec) {
    RtPool *pool = &s->pool;
    int64_t n_fanouts = (int64_t)spec->how.n_hops * g->n_rels;
    RtSampleType *type = RT_NEWN(pool, RtSampleType, g->n_types);
    RtSampleRel *rel = RT_NEWN(pool, RtSampleRel, g->n_rels);
    int32_t *fanout = RT_NEWN(pool, int32_t, n_fanouts);
    s->src_type = RT_NEWN(pool, int, g->n_rels);
    s->picker = RT_NEWN(pool, RtPicker, g->n_rels);
    s->ids = RT_NEWN(pool, RtIds, g->n_types);
    s->hidden = RT_NEWN(pool, RtHidden, g->n_types);
    s->part_id = RT_NEWN(pool, RtGrow, g->n_types);
    s->part_tree = RT_NEWN(pool, RtGrow, g->n_types);
    s->scratch = RT_NEWN(pool, RtGrow, s->n_threads);
    if (!type || !rel || !fanout || !s->src_type || !s->picker || !s->ids || !s->hidden ||
        !s->part_id || !s->part_tree || !s->scratch)
        return false;
    if (n_fanouts) memcpy(fanout, spec->fanout, (size_t)n_fanouts * sizeof *fanout);
    for (int r = 0; r < g->n_rels; r++) s->src_type[r] = g->rel[r].src_type;
    s->type = type;
    s->rel = rel;
    copy_graph(s, g);
    s->spec = *spec;
    s->n_hops = spec->how.n_hops;
    s->spec.fanout = fanout;
    return true;
}

gnnc_status rt_sampler_read(RtSampler *s, const RtSampleGraph *g, RtError *err) {
    bool same = g->n_types == s->g.n_types && g->n_rels == s->g.n_rels;
    if (!same) return rt_fail(err, GNNC_E_ARG, "a graph of another sampler");
    gnnc_status st = check_all(g, &s->spec, s->n_threads, err);
    if (st == GNNC_OK) copy_graph(s, g);
    return st;
}

gnnc_status rt_sampler_new(RtSampler **out, const RtAlloc *from, const RtSampleGraph *g,
                           const RtSampleSpec *spec, RtTeam *team, int n_threads, RtError *err) {
    RtPool pool;
    *out = NULL;
    gnnc_status st = check_all(g, spec, n_threads, err);
    if (st != GNNC_OK) return st;
    rt_pool_init(&pool, from);
    RtSampler *s = RT_NEW(&pool, RtSampler); /* inside its own pool */
    if (!s) return rt_fail_nomem(err, "a sampler");
    s->pool = pool;
    s->growth = (RtGrowth){.from = pool.from, .roomy = true};
    s->team = team;
    s->n_threads = n_threads;
    if (!copy_tables(s, g, spec)) {
        s->g.n_types = 0;
        rt_sampler_free(s);
        return rt_fail_nomem(err, "a sampler");
    }
    for (int t = 0; t < g->n_types && st == GNNC_OK; t++)
        st = rt_ids_init(&s->ids[t], &s->growth, n_threads, err);
    if (st == GNNC_OK)
        *out = s;
    else
        rt_sampler_free(s);
    return st;
}

void rt_sampler_use(RtSampler *s, RtTeam *team, int n_members) {
    s->team = n_members <= s->n_threads ? team : NULL;
}

void rt_sampler_hops(RtSampler *s, int n_hops) {
    s->n_hops = n_hops;
}

void rt_sampler_free(RtSampler *s) {
    if (!s) return;
    RtGrowth *g = &s->growth;
    RtGrow *all[] = {&s->chunk_buf,   &s->node_buf,    &s->pos_buf,     &s->slot_buf,
                     &s->pair_buf[0], &s->pair_buf[1], &s->pair_buf[2], &s->tree_time_buf};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) rt_grow_free(g, all[i]);
    for (int t = 0; t < s->g.n_types; t++) {
        rt_grow_free(g, &s->ids[t].buf);
        rt_grow_free(g, &s->hidden[t].ptr_buf);
        rt_grow_free(g, &s->hidden[t].src_buf);
        rt_grow_free(g, &s->part_id[t]);
        rt_grow_free(g, &s->part_tree[t]);
    }
    for (int m = 0; s->scratch && m < s->n_threads; m++) rt_grow_free(g, &s->scratch[m]);
    RtPool pool = s->pool; /* s itself goes away with it */
    rt_pool_free(&pool);
}

gnnc_status rt_sampler_batch(const RtSampler *s, RtBatch **out, RtError *err) {
    return rt_batch_new(out, &s->growth.from, s->g.n_types, s->g.n_rels, s->spec.how.n_hops, err);
}

RtSampleCounters rt_sampler_counters(const RtSampler *s) {
    return (RtSampleCounters){s->n_batches, s->growth.n_grown, s->growth.held_bytes};
}

/* ---- the course of a batch -------- */
/* Empties the batch; memory stays. */
static void clear(const RtSampler *s, RtBatch *b) {
    size_t n_ends = (size_t)b->n_hops + 1;
    for (int t = 0; t < b->n_types; t++) {
        b->nodes[t].n = 0;
        b->nodes[t].tree = NULL;
        memset(b->nodes[t].end, 0, n_ends * sizeof(int64_t));
    }
    for (int r = 0; r < b->n_rels; r++) {
        RtBatchEdges *e = &b->edges[r];
        e->n = 0;
        e->ptr = NULL;
        e->by_src = (RtGroups){0};
        e->id_bound = s->g.rel[r].id_bound;
        memset(e->end, 0, n_ends * sizeof(int64_t));
    }
    b->n_groups = 0;
}

/* Begins a batch: no node has a number yet. In the epoch in which it is first used its buffers take
 * room to grow. */
static void begin(RtSampler *s, RtBatch *b, const RtSampleAt *at) {
    if (b->first_epoch == 0) b->first_epoch = at->epoch + 1;
    b->growth.roomy = s->growth.roomy = b->first_epoch == at->epoch + 1;
    b->number = (int64_t)at->batch;
    b->by_hop = s->spec.how.edges == RT_EDGES_DIRECTIONAL;
    for (int t = 0; t < s->g.n_types; t++) {
        s->ids[t].roomy = s->growth.roomy;
        rt_ids_begin(&s->ids[t]);
    }
    s->n_trees = 0;
    s->tree_key = NULL;
}

/* Is seed i a node of its type? */
static gnnc_status check_seed(const RtSampler *s, const RtSeeds *g, int64_t i, RtError *err) {
    if (g->id[i] < 0 || g->id[i] >= s->g.type[g->type].n)
        return rt_fail(err, GNNC_E_RANGE, "seed %lld: %d is no '%s' node: there are %lld",
                       (long long)i, g->id[i], s->g.type[g->type].name,
                       (long long)s->g.type[g->type].n);
    if (!g->tree || g->tree[i] >= 0) return GNNC_OK;
    return rt_fail(err, GNNC_E_RANGE, "seed %lld: tree %d", (long long)i, g->tree[i]);
}

/* Seeds of one tree have one time: that of the last of them. */
static gnnc_status keep_times(RtSampler *s, const RtSeeds *g, RtError *err) {
    int64_t n = s->n_trees;
    if (!s->spec.temporal) return GNNC_OK;
    if (!g->time && g->n)
        return rt_fail(err, GNNC_E_ARG, "temporal sampling needs the times of the seeds");
    for (int64_t i = 0; i < g->n; i++) {
        int64_t tree = g->tree ? g->tree[i] : i;
        if (tree >= n) n = tree + 1;
    }
    gnnc_status st =
        rt_grow(&s->growth, &s->tree_time_buf, n, sizeof *s->tree_time, s->n_trees, err);
    if (st != GNNC_OK) return st;
    s->tree_time = s->tree_time_buf.p;
    for (int64_t i = s->n_trees; i < n; i++) s->tree_time[i] = NAN;
    s->n_trees = n;
    for (int64_t i = 0; i < g->n; i++) s->tree_time[g->tree ? g->tree[i] : i] = g->time[i];
    return GNNC_OK;
}

/* Adds a group of seeds as the batch's first nodes, and writes the local number of each. In a
 * disjoint batch each seed has a tree, by default one of its own. */
static gnnc_status add_group(RtSampler *s, RtBatch *b, const RtSeeds *g, int group, RtError *err) {
    gnnc_status st = GNNC_OK;
    if (g->type < 0 || g->type >= s->g.n_types || g->n < 0 || g->n > INT32_MAX)
        return rt_fail(err, GNNC_E_RANGE, "seeds of a node type that is none");
    for (int64_t i = 0; i < g->n && st == GNNC_OK; i++) st = check_seed(s, g, i, err);
    if (st == GNNC_OK) st = keep_times(s, g, err);
    if (st == GNNC_OK)
        st = rt_nodes_reserve(b, g->type, b->nodes[g->type].n + g->n, s->spec.how.disjoint, err);
    if (st == GNNC_OK) st = rt_grow(&b->growth, &b->seed_buf[group], g->n, sizeof(int32_t), 0, err);
    if (st != GNNC_OK) return st;
    int32_t *local = b->seed[group] = b->seed_buf[group].p;
    b->n_seeds[group] = g->n;
    b->n_groups = group + 1;
    for (int64_t i = 0; i < g->n && st == GNNC_OK; i++) {
        int32_t tree = !s->spec.how.disjoint ? 0 : g->tree ? g->tree[i] : (int32_t)i;
        st = rt_ids_add(&s->ids[g->type], b, &s->growth, g->type, tree, g->id[i], &local[i], err);
    }
    return st;
}

/* Nodes and edges of hops up to h are all there are now. */
static void close_hop(RtBatch *b, int h, int n_hops) {
    for (int t = 0; t < b->n_types; t++) b->nodes[t].end[h] = b->nodes[t].n;
    for (int r = 0; r < b->n_rels; r++) {
        if (h > 0) b->edges[r].end[h - 1] = b->edges[r].n;
        b->edges[r].end[n_hops] = b->edges[r].n;
    }
}

/* Destinations that no hop expanded have no edges: pads the row pointers for them. The first `from`
 * rows have theirs. */
static gnnc_status pad_ptrs(RtSampler *s, RtBatch *b, RtError *err) {
    for (int r = 0; r < b->n_rels; r++) {
        RtBatchEdges *e = &b->edges[r];
        int64_t have = e->ptr ? e->by_src.n_groups : 1, n = b->nodes[s->g.rel[r].dst_type].n;
        gnnc_status st = rt_edges_open(b, r, n, err);
        if (st == GNNC_OK) st = rt_edges_reserve(s, b, r, e->n, err);
        if (st != GNNC_OK) return st;
        for (int64_t d = have; d <= n; d++) e->ptr[d] = e->n;
        e->by_src.n_groups = 0;
    }
    return GNNC_OK;
}

/* Edges into nodes of hops up to h, where they were not made hop by hop. */
static void close_ends(const RtSampler *s, RtBatch *b) {
    for (int r = 0; r < b->n_rels; r++)
        for (int h = 0; h <= b->n_hops; h++)
            b->edges[r].end[h] = b->edges[r].ptr[b->nodes[s->g.rel[r].dst_type].end[h]];
}

/* Draws a batch: seeds, then hop by hop, and then the edges that batches with edges back or induced
 * ones have beside the drawn ones. */
static gnnc_status run(RtSampler *s, const RtSampleAt *at, const RtSeeds *groups, int n_groups,
                       RtBatch *b, RtError *err) {
    gnnc_status st = GNNC_OK;
    for (int i = 0; i < n_groups && st == GNNC_OK; i++) st = add_group(s, b, &groups[i], i, err);
    if (st != GNNC_OK) goto out;
    close_hop(b, 0, s->spec.how.n_hops);
    TRY(st, rt_sample_hide(s, b, groups, n_groups, err));
    for (int h = 0; h < s->spec.how.n_hops; h++) {
        if (h < s->n_hops) TRY(st, rt_sample_hop(s, b, at, h, err));
        close_hop(b, h + 1, s->spec.how.n_hops);
    }
    TRY(st, pad_ptrs(s, b, err));
    if (s->spec.how.edges == RT_EDGES_INDUCED) TRY(st, rt_sample_induce(s, b, err));
    if (s->spec.how.edges == RT_EDGES_BIDIRECTIONAL) TRY(st, rt_sample_bidirectional(s, b, err));
    close_ends(s, b);
    if (s->spec.transpose) TRY(st, rt_batch_transpose(b, s->src_type, s->team, err));
    if (s->spec.check && s->spec.temporal) st = rt_sample_check(&s->g, s->tree_time, b, err);
out:
    return st;
}

gnnc_status rt_sample_groups(RtSampler *s, const RtSampleAt *at, const RtSeeds *groups,
                             int n_groups, RtBatch *b, RtError *err) {
    int most = s->g.n_types > 2 ? s->g.n_types : 2;
    if (b->n_types != s->g.n_types || b->n_rels != s->g.n_rels || b->n_hops != s->spec.how.n_hops ||
        n_groups < 0 || n_groups > most)
        return rt_fail(err, GNNC_E_ARG, "a batch of another sampler");
    clear(s, b);
    begin(s, b, at);
    if (n_groups && s->spec.how.disjoint) s->tree_key = groups->key;
    gnnc_status st = run(s, at, groups, n_groups, b, err);
    if (st != GNNC_OK) clear(s, b);
    s->n_batches += st == GNNC_OK;
    return st;
}

gnnc_status rt_sample_nodes(RtSampler *s, const RtSampleAt *at, const RtSeeds *seeds, RtBatch *b,
                            RtError *err) {
    return rt_sample_groups(s, at, seeds, 1, b, err);
}

void rt_sample_shuffle(uint64_t seed, uint64_t epoch, int32_t *order, int64_t n) {
    rt_sample_shuffle_part(seed, epoch, 0, order, n);
}

void rt_sample_shuffle_part(uint64_t seed, uint64_t epoch, uint32_t part, int32_t *order,
                            int64_t n) {
    uint64_t state = rt_draw_state(rt_draw_key(seed, epoch, 0, RT_DRAW_ORDER), part, 0);
    for (int64_t i = n; i-- > 1;) {
        int64_t k = rt_draw_below(state, (uint64_t)i, i + 1);
        int32_t swap = order[i];
        order[i] = order[k];
        order[k] = swap;
    }
}
