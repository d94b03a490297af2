/* When a sparse product by the device's library pays, as bytes tell: what decides with --spmm=auto,
 * and what --report=fusion prints.
 *
 * Both sides read each gathered row once per entry, and bounds, numbers and weights of entries
 * once. The library has weights in the order of its entries, which a kernel over the other end of
 * the edges finds by a permutation, and its bounds are of 32 bits; it reads a weight for each
 * entry, be it 1.  Nothing here is measured: a tenth must be saved, as for groups (group_cost.h).
 */
#ifndef RUNTIME_CUDA_SPMM_COST_H
#define RUNTIME_CUDA_SPMM_COST_H

#include <stdbool.h>
#include <stdint.h>

enum { RT_SPMM_GAIN = 10 }; /* one part in so many must be saved */

static inline bool rt_spmm_pays(int64_t own_bytes, int64_t library_bytes) {
    return (double)library_bytes * RT_SPMM_GAIN <= (double)own_bytes * (RT_SPMM_GAIN - 1);
}

#endif
