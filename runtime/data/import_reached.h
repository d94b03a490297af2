/* Rows that training may read where nothing has a time: what the rows of part `train` lead to over
 * edges, in either direction, but not over rows and edges that are held out; and the edges at such
 * rows. */
#ifndef RUNTIME_IMPORT_REACHED_H
#define RUNTIME_IMPORT_REACHED_H

#include "dataset.h"

typedef struct RtReached {
    RtPool pool;        /* freed by the caller, also after a failure */
    const bool **nodes; /* [node types][rows]; NULL: there is no split, so all are */
    const bool **edges; /* [edge types][edges] */
} RtReached;

gnnc_status rt_import_reached(const RtDataset *d, RtReached *out, RtError *err);

#endif
