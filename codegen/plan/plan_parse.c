/* Reads the text form of a step plan (plan_print.c): sections that begin with a word and end with a
 * brace, both in the first column.
 *
 *     buffers { .. }   phase @train { .. }   kernel NAME { .. }   facts @train { .. }
 *     fusions @train { .. }   plan { .. }   sources { .. }   module "gcn" { .. }
 *
 * The module stands last, for readers, and is read first.  Of a step's line the lexer sees what is
 * no free text: reasons and the note behind `;` are taken as they are.  The text may be hostile:
 * everything is looked up by name or within bounds, and plan_verify() checks the rest. */
#include "codegen/plan/plan_text.h"

#include <string.h>

#include "codegen/loop/loop_text.h"
#include "codegen/lower/lower.h"
#include "codegen/plan_passes/plan_pass.h"
#include "codegen/target.h"

/* A section of a plan's text: its first word, its bounds in the text, and its first line. */
typedef struct {
    const char *word, *from, *end;
    uint32_t line;
} Section;
typedef VEC(Section) Sections;

/* Whether a section begins at s: a letter in the first column does that. */
static bool begins_section(const char *s, const char *end) {
    return s < end && ((*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z'));
}

/* Finds the sections of the text: each goes from a word in the first column to a closing brace
 * there. */
static Sections find_sections(Arena *a, const char *text, const char *end) {
    Sections sections = {0};
    bool open = false;
    for (uint32_t line = 1; text < end; line++) {
        const char *next = text_line_end(text, end);
        if (!open && begins_section(text, end)) {
            size_t n = 0;
            while (text + n < next && ((text[n] >= 'a' && text[n] <= 'z') || text[n] == '_')) n++;
            vec_push(a, &sections, ((Section){arena_strndup(a, text, n), text, end, line}));
            open = true;
        }
        if (open && *text == '}') {
            sections.v[sections.n - 1].end = next;
            open = false;
        }
        text = next;
    }
    return sections;
}

/* Makes the lexer read a section, from its first token on. */
static void enter_section(PlanReader *r, const Section *s) {
    r->p.p = r->p.line_start = s->from;
    r->p.end = s->end;
    r->p.line = s->line;
    r->p.tok = (Tok){0};
    parse_lex_next(&r->p);
}

/* ---- buffers ------------------------------------------------------------------------------ */
static const struct {
    const char *word;
    LBufKind part;
} map_parts[] = {{"idx", LB_MAP_IDX}, {"ptr", LB_MAP_PTR}, {"perm", LB_MAP_PERM}};

/* Reads which index array a buffer holds: a map, its part (idx, ptr or perm), and the map in whose
 * segment order it is. */
static bool parse_map_source(PlanReader *r, PBuf *b) {
    if (!parse_map(&r->p, &b->map)) return false;
    for (size_t i = 0; i < COUNT(map_parts); i++)
        if (parse_accept_word(&r->p, map_parts[i].word)) b->map_part = map_parts[i].part;
    if (b->map_part == LB_VALUE) return parse_expected(&r->p, "idx, ptr or perm");
    return !parse_accept_word(&r->p, "by") || parse_map(&r->p, &b->by);
}

/* Reads what a buffer holds: a column, variable, index array, ids, chunk bounds, a random key, or
 * an input or output by name. */
static bool parse_source(PlanReader *r, PBuf *b) {
    int64_t n = 0;
    switch (b->kind) {
    case PB_TEMP:
        return true;
    case PB_MAP:
        return parse_map_source(r, b);
    case PB_DATA:
        return parse_column(&r->p, &b->col);
    case PB_VAR:
        return parse_var(&r->p, &b->var);
    case PB_LOGICAL:
    case PB_CUTS:
        return parse_space(&r->p, &b->space);
    case PB_KEY:
        if (!parse_int(&r->p, "a random stream", 0, INT32_MAX, &n)) return false;
        b->stream = (int)n;
        return true;
    default:
        return parse_text(&r->p, "a name in quotes", &b->io_name);
    }
}

/* The number of the phase with this name; -1 = there is none. */
static int find_phase(const Plan *p, const char *name) {
    for (int i = 0; i < p->phases.n; i++)
        if (!strcmp(p->phases.v[i]->name, name)) return i;
    return -1;
}

/* Reads "@PHASE" into *phase, its index in the plan. False after a diagnostic: there is no such
 * phase. */
static bool parse_phase_name(PlanReader *r, int *phase) {
    if (r->p.tok.kind != T_FUNC) return parse_expected(&r->p, "a phase, as '@train'");
    *phase = find_phase(r->plan, r->p.tok.s);
    if (*phase < 0)
        return parse_fail(&r->p, DIAG_E0542, r->p.tok.span, "there is no phase '@%s'", r->p.tok.s);
    parse_lex_next(&r->p);
    return true;
}

/* Whether the current token is this word. */
static bool is_word(const PlanReader *r, const char *word) {
    return r->p.tok.kind == T_NAME && !strcmp(r->p.tok.s, word);
}

/* Reads in which steps a temporary is live, whether it holds one block of rows, which rows a device
 * holds of it, and the type of its value. */
static bool parse_lifetime_and_type(PlanReader *r, PBuf *b) {
    if (parse_accept_word(&r->p, "in") && !parse_phase_name(r, &b->phase)) return false;
    bool is_written = b->kind == PB_TEMP || b->kind == PB_OUTPUT;
    if (is_written && b->phase < 0) return parse_expected(&r->p, "'in' and the buffer's phase");
    if (is_word(r, "steps") && !plan_parse_range(r, &b->first, &b->last)) return false;
    if (parse_accept_word(&r->p, "a")) {
        if (!parse_accept_word(&r->p, "block") || b->kind != PB_TEMP)
            return parse_expected(&r->p, "'a block', of a temporary");
        b->block = 0; /* plan_parse_match() finds which */
    }
    if (parse_accept_word(&r->p, "own") && !parse_space(&r->p, &b->own)) return false;
    b->local = parse_accept_word(&r->p, "local");
    return !parse_accept_word(&r->p, "holds") || parse_type(&r->p, &b->type);
}

/* Reads the line of a buffer: "%0 temp NAME: f32[SIZE] of .. in @phase ..". */
static bool parse_buffer(PlanReader *r) {
    PBuf *b = NEW(r->p.a, PBuf);
    int kind = 0;
    *b = (PBuf){.id = r->plan->bufs.n, .phase = -1, .first = -1, .last = -1, .block = -1};
    if (r->p.tok.kind != T_VALUE) return parse_expected(&r->p, "a buffer, as '%0'");
    parse_lex_next(&r->p);
    if (!parse_word(&r->p, &text_PBufKind, "a kind of buffers", &kind)) return false;
    b->kind = (PBufKind)kind;
    Span at = r->p.tok.span;
    if (!parse_name(&r->p, "the buffer's name", &b->name) || !parse_expect(&r->p, ':'))
        return false;
    if (strmap_has(&r->bufs, b->name) || strcmp(cg_ident(r->p.a, b->name), b->name) != 0)
        return parse_fail(&r->p, DIAG_E0542, at, "'%s' is taken, or no name in C", b->name);
    Span dt_at = r->p.tok.span;
    const char *dt = NULL;
    if (!parse_name(&r->p, "an element type", &dt)) return false;
    for (int i = DT_VOID + 1; i < N_DTYPES; i++)
        if (!strcmp(dt, dtype_name((DType)i))) b->dt = (DType)i;
    if (b->dt == DT_VOID)
        return parse_fail(&r->p, DIAG_E0542, dt_at, "'%s' is no element type", dt);
    b->type = type_scalar(b->dt);
    if (!parse_expect(&r->p, '[') || !parse_expr(&r->p, &b->count) || !parse_expect(&r->p, ']'))
        return false;
    if (parse_accept_word(&r->p, "of") ? !parse_source(r, b) : b->kind != PB_TEMP)
        return parse_expected(&r->p, "'of' and what the buffer holds");
    if (!parse_lifetime_and_type(r, b)) return false;
    strmap_put(r->p.a, &r->bufs, b->name, b);
    vec_push(r->p.a, &r->plan->bufs, b);
    return true;
}

/* Reads the section of buffers, a line for each. False after diagnostics. */
static bool parse_buffers(PlanReader *r) {
    parse_lex_next(&r->p);
    if (!parse_expect(&r->p, '{')) return false;
    while (!parse_is(&r->p, '}'))
        if (!parse_buffer(r)) return false;
    return true;
}

/* Finds the use of each output (prediction, loss, metric), which the module's text has. */
static void find_output_uses(const Plan *p) {
    for (int i = 0; i < p->bufs.n; i++) {
        PBuf *b = p->bufs.v[i];
        const Op *out = b->phase >= 0 && b->io_name
                            ? func_output(p->phases.v[b->phase]->func, b->io_name)
                            : NULL;
        if (out) b->use = out->use;
    }
}

/* ---- phases, kernels ---------------------------------------------------------------------- */
/* Reads the name of a phase and adds an empty phase to the plan; its steps are read later. */
static bool declare_phase(PlanReader *r) {
    parse_lex_next(&r->p);
    Func *f = r->p.tok.kind == T_FUNC ? func_find(r->p.m, r->p.tok.s) : NULL;
    if (!f || f->body || find_phase(r->plan, f->name) >= 0)
        return parse_fail(&r->p, DIAG_E0542, r->p.tok.span,
                          "a phase has the name of a function of the module, and one section");
    PPhase *ph = NEW(r->p.a, PPhase);
    ph->name = f->name;
    ph->func = f;
    ph->in_text = r->p.tok.span;
    vec_push(r->p.a, &r->plan->phases, ph);
    return true;
}

/* Reads the steps of a phase, one per line. */
static bool parse_phase(PlanReader *r, const Section *s) {
    const char *end = text_line_end(s->from, s->end);
    r->ph = r->plan->phases.v[find_phase(r->plan, r->p.tok.s)];
    for (uint32_t line = s->line + 1; end < s->end && *end != '}'; line++) {
        const char *from = end;
        end = text_line_end(from, s->end);
        r->p.p = r->p.line_start = from;
        r->p.end = end;
        r->p.line = line;
        parse_lex_next(&r->p);
        if (r->p.tok.kind != T_END && !plan_parse_step(r, end)) return false;
    }
    return plan_parse_match(r);
}

/* Records the name of a kernel, for the steps that run it. */
static bool record_kernel_name(PlanReader *r, LKernel *k, Span at) {
    if (strmap_has(&r->kernels, k->name) || strcmp(cg_ident(r->p.a, k->name), k->name) != 0)
        return parse_fail(&r->p, DIAG_E0542, at, "'%s' is taken, or no name in C", k->name);
    strmap_put(r->p.a, &r->kernels, k->name, k);
    return true;
}

/* Whether two kernel arguments are the same, but for what is stored in them. */
static bool is_same_argument(const LBuf *x, const LBuf *y) {
    bool same = x->kind == y->kind && !strcmp(x->name, y->name) && x->dt == y->dt &&
                x->rank == y->rank && x->map == y->map && x->sorted_by == y->sorted_by &&
                x->space == y->space && x->stream == y->stream && x->partial == y->partial;
    for (int i = 0; same && i < x->rank; i++) same = expr_eq(x->dim[i], y->dim[i]);
    return same;
}

/* Whether a stage has the same arguments as its kernel; the kernel is marked to write what any of
 * its stages does. */
static bool merge_arguments(LKernel *kernel, const LKernel *stage) {
    bool all_same = kernel->bufs.n == loop_n_arguments(stage);
    for (int i = 0; all_same && i < kernel->bufs.n; i++) {
        LBuf *b = kernel->bufs.v[i];
        all_same = is_same_argument(b, stage->bufs.v[i]);
        b->written |= stage->bufs.v[i]->written;
    }
    return all_same;
}

/* Adds a stage to its kernel, which is made for the first one; stages of a kernel are neighbours in
 * the text. */
static bool add_stage(PlanReader *r, const char *kernel_name, LKernel *stage) {
    Plan *p = r->plan;
    LKernel *kernel = p->kernels.n ? p->kernels.v[p->kernels.n - 1] : NULL;
    if (!kernel || !kernel->stages.n || strcmp(kernel->name, kernel_name) != 0) {
        kernel = loop_copy(r->p.a, stage);
        kernel->name = kernel_name;
        kernel->body = NULL;
        kernel->bufs.n = loop_n_arguments(stage);
        kernel->locals.n = 0;
        if (!record_kernel_name(r, kernel, stage->span)) return false;
        vec_push(r->p.a, &p->kernels, kernel);
    }
    if (!merge_arguments(kernel, stage))
        return parse_fail(&r->p, DIAG_E0542, stage->span, "stages of '%s' differ in arguments",
                          kernel_name);
    vec_push(r->p.a, &kernel->stages, stage);
    return true;
}

/* Reads a kernel of the plan, or a stage of one, which is allowed only where kernels have been
 * split for a device. False after diagnostics. */
static bool parse_plan_kernel(PlanReader *r) {
    LKernel *k = NEW(r->p.a, LKernel);
    const char *stage_of = NULL;
    if (!loop_parse_one(&r->p, k, &stage_of) || !record_kernel_name(r, k, k->span)) return false;
    const Target *target = r->plan->scheduled_for ? target_find(r->plan->scheduled_for) : NULL;
    if (stage_of && (!target || !target->columns))
        return parse_fail(&r->p, DIAG_E0542, k->span,
                          "a stage, in a plan whose kernels are not arranged for a device");
    if (stage_of) return add_stage(r, stage_of, k);
    vec_push(r->p.a, &r->plan->kernels, k);
    return true;
}

/* Enters the section "facts @PHASE" or "fusions @PHASE". */
static bool enter_phase(PlanReader *r) {
    int ph = 0;
    parse_lex_next(&r->p);
    if (!parse_phase_name(r, &ph) || !parse_expect(&r->p, '{')) return false;
    r->ph = r->plan->phases.v[ph];
    return true;
}

/* ---- all ---------------------------------------------------------------------------------- */
typedef bool SectionReader(PlanReader *r, const Section *s);

/* Reads the section "plan": facts of the whole plan. */
static bool read_header(PlanReader *r, const Section *s) {
    (void)s;
    parse_lex_next(&r->p);
    return parse_expect(&r->p, '{') && plan_parse_header(r);
}

static bool read_phase_name(PlanReader *r, const Section *s) {
    (void)s;
    return declare_phase(r);
}

static bool read_buffers(PlanReader *r, const Section *s) {
    (void)s;
    return parse_buffers(r);
}

static bool read_kernel(PlanReader *r, const Section *s) {
    (void)s;
    return parse_plan_kernel(r);
}

static bool read_phase(PlanReader *r, const Section *s) {
    parse_lex_next(&r->p);
    return parse_phase(r, s);
}

static bool read_facts(PlanReader *r, const Section *s) {
    (void)s;
    return enter_phase(r) && plan_parse_facts(r);
}

static bool read_fusions(PlanReader *r, const Section *s) {
    (void)s;
    return enter_phase(r) && plan_parse_fusions(r);
}

static bool read_sources(PlanReader *r, const Section *s) {
    return parse_sources(&r->p, s->from, s->end, s->line, &r->plan->main_file);
}

/* Reads the section "module", the text of the graph IR; there is one. */
static bool read_module(PlanReader *r, const Section *s) {
    (void)s;
    if (r->plan->m) return parse_fail(&r->p, DIAG_E0542, r->p.tok.span, "a second module");
    bool ok = parse_module(&r->p) && r->p.ok;
    r->plan->m = r->p.m;
    return ok;
}

/* Reads all sections that begin with this word, by the function `read`. */
static bool read_sections(PlanReader *r, const Sections *sections, const char *word,
                          SectionReader *read) {
    for (int i = 0; i < sections->n; i++) {
        if (strcmp(sections->v[i].word, word) != 0) continue;
        enter_section(r, &sections->v[i]);
        if (!read(r, &sections->v[i]) || !r->p.ok) return false;
    }
    return true;
}

/* Checks that each section begins with a known word. */
static bool check_section_words(PlanReader *r, const Sections *sections) {
    static const char *const words[] = {"buffers", "phase", "kernel",  "facts",
                                        "fusions", "plan",  "sources", "module"};
    for (int i = 0; i < sections->n; i++) {
        size_t k = 0;
        while (k < COUNT(words) && strcmp(words[k], sections->v[i].word) != 0) k++;
        if (k < COUNT(words)) continue;
        Span at = span_of(r->p.file, sections->v[i].line, 1, sections->v[i].line, 1);
        return parse_fail(&r->p, DIAG_E0542, at, "'%s' begins no section of a plan",
                          sections->v[i].word);
    }
    return true;
}

/* Checks that the section "facts" has told of every step. */
static bool is_complete(PlanReader *r) {
    for (int i = 0; i < r->plan->phases.n; i++) {
        const PPhase *ph = r->plan->phases.v[i];
        for (int k = 0; k < ph->steps.n; k++)
            if (!ph->steps.v[k]->op)
                return parse_fail(&r->p, DIAG_E0542, ph->steps.v[k]->span,
                                  "@%s: 'facts' say nothing of step %d", ph->name, k);
    }
    return true;
}

/* Whether the file is the text of a plan: it has a section of a phase or of the plan. */
bool plan_in_text(const Ctx *c, uint32_t file) {
    const Source *src = &c->sources.v[file];
    const char *s = src->text, *end = s + src->n_bytes;
    for (; s < end; s = text_line_end(s, end))
        if (end - s > 6 && (!memcmp(s, "phase ", 6) || !memcmp(s, "plan {", 6))) return true;
    return false;
}

/* Reads the text of a plan; NULL after diagnostics. */
Plan *plan_parse(Ctx *c, uint32_t file) {
    const Source *src = &c->sources.v[file];
    PlanReader reader = {.p = {.c = c, .a = c->a, .file = file, .line = 1, .ok = true}};
    Sections sections = find_sections(c->a, src->text, src->text + src->n_bytes);
    reader.plan = NEW(c->a, Plan);
    reader.plan->text_file = file;
    if (!check_section_words(&reader, &sections) ||
        !read_sections(&reader, &sections, "sources", read_sources) ||
        !read_sections(&reader, &sections, "module", read_module))
        return NULL;
    if (!reader.plan->m) {
        parse_fail(&reader.p, DIAG_E0542, span_of(file, 1, 1, 1, 1), "the text has no module");
        return NULL;
    }
    for (int i = 0; i < reader.p.names.n; i++) vec_push(c->a, &reader.names, reader.p.names.v[i]);
    for (int i = 0; i < reader.plan->m->funcs.n; i++) func_number(reader.plan->m->funcs.v[i]);
    bool ok = read_sections(&reader, &sections, "plan", read_header) &&
              read_sections(&reader, &sections, "phase", read_phase_name) &&
              read_sections(&reader, &sections, "buffers", read_buffers) &&
              read_sections(&reader, &sections, "kernel", read_kernel) &&
              read_sections(&reader, &sections, "phase", read_phase) &&
              read_sections(&reader, &sections, "facts", read_facts) &&
              read_sections(&reader, &sections, "fusions", read_fusions);
    if (!ok || !is_complete(&reader)) return NULL;
    find_output_uses(reader.plan);
    reader.plan->main_file = plan_main_file(reader.plan->m, reader.plan->main_file);
    return reader.plan;
}
