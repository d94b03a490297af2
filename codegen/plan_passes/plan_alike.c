/* Which steps may be one launch, and which must stay in their order: read off their kernels. */
#include "codegen/plan_passes/plan_order.h"

const LStmt *plan_first_loop(const LKernel *k) {
    const LStmt *stmt = k->body;
    while (stmt && loop_is_value(stmt)) stmt = stmt->next;
    return stmt;
}

bool plan_is_scalar(const PStep *s) {
    const LStmt *p = s->kernel->body;
    while (p && (loop_is_value(p) || p->kind == L_STORE)) p = p->next;
    return !p;
}

bool plan_is_elementwise(const PStep *s) {
    if (s->kind != PS_KERNEL || s->partition || s->pred >= 0 || s->covered_by ||
        s->op->ask == ASK_APART)
        return false;
    if (plan_is_scalar(s)) return true;
    const LStmt *l = plan_first_loop(s->kernel);
    return l && l->kind == L_FOR && l->sched.parallel && l->sched.vector && !l->next;
}

/* The loop of a kernel that only runs over the chunks of a split reduction; NULL = it is another
 * kernel. */
LStmt *plan_chunk_loop(const PStep *s) {
    if (s->kind != PS_KERNEL || s->partition || s->pred >= 0 || s->covered_by ||
        s->op->ask == ASK_APART)
        return NULL;
    LStmt *l = s->kernel->body;
    while (l && loop_is_value(l)) l = l->next;
    if (!l || l->kind != L_FOR || !l->sched.parallel || l->next) return NULL;
    for (const LStmt *p = l->body; p; p = p->next) {
        bool part = p->kind == L_FOR && p->range == LR_CHUNK && p->at == l->var;
        if (part && expr_eq(p->n_chunks, l->extent)) return l;
    }
    return NULL;
}

bool plan_same_chunks(const PStep *x, const PStep *y) {
    const LStmt *l = plan_chunk_loop(x), *m = plan_chunk_loop(y);
    return l && m && expr_eq(l->extent, m->extent);
}

/* Whether one step writes what the other accesses, so that their order matters. A product is made
 * together with the steps that it covers. Writing different operands of one concatenation is no
 * conflict. */
bool plan_steps_conflict(const PStep *x, const PStep *y) {
    if (x->op == y->op && x->op->kind == OP_CONCAT) return false; /* its parts */
    for (int i = 0; x->epilogue && i < x->epilogue->n_covers; i++)
        if (plan_steps_conflict(x->epilogue->covers[i], y)) return true;
    for (int i = 0; y->epilogue && i < y->epilogue->n_covers; i++)
        if (plan_steps_conflict(x, y->epilogue->covers[i])) return true;
    bool kernels = x->kind == PS_KERNEL && y->kind == PS_KERNEL;
    for (int i = 0; i < x->n_bufs; i++)
        for (int k = 0; k < y->n_bufs; k++)
            if (x->bufs[i] == y->bufs[k] &&
                (!kernels || plan_step_writes(x, x->bufs[i]) || plan_step_writes(y, x->bufs[i])))
                return true;
    return false;
}

bool plan_must_stay_ordered(const PStep *x, const PStep *y) {
    for (int i = 0; x->epilogue && i < x->epilogue->n_covers; i++)
        if (plan_must_stay_ordered(x->epilogue->covers[i], y)) return true;
    for (int i = 0; y->epilogue && i < y->epilogue->n_covers; i++)
        if (plan_must_stay_ordered(x, y->epilogue->covers[i])) return true;
    for (int i = 0; i < x->n_bufs; i++) {
        int b = x->bufs[i];
        if (plan_step_accesses_buf(y, b) && (plan_step_writes(x, b) || plan_step_writes(y, b)))
            return true;
    }
    return x->pred >= 0 && plan_step_writes(y, x->pred);
}
