#include "eval_shares.h"

#include "runtime/exec/distributed.h"

bool rt_eval_is_shared(const gnnc_trainer *t) {
    bool all_come = t->in_epoch || t->pulls;
    return t->shares && t->processes.n > 1 && all_come && !t->rt.device;
}

int rt_eval_maker(const gnnc_trainer *t, int64_t i, int64_t n) {
    return rt_dist_owner(i, n, t->processes.n);
}

bool rt_eval_reads_last(const gnnc_trainer *t, int phase) {
    const rt_buf *bufs = t->program->bufs;
    for (int i = 0; i < t->n_scalars; i++) {
        const RtScalar *s = &t->scalars[i];
        if (s->buf >= 0 && s->phase == phase) return true;
        if (s->eval_buf >= 0 && bufs[s->eval_buf].phase == phase) return true;
    }
    for (int b = 0; b < t->program->n_bufs; b++)
        if (bufs[b].role == RT_OUT_DUMP && bufs[b].phase == phase) return true;
    return false;
}

gnnc_status rt_eval_message(gnnc_trainer *t, RtEvalMessage *m, size_t n_bytes) {
    if (n_bytes <= m->n_bytes) return GNNC_OK;
    rt_pool_drop(&t->rt.pool, m->p);
    *m = (RtEvalMessage){rt_pool_alloc(&t->rt.pool, n_bytes, 1), n_bytes};
    if (m->p) return GNNC_OK;
    m->n_bytes = 0;
    return rt_fail_nomem(&t->rt.err, "an evaluation");
}
