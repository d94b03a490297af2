/* Matrix products of rows that processes share.  Each part's rows are multiplied by themselves, so
 * that what a product does (tiles, ways to multiply) hangs on the parts alone.  Sums over rows are
 * added by a binary tree over the parts:
 *
 *     parts      0   1   2   3   4   5   6   7
 *     process    0 0 0 0 0 0 | 1 1 1 1 1 1 1 1         two processes: 3 and 5 parts
 *                 \ /   |    |  |   \ /     ...        of the nodes of the tree that lie in its
 *                  +    |    |  |    +                 parts, each sends the uppermost: here
 *                                                      {0,1}, {2} and {3}, {4..7}
 *
 * and all add up the rest. */
#include "runtime/exec/own.h"

#include <string.h>

#include "gemm.h"

enum { TREE_DEPTH = 8 /* of at most RT_SUM_CHUNKS parts, with the root */ };

typedef struct {
    RtExec *x;
    const RtOwn *o;
    const rt_gemm *g;
    int space;
    const char *a, *b;
    char *c;
    size_t in, out;           /* bytes of an element */
    int64_t count;            /* numbers of the result */
    float *level[TREE_DEPTH]; /* a sum at each depth */
    float *sent;              /* the uppermost nodes of all processes, in the order of parts */
    gnnc_status st;
} Own;

static size_t bytes_of(rt_dtype t) {
    return t == RT_VOID ? sizeof(float) : (size_t)rt_type_bytes(t);
}

static gnnc_status multiply(const Own *w, const rt_gemm *g, const char *a, const char *b, void *c) {
    bool low = g->in == RT_F16 || g->in == RT_BF16;
    if (low) return rt_gemm_16(w->x, g, a, b, c);
    return rt_gemm_f32(w->x, g, (const float *)a, (const float *)b, c);
}

static gnnc_status rows_of_part(const Own *w, int64_t part) {
    RtRange r = rt_own_part_rows(w->x, w->space, part);
    rt_gemm g = *w->g;
    g.m = r.hi - r.lo;
    return multiply(w, &g, w->a + (size_t)(r.lo * g.a_row) * w->in, w->b,
                    w->c + (size_t)(r.lo * g.c_row) * w->out);
}

/* ---- sums over rows ------------------------------------------------------------------------- */
static void sum_of_part(Own *w, int64_t part, float *to) {
    RtRange r = rt_own_part_rows(w->x, w->space, part);
    rt_gemm g = *w->g;
    g.k = r.hi - r.lo;
    g.c_row = g.n;
    g.c_batch = g.m * g.n;
    gnnc_status st = multiply(w, &g, w->a + (size_t)(r.lo * g.a_col) * w->in,
                              w->b + (size_t)(r.lo * g.b_row) * w->in, to);
    if (w->st == GNNC_OK) w->st = st;
}

static void add(const Own *w, float *to, const float *more) {
    for (int64_t i = 0; i < w->count; i++) to[i] += more[i];
}

/* Of parts [lo, hi), all of them own. */
static void sum_own(Own *w, int64_t lo, int64_t hi, int depth, float *to) {
    if (hi - lo == 1) {
        sum_of_part(w, lo, to);
        return;
    }
    int64_t mid = lo + (hi - lo) / 2;
    sum_own(w, lo, mid, depth + 1, to);
    sum_own(w, mid, hi, depth + 1, w->level[depth]);
    add(w, to, w->level[depth]);
}

static bool is_within(RtRange parts, int64_t lo, int64_t hi) {
    return lo >= parts.lo && hi <= parts.hi;
}

/* The uppermost nodes of [lo, hi) that lie in `parts`: how many; with `to` they are own, and made
 * there, one behind the other. */
static int64_t uppermost(Own *w, RtRange parts, int64_t lo, int64_t hi, int depth, float *to) {
    if (hi <= parts.lo || lo >= parts.hi) return 0;
    if (is_within(parts, lo, hi)) {
        if (to) sum_own(w, lo, hi, depth, to);
        return 1;
    }
    int64_t mid = lo + (hi - lo) / 2, n = uppermost(w, parts, lo, mid, depth + 1, to);
    return n + uppermost(w, parts, mid, hi, depth + 1, to ? to + n * w->count : NULL);
}

/* The sum over [lo, hi), of the nodes from *next on. */
static const float *sum_all(Own *w, int64_t lo, int64_t hi, int depth, const float **next) {
    for (int r = 0; r < w->o->n; r++) {
        if (!is_within(rt_own_parts(w->o, r), lo, hi)) continue;
        const float *own = *next;
        *next += w->count;
        return own;
    }
    int64_t mid = lo + (hi - lo) / 2;
    float *to = w->level[depth];
    const float *left = sum_all(w, lo, mid, depth + 1, next);
    memcpy(to, left, (size_t)w->count * sizeof *to);
    add(w, to, sum_all(w, mid, hi, depth + 1, next));
    return to;
}

static void store(const Own *w, const float *from) {
    const rt_gemm *g = w->g;
    for (int64_t b = 0; b < g->batch; b++)
        for (int64_t i = 0; i < g->m; i++, from += g->n)
            memcpy(w->c + (size_t)(b * g->c_batch + i * g->c_row) * sizeof *from, from,
                   (size_t)g->n * sizeof *from);
}

int64_t rt_gemm_parts_sent(const RtOwn *o, int rank) {
    Own none = {.o = o};
    return uppermost(&none, rt_own_parts(o, rank), 0, o->n_parts, 0, NULL);
}

static gnnc_status bring(Own *w, const int64_t *first) {
    const RtOwn *o = w->o;
    size_t node = (size_t)w->count * sizeof(float);
    int64_t own = first[o->rank];
    RtMail m;
    for (int r = 0; r < o->n; r++)
        rt_mail_put(&m, r, w->sent + own * w->count, (size_t)(first[o->rank + 1] - own) * node,
                    w->sent + first[r] * w->count, (size_t)(first[r + 1] - first[r]) * node);
    return rt_own_exchange(w->x, "sums over rows", &m);
}

static float *reserve(const Own *w, int64_t nodes) {
    RtOwn *o = w->x->rt->own;
    size_t want = (size_t)(nodes + TREE_DEPTH) * (size_t)w->count * sizeof(float);
    if (want <= o->sums_bytes) return o->sums;
    rt_pool_drop(o->pool, o->sums);
    o->sums_bytes = 0;
    o->sums = rt_pool_alloc(o->pool, want, 1);
    if (o->sums) o->sums_bytes = want;
    return o->sums;
}

static gnnc_status sum(Own *w) {
    const RtOwn *o = w->o;
    int64_t first[RT_SUM_CHUNKS + 1] = {0};
    for (int r = 0; r < o->n; r++)
        first[r + 1] = first[r] + uppermost(w, rt_own_parts(o, r), 0, o->n_parts, 0, NULL);
    float *room = reserve(w, first[o->n]);
    if (!room) w->st = rt_fail_nomem(&w->x->rt->err, "sums over rows");
    if (room) {
        for (int i = 0; i < TREE_DEPTH; i++) w->level[i] = room + i * w->count;
        w->sent = room + TREE_DEPTH * w->count;
        uppermost(w, rt_own_parts(o, o->rank), 0, o->n_parts, 0,
                  w->sent + first[o->rank] * w->count);
    }
    if (w->st == GNNC_OK && o->n > 1) w->st = bring(w, first);
    const float *next = w->sent;
    if (w->st == GNNC_OK) store(w, sum_all(w, 0, o->n_parts, 0, &next));
    return w->st;
}

gnnc_status rt_gemm_parts(RtExec *x, int space, const rt_gemm *g, const void *a, const void *b,
                          void *c) {
    const RtOwn *o = x->rt->own;
    Own w = {.x = x, .o = o, .g = g, .space = space, .a = a, .b = b, .c = c};
    w.in = bytes_of(g->in);
    w.out = bytes_of(g->out);
    w.count = g->batch * g->m * g->n;
    if (g->long_k) return sum(&w);
    RtRange parts = rt_own_parts(o, o->rank);
    for (int64_t p = parts.lo; p < parts.hi && w.st == GNNC_OK; p++) w.st = rows_of_part(&w, p);
    return w.st;
}
