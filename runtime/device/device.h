/* A machine beside the host that runs a program's phases.
 *
 * The host keeps a copy of every buffer that it ever reads or writes (data, maps, variables,
 * inputs, keys, outputs) where it always was: RtExec.buf.  The device has buffers of its
 * own, and for each it is known which side is newer.  So the rest of the runtime works on
 * host memory and says what it does:
 *
 *     rt_push(x, b)   the host has written buffer b: upload it before the next phase
 *     rt_pull(x, b)   the host is about to read buffer b: bring it here if it is older
 *
 * Without a device both do nothing.  Small inputs travel together, and so do scalar outputs:
 * a step uploads once, an epoch is read back once.  What a mini-batch brings is one more upload.
 *
 * What differs between kinds of devices stands in RtDeviceOps; a program for one names its
 * table (rt_program.device), so that the runtime itself needs no vendor's library. */
#ifndef RUNTIME_DEVICE_H
#define RUNTIME_DEVICE_H

#include "runtime/batch/batch.h"
#include "runtime/cuda/own_rows.h"
#include "runtime/exec/exec.h"

typedef struct RtDevice RtDevice;
struct RtMemory;
struct RtDeviceMaps;
struct RtSparse;

/* What one device of all machines has, by whatever number a process sees it; 0: it is not known. */
typedef struct {
    unsigned char byte[16];
} RtDeviceId;

/* Of a group of processes' devices. */
typedef struct {
    char bytes[128];
} RtPeersId;

/* All work goes into one queue, in order.  Calls return before the work is done, download()
 * after it.  Failures are recorded in x->rt->err. */
typedef struct RtDeviceOps {
    const char *name; /* "cuda" */
    int dlpack;       /* a DLDeviceType (gnnc_dlpack.h) */
    size_t align;     /* of buffers */
    int64_t pairs;    /* links and negatives of a launch that draws these alone; or one link's */
    gnnc_status (*open)(RtDevice *d);
    void (*close)(RtDevice *d);
    uint64_t (*kind)(const RtDevice *d); /* those that differ in it may differ in the last bits */
    RtDeviceId (*id)(const RtDevice *d);
    /* The calling thread works with the device from here on. */
    void (*enter)(RtDevice *d);
    gnnc_status (*free_bytes)(RtDevice *d, size_t *n);           /* that alloc() could give */
    gnnc_status (*alloc)(RtDevice *d, size_t n_bytes, void **p); /* zeroed */
    void (*release)(RtDevice *d, void *p);
    gnnc_status (*upload)(RtDevice *d, void *to, const void *from, size_t n_bytes);
    gnnc_status (*download)(RtDevice *d, void *to, const void *from, size_t n_bytes);
    gnnc_status (*copy)(RtDevice *d, void *to, const void *from, size_t n_bytes);
    gnnc_status (*launch)(RtDevice *d, rt_device_kernel *k, const char *name, void *const *arg);
    gnnc_status (*gemm)(RtDevice *d, const rt_gemm *g, const void *a, const void *b, void *c);
    /* As rt_device_gemm_with(), but without a product where the end cannot be done; may be NULL. */
    gnnc_status (*gemm_with)(RtDevice *d, const rt_gemm *g, const rt_epilogue *e, const float *a,
                             const float *b, bool *within);
    /* The products of a group with one call; pointers: their operands and results, as
     * rt_product_group has them, there.  *made = false: it would not be worth it, or the library
     * cannot; may be NULL. */
    gnnc_status (*gemm_group)(RtDevice *d, int n, const rt_gemm *g, void *const *pointers,
                              bool *made);
    /* Keeps what the library wants for a product, until close; *product = NULL: it is not there, or
     * does not make such ones.  May be NULL, and so the others. */
    gnnc_status (*spmm_open)(RtDevice *d, const struct RtSparse *s, void **product);
    gnnc_status (*spmm)(RtDevice *d, void *product, const void *dense, void *out);
    void (*spmm_close)(RtDevice *d, void *product);
    /* Work between begin and end is recorded, not done, and done by each replay. */
    gnnc_status (*record_begin)(RtDevice *d);
    gnnc_status (*record_end)(RtDevice *d, void **recording);
    /* Before a recording of a phase of n_steps in n_streams, where bit i of `products` says that
     * stream i has products: opens what they need.  Then, within it: what follows is in the stream,
     * behind what has been recorded there, and behind the steps `after`; a step that is awaited has
     * been marked behind itself.  record_end() brings all together.  May be NULL, and so the
     * others.
     */
    gnnc_status (*streams_open)(RtDevice *d, int n_streams, unsigned products, int n_steps);
    gnnc_status (*stream)(RtDevice *d, int stream, int n, const int *after);
    gnnc_status (*stream_mark)(RtDevice *d, int step);
    /* What is recorded in between is repeated while the byte there holds, at most `limit` times:
     * it is read before each iteration.  May be asked where has_loops(d); one may hold others. */
    bool (*has_loops)(const RtDevice *d);
    gnnc_status (*loop_begin)(RtDevice *d, const void *condition, int64_t limit);
    gnnc_status (*loop_end)(RtDevice *d);
    gnnc_status (*replay)(RtDevice *d, void *recording);
    void (*forget)(RtDevice *d, void *recording);
    gnnc_status (*wait)(RtDevice *d); /* until all work is done */
    /* What is queued from now on comes after what the host's stream has so far, and the other way.
     */
    gnnc_status (*follow)(RtDevice *d, void *stream);
    gnnc_status (*lead)(RtDevice *d, void *stream);
    /* Page-locked memory of the host. */
    gnnc_status (*pin)(RtDevice *d, size_t n_bytes, void **p);
    void (*unpin)(RtDevice *d, void *p);
    /* The same that kernels may read, too, at the same address; E_DEVICE: there is none. */
    gnnc_status (*pin_shared)(RtDevice *d, size_t n_bytes, void **p);
    /* Copies between such memory and the device's, in the queue, which nobody waits for. */
    gnnc_status (*read)(RtDevice *d, void *to, const void *from, size_t n_bytes);
    gnnc_status (*write)(RtDevice *d, void *to, const void *from, size_t n_bytes);
    /* Copies from such memory beside the queue, in lanes.  begin: until the lane's last copy is
     * done, so that what it copied from may be written.  copy: after the work that was queued
     * before the lane's last end; what is queued from now on comes after it.  end: what is queued
     * so far reads what was copied. */
    gnnc_status (*lane_begin)(RtDevice *d, int lane);
    gnnc_status (*lane_copy)(RtDevice *d, int lane, void *to, const void *from, size_t n_bytes);
    gnnc_status (*lane_end)(RtDevice *d, int lane);
    /* Queues beside both, each for one thread at a time, mostly not the trainer's: failures are its
     * own. Memory of the host is page-locked, or stays as it is until the next wait.  wait: until
     * the queue's work is done; close: when it is. */
    gnnc_status (*side_open)(RtDevice *d, void **queue);
    void (*side_close)(RtDevice *d, void *queue);
    gnnc_status (*side_upload)(RtDevice *d, void *queue, void *to, const void *from, size_t n_bytes,
                               RtError *err);
    gnnc_status (*side_download)(RtDevice *d, void *queue, void *to, const void *from,
                                 size_t n_bytes, RtError *err);
    gnnc_status (*side_launch)(RtDevice *d, void *queue, rt_device_kernel *k, const char *name,
                               void *const *arg, RtError *err);
    gnnc_status (*side_clear)(RtDevice *d, void *queue, void *p, size_t n_bytes, RtError *err);
    gnnc_status (*side_wait)(RtDevice *d, void *queue, RtError *err);
    /* took: what is queued by now takes what queues beside it have made.  side_after: what is
     * queued there from now on comes after what was taken last. */
    gnnc_status (*took)(RtDevice *d);
    gnnc_status (*side_after)(RtDevice *d, void *queue, RtError *err);
    /* Devices of processes that train together, each another one, send each other memory beside the
     * queue.  version: of the library by which they do; 0: it is not there.  id: of a new group;
     * one process makes it.  open: joins the group, with all others.  share: the n numbers `at` of
     * process `from` go to all, to `at` there; behind the work that was queued so far where they
     * are read, and where they are written behind that by the first one since wait().  All call it
     * in the same order.  wait: until all that was shared is there; after a failure there is no
     * group any more.  E_IO: another process is gone, or it took patience_s.  close: with all
     * others, unless they are lost.  May be NULL, and so the others. */
    int (*peers_version)(RtDevice *d);
    gnnc_status (*peers_id)(RtDevice *d, RtPeersId *id);
    gnnc_status (*peers_open)(RtDevice *d, const RtPeersId *id, int rank, int n);
    gnnc_status (*peers_share)(RtDevice *d, float *at, int64_t n, int from);
    gnnc_status (*peers_wait)(RtDevice *d, int64_t patience_s);
    /* Of such devices: sends and receives bytes of device memory, to and from each process, behind
     * the work that was queued so far; all call it in the same order.  add: the n numbers `at` of
     * all become their sums, in an order of the library's.  join: what is queued from now on comes
     * behind all that.  Once there was such a call whatever waits for the queue fails with E_IO,
     * too. */
    gnnc_status (*peers_swap)(RtDevice *d, const void *const *out, const size_t *n_out,
                              void *const *in, const size_t *n_in, int64_t patience_s);
    gnnc_status (*peers_add)(RtDevice *d, float *at, int64_t n, int64_t patience_s);
    gnnc_status (*peers_join)(RtDevice *d);
    void (*peers_close)(RtDevice *d, bool lost);
    /* mark: of the queue's present end.  reach: waits for the work before the last mark alone. */
    gnnc_status (*mark)(RtDevice *d);
    gnnc_status (*reach)(RtDevice *d);
    /* Time stamp i < RT_STAMPS of the queue; times between each two of the first n + 1, after
     * a wait. */
    gnnc_status (*stamp)(RtDevice *d, int i);
    gnnc_status (*stamps)(RtDevice *d, int n, int64_t *ns);
    /* For the vendor's profilers: what is queued in between belongs to `name`.  May be NULL. */
    void (*range_begin)(RtDevice *d, const char *name);
    void (*range_end)(RtDevice *d);
} RtDeviceOps;

enum { RT_STAMPS = 256, RT_LANES = 2, RT_NOTE_BYTES = 8 };

typedef enum { RT_SAME, RT_HOST_NEWER, RT_DEVICE_NEWER } RtNewer;

typedef struct RtDevicePhase {
    int64_t runs;
    bool stops;                /* it waits for the host somewhere: cannot be recorded */
    bool refused;              /* of RtDevice.phase: a recording went wrong, of whatever sizes */
    int n_pieces, most_pieces; /* 0 = it is not recorded yet */
    void **piece; /* a recording between each two exchanges; NULL: there is no work in between */
} RtDevicePhase;

/* How the steps of a phase are run (device_record.c). */
typedef enum {
    RT_WALK_DOES,    /* they do what they ask for */
    RT_WALK_RECORDS, /* it is recorded, and nothing is sent */
    RT_WALK_REPLAYS, /* recordings do it; what is sent is */
    RT_WALK_RESUMES  /* the pieces in front of one have been done */
} RtWalkMode;

typedef struct RtDeviceWalk {
    RtWalkMode mode;
    RtDevicePhase *of;
    int at, from;       /* the piece; the first to be done */
    bool mute;          /* what steps ask of the device is not done */
    bool asks;          /* they have asked for something since the piece began */
    bool captures;      /* a recording has begun, and not ended */
    gnnc_status status; /* of the first recording that failed */
} RtDeviceWalk;

typedef struct RtPlaces {
    void **buf;      /* [n_bufs] in device memory */
    size_t *n_bytes; /* [n_bufs] placed */
    void **pointers; /* in device memory: the table of all groups; NULL: there are none */
} RtPlaces;

typedef struct RtUploadSlot {
    void *host, *there; /* page-locked; on the device */
    size_t n_bytes, host_bytes;
} RtUploadSlot;

/* A batch's rows of a buffer of the data; or all of an array that was made for it there. */
typedef struct RtDeviceGather {
    int64_t row_bytes; /* 0: the batch brings the buffer */
    int space;         /* -1: no rows are named */
    bool wide;         /* rows.i64, not i32 */
    RtRows rows;
    int64_t n_zeros;  /* so many rows, the last ones, are zeros there */
    const void *row;  /* the same, there; NULL: the batch brings them */
    const void *made; /* the array; its rows.n rows are taken; NULL: it is the data's buffer */
} RtDeviceGather;

enum { RT_BUCKETS = 8 }; /* so many eighths of a step's limit */

/* Where a step over batches has room on a device. */
typedef struct RtBatchRoom {
    const size_t *offset; /* [n_bufs] of the phase's temporaries, in an arena of their own .. */
    size_t arena_bytes;   /* .. which has room for these sizes: */
    const int64_t *most;  /* [n_syms] */
    const int64_t *limit; /* [n_syms] the batch's sizes, which are no larger, are rounded up to an
                             eighth of them; NULL: they stay */
} RtBatchRoom;

/* device_batch.c */
typedef struct RtDeviceBatch {
    RtPlaces at;
    RtUploadSlot lane[RT_LANES];
    int slot; /* of lane[] and bucket[]: the batch that is being made */
    void *arena;
    size_t arena_bytes;
    void *notes;                                      /* RT_NOTE_BYTES each */
    void *rows;                                       /* rt_device_rows */
    bool wanted;                                      /* steps are recorded, for rounded sizes */
    RtDevicePhase bucket[RT_LANES][RT_BUCKETS], *now; /* NULL: as many rows as there are */
    int64_t *most, *limit, *n; /* [n_syms] there was room for; of the buckets; of the bucket */
    void *sizes;               /* the batch's own, on the device, while its step is queued */
    /* Columns that are gathered there: the list lies in the lane behind the sizes. */
    size_t list_at, *rows_at; /* [n_bufs] */
    int n_gathers;
    int64_t gathered_words;
    bool takes_made;    /* some of it was made by a queue beside */
    size_t pointers_at; /* in the lane, as the list is */
    int32_t *listed;    /* rows that batches give; NULL = not sent */
    size_t listed_bytes, rows_bytes;
} RtDeviceBatch;

/* Where batches read the rows of a buffer that is not the device's (device_pinned.h). */
typedef struct RtDevicePinned {
    void *here;        /* page-locked: all rows; NULL: the buffer is the device's */
    int space;         /* whose rows they are */
    int64_t row_bytes; /* of them */
    int32_t *slot; /* on the device, by row: which of `rows` it is, or -1; NULL: none is there */
    void *rows;
} RtDevicePinned;

/* Memory of the device, in a list. */
typedef struct RtDeviceMemory {
    struct RtDeviceMemory *next;
    void *p;
    size_t n_bytes;
} RtDeviceMemory;

/* Page-locked memory of the host. */
typedef struct RtDeviceHere {
    void *p;
    size_t n_bytes;
} RtDeviceHere;

/* device_rows.h */
typedef struct RtDeviceRows {
    RtOwnRows own;          /* of the launch */
    bool direct;            /* devices send to each other */
    bool lost;              /* a step of this process failed: others wait for what does not come */
    int64_t patience_s;     /* with what they send */
    RtDeviceMemory *memory; /* lists of rows, rows on their way, sums */
    size_t n_bytes;
    RtDeviceHere here[2 * RT_BESIDE_MOST]; /* what goes and what comes, where hosts send it */
} RtDeviceRows;

/* device_spmm.h */
typedef struct RtDeviceSpmms {
    struct RtSpmm *of;          /* [n_spmms]; NULL = none was opened */
    struct RtSpmmArray *arrays; /* made for them */
    size_t n_bytes;             /* there, of arrays and workspaces */
} RtDeviceSpmms;

struct RtDevice {
    const RtDeviceOps *ops;
    RtExec *x;   /* the trainer's */
    RtExec *now; /* whose phase runs: that, or a mini-batch's */
    void *self;  /* of the kind of device */
    RtPlaces at;
    RtDeviceBatch batch;
    RtNewer *newer; /* [n_bufs] */
    void *fixed, *arena;
    size_t in_bytes, out_bytes; /* inputs stand first in `fixed`, scalar outputs follow */
    char *staged;               /* [in_bytes] on the host */
    void *read_back;            /* [out_bytes] there, page-locked */
    void *room;                 /* of any kernel, while it runs: by stream, RT_DEVICE_ROOM_BYTES */
    void *work;                 /* of library calls: as much as any has wanted */
    size_t work_bytes;
    void *best;         /* the best epoch's variables, one after another */
    bool best_is_newer; /* than the host's copy of them */
    int ordinal;        /* which of the machine's; -1, until it is open: the thread's */
    bool tf32;          /* matrix products may round their factors */
    bool groups;        /* products, where that is worth it */
    bool gathers;       /* columns of batches out of the data's, by program.device_gather */
    bool pins;          /* columns that it gathers stay in the host's memory */
    bool samples;       /* it draws batches, by program.device_sample */
    bool shares;        /* what no batch brings is another's memory, in which nothing changes */
    bool never_record;  /* a failure shall be told at the call that caused it */
    size_t fixed_bytes, arena_bytes, best_bytes, sampler_bytes, sums_bytes;
    struct RtDeviceMaps *maps; /* device_maps.h; NULL = the host builds index arrays */
    void **built;              /* [n_bufs] those that were built there, or NULL; NULL = none */
    size_t built_bytes;
    RtDevicePinned *pinned; /* [n_bufs] (device_pinned.h); NULL = none */
    const void **lent;      /* [n_bufs] the host's memory there, or NULL */
    RtDeviceSpmms spmms;
    RtDeviceRows rows;
    struct RtHeldRows *held;   /* [n_spaces] rows that are here (device_held.h); NULL: all */
    int held_version;          /* of `held` */
    size_t *packed;            /* [n_bufs] with `held`: places in the arena */
    RtDevicePhase *phase;      /* [n_phases] */
    int running;               /* phase, -1 = none */
    RtDevicePhase *may_record; /* the run under way; NULL: it is of no size that comes again */
    RtDeviceWalk walk;
    int in_loop;          /* loops that the step under way is in */
    int stream;           /* of what is being recorded; else 0 */
    bool in_streams;      /* what is being recorded is in several */
    bool one_stream;      /* several cannot be had */
    size_t missing_bytes; /* of `work`, to what is recorded */
    gnnc_status status;   /* first failure of a service that returns nothing */
};

/* Opens the program's device, if it has one and `want` lets it.  RT_ON_ANY: without a usable
 * device the host goes on alone, where the program was compiled for it too. */
gnnc_status rt_device_open(RtExec *x, RtWhere want, int ordinal, bool tf32);
/* For x, whose data and variables are those of `of`: a queue of its own on the same device, with
 * the same places.  What is queued for `of` must be done; without a device there is nothing to do.
 */
gnnc_status rt_device_share(RtExec *x, const RtExec *of);
bool rt_runs_on_host(const rt_program *p);
void rt_device_close(RtExec *x);
/* Gives every buffer its place, by the sizes and host places of now; values move along. */
gnnc_status rt_device_place(RtExec *x, const struct RtMemory *m);
/* Uploads what is newer here. */
gnnc_status rt_device_upload(RtDevice *d);
gnnc_status rt_device_download(RtExec *x, int b); /* for rt_pull() */
/* Runs a phase: uploads what is newer here, then the phase or its recording. */
gnnc_status rt_device_run(RtExec *x, const rt_phase *phase);
/* Before it for a mini-batch, x being the batch's: uploads what it brings.  taken [n_bufs]: what
 * the device takes out of the data's buffers by itself; or NULL. */
gnnc_status rt_device_batch(RtExec *x, int phase, const RtBatchRoom *room,
                            const RtDeviceGather *taken);
gnnc_status rt_device_batch_run(RtExec *x, const rt_phase *phase); /* for rt_device_run() */
/* The phase, or what of it was recorded in p. */
gnnc_status rt_device_run_or_replay(RtDevice *d, RtExec *x, const rt_phase *phase,
                                    RtDevicePhase *p);
/* Is the phase being recorded? */
static inline bool rt_device_records(const RtDevice *d) {
    return d->walk.mode == RT_WALK_RECORDS;
}
/* A step asks the device for work: is that done, or recorded?  Else a recording has it. */
static inline bool rt_device_asks(RtDevice *d) {
    d->walk.asks = true;
    return !d->walk.mute;
}
/* A step exchanges something with other processes: is it to do so?  Else it was, or will be. */
bool rt_device_may_exchange(RtDevice *d);
/* The phase waits for the host here, so that it cannot be recorded. */
void rt_device_stops(RtDevice *d);
/* Memory of the device for a library's call, of n_bytes; where it must grow, recordings are
 * forgotten, since they hold the old address. */
gnnc_status rt_device_work(RtDevice *d, size_t n_bytes, void **p);
void rt_device_forget_pieces(RtDevice *d, RtDevicePhase *p);
/* Places or sizes change: what was recorded is made anew. */
void rt_device_forget_recordings(RtDevice *d);
/* Steps over batches are recorded for rounded sizes, where they can be; `tell`: a line says what
 * keeps them. */
void rt_device_want_buckets(RtExec *x, bool tell);
void rt_device_forget_buckets(RtDevice *d);
void rt_device_batch_close(RtDevice *d);
/* Room for n notes; note i becomes scalar b; [first, first + n) are read back. */
gnnc_status rt_device_notes(RtExec *x, int64_t n);
/* Copies a number of the last step, buffer b, to place i of the device's notes, so that the host
 * reads many at once. */
gnnc_status rt_device_note(RtExec *x, int b, int64_t i);
/* Reads n notes from `first` on. */
gnnc_status rt_device_notes_read(RtExec *x, int64_t first, int64_t n, void *out);
/* Rows that batches will give, each once, in their order: sent when they are listed first, and the
 * same from then on. */
gnnc_status rt_device_upload_row_ids(RtExec *x, const int32_t *row, int64_t n);
/* After the run of a mini-batch, x being the batch's: the n rows of what it gave as buffer b become
 * rows row[first ..] of the trainer's buffer `to`, there, `row` being the list, or none was listed;
 * or all of it comes to x->buf[b]. */
gnnc_status rt_device_put_rows(RtExec *x, int b, int to, size_t row_bytes, const int32_t *row,
                               int64_t first, int64_t n);
/* Brings a result of the last batch to the host. */
gnnc_status rt_device_batch_pull(RtExec *x, int b);
/* Rows row[n] of it, one after another, to memory there: a copy for all that follow each other. */
gnnc_status rt_device_gather_rows(RtExec *x, int b, void *to, size_t row_bytes, const int32_t *row,
                                  int64_t n);
/* Once: room for such rows, where their number is known only when batches are; on the host nothing.
 */
gnnc_status rt_device_rows(RtExec *x, int b, size_t n_bytes);
/* The step under way, for messages: "gcn_train_h_17 (models/gcn.gnn:14)" is its name and lines. */
RT_SERVICE const char *rt_device_lines(const RtDevice *d);

/* Entries in the table of all groups' pointers, and that table for buffers at `buf`. */
int rt_group_pointers(const rt_program *p);
/* out: the addresses of the matrices of all groups of products, by group. */
void rt_group_table(const rt_program *p, void *const *buf, void **out);

/* Where the device has the index array that the host has `here`, sent by the time of the queue's
 * end; NULL = nowhere.  It stays there once data are loaded. */
gnnc_status rt_device_has(RtExec *x, const void *here, const void **there);
/* The same of buffer b, which has a place there. */
gnnc_status rt_device_has_buffer(RtExec *x, int b, const void **there);

void rt_push(RtExec *x, int b);
/* Brings buffer b to the host, if the device's content is newer; b < 0: none. */
gnnc_status rt_pull(RtExec *x, int b);
/* Buffers of variables, all of them. */
void rt_push_vars(RtExec *x);
/* Brings all variables to the host whose content on the device is newer. */
gnnc_status rt_pull_vars(RtExec *x);

/* The best epoch's variables stay on the device; `host` is where a copy of them goes. */
gnnc_status rt_device_keep(RtExec *x, size_t n_bytes); /* room for them */
void rt_device_copy_best(RtExec *x, size_t offset, int b, size_t n_bytes, bool store);
/* Brings the kept best values to the host, if the device's are newer. */
gnnc_status rt_device_best_pull(RtExec *x, void *host, size_t n_bytes);
gnnc_status rt_device_best_push(RtExec *x, const void *host, size_t n_bytes);

/* The stream that the host wants work ordered with (device_stream.c): work that is queued between
 * the two is, where there is one, and a device. */
void rt_device_order(RtRuntime *rt, void *stream);
/* Lets the device's work begin after what is in the host's stream by now, if one was set. */
gnnc_status rt_device_follow(RtExec *x);
/* Lets what the host puts into its stream next begin after the device's work by now. */
gnnc_status rt_device_lead(RtExec *x);

/* Services of program.h whose operands are in device memory.  Where the host takes part (assert,
 * store, fetch) the phase is not recorded. */
gnnc_status rt_device_gemm(RtExec *x, const rt_gemm *g, const void *a, const void *b, void *c);
/* Copies within the device. A failure is reported by the phase that runs. */
void rt_device_copy(RtExec *x, void *to, const void *from, size_t n_bytes);
gnnc_status rt_device_rank(RtExec *x, const float *v, const uint8_t *mask, float *y, int64_t outer,
                           int64_t len, int64_t inner, int ties);
gnnc_status rt_device_assert(RtExec *x, const char *text, const uint8_t *cond, int64_t count);
/* The host's copy of a buffer, made by a function of the host, goes to the device. */
gnnc_status rt_device_store(RtExec *x, int b);
gnnc_status rt_device_fetch(RtExec *x, int b); /* buffer b, in the middle of a phase */
/* The same, where the phase may be recorded all the same: this is asked on the device then. */
gnnc_status rt_device_peek(RtExec *x, int b);

/* The host's part of them, on host memory (exec.c). */
gnnc_status rt_check_assert(RtExec *x, const char *text, const uint8_t *cond, int64_t count);

#endif
