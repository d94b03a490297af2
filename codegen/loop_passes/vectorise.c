/* Loops over columns that hang on nothing but their column become vector loops.
 *
 *     for %f in 8 {                            for %f in 8 vector {
 *       %x: f32 = load x[%v, %f]          =>     ..
 *       store y[%v, %f] %x
 *     }                                        }                                              */
#include "codegen/loop_passes/loops.h"
#include "passes/rewrite.h"

/* Whether every access to buffer b has register r as the same index; *dim: which, -1 = not known
 * yet. */
static bool is_indexed_by(const LStmt *s, const LBuf *b, const LReg *r, int *dim) {
    for (; s; s = s->next) {
        if (loop_has_body(s) && !is_indexed_by(s->body, b, r, dim)) return false;
        if (!loop_is_access(s) || s->buf != b) continue;
        int found_dim = -1;
        for (int i = 0; i < b->rank; i++)
            if (s->idx[i] == r && (*dim < 0 || *dim == i)) found_dim = i;
        if (found_dim < 0) return false;
        *dim = found_dim;
    }
    return true;
}

/* Why iterations of the loop with this body and variable r depend on each other, in words; NULL:
 * they do not. */
static const char *dependence_text(Arena *a, const LStmt *s, const LStmt *body, const LReg *r) {
    for (; s; s = s->next) {
        if (s->kind == L_FOR) return "there is a loop in it";
        if (s->kind == L_LOCAL && s->buf->rank) return "there is an array in it";
        const char *why = s->kind == L_IF ? dependence_text(a, s->body, body, r) : NULL;
        if (why) return why;
        if (!loop_is_access(s)) continue;
        const LBuf *b = s->buf;
        if (b->kind == LB_LOCAL && loop_declares(body, b)) continue;
        if (s->kind == L_LOAD && (b->kind == LB_LOCAL || !b->written)) continue;
        int dim = -1;
        if (b->kind == LB_LOCAL || !is_indexed_by(body, b, r, &dim))
            return arena_printf(a, "its iterations share %s", b->name);
    }
    return NULL;
}

/* Marks the loops of a list whose iterations are independent as vector loops, with remarks; true if
 * one is new. */
static bool mark_vector_loops(Loops *l, const LKernel *k, LStmt *s) {
    bool changed = false;
    for (; s; s = s->next) {
        if (s->kind == L_FOR && s->range == LR_EXTENT && !s->sched.vector) {
            const char *why = dependence_text(l->a, s->body, s->body, s->var);
            (why ? pass_refusal
                 : pass_remark)(l->pass, s->span, "vectorise", "%s: the loop over %s is %s%s",
                                k->name, loop_range_text(l->a, s),
                                why ? "no vector loop: " : "a vector loop", why ? why : "");
            changed |= s->sched.vector = !why;
        }
        if (loop_has_body(s)) changed |= mark_vector_loops(l, k, s->body);
    }
    return changed;
}

/* Marks the vector loops of the row of one kernel. */
static bool vectorise_row(Loops *l, LKernel *k) {
    LStmt **row = loop_row_list(k);
    return row && mark_vector_loops(l, k, *row);
}

/* Runs the pass on all kernels. */
static bool run_vectorise(PassCtx *p, Loops *l) {
    (void)p;
    return loop_pass_each(l, vectorise_row);
}

const Pass loop_pass_vectorise = {
    .name = "vectorise",
    .summary = "loops over columns that hang on nothing but their column are vector loops",
    .run_loops = run_vectorise,
};
