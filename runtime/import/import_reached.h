/* Rows of tables without a time that training may read: what the rows of part `train` lead to over
 * edges, in either direction, but not over rows and edges that are held out, by their part or,
 * where rows are dated, by their time; and the edges at such rows. */
#ifndef RUNTIME_IMPORT_REACHED_H
#define RUNTIME_IMPORT_REACHED_H

#include "runtime/data/dataset.h"
#include "import_encode.h"

typedef struct RtMetricValue {
    RtPool pool;        /* freed by the caller, also after a failure */
    const bool **nodes; /* [node types][rows]; NULL: there is no split, so all are */
    const bool **edges; /* [edge types][edges] */
} RtMetricValue;

gnnc_status rt_import_reached(const RtDataset *d, const RtFitRows *rows, RtMetricValue *out,
                              RtError *err);

#endif
