#include "boundary.h"

#include <string.h>

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
} Cut;

struct RtBoundary {
    int64_t step;
    RtKey key; /* of this step */
    int n;     /* relations */
    Cut *cut;
};

/* Is it a buffer of factors of edges? */
static bool has_factors(const rt_program *p, const rt_buf *b) {
    return b->kind == RT_BUF_INPUT && b->dt == RT_F32 && b->rank == 1 && b->io_name &&
           b->space >= 0 && p->spaces[b->space].kind == RT_SP_EDGE &&
           !strncmp(b->io_name, RT_BOUNDARY_INPUT, sizeof RT_BOUNDARY_INPUT - 1);
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
static void list_cut(const RtExec *x, int edges, const int32_t *source, Cut *c) {
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

/* Finds the cut of the relation whose factors are in buffer b, and sets all factors to 1. */
static gnnc_status open_cut(RtExec *x, int b, Cut *c) {
    RtPool *pool = x->rt->dist->pool;
    int edges = x->program->bufs[b].space;
    const int32_t *source = sources_of(x, edges);
    float *factor = x->buf[b];
    const int64_t *const *bounds = x->rt->dist->chunk_bounds;
    if (!source || !bounds[edges] || !bounds[x->program->spaces[edges].src])
        return rt_fail(&x->rt->err, GNNC_E_STATE, "%s: the program has no sources of these edges",
                       x->program->bufs[b].io_name);
    *c = (Cut){.buf = b, .src = x->program->spaces[edges].src};
    list_cut(x, edges, source, c);
    c->edge = RT_NEWN(pool, int64_t, c->n + 1);
    c->from = RT_NEWN(pool, int32_t, c->n + 1);
    if (!c->edge || !c->from) return rt_fail_nomem(&x->rt->err, "edges between parts");
    list_cut(x, edges, source, c);
    int64_t n = rt_size(x->program, x->n, edges);
    for (int64_t i = 0; i < n; i++) factor[i] = 1;
    return GNNC_OK;
}

static gnnc_status open_boundary(RtExec *x) {
    RtDist *o = x->rt->dist;
    RtBoundary *of = RT_NEW(o->pool, RtBoundary);
    if (of) of->cut = RT_NEWN(o->pool, Cut, x->program->n_bufs + 1);
    if (!of || !of->cut) return rt_fail_nomem(&x->rt->err, "edges between parts");
    gnnc_status st = GNNC_OK;
    for (int b = 0; b < x->program->n_bufs && st == GNNC_OK; b++)
        if (has_factors(x->program, &x->program->bufs[b])) st = open_cut(x, b, &of->cut[of->n++]);
    if (st == GNNC_OK) o->boundary = of;
    return st;
}

bool rt_boundary_drawn(const RtExec *x, RtCoin coin) {
    const int32_t *number = x->rt->bound->table[coin.space]->part_rows;
    uint32_t row = (uint32_t)(number ? number[coin.row] : coin.row);
    float p = (float)x->program->recipe.sampled_boundary;
    return rt_uniform(x->rt->dist->boundary->key, row, (uint32_t)coin.space) < p;
}

int64_t rt_boundary_step(const RtExec *x) {
    const RtBoundary *of = x->rt->dist->boundary;
    return of ? of->step : -1;
}

gnnc_status rt_boundary_begin(RtExec *x, uint64_t seed, int64_t step) {
    RtDist *o = x->rt->dist;
    double p = x->program->recipe.sampled_boundary;
    if (!o || step < 0 || p == 0) return GNNC_OK;
    gnnc_status st = o->boundary ? GNNC_OK : open_boundary(x);
    if (st != GNNC_OK) return st;
    RtBoundary *of = o->boundary;
    of->step = step;
    of->key = rt_stream_key(seed, (uint64_t)step, RT_BOUNDARY_STREAM);
    for (int i = 0; i < of->n; i++) {
        const Cut *c = &of->cut[i];
        float *factor = x->buf[c->buf];
        for (int64_t k = 0; k < c->n; k++)
            factor[c->edge[k]] =
                rt_boundary_drawn(x, (RtCoin){c->src, c->from[k]}) ? (float)(1 / p) : 0;
    }
    return GNNC_OK;
}
