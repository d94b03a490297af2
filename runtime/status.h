/* What every part of the runtime stands on: the error object and memory.
 *
 * A function that can fail returns a gnnc_status and takes an RtError *, which
 * may be NULL.  The *first* failure's message stays: it is the cause, what
 * follows is the consequence.  Memory comes from an RtPool, which hangs off one
 * handle and is freed at once, so that error paths have nothing to undo. */
#ifndef RUNTIME_STATUS_H
#define RUNTIME_STATUS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gnnc.h"

#if defined(__GNUC__)
#define RT_PRINTF(f, a) __attribute__((format(printf, f, a)))
/* Seen in libgnnrt.so: the half on a GPU, which is in a model's own library, calls it. */
#define RT_SERVICE __attribute__((visibility("default")))
#else
#define RT_PRINTF(f, a)
#define RT_SERVICE
#endif

typedef struct RtError {
    char text[512]; /* "" = nothing failed yet */
} RtError;

/* Records the message unless one is there; returns `status`. */
RT_SERVICE gnnc_status rt_fail(RtError *err, gnnc_status status, const char *fmt, ...)
    RT_PRINTF(3, 4);
/* "<what>: out of memory" */
RT_SERVICE gnnc_status rt_fail_nomem(RtError *err, const char *what);
/* "<path>: cannot <verb>: <strerror(errno)>" */
gnnc_status rt_fail_errno(RtError *err, const char *path, const char *verb);

/* A public structure that the caller made, as long as he says: GNNC_E_ARG where none of its
 * versions has that size.  `last`: the last field of the first version. */
#define RT_STRUCT_CHECK(err, type, out, last)                                                      \
    rt_struct_check((err), #type, (out)->struct_size, offsetof(type, last) + sizeof(out)->last)
gnnc_status rt_struct_check(RtError *err, const char *type, size_t size, size_t least);
/* Fills what the caller has of it, behind its size; what we do not know is 0. */
void rt_struct_copy_out(void *out, const void *own, size_t n_own);

#define TRY(st, call)                                                                              \
    do {                                                                                           \
        if (((st) = (call)) != GNNC_OK) goto out;                                                  \
    } while (0)

/* ---- memory ------------------------------------------------------------- */
/* Where blocks come from; tests make the n-th call fail. `alloc` returns
 * zeroed bytes aligned for any type, or NULL. */
typedef struct RtAlloc {
    void *(*alloc)(void *user, size_t n_bytes);
    void (*release)(void *user, void *block);
    void *user;
} RtAlloc;

RtAlloc rt_alloc_default(void); /* calloc and free; large blocks are mapped on their own */

/* Owns blocks and file mappings until rt_pool_free().  Not thread safe. */
typedef struct RtPool {
    RtAlloc from;
    struct RtBlock *blocks, *mappings;
    char *small; /* rest of the block that small requests are cut from */
    size_t small_left;
} RtPool;

enum { RT_ALIGN = 64 }; /* of every array: a cache line, and any vector register */

void rt_pool_init(RtPool *pool, const RtAlloc *from); /* NULL = rt_alloc_default() */
void rt_pool_free(RtPool *pool);                      /* usable again afterwards */
/* n * size zeroed bytes, or NULL: no memory, or n * size overflows. n = 0 gives
 * a valid pointer. Aligned to RT_ALIGN, which kernels count on. */
RT_SERVICE void *rt_pool_alloc(RtPool *pool, size_t n, size_t size);
/* Gives one array back before the pool goes; NULL or an array of less than a KiB stays. */
RT_SERVICE void rt_pool_drop(RtPool *pool, const void *p);
/* The same, but another pool of the same `from` has the array then: nothing is released. */
void rt_pool_move(RtPool *pool, const void *p, RtPool *to);
char *rt_pool_strndup(RtPool *pool, const char *s, size_t n);
char *rt_pool_printf(RtPool *pool, const char *fmt, ...) RT_PRINTF(2, 3);
/* The pool unmaps [p, p + n) when it is freed. */
bool rt_pool_own_mapping(RtPool *pool, void *p, size_t n);
/* Does p lie in a mapping that the pool owns? */
bool rt_pool_maps(const RtPool *pool, const void *p);
/* Pages of mapped files leave this process until they are read again. */
void rt_pool_forget_pages(const RtPool *pool);

#define RT_NEW(pool, T) ((T *)rt_pool_alloc((pool), 1, sizeof(T)))
#define RT_NEWN(pool, T, n) ((T *)rt_pool_alloc((pool), (size_t)(n), sizeof(T)))

#endif
