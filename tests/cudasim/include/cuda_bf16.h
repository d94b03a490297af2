/* The simulator's bfloat16: the upper half of an f32. */
#ifndef CUDASIM_CUDA_BF16_H
#define CUDASIM_CUDA_BF16_H

#include <stdint.h>
#include <string.h>

typedef struct __nv_bfloat16 __nv_bfloat16;
struct __nv_bfloat16 {
    uint16_t bits;
};

static inline float __bfloat162float(__nv_bfloat16 h) {
    uint32_t u = (uint32_t)h.bits << 16;
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static inline __nv_bfloat16 __float2bfloat16_rn(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    if (f != f)
        u = 0x7fff0000u;
    else
        u += 0x7fff + (u >> 16 & 1);
    __nv_bfloat16 h = {(uint16_t)(u >> 16)};
    return h;
}

#endif
