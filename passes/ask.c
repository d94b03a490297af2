/* What a pass asks while it runs: whether it may make its next change, which answer this variant
 * takes, and whether a function computes gradients. */
#include "passes/rewrite.h"

#include <string.h>

bool pass_is_update(const Op *op) {
    return op->kind == OP_ASSIGN && op->var->kind == VAR_PARAM;
}

bool pass_has_gradients(const Func *f) {
    for (const Op *op = f->first; op; op = op->next)
        if (pass_is_update(op)) return true;
    return func_output_of(f, OUT_GRAD);
}

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

bool pass_may_rewrite(PassCtx *p) {
    return ++p->n_rewrites < p->rewrite_from || p->rewrite_from == 0;
}
