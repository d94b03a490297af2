#include "op_low.h"

#include <string.h>

#include "passes/rewrite.h"

static Op *after(Module *m, Func *f, Op *x, const Op *proto, bool fused) {
    Builder b = {.m = m, .f = f, .at = x->next, .span = x->span};
    Op *y = b_op(&b, proto);
    y->fused = fused;
    return y;
}

static Op *cast_after(Module *m, Func *f, Op *x, DType dt, bool fused) {
    return after(m, f, x, &(Op){.kind = OP_CAST, .n_in = 1, .in = &x, .type = {.dt = dt}}, fused);
}

static bool is_tensor(const Op *x) {
    return x->type.dt == DT_F32 && x->type.rank > 0 && x->type.layout == LAYOUT_DENSE;
}

/* Reads memory itself, as f32: products get a rounded copy from the pass. */
static bool needs_memory(const Op *u) {
    return op_has(u, OPT_LIB | OPT_EFFECT | OPT_VIEW) || u->kind == OP_SLICE ||
           u->kind == OP_CONCAT ||
           (u->kind == OP_CONTRACT && !u->fused && pass_is_matrix_product(u));
}

static void read_rounded(Module *m, Func *f, Op *x, DType dt) {
    Op *low = cast_after(m, f, x, dt, false), *up = cast_after(m, f, low, DT_F32, true);
    for (Op *u = up->next; u; u = u->next)
        for (int i = 0; i < u->n_in; i++)
            if (u->in[i] == x && !needs_memory(u)) u->in[i] = up;
}

static void ask(Module *m, Func *f, Op *x, DType dt) {
    Op *asked = after(m, f, x, &(Op){.kind = OP_STORE_AS, .n_in = 1, .in = &x, .dtype = dt}, false);
    for (Op *u = asked->next; u; u = u->next)
        for (int i = 0; i < u->n_in; i++)
            if (u->in[i] == x) u->in[i] = asked;
}

/* What leaves the step is f32: the output is minus the value, and the value stays behind. */
static void hide(Module *m, Func *f, Op *out) {
    Op *x = out->in[0];
    out->in[0] = after(m, f, x, &(Op){.kind = OP_NEG, .n_in = 1, .in = &x}, false);
}

static void ask_func(Module *m, Func *f, DType dt) {
    for (Op *op = f->first; op; op = op->next)
        if (op->kind == OP_OUTPUT && is_tensor(op->in[0]) && op->in[0]->n_in > 0) hide(m, f, op);
    for (Op *op = f->first, *next; op; op = next) {
        next = op->next;
        if (!is_tensor(op) || op->fused) continue;
        if (op->kind == OP_VAR || op->kind == OP_DATA || op->kind == OP_RANDOM)
            read_rounded(m, f, op, dt);
        else if (op->n_in > 0 && op_has(op, OPT_PURE) && !op_has(op, OPT_LIB))
            ask(m, f, op, dt);
    }
}

void op_low_ask(Module *m, DType dt) {
    for (int i = 0; i < m->funcs.n; i++)
        if (!m->funcs.v[i]->body && strcmp(m->funcs.v[i]->name, "load") != 0)
            ask_func(m, m->funcs.v[i], dt);
}
