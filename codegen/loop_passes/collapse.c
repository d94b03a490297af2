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

/* Whether r is the constant n. */
static bool is_size(const LReg *r, int64_t n) {
    const LStmt *d = r->def;
    int64_t size;
    return d->kind == L_LET && d->fn == L_FN_SIZE && expr_is_const(d->size, &size) && size == n;
}

/* Whether r is the variable of a loop with at most n iterations. */
static bool is_below(const LReg *r, int64_t n) {
    const LStmt *d = r->def;
    int64_t extent;
    return d->kind == L_FOR && d->range == LR_EXTENT && expr_is_const(d->extent, &extent) &&
           extent <= n;
}

/* Whether r is `kind` times the constant n. */
static bool is_product(const LReg *r, const LReg *by, int64_t n) {
    const LStmt *d = r->def;
    if (d->kind != L_LET || d->fn != L_FN_IMUL) return false;
    return (d->arg[0] == by && is_size(d->arg[1], n)) || (d->arg[1] == by && is_size(d->arg[0], n));
}

/* Whether index x lies in the block of the dimension that belongs to the loop's iteration alone: x
 * = i * n + c with c < n. */
static bool is_block_of(const LReg *x, const LStmt *loop, const Expr *dim) {
    const LStmt *d = x->def;
    int64_t size, n;
    if (!expr_is_const(dim, &size) || !expr_is_const(loop->extent, &n) || n == 0 || size % n)
        return false;
    if (d->kind != L_LET || d->fn != L_FN_IADD) return false;
    n = size / n;
    return (is_product(d->arg[0], loop->var, n) && is_below(d->arg[1], n)) ||
           (is_product(d->arg[1], loop->var, n) && is_below(d->arg[0], n));
}

/* Whether iterations of the loop touch disjoint elements of what the kernel writes: each access has
 * the loop variable at one and the same dimension of its buffer (place, by buffer), or an index in
 * the iteration's own block of it. */
static bool accesses_are_disjoint(const LStmt *s, const LStmt *loop, int *index_dim) {
    for (; s; s = s->next) {
        if (loop_has_body(s) && !accesses_are_disjoint(s->body, loop, index_dim)) return false;
        if (!loop_is_access(s) || s->buf->kind == LB_LOCAL || !s->buf->written) continue;
        int *p = &index_dim[s->buf->id], at = -1;
        for (int i = 0; i < s->buf->rank; i++) {
            if (s->idx[i] == loop->var && (*p < 0 || *p == i)) at = i;
            if (*p >= 0 && *p != MAX_RANK + i) continue;
            if (is_block_of(s->idx[i], loop, s->buf->dim[i])) at = MAX_RANK + i;
        }
        if (at < 0) return false;
        *p = at;
    }
    return true;
}

/* The loop that ends the list, if only values stand before it; or NULL. */
static LStmt *last_loop(LStmt *s) {
    while (s && loop_is_value(s)) s = s->next;
    bool plain = s && s->kind == L_FOR && !s->next && s->range == LR_EXTENT;
    return plain ? s : NULL;
}

/* Whether a statement of the list loads what the kernel writes. */
static bool loads_written(const LStmt *s) {
    for (; s; s = s->next)
        if (s->kind == L_LOAD && s->buf->written) return true;
    return false;
}

/* Why loop l, which ends the row, cannot be collapsed with the parallel loop; NULL: it can. */
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

/* The loop that ends `body` and can be collapsed with the parallel loop; or NULL. */
LStmt *loop_may_collapse(Arena *a, const LKernel *k, LStmt *body, bool with_vector_loops) {
    LStmt *l = last_loop(body);
    return l && !collapse_fault(a, k, body, l, with_vector_loops) ? l : NULL;
}

/* Removes the mark `collapse` from all loops. */
static void clear_marks(LStmt *s) {
    for (; s; s = s->next) {
        s->sched.collapse = false;
        if (loop_has_body(s)) clear_marks(s->body);
    }
}

/* Marks the loops that can be collapsed with the parallel loop; returns how many. */
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

/* Remarks on the innermost loop that is not collapsed, with the reason. */
static void remark_not_collapsed(PassCtx *p, Loops *l, LKernel *k, int n) {
    LStmt **row = loop_row_list(k), *last = row ? last_loop(*row) : NULL;
    const char *why = n == LOOP_COLLAPSE_MAX ? "there are four"
                      : last                 ? collapse_fault(l->a, k, *row, last, false)
                                             : NULL;
    if (last && why)
        pass_refusal(p, last->span, "collapse", "%s: not the loop over %s: %s", k->name,
                     loop_range_text(l->a, last), why);
}

/* Marks the loops of each kernel that is not scheduled yet. */
static bool run(PassCtx *p, Loops *l) {
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
    .run_loops = run,
};
