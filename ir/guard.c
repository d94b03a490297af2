/* Where values are wanted.
 *
 *     %y = contract %x, %w                wanted only where %c holds: the select alone reads it
 *     %z = select %c, %y, %x
 *
 * A value that is read through one operand of selects by one scalar condition, or by effects
 * under it, need not be computed where the condition is otherwise; so for what only such values
 * read.  Conditions nest: guards form a tree, and what several read is wanted at their lowest
 * common ancestor.  This is code sinking to the latest place (Knoop, Ruething and Steffen, Lazy
 * code motion, PLDI 1992) for a program whose only branches are selects. */
#include "ir/guard.h"

typedef struct {
    Arena *a;
    VEC(Guard *) all;
} Guards;

static const Guard *child(Guards *g, const Guard *up, Op *cond, bool holds) {
    for (const Guard *x = up; x; x = x->up)
        if (x->cond == cond && x->holds == holds) return up;
    for (int i = g->all.n - 1; i >= 0; i--) {
        Guard *x = g->all.v[i];
        if (x->up == up && x->cond == cond && x->holds == holds) return x;
    }
    Guard *x = NEW(g->a, Guard);
    *x = (Guard){.up = up, .cond = cond, .holds = holds, .depth = up ? up->depth + 1 : 1};
    vec_push(g->a, &g->all, x);
    return x;
}

static const Guard *meet(const Guard *x, const Guard *y) {
    while (x != y) {
        bool from_x = x && (!y || x->depth >= y->depth);
        if (from_x)
            x = x->up;
        else
            y = y->up;
    }
    return x;
}

bool ir_guard_within(const Guard *inner, const Guard *outer) {
    while (inner && inner != outer) inner = inner->up;
    return inner == outer;
}

static const Guard *operand_guard(Guards *g, const Guard *at, const Op *user, int i) {
    bool scalar = user->n_in > 0 && user->in[0]->type.rank == 0;
    if (i == 0 || !scalar) return at;
    if (user->kind == OP_SELECT) return child(g, at, user->in[0], i == 1);
    return user->when ? child(g, at, user->in[0], true) : at;
}

/* Kinds that cost more than an arithmetic operation for each element. */
static bool is_heavy(const Op *op) {
    return op->n_in > 0 && !op_has(op, OPT_ELEM | OPT_VIEW | OPT_EFFECT);
}

/* No step of these is skipped, so what they read must be there: a loop's condition decides whether
 * it ends, a user's function is given whole values. */
static bool runs_anyway(const Op *op) {
    return op_acts(op) || op->kind == OP_LOOP || (op->ext && !op->when);
}

const Guard **ir_guards(Arena *a, Func *f) {
    Guards g = {.a = a};
    func_number(f);
    const Guard **at = NEWN(a, const Guard *, (size_t)f->n_ops + 1);
    bool *wanted = NEWN(a, bool, (size_t)f->n_ops + 1);
    for (Op *op = f->last; op; op = op->prev) {
        if (!wanted[op->id] && !op_acts(op)) continue;
        if (runs_anyway(op)) at[op->id] = NULL;
        for (const Guard *x = at[op->id]; x && is_heavy(op); x = x->up) ((Guard *)x)->heavy = true;
        for (int i = 0; i < op->n_in; i++) {
            const Op *x = op->in[i];
            const Guard *here = operand_guard(&g, at[op->id], op, i);
            at[x->id] = wanted[x->id] ? meet(at[x->id], here) : here;
            wanted[x->id] = true;
        }
    }
    return at;
}
