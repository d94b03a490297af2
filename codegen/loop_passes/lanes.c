/* What vectors of a processor may hold: which loops can run in lanes, and what it takes to have
 * several iterations side by side.  Passes ask before they write a schedule down, and
 * loop_verify() of any schedule that a text has. */
#include "codegen/loop_passes/loops.h"

enum { UNROLL_MAX = 16 };

/* The number of lanes for a loop of constant extent: the least power of two that holds it, or a
 * whole vector register. */
int loop_lanes_for(const Loops *l, int64_t extent) {
    int w = l->machine.lanes;
    while (w / 2 >= extent && w > 1) w /= 2;
    return w;
}

/* Whether a loop is among the statements. */
static bool has_loop(const LStmt *s) {
    for (; s; s = s->next)
        if (s->kind == L_FOR || (loop_has_body(s) && has_loop(s->body))) return true;
    return false;
}

/* Whether the loop is unrolled completely; *n: its extent. */
bool loop_is_unrolled_fully(const LStmt *s, int64_t *n) {
    if (!loop_extent(s, n) || s->sched.parallel) return false;
    return *n <= (s->sched.unroll ? UNROLL_MAX : has_loop(s->body) ? 1 : 4);
}

/* ---- in lanes of a loop's variable ------------------------------------------------------ */
/* Which registers differ between lanes of a loop. */
typedef struct {
    bool *varies; /* [n_regs] differs by lane */
    const LStmt *loop;
} Varying;

/* Whether one of the registers differs between lanes. */
static bool any_varies(const Varying *k, LReg *const *r, int n) {
    for (int i = 0; i < n; i++)
        if (k->varies[r[i]->id]) return true;
    return false;
}

static bool visit_list(Varying *k, const LStmt *s);

/* Records which registers of one statement differ between lanes; false: the statement cannot run in
 * lanes, e.g. since it would race. */
static bool visit_stmt(Varying *k, const LStmt *s) {
    bool at = loop_is_access(s) && any_varies(k, s->idx, s->buf->rank);
    bool private = s->buf && s->buf->kind == LB_LOCAL && loop_declares(k->loop->body, s->buf);
    switch (s->kind) {
    case L_LET:
        k->varies[s->dst->id] = any_varies(k, s->arg, s->n_arg);
        return true;
    case L_LOAD:
        k->varies[s->dst->id] = at || private;
        return !(at && private);
    case L_STORE:
        return private ? !at : at || !k->varies[s->src->id];
    case L_ACC:
        return !(private && at);
    case L_FOR:
        if (s->range != LR_EXTENT && k->varies[s->at->id]) return false;
        return visit_list(k, s->body);
    case L_IF:
    case L_COLUMNS:
        return visit_list(k, s->body);
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

/* The same for a list of statements. */
static bool visit_list(Varying *k, const LStmt *s) {
    for (; s; s = s->next)
        if (!visit_stmt(k, s)) return false;
    return true;
}

/* Finds the registers that differ between the lanes of the loop (a varying analysis); false: s or a
 * statement behind it cannot run in lanes. */
bool loop_find_varying(const LStmt *loop, const LStmt *s, bool *varies) {
    Varying k = {varies, loop};
    return visit_list(&k, s);
}

/* Whether the loop's iterations can run in vector lanes. */
bool loop_may_vectorise(Arena *a, const LKernel *k, const LStmt *loop) {
    bool *varies = NEWN(a, bool, (size_t)k->n_regs + 1);
    varies[loop->var->id] = true;
    return loop_find_varying(loop, loop->body, varies);
}

/* ---- scalars of several iterations ------------------------------------------------------ */
/* Whether the access has the same index in all iterations of the loop. */
bool loop_is_at_invariant_index(const LStmt *loop, const LStmt *s) {
    for (int i = 0; i < s->buf->rank; i++)
        if (s->idx[i] == loop->var || loop_defines(loop->body, s->idx[i])) return false;
    return true;
}

bool loop_writes(const LStmt *s, const LBuf *buf) {
    for (; s; s = s->next) {
        if ((s->kind == L_STORE || s->kind == L_ACC) && s->buf == buf) return true;
        if (loop_writes(s->body, buf)) return true;
    }
    return false;
}

/* Whether the statement is a scalar function of many instructions, such as exp. */
bool loop_is_heavy(const LStmt *s) {
    if (s->kind != L_LET) return false;
    if (s->fn == L_FN_RANDOM || s->fn == L_FN_LE_RANDOM) return true;
    return s->fn == L_FN_OP && op_cost(s->op) > 1;
}

/* Whether such a function is in s .. end. */
bool loop_has_heavy(const LStmt *s, const LStmt *end) {
    for (; s != end; s = s->next)
        if (loop_is_heavy(s)) return true;
    return false;
}

/* The first statement of the loop that is neither a value nor a load from memory that the loop only
 * reads; NULL = there is none. constant: local arrays, which are registers, may be read per lane.
 */
const LStmt *loop_end_of_prefix(const LStmt *loop, bool constant) {
    const LStmt *s = loop->body;
    for (; s; s = s->next) {
        if (s->kind == L_PREFETCH) continue;
        bool load = s->kind == L_LOAD && !loop_writes(loop->body, s->buf);
        if (load && s->buf->kind == LB_LOCAL)
            load = constant || loop_is_at_invariant_index(loop, s);
        if (!load && s->kind != L_LET) return s;
    }
    return NULL;
}

/* Whether the local b is declared in the loop's own list. */
bool loop_declares_directly(const LStmt *loop, const LBuf *b) {
    for (const LStmt *s = loop->body; s; s = s->next)
        if (s->kind == L_LOCAL && s->buf == b) return true;
    return false;
}

/* The dimension that the loop variable indexes in the access, or -1. */
static int index_dim(const LStmt *loop, const LStmt *s) {
    for (int i = 0; i < s->buf->rank; i++)
        if (s->idx[i] == loop->var) return i;
    return -1;
}

/* Whether iterations touch disjoint elements of b: every access has the loop variable at index
 * `at`. */
static bool accesses_are_disjoint(const LStmt *loop, const LStmt *s, const LBuf *b, int at) {
    for (; s; s = s->next) {
        if (loop_is_access(s) && s->buf == b && index_dim(loop, s) != at) return false;
        if (!accesses_are_disjoint(loop, s->body, b, at)) return false;
    }
    return true;
}

/* Whether the access keeps the loop's iterations independent. */
static bool access_is_independent(const LStmt *loop, const LStmt *s) {
    if (loop_declares_directly(loop, s->buf)) return s->buf->rank == 0;
    if (!loop_writes(loop->body, s->buf)) return true;
    int at = index_dim(loop, s);
    return at >= 0 && accesses_are_disjoint(loop, loop->body, s->buf, at);
}

/* Whether all statements keep the iterations independent. */
static bool body_is_independent(const LStmt *loop, const LStmt *s) {
    for (; s; s = s->next) {
        if (loop_is_access(s) && !access_is_independent(loop, s)) return false;
        if (s->kind == L_IF || (s->kind == L_LOCAL && s->buf->rank)) return false;
        if (loop_has_body(s) && !body_is_independent(loop, s->body)) return false;
    }
    return true;
}

/* Whether the elements that lanes write, or hold in registers, are contiguous. */
static bool lanes_are_contiguous(const LStmt *loop) {
    for (const LStmt *s = loop->body; s; s = s->next) {
        if (s->kind == L_TILE) return false;
        if (!loop_is_access(s) || loop_declares_directly(loop, s->buf)) continue;
        int at = index_dim(loop, s);
        bool free = s->kind == L_LOAD && (at < 0 || s->buf->kind != LB_LOCAL);
        if (!free && at != s->buf->rank - 1) return false;
    }
    return true;
}

/* Whether the loop's iterations fit the lanes of one vector. */
static bool fits_a_vector(const LStmt *s, int lanes) {
    int64_t n;
    return loop_is_unrolled_fully(s, &n) && n >= 2 && n <= lanes;
}

/* Why the scalars of the loop cannot be computed one iteration per lane; NULL: they can. */
const char *loop_expand_fault(const LStmt *s, int lanes) {
    if (!fits_a_vector(s, lanes)) return "there are more of them than lanes";
    if (!body_is_independent(s, s->body)) return "iterations share what they write";
    return lanes_are_contiguous(s) ? NULL : "what they write does not lie side by side";
}

/* Whether they can; prefix: those of the prefix only. */
bool loop_may_expand(const LStmt *s, int lanes, bool prefix) {
    if (prefix) return fits_a_vector(s, lanes) && loop_end_of_prefix(s, true);
    return !loop_expand_fault(s, lanes);
}

/* ---- two loops that are one row --------------------------------------------------------- */
/* Whether x or y is among the registers. */
static bool uses_either(LReg *const *r, int n, const LReg *x, const LReg *y) {
    for (int i = 0; i < n; i++)
        if (r[i] == x || r[i] == y) return true;
    return false;
}

/* h * LEN, where row h of LEN begins in all of them. */
static bool is_start(const LReg *r, const LStmt *outer, const LStmt *inner) {
    const LStmt *d = r->def;
    if (!d || d->kind != L_LET || d->fn != L_FN_IMUL) return false;
    const LReg *n = d->arg[0] == outer->var   ? d->arg[1]
                    : d->arg[1] == outer->var ? d->arg[0]
                                              : NULL;
    if (!n || !n->def || n->def->kind != L_LET || n->def->fn != L_FN_SIZE) return false;
    return expr_eq(n->def->size, inner->extent);
}

/* h * LEN + f: a place in all rows. */
static bool is_place(const LReg *r, const LStmt *outer, const LStmt *inner) {
    const LStmt *d = r->def;
    if (!d || d->kind != L_LET || d->fn != L_FN_IADD) return false;
    const LReg *x = d->arg[0], *y = d->arg[1];
    return (x == inner->var && is_start(y, outer, inner)) ||
           (y == inner->var && is_start(x, outer, inner));
}

static bool hangs_on_row(LReg *const *r, int n, const LStmt *outer, const LStmt *inner) {
    for (int i = 0; i < n; i++)
        if (is_start(r[i], outer, inner)) return true;
    return uses_either(r, n, outer->var, inner->var);
}

/* Whether the access is to element [.., outer, inner] of whole rows, which are contiguous in
 * memory. */
static bool is_contiguous_row(const LStmt *s, const LStmt *outer, const LStmt *inner) {
    int n = s->buf->rank;
    if (n >= 1 && is_place(s->idx[n - 1], outer, inner)) {
        for (int i = 0; i < n - 1; i++)
            if (is_place(s->idx[i], outer, inner)) return false;
        return !hangs_on_row(s->idx, n - 1, outer, inner);
    }
    return n >= 2 && s->idx[n - 2] == outer->var && s->idx[n - 1] == inner->var &&
           expr_eq(s->buf->dim[n - 1], inner->extent) && !hangs_on_row(s->idx, n - 2, outer, inner);
}

const LStmt *loop_flat_row(const LStmt *s) {
    const LStmt *in = s->body;
    while (in && in->kind == L_LET && in->fn == L_FN_IMUL) in = in->next;
    return in;
}

/* Whether the accesses of the two loops can be done as one loop over contiguous rows. */
static bool rows_are_contiguous(const LStmt *outer, const LStmt *inner) {
    for (const LStmt *s = outer->body; s != inner; s = s->next)
        if (!is_start(s->dst, outer, inner)) return false;
    for (const LStmt *s = inner->body; s; s = s->next) {
        if (s->kind == L_LET) {
            bool index = is_start(s->dst, outer, inner) || is_place(s->dst, outer, inner);
            if (!index && hangs_on_row(s->arg, s->n_arg, outer, inner)) return false;
            continue;
        }
        if (!loop_is_access(s)) return false;
        if (is_contiguous_row(s, outer, inner)) continue;
        if (s->kind != L_LOAD || hangs_on_row(s->idx, s->buf->rank, outer, inner)) return false;
    }
    return true;
}

/* Whether array b is accumulated only in such row loops: its vectors then have that width
 * everywhere. */
static bool accumulates_whole_rows(const LStmt *s, const LStmt *outer, const LStmt *inner,
                                   const LBuf *b) {
    for (; s; s = s->next) {
        bool row = outer && inner && loop_flat_row(outer) == inner && !inner->next &&
                   rows_are_contiguous(outer, inner);
        if (s->kind == L_ACC && s->buf == b && !row) return false;
        bool loop = s->kind == L_FOR;
        if (!accumulates_whole_rows(s->body, loop ? inner : outer, loop ? s : inner, b))
            return false;
    }
    return true;
}

/* Whether this holds for all local arrays of the loop. */
static bool locals_are_whole_rows(const LKernel *k, const LStmt *s) {
    for (; s; s = s->next)
        if (loop_is_access(s) && s->buf->kind == LB_LOCAL &&
            !accumulates_whole_rows(k->body, NULL, NULL, s->buf))
            return false;
    return true;
}

/* Why the loop and the vector loop in it cannot be flattened to one loop; NULL: they can. */
const char *loop_flat_fault(const LKernel *k, const LStmt *s, int lanes) {
    const LStmt *in = loop_flat_row(s);
    int64_t n, len;
    if (!loop_is_unrolled_fully(s, &n)) return "there are many rows, or only data know how many";
    if (!loop_extent(in, &len) || len < 1) return "only data know how long they are";
    if (len >= lanes || lanes % len) return "a row is no part of a vector";
    if (n * len % lanes) return "they are no whole vectors";
    if (n * len > (int64_t)lanes * LOOP_WHOLE_VECTORS_MAX) return "they are too many vectors";
    if (!rows_are_contiguous(s, in))
        return "rows have scalars of their own, or do not lie side by side";
    return locals_are_whole_rows(k, in->body) ? NULL : "a sum in registers is no row elsewhere";
}

/* Whether they can. */
bool loop_may_flatten(const LKernel *k, const LStmt *s, int lanes) {
    const LStmt *in = loop_flat_row(s);
    bool rows = in && !in->next && in->kind == L_FOR && in->sched.vector;
    return rows && !loop_flat_fault(k, s, lanes);
}

/* ---- what passes share ------------------------------------------------------------------ */
typedef bool Change(Loops *l, LKernel *k, LStmt *loop);

/* Runs `change` on each loop of a list that is not inside a vector loop. */
static bool each_outside_vectors(Loops *l, LKernel *k, LStmt *s, Change *change) {
    bool any = false;
    for (; s; s = s->next) {
        if (s->kind == L_FOR) any |= change(l, k, s);
        if (loop_has_body(s) && !s->sched.lanes) any |= each_outside_vectors(l, k, s->body, change);
    }
    return any;
}

bool loop_each_outside_vectors(Loops *l, LKernel *k, Change *change) {
    return each_outside_vectors(l, k, k->body, change);
}
