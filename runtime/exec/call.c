/* Calls of the user's C functions (include/gnnc_extern.h), and what depends on a condition that
 * the host reads: effects, loops.  In a program for a device, a function of the host works on the
 * host's copies: its inputs are fetched, its results brought back. */
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "runtime/device/device.h"
#include "exec.h"
#include "runtime/clock.h"

_Static_assert((int)GNNC_F32 == RT_F32 && (int)GNNC_F64 == RT_F64 && (int)GNNC_I32 == RT_I32 &&
                   (int)GNNC_BOOL == RT_I1,
               "element types of gnnc_extern.h");
_Static_assert((int)GNNC_TENSOR_RANK == (int)RT_MAX_RANK, "ranks of gnnc_extern.h");

/* Whether condition `buf` is `holds`; on a device it is read back first. *st: whether that failed.
 */
bool rt_when(RtExec *x, int buf, bool holds, gnnc_status *st) {
    if (x->rt->device) {
        x->rt->count.read_backs++;
        *st = rt_device_fetch(x, buf);
        if (*st != GNNC_OK) return false;
    }
    return (*(const uint8_t *)x->buf[buf] != 0) == holds;
}

/* ---- what asks for an end ---------------------------------------------------------- */
/* Those that end a run after what it does is saved: a closed terminal sends SIGHUP, a write to a
 * log that nobody reads any more SIGPIPE. */
static sigset_t stop_signals(void) {
    static const int asks[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    sigset_t s;
    sigemptyset(&s);
    for (size_t i = 0; i < sizeof asks / sizeof *asks; i++) sigaddset(&s, asks[i]);
    return s;
}

/* ---- loops ------------------------------------------------------------------------ */
/* Was a stop asked for: by the host's function, or, for a trainer that takes signals, by a pending
 * one? Processes that run together do not ask: they would stop at different steps. */
static bool is_asked_to_stop(const RtRuntime *rt) {
    sigset_t pending, asks = stop_signals();
    if (rt->together) return false;
    if (rt->stop && atomic_load_explicit(rt->stop, memory_order_relaxed)) return true;
    if (!rt->by_signal || sigpending(&pending) != 0) return false;
    return sigandset(&pending, &pending, &asks) == 0 && !sigisemptyset(&pending);
}

/* Fails if a stop was asked for over a second ago: a loop that ends is waited for, one that does
 * not is stopped, with its line. */
static gnnc_status check_stop(RtRuntime *rt, const char *line) {
    if (!is_asked_to_stop(rt)) return GNNC_OK;
    double now = rt_now();
    if (rt->asked == 0) rt->asked = now;
    if (now - rt->asked < 1) return GNNC_OK;
    return rt_fail(&rt->err, GNNC_E_STOPPED, "%s: stopped in a loop that did not end", line);
}

bool rt_iterates(RtExec *x, int buf, const char *line, gnnc_status *st) {
    if (!rt_when(x, buf, true, st)) return false;
    *st = check_stop(x->rt, line);
    return *st == GNNC_OK;
}

/* Before iteration 0, 1, .. of a loop with a limit, on a device: does it go on? While the phase is
 * recorded its body is entered once, and the recorded loop reads the condition. Else the host reads
 * it back; so it does without a limit of the recording's where the device has no loops. line: of
 * the model, for messages. */
static bool goes_on(RtExec *x, int64_t iteration, int64_t limit, int buf, const char *line,
                    gnnc_status *st) {
    RtDevice *d = x->rt->device;
    if (!rt_device_asks(d)) return !iteration;
    if (rt_device_records(d)) {
        *st = iteration ? d->ops->loop_end(d) : d->ops->loop_begin(d, d->at.buf[buf], limit);
        return *st == GNNC_OK && !iteration;
    }
    if (iteration >= limit) return false;
    if (!d->ops->has_loops || !d->ops->has_loops(d)) return rt_iterates(x, buf, line, st);
    x->rt->count.read_backs++;
    *st = rt_device_peek(x, buf);
    if (*st != GNNC_OK || !*(const uint8_t *)x->buf[buf]) return false;
    *st = check_stop(x->rt, line);
    return *st == GNNC_OK;
}

bool rt_device_iterates(RtExec *x, int64_t iteration, int64_t limit, int buf, const char *line,
                        gnnc_status *st) {
    const bool goes = goes_on(x, iteration, limit, buf, line, st);
    x->rt->device->in_loop += goes ? !iteration : -(iteration > 0);
    return goes;
}

/* ---- functions in C ------------------------------------------------------------------- */
/* The tensor that a C function gets for an argument: row-major, without gaps. */
static gnnc_tensor describe(void *data, const rt_arg *a) {
    gnnc_tensor t = {.data = data, .dtype = (gnnc_dtype)a->dt, .rank = a->rank};
    int64_t stride = 1;
    for (int d = a->rank - 1; d >= 0; d--) {
        t.size[d] = a->size[d];
        t.stride[d] = stride;
        stride *= a->size[d];
    }
    return t;
}

/* The error for a status that a C function returned; 0 is none. */
static gnnc_status told(RtExec *x, const rt_extern *f, int status) {
    if (status == 0) return GNNC_OK;
    return rt_fail(&x->rt->err, GNNC_E_EXTERN, "%s: the C function '%s' returned status %d",
                   f->line, f->name, status);
}

typedef struct {
    const rt_extern *f;
    gnnc_tensor *t;
    int status;
} OnStream;

/* A "kernel" for rt_device_launch() that calls a C function with the stream. */
static int on_stream(void *const *arg, const int64_t *n, void *stream) {
    OnStream *c = arg[0];
    (void)n;
    c->status = c->f->fn(c->t, stream);
    return 0;
}

/* Calls a C function that is declared `device`: it puts its work into the stream. */
static gnnc_status call_on_device(RtExec *x, const rt_extern *f, gnnc_tensor *t) {
    OnStream c = {f, t, 0};
    gnnc_status st = rt_device_launch(x, on_stream, f->name, (void *const[]){&c});
    return st == GNNC_OK ? told(x, f, c.status) : st;
}

/* Brings the inputs of a function of the host to the host. */
static gnnc_status fetch_inputs(RtExec *x, const rt_extern *f, const rt_arg *arg) {
    gnnc_status st = GNNC_OK;
    for (int i = 0; i < f->n_in && st == GNNC_OK; i++) st = rt_device_fetch(x, arg[i].buf);
    return st;
}

/* Brings the results of a function of the host to the device. */
static gnnc_status store_results(RtExec *x, const rt_extern *f, const rt_arg *arg) {
    gnnc_status st = GNNC_OK;
    for (int i = f->n_in; i < f->n_in + f->n_out && st == GNNC_OK; i++)
        st = rt_device_store(x, arg[i].buf);
    return st;
}

/* Zeros: what a call that did not happen gives. */
static void no_results(RtExec *x, const rt_extern *f, const rt_arg *arg) {
    for (int i = f->n_in; i < f->n_in + f->n_out; i++) {
        size_t n;
        if (rt_buf_bytes(x, arg[i].buf, &n) == GNNC_OK) memset(x->buf[arg[i].buf], 0, n);
    }
}

/* Calls a user's C function with its buffers as tensors, unless its condition does not hold. */
gnnc_status rt_call(RtExec *x, const rt_extern *f, const rt_arg *arg) {
    gnnc_tensor t[RT_MAX_CALL];
    int n = f->n_in + f->n_out;
    bool there = x->rt->device && f->device;
    gnnc_status st = GNNC_OK;
    bool happens = f->when < 0 || rt_when(x, f->when, true, &st);
    if (st != GNNC_OK) return st;
    if (n > RT_MAX_CALL)
        return rt_fail(&x->rt->err, GNNC_E_ARG, "%s: '%s' has more than %d arguments", f->line,
                       f->name, RT_MAX_CALL);
    void **buf = there ? rt_device_buffers(x) : x->buf;
    for (int i = 0; i < n; i++) t[i] = describe(buf[arg[i].buf], &arg[i]);
    x->rt->count.library_calls++;
    x->rt->count.read_backs += f->host;
    if (there && happens) return call_on_device(x, f, t);
    if (x->rt->device) TRY(st, fetch_inputs(x, f, arg));
    if (happens)
        TRY(st, told(x, f, f->fn(t, NULL)));
    else
        no_results(x, f, arg);
    if (x->rt->device) TRY(st, store_results(x, f, arg));
out:
    return st;
}
