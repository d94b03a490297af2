/* The compiler as a library (frontend/include/gnncc.h).
 *
 * A compiler is read alone while it compiles: what a compile changes hangs off its result, whose
 * Ctx has an arena of its own.  Setters work in the compiler's own arena, in ctx_run() as all that
 * may run out of memory does, and change the compiler last. */
#include "frontend/include/gnncc.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/cli/cli.h"
#include "frontend/import/import_main.h"

struct gnncc_compiler {
    Ctx ctx;
    Allocator from;
    CliOptions o;
    VEC(OutsideFile) files;
    Outside outside; /* what of it is the caller's choice */
    const char *error;
};

struct gnncc_result {
    Ctx ctx;
    Allocator from;
    char *data, *log, *text; /* of open_memstream; NULL: not begun */
    size_t n_data, n_log, n_text;
};

/* ---- constants --------------------------------------------------------------------------- */
/* The text of a status, never NULL. */
const char *gnncc_status_text(gnncc_status st) {
    switch (st) {
#define CASE(name, value, text)                                                                    \
    case GNNCC_##name:                                                                             \
        return text;
        GNNCC_STATUS_MAP(CASE)
#undef CASE
    }
    return "unknown status";
}

const char *gnncc_version(void) {
    return GNNC_VERSION_TEXT;
}

const char *gnncc_option_name(int i) {
    CliOptionText t;
    return i >= 0 && cli_setting_at(i, &t) ? t.name : NULL;
}

const char *gnncc_option_value(int i) {
    CliOptionText t;
    return i >= 0 && cli_setting_at(i, &t) ? t.value : NULL;
}

const char *gnncc_option_help(int i) {
    CliOptionText t;
    return i >= 0 && cli_setting_at(i, &t) ? t.help : "";
}

/* The k-th word that the i-th option takes as its value. NULL: there are fewer, or it takes no
 * words. */
const char *gnncc_option_word(int i, int k) {
    CliOptionText t;
    if (i < 0 || k < 0 || !cli_setting_at(i, &t) || !t.word) return NULL;
    for (int at = 0; at < k; at++)
        if (!t.word(at)) return NULL;
    return t.word(k);
}

/* ---- compilers ---------------------------------------------------------------------------- */
static void *std_alloc(void *user, size_t n) {
    (void)user;
    return malloc(n);
}

static void std_free(void *user, void *block) {
    (void)user;
    free(block);
}

static void *take(const Allocator *from, size_t n) {
    void *p = from->alloc(from->user, n);
    return p ? memset(p, 0, n) : NULL;
}

/* Makes a compiler that takes its memory from `from`. Nothing is kept if memory runs out. */
static gnncc_status create(gnncc_compiler **out, const Allocator *from) {
    gnncc_compiler *c = take(from, sizeof *c);
    if (c && ctx_init(&c->ctx, from)) {
        c->from = *from;
        c->o = cli_defaults();
        c->error = "";
        *out = c;
        return GNNCC_OK;
    }
    if (c) from->release(from->user, c);
    return GNNCC_E_NOMEM;
}

/* Makes a compiler with the memory of the C library. */
gnncc_status gnncc_create(gnncc_compiler **out) {
    const Allocator from = {.alloc = std_alloc, .release = std_free};
    if (!out) return GNNCC_E_ARG;
    *out = NULL;
    return create(out, &from);
}

/* Makes a compiler that takes its memory from the caller's functions. */
gnncc_status gnncc_create_with(gnncc_compiler **out, gnncc_alloc_fn *alloc, gnncc_free_fn *release,
                               void *user) {
    const Allocator from = {.alloc = alloc, .release = release, .user = user};
    if (out) *out = NULL;
    if (!out || !alloc || !release) return GNNCC_E_ARG;
    return create(out, &from);
}

/* Frees a compiler; NULL does nothing. Results live on. */
void gnncc_destroy(gnncc_compiler *c) {
    if (!c) return;
    Allocator from = c->from;
    ctx_free(&c->ctx);
    from.release(from.user, c);
}

const char *gnncc_error(const gnncc_compiler *c) {
    return c ? c->error : "";
}

/* What a setter is given; its function returns NULL, or why it did nothing. */
typedef struct {
    gnncc_compiler *c;
    const char *name, *value;
    size_t n;
    const char *why;
} Setting;

/* Runs fn, which changes the compiler's settings, where running out of memory is caught.
 * if_refused: the status if fn sets s.why. */
static gnncc_status change(Setting s, void (*fn)(Ctx *, void *), gnncc_status if_refused) {
    gnncc_compiler *c = s.c;
    if (!ctx_run(&c->ctx, fn, &s)) {
        c->error = gnncc_status_text(GNNCC_E_NOMEM);
        return GNNCC_E_NOMEM;
    }
    if (s.why) c->error = s.why;
    return s.why ? if_refused : GNNCC_OK;
}

static const char *kept(Arena *a, const char *s) {
    return s ? arena_strndup(a, s, strlen(s)) : NULL;
}

/* Sets an option in a copy of the options, which replaces them if its value is right. */
static void set_option(Ctx *c, void *arg) {
    Setting *s = arg;
    CliOptions o = s->c->o;
    s->why = cli_set(c->a, &o, kept(c->a, s->name), kept(c->a, s->value));
    if (!s->why) s->c->o = o;
}

gnncc_status gnncc_set(gnncc_compiler *c, const char *name, const char *value) {
    if (!c || !name) return GNNCC_E_ARG;
    return change((Setting){.c = c, .name = name, .value = value}, set_option, GNNCC_E_OPTION);
}

/* Keeps a copy of a file that exists in memory only; one of the same path is replaced. */
static void add_file(Ctx *c, void *arg) {
    Setting *s = arg;
    OutsideFile f = {.path = ctx_plain_path(c->a, s->name),
                     .text = arena_strndup(c->a, s->value, s->n),
                     .n_bytes = s->n};
    for (int i = 0; i < s->c->files.n; i++)
        if (strcmp(s->c->files.v[i].path, f.path) == 0) {
            s->c->files.v[i] = f;
            return;
        }
    vec_push(c->a, &s->c->files, f);
}

/* Gives the compiler a file that exists in memory only. */
gnncc_status gnncc_add_file(gnncc_compiler *c, const char *name, const char *text, size_t n) {
    if (!c || !name || !*name || (!text && n) || n > CTX_MAX_SOURCE_BYTES) return GNNCC_E_ARG;
    return change((Setting){.c = c, .name = name, .value = text ? text : "", .n = n}, add_file,
                  GNNCC_E_ARG);
}

/* From now on the compiler reads no files but those that it was given and the library's layers. */
gnncc_status gnncc_only_files(gnncc_compiler *c) {
    if (!c) return GNNCC_E_ARG;
    c->outside.only_files = true;
    return GNNCC_OK;
}

/* Sets the installation directory, with links resolved: a file of the library is recognised by the
 * prefix of its path. */
static void set_install_dir(Ctx *c, void *arg) {
    Setting *s = arg;
    char real[PATH_MAX];
    if (realpath(s->value, real))
        s->c->outside.home = arena_strndup(c->a, real, strlen(real));
    else
        s->why = arena_printf(c->a, "there is no directory '%s'", s->value);
}

/* Sets where gnnc is installed, which holds the library of layers; NULL: it finds that itself. */
gnncc_status gnncc_set_home(gnncc_compiler *c, const char *directory) {
    if (!c) return GNNCC_E_ARG;
    if (directory)
        return change((Setting){.c = c, .value = directory}, set_install_dir, GNNCC_E_ARG);
    c->outside.home = NULL;
    return GNNCC_OK;
}

/* Sets the function that the compiler asks whether it should stop; NULL: none. */
gnncc_status gnncc_on_cancel(gnncc_compiler *c, gnncc_cancel_fn *cancelled, void *user) {
    if (!c) return GNNCC_E_ARG;
    c->outside.cancelled = cancelled;
    c->outside.user = user;
    return GNNCC_OK;
}

/* ---- compiling ---------------------------------------------------------------------------- */
typedef struct {
    const gnncc_compiler *c;
    CliOptions o;
    const char *path;
    const char *why; /* options do not go together */
    bool ok;
} Compile;

/* Checks the options. Without a file to go to, what is made goes into the result. NULL, or what
 * is wrong. */
static const char *settle(Arena *a, CliOptions *o) {
    bool several = o->emit == OUT_LIB || o->emit == OUT_PYTHON;
    if (o->action == ACT_COMPILE && several && !o->out)
        return "--emit=lib, infer and python make several files: \"-o\" says where";
    const char *why = cli_check_options(a, o);
    if (!o->out) o->out = "-";
    return why;
}

/* Compiles within ctx_run: settles the options, then does what they ask for. */
static void run(Ctx *c, void *arg) {
    Compile *j = arg;
    vec_push(c->a, &j->o.files, kept(c->a, j->path));
    j->why = settle(c->a, &j->o);
    j->ok = !j->why && cli_act(c, &j->o);
}

/* An empty result with a context of its own. NULL: memory ran out. */
static gnncc_result *result_new(const gnncc_compiler *c) {
    gnncc_result *r = take(&c->from, sizeof *r);
    if (r && !ctx_init(&r->ctx, &c->from)) {
        c->from.release(c->from.user, r);
        return NULL;
    }
    if (r) r->from = c->from;
    return r;
}

/* Frees a result and all that was read from it; NULL does nothing. */
void gnncc_result_destroy(gnncc_result *r) {
    if (!r) return;
    Allocator from = r->from;
    ctx_free(&r->ctx);
    free(r->data);
    free(r->log);
    free(r->text);
    from.release(from.user, r);
}

/* All that was put there is in memory: a stream that ran out of it says so here, or before. */
static bool finish(FILE *f) {
    bool ok = !ferror(f);
    return fclose(f) == 0 && ok;
}

/* Writes all diagnostics as text into the result, behind a line that says what is wrong with the
 * options (NULL = nothing). False: memory ran out. */
static bool write_text(gnncc_result *r, const char *why) {
    FILE *f = open_memstream(&r->text, &r->n_text);
    if (!f) return false;
    if (why) fprintf(f, "gnnc: %s\n", why);
    diag_print_all(&r->ctx, f, false);
    return finish(f);
}

/* Runs the job with streams into the result.  False: memory ran out. */
static bool run_with_streams(gnncc_result *r, Compile *j) {
    Ctx *c = &r->ctx;
    c->outside = j->c->outside;
    c->outside.file = j->c->files.v;
    c->outside.n_files = j->c->files.n;
    c->outside.out = open_memstream(&r->data, &r->n_data);
    c->outside.log = open_memstream(&r->log, &r->n_log);
    bool ok = c->outside.out && c->outside.log;
    ok = ok && (ctx_run(c, run, j) || c->faulted || c->cancelled);
    ctx_undefer(c);
    if (c->outside.out) ok &= finish(c->outside.out);
    if (c->outside.log) ok &= finish(c->outside.log);
    c->outside = (Outside){.out = NULL};
    return ok && write_text(r, j->why);
}

/* Does one action with the file `path` and gives its result. A result is given for mistakes of
 * the model, too. */
static gnncc_status compile(const gnncc_compiler *c, Action action, const char *path,
                            gnncc_result **out) {
    if (out) *out = NULL;
    if (!c || !path || !out) return GNNCC_E_ARG;
    gnncc_result *r = result_new(c);
    Compile j = {.c = c, .o = c->o, .path = path};
    j.o.action = action;
    if (!r || !run_with_streams(r, &j)) {
        gnncc_result_destroy(r);
        return GNNCC_E_NOMEM;
    }
    *out = r;
    return r->ctx.cancelled           ? GNNCC_E_CANCELLED
           : r->ctx.faulted           ? GNNCC_E_FAULT
           : j.why                    ? GNNCC_E_OPTION
           : j.ok && !r->ctx.n_errors ? GNNCC_OK
                                      : GNNCC_E_DIAGNOSED;
}

gnncc_status gnncc_compile(const gnncc_compiler *c, const char *path, gnncc_result **out) {
    return compile(c, ACT_COMPILE, path, out);
}

gnncc_status gnncc_check(const gnncc_compiler *c, const char *path, gnncc_result **out) {
    return compile(c, ACT_CHECK, path, out);
}

/* ---- importing ------------------------------------------------------------------------------ */
typedef struct {
    int n;
    const char *const *arg;
    int rc;
    FILE *to, *err;
} Import;

/* Runs `gnnc import` with the caller's arguments, within ctx_run. */
static void import(Ctx *c, void *arg) {
    Import *j = arg;
    char **argv = NEWN(c->a, char *, (size_t)j->n + 2);
    argv[0] = arena_printf(c->a, "import");
    for (int i = 0; i < j->n; i++) argv[i + 1] = arena_strndup(c->a, j->arg[i], strlen(j->arg[i]));
    j->rc = gnnc_import_main(j->n + 1, argv, NULL, j->to, j->err);
}

/* Runs the import with its output and its messages going into the result. False: memory ran out. */
static bool import_with_streams(gnncc_result *r, Import *j) {
    j->to = open_memstream(&r->data, &r->n_data);
    j->err = open_memstream(&r->text, &r->n_text);
    bool ok = j->to && j->err && ctx_run(&r->ctx, import, j);
    if (j->to) ok &= finish(j->to);
    if (j->err) ok &= finish(j->err);
    return ok;
}

/* Runs `gnnc import` with n arguments, as the command line has them, and gives its result. */
gnncc_status gnncc_import(const gnncc_compiler *c, int n, const char *const *arg,
                          gnncc_result **out) {
    if (out) *out = NULL;
    if (!c || !out || n < 0 || n > 1 << 20 || (n && !arg)) return GNNCC_E_ARG;
    for (int i = 0; i < n; i++)
        if (!arg[i]) return GNNCC_E_ARG;
    gnncc_result *r = result_new(c);
    Import j = {.n = n, .arg = arg};
    if (!r || !import_with_streams(r, &j)) {
        gnncc_result_destroy(r);
        return GNNCC_E_NOMEM;
    }
    *out = r;
    return j.rc == EXIT_OK ? GNNCC_OK : j.rc == EXIT_USAGE ? GNNCC_E_OPTION : GNNCC_E_DIAGNOSED;
}

/* ---- results -------- */
const char *gnncc_result_data(const gnncc_result *r, size_t *n) {
    if (n) *n = r ? r->n_data : 0;
    return r && n ? r->data : NULL;
}

const char *gnncc_result_log(const gnncc_result *r) {
    return r && r->log ? r->log : "";
}

const char *gnncc_result_text(const gnncc_result *r) {
    return r && r->text ? r->text : "";
}

int gnncc_diag_count(const gnncc_result *r) {
    return r ? r->ctx.diags.n : 0;
}

static const Diag *diag_at(const gnncc_result *r, int i) {
    return r && i >= 0 && i < r->ctx.diags.n ? &r->ctx.diags.v[i] : NULL;
}

/* NULL: the diagnostic is about no place. */
static const Source *source_of(const gnncc_result *r, const Diag *d) {
    bool placed = d && d->span.line && d->span.file < (uint32_t)r->ctx.sources.n;
    return placed ? &r->ctx.sources.v[d->span.file] : NULL;
}

/* Whether the i-th diagnostic is an error, a warning or a note. An error, if there is none. */
gnncc_severity gnncc_diag_severity(const gnncc_result *r, int i) {
    const Diag *d = diag_at(r, i);
    return !d || d->sev == SEV_ERROR ? GNNCC_ERROR
           : d->sev == SEV_WARNING   ? GNNCC_WARNING
                                     : GNNCC_NOTE;
}

const char *gnncc_diag_code(const gnncc_result *r, int i) {
    const Diag *d = diag_at(r, i);
    return d && d->sev != SEV_NOTE ? diag_code_name(d->code) : NULL;
}

const char *gnncc_diag_message(const gnncc_result *r, int i) {
    const Diag *d = diag_at(r, i);
    return d ? d->text : "";
}

const char *gnncc_diag_file(const gnncc_result *r, int i) {
    const Source *s = source_of(r, diag_at(r, i));
    return s ? s->path : NULL;
}

/* Sets `at` to line, column, end line and end column of the i-th diagnostic; zeros: it has no
 * place. */
void gnncc_diag_place(const gnncc_result *r, int i, uint32_t at[4]) {
    const Diag *d = diag_at(r, i);
    if (!at) return;
    memset(at, 0, 4 * sizeof *at);
    if (!source_of(r, d)) return;
    at[0] = d->span.line, at[1] = d->span.col;
    at[2] = d->span.end_line, at[3] = d->span.end_col;
}

/* The i-th file that the result depends on: models first, then others. NULL: there are fewer. */
const char *gnncc_result_file(const gnncc_result *r, int i) {
    if (!r || i < 0) return NULL;
    if (i < r->ctx.sources.n) return r->ctx.sources.v[i].path;
    i -= r->ctx.sources.n;
    return i < r->ctx.others.n ? r->ctx.others.v[i] : NULL;
}
