/* Links over subgraphs that requests bring.
 *
 * What @ends computes of a graph (passes/serve_links.c) it computes of the subgraph, in memory of
 * the session's: values of its nodes, and which of its edges are known.  Pairs are then scored
 * beside it as they are beside the whole graph (session_links.c).  Links by time draw around each
 * pair from the subgraph, and of @ends need the edges alone. */
#include <string.h>

#include "runtime/batch/link_impl.h"
#include "runtime/device/device.h"
#include "session.h"

/* ---- what sessions share -------- */
gnnc_status rt_session_ends_share(RtSessionShared *of) {
    const rt_program *p = of->t->program;
    for (int i = 0; i < p->n_spaces; i++) {
        const rt_space *s = &p->spaces[i];
        bool chosen = s->kind == RT_SP_EDGE && s->rel == RT_REL_WHERE && s->in_batches;
        if (chosen && !s->first && !p->spaces[s->base[0]].sampled)
            return rt_fail(&of->t->rt.err, GNNC_E_STATE,
                           "'%s' is made of edges that a condition chooses among derived ones: the "
                           "session must be opened on a graph",
                           s->name);
    }
    return GNNC_OK;
}

gnnc_status rt_session_ends_open(gnnc_session *s, const RtSessionShared *of) {
    RtSubgraphRequest *b = s->request;
    b->links = RT_NEW(&s->rt.pool, RtLinkBatches);
    if (!b->links) return rt_fail_nomem(&s->rt.err, "a session");
    *b->links = *of->t->links;
    return rt_batch_step_init(&b->ends, &s->x, NULL, RT_PHASE_ENDS);
}

void rt_session_ends_drop(RtSubgraphRequest *b) {
    rt_batch_step_free(&b->ends);
}

/* ---- the subgraph as @ends reads it -------- */
/* Relations that conditions choose and those made of them, columns in their order, and maps. */
static gnnc_status bind_relations(RtExec *x) {
    const rt_program *p = x->program;
    RtBound *bound = x->rt->bound;
    gnnc_status st;
    bound->has_conditions = true;
    TRY(st, rt_bind_derived(x));
    for (int i = 0; i < p->n_spaces; i++) {
        const rt_space *s = &p->spaces[i];
        bool edges = s->kind == RT_SP_EDGE;
        if (s->of_batch || s->first || (edges && !bound->ready[i])) continue;
        if (edges && !s->sampled) TRY(st, rt_bind_reorder_columns(x, i));
    }
    for (int c = 0; c < p->n_columns; c++) {
        bool stored = p->columns[c].kind == RT_COL_CSR && rt_bind_batches_read(p, c);
        if (stored && bound->col[c] && !p->spaces[p->columns[c].space].of_batch)
            TRY(st, rt_bind_device_gather(x, c));
    }
    for (int i = 0; i < p->n_spaces; i++) {
        const rt_space *s = &p->spaces[i];
        bool late = s->kind == RT_SP_EDGE && !bound->ready[i];
        if (!s->of_batch && !s->first && !late) TRY(st, rt_bind_space(x, i));
    }
out:
    return st;
}

/* Rows of parameters that the subgraph's nodes have. */
static gnnc_status take_parameters(gnnc_session *s) {
    RtExec *x = &s->request->x;
    const rt_program *p = x->program;
    for (int i = 0; i < p->n_bufs; i++) {
        const rt_buf *b = &p->bufs[i];
        const int32_t *row = b->space < 0 ? NULL : s->request->row[b->space];
        if (b->kind != RT_BUF_VAR || !b->in_batches || !row) continue;
        int64_t all = s->x.n[p->spaces[b->space].sym], n = x->n[p->spaces[b->space].sym];
        size_t bytes = (size_t)p->buf_count(i, s->x.n) * (size_t)rt_type_bytes(b->dt);
        size_t row_bytes = all ? bytes / (size_t)all : 0;
        void *to = rt_pool_alloc(&x->rt->pool, (size_t)n, row_bytes);
        if (!to) return rt_fail_nomem(&x->rt->err, p->bufs[i].name);
        rt_gather_rows(NULL, s->x.buf[i], row_bytes, (RtRows){.n = n, .i32 = row}, to);
        x->buf[i] = to;
    }
    return GNNC_OK;
}

/* ---- what it gives -------- */
static bool is_of_ends(const rt_program *p, const rt_buf *b) {
    bool kept = b->kind == RT_BUF_SAVED || b->kind == RT_BUF_OUTPUT;
    return kept && p->phases[b->phase].kind == RT_PHASE_ENDS;
}

/* Allocates what @ends gives, for the request's rows. */
static gnnc_status make_room(RtExec *x) {
    for (int i = 0; i < x->program->n_bufs; i++) {
        const rt_buf *b = &x->program->bufs[i];
        if (b->kind != RT_BUF_SAVED || !is_of_ends(x->program, b)) continue;
        x->buf[i] = rt_pool_alloc(&x->rt->pool, (size_t)x->program->buf_count(i, x->n),
                                  (size_t)rt_type_bytes(b->dt));
        if (!x->buf[i]) return rt_fail_nomem(&x->rt->err, b->name);
    }
    return GNNC_OK;
}

/* Runs @ends, which computes what links need of their ends, on the request's graph, and brings its
 * results to the host. */
static gnnc_status run(gnnc_session *s) {
    RtSubgraphRequest *b = s->request;
    RtExec x = b->x; /* the session runs it */
    gnnc_status st = rt_batch_step_run_on(&b->ends, &x, NULL, !b->has_memory);
    for (int i = 0; i < x.program->n_bufs && st == GNNC_OK; i++)
        if (is_of_ends(x.program, &x.program->bufs[i])) st = rt_device_batch_pull(&x, i);
    b->has_memory |= st == GNNC_OK;
    return st == GNNC_OK ? st : rt_fail(&b->rt.err, st, "%s", s->rt.err.text);
}

static const int32_t *given_by(const RtExec *x, const char *name) {
    int b = rt_buf_find(x->program, RT_BUF_OUTPUT, name);
    return b < 0 ? NULL : x->buf[b];
}

gnnc_status rt_session_ends_bind(gnnc_session *s) {
    RtSubgraphRequest *b = s->request;
    gnnc_status st;
    TRY(st, bind_relations(&b->x));
    if (!s->of->samples_neighbours) TRY(st, take_parameters(s));
    TRY(st, make_room(&b->x));
    TRY(st, run(s));
    TRY(st, rt_link_batches_index(&b->x, b->links, given_by(&b->x, "ends.split"),
                                  given_by(&b->x, "ends.kind")));
    TRY(st, rt_session_find_kinds(&b->rt.pool, b->links, &b->kinds, &b->rt.err));
    rt_minibatch_over(&s->m, &b->x);
out:
    return st;
}

/* ---- requests -------- */
/* Begins a request for pairs: reads them, and binds the subgraph. */
static gnnc_status take(gnnc_session *s, const gnnc_pairs *pairs) {
    gnnc_status st = rt_session_pairs_read(s, pairs);
    if (st == GNNC_OK) st = rt_session_subgraph_begin(s, true);
    return st == GNNC_OK ? rt_session_subgraph_bind(s) : st;
}

gnnc_status gnnc_session_predict_subgraph_pairs(gnnc_session *s, const gnnc_pairs *pairs,
                                                float *out) {
    if (!s || !pairs) return GNNC_E_ARG;
    gnnc_status st = take(s, pairs);
    if (st == GNNC_OK) st = rt_session_score(s, out);
    rt_session_pairs_end(s);
    return st;
}

gnnc_status gnnc_session_top_subgraph_pairs(gnnc_session *s, const gnnc_pairs *pairs, int64_t k,
                                            int with_known, int64_t *dst, float *score) {
    if (!s || !pairs) return GNNC_E_ARG;
    gnnc_status st = take(s, pairs);
    if (st == GNNC_OK) st = rt_session_best(s, k, with_known, dst, score);
    rt_session_pairs_end(s);
    return st;
}
