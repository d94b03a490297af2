/* Predictions over subgraphs that requests bring, of a model without a graph.
 *
 * What sessions share is the model bound to a graph without rows, whose sizes the weights tell:
 * only parameters with a row for each node have some.  A request is bound as data are (bind.c), in
 * memory that the next one uses again; then its rows are predicted as those of any graph, from all
 * neighbours that it brings.  Cf. GraphStorm's real-time endpoints, which take a request of nodes,
 * edges, features and targets. */
#include "session.h"

#include <stdio.h>
#include <string.h>

/* ---- a graph without rows -------- */
static int64_t size_of(const rt_program *p, const int64_t *n, int space) {
    const rt_space *s = &p->spaces[space];
    return s->fixed >= 0 ? s->fixed : s->sym >= 0 ? n[s->sym] : 1;
}

/* Adds a column to a table of an empty graph, with the shape that the model expects, unless the
 * table has it. */
static gnnc_status add_column(const rt_program *p, RtPool *pool, const int64_t *n, int col,
                              RtTable *t) {
    const rt_column *want = &p->columns[col];
    int64_t count = t->count;
    if (rt_table_column(t, want->name)) return GNNC_OK;
    RtColumn *c = rt_table_add_column(pool, t);
    if (!c) return GNNC_E_NOMEM;
    *c = (RtColumn){
        .name = want->name, .kind = want->kind, .n_rows = count, .encoder = &rt_encoder_unchecked};
    c->rank = want->rank + 1;
    c->shape[0] = count;
    for (int i = 0; i < want->rank; i++) c->shape[i + 1] = size_of(p, n, want->dim[i]);
    if (want->cat >= 0) c->n_categories = size_of(p, n, want->cat);
    if (want->kind == RT_COL_CSR) {
        c->csr = (RtCsr){count,
                         c->shape[1],
                         0,
                         RT_NEWN(pool, int64_t, count + 1),
                         RT_NEWN(pool, int32_t, 1),
                         RT_NEWN(pool, float, 1)};
        return c->csr.ptr && c->csr.col && c->csr.val ? GNNC_OK : GNNC_E_NOMEM;
    }
    c->n_splits = want->kind == RT_COL_SPLIT;
    int64_t width = rt_column_width(c);
    if (width && count > INT64_MAX / 8 / width) return GNNC_E_NOMEM;
    c->stored = rt_column_kind(c->kind)->element;
    c->values = rt_pool_alloc(pool, (size_t)(count * width), rt_dtype_bytes(c->stored));
    return c->values ? GNNC_OK : GNNC_E_NOMEM;
}

static const RtTable *table_of(const RtDataset *d, const rt_space *s) {
    if (s->kind == RT_SP_NODE) return rt_dataset_nodes(d, s->name);
    if (s->kind == RT_SP_GRAPH) return rt_dataset_graphs(d, s->name);
    return rt_dataset_edges(d, s->name);
}

/* Adds an edge table without edges. */
static gnnc_status add_edges(const rt_program *p, gnnc_graph *g, const rt_space *s) {
    const gnnc_array none = {.struct_size = sizeof none, .dtype = GNNC_DT_I32, .rank = 1};
    return rt_graph_add_new_edges(g, s->name, p->spaces[s->src].name, p->spaces[s->dst].name, &none,
                                  &none);
}

static int64_t graphs_of(const rt_space *s, const int64_t *n) {
    return n[s->sym] > 0 ? n[s->sym] : 1;
}

/* All nodes are in the last one. */
static gnnc_status divide(const rt_program *p, RtPool *pool, const int64_t *n, gnnc_graph *g,
                          const rt_space *nodes) {
    const rt_space *of = &p->spaces[nodes->graph];
    int64_t n_graphs = graphs_of(of, n), *ptr = RT_NEWN(pool, int64_t, n_graphs + 1);
    if (!ptr) return GNNC_E_NOMEM;
    ptr[n_graphs] = n[nodes->sym];
    const gnnc_array all = {.struct_size = sizeof all,
                            .data = ptr,
                            .dtype = GNNC_DT_I64,
                            .rank = 1,
                            .shape = {n_graphs + 1}};
    return gnnc_graph_divide(g, nodes->name, of->name, &all);
}

/* Fills g with all tables and columns that the model reads, with the numbers of rows n [n_syms], as
 * if they were data. */
static gnnc_status add_tables(const rt_program *p, const int64_t *n, gnnc_graph *g) {
    gnnc_status st = GNNC_OK;
    for (int i = 0; i < p->n_spaces && st == GNNC_OK; i++) {
        const rt_space *s = &p->spaces[i];
        if (s->kind == RT_SP_GRAPH && !s->first)
            st = gnnc_graph_add_graphs(g, s->name, graphs_of(s, n));
        if (s->kind == RT_SP_NODE && !s->first) st = gnnc_graph_add_nodes(g, s->name, n[s->sym]);
    }
    for (int i = 0; i < p->n_spaces && st == GNNC_OK; i++) {
        const rt_space *s = &p->spaces[i];
        if (s->kind == RT_SP_EDGE && s->rel == RT_REL_BASE && !s->first) st = add_edges(p, g, s);
        if (s->kind != RT_SP_NODE || s->first || s->graph < 0) continue;
        st = divide(p, &g->data->pool, n, g, s);
    }
    for (int c = 0; c < p->n_columns && st == GNNC_OK; c++) {
        const rt_space *s = &p->spaces[rt_bind_base(p, c)];
        const RtTable *t = s->of_batch || s->first ? NULL : table_of(g->data, s);
        if (t) st = add_column(p, &g->data->pool, n, c, (RtTable *)(uintptr_t)t);
    }
    g->changed = true;
    return st == GNNC_OK ? gnnc_graph_commit(g) : st;
}

/* ---- what sessions share -------- */
/* Rows that only the graph that was trained on has. */
static gnnc_status check_rows(gnnc_trainer *t) {
    const rt_program *p = t->program;
    for (int v = 0; v < p->n_vars; v++) {
        const rt_buf *b = p->vars[v].buf < 0 ? NULL : &p->bufs[p->vars[v].buf];
        const rt_space *rows = b && b->space >= 0 ? &p->spaces[b->space] : NULL;
        if (rows && rows->kind == RT_SP_EDGE)
            return rt_fail(&t->rt.err, GNNC_E_STATE,
                           "'%s' has a row for each edge of '%s' that it was trained with: the "
                           "session is opened on a graph",
                           p->vars[v].path, rows->name);
    }
    return GNNC_OK;
}

/* Drawn along edges that a condition chooses, which is not known of a subgraph before it is drawn.
 */
static gnnc_status check_relations(gnnc_trainer *t) {
    const rt_program *p = t->program;
    for (int i = 0; i < p->n_spaces; i++) {
        const rt_space *s = &p->spaces[i];
        bool drawn = s->kind == RT_SP_EDGE && s->sampled && rt_bind_in_batches(p, i);
        for (const rt_space *of = s; drawn && of->base[0] >= 0;) {
            of = &p->spaces[of->base[0]];
            if (of->rel == RT_REL_WHERE)
                return rt_fail(&t->rt.err, GNNC_E_STATE,
                               "'%s' is made of edges that a condition chooses: the session is "
                               "opened on a graph",
                               s->name);
        }
    }
    return GNNC_OK;
}

/* Sizes of the program from the weights' file: widths. How many rows tables have is left open (0
 * rows for now), as each request brings its own. */
static gnnc_status sizes_of_weights(gnnc_trainer *t, int64_t *known, int64_t *n) {
    const rt_program *p = t->program;
    gnnc_status st = rt_weights_file_tell_sizes(t->given, p, &t->rt.pool, known, &t->rt.err);
    for (int i = 0; i < p->n_options; i++) {
        int sym = p->option[i].sym;
        if (sym >= 0 && known[sym] < 0) known[sym] = (int64_t)t->option_value[i];
    }
    for (int i = 0; i < p->n_syms && st == GNNC_OK; i++) n[i] = known[i] < 0 ? 1 : known[i];
    for (int s = 0; s < p->n_spaces && st == GNNC_OK; s++) {
        const rt_space *sp = &p->spaces[s];
        if (sp->kind == RT_SP_DIM || sp->sym < 0) continue;
        if (known[sp->sym] < 0) n[sp->sym] = 0;
        known[sp->sym] = -1; /* each request's own */
    }
    return st;
}

gnnc_status rt_session_empty_graph(gnnc_trainer *t, RtSubgraphModel **brings, gnnc_graph **out) {
    const rt_program *p = t->program;
    RtPool *pool = &t->rt.pool;
    RtSubgraphModel *own = *brings = RT_NEW(pool, RtSubgraphModel);
    int64_t *n = RT_NEWN(pool, int64_t, p->n_syms + 1);
    gnnc_graph *g = *out = NULL;
    gnnc_status st;
    if (!own || !n || !(own->known = RT_NEWN(pool, int64_t, p->n_syms + 1)))
        return rt_fail_nomem(&t->rt.err, "a session");
    TRY(st, check_rows(t));
    TRY(st, check_relations(t));
    TRY(st, sizes_of_weights(t, own->known, n));
    TRY(st, gnnc_graph_create_with(&g, t->outer.alloc, t->outer.release, t->outer.user));
    TRY(st, add_tables(p, n, g));
    *out = g;
    return GNNC_OK;
out:
    if (g && g->err.text[0]) rt_fail(&t->rt.err, st, "%s", g->err.text);
    if (st == GNNC_E_NOMEM) rt_fail_nomem(&t->rt.err, "a session");
    gnnc_graph_release(g);
    return st;
}

/* Does the shape of a row hang on a dimension that no parameter tells? */
static const char *untold(const RtSessionShared *of, int buf) {
    const rt_program *p = of->t->program;
    const rt_buf *b = &p->bufs[buf];
    int64_t dim[RT_MAX_RANK], more[RT_MAX_RANK], *n = of->t->x.n;
    for (int s = 0; s < p->n_spaces; s++) {
        const rt_space *sp = &p->spaces[s];
        if (sp->kind != RT_SP_DIM || sp->sym < 0 || of->subgraph_model->known[sp->sym] >= 0)
            continue;
        p->buf_shape(buf, n, dim);
        n[sp->sym]++;
        p->buf_shape(buf, n, more);
        n[sp->sym]--;
        bool rows = b->space >= 0 && p->spaces[b->space].kind != RT_SP_DIM;
        for (int i = rows; i < b->rank; i++)
            if (dim[i] != more[i]) return sp->name;
    }
    return NULL;
}

/* Checks that parameters tell all sizes of a buffer; else the error names the open one. what: the
 * value's name. */
static gnnc_status check_told(RtSessionShared *of, int buf, const char *what) {
    const char *dim = untold(of, buf);
    if (!dim) return GNNC_OK;
    return rt_fail(&of->t->rt.err, GNNC_E_MISSING,
                   "%s: no parameter tells the size of '%s', which %s has", of->t->program->source,
                   dim, what);
}

/* Finds the names of the rows that a parameter has one for each of, from the weights' file: by them
 * a request's rows find theirs. */
static gnnc_status find_names(RtSessionShared *of, int space, RtParameterRows *r) {
    gnnc_trainer *t = of->t;
    const RtCodes *c = rt_codes_find(t->given->codes, t->given->n, t->program->spaces[space].name);
    r->n = t->x.n[t->program->spaces[space].sym];
    if (!c) return GNNC_OK;
    if (!rt_names_new(&t->rt.pool, &r->names, c->n + 1))
        return rt_fail_nomem(&t->rt.err, "names of rows");
    for (int64_t i = 0; i < c->n; i++) rt_names_add(&r->names, c->names[i]);
    if (c->n == r->n) return GNNC_OK;
    return rt_fail(&t->rt.err, GNNC_E_FORMAT, "%s: %lld names of '%s', and '%s' has %lld rows",
                   t->given->path, (long long)c->n, c->of, r->parameter, (long long)r->n);
}

/* Parameters with rows of nodes, which a request says. */
static gnnc_status find_rows(RtSessionShared *of) {
    const rt_program *p = of->t->program;
    RtParameterRows *all = of->subgraph_model->rows =
        RT_NEWN(&of->t->rt.pool, RtParameterRows, p->n_spaces);
    gnnc_status st = all ? GNNC_OK : rt_fail_nomem(&of->t->rt.err, "a session");
    for (int v = 0; v < p->n_vars && st == GNNC_OK; v++) {
        const rt_buf *b = p->vars[v].buf < 0 ? NULL : &p->bufs[p->vars[v].buf];
        int kind = b && b->in_batches && b->space >= 0 ? (int)p->spaces[b->space].kind : -1;
        bool rows = kind == RT_SP_NODE || kind == RT_SP_GRAPH;
        if (!rows || all[b->space].parameter) continue;
        all[b->space].parameter = p->vars[v].path;
        st = find_names(of, b->space, &all[b->space]);
    }
    return st;
}

gnnc_status rt_session_subgraph_share(RtSessionShared *of) {
    const rt_program *p = of->t->program;
    int32_t *fanout = (int32_t *)(uintptr_t)of->source.spec.fanout; /* made for this session */
    gnnc_status st;
    TRY(st, check_told(of, of->rows.buf, "what is predicted"));
    for (int i = 0; i < of->n_full_graph; i++) {
        const RtFullGraphValue *w = &of->full_graph[i];
        if (p->bufs[w->buf].kind == RT_BUF_SAVED) TRY(st, check_told(of, w->buf, w->name));
        if (w->space < 0 || w->table >= 0) continue;
        st = rt_fail(&of->t->rt.err, GNNC_E_STATE,
                     "'%s' is of edges that are made of several of the data's: the session is "
                     "opened on a graph",
                     w->name);
        goto out;
    }
    if (of->links) TRY(st, rt_session_ends_share(of));
    /* Who brings a subgraph has drawn; the newest are the same of all. */
    bool drawn = of->source.spec.temporal && of->source.spec.how.pick == RT_PICK_RECENT;
    for (int i = 0; i < of->source.spec.how.n_hops * of->source.map.n_rels && !drawn; i++)
        if (fanout[i]) fanout[i] = -1;
    of->rows.n = 0;
    for (int i = 0; i < of->n_layers; i++) {
        of->layer[i].n = 0;
        of->layer[i].unknown_dim = untold(of, of->layer[i].buf);
    }
    st = find_rows(of);
out:
    return st;
}

/* ---- a session's own -------- */
gnnc_status rt_session_subgraph_open(gnnc_session *s, RtSessionShared *of) {
    const rt_program *p = of->t->program;
    RtPool *pool = &s->rt.pool;
    RtSubgraphRequest *b = s->request = RT_NEW(pool, RtSubgraphRequest);
    if (!b) return rt_fail_nomem(&s->rt.err, "a session");
    rt_recycle_init(&b->graph_memory, &s->from);
    rt_recycle_init(&b->memory, &s->from);
    b->x = (RtExec){.program = p, .rt = &b->rt, .threads = 1};
    b->x.n = RT_NEWN(pool, int64_t, p->n_syms + 1);
    b->x.buf = RT_NEWN(pool, void *, p->n_bufs + 1);
    b->type = RT_NEWN(pool, RtSampleType, of->source.map.n_types);
    b->rel = RT_NEWN(pool, RtSampleRel, of->source.map.n_rels);
    b->row = RT_NEWN(pool, const int32_t *, p->n_spaces);
    b->full_graph = RT_NEWN(pool, void *, of->n_full_graph);
    b->has_full_graph = RT_NEWN(pool, bool, of->n_full_graph);
    if (!b->x.n || !b->x.buf || !b->type || !b->rel || !b->row || !b->full_graph ||
        !b->has_full_graph)
        return rt_fail_nomem(&s->rt.err, "a session");
    for (int i = 0; i < of->n_full_graph; i++) {
        const RtFullGraphValue *w = &of->full_graph[i];
        if (w->space >= 0) continue;
        b->full_graph[i] = rt_pool_alloc(pool, (size_t)w->width, (size_t)rt_type_bytes(w->dt));
        if (!b->full_graph[i]) return rt_fail_nomem(&s->rt.err, "a session");
    }
    return of->links ? rt_session_ends_open(s, of) : GNNC_OK;
}

void rt_session_subgraph_drop(gnnc_session *s) {
    RtSubgraphRequest *b = s->request;
    s->request = NULL;
    if (!b) return;
    rt_session_ends_drop(b);
    gnnc_graph_release(b->graph);
    rt_recycle_free(&b->graph_memory);
    rt_recycle_free(&b->memory);
}

void rt_session_subgraph_copy(gnnc_session *to, const gnnc_session *from) {
    const RtSessionShared *of = from->of;
    for (int i = 0; i < of->n_full_graph; i++) {
        const RtFullGraphValue *w = &of->full_graph[i];
        if (!from->request->has_full_graph[i]) continue;
        memcpy(to->request->full_graph[i], from->request->full_graph[i],
               (size_t)w->width * (size_t)rt_type_bytes(w->dt));
        to->request->has_full_graph[i] = true;
    }
}

/* ---- a request -------- */
/* The error of a call for subgraphs on a session that has none. */
static gnnc_status no_subgraphs(gnnc_session *s) {
    return rt_fail(&s->rt.err, GNNC_E_STATE,
                   s->of ? "the session has a graph: it takes no subgraphs"
                         : "the session has no model: gnnc_session_open_model");
}

gnnc_status gnnc_session_subgraph(gnnc_session *s, gnnc_graph **out) {
    if (out) *out = NULL;
    if (!s || !out) return GNNC_E_ARG;
    RtSubgraphRequest *b = s->request;
    s->rt.err.text[0] = '\0';
    if (!b) return no_subgraphs(s);
    if (b->graph && atomic_load(&b->graph->n_refs) > 1)
        return rt_fail(&s->rt.err, GNNC_E_STATE, "somebody has a reference to the last subgraph");
    gnnc_graph_release(b->graph);
    b->graph = NULL;
    rt_recycle_reset(&b->graph_memory);
    RtAlloc a = rt_recycle_alloc(&b->graph_memory);
    gnnc_status st = gnnc_graph_create_with(&b->graph, a.alloc, a.release, a.user);
    *out = b->graph;
    return st == GNNC_OK ? st : rt_fail_nomem(&s->rt.err, "a subgraph");
}

/* ---- which rows of parameters -------- */
/* The error of a table of a request whose rows do not say which row of a parameter they are. */
static gnnc_status no_names(RtExec *x, const RtTable *t, const RtParameterRows *r) {
    return rt_fail(&x->rt->err, GNNC_E_MISSING,
                   "the subgraph: '%s' has no column %s, by which its rows are those of '%s'",
                   t->name, r->names.cap ? "'name' or 'id'" : "'id'", r->parameter);
}

/* The error of a row that was not there in training, so that a parameter has no row for it. */
static gnnc_status no_row(RtExec *x, const RtTable *t, const RtParameterRows *r, int64_t i,
                          const char *name) {
    return rt_fail(&x->rt->err, GNNC_E_RANGE,
                   "the subgraph: row %lld of '%s' is '%.64s': '%s' has rows for the %lld that it "
                   "was trained with",
                   (long long)i, t->name, name, r->parameter, (long long)r->n);
}

/* Finds for each row of a request's table its row of the parameter, by its name or else its id. */
static gnnc_status rows_of(RtExec *x, const RtTable *t, const RtParameterRows *r, int32_t *to) {
    const RtColumn *name = rt_table_column(t, "name"), *id = rt_table_column(t, "id");
    bool named = r->names.cap && name && name->kind == RT_COL_CAT && name->rank == 1 && name->names;
    bool keyed = id && id->kind == RT_COL_ID && id->rank == 1;
    if (!named && !keyed) return no_names(x, t, r);
    for (int64_t i = 0; i < t->count; i++) {
        char number[32];
        const char *called = named && name->i32[i] >= 0 ? name->names[name->i32[i]] : NULL;
        to[i] = called ? rt_names_find(&r->names, called) : -1;
        if (to[i] >= 0) continue;
        if (keyed) snprintf(number, sizeof number, "%lld", (long long)id->i64[i]);
        if (keyed && r->names.cap)
            to[i] = rt_names_find(&r->names, number);
        else if (keyed && id->i64[i] >= 0 && id->i64[i] < r->n)
            to[i] = (int32_t)id->i64[i];
        if (to[i] < 0)
            return no_row(x, t, r, i, called ? called : keyed ? number : "without a name");
    }
    return GNNC_OK;
}

/* Finds the rows of the parameters that have one for each row of a table. */
static gnnc_status take_rows(gnnc_session *s) {
    RtExec *x = &s->request->x;
    gnnc_status st = GNNC_OK;
    for (int i = 0; i < x->program->n_spaces && st == GNNC_OK; i++) {
        const RtParameterRows *r = &s->of->subgraph_model->rows[i];
        const RtTable *t = x->rt->bound->table[i];
        if (!r->parameter) continue;
        int32_t *to = RT_NEWN(&x->rt->pool, int32_t, t->count);
        if (!to) return rt_fail_nomem(&x->rt->err, t->name);
        s->request->row[i] = to;
        st = rows_of(x, t, r, to);
    }
    return st;
}

/* ---- what was computed of the whole graph -------- */
/* Finds the request's column for a value of the full graph and checks its kind and width. */
static gnnc_status find_column(RtExec *x, const RtFullGraphValue *w, const RtColumn **c) {
    const RtTable *t = x->rt->bound->table[w->table];
    *c = rt_table_column(t, w->name);
    if (!*c)
        return rt_fail(&x->rt->err, GNNC_E_MISSING,
                       "the subgraph: '%s' has no column '%s', which '%s' computes of the whole "
                       "graph: gnnc_session_read_whole_graph_value gives it by row",
                       t->name, w->name, x->program->name);
    if ((*c)->kind != RT_COL_FLOAT)
        return rt_fail(&x->rt->err, GNNC_E_DTYPE, "the subgraph: '%s.%s' is of kind %s, not float",
                       t->name, w->name, rt_col_kind_name((*c)->kind));
    if (rt_column_width(*c) == w->width) return GNNC_OK;
    return rt_fail(&x->rt->err, GNNC_E_SHAPE,
                   "the subgraph: '%s.%s' has %lld numbers a row, not %lld", t->name, w->name,
                   (long long)rt_column_width(*c), (long long)w->width);
}

/* Puts *v, rows of the data's edges, into the order of the relation, in memory of the request. */
static gnnc_status arrange(RtExec *x, const RtFullGraphValue *w, const float **v) {
    const RtRelation *rel = x->rt->bound->rel;
    int64_t n = rel[w->space].n_edges;
    size_t row_bytes = (size_t)w->width * sizeof **v;
    float *to = RT_NEWN(&x->rt->pool, float, n * w->width);
    int table;
    if (!to) return rt_fail_nomem(&x->rt->err, w->name);
    for (int64_t e = 0; e < n; e++)
        memcpy(to + e * w->width, *v + rt_bind_row(x->program, rel, w->space, e, &table) * w->width,
               row_bytes);
    *v = to;
    return GNNC_OK;
}

/* Takes a value of the full graph, which the request brings by row, from the subgraph's column of
 * that name, in the order of the relation's edges and converted to w->dt. */
static gnnc_status take_column(RtExec *x, const RtFullGraphValue *w) {
    const RtColumn *c;
    gnnc_status st;
    TRY(st, find_column(x, w, &c));
    TRY(st, rt_column_as(&x->rt->pool, NULL, c, RT_F32, &c, &x->rt->err));
    const float *v = c->f32;
    int64_t n = x->n[x->program->spaces[w->space].sym];
    if (x->program->spaces[w->space].kind == RT_SP_EDGE) TRY(st, arrange(x, w, &v));
    x->buf[w->buf] = (void *)(uintptr_t)v; /* it is gathered from, and not written */
    if (w->dt == RT_F32) return GNNC_OK;
    void *to = rt_pool_alloc(&x->rt->pool, (size_t)(n * w->width), (size_t)rt_type_bytes(w->dt));
    if (!to) return rt_fail_nomem(&x->rt->err, w->name);
    x->buf[w->buf] = to;
    st = rt_session_full_graph_store(w, v, n, to, &x->rt->err);
out:
    return st;
}

/* Takes each value of the full graph: one with rows from the subgraph's columns, another as the
 * request gave it. */
static gnnc_status take_whole(gnnc_session *s) {
    RtSubgraphRequest *b = s->request;
    gnnc_status st = GNNC_OK;
    for (int i = 0; i < s->of->n_full_graph && st == GNNC_OK; i++) {
        const RtFullGraphValue *w = &s->of->full_graph[i];
        if (w->space >= 0)
            st = take_column(&b->x, w);
        else if (b->has_full_graph[i])
            s->m.x.buf[w->buf] = b->x.buf[w->buf] = b->full_graph[i];
        else
            st = rt_fail(&b->rt.err, GNNC_E_MISSING,
                         "'%s', which '%s' computes of the whole graph, was not given: "
                         "gnnc_session_set_whole_graph_value",
                         w->name, b->x.program->name);
    }
    return st;
}

/* ---- bound -------- */
/* Relations that nothing of a batch is drawn along need not be built of what a request brings. */
static gnnc_status empty_others(RtExec *x, const RtBatchMap *map) {
    for (int r = 0; r < map->n_rels; r++) {
        int space = map->space_of_rel[r];
        const rt_space *s = &x->program->spaces[space];
        if (x->rt->bound->ready[space]) continue;
        RtRelation none = {.n_src = x->n[x->program->spaces[s->src].sym],
                           .n_dst = x->n[x->program->spaces[s->dst].sym]};
        none.ptr = RT_NEWN(&x->rt->pool, int64_t, none.n_dst + 1);
        if (!none.ptr) return rt_fail_nomem(&x->rt->err, s->name);
        x->rt->bound->rel[space] = none;
        x->n[s->sym] = 0;
    }
    return GNNC_OK;
}

/* What conditions that no batch reads would be: nothing looks at them. */
static gnnc_status empty_conditions(RtExec *x, const RtExec *like) {
    const rt_program *p = x->program;
    for (int i = 0; i < p->n_spaces; i++) {
        const rt_space *s = &p->spaces[i];
        bool where = s->kind == RT_SP_EDGE && s->rel == RT_REL_WHERE;
        if (!where || p->spaces[s->base[0]].first || x->buf[s->cond_buf] != like->buf[s->cond_buf])
            continue;
        int64_t n = x->rt->bound->rel[s->base[0]].n_edges;
        if (!(x->buf[s->cond_buf] = RT_NEWN(&x->rt->pool, uint8_t, n)))
            return rt_fail_nomem(&x->rt->err, s->name);
    }
    return GNNC_OK;
}

/* Lets the sampler draw from the request's graph: its relations, the links that are hidden, and its
 * graphs. */
static gnnc_status bind_drawn(gnnc_session *s) {
    RtSubgraphRequest *b = s->request;
    const RtSessionShared *of = s->of;
    const RtBatchMap *map = &of->source.map;
    const RtSampleGraph graph = {map->n_types, map->n_rels, b->type, b->rel};
    gnnc_status st;
    TRY(st, rt_batch_source_of(&b->x, map, b->type, b->rel));
    for (int i = 0; i < map->n_rels && of->links; i++)
        b->rel[i].hides = rt_link_batches_hides(of->t, map->space_of_rel[i]);
    if (of->graphs) TRY(st, rt_session_graphs_read(s));
    TRY(st, rt_sampler_read(s->sampler, &graph, &b->rt.err));
    s->m.row = b->row;
out:
    return st;
}

/* Binds the graph that a request brings as the model's data: its tables and columns, values of the
 * full graph that come with it, and what a batch is drawn along. Other relations and conditions,
 * which nothing reads, are empty. */
gnnc_status rt_session_subgraph_bind(gnnc_session *s) {
    RtSubgraphRequest *b = s->request;
    const RtSessionShared *of = s->of;
    const bool draws = !of->links || of->samples_neighbours;
    const RtDataSource data = {.data = b->graph->newest->data, .known = of->subgraph_model->known};
    gnnc_status st;
    rt_recycle_reset(&b->memory);
    RtAlloc a = rt_recycle_alloc(&b->memory);
    b->rt = (RtRuntime){.given = of->t->given};
    rt_pool_init(&b->rt.pool, &a);
    memcpy(b->x.buf, s->x.buf, (size_t)b->x.program->n_bufs * sizeof *b->x.buf);
    TRY(st, rt_bind_sizes(&b->x, NULL, &data));
    TRY(st, rt_bind_subgraph(&b->x));
    if (draws) TRY(st, empty_others(&b->x, &of->source.map));
    TRY(st, take_rows(s));
    TRY(st, take_whole(s));
    TRY(st, empty_conditions(&b->x, &s->x));
    if (of->links) TRY(st, rt_session_ends_bind(s));
    if (draws) TRY(st, bind_drawn(s));
out:
    return st == GNNC_OK ? st : rt_fail(&s->rt.err, st, "%s", b->rt.err.text);
}

gnnc_status rt_session_subgraph_begin(gnnc_session *s, bool links) {
    s->rt.err.text[0] = '\0';
    if (!s->request) return no_subgraphs(s);
    gnnc_status st = rt_session_begin(s, links);
    if (st != GNNC_OK) return st;
    const gnnc_graph *g = s->request->graph;
    if (!g || !g->committed)
        return rt_fail(&s->rt.err, GNNC_E_STATE,
                       g ? "the subgraph was not committed: gnnc_graph_commit is called before"
                         : "there is no subgraph: gnnc_session_subgraph gives one to be filled");
    return GNNC_OK;
}

gnnc_status gnnc_session_predict_subgraph(gnnc_session *s, int64_t n, const int64_t *id,
                                          float *out) {
    if (!s || n < 0 || (n && (!id || !out))) return GNNC_E_ARG;
    gnnc_status st = rt_session_subgraph_begin(s, false);
    if (st == GNNC_OK) st = rt_session_subgraph_bind(s);
    return st == GNNC_OK ? rt_session_predict_rows(s, &s->of->rows, n, id, out) : st;
}
