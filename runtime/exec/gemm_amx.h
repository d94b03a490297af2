/* Products of bf16 matrices by the processor's tile registers (AMX): one tile of a product on
 * one thread.  gemm_16.c cuts products into tiles. */
#ifndef RUNTIME_GEMM_AMX_H
#define RUNTIME_GEMM_AMX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RT_AMX_ROWS = 256, /* of a tile, at most */
    RT_AMX_COLS = 256,
    RT_AMX_K = 256, /* k at a time: A, B and C of a tile stay in the second-level cache */
    RT_AMX_ROOM = 2 * (RT_AMX_ROWS + RT_AMX_COLS) * RT_AMX_K + 4 * RT_AMX_ROWS * RT_AMX_COLS
};

/* C[m x n] = A[m x k] B[k x n]; element (i, j) of A is at i * a_row + j * a_col, and one of a_row,
 * a_col is 1; B likewise.  C is f32 or bf16, rounded from the sum in f32. */
typedef struct {
    const uint16_t *a;
    int64_t a_row, a_col;
    const uint16_t *b;
    int64_t b_row, b_col;
    const uint16_t *packed; /* these columns of B by rt_amx_pack, or NULL */
    void *c;
    int64_t c_row;
    bool c_f32;
    int64_t m, n, k;
} RtAmxTile;

/* False: this machine, or its kernel, has no tile registers; the others must not be called. */
bool rt_amx_use(void);
/* Around the tiles that a thread computes. */
void rt_amx_begin(void);
void rt_amx_end(void);
/* room: RT_AMX_ROOM bytes of the thread's own, 64-byte aligned */
void rt_amx_tile(const RtAmxTile *t, void *room);

/* B of a tile of n columns: how many elements, and panel i of its columns, of 16 each. */
int64_t rt_amx_packed(int64_t n, int64_t k);
int64_t rt_amx_panels(int64_t n);
void rt_amx_pack(const RtAmxTile *t, uint16_t *to, int64_t i);

#endif
