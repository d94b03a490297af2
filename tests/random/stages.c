#include "stages.h"

#include <math.h>
#include <string.h>

#include "codegen/plan_passes/plan_pass.h"
#include "frontend/fe.h"
#include "passes/autodiff.h"
#include "runtime/data/safetensors.h"
#include "codegen/loop/loop_interp.h"

enum { SEED = 7 };
static const double learning_rate = 0.0625;

/* ---- values of parameters ------------------------------------------------------------------ */

/* Small, of both signs, exact in f32; states, which may be variances, are positive. */
static double first_value(const Var *v, uint32_t which, int64_t i) {
    double u = (double)rt_uniform(rt_stream_key(SEED, 1, which), (uint32_t)i, 0);
    double step = floor(u * 64) / 64;
    return v->kind == VAR_STATE ? 0.25 + step : step - 0.5;
}

static int64_t var_count(Interp *in, const Var *v) {
    int64_t n = 1;
    for (int i = 0; i < v->type.rank; i++) n *= interp_size(in, v->type.dim[i]);
    return n;
}

/* By the variable's path, so that one has the same values before and after passes; optimizer
 * slots start as they do in a program. */
static double *first_values(Interp *in, const Module *m, const Var *v, int64_t *n) {
    uint32_t which = 1;
    for (const char *s = v->path; *s; s++) which = which * 31 + (unsigned char)*s;
    *n = var_count(in, v);
    double *x = NEWN(m->a, double, (size_t)*n + 1);
    for (int64_t i = 0; i < *n; i++)
        x[i] = v->kind < VAR_SLOT ? first_value(v, which, i) : v->init.a;
    return x;
}

/* ---- modules and interpreters -------------------------------------------------------------- */

Module *check_model(Ctx *c, const Check *k) {
    static const char *const dirs[] = {"models"};
    FeOptions fe = {.dirs = dirs, .n_dirs = 1};
    Module *m = fe_compile(c, k->model, &fe);
    return m && !c->n_errors && module_verify(c, m, "the front end") ? m : NULL;
}

Module *check_reference(Ctx *c, const Check *k, bool trains) {
    PassOptions o = {.verify_each = true};
    PassCtx p = {.ctx = c, .a = c->a};
    Module *m = check_model(c, k);
    Func *train = m ? func_of(m, PHASE_TRAIN) : NULL;
    if (!train) return m;
    bool ok = trains ? pass_run_all(c, m, "loss-scale,autodiff,optimizer", &o)
                     : pass_autodiff_func(&p, m, train);
    return ok ? m : NULL;
}

static bool run_if_there(Interp *in, const Module *m, Phase phase) {
    Func *f = func_of(m, phase);
    return !f || interp_run(in, f);
}

static void at_step(Interp *in, int step) {
    interp_set_seed(in, SEED, (uint64_t)step);
    interp_set_input(in, "step", step + 1);
}

/* @refresh computes what the passes keep of parameters. */
Interp *check_interp(Ctx *c, const Check *k, Module *m, bool exact, uint64_t noise) {
    Interp *in = interp_new(c, m);
    int64_t n;
    interp_set_exact(in, exact);
    interp_set_noise(in, noise);
    if (!interp_dataset(in, m, k->set)) {
        diag_add(c, DIAG_E0003, (Span){0}, "%s lacks what the model declares", k->data);
        return NULL;
    }
    for (int i = 0; i < m->vars.n; i++)
        interp_set_var(in, m->vars.v[i], first_values(in, m, m->vars.v[i], &n));
    double warmup = fmax(1, (double)m->recipe.warmup_epochs); /* a trainer's first epoch */
    interp_set_input(in, "lr", learning_rate / warmup);
    interp_set_input(in, "weight_decay", m->recipe.weight_decay);
    at_step(in, 0);
    bool ok = run_if_there(in, m, PHASE_LOAD) && run_if_there(in, m, PHASE_REFRESH) &&
              run_if_there(in, m, PHASE_ENCODE) && run_if_there(in, m, PHASE_ENDS);
    if (ok)
        interp_batch(in, m);
    else
        diag_add(c, DIAG_E0003, (Span){0}, "interpreter: %s", interp_error(in));
    return ok ? in : NULL;
}

/* Queries of a ranking and their answers, and rows that @predict gave: the runtime's alone. */
static bool is_given(const Op *op) {
    if (op->kind == OP_INPUT && op->type.rank) return false;
    for (int i = 0; i < op->type.rank; i++) {
        const Space *s = op->type.dim[i];
        if (s->kind == SP_EDGE && s->rel > REL_POSITIVES) return false;
    }
    return true;
}

/* The links that a program scores are the runtime's: which, it draws. */
static bool scores_links(const Func *f) {
    for (const Op *op = f->first; op; op = op->next)
        for (int i = 0; i < op->type.rank; i++)
            if (op->type.dim[i]->kind == SP_EDGE && rel_is_drawn(op->type.dim[i]->rel)) return true;
    return false;
}

/* Not what other phases call or read, nor what the interpreter has no rows for. */
static bool is_compared(const Func *f) {
    if (f->body || phase_saves(f->phase)) return false;
    if (f->phase == PHASE_REFRESH || f->phase == PHASE_UPDATE) return false;
    for (const Op *op = f->first; op; op = op->next)
        if (!is_given(op)) return false;
    return true;
}

int check_differs(int level, const char *what, const char *why) {
    printf("-O%d %s: %s\n", level, what, why);
    return DIFFER;
}

/* ---- graph and loops -------- */

/* One pipeline on one variant.  `want` and `rounded` interpret the model as written. */
typedef struct {
    Ctx *c;
    const Check *k;
    int level;
    unsigned variant;
    const char *stage;
    Module *seen, *m;
    Interp *want, *rounded, *in;
    LoopRun *loops; /* or NULL: the graph IR of m itself */
    const Plan *plan;
} Run;

static int differs(const Run *r, const Func *f, const char *why) {
    const char *v = r->variant ? arena_printf(r->c->a, "variant %u ", r->variant) : "";
    return check_differs(r->level, arena_printf(r->c->a, "%s %s%s", r->stage, v, f->name), why);
}

static int phase_of(const Plan *p, const char *name) {
    for (int i = 0; i < p->phases.n; i++)
        if (!strcmp(p->phases.v[i]->name, name)) return i;
    return -1;
}

static const double *got_output(const Run *r, const Func *f, const char *name, int64_t *n) {
    if (r->loops) return loop_run_output(r->loops, phase_of(r->plan, f->name), name, n);
    const OpTensor *t = interp_output(r->in, name);
    if (!t) return NULL;
    *n = t->count;
    return t->v;
}

static double scale_of(int64_t n, const double *v) {
    double most = 1;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(v[i]) && fabs(v[i]) > most) most = fabs(v[i]);
    return most;
}

/* How far rounding to f32 moves the elements of the model as written: where that is far, an
 * order of summing may move them too (a rank, a floor, a comparison of equals). */
static double spread(int64_t n, const double *x, const double *y) {
    double most = 0;
    for (int64_t i = 0; x && y && i < n; i++) {
        if (isnan(x[i]) != isnan(y[i])) return INFINITY;
        if (isfinite(x[i]) && isfinite(y[i])) most = fmax(most, fabs(x[i] - y[i]));
    }
    return most;
}

/* Both sides compute in double, so little is forgiven: constants are folded in f32. */
static int64_t first_far(int64_t n, const double *got, const double *want, double tol, bool lost) {
    for (int64_t i = 0; i < n; i++) {
        if (isnan(want[i]) ? isnan(got[i]) : got[i] == want[i]) continue;
        if (lost && (isnan(want[i]) || isnan(got[i]))) continue;
        if (!(fabs(got[i] - want[i]) <= tol)) return i;
    }
    return -1;
}

static const char *far_text(const Run *r, const char *name, int64_t n, const double *got,
                            const double *want, const double *rounded, bool lost) {
    double tol = 1e-5 * scale_of(n, want);
    if (first_far(n, got, want, tol, lost) < 0) return NULL;
    int64_t i = first_far(n, got, want, tol + 16 * spread(n, want, rounded), lost);
    if (i < 0) return NULL;
    return arena_printf(r->c->a, "%s[%lld] is %.9g, not %.9g", name, (long long)i, got[i], want[i]);
}

/* A parameter whose reads are dead has no gradient once they are removed. */
static bool is_zero(const OpTensor *t) {
    for (int64_t i = 0; i < t->count; i++)
        if (t->v[i] != 0) return false;
    return true;
}

static const char *compare_output(const Run *r, const Func *f, const Op *out, bool lost) {
    int64_t n = 0;
    const OpTensor *want = interp_output(r->want, out->name);
    const OpTensor *rounded = interp_output(r->rounded, out->name);
    const double *got = got_output(r, f, out->name, &n);
    if (!got && out->use.role == OUT_GRAD && is_zero(want)) return NULL;
    if (!got || n != want->count)
        return arena_printf(r->c->a, "output %s has %lld elements, not %lld", out->name,
                            got ? (long long)n : -1LL, (long long)want->count);
    lost &= out->use.role == OUT_GRAD;
    return far_text(r, out->name, n, got, want->v, rounded->v, lost);
}

static const char *compare_variable(const Run *r, const Var *v, bool lost) {
    const Var *there = var_find(r->m, v->path);
    int64_t n = var_count(r->want, v);
    if (!there) return NULL; /* its reads were dead */
    const double *got = interp_var(r->in, there);
    if (r->loops) {
        const double *stored = loop_run_var(r->loops, there);
        double *written = NEWN(r->c->a, double, (size_t)n + 1);
        if (stored) interp_as_written(r->in, there, stored, written);
        got = stored ? written : NULL;
    }
    if (!got) return arena_printf(r->c->a, "variable %s is gone", v->path);
    return far_text(r, v->path, n, got, interp_var(r->want, v), interp_var(r->rounded, v), lost);
}

static const char *run_phase(const Run *r, Func *f) {
    if (!interp_run(r->want, f)) return interp_error(r->want);
    if (!interp_run(r->rounded, f)) return interp_error(r->rounded);
    Func *there = func_find(r->m, f->name);
    if (!there) return "the phase is gone";
    if (!r->loops) return interp_run(r->in, there) ? NULL : interp_error(r->in);
    return loop_run_phase(r->loops, phase_of(r->plan, f->name)) ? NULL : loop_run_error(r->loops);
}

static const char *compare_phase(const Run *r, Func *f) {
    const char *why = run_phase(r, f);
    bool lost = !why && cpu_exec_is_lost(r->want, f);
    for (const Op *op = f->first; op && !why; op = op->next)
        if (op->kind == OP_OUTPUT && op->in[0]->type.layout == LAYOUT_DENSE)
            why = compare_output(r, f, op, lost);
        else if (op->kind == OP_ASSIGN && op->var->kind < VAR_KEPT)
            why = compare_variable(r, op->var, lost);
    return why;
}

/* The interpreter takes the whole graph for the batch.  Of fewer hops than the model reads it is
 * none: nodes of the last one have in-edges there. */
static bool lacks_hops(const Ctx *c) {
    for (int i = 0; i < c->diags.n; i++) {
        const Diag *d = &c->diags.v[i];
        if (d->code == DIAG_E0306 && d->sev == SEV_WARNING && strstr(d->text, "hops away"))
            return true;
    }
    return false;
}

/* Parameters that a step assigns are another model's: @train is the last one. */
static int compare_phases(const Run *r) {
    for (int last = 0; last < 2; last++)
        for (int i = 0; i < r->seen->funcs.n; i++) {
            Func *f = r->seen->funcs.v[i];
            if (!is_compared(f) || (f->phase == PHASE_TRAIN) != last) continue;
            if (last && lacks_hops(r->c)) continue;
            const char *why = compare_phase(r, f);
            if (why) return differs(r, f, why);
        }
    return AGREE;
}

static bool fresh_interpreters(Run *r) {
    r->want = check_interp(r->c, r->k, r->seen, true, 0);
    r->rounded = check_interp(r->c, r->k, r->seen, false, 0);
    r->in = check_interp(r->c, r->k, r->m, true, 0);
    return r->want && r->rounded && r->in;
}

static int check_graph(Run *r) {
    r->stage = "graph";
    r->loops = NULL;
    return fresh_interpreters(r) ? compare_phases(r) : INVALID;
}

/* What other phases read: of the data, of the parameters, of links. */
static bool loops_saved(Run *r) {
    static const char *const phases[] = {"load", "refresh", "encode"};
    for (int i = 0; i < 3; i++) {
        int phase = phase_of(r->plan, phases[i]);
        if (phase >= 0 && !loop_run_phase(r->loops, phase)) return false;
    }
    return true;
}

static int check_loops(Run *r) {
    r->stage = "loops";
    Plan *p = plan_of_module(r->c, r->m, NULL, SPMM_OWN, NULL);
    if (!p || !plan_verify(r->c, p)) return check_differs(r->level, "loops", "there is no plan");
    if (!fresh_interpreters(r)) return INVALID;
    r->plan = p;
    r->loops = loop_run_new(r->c, p, r->in);
    if (!loops_saved(r)) return check_differs(r->level, "loops load", loop_run_error(r->loops));
    return compare_phases(r);
}

static int check_variant(Run *r, const char *passes, PassChoices *choices, bool grads) {
    PassOptions o = {.verify_each = true, .choices = choices};
    r->seen = check_reference(r->c, r->k, !grads);
    r->m = check_model(r->c, r->k);
    if (!r->seen || !r->m) return INVALID;
    if (!pass_run_all(r->c, r->m, passes, &o))
        return check_differs(r->level, "graph", "a pass fails");
    int status = r->k->stages & STAGE_GRAPH ? check_graph(r) : AGREE;
    return status == AGREE && r->k->stages & STAGE_LOOPS ? check_loops(r) : status;
}

int check_stages(Ctx *c, const Check *k, int level, bool grads) {
    PassChoices choices = {.n = 0};
    const char *passes = k->passes ? k->passes : pass_pipeline_named(level, grads);
    if (!(k->stages & (STAGE_GRAPH | STAGE_LOOPS))) return AGREE;
    int status = AGREE;
    for (unsigned v = 0; status == AGREE && (v == 0 || v < 1u << choices.n); v++) {
        Run r = {.c = c, .k = k, .level = level, .variant = v};
        choices.picked = v;
        status = check_variant(&r, passes, &choices, grads);
        choices.closed = true;
    }
    return status;
}

/* ---- code -------- */

/* A parameter that nothing reads is in no program. */
static bool start(CpuExec *x, const Check *k, Module *seen, Interp *in) {
    int64_t n;
    if (!cpu_exec_load(x, k->data, SEED, learning_rate)) return false;
    for (int i = 0; i < seen->vars.n; i++) {
        const Var *v = seen->vars.v[i];
        const double *first = first_values(in, seen, v, &n);
        if (v->kind < VAR_SLOT) cpu_exec_set(x, v->path, n, first);
    }
    return true;
}

static int check_phase(Ctx *c, CpuExec *x, const CpuOracle *o, Func *f, int level) {
    StrBuf why = sb_new(c->a);
    return cpu_exec_agrees(x, o, f, &why) ? AGREE : check_differs(level, "code", why.s);
}

static int check_steps(Ctx *c, const Check *k, CpuExec *x, const CpuOracle *o, Func *train,
                       int level) {
    int status = AGREE;
    bool lost = false;
    for (int step = 0; step < k->steps && status == AGREE && !lost; step++) {
        at_step(o->rounded, step);
        at_step(o->exact, step);
        for (int i = 0; i < CPU_NOISY; i++) at_step(o->noisy[i], step);
        status = check_phase(c, x, o, train, level);
        lost = cpu_exec_is_lost(o->rounded, train);
    }
    return status;
}

int check_program(Ctx *c, const Check *k, CpuExec *x, const CpuOracle *o, Module *seen, int level) {
    if (!start(x, k, seen, o->rounded)) return check_differs(level, "code", cpu_exec_error(x));
    int status = AGREE;
    Func *train = func_of(seen, PHASE_TRAIN);
    for (int i = 0; i < seen->funcs.n && status == AGREE; i++) {
        Func *f = seen->funcs.v[i];
        if (is_compared(f) && f != train && !scores_links(f) &&
            !module_runs_on_batches(seen, f->phase))
            status = check_phase(c, x, o, f, level);
    }
    bool steps = train && !scores_links(train) && !module_runs_on_batches(seen, PHASE_TRAIN) &&
                 status == AGREE;
    return steps ? check_steps(c, k, x, o, train, level) : status;
}

/* ---- values with the weights of a file ------------------------------------------------------- */

static bool set_weights(Interp *in, const Module *m, const RtTensors *t) {
    for (int i = 0; i < m->vars.n; i++) {
        const Var *v = m->vars.v[i];
        const RtTensor *x = rt_tensors_find(t, v->path);
        int64_t n = var_count(in, v);
        if (!x) continue; /* nothing reads it, or it is a slot */
        double *values = NEWN(m->a, double, (size_t)n + 1);
        for (int64_t k = 0; k < n; k++) values[k] = rt_array_f64(&x->a, k);
        interp_set_var(in, v, values);
    }
    return run_if_there(in, m, PHASE_LOAD);
}

static void print_scalars(Interp *in, const Func *f) {
    for (const Op *op = f->first; op; op = op->next) {
        const OpTensor *t = op->kind == OP_OUTPUT ? interp_output(in, op->name) : NULL;
        if (t && t->count == 1 && op->use.role != OUT_GRAD)
            printf("%s %s %.9g\n", f->name, op->name, t->v[0]);
    }
}

static bool print_phase(Interp *in, const Module *m, Phase phase) {
    Func *f = func_of(m, phase);
    if (!f || module_runs_on_batches(m, phase) || !is_compared(f) || scores_links(f)) return true;
    interp_set_seed(in, 0, 0);
    if (!interp_run(in, f)) return false;
    print_scalars(in, f);
    return true;
}

int check_print(Ctx *c, const Check *k) {
    RtPool pool = {.from = rt_alloc_default()};
    RtTensors t = {0};
    RtError err = {""};
    Module *m = check_model(c, k);
    Interp *in = m ? check_interp(c, k, m, false, 0) : NULL;
    if (!in) return INVALID;
    bool ok = rt_safetensors_open(&pool, k->weights, &t, &err) == GNNC_OK;
    if (!ok) fprintf(stderr, "%s\n", err.text);
    ok = ok && set_weights(in, m, &t) && print_phase(in, m, PHASE_EVAL) &&
         print_phase(in, m, PHASE_TRAIN);
    rt_pool_free(&pool);
    return ok ? AGREE : INVALID;
}
