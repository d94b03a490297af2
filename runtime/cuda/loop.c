/* Loops in a recording: conditional nodes of a CUDA graph (CUDA 12.4), whose body is a graph that
 * the device repeats while a number holds, without the host.
 *
 *     .. -> gn_iterate -> [ while: body .. -> gn_iterate ] -> ..
 *
 * The stream that records goes along: at a loop's begin the recording so far ends, and it goes on
 * into the body's graph; at the loop's end it goes on in the graph around, behind the node.  So
 * cuBLAS and all else keep their one stream.  Loops in loops stand on a stack. */
#include "cuda.h"

#if CUDART_VERSION >= 12040
/* Finds out whether loops can be recorded: the program has the kernel, the driver knows conditional
 * nodes, and there is room for the counts of iterations. */
gnnc_status rt_cuda_loops_open(RtDevice *d) {
    const rt_program *p = d->x->program;
    Cuda *c = rt_cuda_of(d);
    int most = 0, driver = 0;
    for (int i = 0; i < p->n_phases; i++) {
        int n = 0;
        for (int k = 0; p->phases[i].steps && k < p->phases[i].n_steps; k++)
            n += p->phases[i].steps[k].kind == RT_STEP_LOOP;
        if (n > most) most = n;
    }
    CUDA_CHECK(d, "the driver's version", cudaDriverGetVersion(&driver));
    if (!p->device_iterate || !most || driver < 12040) return GNNC_OK;
    if (!(c->loop = RT_NEWN(&d->x->rt->pool, CudaLoop, most)))
        return rt_fail_nomem(&d->x->rt->err, "loops");
    CUDA_CHECK(d, "loops",
               cudaMalloc((void **)&c->iterations, (size_t)most * sizeof *c->iterations));
    c->most_loops = most;
    return GNNC_OK;
}

/* Launches the kernel that sets whether the loop's body runs once more; begins: it is the first
 * time, and the count starts at 0. */
static gnnc_status iteration(RtDevice *d, int begins) {
    Cuda *c = rt_cuda_of(d);
    CudaLoop *l = &c->loop[c->n_loops - 1];
    void *const arg[] = {&l->handle, l->condition, c->iterations + c->n_loops - 1, &l->limit,
                         &begins};
    return d->ops->launch(d, d->x->program->device_iterate, "while", arg);
}

/* Adds the node of the loop to the graph, after what the stream has recorded so far. */
static gnnc_status add_node(RtDevice *d, CudaLoop *l) {
    struct cudaGraphNodeParams node = {.type = cudaGraphNodeTypeConditional};
    const cudaGraphNode_t *after = NULL;
    enum cudaStreamCaptureStatus status;
    size_t n_after = 0;
    cudaStream_t s = rt_cuda_of(d)->stream;
    node.conditional.handle = l->handle;
    node.conditional.type = cudaGraphCondTypeWhile;
    node.conditional.size = 1;
#if CUDART_VERSION >= 13000
    CUDA_CHECK(d, "a loop",
               cudaStreamGetCaptureInfo(s, &status, NULL, NULL, &after, NULL, &n_after));
    CUDA_CHECK(d, "a loop", cudaGraphAddNode(&l->node, l->around, after, NULL, n_after, &node));
    CUDA_CHECK(d, "a loop",
               cudaStreamUpdateCaptureDependencies(s, &l->node, NULL, 1,
                                                   cudaStreamSetCaptureDependencies));
#else
    CUDA_CHECK(d, "a loop", cudaStreamGetCaptureInfo_v2(s, &status, NULL, NULL, &after, &n_after));
    CUDA_CHECK(d, "a loop", cudaGraphAddNode(&l->node, l->around, after, n_after, &node));
    CUDA_CHECK(
        d, "a loop",
        cudaStreamUpdateCaptureDependencies(s, &l->node, 1, cudaStreamSetCaptureDependencies));
#endif
    l->body = node.conditional.phGraph_out[0];
    return GNNC_OK;
}

/* Lets what follows be recorded into graph g, behind the node `after` (NULL: at its begin). */
static gnnc_status into(RtDevice *d, cudaGraph_t g, const cudaGraphNode_t *after) {
    CUDA_CHECK(d, "a loop",
               cudaStreamBeginCaptureToGraph(rt_cuda_of(d)->stream, g, after, NULL, after != NULL,
                                             cudaStreamCaptureModeThreadLocal));
    return GNNC_OK;
}

/* *g gets the graph that is being recorded on the stream. */
static gnnc_status capturing_graph(RtDevice *d, cudaGraph_t *g) {
    enum cudaStreamCaptureStatus status;
    cudaStream_t s = rt_cuda_of(d)->stream;
#if CUDART_VERSION >= 13000
    CUDA_CHECK(d, "a loop", cudaStreamGetCaptureInfo(s, &status, NULL, g, NULL, NULL, NULL));
#else
    CUDA_CHECK(d, "a loop", cudaStreamGetCaptureInfo_v2(s, &status, NULL, g, NULL, NULL));
#endif
    return GNNC_OK;
}

/* Begins a while-loop in the graph that is being recorded (a conditional node): what is queued from
 * here on is its body. */
gnnc_status rt_cuda_loop_begin(RtDevice *d, const void *condition, int64_t limit) {
    Cuda *c = rt_cuda_of(d);
    CudaLoop *l = &c->loop[c->n_loops];
    cudaGraph_t same;
    gnnc_status st;
    *l = (CudaLoop){.condition = (void *)(uintptr_t)condition, .limit = limit};
    TRY(st, capturing_graph(d, &l->around));
    CUDA_CHECK(d, "a loop", cudaGraphConditionalHandleCreate(&l->handle, l->around, 0, 0));
    c->n_loops++;
    TRY(st, iteration(d, 1));
    TRY(st, add_node(d, l));
    CUDA_CHECK(d, "a loop", cudaStreamEndCapture(c->stream, &same));
    if (!c->whole) c->whole = same; /* ours from here on */
    st = into(d, l->body, NULL);
out:
    return st;
}

/* Ends the body of the innermost loop that is recorded, with the kernel that decides whether it
 * runs again, and goes on recording behind the loop. */
gnnc_status rt_cuda_loop_end(RtDevice *d) {
    Cuda *c = rt_cuda_of(d);
    CudaLoop *l = &c->loop[c->n_loops - 1];
    cudaGraph_t body;
    gnnc_status st;
    TRY(st, iteration(d, 0));
    CUDA_CHECK(d, "a loop", cudaStreamEndCapture(c->stream, &body));
    c->n_loops--;
    st = into(d, l->around, &l->node);
out:
    return st;
}
#else
gnnc_status rt_cuda_loops_open(RtDevice *d) {
    (void)d;
    return GNNC_OK;
}

gnnc_status rt_cuda_loop_begin(RtDevice *d, const void *condition, int64_t limit) {
    (void)condition, (void)limit;
    return rt_cuda_failed(d, cudaErrorNotSupported, "a loop");
}

gnnc_status rt_cuda_loop_end(RtDevice *d) {
    return rt_cuda_failed(d, cudaErrorNotSupported, "a loop");
}
#endif

bool rt_cuda_has_loops(const RtDevice *d) {
    return ((const Cuda *)d->self)->most_loops > 0;
}
