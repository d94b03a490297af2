/* Text that is nothing but lines of two whole numbers, as the edges of a large graph are written:
 * read by all cores at once, each some of the lines, into the places that these have. */
#ifndef RUNTIME_IMPORT_PAIRS_H
#define RUNTIME_IMPORT_PAIRS_H

#include "runtime/data/io.h"

typedef struct RtPairs {
    int64_t n;
    int32_t *first, *second; /* [n] of the pool */
    int32_t most;            /* the largest number; -1 = there is none */
} RtPairs;

/* A line is "12,7": with `separator`, numbers as they are printed, alone between them; 0: as edge
 * lists have them, between blanks and commas.  false: some line is another (of those numbers are of
 * nine digits at most), or memory is short.  Who reads line by line takes it, and says what is
 * wrong. */
bool rt_pairs_read(RtPool *pool, RtBytes text, char separator, RtPairs *out);
/* Numbers become their places among all that occur, in ascending order, which are id [*n] of
 * `keep`; false: too few of them do, or memory is short. */
bool rt_pairs_number(RtPool *pool, RtPool *keep, RtPairs *p, int64_t **id, int64_t *n);

#endif
