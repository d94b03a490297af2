/* One .gnn model on one data directory: the reference interpreter against compiled code.
 *
 *     build/tests/random/model_check MODEL.gnn DATA [-O0] [-O2] [--steps N]
 *
 * Compares every output of every phase, and of @train the gradient of every parameter too,
 * on one and on three threads (tests/cpu_executor.h); then N whole training steps with the
 * recipe's optimizer, parameters and all.  Exit status: 0 they agree; 1 they differ, with a
 * line `-O2 train: loss[0] is .., not ..`; 2 the model does not compile, or its data do not
 * fit; a crash shows as a signal. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/fe.h"
#include "interp_dataset.h"
#include "passes/autodiff.h"
#include "tests/cpu_executor.h"

enum { AGREE, DIFFER, INVALID, SEED = 7 };
static const double learning_rate = 0.0625;

typedef struct {
    const char *model, *data;
    int levels[2], n_levels, steps, status;
} Job;

/* ---- values of parameters ------------------------------------------------------------------ */

/* Small, of both signs, exact in f32; states, which may be variances, are positive. */
static double first_value(const Var *v, uint32_t which, int64_t i) {
    double u = (double)rt_uniform(rt_stream_key(SEED, 1, which), (uint32_t)i, 0);
    double step = floor(u * 64) / 64;
    return v->kind == VAR_STATE ? 0.25 + step : step - 0.5;
}

/* Optimizer slots stay 0.  NULL: the size is not known yet. */
static double *first_values(Interp *in, const Module *m, const Var *v, int64_t *n) {
    *n = 1;
    for (int i = 0; i < v->type.rank; i++) *n *= interp_size(in, v->type.dim[i]);
    double *x = NEWN(m->a, double, (size_t)*n + 1);
    for (int64_t i = 0; i < *n && v->kind < VAR_SLOT; i++)
        x[i] = first_value(v, (uint32_t)v->id, i);
    return x;
}

/* ---- both sides --------------------------------------------------------------------------- */

static Module *read_model(Ctx *c, const Job *j) {
    static const char *const dirs[] = {"models"};
    FeOptions fe = {.dirs = dirs, .n_dirs = 1};
    Module *m = fe_compile(c, j->model, &fe);
    return m && !c->n_errors && module_verify(c, m, "the front end") ? m : NULL;
}

static bool with_gradients(Ctx *c, Module *m) {
    PassCtx p = {.ctx = c, .a = c->a};
    Func *train = func_of(m, PHASE_TRAIN);
    return !train || pass_autodiff_func(&p, m, train);
}

static Interp *interp_on(Ctx *c, const Job *j, Module *m, const RtDataset *d, bool exact) {
    Interp *in = interp_new(c, m);
    int64_t n;
    interp_set_exact(in, exact);
    interp_set_seed(in, SEED, 0);
    if (!interp_dataset(in, m, d)) {
        diag_add(c, DIAG_E0003, (Span){0}, "%s lacks what the model declares", j->data);
        return NULL;
    }
    for (int i = 0; i < m->vars.n; i++)
        interp_set_var(in, m->vars.v[i], first_values(in, m, m->vars.v[i], &n));
    interp_set_input(in, "lr", learning_rate);
    interp_set_input(in, "weight_decay", m->recipe.weight_decay);
    interp_set_input(in, "step", 1);
    Func *load = func_of(m, PHASE_LOAD);
    return !load || interp_run(in, load) ? in : NULL;
}

/* A parameter that nothing reads is in no program. */
static bool start(CpuExec *x, const Job *j, Module *seen, Interp *in) {
    int64_t n;
    if (!cpu_exec_load(x, j->data, SEED, learning_rate)) return false;
    for (int i = 0; i < seen->vars.n; i++) {
        const Var *v = seen->vars.v[i];
        const double *first = first_values(in, seen, v, &n);
        if (v->kind < VAR_SLOT) cpu_exec_set(x, v->path, n, first);
    }
    return true;
}

static int differ(int level, const char *what, const char *why) {
    printf("-O%d %s: %s\n", level, what, why);
    return DIFFER;
}

/* ---- what is compared ------------------------------------------------------------------------ */

static int check_phases(CpuExec *x, const CpuOracle *o, Ctx *c, Module *seen, int level) {
    for (int i = 0; i < seen->funcs.n; i++) {
        StrBuf why = sb_new(c->a);
        Func *f = seen->funcs.v[i];
        if (!f->body && strcmp(f->name, "load") && !cpu_exec_agrees(x, o, f, &why))
            return differ(level, "values", why.s);
    }
    return AGREE;
}

static void at_step(Interp *in, int step) {
    interp_set_seed(in, SEED, (uint64_t)step);
    interp_set_input(in, "step", step + 1);
}

static int check_steps(CpuExec *x, const CpuOracle *o, Ctx *c, Module *seen, int level, int steps) {
    Func *f = func_of(seen, PHASE_TRAIN);
    for (int step = 0; step < steps; step++) {
        StrBuf why = sb_new(c->a);
        at_step(o->rounded, step);
        at_step(o->exact, step);
        if (!cpu_exec_agrees(x, o, f, &why)) return differ(level, "steps", why.s);
    }
    return AGREE;
}

/* trains: the optimizer's part of @train instead of gradients as outputs. */
static int check(Ctx *c, const Job *j, const RtDataset *d, int level, bool trains) {
    PassOptions po = {.verify_each = true};
    Module *seen = read_model(c, j), *m = read_model(c, j);
    if (!seen || !m) return INVALID;
    if (trains && !func_of(seen, PHASE_TRAIN)) return AGREE;
    if (!(trains ? pass_run_all(c, seen, "autodiff,optimizer", &po) : with_gradients(c, seen)))
        return INVALID;
    CpuOracle o = {interp_on(c, j, seen, d, false), interp_on(c, j, seen, d, true)};
    if (!o.rounded || !o.exact) return INVALID;
    if (!(trains ? cpu_exec_train_passes(c, m, level) : cpu_exec_passes(c, m, level)))
        return differ(level, "passes", "fail");
    CpuExec *x = cpu_exec_build(c, m, level);
    if (!x) return differ(level, "build", "fails");
    if (!start(x, j, seen, o.rounded)) return differ(level, "load", cpu_exec_error(x));
    return trains ? check_steps(x, &o, c, seen, level, j->steps)
                  : check_phases(x, &o, c, seen, level);
}

static void work(Ctx *c, void *arg) {
    Job *j = arg;
    RtError err = {""};
    RtAlloc from = rt_alloc_default();
    RtDataset *d = NULL;
    if (rt_dataset_open(&from, j->data, true, &d, &err) != GNNC_OK) {
        fprintf(stderr, "%s\n", err.text);
        return;
    }
    j->status = AGREE;
    for (int i = 0; i < j->n_levels && j->status == AGREE; i++) {
        j->status = check(c, j, d, j->levels[i], false);
        if (j->status == AGREE && j->steps) j->status = check(c, j, d, j->levels[i], true);
    }
    rt_dataset_close(d);
}

static bool parse(Job *j, int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        const char *s = argv[i];
        if (!strcmp(s, "--steps") && i + 1 < argc)
            j->steps = atoi(argv[++i]);
        else if ((!strcmp(s, "-O0") || !strcmp(s, "-O2")) && j->n_levels < 2)
            j->levels[j->n_levels++] = s[2] - '0';
        else if (*s == '-' || j->data)
            return false;
        else
            *(j->model ? &j->data : &j->model) = s;
    }
    return j->data != NULL;
}

int main(int argc, char **argv) {
    Job j = {.status = INVALID};
    Ctx c;
    if (!parse(&j, argc, argv)) {
        fputs("usage: model_check MODEL.gnn DATA [-O0] [-O2] [--steps N]\n", stderr);
        return INVALID;
    }
    if (!j.n_levels) j.levels[j.n_levels++] = 0, j.levels[j.n_levels++] = 2;
    if (!ctx_init(&c, NULL)) return INVALID;
    if (!ctx_run(&c, work, &j)) j.status = INVALID;
    diag_print_all(&c, stderr, false);
    ctx_free(&c);
    return j.status;
}
