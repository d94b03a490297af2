/* f32 products of bf16 tiles.
 *
 * An f32 has 24 bits of mantissa, three bf16 of 8 bits hold them exactly: x = h + m + l, each
 * rounded to nearest, so |m| <= 2^-8 |x|, |l| <= 2^-17 |x|.  Of the nine products of two such
 * numbers six count:
 *
 *     a b = (ah bl + al bh + am bm) + (am bh + ah bm) + ah bh     up to 2^-24 |a b|
 *
 * Products of bf16 are exact in f32, where the tiles add them.  The five small ones are summed
 * first, over all of a block of k, so that only ah bh is rounded at the size of the sum, once per
 * two of k: the error is below that of a chain of fused f32 operations (gemm_test.c holds both
 * against double).  This is "Leveraging the bfloat16 Artificial Intelligence Datatype for
 * Higher-Precision Computations" (Henry, Tang and Heinecke 2019); where we differ: h is rounded
 * such that what would overflow is found, and the order of the sums.
 *
 * An f16 has 11 bits, h and m hold them: l is 0, and the two products with it are left out.
 *
 * Tiles take subnormal pieces as zeros, so numbers below 2^-110 lose bits.  Infinities and numbers
 * that round to one have no such pieces: a product that holds one is left to the caller.
 *
 * An element of C is the same operations in the same order in whatever tile it is, so no cut of
 * C changes a bit. */
#include "runtime/exec/cpu.h"
#include "gemm_cuts.h"
#include "gemm_pieces.h"

#include <assert.h>
#include <string.h>

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#define AMX __attribute__((target("amx-tile,amx-bf16,avx512f,avx512bw")))
#define INLINE_AMX                                                                                 \
    static inline __attribute__((always_inline, target("amx-tile,amx-bf16,avx512f,avx512bw")))

enum {
    LINE = 16,            /* floats of a cache line */
    SIDE = 16,            /* rows of a hardware tile, and its columns of f32 */
    STEP = 32,            /* bf16 of its row: k at a time */
    PIECES = 3,           /* of a number: H, M, L */
    HALVES = SIDE * STEP, /* bf16 of a hardware tile */
    BLOCK_K = RT_PANEL_K, /* k between roundings to C */
    TWO_STRIPS = 2 * BLOCK_K / STEP * PIECES * HALVES
};
enum { H, M, L };

/* ---- may we? --------------------------------------------------------------------------- */
enum { GET_PERMISSION = 0x1022, TILE_DATA = 18 }; /* asm/prctl.h */

/* Has the processor AMX in bf16, and what else this file uses? */
static bool has_instructions(void) {
    unsigned a, b, c, d;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
    return (d >> 22 & 1) && (d >> 24 & 1) && rt_gemm_own() && RT_CPU_HAS(AVX512BW, "avx512bw");
}

bool rt_pieces_available(void) {
    uint64_t given = 0;
    if (!has_instructions() || syscall(SYS_arch_prctl, GET_PERMISSION, &given) != 0) return false;
    return given >> TILE_DATA & 1;
}

/* ---- pieces ---------------------------------------------------------------------------- */
typedef uint16_t Half;

/* Of 16 numbers, in the upper halves; `bad` becomes NaN where one is not finite. */
INLINE_AMX void split(__m512 x, __m512i piece[PIECES], __m512 *bad) {
    const __m512i half = _mm512_set1_epi32(0x8000), upper = _mm512_set1_epi32((int)0xffff0000);
    piece[H] = _mm512_and_si512(_mm512_add_epi32(_mm512_castps_si512(x), half), upper);
    __m512 rest = _mm512_sub_ps(x, _mm512_castsi512_ps(piece[H]));
    piece[M] = _mm512_and_si512(_mm512_add_epi32(_mm512_castps_si512(rest), half), upper);
    rest = _mm512_sub_ps(rest, _mm512_castsi512_ps(piece[M]));
    /* Of a subnormal piece bits are left in the lower half, where put_pair has another number. */
    piece[L] = _mm512_and_si512(_mm512_castps_si512(rest), upper);
    *bad = _mm512_fmadd_ps(rest, _mm512_setzero_ps(), *bad);
}

INLINE_AMX bool is_bad(__m512 bad) {
    return _mm512_cmp_ps_mask(bad, bad, _CMP_UNORD_Q) != 0;
}

/* Splits 32 f32 of a row of A, x and y, into bf16 pieces and stores them as a row of each
 * piece's AMX tile. *bad gathers numbers that cannot be split. */
INLINE_AMX void put_split_row(Half *to, int row, __m512 x, __m512 y, __m512 *bad) {
    static const uint16_t odd[32] = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21,
                                     23, 25, 27, 29, 31, 33, 35, 37, 39, 41, 43,
                                     45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
    const __m512i uppers = _mm512_loadu_si512(odd);
    __m512i px[PIECES], py[PIECES];
    split(x, px, bad);
    split(y, py, bad);
    UNROLL for (int i = 0; i < PIECES; i++) _mm512_store_si512(
        to + i * HALVES + row * STEP, _mm512_permutex2var_epi16(px[i], uppers, py[i]));
}

/* A row of a B tile: two rows of k, interleaved. */
INLINE_AMX void put_pair(Half *to, int pair, __m512 even, __m512 odd, __m512 *bad) {
    __m512i px[PIECES], py[PIECES];
    split(even, px, bad);
    split(odd, py, bad);
    UNROLL for (int i = 0; i < PIECES; i++) _mm512_store_si512(
        to + i * HALVES + pair * STEP, _mm512_or_si512(_mm512_srli_epi32(px[i], 16), py[i]));
}

static inline __mmask16 lanes(int64_t n) {
    return n <= 0 ? 0 : n >= SIDE ? 0xffff : (__mmask16)(0xffff >> (SIDE - n));
}

/* Transposes a square of 16 x 16 numbers, a row in each register. */
INLINE_AMX void transpose(__m512 r[SIDE]) {
    __m512 t[SIDE];
    UNROLL for (int i = 0; i < SIDE; i += 2) {
        t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
#define PD(f, x, y) _mm512_castpd_ps(f(_mm512_castps_pd(x), _mm512_castps_pd(y)))
    UNROLL for (int i = 0; i < SIDE; i += 4) {
        r[i] = PD(_mm512_unpacklo_pd, t[i], t[i + 2]);
        r[i + 1] = PD(_mm512_unpackhi_pd, t[i], t[i + 2]);
        r[i + 2] = PD(_mm512_unpacklo_pd, t[i + 1], t[i + 3]);
        r[i + 3] = PD(_mm512_unpackhi_pd, t[i + 1], t[i + 3]);
    }
#undef PD
    UNROLL for (int i = 0; i < 4; i++) { /* quarters of rows i, 4 + i, .. */
        __m512 even = _mm512_shuffle_f32x4(r[i], r[4 + i], 0x88);
        __m512 even2 = _mm512_shuffle_f32x4(r[8 + i], r[12 + i], 0x88);
        __m512 odd = _mm512_shuffle_f32x4(r[i], r[4 + i], 0xdd);
        __m512 odd2 = _mm512_shuffle_f32x4(r[8 + i], r[12 + i], 0xdd);
        t[i] = _mm512_shuffle_f32x4(even, even2, 0x88);
        t[4 + i] = _mm512_shuffle_f32x4(odd, odd2, 0x88);
        t[8 + i] = _mm512_shuffle_f32x4(even, even2, 0xdd);
        t[12 + i] = _mm512_shuffle_f32x4(odd, odd2, 0xdd);
    }
    UNROLL for (int i = 0; i < SIDE; i++) r[i] = t[i];
}

/* 16 x 16 numbers at x, `rows` x `cols` of them there, into vectors along the columns. */
INLINE_AMX void load(__m512 r[SIDE], const float *x, int64_t row, int64_t col, int64_t rows,
                     int64_t cols) {
    bool across = col != 1;
    __mmask16 there = lanes(across ? rows : cols);
    UNROLL for (int i = 0; i < SIDE; i++) {
        __mmask16 m = i < (across ? cols : rows) ? there : 0;
        r[i] = _mm512_maskz_loadu_ps(m, x + i * (across ? col : row));
    }
    if (across) transpose(r);
}

/* Rows of A that lie in rows: two strips, being cut a few rows of a tile at a time. */
typedef struct {
    const float *a; /* the present strip's rows from here on */
    int64_t row, rows, k;
    Half *to;     /* the present tile */
    int64_t i, p; /* what comes next: row of the tile, first of k */
    __m512 bad;
} Cut;

/* Goes on cutting rows of A into the bf16 pieces that AMX multiplies: n times 32 numbers of a row,
 * between multiplications that take as long. Missing rows are 0; c->bad notes numbers that are not
 * finite. */
AMX static void cut_more(Cut *c, int64_t n) {
    __m512 bad = c->bad;
    for (; n > 0 && c->rows > 0; n--) {
        bool there = c->i < c->rows;
        const float *x = c->a + (there ? c->i * c->row : 0) + c->p;
        __mmask16 lo = there ? lanes(c->k - c->p) : 0, hi = there ? lanes(c->k - c->p - SIDE) : 0;
        put_split_row(c->to, (int)c->i, _mm512_maskz_loadu_ps(lo, x),
                      _mm512_maskz_loadu_ps(hi, x + SIDE), &bad);
        if (++c->i < SIDE) continue;
        c->i = 0;
        c->to += PIECES * HALVES;
        c->p += STEP;
        if (c->p < c->k) continue;
        c->p = 0;
        c->a += SIDE * c->row;
        c->rows -= SIDE;
    }
    c->bad = bad;
}

/* Splits up to 16 rows of A, whose columns are contiguous, into bf16 pieces, as AMX tiles [k /
 * 32][pieces] at `to`; row, col: strides of a. Missing rows are 0. False: a number is not
 * finite. */
AMX static bool cut_rows(Half *to, const float *a, int64_t row, int64_t col, int64_t rows,
                         int64_t k) {
    __m512 bad = _mm512_setzero_ps(), x[SIDE], y[SIDE];
    for (int64_t p = 0; p < k; p += STEP, to += PIECES * HALVES) {
        const float *at = a + p * col;
        load(x, at, row, col, rows, k - p);
        load(y, at + (k - p > SIDE ? SIDE * col : 0), row, col, rows, k - p - SIDE);
        UNROLL for (int i = 0; i < SIDE; i++) put_split_row(to, i, x[i], y[i], &bad);
    }
    return !is_bad(bad);
}

/* Splits k rows by 16 columns of B into bf16 pieces, as AMX tiles at `to`; row, col: strides of b.
 * What is missing of a tile is 0. False: a number is not finite. */
AMX static bool cut_cols(Half *to, const float *b, int64_t row, int64_t col, int64_t k,
                         int64_t cols) {
    __m512 bad = _mm512_setzero_ps(), x[SIDE];
    for (int64_t p = 0; p < k; p += SIDE) {
        load(x, b + p * row, row, col, k - p, cols);
        Half *tile = to + p / STEP * PIECES * HALVES;
        UNROLL for (int i = 0; i < SIDE; i += 2)
            put_pair(tile, (int)(p % STEP + i) / 2, x[i], x[i + 1], &bad);
    }
    if ((k - 1) % STEP < SIDE) /* the last tile's second half */
        for (int i = 0; i < PIECES; i++)
            memset(to + ((k - 1) / STEP * PIECES + i) * HALVES + HALVES / 2, 0, HALVES);
    return !is_bad(bad);
}

/* ---- 32 x 32 of C ---------------------------------------------------------------------- */
/* What will be read soon: lines of some rows. */
typedef struct {
    const float *at;
    int64_t row, rows, lines; /* lines: of each row at each step of k */
} Ahead;

typedef struct {
    const Half *a, *b;      /* the first of two tiles each, the second follows.. */
    int64_t a_next, b_next; /* ..so far on */
    int64_t steps;
    float *c;
    int64_t c_row, m, n; /* of C, at most 32 each are written */
    bool add;
    bool two; /* pieces hold each number: the third is 0 */
    Ahead ahead[2];
    Cut *cut; /* what is multiplied next: `cut_rows` rows of it at each step of k */
    int64_t cut_rows;
} Square;

/* Tiles 0 to 3 are C, 4 and 5 of A, 6 and 7 of B. */
#define LOAD_A(piece)                                                                              \
    do {                                                                                           \
        _tile_loadd(4, a + (piece) * HALVES, 2 * STEP);                                            \
        if (tall) _tile_loadd(5, a + s->a_next + (piece) * HALVES, 2 * STEP);                      \
    } while (0)
#define LOAD_B(piece)                                                                              \
    do {                                                                                           \
        _tile_loadd(6, b + (piece) * HALVES, 2 * STEP);                                            \
        if (wide) _tile_loadd(7, b + s->b_next + (piece) * HALVES, 2 * STEP);                      \
    } while (0)
#define MULTIPLY()                                                                                 \
    do {                                                                                           \
        _tile_dpbf16ps(0, 4, 6);                                                                   \
        if (wide) _tile_dpbf16ps(1, 4, 7);                                                         \
        if (tall) _tile_dpbf16ps(2, 5, 6);                                                         \
        if (tall && wide) _tile_dpbf16ps(3, 5, 7);                                                 \
    } while (0)

/* Lines arrive one by one, so they are asked for step by step. */
INLINE_AMX void ask(const Ahead *a, int64_t step) {
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t l = step * a->lines; l < (step + 1) * a->lines; l++)
            __builtin_prefetch(a->at + i * a->row + l * LINE, 0, 2);
}

/* An f32 product on AMX. Each operand is a sum of three bf16: high, middle and low, or (`all`
 * false) of the first two. Six of their nine products count; they are added from the smallest to
 * the largest. */
INLINE_AMX void multiply(const Square *s, bool tall, bool wide, bool all) {
    const Half *a = s->a, *b = s->b;
    __asm__ volatile("" ::: "memory"); /* gcc is not told what loads of tiles read */
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t i = 0; i < s->steps; i++, a += PIECES * HALVES, b += PIECES * HALVES) {
        LOAD_A(H);
        if (all) {
            LOAD_B(L);
            MULTIPLY();
        }
        LOAD_B(M);
        MULTIPLY();
        LOAD_A(M);
        MULTIPLY();
        ask(&s->ahead[0], i);
        ask(&s->ahead[1], i);
        if (s->cut_rows) cut_more(s->cut, s->cut_rows);
        LOAD_B(H);
        MULTIPLY();
        if (all) {
            LOAD_A(L);
            MULTIPLY();
        }
    }
    a = s->a, b = s->b;
    for (int64_t i = 0; i < s->steps; i++, a += PIECES * HALVES, b += PIECES * HALVES) {
        LOAD_A(H);
        LOAD_B(H);
        MULTIPLY();
    }
}

/* Tile i is at (i / 2, i % 2) of the square. */
#define STORE(i)                                                                                   \
    do {                                                                                           \
        int64_t m = s->m - (i) / 2 * SIDE, n = s->n - (i) % 2 * SIDE;                              \
        float *c = s->c + (i) / 2 * SIDE * s->c_row + (i) % 2 * SIDE;                              \
        if (m >= SIDE && n >= SIDE && !s->add) {                                                   \
            _tile_stored(i, c, s->c_row *(int64_t)sizeof *c);                                      \
        } else if (m > 0 && n > 0) {                                                               \
            _tile_stored(i, sum, SIDE * sizeof *c);                                                \
            put_sum(sum, c, s->c_row, m, n, s->add);                                               \
        }                                                                                          \
    } while (0)

/* Writes a tile of sums to C, or adds it to what C holds, of at most m rows and n columns. */
INLINE_AMX void put_sum(const float *sum, float *c, int64_t c_row, int64_t m, int64_t n, bool add) {
    for (int64_t i = 0; i < m && i < SIDE; i++, c += c_row) {
        __m512 x = _mm512_load_ps(sum + i * SIDE);
        if (add) x = _mm512_add_ps(_mm512_maskz_loadu_ps(lanes(n), c), x);
        _mm512_mask_storeu_ps(c, lanes(n), x);
    }
}

/* Computes the sums of a square of C of up to two by two AMX tiles. */
INLINE_AMX void multiply_square(const Square *s, bool all) {
    bool tall = s->m > SIDE, wide = s->n > SIDE;
    if (tall && wide)
        multiply(s, true, true, all);
    else if (tall)
        multiply(s, true, false, all);
    else if (wide)
        multiply(s, false, true, all);
    else
        multiply(s, false, false, all);
}

/* Computes such a square. */
AMX static void square(const Square *s) {
    _Alignas(64) float sum[SIDE * SIDE];
    if (s->two)
        multiply_square(s, false);
    else
        multiply_square(s, true);
    STORE(0);
    STORE(1);
    STORE(2);
    STORE(3);
}

/* ---- tiles ----------------------------------------------------------------------------- */
/* bf16 of the pieces of 16 rows or columns. */
static int64_t strip(int64_t k) {
    return ceil_div(k, STEP) * PIECES * HALVES;
}

int64_t rt_pieces_packed(int64_t k, int64_t n) {
    return strip(k) * ceil_div(n, SIDE) / 2;
}

bool rt_pieces_pack(const RtTile *t, float *to, int64_t i) {
    return cut_cols((Half *)to + i * strip(t->k), t->b + i * SIDE * t->b_col, t->b_row, t->b_col,
                    t->k, least(SIDE, t->n - i * SIDE));
}

/* Two strips of A, at most, against all of B; each square asks for its part of what is ahead. */
static void multiply_rows(Square *s, const Half *b, int64_t b_strip, int64_t n) {
    float *c = s->c;
    s->b_next = b_strip;
    for (int64_t j = 0; j < n; j += 2 * SIDE) {
        s->b = b + j / SIDE * b_strip;
        s->c = c + j;
        s->n = n - j;
        square(s);
        for (int i = 0; i < 2; i++)
            if (s->ahead[i].at) s->ahead[i].at += s->ahead[i].rows * s->ahead[i].row;
    }
}

/* Two strips of A, at most: rows from i on, k from p on. */
AMX static Cut cut_at(const RtTile *t, Half *to, int64_t i, int64_t p) {
    return (Cut){.a = t->a + i * t->a_row + p * t->a_col,
                 .row = t->a_row,
                 .rows = least(2 * SIDE, t->m - i),
                 .k = least(BLOCK_K, t->k - p),
                 .to = to};
}

/* Completes a cut: splits the rest of A's rows, which cut_more() has not split yet; where A lies in
 * columns that is all of them. False: a number is not finite. */
AMX static bool finish_cut(const RtTile *t, Cut *c) {
    bool ok = true;
    if (t->a_col == 1) {
        cut_more(c, INT64_MAX);
        return !is_bad(c->bad);
    }
    for (; c->rows > 0; c->rows -= SIDE, c->a += SIDE * c->row, c->to += strip(c->k))
        ok &= cut_rows(c->to, c->a, c->row, t->a_col, c->rows, c->k);
    return ok;
}

/* The square of the tile's C that begins at row i, for k summands from p on; its columns are still
 * to be set. */
static Square square_at(const RtTile *t, const Half *a, int64_t i, int64_t p, int64_t k) {
    return (Square){.a = a,
                    .a_next = strip(k),
                    .steps = ceil_div(k, STEP),
                    .c = t->c + i * t->c_row,
                    .c_row = t->c_row,
                    .m = t->m - i,
                    .add = p > 0,
                    .two = t->of_f16};
}

/* While two strips are multiplied the next ones are cut, between the instructions of the tiles, and
 * those behind them are asked for. */
bool rt_pieces_tile(const RtTile *t, float *work) {
    Half *a[2] = {(Half *)work, (Half *)work + TWO_STRIPS};
    int64_t squares = ceil_div(t->n, 2 * SIDE), share = ceil_div(2 * SIDE, squares);
    Cut next = cut_at(t, a[0], 0, 0);
    bool ok = finish_cut(t, &next);
    for (int64_t i = 0, p = 0, now = 0; i < t->m && ok; now = !now) {
        Square s = square_at(t, a[now], i, p, least(BLOCK_K, t->k - p));
        const Half *b = (const Half *)t->packed + strip(p);
        p += BLOCK_K;
        if (p >= t->k) p = 0, i += 2 * SIDE;
        next = cut_at(t, a[!now], i, p);
        if (t->a_col == 1) {
            s.ahead[0] = (Ahead){next.a + 2 * SIDE * t->a_row, t->a_row, share, STEP / LINE};
            s.cut = &next;
            s.cut_rows = share;
        }
        multiply_rows(&s, b, strip(t->k), t->n);
        ok = finish_cut(t, &next);
    }
    return ok;
}

/* The part of an operand's next rows of k that a step of k asks for: `squares` follow. */
static Ahead next_rows(const float *x, int64_t row, int64_t col, int64_t width, int64_t squares) {
    if (col != 1) return (Ahead){.rows = 0};
    return (Ahead){.at = x + BLOCK_K * row,
                   .row = row,
                   .rows = ceil_div(BLOCK_K, squares),
                   .lines = ceil_div(width, LINE * BLOCK_K / STEP)};
}

/* Computes a tile of a product with a long k by AMX, from pieces in bf16. False: not done (no
 * AMX, or a number that is not finite); the caller computes it in f32. */
bool rt_pieces_long_tile(const RtTile *t, float *work) {
    Half *a = (Half *)work, *b = a + TWO_STRIPS;
    assert(t->n <= RT_PANEL_TILE);
    int64_t squares = ceil_div(t->m, 2 * SIDE) * ceil_div(t->n, 2 * SIDE);
    for (int64_t p = 0; p < t->k; p += BLOCK_K) {
        int64_t k = least(BLOCK_K, t->k - p), one = strip(k);
        const float *b_at = t->b + p * t->b_row;
        Ahead a_next = next_rows(t->a + p * t->a_col, t->a_col, t->a_row, t->m, squares);
        Ahead b_next = next_rows(b_at, t->b_row, t->b_col, t->n, squares);
        bool ok = true;
        for (int64_t j = 0; j < t->n; j += SIDE)
            ok &= cut_cols(b + j / SIDE * one, b_at + j * t->b_col, t->b_row, t->b_col, k,
                           least(SIDE, t->n - j));
        for (int64_t i = 0; i < t->m && ok; i += 2 * SIDE) {
            Square s = square_at(t, a, i, p, k);
            s.ahead[0] = a_next, s.ahead[1] = b_next;
            Cut cut = cut_at(t, a, i, p);
            ok = finish_cut(t, &cut);
            multiply_rows(&s, b, one, t->n);
            a_next = s.ahead[0], b_next = s.ahead[1];
        }
        if (!ok) return false;
    }
    return true;
}

#else
bool rt_pieces_available(void) {
    return false;
}
int64_t rt_pieces_packed(int64_t k, int64_t n) {
    return k * n;
}
bool rt_pieces_pack(const RtTile *t, float *to, int64_t i) {
    (void)t, (void)to, (void)i;
    return false;
}
bool rt_pieces_tile(const RtTile *t, float *work) {
    (void)t, (void)work;
    return false;
}
bool rt_pieces_long_tile(const RtTile *t, float *work) {
    (void)t, (void)work;
    return false;
}
#endif
