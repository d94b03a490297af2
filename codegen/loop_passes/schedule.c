/* Which threads of a device do what.
 *
 *     kernel k {                           kernel k by teams lanes 4 pack 4 columns 8 {
 *       for %v in N parallel {               for %v in N parallel {
 *         local acc: f32[16]                   columns 16 by lanes {
 *         for %e in segment p[%v] {     =>       local acc: f32[16]
 *                                                for %e in segment p[%v] by ways {
 *
 * A team of threads for each row where one can have it (`fuse-columns` and the passes behind it),
 * if need be after others that change its loops, else a thread for each.  Of several ways to have
 * it the one is taken that leaves the fewest loops over entries to one thread after the other.
 *
 * A kernel that says it already is left as it is. */
#include "codegen/loop_passes/team.h"
#include "passes/rewrite.h"

/* What makes a row's loops such that a team can have their entries, as they are and with heads
 * around them. */
#define ROW "promote-scalars,vectorise,cse-loops,forward-stores,distribute,reorder-loops,dce-loops,"
#define ROWS "fold-unit-dims," ROW
#define HEADS "fold-unit-dims,interchange," ROW
/* .. and what says that it has. */
#define TEAM                                                                                       \
    "collapse,fuse-columns,promote-rows,insert-barriers,privatise,coarsen-lanes,insert-folds"

/* Ways to have it, the most desirable first: lanes with several columns and with one each; rows as
 * they are, in another order, and by heads. */
enum { CANDIDATES = 6 };
static const struct {
    const char *passes;
    bool wide, heads;
} candidates[CANDIDATES] = {{TEAM, true, false},       {TEAM, false, false},
                            {ROWS TEAM, true, false},  {HEADS TEAM, true, true},
                            {ROWS TEAM, false, false}, {HEADS TEAM, false, true}};

/* Whether there are loops over entries or chunks. */
static bool has_entry_loop(const LStmt *s) {
    return loop_has_range(s, LR_SEGMENT) || loop_has_range(s, LR_CHUNK);
}

/* Whether a loop over heads is collapsed with the parallel loop. */
static bool has_collapsed_heads(LKernel *k) {
    return loop_row_list(k) != &loop_parallel(k)->body;
}

/* Runs the passes of candidate schedule number `candidate` on a copy of the kernel; NULL = the
 * candidate does not apply. */
static LKernel *apply_candidate(Loops *l, const LKernel *k, int candidate) {
    Loops trial = loop_pass_begin(l->c, l->m, l->on, &l->machine, k);
    if (!candidates[candidate].wide) trial.columns = 1;
    trial.disable = l->disable;
    if (!loop_pass_run(&trial, candidates[candidate].passes, NULL)) return NULL;
    LKernel *result = trial.k.v[0];
    const LoopTeam team = loop_team(l->a, l->on, result, true);
    bool legal =
        result->threads.kind && !team.fault && loop_may_have_pack(&team, loop_pack(result));
    return legal && (!candidates[candidate].heads || has_collapsed_heads(result)) ? result : NULL;
}

/* Gives the kernel the schedule of last resort: one thread for each row or element. */
static LKernel *schedule_single_threads(Loops *l, LKernel *k) {
    if (!loop_is_joined(k)) loop_collapse(l->a, k, true);
    k->threads = (LThreads){.kind = LT_THREAD};
    return k;
}

/* Runs the passes of the chosen candidate once more, so that their remarks and dumps appear. */
static void replay_for_remarks(Loops *l, const LKernel *k, int candidate) {
    const PassOptions *o = l->options;
    PassOptions shown = {.print_before = o->print_before,
                         .print_after = o->print_after,
                         .print_changed = o->print_changed,
                         .print_diff = o->print_diff,
                         .print_filter = o->print_filter,
                         .disable = o->disable,
                         .dump = o->dump,
                         .remarks = o->remarks,
                         .record = o->record,
                         .of = o->of};
    Loops again = loop_pass_begin(l->c, l->m, l->on, &l->machine, k);
    if (!candidates[candidate].wide) again.columns = 1;
    (void)loop_pass_run(&again, candidates[candidate].passes, &shown);
}

/* Tries the candidate schedules in order, and returns the kernel with the fewest loops over entries
 * that a single thread runs; *chosen: the candidate's number. NULL: none applies. */
static LKernel *best_candidate(Loops *l, const LKernel *k, int *chosen) {
    const LStmt *parallel = loop_parallel(k);
    bool with_entries = parallel && has_entry_loop(parallel->body);
    LKernel *best = NULL;
    int least_serial = -1;
    for (int candidate = 0; candidate < (with_entries ? CANDIDATES : 2) && least_serial != 0;
         candidate++) {
        LKernel *result = apply_candidate(l, k, candidate);
        int n_serial = result ? loop_count_serial_entry_loops(result) : 0;
        if (!result || (best && n_serial >= least_serial)) continue;
        least_serial = n_serial;
        best = result;
        *chosen = candidate;
    }
    return best;
}

/* The kernel with its best schedule, for passes that compare kernels. May change k. */
LKernel *loop_choose_schedule(Loops *l, LKernel *k) {
    int candidate;
    LKernel *best = best_candidate(l, k, &candidate);
    return best ? best : schedule_single_threads(l, k);
}

/* Remarks on the reasons why no team can have the kernel's rows. */
static void remark_why_not(PassCtx *p, Loops *l, const LKernel *k) {
    const PassOptions o = {
        .disable = l->disable, .remarks = p->remarks, .record = p->record, .of = p->of};
    Loops again = loop_pass_begin(l->c, l->m, l->on, &l->machine, k);
    if (p->remarks) (void)loop_pass_run(&again, "collapse,fuse-columns", &o);
}

/* Writes a remark on which threads take the kernel's rows. */
static void remark(PassCtx *p, const LKernel *k) {
    int n_serial = loop_count_serial_entry_loops(k);
    const char *owner = k->threads.kind == LT_TEAM    ? "a team of threads"
                        : k->threads.kind == LT_BLOCK ? "a block of threads"
                                                      : "a thread";
    (n_serial ? pass_declined
              : pass_remark)(p, k->span, "schedule", "%s: %s for each row%s", k->name, owner,
                             n_serial ? ", which goes through entries one after the other" : "");
}

/* Runs the pass: chooses which threads of the device run each kernel that has no schedule. */
static bool run_schedule(PassCtx *p, Loops *l) {
    for (int i = 0; i < l->k.n && l->on->columns; i++) {
        if (l->k.v[i]->threads.kind) continue;
        LKernel *k = l->k.v[i];
        int candidate = 0;
        LKernel *best = best_candidate(l, k, &candidate);
        if (best && l->options && (l->options->dump || l->options->remarks))
            replay_for_remarks(l, k, candidate);
        if (!best) remark_why_not(p, l, k);
        l->k.v[i] = best ? best : schedule_single_threads(l, k);
        loop_renumber_registers(l->k.v[i]);
        remark(p, l->k.v[i]);
    }
    return true;
}

const Pass loop_pass_schedule = {
    .name = "schedule",
    .summary = "which threads of a device take a kernel's rows, and share their loops",
    .run_loops = run_schedule,
};
