/* Running a program's phases: inputs and random keys in, scalars out, and the services
 * that the generated driver calls (launches and matrix products have files of their
 * own).  Nothing here allocates once the scratch has its size. */
#include "runtime/device/device.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "beside.h"
#include "runtime/data/npy.h"
#include "profile.h"
#include "rng.h"
#include "runtime/data/number.h"

/* ---- phases -------------------------------------------------------------- */
/* Runs a phase on the host or the device, with its profile if one is kept; an error gets the
 * phase's name. */
static gnnc_status run(RtExec *x, const rt_phase *phase) {
    rt_serial_steps_phase(x, phase);
    if (x->profile) rt_profile_begin(x, phase);
    gnnc_status st = x->rt->device ? rt_device_run(x, phase) : phase->run(x);
    rt_beside_end(x);                                           /* after a failure */
    if (st == GNNC_OK && x->rt->dist) st = x->rt->dist->failed; /* while a kernel ran */
    rt_blocks_end(x);
    gnnc_status profiled = x->profile ? rt_profile_end(x) : GNNC_OK;
    if (st == GNNC_OK) st = profiled;
    x->rt->alone_here = NULL;
    if (st == GNNC_OK) return st;
    rt_dist_leave(x, st);
    return rt_fail(&x->rt->err, st, "phase '%s': %s", phase->name, gnnc_status_text(st));
}

/* What the program keeps of its variables, anew where they are not what it has left.  A batch has
 * all variables, too; a device runs what is not of a batch for the trainer's own. */
static gnnc_status refresh(RtExec *x) {
    const rt_phase *phase = rt_phase_of(x->program, RT_PHASE_REFRESH);
    gnnc_status st = phase ? run(x->rt->device ? x->rt->device->x : x, phase) : GNNC_OK;
    x->rt->vars_changed = st != GNNC_OK;
    return st;
}

gnnc_status rt_phase_run(RtExec *x, const rt_phase *phase) {
    bool first = phase->kind == RT_PHASE_LOAD; /* before there are variables */
    gnnc_status st = x->rt->vars_changed && !first ? refresh(x) : GNNC_OK;
    return st == GNNC_OK ? run(x, phase) : st;
}

/* Writes the random keys of this step to all key buffers, and to the device. */
void rt_write_keys(RtExec *x, uint64_t seed, uint64_t step) {
    for (int i = 0; i < x->program->n_bufs; i++) {
        const rt_buf *b = &x->program->bufs[i];
        if (b->kind != RT_BUF_KEY) continue;
        RtKey key = rt_stream_key(seed, step, (uint64_t)b->stream);
        memcpy(x->buf[i], (uint32_t[2]){key.k0, key.k1}, 8);
        rt_push(x, i);
    }
}

/* Writes v, converted to the element type, to *to. */
static void write_number(void *to, rt_dtype dt, double v) {
    switch (dt) {
    case RT_F32:
        *(float *)to = (float)v;
        break;
    case RT_F64:
        *(double *)to = v;
        break;
    case RT_I32:
        *(int32_t *)to = (int32_t)v;
        break;
    case RT_I64:
        *(int64_t *)to = (int64_t)v;
        break;
    case RT_I1:
        *(uint8_t *)to = v != 0;
        break;
    case RT_VOID:
    case RT_F16:
    case RT_BF16:
        break; /* inputs are full-width */
    }
}

void rt_write_input(RtExec *x, const char *io_name, double v) {
    int b = rt_buf_find(x->program, RT_BUF_INPUT, io_name);
    if (b >= 0) write_number(x->buf[b], x->program->bufs[b].dt, v);
    rt_push(x, b);
}

double rt_buf_read(const RtExec *x, int b, int64_t i) {
    rt_pull((RtExec *)x, b);
    return rt_read_number(x->buf[b], x->program->bufs[b].dt, i);
}

/* ---- services -------------------------------------------------------------- */
void rt_copy(RtExec *x, void *to, const void *from, size_t n_bytes) {
    if (x->rt->device)
        rt_device_copy(x, to, from, n_bytes);
    else if (n_bytes)
        memcpy(to, from, n_bytes);
}

typedef struct {
    char s[1024];
    size_t n;
} Line;

static void put(Line *l, const char *fmt, ...) RT_PRINTF(2, 3);
/* Appends to the line in the manner of printf; what does not fit is cut off. */
static void put(Line *l, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    int k = rt_vsnprintf(l->s + l->n, sizeof l->s - l->n, fmt, ap);
    va_end(ap);
    if (k > 0) l->n = l->n + (size_t)k < sizeof l->s ? l->n + (size_t)k : sizeof l->s - 1;
}

/* Appends element i of buffer b to the line, with the digits that its type has. */
static void put_value(Line *l, const RtExec *x, int b, int64_t i) {
    double v = rt_buf_read(x, b, i);
    rt_dtype dt = x->program->bufs[b].dt;
    if (dt == RT_I1)
        put(l, "%s", v != 0 ? "true" : "false");
    else
        put(l, "%.*g", dt == RT_F32 ? 6 : dt == RT_F16 || dt == RT_BF16 ? 4 : 12, v);
}

/* Appends to the line, for a value of n elements, their number, the least, mean and greatest of the
 * finite ones, and how many are not finite. */
static void put_summary(Line *l, const RtExec *x, int b, int64_t n) {
    double least = INFINITY, most = -INFINITY, sum = 0;
    int64_t strange = 0;
    for (int64_t i = 0; i < n; i++) {
        double v = rt_buf_read(x, b, i);
        if (!isfinite(v)) {
            strange++;
            continue;
        }
        sum += v;
        if (v < least) least = v;
        if (v > most) most = v;
    }
    put(l, ", .. %lld elements", (long long)n);
    if (strange < n) put(l, ", min %g, mean %g, max %g", least, sum / (double)(n - strange), most);
    if (strange) put(l, ", %lld not finite", (long long)strange);
}

/* Appends buffer b to the line: a scalar as itself, more elements in brackets, many with a summary.
 */
static void put_values(Line *l, const RtExec *x, int b) {
    enum { SHOWN = 8 };
    int64_t n = x->program->buf_count(b, x->n);
    put(l, n == 1 ? " " : " [");
    for (int64_t i = 0; i < n && i < SHOWN; i++) {
        if (i) put(l, ", ");
        put_value(l, x, b, i);
    }
    if (n > SHOWN) put_summary(l, x, b, n);
    if (n != 1) put(l, "]");
}

/* Prints a `print` of the model: the text, then the values of n buffers. */
gnnc_status rt_print(RtExec *x, const char *text, int n, const int *bufs) {
    Line l = {.n = 0};
    x->rt->count.read_backs++;
    for (int i = 0; i < n && x->rt->device; i++) {
        gnnc_status st = rt_device_fetch(x, bufs[i]);
        if (st != GNNC_OK) return st;
    }
    put(&l, "%s", text);
    for (int i = 0; i < n; i++) put_values(&l, x, bufs[i]);
    rt_message(x->rt, "%s", l.s);
    return GNNC_OK;
}

gnnc_status rt_assert(RtExec *x, const char *text, const uint8_t *cond, int64_t count) {
    x->rt->count.read_backs++;
    return x->rt->device ? rt_device_assert(x, text, cond, count)
                         : rt_check_assert(x, text, cond, count);
}
