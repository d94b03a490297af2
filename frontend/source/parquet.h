/* Parquet files, read by pyarrow in a process of its own that answers with Arrow's IPC streams. */
#ifndef FRONTEND_SOURCE_PARQUET_H
#define FRONTEND_SOURCE_PARQUET_H

#include <sys/types.h>

#include "arrow_ipc.h"

typedef struct Parquet {
    pid_t helper; /* 0: none runs */
    int fd;
    ArrowStream rows;
    bool reads; /* rows */
} Parquet;

/* E_MISSING: there is no python3, or it has no pyarrow.  The caller closes it also then. */
gnnc_status parquet_open(Parquet *p, RtError *err);
void parquet_close(Parquet *p);
/* Columns and rows of a file, in the pool of the table's source; t->name is set. */
gnnc_status parquet_describe(Parquet *p, RtPool *pool, const char *file, RtSourceTable *t,
                             RtError *err);
/* How many elements the lists in a column of a file have at most, all together; absent and empty
 * lists count as one.  E_IO: it has no lists of whole numbers. */
gnnc_status parquet_count_items(Parquet *p, const char *file, const char *list, int64_t *n,
                                RtError *err);
/* Begins to read columns of a file; one at a time.  list: the one of lists, NULL: none. */
gnnc_status parquet_begin(Parquet *p, const char *file, const RtSourceTable *t, const int *column,
                          int n, const char *list, RtError *err);
gnnc_status parquet_next(Parquet *p, RtDatum *cell, bool *more, RtError *err);
void parquet_end(Parquet *p);

#endif
