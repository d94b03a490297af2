/* What options ask for, done.  Text goes one way: file -> module -> passes -> plan -> target ->
 * file; each --emit kind stops at its stage.  main.c and gnncc.c call it. */
#include "codegen/loop_passes/loops.h"
#include "codegen/plan_passes/plan_pass.h"
#include "codegen/report/report.h"
#include "frontend/cli/cli.h"
#include "frontend/fe.h"
#include "passes/threshold.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/data/io.h"

typedef struct {
    CliOptions o;
    StrBuf remarks;
    int effects;          /* print and assert, before any pass */
    const int64_t *sizes; /* by Sym.id, of the first n_sizes */
    int n_sizes;
    CliTargets on;
    PassProgress progress;
    PassTimes *times; /* of passes over loops */
    double since;     /* milliseconds, when the compile began */
} Job;

/* ---- stages -------------------------------------------------------------------------- */
FeOptions cli_front_end_options(Ctx *c, const CliOptions *o) {
    FeDefine *defs = NEWN(c->a, FeDefine, (size_t)o->defines.n);
    for (int i = 0; i < o->defines.n; i++) {
        const char *eq = strchr(o->defines.v[i], '=');
        defs[i].name = arena_strndup(c->a, o->defines.v[i], (size_t)(eq - o->defines.v[i]));
        defs[i].value = eq + 1;
    }
    VEC(const char *) dirs = {0};
    for (int i = 0; i < o->includes.n; i++) vec_push(c->a, &dirs, o->includes.v[i]);
    const char *library = cli_models_dir(c);
    if (library) vec_push(c->a, &dirs, library);
    return (FeOptions){.defs = defs,
                       .n_defs = o->defines.n,
                       .dirs = dirs.v,
                       .n_dirs = dirs.n,
                       .model = o->model,
                       .check_only = o->action == ACT_CHECK,
                       .serve = o->infer,
                       .draw = o->draw,
                       .embed = o->embed};
}

static Module *parse_ir(Ctx *c, const char *path) {
    uint32_t file = ctx_add_file(c, path, (Span){0});
    return file == UINT32_MAX ? NULL : module_parse(c, file);
}

static Module *read_module(Ctx *c, Job *j, const char *path) {
    double start = cli_now_ms();
    FeOptions fe = cli_front_end_options(c, &j->o);
    Module *m = rt_ends_with(path, ".gir") ? parse_ir(c, path) : fe_compile(c, path, &fe);
    cli_stage_time(c, &j->o, "front end", start);
    if (!m || c->n_errors) return NULL;
    return module_verify(c, m, "the front end") ? m : NULL;
}

/* Of --passes those of one level; NULL: it says nothing of the plan, or of loops. */
typedef enum { OF_GRAPH, OF_PLAN, OF_LOOPS } PassLevel;

static PassLevel level_of(const char *name) {
    return plan_pass_find(name) ? OF_PLAN : loop_pass_find(name) ? OF_LOOPS : OF_GRAPH;
}

static const char *passes_named(Ctx *c, const char *names, PassLevel level) {
    StrBuf b = sb_new(c->a);
    bool any = false;
    for (size_t n; names && *names; names += n + (names[n] == ',')) {
        n = strcspn(names, ",");
        const char *name = arena_strndup(c->a, names, n);
        if (level_of(name) != level) continue;
        sb_printf(&b, "%s%s", any ? "," : "", name);
        any = true;
    }
    return any ? b.s : level != OF_GRAPH || !names ? NULL : "";
}

static bool run_passes(Ctx *c, Job *j, Module *m) {
    double start = cli_now_ms();
    PassOptions *p = &j->o.pass;
    p->dump = c->outside.log;
    p->progress = &j->progress;
    j->progress = (PassProgress){0};
    j->effects = report_count_effects(m);
    if (j->o.reports & (REPORT_FUSION | REPORT_MISSED)) {
        j->remarks = sb_new(c->a);
        p->remarks = &j->remarks;
        p->record = NEW(c->a, PassRecord);
        p->record_diffs = j->o.emit == OUT_HTML;
    }
    const char *named = passes_named(c, j->o.passes, OF_GRAPH);
    if (!named && !m->pending)
        m->pending = j->o.infer ? pass_pipeline_infer(j->o.opt_level, j->o.explain)
                                : pass_pipeline_named(j->o.opt_level, j->o.grads);
    const char *names = named ? named : m->pending;
    if (p->dump_values && !named && j->o.action != ACT_OPT)
        names = arena_printf(c->a, "%s%sdump-values", names, *names ? "," : "");
    bool ok = pass_run_all(c, m, names, p);
    cli_stage_time(c, &j->o, "passes", start);
    return ok;
}

/* Of what is emitted as one file. */
static const Target *choose_target(Ctx *c, const Job *j) {
    const Target *t = j->on.host ? j->on.host : &target_cuda;
    if (t == &target_cuda && (j->o.emit == OUT_LLVM || j->o.emit == OUT_ASM)) {
        diag_add(c, DIAG_E0513, (Span){0},
                 "the cuda target has no %s; --emit=cuda prints its source",
                 j->o.emit == OUT_ASM ? "assembly" : "LLVM IR");
        return NULL;
    }
    return t;
}

static void choose_targets(Ctx *c, Job *j) {
    bool program = cli_makes_program(&j->o);
    bool choose = strcmp(j->o.target, "auto") == 0;
    j->on = cli_targets(c, &j->o);
    if (program && choose && !j->on.cuda)
        ctx_log(c, "gnnc: no CUDA Toolkit is used here: compiling for the cpu alone\n");
    else if (choose && j->o.verbose)
        ctx_log(c, "gnnc: target %s\n", j->on.cuda ? "cpu,cuda" : "cpu");
}

/* ---- actions ---------------------------------------------------------------------------- */
static bool print_module(Ctx *c, const Job *j, const Module *m) {
    StrBuf b = sb_new(c->a);
    module_print_file(&b, m);
    return cli_write(c, j->o.out, b.s ? b.s : "", b.n);
}

static bool print_plan(Ctx *c, const Job *j, const Plan *p) {
    StrBuf b = sb_new(c->a);
    plan_print(&b, p);
    return cli_write(c, j->o.out, b.s ? b.s : "", b.n);
}

/* Kernels as the target emits them, and the plan that runs them. */
static bool print_loops(Ctx *c, const Job *j, Plan *p, const Target *t) {
    TargetOptions o = cli_target_options(&j->o);
    return loop_pass_arrange(c, p, t, &o) && print_plan(c, j, p);
}

static bool print_header(Ctx *c, const Job *j, const Plan *p) {
    const char *text = host_header(c, p);
    return cli_write(c, j->o.out, text, strlen(text));
}

static bool print_ast(Ctx *c, const Job *j) {
    const Ast *t = fe_parse_path(c, j->o.files.v[0]);
    if (!t || c->n_errors) return false;
    StrBuf b = sb_new(c->a);
    ast_print(&b, t);
    return cli_write(c, j->o.out, b.s ? b.s : "", b.n);
}

/* What a program says of how it was made. */
static const char *options_text(Ctx *c, const Job *j) {
    const CliOptions *o = &j->o;
    StrBuf b = sb_new(c->a);
    const char *host = j->on.host ? j->on.host->name : "";
    bool cuda = j->on.cuda;
    sb_printf(&b, "-O%d --target=%s%s%s", o->opt_level, host, *host && cuda ? "," : "",
              cuda ? "cuda" : "");
    if (*host) sb_printf(&b, " --march=%s", o->march ? o->march : "native");
    if (cuda && o->cuda_arch) sb_printf(&b, " --cuda-arch=%s", o->cuda_arch);
    for (int i = 0; i < o->defines.n; i++) sb_printf(&b, " -D %s", o->defines.v[i]);
    if (o->precision_auto)
        sb_puts(&b, " --precision=auto");
    else if (dtype_bytes(o->pass.precision) == 2)
        sb_printf(&b, " --precision=%s", dtype_name(o->pass.precision));
    if (o->tf32) sb_puts(&b, " --precision=tf32");
    if (cuda && o->spmm) sb_printf(&b, " --spmm=%s", o->spmm == SPMM_AUTO ? "auto" : "cusparse");
    if (o->grads) sb_puts(&b, " --grads");
    if (o->infer) sb_puts(&b, o->draw ? " --infer --draw" : " --infer");
    if (o->explain) sb_puts(&b, " --explain");
    if (o->infer && o->embed) sb_printf(&b, " --embed=%s", o->embed);
    if (o->passes) sb_printf(&b, " --passes=%s", o->passes);
    if (o->pass.disable) sb_printf(&b, " --disable-pass=%s", o->pass.disable);
    pass_thresholds_put(&b, c);
    if (o->data) sb_puts(&b, " --specialize");
    return b.s;
}

/* Reports go to standard output unless the result does. */
static bool result_is_file(const CliOptions *o) {
    if (o->out) return strcmp(o->out, "-") != 0;
    return cli_makes_program(o) || o->emit == OUT_OBJ || o->emit == OUT_NONE;
}

/* Passes may have made more symbols, whose values nobody knows. */
static const int64_t *known_sizes(Ctx *c, const Job *j, const Module *m) {
    if (!j->sizes) return NULL;
    int64_t *all = NEWN(c->a, int64_t, (size_t)m->syms.n + 1);
    for (int i = 0; i < m->syms.n; i++) all[i] = i < j->n_sizes ? j->sizes[i] : -1;
    return all;
}

static const char *choice_text(Ctx *c, const PassChoices *ch, unsigned picked) {
    StrBuf b = sb_new(c->a);
    for (int i = 0; i < ch->n; i++)
        sb_printf(&b, "%s%s", i ? "; " : "", ch->answer[i][picked >> i & 1]);
    return b.s;
}

/* Programs that run on the host have them all; a device runs the first. */
static int count_variants(const Job *j, const PassChoices *ch) {
    return j->on.host ? 1 << ch->n : 1;
}

/* What passes say of the kernels of each target: these run when code is made. */
static bool tell_loops(Ctx *c, Job *j, const Plan *p) {
    TargetOptions o = cli_target_options(&j->o);
    if (!(j->o.reports & (REPORT_FUSION | REPORT_MISSED))) return true;
    return (!plan_on_host(p) || loop_pass_remarks(c, p, &target_cpu, &o, &j->remarks)) &&
           (!p->device || loop_pass_remarks(c, p, &target_cuda, &o, &j->remarks));
}

/* Of p, which is not arranged; to, choice: for as long as the options. */
static bool report_options(Ctx *c, Job *j, const Plan *p, const PassChoices *ch, TargetOptions *to,
                           ReportOptions *o) {
    const char **choice = NEWN(c->a, const char *, 1 << PASS_MAX_CHOICES);
    if (!tell_loops(c, j, p)) return false;
    *to = cli_target_options(&j->o);
    *o = (ReportOptions){.kinds = j->o.reports,
                         .json = j->o.report_json,
                         .sizes = known_sizes(c, j, p->m),
                         .data = j->o.data,
                         .roof = j->on.cuda ? &target_cuda : NULL,
                         .remarks = j->remarks.s,
                         .record = j->o.pass.record,
                         .on = j->on.host ? j->on.host : &target_cuda,
                         .to = to,
                         .effects_before = j->effects,
                         .variant = (int)j->o.variant,
                         .n_variants = count_variants(j, ch)};
    for (int i = 0; i < o->n_variants; i++) choice[i] = choice_text(c, ch, (unsigned)i);
    o->choice = choice;
    if (!j->o.data || !(j->o.reports & REPORT_DEGREES)) return true;
    o->degrees = cli_degrees(c, p->m, j->o.data, &o->n_degrees);
    return o->degrees != NULL;
}

static bool print_reports(Ctx *c, Job *j, const Plan *p, const PassChoices *ch) {
    StrBuf b = sb_new(c->a);
    TargetOptions to;
    ReportOptions o;
    if (!report_options(c, j, p, ch, &to, &o)) return false;
    report_print(&b, c, p, &o);
    if (result_is_file(&j->o)) return cli_write(c, NULL, b.s, b.n);
    ctx_log(c, "%s", b.s);
    return true;
}

/* For its kernels' passes, which run when code is made of them. */
static void keep_options(Ctx *c, const Job *j, Plan *p) {
    PassOptions *o = NEW(c->a, PassOptions);
    *o = j->o.pass;
    o->remarks = NULL; /* they have been told when code is made */
    o->times = o->time_passes ? j->times : NULL;
    p->loop_passes = passes_named(c, j->o.passes, OF_LOOPS);
    p->loop_options = o;
    p->n_spare = j->progress.n_spare;
}

/* Steps that see the whole graph, of processes that may share its rows. */
static bool shares_rows(const Job *j, const Module *m) {
    const Sampling *s = &m->recipe.sample;
    return (j->o.mpi || j->o.parts) && !s->batch && !s->train_links && !s->serve;
}

/* device: whose library calls the plan may use; NULL = none. */
static Plan *make_plan(Ctx *c, Job *j, Module *m, const char *device) {
    double start = cli_now_ms();
    if (!(m->has & IR_TYPED)) {
        diag_add(c, DIAG_E0510, (Span){0},
                 "a plan needs typed operations (run shape-propagation first)");
        return NULL;
    }
    Plan *p = plan_new(m, device, j->o.spmm);
    p->by_parts = !device && shares_rows(j, m);
    const char *names = passes_named(c, j->o.passes, OF_PLAN);
    j->o.pass.progress = &j->progress;
    if (!plan_run_passes(c, p, names ? names : plan_pipeline(p), &j->o.pass)) return NULL;
    if (!plan_verify(c, p)) return NULL;
    p->options = options_text(c, j);
    p->c_name = j->o.name;
    p->tf32 = j->o.tf32;
    p->host_too = j->on.host != NULL;
    keep_options(c, j, p);
    cli_stage_time(c, &j->o, "plan", start);
    return p;
}

/* Of a plan that was stopped, or made by chosen passes: without them nothing shares memory. */
static bool find_lives(Ctx *c, Plan *p) {
    bool lacks = (p->has & (PLAN_STEPS | PLAN_LIVES)) == PLAN_STEPS;
    return !lacks || plan_run_passes(c, p, "lifetimes", NULL);
}

/* The kernels of a plan for one target become what it emits, so that costs are of these. */
static bool arrange_alone(Ctx *c, const Job *j, Plan *p, const Target *t) {
    TargetOptions o = cli_target_options(&j->o);
    bool both = plan_on_host(p) && p->device, host_too = p->host_too;
    if (both || p->arranged) return true;
    bool ok = loop_pass_arrange(c, p, t, &o);
    p->host_too = host_too;
    return ok;
}

static bool generate(Ctx *c, Job *j, Plan *const *plan, int n) {
    Plan *p = plan[0];
    const Target *t = choose_target(c, j);
    if (!t) return false;
    const char *stem = cli_stem(c->a, j->o.files.v[0]);
    OutKind e = j->o.emit;
    for (int i = 0; i < n && e != OUT_PLAN; i++)
        if (!find_lives(c, plan[i]) || !arrange_alone(c, j, plan[i], t)) return false;
    bool ok = e == OUT_PLAN              ? print_plan(c, j, p)
              : e == OUT_LOOPS           ? print_loops(c, j, p, t)
              : e == OUT_HEADER          ? print_header(c, j, p)
              : e == OUT_NONE            ? true
              : cli_makes_program(&j->o) ? cli_build(c, plan, n, j->on.host, &j->o, stem)
                                         : cli_emit(c, p, t, &j->o, stem);
    if (c->outside.log) pass_times_print(c->outside.log, j->times);
    return ok && (!j->o.depends || cli_depfile(c, p->m, &j->o, cli_output(c, &j->o, stem)));
}

static bool print_page(Ctx *c, Job *j, Plan *p, const PassChoices *ch) {
    const Target *t = choose_target(c, j);
    TargetOptions to;
    ReportOptions o;
    return t && find_lives(c, p) && report_options(c, j, p, ch, &to, &o) &&
           cli_page(c, p, t, &j->o, &o, j->since);
}

static bool specialize(Ctx *c, Job *j, Module *m) {
    if (!j->o.data) return true;
    j->sizes = cli_specialize(c, m, j->o.data);
    j->n_sizes = m->syms.n;
    return j->sizes && module_verify(c, m, "--specialize");
}

/* With --precision=auto: the program all in f32, which tells the ranges of what would be rounded,
 * is built and run.  After it the same passes make the same program, and know them. */
static bool measure_ranges(Ctx *c, const Job *j, PassRanges *r) {
    Job probe = *j;
    int n_diags = c->diags.n;
    *r = (PassRanges){.measured = false};
    probe.o.name = NULL; /* cli_measure() has one of its own */
    probe.o.reports = 0;
    probe.o.pass.remarks = NULL;
    probe.o.pass.record = NULL;
    probe.o.pass.stop_after = NULL;
    probe.on.cuda = false;
    Module *m = read_module(c, &probe, probe.o.files.v[0]);
    if (!m || !specialize(c, &probe, m) || !run_passes(c, &probe, m)) return false;
    m->recipe.keep_metric = NULL;
    Plan *p = make_plan(c, &probe, m, NULL);
    if (!p || (r->of.n && !cli_measure(c, p, &probe.o, r))) return false;
    c->diags.n = n_diags; /* warnings are given by what follows */
    return r->measured = true;
}

/* The variant in which the answers are `picked`; its kernels have names of their own. */
static Plan *make_variant(Ctx *c, Job *j, const Plan *first, unsigned picked) {
    Job v = *j;
    if (picked != j->o.variant) v.o.reports = 0;
    v.o.pass.remarks = NULL;
    v.o.pass.record = NULL;
    v.o.pass.choices->picked = picked;
    int n_diags = c->diags.n;
    if (v.o.pass.ranges && !measure_ranges(c, &v, v.o.pass.ranges)) return NULL;
    Module *m = read_module(c, &v, v.o.files.v[0]);
    c->diags.n = n_diags; /* warnings were given once */
    Plan *p = m && specialize(c, &v, m) && run_passes(c, &v, m)
                  ? make_plan(c, &v, m, NULL)
                  : NULL; /* a device runs the first */
    for (int i = 0; p && i < p->kernels.n; i++)
        p->kernels.v[i]->name = arena_printf(c->a, "%s_v%u", p->kernels.v[i]->name, picked);
    if (p) p->host_too = false;
    if (p) p->fingerprint = plan_fingerprint(c->a, first);
    if (picked == j->o.variant) j->remarks = v.remarks, j->o.pass.record = v.o.pass.record;
    return p;
}

/* Does a gradient lie in f16 in any variant? */
static bool needs_scale(Ctx *c, const Job *j) {
    Job v = *j;
    int n = count_variants(j, j->o.pass.choices), n_diags = c->diags.n;
    PassChoices choices = *j->o.pass.choices;
    v.o.pass.choices = &choices;
    v.o.pass.remarks = NULL;
    v.o.pass.record = NULL;
    v.o.reports = 0;
    choices.closed = true;
    for (int i = 1; i < n && !j->o.pass.scale->needed; i++) {
        choices.picked = (unsigned)i;
        Module *m = read_module(c, &v, v.o.files.v[0]);
        c->diags.n = n_diags; /* warnings were given once */
        if (!m || !specialize(c, &v, m) || !run_passes(c, &v, m)) return true;
    }
    return j->o.pass.scale->needed;
}

/* The program after its passes; NULL after a diagnostic.  Only they show whether a gradient lies in
 * f16.  Where none does in any variant the loss is not scaled, and they run again.  Not so where
 * ranges were measured, which are those of a scaled loss. */
static Module *make_module(Ctx *c, Job *j) {
    int n_diags = c->diags.n;
    PassScale *scale = j->o.pass.scale;
    PassChoices choices = *j->o.pass.choices;
    Module *m = read_module(c, j, j->o.files.v[0]);
    if (!m || !specialize(c, j, m) || !run_passes(c, j, m)) return NULL;
    if (j->progress.stopped) return m;
    bool decided = !j->o.passes && scale->scaled && !scale->needed; /* by all passes */
    if (!decided || j->o.pass.ranges || needs_scale(c, j)) return m;
    scale->off = true;
    c->diags.n = n_diags;
    *j->o.pass.choices = choices;
    m = read_module(c, j, j->o.files.v[0]);
    return m && specialize(c, j, m) && run_passes(c, j, m) ? m : NULL;
}

/* The one that reports and listings are of, NULL after a diagnostic. */
static Plan *shown_variant(Ctx *c, Job *j, Plan *first, PassChoices *ch) {
    int n = count_variants(j, ch);
    if (!j->o.variant) return first;
    if (j->o.variant >= (unsigned)n) {
        diag_add(c, DIAG_E0513, (Span){0}, "there is no variant %u: %s", j->o.variant,
                 !j->on.host ? "a device runs the first one alone"
                 : n == 1    ? "this program has one, 0"
                             : arena_printf(c->a, "this program has %d, from 0 on", n));
        return NULL;
    }
    ch->closed = true;
    return make_variant(c, j, first, j->o.variant);
}

static bool generate_all(Ctx *c, Job *j, Plan *first, Plan *shown, PassChoices *ch) {
    bool program = cli_makes_program(&j->o);
    Plan *plan[1 << PASS_MAX_CHOICES] = {program ? first : shown};
    int n = program ? count_variants(j, ch) : 1;
    ch->closed = true;
    for (int i = 1; i < n; i++) {
        plan[i] = i == (int)j->o.variant ? shown : make_variant(c, j, first, (unsigned)i);
        if (!plan[i]) return false;
    }
    for (int i = 0; i < n && n > 1; i++) {
        plan[i]->variant = i;
        plan[i]->n_variants = n;
        plan[i]->choice = choice_text(c, ch, (unsigned)i);
    }
    return generate(c, j, plan, n);
}

/* Which run of the pass it is that ends there in the list. */
static int nth_of(const char *list, const char *pass, const char *end) {
    int nth = 0;
    for (const char *s = list; s < end; s += *s == ',') {
        size_t n = strcspn(s, ",");
        nth += n == strlen(pass) && !memcmp(s, pass, n);
        s += n;
    }
    return nth;
}

/* The passes over loops up to the last one that was asked for; NULL: it is none of them. */
static const char *loop_passes_until(Ctx *c, const Job *j, const Plan *p, const Target *t) {
    const char *stop = j->o.pass.stop_after, *all = loop_pass_names(p, t);
    int done = j->progress.n;
    for (const char *s = all; *s; s += *s == ',') {
        size_t n = strcspn(s, ",");
        const char *name = arena_strndup(c->a, s, n);
        s += n;
        if (pass_is_listed(j->o.pass.disable, name, nth_of(all, name, s))) continue;
        bool by_name = pass_is_listed(stop, name, nth_of(all, name, s));
        if (by_name || strtol(stop, NULL, 10) == ++done)
            return arena_strndup(c->a, all, (size_t)(s - all));
    }
    return NULL;
}

static bool loops_stop(Ctx *c, const Job *j, Plan *p, const Target *t) {
    p->loop_passes = loop_passes_until(c, j, p, t);
    if (p->loop_passes) return true;
    diag_add(c, DIAG_E0511, (Span){0}, "--stop-after=%s: no such pass ran", j->o.pass.stop_after);
    return false;
}

/* --stop-after names no pass over the graph, nor over the plan. */
static bool stop_in_loops(Ctx *c, Job *j, Plan *p) {
    const Target *t = choose_target(c, j);
    if (!t) return false;
    return loops_stop(c, j, p, t) && find_lives(c, p) && print_loops(c, j, p, t);
}

/* ---- from the text of a plan, or of kernels and theirs -------------------------------------- */
static bool is_plan_file(const char *path) {
    return rt_ends_with(path, ".plan") || rt_ends_with(path, ".loops");
}

static bool is_plan(const Job *j) {
    return is_plan_file(j->o.files.v[0]);
}

/* Its passes are those that --passes names. */
static Plan *parse_plan(Ctx *c, Job *j, uint32_t file) {
    double start = cli_now_ms();
    Plan *p = plan_parse(c, file);
    cli_stage_time(c, &j->o, "the plan's text", start);
    if (!p || c->n_errors || !module_verify(c, p->m, "the plan's text") || !plan_verify(c, p))
        return NULL;
    j->o.pass.dump = c->outside.log;
    j->o.pass.progress = &j->progress;
    if (j->o.reports & (REPORT_FUSION | REPORT_MISSED) || j->o.action == ACT_OPT) {
        j->remarks = sb_new(c->a);
        j->o.pass.remarks = &j->remarks;
        j->o.pass.record = NEW(c->a, PassRecord);
    }
    j->effects = report_count_effects(p->m);
    const char *graph = passes_named(c, j->o.passes, OF_GRAPH); /* the driver refuses these */
    const char *names = graph && *graph ? graph : passes_named(c, j->o.passes, OF_PLAN);
    if (p->arranged && names && names != graph) {
        diag_add(c, DIAG_E0513, (Span){0},
                 "the kernels of this text are arranged for %s already, and '%s' is for plans "
                 "whose kernels are not",
                 p->arranged, names);
        return NULL;
    }
    bool ok = plan_run_passes(c, p, names ? names : "", &j->o.pass) && plan_verify(c, p);
    keep_options(c, j, p);
    return ok ? p : NULL;
}

static Plan *read_plan(Ctx *c, Job *j, const char *path) {
    uint32_t file = ctx_add_file(c, path, (Span){0});
    if (file == UINT32_MAX) return NULL;
    if (!rt_ends_with(path, ".loops") || plan_in_text(c, file)) return parse_plan(c, j, file);
    diag_add(c, DIAG_E0542, span_of(file, 1, 1, 1, 1),
             "there is no plan that runs these kernels: --emit=loops writes both");
    return NULL;
}

/* What a plan was made for is what it can be compiled for. */
static bool targets_of_plan(Ctx *c, Job *j, const Plan *p) {
    j->on = (CliTargets){plan_on_host(p) ? target_find("cpu") : NULL, p->device != NULL};
    const char *want = j->o.target;
    OutKind e = j->o.emit;
    bool any = !strcmp(want, "auto") || e == OUT_IR || e == OUT_PLAN || e == OUT_LOOPS;
    bool fits = any || (strstr(want, "cpu") ? j->on.host != NULL : true);
    fits = fits && (any || !strstr(want, "cuda") || p->device);
    if (!fits)
        diag_add(c, DIAG_E0513, (Span){0}, "this plan was made for %s, not for %s",
                 p->device ? p->host_too ? "cpu,cuda" : "cuda" : "cpu", want);
    return fits;
}

static bool compile_plan(Ctx *c, Job *j) {
    Plan *p = read_plan(c, j, j->o.files.v[0]);
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

static bool compile_one(Ctx *c, Job *j) {
    PassChoices choices = {.n = 0};
    PassRanges ranges;
    PassScale scale = {.off = false};
    j->o.pass.choices = &choices;
    j->o.pass.scale = &scale;
    if (j->o.emit == OUT_AST) return print_ast(c, j);
    if (is_plan(j)) return compile_plan(c, j);
    choose_targets(c, j);
    if (j->o.precision_auto) {
        j->o.pass.ranges = &ranges;
        if (!measure_ranges(c, j, &ranges)) return false;
    }
    Module *m = make_module(c, j);
    if (!m) return false;
    bool last = j->o.emit == OUT_IR && !j->o.reports && !j->o.variant && !j->o.pass.stop_after;
    if (j->progress.stopped || last) return print_module(c, j, m);
    if (j->on.host && shares_rows(j, m)) j->on.cuda = false; /* they do on processors alone */
    Plan *p = make_plan(c, j, m, j->on.cuda ? "cuda" : NULL);
    if (p && j->progress.stopped) return print_plan(c, j, p);
    if (p && j->o.pass.stop_after) return stop_in_loops(c, j, p);
    Plan *shown = p ? shown_variant(c, j, p, &choices) : NULL;
    if (shown && j->o.emit == OUT_HTML) return print_page(c, j, shown, &choices);
    if (!shown || (j->o.reports && !print_reports(c, j, shown, &choices))) return false;
    return j->o.emit == OUT_IR ? print_module(c, j, shown->m)
                               : generate_all(c, j, p, shown, &choices);
}

/* Why rows cannot be predicted by themselves, if that is all that is wrong. */
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
static bool compile_rows(Ctx *c, Job *j) {
    Job rows = *j;
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

/* A trainer predicts rows on the host by themselves, unless it is one of a kind.  A plan is of one
 * program, and nothing else is made of it. */
static bool wants_rows(const Job *j) {
    const CliOptions *o = &j->o;
    bool odd = o->alone || o->infer || o->grads || o->passes || !strcmp(o->target, "cuda");
    if (is_plan(j)) return false;
    return o->emit == OUT_PYTHON ||
           (o->emit == OUT_EXE && !odd && !rt_ends_with(o->files.v[0], ".gir"));
}

static bool compile(Ctx *c, Job *j) {
    if (is_plan(j)) j->o.no_rows = "it was compiled from a plan, which is of one program";
    return (!wants_rows(j) || compile_rows(c, j)) && compile_one(c, j);
}

static bool check(Ctx *c, Job *j) {
    for (int i = 0; i < j->o.files.n; i++) {
        int before = c->n_errors;
        bool plan = is_plan_file(j->o.files.v[i]);
        Module *m = plan ? NULL : read_module(c, j, j->o.files.v[i]);
        if (m) specialize(c, j, m);
        if (plan) read_plan(c, j, j->o.files.v[i]);
        if (j->o.verbose && c->n_errors == before)
            ctx_log(c, "gnnc: %s is well-formed\n", j->o.files.v[i]);
    }
    return c->n_errors == 0;
}

/* With --report=missed alone what they refused, else all. */
static void tell_remarks(Ctx *c, const Job *j) {
    StrBuf b = sb_new(c->a);
    const PassRecord *r = j->o.pass.record;
    bool refused = r && (j->o.reports & REPORT_MISSED) && !(j->o.reports & REPORT_FUSION);
    if (refused) pass_refusals_put(c, &b, r);
    const StrBuf *said = refused ? &b : &j->remarks;
    if (said->n) ctx_log(c, "%s", said->s);
}

/* Passes over kernels that are text and have a plan. */
static bool optimise_arranged(Ctx *c, Job *j, uint32_t file) {
    j->o.pass.verify_each = true;
    Plan *p = parse_plan(c, j, file);
    if (!p) return false;
    const Target *t = p->arranged ? target_find(p->arranged) : &target_cpu;
    PassOptions asked = *p->loop_options;
    asked.remarks = &j->remarks;
    p->loop_options = &asked;
    if (!print_loops(c, j, p, t)) return false;
    tell_remarks(c, j);
    return true;
}

/* Passes over kernels that are text, behind a module of their spaces. */
static bool optimise_loops(Ctx *c, Job *j) {
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

static bool optimise_plan(Ctx *c, Job *j) {
    j->o.pass.verify_each = true;
    Plan *p = read_plan(c, j, j->o.files.v[0]);
    if (!p) return false;
    tell_remarks(c, j);
    j->o.emit = OUT_PLAN;
    return print_plan(c, j, p);
}

static bool optimise(Ctx *c, Job *j) {
    bool loops = rt_ends_with(j->o.files.v[0], ".loops");
    if (is_plan(j) && !loops) return optimise_plan(c, j);
    if (!j->o.passes) j->o.passes = "";
    if (loops) return optimise_loops(c, j);
    Module *m = read_module(c, j, j->o.files.v[0]);
    j->o.pass.verify_each = true;
    if (!m || !run_passes(c, j, m)) return false;
    tell_remarks(c, j);
    return print_module(c, j, m);
}

/* ---- for interpreters ------------------------------------------------------------------------ */
/* The text as it stands, but for the passes that are named. */
static bool is_text(const Job *j) {
    return is_plan(j) || rt_ends_with(j->o.files.v[0], ".gir");
}

/* The variant that is asked for: which there are, the first one tells. */
static Module *variant_module(Ctx *c, Job *j) {
    PassChoices *ch = j->o.pass.choices;
    Module *m = make_module(c, j);
    if (!m || !j->o.variant) return m;
    if (j->o.variant >= 1u << ch->n) {
        diag_add(c, DIAG_E0513, (Span){0}, "there is no variant %u: this program has %d",
                 j->o.variant, 1 << ch->n);
        return NULL;
    }
    ch->closed = true;
    ch->picked = j->o.variant;
    return make_module(c, j);
}

/* Those over loops, which run on each kernel, count once. */
static void tell_loop_passes(Ctx *c, const char *names, const char *disable, CliProduct *to) {
    for (const char *s = names; *s; s += *s == ',') {
        const char *at = s;
        s += strcspn(s, ",");
        const char *name = arena_strndup(c->a, at, (size_t)(s - at));
        if (pass_is_listed(disable, name, 1)) continue;
        to->after = name;
        to->n++;
    }
}

static bool arrange(Ctx *c, Job *j, CliProduct *to) {
    Plan *p = to->plan;
    const Target *t = choose_target(c, j);
    TargetOptions o = cli_target_options(&j->o);
    if (!t || (j->o.pass.stop_after && !loops_stop(c, j, p, t))) return false;
    tell_loop_passes(c, loop_pass_names(p, t), j->o.pass.disable, to);
    return find_lives(c, p) && loop_pass_arrange(c, p, t, &o);
}

static void tell_passes(Ctx *c, const Job *j, CliProduct *to) {
    const PassProgress *at = &j->progress;
    to->n = at->n;
    if (at->last) to->after = arena_printf(c->a, "%s#%d", at->last->name, at->nth);
}

static bool produce_plan(Ctx *c, Job *j, CliProduct *to) {
    bool text = is_plan(j);
    to->plan = text ? read_plan(c, j, j->o.files.v[0])
                    : make_plan(c, j, to->m, j->on.host ? NULL : target_cuda.name);
    if (!to->plan) return false;
    to->m = to->plan->m;
    tell_passes(c, j, to);
    if (j->progress.stopped || text || j->o.level == LEVEL_PLAN) return true;
    return arrange(c, j, to);
}

bool cli_produce(Ctx *c, const CliOptions *o, CliProduct *to) {
    Job j = {.o = *o};
    PassChoices choices = {.n = 0};
    PassScale scale = {.off = false};
    *to = (CliProduct){.m = NULL};
    j.o.emit = OUT_LOOPS; /* of one target */
    j.o.pass.choices = &choices;
    j.o.pass.scale = &scale;
    if (is_text(&j) && !j.o.passes) j.o.passes = "";
    if (!is_plan(&j)) choose_targets(c, &j);
    bool ok = is_plan(&j) || (to->m = variant_module(c, &j));
    bool graph = to->m && (j.o.level == LEVEL_IR || j.progress.stopped);
    tell_passes(c, &j, to);
    return ok && (graph || produce_plan(c, &j, to));
}

bool cli_compile(Ctx *c, const CliOptions *o) {
    Job j = {.o = *o, .times = NEW(c->a, PassTimes), .since = cli_now_ms()};
    if (o->emit == OUT_HTML) j.o.reports = REPORT_ALL;
    c->thresholds = o->thresholds;
    switch (o->action) {
    case ACT_COMPILE:
        return o->bisect ? cli_bisect(c, o) : compile(c, &j);
    case ACT_CHECK:
        return check(c, &j);
    case ACT_OPT:
        return optimise(c, &j);
    case ACT_RUN:
        return cli_interpret(c, o);
    case ACT_COMPARE:
        return cli_compare(c, o);
    case ACT_FMT:
        return cli_fmt(c, o);
    case ACT_LSP:
        return cli_lsp(c, o);
    default:
        return false; /* nothing to compile */
    }
}
