/* How many lanes a team has, and how many neighbouring columns each of them.
 *
 *     kernel k by teams columns 8 {     =>     kernel k by teams lanes 4 pack 4 columns 8 {
 *       .. columns 16 by lanes {                 .. columns 16 by lanes {
 *
 * Thread coarsening (Volkov and Demmel 2008; Magni, Dubach, O'Boyle 2013): where all widths are
 * known and even, what a lane loads and stores of a row is done at once, 16 bytes where it can be.
 * Lanes are the least power of two that covers the columns, a warp's at most; the launch settles
 * them where only data know how many columns there are. */
#include "codegen/loop_passes/team.h"
#include "passes/rewrite.h"

enum { PACK_BYTES = 16 };

/* Whether the access loads or stores n neighbouring columns at once: they are neighbours in memory
 * and the row's width is a multiple of n. A packed store is emitted last, so the loop has no other
 * access to its buffer. */
bool loop_is_packed(const LStmt *s, const LStmt *loop, int n) {
    const LBuf *b = s->buf;
    bool may = s->kind == L_LOAD ? !b->written : s->kind == L_STORE;
    int64_t width;
    if (s->kind == L_STORE && loop_count_accesses(loop->body, b) > 1) return false;
    if (!may || b->kind != LB_VALUE || b->rank == 0 || b->dt == DT_I1) return false;
    for (int i = 0; i + 1 < b->rank; i++)
        if (s->idx[i] == loop->var || loop_computes(loop->body, s->idx[i])) return false;
    return s->idx[b->rank - 1] == loop->var && expr_is_const(b->dim[b->rank - 1], &width) &&
           width % n == 0 && dtype_bytes(b->dt) * n <= PACK_BYTES;
}

/* ---- columns of a lane ---------------------------------------------------------------------- */
/* What is known about a number of columns per lane. */
typedef struct {
    int n;      /* columns of a lane */
    int packed; /* accesses that would be done at once */
    bool ok;
} PackCheck;

/* Counts the accesses that n columns per lane would do at once; ok = false where an array or a
 * promoted row allows only one column. */
static void check_accesses(PackCheck *c, const LStmt *s, const LStmt *loop) {
    for (; s; s = s->next) {
        if (s->kind == L_LOCAL && s->buf->rank > 1) c->ok = false;
        if (s->kind == L_COLUMNS && s->promoted.n) c->ok = false;
        if (loop && loop_is_access(s)) c->packed += loop_is_packed(s, loop, c->n);
        if (!loop_has_body(s)) continue;
        check_accesses(c, s->body, loop_is_columns(s) && s->range == LR_EXTENT ? s : NULL);
    }
}

/* Why the lanes cannot have n columns each; NULL: they can, and some access profits. */
static const char *pack_fault(const LoopTeam *t, int n) {
    PackCheck c = {.n = n, .ok = true};
    bool any = false;
    for (int i = 0; i < t->regions.n; i++) {
        const LoopColumns *r = &t->regions.v[i];
        int64_t width;
        if (r->range->range != LR_EXTENT) continue;
        if (!expr_is_const(r->range->extent, &width)) return "a width is not known";
        if (width % n) return "a width is no multiple of so many";
        if (r->one_pass && width / n > t->on->lanes) return "there are too many columns";
        any = true;
    }
    check_accesses(&c, t->k->body, NULL);
    if (!any) return "entries alone are shared out";
    if (!c.ok) return "lanes have rows in registers, or arrays of more than a column";
    return c.packed ? NULL : "nothing of neighbouring columns is loaded or stored at once";
}

/* Whether one column per lane is enough where the lanes go through all columns once. */
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

/* The number of columns per lane, a power of two; 0 = the lanes cannot hold all columns of a region
 * that goes through them once. */
static int choose_pack(const LoopTeam *t) {
    int pack = t->k->threads.kind == LT_TEAM ? t->on->columns : 1;
    while (pack > 1 && pack_fault(t, pack)) pack /= 2;
    return pack > 1 ? pack : fits_one_column(t);
}

/* ---- lanes ---------------------------------------------------------------------------------- */
/* Whether the iterations of the region go to all threads of a team, however many lanes other
 * regions have. */
bool loop_goes_to_all_threads(const LoopTeam *t, const LoopColumns *r) {
    bool columns = false;
    for (int i = 0; i < t->regions.n; i++) columns = columns || !t->regions.v[i].all_threads;
    bool block = t->k->threads.kind == LT_BLOCK;
    return r->all_threads && (block || (columns && r->range->range == LR_SEGMENT));
}

/* The least power of two that is not below n, or `most`. */
static int power_of_2(int64_t n, int most) {
    int p = 1;
    while (p < n && p < most) p *= 2;
    return p;
}

/* The number of lanes of a team; 0 = the launch chooses it, since only data know the widths. */
static int choose_lanes(const LoopTeam *t, int pack) {
    int lanes = 1, all = t->on->lanes;
    bool known = true, any = false;
    for (int i = 0; i < t->regions.n; i++) {
        const LStmt *range = t->regions.v[i].range;
        int64_t n = 0;
        if (loop_goes_to_all_threads(t, &t->regions.v[i])) continue;
        any = true;
        if (!loop_extent(range, &n))
            known = false;
        else if (power_of_2(n / pack, all) > lanes)
            lanes = power_of_2(n / pack, all);
    }
    return !any ? all : known || lanes == all ? lanes : 0;
}

/* Chooses lanes and columns per lane for each kernel that teams or blocks take. */
static bool run(PassCtx *p, Loops *l) {
    for (int i = 0; i < l->k.n; i++) {
        LKernel *k = l->k.v[i];
        LThreads *by = &k->threads;
        if (by->kind <= LT_THREAD || by->pack) continue;
        const LoopTeam t = loop_team(l->a, l->on, k, false);
        const int pack = t.fault ? 0 : choose_pack(&t);
        if (!pack) {
            pass_refusal(p, k->span, "coarsen-lanes", "%s: not: lanes cannot have all columns",
                         k->name);
            continue;
        }
        by->pack = pack;
        by->lanes = choose_lanes(&t, pack);
        const char *lanes = by->lanes ? arena_printf(l->a, "of %d lanes", by->lanes)
                                      : "as many lanes as the launch finds columns for";
        const char *why = pack > 1 || l->on->columns < 2 ? NULL
                          : by->kind != LT_TEAM          ? "a block has the row"
                                                         : pack_fault(&t, 2);
        (why ? pass_refusal : pass_remark)(p, k->span, "coarsen-lanes",
                                           "%s: %d columns each, %s%s%s", k->name, pack, lanes,
                                           why ? "; not more: " : "", why ? why : "");
    }
    return true;
}

const Pass loop_pass_coarsen_lanes = {
    .name = "coarsen-lanes",
    .summary = "how many lanes a team has, and how many neighbouring columns each of them",
    .run_loops = run,
};
