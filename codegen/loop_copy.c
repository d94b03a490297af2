/* Copies of kernels, for who changes one and wants the other as it is. */
#include "codegen/loop.h"

typedef struct {
    Arena *a;
    LBuf **buf, **local;
    LReg **reg; /* [n_regs] of those whose definition has been copied */
} Copy;

static LBuf **copy_bufs(Arena *a, LBuf *const *from, int n) {
    LBuf **to = NEWN(a, LBuf *, (size_t)n + 1);
    for (int i = 0; i < n; i++) {
        to[i] = NEW(a, LBuf);
        *to[i] = *from[i];
    }
    return to;
}

static LBuf *buf_of(const Copy *c, const LBuf *b) {
    if (!b) return NULL;
    return b->kind == LB_LOCAL ? c->local[b->id] : c->buf[b->id];
}

static LReg *reg_of(const Copy *c, const LReg *r) {
    return r ? c->reg[r->id] : NULL;
}

static LReg *define(Copy *c, const LReg *r, const LStmt *by) {
    if (!r) return NULL;
    LReg *to = c->reg[r->id] = NEW(c->a, LReg);
    *to = *r;
    to->def = by;
    return to;
}

static LStmt *copy_list(Copy *c, const LStmt *s) {
    LStmt *head = NULL, **tail = &head;
    for (; s; s = s->next) {
        LStmt *t = *tail = NEW(c->a, LStmt);
        *t = *s;
        t->next = NULL;
        t->buf = buf_of(c, s->buf);
        t->ptr = buf_of(c, s->ptr);
        t->at = reg_of(c, s->at);
        t->cond = reg_of(c, s->cond);
        t->src = reg_of(c, s->src);
        for (int i = 0; i < s->n_arg; i++) t->arg[i] = reg_of(c, s->arg[i]);
        for (int i = 0; loop_is_access(s) && i < s->buf->rank; i++)
            t->idx[i] = reg_of(c, s->idx[i]);
        t->dst = define(c, s->dst, t);
        t->var = define(c, s->var, t);
        t->body = copy_list(c, s->body);
        tail = &t->next;
    }
    return head;
}

LKernel *loop_copy(Arena *a, const LKernel *k) {
    LKernel *to = NEW(a, LKernel);
    *to = *k;
    to->bufs.v = copy_bufs(a, k->bufs.v, k->bufs.n);
    to->locals.v = copy_bufs(a, k->locals.v, k->locals.n);
    to->bufs.cap = to->bufs.n;
    to->locals.cap = to->locals.n;
    Copy c = {.a = a, .buf = to->bufs.v, .local = to->locals.v};
    c.reg = NEWN(a, LReg *, (size_t)k->n_regs + 1);
    to->body = copy_list(&c, k->body);
    return to;
}
