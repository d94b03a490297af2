/* --report=fusion: per kernel and library call what it computes, moves and keeps out of
 * memory, and why its results are stored.
 *
 * A value that is computed inside kernels and has no buffer would cost, stored, one write
 * and one read for each kernel that uses it: those are the bytes saved.  (Values that are
 * constants, indices or views would be stored by nobody and are not counted.) */
#include "codegen/report.h"

#include <string.h>

typedef VEC(const Op *) Ops;
typedef VEC(const PStep *) Steps;

/* ---- facts ------------------------------------------------------------------------------- */
static bool has(const Ops *v, const Op *op) {
    for (int i = 0; i < v->n; i++)
        if (v->v[i] == op) return true;
    return false;
}

/* The second half of a long reduction, which adds what the first half left. */
static bool adds_partials(const PStep *s) {
    for (int i = 0; s->kernel && i < s->kernel->bufs.n; i++)
        if (s->kernel->bufs.v[i]->partial && !s->kernel->bufs.v[i]->written) return true;
    return false;
}

static bool computes(const PStep *s, const Op *op) {
    if (s->op == op && s->kind != PS_COPY && !adds_partials(s)) return true;
    for (int i = 0; s->kernel && i < s->kernel->computes.n; i++)
        if (s->kernel->computes.v[i] == op) return true;
    return false;
}

/* The values that a step leaves in memory. */
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

static bool would_be_stored(const Op *op) {
    if (op->type.rank == 0 || op_has(op, OPT_SOURCE | OPT_VIEW | OPT_EFFECT)) return false;
    switch (op->kind) {
    case OP_CONST:
    case OP_IOTA:
    case OP_VALID:
    case OP_INDEX:
    case OP_DETACH:
        return false;
    default:
        return true;
    }
}

static bool is_result(const Report *r, const PPhase *ph, const Op *op) {
    for (int i = 0; i < ph->steps.n; i++) {
        Ops results = results_of(r, ph->steps.v[i]);
        if (has(&results, op)) return true;
    }
    return false;
}

/* Values computed in s that have no buffer. */
static Ops kept_out(const Report *r, const PPhase *ph, const PStep *s) {
    Ops out = {0};
    for (int i = 0; s->kernel && i < s->kernel->computes.n; i++) {
        const Op *op = s->kernel->computes.v[i];
        if (would_be_stored(op) && !is_result(r, ph, op)) vec_push(r->a, &out, op);
    }
    return out;
}

static const Expr *value_bytes(const Report *r, const Op *op) {
    return expr_mul(r->a, type_count(r->a, &op->type), expr_const(r->a, dtype_bytes(op->type.dt)));
}

/* Everything a step computes, its results last. */
static Ops computed_by(const Report *r, const PStep *s) {
    Ops out = {0}, results = results_of(r, s);
    for (int i = 0; s->kernel && i < s->kernel->computes.n; i++)
        if (!has(&results, s->kernel->computes.v[i]))
            vec_push(r->a, &out, s->kernel->computes.v[i]);
    for (int i = 0; i < results.n; i++) vec_push(r->a, &out, results.v[i]);
    return out;
}

/* The kernel that computes op first also saves the write. */
static bool computed_before(const PPhase *ph, const PStep *s, const Op *op) {
    for (int i = 0; i < ph->steps.n && ph->steps.v[i] != s; i++)
        if (ph->steps.v[i]->kernel && computes(ph->steps.v[i], op)) return true;
    return false;
}

static const Expr *saved_by(const Report *r, const PPhase *ph, const PStep *s, const Ops *kept) {
    const Expr *e = expr_const(r->a, 0);
    for (int i = 0; i < kept->n; i++) {
        int times = computed_before(ph, s, kept->v[i]) ? 1 : 2;
        const Expr *n = expr_mul(r->a, value_bytes(r, kept->v[i]), expr_const(r->a, times));
        e = expr_add(r->a, e, n);
    }
    return e;
}

/* ---- why a result is stored ------------------------------------------------------------------ */
typedef VEC(const char *) Reasons;

static void add_reason(const Report *r, Reasons *out, const char *s) {
    for (int i = 0; i < out->n; i++)
        if (!strcmp(out->v[i], s)) return;
    vec_push(r->a, out, s);
}

static const char *where(const Report *r, const Op *op) {
    const char *at = report_at(r, op->span);
    return *at ? arena_printf(r->a, " (%s)", at) : "";
}

static void reasons_in_kernel(const Report *r, const PPhase *ph, const Op *root, const Op *user,
                              Reasons *out) {
    for (int i = 0; i < ph->steps.n; i++) {
        const PStep *s = ph->steps.v[i];
        if (!s->kernel || !computes(s, user) || computes(s, root)) continue;
        if (user->kind == OP_GATHER)
            add_reason(r, out,
                       arena_printf(r->a,
                                    "gathered by %s%s: in place it would be computed once "
                                    "per entry",
                                    s->kernel->name, where(r, user)));
        else
            add_reason(r, out,
                       arena_printf(r->a, "%s%s reads it%s", s->kernel->name, where(r, user),
                                    op_has(root, OPT_REDUCE) ? " when its sums are complete" : ""));
    }
}

static void reasons_of(const Report *r, const PPhase *ph, const Op *value, const Op *root,
                       Reasons *out) {
    for (const Op *u = ph->func->first; u; u = u->next) {
        bool uses = false;
        for (int k = 0; k < u->n_in; k++) uses |= u->in[k] == value;
        if (!uses) continue;
        if (u->kind == OP_OUTPUT)
            add_reason(r, out, arena_printf(r->a, "output \"%s\"", u->name));
        else if (u->kind == OP_ASSIGN)
            add_reason(r, out, arena_printf(r->a, "next value of %s", u->var->path));
        else if (op_has(u, OPT_EFFECT))
            add_reason(r, out, arena_printf(r->a, "the host needs it%s", where(r, u)));
        else if (op_has(u, OPT_LIB))
            add_reason(r, out, arena_printf(r->a, "operand of a library call%s", where(r, u)));
        else if (op_has(u, OPT_VIEW))
            reasons_of(r, ph, u, root, out);
        for (int i = 0; i < ph->steps.n; i++)
            if (ph->steps.v[i]->kind == PS_GEMM && ph->steps.v[i]->op == u)
                add_reason(r, out,
                           arena_printf(r->a, "operand of the matrix product %s%s",
                                        report_op_name(u), where(r, u)));
        if (!op_has(u, OPT_EFFECT)) reasons_in_kernel(r, ph, root, u, out);
    }
}

/* ---- text ---------------------------------------------------------------------------------------
 */
static void text_list(Report *r, const char *title, const Ops *ops, bool types) {
    if (!ops->n) return;
    sb_printf(r->b, "      %-9s", title);
    for (int i = 0; i < ops->n; i++) {
        const Op *op = ops->v[i];
        const char *name = report_op_name(op), *word = op_mnemonic(op->kind);
        sb_printf(r->b, "%s%s", i ? ", " : "", word);
        if (strcmp(name, word)) sb_printf(r->b, " %s", name);
        if (types) sb_printf(r->b, ": %s", report_type(r, &op->type));
    }
    sb_puts(r->b, "\n");
}

static void text_cost(Report *r, const StepCost *c) {
    int64_t none;
    sb_puts(r->b, "      reads    ");
    report_amount(r, c->read, "B");
    if (!expr_is_const(c->gathered, &none) || none) {
        sb_puts(r->b, "; gathered of it ");
        report_amount(r, c->gathered, "B");
    }
    sb_puts(r->b, "\n      writes   ");
    report_amount(r, c->written, "B");
    sb_puts(r->b, "\n      computes ");
    report_amount(r, c->flops, "FLOP");
    sb_puts(r->b, "\n");
}

static void text_step(Report *r, const PPhase *ph, int index) {
    const PStep *s = ph->steps.v[index];
    Ops results = results_of(r, s), kept = kept_out(r, ph, s), all = computed_by(r, s);
    StepCost cost = cost_of_step(r->a, r->p, s);
    const char *shape = step_shape(r->a, s);
    sb_printf(r->b, "    %d %s%s%s%s\n", index, step_name(s), *shape ? " over " : "", shape,
              s->balance ? " (balanced by entries)" : "");
    sb_printf(r->b, "      lines    %s\n", step_lines(r->c, r->a, s));
    text_list(r, "does", &all, false);
    text_cost(r, &cost);
    text_list(r, "in place", &kept, true);
    if (kept.n) {
        sb_puts(r->b, "      saves    ");
        report_amount(r, saved_by(r, ph, s, &kept), "B");
        sb_puts(r->b, "\n");
    }
    for (int i = 0; i < results.n; i++) {
        Reasons why = {0};
        reasons_of(r, ph, results.v[i], results.v[i], &why);
        sb_printf(r->b, "      stores   %s: %s\n", report_op_name(results.v[i]),
                  report_type(r, &results.v[i]->type));
        for (int k = 0; k < why.n; k++) sb_printf(r->b, "        %s\n", why.v[k]);
    }
}

/* ---- JSON ---------------------------------------------------------------------------------------
 */
static void json_ops(Report *r, const char *key, const Ops *ops) {
    json_array(r->j, key);
    for (int i = 0; i < ops->n; i++) {
        json_object(r->j, NULL);
        json_text(r->j, "op", op_mnemonic(ops->v[i]->kind));
        json_text(r->j, "name", ops->v[i]->hint);
        json_text(r->j, "type", report_type(r, &ops->v[i]->type));
        json_text(r->j, "line", report_at(r, ops->v[i]->span));
        json_end(r->j);
    }
    json_end(r->j);
}

static void json_results(Report *r, const PPhase *ph, const PStep *s) {
    Ops results = results_of(r, s);
    json_array(r->j, "stores");
    for (int i = 0; i < results.n; i++) {
        Reasons why = {0};
        reasons_of(r, ph, results.v[i], results.v[i], &why);
        json_object(r->j, NULL);
        json_text(r->j, "name", report_op_name(results.v[i]));
        json_text(r->j, "type", report_type(r, &results.v[i]->type));
        json_array(r->j, "reasons");
        for (int k = 0; k < why.n; k++) json_text(r->j, NULL, why.v[k]);
        json_end(r->j);
        json_end(r->j);
    }
    json_end(r->j);
}

static void json_step(Report *r, const PPhase *ph, int index) {
    const PStep *s = ph->steps.v[index];
    Ops kept = kept_out(r, ph, s), all = computed_by(r, s);
    StepCost cost = cost_of_step(r->a, r->p, s);
    json_object(r->j, NULL);
    json_int(r->j, "step", index);
    json_text(r->j, "kind", s->kind == PS_KERNEL ? "kernel" : step_name(s));
    json_text(r->j, "name", step_name(s));
    json_text(r->j, "over", step_shape(r->a, s));
    json_text(r->j, "lines", step_lines(r->c, r->a, s));
    report_json_expr(r, "read", cost.read);
    report_json_expr(r, "gathered", cost.gathered);
    report_json_expr(r, "written", cost.written);
    report_json_expr(r, "flops", cost.flops);
    report_json_expr(r, "saved", saved_by(r, ph, s, &kept));
    json_ops(r, "computes", &all);
    json_ops(r, "in_place", &kept);
    json_results(r, ph, s);
    json_end(r->j);
}

/* ---- a phase
 * ------------------------------------------------------------------------------------- */
typedef struct {
    int kernels, calls;
    const Expr *moved, *flops, *saved;
} Sum;

static Sum sum_of(const Report *r, const PPhase *ph) {
    const Expr *none = expr_const(r->a, 0);
    Sum t = {0, 0, none, none, none};
    for (int i = 0; i < ph->steps.n; i++) {
        const PStep *s = ph->steps.v[i];
        StepCost c = cost_of_step(r->a, r->p, s);
        Ops kept = kept_out(r, ph, s);
        t.kernels += s->kind == PS_KERNEL;
        t.calls += s->kind == PS_GEMM || s->kind == PS_RANK;
        t.moved = expr_add(r->a, t.moved, expr_add(r->a, c.read, c.written));
        t.flops = expr_add(r->a, t.flops, c.flops);
        t.saved = expr_add(r->a, t.saved, saved_by(r, ph, s, &kept));
    }
    return t;
}

static void text_phase(Report *r, const PPhase *ph) {
    Sum t = sum_of(r, ph);
    sb_printf(r->b, "  @%s: %d kernels, %d library calls\n    moves    ", ph->name, t.kernels,
              t.calls);
    report_amount(r, t.moved, "B");
    sb_puts(r->b, "\n    computes ");
    report_amount(r, t.flops, "FLOP");
    sb_puts(r->b, "\n    saves    ");
    report_amount(r, t.saved, "B");
    sb_puts(r->b, " by keeping values out of memory\n");
    for (int i = 0; i < ph->steps.n; i++) text_step(r, ph, i);
}

static void json_phase(Report *r, const PPhase *ph) {
    Sum t = sum_of(r, ph);
    json_object(r->j, NULL);
    json_text(r->j, "phase", ph->name);
    json_int(r->j, "kernels", t.kernels);
    json_int(r->j, "library_calls", t.calls);
    report_json_expr(r, "moved", t.moved);
    report_json_expr(r, "flops", t.flops);
    report_json_expr(r, "saved", t.saved);
    json_array(r->j, "steps");
    for (int i = 0; i < ph->steps.n; i++) json_step(r, ph, i);
    json_end(r->j);
    json_end(r->j);
}

void report_fusion(Report *r) {
    if (r->j) {
        json_object(r->j, "fusion");
        json_array(r->j, "phases");
    } else {
        sb_puts(r->b, "fusion: what each kernel computes, moves and keeps out of memory\n");
    }
    for (int i = 0; i < r->p->phases.n; i++) (r->j ? json_phase : text_phase)(r, r->p->phases.v[i]);
    if (!r->j) return;
    json_end(r->j);
    json_end(r->j);
}
