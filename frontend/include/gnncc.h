/* gnnc's compiler as a library: text in memory, or files, to text, bytes or files, and what is
 * wrong with a model as values.
 *
 * A compiler is a set of options and of files in memory; each compile with it gives a result.
 *
 *     gnncc_compiler *c = NULL;
 *     gnncc_result *r = NULL;
 *     gnncc_status st = gnncc_create(&c);
 *     if (st == GNNCC_OK) st = gnncc_set(c, "--emit", "ir");
 *     if (st == GNNCC_OK) st = gnncc_add_file(c, "m.gnn", text, n);
 *     if (st == GNNCC_OK) st = gnncc_compile(c, "m.gnn", &r);
 *     if (st == GNNCC_OK) use(gnncc_result_data(r, &size), size);
 *     else fputs(r ? gnncc_result_text(r) : gnncc_error(c), stderr);
 *     gnncc_result_destroy(r);
 *     gnncc_destroy(c);
 *
 * The library never exits or prints, leaves the environment, the umask and the working directory of
 * the process as they are, and has no state but that of its handles.  What it writes besides the
 * files that options name lies in a private directory below TMPDIR, which is gone when the call
 * returns.  It runs the C compiler of CC, else cc, where a program or a library is made, and for
 * text or an object no other program at all.  It waits for those alone, by their ids;
 * where the process ignores SIGCHLD, or takes the status of any child, /bin/sh runs them and writes
 * down how they ended, and one whose end was taken meanwhile is run once more.
 *
 * A pointer may be NULL only where it says so: else the call returns GNNCC_E_ARG, or, where it
 * returns no status, 0, NULL or "".  Calls that return a status may return GNNCC_E_NOMEM; below
 * stands what they return besides.
 *
 * Threads: any number may compile with one compiler at once, as long as nobody changes or destroys
 * it meanwhile; a result is read by any number.
 *
 * What lasts: handles are opaque, and behind a function.  Values and functions are added, never
 * changed in their meaning.  Options, codes and texts of diagnostics, and what is made, belong to
 * the version of the compiler.
 *
 * Usable from C99 and C++. */
#ifndef GNNCC_H
#define GNNCC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
/* All else of the library is hidden. */
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* The number in the name of the shared library: raised when a program must be compiled anew. */
#define GNNCC_ABI_VERSION 0

/* X(name, value, text).  Values are part of the ABI: append, never renumber. */
#define GNNCC_STATUS_MAP(X)                                                                        \
    X(OK, 0, "success")                                                                            \
    X(E_NOMEM, -1, "out of memory")                                                                \
    X(E_ARG, -2, "invalid argument")                                                               \
    X(E_OPTION, -3, "no such option, or not with that value")                                      \
    X(E_DIAGNOSED, -4, "something is wrong with the model, a file or a tool")                      \
    X(E_CANCELLED, -5, "cancelled")                                                                \
    X(E_FAULT, -6, "a fault of the compiler")

typedef enum gnncc_status {
#define GNNCC_STATUS_ENUM_(name, value, text) GNNCC_##name = value,
    GNNCC_STATUS_MAP(GNNCC_STATUS_ENUM_)
#undef GNNCC_STATUS_ENUM_
} gnncc_status;

/* A short text for a status; never NULL. */
const char *gnncc_status_text(gnncc_status st);
/* Of the library that is linked: "0.1.0". */
const char *gnncc_version(void);

/* ---- compilers -------------------------------------------------------------------------- */
typedef struct gnncc_compiler gnncc_compiler;
typedef struct gnncc_result gnncc_result;
/* Memory of n bytes, aligned as malloc's; NULL = there is none.  And back. */
typedef void *gnncc_alloc_fn(void *user, size_t n);
typedef void gnncc_free_fn(void *user, void *block);
/* Asked on the compiling thread, between steps of milliseconds: nonzero ends the compile. */
typedef int gnncc_cancel_fn(void *user);

/* A compiler with the options as the command line has them when none is given. */
gnncc_status gnncc_create(gnncc_compiler **out);
/* The same with memory of the caller's, for it and all its results; all threads that compile ask.
 * What LLVM and the C library need, and finished text, come from malloc.
 *   user  may be NULL */
gnncc_status gnncc_create_with(gnncc_compiler **out, gnncc_alloc_fn *alloc, gnncc_free_fn *release,
                               void *user);
/* NULL does nothing.  Results stay. */
void gnncc_destroy(gnncc_compiler *c);
/* What the last call that changes c and failed says; "" = none has.  Until the next such call. */
const char *gnncc_error(const gnncc_compiler *c);

/* Sets an option by its name on the command line: "--emit", "ir"; "-D", "hidden=64"; "-O0", NULL.
 *   value  NULL for an option that takes none; copied
 * GNNCC_E_OPTION: there is no such option, or it does not take that; nothing has changed. */
gnncc_status gnncc_set(gnncc_compiler *c, const char *name, const char *value);
/* The options that there are, by number from 0; NULL behind the last. */
const char *gnncc_option_name(int i);
/* What its value is called, "KIND"; NULL: it takes none, or there is no such option. */
const char *gnncc_option_value(int i);
/* One line on it. */
const char *gnncc_option_help(int i);
/* A value that it takes, by number from 0; NULL behind the last, and where any text may be one. */
const char *gnncc_option_word(int i, int k);

/* A text that stands for the file of that name, for models and what they import: "m.gnn",
 * "layers/mine.gnn".  An import is looked for beside the file that has it, then where -I says.
 *   name  compared as text, without "." and ".." in it; copied; of an earlier one: replaces it
 *   text  [n] bytes, at most 256 MB; copied; NULL where n is 0 */
gnncc_status gnncc_add_file(gnncc_compiler *c, const char *name, const char *text, size_t n);
/* Reads no other files from now on but those of the layer library: for models of somebody else.
 * Models that call C functions are refused then. */
gnncc_status gnncc_only_files(gnncc_compiler *c);
/* Where the runtime and the layer library are: the folder of libgnncc.so or gnnc in a build tree,
 * or BINDIR or LIBDIR of an installation.  NULL, as at first: where this library is.
 * GNNCC_E_ARG: there is no such folder. */
gnncc_status gnncc_set_home(gnncc_compiler *c, const char *directory);
/* Whom to ask whether to go on; NULL, as at first: nobody. */
gnncc_status gnncc_on_cancel(gnncc_compiler *c, gnncc_cancel_fn *cancelled, void *user);

/* ---- compiling -------------------------------------------------------------------------- */
/* Compiles as options say.  What is made goes to the file of "-o", or into the result.  Those kinds
 * of --emit that are several files, lib, infer and python, need "-o".
 *   path  of a .gnn or .gir file in memory, else in the file system
 *   out   the result, also of a compile that failed; NULL after GNNCC_E_ARG and GNNCC_E_NOMEM
 * GNNCC_E_DIAGNOSED: the result says what is wrong.
 * GNNCC_E_OPTION: options that do not go together; gnncc_result_text() says which.
 * GNNCC_E_CANCELLED, GNNCC_E_FAULT: nothing was made. */
gnncc_status gnncc_compile(const gnncc_compiler *c, const char *path, gnncc_result **out);
/* The diagnostics alone, as gnncc_compile(), also of a file without a model. */
gnncc_status gnncc_check(const gnncc_compiler *c, const char *path, gnncc_result **out);
/* What `gnnc import` does: a data directory of other files, but for databases, which the command
 * line alone reads.  Nobody can cancel it.
 *   arg  [n] words of the command line behind "import"
 * GNNCC_E_DIAGNOSED, GNNCC_E_OPTION: gnncc_result_text() says why. */
gnncc_status gnncc_import(const gnncc_compiler *c, int n, const char *const *arg,
                          gnncc_result **out);

/* ---- results ---------------------------------------------------------------------------- */
/* NULL does nothing. */
void gnncc_result_destroy(gnncc_result *r);
/* What was made and has no file, and reports; of gnncc_import() what it tells of the data.  Text
 * has a 0 behind it.  Lives as long as r, as all that follows.
 *   n  bytes */
const char *gnncc_result_data(const gnncc_result *r, size_t *n);
/* What was told meanwhile: of -v, --time-passes, --print-after; "" = nothing. */
const char *gnncc_result_log(const gnncc_result *r);
/* All diagnostics as the command line prints them, with the lines of the model; "" = none. */
const char *gnncc_result_text(const gnncc_result *r);

typedef enum gnncc_severity { GNNCC_ERROR, GNNCC_WARNING, GNNCC_NOTE } gnncc_severity;
/* How many diagnostics there are, notes counted: they stand behind what they belong to. */
int gnncc_diag_count(const gnncc_result *r);
gnncc_severity gnncc_diag_severity(const gnncc_result *r, int i);
/* "E0203", of docs/errors.md; NULL: it is a note. */
const char *gnncc_diag_code(const gnncc_result *r, int i);
const char *gnncc_diag_message(const gnncc_result *r, int i);
/* As it was opened; NULL: it is about no place in a file. */
const char *gnncc_diag_file(const gnncc_result *r, int i);
/* Line and column where the place begins, line and column behind its end; from 1, columns in bytes.
 * All 0: no place. */
void gnncc_diag_place(const gnncc_result *r, int i, uint32_t at[4]);

/* The files that were read to compile, by number from 0, models, layers and files of C functions;
 * NULL behind the last. */
const char *gnncc_result_file(const gnncc_result *r, int i);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
