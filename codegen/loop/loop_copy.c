/* Copies: a kernel, for who changes one and wants the other as it is; and statements of one, for
 * who does something twice in it. */
#include "codegen/loop/loop.h"

#include <string.h>

/* A copy in progress. */
typedef struct {
    Arena *a;
    LKernel *k;          /* to which what the statements define is added; NULL: numbers stay */
    LBuf **buf, **local; /* what stands for them; NULL = themselves */
    LReg **reg;          /* [n_regs] of those whose definition has been copied */
} Copier;

/* A copy of a buffer. */
static LBuf *copy_buf(Arena *a, const LBuf *from) {
    LBuf *to = NEW(a, LBuf);
    *to = *from;
    return to;
}

/* Copies of n buffers. */
static LBuf **copy_bufs(Arena *a, LBuf *const *from, int n) {
    LBuf **to = NEWN(a, LBuf *, (size_t)n + 1);
    for (int i = 0; i < n; i++) to[i] = copy_buf(a, from[i]);
    return to;
}

/* The buffer that stands for b in the copy. */
static LBuf *mapped_buf(const Copier *c, LBuf *b) {
    if (!b) return NULL;
    LBuf **to = b->kind == LB_LOCAL ? c->local : c->buf;
    return to && to[b->id] ? to[b->id] : b;
}

/* The register that stands for r in the copy. */
static LReg *mapped_reg(const Copier *c, LReg *r) {
    return r && c->reg[r->id] ? c->reg[r->id] : r;
}

/* A copy of register r, which the copied statement `by` defines. */
static LReg *copy_reg(Copier *c, const LReg *r, const LStmt *by) {
    if (!r) return NULL;
    LReg *to = c->reg[r->id] = NEW(c->a, LReg);
    *to = *r;
    to->def = by;
    if (c->k) to->id = c->k->n_regs++;
    return to;
}

/* Whether an argument or local of the kernel has this name. */
static bool has_name(const LKernel *k, const char *s) {
    for (int i = 0; i < k->bufs.n; i++)
        if (!strcmp(k->bufs.v[i]->name, s)) return true;
    for (int i = 0; i < k->locals.n; i++)
        if (!strcmp(k->locals.v[i]->name, s)) return true;
    return false;
}

/* A name like `like` that nothing in the kernel has. */
const char *loop_unique_name(Arena *a, const LKernel *k, const char *like) {
    size_t n = strlen(like), stem = n;
    while (stem && like[stem - 1] >= '0' && like[stem - 1] <= '9') stem--;
    if (stem == n || stem < 2 || like[stem - 1] != '_')
        stem = n; /* "acc_2" is another acc, "x2" is a name */
    else
        stem--;
    const char *s = arena_strndup(a, like, stem);
    for (int i = 2; has_name(k, s); i++) s = arena_printf(a, "%.*s_%d", (int)stem, like, i);
    return s;
}

/* A copy of a local array, with a new name. */
static void copy_local(Copier *c, const LBuf *b) {
    LBuf *to = c->local[b->id] = copy_buf(c->a, b);
    to->id = c->k->locals.n;
    to->name = loop_unique_name(c->a, c->k, b->name);
    vec_push(c->a, &c->k->locals, to);
}

static LStmt *copy_list(Copier *c, const LStmt *s);

/* A copy of a statement. */
static LStmt *copy_stmt(Copier *c, const LStmt *s) {
    LStmt *t = NEW(c->a, LStmt);
    if (s->kind == L_LOCAL && c->k) copy_local(c, s->buf);
    *t = *s;
    t->next = NULL;
    t->buf = mapped_buf(c, s->buf);
    t->ptr = mapped_buf(c, s->ptr);
    LReg *const *r;
    for (int i = 0; (r = loop_operand(t, i)); i++) *(LReg **)r = mapped_reg(c, *r);
    t->dst = copy_reg(c, s->dst, t);
    t->var = copy_reg(c, s->var, t);
    t->body = copy_list(c, s->body);
    t->in_registers = (LBufs){0};
    for (int i = 0; i < s->in_registers.n; i++)
        vec_push(c->a, &t->in_registers, mapped_buf(c, s->in_registers.v[i]));
    return t;
}

/* A copy of a list of statements. */
static LStmt *copy_list(Copier *c, const LStmt *s) {
    LStmt *head = NULL, **tail = &head;
    for (; s; s = s->next) {
        *tail = copy_stmt(c, s);
        tail = &(*tail)->next;
    }
    return head;
}

/* A copy of a kernel, with the same numbers. */
LKernel *loop_copy(Arena *a, const LKernel *k) {
    LKernel *to = NEW(a, LKernel);
    *to = *k;
    to->bufs.v = copy_bufs(a, k->bufs.v, k->bufs.n);
    to->locals.v = copy_bufs(a, k->locals.v, k->locals.n);
    to->bufs.cap = to->bufs.n;
    to->locals.cap = to->locals.n;
    Copier c = {.a = a, .buf = to->bufs.v, .local = to->locals.v};
    c.reg = NEWN(a, LReg *, (size_t)k->n_regs + 1);
    to->body = copy_list(&c, k->body);
    return to;
}

/* A second copy of statement s in its kernel, with its own registers and local arrays. */
LStmt *loop_copy_stmt(Arena *a, LKernel *k, const LStmt *s) {
    Copier c = {.a = a, .k = k};
    c.reg = NEWN(a, LReg *, (size_t)k->n_regs + 1);
    c.local = NEWN(a, LBuf *, (size_t)k->locals.n + 1);
    return copy_stmt(&c, s);
}
