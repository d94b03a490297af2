/* A growing dictionary of texts, which it copies: each new one gets the next number. */
#ifndef RUNTIME_IMPORT_DICT_H
#define RUNTIME_IMPORT_DICT_H

#include "runtime/status.h"

typedef struct RtDictText {
    const char *s; /* ended by a NUL */
    uint32_t n, hash;
} RtDictText;

typedef struct RtDict {
    RtPool *pool;
    int64_t n, room;   /* texts */
    int64_t cap;       /* slots: a power of two, never more than three quarters full */
    RtDictText *texts; /* [n] by number */
    uint32_t *slots;   /* number + 1, 0 = free */
    char *chunk;       /* where the next text goes */
    size_t left;       /* bytes of the chunk that are free */
    size_t bytes;      /* of all texts */
} RtDict;

void rt_dict_init(RtDict *d, RtPool *pool);
int64_t rt_dict_find(const RtDict *d, const char *s, size_t n); /* -1: absent */
int64_t rt_dict_add(RtDict *d, const char *s, size_t n);        /* -1: no memory */
/* A copy of a text that gets no number; NULL: no memory. */
char *rt_dict_keep(RtDict *d, const char *s, size_t n);

#endif
