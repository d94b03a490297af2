/* Which rows a launch does, of those that processes share: the own ones, and where rows of others
 * come meanwhile (runtime/exec/beside.c), first those that need none of them. */
#include "device_rows.h"

#include "runtime/exec/beside.h"

void *rt_device_own(RtExec *x) {
    return &x->rt->device->rows.own;
}

/* The launch beside exchanges: rows that need nothing of them, and then the others. */
static gnnc_status launch_twice(RtExec *x, rt_device_kernel *k, const char *name,
                                void *const *arg) {
    RtOwnRows *own = &x->rt->device->rows.own;
    gnnc_status st;
    TRY(st, rt_beside_needs(x, &own->needs));
    own->pass = 1;
    TRY(st, rt_device_launch(x, k, name, arg));
    TRY(st, rt_beside_end(x));
    own->pass = 2;
    st = rt_device_launch(x, k, name, arg);
out:
    return st;
}

gnnc_status rt_device_launch_own(RtExec *x, int space, bool by_chunks, rt_device_kernel *k,
                                 const char *name, void *const *arg) {
    RtOwnRows *own = &x->rt->device->rows.own;
    const RtDist *o = x->rt->dist;
    int64_t rows = by_chunks ? RT_SUM_CHUNKS : rt_size(x->program, x->n, space);
    *own = (RtOwnRows){.hi = rows, .rows = rows};
    if (!rt_dist_several(x)) return rt_device_launch(x, k, name, arg);
    RtRange r = by_chunks ? rt_dist_chunks(o, o->rank) : rt_dist_rows(x, space, o->rank);
    own->lo = r.lo;
    own->hi = r.hi;
    if (rt_beside_pending(x)) return launch_twice(x, k, name, arg);
    return rt_device_launch(x, k, name, arg);
}

/* Rows of one part alone. */
static gnnc_status launch_part(RtExec *x, int space, RtRange r, rt_device_kernel *k,
                               const char *name, void *const *arg) {
    x->rt->device->rows.own =
        (RtOwnRows){.lo = r.lo, .hi = r.hi, .rows = rt_size(x->program, x->n, space)};
    return rt_device_launch(x, k, name, arg);
}

gnnc_status rt_device_gemm_parts_with(RtExec *x, int space, const rt_gemm *g, const rt_epilogue *e,
                                      const float *a, const float *b, float *c, rt_device_kernel *k,
                                      const char *name, void *const *arg) {
    const RtRange parts = rt_dist_parts(x->rt->dist, x->rt->dist->rank);
    gnnc_status st = GNNC_OK;
    for (int64_t p = parts.lo; p < parts.hi && st == GNNC_OK; p++) {
        const RtRange r = rt_dist_part_rows(x, space, p);
        const rt_epilogue end = {e->kind, e->side, (float *)e->out + r.lo * g->n};
        rt_gemm own = *g;
        bool within = r.hi == r.lo;
        own.m = r.hi - r.lo;
        if (!within)
            st = rt_device_gemm_with(x, &own, &end, a + r.lo * g->a_row, b, c + r.lo * g->c_row,
                                     &within);
        if (st == GNNC_OK && !within) st = launch_part(x, space, r, k, name, arg);
    }
    return st;
}
