/* Rounded copies of weights, made where the weights change.
 *
 *     %w = var "w"            : f32[O, F]      %w = var "w"            : f32[O, F]
 *     %c = cast %w            : bf16[O, F]     %c = var "w bf16"       : bf16[O, F]
 *     %z = contract %x, %c                     %z = contract %x, %c
 *     ..                                       ..
 *     %n = sub %w, %s         : f32[O, F]  ->  %n = sub %w, %s         : f32[O, F]
 *     assign "w" %n                            %r = cast %n            : bf16[O, F]
 *                                              assign "w" %n
 *                                              assign "w bf16" %r
 *
 *                                              func @refresh {
 *                                                %w = var "w"          : f32[O, F]
 *                                                %c = cast %w          : bf16[O, F]
 *                                                assign "w bf16" %c
 *                                              }
 *
 * What a step computes of the state alone, element by element, the step before can compute where
 * it writes that state: the update's kernel has each element in a register, so the next step
 * neither reads the weight nor launches a kernel for it.  The bits are the same.  The copy is a
 * variable that is never saved (VAR_KEPT): whoever else changes the state (initial values, a
 * checkpoint, the C API, the best epoch's parameters) has @refresh run before the next phase.
 * Other phases read the copy where theirs would be the same; with an average of the parameters
 * (`ema`) evaluation's is not, and stays its own.
 *
 * Only what is narrower than the state it is computed of: another f32 copy would cost as much
 * memory as the parameter itself.  Micikevicius et al. 2018 keep a 16-bit copy beside the master
 * weights in the same way; NVIDIA Apex's fused optimizers write it in the update's kernel. */
#include "passes/rewrite.h"

#include <string.h>

typedef struct {
    Var *var;
    Op *made; /* its value, in @refresh */
} Kept;

typedef struct {
    PassCtx *p;
    Module *m;
    Func *train, *refresh;
    VEC(Kept) kept;
} Carry;

/* ---- what is computed of the state alone ---------------------------------------------------- */
static bool is_half(DType dt) {
    return dt == DT_BF16 || dt == DT_F16;
}

static bool is_step(const Op *op) {
    return op_has(op, OPT_ELEM) && op_has(op, OPT_PURE) && !pass_is_transpose(op);
}

/* seen: by id; looked at already */
static bool of_state(const Op *op, bool *seen) {
    if (op->kind == OP_CONST || op->kind == OP_VAR || seen[op->id]) return true;
    seen[op->id] = true;
    bool ok = is_step(op) && op->n_in > 0;
    for (int i = 0; i < op->n_in && ok; i++) ok = of_state(op->in[i], seen);
    return ok;
}

/* The views that lie between the copy and what it is a copy of. */
static Op *below_views(Op *x) {
    while (x->kind == OP_VIEW) x = x->in[0];
    return x;
}

static Op *assigned(const Func *f, const Var *v) {
    for (Op *op = f->last; op; op = op->prev)
        if (op->kind == OP_ASSIGN && op->var == v) return op->in[0];
    return NULL;
}

/* Is each variable that @train changes written element by element where the copy's elements are?
 * Scalars are known everywhere. */
static bool is_aligned(const Carry *c, const Op *op, const Type *t, bool *seen) {
    if (seen[op->id]) return true;
    seen[op->id] = true;
    if (op->kind == OP_VAR && op->type.rank && assigned(c->train, op->var))
        return type_same_spaces(&op->type, t);
    for (int i = 0; i < op->n_in; i++)
        if (!is_aligned(c, op->in[i], t, seen)) return false;
    return true;
}

static bool *marks(const Carry *c, const Func *f) {
    return NEWN(c->p->a, bool, (size_t)f->n_ops + 1);
}

/* A rounded copy of state in memory, of a function whose operations have numbers. */
static bool is_copy(const Carry *c, const Func *f, const Op *op) {
    if (op->kind != OP_CAST || op->fused || op->again || !is_half(op->type.dt)) return false;
    const Op *x = below_views(op->in[0]);
    if (!op->type.rank || x->type.dt == op->type.dt || x->kind == OP_CONST) return false;
    return of_state(x, marks(c, f)) && is_aligned(c, x, &x->type, marks(c, f));
}

/* Do x and y of two functions compute the same? */
static bool is_same(const Op *x, const Op *y) {
    if (x->kind != y->kind || x->n_in != y->n_in || !type_eq(&x->type, &y->type)) return false;
    if (x->var != y->var || x->imm != y->imm) return false;
    for (int i = 0; i < x->n_in; i++)
        if (!is_same(x->in[i], y->in[i])) return false;
    return true;
}

static const Kept *find_kept(const Carry *c, const Op *x, DType dt) {
    for (int i = 0; i < c->kept.n; i++) {
        const Op *made = c->kept.v[i].made;
        if (made->type.dt == dt && is_same(made->in[0], x)) return &c->kept.v[i];
    }
    return NULL;
}

/* ---- @refresh ---------------------------------------------------------------------------------
 */
typedef struct {
    const Op *of;
    Op *is;
} Pair;
typedef VEC(Pair) Pairs;

static Op *paired(const Pairs *done, const Op *of) {
    for (int i = 0; i < done->n; i++)
        if (done->v[i].of == of) return done->v[i].is;
    return NULL;
}

/* op and what it is computed of, anew where b stands; what `done` has is there. */
static Op *copied(Arena *a, Builder *b, Pairs *done, Op *op) {
    Op *is = paired(done, op);
    if (is) return is;
    Op proto = *op;
    proto.in = NEWN(a, Op *, (size_t)op->n_in + 1);
    for (int i = 0; i < op->n_in; i++) proto.in[i] = copied(a, b, done, op->in[i]);
    is = b_op(b, &proto);
    is->fused = op->kind != OP_VAR;
    is->hint = op->hint;
    vec_push(a, done, ((Pair){op, is}));
    return is;
}

/* The parameter that x is made of, or another variable of its spaces. */
static const Var *main_var(const Op *x, const Type *t) {
    const Var *found = NULL;
    if (x->kind == OP_VAR) return type_same_spaces(&x->type, t) ? x->var : NULL;
    for (int i = 0; i < x->n_in; i++) {
        const Var *v = main_var(x->in[i], t);
        if (v && (!found || (found->kind != VAR_PARAM && v->kind == VAR_PARAM))) found = v;
    }
    return found;
}

static const char *free_path(const Carry *c, const Var *of, DType dt) {
    const char *first = arena_printf(c->m->a, "%s %s", of->path, dtype_name(dt)), *path = first;
    for (int n = 2; var_find(c->m, path); n++) path = arena_printf(c->m->a, "%s %d", first, n);
    return path;
}

static Kept new_kept(Carry *c, Op *x, const Var *of, DType dt) {
    Type t = x->type;
    t.dt = dt;
    Init zero = {.kind = INIT_CONST};
    Kept k = {.var = var_new(c->m, VAR_KEPT, free_path(c, of, dt), t, zero, of->span)};
    if (!c->refresh) c->refresh = func_new_phase(c->m, PHASE_REFRESH);
    Builder b = {.m = c->m, .f = c->refresh, .span = of->span};
    Pairs none = {0};
    k.made = b_cast(&b, copied(c->p->a, &b, &none, x), dt);
    k.made->why = "kept for products, once after the state was set from outside";
    b_assign(&b, k.var, k.made);
    vec_push(c->p->a, &c->kept, k);
    return k;
}

/* ---- @train ------------------------------------------------------------------------------------
 */
/* A scalar that becomes another one in a kernel of its own, later: computed anew where it is read.
 */
static bool is_small_step(const Op *x) {
    return !x->type.rank && is_step(x) && x->n_in > 0;
}

typedef struct {
    Pairs done; /* variables and constants: what they are when the step has ended */
    Op *last;   /* of all that these need */
} Ends;

static void need(Ends *e, Op *x) {
    if (!e->last || x->id > e->last->id) e->last = x;
}

static void find_ends(const Carry *c, Ends *e, Op *op) {
    Op *x = op->kind == OP_VAR ? assigned(c->train, op->var) : NULL;
    if (paired(&e->done, op)) return;
    if (op->kind != OP_VAR && op->kind != OP_CONST) {
        for (int i = 0; i < op->n_in; i++) find_ends(c, e, op->in[i]);
        return;
    }
    if (!x) x = op;
    vec_push(c->p->a, &e->done, ((Pair){op, x}));
    if (is_small_step(x))
        for (int i = 0; i < x->n_in; i++) need(e, x->in[i]);
    else
        need(e, x);
}

/* Behind the last operation that it needs: in the kernel that makes that one. */
static void write_kept(Carry *c, Op *x, const Kept *k) {
    Ends e = {.last = NULL};
    func_number(c->train);
    find_ends(c, &e, x);
    Builder b = {.m = c->m, .f = c->train, .at = e.last->next, .span = k->var->span};
    for (int i = 0; i < e.done.n; i++) {
        Op *is = e.done.v[i].is;
        if (e.done.v[i].of == is || !is_small_step(is)) continue;
        e.done.v[i].is = b_op(&b, is);
        e.done.v[i].is->fused = true;
    }
    Op *low = b_cast(&b, copied(c->p->a, &b, &e.done, x), k->var->type.dt);
    low->why = "kept for the next step's products";
    b.at = NULL;
    b_assign(&b, k->var, low);
}

static bool is_changed(const Carry *c, const Op *x) {
    if (x->kind == OP_VAR) return assigned(c->train, x->var) != NULL;
    for (int i = 0; i < x->n_in; i++)
        if (is_changed(c, x->in[i])) return true;
    return false;
}

static void keep(Carry *c, const Op *op) {
    Op *x = below_views(op->in[0]);
    const Var *of = main_var(x, &x->type);
    if (!of || find_kept(c, x, op->type.dt)) return;
    Kept k = new_kept(c, x, of, op->type.dt);
    if (is_changed(c, x)) write_kept(c, x, &k);
    pass_remark(c->p, of->span, "carry",
                "'%s' is rounded to %s where it is updated, not when the next step reads it",
                of->path, dtype_name(op->type.dt));
}

/* ---- readers ------------------------------------------------------------------------------------
 */
/* x, seen as `view` and the views below it see what they are of. */
static Op *viewed(Builder *b, const Op *view, Op *x) {
    if (view->kind != OP_VIEW) return x;
    Type t = view->type;
    Op *in = viewed(b, view->in[0], x);
    t.dt = x->type.dt;
    return b_view(b, in, t);
}

static void read_kept(Carry *c, Func *f) {
    func_number(f);
    func_keep_users(c->p->a, f);
    int n = f->n_ops;
    for (Op *op = f->first, *next; op; op = next) {
        next = op->next;
        if (op->id >= n || !is_copy(c, f, op)) continue;
        const Kept *k = find_kept(c, below_views(op->in[0]), op->type.dt);
        if (!k) continue;
        Builder b = b_for(c->m, f, op, op);
        Op *now = b_var(&b, k->var);
        now->hint = op->hint ? op->hint : k->var->path;
        now->why = "a parameter's copy for products, written when it changes";
        op_replace_uses(f, op, viewed(&b, op->in[0], now));
    }
    pass_dce_func(c->p->a, f);
}

static bool run(PassCtx *p, Module *m) {
    Carry c = {.p = p, .m = m, .train = func_of(m, PHASE_TRAIN)};
    VEC(Op *) copies = {0};
    if (!c.train || func_of(m, PHASE_REFRESH)) return true;
    func_number(c.train);
    for (Op *op = c.train->first; op; op = op->next)
        if (is_copy(&c, c.train, op)) vec_push(p->a, &copies, op);
    for (int i = 0; i < copies.n; i++) keep(&c, copies.v[i]);
    for (int i = 0; i < m->funcs.n && c.kept.n; i++)
        if (!m->funcs.v[i]->body && m->funcs.v[i] != c.refresh) read_kept(&c, m->funcs.v[i]);
    return true;
}

const Pass pass_carry = {
    .name = "carry",
    .summary = "round weights for the next step where they are updated",
    .needs = IR_TYPED | IR_FUSED,
    .run = run,
};
