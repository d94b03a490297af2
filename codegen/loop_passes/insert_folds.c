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

/* Whether the accumulation s in the body of a column loop sums over the columns into one element.
 */
bool loop_reduces_columns(const LStmt *s, const LStmt *loop) {
    if (s->kind != L_ACC || !loop || loop_declares(loop->body, s->buf)) return false;
    return s->buf->kind == LB_LOCAL ? s->buf->rank == 0 : !loop_follows_column(s, loop);
}

/* The folds found so far. */
typedef struct {
    const LoopTeam *t;
    LoopFolds to;
} FoldList;

/* Adds a fold of buf behind a statement, unless there is one. */
static void add_fold(FoldList *x, const LStmt *behind, RedKind red, LBuf *buf, LShare by) {
    for (int i = x->to.n; i > 0 && x->to.v[i - 1].after == behind; i--)
        if (x->to.v[i - 1].buf == buf) return;
    LoopFold f = {behind, red, buf, by};
    vec_push(x->t->a, &x->to, f);
}

/* Adds folds for sums over columns that the statements s .. end make. inner: sums local to an
 * entry, else the others. */
static void add_region_folds(FoldList *x, const LoopColumns *r, const LStmt *s, const LStmt *end,
                             const LStmt *loop, bool inner, const LStmt *behind, LShare by) {
    for (; s != end; s = s->next) {
        if (loop_reduces_columns(s, loop) && loop_is_declared_inside(r, s->buf) == inner)
            add_fold(x, behind, s->red, s->buf, by);
        const LStmt *in = loop_is_columns(s) ? s : loop;
        if (loop_has_body(s)) add_region_folds(x, r, s->body, NULL, in, inner, behind, by);
    }
}

/* Adds folds for sums over columns that an entry needs at once. serial: inside loops that a thread
 * runs alone. */
static void add_entry_folds(FoldList *x, const LoopColumns *r, const LStmt *s, const LStmt *end,
                            bool serial) {
    for (; s != end; s = s->next) {
        bool columns = !serial && loop_is_columns(s);
        if (columns && (r->one_pass || r->round_robin))
            add_region_folds(x, r, s->body, NULL, s, true, s, LS_LANES);
        bool own = columns && (loop_is_round_robin(r, s) || s->range == LR_SEGMENT);
        if (loop_has_body(s)) add_entry_folds(x, r, s->body, NULL, serial || own);
    }
}

static bool is_acc(const LStmt *s, const void *buf) {
    return s->kind == L_ACC && s->buf == buf;
}

/* Adds folds for loops whose entries the ways share. */
static void add_way_folds(FoldList *x, const LoopColumns *r) {
    const LBuf *target[LOOP_TARGETS_MAX];
    for (const LStmt *s = r->first; s != r->end; s = s->next) {
        const bool ways = s->kind == L_FOR && s->sched.share == LS_WAYS;
        const int n = ways ? loop_private_sums(x->t, s, target) : 0;
        for (int i = 0; i < n; i++)
            add_fold(x, s, loop_find(s->body, is_acc, target[i])->red, (LBuf *)target[i], LS_WAYS);
    }
}

/* All places where threads' partial sums must be combined. */
LoopFolds loop_required_folds(const LoopTeam *t) {
    FoldList x = {.t = t};
    for (int i = 0; i < t->regions.n; i++) {
        const LoopColumns *r = &t->regions.v[i];
        add_way_folds(&x, r);
        add_entry_folds(&x, r, r->first, r->end, false);
        add_region_folds(&x, r, r->first, r->end, NULL, false, r->stmt,
                         r->all_threads ? LS_TEAM : LS_LANES);
    }
    return x.to;
}

/* Whether the folds behind statement s are exactly the required ones. */
bool loop_has_required_folds(const LoopFolds *all, const LStmt *s) {
    const LStmt *p = s->next;
    for (int i = 0; i < all->n; i++) {
        const LoopFold *f = &all->v[i];
        if (f->after != s) continue;
        if (!p || p->kind != L_FOLD || p->buf != f->buf) return false;
        if (p->red != f->red || p->sched.share != f->share) return false;
        p = p->next;
    }
    return s->kind == L_FOLD || !p || p->kind != L_FOLD;
}

/* ---- the pass ------------------------------------------------------------------------------- */
/* Inserts the missing folds; returns how many. */
static int insert_folds(Arena *a, const LoopFolds *all, LStmt *s) {
    int n = 0;
    for (; s; s = s->next) {
        LStmt **at = &s->next;
        if (loop_has_body(s)) n += insert_folds(a, all, s->body);
        for (int i = 0; i < all->n && !loop_has_required_folds(all, s); i++) {
            if (all->v[i].after != s) continue;
            LStmt *f = NEW(a, LStmt);
            *f = (LStmt){.kind = L_FOLD, .span = s->span, .next = *at};
            f->buf = all->v[i].buf;
            f->red = all->v[i].red;
            f->sched.share = all->v[i].share;
            *at = f;
            at = &f->next;
            n++;
        }
    }
    return n;
}

static bool run(PassCtx *p, Loops *l) {
    for (int i = 0; i < l->k.n; i++) {
        LKernel *k = l->k.v[i];
        if (k->threads.kind <= LT_THREAD) continue;
        const LoopTeam t = loop_team(l->a, l->on, k, false);
        const LoopFolds all = t.fault ? (LoopFolds){0} : loop_required_folds(&t);
        const int n = insert_folds(l->a, &all, k->body);
        if (n || !all.n)
            loop_remark(p, k, "insert-folds",
                        n ? arena_printf(l->a, "%d sums of ways or lanes are folded", n) : NULL,
                        "none: no thread adds up what is another's, too");
    }
    return true;
}

const Pass loop_pass_insert_folds = {
    .name = "insert-folds",
    .summary = "what threads of a team have added up each by itself becomes one number",
    .run_loops = run,
    .required = true,
};
