/* The parallel loops of a compiled program: the only place where threads meet kernels.
 *
 * A kernel is a function of a range of rows and computes each row alone, so any cut of
 * the range gives the same bits.  Each thread gets one run of consecutive chunks and
 * calls the kernel once: no queue, no atomics, and its rows stay in its cache from one
 * kernel to the next.  Chunk bounds depend on sizes alone (equal rows, or equal entries
 * of a map), whatever the team OpenMP grants. */
#include "exec.h"

#include <omp.h>

enum { CHUNK_ALIGN = 16 /* rows: a cache line of f32, a vector */ };

/* Bounds of chunk c of a plain loop; whole multiples of CHUNK_ALIGN where there are plenty of rows.
 */
static int64_t bound(int64_t extent, int64_t n_chunks, int64_t c) {
    if (c >= n_chunks) return extent;
    int64_t at = extent / n_chunks * c + extent % n_chunks * c / n_chunks;
    return extent >= CHUNK_ALIGN * n_chunks ? at / CHUNK_ALIGN * CHUNK_ALIGN : at;
}

void rt_launch(RtExec *x, rt_kernel *k, void *const *arg, int64_t extent) {
    x->rt->count.launches++;
    const int64_t *n = x->n;
    int64_t n_chunks = extent < RT_CHUNKS ? extent : RT_CHUNKS;
    if (extent < 0 || x->threads <= 1 || n_chunks <= 1) {
        if (extent != 0) k(arg, n, 0, extent);
        return;
    }
#pragma omp parallel num_threads(x->threads)
    {
        int64_t t = omp_get_thread_num(), team = omp_get_num_threads();
        int64_t lo = bound(extent, n_chunks, n_chunks * t / team);
        int64_t hi = bound(extent, n_chunks, n_chunks * (t + 1) / team);
        if (lo < hi) k(arg, n, lo, hi);
    }
}

void rt_launch_balanced(RtExec *x, rt_kernel *k, void *const *arg, int map) {
    x->rt->count.launches++;
    const int64_t *at = x->balance[map], *n = x->n;
    if (x->threads <= 1) {
        if (at[0] < at[RT_CHUNKS]) k(arg, n, at[0], at[RT_CHUNKS]);
        return;
    }
#pragma omp parallel num_threads(x->threads)
    {
        int t = omp_get_thread_num(), team = omp_get_num_threads();
        int64_t lo = at[RT_CHUNKS * t / team], hi = at[RT_CHUNKS * (t + 1) / team];
        if (lo < hi) k(arg, n, lo, hi);
    }
}
