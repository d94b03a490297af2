/* --precision=auto: the program that tells ranges (passes/ranges.c) is built as a library, and run
 * by a copy of this process: a C function of the model that ends it ends no compiler.  A process
 * that is not the compiler's alone cannot be copied, other threads may hold locks; it runs the
 * program itself.  Everything is asked for by the public interface of a trainer.  The seed is fixed
 * and results do not depend on threads, so the same data on the same kind of machine give the same
 * program. */
#include "frontend/cli/cli.h"
#include "ir/text.h"

#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/include/gnnc.h"

enum { STEPS = 8 };

typedef struct {
    gnnc_status (*create)(gnnc_trainer **, const gnnc_program *);
    void (*destroy)(gnnc_trainer *);
    gnnc_status (*load)(gnnc_trainer *, const char *);
    gnnc_status (*step)(gnnc_trainer *);
    gnnc_status (*run_phase)(gnnc_trainer *, const char *);
    gnnc_status (*output)(gnnc_trainer *, const char *, const float **, int *, int64_t *);
    const char *(*error)(const gnnc_trainer *);
    const gnnc_program *program;
    gnnc_trainer *t;
} Probe;

/* What goes from the copy to this process: ranges, then a message. */
typedef struct {
    double most, some, small, scale;
    int known;
} Told;
typedef struct {
    int ok;
    char text[512];
} End;

/* ---- in the copy, if there is one -------- */
/* Finds the function `name` of the shared library and stores its address at `to`. False: there
 * is none. */
static bool find(void *so, void *to, const char *name) {
    void *p = dlsym(so, name);
    memcpy(to, &p, sizeof p); /* ISO C has no cast from void * to a function */
    return p != NULL;
}

/* Loads the measuring library and finds its functions. It is never unloaded: threads of
 * libraries that it brought may still run. False: end->text says why. */
static bool open_probe(Probe *p, const char *path, End *end) {
    void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    bool ok = so && find(so, &p->program, "model_program") &&
              find(so, &p->create, "gnnc_trainer_create") &&
              find(so, &p->destroy, "gnnc_trainer_destroy") &&
              find(so, &p->load, "gnnc_trainer_load") && find(so, &p->step, "gnnc_trainer_step") &&
              find(so, &p->run_phase, "gnnc_trainer_run_phase") &&
              find(so, &p->output, "gnnc_trainer_output") &&
              find(so, &p->error, "gnnc_trainer_error");
    if (!ok) snprintf(end->text, sizeof end->text, "%s", dlerror());
    return ok;
}

/* The number that the measuring program gives for the i-th value under `what`; NaN: none. */
static double output(const Probe *p, int i, const char *what) {
    const float *x = NULL;
    int64_t dim[GNNC_MAX_RANK];
    char name[64];
    int rank;
    snprintf(name, sizeof name, "range.%d.%s", i, what);
    return p->output(p->t, name, &x, &rank, dim) == GNNC_OK ? (double)*x : NAN;
}

static double larger(double x, double y) {
    return x > y || isnan(x) ? x : y;
}

/* Takes the ranges that the last run of the phase measured: the largest element, how many are
 * small, and the smallest scale of all runs. */
static void take(const Probe *p, const PassRanges *r, const char *func, Told *told) {
    for (int i = 0; i < r->values.n; i++) {
        if (strcmp(r->values.v[i].func, func)) continue;
        Told *t = &told[i];
        double scale = r->values.v[i].gradient ? output(p, i, "scale") : 1;
        t->most = larger(t->most, output(p, i, "most"));
        t->some += output(p, i, "some");
        t->small += output(p, i, "small");
        if (!t->known || scale < t->scale) t->scale = scale;
        t->known = 1;
    }
}

/* Whether no value before the i-th is of the same phase. */
static bool is_first(const PassRanges *r, int i) {
    for (int k = 0; k < i; k++)
        if (!strcmp(r->values.v[k].func, r->values.v[i].func)) return false;
    return true;
}

/* Runs each phase that has values, training for a few steps, and takes their ranges. */
static gnnc_status measure(const Probe *p, const PassRanges *r, Told *told) {
    gnnc_status st = GNNC_OK;
    for (int i = 0; i < r->values.n && st == GNNC_OK; i++) {
        const char *func = r->values.v[i].func;
        bool train = !strcmp(func, text_Phase.word[PHASE_TRAIN]);
        if (!is_first(r, i)) continue;
        for (int k = 0; k < (train ? STEPS : 1) && st == GNNC_OK; k++) {
            st = train ? p->step(p->t) : p->run_phase(p->t, func);
            if (st == GNNC_OK) take(p, r, func, told);
        }
    }
    return st;
}

/* Loads the measuring program, trains it on the data and measures. end: how it went. */
static void probe(const char *path, const char *data, const PassRanges *r, Told *told, End *end) {
    Probe p = {.t = NULL};
    if (!open_probe(&p, path, end)) return;
    gnnc_status st = p.create(&p.t, p.program);
    if (st == GNNC_OK) st = p.load(p.t, data);
    if (st == GNNC_OK) st = measure(&p, r, told);
    end->ok = st == GNNC_OK;
    if (!end->ok)
        snprintf(end->text, sizeof end->text, "%s", p.t ? p.error(p.t) : gnnc_status_text(st));
    p.destroy(p.t);
}

/* What the child process does: measures and writes the results to the pipe `to`. Returns its
 * exit status. */
static int copy(const char *path, const char *data, const PassRanges *r, Told *told, int to) {
    End end = {.ok = 0};
    probe(path, data, r, told, &end);
    bool sent = cli_write_all(to, told, (size_t)r->values.n * sizeof *told);
    return sent && cli_write_all(to, &end, sizeof end) ? 0 : 1;
}

/* ---- in this process -------- */
/* Reads n bytes from a pipe. False: it ended before. */
static bool read_all(int fd, void *to, size_t n) {
    for (char *s = to; n;) {
        ssize_t k = read(fd, s, n);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return false;
        s += k;
        n -= (size_t)k;
    }
    return true;
}

static bool failed(Ctx *c, const char *data, const char *why) {
    diag_add(c, DIAG_E0005, (Span){0}, "--precision=auto: measuring on '%s': %s", data, why);
    return false;
}

/* Takes the ranges that were measured into r. */
static void take_told(PassRanges *r, const Told *told) {
    for (int i = 0; i < r->values.n; i++) {
        PassRange *x = &r->values.v[i];
        x->known = told[i].known;
        x->max_abs = told[i].most;
        x->n_nonzero = told[i].some;
        x->n_subnormal = told[i].small;
        x->scale = told[i].scale;
    }
}

/* Measures in a child process, so that a crash of the program does not end gnnc. False after a
 * diagnostic. */
static bool run_in_child(Ctx *c, const char *path, const char *data, PassRanges *r) {
    Told *told = NEWN(c->a, Told, (size_t)r->values.n + 1);
    End end = {.ok = 0};
    int fd[2], status = 0;
    if (pipe(fd)) return failed(c, data, strerror(errno));
    pid_t pid = fork();
    if (pid == 0) _exit(copy(path, data, r, told, fd[1]));
    int error = errno;
    close(fd[1]);
    bool heard = pid > 0 && read_all(fd[0], told, (size_t)r->values.n * sizeof *told) &&
                 read_all(fd[0], &end, sizeof end);
    close(fd[0]);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (pid < 0) return failed(c, data, strerror(error));
    if (!heard && WIFSIGNALED(status))
        return failed(c, data, arena_printf(c->a, "ended by signal %d", WTERMSIG(status)));
    end.text[sizeof end.text - 1] = 0;
    if (!heard || !end.ok) return failed(c, data, heard ? end.text : "it ended too early");
    take_told(r, told);
    return true;
}

/* Measures in this process, for callers whose process may not fork. False after a diagnostic. */
static bool run_here(Ctx *c, const char *path, const char *data, PassRanges *r) {
    Told *told = NEWN(c->a, Told, (size_t)r->values.n + 1);
    End end = {.ok = 0};
    probe(path, data, r, told, &end);
    if (!end.ok) return failed(c, data, end.text);
    take_told(r, told);
    return true;
}

/* Measures the ranges of values for --precision=auto: builds the program p as a library for the
 * CPU, runs some steps on the data in a child process where allowed, and puts what it found into
 * r. */
bool cli_measure(Ctx *c, Plan *p, const CliOptions *o, PassRanges *r) {
    const char *data = o->measured ? o->measured : o->data;
    const Target *host = target_find("cpu");
    const char *dir = host ? cli_temp_dir(c, o) : NULL;
    if (!host) return failed(c, data, "this gnnc makes no programs for the cpu");
    /* Before minutes of compiling: is there a data directory at all? */
    if (access(arena_printf(c->a, "%s/schema.json", data), F_OK) != 0)
        return failed(c, data, "no data directory, it has no schema.json");
    if (!dir) return false;
    CliOptions lib = *o;
    lib.emit = OUT_SO;
    lib.name = "model";
    lib.shared_runtime = false;
    lib.out = arena_printf(c->a, "%s/probe.so", dir);
    return cli_build(c, &p, 1, host, &lib, "probe") &&
           (c->outside.own_process ? run_in_child : run_here)(c, lib.out, data, r);
}
