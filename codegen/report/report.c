/* Which reports there are, and what they share. */
#include "codegen/plan_passes/plan_order.h"
#include "codegen/report/report.h"
#include "passes/threshold.h"

#include <string.h>

static const struct {
    const char *name;
    unsigned kind;
    void (*print)(Report *r);
} reports[] = {
    {"shapes", REPORT_SHAPES, report_shapes},    {"breaks", REPORT_BREAKS, report_breaks},
    {"fusion", REPORT_FUSION, report_fusion},    {"syncs", REPORT_SYNCS, report_syncs},
    {"memory", REPORT_MEMORY, report_memory},    {"precision", REPORT_PRECISION, report_precision},
    {"missed", REPORT_MISSED, report_missed},    {"source", REPORT_SOURCE, report_source},
    {"degrees", REPORT_DEGREES, report_degrees}, {"kernels", REPORT_KERNELS, report_kernels},
    {"verdict", REPORT_VERDICT, report_verdict},
};

static unsigned kind_of(const char *name, size_t n) {
    if (n == 3 && strncmp(name, "all", 3) == 0) return REPORT_ALL;
    for (size_t i = 0; i < COUNT(reports); i++)
        if (strlen(reports[i].name) == n && strncmp(reports[i].name, name, n) == 0)
            return reports[i].kind;
    return 0;
}

const char *report_word(int i) {
    if (i == 0) return "all";
    return i <= (int)COUNT(reports) ? reports[i - 1].name : NULL;
}

unsigned report_kinds(const char *names) {
    unsigned kinds = 0;
    for (;;) {
        size_t n = strcspn(names, ",");
        unsigned k = kind_of(names, n);
        if (!k) return 0;
        kinds |= k;
        if (!names[n]) return kinds;
        names += n + 1;
    }
}

static const char *stop_text(const Op *op) {
    if (op->kind == OP_PRINT) return "print";
    return op->kind == OP_ASSERT ? "assert" : "a C function with an effect";
}

int report_count_effects(Module *m) {
    int n = 0;
    if (m->effects_counted) return m->n_effects;
    for (int i = 0; i < m->funcs.n; i++)
        for (const Op *op = m->funcs.v[i]->first; op; op = op->next) {
            bool effect = op->kind == OP_PRINT || op->kind == OP_ASSERT;
            effect = effect || op->kind == OP_CALL_EFFECT;
            if (effect) module_note(m, op->func, op->span, true, stop_text(op));
            n += effect;
        }
    m->effects_counted = true;
    return m->n_effects = n;
}

/* ---- numbers ------------------------------------------------------------------------------ */
static bool all_known(const int64_t *sizes, const Expr *e) {
    if (e->kind == EX_CONST) return true;
    if (e->kind == EX_SYM) return sizes && sizes[e->sym->id] >= 0;
    return all_known(sizes, e->a) && all_known(sizes, e->b);
}

bool report_value(const Report *r, const Expr *e, int64_t *v) {
    if (!all_known(r->o->sizes, e)) return false;
    *v = expr_eval(e, r->o->sizes);
    return true;
}

/* Sizes that are known, else nominal ones. */
static void find_sizes(Report *r) {
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

double report_nominal(const Report *r, const Expr *e) {
    return (double)expr_eval(e, r->nominal);
}

static void scaled(StrBuf *b, double v, const char *unit) {
    static const char *const prefix[] = {"", "k", "M", "G", "T", "P"};
    size_t i = 0;
    if (v < 1e4) {
        sb_printf(b, "%.0f%s%s", v, *unit ? " " : "", unit);
        return;
    }
    for (; v >= 1e3 && i + 1 < COUNT(prefix); i++) v /= 1e3;
    sb_printf(b, "%.1f %s%s", v, prefix[i], unit);
}

void report_amount(Report *r, const Expr *e, const char *unit) {
    int64_t v;
    bool known = report_value(r, e, &v);
    if (expr_is_const(e, NULL)) {
        scaled(r->b, (double)e->c, unit);
        return;
    }
    expr_print(r->b, e);
    if (!known) {
        if (*unit) sb_printf(r->b, " %s", unit);
        return;
    }
    sb_puts(r->b, " = ");
    scaled(r->b, (double)v, unit);
}

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

/* ---- names ---------------------------------------------------------------------------------- */
const char *report_at(const Report *r, Span at) {
    if (!at.line || (int)at.file >= r->c->sources.n) return "";
    const char *path = r->j ? r->c->sources.v[at.file].path : cg_path_short(r->p->m, at.file);
    return arena_printf(r->a, "%s:%u", path, at.line);
}

const char *report_type(const Report *r, const Type *t) {
    StrBuf s = sb_new(r->a);
    type_print(&s, t);
    return s.s;
}

const char *report_op_name(const Op *op) {
    if (op->hint) return op->hint;
    if (op->kind == OP_VAR || op->kind == OP_ASSIGN) return op->var->path;
    return op->name ? op->name : op_mnemonic(op->kind);
}

int report_main_phase(const Report *r) {
    static const Phase wanted[] = {PHASE_TRAIN, PHASE_PREDICT, PHASE_EVAL};
    for (size_t k = 0; k < COUNT(wanted); k++)
        for (int i = 0; i < r->p->phases.n; i++)
            if (r->p->phases.v[i]->func->phase == wanted[k]) return i;
    return r->p->phases.n - 1;
}

bool report_is_device(const Report *r, const PStep *s) {
    return !plan_step_stops(s, r->p->device != NULL);
}

/* ---- all of them -------- */
typedef struct {
    const char *text;
    size_t n;
    int times;
} Remark;
typedef VEC(Remark) Remarks;

/* Each once.  What fuse and form-kernels decided is told above, kernel by kernel. */
static Remarks remarks_of(const Report *r) {
    Remarks all = {0};
    for (const char *s = r->o->remarks ? r->o->remarks : ""; *s;) {
        Remark x = {s, strcspn(s, "\n"), 1};
        s += x.n + (s[x.n] == '\n');
        if (memmem(x.text, x.n, ": fuse: ", 8) || memmem(x.text, x.n, ": form-kernels: ", 16))
            continue;
        int i = 0;
        while (i < all.n && (all.v[i].n != x.n || memcmp(all.v[i].text, x.text, x.n) != 0)) i++;
        if (i < all.n)
            all.v[i].times++;
        else
            vec_push(r->a, &all, x);
    }
    return all;
}

static void remarks_text(Report *r) {
    Remarks all = remarks_of(r);
    if (all.n) sb_puts(r->b, "remarks of other passes\n");
    for (int i = 0; i < all.n; i++) {
        sb_puts(r->b, "  ");
        sb_put(r->b, all.v[i].text, all.v[i].n);
        if (all.v[i].times > 1) sb_printf(r->b, " (%d times)", all.v[i].times);
        sb_puts(r->b, "\n");
    }
}

static void lines_json(Report *r, const char *name, const char *s) {
    json_array(r->j, name);
    while (s && *s) {
        size_t n = strcspn(s, "\n");
        json_text(r->j, NULL, arena_strndup(r->a, s, n));
        s += n + (s[n] == '\n');
    }
    json_end(r->j);
}

/* All of them, and those that say what was not done. */
static void remarks_json(Report *r) {
    StrBuf refused = sb_new(r->a);
    if (r->o->record) pass_refusals_put(r->c, &refused, r->o->record);
    lines_json(r, "remarks", r->o->remarks);
    lines_json(r, "refused", refused.s);
}

static void thresholds_text(Report *r) {
    StrBuf b = sb_new(r->a);
    pass_thresholds_put(&b, r->c);
    if (b.n) sb_printf(r->b, "with%s\n", b.s);
}

/* ---- which of the program's variants -------- */
static void variant_text(Report *r) {
    const ReportOptions *o = r->o;
    if (o->n_variants < 2) return;
    sb_printf(r->b, "variant %d of %d: %s\n", o->variant, o->n_variants, o->choice[o->variant]);
    for (int i = 0; i < o->n_variants; i++)
        if (i != o->variant) sb_printf(r->b, "  --variant=%d: %s\n", i, o->choice[i]);
}

static void variant_json(Report *r) {
    const ReportOptions *o = r->o;
    json_int(r->j, "variant", o->variant);
    json_array(r->j, "variants");
    for (int i = 0; i < o->n_variants && o->n_variants > 1; i++)
        json_text(r->j, NULL, o->choice[i]);
    json_end(r->j);
}

void report_print(StrBuf *b, Ctx *c, const Plan *p, const ReportOptions *o) {
    Json json = {.b = b, .in_html = o->in_html};
    Report r = {.c = c, .a = c->a, .p = p, .o = o, .b = b, .j = o->json ? &json : NULL};
    find_sizes(&r);
    if (r.j) {
        json_object(r.j, NULL);
        json_int(r.j, "version", REPORT_VERSION);
        json_text(r.j, "program", p->m->name);
        json_text(r.j, "options", p->options);
        json_text(r.j, "data", o->data);
        variant_json(&r);
    } else {
        variant_text(&r);
        thresholds_text(&r);
        if (o->kinds & REPORT_FUSION) report_summary(&r);
    }
    for (size_t i = 0; i < COUNT(reports); i++)
        if (o->kinds & reports[i].kind) reports[i].print(&r);
    if (!(o->kinds & REPORT_FUSION)) {
        if (r.j) json_end(r.j);
        return;
    }
    if (r.j) {
        remarks_json(&r);
        json_end(r.j);
    } else {
        remarks_text(&r);
    }
}
