/* Files of the command line: where the runtime is, temporary directories, and output
 * that appears whole or not at all (written beside its place, then renamed). */
#include "frontend/cli/cli.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- where things are ------------------------------------------------------------- */
static const char *folder_of(Ctx *c, const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? arena_strndup(c->a, path, (size_t)(slash - path)) : ".";
}

/* The folder of the program or shared library that this code is in, unless the caller has set
 * one. */
static const char *own_dir(Ctx *c) {
    char path[PATH_MAX];
    Dl_info info;
    struct link_map *map = NULL;
    if (c->outside.home) return c->outside.home;
    bool known = dladdr1((void *)(uintptr_t)own_dir, &info, (void **)&map, RTLD_DL_LINKMAP) != 0;
    if (known && map && *map->l_name && realpath(map->l_name, path)) return folder_of(c, path);
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0) return ".";
    path[n] = 0;
    return folder_of(c, path);
}

static bool exists(const char *path) {
    return access(path, R_OK) == 0;
}

/* The path of `name` in `dir`, which is absolute and has no links: "../" is taken off the text,
 * so that paths in messages read well. */
static const char *join(Ctx *c, const char *dir, const char *name) {
    size_t n = strlen(dir);
    for (; strncmp(name, "../", 3) == 0; name += 3)
        while (n && dir[--n] != '/') {
        }
    return arena_printf(c->a, "%.*s/%s", (int)n, dir, name);
}

/* The text of a file, "" if it cannot be read. No memory of the arena is taken while the file is
 * open, as running out of it jumps away. */
static const char *read_text(Ctx *c, const char *path) {
    struct stat s;
    size_t size = stat(path, &s) == 0 && S_ISREG(s.st_mode) ? (size_t)s.st_size : 0, n = 0;
    char *text = arena_alloc(c->a, size + 1, 1, 1);
    FILE *f = fopen(path, "r");
    if (f) {
        n = fread(text, 1, size, f);
        fclose(f);
    }
    text[n] = '\0';
    return text;
}

/* The folder of the runtime's files: that of gnnc in a build tree, LIBDIR/gnnc of an installation.
 * There gnnc itself is; BINDIR has a link to it, and libgnncc.so is beside the folder. */
static const char *home_dir(Ctx *c) {
    const char *dir = own_dir(c), *installed = join(c, dir, "gnnc");
    char path[PATH_MAX];
    struct stat s;
    if (exists(join(c, dir, "libgnnrt.a")) && !exists(join(c, installed, "paths"))) return dir;
    if (!realpath(installed, path) || stat(path, &s) != 0) return dir;
    return S_ISDIR(s.st_mode) ? arena_strndup(c->a, path, strlen(path)) : folder_of(c, path);
}

/* Sets the folders of headers and data as `make install` noted them in the runtime's folder;
 * NULL in a build tree, which has no such note. */
static void other_dirs(Ctx *c, const char *home, const char **include, const char **data) {
    const char *text = read_text(c, join(c, home, "paths")), *end = strchr(text, '\n');
    *include = *data = NULL;
    if (!end) return;
    *include = join(c, home, arena_strndup(c->a, text, (size_t)(end - text)));
    *data = join(c, home, arena_strndup(c->a, end + 1, strcspn(end + 1, "\n")));
}

/* Finds the runtime, its headers and what programs link, in a build tree or where they are
 * installed. False after a diagnostic. */
bool cli_find_home(Ctx *c, CliHome *h) {
    const char *lib = home_dir(c), *include, *data;
    other_dirs(c, lib, &include, &data);
    h->lib = join(c, lib, "libgnnrt.a");
    h->infer_lib = join(c, lib, "libgnnrt_infer.a");
    h->so = join(c, lib, include ? "../libgnnrt.so" : "libgnnrt.so");
    h->api = include ? include : join(c, lib, "../runtime/include");
    h->link_flags = read_text(c, join(c, lib, "link.flags"));
    h->infer_flags = read_text(c, join(c, lib, "infer.flags"));
    h->include[0] = include ? join(c, lib, "include") : h->api;
    h->include[1] = include ? NULL : join(c, lib, "../runtime");
    h->models = cli_models_dir(c);
    h->python = data ? join(c, data, "python") : join(c, lib, "../runtime/python");
    h->mpi_object = join(c, lib, "gnnrt_mpi.o");
    h->mpi_flags = read_text(c, join(c, lib, "mpi.flags"));
    h->cuda_lib = join(c, lib, "libgnnrt_cuda.a");
    h->cuda_flags = read_text(c, join(c, lib, "cuda.flags"));
    if (exists(h->lib)) return true;
    diag_add(c, DIAG_E0002, (Span){0}, "the runtime library is not where gnnc looks for it: '%s'",
             h->lib);
    return false;
}

/* The folder that has the library of layers; NULL: there is none. */
const char *cli_models_dir(Ctx *c) {
    const char *home = home_dir(c), *include, *data;
    other_dirs(c, home, &include, &data);
    const char *models = data ? join(c, data, "models") : join(c, home, "../models");
    c->outside.library = exists(models) ? models : NULL;
    return c->outside.library;
}

/* The name of a file without folder and suffix. */
const char *cli_stem(Arena *a, const char *path) {
    const char *base = strrchr(path, '/');
    base = base ? base + 1 : path;
    const char *dot = strrchr(base, '.');
    return arena_strndup(a, base, dot && dot != base ? (size_t)(dot - base) : strlen(base));
}

/* ---- temporary directory ------------------------------------------------------------ */
/* Removes one entry of the private directory; called by nftw, for contents before directories. */
static int remove_entry(const char *path, const struct stat *s, int kind, struct FTW *at) {
    (void)s, (void)kind, (void)at;
    remove(path);
    return 0;
}

static void remove_tree(void *dir) {
    nftw(dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

/* Makes a private directory, which is removed with the Ctx unless it is to be kept. Its path is
 * absolute, as tools take one that begins with '-' or '@' for something else. NULL after a
 * diagnostic. */
const char *cli_temp_dir(Ctx *c, const CliOptions *o) {
    const char *base = c->outside.temp ? c->outside.temp : getenv("TMPDIR");
    char real[PATH_MAX];
    if (!base || !*base) base = "/tmp";
    if (*base != '/' && realpath(base, real)) base = real;
    char *dir = arena_printf(c->a, "%s/gnnc-XXXXXX", base);
    if (!mkdtemp(dir)) {
        diag_add(c, DIAG_E0003, (Span){0}, "cannot make a directory '%s': %s", dir,
                 strerror(errno));
        return NULL;
    }
    if (o->keep)
        ctx_log(c, "gnnc: temporary files are kept in %s\n", dir);
    else
        ctx_defer(c, remove_tree, dir);
    return c->outside.temp = dir;
}

/* ---- output ---------------------------------------------------------------------------- */
static bool cannot_write(Ctx *c, const char *path) {
    diag_add(c, DIAG_E0003, (Span){0}, "cannot write '%s': %s", path, strerror(errno));
    return false;
}

bool cli_write_all(int fd, const void *from, size_t n) {
    for (const char *s = from; n;) {
        ssize_t k = write(fd, s, n);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return false;
        s += k;
        n -= (size_t)k;
    }
    return true;
}

/* The file that a path leads to, so that a link stays and its file is replaced. NULL: it cannot
 * be followed. */
static const char *follow_link(Ctx *c, const char *path) {
    char real[PATH_MAX];
    struct stat s;
    if (lstat(path, &s) != 0 || !S_ISLNK(s.st_mode)) return path;
    return realpath(path, real) ? arena_strndup(c->a, real, strlen(real)) : NULL;
}

/* Writes text to a temporary file beside `path`, to be renamed to it, and returns its name. NULL
 * after a diagnostic. */
static char *temp_beside(Ctx *c, const char *path, const char *text, size_t n, mode_t mode) {
    char *temp = arena_printf(c->a, "%s.XXXXXX", path);
    int fd = mkstemp(temp);
    if (fd >= 0 && close(fd) == 0 && unlink(temp) == 0) /* its mode is 0600, whatever the mask */
        fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0) return cannot_write(c, path), NULL;
    bool ok = cli_write_all(fd, text, n);
    ok &= close(fd) == 0;
    if (ok) return temp;
    cannot_write(c, path);
    unlink(temp);
    return NULL;
}

/* Writes a file by way of a temporary one beside it, so that it is there whole or as it was. A
 * link is followed. False after a diagnostic. */
static bool write_beside(Ctx *c, const char *path, const char *text, size_t n, mode_t mode) {
    const char *named = path;
    if (!(path = follow_link(c, path))) return cannot_write(c, named);
    char *temp = temp_beside(c, path, text, n, mode);
    if (!temp) return false;
    if (rename(temp, path) == 0) return true;
    cannot_write(c, path);
    unlink(temp);
    return false;
}

/* Writes a file by way of a temporary one and gives it this mode, whatever the umask. False
 * after a diagnostic. */
static bool replace(Ctx *c, const char *path, const char *text, size_t n, mode_t mode) {
    char *temp = temp_beside(c, path, text, n, mode);
    if (!temp) return false;
    if (chmod(temp, mode) == 0 && rename(temp, path) == 0) return true;
    cannot_write(c, path);
    unlink(temp);
    return false;
}

/* Devices and pipes are written in place: there is nothing to rename. */
static bool is_special(const char *path) {
    struct stat s;
    return stat(path, &s) == 0 && !S_ISREG(s.st_mode) && !S_ISDIR(s.st_mode);
}

/* Writes to what is no plain file, such as a pipe, without a temporary one. */
static bool write_special(Ctx *c, const char *path, const char *text, size_t n) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return cannot_write(c, path);
    bool ok = cli_write_all(fd, text, n);
    ok &= close(fd) == 0;
    return ok || cannot_write(c, path);
}

/* Writes text to a file; path NULL or "-": to standard output. False after a diagnostic. */
bool cli_write(Ctx *c, const char *path, const char *text, size_t n) {
    if (!path || strcmp(path, "-") == 0) return ctx_write(c, NULL, text, n);
    return is_special(path) ? write_special(c, path, text, n)
                            : write_beside(c, path, text, n, 0666);
}

/* Writes text in place of a file that is there, whose mode stays. False after a diagnostic. */
bool cli_replace(Ctx *c, const char *path, const char *text, size_t n) {
    struct stat s;
    const char *file = follow_link(c, path);
    if (!file || stat(file, &s) != 0) return cannot_write(c, path);
    return is_special(file) ? write_special(c, file, text, n)
                            : replace(c, file, text, n, s.st_mode & 07777);
}

/* No arena allocation while the file is open: running out of memory jumps away. */
char *cli_read(Ctx *c, const char *path, struct stat *s) {
    if (stat(path, s) != 0) return NULL;
    size_t size = (size_t)s->st_size, n = 0;
    char *text = arena_alloc(c->a, size + 1, 1, 1);
    FILE *f = fopen(path, "rb");
    if (f) {
        n = fread(text, 1, size, f);
        fclose(f);
    }
    return f && n == size ? text : NULL;
}

/* Puts a finished file in its place, with its mode; "-": standard output. False after a
 * diagnostic. */
bool cli_install(Ctx *c, const char *from, const char *to) {
    struct stat s;
    const char *text = cli_read(c, from, &s);
    if (!text) return cannot_write(c, to);
    size_t n = (size_t)s.st_size;
    if (strcmp(to, "-") == 0 || is_special(to)) return cli_write(c, to, text, n);
    return write_beside(c, to, text, n, s.st_mode & 0777);
}

/* ---- several files ----------------------------------------------------------------------- */
typedef struct {
    const char *to, *old; /* old: another name of the file that stood there */
    char *temp;           /* the new one; NULL: there is none */
    bool moved, had_old;
} Placed;

/* Makes the new file, or link, beside its place under another name. False after a diagnostic. */
static bool stage(Ctx *c, const CliFile *f, Placed *p) {
    struct stat s;
    p->to = f->link ? f->to : follow_link(c, f->to);
    if (!p->to) return cannot_write(c, f->to);
    if (f->link) {
        p->temp = temp_beside(c, p->to, "", 0, 0666);
        return p->temp &&
               ((unlink(p->temp) == 0 && symlink(f->link, p->temp) == 0) || cannot_write(c, p->to));
    }
    const char *text = cli_read(c, f->from, &s);
    if (!text) return cannot_write(c, f->to);
    p->temp = temp_beside(c, p->to, text, (size_t)s.st_size, s.st_mode & 0777);
    return p->temp != NULL;
}

/* Moves n finished files to their places, keeping a link to what was there. False after a
 * diagnostic. */
static bool move_all(Ctx *c, Placed *p, int n) {
    for (int i = 0; i < n; i++) {
        p[i].had_old = link(p[i].to, p[i].old) == 0;
        p[i].moved = rename(p[i].temp, p[i].to) == 0;
        if (!p[i].moved) return cannot_write(c, p[i].to);
    }
    return true;
}

/* Ends an installation of n files. If it failed (not ok), what was there before comes back.
 * Temporary files are removed. */
static void settle(Placed *p, int n, bool ok) {
    for (int i = 0; i < n; i++) {
        if (!ok && p[i].moved && (!p[i].had_old || rename(p[i].old, p[i].to) != 0)) unlink(p[i].to);
        if (p[i].had_old) unlink(p[i].old);
        if (p[i].temp && !p[i].moved) unlink(p[i].temp);
    }
}

/* Puts n files in their places, all or none of them. False after a diagnostic. */
bool cli_install_all(Ctx *c, const CliFile *file, int n) {
    Placed *p = NEWN(c->a, Placed, (size_t)n);
    bool ok = true;
    for (int i = 0; i < n && ok; i++) {
        ok = stage(c, &file[i], &p[i]);
        if (ok) p[i].old = arena_printf(c->a, "%s~", p[i].temp);
    }
    ok = ok && move_all(c, p, n);
    settle(p, n, ok);
    return ok;
}
