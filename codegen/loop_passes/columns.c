/* Which statements of a row share columns (`columns`, codegen/loop_passes/fuse_columns.c).
 *
 * All their vector loops have one range, but for sums that an entry needs: lanes take the columns
 * of these by turns.  Where a number of the row is made in the midst of it, of entries or of other
 * numbers, all threads go through the statements once, each lane having all of its columns in
 * registers; then anything may stand between the loops that threads can do alike. */
#include "codegen/loop_passes/team.h"

/* ---- ranges and registers ---------------------------------------------------------- */
bool loop_fits_lanes_at_once(const LoopTeam *t, const LStmt *range) {
    int64_t n;
    return range->range == LR_EXTENT && expr_is_const(range->extent, &n) &&
           loop_fits_lanes(t->on, n, t->columns);
}

/* Whether only sums leave the loop over entries: the statements s write nothing but variables of
 * the entry itself and accumulations into scalars. entry_body: the body of the loop over entries.
 */
static bool body_only_sums(const LoopTeam *t, const LStmt *s, const LStmt *entry_body) {
    for (; s; s = s->next) {
        if (s->kind == L_FOR && (!s->sched.vector || loop_fits_lanes_at_once(t, s))) return false;
        if (loop_has_body(s) && !body_only_sums(t, s->body, entry_body)) return false;
        bool is_entry_local =
            loop_is_access(s) && s->buf->kind == LB_LOCAL && loop_declares(entry_body, s->buf);
        if (s->kind == L_STORE && !is_entry_local) return false;
        if (s->kind == L_ACC && !is_entry_local && s->buf->rank) return false;
        bool is_row_scalar = s->kind == L_LOAD && s->buf->kind == LB_LOCAL && s->buf->rank == 0;
        if (s->kind == L_LOAD && s->buf->kind == LB_LOCAL && !is_entry_local && !is_row_scalar)
            return false;
    }
    return true;
}

bool loop_only_sums_leave(const LoopTeam *t, const LStmt *loop) {
    return body_only_sums(t, loop->body, loop->body);
}

bool loop_is_columns(const LStmt *s) {
    if (s->kind != L_FOR || s->sched.parallel) return false;
    return s->sched.vector || (s->range == LR_SEGMENT && s->sched.share == LS_TEAM);
}

bool loop_same_range(const LStmt *x, const LStmt *y) {
    if (x->range != y->range) return false;
    if (x->range == LR_EXTENT) return expr_eq(x->extent, y->extent);
    if (x->range == LR_SEGMENT) return x == y;
    return x->at == y->at && expr_eq(x->extent, y->extent) && expr_eq(x->n_chunks, y->n_chunks);
}

LoopDistance loop_column_distance(const LStmt *loop, const LReg *r) {
    if (r == loop->var) return (LoopDistance){true, L_FN_OP, NULL};
    const LStmt *definition = r->def;
    if (definition->kind != L_LET || (definition->fn != L_FN_IADD && definition->fn != L_FN_ISUB))
        return (LoopDistance){0};
    bool first = definition->arg[0] == loop->var,
         second = definition->arg[1] == loop->var && definition->fn == L_FN_IADD;
    const LReg *offset = first ? definition->arg[1] : definition->arg[0];
    if ((!first && !second) || loop_defines(loop->body, offset) || offset == loop->var)
        return (LoopDistance){0};
    return (LoopDistance){true, definition->fn, offset};
}

/* ---- what shares columns -------------------------------------------------------------------- */
/* The check of a candidate region. */
typedef struct {
    const LoopTeam *t;
    LoopColumns of; /* the statements, and what has been seen of them */
    int n_columns;  /* vector loops */
} RegionCheck;

/* Whether the local variable b is declared in the region's own statement list, not in a nested one.
 */
static bool is_declared_in_list(const LoopColumns *r, const LBuf *b) {
    for (const LStmt *s = r->first; s != r->end; s = s->next) {
        if (s->kind == L_LOCAL && s->buf == b) return true;
    }
    return false;
}

bool loop_is_column_array(const LoopColumns *r, const LBuf *b) {
    return b->kind == LB_LOCAL && b->rank >= 1 && is_declared_in_list(r, b);
}

/* Whether exactly one index of the access depends on the column, at a constant distance, and the
 * others are constant in the column loop. */
static bool has_one_column_index(const LStmt *s, const LStmt *loop) {
    int n_following = 0;
    for (int i = 0; i < s->buf->rank; i++) {
        if (loop_column_distance(loop, s->idx[i]).ok)
            n_following++;
        else if (s->idx[i] == loop->var || loop_defines(loop->body, s->idx[i]))
            return false;
    }
    return n_following == 1;
}

bool loop_region_has(const LoopColumns *r, const LStmt *s) {
    for (const LStmt *at = r->first; at != r->end; at = at->next) {
        if (at == s || (loop_has_body(at) && loop_has(at->body, s))) return true;
    }
    return false;
}

bool loop_is_declared_inside(const LoopColumns *r, const LBuf *b) {
    for (const LStmt *s = r->first; s != r->end; s = s->next) {
        if (loop_has_body(s) && loop_declares(s->body, b)) return true;
    }
    return false;
}

bool loop_follows_column(const LStmt *s, const LStmt *loop) {
    for (int i = 0; i < s->buf->rank; i++)
        if (s->idx[i] == loop->var || loop_defines(loop->body, s->idx[i])) return true;
    return false;
}

/* Whether an access inside a column loop can be done by the lane that has the column, without
 * touching what other lanes write. Notes what it requires of the region. */
static bool check_column_access(RegionCheck *check, const LStmt *s, const LStmt *loop) {
    const LBuf *b = s->buf;
    if (b->kind == LB_LOCAL && loop_declares(loop->body, b)) return true; /* the thread's own */
    if (loop_is_column_array(&check->of, b)) return has_one_column_index(s, loop);
    if (b->kind == LB_LOCAL && is_declared_in_list(&check->of, b)) return s->kind == L_LOAD;
    if (s->kind == L_LOAD) return b->kind != LB_LOCAL || b->rank == 0;
    if (b->kind == LB_LOCAL) {
        check->of.one_pass |= loop_is_declared_inside(&check->of, b);
        return s->kind == L_ACC && b->rank == 0;
    }
    return s->kind == L_ACC || loop_follows_column(s, loop);
}

/* Whether the lane that has the column can run all statements of a column loop. */
static bool check_column_body(RegionCheck *check, const LStmt *s, const LStmt *loop) {
    for (; s; s = s->next) {
        if (s->kind == L_FOR && loop->range != LR_SEGMENT) return false;
        if (loop_is_access(s) && !check_column_access(check, s, loop)) return false;
        if (s->kind == L_LOCAL && s->buf->rank) return false;
        if (loop_has_body(s) && !check_column_body(check, s->body, loop)) return false;
    }
    return true;
}

/* Whether a column loop among the statements accumulates into b. loop: the column loop around s, or
 * NULL. */
static bool accumulates_columns(const LoopTeam *t, const LStmt *s, const LStmt *loop,
                                const LBuf *b) {
    for (; s; s = s->next) {
        if (loop && s->kind == L_ACC && s->buf == b) return true;
        const LStmt *inner_loop = loop || loop_is_columns(s) ? s : NULL;
        if (loop_has_body(s) && accumulates_columns(t, s->body, inner_loop, b)) return true;
    }
    return false;
}

/* Whether columns are summed into scalar b by a loop of the region: the total is known only after
 * the region. */
static bool is_reduced_at_end(const RegionCheck *check, const LBuf *b) {
    for (const LStmt *s = check->of.first; s != check->of.end; s = s->next) {
        const LStmt *column_loop = loop_is_columns(s) ? s : NULL;
        if (loop_has_body(s) && accumulates_columns(check->t, s->body, column_loop, b)) return true;
    }
    return false;
}

/* Whether an access outside column loops is possible in the region. In the region's own list it
 * would be moved before the region, so it must not depend on its statements, unless lanes run
 * through the region only once: then it stays and may set scalars of the row. In nested loops it
 * may access scalars of the entry, or add to scalars of the row. */
static bool check_scalar_access(RegionCheck *check, const LStmt *s, const LStmt *body) {
    const LBuf *b = s->buf;
    if (b->kind == LB_LOCAL && b->rank == 0 && !body) {
        check->of.one_pass = true;
        return !is_reduced_at_end(check, b);
    }
    if (b->kind == LB_LOCAL && b->rank == 0 && body) {
        bool is_own = loop_declares(body, b);
        if (s->kind == L_ACC && !is_own) check->of.one_pass = true;
        return is_own || s->kind != L_STORE;
    }
    return s->kind == L_LOAD && b->kind != LB_LOCAL && !b->written;
}

/* Whether a column loop only adds up columns into a scalar of the entry (a dot product): lanes can
 * take its columns round robin, however many there are. */
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

/* Whether the loop is such a dot product over columns, inside a loop over entries of the region. */
static bool is_dot_product_loop(const LoopColumns *r, const LStmt *loop) {
    if (loop->kind != L_FOR || !loop->sched.vector || loop->range != LR_EXTENT) return false;
    for (const LStmt *s = r->first; s != r->end; s = s->next) {
        if (s->kind == L_FOR && s != loop && loop_has(s->body, loop))
            return is_dot_product(loop->body, s->body);
    }
    return false;
}

bool loop_is_round_robin(const LoopColumns *r, const LStmt *loop) {
    if (!r->round_robin) return false;
    return !loop_same_range(loop, r->range) || (!r->one_pass && is_dot_product_loop(r, loop));
}

/* The column loop whose range the region gets: lanes hold its columns. among_dot_products: take
 * only loops whose columns all fit the lanes; else skip dot products, whose columns could go round
 * robin. */
static const LStmt *find_region_range(const LoopTeam *t, const LoopColumns *r, const LStmt *s,
                                      const LStmt *end, bool among_dot_products) {
    for (const LStmt *found; s && s != end; s = s->next) {
        bool is_column_loop = loop_is_columns(s);
        if (is_column_loop &&
            (among_dot_products ? loop_fits_lanes_at_once(t, s) : !is_dot_product_loop(r, s)))
            return s;
        if (!is_column_loop && loop_has_body(s) &&
            (found = find_region_range(t, r, s->body, NULL, among_dot_products)))
            return found;
    }
    return NULL;
}

static bool check_statement(RegionCheck *r, const LStmt *s, const LStmt *body);

/* Checks a list of statements of the candidate region. body: the body of the outermost loop around
 * s, or NULL. */
static bool check_list(RegionCheck *check, const LStmt *s, const LStmt *body) {
    for (; s; s = s->next)
        if (!check_statement(check, s, body)) return false;
    return true;
}

/* Whether s is an `if` without local variables and loops: all threads run it alike. */
static bool is_plain_if(const LStmt *s) {
    if (s->kind != L_IF) return false;
    for (const LStmt *in = s->body; in; in = in->next)
        if (in->kind == L_LOCAL || loop_has_body(in)) return false;
    return true;
}

/* Checks one statement of the candidate region. body: the body of the outermost loop or `if` around
 * s; NULL = s is in the region's own list. */
static bool check_statement(RegionCheck *check, const LStmt *s, const LStmt *body) {
    if (s->kind == L_LOCAL && s->buf->rank == 0 && !body) check->of.one_pass = true;
    if (s->kind == L_LOCAL) return !body || s->buf->rank == 0;
    if (is_plain_if(s) && !body) return check_list(check, s->body, NULL);
    if (s->kind == L_LET) return true;
    if (loop_is_access(s)) return check_scalar_access(check, s, body);
    if (loop_is_columns(s)) {
        check->n_columns++;
        if (!check->of.range) check->of.range = s;
        bool same_range = loop_same_range(s, check->of.range),
             is_dot = is_dot_product_loop(&check->of, s);
        if (same_range && (!is_dot || loop_fits_lanes_at_once(check->t, s)))
            return check_column_body(check, s->body, s);
        check->of.round_robin = true;
        return is_dot;
    }
    return check_list(check, s->body, body ? body : s->body);
}

/* Whether a loop over feature columns is among the statements. */
static bool has_column_loop(const LoopTeam *t, const LStmt *s) {
    for (; s; s = s->next)
        if (loop_is_columns(s) || (loop_has_body(s) && has_column_loop(t, s->body))) return true;
    return false;
}

/* Whether the statements can form a region, whose loops over columns are done together; fills in
 * its range and properties. */
static bool check_candidate(RegionCheck *check) {
    LoopColumns *region = &check->of;
    region->range = find_region_range(check->t, region, region->first, region->end, false);
    if (!region->range)
        region->range = find_region_range(check->t, region, region->first, region->end, true);
    for (const LStmt *s = region->first; s != region->end; s = s->next) {
        if (!check_statement(check, s, NULL)) return false;
    }
    bool alone = region->first->next == region->end && loop_is_columns(region->first);
    if (check->n_columns == 0 ||
        (region->one_pass && !loop_fits_lanes_at_once(check->t, region->range)))
        return false;
    return region->range->range != LR_SEGMENT || alone;
}

/* Whether no statement after the region uses an array that is declared in it. */
static bool arrays_end_here(const LoopColumns *r) {
    for (const LStmt *s = r->first; s->next != r->end; s = s->next)
        if (s->kind == L_LOCAL && s->buf->rank && loop_count_accesses(r->end, s->buf)) return false;
    return true;
}

bool loop_check_region(const LoopTeam *t, LoopColumns *r) {
    RegionCheck check = {.t = t, .of = *r};
    check.of.one_pass = check.of.round_robin = false;
    if (!check_candidate(&check)) return false;
    *r = check.of;
    return true;
}

bool loop_find_region(const LoopTeam *t, const LStmt *s, LoopColumns *out) {
    bool found = false;
    bool may_begin =
        s->kind == L_LOCAL ? s->buf->rank >= 1 : loop_has_body(s) && has_column_loop(t, s);
    for (const LStmt *last = s; may_begin && last; last = last->next) {
        bool writes = loop_is_write(last);
        /* The team's first thread alone makes such a store: no region goes past it. */
        if (writes && (last->buf->kind != LB_LOCAL || last->buf->rank)) break;
        if (!loop_has_body(last)) continue;
        RegionCheck check = {.t = t, .of = {.first = s, .end = last->next}};
        if (!check_candidate(&check) || !arrays_end_here(&check.of)) continue;
        check.of.all_threads = s == last && loop_is_columns(s);
        *out = check.of;
        found = true;
    }
    return found;
}
