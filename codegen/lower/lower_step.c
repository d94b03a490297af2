/* Steps of a phase: what every lowering appends when its kernel or call is done. */
#include "codegen/lower/lower.h"

/* The note of a step for readers of the plan: "z = mul x, y". */
static const char *step_note(Lower *lo, const Op *op) {
    StrBuf b = sb_new(lo->a);
    const char *name = op->hint ? op->hint : op->name ? op->name : op->var ? op->var->path : NULL;
    if (name) sb_printf(&b, "%s = ", name);
    sb_puts(&b, op_mnemonic(op->kind));
    for (int i = 0; i < op->n_in; i++) {
        const char *hint = op->in[i]->hint;
        sb_printf(&b, "%s %s", i ? "," : "", hint ? hint : op_mnemonic(op->in[i]->kind));
    }
    return b.s;
}

PStep *cg_step(Lower *lo, PStepKind kind, const Op *op, int n_bufs) {
    PStep *s = NEW(lo->a, PStep);
    s->kind = kind;
    s->pred = -1;
    s->op = op;
    s->span = op->span;
    s->note = step_note(lo, op);
    s->n_bufs = n_bufs;
    s->bufs = NEWN(lo->a, int, (size_t)n_bufs + 1);
    vec_push(lo->a, &lo->p->phases.v[lo->phase]->steps, s);
    return s;
}

/* Completes the kernel under construction and appends the step that runs it to the phase. */
void cg_step_kernel(Gen *g, const Op *op) {
    LKernel *k = cg_finish_kernel(g);
    k->name = cg_unique_name(g->lo, &g->lo->kernels, k->name);
    PStep *s = cg_step(g->lo, PS_KERNEL, op, k->bufs.n);
    for (int i = 0; i < k->bufs.n; i++) s->bufs[i] = g->arg_buf.v[i];
    s->kernel = k;
    for (const LStmt *st = k->body; st; st = st->next)
        if (st->kind == L_FOR && st->sched.parallel) {
            s->extent = st->extent;
            s->balance = st->sched.balance;
        }
    vec_push(g->a, &g->lo->p->kernels, k);
}
