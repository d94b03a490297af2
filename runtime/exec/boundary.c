#include "boundary.h"

#include "distributed.h"
#include "rng.h"
#include "runtime/bind/bind.h"

/* Edges between parts at which this process computes something, forward or backward: the only ones
 * whose factor is not 1. */
typedef struct {
    int buf;       /* of factors */
    int src;       /* space of the edges' sources */
    int64_t n;     /* edges */
    int64_t *edge; /* [n] */
    int32_t *from; /* [n] rows of src */
} CutEdges;

struct RtBoundary {
    RtKey key; /* of the step under way */
    int n;     /* relations */
    CutEdges *edges;
};

/* Is it a buffer of factors of edges? */
static bool has_factors(const rt_program *p, const rt_buf *b) {
    return b->kind == RT_BUF_INPUT && b->dt == RT_F32 && b->rank == 1 && b->io_name &&
           b->space >= 0 && p->spaces[b->space].kind == RT_SP_EDGE &&
           rt_boundary_is_input(b->io_name);
}

/* The rows of the edges' sources by edge, or NULL. */
static const int32_t *sources_of(const RtExec *x, int edges) {
    for (int i = 0; i < x->program->n_maps; i++) {
        const rt_map *m = &x->program->maps[i];
        if (m->kind == RT_MAP_SRC && m->from == edges && m->idx_buf >= 0) return x->buf[m->idx_buf];
    }
    return NULL;
}

/* Finds the edges between parts that lead into or out of own rows; c->edge NULL: counts them. */
static void list_cut_edges(const RtExec *x, int edges, const int32_t *source, CutEdges *c) {
    const RtDist *o = x->rt->dist;
    RtRange own_parts = rt_dist_parts(o, o->rank), own = rt_dist_rows(x, c->src, o->rank);
    c->n = 0;
    for (int64_t p = 0; p < o->n_parts; p++) {
        RtRange of = rt_dist_part_rows(x, edges, p), within = rt_dist_part_rows(x, c->src, p);
        bool is_own = p >= own_parts.lo && p < own_parts.hi;
        for (int64_t e = of.lo; e < of.hi; e++) {
            int32_t s = source[e];
            if (s >= within.lo && s < within.hi) continue;
            if (!is_own && (s < own.lo || s >= own.hi)) continue;
            if (c->edge) {
                c->edge[c->n] = e;
                c->from[c->n] = s;
            }
            c->n++;
        }
    }
}

/* Finds the edges between parts of the relation whose factors are in buffer b, and sets factors of
 * own edges to 1.  Of others this process reads those of edges out of its rows, all of which lie
 * between parts. */
static gnnc_status open_cut_edges(RtExec *x, int b, CutEdges *c) {
    RtPool *pool = x->rt->dist->pool;
    int edges = x->program->bufs[b].space;
    const int32_t *source = sources_of(x, edges);
    float *factor = x->buf[b];
    const int64_t *const *bounds = x->rt->dist->chunk_bounds;
    if (!source || !bounds[edges] || !bounds[x->program->spaces[edges].src])
        return rt_fail(&x->rt->err, GNNC_E_STATE, "%s: the program has no sources of these edges",
                       x->program->bufs[b].io_name);
    *c = (CutEdges){.buf = b, .src = x->program->spaces[edges].src};
    list_cut_edges(x, edges, source, c);
    c->edge = RT_NEWN(pool, int64_t, c->n + 1);
    c->from = RT_NEWN(pool, int32_t, c->n + 1);
    if (!c->edge || !c->from) return rt_fail_nomem(&x->rt->err, "edges between parts");
    list_cut_edges(x, edges, source, c);
    RtRange own = rt_dist_rows(x, edges, x->rt->dist->rank);
    for (int64_t i = own.lo; i < own.hi; i++) factor[i] = 1;
    return GNNC_OK;
}

static gnnc_status open_boundary(RtExec *x) {
    RtDist *o = x->rt->dist;
    RtBoundary *of = RT_NEW(o->pool, RtBoundary);
    if (of) of->edges = RT_NEWN(o->pool, CutEdges, x->program->n_bufs + 1);
    if (!of || !of->edges) return rt_fail_nomem(&x->rt->err, "edges between parts");
    gnnc_status st = GNNC_OK;
    for (int b = 0; b < x->program->n_bufs && st == GNNC_OK; b++)
        if (has_factors(x->program, &x->program->bufs[b]))
            st = open_cut_edges(x, b, &of->edges[of->n++]);
    if (st == GNNC_OK) o->boundary = of;
    return st;
}

bool rt_boundary_drawn(const RtExec *x, RtBoundaryRow r) {
    const int32_t *number = x->rt->bound->table[r.space]->part_rows;
    uint32_t row = (uint32_t)(number ? number[r.row] : r.row);
    float p = (float)x->program->recipe.sampled_boundary;
    return rt_uniform(x->rt->dist->boundary->key, row, (uint32_t)r.space) < p;
}

RtKey rt_boundary_key(const RtExec *x) {
    return x->rt->dist->boundary->key;
}

gnnc_status rt_boundary_begin(RtExec *x, uint64_t seed, int64_t step) {
    RtDist *o = x->rt->dist;
    double p = x->program->recipe.sampled_boundary;
    if (!o || step < 0 || p == 0) return GNNC_OK;
    gnnc_status st = o->boundary ? GNNC_OK : open_boundary(x);
    if (st != GNNC_OK) return st;
    RtBoundary *of = o->boundary;
    of->key = rt_stream_key(seed, (uint64_t)step, RT_BOUNDARY_STREAM);
    for (int i = 0; i < of->n; i++) {
        const CutEdges *c = &of->edges[i];
        float *factor = x->buf[c->buf];
        for (int64_t k = 0; k < c->n; k++)
            factor[c->edge[k]] =
                rt_boundary_drawn(x, (RtBoundaryRow){c->src, c->from[k]}) ? (float)(1 / p) : 0;
    }
    return GNNC_OK;
}
