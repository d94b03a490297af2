/* How far a run of `gnnc partition` is: after every walk over the edges that changed something, the
 * cluster or part of each unit is kept in a file of the work's directory (cache.h).  All else
 * follows from it and the data, so a run that goes on makes the same parts. */
#include <string.h>

#include "partition.h"

enum { VERSION = 1 }; /* raised whenever the same state leads to other parts */

typedef struct {
    int32_t by, step;
} Reached;

static uint64_t mix(uint64_t h, uint64_t word) {
    h = (h ^ word) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 32;
}

/* A hash of what leads to these parts of the data. */
static uint64_t hash_options(const RtPartitionOptions *how) {
    uint64_t h = mix(VERSION, (uint64_t)how->n_parts);
    h = mix(mix(h, how->by), how->seed);
    h = mix(h, (uint64_t)how->memory);
    for (const char *s = GNNC_VERSION; *s; s++) h = mix(h, (unsigned char)*s);
    return h;
}

/* Are these arrays the state of such units? Labels of units are below u->n, parts below n_parts. */
static bool is_state(const RtUnits *u, const RtCacheArray *a, int n, Reached *to) {
    if (n != 2 || a[0].n_bytes != sizeof *to || a[1].n_bytes != (uint64_t)u->n * sizeof(int32_t))
        return false;
    memcpy(to, a[0].p, sizeof *to);
    if (to->by <= RT_PARTITION_CHOOSE || to->by > RT_PARTITION_ROWS) return false;
    if (to->step < 1 || to->step > RT_STEP_DONE) return false;
    const int32_t *part = a[1].p;
    int64_t bound = to->step < RT_STEP_CUT ? u->n : u->n_parts;
    for (int64_t v = 0; v < u->n; v++)
        if (part[v] < 0 || part[v] >= bound) return false;
    return true;
}

gnnc_status rt_units_find(RtUnits *u, const RtPartitionOptions *how, int32_t *part, RtError *err) {
    RtPool file;
    const RtCacheArray *a;
    Reached reached;
    int n;
    u->work_dir = how->work;
    u->kept = (RtCacheKey){&u->d->stamp, hash_options(how)};
    if (!how->work) return GNNC_OK;
    rt_pool_init(&file, &u->pool->from);
    bool found = rt_cache_read(&file, how->work->state, &u->kept, true, NULL, &a, &n) &&
                 is_state(u, a, n, &reached);
    if (found) {
        memcpy(part, a[1].p, a[1].n_bytes);
        u->by = (RtPartitionMethod)reached.by;
        u->step = reached.step;
    }
    rt_pool_free(&file);
    return found ? GNNC_OK : rt_work_clear(u->pool, how->work, err);
}

void rt_units_keep(const RtUnits *u, int step, const int32_t *part) {
    if (!u->work_dir) return;
    const Reached reached = {(int32_t)u->by, step};
    const RtCacheArray a[] = {{&reached, sizeof reached}, {part, (uint64_t)u->n * sizeof *part}};
    rt_cache_write(&u->pool->from, u->work_dir->state, &u->kept, NULL, a, 2);
}
