/* Mini-batches of a trainer: samplers, the pipeline that fills slots, and the step's memory.
 *
 * Memory of a step is packed for sizes that no batch has exceeded yet; where one does, room is
 * made before the step.  Before the first step every slot makes the heaviest batch there may
 * be (train_heavy.h); in the first epoch a quarter is added, so that later ones need no more. */
#include "train_batches.h"
#include "runtime/exec/machine.h"

#include <inttypes.h>
#include <string.h>

#include "batch_step.h"
#include "batch_source.h"
#include "draw.h"
#include "runtime/contract.h"
#include "runtime/device/device_pinned.h"
#include "runtime/exec/distributed.h"
#include "hot_rows.h"
#include "link_batches.h"
#include "part_seeds.h"
#include "pull.h"
#include "row_batches.h"
#include "runtime/sample/sample.h"
#include "train_heavy.h"
#include "train_losses.h"
#include "train_parts.h"
#include "train_shares.h"

typedef struct RtBatches {
    RtBatchSource source;
    RtSampler **sampler; /* [n_samplers] a worker's own */
    int n_samplers, n_slots;
    int n_workers; /* 0: the step's own team makes batches, between steps */
    RtMinibatch *slot;
    RtPipeline *pipeline;
    int type;      /* of the seeds; -1 = parts, or the ends of links */
    RtParts parts; /* graphs or clusters */
    int64_t batch; /* seeds of a batch */
    int64_t n_seeds, n_batches;
    RtPartSeeds *by_part;  /* each batch has seeds of one part of the data; NULL = of any */
    int64_t *n_learned;    /* [n_batches] rows that count in the loss */
    int32_t *seed, *order; /* [n_seeds] as the data list them; as this epoch takes them */
    double *time;          /* [n_slots][batch] of the seeds; NULL = not temporal */
    bool draws;            /* a batch is a part of the graph */
    RtDrawer drawer;       /* by the device, or samplers */
    int64_t epoch, next;   /* the run that the pipeline is in, and its next batch */
    int64_t *mine;         /* [n_batches] its batches that this process makes, in order */
    int held;              /* the slot of the one that was taken */
    bool gave;             /* the last step was this process's, on that slot */
    int64_t turn;          /* pulled rows: batches before it are made, or at the same time now .. */
    bool ahead;            /* .. and rows of this process's next one were asked for: */
    int next_held;         /* it is in this slot; -1: it has none in the next turn */
    int64_t again;         /* a batch whose step failed behind that, made again alone; or -1 */
    int64_t first_epoch;   /* the first that was run */
    RtLosses losses;
    bool warm; /* there is room for batches */
    RtBatchStep step;
} RtBatches;

static gnnc_status nomem(gnnc_trainer *t) {
    return rt_fail_nomem(&t->rt.err, "batches");
}

/* ---- seeds -------------------------------------------------------------------------------- */
/* Finds the parts that batches are made of: graphs, or clusters; else there are none. */
static gnnc_status make_parts(gnnc_trainer *t, RtBatches *b) {
    const rt_sampling *s = &t->program->sampling;
    RtPool *pool = &t->rt.pool;
    if (s->seeds == RT_SEEDS_GRAPHS)
        return rt_parts_of_graphs(pool, &t->x, &b->source.map, &b->parts, &t->rt.err);
    if (s->seeds == RT_SEEDS_CLUSTERS)
        return rt_parts_of_clusters(pool, &b->source.graph, s->clusters, (uint64_t)t->options.seed,
                                    &b->parts, &t->rt.err);
    return GNNC_OK;
}

/* Seeds of a model that scores links: the edges, or queries, of the training split. */
static gnnc_status make_link_seeds(gnnc_trainer *t, RtBatches *b) {
    b->type = -1;
    b->batch = t->options.batch ? t->options.batch : t->program->sampling.batch;
    b->n_seeds = rt_link_batches_seeds(t, NULL);
    b->n_batches = (b->n_seeds + (t->program->sampling.drop_last ? 0 : b->batch - 1)) / b->batch;
    if (b->batch > b->n_seeds) b->batch = b->n_seeds;
    b->seed = RT_NEWN(&t->rt.pool, int32_t, b->n_seeds + 1);
    b->order = RT_NEWN(&t->rt.pool, int32_t, b->n_seeds + 1);
    b->n_learned = RT_NEWN(&t->rt.pool, int64_t, b->n_batches + 1);
    if (!b->seed || !b->order || !b->n_learned) return nomem(t);
    rt_link_batches_seeds(t, b->seed);
    return GNNC_OK;
}

/* Why seeds cannot be drawn by part; NULL: they can. */
static const char *lacks_parts(const gnnc_trainer *t, const RtTable *table) {
    if (t->links) return "its seeds are links";
    if (t->program->sampling.seeds == RT_SEEDS_CLUSTERS) return "its batches are clusters";
    if (!table->n_parts) return "the data are not in parts (gnnc partition)";
    if (table->n_parts < t->processes.n)
        return "the data have fewer parts than there are processes";
    return NULL;
}

/* With option seeds_by_part: batches of the seeds of one part each. */
static gnnc_status make_by_part(gnnc_trainer *t, RtBatches *b, const RtTable *table) {
    const char *why = t->options.seeds_by_part ? lacks_parts(t, table) : NULL;
    if (why)
        return rt_fail(&t->rt.err, GNNC_E_STATE,
                       "seeds cannot be drawn by part (seeds_by_part): %s", why);
    if (!t->options.seeds_by_part || !b->n_seeds) return GNNC_OK;
    if (!(b->by_part = RT_NEW(&t->rt.pool, RtPartSeeds))) return nomem(t);
    gnnc_status st = rt_part_seeds_make(&t->rt.pool, table, b->seed, b->n_seeds, b->batch,
                                        t->program->sampling.drop_last, b->by_part, &t->rt.err);
    if (st != GNNC_OK) return st;
    b->n_batches = b->by_part->n_batches;
    b->batch = rt_part_seeds_most(b->by_part);
    return GNNC_OK;
}

/* Seeds that training draws batches around: labelled rows of the training split, graphs, or
 * clusters. */
static gnnc_status make_seeds(gnnc_trainer *t, RtBatches *b) {
    const rt_sampling *s = &t->program->sampling;
    if (t->links && t->options.seeds_by_part) return make_by_part(t, b, NULL);
    if (t->links) return make_link_seeds(t, b);
    const rt_space *rows = &t->program->spaces[t->program->columns[s->split].space];
    bool clusters = s->seeds == RT_SEEDS_CLUSTERS;
    b->type =
        s->seeds == RT_SEEDS_ROWS ? b->source.map.type_of_space[rows - t->program->spaces] : -1;
    b->batch = t->options.batch ? t->options.batch : s->batch;
    b->n_seeds = clusters ? s->clusters : rt_rows_of_split(t, RT_SPLIT_TRAIN, NULL);
    b->n_batches = (b->n_seeds + (s->drop_last ? 0 : b->batch - 1)) / b->batch;
    bool learns =
        t->rt.bound->missing_label < 0; /* else rows are predicted, and nothing is trained */
    if (b->n_batches == 0 && learns)
        return rt_fail(
            &t->rt.err, GNNC_E_VALUE,
            "%s: %lld rows of '%s' are labelled and in the train split: no batch of %lld",
            t->rt.bound->dir, (long long)b->n_seeds, rows->name, (long long)b->batch);
    if (b->batch > b->n_seeds && learns) b->batch = b->n_seeds;
    b->seed = RT_NEWN(&t->rt.pool, int32_t, b->n_seeds);
    b->order = RT_NEWN(&t->rt.pool, int32_t, b->n_seeds);
    if (!b->seed || !b->order) return nomem(t);
    for (int64_t i = 0; clusters && i < b->n_seeds; i++) b->seed[i] = (int32_t)i;
    if (!clusters) rt_rows_of_split(t, RT_SPLIT_TRAIN, b->seed);
    gnnc_status st = make_by_part(t, b, t->rt.bound->table[rows - t->program->spaces]);
    if (st != GNNC_OK) return st;
    b->n_learned = RT_NEWN(&t->rt.pool, int64_t, b->n_batches);
    return b->n_learned ? GNNC_OK : nomem(t);
}

/* ---- who draws -------- */
/* Asked for, and possible: else it is told why not, and the host draws. */
static bool wants_device(gnnc_trainer *t, const RtBatches *b) {
    const char *why = t->rt.device ? rt_device_sampler_lacks(t->program) : "there is no GPU in use";
    if (!t->options.device_sampler || !b->draws) return false;
    if (why) rt_message(&t->rt, "sampler: %s; the host draws", why);
    return !why;
}

/* Makes the samplers of a device that draws batches: of training, and of what is predicted around
 * neighbours that are drawn for it. */
static gnnc_status make_device_samplers(gnnc_trainer *t, RtBatches *b) {
    RtDeviceSamplerSpec spec = {.g = &b->source.graph,
                                .space = b->source.map.space_of_rel,
                                .how = &b->source.spec,
                                .n_groups = 1,
                                .type = {b->type, b->type},
                                .n_seeds = b->batch,
                                .n_trees = b->batch,
                                .n_slots = b->n_slots};
    gnnc_status st;
    if (t->links) rt_link_batches_seeds_there(t, &b->source.map, b->batch, &spec);
    TRY(st, rt_drawer_open(t, &spec, b->sampler[0], &b->drawer));
    TRY(st, rt_drawer_bind(t, &b->drawer, &b->source.map, "of training", b->slot, b->n_slots));
    TRY(st, rt_row_batches_draw_there(t, b->source.map.space_of_rel, b->drawer.there));
    TRY(st, rt_link_scores_draw_there(t, spec.g, spec.how, spec.space, b->drawer.there));
    st = rt_link_negatives_draw_there(t, b->drawer.there);
out:
    return st;
}

/* ---- rows near the device -------- */
/* Of columns that a device reads in the host's memory: brings the rows that batches read most often
 * there, in option feature_cache. */
static gnnc_status keep_hot_rows(gnnc_trainer *t, const RtBatches *b) {
    const RtSampleGraph *g = &b->source.graph;
    if (!t->options.feature_cache || !t->rt.device || !b->draws) return GNNC_OK;
    RtHotType *hot = RT_NEWN(&t->rt.pool, RtHotType, g->n_types + 1);
    if (!hot) return nomem(t);
    for (int k = 0; k < g->n_types; k++) {
        int space = b->source.map.space_of_type[k];
        size_t row_bytes = (size_t)rt_device_pinned_bytes(&t->x, space);
        if (row_bytes) hot[k] = (RtHotType){.n = g->type[k].n, .row_bytes = row_bytes};
    }
    gnnc_status st = rt_hot_rows_choose(t, g, hot, t->options.feature_cache,
                                        "the choice of rows that stay on the device",
                                        ": feature_cache 0 needs none");
    for (int k = 0; k < g->n_types && st == GNNC_OK; k++)
        st =
            rt_device_keep_rows(&t->x, b->source.map.space_of_type[k], hot[k].row, hot[k].n_chosen);
    for (int k = 0; k < g->n_types; k++) rt_pool_drop(&t->rt.pool, hot[k].row);
    rt_pool_drop(&t->rt.pool, hot);
    return st;
}

/* ---- preparing, in a worker ------------------------------------------------------------------ */
/* Draws the neighbours of n rows into the slot. */
static gnnc_status draw_rows(RtBatches *b, int worker, const RtSampleAt *at, const int32_t *id,
                             int64_t n, int slot, RtError *err) {
    RtSeeds seeds = {.type = b->type, .n = n, .id = id};
    const double *time = b->source.graph.type[b->type].time;
    if (time) {
        double *of = b->time + slot * b->batch;
        for (int64_t i = 0; i < n; i++) of[i] = time[id[i]];
        seeds.time = of;
    }
    return rt_drawer_draw(&b->drawer, b->sampler[worker], at, &seeds, 1, NULL, slot,
                          b->slot[slot].batch, err);
}

/* Makes a batch of whole graphs or clusters. */
static gnnc_status draw_parts(const gnnc_trainer *t, int worker, const RtSampleAt *at,
                              const int32_t *id, int64_t n, int slot, RtError *err) {
    RtBatches *b = t->batches;
    RtMinibatch *m = &b->slot[slot];
    if (t->program->sampling.seeds == RT_SEEDS_GRAPHS) m->graphs = (RtRows){.n = n, .i32 = id};
    return rt_sample_parts(b->sampler[worker], at, &b->parts, id, n, m->batch, err);
}

/* Draws the step's links and negatives and, where the model samples, the neighbours of their ends,
 * and binds all to the slot. */
static gnnc_status fill_links(gnnc_trainer *t, int worker, const RtSampleAt *at, const int32_t *id,
                              int64_t n, int slot, RtError *err) {
    RtBatches *b = t->batches;
    RtMinibatch *m = &b->slot[slot];
    RtLinkBatch links;
    gnnc_status st;
    bool there = b->drawer.there != NULL;
    TRY(st, rt_link_batches_draw(t, &m->rt.pool, at, id, n, !rt_drawer_reads_ids(&b->drawer),
                                 &links, err));
    if (b->draws) {
        RtLinkDrawer by = {&b->drawer, b->sampler[worker], slot, there};
        TRY(st, rt_link_batches_draw_around(t->links, &by, at, &b->source.map, m, &links, err));
    }
    TRY(st, rt_minibatch_bind(m, &t->x, &b->source.map, err));
    st = rt_link_batches_bind(t->links, m, &links, err);
out:
    return st;
}

/* Draws the batch with the seeds id[n] into a slot, and binds the program to it. */
static gnnc_status fill(gnnc_trainer *t, int worker, const RtSampleAt *at, const int32_t *id,
                        int64_t n, int slot, RtError *err) {
    RtBatches *b = t->batches;
    rt_minibatch_begin(&b->slot[slot], &t->x, b->epoch == b->first_epoch);
    if (!b->n_workers && b->draws) { /* the caller's team has nothing else to do */
        rt_sampler_use(b->sampler[worker], t->rt.team, t->x.threads);
        b->slot[slot].team = t->rt.team;
    }
    if (t->links) return fill_links(t, worker, at, id, n, slot, err);
    gnnc_status st = b->type < 0 ? draw_parts(t, worker, at, id, n, slot, err)
                                 : draw_rows(b, worker, at, id, n, slot, err);
    if (st != GNNC_OK) return st;
    return rt_minibatch_bind(&b->slot[slot], &t->x, &b->source.map, err);
}

/* Where the seeds of a batch are in the epoch's order: *n from the result on. */
static int64_t seeds_of(const RtBatches *b, int64_t batch, int64_t *n) {
    if (b->by_part) return rt_part_seeds_of(b->by_part, batch, n);
    int64_t from = batch * b->batch, left = b->n_seeds - from;
    *n = left < b->batch ? left : b->batch;
    return from;
}

/* Prepares a batch of the run in a slot, by a worker of the pipeline: number `index` of those that
 * this process makes. */
static gnnc_status prepare(void *user, int worker, int64_t index, int slot, RtError *err) {
    gnnc_trainer *t = user;
    RtBatches *b = t->batches;
    int64_t number = b->mine[index], n, from = seeds_of(b, number, &n);
    RtSampleAt at = {(uint64_t)t->options.seed, (uint64_t)b->epoch, (uint64_t)number};
    gnnc_status st = fill(t, worker, &at, b->order + from, n, slot, err);
    bool clusters = t->program->sampling.seeds == RT_SEEDS_CLUSTERS;
    if (st == GNNC_OK)
        b->n_learned[number] =
            clusters ? rt_parts_learned(&t->x, &b->source.map, b->slot[slot].batch) : n;
    return st;
}

/* ---- life -------- */
/* One for every four threads: a batch is made in a fraction of its step's time; where none is
 * drawn, very soon. Where a device makes the steps, in less time than a thread makes a batch, all
 * threads but the one that launches them, of this process's share of the machine's cores. */
static int count_workers(const gnnc_trainer *t, const RtBatches *b) {
    enum { STEPS_PER_WORKER = 4, USUAL = 16, MOST = 64 };
    int64_t n = t->options.workers >= 0 ? t->options.workers : t->program->sampling.workers;
    if (t->options.workers < 0 && n == 0 && t->x.threads > 1) {
        int64_t beside_steps = (t->x.threads + STEPS_PER_WORKER - 1) / STEPS_PER_WORKER;
        n = beside_steps < USUAL ? beside_steps : USUAL;
        if (t->rt.device) {
            int share = t->rt.n_local > 1 ? rt_usable_cores() / t->rt.n_local : t->x.threads;
            n = (share < t->x.threads ? share : t->x.threads) - 1;
            if (n < 1) n = 1;
        }
        if (!b->draws) n = 1;
    }
    return n < MOST ? (int)n : MOST;
}

/* Members that a sampler may have: of its worker alone, or of whichever team the trainer gets. */
static int count_members(const gnnc_trainer *t, int n_workers) {
    int cores = rt_usable_cores();
    return n_workers ? 1 : t->x.threads > cores ? t->x.threads : cores;
}

/* Makes the slots (one for each worker and those ahead of the steps; one alone without workers) and
 * a sampler for each worker. */
static gnnc_status make_slots(gnnc_trainer *t, RtBatches *b, const RtAlloc *from, int n_workers) {
    int64_t ahead = t->program->sampling.prefetch;
    RtPool *pool = &t->rt.pool;
    gnnc_status st = GNNC_OK;
    b->n_slots = n_workers ? n_workers + (ahead < 1 ? 1 : ahead > 64 ? 64 : (int)ahead) : 1;
    b->n_slots += t->pulls != NULL; /* of the next turn, beside the step's own */
    b->slot = RT_NEWN(pool, RtMinibatch, b->n_slots);
    b->sampler = RT_NEWN(pool, RtSampler *, n_workers ? n_workers : 1);
    if (b->source.spec.temporal) b->time = RT_NEWN(pool, double, b->n_slots * b->batch);
    if (!b->slot || !b->sampler || (b->source.spec.temporal && !b->time)) return nomem(t);
    for (int i = 0; i < (n_workers ? n_workers : 1) && b->draws; i++, b->n_samplers++)
        TRY(st, rt_sampler_new(&b->sampler[i], from, &b->source.graph, &b->source.spec, NULL,
                               count_members(t, n_workers), &t->rt.err));
    for (int i = 0; i < b->n_slots; i++) {
        RtBatch *batch = NULL;
        if (b->draws) TRY(st, rt_sampler_batch(b->sampler[0], &batch, &t->rt.err));
        TRY(st, rt_minibatch_new(pool, from, &t->x, batch, &b->slot[i], &t->rt.err));
    }
out:
    return st;
}

/* Makes room for what an epoch notes: which batches this process makes; of a device, the losses of
 * its steps, then metrics of batches. */
static gnnc_status make_notes(gnnc_trainer *t, RtBatches *b) {
    int64_t n = 0;
    gnnc_status st;
    b->mine = RT_NEWN(&t->rt.pool, int64_t, b->n_batches + 1);
    if (!b->mine) return nomem(t);
    TRY(st, rt_losses_init(t, &b->losses, b->n_batches));
    if (t->links) TRY(st, rt_link_batches_notes(t, b->n_batches, &n));
    st = rt_device_notes(&t->x, b->n_batches + n);
out:
    return st;
}

/* A batch of a part is made by the process that has the part. */
static gnnc_status give_to_owners(gnnc_trainer *t, const RtBatches *b) {
    int32_t *maker = RT_NEWN(&t->rt.pool, int32_t, b->n_batches + 1);
    if (!maker) return nomem(t);
    for (int64_t i = 0; i < b->n_batches; i++)
        maker[i] = rt_dist_owner(b->by_part->part[i], b->by_part->n_parts, t->processes.n);
    rt_shares_give(t, maker, b->n_batches);
    return GNNC_OK;
}

gnnc_status rt_batches_start(gnnc_trainer *t) {
    bool trains = rt_phase_of(t->program, RT_PHASE_TRAIN) != NULL;
    if (trains && !t->program->sampling.batch && t->processes.n) return rt_shares_start(t);
    if (!trains || !t->program->sampling.batch) return GNNC_OK;
    const rt_sampling *s = &t->program->sampling;
    RtBatches *b = t->batches = RT_NEW(&t->rt.pool, RtBatches);
    if (!b) return nomem(t);
    const RtAlloc *from = &t->rt.pool.from;
    b->draws = s->train_links == RT_LINKS_NONE || s->n_hops > 0;
    bool on_device = wants_device(t, b); /* one queue, and so one worker, which waits for it */
    int n_workers = b->n_workers = on_device ? 1 : count_workers(t, b);
    b->epoch = b->first_epoch = b->again = -1;
    RtPipelineSpec spec = {
        .prepare = prepare, .user = t, .n_workers = n_workers, .n_held = t->pulls ? 2 : 1};
    gnnc_status st;
    TRY(st, rt_batch_step_init(&b->step, &t->x, t, RT_PHASE_TRAIN));
    if (s->train_links != RT_LINKS_NONE) TRY(st, rt_link_batches_start(t));
    if (b->draws) TRY(st, rt_batch_source_make(t, &b->source));
    if (b->draws && t->links)
        TRY(st, rt_link_batches_set_sampler(t, &b->source.graph, &b->source.spec, &b->source.map,
                                            count_members(t, 0)));
    TRY(st, keep_hot_rows(t, b));
    if (t->pulls) TRY(st, rt_pulls_keep(t, &b->source.graph));
    TRY(st, make_seeds(t, b));
    TRY(st, rt_row_batches_start(t, &b->source.graph, &b->source.spec, &b->source.map, b->type,
                                 b->batch, count_members(t, 0)));
    TRY(st, make_slots(t, b, from, n_workers));
    if (on_device) TRY(st, make_device_samplers(t, b));
    TRY(st, make_notes(t, b));
    spec.n_slots = b->n_slots;
    TRY(st, rt_pipeline_start(&b->pipeline, from, &spec, &t->rt.err));
    if (t->processes.n) TRY(st, rt_shares_start(t));
    if (t->shares && b->by_part) st = give_to_owners(t, b);
out:
    return st;
}

/* Stops the workers and releases all of the batches. */
void rt_batches_stop(gnnc_trainer *t) {
    RtBatches *b = t->batches;
    if (b) rt_pipeline_stop(b->pipeline); /* workers read what goes below */
    rt_shares_stop(t);
    rt_pulls_close(t);
    rt_link_batches_stop(t);
    rt_row_batches_stop(t);
    if (!b) return;
    for (int i = 0; i < b->n_slots && b->slot; i++) rt_minibatch_free(&b->slot[i]);
    for (int i = 0; i < b->n_samplers; i++) rt_sampler_free(b->sampler[i]);
    rt_drawer_close(&b->drawer);
    rt_batch_step_free(&b->step);
    t->batches = NULL;
}

/* ---- room -------- */
/* Gives each slot room for what any slot has had. No memory is no failure here: slots grow when
 * they need it. */
static void even_out(RtBatches *b) {
    gnnc_status st = GNNC_OK;
    rt_pipeline_begin(b->pipeline, 0, 0);
    for (int i = 0; i < b->n_slots; i++) rt_recycle_reset(&b->slot[i].memory);
    rt_recycle_reset(&b->step.tables);
    for (int i = 0; i < b->n_slots; i++)
        for (int k = 0; k < b->n_slots && st == GNNC_OK; k++)
            if (i != k) st = rt_minibatch_reserve(&b->slot[i], &b->slot[k], NULL);
}

/* Every slot makes the largest batches there may be, so that later ones allocate nothing. Nobody
 * reads them. */
static gnnc_status warm_up_with_largest(gnnc_trainer *t, RtBatches *b) {
    RtError *err = &t->rt.err;
    RtHeavy heavy = {
        .g = &b->source.graph, .spec = &b->source.spec, .type = b->type, .parts = &b->parts};
    if (t->links) heavy.links = rt_link_batches_ends(t, &b->source.map, heavy.end_type);
    gnnc_status st = GNNC_OK;
    for (int way = 0; way < rt_heavy_ways(&heavy); way++) {
        RtSampleAt at = {(uint64_t)t->options.seed, UINT64_MAX, (uint64_t)way}; /* no epoch's */
        TRY(st, rt_heaviest_seeds(&heavy, way, b->seed, b->n_seeds, b->batch, b->order,
                                  &t->rt.pool.from, err));
        for (int i = 0; i < b->n_slots; i++) {
            TRY(st, fill(t, i % b->n_samplers, &at, b->order, b->batch, i, err));
            TRY(st, rt_batch_step_reserve(&b->step, &b->slot[i].x, b->epoch == b->first_epoch));
        }
    }
out:
    return st;
}

/* Puts the seeds in the order of an epoch. */
static void order_seeds(RtBatches *b, uint64_t seed, uint64_t epoch) {
    memcpy(b->order, b->seed, (size_t)b->n_seeds * sizeof *b->order);
    if (b->by_part)
        rt_part_seeds_shuffle(b->by_part, seed, epoch, b->order);
    else
        rt_sample_shuffle(seed, epoch, b->order, b->n_seeds);
}

/* Draws some batches of no epoch, whose sizes tell a device which ones to round up to.  They follow
 * from the data and how batches are drawn (of clusters, from the seed that cuts them), not from
 * what was trained: each run, resumed or not, and each process rounds a batch alike.  Nobody reads
 * what they bind. */
static gnnc_status limit_sizes(gnnc_trainer *t, RtBatches *b) {
    enum { SOME = 8, SEED = 0 };
    const rt_program *p = t->program;
    gnnc_status st = GNNC_OK;
    if (!t->rt.device || !t->rt.device->batch.wanted) return st;
    int64_t *most = RT_NEWN(&t->rt.pool, int64_t, p->n_syms);
    if (!most) return nomem(t);
    order_seeds(b, SEED, UINT64_MAX);
    const int64_t some = b->n_batches < SOME ? b->n_batches : SOME;
    for (int64_t k = 0, n; k < some; k++) {
        const int64_t i = k * b->n_batches / some; /* of seeds by part the parts' own places */
        RtSampleAt at = {SEED, UINT64_MAX, (uint64_t)i};
        int64_t from = seeds_of(b, i, &n);
        TRY(st, fill(t, 0, &at, b->order + from, n, 0, &t->rt.err));
        for (int s = 0; s < p->n_syms; s++)
            if (b->slot[0].x.n[s] > most[s]) most[s] = b->slot[0].x.n[s];
    }
    st = rt_batch_step_limit(&b->step, most);
out:
    rt_pool_drop(&t->rt.pool, most);
    return st;
}

/* Draws the batches with most edges before training, so that memory has its size. They may need
 * more than there is, though no batch of an epoch does: then training finds that out. */
static gnnc_status warm_up(gnnc_trainer *t, RtBatches *b) {
    gnnc_status st = GNNC_OK;
    if (b->draws) { /* batches of the whole graph are alike */
        TRY(st, make_parts(t, b));
        st = warm_up_with_largest(t, b);
        if (st == GNNC_E_NOMEM || st == GNNC_E_LIMIT) t->rt.err.text[0] = '\0', st = GNNC_OK;
        if (st != GNNC_OK) goto out;
    }
    TRY(st, limit_sizes(t, b));
    if (b->draws) even_out(b);
    b->warm = true;
out:
    return st;
}

static void begin_run(gnnc_trainer *t, RtBatches *b, int64_t epoch, int64_t first) {
    int64_t n = 0;
    if (t->pulls) rt_pulls_wait(t);       /* what came is nobody's; why it did not is told later */
    rt_pipeline_begin(b->pipeline, 0, 0); /* nobody reads the order any more */
    if (b->first_epoch < 0) b->first_epoch = epoch;
    order_seeds(b, (uint64_t)t->options.seed, (uint64_t)epoch);
    b->epoch = epoch;
    b->next = b->turn = first;
    b->ahead = false;
    b->again = -1;
    for (int64_t i = first; i < b->n_batches; i++)
        if (rt_shares_mine(t, epoch * b->n_batches + i)) b->mine[n++] = i;
    rt_losses_begin(&b->losses, first);
    rt_pipeline_begin(b->pipeline, 0, n);
}

gnnc_status rt_batches_settle(gnnc_trainer *t) {
    return t->batches ? rt_losses_settle(t, &t->batches->losses) : GNNC_OK;
}

void rt_batches_forget(gnnc_trainer *t) {
    RtBatches *b = t->batches;
    rt_shares_forget(t);
    if (!b) return;
    if (t->pulls) rt_pulls_wait(t);
    rt_pipeline_begin(b->pipeline, 0, 0);
    b->next = b->again = -1;
    rt_losses_begin(&b->losses, 0);
    if (t->program->sampling.seeds == RT_SEEDS_CLUSTERS) b->warm = false; /* cut by the seed */
}

/* ---- the step -------- */
/* The slot of the next batch that this process makes. */
static gnnc_status take(gnnc_trainer *t, int *slot) {
    int64_t index;
    return rt_pipeline_next(t->batches->pipeline, &index, slot, &t->rt.err);
}

/* The end of the turn that begins with a batch: those that processes make at the same time.  Those
 * of another epoch are in no turn of this one. */
static int64_t end_of_turn(const gnnc_trainer *t, int64_t batch) {
    const RtBatches *b = t->batches;
    int64_t first = b->epoch * b->n_batches, end = rt_shares_turn(t, first + batch) - first;
    return end < b->n_batches ? end : b->n_batches;
}

/* Takes the batch that this process makes in a turn; slot -1: it makes none. */
static gnnc_status take_of_turn(gnnc_trainer *t, int64_t from, int64_t end, int *slot) {
    const RtBatches *b = t->batches;
    *slot = -1;
    while (from < end && !rt_shares_mine(t, b->epoch * b->n_batches + from)) from++;
    return from < end ? take(t, slot) : GNNC_OK;
}

static RtMinibatch *in_slot(const RtBatches *b, int slot) {
    return slot < 0 ? NULL : &b->slot[slot];
}

/* At a turn's first step, in all processes: the rows of its batch come, if they did not yet, and
 * those of the next turn's are asked for, if the epoch has one. */
static gnnc_status begin_turn(gnnc_trainer *t, RtBatches *b, int64_t batch) {
    gnnc_status st;
    int64_t first = b->epoch * b->n_batches;
    bool here = b->ahead;
    b->again = -1; /* where it fails, slots are given out anew */
    b->turn = end_of_turn(t, batch);
    if (here) {
        TRY(st, rt_pulls_wait(t));
        b->held = b->next_held;
    } else {
        TRY(st, take_of_turn(t, batch, b->turn, &b->held));
    }
    if (!here || !rt_pulls_came(t))
        TRY(st, rt_pulls_batch(t, in_slot(b, b->held), RT_PULL_TRAIN, first + batch));
    b->ahead = b->turn < b->n_batches;
    if (!b->ahead) goto out;
    TRY(st, take_of_turn(t, b->turn, end_of_turn(t, b->turn), &b->next_held));
    st = rt_pulls_start(t, in_slot(b, b->next_held), RT_PULL_TRAIN, first + b->turn);
out:
    return st;
}

gnnc_status rt_batches_run(gnnc_trainer *t) {
    RtBatches *b = t->batches;
    int64_t per_epoch = rt_batches_per_epoch(t);
    int64_t epoch = t->progress.step / per_epoch, batch = t->progress.step % per_epoch;
    bool mine = rt_shares_mine(t, t->progress.step);
    gnnc_status st = GNNC_OK;
    if (rt_shares_update_is_due(t)) goto update; /* it failed */
    b->gave = false;
    if (t->links) TRY(st, rt_link_batches_check_train(t));
    if (!b->warm) TRY(st, warm_up(t, b));
    if (b->epoch != epoch || (b->next != batch && b->again != batch)) begin_run(t, b, epoch, batch);
    b->next = -1; /* a failed run begins anew */
    if (t->pulls) b->again = batch;
    if (!t->pulls && mine) TRY(st, take(t, &b->held));
    if (t->shares) TRY(st, rt_shares_begin(t));
    if (t->pulls && batch >= b->turn) {
        TRY(st, begin_turn(t, b, batch));
        b->again = batch;
    }
    if (mine) TRY(st, rt_batch_step_run(&b->step, &b->slot[b->held], epoch == b->first_epoch));
    if (t->shares)
        TRY(st, rt_shares_end(t, batch, b->n_learned[batch]));
    else
        TRY(st, rt_losses_add(t, &b->losses, batch, b->n_learned[batch]));
    b->next = batch + 1;
    b->again = -1;
    b->gave = mine;
    if (epoch == b->first_epoch && b->next == b->n_batches) even_out(b);
update:
    if (rt_shares_update_is_due(t)) st = rt_shares_update(t);
out:
    if (st != GNNC_OK && t->shares) rt_shares_undo(t);
    if (st != GNNC_OK) rt_batches_settle(t); /* it may be that steps go on */
    return st;
}

/* ---- what others ask -------- */
RtExec *rt_batches_last(const gnnc_trainer *t) {
    RtBatches *b = t->batches;
    return b && b->gave ? &b->slot[b->held].x : NULL;
}

int64_t rt_batches_per_epoch(const gnnc_trainer *t) {
    int64_t n = t->batches ? t->batches->n_batches : 1;
    return n ? n : 1; /* one that cannot be */
}

const int64_t *rt_phase_sizes(const gnnc_trainer *t, const rt_phase *ph) {
    const RtBatches *b = t->batches;
    const int64_t *links = t->links ? rt_link_batches_sizes(t, ph) : NULL;
    if (links) return links;
    const int64_t *rows = rt_row_batches_sizes(t, ph);
    if (rows) return rows;
    return b && b->step.most && ph == &t->program->phases[b->step.phase] ? b->step.most : t->x.n;
}

/* What decides which batches there are, as contract.def has it. */
enum {
    OF_ALL = 0,
    OF_NONE = 0,
    OF_LINKS = 1 << 0,
    OF_DRAWN = 1 << 1,
    OF_CLUSTERS = OF_DRAWN,
    OF_DRAWN_LINKS = OF_DRAWN | OF_LINKS,
    OF_SPEED = 1 << 2, /* nothing */
};
static const struct {
    const char *word;
    enum { A_BOOL, A_INT, A_ENUM } kind;
    size_t offset;
    const RtWords *words;
    unsigned of;
} SETTINGS[] = {
#define SAMPLING(kind, name, word, first, of)                                                      \
    {word, A_##kind, offsetof(rt_sampling, name), NULL, OF_##of},
#define SAMPLING_ENUM(type, rt_type, name, word, first, of)                                        \
    {word, A_ENUM, offsetof(rt_sampling, name), &rt_type##_words, OF_##of},
#include "runtime/contract.def"
};

const char *rt_batches_text(gnnc_trainer *t, RtPool *pool) {
    rt_sampling s = t->program->sampling;
    const RtBatches *b = t->batches;
    const unsigned has = (t->links ? OF_LINKS : 0) | (b->draws ? OF_DRAWN : 0);
    s.batch = b->by_part ? b->by_part->batch : b->batch; /* the option may be another */
    char *text = rt_pool_printf(pool, "seeds=%s", rt_seeds_words.word[s.seeds]);
    for (size_t i = 0; text && i < sizeof SETTINGS / sizeof *SETTINGS; i++) {
        const void *at = (const char *)&s + SETTINGS[i].offset;
        if (SETTINGS[i].of & ~has) continue;
        text = rt_pool_printf(pool, "%s %s=", text, SETTINGS[i].word);
        if (text && SETTINGS[i].kind == A_ENUM)
            text = rt_pool_printf(pool, "%s%s", text, SETTINGS[i].words->word[*(const int *)at]);
        else if (text)
            text = rt_pool_printf(pool, "%s%" PRId64, text,
                                  SETTINGS[i].kind == A_INT ? *(const int64_t *)at
                                                            : *(const bool *)at);
    }
    if (text && b->by_part) text = rt_pool_printf(pool, "%s parts=%d", text, b->by_part->n_parts);
    if (!text || !b->draws) return text;
    text = rt_pool_printf(pool, "%s fanout=", text);
    for (int i = 0; text && i < s.n_hops * b->source.map.n_rels; i++)
        text = rt_pool_printf(pool, "%s%s%d", text, i ? "," : "", b->source.spec.fanout[i]);
    return text;
}

gnnc_status gnnc_trainer_pipeline(gnnc_trainer *t, gnnc_pipeline *out) {
    RT_NOT_NULL(t, out);
    rt_trainer_begin(t);
    gnnc_status st = RT_STRUCT_CHECK(&t->rt.err, gnnc_pipeline, out, step_wait_s);
    if (st == GNNC_OK) st = rt_trainer_need_data(t);
    if (st != GNNC_OK) return st;
    if (!t->batches)
        return rt_fail(&t->rt.err, GNNC_E_STATE, "the model is not trained by batches");
    RtPipelineStats s = rt_pipeline_stats(t->batches->pipeline);
    gnnc_pipeline own = {.batches = s.n_items,
                         .workers = t->batches->n_workers,
                         .prepare_s = 1e-9 * (double)s.prepare_ns,
                         .worker_wait_s = 1e-9 * (double)s.producer_ns,
                         .step_wait_s = 1e-9 * (double)s.consumer_ns};
    rt_struct_copy_out(out, &own, sizeof own);
    return GNNC_OK;
}

int64_t gnnc_trainer_steps_left(const gnnc_trainer *t) {
    if (!t) return 0;
    int64_t n = rt_batches_per_epoch(t);
    return t->stepped ? 0 : n - t->progress.step % n;
}

int64_t gnnc_trainer_steps_done(const gnnc_trainer *t) {
    if (!t) return 0;
    int64_t n = rt_batches_per_epoch(t);
    return t->stepped ? n : t->progress.step % n;
}

gnnc_status rt_trainer_set_serial_steps(gnnc_trainer *t) {
    int64_t ns = t->options.serial_ns < 0 ? RT_SERIAL_NS : t->options.serial_ns;
    gnnc_status st = rt_serial_steps_set(&t->x, ns);
    for (int i = 0; i < t->program->n_phases && st == GNNC_OK; i++) {
        const rt_phase *ph = &t->program->phases[i];
        const int64_t *n = rt_phase_sizes(t, ph);
        if (n != t->x.n) rt_serial_steps_set_phase(&t->x, ph, n, ns);
    }
    return st;
}
