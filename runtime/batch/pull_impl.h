/* Shared by the files pull*.c. */
#ifndef RUNTIME_PULL_IMPL_H
#define RUNTIME_PULL_IMPL_H

#include "pull.h"
#include "runtime/exec/background.h"

/* A column of the program of which rows are pulled. */
typedef struct {
    int column, type; /* type: of nodes, as batches number them */
    size_t row_bytes;
    char *kept;       /* [n_kept][row_bytes] of others' rows that stay */
    void *here, *all; /* while all rows are here: the buffer with those of this process; they */
} RtPullColumn;

/* A node type whose rows are pulled, and which are wanted now. */
typedef struct {
    const int64_t *bound; /* [n + 1] where the rows of each process begin; NULL: it has no column */
    size_t row_bytes;     /* of all its columns together */
    const int32_t *kept;  /* [n_kept] rows of others that stay here, ascending */
    int64_t n_kept;
    int64_t n;          /* different rows, */
    const int32_t *id;  /* [n] these */
    const int32_t *row; /* .. of a batch: by node, which of them it is */
    int32_t *place;     /* [n] where in the message of its owner it comes; or see below */
} RtPullType;
enum { RT_PULL_OWN = -1, RT_PULL_KEPT = -2 }; /* KEPT - i: it is number i of those that stay */

struct RtPulls {
    int rank, n, n_columns;
    RtBatchMap map;
    RtPullColumn *column; /* [n_columns] by type */
    RtPullType *type;     /* [map.n_types] */
    /* [n][n_types] rows that this process wants of each, and that each wants of this one. */
    int64_t *wanted, *asked;
    const void **out; /* [n] messages, as gnnc_exchange_fn has them */
    void **in;
    size_t *n_out, *n_in;
    RtGrowth growth; /* of what follows */
    RtGrow ids_out, ids_in, rows_out, rows_in;
    gnnc_status failed;           /* of the first exchange that did: none is tried after it .. */
    RtError err;                  /* .. as this says */
    int64_t sent_bytes, messages; /* that are not in the trainer's counters yet */
    /* Rows may come while a step is computed: into this batch, which nobody else touches then. */
    RtMinibatch *into;    /* NULL: none */
    RtBackground *thread; /* NULL: not yet, or there can be none, and rows are waited for */
    bool pending;         /* it is at work, and alone has what is above */
};

/* Nothing is wanted yet. */
void rt_pulls_begin(RtPulls *p);
/* Of these different rows of a type, others have to send those that are not here. */
gnnc_status rt_pulls_want(gnnc_trainer *t, RtPool *pool, int type, int64_t n, const int32_t *id);
/* The process that has the row of a type. */
int rt_pulls_owner(const RtPulls *p, int type, int64_t row);
/* Exchanges the messages p->out and p->in: `what` is named in its failure.  Of all processes. */
gnnc_status rt_pulls_send(const gnnc_trainer *t, const char *what);
/* Gives back the room of messages, which the next ones make anew. */
void rt_pulls_free_messages(RtPulls *p);
/* Sends and gets what is wanted, by any thread: its failures are p->err.  Of all processes. */
gnnc_status rt_pulls_exchange(const gnnc_trainer *t);
/* Then, in the trainer's thread: counts that, and tells of a failure. */
gnnc_status rt_pulls_end(gnnc_trainer *t, gnnc_status st);
/* Then, column by column: row i of those that were wanted; NULL: it is this process's own. */
const char *rt_pulls_row(const RtPulls *p, const RtPullColumn *c, int64_t i);
/* What comes of the next column lies behind what came of this one. */
void rt_pulls_pass_over(RtPulls *p, const RtPullColumn *c);

#endif
