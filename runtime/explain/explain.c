/* What a prediction of a row hangs on, by table, path, column and age, measured twice.
 *
 * Gradient times input, a sum of what @explain gives of each row (passes/explain.c): one step, to
 * first order.  Ablation: the score less what it is without that part, predicted anew for each part
 * (explain_mask.c): exact, but parts that stand in for each other have none, and shares of parts
 * that need each other are counted twice.  Neither adds up to the score; what they miss is told.
 * All of it is computed in one order by one thread, so the bits are always the same. */
#include "explain.h"

#include <math.h>
#include <string.h>

static gnnc_status no_memory(RtExplain *x) {
    return rt_fail_nomem(&x->s->rt.err, "an explanation");
}

/* ---- the score -------- */
static const float *numbers(const RtExplain *x) {
    const gnnc_session *s = x->s;
    int64_t row = s->graph ? s->row[0] : s->m.batch->seed[0][0];
    return (const float *)s->m.x.buf[s->of->rows.buf] + row * s->of->rows.row_width;
}

/* The score that is explained, of the prediction just made: the output that was asked about, plus
 * `others` times each of the other outputs. */
static double score(const RtExplain *x) {
    const float *v = numbers(x);
    double sum = 0;
    for (int64_t k = 0; k < x->s->of->rows.row_width; k++)
        sum += (k == x->e->is.output ? 1 : x->others) * (double)v[k];
    return sum;
}

/* Runs the prediction on the batch as it is now: with the cuts and masks in place. */
static gnnc_status predict(RtExplain *x) {
    gnnc_session *s = x->s;
    gnnc_status st;
    rt_minibatch_begin(&s->m, &s->x, !s->ran);
    TRY(st, rt_minibatch_bind(&s->m, &s->x, x->map, &s->rt.err));
    st = rt_batch_step_run(&s->step, &s->m, !s->ran);
    s->ran |= st == GNNC_OK;
out:
    return st;
}

/* *to gets the score of a prediction made without a part: edges and rows are left out as (how,
 * which) says, and a column is masked, unless it is RT_MASK_NONE. */
static gnnc_status without(RtExplain *x, RtExplainCut how, int which, int column, double *to) {
    rt_explain_cut(x, how, which);
    x->masked = column;
    gnnc_status st = predict(x);
    if (st == GNNC_OK) *to = score(x);
    x->masked = RT_MASK_NONE;
    rt_explain_cut(x, RT_CUT_NOTHING, 0);
    return st;
}

/* The index of the greatest of n values. */
static int64_t highest(const float *v, int64_t n) {
    int64_t best = 0;
    for (int64_t k = 1; k < n; k++)
        if (v[k] > v[best]) best = k;
    return best;
}

/* A class is held against the mean of all others: what all of them have in common tells nothing. */
static gnnc_status choose_output(RtExplain *x, int64_t output) {
    const RtRowOutput *rows = &x->s->of->rows;
    const rt_recipe *r = &x->p->recipe;
    bool classes = r->present && r->outcome == RT_OUTCOME_CLASSES && rows->row_width > 1;
    if (rows->rank > 1)
        return rt_fail(&x->s->rt.err, GNNC_E_STATE, "'%s' gives no list of numbers for a row",
                       x->p->name);
    if (output < -1 || output >= rows->row_width)
        return rt_session_no_row(x->s, "output", output, rows->row_width);
    x->e->is.output = output < 0 ? highest(numbers(x), rows->row_width) : output;
    x->others = classes ? -1 / (double)(rows->row_width - 1) : 0;
    x->e->is.score = score(x);
    return GNNC_OK;
}

/* ---- parts -------- */
/* All of them, and where those of a kind begin. */
typedef struct {
    int of_type, of_relation, of_path, of_column, of_age;
    gnnc_part *part;
    int n, room;
} Parts;

/* Appends a part to the list, with a copy of its name and the number of its rows. False: out of
 * memory. */
static bool add_part(RtExplain *x, Parts *a, int32_t kind, const char *name, int64_t n_rows) {
    if (a->n == a->room) {
        int room = 2 * a->room + 32;
        gnnc_part *more = RT_NEWN(&x->e->pool, gnnc_part, room);
        if (!more) return false;
        if (a->n) memcpy(more, a->part, (size_t)a->n * sizeof *more);
        a->part = more;
        a->room = room;
    }
    const char *own = name ? rt_pool_strndup(&x->e->pool, name, strlen(name)) : NULL;
    if (!own) return false;
    a->part[a->n++] = (gnnc_part){.struct_size = sizeof *a->part,
                                  .kind = kind,
                                  .name = own,
                                  .n_rows = n_rows,
                                  .ablation = NAN};
    return true;
}

/* Edges that have some are a table, too: events with their amounts. */
static bool has_columns(const RtExplain *x, int rel) {
    for (int i = 0; i < x->p->n_columns; i++)
        if (rt_bind_reads(x->p, i) && rt_explain_relation(x, x->p->columns[i].space) == rel)
            return true;
    return false;
}

/* How many nodes and edges of the batch have this age class, the explained row itself not counted.
 */
static int64_t rows_of_age(const RtExplain *x, int age) {
    int64_t n = 0;
    for (int t = 0; t < x->b->n_types; t++)
        for (int64_t i = 0; i < x->b->nodes[t].n; i++)
            n += x->node_age[t][i] == age && !rt_explain_is_asked(x, t, i);
    for (int r = 0; r < x->b->n_rels; r++)
        for (int64_t k = 0; k < x->edges[r].n && x->s->of->source.graph.rel[r].time; k++)
            n += x->edge_age[r][k] == age;
    return n;
}

static int64_t rows_in_batch(const RtExplain *x, int space) {
    int type = rt_explain_type(x, space), rel = rt_explain_relation(x, space);
    return type >= 0 ? x->b->nodes[type].n : rel >= 0 ? x->edges[rel].n : 0;
}

static const char *column_name(RtExplain *x, int column) {
    const rt_column *c = &x->p->columns[column];
    return rt_pool_printf(x->pool, "%s.%s", rt_explain_table(x, c->space), c->name);
}

/* Does the column get an attribution? The time that the prediction is asked at is part of the
 * question, and no input that explains. */
static bool is_explained(const RtExplain *x, int column) {
    const rt_column *c = &x->p->columns[column];
    bool told = c->kind == RT_COL_SPLIT || c->kind == RT_COL_ID || c->is_label;
    bool asked = c->kind == RT_COL_TIME && c->space == x->s->of->rows.space;
    return !told && !asked && x->usual[column] && rows_in_batch(x, c->space) > 0;
}

/* Lists all parts among which the score is divided, in order: tables of nodes, of edges, paths,
 * columns, ages. False: out of memory. */
static bool list_parts(RtExplain *x, Parts *a) {
    bool ok = true;
    for (int t = 0; t < x->b->n_types && ok; t++) {
        const char *name = rt_explain_table(x, x->map->space_of_type[t]);
        ok = add_part(x, a, GNNC_PART_TABLE, name, x->b->nodes[t].n);
    }
    a->of_relation = a->n;
    for (int r = 0; r < x->b->n_rels && ok; r++) {
        const char *name = rt_explain_table(x, x->map->space_of_rel[r]);
        ok = add_part(x, a, GNNC_PART_TABLE, name, x->edges[r].n);
    }
    a->of_path = a->n;
    for (int i = 0; i < x->n_paths && ok; i++)
        ok = add_part(x, a, GNNC_PART_PATH, x->path[i].name, x->path[i].n_rows);
    a->of_column = a->n;
    for (int i = 0; i < x->p->n_columns && ok; i++) {
        int64_t n = rows_in_batch(x, x->p->columns[i].space);
        ok = add_part(x, a, GNNC_PART_COLUMN, column_name(x, i), n);
    }
    a->of_age = a->n;
    for (int i = 0; i < RT_N_AGES && ok; i++)
        ok = add_part(x, a, GNNC_PART_AGE, rt_explain_age(i), rows_of_age(x, i));
    return ok;
}

/* ---- gradient times input -------- */
/* The one that is called "orders.total". */
static int column_of(const RtExplain *x, const char *of) {
    for (int i = 0; i < x->p->n_columns; i++) {
        const rt_column *c = &x->p->columns[i];
        const char *table = x->p->spaces[c->space].name;
        size_t n = strlen(table);
        if (strncmp(of, table, n) == 0 && of[n] == '.' && strcmp(of + n + 1, c->name) == 0)
            return i;
    }
    return -1;
}

/* Adds v, a gradient times input for each row of the buffer's space, to the sums of the parts that
 * the row belongs to: column, table, path, age. */
static void add_share(RtExplain *x, Parts *a, const rt_buf *buf, const float *v) {
    int type = rt_explain_type(x, buf->space), rel = rt_explain_relation(x, buf->space);
    int column = column_of(x, buf->of);
    int64_t n = x->s->m.x.n[x->p->spaces[buf->space].sym];
    for (int64_t i = 0; i < n; i++) {
        double g = (double)v[i];
        int path = type >= 0 ? x->node_path[type][i] : rel >= 0 ? x->edge_path[rel][i] : -1;
        int age = type >= 0 ? x->node_age[type][i] : rel >= 0 ? x->edge_age[rel][i] : RT_AGE_NONE;
        x->e->is.gradient += g;
        if (column >= 0) a->part[a->of_column + column].gradient += g;
        if (type >= 0) a->part[a->of_type + type].gradient += g;
        if (type < 0 && rel >= 0) a->part[a->of_relation + rel].gradient += g;
        if (path >= 0) a->part[a->of_path + path].gradient += g;
        a->part[a->of_age + age].gradient += g;
    }
}

/* Sets the input of @explain that is called so, if the program has it. */
static void ask(RtExplain *x, const char *input, float *value) {
    int b = rt_buf_find(x->p, RT_BUF_INPUT, input);
    if (b >= 0) x->s->m.x.buf[b] = value;
}

/* Runs @explain on the batch and adds its outputs, gradients times inputs, to the parts. */
static gnnc_status add_gradients(RtExplain *x, Parts *a) {
    gnnc_session *s = x->s;
    float asked[2] = {(float)x->e->is.output, (float)x->others};
    gnnc_status st;
    rt_minibatch_begin(&s->m, &s->x, !s->ran);
    TRY(st, rt_minibatch_bind(&s->m, &s->x, x->map, &s->rt.err));
    ask(x, "explain.output", &asked[0]);
    ask(x, "explain.others", &asked[1]);
    TRY(st, rt_batch_step_run(&s->explain, &s->m, !s->explained));
    s->explained = true;
    for (int b = 0; b < x->p->n_bufs; b++) {
        const rt_buf *buf = &x->p->bufs[b];
        if (buf->kind == RT_BUF_OUTPUT && buf->role == RT_OUT_SHARE)
            add_share(x, a, buf, s->m.x.buf[b]);
    }
out:
    return st;
}

/* ---- ablation -------- */
/* Runs the model without one part; the part gets the difference that this makes to the score.
 * which: its number among those of kind `how`; column: the one to mask. */
static gnnc_status ablate(RtExplain *x, gnnc_part *part, RtExplainCut how, int which, int column) {
    double left = 0;
    gnnc_status st = without(x, how, which, column, &left);
    part->ablation = x->e->is.score - left;
    return st;
}

/* Measures each part of the explanation by leaving it out: node types, relations with columns,
 * paths, columns and ages, each cut out of the graph or masked, then everything at once. In graph
 * tasks node types are not left out: the readout pools their rows whatever edges are cut. */
static gnnc_status ablate_parts(RtExplain *x, Parts *a) {
    bool graphs = x->s->of->graphs;
    gnnc_status st = GNNC_OK;
    for (int t = 0; t < x->b->n_types && !graphs; t++)
        if (x->b->nodes[t].n)
            TRY(st, ablate(x, &a->part[a->of_type + t], RT_CUT_TYPE, t, RT_MASK_NONE));
    for (int r = 0; r < x->b->n_rels; r++)
        if (x->edges[r].n && has_columns(x, r))
            TRY(st, ablate(x, &a->part[a->of_relation + r], RT_CUT_RELATION, r, RT_MASK_NONE));
    for (int i = 0; i < x->n_paths; i++)
        if (x->path[i].parent >= 0)
            TRY(st, ablate(x, &a->part[a->of_path + i], RT_CUT_PATH, i, RT_MASK_NONE));
    for (int i = 0; i < x->p->n_columns; i++)
        if (is_explained(x, i))
            TRY(st, ablate(x, &a->part[a->of_column + i], RT_CUT_NOTHING, 0, i));
    for (int i = 0; i < RT_N_AGES && !isnan(x->e->is.at); i++)
        if (a->part[a->of_age + i].n_rows)
            TRY(st, ablate(x, &a->part[a->of_age + i], RT_CUT_AGE, i, RT_MASK_NONE));
    st = without(x, RT_CUT_ALL, 0, RT_MASK_ALL, &x->e->is.without);
out:
    return st;
}

/* Whether the part is listed in the explanation: it has rows in the batch, or a gradient. */
static bool is_told(const RtExplain *x, const Parts *a, int i) {
    const gnnc_part *p = &a->part[i];
    bool relation = i >= a->of_relation && i < a->of_path;
    if (relation && !has_columns(x, i - a->of_relation)) return false;
    if (p->kind == GNNC_PART_COLUMN && !is_explained(x, i - a->of_column)) return p->gradient != 0;
    if (p->kind == GNNC_PART_AGE && isnan(x->e->is.at)) return false;
    return p->n_rows > 0 || p->gradient != 0;
}

/* The order of the parts of a kind: the greatest effect of leaving them out first, then the
 * greatest gradient. Kinds and ages stay as they stand. */
static bool comes_first(const gnnc_part *p, const gnnc_part *q) {
    double v = isnan(p->ablation) ? 0 : fabs(p->ablation);
    double w = isnan(q->ablation) ? 0 : fabs(q->ablation);
    if (p->kind != q->kind || p->kind == GNNC_PART_AGE) return false; /* as they stand */
    return v != w ? v > w : fabs(p->gradient) > fabs(q->gradient);
}

/* Puts the parts that are told into the explanation: kind after kind, those of a kind ordered by
 * weight (ages by age). */
static void take_parts(RtExplain *x, Parts *a) {
    int n = 0;
    for (int i = 0; i < a->n; i++) {
        if (!is_told(x, a, i)) continue;
        gnnc_part p = a->part[i];
        int at = n++;
        for (; at > 0 && comes_first(&p, &a->part[at - 1]); at--) a->part[at] = a->part[at - 1];
        a->part[at] = p;
    }
    x->e->part = a->part;
    x->e->is.n_parts = n;
}

/* ---- the call -------- */
/* Explains output `output` of one row (-1: its highest): draws its batch, then measures parts by
 * gradients and by leaving them out. */
static gnnc_status explain(RtExplain *x, int64_t row, int64_t output) {
    gnnc_session *s = x->s;
    Parts a = {.n = 0};
    gnnc_status st;
    TRY(st, rt_session_draw(s, row));
    TRY(st, rt_explain_usual(x));
    TRY(st, predict(x));
    TRY(st, choose_output(x, output));
    x->e->is.row = row;
    x->e->is.at = s->time ? s->time[0] : NAN;
    TRY(st, rt_explain_paths(x));
    TRY(st, rt_explain_keep(x));
    if (!list_parts(x, &a)) {
        st = no_memory(x);
        goto out;
    }
    TRY(st, add_gradients(x, &a));
    st = ablate_parts(x, &a);
    if (st == GNNC_OK) take_parts(x, &a);
out:
    return st;
}

/* Makes the session ready to explain: the program must have @explain, and the session be on the
 * CPU. */
static gnnc_status begin(gnnc_session *s) {
    gnnc_status st = rt_session_begin_on_graph(s);
    if (st != GNNC_OK) return st;
    const rt_program *p = s->of->t->program;
    if (!rt_phase_of(p, RT_PHASE_EXPLAIN))
        return rt_fail(&s->rt.err, GNNC_E_STATE, "'%s' was compiled without --explain", p->name);
    if (s->rt.device)
        return rt_fail(&s->rt.err, GNNC_E_STATE,
                       "predictions are explained by sessions on the cpu");
    return s->explain.most ? GNNC_OK
                           : rt_batch_step_init(&s->explain, &s->x, NULL, RT_PHASE_EXPLAIN);
}

/* Explains one output of one row into e: sets up the state, with the hook that masks columns of the
 * batch, and removes it afterwards. */
static gnnc_status explain_row(gnnc_session *s, int64_t row, int64_t output, gnnc_explanation *e) {
    RtPool pool;
    RtExplain x = {.s = s, .e = e, .pool = &pool, .p = s->of->t->program, .masked = RT_MASK_NONE};
    x.map = &s->of->source.map;
    x.b = s->m.batch;
    rt_pool_init(&pool, &s->from);
    s->m.edit = rt_explain_edit;
    s->m.editor = &x;
    gnnc_status st = explain(&x, row, output);
    s->m.edit = NULL;
    s->m.editor = NULL;
    rt_pool_free(&pool);
    return st;
}

/* Explains output number `output` of the prediction for a row; *out gets the explanation, for
 * gnnc_explanation_free(). Documented in gnnc.h. */
gnnc_status gnnc_session_explain(gnnc_session *s, int64_t row, int64_t output,
                                 gnnc_explanation **out) {
    if (out) *out = NULL;
    if (!s || !out) return GNNC_E_ARG;
    gnnc_status st = begin(s);
    if (st != GNNC_OK) return st;
    gnnc_explanation *e = s->from.alloc(s->from.user, sizeof *e);
    if (!e) return rt_fail_nomem(&s->rt.err, "an explanation");
    *e = (gnnc_explanation){.from = s->from, .is.struct_size = sizeof e->is};
    rt_pool_init(&e->pool, &e->from);
    st = explain_row(s, row, output, e);
    if (st == GNNC_OK)
        *out = e;
    else
        gnnc_explanation_destroy(e);
    return st;
}

void gnnc_explanation_destroy(gnnc_explanation *e) {
    if (!e) return;
    RtAlloc from = e->from;
    rt_pool_free(&e->pool);
    from.release(from.user, e);
}

gnnc_status gnnc_explanation_describe(const gnnc_explanation *e, gnnc_explanation_info *out) {
    if (!e || !out) return GNNC_E_ARG;
    gnnc_status st = RT_STRUCT_CHECK(NULL, gnnc_explanation_info, out, n_parts);
    if (st == GNNC_OK) rt_struct_copy_out(out, &e->is, sizeof e->is);
    return st;
}

/* *out gets part i of the explanation. Documented in gnnc.h. */
gnnc_status gnnc_explanation_part(const gnnc_explanation *e, int64_t i, gnnc_part *out) {
    if (!e || !out) return GNNC_E_ARG;
    gnnc_status st = RT_STRUCT_CHECK(NULL, gnnc_part, out, ablation);
    if (st != GNNC_OK) return st;
    if (i < 0 || i >= e->is.n_parts) return GNNC_E_RANGE;
    rt_struct_copy_out(out, &e->part[i], sizeof e->part[i]);
    return GNNC_OK;
}
