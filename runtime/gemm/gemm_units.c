/* Products of bf16 matrices in units: 16 rows by 32 k of A, 16 pairs of k by 16 columns of B, 16 x
 * 16 sums.  A unit is what a tile register of AMX holds; the dot products of AVX512-BF16 read the
 * same ones, a row of B's at a time.
 *
 *     C00 += A0 B0   C01 += A0 B1   C10 += A1 B0   C11 += A1 B1
 *
 * Two loads for two products keep the tile unit busy.  Both operands are packed into units
 * first: operands come by rows or by columns, and a unit wants A's k side by side and B's in
 * pairs.  What lies the other way is paired as it is read and transposed in registers, 16 x 16
 * pairs at a time.  Instructions: Intel 64 and IA-32 Architectures Software Developer's Manual,
 * vol. 2, TDPBF16PS and VDPBF16PS; blocking: Goto and van de Geijn 2008.
 *
 * A sum is one chain over k in order, whatever tile it is in, so no cut of C changes a bit.  The
 * two ways differ in how the two products of a pair are rounded. */
#include "runtime/exec/cpu.h"
#include "gemm_amx.h"
#include "gemm_cuts.h"
#include "gemm_tiles_16.h"

#include <string.h>

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    EDGE = 16,          /* rows and columns of a unit of sums */
    STEP = 32,          /* k of a unit */
    UNIT = EDGE * STEP, /* elements of a unit of A or B */
    SUMS = EDGE * EDGE,
    ROWS = 256, /* of a tile, at most */
    COLS = RT_TILE_16_COLS,
    BLOCK_K = 256, /* k at a time: A, B and C of a tile stay in the second-level cache */
    ROOM = 2 * (ROWS + COLS) * BLOCK_K + 4 * ROWS * COLS,
    GROUP = 8 /* rows of sums that dot products keep in registers, two units wide */
};

/* Units are used in pairs; an odd last one is zeros. */
static int64_t even(int64_t x) {
    return (x + 1) / 2 * 2;
}

static int64_t panels_of(int64_t n) {
    return even(ceil_div(n, EDGE));
}

static size_t packed_bytes(int64_t n, int64_t k) {
    return (size_t)(panels_of(n) * ceil_div(k, STEP) * UNIT) * sizeof(uint16_t);
}

#define UNITS __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))
#define AMX __attribute__((target("amx-tile,amx-bf16,avx512f,avx512bw,avx512vl,avx512bf16")))

static bool has_units(void) {
    return RT_CPU_HAS(AVX512BW, "avx512bw") && RT_CPU_HAS(AVX512VL, "avx512vl") &&
           RT_CPU_HAS(AVX512_BF16, "avx512bf16");
}

/* Whether this process can use AMX for bf16: the processor has it, and the system gives tile
 * registers when asked. Asking again is harmless. */
bool rt_amx_use(void) {
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XTILEDATA = 18, AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24 };
    unsigned a, b, c, d;
    if (!has_units()) return false;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d & AMX_BF16) || !(d & AMX_TILE))
        return false;
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XTILEDATA) == 0;
}

typedef struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} TileConfig;

/* Eight registers of 16 rows of 64 bytes.  (A table: gcc 12 sees only the first bytes of the
 * operand of the instruction and drops stores to the others.) */
static const TileConfig tiles = {
    .palette = 1,
    .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
    .rows = {16, 16, 16, 16, 16, 16, 16, 16},
};

AMX void rt_amx_begin(void) {
    _tile_loadconfig(&tiles);
}

AMX void rt_amx_end(void) {
    _tile_release();
}

/* ---- packing ------------------------------------------------------------------------------ */
/* Transposes a square of 16 x 16 pairs, a row in each register: within 128 bits first, then across.
 */
UNITS static void transpose(__m512i r[16]) {
    __m512i t[16];
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
    for (int i = 0; i < 16; i += 4)
        for (int k = 0; k < 2; k++) {
            r[i + 2 * k] = _mm512_unpacklo_epi64(t[i + k], t[i + k + 2]);
            r[i + 2 * k + 1] = _mm512_unpackhi_epi64(t[i + k], t[i + k + 2]);
        }
    for (int i = 0; i < 16; i += 8)
        for (int k = 0; k < 4; k++) {
            t[i + k] = _mm512_shuffle_i32x4(r[i + k], r[i + k + 4], 0x88);
            t[i + k + 4] = _mm512_shuffle_i32x4(r[i + k], r[i + k + 4], 0xdd);
        }
    for (int k = 0; k < 8; k++) {
        r[k] = _mm512_shuffle_i32x4(t[k], t[k + 8], 0x88);
        r[k + 8] = _mm512_shuffle_i32x4(t[k], t[k + 8], 0xdd);
    }
}

/* An operand seen as k x lines: lines are A's rows or B's columns. */
typedef struct {
    const uint16_t *at;
    int64_t k_step, line_step; /* one of them is 1 */
    int64_t k, lines;
} Side;

/* Row i of the result: pair i of k, for 16 lines. */
UNITS static void read_pairs(const Side *s, __m512i r[16]) {
    __mmask16 lanes = (__mmask16)(0xffff >> (EDGE - least(s->lines, EDGE)));
    for (int i = 0; i < 16; i++) {
        const uint16_t *at = s->at + 2 * i * s->k_step;
        __m256i lo = _mm256_setzero_si256(), hi = lo;
        if (2 * i < s->k) lo = _mm256_maskz_loadu_epi16(lanes, at);
        if (2 * i + 1 < s->k) hi = _mm256_maskz_loadu_epi16(lanes, at + s->k_step);
        r[i] = _mm512_or_si512(_mm512_cvtepu16_epi32(lo),
                               _mm512_slli_epi32(_mm512_cvtepu16_epi32(hi), 16));
    }
}

/* Loads an AMX tile operand: 16 lines (rows of A, or columns of B) of 32 values of k; zeros
 * where there are fewer. */
UNITS static void load_tile_lines(const Side *s, __m512i r[16]) {
    __mmask32 lanes = 0xffffffffu >> (STEP - least(s->k, STEP));
    for (int i = 0; i < 16; i++)
        r[i] = i < s->lines ? _mm512_maskz_loadu_epi16(lanes, s->at + i * s->line_step)
                            : _mm512_setzero_si512();
}

/* Packs a block of 16 x 32 bf16: row by row for A; for B in pairs of two successive k, as VNNI
 * instructions read them. */
UNITS static void pack_tile(const Side *s, bool want_lines, uint16_t *to) {
    __m512i r[16];
    bool lines = s->k_step == 1;
    if (lines)
        load_tile_lines(s, r);
    else
        read_pairs(s, r);
    if (lines != want_lines) transpose(r);
    for (int i = 0; i < 16; i++) _mm512_storeu_si512(to + (size_t)i * STEP, r[i]);
}

/* All k of 16 lines from `line` on, register after register. */
static void pack_lines(const Side *s, int64_t line, bool want_lines, uint16_t *to) {
    for (int64_t p = 0; p < s->k; p += STEP, to += UNIT) {
        if (line >= s->lines) {
            memset(to, 0, UNIT * sizeof *to);
            continue;
        }
        Side part = *s;
        part.at += p * s->k_step + line * s->line_step;
        part.k -= p;
        part.lines -= line;
        pack_tile(&part, want_lines, to);
    }
}

static void pack_panel(const RtTile16 *t, char *to, int64_t i) {
    Side b = {t->b, t->b_row, t->b_col, t->k, t->n};
    pack_lines(&b, i * EDGE, false, (uint16_t *)(void *)to + i * ceil_div(t->k, STEP) * UNIT);
}

/* ---- products -------------------------------------------------------------------------------- */
/* Two by two units of sums. */
typedef struct {
    const uint16_t *a, *b;
    float *c;
    int64_t a_next, b_next, c_next; /* elements to the second of A and of B, and of C's rows */
    int64_t steps, rows, cols;      /* units of k; rows and columns that are not filled up */
    bool add;                       /* to what C holds */
} Quad;

/* Computes two by two tiles of C with AMX, in registers over all of k. */
AMX static void quad_amx(const Quad *q) {
    enum { ROW = 4 * EDGE };
    const uint16_t *a = q->a, *b = q->b;
    float *c = q->c;
    __asm__ volatile("" ::: "memory"); /* gcc is not told what loads of tiles read */
    if (q->add) {
        _tile_loadd(0, c, ROW);
        _tile_loadd(1, c + SUMS, ROW);
        _tile_loadd(2, c + q->c_next, ROW);
        _tile_loadd(3, c + q->c_next + SUMS, ROW);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    for (int64_t i = 0; i < q->steps; i++, a += UNIT, b += UNIT) {
        _tile_loadd(4, a, ROW);
        _tile_loadd(5, a + q->a_next, ROW);
        _tile_loadd(6, b, ROW);
        _tile_loadd(7, b + q->b_next, ROW);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, c, ROW);
    _tile_stored(1, c + SUMS, ROW);
    _tile_stored(2, c + q->c_next, ROW);
    _tile_stored(3, c + q->c_next + SUMS, ROW);
}

/* The innermost kernel: a row of B's pairs is multiplied with the pair of each row of A, by dot
 * products of bf16. */
UNITS static inline __attribute__((always_inline)) void micro_kernel(const Quad *q,
                                                                     const uint16_t *a, float *c,
                                                                     int w) {
    __m512 acc[GROUP][2];
    UNROLL for (int r = 0; r < GROUP; r++) UNROLL for (int j = 0; j < w; j++) acc[r][j] =
        q->add ? _mm512_loadu_ps(c + r * EDGE + j * SUMS) : _mm512_setzero_ps();
    const uint16_t *b = q->b;
    for (int64_t i = 0; i < q->steps; i++, a += UNIT - STEP)
        for (int p = 0; p < EDGE; p++, a += 2, b += STEP) {
            __m512bh bp[2];
            UNROLL for (int j = 0; j < w; j++) bp[j] =
                (__m512bh)_mm512_loadu_si512(b + j * q->b_next);
            UNROLL for (int r = 0; r < GROUP; r++) {
                int32_t pair;
                memcpy(&pair, a + r * STEP, sizeof pair);
                __m512bh x = (__m512bh)_mm512_set1_epi32(pair);
                UNROLL for (int j = 0; j < w; j++) acc[r][j] =
                    _mm512_dpbf16_ps(acc[r][j], x, bp[j]);
            }
        }
    UNROLL for (int r = 0; r < GROUP; r++) UNROLL for (int j = 0; j < w; j++)
        _mm512_storeu_ps(c + r * EDGE + j * SUMS, acc[r][j]);
}

UNITS static void group_1(const Quad *q, const uint16_t *a, float *c) {
    micro_kernel(q, a, c, 1);
}
UNITS static void group_2(const Quad *q, const uint16_t *a, float *c) {
    micro_kernel(q, a, c, 2);
}

/* The same quad with AVX512-BF16 dot products, a group of rows after the other. */
static void quad_dot(const Quad *q) {
    for (int64_t r = 0; r < q->rows; r += GROUP) {
        const uint16_t *a = q->a + r / EDGE * q->a_next + r % EDGE * STEP;
        float *c = q->c + r / EDGE * q->c_next + r % EDGE * EDGE;
        (q->cols > EDGE ? group_2 : group_1)(q, a, c);
    }
}

/* The sums lie register after register, a row of registers after the other. */
UNITS static void store_rows(const RtTile16 *t, const float *sums, int64_t panels) {
    for (int64_t i = 0; i < t->m; i++)
        for (int64_t j = 0; j < t->n; j += EDGE) {
            const float *at =
                sums + ((i / EDGE * panels + j / EDGE) * EDGE + i % EDGE) * (int64_t)EDGE;
            __mmask16 lanes = (__mmask16)(0xffff >> (EDGE - least(t->n - j, EDGE)));
            __m512 v = _mm512_load_ps(at);
            if (t->out == RT_F32) {
                _mm512_mask_storeu_ps((float *)t->c + i * t->c_row + j, lanes, v);
            } else {
                __m256bh low = _mm512_cvtneps_pbh(v);
                __m256i bits;
                memcpy(&bits, &low, sizeof bits);
                _mm256_mask_storeu_epi16((uint16_t *)t->c + i * t->c_row + j, lanes, bits);
            }
        }
}

/* A tile of a product in 16 bits: packs its operands in `room` and lets `quad` multiply 2 x 2
 * units of 16 rows and columns at a time. */
static inline __attribute__((always_inline)) void tile(const RtTile16 *t, char *room,
                                                       void (*quad)(const Quad *)) {
    uint16_t *a = (uint16_t *)(void *)room, *b = a + ROWS * BLOCK_K;
    float *c = (float *)(void *)(b + COLS * BLOCK_K);
    int64_t panels = panels_of(t->n), row_units = even(ceil_div(t->m, EDGE));
    int64_t all_steps = ceil_div(t->k, STEP);
    for (int64_t p = 0; p < t->k; p += BLOCK_K) {
        RtTile16 part = *t;
        part.b += p * t->b_row;
        part.k = least(BLOCK_K, t->k - p);
        int64_t steps = ceil_div(part.k, STEP), stride = (t->packed ? all_steps : steps) * UNIT;
        Side side = {t->a + p * t->a_col, t->a_col, t->a_row, part.k, t->m};
        for (int64_t i = 0; i < row_units; i++)
            pack_lines(&side, i * EDGE, true, a + i * steps * UNIT);
        for (int64_t i = 0; i < panels && !t->packed; i++) pack_panel(&part, (char *)b, i);
        const uint16_t *from =
            t->packed ? (const uint16_t *)(const void *)t->packed + p / STEP * UNIT : b;
        Quad q = {.a_next = steps * UNIT, .b_next = stride, .c_next = panels * SUMS};
        q.steps = steps, q.add = p > 0;
        for (int64_t i = 0; i < row_units; i += 2)
            for (int64_t j = 0; j < panels; j += 2) {
                q.a = a + i * steps * UNIT, q.b = from + j * stride;
                q.c = c + (i * panels + j) * SUMS;
                q.rows = least(2 * EDGE, t->m - i * EDGE), q.cols = t->n - j * EDGE;
                quad(&q);
            }
    }
    store_rows(t, c, panels);
}

static bool tile_amx(const RtTile16 *t, char *room) {
    tile(t, room, quad_amx);
    return true;
}
static bool tile_dot(const RtTile16 *t, char *room) {
    tile(t, room, quad_dot);
    return true;
}

static const RtTiles16 amx_tiles = {.rows = ROWS,
                                    .rows_thin = ROWS,
                                    .room = ROOM,
                                    .packed = packed_bytes,
                                    .panels = panels_of,
                                    .pack = pack_panel,
                                    .begin = rt_amx_begin,
                                    .end = rt_amx_end,
                                    .tile = tile_amx};
static const RtTiles16 dot_tiles = {.rows = ROWS,
                                    .rows_thin = ROWS,
                                    .room = ROOM,
                                    .packed = packed_bytes,
                                    .panels = panels_of,
                                    .pack = pack_panel,
                                    .tile = tile_dot};

const RtTiles16 *rt_tiles_amx(void) {
    return &amx_tiles;
}
const RtTiles16 *rt_tiles_dot(void) {
    return &dot_tiles;
}
bool rt_dot_available(void) {
    return has_units();
}
bool rt_dot_pays(void) {
    unsigned a, b = 0, c = 0, d = 0;
    return has_units() && __get_cpuid(0, &a, &b, &c, &d) && b == signature_AMD_ebx &&
           c == signature_AMD_ecx && d == signature_AMD_edx;
}
#else
bool rt_amx_use(void) {
    return false;
}
void rt_amx_begin(void) {
}
void rt_amx_end(void) {
}
const RtTiles16 *rt_tiles_amx(void) {
    return NULL;
}
const RtTiles16 *rt_tiles_dot(void) {
    return NULL;
}
bool rt_dot_available(void) {
    return false;
}
bool rt_dot_pays(void) {
    return false;
}
#endif
