/* Exchanges of rows: a process tells the others once which rows of theirs it reads, and from then
 * on they come with each run of the step, each once.
 *
 * Which these are follows from index arrays (rt_reach): from the own rows of a space through bounds
 * of segments and indices to rows of the buffer's.  Exchanges of the same rows share the lists. */
#include "beside.h"
#include "sum_parts.h"

#include <math.h>
#include <string.h>

#include "runtime/device/device_held.h"
#include "runtime/device/device_rows.h"

/* By process: rows [at[r], at[r + 1]) of `row`. */
typedef struct {
    int64_t *at;
    int32_t *row;
} Lists;

/* By place in such a list: its row goes where one of the rows [at[k], at[k + 1]) is drawn, which
 * decide that: the row itself, or, backward, those at whose edges it is read. */
typedef struct {
    int64_t *at;
    RtBoundaryRow *by;
} Deciding;

typedef struct RtHalo {
    Lists to, from; /* own rows that others read; theirs that are read here */
    /* Of a sampled exchange: which rows decide, and what was drawn by `drawn_by`. */
    Deciding to_deciding, from_deciding;
    Lists to_drawn, from_drawn;
    bool is_drawn; /* anything was */
    RtKey drawn_by;
    void *to_there, *from_there; /* their rows on the device, where there is one */
    void *held_there;            /* `from` by the numbers of rows that the device holds */
    int held_version;            /* .. of those */
} RtHalo;

/* ---- which rows ----------------------------------------------------------------------------- */
/* Some of n indices: a range, or those that are marked. */
typedef struct {
    int64_t n, lo, hi;
    uint8_t *marked; /* NULL: all of lo .. hi - 1 */
} Set;

static bool has(const Set *s, int64_t i) {
    return !s->marked || s->marked[i];
}

static gnnc_status nomem(RtExec *x) {
    return rt_fail_nomem(&x->rt->err, "rows of other processes");
}

/* How many there are behind hop k. */
static int64_t size_behind(const RtExec *x, const rt_exchange_step *e, const rt_reach *r, int k) {
    if (k + 1 == r->n) return rt_size(x->program, x->n, e->space);
    int next = r->hop[k + 1];
    return x->program->buf_count(next, x->n) - (x->program->bufs[next].dt == RT_I64);
}

static void mark_segments(const Set *from, const int64_t *ptr, Set *to) {
    for (int64_t i = from->lo; i < from->hi; i++)
        if (has(from, i)) memset(to->marked + ptr[i], 1, (size_t)(ptr[i + 1] - ptr[i]));
}

static void mark_targets(const Set *from, const int32_t *idx, Set *to) {
    for (int64_t i = from->lo; i < from->hi; i++)
        if (has(from, i) && idx[i] >= 0) to->marked[idx[i]] = 1;
}

/* Marks, in wanted[], the rows that this process reads of the space: those reached from its own
 * rows through the index arrays of r. */
static gnnc_status follow(RtExec *x, const rt_exchange_step *e, const rt_reach *r,
                          uint8_t *wanted) {
    RtPool *pool = x->rt->dist->pool;
    RtRange own = rt_dist_rows(x, r->from, x->rt->dist->rank);
    Set s = {.n = rt_size(x->program, x->n, r->from), .lo = own.lo, .hi = own.hi};
    for (int k = 0; k < r->n; k++) {
        const void *hop = x->buf[r->hop[k]];
        bool bounds = x->program->bufs[r->hop[k]].dt == RT_I64, last = k + 1 == r->n;
        Set to = {.n = size_behind(x, e, r, k)};
        to.hi = to.n;
        if (bounds && !s.marked && !last) { /* segments of a range follow each other */
            const int64_t *ptr = hop;
            s = (Set){.n = to.n, .lo = ptr[s.lo], .hi = ptr[s.hi]};
            continue;
        }
        to.marked = last ? wanted : RT_NEWN(pool, uint8_t, to.n + 1);
        if (!to.marked) return nomem(x);
        (bounds ? mark_segments(&s, hop, &to) : mark_targets(&s, hop, &to));
        rt_pool_drop(pool, s.marked);
        s = to;
    }
    return GNNC_OK;
}

/* Lists the wanted rows that other processes own, ordered by process. */
static gnnc_status list(RtExec *x, const rt_exchange_step *e, const uint8_t *wanted, Lists *l) {
    const RtDist *o = x->rt->dist;
    int64_t n = 0, rows = rt_size(x->program, x->n, e->space);
    RtRange own = rt_dist_rows(x, e->space, o->rank);
    for (int64_t i = 0; i < rows; i++) n += wanted[i] && (i < own.lo || i >= own.hi);
    l->at = RT_NEWN(o->pool, int64_t, o->n + 1);
    l->row = RT_NEWN(o->pool, int32_t, n + 1);
    if (!l->at || !l->row) return nomem(x);
    n = 0;
    for (int r = 0; r < o->n; r++) {
        RtRange of = rt_dist_rows(x, e->space, r);
        for (int64_t i = of.lo; i < of.hi && r != o->rank; i++)
            if (wanted[i]) l->row[n++] = (int32_t)i;
        l->at[r + 1] = n;
    }
    return GNNC_OK;
}

/* ---- which of them are drawn ---------------------------------------------------------------- */
/* A walk along the index arrays of a sampled exchange. */
typedef struct {
    const RtExec *x;
    const rt_exchange_step *e;
    const rt_reach *r;
    const int32_t *place; /* by row: 1 + its place in the list; 0: it is not there */
    RtBoundaryRow *last;  /* by place: the last deciding row */
    Deciding *to;         /* by place; at[k + 1] counts those of k where there is no `by`, else
                             at[k] is where the next one of k goes */
} DecidingWalk;

/* A row at `place` comes where row `by` is drawn.  The walk comes to equal ones one after the
 * other, so the last one tells whether this one is there. */
static void add_deciding(DecidingWalk *w, int64_t place, RtBoundaryRow by) {
    RtBoundaryRow *last = &w->last[place];
    if (last->space == by.space && last->row == by.row) return;
    *last = by;
    if (w->to->by)
        w->to->by[w->to->at[place]++] = by;
    else
        w->to->at[place + 1]++;
}

/* Adds what decides on rows that row i, behind k hops, leads to.  from: the own row, where it is
 * this one that is drawn (backward); space -1: it is the row itself. */
static void follow_deciding(DecidingWalk *w, int k, int64_t i, RtBoundaryRow from) {
    if (k == w->r->n) {
        RtBoundaryRow itself = {w->e->space, (int32_t)i};
        if (w->place[i]) add_deciding(w, w->place[i] - 1, from.space < 0 ? itself : from);
        return;
    }
    const void *hop = w->x->buf[w->r->hop[k]];
    if (w->x->program->bufs[w->r->hop[k]].dt == RT_I64) {
        const int64_t *ptr = hop;
        for (int64_t j = ptr[i]; j < ptr[i + 1]; j++) follow_deciding(w, k + 1, j, from);
    } else if (((const int32_t *)hop)[i] >= 0) {
        follow_deciding(w, k + 1, ((const int32_t *)hop)[i], from);
    }
}

/* Is it the own row that is drawn, at whose edges the rows are read? */
static bool is_backward(const DecidingWalk *w, const rt_reach *r) {
    return w->x->program->bufs[r->hop[0]].dt == RT_I64;
}

/* Walks from all own rows, of relations from the same rows at once: these decide for all of them.
 * n: rows of the list. */
static void walk_deciding(DecidingWalk *w, int64_t n) {
    const rt_reach *all = w->e->reach;
    for (int64_t k = 0; k < n; k++) w->last[k] = (RtBoundaryRow){-1, -1};
    for (int i = 0; i < w->e->n; i++) {
        RtRange own = rt_dist_rows(w->x, all[i].from, w->x->rt->dist->rank);
        w->r = &all[i];
        for (int64_t k = own.lo; k < own.hi && !is_backward(w, w->r); k++)
            follow_deciding(w, 0, k, (RtBoundaryRow){-1, -1});
    }
    for (int i = 0; i < w->e->n; i++) {
        bool done = !is_backward(w, &all[i]);
        for (int j = 0; j < i; j++) done |= is_backward(w, &all[j]) && all[j].from == all[i].from;
        RtRange own = rt_dist_rows(w->x, all[i].from, w->x->rt->dist->rank);
        for (int64_t k = own.lo; k < own.hi && !done; k++)
            for (int j = i; j < w->e->n; j++) {
                w->r = &all[j];
                if (is_backward(w, w->r) && w->r->from == all[i].from)
                    follow_deciding(w, 0, k, (RtBoundaryRow){all[i].from, (int32_t)k});
            }
    }
}

/* Finds what decides on the rows of the list, which this process reads. */
static gnnc_status find_deciding(RtExec *x, const rt_exchange_step *e, const Lists *l,
                                 Deciding *to) {
    const RtDist *o = x->rt->dist;
    int64_t n = l->at[o->n];
    int32_t *place = RT_NEWN(o->pool, int32_t, rt_size(x->program, x->n, e->space) + 1);
    RtBoundaryRow *last = RT_NEWN(o->pool, RtBoundaryRow, n + 1);
    DecidingWalk w = {.x = x, .e = e, .place = place, .last = last, .to = to};
    to->at = RT_NEWN(o->pool, int64_t, n + 1);
    if (place && last && to->at) {
        for (int64_t k = 0; k < n; k++) place[l->row[k]] = (int32_t)k + 1;
        walk_deciding(&w, n);
        for (int64_t k = 0; k < n; k++) to->at[k + 1] += to->at[k];
        to->by = RT_NEWN(o->pool, RtBoundaryRow, to->at[n] + 1);
    }
    if (to->by) {
        walk_deciding(&w, n);
        for (int64_t k = n; k > 0; k--) to->at[k] = to->at[k - 1]; /* each was moved to its end */
        to->at[0] = 0;
    }
    rt_pool_drop(o->pool, place);
    rt_pool_drop(o->pool, last);
    return to->by ? GNNC_OK : nomem(x);
}

/* Keeps of a list what is drawn in this step. */
static void draw(const RtExec *x, const Lists *all, const Deciding *c, Lists *drawn) {
    int64_t n = 0;
    for (int r = 0; r < x->rt->dist->n; r++) {
        for (int64_t k = all->at[r]; k < all->at[r + 1]; k++) {
            bool is_drawn = false;
            for (int64_t i = c->at[k]; i < c->at[k + 1] && !is_drawn; i++)
                is_drawn = rt_boundary_drawn(x, c->by[i]);
            if (is_drawn) drawn->row[n++] = all->row[k];
        }
        drawn->at[r + 1] = n;
    }
}

static gnnc_status room_to_draw(RtExec *x, const Lists *all, Lists *drawn) {
    const RtDist *o = x->rt->dist;
    drawn->at = RT_NEWN(o->pool, int64_t, o->n + 1);
    drawn->row = RT_NEWN(o->pool, int32_t, all->at[o->n] + 1);
    return drawn->at && drawn->row ? GNNC_OK : nomem(x);
}

/* Draws the rows of a halo for the step under way. */
static void draw_halo(const RtExec *x, RtHalo *h) {
    RtKey key = rt_boundary_key(x);
    if (h->is_drawn && h->drawn_by.k0 == key.k0 && h->drawn_by.k1 == key.k1) return;
    h->is_drawn = true;
    h->drawn_by = key;
    draw(x, &h->to, &h->to_deciding, &h->to_drawn);
    draw(x, &h->from, &h->from_deciding, &h->from_drawn);
}

/* Rows that were not drawn are zeros: a select leaves out what is made of them. */
static void clear_rows(const RtExec *x, const RtHalo *h, char *buf, size_t row) {
    const Lists *all = &h->from, *drawn = &h->from_drawn;
    int64_t n = x->rt->dist->n, at = 0;
    for (int64_t k = 0; k < all->at[n]; k++) {
        bool is_drawn = at < drawn->at[n] && drawn->row[at] == all->row[k];
        at += is_drawn;
        if (!is_drawn) memset(buf + (size_t)all->row[k] * row, 0, row);
    }
}

/* ---- telling each other --------------------------------------------------------------------- */
/* Tells each process which of its rows this one wants, first how many, then which; h->to gets what
 * others want of this one. */
static gnnc_status ask(RtExec *x, RtMessages *m, RtHalo *h, int64_t *count) {
    const RtDist *o = x->rt->dist;
    gnnc_status st;
    for (int r = 0; r < o->n; r++) {
        count[r] = h->from.at[r + 1] - h->from.at[r];
        rt_messages_put(m, r, &count[r], sizeof *count, &h->to.at[r + 1], sizeof *count);
    }
    TRY(st, rt_dist_exchange_uncounted(x, "rows", m));
    for (int r = 0; r < o->n; r++) h->to.at[r + 1] += h->to.at[r];
    h->to.row = RT_NEWN(o->pool, int32_t, h->to.at[o->n] + 1);
    if (!h->to.row) return nomem(x);
    for (int r = 0; r < o->n; r++)
        rt_messages_put(m, r, h->from.row + h->from.at[r], (size_t)count[r] * sizeof(int32_t),
                        h->to.row + h->to.at[r],
                        (size_t)(h->to.at[r + 1] - h->to.at[r]) * sizeof(int32_t));
    st = rt_dist_exchange_uncounted(x, "rows", m);
out:
    return st;
}

/* Tells each process which rows decide on those that this one wants of it: first how many of each,
 * then which. */
static gnnc_status ask_deciding(RtExec *x, RtMessages *m, RtHalo *h) {
    const RtDist *o = x->rt->dist;
    gnnc_status st;
    const Deciding *from = &h->from_deciding;
    Deciding *to = &h->to_deciding;
    int64_t n_from = h->from.at[o->n], n_to = h->to.at[o->n];
    int64_t *count = RT_NEWN(o->pool, int64_t, n_from + 1);
    to->at = RT_NEWN(o->pool, int64_t, n_to + 1);
    if (!count || !to->at) return nomem(x);
    for (int64_t k = 0; k < n_from; k++) count[k] = from->at[k + 1] - from->at[k];
    for (int r = 0; r < o->n; r++)
        rt_messages_put(m, r, count + h->from.at[r],
                        (size_t)(h->from.at[r + 1] - h->from.at[r]) * sizeof *count,
                        to->at + 1 + h->to.at[r],
                        (size_t)(h->to.at[r + 1] - h->to.at[r]) * sizeof *to->at);
    TRY(st, rt_dist_exchange_uncounted(x, "rows", m));
    for (int64_t k = 0; k < n_to; k++) to->at[k + 1] += to->at[k];
    to->by = RT_NEWN(o->pool, RtBoundaryRow, to->at[n_to] + 1);
    if (!to->by) st = nomem(x);
    if (st != GNNC_OK) goto out;
    for (int r = 0; r < o->n; r++) {
        int64_t lo = from->at[h->from.at[r]], hi = from->at[h->from.at[r + 1]];
        int64_t at = to->at[h->to.at[r]], end = to->at[h->to.at[r + 1]];
        rt_messages_put(m, r, from->by + lo, (size_t)(hi - lo) * sizeof(RtBoundaryRow), to->by + at,
                        (size_t)(end - at) * sizeof(RtBoundaryRow));
    }
    st = rt_dist_exchange_uncounted(x, "rows", m);
out:
    rt_pool_drop(o->pool, count);
    return st;
}

/* Where steps run on a device, it gets the lists, too. */
static gnnc_status send_lists(RtExec *x, RtHalo *h) {
    const int n = x->rt->dist->n;
    if (!x->rt->device) return GNNC_OK;
    gnnc_status st =
        rt_device_rows_copy(x, h->to.row, (size_t)h->to.at[n] * sizeof *h->to.row, &h->to_there);
    if (st != GNNC_OK) return st;
    return rt_device_rows_copy(x, h->from.row, (size_t)h->from.at[n] * sizeof *h->from.row,
                               &h->from_there);
}

/* What a sampled exchange needs beyond its lists. */
static gnnc_status open_draws(RtExec *x, const rt_exchange_step *e, RtMessages *m, RtHalo *h) {
    gnnc_status st = find_deciding(x, e, &h->from, &h->from_deciding);
    if (st == GNNC_OK) st = ask_deciding(x, m, h);
    if (st == GNNC_OK) st = room_to_draw(x, &h->to, &h->to_drawn);
    if (st == GNNC_OK) st = room_to_draw(x, &h->from, &h->from_drawn);
    return st;
}

/* Builds the halo of an exchange: finds the rows that this process reads of others, and requests
 * them of their owners. */
static gnnc_status build_halo(RtExec *x, const rt_exchange_step *e, RtMessages *m, RtHalo *h) {
    const RtDist *o = x->rt->dist;
    gnnc_status st = GNNC_OK;
    uint8_t *wanted = RT_NEWN(o->pool, uint8_t, rt_size(x->program, x->n, e->space) + 1);
    int64_t *count = RT_NEWN(o->pool, int64_t, o->n);
    h->to.at = RT_NEWN(o->pool, int64_t, o->n + 1);
    if (!wanted || !count || !h->to.at) st = nomem(x);
    for (int i = 0; i < e->n && st == GNNC_OK; i++) st = follow(x, e, &e->reach[i], wanted);
    if (st == GNNC_OK) st = list(x, e, wanted, &h->from);
    if (st == GNNC_OK) st = ask(x, m, h, count);
    if (st == GNNC_OK && e->sampled) st = open_draws(x, e, m, h);
    if (st == GNNC_OK) st = send_lists(x, h);
    rt_pool_drop(o->pool, wanted);
    rt_pool_drop(o->pool, count);
    return st;
}

/* Whether two exchanges bring the same rows, so that they can share one halo. */
static bool same_rows(const rt_exchange_step *a, const rt_exchange_step *b) {
    bool same =
        a->space == b->space && a->cuts == b->cuts && a->n == b->n && a->sampled == b->sampled;
    for (int i = 0; i < a->n && same; i++) {
        const rt_reach *r = &a->reach[i], *s = &b->reach[i];
        same = r->from == s->from && r->n == s->n &&
               memcmp(r->hop, s->hop, (size_t)r->n * sizeof *r->hop) == 0;
    }
    return same;
}

/* *out gets the lists of rows of exchange i, which are built on first use. */
static gnnc_status find_halo(RtExec *x, int i, RtMessages *m, RtHalo **out) {
    RtDist *o = x->rt->dist;
    const rt_exchange_step *all = x->program->exchanges;
    for (int k = 0; k < x->program->n_exchanges && !o->halo[i]; k++)
        if (o->halo[k] && same_rows(&all[i], &all[k])) o->halo[i] = o->halo[k];
    *out = o->halo[i];
    if (*out) return GNNC_OK;
    if (x->rt->device && rt_device_records(x->rt->device))
        return rt_fail(&x->rt->err, GNNC_E_STATE, "no run before it has exchanged these rows");
    RtHalo *h = RT_NEW(o->pool, RtHalo);
    gnnc_status st = h ? build_halo(x, &all[i], m, h) : nomem(x);
    if (st == GNNC_OK) *out = o->halo[i] = h;
    return st;
}

/* ---- rows ----------------------------------------------------------------------------------- */
static gnnc_status tell(RtExec *x, RtMessages *m) {
    return rt_dist_exchange(x, "rows", m);
}

typedef struct {
    float *partial;
    int64_t count; /* numbers of each */
} Fold;

/* All rows of each process, from where they lie to where they will: to all, or to the first. */
static gnnc_status all_gather_rows(RtExec *x, const rt_exchange_step *e, RtMessages *m, char *buf,
                                   size_t row) {
    const RtDist *o = x->rt->dist;
    for (int r = 0; r < o->n; r++) {
        RtRange own = e->cuts ? rt_dist_chunks(o, o->rank) : rt_dist_rows(x, e->space, o->rank);
        RtRange of = e->cuts ? rt_dist_chunks(o, r) : rt_dist_rows(x, e->space, r);
        bool goes = !e->to_first || r == 0, comes = !e->to_first || o->rank == 0;
        rt_messages_put(m, r, buf + (size_t)own.lo * row,
                        goes ? (size_t)(own.hi - own.lo) * row : 0, buf + (size_t)of.lo * row,
                        comes ? (size_t)(of.hi - of.lo) * row : 0);
    }
    return tell(x, m);
}

/* Takes the rows that others want out of buf. */
static gnnc_status take_rows(RtExec *x, const RtHalo *h, const Lists *to, const char *buf,
                             size_t row, char *out) {
    int64_t n = to->at[x->rt->dist->n];
    if (x->rt->device)
        return rt_device_rows_do(x, (RtRowsOp){RT_ROWS_TAKE, n, (int64_t)row}, out, buf,
                                 h->to_there);
    for (int64_t k = 0; k < n; k++)
        memcpy(out + (size_t)k * row, buf + (size_t)to->row[k] * row, row);
    return GNNC_OK;
}

/* Where the rows of the halo are received, n_bytes of exchange i, which goes on as number `beside`:
 * room of its own where later steps read them again.  NULL: no memory (recorded). */
static char *room_to_receive(RtExec *x, int i, int beside, size_t n_bytes) {
    RtDist *o = x->rt->dist;
    if (!o->keeps) return rt_dist_buffer(x, 2 * beside + 1, n_bytes);
    if (!o->kept[i]) o->kept[i] = rt_dist_memory(x, n_bytes);
    return o->kept[i];
}

/* *row gets where on the device the rows of the halo go, in the numbers that buffer b has there. */
static gnnc_status rows_there(RtExec *x, int b, RtHalo *h, const void **row) {
    const RtDevice *d = x->rt->device;
    const int64_t n = h->from.at[x->rt->dist->n];
    *row = h->from_there;
    if (!rt_held_part(x, b)) return GNNC_OK;
    if (!h->held_there || h->held_version != d->held_version) {
        int32_t *number = RT_NEWN(x->rt->dist->pool, int32_t, n + 1);
        if (!number) return nomem(x);
        rt_held_numbers(x, b, h->from.row, n, number);
        rt_device_rows_drop(x, h->held_there);
        gnnc_status st = rt_device_rows_copy(x, number, (size_t)n * sizeof *number, &h->held_there);
        rt_pool_drop(x->rt->dist->pool, number);
        if (st != GNNC_OK) return st;
        h->held_version = d->held_version;
    }
    *row = h->held_there;
    return GNNC_OK;
}

/* Sends the rows that others want and receives the rows of the halo into buf, as exchange i of the
 * program, which may go on when it returns (beside.c); row: bytes of one row.  A stale step sends
 * nothing and reads what an earlier one received; what none did, as in a loop that ended at once,
 * it receives. */
static gnnc_status receive_halo(RtExec *x, int i, RtHalo *h, RtMessages *m, char *buf, size_t row) {
    const RtDist *o = x->rt->dist;
    bool sampled = x->program->exchanges[i].sampled;
    if (sampled) {
        draw_halo(x, h);
        clear_rows(x, h, buf, row);
    }
    const Lists *to = sampled ? &h->to_drawn : &h->to, *from = sampled ? &h->from_drawn : &h->from;
    int64_t n_to = to->at[o->n], n_from = from->at[o->n];
    int beside = rt_beside_pending(x);
    bool stale = o->stale && o->kept[i];
    char *in = room_to_receive(x, i, beside, (size_t)n_from * row + 1);
    RtArrival come = {.buf = buf, .in = in, .row = from->row, .n = n_from, .row_bytes = row};
    if (x->rt->device) {
        const void *there;
        gnnc_status st = rows_there(x, x->program->exchanges[i].buf, h, &there);
        if (st != GNNC_OK) return st;
        come.row = there;
    }
    if (stale) return rt_arrival_put(x, &come);
    char *out = rt_dist_buffer(x, 2 * beside, (size_t)n_to * row + 1);
    if (!out || !in) return GNNC_E_NOMEM;
    gnnc_status st = take_rows(x, h, to, buf, row, out);
    if (st != GNNC_OK) return st;
    for (int r = 0; r < o->n; r++)
        rt_messages_put(m, r, out + (size_t)to->at[r] * row,
                        (size_t)(to->at[r + 1] - to->at[r]) * row, in + (size_t)from->at[r] * row,
                        (size_t)(from->at[r + 1] - from->at[r]) * row);
    return rt_beside_exchange(x, i, m, &come);
}

/* Of partial sums only their sum is read: those of a part are added in order, and parts by a tree.
 * It takes the place of the first, and the others that of nothing. */
static gnnc_status fold_part(RtExec *x, void *user, int64_t part, float *to) {
    const Fold *f = user;
    RtRange cuts = rt_dist_part_chunks(x->rt->dist, part);
    memcpy(to, f->partial + cuts.lo * f->count, (size_t)f->count * sizeof *to);
    for (int64_t c = cuts.lo + 1; c < cuts.hi; c++)
        for (int64_t i = 0; i < f->count; i++) to[i] += f->partial[c * f->count + i];
    return GNNC_OK;
}

/* Adds up the partial sums of all chunks over all processes, in a fixed order: the total goes to
 * the first chunk, zeros to the others. */
static gnnc_status add_chunks(RtExec *x, float *partial, int64_t count) {
    Fold f = {partial, count};
    RtSum s = {.count = count, .of_part = fold_part, .user = &f, .chunks = partial};
    float *sum = (float *)rt_dist_buffer(x, 0, (size_t)count * sizeof *sum + 1);
    if (!sum) return GNNC_E_NOMEM;
    gnnc_status st = rt_sum_parts(x, &s, sum);
    if (st != GNNC_OK) return st;
    if (x->rt->device)
        return rt_device_rows_do(x, (RtRowsOp){RT_ROWS_ALONE, count, RT_SUM_CHUNKS}, partial, sum,
                                 NULL);
    memset(partial, 0, (size_t)(RT_SUM_CHUNKS * count) * sizeof *partial);
    memcpy(partial, sum, (size_t)count * sizeof *partial);
    return GNNC_OK;
}

/* Brings this process the rows of buffer e->buf that other processes own. Three cases: the halo
 * (rows that it reads), all rows, or chunks of sums that are only added up. Step i of the
 * program. */
gnnc_status rt_exchange(RtExec *x, int i) {
    const rt_exchange_step *e = &x->program->exchanges[i];
    RtMessages m;
    RtHalo *h = NULL;
    size_t n = 0;
    if (!rt_dist_several(x) && !e->folds) return GNNC_OK;
    int64_t rows = e->cuts ? RT_SUM_CHUNKS : rt_size(x->program, x->n, e->space);
    gnnc_status st = rt_buf_bytes(x, e->buf, &n);
    if (!e->n || rt_beside_pending(x) == RT_BESIDE_MOST) rt_beside_end(x); /* it needs their room */
    if (st != GNNC_OK || rows == 0) return st;
    void *buf = x->rt->device ? rt_device_buffers(x)[e->buf] : x->buf[e->buf];
    if (e->folds) return add_chunks(x, buf, (int64_t)(n / sizeof(float)) / rows);
    if (st == GNNC_OK && e->n) st = find_halo(x, i, &m, &h);
    if (st == GNNC_OK)
        st = h ? receive_halo(x, i, h, &m, buf, n / (size_t)rows)
               : all_gather_rows(x, e, &m, buf, n / (size_t)rows);
    return st;
}

/* ---- what that is --------------------------------------------------------------------------- */
/* The number of wanted rows in a range. */
static int64_t count_in(const uint8_t *wanted, RtRange r) {
    int64_t n = 0;
    for (int64_t i = r.lo; i < r.hi; i++) n += wanted[i];
    return n;
}

/* How many of the wanted rows come on average in a step, of which they are sampled. */
static gnnc_status expect_rows(RtExec *x, const rt_exchange_step *e, const uint8_t *wanted,
                               double *of) {
    const RtDist *o = x->rt->dist;
    double out = 1 - x->program->recipe.sampled_boundary;
    Lists l = {0};
    Deciding c = {0};
    gnnc_status st = list(x, e, wanted, &l);
    if (st == GNNC_OK) st = find_deciding(x, e, &l, &c);
    for (int r = 0; r < o->n && st == GNNC_OK; r++) {
        of[r] = 0;
        for (int64_t k = l.at[r]; k < l.at[r + 1]; k++)
            of[r] += 1 - pow(out, (double)(c.at[k + 1] - c.at[k]));
    }
    rt_pool_drop(o->pool, l.at);
    rt_pool_drop(o->pool, l.row);
    rt_pool_drop(o->pool, c.at);
    rt_pool_drop(o->pool, c.by);
    return st;
}

/* Adds to *to the rows that process o->rank reads of the others; of sampled ones as many as on
 * average. */
static gnnc_status count_halo(RtExec *x, const rt_exchange_step *e, uint8_t *wanted, int64_t row,
                              gnnc_traffic *to) {
    const RtDist *o = x->rt->dist;
    gnnc_status st = GNNC_OK;
    memset(wanted, 0, (size_t)rt_size(x->program, x->n, e->space));
    for (int i = 0; i < e->n && st == GNNC_OK; i++) st = follow(x, e, &e->reach[i], wanted);
    double drawn[RT_SUM_CHUNKS];
    if (st == GNNC_OK && e->sampled) st = expect_rows(x, e, wanted, drawn);
    for (int r = 0; r < o->n && st == GNNC_OK; r++) {
        int64_t n = r == o->rank ? 0
                    : e->sampled ? llround(drawn[r])
                                 : count_in(wanted, rt_dist_rows(x, e->space, r));
        to->halo_rows += n;
        to->halo_bytes += n * row;
        to->messages += n * row > 0;
    }
    return st;
}

/* Adds to *to what process o->rank sends to all others where all rows are exchanged. */
static void count_all(RtExec *x, const rt_exchange_step *e, int64_t row, gnnc_traffic *to) {
    const RtDist *o = x->rt->dist;
    RtRange own = e->cuts ? rt_dist_chunks(o, o->rank) : rt_dist_rows(x, e->space, o->rank);
    int64_t others = !e->to_first ? o->n - 1 : o->rank > 0;
    int64_t n_bytes = (own.hi - own.lo) * row * others;
    *(e->cuts ? &to->sum_bytes : &to->whole_bytes) += n_bytes;
    to->messages += n_bytes > 0 ? others : 0;
}

/* Adds to `to` what a sum of n bytes over all processes sends. */
static void count_sum(const RtExec *x, int64_t n_bytes, gnnc_traffic *to) {
    int64_t bytes, messages;
    rt_sum_parts_sent(x->rt->dist, n_bytes / (int64_t)sizeof(float), &bytes, &messages);
    to->sum_bytes += bytes;
    to->messages += messages;
}

/* Adds to *to what all processes together send in one exchange: rows of halos, whole arrays or
 * sums. */
static gnnc_status count_step(RtExec *x, const rt_exchange_step *e, gnnc_traffic *to) {
    RtDist *o = x->rt->dist;
    int64_t all = rt_size(x->program, x->n, e->space);
    int64_t rows = e->sums ? 1 : e->cuts ? RT_SUM_CHUNKS : all;
    size_t n = 0;
    gnnc_status st = rt_buf_bytes(x, e->buf, &n);
    if (st != GNNC_OK || rows == 0) return st;
    uint8_t *wanted = RT_NEWN(o->pool, uint8_t, all + 1);
    if (!wanted) return nomem(x);
    int64_t row = (int64_t)n / rows;
    for (o->rank = 0; o->rank < o->n && st == GNNC_OK; o->rank++) {
        if (e->n)
            st = count_halo(x, e, wanted, row, to);
        else if (e->sums || e->folds)
            count_sum(x, row, to);
        else
            count_all(x, e, row, to);
    }
    rt_pool_drop(o->pool, wanted);
    bool sum = e->sums || e->cuts;
    to->bytes = to->halo_bytes + to->whole_bytes + to->sum_bytes;
    to->least_bytes = sum ? 2 * (o->n - 1) * row : to->bytes;
    return st;
}

/* May n processes share the rows? */
static gnnc_status may_be(RtExec *x, int n) {
    int parts = x->rt->dist->n_parts;
    if (n >= 1 && n <= parts) return GNNC_OK;
    return rt_fail(&x->rt->err, GNNC_E_RANGE, "%d processes: the data are in %d part%s", n, parts,
                   parts == 1 ? "" : "s");
}

/* What exchange i would send if there were n processes. */
gnnc_status rt_dist_traffic_of(RtExec *x, int i, int n, gnnc_traffic *out) {
    RtDist *own = x->rt->dist, as = *own;
    gnnc_status st = may_be(x, n);
    if (st != GNNC_OK) return st;
    as.n = n;
    x->rt->dist = &as;
    st = n > 1 ? count_step(x, &x->program->exchanges[i], out) : GNNC_OK;
    x->rt->dist = own;
    return st;
}

/* What a run of the phase would send if there were n processes, all exchanges together. */
gnnc_status rt_dist_traffic(RtExec *x, int phase, int n, gnnc_traffic *out) {
    gnnc_status st = may_be(x, n);
    for (int i = 0; i < x->program->n_exchanges && st == GNNC_OK; i++) {
        gnnc_traffic one = {0};
        if (x->program->exchanges[i].phase != phase) continue;
        st = rt_dist_traffic_of(x, i, n, &one);
        out->messages += one.messages;
        out->halo_bytes += one.halo_bytes;
        out->whole_bytes += one.whole_bytes;
        out->sum_bytes += one.sum_bytes;
        out->halo_rows += one.halo_rows;
        out->least_bytes += one.least_bytes;
        out->bytes += one.bytes;
    }
    return st;
}
