/* Linear reordering: transform before aggregating, where that is cheaper.
 *
 *     %g = gather src(e) %x        [e, F]          %z = contract %x %W      [N, O]
 *     %s = segment sum dst(e) %g   [N, F]    ->    %g = gather src(e) %z    [e, O]
 *     %y = contract %s %W          [N, O]          %y = segment sum dst(e) %g
 *
 * Between a value x and the product with W may stand anything that is linear in x and
 * does not look along the contracted spaces: gathers, segment sums, scalings by values
 * without those spaces, sums and differences of such terms of one x.  A (X W) then replaces
 * (A X) W: the aggregation runs over O columns instead of F, a CSR x stays sparse, and the
 * gradient follows, since this runs before autodiff.
 *
 * Done when every value in between has no other use, all terms come from one x, at least one
 * segment sum is crossed, and the product is no wider: O <= F where both are constants (as
 * wide as x it still saves memory: what the gradient of W reads is x, which is there anyway,
 * not the sum); O constant where F is known only with the data (a column's width), or x CSR.
 * A drawn batch has more rows that are added up than rows that they are added to, as its edges
 * lead from hop to hop: as wide, a product of sums is of fewer rows, and so are both of its
 * gradient.  Along reversed relations not so: of a table's references many rows share what they
 * lead to.
 * What depends on the data alone is another matter: (A X) without dropout is summed once, when the
 * data are loaded (`hoist`), and no step sums anything, however narrow the product is; but A X
 * stays in memory.  So where @train aggregates such an X, the data's sizes decide, and with them
 * whether there is room.
 * Huang et al. 2021, "Understanding and Bridging the Gaps in Current GNN Performance
 * Optimizations", section 4.2; Yan et al. 2020 for the effect. */
#include "passes/rewrite.h"

typedef struct {
    PassCtx *p;
    Module *m;
    Builder b;
    bool *classes;  /* by space id: of a class column */
    bool hoists;    /* such a value of this function is computed at load */
    const Op *root; /* the contraction */
    Op *weight;     /* W */
    Op *leaf;       /* the one x */
    Op *product;    /* contract x, W */
    Op *view;       /* between the terms and the contraction: other names for their spaces */
    bool crossed;   /* a segment sum was seen */
    bool fewer;     /* all segment sums seen have fewer segments than rows */
    bool many_leaves;
} Reorder;

/* An operation's tag says whether it depends on the data alone, once that was asked. */
static const bool invariant_tag = true, varying_tag = false;

/* Whether the value depends on the data alone. The tag remembers the answer. */
static bool is_invariant(Op *op) {
    if (!op->tag) {
        bool is = !pass_may_vary(op);
        for (int i = 0; i < op->n_in && is; i++) is = is_invariant(op->in[i]);
        op->tag = (void *)(is ? &invariant_tag : &varying_tag);
    }
    return *(const bool *)op->tag;
}

/* The only reader of x, which reads it once; NULL: there is none, or more. */
static Op *only_user(const Op *x) {
    Op *user = NULL;
    for (const Use *u = x->users; u; u = u->next) {
        if (!u->user->func) continue;
        if (user) return NULL;
        user = u->user;
    }
    return user;
}

/* Whether the contraction sums over s. */
static bool is_summed(const Reorder *r, const Space *s) {
    return type_has(&r->weight->type, s) && !type_has(&r->root->type, s);
}

/* Whether the operation is a view that only gives spaces other names. */
static bool is_renaming(const Op *op) {
    const Type *x, *y = &op->type;
    if (op->kind != OP_VIEW || (x = &op->in[0]->type)->rank != y->rank) return false;
    for (int i = 0; i < y->rank; i++)
        if (!expr_eq(x->dim[i]->size, y->dim[i]->size)) return false;
    return true;
}

/* A type below the view with the contraction's names. */
static Type renamed(const Reorder *r, const Type *t) {
    Type y = *t;
    if (!r->view) return y;
    const Type *from = &r->view->in[0]->type;
    for (int i = 0; i < t->rank; i++) {
        int k = type_find(from, t->dim[i]);
        if (k >= 0) y.dim[i] = r->view->type.dim[k];
    }
    return y;
}

/* Whether x has a space that is summed over. */
static bool has_summed(const Reorder *r, const Op *x) {
    Type t = renamed(r, &x->type);
    for (int i = 0; i < t.rank; i++)
        if (is_summed(r, t.dim[i])) return true;
    return false;
}

/* Whether x has all spaces that are summed over. */
static bool has_all_summed(const Reorder *r, const Op *x) {
    Type t = renamed(r, &x->type);
    for (int i = 0; i < r->weight->type.rank; i++)
        if (is_summed(r, r->weight->type.dim[i]) && !type_has(&t, r->weight->type.dim[i]))
            return false;
    return true;
}

/* Whether x and the weight W share a space that is not summed over. Their product would be
 * aligned along it, which the one that is moved was not. The spaces of x have the
 * contraction's names here. */
static bool shares_weight_dim(const Reorder *r, const Op *x) {
    Type t = renamed(r, &x->type);
    for (int i = 0; i < t.rank; i++)
        if (type_has(&r->weight->type, t.dim[i]) && !is_summed(r, t.dim[i])) return true;
    return false;
}

/* The operand in which an operation is linear; -1: in none, -2: in both. */
static int linear_operand(const Reorder *r, const Op *op) {
    switch (op->kind) {
    case OP_GATHER:
    case OP_NEG:
        return 0;
    case OP_SEGMENT:
        return op->red == RED_SUM ? 0 : -1;
    case OP_COPY:
        return op->in[0]->type.rank == op->type.rank ? 0 : -1;
    case OP_DIV:
        return has_summed(r, op->in[1]) ? -1 : 0;
    case OP_MUL:
        if (!has_summed(r, op->in[1])) return 0;
        return has_summed(r, op->in[0]) ? -1 : 1;
    case OP_ADD:
    case OP_SUB:
        return -2;
    default:
        return -1;
    }
}

/* Whether a batch draws more than one edge of e for a node in some hop, so that these edges may
 * outnumber the nodes that they are drawn for. */
bool pass_draws_several(const Module *m, const Func *f, const Space *e) {
    const Sampling *s = &m->recipe.sample;
    if (e->rel != REL_BASE || !module_runs_on_batches(m, f->phase)) return false;
    for (int i = 0; i < s->rels.n; i++)
        for (int k = 0; k < s->n_hops && s->rels.v[i].rel == e; k++)
            if (s->rels.v[i].fanout[k] < 0 || s->rels.v[i].fanout[k] > 1) return true;
    return false;
}

/* Are there fewer of these sums than of rows that they add up? */
static bool has_fewer_sums(const Reorder *r, const Op *segment) {
    const Map *m = segment->map;
    return m->kind == MAP_DST && pass_draws_several(r->m, r->root->func, m->from);
}

/* Walks from the contraction's operand to the leaves; depth is bounded, as models are. */
enum { MAX_DEPTH = 64 };
/* Walks from the contraction's operand through linear operations to the leaves. */
static void find_leaves(Reorder *r, Op *x, int depth) {
    bool no_recompute = x->kind == OP_COPY || only_user(x); /* nothing is computed twice */
    bool spaces_fit = has_all_summed(r, x) && !shares_weight_dim(r, x);
    int c = depth < MAX_DEPTH && no_recompute && spaces_fit ? linear_operand(r, x) : -1;
    bool both = c == -2 && has_all_summed(r, x->in[0]) && has_all_summed(r, x->in[1]);
    if (c == -1 || (c == -2 && !both)) {
        r->many_leaves |=
            (r->leaf && r->leaf != x) || !has_all_summed(r, x) || shares_weight_dim(r, x);
        r->leaf = x;
        return;
    }
    r->crossed |= x->kind == OP_SEGMENT;
    r->fewer &= x->kind != OP_SEGMENT || has_fewer_sums(r, x);
    if (both) find_leaves(r, x->in[0], depth + 1);
    find_leaves(r, x->in[c == -2 ? 1 : c], depth + 1);
}

/* The width of the aggregation before or after: the product of W's spaces that are summed over, or
 * of the others. */
static const Expr *width(const Reorder *r, bool summed) {
    const Expr *e = expr_const(r->m->a, 1);
    for (int i = 0; i < r->weight->type.rank; i++)
        if (is_summed(r, r->weight->type.dim[i]) == summed)
            e = expr_mul(r->m->a, e, r->weight->type.dim[i]->size);
    return e;
}

/* Whether the result's width is a number of classes, which is taken as small. */
static bool are_classes(const Reorder *r) {
    for (int i = 0; i < r->weight->type.rank; i++) {
        const Space *s = r->weight->type.dim[i];
        int64_t n;
        if (!is_summed(r, s) && !expr_is_const(s->size, &n) && !r->classes[s->id]) return false;
    }
    return true;
}

/* An expression as text. */
static const char *text_of(Arena *a, const Expr *e) {
    StrBuf b = sb_new(a);
    expr_print(&b, e);
    return b.s;
}

/* Asks, as a choice of variants, whether to aggregate operands. */
static bool aggregates_first(const Reorder *r) {
    Arena *a = r->m->a;
    const char *in = text_of(a, width(r, true)), *out = text_of(a, width(r, false));
    return pass_choose(
        r->p, arena_printf(a, "reorder %s %s", in, out),
        arena_printf(a, "aggregates products of width %s, not operands of %s", out, in),
        arena_printf(a, "aggregates operands of width %s, not products of %s", in, out));
}

/* Whether the sum of rows x would be computed at load, before the product. */
static bool is_saved(const Reorder *r, Op *x) {
    return r->hoists && is_invariant(x) && x->type.layout == LAYOUT_DENSE;
}

/* Why the contraction is not reordered; "": it is. */
static const char *objection(Reorder *r, Op *terms) {
    int64_t before, after;
    if (!r->crossed) return "nothing is aggregated";
    if (r->many_leaves) return "the aggregated terms do not come from one value";
    if (r->leaf->type.layout == LAYOUT_CSR) return "";
    bool knows_before = expr_is_const(width(r, true), &before);
    bool knows_after = expr_is_const(width(r, false), &after);
    if (knows_before && knows_after && after > before) return "the product is wider";
    if (knows_before && knows_after && after == before && r->fewer)
        return "a batch has fewer sums than rows, and the product is as wide";
    bool narrower = knows_before && (knows_after || are_classes(r));
    if (narrower && !is_saved(r, terms)) return "";
    return aggregates_first(r) ? "so this variant decided" : "";
}

/* x's type with the summed spaces replaced by W's others. */
static Type product_type(const Reorder *r, const Type *x) {
    Type t = *x;
    t.layout = LAYOUT_DENSE;
    t.rank = 0;
    for (int i = 0; i < x->rank; i++)
        if (!is_summed(r, x->dim[i])) t.dim[t.rank++] = x->dim[i];
    for (int i = 0; i < r->weight->type.rank; i++)
        if (!is_summed(r, r->weight->type.dim[i])) t.dim[t.rank++] = r->weight->type.dim[i];
    return t;
}

static Op *rewrite(Reorder *r, Op *x, int depth);

/* The product of a sum or difference. */
static Op *rewrite_pair(Reorder *r, Op *x, int depth) {
    Op *a = rewrite(r, x->in[0], depth + 1);
    Op *b = rewrite(r, x->in[1], depth + 1);
    return b_binary(&r->b, x->kind, a, b);
}

/* The product of x with W, built from the product of the leaf. */
static Op *rewrite(Reorder *r, Op *x, int depth) {
    if (x == r->leaf) {
        if (!r->product) {
            Type t = renamed(r, &x->type);
            Op *viewed = r->view ? b_view(&r->b, x, t) : x;
            r->product = b_contract(&r->b, viewed, r->weight, product_type(r, &t));
            r->product->hint = r->root->hint;
        }
        return r->product;
    }
    int c = linear_operand(r, x);
    if (c == -2) return rewrite_pair(r, x, depth);
    Op *y = rewrite(r, x->in[c], depth + 1);
    switch (x->kind) {
    case OP_GATHER:
        return b_gather(&r->b, x->map, y);
    case OP_SEGMENT:
        return b_segment(&r->b, RED_SUM, x->map, y);
    case OP_NEG:
        return b_unary(&r->b, OP_NEG, y);
    case OP_COPY:
        return y;
    default: /* a scaling: the other operand has no summed space */
        return b_binary(&r->b, x->kind, y, x->in[1 - c]);
    }
}

/* Reorders the contraction's operand i, if that pays. */
static bool try_operand(Reorder *r, Op *op, int i) {
    r->root = op;
    r->weight = op->in[1 - i];
    r->leaf = r->product = NULL;
    r->crossed = r->many_leaves = false;
    r->fewer = true;
    if (r->weight->type.layout != LAYOUT_DENSE || r->weight->kind != OP_VAR) return false;
    Op *terms = op->in[i];
    r->view = is_renaming(terms) && only_user(terms) ? terms : NULL;
    if (r->view) terms = terms->in[0];
    find_leaves(r, terms, 0);
    const char *why = objection(r, terms);
    if (*why) {
        if (r->crossed) pass_refusal(r->p, op->span, "reorder", "aggregates first: %s", why);
        return false;
    }
    r->b = b_for(r->m, op->func, op, op);
    Op *y = rewrite(r, terms, 0);
    if (!type_eq(&y->type, &op->type)) y = b_copy(&r->b, y, op->type);
    y->hint = op->hint;
    op_replace_uses(op->func, op, y);
    op_remove(op);
    pass_remark(r->p, y->span, "reorder", "transforms before it aggregates");
    return true;
}

/* ---- the other way: aggregate the operand, then transform ------------------------------ */
/* The linear operations from a product z up to the last segment sum. */
typedef struct {
    Op *op[MAX_DEPTH];
    int operand[MAX_DEPTH]; /* which operand carries z */
    int n;                  /* up to the last segment sum */
} Chain;

/* Whether x has a space of W, which the other order would align. */
static bool shares_dim(const Reorder *r, const Op *x) {
    for (int i = 0; i < x->type.rank; i++)
        if (type_has(&r->weight->type, x->type.dim[i])) return true;
    return false;
}

/* Whether u may be a link of the chain. Rows of z that are rows of W cannot be looked up in x. */
static bool is_link(const Reorder *r, const Op *u, int at) {
    const Type *w = &r->weight->type;
    if (u->map && (type_has(w, u->map->from) || type_has(w, u->map->to))) return false;
    switch (u->kind) {
    case OP_GATHER:
    case OP_NEG:
        return true;
    case OP_SEGMENT:
        return u->red == RED_SUM;
    case OP_MUL:
        return !shares_dim(r, u->in[1 - at]);
    case OP_DIV:
        return at == 0 && !shares_dim(r, u->in[1]);
    default:
        return false;
    }
}

/* The chain of operations that begins with z's only user, each the only user of the one before, cut
 * behind the last sum over entries in it; n = 0: there is no such sum. operand[i]: through which
 * operand of op[i] the chain comes. */
static Chain chain_above(const Reorder *r, Op *z) {
    Chain c = {.n = 0};
    for (int n = 0; n < MAX_DEPTH;) {
        Op *u = only_user(z);
        int at = u && u->in[0] != z;
        if (!u || !is_link(r, u, at)) break;
        c.op[n] = u;
        c.operand[n++] = at;
        if (u->kind == OP_SEGMENT) c.n = n;
        z = u;
    }
    return c;
}

/* A link of the chain over x. */
static Op *rebuild_link(Reorder *r, const Op *like, int at, Op *x) {
    switch (like->kind) {
    case OP_GATHER:
        return b_gather(&r->b, like->map, x);
    case OP_SEGMENT:
        return b_segment(&r->b, RED_SUM, like->map, x);
    case OP_NEG:
        return b_unary(&r->b, OP_NEG, x);
    default:
        return at ? b_binary(&r->b, like->kind, like->in[0], x)
                  : b_binary(&r->b, like->kind, x, like->in[1]);
    }
}

static bool leaves_fewer(const Reorder *r, const Chain *c) {
    bool fewer = true;
    for (int i = 0; i < c->n; i++)
        fewer &= c->op[i]->kind != OP_SEGMENT || has_fewer_sums(r, c->op[i]);
    return fewer;
}

/* Whether the other operands of the chain depend on the data alone. */
static bool is_chain_invariant(const Chain *c) {
    for (int i = 0; i < c->n; i++)
        for (int k = 0; k < c->op[i]->n_in; k++)
            if (k != c->operand[i] && !is_invariant(c->op[i]->in[k])) return false;
    return true;
}

/* Whether the narrower operand is to be aggregated. */
static bool prefers_operand(Reorder *r, Op *x, const Chain *c) {
    int64_t before, after;
    if (x->type.layout != LAYOUT_DENSE || !has_all_summed(r, x)) return false;
    bool knows_before = expr_is_const(width(r, true), &before);
    bool knows_after = expr_is_const(width(r, false), &after);
    if (knows_before && knows_after && before < after) return true;
    if (knows_before && knows_after && before == after && leaves_fewer(r, c)) return true;
    bool narrower = knows_before && (knows_after || are_classes(r));
    return (!narrower || (is_saved(r, x) && is_chain_invariant(c))) && aggregates_first(r);
}

/* Aggregates operand i before the product z, if that pays. */
static bool try_product(Reorder *r, Op *z, int i) {
    r->root = z;
    r->view = NULL;
    r->weight = z->in[1 - i];
    Op *x = z->in[i];
    if (r->weight->kind != OP_VAR || shares_weight_dim(r, x)) return false;
    Chain c = chain_above(r, z);
    if (c.n == 0 || !prefers_operand(r, x, &c)) return false;
    Op *top = c.op[c.n - 1];
    r->b = b_for(r->m, z->func, top, z);
    for (int k = 0; k < c.n; k++) x = rebuild_link(r, c.op[k], c.operand[k], x);
    Op *y = b_contract(&r->b, x, r->weight, top->type);
    y->hint = top->hint ? top->hint : z->hint;
    op_replace_uses(z->func, top, y);
    pass_remark(r->p, z->span, "reorder", "aggregates before it transforms");
    return true;
}

/* By space id: whether a column of classes has it. */
static bool *find_classes(PassCtx *p, const Module *m) {
    bool *classes = NEWN(p->a, bool, (size_t)m->spaces.n + 1);
    for (int i = 0; i < m->cols.n; i++)
        if (m->cols.v[i]->kind == COL_CLASS) classes[m->cols.v[i]->cat->id] = true;
    return classes;
}

/* Reorders the contractions of a function. */
static void reorder_func(PassCtx *p, Module *m, Func *f, bool hoists) {
    Reorder r = {.p = p, .m = m, .hoists = hoists, .classes = find_classes(p, m)};
    func_keep_users(p->a, f);
    for (Op *op = f->first; op; op = op->next) is_invariant(op); /* operands first: none asks far */
    for (Op *op = f->first, *next; op; op = next) {
        next = op->next;
        if (op->kind != OP_CONTRACT) continue;
        if (try_operand(&r, op, 0) || try_operand(&r, op, 1)) continue;
        if (!try_product(&r, op, 0)) try_product(&r, op, 1);
    }
    pass_dce_func(p->a, f);
}

/* Runs the pass: chooses for each function whether products with weights stand before or after sums
 * over neighbours, by cost. */
static bool run(PassCtx *p, Module *m) {
    const Func *train = func_of(m, PHASE_TRAIN);
    bool sampled = m->recipe.sample.batch > 0;
    for (int i = 0; i < m->funcs.n; i++) {
        Func *f = m->funcs.v[i];
        /* What data alone decide is made once in @load and kept, as pass `hoist` does, for @train's
         * sake alone; not of batches, whose rows change. */
        reorder_func(p, m, f, !sampled && f == train);
    }
    return true;
}

const Pass pass_reorder = {
    .name = "reorder",
    .summary = "multiply by a weight before aggregating where that is cheaper",
    .needs = IR_TYPED,
    .run = run,
};
