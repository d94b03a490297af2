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

/* Moves the value definitions from the list of the statement `columns` at *at to before it, in
 * order; returns how many. */
static int move_values_before(LStmt **at) {
    LStmt *columns = *at, **next = &columns->body;
    int n = 0;
    while (*next) {
        LStmt *s = *next;
        if (!loop_is_value(s)) {
            next = &s->next;
            continue;
        }
        *next = s->next;
        s->next = columns;
        *at = s;
        at = &s->next;
        n++;
    }
    return n;
}

/* Whether s is a statement `columns` with values to hoist. */
static bool is_region_with_values(const LoopTeam *t, const LStmt *s) {
    for (int i = 0; s->kind == L_COLUMNS && i < t->regions.n; i++)
        if (t->regions.v[i].stmt == s) return loop_has_values(&t->regions.v[i]);
    return false;
}

/* Hoists values out of all regions in the list at *at and nested ones; returns how many values
 * moved. */
static int hoist_in_list(const LoopTeam *t, LStmt **at) {
    int n = 0;
    for (; *at; at = &(*at)->next) {
        if (loop_has_body(*at)) n += hoist_in_list(t, &(*at)->body);
        if (!is_region_with_values(t, *at)) continue;
        LStmt *columns = *at;
        n += move_values_before(at);
        while (*at != columns) at = &(*at)->next;
    }
    return n;
}

/* Runs the pass (loop-invariant code motion out of `columns`) on all kernels that teams run. */
static bool run_hoist_values(PassCtx *p, Loops *l) {
    for (int i = 0; i < l->k.n; i++) {
        LKernel *k = l->k.v[i];
        if (k->threads.kind <= LT_THREAD) continue;
        const LoopTeam t = loop_team(l->a, l->on, k, false);
        const int n = t.fault ? 0 : hoist_in_list(&t, &k->body);
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
    .run_loops = run_hoist_values,
    .required = true,
};
