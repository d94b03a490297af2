/* What a program declares, looked up: its types, buffers and phases; and the memory and messages of
 * a run.  Everything of the runtime calls these, and they call nothing of it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "exec.h"
#include "runtime/data/npy.h"
#include "runtime/data/number.h"

/* Bytes of one element of the type. */
int rt_type_bytes(rt_dtype t) {
    switch (t) {
    case RT_VOID:
        return 0;
    case RT_I1:
        return 1;
    case RT_F16:
    case RT_BF16:
        return 2;
    case RT_F32:
    case RT_I32:
        return 4;
    case RT_F64:
    case RT_I64:
        return 8;
    }
    return 0;
}

/* More than a process can address; sums over all buffers stay far from wrapping. */
#define MAX_BYTES (INT64_C(1) << 47)

/* *n_bytes gets the size of buffer b for the sizes at hand; fails where it is too large to address.
 */
gnnc_status rt_buf_bytes(RtExec *x, int b, size_t *n_bytes) {
    int64_t count = x->program->buf_count(b, x->n), bytes;
    if (count < 0 || __builtin_mul_overflow(count, rt_type_bytes(x->program->bufs[b].dt), &bytes) ||
        bytes > MAX_BYTES)
        return rt_fail(&x->rt->err, GNNC_E_RANGE, "'%s' is too large to address",
                       x->program->bufs[b].name);
    *n_bytes = (size_t)bytes;
    return GNNC_OK;
}

/* Grows by replacing: the pool keeps the old block until the trainer goes.  Requests come
 * from the plan's sizes, so after the first step there are none. */
void *rt_scratch(RtExec *x, size_t n_bytes) {
    RtRuntime *rt = x->rt;
    if (n_bytes <= rt->scratch_bytes) return rt->scratch;
    size_t want = n_bytes < 4096 ? 4096 : n_bytes;
    void *p = rt_pool_alloc(&rt->pool, want, 1);
    if (!p) {
        rt_fail_nomem(&rt->err, "working memory of a library call");
        return NULL;
    }
    rt->scratch = p;
    rt->scratch_bytes = want;
    return p;
}

const rt_phase *rt_phase_find(const rt_program *p, const char *name) {
    for (int i = 0; i < p->n_phases; i++)
        if (strcmp(p->phases[i].name, name) == 0) return &p->phases[i];
    return NULL;
}

const rt_phase *rt_phase_of(const rt_program *p, rt_phase_kind kind) {
    for (int i = 0; i < p->n_phases; i++)
        if (p->phases[i].kind == kind) return &p->phases[i];
    return NULL;
}

bool rt_predicts_batches(const rt_program *p) {
    const rt_phase *predict = rt_phase_of(p, RT_PHASE_PREDICT);
    return predict && predict->batches;
}

int rt_buf_find(const rt_program *p, rt_buf_kind k, const char *io_name) {
    for (int i = 0; i < p->n_bufs; i++)
        if (p->bufs[i].kind == k && p->bufs[i].io_name && !strcmp(p->bufs[i].io_name, io_name))
            return i;
    return -1;
}

/* Element i of an array of the given type. */
double rt_read_number(const void *p, rt_dtype dt, int64_t i) {
    switch (dt) {
    case RT_F32:
        return ((const float *)p)[i];
    case RT_F64:
        return ((const double *)p)[i];
    case RT_F16:
        return rt_f16_to_f32(((const uint16_t *)p)[i]);
    case RT_BF16:
        return rt_bf16_to_f32(((const uint16_t *)p)[i]);
    case RT_I32:
        return ((const int32_t *)p)[i];
    case RT_I64:
        return (double)((const int64_t *)p)[i];
    case RT_I1:
        return ((const uint8_t *)p)[i];
    case RT_VOID:
        break;
    }
    return 0;
}

/* Gives a message, in the manner of printf, to the function that the caller set for messages, if
 * any. */
void rt_message(RtRuntime *rt, const char *fmt, ...) {
    char text[1024];
    if (!rt->message) return;
    va_list ap;
    va_start(ap, fmt);
    rt_vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    rt->message(rt->message_user, text);
}

/* Fails with the text of the assertion if one of `count` truth values is false. */
gnnc_status rt_check_assert(RtExec *x, const char *text, const uint8_t *cond, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (!cond[i])
            return rt_fail(&x->rt->err, GNNC_E_ASSERT, "assertion failed: %s (element %lld)", text,
                           (long long)i);
    return GNNC_OK;
}

bool rt_runs_on_host(const rt_program *p) {
    return !p->device || (p->n_phases > 0 && p->phases[0].run);
}
