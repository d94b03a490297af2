/* Loops of a row over the same columns, with what stands between them, are carried out together:
 * a lane of the row's team of threads has a column of all of them, so that local arrays become
 * registers.
 *
 *     for %v in N parallel {                for %v in N parallel {
 *       local acc: f32[16]                    columns 16 by lanes {
 *       for %f in 16 vector { .. }              local acc: f32[16]
 *       for %e in segment p[%v] {       =>      for %f in 16 vector { .. }
 *         for %g in 16 vector { .. }            for %e in segment p[%v] {
 *       }                                         for %g in 16 vector { .. }
 *     }                                         }
 *                                             }
 *                                           }
 *
 * Loop fusion with array contraction (Gao, Olsen, Sarkar, Thekkath 1992); what the statements may
 * be is in columns.c.  A kernel has teams only where no thread of one reads what another has
 * written (team.c): else it is left as it is, and a thread has a row.  A loop over the entries of a
 * segment that only adds up numbers is one over columns, too (`by team`). */
#include "codegen/loop_passes/team.h"
#include "passes/rewrite.h"

/* Marks the loops over entries that only sum: their entries can go to all threads of a team. */
static void mark_sums(const LoopTeam *t, LStmt *s, bool segments) {
    for (; s; s = s->next) {
        bool sums =
            segments && s->kind == L_FOR && s->range == LR_SEGMENT && loop_only_sums_leave(t, s);
        if (s->kind == L_FOR) s->sched.share = sums ? LS_TEAM : LS_EACH;
        if (loop_has_body(s)) mark_sums(t, s->body, segments);
    }
}

/* Marks the column loops of the region whose columns the lanes take round robin. direct: s is the
 * region's own list. */
static void mark_round_robin(const LoopColumns *r, LStmt *s, bool direct) {
    for (; s; s = s->next) {
        bool columns = loop_is_columns(s);
        if (columns && s->range == LR_SEGMENT && !(direct && r->all_threads))
            s->sched.share = LS_EACH;
        if (columns && loop_is_round_robin(r, s)) s->sched.share = LS_LANES;
        if (loop_has_body(s)) mark_round_robin(r, s->body, false);
    }
}

/* Makes the statements of the region the body of a new statement `columns`; returns the place
 * behind it. */
static LStmt **enclose(Arena *a, LStmt **at, const LoopColumns *r) {
    LStmt *c = NEW(a, LStmt), **last = at;
    const LStmt *range = r->range;
    while (*last != r->end) last = &(*last)->next;
    *c = (LStmt){.kind = L_COLUMNS, .span = range->span, .body = *at, .next = *last};
    c->range = range->range;
    c->extent = range->extent;
    c->n_chunks = range->n_chunks;
    c->ptr = range->ptr;
    c->at = range->at;
    c->sched.share = r->all_threads ? LS_TEAM : r->one_pass ? LS_EACH : LS_LANES;
    *last = NULL;
    *at = c;
    LoopColumns all = *r;
    all.end = NULL;
    mark_round_robin(&all, c->body, true);
    return &c->next;
}

/* Encloses all regions of the list. */
static void enclose_all(const LoopTeam *t, LStmt **at) {
    while (*at) {
        LoopColumns r = {0};
        if (loop_find_region(t, *at, &r)) {
            at = enclose(t->a, at, &r);
            continue;
        }
        if (loop_has_body(*at)) enclose_all(t, &(*at)->body);
        at = &(*at)->next;
    }
}

/* Where lanes write elements of their own, all regions over columns go to lanes instead of all
 * threads. */
static void restrict_to_lanes(LoopTeam *t) {
    for (int i = 0; i < t->regions.n; i++) {
        LStmt *c = t->regions.v[i].stmt;
        if (c->sched.share == LS_TEAM && c->range != LR_SEGMENT) c->sched.share = LS_LANES;
    }
}

/* A copy of the kernel with regions for a team or a block; NULL: it cannot be, and why. */
static LKernel *fuse(Loops *l, const LKernel *from, bool segments, const char **why) {
    LKernel *k = loop_copy(l->a, from);
    const LStmt *parallel = loop_parallel(k);
    LStmt **row = parallel ? loop_row_list(k) : &k->body;
    bool block = !parallel || loop_sums_chunks(parallel);
    k->threads = (LThreads){.kind = block ? LT_BLOCK : LT_TEAM, .columns = l->columns};
    const LoopTeam look = {.a = l->a, .on = l->on, .k = k, .columns = l->columns};
    mark_sums(&look, *row, segments);
    enclose_all(&look, row);
    LoopTeam t = loop_team(l->a, l->on, k, false);
    *why = t.fault;
    if (t.fault) return NULL;
    if (loop_has_lane_private_elements(&t)) restrict_to_lanes(&t);
    return k;
}

/* Makes regions in each kernel that is not scheduled yet. */
static bool run(PassCtx *p, Loops *l) {
    for (int i = 0; i < l->k.n && l->on->columns; i++) {
        LKernel *k = l->k.v[i];
        const char *why = NULL;
        if (k->threads.kind) continue;
        LKernel *to = fuse(l, k, true, &why);
        if (!to) to = fuse(l, k, false, &why);
        if (to) l->k.v[i] = to;
        if (to)
            pass_remark(p, k->span, "fuse-columns", "%s: a team of threads has a row", k->name);
        else
            pass_refusal(p, k->span, "fuse-columns", "%s: not: %s", k->name, why);
    }
    return true;
}

const Pass loop_pass_fuse_columns = {
    .name = "fuse-columns",
    .summary = "loops of a row over the same columns are one, of which a lane has a column",
    .run_loops = run,
};
