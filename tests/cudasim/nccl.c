/* NCCL between simulators of several processes, or threads of one.  What a rank sends to another is
 * a file, in a folder whose name is the group's id; ranks need not be of one process for that, and
 * one that sends waits for nobody.
 *
 * CUDASIM_NCCL says what goes wrong in this process; N is the number of a transfer, from 0:
 *     init         joining the group
 *     call:N       the call for it
 *     sum:N        the call for sum N, from 0
 *     remote:N     it never ends, and the library says that another process is gone
 *     stall:N      it never ends, and nobody says why
 *     die:N        the process does, at the call */
#include "cudasim.h"
#include "runtime/cuda/nccl.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PATH_SIZE = 256, PATIENCE_MS = 60000 };

struct ncclComm {
    char folder[128];
    int rank, n;
    long next; /* transfer */
    long sums;
    long *sent, *got;   /* [n] messages to and from each rank */
    atomic_int refs;    /* its own, and those of transfers that are queued */
    atomic_bool lost;   /* given up by this rank */
    atomic_int problem; /* an ncclResult_t, found while work was done */
};

/* ---- what is told -------- */
static bool is_told(const char *what, long number) {
    const char *told = getenv("CUDASIM_NCCL");
    size_t n = strlen(what);
    return told && strncmp(told, what, n) == 0 && told[n] == ':' && atol(told + n + 1) == number;
}

/* ---- files -------- */
static void path_of(char *path, const ncclComm_t c, const char *what, long number, int rank) {
    snprintf(path, PATH_SIZE, "%s/%s%ld.%d", c->folder, what, number, rank);
}

/* There at once, with all its content. */
static bool put_file(const char *path, const void *bytes, size_t n_bytes) {
    char part[PATH_SIZE + 8];
    snprintf(part, sizeof part, "%s.part", path);
    FILE *f = fopen(part, "wb");
    bool ok = f && fwrite(bytes, 1, n_bytes, f) == n_bytes;
    if (f && fclose(f)) ok = false;
    return ok && rename(part, path) == 0;
}

/* As many bytes, no more and no fewer. */
static bool take_file(const char *path, void *bytes, size_t n_bytes) {
    char more;
    FILE *f = fopen(path, "rb");
    bool ok = f && fread(bytes, 1, n_bytes, f) == n_bytes && fread(&more, 1, 1, f) == 0;
    if (f) fclose(f);
    return ok;
}

static bool is_there(const char *path) {
    return access(path, R_OK) == 0;
}

static bool is_given_up(const ncclComm_t c) {
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/gone", c->folder);
    return is_there(path);
}

/* Until all ranks have put a file `what`; false: one has given up, or does not come. */
static bool meet(const ncclComm_t c, const char *what) {
    for (int ms = 0, r = 0; ms < PATIENCE_MS && !is_given_up(c); ms++) {
        char path[PATH_SIZE];
        do path_of(path, c, what, 0, r);
        while (is_there(path) && ++r < c->n);
        if (r == c->n) return true;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return false;
}

/* ---- the group -------- */
static void free_group(ncclComm_t c) {
    if (c) free(c->sent);
    free(c);
}

static void let_go(ncclComm_t c) {
    if (atomic_fetch_sub(&c->refs, 1) == 1) free_group(c);
}

ncclResult_t ncclGetVersion(int *version) {
    *version = 22809;
    return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
    const char *tmp = getenv("TMPDIR");
    memset(id, 0, sizeof *id);
    int n =
        snprintf(id->internal, sizeof id->internal, "%s/cudasim-nccl-XXXXXX", tmp ? tmp : "/tmp");
    bool fits = n > 0 && (size_t)n < sizeof id->internal;
    return fits && mkdtemp(id->internal) ? ncclSuccess : ncclSystemError;
}

/* As NCCL does, it refuses two ranks on one GPU. */
static bool has_own_gpu(const ncclComm_t c, const struct cudaDeviceProp *own) {
    for (int r = 0; r < c->n; r++) {
        struct cudaDeviceProp is;
        char path[PATH_SIZE];
        path_of(path, c, "in", 0, r);
        if (r != c->rank && (!take_file(path, &is, sizeof is) || !memcmp(&is, own, sizeof is)))
            return false;
    }
    return true;
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int n, ncclUniqueId id, int rank) {
    const char *told = getenv("CUDASIM_NCCL");
    struct cudaDeviceProp own;
    char path[PATH_SIZE];
    int gpu;
    cudaGetDevice(&gpu);
    cudaGetDeviceProperties(&own, gpu);
    ncclComm_t c = calloc(1, sizeof *c);
    if (c) c->sent = calloc(2 * (size_t)n, sizeof *c->sent);
    if (!c || !c->sent || (told && strcmp(told, "init") == 0)) {
        free_group(c);
        return ncclSystemError;
    }
    c->got = c->sent + n;
    memcpy(c->folder, id.internal, sizeof c->folder);
    c->rank = rank;
    c->n = n;
    atomic_init(&c->refs, 1);
    path_of(path, c, "in", 0, rank);
    bool met = put_file(path, &own, sizeof own) && meet(c, "in");
    bool alone = met && has_own_gpu(c, &own);
    if (alone) *comm = c;
    if (!alone) free_group(c);
    return alone ? ncclSuccess : met ? ncclInvalidUsage : ncclSystemError;
}

ncclResult_t ncclCommDestroy(ncclComm_t c) {
    char path[PATH_SIZE];
    if (c->refs > 1) cudasim_fail("a group of NCCL is destroyed while transfers are queued");
    path_of(path, c, "out", 0, c->rank);
    if (!put_file(path, "", 0) || !meet(c, "out"))
        cudasim_fail("a group of NCCL is not destroyed by all of its ranks");
    let_go(c);
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t c) {
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/gone", c->folder);
    put_file(path, "", 0);
    c->lost = true;
    let_go(c);
    return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *error) {
    if (is_given_up(c)) c->problem = ncclRemoteError;
    *error = (ncclResult_t)c->problem;
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t r) {
    static const char *const text[] = {[ncclSuccess] = "no error",
                                       [ncclUnhandledCudaError] = "unhandled cuda error",
                                       [ncclSystemError] = "unhandled system error",
                                       [ncclInvalidUsage] = "invalid usage",
                                       [ncclRemoteError] =
                                           "remote process exited or there was a network error"};
    bool known = (size_t)r < sizeof text / sizeof *text && text[r];
    return known ? text[r] : "an error of the simulator's NCCL";
}

/* ---- transfers -------- */
typedef struct {
    ncclComm_t comm;
    long number;
    int root;
    bool never;
    void *at;
    size_t n_bytes;
} Transfer;

static bool is_ready(void *closure) {
    const Transfer *t = closure;
    char path[PATH_SIZE];
    if (t->comm->lost) return true; /* it does nothing any more */
    if (t->never) return false;
    path_of(path, t->comm, "part", t->number, t->comm->rank);
    return t->root == t->comm->rank || is_there(path);
}

static void transfer(void *closure) {
    const Transfer *t = closure;
    const ncclComm_t c = t->comm;
    char path[PATH_SIZE];
    for (int r = 0; r < c->n && t->root == c->rank && !c->lost; r++) {
        path_of(path, c, "part", t->number, r);
        if (r != c->rank && !put_file(path, t->at, t->n_bytes))
            cudasim_fail("what NCCL sends cannot be written");
    }
    if (t->root == c->rank || c->lost) return;
    path_of(path, c, "part", t->number, c->rank);
    if (!take_file(path, t->at, t->n_bytes))
        cudasim_fail("ranks call NCCL for different numbers of bytes");
    unlink(path);
}

static void drop(void *closure) {
    Transfer *t = closure;
    let_go(t->comm);
    free(t);
}

ncclResult_t ncclBroadcast(const void *from, void *to, size_t n, ncclDataType_t type, int root,
                           ncclComm_t c, cudaStream_t stream) {
    long number = c->next++;
    if (from != to || type != ncclFloat || root < 0 || root >= c->n) return ncclInvalidArgument;
    if (is_told("die", number)) raise(SIGKILL);
    if (is_told("call", number)) return ncclSystemError;
    Transfer *t = malloc(sizeof *t);
    if (!t) return ncclSystemError;
    bool remote = is_told("remote", number);
    *t = (Transfer){c, number, root, remote || is_told("stall", number), to, n * sizeof(float)};
    if (remote) c->problem = ncclRemoteError;
    atomic_fetch_add(&c->refs, 1);
    int failed = cudasim_transfer(stream, to, t->n_bytes, is_ready, transfer, drop, t);
    return failed ? ncclUnhandledCudaError : ncclSuccess;
}

/* ---- sums -------- */
static void sum_path(char *path, const Transfer *t, int from, int to) {
    snprintf(path, PATH_SIZE, "%s/sum%ld.%d.%d", t->comm->folder, t->number, from, to);
}

static bool goes_at_once(void *closure) {
    (void)closure;
    return true;
}

static void send_terms(void *closure) {
    const Transfer *t = closure;
    char path[PATH_SIZE];
    for (int r = 0; r < t->comm->n && !t->comm->lost; r++) {
        sum_path(path, t, t->comm->rank, r);
        if (r != t->comm->rank && !put_file(path, t->at, t->n_bytes))
            cudasim_fail("what NCCL sends cannot be written");
    }
}

static bool terms_are_there(void *closure) {
    const Transfer *t = closure;
    char path[PATH_SIZE];
    if (t->comm->lost) return true;
    for (int r = 0; r < t->comm->n; r++) {
        sum_path(path, t, r, t->comm->rank);
        if (r != t->comm->rank && !is_there(path)) return false;
    }
    return !t->never;
}

/* That of rank 0, then from the last one on: an order that no tree of parts has, alike at all
 * ranks. */
static void add_terms(void *closure) {
    const Transfer *t = closure;
    const ncclComm_t c = t->comm;
    const size_t n = t->n_bytes / sizeof(float);
    float *own = t->at, *sum = calloc(n + 1, sizeof *sum), *term = calloc(n + 1, sizeof *term);
    char path[PATH_SIZE];
    if (!sum || !term) cudasim_fail("no memory for a sum by NCCL");
    for (int k = 0; k < c->n && !c->lost; k++) {
        const int r = (c->n - k) % c->n;
        sum_path(path, t, r, c->rank);
        if (r != c->rank && !take_file(path, term, t->n_bytes))
            cudasim_fail("ranks call NCCL for different numbers of bytes");
        if (r != c->rank) unlink(path);
        for (size_t i = 0; i < n; i++) sum[i] += r == c->rank ? own[i] : term[i];
    }
    if (!c->lost) memcpy(own, sum, t->n_bytes);
    free(sum);
    free(term);
}

/* One half of a sum: it sends this rank's terms, or adds up all. */
static int queue_half(ncclComm_t c, Transfer of, cudaStream_t stream, bool adds) {
    Transfer *t = malloc(sizeof *t);
    if (!t) return 1;
    *t = of;
    atomic_fetch_add(&c->refs, 1);
    return cudasim_transfer(stream, t->at, t->n_bytes, adds ? terms_are_there : goes_at_once,
                            adds ? add_terms : send_terms, drop, t);
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t n, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t c, cudaStream_t stream) {
    long number = c->next++;
    if (from != to || type != ncclFloat || op != ncclSum) return ncclInvalidArgument;
    if (is_told("die", number)) raise(SIGKILL);
    if (is_told("call", number) || is_told("sum", c->sums++)) return ncclSystemError;
    Transfer t = {.comm = c, .number = number, .at = to, .n_bytes = n * sizeof(float)};
    bool remote = is_told("remote", number);
    t.never = remote || is_told("stall", number);
    if (remote) c->problem = ncclRemoteError;
    bool failed = queue_half(c, t, stream, false) || queue_half(c, t, stream, true);
    return failed ? ncclUnhandledCudaError : ncclSuccess;
}

/* ---- messages -------- */
/* From one rank to another, the number-th between the two. */
typedef struct {
    ncclComm_t comm;
    int from, to;
    long number;
    bool never;
    void *at;
    size_t n_bytes;
} Message;

static void message_path(char *path, const Message *m) {
    snprintf(path, PATH_SIZE, "%s/from%d.%ld.%d", m->comm->folder, m->from, m->number, m->to);
}

static bool message_is_ready(void *closure) {
    const Message *m = closure;
    char path[PATH_SIZE];
    if (m->comm->lost) return true; /* it does nothing any more */
    if (m->never) return false;
    message_path(path, m);
    return m->from == m->comm->rank || is_there(path);
}

static void move_message(void *closure) {
    const Message *m = closure;
    char path[PATH_SIZE];
    message_path(path, m);
    if (m->comm->lost) return;
    if (m->from == m->comm->rank) {
        if (!put_file(path, m->at, m->n_bytes)) cudasim_fail("what NCCL sends cannot be written");
        return;
    }
    if (!take_file(path, m->at, m->n_bytes))
        cudasim_fail("ranks call NCCL for different numbers of bytes");
    unlink(path);
}

static void drop_message(void *closure) {
    Message *m = closure;
    let_go(m->comm);
    free(m);
}

/* The calls of this thread's group. */
enum { MOST_CALLS = 128 };
typedef struct {
    bool open;
    int n;
    Message *call[MOST_CALLS];
    cudaStream_t stream[MOST_CALLS];
} Group;

static Group *group(void) {
    static _Thread_local Group own;
    return &own;
}

ncclResult_t ncclGroupStart(void) {
    if (group()->open) return ncclInvalidUsage;
    group()->open = true;
    return ncclSuccess;
}

/* All that is sent before what is received, as none of a group's calls waits for another. */
ncclResult_t ncclGroupEnd(void) {
    Group *g = group();
    bool failed = !g->open;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < g->n; i++) {
            Message *m = g->call[i];
            if (!m || (m->from == m->comm->rank) != (pass == 0)) continue;
            g->call[i] = NULL;
            failed |= cudasim_transfer(g->stream[i], m->at, m->n_bytes, message_is_ready,
                                       move_message, drop_message, m) != 0;
        }
    g->open = false;
    g->n = 0;
    return failed ? ncclUnhandledCudaError : ncclSuccess;
}

/* Outside of a group ranks that send before they receive would wait for each other. */
static ncclResult_t call_for(ncclComm_t c, int from, int to, void *at, size_t n,
                             ncclDataType_t type, cudaStream_t stream) {
    Group *g = group();
    int other = from == c->rank ? to : from;
    if (!g->open || g->n == MOST_CALLS) return ncclInvalidUsage;
    if (type != ncclInt8 || n == 0 || other < 0 || other >= c->n || other == c->rank)
        return ncclInvalidArgument;
    long number = c->next++;
    if (is_told("die", number)) raise(SIGKILL);
    if (is_told("call", number)) return ncclSystemError;
    Message *m = malloc(sizeof *m);
    if (!m) return ncclSystemError;
    bool remote = is_told("remote", number);
    *m = (Message){.comm = c, .from = from, .to = to, .at = at, .n_bytes = n};
    m->number = from == c->rank ? c->sent[to]++ : c->got[from]++;
    m->never = remote || is_told("stall", number);
    if (remote) c->problem = ncclRemoteError;
    atomic_fetch_add(&c->refs, 1);
    g->call[g->n] = m;
    g->stream[g->n++] = stream;
    return ncclSuccess;
}

ncclResult_t ncclSend(const void *from, size_t n, ncclDataType_t type, int to, ncclComm_t c,
                      cudaStream_t stream) {
    return call_for(c, c->rank, to, (void *)(uintptr_t)from, n, type, stream);
}

ncclResult_t ncclRecv(void *to, size_t n, ncclDataType_t type, int from, ncclComm_t c,
                      cudaStream_t stream) {
    return call_for(c, from, c->rank, to, n, type, stream);
}
