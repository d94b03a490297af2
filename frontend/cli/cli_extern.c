/* The user's C functions: their files, compiled or as they are, and how they are linked. */
#include "frontend/cli/cli.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/data/io.h"

typedef VEC(const char *) Files;

/* The files of the C functions that the plan calls, each once. */
static Files files_of(Ctx *c, const Plan *p) {
    Files files = {0};
    for (int i = 0; i < p->phases.n; i++)
        for (int k = 0; k < p->phases.v[i]->steps.n; k++) {
            const PStep *s = p->phases.v[i]->steps.v[k];
            bool known = s->kind != PS_CALL;
            for (int j = 0; !known && j < files.n; j++)
                known = strcmp(files.v[j], s->op->ext->file) == 0;
            if (!known) vec_push(c->a, &files, s->op->ext->file);
        }
    return files;
}

/* Compiles a user's C file to an object, with the declarations that its functions must have. */
static bool compile(Ctx *c, const CliHome *h, const CliOptions *o, const char *dir,
                    const char *file, const char *object) {
    CliArgs args = {0};
    cli_cc_compile(c, &args, "-O2");
    cli_split_args(c, &args, "-fPIC -c -include");
    cli_arg(c, &args, arena_printf(c->a, "%s/externs.h", dir));
    for (int i = 0; i < 2 && h->include[i]; i++)
        cli_arg(c, &args, arena_printf(c->a, "-I%s", h->include[i]));
    cli_arg(c, &args, "-o");
    cli_arg(c, &args, object);
    cli_arg(c, &args, file);
    return cli_run_tool(c, &args, o->verbose);
}

/* Not an option, nor a file of options, whatever it is called. */
static const char *as_path(Ctx *c, const char *file) {
    return *file == '/' ? file : arena_printf(c->a, "./%s", file);
}

/* A shared library is found again where it is now.  A run path is a list whose ':' nothing escapes,
 * and '$' in it begins a word of the loader's. */
bool cli_link_shared(Ctx *c, CliArgs *args, const char *file) {
    char real[PATH_MAX];
    const char *path =
        realpath(file, real) ? arena_strndup(c->a, real, strlen(real)) : as_path(c, file);
    int n = (int)(strrchr(path, '/') - path);
    const char *dir = arena_strndup(c->a, path, (size_t)n);
    if (strpbrk(dir, ":$")) {
        diag_add(c, DIAG_E0004, (Span){0},
                 "'%s' cannot be found again by the program: its directory has ':' or '$' in it",
                 path);
        return false;
    }
    cli_arg(c, args, path);
    cli_linker_arg(c, args, "-rpath");
    cli_linker_arg(c, args, dir);
    return true;
}

/* Compiles the user's C and CUDA functions that the plan calls. objects: what is linked into the
 * program; shared: libraries. False after a diagnostic. */
bool cli_extern_objects(Ctx *c, const Plan *p, const CliHome *h, const CliOptions *o,
                        const char *dir, CliArgs *objects, CliArgs *shared) {
    Files files = files_of(c, p);
    if (files.n && !host_externs(c, p, arena_printf(c->a, "%s/externs.h", dir))) return false;
    for (int i = 0; i < files.n; i++) {
        const char *file = as_path(c, files.v[i]);
        const char *object = arena_printf(c->a, "%s/extern%d.o", dir, i);
        if (!ctx_may_read(c, files.v[i])) {
            diag_add(c, DIAG_E0002, (Span){0},
                     "cannot read '%s': only the files that were given are", files.v[i]);
            return false;
        }
        if (rt_ends_with(file, ".so")) {
            if (!cli_link_shared(c, shared, file)) return false;
            continue;
        }
        if (rt_ends_with(file, ".cu") && !p->device) {
            diag_add(c, DIAG_E0513, (Span){0}, "'%s' is CUDA, and the program is for the cpu",
                     file);
            return false;
        }
        if (rt_ends_with(file, ".cu") && !cli_cuda_object(c, h, o, file, object)) return false;
        if (rt_ends_with(file, ".c") && !compile(c, h, o, dir, file, object)) return false;
        bool made = rt_ends_with(file, ".c") || rt_ends_with(file, ".cu");
        cli_arg(c, objects, made ? object : file);
    }
    return true;
}
