/* Products of one operand that are added are one product, with the sum of their weights.
 *
 *     %y = contract %x, %A   [N, O]               %w = add %A, %B         [O, F]
 *     %z = contract %x, %B   [N, O]         ->    %y = contract %x, %w    [N, O]
 *     %s = add %y, %t                             %s = add %y, %t
 *     %r = add %s, %z
 *
 * A layer over several relations multiplies a node's own row once for each of them (SAGE's root
 * weight in a HeteroConv) and adds what comes: x A + x B = x (A + B).  Adding weights costs a row
 * or two of a product of thousands.  Runs before autodiff: gradients of both weights are one
 * product then, too, and so is what comes back to x.
 *
 * Nothing is gained where a product is read by others as well: it is then made in any case. */
#include "passes/rewrite.h"

/* Products of a group.  transpose-weights goes through all weights of a sum for each of them, so a
 * sum of hundreds would take its time squared; a group begins anew behind so many. */
enum { MAX_PRODUCTS = 16 };

typedef struct {
    Op *first, *weight; /* the sum of n weights */
    int first_term, n;  /* where the first one stands among the terms */
} Group;

typedef VEC(Op *) Terms;

typedef struct {
    PassCtx *p;
    Module *m;
    Func *f;
    const int *uses; /* by op id */
    bool *inner;     /* by op id: the only reader is a sum of the same type */
} Factor;

/* Whether the operation adds floating-point tensors. */
static bool is_sum(const Op *op) {
    return op->kind == OP_ADD && op->type.rank > 0 && dtype_is_float(op->type.dt);
}

/* Finds the sums that are read by another sum of the same type only; whether there is any sum. */
static bool find_inner_sums(Factor *x) {
    bool any = false;
    for (Op *op = x->f->first; op; op = op->next)
        for (int i = 0; i < op->n_in && is_sum(op); i++) {
            Op *in = op->in[i];
            bool inner = is_sum(in) && x->uses[in->id] == 1 && type_eq(&in->type, &op->type);
            x->inner[in->id] |= inner;
            any = true;
        }
    return any;
}

/* The terms of a sum, in order. Not recursive, since sums may be long. */
static Terms terms_of(Factor *x, Op *root) {
    Terms todo = {0}, terms = {0};
    vec_push(x->p->a, &todo, root);
    while (todo.n) {
        Op *op = todo.v[--todo.n];
        if (op != root && !x->inner[op->id]) {
            vec_push(x->p->a, &terms, op);
            continue;
        }
        vec_push(x->p->a, &todo, op->in[1]);
        vec_push(x->p->a, &todo, op->in[0]);
    }
    return terms;
}

/* Whether the term is rows times a weight without rows, as wide as the sum. */
static bool is_product(const Op *op, const Type *sum) {
    if (op->kind != OP_CONTRACT || !type_eq(&op->type, sum)) return false;
    const Type *w = &op->in[1]->type;
    bool rows = false;
    for (int i = 0; i < w->rank; i++)
        if (w->dim[i]->kind != SP_DIM) return false;
    for (int i = 0; i < sum->rank; i++) rows |= sum->dim[i]->kind != SP_DIM;
    return rows && w->layout == LAYOUT_DENSE;
}

/* Whether the product may join the group. */
static bool may_join(Factor *x, const Group *g, const Op *op) {
    if (!type_eq(&g->weight->type, &op->in[1]->type) || g->first->want != op->want) return false;
    if (x->uses[op->id] == 1 && x->uses[g->first->id] == 1) return pass_may_rewrite(x->p);
    pass_refusal(x->p, op->span, "factor",
                 "'%s' and '%s' stay two products of '%s': one of them is read elsewhere, too",
                 pass_named(g->first), pass_named(op), pass_named(op->in[0]));
    return false;
}

/* Replaces products of one operand by one product with the sum of their weights. Terms that joined
 * a group become NULL; whether there are any. */
static bool group_products(Factor *x, Builder *b, Terms *t, Group *groups, const Type *sum) {
    int n = 0, before = t->n;
    for (int i = 0; i < t->n; i++) {
        Op *op = t->v[i];
        if (!is_product(op, sum)) continue;
        Group *g = op->in[0]->tag;
        if (!g || g->n == MAX_PRODUCTS) {
            op->in[0]->tag = g = &groups[n++];
            *g = (Group){op, op->in[1], i, 1};
        } else if (may_join(x, g, op)) {
            b_like(b, g->first);
            g->weight = b_binary(b, OP_ADD, g->weight, op->in[1]);
            g->n++;
            t->v[i] = NULL;
            before--;
        }
    }
    for (int i = 0; i < n; i++) {
        Group *g = &groups[i];
        Op *operand = g->first->in[0];
        operand->tag = NULL;
        if (g->n == 1) continue;
        b_like(b, g->first);
        t->v[g->first_term] = b_contract(b, operand, g->weight, *sum);
        t->v[g->first_term]->hint = g->first->hint;
        pass_remark(x->p, g->first->span, "factor",
                    "%d products of '%s' are one, of the sum of their weights", g->n,
                    pass_named(operand));
    }
    return before < t->n;
}

/* The sum of the terms, beginning with one of the sum's own type: others may have fewer spaces. */
static Op *sum_terms(Builder *b, const Terms *t, const Op *root) {
    int first = 0;
    b_like(b, root);
    while (!t->v[first] || !type_eq(&t->v[first]->type, &root->type)) first++;
    Op *y = t->v[first];
    for (int i = 0; i < t->n; i++)
        if (t->v[i] && i != first) y = b_binary(b, OP_ADD, y, t->v[i]);
    return y;
}

/* Factors one sum. */
static void factor_sum(Factor *x, Op *root) {
    Terms t = terms_of(x, root);
    Builder b = b_for(x->m, x->f, root, root);
    Type sum = root->type;
    if (!group_products(x, &b, &t, NEWN(x->p->a, Group, (size_t)t.n), &sum)) return;
    Op *y = sum_terms(&b, &t, root);
    if (y->kind == OP_ADD) y->hint = root->hint;
    op_replace_uses(x->f, root, y);
}

/* Factors all sums of a function, from the last to the first, so that operands are still numbered.
 */
static void factor_func(PassCtx *p, Module *m, Func *f) {
    Factor x = {.p = p, .m = m, .f = f, .uses = func_use_counts(p->a, f)};
    x.inner = NEWN(p->a, bool, (size_t)f->n_ops + 1);
    if (!find_inner_sums(&x)) return;
    func_keep_users(p->a, f);
    for (Op *op = f->last, *before; op; op = before) {
        before = op->prev;
        if (is_sum(op) && !x.inner[op->id]) factor_sum(&x, op);
    }
    pass_dce_func(p->a, f);
}

static bool run(PassCtx *p, Module *m) {
    for (int i = 0; i < m->funcs.n; i++) factor_func(p, m, m->funcs.v[i]);
    return true;
}

const Pass pass_factor = {
    .name = "factor",
    .summary = "products of one operand that are added become one, of the sum of their weights",
    .needs = IR_TYPED,
    .breaks = IR_FUSED,
    .run = run,
};
