/* A mini-batch as a program's data: its sizes, its columns, its relations and all that is
 * derived from them, in memory that is used anew for each batch. */
#ifndef RUNTIME_MINIBATCH_H
#define RUNTIME_MINIBATCH_H

#include "runtime/bind/bind.h"
#include "recycle.h"

/* Which space of the program is which type or relation of the batch; -1 = none. */
typedef struct RtBatchMap {
    int n_types, n_rels;
    int *space_of_type, *space_of_rel; /* [n_types], [n_rels] */
    int *type_of_space, *rel_of_space; /* [n_spaces] */
    int graph_space;                   /* -1 = the data are one graph */
} RtBatchMap;

typedef struct RtMinibatch RtMinibatch;
/* Changes values that were taken for the batch, before anything is made of them. */
typedef void RtEditColumn(RtMinibatch *m, int column, void *user);

struct RtMinibatch {
    RtBatch *batch;   /* NULL = the whole graph */
    RtExec x;         /* variables, inputs, keys and outputs are those of the data's exec */
    RtBound bound;    /* relations, columns and tables of the batch */
    RtRuntime rt;     /* errors and memory while it is made */
    RtRecycle memory; /* of what is derived */
    RtTeam *team;     /* that gathers columns; NULL = the caller alone */
    RtRows graphs;    /* rows of the graph table, where batches are of graphs */
    struct RtDeviceGather *gathers; /* [n_bufs] what the device takes by itself, out of the data's
                                       buffers, or made by it; NULL: nothing */
    bool defers;                    /* it takes columns out of the data's */
    RtTable *nodes;                 /* [n_spaces] of nodes in graphs */
    RtDistinctRows *distinct;       /* [n_spaces] */
    const int32_t *const *row;      /* [n_spaces] of nodes that a request brings: their rows in
                                       parameters; NULL: all have their own numbers */
    RtColumn *column;               /* [n_columns] */
    RtColumnBuf *column_buf;        /* [n_columns] their memory */
    RtEditColumn *edit;             /* NULL: they are the data's */
    void *editor;                   /* user of edit */
};

/* Is a row in this split of the which-th division, and labelled?  `label` may be NULL. */
static inline bool rt_is_labelled(const RtColumn *split, int which, int of, const RtColumn *label,
                                  int64_t row) {
    if (split->splits[which * split->n_rows + row] != of) return false;
    return !label || label->kind != RT_COL_CLASS || label->i32[row] >= 0;
}
static inline bool rt_is_learned(const RtColumn *split, int which, const RtColumn *label,
                                 int64_t row) {
    enum { TRAIN = 1 };
    return rt_is_labelled(split, which, TRAIN, label, row);
}

/* batch_once.c: the rows that nodes of one type are, numbered as they first come, of n_all in the
 * data.  Time and memory are linear in the nodes. */
gnnc_status rt_batch_once(RtPool *pool, const RtBatchNodes *v, int64_t n_all, RtDistinctRows *out,
                          RtError *err);
/* How many of them are among the first n nodes. */
int64_t rt_distinct_among(const RtDistinctRows *o, int64_t n);

gnnc_status rt_batch_map(RtPool *pool, const rt_program *p, RtBatchMap *out, RtError *err);
/* For batches of the data that `x` is bound to; takes over `batch`, NULL = each is the whole graph.
 * `from`: what grows. */
gnnc_status rt_minibatch_new(RtPool *pool, const RtAlloc *from, const RtExec *x, RtBatch *batch,
                             RtMinibatch *out, RtError *err);
void rt_minibatch_free(RtMinibatch *m);
/* As much room as another one has; a batch in it is lost. */
gnnc_status rt_minibatch_reserve(RtMinibatch *m, const RtMinibatch *like, RtError *err);
/* Of a minibatch that is beside the whole graph: this one is that from now on. */
void rt_minibatch_over(RtMinibatch *m, const RtExec *x);
/* Forgets the batch before: its memory is free for what is made now, in the pool that this gives.
 * `first`: take room for larger batches to come. */
RtPool *rt_minibatch_begin(RtMinibatch *m, const RtExec *data, bool first);
/* Then binds what was sampled into m->batch: sizes and all DATA, MAP and LOGICAL buffers. */
gnnc_status rt_minibatch_bind(RtMinibatch *m, const RtExec *data, const RtBatchMap *map,
                              RtError *err);
/* Where processes pull rows: once those of others are in the columns, the index arrays that are
 * made of them. */
gnnc_status rt_minibatch_bind_pulled(RtMinibatch *m, const RtExec *data, RtError *err);

#endif
