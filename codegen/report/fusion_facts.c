/* A value that is computed inside kernels and has no buffer would cost, stored, one write
 * and one read for each kernel that uses it: those are the bytes saved.  (Values that are
 * constants, indices or views would be stored by nobody and are not counted.) */
#include "codegen/report/fusion_facts.h"

#include <string.h>

#include "codegen/lower/lower.h"

/* Whether op is in the list. */
static bool has(const Ops *v, const Op *op) {
    for (int i = 0; i < v->n; i++)
        if (v->v[i] == op) return true;
    return false;
}

/* ---- who computes what ----------------------------------------------------------------- */
/* The values that a step writes to memory. */
static Ops results_of(const Report *r, const PStep *s) {
    Ops out = {0};
    if ((s->kind == PS_GEMM || s->kind == PS_RANK) && s->op) vec_push(r->a, &out, s->op);
    for (int i = 0; s->kernel && i < s->kernel->bufs.n; i++) {
        const LBuf *b = s->kernel->bufs.v[i];
        if (b->written && b->kind == LB_VALUE && b->value && !has(&out, b->value))
            vec_push(r->a, &out, b->value);
    }
    return out;
}

/* Whether the step is the second half of a long reduction, which adds the partial sums of the first
 * half. */
static bool adds_partials(const PStep *s) {
    for (int i = 0; s->kernel && i < s->kernel->bufs.n; i++)
        if (s->kernel->bufs.v[i]->partial && !s->kernel->bufs.v[i]->written) return true;
    return false;
}

/* Records that the step computes op. */
static void note_made(const Report *r, FusionFacts *f, const Op *op, int step) {
    StepList *l = &f->made_in[op->id];
    if (l->n == 0 || l->v[l->n - 1] != step) vec_push(r->a, l, step);
}

/* Records what a step computes and stores. The second half of a long reduction only adds partial
 * sums, so it does not count as computing it. */
static void note_step(const Report *r, FusionFacts *f, int step) {
    const PStep *s = f->ph->steps.v[step];
    Ops *results = &f->results[step];
    *results = results_of(r, s);
    for (int i = 0; i < results->n; i++) f->stored[results->v[i]->id] = true;
    for (int i = 0; s->kernel && i < s->kernel->computes.n; i++)
        note_made(r, f, s->kernel->computes.v[i], step);
    for (int i = 0; i < results->n; i++)
        if (!adds_partials(s) || !cg_reduction_long(results->v[i]))
            note_made(r, f, results->v[i], step);
}

/* Finds for each step what it computes and stores, and for each value its users. */
FusionFacts fusion_facts(const Report *r, const PPhase *ph) {
    func_number(ph->func);
    size_t n = (size_t)ph->func->n_ops + 1;
    FusionFacts f = {.ph = ph};
    f.results = NEWN(r->a, Ops, (size_t)ph->steps.n + 1);
    f.stored = NEWN(r->a, bool, n);
    f.made_in = NEWN(r->a, StepList, n);
    f.users = NEWN(r->a, Ops, n);
    for (int i = 0; i < ph->steps.n; i++) note_step(r, &f, i);
    for (const Op *u = ph->func->first; u; u = u->next)
        for (int k = 0; k < u->n_in; k++)
            if (!has(&f.users[u->in[k]->id], u)) vec_push(r->a, &f.users[u->in[k]->id], u);
    return f;
}

/* The values that the step computes, those that it stores last. */
Ops fusion_computed(const Report *r, const FusionFacts *f, int step) {
    Ops out = {0};
    const Ops *results = &f->results[step];
    const LKernel *k = f->ph->steps.v[step]->kernel;
    for (int i = 0; k && i < k->computes.n; i++)
        if (!has(results, k->computes.v[i])) vec_push(r->a, &out, k->computes.v[i]);
    for (int i = 0; i < results->n; i++) vec_push(r->a, &out, results->v[i]);
    return out;
}

/* ---- what stays out of memory -------------------------------------------------------------- */
/* Whether the value would be in memory if nothing were fused: constants, indices and views would
 * not. */
static bool would_be_stored(const Op *op) {
    if (op->type.rank == 0 || op_has(op, OPT_SOURCE | OPT_VIEW | OPT_EFFECT)) return false;
    switch (op->kind) {
    case OP_CONST:
    case OP_IOTA:
    case OP_VALID:
    case OP_INDEX:
    case OP_DETACH:
    case OP_STORE_AS:
        return false;
    default:
        return true;
    }
}

/* The values that the step computes and that no step stores: fused away. */
Ops fusion_kept(const Report *r, const FusionFacts *f, int step) {
    Ops out = {0};
    const LKernel *k = f->ph->steps.v[step]->kernel;
    for (int i = 0; k && i < k->computes.n; i++) {
        const Op *op = k->computes.v[i];
        if (would_be_stored(op) && !f->stored[op->id]) vec_push(r->a, &out, op);
    }
    return out;
}

/* The bytes that these save: a read each, and the write in the first step that computes the value.
 */
const Expr *fusion_saved(const Report *r, const FusionFacts *f, int step) {
    Ops kept = fusion_kept(r, f, step);
    const Expr *e = expr_const(r->a, 0);
    for (int i = 0; i < kept.n; i++) {
        const Op *op = kept.v[i];
        int times = f->made_in[op->id].v[0] == step ? 2 : 1;
        const Expr *count = type_count(r->a, &op->type);
        e = expr_add(r->a, e,
                     expr_mul(r->a, count, expr_const(r->a, times * dtype_bytes(op->type.dt))));
    }
    return e;
}

/* ---- why a result is stored ------------------------------------------------------------------ */
/* Adds a reason, once. */
static void add_reason(const Report *r, Reasons *out, Reason x) {
    for (int i = 0; i < out->n; i++)
        if (!strcmp(out->v[i].text, x.text)) return;
    vec_push(r->a, out, x);
}

/* Adds a reason that has only a text. */
static void add_text(const Report *r, Reasons *out, const char *text) {
    add_reason(r, out, (Reason){.text = text});
}

/* " (file:line)" of an op, or "". */
static const char *where(const Report *r, const Op *op) {
    const char *at = report_at(r, op->span);
    return *at ? arena_printf(r->a, " (%s)", at) : "";
}

/* Whether the step computes op. */
static bool made_in(const FusionFacts *f, const Op *op, int step) {
    const StepList *l = &f->made_in[op->id];
    for (int i = 0; i < l->n; i++)
        if (l->v[i] == step) return true;
    return false;
}

/* Why two kernels are not fused, as text. */
static const char *apart_reason(const Report *r, const PApart *p, const char *kernel) {
    bool needs = p->why == APART_SIBLING || p->why == APART_LATER;
    const char *at = where(r, p->via && !needs ? p->via : p->root), *text = plan_apart_text(p->why);
    if (p->why == APART_GATHER) return arena_printf(r->a, "gathered by %s%s: %s", kernel, at, text);
    if (needs)
        text = arena_printf(r->a, "%s %s%s, made %s it", text, report_op_name(p->via),
                            where(r, p->via), p->why == APART_LATER ? "after" : "with");
    return arena_printf(r->a, "%s%s %s", kernel, at, text);
}

/* Adds the reasons why the kernel of `step` is not fused with the kernel of `value`; false: none is
 * known. */
static bool reasons_apart(const Report *r, const FusionFacts *f, const Op *value, int step,
                          Reasons *out) {
    bool any = false;
    for (int i = 0; i < f->ph->apart.n; i++) {
        const PApart *p = &f->ph->apart.v[i];
        if (p->value != value || !made_in(f, p->root, step)) continue;
        const char *reader = f->ph->steps.v[step]->kernel->name;
        bool later = p->why == APART_SIBLING || p->why == APART_LATER;
        add_reason(r, out,
                   (Reason){apart_reason(r, p, reader), reader, later, plan_apart_cure(p->why)});
        any = true;
    }
    return any;
}

/* Adds the reasons from the steps that compute `user`, where they are not those that compute
 * `root`: they read it from memory. */
static void reasons_in_steps(const Report *r, const FusionFacts *f, const Op *root, const Op *user,
                             Reasons *out) {
    for (int i = 0; i < f->made_in[user->id].n; i++) {
        int step = f->made_in[user->id].v[i];
        const PStep *s = f->ph->steps.v[step];
        const char *at = where(r, user);
        if (made_in(f, root, step) || has(&f->results[step], root)) continue;
        if (s->kind == PS_GEMM)
            add_text(
                r, out,
                arena_printf(r->a, "operand of the matrix product %s%s", report_op_name(user), at));
        else if (s->kind != PS_KERNEL)
            add_text(r, out, arena_printf(r->a, "operand of a library call%s", at));
        else if (!reasons_apart(r, f, root, step, out))
            add_text(r, out, arena_printf(r->a, "%s%s reads it", s->kernel->name, at));
    }
}

/* Adds the reasons why `root` is in memory, from the users of `value`, which is root or a view of
 * it. */
static void reasons_of(const Report *r, const FusionFacts *f, const Op *value, const Op *root,
                       Reasons *out) {
    const Ops *users = &f->users[value->id];
    for (int i = 0; i < users->n; i++) {
        const Op *u = users->v[i];
        if (u->kind == OP_OUTPUT)
            add_text(r, out, arena_printf(r->a, "output \"%s\"", u->name));
        else if (u->kind == OP_ASSIGN)
            add_text(r, out, arena_printf(r->a, "next value of %s", u->var->path));
        else if (op_has(u, OPT_EFFECT))
            add_text(r, out, arena_printf(r->a, "the host needs it%s", where(r, u)));
        else
            reasons_in_steps(r, f, root, u, out);
        if (op_has(u, OPT_VIEW)) reasons_of(r, f, u, root, out);
    }
}

/* Adds reasons for a value that its own kernel reads again: one row loop leaves it in memory for
 * the next. */
static void reasons_within(const Report *r, const FusionFacts *f, const Op *value, Reasons *out) {
    const Ops *users = &f->users[value->id];
    for (int i = 0; i < users->n; i++)
        if (f->made_in[users->v[i]->id].n)
            add_reason(r, out,
                       (Reason){arena_printf(r->a, "read again in its own kernel%s",
                                             where(r, users->v[i])),
                                "itself", false, NULL});
}

/* One reason for each reading kernel; what it reads itself is told first. */
static Reasons one_each(const Report *r, const Reasons *all) {
    Reasons out = {0};
    for (int i = 0; i < all->n; i++) {
        const Reason *x = &all->v[i];
        int k = 0;
        while (k < out.n && !(x->reader && out.v[k].reader && !strcmp(x->reader, out.v[k].reader)))
            k++;
        if (k == out.n)
            vec_push(r->a, &out, *x);
        else if (out.v[k].later && !x->later)
            out.v[k] = *x;
    }
    return out;
}

/* Why a value is stored: all reasons, or one for each kernel that reads it. */
Reasons fusion_reasons(const Report *r, const FusionFacts *f, const Op *value, bool all) {
    Reasons out = {0};
    if (value->ask == ASK_STORE) add_text(r, &out, "the model says: store");
    reasons_of(r, f, value, value, &out);
    if (!out.n) reasons_within(r, f, value, &out);
    return all ? out : one_each(r, &out);
}
