/* Products of 16-bit matrices: the ways to compute one tile of a product on one thread.
 * gemm_16.c cuts products into tiles and chooses the way. */
#ifndef RUNTIME_GEMM_TILES_16_H
#define RUNTIME_GEMM_TILES_16_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/program.h"

enum { RT_TILE_16_COLS = 256 }; /* of a tile, at most */

/* C[m x n] = A[m x k] B[k x n]; element (i, j) of A is at i * a_row + j * a_col, and one of a_row,
 * a_col is 1; B likewise.  Sums are f32, and rounded once where C is of `in`'s type. */
typedef struct {
    rt_dtype in, out; /* in: RT_BF16 or RT_F16; out: the same, or RT_F32 */
    const uint16_t *a;
    int64_t a_row, a_col;
    const uint16_t *b;
    int64_t b_row, b_col;
    const char *packed; /* B of all tiles by `pack`, from the present column on; NULL: the tile
                           packs its own, and `out` is RT_F32 */
    void *c;
    int64_t c_row;
    int64_t m, n, k;
} RtTile16;

typedef struct {
    int64_t rows, rows_thin; /* of a tile, at most: of a wide and of a thin product */
    size_t room;             /* bytes that a thread works with, 64-byte aligned */
    /* B of n columns: how many bytes, 64-byte aligned where n is a whole number of tiles; how many
     * panels; panel i into the tile's bytes, by any thread. */
    size_t (*packed)(int64_t n, int64_t k);
    int64_t (*panels)(int64_t n);
    void (*pack)(const RtTile16 *t, char *to, int64_t i);
    /* Around the tiles that a thread computes; NULL: nothing is to be done. */
    void (*begin)(void);
    void (*end)(void);
    bool (*tile)(const RtTile16 *t, char *room); /* false: no memory */
} RtTiles16;

/* Of two bf16 operands: the tile registers of AMX, where rt_amx_use; the dot products of
 * AVX512-BF16, where rt_dot_available. */
const RtTiles16 *rt_tiles_amx(void);
const RtTiles16 *rt_tiles_dot(void);
bool rt_dot_available(void);
/* Are the machine's dot products faster than f32's?  On AMD's (Zen 4 and later) twice; on Intel's a
 * Xeon of the fourth generation makes 105 GFLOP/s of them, and 160 in f32. */
bool rt_dot_pays(void);
/* Of any operands, on any machine: f32 kernels on blocks that are converted in the cache. */
const RtTiles16 *rt_tiles_widened(void);

#endif
