/* A matrix product in plain C, of what our own kernels leave where there is no library.
 *
 *     for each 256 of k, for each 16 columns of B:  pack B
 *         for each 6 rows of A:  12 sums of 8 lanes stay in registers over the 256
 *
 * The outline is gemm_kernel.c's.  Compiled twice, as the machine has AVX2 with fused operations or
 * not; which one runs is asked per call, as a call is a tile. */
#include "runtime/exec/cpu.h"
#include "gemm_cuts.h"
#include "gemm_serial.h"

#include <string.h>

enum { ROWS = 6, LANES = 8, VECTORS = 2, COLUMNS = LANES * VECTORS, DEPTH = 256 };

typedef float Lanes __attribute__((vector_size(LANES * sizeof(float))));
#define INLINE static inline __attribute__((always_inline))
/* Up to ROWS rows of A against a packed panel of B. */
typedef struct {
    const float *a; /* element (r, p) at a[r * a_row + p * a_col] */
    int64_t a_row, a_col;
    const float *b; /* [k][COLUMNS] */
    float *c;       /* element (r, j) at c[r * c_row + j] */
    int64_t c_row, k;
    int rows, columns;
    bool add; /* to what C holds */
} Block;

/* Writes the sums of a block to C, or adds them to what it holds. */
INLINE void store(const Block *t, Lanes acc[ROWS][VECTORS]) {
    float sums[ROWS * COLUMNS];
    memcpy(sums, acc, sizeof sums);
    for (int r = 0; r < t->rows; r++) {
        float *c = t->c + r * t->c_row;
        for (int j = 0; j < t->columns; j++) c[j] = (t->add ? c[j] : 0) + sums[r * COLUMNS + j];
    }
}

/* Where fewer rows are left, the others repeat the last and are not stored. */
INLINE void block(const Block *t) {
    Lanes acc[ROWS][VECTORS];
    const float *a[ROWS];
    UNROLL for (int r = 0; r < ROWS; r++) {
        a[r] = t->a + (r < t->rows ? r : t->rows - 1) * t->a_row;
        UNROLL for (int v = 0; v < VECTORS; v++) acc[r][v] = (Lanes){0};
    }
    for (int64_t p = 0; p < t->k; p++) {
        Lanes b[VECTORS];
        /* Each by itself: of both at once compilers make pieces in memory, which are waited for. */
        UNROLL for (int v = 0; v < VECTORS; v++)
            memcpy(&b[v], t->b + p * COLUMNS + v * LANES, sizeof b[v]);
        UNROLL for (int r = 0; r < ROWS; r++) {
            float x = a[r][p * t->a_col];
            UNROLL for (int v = 0; v < VECTORS; v++) acc[r][v] += x * b[v];
        }
    }
    store(t, acc);
}

static void block_anywhere(const Block *t) {
    block(t);
}
#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) static void block_avx2(const Block *t) {
    block(t);
}
#endif

typedef void block_fn(const Block *t);
/* The version of the block that this processor runs. */
static block_fn *block_here(void) {
#if defined(__x86_64__)
    if (RT_CPU_HAS(AVX2, "avx2") && RT_CPU_HAS(FMA, "fma")) return block_avx2;
#endif
    return block_anywhere;
}

/* [k][COLUMNS], filled up with zeros. */
static void pack(float *to, const float *b, RtStored sb, int64_t k, int64_t columns) {
    int64_t row = sb.trans == 'N' ? sb.ld : 1, col = sb.trans == 'N' ? 1 : sb.ld;
    for (int64_t p = 0; p < k; p++)
        for (int64_t j = 0; j < COLUMNS; j++)
            to[p * COLUMNS + j] = j < columns ? b[p * row + j * col] : 0;
}

/* C = A * B in plain C, in blocks of DEPTH summands, where there is no library and no kernel for
 * the processor. */
bool rt_sgemm_plain(RtStored sa, RtStored sb, int64_t m, int64_t n, int64_t k, const float *a,
                    const float *b, float *c, int64_t ldc) {
    _Alignas(64) float panel[DEPTH * COLUMNS];
    block_fn *run = block_here();
    Block t = {.a_row = sa.trans == 'N' ? sa.ld : 1,
               .a_col = sa.trans == 'N' ? 1 : sa.ld,
               .b = panel,
               .c_row = ldc};
    for (int64_t p = 0; p < k; p += DEPTH) {
        t.k = least(DEPTH, k - p);
        t.add = p > 0;
        for (int64_t j = 0; j < n; j += COLUMNS) {
            t.columns = (int)least(COLUMNS, n - j);
            pack(panel, b + (sb.trans == 'N' ? p * sb.ld + j : p + j * sb.ld), sb, t.k, t.columns);
            for (int64_t i = 0; i < m; i += ROWS) {
                t.rows = (int)least(ROWS, m - i);
                t.a = a + i * t.a_row + p * t.a_col;
                t.c = c + i * ldc + j;
                run(&t);
            }
        }
    }
    return true;
}
