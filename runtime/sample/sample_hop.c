/* One hop: for every node of the frontier and every relation into its type, which edges,
 * then numbers for their sources.
 *
 * The frontier of all relations is cut into chunks of consecutive nodes; members take
 * chunks, whatever relation they belong to.  Between the rounds the caller adds up the
 * chunks' counts, so each chunk knows where its results belong before it writes them:
 *
 *   bound    how many edges at most         ->  where picked edges are staged
 *   pick     positions and sources, staged  ->  where edges go
 *   number   (tree, source) into the table, each member the keys of its own shards, in
 *            the order of staging: so the first to come is known without an agreement
 *   count    of those that came first       ->  their numbers
 *   name     the new nodes
 *   emit     the edges, sources numbered
 *
 * Edges thus come sorted by destination; chunks, places and numbers depend on the
 * batch alone. */
#include "sample_impl.h"

enum {
    CHUNK = 256,  /* nodes of the frontier */
    ALONE = 2000, /* fewer staged entries than this are not worth waking others */
    BLOCK = 64,   /* entries whose slots are asked for together */
    AHEAD = 12,   /* nodes whose edges are asked for before they are drawn */
};
#define FIRST 0x80000000u

/* ---- rounds -------------------------------------------------------------------------- */
typedef struct {
    RtSampler *s;
    RtBatch *b;
    rt_chunk_fn *fn;
    _Atomic int64_t next;
} Round;

/* A member of the team takes chunks until none is left. Chunks differ in work, so they are not
 * divided beforehand. */
static void take_chunks(void *arg, int member, int n_members) {
    Round *r = arg;
    (void)n_members;
    for (;;) {
        int64_t c = atomic_fetch_add_explicit(&r->next, 1, memory_order_relaxed);
        if (c >= r->s->n_chunks) return;
        r->fn(r->s, r->b, &r->s->chunk[c], member);
    }
}

void rt_sample_each(RtSampler *s, RtBatch *b, bool alone, rt_chunk_fn *fn) {
    Round r = {.s = s, .b = b, .fn = fn};
    rt_team_run(alone || s->n_chunks < 2 ? NULL : s->team, take_chunks, &r);
}

/* Cuts the nodes [lo, hi) of the relation's destinations into chunks of work. */
gnnc_status rt_sample_push_chunks(RtSampler *s, int rel, int64_t lo, int64_t hi, RtError *err) {
    int64_t n = s->n_chunks + (hi - lo + CHUNK - 1) / CHUNK;
    gnnc_status st = rt_grow(&s->growth, &s->chunk_buf, n, sizeof(RtChunk), s->n_chunks, err);
    if (st != GNNC_OK) return st;
    s->chunk = s->chunk_buf.p;
    for (; lo < hi; lo += CHUNK)
        s->chunk[s->n_chunks++] =
            (RtChunk){.rel = rel, .lo = lo, .hi = hi - lo < CHUNK ? hi : lo + CHUNK};
    return GNNC_OK;
}

/* ---- bound ------------------------------------------------------------------------------ */
/* Bounds the edges that the chunk can draw, and the longest row that it must scan, so that there is
 * room. */
static void bound(RtSampler *s, RtBatch *b, RtChunk *c, int member) {
    const RtPicker *p = &s->picker[c->rel];
    const RtSampleRel *r = p->rel;
    const int32_t *id = b->nodes[r->dst_type].id;
    bool scans = rt_picker_scans(p);
    (void)member;
    c->n_most = c->longest = 0;
    for (int64_t d = c->lo; d < c->hi; d++) {
        if (d + AHEAD < c->hi) __builtin_prefetch(&r->ptr[id[d + AHEAD]]);
        int64_t n = r->ptr[id[d] + 1] - r->ptr[id[d]];
        if (n > c->longest && (scans || rt_hides(s, c->rel, d))) c->longest = n;
        bool all = p->fanout < 0 || (n <= p->fanout && !p->replace);
        c->n_most += all ? n : n ? p->fanout : 0;
    }
}

static gnnc_status too_many(int64_t n, RtError *err) {
    return rt_fail(err, GNNC_E_RANGE,
                   "a batch with a hop of %lld edges: at most 2^31 - 1 are possible", (long long)n);
}

/* Room for what may be picked: staged entries, and scratch where edges are scanned. */
static gnnc_status make_room(RtSampler *s, RtError *err) {
    int64_t n = 0, longest = 0;
    gnnc_status st;
    for (int64_t i = 0; i < s->n_chunks; i++) {
        RtChunk *c = &s->chunk[i];
        c->at = n;
        n += c->n_most;
        if (n > INT32_MAX) return too_many(n, err);
        if (c->longest > longest) longest = c->longest;
    }
    TRY(st, rt_grow(&s->growth, &s->node_buf, n, sizeof *s->node, 0, err));
    TRY(st, rt_grow(&s->growth, &s->pos_buf, n, sizeof *s->pos, 0, err));
    TRY(st, rt_grow(&s->growth, &s->slot_buf, n, sizeof *s->slot, 0, err));
    for (int m = 0; m < s->n_threads; m++)
        TRY(st, rt_grow(&s->growth, &s->scratch[m], longest, sizeof(RtScored), 0, err));
    s->node = s->node_buf.p;
    s->pos = s->pos_buf.p;
    s->slot = s->slot_buf.p;
    s->n_staged = n;
out:
    return st;
}

/* ---- pick --------------------------------------------------------------------------------- */
/* The number of edges of destination d stays in the relation's ptr[d + 1] until emit. */
static void pick(RtSampler *s, RtBatch *b, RtChunk *c, int member) {
    const RtPicker *p = &s->picker[c->rel];
    const RtSampleRel *r = p->rel;
    const RtBatchNodes *nodes = &b->nodes[r->dst_type];
    int64_t *count = b->edges[c->rel].ptr + 1, at = c->at;
    for (int64_t d = c->lo; d < c->hi; d++) {
        if (d + AHEAD < c->hi) __builtin_prefetch(&r->src[r->ptr[nodes->id[d + AHEAD]]]);
        int32_t v = nodes->id[d], tree = rt_tree_of(b, r->dst_type, d);
        if (s->tree_key) tree = s->tree_key[tree];
        uint64_t state = rt_draw_state(p->key, (uint32_t)tree, (uint32_t)v);
        bool hides = rt_hides(s, c->rel, d);
        RtPicker own;
        if (hides) own = rt_picker_at(s, c->rel, d);
        count[d] = rt_pick(hides ? &own : p, r->ptr[v], r->ptr[v + 1], state,
                           rt_time_of(s, b, r->dst_type, d), s->scratch[member].p, s->pos + at);
        for (int64_t i = at; i < at + count[d]; i++) s->node[i] = r->src[s->pos[i]];
        at += count[d];
    }
    c->n = at - c->at;
}

/* ---- number ---------------------------------------------------------------------------------- */
typedef struct {
    RtSampler *s;
    RtBatch *b;
    atomic_bool full; /* of some shard */
} Numbering;

/* Entry i is (tree, node); -1: the shard has no room. */
static int64_t claim(RtIds *t, uint64_t key, uint64_t hash, int shard) {
    int64_t at = rt_ids_slot(t, key, hash);
    RtIdSlot *slot = &t->slot[at];
    if (slot->stamp == t->stamp) return at;
    if (!rt_ids_may_add(t, shard)) return -1;
    *slot = (RtIdSlot){key, -1, t->stamp};
    t->fill[shard]++;
    return at | FIRST;
}

/* Numbers the keys of the block that lie in the member's shards: slot[i] gets the place in the
 * table. Table lines are asked for first, as each is likely to be far away. False: a shard is
 * full. */
static bool number_block(RtIds *t, const uint64_t *key, int64_t n, uint32_t *slot, int member,
                         int n_members) {
    uint64_t hash[BLOCK];
    for (int64_t i = 0; i < n; i++) {
        hash[i] = rt_splitmix64(key[i]);
        int shard = rt_ids_shard(t, hash[i]);
        if (n_members > 1 && shard % n_members != member) continue;
        __builtin_prefetch(&t->slot[shard * t->region + ((int64_t)hash[i] & (t->region - 1))], 1);
    }
    for (int64_t i = 0; i < n; i++) {
        int shard = rt_ids_shard(t, hash[i]);
        if (n_members > 1 && shard % n_members != member) continue;
        int64_t at = claim(t, key[i], hash[i], shard);
        if (at < 0) return false;
        slot[i] = (uint32_t)at;
    }
    return true;
}

/* Keys of staged entries [from, from + n) of a chunk; *d is the destination they start in,
 * *left how many of its edges are still to come. */
static void keys_of(const RtSampler *s, const RtBatch *b, const RtChunk *c, int64_t from, int64_t n,
                    int64_t *d, int64_t *left, uint64_t *key) {
    int type = s->g.rel[c->rel].dst_type;
    const int64_t *count = b->edges[c->rel].ptr + 1;
    for (int64_t i = 0; i < n; i++) {
        if (!b->nodes[type].tree) {
            key[i] = (uint32_t)s->node[from + i];
            continue;
        }
        while (*left == 0) *left = count[++*d];
        --*left;
        key[i] = rt_ids_key(b->nodes[type].tree[*d], s->node[from + i]);
    }
}

/* Finds or makes the batch's number for each node that the chunk drew. A member numbers the nodes
 * of its own shard of the table, so that no lock is needed. False: the shard is full. */
static bool number_chunk(Numbering *nb, const RtChunk *c, int member, int n_members) {
    RtSampler *s = nb->s;
    RtIds *t = &s->ids[s->src_type[c->rel]];
    int64_t d = c->lo - 1, left = 0;
    uint64_t key[BLOCK];
    for (int64_t i = c->at; i < c->at + c->n; i += BLOCK) {
        int64_t n = c->at + c->n - i < BLOCK ? c->at + c->n - i : BLOCK;
        keys_of(s, nb->b, c, i, n, &d, &left, key);
        if (!number_block(t, key, n, s->slot + i, member, n_members)) return false;
    }
    return true;
}

/* A member numbers the nodes of its shards in all chunks, until some shard is full. */
static void number_share(void *arg, int member, int n_members) {
    Numbering *nb = arg;
    for (int64_t i = 0; i < nb->s->n_chunks; i++) {
        if (atomic_load_explicit(&nb->full, memory_order_relaxed)) return;
        if (number_chunk(nb, &nb->s->chunk[i], member, n_members)) continue;
        atomic_store(&nb->s->ids[nb->s->src_type[nb->s->chunk[i].rel]].full, true);
        atomic_store(&nb->full, true);
    }
}

/* Numbers the nodes of all chunks. A full shard gives its table more room, and the round is
 * repeated. */
static gnnc_status number(RtSampler *s, RtBatch *b, bool alone, RtError *err) {
    for (;;) {
        Numbering nb = {.s = s, .b = b};
        rt_team_run(alone ? NULL : s->team, number_share, &nb);
        if (!atomic_load(&nb.full)) return GNNC_OK;
        for (int t = 0; t < s->g.n_types; t++) {
            int64_t coming = 0;
            for (int64_t i = 0; i < s->n_chunks; i++)
                coming += s->src_type[s->chunk[i].rel] == t ? s->chunk[i].n : 0;
            if (coming == 0) continue;
            gnnc_status st = rt_ids_reserve(&s->ids[t], &s->growth, &b->nodes[t], coming, err);
            if (st != GNNC_OK) return st;
        }
    }
}

/* ---- count, name -------- */
/* Counts the nodes that the chunk met first. */
static void count_new(RtSampler *s, RtBatch *b, RtChunk *c, int member) {
    uint32_t n = 0;
    (void)b, (void)member;
    for (int64_t i = c->at; i < c->at + c->n; i++) n += s->slot[i] >> 31;
    c->n_new = n;
}

/* Gives the nodes that the chunk met first their local numbers, from c->new_at on, and writes them
 * into the batch. */
static void name_new(RtSampler *s, RtBatch *b, RtChunk *c, int member) {
    int type = s->src_type[c->rel];
    RtBatchNodes *nodes = &b->nodes[type];
    RtIdSlot *table = s->ids[type].slot;
    int64_t next = c->new_at;
    (void)member;
    for (int64_t i = c->at; i < c->at + c->n; i++) {
        if (!(s->slot[i] & FIRST)) continue;
        RtIdSlot *slot = &table[s->slot[i] & ~FIRST];
        nodes->id[next] = s->node[i];
        if (nodes->tree) nodes->tree[next] = (int32_t)(slot->key >> 32);
        slot->local = (int32_t)next++;
    }
}

/* Gives each chunk the place of its new nodes: types and chunks in order, so that numbers do not
 * depend on the number of threads. */
static gnnc_status place_new(RtSampler *s, RtBatch *b, RtError *err) {
    for (int t = 0; t < s->g.n_types; t++) {
        int64_t n = b->nodes[t].n;
        for (int64_t i = 0; i < s->n_chunks; i++) {
            RtChunk *c = &s->chunk[i];
            if (s->src_type[c->rel] != t) continue;
            c->new_at = n;
            n += c->n_new;
        }
        gnnc_status st = rt_nodes_reserve(b, t, n, s->spec.how.disjoint, err);
        if (st != GNNC_OK) return st;
        b->nodes[t].n = n;
    }
    return GNNC_OK;
}

/* ---- emit -------- */
/* Writes the chunk's edges into the batch, their sources by local number. */
static void emit(RtSampler *s, RtBatch *b, RtChunk *c, int member) {
    const RtSampleRel *r = &s->g.rel[c->rel];
    RtBatchEdges *e = &b->edges[c->rel];
    const RtIdSlot *table = s->ids[r->src_type].slot;
    int64_t from = c->at, at = c->out_at;
    (void)member;
    for (int64_t d = c->lo; d < c->hi; d++) {
        int64_t end = at + e->ptr[d + 1];
        for (; at < end; at++, from++)
            rt_edge_put(r, e, at, table[s->slot[from] & ~FIRST].local, d, s->pos[from]);
        e->ptr[d + 1] = at;
    }
}

/* Gives each chunk the place of its edges in their relation, and makes room for them. */
static gnnc_status place_edges(RtSampler *s, RtBatch *b, RtError *err) {
    for (int64_t i = 0; i < s->n_chunks; i++) {
        RtChunk *c = &s->chunk[i];
        RtBatchEdges *e = &b->edges[c->rel];
        c->out_at = e->n;
        e->n += c->n;
        bool last = i + 1 == s->n_chunks || s->chunk[i + 1].rel != c->rel;
        gnnc_status st = last ? rt_edges_reserve(s, b, c->rel, e->n, err) : GNNC_OK;
        if (st != GNNC_OK) return st;
    }
    return GNNC_OK;
}

/* ---- the hop -------- */
/* Begins a hop: sets up what picks neighbours, and divides the destinations into chunks of work. */
static gnnc_status begin_hop(RtSampler *s, RtBatch *b, const RtSampleAt *at, int hop,
                             RtError *err) {
    gnnc_status st = GNNC_OK;
    s->n_chunks = 0;
    for (int r = 0; r < s->g.n_rels && st == GNNC_OK; r++) {
        const RtBatchNodes *to = &b->nodes[s->g.rel[r].dst_type];
        int64_t fanout = s->spec.fanout[hop * s->g.n_rels + r];
        uint64_t stream = RT_DRAW_HOP + (uint64_t)hop * (uint64_t)s->g.n_rels + (uint64_t)r;
        s->picker[r] = rt_picker(&s->g, &s->spec, r, hop == 0 && s->g.rel[r].own, fanout,
                                 rt_draw_key(at->seed, at->epoch, at->batch, stream));
        st = rt_edges_open(b, r, to->end[hop], err);
        if (st == GNNC_OK)
            st = rt_sample_push_chunks(s, r, hop ? to->end[hop - 1] : 0, to->end[hop], err);
    }
    return st;
}

gnnc_status rt_sample_hop(RtSampler *s, RtBatch *b, const RtSampleAt *at, int hop, RtError *err) {
    gnnc_status st;
    TRY(st, begin_hop(s, b, at, hop, err));
    rt_sample_each(s, b, s->n_chunks < 4, bound);
    TRY(st, make_room(s, err));
    bool alone = s->n_staged < ALONE;
    rt_sample_each(s, b, alone, pick);
    TRY(st, number(s, b, alone, err));
    rt_sample_each(s, b, alone, count_new);
    TRY(st, place_new(s, b, err));
    rt_sample_each(s, b, alone, name_new);
    TRY(st, place_edges(s, b, err));
    rt_sample_each(s, b, alone, emit);
out:
    return st;
}

/* ---- room in a batch -------- */
/* Makes room for n nodes of the type, keeping those that are there; trees: with the tree of
 * each. */
gnnc_status rt_nodes_reserve(RtBatch *b, int type, int64_t n, bool trees, RtError *err) {
    RtBatchNodes *v = &b->nodes[type];
    gnnc_status st;
    if (n > INT32_MAX)
        return rt_fail(err, GNNC_E_RANGE, "a batch of %lld nodes: at most 2^31 - 1 are possible",
                       (long long)n);
    TRY(st, rt_grow(&b->growth, &v->id_buf, n, sizeof *v->id, v->n, err));
    v->id = v->id_buf.p;
    if (!trees) goto out;
    TRY(st, rt_grow(&b->growth, &v->tree_buf, n, sizeof *v->tree, v->n, err));
    v->tree = v->tree_buf.p;
out:
    return st;
}

gnnc_status rt_edges_open(RtBatch *b, int rel, int64_t n_dst, RtError *err) {
    RtBatchEdges *e = &b->edges[rel];
    int64_t have = b->edges[rel].ptr ? e->by_src.n_groups : 0; /* until grouped: bounds in ptr */
    gnnc_status st = rt_grow(&b->growth, &e->ptr_buf, n_dst + 1, sizeof *e->ptr, have, err);
    if (st != GNNC_OK) return st;
    e->ptr = e->ptr_buf.p;
    e->by_src.n_groups = n_dst + 1;
    e->ptr[0] = 0;
    return GNNC_OK;
}

/* Makes room for n edges of the relation, keeping those of earlier hops. */
gnnc_status rt_edges_reserve(const RtSampler *s, RtBatch *b, int rel, int64_t n, RtError *err) {
    RtBatchEdges *e = &b->edges[rel];
    const RtSampleRel *r = &s->g.rel[rel];
    gnnc_status st;
    if (n > INT32_MAX)
        return rt_fail(err, GNNC_E_RANGE, "a batch of %lld edges: at most 2^31 - 1 are possible",
                       (long long)n);
    int64_t have = e->end[s->spec.how.n_hops]; /* emitted by earlier hops */
    TRY(st, rt_grow(&b->growth, &e->src_buf, n, sizeof *e->src, have, err));
    TRY(st, rt_grow(&b->growth, &e->dst_buf, n, sizeof *e->dst, have, err));
    TRY(st, rt_grow(&b->growth, &e->pos_buf, n, sizeof *e->pos, have, err));
    e->src = e->src_buf.p;
    e->dst = e->dst_buf.p;
    e->pos = e->pos_buf.p;
    e->id = NULL;
    if (!r->id && !r->wide) goto out;
    TRY(st, rt_grow(&b->growth, &e->id_buf, n, sizeof *e->id, have, err));
    e->id = e->id_buf.p;
out:
    return st;
}
