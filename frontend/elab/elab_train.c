/* A model's phases, one function each: the body is elaborated once per phase, with
 * `training` true in @train alone. */
#include "frontend/elab/elab.h"
#include "ir/text.h"

#include <string.h>

/* ---- settings of a model --------------------------------------------------------------- */
/* Binds a parameter of the model to its -D, its default or, if it is settable, to an option of
 * the program. False after a diagnostic. */
static bool bind_setting(Elab *e, Frame *f, const Ast *formal) {
    const FeDefine *d = elab_define_find(e, formal->text);
    Value v;
    if (d) {
        if (!elab_define_value(e, d, formal->kid[0] ? formal->kid[0]->text : NULL, &v))
            return false;
    } else if (formal->kid[1])
        v = elab_eval(e, formal->kid[1]);
    else {
        diag_add(e->c, DIAG_E0311, formal->span,
                 "'%s' has no value: give it a default, or -D %s=..", formal->text, formal->text);
        return false;
    }
    if (elab_is_settable(e, formal) && !elab_option_value(e, formal, &v)) return false;
    if (!elab_fit_formal(e, f, formal, &v, formal->span)) return false;
    elab_bind(e, formal->text, v);
    return true;
}

/* Binds all parameters of the model; the first is its graph. False after a diagnostic. */
static bool bind_model(Elab *e, Frame *f, const Ast *model) {
    const Ast *formals = model->kid[0];
    elab_bind(e, formals->kid[0]->text, (Value){.kind = VAL_GRAPH});
    bool ok = true;
    for (int i = 1; i < formals->n; i++)
        ok = !elab_formal_is_repeated(e, formals, i) && bind_setting(e, f, formals->kid[i]) && ok;
    return ok;
}

/* Binds the model's parameters, runs its body, and returns its result with the dimensions in the
 * declared order. NULL after a diagnostic. */
static Op *run_model(Elab *e, Frame *f, const Ast *model) {
    Space *links[2];
    if (!bind_model(e, f, model)) return NULL;
    Value v =
        elab_frame_run(e, f, model->kid[2], model->kid[1], arena_printf(e->a, "'%s'", model->text));
    Type want;
    int n = elab_links_dims(e, links);
    if (n && !elab_is_poison(v)) {
        const Ast *type = model->kid[1];
        if (v.kind == VAL_TENSOR && type->n == 1 && type->kid[0]->kind == AST_NAME &&
            strcmp(type->kid[0]->text, "links") == 0)
            return elab_tensor_order(e, v.op, n, links, type->span).op;
        diag_add(e->c, DIAG_E0213, type->span, "a model that scores links gives f32[links]");
        return NULL;
    }
    if (elab_is_poison(v) || !elab_type_spaces(e, model->kid[1], &want)) return NULL;
    return elab_tensor_order(e, v.op, want.rank, want.dim, model->kid[1]->span).op;
}

/* ---- targets and masks --------------------------------------------------------------------- */
typedef struct {
    const Ast *item;
    Column *col, *split;
    Span pred_at; /* of what the model returns */
    Space *rows;  /* of a sampled step: those it learns from; NULL = all */
} Target;

/* The first item of kind k in a recipe; NULL: it has none. */
static const Ast *item_of(const Ast *train, AstKind k) {
    for (int i = 0; i < train->n; i++)
        if (train->kid[i]->kind == k) return train->kid[i];
    return NULL;
}

/* The table of that name in the graph: node type, relation or "graph". NULL: there is none. */
static Space *rows_named(Elab *e, const char *name) {
    if (strcmp(name, "graph") == 0) return e->graph_space;
    for (int i = 0; i < e->nodes.n; i++)
        if (strcmp(e->nodes.v[i].space->name, name) == 0) return e->nodes.v[i].space;
    for (int i = 0; i < e->edges.n; i++)
        if (strcmp(e->edges.v[i].space->name, name) == 0) return e->edges.v[i].space;
    return NULL;
}

static bool is_target(const Column *c) {
    return c->kind == COL_CLASS || c->kind == COL_MULTILABEL || c->kind == COL_FLOAT;
}

/* The target of a recipe. NULL: it lacks, which is reported unless an item could not be parsed. */
static const Ast *target_item(Elab *e, const Ast *train) {
    const Ast *item = item_of(train, AST_TARGET);
    if (!item && !item_of(train, AST_BAD))
        diag_add(e->c, DIAG_E0306, train->span, "the recipe of '%s' has no target", train->text);
    return item;
}

static bool targets_links(const Ast *train) {
    const Ast *item = item_of(train, AST_TARGET);
    return item && !item->kid[0] && strcmp(item->text, "links") == 0;
}

/* Fills *t with the column that a recipe learns and the splits of its table. False after a
 * diagnostic. */
static bool find_target(Elab *e, const Ast *train, Target *t) {
    if (!(t->item = target_item(e, train))) return false;
    const Ast *col = t->item->kid[0];
    if (!col) {
        diag_add(e->c, DIAG_E0307, t->item->span,
                 "a target is a column: paper.y; or 'links', in a model that scores links(..)");
        return false;
    }
    Space *s = rows_named(e, t->item->text);
    t->col = s ? elab_graph_column(e, s, col->text) : NULL;
    if (!t->col) {
        Names known = s ? elab_column_names(e, s) : (Names){0};
        diag_add(e->c, DIAG_E0307, t->item->span, "there is no column '%s.%s'%s", t->item->text,
                 col->text, elab_names_advice(e, col->text, &known));
        return false;
    }
    for (int i = 0; i < e->m->cols.n; i++)
        if (e->m->cols.v[i]->space == s && e->m->cols.v[i]->kind == COL_SPLIT)
            t->split = e->m->cols.v[i];
    if (!is_target(t->col))
        diag_add(e->c, DIAG_E0307, t->item->span,
                 "'%s.%s' cannot be learned; a target is class[C], "
                 "multilabel[T] or f32[..]",
                 t->item->text, col->text);
    else if (!t->split)
        diag_add(e->c, DIAG_E0307, t->item->span, "'%s' has no 'split' column", t->item->text);
    else
        return true;
    return false;
}

/* Whether the model gives a value for each row of the target's table; reported if not. */
static bool target_fits(Elab *e, const Target *t, const Op *pred) {
    if (type_has(&pred->type, t->col->space)) return true;
    diag_add(e->c, DIAG_E0307, t->item->span, "the target is on '%s', but the model gives %s",
             t->col->space->name, elab_type_text(e, &pred->type));
    return false;
}

/* The rows of x, which lives on the target's, that the step learns from. */
static Op *rows_of(Elab *e, const Target *t, Op *x) {
    if (!t->rows || t->rows == t->col->space) return x;
    return b_slice(&e->b, x, t->col->space, t->rows, expr_const(e->a, 0));
}

/* A bool for each row of the target's table: whether it is in the split and, if the target is a
 * class, has one. */
static Op *split_mask(Elab *e, const Target *t, int split) {
    e->b.span = t->item->span;
    Op *of = rows_of(e, t, b_data(&e->b, t->split)), *label = rows_of(e, t, b_data(&e->b, t->col));
    Op *mask = b_binary(&e->b, OP_EQ, of, b_const(&e->b, DT_I32, split));
    if (t->col->kind != COL_CLASS) return mask;
    Op *labelled = b_binary(&e->b, OP_LE, b_const(&e->b, DT_I32, 0), label);
    return b_binary(&e->b, OP_AND, mask, labelled);
}

/* ---- losses and metrics -------- */
/* Adds to a diagnostic at the target or the model's result for which loss or metric it is.
 * before: how many diagnostics there were. */
static void note_term(Elab *e, const Term *t, int before) {
    if (e->c->diags.n == before || e->c->diags.v[before].sev != SEV_ERROR) return;
    if (e->c->diags.v[before].span.line != t->at->span.line)
        diag_note(e->c, t->at->span, "for the %s '%s', here", t->is_loss ? "loss" : "metric",
                  t->fn->text);
}

/* Calls a loss or metric with the prediction, the target and the mask of the rows that count.
 * NULL after a diagnostic. */
static Op *apply_term(Elab *e, const Term *t, const Target *target, Op *pred, Op *mask) {
    Value v[3] = {val_tensor(pred), val_poison(), val_tensor(mask)};
    Span at[3] = {target->pred_at, target->item->span, t->at->span};
    int before = e->c->diags.n;
    e->b.span = target->item->span;
    v[1] = val_tensor(rows_of(e, target, b_data(&e->b, target->col)));
    if (!elab_term_takes(e, t, target->col, v[1].op->type.dt)) return NULL;
    if (!elab_term_scores_classes(e, t, target->col, pred)) return NULL;
    e->b.span = t->at->span;
    Args args = t->args;
    args.n = 3;
    args.v = v;
    args.at = at;
    Value r = elab_call_value(e, (Value){.kind = VAL_FN, .decl = t->fn}, &args);
    Op *x = elab_to_tensor(e, r, DT_F32, t->at->span);
    if (!x) note_term(e, t, before);
    if (!x) return NULL;
    if (x->type.rank == 0 && x->type.dt == DT_F32) return x;
    diag_add(e->c, DIAG_E0307, t->at->span, "'%s' gives %s; a loss or metric is one f32",
             t->fn->text, elab_type_text(e, &x->type));
    return NULL;
}

/* The weighted sum of the recipe's losses over the rows of the mask. NULL: none of them is
 * right. */
static Op *total_loss(Elab *e, const Terms *losses, const Target *target, Op *pred, Op *mask) {
    Op *sum = NULL;
    for (int i = 0; i < losses->n; i++) {
        const Term *t = &losses->v[i];
        Op *x = apply_term(e, t, target, pred, mask);
        if (!x) continue;
        e->b.span = t->at->span;
        x = elab_term_weigh(e, t, x);
        sum = sum ? b_binary(&e->b, OP_ADD, sum, x) : x;
    }
    return sum;
}

/* Adds x to the outputs of the present phase under this name. use: what it is for. NULL adds
 * none. */
void elab_output_of_phase(Elab *e, const char *name, OutputUse use, Op *x) {
    if (!x) return;
    if (!x->hint) x->hint = name;
    b_output_as(&e->b, name, use, x);
}

static void output_of_split(Elab *e, OutputRole role, const char *of, SplitKind split, Op *x) {
    const char *name = arena_printf(e->a, "%s.%s", of, text_SplitKind.word[split]);
    elab_output_of_phase(e, name, (OutputUse){.role = role, .split = split, .of = of}, x);
}

/* Adds the losses and metrics of each split to the outputs of @eval. */
static void eval_outputs(Elab *e, const Terms *losses, const Terms *metrics, const Target *target,
                         Op *pred) {
    for (int s = SPLIT_TRAIN; s <= SPLIT_TEST; s++) {
        Op *mask = split_mask(e, target, s);
        output_of_split(e, OUT_LOSS, "loss", (SplitKind)s,
                        total_loss(e, losses, target, pred, mask));
        for (int i = 0; i < metrics->n; i++)
            output_of_split(e, OUT_METRIC, elab_metric_name(e, metrics, i), (SplitKind)s,
                            apply_term(e, &metrics->v[i], target, pred, mask));
    }
}

/* ---- phases -------- */
/* Which of its dimensions a value's rows are: nodes, or else graphs; -1: it has none. */
static int dim_of_rows(const Op *x) {
    static const SpaceKind kinds[] = {SP_NODE, SP_GRAPH};
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < x->type.rank; i++)
            if (x->type.dim[i]->kind == kinds[k]) return i;
    return -1;
}

/* One row per node or graph, whatever order the model's arithmetic left; NULL: on neither. */
static Op *node_rows(Elab *e, Op *x) {
    int at = dim_of_rows(x);
    if (at < 0) return NULL;
    Space *to[MAX_RANK] = {x->type.dim[at]};
    for (int i = 0, k = 1; i < x->type.rank; i++)
        if (i != at) to[k++] = x->type.dim[i];
    x = elab_to_dense(e, x);
    return at == 0 ? x : b_copy(&e->b, x, type_make(x->type.dt, x->type.rank, to));
}

/* x as node_rows gives it, but only the rows of the batch's seeds. NULL: x is not on their
 * nodes. */
static Op *seed_rows(Elab *e, Op *x) {
    x = node_rows(e, x);
    if (!x || !e->rows || x->type.dim[0] != e->rows->prefix_of) return NULL;
    return b_slice(&e->b, x, e->rows->prefix_of, e->rows, expr_const(e->a, 0));
}

/* The next name of a list, "h,z", whose rest begins at *at. NULL: there is none. */
static const char *next_layer(const Elab *e, const char **at) {
    size_t n = strcspn(*at, ",");
    if (!**at) return NULL;
    const char *name = arena_strndup(e->a, *at, n);
    *at += n + ((*at)[n] == ',');
    return name;
}

/* Whether @embed gives this layer: a trainer gives all, a program that serves those of --embed. */
static bool is_asked_for(const Elab *e, const char *layer) {
    const char *at = e->opt->embed, *name;
    if (!e->opt->serve || !strcmp(at, "all")) return true;
    while ((name = next_layer(e, &at)))
        if (!strcmp(name, layer)) return true;
    return false;
}

/* Reports names in --embed that are no layers of rows. */
static void check_asked_for(Elab *e, Span span) {
    const char *at = e->opt->serve && strcmp(e->opt->embed, "all") ? e->opt->embed : "", *name;
    Names known = {0};
    for (int i = 0; i < e->bindings.n; i++) {
        if (dim_of_rows(e->bindings.v[i].op) >= 0) vec_push(e->a, &known, e->bindings.v[i].name);
    }
    while ((name = next_layer(e, &at)))
        if (!func_output(e->b.f, arena_printf(e->a, "embed.%s", name)))
            diag_add(e->c, DIAG_E0516, span, "there is no layer '%s' of rows to embed%s", name,
                     elab_names_advice(e, name, &known));
}

/* Adds the values of the model's body that are asked for, and have rows, to the outputs of
 * @embed. */
static void embed_outputs(Elab *e) {
    for (int i = 0; i < e->bindings.n; i++) {
        Op *x = e->bindings.v[i].op, *rows = NULL;
        const char *of = e->bindings.v[i].name;
        if (!is_asked_for(e, of)) continue;
        if (x->func == e->b.f) rows = e->in_batch ? seed_rows(e, x) : node_rows(e, x);
        OutputUse use = {.role = OUT_EMBED, .of = of};
        if (rows) b_output_as(&e->b, arena_printf(e->a, "embed.%s", of), use, rows);
    }
}

static Op *with_penalty(Elab *e, Op *loss) {
    Op *more = e->links.penalty;
    return loss && more ? b_binary(&e->b, OP_ADD, loss, more) : loss;
}

/* Makes the outputs of @train or @eval for a model that scores links. What its losses and
 * metrics take is made in elab_links.c. */
static void link_outputs(Elab *e, Phase p, const Ast *model, const Ast *train, Op *pred,
                         Recipe *recipe) {
    Terms losses = {0}, metrics = {0};
    const Ast *item = target_item(e, train);
    if (!item) return;
    if (!targets_links(train)) {
        diag_add(e->c, DIAG_E0307, item->span, "the model scores links: its target is 'links'");
        return;
    }
    LinkTask t = {.e = e, .model = model, .item = item, .pred = pred};
    elab_recipe_terms(e, train, AST_LOSS, &losses);
    elab_recipe_terms(e, train, AST_METRIC, &metrics);
    LinksForm form = pred->type.rank == 1 ? LINKS_FORM_PAIRS : LINKS_FORM_QUERIES;
    if (p == PHASE_EVAL) {
        elab_links_metrics(&t, &metrics);
        if (metrics.n) recipe->sample.eval_links = form;
        return;
    }
    elab_recipe(e, train, recipe);
    if (!item_of(train, AST_SAMPLE) && !item_of(train, AST_BAD))
        diag_add(e->c, DIAG_E0306, train->span,
                 "a recipe for links says how many a step learns from: sample { batch 1024 }");
    if (!recipe->sample.batch) return;
    recipe->sample.train_links = form;
    t.recipe = recipe;
    bool ranks = elab_links_mode_of(e, train, false) == LINKS_QUERIES;
    if (e->timed && form == LINKS_FORM_PAIRS) e->pred = ranks ? elab_links_of_all(&t) : pred->type;
    elab_output_of_phase(e, "loss", (OutputUse){.role = OUT_LOSS},
                         with_penalty(e, elab_links_loss(&t, &losses)));
}

/* Makes the outputs of a phase: the loss, metrics, predictions and hidden layers that it is for.
 * @train also fills *recipe and e->rows (the rows of a batch) and, where @eval judges what
 * @predict gave of rows, e->pred (its type). */
static void phase_outputs(Elab *e, Phase p, const Ast *train, Op *pred, Span pred_at,
                          Recipe *recipe) {
    Target target = {.pred_at = pred_at};
    Terms losses = {0}, metrics = {0};
    if (p == PHASE_PREDICT)
        elab_output_of_phase(e, "pred", (OutputUse){.role = OUT_PRED},
                             e->in_batch && !e->links.target ? seed_rows(e, pred) : pred);
    if (p == PHASE_EMBED) embed_outputs(e);
    if (p == PHASE_EMBED) check_asked_for(e, pred_at);
    if (p != PHASE_TRAIN && p != PHASE_EVAL) return;
    bool fits = find_target(e, train, &target) && target_fits(e, &target, pred);
    elab_recipe_terms(e, train, AST_LOSS, &losses);
    elab_recipe_terms(e, train, AST_METRIC, &metrics);
    if (p == PHASE_EVAL) {
        if (fits) eval_outputs(e, &losses, &metrics, &target, pred);
        return;
    }
    elab_recipe(e, train, recipe);
    if (!fits) return;
    for (int i = 0; i < losses.n; i++) elab_term_warns_of_probabilities(e, &losses.v[i], pred);
    if (recipe->sample.batch && target.col->space->kind == SP_NODE)
        e->rows = target.rows = space_prefix(e->m, target.col->space, 0, target.item->span);
    if (e->by_row && e->rows) e->pred = node_rows(e, pred)->type;
    Op *mask = split_mask(e, &target, SPLIT_TRAIN);
    elab_output_of_phase(
        e, "loss", (OutputUse){.role = OUT_LOSS},
        with_penalty(e, total_loss(e, &losses, &target, rows_of(e, &target, pred), mask)));
}

/* What @eval judges in place of running the model's body: an input with what @predict gave of
 * all rows, of all links of a split, or of its queries and all nodes. NULL: there is none. */
static Op *given(Elab *e, Frame *f, const Ast *model) {
    if (!e->pred.rank || !bind_model(e, f, model)) return NULL;
    if (e->links.target) e->links.now = e->pred.dim[0];
    e->links.open = e->links.target && e->pred.rank == 2;
    return b_input(&e->b, "pred", e->pred);
}

/* Are rows predicted from drawn neighbours, though the recipe's evaluation is not? */
static bool serves_drawn(const Elab *e, Phase p) {
    return (p == PHASE_PREDICT || p == PHASE_EMBED) && e->opt->draw && !e->timed && e->rows &&
           e->m->recipe.sample.n_hops > 0;
}

/* Does this phase run over batches of drawn neighbours? */
static bool is_in_batch(const Elab *e, Phase p) {
    if (p == PHASE_TRAIN) return e->draws;
    return (e->timed && p != PHASE_EVAL) || serves_drawn(e, p);
}

/* Elaborates one phase of the program: runs the model's body and makes the phase's outputs.
 * train: the recipe; NULL = none. */
static void elab_phase(Elab *e, Phase p, const Ast *model, const Ast *train) {
    Func *fn = func_new_phase(e->m, p);
    fn->span = model->span;
    e->b = (Builder){.m = e->m, .f = fn, .span = model->span};
    e->training = p == PHASE_TRAIN;
    e->in_batch = is_in_batch(e, p);
    e->logs = p == PHASE_TRAIN || p == (e->timed ? PHASE_PREDICT : PHASE_EVAL);
    e->stream = 0;
    e->bindings.n = 0;
    bool trains = p == PHASE_TRAIN, scores = train && (trains || p == PHASE_EVAL);
    e->links.penalty = NULL;
    e->links.target = train && targets_links(train);
    bool brought = e->opt->serve && p == PHASE_PREDICT, in_pairs = (e->timed && !trains) || brought;
    elab_links_begin(e, in_pairs ? LINKS_PAIRS
                        : scores ? elab_links_mode_of(e, train, trains)
                                 : LINKS_ALL);
    Frame frame, *f = elab_frame_push(e, &frame, model, NULL, model->span);
    f->is_model = true;
    Op *pred = e->timed && p == PHASE_EVAL ? given(e, f, model) : run_model(e, f, model);
    if (pred && scores && e->links.now)
        link_outputs(e, p, model, train, pred, &e->m->recipe);
    else if (pred)
        phase_outputs(e, p, train, pred, f->result_at, &e->m->recipe);
    else if (train && p == PHASE_TRAIN) { /* the recipe's own mistakes are told as well */
        Target target;
        Recipe unused = {0};
        if (!e->links.target) find_target(e, train, &target);
        elab_recipe(e, train, &unused);
    }
    elab_flush_states(e);
    e->frame = f->up;
    if (e->stream > e->m->n_streams) e->m->n_streams = e->stream;
}

/* Runs the model's body once more in the present phase, in a frame of its own. NULL after a
 * mistake. */
Op *elab_run_model(Elab *e, const Ast *model) {
    Frame frame, *f = elab_frame_push(e, &frame, model, NULL, model->span);
    f->is_model = true;
    Op *pred = run_model(e, f, model);
    e->frame = f->up;
    return pred;
}

/* Elaborates @embed, if the program has it. */
static void elab_embed(Elab *e, const Ast *model, const Ast *train) {
    /* Of links by time a node is seen once for each of them. */
    bool has_layers = !e->timed || e->by_row;
    if (has_layers && (!e->opt->serve || e->opt->embed))
        elab_phase(e, PHASE_EMBED, model, train);
    else if (!has_layers && e->opt->serve && e->opt->embed)
        diag_add(e->c, DIAG_E0516, model->span,
                 "--embed: a node of links by time is seen anew for each of them");
}

void elab_phases(Elab *e, const Ast *model, const Ast *train) {
    e->draws = train && elab_draws(train);
    e->timed = train && elab_evaluates_drawn(train);
    e->by_row = e->timed && !targets_links(train);
    e->rows = NULL;
    e->pred = (Type){0};
    if (train) elab_phase(e, PHASE_TRAIN, model, train);
    if (train) elab_phase(e, PHASE_EVAL, model, train);
    /* Links that are served have the whole graph around them, whatever training draws. */
    bool draws = e->draws;
    e->draws &= !e->opt->serve || e->timed;
    elab_phase(e, PHASE_PREDICT, model, train);
    e->draws = draws;
    if (serves_drawn(e, PHASE_PREDICT))
        e->m->recipe.sample.serve = true;
    else if (e->opt->draw && !e->timed)
        diag_add(e->c, DIAG_E0516, model->span,
                 "--draw draws what the recipe's fanout does around rows of nodes: there is none");
    elab_embed(e, model, train);
    elab_check_stored_as(e);
    if (train) elab_check_sampled(e, train);
    elab_check_times(e);
    elab_check_unreached(e);
}

/* The first recipe of a model in the file; NULL: it has none. */
const Ast *elab_train_of(const Ast *file, const Ast *model) {
    for (int i = 0; i < file->n; i++)
        if (file->kid[i]->kind == AST_TRAIN && strcmp(file->kid[i]->text, model->text) == 0)
            return file->kid[i];
    return NULL;
}

/* The graph that the first parameter of a model names. NULL after a diagnostic. */
static const Ast *graph_of(Elab *e, const Ast *model) {
    const Ast *formals = model->kid[0], *g = formals->n ? formals->kid[0] : NULL;
    const Ast *type = g ? g->kid[0] : NULL;
    const Ast *decl = type ? strmap_get(&e->globals, type->text) : NULL;
    if (!type || g->flag)
        diag_add(e->c, DIAG_E0311, model->span,
                 "the first parameter of a model is its graph: %s(g: Graph)", model->text);
    else if (!decl || decl->kind != AST_GRAPH) {
        diag_add(e->c, DIAG_E0311, type->span, "there is no graph '%s'", type->text);
        return NULL;
    }
    return type && !g->flag ? decl : NULL;
}

/* Whether a model declares that it gives a tensor; reported if not. */
static bool result_is_tensor(Elab *e, const Ast *model) {
    const Ast *t = model->kid[1];
    if (t && elab_type_is_tensor(t)) return true;
    diag_add(e->c, DIAG_E0311, t ? t->span : model->span,
             "a model says what tensor it gives: model %s(..) -> f32[node, C]", model->text);
    return false;
}

/* Reports a -D whose name is neither a parameter of the model nor a constant. */
static void check_defines(Elab *e, const Ast *model) {
    const Ast *formals = model->kid[0];
    Names known = {0};
    for (int j = 1; j < formals->n; j++) elab_names_add(e, &known, formals->kid[j]->text);
    for (int i = 0; i < e->constants.cap; i++)
        if (e->constants.key[i]) elab_names_add(e, &known, e->constants.key[i]);
    for (int i = 0; i < e->opt->n_defs; i++) {
        const char *name = e->opt->defs[i].name;
        bool found = strmap_has(&e->constants, name);
        for (int j = 1; j < formals->n; j++)
            found = found || strcmp(formals->kid[j]->text, name) == 0;
        if (!found && name[strcspn(name, ":@ ")])
            diag_add(e->c, DIAG_E0309, (Span){0},
                     "-D %s: a name stands before '='; its type and precision stand in the model",
                     name);
        else if (!found)
            diag_add(e->c, DIAG_E0309, (Span){0},
                     "-D %s: the model '%s' has no parameter of that name%s", name, model->text,
                     elab_names_advice(e, name, &known));
    }
}

/* Elaborates a model and its recipe (NULL = none) into the module: its graph, then its phases. */
void elab_model(Elab *e, const Ast *model, const Ast *train) {
    const Ast *graph = graph_of(e, model);
    if (!graph || !result_is_tensor(e, model)) return;
    elab_graph(e, graph);
    check_defines(e, model);
    elab_check_settable(e, model);
    if (e->c->n_errors < e->c->max_errors) elab_phases(e, model, train);
}
