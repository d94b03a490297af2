/* Values that do not depend on the column come before the columns.
 *
 *     columns F by lanes {                      %w: f32 = load w[%v]
 *       %w: f32 = load w[%v]            =>      columns F by lanes {
 *       for %f in F vector { .. %w .. }           for %f in F vector { .. %w .. }
 *     }                                         }
 *
 * Loop-invariant code motion: where lanes take columns by turns, what stands at the top of
 * `columns` would be had again each time, and is known behind them.  Where threads go through the
 * statements together once, it stands where it is. */
#include "codegen/loop_passes/team.h"
#include "passes/rewrite.h"

bool loop_has_values(const LoopColumns *r) {
    for (const LStmt *s = r->first; s != r->end && !r->one_pass; s = s->next)
        if (loop_is_value(s)) return true;
    return false;
}

/* Moves the values at the top of the columns at *at in front of them, in their order; returns how
 * many. */
static int move_values(LStmt **at) {
    LStmt *columns = *at, **from = &columns->body;
    int n = 0;
    while (*from) {
        LStmt *s = *from;
        if (!loop_is_value(s)) {
            from = &s->next;
            continue;
        }
        *from = s->next;
        s->next = columns;
        *at = s;
        at = &s->next;
        n++;
    }
    return n;
}

static bool has_values(const LoopTeam *t, const LStmt *s) {
    for (int i = 0; s->kind == L_COLUMNS && i < t->regions.n; i++)
        if (t->regions.v[i].stmt == s) return loop_has_values(&t->regions.v[i]);
    return false;
}

static int each(const LoopTeam *t, LStmt **at) {
    int n = 0;
    for (; *at; at = &(*at)->next) {
        if (loop_has_body(*at)) n += each(t, &(*at)->body);
        if (!has_values(t, *at)) continue;
        LStmt *columns = *at;
        n += move_values(at);
        while (*at != columns) at = &(*at)->next;
    }
    return n;
}

static bool run(PassCtx *p, Loops *l) {
    for (int i = 0; i < l->k.n; i++) {
        LKernel *k = l->k.v[i];
        if (k->threads.kind <= LT_THREAD) continue;
        const LoopTeam t = loop_team(l->a, l->on, k, false);
        const int n = t.fault ? 0 : each(&t, &k->body);
        if (n) loop_renumber_registers(k);
        loop_remark(p, k, "hoist-values",
                    n ? arena_printf(l->a, "%d values come before columns", n) : NULL,
                    "none: no columns that lanes take by turns begin with a value");
    }
    return true;
}

const Pass loop_pass_hoist_values = {
    .name = "hoist-values",
    .summary =
        "values that do not depend on the column come before columns that lanes take by turns",
    .run_loops = run,
    .required = true,
};
