/* Products of 16-bit matrices by f32 kernels: blocks of A are converted as they are needed, into
 * memory that stays in the second-level cache, and B while it is packed.
 *
 *     for each 256 of k:  B is packed, unless it has been
 *         for some rows of A:  converted, multiplied (gemm_kernel.c)
 *
 * An element is what gemm.c makes of converted operands: a chain for each 256 of k, the chains
 * added in order. */
#include "gemm_cuts.h"
#include "gemm_kernel.h"
#include "gemm_serial.h"
#include "gemm_tiles_16.h"
#include "runtime/exec/round_16.h"

#include <string.h>

enum {
    ROWS = 24,       /* rows of A widened at a time, where A is stored by rows: they stay in the
                        first-level cache */
    ROWS_APART = 96, /* the same of A stored by columns: whole cache lines; multiples of 6 and 8 */
    TILE_ROWS = 2 * ROWS_APART,
    COLS = RT_TILE_16_COLS,
    BLOCK_K = RT_PANEL_K
};
_Static_assert((int)RT_TILE_16_COLS <= (int)RT_PANEL_TILE, "a tile is one of rt_gemm_tile's");

/* What a thread works with. */
typedef struct {
    float a[ROWS_APART * BLOCK_K], b[BLOCK_K * COLS], c[ROWS_APART * COLS];
    float sums[ROWS_APART * RT_PANEL]; /* of a library, to be added */
} Room;

static size_t packed_bytes(int64_t n, int64_t k) {
    return (size_t)(n * k) * sizeof(float);
}

static int64_t panels_of(int64_t n) {
    return ceil_div(n, RT_PANEL);
}

/* n rows of `length` numbers, `step` apart, to a dense block. */
static void widen(rt_dtype t, float *to, const uint16_t *from, int64_t n, int64_t length,
                  int64_t step) {
    if (step == length) length *= n, n = 1;
    for (int64_t i = 0; i < n; i++) rt_to_f32(t, to + i * length, from + i * step, length);
}

/* Packs k rows of B from `b` on, widened to f32, as [k][cols]. */
static void pack_block(const RtTile16 *t, const uint16_t *b, int64_t k, int64_t cols, float *to) {
    if (t->b_col == 1) widen(t->in, to, b, k, cols, t->b_row);
    for (int64_t j = 0; t->b_col != 1 && j < cols; j++) {
        float column[BLOCK_K];
        rt_to_f32(t->in, column, b + j * t->b_col, k);
        for (int64_t p = 0; p < k; p++) to[p * cols + j] = column[p];
    }
}

/* As rt_gemm_pack. */
static void pack_panel(const RtTile16 *t, char *to, int64_t i) {
    int64_t at = i * RT_PANEL, cols = least(RT_PANEL, t->n - at);
    for (int64_t p = 0; p < t->k; p += BLOCK_K) {
        int64_t k = least(BLOCK_K, t->k - p);
        pack_block(t, t->b + p * t->b_row + at * t->b_col, k, cols,
                   (float *)(void *)to + p * t->n + k * at);
    }
}

/* Without kernels of our own: a panel after the other. */
static bool by_library(const RtTile *t, float *sums) {
    RtStored a = {t->a_col == 1 ? 'N' : 'T', t->a_col == 1 ? t->a_row : t->a_col};
    for (int64_t j = 0; j < t->n; j += RT_PANEL) {
        int64_t cols = least(RT_PANEL, t->n - j);
        if (!rt_gemm_serial.sgemm(a, (RtStored){'N', cols}, t->m, cols, t->k, t->a,
                                  t->packed + t->k * j, sums, cols))
            return false;
        for (int64_t r = 0; r < t->m; r++)
            for (int64_t i = 0; i < cols; i++) {
                float *c = t->c + r * t->c_row + j + i;
                *c = (t->add ? *c : 0) + sums[r * cols + i];
            }
    }
    return true;
}

/* Rows [i, i + m) and the block of k from p on; packed: B's block. */
static bool block(const RtTile16 *t, int64_t i, int64_t m, int64_t p, const float *packed, float *c,
                  int64_t c_row, Room *r) {
    RtTile own = {.a = r->a, .packed = packed, .c = c, .c_row = c_row, .m = m, .n = t->n};
    own.k = least(BLOCK_K, t->k - p), own.add = p > 0;
    const uint16_t *a = t->a + i * t->a_row + p * t->a_col;
    if (t->a_col == 1) {
        own.a_row = own.k, own.a_col = 1;
        widen(t->in, r->a, a, m, own.k, t->a_row);
    } else {
        own.a_row = 1, own.a_col = m;
        widen(t->in, r->a, a, own.k, m, t->a_col);
    }
    if (!rt_gemm_own()) return by_library(&own, r->sums);
    rt_gemm_tile(&own);
    return true;
}

static int64_t rows_of(const RtTile16 *t) {
    return t->a_col == 1 ? ROWS : ROWS_APART;
}

/* Computes a tile of a product with a long k: each block of B is packed once and used for all rows.
 */
static bool long_tile(const RtTile16 *t, Room *r) {
    for (int64_t p = 0; p < t->k; p += BLOCK_K) {
        RtTile16 part = *t;
        part.b += p * t->b_row, part.k = least(BLOCK_K, t->k - p);
        for (int64_t i = 0; i < panels_of(t->n); i++) pack_panel(&part, (char *)r->b, i);
        for (int64_t i = 0, m = rows_of(t); i < t->m; i += m)
            if (!block(t, i, least(m, t->m - i), p, r->b, (float *)t->c + i * t->c_row, t->c_row,
                       r))
                return false;
    }
    return true;
}

/* Rounds rows [i, i + m) of C from the dense sums. */
static void narrow(const RtTile16 *t, int64_t i, int64_t m, const float *sums) {
    uint16_t *c = (uint16_t *)t->c + i * t->c_row;
    int64_t n = t->n;
    if (t->c_row == n) n *= m, m = 1;
    for (int64_t q = 0; q < m; q++) rt_from_f32(t->out, c + q * t->c_row, sums + q * n, n);
}

/* Computes a tile of 16-bit operands by kernels for f32: operands are widened, the result rounded.
 * False: the library failed. */
static bool tile(const RtTile16 *t, char *room) {
    Room *r = (Room *)(void *)room;
    if (!t->packed) return long_tile(t, r);
    for (int64_t i = 0, most = rows_of(t); i < t->m; i += most) {
        int64_t m = least(most, t->m - i), c_row = t->out == RT_F32 ? t->c_row : t->n;
        float *c = t->out == RT_F32 ? (float *)t->c + i * t->c_row : r->c;
        for (int64_t p = 0; p < t->k; p += BLOCK_K)
            if (!block(t, i, m, p, (const float *)(const void *)t->packed + p * t->n, c, c_row, r))
                return false;
        if (t->out != RT_F32) narrow(t, i, m, c);
    }
    return true;
}

static const RtTiles16 tiles = {.rows = TILE_ROWS,
                                .rows_thin = 8 * TILE_ROWS,
                                .room = (sizeof(Room) + 63) / 64 * 64,
                                .packed = packed_bytes,
                                .panels = panels_of,
                                .pack = pack_panel,
                                .tile = tile};

const RtTiles16 *rt_tiles_widened(void) {
    return &tiles;
}
