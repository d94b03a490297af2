/* Memory, text, source positions and diagnostics: what every part of the
 * compiler stands on.  Nothing here knows about graphs.
 *
 * All compiler state hangs off a Ctx, so two compiles may run side by side.
 * Memory comes from one arena and is freed once.  When the arena cannot grow,
 * control returns to the setjmp in ctx_run() (cf. Lua's ldo.c): arena_alloc()
 * therefore never returns NULL.  Code that calls into LLVM or stdio must not
 * allocate from the arena between acquiring and releasing a foreign handle
 * without noting that handle in a ctx cleanup (ctx_defer). */
#ifndef IR_BASE_H
#define IR_BASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#if defined(__GNUC__)
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a), nonnull(f)))
#else
#define PRINTF_LIKE(f, a)
#endif
#define COUNT(x) (sizeof(x) / sizeof((x)[0]))

/* An integer that is only used in assertions. */
#define UNUSED(x) ((void)(x))

/* ---- arena (ir/arena.c) ------------------------------------------------ */
typedef struct Arena Arena;

/* Where the arena's blocks come from; tests make the n-th call fail. */
typedef struct {
    void *(*alloc)(void *user, size_t n_bytes);
    void (*release)(void *user, void *block);
    void *user;
    size_t block_bytes; /* fixed size of a block; 0 = 16 KB, doubling to 1 MB */
} Allocator;

Arena *arena_new(const Allocator *from); /* NULL = malloc; NULL result: out of memory */
void arena_free(Arena *a);
void arena_on_oom(Arena *a, jmp_buf *where); /* must be set before the first arena_alloc */
size_t arena_used_bytes(const Arena *a);
void *arena_alloc(Arena *a, size_t n, size_t size, size_t align); /* zeroed */
char *arena_strndup(Arena *a, const char *s, size_t n);
char *arena_printf(Arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3);
char *arena_vprintf(Arena *a, const char *fmt, va_list ap) PRINTF_LIKE(2, 0);

#define NEW(a, T) ((T *)arena_alloc((a), 1, sizeof(T), _Alignof(T)))
#define NEWN(a, T, n) ((T *)arena_alloc((a), (n), sizeof(T), _Alignof(T)))

/* Growable array in the arena:  VEC(Op *) ops = {0};  vec_push(a, &ops, op); */
#define VEC(T)                                                                                     \
    struct {                                                                                       \
        T *v;                                                                                      \
        int n;                                                                                     \
        int cap;                                                                                   \
    }
#define vec_push(a, vec, x)                                                                        \
    ((vec)->n == (vec)->cap                                                                        \
         ? (void)((vec)->v = vec_grow_((a), (vec)->v, &(vec)->cap, sizeof *(vec)->v))              \
         : (void)0,                                                                                \
     (vec)->v[(vec)->n++] = (x))
void *vec_grow_(Arena *a, void *old, int *cap, size_t elem_size);

/* Growable text in the arena. */
typedef struct {
    Arena *a;
    char *s; /* NUL-terminated, never NULL after the first append */
    size_t n, cap;
} StrBuf;
StrBuf sb_new(Arena *a);
void sb_put(StrBuf *b, const char *s, size_t n);
void sb_puts(StrBuf *b, const char *s);
void sb_printf(StrBuf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Text -> pointer, open addressing, in the arena.  A key is never removed; putting
 * NULL makes it absent for strmap_get.  Keys are not copied. */
typedef struct {
    const char **key;
    void **val;
    int n, cap;
} StrMap;
void *strmap_get(const StrMap *m, const char *key);
bool strmap_has(const StrMap *m, const char *key); /* also true where NULL was put */
void strmap_put(Arena *a, StrMap *m, const char *key, void *val);

/* ---- source positions -------------------------------------------------- */
/* For messages and reports alone: nothing that is computed hangs on a position.
 * Lines and columns count from 1; line 0 means "no position".  `file` indexes
 * Ctx.sources.  Columns are bytes. */
typedef struct {
    uint32_t file, line, col, end_line, end_col; /* end is exclusive */
    /* The innermost call on its way that is no library's; line 0: none.  For reports; in the
     * text of a file, not in dumps. */
    uint32_t site_file, site_line;
    const char *site_name; /* the layer's instance there, "conv1", "blocks.0.att"; or NULL */
} Span;
static inline Span span_of(uint32_t file, uint32_t line, uint32_t col, uint32_t end_line,
                           uint32_t end_col) {
    return (Span){.file = file, .line = line, .col = col, .end_line = end_line, .end_col = end_col};
}
/* The first of the two that is a position. */
static inline Span span_or(Span first, Span second) {
    return first.line ? first : second;
}

typedef struct {
    const char *path; /* as the user spelled it */
    const char *text; /* whole file, NUL-terminated */
    size_t n_bytes;
    bool library; /* it came with the compiler: who reads a report did not write it */
} Source;

/* ---- diagnostics (ir/diag.c, ir/diag.def) -------------------------------- */
typedef enum {
#define DIAG(code, title) DIAG_##code,
#include "diag.def"
#undef DIAG
    N_DIAGS
} DiagCode;

typedef enum { SEV_ERROR, SEV_WARNING, SEV_NOTE } Severity;

typedef struct {
    Severity sev;
    DiagCode code; /* meaningless for notes */
    Span span;
    const char *text;
} Diag;

typedef VEC(Diag) DiagVec;
typedef VEC(Source) SourceVec;

/* ---- the world outside (ir/outside.c) ------------------------------------ */
/* A text that stands for the file of that name, whose path is a plain one. */
typedef struct {
    const char *path, *text;
    size_t n_bytes;
} OutsideFile;

/* What a compile reads and tells besides its own memory.  All zero: it reads files and prints
 * nothing, and its process may have other work. */
typedef struct {
    FILE *out, *log;         /* results without a file; what is told meanwhile; NULL: nowhere */
    bool own_process;        /* it may be copied, and tools write to its standard error */
    const OutsideFile *file; /* looked for before the file system's */
    int n_files;
    bool only_files;          /* only `file` is read, and what the library's folder has */
    const char *library;      /* where that is; NULL: not known yet */
    const char *home;         /* where the runtime is looked for; NULL: as cli_files.c says */
    const char *temp;         /* the private directory, where tools have theirs; NULL: none yet */
    int (*cancelled)(void *); /* asked now and then; nonzero ends the compile; NULL: never */
    void *user;
} Outside;

typedef struct Ctx {
    Arena *a;
    Outside outside;
    SourceVec sources;
    VEC(const char *) others; /* files that are compiled with them: C functions of the user's */
    DiagVec diags;
    int n_errors;
    int max_errors;        /* checking stops recording after this many; default 50 */
    const int *thresholds; /* by number (passes/threshold.h); NULL: all as usual */
    bool mute_notes;       /* the last diagnostic was not recorded: neither are its notes */
    bool running;          /* inside ctx_run */
    bool faulted;          /* ctx_fault was called */
    bool cancelled;        /* ctx_poll() found that it is */
    const char *stage; /* what is being done, for ctx_fault: "pass 'cse'"; NULL: nothing named */
    jmp_buf oom;
    VEC(struct CtxDefer *) defers;
} Ctx;

/* Runs fn(ctx, arg) with out-of-memory and faults caught.  Returns false after a fault (DIAG_E0502
 * is among the diagnostics), after ctx_poll() saw that it was cancelled, or when memory ran out (a
 * DIAG_E0001 is then reported by the caller); ctx may then only be read and freed. */
bool ctx_init(Ctx *c, const Allocator *from);
bool ctx_run(Ctx *c, void (*fn)(Ctx *, void *), void *arg);
void ctx_defer(Ctx *c, void (*fn)(void *), void *arg); /* run by ctx_free or on OOM, newest first */
void ctx_undefer(Ctx *c);                              /* runs them now */
void ctx_free(Ctx *c);

enum { CTX_MAX_SOURCE_BYTES = 256 << 20 };
/* Reads a whole file (at most 256 MB; NUL bytes are kept); DIAG_E0002 and UINT32_MAX when it cannot
 * be read. */
uint32_t ctx_add_file(Ctx *c, const char *path, Span from);
/* Where the user wrote what made it: the place itself, or the call that led to the library's. */
Span ctx_user_span(const Ctx *c, Span at);
/* What a source is called in all that is made: as the user spelled it; what the compiler found in
 * its library, from that folder's name on, "layers/gcn.gnn", so that nothing depends on where the
 * compiler lies. */
const char *ctx_source_name(const Ctx *c, uint32_t file);
uint32_t ctx_add_text(Ctx *c, const char *path, const char *text, size_t n);

/* "a/../b/./m.gnn" -> "b/m.gnn": by its text alone. */
const char *ctx_plain_path(Arena *a, const char *path);
const OutsideFile *ctx_memory_file(Ctx *c, const char *path); /* NULL: it is none */
bool ctx_may_read(Ctx *c, const char *path);                  /* a file of the file system? */
bool ctx_is_readable(Ctx *c, const char *path);               /* in memory, or there and allowed */
/* Tells what is done meanwhile. */
void ctx_log(Ctx *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The whole of a text or of bytes to a file, in place; path NULL: to outside.out.  False after
 * DIAG_E0003. */
bool ctx_write(Ctx *c, const char *path, const char *from, size_t n);
/* Back to ctx_run if the compile was cancelled.  Not to be called with a foreign handle in hand
 * that no ctx_defer knows. */
void ctx_poll(Ctx *c);

/* A repeated (code, span) pair is recorded once: bodies may be checked per use. */
void diag_add(Ctx *c, DiagCode code, Span at, const char *fmt, ...) PRINTF_LIKE(4, 5);
void diag_warn(Ctx *c, DiagCode code, Span at, const char *fmt, ...) PRINTF_LIKE(4, 5);
void diag_note(Ctx *c, Span at, const char *fmt, ...)
    PRINTF_LIKE(3, 4); /* belongs to the last diag */
void diag_print_all(const Ctx *c, FILE *to, bool colour);
/* One of the compiler's own rules is broken, whatever the user wrote: DIAG_E0502 at the line that
 * led there, naming the stage, and back to ctx_run. */
_Noreturn void ctx_fault(Ctx *c, Span at, const char *fmt, ...) PRINTF_LIKE(3, 4);
#define CTX_HOLDS(c, cond, at)                                                                     \
    ((cond) ? (void)0 : ctx_fault(c, at, "%s: this does not hold: %s", __func__, #cond))
const char *diag_code_name(DiagCode code);  /* "E0203" */
const char *diag_code_title(DiagCode code); /* one line, for the error index */

#endif
