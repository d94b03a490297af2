/* What a program's device_gather reads (gather.h), one for each column of a batch. */
#ifndef RUNTIME_CUDA_GATHER_LIST_H
#define RUNTIME_CUDA_GATHER_LIST_H

#include <stdint.h>

enum { RT_GATHER_VECTOR = 16 };

typedef struct RtGather {
    const void *from, *row; /* whole column; int32_t or, if wide, int64_t [rows] */
    void *to;
    int64_t row_bytes;
    int64_t first; /* of all words: where this column's begin */
    int32_t wide;
    int32_t vector; /* words have 16 bytes, else 4 */
} RtGather;

#endif
