/* Counting sort: one pass to count, one to place; linear and stable, so equal
 * keys keep their order and nothing depends on the number of threads. */
#include "csr.h"

/* The permutation's elements are of 32 bits, or of 64. */
static gnnc_status group(RtPool *pool, const int32_t *keys, int64_t n, int64_t n_groups, bool wide,
                         RtGroups *out, RtError *err) {
    int64_t *ptr = RT_NEWN(pool, int64_t, n_groups + 2);
    if (!ptr) return rt_fail_nomem(err, "group pointers");
    /* Counts go two places up; placing then moves ptr[k + 1] from the start of
     * group k to its end, which is where group k + 1 starts. */
    for (int64_t i = 0; i < n; i++)
        if (keys[i] >= 0) ptr[keys[i] + 2]++;
    for (int64_t k = 2; k <= n_groups; k++) ptr[k] += ptr[k - 1];
    int64_t n_kept = n_groups ? ptr[n_groups] + ptr[n_groups + 1] : 0;
    int32_t *perm = wide ? NULL : RT_NEWN(pool, int32_t, n_kept);
    int64_t *wide_perm = wide ? RT_NEWN(pool, int64_t, n_kept) : NULL;
    if (!perm && !wide_perm) return rt_fail_nomem(err, "group permutation");
    for (int64_t i = 0; i < n && perm; i++)
        if (keys[i] >= 0) perm[ptr[keys[i] + 1]++] = (int32_t)i;
    for (int64_t i = 0; i < n && wide_perm; i++)
        if (keys[i] >= 0) wide_perm[ptr[keys[i] + 1]++] = i;
    *out = (RtGroups){n_groups, n_kept, ptr, perm, wide_perm};
    return GNNC_OK;
}

gnnc_status rt_group(RtPool *pool, const int32_t *keys, int64_t n, int64_t n_groups, RtGroups *out,
                     RtError *err) {
    if (n > INT32_MAX) return rt_fail(err, GNNC_E_RANGE, "more than 2^31 - 1 elements to group");
    return group(pool, keys, n, n_groups, false, out, err);
}

gnnc_status rt_group_wide(RtPool *pool, const int32_t *keys, int64_t n, int64_t n_groups,
                          RtGroups *out, RtError *err) {
    return group(pool, keys, n, n_groups, true, out, err);
}

int64_t *rt_group_bounds(RtPool *pool, const int32_t *keys, int64_t n, int64_t n_groups) {
    int64_t *ptr = RT_NEWN(pool, int64_t, n_groups + 1);
    for (int64_t i = 0; ptr && i < n; i++) ptr[keys[i] + 1]++;
    for (int64_t k = 0; ptr && k < n_groups; k++) ptr[k + 1] += ptr[k];
    return ptr;
}

/* Makes the row of each stored entry, and groups the entries by column. */
gnnc_status rt_csr_nz(RtPool *pool, const RtCsr *m, RtNz *out, RtError *err) {
    int32_t *row = RT_NEWN(pool, int32_t, m->nnz);
    if (!row) return rt_fail_nomem(err, "rows of stored entries");
    for (int64_t r = 0; r < m->n_rows; r++)
        for (int64_t k = m->ptr[r]; k < m->ptr[r + 1]; k++) row[k] = (int32_t)r;
    out->row = row;
    return rt_group(pool, m->col, m->nnz, m->n_cols, &out->by_col, err);
}
