/* --report=source: what each line of the model moves and computes in a run of the main phase, which
 * of its values are fused into kernels and which are stored, and why.
 *
 * What a layer's line does is told there, and at the user's call that led to it. */
#include "codegen/report/fusion_facts.h"

#include <stdlib.h>
#include <string.h>

/* A value on its source line: fused or stored, and why. */
typedef struct {
    const Op *value;
    int step; /* that computes it */
    bool stored;
    Reasons why; /* it is stored */
} Badge;

/* A line of a source file and what it costs. */
typedef struct {
    uint32_t file, line;       /* file: index in Ctx.sources */
    const Expr *bytes, *flops; /* of the steps' parts that stand on it */
    VEC(Badge) badges;         /* the values that the line makes */
} Line;

/* The report while it is collected. */
typedef struct {
    Report *r;
    const PPhase *ph; /* the phase that it is about */
    VEC(Line *) all;
    const Expr *bytes; /* of all steps */
} Lines;

/* The entry for a line of a source file, created on first use. */
static Line *line_at(Lines *l, uint32_t file, uint32_t line) {
    for (int i = 0; i < l->all.n; i++)
        if (l->all.v[i]->file == file && l->all.v[i]->line == line) return l->all.v[i];
    Line *x = NEW(l->r->a, Line);
    *x = (Line){.file = file, .line = line};
    x->bytes = x->flops = expr_const(l->r->a, 0);
    vec_push(l->r->a, &l->all, x);
    return x;
}

/* Whether the position is known and lies in a source file. */
static bool is_in_file(const Lines *l, Span at) {
    return at.line && (int)at.file < l->r->c->sources.n;
}

/* Finds the source lines at which a position is reported: its own and, if that is inside a layer,
 * the user's call of it. Returns how many there are in to[]. */
static int report_lines(const Lines *l, Span at, Span to[2]) {
    to[0] = at;
    to[1] = ctx_user_span(l->r->c, at);
    if (!is_in_file(l, at)) return 0;
    return is_in_file(l, to[1]) && (to[1].file != at.file || to[1].line != at.line) ? 2 : 1;
}

/* Adds the bytes and operations of step s to the source lines that cause them. */
static void add_costs(Lines *l, const PStep *s) {
    Arena *a = l->r->a;
    CostLines cost = cg_step_cost_lines(a, l->r->p, s);
    for (int i = 0; i < cost.n; i++) {
        const CostLine *c = &cost.v[i];
        Span at[2];
        l->bytes = expr_add(a, l->bytes, c->bytes);
        for (int k = 0, n = report_lines(l, c->at, at); k < n; k++) {
            Line *x = line_at(l, at[k].file, at[k].line);
            x->bytes = expr_add(a, x->bytes, c->bytes);
            x->flops = expr_add(a, x->flops, c->flops);
        }
    }
}

/* Adds a value with its verdict (fused or stored) to its source lines. */
static void add_badge(Lines *l, Badge b) {
    Span at[2];
    for (int k = 0, n = report_lines(l, b.value->span, at); k < n; k++)
        vec_push(l->r->a, &line_at(l, at[k].file, at[k].line)->badges, b);
}

/* Adds all values that step number `step` stores or fuses to their source lines. */
static void add_badges(Lines *l, const FusionFacts *f, int step) {
    Ops inlined = fusion_elided(l->r, f, step), results = f->results[step];
    for (int i = 0; i < results.n; i++)
        add_badge(l,
                  (Badge){results.v[i], step, true, fusion_reasons(l->r, f, results.v[i], false)});
    for (int i = 0; i < inlined.n; i++) add_badge(l, (Badge){inlined.v[i], step, false, {0}});
}

/* Compares two Line pointers by file and line, for qsort. */
static int compare_position(const void *x, const void *y) {
    const Line *a = *(Line *const *)x, *b = *(Line *const *)y;
    if (a->file != b->file) return a->file < b->file ? -1 : 1;
    return a->line < b->line ? -1 : a->line > b->line;
}

/* Collects the costs and values of all steps of the phase by source line, sorted. Steps that a
 * product's epilogue covers cost nothing. */
static void collect_lines(Lines *l) {
    FusionFacts f = fusion_analyze(l->r, l->ph);
    for (int i = 0; i < l->ph->steps.n; i++) {
        if (!report_is_covered(l->r, l->ph->steps.v[i])) add_costs(l, l->ph->steps.v[i]);
        add_badges(l, &f, i);
    }
    if (l->all.n) qsort(l->all.v, (size_t)l->all.n, sizeof *l->all.v, compare_position);
}

/* The text of the source line x, which ends after *n bytes. */
static const char *line_text(const Lines *l, const Line *x, int *n) {
    const char *s = l->r->c->sources.v[x->file].text;
    for (uint32_t i = 1; i < x->line && *s; s += *s == '\n') {
        s += strcspn(s, "\n");
        i++;
    }
    *n = (int)strcspn(s, "\n");
    return s;
}

/* ---- text -------- */
/* The name of step number `step`: its kernel's, or that of a library call. */
static const char *step_name(const Lines *l, int step) {
    return cg_step_name(l->ph->steps.v[step]);
}

/* Prints a text line for each kernel into which values of source line x were fused: its name, and
 * how many values. */
static void print_fused(const Lines *l, const Line *x) {
    StrBuf *b = l->r->b;
    for (int i = 0; i < x->badges.n; i++) {
        const Badge *first = &x->badges.v[i];
        int n = 0, k = 0;
        while (k < i && (x->badges.v[k].stored || x->badges.v[k].step != first->step)) k++;
        if (first->stored || k < i) continue;
        for (; k < x->badges.n; k++)
            n += !x->badges.v[k].stored && x->badges.v[k].step == first->step;
        sb_printf(b, "                fused into %s: %d value%s\n", step_name(l, first->step), n,
                  n == 1 ? "" : "s");
    }
}

/* Prints, for each value of line x that is stored in memory, why it is. */
static void print_stored(const Lines *l, const Line *x) {
    StrBuf *b = l->r->b;
    for (int i = 0; i < x->badges.n; i++) {
        const Badge *g = &x->badges.v[i];
        if (!g->stored) continue;
        sb_printf(b, "                stored %s: %s\n", report_op_name(g->value),
                  g->why.n ? g->why.v[0].text : "read again");
    }
}

/* Prints a source line with its share of the phase's bytes, then what became of its values. */
static void print_line(const Lines *l, const Line *x) {
    int n;
    double total_bytes = report_nominal(l->r, l->bytes),
           line_bytes = report_nominal(l->r, x->bytes);
    const char *s = line_text(l, x, &n);
    sb_printf(l->r->b, "  %5.1f%% %6u | %.*s\n",
              total_bytes > 0 ? 100 * line_bytes / total_bytes : 0, x->line, n, s);
    print_fused(l, x);
    print_stored(l, x);
}

/* Prints the report as text, file by file. Lines of the library's layers are omitted; their costs
 * are at the user's calls, too. */
static void print_text(const Lines *l) {
    const Line *before = NULL;
    sb_printf(l->r->b, "source: what lines move of %.3g MB in a run of @%s%s\n",
              1e-6 * report_nominal(l->r, l->bytes), l->ph->name,
              l->r->known ? "" : ", by nominal sizes");
    for (int i = 0; i < l->all.n; before = l->all.v[i++]) {
        const Line *x = l->all.v[i];
        if (l->r->c->sources.v[x->file].library) continue;
        if (!before || before->file != x->file)
            sb_printf(l->r->b, "  %s\n", cg_path_short(l->r->p->m, x->file));
        print_line(l, x);
    }
}

/* ---- JSON -------- */
/* Prints a value as a JSON object: fused or stored, in which step, and why it is stored. */
static void json_badge(const Lines *l, const Badge *g) {
    Json *j = l->r->j;
    json_object(j, NULL);
    json_text(j, "kind", g->stored ? "stored" : "fused");
    json_text(j, "value", report_op_name(g->value));
    json_text(j, "type", report_type(l->r, &g->value->type));
    json_int(j, "step", g->step);
    if (g->stored) {
        json_array(j, "why");
        for (int i = 0; i < g->why.n; i++) json_text(j, NULL, g->why.v[i].text);
        json_end(j);
    }
    json_end(j);
}

/* Prints a source line as a JSON object: its bytes, operations and values. */
static void json_line(const Lines *l, const Line *x) {
    Json *j = l->r->j;
    json_object(j, NULL);
    json_int(j, "line", x->line);
    report_json_expr(l->r, "bytes", x->bytes);
    report_json_expr(l->r, "flops", x->flops);
    json_array(j, "badges");
    for (int i = 0; i < x->badges.n; i++) json_badge(l, &x->badges.v[i]);
    json_end(j);
    json_end(j);
}

/* Prints a source file as a JSON object: its text, and the lines that cost something. */
static void json_file(const Lines *l, uint32_t file) {
    Json *j = l->r->j;
    const Source *s = &l->r->c->sources.v[file];
    json_object(j, NULL);
    json_text(j, "path", s->path);
    json_text(j, "name", cg_path_short(l->r->p->m, file));
    json_bool(j, "library", s->library);
    json_text(j, "text", s->text);
    json_array(j, "lines");
    for (int i = 0; i < l->all.n; i++)
        if (l->all.v[i]->file == file) json_line(l, l->all.v[i]);
    json_end(j);
    json_end(j);
}

/* Prints the report as JSON: the total and all source files. */
static void print_json(const Lines *l) {
    json_object(l->r->j, "source");
    json_text(l->r->j, "phase", l->ph->name);
    report_json_expr(l->r, "bytes", l->bytes);
    json_array(l->r->j, "files");
    for (int i = 0; i < l->r->c->sources.n; i++) json_file(l, (uint32_t)i);
    json_end(l->r->j);
    json_end(l->r->j);
}

/* Prints the report on the main phase (report_main_phase()); nothing if the program has no
 * phase. */
void report_source(Report *r) {
    int phase = report_main_phase(r);
    if (phase < 0) return;
    Lines l = {.r = r, .ph = r->p->phases.v[phase], .bytes = expr_const(r->a, 0)};
    collect_lines(&l);
    (r->j ? print_json : print_text)(&l);
}
