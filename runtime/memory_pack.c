/* Where temporaries lie in the arena that phases share: each phase packed by lifetime from its
 * start (pack.h). */
#include "memory.h"

#include "runtime/pack.h"

typedef struct {
    RtPackItem *item;
    int *buf, *order, *live; /* buf: of each item */
    int n;
} Packing;

/* Allocates the tables for packing as many items as the program has buffers; `pool` owns them. */
static gnnc_status packing_new(RtExec *x, RtPool *pool, Packing *k) {
    size_t n = (size_t)x->program->n_bufs;
    *k = (Packing){RT_NEWN(pool, RtPackItem, n), RT_NEWN(pool, int, n), RT_NEWN(pool, int, n),
                   RT_NEWN(pool, int, n), 0};
    if (k->item && k->buf && k->order && k->live) return GNNC_OK;
    return rt_fail_nomem(&x->rt->err, "memory plan");
}

/* What a loop over blocks touches is there for all of it. */
static void live_in_blocks(const rt_phase *ph, RtPackItem *it) {
    for (int i = 0; i < ph->n_blocks; i++)
        rt_pack_span(it, ph->blocks[i].first, ph->blocks[i].last);
}

/* Places the temporaries of a phase in an arena by their lifetimes: offset[b] of each buffer b, and
 * the bytes of all. What a phase gives as output lives through all of its steps. */
static gnnc_status pack_phase(RtExec *x, RtBytesOf *bytes, size_t *offset, Packing *k, int phase,
                              size_t *n_bytes) {
    const rt_program *p = x->program;
    k->n = 0;
    for (int b = 0; b < p->n_bufs; b++) {
        if (!rt_memory_is_temp(p, b) || p->bufs[b].phase != phase) continue;
        bool whole = p->bufs[b].kind != RT_BUF_TEMP;
        RtPackItem it = {.first = whole ? 0 : p->bufs[b].first,
                         .last = whole ? p->phases[phase].n_steps : p->bufs[b].last,
                         .loop = whole || x->rt->device ? 0 : p->bufs[b].block + 1,
                         .first_in = p->bufs[b].first,
                         .last_in = p->bufs[b].last};
        gnnc_status st = bytes(x, b, &it.n_bytes);
        if (st != GNNC_OK) return st;
        if (!x->rt->device) live_in_blocks(&p->phases[phase], &it);
        k->buf[k->n] = b;
        k->item[k->n++] = it;
    }
    *n_bytes = rt_pack(k->item, k->n, k->order, k->live);
    for (int i = 0; i < k->n; i++) offset[k->buf[i]] = k->item[i].offset;
    return GNNC_OK;
}

/* They share one arena, as large as the largest phase needs. */
gnnc_status rt_memory_pack_as(RtExec *x, RtBytesOf *bytes, size_t *offset, size_t *n_bytes) {
    RtPool pool;
    Packing k;
    rt_pool_init(&pool, &x->rt->pool.from);
    *n_bytes = 0;
    gnnc_status st = packing_new(x, &pool, &k);
    for (int i = 0; st == GNNC_OK && i < x->program->n_phases; i++) {
        size_t n = 0;
        if (rt_memory_is_of_batches(x->program, i)) continue;
        st = pack_phase(x, bytes, offset, &k, i, &n);
        if (st == GNNC_OK && n > *n_bytes) *n_bytes = n;
    }
    rt_pool_free(&pool);
    return st;
}

gnnc_status rt_memory_pack(RtExec *x, RtPool *pool, int phase, size_t *offset, size_t *n_bytes) {
    Packing k;
    gnnc_status st = packing_new(x, pool, &k);
    return st == GNNC_OK ? pack_phase(x, rt_blocks_bytes, offset, &k, phase, n_bytes) : st;
}
