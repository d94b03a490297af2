/* Features in parts: which columns have rows in several processes, and who has which (pull.h). */
#include "pull_impl.h"

#include <string.h>

#include "runtime/bind/bind.h"
#include "runtime/exec/distributed.h"
#include "train_peers.h"
#include "train_shares.h"

/* Is the column drawn by, or a label or weight, which every process reads of all rows? */
static bool decides(const rt_sampling *s, int column) {
    for (int i = 0; i < s->n_weights; i++)
        if (s->weights[i] == column) return true;
    return s->label == column || s->split == column;
}

/* May the rows of a column be pulled: of nodes, as the data have them, that only kernels read?
 * Index arrays of all rows would need all of these. */
static bool can_pull(const gnnc_trainer *t, const RtBatchMap *map, int column) {
    const rt_program *p = t->program;
    const rt_column *want = &p->columns[column];
    const RtColumn *c = t->rt.bound->col[column];
    if (!c || c->kind != want->kind || !rt_column_may_be_shared(c)) return false;
    if (rt_column_indexes(c) && rt_bind_reads_whole(p, column)) return false;
    return rt_bind_batches_read(p, column) && map->type_of_space[want->space] >= 0 &&
           !want->is_label && !decides(&p->sampling, column);
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

/* The entries of this process's rows: bounds are read, as they are relied on. */
static gnnc_status find_own_entries(gnnc_trainer *t, RtPullColumn *y) {
    const RtPulls *p = t->pulls;
    const RtCsr *m = &t->rt.bound->col[y->column]->csr;
    const int64_t *bound = p->type[y->type].bound;
    int64_t lo = bound[p->rank], n = bound[p->rank + 1] - lo, first = n ? m->ptr[lo] : 0;
    int64_t *ptr = RT_NEWN(&t->rt.pool, int64_t, n + 1);
    if (!ptr) return rt_fail_nomem(&t->rt.err, "features");
    for (int64_t i = 0; i < n; i++) {
        ptr[i + 1] = m->ptr[lo + i + 1] - first;
        if (first >= 0 && ptr[i + 1] >= ptr[i] && ptr[i + 1] <= m->nnz - first) continue;
        return rt_fail(&t->rt.err, GNNC_E_FORMAT, "%s: its file was changed",
                       rt_bind_column_name(&t->x, y->column));
    }
    y->own = (RtCsr){n, m->n_cols, ptr[n], ptr, m->col + first, m->val + first};
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
            RtPullColumn *to = &p->column[p->n_columns++];
            const RtColumn *c = t->rt.bound->col[i];
            bool sparse = c->kind == RT_COL_CSR;
            size_t row_bytes = (size_t)rt_column_width(c) * rt_column_value_bytes(c);
            if (!y->bound)
                TRY(st, bound_rows(t, t->rt.bound->table[p->map.space_of_type[k]], &y->bound));
            *to = (RtPullColumn){.column = i, .type = k, .sparse = sparse};
            if (sparse) TRY(st, find_own_entries(t, to));
            if (!sparse) y->row_bytes += to->row_bytes = row_bytes;
            y->n_sparse += sparse;
            p->any_sparse |= sparse;
        }
    if (!p->n_columns)
        st = rt_fail(&t->rt.err, GNNC_E_STATE,
                     "%d processes cannot pull rows (pull_rows): batches read no column of nodes "
                     "that can be pulled",
                     p->n);
out:
    return st;
}

/* An array that lies in a file is read. */
static gnnc_status to_memory(gnnc_trainer *t, const void **values, int64_t n, size_t element) {
    if (!n || !rt_dataset_maps(t->rt.bound->data, *values)) return GNNC_OK;
    void *own = rt_pool_alloc(&t->rt.bound->data->pool, (size_t)n, element);
    if (!own) return rt_fail_nomem(&t->rt.err, "a column");
    *values = memcpy(own, *values, (size_t)n * element);
    return GNNC_OK;
}

/* What indexes is read, as later code relies on what was checked. */
static gnnc_status read_indices(gnnc_trainer *t, RtColumn *c) {
    const void *codes = c->values, *ptr = c->csr.ptr, *col = c->csr.col;
    gnnc_status st = GNNC_OK;
    if (rt_column_has_codes(c))
        TRY(st, to_memory(t, &codes, c->n_rows * rt_column_width(c), sizeof *c->i32));
    if (c->kind == RT_COL_CSR) {
        TRY(st, to_memory(t, &ptr, c->n_rows + 1, sizeof *c->csr.ptr));
        TRY(st, to_memory(t, &col, c->csr.nnz, sizeof *c->csr.col));
    }
    for (int i = 0; i < t->program->n_columns; i++) {
        int buf = t->program->columns[i].buf;
        if (buf >= 0 && c->values && t->x.buf[buf] == c->values) t->x.buf[buf] = (void *)codes;
    }
    c->values = codes;
    c->csr.ptr = ptr;
    c->csr.col = col;
out:
    return st;
}

/* Of columns that are read as a whole here only this process's rows were checked. */
static gnnc_status check_others(gnnc_trainer *t, const RtPulledColumn *pulled) {
    gnnc_status st = GNNC_OK;
    for (int i = 0; i < t->program->n_columns; i++) {
        const RtTable *table = rt_bind_table_of(&t->x, &t->program->columns[i]);
        RtColumn *c = rt_bind_data_column(&t->x, i);
        if (!c || !table->n_parts || !rt_column_may_be_shared(c) || pulled[i].is) continue;
        if (!rt_bind_is_used(t->program, i)) continue;
        TRY(st, read_indices(t, c));
        TRY(st, rt_column_check(c, table->name, &t->rt.err));
    }
out:
    return st;
}

/* What the fingerprint sees of a column, as processes send it to each other: bytes of its arrays,
 * and behind them, of a csr column, from and to where the entries of the process's rows lie. */
typedef struct {
    RtSeenArray of[RT_SEEN_ARRAYS];
    int n_arrays;
    size_t n, all_bytes;
} Seen;

static size_t seen_bytes(const RtSeenArray *a) {
    return rt_bind_seen_bytes((size_t)a->n * a->element);
}

static Seen seen_of(const RtPullColumn *y, const RtColumn *c) {
    Seen s = {.n_arrays = 0};
    s.n_arrays = rt_bind_arrays_of(c, s.of);
    for (int k = 0; k < s.n_arrays; k++) s.n += seen_bytes(&s.of[k]);
    s.all_bytes = s.n + (y->sparse ? 2 * sizeof(int64_t) : 0);
    return s;
}

/* Writes what this process has. */
static void put_seen(const Seen *s, const RtPullColumn *y, const RtColumn *c, uint8_t *to) {
    int64_t first = y->sparse ? y->own.col - c->csr.col : 0;
    if (y->sparse) memcpy(to + s->n, (int64_t[]){first, first + y->own.nnz}, s->all_bytes - s->n);
    for (int k = 0; k < s->n_arrays; k++) {
        rt_bind_copy_samples(s->of[k].values, (size_t)s->of[k].n * s->of[k].element, to);
        to += seen_bytes(&s->of[k]);
    }
}

/* The process whose entry i of a csr column counts. */
static int owner_of_entry(const RtPulls *p, const Seen *s, const uint8_t *all, int64_t i) {
    for (int r = 0; r < p->n; r++) {
        int64_t range[2];
        memcpy(range, all + (size_t)r * s->all_bytes + s->n, sizeof range);
        if (range[0] <= i && i < range[1]) return r;
    }
    return 0; /* the data of some process are wrong, whose own check says so */
}

/* .. element i of the k-th array of a column. */
static int owner_of(const RtPulls *p, const RtPullColumn *y, const Seen *s, const uint8_t *all,
                    int k, int64_t i, int64_t width) {
    int64_t last = p->type[y->type].bound[p->n] - 1;
    if (!y->sparse) return rt_pulls_owner(p, y->type, i / width);
    if (k > 0) return owner_of_entry(p, s, all, i);
    return last < 0 ? 0 : rt_pulls_owner(p, y->type, i < last ? i : last);
}

/* What the fingerprint sees of a column: of each row what its owner has. */
static gnnc_status see_together(gnnc_trainer *t, const RtPullColumn *y, RtBytes *seen) {
    RtPulls *p = t->pulls;
    RtPool *pool = &t->rt.pool;
    const RtColumn *c = rt_bind_data_column(&t->x, y->column);
    Seen s = seen_of(y, c);
    uint8_t *all = rt_pool_alloc(pool, (size_t)p->n, s.all_bytes + 1);
    uint8_t *to = RT_NEWN(pool, uint8_t, s.n + 1);
    if (!all || !to) return rt_fail_nomem(&t->rt.err, "features");
    *seen = (RtBytes){to, s.n};
    for (int r = 0; r < p->n; r++) {
        p->out[r] = all + (size_t)p->rank * s.all_bytes;
        p->in[r] = all + (size_t)r * s.all_bytes;
        p->n_out[r] = p->n_in[r] = s.all_bytes;
    }
    put_seen(&s, y, c, p->in[p->rank]);
    gnnc_status st = rt_pulls_send(t, "what they have of features");
    p->sent_bytes = p->messages = 0; /* of no run of a phase */
    st = rt_pulls_end(t, st);
    size_t at = 0;
    for (int k = 0; k < s.n_arrays && st == GNNC_OK; k++)
        for (size_t i = 0; i < seen_bytes(&s.of[k]); i++, at++) {
            size_t element = s.of[k].element;
            int64_t of = (int64_t)(rt_bind_seen_at((size_t)s.of[k].n * element, i) / element);
            int r = owner_of(p, y, &s, all, k, of, rt_column_width(c));
            to[at] = all[(size_t)r * s.all_bytes + at];
        }
    rt_pool_drop(pool, all);
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
    p->wanted = RT_NEWN(pool, int64_t, (int64_t)p->n *rt_pulls_words(p));
    p->asked = RT_NEWN(pool, int64_t, (int64_t)p->n *rt_pulls_words(p));
    p->out = RT_NEWN(pool, const void *, p->n);
    p->in = RT_NEWN(pool, void *, p->n);
    p->n_out = RT_NEWN(pool, size_t, p->n);
    p->n_in = RT_NEWN(pool, size_t, p->n);
    p->entries_out = RT_NEWN(pool, size_t, p->n);
    p->entries_in = RT_NEWN(pool, size_t, p->n);
    if (!p->column || !p->type || !p->wanted || !p->asked || !p->out || !p->in || !p->n_out ||
        !p->n_in || !p->entries_out || !p->entries_in)
        return rt_fail_nomem(&t->rt.err, "rows of processes");
    return GNNC_OK;
}

static uint64_t mix(uint64_t h, uint64_t word) {
    return (h ^ word) * 0x100000001b3u;
}

/* Sizes of messages follow from which columns there are, what a row of them is, and the bounds. */
static uint64_t hash_columns(const RtPulls *p) {
    uint64_t h = 0xcbf29ce484222325u;
    for (int i = 0; i < p->n_columns; i++) h = mix(h, (uint64_t)p->column[i].column);
    return h;
}

static uint64_t hash_parts(const RtPulls *p) {
    uint64_t h = 0xcbf29ce484222325u;
    for (int k = 0; k < p->map.n_types; k++)
        for (int r = 0; r <= p->n && p->type[k].bound; r++)
            h = mix(h, (uint64_t)p->type[k].bound[r]);
    return h;
}

/* Processes of other programs, data or evaluations would send messages that others do not wait for.
 */
static gnnc_status agree(gnnc_trainer *t) {
    static const char *const what[] = {"way to read features (pull_rows)", "program",
                                       "list of columns to pull", "division of the data into parts",
                                       RT_SHARES_EVALUATIONS};
    enum { N = sizeof what / sizeof *what };
    uint64_t own[N] = {0}; /* those that pull nothing compare the rest before their first step */
    if (t->pulls) {
        own[0] = 1;
        own[1] = t->program->fingerprint;
        own[2] = hash_columns(t->pulls);
        own[3] = hash_parts(t->pulls);
        own[4] = rt_shares_evaluations(t); /* rows come before one, too */
    }
    uint64_t first[N];
    memcpy(first, own, sizeof first);
    gnnc_status st = rt_processes_broadcast(t, first, sizeof first, 0);
    for (int i = 0; i < N && st == GNNC_OK; i++)
        if (first[i] != own[i])
            st = rt_fail(&t->rt.err, GNNC_E_STATE, "rank %d trains with another %s than rank 0",
                         t->processes.rank, what[i]);
    return st;
}

/* A row of a column as the data have it: numbers, their type; of a csr column, entries of all rows.
 */
typedef struct {
    int64_t n, type, entries;
} RowForm;

static RowForm form_of(const gnnc_trainer *t, const RtPullColumn *y) {
    const RtColumn *c = rt_bind_data_column(&t->x, y->column);
    RtDtype whole = rt_column_kind(c->kind)->element;
    return (RowForm){rt_column_width(c), c->low && !c->values ? c->low_dt : whole,
                     y->sparse ? c->csr.nnz : 0};
}

/* What processes compare of a column, and what they send of it, has the size of a row. */
static gnnc_status agree_on_rows(gnnc_trainer *t) {
    const RtPulls *p = t->pulls;
    RowForm *first = RT_NEWN(&t->rt.pool, RowForm, p->n_columns);
    if (!first) return rt_fail_nomem(&t->rt.err, "features");
    for (int i = 0; i < p->n_columns; i++) first[i] = form_of(t, &p->column[i]);
    gnnc_status st = rt_processes_broadcast(t, first, (size_t)p->n_columns * sizeof *first, 0);
    for (int i = 0; i < p->n_columns && st == GNNC_OK; i++) {
        RowForm own = form_of(t, &p->column[i]);
        if (own.n == first[i].n && own.type == first[i].type && own.entries != first[i].entries)
            st = rt_fail(&t->rt.err, GNNC_E_STATE, "%s: rank %d has %lld entries, rank 0 %lld",
                         rt_bind_column_name(&t->x, p->column[i].column), p->rank,
                         (long long)own.entries, (long long)first[i].entries);
        if (own.n == first[i].n && own.type == first[i].type) continue;
        st = rt_fail(&t->rt.err, GNNC_E_STATE,
                     "%s: rank %d has %lld numbers of %s in a row, rank 0 %lld of %s",
                     rt_bind_column_name(&t->x, p->column[i].column), p->rank, (long long)own.n,
                     rt_dtype_name((RtDtype)own.type), (long long)first[i].n,
                     rt_dtype_name((RtDtype)first[i].type));
    }
    rt_pool_drop(&t->rt.pool, first);
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
    if (t->pulls) TRY(st, agree_on_rows(t));
    if (t->pulls) st = tell_binding(t);
out:
    return st;
}

void rt_pulls_close(gnnc_trainer *t) {
    RtPulls *p = t->pulls;
    if (!p) return;
    rt_background_end(p->thread);
    rt_pulls_free_messages(p);
    t->pulls = NULL;
}
