/* Ablation: the batch that a row is predicted from, without some of its edges, or with a column of
 * which nothing is known.  What was computed over the whole graph stays, as does what was drawn. */
#include "explain.h"

#include <math.h>
#include <string.h>

static gnnc_status no_memory(RtExplain *x) {
    return rt_fail_nomem(&x->s->rt.err, "an explanation");
}

/* ---- edges ---------------------------------------------------------------------------------- */
/* A copy of n elements in the pool; NULL: no memory. */
static void *copy(RtPool *pool, const void *from, int64_t n, size_t size) {
    void *to = rt_pool_alloc(pool, (size_t)n + 1, size);
    if (to && n) memcpy(to, from, (size_t)n * size);
    return to;
}

/* Copies the edges that the batch has of a relation, so that edges can be left out of the batch and
 * put back. False: out of memory. */
static bool keep_relation(RtExplain *x, int rel) {
    const RtBatchEdges *e = &x->b->edges[rel];
    const rt_space *sp = &x->p->spaces[x->map->space_of_rel[rel]];
    int64_t n_dst = x->b->nodes[x->map->type_of_space[sp->dst]].n;
    RtExplainEdges *to = &x->edges[rel];
    to->n = e->n;
    to->ptr = copy(x->pool, e->ptr, n_dst + 1, sizeof *e->ptr);
    to->pos = copy(x->pool, e->pos, e->n, sizeof *e->pos);
    to->end = copy(x->pool, e->end, x->b->n_hops + 1, sizeof *e->end);
    to->src = copy(x->pool, e->src, e->n, sizeof *e->src);
    to->dst = copy(x->pool, e->dst, e->n, sizeof *e->dst);
    if (e->id) to->id = copy(x->pool, e->id, e->n, sizeof *e->id);
    return to->ptr && to->pos && to->end && to->src && to->dst && (!e->id || to->id);
}

gnnc_status rt_explain_keep(RtExplain *x) {
    x->edges = RT_NEWN(x->pool, RtExplainEdges, x->b->n_rels + 1);
    for (int r = 0; x->edges && r < x->b->n_rels; r++)
        if (!keep_relation(x, r)) return no_memory(x);
    return x->edges ? GNNC_OK : no_memory(x);
}

static bool touches_type(const RtExplain *x, int type, int end, int64_t node) {
    return end == type && !rt_explain_is_asked(x, end, node);
}

static bool touches_age(const RtExplain *x, int age, int end, int64_t node) {
    return x->node_age[end][node] == age && !rt_explain_is_asked(x, end, node);
}

/* Whether edge k of relation rel is left out by the cut (how, which): of a node type, a relation, a
 * path, an age, or all. */
static bool is_cut(const RtExplain *x, RtExplainCut how, int which, int rel, int64_t k) {
    const rt_space *sp = &x->p->spaces[x->map->space_of_rel[rel]];
    const RtExplainEdges *e = &x->edges[rel];
    int src = x->map->type_of_space[sp->src], dst = x->map->type_of_space[sp->dst];
    switch (how) {
    case RT_CUT_NOTHING:
        break;
    case RT_CUT_TYPE:
        return touches_type(x, which, src, e->src[k]) || touches_type(x, which, dst, e->dst[k]);
    case RT_CUT_RELATION:
        return rel == which;
    case RT_CUT_PATH:
        return x->edge_path[rel][k] == which;
    case RT_CUT_AGE:
        return x->edge_age[rel][k] == which || touches_age(x, which, src, e->src[k]) ||
               touches_age(x, which, dst, e->dst[k]);
    case RT_CUT_ALL:
        return true;
    }
    return false;
}

/* Writes to the batch the edges of the relation that the cut leaves in, in their order, from the
 * copy that keep_relation() made. */
static void cut_relation(RtExplain *x, RtExplainCut how, int which, int rel) {
    const RtExplainEdges *from = &x->edges[rel];
    RtBatchEdges *to = &x->b->edges[rel];
    const rt_space *sp = &x->p->spaces[x->map->space_of_rel[rel]];
    const RtBatchNodes *dst = &x->b->nodes[x->map->type_of_space[sp->dst]];
    int64_t n = 0;
    for (int64_t d = 0; d < dst->n; d++) {
        to->ptr[d] = n;
        for (int64_t k = from->ptr[d]; k < from->ptr[d + 1]; k++) {
            if (is_cut(x, how, which, rel, k)) continue;
            to->src[n] = from->src[k];
            to->dst[n] = from->dst[k];
            to->pos[n] = from->pos[k];
            if (from->id) to->id[n] = from->id[k];
            n++;
        }
    }
    to->ptr[dst->n] = to->n = n;
    for (int h = 0; h <= x->b->n_hops; h++) {
        int64_t d = 0; /* whose edges end where these did */
        while (d < dst->n && from->ptr[d] < from->end[h]) d++;
        to->end[h] = to->ptr[d];
    }
}

void rt_explain_cut(RtExplain *x, RtExplainCut how, int which) {
    for (int r = 0; r < x->b->n_rels; r++) cut_relation(x, how, which, r);
}

/* ---- columns -------------------------------------------------------------------------------- */
/* The mean of the known (finite) values of each number of a column's rows; 0 where none is known.
 */
static void find_means(const RtColumn *c, int64_t width, double *mean) {
    for (int64_t k = 0; k < width; k++) {
        double sum = 0, n = 0;
        for (int64_t i = 0; i < c->n_rows; i++) {
            int64_t at = i * width + k;
            double v = c->kind == RT_COL_TIME ? c->f64[at] : (double)c->f32[at];
            if (!isfinite(v)) continue;
            sum += v;
            n++;
        }
        mean[k] = n > 0 ? sum / n : 0;
    }
}

/* The code of unknown names, else the most frequent one. */
static gnnc_status usual_code(RtExplain *x, const RtColumn *c, const RtCodes *codes, double *code) {
    bool told = codes && codes->of;
    const char *const *names = told ? codes->names : c->names;
    int64_t most = 0, n_names = told ? codes->n : c->n_categories;
    if (names && n_names > 0 && strcmp(names[0], "<unknown>") == 0) return GNNC_OK;
    int64_t *n = RT_NEWN(x->pool, int64_t, c->n_categories + 1);
    if (!n) return no_memory(x);
    for (int64_t i = 0; i < c->n_rows * rt_column_width(c); i++)
        if (c->i32[i] >= 0 && c->i32[i] < c->n_categories) n[c->i32[i]]++;
    for (int64_t k = 0; k < c->n_categories; k++)
        if (n[k] > n[most]) most = k;
    *code = (double)most;
    return GNNC_OK;
}

/* Finds the usual value of each column that the program reads, which stands in for masked ones;
 * computed once per session. */
gnnc_status rt_explain_usual(RtExplain *x) {
    const RtBound *bound = x->s->of->t->rt.bound;
    RtPool *pool = &x->s->rt.pool;
    gnnc_status st = GNNC_OK;
    if ((x->usual = x->s->baselines)) return GNNC_OK;
    double **all = RT_NEWN(pool, double *, x->p->n_columns + 1);
    if (!all) return no_memory(x);
    for (int i = 0; i < x->p->n_columns && st == GNNC_OK; i++) {
        const RtColumn *c = bound->col[i];
        if (!c || !rt_bind_reads(x->p, i)) continue;
        int64_t width = rt_column_width(c);
        double *v = all[i] = RT_NEWN(pool, double, width + 1);
        if (!v) return no_memory(x);
        bool numbers = (c->kind == RT_COL_FLOAT && c->f32) || c->kind == RT_COL_MULTILABEL;
        if (numbers || c->kind == RT_COL_TIME) find_means(c, width, v);
        if (c->kind != RT_COL_CAT) continue;
        st = usual_code(x, c, bound->codes ? &bound->codes[i] : NULL, v);
        for (int64_t k = 1; k < width; k++) v[k] = v[0];
    }
    if (st == GNNC_OK) x->usual = x->s->baselines = all;
    return st;
}

/* Is the column replaced by what is usual? The time that the rows are asked about at never is. */
static bool is_masked(const RtExplain *x, int column) {
    const rt_column *c = &x->p->columns[column];
    bool asked = c->kind == RT_COL_TIME && c->space == x->s->of->rows.space;
    return !asked && (x->masked == column || x->masked == RT_MASK_ALL);
}

/* Numbers in 16 bits become 0. */
static void put_value(const RtColumn *c, void *values, int64_t i, double v) {
    if (c->kind == RT_COL_FLOAT && !c->f32)
        ((uint16_t *)values)[i] = 0;
    else if (c->kind == RT_COL_TIME)
        ((double *)values)[i] = v;
    else if (c->kind == RT_COL_FLOAT || c->kind == RT_COL_MULTILABEL)
        ((float *)values)[i] = (float)v;
    else if (c->kind == RT_COL_CAT)
        ((int32_t *)values)[i] = (int32_t)v;
    else if (c->kind == RT_COL_CLASS)
        ((int32_t *)values)[i] = -1;
}

/* Called for each column of a batch as it is gathered: overwrites a masked column with its usual
 * values, a sparse one with zeros. */
void rt_explain_edit(RtMinibatch *m, int column, void *user) {
    const RtExplain *x = user;
    const RtColumn *c = &m->column[column];
    const double *usual = x->usual ? x->usual[column] : NULL;
    RtColumnBuf *buf = &m->column_buf[column];
    if (!usual || !is_masked(x, column)) return;
    if (c->kind == RT_COL_CSR && c->csr.nnz)
        memset(buf->c.p, 0, (size_t)c->csr.nnz * sizeof(float));
    int64_t width = rt_column_width(c), n = c->kind == RT_COL_CSR ? 0 : c->n_rows * width;
    for (int64_t i = 0; i < n; i++) put_value(c, buf->a.p, i, usual[i % width]);
}

bool rt_explain_is_asked(const RtExplain *x, int type, int64_t node) {
    const gnnc_session *s = x->s;
    return !s->of->graphs && type == s->of->rows.type && node == x->b->seed[0][0];
}
