/* The loop over blocks of rows.  Local buffers hold one block; kernels index them by row as ever,
 * so the address they are given moves back as the rows move on. */
#include "exec.h"

#include "blocks.h"

/* Bytes of a row of buffer b, in the loop over blocks of rows that runs. */
static size_t row_bytes(RtExec *x, int b) {
    size_t n = 0;
    int64_t rows = x->rt->blocks.rows;
    return rows > 0 && rt_buf_bytes(x, b, &n) == GNNC_OK ? n / (size_t)rows : 0;
}

/* How far the address of a local buffer is before its memory in the block that begins at row lo:
 * aligned as kernels want it, so the block's first row may begin a little later. */
static size_t back(size_t row, int64_t lo) {
    return (size_t)lo * row / RT_ALIGN * RT_ALIGN;
}

/* Moves the addresses of buffers that hold one block only, so that kernels find row `to` where row
 * `from` was. */
static void move_locals(RtExec *x, int64_t from, int64_t to) {
    const RtBlocks *l = &x->rt->blocks;
    for (int i = 0; i < l->n_local; i++) {
        size_t row = row_bytes(x, l->local[i]);
        uintptr_t at = (uintptr_t)x->buf[l->local[i]];
        x->buf[l->local[i]] = (void *)(at + back(row, from) - back(row, to));
    }
}

void rt_blocks_begin(RtExec *x, int64_t rows, const int *local, int n) {
    x->rt->blocks = (RtBlocks){.rows = rows, .local = local, .n_local = n, .i = -1};
}

/* Goes on to the next block of rows; false after the last one. Without rows there is still one
 * block, as sums over nothing are zeros. */
bool rt_blocks_next(RtExec *x) {
    RtBlocks *l = &x->rt->blocks;
    int64_t size = rt_block_rows(l->rows), lo = ++l->i * size;
    if (l->i > 0 && lo >= l->rows) {
        rt_blocks_end(x);
        return false;
    }
    move_locals(x, l->lo, lo);
    l->on = true;
    l->lo = lo;
    l->hi = lo + size < l->rows ? lo + size : l->rows;
    return true;
}

void rt_blocks_end(RtExec *x) {
    RtBlocks *l = &x->rt->blocks;
    if (!l->on) return;
    move_locals(x, l->lo, 0);
    *l = (RtBlocks){.on = false};
}

/* *n_bytes gets the memory that buffer b needs: of one block only, if it is local to a loop over
 * blocks. On a device, where steps run on all rows, it is the whole size. */
gnnc_status rt_blocks_bytes(RtExec *x, int b, size_t *n_bytes) {
    const rt_buf *buf = &x->program->bufs[b];
    gnnc_status st = rt_buf_bytes(x, b, n_bytes);
    if (st != GNNC_OK || buf->kind != RT_BUF_TEMP || buf->block < 0 || x->rt->device) return st;
    const rt_phase *ph = &x->program->phases[buf->phase];
    if (buf->block >= ph->n_blocks) return st;
    int64_t rows = ph->block_rows(buf->block, x->n);
    if (rows > 0) *n_bytes = (size_t)rt_block_bytes((int64_t)*n_bytes, rows, RT_ALIGN);
    return GNNC_OK;
}
