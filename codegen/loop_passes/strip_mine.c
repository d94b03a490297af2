/* Scalars of entries, a vector of entries at a time.
 *
 *     for %e in segment ptr[%v] {              for %e in segment ptr[%v] strips 16 {
 *       %s = load src[%e]               =>       %s = load src[%e] remat
 *       %w = exp ..                              %w = exp ..
 *       for %f in F vector { .. }                for %f in F vector { .. }
 *     }                                        }
 *
 * First %s and %w of 16 entries, one per lane; then for each of them the rest, with its %w.  What
 * needs nothing heavy (`remat`, as in rematerialisation) is had again for each entry sooner than
 * from the lanes: the loads of its row need not wait for the last of them.
 *
 * Worth it where a scalar takes many instructions: a random number, an exponential. */
#include "codegen/loop_passes/loops.h"
#include "passes/rewrite.h"

/* Whether statement s of the loop is cheap: neither itself nor what it depends on is a heavy
 * function. light[register id]: the registers known to be cheap. */
static bool depends_on_no_heavy(const LStmt *loop, const LStmt *s, const bool *light) {
    if (loop_is_heavy(s)) return false;
    LReg *const *operand = s->kind == L_LOAD ? s->idx : s->arg;
    int n = s->kind == L_LOAD ? s->buf->rank : s->n_arg;
    for (int i = 0; i < n; i++)
        for (const LStmt *earlier = loop->body; earlier != s; earlier = earlier->next)
            if (earlier->dst == operand[i] && !light[earlier->dst->id]) return false;
    return true;
}

/* Marks the values before `rest` that are cheaper to compute again for each entry than to take from
 * vector lanes (rematerialisation). */
static void mark_remat(Loops *l, LKernel *k, LStmt *loop, const LStmt *rest) {
    bool *light = NEWN(l->a, bool, (size_t)k->n_regs + 1);
    for (LStmt *s = loop->body; s != rest; s = s->next)
        if (s->dst) s->remat = light[s->dst->id] = depends_on_no_heavy(loop, s, light);
}

/* Decides for one loop whether its scalars are computed for a vector of iterations at once, before
 * the rest of each iteration runs. */
static bool strip_mine_loop(Loops *l, LKernel *k, LStmt *s) {
    const LStmt *rest = loop_end_of_prefix(s, false);
    if (l->machine.lanes < 2 || s->sched.parallel || s->sched.unroll || s->range == LR_CHUNK)
        return false;
    if (s->sched.lanes || !rest || !loop_has_heavy(s->body, rest)) {
        if (s->range == LR_SEGMENT)
            pass_declined(l->pass, s->span, "strip-mine", "entries of %s are by themselves: %s",
                          k->name,
                          s->sched.lanes ? "they are in lanes"
                                         : "no scalar of theirs takes many instructions");
        return false;
    }
    s->sched.strips = l->machine.lanes;
    mark_remat(l, k, s, rest);
    pass_remark(l->pass, s->span, "strip-mine", "scalars of %d entries of %s are had at once",
                s->sched.strips, k->name);
    return true;
}

/* Runs strip_mine_loop() on each loop of the kernel that is not inside a vector loop. */
static bool strip_mine_all_loops(Loops *l, LKernel *k) {
    return loop_each_outside_vectors(l, k, strip_mine_loop);
}

/* Runs the pass (strip mining) on all kernels. */
static bool run_strip_mine(PassCtx *p, Loops *l) {
    (void)p;
    return loop_pass_each(l, strip_mine_all_loops);
}

const Pass loop_pass_strip_mine = {
    .name = "strip-mine",
    .summary = "scalars of entries are had for a vector of them at once",
    .run_loops = run_strip_mine,
};
