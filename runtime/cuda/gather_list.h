/* What a program's device_gather reads (gather.h), one for each column of a batch, and its
 * device_scatter, for which `to` is the whole column. */
#ifndef RUNTIME_CUDA_GATHER_LIST_H
#define RUNTIME_CUDA_GATHER_LIST_H

#include <stdint.h>

typedef struct RtGather {
    const void *from, *row; /* whole column; int32_t or, if wide, int64_t [rows] of it; NULL: all */
    void *to;
    const int32_t *slot; /* by row of the column: which row of `near` it is; -1: of `from` alone */
    const void *near;    /* rows on the device of a column that is not; NULL: there are none */
    int64_t row_bytes;
    int64_t kept;  /* rows from this one on are zeros */
    int64_t first; /* of all words: where this column's begin */
    int32_t wide;
    int32_t word_bytes; /* 16, 4 or 2: rows have whole words */
} RtGather;

#endif
