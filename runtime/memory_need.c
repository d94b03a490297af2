/* What is asked of a buffer before it has memory, and what is said when there is not enough. */
#include "memory.h"

bool rt_memory_passes(const rt_program *p, int b) {
    const rt_buf *buf = &p->bufs[b];
    if (buf->kind != RT_BUF_OUTPUT || buf->rank == 0) return false;
    const rt_phase *phase = &p->phases[buf->phase];
    if (phase->kind == RT_PHASE_TRAIN) return phase->batches;
    return phase->kind != RT_PHASE_LOAD;
}

bool rt_memory_is_temp(const rt_program *p, int b) {
    return p->bufs[b].kind == RT_BUF_TEMP || rt_memory_passes(p, b);
}

/* Whether the buffer's memory belongs to the model that sessions share (its parameters and
 * state), not to this execution. */
bool rt_memory_is_borrowed(const RtExec *x, int b) {
    const rt_program *p = x->program;
    for (int v = 0; v < p->n_vars && x->rt->model && b >= 0; v++) {
        rt_var_kind k = p->vars[v].kind;
        if (p->vars[v].buf == b)
            return k == RT_VAR_PARAM || k == RT_VAR_STATE || (k == RT_VAR_KEPT && !x->rt->device);
    }
    return false;
}

static double mib(size_t n) {
    return (double)n / (1 << 20);
}

gnnc_status rt_memory_refuse(RtExec *x, const gnnc_memory *m, size_t all, RtMemoryLimit most,
                             const char *hint) {
    return rt_fail(&x->rt->err, GNNC_E_LIMIT,
                   "%.1f MiB are needed (data %.1f, indices %.1f, parameters %.1f, saved %.1f, "
                   "working %.1f, batches %.1f), %s %.1f MiB%s",
                   mib(all), mib(m->data_bytes), mib(m->index_bytes), mib(m->parameter_bytes),
                   mib(m->saved_bytes), mib(m->arena_bytes + m->library_bytes), mib(m->batch_bytes),
                   most.what, mib(most.n_bytes), hint);
}

gnnc_status rt_memory_more(RtExec *x, const RtMemory *m, size_t limit, size_t live_bytes,
                           size_t n_bytes, const char *what, const char *advice) {
    size_t have = live_bytes + m->need.data_bytes;
    RtMemoryLimit most = rt_memory_limit(have);
    if (limit) most = (RtMemoryLimit){limit, "the limit is"};
    if (n_bytes <= most.n_bytes && have <= most.n_bytes - n_bytes) return GNNC_OK;
    return rt_fail(&x->rt->err, GNNC_E_LIMIT,
                   "%.1f MiB are needed, %.1f of them for %s, %s %.1f MiB%s", mib(have + n_bytes),
                   mib(n_bytes), what, most.what, mib(most.n_bytes), advice);
}
