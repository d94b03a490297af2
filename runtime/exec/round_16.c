/* bf16 is the upper half of an f32.  f16 has 5 bits of exponent and 10 of mantissa; machines with
 * AVX-512 convert sixteen at a time, others by the rules of IEEE 754.  (What AVX512-BF16 has for it
 * makes zeros of small numbers.) */
#include "cpu.h"
#include "round_16.h"

#include <string.h>

#include "runtime/data/npy.h"

/* The bits of a float. */
static uint32_t bits_of(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

/* Rounds to bf16, ties to even; a NaN stays one. */
static uint16_t to_bf16(float f) {
    uint32_t u = bits_of(f);
    if (f != f) return (uint16_t)((u | 0x400000u) >> 16);
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1)) >> 16);
}

/* m / 2^by, to nearest even */
static uint32_t round_shift(uint32_t m, unsigned by) {
    if (by > 31) return 0;
    uint32_t q = m >> by, rest = m & ((1u << by) - 1), half = 1u << (by - 1);
    return q + (rest > half || (rest == half && (q & 1)));
}

/* x rounded to f16, to nearest even, with infinities, subnormal numbers and NaN. */
static uint16_t to_f16(float f) {
    uint32_t u = bits_of(f), sign = u >> 16 & 0x8000, e = u >> 23 & 255, m = u & 0x7fffff, v;
    if (e == 255)
        v = m ? 0x7e00 : 0x7c00;
    else if (e > 142)
        v = 0x7c00;
    else if (e >= 113) /* a carry out of the mantissa raises the exponent, up to infinity */
        v = ((e - 112) << 10) + round_shift(m, 13);
    else
        v = e ? round_shift(m | 0x800000, 126 - e) : 0;
    return (uint16_t)(sign | v);
}

static void from_f16_plain(float *to, const uint16_t *from, int64_t n) {
    for (int64_t i = 0; i < n; i++) to[i] = rt_f16_to_f32(from[i]);
}

static void from_bf16_plain(float *to, const uint16_t *from, int64_t n) {
    for (int64_t i = 0; i < n; i++) to[i] = rt_bf16_to_f32(from[i]);
}

static void to_bf16_plain(uint16_t *to, const float *from, int64_t n) {
    for (int64_t i = 0; i < n; i++) to[i] = to_bf16(from[i]);
}

static void to_f16_plain(uint16_t *to, const float *from, int64_t n) {
    for (int64_t i = 0; i < n; i++) to[i] = to_f16(from[i]);
}

#if defined(__x86_64__)
#include <immintrin.h>

/* Widens numbers from f16 to f32, 16 at a time; returns how many: the last ones, less than 16, are
 * left. */
__attribute__((target("avx512f"))) static int64_t from_f16_wide(float *to, const uint16_t *from,
                                                                int64_t n) {
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        _mm512_storeu_ps(to + i, _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(from + i))));
    return i;
}

/* Rounds numbers from f32 to f16, 16 at a time; returns how many. */
__attribute__((target("avx512f"))) static int64_t to_f16_wide(uint16_t *to, const float *from,
                                                              int64_t n) {
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        _mm256_storeu_si256((void *)(to + i), _mm512_cvtps_ph(_mm512_loadu_ps(from + i), 0));
    return i;
}

/* Widens numbers from bf16 to f32, 16 at a time; returns how many. */
__attribute__((target("avx512f"))) static int64_t from_bf16_wide(float *to, const uint16_t *from,
                                                                 int64_t n) {
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m512i u = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)(from + i)));
        _mm512_storeu_si512(to + i, _mm512_slli_epi32(u, 16));
    }
    return i;
}

/* As to_bf16(). */
__attribute__((target("avx512f"))) static int64_t to_bf16_wide(uint16_t *to, const float *from,
                                                               int64_t n) {
    const __m512i half = _mm512_set1_epi32(0x7fff), one = _mm512_set1_epi32(1),
                  quiet = _mm512_set1_epi32(0x400000);
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m512 f = _mm512_loadu_ps(from + i);
        __m512i u = _mm512_castps_si512(f), odd = _mm512_and_epi32(_mm512_srli_epi32(u, 16), one);
        __m512i y = _mm512_add_epi32(_mm512_add_epi32(u, half), odd);
        y = _mm512_mask_or_epi32(y, _mm512_cmp_ps_mask(f, f, _CMP_UNORD_Q), u, quiet);
        _mm256_storeu_si256((void *)(to + i), _mm512_cvtepi32_epi16(_mm512_srli_epi32(y, 16)));
    }
    return i;
}

static int wide(void) {
    return RT_CPU_HAS(AVX512F, "avx512f");
}
#else
static int64_t from_f16_wide(float *to, const uint16_t *from, int64_t n) {
    (void)to, (void)from, (void)n;
    return 0;
}
static int64_t to_f16_wide(uint16_t *to, const float *from, int64_t n) {
    (void)to, (void)from, (void)n;
    return 0;
}
static int64_t from_bf16_wide(float *to, const uint16_t *from, int64_t n) {
    (void)to, (void)from, (void)n;
    return 0;
}
static int64_t to_bf16_wide(uint16_t *to, const float *from, int64_t n) {
    (void)to, (void)from, (void)n;
    return 0;
}
static int wide(void) {
    return 0;
}
#endif

enum { LANES = 16 };

/* The last numbers of a row are filled up, to be converted in one piece. */
void rt_to_f32(rt_dtype t, float *to, const uint16_t *from, int64_t n) {
    bool bf16 = t == RT_BF16;
    int64_t done = !wide() ? 0 : (bf16 ? from_bf16_wide : from_f16_wide)(to, from, n);
    if (done == n) return;
    if (wide()) {
        uint16_t rest[LANES] = {0};
        float f[LANES];
        memcpy(rest, from + done, (size_t)(n - done) * sizeof *rest);
        (bf16 ? from_bf16_wide : from_f16_wide)(f, rest, LANES);
        memcpy(to + done, f, (size_t)(n - done) * sizeof *f);
        return;
    }
    (bf16 ? from_bf16_plain : from_f16_plain)(to + done, from + done, n - done);
}

/* Rounds n numbers from f32 to f16 or bf16. With vectors, the rest of the last vector is rounded by
 * the same instructions, so that the place of a number does not matter. */
void rt_from_f32(rt_dtype t, uint16_t *to, const float *from, int64_t n) {
    bool bf16 = t == RT_BF16;
    int64_t done = !wide() ? 0 : (bf16 ? to_bf16_wide : to_f16_wide)(to, from, n);
    if (done == n) return;
    if (wide()) {
        float rest[LANES] = {0};
        uint16_t h[LANES];
        memcpy(rest, from + done, (size_t)(n - done) * sizeof *rest);
        (bf16 ? to_bf16_wide : to_f16_wide)(h, rest, LANES);
        memcpy(to + done, h, (size_t)(n - done) * sizeof *h);
        return;
    }
    (bf16 ? to_bf16_plain : to_f16_plain)(to + done, from + done, n - done);
}
