/* The stages of a compile: file -> module -> passes -> plan, for the targets that options choose.
 */
#include "codegen/plan_passes/plan_pass.h"
#include "codegen/loop_passes/loops.h"
#include "frontend/cli/cli_job.h"
#include "ir/text.h"
#include "passes/threshold.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/data/io.h"

/* A new compile with these options. */
CliJob cli_job(Ctx *c, const CliOptions *o) {
    CliJob j = {.o = *o, .times = NEW(c->a, PassTimes), .since = cli_now_ms()};
    if (o->emit == OUT_HTML) j.o.reports = REPORT_ALL;
    c->thresholds = o->thresholds;
    return j;
}

/* What the front end needs of the options. The library of layers is searched last. */
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
                       .settable = o->settable,
                       .embed = o->embed};
}

static Module *parse_ir(Ctx *c, const char *path) {
    uint32_t file = ctx_add_file(c, path, (Span){0});
    return file == UINT32_MAX ? NULL : module_parse(c, file);
}

/* Reads a module: a model, or the text of one (.gir). NULL after a diagnostic. */
Module *cli_read_module(Ctx *c, CliJob *j, const char *path) {
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

/* Those of the names, "fuse,dce", that are passes of this level. NULL: there are none; "" for
 * the graph, if others are named. */
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

/* Runs the passes over the graph: those of --passes, else those that the module has still to
 * run. False after a diagnostic. */
bool cli_run_passes(Ctx *c, CliJob *j, Module *m) {
    double start = cli_now_ms();
    PassOptions *p = &j->o.pass;
    p->dump = c->outside.log;
    p->progress = &j->progress;
    j->progress = (PassProgress){0};
    j->effects = report_count_effects(m);
    if (j->o.reports & REPORT_OF_PASSES) {
        j->remarks = sb_new(c->a);
        p->remarks = &j->remarks;
        p->record = NEW(c->a, PassRecord);
        p->record_diffs = j->o.emit == OUT_HTML;
    }
    if (j->o.sampled_boundary && !j->o.infer) m->recipe.sampled_boundary = j->o.sampled_boundary;
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

/* Writes the sizes of the data of --specialize into the module. False after a diagnostic. */
bool cli_specialize_sizes(Ctx *c, CliJob *j, Module *m) {
    if (!j->o.data) return true;
    j->sizes = cli_specialize(c, m, j->o.data);
    j->n_sizes = m->syms.n;
    return j->sizes && module_verify(c, m, "--specialize");
}

/* The target whose kernels are emitted as one file: the host's, if it has any. NULL after a
 * diagnostic: it has no such text. */
const Target *cli_choose_target(Ctx *c, const CliJob *j) {
    const Target *t = j->on.host ? j->on.host : j->on.device;
    if (t == &target_cuda && (j->o.emit == OUT_LLVM || j->o.emit == OUT_ASM)) {
        diag_add(c, DIAG_E0513, (Span){0},
                 "the cuda target has no %s; --emit=cuda prints its source",
                 j->o.emit == OUT_ASM ? "assembly" : "LLVM IR");
        return NULL;
    }
    return t;
}

/* Chooses what to compile for, and tells if "auto" finds no CUDA. */
void cli_choose_targets(Ctx *c, CliJob *j) {
    bool program = cli_makes_program(&j->o);
    bool choose = strcmp(j->o.target, "auto") == 0;
    j->on = cli_targets(c, &j->o);
    if (program && choose && !j->on.device)
        ctx_log(c, "gnnc: no CUDA Toolkit is used here: compiling for the cpu alone\n");
    else if (choose && j->o.verbose)
        ctx_log(c, "gnnc: target %s\n", j->on.device ? "cpu,cuda" : "cpu");
}

/* The options that a program was made with, as it tells them itself. */
static const char *options_text(Ctx *c, const CliJob *j) {
    const CliOptions *o = &j->o;
    StrBuf b = sb_new(c->a);
    const char *host = j->on.host ? j->on.host->name : "";
    const Target *device = j->on.device;
    sb_printf(&b, "-O%d --target=%s%s%s", o->opt_level, host, *host && device ? "," : "",
              device ? device->name : "");
    if (*host) sb_printf(&b, " --march=%s", o->march ? o->march : "native");
    if (device && o->cuda_arch) sb_printf(&b, " --cuda-arch=%s", o->cuda_arch);
    for (int i = 0; i < o->defines.n; i++) sb_printf(&b, " -D %s", o->defines.v[i]);
    if (o->precision_auto)
        sb_puts(&b, " --precision=auto");
    else if (dtype_bytes(o->pass.precision) == 2)
        sb_printf(&b, " --precision=%s", dtype_name(o->pass.precision));
    if (o->tf32) sb_puts(&b, " --precision=tf32");
    if (device && o->spmm) sb_printf(&b, " --spmm=%s", o->spmm == SPMM_AUTO ? "auto" : "cusparse");
    if (o->sampled_boundary) {
        sb_puts(&b, " --sampled-boundary=");
        text_real(&b, o->sampled_boundary);
    }
    if (o->grads) sb_puts(&b, " --grads");
    if (o->infer) sb_puts(&b, o->draw ? " --infer --draw" : " --infer");
    if (o->explain) sb_puts(&b, " --explain");
    if (o->infer && o->embed) sb_printf(&b, " --embed=%s", o->embed);
    if (o->settable) sb_printf(&b, " --settable=%s", o->settable);
    if (o->passes) sb_printf(&b, " --passes=%s", o->passes);
    if (o->pass.disable) sb_printf(&b, " --disable-pass=%s", o->pass.disable);
    pass_thresholds_put(&b, c);
    if (o->data) sb_puts(&b, " --specialize");
    return b.s;
}

/* Keeps in the plan what its kernels' passes need of the options, as these run when code is
 * made. */
void cli_keep_options(Ctx *c, const CliJob *j, Plan *p) {
    PassOptions *o = NEW(c->a, PassOptions);
    *o = j->o.pass;
    o->remarks = NULL; /* they have been told when code is made */
    o->times = o->time_passes ? j->times : NULL;
    p->loop_passes = passes_named(c, j->o.passes, OF_LOOPS);
    p->loop_options = o;
    p->n_optional_runs = j->progress.n_spare;
}

bool cli_shares_rows(const CliJob *j, const Module *m) {
    const Sampling *s = &m->recipe.sample;
    return (j->o.mpi || j->o.parts) && !s->batch && !s->train_links && !s->serve;
}

/* Checks that rows of other parts can be sampled, where that is asked for. False after a
 * diagnostic. */
static bool can_sample_boundary(Ctx *c, const CliJob *j, const Module *m, const char *device) {
    double p = m->recipe.sampled_boundary;
    const char *why = p == 0 ? NULL
                      : !cli_shares_rows(j, m)
                          ? "it is for programs whose processes share the rows of data in parts"
                      : device ? "it is for the cpu alone (--target=cpu)"
                               : NULL;
    if (why) diag_add(c, DIAG_E0513, (Span){0}, "--sampled-boundary: %s", why);
    return !why;
}

Plan *cli_make_plan(Ctx *c, CliJob *j, Module *m, const char *device) {
    double start = cli_now_ms();
    if (!(m->has & IR_TYPED)) {
        diag_add(c, DIAG_E0510, (Span){0},
                 "a plan needs typed operations (run shape-propagation first)");
        return NULL;
    }
    if (!can_sample_boundary(c, j, m, device)) return NULL;
    Plan *p = plan_new(m, device, j->o.spmm);
    p->partitioned = cli_shares_rows(j, m);
    const char *names = passes_named(c, j->o.passes, OF_PLAN);
    j->o.pass.progress = &j->progress;
    if (!plan_run_passes(c, p, names ? names : plan_pipeline(p), &j->o.pass)) return NULL;
    if (!plan_verify(c, p)) return NULL;
    p->options = options_text(c, j);
    p->c_name = j->o.name;
    p->tf32 = j->o.tf32;
    p->with_host = j->on.host != NULL;
    cli_keep_options(c, j, p);
    cli_stage_time(c, &j->o, "plan", start);
    return p;
}

bool cli_is_plan_file(const char *path) {
    return rt_ends_with(path, ".plan") || rt_ends_with(path, ".loops");
}

bool cli_is_plan(const CliJob *j) {
    return cli_is_plan_file(j->o.files.v[0]);
}

/* Parses the text of a plan and runs the passes on it that --passes names. NULL after a
 * diagnostic. */
Plan *cli_parse_plan(Ctx *c, CliJob *j, uint32_t file) {
    double start = cli_now_ms();
    Plan *p = plan_parse(c, file);
    cli_stage_time(c, &j->o, "the plan's text", start);
    if (!p || c->n_errors || !module_verify(c, p->m, "the plan's text") || !plan_verify(c, p))
        return NULL;
    j->o.pass.dump = c->outside.log;
    j->o.pass.progress = &j->progress;
    if (j->o.reports & REPORT_OF_PASSES || j->o.action == ACT_OPT) {
        j->remarks = sb_new(c->a);
        j->o.pass.remarks = &j->remarks;
        j->o.pass.record = NEW(c->a, PassRecord);
    }
    j->effects = report_count_effects(p->m);
    const char *graph = passes_named(c, j->o.passes, OF_GRAPH); /* the driver refuses these */
    const char *names = graph && *graph ? graph : passes_named(c, j->o.passes, OF_PLAN);
    if (p->scheduled_for && names && names != graph) {
        diag_add(c, DIAG_E0513, (Span){0},
                 "the kernels of this text are arranged for %s already, and '%s' is for plans "
                 "whose kernels are not",
                 p->scheduled_for, names);
        return NULL;
    }
    bool goes_on = !(p->flags & PLAN_STEPS) && j->o.action == ACT_COMPILE;
    const char *rest = goes_on ? plan_pending(p) : "";
    bool ok = plan_run_passes(c, p, names ? names : rest, &j->o.pass) && plan_verify(c, p);
    cli_keep_options(c, j, p);
    return ok ? p : NULL;
}

/* Reads a file with the text of a plan, alone or with its kernels. NULL after a diagnostic. */
Plan *cli_read_plan(Ctx *c, CliJob *j, const char *path) {
    uint32_t file = ctx_add_file(c, path, (Span){0});
    if (file == UINT32_MAX) return NULL;
    if (!rt_ends_with(path, ".loops") || plan_in_text(c, file)) return cli_parse_plan(c, j, file);
    diag_add(c, DIAG_E0542, span_of(file, 1, 1, 1, 1),
             "there is no plan that runs these kernels: --emit=loops writes both");
    return NULL;
}

bool cli_find_lives(Ctx *c, Plan *p) {
    return p->flags & PLAN_LIVES || plan_run_passes(c, p, "lifetimes", NULL);
}

/* How often the pass stands in the list up to `end`, where it stands last. */
static int nth_of(const char *list, const char *pass, const char *end) {
    int nth = 0;
    for (const char *s = list; s < end; s += *s == ',') {
        size_t n = strcspn(s, ",");
        nth += n == strlen(pass) && !memcmp(s, pass, n);
        s += n;
    }
    return nth;
}

/* The list of passes over loops up to the one of --stop-after. NULL: it is none of them. */
static const char *loop_passes_until(Ctx *c, const CliJob *j, const Plan *p, const Target *t) {
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

/* Sets the passes over loops to run up to that of --stop-after. False after a diagnostic: it
 * does not run. */
bool cli_stop_in_loops(Ctx *c, const CliJob *j, Plan *p, const Target *t) {
    p->loop_passes = loop_passes_until(c, j, p, t);
    if (p->loop_passes) return true;
    diag_add(c, DIAG_E0511, (Span){0}, "--stop-after=%s: no such pass ran", j->o.pass.stop_after);
    return false;
}
