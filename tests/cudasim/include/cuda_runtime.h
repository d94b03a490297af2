/* The simulator's stand-in for CUDA C: keywords, thread indices, barriers, shuffles, votes,
 * atomics and launches. */
#ifndef CUDASIM_CUDA_RUNTIME_H
#define CUDASIM_CUDA_RUNTIME_H

#include "cuda_runtime_api.h"
#include "cudasim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <utility>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __constant__ static
#define __shared__ static thread_local
#define __launch_bounds__(...)
#define __grid_constant__

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {
    }
};
struct uint3 {
    unsigned x, y, z;
};
struct float2 {
    float x, y;
};
struct float4 {
    float x, y, z, w;
};

#define threadIdx (cudasim_now()->thread)
#define blockIdx (cudasim_now()->block)
#define blockDim (cudasim_now()->block_dim)
#define gridDim (cudasim_now()->grid_dim)
#define warpSize 32

static inline void __syncthreads() {
    cudasim_sync_block();
}
static inline void __syncwarp(unsigned mask = 0xffffffffu) {
    cudasim_exchange(mask, 0);
}
static inline void __threadfence() {
}
static inline int __popc(unsigned x) {
    return __builtin_popcount(x);
}
static inline int __ffs(int x) {
    return __builtin_ffs(x);
}
static inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
    __extension__ typedef unsigned __int128 Wide;
    return (unsigned long long)((Wide)x * y >> 64);
}

/* Never contracted with another. */
static inline double __dadd_rn(double x, double y) {
    volatile double sum = x + y;
    return sum;
}
static inline double __dmul_rn(double x, double y) {
    volatile double product = x * y;
    return product;
}
static inline float __fadd_rn(float x, float y) {
    volatile float sum = x + y;
    return sum;
}
static inline float __fmul_rn(float x, float y) {
    volatile float product = x * y;
    return product;
}

/* ---- shuffles and votes ------------------------------------------------------------ */
template <class T> static inline T cudasim_shuffle(unsigned mask, T v, int lane) {
    static_assert(sizeof(T) <= 8, "a register");
    uint64_t bits = 0;
    memcpy(&bits, &v, sizeof v);
    const uint64_t *all = cudasim_exchange(mask, bits);
    if (!(mask >> lane & 1)) cudasim_fail("a shuffle reads a lane outside its mask");
    memcpy(&v, &all[lane], sizeof v);
    return v;
}
static inline int cudasim_lane() {
    return (int)(cudasim_now()->flat % 32);
}
template <class T> static inline T __shfl_sync(unsigned mask, T v, int from, int width = 32) {
    int first = cudasim_lane() / width * width;
    return cudasim_shuffle(mask, v, first + (from & (width - 1)));
}
template <class T> static inline T __shfl_xor_sync(unsigned mask, T v, int with, int width = 32) {
    int to = cudasim_lane() ^ with;
    bool inside = to / width <= cudasim_lane() / width;
    return cudasim_shuffle(mask, v, inside ? to : cudasim_lane());
}
template <class T> static inline T __shfl_down_sync(unsigned mask, T v, int by, int width = 32) {
    int to = cudasim_lane() + by;
    return cudasim_shuffle(mask, v, to / width == cudasim_lane() / width ? to : cudasim_lane());
}
template <class T> static inline T __shfl_up_sync(unsigned mask, T v, int by, int width = 32) {
    int lane = cudasim_lane();
    return cudasim_shuffle(mask, v, lane % width >= by ? lane - by : lane);
}
static inline unsigned __ballot_sync(unsigned mask, int p) {
    const uint64_t *all = cudasim_exchange(mask, p != 0);
    unsigned votes = 0;
    for (int i = 0; i < 32; i++)
        if (mask >> i & 1) votes |= (unsigned)all[i] << i;
    return votes;
}
static inline int __any_sync(unsigned mask, int p) {
    return __ballot_sync(mask, p) != 0;
}
static inline int __all_sync(unsigned mask, int p) {
    return __ballot_sync(mask, p) == mask;
}

/* ---- atomics: threads of the simulator are never interrupted inside one ------------ */
template <class T> static inline T atomicAdd(T *p, T v) {
    T old = *p;
    *p = old + v;
    return old;
}
template <class T> static inline T atomicMax(T *p, T v) {
    T old = *p;
    if (v > old) *p = v;
    return old;
}
template <class T> static inline T atomicMin(T *p, T v) {
    T old = *p;
    if (v < old) *p = v;
    return old;
}
template <class T> static inline T atomicExch(T *p, T v) {
    T old = *p;
    *p = v;
    return old;
}
template <class T> static inline T atomicCAS(T *p, T expected, T v) {
    T old = *p;
    if (old == expected) *p = v;
    return old;
}

/* ---- loops of graphs ------------------------------------------------------------------ */
static inline void cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned value) {
    cudasim_set_conditional(handle, value);
}

/* ---- launches ---------------------------------------------------------------------- */
static inline void cudasim_copy(void **to, char *room, void **args, const size_t *size, size_t n) {
    for (size_t i = 0; i < n; room += (size[i++] + 15) & ~(size_t)15) {
        memcpy(room, args[i], size[i]);
        to[i] = room;
    }
}

/* Room for them.  A kernel has hundreds where a model has many relations: clang folds 256. */
constexpr size_t cudasim_room(const size_t *size, size_t n) {
    size_t room = 16;
    for (size_t i = 0; i < n; i++) room += (size[i] + 15) & ~(size_t)15;
    return room;
}
template <class... P> struct cudasim_sizes {
    static constexpr size_t of[] = {sizeof(P)..., 0};
};

/* Arguments one after another, with the place of each: std::tuple takes a third of a model's time
 * to compile. */
template <class... P> struct cudasim_closure {
    void (*kernel)(P...);
    void *arg[sizeof...(P) + 1];
    alignas(16) char bytes[cudasim_room(cudasim_sizes<P...>::of, sizeof...(P))];
};

template <class... P, size_t... I>
static void cudasim_apply(cudasim_closure<P...> *c, std::index_sequence<I...>) {
    c->kernel(*(P *)c->arg[I]...);
}
template <class... P> static void cudasim_call(void *p) {
    cudasim_apply((cudasim_closure<P...> *)p, std::index_sequence_for<P...>());
}

template <class... P>
static inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *a, void (*)(P...)) {
    return cudasim_attributes(a);
}

template <typename... P>
static inline cudaError_t cudaLaunchKernel(void (*kernel)(P...), dim3 grid, dim3 block, void **args,
                                           size_t shared_bytes, cudaStream_t stream) {
    (void)shared_bytes;
    static const size_t size[] = {sizeof(P)..., 0};
    unsigned g[3] = {grid.x, grid.y, grid.z}, b[3] = {block.x, block.y, block.z};
    cudasim_closure<P...> *c = (cudasim_closure<P...> *)malloc(sizeof *c);
    if (!c) return cudaErrorMemoryAllocation;
    c->kernel = kernel;
    cudasim_copy(c->arg, c->bytes, args, size, sizeof...(P));
    return (cudaError_t)cudasim_launch(stream, g, b, cudasim_call<P...>, free, c);
}

#endif
