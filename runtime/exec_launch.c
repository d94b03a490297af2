/* The parallel loops of a compiled program: the only place where threads meet kernels.
 *
 * A kernel is a function of a range of rows and computes each row alone, so any cut of
 * the range gives the same bits.  Each thread gets one run of consecutive chunks and
 * calls the kernel once: no queue, no atomics, and its rows stay in its cache from one
 * kernel to the next.  Chunk bounds depend on sizes alone (equal rows, or equal entries
 * of a map), whatever the team's size. */
#include "exec.h"
#include "profile.h"

enum { CHUNK_ALIGN = 16 /* rows: a cache line of f32, a vector */ };

/* Bounds of chunk c of a plain loop; whole multiples of CHUNK_ALIGN where there are plenty of rows.
 */
static int64_t bound(int64_t extent, int64_t n_chunks, int64_t c) {
    if (c >= n_chunks) return extent;
    int64_t at = extent / n_chunks * c + extent % n_chunks * c / n_chunks;
    return extent >= CHUNK_ALIGN * n_chunks ? at / CHUNK_ALIGN * CHUNK_ALIGN : at;
}

typedef struct {
    RtExec *x;
    rt_kernel *kernel;
    void *const *arg;
    const int64_t *n, *at; /* at: bounds of RT_CHUNKS chunks, or NULL: equal rows */
    int64_t extent, n_chunks;
} Loop;

static int64_t chunk_bound(const Loop *l, int64_t c) {
    return l->at ? l->at[c] : bound(l->extent, l->n_chunks, c);
}

static void run_chunks(void *arg, int member, int n_members) {
    const Loop *l = arg;
    int64_t since = rt_profile_share_begin(l->x);
    int64_t lo = chunk_bound(l, l->n_chunks * member / n_members);
    int64_t hi = chunk_bound(l, l->n_chunks * (member + 1) / n_members);
    if (lo < hi) l->kernel(l->arg, l->n, lo, hi);
    rt_profile_share_end(l->x, member, since);
}

void rt_launch(RtExec *x, rt_kernel *k, void *const *arg, int64_t extent) {
    x->rt->count.launches++;
    int64_t n_chunks = extent < RT_CHUNKS ? extent : RT_CHUNKS;
    if (extent < 0 || n_chunks <= 1) {
        if (extent != 0) k(arg, x->n, 0, extent);
        return;
    }
    Loop l = {x, k, arg, x->n, NULL, extent, n_chunks};
    rt_team_run(rt_step_team(x), run_chunks, &l);
}

void rt_launch_balanced(RtExec *x, rt_kernel *k, void *const *arg, int map) {
    x->rt->count.launches++;
    Loop l = {x, k, arg, x->n, x->balance[map], 0, RT_CHUNKS};
    rt_team_run(rt_step_team(x), run_chunks, &l);
}
