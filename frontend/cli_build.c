/* A plan becomes a program: kernels to an object, the host driver to C, both with
 * libgnnrt.a through `cc`.  All of it happens in a private directory; the result is
 * moved to its place only when it is complete. */
#include "frontend/cli.h"

#include <errno.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

typedef VEC(char *) Args;

static void arg(Ctx *c, Args *args, const char *s) {
    vec_push(c->a, args, arena_strndup(c->a, s, strlen(s)));
}

/* "-fopenmp -lm" as separate arguments */
static void split_args(Ctx *c, Args *args, const char *s) {
    while (*(s += strspn(s, " \t"))) {
        size_t n = strcspn(s, " \t");
        vec_push(c->a, args, arena_strndup(c->a, s, n));
        s += n;
    }
}

static void show(const Args *args) {
    for (int i = 0; i < args->n; i++) fprintf(stderr, "%s%s", i ? " " : "gnnc: ", args->v[i]);
    fputs("\n", stderr);
}

static bool run_tool(Ctx *c, Args *args, bool verbose) {
    if (verbose) show(args);
    vec_push(c->a, args, (char *)NULL);
    pid_t pid;
    int status = 0, e = posix_spawnp(&pid, args->v[0], NULL, NULL, args->v, environ);
    if (e) {
        diag(c, DIAG_E0004, (Span){0}, "cannot run '%s': %s", args->v[0], strerror(e));
        return false;
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
    diag(c, DIAG_E0004, (Span){0},
         "'%s' could not build the program (status %d); -v shows the command", args->v[0],
         WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    return false;
}

static TargetOptions target_options(const CliOptions *o) {
    return (TargetOptions){.march = o->march, .opt_level = o->opt_level, .debug_info = true};
}

/* A library exports the C interface and nothing else. */
static bool library_args(Ctx *c, Args *args, const char *dir) {
    static const char map[] = "{ global: gnnc_*; local: *; };\n";
    const char *path = arena_printf(c->a, "%s/exports.map", dir);
    split_args(c, args, "-fPIC -shared -DGNNC_NO_MAIN");
    arg(c, args, arena_printf(c->a, "-Wl,--version-script=%s", path));
    return cli_write(c, path, map, sizeof map - 1);
}

static bool compile_driver(Ctx *c, const CliHome *h, const CliOptions *o, const char *dir,
                           const char *result) {
    Args args = {0};
    for (const char *const *s = (const char *const[]){"cc", "-std=c17", "-O1", NULL}; *s; s++)
        arg(c, &args, *s);
    if (o->emit == OUT_LIB && !library_args(c, &args, dir)) return false;
    for (int i = 0; i < 2 && h->include[i]; i++)
        arg(c, &args, arena_printf(c->a, "-I%s", h->include[i]));
    arg(c, &args, "-o");
    arg(c, &args, result);
    arg(c, &args, arena_printf(c->a, "%s/driver.c", dir));
    arg(c, &args, arena_printf(c->a, "%s/kernels.o", dir));
    if (o->emit == OUT_LIB) arg(c, &args, "-Wl,--whole-archive");
    arg(c, &args, h->lib);
    if (o->emit == OUT_LIB) arg(c, &args, "-Wl,--no-whole-archive");
    split_args(c, &args, h->link_flags);
    return run_tool(c, &args, o->verbose);
}

static const char *default_name(Ctx *c, const CliOptions *o, const char *stem) {
    switch (o->emit) {
    case OUT_LIB:
        return arena_printf(c->a, "lib%s.so", stem);
    case OUT_OBJ:
        return arena_printf(c->a, "%s.o", stem);
    case OUT_EXE:
        return arena_printf(c->a, "./%s", stem);
    default:
        return "-";
    }
}

bool cli_build(Ctx *c, const Plan *p, const Target *t, const CliOptions *o, const char *stem) {
    CliHome home;
    const char *dir;
    if (!cli_find_home(c, &home) || !(dir = cli_temp_dir(c, o))) return false;
    TargetOptions to = target_options(o);
    const char *result = arena_printf(c->a, "%s/result", dir);
    return t->emit_kernels(c, p, &to, EMIT_OBJECT, arena_printf(c->a, "%s/kernels.o", dir)) &&
           host_emit(c, p, arena_printf(c->a, "%s/driver.c", dir)) &&
           compile_driver(c, &home, o, dir, result) &&
           cli_install(c, result, o->out ? o->out : default_name(c, o, stem));
}

bool cli_emit(Ctx *c, const Plan *p, const Target *t, const CliOptions *o, const char *stem) {
    const char *dir = cli_temp_dir(c, o);
    if (!dir) return false;
    const char *path = arena_printf(c->a, "%s/result", dir);
    TargetOptions to = target_options(o);
    EmitKind kind = o->emit == OUT_LLVM || o->emit == OUT_CUDA ? EMIT_IR_TEXT
                    : o->emit == OUT_ASM ? EMIT_ASM
                                         : EMIT_OBJECT;
    bool ok = o->emit == OUT_C ? host_emit(c, p, path) : t->emit_kernels(c, p, &to, kind, path);
    return ok && cli_install(c, path, o->out ? o->out : default_name(c, o, stem));
}
