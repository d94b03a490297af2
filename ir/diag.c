/* The compile context: sources, diagnostics, clean-up, and the way back when
 * memory runs out.  Diagnostics are collected in order and printed at the end,
 * with the source line and a caret (cf. chibicc's tokenize.c):
 *
 *     gat.gnn:14:15: error: these two values live on different edge spaces  [E0203]
 *        14 |     alpha = s[src] + w
 *           |               ^~~~~~~~
 */
#include "ir/base.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const code_names[] = {
#define DIAG(code, title) #code,
#include "diag.def"
#undef DIAG
};
static const char *const code_titles[] = {
#define DIAG(code, title) title,
#include "diag.def"
#undef DIAG
};

const char *diag_code_name(DiagCode code) {
    return code_names[code];
}

const char *diag_code_title(DiagCode code) {
    return code_titles[code];
}

/* ---- context --------------------------------------------------------------- */
struct CtxDefer {
    void (*fn)(void *);
    void *arg;
};

/* Begins a compile. */
bool ctx_init(Ctx *c, const Allocator *from) {
    memset(c, 0, sizeof *c);
    c->max_errors = 50;
    c->a = arena_new(from);
    return c->a != NULL;
}

/* Runs the registered cleanups, the newest first. */
void ctx_undefer(Ctx *c) {
    while (c->defers.n > 0) {
        struct CtxDefer *d = c->defers.v[--c->defers.n];
        d->fn(d->arg);
    }
}

/* Runs fn with running out of memory and faults caught. */
bool ctx_run(Ctx *c, void (*fn)(Ctx *, void *), void *arg) {
    if (c->running) { /* the outer run catches */
        fn(c, arg);
        return true;
    }
    arena_on_oom(c->a, &c->oom);
    c->running = true;
    bool ok = setjmp(c->oom) == 0;
    if (ok) fn(c, arg);
    c->running = false;
    arena_on_oom(c->a, NULL);
    if (!ok) ctx_undefer(c);
    return ok;
}

/* Registers a cleanup. */
void ctx_defer(Ctx *c, void (*fn)(void *), void *arg) {
    struct CtxDefer *d = NEW(c->a, struct CtxDefer);
    *d = (struct CtxDefer){fn, arg};
    vec_push(c->a, &c->defers, d);
}

/* Ends a compile and frees its memory. */
void ctx_free(Ctx *c) {
    ctx_undefer(c);
    arena_free(c->a);
    memset(c, 0, sizeof *c);
}

/* ---- sources ------------------------------------------------------------------ */
/* Adds a source from memory. */
uint32_t ctx_add_text(Ctx *c, const char *path, const char *text, size_t n) {
    Source s = {.path = arena_strndup(c->a, path, strlen(path)),
                .text = arena_strndup(c->a, text, n),
                .n_bytes = n};
    vec_push(c->a, &c->sources, s);
    return (uint32_t)c->sources.n - 1;
}

/* Closes a file, once. */
static void close_file(void *arg) {
    FILE **f = arg;
    if (*f) fclose(*f);
    *f = NULL;
}

/* Reads a file to its end; false with *why set. */
static bool read_all(FILE *f, StrBuf *b, const char **why) {
    char part[4096];
    for (size_t n; (n = fread(part, 1, sizeof part, f)) > 0;) {
        sb_put(b, part, n);
        if (b->n <= CTX_MAX_SOURCE_BYTES) continue;
        *why = "it is larger than 256 MB";
        return false;
    }
    if (ferror(f)) *why = strerror(errno);
    return !ferror(f);
}

/* Why the open file cannot be a source; NULL: it can. A pipe is accepted only if the process was
 * given its end (/dev/stdin, /dev/fd/63): nobody might ever write to another one. */
static const char *unreadable(int fd, const char *path) {
    struct stat s;
    if (fstat(fd, &s) != 0) return strerror(errno);
    if (S_ISREG(s.st_mode)) return NULL;
    if (S_ISDIR(s.st_mode)) return "it is a directory";
    if (!S_ISFIFO(s.st_mode)) return "it is no file, but a device or a socket";
    if (strncmp(path, "/dev/", 5) != 0) return "it is a pipe, not a file";
    return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK) == 0 ? NULL : strerror(errno);
}

/* Opens a source; NULL with *why set. */
static FILE *open_file(const char *path, const char **why) {
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    *why = fd < 0 ? strerror(errno) : unreadable(fd, path);
    FILE *f = *why ? NULL : fdopen(fd, "rb");
    if (!f && !*why) *why = strerror(errno);
    if (!f && fd >= 0) close(fd);
    return f;
}

/* The length of a byte order mark, which some editors put before UTF-8. */
static size_t mark_bytes(const char *text, size_t n) {
    static const char mark[] = "\xEF\xBB\xBF";
    return n >= 3 && memcmp(text, mark, 3) == 0 ? 3 : 0;
}

/* Adds a file that the caller gave in memory. */
static uint32_t add_memory_file(Ctx *c, const char *path, const OutsideFile *f) {
    size_t mark = mark_bytes(f->text, f->n_bytes);
    return ctx_add_text(c, path, f->text + mark, f->n_bytes - mark);
}

/* Reads a source. */
uint32_t ctx_add_file(Ctx *c, const char *path, Span from) {
    const OutsideFile *memory_file = ctx_memory_file(c, path);
    if (memory_file) return add_memory_file(c, path, memory_file);
    if (!ctx_may_read(c, path)) {
        diag_add(c, DIAG_E0002, from, "cannot read '%s': only the files that were given are", path);
        return UINT32_MAX;
    }
    StrBuf text = sb_new(c->a);
    sb_puts(&text, "");
    FILE **f = NEW(c->a, FILE *);
    ctx_defer(c, close_file, f); /* for when memory runs out below */
    const char *why = NULL;
    *f = open_file(path, &why);
    bool ok = *f && read_all(*f, &text, &why);
    close_file(f);
    if (!ok) {
        diag_add(c, DIAG_E0002, from, "cannot read '%s': %s", path, why);
        return UINT32_MAX;
    }
    size_t mark = mark_bytes(text.s, text.n);
    Source s = {.path = arena_strndup(c->a, path, strlen(path)),
                .text = text.s + mark,
                .n_bytes = text.n - mark};
    vec_push(c->a, &c->sources, s);
    return (uint32_t)c->sources.n - 1;
}

const char *ctx_source_name(const Ctx *c, uint32_t file) {
    const Source *s = &c->sources.v[file];
    const char *name = s->path;
    bool found = s->library && *s->path == '/';
    for (const char *at = s->path; found && (at = strstr(at, "/layers/"));) name = ++at;
    return name;
}

/* The user's line that led to the position. */
Span ctx_user_span(const Ctx *c, Span at) {
    bool inside = at.line && (int)at.file < c->sources.n && c->sources.v[at.file].library;
    if (inside && at.site_line) at.file = at.site_file, at.line = at.site_line, at.col = 1;
    return at;
}

/* ---- recording ------------------------------------------------------------------ */
/* Whether two positions are equal. */
static bool span_eq(Span x, Span y) {
    return x.file == y.file && x.line == y.line && x.col == y.col && x.end_line == y.end_line &&
           x.end_col == y.end_col;
}

/* Whether the diagnostic was recorded already: once per code and position; without a position, once
 * per text. */
static bool is_duplicate(const Ctx *c, DiagCode code, Span at, const char *text) {
    for (int i = 0; i < c->diags.n; i++) {
        const Diag *d = &c->diags.v[i];
        if (d->sev == SEV_NOTE || d->code != code || !span_eq(d->span, at)) continue;
        if (at.line || strcmp(d->text, text) == 0) return true;
    }
    return false;
}

/* Records a diagnostic. */
static void record(Ctx *c, Severity sev, DiagCode code, Span at, const char *fmt, va_list ap) {
    enum { MAX_DIAGS = 1000 };
    c->mute_notes = true;
    const char *text = arena_vprintf(c->a, fmt, ap);
    if (is_duplicate(c, code, at, text)) return;
    if (sev == SEV_ERROR && c->n_errors++ >= c->max_errors) return;
    if (c->diags.n >= MAX_DIAGS) return;
    c->mute_notes = false;
    Diag d = {sev, code, at, text};
    vec_push(c->a, &c->diags, d);
}

void diag_add(Ctx *c, DiagCode code, Span at, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    record(c, SEV_ERROR, code, at, fmt, ap);
    va_end(ap);
}

void diag_warn(Ctx *c, DiagCode code, Span at, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    record(c, SEV_WARNING, code, at, fmt, ap);
    va_end(ap);
}

/* Adds a note, in the manner of printf, which belongs to the diagnostic before it. Nothing where
 * notes are muted. */
void diag_note(Ctx *c, Span at, const char *fmt, ...) {
    if (c->mute_notes) return;
    va_list ap;
    va_start(ap, fmt);
    Diag d = {SEV_NOTE, 0, at, arena_vprintf(c->a, fmt, ap)};
    vec_push(c->a, &c->diags, d);
    va_end(ap);
}

/* Reports an error in gnnc itself (E0502), in the manner of printf, with the stage in which it
 * happened. Does not return: jumps back to ctx_run(), which then fails. */
void ctx_fault(Ctx *c, Span at, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    const char *what = arena_vprintf(c->a, fmt, ap);
    va_end(ap);
    diag_add(c, DIAG_E0502, at, "%s%s%s", c->stage ? c->stage : "", c->stage ? ": " : "", what);
    diag_note(c, (Span){0},
              "this is a fault of gnnc, not of the model: another -O level may compile it");
    c->faulted = true;
    assert(c->running && "a fault outside ctx_run");
    longjmp(c->oom, 1);
}

/* ---- printing ---------------------------------------------------------------------- */
typedef struct {
    const char *bold, *red, *magenta, *cyan, *green, *off;
} Paint;
static const Paint plain = {"", "", "", "", "", ""};
static const Paint colours = {"\033[1m",    "\033[1;31m", "\033[1;35m",
                              "\033[1;36m", "\033[1;32m", "\033[0m"};

/* The text of a line, without its newline; NULL when there is no such line. */
static const char *find_line(const Source *s, uint32_t line, size_t *n) {
    const char *p = s->text, *end = s->text + s->n_bytes;
    for (uint32_t i = 1; i < line; i++) {
        p = memchr(p, '\n', (size_t)(end - p));
        if (!p) return NULL;
        p++;
    }
    const char *nl = memchr(p, '\n', (size_t)(end - p));
    *n = (size_t)((nl ? nl : end) - p);
    if (*n && p[*n - 1] == '\r') --*n;
    return p;
}

/* Whether the byte continues a UTF-8 character. */
static bool is_continuation(char ch) {
    return ((unsigned char)ch & 0xc0) == 0x80;
}

/* Prints a byte of a source, control characters as '?'. */
static void put_source_byte(FILE *to, char ch) {
    unsigned char u = (unsigned char)ch;
    fputc(ch == '\t' || (u >= 32 && u != 127) ? ch : '?', to);
}

/* Under the line: blanks up to the span, ^ at its start, ~ to its end.  Columns
 * are bytes; a character of several bytes takes one place. */
static void print_marks(FILE *to, const char *s, size_t from, size_t at, size_t to_col) {
    for (size_t i = from; i < at; i++)
        if (!is_continuation(s[i])) fputc(s[i] == '\t' ? '\t' : ' ', to);
    fputc('^', to);
    for (size_t i = at + 1; i < to_col; i++)
        if (!is_continuation(s[i])) fputc('~', to);
}

/* Shows at most WIDE bytes around the span: a line may be megabytes long. */
static void print_excerpt(FILE *to, const Source *src, Span at, const Paint *p) {
    enum { WIDE = 160, BEFORE = 100 };
    size_t n = 0;
    const char *s = find_line(src, at.line, &n);
    if (!s || at.col == 0 || at.col > n + 1) return;
    size_t col = at.col - 1;
    size_t from = col > BEFORE ? col - BEFORE : 0;
    while (from < col && is_continuation(s[from])) from++;
    size_t end = n - from > WIDE ? from + WIDE : n;
    size_t stop = at.end_line == at.line && at.end_col > at.col ? at.end_col - 1 : col + 1;
    if (at.end_line > at.line) stop = n;
    if (stop > end) stop = end;
    fprintf(to, "%5u | ", at.line);
    for (size_t i = from; i < end; i++) put_source_byte(to, s[i]);
    fprintf(to, "\n      | %s", p->green);
    print_marks(to, s, from, col, stop);
    fprintf(to, "%s\n", p->off);
}

/* Prints a diagnostic. */
static void print_diag(const Ctx *c, const Diag *d, FILE *to, const Paint *p) {
    static const char *const words[] = {"error", "warning", "note"};
    const char *tone[] = {p->red, p->magenta, p->cyan};
    const Source *src = NULL;
    if (d->span.line && d->span.file < (uint32_t)c->sources.n) src = &c->sources.v[d->span.file];
    fputs(p->bold, to);
    if (src)
        fprintf(to, "%s:%u:%u: ", src->path, d->span.line, d->span.col);
    else
        fputs("gnnc: ", to);
    fprintf(to, "%s%s: %s%s%s%s", tone[d->sev], words[d->sev], p->off, p->bold, d->text, p->off);
    if (d->sev != SEV_NOTE) fprintf(to, "  [%s]", diag_code_name(d->code));
    fputc('\n', to);
    if (src) print_excerpt(to, src, d->span, p);
}

/* Prints all diagnostics. */
void diag_print_all(const Ctx *c, FILE *to, bool colour) {
    for (int i = 0; i < c->diags.n; i++)
        print_diag(c, &c->diags.v[i], to, colour ? &colours : &plain);
    if (c->n_errors > c->max_errors)
        fprintf(to, "gnnc: %d more errors are not shown\n", c->n_errors - c->max_errors);
}
