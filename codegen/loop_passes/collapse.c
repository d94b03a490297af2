/* Loops that end a row and write disjoint elements become part of the parallel loop's index.
 *
 *     for %v in N parallel {                   for %v in N parallel {
 *       scalars of %v                            scalars of %v
 *       for %h in 8 { y[%v, %h] = .. }    =>     for %h in 8 collapse { y[%v, %h] = .. }
 *     }                                        }
 *
 * (OpenMP's word.)  All before such a loop is cheap, and nothing but it has effects.  Vector loops
 * are left to lanes, if a team may have the row. */
#include "codegen/loop_passes/loops.h"
#include "passes/rewrite.h"

/* Whether register r is the constant n. */
static bool is_constant(const LReg *r, int64_t n) {
    const LStmt *d = r->def;
    int64_t size;
    return d->kind == L_LET && d->fn == L_FN_SIZE && expr_is_const(d->size, &size) && size == n;
}

/* Whether register r is the variable of a loop with at most n iterations, so 0 <= r < n. */
static bool is_loop_variable_below(const LReg *r, int64_t n) {
    const LStmt *d = r->def;
    int64_t extent;
    return d->kind == L_FOR && d->range == LR_EXTENT && expr_is_const(d->extent, &extent) &&
           extent <= n;
}

/* Whether register r is `factor` times the constant n. */
static bool is_product_of(const LReg *r, const LReg *factor, int64_t n) {
    const LStmt *d = r->def;
    if (d->kind != L_LET || d->fn != L_FN_IMUL) return false;
    return (d->arg[0] == factor && is_constant(d->arg[1], n)) ||
           (d->arg[1] == factor && is_constant(d->arg[0], n));
}

/* Whether index x lies in the block of the dimension that belongs to one iteration of the loop: x =
 * i * n + c with c < n, where n = dim / extent. */
static bool is_in_own_block(const LReg *x, const LStmt *loop, const Expr *dim) {
    const LStmt *d = x->def;
    int64_t size, n;
    if (!expr_is_const(dim, &size) || !expr_is_const(loop->extent, &n) || n == 0 || size % n)
        return false;
    if (d->kind != L_LET || d->fn != L_FN_IADD) return false;
    n = size / n;
    return (is_product_of(d->arg[0], loop->var, n) && is_loop_variable_below(d->arg[1], n)) ||
           (is_product_of(d->arg[1], loop->var, n) && is_loop_variable_below(d->arg[0], n));
}

/* Whether different iterations of `loop` access different elements of every buffer that the kernel
 * writes. Each access must use the loop variable at one fixed dimension, or an index in the
 * iteration's own block of that dimension. index_dim[buffer id] is what was found so far: -1 =
 * nothing, i = the variable is index i, MAX_RANK + i = index i is in its block. */
static bool accesses_are_disjoint(const LStmt *s, const LStmt *loop, int *index_dim) {
    for (; s; s = s->next) {
        if (loop_has_body(s) && !accesses_are_disjoint(s->body, loop, index_dim)) return false;
        if (!loop_is_access(s) || s->buf->kind == LB_LOCAL || !s->buf->written) continue;
        int *known = &index_dim[s->buf->id], position = -1;
        for (int i = 0; i < s->buf->rank; i++) {
            if (s->idx[i] == loop->var && (*known < 0 || *known == i)) position = i;
            if (*known >= 0 && *known != MAX_RANK + i) continue;
            if (is_in_own_block(s->idx[i], loop, s->buf->dim[i])) position = MAX_RANK + i;
        }
        if (position < 0) return false;
        *known = position;
    }
    return true;
}

/* The loop with constant range that ends the statement list, if only value definitions stand before
 * it; NULL = there is none. */
static LStmt *last_loop(LStmt *s) {
    while (s && loop_is_value(s)) s = s->next;
    bool is_last_loop = s && s->kind == L_FOR && !s->next && s->range == LR_EXTENT;
    return is_last_loop ? s : NULL;
}

/* Whether a statement of the list loads from a buffer that the kernel writes. */
static bool loads_written(const LStmt *s) {
    for (; s; s = s->next)
        if (s->kind == L_LOAD && s->buf->written) return true;
    return false;
}

/* Why loop l, which ends the body of the parallel loop, cannot become part of its index; NULL: it
 * can. */
static const char *collapse_fault(Arena *a, const LKernel *k, const LStmt *body, const LStmt *l,
                                  bool with_vector_loops) {
    if (loads_written(body)) return "what the kernel writes is read before it";
    if (l->sched.vector && !with_vector_loops) return "lanes have its columns";
    int *index_dim = NEWN(a, int, k->bufs.n + 1);
    for (int i = 0; i < k->bufs.n; i++) index_dim[i] = -1;
    return accesses_are_disjoint(l->body, l, index_dim)
               ? NULL
               : "its iterations write, or read, elements of others";
}

LStmt *loop_may_collapse(Arena *a, const LKernel *k, LStmt *body, bool with_vector_loops) {
    LStmt *l = last_loop(body);
    return l && !collapse_fault(a, k, body, l, with_vector_loops) ? l : NULL;
}

/* Removes the mark `collapse` from all loops of the list. */
static void clear_marks(LStmt *s) {
    for (; s; s = s->next) {
        s->sched.collapse = false;
        if (loop_has_body(s)) clear_marks(s->body);
    }
}

/* Marks the loops that can become part of the parallel loop's index; returns how many. */
int loop_collapse(Arena *a, LKernel *k, bool with_vector_loops) {
    LStmt *body = loop_parallel(k) ? loop_parallel(k)->body : NULL;
    int n = 0;
    clear_marks(k->body);
    for (LStmt *l; n < LOOP_COLLAPSE_MAX && (l = loop_may_collapse(a, k, body, with_vector_loops));
         n++) {
        l->sched.collapse = true;
        body = l->body;
    }
    return n;
}

/* Writes a remark on the innermost loop that cannot be collapsed, with the reason. */
static void remark_not_collapsed(PassCtx *p, Loops *l, LKernel *k, int n) {
    LStmt **row = loop_row_list(k), *last = row ? last_loop(*row) : NULL;
    const char *why = n == LOOP_COLLAPSE_MAX ? "there are four"
                      : last                 ? collapse_fault(l->a, k, *row, last, false)
                                             : NULL;
    if (last && why)
        pass_refusal(p, last->span, "collapse", "%s: not the loop over %s: %s", k->name,
                     loop_range_text(l->a, last), why);
}

/* Runs the pass: marks the loops that become part of the parallel loop's index, in each kernel
 * without a schedule. */
static bool run_collapse(PassCtx *p, Loops *l) {
    for (int i = 0; i < l->k.n && l->on->columns; i++) {
        LKernel *k = l->k.v[i];
        if (k->threads.kind) continue;
        int n = loop_collapse(l->a, k, false);
        if (n) pass_remark(p, k->span, "collapse", "%s: %d loops", k->name, n);
        remark_not_collapsed(p, l, k, n);
    }
    return true;
}

const Pass loop_pass_collapse = {
    .name = "collapse",
    .summary = "loops that end a row are part of the parallel loop's index",
    .run_loops = run_collapse,
};
