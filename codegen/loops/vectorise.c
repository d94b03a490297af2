/* Loops over columns that hang on nothing but their column become vector loops.
 *
 *     for %f in 8 {                            for %f in 8 vector {
 *       %x: f32 = load x[%v, %f]          =>     ..
 *       store y[%v, %f] %x
 *     }                                        }                                              */
#include "codegen/loops/loops.h"

/* Every access to b has r among its indices, at one place. */
static bool is_at(const LStmt *s, const LBuf *b, const LReg *r, int *place) {
    for (; s; s = s->next) {
        if (loop_has_body(s) && !is_at(s->body, b, r, place)) return false;
        if (!loop_is_access(s) || s->buf != b) continue;
        int at = -1;
        for (int i = 0; i < b->rank; i++)
            if (s->idx[i] == r && (*place < 0 || *place == i)) at = i;
        if (at < 0) return false;
        *place = at;
    }
    return true;
}

/* Iterations reach nothing of each other's. */
static bool is_independent(const LStmt *s, const LStmt *body, const LReg *r) {
    for (; s; s = s->next) {
        if (s->kind == L_FOR || (s->kind == L_LOCAL && s->buf->rank)) return false;
        if (s->kind == L_IF && !is_independent(s->body, body, r)) return false;
        if (!loop_is_access(s)) continue;
        const LBuf *b = s->buf;
        if (b->kind == LB_LOCAL && loop_declares(body, b)) continue;
        if (s->kind == L_LOAD && (b->kind == LB_LOCAL || !b->written)) continue;
        int place = -1;
        if (b->kind == LB_LOCAL || !is_at(body, b, r, &place)) return false;
    }
    return true;
}

static bool vectorise(LStmt *s) {
    bool any = false;
    for (; s; s = s->next) {
        if (s->kind == L_FOR && s->range == LR_EXTENT && !s->sched.vector &&
            is_independent(s->body, s->body, s->var))
            any = s->sched.vector = true;
        if (loop_has_body(s)) any |= vectorise(s->body);
    }
    return any;
}

static bool change(Loops *l, LKernel *k) {
    LStmt **row = loop_row(k);
    (void)l;
    return row && vectorise(*row);
}

static bool run(PassCtx *p, Loops *l) {
    (void)p;
    return loop_pass_each(l, change);
}

const Pass loop_pass_vectorise = {
    .name = "vectorise",
    .summary = "loops over columns that hang on nothing but their column are vector loops",
    .run_loops = run,
};
