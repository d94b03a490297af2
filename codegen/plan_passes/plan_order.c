/* The order of a phase's steps.
 *
 * Any order in which no step passes one that it shares a written buffer with gives the same
 * results; they differ in what is live at once.  Starting from the order of the IR, a step is
 * moved as far back or ahead as it can go, where that lowers the live bytes at the fullest
 * step, or makes fewer steps as full; loops over blocks (plan_blocks.c) are cut anew for each
 * try, as what is local to one counts as one block.  Finding the best order is NP-complete
 * (Sethi 1975, "Complete register allocation problems"); what the search finds is what a person
 * would move: a gradient's product down to where it is added, a weight's gradient up to where
 * its operands die.
 *
 * Sizes that only data know are taken as a graph of 100,000 nodes of degree 10 with 64 features. */
#include "codegen/plan_passes/plan_order.h"
#include "codegen/plan_passes/plan_pass.h"
#include "passes/rewrite.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/pack.h"

typedef struct {
    Order *o;
    int64_t *best_live, granularity;
    int *best_order; /* the best order */
} Search;

/* A nominal value for each size symbol that only data know: a graph of typical size. */
int64_t *plan_order_nominal_sizes(Arena *a, const Module *m) {
    int64_t *n = NEWN(a, int64_t, (size_t)m->syms.n + 1);
    int width = pass_threshold(m->ctx, PASS_T_ORDER_WIDTH);
    for (int i = 0; i < m->syms.n; i++) n[i] = width;
    for (int i = 0; i < m->spaces.n; i++) {
        const Space *s = m->spaces.v[i];
        if (s->size->kind != EX_SYM) continue;
        if (s->kind == SP_NODE) n[s->size->sym->id] = pass_threshold(m->ctx, PASS_T_ORDER_NODES);
        if (s->kind == SP_EDGE) n[s->size->sym->id] = pass_threshold(m->ctx, PASS_T_ORDER_EDGES);
    }
    return n;
}

/* A threshold of the pass. */
static int order_threshold(const Order *o, PassThreshold t) {
    return pass_threshold(o->p->m->ctx, t);
}

/* Finds the nominal bytes of each temporary of the phase. Partial sums count as nothing: they are
 * small beside rows. */
static void measure_buffers(Order *o) {
    int64_t *n = plan_order_nominal_sizes(o->a, o->p->m);
    for (int b = 0; b < o->p->bufs.n; b++) {
        const PBuf *buf = o->p->bufs.v[b];
        bool mine = buf->kind == PB_TEMP && buf->phase == o->phase;
        o->bytes[b] = mine ? expr_eval(buf->count, n) * dtype_bytes(buf->dt) : 0;
    }
    /* Partial sums are small beside rows, and their ends wait for each other (plan_join.c). */
    for (int i = 0; i < o->ph->steps.n; i++) {
        const PStep *s = o->ph->steps.v[i];
        for (int k = 0; s->kind == PS_KERNEL && k < s->n_bufs; k++)
            if (s->kernel->bufs.v[k]->partial) o->bytes[s->bufs[k]] = 0;
    }
}

/* For qsort: larger first. */
static int descending(const void *x, const void *y) {
    int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
    return (a < b) - (a > b);
}

/* Finds for each position the first and last position of its loop. */
static void find_loop_bounds(Order *o) {
    for (int i = 0; i < o->n; i++) o->from[i] = o->to[i] = i;
    for (int i = 0; i < o->loops.n; i++)
        for (int k = o->loops.v[i].first; k <= o->loops.v[i].last; k++) {
            o->from[k] = o->loops.v[i].first;
            o->to[k] = o->loops.v[i].last;
        }
}

/* Adds n live bytes to positions first .. last. */
static void add_live(Order *o, int first, int last, int64_t n) {
    o->live[first] += n;
    o->live[last + 1] -= n;
}

/* Sums the bytes of temporaries that are live at each position. with_block_savings: what is local
 * to a loop over blocks counts as one block. */
static void sum_lives(Order *o, bool with_block_savings) {
    memset(o->live, 0, ((size_t)o->n + 1) * sizeof *o->live);
    for (int i = 0; i < o->n_bufs; i++) {
        int b = o->bufs[i];
        if (!o->bytes[b]) continue;
        if (!with_block_savings)
            add_live(o, o->first[b], o->last[b], o->bytes[b]);
        else
            add_live(o, o->from[o->first[b]], o->to[o->last[b]],
                     o->block[b] >= 0 ? o->bytes[b] / order_threshold(o, PASS_T_ORDER_BLOCK)
                                      : o->bytes[b]);
    }
    for (int i = 1; i < o->n; i++) o->live[i] += o->live[i - 1];
}

/* Forms the loops over blocks and sums the live bytes of the current order; sorts them, largest
 * first. */
static void measure_order(Order *o) {
    plan_order_form_loops(o);
    find_loop_bounds(o);
    sum_lives(o, true);
    qsort(o->live, (size_t)o->n, sizeof *o->live, descending);
}

/* Whether the measured order has fewer live bytes than the best so far: at the fullest step, else
 * at the next fullest. */
static bool is_better(const Search *s) {
    for (int i = 0; i < s->o->n; i++) {
        int64_t live = s->o->live[i] / s->granularity, best = s->best_live[i] / s->granularity;
        if (live != best) return live < best;
    }
    return false;
}

/* Records the order as the best. */
static void keep_best(Search *s) {
    memcpy(s->best_live, s->o->live, (size_t)s->o->n * sizeof *s->best_live);
    memcpy(s->best_order, s->o->order, (size_t)s->o->n * sizeof *s->best_order);
}

/* Whether steps x and y must stay in their order. */
static bool must_stay_ordered(const Order *o, int x, int y) {
    const PStep *s = o->ph->steps.v[x], *t = o->ph->steps.v[y];
    if (!plan_order_is_movable(s) || !plan_order_is_movable(t)) return true;
    for (int i = 0; i < s->n_bufs; i++)
        for (int j = 0; j < t->n_bufs; j++)
            if (s->bufs[i] == t->bufs[j] &&
                (o->accesses[x].written[i] || o->accesses[y].written[j]))
                return true;
    return false;
}

/* Moves the step at position `at` in a direction (1 or -1) until it meets a step that it must not
 * pass; false: it cannot move. */
static bool move_far(Order *o, int at, int direction) {
    int step = o->order[at], to = at;
    while (to + direction >= 0 && to + direction < o->n &&
           !must_stay_ordered(o, step, o->order[to + direction])) {
        o->order[to] = o->order[to + direction];
        to += direction;
    }
    o->order[to] = step;
    return to != at;
}

/* Whether the step accesses a large temporary; moving other steps changes little. */
static bool has_large_buffer(const Search *s, int step) {
    const PStep *st = s->o->ph->steps.v[step];
    for (int i = 0; i < st->n_bufs; i++)
        if (s->o->bytes[st->bufs[i]] >= s->granularity) return true;
    return false;
}

/* Tries to move a step in both directions; true if that is better. */
static bool try_step(Search *s, int step) {
    for (int direction = 1; direction >= -1; direction -= 2) {
        int at = 0;
        memcpy(s->o->order, s->best_order, (size_t)s->o->n * sizeof *s->best_order);
        while (s->o->order[at] != step) at++;
        if (!move_far(s->o, at, direction)) continue;
        measure_order(s->o);
        if (!is_better(s)) continue;
        keep_best(s);
        return true;
    }
    return false;
}

/* Searches for the order with the least live bytes. */
static void search_order(Order *o) {
    size_t steps = (size_t)o->n + 1;
    Search s = {
        .o = o, .best_live = NEWN(o->a, int64_t, steps), .best_order = NEWN(o->a, int, steps)};
    int grains = order_threshold(o, PASS_T_ORDER_GRAIN),
        rounds = order_threshold(o, PASS_T_ORDER_ROUNDS);
    measure_order(o);
    keep_best(&s);
    s.granularity = o->n && s.best_live[0] >= grains ? s.best_live[0] / grains : 1;
    bool better = o->n <= order_threshold(o, PASS_T_ORDER_STEPS);
    for (int round = 0; better && round < rounds; round++) {
        better = false;
        for (int step = 0; step < o->n; step++)
            if (has_large_buffer(&s, step) && try_step(&s, step)) better = true;
    }
    memcpy(o->order, s.best_order, (size_t)o->n * sizeof *s.best_order);
    measure_order(o);
}

/* Marks loops over blocks as unwanted where the phase's peak would not exceed that of the fullest
 * phase without them. All phases share one arena, and a loop costs cache locality. */
static void undo_useless_loops(Order *o, int64_t peak) {
    int64_t granularity = peak / order_threshold(o, PASS_T_ORDER_GRAIN);
    sum_lives(o, false);
    for (int i = 0; i < o->loops.n; i++) {
        int64_t full = 0;
        for (int k = o->loops.v[i].first; k <= o->loops.v[i].last; k++)
            if (o->live[k] > full) full = o->live[k];
        o->unwanted[o->order[o->loops.v[i].first]] = full <= peak + granularity / 2;
    }
    plan_order_form_loops(o);
}

/* ---- the phase -------------------------------------------------------------------------- */
/* By buffer: whether all steps of the phase access it at their own rows. */
static bool *find_row_only(Arena *a, const Plan *p, const PPhase *ph, const StepAccesses *touch) {
    bool *by_row = NEWN(a, bool, (size_t)p->bufs.n + 1);
    memset(by_row, true, (size_t)p->bufs.n);
    for (int i = 0; i < ph->steps.n; i++) {
        const PStep *s = ph->steps.v[i];
        if (s->pred >= 0) by_row[s->pred] = false;
        for (int k = 0; k < s->n_bufs; k++)
            if (!touch[i].rows || touch[i].at[k] != AT_ROW) by_row[s->bufs[k]] = false;
    }
    return by_row;
}

/* Puts the phase's steps in the order that was found. */
static void apply_order(Plan *p, const Order *o) {
    PPhase *ph = p->phases.v[o->phase];
    PStep **s = NEWN(o->a, PStep *, (size_t)o->n + 1);
    for (int i = 0; i < o->n; i++) s[i] = ph->steps.v[o->order[i]];
    if (o->n) memcpy(ph->steps.v, s, (size_t)o->n * sizeof *s);
}

/* Records in the plan the loops over blocks, and which buffers hold one block only. */
static void apply_loops(Plan *p, const Order *o) {
    PPhase *ph = p->phases.v[o->phase];
    for (int i = 0; i < o->loops.n; i++) {
        vec_push(o->a, &ph->blocks, o->loops.v[i]);
        for (int k = o->loops.v[i].first; k <= o->loops.v[i].last; k++)
            ph->steps.v[k]->by_chunk = o->accesses[o->order[k]].by_chunk;
    }
    for (int b = 0; b < o->p->bufs.n; b++)
        if (o->block[b] >= 0) p->bufs.v[b]->block = o->block[b];
}

/* Lists the buffers that the phase accesses. */
static void list_accessed_buffers(Order *o) {
    for (int i = 0; i < o->n; i++) {
        const PStep *s = o->ph->steps.v[i];
        for (int k = 0; k < plan_n_touched(s); k++) {
            int b = plan_touched(s, k);
            if (!o->marks[b]) o->bufs[o->n_bufs++] = b;
            o->marks[b] = 1;
        }
    }
    memset(o->marks, 0, (size_t)o->p->bufs.n);
}

/* The phase's order, as it is. */
static Order new_order(Arena *a, Plan *p, int phase) {
    PPhase *ph = p->phases.v[phase];
    size_t n = (size_t)ph->steps.n + 1, bufs = (size_t)p->bufs.n + 1;
    StepAccesses *touch = NEWN(a, StepAccesses, n);
    for (int i = 0; i < ph->steps.n; i++) touch[i] = plan_step_accesses(a, p, ph->steps.v[i]);
    Order o = {.a = a,
               .p = p,
               .ph = ph,
               .phase = phase,
               .n = ph->steps.n,
               .accesses = touch,
               .row_only = find_row_only(a, p, ph, touch),
               .order = NEWN(a, int, n),
               .bufs = NEWN(a, int, bufs),
               .first = NEWN(a, int, bufs),
               .last = NEWN(a, int, bufs),
               .block = NEWN(a, int, bufs),
               .marks = NEWN(a, unsigned char, bufs),
               .unwanted = NEWN(a, bool, n),
               .member = NEWN(a, int, n),
               .postponed = NEWN(a, int, n),
               .from = NEWN(a, int, n),
               .to = NEWN(a, int, n),
               .bytes = NEWN(a, int64_t, bufs),
               .live = NEWN(a, int64_t, n)};
    for (int i = 0; i < o.n; i++) o.order[i] = i;
    for (int b = 0; b < p->bufs.n; b++) o.block[b] = -1;
    list_accessed_buffers(&o);
    measure_buffers(&o);
    return o;
}

/* ---- passes ------------------------------------------------------------------------------- */
/* Writes a remark on how many steps moved, and how many bytes are live at the fullest step before
 * and after. */
static void remark_order(PassCtx *pc, const Order *o, int64_t before) {
    int moved = 0, first = 0, peak = order_threshold(o, PASS_T_ORDER_STEPS);
    for (int i = o->n - 1; i >= 0; i--) {
        if (o->order[i] == i) continue;
        moved++;
        first = i;
    }
    if (o->n < 2 || !before) return;
    const PStep *s = o->ph->steps.v[o->order[first]];
    if (o->n > peak)
        pass_refusal(pc, s->span, "order-steps",
                     "@%s: no order of its %d steps is tried: more than %d", o->ph->name, o->n,
                     peak);
    else if (moved)
        pass_remark(pc, s->span, "order-steps",
                    "@%s: '%s' and %d other steps have other places, as less is live at the "
                    "fuller steps: at most %.1f MB, was %.1f, by nominal sizes",
                    o->ph->name, s->note, moved - 1, 1e-6 * (double)o->live[0],
                    1e-6 * (double)before);
    else
        pass_remark(pc, s->span, "order-steps",
                    "@%s: its %d steps stay: no order that was tried has less than %.1f MB live "
                    "at the fullest step, by nominal sizes",
                    o->ph->name, o->n, 1e-6 * (double)before);
}

/* Runs the pass order-steps: finds an order of each phase's steps with little live memory. */
static bool run_order(PassCtx *pc, Plan *p) {
    for (int i = 0; i < p->phases.n; i++) {
        Order o = new_order(pc->a, p, i);
        measure_order(&o);
        int64_t before = o.live[0];
        search_order(&o);
        remark_order(pc, &o, before);
        apply_order(p, &o);
    }
    return true;
}

/* The step at a position. */
static const PStep *step_at(const Order *o, int at) {
    return o->ph->steps.v[o->order[at]];
}

/* Writes remarks on the loops over blocks: what runs in them, why they end, and which were undone
 * since another step has more live bytes. */
static void remark_loops(PassCtx *pc, Order *o) {
    const char *phase = o->ph->name;
    for (int i = 0; pc->remarks && i < o->loops.n; i++) {
        const PBlocks *l = &o->loops.v[i];
        const char *why = plan_order_end_reason(o, l);
        pass_remark(pc, step_at(o, l->first)->span, "block-rows",
                    "@%s: %d steps from '%s' on run on a block of rows at a time", phase,
                    l->last - l->first + 1, step_at(o, l->first)->note);
        if (!why) continue;
        const PStep *next = step_at(o, l->last + 1);
        pass_refusal(pc, next->span, "block-rows", "@%s: '%s' is not in the loop before it: %s",
                     phase, next->note, why);
    }
    for (int i = 0; i < o->n; i++)
        if (o->unwanted[o->order[i]])
            pass_refusal(pc, step_at(o, i)->span, "block-rows",
                         "@%s: '%s' begins no loop: the fullest step is another one", phase,
                         step_at(o, i)->note);
}

/* Runs the pass block-rows: forms loops over blocks of rows, and undoes those that do not lower the
 * peak memory. */
static bool run_blocks(PassCtx *pc, Plan *p) {
    int n = p->phases.n;
    int64_t peak = 0;
    Order *o = NEWN(pc->a, Order, (size_t)n + 1);
    for (int i = 0; i < n; i++) {
        o[i] = new_order(pc->a, p, i);
        measure_order(&o[i]);
        if (o[i].live[0] > peak) peak = o[i].live[0];
    }
    for (int i = 0; i < n; i++) {
        undo_useless_loops(&o[i], peak);
        remark_loops(pc, &o[i]);
        apply_order(p, &o[i]);
        apply_loops(p, &o[i]);
    }
    return true;
}

enum {
    LATER =
        PLAN_BLOCKS | PLAN_EPILOGUES | PLAN_JOINED | PLAN_GROUPS | PLAN_OVERLAPPED | PLAN_STREAMS
};

const Pass plan_pass_order_steps = {
    .name = "order-steps",
    .summary = "order steps so that less is live at the fullest one",
    .needs = PLAN_STEPS,
    .breaks = PLAN_LIVES,
    .bars = LATER,
    .moves_steps = true,
    .run_plan = run_order,
};

const Pass plan_pass_block_rows = {
    .name = "block-rows",
    .summary = "run steps that follow each other row by row on a block of rows at a time",
    .needs = PLAN_STEPS,
    .gives = PLAN_BLOCKS,
    .breaks = PLAN_LIVES,
    .bars = LATER,
    .moves_steps = true,
    .run_plan = run_blocks,
};
