/* Repetition: a loop in the graph, for `while` on a value that only running knows.
 *
 *     body @train.loop {                       func @train {
 *       %c = arg 0 : i1                          %r = loop @train.loop limit 20 %go, %h, %z : i1
 *       %h = arg 1 : f32[n, C]                   %y = result 1 %r : f32[n, C]
 *       %z = arg 2 : f32[n, C]                   output "pred" %y
 *       ...                                    }
 *       next 1 %better
 *       next 0 %more
 *     }
 *
 * While operand 0 holds, and at most `limit` times, the operands that have a `next` become its
 * value; the others stay what they were.  Afterwards the loop is operand 0 as it is then, and
 * `result k` operand k.  So the condition is carried like any other value, and is computed once
 * before the loop and once at the end of the body: XLA's While and lax.while_loop with the
 * condition rotated into the body.  A body is a flat function like every other, so passes need
 * not know of regions.  Gradients: passes/unroll.c. */
#include "ir/interp.h"
#include "ir/op/op.h"

enum { MAX_ITERATIONS = 1000000 }; /* the oracle gives up on a loop that does not end */

/* ---- types ----------------------------------------------------------------------------- */
static const char *infer_which(const Op *op) {
    bool ok = op->imm >= 0 && op->imm <= 1000 && op->imm == (int)op->imm;
    return ok ? NULL : "the number of an operand is a small integer";
}

static const char *infer_arg(Module *m, const Op *op) {
    if (op->type.dt == DT_VOID || op->type.layout != LAYOUT_DENSE)
        return op_err(m, "'%s' is dense and says its type", op_mnemonic(op->kind));
    return infer_which(op);
}

/* Checks that operand k of the loop has type t, with which `use`, an argument or `next` k of the
 * body, has it. Returns what is wrong, or NULL. */
static const char *fits(Module *m, const Op *loop, const Op *use, const Type *t) {
    int k = (int)use->imm;
    if (k >= loop->n_in)
        return op_err(m, "the body has '%s %d', but there are %d operands", op_mnemonic(use->kind),
                      k, loop->n_in);
    if (type_eq(&loop->in[k]->type, t)) return NULL;
    return op_err(m, "%s is %s, but '%s %d' of the body is %s", op_who(m, loop, k),
                  op_type_text(m, &loop->in[k]->type), op_mnemonic(use->kind), k,
                  op_type_text(m, t));
}

/* Checks a loop and its body: the body gives each carried value, number 0 is the condition, and all
 * fit the operands. The type is that of the condition, i1. Returns what is wrong, or NULL. */
static const char *infer_loop(Module *m, Op *op) {
    op->type = type_scalar(DT_I1);
    if (!op->body || !op->body->body) return "'loop' lacks its body";
    if (op->imm < 0 || op->imm != (double)(int64_t)op->imm) return "a limit is a whole number";
    int carried = func_n_carried(op->body);
    if (carried < 1) return "the body lacks 'next 0', the condition";
    for (int k = 0; k < carried; k++)
        if (!func_next(op->body, k)) return op_err(m, "the body lacks 'next %d'", k);
    for (const Op *x = op->body->first; x; x = x->next) {
        const Type *t = x->kind == OP_NEXT ? &x->in[0]->type : &x->type;
        if (x->kind != OP_NEXT && x->kind != OP_ARG) continue;
        const char *err = fits(m, op, x, t);
        if (err) return err;
    }
    if (!type_eq(&op->in[0]->type, &op->type)) return "operand 0, the condition, is not an i1";
    return NULL;
}

static const char *infer(Module *m, Op *op) {
    if (op->kind == OP_LOOP) return infer_loop(m, op);
    if (op->kind == OP_ARG) return infer_arg(m, op);
    op->type = (Type){.dt = DT_VOID};
    return infer_which(op);
}

/* ---- meaning ----------------------------------------------------------------------------- */
/* Evaluates `arg` in the interpreter: the value that the running loop carries at place `imm`. False
 * outside of a loop. */
static bool eval_arg(Interp *in, const Op *op, OpTensor *out) {
    const OpTensor *x = interp_arg(in, (int)op->imm);
    if (!x) return interp_fail(in, op, "stands in no loop that runs");
    for (int64_t i = 0; i < out->count; i++) out->v[i] = x->v[i];
    return true;
}

/* Runs the body in the interpreter while value 0 holds, at most `imm` times (0 = no limit). The
 * carried values are kept for `result`. False after an error, or if it does not end. */
static bool eval_loop(Interp *in, const Op *op, OpTensor *out) {
    int carried = func_n_carried(op->body);
    const OpTensor **now = NEWN(interp_scratch(in), const OpTensor *, (size_t)op->n_in);
    for (int k = 0; k < op->n_in; k++) now[k] = interp_in(in, op, k);
    for (int iteration = 0; now[0]->v[0] && (!op->imm || iteration < op->imm); iteration++) {
        if (iteration == MAX_ITERATIONS) return interp_fail(in, op, "does not end");
        if (!interp_body(in, op->body, now)) return false;
    }
    out->v[0] = now[0]->v[0];
    for (int k = 1; k < carried; k++) interp_put_result(in, op, k, now[k]);
    return true;
}

static bool eval(Interp *in, Op *op, OpTensor *out) {
    if (op->kind == OP_LOOP) return eval_loop(in, op, out);
    if (op->kind == OP_ARG) return eval_arg(in, op, out);
    interp_put_next(in, (int)op->imm, interp_in(in, op, 0));
    return true;
}

const OpImpl op_loop = {.infer = infer, .vjp = NULL, .eval = eval};
