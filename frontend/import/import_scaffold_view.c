#include "import_scaffold_view.h"

#include <string.h>

/* How many steps lead to each node type. */
typedef struct {
    int n_layers, n_up;
    const int *far, *up; /* [n_nodes] in either direction; along references alone */
} Reached;

static bool is_reached(const Reached *to, int type) {
    return to->far[type] <= to->n_layers || to->up[type] <= to->n_up;
}

/* ---- what messages reach ------------------------------------------------------------ */
/* Sets far[type] to the number of layers after which a row of `home` knows of a node type;
 * n_layers + 1: it never does. */
void scaffold_distances(const RtDataset *d, int home, int n_layers, int *far) {
    for (int i = 0; i < d->n_nodes; i++) far[i] = i == home ? 0 : n_layers + 1;
    for (int k = 0; k < n_layers; k++)
        for (int i = 0; i < d->n_edges; i++) {
            int a = d->edges[i].src_type, b = d->edges[i].dst_type;
            if (far[a] == k && far[b] > k + 1) far[b] = k + 1;
            if (far[b] == k && far[a] > k + 1) far[a] = k + 1;
        }
}

/* Sets up[type] to the steps along references alone that lead to a node type from `home`; n_up +
 * 1: more, or none. */
static void find_up(const RtDataset *d, int home, int n_up, int *up) {
    for (int i = 0; i < d->n_nodes; i++) up[i] = i == home ? 0 : n_up + 1;
    for (int k = 0; k < n_up; k++)
        for (int i = 0; i < d->n_edges; i++) {
            int a = d->edges[i].src_type, b = d->edges[i].dst_type;
            if (up[a] == k && up[b] > k + 1) up[b] = k + 1;
        }
}

/* Takes the node types that are reached into `seen`; at[i]: the new place of type i. */
static void take_nodes(const RtDataset *d, const Reached *to, RtDataset *seen, int *at) {
    seen->n_nodes = 0;
    for (int i = 0; i < d->n_nodes; i++) {
        if (!is_reached(to, i)) continue;
        at[i] = seen->n_nodes;
        seen->nodes[seen->n_nodes++] = d->nodes[i];
    }
}

/* Whether messages along a relation arrive: those between two of the farthest node types do not,
 * unless it is a reference on the way up. */
static bool is_read(const Reached *to, int src, int dst) {
    if (!is_reached(to, src) || !is_reached(to, dst)) return false;
    if (to->far[src] < to->n_layers || to->far[dst] < to->n_layers) return true;
    return to->far[dst] > to->n_layers && to->up[dst] == to->up[src] + 1;
}

/* Takes the relations whose messages arrive into `seen`, with the new places of their ends. */
static void take_edges(const RtDataset *d, const Reached *to, RtDataset *seen, const int *at) {
    seen->n_edges = 0;
    for (int i = 0; i < d->n_edges; i++) {
        RtTable t = d->edges[i];
        if (!is_read(to, t.src_type, t.dst_type)) continue;
        t.src_type = at[t.src_type];
        t.dst_type = at[t.dst_type];
        seen->edges[seen->n_edges++] = t;
    }
}

static const char *add_name(RtPool *pool, const char *list, const char *name) {
    return rt_pool_printf(pool, "%s%s%s", list, *list ? ", " : "", name);
}

/* Makes *seen of what n_layers of messages reach from the rows of `home`. *left names the node
 * types that they do not. */
gnnc_status scaffold_reach(RtPool *pool, const RtDataset *d, int home, int n_layers, int n_up,
                           RtDataset *seen, const char **left, RtError *err) {
    int *far = RT_NEWN(pool, int, d->n_nodes + 1), *at = RT_NEWN(pool, int, d->n_nodes + 1);
    int *up = RT_NEWN(pool, int, d->n_nodes + 1);
    const Reached to = {n_layers, n_up, far, up};
    *seen = *d;
    seen->nodes = RT_NEWN(pool, RtTable, d->n_nodes + 1);
    seen->edges = RT_NEWN(pool, RtTable, d->n_edges + 1);
    *left = "";
    if (!far || !at || !up || !seen->nodes || !seen->edges) return rt_fail_nomem(err, "scaffold");
    scaffold_distances(d, home, n_layers, far);
    find_up(d, home, n_up, up);
    take_nodes(d, &to, seen, at);
    take_edges(d, &to, seen, at);
    for (int i = 0; i < d->n_nodes; i++)
        if (!is_reached(&to, i) && !(*left = add_name(pool, *left, d->nodes[i].name)))
            return rt_fail_nomem(err, "scaffold");
    return GNNC_OK;
}

/* The node type that most relations lead to or from; 0 if there are none. */
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
