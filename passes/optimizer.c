/* The optimizer's update as ordinary operations: gradients in, assignments out.
 *
 *     output "grad.W" %g             %w = var "W"
 *                            ->      %s = mul %lr %g
 *                                    %n = sub %w %s
 *                                    assign "W" %n
 *
 * So updates fuse, lower and print like anything else, and no target knows an
 * optimizer.  What depends on the step alone (learning rate, bias corrections) is
 * computed once as scalars.  The runtime gives `lr` after its schedule, and `step`,
 * counted from 1; `weight_decay` too, so that the trainer's option can change it, but
 * not that of a group with its own.
 *
 *   SGD     torch.optim.SGD: dampening 0; buffer "opt.m.<path>" starts at 0, which
 *           makes PyTorch's special first step the general one; Nesterov.
 *   Adam    Kingma and Ba 2015 as in torch.optim.Adam: weight decay is added to the
 *           gradient; denominator sqrt(v) / sqrt(1 - beta2^t) + eps.
 *   AdamW   Loshchilov and Hutter 2019: the parameter shrinks by 1 - lr * decay first.
 *   Clipping by the global norm as torch.nn.utils.clip_grad_norm_.
 *
 * Where we differ: PyTorch computes 1 - beta^t in double.  In f32 that difference
 * loses digits at small t, so it is written -expm1(t * log beta), exact to f32. */
#include "passes/rewrite.h"

#include <math.h>
#include <string.h>

typedef struct {
    Builder b;
    const Recipe *r;
    Op *lr, *one;
    Op *root_bc2; /* sqrt(1 - beta2^t) */
    Op *inv_bc1;  /* 1 / (1 - beta1^t) */
    Op *clip;     /* factor on every gradient, or NULL */
    Op *finite;   /* of a scaled loss: are all gradients? */
} Optim;

typedef struct {
    Op *out; /* output "grad.<path>" */
    Var *var;
    Op *grad;
} Grad;
typedef VEC(Grad) Grads;

static Op *num(Optim *o, double x) {
    return b_const(&o->b, DT_F32, x);
}

static Op *add(Optim *o, Op *x, Op *y) {
    return b_binary(&o->b, OP_ADD, x, y);
}

static Op *sub(Optim *o, Op *x, Op *y) {
    return b_binary(&o->b, OP_SUB, x, y);
}

static Op *mul(Optim *o, Op *x, Op *y) {
    return b_binary(&o->b, OP_MUL, x, y);
}

/* x * c with the tensor first, so that the result keeps its space order. */
static Op *scale(Optim *o, Op *x, double c) {
    return c == 1 ? x : mul(o, x, num(o, c));
}

/* ---- finding the gradients ------------------------------------------------------ */
static Grads collect(Arena *a, Module *m, Func *f) {
    Grads g = {0};
    for (Op *op = f->first; op; op = op->next) {
        if (op->kind != OP_OUTPUT || strncmp(op->name, "grad.", 5) != 0) continue;
        Var *v = var_find(m, op->name + 5);
        if (!v || v->kind != VAR_PARAM) continue;
        vec_push(a, &g, ((Grad){.out = op, .var = v, .grad = op->in[0]}));
    }
    return g;
}

/* The gradient's spaces in the parameter's order: updates are then one flat loop. */
static void align(Optim *o, Grads *gs) {
    for (int i = 0; i < gs->n; i++) {
        Grad *g = &gs->v[i];
        o->b.span = g->var->span;
        if (!type_eq(&g->grad->type, &g->var->type)) g->grad = b_copy(&o->b, g->grad, g->var->type);
    }
}

static ParamGroup group_of(const Recipe *r, const Var *v) {
    for (int i = 0; i < r->groups.n; i++) {
        const ParamGroup *g = &r->groups.v[i];
        if (g->name == v->group || (g->name && v->group && strcmp(g->name, v->group) == 0))
            return *g;
    }
    return (ParamGroup){.lr_scale = 1, .weight_decay = r->weight_decay};
}

/* ---- scalars of the step ---------------------------------------------------------- */
/* 1 - beta^step */
static Op *bias_correction(Optim *o, double beta) {
    if (beta <= 0) return num(o, 1);
    Op *step = b_input(&o->b, "step", DT_F32);
    if (o->finite) step = sub(o, step, pass_loss_skipped(&o->b));
    Op *e = b_unary(&o->b, OP_EXPM1, scale(o, step, log(beta)));
    return b_unary(&o->b, OP_NEG, e);
}

static Op *sum_of_squares(Optim *o, Op *g) {
    Op *sq = mul(o, g, g);
    return g->type.rank ? b_reduce(&o->b, RED_SUM, sq, g->type.rank, g->type.dim) : sq;
}

/* Over all gradients together. */
static Op *squared_norm(Optim *o, const Grads *gs) {
    Op *total = NULL;
    for (int i = 0; i < gs->n; i++) {
        Op *s = sum_of_squares(o, gs->v[i].grad);
        total = total ? add(o, total, s) : s;
    }
    return total;
}

/* The gradients of a scaled loss, and whether all of them are finite. */
static void unscale(Optim *o, Grads *gs) {
    enum { ALMOST_INFINITE = 127 };
    Op *inverse = b_binary(&o->b, OP_DIV, num(o, 1), pass_loss_scale_now(&o->b));
    for (int i = 0; i < gs->n; i++) gs->v[i].grad = mul(o, gs->v[i].grad, inverse);
    Op *most = num(o, ldexp(1, ALMOST_INFINITE));
    o->finite = b_binary(&o->b, OP_LT, squared_norm(o, gs), most);
}

/* min(1, max_norm / (norm + 1e-6)) */
static Op *clip_factor(Optim *o, const Grads *gs) {
    Op *total = squared_norm(o, gs);
    Op *norm = add(o, b_unary(&o->b, OP_SQRT, total), num(o, 1e-6));
    return b_binary(&o->b, OP_MIN, b_binary(&o->b, OP_DIV, num(o, o->r->clip_norm), norm), o->one);
}

static void prepare(Optim *o, const Grads *gs) {
    const Recipe *r = o->r;
    o->lr = b_input(&o->b, "lr", DT_F32);
    o->one = num(o, 1);
    if (r->kind == OPTIM_ADAM || r->kind == OPTIM_ADAMW) {
        o->inv_bc1 = b_binary(&o->b, OP_DIV, o->one, bias_correction(o, r->beta1));
        o->root_bc2 = b_unary(&o->b, OP_SQRT, bias_correction(o, r->beta2));
    }
    if (r->clip_norm > 0) o->clip = clip_factor(o, gs);
}

/* ---- one parameter's step ----------------------------------------------------------- */
typedef struct {
    Op *next;     /* the parameter's next value */
    Var *slot[2]; /* and of its optimizer state */
    Op *value[2];
} Update;

static Var *slot_of(Optim *o, const char *what, const Var *v) {
    Arena *a = o->b.m->a;
    const char *path = arena_printf(a, "opt.%s.%s", what, v->path);
    Var *s = var_find(o->b.m, path);
    if (s) return s;
    s = var_new(o->b.m, VAR_SLOT, path, v->type, (Init){.kind = INIT_CONST}, v->span);
    s->save_rank = v->save_rank;
    memcpy(s->save_shape, v->save_shape, sizeof s->save_shape);
    return s;
}

static Update sgd(Optim *o, Var *v, Op *p, Op *g, Op *lr) {
    Update u = {0};
    if (o->r->momentum != 0) {
        u.slot[0] = slot_of(o, "m", v);
        Op *buf = add(o, scale(o, b_var(&o->b, u.slot[0]), o->r->momentum), g);
        u.value[0] = buf;
        g = o->r->nesterov ? add(o, g, scale(o, buf, o->r->momentum)) : buf;
    }
    u.next = sub(o, p, mul(o, g, lr));
    return u;
}

/* rate = lr / (1 - beta1^t) */
static Update adam(Optim *o, Var *v, Op *p, Op *g, Op *rate) {
    const Recipe *r = o->r;
    Update u = {.slot = {slot_of(o, "m", v), slot_of(o, "v", v)}};
    Op *m0 = b_var(&o->b, u.slot[0]), *v0 = b_var(&o->b, u.slot[1]);
    Op *m1 = add(o, m0, scale(o, sub(o, g, m0), 1 - r->beta1)); /* lerp, as PyTorch rounds it */
    Op *v1 = add(o, scale(o, v0, r->beta2), scale(o, mul(o, g, g), 1 - r->beta2));
    Op *root = b_binary(&o->b, OP_DIV, b_unary(&o->b, OP_SQRT, v1), o->root_bc2);
    Op *denominator = add(o, root, num(o, r->eps));
    u.value[0] = m1;
    u.value[1] = v1;
    u.next = sub(o, p, mul(o, b_binary(&o->b, OP_DIV, m1, denominator), rate));
    return u;
}

/* The default decay comes from the runtime; a group's own is a constant. NULL = none. */
static Op *decay_of(Optim *o, const ParamGroup *g) {
    if (g->weight_decay == 0) return NULL;
    return g->name ? num(o, g->weight_decay) : b_input(&o->b, "weight_decay", DT_F32);
}

static Update update(Optim *o, const Grad *gr) {
    ParamGroup group = group_of(o->r, gr->var);
    o->b.span = gr->var->span;
    Op *p = b_var(&o->b, gr->var), *g = gr->grad;
    Op *lr = scale(o, o->lr, group.lr_scale), *decay = decay_of(o, &group);
    Op *rate = o->inv_bc1 ? mul(o, lr, o->inv_bc1) : lr; /* scalars first: the rest is one kernel */
    if (o->clip) g = mul(o, g, o->clip);
    if (decay && o->r->kind == OPTIM_ADAMW)
        p = mul(o, p, sub(o, o->one, mul(o, lr, decay)));
    else if (decay)
        g = add(o, g, mul(o, p, decay));
    return o->r->kind == OPTIM_SGD ? sgd(o, gr->var, p, g, lr) : adam(o, gr->var, p, g, rate);
}

/* Nothing changes in a step whose gradients are not finite. */
static void keep_old(Optim *o, Update *u, const Grad *g) {
    for (int k = 0; k < 2; k++)
        if (u->slot[k])
            u->value[k] = b_select(&o->b, o->finite, u->value[k], b_var(&o->b, u->slot[k]));
    u->next = b_select(&o->b, o->finite, u->next, b_var(&o->b, g->var));
}

/* Assignments come last: whatever reads a variable stands before its change. */
static void assign(Optim *o, const Update *u, const Grad *g) {
    o->b.span = g->var->span;
    for (int k = 0; k < 2; k++)
        if (u->slot[k]) b_assign(&o->b, u->slot[k], u->value[k]);
    b_assign(&o->b, g->var, u->next);
}

static bool run(PassCtx *p, Module *m) {
    Func *f = func_find(m, "train");
    if (!f || m->recipe.kind == OPTIM_NONE) return true;
    Optim o = {.b = {.m = m, .f = f}, .r = &m->recipe};
    Grads gs = collect(p->a, m, f);
    if (gs.n == 0) return true;
    align(&o, &gs);
    if (pass_loss_is_scaled(m, f)) unscale(&o, &gs);
    prepare(&o, &gs);
    Update *u = NEWN(p->a, Update, (size_t)gs.n);
    for (int i = 0; i < gs.n; i++) {
        u[i] = update(&o, &gs.v[i]);
        if (o.finite) keep_old(&o, &u[i], &gs.v[i]);
    }
    if (o.finite) pass_loss_scale_next(&o.b, o.finite);
    for (int i = 0; i < gs.n; i++) assign(&o, &u[i], &gs.v[i]);
    for (int i = 0; i < gs.n; i++) op_remove(gs.v[i].out);
    return true;
}

const Pass pass_optimizer = {
    .name = "optimizer",
    .summary = "turn gradients into parameter updates",
    .needs = IR_TYPED | IR_GRAD,
    .gives = IR_OPTIM,
    .breaks = IR_FUSED,
    .run = run,
};
