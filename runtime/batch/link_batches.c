/* What a step over links has beside the graph: its links (links.h), bound as relations. */
#include "link_batches.h"

#include <stdlib.h>
#include <string.h>

#include "link_impl.h"
#include "runtime/bind/bind.h"
#include "runtime/device/device.h"
#include "runtime/sample/sample_key.h"

static gnnc_status nomem(const RtExec *x) {
    return rt_fail_nomem(&x->rt->err, "batches of links");
}

/* ---- what is scored ---------------------------------------------------------------------- */
/* Number of the way, of *n_ways, by which an edge came through unions: edges of two ways are of two
 * kinds. */
static int64_t way_of(const RtExec *x, int space, int64_t e, int64_t *n_ways) {
    const rt_space *s = &x->program->spaces[space];
    const RtRelation *r = &x->rt->bound->rel[space];
    if (s->rel == RT_REL_BASE) return *n_ways = 1, 0;
    int half = s->rel == RT_REL_UNION && r->orig[0][e] < 0;
    int64_t inner = way_of(x, s->base[half], r->orig[half][e], n_ways);
    if (s->rel != RT_REL_UNION) return inner;
    *n_ways *= 2;
    return 2 * inner + half;
}

/* Has each edge of the relation an edge of the data behind it, by which it can be left out? Self
 * loops have none. */
static bool has_origins(const rt_program *p, int space) {
    const rt_space *s = &p->spaces[space];
    if (s->rel == RT_REL_SELF_LOOPS) return false;
    for (int k = 0; k < 2; k++)
        if (s->base[k] >= 0 && !has_origins(p, s->base[k])) return false;
    return true;
}

/* Reads an output of @load and the space that it has rows for; *p NULL: there is no such output. */
static gnnc_status loaded(gnnc_trainer *t, const char *name, int *space, const int32_t **p) {
    int b = rt_buf_find(t->program, RT_BUF_OUTPUT, name);
    *p = NULL;
    if (b < 0) return GNNC_OK;
    if (space) *space = t->program->bufs[b].space;
    *p = t->x.buf[b];
    return rt_pull(&t->x, b);
}

/* ---- columns of a step's links -------------------------------------------------------------- */
/* Takes a column of the scored links out of the data: the row of each link is that of the data's
 * edge behind it. */
static gnnc_status take_rows(RtExec *x, RtLinkBatches *b, const rt_column *want, RtColumn *to) {
    RtPool *pool = &x->rt->pool;
    const RtBound *data = x->rt->bound;
    int64_t n = b->links.rel->n_edges;
    int32_t *row = RT_NEWN(pool, int32_t, n + 1);
    int table = -1, first = -1;
    if (!row) return nomem(x);
    for (int64_t e = 0; e < n; e++) {
        row[e] = (int32_t)rt_bind_row(x->program, data->rel, b->base, e, &table);
        if (first < 0) first = table;
        if (table != first)
            return rt_fail(&x->rt->err, GNNC_E_SHAPE,
                           "'%s' of links: they come from more than one edge type", want->name);
    }
    if (first < 0) rt_bind_row(x->program, data->rel, b->base, 0, &first);
    const RtTable *from = data->table[first];
    const RtColumn *c = rt_table_column(from, want->name);
    if (!c || c->kind != want->kind)
        return rt_fail(&x->rt->err, GNNC_E_MISSING, "%s: '%s' has no column '%s' of this kind",
                       data->dir, from->name, want->name);
    rt_dtype type = rt_bind_type(x->program, want);
    gnnc_status st = rt_column_as(pool, x->rt->team, c, type, &c, &x->rt->err);
    return st == GNNC_OK ? rt_column_take(pool, c, row, n, to, &x->rt->err) : st;
}

bool rt_link_column_is_in_request(const rt_program *p, int column) {
    for (int i = 0; i < p->sampling.n_brought; i++)
        if (p->sampling.brought[i] == column) return true;
    return false;
}

/* Takes the columns of the links that can be scored out of the data, in canonical order of the
 * edges. Those whose values come with requests are left. */
static gnnc_status make_columns(RtExec *x, RtLinkBatches *b) {
    const rt_program *p = x->program;
    gnnc_status st = GNNC_OK;
    if (!(b->all = RT_NEWN(&x->rt->pool, RtColumn, p->n_columns))) return nomem(x);
    for (int c = 0; c < p->n_columns && st == GNNC_OK; c++) {
        bool drawn = p->spaces[p->columns[c].space].drawn && !rt_link_column_is_in_request(p, c);
        if (drawn && b->links.rel->n_edges) st = take_rows(x, b, &p->columns[c], &b->all[c]);
    }
    return st;
}

/* The times of a space's rows, by which it is sampled; NULL: it has none. */
static const double *times_of(const RtExec *x, int space) {
    const rt_sampling *s = &x->program->sampling;
    for (int i = 0; i < s->n_times; i++)
        if (x->program->columns[s->times[i]].space == space)
            return x->rt->bound->col[s->times[i]]->f64;
    return NULL;
}

typedef struct {
    double time;
    int32_t edge;
} Timed;

/* Unknown times last. */
static int by_time(const void *x, const void *y) {
    double a = ((const Timed *)x)->time, b = ((const Timed *)y)->time;
    return a != a ? b == b : b != b ? -1 : (a > b) - (a < b);
}

/* Makes the time a part of each link's kind: a source asks anew at each time. */
static gnnc_status kinds_by_time(RtExec *x, const double *when, int64_t n, int64_t *kind) {
    Timed *v = RT_NEWN(&x->rt->pool, Timed, n + 1);
    int64_t n_times = 1, most = 0;
    if (!v) return nomem(x);
    for (int64_t e = 0; e < n; e++) v[e] = (Timed){when[e], (int32_t)e};
    qsort(v, (size_t)n, sizeof *v, by_time);
    for (int64_t i = 1; i < n; i++) n_times += by_time(&v[i - 1], &v[i]) != 0;
    for (int64_t e = 0; e < n; e++) most = kind[e] > most ? kind[e] : most;
    gnnc_status st = GNNC_OK;
    if (most >= INT32_MAX / 2 / n_times)
        st = rt_fail(&x->rt->err, GNNC_E_RANGE, "links of too many kinds and times");
    for (int64_t i = 0, at = 0; i < n && st == GNNC_OK; i++) {
        at += i && by_time(&v[i - 1], &v[i]) != 0;
        kind[v[i].edge] = kind[v[i].edge] * n_times + at;
    }
    rt_pool_drop(&x->rt->pool, v);
    return st;
}

/* Links that are scored, and negatives that the data list, have numbers of 32 bits. */
static gnnc_status check_numbers(RtExec *x, int space) {
    const RtRelation *r = &x->rt->bound->rel[space];
    if (!r->wide) return GNNC_OK;
    return rt_fail(&x->rt->err, GNNC_E_RANGE,
                   "links of '%s', whose %lld edges are numbered up to %lld: at most 2^31 - 1 are "
                   "possible",
                   x->program->spaces[space].name, (long long)r->n_edges, (long long)r->id_bound);
}

gnnc_status rt_link_batches_index(RtExec *x, RtLinkBatches *b, const int32_t *split,
                                  const int32_t *kind) {
    const RtRelation *r = &x->rt->bound->rel[b->base];
    gnnc_status st = check_numbers(x, b->base);
    if (st != GNNC_OK) return st;
    int64_t *kinds = RT_NEWN(&x->rt->pool, int64_t, r->n_edges + 1), n_ways = 1;
    if (!kinds) return nomem(x);
    for (int64_t e = 0; e < r->n_edges; e++) {
        int64_t way = way_of(x, b->base, e, &n_ways);
        kinds[e] = (kind ? kind[e] : 0) * n_ways + way;
    }
    if (rt_predicts_batches(x->program)) b->when = times_of(x, b->base);
    if (b->when && x->program->sampling.eval_links == RT_LINKS_QUERIES)
        TRY(st, kinds_by_time(x, b->when, r->n_edges, kinds));
    TRY(st, rt_links_index(&x->rt->pool, r, split, kinds, &b->links, &x->rt->err));
    st = make_columns(x, b);
out:
    return st;
}

/* Reads what @load computed of the links (their splits, kinds, and negatives that the data list),
 * and sorts the edges by what they ask. */
static gnnc_status index_links(gnnc_trainer *t, RtLinkBatches *b) {
    const int32_t *split, *kind = NULL;
    gnnc_status st = loaded(t, "links.split", &b->base, &split);
    if (st == GNNC_OK) st = loaded(t, "links.kind", NULL, &kind);
    b->no_links = -1;
    if (st == GNNC_OK) st = loaded(t, "links.negatives", &b->no_links, &b->no_split);
    if (st == GNNC_OK && b->no_links >= 0) st = check_numbers(&t->x, b->no_links);
    if (st != GNNC_OK) return st;
    if (!split || !has_origins(t->program, b->base))
        return rt_fail(&t->rt.err, GNNC_E_ARG, "links that are no edges of the data");
    return rt_link_batches_index(&t->x, b, split, kind);
}

/* ---- binding -------- */
/* Binds the columns of a step's links: those that the request brings, else rows of b->all. */
static gnnc_status bind_columns(const RtLinkBatches *b, RtMinibatch *m, int space,
                                const RtStepEdges *d, const RtLinkBatch *of) {
    const rt_program *p = m->x.program;
    for (int c = 0; c < p->n_columns; c++) {
        if (p->columns[c].space != space) continue;
        bool given = of->pair_columns && rt_link_column_is_in_request(p, c);
        gnnc_status st =
            rt_column_take(&m->rt.pool, given ? &of->pair_columns[c] : &b->all[c],
                           given ? of->pair_rows : d->row, d->n, &m->column[c], &m->rt.err);
        m->bound.col[c] = &m->column[c];
        if (st == GNNC_OK) st = rt_bind_device_gather(&m->x, c);
        if (st != GNNC_OK) return st;
    }
    return GNNC_OK;
}

/* Binds one of the step's relations of links (all pairs, or the positive ones) to the edges d. A
 * program that has no such relation is left as it is. */
static gnnc_status bind_link_relation(const RtLinkBatches *b, RtMinibatch *m, rt_rel_kind kind,
                                      const RtStepEdges *d, const RtLinkBatch *of) {
    int space = b->part[kind - RT_REL_LINKS];
    if (space < 0) return GNNC_OK;
    const rt_space *all = m->x.program->spaces;
    int32_t *id = RT_NEWN(&m->rt.pool, int32_t, d->n + 1);
    if (!id) return rt_fail_nomem(&m->rt.err, "a batch of links");
    for (int64_t i = 0; i < d->n; i++) id[i] = (int32_t)i;
    m->bound.rel[space] = (RtRelation){.n_src = m->x.n[all[all[space].src].sym],
                                       .n_dst = m->x.n[all[all[space].dst].sym],
                                       .n_edges = d->n,
                                       .src = d->src,
                                       .dst = d->dst,
                                       .orig = {d->orig, NULL},
                                       .cell = d->cell,
                                       .id = id,
                                       .id_bound = d->n};
    m->x.n[all[space].sym] = d->n;
    return bind_columns(b, m, space, d, of);
}

/* Binds the maps of a step's pairs, or (`queries`) of its queries; with `lists` also of each
 * query's known and earlier links. All sizes are known before the first map is made. */
static gnnc_status bind_maps(const RtLinkBatches *b, RtMinibatch *m, bool queries, bool lists) {
    static const bool of_queries[RT_LINK_PARTS] = {false, false, true, true, true, true};
    for (int k = 0; k < RT_LINK_PARTS; k++) {
        bool is_list = k >= RT_REL_KNOWN - RT_REL_LINKS;
        if (b->part[k] < 0 || of_queries[k] != queries || (is_list && !lists)) continue;
        gnnc_status st = rt_bind_space(&m->x, b->part[k]);
        if (st != GNNC_OK) return st;
    }
    return GNNC_OK;
}

/* Binds the pairs that a batch scores, and the positive ones, which come first. */
static gnnc_status bind_pairs(const RtLinkBatches *b, RtMinibatch *m, const RtLinkBatch *of) {
    RtStepEdges pos = of->pairs;
    gnnc_status st;
    pos.n = of->n;
    TRY(st, bind_link_relation(b, m, RT_REL_LINKS, &of->pairs, of));
    TRY(st, bind_link_relation(b, m, RT_REL_POSITIVES, &pos, of));
    st = bind_maps(b, m, false, false);
out:
    return st;
}

/* Binds the queries and answers of a step, and if they are held out also the lists of true answers
 * that metrics leave out. */
static gnnc_status bind_asked(const RtLinkBatches *b, RtMinibatch *m, const RtLinkBatch *of) {
    const RtStepQueries *a = &of->asked;
    bool lists = of->held_out;
    gnnc_status st;
    TRY(st, bind_link_relation(b, m, RT_REL_QUERIES, &a->queries, of));
    TRY(st, bind_link_relation(b, m, RT_REL_ANSWERS, &a->answers, of));
    if (lists) TRY(st, bind_link_relation(b, m, RT_REL_KNOWN, &a->known, of));
    if (lists) TRY(st, bind_link_relation(b, m, RT_REL_EARLIER, &a->earlier, of));
    st = bind_maps(b, m, true, lists);
out:
    return st;
}

gnnc_status rt_link_batches_bind(const RtLinkBatches *b, RtMinibatch *m, const RtLinkBatch *of,
                                 RtError *err) {
    gnnc_status st = of->queries ? bind_asked(b, m, of) : bind_pairs(b, m, of);
    return st == GNNC_OK ? st : rt_fail(err, st, "%s", m->rt.err.text);
}

/* ---- neighbours ---------------------------------------------------------------------------- */
const double *rt_link_node_times(const gnnc_trainer *t, bool dst) {
    const rt_space *base = &t->program->spaces[t->links->base];
    return times_of(&t->x, dst ? base->dst : base->src);
}

/* The seeds of a batch: the ends of its pairs, each with its subgraph, its time and the key of its
 * random numbers. In evaluation the key is the link's number, so results do not depend on batches;
 * in training it is the place in the batch. */
static gnnc_status set_seeds(const RtLinkBatches *b, RtPool *pool, const RtLinkBatch *of,
                             RtSeeds *seeds) {
    int64_t n = of->pairs.n, k = of->n ? n / of->n - 1 : 0;
    int32_t *tree = RT_NEWN(pool, int32_t, n + 1);
    double *time = b->when ? RT_NEWN(pool, double, n + 1) : NULL;
    if (!tree || (b->when && !time)) return GNNC_E_NOMEM;
    for (int64_t i = 0; i < n; i++) {
        tree[i] = (int32_t)(i < of->n ? i : (i - of->n) / k);
        if (time) time[i] = of->when ? of->when[i] : b->when[of->pairs.row[i]];
    }
    /* What is judged is drawn by the link's number, where training takes its place in the batch. */
    const int32_t *key = of->key ? of->key : of->held_out ? of->pairs.row : NULL;
    *seeds = (RtSeeds){.n = n, .tree = tree, .time = time, .key = key};
    return GNNC_OK;
}

/* Do its edges come from this edge type of the data? */
static bool comes_from(const rt_program *p, int space, int type) {
    const rt_space *s = &p->spaces[space];
    if (s->rel == RT_REL_BASE) return space == type;
    return comes_from(p, s->base[0], type) || (s->base[1] >= 0 && comes_from(p, s->base[1], type));
}

/* What is strictly before a link has it not among it. */
bool rt_link_batches_hides(const gnnc_trainer *t, int space) {
    const rt_sampling *s = &t->program->sampling;
    while (t->program->spaces[space].rel != RT_REL_BASE) space = t->program->spaces[space].base[0];
    return s->exclude && (s->n_times == 0 || s->inclusive) &&
           comes_from(t->program, t->links->base, space);
}

gnnc_status rt_link_batches_ends_as_seeds(const RtLinkBatches *b, const RtBatchMap *map,
                                          RtMinibatch *m, const RtLinkBatch *of, RtSeeds ends[2],
                                          RtError *err) {
    const RtStepEdges *d = &of->pairs;
    const rt_space *base = &m->x.program->spaces[b->base];
    gnnc_status st = set_seeds(b, &m->rt.pool, of, &ends[0]);
    if (st != GNNC_OK) return rt_fail_nomem(err, "a batch of links");
    ends[1] = ends[0];
    ends[0].type = map->type_of_space[base->src];
    ends[1].type = map->type_of_space[base->dst];
    ends[0].id = d->src;
    ends[1].id = d->dst;
    ends[0].n_links = of->n;
    return GNNC_OK;
}

void rt_link_batches_take_ends(const RtMinibatch *m, RtLinkBatch *of) {
    of->pairs.src = m->batch->seed[0];
    of->pairs.dst = m->batch->seed[1];
}

gnnc_status rt_link_batches_neighbourhood(const RtLinkBatches *b, RtSampler *s,
                                          const RtSampleAt *at, const RtBatchMap *map,
                                          RtMinibatch *m, RtLinkBatch *of, RtError *err) {
    RtSeeds ends[2];
    gnnc_status st;
    TRY(st, rt_link_batches_ends_as_seeds(b, map, m, of, ends, err));
    TRY(st, rt_sample_groups(s, at, ends, 2, m->batch, err));
    rt_link_batches_take_ends(m, of);
out:
    return st;
}

gnnc_status rt_link_batches_draw_around(const RtLinkBatches *b, const RtLinkDrawer *by,
                                        const RtSampleAt *at, const RtBatchMap *map, RtMinibatch *m,
                                        RtLinkBatch *of, RtError *err) {
    RtSeeds ends[2];
    RtDrawnPairs pairs = {.n = of->n,
                          .k = of->n ? of->pairs.n / of->n - 1 : 0,
                          .edge = of->pairs.row,
                          .key = of->negative_key};
    gnnc_status st;
    TRY(st, rt_link_batches_ends_as_seeds(b, map, m, of, ends, err));
    TRY(st, rt_drawer_draw(by->by, by->here, at, ends, 2, by->chooses ? &pairs : NULL, by->slot,
                           m->batch, err));
    rt_link_batches_take_ends(m, of);
out:
    return st;
}

/* ---- batches of training ------------------------------------------------------------------ */
static bool trains_queries(const gnnc_trainer *t) {
    return t->program->sampling.train_links == RT_LINKS_QUERIES;
}

RtDrawnNegatives rt_link_how_drawn(const gnnc_trainer *t, bool held_out) {
    const RtLinkBatches *b = t->links;
    const rt_sampling *s = &t->program->sampling;
    return (RtDrawnNegatives){.how = s->corrupt,
                              .avoid = held_out ? !b->when : s->avoid,
                              .first = RT_SPLIT_TRAIN,
                              .last = held_out ? RT_SPLIT_TEST : RT_SPLIT_TRAIN,
                              .when = b->when,
                              .since = {rt_link_node_times(t, false), rt_link_node_times(t, true)}};
}

gnnc_status rt_link_batches_draw(const gnnc_trainer *t, RtPool *pool, const RtSampleAt *at,
                                 const int32_t *seed, int64_t n, bool elsewhere, RtLinkBatch *out,
                                 RtError *err) {
    const RtLinkBatches *b = t->links;
    uint64_t key = rt_draw_key(at->seed, at->epoch, at->batch, RT_DRAW_NEGATIVE);
    *out = (RtLinkBatch){.queries = trains_queries(t), .n = n, .negative_key = key};
    if (out->queries)
        return rt_links_query(&b->links, pool, seed, n, RT_SPLIT_TRAIN, 0, &out->asked, err);
    RtNegatives neg = {.k = t->program->sampling.negatives,
                       .drawn = rt_link_how_drawn(t, false),
                       .key = key,
                       .elsewhere = elsewhere};
    return rt_links_pairs(&b->links, pool, seed, n, &neg, &out->pairs, err);
}

int64_t rt_link_batches_of_split(const RtLinkBatches *b, bool queries, int split, int32_t *out) {
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

int64_t rt_link_batches_seeds(const gnnc_trainer *t, int32_t *out) {
    return rt_link_batches_of_split(t->links, trains_queries(t), RT_SPLIT_TRAIN, out);
}

const RtRelation *rt_link_batches_scored(const gnnc_trainer *t) {
    return t->links ? t->links->links.rel : NULL;
}

int rt_link_batches_base(const gnnc_trainer *t) {
    return t->links ? t->links->base : -1;
}

const RtRelation *rt_link_batches_ends(const gnnc_trainer *t, const RtBatchMap *map, int type[2]) {
    const rt_space *base = &t->program->spaces[t->links->base];
    type[0] = map->type_of_space[base->src];
    type[1] = map->type_of_space[base->dst];
    return t->links->links.rel;
}

void rt_link_batches_seeds_there(const gnnc_trainer *t, const RtBatchMap *map, int64_t batch,
                                 RtDeviceSamplerSpec *spec) {
    const rt_sampling *s = &t->program->sampling;
    const RtLinkBatches *b = t->links;
    spec->n_groups = 2;
    rt_link_batches_ends(t, map, spec->type);
    spec->n_seeds = batch * (1 + s->negatives);
    spec->n_trees = batch;
    spec->links = &b->links;
    spec->base = b->base;
    spec->negatives = rt_link_how_drawn(t, false);
}

/* ---- life ---------------------------------------------------------------------------------- */
/* Finds the program's spaces of links, sorts the edges by what they ask, and makes room to
 * evaluate. t->links owns all of it. */
gnnc_status rt_link_batches_start(gnnc_trainer *t) {
    RtLinkBatches *b = t->links = RT_NEW(&t->rt.pool, RtLinkBatches);
    RtPool *pool = &t->rt.pool;
    gnnc_status st;
    if (!b) return nomem(&t->x);
    for (int k = 0; k < RT_LINK_PARTS; k++) b->part[k] = -1;
    for (int s = 0; s < t->program->n_spaces; s++)
        if (t->program->spaces[s].drawn) b->part[t->program->spaces[s].rel - RT_REL_LINKS] = s;
    TRY(st, rt_batch_step_init(&b->test, &t->x, t, RT_PHASE_EVAL));
    TRY(st, index_links(t, b));
    b->batch = t->options.batch ? t->options.batch : t->program->sampling.batch;
    b->n_train = rt_link_batches_seeds(t, NULL);
    b->n_val = rt_link_batches_of_split(b, false, RT_SPLIT_VAL, NULL);
    b->held = RT_NEWN(pool, int32_t, b->links.rel->n_edges + 1);
    if (!b->held) return nomem(&t->x);
    st = rt_minibatch_new(pool, &pool->from, &t->x, NULL, &b->eval, &t->rt.err);
out:
    return st;
}

void rt_link_batches_stop(gnnc_trainer *t) {
    RtLinkBatches *b = t->links;
    if (!b) return;
    rt_minibatch_free(&b->eval);
    rt_batch_step_free(&b->test);
    rt_link_scores_stop(&b->scores);
    rt_device_pairs_free(b->negatives);
    t->links = NULL;
}

/* ---- what others ask --------------------------------------------------------------------- */
gnnc_status rt_link_batches_check_train(gnnc_trainer *t) {
    const RtLinkBatches *b = t->links;
    if (b->n_train >= (t->program->sampling.drop_last ? b->batch : 1)) return GNNC_OK;
    return rt_fail(&t->rt.err, GNNC_E_VALUE,
                   "%s: %lld %s of '%s' are in the train split: no batch of %lld", t->rt.bound->dir,
                   (long long)b->n_train, trains_queries(t) ? "queries" : "edges",
                   t->program->spaces[b->base].name, (long long)b->batch);
}

gnnc_status rt_link_batches_check(gnnc_trainer *t) {
    const RtLinkBatches *b = t->links;
    const rt_recipe *r = &t->program->recipe;
    gnnc_status st = rt_link_batches_check_train(t);
    if (st != GNNC_OK || t->keep < 0 || r->keep_split != RT_SPLIT_VAL || b->n_val) return st;
    return rt_fail(
        &t->rt.err, GNNC_E_MISSING,
        "%s: no edge of '%s' is in the validation split (2): the recipe chooses the epoch to "
        "keep, or to stop at, by the %s of these edges ('keep last' without 'stop after' needs "
        "none)",
        t->rt.bound->dir, t->program->spaces[b->base].name, r->keep_metric);
}
