/* Status texts, the error object, and pools of memory. */
#include "status.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/data/number.h"

const char *gnnc_status_text(gnnc_status status) {
    switch (status) {
#define CASE(name, value, text)                                                                    \
    case GNNC_##name:                                                                              \
        return text;
        GNNC_STATUS_MAP(CASE)
#undef CASE
    }
    return "unknown status";
}

gnnc_status rt_fail(RtError *err, gnnc_status status, const char *fmt, ...) {
    if (!err || err->text[0]) return status;
    va_list ap;
    va_start(ap, fmt);
    rt_vsnprintf(err->text, sizeof err->text, fmt, ap);
    va_end(ap);
    return status;
}

gnnc_status rt_fail_nomem(RtError *err, const char *what) {
    return rt_fail(err, GNNC_E_NOMEM, "%s: out of memory", what);
}

gnnc_status rt_fail_errno(RtError *err, const char *path, const char *verb) {
    char reason[128];
    /* The GNU form may return a constant string instead of filling the buffer. */
    const char *text = strerror_r(errno, reason, sizeof reason);
    return rt_fail(err, GNNC_E_IO, "%s: cannot %s: %s", path, verb, text);
}

/* ---- public structures ---------------------------------------------------- */
/* A size that was never set is seldom that small: filling it would write over the caller's stack.
 */
enum { STRUCT_MOST = 4096 };

/* Is the size that the caller gave a struct possible: with all fields of the first version, and not
 * too large? */
gnnc_status rt_struct_check(RtError *err, const char *type, size_t size, size_t least) {
    if (size >= least && size <= STRUCT_MOST) return GNNC_OK;
    return rt_fail(err, GNNC_E_ARG, "struct_size of the %s is %zu: set it to sizeof(%s)", type,
                   size, type);
}

void rt_struct_copy_out(void *out, const void *own, size_t n_own) {
    size_t size, head = sizeof size;
    memcpy(&size, out, head);
    size_t n = size < n_own ? size : n_own;
    memcpy((char *)out + head, (const char *)own + head, n - head);
    memset((char *)out + n, 0, size - n);
}

/* ---- memory ------------------------------------------------------------- */
typedef struct RtBlock {
    struct RtBlock *next;
    void *mapping; /* of a file; NULL = memory behind this head */
    size_t mapping_bytes;
    bool shared; /* small requests are cut from it */
} RtBlock;

enum { SMALL_MAX = 1024, SMALL_BLOCK = 16 * 1024 };

/* malloc keeps what is freed: the index arrays that loading a graph needs for a moment stayed
 * in the process (90 of 1083 MiB).  Blocks from 1 MiB on come from the system and go back. */
typedef struct {
    _Alignas(max_align_t) size_t mapped_bytes; /* 0 = of malloc */
} Head;

enum { MAP_FROM = 1 << 20 };

/* Zeroed memory behind a header: small blocks are the C library's, large ones mappings of their
 * own, which go back to the system when they are released. */
static void *default_alloc(void *user, size_t n_bytes) {
    (void)user;
    if (n_bytes > SIZE_MAX - sizeof(Head)) return NULL;
    size_t n = n_bytes + sizeof(Head);
    bool map = n >= MAP_FROM;
    Head *h = map ? mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                  : calloc(1, n);
    if (!h || h == MAP_FAILED) return NULL;
    h->mapped_bytes = map ? n : 0;
    return h + 1;
}

/* Releases a block of default_alloc. */
static void default_release(void *user, void *block) {
    (void)user;
    Head *h = (Head *)block - 1;
    if (h->mapped_bytes)
        munmap(h, h->mapped_bytes);
    else
        free(h);
}

RtAlloc rt_alloc_default(void) {
    return (RtAlloc){default_alloc, default_release, NULL};
}

void rt_pool_init(RtPool *pool, const RtAlloc *from) {
    *pool = (RtPool){.from = from ? *from : rt_alloc_default()};
}

/* Releases a list of blocks and the mappings that they keep. */
static void free_blocks(RtPool *pool, RtBlock *b) {
    for (RtBlock *next; b; b = next) {
        next = b->next;
        if (b->mapping) munmap(b->mapping, b->mapping_bytes);
        pool->from.release(pool->from.user, b);
    }
}

void rt_pool_free(RtPool *pool) {
    free_blocks(pool, pool->blocks);
    free_blocks(pool, pool->mappings);
    pool->blocks = pool->mappings = NULL;
    pool->small = NULL;
    pool->small_left = 0;
}

/* Adds a block to the pool, with n_bytes from an aligned address, which is returned; NULL: no
 * memory. */
static char *new_block(RtPool *pool, size_t n_bytes) {
    if (n_bytes > SIZE_MAX / 2) return NULL;
    RtBlock *b = pool->from.alloc(pool->from.user, sizeof(RtBlock) + RT_ALIGN + n_bytes);
    if (!b) return NULL;
    *b = (RtBlock){.next = pool->blocks};
    pool->blocks = b;
    uintptr_t start = (uintptr_t)(b + 1);
    return (char *)(b + 1) + (RT_ALIGN - start % RT_ALIGN) % RT_ALIGN;
}

/* Takes a small piece from the block that small pieces share, or from a new one. */
static void *alloc_small(RtPool *pool, size_t n_bytes) {
    n_bytes = (n_bytes + RT_ALIGN - 1) / RT_ALIGN * RT_ALIGN;
    if (n_bytes == 0) n_bytes = RT_ALIGN;
    if (n_bytes > pool->small_left) {
        char *block = new_block(pool, SMALL_BLOCK);
        if (!block) return NULL;
        pool->blocks->shared = true;
        pool->small = block;
        pool->small_left = SMALL_BLOCK;
    }
    char *p = pool->small;
    pool->small += n_bytes;
    pool->small_left -= n_bytes;
    return p;
}

void *rt_pool_alloc(RtPool *pool, size_t n, size_t size) {
    if (size && n > SIZE_MAX / size) return NULL;
    size_t n_bytes = n * size;
    return n_bytes < SMALL_MAX ? alloc_small(pool, n_bytes) : new_block(pool, n_bytes);
}

/* The block of one array, out of its pool; NULL: it has none of its own. */
static RtBlock *take_block(RtPool *pool, const void *p) {
    for (RtBlock **at = &pool->blocks, *b; p && (b = *at); at = &b->next) {
        uintptr_t from = (uintptr_t)(b + 1), x = (uintptr_t)p;
        if (b->shared || x < from || x - from >= RT_ALIGN) continue;
        *at = b->next;
        return b;
    }
    return NULL;
}

void rt_pool_drop(RtPool *pool, const void *p) {
    RtBlock *b = take_block(pool, p);
    if (b) pool->from.release(pool->from.user, b);
}

void rt_pool_move(RtPool *pool, const void *p, RtPool *to) {
    RtBlock *b = take_block(pool, p);
    if (!b) return;
    b->next = to->blocks;
    to->blocks = b;
}

/* Copies n characters into the pool, and ends them; NULL: no memory. */
char *rt_pool_strndup(RtPool *pool, const char *s, size_t n) {
    char *copy = n < SIZE_MAX ? rt_pool_alloc(pool, n + 1, 1) : NULL;
    if (copy && n) memcpy(copy, s, n); /* s may be NULL then */
    return copy;
}

/* Prints into a text of the pool; NULL: no memory. */
char *rt_pool_printf(RtPool *pool, const char *fmt, ...) {
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = rt_vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *text = n < 0 ? NULL : rt_pool_alloc(pool, (size_t)n + 1, 1);
    if (text) rt_vsnprintf(text, (size_t)n + 1, fmt, again);
    va_end(again);
    return text;
}

bool rt_pool_own_mapping(RtPool *pool, void *p, size_t n) {
    RtBlock *b = pool->from.alloc(pool->from.user, sizeof *b);
    if (!b) return false;
    *b = (RtBlock){pool->mappings, p, n, false};
    pool->mappings = b;
    return true;
}

bool rt_pool_maps(const RtPool *pool, const void *p) {
    for (const RtBlock *b = pool->mappings; b; b = b->next) {
        uintptr_t from = (uintptr_t)b->mapping, at = (uintptr_t)p;
        if (from <= at && at < from + b->mapping_bytes) return true;
    }
    return false;
}

void rt_pool_forget_pages(const RtPool *pool) {
    for (const RtBlock *b = pool->mappings; b; b = b->next)
        madvise(b->mapping, b->mapping_bytes, MADV_DONTNEED); /* only a wish */
}
