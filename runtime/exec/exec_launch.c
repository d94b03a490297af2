/* The parallel loops of a compiled program: the only place where threads meet kernels.
 *
 * A kernel is a function of a range of rows and computes each row alone, so any cut of
 * the range gives the same bits.  Each thread gets one run of consecutive rows and
 * calls the kernel once: no queue, no atomics, and its rows stay in its cache from one
 * kernel to the next.  Shares have equal rows, or equal entries of maps (bind/sizes.c).
 * Within a block of rows the cut is finer. */
#include "exec.h"

#include <stdatomic.h>

#include "beside.h"
#include "blocks.h"
#include "profile.h"

enum { BLOCK_CHUNKS = 64 /* of a block, which threads take as they go */ };

typedef struct {
    RtExec *x;
    rt_kernel *kernel;
    void *const *arg;
    const int64_t *n;
    RtCut cut;
    atomic_llong next; /* in a block: the chunk that nobody has taken yet */
} Loop;

/* What each thread of the team does: runs the kernel on its share of the rows. */
static void run_share(void *arg, int member, int n_members) {
    const Loop *l = arg;
    int64_t since = rt_profile_share_begin(l->x);
    int64_t lo = rt_cut_bound(&l->cut, member, n_members);
    int64_t hi = rt_cut_bound(&l->cut, member + 1, n_members);
    if (lo < hi) l->kernel(l->arg, l->n, lo, hi);
    rt_profile_share_end(l->x, member, since);
}

/* A block is short and ends with all threads waiting for the last, so they share it as they go. */
static void take_chunks(void *arg, int member, int n_members) {
    (void)n_members;
    Loop *l = arg;
    int64_t since = rt_profile_share_begin(l->x);
    for (int64_t c; (c = atomic_fetch_add(&l->next, 1)) < BLOCK_CHUNKS;) {
        int64_t lo = rt_cut_bound(&l->cut, c, BLOCK_CHUNKS);
        int64_t hi = rt_cut_bound(&l->cut, c + 1, BLOCK_CHUNKS);
        if (lo < hi) l->kernel(l->arg, l->n, lo, hi);
    }
    rt_profile_share_end(l->x, member, since);
}

/* Runs iterations [lo, hi) of a kernel's parallel loop, cut into equal shares for the team's
 * threads. */
static void launch(RtExec *x, rt_kernel *k, void *const *arg, int64_t lo, int64_t hi) {
    if (rt_step_first(x)) x->rt->count.launches++;
    if (hi - lo <= 1) {
        if (hi != lo) k(arg, x->n, lo, hi);
        return;
    }
    Loop l = {.x = x, .kernel = k, .arg = arg, .n = x->n, .cut = {.first = lo, .extent = hi - lo}};
    rt_team_run(rt_step_team(x), run_share, &l);
}

/* Notes the segment bounds of the maps over which a kernel loops: by them its rows are dealt to
 * threads. */
static void take_maps(Loop *l, int n_maps, const int *map) {
    const RtExec *x = l->x;
    RtCut *c = &l->cut;
    c->n_ptr = n_maps < RT_BALANCE_MAX ? n_maps : RT_BALANCE_MAX;
    for (int i = 0; i < c->n_ptr; i++) c->ptr[i] = x->buf[x->program->maps[map[i]].ptr_buf];
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
    Loop l = {.x = x, .kernel = k, .arg = arg, .n = x->n};
    x->rt->count.launches++;
    take_maps(&l, n_maps, map);
    l.cut.first = own.lo;
    l.cut.extent = own.hi - own.lo;
    rt_team_run(rt_step_team(x), run_share, &l);
}

void rt_launch_own_cuts(RtExec *x, int space, rt_kernel *k, void *const *arg) {
    RtRange own = {0, RT_SUM_CHUNKS};
    (void)space;
    if (rt_dist_several(x)) own = rt_dist_chunks(x->rt->dist, x->rt->dist->rank);
    launch(x, k, arg, own.lo, own.hi);
}

/* One map's shares are known since data were loaded; several maps' are found by the threads, each
 * for its own rows. */
void rt_launch_balanced(RtExec *x, rt_kernel *k, void *const *arg, int n_maps, const int *map) {
    const RtBlocks *b = &x->rt->blocks;
    Loop l = {.x = x, .kernel = k, .arg = arg, .n = x->n};
    if (rt_step_first(x)) x->rt->count.launches++;
    take_maps(&l, n_maps, map);
    if (n_maps == 1 && !b->on) l.cut.at = x->balance[map[0]];
    l.cut.first = b->on ? b->lo : 0;
    l.cut.extent = b->on ? b->hi - b->lo : rt_map_rows(x->program, x->n, map[0]);
    atomic_init(&l.next, 0);
    rt_team_run(rt_step_team(x), b->on ? take_chunks : run_share, &l);
}
