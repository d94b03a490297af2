/* What widens a row is multiplied with a weight before the row is.
 *
 *     %h = mul %x, %w      [N, C] * [C, F]          %u = mul %w, %V                [C, F, O]
 *     %i = add %h, %b      [N, C, F]                %s = reduce sum [F] %u         [C, O]
 *     %y = contract %i, %V [N, O]             ->    %z = contract %x, %s           [N, O]
 *                                                   %t = reduce sum [C, F] (mul %b, %V)
 *                                                   %y = add %z, %t
 *
 * Encoders of tables give each number of a row a vector of its own, put these side by side and
 * multiply them by a matrix (PyTorch Frame's linear encoder before a ResNet): of ten numbers 1280
 * are made, and 1280 x 128 products for each row.  All of it is linear in the ten.  So the product
 * is taken apart along what made its operand: views, parts of a concatenation, sums, products with
 * what has no rows, copies over more dimensions.  What has no rows is multiplied with the weight
 * once for all rows; a row's own numbers with what comes of that.
 *
 * Done where that leaves less than half of the operations of a row (the threshold narrow.max-part,
 * in percent).  Runs before autodiff, so the gradient follows.  It is the associativity that
 * `reorder` uses along edges (Huang et al. 2021), used along features. */
#include "passes/rewrite.h"

enum { MAX_DEPTH = 64 };

typedef struct {
    PassCtx *p;
    Module *m;
    Builder b;
    Space *rows;   /* of the product */
    int64_t *size; /* [syms] nominal */
} Narrow;

/* ---- what a product takes --------------------------------------------------------------- */
/* Whether x has the rows of the product. */
static bool has_rows(const Narrow *n, const Op *x) {
    return type_has(&x->type, n->rows);
}

/* The elements of a row. */
static double width(const Narrow *n, const Type *t) {
    double w = 1;
    for (int i = 0; i < t->rank; i++)
        if (t->dim[i] != n->rows) w *= (double)expr_eval(t->dim[i]->size, n->size);
    return w;
}

/* Whether the type is dense, f32, and has no rows but those of the product. */
static bool is_plain(const Narrow *n, const Type *t) {
    for (int i = 0; i < t->rank; i++)
        if (t->dim[i]->kind != SP_DIM && t->dim[i] != n->rows) return false;
    return t->layout == LAYOUT_DENSE && t->dt == DT_F32;
}

/* Whether a view only regroups or renames the dimensions behind the rows. */
static bool is_feature_view(const Narrow *n, const Op *x) {
    const Type *to = &x->type, *from = &x->in[0]->type;
    if (to->dim[0] != n->rows || from->rank < 2 || from->dim[0] != n->rows) return false;
    if (to->rank == 2) return true;
    for (int i = 1; i < to->rank; i++)
        if (to->rank != from->rank || !expr_eq(to->dim[i]->size, from->dim[i]->size)) return false;
    return true;
}

/* The operand that has the rows, if the other has none; else -1. */
static int row_operand(const Narrow *n, const Op *x) {
    bool first = has_rows(n, x->in[0]), second = has_rows(n, x->in[1]);
    return first == second ? -1 : second;
}

/* How many of x's first operands the product of x with a weight can be made of; 0: it cannot be. */
static int n_factorable(const Narrow *n, const Op *x) {
    for (int i = 0; i < x->n_in; i++)
        if (!is_plain(n, &x->in[i]->type)) return 0;
    switch (x->kind) {
    case OP_VIEW:
        return is_feature_view(n, x);
    case OP_COPY:
        return 1;
    case OP_CONCAT:
        return x->over[0]->kind == SP_DIM && has_rows(n, x->in[0]) && has_rows(n, x->in[1]) ? 2 : 0;
    case OP_ADD:
        return 2;
    case OP_MUL:
        return row_operand(n, x) < 0 ? 0 : 2;
    default:
        return 0;
    }
}

/* The operations per row of the product of x with a weight that gives `out` elements. */
static double cost(const Narrow *n, const Op *x, double out, int depth) {
    if (!has_rows(n, x)) return 0;
    double w = width(n, &x->type), direct = x->type.rank > 1 ? 2 * w * out : out, factored = 0;
    int k = depth < MAX_DEPTH ? n_factorable(n, x) : 0;
    if (x->kind == OP_ADD || x->kind == OP_CONCAT) factored = out;
    for (int i = 0; i < k; i++) factored += cost(n, x->in[i], out, depth + 1);
    return k && factored <= direct ? factored : direct;
}

/* ---- rewriting ------------------------------------------------------------------------------- */
static Op *product(Narrow *n, Op *x, Op *v, const Type *out, int depth);

/* The weight with the dimensions of what x is a view of. */
static Op *view_weight(Narrow *n, const Op *x, Op *v) {
    const Type *to = &x->type, *from = &x->in[0]->type;
    Type t = v->type;
    t.rank = 0;
    for (int i = 0; i < v->type.rank; i++) {
        int at = type_find(to, v->type.dim[i]);
        bool all = at > 0 && to->rank == 2;
        if (at < 0) t.dim[t.rank++] = v->type.dim[i];
        for (int k = 1; k < from->rank && at > 0; k++)
            if (all || k == at) t.dim[t.rank++] = from->dim[k];
    }
    return b_view(&n->b, v, t);
}

/* Whether that view of the weight has few enough dimensions. */
static bool view_fits(const Op *x, const Op *v) {
    return x->kind != OP_VIEW || v->type.rank + x->in[0]->type.rank - x->type.rank <= MAX_RANK;
}

/* The direct product of x with v, after v is summed along what x does not have. */
static Op *product_leaf(Narrow *n, Op *x, Op *v, const Type *out) {
    Space *over[MAX_RANK];
    int n_over = 0;
    Type t = *out;
    for (int i = 0; i < v->type.rank; i++) {
        Space *s = v->type.dim[i];
        if (!type_has(out, s) && !type_has(&x->type, s)) over[n_over++] = s;
    }
    if (n_over) v = b_reduce(&n->b, RED_SUM, v, n_over, over);
    if (!has_rows(n, x))
        for (int i = 1; i < out->rank; i++) t.dim[i - 1] = out->dim[i];
    t.rank = out->rank - !has_rows(n, x);
    bool scalar_row = x->type.rank == has_rows(n, x);
    return scalar_row ? b_copy(&n->b, b_binary(&n->b, OP_MUL, x, v), t)
                      : b_contract(&n->b, x, v, t);
}

/* The sum of two products; the one with rows comes first. */
static Op *add_products(Narrow *n, Op *x, Op *y) {
    return has_rows(n, x) ? b_binary(&n->b, OP_ADD, x, y) : b_binary(&n->b, OP_ADD, y, x);
}

/* The product of a concatenation: the sum of products with slices of the weight. */
static Op *product_concat(Narrow *n, Op *x, Op *v, const Type *out, int depth) {
    Op *y[2];
    for (int i = 0; i < 2; i++) {
        const Expr *at = i ? x->over[0]->size : expr_const(n->m->a, 0);
        Op *part = b_slice(&n->b, v, x->over[2], x->over[i], at);
        y[i] = product(n, x->in[i], part, out, depth + 1);
    }
    return add_products(n, y[0], y[1]);
}

/* x times the weight v: [rows, ..], or without the rows if x has none. */
static Op *product(Narrow *n, Op *x, Op *v, const Type *out, int depth) {
    double o = width(n, out), direct = x->type.rank > 1 ? 2 * width(n, &x->type) * o : o;
    bool factorable = has_rows(n, x) && depth < MAX_DEPTH && n_factorable(n, x) &&
                      view_fits(x, v) && cost(n, x, o, depth) <= direct;
    int at;
    if (!factorable) return product_leaf(n, x, v, out);
    switch (x->kind) {
    case OP_VIEW:
        return product(n, x->in[0], view_weight(n, x, v), out, depth + 1);
    case OP_COPY:
        return product(n, x->in[0], v, out, depth + 1);
    case OP_CONCAT:
        return product_concat(n, x, v, out, depth);
    case OP_MUL:
        at = row_operand(n, x);
        return product(n, x->in[at], b_binary(&n->b, OP_MUL, v, x->in[1 - at]), out, depth + 1);
    default: /* a sum */
        at = !has_rows(n, x->in[0]);
        Op *y = product(n, x->in[at], v, out, depth + 1);
        return add_products(n, y, product(n, x->in[1 - at], v, out, depth + 1));
    }
}

/* The weight with new names for the dimensions of the result, which x's computation may use, too.
 */
static Op *rename_dims(Narrow *n, Op *v, const Op *root, Type *out) {
    Type t = v->type;
    *out = root->type;
    for (int i = 1; i < out->rank; i++) {
        Space *s = out->dim[i];
        out->dim[i] = space_dim(n->m, s->name, s->size, root->span);
        t.dim[type_find(&t, s)] = out->dim[i];
    }
    return b_view(&n->b, v, t);
}

/* Whether op is rows of x times a weight, summed along all that a row of x has. */
static bool is_product(const Op *op, const Op *x, const Op *v) {
    Space *rows = x->type.dim[0];
    if (x->type.rank < 2 || rows->kind == SP_DIM || op->type.dim[0] != rows) return false;
    for (int i = 0; i < v->type.rank; i++)
        if (v->type.dim[i]->kind != SP_DIM) return false;
    for (int i = 1; i < op->type.rank; i++)
        if (!type_has(&v->type, op->type.dim[i]) || type_has(&x->type, op->type.dim[i]))
            return false;
    for (int i = 1; i < x->type.rank; i++)
        if (!type_has(&v->type, x->type.dim[i])) return false;
    return true;
}

/* Rewrites the product by operand i, if that saves enough operations. */
static bool try_operand(Narrow *n, Op *op, int i) {
    Op *x = op->in[i], *v = op->in[1 - i];
    Type out;
    if (!is_product(op, x, v)) return false;
    n->rows = x->type.dim[0];
    if (!is_plain(n, &x->type) || !is_plain(n, &v->type)) return false;
    double o = width(n, &op->type), before = 2 * width(n, &x->type) * o, after = cost(n, x, o, 0);
    if (after * 100 >= before * pass_threshold(n->p->ctx, PASS_T_NARROW_PART)) {
        if (after < before)
            pass_refusal(n->p, op->span, "narrow",
                         "'%s' stays: %.0f operations would be left of %.0f, and "
                         "--narrow.max-part is %d %%",
                         pass_named(op), after, before,
                         pass_threshold(n->p->ctx, PASS_T_NARROW_PART));
        return false;
    }
    if (!pass_may_rewrite(n->p)) return false;
    n->b = b_for(n->m, op->func, op, op);
    v = rename_dims(n, v, op, &out);
    Op *y = product(n, x, v, &out, 0);
    y = b_view(&n->b, has_rows(n, y) ? y : b_copy(&n->b, y, out), op->type);
    y->hint = op->hint;
    op_replace_uses(op->func, op, y);
    pass_remark(n->p, op->span, "narrow",
                "'%s' is made of the numbers of a row: %.0f operations, not %.0f",
                op->hint ? op->hint : op_mnemonic(op->kind), after, before);
    return true;
}

/* Rewrites all products of a function. */
static void narrow_func(PassCtx *p, Module *m, Func *f) {
    Narrow n = {.p = p, .m = m, .size = NEWN(p->a, int64_t, (size_t)m->syms.n + 1)};
    int n_syms = m->syms.n;
    for (int i = 0; i < n_syms; i++) n.size[i] = pass_threshold(p->ctx, PASS_T_ORDER_WIDTH);
    func_keep_users(p->a, f);
    for (Op *op = f->first, *next; op; op = next) {
        next = op->next;
        if (op->kind == OP_CONTRACT && !try_operand(&n, op, 0)) try_operand(&n, op, 1);
    }
    pass_dce_func(p->a, f);
}

static bool run(PassCtx *p, Module *m) {
    for (int i = 0; i < m->funcs.n; i++) narrow_func(p, m, m->funcs.v[i]);
    return true;
}

const Pass pass_narrow = {
    .name = "narrow",
    .summary = "multiply what widens a row with the weight, before the row",
    .needs = IR_TYPED,
    .breaks = IR_FUSED,
    .run = run,
};
