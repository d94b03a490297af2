/* Values that are computed anew in one list are one.
 *
 *     %i: i64 = iadd %v %n                     %i: i64 = iadd %v %n
 *     for %f in F vector { .. }         =>     for %f in F vector { .. }
 *     %j: i64 = iadd %v %n
 *     for %f in F vector { .. %j .. }          for %f in F vector { .. %i .. }
 *
 * Schedules ask how far columns are apart by comparing registers. */
#include "codegen/loops/loops.h"

static bool same_let(const LStmt *x, const LStmt *y) {
    bool same = x->kind == L_LET && y->kind == L_LET && x->fn == y->fn && x->op == y->op &&
                x->dst->dt == y->dst->dt && x->n_arg == y->n_arg && x->n_arg > 0;
    for (int i = 0; same && i < x->n_arg; i++) same = x->arg[i] == y->arg[i];
    return same;
}

static bool merge(LStmt *list) {
    bool any = false;
    for (LStmt *s = list; s; s = s->next) {
        if (loop_has_body(s)) any |= merge(s->body);
        for (LStmt **at = &s->next; *at;) {
            LStmt *other = *at;
            if (!same_let(s, other)) {
                at = &other->next;
                continue;
            }
            *at = other->next;
            loop_replace(*at, other->dst, s->dst);
            any = true;
        }
    }
    return any;
}

static bool change(Loops *l, LKernel *k) {
    LStmt **row = loop_row(k);
    (void)l;
    return row && merge(*row);
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
