/* The simulator's own test: that the mistakes it is there for show.
 *
 *     self CASE    right: results are those of any order of threads, for 40 seeds; logarithms of
 *                  random numbers, by which edges are weighed, are the host's bits; each hub is one
 *                  block's, and hubs that stand together are taken by different blocks
 *                  barrier, warp: a missing barrier, of the block or of a warp, changes results
 *                  some, outside: ends with a message
 */
#include "cuda/sample_pick.h"
#include "runtime/sample/sample_key.h"

#include <stdio.h>
#include <string.h>

enum { N = 96, BLOCKS = 3, SEEDS = 40 };

/* Each thread gives its neighbour a number through shared memory. */
__global__ void turn_round(int *out, int with_barrier) {
    __shared__ int room[N];
    int t = (int)threadIdx.x;
    room[t] = -1;
    __syncthreads();
    room[t] = t + 1000 * (int)blockIdx.x;
    if (with_barrier) __syncthreads();
    out[(int)blockIdx.x * N + t] = room[(t + 1) % N];
    __syncthreads();
}

/* The same within a warp. */
__global__ void turn_warp(int *out, int with_barrier) {
    __shared__ int room[N];
    int t = (int)threadIdx.x, warp = t / 32 * 32;
    room[t] = -1;
    __syncwarp();
    room[t] = t;
    if (with_barrier) __syncwarp();
    out[(int)blockIdx.x * N + t] = room[warp + (t + 1) % 32];
}

/* Lanes meet under one mask after another, of which some overlap: who is slow still reads what its
 * own mask gave. */
__global__ void meet(int *out) {
    int t = (int)threadIdx.x, lane = t % 32, v = t, sum = 0;
    for (int by = 16; by; by /= 2) v += __shfl_xor_sync(0xffffffffu, v, by); /* of the warp */
    unsigned half = lane < 16 ? 0xffffu : 0xffff0000u, pair = 3u << lane / 2 * 2;
    int of_half = __shfl_sync(half, t, 5, 16);
    int of_pair = __shfl_xor_sync(pair, of_half + t, 1);
    sum = v + of_half + of_pair;
    if (lane % 2 == 0) { /* half of them meet once more, the others go on */
        unsigned even = 0x55555555u;
        sum += __popc(__ballot_sync(even, lane < 8));
        sum += __shfl_sync(even, sum, 4);
    }
    out[(int)blockIdx.x * N + t] = sum + __shfl_up_sync(0xffffffffu, t, 1);
}

__global__ void some_wait(int *out) {
    out[threadIdx.x] = 1;
    if (threadIdx.x % 2)
        __syncthreads();
    else
        __syncwarp(0x55555555u);
    if (threadIdx.x == 0) __syncwarp(3u);
}

__global__ void reads_outside(int *out) {
    if (threadIdx.x < 16) out[threadIdx.x] = __shfl_sync(0xffffu, 1, 20);
}

/* 0, or what CUDA calls went wrong. */
template <class... P> static int run(void (*kernel)(int *, P...), int *host, P... more) {
    int *out = NULL, bad = 0;
    cudaStream_t stream;
    bad |= cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    bad |= cudaMalloc((void **)&out, BLOCKS * N * sizeof *out);
    void *args[] = {&out, &more...};
    bad |= cudaLaunchKernel(kernel, dim3(BLOCKS), dim3(N), args, 0, stream);
    bad |= cudaMemcpyAsync(host, out, BLOCKS * N * sizeof *out, cudaMemcpyDeviceToHost, stream);
    bad |= cudaStreamSynchronize(stream);
    cudaFree(out);
    cudaStreamDestroy(stream);
    return bad;
}

/* How many of the numbers are not those wanted? */
static int wrong_meetings(const int *got) {
    int wrong = 0;
    for (int i = 0; i < BLOCKS * N; i++) {
        int t = i % N, lane = t % 32, first = t - lane, half = first + lane / 16 * 16 + 5;
        int warp = 32 * first + 31 * 16;
        int sum = warp + half + half + (t ^ 1);
        int four = warp + 2 * (first + 5) + (first + 5); /* of lane 4, before they meet once more */
        if (lane % 2 == 0) sum += 4 + four + 4;
        sum += lane ? t - 1 : t;
        wrong += got[i] != sum;
    }
    return wrong;
}

static int wrong_neighbours(const int *got, int of_warp) {
    int wrong = 0;
    for (int i = 0; i < BLOCKS * N; i++) {
        int t = i % N, want = of_warp ? t / 32 * 32 + (t + 1) % 32 : (t + 1) % N + i / N * 1000;
        wrong += got[i] != want;
    }
    return wrong;
}

static int wrong_logarithms(void) {
    int wrong = 0;
    for (int64_t i = 0; i < 100000; i++) {
        const double u = i < 54 ? ldexp(1, -(int)i % 54) : rt_draw_real(7, (uint64_t)i);
        const double here = rt_neg_log(u), there = gn_neg_log(u);
        wrong += memcmp(&here, &there, sizeof here) != 0;
    }
    return wrong;
}

/* Of n rows every apart-th is a hub, so many: which block takes each, from 1 on, or -1 where two
 * threads do. */
__global__ void take_hubs(int *taken, int64_t n, int64_t hubs, int64_t apart) {
    GN_SPREAD_ROWS(round, step, n) {
        const int64_t row = gn_spread_row(round, step, (int)threadIdx.x);
        GN_HUBS(i, gn_hubs(row < n && row % apart == 0 && row / apart < hubs, row)) {
            if (threadIdx.x == 0) taken[i] = taken[i] ? -1 : 1 + (int)blockIdx.x;
        }
    }
}

/* Blocks that look take equally many, whether hubs stand together or at multiples of a power of
 * two. */
static int wrong_hubs(int64_t n, int64_t hubs, int64_t apart, unsigned blocks) {
    enum { MOST = 20000 };
    static int taken[MOST], of_block[MOST + 1];
    int *out = NULL, wrong = 0;
    cudaMalloc((void **)&out, MOST * sizeof *out);
    cudaMemsetAsync(out, 0, MOST * sizeof *out, 0);
    void *args[] = {&out, &n, &hubs, &apart};
    wrong += cudaLaunchKernel(take_hubs, dim3(blocks), dim3(GN_THREADS), args, 0, 0) != cudaSuccess;
    cudaMemcpyAsync(taken, out, MOST * sizeof *out, cudaMemcpyDeviceToHost, 0);
    wrong += cudaStreamSynchronize(0) != cudaSuccess;
    cudaFree(out);
    memset(of_block, 0, sizeof of_block);
    for (int64_t i = 0; i < MOST; i++) {
        const bool hub = i < n && i % apart == 0 && i / apart < hubs;
        wrong += hub ? taken[i] <= 0 : taken[i] != 0;
        if (hub && taken[i] > 0) of_block[taken[i]]++;
    }
    int64_t looking = gn_min64(blocks, gn_ceildiv(n, 32));
    if (looking > 2) looking = (looking - 1) | 1;
    for (int64_t b = 0; b <= MOST; b++) wrong += of_block[b] > gn_ceildiv(hubs, looking);
    return wrong;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    static int out[BLOCKS * N];
    int right = strcmp(what, "right") == 0, wrong = right ? wrong_logarithms() : 0;
    if (strcmp(what, "some") == 0) return run(some_wait, out);
    if (strcmp(what, "outside") == 0) return run(reads_outside, out);
    if (right) {
        wrong += wrong_hubs(1, 1, 1, 1) + wrong_hubs(33, 33, 1, 2) + wrong_hubs(1000, 40, 1, 125);
        wrong += wrong_hubs(20000, 700, 1, 2500) + wrong_hubs(20000, 64, 1, 3) +
                 wrong_hubs(20000, 0, 1, 80);
        wrong += wrong_hubs(16384, 256, 64, 512) + wrong_hubs(20000, 19, 1024, 256);
    }
    for (int seed = 1; seed <= SEEDS; seed++) {
        cudasim_seed((uint64_t)seed);
        if (right || strcmp(what, "barrier") == 0) {
            if (run(turn_round, out, right)) return 2;
            wrong += wrong_neighbours(out, 0);
        }
        if (right || strcmp(what, "warp") == 0) {
            if (run(turn_warp, out, right)) return 2;
            wrong += wrong_neighbours(out, 1);
        }
        if (right) {
            if (run(meet, out)) return 2;
            wrong += wrong_meetings(out);
        }
    }
    printf("%d wrong\n", wrong);
    return right ? wrong != 0 : wrong == 0;
}
