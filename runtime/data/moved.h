/* Files of a data directory whose rows move (RtMove in dataset.h), written a piece at a time; each
 * is there whole or not at all. */
#ifndef RUNTIME_MOVED_H
#define RUNTIME_MOVED_H

#include "csr.h"
#include "npy.h"

/* Row i is row rows[i] of `a`, [rows, ..]; lists > 0: of each list of [lists, rows, ..]. */
gnnc_status rt_moved_rows(const RtAlloc *from, const char *path, const RtArray *a, int64_t lists,
                          const int32_t *rows, RtError *err);
/* [2, n]: where the ends of edges lie now. */
gnnc_status rt_moved_ends(const RtAlloc *from, const char *path, int64_t n,
                          const int32_t *const end[2], const int32_t *const place[2], RtError *err);
/* Bounds [n + 1] of lists that move. */
gnnc_status rt_moved_ptr(const RtAlloc *from, const char *path, const int64_t *ptr, int64_t n,
                         const int32_t *rows, RtError *err);
/* The entries of such lists. */
gnnc_status rt_moved_entries(const RtAlloc *from, const char *path, RtDtype dt, const void *entries,
                             const int64_t *ptr, int64_t n, const int32_t *rows, RtError *err);
/* n lines of a text, which messages call `name`. */
gnnc_status rt_moved_lines(const RtAlloc *from, const char *path, RtBytes text, const char *name,
                           int64_t n, const int32_t *rows, RtError *err);

#endif
