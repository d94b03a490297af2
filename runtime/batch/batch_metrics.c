#include "batch_metrics.h"

#include <math.h>

#include "eval_shares.h"
#include "runtime/device/device.h"
#include "train_peers.h"

gnnc_status rt_batch_metrics_init(gnnc_trainer *t, RtBatchMetrics *m, int64_t first,
                                  int64_t n_runs) {
    int64_t n = 0; /* of either split */
    for (int i = 0; i < t->n_scalars; i++) n += t->scalars[i].of_split ? 2 : 0;
    *m = (RtBatchMetrics){.first = first, .n_notes = n * n_runs};
    m->notes = RT_NEWN(&t->rt.pool, double, m->n_notes + 1);
    return m->notes ? GNNC_OK : rt_fail_nomem(&t->rt.err, "metrics of batches");
}

/* Forgets the sums of the metrics of a split, before its first run. */
void rt_batch_metrics_begin(gnnc_trainer *t, RtBatchMetrics *m, int split, int64_t n_shared) {
    m->next = 0;
    m->n_shared = n_shared;
    for (int i = 0; i < t->n_scalars; i++)
        if (t->scalars[i].of_split == split) t->scalars[i].sum = t->scalars[i].rows = 0;
}

static void add(RtScalar *s, double sum, double rows) {
    s->sum += sum;
    s->rows += rows;
}

/* Notes that a run leaves. */
static int64_t notes_of_run(const gnnc_trainer *t, int split) {
    int64_t n = 0;
    for (int i = 0; i < t->n_scalars; i++) n += t->scalars[i].of_split == split ? 2 : 0;
    return n;
}

gnnc_status rt_batch_metrics_add(gnnc_trainer *t, RtBatchMetrics *m, int split, int64_t run) {
    gnnc_status st = GNNC_OK;
    double *note = m->notes + run * notes_of_run(t, split); /* where runs are shared out */
    for (int i = 0; i < t->n_scalars && st == GNNC_OK; i++) {
        RtScalar *s = &t->scalars[i];
        if (s->of_split != split) continue;
        if (!t->rt.device) {
            double sum = rt_buf_read(&t->x, s->sum_buf, 0),
                   rows = rt_buf_read(&t->x, s->rows_buf, 0);
            if (m->n_shared)
                *note++ = sum, *note++ = rows;
            else
                add(s, sum, rows);
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

/* All processes get the notes of all runs, and add them in their order. */
static gnnc_status add_shared(gnnc_trainer *t, RtBatchMetrics *m, int split) {
    int64_t each = notes_of_run(t, split), end = 0;
    gnnc_status st = GNNC_OK;
    for (int64_t from = 0; from < m->n_shared && st == GNNC_OK; from = end) {
        int r = rt_eval_maker(t, from, m->n_shared);
        while (end < m->n_shared && rt_eval_maker(t, end, m->n_shared) == r) end++;
        st = rt_processes_broadcast(t, m->notes + from * each,
                                    (size_t)((end - from) * each) * sizeof *m->notes, r);
    }
    const double *note = m->notes;
    for (int64_t run = 0; run < m->n_shared && st == GNNC_OK; run++)
        for (int i = 0; i < t->n_scalars; i++) {
            if (t->scalars[i].of_split != split) continue;
            add(&t->scalars[i], note[0], note[1]);
            note += 2;
        }
    return st;
}

/* Reads what the device noted, if there is one, and divides the sums of a split's metrics by the
 * rows; a metric without rows is not known. */
gnnc_status rt_batch_metrics_end(gnnc_trainer *t, RtBatchMetrics *m, int split) {
    if (m->next) {
        gnnc_status st = rt_device_notes_read(&t->x, m->first, m->next, m->notes);
        if (st != GNNC_OK) return st;
        add_notes(t, m, split);
    }
    if (m->n_shared) {
        gnnc_status st = add_shared(t, m, split);
        if (st != GNNC_OK) return st;
    }
    for (int i = 0; i < t->n_scalars; i++) {
        RtScalar *s = &t->scalars[i];
        if (s->of_split != split) continue;
        s->known = s->rows > 0;
        s->value = s->known ? s->sum / s->rows : NAN;
    }
    return GNNC_OK;
}
