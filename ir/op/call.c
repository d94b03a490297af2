/* Functions of the user's, in C (docs/language.md, section 5).
 *
 *     %y  = call "f" %x, %k : f32[paper]             pure: merged and dropped as any value
 *     %dx = call_grad "f" %x, %k, %y, %dy : f32[..]  of each floating-point input a gradient,
 *     %dk = result 1 %dx : f32[..]                   the first as this value, others as results
 *     call_effect when "g" %c, %x                    kept and in order; happens where %c holds
 *
 * Operands and results lie in memory in the order of their types' spaces, so no pass may
 * put one inside a kernel, nor repeat a call.  Without a gradient function, autodiff
 * refuses a loss that needs one (passes/autodiff.c). */
#include "ir/interp.h"
#include "ir/op/op.h"

/* ---- types ------------------------------------------------------------------------- */
static bool is_passed(DType t) {
    return t == DT_F32 || t == DT_F64 || t == DT_I32 || t == DT_I1;
}

/* Checks that the operands from number `from` on are dense and of types that C functions take.
 * Returns what is wrong, or NULL. */
static const char *check_operands(Module *m, const Op *op, int from) {
    for (int i = from; i < op->n_in; i++) {
        const char *err = op_need_dense(m, op, i);
        if (err) return err;
        if (!is_passed(op->in[i]->type.dt))
            return op_err(m, "%s: C functions take f32, f64, i32 and bool", op_who(m, op, i));
    }
    return NULL;
}

/* Operand number of the k-th input that has a gradient; -1: there are fewer. */
static int differentiable(const Op *grad, int k) {
    for (int i = 0; i < grad->n_in - 2; i++)
        if (dtype_is_float(grad->in[i]->type.dt) && k-- == 0) return i;
    return -1;
}

/* The type of `call_grad`, whose operands are the call's inputs, its output and the gradient of
 * that: the type of the first input of floating point. Its other gradients are read by `result`.
 * Returns what is wrong, or NULL. */
static const char *infer_grad(Module *m, Op *op) {
    if (!op->ext->grad) return op_err(m, "'%s' has no gradient function", op->ext->name);
    if (op->n_in < 3) return "'call_grad' takes inputs, the output and its gradient";
    const Op *y = op->in[op->n_in - 2], *g = op->in[op->n_in - 1];
    if (!type_eq(&y->type, &g->type))
        return op_err(m, "%s and %s differ in type", op_who(m, op, op->n_in - 2),
                      op_who(m, op, op->n_in - 1));
    int first = differentiable(op, 0);
    if (first < 0) return "no input is of floating point, so there is no gradient";
    op->type = op->in[first]->type;
    return NULL;
}

/* The type of `result k`: value k that a loop carries, or gradient k of a `call_grad`. Returns what
 * is wrong, or NULL. */
static const char *infer_result(Module *m, Op *op) {
    const Op *call = op->in[0];
    int which = (int)op->imm;
    if (call->kind == OP_LOOP && which == op->imm && which > 0 &&
        which < func_n_carried(call->body)) {
        op->type = call->in[which]->type;
        return NULL;
    }
    int at = call->kind == OP_CALL_GRAD && which > 0 ? differentiable(call, which) : -1;
    if (at < 0 || which != op->imm)
        return op_err(m, "%s has no result %g", op_who(m, op, 0), op->imm);
    op->type = call->in[at]->type;
    return NULL;
}

/* Checks an operation of this file and gives it its type. Returns what is wrong, or NULL. */
static const char *infer(Module *m, Op *op) {
    if (op->kind == OP_RESULT) return infer_result(m, op);
    if (!op->ext) return op_err(m, "'%s' lacks its function", op_mnemonic(op->kind));
    if ((op->kind == OP_CALL_EFFECT) != op->ext->effect && op->kind != OP_CALL_GRAD)
        return op_err(m, "'%s' is %san effect", op->ext->name, op->ext->effect ? "" : "not ");
    const char *err = check_operands(m, op, op->when);
    if (err) return err;
    if (op->kind == OP_CALL_GRAD) return infer_grad(m, op);
    if (op->when && (op->n_in < 1 || op->in[0]->type.dt != DT_I1 || op->in[0]->type.rank))
        return "'when' needs one truth value as its first operand";
    if (op->type.dt == DT_VOID)
        return op->kind == OP_CALL ? "a call without an effect has a result" : NULL;
    if (op->type.layout != LAYOUT_DENSE || !is_passed(op->type.dt))
        return "C functions give dense f32, f64, i32 and bool";
    return NULL;
}

/* ---- gradient --------------------------------------------------------------------------- */
/* Appends the gradients of all inputs of a C function: one `call_grad`, whose results they are. */
static void vjp(Builder *b, Op *op, Op *g, Op **gin) {
    if ((op->kind != OP_CALL && op->kind != OP_CALL_EFFECT) || !op->ext->grad) return;
    int first = op->when, n = op->n_in - first;
    Op proto = {.kind = OP_CALL_GRAD, .ext = op->ext, .n_in = n + 2};
    proto.in = NEWN(b->m->a, Op *, (size_t)n + 2);
    for (int i = 0; i < n; i++) proto.in[i] = op->in[first + i];
    proto.in[n] = op;
    proto.in[n + 1] = g;
    Op *call = b_op(b, &proto);
    for (int k = 0, at; (at = differentiable(call, k)) >= 0; k++) {
        if (!ad_wants(op, first + at)) continue;
        Op *d = b_result(b, call, k);
        /* What did not happen gave zeros, whatever the inputs were. */
        gin[first + at] = op->when ? b_select(b, op->in[0], d, ad_zeros(b, &d->type)) : d;
    }
}

/* ---- meaning ------------------------------------------------------------------------------ */
static bool shape_result(Interp *in, const Type *t, OpTensor *x) {
    *x = (OpTensor){.type = *t, .count = 1};
    for (int i = 0; i < t->rank; i++) x->count *= x->shape[i] = interp_size(in, t->dim[i]);
    x->v = NEWN(interp_scratch(in), double, (size_t)x->count + 1);
    return true;
}

/* Fills `results` with the tensors that the C function writes: `out`, and new ones for the further
 * gradients of a `call_grad`. Returns how many. */
static int make_results(Interp *in, const Op *op, OpTensor *out, OpTensor **results) {
    int n = 0;
    if (op->type.dt == DT_VOID) return 0;
    results[n++] = out;
    for (int at; op->kind == OP_CALL_GRAD && (at = differentiable(op, n)) >= 0; n++) {
        results[n] = NEW(interp_scratch(in), OpTensor);
        shape_result(in, &op->in[at]->type, results[n]);
    }
    return n;
}

/* Evaluates the operation in the interpreter: copies a result, or runs the C function unless its
 * condition `when` is false. False after an error. */
static bool eval(Interp *in, Op *op, OpTensor *out) {
    if (op->kind == OP_RESULT) {
        const OpTensor *x = interp_result(in, op->in[0], (int)op->imm);
        if (!x) return interp_fail(in, op, "no such result");
        for (int64_t i = 0; i < out->count; i++) out->v[i] = x->v[i];
        return true;
    }
    if (op->when && !interp_in(in, op, 0)->v[0]) return true; /* results are zeros */
    int n = op->n_in - op->when;
    const OpTensor **args = NEWN(interp_scratch(in), const OpTensor *, (size_t)n + 1);
    OpTensor **results = NEWN(interp_scratch(in), OpTensor *, (size_t)n + 1);
    for (int i = 0; i < n; i++) args[i] = interp_in(in, op, i + op->when);
    int n_out = make_results(in, op, out, results);
    const char *name = op->kind == OP_CALL_GRAD ? op->ext->grad : op->ext->name;
    if (!interp_call(in, op, name, n, args, n_out, results)) return false;
    for (int i = 1; i < n_out; i++) interp_put_result(in, op, i, results[i]);
    return true;
}

const OpImpl op_call = {.infer = infer, .vjp = vjp, .eval = eval};
