/* What predict and embed write: which rows, what these are called, and in which form. */
#ifndef RUNTIME_CLI_PREDICT_H
#define RUNTIME_CLI_PREDICT_H

#include "cli.h"
#include "runtime/data/dataset.h"
#include "runtime/data/json.h"
#include "runtime/data/relation.h"
#include "runtime/trainer.h"

/* The rows of a prediction, and those that are asked for. */
typedef struct RtCliRows {
    RtPool *pool;
    RtError *err;
    RtText asked;             /* the bytes of --ids or --nodes; NULL inside: neither was given */
    RtDataset *again;         /* data opened once more, for the ends of edges; NULL = not needed */
    int space;                /* of nodes, edges or graphs; the ends of edges, or the rows: */
    int end[2];               /* spaces of nodes or graphs */
    const RtRelation *edges;  /* of edges; else NULL */
    RtRelation own;           /* .. where the trainer has them no more */
    const char *const *id[2]; /* by end: what its rows are called; NULL = by number */
    int64_t n_all, n;         /* rows there are; that are asked for */
    const int64_t *row;       /* [n] in the order asked for; NULL = all */
} RtCliRows;

/* Reads --ids or --nodes, before anything else takes time. */
gnnc_status rt_cli_rows_read(const RtCli *c, RtCliRows *r);
/* Finds the rows, once data are loaded and `n_all` predictions in buffer `buf` are there. */
gnnc_status rt_cli_rows_find(const RtCli *c, RtCliRows *r, int buf, int64_t n_all);
void rt_cli_rows_free(RtCliRows *r);

/* cli_table.c: writes `a`, the trainer's prediction of all rows, as CSV or as a JSON object a line.
 */
gnnc_status rt_cli_write_table(const RtCli *c, const RtCliRows *r, const RtArray *a,
                               const char *path, RtError *err);

#endif
