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

/* Guards by what they ask (a condition and whether it holds, as a number), in a binary tree that is
 * never changed: another one with a guard more shares what is the same. */
typedef struct GuardTree GuardTree;
struct GuardTree {
    const GuardTree *kid[2];
    const Guard *guard; /* of a leaf */
};

typedef struct {
    Guard guard;
    const GuardTree *ancestors; /* it and what it is in */
    const GuardTree *children;  /* those right in it */
} Node;

typedef struct {
    Arena *a;
    unsigned top_bit; /* the highest bit of a number */
    Node root;
} Guards;

/* The guard of a number in a tree, or NULL. */
static const Guard *find_guard(const Guards *g, const GuardTree *in, unsigned what) {
    for (unsigned bit = g->top_bit; in && bit; bit >>= 1) in = in->kid[(what & bit) != 0];
    return in ? in->guard : NULL;
}

/* A copy of the tree with one guard more, which shares what is the same. */
static const GuardTree *insert_guard(Guards *g, const GuardTree *in, unsigned what,
                                     const Guard *guard) {
    const GuardTree *first = NULL;
    const GuardTree **at = &first;
    for (unsigned bit = g->top_bit;; bit >>= 1) {
        GuardTree *copy = NEW(g->a, GuardTree);
        if (in) *copy = *in;
        *at = copy;
        if (!bit) {
            copy->guard = guard;
            return first;
        }
        int side = (what & bit) != 0;
        at = &copy->kid[side];
        in = copy->kid[side];
    }
}

/* The jump pointer of a child of `up`: as far as the two jumps before it, if these are alike (Myers
 * 1983, "An applicative random-access stack"). */
static const Guard *jump_of(const Guard *up) {
    const Guard *first = up->jump, *second = first ? first->jump : NULL;
    int far = up->depth - (first ? first->depth : 0),
        next = first ? first->depth - (second ? second->depth : 0) : 0;
    return first && far == next ? second : up;
}

/* The guard below `up` with that condition, created if necessary. */
static const Guard *child_guard(Guards *g, const Guard *up, Op *cond, bool holds) {
    Node *in = up ? (Node *)up : &g->root;
    unsigned what = 2 * (unsigned)cond->id + holds;
    if (find_guard(g, in->ancestors, what)) return up;
    const Guard *known = find_guard(g, in->children, what);
    if (known) return known;
    Node *x = NEW(g->a, Node);
    x->guard = (Guard){.up = up, .cond = cond, .holds = holds, .depth = up ? up->depth + 1 : 1};
    x->guard.top = up ? up->top : &x->guard;
    x->guard.jump = up ? jump_of(up) : NULL;
    x->ancestors = insert_guard(g, in->ancestors, what, &x->guard);
    in->children = insert_guard(g, in->children, what, &x->guard);
    return &x->guard;
}

/* The ancestor of x, or x, at that depth or less. */
static const Guard *ancestor_at(const Guard *x, int depth) {
    while (x && x->depth > depth) x = x->jump && x->jump->depth >= depth ? x->jump : x->up;
    return x;
}

/* The lowest common ancestor of two guards. */
static const Guard *common_ancestor(const Guard *x, const Guard *y) {
    if (!x || !y) return NULL;
    x = ancestor_at(x, y->depth);
    y = ancestor_at(y, x->depth);
    while (x != y) {
        bool far = x->jump != y->jump;
        x = far ? x->jump : x->up;
        y = far ? y->jump : y->up;
    }
    return x;
}

/* Whether a guard is within another one. */
bool ir_guard_within(const Guard *inner, const Guard *outer) {
    return !outer || ancestor_at(inner, outer->depth) == outer;
}

/* The guard under which the user reads operand i. */
static const Guard *operand_guard(Guards *g, const Guard *at, const Op *user, int i) {
    bool scalar = user->n_in > 0 && user->in[0]->type.rank == 0;
    if (i == 0 || !scalar) return at;
    if (user->kind == OP_SELECT) return child_guard(g, at, user->in[0], i == 1);
    return user->when ? child_guard(g, at, user->in[0], true) : at;
}

/* Whether the operation costs more than arithmetic per element. */
static bool is_worth_test(const Op *op) {
    return op->n_in > 0 && !op_has(op, OPT_ELEM | OPT_VIEW | OPT_EFFECT);
}

/* Whether the operation always runs, so that its operands must be there: an effect, a loop (whose
 * condition decides whether it ends), a user's function (which is given all values). */
static bool is_unconditional(const Op *op) {
    return op_acts(op) || op->kind == OP_LOOP || (op->ext && !op->when);
}

/* Marks a guard and all around it as worth a test. */
static void mark_worth_test(const Guard *x, bool *tests) {
    for (; x && !x->worth_test; x = x->up) {
        ((Guard *)x)->worth_test = true;
        if (tests) tests[x->cond->id] = true;
    }
}

/* Finds the guard of each value, backwards. */
const Guard **ir_guards(Arena *a, Func *f, bool *tests) {
    Guards g = {.a = a, .top_bit = 1};
    func_number(f);
    while (g.top_bit < (unsigned)f->n_ops)
        g.top_bit <<= 1; /* twice as many numbers as operations */
    const Guard **at = NEWN(a, const Guard *, (size_t)f->n_ops + 1);
    bool *wanted = NEWN(a, bool, (size_t)f->n_ops + 1);
    for (Op *op = f->last; op; op = op->prev) {
        if (!wanted[op->id] && !op_acts(op)) continue;
        if (is_unconditional(op)) at[op->id] = NULL;
        if (is_worth_test(op)) mark_worth_test(at[op->id], tests);
        for (int i = 0; i < op->n_in; i++) {
            const Op *x = op->in[i];
            const Guard *here = operand_guard(&g, at[op->id], op, i);
            at[x->id] = wanted[x->id] ? common_ancestor(at[x->id], here) : here;
            wanted[x->id] = true;
        }
    }
    return at;
}
