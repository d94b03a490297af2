/* f32 matrix products on the tile registers of AMX, each number in three pieces of bf16: one tile
 * of a product on one thread.  gemm.c cuts products into tiles. */
#ifndef RUNTIME_GEMM_PIECES_H
#define RUNTIME_GEMM_PIECES_H

#include "gemm_kernel.h"

enum {
    RT_PIECES_PANEL = 16, /* columns that are packed at a time */
    /* Floats that a thread works with: pieces of 32 rows and, for a long k, of 256 columns. */
    RT_PIECES_WORK = 3 * RT_PANEL_K * (RT_PANEL_TILE + 32) / 2
};

/* Has the machine such tiles, and may this process use them?  rt_amx_use asks for it. */
bool rt_pieces_available(void);

/* The others stand between rt_amx_begin and rt_amx_end. */
/* Floats that B takes in pieces; the columns of a tile (RT_PANEL_TILE) lie together. */
int64_t rt_pieces_packed(int64_t k, int64_t n);
/* Panel i, 16 columns, of B's pieces; false: not all of it is finite. */
bool rt_pieces_pack(const RtTile *t, float *to, int64_t i);
/* C = A B with B packed; false: not all of A is finite, and C is undefined. */
bool rt_pieces_tile(const RtTile *t, float *work);
/* The same for a long k, with B as it is. */
bool rt_pieces_long_tile(const RtTile *t, float *work);

#endif
