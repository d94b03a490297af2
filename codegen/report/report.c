/* Which reports there are, and what they share. */
#include "codegen/plan_passes/plan_order.h"
#include "codegen/report/report.h"
#include "passes/threshold.h"

#include <string.h>

/* In the order in which they are printed: what says the most in the fewest lines comes first. */
static const struct {
    const char *name;
    unsigned kind;
    void (*print)(Report *r);
} reports[] = {
    {"verdict", REPORT_VERDICT, report_verdict},
    {"source", REPORT_SOURCE, report_source},
    {"missed", REPORT_MISSED, report_missed},
    {"kernels", REPORT_KERNELS, report_kernels},
    {"degrees", REPORT_DEGREES, report_degrees},
    {"shapes", REPORT_SHAPES, report_shapes},
    {"breaks", REPORT_BREAKS, report_breaks},
    {"fusion", REPORT_FUSION, report_fusion},
    {"syncs", REPORT_SYNCS, report_syncs},
    {"memory", REPORT_MEMORY, report_memory},
    {"precision", REPORT_PRECISION, report_precision},
    {"communication", REPORT_COMMUNICATION, report_communication},
    {"times", REPORT_TIMES, report_times},
};

/* The REPORT_ bits of a report's name, which is n bytes long; 0: there is no such report. */
static unsigned kind_of(const char *name, size_t n) {
    if (n == 3 && strncmp(name, "all", 3) == 0) return REPORT_ALL;
    for (size_t i = 0; i < COUNT(reports); i++)
        if (strlen(reports[i].name) == n && strncmp(reports[i].name, name, n) == 0)
            return reports[i].kind;
    return 0;
}

/* The name of report i as --report takes it, for --help: "all" is number 0. NULL behind the
 * last. */
const char *report_word(int i) {
    if (i == 0) return "all";
    return i <= (int)COUNT(reports) ? reports[i - 1].name : NULL;
}

/* The REPORT_ bits of a comma-separated list of report names; 0: a name is unknown. */
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

bool report_asks_assembler(unsigned kinds) {
    return (kinds & REPORT_TIMES) && kinds != REPORT_ALL;
}

/* The kind of host effect that op is, in words. */
static const char *stop_text(const Op *op) {
    if (op->kind == OP_PRINT) return "print";
    return op->kind == OP_ASSERT ? "assert" : "a C function with an effect";
}

/* Counts the host effects (print, assert, C functions with an effect) of the module before any
 * pass, and adds a note on each to the module. A second call returns the first count. */
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

/* ---- all of them -------- */
/* A pass's remark: a line of text, n bytes long, and how often it was made. */
typedef struct {
    const char *text;
    size_t n;
    int times;
} Remark;
typedef VEC(Remark) Remarks;

/* Splits the text of the passes' remarks into lines and counts equal ones. Those of fuse and
 * form-kernels are omitted, since the fusion report says the same. */
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

/* Prints the passes' remarks as text, each once with the number of times. */
static void print_remarks(Report *r) {
    Remarks all = remarks_of(r);
    if (all.n) sb_puts(r->b, "remarks of other passes\n");
    for (int i = 0; i < all.n; i++) {
        sb_puts(r->b, "  ");
        sb_put(r->b, all.v[i].text, all.v[i].n);
        if (all.v[i].times > 1) sb_printf(r->b, " (%d times)", all.v[i].times);
        sb_puts(r->b, "\n");
    }
}

/* Prints the lines of text s as a JSON array of strings with the key `name`. s may be NULL. */
static void json_lines(Report *r, const char *name, const char *s) {
    json_array(r->j, name);
    while (s && *s) {
        size_t n = strcspn(s, "\n");
        json_text(r->j, NULL, arena_strndup(r->a, s, n));
        s += n + (s[n] == '\n');
    }
    json_end(r->j);
}

/* Prints two JSON arrays: all remarks of the passes, and those about what a pass refused to do. */
static void json_remarks(Report *r) {
    StrBuf refused = sb_new(r->a);
    if (r->o->record) pass_refusals_put(r->c, &refused, r->o->record);
    json_lines(r, "remarks", r->o->remarks);
    json_lines(r, "refused", refused.s);
}

/* Prints the passes' thresholds that the user set to other than their defaults, if any. */
static void print_thresholds(Report *r) {
    StrBuf b = sb_new(r->a);
    pass_thresholds_put(&b, r->c);
    if (b.n) sb_printf(r->b, "with%s\n", b.s);
}

/* ---- which of the program's variants -------- */
/* Prints which variant of the program the report is about, and the other variants. Nothing where
 * the program has only one. */
static void print_variant(Report *r) {
    const ReportOptions *o = r->o;
    if (o->n_variants < 2) return;
    sb_printf(r->b, "variant %d of %d: %s\n", o->variant, o->n_variants, o->choice[o->variant]);
    for (int i = 0; i < o->n_variants; i++)
        if (i != o->variant) sb_printf(r->b, "  --variant=%d: %s\n", i, o->choice[i]);
}

/* Prints the number of this variant and what each of the program's variants decided, as JSON. */
static void json_variant(Report *r) {
    const ReportOptions *o = r->o;
    json_int(r->j, "variant", o->variant);
    json_array(r->j, "variants");
    for (int i = 0; i < o->n_variants && o->n_variants > 1; i++)
        json_text(r->j, NULL, o->choice[i]);
    json_end(r->j);
}

/* Prints the selected reports (o->kinds) about plan p to b, as text or as one JSON object. A fusion
 * report begins with the summary and ends with the passes' remarks. */
void report_print(StrBuf *b, Ctx *c, const Plan *p, const ReportOptions *o) {
    Json json = {.b = b, .in_html = o->in_html};
    Report r = {.c = c, .a = c->a, .p = p, .o = o, .b = b, .j = o->json ? &json : NULL};
    report_find_sizes(&r);
    if (r.j) {
        json_object(r.j, NULL);
        json_int(r.j, "version", REPORT_VERSION);
        json_text(r.j, "program", p->m->name);
        json_text(r.j, "options", p->options);
        json_text(r.j, "data", o->data);
        json_variant(&r);
    } else {
        print_variant(&r);
        print_thresholds(&r);
        if (o->kinds & REPORT_FUSION) report_summary(&r);
    }
    for (size_t i = 0; i < COUNT(reports); i++)
        if (o->kinds & reports[i].kind) reports[i].print(&r);
    if (!(o->kinds & REPORT_FUSION)) {
        if (r.j) json_end(r.j);
        return;
    }
    if (r.j) {
        json_remarks(&r);
        json_end(r.j);
    } else {
        print_remarks(&r);
    }
}
