/* A file of arrays that were made of data, kept beside these: whoever finds it whole, and made of
 * the same data in the same way, maps it in place of making them again.
 *
 * Nothing depends on such a file: one that is not there, cut off, changed, of another byte order or
 * version, or a link, is as good as none, and one that cannot be written is not.  It is made
 * without a name and renamed, so that of several writers the last one's stays, whole, and whoever
 * has mapped another one's keeps that. */
#ifndef RUNTIME_KEPT_H
#define RUNTIME_KEPT_H

#include "dataset.h"
#include "runtime/exec/team.h"

#define RT_CACHE_END ".kept" /* of their names */

typedef struct RtCacheArray {
    const void *p; /* a multiple of 64 bytes where the file is mapped */
    uint64_t n_bytes;
} RtCacheArray;

/* What the arrays are made of, and of what kind they are. */
typedef struct RtCacheKey {
    const RtStamp *data; /* what the arrays were made of */
    uint64_t what;       /* which arrays: a hash of what they are for */
} RtCacheKey;

/* The arrays of a file, which live as long as the pool; `n` of them.  map: they stay in the file,
 * which must not be changed in place then; else they are read.  Each is compared with its hash. */
bool rt_cache_read(RtPool *pool, const char *path, const RtCacheKey *of, bool map, RtTeam *team,
                   const RtCacheArray **array, int *n);
/* Nothing is written of data that were changed less than two seconds before they were opened:
 * another change might leave no trace in the files' times. */
bool rt_cache_write(const RtAlloc *from, const char *path, const RtCacheKey *of, RtTeam *team,
                    const RtCacheArray *array, int n);

#endif
