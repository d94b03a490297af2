/* Two copies of a program's buffers, and which is newer.  See device.h. */
#include "device.h"

#include "device_held.h"
#include "device_spmm.h"

#include <string.h>

#include "runtime/cuda/room.h"
#include "runtime/device/device_maps.h"
#include "runtime/memory.h"
#include "runtime/trainer/trainer.h"

/* Of numbers; rows that another phase gave lie where that put them. */
static bool is_input(const rt_buf *b) {
    return (b->kind == RT_BUF_INPUT || b->kind == RT_BUF_KEY) && b->rank == 0;
}

static bool is_scalar_output(const rt_buf *b) {
    return b->kind == RT_BUF_OUTPUT && b->rank == 0;
}

/* ---- open and close ---------------------------------------------------------------- */
/* Allocates the tables of the device state: for each buffer its place and size on the device and
 * which side has the newer content, and for each phase its recording. */
static gnnc_status make_tables(RtDevice *d) {
    RtPool *pool = &d->x->rt->pool;
    const rt_program *p = d->x->program;
    d->at.buf = RT_NEWN(pool, void *, p->n_bufs);
    d->at.n_bytes = RT_NEWN(pool, size_t, p->n_bufs);
    d->newer = RT_NEWN(pool, RtNewer, p->n_bufs);
    d->phase = RT_NEWN(pool, RtDevicePhase, p->n_phases);
    d->staged = rt_pool_alloc(pool, (size_t)p->n_bufs + 1, d->ops->align);
    d->lent = RT_NEWN(pool, const void *, p->n_bufs);
    bool ok = d->at.buf && d->at.n_bytes && d->newer && d->phase && d->staged && d->lent;
    return ok ? GNNC_OK : rt_fail_nomem(&d->x->rt->err, "the device's tables");
}

/* Bytes of the room of kernels: of each stream that steps are recorded in. */
static size_t room_bytes(const rt_program *p) {
    int n_streams = 1;
    for (int i = 0; i < p->n_phases; i++)
        if (p->phases[i].n_streams > n_streams) n_streams = p->phases[i].n_streams;
    return (size_t)n_streams * RT_DEVICE_ROOM_BYTES;
}

/* A machine without a GPU is no failure where the host can do the work; one that ran out of
 * memory is. */
static gnnc_status open_or_stay(RtDevice *d, RtWhere want) {
    RtRuntime *rt = d->x->rt;
    gnnc_status st = d->ops->open(d);
    if (st == GNNC_OK) st = d->ops->alloc(d, room_bytes(d->x->program), &d->room);
    if (st == GNNC_OK) {
        rt->device = d;
        return GNNC_OK;
    }
    d->ops->release(d, d->room);
    d->ops->close(d);
    if (want != RT_ON_ANY || st != GNNC_E_DEVICE || !rt_runs_on_host(d->x->program)) return st;
    rt_message(rt, "%s; running on the cpu", rt->err.text);
    rt->err.text[0] = '\0';
    return GNNC_OK;
}

/* Opens the device for a program that has kernels for it, unless the host is wanted. Whether the
 * host takes over where there is no device depends on `want`. */
gnnc_status rt_device_open(RtExec *x, RtWhere want, int ordinal, bool tf32) {
    const RtDeviceOps *ops = x->program->device;
    if (!ops || want == RT_ON_HOST) return GNNC_OK;
    RtDevice *d = RT_NEW(&x->rt->pool, RtDevice);
    if (!d) return rt_fail_nomem(&x->rt->err, "the device");
    *d = (RtDevice){.ops = ops, .x = x, .now = x, .running = -1, .ordinal = ordinal, .tf32 = tf32};
    gnnc_status st;
    TRY(st, make_tables(d));
    st = open_or_stay(d, want);
out:
    return st;
}

/* Gives x a device state of its own on the device that `of` has opened: another queue of work, with
 * the same places of buffers. */
gnnc_status rt_device_share(RtExec *x, const RtExec *of) {
    const RtDevice *from = of->rt->device;
    if (!from) return GNNC_OK;
    size_t n_bufs = (size_t)x->program->n_bufs;
    RtDevice *d = RT_NEW(&x->rt->pool, RtDevice);
    if (!d) return rt_fail_nomem(&x->rt->err, "the device");
    *d = (RtDevice){.ops = from->ops,
                    .x = x,
                    .now = x,
                    .running = -1,
                    .ordinal = from->ordinal,
                    .tf32 = from->tf32,
                    .groups = from->groups,
                    .gathers = from->gathers,
                    .shares = true};
    gnnc_status st = make_tables(d);
    if (st != GNNC_OK) return st;
    memcpy(d->at.buf, from->at.buf, n_bufs * sizeof *d->at.buf);
    memcpy(d->at.n_bytes, from->at.n_bytes, n_bufs * sizeof *d->at.n_bytes);
    return open_or_stay(d, RT_ON_DEVICE);
}

/* Releases all memory and recordings of the device state. */
void rt_device_close(RtExec *x) {
    RtDevice *d = x->rt->device;
    if (!d) return;
    d->ops->enter(d);
    rt_device_forget_recordings(d);
    rt_device_spmm_close(d);
    rt_device_maps_close(d);
    d->ops->release(d, d->fixed);
    d->ops->release(d, d->arena);
    d->ops->release(d, d->best);
    d->ops->release(d, d->work);
    d->ops->release(d, d->room);
    d->ops->unpin(d, d->read_back);
    rt_device_batch_close(d);
    d->ops->close(d);
    x->rt->device = NULL;
}

/* ---- copies ------------------------------------------------------------------------ */
/* Has the host a newer value of an input (a learning rate, a step number) than the device? */
static bool any_newer_input(const RtDevice *d) {
    for (int b = 0; b < d->x->program->n_bufs; b++)
        if (is_input(&d->x->program->bufs[b]) && d->newer[b] == RT_HOST_NEWER) return true;
    return false;
}

static size_t offset_of(const RtDevice *d, int b) {
    return (size_t)((char *)d->at.buf[b] - (char *)d->fixed);
}

/* Copies all inputs to the device in one transfer, if the host changed any of them. */
static gnnc_status upload_inputs(RtDevice *d) {
    if (!any_newer_input(d)) return GNNC_OK;
    for (int b = 0; b < d->x->program->n_bufs; b++) {
        if (!is_input(&d->x->program->bufs[b])) continue;
        memcpy(d->staged + offset_of(d, b), d->x->buf[b], d->at.n_bytes[b]);
        d->newer[b] = RT_SAME;
    }
    return d->ops->upload(d, d->fixed, d->staged, d->in_bytes);
}

/* Uploads buffer b if the host has changed it since the last upload. */
static gnnc_status upload_if_newer(RtDevice *d, int b) {
    if (d->newer[b] != RT_HOST_NEWER || !d->x->buf[b]) return GNNC_OK;
    gnnc_status st = rt_held_part(d->x, b)
                         ? rt_held_upload(d->x, b)
                         : d->ops->upload(d, d->at.buf[b], d->x->buf[b], d->at.n_bytes[b]);
    if (st == GNNC_OK) d->newer[b] = RT_SAME;
    return st;
}

gnnc_status rt_device_upload(RtDevice *d) {
    gnnc_status st = upload_inputs(d);
    for (int b = 0; b < d->x->program->n_bufs && st == GNNC_OK; b++) st = upload_if_newer(d, b);
    return st;
}

gnnc_status rt_device_has_buffer(RtExec *x, int b, const void **there) {
    *there = x->rt->device->at.buf[b];
    return upload_if_newer(x->rt->device, b);
}

/* *there gets the device's copy of an index array that the host has at `here`, brought up to date;
 * NULL: it has none. */
gnnc_status rt_device_has(RtExec *x, const void *here, const void **there) {
    *there = NULL;
    for (int b = 0; b < x->program->n_bufs && here; b++) {
        rt_buf_kind k = x->program->bufs[b].kind;
        if ((k != RT_BUF_MAP && k != RT_BUF_LOGICAL) || x->buf[b] != here) continue;
        return rt_device_has_buffer(x, b, there);
    }
    return GNNC_OK;
}

/* Copies all scalar outputs to the host in one transfer. */
static gnnc_status download_scalars(RtDevice *d) {
    char *to = d->read_back;
    gnnc_status st = d->ops->download(d, to, (char *)d->fixed + d->in_bytes, d->out_bytes);
    for (int b = 0; b < d->x->program->n_bufs && st == GNNC_OK; b++) {
        if (!is_scalar_output(&d->x->program->bufs[b]) || d->newer[b] != RT_DEVICE_NEWER) continue;
        memcpy(d->x->buf[b], to + offset_of(d, b) - d->in_bytes, d->at.n_bytes[b]);
        d->newer[b] = RT_SAME;
    }
    return st;
}

/* Copies buffer b to the host; scalar outputs come all together. */
gnnc_status rt_device_download(RtExec *x, int b) {
    RtDevice *d = x->rt->device;
    if (is_scalar_output(&x->program->bufs[b])) return download_scalars(d);
    gnnc_status st = rt_held_part(d->x, b)
                         ? rt_held_download(d->x, b)
                         : d->ops->download(d, x->buf[b], d->at.buf[b], d->at.n_bytes[b]);
    if (st == GNNC_OK) d->newer[b] = RT_SAME;
    return st;
}

/* ---- places ------------------------------------------------------------------------ */
typedef struct {
    RtDevice *d;
    const RtMemory *m;
    size_t at;
} Layout;

/* Is buffer b a temporary that lies in the arena which phases share? */
static bool in_arena(const Layout *l, int b) {
    const char *p = l->d->x->buf[b], *lo = l->m->arena;
    bool temp = l->d->x->program->bufs[b].kind == RT_BUF_TEMP;
    return temp && p >= lo && p < lo + l->m->arena_bytes;
}

/* There before anything is placed, or NULL. */
static void *own_place(const RtDevice *d, int b) {
    if (d->pinned && d->pinned[b].here) return d->pinned[b].here;
    return d->built && d->built[b] ? d->built[b] : (void *)(uintptr_t)d->lent[b];
}

/* Gives buffer b the next place in the block of memory that is being laid out: its offset and size.
 */
static gnnc_status put(Layout *l, int b) {
    size_t n, before, align = l->d->ops->align;
    gnnc_status st = rt_buf_bytes(l->d->x, b, &l->d->at.n_bytes[b]);
    if (st == GNNC_OK) st = rt_held_bytes(l->d->x, b, &n, &before);
    if (st != GNNC_OK) return st;
    l->d->at.buf[b] = (void *)l->at;      /* an offset until the block exists */
    l->at += (n + align) / align * align; /* at least one unit: an address of its own */
    return st;
}

enum { PART_IN, PART_OUT, PART_REST, N_PARTS };

static int part_of(const rt_buf *b) {
    return is_input(b) ? PART_IN : is_scalar_output(b) ? PART_OUT : PART_REST;
}

int rt_group_pointers(const rt_program *p) {
    const rt_product_group *last = p->n_groups ? &p->groups[p->n_groups - 1] : NULL;
    return last ? last->first + 3 * last->n : 0;
}

void rt_group_table(const rt_program *p, void *const *buf, void **out) {
    for (int i = 0; i < p->n_groups; i++)
        for (int k = 0; k < 3 * p->groups[i].n; k++)
            out[p->groups[i].first + k] = buf[p->groups[i].bufs[k]];
}

/* Uploads the table of addresses of matrices that grouped products read. */
static gnnc_status upload_pointers(RtDevice *d) {
    const rt_program *p = d->x->program;
    size_t n = (size_t)rt_group_pointers(p);
    if (!n) return GNNC_OK;
    void **here = rt_scratch(d->x, n * sizeof *here);
    if (!here) return GNNC_E_NOMEM;
    rt_group_table(p, d->at.buf, here);
    return d->ops->upload(d, d->at.pointers, here, n * sizeof *here);
}

/* Lays out the block of memory of buffers that are not in the arena: inputs first, then scalar
 * outputs, then the others, so that the first two travel in one transfer each. */
static gnnc_status lay_out(Layout *l) {
    RtDevice *d = l->d;
    for (int part = 0; part < N_PARTS; part++) {
        for (int b = 0; b < d->x->program->n_bufs; b++) {
            bool other = part_of(&d->x->program->bufs[b]) != part;
            if (other || in_arena(l, b) || own_place(d, b)) continue;
            gnnc_status st = put(l, b);
            if (st != GNNC_OK) return st;
        }
        if (part == PART_IN) d->in_bytes = l->at;
        if (part == PART_OUT) d->out_bytes = l->at - d->in_bytes;
    }
    d->at.pointers = (void *)l->at; /* an offset, as above; a multiple of the alignment */
    l->at += (size_t)rt_group_pointers(d->x->program) * sizeof(void *);
    return GNNC_OK;
}

/* The address of a buffer whose rows that are held begin at `at`. */
static gnnc_status address(RtDevice *d, int b, char *at) {
    size_t n, before;
    gnnc_status st = rt_held_bytes(d->x, b, &n, &before);
    if (st == GNNC_OK) d->at.buf[b] = (void *)((uintptr_t)at - before);
    return st;
}

/* Where a temporary lies in the arena: as on the host, as alignments are the same, unless parts of
 * buffers are held. */
static size_t in_arena_at(const Layout *l, int b) {
    const RtDevice *d = l->d;
    return d->held ? d->packed[b] : (size_t)((char *)d->x->buf[b] - (char *)l->m->arena);
}

/* Sets the device address of each buffer and uploads the table of addresses. */
static gnnc_status assign_addresses(Layout *l) {
    RtDevice *d = l->d;
    gnnc_status st = GNNC_OK;
    for (int b = 0; b < d->x->program->n_bufs && st == GNNC_OK; b++) {
        if (in_arena(l, b)) {
            st = address(d, b, (char *)d->arena + in_arena_at(l, b));
            if (st == GNNC_OK) st = rt_buf_bytes(d->x, b, &d->at.n_bytes[b]);
        } else if (own_place(d, b)) {
            d->at.buf[b] = own_place(d, b);
            st = rt_buf_bytes(d->x, b, &d->at.n_bytes[b]);
        } else {
            st = address(d, b, (char *)d->fixed + (size_t)d->at.buf[b]);
        }
    }
    d->at.pointers = (void **)((char *)d->fixed + (size_t)d->at.pointers);
    return st == GNNC_OK ? upload_pointers(d) : st;
}

/* What the phase under way has computed, or is going to. */
static bool is_live(const RtDevice *d, const rt_buf *buf) {
    bool of_phase = buf->kind == RT_BUF_TEMP || buf->kind == RT_BUF_OUTPUT;
    return d->running >= 0 && (buf->kind == RT_BUF_SAVED || (of_phase && buf->phase == d->running));
}

/* What the device alone has goes to the host before its place goes away; a buffer whose size
 * changed has nothing worth keeping. */
static gnnc_status bring_home(RtDevice *d) {
    gnnc_status st = GNNC_OK;
    for (int b = 0; b < d->x->program->n_bufs && st == GNNC_OK; b++) {
        const rt_buf *buf = &d->x->program->bufs[b];
        size_t n;
        if (is_live(d, buf)) d->newer[b] = RT_DEVICE_NEWER;
        if (rt_buf_bytes(d->x, b, &n) == GNNC_OK && n == d->at.n_bytes[b]) st = rt_pull(d->x, b);
    }
    return st;
}

/* Notes that all buffers are to be uploaded, as after the device's memory was made anew: but not
 * those that only the device has (own_place), nor temporaries of phases that do not run. */
static void host_is_newer(RtDevice *d) {
    for (int b = 0; b < d->x->program->n_bufs; b++) {
        const rt_buf *buf = &d->x->program->bufs[b];
        bool dead = buf->kind == RT_BUF_TEMP && buf->phase != d->running;
        d->newer[b] = dead || own_place(d, b) ? RT_SAME : RT_HOST_NEWER;
    }
}

static gnnc_status packed_bytes(RtExec *x, int b, size_t *n_bytes) {
    size_t before;
    return rt_held_bytes(x, b, n_bytes, &before);
}

/* Finds which rows the device holds, and *arena_bytes of temporaries then. */
static gnnc_status hold_rows(RtDevice *d, const RtMemory *m, size_t *arena_bytes) {
    *arena_bytes = m->arena_bytes;
    gnnc_status st = rt_held_open(d->x);
    if (st != GNNC_OK || !d->held) return st;
    if (!d->packed) d->packed = RT_NEWN(&d->x->rt->pool, size_t, d->x->program->n_bufs);
    if (!d->packed) return rt_fail_nomem(&d->x->rt->err, "the device's tables");
    return rt_memory_pack_as(d->x, packed_bytes, d->packed, arena_bytes);
}

/* Before anything is allocated, as the message says what it would be for. */
static gnnc_status check_room(RtDevice *d, size_t all, const RtMemory *m) {
    RtMemoryLimit most = {0, "free on the device are"};
    gnnc_status st = d->ops->free_bytes(d, &most.n_bytes);
    return st != GNNC_OK || all <= most.n_bytes ? st
                                                : rt_memory_refuse(d->x, &m->need, all, most, "");
}

/* Makes the device's memory for the sizes and the arena of the memory plan m. What only the device
 * had comes home first. */
gnnc_status rt_device_place(RtExec *x, const RtMemory *m) {
    RtDevice *d = x->rt->device;
    if (!d) return GNNC_OK;
    Layout l = {d, m, 0};
    size_t arena_bytes = 0;
    gnnc_status st = GNNC_OK;
    if (d->fixed) TRY(st, bring_home(d));
    rt_device_forget_recordings(d);
    rt_device_spmm_close(d);
    d->ops->release(d, d->fixed);
    d->ops->release(d, d->arena);
    d->ops->unpin(d, d->read_back);
    d->fixed = d->arena = d->read_back = NULL;
    TRY(st, hold_rows(d, m, &arena_bytes));
    TRY(st, lay_out(&l));
    TRY(st, check_room(d, l.at + arena_bytes, m));
    TRY(st, d->ops->pin(d, d->out_bytes, &d->read_back));
    TRY(st, d->ops->alloc(d, l.at, &d->fixed));
    TRY(st, d->ops->alloc(d, arena_bytes, &d->arena));
    d->fixed_bytes = l.at, d->arena_bytes = arena_bytes;
    TRY(st, assign_addresses(&l));
    host_is_newer(d);
    if (d->running >= 0) st = rt_device_upload(d);
out:
    return st;
}

/* ---- the best epoch ---------------------------------------------------------------- */
gnnc_status rt_device_keep(RtExec *x, size_t n_bytes) {
    RtDevice *d = x->rt->device;
    if (!d) return GNNC_OK;
    d->best_bytes = n_bytes;
    return d->ops->alloc(d, n_bytes, &d->best);
}

/* Copies a variable's buffer b to the kept best values (store), or back from them. */
void rt_device_copy_best(RtExec *x, size_t offset, int b, size_t n_bytes, bool store) {
    RtDevice *d = x->rt->device;
    char *kept = (char *)d->best + offset;
    rt_device_copy(x, store ? kept : (char *)d->at.buf[b], store ? (char *)d->at.buf[b] : kept,
                   n_bytes);
    if (store)
        d->best_is_newer = true;
    else
        d->newer[b] = RT_DEVICE_NEWER;
}

gnnc_status rt_device_best_pull(RtExec *x, void *host, size_t n_bytes) {
    RtDevice *d = x->rt->device;
    if (!d || !d->best_is_newer) return GNNC_OK;
    d->best_is_newer = false;
    return d->ops->download(d, host, d->best, n_bytes);
}

gnnc_status rt_device_best_push(RtExec *x, const void *host, size_t n_bytes) {
    RtDevice *d = x->rt->device;
    return d && d->best ? d->ops->upload(d, d->best, host, n_bytes) : GNNC_OK;
}

/* How many bytes of the device's memory the trainer holds. Documented in gnnc.h. */
int64_t gnnc_trainer_device_bytes(const gnnc_trainer *t) {
    if (!t) return 0;
    const RtDevice *d = t->rt.device;
    if (!d) return 0;
    size_t batch = d->batch.arena_bytes + d->batch.listed_bytes + d->batch.rows_bytes;
    for (int i = 0; i < RT_LANES; i++) batch += d->batch.lane[i].n_bytes;
    return (int64_t)(room_bytes(d->x->program) + d->fixed_bytes + d->arena_bytes + d->best_bytes +
                     d->work_bytes + d->sampler_bytes + d->sums_bytes + d->built_bytes +
                     d->spmms.n_bytes + d->rows.n_bytes + batch);
}
