/* Paths: how the rows of a neighbourhood were reached from the row that is asked about, and how old
 * they were then.  A row that several paths reach counts with the first: the shortest, and of these
 * the one along the relation that stands first in the model. */
#include "explain.h"

#include <math.h>
#include <string.h>

static gnnc_status no_memory(RtExplain *x) {
    return rt_fail_nomem(&x->s->rt.err, "an explanation");
}

/* ---- paths -------------------------------------------------------------------------------- */
/* "task -task__customer-> customer <-orders__buyer- orders": an arrow as the key points. */
static const char *path_name(RtExplain *x, int parent, int rel, int type) {
    RtPool *pool = &x->e->pool;
    const char *table = rt_explain_table(x, x->map->space_of_type[type]);
    if (parent < 0) return rt_pool_printf(pool, "%s", table);
    const rt_space *sp = &x->p->spaces[x->map->space_of_rel[rel]];
    bool back = sp->rel == RT_REL_REVERSE;
    const char *of = back ? x->p->spaces[sp->base[0]].name : sp->name;
    return rt_pool_printf(pool, "%s %s%s%s %s", x->path[parent].name, back ? "-" : "<-", of,
                          back ? "->" : "-", table);
}

/* The number of the path that goes on from path `parent` along relation rel; a new one if it was
 * not met yet. -1: out of memory. */
static int path_of(RtExplain *x, int parent, int rel, int type) {
    for (int i = 0; i < x->n_paths; i++)
        if (x->path[i].parent == parent && x->path[i].rel == rel) return i;
    if (x->n_paths == x->path_room) {
        int room = 2 * x->path_room + 16;
        RtExplainPath *more = RT_NEWN(x->pool, RtExplainPath, room);
        if (!more) return -1;
        if (x->n_paths) memcpy(more, x->path, (size_t)x->n_paths * sizeof *more);
        x->path = more;
        x->path_room = room;
    }
    const char *name = path_name(x, parent, rel, type);
    if (!name) return -1;
    x->path[x->n_paths] = (RtExplainPath){.parent = parent, .rel = rel, .name = name};
    return x->n_paths++;
}

/* Follows the edges of the relation whose destinations are nodes [lo, hi): notes the path of each
 * edge and of each source that had none. False: out of memory. */
static bool follow(RtExplain *x, int rel, int64_t lo, int64_t hi) {
    const rt_space *sp = &x->p->spaces[x->map->space_of_rel[rel]];
    const RtBatchEdges *e = &x->b->edges[rel];
    int src = x->map->type_of_space[sp->src], dst = x->map->type_of_space[sp->dst];
    for (int64_t k = e->ptr[lo]; k < e->ptr[hi]; k++) {
        int from = x->node_path[dst][e->dst[k]];
        int to = from < 0 ? -1 : path_of(x, from, rel, src);
        if (from >= 0 && to < 0) return false;
        x->edge_path[rel][k] = to;
        if (to < 0) continue;
        x->path[to].n_rows++;
        if (x->node_path[src][e->src[k]] < 0) x->node_path[src][e->src[k]] = to;
    }
    return true;
}

/* Begins the search for paths at the explained row. A row of a graph is made of all its nodes:
 * then there is one path for each node type. */
static bool start_paths(RtExplain *x) {
    const gnnc_session *s = x->s;
    for (int t = 0; t < x->b->n_types; t++) {
        int64_t n = x->b->nodes[t].n;
        int whole = s->of->graphs && n ? path_of(x, -1, -1 - t, t) : -1;
        if (s->of->graphs && n && whole < 0) return false;
        for (int64_t i = 0; i < n; i++) x->node_path[t][i] = whole;
        if (whole >= 0) x->path[whole].n_rows = n;
    }
    if (s->of->graphs) return true;
    int type = s->of->rows.type, asked = path_of(x, -1, -1, type);
    if (asked < 0) return false;
    x->node_path[type][x->b->seed[0][0]] = asked;
    x->path[asked].n_rows = 1;
    return true;
}

/* Follows the edges of the batch hop by hop from the explained row, and notes for each node and
 * edge the path of relations by which it was reached. False: out of memory. */
static bool find_paths(RtExplain *x) {
    if (!start_paths(x)) return false;
    int n_hops = x->s->of->graphs ? 0 : x->b->n_hops;
    for (int h = 0; h <= n_hops; h++)
        for (int r = 0; r < x->b->n_rels; r++) {
            const rt_space *sp = &x->p->spaces[x->map->space_of_rel[r]];
            const RtBatchNodes *v = &x->b->nodes[x->map->type_of_space[sp->dst]];
            int64_t lo = h && n_hops ? v->end[h - 1] : 0, hi = n_hops ? v->end[h] : v->n;
            if (!follow(x, r, lo, hi)) return false;
        }
    return true;
}

/* ---- ages ----------------------------------------------------------------------------------- */
static const double AGE_DAYS[] = {1, 7, 30, 90, 365, 1095}; /* below each of these */
enum { N_BOUNDS = sizeof AGE_DAYS / sizeof *AGE_DAYS };

const char *rt_explain_age(int age) {
    static const char *const name[RT_N_AGES] = {
        "under 1 day",  "1 to 7 days",      "7 to 30 days", "30 to 90 days", "90 to 365 days",
        "1 to 3 years", "3 years and more", "later",        "without a time"};
    return name[age];
}

/* The age class of something that happened at `time`, seen from the time asked about (both in
 * seconds): the number of bounds in AGE_DAYS that it reached, RT_AGE_LATER or, without a time,
 * RT_AGE_NONE. */
static int8_t age_of(double asked, double time) {
    double days = (asked - time) / 86400;
    if (isnan(days)) return RT_AGE_NONE;
    if (days < 0) return RT_AGE_LATER;
    int8_t age = 0;
    while (age < N_BOUNDS && days >= AGE_DAYS[age]) age++;
    return age;
}

/* Notes the age class of each node and edge of the batch. */
static void find_ages(RtExplain *x) {
    const RtSampleGraph *g = &x->s->of->source.graph;
    double asked = x->e->is.at;
    for (int t = 0; t < x->b->n_types; t++) {
        const RtBatchNodes *v = &x->b->nodes[t];
        const double *time = g->type[t].time;
        for (int64_t i = 0; i < v->n; i++)
            x->node_age[t][i] = time ? age_of(asked, time[v->id[i]]) : RT_AGE_NONE;
    }
    for (int r = 0; r < x->b->n_rels; r++) {
        const RtBatchEdges *e = &x->b->edges[r];
        const double *time = g->rel[r].time;
        for (int64_t k = 0; k < e->n; k++)
            x->edge_age[r][k] = time ? age_of(asked, time[e->pos[k]]) : RT_AGE_NONE;
    }
}

/* Notes for each node and edge of the batch by which path it was reached and how old it is. */
gnnc_status rt_explain_paths(RtExplain *x) {
    const RtBatch *b = x->b;
    x->node_path = RT_NEWN(x->pool, int *, b->n_types + 1);
    x->edge_path = RT_NEWN(x->pool, int *, b->n_rels + 1);
    x->node_age = RT_NEWN(x->pool, int8_t *, b->n_types + 1);
    x->edge_age = RT_NEWN(x->pool, int8_t *, b->n_rels + 1);
    if (!x->node_path || !x->edge_path || !x->node_age || !x->edge_age) return no_memory(x);
    for (int t = 0; t < b->n_types; t++) {
        x->node_path[t] = RT_NEWN(x->pool, int, b->nodes[t].n + 1);
        x->node_age[t] = RT_NEWN(x->pool, int8_t, b->nodes[t].n + 1);
        if (!x->node_path[t] || !x->node_age[t]) return no_memory(x);
    }
    for (int r = 0; r < b->n_rels; r++) {
        x->edge_path[r] = RT_NEWN(x->pool, int, b->edges[r].n + 1);
        x->edge_age[r] = RT_NEWN(x->pool, int8_t, b->edges[r].n + 1);
        if (!x->edge_path[r] || !x->edge_age[r]) return no_memory(x);
    }
    if (!find_paths(x)) return no_memory(x);
    find_ages(x);
    return GNNC_OK;
}

static int of_data(const rt_program *p, int space) {
    return p->spaces[space].first ? p->spaces[space].whole : space;
}

int rt_explain_type(const RtExplain *x, int space) {
    return x->map->type_of_space[of_data(x->p, space)];
}

int rt_explain_relation(const RtExplain *x, int space) {
    return x->map->rel_of_space[of_data(x->p, space)];
}

const char *rt_explain_table(const RtExplain *x, int space) {
    return x->p->spaces[of_data(x->p, space)].name;
}
