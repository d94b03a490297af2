/* Two passes that bring steps side by side for plan_join.c.
 *
 *     db1 = partials of b1, added up      dw2 = g' h
 *     dw2 = g' h                     =>   ..
 *     ..                                  db1 = partials of b1, added up
 *     b1 = b1 - db1                       b1 = b1 - db1
 *
 * delay-sums: steps that read only scalars and partial sums wait until somebody wants their result,
 * as that keeps nothing large alive.  gather-parts: sums over the same parts of rows are brought
 * together where that makes no step fuller. */
#include <string.h>

#include "codegen/plan_passes/plan_order.h"
#include "codegen/plan_passes/plan_pass.h"
#include "passes/rewrite.h"

/* ---- steps that wait ---------------------------------------------------------------------- */
/* Whether the step reads only partial sums and buffers of constant size: delaying it keeps nothing
 * in memory that grows with the data. */
static bool may_wait(const Plan *p, const PStep *s) {
    int64_t n;
    if (!plan_is_elementwise(s)) return false;
    for (int i = 0; i < s->n_bufs; i++) {
        const LBuf *b = s->kernel->bufs.v[i];
        if (!b->written && !b->partial && !expr_is_const(p->bufs.v[s->bufs[i]]->count, &n))
            return false;
    }
    return true;
}

/* The loop over blocks of rows that contains the step at position `at`; NULL = none does. */
const PBlocks *plan_block_at(const PPhase *ph, int at) {
    int low = 0, high = ph->blocks.n; /* in the order of the phase */
    while (low < high) {
        int i = (low + high) / 2;
        const PBlocks *b = &ph->blocks.v[i];
        if (at >= b->first && at <= b->last) return b;
        if (b->last < at)
            low = i + 1;
        else
            high = i;
    }
    return NULL;
}

void plan_step_move_behind(PPhase *ph, int at, int n) {
    PStep **to = &ph->steps.v[at], *s = *to;
    memmove(to, to + 1, (size_t)n * sizeof *to);
    to[n] = s;
    for (int i = 0; i < ph->blocks.n; i++) {
        PBlocks *b = &ph->blocks.v[i];
        if (b->first > at && b->last <= at + n) b->first--, b->last--;
    }
}

/* Who touches a buffer, in order: a step, or what it covers. */
typedef struct {
    int at;
    const PStep *step;
} BufAccess;
typedef VEC(BufAccess) BufAccesses;

/* The steps that stay where they are, by their places.  Each of the others stands before one. */
typedef struct {
    Arena *a;
    PPhase *ph;
    BufAccesses *all, *exclusive; /* by buffer; alone: who writes there, or is no kernel */
    bool *moves;                  /* by place: it waits, outside of loops over blocks */
    int *next_fixed, *barrier;    /* by place: the next one that stays; .. that nobody passes */
    int *last_end;                /* by place: the last step up to it that one may stand behind */
    int *target;                  /* by place of one that moves: which it stands before */
} Delay;

/* Records, by buffer, the accesses of a step and of the steps that it covers: all of them, and
 * those that no other access may pass (writes, and accesses that are no kernel's). */
static void record_accesses(Delay *d, const PStep *s, int at) {
    for (int i = 0; i < s->n_bufs; i++) {
        bool exclusive = s->kind != PS_KERNEL || plan_step_writes(s, s->bufs[i]);
        vec_push(d->a, &d->all[s->bufs[i]], ((BufAccess){at, s}));
        if (exclusive) vec_push(d->a, &d->exclusive[s->bufs[i]], ((BufAccess){at, s}));
    }
    for (int i = 0; s->epilogue && i < s->epilogue->n_covers; i++)
        record_accesses(d, s->epilogue->covers[i], at);
}

/* Finds the steps that may wait, and for each position where waiting steps may be put. */
static Delay prepare_delay(Arena *a, const Plan *p, PPhase *ph) {
    size_t n = (size_t)ph->steps.n + 2, bufs = (size_t)p->bufs.n + 1;
    Delay d = {.a = a, .ph = ph};
    d.all = NEWN(a, BufAccesses, bufs);
    d.exclusive = NEWN(a, BufAccesses, bufs);
    d.moves = NEWN(a, bool, n);
    d.next_fixed = NEWN(a, int, n);
    d.barrier = NEWN(a, int, n);
    d.last_end = NEWN(a, int, n);
    d.target = NEWN(a, int, n);
    for (int i = 0, end = -1; i < ph->steps.n; i++) {
        const PStep *s = ph->steps.v[i];
        const PBlocks *b = plan_block_at(ph, i);
        bool waits = may_wait(p, s), device = s->kind == PS_KERNEL || s->kind == PS_GEMM;
        d.moves[i] = waits && !b;
        d.barrier[i] = !device || s->pred >= 0 || waits ? i : -1;
        if (!d.moves[i] && (!b || b->last == i)) end = i;
        d.last_end[i] = end;
        if (!d.moves[i]) record_accesses(&d, s, i);
    }
    d.next_fixed[ph->steps.n] = d.barrier[ph->steps.n] = ph->steps.n;
    for (int i = ph->steps.n - 1; i >= 0; i--) {
        d.next_fixed[i] = d.moves[i] ? d.next_fixed[i + 1] : i;
        if (d.moves[i] || d.barrier[i] < 0) d.barrier[i] = d.barrier[i + 1];
    }
    return d;
}

/* The position of the first access behind `at`, but for other operands of the step's concatenation;
 * at most `most`. */
static int first_access(const BufAccesses *t, const PStep *s, int at, int most) {
    int low = 0, high = t->n;
    while (low < high) {
        int i = (low + high) / 2;
        if (t->v[i].at <= at)
            low = i + 1;
        else
            high = i;
    }
    for (; low < t->n && t->v[low].at < most; low++)
        if (t->v[low].step->op != s->op || s->op->kind != OP_CONCAT) return t->v[low].at;
    return most;
}

/* Finds for each waiting step, from the last one on, the step that it is put before: the first that
 * it must not pass, or another waiting step, but never inside a loop over blocks. */
static void find_targets(Delay *d) {
    int waiting = d->ph->steps.n;
    for (int i = d->ph->steps.n - 1; i >= 0; i--) {
        const PStep *s = d->ph->steps.v[i];
        if (!d->moves[i]) continue;
        int to = waiting < d->barrier[i] ? waiting : d->barrier[i];
        for (int k = 0; k < s->n_bufs; k++) {
            bool written = s->kernel->bufs.v[k]->written;
            to = first_access(&(written ? d->all : d->exclusive)[s->bufs[k]], s, i, to);
        }
        int end = to > 0 ? d->last_end[to - 1] : -1;
        waiting = d->target[i] = d->next_fixed[end > i ? end + 1 : i];
    }
}

/* How many fixed steps the waiting step i goes behind. */
static int steps_waited(const Delay *d, int i) {
    int n = 0;
    for (int k = i + 1; d->moves[i] && k < d->target[i]; k++) n += !d->moves[k];
    return n;
}

/* Remarks on the step that waits longest, and on those in loops, which do not wait. */
static void remark_delays(PassCtx *pc, const Plan *p, const Delay *d) {
    const PPhase *ph = d->ph;
    int most = 0, longest = 0, waiting = 0;
    for (int i = 0; pc->remarks && i < ph->steps.n; i++) {
        const PStep *s = ph->steps.v[i];
        int n = steps_waited(d, i);
        waiting += n > 0;
        if (n > most) most = n, longest = i;
        if (!d->moves[i] && may_wait(p, s))
            pass_refusal(pc, s->span, "delay-sums",
                         "@%s: '%s' (%s) does not wait: it is in a loop over blocks of rows",
                         ph->name, s->note, s->kernel->name);
    }
    if (!waiting) return;
    int to = d->target[longest];
    const PStep *s = ph->steps.v[longest], *until = to < ph->steps.n ? ph->steps.v[to] : NULL;
    pass_remark(pc, s->span, "delay-sums",
                "@%s: %d steps that end sums wait; '%s' (%s) for the most others, %d, %s%s%s",
                ph->name, waiting, s->note, s->kernel->name, most, until ? "until '" : "to the end",
                until ? until->note : "", until ? "'" : "");
}

/* Moves the steps of a phase that only complete sums to where their results are needed. */
static void delay_steps(PassCtx *pc, const Plan *p, PPhase *ph) {
    Arena *a = pc->a;
    Delay d = prepare_delay(a, p, ph);
    int n = ph->steps.n, to = 0, next = 0, *place = NEWN(a, int, (size_t)n + 1);
    PStep **steps = NEWN(a, PStep *, (size_t)n + 1);
    find_targets(&d);
    remark_delays(pc, p, &d);
    for (int i = 0; i <= n; i++) {
        if (i < n && d.moves[i]) continue;
        for (; next < n && (!d.moves[next] || d.target[next] <= i); next++)
            if (d.moves[next]) steps[to++] = ph->steps.v[next];
        if (i == n) break;
        place[i] = to;
        steps[to++] = ph->steps.v[i];
    }
    if (n) memcpy(ph->steps.v, steps, (size_t)n * sizeof *steps);
    for (int i = 0; i < ph->blocks.n; i++) {
        PBlocks *b = &ph->blocks.v[i];
        b->first = place[b->first];
        b->last = place[b->last];
    }
}

static bool run_delay(PassCtx *pc, Plan *p) {
    for (int i = 0; i < p->phases.n; i++) delay_steps(pc, p, p->phases.v[i]);
    return true;
}

const Pass plan_pass_delay_sums = {
    .name = "delay-sums",
    .summary = "let steps that only end sums wait until their result is wanted",
    .needs = PLAN_STEPS,
    .breaks = PLAN_LIVES,
    .bars = PLAN_GROUPS | PLAN_OVERLAPPED | PLAN_STREAMS,
    .moves_steps = true,
    .run_plan = run_delay,
};

/* ---- sums over parts -------------------------------------------------------------------- */
/* What moving sums about takes. */
typedef struct {
    PPhase *ph;
    Lives lives;
    PStep **steps; /* the phase before a move */
    PBlocks *blocks;
} Gather;

/* How many steps the one at position `at` must pass to stand before the next step over the same
 * chunks; 0: it cannot. *between: a step that it cannot pass, or NULL. */
static int distance_to_same_chunks(const PPhase *ph, int at, const PStep **between) {
    const PStep *s = ph->steps.v[at];
    *between = NULL;
    for (int i = at + 1; i < ph->steps.n; i++) {
        const PStep *next = ph->steps.v[i];
        const PBlocks *b = plan_block_at(ph, i);
        if (!b && plan_same_chunks(s, next) && !plan_steps_conflict(s, next)) return i - 1 - at;
        if (plan_order_is_movable(next) && !plan_steps_conflict(s, next)) continue;
        *between = next;
        return 0;
    }
    return 0;
}

/* The next step behind `at` that runs over the same chunks, or NULL. */
static const PStep *later_same_chunks(const PPhase *ph, int at) {
    for (int i = at + 1; i < ph->steps.n; i++)
        if (!plan_block_at(ph, i) && plan_same_chunks(ph->steps.v[at], ph->steps.v[i]))
            return ph->steps.v[i];
    return NULL;
}

/* Moves the step behind n others, unless the peak memory grows; true if it was moved. */
static bool try_move(Gather *g, int at, int n, int64_t peak) {
    PPhase *ph = g->ph;
    size_t n_steps = (size_t)ph->steps.n, n_blocks = (size_t)ph->blocks.n;
    memcpy(g->steps, ph->steps.v, n_steps * sizeof *g->steps);
    if (n_blocks) memcpy(g->blocks, ph->blocks.v, n_blocks * sizeof *g->blocks);
    plan_step_move_behind(ph, at, n);
    if (plan_lives_peak(&g->lives) <= peak) return true;
    memcpy(ph->steps.v, g->steps, n_steps * sizeof *g->steps);
    if (n_blocks) memcpy(ph->blocks.v, g->blocks, n_blocks * sizeof *g->blocks);
    return false;
}

/* Remarks on a step that was brought beside another, or why it was not. */
static void remark_parts(PassCtx *pc, const PStep *s, const PStep *to, const char *why) {
    (why ? pass_refusal : pass_remark)(pc, s->span, "gather-parts",
                                       "'%s' (%s) %s beside '%s' (%s)%s%s", s->note,
                                       s->kernel->name, why ? "does not stand" : "stands", to->note,
                                       to->kernel->name, why ? ": " : "", why ? why : "");
}

/* Brings steps that sum over the same chunks of rows side by side, where peak memory does not grow.
 */
static void gather_parts(PassCtx *pc, const Plan *p, PPhase *ph) {
    Arena *a = pc->a;
    Gather g = {.ph = ph,
                .lives = plan_lives(a, p, ph),
                .steps = NEWN(a, PStep *, (size_t)ph->steps.n + 1),
                .blocks = NEWN(a, PBlocks, (size_t)ph->blocks.n + 1)};
    int64_t peak = plan_lives_peak(&g.lives);
    for (int i = ph->steps.n - 2; i >= 0; i--) {
        if (!plan_chunk_loop(ph->steps.v[i]) || plan_block_at(ph, i)) continue;
        const PStep *s = ph->steps.v[i], *between, *to = later_same_chunks(ph, i);
        int n = distance_to_same_chunks(ph, i, &between);
        if (n)
            remark_parts(pc, s, ph->steps.v[i + n + 1],
                         try_move(&g, i, n, peak) ? NULL : "a step would be fuller");
        else if (between && to)
            remark_parts(pc, s, to,
                         arena_printf(a, "'%s' is between them, %s", between->note,
                                      plan_order_is_movable(between)
                                          ? "and one needs what the other makes"
                                          : "no kernel and no matrix product"));
    }
}

static bool run_gather(PassCtx *pc, Plan *p) {
    for (int i = 0; i < p->phases.n; i++) gather_parts(pc, p, p->phases.v[i]);
    return true;
}

const Pass plan_pass_gather_parts = {
    .name = "gather-parts",
    .summary = "bring together the sums over the same parts of rows, where no step becomes fuller",
    .needs = PLAN_STEPS,
    .breaks = PLAN_LIVES,
    .bars = PLAN_GROUPS | PLAN_OVERLAPPED | PLAN_STREAMS,
    .moves_steps = true,
    .run_plan = run_gather,
};
