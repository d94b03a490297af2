/* Compiling, checking and running passes on text.  Text goes one way: file -> module -> passes ->
 * plan -> target -> file (cli_stages.c); each --emit kind stops at its stage. */
#include "codegen/loop_passes/loops.h"
#include "codegen/plan_passes/plan_pass.h"
#include "frontend/cli/cli_job.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/data/io.h"

/* ---- actions ---------------------------------------------------------------------------- */
/* Writes the text of a module. */
static bool print_module(Ctx *c, const CliJob *j, const Module *m) {
    StrBuf b = sb_new(c->a);
    module_print_file(&b, m);
    return cli_write(c, j->o.out, b.s ? b.s : "", b.n);
}

/* Writes the text of a plan. */
static bool print_plan(Ctx *c, const CliJob *j, const Plan *p) {
    StrBuf b = sb_new(c->a);
    plan_print(&b, p);
    return cli_write(c, j->o.out, b.s ? b.s : "", b.n);
}

/* Kernels as the target emits them, and the plan that runs them. */
static bool print_loops(Ctx *c, const CliJob *j, Plan *p, const Target *t) {
    TargetOptions o = cli_target_options(&j->o);
    return loop_pass_arrange(c, p, t, &o) && print_plan(c, j, p);
}

static bool print_header(Ctx *c, const CliJob *j, const Plan *p) {
    const char *text = host_header(c, p);
    return cli_write(c, j->o.out, text, strlen(text));
}

/* Writes the syntax tree of the model's file. */
static bool print_ast(Ctx *c, const CliJob *j) {
    const Ast *t = fe_parse_path(c, j->o.files.v[0]);
    if (!t || c->n_errors) return false;
    StrBuf b = sb_new(c->a);
    ast_print(&b, t);
    return cli_write(c, j->o.out, b.s ? b.s : "", b.n);
}

/* Reports go to standard output unless the result does. */
static bool result_is_file(const CliOptions *o) {
    if (o->out) return strcmp(o->out, "-") != 0;
    return cli_makes_program(o) || o->emit == OUT_OBJ || o->emit == OUT_NONE;
}

/* The sizes of --specialize by symbol; -1 for symbols that passes have made since. NULL: nothing
 * is specialized. */
static const int64_t *known_sizes(Ctx *c, const CliJob *j, const Module *m) {
    if (!j->sizes) return NULL;
    int64_t *all = NEWN(c->a, int64_t, (size_t)m->syms.n + 1);
    for (int i = 0; i < m->syms.n; i++) all[i] = i < j->n_sizes ? j->sizes[i] : -1;
    return all;
}

/* Collects the remarks of passes over loops, for each target; these passes run only when code is
 * made. False after a diagnostic. */
static bool tell_loops(Ctx *c, CliJob *j, const Plan *p) {
    TargetOptions o = cli_target_options(&j->o);
    if (!(j->o.reports & (REPORT_FUSION | REPORT_MISSED))) return true;
    return (!plan_on_host(p) || loop_pass_remarks(c, p, &target_cpu, &o, &j->remarks)) &&
           (!p->device || loop_pass_remarks(c, p, target_find(p->device), &o, &j->remarks));
}

/* Fills *o with what reports of the plan p need. p is not arranged yet; `to` lives as long as
 * *o. False after a diagnostic. */
static bool report_options(Ctx *c, CliJob *j, const Plan *p, const PassChoices *ch,
                           TargetOptions *to, ReportOptions *o) {
    const char **choice = NEWN(c->a, const char *, 1 << PASS_MAX_CHOICES);
    if (!tell_loops(c, j, p)) return false;
    *to = cli_target_options(&j->o);
    *o = (ReportOptions){.kinds = j->o.reports,
                         .json = j->o.report_json,
                         .sizes = known_sizes(c, j, p->m),
                         .data = j->o.data,
                         .roof = j->on.device,
                         .remarks = j->remarks.s,
                         .record = j->o.pass.record,
                         .on = j->on.host ? j->on.host : j->on.device,
                         .to = to,
                         .effects_before = j->effects,
                         .variant = (int)j->o.variant,
                         .n_variants = cli_count_variants(j, ch)};
    for (int i = 0; i < o->n_variants; i++) choice[i] = cli_variant_text(c, ch, (unsigned)i);
    o->choice = choice;
    if (!j->o.data || !(j->o.reports & (REPORT_DEGREES | REPORT_TIMES))) return true;
    o->degrees = cli_degrees(c, p->m, j->o.data, &o->n_degrees);
    return o->degrees != NULL;
}

/* Writes the reports: to standard output if the result is a file, else to the log. */
static bool print_reports(Ctx *c, CliJob *j, const Plan *p, const PassChoices *ch) {
    StrBuf b = sb_new(c->a);
    TargetOptions to;
    ReportOptions o;
    ReportBuilts built = {0};
    if (!report_options(c, j, p, ch, &to, &o)) return false;
    if (j->on.device && j->sizes && report_asks_assembler(j->o.reports) &&
        !cli_cuda_usage(c, p, &j->o, &o, &built))
        return false;
    report_print(&b, c, p, &o);
    if (result_is_file(&j->o)) return cli_write(c, NULL, b.s, b.n);
    ctx_log(c, "%s", b.s);
    return true;
}

/* Arranges the kernels of a plan for one target as they are emitted, so that costs are of these.
 * A plan of two targets stays as it is. False after a diagnostic. */
static bool arrange_alone(Ctx *c, const CliJob *j, Plan *p, const Target *t) {
    TargetOptions o = cli_target_options(&j->o);
    bool both = plan_on_host(p) && p->device, host_too = p->with_host;
    if (both || p->scheduled_for) return true;
    bool ok = loop_pass_arrange(c, p, t, &o);
    p->with_host = host_too;
    return ok;
}

/* Makes the result of the n variants of a plan: a text, a file or a program. False after a
 * diagnostic. */
static bool generate(Ctx *c, CliJob *j, Plan *const *plan, int n) {
    Plan *p = plan[0];
    const Target *t = cli_choose_target(c, j);
    if (!t) return false;
    const char *stem = cli_stem(c->a, j->o.files.v[0]);
    OutKind e = j->o.emit;
    for (int i = 0; i < n && e != OUT_PLAN; i++)
        if (!cli_find_lives(c, plan[i]) || !arrange_alone(c, j, plan[i], t)) return false;
    bool ok = e == OUT_PLAN              ? print_plan(c, j, p)
              : e == OUT_LOOPS           ? print_loops(c, j, p, t)
              : e == OUT_HEADER          ? print_header(c, j, p)
              : e == OUT_NONE            ? true
              : cli_makes_program(&j->o) ? cli_build(c, plan, n, j->on.host, &j->o, stem)
                                         : cli_emit(c, p, t, &j->o, stem);
    if (c->outside.log) pass_times_print(c->outside.log, j->times);
    return ok && (!j->o.depends || cli_depfile(c, p->m, &j->o, cli_output(c, &j->o, stem)));
}

/* Writes the page of --emit=html. */
static bool print_page(Ctx *c, CliJob *j, Plan *p, const PassChoices *ch) {
    const Target *t = cli_choose_target(c, j);
    TargetOptions to;
    ReportOptions o;
    return t && cli_find_lives(c, p) && report_options(c, j, p, ch, &to, &o) &&
           cli_page(c, p, t, &j->o, &o, j->since);
}

/* Makes a plan for each combination of answers that only data give, and code of all of them. */
static bool generate_all(Ctx *c, CliJob *j, Plan *first, Plan *shown, PassChoices *ch) {
    bool program = cli_makes_program(&j->o);
    Plan *plan[1 << PASS_MAX_CHOICES] = {program ? first : shown};
    int n = program ? cli_count_variants(j, ch) : 1;
    ch->closed = true;
    for (int i = 1; i < n; i++) {
        plan[i] = i == (int)j->o.variant ? shown : cli_make_variant(c, j, first, (unsigned)i);
        if (!plan[i]) return false;
    }
    for (int i = 0; i < n && n > 1; i++) {
        plan[i]->variant = i;
        plan[i]->n_variants = n;
        if (ch->in_f32 & ~(unsigned)i) plan[i]->in_f32 = i | (int)ch->in_f32;
        plan[i]->in_f32_bytes = (int64_t)pass_threshold(c, PASS_T_PRECISION_SMALL) << 20;
        plan[i]->choice = cli_variant_text(c, ch, (unsigned)i);
    }
    return generate(c, j, plan, n);
}

/* --stop-after names no pass over the graph, nor over the plan. */
static bool stop_in_loops(Ctx *c, CliJob *j, Plan *p) {
    const Target *t = cli_choose_target(c, j);
    if (!t) return false;
    return cli_stop_in_loops(c, j, p, t) && cli_find_lives(c, p) && print_loops(c, j, p, t);
}

/* Chooses the targets that the text of a plan was made for. False after a diagnostic: --target
 * says others. */
static bool targets_of_plan(Ctx *c, CliJob *j, const Plan *p) {
    j->on = (CliTargets){plan_on_host(p) ? target_find("cpu") : NULL,
                         p->device ? target_find(p->device) : NULL};
    const char *want = j->o.target;
    OutKind e = j->o.emit;
    bool any = !strcmp(want, "auto") || e == OUT_IR || e == OUT_PLAN || e == OUT_LOOPS;
    bool fits = any || (strstr(want, "cpu") ? j->on.host != NULL : true);
    fits = fits && (any || !strstr(want, "cuda") || p->device);
    if (!fits)
        diag_add(c, DIAG_E0513, (Span){0}, "this plan was made for %s, not for %s",
                 p->device ? p->with_host ? "cpu,cuda" : "cuda" : "cpu", want);
    return fits;
}

/* Compiles the text of a plan, which has its target already. */
static bool compile_plan(Ctx *c, CliJob *j) {
    Plan *p = cli_read_plan(c, j, j->o.files.v[0]);
    PassChoices choices = {.n = 0};
    if (!p || !targets_of_plan(c, j, p)) return false;
    if (j->o.name) p->c_name = j->o.name;
    if (j->o.emit == OUT_CUDA) j->on.host = NULL; /* the device's kernels alone */
    if (j->progress.stopped) return print_plan(c, j, p);
    if (j->o.pass.stop_after) return stop_in_loops(c, j, p);
    if (j->o.emit == OUT_HTML) return print_page(c, j, p, &choices);
    if (j->o.reports && !print_reports(c, j, p, &choices)) return false;
    return j->o.emit == OUT_IR ? print_module(c, j, p->m) : generate(c, j, &p, 1);
}

/* Compiles a model, or a plan's text, up to the result that the options ask for. False after a
 * diagnostic. */
static bool compile_one(Ctx *c, CliJob *j) {
    PassChoices choices = {.n = 0};
    PassRanges ranges;
    PassScale scale = {.off = false};
    j->o.pass.choices = &choices;
    j->o.pass.scale = &scale;
    if (j->o.emit == OUT_AST) return print_ast(c, j);
    if (cli_is_plan(j)) return compile_plan(c, j);
    cli_choose_targets(c, j);
    if (j->o.precision_auto) {
        j->o.pass.ranges = &ranges;
        if (!cli_measure_ranges(c, j, &ranges)) return false;
    }
    Module *m = cli_make_module(c, j);
    if (!m) return false;
    bool last = j->o.emit == OUT_IR && !j->o.reports && !j->o.variant && !j->o.pass.stop_after;
    if (j->progress.stopped || last) return print_module(c, j, m);
    if (j->on.host && cli_shares_rows(j, m)) j->on.device = NULL; /* they do on processors alone */
    Plan *p = cli_make_plan(c, j, m, j->on.device ? j->on.device->name : NULL);
    if (p && j->progress.stopped) return print_plan(c, j, p);
    if (p && j->o.pass.stop_after) return stop_in_loops(c, j, p);
    Plan *shown = p ? cli_shown_variant(c, j, p, &choices) : NULL;
    if (shown && j->o.emit == OUT_HTML) return print_page(c, j, shown, &choices);
    if (!shown || (j->o.reports && !print_reports(c, j, shown, &choices))) return false;
    return j->o.emit == OUT_IR ? print_module(c, j, shown->m)
                               : generate_all(c, j, p, shown, &choices);
}

/* Why single rows cannot be predicted, if no other error was added from diagnostic number `from`
 * on. NULL: there is another, or none. */
static const char *only_rows_fail(const Ctx *c, int from) {
    const char *why = NULL;
    for (int i = from; i < c->diags.n; i++) {
        const Diag *d = &c->diags.v[i];
        if (d->sev == SEV_ERROR && d->code != DIAG_E0516) return NULL;
        if (d->sev == SEV_ERROR) why = d->text;
    }
    return why;
}

/* The program that predicts rows, for the one that trains to be linked with; a model may have none.
 * Ranges are measured of the latter alone. */
static bool compile_rows(Ctx *c, CliJob *j) {
    CliJob rows = *j;
    CliOptions *o = &rows.o;
    const char *dir = cli_temp_dir(c, &j->o), *path = arena_printf(c->a, "%s/rows.o", dir);
    int n_diags = c->diags.n, n_errors = c->n_errors;
    if (!dir) return false;
    o->emit = OUT_ROWS_OBJ;
    o->infer = true;
    o->out = path;
    o->name = cli_rows_name(c, &j->o);
    o->target = target_cpu.name;
    o->passes = NULL;
    o->depends = o->precision_auto = false;
    o->reports = o->variant = 0;
    o->pass = (PassOptions){.precision = j->o.precision_auto ? DT_F32 : j->o.pass.precision,
                            .disable = j->o.pass.disable,
                            .leave_from = j->o.pass.leave_from,
                            .rewrite_from = j->o.pass.rewrite_from,
                            .told = j->o.pass.told};
    bool ok = compile_one(c, &rows);
    j->o.rows = ok ? path : NULL;
    j->o.no_rows = ok || o->embed ? NULL : only_rows_fail(c, n_diags);
    if (!ok && (o->explain || (!j->o.no_rows && j->o.emit != OUT_EXE))) return false;
    c->diags.n = n_diags; /* warnings are given by what follows */
    c->n_errors = n_errors;
    return true;
}

/* A program that trains also holds one that predicts single rows on the host, but for these special
 * forms. A plan is of one program, and nothing else is made of it. */
static bool needs_row_inference(const CliJob *j) {
    const CliOptions *o = &j->o;
    bool odd = o->alone || o->infer || o->grads || o->passes || !strcmp(o->target, "cuda");
    if (cli_is_plan(j)) return false;
    return o->emit == OUT_PYTHON ||
           (o->emit == OUT_EXE && !odd && !rt_ends_with(o->files.v[0], ".gir"));
}

/* Compiles a file as the options say; a program that predicts single rows, if it has one, comes
 * first. */
bool cli_compile(Ctx *c, const CliOptions *o) {
    CliJob job = cli_job(c, o), *j = &job;
    if (cli_is_plan(j)) j->o.no_rows = "it was compiled from a plan, which is of one program";
    return (!needs_row_inference(j) || compile_rows(c, j)) && compile_one(c, j);
}

/* Checks each file without compiling it. False: one has a mistake. */
bool cli_check(Ctx *c, const CliOptions *o) {
    CliJob job = cli_job(c, o), *j = &job;
    for (int i = 0; i < j->o.files.n; i++) {
        int before = c->n_errors;
        bool plan = cli_is_plan_file(j->o.files.v[i]);
        Module *m = plan ? NULL : cli_read_module(c, j, j->o.files.v[i]);
        if (m) cli_specialize_sizes(c, j, m);
        if (plan) cli_read_plan(c, j, j->o.files.v[i]);
        if (j->o.verbose && c->n_errors == before)
            ctx_log(c, "gnnc: %s is well-formed\n", j->o.files.v[i]);
    }
    return c->n_errors == 0;
}

/* Prints the remarks of passes; with --report=missed alone only those on what was refused. */
static void tell_remarks(Ctx *c, const CliJob *j) {
    StrBuf b = sb_new(c->a);
    const PassRecord *r = j->o.pass.record;
    bool refused = r && (j->o.reports & REPORT_MISSED) && !(j->o.reports & REPORT_FUSION);
    if (refused) pass_refusals_put(c, &b, r);
    const StrBuf *said = refused ? &b : &j->remarks;
    if (said->n) ctx_log(c, "%s", said->s);
}

/* Runs the passes of --passes on a text of kernels with their plan and prints it. False after a
 * diagnostic. */
static bool optimise_arranged(Ctx *c, CliJob *j, uint32_t file) {
    j->o.pass.verify_each = true;
    Plan *p = cli_parse_plan(c, j, file);
    if (!p) return false;
    const Target *t = p->scheduled_for ? target_find(p->scheduled_for) : &target_cpu;
    PassOptions asked = *p->loop_options;
    asked.remarks = &j->remarks;
    p->loop_options = &asked;
    if (!print_loops(c, j, p, t)) return false;
    tell_remarks(c, j);
    return true;
}

/* Runs the passes of --passes on a text of kernels, which stand behind a module of their spaces,
 * and prints it. False after a diagnostic. */
static bool optimise_loops(Ctx *c, CliJob *j) {
    uint32_t file = ctx_add_file(c, j->o.files.v[0], (Span){0});
    if (file != UINT32_MAX && plan_in_text(c, file)) return optimise_arranged(c, j, file);
    const Target *t = strcmp(j->o.target, target_cuda.name) ? &target_cpu : &target_cuda;
    TargetOptions o = cli_target_options(&j->o);
    TargetMachine machine;
    Module *m = NULL;
    int n = 0;
    const LKernel *k = file == UINT32_MAX ? NULL : loop_parse_file(c, file, &m, &n);
    if (!k || !loop_pass_machine(c, t, &o, &machine)) return false;
    StrBuf b = sb_new(c->a);
    module_print_spaces(&b, m);
    j->o.pass.dump = c->outside.log;
    j->o.pass.verify_each = true;
    j->remarks = sb_new(c->a);
    j->o.pass.remarks = &j->remarks;
    j->o.pass.record = NEW(c->a, PassRecord);
    for (int i = 0; i < n; i++) {
        Loops l = loop_pass_begin(c, m, t, &machine, &k[i]);
        if (!loop_verify(c, m, &k[i]) || !loop_pass_run(&l, j->o.passes, &j->o.pass)) return false;
        for (int s = 0; s < l.k.n; s++) loop_print(&b, m, l.k.v[s]);
    }
    tell_remarks(c, j);
    return cli_write(c, j->o.out, b.s, b.n);
}

/* Runs the passes that --passes names on the text of a plan and writes it. */
static bool optimise_plan(Ctx *c, CliJob *j) {
    j->o.pass.verify_each = true;
    Plan *p = cli_read_plan(c, j, j->o.files.v[0]);
    if (!p) return false;
    tell_remarks(c, j);
    j->o.emit = OUT_PLAN;
    return print_plan(c, j, p);
}

/* The command `gnnc opt`: runs the passes that --passes names on a text and writes it. */
bool cli_optimise(Ctx *c, const CliOptions *o) {
    CliJob job = cli_job(c, o), *j = &job;
    bool loops = rt_ends_with(j->o.files.v[0], ".loops");
    if (cli_is_plan(j) && !loops) return optimise_plan(c, j);
    if (!j->o.passes) j->o.passes = "";
    if (loops) return optimise_loops(c, j);
    Module *m = cli_read_module(c, j, j->o.files.v[0]);
    j->o.pass.verify_each = true;
    if (!m || !cli_run_passes(c, j, m)) return false;
    tell_remarks(c, j);
    return print_module(c, j, m);
}
