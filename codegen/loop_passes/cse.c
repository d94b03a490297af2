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
static bool same_let(const LStmt *x, const LStmt *y) {
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
static bool is_turned(const LStmt *x, const LStmt *y) {
    return x->kind == L_LET && y->kind == L_LET && x->fn == y->fn && x->op == y->op &&
           x->n_arg == 2 && y->n_arg == 2 && commutes(x) && x->arg[0] == y->arg[1] &&
           x->arg[1] == y->arg[0];
}

typedef struct {
    int merged, turned;
} Count;

/* Replaces repeated values of a list by the first one. */
static void merge(LStmt *list, Count *n) {
    for (LStmt *s = list; s; s = s->next) {
        if (loop_has_body(s)) merge(s->body, n);
        for (LStmt **at = &s->next; *at;) {
            LStmt *other = *at;
            if (!same_let(s, other)) {
                n->turned += is_turned(s, other);
                at = &other->next;
                continue;
            }
            *at = other->next;
            loop_replace(*at, other->dst, s->dst);
            n->merged++;
        }
    }
}

/* Runs the pass on one kernel; true if it changed. */
static bool change(Loops *l, LKernel *k) {
    LStmt **row = loop_row(k);
    Count n = {0};
    if (row) merge(*row, &n);
    if (n.merged)
        pass_remark(l->pass, k->span, "cse-loops", "%s: %d values are had once", k->name, n.merged);
    if (n.turned)
        pass_refusal(l->pass, k->span, "cse-loops",
                     "%s: not %d values: their arguments are in another order", k->name, n.turned);
    return n.merged > 0;
}

static bool run(PassCtx *p, Loops *l) {
    (void)p;
    return loop_pass_each(l, change);
}

const Pass loop_pass_cse = {
    .name = "cse-loops",
    .summary = "values that are computed anew in one list of statements are one",
    .run_loops = run,
};
