/* The arena: memory that is freed all at once, and the growable array, text and
 * name table that live in it.
 *
 * Blocks double from 16 KB to 1 MB; a request above half a block gets a block of
 * its own, so little is wasted and every byte handed out is zero.  When a block
 * cannot be had, control goes to the jmp_buf of arena_on_oom (Lua's ldo.c does
 * the same), so no caller tests for NULL. */
#include "ir/base.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct Block Block;
struct Block {
    Block *next;
    size_t size, used; /* of the bytes after this header */
    max_align_t data[];
};

struct Arena {
    Allocator from;
    Block *blocks; /* the newest with room first */
    jmp_buf *oom;
    size_t next_size, used;
};

/* malloc, as an Allocator has it. */
static void *std_alloc(void *user, size_t n) {
    UNUSED(user);
    return malloc(n);
}

/* free, as an Allocator has it. */
static void std_release(void *user, void *block) {
    UNUSED(user);
    free(block);
}

/* Makes an arena. */
Arena *arena_new(const Allocator *from) {
    Allocator f = from ? *from : (Allocator){.alloc = std_alloc, .release = std_release};
    Arena *a = f.alloc(f.user, sizeof *a);
    if (a) *a = (Arena){.from = f, .next_size = f.block_bytes ? f.block_bytes : 16 * 1024};
    return a;
}

/* Frees an arena and all that was allocated from it. */
void arena_free(Arena *a) {
    if (!a) return;
    for (Block *b = a->blocks, *next; b; b = next) {
        next = b->next;
        a->from.release(a->from.user, b);
    }
    a->from.release(a->from.user, a);
}

/* Sets where control goes when memory runs out. */
void arena_on_oom(Arena *a, jmp_buf *where) {
    a->oom = where;
}

/* The number of bytes allocated so far. */
size_t arena_used_bytes(const Arena *a) {
    return a->used;
}

/* Leaves for the place that arena_on_oom() set. */
static _Noreturn void out_of_memory(Arena *a) {
    assert(a->oom && "arena: out of memory outside ctx_run");
    longjmp(*a->oom, 1);
}

/* Adds a block. A request above half a block gets one of its own, put behind the current one. */
static Block *block_new(Arena *a, size_t bytes) {
    bool own = bytes > a->next_size / 2;
    size_t size = own ? bytes : a->next_size;
    if (size > SIZE_MAX - sizeof(Block)) out_of_memory(a);
    Block *b = a->from.alloc(a->from.user, sizeof(Block) + size);
    if (!b) out_of_memory(a);
    *b = (Block){.size = size};
    if (own && a->blocks) {
        b->next = a->blocks->next;
        a->blocks->next = b;
    } else {
        b->next = a->blocks;
        a->blocks = b;
    }
    if (!own && !a->from.block_bytes && a->next_size < 1024 * 1024) a->next_size *= 2;
    return b;
}

/* Allocates n elements of `size` bytes, zeroed and aligned. Does not return where memory runs out:
 * jumps back to ctx_run(). */
void *arena_alloc(Arena *a, size_t n, size_t size, size_t align) {
    if (size && n > (SIZE_MAX / 2) / size) out_of_memory(a);
    size_t bytes = n * size;
    Block *b = a->blocks;
    size_t at = b ? (b->used + align - 1) / align * align : 0;
    if (!b || at > b->size || bytes > b->size - at) {
        b = block_new(a, bytes);
        at = 0;
    }
    b->used = at + bytes;
    a->used += bytes;
    return memset((char *)b->data + at, 0, bytes);
}

/* Copies a text of n bytes. */
char *arena_strndup(Arena *a, const char *s, size_t n) {
    char *p = arena_alloc(a, n + 1, 1, 1);
    if (n) memcpy(p, s, n);
    return p;
}

/* Formats a text, as vprintf() does, into the arena. */
char *arena_vprintf(Arena *a, const char *fmt, va_list ap) {
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    char *p = arena_alloc(a, (size_t)(n < 0 ? 0 : n) + 1, 1, 1);
    if (n > 0) vsnprintf(p, (size_t)n + 1, fmt, again);
    va_end(again);
    return p;
}

/* Formats a text, as printf() does, into the arena. */
char *arena_printf(Arena *a, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    char *p = arena_vprintf(a, fmt, ap);
    va_end(ap);
    return p;
}

/* Doubles the room of a growable array: a copy in the arena, *cap gets its capacity. Used by
 * vec_push(). */
void *vec_grow_(Arena *a, void *old, int *cap, size_t elem_size) {
    if (*cap > INT32_MAX / 2) out_of_memory(a);
    int grown = *cap ? *cap * 2 : 8;
    void *p = arena_alloc(a, (size_t)grown, elem_size, _Alignof(max_align_t));
    if (*cap) memcpy(p, old, (size_t)*cap * elem_size);
    *cap = grown;
    return p;
}

/* ---- text ---------------------------------------------------------------- */
/* An empty text. */
StrBuf sb_new(Arena *a) {
    return (StrBuf){.a = a};
}

/* Makes room for `more` bytes and a final 0 in the text buffer. */
static void sb_reserve(StrBuf *b, size_t more) {
    if (b->s && b->cap - b->n > more) return;
    if (more > SIZE_MAX / 4 || b->cap > SIZE_MAX / 4) out_of_memory(b->a);
    size_t cap = b->cap ? b->cap * 2 : 128;
    while (cap <= b->n + more) cap *= 2;
    char *s = arena_alloc(b->a, cap, 1, 1);
    if (b->n) memcpy(s, b->s, b->n);
    b->s = s;
    b->cap = cap;
}

/* Appends n bytes. */
void sb_put(StrBuf *b, const char *s, size_t n) {
    sb_reserve(b, n);
    if (n) memcpy(b->s + b->n, s, n);
    b->n += n;
    b->s[b->n] = 0;
}

/* Appends a text. */
void sb_puts(StrBuf *b, const char *s) {
    sb_put(b, s, strlen(s));
}

/* Appends a formatted text. */
void sb_printf(StrBuf *b, const char *fmt, ...) {
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    if (n < 0) n = 0;
    sb_reserve(b, (size_t)n);
    vsnprintf(b->s + b->n, (size_t)n + 1, fmt, again);
    b->n += (size_t)n;
    va_end(again);
    va_end(ap);
}

/* ---- names ---------------------------------------------------------------- */
static uint32_t hash(const char *s) { /* FNV-1a */
    uint32_t h = 2166136261u;
    for (; *s; s++) h = (h ^ (unsigned char)*s) * 16777619u;
    return h;
}

/* The slot of the key, or the empty slot where it belongs; cap is a power of two. */
static int slot_of(const StrMap *m, const char *key) {
    uint32_t i = hash(key) & (uint32_t)(m->cap - 1);
    while (m->key[i] && strcmp(m->key[i], key) != 0) i = (i + 1) & (uint32_t)(m->cap - 1);
    return (int)i;
}

/* The value of a key, or NULL. */
void *strmap_get(const StrMap *m, const char *key) {
    return m->cap ? m->val[slot_of(m, key)] : NULL;
}

/* Whether the key was ever put. */
bool strmap_has(const StrMap *m, const char *key) {
    return m->cap && m->key[slot_of(m, key)];
}

/* Doubles the table. */
static void strmap_grow(Arena *a, StrMap *m) {
    if (m->cap > INT32_MAX / 4) out_of_memory(a);
    StrMap big = {.cap = m->cap ? m->cap * 2 : 16, .n = m->n};
    big.key = NEWN(a, const char *, (size_t)big.cap);
    big.val = NEWN(a, void *, (size_t)big.cap);
    for (int i = 0; i < m->cap; i++) {
        if (!m->key[i]) continue;
        int s = slot_of(&big, m->key[i]);
        big.key[s] = m->key[i];
        big.val[s] = m->val[i];
    }
    *m = big;
}

/* Sets the value of a key. The map keeps the pointer to the key, not a copy. */
void strmap_put(Arena *a, StrMap *m, const char *key, void *val) {
    if (m->n * 3 >= m->cap * 2) strmap_grow(a, m);
    int s = slot_of(m, key);
    if (!m->key[s]) m->n++;
    m->key[s] = key;
    m->val[s] = val;
}
