/* What a program's device_rows does (rows.h, device_rows.c): takes rows that processes exchange out
 * of a buffer, puts them into one, and adds up partial sums. */
#ifndef RUNTIME_CUDA_ROWS_LIST_H
#define RUNTIME_CUDA_ROWS_LIST_H

#include <stdint.h>

typedef enum {
    RT_ROWS_TAKE, /* to[i] = from[row[i]], rows of `size` bytes */
    RT_ROWS_PUT,  /* to[row[i]] = from[i] */
    RT_ROWS_ALONE /* of `size` partial sums of n numbers the first becomes from[], the others 0 */
} RtRowsWhat;

typedef struct RtRowsOp {
    RtRowsWhat what;
    int64_t n, size;
} RtRowsOp;

/* Sums of n numbers each, added in an order that is given: code[] is a postfix text.  A number p
 * from 0 on is the sum of the partial sums first[p] .. first[p + 1] - 1 of `from`, one after the
 * other, of which each begins `stride` numbers behind the one before; RT_TREE_ADD adds the last
 * two, and RT_TREE_PUT writes the last one behind those that were written before. */
enum {
    RT_TREE_PARTS = 64,
    RT_TREE_DEPTH = 8,
    RT_TREE_CODES = 192,
    RT_TREE_ADD = -1,
    RT_TREE_PUT = -2
};
typedef struct RtTreeSum {
    int64_t n, stride;
    int32_t n_codes;
    int16_t first[RT_TREE_PARTS + 1];
    int8_t code[RT_TREE_CODES];
} RtTreeSum;

#endif
