/* How the iterations of a kernel meet threads, as its text says (codegen/loop_passes/schedule.c): a
 * team of threads for each, else a thread for each.  What the text says and cannot be is refused,
 * and nothing is emitted. */
#include "codegen/cuda/cuda.h"

/* The accumulators of a loop whose entries the ways share; returns how many, 0 = the loop is not
 * shared. */
int cu_shared_sums(const CuFn *f, const LStmt *s, const LBuf **target) {
    return s->kind == L_FOR && s->sched.share == LS_WAYS ? loop_private_sums(&f->team, s, target)
                                                         : 0;
}

/* The column region of the access s, if its buffer's row is held in registers there; or NULL. */
const LoopColumns *cu_promoted(const CuFn *f, const LStmt *s) {
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

/* A loop that the kernel's text marks `collapse` and that cannot be collapsed; or NULL. */
static const LStmt *find_uncollapsible(const CuFn *f, const LStmt *s) {
    for (const LStmt *in; s; s = s->next) {
        if (s->kind == L_FOR && s->sched.collapse && !is_collapsed(f, s)) return s;
        if (loop_has_body(s) && (in = find_uncollapsible(f, s->body))) return in;
    }
    return NULL;
}

/* Adds an error about the kernel's schedule; false. */
static bool refuse(const CuFn *f, Span at, const char *what) {
    diag_add(f->cu->c, DIAG_E0541, at, "kernel %s: %s", f->k->name, what);
    return false;
}

/* Finds the inner loops that the kernel's text collapses with the parallel loop. vector_too: vector
 * loops may be among them. */
static void find_collapsed_loops(CuFn *f, bool with_vector_loops) {
    CuSched *c = &f->sched;
    LStmt *body = c->parallel_loop ? c->parallel_loop->body : NULL;
    for (LStmt *l; c->n_collapsed < LOOP_COLLAPSE_MAX && (l = loop_collapsed(body));
         body = l->body) {
        if (loop_may_collapse(f->a, f->k, body, with_vector_loops) != l) break;
        c->collapsed[c->n_collapsed++] = l;
    }
}

/* Reads and checks what the kernel's text says of a team's threads. False after diagnostics. */
static bool read_thread_team(CuFn *f) {
    const LThreads *t = &f->k->threads;
    const CuSched *c = &f->sched;
    f->team = loop_team(f->a, &target_cuda, f->k, true);
    if ((t->kind == LT_TEAM) != (c->parallel_loop && !loop_sums_chunks(c->parallel_loop)))
        return refuse(f, f->k->span, "no team of threads can have its rows like this");
    if (!loop_team_is_race_free(&f->team)) return refuse(f, f->team.span, f->team.fault);
    const LStmt *loop[LOOP_TARGETS_MAX];
    if (c->parallel_loop && c->parallel_loop->sched.hub_entries &&
        !loop_shared_entry_loops(&f->team, loop))
        return refuse(f, c->parallel_loop->span,
                      "ways share no entries of rows that a block could take");
    for (int i = 0; i < f->team.regions.n; i++) {
        const LoopColumns *r = &f->team.regions.v[i];
        if (loop_has_values(r))
            return refuse(f, r->stmt->span, "values stand at the top of columns taken by turns");
        if (!r->stmt->sched.masked && !loop_mask_fault(&f->team, r))
            return refuse(f, r->stmt->span, "lanes that may have no column are needed: 'masked'");
    }
    const LStmt *s = loop_unpackable(f->a, f->k, &f->team);
    if (s) return refuse(f, s->span, "elements that do not lie side by side are no pack");
    if (!loop_may_have_pack(&f->team, c->pack))
        return refuse(f, f->k->span, "lanes cannot have so many columns each");
    return true;
}

/* Reads from the kernel's text which threads run its iterations, and checks that this is possible.
 * False after diagnostics. */
bool cu_schedule(CuFn *f) {
    const LThreads *t = &f->k->threads;
    CuSched *c = &f->sched;
    bool team = t->kind == LT_TEAM || t->kind == LT_BLOCK;
    *c =
        (CuSched){.parallel_loop = loop_parallel(f->k), .lanes = t->lanes, .pack = loop_pack(f->k)};
    if (loop_is_behind(f->k) && (team || c->pack > 1))
        return refuse(f, f->k->span, "rows behind a batch's own go to a thread each");
    c->kind = t->kind == LT_TEAM ? CU_TEAM : t->kind == LT_BLOCK ? CU_BLOCK : CU_THREAD;
    find_collapsed_loops(f, !team);
    const LStmt *s = find_uncollapsible(f, f->k->body);
    if (s) return refuse(f, s->span, "a loop cannot be part of its index");
    if (team && !read_thread_team(f)) return false;
    if (!team && c->pack > 1) {
        const LoopNest nest = loop_collapsed_nest(f->k);
        const LoopElements e = loop_find_packable(f->a, f->k, &nest);
        if (!nest.n || loop_max_pack(&e, LOOP_ELEMENTS_MAX) < c->pack)
            return refuse(f, f->k->span, "a thread cannot have so many elements");
        if ((s = loop_unpackable(f->a, f->k, NULL)))
            return refuse(f, s->span, "elements that do not lie side by side are no pack");
    }
    c->shared_loop = loop_first_shared_loop(&f->team);
    return true;
}
