/* Where every buffer of a program lives. */
#ifndef RUNTIME_MEMORY_H
#define RUNTIME_MEMORY_H

#include "runtime/exec/exec.h"

typedef struct RtMemory {
    gnnc_memory need;      /* what the plan says that is needed */
    size_t index_bytes;    /* allocated while binding, and by relations built later */
    size_t *have_bytes;    /* [n_bufs] room behind x->buf, for buffers that a later size enlarges */
    void *arena;           /* of the temporaries of all phases over all of the data */
    size_t arena_bytes;    /* of the block allocated */
    bool spilled;          /* it is a file */
    size_t *offset;        /* [n_bufs] of a TEMP in the arena */
    int64_t batch;         /* seeds of a mini-batch; 0 = the model's */
    const int32_t *fanout; /* [n_hops] of them; NULL = the model's */
} RtMemory;

/* The most that the trainer may need, of which `have` bytes are there already, and whose limit that
 * is, for a message: "its control group allows". (memory_limit.c) */
typedef struct {
    size_t n_bytes;
    const char *what;
} RtMemoryLimit;
RtMemoryLimit rt_memory_limit(size_t have);
/* "9.0 MiB are needed (data 5.0, ..), its control group allows 8.0 MiB" and the hint. */
gnnc_status rt_memory_refuse(RtExec *x, const gnnc_memory *m, size_t all, RtMemoryLimit most,
                             const char *hint);

/* Does output b pass when another phase runs?  Predictions, embeddings and what a step on a batch
 * gives are read at once, and lie where other phases work. */
bool rt_memory_passes(const rt_program *p, int b);
/* Is it a variable that a model's memory has (model_lend.c)? */
bool rt_memory_is_borrowed(const RtExec *x, int b);
/* .. or is it working memory of a phase? */
bool rt_memory_is_temp(const rt_program *p, int b);
/* Does the phase run over batches?  -1: there is none. */
static inline bool rt_memory_is_of_batches(const rt_program *p, int phase) {
    return phase >= 0 && p->phases[phase].batches;
}
/* Places the temporaries of one phase by the sizes x->n: offsets by buffer, and the bytes of all.
 * Tables come from `pool`. */
gnnc_status rt_memory_pack(RtExec *x, RtPool *pool, int phase, size_t *offset, size_t *n_bytes);
/* The same of all phases that run over all of the data, where `bytes` says how large a buffer is.
 */
typedef gnnc_status RtBytesOf(RtExec *x, int b, size_t *n_bytes);
gnnc_status rt_memory_pack_as(RtExec *x, RtBytesOf *bytes, size_t *offset, size_t *n_bytes);
/* Working memory that the library calls of a phase want with sizes n. */
size_t rt_memory_library(RtExec *x, const rt_phase *ph, const int64_t *n);
/* Before index arrays are built: refuses (GNNC_E_LIMIT) what surely does not fit. */
gnnc_status rt_memory_foresee(RtExec *x, RtMemory *m, size_t limit);
/* Sizes of everything from the sizes bound now; nothing but a few tables is allocated.
 * `limit` bytes in all, 0 = what the machine has: GNNC_E_LIMIT tells both numbers. */
gnnc_status rt_memory_plan(RtExec *x, RtMemory *m, size_t limit);
/* Gives every buffer but DATA, MAP and LOGICAL its memory, zeroed, 64-byte aligned. */
gnnc_status rt_memory_alloc(RtExec *x, RtMemory *m);
/* Zeroed memory for a buffer: large ones in huge pages. */
void *rt_memory_block(RtPool *pool, size_t n_bytes);
/* Is there room for so much more, for `what`, where live_bytes are allocated?  GNNC_E_LIMIT as
 * above, with an advice. */
gnnc_status rt_memory_more(RtExec *x, const RtMemory *m, size_t limit, size_t live_bytes,
                           size_t n_bytes, const char *what, const char *advice);
/* A relation was built in the load phase: buffers over it get memory of their own. */
gnnc_status rt_memory_grow(RtExec *x, RtMemory *m);
/* After the load phase: places working memory anew where sizes changed. */
gnnc_status rt_memory_settle(RtExec *x, RtMemory *m, size_t limit);

#endif
