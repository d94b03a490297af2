/* What a step over links has beside the data: its links (links.h), bound as relations. */
#include "link_batches.h"

#include <inttypes.h>
#include <string.h>

#include "batch_step.h"
#include "bind.h"
#include "device.h"
#include "link_metrics.h"
#include "links.h"
#include "recycle.h"
#include "sample_key.h"
#include "train_losses.h"

enum { N_PARTS = RT_REL_EARLIER - RT_REL_LINKS + 1 };

/* Links as a program's data: as the data's, but for the spaces of the step. */
typedef struct {
    RtExec x;
    RtBound bound;
    RtRuntime rt;
    RtRecycle memory;
    RtColumn *column; /* [n_columns] */
    int64_t n_seeds;
} Slot;

typedef struct RtLinkBatches {
    RtLinks links;
    int base;          /* the space that is scored */
    int part[N_PARTS]; /* spaces of a step, by kind; -1 = the program has none */
    RtColumn *all;     /* [n_columns] of those on a step's spaces: over the base's edges */
    int no_links;      /* the relation of fixed negatives, and their splits; -1 = none */
    const int32_t *no_split;
    int64_t batch, n_seeds, n_batches;
    int64_t n_val;         /* edges of the validation split */
    int32_t *seed, *order; /* [n_seeds] of training: edges or queries; in this epoch's order */
    int32_t *held;         /* those of an evaluation */
    Slot *slot, eval;
    int n_slots, n_workers;
    RtPipeline *pipeline;
    int64_t epoch, next, first_epoch;
    RtBatchStep train, test;
    RtLosses losses;
    RtLinkMetrics metrics;
} RtLinkBatches;

static gnnc_status nomem(gnnc_trainer *t) {
    return rt_fail_nomem(&t->rt.err, "batches of links");
}

/* ---- what is scored ---------------------------------------------------------------------- */
/* Which way an edge of a union came from its bases: edges of two ways are of two kinds. */
static int64_t way_of(const gnnc_trainer *t, int space, int64_t e, int64_t *n_ways) {
    const rt_space *s = &t->program->spaces[space];
    const RtRelation *r = &t->rt.bound->rel[space];
    if (s->rel == RT_REL_BASE) return *n_ways = 1, 0;
    int half = s->rel == RT_REL_UNION && r->orig[0][e] < 0;
    int64_t inner = way_of(t, s->base[half], r->orig[half][e], n_ways);
    if (s->rel != RT_REL_UNION) return inner;
    *n_ways *= 2;
    return 2 * inner + half;
}

static bool has_origins(const gnnc_trainer *t, int space) {
    const rt_space *s = &t->program->spaces[space];
    if (s->rel == RT_REL_SELF_LOOPS) return false;
    for (int k = 0; k < 2; k++)
        if (s->base[k] >= 0 && !has_origins(t, s->base[k])) return false;
    return true;
}

/* What the load phase gave, or NULL: it gives no such thing. */
static gnnc_status loaded(gnnc_trainer *t, const char *name, int *space, const int32_t **p) {
    int b = rt_buf_find(t->program, RT_BUF_OUTPUT, name);
    *p = NULL;
    if (b < 0) return GNNC_OK;
    if (space) *space = t->program->bufs[b].space;
    *p = t->x.buf[b];
    return rt_pull(&t->x, b);
}

static gnnc_status index_links(gnnc_trainer *t, RtLinkBatches *b) {
    RtPool *pool = &t->rt.pool;
    const int32_t *split, *kind = NULL;
    gnnc_status st = loaded(t, "links.split", &b->base, &split);
    if (st == GNNC_OK) st = loaded(t, "links.kind", NULL, &kind);
    b->no_links = -1;
    if (st == GNNC_OK) st = loaded(t, "links.negatives", &b->no_links, &b->no_split);
    if (st != GNNC_OK) return st;
    if (!split || !has_origins(t, b->base))
        return rt_fail(&t->rt.err, GNNC_E_ARG, "links that are no edges of the data");
    const RtRelation *r = &t->rt.bound->rel[b->base];
    int64_t *kinds = RT_NEWN(pool, int64_t, r->n_edges + 1), n_ways = 1;
    if (!kinds) return nomem(t);
    for (int64_t e = 0; e < r->n_edges; e++) {
        int64_t way = way_of(t, b->base, e, &n_ways);
        kinds[e] = (kind ? kind[e] : 0) * n_ways + way;
    }
    return rt_links_index(pool, r, split, kinds, &b->links, &t->rt.err);
}

/* ---- columns of a step's links -------------------------------------------------------------- */
static bool is_of_step(const rt_program *p, int space) {
    return p->spaces[space].kind == RT_SP_EDGE && p->spaces[space].rel >= RT_REL_LINKS;
}

static gnnc_status take_rows(gnnc_trainer *t, RtLinkBatches *b, const rt_column *want,
                             RtColumn *to) {
    RtPool *pool = &t->rt.pool;
    int64_t n = b->links.rel->n_edges;
    int32_t *row = RT_NEWN(pool, int32_t, n + 1);
    int table = -1, first = -1;
    if (!row) return nomem(t);
    for (int64_t e = 0; e < n; e++) {
        row[e] = rt_bind_row(t->program, t->rt.bound->rel, b->base, e, &table);
        if (first < 0) first = table;
        if (table != first)
            return rt_fail(&t->rt.err, GNNC_E_SHAPE,
                           "'%s' of links: they come from more than one edge type", want->name);
    }
    if (first < 0) rt_bind_row(t->program, t->rt.bound->rel, b->base, 0, &first);
    const RtTable *from = t->rt.bound->table[first];
    const RtColumn *c = rt_table_column(from, want->name);
    if (!c || c->kind != want->kind)
        return rt_fail(&t->rt.err, GNNC_E_MISSING, "%s: '%s' has no column '%s' of this kind",
                       t->rt.bound->dir, from->name, want->name);
    return rt_column_take(pool, c, row, n, to, &t->rt.err);
}

static gnnc_status make_columns(gnnc_trainer *t, RtLinkBatches *b) {
    const rt_program *p = t->program;
    gnnc_status st = GNNC_OK;
    if (!(b->all = RT_NEWN(&t->rt.pool, RtColumn, p->n_columns))) return nomem(t);
    for (int c = 0; c < p->n_columns && st == GNNC_OK; c++)
        if (is_of_step(p, p->columns[c].space) && b->links.rel->n_edges)
            st = take_rows(t, b, &p->columns[c], &b->all[c]);
    return st;
}

/* ---- binding ----------------------------------------------------------------------------------
 */
static gnnc_status slot_new(gnnc_trainer *t, Slot *s) {
    const rt_program *p = t->program;
    RtPool *pool = &t->rt.pool;
    *s = (Slot){.x = t->x, .bound = *t->rt.bound};
    rt_recycle_init(&s->memory, &pool->from);
    s->x.n = RT_NEWN(pool, int64_t, p->n_syms);
    s->x.buf = RT_NEWN(pool, void *, p->n_bufs);
    s->column = RT_NEWN(pool, RtColumn, p->n_columns);
    s->bound.rel = RT_NEWN(pool, RtRelation, p->n_spaces);
    s->bound.col = RT_NEWN(pool, const RtColumn *, p->n_columns);
    s->bound.balance = RT_NEWN(pool, const int64_t *, p->n_maps);
    if (!s->x.n || !s->x.buf || !s->column || !s->bound.rel || !s->bound.col || !s->bound.balance)
        return nomem(t);
    s->x.balance = s->bound.balance;
    s->x.profile = NULL;
    memcpy(s->x.buf, t->x.buf, sizeof *s->x.buf * (size_t)p->n_bufs);
    memcpy(s->bound.rel, t->rt.bound->rel, sizeof *s->bound.rel * (size_t)p->n_spaces);
    memcpy(s->bound.col, t->rt.bound->col, sizeof *s->bound.col * (size_t)p->n_columns);
    memcpy(s->bound.balance, t->rt.bound->balance, sizeof *s->bound.balance * (size_t)p->n_maps);
    return GNNC_OK;
}

static void slot_free(Slot *s) {
    if (s->memory.growth.from.alloc) rt_recycle_free(&s->memory);
}

static RtPool *slot_begin(const gnnc_trainer *t, Slot *s, bool first) {
    s->memory.growth.roomy = first;
    rt_recycle_reset(&s->memory);
    RtAlloc a = rt_recycle_alloc(&s->memory);
    s->rt = (RtRuntime){.bound = &s->bound};
    rt_pool_init(&s->rt.pool, &a);
    s->x.rt = &s->rt;
    memcpy(s->x.n, t->x.n, sizeof *s->x.n * (size_t)t->program->n_syms);
    return &s->rt.pool;
}

static gnnc_status bind_columns(const RtLinkBatches *b, Slot *s, int space, const RtDrawn *d) {
    const rt_program *p = s->x.program;
    for (int c = 0; c < p->n_columns; c++) {
        if (p->columns[c].space != space) continue;
        gnnc_status st =
            rt_column_take(&s->rt.pool, &b->all[c], d->row, d->n, &s->column[c], &s->rt.err);
        s->bound.col[c] = &s->column[c];
        if (st == GNNC_OK) st = rt_bind_taken(&s->x, c);
        if (st != GNNC_OK) return st;
    }
    return GNNC_OK;
}

static gnnc_status bind_part(const RtLinkBatches *b, Slot *s, rt_rel_kind kind, const RtDrawn *d) {
    int space = b->part[kind - RT_REL_LINKS];
    if (space < 0) return GNNC_OK;
    int32_t *id = RT_NEWN(&s->rt.pool, int32_t, d->n + 1);
    if (!id) return rt_fail_nomem(&s->rt.err, "a batch of links");
    for (int64_t i = 0; i < d->n; i++) id[i] = (int32_t)i;
    s->bound.rel[space] = (RtRelation){.n_src = b->links.rel->n_src,
                                       .n_dst = b->links.rel->n_dst,
                                       .n_edges = d->n,
                                       .src = d->src,
                                       .dst = d->dst,
                                       .orig = {d->orig, NULL},
                                       .cell = d->cell,
                                       .id = id,
                                       .id_bound = d->n};
    s->x.n[s->x.program->spaces[space].sym] = d->n;
    return bind_columns(b, s, space, d);
}

/* All sizes are known before the first map is made. */
static gnnc_status bind_maps(const RtLinkBatches *b, Slot *s, bool queries) {
    static const bool of_queries[N_PARTS] = {false, false, true, true, true, true};
    for (int k = 0; k < N_PARTS; k++) {
        gnnc_status st =
            b->part[k] < 0 || of_queries[k] != queries ? GNNC_OK : rt_bind_space(&s->x, b->part[k]);
        if (st != GNNC_OK) return st;
    }
    return GNNC_OK;
}

static gnnc_status bind_pairs(const RtLinkBatches *b, Slot *s, const RtDrawn *all, int64_t n_pos) {
    RtDrawn pos = *all;
    gnnc_status st;
    pos.n = n_pos;
    TRY(st, bind_part(b, s, RT_REL_LINKS, all));
    TRY(st, bind_part(b, s, RT_REL_POSITIVES, &pos));
    st = bind_maps(b, s, false);
out:
    return st;
}

static gnnc_status bind_asked(const RtLinkBatches *b, Slot *s, const RtAsked *a, bool known) {
    gnnc_status st;
    TRY(st, bind_part(b, s, RT_REL_QUERIES, &a->queries));
    TRY(st, bind_part(b, s, RT_REL_ANSWERS, &a->answers));
    if (known) TRY(st, bind_part(b, s, RT_REL_KNOWN, &a->known));
    if (known) TRY(st, bind_part(b, s, RT_REL_EARLIER, &a->earlier));
    if (known || b->part[RT_REL_KNOWN - RT_REL_LINKS] < 0) {
        st = bind_maps(b, s, true);
        goto out;
    }
    for (int k = RT_REL_QUERIES; k <= RT_REL_ANSWERS; k++)
        if (b->part[k - RT_REL_LINKS] >= 0)
            TRY(st, rt_bind_space(&s->x, b->part[k - RT_REL_LINKS]));
out:
    return st;
}

/* ---- batches of training ------------------------------------------------------------------------
 */
static bool trains_queries(const gnnc_trainer *t) {
    return t->program->sampling.train_links == RT_LINKS_QUERIES;
}

static gnnc_status prepare(void *user, int worker, int64_t number, int slot, RtError *err) {
    gnnc_trainer *t = user;
    RtLinkBatches *b = t->links;
    const rt_sampling *how = &t->program->sampling;
    Slot *s = &b->slot[slot];
    int64_t from = number * b->batch, left = b->n_seeds - from;
    RtPool *pool = slot_begin(t, s, b->epoch == b->first_epoch);
    RtAsked asked;
    RtDrawn pairs;
    gnnc_status st;
    (void)worker;
    s->n_seeds = left < b->batch ? left : b->batch;
    if (trains_queries(t)) {
        TRY(st, rt_links_ask(&b->links, pool, b->order + from, s->n_seeds, RT_SPLIT_TRAIN, 0,
                             &asked, &s->rt.err));
        st = bind_asked(b, s, &asked, false);
    } else {
        RtNegatives neg = {.k = how->negatives,
                           .how = (rt_negative)how->corrupt,
                           .avoid = how->avoid,
                           .first = RT_SPLIT_TRAIN,
                           .last = RT_SPLIT_TRAIN,
                           .key = rt_draw_key((uint64_t)t->options.seed, (uint64_t)b->epoch,
                                              (uint64_t)number, RT_DRAW_NEGATIVE)};
        TRY(st,
            rt_links_pairs(&b->links, pool, b->order + from, s->n_seeds, &neg, &pairs, &s->rt.err));
        st = bind_pairs(b, s, &pairs, s->n_seeds);
    }
out:
    return st == GNNC_OK ? st : rt_fail(err, st, "%s", s->rt.err.text);
}

/* Edges of a split, or queries that have one. */
static int64_t list_seeds(const RtLinkBatches *b, bool queries, int split, int32_t *out) {
    const RtLinks *l = &b->links;
    int64_t n = 0;
    for (int64_t e = 0; e < l->rel->n_edges && !queries; e++)
        if (l->split[e] == split) {
            if (out) out[n] = (int32_t)e;
            n++;
        }
    for (int64_t q = 0; q < l->n_queries && queries; q++) {
        int64_t i = l->query[q];
        while (i < l->query[q + 1] && l->split[l->by_query[i]] != split) i++;
        if (i == l->query[q + 1]) continue;
        if (out) out[n] = (int32_t)q;
        n++;
    }
    return n;
}

static gnnc_status make_seeds(gnnc_trainer *t, RtLinkBatches *b) {
    const rt_sampling *s = &t->program->sampling;
    bool queries = trains_queries(t);
    RtPool *pool = &t->rt.pool;
    b->batch = t->options.batch ? t->options.batch : s->batch;
    b->n_seeds = list_seeds(b, queries, RT_SPLIT_TRAIN, NULL);
    b->n_val = list_seeds(b, false, RT_SPLIT_VAL, NULL);
    b->n_batches = (b->n_seeds + (s->drop_last ? 0 : b->batch - 1)) / b->batch;
    b->seed = RT_NEWN(pool, int32_t, b->n_seeds + 1);
    b->order = RT_NEWN(pool, int32_t, b->n_seeds + 1);
    b->held = RT_NEWN(pool, int32_t, b->links.rel->n_edges + 1);
    if (!b->seed || !b->order || !b->held) return nomem(t);
    list_seeds(b, queries, RT_SPLIT_TRAIN, b->seed);
    return GNNC_OK;
}

/* ---- life --------------------------------------------------------------------------------------
 */
static int count_workers(const gnnc_trainer *t) {
    int64_t n = t->options.workers >= 0 ? t->options.workers : t->program->sampling.workers;
    if (t->options.workers < 0 && n == 0 && t->x.threads > 1) n = 1; /* a batch is soon made */
    return n < 16 ? (int)n : 16;
}

static gnnc_status make_slots(gnnc_trainer *t, RtLinkBatches *b) {
    int64_t ahead = t->program->sampling.prefetch;
    gnnc_status st;
    b->n_workers = count_workers(t);
    int n = b->n_workers ? b->n_workers + (ahead < 1 ? 1 : ahead > 64 ? 64 : (int)ahead) : 1;
    if (!(b->slot = RT_NEWN(&t->rt.pool, Slot, n))) return nomem(t);
    for (; b->n_slots < n; b->n_slots++) TRY(st, slot_new(t, &b->slot[b->n_slots]));
    st = slot_new(t, &b->eval);
out:
    return st;
}

/* Scores of a batch stay below 256 MiB where one query allows it. */
static int64_t queries_at_once(const RtLinkBatches *b) {
    enum { MOST_SCORES = 1 << 26 };
    int64_t n_dst = b->links.rel->n_dst, n = n_dst ? MOST_SCORES / n_dst : b->batch;
    if (n > b->batch) n = b->batch;
    return n < 1 ? 1 : n;
}

/* What is a number for all pairs takes them all at once. */
static int64_t runs_of_split(const gnnc_trainer *t, const RtLinkBatches *b, int split) {
    if (t->program->sampling.eval_links != RT_LINKS_QUERIES) return 1;
    int64_t n = list_seeds(b, true, split, NULL), batch = queries_at_once(b);
    return (n + batch - 1) / batch;
}

/* A device's notes: the losses of an epoch's steps, then the metrics of a split. */
static gnnc_status make_notes(gnnc_trainer *t, RtLinkBatches *b) {
    int64_t val = runs_of_split(t, b, RT_SPLIT_VAL), test = runs_of_split(t, b, RT_SPLIT_TEST);
    gnnc_status st;
    TRY(st, rt_losses_init(t, &b->losses, b->n_batches));
    TRY(st, rt_link_metrics_init(t, &b->metrics, b->n_batches, val > test ? val : test));
    st = rt_device_notes(&t->x, b->n_batches + b->metrics.n_notes);
out:
    return st;
}

gnnc_status rt_link_batches_start(gnnc_trainer *t) {
    if (t->program->sampling.train_links == RT_LINKS_NONE) return GNNC_OK;
    RtLinkBatches *b = t->links = RT_NEW(&t->rt.pool, RtLinkBatches);
    gnnc_status st;
    if (!b) return nomem(t);
    b->epoch = b->first_epoch = -1;
    for (int k = 0; k < N_PARTS; k++) b->part[k] = -1;
    for (int s = 0; s < t->program->n_spaces; s++)
        if (is_of_step(t->program, s)) b->part[t->program->spaces[s].rel - RT_REL_LINKS] = s;
    TRY(st, rt_batch_step_init(t, "train", &b->train));
    TRY(st, rt_batch_step_init(t, "eval", &b->test));
    TRY(st, index_links(t, b));
    TRY(st, make_columns(t, b));
    TRY(st, make_seeds(t, b));
    TRY(st, make_slots(t, b));
    TRY(st, make_notes(t, b));
    RtPipelineSpec spec = {
        .prepare = prepare, .user = t, .n_workers = b->n_workers, .n_slots = b->n_slots};
    st = rt_pipeline_start(&b->pipeline, &t->rt.pool.from, &spec, &t->rt.err);
out:
    return st;
}

void rt_link_batches_stop(gnnc_trainer *t) {
    RtLinkBatches *b = t->links;
    if (!b) return;
    rt_pipeline_stop(b->pipeline);
    for (int i = 0; i < b->n_slots; i++) slot_free(&b->slot[i]);
    slot_free(&b->eval);
    rt_batch_step_free(&b->train);
    rt_batch_step_free(&b->test);
    t->links = NULL;
}

/* ---- running
 * ------------------------------------------------------------------------------------- */
/* Only training needs edges to learn from. */
static gnnc_status check_train(gnnc_trainer *t) {
    const RtLinkBatches *b = t->links;
    if (b->n_batches) return GNNC_OK;
    return rt_fail(&t->rt.err, GNNC_E_VALUE,
                   "%s: %lld %s of '%s' are in the train split: no batch of %lld", t->rt.bound->dir,
                   (long long)b->n_seeds, trains_queries(t) ? "queries" : "edges",
                   t->program->spaces[b->base].name, (long long)b->batch);
}

static gnnc_status run(gnnc_trainer *t, RtBatchStep *s, Slot *slot, bool first) {
    gnnc_status st;
    TRY(st, rt_batch_step_place(t, s, &slot->x, first));
    TRY(st, rt_device_batch(&slot->x, s->phase, s->offset, s->arena.n_bytes, s->most, NULL));
    st = rt_phase_run(&slot->x, &t->program->phases[s->phase]);
out:
    return st;
}

static void begin_run(gnnc_trainer *t, RtLinkBatches *b, int64_t epoch, int64_t first) {
    rt_pipeline_begin(b->pipeline, 0, 0);
    if (b->first_epoch < 0) b->first_epoch = epoch;
    memcpy(b->order, b->seed, (size_t)b->n_seeds * sizeof *b->order);
    rt_sample_shuffle((uint64_t)t->options.seed, (uint64_t)epoch, b->order, b->n_seeds);
    b->epoch = epoch;
    b->next = first;
    rt_losses_begin(&b->losses, first);
    rt_pipeline_begin(b->pipeline, first, b->n_batches);
}

gnnc_status rt_link_batches_settle(gnnc_trainer *t) {
    return rt_losses_settle(t, &t->links->losses);
}

void rt_link_batches_forget(gnnc_trainer *t) {
    rt_pipeline_begin(t->links->pipeline, 0, 0);
    t->links->next = -1;
    rt_losses_begin(&t->links->losses, 0);
}

gnnc_status rt_link_batches_run(gnnc_trainer *t, const rt_phase *train) {
    RtLinkBatches *b = t->links;
    int64_t n = rt_link_batches_per_epoch(t);
    int64_t epoch = t->progress.step / n, batch = t->progress.step % n;
    int64_t number;
    int slot;
    gnnc_status st;
    (void)train;
    TRY(st, check_train(t));
    if (b->epoch != epoch || b->next != batch) begin_run(t, b, epoch, batch);
    b->next = -1; /* a failed run begins anew */
    TRY(st, rt_pipeline_next(b->pipeline, &number, &slot, &t->rt.err));
    TRY(st, run(t, &b->train, &b->slot[slot], epoch == b->first_epoch));
    TRY(st, rt_losses_add(t, &b->losses, batch, b->slot[slot].n_seeds));
    b->next = batch + 1;
out:
    if (st != GNNC_OK) rt_link_batches_settle(t); /* it may be that steps go on */
    return st;
}

/* ---- evaluation
 * ------------------------------------------------------------------------------------ */
/* The split's edges, then those that are none: given with the data, or one drawn for each. */
static gnnc_status pairs_of_split(gnnc_trainer *t, int split, int64_t n, RtPool *pool,
                                  RtDrawn *out) {
    RtLinkBatches *b = t->links;
    const rt_sampling *how = &t->program->sampling;
    RtNegatives neg = {.k = b->no_split          ? 0
                            : how->negatives > 0 ? how->negatives
                                                 : 1,
                       .how = (rt_negative)how->corrupt,
                       .avoid = true,
                       .first = RT_SPLIT_TRAIN,
                       .last = RT_SPLIT_TEST,
                       .key = rt_draw_key(0, 0, (uint64_t)split, RT_DRAW_NEGATIVE)};
    const RtRelation *none = b->no_split ? &t->rt.bound->rel[b->no_links] : NULL;
    RtDrawn pos;
    int64_t m = 0, k = n;
    gnnc_status st = rt_links_pairs(&b->links, pool, b->held, n, &neg, &pos, &b->eval.rt.err);
    if (st != GNNC_OK || !none) return *out = pos, st;
    for (int64_t i = 0; i < none->n_edges; i++) m += b->no_split[i] == split;
    if (n > INT32_MAX - m) return GNNC_E_RANGE;
    int32_t **part[] = {&out->src, &out->dst, &out->orig, &out->row};
    int32_t *const from[] = {pos.src, pos.dst, pos.orig, pos.row};
    *out = (RtDrawn){.n = n + m};
    for (int i = 0; i < 4; i++) {
        if (!(*part[i] = RT_NEWN(pool, int32_t, n + m + 1))) return nomem(t);
        memcpy(*part[i], from[i], (size_t)n * sizeof **part[i]);
    }
    for (int64_t i = 0; i < none->n_edges; i++) {
        if (b->no_split[i] != split) continue;
        out->src[k] = none->src[i];
        out->dst[k] = none->dst[i];
        out->orig[k] = out->row[k] = pos.row[0]; /* no edge of the base; its columns are anyone's */
        k++;
    }
    return GNNC_OK;
}

/* Each is as long as queries have answers, squared: what no metric reads is not made. */
static int lists_read(const RtLinkBatches *b) {
    return (b->part[RT_REL_KNOWN - RT_REL_LINKS] >= 0 ? RT_ASK_KNOWN : 0) |
           (b->part[RT_REL_EARLIER - RT_REL_LINKS] >= 0 ? RT_ASK_EARLIER : 0);
}

static gnnc_status evaluate_batch(gnnc_trainer *t, int split, int64_t from, int64_t n) {
    RtLinkBatches *b = t->links;
    Slot *s = &b->eval;
    RtPool *pool = slot_begin(t, s, true);
    RtAsked asked;
    RtDrawn pairs;
    gnnc_status st;
    if (t->program->sampling.eval_links == RT_LINKS_QUERIES) {
        TRY(st, rt_links_ask(&b->links, pool, b->held + from, n, split, lists_read(b), &asked,
                             &s->rt.err));
        TRY(st, bind_asked(b, s, &asked, true));
    } else {
        TRY(st, pairs_of_split(t, split, n, pool, &pairs));
        TRY(st, bind_pairs(b, s, &pairs, n));
    }
    st = run(t, &b->test, s, true);
    return st == GNNC_OK ? rt_link_metrics_add(t, &b->metrics, split) : st;
out:
    return s->rt.err.text[0] ? rt_fail(&t->rt.err, st, "%s", s->rt.err.text) : st;
}

gnnc_status rt_link_batches_evaluate(gnnc_trainer *t, const rt_phase *eval) {
    RtLinkBatches *b = t->links;
    rt_links_form form = t->program->sampling.eval_links;
    gnnc_status st = GNNC_OK;
    if (form == RT_LINKS_NONE || !eval) return GNNC_OK;
    for (int split = RT_SPLIT_VAL; split <= RT_SPLIT_TEST && st == GNNC_OK; split++) {
        int64_t n = list_seeds(b, form == RT_LINKS_QUERIES, split, b->held);
        /* What is a number for all pairs takes them all at once. */
        int64_t batch = form == RT_LINKS_QUERIES ? queries_at_once(b) : n;
        rt_link_metrics_begin(t, &b->metrics, split);
        for (int64_t from = 0; from < n && st == GNNC_OK; from += batch)
            st = evaluate_batch(t, split, from, n - from < batch ? n - from : batch);
        if (st == GNNC_OK) st = rt_link_metrics_end(t, &b->metrics, split);
    }
    return st;
}

/* ---- what others ask
 * --------------------------------------------------------------------------------- */
gnnc_status rt_link_batches_check(gnnc_trainer *t) {
    const RtLinkBatches *b = t->links;
    const rt_recipe *r = &t->program->recipe;
    gnnc_status st = check_train(t);
    if (st != GNNC_OK || t->keep < 0 || r->keep_split != RT_SPLIT_VAL || b->n_val) return st;
    return rt_fail(
        &t->rt.err, GNNC_E_MISSING,
        "%s: no edge of '%s' is in the validation split (2): the recipe chooses the epoch to "
        "keep, or to stop at, by the %s of these edges ('keep last' without 'stop after' needs "
        "none)",
        t->rt.bound->dir, t->program->spaces[b->base].name, r->keep_metric);
}

int64_t rt_link_batches_per_epoch(const gnnc_trainer *t) {
    return t->links->n_batches ? t->links->n_batches : 1; /* one that cannot be */
}

const int64_t *rt_link_batches_sizes(const gnnc_trainer *t, const rt_phase *ph) {
    const RtLinkBatches *b = t->links;
    int phase = (int)(ph - t->program->phases);
    if (phase == b->train.phase) return b->train.most;
    return phase == b->test.phase ? b->test.most : NULL;
}

const char *rt_link_batches_text(gnnc_trainer *t, RtPool *pool) {
    const rt_sampling *s = &t->program->sampling;
    return rt_pool_printf(
        pool, "batch=%" PRId64 " drop_last=%d links=%d negatives=%" PRId64 " corrupt=%d avoid=%d",
        t->links->batch, s->drop_last, (int)s->train_links, s->negatives, s->corrupt, s->avoid);
}

RtPipelineStats rt_link_batches_stats(const gnnc_trainer *t, int *n_workers) {
    *n_workers = t->links->n_workers;
    return rt_pipeline_stats(t->links->pipeline);
}
