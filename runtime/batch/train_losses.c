#include "train_losses.h"

#include "runtime/device/device.h"

gnnc_status rt_losses_init(gnnc_trainer *t, RtLosses *l, int64_t n_steps) {
    RtPool *pool = &t->rt.pool;
    *l = (RtLosses){.rows = RT_NEWN(pool, int64_t, n_steps + 1),
                    .notes = RT_NEWN(pool, double, n_steps + 1)};
    return l->rows && l->notes ? GNNC_OK : rt_fail_nomem(&t->rt.err, "batches");
}

void rt_losses_begin(RtLosses *l, int64_t step) {
    l->from = l->to = step;
}

gnnc_status rt_losses_add(gnnc_trainer *t, RtLosses *l, int64_t step, int64_t n) {
    const RtScalar *loss = rt_scalar_loss(t, RT_SPLIT_NONE);
    RtProgress *p = &t->progress;
    if (step == 0) p->loss_sum = 0, p->loss_rows = 0;
    p->loss_rows += n;
    if (!loss || loss->buf < 0) return GNNC_OK;
    if (!t->rt.device) {
        p->loss_sum += (double)n * rt_buf_read(&t->x, loss->buf, 0);
        return GNNC_OK;
    }
    l->rows[step] = n;
    gnnc_status st = rt_device_note(&t->x, loss->buf, step);
    if (st == GNNC_OK) l->to = step + 1;
    return st;
}

gnnc_status rt_losses_settle(gnnc_trainer *t, RtLosses *l) {
    if (l->from == l->to) return GNNC_OK;
    gnnc_status st = rt_device_notes_read(&t->x, l->from, l->to - l->from, l->notes);
    if (st != GNNC_OK) return st;
    rt_dtype dt = t->program->bufs[rt_scalar_loss(t, RT_SPLIT_NONE)->buf].dt;
    for (int64_t i = l->from; i < l->to; i++)
        t->progress.loss_sum += (double)l->rows[i] * rt_read_number(&l->notes[i - l->from], dt, 0);
    l->from = l->to;
    return GNNC_OK;
}
