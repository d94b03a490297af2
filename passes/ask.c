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

/* The answer that this variant of the program gives to a question (0 or 1). New questions are
 * recorded. */
int pass_choose(PassCtx *p, const char *question, const char *first, const char *second) {
    PassChoices *c = p->choices;
    int i = 0;
    while (c && i < c->n && strcmp(c->question[i], question) != 0) i++;
    if (!c || i == PASS_MAX_CHOICES || (c->closed && i == c->n)) return 0;
    if (i == c->n) {
        c->question[i] = question;
        c->answer[i][0] = first;
        c->answer[i][1] = second;
        c->n++;
    }
    return c->picked >> i & 1;
}

/* Counts a rewrite and says whether it is allowed (see --bisect). */
bool pass_may_rewrite(PassCtx *p) {
    return ++p->n_rewrites < p->rewrite_from || p->rewrite_from == 0;
}
