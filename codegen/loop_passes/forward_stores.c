/* A number that the row stores is not read again.
 *
 *     store m[%v] %x                           store m[%v] %x
 *     ..                                =>     ..
 *     %y: f32 = load m[%v]                     %y: f32 = cast %x
 *
 * Of a team the first thread alone writes: what others need is handed on. */
#include "codegen/loop_passes/loops.h"
#include "passes/rewrite.h"

/* How many statements write buffer b. */
static int count_writes(const LStmt *s, const LBuf *b) {
    int n = 0;
    for (; s; s = s->next) {
        n += loop_is_write(s) && s->buf == b;
        if (loop_has_body(s)) n += count_writes(s->body, b);
    }
    return n;
}

/* Whether two accesses are to the same element of the same buffer. */
static bool same_element(const LStmt *x, const LStmt *y) {
    if (x->buf != y->buf) return false;
    for (int i = 0; i < x->buf->rank; i++)
        if (x->idx[i] != y->idx[i] && !loop_is_unit_extent(x->buf->dim[i])) return false;
    return true;
}

/* Replaces loads of the stored element, in s and the statements after it, by the stored value;
 * returns how many. */
static int forward_to_loads(LStmt *s, const LStmt *store) {
    int n = 0;
    for (; s; s = s->next) {
        if (loop_has_body(s)) n += forward_to_loads(s->body, store);
        if (s->kind != L_LOAD || !same_element(s, store)) continue;
        LStmt load = *s;
        *s = (LStmt){.kind = L_LET, .next = load.next, .span = load.span, .dst = load.dst};
        s->fn = L_FN_OP;
        s->op = OP_CAST;
        s->n_arg = 1;
        s->arg[0] = store->src;
        n++;
    }
    return n;
}

/* Writes remarks on how many loads the store s was forwarded to, and on loads that remain. */
static void remark(PassCtx *p, const LKernel *k, const LStmt *row, const LStmt *s, int n_loads) {
    if (n_loads)
        pass_remark(p, s->span, "forward-stores", "%s: %s is handed on to %d reads", k->name,
                    s->buf->name, n_loads);
    if (!loop_loads(s->next, s->buf)) return;
    pass_refusal(p, s->span, "forward-stores", "%s: %s is read again: %s", k->name, s->buf->name,
                 s->src->dt != s->buf->dt        ? "it is rounded where it is stored"
                 : count_writes(row, s->buf) > 1 ? "the row writes it more than once"
                                                 : "at another place");
}

/* Forwards each store of the row's own list, if nothing else writes its buffer, to the loads of
 * that element. True if something changed. */
static bool forward_stores(Loops *l, LKernel *k) {
    LStmt **row = loop_row_list(k);
    bool changed = false;
    for (LStmt *s = row ? *row : NULL; s; s = s->next) {
        if (s->kind != L_STORE || s->buf->kind == LB_LOCAL) continue;
        bool may = s->src->dt == s->buf->dt && count_writes(*row, s->buf) == 1;
        int n_loads = may ? forward_to_loads(s->next, s) : 0;
        changed |= n_loads > 0;
        remark(l->pass, k, *row, s, n_loads);
    }
    return changed;
}

/* Runs the pass (store-to-load forwarding) on all kernels. */
static bool run_forward_stores(PassCtx *p, Loops *l) {
    (void)p;
    return loop_pass_each(l, forward_stores);
}

const Pass loop_pass_forward_stores = {
    .name = "forward-stores",
    .summary = "a number that the row stores is handed on, not read again",
    .run_loops = run_forward_stores,
};
