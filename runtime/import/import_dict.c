/* Open addressing; a slot's text is compared only where the hashes agree. */
#include "import_dict.h"

#include <string.h>

enum { LEAST_CHUNK = 256, MOST_CHUNK = 1 << 16, FIRST = 64 };

void rt_dict_init(RtDict *d, RtPool *pool) {
    *d = (RtDict){.pool = pool};
}

/* Eight bytes at a time: multiplied, and mixed by the upper half. */
static uint32_t hash_of(const char *s, size_t n) {
    const uint64_t prime = 0x9e3779b97f4a7c15u;
    uint64_t h = n * prime, word;
    for (; n >= 8; s += 8, n -= 8) {
        memcpy(&word, s, 8);
        h = (h ^ word) * prime;
        h ^= h >> 32;
    }
    word = 0;
    if (n) memcpy(&word, s, n);
    h = (h ^ word) * prime;
    return (uint32_t)(h >> 32);
}

/* The slot of a text, or the free one where it would be; there is always a free one. */
static uint32_t *slot_of(const RtDict *d, const char *s, size_t n, uint32_t hash) {
    for (uint64_t i = hash;; i++) {
        uint32_t *slot = &d->slots[i & (uint64_t)(d->cap - 1)];
        if (!*slot) return slot;
        const RtDictText *t = &d->texts[*slot - 1];
        if (t->hash == hash && t->n == n && memcmp(t->s, s, n) == 0) return slot;
    }
}

int64_t rt_dict_find(const RtDict *d, const char *s, size_t n) {
    return d->cap ? (int64_t)*slot_of(d, s, n, hash_of(s, n)) - 1 : -1;
}

/* Doubles the table; false: no memory. */
static bool grow(RtDict *d) {
    int64_t cap = d->cap ? 2 * d->cap : FIRST, room = cap / 4 * 3;
    RtDictText *texts = RT_NEWN(d->pool, RtDictText, room);
    uint32_t *slots = RT_NEWN(d->pool, uint32_t, cap);
    if (!texts || !slots) return false;
    if (d->n) memcpy(texts, d->texts, (size_t)d->n * sizeof *texts);
    rt_pool_drop(d->pool, d->texts);
    rt_pool_drop(d->pool, d->slots);
    d->texts = texts;
    d->slots = slots;
    d->cap = cap;
    d->room = room;
    for (int64_t i = 0; i < d->n; i++)
        *slot_of(d, texts[i].s, texts[i].n, texts[i].hash) = (uint32_t)i + 1;
    return true;
}

char *rt_dict_keep(RtDict *d, const char *s, size_t n) {
    if (n + 1 > d->left) {
        size_t size = d->bytes < LEAST_CHUNK  ? LEAST_CHUNK
                      : d->bytes > MOST_CHUNK ? MOST_CHUNK
                                              : d->bytes;
        if (size < n + 1) size = n + 1;
        if (!(d->chunk = rt_pool_alloc(d->pool, size, 1))) return NULL;
        d->left = size;
    }
    char *to = d->chunk;
    memcpy(to, s, n);
    to[n] = 0;
    d->chunk += n + 1;
    d->left -= n + 1;
    d->bytes += n + 1;
    return to;
}

int64_t rt_dict_add(RtDict *d, const char *s, size_t n) {
    if (n > UINT32_MAX || (d->n == d->room && (d->n >= INT32_MAX || !grow(d)))) return -1;
    uint32_t hash = hash_of(s, n), *slot = slot_of(d, s, n, hash);
    if (*slot) return (int64_t)*slot - 1;
    char *text = rt_dict_keep(d, s, n);
    if (!text) return -1;
    d->texts[d->n++] = (RtDictText){text, (uint32_t)n, hash};
    *slot = (uint32_t)d->n;
    return d->n - 1;
}
