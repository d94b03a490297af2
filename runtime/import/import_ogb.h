/* Shared by the readers of Open Graph Benchmark folders. */
#ifndef RUNTIME_IMPORT_OGB_H
#define RUNTIME_IMPORT_OGB_H

#include "import_build.h"
#include "import_folder.h"

typedef struct Ogb {
    RtBuild b;
    RtPool pool; /* for what the data set does not keep */
    const RtFolder *f;
} Ogb;

/* <dir>/<stem>.csv.gz or .csv as numbers, kept as long as the data set. */
gnnc_status rt_ogb_numbers(Ogb *o, const char *dir, const char *stem, RtArray *a, bool *found);
/* <dir>/train.pt, valid.pt, test.pt, if they are there, as edges `target` and `no_target`. */
gnnc_status rt_ogb_links(Ogb *o, const RtTable *nodes, const char *dir);

#endif
