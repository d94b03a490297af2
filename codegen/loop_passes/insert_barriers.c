/* Threads of a team wait for each other where one reads what another has written.
 *
 *     columns 16 by lanes {                columns 16 by lanes {
 *       .. store y[%v, %f] %x                .. store y[%v, %f] %x
 *     }                              =>    }
 *     columns 8 by lanes {                 barrier
 *       .. load y[%v, %g]                  columns 8 by lanes {
 *     }                                      .. load y[%v, %g]
 *                                          }
 *
 * Behind columns that write what is read later, and before a number of the row is written that all
 * threads have read. */
#include "codegen/loop_passes/team.h"
#include "passes/rewrite.h"

typedef struct {
    const LoopTeam *t;
    bool *after_region; /* [runs] */
    int n;
} Barriers;

/* A new barrier statement in front of `next`. */
static LStmt *new_barrier(Arena *a, const LStmt *by, LStmt *next) {
    LStmt *s = NEW(a, LStmt);
    *s = (LStmt){.kind = L_BARRIER, .span = by->span, .next = next};
    return s;
}

/* Whether b is loaded anywhere without a barrier after its writes. */
static bool is_read_unsynchronised(const LoopTeam *t, const LBuf *b) {
    for (int i = 0; i < t->accesses.n; i++) {
        const LoopAccess *a = &t->accesses.v[i];
        if (a->s->buf == b && a->s->kind == L_LOAD && !loop_is_after_barrier(t, a)) return true;
    }
    return false;
}

/* Whether the statement is a store by the first thread to something that all threads have read
 * before: they must have finished reading. */
static bool needs_barrier_before(const LoopTeam *t, const LStmt *s) {
    bool writes = (s->kind == L_STORE || s->kind == L_ACC) && s->buf->kind != LB_LOCAL;
    return writes && is_read_unsynchronised(t, s->buf) && loop_is_read_before_written(t, s->buf);
}

/* Inserts barriers into a list. */
static void insert_barriers(Barriers *x, LStmt **at) {
    for (const LStmt *last = NULL; *at; last = *at, at = &(*at)->next) {
        LStmt *s = *at;
        bool is_behind = false;
        for (int i = 0; i < x->t->regions.n; i++)
            is_behind |= x->t->regions.v[i].stmt == s && x->after_region[i];
        if (is_behind && !(s->next && s->next->kind == L_BARRIER)) {
            s->next = new_barrier(x->t->a, s, s->next);
            x->n++;
        }
        if (needs_barrier_before(x->t, s) && !(last && last->kind == L_BARRIER)) {
            *at = new_barrier(x->t->a, s, s);
            at = &(*at)->next;
            x->n++;
        }
        if (loop_has_body(s) && s->kind != L_COLUMNS) insert_barriers(x, &s->body);
    }
}

/* Remarks on regions whose results no other thread reads. */
static void remark_none(PassCtx *p, const LKernel *k, const LoopTeam *t, const bool *behind) {
    for (int i = 0; i < k->bufs.n && t->regions.n > 1; i++) {
        int run = k->bufs.v[i]->written ? loop_last_writing_region(t, k->bufs.v[i]) : -1;
        if (run >= 0 && !behind[run])
            pass_declined(p, t->regions.v[run].stmt->span, "insert-barriers",
                          "%s: none behind columns of %s: no other thread reads it", k->name,
                          k->bufs.v[i]->name);
    }
}

/* Inserts the barriers of one kernel; returns how many. */
static int insert_all(PassCtx *p, Loops *l, LKernel *k) {
    const LoopTeam t = loop_team(l->a, l->on, k, false);
    Barriers x = {.t = &t, .after_region = NEWN(l->a, bool, t.regions.n + 1)};
    for (int i = 0; i < t.accesses.n; i++) {
        const LoopAccess *a = &t.accesses.v[i];
        if (loop_is_after_barrier(&t, a))
            x.after_region[loop_last_writing_region(&t, a->s->buf)] = true;
    }
    if (!t.fault) insert_barriers(&x, &k->body);
    if (!t.fault) remark_none(p, k, &t, x.after_region);
    return x.n;
}

static bool run(PassCtx *p, Loops *l) {
    for (int i = 0; i < l->k.n; i++) {
        LKernel *k = l->k.v[i];
        int n = k->threads.kind > LT_THREAD ? insert_all(p, l, k) : 0;
        if (n) pass_remark(p, k->span, "insert-barriers", "%s: %d barriers", k->name, n);
    }
    return true;
}

const Pass loop_pass_insert_barriers = {
    .name = "insert-barriers",
    .summary = "threads of a team wait where one reads what another has written",
    .run_loops = run,
    .required = true,
};
