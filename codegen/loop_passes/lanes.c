/* What vectors of a processor may hold: which loops can run in lanes, and what it takes to have
 * several iterations side by side.  Passes ask before they write a schedule down, and
 * loop_verify() of any schedule that a text has. */
#include "codegen/loop_passes/loops.h"

enum { UNROLL_MAX = 16 };

int loop_lanes_for(const Loops *l, int64_t extent) {
    int lanes = l->machine.lanes;
    while (lanes / 2 >= extent && lanes > 1) lanes /= 2;
    return lanes;
}

bool loop_is_unrolled_fully(const LStmt *s, int64_t *extent) {
    if (!loop_extent(s, extent) || s->sched.parallel) return false;
    return *extent <= (s->sched.unroll ? UNROLL_MAX : loop_has_loop(s->body) ? 1 : 4);
}

/* ---- in lanes of a loop's variable ------------------------------------------------------ */
/* Which registers differ between lanes of a loop. */
typedef struct {
    bool *varies; /* [n_regs] differs by lane */
    const LStmt *loop;
} Varying;

/* Whether one of the n registers differs between vector lanes. */
static bool any_varies(const Varying *analysis, LReg *const *r, int n) {
    for (int i = 0; i < n; i++)
        if (analysis->varies[r[i]->id]) return true;
    return false;
}

static bool visit_list(Varying *k, const LStmt *s);

/* Records which registers of one statement differ between lanes; false: the statement cannot run in
 * lanes, for example since lanes would write the same element. */
static bool visit_statement(Varying *analysis, const LStmt *s) {
    bool index_varies = loop_is_access(s) && any_varies(analysis, s->idx, s->buf->rank);
    bool is_private =
        s->buf && s->buf->kind == LB_LOCAL && loop_declares(analysis->loop->body, s->buf);
    switch (s->kind) {
    case L_LET:
        analysis->varies[s->dst->id] = any_varies(analysis, s->arg, s->n_arg);
        return true;
    case L_LOAD:
        analysis->varies[s->dst->id] = index_varies || is_private;
        return !(index_varies && is_private);
    case L_STORE:
        return is_private ? !index_varies : index_varies || !analysis->varies[s->src->id];
    case L_ACC:
        return !(is_private && index_varies);
    case L_FOR:
        if (s->range != LR_EXTENT && analysis->varies[s->at->id]) return false;
        return visit_list(analysis, s->body);
    case L_IF:
    case L_COLUMNS:
        return visit_list(analysis, s->body);
    case L_LOCAL:
    case L_BARRIER:
    case L_FOLD:
        return true;
    case L_PREFETCH: /* of one iteration */
    case L_TILE:     /* has vectors of its own */
        return false;
    }
    return false;
}

/* Records which registers differ between lanes for a list of statements; false: one of them cannot
 * run in lanes. */
static bool visit_list(Varying *analysis, const LStmt *s) {
    for (; s; s = s->next)
        if (!visit_statement(analysis, s)) return false;
    return true;
}

bool loop_find_varying(const LStmt *loop, const LStmt *s, bool *varies) {
    Varying analysis = {varies, loop};
    return visit_list(&analysis, s);
}

bool loop_may_vectorise(Arena *a, const LKernel *k, const LStmt *loop) {
    bool *varies = NEWN(a, bool, (size_t)k->n_regs + 1);
    varies[loop->var->id] = true;
    return loop_find_varying(loop, loop->body, varies);
}

/* ---- scalars of several iterations ------------------------------------------------------ */
bool loop_is_at_invariant_index(const LStmt *loop, const LStmt *s) {
    for (int i = 0; i < s->buf->rank; i++)
        if (s->idx[i] == loop->var || loop_defines(loop->body, s->idx[i])) return false;
    return true;
}

bool loop_is_heavy(const LStmt *s) {
    if (s->kind != L_LET) return false;
    bool is_random = s->fn == L_FN_RANDOM || s->fn == L_FN_LE_RANDOM;
    return (s->fn == L_FN_OP || is_random) && op_cost(is_random ? OP_RANDOM : s->op) > 1;
}

bool loop_has_heavy(const LStmt *s, const LStmt *end) {
    for (; s != end; s = s->next)
        if (loop_is_heavy(s)) return true;
    return false;
}

const LStmt *loop_end_of_prefix(const LStmt *loop, bool with_local_arrays) {
    const LStmt *s = loop->body;
    for (; s; s = s->next) {
        if (s->kind == L_PREFETCH) continue;
        bool is_readable = s->kind == L_LOAD && !loop_writes(loop->body, s->buf);
        if (is_readable && s->buf->kind == LB_LOCAL)
            is_readable = with_local_arrays || loop_is_at_invariant_index(loop, s);
        if (!is_readable && s->kind != L_LET) return s;
    }
    return NULL;
}

bool loop_declares_directly(const LStmt *loop, const LBuf *b) {
    for (const LStmt *s = loop->body; s; s = s->next)
        if (s->kind == L_LOCAL && s->buf == b) return true;
    return false;
}

/* The dimension of the accessed buffer that the loop's variable indexes; -1 = none. */
static int dim_of_variable(const LStmt *loop, const LStmt *s) {
    for (int i = 0; i < s->buf->rank; i++)
        if (s->idx[i] == loop->var) return i;
    return -1;
}

/* Whether different iterations access different elements of b: every access has the loop's variable
 * as index `dim`. */
static bool accesses_are_disjoint(const LStmt *loop, const LStmt *s, const LBuf *b, int dim) {
    for (; s; s = s->next) {
        if (loop_is_access(s) && s->buf == b && dim_of_variable(loop, s) != dim) return false;
        if (!accesses_are_disjoint(loop, s->body, b, dim)) return false;
    }
    return true;
}

/* Whether this access leaves the loop's iterations independent of each other. */
static bool access_is_independent(const LStmt *loop, const LStmt *s) {
    if (loop_declares_directly(loop, s->buf)) return s->buf->rank == 0;
    if (!loop_writes(loop->body, s->buf)) return true;
    int dim = dim_of_variable(loop, s);
    return dim >= 0 && accesses_are_disjoint(loop, loop->body, s->buf, dim);
}

/* Whether the statements leave the loop's iterations independent of each other. */
static bool body_is_independent(const LStmt *loop, const LStmt *s) {
    for (; s; s = s->next) {
        if (loop_is_access(s) && !access_is_independent(loop, s)) return false;
        if (s->kind == L_IF || (s->kind == L_LOCAL && s->buf->rank)) return false;
        if (loop_has_body(s) && !body_is_independent(loop, s->body)) return false;
    }
    return true;
}

/* Whether the elements that neighbouring iterations write, or hold in local arrays, are neighbours
 * in memory. */
static bool lanes_are_contiguous(const LStmt *loop) {
    for (const LStmt *s = loop->body; s; s = s->next) {
        if (s->kind == L_TILE) return false;
        if (!loop_is_access(s) || loop_declares_directly(loop, s->buf)) continue;
        int dim = dim_of_variable(loop, s);
        bool is_free = s->kind == L_LOAD && (dim < 0 || s->buf->kind != LB_LOCAL);
        if (!is_free && dim != s->buf->rank - 1) return false;
    }
    return true;
}

/* Whether the loop is fully unrolled and its iterations fit the lanes of one vector. */
static bool fits_a_vector(const LStmt *s, int lanes) {
    int64_t n;
    return loop_is_unrolled_fully(s, &n) && n >= 2 && n <= lanes;
}

const char *loop_expand_fault(const LStmt *s, int lanes) {
    if (!fits_a_vector(s, lanes)) return "there are more of them than lanes";
    if (!body_is_independent(s, s->body)) return "iterations share what they write";
    return lanes_are_contiguous(s) ? NULL : "what they write does not lie side by side";
}

bool loop_may_expand(const LStmt *s, int lanes, bool prefix) {
    if (prefix) return fits_a_vector(s, lanes) && loop_end_of_prefix(s, true);
    return !loop_expand_fault(s, lanes);
}

/* ---- two loops that are one row --------------------------------------------------------- */
/* Whether x or y is among the n registers. */
static bool uses_either(LReg *const *r, int n, const LReg *x, const LReg *y) {
    for (int i = 0; i < n; i++)
        if (r[i] == x || r[i] == y) return true;
    return false;
}

/* Whether r = outer variable * inner extent: the index at which row number `outer variable` begins
 * in the flattened rows. */
static bool is_row_start(const LReg *r, const LStmt *outer, const LStmt *inner) {
    const LStmt *definition = r->def;
    if (!definition || definition->kind != L_LET || definition->fn != L_FN_IMUL) return false;
    const LReg *factor = definition->arg[0] == outer->var   ? definition->arg[1]
                         : definition->arg[1] == outer->var ? definition->arg[0]
                                                            : NULL;
    if (!factor || !factor->def || factor->def->kind != L_LET || factor->def->fn != L_FN_SIZE)
        return false;
    return expr_eq(factor->def->size, inner->extent);
}

/* Whether r = outer variable * inner extent + inner variable: the index of an element in the
 * flattened rows. */
static bool is_flat_index(const LReg *r, const LStmt *outer, const LStmt *inner) {
    const LStmt *definition = r->def;
    if (!definition || definition->kind != L_LET || definition->fn != L_FN_IADD) return false;
    const LReg *x = definition->arg[0], *y = definition->arg[1];
    return (x == inner->var && is_row_start(y, outer, inner)) ||
           (y == inner->var && is_row_start(x, outer, inner));
}

/* Whether one of the n registers is a loop variable of the two loops, or the start of a row. */
static bool depends_on_row(LReg *const *r, int n, const LStmt *outer, const LStmt *inner) {
    for (int i = 0; i < n; i++)
        if (is_row_start(r[i], outer, inner)) return true;
    return uses_either(r, n, outer->var, inner->var);
}

/* Whether the access is to element [.., outer, inner], or to the flattened index, so that the two
 * loops together walk through contiguous memory. */
static bool is_contiguous_row(const LStmt *s, const LStmt *outer, const LStmt *inner) {
    int n = s->buf->rank;
    if (n >= 1 && is_flat_index(s->idx[n - 1], outer, inner)) {
        for (int i = 0; i < n - 1; i++)
            if (is_flat_index(s->idx[i], outer, inner)) return false;
        return !depends_on_row(s->idx, n - 1, outer, inner);
    }
    return n >= 2 && s->idx[n - 2] == outer->var && s->idx[n - 1] == inner->var &&
           expr_eq(s->buf->dim[n - 1], inner->extent) &&
           !depends_on_row(s->idx, n - 2, outer, inner);
}

const LStmt *loop_flat_row(const LStmt *s) {
    const LStmt *inner = s->body;
    while (inner && inner->kind == L_LET && inner->fn == L_FN_IMUL) inner = inner->next;
    return inner;
}

/* Whether all accesses of the two loops go through contiguous rows, or are the same for all rows,
 * so that both can be run as one loop. */
static bool rows_are_contiguous(const LStmt *outer, const LStmt *inner) {
    for (const LStmt *s = outer->body; s != inner; s = s->next)
        if (!is_row_start(s->dst, outer, inner)) return false;
    for (const LStmt *s = inner->body; s; s = s->next) {
        if (s->kind == L_LET) {
            bool is_index =
                is_row_start(s->dst, outer, inner) || is_flat_index(s->dst, outer, inner);
            if (!is_index && depends_on_row(s->arg, s->n_arg, outer, inner)) return false;
            continue;
        }
        if (!loop_is_access(s)) return false;
        if (is_contiguous_row(s, outer, inner)) continue;
        if (s->kind != L_LOAD || depends_on_row(s->idx, s->buf->rank, outer, inner)) return false;
    }
    return true;
}

/* Whether array b is accumulated into only by such pairs of loops: its vectors then span several
 * rows everywhere. outer, inner: the two innermost loops around s. */
static bool accumulates_whole_rows(const LStmt *s, const LStmt *outer, const LStmt *inner,
                                   const LBuf *b) {
    for (; s; s = s->next) {
        bool is_row_loop = outer && inner && loop_flat_row(outer) == inner && !inner->next &&
                           rows_are_contiguous(outer, inner);
        if (s->kind == L_ACC && s->buf == b && !is_row_loop) return false;
        bool is_loop = s->kind == L_FOR;
        if (!accumulates_whole_rows(s->body, is_loop ? inner : outer, is_loop ? s : inner, b))
            return false;
    }
    return true;
}

/* Whether the loops around statements s may run as one, as far as local arrays go: each of these is
 * accumulated by whole rows alone (accumulates_whole_rows), which lie side by side as vectors do.
 */
static bool locals_are_whole_rows(const LKernel *k, const LStmt *s) {
    for (; s; s = s->next)
        if (loop_is_access(s) && s->buf->kind == LB_LOCAL &&
            !accumulates_whole_rows(k->body, NULL, NULL, s->buf))
            return false;
    return true;
}

const char *loop_flat_fault(const LKernel *k, const LStmt *s, int lanes) {
    const LStmt *inner = loop_flat_row(s);
    int64_t n_rows, row_length;
    if (!loop_is_unrolled_fully(s, &n_rows))
        return "there are many rows, or only data know how many";
    if (!loop_extent(inner, &row_length) || row_length < 1)
        return "only data know how long they are";
    if (row_length >= lanes || lanes % row_length) return "a row is no part of a vector";
    if (n_rows * row_length % lanes) return "they are no whole vectors";
    if (n_rows * row_length > (int64_t)lanes * LOOP_WHOLE_VECTORS_MAX)
        return "they are too many vectors";
    if (!rows_are_contiguous(s, inner))
        return "rows have scalars of their own, or do not lie side by side";
    return locals_are_whole_rows(k, inner->body) ? NULL : "a sum in registers is no row elsewhere";
}

bool loop_may_flatten(const LKernel *k, const LStmt *s, int lanes) {
    const LStmt *inner = loop_flat_row(s);
    bool is_row_loop = inner && !inner->next && inner->kind == L_FOR && inner->sched.vector;
    return is_row_loop && !loop_flat_fault(k, s, lanes);
}

/* ---- what passes share ------------------------------------------------------------------ */
typedef bool Change(Loops *l, LKernel *k, LStmt *loop);

/* Runs `change` on each loop of a list that is not inside a vector loop; true if one changed. */
static bool change_outside_vectors(Loops *l, LKernel *k, LStmt *s, Change *change) {
    bool changed = false;
    for (; s; s = s->next) {
        if (s->kind == L_FOR) changed |= change(l, k, s);
        if (loop_has_body(s) && !s->sched.lanes)
            changed |= change_outside_vectors(l, k, s->body, change);
    }
    return changed;
}

bool loop_each_outside_vectors(Loops *l, LKernel *k, Change *change) {
    return change_outside_vectors(l, k, k->body, change);
}
