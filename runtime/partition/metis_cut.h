/* Parts of a graph by METIS's k-way partitioning (Karypis and Kumar, SIAM J. Sci. Comput. 20(1),
 * 1998).  Edges count in both directions, each pair once, and loops not at all. */
#ifndef RUNTIME_METIS_CUT_H
#define RUNTIME_METIS_CUT_H

#include "runtime/status.h"

typedef void RtEdgeVisit(void *to, int64_t u, int64_t v);

typedef struct RtMetisGraph {
    const char *what; /* in messages: "clusters" */
    int64_t n, n_edges;
    void (*each_edge)(void *user, RtEdgeVisit *visit,
                      void *to); /* the same, whenever it is asked */
    void *user;
    int n_weights;         /* each of them is balanced; 0 = nodes are */
    const int32_t *weight; /* [n][n_weights] */
    int n_parts;
    uint64_t seed;
} RtMetisGraph;

bool rt_has_metis(void); /* was the program built with it? */
/* part [n].  E_RANGE: more edges than METIS can count. */
gnnc_status rt_metis_partition(const RtMetisGraph *how, const RtAlloc *from, int32_t *part,
                               RtError *err);
/* About how many bytes that takes. */
int64_t rt_metis_bytes(int64_t n, int64_t n_edges, int n_weights);

#endif
