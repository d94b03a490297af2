/* Models that score links.  `links(e)` in a model's body stands for the edges of e that are to be
 * scored now, and the body is elaborated with what that is:
 *
 *     @train   the batch's edges and their negatives, or, where a loss asks for the scores of `all`
 *              nodes, the batch's queries (a source, and a kind) with every destination; and once
 *              more with the edges that answer them
 *     @eval    a split's edges and its fixed negatives, or queries for metrics of ranks
 *     others   every edge of e
 *
 * Its losses and metrics: elab_link_terms.c.  docs/language.md, "Links". */
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
Space *elab_links_space(Elab *e, RelKind k, Space *of, Span at) {
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
    if (l->mode == LINKS_PAIRS) l->now = elab_links_space(e, REL_LINKS, rel.space, args->span);
    if (l->mode >= LINKS_QUERIES) l->now = elab_links_space(e, REL_QUERIES, rel.space, args->span);
    if (l->mode == LINKS_ANSWERS) l->now = elab_links_space(e, REL_ANSWERS, l->now, args->span);
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
