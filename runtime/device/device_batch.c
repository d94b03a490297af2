/* Mini-batches on a device.
 *
 * A batch brings columns and maps of its own, and temporaries by its own sizes; the rest is the
 * trainer's.  What it brings is packed into a page-locked block and crosses with one copy, beside
 * the queue: while the device computes a batch, the next one is on its way.  Two lanes, each with
 * a block on both sides, take turns.  Of columns of numbers the batch brings only which rows it
 * has: the device has the data's, and one kernel in front of the step gathers them all
 * (cuda/gather.h), with what the device made for the batch (device_bind.h).  Nothing is read back:
 * what the host wants to know of each step is noted on the device, and read when an epoch ends.
 *
 * Batches differ in size, so their steps are queued kernel by kernel; or, of training, for sizes
 * rounded up to one of a few buckets, parts of a limit that follows from the data
 * (batch/train_batches.c).
 * Then everything lies where it did for the last batch of the bucket, and the step is one recording
 * for each lane.  Kernels find the batch's own sizes in front of what it brings
 * (codegen/plan_passes/plan_buckets.c). */
#include "device.h"

#include <string.h>

#include "runtime/bind/bind.h"
#include "runtime/cuda/gather_list.h"
#include "runtime/memory.h"

/* Allocates the tables that hold, for each buffer and size, what holds of the batch on the device.
 */
static gnnc_status make_tables(RtDevice *d) {
    RtPool *pool = &d->x->rt->pool;
    RtDeviceBatch *b = &d->batch;
    b->at.buf = RT_NEWN(pool, void *, d->x->program->n_bufs);
    b->at.n_bytes = RT_NEWN(pool, size_t, d->x->program->n_bufs);
    b->rows_at = RT_NEWN(pool, size_t, d->x->program->n_bufs);
    b->most = RT_NEWN(pool, int64_t, d->x->program->n_syms);
    b->n = RT_NEWN(pool, int64_t, d->x->program->n_syms);
    b->limit = RT_NEWN(pool, int64_t, d->x->program->n_syms);
    bool ok = b->at.buf && b->at.n_bytes && b->rows_at && b->most && b->n && b->limit;
    return ok ? GNNC_OK : rt_fail_nomem(&d->x->rt->err, "the device's tables");
}

/* Is the buffer bound for each batch? When rows are predicted by themselves so are values computed
 * before of all rows, and parameters with a row for each. */
static bool is_per_batch(const RtExec *x, const RtDevice *d, int b) {
    rt_buf_kind k = x->program->bufs[b].kind;
    bool bound = k == RT_BUF_DATA || k == RT_BUF_MAP || k == RT_BUF_LOGICAL || k == RT_BUF_SAVED ||
                 k == RT_BUF_VAR;
    return bound && x->buf[b] && x->buf[b] != d->x->buf[b];
}

static bool is_temp_of(const RtExec *x, int phase, int b) {
    return rt_memory_is_temp(x->program, b) && x->program->bufs[b].phase == phase;
}

/* ---- buckets -------- */
/* Releases the recordings of the training step for all buckets, since they hold old addresses. */
void rt_device_forget_buckets(RtDevice *d) {
    for (int i = 0; i < RT_LANES * RT_BUCKETS; i++) {
        RtDevicePhase *p = &d->batch.bucket[i / RT_BUCKETS][i % RT_BUCKETS];
        rt_device_forget_pieces(d, p);
        *p = (RtDevicePhase){0};
    }
}

/* Training on batches uses sizes rounded up to buckets, so that recordings can be replayed, where
 * the program can. */
void rt_device_want_buckets(RtExec *x, bool tell) {
    const rt_phase *train = rt_phase_of(x->program, RT_PHASE_TRAIN);
    if (!x->rt->device || !train || !x->program->sampling.batch) return;
    x->rt->device->batch.wanted = train->buckets;
    if (tell && train->buckets_lack)
        rt_message(x->rt, "shapes: %s; each batch keeps its own", train->buckets_lack);
}

/* A size of bucket number `bucket`, rounded up: that part of the limit.  Most batches are within
 * some percent of the mean: they are in the last two buckets, and sizes are rounded up by an eighth
 * of the limit at most. */
static int64_t size_in(int bucket, int64_t limit) {
    return (limit * (bucket + 1) + RT_BUCKETS - 1) / RT_BUCKETS;
}

/* Whether the batch fits into the bucket. */
static bool fits_bucket(const RtExec *x, const int64_t *limit, int bucket) {
    for (int i = 0; i < x->program->n_spaces; i++) {
        const rt_space *s = &x->program->spaces[i];
        if (s->varies && x->n[s->sym] > size_in(bucket, limit[s->sym])) return false;
    }
    return true;
}

/* The smallest bucket that has room for the batch; its sizes are b->n.  A size that is no larger
 * than another one in any batch, as that of the first rows of a space, is no larger in a bucket:
 * limits are made alike, too.  Where there is more room than before, temporaries lie elsewhere than
 * recordings have them; and buckets are others where the limit is, as of clusters that are cut by
 * another seed. */
static void choose_bucket(RtExec *x, RtDevice *d, const RtBatchRoom *room) {
    RtDeviceBatch *b = &d->batch;
    const rt_program *p = x->program;
    size_t n_bytes = (size_t)p->n_syms * sizeof *b->n;
    int bucket = 0;
    if (memcmp(b->most, room->most, n_bytes) || memcmp(b->limit, room->limit, n_bytes))
        rt_device_forget_buckets(d);
    memcpy(b->most, room->most, n_bytes);
    memcpy(b->limit, room->limit, n_bytes);
    memcpy(b->n, x->n, n_bytes);
    while (bucket < RT_BUCKETS - 1 && !fits_bucket(x, room->limit, bucket)) bucket++;
    for (int i = 0; i < p->n_spaces; i++) {
        const rt_space *s = &p->spaces[i];
        if (s->varies) b->n[s->sym] = size_in(bucket, room->limit[s->sym]);
    }
    b->now = &b->bucket[b->slot][bucket];
}

/* ---- places -------- */
/* Room for n bytes, a quarter more where there was too little: batches differ. */
static gnnc_status make_room(RtDevice *d, RtUploadSlot *l, size_t here, size_t there) {
    if (here <= l->host_bytes && there <= l->n_bytes) return GNNC_OK;
    gnnc_status st = GNNC_OK;
    size_t want = there + there / 4, host = here + here / 4;
    rt_device_forget_buckets(d);
    d->ops->unpin(d, l->host);
    d->ops->release(d, l->there);
    *l = (RtUploadSlot){0};
    TRY(st, d->ops->pin(d, host, &l->host));
    TRY(st, d->ops->alloc(d, want, &l->there));
    l->host_bytes = host;
    l->n_bytes = want;
out:
    return st;
}

/* Makes the device's arena for batches at least n bytes large. A new one invalidates the
 * recordings. */
static gnnc_status make_arena(RtDevice *d, size_t n) {
    RtDeviceBatch *b = &d->batch;
    if (n <= b->arena_bytes) return GNNC_OK;
    rt_device_forget_buckets(d);
    d->ops->release(d, b->arena);
    b->arena = NULL;
    b->arena_bytes = 0;
    gnnc_status st = d->ops->alloc(d, n, &b->arena);
    if (st == GNNC_OK) b->arena_bytes = n;
    return st;
}

/* As the step sees it: with the sizes of its bucket. */
static RtExec rounded(const RtExec *x, const RtDevice *d) {
    RtExec r = *x;
    if (d->batch.now) r.n = d->batch.n;
    return r;
}

/* A lane's block has, in this order: the batch's sizes, if somebody wants them there; what the
 * batch brings; the list of what is gathered, and the numbers of its rows; where the operands of
 * products made together are (program.h: rt_product_group).  So far it is copied.
 * What is gathered comes last.  All places depend on rounded sizes alone, where there are any: a
 * recording finds everything where it was. */
typedef struct {
    RtExec *x;
    RtDevice *d;
    const RtDeviceGather *taken;
    RtExec room; /* the sizes of places */
    size_t used, copied;
} Lay;

static const RtDeviceGather *taken_of(const Lay *l, int b) {
    return l->taken && l->taken[b].row_bytes ? &l->taken[b] : NULL;
}

/* The place of the next n bytes in the batch's memory on the device: the offset, aligned. */
static size_t lay(Lay *l, size_t n) {
    size_t align = l->d->ops->align, at = l->used;
    l->used += (n + align) / align * align; /* at least one unit: an address of its own */
    return at;
}

/* Gives buffer b of the batch its place in the block that is being laid out: an offset, until the
 * block is allocated. */
static gnnc_status lay_buffer(Lay *l, int b) {
    RtPlaces *at = &l->d->batch.at;
    size_t n;
    gnnc_status st = rt_buf_bytes(&l->room, b, &n);
    if (st == GNNC_OK) st = rt_buf_bytes(l->x, b, &at->n_bytes[b]);
    if (st == GNNC_OK) at->buf[b] = (void *)lay(l, n);
    return st;
}

/* Does the batch bring the numbers of the rows? */
static bool brings_rows(const Lay *l, int b) {
    return taken_of(l, b) && !l->taken[b].row && !l->taken[b].made;
}

/* Columns of one space share the numbers of their rows. */
static int first_of_space(const Lay *l, int b) {
    for (int k = 0; k < b; k++)
        if (brings_rows(l, k) && l->taken[k].space == l->taken[b].space) return k;
    return b;
}

/* Lays out the row numbers by which buffer b is gathered from the whole column; buffers of one
 * space share one list. */
static gnnc_status lay_rows(Lay *l, int b) {
    RtDeviceBatch *batch = &l->d->batch;
    const RtDeviceGather *t = &l->taken[b];
    int first = first_of_space(l, b);
    size_t n;
    gnnc_status st = rt_buf_bytes(&l->room, b, &n);
    if (st != GNNC_OK) return st;
    size_t rows = n / (size_t)t->row_bytes;
    batch->rows_at[b] = first == b ? lay(l, rows * (t->wide ? sizeof(int64_t) : sizeof(int32_t)))
                                   : batch->rows_at[first];
    return st;
}

/* The buffers' addresses in this batch: the trainer's, except for those that each batch has of its
 * own, which get a place in the upload area. */
static gnnc_status place_batch_buffers(Lay *l) {
    RtDeviceBatch *batch = &l->d->batch;
    int n_bufs = l->x->program->n_bufs;
    gnnc_status st = GNNC_OK;
    batch->n_gathers = 0;
    if (batch->now) lay(l, (size_t)l->x->program->n_syms * 8);
    for (int b = 0; b < n_bufs && st == GNNC_OK; b++) {
        batch->at.buf[b] = l->d->at.buf[b];
        batch->at.n_bytes[b] = l->d->at.n_bytes[b];
        if (taken_of(l, b))
            batch->n_gathers++;
        else if (is_per_batch(l->x, l->d, b))
            st = lay_buffer(l, b);
    }
    if (batch->n_gathers) batch->list_at = lay(l, (size_t)batch->n_gathers * sizeof(RtGather));
    for (int b = 0; b < n_bufs && st == GNNC_OK; b++)
        if (brings_rows(l, b)) st = lay_rows(l, b);
    size_t pointers = (size_t)rt_group_pointers(l->x->program) * sizeof(void *);
    batch->pointers_at = pointers ? lay(l, pointers) : 0;
    l->copied = l->used;
    for (int b = 0; b < n_bufs && st == GNNC_OK; b++)
        if (taken_of(l, b)) st = lay_buffer(l, b);
    return st;
}

/* The widest word that rows of so many bytes are made of: they follow one another. */
static int32_t word_bytes(int64_t row_bytes) {
    return row_bytes % 16 == 0 ? 16 : row_bytes % 4 == 0 ? 4 : 2;
}

/* The arguments of the gather kernel for buffer b. All columns are one launch over their words;
 * `first` of these come before this column's. */
static RtGather gather_of(const Lay *l, int b, int64_t first) {
    RtDeviceBatch *batch = &l->d->batch;
    const RtDeviceGather *t = &l->taken[b];
    const RtDevicePinned *p = l->d->pinned && !t->made ? &l->d->pinned[b] : NULL;
    const void *brought = (char *)batch->lane[batch->slot].there + batch->rows_at[b];
    return (RtGather){.from = t->made ? t->made : l->d->at.buf[b],
                      .slot = p ? p->slot : NULL,
                      .near = p ? p->rows : NULL,
                      .row = brings_rows(l, b) ? brought : t->row,
                      .to = batch->at.buf[b],
                      .row_bytes = t->row_bytes,
                      .kept = t->rows.n - t->n_zeros,
                      .first = first,
                      .wide = t->wide,
                      .word_bytes = word_bytes(t->row_bytes)};
}

/* Writes, into the block on the host that is uploaded with the batch, the list of gathers and the
 * row numbers that they read. */
static void list_gathers(const Lay *l) {
    RtDeviceBatch *batch = &l->d->batch;
    char *host = batch->lane[batch->slot].host;
    int n = 0;
    batch->gathered_words = 0;
    batch->takes_made = false;
    for (int b = 0; b < l->x->program->n_bufs; b++) {
        const RtDeviceGather *t = taken_of(l, b);
        if (!t) continue;
        batch->takes_made |= !brings_rows(l, b);
        if (brings_rows(l, b) && first_of_space(l, b) == b && t->rows.n)
            memcpy(host + batch->rows_at[b],
                   t->wide ? (const void *)t->rows.i64 : (const void *)t->rows.i32,
                   (size_t)t->rows.n * (t->wide ? sizeof(int64_t) : sizeof(int32_t)));
        RtGather g = gather_of(l, b, batch->gathered_words);
        memcpy(host + batch->list_at + (size_t)n++ * sizeof g, &g, sizeof g);
        batch->gathered_words += t->rows.n * (t->row_bytes / g.word_bytes);
    }
}

/* Turns offsets into device addresses, and copies what is new in this batch to the upload slot. */
static gnnc_status resolve_batch_addresses(const Lay *l, int phase, const size_t *offset) {
    RtExec *x = l->x;
    RtDeviceBatch *batch = &l->d->batch;
    RtUploadSlot *lane = &batch->lane[batch->slot];
    if (batch->now) memcpy(lane->host, x->n, (size_t)x->program->n_syms * sizeof *x->n);
    for (int b = 0; b < x->program->n_bufs; b++) {
        size_t from = (size_t)batch->at.buf[b];
        if (taken_of(l, b)) {
            batch->at.buf[b] = (char *)lane->there + from;
        } else if (is_per_batch(x, l->d, b)) {
            memcpy((char *)lane->host + from, x->buf[b], batch->at.n_bytes[b]);
            batch->at.buf[b] = (char *)lane->there + from;
        } else if (is_temp_of(x, phase, b)) {
            gnnc_status st = rt_buf_bytes(x, b, &batch->at.n_bytes[b]);
            if (st != GNNC_OK) return st;
            batch->at.buf[b] = (char *)batch->arena + offset[b];
        }
    }
    list_gathers(l);
    batch->at.pointers = (void **)((char *)lane->there + batch->pointers_at);
    rt_group_table(x->program, batch->at.buf, (void **)((char *)lane->host + batch->pointers_at));
    return GNNC_OK;
}

/* Lays out the next batch and uploads it, while the one before may still be computed. taken
 * [n_bufs]: columns that the device gathers itself, NULL: none. */
gnnc_status rt_device_batch(RtExec *x, int phase, const RtBatchRoom *room,
                            const RtDeviceGather *taken) {
    RtDevice *d = x->rt->device;
    if (!d) return GNNC_OK;
    RtDeviceBatch *b = &d->batch;
    gnnc_status st = GNNC_OK;
    if (!b->at.buf) TRY(st, make_tables(d));
    b->slot = !b->slot;
    TRY(st, d->ops->lane_begin(d, b->slot));
    b->now = NULL;
    if (room->limit) choose_bucket(x, d, room);
    Lay l = {.x = x, .d = d, .taken = taken, .room = rounded(x, d)};
    TRY(st, place_batch_buffers(&l));
    TRY(st, make_room(d, &b->lane[b->slot], l.copied, l.used));
    TRY(st, make_arena(d, room->arena_bytes));
    TRY(st, resolve_batch_addresses(&l, phase, room->offset));
    st = d->ops->lane_copy(d, b->slot, b->lane[b->slot].there, b->lane[b->slot].host, l.copied);
out:
    return st;
}

/* Launches the kernel that takes all columns of the batch from the whole ones; before the step,
 * after the upload of the row numbers. */
static gnnc_status gather(RtExec *x, RtDevice *d) {
    RtDeviceBatch *b = &d->batch;
    if (!b->n_gathers) return GNNC_OK;
    int64_t n[] = {b->n_gathers, b->gathered_words};
    void *const arg[] = {(char *)b->lane[b->slot].there + b->list_at, n};
    gnnc_status st = rt_device_launch(x, x->program->device_gather, "gather", arg);
    return st == GNNC_OK && b->takes_made ? d->ops->took(d) : st;
}

/* Runs a phase on the batch's buffers, with sizes rounded up to the bucket that its recording is
 * of. */
gnnc_status rt_device_batch_run(RtExec *x, const rt_phase *phase) {
    RtDevice *d = x->rt->device;
    RtPlaces trainers = d->at;
    RtDeviceBatch *b = &d->batch;
    RtExec room = rounded(x, d);
    d->at = b->at;
    d->now = &room;
    b->sizes = b->now ? b->lane[b->slot].there : NULL;
    gnnc_status st = gather(&room, d);
    if (st == GNNC_OK)
        st = b->now ? rt_device_run_or_replay(d, &room, phase, b->now) : phase->run_device(&room);
    b->sizes = NULL;
    d->at = trainers;
    d->now = d->x;
    gnnc_status done = d->ops->lane_end(d, d->batch.slot);
    return st != GNNC_OK ? st : done;
}

/* Releases the device memory of batches. */
void rt_device_batch_close(RtDevice *d) {
    for (int i = 0; i < RT_LANES; i++) {
        d->ops->unpin(d, d->batch.lane[i].host);
        d->ops->release(d, d->batch.lane[i].there);
    }
    d->ops->release(d, d->batch.arena);
    d->ops->release(d, d->batch.notes);
    d->ops->release(d, d->batch.rows);
    d->ops->release(d, d->batch.listed);
    d->batch = (RtDeviceBatch){0};
}

/* ---- what a batch gives -------- */
/* Uploads the numbers of the rows whose results are wanted; once, later calls do nothing. */
gnnc_status rt_device_upload_row_ids(RtExec *x, const int32_t *row, int64_t n) {
    RtDevice *d = x->rt->device;
    size_t n_bytes = (size_t)n * sizeof *row;
    void *there;
    if (!d || d->batch.listed) return GNNC_OK;
    gnnc_status st = d->ops->alloc(d, n_bytes, &there);
    if (st != GNNC_OK) return st;
    d->batch.listed = there;
    d->batch.listed_bytes = n_bytes;
    return d->ops->upload(d, there, row, n_bytes);
}

/* How many of the rows, from the first on, follow one another without a gap, so that one copy takes
 * them. */
static int64_t follow_each_other(const int32_t *row, int64_t n) {
    int64_t i = 1;
    while (i < n && row[i] == row[i - 1] + 1) i++;
    return i;
}

/* A copy for all that follow each other: of rows that are not listed there are few such runs. */
static gnnc_status copy_runs(RtDevice *d, char *all, const char *from, size_t row_bytes,
                             const int32_t *row, int64_t n) {
    gnnc_status st = GNNC_OK;
    for (int64_t i = 0, run; i < n && st == GNNC_OK; i += run) {
        run = follow_each_other(row + i, n - i);
        st = d->ops->copy(d, all + (size_t)row[i] * row_bytes, from + (size_t)i * row_bytes,
                          (size_t)run * row_bytes);
    }
    return st;
}

/* Copies n rows of the batch's buffer b to the rows row[first ..] of buffer `to`: by one launch of
 * a kernel, or by copies where rows follow each other. */
gnnc_status rt_device_put_rows(RtExec *x, int b, int to, size_t row_bytes, const int32_t *row,
                               int64_t first, int64_t n) {
    RtDevice *d = x->rt->device;
    char *all = d->at.buf[to], *from = d->batch.at.buf[b];
    if (n == 0 || row_bytes == 0) return GNNC_OK;
    d->newer[to] = RT_DEVICE_NEWER;
    if (!d->batch.listed || follow_each_other(row + first, n) == n)
        return copy_runs(d, all, from, row_bytes, row + first, n);
    RtGather g = {.from = from,
                  .row = d->batch.listed + first,
                  .to = all,
                  .row_bytes = (int64_t)row_bytes,
                  .word_bytes = word_bytes((int64_t)row_bytes)};
    int64_t words = n * (g.row_bytes / g.word_bytes);
    void *const arg[] = {&g, &words};
    return rt_device_launch(x, x->program->device_scatter, "scatter", arg);
}

/* Copies the given rows of the batch's buffer b to `to` on the device, rows that follow each other
 * in one copy. */
gnnc_status rt_device_gather_rows(RtExec *x, int b, void *to, size_t row_bytes, const int32_t *row,
                                  int64_t n) {
    RtDevice *d = x->rt->device;
    const char *from = d->batch.at.buf[b];
    gnnc_status st = GNNC_OK;
    for (int64_t i = 0, run; i < n && st == GNNC_OK; i += run) {
        run = follow_each_other(row + i, n - i);
        st = d->ops->copy(d, (char *)to + (size_t)i * row_bytes, from + (size_t)row[i] * row_bytes,
                          (size_t)run * row_bytes);
    }
    return st;
}

gnnc_status rt_device_batch_pull(RtExec *x, int b) {
    RtDevice *d = x->rt->device;
    if (!d) return GNNC_OK;
    return d->ops->download(d, x->buf[b], d->batch.at.buf[b], d->batch.at.n_bytes[b]);
}

/* Allocates buffer b, n_bytes on the device alone, for rows that the device computes. */
gnnc_status rt_device_rows(RtExec *x, int b, size_t n_bytes) {
    RtDevice *d = x->rt->device;
    gnnc_status st = d ? d->ops->alloc(d, n_bytes, &d->batch.rows) : GNNC_OK;
    if (!d || st != GNNC_OK) return st;
    d->batch.rows_bytes = n_bytes;
    d->at.buf[b] = d->batch.rows;
    d->at.n_bytes[b] = n_bytes;
    d->newer[b] = RT_DEVICE_NEWER; /* the host has none to send */
    return st;
}

/* ---- notes -------- */
gnnc_status rt_device_notes(RtExec *x, int64_t n) {
    RtDevice *d = x->rt->device;
    return d ? d->ops->alloc(d, (size_t)n * RT_NOTE_BYTES, &d->batch.notes) : GNNC_OK;
}

gnnc_status rt_device_note(RtExec *x, int b, int64_t i) {
    RtDevice *d = x->rt->device;
    char *to = (char *)d->batch.notes + i * RT_NOTE_BYTES;
    return d->ops->copy(d, to, d->at.buf[b], (size_t)rt_type_bytes(x->program->bufs[b].dt));
}

gnnc_status rt_device_notes_read(RtExec *x, int64_t first, int64_t n, void *out) {
    RtDevice *d = x->rt->device;
    const char *from = (const char *)d->batch.notes + first * RT_NOTE_BYTES;
    return d->ops->download(d, out, from, (size_t)n * RT_NOTE_BYTES);
}
