/* Columns that are larger than memory.
 *
 * A fault in a mapped file has the system read the pages around it, too, up to 128 KiB: of rows
 * that are read in no order these are read for nothing, and drive out what is needed.  With
 * MADV_RANDOM a fault reads one page, and waits for it; so who knows which rows come next asks for
 * them ahead (runtime/batch/batch_gather.c). */
#include "column.h"

#include <sys/mman.h>
#include <unistd.h>

void rt_column_beyond_memory(RtColumn *c, const RtPool *pool, size_t memory) {
    if (rt_column_kind(c->kind)->layout != RT_LAYOUT_ROWS) return;
    const void *values = rt_column_values(c);
    size_t n = (size_t)c->n_rows * (size_t)rt_column_width(c) * rt_column_value_bytes(c);
    if (!values || n <= memory || !rt_pool_maps(pool, values)) return;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)values / page * page;
    c->beyond_memory = true;
    madvise((void *)at, n + (uintptr_t)values - at, MADV_RANDOM); /* only a wish */
}
