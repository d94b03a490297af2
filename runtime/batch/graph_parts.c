/* Graphs lie side by side in the data. */
#include "graph_parts.h"

gnnc_status rt_parts_of_graphs(RtPool *pool, const RtExec *data, const RtBatchMap *map,
                               RtParts *out, RtError *err) {
    const int64_t **ptr = RT_NEWN(pool, const int64_t *, map->n_types);
    if (!ptr) return rt_fail_nomem(err, "batches");
    for (int t = 0; t < map->n_types; t++) {
        const RtTable *nodes = data->rt->bound->table[map->space_of_type[t]];
        ptr[t] = nodes->graph_ptr;
        if (!ptr[t])
            return rt_fail(
                err, GNNC_E_VALUE,
                "%s: nodes of '%s' belong to no graph: a batch of graphs would have none",
                data->rt->bound->dir, nodes->name);
    }
    *out = (RtParts){.n = data->n[data->program->spaces[map->graph_space].sym], .ptr = ptr};
    return GNNC_OK;
}
