#include "batch_metrics.h"

#include <math.h>

#include "runtime/device/device.h"

gnnc_status rt_batch_metrics_init(gnnc_trainer *t, RtBatchMetrics *m, int64_t first,
                                  int64_t n_runs) {
    int64_t n = 0; /* of either split */
    for (int i = 0; i < t->n_scalars; i++) n += t->scalars[i].of_split ? 2 : 0;
    *m = (RtBatchMetrics){.first = first, .n_notes = n * n_runs};
    m->notes = RT_NEWN(&t->rt.pool, double, m->n_notes + 1);
    return m->notes ? GNNC_OK : rt_fail_nomem(&t->rt.err, "metrics of batches");
}

/* Forgets the sums of the metrics of a split, before its first run. */
void rt_batch_metrics_begin(gnnc_trainer *t, RtBatchMetrics *m, int split) {
    m->next = 0;
    for (int i = 0; i < t->n_scalars; i++)
        if (t->scalars[i].of_split == split) t->scalars[i].sum = t->scalars[i].rows = 0;
}

static void add(RtScalar *s, double sum, double rows) {
    s->sum += sum;
    s->rows += rows;
}

gnnc_status rt_batch_metrics_add(gnnc_trainer *t, RtBatchMetrics *m, int split) {
    gnnc_status st = GNNC_OK;
    for (int i = 0; i < t->n_scalars && st == GNNC_OK; i++) {
        RtScalar *s = &t->scalars[i];
        if (s->of_split != split) continue;
        if (!t->rt.device) {
            add(s, rt_buf_read(&t->x, s->sum_buf, 0), rt_buf_read(&t->x, s->rows_buf, 0));
            continue;
        }
        st = rt_device_note(&t->x, s->sum_buf, m->first + m->next++);
        if (st == GNNC_OK) st = rt_device_note(&t->x, s->rows_buf, m->first + m->next++);
    }
    return st;
}

/* Adds what the device noted to the sums of the split's metrics: run by run, as it was noted. */
static void add_notes(gnnc_trainer *t, const RtBatchMetrics *m, int split) {
    const rt_buf *bufs = t->program->bufs;
    for (int64_t at = 0; at < m->next;)
        for (int i = 0; i < t->n_scalars; i++) {
            RtScalar *s = &t->scalars[i];
            if (s->of_split != split) continue;
            double sum = rt_read_number(&m->notes[at++], bufs[s->sum_buf].dt, 0);
            double rows = rt_read_number(&m->notes[at++], bufs[s->rows_buf].dt, 0);
            add(s, sum, rows);
        }
}

/* Reads what the device noted, if there is one, and divides the sums of a split's metrics by the
 * rows; a metric without rows is not known. */
gnnc_status rt_batch_metrics_end(gnnc_trainer *t, RtBatchMetrics *m, int split) {
    if (m->next) {
        gnnc_status st = rt_device_notes_read(&t->x, m->first, m->next, m->notes);
        if (st != GNNC_OK) return st;
        add_notes(t, m, split);
    }
    for (int i = 0; i < t->n_scalars; i++) {
        RtScalar *s = &t->scalars[i];
        if (s->of_split != split) continue;
        s->known = s->rows > 0;
        s->value = s->known ? s->sum / s->rows : NAN;
    }
    return GNNC_OK;
}
