/* gnnc compare: two programs are interpreted on the same data; which output or variable first
 * differs, by how much, and after which pass.
 *
 * A program that passes make is made again with fewer of them: by halving, those after which it
 * differs from the other one are told from those after which it does not.  A text has been through
 * passes that nobody knows; a log of --print-after=all has what each of them left. */
#include "frontend/interpret.h"
#include "ir/text.h"

#include <math.h>
#include <string.h>

#include "runtime/data/io.h"

/* What a pass left, in a log. */
typedef struct {
    const char *pass, *text;
    int line;
    bool plan;
} Section;

typedef struct {
    const char *name; /* "A" */
    CliOptions o;
    VEC(Section) sections; /* of a log, one for each pass; none: the side is options, no log */
    CliProduct all;
} Side;

/* Of the first value that differs. */
typedef struct {
    const char *phase, *what, *name; /* "train", "output", "loss"; phase NULL: they agree */
    int step;
    int64_t at, n, n_far;
    double a, b, by, scale; /* of its first such element; the largest of B's */
} Difference;

typedef struct {
    Ctx *c;
    const CliOptions *o;
    bool exact;
    int n_compared;
    double worst;             /* of what agrees, in parts of its largest element */
    const Difference *sought; /* of its phase alone; NULL: of all */
    bool met;                 /* .. both have that value */
    StrMap skipped;
    StrBuf out;
} Compare;

/* ---- logs ----------------------------------------------------------------------------------- */
static const char log_mark[] = "// ---- after ";

/* Without what stands behind the last brace: other messages. */
static const char *section_text(Arena *a, const char *text, size_t n) {
    while (n && !(text[n - 1] == '}' && (n == 1 || text[n - 2] == '\n'))) n--;
    return arena_printf(a, "%.*s\n", (int)n, text);
}

/* Adds a text of the log to a side's, if --level is about it. Kernels alone, as passes over
 * loops leave them, cannot be run. */
static void add_section(Ctx *c, Side *s, const char *pass, const char *text, size_t n, int line) {
    const char *copy = section_text(c->a, text, n);
    bool graph = strncmp(copy, "module ", 7) == 0;
    bool plan = !graph && strstr(copy, "\nmodule ") && strstr(copy, "\nplan {");
    if (graph || (plan && s->o.level != LEVEL_IR))
        vec_push(c->a, &s->sections, ((Section){pass, copy, line, plan}));
}

/* Finds the texts of the IR in a log of --print-after, one for each pass. True at once if the
 * side's file is no log; false after a diagnostic. */
static bool read_log(Ctx *c, Side *s) {
    const char *path = s->o.files.v[0], *begin = NULL, *pass = NULL;
    if (!rt_ends_with(path, ".log")) return true;
    uint32_t file = ctx_add_file(c, path, (Span){0});
    if (file == UINT32_MAX) return false;
    const char *p = c->sources.v[file].text;
    for (int line = 1, first = 0;; line++) {
        bool mark = strncmp(p, log_mark, sizeof log_mark - 1) == 0;
        if (begin && (mark || !*p)) add_section(c, s, pass, begin, (size_t)(p - begin), first);
        if (!*p) break;
        const char *end = p + strcspn(p, "\n"), *next = end + (*end == '\n');
        if (mark) {
            const char *word = p + sizeof log_mark - 1;
            pass = arena_strndup(c->a, word, (size_t)(end - word));
            begin = next;
            first = line + 1;
        }
        p = next;
    }
    if (s->sections.n) return true;
    diag_add(c, DIAG_E0519, span_of(file, 1, 1, 1, 1),
             "no IR is in this log: --print-after=all writes it, to standard error");
    return false;
}

/* Parses one text of a log. Empty lines before it give its places the log's line numbers. False
 * after a diagnostic. */
static bool parse_section(Ctx *c, const Side *s, const Section *x, CliProduct *to) {
    StrBuf b = sb_new(c->a);
    for (int i = 1; i < x->line; i++) sb_puts(&b, "\n");
    sb_puts(&b, x->text);
    uint32_t file = ctx_add_text(c, s->o.files.v[0], b.s, b.n);
    to->after = x->pass;
    to->plan = x->plan ? plan_parse(c, file) : NULL;
    to->m = to->plan ? to->plan->m : x->plan ? NULL : module_parse(c, file);
    bool ok = to->m && c->n_errors == 0 && module_verify(c, to->m, "the log's text");
    return ok && (!to->plan || plan_verify(c, to->plan));
}

/* ---- programs of some passes -------- */
/* Makes the program of a side with its first n passes (n < 0: all). The side is options to compile
 * with, or a log of -print-after, whose section n - 1 is the text after pass n; to->n gets the
 * number of passes in a log. False after a diagnostic; of a part of the passes diagnostics of a
 * success are dropped. */
static bool produce(Ctx *c, const Side *s, int n, CliProduct *to) {
    int n_diags = c->diags.n;
    CliOptions o = s->o;
    bool ok;
    *to = (CliProduct){.m = NULL};
    if (n > 0) o.pass.stop_after = arena_printf(c->a, "%d", n);
    if (n == 0) o.passes = "", o.level = LEVEL_IR;
    if (s->sections.n) {
        ok = parse_section(c, s, &s->sections.v[n < 0 ? s->sections.n - 1 : n - 1], to);
        to->n = s->sections.n;
    } else {
        ok = cli_produce(c, &o, to);
    }
    if (ok && n >= 0) c->diags.n = n_diags;
    return ok;
}

/* A log begins with its first pass. */
static int fewest(const Side *s) {
    return s->sections.n ? 1 : 0;
}

/* ---- one value ------------------------------------------------------------------------------ */
/* The largest finite magnitude among n values; 0: there is none. */
static double largest(int64_t n, const double *v) {
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(v[i])) most = fmax(most, fabs(v[i]));
    return most;
}

/* The largest difference that rounding to f32 makes in these results. Where a result jumps (a
 * rank, a floor), another order of summing may change it as much. */
static double rounding_tolerance(int64_t n, const double *exact, const double *rounded) {
    double most = 0;
    for (int64_t i = 0; rounded && i < n; i++)
        if (isfinite(exact[i]) && isfinite(rounded[i]))
            most = fmax(most, fabs(exact[i] - rounded[i]));
    return most;
}

static bool is_far(double a, double b, double tol) {
    if (isnan(a) || isnan(b)) return isnan(a) != isnan(b);
    return a != b && !(fabs(a - b) <= tol);
}

/* What is small beside 0.01 has lost digits on its way. */
static double tolerance(const Compare *k, double scale) {
    return k->o->tolerance * fmax(scale, 0.01);
}

/* Whether an element of a, A's values, is far from that of b. d is filled with the first one.
 * rounded: a's values with rounding; NULL = none. */
static bool differs(Compare *k, int64_t n, const double *a, const double *b, const double *rounded,
                    Difference *d) {
    double scale = largest(n, b),
           tol = tolerance(k, scale) + 16 * rounding_tolerance(n, a, rounded);
    d->n_far = 0;
    k->n_compared++;
    for (int64_t i = 0; i < n; i++) {
        if (!is_far(a[i], b[i], tol)) {
            if (scale > 0 && isfinite(a[i]) && isfinite(b[i]))
                k->worst = fmax(k->worst, fabs(a[i] - b[i]) / fmax(scale, 0.01));
            continue;
        }
        if (d->n_far++ > 0) continue;
        d->at = i, d->n = n, d->a = a[i], d->b = b[i];
        d->by = fabs(a[i] - b[i]), d->scale = scale;
    }
    return d->n_far > 0;
}

/* ---- one phase ------------------------------------------------------------------------------ */
/* A, B, and A rounded to element types (or nothing). */
typedef struct {
    Interpreted a, b, rounded;
    bool has_rounded;
} Trio;

/* Compares an output of both sides. f, g: the phase in A and in B. True: it differs, and *d says
 * how. */
static bool compare_output(Compare *k, Trio *t, Func *f, Func *g, const char *name, Difference *d) {
    int64_t n = 0, n_b = 0, n_r = 0;
    const double *a = interpret_output(&t->a, f, name, &n);
    const double *b = interpret_output(&t->b, g, name, &n_b);
    const double *r = t->has_rounded ? interpret_output(&t->rounded, f, name, &n_r) : NULL;
    if (!a || !b) return false;
    d->what = "output", d->name = name;
    if (n == n_b) return differs(k, n, a, b, r && n_r == n ? r : NULL, d);
    *d = (Difference){.what = "the number of elements of output",
                      .name = name,
                      .n = 1,
                      .n_far = 1,
                      .a = (double)n,
                      .b = (double)n_b,
                      .by = fabs((double)(n - n_b)),
                      .scale = (double)n_b};
    return true;
}

/* Compares a parameter or state of both sides. True: it differs, and *d says how. */
static bool compare_var(Compare *k, Trio *t, const Var *v, Difference *d) {
    const Var *there = var_find(t->b.m, v->path);
    int64_t n = 0, n_b = 0, n_r = 0;
    const double *a = interpret_var(&t->a, v, &n);
    const double *b = there ? interpret_var(&t->b, there, &n_b) : NULL;
    const double *r = t->has_rounded ? interpret_var(&t->rounded, v, &n_r) : NULL;
    if (!a || !b || n != n_b) return false;
    d->what = "variable", d->name = v->path;
    return differs(k, n, a, b, r, d);
}

/* Runs one phase of both sides and compares its outputs and what it assigns; d->phase is set at
 * the first difference. An output that one side lacks is not compared. False after a diagnostic. */
static bool compare_phase(Compare *k, Trio *t, Func *f, int step, Difference *d) {
    Func *g = func_find(t->b.m, f->name);
    if (!interpret_phase(&t->a, f, step) || !interpret_phase(&t->b, g, step)) return false;
    if (t->has_rounded && !interpret_phase(&t->rounded, func_find(t->rounded.m, f->name), step))
        return false;
    for (const Op *op = f->first; op; op = op->next) {
        bool dense = op->kind == OP_OUTPUT && op->in[0]->type.layout == LAYOUT_DENSE;
        bool far = dense && compare_output(k, t, f, g, op->name, d);
        if (op->kind == OP_ASSIGN && op->var->kind < VAR_KEPT) far = compare_var(k, t, op->var, d);
        if (k->sought && d->what && !strcmp(d->name, k->sought->name)) k->met = true;
        if (!far) continue;
        d->phase = f->name, d->step = step;
        return true;
    }
    return true;
}

/* Compares all phases up to the first difference. Training steps come last, so that other phases
 * see the first parameters. False after a diagnostic. */
static bool compare_phases(Compare *k, Trio *t, Difference *d) {
    const Module *m = t->a.m;
    for (int last = 0; last < 2; last++)
        for (int i = 0; i < m->funcs.n; i++) {
            Func *f = m->funcs.v[i], *g = func_find(t->b.m, f->name);
            bool trains = f->phase == PHASE_TRAIN;
            const char *why = g ? interpret_lacks(m, f) : "";
            if (trains != last || (why && !*why)) continue;
            if (k->sought && strcmp(k->sought->phase, f->name) != 0) continue;
            if (!why) why = interpret_lacks(t->b.m, g);
            if (why) strmap_put(k->c->a, &k->skipped, f->name, (void *)(uintptr_t)why);
            for (int s = 0; s < (trains ? k->o->steps : 1) && !why; s++)
                if (!compare_phase(k, t, f, s, d) || d->phase) return d->phase != NULL;
        }
    return true;
}

/* Whether a module computes in a type of 16 bits, so that it cannot be interpreted without
 * rounding. */
static bool has_16_bits(const Module *m) {
    for (int i = 0; i < m->funcs.n; i++)
        for (const Op *op = m->funcs.v[i]->first; op; op = op->next)
            if (op->type.dt == DT_F16 || op->type.dt == DT_BF16) return true;
    return false;
}

/* Interprets both sides and compares them phase by phase; d->phase is the first that differs,
 * NULL: none. False after a diagnostic. */
static bool compare(Compare *k, const CliProduct *a, const CliProduct *b, Difference *d) {
    Trio t = {.has_rounded = false};
    *d = (Difference){.phase = NULL};
    k->exact = !has_16_bits(a->m) && !has_16_bits(b->m);
    k->n_compared = 0, k->worst = 0, k->met = false;
    const char *data = k->o->measured;
    if (!interpret_begin(k->c, a, data, k->exact, &t.a)) return false;
    if (!interpret_begin(k->c, b, data, k->exact, &t.b)) return false;
    t.has_rounded = k->exact && !a->plan;
    if (t.has_rounded && !interpret_begin(k->c, a, data, false, &t.rounded)) return false;
    return compare_phases(k, &t, d);
}

/* ---- the pass ------------------------------------------------------------------------------- */
typedef struct {
    const Side *side;
    int pass;  /* after so many it differs; 0: none was found */
    bool born; /* before it there is no such value: who makes it wrong, this side does not tell */
    CliProduct before, after;
} Guilty;

/* Does s, with its first n passes, differ from the other program? What cannot be made or run does.
 * A plan whose steps are not formed yet cannot be run: it is what its module is, which can.
 * *to: the program of s. Its diagnostics are dropped, as this is only a question of the search. */
static bool is_bad(Compare *k, const Side *s, int n, const CliProduct *other, CliProduct *to) {
    Difference d = {.phase = NULL};
    int n_diags = k->c->diags.n, n_errors = k->c->n_errors;
    bool made = produce(k->c, s, n, to);
    if (made && to->plan && !(to->plan->flags & PLAN_STEPS)) to->plan = NULL;
    bool bad = !made || !compare(k, to, other, &d) || d.phase;
    k->c->diags.n = n_diags;
    k->c->n_errors = n_errors;
    return bad;
}

/* Searches by halving for the pass of a side after which it first differs from the other. False:
 * it differs without passes, or the value is not there before. */
static bool search(Compare *k, const Side *s, const CliProduct *other, Guilty *g) {
    int good = fewest(s), bad = s->all.n;
    CliProduct p;
    if (good >= bad || is_bad(k, s, good, other, &p)) return false;
    *g = (Guilty){.side = s, .before = p, .after = s->all, .born = !k->met};
    while (bad - good > 1) {
        int middle = good + (bad - good) / 2;
        if (is_bad(k, s, middle, other, &p))
            bad = middle, g->after = p;
        else
            good = middle, g->before = p, g->born = !k->met;
    }
    g->pass = bad;
    return !g->born;
}

/* ---- the value after it --------------------------------------------------------------------- */
/* For each operation of f, by its id, whether the value that differs depends on it. */
static bool *reaches(Arena *a, const Func *f, const Difference *d) {
    bool *on = NEWN(a, bool, (size_t)f->n_ops + 1);
    for (const Op *op = f->last; op; op = op->prev) {
        bool output = op->kind == OP_OUTPUT && !strcmp(op->name, d->name);
        bool assigned = op->kind == OP_ASSIGN && !strcmp(op->var->path, d->name);
        on[op->id] |= output || assigned;
        for (int i = 0; on[op->id] && i < op->n_in; i++) on[op->in[i]->id] = true;
    }
    return on;
}

/* Whether some value of the function f, which was interpreted, equals t within the tolerance. */
static bool equals_one(const Compare *k, const Interpreted *x, const Func *f, const OpTensor *t) {
    for (const Op *op = f->first; op; op = op->next) {
        const OpTensor *u = interp_value(x->in, op);
        if (!u || u->type.dt != t->type.dt || u->count != t->count) continue;
        double tol = tolerance(k, largest(t->count, t->v));
        int64_t i = 0;
        while (i < t->count && !is_far(t->v[i], u->v[i], tol)) i++;
        if (i == t->count) return true;
    }
    return false;
}

/* Interprets a program up to the step in which a difference was seen; *f: its phase. False: it
 * has no such phase, or after a diagnostic. */
static bool run_until(Compare *k, const CliProduct *p, const Difference *d, Interpreted *x,
                      Func **f) {
    *f = func_find(p->m, d->phase);
    if (!*f || !interpret_begin(k->c, p, k->o->measured, k->exact, x)) return false;
    for (int s = 0; s <= d->step; s++)
        if (!interpret_phase(x, *f, s)) return false;
    return true;
}

/* Writes the line of the IR's text that defines a value. */
static void put_value(Compare *k, const Module *m, const Func *f, const Op *op) {
    Arena *a = k->c->a;
    StrBuf text = sb_new(a);
    func_print(&text, m, f);
    const char *begin = arena_printf(a, "\n    %%%s = ", ir_value_names(a, f)[op->id]);
    const char *line = strstr(text.s, begin);
    if (!line) return;
    line += strlen("\n    ");
    sb_printf(&k->out, "  the first value after it that none before it equals:\n    %.*s\n",
              (int)strcspn(line, "\n"), line);
}

/* Finds the first operation after the faulty pass whose value no operation had before. It is where
 * to begin to look: a pass may have new values that are right, too. */
static void find_value(Compare *k, const Guilty *g, const Difference *d) {
    Interpreted before, after;
    Func *f, *h;
    if (!g->before.m || !g->after.m || g->before.plan || g->after.plan) return;
    if (!run_until(k, &g->before, d, &before, &f) || !run_until(k, &g->after, d, &after, &h))
        return;
    const bool *on = reaches(k->c->a, h, d);
    for (const Op *op = h->first; op; op = op->next) {
        const OpTensor *t = op->type.dt != DT_VOID ? interp_value(after.in, op) : NULL;
        if (!on[op->id] || !t || equals_one(k, &before, f, t)) continue;
        put_value(k, after.m, h, op);
        return;
    }
}

/* ---- what is told --------------------------------------------------------------------------- */
/* Writes which phases were not compared and why. */
static void put_skipped(Compare *k, const CliProduct *p) {
    for (int i = 0; i < p->m->funcs.n; i++) {
        const char *name = p->m->funcs.v[i]->name;
        const char *why = strmap_get(&k->skipped, name);
        if (why) sb_printf(&k->out, "@%s: %s\n", name, why);
    }
    if (module_runs_on_batches(p->m, PHASE_TRAIN))
        sb_puts(&k->out, "nothing is drawn: the whole graph is the batch\n");
}

/* Writes what one of the two sides is. */
static void put_side(Compare *k, const Side *s) {
    const char *more = s->name[0] == 'B' ? k->o->against : NULL;
    sb_printf(&k->out, "%s: %s%s%s: %s\n", s->name, s->o.files.v[0], more ? " " : "",
              more ? more : "", interpret_what(k->c->a, &s->all));
}

/* Writes the first value that differs and by how much. */
static void put_difference(Compare *k, const Difference *d) {
    StrBuf *b = &k->out;
    sb_printf(b, "@%s", d->phase);
    if (!strcmp(d->phase, text_Phase.word[PHASE_TRAIN])) sb_printf(b, ", step %d", d->step + 1);
    sb_printf(b, ": %s %s", d->what, d->name);
    if (d->n > 1) sb_printf(b, "[%lld]", (long long)d->at);
    sb_printf(b, " differs: A has %.9g, B %.9g; by %.3g, %.3g of the largest", d->a, d->b, d->by,
              d->scale > 0 ? d->by / d->scale : INFINITY);
    if (d->n > 1)
        sb_printf(b, "; so do %lld of %lld elements", (long long)d->n_far, (long long)d->n);
    sb_puts(b, "\n");
}

/* A text that has been through passes that nobody knows. */
static bool is_text(const Side *s) {
    return s->all.n <= fewest(s);
}

/* Writes which pass makes the difference, or why it is not known: where one side is a text, passes
 * of the other that give birth to the value are not to blame. */
static void put_guilty(Compare *k, const Guilty *g, const Side *a, const Side *b) {
    const CliProduct *p = &g->after;
    const Side *text = is_text(b) ? b : is_text(a) ? a : NULL;
    if (g->pass && !(g->born && text)) {
        sb_printf(&k->out, "  the pass: %s of %s, number %d of %d; before it %s\n", p->after,
                  g->side->name, g->pass, g->side->all.n,
                  g->born ? "there is no such value" : "they agree");
        return;
    }
    if (is_text(a) && is_text(b))
        sb_puts(&k->out, "  the pass: unknown, these are texts; logs of --print-after=all tell\n");
    else if (text)
        sb_printf(&k->out, "  the pass: unknown, %s is a text; a log of --print-after=all tells\n",
                  text->name);
    else
        sb_puts(&k->out, "  the pass: none, they differ without passes, too\n");
}

static void put_agreement(Compare *k) {
    sb_printf(&k->out, "A and B agree in %d outputs and variables", k->n_compared);
    sb_printf(&k->out, "; at most %.2g of the largest element lies between them\n", k->worst);
}

/* Searches for the pass that makes the difference, in A and, if it differs without any of A's,
 * in B, and writes it. */
static void put_cause(Compare *k, const Side *a, const Side *b, const Difference *d) {
    Guilty g = {.pass = 0};
    k->sought = d;
    bool found = search(k, a, &b->all, &g) || search(k, b, &a->all, &g);
    put_guilty(k, &g, a, b);
    if (found) find_value(k, &g, d);
}

/* Makes the two sides from the files and --against. False after a diagnostic. */
static bool sides(Ctx *c, const CliOptions *o, Side *a, Side *b) {
    *a = (Side){.name = "A", .o = *o};
    *b = (Side){.name = "B", .o = *o};
    const char *first = o->files.v[0], *second = o->files.n > 1 ? o->files.v[1] : first;
    memset(&a->o.files, 0, sizeof a->o.files);
    memset(&b->o.files, 0, sizeof b->o.files);
    vec_push(c->a, &a->o.files, first);
    vec_push(c->a, &b->o.files, second);
    const char *why = o->against ? cli_add(c->a, &b->o, o->against) : NULL;
    if (!why) why = o->against && b->o.action != ACT_COMPARE ? "that is no option of it" : NULL;
    if (why) diag_add(c, DIAG_E0519, (Span){0}, "--against='%s': %s", o->against, why);
    return !why && read_log(c, a) && read_log(c, b);
}

/* The command `gnnc compare`. False: they differ, or after a diagnostic. */
bool cli_compare(Ctx *c, const CliOptions *o) {
    Side a, b;
    Difference d;
    Compare k = {.c = c, .o = o, .out = sb_new(c->a)};
    if (!sides(c, o, &a, &b) || !produce(c, &a, -1, &a.all) || !produce(c, &b, -1, &b.all))
        return false;
    if (!compare(&k, &a.all, &b.all, &d)) return false;
    put_side(&k, &a);
    put_side(&k, &b);
    put_skipped(&k, &a.all);
    if (d.phase) {
        put_difference(&k, &d);
        put_cause(&k, &a, &b, &d);
    } else {
        put_agreement(&k);
    }
    return ctx_write(c, NULL, k.out.s, k.out.n) && !d.phase;
}
