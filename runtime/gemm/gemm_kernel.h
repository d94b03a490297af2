/* The runtime's own matrix products, where the machine has the instructions: one tile of a
 * product on one thread.  gemm.c cuts products into tiles. */
#ifndef RUNTIME_GEMM_KERNEL_H
#define RUNTIME_GEMM_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

enum {
    RT_PANEL = 64,       /* columns at a time: four vectors */
    RT_PANEL_TILE = 256, /* columns of a tile, at most: its B stays in the second-level cache */
    RT_PANEL_K = 256     /* k at a time */
};

/* C[m x n] = A[m x k] B[k x n], n <= RT_PANEL_TILE; element (i, j) of A is at i * a_row + j *
 * a_col, and one of a_row, a_col is 1; B likewise. */
typedef struct {
    const float *a;
    int64_t a_row, a_col;
    const float *packed; /* all of B, by rt_gemm_pack */
    const float *b;
    int64_t b_row, b_col;
    float *c;
    int64_t c_row, m, n, k;
    bool add;    /* to what C holds */
    bool narrow; /* by vectors of eight, also where there are longer ones */
    bool of_f16; /* A and B were widened from f16: two pieces of bf16 hold a number */
} RtTile;

/* False: this machine has no such kernels, and the others must not be called. */
bool rt_gemm_own(void);
void rt_gemm_tile(const RtTile *t);

/* Panel i of B's columns into [k * n] floats that the panels share: blocks of k one after
 * another, in each the panels, [k][64] each. */
void rt_gemm_pack(const RtTile *t, float *to, int64_t i);

#endif
