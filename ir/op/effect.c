/* Effects: what a function does besides computing.  They keep their order. */
#include "ir/interp.h"
#include "ir/op/op.h"

static const char *infer_assign(Module *m, const Op *op) {
    if (!op->var) return "'assign' lacks its variable";
    if (type_eq(&op->in[0]->type, &op->var->type)) return NULL;
    return op_err(m, "%s cannot be assigned to '%s', which is %s", op_who(m, op, 0), op->var->path,
                  op_type_text(m, &op->var->type));
}

/* What others read of an output without asking. */
static const char *check_use(const OutputUse *u) {
    if (u->role == OUT_GRAD) return u->var ? NULL : "a gradient is of a parameter";
    bool alone = u->role == OUT_VALUE || u->role == OUT_PRED ||
                 (u->role == OUT_LOSS && u->split == SPLIT_NONE);
    return alone || u->of ? NULL : "such an output has a name among its kind, as \"accuracy\"";
}

/* Checks an effect (assign, output, print, assert), whose type is void. Returns what is wrong, or
 * NULL. */
static const char *infer(Module *m, Op *op) {
    op->type = (Type){.dt = DT_VOID};
    if (op->kind == OP_ASSIGN) return infer_assign(m, op);
    if (!op->name) return op_err(m, "'%s' lacks its text", op_mnemonic(op->kind));
    if (op->kind == OP_OUTPUT && check_use(&op->use)) return check_use(&op->use);
    if (op->when && (op->n_in < 1 || op->in[0]->type.dt != DT_I1 || op->in[0]->type.rank))
        return "'when' needs one truth value as its first operand";
    if (op->kind == OP_ASSERT && op->in[0]->type.dt != DT_I1)
        return op_err(m, "%s is not a truth value", op_who(m, op, 0));
    return NULL;
}

/* Runs the effect in the interpreter: an assignment is done at the end of the function, an output
 * is kept by name, an assertion that is false is an error, and nothing is printed. */
static bool eval(Interp *in, Op *op, OpTensor *out) {
    (void)out;
    if (op->kind == OP_ASSIGN) return interp_assign_later(in, op->var, interp_in(in, op, 0));
    if (op->kind == OP_OUTPUT) return interp_put_output(in, op->name, interp_in(in, op, 0));
    if (op->kind != OP_ASSERT) return true; /* print: the interpreter has no terminal */
    const OpTensor *c = interp_in(in, op, 0);
    for (int64_t i = 0; i < c->count; i++)
        if (!c->v[i]) return interp_fail(in, op, op->name);
    return true;
}

const OpImpl op_effect = {.infer = infer, .vjp = NULL, .eval = eval};
