/* Which statements of a row share columns (`columns`, codegen/loop_passes/fuse_columns.c).
 *
 * All their vector loops have one range, but for sums that an entry needs: lanes take the columns
 * of these by turns.  Where a number of the row is made in the midst of it, of entries or of other
 * numbers, all threads go through the statements once, each lane having all of its columns in
 * registers; then anything may stand between the loops that threads can do alike. */
#include "codegen/loop_passes/team.h"

/* ---- ranges and registers ---------------------------------------------------------- */
/* Whether the lanes of a way can hold all columns of the range at once. */
bool loop_fits_lanes_at_once(const LoopTeam *t, const LStmt *range) {
    int64_t n;
    return range->range == LR_EXTENT && expr_is_const(range->extent, &n) &&
           loop_fits_lanes(t->on, n, t->columns);
}

/* The same for the statements s of the loop `body`. */
static bool only_sums(const LoopTeam *t, const LStmt *s, const LStmt *body) {
    for (; s; s = s->next) {
        if (s->kind == L_FOR && (!s->sched.vector || loop_fits_lanes_at_once(t, s))) return false;
        if (loop_has_body(s) && !only_sums(t, s->body, body)) return false;
        bool own = loop_is_access(s) && s->buf->kind == LB_LOCAL && loop_declares(body, s->buf);
        if (s->kind == L_STORE && !own) return false;
        if (s->kind == L_ACC && !own && s->buf->rank) return false;
        bool row = s->kind == L_LOAD && s->buf->kind == LB_LOCAL && s->buf->rank == 0;
        if (s->kind == L_LOAD && s->buf->kind == LB_LOCAL && !own && !row) return false;
    }
    return true;
}

/* Whether only sums leave a loop over the entries of a segment. Then its entries can go to threads
 * as columns do. A loop over columns inside it is run by each thread alone, unless the lanes could
 * have all columns. */
bool loop_only_sums_leave(const LoopTeam *t, const LStmt *loop) {
    return only_sums(t, loop->body, loop->body);
}

/* Whether the loop's iterations are divided among lanes, or among all threads of a team. */
bool loop_is_columns(const LStmt *s) {
    if (s->kind != L_FOR || s->sched.parallel) return false;
    return s->sched.vector || (s->range == LR_SEGMENT && s->sched.share == LS_TEAM);
}

/* Whether two loops have the same range. */
bool loop_same_range(const LStmt *x, const LStmt *y) {
    if (x->range != y->range) return false;
    if (x->range == LR_EXTENT) return expr_eq(x->extent, y->extent);
    if (x->range == LR_SEGMENT) return x == y;
    return x->at == y->at && expr_eq(x->extent, y->extent) && expr_eq(x->n_chunks, y->n_chunks);
}

/* How index r follows from the variable of the loop: equal to it, or at a constant distance. */
LoopDistance loop_column_distance(const LStmt *loop, const LReg *r) {
    if (r == loop->var) return (LoopDistance){true, L_FN_OP, NULL};
    const LStmt *d = r->def;
    if (d->kind != L_LET || (d->fn != L_FN_IADD && d->fn != L_FN_ISUB)) return (LoopDistance){0};
    bool first = d->arg[0] == loop->var, second = d->arg[1] == loop->var && d->fn == L_FN_IADD;
    const LReg *by = first ? d->arg[1] : d->arg[0];
    if ((!first && !second) || loop_defines(loop->body, by) || by == loop->var)
        return (LoopDistance){0};
    return (LoopDistance){true, d->fn, by};
}

/* ---- what shares columns -------------------------------------------------------------------- */
/* The check of a candidate region. */
typedef struct {
    const LoopTeam *t;
    LoopColumns of; /* the statements, and what has been seen of them */
    int n_columns;  /* vector loops */
} Varying;

/* Whether the local b is declared in the region's own list. */
static bool is_declared_in(const LoopColumns *r, const LBuf *b) {
    for (const LStmt *s = r->first; s != r->end; s = s->next) {
        if (s->kind == L_LOCAL && s->buf == b) return true;
    }
    return false;
}

/* Whether b is a local array declared in the region: each lane has its own columns of it in
 * registers. */
bool loop_is_column_array(const LoopColumns *r, const LBuf *b) {
    return b->kind == LB_LOCAL && b->rank >= 1 && is_declared_in(r, b);
}

/* Whether exactly one index of the access follows the column, and the others are constant in the
 * column loop. */
static bool is_in_column(const LStmt *s, const LStmt *loop) {
    int n = 0;
    for (int i = 0; i < s->buf->rank; i++) {
        if (loop_column_distance(loop, s->idx[i]).ok)
            n++;
        else if (s->idx[i] == loop->var || loop_defines(loop->body, s->idx[i]))
            return false;
    }
    return n == 1;
}

/* Whether s is a statement of the region, or inside one. */
bool loop_region_has(const LoopColumns *r, const LStmt *s) {
    for (const LStmt *at = r->first; at != r->end; at = at->next) {
        if (at == s || (loop_has_body(at) && loop_has(at->body, s))) return true;
    }
    return false;
}

/* Whether the local b is declared inside a loop of the region. */
bool loop_is_declared_inside(const LoopColumns *r, const LBuf *b) {
    for (const LStmt *s = r->first; s != r->end; s = s->next) {
        if (loop_has_body(s) && loop_declares(s->body, b)) return true;
    }
    return false;
}

/* Whether an index of the access depends on the column. */
bool loop_follows_column(const LStmt *s, const LStmt *loop) {
    for (int i = 0; i < s->buf->rank; i++)
        if (s->idx[i] == loop->var || loop_defines(loop->body, s->idx[i])) return true;
    return false;
}

/* Whether an access inside a column loop can be done by the lane that has the column. */
static bool check_column_access(Varying *r, const LStmt *s, const LStmt *loop) {
    const LBuf *b = s->buf;
    if (b->kind == LB_LOCAL && loop_declares(loop->body, b)) return true; /* the thread's own */
    if (loop_is_column_array(&r->of, b)) return is_in_column(s, loop);
    if (b->kind == LB_LOCAL && is_declared_in(&r->of, b)) return s->kind == L_LOAD;
    if (s->kind == L_LOAD) return b->kind != LB_LOCAL || b->rank == 0;
    if (b->kind == LB_LOCAL) {
        r->of.one_pass |= loop_is_declared_inside(&r->of, b);
        return s->kind == L_ACC && b->rank == 0;
    }
    return s->kind == L_ACC || loop_follows_column(s, loop);
}

/* Whether all statements of a column loop can be done by the lane that has the column. */
static bool check_column_body(Varying *r, const LStmt *s, const LStmt *loop) {
    for (; s; s = s->next) {
        if (s->kind == L_FOR && loop->range != LR_SEGMENT) return false;
        if (loop_is_access(s) && !check_column_access(r, s, loop)) return false;
        if (s->kind == L_LOCAL && s->buf->rank) return false;
        if (loop_has_body(s) && !check_column_body(r, s->body, loop)) return false;
    }
    return true;
}

/* Whether a column loop among the statements accumulates into b. */
static bool accumulates_columns(const LoopTeam *t, const LStmt *s, const LStmt *loop,
                                const LBuf *b) {
    for (; s; s = s->next) {
        if (loop && s->kind == L_ACC && s->buf == b) return true;
        const LStmt *in = loop || loop_is_columns(s) ? s : NULL;
        if (loop_has_body(s) && accumulates_columns(t, s->body, in, b)) return true;
    }
    return false;
}

/* Whether columns are summed into scalar b by a loop nested in the region: the sum is complete only
 * at the region's end. */
static bool is_reduced_at_end(const Varying *r, const LBuf *b) {
    for (const LStmt *s = r->of.first; s != r->of.end; s = s->next) {
        const LStmt *in = loop_is_columns(s) ? s : NULL;
        if (loop_has_body(s) && accumulates_columns(r->t, s->body, in, b)) return true;
    }
    return false;
}

/* Whether an access outside the column loops is possible there. In the region's own list it is
 * moved ahead of all others, so it must not depend on them, unless the region is one pass: then it
 * stays, and may make scalars of the row. Deeper there may be local scalars, and accumulation into
 * the row's. */
static bool check_scalar_access(Varying *r, const LStmt *s, const LStmt *body) {
    const LBuf *b = s->buf;
    if (b->kind == LB_LOCAL && b->rank == 0 && !body) {
        r->of.one_pass = true;
        return !is_reduced_at_end(r, b);
    }
    if (b->kind == LB_LOCAL && b->rank == 0 && body) {
        bool own = loop_declares(body, b);
        if (s->kind == L_ACC && !own) r->of.one_pass = true;
        return own || s->kind != L_STORE;
    }
    return s->kind == L_LOAD && b->kind != LB_LOCAL && !b->written;
}

/* Whether the loop body only sums over columns into a scalar of the entry: its lanes can take the
 * columns round robin, however many there are. */
static bool is_dot_product(const LStmt *s, const LStmt *body) {
    for (; s; s = s->next) {
        if (s->kind == L_FOR || s->kind == L_STORE || s->kind == L_LOCAL) return false;
        if (s->kind == L_IF && !is_dot_product(s->body, body)) return false;
        if (!loop_is_access(s)) continue;
        bool local = s->buf->kind == LB_LOCAL;
        if (local && s->buf->rank) return false;
        if (s->kind == L_ACC && !(local && loop_declares(body, s->buf))) return false;
    }
    return true;
}

/* Whether the loop is such a sum inside a loop of the region. */
static bool is_dot_product_loop(const LoopColumns *r, const LStmt *loop) {
    if (loop->kind != L_FOR || !loop->sched.vector || loop->range != LR_EXTENT) return false;
    for (const LStmt *s = r->first; s != r->end; s = s->next) {
        if (s->kind == L_FOR && s != loop && loop_has(s->body, loop))
            return is_dot_product(loop->body, s->body);
    }
    return false;
}

/* Whether the lanes take the loop's columns round robin, since they do not hold them all. */
bool loop_is_round_robin(const LoopColumns *r, const LStmt *loop) {
    if (!r->round_robin) return false;
    return !loop_same_range(loop, r->range) || (!r->one_pass && is_dot_product_loop(r, loop));
}

/* The column loop whose columns the lanes hold. dots: among those that could also go round robin.
 */
static const LStmt *find_range(const LoopTeam *t, const LoopColumns *r, const LStmt *s,
                               const LStmt *end, bool dots) {
    for (const LStmt *in; s && s != end; s = s->next) {
        bool columns = loop_is_columns(s);
        if (columns && (dots ? loop_fits_lanes_at_once(t, s) : !is_dot_product_loop(r, s)))
            return s;
        if (!columns && loop_has_body(s) && (in = find_range(t, r, s->body, NULL, dots))) return in;
    }
    return NULL;
}

static bool check_stmt(Varying *r, const LStmt *s, const LStmt *body);

/* Checks a list of statements. */
static bool check_list(Varying *r, const LStmt *s, const LStmt *body) {
    for (; s; s = s->next)
        if (!check_stmt(r, s, body)) return false;
    return true;
}

/* Whether s is an `if` with neither locals nor loops in it: all threads do the same there. */
static bool is_plain_if(const LStmt *s) {
    if (s->kind != L_IF) return false;
    for (const LStmt *in = s->body; in; in = in->next)
        if (in->kind == L_LOCAL || loop_has_body(in)) return false;
    return true;
}

/* Checks one statement of the region. body: of the outermost loop or `if` around s; NULL = s is in
 * the region's own list. */
static bool check_stmt(Varying *r, const LStmt *s, const LStmt *body) {
    if (s->kind == L_LOCAL && s->buf->rank == 0 && !body) r->of.one_pass = true;
    if (s->kind == L_LOCAL) return !body || s->buf->rank == 0;
    if (is_plain_if(s) && !body) return check_list(r, s->body, NULL);
    if (s->kind == L_LET) return true;
    if (loop_is_access(s)) return check_scalar_access(r, s, body);
    if (loop_is_columns(s)) {
        r->n_columns++;
        if (!r->of.range) r->of.range = s;
        bool same = loop_same_range(s, r->of.range), dot = is_dot_product_loop(&r->of, s);
        if (same && (!dot || loop_fits_lanes_at_once(r->t, s)))
            return check_column_body(r, s->body, s);
        r->of.round_robin = true;
        return dot;
    }
    return check_list(r, s->body, body ? body : s->body);
}

/* Whether a column loop is among the statements. */
static bool uses_columns(const LoopTeam *t, const LStmt *s) {
    for (; s; s = s->next)
        if (loop_is_columns(s) || (loop_has_body(s) && uses_columns(t, s->body))) return true;
    return false;
}

/* Whether the statements can form a region; fills in its properties. */
static bool check_region(Varying *r) {
    LoopColumns *c = &r->of;
    c->range = find_range(r->t, c, c->first, c->end, false);
    if (!c->range) c->range = find_range(r->t, c, c->first, c->end, true);
    for (const LStmt *s = c->first; s != c->end; s = s->next) {
        if (!check_stmt(r, s, NULL)) return false;
    }
    bool alone = c->first->next == c->end && loop_is_columns(c->first);
    if (r->n_columns == 0 || (c->one_pass && !loop_fits_lanes_at_once(r->t, c->range)))
        return false;
    return c->range->range != LR_SEGMENT || alone;
}

/* Whether no statement behind the region uses an array that is declared in it. */
static bool arrays_end_here(const LoopColumns *r) {
    for (const LStmt *s = r->first; s->next != r->end; s = s->next)
        if (s->kind == L_LOCAL && s->buf->rank && loop_count_accesses(r->end, s->buf)) return false;
    return true;
}

/* Fills in the range and properties of the region r->first .. r->end; false: one of the statements
 * cannot be in a region. */
bool loop_check_region(const LoopTeam *t, LoopColumns *r) {
    Varying l = {.t = t, .of = *r};
    l.of.one_pass = l.of.round_robin = false;
    if (!check_region(&l)) return false;
    *r = l.of;
    return true;
}

/* Finds the longest region that begins at s; false: there is none. */
bool loop_find_region(const LoopTeam *t, const LStmt *s, LoopColumns *out) {
    bool found = false;
    bool may_begin =
        s->kind == L_LOCAL ? s->buf->rank >= 1 : loop_has_body(s) && uses_columns(t, s);
    for (const LStmt *e = s; may_begin && e; e = e->next) {
        bool writes = e->kind == L_STORE || e->kind == L_ACC;
        if (writes && (e->buf->kind != LB_LOCAL || e->buf->rank)) break;
        if (!loop_has_body(e)) continue;
        Varying r = {.t = t, .of = {.first = s, .end = e->next}};
        if (!check_region(&r) || !arrays_end_here(&r.of)) continue;
        r.of.all_threads = s == e && loop_is_columns(s);
        *out = r.of;
        found = true;
    }
    return found;
}
