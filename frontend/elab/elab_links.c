/* Models that score links.  `links(e)` in a model's body stands for the edges of e that are to be
 * scored now, and the body is elaborated with what that is:
 *
 *     @train   the batch's edges and their negatives, or, where a loss asks for the scores of `all`
 *              nodes, the batch's queries (a source, and a kind) with every destination; and once
 *              more with the edges that answer them
 *     @eval    a split's edges and its fixed negatives, or queries for metrics of ranks
 *     others   every edge of e
 *
 * A loss or metric says by the names of its parameters what it takes.  docs/language.md, "Links".
 */
#include "frontend/elab/elab.h"
#include "ir/text.h"

#include <string.h>

void elab_links_begin(Elab *e, LinksMode mode) {
    Links *l = &e->links;
    *l = (Links){.mode = mode, .base = l->base, .penalty = l->penalty, .target = l->target};
}

/* ---- which form ------------------------------------------------------------------------- */
/* The function that a loss or metric of a recipe names, without its weight and arguments. NULL:
 * it is none. */
static const Ast *function_of(Elab *e, const Ast *t) {
    if (t->kind == AST_BINARY && t->n == 2) t = t->kid[1];
    if (t->kind == AST_CALL) t = t->kid[0];
    if (t->kind != AST_NAME) return NULL;
    const Ast *d = strmap_get(&e->globals, t->text);
    if (!d) d = strmap_get(&e->prelude, t->text);
    return d && d->kind == AST_FN ? d : NULL;
}

/* Whether the function fn has a parameter of that name. */
static bool takes(const Ast *fn, const char *name) {
    for (int i = 0; fn && i < fn->kid[0]->n; i++)
        if (strcmp(fn->kid[0]->kid[i]->text, name) == 0) return true;
    return false;
}

/* Whether one of the recipe's losses (or metrics, by `kind`) has a parameter of that name. */
static bool any_takes(Elab *e, const Ast *train, AstKind kind, const char *name) {
    for (int i = 0; i < train->n; i++)
        for (int j = 0; train->kid[i]->kind == kind && j < train->kid[i]->n; j++)
            if (takes(function_of(e, train->kid[i]->kid[j]), name)) return true;
    return false;
}

/* How the links of a phase are scored. A loss that takes `all`, or a metric that takes `rank` or
 * `place`, needs the scores of all candidates of a query; else pairs are drawn. */
LinksMode elab_links_mode_of(Elab *e, const Ast *train, bool training) {
    bool ranks = training ? any_takes(e, train, AST_LOSS, "all")
                          : any_takes(e, train, AST_METRIC, "rank") ||
                                any_takes(e, train, AST_METRIC, "place");
    return ranks ? LINKS_QUERIES : LINKS_PAIRS;
}

/* ---- links(e), in_split(h, "train"), penalty(x) ---------------------------------------------- */
/* The space of kind k that is derived from `of`. Where the recipe draws neighbours, the ends of
 * pairs are the seeds that they are drawn around. */
static Space *sampled_space(Elab *e, RelKind k, Space *of, Span at) {
    if (e->draws && (k == REL_LINKS || k == REL_POSITIVES))
        return space_links(e->m, k, of, space_seeds(e->m, of->src, at),
                           space_seeds(e->m, of->dst, at), at);
    return space_derived(e->m, k, of, NULL, NULL, at);
}

/* Makes the split column of a relation an output of @load under `name`. False after a
 * diagnostic. */
static bool load_splits(Elab *e, Value rel, const char *name, Span at) {
    Op *split = elab_relation_split(e, rel, at);
    if (split) return elab_relation_load_output(e, split, name, at);
    diag_add(e->c, DIAG_E0307, at, "'%s' has no 'split' column", rel.space->name);
    return false;
}

/* Makes the category that tells which links are of one kind, the second argument of links(..),
 * an output of @load. False after a diagnostic. */
static bool load_kinds(Elab *e, const Args *args) {
    Space *rel = args->v[0].space;
    if (args->n < 2) return true;
    Op *k = args->v[1].kind == VAL_TENSOR ? args->v[1].op : NULL;
    if (!k || k->type.dt != DT_I32 || k->type.rank != 1 || k->type.dim[0] != rel) {
        diag_add(e->c, DIAG_E0204, args->at[1], "what kind a link is of is a category of '%s'",
                 rel->name);
        return false;
    }
    return elab_relation_load_output(e, k, "links.kind", args->at[1]);
}

/* Makes the splits of fixed negatives an output of @load, if links(.., negatives = r) gives
 * them. False after a diagnostic. */
static bool load_negatives(Elab *e, const Args *args) {
    const Value *none = elab_arg_named(args, "negatives");
    const Space *rel = args->v[0].space;
    if (!none) return true;
    if (args->n > 1) {
        diag_add(e->c, DIAG_E0312, args->span, "links of several kinds have no fixed negatives");
        return false;
    }
    bool fits = none->kind == VAL_EDGE && none->space->src == rel->src &&
                none->space->dst == rel->dst && !space_of_batch(none->space);
    if (fits) return load_splits(e, *none, "links.negatives", args->span);
    diag_add(e->c, DIAG_E0312, args->span, "the negatives of '%s' are a relation with its ends",
             rel->name);
    return false;
}

/* Makes what is the same of the links in every phase an output of @load: splits, kinds, fixed
 * negatives. @train leaves it to @eval if it draws, as it reads columns of derived relations
 * otherwise. False after a diagnostic. */
static bool load_all(Elab *e, const Args *args) {
    if (e->draws && e->training && !e->timed) return true;
    return load_splits(e, args->v[0], "links.split", args->span) && load_kinds(e, args) &&
           load_negatives(e, args);
}

/* links(r): the relation whose edges the model scores. What of it stands for `links` in this
 * phase is by e->links.mode. Poison after a diagnostic. */
static Value call_links(Elab *e, const Builtin *b, const Args *args) {
    (void)b;
    Links *l = &e->links;
    Value rel = args->v[0];
    if (rel.kind != VAL_EDGE || space_of_batch(rel.space)) {
        diag_add(e->c, DIAG_E0204, args->at[0], "'links' is of a relation, not of %s",
                 elab_kind_text(rel));
        return val_poison();
    }
    if (l->base && l->base != rel.space) {
        diag_add(e->c, DIAG_E0312, args->span,
                 "a model scores the links of one relation: '%s', not '%s'", l->base->name,
                 rel.space->name);
        return val_poison();
    }
    if (!load_all(e, args)) return val_poison();
    l->base = l->now = rel.space;
    if (l->mode == LINKS_PAIRS) l->now = sampled_space(e, REL_LINKS, rel.space, args->span);
    if (l->mode >= LINKS_QUERIES) l->now = sampled_space(e, REL_QUERIES, rel.space, args->span);
    if (l->mode == LINKS_ANSWERS) l->now = sampled_space(e, REL_ANSWERS, l->now, args->span);
    Value v = val_edge(l->now);
    v.open = l->open = l->mode == LINKS_QUERIES;
    return v;
}

/* in_split(h, "train"): a bool for each row of a table with splits, whether it is in that split. */
static Value call_in_split(Elab *e, const Builtin *b, const Args *args) {
    (void)b;
    Value h = args->v[0], name = args->v[1];
    for (int s = 0; s < text_SplitKind.n && name.kind == VAL_STRING; s++) {
        if (strcmp(name.str, text_SplitKind.word[s]) != 0) continue;
        if (h.kind != VAL_EDGE && !elab_is_handle(h)) break;
        Op *split = elab_relation_split(e, h, args->span);
        e->b.span = args->span;
        if (split) return val_tensor(b_binary(&e->b, OP_EQ, split, b_const(&e->b, DT_I32, s)));
        diag_add(e->c, DIAG_E0209, args->at[0], "'%s' has no 'split' column",
                 elab_handle_space(h)->name);
        return val_poison();
    }
    diag_add(
        e->c, DIAG_E0204, args->span,
        "'in_split' takes a node type or relation, and \"train\", \"val\", \"test\" or \"none\"");
    return val_poison();
}

/* penalty(x): adds x to the loss of the training phase, in other phases nothing. Where a
 * condition does not hold, it adds 0. */
static Value call_penalty(Elab *e, const Builtin *b, const Args *args) {
    (void)b;
    Op *x = elab_to_tensor(e, args->v[0], DT_F32, args->at[0]);
    if (!x) return val_poison();
    if (x->type.rank || x->type.dt != DT_F32) {
        diag_add(e->c, DIAG_E0206, args->at[0], "'penalty' takes one f32, not %s",
                 elab_type_text(e, &x->type));
        return val_poison();
    }
    if (e->b.f->body || !e->training || e->links.open) return val_none();
    e->b.span = args->span;
    if (e->when) x = b_select(&e->b, e->when, x, b_const(&e->b, DT_F32, 0));
    Op *before = e->links.penalty;
    e->links.penalty = before ? b_binary(&e->b, OP_ADD, before, x) : x;
    return val_none();
}

const Builtin elab_builtin_links[] = {
    {"links", 1, 2, "negatives", call_links, 0},
    {"in_split", 2, 2, NULL, call_in_split, 0},
    {"penalty", 1, 1, NULL, call_penalty, 0},
    {NULL, 0, 0, NULL, NULL, 0},
};

/* Sets dims to the dimensions that scores of links have, and returns how many: 0 where the model
 * scores none, 2 where each query is scored with all nodes. */
int elab_links_dims(const Elab *e, Space **dims) {
    const Links *l = &e->links;
    if (!l->now) return 0;
    dims[0] = l->now;
    dims[1] = l->now->dst;
    return l->open ? 2 : 1;
}

/* ---- what losses and metrics may ask for -------- */
/* The derived space of kind k (pairs, queries, answers, ..) of the relation that is scored, made
 * through those that it is derived from. */
static Space *phase_space(LinkTask *t, RelKind k) {
    Elab *e = t->e;
    Space *base = e->links.base;
    if (k >= REL_ANSWERS) base = sampled_space(e, REL_QUERIES, base, t->item->span);
    if (k >= REL_KNOWN) base = sampled_space(e, REL_ANSWERS, base, t->item->span);
    return sampled_space(e, k, base, t->item->span);
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
        if (term->is_loss && is_pairs(t) && !t->recipe->sample.negatives &&
            strcmp(f->text, "target") == 0) {
            diag_add(
                e->c, DIAG_E0307, term->at->span,
                "'%s' would learn from true links alone, as the recipe draws no others: sample { "
                ".. negatives 1 }",
                term->fn->text);
            return NULL;
        }
        Value v = value_named(t, f->text);
        if (elab_is_poison(v) && f->kid[1]) continue;
        if (elab_is_poison(v) && term->is_loss && is_pairs(t) && !t->recipe->sample.negatives &&
            strcmp(f->text, "neg") == 0) {
            diag_add(e->c, DIAG_E0307, term->at->span,
                     "'%s' asks for 'neg', and the recipe draws none: sample { .. negatives 1 }",
                     term->fn->text);
            return NULL;
        }
        if (elab_is_poison(v)) {
            diag_add(
                e->c, DIAG_E0307, term->at->span,
                "'%s' asks for '%s', which there is not here%s: a loss takes pos, neg, or pos, "
                "all, "
                "query, or pred, target, mask; a metric rank, place, query, or pred, target, mask",
                term->fn->text, f->text,
                term->is_loss ? "" : ", as the metrics of a recipe are of one sort");
            return NULL;
        }
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
