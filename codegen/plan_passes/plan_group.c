/* Products that a device's library makes with one call: those of the relations or node types of a
 * layer, and their gradients.
 *
 *     y1 = x1 @ w1;  .. ;  y2 = x2 @ w2        =>        y1, y2 = x1 @ w1, x2 @ w2;  ..
 *
 * Two products belong together if neither needs what the other makes, in any number of steps, and
 * the steps between them can go in front of both or behind both.  A product of a few thousand rows
 * fills a part of a GPU: several at once fill more of it, and there is one launch instead of many.
 * NVIDIA calls that grouped (cuBLAS 12.5), or batched where all have one shape.
 *
 * The steps stay what they are, and the host runs them as ever; what a group adds is that they
 * stand side by side, and that its buffers are all there at once.  Loops over blocks of rows stay
 * whole, as the host needs them, and no step becomes fuller than the fullest one.  Whether a group
 * is worth a call depends on sizes: runtime/cuda/group_cost.h says when, and the device makes the
 * products one by one where it is not, or where its library declines. */
#include "codegen/plan_passes/plan_group.h"
#include "codegen/plan_passes/plan_pass.h"
#include "passes/rewrite.h"
#include "runtime/program.h"

/* ---- order ----------------------------------------------------------------------------------- */
/* Whether no other step may pass this one: the host sees what was done before it, or it repeats
 * steps. */
static bool is_fence(const PStep *s) {
    return plan_step_facts(s->kind)->by == PBY_HOST;
}

/* Finds the steps between `last` and `at` that must stay in front of the step at `at`; or returns
 * why no order brings it to the group at first .. last. */
static const char *find_preceding(const GroupSearch *f, int first, int last, int at) {
    PStep *const *s = f->ph->steps.v;
    for (int i = at - 1; i >= first; i--) {
        f->must_precede[i] = plan_must_stay_ordered(s[i], s[at]);
        for (int k = i + 1; k < at && !f->must_precede[i]; k++)
            f->must_precede[i] =
                k > last && f->must_precede[k] && plan_must_stay_ordered(s[i], s[k]);
        if (i <= last && f->must_precede[i]) return "one needs the other, or what it leaves";
        if (i > last && is_fence(s[i])) return "the host takes part between them";
    }
    return NULL;
}

/* Appends a step to the new order. */
static void append_step(GroupSearch *f, int *to, int from) {
    f->old_position[*to] = from;
    f->steps[(*to)++] = f->ph->steps.v[from];
}

/* Makes a new order that puts the step at position `at` next to the group first .. last: first the
 * steps that must precede it, then the group with the step (behind: after it), then the others. */
static void make_new_order(GroupSearch *f, int first, int last, int at, bool behind) {
    int to = 0;
    for (int i = 0; i < first; i++) append_step(f, &to, i);
    for (int i = last + 1; i < at; i++)
        if (f->must_precede[i]) append_step(f, &to, i);
    if (!behind) append_step(f, &to, at);
    for (int i = first; i <= last; i++) append_step(f, &to, i);
    if (behind) append_step(f, &to, at);
    for (int i = last + 1; i < at; i++)
        if (!f->must_precede[i]) append_step(f, &to, i);
    for (int i = at + 1; i < f->ph->steps.n; i++) append_step(f, &to, i);
}

/* Whether the steps of each loop over blocks are still neighbours in the new order; finds their
 * positions. */
static bool blocks_stay(GroupSearch *f) {
    const PPhase *ph = f->ph;
    for (int i = 0; i < ph->steps.n; i++) f->block_of[i] = -1;
    for (int b = 0; b < ph->blocks.n; b++) {
        f->blocks[b] = ph->blocks.v[b];
        for (int i = ph->blocks.v[b].first; i <= ph->blocks.v[b].last; i++) f->block_of[i] = b;
    }
    for (int i = 0, seen = 0; i < ph->steps.n; i++) {
        int b = f->block_of[f->old_position[i]];
        bool goes_on = i > 0 && f->block_of[f->old_position[i - 1]] == b;
        if (b < 0) continue;
        if (!goes_on && b != seen++) return false;
        if (!goes_on) f->blocks[b].first = i;
        f->blocks[b].last = i;
    }
    return true;
}

/* Whether the products of each other group are side by side in the new order. */
static bool groups_stay(const GroupSearch *f, const PGroup *but) {
    for (int i = 0; i < f->ph->steps.n; i++) {
        const PGroup *g = f->steps[i]->group;
        if (!g || g == but || f->steps[i] != g->steps.v[0]) continue;
        for (int k = 1; k < g->steps.n; k++)
            if (i + k >= f->ph->steps.n || f->steps[i + k] != g->steps.v[k]) return false;
    }
    return true;
}

/* Exchanges the phase's order with the new one. */
static void swap_orders(GroupSearch *f) {
    PPhase *ph = f->ph;
    for (int i = 0; i < ph->steps.n; i++) {
        PStep *s = ph->steps.v[i];
        ph->steps.v[i] = f->steps[i];
        f->steps[i] = s;
    }
    for (int i = 0; i < ph->blocks.n; i++) {
        PBlocks b = ph->blocks.v[i];
        ph->blocks.v[i] = f->blocks[i];
        f->blocks[i] = b;
    }
}

/* ---- groups -------- */
/* Why the product can be in no group; NULL: it can. */
static const char *ungroupable_reason(const PStep *s) {
    int64_t one;
    if (s->epilogue && s->epilogue->kind) return "a call for several has no ends";
    if (s->pred >= 0) return "it is not always wanted";
    if (!expr_is_const(s->gemm.batch, &one) || one != 1) return "it is several matrices itself";
    return NULL;
}

/* Whether two products have the same sizes and strides. */
static bool same_shape(const PGemm *x, const PGemm *y) {
    const Expr *const a[] = {x->m, x->n, x->k, x->a_row, x->a_col, x->b_row, x->b_col, x->c_row},
                      *const b[] = {y->m,     y->n,     y->k,     y->a_row,
                                    y->a_col, y->b_row, y->b_col, y->c_row};
    for (size_t i = 0; i < COUNT(a); i++)
        if (!expr_eq(a[i], b[i])) return false;
    return true;
}

/* Whether one call can make both products. One with results of another type than operands needs
 * equal shapes. */
static bool may_share_call(const Plan *p, const PStep *x, const PStep *y) {
    DType in = p->bufs.v[x->bufs[0]]->dt, out = p->bufs.v[x->bufs[2]]->dt;
    return in == p->bufs.v[y->bufs[0]]->dt && out == p->bufs.v[y->bufs[2]]->dt &&
           x->gemm.long_k == y->gemm.long_k && (in == out || same_shape(&x->gemm, &y->gemm));
}

/* Records why a product is a call of its own, the first reason. */
static void record_separate(PStep *s, const char *why, const PStep *from) {
    if (s->separate_because) return;
    s->separate_because = why;
    s->separate_from = from;
}

/* The position of the group's first product. */
static int group_start(const GroupSearch *f, const PGroup *g) {
    return plan_step_index(f->ph, g->steps.v[0]);
}

const char *plan_group_add(GroupSearch *f, PGroup *g, int at) {
    int n = g->steps.n, first = group_start(f, g), last = first + n - 1;
    PStep *s = f->ph->steps.v[at];
    const char *why = find_preceding(f, first, last, at);
    if (why) return why;
    for (int behind = 1; behind >= 0; behind--) {
        make_new_order(f, first, last, at, behind);
        bool blocks = blocks_stay(f);
        if (!blocks || !groups_stay(f, g)) {
            why = blocks ? "another group is between them"
                         : "a loop over blocks of rows, for the cpu, is between them";
            continue;
        }
        swap_orders(f);
        vec_push(f->a, &g->steps, s);
        s->group = g;
        if (plan_lives_peak(&f->lives) <= f->peak) {
            first = plan_step_index(f->ph, g->steps.v[0]) - !behind;
            for (int i = 0; i <= n; i++) g->steps.v[i] = f->ph->steps.v[first + i];
            return NULL;
        }
        why = "more would have to be in memory at once";
        g->steps.n = n;
        s->group = NULL;
        swap_orders(f);
    }
    return why;
}

GroupSearch plan_group_search(Arena *a, const Plan *p, PPhase *ph) {
    const size_t n = (size_t)ph->steps.n + 1;
    GroupSearch f = {.a = a,
                     .ph = ph,
                     .lives = plan_lives(a, p, ph),
                     .steps = NEWN(a, PStep *, n),
                     .old_position = NEWN(a, int, n),
                     .must_precede = NEWN(a, bool, n),
                     .block_of = NEWN(a, int, n),
                     .blocks = NEWN(a, PBlocks, (size_t)ph->blocks.n + 1)};
    f.peak = plan_lives_peak(&f.lives);
    return f;
}

PGroup *plan_group_begin(GroupSearch *f, PStep *s) {
    PGroup *g = s->group = NEW(f->a, PGroup);
    vec_push(f->a, &g->steps, s);
    return g;
}

/* Whether all products of the group have the same shape. */
static bool all_have_same_shape(const PGroup *g) {
    for (int i = 1; i < g->steps.n; i++)
        if (!same_shape(&g->steps.v[0]->gemm, &g->steps.v[i]->gemm)) return false;
    return true;
}

/* Forms the group of products that one library call computes, beginning with the product at
 * position `at`. */
static void grow_group(GroupSearch *f, int at) {
    PStep *first = f->ph->steps.v[at];
    PGroup *g = plan_group_begin(f, first);
    int most = pass_threshold(f->lives.p->m->ctx, PASS_T_GROUP_PRODUCTS);
    for (int i = at + 1; i < f->ph->steps.n && g->steps.n < most; i++) {
        PStep *s = f->ph->steps.v[i];
        if (s->kind != PS_GEMM || s->group || ungroupable_reason(s)) continue;
        if (!may_share_call(f->lives.p, first, s)) continue;
        const char *why = plan_group_add(f, g, i);
        if (!why) continue;
        record_separate(first, why, s);
        record_separate(s, why, first);
    }
    if (g->steps.n == 1) first->group = NULL;
    g->same_shape = all_have_same_shape(g);
}

/* Remarks on a product. */
static void remark(PassCtx *pc, const PStep *s) {
    if (!s->group)
        pass_refusal(pc, s->span, "group-products", "'%s' is a call of its own: %s", s->note,
                     s->separate_because);
    else if (plan_leads_group(s))
        pass_remark(pc, s->span, "group-products", "'%s' and %d more are one call", s->note,
                    s->group->steps.n - 1);
}

/* Forms the groups of a phase. */
static void group_phase(PassCtx *pc, const Plan *p, PPhase *ph) {
    GroupSearch f = plan_group_search(pc->a, p, ph);
    for (int i = 0; i < ph->steps.n; i++) {
        PStep *s = ph->steps.v[i];
        if (s->kind != PS_GEMM || s->group) continue;
        const char *why = ungroupable_reason(s);
        if (why)
            s->separate_because = why;
        else
            grow_group(&f, i);
    }
    for (int i = 0; i < ph->steps.n; i++) {
        PStep *s = ph->steps.v[i];
        if (s->kind != PS_GEMM) continue;
        record_separate(s, "the phase has no other of its types, over sums of its kind", NULL);
        remark(pc, s);
    }
}

/* Runs the pass: groups the matrix products that a device computes with one library call. */
static bool run_group_products(PassCtx *pc, Plan *p) {
    for (int i = 0; i < p->phases.n && p->device; i++) group_phase(pc, p, p->phases.v[i]);
    return true;
}

const Pass plan_pass_group_products = {
    .name = "group-products",
    .summary = "bring together the matrix products that a device makes with one call",
    .needs = PLAN_STEPS,
    .gives = PLAN_GROUPS,
    .breaks = PLAN_LIVES,
    .bars = PLAN_GROUPS | PLAN_STREAMS,
    .run_plan = run_group_products,
};

bool plan_leads_group(const PStep *s) {
    return s->group && s->group->steps.v[0] == s;
}

int plan_group_index(const Plan *p, const PGroup *g) {
    int n = 0;
    for (int i = 0; i < p->phases.n; i++)
        for (int k = 0; k < p->phases.v[i]->steps.n; k++) {
            const PStep *s = p->phases.v[i]->steps.v[k];
            if (g && s->group == g) return n;
            n += s->kind == PS_GEMM && plan_leads_group(s);
        }
    return n;
}
