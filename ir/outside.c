/* What a compile has to do with the world outside: which files it may read, where it writes and
 * tells, and whether it was cancelled.  The command line and the library (frontend/gnncc.c) differ
 * in nothing else. */
#include "ir/base.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* ---- names of files ---------------------------------------------------------------- */
/* Where the last component of the path out[0..n) begins. */
static size_t last_part(const char *out, size_t n) {
    while (n && out[n - 1] != '/') n--;
    return n;
}

/* Whether `..` can remove the last component. */
static bool can_go_up(const char *out, size_t n) {
    size_t last = last_part(out, n);
    return n > last && !(n - last == 2 && memcmp(out + last, "..", 2) == 0);
}

/* A path without `.` and removable `..`. */
const char *ctx_plain_path(Arena *a, const char *path) {
    char *out = arena_alloc(a, strlen(path) + 1, 1, 1);
    size_t n = 0, root = *path == '/';
    if (root) out[n++] = '/';
    while (*(path += strspn(path, "/"))) {
        size_t k = strcspn(path, "/");
        bool up = k == 2 && memcmp(path, "..", 2) == 0;
        if (up && can_go_up(out, n)) {
            n = last_part(out, n);
            if (n > root) n--;
        } else if (!(up && root && n == root) && !(k == 1 && *path == '.')) {
            if (n > root) out[n++] = '/';
            memcpy(out + n, path, k);
            n += k;
        }
        path += k;
    }
    out[n] = 0;
    return out;
}

/* The file of that path in memory, or NULL. */
const OutsideFile *ctx_memory_file(Ctx *c, const char *path) {
    const Outside *o = &c->outside;
    const char *plain = o->n_files ? ctx_plain_path(c->a, path) : path;
    for (int i = 0; i < o->n_files; i++)
        if (strcmp(o->file[i].path, plain) == 0) return &o->file[i];
    return NULL;
}

/* Whether the compile may read the file. */
bool ctx_may_read(Ctx *c, const char *path) {
    const char *library = c->outside.library;
    if (!c->outside.only_files) return true;
    size_t n = library ? strlen(library) : 0;
    const char *plain = ctx_plain_path(c->a, path);
    return n && strncmp(plain, library, n) == 0 && plain[n] == '/';
}

/* Whether the file is in memory, or can be read. */
bool ctx_is_readable(Ctx *c, const char *path) {
    if (ctx_memory_file(c, path)) return true;
    return ctx_may_read(c, path) && access(path, R_OK) == 0; /* to open a pipe would be to wait */
}

/* ---- writing and telling ------------------------------------------------------------- */
/* Prints progress. */
void ctx_log(Ctx *c, const char *fmt, ...) {
    va_list ap;
    if (!c->outside.log) return;
    va_start(ap, fmt);
    vfprintf(c->outside.log, fmt, ap);
    va_end(ap);
}

/* Writes a file. */
bool ctx_write(Ctx *c, const char *path, const char *from, size_t n) {
    FILE *f = path ? fopen(path, "wb") : c->outside.out;
    bool ok = f && fwrite(from, 1, n, f) == n;
    if (f && (path ? fclose(f) : fflush(f)) != 0) ok = false;
    if (!ok)
        diag_add(c, DIAG_E0003, (Span){0}, "cannot write '%s': %s", path ? path : "standard output",
                 strerror(errno));
    return ok;
}

/* ---- cancellation --------------------------------------------------------------------- */
/* Leaves the compile if it was cancelled. */
void ctx_poll(Ctx *c) {
    const Outside *o = &c->outside;
    if (!o->cancelled || !c->running || !o->cancelled(o->user)) return;
    c->cancelled = true;
    longjmp(c->oom, 1);
}
