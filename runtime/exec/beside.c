/* Rows of a launch that lead to no row of other processes: they are computed while such rows come.
 *
 * Exchanges that have something beside them (rt_exchange_step.beside) are left to a thread; the
 * launch behind them begins with its interior rows, waits, writes what came to its place, and does
 * the others.  Rows are computed one by one, so which are first changes no bit.  What fails
 * meanwhile is told when the phase ends (rt_phase_run).
 *
 * On a device exchanges need no thread, and the launch is two: runtime/device/device_own.c. */
#include "beside.h"

#include <stdatomic.h>
#include <string.h>

#include "background.h"
#include "profile.h"
#include "runtime/device/device_rows.h"

enum {
    WORTH_BYTES = 1 << 16, /* less may come sooner than another thread wakes up */
    BLOCK_ROWS = 64        /* that a thread takes at a time */
};

/* An exchange that goes on. */
typedef struct {
    RtMessages messages;
    RtArrival arrival;
    const uint8_t *needs; /* by own row of the launch: whether it needs what comes */
    int exchange;         /* its number in the program */
} Pending;

/* On the device: what rows of a launch need of some exchanges together. */
typedef struct {
    int n, exchange[RT_BESIDE_MOST];
    void *needs;
} NeedsThere;

struct RtBeside {
    RtBackground *thread; /* NULL: exchanges are waited for, as there is no thread or memory */
    uint8_t **needs;      /* [n_exchanges], each made when it is first needed */
    bool *waited_for;     /* [n_exchanges] there was no memory for its needs */
    NeedsThere *there;    /* [n_exchanges], by the first of those that go on; NULL: no device */
    Pending now[RT_BESIDE_MOST]; /* RtDist.n_beside go on */
};

/* ---- which rows ----------------------------------------------------------------------------- */
/* Does row i, behind k hops of r, lead to a row outside of `own`? */
static bool leads_out(const RtExec *x, const rt_reach *r, int k, int64_t i, RtRange own) {
    if (k == r->n) return i < own.lo || i >= own.hi;
    const void *hop = x->buf[r->hop[k]];
    if (x->program->bufs[r->hop[k]].dt != RT_I64) {
        int32_t to = ((const int32_t *)hop)[i];
        return to >= 0 && leads_out(x, r, k + 1, to, own);
    }
    const int64_t *ptr = hop;
    for (int64_t j = ptr[i]; j < ptr[i + 1]; j++)
        if (leads_out(x, r, k + 1, j, own)) return true;
    return false;
}

/* By own row of the launch behind the exchange: whether it needs what comes.  NULL: no memory. */
static uint8_t *find_needs(RtExec *x, const rt_exchange_step *e) {
    const RtDist *o = x->rt->dist;
    RtRange rows = rt_dist_rows(x, e->beside[0].from, o->rank);
    RtRange own = rt_dist_rows(x, e->space, o->rank);
    uint8_t *needs = RT_NEWN(o->pool, uint8_t, rows.hi - rows.lo + 1);
    for (int64_t i = rows.lo; i < rows.hi && needs; i++)
        for (int k = 0; k < e->n_beside && !needs[i - rows.lo]; k++)
            needs[i - rows.lo] = leads_out(x, &e->beside[k], 0, i, own);
    return needs;
}

/* ---- the exchange --------------------------------------------------------------------------- */
gnnc_status rt_arrival_put(RtExec *x, const RtArrival *a) {
    if (x->rt->device)
        return rt_device_rows_do(x, (RtRowsOp){RT_ROWS_PUT, a->n, (int64_t)a->row_bytes}, a->buf,
                                 a->in, a->row);
    for (int64_t i = 0; i < a->n; i++)
        memcpy(a->buf + (size_t)a->row[i] * a->row_bytes, a->in + (size_t)i * a->row_bytes,
               a->row_bytes);
    return GNNC_OK;
}

/* The bytes that the process sends or receives, whichever are more. */
static size_t most_bytes(const RtDist *o, const RtMessages *m) {
    size_t out = 0, in = 0;
    for (int r = 0; r < o->n; r++) out += m->n_out[r], in += m->n_in[r];
    return out > in ? out : in;
}

/* What the first exchange that is worth it sets up.  NULL: no memory.  That is never tried again:
 * steps that are recorded have exchanges in one order, which each later run must have, too. */
static RtBeside *find_beside(RtExec *x) {
    RtDist *o = x->rt->dist;
    if (o->beside || o->never_beside) return o->beside;
    RtBeside *b = RT_NEW(o->pool, RtBeside);
    o->never_beside = !b;
    if (!b) return NULL;
    b->needs = RT_NEWN(o->pool, uint8_t *, x->program->n_exchanges);
    b->waited_for = RT_NEWN(o->pool, bool, x->program->n_exchanges);
    if (b->needs && b->waited_for && x->rt->device)
        b->there = RT_NEWN(o->pool, NeedsThere, x->program->n_exchanges);
    else if (b->needs && b->waited_for)
        b->thread = rt_background_new(o->pool, o->processes);
    return o->beside = b;
}

/* Which rows need what exchange i brings; NULL: it is waited for. */
static const uint8_t *needs_of(RtExec *x, int i, const RtMessages *m) {
    const RtDist *o = x->rt->dist;
    const rt_exchange_step *e = &x->program->exchanges[i];
    bool goes_on = x->rt->device || o->processes->exchange_in_thread;
    bool may =
        e->n_beside > 0 && goes_on && o->failed == GNNC_OK && most_bytes(o, m) >= WORTH_BYTES;
    RtBeside *b = may ? find_beside(x) : NULL;
    if (!b || (!b->thread && !b->there)) return NULL;
    if (!b->needs[i] && !b->waited_for[i]) b->needs[i] = find_needs(x, e);
    b->waited_for[i] = !b->needs[i];
    return b->needs[i];
}

gnnc_status rt_beside_exchange(RtExec *x, int i, RtMessages *m, const RtArrival *a) {
    const uint8_t *needs = needs_of(x, i, m);
    if (!needs) {
        gnnc_status st = rt_dist_exchange(x, "rows", m);
        return st == GNNC_OK ? rt_arrival_put(x, a) : st;
    }
    RtDist *o = x->rt->dist;
    RtBeside *b = o->beside;
    Pending *p = &b->now[o->n_beside++];
    *p = (Pending){*m, *a, needs, i};
    x->rt->count.beside_bytes += rt_dist_count(x, m);
    if (b->thread) {
        rt_background_exchange(b->thread, &p->messages);
        return GNNC_OK;
    }
    gnnc_status st = rt_device_rows_send(x, o->n_beside - 1, &p->messages);
    if (st != GNNC_OK) o->n_beside--;
    return st == GNNC_OK ? GNNC_OK : rt_dist_fail(x, "rows", st);
}

int rt_beside_pending(const RtExec *x) {
    const RtDist *o = x->rt->dist;
    return o ? o->n_beside : 0;
}

gnnc_status rt_beside_end(RtExec *x) {
    if (!rt_beside_pending(x)) return GNNC_OK;
    RtDist *o = x->rt->dist;
    RtBeside *b = o->beside;
    gnnc_status st = b->thread ? rt_background_wait(b->thread) : GNNC_OK;
    for (int i = 0; i < o->n_beside && st == GNNC_OK; i++) {
        if (!b->thread) st = rt_device_rows_arrive(x, i, &b->now[i].messages);
        if (st == GNNC_OK) st = rt_arrival_put(x, &b->now[i].arrival);
    }
    o->n_beside = 0;
    return st == GNNC_OK ? GNNC_OK : rt_dist_fail(x, "rows", st);
}

void rt_beside_close(RtExec *x) {
    RtDist *o = x->rt->dist;
    if (!o || !o->beside) return;
    if (o->beside->thread) rt_background_end(o->beside->thread);
    o->beside = NULL;
    o->n_beside = 0;
}

/* ---- on a device ---------------------------------------------------------------------------- */
/* Are they what n exchanges, which go on, need? */
static bool is_of(const NeedsThere *t, const RtBeside *b, int n) {
    bool same = t->needs && t->n == n;
    for (int i = 0; i < n && same; i++) same = t->exchange[i] == b->now[i].exchange;
    return same;
}

/* What the own rows of a launch need of all that goes on, sent there. */
static gnnc_status send_needs(RtExec *x, const RtBeside *b, NeedsThere *to) {
    const RtDist *o = x->rt->dist;
    const rt_exchange_step *e = &x->program->exchanges[b->now[0].exchange];
    RtRange rows = rt_dist_rows(x, e->beside[0].from, o->rank);
    size_t n = (size_t)(rows.hi - rows.lo);
    uint8_t *all = RT_NEWN(o->pool, uint8_t, n + 1);
    if (!all) return rt_fail_nomem(&x->rt->err, "rows of other processes");
    for (size_t k = 0; k < n; k++)
        for (int i = 0; i < o->n_beside; i++) all[k] |= b->now[i].needs[k];
    rt_device_rows_drop(x, to->needs);
    to->n = o->n_beside;
    for (int i = 0; i < to->n; i++) to->exchange[i] = b->now[i].exchange;
    gnnc_status st = rt_device_rows_copy(x, all, n, &to->needs);
    rt_pool_drop(o->pool, all);
    return st;
}

gnnc_status rt_beside_needs(RtExec *x, const unsigned char **needs) {
    const RtBeside *b = x->rt->dist->beside;
    NeedsThere *t = &b->there[b->now[0].exchange];
    gnnc_status st = is_of(t, b, x->rt->dist->n_beside) ? GNNC_OK : send_needs(x, b, t);
    *needs = t->needs;
    return st;
}

/* ---- the launch ----------------------------------------------------------------------------- */
/* A launch of the own rows that need something, or of the others. */
typedef struct {
    RtExec *x;
    rt_kernel *kernel;
    void *const *arg;
    RtRange rows;
    int64_t per_row;
    const uint8_t *needs[RT_BESIDE_MOST];
    int n_needs;
    bool which;        /* the rows of this pass: those that need something */
    atomic_llong next; /* row that nobody has taken yet */
} RowLoop;

/* Does row i, counted from the first own one, need something that comes? */
static bool needs_some(const RowLoop *l, int64_t i) {
    bool some = false;
    for (int k = 0; k < l->n_needs; k++) some |= l->needs[k][i];
    return some;
}

/* Runs the kernel on the rows of the pass among [lo, hi), neighbours in one call. */
static void run_rows(const RowLoop *l, int64_t lo, int64_t hi) {
    for (int64_t i = lo, end; i < hi; i = end) {
        bool which = needs_some(l, i);
        for (end = i + 1; end < hi && needs_some(l, end) == which;) end++;
        if (which == l->which)
            l->kernel(l->arg, l->x->n, (l->rows.lo + i) * l->per_row,
                      (l->rows.lo + end) * l->per_row);
    }
}

/* What each thread of the team does: takes blocks of rows as long as there are any. */
static void take_rows(void *arg, int member, int n_members) {
    (void)n_members;
    RowLoop *l = arg;
    int64_t since = rt_profile_share_begin(l->x), n = l->rows.hi - l->rows.lo;
    for (int64_t i; (i = atomic_fetch_add(&l->next, BLOCK_ROWS)) < n;)
        run_rows(l, i, i + BLOCK_ROWS < n ? i + BLOCK_ROWS : n);
    rt_profile_share_end(l->x, member, since);
}

void rt_beside_launch(RtExec *x, RtRange rows, rt_kernel *k, void *const *arg, int64_t per_row) {
    const RtBeside *b = x->rt->dist->beside;
    RowLoop l = {.x = x, .kernel = k, .arg = arg, .rows = rows, .per_row = per_row};
    l.n_needs = x->rt->dist->n_beside;
    for (int i = 0; i < l.n_needs; i++) l.needs[i] = b->now[i].needs;
    atomic_init(&l.next, 0);
    x->rt->count.launches++;
    rt_team_run(rt_step_team(x), take_rows, &l);
    if (rt_beside_end(x) != GNNC_OK) return;
    l.which = true;
    atomic_store(&l.next, 0);
    rt_team_run(rt_step_team(x), take_rows, &l);
}
