#include "cpu_executor.h"

#include <assert.h>
#include <dlfcn.h>
#include <float.h>
#include <ftw.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codegen/plan_passes/plan_pass.h"
#include "codegen/target.h"
#include "compiler.h"
#include "op_low.h"
#include "passes/autodiff.h"
#include "runtime/device/device.h"
#include "runtime/trainer/trainer.h"

typedef struct {
    gnnc_status (*create)(gnnc_trainer **, const gnnc_program *);
    void (*destroy)(gnnc_trainer *);
    const char *(*error)(const gnnc_trainer *);
    gnnc_status (*set_int)(gnnc_trainer *, const char *, int64_t);
    gnnc_status (*set_real)(gnnc_trainer *, const char *, double);
    gnnc_status (*load)(gnnc_trainer *, const char *);
    gnnc_status (*set_parameter)(gnnc_trainer *, const char *, const float *, size_t);
    gnnc_status (*get_parameter)(gnnc_trainer *, const char *, float *, size_t);
    gnnc_status (*run_phase)(gnnc_trainer *, const char *);
    gnnc_status (*output)(gnnc_trainer *, const char *, const float **, int *, int64_t *);
} Api;

struct CpuExec {
    Ctx *c;
    void *so;
    Api api;
    gnnc_trainer *t, *twin; /* the same with another number of threads */
    const gnnc_program *model;
    FILE *record; /* or NULL */
};

/* ---- directories ------------------------------------------------------------------------ */

static int remove_entry(const char *path, const struct stat *s, int kind, struct FTW *at) {
    (void)s, (void)kind, (void)at;
    return remove(path);
}

static void remove_tree(void *dir) {
    nftw(dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

const char *cpu_exec_dir(Ctx *c) {
    const char *base = getenv("TMPDIR");
    char *dir = arena_printf(c->a, "%s/gnnc-test-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(dir)) {
        diag_add(c, DIAG_E0003, (Span){0}, "cannot make '%s'", dir);
        return NULL;
    }
    ctx_defer(c, remove_tree, dir);
    return dir;
}

/* The build directory: this program is build/tests/unit/x_test. */
const char *cpu_exec_build_dir(Ctx *c) {
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    for (int up = 0; up < 3 && n > 0; up++)
        while (n > 0 && path[--n] != '/') {
        }
    path[n > 0 ? n : 0] = 0;
    return arena_strndup(c->a, path, strlen(path));
}

/* ---- compiling ---------------------------------------------------------------------------- */

static bool differentiate(Ctx *c, Module *m) {
    PassCtx p = {.ctx = c, .a = c->a};
    for (int i = 0; i < m->funcs.n; i++)
        if (func_output(m->funcs.v[i], "loss") && !pass_autodiff_func(&p, m, m->funcs.v[i]))
            return false;
    m->has |= IR_GRAD;
    return true;
}

static DType precision(int opt_level) {
    return opt_level & CPU_EXEC_BF16 ? DT_BF16 : DT_VOID;
}

/* From `precision` on, which is told to round everything. */
static bool low_passes(Ctx *c, Module *m, const char *names, int opt_level, const PassOptions *o) {
    const char *from = strstr(names, ",precision");
    assert(from);
    if (!pass_run_all(c, m, arena_strndup(c->a, names, (size_t)(from - names)), o)) return false;
    op_low_ask(m, opt_level & CPU_EXEC_ALL_F16 ? DT_F16 : DT_BF16);
    return pass_run_all(c, m, from + 1, o);
}

bool cpu_exec_passes(Ctx *c, Module *m, int opt_level) {
    static const char autodiff[] = "autodiff,";
    const char *all = pass_pipeline_named(opt_level & 2, true), *at = strstr(all, autodiff);
    size_t n = (size_t)(at - all);
    PassOptions o = {.verify_each = true, .precision = precision(opt_level)};
    if (n && !pass_run_all(c, m, arena_strndup(c->a, all, n - 1), &o)) return false;
    at += sizeof autodiff - 1;
    if (!differentiate(c, m)) return false;
    return cpu_exec_is_low(opt_level) ? low_passes(c, m, at, opt_level, &o)
                                      : pass_run_all(c, m, at, &o);
}

bool cpu_exec_train_passes(Ctx *c, Module *m, int opt_level) {
    PassOptions o = {.verify_each = true, .precision = precision(opt_level)};
    return pass_run_all(c, m, pass_pipeline_named(opt_level & 2, false), &o);
}

static bool link_program(Ctx *c, const char *dir) {
    const char *build = cpu_exec_build_dir(c);
    const char *command = arena_printf(
        c->a,
        TEST_CC " -std=c17 -O0 -fPIC -shared " TEST_LINK
                " -DGNNC_NO_MAIN -Iruntime/include -Iruntime"
                " -o %s/program.so %s/driver.c %s/kernels.o -Wl,--whole-archive %s/libgnnrt.a"
                " -Wl,--no-whole-archive $(cat %s/link.flags)",
        dir, dir, dir, build, build);
    if (system(command) == 0) return true;
    diag_add(c, DIAG_E0004, (Span){0}, "%s", command);
    return false;
}

bool cpu_exec_symbol(CpuExec *x, void *to, const char *name) {
    void *p = dlsym(x->so, name);
    memcpy(to, &p, sizeof p); /* ISO C has no cast from void * to a function */
    if (!p) diag_add(x->c, DIAG_E0004, (Span){0}, "no symbol '%s'", name);
    return p != NULL;
}

static bool find(CpuExec *x, void *to, const char *name) {
    return cpu_exec_symbol(x, to, name);
}

static bool open_program(CpuExec *x, const char *path) {
    Api *a = &x->api;
    x->so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!x->so) diag_add(x->c, DIAG_E0004, (Span){0}, "%s", dlerror());
    return x->so && find(x, &x->model, "model_program") &&
           find(x, &a->create, "gnnc_trainer_create") &&
           find(x, &a->destroy, "gnnc_trainer_destroy") &&
           find(x, &a->error, "gnnc_trainer_error") &&
           find(x, &a->set_int, "gnnc_trainer_set_int") &&
           find(x, &a->set_real, "gnnc_trainer_set_real") &&
           find(x, &a->load, "gnnc_trainer_load") &&
           find(x, &a->set_parameter, "gnnc_trainer_set_parameter") &&
           find(x, &a->get_parameter, "gnnc_trainer_get_parameter") &&
           find(x, &a->run_phase, "gnnc_trainer_run_phase") &&
           find(x, &a->output, "gnnc_trainer_output");
}

/* The object stays mapped: OpenMP's threads may still be in it. */
static void release(void *p) {
    CpuExec *x = p;
    if (x->t) x->api.destroy(x->t);
    if (x->twin) x->api.destroy(x->twin);
}

CpuExec *cpu_exec_open(Ctx *c, const char *so_path) {
    CpuExec *x = NEW(c->a, CpuExec);
    *x = (CpuExec){.c = c};
    ctx_defer(c, release, x);
    return open_program(x, so_path) ? x : NULL;
}

CpuExec *cpu_exec_build(Ctx *c, Module *m, int opt_level) {
    const char *dir = cpu_exec_dir(c);
    Plan *p = dir ? plan_of_module(c, m, NULL, SPMM_OWN, NULL) : NULL;
    if (!p || !plan_verify(c, p)) return NULL;
    TargetOptions o = {.opt_level = opt_level & CPU_EXEC_PLAIN_LLVM ? 0 : opt_level & 2};
    bool ok =
        target_cpu.emit_kernels(c, p, &o, EMIT_OBJECT, arena_printf(c->a, "%s/kernels.o", dir)) &&
        host_emit(c, p, arena_printf(c->a, "%s/driver.c", dir)) && link_program(c, dir);
    return ok ? cpu_exec_open(c, arena_printf(c->a, "%s/program.so", dir)) : NULL;
}

/* ---- recording ------------------------------------------------------------------------------ */
void cpu_exec_record(CpuExec *x, FILE *to) {
    x->record = to;
}

static void record_values(FILE *to, int64_t n, const double *v) {
    for (int64_t i = 0; i < n; i++) fprintf(to, " %.17g", v[i]);
    fputs("\n", to);
}

static void record(const CpuExec *x, const char *what, const char *name, int64_t n, double tol,
                   const double *v) {
    if (!x->record) return;
    fprintf(x->record, "%s %s %lld %.17g", what, name, (long long)n, tol);
    record_values(x->record, n, v);
}

/* ---- running ------------------------------------------------------------------------------ */

static bool load(CpuExec *x, gnnc_trainer **t, const char *dir, int64_t seed, double lr,
                 int threads) {
    const Api *a = &x->api;
    return a->create(t, x->model) == GNNC_OK && a->set_int(*t, "seed", seed) == GNNC_OK &&
           a->set_int(*t, "threads", threads) == GNNC_OK && a->set_real(*t, "lr", lr) == GNNC_OK &&
           a->load(*t, dir) == GNNC_OK;
}

bool cpu_exec_load(CpuExec *x, const char *data_dir, int64_t seed, double lr) {
    return load(x, &x->twin, data_dir, seed, lr, 1) && load(x, &x->t, data_dir, seed, lr, 3);
}

bool cpu_exec_set(CpuExec *x, const char *var, int64_t n, const double *v) {
    float *f = NEWN(x->c->a, float, (size_t)n + 1);
    for (int64_t i = 0; i < n; i++) f[i] = (float)v[i];
    if (x->record) {
        fprintf(x->record, "var %s %lld", var, (long long)n);
        record_values(x->record, n, v);
    }
    return x->api.set_parameter(x->twin, var, f, (size_t)n) == GNNC_OK &&
           x->api.set_parameter(x->t, var, f, (size_t)n) == GNNC_OK;
}

bool cpu_exec_run(CpuExec *x, const char *phase) {
    return x->api.run_phase(x->twin, phase) == GNNC_OK && x->api.run_phase(x->t, phase) == GNNC_OK;
}

const char *cpu_exec_error(const CpuExec *x) {
    const char *why = x->api.error(x->twin); /* which is asked first */
    return *why ? why : x->api.error(x->t);
}

/* The buffer of an output of the phase run last; -1: there is none. */
static int output_buf(const CpuExec *x, const char *name) {
    const rt_program *p = x->model->tables;
    for (int b = 0; b < p->n_bufs; b++) {
        const rt_buf *buf = &p->bufs[b];
        bool is_output = buf->kind == RT_BUF_OUTPUT && buf->phase == x->t->last_phase;
        if (is_output && !strcmp(buf->io_name, name)) return b;
    }
    return -1;
}

/* By the public interface where it gives the element type: f32. */
const double *cpu_exec_output(CpuExec *x, const char *name, int64_t *n) {
    int b = output_buf(x, name), rank;
    int64_t dim[GNNC_MAX_RANK];
    const float *f = NULL;
    if (b < 0) return NULL;
    *n = x->model->tables->buf_count(b, x->t->x.n);
    double *v = NEWN(x->c->a, double, (size_t)*n + 1);
    bool given = x->api.output(x->t, name, &f, &rank, dim) == GNNC_OK;
    int64_t count = 1;
    for (int i = 0; given && i < rank; i++) count *= dim[i];
    if (given && count != *n) return NULL;
    for (int64_t i = 0; i < *n; i++) v[i] = given ? (double)f[i] : rt_buf_read(&x->t->x, b, i);
    return v;
}

/* ---- comparing ------------------------------------------------------------------------------ */

static double largest(const OpTensor *x) {
    double m = 0;
    for (int64_t i = 0; x && i < x->count; i++)
        if (isfinite(x->v[i]) && fabs(x->v[i]) > m) m = fabs(x->v[i]);
    return m;
}

/* How many terms make an element of a reduction, at most. */
static double terms(Interp *in, const Op *op) {
    double n = 1;
    if (op->kind == OP_SEGMENT) return (double)interp_size(in, op->map->from);
    for (int i = 0; i < op->n_over && op->kind == OP_REDUCE; i++)
        n *= (double)interp_size(in, op->over[i]);
    for (int i = 0; op->kind == OP_CONTRACT && i < op->in[0]->type.rank; i++) {
        const Space *s = op->in[0]->type.dim[i];
        if (!type_has(&op->type, s)) n *= (double)interp_size(in, s);
    }
    return n;
}

/* From 1 to the next number of the narrowest type that the function stores. */
static double epsilon(const Func *f) {
    double e = FLT_EPSILON;
    for (const Op *op = f->first; op; op = op->next)
        e = fmax(e, op->type.dt == DT_BF16 ? 0x1p-7 : op->type.dt == DT_F16 ? 0x1p-10 : 0);
    return e;
}

/* Rounding that an output may show: epsilon times the size of what is summed, by the
 * square root of how much (errors are random), four times over. */
static double tolerance(const CpuOracle *o, const Func *f, const Op *out, double epsilon) {
    double longest = 1, scale = 0.1 + largest(interp_output(o->rounded, out->name));
    for (const Op *op = f->first; op; op = op->next)
        if (op_has(op, OPT_REDUCE)) longest = fmax(longest, terms(o->rounded, op));
    const Op *y = out->in[0];
    for (int i = 0; op_has(y, OPT_REDUCE) && i < y->n_in; i++)
        scale = fmax(scale, largest(interp_value(o->rounded, y->in[i])));
    return 4 * epsilon * scale * (2 + sqrt(longest));
}

static double spread(int64_t n, const double *x, const double *y) {
    double d = 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(x[i]) && isfinite(y[i])) d = fmax(d, fabs(x[i] - y[i]));
    return d;
}

/* How far rounding moves an output, or a variable. */
static double noise(const CpuOracle *o, const char *output, const Var *v, int64_t n) {
    const double *exact = v ? interp_var(o->exact, v) : interp_output(o->exact, output)->v;
    const double *x = v ? interp_var(o->rounded, v) : interp_output(o->rounded, output)->v;
    double d = spread(n, x, exact);
    for (int i = 0; i < CPU_NOISY && o->noisy[i]; i++) {
        x = v ? interp_var(o->noisy[i], v) : interp_output(o->noisy[i], output)->v;
        d = fmax(d, spread(n, x, exact));
    }
    return d;
}

static bool same(double got, double want, double tol) {
    if (isnan(want)) return isnan(got);
    return got == want || fabs(got - want) <= tol;
}

/* A parameter whose reads are dead has no gradient once they are removed. */
static bool is_zero_gradient(const Op *out, const OpTensor *want) {
    return out->use.role == OUT_GRAD && largest(want) == 0;
}

/* In 16 bits both round the same values, but for those that f32's errors push over the middle
 * between two numbers: one in 2^13 of bf16's, each of which a sum may spread over its elements. */
enum { FEW_FAR = 8 };

static bool output_agrees(CpuExec *x, const CpuOracle *o, const Func *f, const Op *out,
                          StrBuf *why) {
    int64_t n = 0;
    const double *got = cpu_exec_output(x, out->name, &n);
    const OpTensor *want = interp_output(o->rounded, out->name);
    if (!got && is_zero_gradient(out, want)) return true;
    if (!got || n != want->count) {
        sb_printf(why, "%s: output %s has %lld elements, not %lld", f->name, out->name,
                  (long long)(got ? n : -1), (long long)want->count);
        return false;
    }
    double e = epsilon(f), tol = dtype_is_float(want->type.dt) ? tolerance(o, f, out, e) : 0;
    double near = tol * FLT_EPSILON / e;
    if (tol > 0) tol += 16 * noise(o, out->name, NULL, n);
    record(x, "output", out->name, n, tol, want->v);
    int64_t n_far = 0;
    for (int64_t i = 0; i < n; i++) n_far += !same(got[i], want->v[i], near);
    if (e > FLT_EPSILON && n_far > 1 + n / FEW_FAR) {
        sb_printf(why, "%s: %lld of %lld elements of %s round otherwise", f->name, (long long)n_far,
                  (long long)n, out->name);
        return false;
    }
    for (int64_t i = 0; i < n; i++) {
        if (same(got[i], want->v[i], tol)) continue;
        sb_printf(why, "%s: %s[%lld] is %.9g, not %.9g (tolerance %.2g)", f->name, out->name,
                  (long long)i, got[i], want->v[i], tol);
        return false;
    }
    return true;
}

/* What a state holds after the phase. */
static bool variable_agrees(CpuExec *x, const CpuOracle *o, const Func *f, const Var *v, bool lost,
                            StrBuf *why) {
    int64_t n = 1;
    for (int i = 0; i < v->type.rank; i++) n *= interp_size(o->rounded, v->type.dim[i]);
    const double *want = interp_var(o->rounded, v);
    float *got = NEWN(x->c->a, float, (size_t)n + 1);
    gnnc_status st = x->api.get_parameter(x->t, v->path, got, (size_t)n);
    if (st == GNNC_E_MISSING && v->kind == VAR_PARAM) return true; /* its reads were dead */
    if (st != GNNC_OK) {
        sb_printf(why, "%s: %s", f->name, cpu_exec_error(x));
        return false;
    }
    double scale = 1;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(want[i])) scale = fmax(scale, fabs(want[i]));
    double tol = 16 * (FLT_EPSILON * scale + noise(o, NULL, v, n));
    record(x, "state", v->path, n, tol, want);
    for (int64_t i = 0; i < n; i++) {
        if (same((double)got[i], want[i], tol)) continue;
        if (lost && (isnan(got[i]) || isnan(want[i]))) continue;
        sb_printf(why, "%s: variable %s[%lld] is %.9g, not %.9g", f->name, v->path, (long long)i,
                  (double)got[i], want[i]);
        return false;
    }
    return true;
}

static bool interpret(Interp *in, Func *f, StrBuf *why) {
    if (interp_run(in, f)) return true;
    sb_printf(why, "%s: interpreter: %s", f->name, interp_error(in));
    return false;
}

/* Bit for bit, whatever the number of threads, or the order in which a device runs its own. */
static bool twin_agrees(CpuExec *x, const Func *f, const char *output, StrBuf *why) {
    int b = output_buf(x, output);
    size_t n = 0;
    if (b < 0 || rt_buf_bytes(&x->t->x, b, &n) != GNNC_OK) return true;
    rt_pull(&x->t->x, b);
    rt_pull(&x->twin->x, b);
    if (n == 0 || !memcmp(x->t->x.buf[b], x->twin->x.buf[b], n)) return true;
    sb_printf(why, "%s: %s depends on the number of threads", f->name, output);
    return false;
}

static bool has_nan(const OpTensor *x) {
    for (int64_t i = 0; x && i < x->count; i++)
        if (isnan(x->v[i])) return true;
    return false;
}

/* Made of numbers: infinity times 0, say. */
static bool makes_nan(Interp *in, const Op *op) {
    if (op->n_in == 0 || !has_nan(interp_value(in, op))) return false;
    for (int i = 0; i < op->n_in; i++)
        if (has_nan(interp_value(in, op->in[i]))) return false;
    return true;
}

bool cpu_exec_is_lost(Interp *in, const Func *f) {
    const Op *loss = func_output_of(f, OUT_LOSS);
    bool lost = loss && has_nan(interp_output(in, loss->name));
    for (const Op *op = f->first; op && !lost; op = op->next) lost = makes_nan(in, op);
    return lost;
}

bool cpu_exec_agrees(CpuExec *x, const CpuOracle *o, Func *f, StrBuf *why) {
    if (!interpret(o->rounded, f, why) || !interpret(o->exact, f, why)) return false;
    for (int i = 0; i < CPU_NOISY && o->noisy[i]; i++)
        if (!interpret(o->noisy[i], f, why)) return false;
    if (!cpu_exec_run(x, f->name)) {
        sb_printf(why, "%s: %s", f->name, cpu_exec_error(x));
        return false;
    }
    if (x->record) fprintf(x->record, "phase %s\n", f->name);
    bool ok = true, lost = cpu_exec_is_lost(o->rounded, f);
    for (const Op *op = f->first; op && ok; op = op->next)
        if (op->kind == OP_OUTPUT && op->in[0]->type.layout == LAYOUT_DENSE)
            ok = output_agrees(x, o, f, op, why) && twin_agrees(x, f, op->name, why);
        else if (op->kind == OP_ASSIGN && op->var->kind < VAR_SLOT)
            ok = variable_agrees(x, o, f, op->var, lost, why);
    return ok;
}
