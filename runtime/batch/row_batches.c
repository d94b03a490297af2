#include "row_batches.h"

#include "batch_metrics.h"
#include "batch_step.h"
#include "runtime/exec/device.h"

typedef struct RtRowBatches {
    const RtSampleGraph *graph;
    const RtBatchMap *map;
    int type;
    int64_t batch;
    RtSampler *sampler;
    RtMinibatch rows;
    RtBatchStep step;
    RtBatchMetrics metrics;
    int32_t *row; /* [rows of the type] of the split that is evaluated */
    double *time; /* [batch] */
    bool evaluated;
} RtRowBatches;

enum { N_SPLITS = 3 };

int64_t rt_rows_of_split(const gnnc_trainer *t, int split, int32_t *out) {
    const rt_sampling *s = &t->program->sampling;
    const RtColumn *of = t->rt.bound->col[s->split];
    const RtColumn *label = s->label >= 0 ? t->rt.bound->col[s->label] : NULL;
    int64_t n = 0;
    for (int64_t i = 0; i < of->n_rows; i++) {
        if (!rt_is_labelled(of, t->rt.bound->split, split, label, i)) continue;
        if (out) out[n] = (int32_t)i;
        n++;
    }
    return n;
}

gnnc_status rt_row_batches_start(gnnc_trainer *t, const RtSampleGraph *g, const RtSampleSpec *spec,
                                 const RtBatchMap *map, int type, int64_t batch, int n_members) {
    RtPool *pool = &t->rt.pool;
    RtBatch *sampled;
    gnnc_status st = GNNC_OK;
    if (!rt_evaluates_rows(t->program)) return st;
    RtRowBatches *b = t->rows = RT_NEW(pool, RtRowBatches);
    if (!b) goto no_memory;
    *b = (RtRowBatches){.graph = g, .map = map, .type = type, .batch = batch};
    b->row = RT_NEWN(pool, int32_t, g->type[type].n + 1);
    b->time = RT_NEWN(pool, double, batch + 1);
    if (!b->row || !b->time) goto no_memory;
    TRY(st, rt_batch_step_init(t, "eval", &b->step));
    TRY(st, rt_sampler_new(&b->sampler, &pool->from, g, spec, NULL, n_members, &t->rt.err));
    TRY(st, rt_sampler_batch(b->sampler, &sampled, &t->rt.err));
    st = rt_minibatch_new(pool, &pool->from, &t->x, sampled, &b->rows, &t->rt.err);
out:
    return st;
no_memory:
    return rt_fail_nomem(&t->rt.err, "batches to evaluate");
}

void rt_row_batches_stop(gnnc_trainer *t) {
    RtRowBatches *b = t->rows;
    if (!b) return;
    rt_minibatch_free(&b->rows);
    rt_sampler_free(b->sampler);
    rt_batch_step_free(&b->step);
    t->rows = NULL;
}

gnnc_status rt_row_batches_notes(gnnc_trainer *t, int64_t first, int64_t *n) {
    RtRowBatches *b = t->rows;
    int64_t most = 0;
    for (int split = 1; split <= N_SPLITS; split++) {
        int64_t rows = rt_rows_of_split(t, split, NULL), runs = (rows + b->batch - 1) / b->batch;
        if (runs > most) most = runs;
    }
    gnnc_status st = rt_batch_metrics_init(t, &b->metrics, first, most);
    *n = b->metrics.n_notes;
    return st;
}

static gnnc_status evaluate_batch(gnnc_trainer *t, int split, int64_t from, int64_t n) {
    RtRowBatches *b = t->rows;
    RtMinibatch *m = &b->rows;
    RtError *err = &t->rt.err;
    RtSampleAt at = {0, (uint64_t)split, (uint64_t)from}; /* the same in every epoch */
    const double *time = b->graph->type[b->type].time;
    RtSeeds seeds = {.type = b->type, .n = n, .id = b->row + from, .time = b->time};
    gnnc_status st;
    for (int64_t i = 0; i < n; i++) b->time[i] = time[b->row[from + i]];
    rt_minibatch_begin(m, &t->x, !b->evaluated);
    rt_sampler_use(b->sampler, t->rt.team, t->x.threads);
    m->team = t->rt.team;
    TRY(st, rt_sample_nodes(b->sampler, &at, &seeds, m->batch, err));
    TRY(st, rt_minibatch_bind(m, &t->x, b->map, err));
    TRY(st, rt_batch_step_run(t, &b->step, m, !b->evaluated));
    st = rt_batch_metrics_add(t, &b->metrics, split, n);
out:
    return st;
}

gnnc_status rt_row_batches_evaluate(gnnc_trainer *t, const rt_phase *eval) {
    RtRowBatches *b = t->rows;
    gnnc_status st = GNNC_OK;
    if (!eval) return st;
    for (int split = 1; split <= N_SPLITS && st == GNNC_OK; split++) {
        int64_t n = rt_rows_of_split(t, split, b->row);
        rt_batch_metrics_begin(t, &b->metrics, split);
        for (int64_t from = 0; from < n && st == GNNC_OK; from += b->batch)
            st = evaluate_batch(t, split, from, n - from < b->batch ? n - from : b->batch);
        if (st == GNNC_OK) st = rt_batch_metrics_end(t, &b->metrics, split);
    }
    rt_recycle_reset(&b->rows.memory); /* takes room for the largest now, not in the next epoch */
    b->evaluated |= st == GNNC_OK;
    return st;
}

const int64_t *rt_row_batches_sizes(const gnnc_trainer *t, const rt_phase *ph) {
    const RtRowBatches *b = t->rows;
    return b && (int)(ph - t->program->phases) == b->step.phase ? b->step.most : NULL;
}
