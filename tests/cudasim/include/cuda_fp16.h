/* The simulator's half type: 16 bits, converted by the IEEE rules. */
#ifndef CUDASIM_CUDA_FP16_H
#define CUDASIM_CUDA_FP16_H

#include <stdint.h>
#include <string.h>

typedef struct __half __half;
struct __half {
    uint16_t bits;
};

static inline float __half2float(__half h) {
    uint32_t sign = (uint32_t)(h.bits & 0x8000) << 16, e = h.bits >> 10 & 31, m = h.bits & 1023;
    uint32_t u;
    if (e == 31) {
        u = sign | 0x7f800000u | m << 13;
    } else if (e) {
        u = sign | (e + 112) << 23 | m << 13;
    } else { /* zero and subnormal: m * 2^-24 is exact */
        float f = (float)m * 5.9604644775390625e-8f;
        memcpy(&u, &f, 4);
        u |= sign;
    }
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static inline uint32_t cudasim_round_shift(uint32_t m, int by) { /* to nearest, ties to even */
    if (by > 31) return 0;
    uint32_t q = m >> by, rest = m & ((1u << by) - 1), half = 1u << (by - 1);
    return q + (rest > half || (rest == half && (q & 1)));
}

static inline __half __float2half_rn(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    uint32_t sign = u >> 16 & 0x8000, e = u >> 23 & 255, m = u & 0x7fffff, bits;
    if (e == 255)
        bits = m ? 0x7fff : 0x7c00;
    else if (e >= 113) /* a carry out of the mantissa raises the exponent, up to infinity */
        bits = e > 142 ? 0x7c00 : ((e - 112) << 10) + cudasim_round_shift(m, 13);
    else
        bits = e ? cudasim_round_shift(m | 0x800000, 126 - (int)e) : 0;
    __half h = {(uint16_t)(sign | (bits > 0x7c00 && e != 255 ? 0x7c00 : bits))};
    return h;
}

#endif
