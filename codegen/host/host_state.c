/* How a step of training changes a state:
 *
 *     running = 0.9 * running + 0.1 * m        .keeps = 0.9
 *
 * Processes that share the steps of an update each make some of them.  Such a state is then added
 * up in the steps' order from what each added to it, as gradients are (train_shares.c). */
#include "codegen/host/host.h"

/* The number of ops in f, and in the bodies of its loops, that read variable v. */
static int count_reads(const Func *f, const Var *v) {
    int n = 0;
    for (const Op *op = f->first; op; op = op->next) {
        n += op->kind == OP_VAR && op->var == v;
        if (op->body) n += count_reads(op->body, v);
    }
    return n;
}

/* The number of times that ops of f have the result of `of` as operand. */
static int count_uses(const Func *f, const Op *of) {
    int n = 0;
    for (const Op *op = f->first; op; op = op->next)
        for (int i = 0; i < op->n_in; i++) n += op->in[i] == of;
    return n;
}

/* Whether op is the state v or a constant times it, and nothing else uses that value. *share: the
 * constant, 1 for the state itself. */
static bool is_scaled_state(const Func *f, const Op *op, const Var *v, double *share) {
    *share = 1;
    if (count_uses(f, op) != 1) return false;
    if (op->kind == OP_VAR) return op->var == v;
    if (op->kind != OP_MUL) return false;
    bool first = op->in[0]->kind == OP_CONST;
    const Op *factor = op->in[first ? 0 : 1], *state = op->in[first ? 1 : 0];
    if (factor->kind != OP_CONST || state->kind != OP_VAR || state->var != v) return false;
    *share = (float)factor->imm;
    return count_uses(f, state) == 1;
}

/* Of a state that a training step updates as `s = share * s + (what does not depend on s)`, as a
 * batch norm its running mean: the share, 1 for a plain sum. From it processes that share steps
 * find what each step added. 0: the step changes the state in another way; so it does where s is
 * read a second time, since what is added may then depend on it. */
static double kept_share(const Func *f, const Op *assign) {
    const Op *sum = assign->in[0];
    const Var *v = assign->var;
    double share;
    if (v->type.dt != DT_F32 || sum->kind != OP_ADD || count_reads(f, v) != 1) return 0;
    for (int i = 0; i < 2; i++)
        if (is_scaled_state(f, sum->in[i], v, &share)) return share > 0 ? share : 0;
    return 0;
}

/* Whether a training step assigns the state v. *kept: the share of its old value that stays before
 * something is added (kept_share()); 0: the step changes it in another way. */
bool host_state_assigned(const Module *m, const Var *v, double *kept) {
    const Func *f = func_of(m, PHASE_TRAIN);
    *kept = 0;
    for (const Op *op = f ? f->first : NULL; op; op = op->next) {
        if (op->kind != OP_ASSIGN || op->var != v) continue;
        *kept = kept_share(f, op);
        return true;
    }
    return false;
}
