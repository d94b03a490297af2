/* Matrix products of rows that processes share.  Each part's rows are multiplied by themselves, so
 * that what a product does (tiles, ways to multiply) hangs on the parts alone; sums over rows are
 * added over the parts (sum_parts.h). */
#include "runtime/exec/sum_parts.h"

#include "gemm.h"

typedef struct {
    RtExec *x;
    const RtDist *o;
    const rt_gemm *g;
    int space;
    const char *a, *b;
    char *c;
    size_t in, out; /* bytes of an element */
} Own;

static size_t bytes_of(rt_dtype t) {
    return t == RT_VOID ? sizeof(float) : (size_t)rt_type_bytes(t);
}

/* Multiplies in the type of the operands: 16 bits or f32. */
static gnnc_status multiply(const Own *w, const rt_gemm *g, const char *a, const char *b, void *c) {
    bool low = g->in == RT_F16 || g->in == RT_BF16;
    if (low) return rt_gemm_16(w->x, g, a, b, c);
    return rt_gemm_f32(w->x, g, (const float *)a, (const float *)b, c);
}

/* Makes the product for the rows that lie in one part of the data. */
static gnnc_status rows_of_part(const Own *w, int64_t part) {
    RtRange r = rt_dist_part_rows(w->x, w->space, part);
    rt_gemm g = *w->g;
    g.m = r.hi - r.lo;
    return multiply(w, &g, w->a + (size_t)(r.lo * g.a_row) * w->in, w->b,
                    w->c + (size_t)(r.lo * g.c_row) * w->out);
}

/* ---- sums over rows ------------------------------------------------------------------------- */
/* The product over the rows of one part, to [m][n]. */
static gnnc_status sum_of_part(RtExec *x, void *user, int64_t part, float *to) {
    const Own *w = user;
    RtRange r = rt_dist_part_rows(x, w->space, part);
    rt_gemm g = *w->g;
    g.k = r.hi - r.lo;
    g.c_row = g.n;
    g.c_batch = g.m * g.n;
    return multiply(w, &g, w->a + (size_t)(r.lo * g.a_col) * w->in,
                    w->b + (size_t)(r.lo * g.b_row) * w->in, to);
}

/* Copies the summed result, dense in `from`, to C. */
static void store(const Own *w, const float *from) {
    const rt_gemm *g = w->g;
    bool dense = g->c_row == g->n && (g->batch == 1 || g->c_batch == g->m * g->n);
    int64_t n = dense ? g->batch * g->m * g->n : g->n; /* copied at once */
    for (int64_t b = 0; b < (dense ? 1 : g->batch); b++)
        for (int64_t i = 0; i < (dense ? 1 : g->m); i++, from += n)
            rt_copy(w->x, w->c + (size_t)(b * g->c_batch + i * g->c_row) * sizeof *from, from,
                    (size_t)n * sizeof *from);
}

/* Makes a product whose k runs over rows that processes share: each sums its parts, and the sums
 * are added over all processes in a fixed order. */
static gnnc_status sum_over_parts(Own *w) {
    RtSum s = {.count = w->g->batch * w->g->m * w->g->n, .of_part = sum_of_part, .user = w};
    float *to = (float *)rt_dist_buffer(w->x, 0, (size_t)s.count * sizeof *to + 1);
    gnnc_status st = to ? rt_sum_parts(w->x, &s, to) : GNNC_E_NOMEM;
    if (st == GNNC_OK) store(w, to);
    return st;
}

/* A product over the rows of a space that processes share: each process makes its own rows of C, or
 * of a long k all get the sum. */
gnnc_status rt_gemm_parts(RtExec *x, int space, const rt_gemm *g, const void *a, const void *b,
                          void *c) {
    const RtDist *o = x->rt->dist;
    Own w = {.x = x, .o = o, .g = g, .space = space, .a = a, .b = b, .c = c};
    w.in = bytes_of(g->in);
    w.out = bytes_of(g->out);
    if (g->long_k) return sum_over_parts(&w);
    RtRange parts = rt_dist_parts(o, o->rank);
    gnnc_status st = GNNC_OK;
    for (int64_t p = parts.lo; p < parts.hi && st == GNNC_OK; p++) st = rows_of_part(&w, p);
    return st;
}
