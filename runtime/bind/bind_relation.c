/* Relations of the program: those of the data's edges, and those derived from them, counted before
 * there are arrays and then built as soon as what they are made of is there. */
#include "bind.h"

#include "runtime/device/device_maps.h"
#include "runtime/device/device.h"

int64_t rt_bind_row(const rt_program *p, const RtRelation *rel, int space, int64_t e, int *table) {
    for (;;) {
        const rt_space *s = &p->spaces[space];
        const RtRelation *r = &rel[space];
        int half = s->rel == RT_REL_UNION && rt_edge_orig(r, 0, e) < 0;
        *table = space;
        e = rt_edge_orig(r, half, e);
        if (s->rel == RT_REL_BASE || e < 0) return e;
        space = s->base[half];
    }
}

/* ---- one relation ---------------------------------------------------------------- */
/* Is it made of rows of a batch, and is there none yet? */
static bool waits_for_batch(const RtExec *x, int space) {
    const rt_space *s = &x->program->spaces[space];
    if (s->first) return !x->rt->bound->rel[space].ptr;
    for (int k = 0; k < 2; k++)
        if (s->base[k] >= 0 && waits_for_batch(x, s->base[k])) return true;
    return false;
}

/* Random numbers of a loop are those of its node before the data were partitioned. */
static void key_loops(const RtTable *nodes, const RtRelation *base, const RtRelation *r) {
    int32_t *id = (int32_t *)(uintptr_t)r->id; /* just made */
    for (int64_t e = 0; nodes->part_rows && e < r->n_edges; e++)
        if (id[e] >= base->id_bound)
            id[e] = (int32_t)(base->id_bound + nodes->part_rows[id[e] - base->id_bound]);
}

/* Neither parts nor a GPU number edges in 64 bits. */
static gnnc_status check_wide(RtExec *x, int space, const RtRelation *r) {
    const char *why = x->rt->device          ? "a GPU numbers"
                      : x->program->by_parts ? "data in parts number"
                                             : NULL;
    if (!r->wide || !why) return GNNC_OK;
    return rt_fail(&x->rt->err, GNNC_E_RANGE, "edge type '%s': %lld edges, and %s at most 2^31 - 1",
                   x->program->spaces[space].name, (long long)r->n_edges, why);
}

/* Makes a relation: of the data's edges, or of the relations it is derived from, which are
 * built. */
static gnnc_status derive(RtExec *x, int space, RtRelation *out) {
    const rt_space *s = &x->program->spaces[space];
    RtBound *b = x->rt->bound;
    RtPool *pool = &x->rt->pool;
    const RtRelation *base = s->base[0] >= 0 ? &b->rel[s->base[0]] : NULL;
    const RtTable *t = b->table[space];
    if (waits_for_batch(x, space)) /* its index arrays are as long as its ends say */
        return rt_relation_base(pool, rt_size(x->program, x->n, s->src),
                                rt_size(x->program, x->n, s->dst), 0, NULL, NULL, out, &x->rt->err);
    switch (s->rel) {
    case RT_REL_BASE:
        return rt_relation_base(pool, b->table[s->src]->count, b->table[s->dst]->count, t->count,
                                t->src, t->dst, out, &x->rt->err);
    case RT_REL_SELF_LOOPS: {
        gnnc_status st = rt_relation_self_loops(pool, base, out, &x->rt->err);
        if (st == GNNC_OK && x->program->by_parts && !out->wide)
            key_loops(b->table[s->dst], base, out);
        return st;
    }
    case RT_REL_NO_LOOPS:
        return rt_relation_no_loops(pool, base, out, &x->rt->err);
    case RT_REL_REVERSE:
        return rt_relation_reverse(pool, base, out, &x->rt->err);
    case RT_REL_UNDIRECTED:
        return rt_relation_undirected(pool, base, out, &x->rt->err);
    case RT_REL_UNION:
        return rt_relation_union(pool, base, &b->rel[s->base[1]], out, &x->rt->err);
    case RT_REL_WHERE:
        return rt_relation_where(pool, base, x->buf[s->cond_buf], out, &x->rt->err);
    default:
        return GNNC_E_ARG; /* drawn, not derived */
    }
}

/* Can the relation be made: not done yet, while all that it is made of is? */
static bool is_next(const rt_program *p, const bool *done, int space) {
    const rt_space *s = &p->spaces[space];
    if (s->kind != RT_SP_EDGE || s->first || done[space]) return false;
    for (int k = 0; k < 2; k++)
        if (s->base[k] >= 0 && !done[s->base[k]]) return false;
    return true;
}

bool rt_bind_drawn_from(const rt_program *p, int space) {
    return p->sampling.train_links || p->spaces[space].of_batch ||
           (p->sampling.batch && p->spaces[space].sampled);
}

/* Makes a relation on the device, with what the host reads of it, or on the host; to compare, on
 * both. */
static gnnc_status derive_where(RtExec *x, int space, RtRelation *out) {
    RtDeviceMaps *m = rt_device_maps(x);
    gnnc_status st = m ? rt_device_relation(m, space, out) : GNNC_OK;
    if (m && rt_device_maps_fall_back(x, x->program->spaces[space].name, &st)) m = NULL;
    if (st != GNNC_OK) return st;
    if (!m) return derive(x, space, out);
    bool drawn = x->rt->device && rt_bind_drawn_from(x->program, space); /* of all data */
    if (!rt_device_maps_check(m)) return drawn ? rt_device_relation_to_host(x, space, true) : st;
    int64_t there = out->n_edges;
    st = derive(x, space, out);
    if (st != GNNC_OK || out->n_edges == there) return st;
    return rt_fail(&x->rt->err, GNNC_E_ASSERT, "edge type '%s': %lld edges, on the device %lld",
                   x->program->spaces[space].name, (long long)out->n_edges, (long long)there);
}

/* Makes a relation and sets its number of edges. */
static gnnc_status build(RtExec *x, int space) {
    RtBound *b = x->rt->bound;
    gnnc_status st = derive_where(x, space, &b->rel[space]);
    if (st != GNNC_OK)
        return rt_fail(&x->rt->err, st, "edge type '%s': %s", x->program->spaces[space].name,
                       gnnc_status_text(st));
    st = check_wide(x, space, &b->rel[space]);
    if (st != GNNC_OK) return st;
    b->ready[space] = true;
    x->n[x->program->spaces[space].sym] = b->rel[space].n_edges; /* an edge space's own symbol */
    return GNNC_OK;
}

/* ---- sizes before there are arrays ------------------------------------------------ */
typedef struct {
    int64_t edges, loops;
} EdgeCount;

/* Edges and self loops of the data's table. Ends that are not read yet are counted by what was kept
 * of them. */
static EdgeCount count_base(const RtTable *t) {
    EdgeCount c = {t->count, 0};
    if (!t->src) return (EdgeCount){t->count, t->n_loops};
    for (int64_t e = 0; e < t->count; e++) c.loops += t->src[e] == t->dst[e];
    return c;
}

/* There is no memory for so many, and unions of unions must not overflow. */
static int64_t at_most(int64_t n_edges) {
    return n_edges < RT_MOST_EDGES ? n_edges : RT_MOST_EDGES;
}

/* Counts the edges of a derived relation, at least so many; exactly but where equal edges or a
 * condition decide. */
static EdgeCount count_derived(const RtExec *x, const rt_space *s, const EdgeCount *known) {
    const EdgeCount none = {0, 0}, b = s->base[0] >= 0 ? known[s->base[0]] : none;
    switch (s->rel) {
    case RT_REL_SELF_LOOPS: {
        int64_t n = x->n[x->program->spaces[s->dst].sym];
        return (EdgeCount){b.edges - b.loops + n, n};
    }
    case RT_REL_NO_LOOPS:
        return (EdgeCount){b.edges - b.loops, 0};
    case RT_REL_REVERSE:
        return b;
    case RT_REL_UNION: {
        const EdgeCount *a = &known[s->base[1]];
        return (EdgeCount){at_most(b.edges + a->edges), at_most(b.loops + a->loops)};
    }
    default:
        return none;
    }
}

gnnc_status rt_bind_count_edges(RtExec *x) {
    const rt_program *p = x->program;
    RtPool pool;
    rt_pool_init(&pool, &x->rt->pool.from);
    EdgeCount *c = RT_NEWN(&pool, EdgeCount, p->n_spaces);
    bool *done = RT_NEWN(&pool, bool, p->n_spaces);
    for (bool more = c && done; more;) { /* bases may come in any order */
        more = false;
        for (int s = 0; s < p->n_spaces; s++) {
            if (!is_next(p, done, s)) continue;
            const RtTable *t = x->rt->bound->table[s];
            c[s] = p->spaces[s].rel == RT_REL_BASE ? count_base(t)
                                                   : count_derived(x, &p->spaces[s], c);
            x->n[p->spaces[s].sym] = c[s].edges;
            done[s] = more = true;
        }
    }
    gnnc_status st = c && done ? GNNC_OK : rt_fail_nomem(&x->rt->err, "tables of the data");
    rt_pool_free(&pool);
    return st;
}

/* ---- building ------------------------------------------------------------------------ */
/* Builds all relations that need no new condition; bases may come in any order. map_too: with their
 * columns and maps. */
static gnnc_status build_ready(RtExec *x, bool map_too) {
    for (bool more = true; more;) {
        more = false;
        for (int s = 0; s < x->program->n_spaces; s++) {
            rt_rel_kind rel = x->program->spaces[s].rel;
            if (rel >= RT_REL_LINKS || !is_next(x->program, x->rt->bound->ready, s)) continue;
            if (rel == RT_REL_WHERE && !x->rt->bound->has_conditions) continue;
            const rt_space *sp = &x->program->spaces[s];
            if (x->rt->bound->for_request && !sp->in_batches && !sp->sampled) continue;
            gnnc_status st = build(x, s);
            if (st == GNNC_OK && map_too) st = rt_bind_reorder_columns(x, s);
            if (st == GNNC_OK && map_too) st = rt_bind_space(x, s);
            if (st != GNNC_OK) return st;
            more = true;
        }
    }
    return GNNC_OK;
}

gnnc_status rt_bind_derived(RtExec *x) {
    return build_ready(x, false);
}

gnnc_status rt_build_relation(RtExec *x, int space) {
    if (x->rt->bound->ready[space]) return GNNC_OK;
    gnnc_status st;
    int64_t before = x->rt->count.live_bytes;
    if (x->rt->device) TRY(st, rt_device_fetch(x, x->program->spaces[space].cond_buf));
    TRY(st, build(x, space));
    TRY(st, rt_bind_reorder_columns(x, space));
    TRY(st, rt_bind_space(x, space));
    TRY(st, build_ready(x, true));
    rt_device_maps_trim(x, true);
    x->rt->bound->memory->index_bytes += (size_t)(x->rt->count.live_bytes - before);
    TRY(st, rt_memory_grow(x, x->rt->bound->memory));
    st = rt_device_place(x, x->rt->bound->memory);
out:
    return st;
}
