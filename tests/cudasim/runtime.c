/* The CUDA runtime's calls.  A stream queues what it is given (queue.c), or records it while it
 * captures (graphs.c). */
#include "cudasim_impl.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ASAN 1
#endif
#endif
#ifdef HAS_ASAN
#include <sanitizer/asan_interface.h>
#else
#define __asan_poison_memory_region(p, n) ((void)(p), (void)(n))
#define __asan_unpoison_memory_region(p, n) ((void)(p), (void)(n))
#endif

typedef struct Block {
    struct Block *next;
    void *p;
    size_t n_bytes;
    bool on_device;
    int device; /* the allocating thread's */
} Block;

typedef struct {
    cudasim_counters count;
    Block *blocks;
    int64_t live_bytes, most_bytes;     /* -1: any number */
    int64_t until_break, until_garble;  /* launches, copies */
    int64_t until_graph, until_library; /* calls */
    int how, how_graph, how_library;
    int inside;           /* calls that may touch device memory */
    pthread_mutex_t lock; /* of all of it, and of the machine that runs kernels */
} Device;

static Device *device(void) {
    static Device d = {.lock = PTHREAD_MUTEX_INITIALIZER,
                       .most_bytes = -1,
                       .until_break = -1,
                       .until_garble = -1,
                       .until_graph = -1,
                       .until_library = -1};
    return &d;
}

static void lock(void) {
    pthread_mutex_lock(&device()->lock);
}

static void unlock(void) {
    pthread_mutex_unlock(&device()->lock);
}

/* What the calling thread has asked for. */
static cudasim_counters *mine(void) {
    static _Thread_local cudasim_counters count;
    return &count;
}

cudasim_counters *cudasim_count_here(void) {
    return mine();
}

/* .. and works with. */
static int *current_device(void) {
    static _Thread_local int d;
    return &d;
}

#define ADD(what, n) (device()->count.what += (n), mine()->what += (n))
#define COUNT(what) ADD(what, 1)

cudasim_counters *cudasim_count(void) {
    return &device()->count;
}

int64_t cudasim_live_bytes(void) {
    return device()->live_bytes;
}

void cudasim_count_launch(void) {
    lock();
    COUNT(graph_launches);
    unlock();
}

void cudasim_memory(int64_t most_bytes) {
    device()->most_bytes = most_bytes;
}

void cudasim_break_launches(int64_t launches, int error) {
    device()->until_break = launches;
    device()->how = error;
}

void cudasim_garble(int64_t copies) {
    device()->until_garble = copies;
}

void cudasim_break_graphs(int64_t calls, int error) {
    device()->until_graph = calls;
    device()->how_graph = error;
}

void cudasim_break_libraries(int64_t calls, int status) {
    device()->until_library = calls;
    device()->how_library = status;
}

/* Is this the one? */
static bool is_now(int64_t *until) {
    lock();
    bool now = *until == 0;
    if (*until >= 0) --*until;
    unlock();
    return now;
}

cudaError_t cudasim_graph_fails(void) {
    bool now = is_now(&device()->until_graph);
    return now ? cudasim_note((cudaError_t)device()->how_graph) : cudaSuccess;
}

int cudasim_library_fails(void) {
    return is_now(&device()->until_library) ? device()->how_library : 0;
}

/* Of the calling thread. */
static cudaError_t *last_error(void) {
    static _Thread_local cudaError_t last;
    return &last;
}

cudaError_t cudasim_note(cudaError_t e) {
    if (e != cudaSuccess) *last_error() = e;
    return e;
}

/* ---- memory ------------------------------------------------------------------------ */
/* The host must not touch device memory: it is poisoned but while a call works on it, and for a
 * call of one GPU that of the others. */
static void enter(int gpu) {
    if (device()->inside++) return;
    for (Block *b = device()->blocks; b; b = b->next)
        if (b->on_device && b->device == gpu) __asan_unpoison_memory_region(b->p, b->n_bytes);
}

static void leave(void) {
    if (--device()->inside) return;
    for (Block *b = device()->blocks; b; b = b->next)
        if (b->on_device) __asan_poison_memory_region(b->p, b->n_bytes);
}

static cudaError_t allocate_locked(void **p, size_t n_bytes, bool on_device) {
    Device *d = device();
    bool none = on_device && d->most_bytes >= 0 && d->live_bytes + (int64_t)n_bytes > d->most_bytes;
    Block *b = none ? NULL : malloc(sizeof *b);
    size_t rounded = (n_bytes + 255) / 256 * 256;
    void *at = b ? aligned_alloc(256, rounded ? rounded : 256) : NULL;
    COUNT(allocations);
    if (!at) {
        free(b);
        return cudasim_note(cudaErrorMemoryAllocation);
    }
    memset(at, 0xa5, rounded); /* memory comes with whatever was in it */
    *b = (Block){d->blocks, at, n_bytes, on_device, *current_device()};
    d->blocks = b;
    if (on_device) d->live_bytes += (int64_t)n_bytes;
    if (on_device && !d->inside) __asan_poison_memory_region(at, n_bytes);
    *p = at;
    return cudaSuccess;
}

static cudaError_t release_locked(void *p) {
    Device *d = device();
    if (!p) return cudaSuccess;
    for (Block **at = &d->blocks; *at; at = &(*at)->next) {
        Block *b = *at;
        if (b->p != p) continue;
        if (b->on_device) d->live_bytes -= (int64_t)b->n_bytes;
        __asan_unpoison_memory_region(b->p, b->n_bytes);
        *at = b->next;
        free(p);
        free(b);
        return cudaSuccess;
    }
    return cudasim_note(cudaErrorInvalidValue);
}

static cudaError_t allocate(void **p, size_t n_bytes, bool on_device) {
    lock();
    cudaError_t e = allocate_locked(p, n_bytes, on_device);
    unlock();
    return e;
}

static size_t bytes_of(const void *p) {
    lock();
    const Block *b = device()->blocks;
    while (b && b->p != p) b = b->next;
    size_t n_bytes = b ? b->n_bytes : 0;
    unlock();
    return n_bytes;
}

/* CUDA's may wait for all work first, or not. */
static cudaError_t release(void *p) {
    if (p && cudasim_is_queued(p, bytes_of(p), NULL))
        cudasim_fail("memory is freed that a queued copy uses");
    lock();
    cudaError_t e = release_locked(p);
    unlock();
    return e;
}

/* CUDASIM_NO_MEMORY=BYTES: a request for as many goes wrong, though there is memory. */
cudaError_t cudaMalloc(void **p, size_t n_bytes) {
    const char *bytes = getenv("CUDASIM_NO_MEMORY");
    if (bytes && n_bytes == strtoull(bytes, NULL, 10)) return cudasim_note(cudaErrorInvalidValue);
    return allocate(p, n_bytes, true);
}
/* CUDASIM_NO_PINNED=1: none can be locked. */
cudaError_t cudaMallocHost(void **p, size_t n_bytes) {
    if (getenv("CUDASIM_NO_PINNED")) return cudasim_note(cudaErrorMemoryAllocation);
    return allocate(p, n_bytes, false);
}
cudaError_t cudaFree(void *p) {
    return release(p);
}
cudaError_t cudaFreeHost(void *p) {
    return release(p);
}

/* CUDASIM_TOTAL_MEMORY=BYTES: as much as it says it has. */
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes) {
    const char *bytes = getenv("CUDASIM_TOTAL_MEMORY");
    size_t live = (size_t)device()->live_bytes;
    *total_bytes = bytes ? strtoull(bytes, NULL, 10) : (size_t)8 << 30;
    *free_bytes = *total_bytes > live ? *total_bytes - live : 0;
    return cudaSuccess;
}

/* Whether [p, p + n) lies in one allocation on that side; host memory may be any. */
static bool lies_in_locked(const void *p, size_t n_bytes, bool on_device) {
    for (Block *b = device()->blocks; b; b = b->next) {
        const char *x = p, *lo = b->p;
        if (x < lo || x >= lo + b->n_bytes) continue;
        return b->on_device == on_device && x + n_bytes <= lo + b->n_bytes;
    }
    return !on_device;
}

/* Memory of another GPU than the stream's would be a mistake, though CUDA takes it. */
static bool is_of(const void *p, int gpu) {
    const Block *b = device()->blocks;
    while (b && ((const char *)p < (const char *)b->p ||
                 (const char *)p >= (const char *)b->p + b->n_bytes))
        b = b->next;
    return b && b->device == gpu;
}

static int gpu_of(cudaStream_t s) {
    return s ? s->device : *current_device();
}

static bool lies_in(const void *p, size_t n_bytes, bool on_device, cudaStream_t s) {
    lock();
    bool yes = lies_in_locked(p, n_bytes, on_device) && (!on_device || is_of(p, gpu_of(s)));
    unlock();
    return yes;
}

void cudasim_count_wait(bool for_event) {
    lock();
    if (for_event)
        COUNT(event_waits);
    else
        COUNT(synchronisations);
    unlock();
}

/* ---- work -------------------------------------------------------------------------- */
static void count_copy(cudaMemcpyKind k, size_t n_bytes) {
    if (k == cudaMemcpyHostToDevice) COUNT(host_to_device);
    if (k == cudaMemcpyHostToDevice) ADD(bytes_to_device, (int64_t)n_bytes);
    if (k == cudaMemcpyDeviceToHost) COUNT(device_to_host);
    if (k == cudaMemcpyDeviceToDevice) COUNT(device_to_device);
}

static void swap_words(void *p, size_t n_bytes) {
    uint32_t word[2], turned[2];
    if (n_bytes < sizeof word) return;
    memcpy(word, p, sizeof word);
    turned[0] = word[1];
    turned[1] = word[0];
    memcpy(p, turned, sizeof turned);
}

/* When it is asked for, not when it runs. */
static void count_node(const Node *n) {
    lock();
    if (n->kind == NODE_KERNEL) COUNT(launches);
    if (n->kind == NODE_LIBRARY) COUNT(library_calls);
    if (n->kind == NODE_COPY) count_copy(n->copy, n->n_bytes);
    if (n->kind == NODE_FILL) COUNT(fills);
    if (n->kind == NODE_TRANSFER) COUNT(transfers);
    unlock();
}

/* Of a graph that is launched: what crosses between host and device; of its loops, when they run.
 */
void cudasim_count_recorded(const Node *n) {
    lock();
    if (n->kind == NODE_COPY && n->copy != cudaMemcpyDeviceToDevice)
        count_copy(n->copy, n->n_bytes);
    if (n->kind == NODE_LOOP) COUNT(iterations);
    unlock();
}

static void move(const Node *n) {
    bool to_device = n->copy == cudaMemcpyHostToDevice || n->copy == cudaMemcpyDeviceToDevice;
    bool from_device = n->copy == cudaMemcpyDeviceToHost || n->copy == cudaMemcpyDeviceToDevice;
    if (!lies_in_locked(n->to, n->n_bytes, to_device) ||
        (from_device && !lies_in_locked(n->from, n->n_bytes, true)))
        cudasim_fail("the memory of a copy was freed before the copy ran");
    memmove(n->to, n->from, n->n_bytes);
    if (n->garbled) swap_words(n->to, n->n_bytes);
}

void cudasim_perform(const Node *n) {
    lock();
    enter(n->device);
    if (n->kind == NODE_KERNEL) cudasim_run(&n->launch);
    if (n->kind == NODE_TRANSFER && !lies_in_locked(n->to, n->n_bytes, true))
        cudasim_fail("the memory of a transfer was freed before it ran");
    if (n->kind == NODE_LIBRARY || n->kind == NODE_TRANSFER) n->launch.call(n->launch.closure);
    if (n->kind == NODE_COPY) move(n);
    for (size_t i = 0; n->kind == NODE_FILL && i < n->rows; i++)
        memset((char *)n->to + i * n->pitch, n->value, n->n_bytes);
    leave();
    unlock();
}

static bool is_locked_memory(const void *p) {
    const Block *b = device()->blocks;
    while (b && (b->on_device || (const char *)p < (const char *)b->p ||
                 (const char *)p >= (const char *)b->p + b->n_bytes))
        b = b->next;
    return b;
}

/* Queues n, or appends it to what the stream records.  As with CUDA, launches want the stream's GPU
 * to be the thread's. */
static cudaError_t submit(cudaStream_t s, Node *n) {
    int now = *current_device();
    n->device = gpu_of(s);
    bool moves = n->kind == NODE_COPY || n->kind == NODE_FILL;
    if (s && s->device != now && !moves) {
        if (n->launch.drop) n->launch.drop(n->launch.closure);
        return cudasim_note(cudaErrorInvalidResourceHandle);
    }
    if (s && s->captured) return cudasim_record(s, n);
    count_node(n);
    if (!s) {
        cudasim_perform(n);
        if (n->launch.drop) n->launch.drop(n->launch.closure);
        return cudaSuccess;
    }
    lock();
    bool ordinary =
        n->kind == NODE_COPY && n->copy == cudaMemcpyHostToDevice && !is_locked_memory(n->from);
    unlock();
    return cudasim_queue(s, n, ordinary);
}

/* CUDASIM_BREAK_LAUNCH=N: the launch after N others fails, and with it all that come. */
static bool is_broken(void) {
    const char *n = getenv("CUDASIM_BREAK_LAUNCH");
    return n && device()->count.launches >= atoll(n);
}

/* CUDASIM_LAUNCHES=FILE: the number of blocks of each launch is added to it, a line each. */
static void tell_launch(const unsigned grid[3]) {
    const char *path = getenv("CUDASIM_LAUNCHES");
    FILE *f = path ? fopen(path, "a") : NULL;
    if (!f) return;
    fprintf(f, "%u\n", grid[0] * grid[1] * grid[2]);
    fclose(f);
}

int cudasim_launch(cudaStream_t s, const unsigned grid[3], const unsigned block[3],
                   void (*call)(void *), void (*drop)(void *), void *closure) {
    if (!cudasim_fits(grid, block)) {
        drop(closure);
        return cudasim_note(cudaErrorInvalidConfiguration);
    }
    bool broken = is_broken();
    if (broken || is_now(&device()->until_break)) {
        drop(closure);
        return cudasim_note(broken ? cudaErrorLaunchFailure : (cudaError_t)device()->how);
    }
    tell_launch(grid);
    Node n = {.kind = NODE_KERNEL, .launch = {.call = call, .drop = drop, .closure = closure}};
    memcpy(n.launch.grid, grid, sizeof n.launch.grid);
    memcpy(n.launch.block, block, sizeof n.launch.block);
    return submit(s, &n);
}

int cudasim_library_call(cudaStream_t s, void (*call)(void *), void (*drop)(void *),
                         void *closure) {
    if (*last_error()) cudasim_fail("a library would take an earlier call's error for its own");
    Node n = {.kind = NODE_LIBRARY, .launch = {.call = call, .drop = drop, .closure = closure}};
    return submit(s, &n);
}

int cudasim_transfer(cudaStream_t s, void *p, size_t n_bytes, bool (*ready)(void *),
                     void (*call)(void *), void (*drop)(void *), void *closure) {
    Node n = {.kind = NODE_TRANSFER, .to = p, .n_bytes = n_bytes};
    n.launch = (CudasimLaunch){.call = call, .drop = drop, .ready = ready, .closure = closure};
    if (*last_error()) cudasim_fail("a library would take an earlier call's error for its own");
    if (!s || s->captured || !lies_in(p, n_bytes, true, s)) {
        drop(closure);
        return cudasim_note(cudaErrorInvalidValue);
    }
    s->has_transfers = true;
    return submit(s, &n);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n_bytes, cudaMemcpyKind kind,
                            cudaStream_t s) {
    bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if (n_bytes == 0) return cudaSuccess;
    if (!lies_in(to, n_bytes, to_device, s) || !lies_in(from, n_bytes, from_device, s))
        return cudasim_note(cudaErrorInvalidValue);
    bool garbled = kind == cudaMemcpyHostToDevice && is_now(&device()->until_garble);
    return submit(s, &(Node){.kind = NODE_COPY,
                             .garbled = garbled,
                             .to = to,
                             .from = from,
                             .n_bytes = n_bytes,
                             .copy = kind});
}

cudaError_t cudaMemset2DAsync(void *to, size_t pitch, int value, size_t width, size_t rows,
                              cudaStream_t s) {
    if (width == 0 || rows == 0) return cudaSuccess;
    if (pitch < width || !lies_in(to, pitch * (rows - 1) + width, true, s))
        return cudasim_note(cudaErrorInvalidValue);
    Node n = {.kind = NODE_FILL, .to = to, .value = value, .n_bytes = width};
    n.pitch = pitch;
    n.rows = rows;
    return submit(s, &n);
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t n_bytes, cudaStream_t s) {
    return cudaMemset2DAsync(to, n_bytes, value, n_bytes, 1, s);
}

/* ---- the device -------- */
/* CUDA_VISIBLE_DEVICES=2,0: the process sees these alone; NULL: all. */
static const char *visible_devices(void) {
    const char *seen = getenv("CUDA_VISIBLE_DEVICES");
    return seen && *seen ? seen : NULL;
}

/* CUDASIM_DEVICES=2: as many. */
cudaError_t cudaGetDeviceCount(int *n) {
    const char *none = getenv("CUDASIM_NO_DEVICE"), *more = getenv("CUDASIM_DEVICES");
    const char *seen = visible_devices();
    *n = none ? 0 : more ? atoi(more) : 1;
    for (int i = 0; !none && seen; i++) {
        *n = i + 1;
        seen = strchr(seen, ',');
        if (seen) seen++;
    }
    return none ? cudasim_note(cudaErrorNoDevice) : cudaSuccess;
}

/* One of a machine has the same in all processes, whatever they see.  CUDASIM_NO_UUID=1: 0. */
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int d) {
    const char *seen = visible_devices();
    int of_machine = seen ? 0 : d;
    for (int i = 0; i < d && seen; i++) seen = strchr(seen, ',') + 1;
    if (seen) of_machine = atoi(seen);
    *p = (struct cudaDeviceProp){.uuid = {{0}}};
    if (getenv("CUDASIM_NO_UUID")) return cudaSuccess;
    *p = (struct cudaDeviceProp){.uuid = {"simulated GPU"}};
    p->uuid.bytes[15] = (char)(1 + of_machine);
    return cudaSuccess;
}

/* CUDASIM_DRIVER=12030: an older one than the toolkit. */
cudaError_t cudaDriverGetVersion(int *version) {
    const char *older = getenv("CUDASIM_DRIVER");
    *version = older ? atoi(older) : CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int d) {
    int n;
    cudaGetDeviceCount(&n);
    if (d < 0 || d >= n) return cudasim_note(cudaErrorInvalidDevice);
    *current_device() = d;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *d) {
    *d = *current_device();
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr what, int d) {
    (void)d;
    *value = what == cudaDevAttrMultiProcessorCount      ? 4
             : what == cudaDevAttrComputeCapabilityMajor ? 9
                                                         : 0;
    return cudaSuccess;
}

/* CUDASIM_OLD_DEVICE=1: one that no kernel was compiled for. */
cudaError_t cudasim_attributes(cudaFuncAttributes *a) {
    *a = (cudaFuncAttributes){.binaryVersion = 90};
    return getenv("CUDASIM_OLD_DEVICE") ? cudasim_note(cudaErrorNoKernelImageForDevice)
                                        : cudaSuccess;
}

cudaError_t cudaGetLastError(void) {
    cudaError_t e = *last_error();
    *last_error() = cudaSuccess;
    return e;
}

cudaError_t cudaPeekAtLastError(void) {
    return *last_error();
}

const char *cudaGetErrorString(cudaError_t e) {
    switch (e) {
    case cudaSuccess:
        return "no error";
    case cudaErrorMemoryAllocation:
        return "out of memory";
    case cudaErrorNoDevice:
        return "no CUDA-capable device is detected";
    case cudaErrorInvalidConfiguration:
        return "invalid configuration argument";
    case cudaErrorInvalidValue:
        return "invalid argument";
    default:
        return "an error of the simulator";
    }
}

const char *cudaGetErrorName(cudaError_t e) {
    return cudaGetErrorString(e);
}
