/* Weights stored the way the step reads them.
 *
 *     %w = var "w"                    : f32[O, F]      %w = var "w"              : f32[F, O]
 *     %t = copy %w                    : f32[F, O]      %g = gather nzcol(x) %w   : f32[nz, O]
 *     %g = gather nzcol(x) %t         : f32[nz, O]     ..
 *     ..                                               %d = segment sum nzcol(x) : f32[F, O]
 *     %d = segment sum nzcol(x) ..    : f32[F, O]  ->  %s = mul %d, %lr          : f32[F, O]
 *     %e = copy %d                    : f32[O, F]      %n = sub %w, %s           : f32[F, O]
 *     %s = mul %e, %lr                : f32[O, F]      assign "w" %n
 *     %n = sub %w, %s                 : f32[O, F]
 *     assign "w" %n
 *
 * A sparse product gathers rows of the weight, so it wants the summed space first, where PyG's
 * Linear has it last; its gradient comes in that order, too.  Each step would transpose both.  So
 * the variable and its optimizer slots are stored in the other order (Var.turn) and the update is
 * made in it, where nothing else wants the old one: the update's elementwise operations, sums over
 * all of it (the norm that gradients are clipped by), and matrix products, which read either order.
 * Files, initial values and the C API keep the written order.
 *
 * The layout is chosen for all phases at once, as in the data layout assignment of XLA and of
 * Liu et al. 2019, "Optimizing CNN Model Inference on CPUs" (NeoCPU), where a weight is
 * transposed when the program is compiled. */
#include "passes/rewrite.h"

/* What one function does with values of the variable's elements. */
typedef struct {
    Func *f;
    Op **op; /* by id */
    int n;
    bool *mine; /* by id: of the variable's spaces, to be made in the other order */
} Part;

typedef struct {
    PassCtx *p;
    Module *m;
    const Var *var;
    Type is, be; /* the order of spaces now, and the one that is wanted */
    int turn;
    Part *part;
    int copies; /* that are saved, less those that are made */
} Turn;

/* ---- which order ------------------------------------------------------------------------ */
static bool same_order(const Type *x, const Type *y) {
    return type_same_spaces(x, y);
}

/* The first spaces of t moved behind the others: the last `turn` come first. */
static Type turned(const Type *t, int turn) {
    Type y = *t;
    for (int i = 0; i < t->rank; i++) y.dim[i] = t->dim[(i + t->rank - turn) % t->rank];
    return y;
}

/* How many of the last spaces of x come first in y; 0: it is another order, or the same. */
static int turn_of(const Type *x, const Type *y) {
    for (int turn = 1; turn < x->rank; turn++) {
        Type t = turned(x, turn);
        if (same_order(&t, y)) return turn;
    }
    return 0;
}

/* A slot of the variable's optimizer state, or itself. */
static bool is_of(const Turn *t, const Var *v) {
    if (v == t->var) return true;
    return v->of == t->var && same_order(&v->type, &t->is);
}

/* The one order other than its own that copies of the variable have. */
static bool find_order(Turn *t) {
    for (int i = 0; i < t->m->funcs.n; i++)
        for (const Op *op = t->m->funcs.v[i]->first; op; op = op->next) {
            const Op *x = op->kind == OP_COPY ? op->in[0] : NULL;
            if (!x || x->kind != OP_VAR || x->var != t->var || !pass_is_transpose(op)) continue;
            int turn = turn_of(&t->is, &op->type);
            if (!turn || (t->turn && t->turn != turn)) return false;
            t->turn = turn;
        }
    if (t->turn) t->be = turned(&t->is, t->turn);
    return t->turn > 0;
}

/* ---- what must follow --------------------------------------------------------------------- */
static bool is_plain(const Op *op) {
    return op_has(op, OPT_ELEM) && op->kind != OP_COPY;
}

/* A copy of what is in the wanted order already. */
static bool is_back(const Turn *t, const Op *op) {
    return op->kind == OP_COPY && same_order(&op->type, &t->is) &&
           same_order(&op->in[0]->type, &t->be);
}

/* May op be made in the other order, where its users want it so? */
static bool can_turn(const Turn *t, const Op *op) {
    if (op->type.dt == DT_VOID || !same_order(&op->type, &t->is)) return false;
    if (op->kind == OP_VAR) return is_of(t, op->var);
    return is_plain(op) || is_back(t, op) || (op->kind == OP_CONTRACT && op->type.rank == 2);
}

/* Does `user` not mind the order of its operand?  What is elementwise follows. */
static bool may_read(const Turn *t, const Op *user) {
    switch (user->kind) {
    case OP_COPY:
        return same_order(&user->type, &t->be);
    case OP_ASSIGN:
        return is_of(t, user->var);
    case OP_CONTRACT:
        return t->is.rank == 2;
    case OP_REDUCE:
        return user->n_over == t->is.rank;
    default:
        return is_plain(user) && can_turn(t, user);
    }
}

/* Adds what elementwise operations join with what is there. */
static bool spread(const Turn *t, Part *p) {
    bool more = false;
    for (int i = 0; i < p->n; i++) {
        const Op *op = p->op[i];
        bool joins = is_plain(op) && can_turn(t, op), any = p->mine[i];
        for (int k = 0; k < op->n_in && joins; k++) any |= p->mine[op->in[k]->id];
        if (!joins || !any) continue;
        more |= !p->mine[i];
        p->mine[i] = true;
        for (int k = 0; k < op->n_in; k++) {
            const Op *x = op->in[k];
            more |= can_turn(t, x) && !p->mine[x->id];
            p->mine[x->id] |= can_turn(t, x);
        }
    }
    return more;
}

static Part part_of(const Turn *t, Func *f) {
    func_number(f);
    Part p = {.f = f, .n = f->n_ops};
    p.op = NEWN(t->p->a, Op *, (size_t)p.n + 1);
    p.mine = NEWN(t->p->a, bool, (size_t)p.n + 1);
    for (Op *op = f->first; op; op = op->next) {
        p.op[op->id] = op;
        p.mine[op->id] = op->kind == OP_VAR && can_turn(t, op);
    }
    while (spread(t, &p)) {
    }
    return p;
}

/* An operand that is not made in the wanted order, but must be read in it. */
static bool is_foreign(const Turn *t, const Part *p, const Op *x) {
    return x->type.dt != DT_VOID && same_order(&x->type, &t->is) && !p->mine[x->id];
}

/* Counts the copies; false: somebody wants the order that is. */
static bool weigh(Turn *t, const Part *p) {
    for (int i = 0; i < p->n; i++) {
        const Op *op = p->op[i];
        t->copies += p->mine[i] && is_back(t, op);
        for (int k = 0; k < op->n_in; k++) {
            bool mine = p->mine[op->in[k]->id];
            if (mine && !p->mine[i] && !may_read(t, op)) return false;
            if (mine && op->kind == OP_COPY) t->copies++;
            t->copies -= p->mine[i] && is_plain(op) && is_foreign(t, p, op->in[k]);
        }
    }
    return true;
}

/* An assignment of what does not follow would need a copy behind it. */
static bool assigns_fit(const Turn *t, const Part *p) {
    for (int i = 0; i < p->n; i++)
        if (p->op[i]->kind == OP_ASSIGN && is_of(t, p->op[i]->var) && !p->mine[p->op[i]->in[0]->id])
            return false;
    return true;
}

/* ---- the other order ------------------------------------------------------------------------- */
static void reorder(const Turn *t, Type *type) {
    for (int i = 0; i < type->rank; i++) type->dim[i] = t->be.dim[i];
}

static void read_turned(const Turn *t, const Part *p, Op *op) {
    Builder b = b_for(t->m, p->f, op, op);
    for (int k = 0; k < op->n_in; k++) {
        Op *x = op->in[k];
        if (x->id >= p->n || !same_order(&x->type, &t->is) || p->mine[x->id]) continue;
        Type want = x->type;
        reorder(t, &want);
        op->in[k] = b_copy(&b, x, want);
    }
}

static void rewrite(const Turn *t, const Part *p) {
    for (int i = 0; i < p->n; i++) {
        Op *op = p->op[i];
        if (p->mine[i] && is_plain(op)) read_turned(t, p, op);
    }
    for (int i = 0; i < p->n; i++) {
        Op *op = p->op[i];
        bool is_mine = p->mine[i], of_mine = op->n_in && p->mine[op->in[0]->id];
        if (is_mine) reorder(t, &op->type);
        if (op->kind == OP_COPY && (is_mine || of_mine)) op_replace_uses(p->f, op, op->in[0]);
    }
    pass_dce_func(t->p->a, p->f);
}

static void turn_variables(const Turn *t) {
    for (int i = 0; i < t->m->vars.n; i++) {
        Var *v = t->m->vars.v[i];
        if (v == t->var || !is_of(t, v)) continue;
        v->turn = t->turn;
        reorder(t, &v->type);
    }
    Var *v = var_find(t->m, t->var->path); /* last: slots are told by its order */
    v->turn = t->turn;
    reorder(t, &v->type);
}

static void turn_variable(PassCtx *p, Module *m, const Var *v) {
    Turn t = {.p = p, .m = m, .var = v, .is = v->type};
    if (v->turn || !find_order(&t)) return;
    t.part = NEWN(p->a, Part, (size_t)m->funcs.n);
    for (int i = 0; i < m->funcs.n; i++) {
        t.part[i] = part_of(&t, m->funcs.v[i]);
        if (!weigh(&t, &t.part[i]) || !assigns_fit(&t, &t.part[i])) return;
    }
    if (t.copies <= 0) return;
    for (int i = 0; i < m->funcs.n; i++) rewrite(&t, &t.part[i]);
    turn_variables(&t);
    pass_remark(p, v->span, "turn", "'%s' is stored with its last %d of %d spaces first", v->path,
                t.turn, v->type.rank);
}

static bool run(PassCtx *p, Module *m) {
    for (int i = 0; i < m->vars.n; i++)
        if (m->vars.v[i]->kind == VAR_PARAM) turn_variable(p, m, m->vars.v[i]);
    return true;
}

const Pass pass_turn = {
    .name = "turn",
    .summary = "store weights in the order in which the step reads them",
    .needs = IR_TYPED | IR_NO_CSR,
    .breaks = IR_FUSED,
    .run = run,
};
