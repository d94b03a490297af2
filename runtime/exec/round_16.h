/* Rows of 16-bit floating-point numbers to f32 and back, rounded to nearest even. */
#ifndef RUNTIME_ROUND_16_H
#define RUNTIME_ROUND_16_H

#include <stdint.h>

#include "runtime/program.h"

/* t: RT_F16 or RT_BF16 */
void rt_to_f32(rt_dtype t, float *to, const uint16_t *from, int64_t n);
void rt_from_f32(rt_dtype t, uint16_t *to, const float *from, int64_t n);

#endif
