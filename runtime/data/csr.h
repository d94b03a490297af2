/* Grouping by counting sort: the one primitive behind destination-sorted edges,
 * their transpose, and the transpose of stored feature entries. */
#ifndef RUNTIME_CSR_H
#define RUNTIME_CSR_H

#include "runtime/status.h"

/* The elements 0..n-1 grouped by key: group g is perm[ptr[g]] .. perm[ptr[g+1]-1],
 * in ascending order.  Elements with key -1 are in no group. */
typedef struct RtGroups {
    int64_t n_groups, n; /* n: grouped elements, = ptr[n_groups] */
    int64_t *ptr;        /* [n_groups + 1] */
    int32_t *perm;       /* [n]; or NULL, and */
    int64_t *wide_perm;  /* .. in 64 bits, of rt_group_wide() */
} RtGroups;

static inline int64_t rt_group_at(const RtGroups *g, int64_t i) {
    return g->wide_perm ? g->wide_perm[i] : g->perm[i];
}

/* Stable; O(n + n_groups).  Every key lies in [-1, n_groups); n < 2^31. */
gnnc_status rt_group(RtPool *pool, const int32_t *keys, int64_t n, int64_t n_groups, RtGroups *out,
                     RtError *err);
/* The same of any number of elements. */
gnnc_status rt_group_wide(RtPool *pool, const int32_t *keys, int64_t n, int64_t n_groups,
                          RtGroups *out, RtError *err);
/* Where each of n_groups groups begins, and behind them where they end: [n_groups + 1].  No key is
 * -1.  NULL: no memory. */
int64_t *rt_group_bounds(RtPool *pool, const int32_t *keys, int64_t n, int64_t n_groups);

/* Rows of stored entries. Within a row the columns ascend strictly. */
typedef struct RtCsr {
    int64_t n_rows, n_cols, nnz;
    const int64_t *ptr; /* [n_rows + 1] */
    const int32_t *col; /* [nnz] */
    const float *val;   /* [nnz] */
} RtCsr;

/* The space of stored entries of a CSR column, as the IR's SP_NZ sees it: the
 * order is row then column, so `ptr` and `col` of the RtCsr are two of its maps
 * and these are the rest. */
typedef struct RtNz {
    int32_t *row;    /* [nnz] */
    RtGroups by_col; /* entries grouped by column, rows ascending */
} RtNz;
gnnc_status rt_csr_nz(RtPool *pool, const RtCsr *m, RtNz *out, RtError *err);

#endif
