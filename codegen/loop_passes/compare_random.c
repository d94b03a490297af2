/* A number that is compared with a random one is compared with the integer that it is made of.
 *
 *     %p: f32 = const 0.5                         =>     %keep: i1 = le_random 0.5 %a %b %r %c
 *     %u: f32 = random %a %b %r %c
 *     %keep: i1 = le %p %u
 *
 * It is a dropout's question: two instructions less for each element.  It comes last, since passes
 * before it ask what a random number costs.  Between the two stand values alone, so what is had for
 * several iterations at once stays so. */
#include "codegen/loop_passes/loops.h"
#include "passes/rewrite.h"

#include <string.h>

/* Whether s is the scalar function. */
static bool is_fn(const LStmt *s, LFn fn) {
    return s && s->kind == L_LET && s->fn == fn;
}

/* Whether `later` follows s in its list with values alone between them. */
static bool follows_values(const LStmt *s, const LStmt *later) {
    while (s && s != later && loop_is_value(s)) s = s->next;
    return s == later;
}

/* Why the comparison stays; NULL: it need not. */
static const char *obstacle(const LStmt *le) {
    const LStmt *p = le->arg[0]->def, *u = le->arg[1]->def;
    if (!is_fn(p, L_FN_CONST)) return "the other number is no constant";
    if (p->dst->dt != DT_F32) return "the constant is no f32";
    if (!((float)p->imm >= 0 && (float)p->imm < 1)) return "the constant is outside of [0, 1)";
    return follows_values(u, le) ? NULL : "the random number is drawn elsewhere";
}

/* Makes one statement of the comparison and the random number, which stays for other readers. */
static void compare(LStmt *le) {
    const LStmt *p = le->arg[0]->def, *u = le->arg[1]->def;
    le->fn = L_FN_LE_RANDOM;
    le->imm = (double)(float)p->imm;
    le->n_arg = u->n_arg;
    le->remat = le->remat && u->remat;
    memcpy(le->arg, u->arg, sizeof le->arg);
}

/* Rewrites comparisons in a list and its bodies. */
static void compare_all(PassCtx *pc, const LKernel *k, LStmt *s) {
    for (; s; s = s->next) {
        if (loop_has_body(s)) compare_all(pc, k, s->body);
        if (!is_fn(s, L_FN_OP) || s->op != OP_LE || !is_fn(s->arg[1]->def, L_FN_RANDOM)) continue;
        const char *why = obstacle(s);
        if (why) {
            pass_refusal(pc, s->span, "compare-random", "%s: %%%s.%d is compared in f32: %s",
                         k->name, s->dst->hint, s->dst->id, why);
            continue;
        }
        pass_remark(pc, s->span, "compare-random", "%s: %%%s.%d is a comparison of integers",
                    k->name, s->dst->hint, s->dst->id);
        compare(s);
    }
}

/* Rewrites the comparisons of one kernel; whether some value is not wanted any more. */
static bool rewrite(Loops *l, LKernel *k) {
    compare_all(l->pass, k, k->body);
    return loop_drop_unused(l->a, k) > 0;
}

static bool run(PassCtx *pc, Loops *l) {
    (void)pc;
    return loop_pass_each(l, rewrite);
}

const Pass loop_pass_compare_random = {
    .name = "compare-random",
    .summary = "a number is compared with the integer that a random number is made of",
    .run_loops = run,
};
