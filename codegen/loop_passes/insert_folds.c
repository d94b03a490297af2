/* What threads of a team have added up each by itself becomes one number.
 *
 *     for %e in segment p[%v] by ways {          for %e in segment p[%v] by ways {
 *       .. acc sum acc[%f] %x                       .. acc sum acc[%f] %x
 *     }                                     =>   }
 *                                                fold sum acc by ways
 *
 * Behind a loop whose entries ways share, of what it adds up; behind `columns`, of what their
 * lanes, or all threads, add to one place of the row; and behind a loop over columns, of what its
 * lanes add to a number that the entry has.  Partial results are combined in an order that the
 * team's size fixes. */
#include "codegen/loop_passes/team.h"
#include "passes/rewrite.h"

bool loop_reduces_columns(const LStmt *s, const LStmt *loop) {
    if (s->kind != L_ACC || !loop || loop_declares(loop->body, s->buf)) return false;
    return s->buf->kind == LB_LOCAL ? s->buf->rank == 0 : !loop_follows_column(s, loop);
}

/* The folds found so far. */
typedef struct {
    const LoopTeam *t;
    LoopFolds to;
} ReductionList;

/* Adds a reduction over threads (statement `fold`) of buffer buf after a statement, unless there is
 * one. share: the threads whose partial sums are combined. */
static void add_reduction(ReductionList *list, const LStmt *after, RedKind red, LBuf *buf,
                          LShare share) {
    for (int i = list->to.n; i > 0 && list->to.v[i - 1].after == after; i--)
        if (list->to.v[i - 1].buf == buf) return;
    LoopFold f = {after, red, buf, share};
    vec_push(list->t->a, &list->to, f);
}

/* Adds a reduction over threads for each sum over feature columns among statements s .. end.
 * per_entry: only sums that belong to one entry, else only the others. after: the statement that
 * the reductions follow. */
static void add_region_reductions(ReductionList *list, const LoopColumns *r, const LStmt *s,
                                  const LStmt *end, const LStmt *column_loop, bool per_entry,
                                  const LStmt *after, LShare share) {
    for (; s != end; s = s->next) {
        if (loop_reduces_columns(s, column_loop) && loop_is_declared_inside(r, s->buf) == per_entry)
            add_reduction(list, after, s->red, s->buf, share);
        const LStmt *inner_loop = loop_is_columns(s) ? s : column_loop;
        if (loop_has_body(s))
            add_region_reductions(list, r, s->body, NULL, inner_loop, per_entry, after, share);
    }
}

/* Adds reductions for sums over feature columns that the same entry needs at once (the score of an
 * edge): after the column loop that makes them. serial: s is in a loop that each thread runs alone.
 */
static void add_entry_reductions(ReductionList *list, const LoopColumns *r, const LStmt *s,
                                 const LStmt *end, bool serial) {
    for (; s != end; s = s->next) {
        bool is_column_loop = !serial && loop_is_columns(s);
        if (is_column_loop && (r->one_pass || r->round_robin))
            add_region_reductions(list, r, s->body, NULL, s, true, s, LS_LANES);
        bool runs_serially =
            is_column_loop && (loop_is_round_robin(r, s) || s->range == LR_SEGMENT);
        if (loop_has_body(s)) add_entry_reductions(list, r, s->body, NULL, serial || runs_serially);
    }
}

/* Predicate for loop_find(): does the statement accumulate into the buffer? */
static bool is_acc(const LStmt *s, const void *buf) {
    return s->kind == L_ACC && s->buf == buf;
}

/* Adds reductions over ways for the sums of each loop whose entries the ways of a team share. */
static void add_way_reductions(ReductionList *list, const LoopColumns *r) {
    const LBuf *target[LOOP_TARGETS_MAX];
    for (const LStmt *s = r->first; s != r->end; s = s->next) {
        const bool is_shared = s->kind == L_FOR && s->sched.share == LS_WAYS;
        const int n = is_shared ? loop_private_sums(list->t, s, target) : 0;
        for (int i = 0; i < n; i++)
            add_reduction(list, s, loop_find(s->body, is_acc, target[i])->red, (LBuf *)target[i],
                          LS_WAYS);
    }
}

LoopFolds loop_required_folds(const LoopTeam *t) {
    ReductionList list = {.t = t};
    for (int i = 0; i < t->regions.n; i++) {
        const LoopColumns *r = &t->regions.v[i];
        add_way_reductions(&list, r);
        add_entry_reductions(&list, r, r->first, r->end, false);
        add_region_reductions(&list, r, r->first, r->end, NULL, false, r->stmt,
                              r->all_threads ? LS_TEAM : LS_LANES);
    }
    return list.to;
}

/* Whether s is the fold that is wanted. */
static bool is_fold(const LStmt *s, const LoopFold *want) {
    return s && s->kind == L_FOLD && s->buf == want->buf && s->red == want->red &&
           s->sched.share == want->share;
}

bool loop_has_required_folds(const LoopFolds *all, const LStmt *s) {
    const LStmt *next = s->next;
    for (int i = 0; i < all->n; i++) {
        if (all->v[i].after != s) continue;
        if (!is_fold(next, &all->v[i])) return false;
        next = next->next;
    }
    return s->kind == L_FOLD || !next || next->kind != L_FOLD;
}

/* ---- the pass ------------------------------------------------------------------------------- */
/* Inserts the `fold` statements that are missing after the statements of a list; returns how many.
 */
static int insert_missing_folds(Arena *a, const LoopFolds *all, LStmt *s) {
    int n_inserted = 0;
    for (; s; s = s->next) {
        LStmt **at = &s->next;
        if (loop_has_body(s)) n_inserted += insert_missing_folds(a, all, s->body);
        for (int i = 0; i < all->n; i++) {
            const LoopFold *want = &all->v[i];
            if (want->after != s) continue;
            if (!is_fold(*at, want)) {
                LStmt *fold = NEW(a, LStmt);
                *fold = (LStmt){.kind = L_FOLD, .span = s->span, .next = *at};
                fold->buf = want->buf;
                fold->red = want->red;
                fold->sched.share = want->share;
                *at = fold;
                n_inserted++;
            }
            at = &(*at)->next;
        }
    }
    return n_inserted;
}

/* Runs the pass: inserts the reductions over threads of a team that each kernel needs. */
static bool run_insert_folds(PassCtx *p, Loops *l) {
    for (int i = 0; i < l->k.n; i++) {
        LKernel *k = l->k.v[i];
        if (k->threads.kind <= LT_THREAD) continue;
        const LoopTeam t = loop_team(l->a, l->on, k, false);
        const LoopFolds all = t.fault ? (LoopFolds){0} : loop_required_folds(&t);
        const int n_inserted = insert_missing_folds(l->a, &all, k->body);
        if (n_inserted || !all.n)
            loop_remark(p, k, "insert-folds",
                        n_inserted
                            ? arena_printf(l->a, "%d sums of ways or lanes are folded", n_inserted)
                            : NULL,
                        "none: no thread adds up what is another's, too");
    }
    return true;
}

const Pass loop_pass_insert_folds = {
    .name = "insert-folds",
    .summary = "what threads of a team have added up each by itself becomes one number",
    .run_loops = run_insert_folds,
    .required = true,
};
