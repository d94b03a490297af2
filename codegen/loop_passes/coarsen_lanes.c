/* How many lanes a team has, and how many neighbouring columns each of them.
 *
 *     kernel k by teams columns 8 {     =>     kernel k by teams lanes 4 pack 4 columns 8 {
 *       .. columns 16 by lanes {                 .. columns 16 by lanes {
 *
 * Thread coarsening (Volkov and Demmel 2008; Magni, Dubach, O'Boyle 2013): what a lane loads and
 * stores of a row is done at once, 16 bytes where it can be.  Widths that are known must be even.
 * Where only data know a width, rows lie at multiples of a pack if the width is one, which the
 * kernel asks when it runs; else elements are loaded and stored one by one, and the last lane may
 * have fewer columns.  Lanes are the least power of two that covers the columns, a warp's at most;
 * the launch settles them where only data know how many columns there are. */
#include "codegen/loop_passes/team.h"
#include "passes/rewrite.h"

enum { PACK_BYTES = 16 };

bool loop_is_multiple(const Expr *e, int n) {
    switch (e->kind) {
    case EX_CONST:
        return e->c % n == 0;
    case EX_ADD:
        return loop_is_multiple(e->a, n) && loop_is_multiple(e->b, n);
    case EX_MUL:
        return loop_is_multiple(e->a, n) || loop_is_multiple(e->b, n);
    default:
        return false;
    }
}

bool loop_is_packed(const LStmt *s, const LStmt *loop, int n) {
    const LBuf *b = s->buf;
    bool is_candidate = s->kind == L_LOAD ? !b->written : s->kind == L_STORE;
    if (s->kind == L_STORE && loop_count_accesses(loop->body, b) > 1) return false;
    if (!is_candidate || b->kind != LB_VALUE || b->rank == 0 || b->dt == DT_I1) return false;
    for (int i = 0; i + 1 < b->rank; i++)
        if (s->idx[i] == loop->var || loop_computes(loop->body, s->idx[i])) return false;
    const Expr *width = b->dim[b->rank - 1];
    const bool is_aligned =
        loop_is_multiple(width, n) || (!expr_is_const(width, NULL) && expr_eq(width, loop->extent));
    return s->idx[b->rank - 1] == loop->var && is_aligned && dtype_bytes(b->dt) * n <= PACK_BYTES;
}

/* ---- columns of a lane ---------------------------------------------------------------------- */
/* What is known about a number of columns per lane. */
typedef struct {
    int n;      /* columns of a lane */
    int packed; /* accesses that would be done at once */
    bool ok;
} PackCheck;

/* Counts the accesses that would be packed with n columns per lane; sets ok = false where a local
 * array allows only one column. */
static void count_packed_accesses(PackCheck *check, const LStmt *s, const LStmt *loop) {
    for (; s; s = s->next) {
        if (s->kind == L_LOCAL && s->buf->rank > 1) check->ok = false;
        if (loop && loop_is_access(s)) check->packed += loop_is_packed(s, loop, check->n);
        if (!loop_has_body(s)) continue;
        count_packed_accesses(check, s->body,
                              loop_is_columns(s) && s->range == LR_EXTENT ? s : NULL);
    }
}

/* Why the lanes of a team cannot have n neighbouring columns each, in words; NULL: they can, and
 * some access becomes wider by it. */
static const char *pack_fault(const LoopTeam *t, int n) {
    PackCheck check = {.n = n, .ok = true};
    bool has_columns = false;
    for (int i = 0; i < t->regions.n; i++) {
        const LoopColumns *r = &t->regions.v[i];
        int64_t width;
        if (r->range->range != LR_EXTENT) continue;
        has_columns = true;
        if (!expr_is_const(r->range->extent, &width)) continue;
        if (width % n) return "a width is no multiple of so many";
        if (r->one_pass && width / n > t->on->lanes) return "there are too many columns";
    }
    count_packed_accesses(&check, t->k->body, NULL);
    if (!has_columns) return "entries alone are shared out";
    if (!check.ok) return "lanes have arrays of more than a column";
    return check.packed ? NULL : "nothing of neighbouring columns is loaded or stored at once";
}

/* Whether lanes with one column each can hold all columns of the regions that the lanes run through
 * only once. */
static bool fits_one_column(const LoopTeam *t) {
    for (int i = 0; i < t->regions.n; i++) {
        const LoopColumns *r = &t->regions.v[i];
        int64_t width;
        if (r->one_pass && loop_extent(r->range, &width) && width > t->on->lanes) return false;
    }
    return true;
}

int loop_pack(const LKernel *k) {
    return k->threads.pack ? k->threads.pack : 1;
}

bool loop_may_have_pack(const LoopTeam *t, int n) {
    return n > 1 ? t->k->threads.kind == LT_TEAM && !pack_fault(t, n) : fits_one_column(t);
}

/* Why the lanes should not have n neighbouring columns each, in words; NULL: they should. */
static const char *choice_fault(const Loops *l, const LoopTeam *t, int n) {
    const bool is_asked_for = n <= pass_threshold(l->c, PASS_T_UNKNOWN_COLUMNS);
    for (int i = 0; i < t->regions.n && !is_asked_for; i++) {
        const LoopColumns *r = &t->regions.v[i];
        if (r->range->range == LR_EXTENT && !expr_is_const(r->range->extent, NULL))
            return "a width is not known";
        if (r->stmt->in_registers.n) return "lanes have rows in registers";
    }
    return pack_fault(t, n);
}

/* The number of neighbouring columns per lane, a power of two; 0 = the lanes cannot hold all
 * columns of a region that they run through only once. */
static int choose_pack(const Loops *l, const LoopTeam *t) {
    int pack = t->k->threads.kind == LT_TEAM ? t->on->columns : 1;
    while (pack > 1 && choice_fault(l, t, pack)) pack /= 2;
    return pack > 1 ? pack : fits_one_column(t);
}

/* ---- lanes ---------------------------------------------------------------------------------- */
bool loop_goes_to_all_threads(const LoopTeam *t, const LoopColumns *r) {
    bool has_lane_region = false;
    for (int i = 0; i < t->regions.n; i++)
        has_lane_region = has_lane_region || !t->regions.v[i].all_threads;
    bool block = t->k->threads.kind == LT_BLOCK;
    return r->all_threads && (block || (has_lane_region && r->range->range == LR_SEGMENT));
}

/* The least power of two that is not below n, or `most`. */
static int power_of_2(int64_t n, int most) {
    int p = 1;
    while (p < n && p < most) p *= 2;
    return p;
}

/* The number of lanes of a team, the least power of two that covers the columns; 0 = it is chosen
 * at launch, since widths depend on the data. */
static int choose_lanes(const LoopTeam *t, int pack) {
    int lanes = 1, max_lanes = t->on->lanes;
    bool known = true, has_lane_region = false;
    for (int i = 0; i < t->regions.n; i++) {
        const LStmt *range = t->regions.v[i].range;
        int64_t n_columns = 0;
        if (loop_goes_to_all_threads(t, &t->regions.v[i])) continue;
        has_lane_region = true;
        if (!loop_extent(range, &n_columns))
            known = false;
        else if (power_of_2(n_columns / pack, max_lanes) > lanes)
            lanes = power_of_2(n_columns / pack, max_lanes);
    }
    return !has_lane_region ? max_lanes : known || lanes == max_lanes ? lanes : 0;
}

/* Runs the pass: chooses the number of lanes, and of columns per lane, for each kernel that teams
 * or blocks run. */
static bool run_coarsen_lanes(PassCtx *p, Loops *l) {
    for (int i = 0; i < l->k.n; i++) {
        LKernel *k = l->k.v[i];
        LThreads *threads = &k->threads;
        if (threads->kind <= LT_THREAD || threads->pack) continue;
        const LoopTeam t = loop_team(l->a, l->on, k, false);
        const int pack = t.fault ? 0 : choose_pack(l, &t);
        if (!pack) {
            pass_refusal(p, k->span, "coarsen-lanes", "%s: not: lanes cannot have all columns",
                         k->name);
            continue;
        }
        threads->pack = pack;
        threads->lanes = choose_lanes(&t, pack);
        const char *lanes = threads->lanes ? arena_printf(l->a, "of %d lanes", threads->lanes)
                                           : "as many lanes as the launch finds columns for";
        const char *why = pack > 1 || l->on->columns < 2 ? NULL
                          : threads->kind != LT_TEAM     ? "a block has the row"
                                                         : choice_fault(l, &t, 2);
        (why ? pass_refusal : pass_remark)(p, k->span, "coarsen-lanes",
                                           "%s: %d columns each, %s%s%s", k->name, pack, lanes,
                                           why ? "; not more: " : "", why ? why : "");
    }
    return true;
}

const Pass loop_pass_coarsen_lanes = {
    .name = "coarsen-lanes",
    .summary = "how many lanes a team has, and how many neighbouring columns each of them",
    .run_loops = run_coarsen_lanes,
};
