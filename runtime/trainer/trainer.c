/* A trainer's life: create, options, load, destroy.  The order of load is the order in
 * which a mistake is cheapest to find: schema, sizes, memory, then the work. */
#include "trainer.h"

#include <limits.h>
#include <math.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/bind/bind.h"
#include "checkpoint.h"
#include "runtime/model/codes.h"
#include "runtime/device/device_maps.h"
#include "runtime/device/device_pinned.h"
#include "runtime/device/device_rows.h"
#include "runtime/device/device_spmm.h"
#include "runtime/gemm/gemm_pieces.h"
#include "runtime/graph/graph.h"
#include "runtime/index_file.h"
#include "init.h"
#include "model_options.h"
#include "runtime/model/training_metadata.h"
#include "runtime/exec/beside.h"
#include "runtime/exec/profile.h"
#include "splits.h"
#include "runtime/device/device_sample.h"
#include "runtime/batch/pull.h"
#include "runtime/batch/row_batches.h"
#include "runtime/batch/train_batches.h"
#include "runtime/batch/train_peers.h"
#include "runtime/batch/train_shares.h"
#include "tuned.h"
#include "runtime/variant.h"
#include "runtime/exec/machine.h"

const char *gnnc_version(void) {
    return GNNC_VERSION;
}

/* The trainer's pools ask here, so that allocations are counted. */
typedef struct {
    _Alignas(max_align_t) size_t n_bytes;
} Counted;

/* Allocates by the caller's allocator and counts blocks and bytes, for counters and the peak.
 * Workers allocate, too, so it takes a lock. */
static void *counted_alloc(void *user, size_t n_bytes) {
    gnnc_trainer *t = user;
    gnnc_counters *c = &t->rt.count;
    if (n_bytes > SIZE_MAX / 2) return NULL;
    pthread_mutex_lock(&t->counting);
    Counted *block = t->outer.alloc(t->outer.user, sizeof *block + n_bytes);
    if (block) {
        c->allocations++;
        c->allocated_bytes += (int64_t)n_bytes;
        c->live_bytes += (int64_t)n_bytes;
        if (c->live_bytes > c->peak_bytes) c->peak_bytes = c->live_bytes;
        block->n_bytes = n_bytes;
    }
    pthread_mutex_unlock(&t->counting);
    return block ? block + 1 : NULL;
}

/* Releases a block of counted_alloc(). */
static void counted_release(void *user, void *block) {
    gnnc_trainer *t = user;
    Counted *b = (Counted *)block - 1;
    pthread_mutex_lock(&t->counting);
    t->rt.count.live_bytes -= (int64_t)b->n_bytes;
    t->outer.release(t->outer.user, b);
    pthread_mutex_unlock(&t->counting);
}

/* Makes the trainer's tables, and lists the variables that callers see: parameters, then states. */
static gnnc_status create_tables(gnnc_trainer *t) {
    const rt_program *p = t->program;
    t->x.n = RT_NEWN(&t->rt.pool, int64_t, p->n_syms);
    t->x.buf = RT_NEWN(&t->rt.pool, void *, p->n_bufs);
    t->shown = RT_NEWN(&t->rt.pool, int, p->n_vars);
    if (!t->x.n || !t->x.buf || !t->shown) return GNNC_E_NOMEM;
    rt_var_kind order[2] = {RT_VAR_PARAM, RT_VAR_STATE};
    for (int k = 0; k < 2; k++)
        for (int v = 0; v < p->n_vars; v++)
            if (p->vars[v].kind == order[k] && p->vars[v].buf >= 0) t->shown[t->n_shown++] = v;
    return t->training ? t->training->init_scalars(t) : GNNC_OK;
}

gnnc_status rt_trainer_new(gnnc_trainer **out, const gnnc_program *model, const RtAlloc *from,
                           const RtTraining *training) {
    *out = NULL;
    if (model->version != RT_PROGRAM_VERSION) return GNNC_E_ARG;
    gnnc_trainer *t = from->alloc(from->user, sizeof *t);
    if (!t) return GNNC_E_NOMEM;
    t->training = training;
    t->program = t->first_program = model->tables;
    t->outer = *from;
    pthread_mutex_init(&t->counting, NULL);
    rt_pool_init(&t->rt.pool, &(RtAlloc){counted_alloc, counted_release, t});
    t->x = (RtExec){.program = model->tables, .threads = 1, .rt = &t->rt};
    t->last_phase = t->keep = t->preferred = -1;
    atomic_init(&t->stop, 0);
    atomic_init(&t->n_holders, 1);
    t->options = t->standard = rt_options_of(t->program);
    gnnc_status st = create_tables(t);
    if (st == GNNC_OK) st = rt_model_options_new(t);
    if (st == GNNC_OK)
        *out = t;
    else
        gnnc_trainer_destroy(t);
    return st;
}

/* ---- what training wants besides ------------------------------------------------------- */
/* Uses what was tuned where the user chose nothing. */
static void use_tuned(gnnc_trainer *t, const char *directory) {
    RtOptions *o = &t->options;
    RtChoice c;
    if (!o->tuned || !directory || !rt_tuned_find(t, directory, &c)) return;
    if (c.variant < t->program->n_variants) t->preferred = c.variant;
    if (o->threads || o->serial_ns >= 0) return;
    o->threads = c.threads;
    o->serial_ns = c.serial_ns;
}

static gnnc_status reserve_history(gnnc_trainer *t) {
    return rt_history_reserve(t, 0, t->options.epochs);
}

/* Makes room for the parameters of the epoch that is kept, if one is. */
static gnnc_status reserve_best(gnnc_trainer *t) {
    if (t->keep < 0) return GNNC_OK;
    for (int i = 0; i < t->n_shown; i++) t->best_bytes += rt_var_bytes(t, t->shown[i]);
    t->best = rt_pool_alloc(&t->rt.pool, t->best_bytes, 1);
    if (!t->best) return rt_fail_nomem(&t->rt.err, "the kept parameters");
    return rt_device_keep(&t->x, t->best_bytes);
}

static gnnc_status open_index_file(gnnc_trainer *t) {
    return rt_index_file_open(&t->x, t->snapshot->data, t->options.map != 0, &t->file);
}

static const RtTraining TRAINING = {.start_batches = rt_batches_start,
                                    .stop_batches = rt_batches_stop,
                                    .device_sampler_lacks = rt_device_sampler_lacks,
                                    .resume = rt_checkpoint_resume,
                                    .bind_at = rt_bind_at,
                                    .init_scalars = rt_scalars_init,
                                    .use_tuned = use_tuned,
                                    .reserve_history = reserve_history,
                                    .limit_judged = rt_row_batches_limit_judged,
                                    .reserve_best = reserve_best,
                                    .restart_profile = rt_profile_restart,
                                    .agree = rt_processes_agree,
                                    .meet = rt_peers_meet_rows,
                                    .follow_first = rt_processes_follow_first,
                                    .open_index_file = open_index_file,
                                    .open_pulls = rt_pulls_open,
                                    .run_whole = rt_pulls_run_whole};

gnnc_status gnnc_trainer_create_with(gnnc_trainer **out, const gnnc_program *model,
                                     gnnc_alloc_fn *alloc, gnnc_release_fn *release, void *user) {
    if (out) *out = NULL;
    if (!out || !model || !alloc || !release) return GNNC_E_ARG;
    return rt_trainer_new(out, model, &(RtAlloc){alloc, release, user}, &TRAINING);
}

gnnc_status gnnc_trainer_create(gnnc_trainer **out, const gnnc_program *model) {
    RtAlloc a = rt_alloc_default();
    return gnnc_trainer_create_with(out, model, a.alloc, a.release, a.user);
}

void gnnc_trainer_destroy(gnnc_trainer *t) {
    if (!t || atomic_fetch_sub(&t->n_holders, 1) > 1) return;
    RtAlloc outer = t->outer;
    if (t->rt.device) t->rt.device->ops->enter(t->rt.device);
    if (t->training) t->training->stop_batches(t);
    rt_beside_close(&t->x);
    rt_team_stop(t->rt.team);
    if (t->rt.device) rt_device_rows_close(t->rt.device);
    if (t->rt.device) rt_device_pinned_close(t->rt.device);
    rt_device_close(&t->x);
    rt_bind_close(&t->x);
    if (t->graph) rt_graph_leave(t->graph, t->snapshot);
    gnnc_graph_release(t->graph);
    rt_weights_file_close(t->given);
    rt_pool_free(&t->rt.pool);
    pthread_mutex_destroy(&t->counting);
    outer.release(outer.user, t);
}

const char *gnnc_trainer_error(const gnnc_trainer *t) {
    return t ? t->rt.err.text : "";
}

const char *gnnc_trainer_device(const gnnc_trainer *t) {
    if (!t) return "";
    return t->rt.device ? t->rt.device->ops->name : "cpu";
}

gnnc_status gnnc_trainer_set_stream(gnnc_trainer *t, void *stream) {
    RT_NOT_NULL(t, t);
    rt_trainer_begin(t);
    rt_device_order(&t->rt, stream);
    return GNNC_OK;
}

gnnc_status gnnc_trainer_set_message(gnnc_trainer *t, gnnc_message_fn *fn, void *user) {
    RT_NOT_NULL(t, t);
    rt_trainer_begin(t);
    t->rt.message = fn;
    t->rt.message_user = user;
    return GNNC_OK;
}

/* ---- load -------------------------------------------------------------------- */
/* Begins the schedule of the learning rate, by recipe and options. */
static void start_schedule(gnnc_trainer *t) {
    const rt_recipe *r = &t->program->recipe;
    t->schedule = (RtSchedule){.kind = r->sched,
                               .lr = t->options.lr,
                               .gamma = r->gamma,
                               .min_lr = r->min_lr,
                               .warmup_epochs = r->warmup_epochs,
                               .step_epochs = r->step_epochs,
                               .patience = r->patience,
                               .epochs = t->options.epochs,
                               .larger_is_better = t->keep >= 0 && r->keep_max};
}

/* Has the program relations by conditions, whose edges are known only after @load? */
static bool has_late_relations(const rt_program *p) {
    for (int s = 0; s < p->n_spaces; s++)
        if (p->spaces[s].kind == RT_SP_EDGE && p->spaces[s].rel == RT_REL_WHERE) return true;
    return false;
}

/* Runs @load. Relations by conditions then have their sizes, and working memory is placed anew. */
static gnnc_status run_load_phase(gnnc_trainer *t) {
    const rt_phase *load = rt_phase_of(t->program, RT_PHASE_LOAD);
    rt_write_keys(&t->x, (uint64_t)t->options.seed, 0);
    gnnc_status st = !load         ? GNNC_OK
                     : t->training ? t->training->run_whole(t, load)
                                   : rt_phase_run(&t->x, load);
    if (st != GNNC_OK || !has_late_relations(t->program)) return st;
    st = rt_memory_settle(&t->x, &t->memory, (size_t)t->options.max_memory);
    return st == GNNC_OK ? rt_device_place(&t->x, &t->memory) : st;
}

/* Finds the data's tables and columns that the program reads, and the sizes that they tell. */
static gnnc_status bind_sizes(gnnc_trainer *t) {
    bool asked = !isnan(t->options.asked);
    const RtDataSource data = {.data = t->snapshot->data,
                               .split = t->options.split,
                               .alone = t->graph_alone,
                               .file = t->file,
                               .at = asked ? &t->options.asked : NULL,
                               .put_at = t->training ? t->training->bind_at : t->put_at};
    return rt_bind_sizes(&t->x, &t->memory, &data);
}

/* Nothing is planned yet. */
static RtMemory memory_of(const gnnc_trainer *t) {
    return (RtMemory){.batch = t->options.batch, .fanout = rt_options_fanout(&t->options)};
}

/* Another variant of the program: its tables, and the data bound to them. */
static gnnc_status switch_to(gnnc_trainer *t, const rt_program *p) {
    gnnc_status st;
    rt_bind_close(&t->x);
    t->rt.bound = NULL;
    t->program = t->x.program = p;
    t->n_shown = t->n_scalars = 0;
    t->memory = memory_of(t); /* was planned for other buffers */
    TRY(st, create_tables(t));
    if (t->x.profile) TRY(st, t->training->restart_profile(t));
    st = bind_sizes(t);
out:
    return st;
}

/* Goes over to variant v of the program; refuses it if it surely needs more memory than there
 * is. */
static gnnc_status take_variant(gnnc_trainer *t, int v) {
    const rt_program *p = t->first_program->variants[v];
    t->variant = v;
    gnnc_status st = p == t->program ? GNNC_OK : switch_to(t, p);
    return st == GNNC_OK ? rt_memory_foresee(&t->x, &t->memory, (size_t)t->options.max_memory) : st;
}

/* The one that does what variant v does in f32, where the data are small; else v. */
static int in_f32_if_small(const gnnc_trainer *t, int v) {
    const rt_program *p = t->first_program->variants[v];
    if (!p->in_f32 || t->stays_low) return v;
    double n_bytes = rt_variant_low_bytes(&t->x, &t->memory, v);
    return n_bytes <= (double)p->in_f32_bytes ? p->in_f32 : v;
}

/* The fastest by estimate of those that are compared by it; in f32 where that is to be, which is
 * told. */
static int estimated_best(gnnc_trainer *t, const bool *tried) {
    const rt_program *p = t->first_program;
    int v = rt_variant_best(t->estimate_ms, tried, p->n_variants), f32 = in_f32_if_small(t, v);
    if (f32 == v) return v;
    rt_message(&t->rt,
               "%.1f MiB of values stay f32: 16 bits pay from %.0f MiB on (--variant %d has them)",
               rt_variant_low_bytes(&t->x, &t->memory, v) / (1 << 20),
               (double)p->variants[v]->in_f32_bytes / (1 << 20), v);
    return f32;
}

/* The variants from the preferred one and then the fastest on, until one fits in memory, and a line
 * where one is passed over; nobody else's choice is changed. */
static gnnc_status best_variant(gnnc_trainer *t) {
    bool tried[RT_MAX_VARIANTS] = {false};
    const rt_program *p = t->first_program;
    for (int i = 0; i < p->n_variants; i++) tried[p->variants[i]->in_f32] = true;
    tried[0] = false;
    int first = t->preferred >= 0 ? t->preferred : estimated_best(t, tried);
    gnnc_status st = take_variant(t, first);
    RtError lacks = t->rt.err;
    tried[first] = true;
    while (st == GNNC_E_LIMIT) {
        int v = rt_variant_best(t->estimate_ms, tried, p->n_variants);
        if (v < 0) break;
        tried[v] = true;
        t->rt.err.text[0] = '\0'; /* of the one before, which is too large */
        st = take_variant(t, v);
    }
    if (st == GNNC_OK && t->variant != first)
        rt_message(&t->rt, "variant %d is passed over: %s; variant %d runs: its last bits differ",
                   first, lacks.text, t->variant);
    return st;
}

/* Estimates all variants and takes the best, or the one that the user chose; on a device there is
 * one program. */
static gnnc_status try_variants(gnnc_trainer *t) {
    const rt_program *p = t->program;
    if (p->n_variants < 2 || t->rt.device)
        return rt_memory_foresee(&t->x, &t->memory, (size_t)t->options.max_memory);
    for (int i = 0; i < p->n_variants; i++)
        t->estimate_ms[i] = rt_variant_estimate(&t->x, &t->memory, i);
    if (t->options.variant < 0) return best_variant(t);
    if (t->options.variant < p->n_variants) return take_variant(t, (int)t->options.variant);
    return rt_fail(&t->rt.err, GNNC_E_RANGE, "variant %lld: the program has 0 to %d",
                   (long long)t->options.variant, p->n_variants - 1);
}

/* One that fits in memory, however slow, before one whose working memory lies in a file. */
static gnnc_status choose_alone(gnnc_trainer *t) {
    gnnc_status st = try_variants(t);
    if (!t->options.spill || t->rt.device) return st;
    t->rt.spill = true;
    if (st != GNNC_E_LIMIT) return st;
    t->rt.err.text[0] = '\0';
    return try_variants(t);
}

/* Chooses, and tells the other processes; -1 = that failed, so that none waits for this one. */
static gnnc_status choose_for_all(gnnc_trainer *t) {
    gnnc_status st = choose_alone(t);
    int64_t chosen = st == GNNC_OK ? t->variant : -1;
    gnnc_status sent = t->training->follow_first(t, &chosen);
    return st == GNNC_OK ? sent : st;
}

/* Takes the variant of the first process.  One that this program lacks is of another program, which
 * is said when all agree. */
static gnnc_status choose_as_first(gnnc_trainer *t) {
    int64_t chosen = 0;
    gnnc_status st = t->training->follow_first(t, &chosen);
    if (st == GNNC_OK && chosen < 0)
        st = rt_fail(&t->rt.err, GNNC_E_STATE, "rank 0 cannot run the program: its error says why");
    if (st != GNNC_OK) return st;
    bool has = chosen < t->first_program->n_variants;
    if (has && !t->options.set[RT_OPTION_variant]) t->options.variant = chosen;
    return choose_alone(t);
}

/* Processes of one model run the variant that the first of them chose: memory and what was tuned
 * differ between machines.  One that was told another is refused when all agree.  All make this
 * call, however many variants they have: their programs may differ. */
static gnnc_status choose_variant(gnnc_trainer *t) {
    if (t->processes.n < 2 || !t->training) return choose_alone(t);
    return t->processes.rank == 0 ? choose_for_all(t) : choose_as_first(t);
}

/* Opens a directory as a graph that nobody else reads; of a graph there is a snapshot already. */
static gnnc_status open_graph(gnnc_trainer *t, const char *directory) {
    t->graph_alone = !t->graph;
    if (!t->graph_alone) return GNNC_OK;
    bool keeps = t->training && !t->rt.device && isnan(t->options.asked);
    const gnnc_processes *p = &t->processes;
    RtShare share = t->options.pull_rows && t->training ? (RtShare){p->rank, p->n} : (RtShare){0};
    gnnc_status st = rt_graph_open(&t->rt.pool.from, directory, t->options.map != 0,
                                   keeps ? t->options.cache : 0, share, &t->graph, &t->rt.err);
    if (st != GNNC_OK) return st;
    t->snapshot = rt_graph_enter(t->graph);
    return keeps && t->options.cache ? t->training->open_index_file(t) : GNNC_OK;
}

/* Opens the device that the options name, and says who gathers, samples and builds maps there. */
static gnnc_status open_device(gnnc_trainer *t) {
    const RtOptions *o = &t->options;
    gnnc_status st;
    TRY(st, rt_device_open(&t->x, o->where, o->ordinal, o->tf32 != 0));
    if (o->buckets && t->training) rt_device_want_buckets(&t->x, o->set[RT_OPTION_buckets]);
    TRY(st, rt_device_follow(&t->x));
    if (!t->rt.device) goto out;
    t->rt.device->gathers = o->device_features && t->program->device_gather;
    t->rt.device->pins = o->device_features == 2 && t->program->device_gather;
    t->rt.device->groups = o->group_products != 0;
    t->rt.device->samples =
        o->device_sampler && t->training && !t->training->device_sampler_lacks(t->program);
    if (o->device_maps && !t->program->by_parts) /* processes look up here which rows they share */
        st = rt_device_maps_open(&t->x, o->check_maps != 0);
out:
    return st;
}

/* Makes a trainer ready for its data: device, sizes, variant, arrays, memory, @load, first values,
 * batches. Each step needs those before it. */
static gnnc_status prepare(gnnc_trainer *t, const char *directory) {
    gnnc_status st;
    t->memory = memory_of(t);
    t->rt.fanout = rt_options_fanout(&t->options);
    t->rt.by_signal = t->options.signals != 0;
    t->rt.together = t->processes.n > 1;
    t->rt.local_rank = t->processes.local_rank;
    t->rt.n_local = t->rt.together ? t->processes.n_local : 0;
    TRY(st, open_device(t));
    TRY(st, open_graph(t, directory));
    TRY(st, bind_sizes(t));
    if (t->options.labels) TRY(st, rt_bind_require_labels(&t->x));
    TRY(st, rt_bind_check_times(&t->x, t->options.check_times != 0));
    TRY(st, choose_variant(t));
    TRY(st,
        rt_dist_open(&t->x, &t->processes, t->options.reduce_fast != 0, t->options.stale_halos));
    if (t->training) TRY(st, t->training->open_pulls(t));
    rt_splits_count(t);
    TRY(st, rt_bind_arrays(&t->x));
    if (rt_dist_several(&t->x) && t->training) {
        TRY(st, t->training->agree(t, false));
        TRY(st, t->training->meet(t));
    }
    if (t->training) TRY(st, t->training->reserve_history(t));
    if (t->training) TRY(st, t->training->limit_judged(t));
    TRY(st, rt_memory_plan(&t->x, &t->memory, (size_t)t->options.max_memory));
    TRY(st, rt_memory_alloc(&t->x, &t->memory));
    TRY(st, rt_device_pin_columns(t));
    TRY(st, rt_device_place(&t->x, &t->memory));
    TRY(st, rt_model_options_bound(t));
    TRY(st, rt_trainer_set_serial_steps(t));
    TRY(st, run_load_phase(t));
    TRY(st,
        rt_trainer_set_serial_steps(t)); /* relations made in the load phase have their sizes now */
    for (int v = 0; v < t->program->n_vars; v++)
        if (!rt_memory_is_borrowed(&t->x, t->program->vars[v].buf))
            rt_init_var(&t->x, v, (uint64_t)t->options.seed);
    rt_push_vars(&t->x);
    if (t->training) TRY(st, t->training->start_batches(t));
    if (t->training) TRY(st, t->training->reserve_best(t));
    st = rt_device_spmm_open(&t->x);
out:
    if (st != GNNC_OK && t->rt.device) t->rt.device->rows.lost = true;
    return st;
}

/* Starts the threads; by default as many as there are cores for this process. */
static gnnc_status start_team(gnnc_trainer *t) {
    int cores = rt_usable_cores();
    if (!t->options.threads) t->options.threads = cores;
    t->x.threads = (int)t->options.threads;
    return rt_team_start(&t->rt.team, &t->rt.pool.from, t->x.threads, cores, &t->rt.err);
}

gnnc_status rt_trainer_share(gnnc_trainer *t, int64_t threads, int64_t serial_ns) {
    rt_team_stop(t->rt.team);
    t->rt.team = NULL;
    t->options.threads = threads;
    t->options.serial_ns = serial_ns;
    gnnc_status st = start_team(t);
    return st == GNNC_OK ? rt_trainer_set_serial_steps(t) : st;
}

static gnnc_status take_given(gnnc_trainer *t) {
    const RtSource from = {.name = t->given->path, .given = &t->given->f};
    return t->given->resumes ? t->training->resume(t, &from) : rt_weights_load(t, &from);
}

/* Fails if data were loaded, or a load was tried, before. */
static gnnc_status load_once(gnnc_trainer *t) {
    rt_trainer_begin(t);
    if (t->planned)
        return rt_fail(&t->rt.err, GNNC_E_STATE,
                       "load was called before: it is called once per trainer");
    t->planned = true;
    return GNNC_OK;
}

/* What a run goes on from says which variant made it; another adds in another order. */
static void prefer_recorded(gnnc_trainer *t) {
    if (!t->given || !t->given->resumes || t->options.set[RT_OPTION_variant]) return;
    int64_t v = rt_variant_recorded(&t->given->f);
    if (v >= 0 && v < t->program->n_variants) t->preferred = (int)v;
    t->stays_low = v < 0; /* as a device's, and those from before there were variants in f32 */
    if (t->stays_low && rt_variant_is_in_f32(t->program, t->preferred)) t->preferred = -1;
}

/* Loads t->graph, or, where that is NULL, the directory; which may be NULL else. */
static gnnc_status load(gnnc_trainer *t, const char *directory) {
    /* AMX is asked for by every trainer: results do not depend on who ran in this process before.
     */
    t->rt.products16 = rt_products_16(t->options.amx);
    bool amx = t->rt.products16 == RT_BY_TILE_REGISTERS;
    /* Pieces pay in large products alone, and round otherwise: a row would be predicted by itself
     * in other bits than among many, so what serves sessions does without. */
    t->rt.amx = amx && t->training && rt_pieces_available();
    if (t->training) t->training->use_tuned(t, directory);
    prefer_recorded(t);
    start_schedule(t);
    gnnc_status st = rt_model_options_take(t);
    if (st == GNNC_OK) st = start_team(t);
    if (st == GNNC_OK) st = prepare(t, directory);
    t->loaded = st == GNNC_OK;
    t->options.variant = t->variant;
    if (t->options.serial_ns < 0) t->options.serial_ns = RT_SERIAL_NS;
    if (st == GNNC_OK && t->given) st = take_given(t);
    rt_weights_file_close(t->given);
    t->loaded = st == GNNC_OK;
    return st;
}

gnnc_status gnnc_trainer_load(gnnc_trainer *t, const char *directory) {
    RT_NOT_NULL(t, directory);
    gnnc_status st = load_once(t);
    return st == GNNC_OK ? load(t, directory) : st;
}

gnnc_status rt_trainer_load_snapshot(gnnc_trainer *t, gnnc_graph *graph, RtSnapshot *s) {
    gnnc_status st = load_once(t);
    if (st != GNNC_OK) {
        rt_graph_leave(graph, s);
        return st;
    }
    gnnc_graph_retain(graph);
    t->graph = graph;
    t->snapshot = s;
    return load(t, graph->data->dir);
}

gnnc_status gnnc_trainer_load_graph(gnnc_trainer *t, gnnc_graph *graph) {
    RT_NOT_NULL(t, graph);
    if (!graph->committed) {
        rt_trainer_begin(t);
        return rt_fail(&t->rt.err, GNNC_E_STATE,
                       "the graph was not committed: gnnc_graph_commit is called before");
    }
    return rt_trainer_load_snapshot(t, graph, rt_graph_enter(graph));
}

gnnc_status gnnc_trainer_memory(gnnc_trainer *t, gnnc_memory *out) {
    RT_NOT_NULL(t, out);
    rt_trainer_begin(t);
    gnnc_status st = RT_STRUCT_CHECK(&t->rt.err, gnnc_memory, out, batch_bytes);
    if (st != GNNC_OK) return st;
    if (!t->planned) return rt_fail(&t->rt.err, GNNC_E_STATE, "no data are loaded");
    rt_struct_copy_out(out, &t->memory.need, sizeof t->memory.need);
    return GNNC_OK;
}

/* Is this a program whose processes exchange rows? */
static gnnc_status may_count_traffic(gnnc_trainer *t, const gnnc_traffic *out) {
    gnnc_status st;
    TRY(st, RT_STRUCT_CHECK(&t->rt.err, gnnc_traffic, out, halo_rows));
    TRY(st, rt_trainer_need_data(t));
    if (!t->rt.dist)
        return rt_fail(&t->rt.err, GNNC_E_STATE,
                       "the program shares no rows: gnnc --mpi or --parts, of a model without "
                       "'sample', makes one that does");
out:
    return st;
}

gnnc_status gnnc_trainer_traffic(gnnc_trainer *t, const char *phase, int n, gnnc_traffic *out) {
    RT_NOT_NULL(t, phase);
    RT_NOT_NULL(t, out);
    rt_trainer_begin(t);
    gnnc_traffic own = {0};
    gnnc_status st;
    TRY(st, may_count_traffic(t, out));
    const rt_phase *ph = rt_phase_find(t->program, phase);
    if (!ph)
        return rt_fail(&t->rt.err, GNNC_E_MISSING, "model '%s' has no phase '%s'", t->program->name,
                       phase);
    TRY(st, rt_dist_traffic(&t->x, (int)(ph - t->program->phases), n, &own));
    rt_struct_copy_out(out, &own, sizeof own);
out:
    return st;
}

gnnc_status gnnc_trainer_step_traffic(gnnc_trainer *t, int i, int n, gnnc_traffic *out) {
    RT_NOT_NULL(t, out);
    rt_trainer_begin(t);
    const rt_program *p = t->program;
    gnnc_traffic own = {0};
    gnnc_status st;
    TRY(st, may_count_traffic(t, out));
    int phase = 0, step = i;
    while (step >= 0 && phase < p->n_phases && step >= p->phases[phase].n_steps)
        step -= p->phases[phase++].n_steps;
    if (step < 0 || phase == p->n_phases) return rt_fail(&t->rt.err, GNNC_E_RANGE, "no step %d", i);
    for (int k = 0; k < p->n_exchanges; k++)
        if (p->exchanges[k].phase == phase && p->exchanges[k].step == step)
            TRY(st, rt_dist_traffic_of(&t->x, k, n, &own));
    rt_struct_copy_out(out, &own, sizeof own);
out:
    return st;
}

gnnc_status gnnc_trainer_counters(gnnc_trainer *t, gnnc_counters *out) {
    RT_NOT_NULL(t, out);
    rt_trainer_begin(t);
    gnnc_status st = RT_STRUCT_CHECK(&t->rt.err, gnnc_counters, out, eval_ns);
    gnnc_counters now = rt_trainer_counters(t);
    if (st == GNNC_OK) rt_struct_copy_out(out, &now, sizeof now);
    return st;
}

gnnc_status gnnc_trainer_wait(gnnc_trainer *t) {
    RT_NOT_NULL(t, t);
    rt_trainer_begin(t);
    return t->rt.device ? t->rt.device->ops->wait(t->rt.device) : GNNC_OK;
}
