/* What session.c, of rows of nodes, and session_links.c share. */
#ifndef RUNTIME_SESSION_H
#define RUNTIME_SESSION_H

#include <stdatomic.h>

#include "runtime/batch/batch_source.h"
#include "runtime/batch/batch_step.h"
#include "runtime/batch/link_batches.h"
#include "runtime/codes.h"
#include "runtime/model.h"
#include "runtime/trainer.h"

/* Links of a pair's kind, by their number: gnnc_session_link_sizes. */
typedef struct RtServedKinds {
    int64_t n;     /* one more than the highest that an edge is of */
    int32_t *edge; /* [n] an edge of this kind; -1: none is */
} RtServedKinds;

/* What sessions share. */
typedef struct RtServed {
    atomic_int n_sessions;
    gnnc_model *model;
    gnnc_trainer *t;
    RtBatchSource source; /* of rows */
    struct {
        int type;  /* whose rows are predicted; -1: the model scores links */
        int64_t n; /* of that type */
    } rows;
    RtServedKinds kinds;
    bool reads_edges; /* of a pair's kind, what it is scored from */
    int pred;         /* the buffer of what is predicted */
    int rank;         /* of a row's prediction */
    int64_t dim[GNNC_MAX_RANK], row_floats;
} RtServed;

struct gnnc_session {
    RtAlloc from;
    RtServed *of; /* NULL: no data yet */
    RtRuntime rt;
    RtExec x;           /* the whole data, with errors and working memory of the session's */
    RtSampler *sampler; /* of rows */
    RtMinibatch m;
    RtBatchStep step;
    int32_t *id;  /* [BATCH] the rows of a batch */
    double *time; /* [BATCH] .. and their times; NULL: the model knows none */
    uint64_t seed;
    bool ran; /* once: there is room */
};

/* Before each prediction: GNNC_E_STATE where there are no data, or the model gives the other sort:
 * rows of nodes, or scores of links. */
gnnc_status rt_session_begin(gnnc_session *s, bool links);
gnnc_status rt_session_no_row(gnnc_session *s, const char *what, int64_t i, int64_t n);

/* What all sessions of links read; the trainer has its data and weights. */
gnnc_status rt_session_links_share(RtServed *of);

#endif
