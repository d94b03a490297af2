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
                x->dst->dt == y->dst->dt && x->n_arg == y->n_arg && x->n_arg > 0 &&
                x->imm == y->imm; /* the threshold of L_FN_LE_RANDOM */
    for (int i = 0; same && i < x->n_arg; i++) same = x->arg[i] == y->arg[i];
    return same;
}

/* Whether the operation is commutative. */
static bool commutes(const LStmt *s) {
    bool is_commutative = s->fn == L_FN_OP && (s->op == OP_ADD || s->op == OP_MUL);
    return is_commutative || s->fn == L_FN_IADD || s->fn == L_FN_IMUL;
}

/* Whether two statements differ only in the order of the arguments of a commutative operation. Such
 * values are not merged: floating-point code stays as it is. */
static bool is_swapped(const LStmt *x, const LStmt *y) {
    return x->kind == L_LET && y->kind == L_LET && x->fn == y->fn && x->op == y->op &&
           x->n_arg == 2 && y->n_arg == 2 && commutes(x) && x->arg[0] == y->arg[1] &&
           x->arg[1] == y->arg[0];
}

typedef struct {
    int merged, swapped;
} MergeCounts;

/* Replaces values of a list that were computed before by the first one, also in nested lists;
 * counts what was merged. */
static void merge_equal(LStmt *list, MergeCounts *counts) {
    for (LStmt *s = list; s; s = s->next) {
        if (loop_has_body(s)) merge_equal(s->body, counts);
        for (LStmt **at = &s->next; *at;) {
            LStmt *other = *at;
            if (!is_same_value(s, other)) {
                counts->swapped += is_swapped(s, other);
                at = &other->next;
                continue;
            }
            *at = other->next;
            loop_replace_register(*at, other->dst, s->dst);
            counts->merged++;
        }
    }
}

/* Merges equal values in the row of one kernel, with remarks; true if the kernel changed. */
static bool merge_equal_values(Loops *l, LKernel *k) {
    LStmt **row = loop_row_list(k);
    MergeCounts counts = {0};
    if (row) merge_equal(*row, &counts);
    if (counts.merged)
        pass_remark(l->pass, k->span, "cse-loops", "%s: %d values are had once", k->name,
                    counts.merged);
    if (counts.swapped)
        pass_refusal(l->pass, k->span, "cse-loops",
                     "%s: not %d values: their arguments are in another order", k->name,
                     counts.swapped);
    return counts.merged > 0;
}

/* Runs the pass (common subexpression elimination) on all kernels. */
static bool run_cse(PassCtx *p, Loops *l) {
    (void)p;
    return loop_pass_each(l, merge_equal_values);
}

const Pass loop_pass_cse = {
    .name = "cse-loops",
    .summary = "values that are computed anew in one list of statements are one",
    .run_loops = run_cse,
};
