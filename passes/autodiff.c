/* Reverse-mode automatic differentiation of the training step.
 *
 *     %w = var W                             %w = var W
 *     %y = mul %x %w                         %y = mul %x %w
 *     %l = reduce sum %y           ->        %l = reduce sum %y
 *     output "loss" %l                       output "loss" %l
 *                                            %d = mul (copy 1) %x
 *                                            output "grad.W" (reduce sum %d)
 *
 * One walk backwards over the SSA list; each op's vjp (ir/op) appends ordinary ops,
 * so gradients are optimised, fused and printed like anything else, and could be
 * differentiated again.  Only values between a parameter and the loss get one: data
 * never does (activity analysis, Griewank and Walther, Evaluating Derivatives, 2008,
 * ch. 6), but where it is data that gradients are asked for (explain.c).  A value used several
 * times sums its gradients from the last use to the first, so the result has the same bits every
 * time.
 *
 * What is wanted only where a condition holds (ir/guard.c) gives its operands gradients only
 * there: a selection at the edge of such a region says so.  Else the region's backward would be
 * computed always, and 0 times what is not finite in an untaken branch would be the gradient.
 *
 * A sparse value that needs a gradient (a parameter times a CSR column) is rare; its
 * op is differentiated through a dense copy, which costs memory and is remarked on. */
#include "passes/autodiff.h"

#include <string.h>

#include "ir/guard.h"
#include "ir/op/op.h"
#include "passes/rewrite.h"

/* The gradient of a value, hung on its tag. */
typedef struct {
    Op *grad; /* the sum so far */
} Adjoint;

typedef struct {
    PassCtx *p;
    Builder b;
    DType want;          /* of all gradients; DT_VOID: what is wanted of the values */
    Op *loss;            /* the scalar */
    Op *last;            /* of the forward function */
    const Guard **guard; /* of its values */
    const bool *leaf;    /* by op id: whose gradients are wanted; NULL: those of parameters */
    bool ok;
} Ad;

/* Whether a gradient with respect to the operation is requested: it is a parameter, or a leaf. */
static bool is_wanted(const Ad *ad, const Op *op) {
    if (ad->leaf) return ad->leaf[op->id];
    return op->kind == OP_VAR && op->var->kind == VAR_PARAM;
}

/* Whether the value depends, differentiably, on a requested one. */
static bool depends(const Ad *ad, const Op *op) {
    if (is_wanted(ad, op)) return true;
    if (!op_impl(op->kind)->vjp || ad_is_flat(op)) return false;
    for (int i = 0; i < op->n_in; i++)
        if (op->in[i]->tag) return true;
    return false;
}

/* Tags the active values: those that depend on requested values and that the loss depends on. */
static void mark_active(Ad *ad) {
    Func *f = ad->b.f;
    Arena *a = ad->p->a;
    func_number(f);
    bool *used = NEWN(a, bool, (size_t)f->n_ops);
    used[ad->loss->id] = true;
    for (Op *op = ad->last; op; op = op->prev)
        for (int i = 0; used[op->id] && i < op->n_in; i++) used[op->in[i]->id] = true;
    for (Op *op = f->first; op; op = op->next)
        op->tag = used[op->id] && depends(ad, op) ? NEW(a, Adjoint) : NULL;
}

/* Adds a contribution g to the gradient of x. g comes from a value under guard `from`, x is under
 * guard `to`: a select keeps the sum unchanged where `from` does not hold. */
static void accumulate(Ad *ad, Op *x, Op *g, const Guard *from, const Guard *to) {
    Adjoint *at = x->tag;
    Op *before = at->grad;
    at->grad = before ? b_binary(&ad->b, OP_ADD, before, g) : g;
    for (; from != to && ir_guard_within(from, to); from = from->up) {
        if (!from->worth_test) continue;
        if (!before) before = ad_zeros(&ad->b, &x->type);
        at->grad = b_select(&ad->b, from->cond, from->holds ? at->grad : before,
                            from->holds ? before : at->grad);
    }
    if (x->hint && !at->grad->hint) at->grad->hint = arena_printf(ad->b.m->a, "d.%s", x->hint);
}

/* Whether the value is sparse. */
static bool is_csr(const Op *x) {
    return x->type.layout == LAYOUT_CSR;
}

/* Whether a sparse operand that needs a gradient, or a sparse result, prevents the differentiation.
 */
static bool needs_dense(const Op *op) {
    bool sparse = is_csr(op);
    for (int i = 0; i < op->n_in; i++) sparse = sparse || (ad_wants(op, i) && is_csr(op->in[i]));
    return sparse;
}

/* The same operation on dense copies of its operands, which share the adjoints of the originals. */
static Op *dense_copy(Ad *ad, Op *op) {
    Op proto = *op;
    proto.tag = NULL;
    proto.want = ad->b.want;
    proto.type.layout = LAYOUT_DENSE;
    proto.in = NEWN(ad->p->a, Op *, (size_t)op->n_in);
    for (int i = 0; i < op->n_in; i++) {
        Type t = op->in[i]->type;
        t.layout = LAYOUT_DENSE;
        proto.in[i] = is_csr(op->in[i]) ? b_copy(&ad->b, op->in[i], t) : op->in[i];
        proto.in[i]->tag = op->in[i]->tag;
    }
    pass_refusal(ad->p, op->span, "autodiff", "'%s' is differentiated on a dense copy of csr data",
                 op_mnemonic(op->kind));
    return b_op(&ad->b, &proto);
}

/* Whether it is a call of a C function. */
static bool is_call(const Op *op) {
    return op->kind == OP_CALL || op->kind == OP_CALL_EFFECT;
}

/* Reports a call without a gradient. */
static void refuse(Ad *ad, const Op *call) {
    diag_add(ad->p->ctx, DIAG_E0514, call->span,
             "the loss depends on parameters through '%s', a C function without a gradient",
             call->ext->name);
    diag_note(ad->p->ctx, call->ext->span,
              "name one here (grad g), or write detach(%s(..)) where nothing is to be learned",
              call->ext->name);
    ad->ok = false;
}

/* Appends the gradients of an operation's operands. */
static void differentiate(Ad *ad, Op *op) {
    Adjoint *at = op->tag;
    if (!at || !at->grad || is_wanted(ad, op)) return;
    if (is_call(op) && !op->ext->grad) {
        refuse(ad, op);
        return;
    }
    b_like(&ad->b, op);
    if (ad->want) ad->b.want = ad->want;
    Op **gin = NEWN(ad->p->a, Op *, (size_t)op->n_in + 1),
       *twin = needs_dense(op) ? dense_copy(ad, op) : op;
    op_impl(op->kind)->vjp(&ad->b, twin, at->grad, gin);
    for (int i = 0; i < op->n_in; i++)
        if (gin[i] && ad_wants(op, i))
            accumulate(ad, op->in[i], gin[i], ad->guard[op->id], ad->guard[op->in[i]->id]);
}

/* Adds an output for each parameter's gradient, the sum over all reads of it. There is none if the
 * loss does not depend on the parameter, as in PyTorch: then no optimizer changes it, not even by
 * weight decay. */
static void emit_gradient_outputs(Ad *ad, Module *m) {
    int n_grads = 0, n = 0; /* of ids: a pass may have dropped variables */
    for (int i = 0; i < m->vars.n; i++) n = m->vars.v[i]->id < n ? n : m->vars.v[i]->id + 1;
    Op **sum = NEWN(ad->p->a, Op *, (size_t)n + 1);
    Op *end = ad->last->next;
    for (Op *op = ad->b.f->first; op != end; op = op->next) {
        if (op->kind != OP_VAR || op->var->kind != VAR_PARAM) continue;
        const Adjoint *at = op->tag;
        Op **s = &sum[op->var->id];
        if (at && at->grad) *s = *s ? b_binary(&ad->b, OP_ADD, *s, at->grad) : at->grad;
    }
    for (int i = 0; i < m->vars.n; i++) {
        Var *v = m->vars.v[i];
        if (!sum[v->id] && v->kind == VAR_PARAM)
            pass_declined(ad->p, v->span, "autodiff",
                          "'%s' has no gradient: the loss does not depend on it", v->path);
        if (!sum[v->id]) continue;
        n_grads++;
        ad->b.span = v->span;
        ad->b.want = ad->want;
        OutputUse grad = {.role = OUT_GRAD, .var = v};
        b_output_as(&ad->b, arena_printf(m->a, "grad.%s", v->path), grad, sum[v->id]);
    }
    pass_remark(ad->p, ad->b.f->span, "autodiff", "@%s: gradients of %d parameters", ad->b.f->name,
                n_grads);
}

/* Runs the backward walk over the function. */
static void run_backward(Ad *ad, bool scaled) {
    mark_active(ad);
    ad->guard = ir_guards(ad->p->a, ad->b.f, NULL);
    Op *seed = scaled ? pass_loss_scale_now(&ad->b) : ad_const(&ad->b, ad->loss, 1);
    if (ad->loss->tag) accumulate(ad, ad->loss, seed, NULL, NULL);
    for (Op *op = ad->last; op; op = op->prev) differentiate(ad, op);
}

/* Differentiates the loss of a function by all parameters. */
bool pass_autodiff_func(PassCtx *p, Module *m, Func *f) {
    Op *out = func_output_of(f, OUT_LOSS);
    if (!out) {
        diag_add(p->ctx, DIAG_E0512, f->span, "function '%s' has no output \"loss\"", f->name);
        return false;
    }
    DType want = p->scale && p->scale->off ? DT_F32 : DT_VOID; /* none is to be in f16 */
    Ad ad = {.p = p,
             .b = {.m = m, .f = f, .span = out->span, .want = want},
             .want = want,
             .loss = out->in[0],
             .last = f->last,
             .ok = true};
    if (ad.loss->type.rank || !dtype_is_float(ad.loss->type.dt)) {
        diag_add(p->ctx, DIAG_E0512, out->span, "the loss is %s, not a floating-point scalar",
                 op_type_text(m, &ad.loss->type));
        return false;
    }
    if (!pass_unroll_func(p, m, f)) return false;
    ad.last = f->last;
    run_backward(&ad, pass_loss_is_scaled(m, f));
    emit_gradient_outputs(&ad, m);
    for (Op *op = f->first; op; op = op->next) op->tag = NULL;
    return ad.ok;
}

/* Differentiates a scalar by the given leaves. */
bool pass_gradients_of(PassCtx *p, Module *m, Func *f, Op *of, const bool *leaf, Op **grad) {
    Ad ad = {.p = p,
             .b = {.m = m, .f = f, .span = of->span},
             .loss = of,
             .last = f->last,
             .leaf = leaf,
             .ok = true};
    const Op *last = f->last;
    run_backward(&ad, false);
    for (Op *op = f->first; op != last->next; op = op->next) {
        const Adjoint *at = op->tag;
        op->tag = NULL;
        grad[op->id] = at ? at->grad : NULL;
    }
    return ad.ok;
}

static bool run(PassCtx *p, Module *m) {
    Func *f = func_of(m, PHASE_TRAIN);
    return !f || func_output_of(f, OUT_GRAD) || pass_autodiff_func(p, m, f);
}

const Pass pass_autodiff = {
    .name = "autodiff",
    .summary = "append the gradients of every parameter to the training step",
    .needs = IR_TYPED,
    .gives = IR_GRAD,
    .run = run,
    .required = true,
};
