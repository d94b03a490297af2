/* Which statements of a row share columns: a *run* (team.c).
 *
 * All vector loops of a run have one range, but for sums that an entry needs: lanes take the
 * columns of these by turns.  Where a number of the row is made in the midst of it, of entries or
 * of other numbers, all threads go through the run once, each lane having all of its columns in
 * registers; then anything may stand between its loops that threads can do alike. */
#include "codegen/cuda/cuda.h"

/* ---- ranges and registers ---------------------------------------------------------- */
/* The lanes of a way have all columns at once, so that they can meet in the midst of a run. */
static bool is_narrow(const CuFn *f, const LStmt *range) {
    int64_t n;
    return range->range == LR_EXTENT && expr_is_const(range->extent, &n) &&
           loop_fits_lanes(&target_cuda, n, f->sched.columns);
}

/* Entries of a segment, whose sums alone leave the loop: as good as columns.  A loop over columns
 * in it is the thread's own, unless lanes could have them all. */
static bool only_sums(const CuFn *f, const LStmt *s, const LStmt *body) {
    for (; s; s = s->next) {
        if (s->kind == L_FOR && (!s->sched.vector || is_narrow(f, s))) return false;
        if (loop_has_body(s) && !only_sums(f, s->body, body)) return false;
        bool own = loop_is_access(s) && s->buf->kind == LB_LOCAL && loop_declares(body, s->buf);
        if (s->kind == L_STORE && !own) return false;
        if (s->kind == L_ACC && !own && s->buf->rank) return false;
        bool row = s->kind == L_LOAD && s->buf->kind == LB_LOCAL && s->buf->rank == 0;
        if (s->kind == L_LOAD && s->buf->kind == LB_LOCAL && !own && !row) return false;
    }
    return true;
}

bool cu_is_columns(const CuFn *f, const LStmt *s) {
    if (s->kind != L_FOR || s->sched.parallel) return false;
    if (s->sched.vector) return true;
    if (f->k->threads.by && s->sched.share != LS_TEAM) return false;
    return f->sched.segments && s->range == LR_SEGMENT && only_sums(f, s->body, s->body);
}

bool cu_same_range(const LStmt *x, const LStmt *y) {
    if (x->range != y->range) return false;
    if (x->range == LR_EXTENT) return expr_eq(x->extent, y->extent);
    if (x->range == LR_SEGMENT) return x == y;
    return x->at == y->at && expr_eq(x->extent, y->extent) && expr_eq(x->n_chunks, y->n_chunks);
}

CuDistance cu_distance(const LStmt *loop, const LReg *r) {
    if (r == loop->var) return (CuDistance){true, L_FN_OP, NULL};
    const LStmt *d = r->def;
    if (d->kind != L_LET || (d->fn != L_FN_IADD && d->fn != L_FN_ISUB)) return (CuDistance){0};
    bool first = d->arg[0] == loop->var, second = d->arg[1] == loop->var && d->fn == L_FN_IADD;
    const LReg *by = first ? d->arg[1] : d->arg[0];
    if ((!first && !second) || loop_defines(loop->body, by) || by == loop->var)
        return (CuDistance){0};
    return (CuDistance){true, d->fn, by};
}

/* ---- runs -------------------------------------------------------------------------- */
typedef struct {
    const CuFn *f;
    CuRun run;     /* its statements, and what has been seen of them */
    int n_columns; /* vector loops */
} Run;

static bool in_run(const CuRun *r, const LBuf *b) {
    for (const LStmt *s = r->first; s != r->end; s = s->next) {
        if (s->kind == L_LOCAL && s->buf == b) return true;
    }
    return false;
}

/* A local array of the run has one column in each lane. */
bool cu_is_column_array(const CuRun *r, const LBuf *b) {
    return b->kind == LB_LOCAL && b->rank >= 1 && in_run(r, b);
}

/* One index follows the column, the others nothing in the vector loop. */
static bool is_in_column(const LStmt *s, const LStmt *loop) {
    int n = 0;
    for (int i = 0; i < s->buf->rank; i++) {
        if (cu_distance(loop, s->idx[i]).ok)
            n++;
        else if (s->idx[i] == loop->var || loop_defines(loop->body, s->idx[i]))
            return false;
    }
    return n == 1;
}

bool cu_run_has(const CuRun *r, const LStmt *s) {
    for (const LStmt *at = r->first; at != r->end; at = at->next) {
        if (at == s || (loop_has_body(at) && loop_has(at->body, s))) return true;
    }
    return false;
}

bool cu_is_inner(const CuRun *r, const LBuf *b) {
    for (const LStmt *s = r->first; s != r->end; s = s->next) {
        if (loop_has_body(s) && loop_declares(s->body, b)) return true;
    }
    return false;
}

bool cu_follows_column(const LStmt *s, const LStmt *loop) {
    for (int i = 0; i < s->buf->rank; i++)
        if (s->idx[i] == loop->var || loop_defines(loop->body, s->idx[i])) return true;
    return false;
}

static bool column_access(Run *r, const LStmt *s, const LStmt *loop) {
    const LBuf *b = s->buf;
    if (b->kind == LB_LOCAL && loop_declares(loop->body, b)) return true; /* the thread's own */
    if (cu_is_column_array(&r->run, b)) return is_in_column(s, loop);
    if (b->kind == LB_LOCAL && in_run(&r->run, b)) return s->kind == L_LOAD;
    if (s->kind == L_LOAD) return b->kind != LB_LOCAL || b->rank == 0;
    if (b->kind == LB_LOCAL) {
        r->run.together |= cu_is_inner(&r->run, b);
        return s->kind == L_ACC && b->rank == 0;
    }
    return s->kind == L_ACC || cu_follows_column(s, loop);
}

static bool column_body(Run *r, const LStmt *s, const LStmt *loop) {
    for (; s; s = s->next) {
        if (s->kind == L_FOR && loop->range != LR_SEGMENT) return false;
        if (loop_is_access(s) && !column_access(r, s, loop)) return false;
        if (s->kind == L_LOCAL && s->buf->rank) return false;
        if (loop_has_body(s) && !column_body(r, s->body, loop)) return false;
    }
    return true;
}

static bool adds_columns(const CuFn *f, const LStmt *s, const LStmt *loop, const LBuf *b) {
    for (; s; s = s->next) {
        if (loop && s->kind == L_ACC && s->buf == b) return true;
        const LStmt *in = loop || cu_is_columns(f, s) ? s : NULL;
        if (loop_has_body(s) && adds_columns(f, s->body, in, b)) return true;
    }
    return false;
}

/* A loop of the run adds its columns to number b, which is done when the run is. */
static bool is_late(const Run *r, const LBuf *b) {
    for (const LStmt *s = r->run.first; s != r->run.end; s = s->next) {
        const LStmt *in = cu_is_columns(r->f, s) ? s : NULL;
        if (loop_has_body(s) && adds_columns(r->f, s->body, in, b)) return true;
    }
    return false;
}

/* Statements of a run outside its vector loops.  At its top they are moved before it, so they must
 * need nothing of it, unless threads go through it together: then they stand where they are, and
 * may make numbers of the row.  Deeper they may have locals of their own, and add to the row's. */
static bool scalar_access(Run *r, const LStmt *s, const LStmt *body) {
    const LBuf *b = s->buf;
    if (b->kind == LB_LOCAL && b->rank == 0 && !body) {
        r->run.together = true;
        return !is_late(r, b);
    }
    if (b->kind == LB_LOCAL && b->rank == 0 && body) {
        bool own = loop_declares(body, b);
        if (s->kind == L_ACC && !own) r->run.together = true;
        return own || s->kind != L_STORE;
    }
    return s->kind == L_LOAD && b->kind != LB_LOCAL && !b->written;
}

/* A sum over columns into a number of the entry: lanes can take them by turns, however many there
 * are. */
static bool is_dot(const LStmt *s, const LStmt *body) {
    for (; s; s = s->next) {
        if (s->kind == L_FOR || s->kind == L_STORE || s->kind == L_LOCAL) return false;
        if (s->kind == L_IF && !is_dot(s->body, body)) return false;
        if (!loop_is_access(s)) continue;
        bool local = s->buf->kind == LB_LOCAL;
        if (local && s->buf->rank) return false;
        if (s->kind == L_ACC && !(local && loop_declares(body, s->buf))) return false;
    }
    return true;
}

bool cu_is_dot(const CuRun *r, const LStmt *loop) {
    if (loop->kind != L_FOR || !loop->sched.vector || loop->range != LR_EXTENT) return false;
    for (const LStmt *s = r->first; s != r->end; s = s->next) {
        if (s->kind == L_FOR && s != loop && loop_has(s->body, loop))
            return is_dot(loop->body, s->body);
    }
    return false;
}

bool cu_takes_turns(const CuRun *r, const LStmt *loop) {
    if (!r->dots) return false;
    return !cu_same_range(loop, r->range) || (!r->together && cu_is_dot(r, loop));
}

/* The loop whose columns lanes have: not one that they can take by turns, if there is another. */
static const LStmt *find_range(const CuFn *f, const CuRun *r, const LStmt *s, const LStmt *end,
                               bool dots) {
    for (const LStmt *in; s && s != end; s = s->next) {
        bool columns = cu_is_columns(f, s);
        if (columns && (dots ? is_narrow(f, s) : !cu_is_dot(r, s))) return s;
        if (!columns && loop_has_body(s) && (in = find_range(f, r, s->body, NULL, dots))) return in;
    }
    return NULL;
}

static bool run_statement(Run *r, const LStmt *s, const LStmt *body);

static bool run_body(Run *r, const LStmt *s, const LStmt *body) {
    for (; s; s = s->next)
        if (!run_statement(r, s, body)) return false;
    return true;
}

/* A choice of the row's: nothing in it is the threads' own. */
static bool is_plain_if(const LStmt *s) {
    if (s->kind != L_IF) return false;
    for (const LStmt *in = s->body; in; in = in->next)
        if (in->kind == L_LOCAL || loop_has_body(in)) return false;
    return true;
}

/* body: of the outermost loop or `if` of the run around s; NULL = s is at the run's top */
static bool run_statement(Run *r, const LStmt *s, const LStmt *body) {
    if (s->kind == L_LOCAL && s->buf->rank == 0 && !body) r->run.together = true;
    if (s->kind == L_LOCAL) return !body || s->buf->rank == 0;
    if (is_plain_if(s) && !body) return run_body(r, s->body, NULL);
    if (s->kind == L_LET) return true;
    if (loop_is_access(s)) return scalar_access(r, s, body);
    if (cu_is_columns(r->f, s)) {
        r->n_columns++;
        if (!r->run.range) r->run.range = s;
        bool same = cu_same_range(s, r->run.range), dot = cu_is_dot(&r->run, s);
        if (same && (!dot || is_narrow(r->f, s))) return column_body(r, s->body, s);
        r->run.dots = true;
        return dot;
    }
    return run_body(r, s->body, body ? body : s->body);
}

static bool uses_columns(const CuFn *f, const LStmt *s) {
    for (; s; s = s->next)
        if (cu_is_columns(f, s) || (loop_has_body(s) && uses_columns(f, s->body))) return true;
    return false;
}

static bool is_run(Run *r) {
    CuRun *run = &r->run;
    run->range = find_range(r->f, run, run->first, run->end, false);
    if (!run->range) run->range = find_range(r->f, run, run->first, run->end, true);
    for (const LStmt *s = run->first; s != run->end; s = s->next) {
        if (!run_statement(r, s, NULL)) return false;
    }
    bool alone = run->first->next == run->end && cu_is_columns(r->f, run->first);
    if (r->n_columns == 0 || (run->together && !is_narrow(r->f, run->range))) return false;
    return run->range->range != LR_SEGMENT || alone;
}

static bool arrays_end_here(const CuRun *r) {
    for (const LStmt *s = r->first; s->next != r->end; s = s->next)
        if (s->kind == L_LOCAL && s->buf->rank && loop_count_accesses(r->end, s->buf)) return false;
    return true;
}

bool cu_find_run(const CuFn *f, const LStmt *s, CuRun *out) {
    bool found = false;
    bool may_begin =
        s->kind == L_LOCAL ? s->buf->rank >= 1 : loop_has_body(s) && uses_columns(f, s);
    for (const LStmt *e = s; may_begin && e; e = e->next) {
        bool writes = e->kind == L_STORE || e->kind == L_ACC;
        if (writes && (e->buf->kind != LB_LOCAL || e->buf->rank)) break;
        if (!loop_has_body(e)) continue;
        Run r = {.f = f, .run = {.first = s, .end = e->next}};
        if (!is_run(&r) || !arrays_end_here(&r.run)) continue;
        r.run.flat = s == e && cu_is_columns(f, s);
        *out = r.run;
        found = true;
    }
    return found;
}
