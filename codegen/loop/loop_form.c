/* Kernels of one form: the same statements over arguments, and numbers of rows, of their own.  One
 * text then does for all of them. */
#include "codegen/loop/loop.h"

#include <string.h>

static bool same_reg(const LReg *x, const LReg *y) {
    return (!x && !y) || (x && y && x->id == y->id && x->dt == y->dt);
}

static bool same_size(const Expr *x, const Expr *y) {
    return (!x && !y) || (x && y && expr_eq(x, y));
}

static bool is_unit(const Expr *e) {
    int64_t n;
    return expr_is_const(e, &n) && n == 1;
}

/* Both are the argument of this number, or the local array of this number; or neither is there. */
static bool same_buf(const LBuf *x, const LBuf *y) {
    if (!x || !y) return x == y;
    return x->id == y->id && (x->kind == LB_LOCAL) == (y->kind == LB_LOCAL);
}

/* Whether two arguments or local arrays are accessed in the same way: the number of rows of an
 * argument decides nothing, unless it is 1. */
static bool same_array(const LBuf *x, const LBuf *y) {
    bool same = x->kind == y->kind && x->dt == y->dt && x->rank == y->rank &&
                x->written == y->written && x->begun == y->begun;
    for (int i = 0; i < x->rank && same; i++)
        same = i || x->kind == LB_LOCAL ? same_size(x->dim[i], y->dim[i])
                                        : is_unit(x->dim[i]) == is_unit(y->dim[i]);
    return same && x->kind != LB_ROOM;
}

/* All but the maps by which a CPU balances rows, and versions, which such kernels do not have. */
static bool same_sched(const LSched *x, const LSched *y) {
    LSched a = *x, b = *y;
    a.balance = b.balance = (MapList){0};
    return !a.where && !b.where && a.parallel == b.parallel && a.vector == b.vector &&
           a.unroll == b.unroll && a.ahead == b.ahead && a.lanes == b.lanes &&
           a.unroll_vectors == b.unroll_vectors && a.flat == b.flat && a.expand == b.expand &&
           a.prefix == b.prefix && a.strips == b.strips && a.rows == b.rows &&
           a.serial == b.serial && a.jam == b.jam && a.collapse == b.collapse &&
           a.masked == b.masked && a.share == b.share && a.hub_entries == b.hub_entries &&
           a.split_entries == b.split_entries && a.split_from == b.split_from &&
           a.few_rows == b.few_rows && a.few_entries == b.few_entries;
}

static bool same_list(const LStmt *x, const LStmt *y);

static bool same_range(const LStmt *x, const LStmt *y) {
    const bool is_rows = x->kind == L_FOR && x->sched.parallel;
    const bool extent =
        is_rows ? is_unit(x->extent) == is_unit(y->extent) : same_size(x->extent, y->extent);
    return x->range == y->range && extent && same_size(x->own, y->own) &&
           same_size(x->n_chunks, y->n_chunks) && same_buf(x->ptr, y->ptr) &&
           same_reg(x->at, y->at);
}

static bool same_stmt(const LStmt *x, const LStmt *y) {
    bool same = x->kind == y->kind && same_reg(x->var, y->var) && same_reg(x->dst, y->dst) &&
                same_reg(x->src, y->src) && same_reg(x->cond, y->cond) && same_buf(x->buf, y->buf);
    if (!same || x->fn != y->fn || x->op != y->op || x->red != y->red || x->n_arg != y->n_arg ||
        memcmp(&x->imm, &y->imm, sizeof x->imm) != 0 || !same_size(x->size, y->size) ||
        x->remat != y->remat || x->packed != y->packed || x->before_write != y->before_write ||
        x->ahead != y->ahead || x->n_lines != y->n_lines || x->columns != y->columns ||
        x->lanes != y->lanes || x->in_registers.n != y->in_registers.n)
        return false;
    for (int i = 0; i < x->n_arg; i++) same = same && same_reg(x->arg[i], y->arg[i]);
    for (int i = 0; loop_is_access(x) && i < x->buf->rank; i++)
        same = same && same_reg(x->idx[i], y->idx[i]);
    for (int i = 0; i < x->in_registers.n; i++)
        same = same && same_buf(x->in_registers.v[i], y->in_registers.v[i]);
    return same && same_range(x, y) && same_sched(&x->sched, &y->sched) &&
           same_list(x->body, y->body);
}

static bool same_list(const LStmt *x, const LStmt *y) {
    for (; x && y; x = x->next, y = y->next)
        if (!same_stmt(x, y)) return false;
    return !x && !y;
}

bool loop_same_form(const LKernel *x, const LKernel *y) {
    if (x->bufs.n != y->bufs.n || x->locals.n != y->locals.n || x->stages.n || y->stages.n)
        return false;
    if (memcmp(&x->threads, &y->threads, sizeof x->threads) != 0) return false;
    for (int i = 0; i < x->bufs.n; i++)
        if (!same_array(x->bufs.v[i], y->bufs.v[i])) return false;
    for (int i = 0; i < x->locals.n; i++)
        if (!same_array(x->locals.v[i], y->locals.v[i])) return false;
    return same_list(x->body, y->body);
}

LKernel *loop_copy_for(Arena *a, const LKernel *k, const LKernel *of) {
    LKernel *to = loop_copy(a, k);
    const LStmt *rows = of->body;
    while (rows && !(rows->kind == L_FOR && rows->sched.parallel)) rows = rows->next;
    for (int i = 0; i < of->bufs.n; i++) {
        const LBuf *b = of->bufs.v[i], was = *to->bufs.v[i];
        *to->bufs.v[i] = *b;
        to->bufs.v[i]->written = was.written;
        to->bufs.v[i]->begun = was.begun;
    }
    for (LStmt *s = to->body; s && rows; s = s->next)
        if (s->kind == L_FOR && s->sched.parallel) s->extent = rows->extent;
    return to;
}
