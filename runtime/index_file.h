/* Index arrays of a data directory, kept in it: relations, their transposes and the balanced cuts
 * of loops over them, of which the next start reads (cache.h) what this one has made.  On a hit the
 * edges themselves are not read at all.
 *
 *     ends.kept         of each table of edges: its loops, and what the fingerprint sees of it
 *     index-HASH.kept   what a program with these maps and relations has of the data
 *
 * Programs whose arrays depend on more than the edges, as those with edges that a condition keeps,
 * make them at each start. */
#ifndef RUNTIME_INDEX_FILE_H
#define RUNTIME_INDEX_FILE_H

#include "runtime/bind/bind.h"

/* Functions are found here, so that libraries that only predict are without them. */
typedef struct RtIndexFile {
    /* Everything that is built before the first phase runs; or, not *found, the ends that it is
     * built of. */
    gnnc_status (*find)(struct RtIndexFile *f, RtExec *x, bool *found);
    void (*keep)(struct RtIndexFile *f, RtExec *x);
    RtDataset *data; /* as it was opened, late */
    bool map;
} RtIndexFile;

/* After rt_dataset_open_late; *out NULL: no table was left in its file. */
gnnc_status rt_index_file_open(RtExec *x, RtDataset *data, bool map, RtIndexFile **out);

#endif
