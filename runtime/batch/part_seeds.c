#include "part_seeds.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/sample/sample.h"

typedef struct {
    int32_t was, row;
} Seed;

static int by_what_was(const void *a, const void *b) {
    const Seed *x = a, *y = b;
    return (x->was > y->was) - (x->was < y->was);
}

/* Finds each part's seeds, and puts them in the order of the rows that they were. */
static gnnc_status sort(RtPool *pool, RtPartSeeds *p, int32_t *seed, int64_t n) {
    Seed *all = RT_NEWN(pool, Seed, n + 1);
    if (!all) return GNNC_E_NOMEM;
    for (int64_t i = 0; i < n; i++) all[i] = (Seed){p->table->part_rows[seed[i]], seed[i]};
    int64_t at = 0;
    for (int k = 0; k < p->n_parts; k++) {
        p->first[k] = at;
        while (at < n && seed[at] < p->table->part_ptr[k + 1]) at++;
        qsort(all + p->first[k], (size_t)(at - p->first[k]), sizeof *all, by_what_was);
    }
    p->first[p->n_parts] = n;
    for (int64_t i = 0; i < n; i++) seed[i] = all[i].row;
    rt_pool_drop(pool, all);
    return GNNC_OK;
}

/* ---- whose turn it is -------------------------------------------------------------------------
 */
/* A batch of an epoch: number `turn` of a part's n, which comes (2 turn + 1) / 2n of the epoch's
 * way behind its begin. */
typedef struct {
    int64_t turn, n;
    int32_t part, rank; /* rank: of parts at the same place */
} Turn;

static int by_place(const void *a, const void *b) {
    const Turn *x = a, *y = b;
    int64_t left = (2 * x->turn + 1) * y->n, right = (2 * y->turn + 1) * x->n;
    if (left != right) return left < right ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* The number read from its last bit to its first, of so many: 0, 4, 2, 6, 1, .. of three. */
static int32_t reversed(int32_t k, int n_bits) {
    int32_t r = 0;
    for (int i = 0; i < n_bits; i++) r |= (k >> i & 1) << (n_bits - 1 - i);
    return r;
}

static gnnc_status order_turns(RtPool *pool, RtPartSeeds *p) {
    Turn *all = RT_NEWN(pool, Turn, p->n_batches + 1);
    p->part = RT_NEWN(pool, int32_t, p->n_batches + 1);
    p->turn = RT_NEWN(pool, int32_t, p->n_batches + 1);
    if (!all || !p->part || !p->turn) return GNNC_E_NOMEM;
    int n_bits = 0;
    while (1 << n_bits < p->n_parts) n_bits++;
    int64_t at = 0;
    for (int32_t k = 0; k < p->n_parts; k++)
        for (int64_t i = 0; i < p->count[k]; i++)
            all[at++] = (Turn){i, p->count[k], k, reversed(k, n_bits)};
    qsort(all, (size_t)p->n_batches, sizeof *all, by_place);
    for (int64_t i = 0; i < p->n_batches; i++) {
        p->part[i] = all[i].part;
        p->turn[i] = (int32_t)all[i].turn;
    }
    rt_pool_drop(pool, all);
    return GNNC_OK;
}

/* ---- the interface ----------------------------------------------------------------------------
 */
static int64_t seeds_of_part(const RtPartSeeds *p, int k) {
    return p->first[k + 1] - p->first[k];
}

gnnc_status rt_part_seeds_make(RtPool *pool, const RtTable *table, int32_t *seed, int64_t n,
                               int64_t batch, bool whole, RtPartSeeds *out, RtError *err) {
    RtPartSeeds *p = out;
    gnnc_status st = GNNC_E_NOMEM;
    *p = (RtPartSeeds){.table = table, .n_parts = table->n_parts, .whole = whole, .batch = batch};
    p->first = RT_NEWN(pool, int64_t, p->n_parts + 1);
    p->count = RT_NEWN(pool, int64_t, p->n_parts);
    if (p->first && p->count) st = sort(pool, p, seed, n);
    for (int k = 0; k < p->n_parts && st == GNNC_OK; k++) {
        int64_t has = seeds_of_part(p, k);
        p->count[k] = (has + (whole ? 0 : batch - 1)) / batch;
        p->n_batches += p->count[k];
        if (has && !p->count[k])
            return rt_fail(
                err, GNNC_E_VALUE,
                "seeds_by_part: part %d of '%s' has %lld rows to learn from, and a whole "
                "batch %lld ('drop_last')",
                k, table->name, (long long)has, (long long)batch);
    }
    if (st == GNNC_OK) st = order_turns(pool, p);
    return st == GNNC_OK ? st : rt_fail_nomem(err, "batches");
}

int64_t rt_part_seeds_most(const RtPartSeeds *p) {
    int64_t most = 0;
    for (int k = 0; k < p->n_parts; k++) {
        if (!p->count[k]) continue;
        int64_t n = p->whole ? p->batch : (seeds_of_part(p, k) + p->count[k] - 1) / p->count[k];
        if (n > most) most = n;
    }
    return most;
}

void rt_part_seeds_shuffle(const RtPartSeeds *p, uint64_t seed, uint64_t epoch, int32_t *order) {
    for (int k = 0; k < p->n_parts; k++)
        rt_sample_shuffle_part(seed, epoch, (uint32_t)k, order + p->first[k], seeds_of_part(p, k));
}

int64_t rt_part_seeds_of(const RtPartSeeds *p, int64_t batch, int64_t *n) {
    int k = p->part[batch];
    int64_t has = seeds_of_part(p, k), turn = p->turn[batch];
    int64_t from = p->whole ? turn * p->batch : has * turn / p->count[k];
    int64_t end = p->whole ? from + p->batch : has * (turn + 1) / p->count[k];
    *n = end - from;
    return p->first[k] + from;
}
