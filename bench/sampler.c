/* Sampling speed: neighbour batches with their features gathered where there are any, over the
 * training nodes of a data directory, or all.  One line of JSON.
 *   sampler DATA FANOUTS BATCH THREADS EPOCHS [team]
 * THREADS workers prepare whole batches ahead (the pipeline), the caller takes them; with
 * `team` the caller prepares one after the other with THREADS members instead. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/clock.h"
#include "runtime/data/data.h"
#include "runtime/batch/pipeline.h"
#include "runtime/sample/sample.h"

enum { MOST_HOPS = 8, MOST_SLOTS = 64 };

typedef struct {
    RtDataset *data;
    RtRelation rel;
    RtPool pool;
    const RtColumn *x, *y;
    int32_t *order, fanout[MOST_HOPS];
    int64_t n_train, n_hops, batch, epoch;
    RtTeam *team;
    RtSampler *sampler[MOST_SLOTS]; /* one a worker */
    RtBatch *slot[MOST_SLOTS];
    RtColumnBuf x_buf[MOST_SLOTS], y_buf[MOST_SLOTS];
} Bench;

static gnnc_status prepare(void *user, int worker, int64_t k, int slot, RtError *err) {
    Bench *q = user;
    RtBatch *b = q->slot[slot];
    RtColumn taken;
    int64_t at = k * q->batch, n = q->n_train - at < q->batch ? q->n_train - at : q->batch;
    RtSeeds seeds = {.n = n, .id = q->order + at};
    RtSampleAt where = {1, (uint64_t)q->epoch, (uint64_t)k};
    gnnc_status st;
    TRY(st, rt_sample_nodes(q->sampler[worker], &where, &seeds, b, err));
    RtRows rows = {.n = b->nodes[0].n, .i32 = b->nodes[0].id};
    if (q->x) TRY(st, rt_batch_column(b, q->team, q->x, rows, 0, &q->x_buf[slot], &taken, err));
    if (q->y) TRY(st, rt_batch_column(b, q->team, q->y, rows, 0, &q->y_buf[slot], &taken, err));
out:
    return st;
}

static gnnc_status load(Bench *q, const char *dir, RtError *err) {
    gnnc_status st;
    rt_pool_init(&q->pool, NULL);
    TRY(st, rt_dataset_open(NULL, dir, true, &q->data, err));
    const RtTable *v = &q->data->nodes[0], *e = &q->data->edges[0];
    const RtColumn *split = rt_table_column(v, "split");
    q->x = rt_table_column(v, "x");
    q->y = rt_table_column(v, "y");
    TRY(st, rt_relation_base(&q->pool, v->count, v->count, e->count, e->src, e->dst, &q->rel, err));
    TRY(st, rt_relation_group_src(&q->pool, &q->rel, err));
    q->order = RT_NEWN(&q->pool, int32_t, v->count);
    if (!q->order) return rt_fail_nomem(err, "order");
    for (int64_t i = 0; i < v->count; i++)
        if (!split || split->splits[i] == 1) q->order[q->n_train++] = (int32_t)i;
out:
    return st;
}

static gnnc_status open_samplers(Bench *q, int n_samplers, int n_slots, int members, RtError *err) {
    RtSampleType type = {.name = "node", .n = q->rel.n_dst};
    RtSampleRel rel = rt_sample_rel("edge", 0, 0, &q->rel);
    RtSampleGraph g = {1, 1, &type, &rel};
    RtSampleSpec spec = {.how.n_hops = (int)q->n_hops, .fanout = q->fanout};
    RtAlloc from = rt_alloc_default();
    gnnc_status st = GNNC_OK;
    if (members > 1) TRY(st, rt_team_start(&q->team, &from, members, members, err));
    for (int i = 0; i < n_samplers; i++)
        TRY(st, rt_sampler_new(&q->sampler[i], NULL, &g, &spec, q->team, members, err));
    for (int i = 0; i < n_slots; i++) TRY(st, rt_sampler_batch(q->sampler[0], &q->slot[i], err));
out:
    return st;
}

static gnnc_status epoch(Bench *q, RtPipeline *p, int64_t *nodes, int64_t *edges, RtError *err) {
    int64_t k, n_batches = (q->n_train + q->batch - 1) / q->batch;
    int slot;
    gnnc_status st;
    rt_sample_shuffle(1, (uint64_t)q->epoch, q->order, q->n_train);
    rt_pipeline_begin(p, 0, n_batches);
    *nodes = *edges = 0;
    while ((st = rt_pipeline_next(p, &k, &slot, err)) == GNNC_OK && slot >= 0) {
        *nodes += q->slot[slot]->nodes[0].n;
        *edges += q->slot[slot]->edges[0].n;
    }
    return st;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static gnnc_status measure(Bench *q, RtPipeline *p, int n_epochs, RtError *err) {
    double took[64];
    int64_t nodes = 0, edges = 0, grown = 0;
    for (q->epoch = 0; q->epoch <= n_epochs; q->epoch++) { /* the first warms up */
        double start = rt_now();
        gnnc_status st = epoch(q, p, &nodes, &edges, err);
        if (st != GNNC_OK) return st;
        if (q->epoch == 0)
            grown = rt_sampler_counters(q->sampler[0]).n_grown;
        else
            took[q->epoch - 1] = rt_now() - start;
    }
    qsort(took, (size_t)n_epochs, sizeof *took, by_size);
    double mid = took[n_epochs / 2];
    RtPipelineStats s = rt_pipeline_stats(p);
    printf("{\"system\": \"gnnc\", \"batches\": %lld, \"sampled_nodes\": %lld, "
           "\"sampled_edges\": %lld, \"sample_epoch_s\": %.4f, \"edges_per_s\": %.0f, "
           "\"producer_wait_ms\": %.1f, \"consumer_wait_ms\": %.1f, \"grown_later\": %lld}\n",
           (long long)((q->n_train + q->batch - 1) / q->batch), (long long)nodes, (long long)edges,
           mid, (double)edges / mid, (double)s.producer_ns * 1e-6, (double)s.consumer_ns * 1e-6,
           (long long)(rt_sampler_counters(q->sampler[0]).n_grown - grown));
    return GNNC_OK;
}

static bool parse(Bench *q, int argc, char **argv, int *threads, int *epochs) {
    if (argc < 6) return false;
    for (char *w = strtok(argv[2], ","); w && q->n_hops < MOST_HOPS; w = strtok(NULL, ","))
        q->fanout[q->n_hops++] = atoi(w);
    q->batch = atoll(argv[3]);
    *threads = atoi(argv[4]);
    *epochs = atoi(argv[5]);
    return q->batch > 0 && *threads > 0 && *threads < MOST_SLOTS / 2 && *epochs > 0 && *epochs < 64;
}

int main(int argc, char **argv) {
    static Bench q;
    int threads, epochs;
    RtPipeline *p = NULL;
    RtError err = {""};
    gnnc_status st;
    if (!parse(&q, argc, argv, &threads, &epochs)) {
        fprintf(stderr, "usage: sampler DATA FANOUTS BATCH THREADS EPOCHS [team]\n");
        return 2;
    }
    bool team = argc > 6 && strcmp(argv[6], "team") == 0;
    int n_workers = team ? 0 : threads, n_slots = team ? 1 : threads + 1;
    TRY(st, load(&q, argv[1], &err));
    TRY(st, open_samplers(&q, team ? 1 : threads, n_slots, team ? threads : 1, &err));
    RtPipelineSpec spec = {prepare, &q, n_workers, n_slots, 1};
    TRY(st, rt_pipeline_start(&p, NULL, &spec, &err));
    st = measure(&q, p, epochs, &err);
out:
    rt_pipeline_stop(p);
    if (st != GNNC_OK) fprintf(stderr, "sampler: %s\n", err.text);
    for (int i = 0; i < n_slots; i++) {
        if (!q.slot[i]) continue;
        rt_batch_column_free(q.slot[i], &q.x_buf[i]);
        rt_batch_column_free(q.slot[i], &q.y_buf[i]);
        rt_batch_free(q.slot[i]);
    }
    for (int i = 0; i < threads; i++) rt_sampler_free(q.sampler[i]);
    rt_team_stop(q.team);
    rt_dataset_close(q.data);
    rt_pool_free(&q.pool);
    return st != GNNC_OK;
}
