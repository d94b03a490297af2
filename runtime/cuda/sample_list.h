/* What a program's device_sample reads (cuda/sample.h): a graph, where batches of it go, and what
 * is asked of one.  Pointers are the device's. */
#ifndef RUNTIME_CUDA_SAMPLE_LIST_H
#define RUNTIME_CUDA_SAMPLE_LIST_H

#include <stdint.h>

/* A node is known by its slot: itself, or where each seed has a tree of its own, the place that it
 * and its tree have in a table of `slots` (a power of two, twice what is needed or more). */
typedef struct RtDrawType {
    uint32_t *mark;          /* [slots] what the present batch knows of each; all 0 between two */
    unsigned long long *key; /* [slots] tree << 32 | node, + 1; 0 = free, as all are between two;
                                NULL: there are no trees */
    int64_t slots;
    const double *time; /* [nodes of the data] seconds, NaN = unknown; NULL: does not filter */
    int32_t *slot_of;   /* [nodes of the batch] with trees */
    int32_t *id, *tree; /* [nodes of the batch]; tree NULL: there are none */
} RtDrawType;

typedef struct RtDrawRel {
    int32_t src_type, dst_type;
    const int64_t *ptr;            /* [n_dst + 1] of the data: edges by destination */
    const int32_t *src, *id;       /* [E]; id NULL: not wanted */
    const float *weight;           /* [E] or NULL: all alike */
    const double *time, *src_time; /* [E], and that of src_type; as there */
    int32_t inclusive, src_inclusive;
    int32_t sorted;         /* times ascend within each row .. */
    const int32_t *by_time; /* [E] .. in this order, less the row's first; NULL: as they lie */
    int32_t own;            /* the first hop heeds no time */
    int32_t hides;          /* edges between the ends of a link are not drawn */
    /* of the batch, as RtBatchEdges has them */
    int64_t *to_ptr, *to_pos;
    int32_t *to_src, *to_dst, *to_id;
} RtDrawRel;

enum { RT_DRAW_PARTS = 128 }; /* of a sum over many, one for each block */
enum { RT_DRAW_GROUPS = 2 };  /* of seeds, at most: the ends of links are two */

/* The edges that a model scores, as links.h has them: of these links are chosen, and it is looked
 * up whether a negative is one.  Other end: 0 the source, 1 the destination. */
typedef struct RtDrawLinks {
    const int32_t *end[2];                   /* [E] */
    const int32_t *by_query, *split;         /* [E]; as the next three, NULL: none is avoided */
    const int64_t *kind, *query, *of_source; /* [E], [n_queries + 1], [n_src + 1] */
    const double *when, *since[2];           /* [E], [nodes] each or NULL: all are there */
    int64_t n_nodes[2];
    int32_t either, both, side; /* a random end is drawn, or both; else this one */
    int32_t first, last;        /* splits that negatives are no edges of */
} RtDrawLinks;

/* T types, R relations, H hops.  Sums of numbers of rows and of drawn edges are below 2^31. */
typedef struct RtDraw {
    int32_t n_types, n_rels, n_hops, replace, recent;
    int32_t scans;          /* some relation's edges must be looked at one by one */
    const RtDrawType *type; /* [T] */
    const RtDrawRel *rel;   /* [R + G]; the last have no edges: their sources are the G groups of
                               seeds */
    int32_t n_groups;       /* G */
    /* what is asked for */
    const int64_t *n_seeds;    /* [1] of each group */
    const uint64_t *key;       /* [H][R] rt_draw_key() of hop and relation */
    const int32_t *fanout;     /* [H][R] */
    int32_t *seed;             /* [G][n_seeds]; written where links are chosen */
    const int32_t *seed_tree;  /* [n_seeds] of each group's; NULL: there are no trees */
    const int32_t *tree_key;   /* [trees] what each draws by; NULL as well */
    const double *tree_time;   /* [trees]; NULL: edges are not drawn by time */
    const int64_t *hide_first; /* [T + 1] where a type's begin in these; NULL: nothing is hidden */
    const unsigned long long *hide_node; /* tree << 32 | node, ascending: it does not see .. */
    const int32_t *hide_src;             /* .. this source; ascending for each node */
    /* Links and negatives, of which the seeds are the ends: edge[n], then k negatives of each. */
    int32_t pairs; /* they are to be chosen .. */
    int32_t alone; /* .. and nothing is drawn around them */
    RtDrawLinks links;
    const int64_t *n_links; /* n, k, the number that the first link draws by */
    const uint64_t *negative_key;
    const int32_t *edge;
    /* sizes of the batch */
    int64_t *n_nodes, *node_end; /* [T], [T][H + 1] */
    int64_t *n_edges, *edge_end; /* [R], [R][H + 1] */
    int32_t *seed_at;            /* [G][n_seeds] their numbers in the batch */
    /* while a hop is drawn */
    int64_t *node_from;   /* [T] the first node of the last hop */
    int64_t *row_first;   /* [R + 1] rows of relations, one after another: nodes to draw for */
    int64_t *row_node;    /* [R] the first of them, in the batch */
    int64_t *drawn_first; /* [R + G + 1] edges that were drawn, by relations */
    int64_t *new_at, *edges_at; /* [R + G], [R] numbers of an entry's source and edge, less .. */
    int32_t *row_at;            /* [rows + 1] where the edges of a row begin */
    int64_t *row_known;         /* [rows] edges that may be drawn */
    int32_t *row_of, *node;     /* [drawn] its row and source */
    int32_t *slot;              /* [drawn] of the source; without trees `node` itself */
    int64_t *pos, *choice;      /* [drawn] its place in the data's relation; which of the known */
    int32_t *new_before;        /* [drawn + 1] nodes first seen earlier in the hop */
    int64_t *part;              /* [RT_DRAW_PARTS] */
    /* the most there can be, for launches */
    int64_t most_seeds, most_rows, most_drawn, most_nodes,
        most_dst; /* the last two: of all together */
} RtDraw;

#endif
