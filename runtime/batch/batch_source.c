#include "batch_source.h"

#include "batch_sizes.h"
#include "link_batches.h"

/* The one of n columns that the space has; NULL: none. */
static const RtColumn *column_of(const RtExec *x, const int *columns, int n, int space) {
    for (int i = 0; i < n; i++)
        if (x->program->columns[columns[i]].space == space) return x->rt->bound->col[columns[i]];
    return NULL;
}

const RtColumn *rt_batch_source_times(const RtExec *x, int space) {
    return column_of(x, x->program->sampling.times, x->program->sampling.n_times, space);
}

/* Is it drawn from by time, and a few of what is known? */
static bool wants_order(const RtExec *x, int space) {
    const rt_sampling *s = &x->program->sampling;
    if (s->pick != RT_PICK_RECENT && column_of(x, s->weights, s->n_weights, space)) return false;
    for (int h = 0; h < s->n_hops; h++)
        if (rt_fanout(x->program, x->rt->fanout, h, space) > 0) return true;
    return false;
}

/* Describes a sampled relation for the sampler: its arrays, the times of its edges, and (for
 * batches with the edges back) its transpose. Edges are put in the order of times where draws want
 * that. */
static gnnc_status add_relation(const RtExec *x, const RtBatchMap *map, int rel,
                                const RtSampleType *type, RtSampleRel *out) {
    const rt_sampling *s = &x->program->sampling;
    int space = map->space_of_rel[rel];
    const rt_space *sp = &x->program->spaces[space];
    RtRelation *r = &x->rt->bound->rel[space];
    const RtColumn *time = rt_batch_source_times(x, space);
    bool back = s->edges == RT_EDGES_BIDIRECTIONAL && sp->src == sp->dst;
    if (back) {
        gnnc_status st = rt_relation_group_src(&x->rt->pool, r, &x->rt->err);
        if (st != GNNC_OK) return st;
    }
    *out = rt_sample_rel(sp->name, map->type_of_space[sp->src], map->type_of_space[sp->dst], r);
    out->reverse = back ? rel : -1;
    out->time = time ? time->f64 : NULL;
    out->inclusive = s->inclusive;
    out->own = s->own && sp->rel == RT_REL_REVERSE && !time;
    if (!wants_order(x, space)) return GNNC_OK;
    return rt_sample_order(&x->rt->pool, &type[out->src_type], r->n_dst, out, &x->rt->err);
}

gnnc_status rt_batch_source_of(const RtExec *x, const RtBatchMap *map, RtSampleType *type,
                               RtSampleRel *rel) {
    const rt_program *p = x->program;
    gnnc_status st = GNNC_OK;
    for (int i = 0; i < map->n_types; i++) {
        int space = map->space_of_type[i];
        const RtColumn *time = rt_batch_source_times(x, space);
        type[i] = (RtSampleType){.name = p->spaces[space].name,
                                 .n = x->n[p->spaces[space].sym],
                                 .time = time ? time->f64 : NULL,
                                 .inclusive = p->sampling.inclusive};
    }
    for (int i = 0; i < map->n_rels && st == GNNC_OK; i++)
        st = add_relation(x, map, i, type, &rel[i]);
    return st;
}

/* The graph that batches are drawn from: node types and relations over the data's arrays, with
 * weights, and with the links that batches must not show. */
static gnnc_status make_graph(gnnc_trainer *t, RtBatchSource *d) {
    const rt_program *p = t->program;
    RtPool *pool = &t->rt.pool;
    gnnc_status st = rt_batch_map(pool, p, &d->map, &t->rt.err);
    if (st != GNNC_OK) return st;
    RtSampleType *type = RT_NEWN(pool, RtSampleType, d->map.n_types);
    RtSampleRel *rel = RT_NEWN(pool, RtSampleRel, d->map.n_rels);
    if (!type || !rel) return rt_fail_nomem(&t->rt.err, "batches");
    st = rt_batch_source_of(&t->x, &d->map, type, rel);
    for (int i = 0; i < d->map.n_rels && st == GNNC_OK; i++) {
        int space = d->map.space_of_rel[i];
        const RtColumn *weight =
            column_of(&t->x, p->sampling.weights, p->sampling.n_weights, space);
        rel[i].weight = weight ? weight->f32 : NULL;
        rel[i].hides = t->links && rt_link_batches_hides(t, space);
    }
    d->graph = (RtSampleGraph){d->map.n_types, d->map.n_rels, type, rel};
    return st;
}

/* How batches are drawn: the program's sampling, the fan-outs of each hop and relation, and what
 * options ask for. */
static gnnc_status make_spec(gnnc_trainer *t, RtBatchSource *d) {
    const rt_sampling *s = &t->program->sampling;
    int32_t *fanout = RT_NEWN(&t->rt.pool, int32_t, s->n_hops * d->map.n_rels);
    if (!fanout) return rt_fail_nomem(&t->rt.err, "batches");
    for (int h = 0; h < s->n_hops; h++)
        for (int r = 0; r < d->map.n_rels; r++)
            fanout[h * d->map.n_rels + r] =
                rt_fanout(t->program, t->rt.fanout, h, d->map.space_of_rel[r]);
    d->spec = (RtSampleSpec){.how = *s,
                             .fanout = fanout,
                             .temporal = s->n_times > 0,
                             .check = t->options.check_times != 0};
    return GNNC_OK;
}

gnnc_status rt_batch_source_make(gnnc_trainer *t, RtBatchSource *d) {
    gnnc_status st = make_graph(t, d);
    return st == GNNC_OK ? make_spec(t, d) : st;
}
