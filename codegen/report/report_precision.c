/* --report=precision: the element type of each value in memory, and why it is that. */
#include "codegen/report/report.h"

/* Whether the result of op is a floating-point value in memory, which the report lists. */
static bool is_listed(const Op *op) {
    return !op->fused && dtype_is_float(op->type.dt) && !op_has(op, OPT_EFFECT | OPT_VIEW) &&
           (op->n_in > 0 || op_has(op, OPT_SOURCE));
}

/* Why a variable of the model has its element type, in words. */
static const char *variable_reason(const Var *v) {
    static const char *const kind[] = {
        [VAR_PARAM] = "a parameter", [VAR_STATE] = "a state", [VAR_SLOT] = "the optimizer's state"};
    return v->type.dt == DT_BF16 ? "the recipe says so" : kind[v->kind];
}

/* Why the result of op has its element type, in words. Data and inputs have theirs whatever
 * --precision says. */
static const char *type_reason(const Report *r, const Op *op) {
    if (op->why) return op->why;
    switch (op->kind) {
    case OP_VAR:
        return variable_reason(op->var);
    case OP_INPUT:
        return "the trainer gives it";
    case OP_SAVED:
        return "as it was saved";
    case OP_DATA:
        return op->col == module_target(r->p->m, false) ? "it is what is learned"
               : op->col->kind == COL_CSR               ? "stored entries stay f32"
                                                        : "as declared";
    default:
        return "as written";
    }
}

/* The bytes that all steps of a phase read and write. */
static const Expr *moved_bytes(const Report *r, const PPhase *ph) {
    const Expr *n = expr_const(r->a, 0);
    for (int i = 0; i < ph->steps.n; i++) {
        StepCost c = cg_step_cost(r->a, r->p, ph->steps.v[i]);
        n = expr_add(r->a, n, expr_add(r->a, c.read, c.written));
    }
    return n;
}

/* Prints a phase as text: how many values in memory have each element type, the bytes moved, then
 * each value with the reason. */
static void print_phase(Report *r, const PPhase *ph) {
    int n[N_DTYPES] = {0};
    for (const Op *op = ph->func->first; op; op = op->next)
        if (is_listed(op)) n[op->type.dt]++;
    sb_printf(r->b, "  @%s: values in memory:", ph->name);
    for (int t = 0; t < N_DTYPES; t++)
        if (n[t]) sb_printf(r->b, " %d %s", n[t], dtype_name((DType)t));
    sb_puts(r->b, "; moved ");
    report_amount(r, moved_bytes(r, ph), "B");
    sb_puts(r->b, "\n");
    for (const Op *op = ph->func->first; op; op = op->next) {
        if (!is_listed(op)) continue;
        const char *at = report_at(r, op->span);
        sb_printf(r->b, "    %-5s%s: %s (%s%s%s)\n", dtype_name(op->type.dt), report_op_name(op),
                  report_type(r, &op->type), at, *at ? ": " : "", type_reason(r, op));
    }
}

/* Prints a phase as a JSON object: the bytes moved, and each value in memory with its type and the
 * reason. */
static void json_phase(Report *r, const PPhase *ph) {
    json_object(r->j, NULL);
    json_text(r->j, "phase", ph->name);
    report_json_expr(r, "moved_bytes", moved_bytes(r, ph));
    json_array(r->j, "values");
    for (const Op *op = ph->func->first; op; op = op->next) {
        if (!is_listed(op)) continue;
        json_object(r->j, NULL);
        json_text(r->j, "name", report_op_name(op));
        json_text(r->j, "type", report_type(r, &op->type));
        json_text(r->j, "line", report_at(r, op->span));
        json_text(r->j, "why", type_reason(r, op));
        json_end(r->j);
    }
    json_end(r->j);
    json_end(r->j);
}

/* Prints the report on all phases; as text, TF32 is mentioned where products use it. */
void report_precision(Report *r) {
    if (r->j)
        json_array(r->j, "precision");
    else
        sb_puts(r->b, "precision\n");
    if (!r->j && r->p->tf32)
        sb_puts(r->b,
                "  products of f32 round their factors to TF32 on a GPU, and nothing on a CPU\n");
    for (int i = 0; i < r->p->phases.n; i++)
        (r->j ? json_phase : print_phase)(r, r->p->phases.v[i]);
    if (r->j) json_end(r->j);
}
