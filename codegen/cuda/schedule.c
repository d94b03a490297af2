/* How the iterations of a kernel meet threads, as its text says (codegen/loop_passes/schedule.c): a
 * team of threads for each, else a thread for each.  What the text says and cannot be is refused,
 * and nothing is emitted. */
#include "codegen/cuda/cuda.h"

/* Fills `target` with the accumulators of loop s if the ways of a team share its entries, and
 * returns how many there are. 0 = they do not share it. */
int cu_shared_sums(const CuFn *f, const LStmt *s, const LBuf **target) {
    return s->kind == L_FOR && s->sched.share == LS_WAYS ? loop_private_sums(&f->team, s, target)
                                                         : 0;
}

/* The column region during which the row that s accesses is held in registers; NULL = the access
 * goes to memory. */
const LoopColumns *cu_promoting_region(const CuFn *f, const LStmt *s) {
    for (int i = 0; i < f->team.regions.n; i++) {
        const LoopColumns *r = &f->team.regions.v[i];
        if (loop_is_promoted(r->stmt, s->buf) && loop_region_has(r, s)) return r;
    }
    return NULL;
}

/* Whether the loop is collapsed with the parallel loop. */
static bool is_collapsed(const CuFn *f, const LStmt *s) {
    for (int i = 0; i < f->sched.n_collapsed; i++)
        if (f->sched.collapsed[i] == s) return true;
    return false;
}

/* A loop that the kernel's text marks `collapse` but that is not among the collapsed loops found;
 * NULL = there is none. */
static const LStmt *find_uncollapsible(const CuFn *f, const LStmt *s) {
    for (const LStmt *in; s; s = s->next) {
        if (s->kind == L_FOR && s->sched.collapse && !is_collapsed(f, s)) return s;
        if (loop_has_body(s) && (in = find_uncollapsible(f, s->body))) return in;
    }
    return NULL;
}

/* Adds an error about the kernel's schedule, at a place of the model. Returns false. */
static bool schedule_error(const CuFn *f, Span at, const char *what) {
    diag_add(f->cu->c, DIAG_E0541, at, "kernel %s: %s", f->k->name, what);
    return false;
}

/* Finds the inner loops that are part of the parallel loop's index: the emitted index gn_i runs
 * over all of them. with_vector_loops: vector loops may be among them. */
static void find_collapsed_loops(CuFn *f, bool with_vector_loops) {
    CuSched *c = &f->sched;
    LStmt *body = c->parallel_loop ? c->parallel_loop->body : NULL;
    for (LStmt *l; c->n_collapsed < LOOP_COLLAPSE_MAX && (l = loop_collapsed(body));
         body = l->body) {
        if (loop_may_collapse(f->a, f->k, body, with_vector_loops) != l) break;
        c->collapsed[c->n_collapsed++] = l;
    }
}

/* Finds what each thread of a team does, and checks that the schedule in the kernel's text is
 * possible and free of races. False after diagnostics. */
static bool check_thread_team(CuFn *f) {
    const LThreads *threads = &f->k->threads;
    const CuSched *c = &f->sched;
    f->team = loop_team(f->a, &target_cuda, f->k, true);
    if ((threads->kind == LT_TEAM) != (c->parallel_loop && !loop_sums_chunks(c->parallel_loop)))
        return schedule_error(f, loop_place(f->k, NULL),
                              "no team of threads can have its rows like this");
    if (!loop_team_is_race_free(&f->team)) return schedule_error(f, f->team.span, f->team.fault);
    const LStmt *entry_loops[LOOP_TARGETS_MAX];
    if (c->parallel_loop && c->parallel_loop->sched.hub_entries &&
        !loop_shared_entry_loops(&f->team, entry_loops))
        return schedule_error(f, loop_place(f->k, c->parallel_loop),
                              "ways share no entries of rows that a block could take");
    for (int i = 0; i < f->team.regions.n; i++) {
        const LoopColumns *region = &f->team.regions.v[i];
        if (loop_has_values(region))
            return schedule_error(f, loop_place(f->k, region->stmt),
                                  "values stand at the top of columns taken by turns");
        if (!region->stmt->sched.masked && !loop_mask_fault(&f->team, region))
            return schedule_error(f, loop_place(f->k, region->stmt),
                                  "lanes that may have no column are needed: 'masked'");
    }
    const LStmt *unpackable = loop_unpackable(f->a, f->k, &f->team);
    if (unpackable)
        return schedule_error(f, loop_place(f->k, unpackable),
                              "elements that do not lie side by side are no pack");
    if (!loop_may_have_pack(&f->team, c->pack))
        return schedule_error(f, loop_place(f->k, NULL), "lanes cannot have so many columns each");
    return true;
}

/* Reads from the kernel's text which threads run its iterations (a thread, a team of a warp, or a
 * block each), and checks that this is possible. False after diagnostics. */
bool cu_schedule(CuFn *f) {
    const LThreads *threads = &f->k->threads;
    CuSched *c = &f->sched;
    bool is_team = threads->kind == LT_TEAM || threads->kind == LT_BLOCK;
    *c = (CuSched){
        .parallel_loop = loop_parallel(f->k), .lanes = threads->lanes, .pack = loop_pack(f->k)};
    if (f->has_passes && !is_team && c->pack > 1)
        return schedule_error(f, loop_place(f->k, NULL),
                              "of neighbours one may wait for rows of others");
    if (loop_is_behind(f->k) && (is_team || c->pack > 1))
        return schedule_error(f, loop_place(f->k, NULL),
                              "rows behind a batch's own go to a thread each");
    c->kind = threads->kind == LT_TEAM ? CU_TEAM : threads->kind == LT_BLOCK ? CU_BLOCK : CU_THREAD;
    find_collapsed_loops(f, !is_team);
    const LStmt *s = find_uncollapsible(f, f->k->body);
    if (s) return schedule_error(f, loop_place(f->k, s), "a loop cannot be part of its index");
    if (is_team && !check_thread_team(f)) return false;
    if (!is_team && c->pack > 1) {
        const LoopNest nest = loop_collapsed_nest(f->k);
        const LoopElements e = loop_find_packable(f->a, f->k, &nest);
        if (!nest.n || loop_max_pack(&e, LOOP_ELEMENTS_MAX) < c->pack)
            return schedule_error(f, loop_place(f->k, NULL),
                                  "a thread cannot have so many elements");
        if ((s = loop_unpackable(f->a, f->k, NULL)))
            return schedule_error(f, loop_place(f->k, s),
                                  "elements that do not lie side by side are no pack");
    }
    c->shared_loop = loop_first_shared_loop(&f->team);
    const LStmt *split[LOOP_TARGETS_MAX];
    const int n_split = is_team && c->parallel_loop ? loop_split_loops(&f->team, split) : 0;
    for (int i = 0; i < n_split; i++)
        if (split[i]->sched.split_entries) c->split[c->n_split++] = split[i];
    if (c->n_split && c->n_split != n_split)
        return schedule_error(f, loop_place(f->k, NULL),
                              "blocks share some of a row's loops over entries");
    c->stores_early = c->n_split && loop_stores_before(&f->team, split[n_split - 1]) &&
                      !loop_parts_store(&f->team, split[n_split - 1]);
    return true;
}
