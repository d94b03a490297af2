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
 * Accumulation: gradients are summed in "opt.sum.<path>", and every k-th step updates from their
 * mean; the others select the old values.  Steps over batches may be shared out: then @update makes
 * the update of sums that @train has left, when their counter says k.
 *
 * Average: while a step is made, the parameters are the slots "opt.raw.<path>", and the parameters
 * themselves, which all other phases read, are the average: d avg + (1 - d) raw after each update,
 * d = min(ema, (1 + t) / (10 + t)) at the t-th, as tf.train.ExponentialMovingAverage has it, so
 * that the first steps do not stay in it.  Before the first update the parameters are what was
 * loaded or drawn: then both are these ("opt.updates" is 0).  Polyak and Juditsky 1992.
 *
 * Moments in bf16 (`moments = bf16`): read as f32, computed in f32, rounded by chance when they are
 * stored; the update itself takes them as they were computed.
 *
 * Where we differ: PyTorch computes 1 - beta^t in double.  In f32 that difference
 * loses digits at small t, so it is written -expm1(t * log beta), exact to f32. */
#include "passes/rewrite.h"

#include <math.h>
#include <string.h>

typedef struct Rule Rule;
typedef struct {
    Builder b;
    const Recipe *r;
    const Rule *rule;
    Op *lr, *one;
    Op *inv_root_bc2; /* 1 / sqrt(1 - beta2^t) */
    Op *inv_bc1;      /* 1 / (1 - beta1^t) */
    Op *clip;         /* factor on every gradient, or NULL */
    Op *finite;       /* of a scaled loss: are all gradients? */
    Op *due;          /* with accumulation: are the gradients of k steps in the sums? */
    Op *updates;      /* with an average: how many updates there were */
} Optim;

typedef struct {
    Op *out; /* output "grad.<path>"; NULL = in @update */
    Var *var;
    Op *param; /* the parameter */
    Op *grad;  /* NULL: the step has none, as all are in the sum */
    Op *sum;   /* of the gradients, with accumulation: what "opt.sum" becomes */
} Grad;
typedef VEC(Grad) Grads;

/* An f32 constant. */
static Op *num(Optim *o, double x) {
    return b_const(&o->b, DT_F32, x);
}

/* x + y. */
static Op *add(Optim *o, Op *x, Op *y) {
    return b_binary(&o->b, OP_ADD, x, y);
}

/* x - y. */
static Op *sub(Optim *o, Op *x, Op *y) {
    return b_binary(&o->b, OP_SUB, x, y);
}

/* x * y. */
static Op *mul(Optim *o, Op *x, Op *y) {
    return b_binary(&o->b, OP_MUL, x, y);
}

/* x * c with the tensor first, so that the result keeps its space order. */
static Op *scale(Optim *o, Op *x, double c) {
    return c == 1 ? x : mul(o, x, num(o, c));
}

/* The new values of a parameter and of its optimizer state. */
typedef struct {
    Op *next;     /* the parameter's next value */
    Op *average;  /* .. which is kept beside it; NULL = none is */
    Var *slot[2]; /* and of its optimizer state */
    Op *value[2];
} Update;

/* An optimizer's update rule. */
struct Rule {
    /* One parameter's update from p, g and the learning rate. */
    Update (*step)(Optim *o, Var *v, Op *p, Op *g, Op *rate);
    bool bias_correction; /* moments by their bias: rate is lr / (1 - beta1^t), and see inv_root_bc2
                           */
    bool decoupled_decay; /* decay shrinks the parameter, and is no part of the gradient */
};

/* ---- finding the gradients ------------------------------------------------------ */
/* The gradients that the function outputs. */
static Grads collect_gradients(Arena *a, const Func *f) {
    Grads g = {0};
    for (Op *op = f->first; op; op = op->next) {
        if (op->kind != OP_OUTPUT || op->use.role != OUT_GRAD) continue;
        if (op->use.var->kind != VAR_PARAM) continue;
        vec_push(a, &g, ((Grad){.out = op, .var = op->use.var, .grad = op->in[0]}));
    }
    return g;
}

/* Reads each parameter that is not read yet. */
static void read_parameters(Optim *o, Grads *gs) {
    for (int i = 0; i < gs->n; i++)
        if (!gs->v[i].param) gs->v[i].param = b_var(&o->b, gs->v[i].var);
}

/* Puts each gradient's spaces in its parameter's order, so that updates are one loop over all
 * elements. */
static void align_gradients(Optim *o, Grads *gs) {
    for (int i = 0; i < gs->n; i++) {
        Grad *g = &gs->v[i];
        o->b.span = g->var->span;
        if (!type_eq(&g->grad->type, &g->var->type)) g->grad = b_copy(&o->b, g->grad, g->var->type);
    }
}

/* The parameter group of a variable. */
static ParamGroup group_of(const Recipe *r, const Var *v) {
    for (int i = 0; i < r->groups.n; i++) {
        const ParamGroup *g = &r->groups.v[i];
        if (g->name == v->group || (g->name && v->group && strcmp(g->name, v->group) == 0))
            return *g;
    }
    return (ParamGroup){.lr_scale = 1, .weight_decay = r->weight_decay};
}

/* ---- accumulation, average ----------------------------------------------------------- */
/* The optimizer slot "opt.<what>.<path>", created if necessary. */
static Var *slot_of_type(Optim *o, const char *what, const Var *v, DType dt) {
    Arena *a = o->b.m->a;
    const char *path = arena_printf(a, "opt.%s.%s", what, v->path);
    Var *s = var_find(o->b.m, path);
    Type t = v->type;
    if (s) return s;
    t.dt = dt;
    s = var_new(o->b.m, VAR_SLOT, path, t, (Init){.kind = INIT_CONST}, v->span);
    s->of = var_find(o->b.m, v->path);
    s->save_rank = v->save_rank;
    memcpy(s->save_shape, v->save_shape, sizeof s->save_shape);
    return s;
}

/* The slot, in the parameter's element type. */
static Var *slot_of(Optim *o, const char *what, const Var *v) {
    return slot_of_type(o, what, v, v->type.dt);
}

/* A scalar counter of the optimizer state, created if necessary. */
static Var *counter(Optim *o, VarRole role, const char *path) {
    Var *v = var_of_role(o->b.m, role);
    if (v) return v;
    v = var_new(o->b.m, VAR_SLOT, path, type_scalar(DT_F32), (Init){.kind = INIT_CONST}, (Span){0});
    v->role = role;
    return v;
}

/* The counter of accumulated steps. */
static Var *steps_summed(Optim *o) {
    return counter(o, ROLE_SUMMED_STEPS, "opt.summed");
}

/* The counter of updates. */
static Var *updates_made(Optim *o) {
    return counter(o, ROLE_UPDATES, "opt.updates");
}

/* How many steps' gradients there are: those summed, and that of @train. */
static Op *count_steps(Optim *o) {
    Op *n = b_var(&o->b, steps_summed(o));
    return o->b.f->phase == PHASE_TRAIN ? add(o, n, num(o, 1)) : n;
}

/* Makes the gradients the means of the last k steps. */
static void accumulate(Optim *o, Grads *gs) {
    double k = (double)o->r->accumulate;
    o->b.span = o->r->optimizer;
    Op *n = count_steps(o);
    o->due = b_binary(&o->b, OP_LE, num(o, k), n);
    for (int i = 0; i < gs->n; i++) {
        Grad *g = &gs->v[i];
        o->b.span = g->var->span;
        Var *slot = slot_of(o, "sum", g->var);
        slot->role = ROLE_SUMMED_GRADIENT;
        Op *sum = b_var(&o->b, slot);
        if (g->grad) sum = add(o, g->grad, sum);
        g->sum = b_select(&o->b, o->due, num(o, 0), sum);
        g->grad = scale(o, sum, 1 / k);
    }
}

/* Assigns the sums of gradients and their counter. */
static void assign_sums(Optim *o, const Grads *gs) {
    Op *n = count_steps(o);
    for (int i = 0; i < gs->n; i++) b_assign(&o->b, slot_of(o, "sum", gs->v[i].var), gs->v[i].sum);
    o->b.span = o->r->optimizer;
    b_assign(&o->b, steps_summed(o), b_select(&o->b, o->due, num(o, 0), n));
}

/* Makes a read of a parameter, whose variable holds the average, read the trained value: "opt.raw"
 * once updates were made. */
static Op *read_raw(Optim *o, Func *f, const Grad *g, Op *x, Op *started) {
    Builder b = b_for(o->b.m, f, x->next, x);
    Op *raw = b_var(&b, slot_of(o, "raw", g->var));
    Op *now = b_select(&b, started, raw, x);
    op_replace_uses(f, x, now);
    op_set_in(now, 2, x);
    return now;
}

/* Does so for all parameters of the step. */
static void read_all_raw(Optim *o, Grads *gs) {
    Func *f = o->b.f;
    Builder b = {.m = o->b.m, .f = f, .at = f->first, .span = f->span};
    o->updates = b_var(&b, updates_made(o));
    Op *started = b_binary(&b, OP_LT, b_const(&b, DT_F32, 0), o->updates);
    int n = b.m->vars.n; /* before those that this adds */
    Grad **grad_of = NEWN(b.m->a, Grad *, (size_t)n + 1);
    for (int i = 0; i < gs->n; i++) grad_of[gs->v[i].var->id] = &gs->v[i];
    func_keep_users(b.m->a, f);
    for (Op *op = f->first, *next; op; op = next) {
        next = op->next;
        Grad *g = op->kind == OP_VAR && op->var->id < n ? grad_of[op->var->id] : NULL;
        if (g) g->param = read_raw(o, f, g, op, started);
    }
    for (int i = 0; i < gs->n; i++)
        if (gs->v[i].out) gs->v[i].grad = gs->v[i].out->in[0];
}

/* The moving average, updated by `next`. */
static Op *averaged(Optim *o, const Var *v, Op *next) {
    Op *average = b_var(&o->b, (Var *)v), *t = add(o, o->updates, num(o, 1));
    Op *early = b_binary(&o->b, OP_DIV, num(o, 9), add(o, t, num(o, 10)));
    Op *rate = b_binary(&o->b, OP_MAX, early, num(o, 1 - o->r->ema));
    return add(o, average, mul(o, sub(o, next, average), rate));
}

/* ---- moments -------- */
/* The slot of a moment. */
static Var *moment_of(Optim *o, const char *what, const Var *v) {
    return slot_of_type(o, what, v, o->r->bf16_moments ? DT_BF16 : v->type.dt);
}

/* x in the element type. */
static Op *cast_to(Optim *o, Op *x, DType dt) {
    return x->type.dt == dt ? x : b_cast(&o->b, x, dt);
}

/* A moment, as f32. */
static Op *read_moment(Optim *o, Var *s) {
    return cast_to(o, b_var(&o->b, s), DT_F32);
}

/* x rounded to one of the two bf16 numbers beside it, with probabilities such that the mean is x:
 * rounding to nearest would lose what is added in small steps, as (1 - beta2) g g is to v. c, the
 * nearest number, times 1 +- 0.005 rounds to its neighbour on x's side, whichever of 128..255 its
 * digits are. The random numbers depend on step and element: they are the same at any number of
 * threads, on every target and after a resume. An x that is not finite stays. Gupta et al. 2015,
 * "Deep Learning with Limited Numerical Precision". */
static Op *round_stochastically(Optim *o, Op *x) {
    Builder *b = &o->b;
    Type t = x->type;
    Op *c = b_cast(b, b_cast(b, x, DT_BF16), DT_F32);
    Op *outward = b_binary(b, OP_LT, b_unary(b, OP_ABS, c), b_unary(b, OP_ABS, x));
    Op *n = mul(o, c, b_select(b, outward, num(o, 1.005), num(o, 0.995)));
    n = b_cast(b, b_cast(b, n, DT_BF16), DT_F32);
    Op *gap = b_unary(b, OP_ABS, sub(o, n, c)), *rest = b_unary(b, OP_ABS, sub(o, x, c));
    Op *u = b_random(b, b->m->n_streams, t);
    return b_select(b, b_binary(b, OP_LT, mul(o, gap, u), rest), n, c);
}

/* ---- scalars of the step ---------------------------------------------------------- */
/* 1 - beta^step. */
static Op *bias_correction(Optim *o, double beta) {
    if (beta <= 0) return num(o, 1);
    Op *step = b_input(&o->b, "step", type_scalar(DT_F32));
    if (o->due) step = b_binary(&o->b, OP_DIV, step, num(o, (double)o->r->accumulate));
    if (o->finite) step = sub(o, step, pass_loss_skipped(&o->b));
    Op *e = b_unary(&o->b, OP_EXPM1, scale(o, step, log(beta)));
    return b_unary(&o->b, OP_NEG, e);
}

/* The sum of squares of a tensor. */
static Op *sum_of_squares(Optim *o, Op *g) {
    Op *sq = mul(o, g, g);
    return g->type.rank ? b_reduce(&o->b, RED_SUM, sq, g->type.rank, g->type.dim) : sq;
}

/* The squared norm of all gradients. */
static Op *squared_norm(Optim *o, const Grads *gs) {
    Op *total = NULL;
    for (int i = 0; i < gs->n; i++) {
        o->b.span = gs->v[i].var->span;
        Op *s = sum_of_squares(o, gs->v[i].grad);
        o->b.span = o->r->optimizer;
        total = total ? add(o, total, s) : s;
    }
    return total;
}

/* Divides the gradients by the loss scale, and finds whether all are finite. */
static void unscale(Optim *o, Grads *gs) {
    enum { ALMOST_INFINITE = 127 };
    o->b.span = o->r->optimizer;
    Op *inverse = b_binary(&o->b, OP_DIV, num(o, 1), pass_loss_scale_now(&o->b));
    for (int i = 0; i < gs->n; i++) {
        o->b.span = gs->v[i].var->span;
        gs->v[i].grad = mul(o, gs->v[i].grad, inverse);
    }
    Op *max_norm = num(o, ldexp(1, ALMOST_INFINITE));
    o->finite = b_binary(&o->b, OP_LT, squared_norm(o, gs), max_norm);
}

/* min(1, max_norm / (norm + 1e-6)). */
static Op *clip_factor(Optim *o, const Grads *gs) {
    Op *total = squared_norm(o, gs);
    Op *norm = add(o, b_unary(&o->b, OP_SQRT, total), num(o, 1e-6));
    return b_binary(&o->b, OP_MIN, b_binary(&o->b, OP_DIV, num(o, o->r->clip_norm), norm), o->one);
}

/* Computes the scalars of the step. */
static void compute_scalars(Optim *o, const Grads *gs) {
    const Recipe *r = o->r;
    o->b.span = r->optimizer;
    o->lr = b_input(&o->b, "lr", type_scalar(DT_F32));
    o->one = num(o, 1);
    if (o->rule->bias_correction) {
        o->inv_bc1 = b_binary(&o->b, OP_DIV, o->one, bias_correction(o, r->beta1));
        o->inv_root_bc2 =
            b_binary(&o->b, OP_DIV, o->one, b_unary(&o->b, OP_SQRT, bias_correction(o, r->beta2)));
    }
    if (r->clip_norm > 0) o->clip = clip_factor(o, gs);
}

/* ---- one parameter's step ----------------------------------------------------------- */
/* SGD with momentum. */
static Update step_sgd(Optim *o, Var *v, Op *p, Op *g, Op *lr) {
    Update u = {0};
    if (o->r->momentum != 0) {
        u.slot[0] = moment_of(o, "m", v);
        Op *buf = add(o, scale(o, read_moment(o, u.slot[0]), o->r->momentum), g);
        u.value[0] = buf;
        g = o->r->nesterov ? add(o, g, scale(o, buf, o->r->momentum)) : buf;
    }
    u.next = sub(o, p, mul(o, g, lr));
    return u;
}

/* Adam and AdamW. */
static Update step_adam(Optim *o, Var *v, Op *p, Op *g, Op *rate) {
    const Recipe *r = o->r;
    Update u = {.slot = {moment_of(o, "m", v), moment_of(o, "v", v)}};
    Op *m0 = read_moment(o, u.slot[0]), *v0 = read_moment(o, u.slot[1]);
    Op *m1 = add(o, m0, scale(o, sub(o, g, m0), 1 - r->beta1)); /* lerp, as PyTorch rounds it */
    Op *v1 = add(o, scale(o, v0, r->beta2), scale(o, mul(o, g, g), 1 - r->beta2));
    Op *root = mul(o, b_unary(&o->b, OP_SQRT, v1), o->inv_root_bc2);
    Op *denominator = add(o, root, num(o, r->eps));
    u.value[0] = m1;
    u.value[1] = v1;
    u.next = sub(o, p, mul(o, b_binary(&o->b, OP_DIV, m1, denominator), rate));
    return u;
}

static const Rule rules[] = {
    [OPTIM_SGD] = {step_sgd, false, false},
    [OPTIM_ADAM] = {step_adam, true, false},
    [OPTIM_ADAMW] = {step_adam, true, true},
};

/* The weight decay of a group; NULL: none. The default comes from the runtime, a group's own is a
 * constant. */
static Op *decay_of(Optim *o, const ParamGroup *g) {
    if (g->weight_decay == 0) return NULL;
    return g->name ? num(o, g->weight_decay) : b_input(&o->b, "weight_decay", type_scalar(DT_F32));
}

/* The update of one parameter, with clipping and decay. */
static Update update_parameter(Optim *o, const Grad *gr) {
    ParamGroup group = group_of(o->r, gr->var);
    Op *p = gr->param, *g = gr->grad;
    o->b.span = o->r->optimizer;
    Op *lr = scale(o, o->lr, group.lr_scale), *decay = decay_of(o, &group);
    Op *rate = o->inv_bc1 ? mul(o, lr, o->inv_bc1) : lr; /* scalars first: the rest is one kernel */
    o->b.span = gr->var->span;
    if (o->clip) g = mul(o, g, o->clip);
    if (decay && o->rule->decoupled_decay)
        p = mul(o, p, sub(o, o->one, mul(o, lr, decay)));
    else if (decay)
        g = add(o, g, mul(o, p, decay));
    return o->rule->step(o, gr->var, p, g, rate);
}

/* The condition under which the step updates: its gradients are finite, and accumulation is
 * complete. NULL: always. */
static Op *update_condition(Optim *o) {
    if (!o->finite || !o->due) return o->finite ? o->finite : o->due;
    return b_binary(&o->b, OP_AND, o->finite, o->due);
}

/* `next` where the condition holds, else `old`. */
static Op *select_when(Optim *o, Op *when, Op *next, Op *old) {
    return when ? b_select(&o->b, when, next, old) : next;
}

/* Assigns a parameter and its state. Assignments come last: whatever reads a variable stands before
 * its change. */
static void assign_update(Optim *o, const Update *u, const Grad *g) {
    o->b.span = g->var->span;
    for (int k = 0; k < 2; k++)
        if (u->slot[k]) b_assign(&o->b, u->slot[k], cast_to(o, u->value[k], u->slot[k]->type.dt));
    if (u->average) b_assign(&o->b, slot_of(o, "raw", g->var), u->next);
    b_assign(&o->b, g->var, u->average ? u->average : u->next);
}

/* The update of one parameter under a condition. */
static Update update_when(Optim *o, const Grad *g, Op *when) {
    Update u = update_parameter(o, g);
    if (o->updates)
        u.average = select_when(o, when, averaged(o, g->var, u.next), b_var(&o->b, g->var));
    for (int k = 0; k < 2; k++) {
        if (!u.slot[k]) continue;
        if (o->r->bf16_moments) u.value[k] = round_stochastically(o, u.value[k]);
        u.value[k] = select_when(o, when, u.value[k], read_moment(o, u.slot[k]));
    }
    u.next = select_when(o, when, u.next, g->param);
    return u;
}

/* Keeps gradients in f32 that an unscaling kernel would have fused. */
static void store_f32(Optim *o, Grads *gs) {
    for (int i = 0; i < gs->n; i++) {
        o->b.span = gs->v[i].grad->span;
        gs->v[i].grad = b_store_as(&o->b, gs->v[i].grad, DT_F32);
    }
}

/* Adds remarks about parameters without a gradient. */
static void report_unchanged(PassCtx *p, const Module *m, const Grads *gs) {
    for (int i = 0; i < m->vars.n; i++) {
        const Var *v = m->vars.v[i];
        bool has = v->kind != VAR_PARAM;
        for (int k = 0; k < gs->n && !has; k++) has = gs->v[k].var == v;
        if (!has)
            pass_declined(p, v->span, "optimizer", "'%s' stays as it is: it has no gradient",
                          v->path);
    }
}

/* Updates the parameters from their gradients, or from the sums of these.  True: where a condition
 * holds. */
static bool update_all(Optim *o, Grads *gs) {
    if (o->r->accumulate > 1) accumulate(o, gs);
    if (pass_loss_is_scaled(o->b.m, o->b.f)) unscale(o, gs);
    compute_scalars(o, gs);
    o->b.span = o->r->optimizer;
    Op *when = update_condition(o);
    Update *u = NEWN(o->b.m->a, Update, (size_t)gs->n);
    for (int i = 0; i < gs->n; i++) u[i] = update_when(o, &gs->v[i], when);
    o->b.span = o->r->optimizer;
    if (o->finite) pass_loss_scale_next(&o->b, o->finite, o->due);
    if (o->due) assign_sums(o, gs);
    for (int i = 0; i < gs->n; i++) assign_update(o, &u[i], &gs->v[i]);
    o->b.span = o->r->optimizer;
    if (o->updates) {
        Op *one_more = add(o, o->updates, num(o, 1));
        b_assign(&o->b, updates_made(o), select_when(o, when, one_more, o->updates));
    }
    return when != NULL;
}

/* Adds @update: what @train does with the sums of gradients, with the same random numbers. */
static void add_update(const Optim *train, const Grads *gs, int first_stream) {
    Module *m = train->b.m;
    Optim o = {.b = train->b, .r = train->r, .rule = train->rule};
    Grads own = {0};
    o.b.f = func_new_phase(m, PHASE_UPDATE);
    o.b.f->span = train->b.f->span;
    for (int i = 0; i < gs->n; i++) vec_push(m->a, &own, ((Grad){.var = gs->v[i].var}));
    read_parameters(&o, &own);
    if (o.r->ema > 0) read_all_raw(&o, &own);
    const int n_streams = m->n_streams;
    m->n_streams = first_stream;
    update_all(&o, &own);
    if (m->n_streams < n_streams) m->n_streams = n_streams;
}

/* Whether processes may share the steps of an update (runtime/batch/train_shares.h). */
static bool steps_are_shared(const Module *m, const Func *train) {
    return m->recipe.accumulate > 1 && m->recipe.sample.batch && !pass_loss_is_scaled(m, train);
}

static bool run(PassCtx *p, Module *m) {
    Func *f = func_of(m, PHASE_TRAIN);
    if (!f || m->recipe.optim == OPTIM_NONE) return true;
    bool in_16_bits = p->precision == DT_F16 || p->precision == DT_BF16;
    DType want = in_16_bits ? DT_F32 : DT_VOID; /* as wide as tables of a row per node are */
    Optim o = {.b = {.m = m, .f = f, .want = want, .update = in_16_bits},
               .r = &m->recipe,
               .rule = &rules[m->recipe.optim]};
    Grads gs = collect_gradients(p->a, f);
    if (gs.n == 0) return true;
    if (p->scale && p->scale->off) store_f32(&o, &gs);
    if (o.r->ema > 0) read_all_raw(&o, &gs);
    read_parameters(&o, &gs);
    align_gradients(&o, &gs);
    int first_stream = m->n_streams;
    bool in_some = update_all(&o, &gs);
    for (int i = 0; i < gs.n; i++) op_remove(gs.v[i].out);
    if (steps_are_shared(m, f)) add_update(&o, &gs, first_stream);
    pass_remark(p, o.r->optimizer, "optimizer", "%d parameters are updated%s", gs.n,
                in_some ? ", in some steps" : "");
    report_unchanged(p, m, &gs);
    return true;
}

const Pass pass_optimizer = {
    .name = "optimizer",
    .summary = "turn gradients into parameter updates",
    .needs = IR_TYPED | IR_GRAD,
    .gives = IR_OPTIM,
    .breaks = IR_FUSED,
    .run = run,
    .required = true,
};
