/* What the simulator's files share. */
#ifndef CUDASIM_IMPL_H
#define CUDASIM_IMPL_H

#include "cuda_runtime_api.h"
#include "cudasim.h"

#include <stdbool.h>

typedef struct {
    unsigned grid[3], block[3]; /* of a kernel */
    void (*call)(void *), (*drop)(void *);
    void *closure;
} CudasimLaunch;

typedef enum { NODE_KERNEL, NODE_LIBRARY, NODE_COPY, NODE_FILL, NODE_LOOP } NodeKind;

typedef struct CUgraphNode_st {
    struct CUgraphNode_st *next;
    NodeKind kind;
    CudasimLaunch launch;
    void *to;
    const void *from;
    size_t n_bytes;
    int value;
    cudaMemcpyKind copy;
    bool garbled;
    struct Handle *handle;    /* NODE_LOOP: its condition, */
    struct CUgraph_st *graph; /* and what is repeated */
} Node;

struct CUstream_st {
    struct CUgraph_st *captured; /* NULL: runs at once */
    bool to_graph;               /* that somebody has */
    Node *last;                  /* what the next node comes after; NULL: nothing */
};

void cudasim_perform(const Node *n, bool counted); /* of a loop: a turn is counted */
cudaError_t cudasim_record(cudaStream_t s, const Node *n);
cudaError_t cudasim_note(cudaError_t e);
cudaError_t cudasim_graph_fails(void); /* this call; cudaSuccess: it goes on */
void cudasim_count_launch(void);       /* of a graph */
bool cudasim_fits(const unsigned grid[3], const unsigned block[3]);
void cudasim_run(const CudasimLaunch *l);

#endif
