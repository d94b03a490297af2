/* What streams record, and its replay.  A node comes after the one before it in its stream, and
 * after what the stream has waited for; of those whose turn it may be CUDASIM_ORDER chooses one.
 * cudasim_forget_wait() drops one of these, and what was waited for runs as late as it can.  A
 * graph with conditional nodes is a list.  A conditional node has a graph of its own that is
 * repeated while a number holds; the number must be given in front of the node and in each turn, by
 * a kernel of the same launch. */
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
    struct CUstream_st *others[MOST_STREAMS]; /* that have come in since; [n_others] */
    int n_others, n;                          /* n: nodes */
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
        free(n->after);
        free(n);
    }
    for (Handle *h = g ? g->handles : NULL, *next; h; h = next) {
        next = h->next;
        free(h);
    }
    free(g);
}

static void add(NodeSet *to, Node *n) {
    for (int i = 0; i < to->n; i++)
        if (to->v[i] == n) return;
    if (to->n == MOST_AFTER) cudasim_fail("a node comes after too many");
    to->v[to->n++] = n;
}

static Node *append(struct CUgraph_st *g, const Node *n, const NodeSet *after) {
    Node *copy = malloc(sizeof *copy);
    NodeSet *set = malloc(sizeof *set);
    if (!copy || !set) {
        free(copy);
        free(set);
        return NULL;
    }
    *copy = *n;
    *set = *after;
    copy->after = set;
    copy->number = g->n++;
    copy->next = NULL;
    *g->tail = g->last = copy;
    g->tail = &copy->next;
    return copy;
}

/* ---- recording ------------------------------------------------------------------------------ */
/* What the stream's next node comes after. */
static NodeSet behind(const struct CUstream_st *s) {
    NodeSet set = s->also;
    if (s->last) add(&set, s->last);
    return set;
}

cudaError_t cudasim_record(cudaStream_t s, const Node *n) {
    const NodeSet after = behind(s);
    s->last = append(s->captured, n, &after);
    s->also.n = 0;
    return s->last ? cudaSuccess : cudasim_note(cudaErrorMemoryAllocation);
}

/* Marks in seen[], by number, the nodes of the set and all that must run before them.  Nodes stand
 * behind those that they come after. */
static void mark_before(const struct CUgraph_st *g, const NodeSet *set, bool *seen) {
    for (int i = 0; i < set->n; i++) {
        if (seen[set->v[i]->number]) continue;
        seen[set->v[i]->number] = true;
        mark_before(g, set->v[i]->after, seen);
    }
}

/* Whether what comes after the one set comes after the other one, too. */
static bool is_before(const struct CUgraph_st *g, const NodeSet *set, const NodeSet *other) {
    bool *seen = calloc((size_t)g->n + 1, sizeof *seen), all = true;
    if (!seen) cudasim_fail("no memory");
    mark_before(g, other, seen);
    for (int i = 0; i < set->n; i++) all &= seen[set->v[i]->number];
    free(seen);
    return all;
}

void cudasim_mark(cudaStream_t s, CudasimMark *m) {
    *m = (CudasimMark){.graph = s->captured, .at = behind(s)};
}

static int64_t *until_forgotten(void) {
    static int64_t n = -1;
    return &n;
}

void cudasim_forget_wait(int64_t waits) {
    *until_forgotten() = waits;
}

int64_t cudasim_waits_until_forgotten(void) {
    return *until_forgotten();
}

static bool is_forgotten(void) {
    int64_t *n = until_forgotten();
    return *n >= 0 && --*n < 0;
}

cudaError_t cudasim_await_mark(cudaStream_t s, const CudasimMark *m) {
    struct CUgraph_st *g = m->graph;
    if (!g || !g->by || (s->captured && s->captured != g))
        return cudasim_note(cudaErrorStreamCaptureUnsupported);
    if (!s->captured) { /* it comes into the recording */
        if (g->n_others == MOST_STREAMS || s->first) return cudasim_note(cudaErrorInvalidValue);
        g->others[g->n_others++] = s;
        s->captured = g;
        s->last = NULL;
        s->also.n = 0;
    }
    const NodeSet here = behind(s);
    if (is_before(g, &m->at, &here)) return cudaSuccess;
    const bool forgotten = is_forgotten();
    for (int i = 0; i < m->at.n; i++)
        if (forgotten)
            m->at.v[i]->late = true; /* as late as what is left allows */
        else
            add(&s->also, m->at.v[i]);
    return cudaSuccess;
}

bool cudasim_is_recording(const struct CUstream_st *s) {
    return s->captured;
}

static void record_into(cudaStream_t s, struct CUgraph_st *g, bool to_graph) {
    s->captured = g;
    s->to_graph = to_graph;
    s->last = g->last;
    s->also.n = 0;
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

/* Whether the stream that began the recording is behind all that was recorded. */
static bool is_joined(const struct CUstream_st *s, const struct CUgraph_st *g) {
    const NodeSet here = behind(s);
    bool all = true;
    for (Node *n = g->first; n && all; n = n->next) all = is_before(g, &(NodeSet){1, {n}}, &here);
    return all;
}

cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *g) {
    if (!s || !s->captured || s->captured->by != s) return cudasim_note(cudaErrorInvalidValue);
    cudaError_t fails = cudasim_graph_fails();
    *g = s->captured;
    const bool joined = is_joined(s, *g);
    for (int i = 0; i < (*g)->n_others; i++) (*g)->others[i]->captured = NULL;
    (*g)->n_others = 0;
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
    const NodeSet last = {g->last ? 1 : 0, {g->last}};
    Node *node =
        body ? append(g, &(Node){.kind = NODE_LOOP, .handle = h, .graph = body}, &last) : NULL;
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

static bool may_run(const Node *n, const bool *done, bool late) {
    if (done[n->number] || n->late != late) return false;
    for (int i = 0; i < n->after->n; i++)
        if (!done[n->after->v[i]->number]) return false;
    return true;
}

/* One of the nodes, late ones or others, whose turn it may be; NULL: there is none. */
static const Node *next_of(const struct CUgraph_st *g, const bool *done, bool late) {
    int n_ready = 0;
    for (const Node *n = g->first; n; n = n->next) n_ready += may_run(n, done, late);
    int which = n_ready ? cudasim_pick(n_ready) : 0;
    for (const Node *n = g->first; n; n = n->next)
        if (may_run(n, done, late) && which-- == 0) return n;
    return NULL;
}

static void run_all(const struct CUgraph_st *g);

static void run_nodes(const struct CUgraph_st *g, bool *done) {
    enum { MANY = 1000000 };
    for (const Node *n; (n = next_of(g, done, false)) || (n = next_of(g, done, true));) {
        done[n->number] = true;
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

static void run_all(const struct CUgraph_st *g) {
    bool *done = calloc((size_t)g->n + 1, sizeof *done);
    if (!done) cudasim_fail("no memory");
    run_nodes(g, done);
    free(done);
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
    own->n = g->n;
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
