/* The parallel loops of a compiled program: the only place where threads meet kernels.
 *
 * A kernel is a function of a range of rows and computes each row alone, so any cut of
 * the range gives the same bits.  Each thread gets one run of consecutive chunks and
 * calls the kernel once: no queue, no atomics, and its rows stay in its cache from one
 * kernel to the next.  Chunk bounds depend on sizes alone (equal rows, or equal entries
 * of maps), whatever the team's size.  Within a block of rows the cut is finer. */
#include "exec.h"

#include <stdatomic.h>

#include "beside.h"
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
    const int64_t *ptr[RT_BALANCE_MAX]; /* the segments of the rows, cut by entries */
    int n_ptr;
    atomic_llong next; /* in a block: the chunk that nobody has taken yet */
} Loop;

/* The row at which chunk c of the loop begins: chunks have equal numbers of rows, or of rows and
 * entries together where the loop is balanced, or are those that the caller gave. */
static int64_t chunk_bound(const Loop *l, int64_t c) {
    if (l->at) return l->at[c];
    if (!l->n_ptr) return l->first + bound(l->extent, l->n_chunks, c);
    int64_t lo = l->first, hi = lo + l->extent, start = rt_work_before(l->ptr, l->n_ptr, lo);
    int64_t work = rt_work_before(l->ptr, l->n_ptr, hi) - start;
    int64_t before = work / l->n_chunks * c + work % l->n_chunks * c / l->n_chunks;
    return c >= l->n_chunks ? hi : rt_row_at(l->ptr, l->n_ptr, lo, hi, start + before);
}

/* What each thread of the team does: runs the kernel on its share of the chunks. */
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

/* Runs iterations [lo, hi) of a kernel's parallel loop, cut into chunks for the team's threads. */
static void launch(RtExec *x, rt_kernel *k, void *const *arg, int64_t lo, int64_t hi) {
    if (rt_step_first(x)) x->rt->count.launches++;
    int64_t extent = hi - lo, n_chunks = extent < RT_CHUNKS ? extent : RT_CHUNKS;
    if (n_chunks <= 1) {
        if (extent != 0) k(arg, x->n, lo, hi);
        return;
    }
    Loop l = {.x = x, .kernel = k, .arg = arg, .n = x->n};
    l.first = lo;
    l.extent = extent;
    l.n_chunks = n_chunks;
    rt_team_run(rt_step_team(x), run_chunks, &l);
}

/* Notes the segment bounds of the maps over which a kernel loops: by them its rows are dealt to
 * threads. */
static void take_maps(Loop *l, int n_maps, const int *map) {
    const RtExec *x = l->x;
    l->n_ptr = n_maps < RT_BALANCE_MAX ? n_maps : RT_BALANCE_MAX;
    for (int i = 0; i < l->n_ptr; i++) l->ptr[i] = x->buf[x->program->maps[map[i]].ptr_buf];
}

/* Runs a kernel whose parallel loop has `extent` iterations; in a loop over blocks only those of
 * the block's rows, extent / rows for each. */
void rt_launch(RtExec *x, rt_kernel *k, void *const *arg, int64_t extent) {
    const RtBlocks *b = &x->rt->blocks;
    int64_t per_row = b->on && b->rows > 0 ? extent / b->rows : 0;
    if (b->on)
        launch(x, k, arg, b->lo * per_row, b->hi * per_row);
    else
        launch(x, k, arg, 0, extent);
}

/* Runs a kernel whose parallel loop counts chunks of rows; in a loop over blocks only those of the
 * block. */
void rt_launch_chunks(RtExec *x, rt_kernel *k, void *const *arg, int64_t n_chunks) {
    const RtBlocks *b = &x->rt->blocks;
    int64_t many = rt_block_chunks(b->rows), lo = b->i * many, hi = lo + many;
    if (b->on)
        launch(x, k, arg, lo, hi < n_chunks ? hi : n_chunks);
    else
        launch(x, k, arg, 0, n_chunks);
}

/* Runs a kernel for the rows of a space that this process owns; for all where there is one process.
 */
void rt_launch_own(RtExec *x, int space, rt_kernel *k, void *const *arg, int64_t extent, int n_maps,
                   const int *map) {
    int64_t rows = rt_size(x->program, x->n, space), per_row = rows > 0 ? extent / rows : 0;
    if (!rt_dist_several(x)) {
        n_maps ? rt_launch_balanced(x, k, arg, n_maps, map) : launch(x, k, arg, 0, extent);
        return;
    }
    RtRange own = rt_dist_rows(x, space, x->rt->dist->rank);
    if (rt_beside_pending(x)) {
        rt_beside_launch(x, own, k, arg, n_maps ? 1 : per_row);
        return;
    }
    if (!n_maps) {
        launch(x, k, arg, own.lo * per_row, own.hi * per_row);
        return;
    }
    Loop l = {.x = x, .kernel = k, .arg = arg, .n = x->n, .n_chunks = RT_CHUNKS};
    x->rt->count.launches++;
    take_maps(&l, n_maps, map);
    l.first = own.lo;
    l.extent = own.hi - own.lo;
    rt_team_run(rt_step_team(x), run_chunks, &l);
}

void rt_launch_own_cuts(RtExec *x, int space, rt_kernel *k, void *const *arg) {
    RtRange own = {0, RT_SUM_CHUNKS};
    (void)space;
    if (rt_dist_several(x)) own = rt_dist_chunks(x->rt->dist, x->rt->dist->rank);
    launch(x, k, arg, own.lo, own.hi);
}

/* One map's chunks are known since data were loaded; several maps' are found by the threads, each
 * for its own rows. */
void rt_launch_balanced(RtExec *x, rt_kernel *k, void *const *arg, int n_maps, const int *map) {
    const RtBlocks *b = &x->rt->blocks;
    const rt_program *p = x->program;
    Loop l = {.x = x, .kernel = k, .arg = arg, .n = x->n, .n_chunks = RT_CHUNKS};
    if (rt_step_first(x)) x->rt->count.launches++;
    if (n_maps == 1 && !b->on) {
        l.at = x->balance[map[0]];
        rt_team_run(rt_step_team(x), run_chunks, &l);
        return;
    }
    take_maps(&l, n_maps, map);
    l.first = b->on ? b->lo : 0;
    l.extent = b->on ? b->hi - b->lo : rt_map_rows(p, x->n, map[0]);
    atomic_init(&l.next, 0);
    rt_team_run(rt_step_team(x), b->on ? take_chunks : run_chunks, &l);
}
