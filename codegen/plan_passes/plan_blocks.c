/* Steps that follow each other row by row run in blocks of rows.
 *
 *     d_z  = sum over entries of v     [N, 256]        for each block of rows
 *     d_w += d_z' h                    [256, 256]         d_z, d_w, d_h of these rows
 *     d_h  = d_z w'                    [N, 256]
 *     h    = d_h where h > 0           [N, 256]        d_z, d_h: a block, not N rows
 *
 * A step may be run on a part of the rows when it is a kernel over rows, a kernel of sums over
 * chunks of rows, or a product whose m or (added up) k are the rows.  Steps share a loop over
 * blocks when what one of them writes the others touch at their own rows only; so a gather of what
 * the loop writes ends it.  A temporary that nobody touches outside of the loop is local: it exists
 * for one block.  That is the strip-mining and array contraction of loop nests (Gao, Olsen,
 * Sarkar and Thekkath 1992, "Collective Loop Fusion for Array Contraction") with steps for
 * statements; a loop is kept where it makes something local.
 *
 * What may not be run so, and is small (the end of a sum), goes behind the loop.  The plan stays
 * right without the loops: a target may run the steps in order on all rows. */
#include "codegen/plan_passes/plan_order.h"

#include <string.h>

enum { READ_ROW = 1, WROTE_ROW = 2, READ_ELSEWHERE = 4, WROTE_PARTS = 8, TOUCHED = 16, WROTE = 32 };

bool plan_order_is_movable(const PStep *s) {
    return (s->kind == PS_KERNEL || s->kind == PS_GEMM) && s->pred < 0;
}

/* Whether the step has no rows: it takes no time worth a loop. */
static bool is_serial(const PStep *s) {
    return s->kind == PS_KERNEL && !s->extent && s->pred < 0;
}

/* How a step of the loop accesses its i-th buffer. */
static unsigned char access_bits(const StepAccesses *t, int i) {
    if (t->at[i] == AT_ROW) return t->written[i] ? WROTE_ROW : READ_ROW;
    return t->written[i] ? WROTE_PARTS : READ_ELSEWHERE;
}

/* Whether the step may be in a loop over blocks with the steps recorded in o->marks: where one
 * writes a buffer that another reads, both access only the rows of their own block. */
static bool may_join_loop(const Order *o, int step) {
    const PStep *s = o->ph->steps.v[step];
    for (int i = 0; i < s->n_bufs; i++) {
        unsigned char seen = o->marks[s->bufs[i]], bits = access_bits(&o->accesses[step], i);
        unsigned char never = bits == READ_ROW         ? WROTE_PARTS
                              : bits == WROTE_ROW      ? WROTE_PARTS | READ_ELSEWHERE
                              : bits == READ_ELSEWHERE ? WROTE_PARTS | WROTE_ROW
                                                       : 15;
        if (seen & never) return false;
        /* nor pass a step that goes behind the loop */
        if (seen & (o->accesses[step].written[i] ? TOUCHED | WROTE : WROTE)) return false;
    }
    return true;
}

/* Records how a step of the loop (member) accesses its buffers, or one that is moved behind the
 * loop. */
static void record_step(Order *o, int step, bool member) {
    const PStep *s = o->ph->steps.v[step];
    const StepAccesses *t = &o->accesses[step];
    for (int i = 0; i < s->n_bufs; i++)
        o->marks[s->bufs[i]] |= member          ? access_bits(t, i)
                                : t->written[i] ? TOUCHED | WROTE
                                                : TOUCHED;
}

/* Clears what the steps at positions from .. to - 1 have recorded. */
static void clear_records(Order *o, int from, int to) {
    for (int i = from; i < to; i++) {
        const PStep *s = o->ph->steps.v[o->order[i]];
        for (int k = 0; k < s->n_bufs; k++) o->marks[s->bufs[k]] = 0;
    }
}

/* Why the step behind the loop is not part of it; NULL: there is no step. */
const char *plan_order_end_reason(Order *o, const PBlocks *l) {
    if (l->last + 1 == o->n) return NULL;
    int step = o->order[l->last + 1];
    const PStep *s = o->ph->steps.v[step];
    const StepAccesses *t = &o->accesses[step];
    if (s->pred >= 0) return "it is not always wanted";
    if (!plan_order_is_movable(s)) return "it is no kernel and no matrix product";
    if (!t->rows) return "it cannot be run on a part of its rows";
    if (!expr_eq(t->rows, l->rows)) return "it has other rows";
    for (int i = l->first; i <= l->last; i++) record_step(o, o->order[i], true);
    bool meets = !may_join_loop(o, step);
    clear_records(o, l->first, l->last + 1);
    return meets ? "it needs other rows of what the loop makes" : "it begins one";
}

/* Finds the lifetimes of the buffers that steps first .. last access; ends outside of these are
 * known. */
static void find_lives(Order *o, int first, int last) {
    for (int i = first; i <= last; i++) {
        const PStep *s = o->ph->steps.v[o->order[i]];
        for (int k = 0; k < plan_n_touched(s); k++) {
            int b = plan_touched(s, k);
            if (o->first[b] >= first) o->first[b] = o->n;
            if (o->last[b] <= last) o->last[b] = -1;
        }
    }
    for (int i = first; i <= last; i++) {
        const PStep *s = o->ph->steps.v[o->order[i]];
        for (int k = 0; k < plan_n_touched(s); k++) {
            int b = plan_touched(s, k);
            if (o->first[b] > i) o->first[b] = i;
            if (o->last[b] < i) o->last[b] = i;
        }
    }
}

/* Moves the steps from `at` on that can share its loop side by side, and small steps between them
 * behind; returns how many share it. */
static int gather_loop_steps(Order *o, int at) {
    int n = 0, n_behind = 0, end = at, i = at;
    const Expr *rows = o->accesses[o->order[at]].rows;
    for (; i < o->n; i++) {
        int step = o->order[i];
        const StepAccesses *t = &o->accesses[step];
        bool in = t->rows && expr_eq(t->rows, rows) && may_join_loop(o, step);
        if (!in && !is_serial(o->ph->steps.v[step])) break;
        record_step(o, step, in);
        if (in) {
            o->member[n++] = step;
            end = i + 1;
        } else {
            o->postponed[n_behind++] = step;
        }
    }
    clear_records(o, at, i);
    if (end == at + n) return n;
    /* Small ones behind the last member stay where they are. */
    memcpy(o->order + at, o->member, (size_t)n * sizeof *o->member);
    memcpy(o->order + at + n, o->postponed, (size_t)(end - at - n) * sizeof *o->postponed);
    find_lives(o, at, end - 1);
    return n;
}

/* Marks the temporaries that only steps lo .. hi access, at their own rows: they are needed for one
 * block at a time. True if there are any. */
static bool mark_local_buffers(Order *o, int lo, int hi) {
    bool any = false;
    for (int i = lo; i <= hi; i++) {
        const PStep *s = o->ph->steps.v[o->order[i]];
        for (int k = 0; k < s->n_bufs; k++) {
            int b = s->bufs[k];
            bool inside = o->first[b] >= lo && o->last[b] <= hi;
            if (!inside || !o->row_only[b] || o->p->bufs.v[b]->kind != PB_TEMP) continue;
            o->block[b] = o->loops.n;
            any = true;
        }
    }
    return any;
}

/* Forms the loops over blocks of the phase's order. */
void plan_order_form_loops(Order *o) {
    o->loops.n = 0;
    for (int i = 0; i < o->n_bufs; i++) o->block[o->bufs[i]] = -1;
    find_lives(o, 0, o->n - 1);
    for (int i = 0; i < o->n; i++) {
        const Expr *rows = o->accesses[o->order[i]].rows;
        if (!rows) continue;
        bool unwanted = o->unwanted[o->order[i]];
        int n = gather_loop_steps(o, i);
        if (unwanted) i += n - 1;
        if (unwanted || !mark_local_buffers(o, i, i + n - 1)) continue;
        PBlocks loop = {.first = i, .last = i + n - 1, .rows = rows};
        vec_push(o->a, &o->loops, loop);
        i = loop.last;
    }
}
