/* How the iterations of a kernel meet threads.
 *
 * Loops that stand alone inside the parallel loop and write disjoint elements become part
 * of its index:
 *
 *     for v in N parallel {            for i in N*8: v = i / 8, h = i % 8 {
 *       scalars of v                     scalars of v
 *       for h in 8 { y[v, h] = .. }      y[v, h] = ..
 *     }                                } */
#include "codegen/cuda/cuda.h"

static bool is_pure(const LStmt *s) {
    return s->kind == L_LET || s->kind == L_LOAD;
}

/* Every store and acc to an argument below s, and every load of what is written, has index r
 * at one place. */
static bool all_at(const LStmt *s, const LReg *r, int *place) {
    for (; s; s = s->next) {
        if ((s->kind == L_FOR || s->kind == L_IF) && !all_at(s->body, r, place)) return false;
        bool access = s->kind == L_LOAD || s->kind == L_STORE || s->kind == L_ACC;
        if (!access || s->buf->kind == LB_LOCAL || !s->buf->written) continue;
        int *p = &place[s->buf->id], at = -1;
        for (int i = 0; i < s->buf->rank; i++)
            if (s->idx[i] == r && (*p < 0 || *p == i)) at = i;
        if (at < 0) return false;
        *p = at;
    }
    return true;
}

/* The loop that ends the block, when all before it is cheap and nothing but it has effects. */
static const LStmt *only_loop(const LStmt *s) {
    while (s && is_pure(s)) s = s->next;
    bool plain = s && s->kind == L_FOR && !s->next && s->range == LR_EXTENT;
    return plain ? s : NULL;
}

static bool loads_written(const LStmt *s) {
    for (; s; s = s->next)
        if (s->kind == L_LOAD && s->buf->written) return true;
    return false;
}

static const LStmt *collapsible(CuFn *f, const LStmt *body) {
    const LStmt *l = only_loop(body);
    if (!l || loads_written(body)) return NULL;
    int *place = NEWN(f->a, int, f->k->bufs.n + 1);
    for (int i = 0; i < f->k->bufs.n; i++) place[i] = -1;
    return all_at(l->body, l->var, place) ? l : NULL;
}

/* The loop whose iterations go to threads; a kernel that does more after it is serial. */
static const LStmt *parallel_loop(const LKernel *k) {
    const LStmt *s = k->body;
    while (s && is_pure(s)) s = s->next;
    return s && s->kind == L_FOR && s->sched.parallel && !s->next ? s : NULL;
}

void cu_schedule(CuFn *f) {
    CuSched *c = &f->sched;
    *c = (CuSched){.parallel = parallel_loop(f->k)};
    if (!c->parallel) return;
    c->body = c->parallel->body;
    for (const LStmt *l; c->n_inner < CU_COLLAPSE_MAX && (l = collapsible(f, c->body));) {
        c->inner[c->n_inner++] = l;
        c->body = l->body;
    }
}
