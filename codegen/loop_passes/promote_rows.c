/* A row of the result that is added to, or read again, stays in registers while its columns are
 * gone through.
 *
 *     columns F by lanes {                     columns F by lanes promote y {
 *       for %f in F vector {                     (the same)
 *         store y[%v, %f] %zero
 *       }                                =>
 *       for %e in segment p[%v] {
 *         for %f in F vector {
 *           acc sum y[%v, %f] %x
 *
 * Register promotion (Cooper and Lu 1997): lanes have one element of it each, which is loaded
 * before the first statement, if that does not store it, and stored behind the last one.  Without
 * it a column's entries are one thread's, as others would not see what it adds. */
#include "codegen/loop_passes/team.h"
#include "passes/rewrite.h"

/* The region that accesses buffer b; NULL: it is accessed outside of regions. */
static LStmt *region_accessing(const LoopTeam *t, const LBuf *b) {
    for (int i = 0; i < t->accesses.n; i++) {
        const LoopAccess *a = &t->accesses.v[i];
        if (a->s->buf == b && !loop_is_after_barrier(t, a))
            return a->region < 0 ? NULL : t->regions.v[a->region].stmt;
    }
    return NULL;
}

/* Whether a barrier makes the accesses to b safe: all threads of the team read it before the first
 * thread writes it. */
static bool can_use_barrier(const LoopTeam *t, const LBuf *b) {
    for (int i = 0; i < t->accesses.n; i++) {
        const LoopAccess *a = &t->accesses.v[i];
        if (a->s->buf == b && a->s->kind == L_LOAD && !loop_is_after_barrier(t, a))
            return loop_is_read_before_written(t, b);
    }
    return false;
}

/* Marks the written buffers whose row is held in registers during a region: each lane has exactly
 * one element of the row. */
static void promote_rows(PassCtx *p, Loops *l, const LKernel *k) {
    const LoopTeam t = loop_team(l->a, l->on, k, false);
    for (int i = 0; i < k->bufs.n && !t.fault; i++) {
        LBuf *b = k->bufs.v[i];
        if (!b->written || can_use_barrier(&t, b) || !loop_is_read_or_accumulated(&t, b)) continue;
        LStmt *region = region_accessing(&t, b);
        if (region && loop_is_promoted(region, b)) continue;
        const char *why = loop_one_element_fault(&t, b);
        if (!why) vec_push(l->a, &region->in_registers, b);
        (why ? pass_refusal : pass_remark)(
            p, k->span, "promote-rows", "%s: %s of %s%s", k->name, why ? "no row" : "a row",
            b->name, why ? arena_printf(l->a, ": %s", why) : " is in registers");
    }
}

/* Runs the pass (register promotion) on the kernels that teams run. */
static bool run_promote_rows(PassCtx *p, Loops *l) {
    for (int i = 0; i < l->k.n; i++)
        if (l->k.v[i]->threads.kind > LT_THREAD) promote_rows(p, l, l->k.v[i]);
    return true;
}

const Pass loop_pass_promote_rows = {
    .name = "promote-rows",
    .summary = "a row of the result that is added to stays in registers",
    .run_loops = run_promote_rows,
};
