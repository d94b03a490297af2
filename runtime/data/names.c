/* Open addressing with linear probing over FNV-1a hashes. */
#include "names.h"

#include <string.h>

bool rt_names_new(RtPool *pool, RtNames *t, int64_t n_max) {
    *t = (RtNames){.cap = 16};
    while (t->cap < 2 * n_max) t->cap *= 2;
    t->keys = RT_NEWN(pool, const char *, t->cap / 2);
    t->slots = RT_NEWN(pool, int32_t, t->cap);
    return t->keys && t->slots;
}

/* FNV-1a of the text. */
static uint64_t hash(const char *s) {
    uint64_t h = 14695981039346656037u;
    for (; *s; s++) h = (h ^ (uint8_t)*s) * 1099511628211u;
    return h ^ h >> 32;
}

/* The slot of a key, or the free one where it would be; there is always a free one. */
static int32_t *find_slot(const RtNames *t, const char *key) {
    for (uint64_t i = hash(key);; i++) {
        int32_t *slot = &t->slots[i & (uint64_t)(t->cap - 1)];
        if (!*slot || strcmp(t->keys[*slot - 1], key) == 0) return slot;
    }
}

int32_t rt_names_find(const RtNames *t, const char *key) {
    return *find_slot(t, key) - 1;
}

int32_t rt_names_add(RtNames *t, const char *key) {
    int32_t *slot = find_slot(t, key);
    if (!*slot) {
        t->keys[t->n++] = key;
        *slot = (int32_t)t->n;
    }
    return *slot - 1;
}

bool rt_keys_new(RtPool *pool, RtKeys *k, int64_t n_max) {
    k->row = RT_NEWN(pool, int64_t, n_max);
    return k->row && rt_names_new(pool, &k->names, n_max);
}

int64_t rt_keys_take(RtKeys *k, const char *key, int64_t row) {
    int64_t n = k->names.n;
    int32_t i = rt_names_add(&k->names, key);
    if (i < n) return k->row[i];
    k->row[i] = row;
    return 0;
}
