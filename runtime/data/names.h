/* A dictionary of strings: each new one gets the next number. */
#ifndef RUNTIME_NAMES_H
#define RUNTIME_NAMES_H

#include "runtime/status.h"

typedef struct RtNames {
    int64_t n, cap;    /* cap: a power of two, never more than half full */
    const char **keys; /* [n] by number; the caller keeps the texts */
    int32_t *slots;    /* [cap] number + 1, 0 = free */
} RtNames;

/* Room for n_max names; false: no memory. */
bool rt_names_new(RtPool *pool, RtNames *t, int64_t n_max);
int32_t rt_names_find(const RtNames *t, const char *key); /* -1: absent */
int32_t rt_names_add(RtNames *t, const char *key);        /* its number, new or old */

/* Keys of rows, and which row had each of them first. */
typedef struct {
    RtNames names;
    int64_t *row;
} RtKeys;

bool rt_keys_new(RtPool *pool, RtKeys *k, int64_t n_max);
/* The row, from 1 on, that has had the key before; 0: none, so it is this row's. */
int64_t rt_keys_take(RtKeys *k, const char *key, int64_t row);

#endif
