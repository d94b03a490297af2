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

/* Marks the loops over entries from which only sums leave (`by team`): their entries can be divided
 * over all threads of a team. with_entry_loops: false = marks none. */
static void mark_entry_sums(const LoopTeam *t, LStmt *s, bool with_entry_loops) {
    for (; s; s = s->next) {
        bool is_sum = with_entry_loops && s->kind == L_FOR && s->range == LR_SEGMENT &&
                      loop_only_sums_leave(t, s);
        if (s->kind == L_FOR) s->sched.share = is_sum ? LS_TEAM : LS_EACH;
        if (loop_has_body(s)) mark_entry_sums(t, s->body, with_entry_loops);
    }
}

/* Marks the loops over feature columns inside the region whose columns the lanes take round robin.
 * direct: s is the region's own list. */
static void mark_round_robin(const LoopColumns *r, LStmt *s, bool direct) {
    for (; s; s = s->next) {
        bool is_column_loop = loop_is_columns(s);
        if (is_column_loop && s->range == LR_SEGMENT && !(direct && r->all_threads))
            s->sched.share = LS_EACH;
        if (is_column_loop && loop_is_round_robin(r, s)) s->sched.share = LS_LANES;
        if (loop_has_body(s)) mark_round_robin(r, s->body, false);
    }
}

/* Makes the statements of region r, which begin at *at, the body of a new statement `columns`;
 * returns the place after it. */
static LStmt **make_region(Arena *a, LStmt **at, const LoopColumns *found) {
    LStmt *columns = NEW(a, LStmt), **last = at;
    const LStmt *range = found->range;
    while (*last != found->end) last = &(*last)->next;
    *columns = (LStmt){.kind = L_COLUMNS, .span = range->span, .body = *at, .next = *last};
    columns->range = range->range;
    columns->extent = range->extent;
    columns->n_chunks = range->n_chunks;
    columns->ptr = range->ptr;
    columns->at = range->at;
    columns->sched.share = found->all_threads ? LS_TEAM : found->one_pass ? LS_EACH : LS_LANES;
    *last = NULL;
    *at = columns;
    LoopColumns region = *found;
    region.end = NULL;
    mark_round_robin(&region, columns->body, true);
    return &columns->next;
}

/* Makes each group of statements that share feature columns, in the list at *at and nested ones,
 * the body of a statement `columns`. */
static void make_regions(const LoopTeam *t, LStmt **at) {
    while (*at) {
        LoopColumns r = {0};
        if (loop_find_region(t, *at, &r)) {
            at = make_region(t->a, at, &r);
            continue;
        }
        if (loop_has_body(*at)) make_regions(t, &(*at)->body);
        at = &(*at)->next;
    }
}

/* Divides the columns of all regions over lanes instead of over all threads of a team. Needed where
 * each lane writes elements of its own, which other regions must reach through the same lane. */
static void share_among_lanes_only(LoopTeam *t) {
    for (int i = 0; i < t->regions.n; i++) {
        LStmt *c = t->regions.v[i].stmt;
        if (c->sched.share == LS_TEAM && c->range != LR_SEGMENT) c->sched.share = LS_LANES;
    }
}

/* A copy of the kernel with one team (or block) of threads per row, whose lanes share the loops
 * over feature columns; NULL: that is illegal, and *why says why. with_entry_loops: entries of
 * loops that only sum may be divided over all threads. */
static LKernel *map_to_team(Loops *l, const LKernel *kernel, bool with_entry_loops,
                            const char **why) {
    LKernel *k = loop_copy(l->a, kernel);
    const LStmt *parallel = loop_parallel(k);
    LStmt **row = parallel ? loop_row_list(k) : &k->body;
    bool is_block = !parallel || loop_sums_chunks(parallel);
    k->threads = (LThreads){.kind = is_block ? LT_BLOCK : LT_TEAM, .columns = l->columns};
    const LoopTeam team = {.a = l->a, .on = l->on, .k = k, .columns = l->columns};
    mark_entry_sums(&team, *row, with_entry_loops);
    make_regions(&team, row);
    LoopTeam mapped = loop_team(l->a, l->on, k, false);
    *why = mapped.fault;
    if (mapped.fault) return NULL;
    if (loop_has_lane_private_elements(&mapped)) share_among_lanes_only(&mapped);
    return k;
}

/* Runs the pass: maps the rows of each kernel without a schedule to teams of threads, where that is
 * legal. */
static bool run_fuse_columns(PassCtx *p, Loops *l) {
    for (int i = 0; i < l->k.n && l->on->columns; i++) {
        LKernel *k = l->k.v[i];
        const char *why = NULL;
        if (k->threads.kind) continue;
        LKernel *mapped = map_to_team(l, k, true, &why);
        if (!mapped) mapped = map_to_team(l, k, false, &why);
        if (mapped) l->k.v[i] = mapped;
        if (mapped)
            pass_remark(p, k->span, "fuse-columns", "%s: a team of threads has a row", k->name);
        else
            pass_refusal(p, k->span, "fuse-columns", "%s: not: %s", k->name, why);
    }
    return true;
}

const Pass loop_pass_fuse_columns = {
    .name = "fuse-columns",
    .summary = "loops of a row over the same columns are one, of which a lane has a column",
    .run_loops = run_fuse_columns,
};
