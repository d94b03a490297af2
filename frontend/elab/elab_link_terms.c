/* Losses and metrics of models that score links (elab_links.c): functions that say by the names of
 * their parameters what they take, `pos`, `rank`, `all`, ..  docs/language.md, "Links". */
#include "frontend/elab/elab.h"

#include <string.h>

/* ---- what losses and metrics may ask for -------- */
/* The derived space of kind k (pairs, queries, answers, ..) of the relation that is scored, made
 * through those that it is derived from. */
static Space *phase_space(LinkTask *t, RelKind k) {
    Elab *e = t->e;
    Space *base = e->links.base;
    if (k >= REL_ANSWERS) base = elab_links_space(e, REL_QUERIES, base, t->item->span);
    if (k >= REL_KNOWN) base = elab_links_space(e, REL_ANSWERS, base, t->item->span);
    return elab_links_space(e, k, base, t->item->span);
}

Type elab_links_of_all(LinkTask *t) {
    Space *queries = phase_space(t, REL_QUERIES), *dims[] = {queries, queries->dst};
    return type_make(DT_F32, 2, dims);
}

static bool is_pairs(const LinkTask *t) {
    return t->pred->type.rank == 1;
}

/* Runs the model's body once more, with the true answers of each query as `links`, and returns
 * their scores. Effects do not happen twice, and random numbers are the same. */
static Op *scores_of_answers(LinkTask *t) {
    Elab *e = t->e;
    Links before = e->links;
    bool logs = e->logs;
    int stream = e->stream;
    elab_links_begin(e, LINKS_ANSWERS);
    e->links.again = true;
    e->logs = false;
    e->stream = 0;
    Op *x = elab_run_model(e, t->model);
    if (e->stream < stream) e->stream = stream;
    e->logs = logs;
    before.penalty = e->links.penalty;
    e->links = before;
    return x;
}

/* What a loss takes as `pos`: the scores of true links. */
static Op *value_pos(LinkTask *t) {
    Elab *e = t->e;
    if (!is_pairs(t)) return scores_of_answers(t);
    return b_slice(&e->b, t->pred, phase_space(t, REL_LINKS), phase_space(t, REL_POSITIVES),
                   expr_const(e->a, 0));
}

/* What a loss takes as `neg`: the scores of the negatives, K for each positive: f32[positives,
 * K]. */
static Op *value_neg(LinkTask *t) {
    Elab *e = t->e;
    const Expr *k = expr_const(e->a, t->recipe->sample.negatives);
    Space *pos = phase_space(t, REL_POSITIVES), *dims[] = {pos, NULL};
    const Expr *n = expr_mul(e->a, k, pos->size);
    Space *flat = space_dim(e->m, "negatives", n, t->item->span);
    dims[1] = elab_space_of_dim(e, k, k, t->item->span);
    Op *x = b_slice(&e->b, t->pred, phase_space(t, REL_LINKS), flat, pos->size);
    return b_view(&e->b, x, type_make(DT_F32, 2, dims));
}

static Op *count_i32(Elab *e, Space *s) {
    Op *one = b_copy(&e->b, b_const(&e->b, DT_I32, 1), type_make(DT_I32, 1, &s));
    return b_reduce(&e->b, RED_SUM, one, 1, &s);
}

/* x with a second dimension of size 1: [links, 1], as labels of one task. */
static Op *as_column(LinkTask *t, Op *x) {
    Elab *e = t->e;
    const Expr *one = expr_const(e->a, 1);
    Space *dims[] = {phase_space(t, REL_LINKS), elab_space_of_dim(e, one, one, t->item->span)};
    return b_copy(&e->b, x, type_make(x->type.dt, 2, dims));
}

/* The target of all scored pairs: 1 for the links, which come first, and 0 for the negatives. */
static Op *link_labels(LinkTask *t) {
    Elab *e = t->e;
    Op *i = b_iota(&e->b, phase_space(t, REL_LINKS));
    Op *positive = b_binary(&e->b, OP_LT, i, count_i32(e, phase_space(t, REL_POSITIVES)));
    return as_column(t, b_cast(&e->b, positive, DT_F32));
}

/* What a loss of pairs takes as `mask`: all of them count. */
static Op *value_mask(LinkTask *t) {
    Elab *e = t->e;
    Space *s = phase_space(t, REL_LINKS);
    return b_copy(&e->b, b_const(&e->b, DT_I1, 1), type_make(DT_I1, 1, &s));
}

/* How many of `scores` lie not below (`strictly`: above) each answer's; NaN lies below all. */
static Op *count_above(Elab *e, Op *scores, Op *own, bool strictly) {
    Op *below = b_binary(&e->b, strictly ? OP_LE : OP_LT, scores, own);
    return b_cast(&e->b, b_unary(&e->b, OP_NOT, below), DT_F32);
}

/* The mean rank, from 1, of each answer's score among those of all nodes but the `others`: the true
 * answers that do not count.  With g above and g' not below, itself among those, (1 + g + g') / 2.
 */
static Op *value_rank(LinkTask *t, RelKind others) {
    Elab *e = t->e;
    Builder *b = &e->b;
    Space *a = phase_space(t, REL_ANSWERS), *k = phase_space(t, others), *nodes = a->dst;
    Space *q = phase_space(t, REL_QUERIES);
    if (!t->cells)
        t->cells = space_dim(e->m, "cells", expr_mul(e->a, q->size, nodes->size), t->item->span);
    Space *cells = t->cells;
    Op *flat = b_view(b, t->pred, type_make(DT_F32, 1, &cells));
    Op *own = b_gather(b, map_cell(e->m, a, cells), flat);
    Op *row = b_gather(b, map_orig(e->m, a, 0), t->pred);
    Op *known = b_gather(b, map_cell(e->m, k, cells), flat);
    Op *own_k = b_gather(b, map_orig(e->m, k, 0), own);
    Op *sum = b_copy(b, b_const(b, DT_F32, 1), own->type);
    for (int strictly = 0; strictly < 2; strictly++) {
        Op *all = b_reduce(b, RED_SUM, count_above(e, row, own, strictly), 1, &nodes);
        Op *out =
            b_segment(b, RED_SUM, map_orig(e->m, k, 0), count_above(e, known, own_k, strictly));
        sum = b_binary(b, OP_ADD, sum, b_binary(b, OP_SUB, all, out));
    }
    return b_binary(b, OP_MUL, sum, b_const(b, DT_F32, 0.5));
}

static Op *made_once(Op **slot, Op *x) {
    if (!*slot) *slot = x;
    return *slot;
}

/* The value that a loss or metric asks for by this name; poison: there is none here. */
static Value value_named(LinkTask *t, const char *name) {
    Elab *e = t->e;
    bool pairs = is_pairs(t), train = t->recipe != NULL;
    Op *x = NULL;
    e->b.span = t->item->span;
    if (train && strcmp(name, "pos") == 0)
        x = t->pos ? t->pos : made_once(&t->pos, value_pos(t));
    else if (train && pairs && strcmp(name, "neg") == 0 && t->recipe->sample.negatives)
        x = t->neg ? t->neg : made_once(&t->neg, value_neg(t));
    else if (!pairs && strcmp(name, "all") == 0)
        x = t->pred;
    else if (!pairs && strcmp(name, "query") == 0)
        return val_end(map_orig(e->m, phase_space(t, REL_ANSWERS), 0));
    else if (!pairs && !train && strcmp(name, "rank") == 0)
        x = t->rank ? t->rank : made_once(&t->rank, value_rank(t, REL_KNOWN));
    else if (!pairs && !train && strcmp(name, "place") == 0)
        x = t->place ? t->place : made_once(&t->place, value_rank(t, REL_EARLIER));
    else if (pairs && strcmp(name, "pred") == 0)
        x = as_column(t, t->pred);
    else if (pairs && strcmp(name, "target") == 0)
        x = link_labels(t);
    else if (pairs && strcmp(name, "mask") == 0)
        x = value_mask(t);
    return x ? val_tensor(x) : val_poison();
}

/* ---- losses and metrics -------- */
/* Whether an argument of that name is among the named ones. */
static bool is_given(const Args *a, const char *name) {
    for (int i = 0; i < a->n_named; i++)
        if (strcmp(a->name[i], name) == 0) return true;
    return false;
}

/* Sets *v to what the parameter f of a loss or metric stands for; poison: it keeps its default.
 * False after a diagnostic: there is no such thing here. */
static bool argument_of(LinkTask *t, const Term *term, const Ast *f, Value *v) {
    Elab *e = t->e;
    bool no_negatives = term->is_loss && is_pairs(t) && !t->recipe->sample.negatives;
    if (no_negatives && strcmp(f->text, "target") == 0) {
        diag_add(e->c, DIAG_E0307, term->at->span,
                 "'%s' would learn from true links alone, as the recipe draws no others: sample { "
                 ".. negatives 1 }",
                 term->fn->text);
        return false;
    }
    *v = value_named(t, f->text);
    if (!elab_is_poison(*v) || f->kid[1]) return true;
    if (no_negatives && strcmp(f->text, "neg") == 0)
        diag_add(e->c, DIAG_E0307, term->at->span,
                 "'%s' asks for 'neg', and the recipe draws none: sample { .. negatives 1 }",
                 term->fn->text);
    else
        diag_add(e->c, DIAG_E0307, term->at->span,
                 "'%s' asks for '%s', which there is not here%s: a loss takes pos, neg, or pos, "
                 "all, query, or pred, target, mask; a metric rank, place, query, or pred, target, "
                 "mask",
                 term->fn->text, f->text,
                 term->is_loss ? "" : ", as the metrics of a recipe are of one sort");
    return false;
}

/* Calls a loss or metric with the values that its parameters ask for by name (pos, neg, all,
 * rank, ..) and its own settings. NULL after a diagnostic. */
static Op *apply(LinkTask *t, const Term *term) {
    Elab *e = t->e;
    const Ast *formals = term->fn->kid[0];
    int n = term->args.n_named + formals->n;
    if (is_pairs(t) && !is_given(&term->args, "target") && !elab_term_takes_links(e, term))
        return NULL;
    Args a = {.span = term->at->span, .name_span = term->at->span};
    a.named = NEWN(e->a, Value, (size_t)n + 1);
    a.name = NEWN(e->a, const char *, (size_t)n + 1);
    a.named_at = NEWN(e->a, Span, (size_t)n + 1);
    for (int i = 0; i < term->args.n_named; i++, a.n_named++) {
        a.named[i] = term->args.named[i];
        a.name[i] = term->args.name[i];
        a.named_at[i] = term->args.named_at[i];
    }
    for (int i = 0; i < formals->n; i++) {
        const Ast *f = formals->kid[i];
        if (is_given(&term->args, f->text)) continue;
        Value v;
        if (!argument_of(t, term, f, &v)) return NULL;
        if (elab_is_poison(v)) continue;
        a.named[a.n_named] = v;
        a.name[a.n_named] = f->text;
        a.named_at[a.n_named++] = term->at->span;
    }
    e->b.span = term->at->span;
    Value r = elab_call_value(e, (Value){.kind = VAL_FN, .decl = term->fn}, &a);
    return elab_to_tensor(e, r, DT_F32, term->at->span);
}

/* The loss of a recipe that scores links: the weighted sum of its terms. NULL: it has none that
 * is right. */
Op *elab_links_loss(LinkTask *t, const Terms *losses) {
    Elab *e = t->e;
    Op *sum = NULL;
    if (!t->pos) t->pos = value_pos(t); /* where the body's penalties are said */
    for (int i = 0; i < losses->n; i++) {
        const Term *term = &losses->v[i];
        Op *x = apply(t, term);
        if (is_pairs(t)) elab_term_warns_of_probabilities(e, term, t->pred);
        if (!x) continue;
        if (x->type.rank || x->type.dt != DT_F32) {
            diag_add(e->c, DIAG_E0307, term->at->span, "'%s' gives %s; a loss is one f32",
                     term->fn->text, elab_type_text(e, &x->type));
            continue;
        }
        x = elab_term_weigh(e, term, x);
        sum = sum ? b_binary(&e->b, OP_ADD, sum, x) : x;
    }
    return sum;
}

/* Adds a metric of links to the outputs: one number, or the sum of those of all answers or
 * queries with their number, of which the runtime makes the mean over all batches. */
static void add_metric(LinkTask *t, const Term *term, const char *name) {
    Elab *e = t->e;
    Op *x = apply(t, term);
    if (!x) return;
    Space *rows = x->type.rank == 1 ? x->type.dim[0] : NULL;
    bool each = rows && (rows->rel == REL_ANSWERS || rows->rel == REL_QUERIES);
    if (x->type.dt != DT_F32 || (x->type.rank && !each) || (!x->type.rank && !is_pairs(t))) {
        diag_add(e->c, DIAG_E0307, term->at->span, "'%s' gives %s; a metric of links is %s",
                 term->fn->text, elab_type_text(e, &x->type),
                 is_pairs(t) ? "one f32" : "an f32 for each answer or query");
        return;
    }
    e->b.span = term->at->span;
    Op *n = each ? b_size(&e->b, rows) : b_const(&e->b, DT_F32, 1);
    if (each) x = b_reduce(&e->b, RED_SUM, x, 1, &rows);
    OutputUse metric = {.role = OUT_METRIC, .split = SPLIT_VAL, .of = name};
    elab_output_of_phase(e, arena_printf(e->a, "%s.val", name), metric, x);
    OutputUse rows_of = {.role = OUT_ROWS, .of = name};
    elab_output_of_phase(e, arena_printf(e->a, "rows:%s", name), rows_of, n);
}

void elab_links_metrics(LinkTask *t, const Terms *metrics) {
    for (int i = 0; i < metrics->n; i++)
        add_metric(t, &metrics->v[i], elab_metric_name(t->e, metrics, i));
}
