/* Clusters are cut when training starts, once. */
#include "train_parts.h"

/* Places of each part's rows among `row`, by counting. */
static void sort_by_part(const int32_t *part, int64_t n_rows, int64_t n_parts, int64_t *ptr,
                         int32_t *row) {
    for (int64_t i = 0; i < n_rows; i++) ptr[part[i] + 1]++;
    for (int64_t p = 0; p < n_parts; p++) ptr[p + 1] += ptr[p];
    for (int64_t i = n_rows; i-- > 0;) row[--ptr[part[i] + 1]] = (int32_t)i;
    for (int64_t p = 0; p < n_parts; p++) ptr[p] = ptr[p + 1];
    ptr[n_parts] = n_rows;
}

gnnc_status rt_parts_of_clusters(RtPool *pool, const RtSampleGraph *g, int64_t n, uint64_t seed,
                                 RtParts *out, RtError *err) {
    const int64_t **ptr = RT_NEWN(pool, const int64_t *, g->n_types);
    const int32_t **row = RT_NEWN(pool, const int32_t *, g->n_types);
    gnnc_status st = GNNC_E_NOMEM;
    RtPool scratch;
    rt_pool_init(&scratch, &pool->from);
    int32_t **part = RT_NEWN(&scratch, int32_t *, g->n_types);
    if (!ptr || !row || !part) goto out;
    for (int t = 0; t < g->n_types; t++)
        if (!(part[t] = RT_NEWN(&scratch, int32_t, g->type[t].n))) goto out;
    st = rt_sample_clusters(g, (int)n, seed, &pool->from, part, err);
    for (int t = 0; t < g->n_types && st == GNNC_OK; t++) {
        int64_t *at = RT_NEWN(pool, int64_t, n + 1);
        int32_t *rows = RT_NEWN(pool, int32_t, g->type[t].n);
        if (at && rows)
            sort_by_part(part[t], g->type[t].n, n, at, rows);
        else
            st = GNNC_E_NOMEM;
        ptr[t] = at;
        row[t] = rows;
    }
    *out = (RtParts){n, ptr, row};
out:
    rt_pool_free(&scratch);
    return st == GNNC_E_NOMEM ? rt_fail_nomem(err, "clusters") : st;
}

int64_t rt_parts_learned(const RtExec *data, const RtBatchMap *map, const RtBatch *b) {
    const rt_sampling *s = &data->program->sampling;
    const RtBound *all = data->rt->bound;
    const RtColumn *split = all->col[s->split], *label = s->label >= 0 ? all->col[s->label] : NULL;
    const RtBatchNodes *rows =
        &b->nodes[map->type_of_space[data->program->columns[s->split].space]];
    int64_t n = 0;
    for (int64_t i = 0; i < rows->n; i++) n += rt_is_learned(split, all->split, label, rows->id[i]);
    return n;
}
