#include "import_scaffold_view.h"

#include <string.h>

/* ---- what messages reach ------------------------------------------------------------ */
void scaffold_distances(const RtDataset *d, int home, int n_layers, int *far) {
    for (int i = 0; i < d->n_nodes; i++) far[i] = i == home ? 0 : n_layers + 1;
    for (int k = 0; k < n_layers; k++)
        for (int i = 0; i < d->n_edges; i++) {
            int a = d->edges[i].src_type, b = d->edges[i].dst_type;
            if (far[a] == k && far[b] > k + 1) far[b] = k + 1;
            if (far[b] == k && far[a] > k + 1) far[a] = k + 1;
        }
}

static void take_nodes(const RtDataset *d, const int *far, int n_layers, RtDataset *seen, int *at) {
    seen->n_nodes = 0;
    for (int i = 0; i < d->n_nodes; i++) {
        if (far[i] > n_layers) continue;
        at[i] = seen->n_nodes;
        seen->nodes[seen->n_nodes++] = d->nodes[i];
    }
}

/* What two of the farthest types tell each other never arrives. */
static void take_edges(const RtDataset *d, const int *far, int n_layers, RtDataset *seen,
                       const int *at) {
    seen->n_edges = 0;
    for (int i = 0; i < d->n_edges; i++) {
        RtTable t = d->edges[i];
        if (far[t.src_type] >= n_layers && far[t.dst_type] >= n_layers) continue;
        t.src_type = at[t.src_type];
        t.dst_type = at[t.dst_type];
        seen->edges[seen->n_edges++] = t;
    }
}

static const char *add_name(RtPool *pool, const char *list, const char *name) {
    return rt_pool_printf(pool, "%s%s%s", list, *list ? ", " : "", name);
}

gnnc_status scaffold_reach(RtPool *pool, const RtDataset *d, int home, int n_layers,
                           RtDataset *seen, const char **left, RtError *err) {
    int *far = RT_NEWN(pool, int, d->n_nodes + 1), *at = RT_NEWN(pool, int, d->n_nodes + 1);
    *seen = *d;
    seen->nodes = RT_NEWN(pool, RtTable, d->n_nodes + 1);
    seen->edges = RT_NEWN(pool, RtTable, d->n_edges + 1);
    *left = "";
    if (!far || !at || !seen->nodes || !seen->edges) return rt_fail_nomem(err, "scaffold");
    scaffold_distances(d, home, n_layers, far);
    take_nodes(d, far, n_layers, seen, at);
    take_edges(d, far, n_layers, seen, at);
    for (int i = 0; i < d->n_nodes; i++)
        if (far[i] > n_layers && !(*left = add_name(pool, *left, d->nodes[i].name)))
            return rt_fail_nomem(err, "scaffold");
    return GNNC_OK;
}

int scaffold_hub(const RtDataset *d) {
    int best = 0, most = 0;
    for (int i = 0; i < d->n_nodes; i++) {
        int n = 0;
        for (int j = 0; j < d->n_edges; j++)
            n += (d->edges[j].src_type == i) + (d->edges[j].dst_type == i);
        if (n > most) most = n, best = i;
    }
    return best;
}
