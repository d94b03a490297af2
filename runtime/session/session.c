/* Predictions of rows by themselves.
 *
 * What sessions share is a model bound to data: columns, relations, weights, and what the program
 * computed of the whole graph (@load and @encode; passes/serve.c).  It is a trainer that does not
 * train, of which nothing changes once the first session is there.  A session's own is what a
 * prediction writes: the sampler, the batch, and the memory of its step. */
#include "session.h"

#include <string.h>

#include "runtime/device/device.h"

enum { BATCH = 1024, GRAPHS = 64 }; /* rows that are predicted at once, and graphs */

gnnc_status gnnc_session_create_with(gnnc_session **out, gnnc_alloc_fn *alloc,
                                     gnnc_release_fn *release, void *user) {
    if (out) *out = NULL;
    if (!out || !alloc || !release) return GNNC_E_ARG;
    gnnc_session *s = alloc(user, sizeof *s);
    if (!s) return GNNC_E_NOMEM;
    *s = (gnnc_session){.from = {alloc, release, user}};
    rt_pool_init(&s->rt.pool, &s->from);
    atomic_init(&s->n_holders, 1);
    *out = s;
    return GNNC_OK;
}

gnnc_status gnnc_session_create(gnnc_session **out) {
    RtAlloc a = rt_alloc_default();
    return gnnc_session_create_with(out, a.alloc, a.release, a.user);
}

/* `of` lies in its trainer's memory. */
static void release(RtSessionShared *of) {
    if (!of || atomic_fetch_sub(&of->n_sessions, 1) > 1) return;
    gnnc_model *m = of->model;
    rt_link_batches_stop(of->t);
    gnnc_trainer_destroy(of->t);
    gnnc_model_release(m);
}

/* Frees what this session does not share with its clones. Members that were never set are
 * allowed. */
static void drop_own_state(gnnc_session *s) {
    rt_session_subgraph_drop(s);
    if (s->rt.device) rt_device_close(&s->x);
    rt_batch_step_free(&s->step);
    rt_batch_step_free(&s->embed);
    rt_batch_step_free(&s->explain);
    rt_minibatch_free(&s->m);
    rt_sampler_free(s->sampler);
    rt_session_pairs_drop(s);
    s->step = s->embed = s->explain = (RtBatchStep){0};
    s->m = (RtMinibatch){0};
    s->sampler = NULL;
    s->x = (RtExec){0};
    s->id = s->graph = s->row = NULL;
    s->time = NULL;
    s->baselines = NULL;
    s->rt.bound = NULL;
    s->rt.scratch = NULL;
    s->rt.scratch_bytes = 0;
    rt_pool_free(&s->rt.pool);
}

void gnnc_session_destroy(gnnc_session *s) {
    if (!s || atomic_fetch_sub(&s->n_holders, 1) > 1) return;
    RtAlloc from = s->from;
    rt_session_tensor_drop(s);
    drop_own_state(s);
    release(s->of);
    from.release(from.user, s);
}

const char *gnnc_session_error(const gnnc_session *s) {
    return s ? s->rt.err.text : "";
}

/* ---- what sessions share -------- */
/* Describes an output that has a row for each node: its type, size and where its rows come from. */
gnnc_status rt_session_rows_of(RtSessionShared *of, int buf, RtRowOutput *out) {
    const rt_program *p = of->t->program;
    const rt_buf *b = &p->bufs[buf];
    const rt_space *rows = &p->spaces[b->space];
    int64_t dim[RT_MAX_RANK];
    *out = (RtRowOutput){.name = b->of, .buf = buf, .hops = b->hops, .rank = b->rank - 1};
    out->space = rows->first ? rows->whole : b->space;
    out->precomputed = b->kind == RT_BUF_SAVED;
    out->type = out->precomputed ? -1 : of->source.map.type_of_space[out->space];
    out->n = of->t->x.n[p->spaces[out->space].sym];
    out->row_width = 1;
    p->buf_shape(buf, of->t->x.n, dim);
    for (int i = 0; i < out->rank; i++) out->row_width *= out->dim[i] = dim[i + 1];
    if (b->dt == RT_F32) return GNNC_OK;
    return rt_fail(&of->t->rt.err, GNNC_E_DTYPE, "'%s' is not f32", b->io_name);
}

/* Finds what the model predicts: rows of a table, links or whole graphs, and prepares what all
 * sessions on these data share for it. An error if the program trains instead, or predicts no
 * rows. */
static gnnc_status find_prediction(RtSessionShared *of) {
    const rt_program *p = of->t->program;
    int pred = rt_buf_find(p, RT_BUF_OUTPUT, "pred");
    gnnc_status st;
    if (!p->sampling.serve || pred < 0)
        return rt_fail(&of->t->rt.err, GNNC_E_STATE,
                       "'%s' trains: a program that predicts rows is made with --emit=infer",
                       p->name);
    const rt_buf *b = &p->bufs[pred];
    of->rows = (RtRowOutput){.buf = pred, .type = -1};
    of->links = b->space >= 0 && p->spaces[b->space].drawn;
    of->graphs = p->sampling.seeds == RT_SEEDS_GRAPHS;
    if (of->links) {
        st = rt_session_links_share(of);
        return st == GNNC_OK ? rt_session_find_full_graph(of) : st;
    }
    if (b->space < 0 || (!of->graphs && !p->spaces[b->space].first))
        return rt_fail(&of->t->rt.err, GNNC_E_STATE, "'%s' predicts no rows", p->name);
    TRY(st, rt_batch_source_make(of->t, &of->source));
    if (of->graphs) TRY(st, rt_session_graphs_share(of));
    TRY(st, rt_session_rows_of(of, pred, &of->rows));
    st = rt_session_find_full_graph(of);
out:
    return st;
}

/* Prepares what all sessions of these data share: what is predicted, layers, packed parameters, and
 * what @encode and @ends compute once of the data. With subgraphs each request brings that. */
static gnnc_status serve(RtSessionShared *of) {
    gnnc_trainer *t = of->t;
    const rt_phase *encode = rt_phase_of(t->program, RT_PHASE_ENCODE);
    const rt_phase *ends = rt_phase_of(t->program, RT_PHASE_ENDS);
    gnnc_status st;
    TRY(st, find_prediction(of));
    TRY(st, rt_session_find_layers(of));
    TRY(st, rt_model_refresh(t));
    TRY(st, rt_model_pack(t));
    if (of->subgraph_model) /* what @encode gives comes with rows */
        TRY(st, rt_session_subgraph_share(of));
    if (encode && !of->subgraph_model) TRY(st, rt_bind_run_whole(&t->x, encode));
    if (ends && !of->subgraph_model && !of->samples_neighbours)
        TRY(st, rt_bind_run_whole(&t->x, ends));
    st = rt_session_device_share(of);
out:
    return st;
}

/* Room for the rows of a batch. */
static gnnc_status take_rows(gnnc_session *s, const RtSessionShared *of) {
    bool timed = !of->graphs && rt_batch_source_times(&of->t->x, of->rows.space);
    int n_lists = of->graphs ? 3 : 1;
    s->id = RT_NEWN(&s->rt.pool, int32_t, n_lists *BATCH);
    if (of->graphs && s->id) s->row = (s->graph = s->id + BATCH) + BATCH;
    if (timed) s->time = RT_NEWN(&s->rt.pool, double, BATCH);
    return s->id && (!timed || s->time) ? GNNC_OK : rt_fail_nomem(&s->rt.err, "a session");
}

/* A part of it that is the session's own. */
static gnnc_status take_part(gnnc_session *s, RtSessionShared *of) {
    RtBatch *batch = NULL;
    RtPool *pool = &s->rt.pool;
    gnnc_status st;
    s->x = of->t->x;
    s->x.rt = &s->rt;
    s->x.profile = NULL;
    s->x.threads = 1;
    s->rt.bound = of->t->rt.bound;
    s->rt.products16 = of->t->rt.products16;
    s->rt.amx = of->t->rt.amx;
    s->rt.packed = of->t->rt.packed;
    TRY(st, rt_session_device_open(s, of));
    TRY(st, of->links ? rt_session_pairs_init(s, of) : take_rows(s, of));
    if (!of->links || of->samples_neighbours) {
        TRY(st, rt_sampler_new(&s->sampler, &s->from, &of->source.graph, &of->source.spec, NULL, 1,
                               &s->rt.err));
        TRY(st, rt_sampler_batch(s->sampler, &batch, &s->rt.err));
    } /* else pairs are beside the whole graph */
    TRY(st, rt_minibatch_new(pool, &s->from, &s->x, batch, &s->m, &s->rt.err));
    if (of->subgraph_model) TRY(st, rt_session_subgraph_open(s, of));
    TRY(st, rt_batch_step_init(&s->step, &s->x, NULL, RT_PHASE_PREDICT));
    if (of->n_layers) st = rt_batch_step_init(&s->embed, &s->x, NULL, RT_PHASE_EMBED);
out:
    return st;
}

/* A trainer that does not train, of the model on the graph; NULL: on one without rows. */
static gnnc_status bind(gnnc_session *s, gnnc_model *m, gnnc_graph *g, const RtSessionAt *at,
                        gnnc_trainer **out, RtSubgraphModel **brings) {
    const gnnc_program program = {RT_PROGRAM_VERSION, m->program};
    gnnc_graph *empty = NULL;
    gnnc_trainer *t;
    gnnc_status st = rt_trainer_new(&t, &program, &s->from, NULL);
    *out = t;
    if (st != GNNC_OK) return rt_fail_nomem(&s->rt.err, "a session");
    RtOptions *o = &t->options;
    o->threads = 1;
    if (at) {
        o->asked = at->time;
        t->put_at = at->put;
    }
    TRY(st, rt_options_where(t, *s->device ? s->device : "cpu", &o->where, &o->ordinal));
    rt_device_order(&t->rt, s->rt.in_stream ? s->rt.stream : GNNC_NO_STREAM);
    t->rt.message = s->rt.message;
    t->rt.message_user = s->rt.message_user;
    TRY(st, rt_model_share_weights(m, t));
    if (!g) TRY(st, rt_session_empty_graph(t, brings, &empty));
    st = gnnc_trainer_load_graph(t, g ? g : empty);
out:
    gnnc_graph_release(empty);
    return st;
}

gnnc_status rt_session_open(gnnc_session *s, gnnc_model *m, gnnc_graph *g, const RtSessionAt *at) {
    gnnc_trainer *t = NULL;
    RtSubgraphModel *brings = NULL;
    gnnc_status st;
    s->rt.err.text[0] = '\0';
    if (s->of) return rt_fail(&s->rt.err, GNNC_E_STATE, "the session is open already");
    if (!m->weights.memory.p)
        return rt_fail(&s->rt.err, GNNC_E_STATE, "the model has no weights: gnnc_model_load");
    TRY(st, bind(s, m, g, at, &t, &brings));
    RtSessionShared *of = RT_NEW(&t->rt.pool, RtSessionShared);
    if (!of) {
        st = rt_fail_nomem(&t->rt.err, "a session");
        goto out;
    }
    of->t = t;
    of->subgraph_model = brings;
    TRY(st, serve(of));
    TRY(st, take_part(s, of));
    atomic_init(&of->n_sessions, 1);
    gnnc_model_retain(m);
    of->model = m;
    s->of = of;
    t->rt.message = NULL; /* who was told may be gone before the last clone */
    return GNNC_OK;
out:
    if (t && t->rt.err.text[0]) rt_fail(&s->rt.err, st, "%s", t->rt.err.text);
    drop_own_state(s);
    if (t) rt_link_batches_stop(t);
    gnnc_trainer_destroy(t);
    return st;
}

gnnc_status gnnc_session_open(gnnc_session *s, gnnc_model *m, gnnc_graph *g) {
    return s && m && g ? rt_session_open(s, m, g, NULL) : GNNC_E_ARG;
}

gnnc_status gnnc_session_open_model(gnnc_session *s, gnnc_model *m) {
    return s && m ? rt_session_open(s, m, NULL, NULL) : GNNC_E_ARG;
}

gnnc_status gnnc_session_clone(gnnc_session **out, const gnnc_session *s) {
    if (out) *out = NULL;
    if (!out || !s || !s->of) return GNNC_E_ARG;
    gnnc_status st = gnnc_session_create_with(out, s->from.alloc, s->from.release, s->from.user);
    if (st != GNNC_OK) return st;
    st = take_part(*out, s->of);
    if (st == GNNC_OK) {
        atomic_fetch_add(&s->of->n_sessions, 1);
        (*out)->of = s->of;
        (*out)->seed = s->seed;
        if (s->request) rt_session_subgraph_copy(*out, s);
        memcpy((*out)->device, s->device, sizeof s->device);
        return GNNC_OK;
    }
    gnnc_session_destroy(*out);
    *out = NULL;
    return st;
}

gnnc_status gnnc_session_set_message(gnnc_session *s, gnnc_message_fn *fn, void *user) {
    if (!s) return GNNC_E_ARG;
    s->rt.message = fn;
    s->rt.message_user = user;
    return GNNC_OK;
}

gnnc_status gnnc_session_set_seed(gnnc_session *s, int64_t seed) {
    if (!s) return GNNC_E_ARG;
    s->seed = (uint64_t)seed;
    return GNNC_OK;
}

int64_t gnnc_session_rows(const gnnc_session *s) {
    return s && s->of ? s->of->rows.n : 0;
}

/* ---- predictions -------- */
gnnc_status rt_session_opened(gnnc_session *s) {
    s->rt.err.text[0] = '\0';
    return s->of ? GNNC_OK : rt_fail(&s->rt.err, GNNC_E_STATE, "the session has no data");
}

gnnc_status rt_session_begin(gnnc_session *s, bool links) {
    RtError *err = &s->rt.err;
    gnnc_status st = rt_session_opened(s);
    if (st != GNNC_OK) return st;
    const char *name = s->of->t->program->name;
    bool has_links = s->of->links;
    if (links == has_links) return rt_session_device_begin(s);
    return has_links
               ? rt_fail(err, GNNC_E_STATE, "'%s' scores links: gnnc_session_predict_links", name)
               : rt_fail(err, GNNC_E_STATE, "'%s' predicts rows: gnnc_session_predict", name);
}

gnnc_status rt_session_no_row(gnnc_session *s, const char *what, int64_t i, int64_t n) {
    return rt_fail(&s->rt.err, GNNC_E_RANGE, "%s %lld: the data have 0 to %lld", what, (long long)i,
                   (long long)n - 1);
}

gnnc_status gnnc_session_row_shape(const gnnc_session *s, int *rank, int64_t dim[GNNC_MAX_RANK]) {
    if (!s || !s->of || !rank || !dim) return GNNC_E_ARG;
    *rank = s->of->rows.rank;
    memcpy(dim, s->of->rows.dim, sizeof s->of->rows.dim);
    return GNNC_OK;
}

/* Draws the batch around the first n ids of the session, as many hops as the output `what`
 * needs. */
static gnnc_status draw(gnnc_session *s, const RtRowOutput *what, int64_t n) {
    RtSampleAt at = {.seed = s->seed}; /* what is drawn is of this and the row alone */
    RtSeeds seeds = {.type = what->type, .n = n, .id = s->id, .time = s->time, .key = s->id};
    if (s->graph) return rt_session_graphs_draw(s, what, n);
    rt_sampler_hops(s->sampler, what->hops);
    return rt_sample_nodes(s->sampler, &at, &seeds, s->m.batch, &s->rt.err);
}

/* Rows s->id[0..n). */
static gnnc_status run_batch(gnnc_session *s, const RtRowOutput *what, int64_t n) {
    const RtSessionShared *of = s->of;
    const RtExec *data = s->request ? &s->request->x : &s->x;
    bool predicts = what == &of->rows;
    bool *ran = predicts ? &s->ran : &s->embedded;
    gnnc_status st;
    rt_minibatch_begin(&s->m, data, !*ran);
    TRY(st, draw(s, what, n));
    TRY(st, rt_minibatch_bind(&s->m, data, &of->source.map, &s->rt.err));
    st = rt_batch_step_run(predicts ? &s->step : &s->embed, &s->m, !*ran);
    *ran |= st == GNNC_OK;
out:
    return st;
}

/* What rows there are of, in the graph or in the request that is bound; graphs have no times. */
static RtSampleType rows_of(const gnnc_session *s, const RtRowOutput *what) {
    const RtSampleType *type = s->request ? s->request->type : s->of->source.graph.type;
    const RtParts *parts = s->request ? &s->request->parts : &s->of->parts;
    return what->type < 0 ? (RtSampleType){.n = parts->n} : type[what->type];
}

/* Checks n of the caller's ids, from number `from` on (id NULL: the rows from, from + 1, ..), and
 * takes them and their times as the seeds of a batch. */
static gnnc_status take_ids(gnnc_session *s, const RtSampleType *rows, int64_t from, int64_t n,
                            const int64_t *id) {
    for (int64_t i = 0; i < n; i++) {
        int64_t row = id ? id[from + i] : from + i;
        if (row < 0 || row >= rows->n) return rt_session_no_row(s, "row", row, rows->n);
        s->id[i] = (int32_t)row;
        if (s->time) s->time[i] = rows->time[row];
    }
    return GNNC_OK;
}

gnnc_status rt_session_draw(gnnc_session *s, int64_t row) {
    const RtSampleType rows = rows_of(s, &s->of->rows);
    gnnc_status st = take_ids(s, &rows, 0, 1, &row);
    if (st != GNNC_OK) return st;
    rt_minibatch_begin(&s->m, &s->x, !s->ran);
    return draw(s, &s->of->rows, 1);
}

gnnc_status rt_session_rows(gnnc_session *s, const RtRowOutput *what, int64_t n, const int64_t *id,
                            RtStoreRows *take, void *out) {
    const RtSampleType rows = rows_of(s, what);
    const int64_t most = s->graph ? GRAPHS : BATCH;
    size_t row_bytes = (size_t)what->row_width * sizeof(float);
    gnnc_status st = GNNC_OK;
    if (!id && n > rows.n) return rt_session_no_row(s, "row", n - 1, rows.n);
    for (int64_t from = 0; from < n; from += most) {
        int64_t k = n - from < most ? n - from : most;
        TRY(st, take_ids(s, &rows, from, k, id));
        TRY(st, run_batch(s, what, k));
        /* One that was asked for twice is there once. */
        const int32_t *row = s->graph ? s->row : s->m.batch->seed[0];
        TRY(st, take(s, what, row, k, (char *)out + (size_t)from * row_bytes));
    }
out:
    return st;
}

/* Copies n rows of the output, row[i] of the batch, into the caller's memory. */
static gnnc_status take_here(gnnc_session *s, const RtRowOutput *what, const int32_t *row,
                             int64_t n, void *out) {
    gnnc_status st = rt_device_batch_pull(&s->m.x, what->buf);
    if (st != GNNC_OK) return st;
    const float *pred = s->m.x.buf[what->buf];
    int64_t width = what->row_width;
    for (int64_t i = 0; i < n; i++)
        memcpy((float *)out + i * width, pred + row[i] * width, (size_t)width * sizeof *pred);
    return GNNC_OK;
}

/* Begins a call that needs the graph of the session. */
gnnc_status rt_session_begin_on_graph(gnnc_session *s) {
    gnnc_status st = rt_session_begin(s, false);
    if (st != GNNC_OK || !s->request) return st;
    return rt_fail(&s->rt.err, GNNC_E_STATE,
                   "the session has no graph: gnnc_session_predict_subgraph");
}

gnnc_status gnnc_session_predict(gnnc_session *s, int64_t n, const int64_t *id, float *out) {
    if (!s || n < 0 || (n && !out)) return GNNC_E_ARG;
    gnnc_status st = rt_session_begin_on_graph(s);
    return st == GNNC_OK ? rt_session_predict_rows(s, &s->of->rows, n, id, out) : st;
}

gnnc_status rt_session_predict_rows(gnnc_session *s, const RtRowOutput *what, int64_t n,
                                    const int64_t *id, float *out) {
    return rt_session_rows(s, what, n, id, take_here, out);
}
