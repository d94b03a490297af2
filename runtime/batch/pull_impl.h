/* Shared by the files pull*.c. */
#ifndef RUNTIME_PULL_IMPL_H
#define RUNTIME_PULL_IMPL_H

#include "pull.h"
#include "runtime/exec/background.h"

/* A column of the program of which rows are pulled. */
typedef struct {
    int column, type; /* type: of nodes, as batches number them */
    size_t row_bytes; /* 0 of a csr column, whose rows have any number of entries */
    bool sparse;      /* it is one: */
    RtCsr own;        /* its entries in this process's rows, of which the first is row 0 */
    int64_t *end;     /* of rows that are wanted, those of process 0 first: where entries end in the
                         message of the row's owner, which has all columns, then all values */
    char *kept;       /* [n_kept][row_bytes] of others' rows that stay */
    void *here, *all; /* while all rows are here: the buffer with those of this process; they */
} RtPullColumn;

/* A node type whose rows are pulled, and which are wanted now. */
typedef struct {
    const int64_t *bound; /* [n + 1] where the rows of each process begin; NULL: it has no column */
    size_t row_bytes;     /* of all its columns together, */
    int n_sparse;         /* .. but so many csr columns */
    const int32_t *kept;  /* [n_chosen] rows of others that stay here, ascending; the first .. */
    int64_t n_chosen;
    int64_t n_kept;     /* .. so many are here */
    int64_t n;          /* different rows, */
    const int32_t *id;  /* [n] these */
    const int32_t *row; /* .. of a batch: by node, which of them it is */
    int32_t *place;     /* [n] where in the message of its owner it comes; or see below */
} RtPullType;
enum { RT_PULL_OWN = -1, RT_PULL_KEPT = -2 }; /* KEPT - i: it is number i of those that stay */

/* An RtPullUse and the step or, of rows that stay, whether more follow. */
typedef struct {
    int64_t use, number;
} RtPullWhat;
enum { RT_PULL_USE, RT_PULL_NUMBER, RT_PULL_COUNTS }; /* it before the counts of types */

struct RtPulls {
    int rank, n, n_columns;
    bool any_sparse; /* some columns are csr */
    RtBatchMap map;
    RtPullColumn *column; /* [n_columns] by type */
    RtPullType *type;     /* [map.n_types] */
    RtPullWhat what;
    /* [n][rt_pulls_words()] what for, and how many rows this process wants of each, and each of it.
     */
    int64_t *wanted, *asked;
    bool others_go_on; /* with rows that stay */
    const void **out;  /* [n] messages, as gnnc_exchange_fn has them */
    void **in;
    size_t *n_out, *n_in;
    size_t *entries_out, *entries_in; /* [n] bytes of csr columns' entries in messages with rows */
    RtGrowth growth;                  /* of what follows */
    RtGrow ids_out, ids_in, lengths_out, lengths_in, ends, rows_out, rows_in;
    RtError err;        /* why an exchange failed */
    bool all_failed;    /* .. it did in all processes: they may repeat it */
    gnnc_status failed; /* .. it did in this one, and others may be in it: none is tried after it */
    int64_t sent_bytes, messages; /* that are not in the trainer's counters yet */
    /* Rows may come while a step is computed: into this batch, which nobody else touches then. */
    RtMinibatch *into;    /* NULL: none */
    RtBackground *thread; /* NULL: not yet, or there can be none, and rows are waited for */
    bool pending;         /* it is at work, and alone has what is above */
    bool came;            /* what was started last did */
};

/* Numbers of wanted and asked for each process. */
int64_t rt_pulls_words(const RtPulls *p);
/* Nothing is wanted yet. */
void rt_pulls_begin(RtPulls *p, RtPullUse use, int64_t number);
/* Of these different rows of a type, others have to send those that are not here. */
gnnc_status rt_pulls_want(gnnc_trainer *t, RtPool *pool, int type, int64_t n, const int32_t *id);
/* The process that has the row of a type. */
int rt_pulls_owner(const RtPulls *p, int type, int64_t row);
/* Exchanges the messages p->out and p->in: `what` is named in its failure.  Of all processes. */
gnnc_status rt_pulls_send(const gnnc_trainer *t, const char *what);
/* Gives back the room of messages, which the next ones make anew. */
void rt_pulls_free_messages(RtPulls *p);
/* Tells each owner how many rows are wanted of it, and hears how many each process wants: all are
 * at the same.  By any thread: its failures are p->err.  Of all processes. */
gnnc_status rt_pulls_tell_counts(const gnnc_trainer *t);
/* The same, then sends and gets these rows. */
gnnc_status rt_pulls_exchange(const gnnc_trainer *t);
/* Then, in the trainer's thread: counts that, and tells of a failure. */
gnnc_status rt_pulls_end(gnnc_trainer *t, gnnc_status st);
/* Then, column by column: row i of those that were wanted; NULL: it is this process's own. */
const char *rt_pulls_row(const RtPulls *p, const RtPullColumn *c, int64_t i);
/* .. of a csr column, also where the row is this process's own. */
typedef struct {
    int64_t n;
    const void *col, *val; /* int32_t, float [n] */
} RtPullEntries;
RtPullEntries rt_pulls_entries(const RtPulls *p, const RtPullColumn *c, int64_t i);
/* What comes of the next column lies behind what came of this one. */
void rt_pulls_pass_over(RtPulls *p, const RtPullColumn *c);

#endif
