/* Which rows of the data the nodes of a batch are.
 *
 * Trees of a disjoint batch share no node, so a row that several seeds read is several nodes.  What
 * is computed of the row alone is computed once (passes/distinct.c), over the rows in the order in
 * which nodes first are them: a function of the batch alone, and the rows of its first nodes come
 * first.  A table of open addressing finds them; where the data have no more rows than it has
 * places, each row has its own. */
#include "minibatch.h"
#include "runtime/sample/sample_key.h"

gnnc_status rt_batch_once(RtPool *pool, const RtBatchNodes *v, int64_t n_all, RtDistinctRows *out,
                          RtError *err) {
    int64_t room = 16, n = 0;
    while (room < 2 * v->n) room *= 2;
    bool own = n_all <= room;
    int32_t *number = RT_NEWN(pool, int32_t, own ? n_all : room); /* plus 1; 0: free */
    int32_t *distinct = RT_NEWN(pool, int32_t, v->n), *first = RT_NEWN(pool, int32_t, v->n);
    if (!number || !distinct || !first) return rt_fail_nomem(err, "a batch");
    for (int64_t i = 0; i < v->n; i++) {
        int64_t at = v->id[i];
        if (!own) at = (int64_t)(rt_splitmix64((uint64_t)at) & (uint64_t)(room - 1));
        while (number[at] && v->id[first[number[at] - 1]] != v->id[i]) at = (at + 1) & (room - 1);
        if (!number[at]) {
            first[n++] = (int32_t)i;
            number[at] = (int32_t)n;
        }
        distinct[i] = number[at] - 1;
    }
    rt_pool_drop(pool, number);
    *out = (RtDistinctRows){.n = n, .distinct = distinct, .first = first};
    return GNNC_OK;
}

int64_t rt_distinct_among(const RtDistinctRows *o, int64_t n) {
    int64_t lo = 0, hi = o->n; /* the first nodes of rows ascend */
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (o->first[mid] < n)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}
