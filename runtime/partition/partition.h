/* A data set cut into parts: which part each row of a node or graph type goes to, so that parts
 * have as much of everything and few edges lie between them.  Nodes of a graph (graph_ptr) go where
 * it goes.  docs/distributed.md says what is done, and what memory it takes. */
#ifndef RUNTIME_PARTITION_H
#define RUNTIME_PARTITION_H

#include "runtime/data/cache.h"
#include "runtime/data/dataset.h"

enum { RT_FORGET_EDGES = 1 << 22 }; /* read before their pages are given back */

typedef enum {
    RT_PARTITION_CHOOSE, /* METIS where it fits into `memory`, else STREAM */
    RT_PARTITION_METIS,
    RT_PARTITION_STREAM,
    RT_PARTITION_ROWS /* rows stay in their order */
} RtPartitionMethod;

typedef struct RtPartitionOptions {
    int n_parts;
    RtPartitionMethod by;
    uint64_t seed;
    int64_t memory;     /* bytes that METIS may take; 0 = what is free */
    const RtWork *work; /* keeps what is reached, and has what an earlier run reached; or NULL */
} RtPartitionOptions;

typedef struct RtPartStats {
    int64_t nodes, graphs, edges, train; /* edges: those whose destination it has */
    int64_t in, out;                     /* rows of other parts that its edges come from, go to */
} RtPartStats;

typedef struct RtPartTable { /* of a node type, or a graph type */
    const char *name;
    int64_t rows, most, train, most_train; /* most: of a part */
} RtPartTable;

typedef struct RtPartition {
    RtMoves moves;
    RtPartitionMethod by; /* how it was done */
    bool resumed;         /* it went on where an earlier run was ended */
    int64_t edges, cut;   /* cut: whose ends are in two parts */
    double by_chance;     /* share of the edges that would be, of rows thrown into such parts */
    RtPartStats *part;    /* [n_parts] */
    int n_tables;
    RtPartTable *table; /* node types without graphs, then graph types */
} RtPartition;

/* `d`: by rt_dataset_open_mapped; *out lies in the pool. */
gnnc_status rt_partition(RtPool *pool, const RtDataset *d, const RtPartitionOptions *how,
                         RtPartition *out, RtError *err);

/* ---- inside ------------------------------------------------------------------------------ */
/* The rows that move by themselves, in one numbering: nodes without graphs, then graphs. */
typedef struct RtUnits {
    RtPool *pool;
    const RtDataset *d;
    int n_parts, n_tables;
    int64_t n; /* units */
    int64_t n_edges;
    const RtTable **table; /* [n_tables] whose rows are units */
    int64_t *first;        /* [n_tables + 1] */
    int *of_type;          /* [n_nodes] the table of a node type's units */
    const int32_t **graph; /* [n_nodes] the graph of each node; NULL = it is a unit itself */
    uint32_t *work;        /* [n] 1 (of a graph: its nodes) and the ends of edges */
    uint8_t *train;        /* [n] learned from, in the first split */
    int64_t *load, *cap;   /* [n_parts][1 + 2 n_tables], [1 + 2 n_tables]: work, rows, train */
    RtPartitionMethod by;
    int step; /* that an earlier run reached: RT_STEP_ */
    const RtWork *work_dir;
    RtCacheKey kept;
} RtUnits;

/* 1 and 2: units have clusters, after so many passes; CUT + k: parts, after k rounds of refinement;
 * DONE: as they are to be. */
enum { RT_STEP_CUT = 3, RT_STEP_DONE = 100 };
/* What an earlier run of the same options on the same data reached, to part [n] and u->step; else
 * the work's directory is emptied.  partition_state.c */
gnnc_status rt_units_find(RtUnits *u, const RtPartitionOptions *how, int32_t *part, RtError *err);
/* Keeps that the step was reached.  Nothing depends on it, so it does not fail. */
void rt_units_keep(const RtUnits *u, int step, const int32_t *part);

static inline int64_t rt_n_loads(const RtUnits *u) {
    return 1 + 2 * (int64_t)u->n_tables;
}
/* Visits every edge between two units. */
void rt_units_edges(const RtUnits *u, void (*visit)(void *to, int64_t a, int64_t b), void *to);
/* part [n] by the METIS library; by streaming (partition_stream.c). */
gnnc_status rt_units_metis(const RtUnits *u, uint64_t seed, int32_t *part, RtError *err);
gnnc_status rt_units_stream(const RtUnits *u, int32_t *part, RtError *err);
/* Moves units to where their neighbours are, and out of parts that have more than their cap; rounds
 * that an earlier run made are not made again. */
gnnc_status rt_units_refine(const RtUnits *u, int n_rounds, int32_t *part, RtError *err);

#endif
