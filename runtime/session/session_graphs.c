/* Rows of graphs, and of nodes of many graphs: a batch is the graphs that have them, whole.
 *
 * Nothing is drawn, and nothing of a graph is read for another one: what a prediction needs of more
 * than its graph was computed over all of them by open (passes/serve.c).  So an edge between two
 * graphs, which a prediction of all of them would read, is refused. */
#include "session.h"

/* Edges of a relation that join two graphs. */
static gnnc_status check_relation(const RtExec *x, const RtParts *p, const RtSampleRel *r,
                                  RtError *err) {
    for (int64_t g = 0; g < p->n; g++) {
        const int64_t *src = p->ptr[r->src_type] + g, *dst = p->ptr[r->dst_type] + g;
        for (int64_t v = dst[0]; v < dst[1]; v++)
            for (int64_t e = r->ptr[v]; e < r->ptr[v + 1]; e++) {
                if (r->src[e] >= src[0] && r->src[e] < src[1]) continue;
                return rt_fail(err, GNNC_E_VALUE,
                               "%s: an edge of '%s' leads from %d to %lld, which is in graph %lld, "
                               "and %d is not: a graph is predicted by itself",
                               x->rt->bound->dir, r->name, r->src[e], (long long)v, (long long)g,
                               r->src[e]);
            }
    }
    return GNNC_OK;
}

/* Finds which rows of nodes and edges belong to each graph, and checks that edges stay within a
 * graph. */
static gnnc_status find_parts(RtExec *x, const RtBatchMap *map, const RtSampleRel *rel,
                              RtParts *out) {
    gnnc_status st;
    TRY(st, rt_parts_of_graphs(&x->rt->pool, x, map, out, &x->rt->err));
    for (int r = 0; r < map->n_rels; r++)
        if (x->program->spaces[map->space_of_rel[r]].in_batches)
            TRY(st, check_relation(x, out, &rel[r], &x->rt->err));
out:
    return st;
}

gnnc_status rt_session_graphs_share(RtSessionShared *of) {
    return find_parts(&of->t->x, &of->source.map, of->source.graph.rel, &of->parts);
}

gnnc_status rt_session_graphs_read(gnnc_session *s) {
    RtSubgraphRequest *b = s->request;
    return find_parts(&b->x, &s->of->source.map, b->rel, &b->parts);
}

/* The graph whose rows [ptr[g], ptr[g + 1]) have this one. */
static int32_t graph_of(const RtParts *p, int type, int32_t row) {
    const int64_t *ptr = p->ptr[type];
    int64_t low = 0, high = p->n;
    while (high - low > 1) {
        int64_t mid = low + (high - low) / 2;
        *(ptr[mid] <= row ? &low : &high) = mid;
    }
    return (int32_t)low;
}

/* Neighbours in a list of nodes are often of one graph, which is then there once. */
static int64_t list_graphs(gnnc_session *s, const RtParts *p, int type, int64_t n) {
    int64_t k = 0, before = 0; /* nodes of the type in the graphs before the last one */
    for (int64_t i = 0; i < n; i++) {
        int32_t g = type < 0 ? s->id[i] : graph_of(p, type, s->id[i]);
        bool again = type >= 0 && k && s->graph[k - 1] == g;
        if (!again && k && type >= 0) {
            int32_t last = s->graph[k - 1];
            before += p->ptr[type][last + 1] - p->ptr[type][last];
        }
        if (!again) s->graph[k++] = g;
        s->row[i] = type < 0 ? (int32_t)i : (int32_t)(before + s->id[i] - p->ptr[type][g]);
    }
    return k;
}

gnnc_status rt_session_graphs_draw(gnnc_session *s, const RtRowOutput *what, int64_t n) {
    const RtParts *p = s->request ? &s->request->parts : &s->of->parts;
    RtSampleAt at = {.seed = s->seed};
    int64_t k = list_graphs(s, p, what->type, n);
    s->m.graphs = (RtRows){.n = k, .i32 = s->graph};
    return rt_sample_parts(s->sampler, &at, p, s->graph, k, s->m.batch, &s->rt.err);
}
