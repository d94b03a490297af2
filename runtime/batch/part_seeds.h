/* Seeds by part (option seeds_by_part): of data in parts each batch has seeds of one part, so that
 * the process that has the part finds most of what the batch reads here.
 *
 * An epoch's batches follow from the data, the seed and the size of a batch alone.  The seeds of a
 * part are shuffled by themselves, from the order of the rows that they once were (part_rows), and
 * cut into equal batches; parts take turns, each as often as its share of the batches, in an order
 * in which parts that lie beside each other, and so belong to one process, are far apart. */
#ifndef RUNTIME_PART_SEEDS_H
#define RUNTIME_PART_SEEDS_H

#include "runtime/data/dataset.h"

typedef struct RtPartSeeds {
    const RtTable *table;
    int n_parts;
    int64_t *first;    /* [n_parts + 1] where its seeds begin in the list */
    int64_t *count;    /* [n_parts] its batches */
    int64_t n_batches; /* of all */
    int32_t *part;     /* [n_batches] of each batch .. */
    int32_t *turn;     /* [n_batches] .. and which of the part's it is */
    bool whole;        /* only batches of the full size: what is left over is in none */
    int64_t batch;     /* .. which is this; else a batch has as many at most */
} RtPartSeeds;

/* Of seeds [n], rows of the table in ascending order, which are put in the order of the rows that
 * they were.  E_VALUE: a part has seeds, but too few for one whole batch. */
gnnc_status rt_part_seeds_make(RtPool *pool, const RtTable *table, int32_t *seed, int64_t n,
                               int64_t batch, bool whole, RtPartSeeds *out, RtError *err);
/* Seeds of the largest batch. */
int64_t rt_part_seeds_most(const RtPartSeeds *p);
/* Puts the seeds, as made, in the order of an epoch. */
void rt_part_seeds_shuffle(const RtPartSeeds *p, uint64_t seed, uint64_t epoch, int32_t *order);
/* Where a batch of the epoch lies in that: *n seeds from the result on. */
int64_t rt_part_seeds_of(const RtPartSeeds *p, int64_t batch, int64_t *n);

#endif
