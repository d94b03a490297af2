/* Questions about a function: its numbers, outputs and what a loop carries. */
#include "ir/ir.h"

#include <string.h>

/* Numbers the operations of a function. */
void func_number(Func *f) {
    int n = 0;
    for (Op *op = f->first; op; op = op->next) op->id = n++;
}

/* By Op.id: the number of uses. */
int *func_use_counts(Arena *a, Func *f) {
    func_number(f);
    int *uses = NEWN(a, int, (size_t)f->n_ops);
    for (Op *op = f->first; op; op = op->next)
        for (int i = 0; i < op->n_in; i++) uses[op->in[i]->id]++;
    return uses;
}

/* The output of a name, or NULL. */
Op *func_output(const Func *f, const char *name) {
    for (Op *op = f->first; op; op = op->next)
        if (op->kind == OP_OUTPUT && strcmp(op->name, name) == 0) return op;
    return NULL;
}

/* The first output of a role, or NULL. */
Op *func_output_of(const Func *f, OutputRole role) {
    for (Op *op = f->first; op; op = op->next)
        if (op->kind == OP_OUTPUT && op->use.role == role) return op;
    return NULL;
}

/* The operation that gives operand `which` of the next iteration, or NULL. */
Op *func_next(const Func *body, int which) {
    for (Op *op = body->first; op; op = op->next)
        if (op->kind == OP_NEXT && (int)op->imm == which) return op;
    return NULL;
}

/* The number of operands of a loop that change between iterations. */
int func_n_carried(const Func *body) {
    int n = 0;
    for (const Op *op = body->first; op; op = op->next)
        if (op->kind == OP_NEXT && (int)op->imm >= n) n = (int)op->imm + 1;
    return n;
}

/* Whether the operation has an effect, or is a loop around one. */
bool op_acts(const Op *op) {
    if (op->kind != OP_LOOP) return op_has(op, OPT_EFFECT);
    for (const Op *x = op->body->first; x; x = x->next)
        if (x->kind != OP_NEXT && op_acts(x)) return true;
    return false;
}
