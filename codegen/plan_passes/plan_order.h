/* Inside of the decisions on the order of steps: plan_touch.c, plan_blocks.c, plan_order.c. */
#ifndef CODEGEN_PLAN_ORDER_H
#define CODEGEN_PLAN_ORDER_H

#include "codegen/lower/lower.h"
#include "runtime/pack.h"

/* Where a step accesses a buffer, as bits. */
typedef enum {
    AT_ROW = 1,         /* at the row that is being computed */
    ANYWHERE = 2,       /* at other rows */
    AS_PARTIAL_SUM = 4, /* written: a sum over rows, or this chunk's part of one */
} AccessPlace;

/* How a step accesses its buffers. */
typedef struct {
    const Expr *rows; /* the rows that it computes; NULL = it cannot be run on a part of them */
    bool by_chunk;    /* its parallel loop is over chunks of the rows */
    unsigned *at;     /* by argument: bits of AccessPlace */
    bool *written;    /* by argument: the step writes it */
} StepAccesses;

/* How step s accesses its buffers. */
StepAccesses plan_step_accesses(Arena *a, const Plan *p, const PStep *s);
/* The same where its condition holds: its rows are then as good as any others. */
StepAccesses plan_step_accesses_where_run(Arena *a, const Plan *p, const PStep *s);
/* The space whose rows the kernel computes one by one or sums in chunks, so that each process can
 * do its own; NULL: every process runs the kernel on all rows.  (plan_exchange.c) */
Space *plan_kernel_rows(const Plan *p, const PStep *s, const StepAccesses *t);

/* Whether the step reads or writes the buffer, or is run only under it as a condition. */
bool plan_step_accesses_buf(const PStep *s, int buf);
/* Whether the step writes the buffer. */
bool plan_step_writes(const PStep *s, int buf);

/* The buffers that a step touches: its arguments, then the condition. */
static inline int plan_n_touched(const PStep *s) {
    return s->n_bufs + (s->pred >= 0);
}

/* Number i of these buffers. */
static inline int plan_touched(const PStep *s, int i) {
    return i < s->n_bufs ? s->bufs[i] : s->pred;
}

/* What a kernel makes of which values (plan_values.c): does it compute op; the argument that holds,
 * or held, op; that is a map's array; the one value that it stores; the plan's buffer of an
 * argument.  NULL, or -1: there is none. */
bool plan_computes(const LKernel *k, const Op *op);
/* The argument that holds op, or held it before the kernel wrote there; NULL: none does. */
const LBuf *plan_argument(const LKernel *k, const Op *op);
/* The argument that is this array of a map, by the segments of another map or NULL; NULL: none is.
 */
const LBuf *plan_map_argument(const LKernel *k, const Map *m, LBufKind part, const Map *by);
/* The value that the kernel stores, under the dimensions that it computes it in; NULL: it stores
 * several, or a partial sum. */
const Op *plan_stored_value(const LKernel *k);
/* The plan's buffer of an argument. */
int plan_argument_buf(const PStep *s, const LBuf *b);

/* The first statement of the kernel that is no value definition: its loop. */
const LStmt *plan_first_loop(const LKernel *k);
/* Whether the step is a kernel that only computes and stores scalars. */
bool plan_is_scalar(const PStep *s);
/* Whether the step is a kernel of scalars, or one parallel loop over elements; such kernels can be
 * joined. */
bool plan_is_elementwise(const PStep *s);
/* The loop over chunks of rows, if that is all that the step's kernel does; NULL = it is not. */
LStmt *plan_chunk_loop(const PStep *s);
/* Whether both kernels run over the same number of chunks. */
bool plan_same_chunks(const PStep *x, const PStep *y);
/* Whether the order of the two steps matters: one writes what the other accesses. */
bool plan_steps_conflict(const PStep *x, const PStep *y);
/* The same, where both may read what neither writes: one of them must be done before the other
 * begins. A product counts with the steps that it covers. */
bool plan_must_stay_ordered(const PStep *x, const PStep *y);

/* Which steps of a phase are done when others begin, where they are in several streams
 * (plan_streams.c): vector clocks. */
typedef struct {
    int n; /* steps */
    /* By step: the one that a device does it with, itself, its product or the first of its group;
     * its stream. */
    int *by, *stream;
    /* By step and stream: the last step of the stream that is done when the step begins, or is it;
     * -1 = none, n = all. */
    int (*seen)[RT_STREAMS_MAX];
    int tail[RT_STREAMS_MAX]; /* by stream: its last step, -1 = none */
} StreamOrder;
StreamOrder plan_stream_order(Arena *a, const PPhase *ph);
/* Notes in used[], by stream the last step that uses a buffer (-1: none), that this one does. */
void plan_stream_use(const StreamOrder *o, int used[RT_STREAMS_MAX], int step);
/* The last step that may run while steps in used[] do, or before: the life of a buffer that is
 * accessed up to step `last` ends there. */
int plan_stream_life(const StreamOrder *o, const int used[RT_STREAMS_MAX], int last);
/* last[] gets, by buffer, the step with which the life of a temporary of the phase must end at the
 * earliest, -1 for others; returns how many live longer by that (plan_live.c). */
int plan_stream_lives(Arena *a, const Plan *p, const PPhase *ph, int *last);

/* How much memory a phase's temporaries need, for nominal sizes of the data (plan_live.c). */
typedef struct {
    const Plan *p;
    const PPhase *ph;
    const int64_t *sizes;        /* by symbol: the nominal size */
    int64_t *live;               /* [steps + 1] bytes that are live, by step */
    RtPackItem *lifetime;        /* [bufs] bytes, and first and last step of each temporary */
    const StreamOrder *order;    /* NULL: one step after the other */
    int (*used)[RT_STREAMS_MAX]; /* [bufs] with `order`: as plan_stream_use() */
} Lives;
/* Prepares the measurement of the memory that a phase needs for temporaries. */
Lives plan_lives(Arena *a, const Plan *p, const PPhase *ph);
/* Bytes live at the fullest step, for the order that steps have now. */
int64_t plan_lives_peak(Lives *l);

/* An order of a phase's steps, and the loops over blocks of rows (PBlocks) that it allows.  A
 * position is a place in the order. */
typedef struct {
    Arena *a;
    const Plan *p;
    const PPhase *ph;
    int phase, n;                 /* index of the phase; number of its steps */
    const StepAccesses *accesses; /* by step of the phase */
    const bool *row_only; /* by buffer: all accesses are AT_ROW, by steps that can run on blocks */
    int *bufs, n_bufs;    /* ids of the buffers that the steps access */
    int *order;           /* by position: the step */
    VEC(PBlocks) loops;   /* found in this order */
    int *first, *last, *block; /* by buffer: first and last position that accesses it; index of the
                                  loop that it is local to, or -1 */
    unsigned char *marks;      /* by buffer: scratch */
    bool *unwanted;            /* by step: no loop shall begin with it */
    int *member, *postponed;   /* [n] scratch */
    int *from, *to;            /* by position: first and last position of the loop that it is in */
    int64_t *bytes, *live;     /* by buffer; by position, the fullest first: nominal */
} Order;

/* Finds the loops of o->order, moving small steps behind them, and the buffers' lives. */
void plan_order_form_loops(Order *o);
/* Why the step after the loop is not in it, in words; NULL: there is no such step. */
const char *plan_order_end_reason(Order *o, const PBlocks *l);
/* The loop over blocks that the step at `at` is in, or NULL; the step there goes behind n others
 * (plan_delay.c). */
const PBlocks *plan_block_at(const PPhase *ph, int at);
/* Moves the step at position `at` to after the n steps that follow it. */
void plan_step_move_behind(PPhase *ph, int at, int n);
/* Whether the step may change its place. */
bool plan_order_is_movable(const PStep *s);
/* By symbol: a size of the order of what data will say. */
int64_t *plan_order_nominal_sizes(Arena *a, const Module *m);

#endif
