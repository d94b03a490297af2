/* Numbers, places, types and names, as all reports write them. */
#include "codegen/plan_passes/plan_order.h"
#include "codegen/report/report.h"

/* Whether all sizes in the expression e are known. sizes: by Sym.id, negative = unknown; NULL: none
 * is known. */
static bool all_known(const int64_t *sizes, const Expr *e) {
    if (e->kind == EX_CONST) return true;
    if (e->kind == EX_SYM) return sizes && sizes[e->sym->id] >= 0;
    return all_known(sizes, e->a) && all_known(sizes, e->b);
}

/* The value of e with the known sizes of the data, in *v. False: a size is not known. */
bool report_value(const Report *r, const Expr *e, int64_t *v) {
    if (!all_known(r->o->sizes, e)) return false;
    *v = expr_eval(e, r->o->sizes);
    return true;
}

/* Sets r->nominal to the size of each symbol: the data's where known, else a nominal one that tells
 * large from small. r->known: the data's are all known. */
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

/* The value of e by known sizes, nominal ones where the data's are not known. */
double report_nominal(const Report *r, const Expr *e) {
    return (double)expr_eval(e, r->nominal);
}

/* Prints a number with a metric prefix and a unit, as "660.5 kB". */
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

/* Prints e as text with its value where that is known, as "64*E_cites = 660.5 kB". A constant is
 * printed as its value alone. */
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

/* Prints e as a JSON object with its text and its value, or a nominal value where a size is not
 * known. */
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

/* The source position as "file:line": in JSON the path that the user gave, or a library file's from
 * "layers" on, in text a short one. "" if it is not known. */
const char *report_at(const Report *r, Span at) {
    if (!at.line || (int)at.file >= r->c->sources.n) return "";
    const char *path = r->j ? ctx_source_name(r->c, at.file) : cg_path_short(r->p->m, at.file);
    return arena_printf(r->a, "%s:%u", path, at.line);
}

/* The type t in the notation of the graph IR. */
const char *report_type(const Report *r, const Type *t) {
    StrBuf s = sb_new(r->a);
    type_print(&s, t);
    return s.s;
}

/* A name for the result of op that the model's author knows, else the op's mnemonic. */
const char *report_op_name(const Op *op) {
    if (op->hint) return op->hint;
    if (op->kind == OP_VAR || op->kind == OP_ASSIGN) return op->var->path;
    return op->name ? op->name : op_mnemonic(op->kind);
}

/* The index of the phase that verdict and source are about: training, else prediction, else
 * evaluation, else the last; -1: there is none. */
int report_main_phase(const Report *r) {
    static const Phase wanted[] = {PHASE_TRAIN, PHASE_PREDICT, PHASE_EVAL};
    for (size_t k = 0; k < COUNT(wanted); k++)
        for (int i = 0; i < r->p->phases.n; i++)
            if (r->p->phases.v[i]->func->phase == wanted[k]) return i;
    return r->p->phases.n - 1;
}

/* The first machine of the device that the program is for. */
const TargetDevice *report_roof(const Report *r) {
    return r->o->roof && r->o->roof->n_devices ? &r->o->roof->devices[0] : NULL;
}

/* Whether the step runs on the device without interrupting the phase. */
bool report_is_device(const Report *r, const PStep *s) {
    return !plan_step_interrupts(s, r->p->device != NULL);
}
