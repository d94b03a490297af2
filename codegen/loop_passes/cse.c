/* Values that are computed anew in one list are one.
 *
 *     %i: i64 = iadd %v %n                     %i: i64 = iadd %v %n
 *     for %f in F vector { .. }         =>     for %f in F vector { .. }
 *     %j: i64 = iadd %v %n
 *     for %f in F vector { .. %j .. }          for %f in F vector { .. %i .. }
 *
 * Schedules ask how far columns are apart by comparing registers. */
#include "codegen/loop_passes/loops.h"
#include "passes/rewrite.h"

/* Whether two statements compute the same value. */
static bool is_same_value(const LStmt *x, const LStmt *y) {
    bool same = x->kind == L_LET && y->kind == L_LET && x->fn == y->fn && x->op == y->op &&
                x->dst->dt == y->dst->dt && x->n_arg == y->n_arg && x->n_arg > 0;
    for (int i = 0; same && i < x->n_arg; i++) same = x->arg[i] == y->arg[i];
    return same;
}

/* Whether the operation is commutative. */
static bool commutes(const LStmt *s) {
    bool op = s->fn == L_FN_OP && (s->op == OP_ADD || s->op == OP_MUL);
    return op || s->fn == L_FN_IADD || s->fn == L_FN_IMUL;
}

/* Whether two statements differ only in the order of the arguments of a commutative operation. */
static bool is_swapped(const LStmt *x, const LStmt *y) {
    return x->kind == L_LET && y->kind == L_LET && x->fn == y->fn && x->op == y->op &&
           x->n_arg == 2 && y->n_arg == 2 && commutes(x) && x->arg[0] == y->arg[1] &&
           x->arg[1] == y->arg[0];
}

typedef struct {
    int merged, swapped;
} Count;

/* Replaces repeated values of a list by the first one. */
static void merge_equal(LStmt *list, Count *n) {
    for (LStmt *s = list; s; s = s->next) {
        if (loop_has_body(s)) merge_equal(s->body, n);
        for (LStmt **at = &s->next; *at;) {
            LStmt *other = *at;
            if (!is_same_value(s, other)) {
                n->swapped += is_swapped(s, other);
                at = &other->next;
                continue;
            }
            *at = other->next;
            loop_replace_register(*at, other->dst, s->dst);
            n->merged++;
        }
    }
}

/* Runs the pass on one kernel; true if it changed. */
static bool eliminate(Loops *l, LKernel *k) {
    LStmt **row = loop_row_list(k);
    Count n = {0};
    if (row) merge_equal(*row, &n);
    if (n.merged)
        pass_remark(l->pass, k->span, "cse-loops", "%s: %d values are had once", k->name, n.merged);
    if (n.swapped)
        pass_refusal(l->pass, k->span, "cse-loops",
                     "%s: not %d values: their arguments are in another order", k->name, n.swapped);
    return n.merged > 0;
}

static bool run(PassCtx *p, Loops *l) {
    (void)p;
    return loop_pass_each(l, eliminate);
}

const Pass loop_pass_cse = {
    .name = "cse-loops",
    .summary = "values that are computed anew in one list of statements are one",
    .run_loops = run,
};
