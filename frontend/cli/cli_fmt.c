/* gnnc fmt: files, or standard input, in the canonical layout.  All are read before one is written.
 */
#include "frontend/cli/cli.h"
#include "frontend/editor/fmt.h"
#include "passes/dump.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define STDIN_NAME "<stdin>"

typedef struct {
    const char *path; /* NULL: standard input */
    const char *before, *after;
    size_t n_before, n_after;
} Formatted;

static bool differs(const Formatted *f) {
    return f->n_before != f->n_after || memcmp(f->before, f->after, f->n_before) != 0;
}

/* Reads standard input. False after a diagnostic. No stream is opened, as running out of memory
 * jumps away. */
static bool read_stdin(Ctx *c, StrBuf *to) {
    char part[1 << 14];
    ssize_t n;
    sb_puts(to, "");
    while ((n = read(STDIN_FILENO, part, sizeof part)) != 0) {
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 || to->n + (size_t)n > CTX_MAX_SOURCE_BYTES) {
            diag_add(c, DIAG_E0002, (Span){0}, "cannot read standard input: %s",
                     n < 0 ? strerror(errno) : "it is larger than 256 MB");
            return false;
        }
        sb_put(to, part, (size_t)n);
    }
    return true;
}

/* Reads a file, or standard input (path NULL), and formats its text into f. False after a
 * diagnostic. */
static bool format(Ctx *c, const char *path, Formatted *f) {
    uint32_t file;
    StrBuf text = sb_new(c->a);
    f->path = path;
    if (path) {
        file = ctx_add_file(c, path, (Span){0});
        if (file == UINT32_MAX) return false;
    } else {
        if (!read_stdin(c, &text)) return false;
        file = ctx_add_text(c, STDIN_NAME, text.s, text.n);
    }
    f->before = c->sources.v[file].text;
    f->n_before = c->sources.v[file].n_bytes;
    f->after = fmt_text(c, file, &f->n_after);
    return f->after != NULL;
}

/* Prints how the formatted text differs from the file. */
static bool put_diff(Ctx *c, const Formatted *f) {
    StrBuf b = sb_new(c->a);
    const char *name = f->path ? f->path : STDIN_NAME;
    if (!differs(f)) return true;
    sb_printf(&b, "--- %s\n+++ %s\n", name, name);
    dump_diff(&b, f->before, f->after);
    return cli_write(c, NULL, b.s, b.n);
}

static bool put_name(Ctx *c, const Formatted *f) {
    const char *line = arena_printf(c->a, "%s\n", f->path ? f->path : STDIN_NAME);
    return !differs(f) || cli_write(c, NULL, line, strlen(line));
}

/* Does with a formatted text what the options say: prints the difference or the name, or writes
 * it to its file. */
static bool put(Ctx *c, const CliOptions *o, const Formatted *f) {
    if (o->fmt_diff) return put_diff(c, f);
    if (o->fmt_check) return put_name(c, f);
    if (!f->path) return cli_write(c, NULL, f->after, f->n_after);
    return !differs(f) || cli_replace(c, f->path, f->after, f->n_after);
}

/* The command `gnnc fmt`. All files are read before the first is written. False: a mistake, or
 * something differs and --check or --diff asks. */
bool cli_fmt(Ctx *c, const CliOptions *o) {
    int n = o->files.n ? o->files.n : 1;
    bool ok = true, same = true;
    Formatted *f = NEWN(c->a, Formatted, (size_t)n);
    for (int i = 0; i < n; i++) {
        const char *path = o->files.n ? o->files.v[i] : "-";
        ok &= format(c, strcmp(path, "-") ? path : NULL, &f[i]);
    }
    for (int i = 0; i < n && ok; i++) {
        ok = put(c, o, &f[i]);
        same &= !differs(&f[i]);
    }
    return ok && (same || !(o->fmt_check || o->fmt_diff));
}
