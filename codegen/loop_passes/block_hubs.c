/* Rows with many entries are taken by a block, all of whose threads are one team.
 *
 *     for %v in N parallel {                     =>     for %v in N parallel hubs 256 {
 *       .. for %e in segment p[%v] by ways {              (the same)
 *
 * A row has many where it has more than so many for each way of its team, of all relations whose
 * entries ways share: a power-law graph has few such rows, and without this one warp would end long
 * after all others (Merrill, Garland and Grimshaw 2012 choose among thread, warp and block by the
 * number of a node's neighbours, too). */
#include "codegen/loop_passes/team.h"
#include "passes/rewrite.h"

/* Appends loop s to the list of n loops, unless the list has a loop over the same relation's
 * entries already. Returns the new length. */
static int add_entry_loop(const LStmt **list, int n, const LStmt *s) {
    for (int i = 0; i < n; i++)
        if (list[i]->ptr == s->ptr) return n;
    if (n < LOOP_TARGETS_MAX) list[n++] = s;
    return n;
}

int loop_shared_entry_loops(const LoopTeam *t, const LStmt **out) {
    const LStmt *parallel_loop = loop_parallel(t->k);
    int n = 0;
    for (int i = 0; parallel_loop && i < t->regions.n; i++)
        for (const LStmt *s = t->regions.v[i].first; s != t->regions.v[i].end; s = s->next) {
            bool is_entry_loop =
                s->kind == L_FOR && s->range == LR_SEGMENT && s->at == parallel_loop->var;
            if (is_entry_loop && s->sched.share == LS_WAYS) n = add_entry_loop(out, n, s);
        }
    return n;
}

LStmt *loop_first_shared_loop(const LoopTeam *t) {
    for (int i = 0; i < t->regions.n; i++)
        for (LStmt *s = t->regions.v[i].stmt->body; s; s = s->next)
            if (s->kind == L_FOR && s->sched.share == LS_WAYS) return s;
    return NULL;
}

/* Runs the pass: marks the parallel loop of each kernel that teams run, so that a whole block takes
 * the rows with very many entries (hubs). */
static bool run_block_hubs(PassCtx *p, Loops *l) {
    for (int i = 0; i < l->k.n; i++) {
        LKernel *k = l->k.v[i];
        LStmt *parallel_loop = loop_parallel(k);
        const LStmt *loop[LOOP_TARGETS_MAX];
        if (k->threads.kind != LT_TEAM || !parallel_loop || parallel_loop->sched.hub_entries)
            continue;
        const LoopTeam t = loop_team(l->a, l->on, k, false);
        if (t.fault) continue;
        const int n_loops = loop_shared_entry_loops(&t, loop);
        if (n_loops) parallel_loop->sched.hub_entries = pass_threshold(l->c, PASS_T_HUB_ENTRIES);
        loop_remark(p, k, "block-hubs",
                    n_loops ? arena_printf(
                                  l->a, "a block takes rows with more than %d entries for each way",
                                  parallel_loop->sched.hub_entries)
                            : NULL,
                    "not: ways share no entries of a row");
    }
    return true;
}

const Pass loop_pass_block_hubs = {
    .name = "block-hubs",
    .summary = "a block of threads takes rows with many entries",
    .run_loops = run_block_hubs,
};
