/* Numbers, places, types and names, as all reports write them. */
#include "codegen/plan_passes/plan_order.h"
#include "codegen/report/report.h"

/* Whether all sizes in the expression are known. */
static bool all_known(const int64_t *sizes, const Expr *e) {
    if (e->kind == EX_CONST) return true;
    if (e->kind == EX_SYM) return sizes && sizes[e->sym->id] >= 0;
    return all_known(sizes, e->a) && all_known(sizes, e->b);
}

/* Evaluates an expression; false: a size is not known. */
bool report_value(const Report *r, const Expr *e, int64_t *v) {
    if (!all_known(r->o->sizes, e)) return false;
    *v = expr_eval(e, r->o->sizes);
    return true;
}

/* Finds the sizes, nominal ones where the data's are not known. */
void report_find_sizes(Report *r) {
    const Module *m = r->p->m;
    int64_t *n = plan_order_nominal_sizes(r->a, m);
    r->known = true;
    for (int i = 0; i < m->syms.n; i++) {
        bool is = r->o->sizes && r->o->sizes[i] >= 0;
        if (is) n[i] = r->o->sizes[i];
        r->known &= is;
    }
    r->nominal = n;
}

/* Evaluates an expression by nominal sizes. */
double report_nominal(const Report *r, const Expr *e) {
    return (double)expr_eval(e, r->nominal);
}

/* Prints a number with a metric prefix. */
static void print_scaled(StrBuf *b, double v, const char *unit) {
    static const char *const prefix[] = {"", "k", "M", "G", "T", "P"};
    size_t i = 0;
    if (v < 1e4) {
        sb_printf(b, "%.0f%s%s", v, *unit ? " " : "", unit);
        return;
    }
    for (; v >= 1e3 && i + 1 < COUNT(prefix); i++) v /= 1e3;
    sb_printf(b, "%.1f %s%s", v, prefix[i], unit);
}

/* Prints an expression and its value. */
void report_amount(Report *r, const Expr *e, const char *unit) {
    int64_t v;
    bool known = report_value(r, e, &v);
    if (expr_is_const(e, NULL)) {
        print_scaled(r->b, (double)e->c, unit);
        return;
    }
    expr_print(r->b, e);
    if (!known) {
        if (*unit) sb_printf(r->b, " %s", unit);
        return;
    }
    sb_puts(r->b, " = ");
    print_scaled(r->b, (double)v, unit);
}

/* Prints an expression and its value as JSON. */
void report_json_expr(Report *r, const char *key, const Expr *e) {
    StrBuf s = sb_new(r->a);
    int64_t v;
    expr_print(&s, e);
    json_object(r->j, key);
    json_text(r->j, "expr", s.s);
    if (report_value(r, e, &v))
        json_int(r->j, "value", v);
    else
        json_int(r->j, "nominal", (int64_t)report_nominal(r, e));
    json_end(r->j);
}

/* The source position, as text. */
const char *report_at(const Report *r, Span at) {
    if (!at.line || (int)at.file >= r->c->sources.n) return "";
    const char *path = r->j ? r->c->sources.v[at.file].path : cg_path_short(r->p->m, at.file);
    return arena_printf(r->a, "%s:%u", path, at.line);
}

/* A type, as text. */
const char *report_type(const Report *r, const Type *t) {
    StrBuf s = sb_new(r->a);
    type_print(&s, t);
    return s.s;
}

/* The name of an operation, for people. */
const char *report_op_name(const Op *op) {
    if (op->hint) return op->hint;
    if (op->kind == OP_VAR || op->kind == OP_ASSIGN) return op->var->path;
    return op->name ? op->name : op_mnemonic(op->kind);
}

/* The phase that reports are about first: training, prediction or evaluation. */
int report_main_phase(const Report *r) {
    static const Phase wanted[] = {PHASE_TRAIN, PHASE_PREDICT, PHASE_EVAL};
    for (size_t k = 0; k < COUNT(wanted); k++)
        for (int i = 0; i < r->p->phases.n; i++)
            if (r->p->phases.v[i]->func->phase == wanted[k]) return i;
    return r->p->phases.n - 1;
}

/* Whether the step runs on the device. */
bool report_is_device(const Report *r, const PStep *s) {
    return !plan_step_interrupts(s, r->p->device != NULL);
}
