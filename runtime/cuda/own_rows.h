/* What a kernel of rows that processes share is told of them (kernel.h, device_own.c). */
#ifndef RUNTIME_CUDA_OWN_ROWS_H
#define RUNTIME_CUDA_OWN_ROWS_H

#include <stdint.h>

typedef struct RtOwnRows {
    int64_t lo, hi, rows;       /* the own ones, [lo, hi), of so many */
    const unsigned char *needs; /* on the device, by own row: does it need rows of others? */
    int pass;                   /* 0: all; 1: those that need none; 2: those that do */
} RtOwnRows;

#endif
