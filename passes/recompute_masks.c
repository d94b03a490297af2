/* Masks from results: the backward of an activation reads what the forward stored anyway.
 *
 *     %r = max %x, 0                              %r = max %x, 0
 *     %s = select %keep, 2, 0                     %s = select %keep, 2, 0
 *     %y = mul %r, %s                      ->     %y = mul %r, %s
 *     %p = lt 0, %x                               %p = lt 0, %y
 *     %g = mul %dy, %s                            %g = mul %dy, 2
 *     %dx = select %p, %g, 0                      %dx = select %p, %g, 0
 *
 * y is positive where x is and the dropout kept it, so one comparison with what the next
 * layer's product needs in memory replaces the input of the activation, which then is
 * stored nowhere, and the random mask.  Both steps are exact: the sign of max(x, 0) is that
 * of x where x is positive, a scale of at least 1 cannot make it vanish, and where the mask
 * is 0 both sides are.  Cf. in-place activations (Rota Bulo, Porzi & Kontschieder 2018,
 * "In-Place Activated BatchNorm"). */
#include "passes/rewrite.h"

typedef struct {
    PassCtx *p;
    Builder b;
    int **user; /* by op id: ids of users */
    int *n_users;
    Op **op; /* by id */
} Masks;

/* Whether the operation is the constant 0. */
static bool is_zero(const Op *op) {
    double v = 1;
    return pass_is_const(op, &v) && v == 0;
}

/* x of max(x, 0); else NULL. */
static Op *rectified(const Op *op) {
    if (op->kind != OP_MAX) return NULL;
    return is_zero(op->in[1]) ? op->in[0] : is_zero(op->in[0]) ? op->in[1] : NULL;
}

/* Whether the operation is select(keep, c, 0). */
static bool is_mask(const Op *op, double *c) {
    return op->kind == OP_SELECT && is_zero(op->in[2]) && pass_is_const(op->in[1], c);
}

/* A user of x before `at` for which fits(user, x, arg) holds, or NULL. */
static Op *find_user(const Masks *m, const Op *x, const Op *at,
                     bool (*fits)(const Op *, const Op *, const void *), const void *arg) {
    for (int i = 0; i < m->n_users[x->id]; i++) {
        Op *u = m->op[m->user[x->id][i]];
        if (u->id < at->id && type_eq(&u->type, &x->type) && fits(u, x, arg)) return u;
    }
    return NULL;
}

/* Whether the user is max(x, 0). */
static bool is_rectified(const Op *user, const Op *x, const void *arg) {
    (void)arg;
    return rectified(user) == x;
}

/* Whether the user is x * s. */
static bool is_product_with(const Op *user, const Op *x, const void *s) {
    if (user->kind != OP_MUL) return false;
    return (user->in[0] == x && user->in[1] == s) || (user->in[1] == x && user->in[0] == s);
}

/* Whether max(x, 0) exists anywhere. */
static bool has_rectified(const Masks *m, const Op *x) {
    for (int i = 0; i < m->n_users[x->id]; i++)
        if (rectified(m->op[m->user[x->id][i]]) == x) return true;
    return false;
}

/* Reads the sign of x from max(x, 0), if that exists. */
static void from_rectified(const Masks *m, Op *lt) {
    Op *r = lt->kind == OP_LT && is_zero(lt->in[0])
                ? find_user(m, lt->in[1], lt, is_rectified, NULL)
                : NULL;
    if (!r && lt->kind == OP_LT && is_zero(lt->in[0]) && has_rectified(m, lt->in[1]))
        pass_refusal(m->p, lt->span, "recompute-masks",
                     "'%s' is stored for its sign: max(%s, 0) comes later", pass_named(lt->in[1]),
                     pass_named(lt->in[1]));
    if (!r || !pass_may_rewrite(m->p)) return;
    lt->in[1] = r;
    pass_remark(m->p, lt->span, "recompute-masks", "the sign of '%s' is read off '%s'",
                pass_named(r->in[rectified(r) == r->in[1]]), pass_named(r));
}

/* Inserts an operation before `like`, named like it. */
static Op *insert_like(Masks *m, Op *like, OpKind kind, Op *x, Op *y) {
    m->b.at = like;
    b_like(&m->b, like);
    Op *in[] = {x, y};
    Op proto = {.kind = kind, .n_in = 2, .in = in, .hint = like->hint};
    proto.type = kind == OP_LT ? y->type : x->type;
    if (kind == OP_LT) proto.type.dt = DT_I1;
    return b_op(&m->b, &proto);
}

/* Reads the sign and the mask of select(lt(0, r), s * g, 0) from the product r * s, if that exists.
 */
static void from_scaled(Masks *m, Op *op) {
    if (op->kind != OP_SELECT || !is_zero(op->in[2])) return;
    Op *lt = op->in[0], *product = op->in[1];
    if (lt->kind != OP_LT || !is_zero(lt->in[0]) || !rectified(lt->in[1])) return;
    if (product->kind != OP_MUL) return;
    for (int i = 0; i < 2; i++) {
        Op *s = product->in[i], *g = product->in[1 - i];
        double c;
        if (!is_mask(s, &c) || !type_eq(&g->type, &product->type)) continue;
        if (!(c >= 1)) { /* nor is NaN */
            pass_refusal(m->p, op->span, "recompute-masks",
                         "the mask '%s' is read again: a scale of %g could make a result vanish",
                         pass_named(s), c);
            continue;
        }
        Op *y = find_user(m, lt->in[1], op, is_product_with, s);
        if (!y)
            pass_refusal(m->p, op->span, "recompute-masks",
                         "the mask '%s' is read again: its product with '%s' is not there",
                         pass_named(s), pass_named(lt->in[1]));
        if (!y || !pass_may_rewrite(m->p)) continue;
        pass_remark(m->p, op->span, "recompute-masks",
                    "the sign of '%s' and the mask are read off '%s'", pass_named(lt->in[1]),
                    pass_named(y));
        m->b.at = op;
        op->in[1] = insert_like(m, op, OP_MUL, g, b_const(&m->b, g->type.dt, c));
        op->in[0] = insert_like(m, op, OP_LT, lt->in[0], y);
        return;
    }
}

/* Lists the users of each value. */
static void link_users(Arena *a, Masks *m, Func *f) {
    int *count = func_use_counts(a, f);
    int n = 0;
    m->user = NEWN(a, int *, (size_t)f->n_ops);
    m->n_users = NEWN(a, int, (size_t)f->n_ops);
    m->op = NEWN(a, Op *, (size_t)f->n_ops);
    for (Op *op = f->first; op; op = op->next) m->op[n++] = op;
    for (int i = 0; i < n; i++) m->user[i] = NEWN(a, int, (size_t)count[i]);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < m->op[i]->n_in; k++) {
            int x = m->op[i]->in[k]->id;
            m->user[x][m->n_users[x]++] = i;
        }
}

/* Runs the pass: masks that the backward pass reads are computed again from results that are stored
 * anyway, so that neither masks nor the inputs of activations need memory. */
static bool run(PassCtx *p, Module *mod) {
    for (int i = 0; i < mod->funcs.n; i++) {
        Func *f = mod->funcs.v[i];
        func_number(f);
        Masks m = {.p = p, .b = {.m = mod, .f = f}};
        link_users(p->a, &m, f);
        int n = f->n_ops; /* what is added needs no look */
        for (int k = 0; k < n; k++) from_rectified(&m, m.op[k]);
        for (int k = 0; k < n; k++) from_scaled(&m, m.op[k]);
        pass_dce_func(p->a, f);
    }
    return true;
}

const Pass pass_recompute_masks = {
    .name = "recompute-masks",
    .summary = "backward masks from the results that are stored anyway",
    .needs = IR_TYPED,
    .breaks = IR_FUSED,
    .run = run,
};
