/* Columns that come with the pairs of a request: of links, what the model reads of each and the
 * graph does not tell, and when it is asked for.
 *
 * They are read as those of a graph are (graph_column.c), as the only table of one that the request
 * fills, in memory that the next one uses again. */
#include <math.h>
#include <string.h>

#include "runtime/batch/link_impl.h"
#include "session.h"

static const char TABLE[] = "pairs";

/* ---- what sessions share -------- */
/* The edges' times by which neighbours of links are drawn; -1: they are not. */
static int time_column(const RtSessionShared *of) {
    const rt_sampling *how = &of->t->program->sampling;
    const rt_column *all = of->t->program->columns;
    for (int i = 0; i < how->n_times && of->samples_neighbours; i++)
        if (all[how->times[i]].space == of->t->links->base) return how->times[i];
    return -1;
}

static int64_t size_of(const RtSessionShared *of, int space) {
    const rt_space *s = &of->t->program->spaces[space];
    return s->fixed >= 0 ? s->fixed : of->t->x.n[s->sym];
}

/* Names by the model's codes: of the weights, or else of the data. */
static gnnc_status find_names(RtSessionShared *of, RtPairColumn *c) {
    gnnc_trainer *t = of->t;
    const rt_program *p = t->program;
    int base = rt_bind_base(p, c->column);
    const RtTable *table = t->rt.bound->table[base];
    const char *of_weights = rt_pool_printf(&t->rt.pool, "%s.%s", p->spaces[base].name, c->name);
    if (!of_weights) return rt_fail_nomem(&t->rt.err, "names of categories");
    const RtCodes *codes = rt_codes_find(t->given->codes, t->given->n, of_weights);
    const RtColumn *data = table ? rt_table_column(table, c->name) : NULL;
    bool named = data && data->names && rt_column_has_codes(data);
    const char *const *names = codes ? codes->names : named ? data->names : NULL;
    int64_t n = codes ? codes->n : named ? data->n_categories : 0;
    if (!names) return GNNC_OK;
    int cat = p->columns[c->column].cat;
    if (cat >= 0 && n != size_of(of, cat))
        return rt_fail(&t->rt.err, GNNC_E_SHAPE, "'%s' has %lld names, the model %lld categories",
                       of_weights, (long long)n, (long long)size_of(of, cat));
    if (!rt_names_new(&t->rt.pool, &c->names, n + 1))
        return rt_fail_nomem(&t->rt.err, "names of categories");
    for (int64_t i = 0; i < n; i++) rt_names_add(&c->names, names[i]);
    return GNNC_OK;
}

/* Finds how the cells of a column of pairs were encoded in training; c->how NULL: they were not. */
static void find_encoder(RtSessionShared *of, RtPairColumn *c) {
    const gnnc_trainer *t = of->t;
    c->table = t->program->spaces[rt_bind_base(t->program, c->column)].name;
    const RtEncoding *k = rt_encoders_find(&t->given->encoders, c->table, c->name);
    c->how = k ? &k->e : NULL;
}

/* No subgraph tells the size of what comes with pairs alone. */
static gnnc_status check_told(RtSessionShared *of, const RtPairColumn *c) {
    const rt_program *p = of->t->program;
    const rt_column *want = &p->columns[c->column];
    for (int i = -1; i < want->rank && of->subgraph_model; i++) {
        int space = i < 0 ? want->cat : want->dim[i];
        const rt_space *dim = space < 0 ? NULL : &p->spaces[space];
        if (dim && dim->fixed < 0 && of->subgraph_model->known[dim->sym] < 0)
            return rt_fail(&of->t->rt.err, GNNC_E_MISSING,
                           "%s: no parameter tells the size of '%s', which '%s' of pairs has",
                           p->source, dim->name, c->name);
    }
    return GNNC_OK;
}

gnnc_status rt_session_pairs_share(RtSessionShared *of) {
    const rt_program *p = of->t->program;
    int n = p->sampling.n_brought, time = time_column(of);
    RtPairColumn *c = of->pair_column = RT_NEWN(&of->t->rt.pool, RtPairColumn, n + 1);
    gnnc_status st = c ? GNNC_OK : rt_fail_nomem(&of->t->rt.err, "a session");
    if (st == GNNC_OK && of->samples_neighbours && time < 0)
        return rt_fail(&of->t->rt.err, GNNC_E_STATE,
                       "'%s' draws neighbours of links, and has no time to draw them by", p->name);
    for (int i = 0; i < n && st == GNNC_OK; i++, c++) {
        int column = p->sampling.brought[i];
        *c = (RtPairColumn){.name = p->columns[column].name, .column = column, .is_read = true};
        c->is_time = time >= 0 && strcmp(c->name, p->columns[time].name) == 0 &&
                     p->columns[column].kind == RT_COL_TIME;
        if (c->is_time) time = -1;
        st = check_told(of, c);
        if (st == GNNC_OK) st = find_names(of, c);
        find_encoder(of, c);
    }
    if (st == GNNC_OK && time >= 0)
        *c++ = (RtPairColumn){.name = p->columns[time].name,
                              .column = time,
                              .is_time = true,
                              .table = p->spaces[rt_bind_base(p, time)].name};
    of->n_pair_columns = (int)(c - of->pair_column);
    return st;
}

int gnnc_session_n_pair_columns(const gnnc_session *s) {
    return s && s->of ? s->of->n_pair_columns : 0;
}

const char *gnnc_session_pair_column(const gnnc_session *s, int i, int32_t *kind) {
    if (i < 0 || i >= gnnc_session_n_pair_columns(s)) return NULL;
    const RtPairColumn *c = &s->of->pair_column[i];
    if (kind) *kind = (int32_t)s->of->t->program->columns[c->column].kind;
    return c->name;
}

/* ---- a session's own -------- */
gnnc_status rt_session_pairs_init(gnnc_session *s, const RtSessionShared *of) {
    rt_recycle_init(&s->pairs.memory, &s->from);
    s->pairs.column = RT_NEWN(&s->rt.pool, RtColumn, of->t->program->n_columns + 1);
    return s->pairs.column ? GNNC_OK : rt_fail_nomem(&s->rt.err, "a session");
}

void rt_session_pairs_drop(gnnc_session *s) {
    if (s->pairs.memory.growth.from.alloc) rt_recycle_free(&s->pairs.memory);
    s->pairs = (RtPairs){0};
}

/* ---- a request -------- */
static const RtPairColumn *find(const gnnc_session *s, const char *name) {
    for (int i = 0; i < s->of->n_pair_columns; i++)
        if (strcmp(s->of->pair_column[i].name, name) == 0) return &s->of->pair_column[i];
    return NULL;
}

/* Checks that the model reads the column that the caller gives of pairs, that it comes once, and
 * with the arrays of its kind. *c: the column. */
static gnnc_status check_given(gnnc_session *s, const gnnc_values *v, const RtPairColumn **c) {
    RtError *err = &s->rt.err;
    if (!v->column) return rt_fail(err, GNNC_E_ARG, "a column of pairs has no name");
    *c = find(s, v->column);
    if (!*c)
        return rt_fail(err, GNNC_E_ARG, "'%.64s' is no column that '%s' reads of pairs", v->column,
                       s->of->t->program->name);
    if (rt_table_column(s->pairs.one.data->nodes, v->column))
        return rt_fail(err, GNNC_E_ARG, "pairs.%s: given twice", v->column);
    bool csr = s->of->t->program->columns[(*c)->column].kind == RT_COL_CSR;
    if (csr || (!v->ptr && !v->idx)) return GNNC_OK;
    return rt_fail(err, GNNC_E_ARG, "pairs.%s: only stored entries have `ptr` and `idx`",
                   v->column);
}

/* Checks the shape of a given column of pairs against that of the model's. */
static gnnc_status check_shape(gnnc_session *s, const rt_column *want, RtColumn *c) {
    bool of_one = want->rank == 0 && c->rank == 2 && c->shape[1] == 1; /* as data may have it */
    if (c->rank - 1 != want->rank && !of_one)
        return rt_fail(&s->rt.err, GNNC_E_SHAPE, "pairs.%s: %d dimensions, %d wanted", c->name,
                       c->rank, want->rank + 1);
    for (int i = 0; i < want->rank; i++)
        if (c->shape[i + 1] != size_of(s->of, want->dim[i]))
            return rt_fail(&s->rt.err, GNNC_E_SHAPE,
                           "pairs.%s: size %lld in dimension %d, %lld wanted", c->name,
                           (long long)c->shape[i + 1], i + 1,
                           (long long)size_of(s->of, want->dim[i]));
    return GNNC_OK;
}

/* Codes by the request's own names become the model's. */
static gnnc_status translate(gnnc_session *s, RtPool *pool, const RtPairColumn *of, RtColumn *c) {
    int64_t n = c->n_rows * rt_column_width(c);
    if (!rt_column_has_codes(c) || !c->names) return GNNC_OK;
    if (!of->names.cap)
        return rt_fail(&s->rt.err, GNNC_E_ARG, "pairs.%s: the model's categories have no names",
                       c->name);
    int32_t *to = RT_NEWN(pool, int32_t, n + 1);
    if (!to) return rt_fail_nomem(&s->rt.err, c->name);
    for (int64_t i = 0; i < n; i++) {
        const char *name = c->i32[i] < 0 ? NULL : c->names[c->i32[i]];
        to[i] = name ? rt_names_find(&of->names, name) : -1;
        if (name && to[i] < 0)
            return rt_fail(&s->rt.err, GNNC_E_RANGE,
                           "pairs.%s: row %lld: '%.64s' is no category of the model", c->name,
                           (long long)(i / rt_column_width(c)), name);
    }
    c->i32 = to;
    return GNNC_OK;
}

/* Checks that each pair has a time. */
static gnnc_status check_times(gnnc_session *s, const RtColumn *c) {
    for (int64_t i = 0; i < c->n_rows; i++)
        if (!isfinite(c->f64[i]))
            return rt_fail(&s->rt.err, GNNC_E_VALUE,
                           "pairs.%s: row %lld has no time, by which it is told what is known to "
                           "it",
                           c->name, (long long)i);
    return GNNC_OK;
}

/* The arrays of a column are taken over, whatever `st` is by now. */
static gnnc_status take_column(gnnc_session *s, const gnnc_values *v, gnnc_status st) {
    gnnc_graph *g = &s->pairs.one;
    const RtPairColumn *of = NULL;
    gnnc_values own;
    if (st == GNNC_OK) st = check_given(s, v, &of);
    if (st == GNNC_OK)
        st = rt_values_check_encoding(v, of->table, of->how, s->of->t->given->path, &own,
                                      &s->rt.err);
    if (st != GNNC_OK) {
        rt_values_release(v);
        return st;
    }
    v = &own;
    const rt_program *p = s->of->t->program;
    const rt_column *want = &p->columns[of->column];
    st = rt_values_add(g, TABLE, v, (gnnc_kind)want->kind,
                       want->cat < 0 ? -1 : size_of(s->of, want->cat),
                       want->kind == RT_COL_CSR ? size_of(s->of, want->dim[0]) : 0);
    if (st != GNNC_OK) return rt_fail(&s->rt.err, st, "%s", g->err.text);
    RtColumn *c = (RtColumn *)(uintptr_t)rt_table_column(g->data->nodes, of->name);
    const RtColumn *form = c;
    TRY(st, check_shape(s, want, c));
    TRY(st, translate(s, &g->data->pool, of, c));
    if (of->is_time) TRY(st, check_times(s, c));
    if (of->is_time) s->pairs.time = c->f64;
    if (of->is_read)
        TRY(st, rt_column_as(&g->data->pool, NULL, c, rt_bind_type(p, want), &form, &s->rt.err));
    s->pairs.column[of->column] = *form;
out:
    return st;
}

/* Checks that the caller gave every column that the model reads of pairs. */
static gnnc_status check_all(gnnc_session *s) {
    for (int i = 0; i < s->of->n_pair_columns; i++) {
        const RtPairColumn *c = &s->of->pair_column[i];
        if (rt_table_column(s->pairs.one.data->nodes, c->name)) continue;
        return rt_fail(&s->rt.err, GNNC_E_MISSING, "pairs have no column '%s', %s", c->name,
                       c->is_time ? "which tells what is known to them" : "which the model reads");
    }
    return GNNC_OK;
}

/* A graph of one table: the pairs. */
static gnnc_status begin(gnnc_session *s) {
    RtPairs *p = &s->pairs;
    rt_recycle_reset(&p->memory);
    p->one = (gnnc_graph){.from = rt_recycle_alloc(&p->memory)};
    p->one.data = rt_dataset_new(&p->one.from);
    if (!p->one.data) return rt_fail_nomem(&s->rt.err, "pairs");
    gnnc_status st = gnnc_graph_add_nodes(&p->one, TABLE, p->in.n);
    return st == GNNC_OK ? st : rt_fail(&s->rt.err, st, "%s", p->one.err.text);
}

/* Reads the columns that come with the pairs. st: of what was done before; an error is passed on,
 * after each column was taken all the same, so that its `done` is called. */
static gnnc_status read_columns(gnnc_session *s, gnnc_status st) {
    gnnc_pairs *in = &s->pairs.in;
    RtError *err = &s->rt.err;
    gnnc_status given = rt_values_check(in->columns, &in->n_columns, st == GNNC_OK ? err : NULL);
    if (st == GNNC_OK) st = given;
    if (st == GNNC_OK && (in->n < 0 || (in->n && !in->src)))
        st = rt_fail(err, GNNC_E_ARG, "%lld pairs, and no array of sources", (long long)in->n);
    bool brings = in->n_columns || (s->of && s->of->n_pair_columns);
    if (st == GNNC_OK && brings) st = begin(s);
    for (int i = 0; i < in->n_columns; i++) st = take_column(s, rt_values_at(in->columns, i), st);
    return st == GNNC_OK && brings ? check_all(s) : st;
}

gnnc_status rt_session_pairs_read(gnnc_session *s, const gnnc_pairs *in) {
    RtPairs *p = &s->pairs;
    gnnc_status st = rt_session_begin(s, true);
    gnnc_status fits =
        RT_STRUCT_CHECK(st == GNNC_OK ? &s->rt.err : NULL, gnnc_pairs, in, n_columns);
    if (fits != GNNC_OK) return st == GNNC_OK ? fits : st;
    p->in = (gnnc_pairs){0};
    memcpy(&p->in, in, in->struct_size < sizeof p->in ? in->struct_size : sizeof p->in);
    p->time = NULL;
    p->one.loans = NULL;
    p->one.data = NULL;
    return read_columns(s, st);
}

void rt_session_pairs_end(gnnc_session *s) {
    rt_graph_release_loans(&s->pairs.one);
    rt_dataset_close(s->pairs.one.data);
    s->pairs.one.data = NULL;
}
