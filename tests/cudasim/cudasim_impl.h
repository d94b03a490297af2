/* What the simulator's files share. */
#ifndef CUDASIM_IMPL_H
#define CUDASIM_IMPL_H

#include "cuda_runtime_api.h"
#include "cudasim.h"

#include <stdbool.h>

typedef struct {
    unsigned grid[3], block[3]; /* of a kernel */
    void (*call)(void *), (*drop)(void *);
    bool (*ready)(void *); /* NODE_TRANSFER: may it run? */
    void *closure;
} CudasimLaunch;

typedef enum {
    NODE_KERNEL,
    NODE_LIBRARY,
    NODE_COPY,
    NODE_FILL,
    NODE_LOOP,
    NODE_TRANSFER /* of n_bytes at `to` */
} NodeKind;

enum { MOST_AFTER = 16, MOST_STREAMS = 8 };

typedef struct CUgraphNode_st {
    struct CUgraphNode_st *next;
    NodeKind kind;
    int device;
    CudasimLaunch launch;
    void *to;
    const void *from;
    size_t n_bytes;
    int value;
    size_t pitch, rows; /* NODE_FILL: of n_bytes each */
    cudaMemcpyKind copy;
    bool garbled;
    struct Handle *handle;    /* NODE_LOOP: its condition, */
    struct CUgraph_st *graph; /* and what is repeated */
    int number;               /* in its graph */
    bool late;                /* it runs where no other may */
    struct NodeSet *after;    /* what must run before it */
} Node;

/* Nodes of a graph that is recorded. */
typedef struct NodeSet {
    int n;
    struct CUgraphNode_st *v[MOST_AFTER];
} NodeSet;

struct CUstream_st {
    int device;
    struct CUstream_st *next;    /* of all */
    struct Task *first, **tail;  /* queue.c */
    struct CUgraph_st *captured; /* NULL: it queues */
    bool to_graph;               /* that somebody has */
    Node *last;                  /* what the next node comes after; NULL: nothing */
    NodeSet also;                /* .. and what it has waited for since */
    bool has_transfers;          /* it had one: others decide when its work is done */
};

void cudasim_perform(const Node *n);
void cudasim_run_graph(cudaGraphExec_t x);
void cudasim_count_recorded(const Node *n);
void cudasim_count_wait(bool for_event);
/* From ordinary memory of the host: queue.c says when it is read. */
cudaError_t cudasim_queue(cudaStream_t s, const Node *n, bool from_ordinary);
cudaError_t cudasim_queue_graph(cudaStream_t s, cudaGraphExec_t x);
/* A copy or fill that touches [p, p + n_bytes), or a launch of x, if one is named. */
bool cudasim_is_queued(const void *p, size_t n_bytes, cudaGraphExec_t x);
cudaError_t cudasim_record(cudaStream_t s, const Node *n);
/* Events while streams record: where an event was recorded, and what waits for it. */
typedef struct CudasimMark {
    struct CUgraph_st *graph; /* NULL: it was not, or not in a recording */
    NodeSet at;
} CudasimMark;
void cudasim_mark(cudaStream_t s, CudasimMark *m);
cudaError_t cudasim_await_mark(cudaStream_t s, const CudasimMark *m);
/* Which of n nodes that may run does: by CUDASIM_ORDER the last (lazy), the first (lazy:others), or
 * any. */
int cudasim_pick(int n);
cudaError_t cudasim_note(cudaError_t e);
cudaError_t cudasim_graph_fails(void); /* this call; cudaSuccess: it goes on */
void cudasim_count_launch(void);       /* of a graph */
bool cudasim_fits(const unsigned grid[3], const unsigned block[3]);
void cudasim_run(const CudasimLaunch *l);

#endif
