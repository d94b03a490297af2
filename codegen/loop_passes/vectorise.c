/* Loops over columns that hang on nothing but their column become vector loops.
 *
 *     for %f in 8 {                            for %f in 8 vector {
 *       %x: f32 = load x[%v, %f]          =>     ..
 *       store y[%v, %f] %x
 *     }                                        }                                              */
#include "codegen/loop_passes/loops.h"
#include "passes/rewrite.h"

/* Whether every access to b has r at one and the same index. */
static bool is_indexed_by(const LStmt *s, const LBuf *b, const LReg *r, int *place) {
    for (; s; s = s->next) {
        if (loop_has_body(s) && !is_indexed_by(s->body, b, r, place)) return false;
        if (!loop_is_access(s) || s->buf != b) continue;
        int at = -1;
        for (int i = 0; i < b->rank; i++)
            if (s->idx[i] == r && (*place < 0 || *place == i)) at = i;
        if (at < 0) return false;
        *place = at;
    }
    return true;
}

/* Why iterations of the loop depend on each other; NULL: they do not. */
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
        int place = -1;
        if (b->kind == LB_LOCAL || !is_indexed_by(body, b, r, &place))
            return arena_printf(a, "its iterations share %s", b->name);
    }
    return NULL;
}

/* Marks the loops of a list whose iterations are independent as vector loops; true if one is new.
 */
static bool vectorise(Loops *l, const LKernel *k, LStmt *s) {
    bool any = false;
    for (; s; s = s->next) {
        if (s->kind == L_FOR && s->range == LR_EXTENT && !s->sched.vector) {
            const char *why = dependence_text(l->a, s->body, s->body, s->var);
            (why ? pass_refusal
                 : pass_remark)(l->pass, s->span, "vectorise", "%s: the loop over %s is %s%s",
                                k->name, loop_range_text(l->a, s),
                                why ? "no vector loop: " : "a vector loop", why ? why : "");
            any |= s->sched.vector = !why;
        }
        if (loop_has_body(s)) any |= vectorise(l, k, s->body);
    }
    return any;
}

static bool change(Loops *l, LKernel *k) {
    LStmt **row = loop_row_list(k);
    return row && vectorise(l, k, *row);
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
