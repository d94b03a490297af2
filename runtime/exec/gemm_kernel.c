/* The inner part of a matrix product, for machines with AVX-512: a few rows of C, up to
 * four vectors wide, kept in registers over a block of k.
 *
 *     for p in k:  b = B[p, 0..64)
 *                  acc[r] += A[r, p] * b   for each row r
 *
 * Six rows by four vectors keep 24 sums: three times what hides the latency of a fused
 * multiply-add, with 10 loads to 24 of them; narrower results take eight rows.  The
 * outline is Goto and van de Geijn 2008, "Anatomy of High-Performance Matrix
 * Multiplication"; where we differ: A is read where it lies, and B is packed once for all
 * tiles, since it is mostly a layer's weight, small.
 *
 * An element of C is one chain of fused operations over the block's k in order, whatever
 * rows or columns it is computed with, so no cut of C changes a bit. */
#include "cpu.h"
#include "gemm_kernel.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 16 /* floats of a cache line */ };

typedef struct {
    const float *a; /* element (r, p) at a[r * a_row + p], or by columns at a[p * a_col + r] */
    int64_t a_row, a_col;
    const float *b; /* [k][cols] */
    float *c;       /* element (r, j) at c[r * c_row + j] */
    int64_t c_row, k;
    int rows, cols; /* rows <= mr, cols <= RT_PANEL */
    bool add;       /* to what C holds */
    bool ask;       /* for the rows that follow: too short for the machine to notice by itself */
} Panel;

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX512 __attribute__((target("avx512f")))
#define INLINE_AVX512 static inline __attribute__((always_inline, target("avx512f")))
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif

INLINE_AVX512 __mmask16 last_lanes(const Panel *t, int w) {
    return (__mmask16)(0xffff >> (16 * w - t->cols));
}

INLINE_AVX512 void store_rows(const Panel *t, int mr, int w, __m512 acc[8][4]) {
    UNROLL for (int r = 0; r < mr; r++) {
        if (r >= t->rows) return;
        float *c = t->c + r * t->c_row;
        UNROLL for (int j = 0; j < w; j++) {
            __mmask16 lanes = j == w - 1 ? last_lanes(t, w) : (__mmask16)0xffff;
            __m512 sum = acc[r][j];
            if (t->add) sum = _mm512_add_ps(_mm512_maskz_loadu_ps(lanes, c + 16 * j), sum);
            _mm512_mask_storeu_ps(c + 16 * j, lanes, sum);
        }
    }
}

/* Where fewer than `mr` rows are left, the others repeat the last and are not stored. */
INLINE_AVX512 void panel(const Panel *t, int mr, int w, bool by_columns) {
    __m512 acc[8][4];
    const float *a[8], *b = t->b;
    __mmask16 last = last_lanes(t, w);
    UNROLL for (int r = 0; r < mr; r++) {
        a[r] = t->a + (r < t->rows ? r : t->rows - 1) * (by_columns ? 1 : t->a_row);
        UNROLL for (int j = 0; j < w; j++) acc[r][j] = _mm512_setzero_ps();
    }
    for (int64_t p = 0, k = t->k, a_col = t->a_col; p < k; p++, b += t->cols) {
        __m512 bp[4];
        if (!by_columns && t->ask && p % LINE == 0)
            UNROLL for (int r = 0; r < mr; r++) __builtin_prefetch(a[r] + mr * t->a_row + p);
        UNROLL for (int j = 0; j < w - 1; j++) bp[j] = _mm512_loadu_ps(b + 16 * j);
        bp[w - 1] = _mm512_maskz_loadu_ps(last, b + 16 * (w - 1));
        UNROLL for (int r = 0; r < mr; r++) {
            __m512 x = _mm512_set1_ps(a[r][by_columns ? p * a_col : p]);
            UNROLL for (int j = 0; j < w; j++) acc[r][j] = _mm512_fmadd_ps(x, bp[j], acc[r][j]);
        }
    }
    store_rows(t, mr, w, acc);
}

#define KERNEL(mr, w)                                                                              \
    AVX512 static void rows_##mr##x##w(const Panel *t) {                                           \
        if (t->a_col != 1)                                                                         \
            panel(t, mr, w, true);                                                                 \
        else                                                                                       \
            panel(t, mr, w, false);                                                                \
    }
KERNEL(6, 1)
KERNEL(6, 2)
KERNEL(6, 3)
KERNEL(6, 4)
KERNEL(8, 1)
KERNEL(8, 2)
KERNEL(8, 3)

bool rt_gemm_own(void) {
    return RT_CPU_HAS(AVX512F, "avx512f");
}

static void run_panel(const Panel *t, int mr) {
    static void (*const six[])(const Panel *) = {rows_6x1, rows_6x2, rows_6x3, rows_6x4};
    static void (*const eight[])(const Panel *) = {rows_8x1, rows_8x2, rows_8x3};
    int w = (t->cols + 15) / 16;
    assert(mr == 6 || w < 4);
    if (mr == 6)
        six[w - 1](t);
    else
        eight[w - 1](t);
}
#else
bool rt_gemm_own(void) {
    return false;
}
static void run_panel(const Panel *t, int mr) {
    (void)t, (void)mr;
}
#endif

/* ---- packing ------------------------------------------------------------------------- */
static int64_t least(int64_t x, int64_t y) {
    return x < y ? x : y;
}

/* [k][64] from b on; a panel's last columns are followed by nothing. */
static void pack_panel(const RtTile *t, float *to, const float *b, int64_t k, int64_t cols) {
    for (int64_t j = 0; t->b_col != 1 && j < cols; j++)
        for (int64_t p = 0; p < k; p++) to[p * cols + j] = b[p * t->b_row + j * t->b_col];
    for (int64_t p = 0; t->b_col == 1 && p < k; p++)
        memcpy(to + p * cols, b + p * t->b_row, (size_t)cols * sizeof *to);
}

/* Blocks of k one after another, in each the panels one after another. */
void rt_gemm_pack(const RtTile *t, float *to, int64_t i) {
    int64_t at = i * RT_PANEL, cols = least(RT_PANEL, t->n - at);
    for (int64_t p = 0; p < t->k; p += RT_PANEL_K) {
        int64_t k = least(RT_PANEL_K, t->k - p);
        pack_panel(t, to + p * t->n + k * at, t->b + p * t->b_row + at * t->b_col, k, cols);
    }
}

/* ---- a tile ---------------------------------------------------------------------------- */
/* Rows from i on against all panels: the rows stay in the first-level cache. */
static void run_rows(const RtTile *t, Panel *x, int mr, int64_t p, int64_t i) {
    for (int64_t j = 0; j < t->n; j += RT_PANEL) {
        x->cols = (int)least(RT_PANEL, t->n - j);
        x->b = t->packed + p * t->n + x->k * j;
        x->c = t->c + i * t->c_row + j;
        x->ask = j == 0;
        run_panel(x, mr);
    }
}

void rt_gemm_tile(const RtTile *t) {
    int mr = t->n > 48 ? 6 : 8;
    Panel x = {.a_row = t->a_row, .a_col = t->a_col, .c_row = t->c_row};
    for (int64_t p = 0; p < t->k; p += RT_PANEL_K) {
        x.k = least(RT_PANEL_K, t->k - p);
        x.add = p > 0;
        for (int64_t i = 0; i < t->m; i += mr) {
            x.rows = (int)least(mr, t->m - i);
            x.a = t->a + i * t->a_row + p * t->a_col;
            run_rows(t, &x, mr, p, i);
        }
    }
}
