/* The CUDA Toolkit: where it is, and kernels.cu through nvcc to an object.
 *
 * CUDA_HOME names it where it is set, and then nothing else is looked at; else nvcc of PATH,
 * else the place where NVIDIA's installer puts it. */
#include "codegen/report/report.h"
#include "frontend/cli/cli.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *nvcc_in(Ctx *c, const char *dir, size_t n, const char *below) {
    const char *path = arena_printf(c->a, "%.*s%s/nvcc", (int)n, dir, below);
    return access(path, X_OK) == 0 ? path : NULL;
}

/* The path of nvcc: in CUDA_HOME alone if that is set, else in PATH or /usr/local/cuda. NULL:
 * there is none. */
const char *cli_find_nvcc(Ctx *c) {
    const char *home = getenv("CUDA_HOME"), *path = getenv("PATH"), *found = NULL;
    if (home && *home) return nvcc_in(c, home, strlen(home), "/bin");
    while (path && *path && !found) {
        size_t n = strcspn(path, ":");
        found = nvcc_in(c, path, n, "");
        path += n + (path[n] == ':');
    }
    return found ? found : nvcc_in(c, "/usr/local/cuda", strlen("/usr/local/cuda"), "/bin");
}

/* The targets of a list, "cpu,cuda". */
static CliTargets named(Ctx *c, const char *list) {
    CliTargets on = {0};
    while (*list) {
        size_t n = strcspn(list, ",");
        const Target *t = target_find(arena_strndup(c->a, list, n));
        list += n + (list[n] == ',');
        if (t && t->plan_passes)
            on.device = t;
        else
            on.host = t;
    }
    return on;
}

/* What to compile for, as --target says: "auto" is the CPU, and CUDA if a program is made and
 * the toolkit is there. */
CliTargets cli_targets(Ctx *c, const CliOptions *o) {
    if (o->emit == OUT_CUDA) return (CliTargets){.device = &target_cuda};
    if (strcmp(o->target, "auto") != 0) return named(c, o->target);
    CliHome h;
    bool here = cli_makes_program(o) && cli_find_home(c, &h) && cli_find_nvcc(c);
    const bool cuda = here && access(h.cuda_lib, R_OK) == 0;
    return (CliTargets){&target_cpu, cuda ? &target_cuda : NULL};
}

/* Adds the arguments of nvcc for a list "sm_80,sm_90": machine code for each, and PTX of the
 * last for GPUs that come after. */
static void arch_args(Ctx *c, CliArgs *args, const char *archs) {
    while (*archs) {
        size_t n = strcspn(archs, ",");
        const char *number = arena_strndup(c->a, archs, n);
        if (!strncmp(number, "sm_", 3)) number += 3;
        archs += n + (archs[n] == ',');
        cli_arg(c, args, "-gencode");
        cli_arg(c, args,
                *archs ? arena_printf(c->a, "arch=compute_%s,code=sm_%s", number, number)
                       : arena_printf(c->a, "arch=compute_%s,code=[sm_%s,compute_%s]", number,
                                      number, number));
    }
}

/* Adds a path, behind `before`, to a command of nvcc, which hands it to a shell. False after a
 * diagnostic: the shell would not take the path as it is. */
static bool path_arg(Ctx *c, CliArgs *args, const char *before, const char *path) {
    const char *s = path;
    while (*s && !strchr("$`\"'\\,", *s) && (unsigned char)*s >= ' ') s++;
    if (*s)
        diag_add(c, DIAG_E0004, (Span){0},
                 "nvcc works through a shell, which would take '%s' for something else: the paths "
                 "of TMPDIR, of the CUDA Toolkit, of gnnc and of .cu files must be without "
                 "$ ` \" ' \\ , and control characters",
                 path);
    cli_arg(c, args, arena_printf(c->a, "%s%s", before, path));
    return !*s;
}

/* The GPUs that are compiled for without --cuda-arch. Blackwell is known from CUDA 12.8 on,
 * which the headers beside nvcc tell. */
static const char *usual_archs(Ctx *c, const char *nvcc) {
    char real[PATH_MAX], line[256];
    int version = 0;
    if (!realpath(nvcc, real)) return "sm_80,sm_90";
    *strrchr(real, '/') = '\0';
    FILE *f = fopen(arena_printf(c->a, "%s/../include/cuda_runtime_api.h", real), "r");
    while (f && !version && fgets(line, sizeof line, f))
        if (sscanf(line, "#define CUDART_VERSION %d", &version) != 1) version = 0;
    if (f) fclose(f);
    return version >= 12080 ? "sm_80,sm_90,sm_100" : "sm_80,sm_90";
}

/* Compiles a CUDA source to an object with nvcc. False after a diagnostic. */
bool cli_cuda_object(Ctx *c, const CliHome *h, const CliOptions *o, const char *source,
                     const char *object) {
    const char *nvcc = cli_find_nvcc(c);
    if (!nvcc) {
        diag_add(c, DIAG_E0513, (Span){0},
                 "--target=cuda needs the CUDA Toolkit, and there is no nvcc in CUDA_HOME or PATH");
        return false;
    }
    CliArgs args = {0};
    bool ok = path_arg(c, &args, "", nvcc);
    cli_split_args(c, &args, "-std=c++17 -O3 -Xcompiler -fPIC --threads 0");
    arch_args(c, &args, o->cuda_arch ? o->cuda_arch : usual_archs(c, nvcc));
    for (int i = 0; ok && i < 2 && h->include[i]; i++) ok = path_arg(c, &args, "-I", h->include[i]);
    cli_split_args(c, &args, "-c -o");
    ok = ok && path_arg(c, &args, "", object) && path_arg(c, &args, "", source);
    return ok && cli_run_tool(c, &args, o->verbose || o->keep);
}

/* ---- what the assembler says -------- */
/* The number that stands before `word` in the first line of s; 0: there is none. */
static int number_before(const char *s, const char *word) {
    const char *end = s + strcspn(s, "\n"), *at = strstr(s, word);
    if (!at || at > end) return 0;
    while (at > s && at[-1] == ' ') at--;
    while (at > s && at[-1] >= '0' && at[-1] <= '9') at--;
    return (int)strtol(at, NULL, 10);
}

/* The name of a function in C++'s mangled one of n bytes: "_Z14gcn_train_z_13Pf..". */
static const char *plain_name(Ctx *c, const char *s, size_t n) {
    if (n < 3 || strncmp(s, "_Z", 2) != 0) return arena_strndup(c->a, s, n);
    char *name;
    size_t own = strtoul(s + 2 + (s[2] == 'L'), &name, 10);
    if (own > n || name + own > s + n) return arena_strndup(c->a, s, n);
    return arena_strndup(c->a, name, own);
}

/* ptxas -v: "Compiling entry function 'NAME' for ..", spills, then "Used 32 registers, ..". */
static void read_usage(Ctx *c, const char *text, ReportBuilts *to) {
    static const char entry[] = "Compiling entry function '";
    for (const char *s = text; (s = strstr(s, entry));) {
        s += sizeof entry - 1;
        const char *next = strstr(s, entry), *used = strstr(s, "Used "),
                   *frame = strstr(s, " bytes stack frame");
        ReportBuilt x = {.name = plain_name(c, s, strcspn(s, "'"))};
        if (!used || (next && used > next)) continue;
        x.registers = number_before(used, " registers");
        x.shared_bytes = number_before(used, " bytes smem");
        if (frame && frame < used) {
            while (frame > s && frame[-1] != '\n') frame--;
            x.stack_bytes = number_before(frame, " bytes stack frame");
            x.spill_bytes = number_before(frame, " bytes spill stores");
        }
        vec_push(c->a, to, x);
    }
}

/* Runs a command with all that it prints going to the file `told`. True: it ended with 0. */
static bool quiet(Ctx *c, CliArgs *args, const char *told) {
    CliArgs sh = {0};
    int code = 0;
    cli_arg(c, &sh, "/bin/sh");
    cli_arg(c, &sh, "-c");
    cli_arg(c, &sh, "exec \"$@\" >\"$0\" 2>&1");
    cli_arg(c, &sh, told);
    cli_args(c, &sh, args);
    return cli_run_command(c, &sh, &code) && code == 0;
}

/* Compiles kernels to PTX for one GPU and reads what ptxas says of each. False: *why there is
 * none; no diagnostic. */
bool cli_cuda_assemble(Ctx *c, const CliHome *h, const CliOptions *o, const char *source,
                       const char *dir, const char **ptx, size_t *n, ReportBuilts *built,
                       const char **why) {
    const char *nvcc = cli_find_nvcc(c), *out = arena_printf(c->a, "%s/kernels.ptx", dir);
    const char *told = arena_printf(c->a, "%s/ptxas.txt", dir), *arch = "sm_90";
    struct stat s;
    *why = "there is no nvcc in CUDA_HOME or PATH";
    if (!nvcc) return false;
    if (o->cuda_arch) arch = arena_strndup(c->a, o->cuda_arch, strcspn(o->cuda_arch, ","));
    CliArgs args = {0}, as = {0};
    bool ok = path_arg(c, &args, "", nvcc);
    cli_split_args(c, &args, "-std=c++17 -O3 -lineinfo -ptx -arch");
    cli_arg(c, &args, arch);
    for (int i = 0; ok && i < 2 && h->include[i]; i++) ok = path_arg(c, &args, "-I", h->include[i]);
    cli_arg(c, &args, "-o");
    ok = ok && path_arg(c, &args, "", out) && path_arg(c, &args, "", source);
    const char *slash = strrchr(nvcc, '/');
    cli_arg(c, &as, arena_printf(c->a, "%.*s/ptxas", (int)(slash - nvcc), nvcc));
    cli_split_args(c, &as, "-v -o /dev/null -arch");
    cli_arg(c, &as, arch);
    cli_arg(c, &as, out);
    *why = "nvcc could not compile the kernels; --emit=exe -v shows why";
    if (!ok || !quiet(c, &args, told) || !quiet(c, &as, told)) return false;
    const char *usage = cli_read(c, told, &s);
    if (!usage) return false;
    read_usage(c, usage, built);
    *ptx = cli_read(c, out, &s);
    *n = *ptx ? (size_t)s.st_size : 0;
    return *ptx != NULL;
}

bool cli_cuda_usage(Ctx *c, const Plan *p, const CliOptions *cli, ReportOptions *o,
                    ReportBuilts *built) {
    const TargetOptions to = {cli->march, cli->opt_level, true};
    const char *dir = cli_temp_dir(c, cli), *ptx;
    CliHome home;
    size_t n;
    if (!dir || !cli_find_home(c, &home)) return false;
    const char *source = arena_printf(c->a, "%s/usage.cu", dir);
    if (!target_cuda.emit_kernels(c, p, &to, EMIT_IR_TEXT, source)) return false;
    if (cli_cuda_assemble(c, &home, cli, source, dir, &ptx, &n, built, &o->not_built))
        o->built = built;
    return c->n_errors == 0;
}

/* Adds what a program with CUDA kernels links. False after a diagnostic: gnnc was built without
 * CUDA. */
bool cli_cuda_libraries(Ctx *c, const CliHome *h, bool shared_runtime, CliArgs *args) {
    if (access(h->cuda_lib, R_OK) != 0) {
        diag_add(c, DIAG_E0513, (Span){0},
                 "this gnnc was built without the CUDA Toolkit: '%s' is missing; run make again",
                 h->cuda_lib);
        return false;
    }
    cli_arg(c, args, h->cuda_lib);
    if (!shared_runtime) cli_arg(c, args, h->lib);
    cli_line_args(c, args, h->cuda_flags);
    return true;
}
