/* What a pass asks while it runs: whether it may make its next change, which answer this variant
 * takes, and whether a function computes gradients. */
#include "passes/rewrite.h"

#include <string.h>

/* Whether the operation assigns a parameter. */
bool pass_is_update(const Op *op) {
    return op->kind == OP_ASSIGN && op->var->kind == VAR_PARAM;
}

/* Whether the function computes gradients, as outputs or for updates. */
bool pass_has_gradients(const Func *f) {
    for (const Op *op = f->first; op; op = op->next)
        if (pass_is_update(op)) return true;
    return func_output_of(f, OUT_GRAD);
}

/* The number of a question; -1: it has none, as there are `most` before it, and the first answer is
 * taken. New questions are recorded. */
static int number_of(PassChoices *c, int most, const char *question, const char *first,
                     const char *second) {
    int i = 0;
    while (c && i < c->n && strcmp(c->question[i], question) != 0) i++;
    if (!c || (i == c->n && (c->closed || i >= most))) return -1;
    if (i == c->n) {
        c->question[i] = question;
        c->answer[i][0] = first;
        c->answer[i][1] = second;
        c->n++;
    }
    return i;
}

/* The answer that this variant of the program gives to a question about the order of work (0 or 1).
 */
int pass_choose(PassCtx *p, const char *question, const char *first, const char *second) {
    int i = number_of(p->choices, PASS_MAX_ORDERS, question, first, second);
    return i >= 0 ? p->choices->picked >> i & 1 : 0;
}

/* Asks whether values stay f32 in this variant. */
bool pass_chooses_f32(PassCtx *p, const char *first, const char *second) {
    int i = number_of(p->choices, PASS_MAX_CHOICES, "in f32", first, second);
    if (i >= 0) p->choices->in_f32 = 1U << i;
    return pass_is_in_f32(p);
}

/* Whether they do, as far as was asked: passes of the first variant that run before the question
 * hear that they do not, which is its answer. */
bool pass_is_in_f32(const PassCtx *p) {
    return p->choices && p->choices->picked & p->choices->in_f32;
}

/* Counts a rewrite and says whether it is allowed (see --bisect). */
bool pass_may_rewrite(PassCtx *p) {
    return ++p->n_rewrites < p->rewrite_from || p->rewrite_from == 0;
}
