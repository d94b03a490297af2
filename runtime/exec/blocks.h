/* Blocks of rows: where steps follow each other row by row, the driver runs all of them on one
 * block of rows before the next, so that what only these steps touch exists for one block at a
 * time, and is still in cache when it is read (codegen/plan_passes/plan_blocks.c finds such steps).
 *
 * A sum over rows is made in chunks of rows that are added in order, so a block is some whole
 * chunks: the same sums either way.  The sizes decide, never the number of threads. */
#ifndef RUNTIME_BLOCKS_H
#define RUNTIME_BLOCKS_H

#include <stdint.h>

enum {
    RT_SUM_CHUNKS = 64,   /* at most, of a sum over rows */
    RT_SUM_ROWS = 256,    /* at least, of a chunk; the last may have fewer */
    RT_BLOCK_CHUNKS = 4,  /* at least, of a block: work for some threads in such a sum */
    RT_BLOCK_ROWS = 4096, /* at least, of a block: its steps are worth waking threads for */
};

static inline int64_t rt_ceil_div(int64_t x, int64_t y) {
    return (x + y - 1) / y;
}

/* Rows of a chunk, as codegen/lower/lower_long.c cuts them. */
static inline int64_t rt_sum_chunk(int64_t rows) {
    int64_t n = rt_ceil_div(rows, RT_SUM_ROWS);
    return rt_ceil_div(rows, n < 1 ? 1 : n > RT_SUM_CHUNKS ? RT_SUM_CHUNKS : n);
}

static inline int64_t rt_block_chunks(int64_t rows) {
    int64_t chunk = rt_sum_chunk(rows), n = chunk ? rt_ceil_div(RT_BLOCK_ROWS, chunk) : 0;
    return n < RT_BLOCK_CHUNKS ? RT_BLOCK_CHUNKS : n;
}

/* Rows of a block; the last has fewer. */
static inline int64_t rt_block_rows(int64_t rows) {
    return rt_block_chunks(rows) * rt_sum_chunk(rows);
}

/* Rows that a block has at most where there are `rows` or fewer. */
static inline int64_t rt_block_most(int64_t rows) {
    int64_t chunk = rt_ceil_div(rows, RT_SUM_CHUNKS);
    if (chunk < RT_SUM_ROWS) chunk = RT_SUM_ROWS;
    int64_t some = RT_BLOCK_CHUNKS * chunk, most = RT_BLOCK_ROWS + chunk;
    if (most < some) most = some;
    return rows < most ? rows : most;
}

/* Bytes that a buffer of n_bytes over `rows` takes when it holds one block; its first row then
 * lies where it would in the whole, up to the alignment. */
static inline int64_t rt_block_bytes(int64_t n_bytes, int64_t rows, int64_t align) {
    int64_t most = rt_block_most(rows);
    return most < rows ? n_bytes / rows * most + align : n_bytes;
}

#endif
