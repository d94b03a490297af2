/* The CUDA Toolkit: where it is, and kernels.cu through nvcc to an object.
 *
 * CUDA_HOME names it where it is set, and then nothing else is looked at; else nvcc of PATH,
 * else the place where NVIDIA's installer puts it. */
#include "frontend/cli/cli.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *nvcc_in(Ctx *c, const char *dir, size_t n, const char *below) {
    const char *path = arena_printf(c->a, "%.*s%s/nvcc", (int)n, dir, below);
    return access(path, X_OK) == 0 ? path : NULL;
}

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

/* The words of "cpu,cuda". */
static CliTargets named(Ctx *c, const char *list) {
    CliTargets on = {0};
    while (*list) {
        size_t n = strcspn(list, ",");
        const Target *t = target_find(arena_strndup(c->a, list, n));
        list += n + (list[n] == ',');
        if (t == &target_cuda)
            on.cuda = true;
        else
            on.host = t;
    }
    return on;
}

/* Texts and objects are for one target, the cpu where nothing was said. */
CliTargets cli_targets(Ctx *c, const CliOptions *o) {
    if (o->emit == OUT_CUDA) return (CliTargets){.cuda = true};
    if (strcmp(o->target, "auto") != 0) return named(c, o->target);
    CliHome h;
    bool here = cli_makes_program(o) && cli_find_home(c, &h) && cli_find_nvcc(c);
    return (CliTargets){&target_cpu, here && access(h.cuda_lib, R_OK) == 0};
}

/* "sm_80,sm_90": machine code for each, and PTX of the last for what comes after. */
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

/* nvcc hands what it is given to a shell, between quotes at best, and splits lists at commas. */
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

/* Blackwell is known from CUDA 12.8 on: what the headers beside nvcc say. */
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
