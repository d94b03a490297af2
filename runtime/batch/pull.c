#include "pull_impl.h"

#include <string.h>

#include "runtime/bind/bind.h"
#include "runtime/exec/distributed.h"

static int64_t *of_process(const RtPulls *p, int64_t *counts, int r) {
    return counts + (int64_t)r * p->map.n_types;
}

static int owner_of(const RtPulls *p, int type, int64_t row) {
    const int64_t *bound = p->type[type].bound;
    int lo = 0, hi = p->n; /* bound[lo] <= row < bound[hi] */
    while (hi - lo > 1) {
        int mid = lo + (hi - lo) / 2;
        if (bound[mid] <= row)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

/* ---- messages -------------------------------------------------------------------------------- */
/* Exchanges what out, in and their sizes say, of `what`, and counts it. */
static gnnc_status exchange(const gnnc_trainer *t, const char *what) {
    RtPulls *p = t->pulls;
    if (p->failed != GNNC_OK) return p->failed;
    p->n_out[p->rank] = p->n_in[p->rank] = 0;
    for (int r = 0; r < p->n; r++) {
        p->sent_bytes += (int64_t)p->n_out[r];
        p->messages += p->n_out[r] > 0;
    }
    gnnc_status st = t->processes.exchange(t->processes.user, p->out, p->n_out, p->in, p->n_in);
    if (st == GNNC_OK) return GNNC_OK;
    return rt_fail(&p->err, st, "%s of other processes did not come: %s", what,
                   gnnc_status_text(st));
}

gnnc_status rt_pulls_end(gnnc_trainer *t, gnnc_status st) {
    RtPulls *p = t->pulls;
    t->rt.count.sent_bytes += p->sent_bytes;
    t->rt.count.messages += p->messages;
    p->sent_bytes = p->messages = 0;
    p->failed = st;
    return st == GNNC_OK ? st : rt_fail(&t->rt.err, st, "%s", p->err.text);
}

/* Sizes of the messages that go and come, `each` bytes for a row of a type (0: its columns'). */
static void set_sizes(RtPulls *p, int64_t *go, int64_t *come, size_t each, size_t *all_out,
                      size_t *all_in) {
    *all_out = *all_in = 0;
    for (int r = 0; r < p->n; r++) {
        p->n_out[r] = p->n_in[r] = 0;
        for (int k = 0; k < p->map.n_types && r != p->rank; k++) {
            size_t bytes = each ? each : p->type[k].row_bytes;
            p->n_out[r] += (size_t)of_process(p, go, r)[k] * bytes;
            p->n_in[r] += (size_t)of_process(p, come, r)[k] * bytes;
        }
        *all_out += p->n_out[r];
        *all_in += p->n_in[r];
    }
}

/* Room for messages of these sizes, one process's behind the other's. */
static gnnc_status make_room(const gnnc_trainer *t, RtGrow *out, size_t all_out, RtGrow *in,
                             size_t all_in) {
    RtPulls *p = t->pulls;
    gnnc_status st;
    TRY(st, rt_grow(&p->growth, out, (int64_t)all_out, 1, 0, &p->err));
    TRY(st, rt_grow(&p->growth, in, (int64_t)all_in, 1, 0, &p->err));
    size_t at_out = 0, at_in = 0;
    for (int r = 0; r < p->n; r++) {
        p->out[r] = p->n_out[r] ? (char *)out->p + at_out : NULL;
        p->in[r] = p->n_in[r] ? (char *)in->p + at_in : NULL;
        at_out += p->n_out[r];
        at_in += p->n_in[r];
    }
out:
    return st;
}

/* ---- the rows of a batch --------------------------------------------------------------------- */
/* The number of a row among those that stay here; -1: it is none. */
static int64_t find_kept(const RtPullType *y, int32_t row) {
    int64_t lo = 0, hi = y->n_kept;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (y->kept[mid] < row)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < y->n_kept && y->kept[lo] == row ? lo : -1;
}

/* Finds which of these different rows of a type others have to send. */
gnnc_status rt_pulls_want(gnnc_trainer *t, RtPool *pool, int type, int64_t n, const int32_t *id) {
    RtPulls *p = t->pulls;
    RtPullType *y = &p->type[type];
    y->n = n;
    y->id = id;
    y->place = RT_NEWN(pool, int32_t, n + 1);
    if (!y->place) return rt_fail_nomem(&t->rt.err, "rows of others");
    for (int64_t i = 0; i < n; i++) {
        int r = owner_of(p, type, id[i]);
        int64_t kept = r == p->rank ? -1 : find_kept(y, id[i]);
        y->place[i] = r == p->rank ? RT_PULL_OWN : RT_PULL_KEPT - (int32_t)kept;
        if (r == p->rank || kept >= 0) continue;
        y->place[i] = (int32_t)of_process(p, p->wanted, r)[type]++;
        t->rt.count.pulled_rows++;
    }
    return GNNC_OK;
}

/* The rows of a type that the batch reads, each once. */
static gnnc_status want_of_batch(gnnc_trainer *t, RtMinibatch *m, int type) {
    RtPullType *y = &t->pulls->type[type];
    RtPool *pool = &m->rt.pool;
    const RtBatchNodes *nodes = &m->batch->nodes[type];
    RtDistinctRows rows;
    gnnc_status st = rt_batch_once(pool, nodes, y->bound[t->pulls->n], &rows, &t->rt.err);
    if (st != GNNC_OK) return st;
    int32_t *id = RT_NEWN(pool, int32_t, rows.n + 1);
    if (!id) return rt_fail_nomem(&t->rt.err, "a batch");
    for (int64_t i = 0; i < rows.n; i++) id[i] = nodes->id[rows.first[i]];
    y->row = rows.distinct;
    return rt_pulls_want(t, pool, type, rows.n, id);
}

/* Tells each owner how many rows are wanted of it, and hears how many each process wants. */
static gnnc_status tell_counts(const gnnc_trainer *t) {
    RtPulls *p = t->pulls;
    size_t n_bytes = (size_t)p->map.n_types * sizeof *p->wanted;
    for (int r = 0; r < p->n; r++) {
        p->out[r] = of_process(p, p->wanted, r);
        p->in[r] = of_process(p, p->asked, r);
        p->n_out[r] = p->n_in[r] = n_bytes;
    }
    gnnc_status st = exchange(t, "row numbers");
    for (int r = 0; r < p->n && st == GNNC_OK; r++)
        for (int k = 0; k < p->map.n_types && r != p->rank; k++) {
            const int64_t *bound = p->type[k].bound;
            int64_t n = of_process(p, p->asked, r)[k];
            int64_t most = bound ? bound[p->rank + 1] - bound[p->rank] : 0;
            if (n < 0 || n > most)
                return rt_fail(&p->err, GNNC_E_STATE,
                               "rank %d asks rank %d for %lld rows of a table, of which it has "
                               "%lld",
                               r, p->rank, (long long)n, (long long)most);
        }
    return st;
}

/* Are these rows, which another process asks for, of this one? */
static gnnc_status check_ids(const gnnc_trainer *t, int from, int type, const int32_t *id,
                             int64_t n) {
    RtPulls *p = t->pulls;
    const int64_t *bound = p->type[type].bound;
    for (int64_t i = 0; i < n; i++)
        if (id[i] < bound[p->rank] || id[i] >= bound[p->rank + 1])
            return rt_fail(&p->err, GNNC_E_STATE,
                           "rank %d asks rank %d for row %d of '%s', which it does not have", from,
                           p->rank, id[i], t->program->spaces[p->map.space_of_type[type]].name);
    return GNNC_OK;
}

/* Tells each owner which rows, type by type. */
static gnnc_status tell_ids(const gnnc_trainer *t) {
    RtPulls *p = t->pulls;
    size_t all_out, all_in;
    gnnc_status st;
    set_sizes(p, p->wanted, p->asked, sizeof(int32_t), &all_out, &all_in);
    TRY(st, make_room(t, &p->ids_out, all_out, &p->ids_in, all_in));
    for (int k = 0; k < p->map.n_types; k++) {
        const RtPullType *y = &p->type[k];
        for (int64_t i = 0; i < y->n; i++) {
            if (y->place[i] < 0) continue;
            int r = owner_of(p, k, y->id[i]);
            int32_t *to = (int32_t *)(uintptr_t)p->out[r];
            for (int before = 0; before < k; before++) to += of_process(p, p->wanted, r)[before];
            to[y->place[i]] = y->id[i];
        }
    }
    TRY(st, exchange(t, "row numbers"));
    for (int r = 0; r < p->n; r++) {
        const int32_t *id = p->in[r];
        for (int k = 0; k < p->map.n_types && r != p->rank && id; k++) {
            int64_t n = of_process(p, p->asked, r)[k];
            if (n) TRY(st, check_ids(t, r, k, id, n));
            id += n;
        }
    }
out:
    return st;
}

/* Writes the rows that process r asked for into its message, column by column. */
static void put_rows(const gnnc_trainer *t, int r) {
    RtPulls *p = t->pulls;
    char *to = (char *)(uintptr_t)p->out[r];
    for (int c = 0; c < p->n_columns; c++) {
        const RtPullColumn *y = &p->column[c];
        const int32_t *id = p->ids_in.p;
        for (int k = 0; k < r * p->map.n_types + y->type; k++) id += p->asked[k];
        const char *from = rt_column_values(t->rt.bound->col[y->column]);
        for (int64_t i = 0; i < of_process(p, p->asked, r)[y->type]; i++, to += y->row_bytes)
            memcpy(to, from + (size_t)id[i] * y->row_bytes, y->row_bytes);
    }
}

/* Sends the rows that others asked for, and gets those that were asked for. */
static gnnc_status send_rows(const gnnc_trainer *t) {
    RtPulls *p = t->pulls;
    size_t all_out, all_in;
    gnnc_status st;
    set_sizes(p, p->asked, p->wanted, 0, &all_out, &all_in);
    TRY(st, make_room(t, &p->rows_out, all_out, &p->rows_in, all_in));
    for (int r = 0; r < p->n; r++)
        if (p->n_out[r]) put_rows(t, r);
    st = exchange(t, "rows");
out:
    return st;
}

/* Row i of those that were wanted of the column's type; NULL: it is this process's own. */
const char *rt_pulls_row(const RtPulls *p, const RtPullColumn *c, int64_t i) {
    const RtPullType *y = &p->type[c->type];
    int32_t place = y->place[i];
    if (place == RT_PULL_OWN) return NULL;
    if (place <= RT_PULL_KEPT) return c->kept + (size_t)(RT_PULL_KEPT - place) * c->row_bytes;
    const char *from = p->in[owner_of(p, c->type, y->id[i])];
    return from + (size_t)place * c->row_bytes;
}

/* What comes of the next column lies behind what came of this one. */
void rt_pulls_pass_over(RtPulls *p, const RtPullColumn *c) {
    for (int r = 0; r < p->n; r++) {
        size_t n = (size_t)of_process(p, p->wanted, r)[c->type];
        if (n) p->in[r] = (char *)p->in[r] + n * c->row_bytes;
    }
}

/* Nothing is wanted yet. */
void rt_pulls_begin(RtPulls *p) {
    memset(p->wanted, 0, (size_t)p->n * (size_t)p->map.n_types * sizeof *p->wanted);
    for (int k = 0; k < p->map.n_types; k++) p->type[k].n = 0;
}

/* Sends and gets what is wanted. */
gnnc_status rt_pulls_exchange(const gnnc_trainer *t) {
    gnnc_status st = tell_counts(t);
    if (st == GNNC_OK) st = tell_ids(t);
    return st == GNNC_OK ? send_rows(t) : st;
}

/* Writes the rows that came into the batch. */
static void take_rows(RtPulls *p) {
    RtMinibatch *m = p->into;
    for (int c = 0; c < p->n_columns && m; c++) {
        const RtPullColumn *y = &p->column[c];
        char *to = m->column_buf[y->column].a.p;
        for (int64_t i = 0; i < m->batch->nodes[y->type].n; i++) {
            const char *from = rt_pulls_row(p, y, p->type[y->type].row[i]);
            if (from) memcpy(to + (size_t)i * y->row_bytes, from, y->row_bytes);
        }
        rt_pulls_pass_over(p, y);
    }
}

/* Brings what is wanted into the batch: RtBackgroundJob. */
static gnnc_status bring(void *trainer) {
    const gnnc_trainer *t = trainer;
    gnnc_status st = rt_pulls_exchange(t);
    if (st == GNNC_OK) take_rows(t->pulls);
    return st;
}

/* Wants what the batch reads of others. */
static gnnc_status want_batch(gnnc_trainer *t, RtMinibatch *m) {
    RtPulls *p = t->pulls;
    gnnc_status st = rt_pulls_wait(t); /* one after the other */
    if (st != GNNC_OK) return st;
    rt_pulls_begin(p);
    p->into = m;
    for (int k = 0; k < p->map.n_types && m && st == GNNC_OK; k++)
        if (p->type[k].bound) st = want_of_batch(t, m, k);
    return st;
}

gnnc_status rt_pulls_batch(gnnc_trainer *t, RtMinibatch *m) {
    gnnc_status st = want_batch(t, m);
    return st == GNNC_OK ? rt_pulls_end(t, bring(t)) : st;
}

gnnc_status rt_pulls_start(gnnc_trainer *t, RtMinibatch *m) {
    RtPulls *p = t->pulls;
    gnnc_status st = want_batch(t, m);
    if (st != GNNC_OK) return st;
    if (!p->thread && t->processes.exchange_in_thread)
        p->thread = rt_background_new(&t->rt.pool, &t->processes);
    p->pending = p->thread != NULL;
    if (!p->pending) return rt_pulls_end(t, bring(t));
    rt_background_run(p->thread, bring, t);
    return GNNC_OK;
}

gnnc_status rt_pulls_wait(gnnc_trainer *t) {
    RtPulls *p = t->pulls;
    if (!p->pending) return rt_pulls_end(t, p->failed);
    gnnc_status st = rt_background_wait(p->thread);
    p->pending = false;
    t->rt.count.beside_bytes += p->sent_bytes;
    return rt_pulls_end(t, st);
}

/* ---- all rows -------------------------------------------------------------------------------- */
static bool reads(const gnnc_trainer *t, const rt_phase *phase, const RtPullColumn *c) {
    int buf = t->program->columns[c->column].buf;
    return t->program->bufs[buf].whole >> (phase - t->program->phases) & 1;
}

/* Brings all rows of a column, into memory of the pool. */
static gnnc_status bring_all(gnnc_trainer *t, RtPullColumn *c) {
    enum { LEAST = 1 << 10 }; /* less would stay in the pool */
    RtPulls *p = t->pulls;
    const int64_t *bound = p->type[c->type].bound;
    const char *own = rt_column_values(t->rt.bound->col[c->column]);
    size_t n_bytes = (size_t)bound[p->n] * c->row_bytes;
    size_t live = (size_t)rt_trainer_counters(t).live_bytes;
    gnnc_status st;
    TRY(st, rt_pulls_wait(t));
    TRY(st, rt_memory_more(&t->x, &t->memory, (size_t)t->options.max_memory, live, n_bytes,
                           "features of all rows", ", which this phase reads"));
    c->all = rt_pool_alloc(&t->rt.pool, n_bytes < LEAST ? LEAST : n_bytes, 1);
    if (!c->all) return rt_fail_nomem(&t->rt.err, "features of all rows");
    for (int r = 0; r < p->n; r++) {
        p->out[r] = own + (size_t)bound[p->rank] * c->row_bytes;
        p->n_out[r] = (size_t)(bound[p->rank + 1] - bound[p->rank]) * c->row_bytes;
        p->in[r] = (char *)c->all + (size_t)bound[r] * c->row_bytes;
        p->n_in[r] = (size_t)(bound[r + 1] - bound[r]) * c->row_bytes;
    }
    memcpy(p->in[p->rank], p->out[p->rank], p->n_out[p->rank]);
    st = rt_pulls_end(t, exchange(t, "rows"));
out:
    return st;
}

gnnc_status rt_pulls_run_whole(gnnc_trainer *t, const rt_phase *phase) {
    RtPulls *p = t->pulls;
    gnnc_status st = GNNC_OK;
    for (int i = 0; p && i < p->n_columns && st == GNNC_OK; i++) {
        RtPullColumn *c = &p->column[i];
        void **buf = &t->x.buf[t->program->columns[c->column].buf];
        if (!reads(t, phase, c)) continue;
        c->here = *buf;
        st = bring_all(t, c);
        if (st == GNNC_OK) *buf = c->all;
    }
    if (st == GNNC_OK) st = rt_bind_run_whole(&t->x, phase);
    for (int i = 0; p && i < p->n_columns; i++) {
        RtPullColumn *c = &p->column[i];
        if (c->all) t->x.buf[t->program->columns[c->column].buf] = c->here;
        rt_pool_drop(&t->rt.pool, c->all);
        c->here = c->all = NULL;
    }
    return st;
}

/* ---- which columns --------------------------------------------------------------------------- */
/* Is the column drawn by, or a label or weight, which every process reads of all rows? */
static bool decides(const rt_sampling *s, int column) {
    for (int i = 0; i < s->n_weights; i++)
        if (s->weights[i] == column) return true;
    return s->label == column || s->split == column;
}

/* May the rows of a column be pulled: numbers of nodes that only kernels read, as the data have
 * them? */
static bool can_pull(const gnnc_trainer *t, const RtBatchMap *map, int column) {
    const rt_program *p = t->program;
    const rt_column *want = &p->columns[column];
    const RtColumn *c = t->rt.bound->col[column];
    if (!c || want->buf < 0 || !p->bufs[want->buf].in_batches) return false;
    return c->kind == RT_COL_FLOAT && want->kind == RT_COL_FLOAT &&
           map->type_of_space[want->space] >= 0 && !want->is_label &&
           !decides(&p->sampling, column);
}

/* Why this program cannot pull rows on these data; NULL: it can. */
static const char *lacks(const gnnc_trainer *t) {
    const rt_program *p = t->program;
    if (rt_dist_several(&t->x)) return "its processes share rows, not steps";
    if (!p->sampling.batch) return "its steps see the whole graph; 'sample' makes batches";
    if (p->sampling.train_links != RT_LINKS_NONE) return "it scores links";
    if (t->rt.device) return "it runs on a GPU; --device=cpu";
    if (!t->processes.exchange) return "the host has no 'exchange'";
    return NULL;
}

/* The bounds of the processes' rows of a table in parts. */
static gnnc_status bound_rows(gnnc_trainer *t, const RtTable *table, const int64_t **out) {
    const RtPulls *p = t->pulls;
    if (table->n_parts < p->n)
        return rt_fail(&t->rt.err, GNNC_E_STATE,
                       "%s: %d processes pull rows of data in %d part%s: gnnc partition makes as "
                       "many parts, or more",
                       t->rt.bound->dir, p->n, table->n_parts ? table->n_parts : 1,
                       table->n_parts > 1 ? "s" : "");
    int64_t *bound = RT_NEWN(&t->rt.pool, int64_t, p->n + 1);
    if (!bound) return rt_fail_nomem(&t->rt.err, "rows of processes");
    for (int r = 0; r <= p->n; r++) bound[r] = rt_share_begin(table, r, p->n);
    *out = bound;
    return GNNC_OK;
}

/* Lists the columns whose rows are pulled, by type. */
static gnnc_status find_columns(gnnc_trainer *t) {
    RtPulls *p = t->pulls;
    const rt_program *m = t->program;
    gnnc_status st = GNNC_OK;
    for (int k = 0; k < p->map.n_types; k++)
        for (int i = 0; i < m->n_columns; i++) {
            if (!can_pull(t, &p->map, i) || p->map.type_of_space[m->columns[i].space] != k)
                continue;
            RtPullType *y = &p->type[k];
            const RtColumn *c = t->rt.bound->col[i];
            size_t row_bytes = (size_t)rt_column_width(c) * rt_column_value_bytes(c);
            if (!y->bound)
                TRY(st, bound_rows(t, t->rt.bound->table[p->map.space_of_type[k]], &y->bound));
            p->column[p->n_columns++] =
                (RtPullColumn){.column = i, .type = k, .row_bytes = row_bytes};
            y->row_bytes += row_bytes;
        }
    if (!p->n_columns)
        st = rt_fail(&t->rt.err, GNNC_E_STATE,
                     "%d processes cannot pull rows (pull_rows): batches read no float column of "
                     "nodes",
                     p->n);
out:
    return st;
}

/* Of columns that are read as a whole here only this process's rows were checked. */
static gnnc_status check_others(gnnc_trainer *t, const RtPulledColumn *pulled) {
    gnnc_status st = GNNC_OK;
    for (int i = 0; i < t->program->n_columns && st == GNNC_OK; i++) {
        const RtTable *table = rt_bind_table_of(&t->x, &t->program->columns[i]);
        const RtColumn *c = rt_bind_data_column(&t->x, i);
        if (!c || !table->n_parts || c->kind != RT_COL_FLOAT || pulled[i].is) continue;
        if (rt_bind_is_used(t->program, i)) st = rt_column_check(c, table->name, &t->rt.err);
    }
    return st;
}

/* What the fingerprint sees of a column: of each row what its owner has. */
static gnnc_status see_together(gnnc_trainer *t, const RtPullColumn *y, RtBytes *seen) {
    RtPulls *p = t->pulls;
    const RtColumn *c = rt_bind_data_column(&t->x, y->column);
    size_t row_bytes = (size_t)rt_column_width(c) * rt_column_value_bytes(c);
    size_t n_bytes = (size_t)c->n_rows * row_bytes, n = rt_bind_seen_bytes(n_bytes);
    uint8_t *all = rt_pool_alloc(&t->rt.pool, (size_t)p->n + 1, n + 1);
    if (!all) return rt_fail_nomem(&t->rt.err, "features");
    for (int r = 0; r < p->n; r++) {
        p->out[r] = all + (size_t)p->rank * n;
        p->in[r] = all + (size_t)r * n;
        p->n_out[r] = p->n_in[r] = n;
    }
    rt_bind_copy_samples(rt_column_values(c), n_bytes, all + (size_t)p->rank * n);
    gnnc_status st = exchange(t, "what they have of features");
    p->sent_bytes = p->messages = 0; /* of no run of a phase */
    st = rt_pulls_end(t, st);
    uint8_t *to = all + (size_t)p->n * n;
    for (size_t k = 0; k < n && st == GNNC_OK; k++) {
        int64_t row = (int64_t)(rt_bind_seen_at(n_bytes, k) / row_bytes);
        to[k] = all[(size_t)owner_of(p, y->type, row) * n + k];
    }
    *seen = (RtBytes){to, n};
    return st;
}

/* Tells binding which rows are here, and what all together see of the columns. */
static gnnc_status tell_binding(gnnc_trainer *t) {
    RtPulls *p = t->pulls;
    RtPulledColumn *pulled = RT_NEWN(&t->rt.pool, RtPulledColumn, t->program->n_columns);
    if (!pulled) return rt_fail_nomem(&t->rt.err, "features");
    gnnc_status st = GNNC_OK;
    for (int i = 0; i < p->n_columns && st == GNNC_OK; i++) {
        const RtPullColumn *c = &p->column[i];
        const int64_t *bound = p->type[c->type].bound;
        RtPulledColumn *to = &pulled[c->column];
        *to = (RtPulledColumn){.is = true, .lo = bound[p->rank], .hi = bound[p->rank + 1]};
        st = see_together(t, c, &to->seen);
    }
    t->rt.bound->pulled = pulled;
    return st == GNNC_OK ? check_others(t, pulled) : st;
}

/* ---- life ------------------------------------------------------------------------------------ */
/* Makes tables for the processes and types. */
static gnnc_status tables_new(gnnc_trainer *t) {
    RtPool *pool = &t->rt.pool;
    RtPulls *p = t->pulls = RT_NEW(pool, RtPulls);
    if (!p) return rt_fail_nomem(&t->rt.err, "rows of processes");
    *p = (RtPulls){.rank = t->processes.rank, .n = t->processes.n, .growth.from = pool->from};
    gnnc_status st = rt_batch_map(pool, t->program, &p->map, &t->rt.err);
    if (st != GNNC_OK) return st;
    p->column = RT_NEWN(pool, RtPullColumn, t->program->n_columns);
    p->type = RT_NEWN(pool, RtPullType, p->map.n_types);
    p->wanted = RT_NEWN(pool, int64_t, (int64_t)p->n * p->map.n_types);
    p->asked = RT_NEWN(pool, int64_t, (int64_t)p->n * p->map.n_types);
    p->out = RT_NEWN(pool, const void *, p->n);
    p->in = RT_NEWN(pool, void *, p->n);
    p->n_out = RT_NEWN(pool, size_t, p->n);
    p->n_in = RT_NEWN(pool, size_t, p->n);
    if (!p->column || !p->type || !p->wanted || !p->asked || !p->out || !p->in || !p->n_out ||
        !p->n_in)
        return rt_fail_nomem(&t->rt.err, "rows of processes");
    return GNNC_OK;
}

static uint64_t mix(uint64_t h, uint64_t word) {
    return (h ^ word) * 0x100000001b3u;
}

/* What sizes of messages follow from: columns and bounds, in all processes alike. */
static uint64_t hash_parts(const RtPulls *p) {
    uint64_t h = 0xcbf29ce484222325u;
    for (int i = 0; i < p->n_columns; i++)
        h = mix(mix(h, (uint64_t)p->column[i].column), p->column[i].row_bytes);
    for (int k = 0; k < p->map.n_types; k++)
        for (int r = 0; r <= p->n && p->type[k].bound; r++)
            h = mix(h, (uint64_t)p->type[k].bound[r]);
    return h;
}

/* Processes of other programs or data would send messages that others do not wait for. */
static gnnc_status agree(gnnc_trainer *t) {
    static const char *const what[] = {"way to read features (pull_rows)", "program",
                                       "division of the data into parts"};
    enum { N = sizeof what / sizeof *what };
    const gnnc_processes *p = &t->processes;
    uint64_t own[N] = {0}; /* those that pull nothing compare the rest before their first step */
    if (t->pulls) {
        own[0] = 1;
        own[1] = t->program->fingerprint;
        own[2] = hash_parts(t->pulls);
    }
    uint64_t first[N];
    memcpy(first, own, sizeof first);
    gnnc_status st = p->broadcast(p->user, first, sizeof first, 0);
    if (st != GNNC_OK)
        return rt_fail(&t->rt.err, st, "what rank 0 sends did not come: %s", gnnc_status_text(st));
    for (int i = 0; i < N && st == GNNC_OK; i++)
        if (first[i] != own[i])
            st = rt_fail(&t->rt.err, GNNC_E_STATE, "rank %d trains with another %s than rank 0",
                         p->rank, what[i]);
    return st;
}

gnnc_status rt_pulls_open(gnnc_trainer *t) {
    gnnc_status st = GNNC_OK;
    if (t->processes.n < 2) return GNNC_OK; /* one process has all rows */
    const char *why = t->options.pull_rows ? lacks(t) : NULL;
    if (why)
        return rt_fail(&t->rt.err, GNNC_E_STATE, "%d processes cannot pull rows (pull_rows): %s",
                       t->processes.n, why);
    if (rt_dist_several(&t->x) || !t->program->sampling.batch) return GNNC_OK; /* no shared steps */
    if (t->options.pull_rows) {
        TRY(st, tables_new(t));
        TRY(st, find_columns(t));
    }
    TRY(st, agree(t));
    if (t->pulls) st = tell_binding(t);
out:
    return st;
}

void rt_pulls_close(gnnc_trainer *t) {
    RtPulls *p = t->pulls;
    if (!p) return;
    rt_background_end(p->thread);
    RtGrow *all[] = {&p->ids_out, &p->ids_in, &p->rows_out, &p->rows_in};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) rt_grow_free(&p->growth, all[i]);
    t->pulls = NULL;
}
