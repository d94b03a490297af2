/* A block, and a list of what it had no room for. */
#include "recycle.h"

#include <stddef.h>
#include <string.h>

/* What lies behind it is aligned for any type, as allocators promise; pools ask for no more. */
typedef union RtRecycled {
    union RtRecycled *next;
    max_align_t behind;
} RtRecycled;

void rt_recycle_init(RtRecycle *r, const RtAlloc *from) {
    *r = (RtRecycle){.growth = {.from = *from}};
}

/* Releases the blocks that the large block had no room for. */
static void free_more(RtRecycle *r) {
    for (RtRecycled *m = r->more, *next; m; m = next) {
        next = m->next;
        r->growth.from.release(r->growth.from.user, m);
    }
    r->more = NULL;
}

void rt_recycle_free(RtRecycle *r) {
    free_more(r);
    rt_grow_free(&r->growth, &r->block);
}

void rt_recycle_reset(RtRecycle *r) {
    free_more(r);
    /* Without memory it goes on with the block it has: what does not fit is taken one by one. */
    if (r->wanted) rt_grow(&r->growth, &r->block, (int64_t)r->wanted, 1, 0, NULL);
    r->used = r->wanted = 0;
}

/* A block of its own for a request that the large block has no room for. The next reset makes the
 * large one bigger. */
static void *take_more(RtRecycle *r, size_t n_bytes) {
    RtRecycled *m = r->growth.from.alloc(r->growth.from.user, sizeof *m + n_bytes);
    if (!m) return NULL;
    m->next = r->more;
    r->more = m;
    r->growth.n_grown++;
    return m + 1;
}

/* Allocates zeroed memory: of the large block, as long as that has room. */
static void *take(void *user, size_t n_bytes) {
    RtRecycle *r = user;
    if (n_bytes > SIZE_MAX / 8) return NULL;
    n_bytes = (n_bytes + RT_ALIGN - 1) / RT_ALIGN * RT_ALIGN;
    r->wanted += n_bytes;
    if (n_bytes > r->block.n_bytes - r->used) return take_more(r, n_bytes);
    void *p = (char *)r->block.p + r->used;
    r->used += n_bytes;
    return memset(p, 0, n_bytes);
}

static void leave(void *user, void *block) {
    (void)user, (void)block; /* until the reset */
}

RtAlloc rt_recycle_alloc(RtRecycle *r) {
    return (RtAlloc){take, leave, r};
}
