/* A plan becomes a program: kernels to an object, the host driver to C, both with
 * libgnnrt.a through `cc`.  All of it happens in a private directory; the result is
 * moved to its place only when it is complete. */
#include "frontend/cli/cli.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

TargetOptions cli_target_options(const CliOptions *o) {
    return (TargetOptions){.march = o->march, .opt_level = o->opt_level, .debug_info = true};
}

static const char *part(Ctx *c, const char *dir, const char *name, int variant, const char *end) {
    if (!variant) return arena_printf(c->a, "%s/%s.%s", dir, name, end);
    return arena_printf(c->a, "%s/%s_%d.%s", dir, name, variant, end);
}

/* Compiles the generated C driver of one variant with the user's compiler. */
static bool compile_driver(Ctx *c, const CliHome *h, const CliOptions *o, const Plan *p,
                           const char *dir) {
    CliArgs args = {0};
    cli_cc_compile(c, &args, "-std=c17 -O1");
    cli_arg(c, &args, "-c");
    if (o->emit != OUT_EXE) cli_split_args(c, &args, "-fPIC -DGNNC_NO_MAIN");
    if (o->emit == OUT_EXE && o->rows)
        cli_arg(c, &args, arena_printf(c->a, "-DGNNC_ROWS=%s_program", cli_rows_name(c, o)));
    for (int i = 0; i < 2 && h->include[i]; i++)
        cli_arg(c, &args, arena_printf(c->a, "-I%s", h->include[i]));
    cli_arg(c, &args, "-o");
    cli_arg(c, &args, part(c, dir, "driver", p->variant, "o"));
    cli_arg(c, &args, part(c, dir, "driver", p->variant, "c"));
    return cli_run_tool(c, &args, o->verbose);
}

/* Adds to l what is to be linked: the objects of all variants, of the device, and of the user's
 * functions. False after a diagnostic. */
static bool find_parts(Ctx *c, CliParts *l, Plan *const *plan, int n) {
    for (int i = 0; i < n; i++) {
        cli_arg(c, &l->objects, part(c, l->dir, "driver", i, "o"));
        if (plan_on_host(plan[i])) cli_arg(c, &l->objects, part(c, l->dir, "kernels", i, "o"));
    }
    if (l->p->device)
        cli_arg(c, &l->objects, arena_printf(c->a, "%s/kernels_%s.o", l->dir, l->p->device));
    return cli_extern_objects(c, l->p, l->home, l->o, l->dir, &l->objects, &l->shared);
}

/* Adds what --mpi links. False after a diagnostic: gnnc was built without MPI. */
static bool mpi(Ctx *c, const CliHome *h, CliArgs *args) {
    if (access(h->mpi_object, R_OK) != 0) {
        diag_add(c, DIAG_E0002, (Span){0},
                 "--mpi: this gnnc was built without MPI; install libopenmpi-dev and build again");
        return false;
    }
    cli_arg(c, args, h->mpi_object);
    cli_line_args(c, args, h->mpi_flags);
    return true;
}

/* Links the objects, the runtime and the libraries to the program `result`. */
static bool link_program(Ctx *c, const CliParts *l, const char *result) {
    CliArgs args = {0};
    cli_cc(c, &args, "-o");
    cli_arg(c, &args, result);
    cli_args(c, &args, &l->objects);
    if (l->o->rows) cli_arg(c, &args, l->o->rows);
    cli_args(c, &args, &l->shared);
    if (l->o->mpi && !mpi(c, l->home, &args)) return false;
    cli_arg(c, &args, l->home->lib);
    if (l->p->device && !cli_cuda_libraries(c, l->home, false, &args)) return false;
    cli_line_args(c, &args, l->home->link_flags);
    return cli_run_tool(c, &args, l->o->verbose || (l->p->device && l->o->keep));
}

/* The file that the result goes to: that of -o, or one that is named after the model; "-" is
 * standard output. */
const char *cli_output(Ctx *c, const CliOptions *o, const char *stem) {
    if (o->out) return o->out;
    switch (o->emit) {
    case OUT_OBJ:
        return arena_printf(c->a, "%s.o", stem);
    case OUT_EXE:
        return arena_printf(c->a, "./%s", stem);
    default:
        return "-";
    }
}

/* What one variant is made of. */
typedef struct {
    const Plan *p;
    const Target *t; /* NULL: it has no kernels for the host */
    const CliHome *home;
    const CliOptions *o;
    const char *dir;
    bool is_copy; /* in a process of its own, beside the first variant's */
    bool ok;
} ObjectJob;

/* Makes the objects of one variant in this process: its kernels, if the host runs them, and its
 * driver. False after a diagnostic. */
static bool host_objects(Ctx *c, const ObjectJob *j) {
    TargetOptions to = cli_target_options(j->o);
    int v = j->p->variant;
    double start = cli_now_ms();
    if (j->t && !j->t->emit_kernels(c, j->p, &to, EMIT_OBJECT, part(c, j->dir, "kernels", v, "o")))
        return false;
    if (!j->is_copy) cli_stage_time(c, j->o, "kernels, by LLVM", start);
    start = cli_now_ms();
    bool ok = host_emit(c, j->p, part(c, j->dir, "driver", v, "c")) &&
              compile_driver(c, j->home, j->o, j->p, j->dir);
    if (!j->is_copy) cli_stage_time(c, j->o, "host driver, by cc", start);
    return ok;
}

/* Writes the CUDA kernels of the plan and compiles them with nvcc. */
static bool device_object(Ctx *c, const Plan *p, const CliOptions *o, const CliHome *h,
                          const char *dir) {
    TargetOptions to = cli_target_options(o);
    const char *source = arena_printf(c->a, "%s/kernels.cu", dir);
    double start = cli_now_ms();
    bool ok =
        target_cuda.emit_kernels(c, p, &to, EMIT_IR_TEXT, source) &&
        cli_cuda_object(c, h, o, source, arena_printf(c->a, "%s/kernels_%s.o", dir, p->device));
    cli_stage_time(c, o, "device kernels, by nvcc", start);
    return ok;
}

/* Objects of variants take as long as the first: each is made by a copy of this process, side by
 * side, where there is nobody else in it.  One that fails, or cannot be started, is made here
 * again, which says why. */
static void make_objects(Ctx *c, void *arg) {
    ObjectJob *j = arg;
    j->ok = host_objects(c, j);
}

/* Starts a child process that makes the objects of j; returns its id, or -1 if there is none. If
 * memory runs out, the child exits here; the private directory is the parent's to remove. */
static pid_t begin_objects(Ctx *c, ObjectJob j) {
    pid_t pid = c->outside.own_process ? fork() : -1;
    if (pid) return pid;
    c->running = false;
    c->defers.n = 0;
    j.is_copy = true;
    _exit(ctx_run(c, make_objects, &j) && j.ok ? 0 : 1);
}

/* Waits for a child process of begin_objects. True: it has made its objects. */
static bool end_objects(pid_t pid) {
    int status = 1;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Compiles the n variants of a plan to objects, each but the first in a process of its own. A
 * variant that fails there, or got no process, is compiled here, so that its diagnostics appear. */
static bool all_objects(Ctx *c, Plan *const *plan, int n, ObjectJob j) {
    pid_t pid[1 << PASS_MAX_CHOICES];
    for (int i = 1; i < n; i++) {
        j.p = plan[i];
        pid[i] = begin_objects(c, j);
    }
    j.p = plan[0];
    bool ok = host_objects(c, &j);
    double start = cli_now_ms();
    for (int i = 1; i < n; i++) {
        j.p = plan[i];
        if (!end_objects(pid[i])) ok = ok && host_objects(c, &j);
    }
    if (n > 1) cli_stage_time(c, j.o, "waiting for the other variants", start);
    return ok;
}

/* Builds the program, library or package of n variants and puts it in its place. host NULL: only
 * a device runs kernels. False after a diagnostic. */
bool cli_build(Ctx *c, Plan *const *plan, int n, const Target *host, const CliOptions *o,
               const char *stem) {
    const Plan *p = plan[0];
    CliHome home;
    const char *dir;
    if (!cli_find_home(c, &home) || !(dir = cli_temp_dir(c, o))) return false;
    ObjectJob job = {.t = host, .home = &home, .o = o, .dir = dir};
    CliParts parts = {.p = p, .home = &home, .o = o, .dir = dir};
    if (!all_objects(c, plan, n, job) || (p->device && !device_object(c, p, o, &home, dir)) ||
        !find_parts(c, &parts, plan, n))
        return false;
    const char *result = arena_printf(c->a, "%s/result", dir);
    double start = cli_now_ms();
    CliLibrary names = cli_library(c->a, o);
    bool several = o->emit == OUT_LIB || o->emit == OUT_PYTHON;
    bool ok = o->emit == OUT_LIB        ? cli_make_library(c, &parts, names)
              : o->emit == OUT_PYTHON   ? cli_make_package(c, &parts, names)
              : o->emit == OUT_ROWS_OBJ ? cli_one_object(c, &parts, result)
              : o->emit == OUT_SO       ? cli_link_library(c, &parts, NULL, result)
                                        : link_program(c, &parts, result);
    cli_stage_time(c, o, "link, by cc", start);
    return ok && (several || cli_install(c, result, cli_output(c, o, stem)));
}

/* Writes the one file that --emit asks for to `path` (NULL: standard output). */
static bool emit_to(Ctx *c, const Plan *p, const Target *t, const CliOptions *o, const char *path) {
    TargetOptions to = cli_target_options(o);
    EmitKind kind = o->emit == OUT_LLVM || o->emit == OUT_CUDA ? EMIT_IR_TEXT
                    : o->emit == OUT_ASM                       ? EMIT_ASM
                                                               : EMIT_OBJECT;
    return o->emit == OUT_C ? host_emit(c, p, path) : t->emit_kernels(c, p, &to, kind, path);
}

/* Writes the one file that --emit asks for to its place. It is made in a private directory
 * first, so that a mistake leaves the old one. */
bool cli_emit(Ctx *c, const Plan *p, const Target *t, const CliOptions *o, const char *stem) {
    const char *to = cli_output(c, o, stem);
    if (strcmp(to, "-") == 0) return emit_to(c, p, t, o, NULL);
    const char *dir = cli_temp_dir(c, o);
    if (!dir) return false;
    const char *path = arena_printf(c->a, "%s/result", dir);
    return emit_to(c, p, t, o, path) && cli_install(c, path, to);
}
