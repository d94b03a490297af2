#include "frontend/interpret.h"

#include <string.h>

#include "frontend/interp_dataset.h"
#include "runtime/trainer/init.h"
#include "runtime/trainer/schedule.h"

enum { FIRST_SEED = 0 }; /* a trainer's, where none is said (GNNC_OPTION_MAP) */

bool interpret_fail(Ctx *c, const Func *f, const char *why) {
    diag_add(c, DIAG_E0519, (Span){0}, "@%s: %s", f->name, why);
    return false;
}

/* What is interpreted, in words for reports: the IR or a plan, and after which pass. */
const char *interpret_what(Arena *a, const CliProduct *p) {
    const char *what = !p->plan ? "the graph IR"
                       : p->plan->scheduled_for
                           ? arena_printf(a, "the kernels for %s", p->plan->scheduled_for)
                           : "the plan";
    return p->after ? arena_printf(a, "%s after %s", what, p->after)
                    : arena_printf(a, "%s as it stands", what);
}

/* ---- what it starts from -------------------------------------------------------------------- */
/* Sets a parameter to the value that training of the compiled program starts from. */
static void set_first_value(Interp *in, const Module *m, const Var *v) {
    const rt_var var = {
        .path = v->path, .init = (rt_init_kind)v->init.kind, .a = v->init.a, .b = v->init.b};
    rt_var_shape shape = {.count = interp_count(in, &v->type)};
    if (v->init.fan_in) shape.fan_in = interp_expr(in, v->init.fan_in);
    if (v->init.fan_out) shape.fan_out = interp_expr(in, v->init.fan_out);
    double *x = NEWN(m->a, double, (size_t)shape.count + 1);
    for (int64_t i = 0; i < shape.count; i++)
        x[i] = (double)(float)rt_init_value(&var, &shape, FIRST_SEED, i);
    interp_set_var(in, v, x);
}

/* The learning-rate schedule of a recipe, as the runtime has it. */
static RtSchedule schedule_of(const Recipe *r) {
    return (RtSchedule){.kind = (rt_sched_kind)r->sched,
                        .lr = r->lr,
                        .gamma = r->gamma,
                        .min_lr = r->min_lr,
                        .warmup_epochs = r->warmup_epochs,
                        .step_epochs = r->step_epochs,
                        .patience = r->patience,
                        .epochs = r->epochs};
}

/* Sets what depends on the step: random numbers, learning rate and weight decay. A step sees the
 * whole graph, so it is an epoch. */
static void set_step(Interpreted *x, int step) {
    const RtSchedule s = schedule_of(&x->m->recipe);
    const RtPlateau plateau = {.lr = s.lr};
    interp_set_seed(x->in, FIRST_SEED, (uint64_t)step);
    interp_set_input(x->in, "lr", rt_schedule_lr(&s, &plateau, step));
    interp_set_input(x->in, "weight_decay", x->m->recipe.weight_decay);
    interp_set_input(x->in, "step", step + 1);
}

/* ---- phases --------------------------------------------------------------------------------- */
/* The number of a plan's phase of that name; -1: there is none. */
static int phase_of(const Plan *p, const char *name) {
    for (int i = 0; i < p->phases.n; i++)
        if (!strcmp(p->phases.v[i]->name, name)) return i;
    return -1;
}

/* Runs a function, in the interpreter of the IR or that of the plan's loops. False after a
 * diagnostic. */
static bool run(Interpreted *x, Func *f) {
    ctx_poll(x->c);
    if (!x->loops) return interp_run(x->in, f) || interpret_fail(x->c, f, interp_error(x->in));
    int phase = phase_of(x->plan, f->name);
    if (phase < 0) return interpret_fail(x->c, f, "the plan has no such phase");
    return loop_run_phase(x->loops, phase) || interpret_fail(x->c, f, loop_run_error(x->loops));
}

static bool run_if_there(Interpreted *x, Phase phase) {
    Func *f = func_of(x->m, phase);
    return !f || run(x, f);
}

/* Runs the phase f in this step. After training, what @encode and @ends saved is computed anew
 * before another phase reads it. False after a diagnostic. */
bool interpret_phase(Interpreted *x, Func *f, int step) {
    bool trains = f->phase == PHASE_TRAIN;
    set_step(x, step);
    if (x->stale && !trains) {
        x->stale = false;
        if (!run_if_there(x, PHASE_ENCODE) || !run_if_there(x, PHASE_ENDS)) return false;
    }
    x->stale |= trains;
    return run(x, f);
}

/* What op reads that only the runtime makes, in words; NULL: nothing. */
static const char *ranked_by(const Op *op) {
    if (op->kind == OP_INPUT && op->type.rank)
        return "another phase's rows, which the runtime gives";
    for (int i = 0; i < op->type.rank; i++) {
        const Space *s = op->type.dim[i];
        if (s->kind == SP_EDGE && s->rel > REL_POSITIVES)
            return "queries of a ranking, which the runtime draws";
    }
    return NULL;
}

/* Why f cannot be interpreted; "": nobody asks for it by itself, as it runs before or within
 * others. NULL: it can. */
const char *interpret_lacks(const Module *m, const Func *f) {
    bool aside = phase_saves(f->phase) || f->phase == PHASE_REFRESH || f->phase == PHASE_UPDATE;
    const char *why = f->body || aside || f->phase == PHASE_NONE ? "" : NULL;
    for (const Op *op = f->first; op && !why; op = op->next) {
        const char *of = ranked_by(op);
        if (of) why = arena_printf(m->a, "not interpreted: it reads %s", of);
    }
    return why;
}

/* ---- values --------------------------------------------------------------------------------- */
/* The values of an output of the phase f, which was run; *n: how many. NULL: it has no such
 * output. */
const double *interpret_output(const Interpreted *x, const Func *f, const char *name, int64_t *n) {
    if (x->loops) return loop_run_output(x->loops, phase_of(x->plan, f->name), name, n);
    const OpTensor *t = interp_output(x->in, name);
    if (t) *n = t->count;
    return t ? t->v : NULL;
}

/* The values of a parameter or state, in the order in which it is written; *n: how many. NULL:
 * the loops have none. */
const double *interpret_var(const Interpreted *x, const Var *v, int64_t *n) {
    *n = interp_count(x->in, &v->type);
    if (!x->loops) return interp_var(x->in, v);
    const double *stored = loop_run_var(x->loops, v);
    double *written = NEWN(x->m->a, double, (size_t)*n + 1);
    if (stored) interp_as_written(x->in, v, stored, written);
    return stored ? written : NULL;
}

/* ---- all of it ------------------------------------------------------------------------------ */
/* If a plan was given, also sets up the interpreter of its kernels; both interpreters share the
 * inputs that x->in holds. */
static bool begin_plan(Interpreted *x) {
    if (!x->plan) return true;
    if (!(x->plan->flags & PLAN_STEPS)) {
        diag_add(x->c, DIAG_E0519, (Span){0},
                 "the plan has no steps yet: it was stopped before 'lower-kernels'");
        return false;
    }
    x->loops = loop_run_new(x->c, x->plan, x->in);
    return true;
}

/* Reads the data and runs the phases that come before all others. exact: in f64. False after a
 * diagnostic. */
bool interpret_begin(Ctx *c, const CliProduct *p, const char *data, bool exact, Interpreted *to) {
    struct RtDataset *d = cli_data(c, p->m, data);
    *to = (Interpreted){.c = c, .m = p->m, .plan = p->plan};
    if (!d) return false;
    to->in = interp_new(c, p->m);
    interp_set_exact(to->in, exact);
    if (!interp_dataset(to->in, p->m, d)) {
        diag_add(c, DIAG_E0005, (Span){0}, "--data: %s lacks nodes of the model", data);
        return false;
    }
    for (int i = 0; i < p->m->options.n; i++) {
        const ModelOption *o = &p->m->options.v[i];
        if (o->dim)
            interp_set_size(to->in, o->dim, (int64_t)o->first);
        else
            interp_set_input(to->in, o->input, o->first);
    }
    for (int i = 0; i < p->m->vars.n; i++) set_first_value(to->in, p->m, p->m->vars.v[i]);
    set_step(to, 0);
    bool ok = run_if_there(to, PHASE_LOAD) && run_if_there(to, PHASE_REFRESH) &&
              run_if_there(to, PHASE_ENCODE) && run_if_there(to, PHASE_ENDS);
    if (!ok) return false;
    interp_batch(to->in, p->m);
    return begin_plan(to) &&
           (!to->loops || (run_if_there(to, PHASE_LOAD) && run_if_there(to, PHASE_REFRESH) &&
                           run_if_there(to, PHASE_ENCODE) && run_if_there(to, PHASE_ENDS)));
}
