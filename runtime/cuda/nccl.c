/* Memory that goes from the GPU of one process to those of others, by NCCL.
 *
 * It goes in a stream of its own, behind what the process that has it has queued, while steps are
 * made.  All processes call for all transfers in the same order, so each waits for earlier ones
 * alone, and the first that is not done waits for one GPU's kernels: none waits in a circle, also
 * where a transfer's kernel holds up an allocation.
 *
 * A transfer whose other end is gone may never end, or NCCL finds out: the host looks after both,
 * and then gives up all of them, as memory cannot be freed while one goes on.
 *
 * Where processes share steps the host waits for what it shared (peers_share, peers_wait). Where
 * they share rows the steps' stream waits for what comes (peers_swap, peers_add, peers_join), so
 * that all who wait for that stream look after transfers (rt_cuda_wait_for_steps). */
#include "cuda.h"

#include "runtime/clock.h"

#include <dlfcn.h>
#include <string.h>

#define LIBRARY "libnccl.so.2"

/* ---- the library ----------------------------------------------------------------------------- */
/* Opens it and finds its functions; false: it is not there, or an older one. */
static bool load(CudaPeers *p) {
    void *at = NULL;
    p->tried = true;
    p->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!p->library) return false;
#define FIND(f)                                                                                    \
    at = dlsym(p->library, CUDA_TEXT(f));                                                          \
    if (!at) return false;                                                                         \
    memcpy(&p->p_##f, &at, sizeof at);
    CUDA_NCCL_FUNCTIONS(FIND)
#undef FIND
    return p->p_ncclGetVersion(&p->version) == ncclSuccess;
}

static gnnc_status call_failed(RtDevice *d, const char *what, ncclResult_t r) {
    const char *why = rt_cuda_of(d)->peers.p_ncclGetErrorString(r);
    return rt_fail(&d->x->rt->err, r == ncclRemoteError ? GNNC_E_IO : GNNC_E_DEVICE, "nccl: %s: %s",
                   what, why);
}

int rt_cuda_peers_version(RtDevice *d) {
    CudaPeers *p = &rt_cuda_of(d)->peers;
    if (!p->tried && !load(p)) p->version = 0;
    return p->version;
}

/* ---- the group ------------------------------------------------------------------------------- */
gnnc_status rt_cuda_peers_id(RtDevice *d, RtPeersId *id) {
    ncclUniqueId own;
    ncclResult_t r = rt_cuda_of(d)->peers.p_ncclGetUniqueId(&own);
    if (r != ncclSuccess) return call_failed(d, "the processes' group", r);
    memcpy(id->bytes, own.internal, sizeof id->bytes);
    return GNNC_OK;
}

gnnc_status rt_cuda_peers_open(RtDevice *d, const RtPeersId *id, int rank, int n) {
    Cuda *c = rt_cuda_of(d);
    CudaPeers *p = &c->peers;
    ncclUniqueId own;
    memcpy(own.internal, id->bytes, sizeof own.internal);
    CUDA_CHECK(d, "an event", cudaEventCreateWithFlags(&p->ready, cudaEventDisableTiming));
    CUDA_CHECK(d, "an event", cudaEventCreateWithFlags(&p->came, cudaEventDisableTiming));
    CUDA_CHECK(d, "a stream", rt_cuda_stream(c, &p->stream));
    p->rank = rank;
    p->n = n;
    p->patience_s = 0;
    ncclResult_t r = p->p_ncclCommInitRank(&p->comm, n, own, rank);
    if (r == ncclSuccess) return GNNC_OK;
    p->comm = NULL;
    return call_failed(d, "the processes' group", r);
}

/* Ends the group without the others: what is under way is given up. */
static void give_up(CudaPeers *p) {
    if (p->comm) p->p_ncclCommAbort(p->comm);
    p->comm = NULL;
}

void rt_cuda_peers_close(RtDevice *d, bool lost) {
    CudaPeers *p = &rt_cuda_of(d)->peers;
    if (p->comm && !lost && !p->under_way)
        p->p_ncclCommDestroy(p->comm);
    else
        give_up(p);
    p->comm = NULL;
    if (p->stream) cudaStreamDestroy(p->stream);
    if (p->ready) cudaEventDestroy(p->ready);
    if (p->came) cudaEventDestroy(p->came);
    p->stream = NULL;
    p->ready = p->came = NULL; /* the library stays, as cuBLAS does */
    p->under_way = false;
}

static gnnc_status no_group(RtDevice *d) {
    return rt_fail(&d->x->rt->err, GNNC_E_IO, "nccl: the processes' group was given up");
}

/* ---- transfers ------------------------------------------------------------------------------- */
/* Lets the transfers that follow begin after what the steps' stream has so far. */
static gnnc_status put_behind_steps(RtDevice *d, const Cuda *c) {
    CUDA_CHECK(d, "a transfer", cudaEventRecord(c->peers.ready, c->stream));
    CUDA_CHECK(d, "a transfer", cudaStreamWaitEvent(c->peers.stream, c->peers.ready, 0));
    return GNNC_OK;
}

gnnc_status rt_cuda_peers_share(RtDevice *d, float *at, int64_t n, int from) {
    Cuda *c = rt_cuda_of(d);
    CudaPeers *p = &c->peers;
    bool reads_steps = from == p->rank, first = !p->under_way; /* since all was waited for */
    if (!p->comm) return no_group(d);
    gnnc_status st = reads_steps || first ? put_behind_steps(d, c) : GNNC_OK;
    if (st != GNNC_OK) return st;
    ncclResult_t r = p->p_ncclBroadcast(at, at, (size_t)n, ncclFloat, from, p->comm, p->stream);
    p->under_way = true;
    return r == ncclSuccess ? GNNC_OK : call_failed(d, "a transfer between GPUs", r);
}

/* Whether what was called for goes on: E_IO: another process is gone, or too much time. */
static gnnc_status look_after(RtDevice *d, int64_t begin_ns, int64_t patience_s) {
    CudaPeers *p = &rt_cuda_of(d)->peers;
    ncclResult_t error = ncclSuccess, r = p->p_ncclCommGetAsyncError(p->comm, &error);
    if (r == ncclSuccess) r = error;
    if (r != ncclSuccess && r != ncclInProgress)
        return call_failed(d, "what other processes' GPUs send", r);
    if ((rt_now_ns() - begin_ns) / 1000000000 < patience_s) return GNNC_OK;
    return rt_fail(&d->x->rt->err, GNNC_E_IO,
                   "nccl: what other processes' GPUs send did not come within %lld s",
                   (long long)patience_s);
}

/* Until the event has passed, which transfers may hold up. */
static gnnc_status wait_for(RtDevice *d, cudaEvent_t event, int64_t patience_s, const char *what) {
    enum { BUSY = 1000 }; /* looks without a pause */
    CudaPeers *p = &rt_cuda_of(d)->peers;
    int64_t begin = rt_now_ns();
    gnnc_status st = GNNC_OK;
    cudaError_t e;
    for (int64_t i = 0; (e = cudaEventQuery(event)) == cudaErrorNotReady && st == GNNC_OK; i++) {
        cudaGetLastError(); /* as in rt_cuda_await() */
        st = look_after(d, begin, patience_s);
        if (i >= BUSY) nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    }
    if (e == cudaErrorNotReady) cudaGetLastError();
    if (st != GNNC_OK) give_up(p);
    if (st != GNNC_OK) return st;
    CUDA_CHECK(d, what, e);
    return GNNC_OK;
}

gnnc_status rt_cuda_peers_wait(RtDevice *d, int64_t patience_s) {
    CudaPeers *p = &rt_cuda_of(d)->peers;
    const char *what = "a transfer between GPUs";
    if (!p->under_way) return GNNC_OK;
    if (!p->comm) return no_group(d);
    CUDA_CHECK(d, what, cudaEventRecord(p->came, p->stream));
    gnnc_status st = wait_for(d, p->came, patience_s, what);
    if (st == GNNC_OK) p->under_way = false;
    return st;
}

/* ---- rows ------------------------------------------------------------------------------------ */
/* All that goes and comes, as one call. */
static ncclResult_t call_swap(CudaPeers *p, const void *const *out, const size_t *n_out,
                              void *const *in, const size_t *n_in) {
    ncclResult_t r = p->p_ncclGroupStart();
    if (r != ncclSuccess) return r;
    for (int i = 0; i < p->n && r == ncclSuccess; i++) {
        if (n_out[i]) r = p->p_ncclSend(out[i], n_out[i], ncclInt8, i, p->comm, p->stream);
        if (n_in[i] && r == ncclSuccess)
            r = p->p_ncclRecv(in[i], n_in[i], ncclInt8, i, p->comm, p->stream);
    }
    ncclResult_t end = p->p_ncclGroupEnd();
    return r == ncclSuccess ? end : r;
}

/* Before a call that the steps' stream waits for. */
static gnnc_status begin_for_steps(RtDevice *d, int64_t patience_s) {
    Cuda *c = rt_cuda_of(d);
    if (!c->peers.comm) return no_group(d);
    gnnc_status st = put_behind_steps(d, c);
    if (st != GNNC_OK) return st;
    c->peers.under_way = true;
    c->peers.patience_s = patience_s;
    return GNNC_OK;
}

gnnc_status rt_cuda_peers_swap(RtDevice *d, const void *const *out, const size_t *n_out,
                               void *const *in, const size_t *n_in, int64_t patience_s) {
    CudaPeers *p = &rt_cuda_of(d)->peers;
    gnnc_status st = begin_for_steps(d, patience_s);
    if (st != GNNC_OK) return st;
    ncclResult_t r = call_swap(p, out, n_out, in, n_in);
    return r == ncclSuccess ? GNNC_OK : call_failed(d, "a transfer between GPUs", r);
}

gnnc_status rt_cuda_peers_add(RtDevice *d, float *at, int64_t n, int64_t patience_s) {
    CudaPeers *p = &rt_cuda_of(d)->peers;
    gnnc_status st = begin_for_steps(d, patience_s);
    if (st != GNNC_OK) return st;
    ncclResult_t r = p->p_ncclAllReduce(at, at, (size_t)n, ncclFloat, ncclSum, p->comm, p->stream);
    return r == ncclSuccess ? GNNC_OK : call_failed(d, "a sum of GPUs", r);
}

gnnc_status rt_cuda_peers_join(RtDevice *d) {
    Cuda *c = rt_cuda_of(d);
    CUDA_CHECK(d, "a transfer", cudaEventRecord(c->peers.came, c->peers.stream));
    CUDA_CHECK(d, "a transfer", cudaStreamWaitEvent(c->stream, c->peers.came, 0));
    c->peers.under_way = true; /* who waited for the stream since it began did not wait for it */
    return GNNC_OK;
}

/* Does the steps' stream wait for what comes of other processes? */
static bool is_held_up(const CudaPeers *p) {
    return p->under_way && p->patience_s;
}

gnnc_status rt_cuda_wait(RtDevice *d, cudaEvent_t event, const char *what) {
    const CudaPeers *p = &rt_cuda_of(d)->peers;
    if (is_held_up(p)) return p->comm ? wait_for(d, event, p->patience_s, what) : no_group(d);
    CUDA_CHECK(d, what, rt_cuda_await(event));
    return GNNC_OK;
}

gnnc_status rt_cuda_wait_for_steps(RtDevice *d, const char *what) {
    Cuda *c = rt_cuda_of(d);
    if (!is_held_up(&c->peers)) {
        CUDA_CHECK(d, what, cudaStreamSynchronize(c->stream));
        return GNNC_OK;
    }
    if (!c->peers.comm) {
        cudaStreamSynchronize(c->stream); /* of transfers that were given up nothing is left */
        return no_group(d);
    }
    CUDA_CHECK(d, what, cudaEventRecord(c->peers.came, c->stream));
    gnnc_status st = wait_for(d, c->peers.came, c->peers.patience_s, what);
    if (st == GNNC_OK) c->peers.under_way = false;
    return st;
}
