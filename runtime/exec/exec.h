/* The runtime's own side of a running program: what RtExec.rt points to.  The
 * services of program.h (launch, gemm, rank, print, relations) reach errors,
 * memory and counters through it. */
#ifndef RUNTIME_EXEC_H
#define RUNTIME_EXEC_H

#include <signal.h>
#include <stdatomic.h>

#include "runtime/program.h"
#include "runtime/status.h"
#include "team.h"

enum { RT_BESIDE_MOST = 4 }; /* exchanges of rows that go on at once (beside.c) */

/* Where a program is to run: wherever is best, on the host, on its device. */
typedef enum { RT_ON_ANY, RT_ON_HOST, RT_ON_DEVICE } RtWhere;

/* Ways to make products of 16-bit matrices (gemm_tiles_16.h). */
typedef enum { RT_BY_F32, RT_BY_DOT_PRODUCTS, RT_BY_TILE_REGISTERS } RtProducts16;

struct RtBound;
struct RtWeightsFile;
struct RtDevice;
typedef struct RtDist RtDist;

/* The loop over blocks that runs (exec_blocks.c). */
typedef struct {
    bool on;
    int64_t rows, lo, hi, i; /* of all blocks; of this one, the i-th */
    const int *local;
    int n_local;
} RtBlocks;

typedef struct RtRuntime {
    RtError err;         /* first failure of the current API call */
    RtPool pool;         /* lives as long as the trainer */
    gnnc_counters count; /* what happened; rt_launch* and rt_gemm_f32 add to it */
    void *scratch;       /* rt_scratch() */
    size_t scratch_bytes;
    gnnc_message_fn *message; /* print, warnings; may be NULL */
    void *message_user;
    RtTeam *team;            /* NULL = the caller alone */
    struct RtDevice *device; /* where phases run; NULL = here (device.h) */
    void *stream;            /* the host's stream on the device, if in_stream */
    bool in_stream;          /* the host wants work to be ordered with that of its stream */
    struct RtBound *bound;   /* the data the program runs on (bind.h) */
    const struct RtWeightsFile
        *given;                    /* weights that came before the data (codes.h); NULL = none */
    const struct RtPacked *packed; /* weights, as products read them (gemm.h); NULL = none */
    gnnc_model *model;             /* whose memory the parameters are (model.h); NULL = their own */
    RtBlocks blocks;
    RtDist *dist; /* rows that processes share (distributed.h); NULL = the program shares none */
    bool vars_changed;          /* by somebody else than a phase: what is kept of them is old */
    const double *option_value; /* [n_options] of the model; NULL: as where nobody says others */
    const bool *option_known;   /* [n_options] given before data are bound; NULL: none was */
    const int32_t *fanout;      /* [n_hops] drawn in place of the program's; NULL: that */
    bool spill;                 /* working memory that does not fit may lie in a file */
    bool amx;                   /* f32 matrix products may use AMX (gemm_pieces.h) */
    RtProducts16 products16;    /* how bf16 is multiplied (gemm_16.c) */
    bool *alone;                /* [steps of all phases] too short to share, or NULL */
    const bool *alone_here;     /* [steps] of the phase that runs */
    const atomic_int *stop;     /* not 0: an end was asked for */
    bool by_signal;             /* signals that wait ask for it, too: option "signals" */
    bool together;              /* with other processes, which end behind the same step alone */
    int local_rank, n_local;    /* of those of this machine; n_local = 0: nobody said, or none */
    double asked;               /* s, when a loop first saw that; 0 = none did */
} RtRuntime;

/* serial_steps.c: steps estimated to take less than serial_ns run on the caller alone.  After the
 * sizes are bound; may be called again. */
gnnc_status rt_serial_steps_set(RtExec *x, int64_t serial_ns);
/* The same for the steps of one phase, with sizes n. */
void rt_serial_steps_set_phase(RtExec *x, const rt_phase *phase, const int64_t *n,
                               int64_t serial_ns);
/* Of one run on one thread, with sizes n; INT64_MAX: nothing is known. */
int64_t rt_step_estimate_ns(const rt_phase *ph, int step, const int64_t *n);
void rt_serial_steps_phase(RtExec *x, const rt_phase *phase);
/* Who runs the present step. */
static inline RtTeam *rt_step_team(const RtExec *x) {
    return x->rt->alone_here && x->rt->alone_here[x->step] ? NULL : x->rt->team;
}

/* Is this the first time in its phase that the present step runs? */
static inline bool rt_step_first(const RtExec *x) {
    return !x->rt->blocks.on || x->rt->blocks.i == 0;
}
void rt_blocks_end(RtExec *x); /* none runs: nothing */
/* Bytes of buffer b that are needed when blocks run: of a local one a block's. */
gnnc_status rt_blocks_bytes(RtExec *x, int b, size_t *n_bytes);
/* How many rows a space has, and the targets of a map, which for a pair are those of both. */
int64_t rt_size(const rt_program *p, const int64_t *n, int space);
int64_t rt_map_rows(const rt_program *p, const int64_t *n, int map);
/* part / parts of all, rounded down, without the product of large numbers. */
static inline int64_t rt_fraction(int64_t all, int64_t part, int64_t parts) {
    return all / parts * part + all % parts * part / parts;
}
/* The work of the rows before one: themselves and their entries, in all n of ptr. */
int64_t rt_work_before(const int64_t *const *ptr, int n, int64_t row);
/* First row of [lo, hi] that has this much work before it. */
int64_t rt_row_at(const int64_t *const *ptr, int n, int64_t lo, int64_t hi, int64_t work);
/* bound [RT_CHUNKS + 1]: runs of consecutive rows of one map, none with more work than there must
 * be. */
void rt_balance_rows(const int64_t *ptr, int64_t n_rows, int64_t *bound);
/* Rows [first, first + extent) of a parallel loop, which threads divide: into equal numbers, or
 * into equal work where there are segments. */
typedef struct RtCut {
    int64_t first, extent;
    const int64_t *at;                  /* rt_balance_rows() of all rows; NULL = not made */
    const int64_t *ptr[RT_BALANCE_MAX]; /* the segments of the rows */
    int n_ptr;
} RtCut;
/* Where share number `share` of n begins; share n: where the last one ends. */
int64_t rt_cut_bound(const RtCut *c, int64_t share, int64_t n);

RT_SERVICE int rt_type_bytes(rt_dtype t);
/* Elements times width of buffer b with the sizes bound now. */
gnnc_status rt_buf_bytes(RtExec *x, int b, size_t *n_bytes);

/* Working memory of one library call, at least n_bytes, 64-byte aligned; the contents are
 * lost at the next call.  NULL: out of memory (recorded).  Allocates only where it grows. */
void *rt_scratch(RtExec *x, size_t n_bytes);
/* The fastest way to multiply 16-bit numbers here.  amx: false = as if there were no AMX. */
RtProducts16 rt_products_16(bool amx);
/* May it be asked for here?  RT_BY_F32 may everywhere. */
bool rt_products_16_here(RtProducts16 by);
/* What rt_gemm_f32 and rt_gemm_16 will ask for; b: of the weight that B is, or NULL. */
size_t rt_gemm_scratch(RtExec *x, const rt_gemm *g, const void *b);
size_t rt_rank_scratch(int64_t len);

const rt_phase *rt_phase_find(const rt_program *p, const char *name); /* NULL: there is none */
const rt_phase *rt_phase_of(const rt_program *p, rt_phase_kind kind);
/* Do "predict" and "embed" draw the neighbours of each row or link by its time, as "train" does?
 * Then "eval" judges what "predict" gave, its input "pred". */
bool rt_predicts_batches(const rt_program *p);
gnnc_status rt_phase_run(RtExec *x, const rt_phase *phase);
/* The buffer of kind `k` that the program calls io_name; -1: there is none. */
int rt_buf_find(const rt_program *p, rt_buf_kind k, const char *io_name);

/* Writes the key buffers for training step `step` (rng.h). */
void rt_write_keys(RtExec *x, uint64_t seed, uint64_t step);
/* Writes a scalar input of any element type; no such input: nothing. */
void rt_write_input(RtExec *x, const char *io_name, double v);
/* Element i of a buffer as a number. */
double rt_buf_read(const RtExec *x, int b, int64_t i);
double rt_read_number(const void *p, rt_dtype dt, int64_t i); /* element i */
/* Sends one line to the host. */
RT_SERVICE void rt_message(RtRuntime *rt, const char *fmt, ...) RT_PRINTF(2, 3);

#endif
