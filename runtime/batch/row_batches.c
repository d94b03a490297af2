#include "row_batches.h"

#include <stdlib.h>
#include <string.h>

#include "batch_step.h"
#include "draw.h"
#include "eval_shares.h"
#include "pull.h"
#include "runtime/device/device.h"
#include "runtime/memory.h"
#include "train_peers.h"

enum { PREDICT, EMBED, N_STEPS };

typedef struct RtRowBatches {
    const RtSampleGraph *graph;
    const RtBatchMap *map;
    int type;
    int64_t n_rows, batch; /* of the type; of a batch */
    RtSampleSpec spec;     /* neighbours of a row are its own, whatever else is in a batch */
    RtSampler *sampler;
    RtDrawer drawer;
    RtMinibatch rows;
    RtBatchStep step[N_STEPS];
    int32_t *row; /* [n_rows] those that a run is about */
    double *time; /* [batch]; NULL = rows have none */
    int judged;   /* buffer: what "eval" reads of all rows; -1 = nothing */
    void **value; /* [n_bufs] all rows of an output that was asked for; NULL = not yet */
    bool ran;     /* once: there is room */
    RtEvalMessage message;
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

static int ascending(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* The rows of a split that are judged: all, or some, drawn by the data alone, so that runs and
 * epochs compare. */
static int64_t judged_rows(const gnnc_trainer *t, int split, int32_t *out) {
    int64_t n = rt_rows_of_split(t, split, out), most = t->options.eval_rows, kept = 0;
    const int label = t->program->sampling.label;
    const RtColumn *y = label >= 0 ? t->rt.bound->col[label] : NULL;
    if (!most) return n;
    for (int64_t i = 0; i < n; i++) /* those of which nothing is known are judged by nothing */
        if (!y || rt_column_has_label(y, out[i])) out[kept++] = out[i];
    n = kept;
    if (n <= most) return n;
    rt_sample_shuffle(0, (uint64_t)split, out, n);
    qsort(out, (size_t)most, sizeof *out, ascending);
    return most;
}

/* Leaves at most option `eval_rows` of the labelled rows of each split in the trainer's own copy
 * of the split column, which @eval reads; the others are in no split, so that no metric counts
 * them. */
gnnc_status rt_row_batches_limit_judged(gnnc_trainer *t) {
    const rt_sampling *s = &t->program->sampling;
    if (!t->options.eval_rows || s->split < 0) return GNNC_OK;
    int buf = t->program->columns[s->split].buf;
    if (buf < 0) return GNNC_OK;
    int32_t *split = t->x.buf[buf]; /* the trainer's own: it was widened */
    t->rt.bound->judges_some = true;
    int64_t rows = t->rt.bound->col[s->split]->n_rows;
    int32_t *row = RT_NEWN(&t->rt.pool, int32_t, rows + 1);
    if (!row) return rt_fail_nomem(&t->rt.err, "rows that are judged");
    int64_t n[N_SPLITS + 1] = {0};
    for (int k = 1; k <= N_SPLITS; k++) n[k] = n[k - 1] + judged_rows(t, k, row + n[k - 1]);
    memset(split, 0, (size_t)rows * sizeof *split);
    for (int k = 1; k <= N_SPLITS; k++)
        for (int64_t i = n[k - 1]; i < n[k]; i++) split[row[i]] = k;
    rt_pool_drop(&t->rt.pool, row);
    return GNNC_OK;
}

gnnc_status rt_row_batches_start(gnnc_trainer *t, const RtSampleGraph *g, const RtSampleSpec *spec,
                                 const RtBatchMap *map, int type, int64_t batch, int n_members) {
    RtPool *pool = &t->rt.pool;
    RtBatch *sampled;
    gnnc_status st = GNNC_OK;
    if (!rt_predicts_batches(t->program) || t->links) return st;
    RtRowBatches *b = t->rows = RT_NEW(pool, RtRowBatches);
    if (!b) goto no_memory;
    *b = (RtRowBatches){.graph = g, .map = map, .type = type, .batch = batch, .spec = *spec};
    b->spec.how.disjoint = true;
    b->n_rows = g->type[type].n;
    b->row = RT_NEWN(pool, int32_t, b->n_rows + 1);
    bool timed = g->type[type].time != NULL;
    if (timed) b->time = RT_NEWN(pool, double, batch + 1);
    b->value = RT_NEWN(pool, void *, t->program->n_bufs);
    if (!b->row || (timed && !b->time) || !b->value) goto no_memory;
    b->judged = rt_buf_find(t->program, RT_BUF_INPUT, "pred");
    TRY(st, rt_batch_step_init(&b->step[PREDICT], &t->x, t, RT_PHASE_PREDICT));
    TRY(st, rt_batch_step_init(&b->step[EMBED], &t->x, t, RT_PHASE_EMBED));
    TRY(st, rt_sampler_new(&b->sampler, &pool->from, g, &b->spec, NULL, n_members, &t->rt.err));
    TRY(st, rt_sampler_batch(b->sampler, &sampled, &t->rt.err));
    st = rt_minibatch_new(pool, &pool->from, &t->x, sampled, &b->rows, &t->rt.err);
out:
    return st;
no_memory:
    return rt_fail_nomem(&t->rt.err, "batches of rows");
}

gnnc_status rt_row_batches_draw_there(gnnc_trainer *t, const int *space,
                                      const RtDeviceSampler *like) {
    RtRowBatches *b = t->rows;
    if (!b) return GNNC_OK;
    RtDeviceSamplerSpec spec = {.g = b->graph,
                                .space = space,
                                .how = &b->spec,
                                .n_groups = 1,
                                .type = {b->type, b->type},
                                .n_seeds = b->batch,
                                .n_trees = b->batch,
                                .n_slots = 1,
                                .like = like};
    gnnc_status st;
    TRY(st, rt_drawer_try(t, &spec, b->sampler, "batches of rows that are predicted", &b->drawer));
    st = rt_drawer_bind(t, &b->drawer, b->map, "of rows that are predicted", &b->rows, 1);
out:
    return st;
}

/* Releases the sampler and batches by which rows are predicted. */
void rt_row_batches_stop(gnnc_trainer *t) {
    RtRowBatches *b = t->rows;
    if (!b) return;
    rt_minibatch_free(&b->rows);
    rt_sampler_free(b->sampler);
    rt_drawer_close(&b->drawer);
    for (int i = 0; i < N_STEPS; i++) rt_batch_step_free(&b->step[i]);
    t->rows = NULL;
}

/* ---- what a batch gives --------------------------------------------------------------------- */
static bool is_given(const gnnc_trainer *t, int phase, int buf) {
    return t->program->bufs[buf].phase == phase && rt_memory_passes(t->program, buf);
}

/* Bytes of one row of a buffer, with sizes n. */
static size_t row_bytes(const gnnc_trainer *t, const int64_t *n, int buf) {
    int64_t dim[RT_MAX_RANK];
    size_t bytes = (size_t)rt_type_bytes(t->program->bufs[buf].dt);
    t->program->buf_shape(buf, n, dim);
    for (int i = 1; i < t->program->bufs[buf].rank; i++) bytes *= (size_t)dim[i];
    return bytes;
}

/* Puts the predictions of n rows into the input that @eval reads, on the host or the device. */
static gnnc_status judge_later(gnnc_trainer *t, int buf, int64_t from, int64_t n) {
    RtRowBatches *b = t->rows;
    const int32_t *row = b->row + from;
    const RtExec *x = &b->rows.x;
    size_t bytes = row_bytes(t, x->n, buf);
    if (t->rt.device) return rt_device_put_rows(&b->rows.x, buf, b->judged, bytes, b->row, from, n);
    for (int64_t i = 0; i < n; i++)
        memcpy((char *)t->x.buf[b->judged] + (size_t)row[i] * bytes,
               (char *)x->buf[buf] + (size_t)i * bytes, bytes);
    return GNNC_OK;
}

/* Copies what a batch gave of rows [from, from + n) into the values of all rows, which are listed
 * in order. */
static gnnc_status keep(gnnc_trainer *t, int phase, int64_t from, int64_t n) {
    RtRowBatches *b = t->rows;
    RtExec *x = &b->rows.x;
    gnnc_status st = GNNC_OK;
    for (int buf = 0; buf < t->program->n_bufs && st == GNNC_OK; buf++) {
        if (!is_given(t, phase, buf)) continue;
        size_t bytes = row_bytes(t, x->n, buf);
        st = rt_device_batch_pull(x, buf);
        if (st != GNNC_OK) return st;
        memcpy((char *)b->value[buf] + (size_t)from * bytes, x->buf[buf], (size_t)n * bytes);
    }
    return st;
}

/* ---- runs ------------------------------------------------------------------------------------ */
/* Draws the neighbours of rows [from, from + n) of the list, and runs the phase over them. */
static gnnc_status run_batch(gnnc_trainer *t, RtBatchStep *step, int64_t from, int64_t n) {
    RtRowBatches *b = t->rows;
    RtMinibatch *m = &b->rows;
    RtError *err = &t->rt.err;
    RtSampleAt at = {0, 0, 0}; /* the same for all batches: rows choose by their number */
    const double *time = b->graph->type[b->type].time;
    const int32_t *row = b->row + from;
    RtSeeds seeds = {.type = b->type, .n = n, .id = row, .time = b->time, .key = row};
    gnnc_status st;
    for (int64_t i = 0; i < n && b->time; i++) b->time[i] = time[row[i]];
    rt_minibatch_begin(m, &t->x, !b->ran);
    rt_sampler_use(b->sampler, t->rt.team, t->x.threads);
    m->team = t->rt.team;
    TRY(st, rt_drawer_draw(&b->drawer, b->sampler, &at, &seeds, 1, NULL, 0, m->batch, err));
    TRY(st, rt_minibatch_bind(m, &t->x, b->map, err));
    if (t->pulls) TRY(st, rt_pulls_batch(t, m, RT_PULL_ROWS, t->progress.step));
    st = rt_batch_step_run(step, m, !b->ran);
out:
    return st;
}

static int64_t batch_at(const RtRowBatches *b, int64_t from, int64_t n) {
    return n - from < b->batch ? n - from : b->batch;
}

static void end(RtRowBatches *b, gnnc_status st) {
    rt_recycle_reset(&b->rows.memory); /* takes room for the largest now, not in the next run */
    b->ran |= st == GNNC_OK;
}

/* ---- evaluation, which processes may share out ------------------------------------------ */
/* The process that makes the batch of the n rows that begins at `from`: which has the first of
 * them, where rows are pulled. */
static int maker_of(const gnnc_trainer *t, int64_t from, int64_t n) {
    const RtRowBatches *b = t->rows;
    int owner = t->pulls ? rt_pulls_maker(t, b->type, b->row[from]) : -1;
    if (owner >= 0) return owner;
    return rt_eval_maker(t, from / b->batch, (n + b->batch - 1) / b->batch);
}

static bool makes(const gnnc_trainer *t, int rank, int64_t from, int64_t n) {
    const RtRowBatches *b = t->rows;
    if (maker_of(t, from, n) == rank) return true;
    return from + b->batch >= n && rt_eval_reads_last(t, b->step[PREDICT].phase);
}

static int64_t count_batches(const gnnc_trainer *t, int rank, int64_t n) {
    int64_t k = 0;
    for (int64_t from = 0; from < n; from += t->rows->batch) k += makes(t, rank, from, n);
    return k;
}

/* Those that make fewer batches than another one send rows for its last ones. */
static gnnc_status send_rows_for_others(gnnc_trainer *t, int64_t n) {
    int64_t most = 0;
    gnnc_status st = GNNC_OK;
    for (int r = 0; r < t->processes.n; r++) {
        int64_t k = count_batches(t, r, n);
        if (k > most) most = k;
    }
    for (int64_t i = count_batches(t, t->processes.rank, n); i < most && st == GNNC_OK; i++)
        st = rt_pulls_batch(t, NULL, RT_PULL_ROWS, t->progress.step);
    return st;
}

/* Copies the predictions of rows whose batches a process makes into the message (or, `here`, out of
 * it to what "eval" reads); m NULL: no copy.  Their bytes. */
static size_t copy_made(gnnc_trainer *t, int rank, int64_t n, size_t bytes, char *m, bool here) {
    const RtRowBatches *b = t->rows;
    size_t at = 0;
    for (int64_t from = 0; from < n; from += b->batch) {
        if (maker_of(t, from, n) != rank) continue;
        for (int64_t i = from; i < from + batch_at(b, from, n); i++, at += bytes) {
            char *judged = (char *)t->x.buf[b->judged] + (size_t)b->row[i] * bytes;
            if (m) memcpy(here ? judged : m + at, here ? m + at : judged, bytes);
        }
    }
    return at;
}

/* All processes get the predictions of the n rows. */
static gnnc_status send_judged(gnnc_trainer *t, int pred, int64_t n) {
    RtRowBatches *b = t->rows;
    size_t bytes = row_bytes(t, t->x.n, pred);
    gnnc_status st = GNNC_OK;
    for (int r = 0; r < t->processes.n; r++) {
        bool own = r == t->processes.rank;
        size_t n_bytes = copy_made(t, r, n, bytes, NULL, false);
        if (!n_bytes) continue;
        TRY(st, rt_eval_message(t, &b->message, n_bytes));
        if (own) copy_made(t, r, n, bytes, b->message.p, false);
        TRY(st, rt_processes_broadcast(t, b->message.p, n_bytes, r));
        if (!own) copy_made(t, r, n, bytes, b->message.p, true);
    }
out:
    return st;
}

gnnc_status rt_row_batches_evaluate(gnnc_trainer *t, const rt_phase *eval) {
    RtRowBatches *b = t->rows;
    RtBatchStep *step = &b->step[PREDICT];
    int pred = rt_buf_find(t->program, RT_BUF_OUTPUT, "pred");
    bool shared = rt_eval_is_shared(t);
    int64_t n = 0;
    gnnc_status st = GNNC_OK;
    for (int split = 1; split <= N_SPLITS && b->judged >= 0; split++)
        n += judged_rows(t, split, b->row + n);
    st = rt_device_upload_row_ids(&t->x, b->row, n);
    for (int64_t from = 0; from < n && st == GNNC_OK; from += b->batch) {
        int64_t k = batch_at(b, from, n);
        if (shared && !makes(t, t->processes.rank, from, n)) continue;
        st = run_batch(t, step, from, k);
        if (st == GNNC_OK) st = judge_later(t, pred, from, k);
    }
    if (st == GNNC_OK && shared && t->pulls) st = send_rows_for_others(t, n);
    if (st == GNNC_OK && shared && n) st = send_judged(t, pred, n);
    end(b, st);
    return st == GNNC_OK ? rt_phase_run(&t->x, eval) : st;
}

gnnc_status rt_row_batches_judge(gnnc_trainer *t, const rt_phase *eval, const float *values) {
    RtRowBatches *b = t->rows;
    size_t bytes = row_bytes(t, t->x.n, rt_buf_find(t->program, RT_BUF_OUTPUT, "pred"));
    if (b->judged >= 0) memcpy(t->x.buf[b->judged], values, (size_t)b->n_rows * bytes);
    return rt_phase_run(&t->x, eval);
}

/* Makes room for what the phase gives of all rows: batches write theirs into it. */
static gnnc_status make_values(gnnc_trainer *t, int phase) {
    RtRowBatches *b = t->rows;
    for (int buf = 0; buf < t->program->n_bufs; buf++) {
        if (!is_given(t, phase, buf) || b->value[buf]) continue;
        b->value[buf] =
            rt_pool_alloc(&t->rt.pool, (size_t)b->n_rows + 1, row_bytes(t, t->x.n, buf));
        if (!b->value[buf]) return rt_fail_nomem(&t->rt.err, "the values of all rows");
    }
    return GNNC_OK;
}

gnnc_status rt_row_batches_run(gnnc_trainer *t, const rt_phase *phase) {
    RtRowBatches *b = t->rows;
    int which = (int)(phase - t->program->phases) == b->step[PREDICT].phase ? PREDICT : EMBED;
    RtBatchStep *step = &b->step[which];
    gnnc_status st = make_values(t, step->phase);
    for (int64_t i = 0; i < b->n_rows; i++) b->row[i] = (int32_t)i;
    for (int64_t from = 0; from < b->n_rows && st == GNNC_OK; from += b->batch) {
        int64_t n = batch_at(b, from, b->n_rows);
        st = run_batch(t, step, from, n);
        if (st == GNNC_OK) st = keep(t, step->phase, from, n);
    }
    end(b, st);
    return st;
}

gnnc_status rt_row_batches_some(gnnc_trainer *t, int buf, int64_t n, const int64_t *id,
                                float *out) {
    RtRowBatches *b = t->rows;
    size_t bytes = row_bytes(t, t->x.n, buf);
    gnnc_status st = GNNC_OK;
    for (int64_t k, from = 0; from < n && st == GNNC_OK; from += k) {
        k = batch_at(b, from, n);
        if (k > b->n_rows) k = b->n_rows; /* some are asked for twice */
        for (int64_t i = 0; i < k; i++) b->row[i] = (int32_t)(id ? id[from + i] : from + i);
        st = run_batch(t, &b->step[PREDICT], 0, k);
        if (st == GNNC_OK) st = rt_device_batch_pull(&b->rows.x, buf);
        const char *rows = b->rows.x.buf[buf];
        for (int64_t i = 0; i < k && st == GNNC_OK; i++)
            memcpy((char *)out + (size_t)(from + i) * bytes,
                   rows + (size_t)b->rows.batch->seed[0][i] * bytes, bytes);
    }
    end(b, st);
    return st;
}

/* ---- what others ask -------- */
const void *rt_row_batches_value(const gnnc_trainer *t, int buf, int64_t *n_rows) {
    const RtRowBatches *b = t->rows;
    if (!b || !b->value[buf]) return NULL;
    *n_rows = b->n_rows;
    return b->value[buf];
}

int64_t rt_row_batches_rows(const gnnc_trainer *t) {
    return t->rows->n_rows;
}

const int64_t *rt_row_batches_sizes(const gnnc_trainer *t, const rt_phase *ph) {
    const RtRowBatches *b = t->rows;
    for (int i = 0; b && i < N_STEPS; i++)
        if ((int)(ph - t->program->phases) == b->step[i].phase) return b->step[i].most;
    return NULL;
}
