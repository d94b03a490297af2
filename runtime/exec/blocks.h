/* Blocks of rows: where steps follow each other row by row, the driver runs all of them on one
 * block of rows before the next, so that what only these steps touch exists for one block at a
 * time, and is still in cache when it is read (codegen/plan_blocks.c finds such steps).
 *
 * A sum over rows is made in chunks of rows that are added in order, so a block is some whole
 * chunks: the same sums either way.  The sizes decide, never the number of threads. */
#ifndef RUNTIME_BLOCKS_H
#define RUNTIME_BLOCKS_H

#include <stdint.h>

enum {
    RT_SUM_CHUNKS = 64,  /* at most, of a sum over rows */
    RT_SUM_ROWS = 1024,  /* at least, of a chunk; the last may have fewer */
    RT_BLOCK_CHUNKS = 4, /* of a block: work for some threads where a step is such a sum */
};

/* Rows of a block; the last has fewer. */
static inline int64_t rt_block_rows(int64_t rows) {
    int64_t n = (rows + RT_SUM_ROWS - 1) / RT_SUM_ROWS;
    n = n < 1 ? 1 : n > RT_SUM_CHUNKS ? RT_SUM_CHUNKS : n;
    return RT_BLOCK_CHUNKS * ((rows + n - 1) / n);
}

/* Rows that a block has at most where there are `rows` or fewer. */
static inline int64_t rt_block_most(int64_t rows) {
    int64_t chunk = (rows + RT_SUM_CHUNKS - 1) / RT_SUM_CHUNKS;
    int64_t most = RT_BLOCK_CHUNKS * (chunk < RT_SUM_ROWS ? RT_SUM_ROWS : chunk);
    return rows < most ? rows : most;
}

/* Bytes that a buffer of n_bytes over `rows` takes when it holds one block; its first row then
 * lies where it would in the whole, up to the alignment. */
static inline int64_t rt_block_bytes(int64_t n_bytes, int64_t rows, int64_t align) {
    int64_t most = rt_block_most(rows);
    return most < rows ? n_bytes / rows * most + align : n_bytes;
}

#endif
