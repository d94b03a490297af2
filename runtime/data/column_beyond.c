/* Columns that are larger than memory.
 *
 * A fault in a mapped file has the system read the pages around it, too, up to 128 KiB: of rows
 * that are read in no order these are read for nothing, and drive out what is needed.  With
 * MADV_RANDOM a fault reads one page, and waits for it; so who knows which rows come next asks for
 * them ahead (runtime/batch/batch_gather.c).  Who reads the column from end to end needs the pages
 * around: so that is said when the first batch takes rows, not when data are opened, and taken back
 * while a phase over the whole graph runs, after which batches say it again. */
#include "column.h"

#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t bytes_of(const RtColumn *c) {
    return (size_t)c->n_rows * (size_t)rt_column_width(c) * rt_column_value_bytes(c);
}

/* All who read such a column have this of it. */
struct RtBeyondMemory {
    _Atomic int in_order; /* so many read it from end to end now; threads may take rows meanwhile */
};

void rt_column_beyond_memory(RtColumn *c, RtPool *pool, size_t memory) {
    if (rt_column_kind(c->kind)->layout != RT_LAYOUT_ROWS) return;
    const void *values = rt_column_values(c);
    if (values && bytes_of(c) > memory && rt_pool_maps(pool, values))
        c->beyond_memory =
            RT_NEW(pool, struct RtBeyondMemory); /* without memory it is not marked */
}

static void advise(const RtColumn *c, int advice) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), values = (uintptr_t)rt_column_values(c),
              at = values / page * page;
    madvise((void *)at, bytes_of(c) + values - at, advice);
}

void rt_column_expect_no_order(const RtColumn *c) {
    if (c->beyond_memory && !atomic_load(&c->beyond_memory->in_order)) advise(c, MADV_RANDOM);
}

void rt_column_begin_in_order(const RtColumn *c) {
    if (!c->beyond_memory) return;
    atomic_fetch_add(&c->beyond_memory->in_order, 1);
    advise(c, MADV_NORMAL);
}

void rt_column_end_in_order(const RtColumn *c) {
    if (c->beyond_memory) atomic_fetch_sub(&c->beyond_memory->in_order, 1);
}
