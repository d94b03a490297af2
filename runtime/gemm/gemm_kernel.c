/* The inner part of a matrix product, for machines with AVX-512 or AVX2: a few rows of C, up
 * to four vectors wide, kept in registers over a block of k.
 *
 *     for p in k:  b = B[p, 0..64)
 *                  acc[r] += A[r, p] * b   for each row r
 *
 * Six rows by four vectors keep 24 sums: three times what hides the latency of a fused
 * multiply-add, with 10 loads to 24 of them; narrower results take eight rows.  AVX2 has half as
 * many registers of half the length: six rows by two vectors, and the panel's columns in turns. The
 * outline is Goto and van de Geijn 2008, "Anatomy of High-Performance Matrix
 * Multiplication"; where we differ: A is read where it lies, and B is packed once for all
 * tiles, since it is mostly a layer's weight, small.
 *
 * An element of C is one chain of fused operations over the block's k in order, whatever
 * rows, columns or vectors it is computed with, so no cut of C changes a bit, and neither do the
 * vectors. */
#include "runtime/exec/cpu.h"
#include "gemm_cuts.h"
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
    bool wide;      /* by vectors of sixteen */
} Panel;

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX512 __attribute__((target("avx512f")))
#define INLINE_AVX512 static inline __attribute__((always_inline, target("avx512f")))
#if defined(__clang__)
#define UNROLL_SOME _Pragma("clang loop unroll_count(4)")
#else
#define UNROLL_SOME _Pragma("GCC unroll 4")
#endif

INLINE_AVX512 __mmask16 last_lanes(const Panel *t, int w) {
    return (__mmask16)(0xffff >> (16 * w - t->cols));
}

/* Writes the sums of a panel, held in registers, to C, or adds them to what it holds; lanes after
 * the last column are left alone. */
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

/* ---- vectors of eight ---------------------------------------------------------------- */
#define AVX2 __attribute__((target("avx2,fma")))
#define INLINE_AVX2 static inline __attribute__((always_inline, target("avx2,fma")))

/* The first n lanes. */
INLINE_AVX2 __m256i first_lanes(int n) {
    static const int32_t all[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return _mm256_loadu_si256((const void *)(all + 8 - n));
}

/* Stores, or adds, a row's sums of up to sixteen columns, of which only the first n are the
 * product's. */
AVX2 static void store_some(const Panel *t, int at, int n, const float *sum) {
    for (int j = 0; j < n; j += 8) {
        __m256i lanes = first_lanes(n - j < 8 ? n - j : 8);
        float *c = t->c + at + j;
        for (int r = 0; r < t->rows; r++, c += t->c_row) {
            __m256 x = _mm256_loadu_ps(sum + 16 * r + j);
            if (t->add) x = _mm256_add_ps(_mm256_maskload_ps(c, lanes), x);
            if (n - j < 8)
                _mm256_maskstore_ps(c, lanes, x);
            else
                _mm256_storeu_ps(c, x);
        }
    }
}

/* Columns from `at` on: eight times w, or what is left of the last eight. */
INLINE_AVX2 void columns(const Panel *t, int at, int mr, int w) {
    __m256 acc[6][2];
    const float *a[6], *b = t->b + at;
    int left = t->cols - at, n = left < 8 * w ? left : 8 * w;
    __m256i last = first_lanes(n - 8 * (w - 1));
    UNROLL for (int r = 0; r < mr; r++) {
        a[r] = t->a + (r < t->rows ? r : t->rows - 1) * t->a_row;
        UNROLL for (int j = 0; j < w; j++) acc[r][j] = _mm256_setzero_ps();
    }
    for (int64_t p = 0, q = 0, a_col = t->a_col, cols = t->cols; p < t->k; p += LINE) {
        int64_t rest = t->k - p;
        if (a_col == 1 && t->ask && at == 0)
            UNROLL for (int r = 0; r < mr; r++) __builtin_prefetch(a[r] + mr * t->a_row + p);
        UNROLL_SOME for (int i = 0; i < (rest < LINE ? rest : LINE); i++, q += a_col, b += cols) {
            __m256 bp[2];
            if (w == 2) bp[0] = _mm256_loadu_ps(b);
            bp[w - 1] = _mm256_maskload_ps(b + 8 * (w - 1), last);
            UNROLL for (int r = 0; r < mr; r++) {
                __m256 x = _mm256_broadcast_ss(a[r] + q);
                UNROLL for (int j = 0; j < w; j++) acc[r][j] = _mm256_fmadd_ps(x, bp[j], acc[r][j]);
            }
        }
    }
    if (t->rows == mr && n == 8 * w && !t->add) {
        UNROLL for (int r = 0; r < mr; r++) UNROLL for (int j = 0; j < w; j++)
            _mm256_storeu_ps(t->c + r * t->c_row + at + 8 * j, acc[r][j]);
        return;
    }
    float sum[6][16];
    UNROLL for (int r = 0; r < mr; r++) UNROLL for (int j = 0; j < w; j++)
        _mm256_storeu_ps(&sum[r][8 * j], acc[r][j]);
    store_some(t, at, n, sum[0]);
}

#define NARROW(mr, w)                                                                              \
    AVX2 static void narrow_##mr##x##w(const Panel *t, int at) {                                   \
        columns(t, at, mr, w);                                                                     \
    }
NARROW(1, 1)
NARROW(1, 2)
NARROW(3, 1)
NARROW(3, 2)
NARROW(6, 1)
NARROW(6, 2)

/* Eight numbers of each of eight rows, by columns. */
INLINE_AVX2 void transpose(__m256 x[8]) {
    __m256 y[8];
    UNROLL for (int i = 0; i < 4; i++) {
        y[2 * i] = _mm256_unpacklo_ps(x[2 * i], x[2 * i + 1]);
        y[2 * i + 1] = _mm256_unpackhi_ps(x[2 * i], x[2 * i + 1]);
    }
    UNROLL for (int i = 0; i < 2; i++) {
        const __m256 *from = y + 4 * i;
        x[4 * i] = _mm256_shuffle_ps(from[0], from[2], 0x44);
        x[4 * i + 1] = _mm256_shuffle_ps(from[0], from[2], 0xee);
        x[4 * i + 2] = _mm256_shuffle_ps(from[1], from[3], 0x44);
        x[4 * i + 3] = _mm256_shuffle_ps(from[1], from[3], 0xee);
    }
    UNROLL for (int i = 0; i < 4; i++) {
        y[i] = _mm256_permute2f128_ps(x[i], x[i + 4], 0x20);
        y[i + 4] = _mm256_permute2f128_ps(x[i], x[i + 4], 0x31);
    }
    UNROLL for (int i = 0; i < 8; i++) x[i] = y[i];
}

/* Computes a panel of one column: the eight lanes of a vector are eight rows. */
AVX2 static void thin(const Panel *t) {
    __m256 acc = _mm256_setzero_ps(), x[8];
    int64_t row = t->a_row, col = t->a_col, p = 0;
    float sum[8];
    for (; p + 8 <= t->k; p += 8) {
        UNROLL for (int i = 0; i < 8; i++) x[i] =
            _mm256_loadu_ps(col == 1 ? t->a + i * row + p : t->a + (p + i) * col);
        if (col == 1) transpose(x);
        UNROLL for (int i = 0; i < 8; i++) acc =
            _mm256_fmadd_ps(x[i], _mm256_broadcast_ss(t->b + p + i), acc);
    }
    for (; p < t->k; p++) {
        for (int i = 0; i < 8; i++) sum[i] = t->a[i * row + p * col];
        acc = _mm256_fmadd_ps(_mm256_loadu_ps(sum), _mm256_broadcast_ss(t->b + p), acc);
    }
    _mm256_storeu_ps(sum, acc);
    for (int i = 0; i < 8; i++) {
        float *c = t->c + i * t->c_row;
        *c = (t->add ? *c : 0) + sum[i];
    }
}

/* Computes a panel of up to 8 rows with vectors of eight numbers (AVX2). */
static void run_narrow(const Panel *t) {
    if (t->cols == 1 && t->rows == 8) {
        thin(t);
        return;
    }
    static void (*const of[3][2])(const Panel *, int) = {
        {narrow_1x1, narrow_1x2}, {narrow_3x1, narrow_3x2}, {narrow_6x1, narrow_6x2}};
    Panel some = *t;
    for (int done = 0; done < t->rows; done += some.rows) {
        some.rows = t->rows - done < 6 ? t->rows - done : 6;
        some.a = t->a + done * t->a_row;
        some.c = t->c + done * t->c_row;
        int rows = some.rows > 3 ? 2 : some.rows > 1;
        for (int at = 0; at < t->cols; at += 16) of[rows][t->cols - at > 8](&some, at);
    }
}

/* ---- which ----------------------------------------------------------------------------- */
static bool has_wide(void) {
    return RT_CPU_HAS(AVX512F, "avx512f");
}

bool rt_gemm_own(void) {
    return has_wide() || (RT_CPU_HAS(AVX2, "avx2") && RT_CPU_HAS(FMA, "fma"));
}

/* Computes a panel of mr (6 or 8) rows with vectors of 16 numbers (AVX-512), with the kernel for
 * its width. */
static void run_wide(const Panel *t, int mr) {
    static void (*const six[])(const Panel *) = {rows_6x1, rows_6x2, rows_6x3, rows_6x4};
    static void (*const eight[])(const Panel *) = {rows_8x1, rows_8x2, rows_8x3};
    int w = (t->cols + 15) / 16;
    assert(mr == 6 || w < 4);
    if (mr == 6)
        six[w - 1](t);
    else
        eight[w - 1](t);
}

static void run_panel(const Panel *t, int mr) {
    if (t->wide)
        run_wide(t, mr);
    else
        run_narrow(t);
}
#else
bool rt_gemm_own(void) {
    return false;
}
static bool has_wide(void) {
    return false;
}
static void run_panel(const Panel *t, int mr) {
    (void)t, (void)mr;
}
#endif

/* ---- packing ------------------------------------------------------------------------- */

/* Packs `cols` columns of b (at most 64) and k rows as [k][cols], so that the kernel reads them in
 * order. A panel with fewer columns is not padded. */
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

/* Computes a tile of C, in strips of rows and blocks of RT_PANEL_K summands. */
void rt_gemm_tile(const RtTile *t) {
    bool wide = !t->narrow && has_wide();
    int mr = t->n > 48 || (!wide && t->n > 1) ? 6 : 8;
    Panel x = {.a_row = t->a_row, .a_col = t->a_col, .c_row = t->c_row, .wide = wide};
    for (int64_t p = 0; p < t->k; p += RT_PANEL_K) {
        x.k = least(RT_PANEL_K, t->k - p);
        x.add = t->add || p > 0;
        for (int64_t i = 0; i < t->m; i += mr) {
            x.rows = (int)least(mr, t->m - i);
            x.a = t->a + i * t->a_row + p * t->a_col;
            run_rows(t, &x, mr, p, i);
        }
    }
}
