/* The parallel loops of a compiled program: the only place where threads meet kernels.
 *
 * A kernel is a function of a range of rows and computes each row alone, so any cut of
 * the range gives the same bits.  Each thread gets one run of consecutive chunks and
 * calls the kernel once: no queue, no atomics, and its rows stay in its cache from one
 * kernel to the next.  Chunk bounds depend on sizes alone (equal rows, or equal entries
 * of a map), whatever the team's size.  Within a block of rows the cut is finer. */
#include "exec.h"

#include <stdatomic.h>

#include "blocks.h"
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
    int64_t first, extent, n_chunks;
    const int64_t *ptr; /* in a block: the segments of its rows, cut by entries; or NULL */
    atomic_llong next;  /* in a block: the chunk that nobody has taken yet */
} Loop;

static int64_t chunk_bound(const Loop *l, int64_t c) {
    if (l->at) return l->at[c];
    if (!l->ptr) return l->first + bound(l->extent, l->n_chunks, c);
    int64_t lo = l->first, hi = lo + l->extent;
    int64_t work = l->ptr[hi] - l->ptr[lo] + l->extent;
    int64_t before = work / l->n_chunks * c + work % l->n_chunks * c / l->n_chunks;
    return c >= l->n_chunks ? hi : rt_row_at(l->ptr, lo, hi, l->ptr[lo] + lo + before);
}

static void run_chunks(void *arg, int member, int n_members) {
    const Loop *l = arg;
    int64_t since = rt_profile_share_begin(l->x);
    int64_t lo = chunk_bound(l, l->n_chunks * member / n_members);
    int64_t hi = chunk_bound(l, l->n_chunks * (member + 1) / n_members);
    if (lo < hi) l->kernel(l->arg, l->n, lo, hi);
    rt_profile_share_end(l->x, member, since);
}

/* A block is short and ends with all threads waiting for the last, so they share it as they go. */
static void take_chunks(void *arg, int member, int n_members) {
    (void)n_members;
    Loop *l = arg;
    int64_t since = rt_profile_share_begin(l->x);
    for (int64_t c; (c = atomic_fetch_add(&l->next, 1)) < l->n_chunks;) {
        int64_t lo = chunk_bound(l, c), hi = chunk_bound(l, c + 1);
        if (lo < hi) l->kernel(l->arg, l->n, lo, hi);
    }
    rt_profile_share_end(l->x, member, since);
}

/* Iterations [lo, hi) of a parallel loop. */
static void launch(RtExec *x, rt_kernel *k, void *const *arg, int64_t lo, int64_t hi) {
    if (rt_step_first(x)) x->rt->count.launches++;
    int64_t extent = hi - lo, n_chunks = extent < RT_CHUNKS ? extent : RT_CHUNKS;
    if (n_chunks <= 1) {
        if (extent != 0) k(arg, x->n, lo, hi);
        return;
    }
    Loop l = {x, k, arg, x->n, NULL, lo, extent, n_chunks, NULL, 0};
    rt_team_run(rt_step_team(x), run_chunks, &l);
}

/* In a block, as many iterations per row as the loop has of all rows. */
void rt_launch(RtExec *x, rt_kernel *k, void *const *arg, int64_t extent) {
    const RtBlocks *b = &x->rt->blocks;
    int64_t per_row = b->on && b->rows > 0 ? extent / b->rows : 0;
    if (b->on)
        launch(x, k, arg, b->lo * per_row, b->hi * per_row);
    else
        launch(x, k, arg, 0, extent);
}

void rt_launch_chunks(RtExec *x, rt_kernel *k, void *const *arg, int64_t n_chunks) {
    const RtBlocks *b = &x->rt->blocks;
    int64_t lo = b->i * RT_BLOCK_CHUNKS, hi = lo + RT_BLOCK_CHUNKS;
    if (b->on)
        launch(x, k, arg, lo, hi < n_chunks ? hi : n_chunks);
    else
        launch(x, k, arg, 0, n_chunks);
}

void rt_launch_balanced(RtExec *x, rt_kernel *k, void *const *arg, int map) {
    const RtBlocks *b = &x->rt->blocks;
    Loop l = {x, k, arg, x->n, x->balance[map], 0, 0, RT_CHUNKS, NULL, 0};
    if (rt_step_first(x)) x->rt->count.launches++;
    if (!b->on) {
        rt_team_run(rt_step_team(x), run_chunks, &l);
        return;
    }
    l.at = NULL;
    l.ptr = x->buf[x->program->maps[map].ptr_buf];
    l.first = b->lo;
    l.extent = b->hi - b->lo;
    atomic_init(&l.next, 0);
    rt_team_run(rt_step_team(x), take_chunks, &l);
}
