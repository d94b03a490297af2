/* Loops that gradients go through become as many iterations as their limit says.
 *
 *     %r = loop @train.loop limit 2 %go, %h        %h1 = (an iteration of %h)
 *     %y = result 1 %r                      ->     %y1 = select %go, %h1, %h
 *                                                  %go1 = select %go, (more of %h1), 0
 *                                                  %h2 = (an iteration of %y1)
 *                                                  %y = select %go1, %h2, %y1
 *
 * Reverse mode needs every iteration's values, so there must be a bound on their number: XLA says
 * the same of lax.while_loop, and lax.scan, which has one, keeps them all, too.  An iteration that
 * does not happen is skipped where the step runs: its kernels are wanted only where its condition
 * holds (ir/guard.c).  Loops without a gradient stay: those of evaluations, and those whose result
 * is detached, as a fixed point is that one more step differentiates (Fung et al., JFB: Jacobian-
 * free backpropagation, AAAI 2022). */
#include <string.h>

#include "ir/op/op.h"
#include "passes/rewrite.h"

/* Of an operation, of which loops and their results ask. */
typedef struct {
    bool wanted; /* the loss's gradient goes to it */
    bool varies; /* with a parameter */
} Fact;

typedef struct {
    PassCtx *p;
    Builder b;
    Op *loop;
    Op **current, **following; /* operands of the loop in this iteration, and in the next one */
    int carried;
    const Op *loss;
    VEC(Fact) fact; /* by op id */
} Unroll;

/* ---- which loops ------------------------------------------------------------------------- */
/* Whether a gradient passes through the operation. */
static bool carries_gradient(const Op *op) {
    bool repeats = op->kind == OP_LOOP || (op->kind == OP_RESULT && op->in[0]->kind == OP_LOOP);
    return repeats || (op_impl(op->kind)->vjp && !ad_is_flat(op));
}

/* Marks the operands of an operation as wanted, if it is. */
static void want_operands(Unroll *u, const Op *op) {
    for (int i = 0; u->fact.v[op->id].wanted && carries_gradient(op) && i < op->n_in; i++)
        u->fact.v[op->in[i]->id].wanted = true;
}

/* Finds, backwards, the values that the loss's gradient reaches. */
static void find_wanted(Unroll *u) {
    Func *f = u->b.f;
    func_number(f);
    for (int i = 0; i < f->n_ops; i++) vec_push(u->p->a, &u->fact, ((Fact){.wanted = false}));
    u->fact.v[u->loss->id].wanted = true;
    for (const Op *op = f->last; op; op = op->prev) want_operands(u, op);
}

/* Finds whether a value depends on a parameter. */
static void find_varies(Unroll *u, const Op *op) {
    bool varies = op->kind == OP_VAR && op->var->kind == VAR_PARAM;
    for (int i = 0; carries_gradient(op) && i < op->n_in; i++)
        varies |= u->fact.v[op->in[i]->id].varies;
    u->fact.v[op->id].varies = varies;
}

/* ---- one iteration -------------------------------------------------------------------------- */
/* Makes an effect of the body depend on the iteration's condition. */
static void guard_effect(Unroll *u, Op *proto) {
    Op *active = u->current[0];
    if (proto->kind == OP_ASSERT) {
        Op *idle = b_unary(&u->b, OP_NOT, active);
        proto->in[0] = b_binary(&u->b, OP_OR, idle, proto->in[0]);
    } else if (proto->when) {
        proto->in[0] = b_binary(&u->b, OP_AND, active, proto->in[0]);
    } else {
        memmove(proto->in + 1, proto->in, (size_t)proto->n_in * sizeof(Op *));
        proto->in[0] = active;
        proto->n_in++;
        proto->when = true;
    }
}

/* Copies an operation of the body. */
static void copy_op(Unroll *u, Op *op) {
    if (op->kind == OP_ARG) {
        op->tag = u->current[(int)op->imm];
        return;
    }
    if (op->kind == OP_NEXT) {
        u->following[(int)op->imm] = op->in[0]->tag;
        return;
    }
    Op proto = *op;
    proto.tag = NULL;
    proto.in = NEWN(u->p->a, Op *, (size_t)op->n_in + 1);
    for (int i = 0; i < op->n_in; i++) proto.in[i] = op->in[i]->tag;
    b_like(&u->b, op);
    if (op_has(op, OPT_EFFECT)) guard_effect(u, &proto);
    op->tag = b_op(&u->b, &proto);
}

/* Appends one iteration: carried values are kept where its condition does not hold. */
static void unroll_iteration(Unroll *u) {
    Op *active = u->current[0];
    for (Op *op = u->loop->body->first; op; op = op->next) copy_op(u, op);
    b_like(&u->b, u->loop);
    for (int k = 1; k < u->carried; k++) {
        const char *hint = u->current[k]->hint;
        if (u->following[k] == u->current[k]) continue;
        u->current[k] = b_select(&u->b, active, u->following[k], u->current[k]);
        if (!u->current[k]->hint) u->current[k]->hint = hint;
    }
    u->current[0] = b_select(&u->b, active, u->following[0], b_const(&u->b, DT_I1, 0));
}

/* Reports a loop that cannot be unrolled; NULL. */
static Op *refuse(Unroll *u, const char *why) {
    diag_add(u->p->ctx, DIAG_E0515, u->loop->span,
             "the loss depends on parameters through this loop%s", why);
    diag_note(
        u->p->ctx, u->loop->span,
        "'while c limit n { .. }' bounds the iterations; detach(..) of the result needs no bound");
    return NULL;
}

/* Replaces `was` by x and updates the facts. */
static void replace_value(Unroll *u, Op *old, Op *x) {
    Fact *fact = &u->fact.v[x->id];
    fact->wanted |= old == u->loss;
    if (old == u->loss) u->loss = x;
    for (const Use *use = old->users; use; use = use->next)
        if (use->user->func && carries_gradient(use->user))
            fact->wanted |= u->fact.v[use->user->id].wanted;
    op_replace_uses(u->b.f, old, x);
    op_remove(old);
}

/* Replaces the loop's results by the last iteration's values. */
static void replace_results(Unroll *u) {
    Op *loop = u->loop;
    for (const Use *use = loop->users; use; use = use->next) {
        Op *op = use->user;
        if (op->func && op->kind == OP_RESULT) replace_value(u, op, u->current[(int)op->imm]);
    }
    replace_value(u, loop, u->current[0]);
}

/* Unrolls the loop; its first operation then, or NULL after a diagnostic. */
static Op *unroll_loop(Unroll *u) {
    Op *loop = u->loop, *before = loop->prev;
    if (!loop->imm) return refuse(u, ", and how many iterations there are is not known");
    int max_ops = pass_threshold(u->p->ctx, PASS_T_UNROLL_OPS);
    if (loop->imm * loop->body->n_ops > max_ops)
        return refuse(
            u, arena_printf(u->p->a,
                            ", and %.0f iterations of %d operations are more than the %d that "
                            "are unrolled at most (--unroll.max-ops)",
                            loop->imm, loop->body->n_ops, max_ops));
    u->carried = func_n_carried(loop->body);
    u->current = NEWN(u->p->a, Op *, (size_t)loop->n_in);
    u->following = NEWN(u->p->a, Op *, (size_t)loop->n_in);
    memcpy(u->current, loop->in, (size_t)loop->n_in * sizeof(Op *));
    for (int i = 0; i < (int)loop->imm; i++) unroll_iteration(u);
    for (Op *op = loop->body->first; op; op = op->next) op->tag = NULL;
    Op *first = before ? before->next : u->b.f->first;
    for (Op *op = first; op != loop; op = op->next) {
        op->id = u->fact.n;
        vec_push(u->p->a, &u->fact, ((Fact){.wanted = false}));
    }
    Op *last = loop->prev;
    replace_results(u);
    for (const Op *op = last; op != before; op = op->prev) want_operands(u, op);
    return before ? before->next : u->b.f->first;
}

/* Unrolls the loops of a function that gradients pass, in its order: what stands before a loop says
 * whether it varies, what stands behind it whether it is wanted. */
bool pass_unroll_func(PassCtx *p, Module *m, Func *f) {
    Op *out = func_output_of(f, OUT_LOSS);
    if (!out) return true;
    Unroll u = {.p = p, .b = {.m = m, .f = f}, .loss = out->in[0]};
    find_wanted(&u);
    func_keep_users(p->a, f);
    for (Op *op = f->first; op;) {
        find_varies(&u, op);
        const Fact *fact = &u.fact.v[op->id];
        if (op->kind != OP_LOOP || !fact->wanted || !fact->varies) {
            if (op->kind == OP_LOOP)
                pass_refusal(p, op->span, "unroll", "'while' stays a loop: %s",
                             fact->wanted ? "no parameter is among what it starts from"
                                          : "the loss does not depend on it");
            op = op->next;
            continue;
        }
        const Span at = op->span;
        const char *text =
            arena_printf(m->a,
                         "'while' becomes %g iterations, for its gradient; those that "
                         "do not happen are skipped",
                         op->imm);
        u.loop = u.b.at = op;
        op = unroll_loop(&u);
        if (!op) return false;
        module_note(m, f, at, false, text);
        pass_remark(p, at, "unroll", "%s", text);
    }
    func_drop_users(f);
    return true;
}

static bool run(PassCtx *p, Module *m) {
    Func *f = func_of(m, PHASE_TRAIN);
    return !f || m->has & IR_GRAD || pass_unroll_func(p, m, f);
}

const Pass pass_unroll = {
    .name = "unroll",
    .summary = "make iterations of the loops that gradients go through",
    .needs = IR_TYPED,
    .run = run,
    .required = true,
};
