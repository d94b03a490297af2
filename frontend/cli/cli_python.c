/* What --emit=python makes of a model: a package, DIR/churn, that Python imports as it is, and the
 * wheel of it.  Its library has the program that trains, the one that predicts rows where the model
 * has one, and the runtime; the code around it is the same for all models (runtime/python), which
 * only _facts.py tells apart. */
#include "frontend/cli/cli.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { MODE_TEXT = 0644, MODE_LIBRARY = 0755 };
static const char *const shared_files[] = {"_abi.py",     "_graph.py",   "_trainer.py",
                                           "_session.py", "_encoder.py", "_legend.py"};

typedef struct {
    Ctx *c;
    const CliParts *l;
    CliLibrary n;
    VEC(CliFile) files;
    VEC(CliWheelFile) packed;
} Package;

/* The name of the wheel's distribution, which is in small letters. */
static const char *distribution(Ctx *c, CliLibrary n) {
    char *s = arena_strndup(c->a, n.base, strlen(n.base));
    for (char *p = s; *p; p++) *p = (char)tolower((unsigned char)*p);
    return s;
}

static const char *tag(Ctx *c) {
    struct utsname u;
    return arena_printf(c->a, "py3-none-linux_%s", uname(&u) == 0 ? u.machine : "unknown");
}

const char *cli_wheel_path(Ctx *c, CliLibrary n) {
    return arena_printf(c->a, "%s%s-%s-%s.whl", n.dir, distribution(c, n), GNNC_VERSION_TEXT,
                        tag(c));
}

/* ---- the package's files -------------------------------------------------------------------- */
static const char *in_package(const Package *k, const char *name) {
    return arena_printf(k->c->a, "%s/%s", k->n.base, name);
}

/* Adds a file of the private directory to the package and to its wheel. False after a
 * diagnostic. */
static bool add_file(Package *k, const char *name, unsigned mode) {
    Ctx *c = k->c;
    struct stat s;
    const char *from = arena_printf(c->a, "%s/%s", k->l->dir, name), *text = cli_read(c, from, &s);
    if (!text) {
        diag_add(c, DIAG_E0002, (Span){0}, "cannot read '%s': %s", from, strerror(errno));
        return false;
    }
    CliFile f = {.from = from, .to = arena_printf(c->a, "%s%s", k->n.dir, in_package(k, name))};
    CliWheelFile w = {in_package(k, name), text, (size_t)s.st_size, mode};
    vec_push(c->a, &k->files, f);
    vec_push(c->a, &k->packed, w);
    return true;
}

static bool add_text(Package *k, const char *name, const char *text) {
    const char *path = arena_printf(k->c->a, "%s/%s", k->l->dir, name);
    return cli_write(k->c, path, text, strlen(text)) && add_file(k, name, MODE_TEXT);
}

/* The text of a Python file that the packages of all models have. NULL after a diagnostic. */
static const char *shared_text(Ctx *c, const CliHome *h, const char *name) {
    struct stat s;
    const char *path = arena_printf(c->a, "%s/%s", h->python, name);
    const char *text = cli_read(c, path, &s);
    if (!text)
        diag_add(c, DIAG_E0002, (Span){0}, "gnnc's Python code is not where it looks for it: '%s'",
                 path);
    return text;
}

/* Adds the Python files that all packages have. False after a diagnostic. */
static bool add_shared(Package *k) {
    for (size_t i = 0; i < COUNT(shared_files); i++) {
        const char *text = shared_text(k->c, k->l->home, shared_files[i]);
        if (!text || !add_text(k, shared_files[i], text)) return false;
    }
    return true;
}

/* Adds the Python files that are written for this model. library: the name of its shared
 * library. */
static bool add_written(Package *k, const char *library) {
    Ctx *c = k->c;
    const CliOptions *o = k->l->o;
    HostPackage p = {k->n.base, library,
                     o->rows ? arena_printf(c->a, "%s_program", cli_rows_name(c, o)) : NULL,
                     o->no_rows};
    const char *init = shared_text(c, k->l->home, "__init__.py");
    return init &&
           add_text(k, "__init__.py",
                    arena_printf(c->a, "%s%s", host_python_doc(c, k->l->p, &p), init)) &&
           add_text(k, "_facts.py", host_python_facts(c, k->l->p, &p)) &&
           add_text(k, "py.typed", "");
}

/* ---- all of it -------- */
/* Packs all files of the package into a wheel, which is one of the results. */
static bool add_wheel(Package *k) {
    Ctx *c = k->c;
    const char *to = cli_wheel_path(c, k->n), *from = arena_printf(c->a, "%s/wheel", k->l->dir);
    const CliWheel w = {
        k->n.base,   distribution(c, k->n),
        tag(c),      arena_printf(c->a, "the model %s, compiled by gnnc", k->l->o->name),
        k->packed.v, k->packed.n};
    vec_push(c->a, &k->files, ((CliFile){.from = from, .to = to}));
    return cli_wheel(c, &w, from);
}

/* Puts all files in their places, or none. If it fails, a directory that was made for them is
 * removed. False after a diagnostic. */
static bool install(Package *k) {
    const char *dir = arena_printf(k->c->a, "%s%s", k->n.dir, k->n.base);
    bool made = mkdir(dir, 0777) == 0;
    if (!made && errno != EEXIST) {
        diag_add(k->c, DIAG_E0003, (Span){0}, "cannot make the directory '%s': %s", dir,
                 strerror(errno));
        return false;
    }
    bool ok = cli_install_all(k->c, k->files.v, k->files.n);
    if (!ok && made) rmdir(dir);
    return ok;
}

/* Makes the Python package of --emit=python and its wheel. False after a diagnostic. */
bool cli_make_package(Ctx *c, const CliParts *l, CliLibrary n) {
    Package k = {.c = c, .l = l, .n = n};
    const char *library = arena_printf(c->a, "lib%s.so", n.base);
    return cli_link_library(c, l, NULL, arena_printf(c->a, "%s/%s", l->dir, library)) &&
           add_written(&k, library) && add_shared(&k) && add_file(&k, library, MODE_LIBRARY) &&
           add_wheel(&k) && install(&k);
}
