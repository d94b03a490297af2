/* The inner part of a product of bf16 matrices: four tile registers of 16 x 16 sums, each the
 * product of 16 rows of 32 k (A) and 16 pairs of k for 16 columns (B).
 *
 *     C00 += A0 B0   C01 += A0 B1   C10 += A1 B0   C11 += A1 B1
 *
 * Two loads for two products keep the tile unit busy.  Both operands are packed into such tiles
 * first: operands come by rows or by columns, and a tile wants A's k side by side and B's in
 * pairs.  What lies the other way is paired as it is read and turned in registers, 16 x 16 pairs
 * at a time.  Instructions: Intel 64 and IA-32 Architectures Software Developer's Manual, vol. 2,
 * TDPBF16PS; blocking: Goto and van de Geijn 2008.
 *
 * A sum is one chain over k in order, 32 at a time, whatever tile it is in, so no cut of C
 * changes a bit. */
#include "cpu.h"
#include "gemm_amx.h"

#include <string.h>

enum {
    EDGE = 16,         /* rows and columns of a tile register of sums */
    STEP = 32,         /* k of one */
    UNIT = EDGE * STEP /* elements of a register of A or B */
};

static int64_t ceil_div(int64_t x, int64_t y) {
    return (x + y - 1) / y;
}
static int64_t least(int64_t x, int64_t y) {
    return x < y ? x : y;
}

/* Registers are used in pairs; an odd last one is zeros. */
static int64_t even(int64_t x) {
    return (x + 1) / 2 * 2;
}

int64_t rt_amx_panels(int64_t n) {
    return even(ceil_div(n, EDGE));
}

int64_t rt_amx_packed(int64_t n, int64_t k) {
    return rt_amx_panels(n) * ceil_div(k, STEP) * UNIT;
}

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#define AMX __attribute__((target("amx-tile,amx-bf16,avx512f,avx512bw,avx512vl,avx512bf16")))

/* The kernel gives tile registers to a process that asks; asking again is no harm. */
bool rt_amx_use(void) {
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XTILEDATA = 18, AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24 };
    unsigned a, b, c, d;
    if (!RT_CPU_HAS(AVX512BW, "avx512bw") || !RT_CPU_HAS(AVX512VL, "avx512vl")) return false;
    if (!__get_cpuid_count(7, 1, &a, &b, &c, &d) || !(a & 1u << 5)) return false; /* AVX512_BF16 */
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
/* Rows become columns, 16 x 16 pairs: transposed within 128 bits, then across. */
AMX static void turn(__m512i r[16]) {
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
AMX static void read_pairs(const Side *s, __m512i r[16]) {
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

/* Row i of the result: line i, 16 pairs of k. */
AMX static void read_lines(const Side *s, __m512i r[16]) {
    __mmask32 lanes = 0xffffffffu >> (STEP - least(s->k, STEP));
    for (int i = 0; i < 16; i++)
        r[i] = i < s->lines ? _mm512_maskz_loadu_epi16(lanes, s->at + i * s->line_step)
                            : _mm512_setzero_si512();
}

/* One register: rows of lines for A, rows of pairs for B. */
AMX static void pack_unit(const Side *s, bool want_lines, uint16_t *to) {
    __m512i r[16];
    bool lines = s->k_step == 1;
    if (lines)
        read_lines(s, r);
    else
        read_pairs(s, r);
    if (lines != want_lines) turn(r);
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
        pack_unit(&part, want_lines, to);
    }
}

void rt_amx_pack(const RtAmxTile *t, uint16_t *to, int64_t i) {
    Side b = {t->b, t->b_row, t->b_col, t->k, t->n};
    pack_lines(&b, i * EDGE, false, to + i * ceil_div(t->k, STEP) * UNIT);
}

/* ---- products -------------------------------------------------------------------------------- */
/* Two by two registers of sums over `steps`; the second of A and of B, and of C's rows, are that
 * many elements further on. */
AMX static void multiply(const uint16_t *a, int64_t a_next, const uint16_t *b, int64_t b_next,
                         float *c, int64_t c_next, int64_t steps, bool add) {
    enum { C_UNIT = EDGE * EDGE, ROW = 4 * EDGE };
    __asm__ volatile("" ::: "memory"); /* gcc is not told what loads of tiles read */
    if (add) {
        _tile_loadd(0, c, ROW);
        _tile_loadd(1, c + C_UNIT, ROW);
        _tile_loadd(2, c + c_next, ROW);
        _tile_loadd(3, c + c_next + C_UNIT, ROW);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    for (int64_t i = 0; i < steps; i++, a += UNIT, b += UNIT) {
        _tile_loadd(4, a, ROW);
        _tile_loadd(5, a + a_next, ROW);
        _tile_loadd(6, b, ROW);
        _tile_loadd(7, b + b_next, ROW);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, c, ROW);
    _tile_stored(1, c + C_UNIT, ROW);
    _tile_stored(2, c + c_next, ROW);
    _tile_stored(3, c + c_next + C_UNIT, ROW);
}

/* The sums lie register after register, a row of registers after the other. */
AMX static void store_rows(const RtAmxTile *t, const float *sums, int64_t panels) {
    for (int64_t i = 0; i < t->m; i++)
        for (int64_t j = 0; j < t->n; j += EDGE) {
            const float *at =
                sums + ((i / EDGE * panels + j / EDGE) * EDGE + i % EDGE) * (int64_t)EDGE;
            __mmask16 lanes = (__mmask16)(0xffff >> (EDGE - least(t->n - j, EDGE)));
            __m512 v = _mm512_load_ps(at);
            if (t->c_f32) {
                _mm512_mask_storeu_ps((float *)t->c + i * t->c_row + j, lanes, v);
            } else {
                __m256bh low = _mm512_cvtneps_pbh(v);
                __m256i bits;
                memcpy(&bits, &low, sizeof bits);
                _mm256_mask_storeu_epi16((uint16_t *)t->c + i * t->c_row + j, lanes, bits);
            }
        }
}

AMX void rt_amx_tile(const RtAmxTile *t, void *room) {
    uint16_t *a = room, *b = a + RT_AMX_ROWS * RT_AMX_K;
    float *c = (float *)(void *)(b + RT_AMX_COLS * RT_AMX_K);
    int64_t panels = rt_amx_panels(t->n), row_tiles = even(ceil_div(t->m, EDGE));
    int64_t all_steps = ceil_div(t->k, STEP);
    for (int64_t p = 0; p < t->k; p += RT_AMX_K) {
        RtAmxTile part = *t;
        part.b += p * t->b_row;
        part.k = least(RT_AMX_K, t->k - p);
        int64_t steps = ceil_div(part.k, STEP), stride = (t->packed ? all_steps : steps) * UNIT;
        Side side = {t->a + p * t->a_col, t->a_col, t->a_row, part.k, t->m};
        for (int64_t i = 0; i < row_tiles; i++)
            pack_lines(&side, i * EDGE, true, a + i * steps * UNIT);
        for (int64_t i = 0; i < panels && !t->packed; i++) rt_amx_pack(&part, b, i);
        const uint16_t *from = t->packed ? t->packed + p / STEP * UNIT : b;
        for (int64_t i = 0; i < row_tiles; i += 2)
            for (int64_t j = 0; j < panels; j += 2)
                multiply(a + i * steps * UNIT, steps * UNIT, from + j * stride, stride,
                         c + (i * panels + j) * EDGE * EDGE, panels * EDGE * EDGE, steps, p > 0);
    }
    store_rows(t, c, panels);
}
#else
bool rt_amx_use(void) {
    return false;
}
void rt_amx_begin(void) {
}
void rt_amx_end(void) {
}
void rt_amx_tile(const RtAmxTile *t, void *room) {
    (void)t, (void)room;
}
void rt_amx_pack(const RtAmxTile *t, uint16_t *to, int64_t i) {
    (void)t, (void)to, (void)i;
}
#endif
