/* What predictions mean: whose rows they are, what these are called, which class or label each
 * number is of, and what the loss makes of it.
 *
 * Of a trainer the target is a column; a program that only predicts has none, and knows its name:
 * what its classes are called stands in the weights. */
#include "legend.h"

#include <math.h>
#include <string.h>

#include "runtime/bind/bind.h"
#include "runtime/batch/link_batches.h"
#include "runtime/session/session.h"

/* ---- rows ------------------------------------------------------------------------------- */
/* In place of a batch's rows those of the data. */
static int of_data(const rt_program *p, int space) {
    return p->spaces[space].first ? p->spaces[space].whole : space;
}

/* Nodes, edges or graphs of the data; -1: the first dimension is something else. */
static int rows_of(const rt_program *p, int buf) {
    int s = p->bufs[buf].rank ? p->bufs[buf].space : -1;
    if (s >= 0) s = of_data(p, s);
    rt_space_kind kind = s < 0 ? RT_SP_DIM : p->spaces[s].kind;
    return kind == RT_SP_NODE || kind == RT_SP_EDGE || kind == RT_SP_GRAPH ? s : -1;
}

/* Finds the names of the rows that the result is of; of edges those of both ends. */
static gnnc_status name_rows(gnnc_legend *g, const gnnc_trainer *t, RtError *err) {
    const RtBound *b = t->rt.bound;
    gnnc_status st = GNNC_OK;
    for (int k = 0; k < 2 && st == GNNC_OK; k++) {
        const RtTable *of = b->table[g->end[k]];
        g->what[k] = t->program->spaces[g->end[k]].name;
        if (k && g->end[1] == g->end[0])
            g->id[1] = g->id[0];
        else if (of)
            st = rt_row_names(&g->pool, b->dir, of, &g->id[k], err);
    }
    return st;
}

/* Finds what the rows of the result are: nodes, graphs, or edges with their ends. */
static gnnc_status find_rows(gnnc_legend *g, const gnnc_trainer *t, int buf, RtError *err) {
    const rt_program *p = t->program;
    int s = rows_of(p, buf);
    if (s < 0)
        return rt_fail(err, GNNC_E_ARG,
                       "the model's result has no row for each node, edge or graph");
    g->space = g->end[0] = g->end[1] = s;
    gnnc_status st = GNNC_OK;
    if (p->spaces[s].kind == RT_SP_EDGE) {
        g->end[0] = of_data(p, p->spaces[s].src);
        g->end[1] = of_data(p, p->spaces[s].dst);
        g->edges = rt_link_batches_scored(t);
        if (!g->edges) st = rt_legend_edges(g, t, err);
    }
    g->n_rows = g->edges ? g->edges->n_edges : t->x.n[p->spaces[s].sym];
    g->n_nodes = g->edges ? g->edges->n_src : g->n_rows;
    return st == GNNC_OK ? name_rows(g, t, err) : st;
}

/* ---- numbers ---------------------------------------------------------------------------- */
/* What is learned: names of its classes, if it has any, and what it is called. */
typedef struct {
    const char *name; /* "y"; NULL = nothing */
    bool classes;     /* a score for each of them is predicted */
    const RtCodes *codes;
} Target;

static int64_t size_of(const gnnc_trainer *t, int space) {
    const rt_space *s = &t->program->spaces[space];
    return s->sym >= 0 ? t->x.n[s->sym] : s->fixed;
}

/* Describes the target, a column that the trainer knows: its name, whether the result is its
 * classes, and their names. */
static Target column_of(const gnnc_legend *g, const gnnc_trainer *t) {
    const rt_column *c = &t->program->columns[t->target];
    return (Target){c->name,
                    c->kind == RT_COL_CLASS && c->space == g->space && c->cat >= 0 &&
                        g->rank == 1 && g->width == size_of(t, c->cat),
                    &t->rt.bound->codes[t->target]};
}

/* What the result predicts: the name of the target, whether it has classes, and their names. */
static Target target_of(const gnnc_legend *g, const gnnc_trainer *t) {
    const rt_recipe *r = &t->program->recipe;
    const char *dot = r->present && r->learned ? strrchr(r->learned, '.') : NULL;
    if (t->target >= 0) return column_of(g, t);
    if (!dot) return (Target){NULL, false, NULL};
    const RtCodes *k = t->given ? rt_codes_find(t->given->codes, t->given->n, r->learned) : NULL;
    bool named = k && k->n == g->width;
    return (Target){dot + 1, g->rank == 1 && (named || r->outcome == RT_OUTCOME_CLASSES), k};
}

/* What a number of the result is called in tables. */
static const char *word_of(rt_outcome is) {
    switch (is) {
    case RT_OUTCOME_CLASSES:
    case RT_OUTCOME_LOG_ODDS:
        return "probability";
    case RT_OUTCOME_NUMBERS:
        return "prediction";
    case RT_OUTCOME_SCORES:
        break;
    }
    return "score";
}

/* Names the values of a row: "glad", "y", "y_3", "3"; "" = the word alone says it. */
static gnnc_status name_values(gnnc_legend *g, const Target *target, RtError *err) {
    const char *of = target->name && g->is != RT_OUTCOME_NUMBERS ? target->name : "";
    const RtCodes *k = target->codes;
    bool named = g->classes && k && k->of && k->n == g->width;
    g->numbered = g->classes && !named;
    g->value = RT_NEWN(&g->pool, const char *, g->width + 1);
    for (int64_t i = 0; i < g->width && g->value; i++) {
        if (named)
            g->value[i] = rt_pool_strndup(&g->pool, k->names[i], strlen(k->names[i]));
        else if (g->width == 1 && !g->classes)
            g->value[i] = rt_pool_strndup(&g->pool, of, strlen(of));
        else
            g->value[i] = rt_pool_printf(&g->pool, "%s%s%lld", g->classes ? "" : of,
                                         g->classes || !*of ? "" : "_", (long long)i);
        if (!g->value[i]) return rt_fail_nomem(err, "the names of predictions");
    }
    return g->value ? GNNC_OK : rt_fail_nomem(err, "the names of predictions");
}

/* Finds what the numbers of a row are: probabilities of classes or labels, numbers, or scores. */
static gnnc_status find_values(gnnc_legend *g, const gnnc_trainer *t, RtError *err) {
    Target target = target_of(g, t);
    const rt_recipe *r = &t->program->recipe;
    g->is = r->present ? r->outcome : RT_OUTCOME_SCORES;
    g->classes = target.classes;
    if (g->is == RT_OUTCOME_CLASSES && !g->classes) g->is = RT_OUTCOME_SCORES;
    g->word = word_of(g->is);
    g->labels = g->classes || (g->is == RT_OUTCOME_LOG_ODDS && target.name && g->width > 1);
    return name_values(g, &target, err);
}

/* ---- life --------------------------------------------------------------------------------- */
/* buf: what is predicted by t, which sessions may share. */
static gnnc_status make(const RtAlloc *from, const gnnc_trainer *t, int buf, gnnc_legend **out,
                        RtError *err) {
    int64_t dim[RT_MAX_RANK];
    gnnc_legend *g = from->alloc(from->user, sizeof *g);
    gnnc_status st;
    if (!g) return rt_fail_nomem(err, "the names of predictions");
    *g = (gnnc_legend){.from = *from, .width = 1};
    rt_pool_init(&g->pool, &g->from);
    t->program->buf_shape(buf, t->x.n, dim);
    g->rank = t->program->bufs[buf].rank - 1;
    for (int i = 0; i < g->rank; i++) g->width *= g->dim[i] = dim[i + 1];
    TRY(st, find_rows(g, t, buf, err));
    st = find_values(g, t, err);
out:
    if (st == GNNC_OK)
        *out = g;
    else
        gnnc_legend_destroy(g);
    return st;
}

gnnc_status gnnc_trainer_legend(gnnc_trainer *t, gnnc_legend **out) {
    if (out) *out = NULL;
    RT_NOT_NULL(t, out);
    rt_trainer_begin(t);
    gnnc_status st = rt_trainer_need_data(t);
    if (st != GNNC_OK) return st;
    int buf = rt_trainer_prediction(t);
    if (buf < 0)
        return rt_fail(&t->rt.err, GNNC_E_MISSING, "model '%s' predicts nothing", t->program->name);
    return make(&t->outer, t, buf, out, &t->rt.err);
}

/* Gives the ids of the rows of the session's predictions, and what their numbers mean. */
gnnc_status gnnc_session_legend(gnnc_session *s, gnnc_legend **out) {
    if (out) *out = NULL;
    if (!s || !out) return GNNC_E_ARG;
    gnnc_status st = rt_session_opened(s);
    if (st != GNNC_OK) return st;
    if (s->request)
        return rt_fail(&s->rt.err, GNNC_E_STATE, "the session has no graph: its rows have no ids");
    st = make(&s->from, s->of->t, s->of->rows.buf, out, &s->rt.err);
    if (st == GNNC_OK) (*out)->pairs = s->of->links;
    return st;
}

void gnnc_legend_destroy(gnnc_legend *g) {
    if (!g) return;
    RtAlloc from = g->from;
    rt_dataset_close(g->again);
    rt_pool_free(&g->pool);
    from.release(from.user, g);
}

const char *gnnc_legend_error(const gnnc_legend *g) {
    return g ? g->err.text : "";
}

/* ---- what it says ------------------------------------------------------------------------- */
gnnc_status gnnc_legend_describe(const gnnc_legend *g, gnnc_legend_info *out) {
    if (!g || !out) return GNNC_E_ARG;
    gnnc_status st = RT_STRUCT_CHECK(NULL, gnnc_legend_info, out, has_ids);
    if (st != GNNC_OK) return st;
    gnnc_legend_info own = {.table = g->what[0],
                            .destinations = g->edges ? g->what[1] : NULL,
                            .n_rows = g->n_rows,
                            .n_table = g->n_nodes,
                            .n_destinations = g->edges ? g->edges->n_dst : 0,
                            .width = g->width,
                            .rank = g->rank,
                            .outcome = rt_outcome_words.word[g->is],
                            .word = g->word,
                            .has_classes = g->classes,
                            .has_labels = g->labels,
                            .has_ids = g->id[0] != NULL};
    memcpy(own.dim, g->dim, sizeof own.dim);
    rt_struct_copy_out(out, &own, sizeof own);
    return GNNC_OK;
}

const char *gnnc_legend_value(const gnnc_legend *g, int64_t i) {
    return g && i >= 0 && i < g->width ? g->value[i] : NULL;
}

const char *gnnc_legend_id(const gnnc_legend *g, int end, int64_t row) {
    if (!g || (end != 0 && end != 1) || row < 0 || !g->id[end]) return NULL;
    int64_t n = !g->edges ? g->n_rows : end ? g->edges->n_dst : g->edges->n_src;
    return row < n ? g->id[end][row] : NULL;
}

int64_t gnnc_legend_highest(const gnnc_legend *g, const float *values) {
    int64_t best = -1;
    for (int64_t i = 0; g && values && i < g->width; i++)
        if (!isnan(values[i]) && (best < 0 || values[i] > values[best])) best = i;
    return best;
}

/* Its part of a softmax, the highest's being 1: infinite ones share the row. */
static double part_of(double v, double high) {
    return v == high ? 1 : exp(v - high);
}

/* Turns a row's scores into probabilities. */
static void softmax(const gnnc_legend *g, const float *values, float *out) {
    int64_t best = gnnc_legend_highest(g, values);
    double high = best < 0 ? 0 : (double)values[best], sum = 0;
    for (int64_t i = 0; i < g->width; i++) sum += part_of((double)values[i], high);
    for (int64_t i = 0; i < g->width; i++) out[i] = (float)(part_of((double)values[i], high) / sum);
}

gnnc_status gnnc_legend_convert(const gnnc_legend *g, int64_t n, const float *values, float *out) {
    if (!g || n < 0 || (n && (!values || !out))) return GNNC_E_ARG;
    bool odds = g->is == RT_OUTCOME_LOG_ODDS;
    for (int64_t r = 0; r < n; r++, values += g->width, out += g->width) {
        if (g->is == RT_OUTCOME_CLASSES)
            softmax(g, values, out);
        else
            for (int64_t i = 0; i < g->width; i++)
                out[i] = odds ? (float)(1 / (1 + exp(-(double)values[i]))) : values[i];
    }
    return GNNC_OK;
}
