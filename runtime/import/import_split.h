/* Splits of rows into what is learned from, chosen by and judged on.  At random each row's part
 * follows from the seed and the row alone; by time the parts are cut at two moments. */
#ifndef RUNTIME_IMPORT_SPLIT_H
#define RUNTIME_IMPORT_SPLIT_H

#include "runtime/data/dataset.h"

typedef struct RtSplitHow {
    char table[64];      /* "" = the one with labels, else the only edge type */
    double part[3];      /* train, validation, test: parts of 1, together 1 */
    const char *by_time; /* a time column of the table: the oldest rows train; NULL = at random */
    uint64_t seed;
    bool replace; /* a split that is there */
} RtSplitHow;

/* "80/10/10" or "0.8/0.1/0.1", behind "paper=" where a table is named; false: no such thing. */
bool rt_split_parse(const char *text, RtSplitHow *how);
/* Makes the column `split`.  Rows without label and rows without time are in no part; rows of one
 * time are in one part, and so are the edges between two nodes.  E_ARG: which table is meant, or
 * the time of it, is not clear; E_STATE: there is a split; E_RANGE: a part would be empty. */
gnnc_status rt_import_split(RtDataset *d, const RtSplitHow *how, RtError *err);

/* Of 0..n-1 in `order`, which ascends by key, the first that belongs behind a cut near `at`, from
 * `least` on: equal keys stay together, on the side that is nearer. */
int64_t rt_split_cut(const int32_t *order, const double *key, int64_t n, int64_t least, double at);
/* In [0, 1), of the seed and what the row is. */
double rt_split_chance(uint64_t seed, uint64_t what);
const RtColumn *rt_table_label(const RtTable *t); /* the first that does; NULL: none */

#endif
