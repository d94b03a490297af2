/* What streams record, and its replay.  A graph is a list: each node comes after the one before it,
 * and what would stand beside another is refused.  A conditional node has a graph of its own that
 * is repeated while a number holds; the number must be given in front of the node and in each turn,
 * by a kernel of the same launch. */
#include "cudasim_impl.h"

#include <stdlib.h>

typedef struct Handle {
    struct Handle *next;
    struct CUgraphExec_st *in; /* NULL: of a graph that was not made executable */
    bool used, set;            /* by a node; since it was last asked */
    unsigned value;
} Handle;

struct CUgraph_st {
    Node *first, **tail, *last;
    Handle *handles;
    bool inner; /* a node's */
    struct CUstream_st *by;
};
struct CUgraphExec_st {
    struct CUgraph_st *graph;
};

static struct CUgraph_st *graph_new(void) {
    struct CUgraph_st *g = calloc(1, sizeof *g);
    if (g) g->tail = &g->first;
    return g;
}

static void graph_free(struct CUgraph_st *g) {
    for (Node *n = g ? g->first : NULL, *next; n; n = next) {
        next = n->next;
        if (n->launch.drop) n->launch.drop(n->launch.closure);
        graph_free(n->graph);
        free(n);
    }
    for (Handle *h = g ? g->handles : NULL, *next; h; h = next) {
        next = h->next;
        free(h);
    }
    free(g);
}

static Node *append(struct CUgraph_st *g, const Node *n) {
    Node *copy = malloc(sizeof *copy);
    if (!copy) return NULL;
    *copy = *n;
    copy->next = NULL;
    *g->tail = g->last = copy;
    g->tail = &copy->next;
    return copy;
}

/* ---- recording ------------------------------------------------------------------------------ */
cudaError_t cudasim_record(cudaStream_t s, const Node *n) {
    if (s->last != s->captured->last) cudasim_fail("a stream records beside a node of its graph");
    s->last = append(s->captured, n);
    return s->last ? cudaSuccess : cudasim_note(cudaErrorMemoryAllocation);
}

bool cudasim_is_recording(const struct CUstream_st *s) {
    return s->captured;
}

static void record_into(cudaStream_t s, struct CUgraph_st *g, bool to_graph) {
    s->captured = g;
    s->to_graph = to_graph;
    s->last = g->last;
    g->by = s;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode mode) {
    cudaError_t fails = cudasim_graph_fails();
    if (fails) return fails;
    (void)mode;
    if (!s || s->captured) return cudasim_note(cudaErrorStreamCaptureUnsupported);
    struct CUgraph_st *g = graph_new();
    if (!g) return cudasim_note(cudaErrorMemoryAllocation);
    record_into(s, g, false);
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t s, cudaGraph_t g,
                                          const cudaGraphNode_t *after,
                                          const cudaGraphEdgeData *edges, size_t n,
                                          cudaStreamCaptureMode mode) {
    cudaError_t fails = cudasim_graph_fails();
    if (fails) return fails;
    (void)edges, (void)mode;
    if (!s || s->captured || !g || g->by) return cudasim_note(cudaErrorStreamCaptureUnsupported);
    bool behind_all = g->last ? n == 1 && after[0] == g->last : n == 0;
    if (!behind_all) return cudasim_note(cudaErrorInvalidValue);
    record_into(s, g, true);
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *g) {
    if (!s || !s->captured) return cudasim_note(cudaErrorInvalidValue);
    cudaError_t fails = cudasim_graph_fails();
    bool joined = s->last == s->captured->last;
    *g = s->captured;
    (*g)->by = NULL;
    s->captured = NULL;
    if (joined && !fails) return cudaSuccess;
    if (!s->to_graph) graph_free(*g); /* it ends all the same */
    *g = NULL;
    return fails ? fails : cudasim_note(cudaErrorStreamCaptureUnjoined);
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t s, enum cudaStreamCaptureStatus *status,
                                     unsigned long long *id, cudaGraph_t *g,
                                     const cudaGraphNode_t **after, const cudaGraphEdgeData **edges,
                                     size_t *n_after) {
    cudaError_t fails = cudasim_graph_fails();
    if (fails) return fails;
    (void)id, (void)edges;
    *status = s->captured ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    if (!s->captured) return cudaSuccess;
    if (g) *g = s->captured;
    if (after) *after = &s->last;
    if (n_after) *n_after = s->last != NULL;
    return cudaSuccess;
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t s, cudaGraphNode_t *after,
                                                const cudaGraphEdgeData *edges, size_t n,
                                                unsigned flags) {
    cudaError_t fails = cudasim_graph_fails();
    if (fails) return fails;
    (void)edges;
    if (!s || !s->captured || n != 1 || flags != cudaStreamSetCaptureDependencies)
        return cudasim_note(cudaErrorInvalidValue);
    s->last = after[0];
    return cudaSuccess;
}

/* ---- loops ----------------------------------------------------------------------------------- */
cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *out, cudaGraph_t g,
                                             unsigned value, unsigned flags) {
    cudaError_t fails = cudasim_graph_fails();
    if (fails) return fails;
    if (!g || flags) return cudasim_note(cudaErrorInvalidValue);
    Handle *h = calloc(1, sizeof *h);
    if (!h) return cudasim_note(cudaErrorMemoryAllocation);
    *h = (Handle){.next = g->handles, .value = value};
    g->handles = h;
    *out = (cudaGraphConditionalHandle)(uintptr_t)h;
    return cudaSuccess;
}

static Handle *free_handle(const struct CUgraph_st *g, cudaGraphConditionalHandle handle) {
    Handle *h = g->handles;
    while (h && (cudaGraphConditionalHandle)(uintptr_t)h != handle) h = h->next;
    return h && !h->used ? h : NULL;
}

/* Of conditional nodes the `while`, behind all that is there. */
cudaError_t cudaGraphAddNode(cudaGraphNode_t *out, cudaGraph_t g, const cudaGraphNode_t *after,
                             const cudaGraphEdgeData *edges, size_t n,
                             struct cudaGraphNodeParams *p) {
    cudaError_t fails = cudasim_graph_fails();
    if (fails) return fails;
    (void)edges;
    bool is_loop = p->type == cudaGraphNodeTypeConditional && p->conditional.size == 1 &&
                   p->conditional.type == cudaGraphCondTypeWhile;
    bool behind_all = g->last ? n == 1 && after[0] == g->last : n == 0;
    Handle *h = is_loop && behind_all ? free_handle(g, p->conditional.handle) : NULL;
    if (!h) return cudasim_note(cudaErrorInvalidValue);
    struct CUgraph_st *body = graph_new();
    Node *node = body ? append(g, &(Node){.kind = NODE_LOOP, .handle = h, .graph = body}) : NULL;
    if (!node) {
        free(body);
        return cudasim_note(cudaErrorMemoryAllocation);
    }
    body->inner = h->used = true;
    p->conditional.phGraph_out = &node->graph;
    *out = node;
    return cudaSuccess;
}

static struct CUgraphExec_st **running(void) {
    static _Thread_local struct CUgraphExec_st *x;
    return &x;
}

void cudasim_set_conditional(uint64_t handle, unsigned value) {
    Handle *h = (Handle *)(uintptr_t)handle;
    if (!h->in || h->in != *running())
        cudasim_fail("a condition is set outside of its graph's launch");
    h->value = value;
    h->set = true;
}

static bool ask(Handle *h) {
    if (!h->set) cudasim_fail("nobody said whether a loop has a turn");
    h->set = false;
    return h->value != 0;
}

static void run_all(const struct CUgraph_st *g) {
    enum { MANY = 1000000 };
    for (const Node *n = g->first; n; n = n->next) {
        if (g->inner && n->kind != NODE_LOOP) cudasim_count_recorded(n);
        if (n->kind != NODE_LOOP) {
            cudasim_perform(n);
            continue;
        }
        for (int turn = 0; ask(n->handle); turn++) {
            if (turn == MANY) cudasim_fail("a loop does not end");
            cudasim_count_recorded(n);
            run_all(n->graph);
        }
    }
}

/* ---- graphs -------- */
static bool settle(struct CUgraph_st *g, struct CUgraphExec_st *x) {
    bool ok = !g->by;
    for (Handle *h = g->handles; h; h = h->next) {
        ok &= h->used;
        h->in = x;
    }
    for (Node *n = g->first; n; n = n->next)
        if (n->kind == NODE_LOOP) ok &= n->graph->first && settle(n->graph, x);
    return ok;
}

/* The executable graph takes the nodes over.  CUDASIM_NO_GRAPHS=1: there is no memory for any. */
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *x, cudaGraph_t g, unsigned long long flags) {
    cudaError_t fails = cudasim_graph_fails();
    if (fails || getenv("CUDASIM_NO_GRAPHS"))
        return fails ? fails : cudasim_note(cudaErrorMemoryAllocation);
    (void)flags;
    *x = calloc(1, sizeof **x);
    struct CUgraph_st *own = *x ? graph_new() : NULL;
    if (!own || g->inner || !settle(g, *x)) {
        free(own);
        free(*x);
        *x = NULL;
        return cudasim_note(own ? cudaErrorInvalidValue : cudaErrorMemoryAllocation);
    }
    own->first = g->first;
    own->handles = g->handles;
    (*x)->graph = own;
    g->first = NULL;
    g->handles = NULL;
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t x, cudaStream_t s) {
    cudaError_t fails = cudasim_graph_fails();
    if (fails) return fails;
    if (s && s->captured) return cudasim_note(cudaErrorStreamCaptureUnsupported);
    cudasim_count_launch();
    for (const Node *n = x->graph->first; n; n = n->next)
        if (n->kind != NODE_LOOP) cudasim_count_recorded(n);
    if (s) return cudasim_queue_graph(s, x);
    cudasim_run_graph(x);
    return cudaSuccess;
}

void cudasim_run_graph(cudaGraphExec_t x) {
    *running() = x;
    run_all(x->graph);
    *running() = NULL;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t x) {
    if (x && cudasim_is_queued(NULL, 0, x)) cudasim_fail("a graph is destroyed that is queued");
    if (x) graph_free(x->graph);
    free(x);
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t g) {
    if (g && (g->by || g->inner)) return cudasim_note(cudaErrorInvalidValue);
    graph_free(g);
    return cudaSuccess;
}
