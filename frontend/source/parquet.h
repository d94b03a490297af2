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
/* Begins to read columns of a file; one at a time. */
gnnc_status parquet_begin(Parquet *p, const char *file, const RtSourceTable *t, const int *column,
                          int n, RtError *err);
gnnc_status parquet_next(Parquet *p, RtDatum *cell, bool *more, RtError *err);
void parquet_end(Parquet *p);

#endif
