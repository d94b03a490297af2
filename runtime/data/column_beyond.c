/* Columns that are larger than memory.
 *
 * A fault in a mapped file has the system read the pages around it, too, up to 128 KiB: of rows
 * that are read in no order these are read for nothing, and drive out what is needed.  With
 * MADV_RANDOM a fault reads one page, and waits for it; so who knows which rows come next asks for
 * them ahead (runtime/batch/batch_gather.c).  Who reads the column from end to end needs the pages
 * around: so that is said when the first batch takes rows, and not when data are opened.  Nor is it
 * taken back behind each batch, as others are taking rows meanwhile. */
#include "column.h"

#include <sys/mman.h>
#include <unistd.h>

static size_t bytes_of(const RtColumn *c) {
    return (size_t)c->n_rows * (size_t)rt_column_width(c) * rt_column_value_bytes(c);
}

void rt_column_beyond_memory(RtColumn *c, const RtPool *pool, size_t memory) {
    if (rt_column_kind(c->kind)->layout != RT_LAYOUT_ROWS) return;
    const void *values = rt_column_values(c);
    c->beyond_memory = values && bytes_of(c) > memory && rt_pool_maps(pool, values);
}

void rt_column_expect_no_order(const RtColumn *c) {
    if (!c->beyond_memory) return;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), values = (uintptr_t)rt_column_values(c),
              at = values / page * page;
    madvise((void *)at, bytes_of(c) + values - at, MADV_RANDOM);
}
