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

/* Whether op is the state v or a constant times it, and nothing else uses that value. *keeps: the
 * constant, 1 for the state itself. */
static bool is_scaled_state(const Func *f, const Op *op, const Var *v, double *keeps) {
    *keeps = 1;
    if (count_uses(f, op) != 1) return false;
    if (op->kind == OP_VAR) return op->var == v;
    if (op->kind != OP_MUL) return false;
    bool first = op->in[0]->kind == OP_CONST;
    const Op *factor = op->in[first ? 0 : 1], *state = op->in[first ? 1 : 0];
    if (factor->kind != OP_CONST || state->kind != OP_VAR || state->var != v) return false;
    *keeps = (float)factor->imm;
    return count_uses(f, state) == 1;
}

/* What a training step multiplies the state by before it adds to it; 0: it changes the state in
 * another way, or reads it a second time, so that what is added may depend on it. */
static double kept_share(const Func *f, const Op *assign) {
    const Op *sum = assign->in[0];
    const Var *v = assign->var;
    double keeps;
    if (v->type.dt != DT_F32 || sum->kind != OP_ADD || count_reads(f, v) != 1) return 0;
    for (int i = 0; i < 2; i++)
        if (is_scaled_state(f, sum->in[i], v, &keeps)) return keeps > 0 ? keeps : 0;
    return 0;
}

/* Whether a training step assigns the state v. *keeps: what it multiplies the old value by before
 * adding to it; 0: it changes the state in another way. */
bool host_state_assigned(const Module *m, const Var *v, double *keeps) {
    const Func *f = func_of(m, PHASE_TRAIN);
    *keeps = 0;
    for (const Op *op = f ? f->first : NULL; op; op = op->next) {
        if (op->kind != OP_ASSIGN || op->var != v) continue;
        *keeps = kept_share(f, op);
        return true;
    }
    return false;
}
