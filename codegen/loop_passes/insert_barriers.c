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

/* A new barrier statement whose successor is `next`; place: the statement whose source line it
 * gets. */
static LStmt *new_barrier(Arena *a, const LStmt *place, LStmt *next) {
    LStmt *s = NEW(a, LStmt);
    *s = (LStmt){.kind = L_BARRIER, .span = place->span, .next = next};
    return s;
}

/* Whether a load of buffer b has no barrier between it and the writes before it. */
static bool is_read_unsynchronised(const LoopTeam *t, const LBuf *b) {
    for (int i = 0; i < t->accesses.n; i++) {
        const LoopAccess *a = &t->accesses.v[i];
        if (a->s->buf == b && a->s->kind == L_LOAD && !loop_is_after_barrier(t, a)) return true;
    }
    return false;
}

/* Whether s writes a buffer that all threads of the team have read: only the first thread writes,
 * and it must wait until the others have read. */
static bool needs_barrier_before(const LoopTeam *t, const LStmt *s) {
    bool writes = loop_is_write(s) && s->buf->kind != LB_LOCAL;
    return writes && is_read_unsynchronised(t, s->buf) && loop_is_read_before_written(t, s->buf);
}

/* Inserts the needed barriers into the list at *at and nested ones. */
static void insert_barriers(Barriers *barriers, LStmt **at) {
    for (const LStmt *previous = NULL; *at; previous = *at, at = &(*at)->next) {
        LStmt *s = *at;
        bool is_needed = false;
        for (int i = 0; i < barriers->t->regions.n; i++)
            is_needed |= barriers->t->regions.v[i].stmt == s && barriers->after_region[i];
        if (is_needed && !(s->next && s->next->kind == L_BARRIER)) {
            s->next = new_barrier(barriers->t->a, s, s->next);
            barriers->n++;
        }
        if (needs_barrier_before(barriers->t, s) && !(previous && previous->kind == L_BARRIER)) {
            *at = new_barrier(barriers->t->a, s, s);
            at = &(*at)->next;
            barriers->n++;
        }
        if (loop_has_body(s) && s->kind != L_COLUMNS) insert_barriers(barriers, &s->body);
    }
}

/* Writes remarks on regions after which no barrier is needed, since no other thread reads their
 * results. */
static void remark_no_barrier(PassCtx *p, const LKernel *k, const LoopTeam *t,
                              const bool *after_region) {
    for (int i = 0; i < k->bufs.n && t->regions.n > 1; i++) {
        int region = k->bufs.v[i]->written ? loop_last_writing_region(t, k->bufs.v[i]) : -1;
        if (region >= 0 && !after_region[region])
            pass_declined(p, t->regions.v[region].stmt->span, "insert-barriers",
                          "%s: none behind columns of %s: no other thread reads it", k->name,
                          k->bufs.v[i]->name);
    }
}

/* Inserts the barriers of one kernel; returns how many. */
static int insert_kernel_barriers(PassCtx *p, Loops *l, LKernel *k) {
    const LoopTeam t = loop_team(l->a, l->on, k, false);
    Barriers x = {.t = &t, .after_region = NEWN(l->a, bool, t.regions.n + 1)};
    for (int i = 0; i < t.accesses.n; i++) {
        const LoopAccess *a = &t.accesses.v[i];
        if (loop_is_after_barrier(&t, a))
            x.after_region[loop_last_writing_region(&t, a->s->buf)] = true;
    }
    if (!t.fault) insert_barriers(&x, &k->body);
    if (!t.fault) remark_no_barrier(p, k, &t, x.after_region);
    return x.n;
}

/* Runs the pass: threads of a team wait for each other where one reads what another has written. */
static bool run_insert_barriers(PassCtx *p, Loops *l) {
    for (int i = 0; i < l->k.n; i++) {
        LKernel *k = l->k.v[i];
        int n = k->threads.kind > LT_THREAD ? insert_kernel_barriers(p, l, k) : 0;
        if (n) pass_remark(p, k->span, "insert-barriers", "%s: %d barriers", k->name, n);
    }
    return true;
}

const Pass loop_pass_insert_barriers = {
    .name = "insert-barriers",
    .summary = "threads of a team wait where one reads what another has written",
    .run_loops = run_insert_barriers,
    .required = true,
};
