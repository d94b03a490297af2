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
 * Of a program that serves rows nothing changes the state between its predictions: what each of
 * them would round anew is rounded by @refresh, once.
 *
 * Only what is narrower than the state it is computed of: another f32 copy would cost as much
 * memory as the parameter itself.  Micikevicius et al. 2018 keep a 16-bit copy beside the master
 * weights in the same way; NVIDIA Apex's fused optimizers write it in the update's kernel. */
#include "ir/walk.h"
#include "passes/rewrite.h"

typedef struct RoundedWeight {
    Var *var;
    Op *value;                        /* its value, in @refresh, before it is rounded */
    const struct RoundedWeight *next; /* another one of the same parameter; NULL = none */
} RoundedWeight;

typedef struct {
    PassCtx *p;
    Module *m;
    Func *train, *refresh;
    const RoundedWeight **rounded; /* by id of the parameter that they are made of */
    int n_rounded;
    Op **assigned; /* by id of a variable: what @train makes of it; NULL = it does not change */
    /* Of the function that is looked at, by op id: */
    bool *from_state;
    IrMarks marks;
} RoundWeights;

/* ---- what is computed of the state alone ---------------------------------------------------- */
/* Whether the type has 16 bits. */
static bool is_half(DType dt) {
    return dt == DT_BF16 || dt == DT_F16;
}

/* Whether the operation is pure, elementwise and keeps the order of spaces. */
static bool is_elementwise(const Op *op) {
    return op_has(op, OPT_ELEM) && op_has(op, OPT_PURE) && !pass_is_transpose(op);
}

/* Whether the operation is a constant or a variable. */
static bool is_leaf(const Op *op) {
    return op->kind == OP_CONST || op->kind == OP_VAR;
}

/* Finds which values of f are computed elementwise from the state alone. */
static void analyse_func(RoundWeights *c, Func *f) {
    func_number(f);
    c->marks = ir_marks_new(c->p->a, f->n_ops);
    c->from_state = NEWN(c->p->a, bool, (size_t)f->n_ops + 1);
    for (const Op *op = f->first; op; op = op->next) {
        bool ok = is_leaf(op) || (is_elementwise(op) && op->n_in > 0);
        for (int i = 0; i < op->n_in && ok; i++) ok = c->from_state[op->in[i]->id];
        c->from_state[op->id] = ok;
    }
}

/* Lets a walk enter everything. */
static bool enter_all(void *user, const Op *op) {
    (void)user;
    (void)op;
    return true;
}

/* x and all that it is computed from, operands first. */
static IrOps computation_of(RoundWeights *c, const Op *x) {
    return ir_walk(c->p->a, &c->marks, x, enter_all, NULL);
}

/* The value that views show. */
static Op *below_views(Op *x) {
    while (x->kind == OP_VIEW) x = x->in[0];
    return x;
}

/* What @train assigns to the variable; NULL: nothing. */
static Op *assigned(const RoundWeights *c, const Op *var) {
    return var->kind == OP_VAR ? c->assigned[var->var->id] : NULL;
}

/* Whether each variable that @train changes is written at the elements where the copy's are.
 * Scalars are known everywhere. */
static bool is_aligned(RoundWeights *c, const Op *x) {
    IrOps ops = computation_of(c, x);
    for (int i = 0; i < ops.n; i++) {
        const Op *op = ops.v[i];
        if (op->type.rank && assigned(c, op) && !type_same_spaces(&op->type, &x->type))
            return false;
    }
    return true;
}

/* Whether op is a rounded copy of state in memory. */
static bool is_rounded_copy(RoundWeights *c, const Op *op) {
    if (op->kind != OP_CAST || op->fused || op->again || !is_half(op->type.dt)) return false;
    const Op *x = below_views(op->in[0]);
    if (!op->type.rank || x->type.dt == op->type.dt || x->kind == OP_CONST) return false;
    return c->from_state[x->id] && is_aligned(c, x);
}

/* The variable that x is computed from in its kernel; *transposed: it is read in another order. */
static const Op *variable_below(const Op *x, int depth, bool *transposed) {
    enum { DEEPEST = 8 };
    if (x->kind == OP_VAR) return x;
    if (depth == DEEPEST || (!x->fused && x->kind != OP_VIEW)) return NULL;
    for (int i = 0; i < x->n_in; i++) {
        const Op *v = variable_below(x->in[i], depth + 1, transposed);
        if (v) *transposed |= pass_is_transpose(x);
        if (v) return v;
    }
    return NULL;
}

/* Adds the remark about a weight that is rounded in each step. */
static void report_kept(RoundWeights *c, const Op *op) {
    bool transposed = false;
    if (op->kind != OP_CAST || op->fused || op->again || !is_half(op->type.dt)) return;
    const Op *x = below_views(op->in[0]), *v = variable_below(x, 0, &transposed);
    if (!v || !op->type.rank) return;
    pass_refusal(c->p, op->span, "round-weights", "'%s' is rounded in each step: %s", v->var->path,
                 transposed ? "it is read in another order than it is updated in"
                 : !c->from_state[x->id]
                     ? "more than variables is in it"
                     : "its elements lie elsewhere than those of what is updated");
}

/* Whether the value has no rows. */
static bool has_no_rows(const Op *op) {
    for (int i = 0; i < op->type.rank; i++)
        if (op->type.dim[i]->kind != SP_DIM) return false;
    return true;
}

typedef struct {
    Op *old;
    Op *new;
} OpPair;
typedef VEC(OpPair) OpPairs;

/* Clears the tags of a list. */
static void clear_tags(const OpPairs *of) {
    for (int i = 0; i < of->n; i++) of->v[i].old->tag = NULL;
}

/* Whether two operations agree but for their operands. */
static bool is_alike(const Op *x, const Op *y) {
    return x->kind == y->kind && x->n_in == y->n_in && type_eq(&x->type, &y->type) &&
           x->var == y->var && x->imm == y->imm;
}

/* Whether x and y of two functions compute the same. An operation's tag names the one it was
 * compared with. */
static bool computes_same(const RoundWeights *c, Op *x, Op *y) {
    OpPairs todo = {0}, seen = {0};
    bool same = true;
    vec_push(c->p->a, &todo, ((OpPair){x, y}));
    while (todo.n && same) {
        OpPair p = todo.v[--todo.n];
        if (p.old->tag == p.new) continue;
        same = is_alike(p.old, p.new);
        p.old->tag = p.new;
        vec_push(c->p->a, &seen, p);
        for (int i = 0; i < p.old->n_in && same; i++)
            vec_push(c->p->a, &todo, ((OpPair){p.old->in[i], p.new->in[i]}));
    }
    clear_tags(&seen);
    return same;
}

/* The parameter that x is computed from, or another variable of its spaces. */
static const Var *main_var(RoundWeights *c, const Op *x) {
    const Var *found = NULL;
    IrOps ops = computation_of(c, x);
    for (int i = 0; i < ops.n; i++) {
        const Op *op = ops.v[i];
        if (op->kind != OP_VAR || !type_same_spaces(&op->type, &x->type)) continue;
        if (!found || (found->kind != VAR_PARAM && op->var->kind == VAR_PARAM)) found = op->var;
    }
    return found;
}

/* The existing rounded copy of the value, or NULL. */
static const RoundedWeight *find_rounded(const RoundWeights *c, const Var *of, Op *x, DType dt) {
    for (const RoundedWeight *k = of ? c->rounded[of->id] : NULL; k; k = k->next)
        if (k->var->type.dt == dt && computes_same(c, x, k->value)) return k;
    return NULL;
}

/* ---- @refresh -------- */
/* Copies x's computation to where b stands; `final` maps what exists already. */
static Op *copy_computation(RoundWeights *c, Builder *b, const OpPairs *existing, Op *x) {
    OpPairs all = {0};
    for (int i = 0; i < existing->n; i++) {
        existing->v[i].old->tag = existing->v[i].new;
        vec_push(c->p->a, &all, existing->v[i]);
    }
    IrOps ops = computation_of(c, x);
    for (int i = 0; i < ops.n; i++) {
        Op *op = ops.v[i], proto = *op;
        if (op->tag) continue;
        proto.tag = NULL;
        proto.in = NEWN(c->p->a, Op *, (size_t)op->n_in + 1);
        for (int k = 0; k < op->n_in; k++) proto.in[k] = op->in[k]->tag;
        Op *copy = b_op(b, &proto);
        copy->fused = op->kind != OP_VAR;
        copy->hint = op->hint;
        op->tag = copy;
        vec_push(c->p->a, &all, ((OpPair){op, copy}));
    }
    Op *copy = x->tag;
    clear_tags(&all);
    return copy;
}

/* A free path for the rounded copy's variable. */
static const char *free_path(const RoundWeights *c, const Var *of, DType dt) {
    const char *first = arena_printf(c->m->a, "%s %s", of->path, dtype_name(dt)), *path = first;
    for (int n = 2; var_find(c->m, path); n++) path = arena_printf(c->m->a, "%s %d", first, n);
    return path;
}

/* Adds the variable of a rounded copy and its computation in @refresh. */
static const RoundedWeight *new_rounded(RoundWeights *c, Op *x, const Var *of, DType dt) {
    Type t = x->type;
    t.dt = dt;
    Init zero = {.kind = INIT_CONST};
    RoundedWeight *k = NEW(c->p->a, RoundedWeight);
    *k = (RoundedWeight){.var = var_new(c->m, VAR_KEPT, free_path(c, of, dt), t, zero, of->span),
                         .next = c->rounded[of->id]};
    if (!c->refresh) c->refresh = func_new_phase(c->m, PHASE_REFRESH);
    Builder b = {.m = c->m, .f = c->refresh, .span = of->span};
    OpPairs none = {0};
    k->value = copy_computation(c, &b, &none, x);
    Op *low = b_cast(&b, k->value, dt);
    low->why = "kept for products, once after the state was set from outside";
    b_assign(&b, k->var, low);
    c->rounded[of->id] = k;
    c->n_rounded++;
    return k;
}

/* ---- @train -------- */
/* Whether x is a scalar that a later kernel computes, and that is computed anew where it is read.
 */
static bool is_scalar_step(const Op *x) {
    return !x->type.rank && is_elementwise(x) && x->n_in > 0;
}

typedef struct {
    OpPairs final; /* variables and constants: what they are when the step has ended */
    Op *last;      /* of all that these need */
} Ends;

/* Moves the last needed operation forward. */
static void extend_last(Ends *e, Op *x) {
    if (!e->last || x->id > e->last->id) e->last = x;
}

/* Finds the final values of the variables that x is computed from. */
static void find_final_values(RoundWeights *c, Ends *e, const Op *x) {
    IrOps ops = computation_of(c, x);
    for (int i = 0; i < ops.n; i++) {
        Op *op = ops.v[i], *end = assigned(c, op);
        if (!is_leaf(op)) continue;
        if (!end) end = op;
        vec_push(c->p->a, &e->final, ((OpPair){op, end}));
        for (int k = 0; is_scalar_step(end) && k < end->n_in; k++) extend_last(e, end->in[k]);
        if (!is_scalar_step(end)) extend_last(e, end);
    }
}

/* Assigns the rounded copy behind the last operation that it needs, in the kernel that makes that
 * one. */
static void write_rounded(RoundWeights *c, Op *x, const RoundedWeight *k) {
    Ends e = {.last = NULL};
    find_final_values(c, &e, x);
    Builder b = {.m = c->m, .f = c->train, .at = e.last->next, .span = k->var->span};
    for (int i = 0; i < e.final.n; i++) {
        Op *is = e.final.v[i].new;
        if (e.final.v[i].old == is || !is_scalar_step(is)) continue;
        e.final.v[i].new = b_op(&b, is);
        e.final.v[i].new->fused = true;
    }
    Op *low = b_cast(&b, copy_computation(c, &b, &e.final, x), k->var->type.dt);
    low->why = "kept for the next step's products";
    b.at = NULL;
    b_assign(&b, k->var, low);
}

/* Whether @train changes a variable that x is computed from. */
static bool is_changed(RoundWeights *c, const Op *x) {
    IrOps ops = computation_of(c, x);
    for (int i = 0; i < ops.n; i++)
        if (assigned(c, ops.v[i])) return true;
    return false;
}

/* Keeps a rounded copy as a variable. */
static void keep_rounded(RoundWeights *c, const Op *op) {
    Op *x = below_views(op->in[0]);
    const Var *of = main_var(c, x);
    if (!of)
        pass_refusal(c->p, op->span, "round-weights",
                     "'%s' is rounded in each step: no variable has its spaces", pass_named(x));
    if (!of || find_rounded(c, of, x, op->type.dt)) return;
    const RoundedWeight *k = new_rounded(c, x, of, op->type.dt);
    if (is_changed(c, x)) write_rounded(c, x, k);
    pass_remark(c->p, of->span, "round-weights",
                c->train
                    ? "'%s' is rounded to %s where it is updated, not when the next step reads it"
                    : "'%s' is rounded to %s once, not by each prediction",
                of->path, dtype_name(op->type.dt));
}

/* Keeps all rounded copies of a function. */
static void keep_all(RoundWeights *c, Func *f) {
    VEC(Op *) copies = {0};
    analyse_func(c, f);
    for (Op *op = f->first; op; op = op->next)
        if (is_rounded_copy(c, op) && (c->train || has_no_rows(op)))
            vec_push(c->p->a, &copies, op);
        else
            report_kept(c, op);
    for (int i = 0; i < copies.n; i++) keep_rounded(c, copies.v[i]);
}

/* ---- readers -------- */
/* x, seen through the same views. */
static Op *view_like(Builder *b, const Op *view, Op *x) {
    if (view->kind != OP_VIEW) return x;
    Type t = view->type;
    Op *in = view_like(b, view->in[0], x);
    t.dt = x->type.dt;
    return b_view(b, in, t);
}

typedef struct {
    Op *copy;
    const RoundedWeight *kept;
} Reader;

/* Makes a function read the kept copies. */
static void read_rounded(RoundWeights *c, Func *f) {
    VEC(Reader) found = {0};
    analyse_func(c, f);
    func_keep_users(c->p->a, f);
    for (Op *op = f->first; op; op = op->next) {
        if (!is_rounded_copy(c, op)) continue;
        Op *x = below_views(op->in[0]);
        const RoundedWeight *k = find_rounded(c, main_var(c, x), x, op->type.dt);
        if (k) vec_push(c->p->a, &found, ((Reader){op, k}));
    }
    for (int i = 0; i < found.n; i++) {
        Op *op = found.v[i].copy;
        const RoundedWeight *k = found.v[i].kept;
        Builder b = b_for(c->m, f, op, op);
        Op *read = b_var(&b, k->var);
        read->hint = op->hint ? op->hint : k->var->path;
        read->why = "a parameter's copy for products, written when it changes";
        op_replace_uses(f, op, view_like(&b, op->in[0], read));
    }
    pass_dce_func(c->p->a, f);
}

/* Runs the pass: the 16-bit copies of f32 weights are made once after each update (in a function
 * @refresh), not in every run that reads them. */
static bool run(PassCtx *p, Module *m) {
    RoundWeights c = {.p = p, .m = m, .train = func_of(m, PHASE_TRAIN)};
    if ((!c.train && !m->recipe.sample.serve) || func_of(m, PHASE_REFRESH)) return true;
    c.rounded = NEWN(p->a, const RoundedWeight *, (size_t)m->vars.n + 1);
    c.assigned = NEWN(p->a, Op *, (size_t)m->vars.n + 1);
    for (Op *op = c.train ? c.train->first : NULL; op; op = op->next)
        if (op->kind == OP_ASSIGN) c.assigned[op->var->id] = op->in[0];
    for (int i = 0, n = m->funcs.n; i < n; i++) {
        Func *f = m->funcs.v[i];
        bool served = f->phase == PHASE_PREDICT || f->phase == PHASE_EMBED;
        if (c.train ? f == c.train : served && !f->body) keep_all(&c, f);
    }
    for (int i = 0; i < m->funcs.n && c.n_rounded; i++)
        if (!m->funcs.v[i]->body && m->funcs.v[i] != c.refresh) read_rounded(&c, m->funcs.v[i]);
    return true;
}

const Pass pass_round_weights = {
    .name = "round-weights",
    .summary = "round weights for the next step where they are updated",
    .needs = IR_TYPED | IR_FUSED,
    .run = run,
};
