/* A value that is computed inside kernels and has no buffer would cost, stored, one write
 * and one read for each kernel that uses it: those are the bytes saved.  (Values that are
 * constants, indices or views would be stored by nobody and are not counted.) */
#include "codegen/report/fusion_facts.h"

#include <string.h>

#include "codegen/lower/lower.h"

/* Whether op is in the list v. */
static bool has_op(const Ops *v, const Op *op) {
    for (int i = 0; i < v->n; i++)
        if (v->v[i] == op) return true;
    return false;
}

/* ---- who computes what ----------------------------------------------------------------- */
/* The values that step s writes to memory: the results of a library call, or the values that its
 * kernel stores in buffers. */
static Ops results_of(const Report *r, const PStep *s) {
    Ops out = {0};
    if (plan_step_facts(s->kind)->by == PBY_LIBRARY && s->op) vec_push(r->a, &out, s->op);
    for (int i = 0; s->kernel && i < s->kernel->bufs.n; i++) {
        const LBuf *b = s->kernel->bufs.v[i];
        if (b->written && b->kind == LB_VALUE && b->value && !has_op(&out, b->value))
            vec_push(r->a, &out, b->value);
    }
    return out;
}

/* Whether the step is the second half of a long reduction (over all nodes or edges), which adds the
 * partial sums of the first half: it reads a buffer of partial sums. */
static bool adds_partials(const PStep *s) {
    for (int i = 0; s->kernel && i < s->kernel->bufs.n; i++)
        if (s->kernel->bufs.v[i]->partial && !s->kernel->bufs.v[i]->written) return true;
    return false;
}

/* The number of an operation among those of all functions. */
static int key_of(const FusionFacts *f, const Op *op) {
    int key = op->id;
    for (int i = 0; f->m->funcs.v[i] != op->func; i++) key += f->m->funcs.v[i]->n_ops;
    return key;
}

/* Adds the step's number to the list of steps that compute op, once. */
static void record_computed(const Report *r, FusionFacts *f, const Op *op, int step) {
    StepList *l = &f->computed_in[key_of(f, op)];
    if (l->n == 0 || l->v[l->n - 1] != step) vec_push(r->a, l, step);
}

/* Records what step number `step` computes and stores in f. The second half of a long reduction
 * only adds partial sums, so it does not count as computing the value. */
static void record_step(const Report *r, FusionFacts *f, int step) {
    const PStep *s = f->ph->steps.v[step];
    Ops *results = &f->results[step];
    *results = results_of(r, s);
    for (int i = 0; i < results->n; i++) f->is_stored[key_of(f, results->v[i])] = true;
    for (int i = 0; s->kernel && i < s->kernel->computes.n; i++)
        record_computed(r, f, s->kernel->computes.v[i], step);
    for (int i = 0; i < results->n; i++)
        if (!adds_partials(s) || !cg_is_long_reduction(results->v[i]))
            record_computed(r, f, results->v[i], step);
}

/* Finds, for one phase, what each step computes and stores and which steps and ops use each value.
 * All reports about fusion and stored values start from these facts. */
FusionFacts fusion_analyze(const Report *r, const PPhase *ph) {
    const Module *m = r->p->m;
    size_t n = 1;
    FusionFacts f = {.ph = ph, .m = m};
    for (int i = 0; i < m->funcs.n; i++) { /* a loop's steps are for operations of its body */
        func_number(m->funcs.v[i]);
        n += (size_t)m->funcs.v[i]->n_ops;
    }
    f.results = NEWN(r->a, Ops, (size_t)ph->steps.n + 1);
    f.is_stored = NEWN(r->a, bool, n);
    f.computed_in = NEWN(r->a, StepList, n);
    f.users = NEWN(r->a, Ops, n);
    for (int i = 0; i < ph->steps.n; i++) record_step(r, &f, i);
    for (int i = 0; i < m->funcs.n; i++)
        for (const Op *u = m->funcs.v[i]->first; u; u = u->next)
            for (int k = 0; k < u->n_in; k++) {
                Ops *users = &f.users[key_of(&f, u->in[k])];
                if (!has_op(users, u)) vec_push(r->a, users, u);
            }
    return f;
}

/* The values that step number `step` computes: first those that stay in its kernel, then those that
 * it stores. */
Ops fusion_computed(const Report *r, const FusionFacts *f, int step) {
    Ops out = {0};
    const Ops *results = &f->results[step];
    const LKernel *k = f->ph->steps.v[step]->kernel;
    for (int i = 0; k && i < k->computes.n; i++)
        if (!has_op(results, k->computes.v[i])) vec_push(r->a, &out, k->computes.v[i]);
    for (int i = 0; i < results->n; i++) vec_push(r->a, &out, results->v[i]);
    return out;
}

/* ---- what stays out of memory -------------------------------------------------------------- */
/* Whether the value would be in memory if nothing were fused. Scalars, constants, indices and views
 * would not, so keeping these out of memory saves nothing. */
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

/* The values that step number `step` computes and that no step stores: they were fused away. */
Ops fusion_elided(const Report *r, const FusionFacts *f, int step) {
    Ops out = {0};
    const LKernel *k = f->ph->steps.v[step]->kernel;
    for (int i = 0; k && i < k->computes.n; i++) {
        const Op *op = k->computes.v[i];
        if (would_be_stored(op) && !f->is_stored[key_of(f, op)]) vec_push(r->a, &out, op);
    }
    return out;
}

/* The bytes of memory traffic that step number `step` saves by not storing the values of
 * fusion_elided(): one read of each, and one write in the first step that computes it. */
const Expr *fusion_saved_bytes(const Report *r, const FusionFacts *f, int step) {
    Ops elided = fusion_elided(r, f, step);
    const Expr *e = expr_const(r->a, 0);
    for (int i = 0; i < elided.n; i++) {
        const Op *op = elided.v[i];
        int times = f->computed_in[key_of(f, op)].v[0] == step ? 2 : 1;
        const Expr *count = type_count(r->a, &op->type);
        e = expr_add(r->a, e,
                     expr_mul(r->a, count, expr_const(r->a, times * dtype_bytes(op->type.dt))));
    }
    return e;
}

/* ---- why a result is stored ------------------------------------------------------------------ */
/* Adds reason x to the list, unless a reason with the same text is in it. */
static void add_reason(const Report *r, Reasons *out, Reason x) {
    for (int i = 0; i < out->n; i++)
        if (!strcmp(out->v[i].text, x.text)) return;
    vec_push(r->a, out, x);
}

/* Adds a reason that has only a text: no reading kernel and no remedy. */
static void add_reason_text(const Report *r, Reasons *out, const char *text) {
    add_reason(r, out, (Reason){.text = text});
}

/* The source position of op as " (file:line)", or "" if it has none. */
static const char *position_text(const Report *r, const Op *op) {
    const char *at = report_at(r, op->span);
    return *at ? arena_printf(r->a, " (%s)", at) : "";
}

/* Whether step number `step` computes op. */
static bool is_computed_in(const FusionFacts *f, const Op *op, int step) {
    const StepList *l = &f->computed_in[key_of(f, op)];
    for (int i = 0; i < l->n; i++)
        if (l->v[i] == step) return true;
    return false;
}

/* Says in words why the kernel called `kernel` does not compute the value itself but reads it from
 * memory. p is the planner's record of that decision. */
static const char *unfused_text(const Report *r, const PUnfused *p, const char *kernel) {
    bool needs_other = p->cause == UNFUSED_SIBLING || p->cause == UNFUSED_LATER;
    const char *at = position_text(r, p->via && !needs_other ? p->via : p->root),
               *text = plan_unfused_text(p->cause);
    if (p->cause == UNFUSED_GATHER)
        return arena_printf(r->a, "gathered by %s%s: %s", kernel, at, text);
    if (needs_other)
        text = arena_printf(r->a, "%s %s%s, made %s it", text, report_op_name(p->via),
                            position_text(r, p->via), p->cause == UNFUSED_LATER ? "after" : "with");
    return arena_printf(r->a, "%s%s %s", kernel, at, text);
}

/* Adds the planner's reasons why step number `step` reads `value` from memory instead of computing
 * it in its own kernel. False: the planner recorded none. */
static bool add_unfused_reasons(const Report *r, const FusionFacts *f, const Op *value, int step,
                                Reasons *out) {
    bool any = false;
    for (int i = 0; i < f->ph->apart.n; i++) {
        const PUnfused *p = &f->ph->apart.v[i];
        if (p->value != value || !is_computed_in(f, p->root, step)) continue;
        const char *reader = f->ph->steps.v[step]->kernel->name;
        bool later = p->cause == UNFUSED_SIBLING || p->cause == UNFUSED_LATER;
        add_reason(
            r, out,
            (Reason){unfused_text(r, p, reader), reader, later, plan_unfused_remedy(p->cause)});
        any = true;
    }
    return any;
}

/* Adds a reason for each step that computes `user` and reads `root` from memory to do so. Steps
 * that compute or store `root` themselves do not read it. */
static void add_reasons_of_user(const Report *r, const FusionFacts *f, const Op *root,
                                const Op *user, Reasons *out) {
    for (int i = 0; i < f->computed_in[key_of(f, user)].n; i++) {
        int step = f->computed_in[key_of(f, user)].v[i];
        const PStep *s = f->ph->steps.v[step];
        const char *at = position_text(r, user);
        if (is_computed_in(f, root, step) || has_op(&f->results[step], root)) continue;
        if (s->kind == PS_GEMM)
            add_reason_text(
                r, out,
                arena_printf(r->a, "operand of the matrix product %s%s", report_op_name(user), at));
        else if (s->kind != PS_KERNEL)
            add_reason_text(r, out, arena_printf(r->a, "operand of a library call%s", at));
        else if (!add_unfused_reasons(r, f, root, step, out))
            add_reason_text(r, out, arena_printf(r->a, "%s%s reads it", s->kernel->name, at));
    }
}

/* Adds the reasons why `root` is in memory: one for each reader of `value`, which is root itself or
 * a view of it. Views are followed recursively. */
static void add_reasons(const Report *r, const FusionFacts *f, const Op *value, const Op *root,
                        Reasons *out) {
    const Ops *users = &f->users[key_of(f, value)];
    for (int i = 0; i < users->n; i++) {
        const Op *u = users->v[i];
        if (u->kind == OP_OUTPUT)
            add_reason_text(r, out, arena_printf(r->a, "output \"%s\"", u->name));
        else if (u->kind == OP_ASSIGN)
            add_reason_text(r, out, arena_printf(r->a, "next value of %s", u->var->path));
        else if (u->kind == OP_NEXT)
            add_reason_text(r, out, "the loop's next iteration has it");
        else if (op_has(u, OPT_EFFECT))
            add_reason_text(r, out, arena_printf(r->a, "the host needs it%s", position_text(r, u)));
        else
            add_reasons_of_user(r, f, root, u, out);
        if (op_has(u, OPT_VIEW)) add_reasons(r, f, u, root, out);
    }
}

/* Adds reasons for a value that only its own kernel reads: one loop over rows leaves it in memory
 * for the next loop. */
static void add_reasons_within(const Report *r, const FusionFacts *f, const Op *value,
                               Reasons *out) {
    const Ops *users = &f->users[key_of(f, value)];
    for (int i = 0; i < users->n; i++)
        if (f->computed_in[key_of(f, users->v[i])].n)
            add_reason(r, out,
                       (Reason){arena_printf(r->a, "read again in its own kernel%s",
                                             position_text(r, users->v[i])),
                                "itself", false, NULL});
}

/* Reduces the reasons to one for each kernel that reads the value. A reason that concerns the value
 * itself is preferred to one that concerns another operand of the reader. */
static Reasons one_per_reader(const Report *r, const Reasons *all) {
    Reasons out = {0};
    for (int i = 0; i < all->n; i++) {
        const Reason *x = &all->v[i];
        int k = 0;
        while (k < out.n && !(x->reader && out.v[k].reader && !strcmp(x->reader, out.v[k].reader)))
            k++;
        if (k == out.n)
            vec_push(r->a, &out, *x);
        else if (out.v[k].via_other && !x->via_other)
            out.v[k] = *x;
    }
    return out;
}

/* Why `value` is stored in memory. all: every reason; otherwise one for each kernel that reads
 * it. */
Reasons fusion_reasons(const Report *r, const FusionFacts *f, const Op *value, bool all) {
    Reasons out = {0};
    if (value->ask == ASK_STORE) add_reason_text(r, &out, "the model says: store");
    add_reasons(r, f, value, value, &out);
    if (!out.n) add_reasons_within(r, f, value, &out);
    return all ? out : one_per_reader(r, &out);
}
