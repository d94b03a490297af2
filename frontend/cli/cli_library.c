/* What --emit=lib makes of a model's objects: a header, a shared and a static library, and what
 * pkg-config and CMake read.
 *
 * Any number of models may be in one program.  Of each the symbol NAME_program is seen and nothing
 * else: in the static library all else is local, kernels and the user's functions too.  A shared
 * library with a runtime of its own exports that runtime's gnnc_* as well, and is bound to it
 * (-Bsymbolic): which of several libraries' gnnc_* a program calls does not matter then, as each
 * keeps no state and refuses a model of another version. */
#include "frontend/cli/cli.h"
#include "runtime/program.h"

#include <string.h>
#include <unistd.h>

/* Of the runtime a library that only predicts takes the part for that, which needs libc and libm
 * alone; unless it brings the half on a GPU, which calls more. */
static bool predicts(const CliParts *l) {
    return l->o->emit == OUT_LIB && l->o->infer && !l->p->device;
}

static const char *runtime_of(const CliParts *l) {
    return predicts(l) ? l->home->infer_lib : l->home->lib;
}

static const char *flags_of(const CliParts *l) {
    return predicts(l) ? l->home->infer_flags : l->home->link_flags;
}

/* ---- the shared library ---------------------------------------------------------------- */
/* Adds the arguments by which the shared library exports the model's names alone (and the
 * runtime's, if it is within). False after a diagnostic. */
static bool export_args(Ctx *c, const CliParts *l, CliArgs *args) {
    const char *path = arena_printf(c->a, "%s/exports.map", l->dir);
    const char *map = arena_printf(
        c->a, "{ global: %s%s_program; %s local: *; };\n", l->o->shared_runtime ? "" : "gnnc_*; ",
        l->o->name, l->o->rows ? arena_printf(c->a, "%s_program;", cli_rows_name(c, l->o)) : "");
    cli_linker_arg(c, args, "-Bsymbolic");
    cli_linker_arg(c, args, arena_printf(c->a, "--version-script=%s", path));
    return cli_write(c, path, map, strlen(map));
}

/* Adds the arguments that link the shared runtime. When the library is loaded, the runtime is
 * looked for beside it ($ORIGIN), then where it is now. False after a diagnostic. */
static bool add_shared_runtime(Ctx *c, const CliParts *l, CliArgs *args) {
    if (access(l->home->so, R_OK) != 0) {
        diag_add(c, DIAG_E0002, (Span){0},
                 "the shared runtime is not where gnnc looks for it: '%s'", l->home->so);
        return false;
    }
    cli_linker_arg(c, args, "-rpath");
    cli_linker_arg(c, args, "$ORIGIN");
    return (!l->p->device || cli_cuda_libraries(c, l->home, true, args)) &&
           cli_link_shared(c, args, l->home->so);
}

/* Adds the arguments that link the whole runtime into the shared library. False after a
 * diagnostic. */
static bool own_runtime(Ctx *c, const CliParts *l, CliArgs *args) {
    cli_arg(c, args, "-Wl,--whole-archive");
    cli_arg(c, args, runtime_of(l));
    cli_arg(c, args, "-Wl,--no-whole-archive");
    return !l->p->device || cli_cuda_libraries(c, l->home, false, args);
}

/* Links the objects to the shared library `path`. soname: the name that programs look for; NULL
 * = none. */
bool cli_link_library(Ctx *c, const CliParts *l, const char *soname, const char *path) {
    CliArgs args = {0};
    cli_cc(c, &args, "-shared");
    if (soname) cli_linker_arg(c, &args, arena_printf(c->a, "-soname=%s", soname));
    if (!export_args(c, l, &args)) return false;
    cli_arg(c, &args, "-o");
    cli_arg(c, &args, path);
    cli_args(c, &args, &l->objects);
    if (l->o->rows) cli_arg(c, &args, l->o->rows);
    if (l->o->emit == OUT_PYTHON) cli_arg(c, &args, "-Wl,-s"); /* to be sent to others */
    cli_args(c, &args, &l->shared);
    if (!(l->o->shared_runtime ? add_shared_runtime : own_runtime)(c, l, &args)) return false;
    cli_line_args(c, &args, l->o->shared_runtime ? l->home->link_flags : flags_of(l));
    return cli_run_tool(c, &args, l->o->verbose || (l->p->device && l->o->keep));
}

/* ---- the static library -------------------------------------------------------------------- */
/* Joins the model's objects to one, whose only global name is the model's program. nvcc and C++
 * make groups of sections, which the linker would take for those of another model, so they are
 * dissolved. False after a diagnostic. */
bool cli_one_object(Ctx *c, const CliParts *l, const char *object) {
    CliArgs join = {0}, hide = {0};
    cli_cc(c, &join, "-r -nostdlib -o");
    cli_arg(c, &join, object);
    if (l->p->device) cli_linker_arg(c, &join, "--force-group-allocation");
    cli_args(c, &join, &l->objects);
    cli_arg(c, &hide, "objcopy");
    cli_arg(c, &hide, arena_printf(c->a, "--keep-global-symbol=%s_program", l->o->name));
    cli_arg(c, &hide, object);
    return cli_run_tool(c, &join, l->o->verbose) && cli_run_tool(c, &hide, l->o->verbose);
}

/* Makes the static library: one object, whose only global names are the model's. */
static bool make_archive(Ctx *c, const CliParts *l, const char *archive) {
    CliArgs args = {0};
    const char *object = arena_printf(c->a, "%s/%s.o", l->dir, l->o->name);
    if (!cli_one_object(c, l, object)) return false;
    cli_split_args(c, &args, "ar rcs");
    cli_arg(c, &args, archive);
    cli_arg(c, &args, object);
    return cli_run_tool(c, &args, l->o->verbose);
}

/* The arguments with "-Xlinker -rpath -Xlinker DIR" as one word, since pkg-config drops words
 * that it has seen. */
static CliArgs in_one_word(Ctx *c, const CliArgs *args) {
    CliArgs out = {0};
    for (int i = 0; i < args->n; i++) {
        StrBuf b = sb_new(c->a);
        bool after = strcmp(args->v[i], "-Xlinker") == 0;
        for (; i + 1 < args->n && !strcmp(args->v[i], "-Xlinker"); i += 2)
            sb_printf(&b, "%s,%s", b.n ? "" : "-Wl", args->v[i + 1]);
        if (after) i--;
        cli_arg(c, &out, after ? b.s : args->v[i]);
    }
    return out;
}

/* The arguments that a program needs that links the static library: the runtime and other
 * libraries. */
static CliArgs static_needs(Ctx *c, const CliParts *l) {
    CliArgs args = {0};
    cli_args(c, &args, &l->shared);
    if (l->p->device) cli_cuda_libraries(c, l->home, false, &args); /* which were found before */
    if (!l->p->device) cli_arg(c, &args, runtime_of(l));
    cli_line_args(c, &args, flags_of(l));
    return in_one_word(c, &args);
}

/* ---- pkg-config and CMake -------------------------------------------------------------------- */
/* A word of a flag list in a .pc file, which is read as a shell reads words; "${pcfiledir}" is
 * written apart. */
static void pc_word(StrBuf *b, const char *s) {
    for (; *s; s++) {
        if (strchr(" \t\"'\\#()&;|<>*?`~", *s)) sb_puts(b, "\\");
        sb_puts(b, *s == '$' ? "$$" : arena_printf(b->a, "%c", *s));
    }
}

/* Writes arguments as a pkg-config file has them. */
static void pc_words(StrBuf *b, const CliArgs *args) {
    for (int i = 0; i < args->n; i++) {
        sb_puts(b, " ");
        pc_word(b, args->v[i]);
    }
}

static const char *directory_of(Ctx *c, const char *path) {
    return arena_strndup(c->a, path, (size_t)(strrchr(path, '/') - path));
}

/* The text of the pkg-config file of a library. */
static const char *pc_text(Ctx *c, const CliParts *l, const char *base) {
    StrBuf b = sb_new(c->a);
    CliArgs needs = static_needs(c, l);
    sb_printf(&b, "libdir=${pcfiledir}\nincludedir=${pcfiledir}\n\nName: %s\n", base);
    sb_printf(&b, "Description: the model %s, compiled by gnnc\nVersion: %s\n", l->o->name,
              GNNC_VERSION_TEXT);
    sb_printf(&b, "Cflags: -I${includedir} -I");
    pc_word(&b, l->home->api);
    sb_printf(&b, "\nLibs: -L${libdir} -l%s", base);
    if (l->o->shared_runtime) {
        sb_puts(&b, " -L");
        pc_word(&b, directory_of(c, l->home->so));
        sb_puts(&b, " -lgnnrt");
    }
    sb_puts(&b, "\nLibs.private:");
    pc_words(&b, &needs);
    sb_puts(&b, "\n");
    return b.s;
}

/* A string as CMake reads it: in a bracket argument, where nothing has a meaning. */
static const char *cmake_string(Ctx *c, const char *s) {
    const char *bars = "=";
    while (strstr(s, arena_printf(c->a, "]%s]", bars))) bars = arena_printf(c->a, "%s=", bars);
    return arena_printf(c->a, "[%s[%s]%s]", bars, s, bars);
}

/* The text of the file by which CMake finds a library. */
static const char *cmake_text(Ctx *c, const CliParts *l, const char *base) {
    StrBuf b = sb_new(c->a);
    CliArgs needs = static_needs(c, l);
    sb_printf(&b,
              "# %s::%s is the shared library, %s::static the other one.\n"
              "if(NOT TARGET %s::%s)\n"
              "  add_library(%s::%s SHARED IMPORTED)\n"
              "  set_target_properties(%s::%s PROPERTIES\n"
              "    IMPORTED_LOCATION \"${CMAKE_CURRENT_LIST_DIR}/lib%s.so.%d\"\n"
              "    IMPORTED_SONAME lib%s.so.%d)\n"
              "  add_library(%s::static STATIC IMPORTED)\n"
              "  set_target_properties(%s::static PROPERTIES\n"
              "    IMPORTED_LOCATION \"${CMAKE_CURRENT_LIST_DIR}/lib%s.a\"\n"
              "    IMPORTED_LINK_INTERFACE_LANGUAGES C)\n",
              base, base, base, base, base, base, base, base, base, base, RT_SO_VERSION, base,
              RT_SO_VERSION, base, base, base);
    for (int i = 0; i < 2; i++) {
        const char *target = i ? "static" : base;
        sb_printf(&b,
                  "  target_include_directories(%s::%s INTERFACE \"${CMAKE_CURRENT_LIST_DIR}\" "
                  "%s)\n",
                  base, target, cmake_string(c, l->home->api));
    }
    if (l->o->shared_runtime)
        sb_printf(&b, "  target_link_libraries(%s::%s INTERFACE %s)\n", base, base,
                  cmake_string(c, l->home->so));
    sb_printf(&b, "  target_link_libraries(%s::static INTERFACE", base);
    for (int i = 0; i < needs.n; i++) sb_printf(&b, " %s", cmake_string(c, needs.v[i]));
    sb_puts(&b, ")\nendif()\n");
    return b.s;
}

/* ---- all of it ------------------------------------------------------------------------------- */
typedef VEC(CliFile) Files;

/* A path in the private directory to make a file at; it is noted that the file goes to `dir`
 * when it is finished. */
static const char *made(Ctx *c, const CliParts *l, Files *f, const char *dir, const char *name) {
    const char *from = arena_printf(c->a, "%s/%s", l->dir, name);
    vec_push(c->a, f, ((CliFile){.from = from, .to = arena_printf(c->a, "%s%s", dir, name)}));
    return from;
}

static bool text(Ctx *c, const char *path, const char *s) {
    return cli_write(c, path, s, strlen(s));
}

/* Makes all files of --emit=lib and puts them in their places. False after a diagnostic. */
bool cli_make_library(Ctx *c, const CliParts *l, CliLibrary n) {
    Files f = {0};
    const char *so = arena_printf(c->a, "lib%s.so", n.base);
    const char *soname = arena_printf(c->a, "%s.%d", so, RT_SO_VERSION);
    bool ok =
        cli_link_library(c, l, soname, made(c, l, &f, n.dir, soname)) &&
        make_archive(c, l, made(c, l, &f, n.dir, arena_printf(c->a, "lib%s.a", n.base))) &&
        text(c, made(c, l, &f, n.dir, arena_printf(c->a, "%s.h", n.base)), host_header(c, l->p)) &&
        text(c, made(c, l, &f, n.dir, arena_printf(c->a, "%s.pc", n.base)),
             pc_text(c, l, n.base)) &&
        text(c, made(c, l, &f, n.dir, arena_printf(c->a, "%sConfig.cmake", n.base)),
             cmake_text(c, l, n.base));
    vec_push(c->a, &f, ((CliFile){.link = soname, .to = arena_printf(c->a, "%s%s", n.dir, so)}));
    return ok && cli_install_all(c, f.v, f.n);
}

const char *cli_rows_name(Ctx *c, const CliOptions *o) {
    return arena_printf(c->a, "%s_rows", o->name ? o->name : "model");
}
