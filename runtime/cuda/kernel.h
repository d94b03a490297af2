/* What emitted kernels stand on: types, scalar functions whose meaning C leaves open,
 * random numbers, the loop over rows and the launch.  Everything else in an emitted file
 * is plain CUDA C, so that nvcc and the simulator of tests/cudasim read the same text. */
#ifndef RUNTIME_CUDA_KERNEL_H
#define RUNTIME_CUDA_KERNEL_H

#include "cuda/own_rows.h"
#include "cuda/room.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <math.h>
#include <stdint.h>

enum { GN_THREADS = 256 };

#define GN_FN static inline __device__
#define GN_HD static inline __host__ __device__
#define GN_METHOD static inline __device__
#define GN_ROW static __device__ __forceinline__ /* of two places that call it, both have it */

/* ---- sizes ------------------------------------------------------------------------- */
GN_HD int64_t gn_max64(int64_t x, int64_t y) {
    return x > y ? x : y;
}
GN_HD int64_t gn_min64(int64_t x, int64_t y) {
    return x < y ? x : y;
}
GN_HD int64_t gn_ceildiv(int64_t x, int64_t y) {
    return y <= 0 || x <= 0 ? 0 : (x - 1) / y + 1;
}

/* ---- 16 bits: stored, computed in f32 ---------------------------------------------- */
typedef __half gn_f16;
typedef __nv_bfloat16 gn_bf16;
GN_FN float gn_load(gn_f16 x) {
    return __half2float(x);
}
GN_FN float gn_load(gn_bf16 x) {
    return __bfloat162float(x);
}
GN_FN void gn_store(gn_f16 &to, float x) {
    to = __float2half_rn(x);
}
GN_FN void gn_store(gn_bf16 &to, float x) {
    to = __float2bfloat16_rn(x);
}
GN_FN float gn_round_f16(float x) {
    return __half2float(__float2half_rn(x));
}
GN_FN float gn_round_bf16(float x) {
    return __bfloat162float(__float2bfloat16_rn(x));
}

/* ---- neighbours in memory ----------------------------------------------------------- */
/* Loaded and stored at once: p is a multiple of N elements from where a buffer begins. */
template <class T, int N> struct alignas(sizeof(T) * N) GnPack {
    T at[N];
};
template <int N, class T> GN_FN GnPack<T, N> gn_pack(const T *p) {
    return *reinterpret_cast<const GnPack<T, N> *>(p);
}
template <class T, int N> GN_FN void gn_put(T *p, const GnPack<T, N> &x) {
    *reinterpret_cast<GnPack<T, N> *>(p) = x;
}

/* The first n of them; the others are 0, and stay what they were. at_once: all of them, and p is
 * such a multiple; else they go one by one. */
template <int N, class T> GN_FN GnPack<T, N> gn_pack_some(const T *p, int n, bool at_once) {
    if (at_once) return gn_pack<N>(p);
    GnPack<T, N> x = {};
#pragma unroll
    for (int i = 0; i < N; i++)
        if (i < n) x.at[i] = p[i];
    return x;
}
template <class T, int N> GN_FN void gn_put_some(T *p, const GnPack<T, N> &x, int n, bool at_once) {
    if (at_once) {
        gn_put(p, x);
        return;
    }
#pragma unroll
    for (int i = 0; i < N; i++)
        if (i < n) p[i] = x.at[i];
}
template <int N, class T> GN_FN GnPack<T, N> gn_pack_some(const T *p, int n) {
    return gn_pack_some<N>(p, n, n == N);
}
template <class T, int N> GN_FN void gn_put_some(T *p, const GnPack<T, N> &x, int n) {
    gn_put_some(p, x, n, n == N);
}

/* The columns that a lane has of a row, from `first` on: n of a pack; whole: rows are whole packs,
 * so n is one, and rows lie at multiples of it. */
struct GnColumns {
    int n;
    bool whole;
};
GN_FN GnColumns gn_columns(int64_t first, int64_t width, int pack) {
    return GnColumns{(int)gn_min64(width - first, pack), width % pack == 0};
}
template <int N, class T> GN_FN GnPack<T, N> gn_pack_row(const T *p, const GnColumns &has) {
    return gn_pack_some<N>(p, has.n, has.whole);
}
template <class T, int N> GN_FN void gn_put_row(T *p, const GnPack<T, N> &x, const GnColumns &has) {
    gn_put_some(p, x, has.n, has.whole);
}

/* ---- integers: arithmetic wraps, x / 0 is 0 ---------------------------------------- */
#define GN_WRAPPING(T, U)                                                                          \
    GN_FN T gn_add(T x, T y) {                                                                     \
        return (T)((U)x + (U)y);                                                                   \
    }                                                                                              \
    GN_FN T gn_sub(T x, T y) {                                                                     \
        return (T)((U)x - (U)y);                                                                   \
    }                                                                                              \
    GN_FN T gn_mul(T x, T y) {                                                                     \
        return (T)((U)x * (U)y);                                                                   \
    }                                                                                              \
    GN_FN T gn_neg(T x) {                                                                          \
        return (T)(0 - (U)x);                                                                      \
    }                                                                                              \
    GN_FN T gn_abs(T x) {                                                                          \
        return x < 0 ? gn_neg(x) : x;                                                              \
    }                                                                                              \
    GN_FN T gn_div(T x, T y) {                                                                     \
        return y == 0 ? 0 : y == -1 ? gn_neg(x) : x / y;                                           \
    }
GN_WRAPPING(int32_t, uint32_t)
GN_WRAPPING(int64_t, uint64_t)
GN_FN bool gn_neg(bool x) {
    return x;
}
GN_FN bool gn_abs(bool x) {
    return x;
}

/* Conversions saturate; NaN becomes 0. */
GN_FN int32_t gn_to_i32(double x) {
    if (x != x) return 0;
    return x >= 2147483648.0 ? INT32_MAX : x < -2147483648.0 ? INT32_MIN : (int32_t)x;
}
GN_FN int64_t gn_to_i64(double x) {
    if (x != x) return 0;
    if (x >= 9223372036854775808.0) return INT64_MAX;
    return x < -9223372036854775808.0 ? INT64_MIN : (int64_t)x;
}

/* ---- functions -------- */
GN_FN float gn_rsqrt(float x) {
    return 1.0f / sqrtf(x);
}
GN_FN double gn_rsqrt(double x) {
    return 1.0 / sqrt(x);
}
GN_FN float gn_sigmoid(float x) {
    return 1.0f / (1.0f + expf(-x));
}
GN_FN double gn_sigmoid(double x) {
    return 1.0 / (1.0 + exp(-x));
}
GN_FN float gn_pow(float x, float y) {
    return powf(x, y);
}
GN_FN double gn_pow(double x, double y) {
    return pow(x, y);
}
GN_FN int32_t gn_pow(int32_t x, int32_t y) {
    return gn_to_i32(pow((double)x, (double)y));
}
GN_FN int64_t gn_pow(int64_t x, int64_t y) {
    return gn_to_i64(pow((double)x, (double)y));
}

/* Uniform in [0, 1) by stream key, row and column: the arithmetic of runtime/exec/rng.h, so that
 * masks are those of every other target. */
GN_FN uint32_t gn_mix32(uint32_t x) {
    x ^= x >> 16;
    x *= 0x21f0aaadu;
    x ^= x >> 15;
    x *= 0xd35a2d97u;
    x ^= x >> 15;
    return x;
}
GN_FN float gn_random(int32_t k0, int32_t k1, int64_t row, int64_t col) {
    uint32_t h = gn_mix32((uint32_t)row ^ (uint32_t)k0);
    h = gn_mix32(h ^ ((uint32_t)col * 0x9E3779B9u + (uint32_t)k1));
    return (float)(h >> 8) * 5.9604644775390625e-8f; /* 2^-24 */
}

/* ---- teams ------------------------------------------------------------------------- */
/* lanes x ways threads that work on one row: lanes have a column each, ways have the row's
 * entries by turns.  Both are powers of two. */
struct GnTeam {
    int lanes, ways, lane, way;
    int thread;    /* in the team */
    unsigned mask; /* of the team in its warp, or of all the warp */
    int64_t row, rows;
};

/* Threads side by side in a warp: lanes * ways <= 32. */
GN_FN GnTeam gn_warp_team(int lanes, int ways) {
    int size = lanes * ways, thread = (int)threadIdx.x & (size - 1);
    int first = (int)threadIdx.x & 31 & ~(size - 1);
    int64_t all = (int64_t)blockIdx.x * GN_THREADS + threadIdx.x;
    GnTeam t = {lanes, ways, thread & (lanes - 1), thread / lanes, thread, 0, 0, 0};
    t.mask = size == 32 ? 0xffffffffu : ((1u << size) - 1) << first;
    t.row = all / size;
    t.rows = (int64_t)gridDim.x * GN_THREADS / size;
    return t;
}

/* The block: what its threads do together differs from what those of a warp do, by its type. */
struct GnBlockTeam : GnTeam {};
GN_FN GnBlockTeam gn_block_team(int lanes) {
    int thread = (int)threadIdx.x;
    GnBlockTeam t;
    t.lanes = lanes;
    t.ways = GN_THREADS / lanes;
    t.lane = thread & (lanes - 1);
    t.way = thread / lanes;
    t.thread = thread;
    t.mask = 0xffffffffu;
    t.row = (int64_t)blockIdx.x;
    t.rows = (int64_t)gridDim.x;
    return t;
}

/* Threads of a team wait for each other: what they wrote may be read. */
GN_FN void gn_wait(const GnTeam &t) {
    __syncwarp(t.mask);
}
GN_FN void gn_wait(const GnBlockTeam &) {
    __syncthreads();
}

/* The reductions; x comes before y. */
struct GnSum {
    GN_METHOD float of(float x, float y) {
        return x + y;
    }
    GN_METHOD double of(double x, double y) {
        return x + y;
    }
    GN_METHOD int32_t of(int32_t x, int32_t y) {
        return gn_add(x, y);
    }
    GN_METHOD int64_t of(int64_t x, int64_t y) {
        return gn_add(x, y);
    }
    GN_METHOD bool of(bool x, bool y) {
        return x || y;
    }
};
struct GnMax {
    template <class T> GN_METHOD T of(T x, T y) {
        return y > x ? y : x;
    }
};
struct GnMin {
    template <class T> GN_METHOD T of(T x, T y) {
        return y < x ? y : x;
    }
};

template <class T> GN_FN T gn_exchange(unsigned mask, T v, int with) {
    return __shfl_xor_sync(mask, v, with);
}
GN_FN bool gn_exchange(unsigned mask, bool v, int with) {
    return __shfl_xor_sync(mask, (int)v, with) != 0;
}

/* Combines the values of threads whose numbers in the team differ in the bits from .. to / 2;
 * all of them get the same result, always combined in the same order. */
template <class R, class T> GN_FN T gn_fold(const GnTeam &t, T v, int from, int to) {
    for (int bit = from; bit < to; bit *= 2) {
        T other = gn_exchange(t.mask, v, bit);
        v = t.thread & bit ? R::of(other, v) : R::of(v, other);
    }
    return v;
}

/* Of the lanes of one way, whatever the other ways are doing. */
template <class R, class T> GN_FN T gn_fold_lanes(const GnTeam &t, T v) {
    const int first = (int)threadIdx.x & 31 & ~(t.lanes - 1);
    const unsigned mask = t.lanes == 32 ? 0xffffffffu : ((1u << t.lanes) - 1) << first;
    for (int bit = 1; bit < t.lanes; bit *= 2) {
        T other = gn_exchange(mask, v, bit);
        v = t.lane & bit ? R::of(other, v) : R::of(v, other);
    }
    return v;
}

/* The same for a block: in each warp, then warp after warp. */
template <class R, class T> GN_FN T gn_fold(const GnBlockTeam &t, T v, int from, int to) {
    __shared__ T part[GN_THREADS / 32][32];
    v = gn_fold<R>((const GnTeam &)t, v, from, to < 32 ? to : 32);
    if (to <= 32) return v;
    __syncthreads(); /* what stands there has been read */
    part[t.thread / 32][t.thread % 32] = v;
    __syncthreads();
    v = part[0][t.thread % 32];
    for (int warp = 1; warp < GN_THREADS / 32; warp++) v = R::of(v, part[warp][t.thread % 32]);
    return v;
}

/* Of the entries that a way takes at once, the one `by` behind the first; where the row ends
 * before, the first again. */
GN_FN int64_t gn_entry(int64_t first, int by, int64_t end) {
    return first + by < end ? first + by : first;
}

/* ---- parts for blocks ----------------------------------------------------------------- */
/* Of n elements, those of this block. */
struct GnPart {
    int64_t lo, hi;
};
GN_FN GnPart gn_part_of(int64_t n) {
    const int64_t step = gn_ceildiv(n, (int64_t)gridDim.x), lo = gn_min64(n, step * blockIdx.x);
    return GnPart{lo, gn_min64(n, lo + step)};
}

/* Sums up to and with each thread of the block. */
GN_FN int32_t gn_sum_up(int32_t v) {
    __shared__ int32_t warp_sum[GN_THREADS / 32];
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    for (int by = 1; by < 32; by *= 2) {
        const int32_t before = __shfl_up_sync(0xffffffffu, v, by);
        if (lane >= by) v += before;
    }
    __syncthreads(); /* what stands there has been read */
    if (lane == 31) warp_sum[warp] = v;
    __syncthreads();
    for (int w = 0; w < warp; w++) v += warp_sum[w];
    return v;
}

/* ---- hubs -------------------------------------------------------------------------- */
/* A row with more entries than so many for each way of its team waits for a block. */
GN_FN bool gn_is_hub(int64_t entries, int ways, int each) {
    return entries > (int64_t)each * ways;
}

/* Which threads of the block have a hub, as bits, and the row of each, for all of them.  Rows are
 * in shared memory: kept in registers beside a row's own numbers they made kernels spill (ptxas).
 */
struct GnHubs {
    const unsigned *set;
    const int64_t *row; /* [GN_THREADS] */
};
GN_FN GnHubs gn_hubs(bool hub, int64_t row) {
    __shared__ unsigned set[GN_THREADS / 32];
    __shared__ int64_t row_of[GN_THREADS];
    unsigned votes = __ballot_sync(0xffffffffu, hub);
    __syncthreads(); /* what stands there has been read */
    if (threadIdx.x % 32 == 0) set[threadIdx.x / 32] = votes;
    row_of[threadIdx.x] = row;
    __syncthreads();
    return GnHubs{set, row_of};
}

/* Rows of n for a block that looks for hubs: blockIdx.x, and then every step-th, one for each of
 * its threads in a round.  Neighbours are looked at by different blocks, so hubs that stand
 * together (ids sorted by degree) are taken by as many; the step is odd, as hubs may stand at
 * multiples of a power of two.  A block that looks has 32 rows or more: one barrier for few would
 * cost more than it finds. */
GN_FN int gn_hub_step(int64_t n) {
    const int s = (int)gn_min64(gridDim.x, gn_ceildiv(n, 32));
    return s > 2 ? (s - 1) | 1 : s;
}
/* The row of thread t. */
GN_FN int64_t gn_spread_row(int round, int step, int t) {
    return (int64_t)blockIdx.x + (int64_t)step * (round * GN_THREADS + t);
}
#define GN_SPREAD_ROWS(round, step, n)                                                             \
    const int step = gn_hub_step(n);                                                               \
    for (int round = 0; (int)blockIdx.x < step && gn_spread_row(round, step, 0) < (n); round++)
/* Each hub i of those that were found, one after the other. */
#define GN_HUBS(i, found)                                                                          \
    const GnHubs gn_found = (found);                                                               \
    for (int gn_word = 0; gn_word < GN_THREADS / 32; gn_word++)                                    \
        for (unsigned gn_left = gn_found.set[gn_word]; gn_left; gn_left &= gn_left - 1)            \
            for (int64_t i = gn_found.row[gn_word * 32 + __ffs((int)gn_left) - 1], gn_once = 1;    \
                 gn_once; gn_once = 0)

/* ---- rows for several blocks ---------------------------------------------------------- */
/* Longer than two parts: of two such rows one ends in a part, at most, and one begins. */
GN_FN bool gn_has_parts(int64_t entries, int64_t part) {
    return part && entries > 2 * part;
}
/* .. and are added up by the team: a row of a warp's is no hub. */
GN_FN bool gn_has_parts(const GnTeam &, int, int64_t, int64_t) {
    return false;
}
GN_FN bool gn_has_parts(const GnBlockTeam &, int, int64_t entries, int64_t part) {
    return gn_has_parts(entries, part);
}

/* What a part has of a row: entries first .. end - 1. */
struct GnRowPart {
    int64_t row, first, end, slot;
};

/* A block that has a part of a row, for what the row's own block finds in its place: it goes
 * through the part's entries once, for loop number `loop` over the row's, leaves their sums in
 * `room`, and does nothing else for the row. Sums of the loops before are there already. */
struct GnPartTeam : GnBlockTeam {
    GnRowPart at;
    int loop;
    float *room;
};
GN_FN GnPartTeam gn_part_team(int lanes, const GnRowPart &at, int loop, float *room) {
    GnPartTeam t;
    static_cast<GnBlockTeam &>(t) = gn_block_team(lanes);
    t.at = at;
    t.loop = loop;
    t.room = room;
    return t;
}
GN_FN bool gn_has_parts(const GnPartTeam &t, int loop, int64_t, int64_t) {
    return loop < t.loop;
}

/* Of a row's entries, those of the team: bounds of all are given. */
GN_FN int64_t gn_first(const GnTeam &, int64_t first) {
    return first;
}
GN_FN int64_t gn_first(const GnPartTeam &t, int64_t) {
    return t.at.first;
}
GN_FN int64_t gn_end(const GnTeam &, int64_t end) {
    return end;
}
GN_FN int64_t gn_end(const GnPartTeam &t, int64_t) {
    return t.at.end;
}

/* Which part of all it has. */
GN_FN int64_t gn_slot(const GnTeam &) {
    return 0;
}
GN_FN int64_t gn_slot(const GnPartTeam &t) {
    return t.at.slot;
}
/* A sum of the part, for place i. */
GN_FN void gn_leave(const GnTeam &, int, int64_t, float) {
}
GN_FN void gn_leave(const GnPartTeam &t, int loop, int64_t i, float v) {
    if (t.way == 0 && loop == t.loop) t.room[i] = v;
}
/* What the row stores, and what comes behind the loop, is its own block's. */
GN_FN bool gn_is_part(const GnTeam &) {
    return false;
}
GN_FN bool gn_is_part(const GnPartTeam &) {
    return true;
}
GN_FN bool gn_is_part(const GnTeam &, int) {
    return false;
}
GN_FN bool gn_is_part(const GnPartTeam &t, int loop) {
    return loop == t.loop;
}

/* The row that has entry i. */
GN_FN int64_t gn_row_of(const int64_t *ptr, int64_t rows, int64_t i) {
    int64_t lo = 0, hi = rows; /* ptr[lo] <= i < ptr[hi] */
    while (hi - lo > 1) {
        const int64_t mid = lo + (hi - lo) / 2;
        if (ptr[mid] <= i)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}
/* The same of one entry for all lanes of a warp, which look at 32 rows at a time: a search that
 * waits for memory a fifth as often. */
GN_FN int64_t gn_row_of_all(const int64_t *ptr, int64_t rows, int64_t i) {
    int64_t lo = 0, hi = rows;
    while (hi - lo > 1) {
        const int64_t step = gn_ceildiv(hi - lo, 32), at = lo + step * (threadIdx.x % 32);
        const unsigned below = __ballot_sync(0xffffffffu, at < hi && ptr[at] <= i);
        lo += step * (__popc(below) - 1);
        hi = gn_min64(hi, lo + step);
    }
    return lo;
}

/* Of part i: side 0 is the row of its first entry, side 1 that of its last one, where it is
 * another.  first == end: it is not a row that has parts. */
GN_FN GnRowPart gn_part_at(const int64_t *ptr, int64_t rows, int64_t part, int64_t i, int side) {
    GnRowPart p = {0, 0, 0, 0};
    const int64_t lo = i * part, hi = gn_min64(lo + part, rows > 0 ? ptr[rows] : 0);
    if (lo >= hi) return p;
    const int64_t row = gn_row_of_all(ptr, rows, side ? hi - 1 : lo), begin = ptr[row];
    if ((side && begin <= lo) || !gn_has_parts(ptr[row + 1] - begin, part)) return p;
    p.row = row;
    p.first = gn_max64(begin, lo);
    p.end = gn_min64(ptr[row + 1], hi);
    p.slot = 2 * i + (begin >= lo);
    return p;
}

/* Each part of all entries that is of a long row, and each of that row's heads. */
#define GN_PARTS(at, head, heads, ptr, rows, part)                                                 \
    for (int64_t gn_q = blockIdx.x; gn_q / (heads) * (part) < ((rows) > 0 ? (ptr)[rows] : 0);      \
         gn_q += gridDim.x)                                                                        \
        for (int64_t gn_side = 0, head = gn_q % (heads); gn_side < 2; gn_side++)                   \
            for (GnRowPart at = gn_part_at(ptr, rows, part, gn_q / (heads), (int)gn_side);         \
                 at.first < at.end; at.end = at.first)

/* Of own rows; the first part may have a row before them. */
#define GN_OWN_PARTS(at, head, heads, ptr, own, rows, part)                                        \
    for (int64_t gn_from_row = own.first / (heads),                                                \
                 gn_end = (rows) > gn_from_row ? (ptr)[rows] : 0,                                  \
                 gn_q = blockIdx.x + (gn_end ? (ptr)[gn_from_row] / (part) * (heads) : 0);         \
         gn_q / (heads) * (part) < gn_end; gn_q += gridDim.x)                                      \
        for (int64_t gn_side = 0, head = gn_q % (heads); gn_side < 2; gn_side++)                   \
            for (GnRowPart at = gn_part_at(ptr, rows, part, gn_q / (heads), (int)gn_side);         \
                 at.first < at.end; at.end = at.first)

/* Slots of the parts of a row's entries first .. end - 1, by turns: those of number `from` among so
 * many (`step`). */
#define GN_PARTS_OF(slot, first, end, part, from, step)                                            \
    for (int64_t gn_from_part = (first) / (part), gn_p = gn_from_part + (from),                    \
                 gn_to_part = ((end) - 1) / (part), slot = 2 * gn_p + ((from) == 0);               \
         gn_p <= gn_to_part; gn_p += (step), slot = 2 * gn_p)

/* ---- sums in pieces ------------------------------------------------------------------- */
/* Memory of n elements, from *at on, for pieces of sums that one stage of a kernel leaves to the
 * next; where they are no more than the sums, these themselves. */
static inline void *gn_room_for(void *sums, int64_t n_sums, char **at, int64_t n, size_t size) {
    char *room = *at;
    if (n == n_sums) return sums;
    *at += gn_ceildiv(n * (int64_t)size, RT_DEVICE_ROOM_ALIGN) * RT_DEVICE_ROOM_ALIGN;
    return room;
}

/* ---- rows and launches ------------------------------------------------------------- */
/* Row i of n to each thread, striding over the grid. */
#define GN_ROWS(i, n)                                                                              \
    for (int64_t i = (int64_t)blockIdx.x * GN_THREADS + threadIdx.x; i < (n);                      \
         i += (int64_t)gridDim.x * GN_THREADS)
/* To each team. */
#define GN_TEAM_ROWS(i, n, t) for (int64_t i = t.row; i < (n); i += t.rows)
/* Of rows that processes share, the own ones: iterations `first` up to the launch's extent,
 * `per_row` for each row.  Where some wait for rows of other processes, `needs` has a byte for each
 * own row, and `pass` says which are done: 1 those that need nothing, 2 those that do; 0 all. */
struct GnOwn {
    int64_t first, per_row;
    const unsigned char *needs;
    int pass;
};
/* *extent: of all rows; it becomes the end of the own ones. */
static inline GnOwn gn_own_rows(const RtOwnRows *of, int64_t *extent) {
    const int64_t per_row = of->rows > 0 ? *extent / of->rows : 0;
    *extent = of->hi * per_row;
    return GnOwn{of->lo * per_row, per_row, of->needs, of->pass};
}
GN_FN bool gn_is_other(const GnOwn &own, int64_t i) {
    return own.pass && (own.needs[(i - own.first) / own.per_row] != 0) != (own.pass == 2);
}
#define GN_OWN_ROWS(i, own, n)                                                                     \
    for (int64_t i = own.first + (int64_t)blockIdx.x * GN_THREADS + threadIdx.x; i < (n);          \
         i += (int64_t)gridDim.x * GN_THREADS)
#define GN_OWN_TEAM_ROWS(i, own, n, t) for (int64_t i = own.first + t.row; i < (n); i += t.rows)
/* Once. */
#define GN_SERIAL(n) if (n && blockIdx.x == 0 && threadIdx.x == 0)

enum { GN_BLOCKS_MAX = 1 << 16 };

/* For rows behind a batch's own, of which the host does not know how many there are. */
enum { GN_TAIL_BLOCKS = 64 };

/* The least power of two that is not below n, but at most `most`. */
static inline int gn_power_of_2(int64_t n, int most) {
    int p = 1;
    while (p < n && p < most) p *= 2;
    return p;
}

/* Threads among which the entries of a row are dealt: at least two entries for each, and the
 * team stays in its warp. */
static inline int gn_ways_for(int64_t entries, int lanes) {
    int ways = 1;
    while (ways * lanes < 32 && ways * 4 <= entries) ways *= 2;
    return ways;
}

template <class K> int gn_launch(K *kernel, int64_t threads, void **args, void *stream) {
    if (threads <= 0) return 0;
    int64_t blocks = gn_min64(gn_ceildiv(threads, GN_THREADS), GN_BLOCKS_MAX);
    return (int)cudaLaunchKernel(kernel, dim3((unsigned)blocks), dim3(GN_THREADS), args, 0,
                                 (cudaStream_t)stream);
}

/* ---- kernels of one form in one launch ------------------------------------------------ */
/* What is to be launched: n kernels, each a row of the grid (blockIdx.y) with as many blocks as
 * that with most, and so many numbers of memory for parts of long rows. */
struct GnGroup {
    int n;
    int64_t blocks, part_blocks, numbers;
};
/* Whether there is memory for so many numbers more; one kernel alone always has it. */
static inline bool gn_has_room(const GnGroup &g, int64_t numbers) {
    return !g.n || (g.numbers + numbers) * (int64_t)sizeof(float) <= RT_DEVICE_ROOM_BYTES;
}
static inline void gn_add_to_group(GnGroup *g, int64_t threads, int64_t part_blocks,
                                   int64_t numbers) {
    g->n++;
    g->blocks = gn_max64(g->blocks, gn_min64(gn_ceildiv(threads, GN_THREADS), GN_BLOCKS_MAX));
    g->part_blocks = gn_max64(g->part_blocks, gn_min64(part_blocks, GN_BLOCKS_MAX));
    g->numbers += numbers;
}
/* .. the kernels that take parts of long rows, once for each loop over a row's entries; */
template <class K, class T>
int gn_launch_parts(const GnGroup &g, T *all, K *kernel, int loops, void *stream) {
    int error = 0;
    const dim3 blocks((unsigned)g.part_blocks, (unsigned)g.n);
    for (int loop = 0; loop < loops && g.part_blocks && !error; loop++) {
        void *args[] = {all, &loop};
        error =
            (int)cudaLaunchKernel(kernel, blocks, dim3(GN_THREADS), args, 0, (cudaStream_t)stream);
    }
    return error;
}
/* .. and the kernels themselves. Then nothing is to be launched any more. */
template <class K, class T> int gn_launch_group(GnGroup *g, T *all, K *kernel, void *stream) {
    void *args[] = {all};
    const dim3 blocks((unsigned)g->blocks, (unsigned)g->n);
    const bool any = g->blocks > 0;
    *g = GnGroup{0, 0, 0, 0};
    if (!any) return 0;
    return (int)cudaLaunchKernel(kernel, blocks, dim3(GN_THREADS), args, 0, (cudaStream_t)stream);
}

#endif
