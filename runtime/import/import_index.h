/* Which row has a key: of any type, and of several columns. */
#ifndef RUNTIME_IMPORT_INDEX_H
#define RUNTIME_IMPORT_INDEX_H

#include "import_dict.h"
#include "import_source.h"

/* Whole numbers of one column lie in a table of their own, 16 to 32 bytes a row; other keys are
 * texts.  1, 1.0 and, where the key's column is one of numbers, '1' are one key. */
typedef struct RtKeyIndex {
    RtPool *pool;
    int n; /* columns */
    int column[RT_KEY_COLUMNS];
    bool number[RT_KEY_COLUMNS]; /* the column is one of numbers: texts are read as such */
    bool text[RT_KEY_COLUMNS];   /* .. or of texts: numbers are written as such */
    int64_t cap;                 /* slots for whole numbers, a power of two; 0 = none yet */
    int64_t *whole;              /* [cap] the numbers */
    int32_t *whole_row;          /* + 1, 0 = free */
    int64_t n_rows;              /* at most */
    RtDict dict;                 /* keys that are texts */
    int32_t *dict_row;           /* by the text's number */
    int64_t dict_room;           /* of dict_row */
    char *buffer;                /* of a key as a text */
    size_t buffer_n;
} RtKeyIndex;

void rt_key_index_init(RtKeyIndex *x, RtPool *pool, const RtSourceTable *t, const RtKeyColumns *c);
/* *first: the row that had the key before, or this one.  A key with a NULL is none: *first = -1. */
gnnc_status rt_key_index_add(RtKeyIndex *x, const RtDatum *const *key, int32_t row, int32_t *first,
                             RtError *err);
/* *row = -1: there is no such key. */
gnnc_status rt_key_index_find(RtKeyIndex *x, const RtDatum *const *key, int32_t *row, RtError *err);

/* An array in the pool, or where it is large in a file without a name: memory that others may
 * have.  NULL and an error: no room. */
void *rt_import_reserve(RtPool *pool, int64_t n, size_t size, RtError *err);

#endif
