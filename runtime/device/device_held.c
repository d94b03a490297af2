/* Rows that a device holds, where processes share the rows of a graph:
 *
 *     rows of the data    0 .. 99 | 100 .. 199 (own) | 200 .. 399       it reads 7, 50, 203, 390
 *     held                7 50 | 100 .. 199 | 203 390
 *     their numbers      98 99 | 100 .. 199 | 200 201
 *     a buffer's address ^- 98 rows before the first one that is held
 *
 * Own rows keep their numbers, so steps and sums over own rows are as with all rows, and the order
 * of rows stays.  Index arrays that are `local` (rt_buf) have the new numbers, here not: the host
 * keeps all of the data as they are, and what is sent and received is told by the rows' own
 * numbers.
 *
 * A process reads what its index arrays lead to: from the entries of own rows, and from those
 * entries of others that these lead to, until nothing is new. */
#include "device_held.h"

#include <string.h>

static const RtHeldRows *held_of(const RtExec *x, int b) {
    const RtDevice *d = x->rt->device;
    const int own = x->program->bufs[b].own;
    return d && d->held && own && d->held[own - 1].known ? &d->held[own - 1] : NULL;
}

/* ---- index arrays ---------------------------------------------------------------------------- */
/* The map in the order of whose segments an index array is; NULL: it is in the order of its rows.
 */
static const rt_map *order_of(const rt_program *p, int b) {
    const rt_buf *buf = &p->bufs[b];
    if (buf->kind != RT_BUF_MAP) return NULL;
    if (buf->by >= 0) return &p->maps[buf->by];
    return p->maps[buf->map].perm_buf == b ? &p->maps[buf->map] : NULL;
}

/* The space of the rows whose numbers it holds. */
static int space_of_numbers(const rt_program *p, int b) {
    const rt_map *m = &p->maps[p->bufs[b].map];
    return p->bufs[b].by < 0 && m->perm_buf == b ? m->from : m->to;
}

/* Of an index array in a map's order: the entries of own rows. */
static RtRange own_entries(const RtExec *x, const rt_map *order, const RtHeldRows *h) {
    const int64_t *ptr = x->buf[order->ptr_buf];
    if (!ptr) return (RtRange){0, 0}; /* a relation that is not built yet */
    return (RtRange){ptr[h->own.lo], ptr[h->own.hi]};
}

/* ---- which rows ------------------------------------------------------------------------------ */
typedef struct {
    RtExec *x;
    RtPool pool;
    RtHeldRows *held; /* [n_spaces] */
    uint8_t **marked; /* [n_spaces] rows of others that are read */
    bool more;
} Search;

static void mark(Search *s, int space, int64_t row) {
    const RtHeldRows *h = &s->held[space];
    if (row < 0 || (row >= h->own.lo && row < h->own.hi) || s->marked[space][row]) return;
    s->marked[space][row] = 1;
    s->more = true;
}

/* Marks what a local index array leads to. */
static void follow(Search *s, int b) {
    const rt_program *p = s->x->program;
    const int32_t *idx = s->x->buf[b];
    const int from = p->bufs[b].own - 1, to = space_of_numbers(p, b);
    const rt_map *order = order_of(p, b);
    const RtHeldRows *h = &s->held[from];
    if (!idx || !h->known || !s->held[to].known) return;
    RtRange own = order ? own_entries(s->x, order, h) : h->own;
    for (int64_t i = own.lo; i < own.hi; i++) mark(s, to, idx[i]);
    const int64_t rows = order ? 0 : rt_size(p, s->x->n, from);
    for (int64_t i = 0; i < rows; i++)
        if (s->marked[from][i]) mark(s, to, idx[i]);
}

static gnnc_status list_rows(Search *s, int space) {
    RtHeldRows *h = &s->held[space];
    const int64_t rows = rt_size(s->x->program, s->x->n, space);
    const uint8_t *marked = s->marked[space];
    for (int64_t i = 0; i < rows; i++) h->n += marked[i];
    h->row = RT_NEWN(&s->x->rt->pool, int32_t, h->n + 1);
    if (!h->row) return rt_fail_nomem(&s->x->rt->err, "rows on the device");
    h->n = 0;
    for (int64_t i = 0; i < rows; i++) {
        if (marked[i]) h->row[h->n++] = (int32_t)i;
        if (marked[i] && i < h->own.lo) h->n_below++;
    }
    return GNNC_OK;
}

/* Spaces of which parts are held, as soon as it is known where they are cut. */
static gnnc_status begin(Search *s) {
    const rt_program *p = s->x->program;
    const RtDist *o = s->x->rt->dist;
    s->marked = RT_NEWN(&s->pool, uint8_t *, p->n_spaces + 1);
    if (!s->marked) return rt_fail_nomem(&s->x->rt->err, "rows on the device");
    for (int b = 0; b < p->n_bufs; b++) {
        const int space = p->bufs[b].own - 1;
        if (space < 0 || s->held[space].known || !o->chunk_bounds[space]) continue;
        s->held[space] = (RtHeldRows){.known = true, .own = rt_dist_rows(s->x, space, o->rank)};
        s->marked[space] = RT_NEWN(&s->pool, uint8_t, rt_size(p, s->x->n, space) + 1);
        if (!s->marked[space]) return rt_fail_nomem(&s->x->rt->err, "rows on the device");
    }
    return GNNC_OK;
}

static gnnc_status find_rows(Search *s) {
    const rt_program *p = s->x->program;
    gnnc_status st = begin(s);
    s->more = st == GNNC_OK;
    while (s->more) {
        s->more = false;
        for (int b = 0; b < p->n_bufs; b++)
            if (p->bufs[b].own && p->bufs[b].local) follow(s, b);
    }
    for (int i = 0; i < p->n_spaces && st == GNNC_OK; i++)
        if (s->held[i].known) st = list_rows(s, i);
    return st;
}

/* Whether some buffer has a place that is not the trainer's, where all of its rows are. */
static bool any_is_lent(const RtDevice *d) {
    for (int b = 0; b < d->x->program->n_bufs; b++)
        if (d->x->program->bufs[b].own && d->lent[b]) return true;
    return false;
}

gnnc_status rt_held_open(RtExec *x) {
    RtDevice *d = x->rt->device;
    const int n = x->program->n_spaces;
    for (int i = 0; i < n && d->held; i++) rt_pool_drop(&x->rt->pool, d->held[i].row);
    rt_pool_drop(&x->rt->pool, d->held);
    d->held = NULL;
    d->held_version++;
    if (!rt_dist_several(x) || any_is_lent(d)) return GNNC_OK;
    Search s = {.x = x, .held = RT_NEWN(&x->rt->pool, RtHeldRows, n + 1)};
    if (!s.held) return rt_fail_nomem(&x->rt->err, "rows on the device");
    rt_pool_init(&s.pool, &x->rt->pool.from);
    gnnc_status st = find_rows(&s);
    rt_pool_free(&s.pool);
    d->held = s.held;
    return st;
}

/* ---- where they are -------------------------------------------------------------------------- */
/* What the device has of a buffer. */
typedef struct {
    int64_t first, end; /* numbers of rows, or of entries */
    size_t row_bytes;
} Window;

static gnnc_status window_of(RtExec *x, int b, const RtHeldRows *h, Window *w) {
    const rt_map *order = order_of(x->program, b);
    if (order) {
        RtRange own = own_entries(x, order, h);
        *w = (Window){own.lo, own.hi, sizeof(int32_t)};
        return GNNC_OK;
    }
    size_t n = 0;
    const int64_t rows = rt_size(x->program, x->n, x->program->bufs[b].own - 1);
    gnnc_status st = rt_buf_bytes(x, b, &n);
    *w = (Window){h->own.lo - h->n_below, h->own.hi + h->n - h->n_below,
                  rows > 0 ? n / (size_t)rows : 0};
    return st;
}

bool rt_held_part(const RtExec *x, int b) {
    return held_of(x, b) != NULL;
}

gnnc_status rt_held_bytes(RtExec *x, int b, size_t *n_bytes, size_t *before) {
    const RtHeldRows *h = held_of(x, b);
    Window w;
    *before = 0;
    if (!h) return rt_buf_bytes(x, b, n_bytes);
    gnnc_status st = window_of(x, b, h, &w);
    if (st != GNNC_OK) return st;
    const size_t align = x->rt->device->ops->align, first = (size_t)w.first * w.row_bytes;
    *before = first / align * align;
    *n_bytes = (size_t)w.end * w.row_bytes - *before;
    return GNNC_OK;
}

/* The row of the data that has a number there. */
static int64_t row_of(const RtHeldRows *h, int64_t number) {
    if (number < h->own.lo) return h->row[number - (h->own.lo - h->n_below)];
    return number < h->own.hi ? number : h->row[h->n_below + number - h->own.hi];
}

/* The number there of a row that is held. */
static int32_t number_of(const RtHeldRows *h, int32_t row) {
    if (!h->known || row < 0 || (row >= h->own.lo && row < h->own.hi)) return row;
    int64_t lo = 0, hi = h->n;
    while (hi - lo > 1) {
        int64_t mid = lo + (hi - lo) / 2;
        *(h->row[mid] <= row ? &lo : &hi) = mid;
    }
    return (int32_t)(lo < h->n_below ? h->own.lo - h->n_below + lo : h->own.hi + lo - h->n_below);
}

void rt_held_numbers(const RtExec *x, int b, const int32_t *row, int64_t n, int32_t *number) {
    const RtHeldRows *h = held_of(x, b);
    for (int64_t i = 0; i < n; i++) number[i] = h ? number_of(h, row[i]) : row[i];
}

/* ---- copies ---------------------------------------------------------------------------------- */
/* Copies rows of others, numbers i .. end - 1 among them, between a buffer and `packed`. */
static void move_rows(const RtHeldRows *h, int64_t i, int64_t end, char *buf, char *packed,
                      size_t row, bool packs) {
    for (; i < end; i++, packed += row) {
        char *there = buf + (size_t)h->row[i] * row;
        memcpy(packs ? packed : there, packs ? there : packed, row);
    }
}

static char *place(const RtExec *x, int b, int64_t number, size_t row_bytes) {
    return (char *)((uintptr_t)x->rt->device->at.buf[b] + (size_t)number * row_bytes);
}

/* An index array whose numbers are those of rows that are held: all of its window anew. */
static gnnc_status upload_numbers(RtExec *x, int b, const RtHeldRows *h, const Window *w) {
    RtDevice *d = x->rt->device;
    const int32_t *from = x->buf[b];
    const RtHeldRows *to = &d->held[space_of_numbers(x->program, b)];
    const int64_t n = w->end - w->first;
    int32_t *numbers = RT_NEWN(&x->rt->pool, int32_t, n + 1);
    if (!numbers) return rt_fail_nomem(&x->rt->err, "rows on the device");
    const bool by_order = order_of(x->program, b) != NULL;
    for (int64_t i = 0; i < n; i++)
        numbers[i] = number_of(to, from[by_order ? w->first + i : row_of(h, w->first + i)]);
    gnnc_status st = d->ops->upload(d, place(x, b, w->first, sizeof *numbers), numbers,
                                    (size_t)n * sizeof *numbers);
    rt_pool_drop(&x->rt->pool, numbers);
    return st;
}

/* Copies the own rows, and those of others, there or back. */
static gnnc_status copy_rows(RtExec *x, int b, const RtHeldRows *h, const Window *w, bool there) {
    RtDevice *d = x->rt->device;
    const size_t row = w->row_bytes, n_own = (size_t)(h->own.hi - h->own.lo) * row;
    char *here = x->buf[b], *packed = rt_pool_alloc(&x->rt->pool, (size_t)h->n * row + 1, 1);
    const RtRange side[] = {{0, h->n_below}, {h->n_below, h->n}};
    const int64_t first[] = {w->first, h->own.hi};
    gnnc_status st;
    if (!packed) return rt_fail_nomem(&x->rt->err, "rows on the device");
    char *own = here + (size_t)h->own.lo * row, *own_there = place(x, b, h->own.lo, row);
    TRY(st, there ? d->ops->upload(d, own_there, own, n_own)
                  : d->ops->download(d, own, own_there, n_own));
    for (int i = 0; i < 2; i++) {
        size_t n = (size_t)(side[i].hi - side[i].lo) * row;
        if (there) move_rows(h, side[i].lo, side[i].hi, here, packed, row, true);
        TRY(st, there ? d->ops->upload(d, place(x, b, first[i], row), packed, n)
                      : d->ops->download(d, packed, place(x, b, first[i], row), n));
        if (!there) move_rows(h, side[i].lo, side[i].hi, here, packed, row, false);
    }
out:
    rt_pool_drop(&x->rt->pool, packed);
    return st;
}

gnnc_status rt_held_upload(RtExec *x, int b) {
    const RtHeldRows *h = held_of(x, b);
    Window w;
    gnnc_status st = window_of(x, b, h, &w);
    if (st != GNNC_OK) return st;
    if (x->program->bufs[b].local) return upload_numbers(x, b, h, &w);
    if (!order_of(x->program, b)) return copy_rows(x, b, h, &w, true);
    return x->rt->device->ops->upload(x->rt->device, place(x, b, w.first, w.row_bytes),
                                      (char *)x->buf[b] + (size_t)w.first * w.row_bytes,
                                      (size_t)(w.end - w.first) * w.row_bytes);
}

gnnc_status rt_held_download(RtExec *x, int b) {
    const RtHeldRows *h = held_of(x, b);
    Window w;
    gnnc_status st = window_of(x, b, h, &w);
    return st == GNNC_OK ? copy_rows(x, b, h, &w, false) : st;
}
