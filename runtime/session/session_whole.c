/* What a model computes of the whole graph and its predictions read by row: degrees,
 * normalisation, encoded values (passes/serve.c), and which edges a condition keeps.
 *
 * A session over a graph gives it away by row; to one without a graph it is given with the rows
 * that a request brings, as columns of their tables, or once, where it is of no table. */
#include <string.h>

#include "runtime/exec/round_16.h"
#include "session.h"

/* ---- what there is -------- */
/* Whatever was computed before batches are: nothing of it is known of a graph without rows. */
static bool is_whole(const rt_program *p, const rt_buf *b) {
    return b->kind == RT_BUF_SAVED && b->in_batches && p->phases[b->phase].kind != RT_PHASE_ENDS;
}

/* The data's table that rows of a space are those of, each of one; -1: there is none. */
static int table_of(const rt_program *p, int space) {
    while (space >= 0 && p->spaces[space].kind == RT_SP_EDGE &&
           p->spaces[space].rel == RT_REL_REVERSE)
        space = p->spaces[space].base[0];
    if (space < 0) return -1;
    bool edges = p->spaces[space].kind == RT_SP_EDGE;
    return !edges || p->spaces[space].rel == RT_REL_BASE ? space : -1;
}

/* Is the space of the edges that a condition chooses, of a relation that batches sample? Then its
 * mask is read for each batch. */
static bool is_batch_edge_filter(const rt_program *p, int space) {
    const rt_space *s = &p->spaces[space];
    if (s->kind != RT_SP_EDGE || s->rel != RT_REL_WHERE) return false;
    const rt_space *base = &p->spaces[s->base[0]];
    if (base->first || !base->sampled) return false;
    for (int i = 0; i < p->n_spaces; i++) {
        const rt_space *like = &p->spaces[i];
        bool same = like->rel == RT_REL_WHERE && like->cond_buf == s->cond_buf;
        if (like->kind == RT_SP_EDGE && same && like->in_batches) return true;
    }
    return false;
}

/* Describes buffer `buf`, which is computed of the full graph, as its value w. */
static void put_value(const RtSessionShared *of, int buf, RtFullGraphValue *w) {
    const rt_program *p = of->t->program;
    const rt_buf *b = &p->bufs[buf];
    int64_t dim[RT_MAX_RANK];
    bool rows = b->space >= 0 && p->spaces[b->space].kind != RT_SP_DIM;
    p->buf_shape(buf, of->t->x.n, dim);
    *w = (RtFullGraphValue){.name = b->io_name, .buf = buf, .space = -1, .table = -1, .dt = b->dt};
    if (rows) w->table = table_of(p, w->space = b->space);
    w->width = 1;
    w->rank = b->rank - rows;
    for (int i = 0; i < w->rank; i++) w->width *= w->dim[i] = dim[i + rows];
}

/* Describes the mask of a batch's edge filter (is_batch_edge_filter) as a value of the full graph,
 * w: a `where` whose condition @load computes. */
static gnnc_status describe_edge_mask(RtSessionShared *of, int space, RtFullGraphValue *w) {
    const rt_space *s = &of->t->program->spaces[space];
    *w = (RtFullGraphValue){.name = rt_pool_printf(&of->t->rt.pool, "whole.%s", s->name),
                            .buf = s->cond_buf,
                            .space = s->base[0],
                            .table = table_of(of->t->program, s->base[0]),
                            .dt = RT_I1,
                            .width = 1};
    return w->name ? GNNC_OK : rt_fail_nomem(&of->t->rt.err, "a session");
}

gnnc_status rt_session_find_full_graph(RtSessionShared *of) {
    const rt_program *p = of->t->program;
    RtFullGraphValue *w = of->full_graph =
        RT_NEWN(&of->t->rt.pool, RtFullGraphValue, p->n_bufs + p->n_spaces);
    gnnc_status st = w ? GNNC_OK : rt_fail_nomem(&of->t->rt.err, "a session");
    for (int b = 0; b < p->n_bufs && st == GNNC_OK; b++)
        if (is_whole(p, &p->bufs[b])) put_value(of, b, &w[of->n_full_graph++]);
    for (int s = 0; s < p->n_spaces && st == GNNC_OK; s++)
        if (is_batch_edge_filter(p, s)) st = describe_edge_mask(of, s, &w[of->n_full_graph++]);
    return st;
}

int gnnc_session_n_whole_graph_values(const gnnc_session *s) {
    return s && s->of ? s->of->n_full_graph : 0;
}

/* Describes the i-th of the values that are computed over the full graph and read by predictions.
 */
gnnc_status gnnc_session_whole_graph_value(const gnnc_session *s, int i,
                                           gnnc_whole_graph_value *out) {
    if (!s || !s->of || !out) return GNNC_E_ARG;
    gnnc_status st = RT_STRUCT_CHECK(NULL, gnnc_whole_graph_value, out, shape);
    if (st != GNNC_OK) return st;
    if (i < 0 || i >= s->of->n_full_graph) return GNNC_E_RANGE;
    const RtFullGraphValue *w = &s->of->full_graph[i];
    const rt_space *all = s->of->t->program->spaces;
    gnnc_whole_graph_value is = {.name = w->name, .rank = w->rank};
    if (w->table >= 0) {
        is.table = all[w->table].name;
        is.kind = all[w->table].kind == RT_SP_NODE    ? GNNC_NODES
                  : all[w->table].kind == RT_SP_GRAPH ? GNNC_GRAPHS
                                                      : GNNC_EDGES;
    }
    memcpy(is.shape, w->dim, sizeof is.shape);
    rt_struct_copy_out(out, &is, sizeof is);
    return GNNC_OK;
}

/* ---- values as f32 -------- */
static gnnc_status inexact(gnnc_session *s, const RtFullGraphValue *w) {
    return rt_fail(&s->rt.err, GNNC_E_RANGE, "'%s': a value beyond what f32 holds exactly",
                   w->name);
}

/* Converts one row of a value of the full graph to f32. An error for integers that f32 does not
 * hold. */
static gnnc_status give(gnnc_session *s, const RtFullGraphValue *w, const void *from, float *to) {
    enum { EXACT = 1 << 24 };
    switch (w->dt) {
    case RT_F32:
        memcpy(to, from, (size_t)w->width * sizeof *to);
        return GNNC_OK;
    case RT_F16:
    case RT_BF16:
        rt_to_f32(w->dt, to, from, w->width);
        return GNNC_OK;
    case RT_I1:
        for (int64_t i = 0; i < w->width; i++) to[i] = ((const uint8_t *)from)[i] != 0;
        return GNNC_OK;
    case RT_I32:
        for (int64_t i = 0; i < w->width; i++) {
            int32_t v = ((const int32_t *)from)[i];
            if (v > EXACT || v < -EXACT) return inexact(s, w);
            to[i] = (float)v;
        }
        return GNNC_OK;
    default:
        return rt_fail(&s->rt.err, GNNC_E_DTYPE, "'%s' has no values that are numbers in f32",
                       w->name);
    }
}

gnnc_status rt_session_full_graph_store(const RtFullGraphValue *w, const float *from, int64_t n,
                                        void *to, RtError *err) {
    int64_t count = n * w->width;
    switch (w->dt) {
    case RT_F32:
        if (count) memcpy(to, from, (size_t)count * sizeof *from);
        return GNNC_OK;
    case RT_F16:
    case RT_BF16:
        rt_from_f32(w->dt, to, from, count);
        return GNNC_OK;
    case RT_I1:
        for (int64_t i = 0; i < count; i++) ((uint8_t *)to)[i] = from[i] != 0;
        return GNNC_OK;
    case RT_I32:
        for (int64_t i = 0; i < count; i++) {
            bool whole = from[i] >= -2147483648.f && from[i] < 2147483648.f;
            if (!whole || (float)(int32_t)from[i] != from[i])
                return rt_fail(err, GNNC_E_RANGE, "'%s': row %lld: %g is no integer", w->name,
                               (long long)(i / w->width), (double)from[i]);
            ((int32_t *)to)[i] = (int32_t)from[i];
        }
        return GNNC_OK;
    default:
        return rt_fail(err, GNNC_E_DTYPE, "'%s' has no values that are numbers in f32", w->name);
    }
}

/* ---- given away -------- */
/* Which row of `w` each of the table's edges has. */
static gnnc_status find_edges(const gnnc_session *s, const RtFullGraphValue *w, RtPool *pool,
                              int64_t n, int32_t **out, RtError *err) {
    const rt_program *p = s->of->t->program;
    const RtRelation *rel = s->of->t->rt.bound->rel;
    int table;
    if (rel[w->space].wide)
        return rt_fail(err, GNNC_E_RANGE, "'%s' has rows of more than 2^31 - 1 edges", w->name);
    int32_t *at = *out = RT_NEWN(pool, int32_t, n + 1);
    if (!at) return rt_fail_nomem(err, w->name);
    for (int64_t e = 0; e < rel[w->space].n_edges; e++)
        at[rt_bind_row(p, rel, w->space, e, &table)] = (int32_t)e;
    return GNNC_OK;
}

/* Reads the rows `id` of a value of the full graph; of edges, in the order in which the data have
 * them. */
static gnnc_status read_rows(gnnc_session *s, const RtFullGraphValue *w, int64_t n,
                             const int64_t *id, float *out) {
    const RtExec *x = &s->of->t->x;
    const rt_space *table = &x->program->spaces[w->table];
    int64_t all = x->n[table->sym];
    size_t row_bytes = (size_t)w->width * (size_t)rt_type_bytes(w->dt);
    int32_t *at = NULL;
    RtPool pool;
    gnnc_status st = GNNC_OK;
    rt_pool_init(&pool, &s->from);
    if (table->kind == RT_SP_EDGE) st = find_edges(s, w, &pool, all, &at, &s->rt.err);
    for (int64_t i = 0; i < n && st == GNNC_OK; i++) {
        bool there = id[i] >= 0 && id[i] < all;
        const char *from = x->buf[w->buf];
        st = there ? give(s, w, from + (size_t)(at ? at[id[i]] : id[i]) * row_bytes,
                          out + i * w->width)
                   : rt_session_no_row(s, "row", id[i], all);
    }
    rt_pool_free(&pool);
    return st;
}

/* Finds the i-th value of the full graph. */
static gnnc_status find(gnnc_session *s, int i, const RtFullGraphValue **w) {
    s->rt.err.text[0] = '\0';
    if (!s->of) return rt_fail(&s->rt.err, GNNC_E_STATE, "the session has no data");
    if (i < 0 || i >= s->of->n_full_graph)
        return rt_fail(&s->rt.err, GNNC_E_RANGE, "value %d of the whole graph: there are %d", i,
                       s->of->n_full_graph);
    *w = &s->of->full_graph[i];
    return GNNC_OK;
}

gnnc_status gnnc_session_read_whole_graph_value(gnnc_session *s, int i, int64_t n,
                                                const int64_t *id, float *out) {
    if (!s || n < 0 || (n && !out)) return GNNC_E_ARG;
    const RtFullGraphValue *w;
    gnnc_status st = find(s, i, &w);
    if (st != GNNC_OK) return st;
    if (s->of->subgraph_model)
        return rt_fail(&s->rt.err, GNNC_E_STATE, "the session has no graph to compute '%s' of",
                       w->name);
    if (w->space < 0 && n == 1) return give(s, w, s->of->t->x.buf[w->buf], out);
    if (w->space < 0 || (n && !id))
        return rt_fail(&s->rt.err, GNNC_E_ARG, "'%s' is of %s", w->name,
                       w->space < 0 ? "no table: it is one row"
                                    : "a table: its rows are asked for");
    if (w->table < 0)
        return rt_fail(&s->rt.err, GNNC_E_STATE,
                       "'%s' is of edges that are made of several of the data's", w->name);
    return read_rows(s, w, n, id, out);
}

/* ---- given to a session -------- */
gnnc_status gnnc_session_set_whole_graph_value(gnnc_session *s, int i, const float *values) {
    if (!s || !values) return GNNC_E_ARG;
    const RtFullGraphValue *w;
    gnnc_status st = find(s, i, &w);
    if (st != GNNC_OK) return st;
    if (!s->of->subgraph_model)
        return rt_fail(&s->rt.err, GNNC_E_STATE, "the session computes '%s' of its graph", w->name);
    if (w->space >= 0)
        return rt_fail(&s->rt.err, GNNC_E_ARG,
                       "'%s' has rows: it is given with a subgraph, as a column of '%s'", w->name,
                       s->of->t->program->spaces[w->table].name);
    for (int64_t k = 0; k < w->width; k++)
        if (!(values[k] - values[k] == 0))
            return rt_fail(&s->rt.err, GNNC_E_VALUE, "'%s': value %lld is not finite", w->name,
                           (long long)k);
    st = rt_session_full_graph_store(w, values, 1, s->request->full_graph[i], &s->rt.err);
    if (st == GNNC_OK) s->request->has_full_graph[i] = true;
    return st;
}
