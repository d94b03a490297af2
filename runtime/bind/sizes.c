/* Sizes of spaces and maps, and where work of rows is cut. */
#include "bind.h"

int64_t rt_size(const rt_program *p, const int64_t *n, int space) {
    const rt_space *s = &p->spaces[space];
    return s->fixed >= 0 ? s->fixed : s->sym >= 0 ? n[s->sym] : 0;
}

/* Rows that a map leads to: of a pair of maps the product of both. */
int64_t rt_map_rows(const rt_program *p, const int64_t *n, int map) {
    const rt_map *m = &p->maps[map];
    if (m->kind != RT_MAP_PAIR) return rt_size(p, n, m->to);
    return rt_size(p, n, p->maps[m->pair[0]].to) * rt_size(p, n, p->maps[m->pair[1]].to);
}

int64_t rt_work_before(const int64_t *const *ptr, int n, int64_t row) {
    int64_t work = row;
    for (int i = 0; i < n; i++) work += ptr[i][row];
    return work;
}

/* Binary search, as all terms ascend. */
int64_t rt_row_at(const int64_t *const *ptr, int n, int64_t lo, int64_t hi, int64_t work) {
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (rt_work_before(ptr, n, mid) < work)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* ---- shares of threads ------------------------------------------------------------------- */
/* The row of [lo, hi] that comes nearest to having this much work before it. */
static int64_t row_near(const int64_t *const *ptr, int n, int64_t lo, int64_t hi, int64_t work) {
    int64_t r = rt_row_at(ptr, n, lo, hi, work);
    if (r == lo) return r;
    int64_t over = rt_work_before(ptr, n, r) - work, under = work - rt_work_before(ptr, n, r - 1);
    return under < over ? r - 1 : r;
}

/* A run from row lo on ends there, if it has at most so much work; a row of more is a run. */
static int64_t end_of_run(const int64_t *ptr, int64_t lo, int64_t hi, int64_t most) {
    int64_t all = rt_work_before(&ptr, 1, lo) + most;
    if (lo == hi || rt_work_before(&ptr, 1, hi) <= all) return hi;
    int64_t r = rt_row_at(&ptr, 1, lo, hi, all + 1) - 1;
    return r > lo ? r : lo + 1;
}

/* .. and one that ends before row hi begins there. */
static int64_t start_of_run(const int64_t *ptr, int64_t hi, int64_t most) {
    if (hi == 0) return 0;
    int64_t r = rt_row_at(&ptr, 1, 0, hi, rt_work_before(&ptr, 1, hi) - most);
    return r < hi ? r : hi - 1;
}

static bool fits(const int64_t *ptr, int64_t n_rows, int64_t most) {
    int64_t at = 0;
    for (int c = 0; c < RT_CHUNKS; c++) at = end_of_run(ptr, at, n_rows, most);
    return at == n_rows;
}

/* The work of the largest run can be that small, to a hundredth of the mean; it is at most hi. */
static int64_t least_of_largest(const int64_t *ptr, int64_t n_rows, int64_t mean, int64_t hi) {
    int64_t lo = mean;
    while (hi - lo > 1 + mean / 128) {
        int64_t mid = lo + (hi - lo) / 2;
        if (fits(ptr, n_rows, mid))
            hi = mid;
        else
            lo = mid;
    }
    return hi;
}

/* Moves the cuts as little as it takes that no run has more work than `most`, which is possible. */
static void limit_runs(const int64_t *ptr, int64_t n_rows, int64_t most, int64_t *bound) {
    int64_t earliest[RT_CHUNKS + 1];
    earliest[RT_CHUNKS] = n_rows;
    for (int c = RT_CHUNKS; c-- > 0;) earliest[c] = start_of_run(ptr, earliest[c + 1], most);
    for (int c = 1; c < RT_CHUNKS; c++) {
        int64_t latest = end_of_run(ptr, bound[c - 1], n_rows, most);
        if (bound[c] < earliest[c]) bound[c] = earliest[c];
        if (bound[c] > latest) bound[c] = latest;
    }
}

/* A row that has far more work than others may stand where a run should end: of a graph with hubs
 * the cuts nearest to equal work leave one run a third larger than the mean.  So the largest run is
 * made as small as it can be, and within that the cuts lie where work is equal: threads that take
 * several runs have as much as without hubs. */
void rt_balance_rows(const int64_t *ptr, int64_t n_rows, int64_t *bound) {
    enum { FEW = 1 << 16 /* a search would take longer than the loop, as of batches */ };
    int64_t work = rt_work_before(&ptr, 1, n_rows), mean = work / RT_CHUNKS, largest = 0;
    bound[0] = 0;
    for (int c = 1; c <= RT_CHUNKS; c++) {
        bound[c] = c == RT_CHUNKS
                       ? n_rows
                       : row_near(&ptr, 1, bound[c - 1], n_rows, rt_fraction(work, c, RT_CHUNKS));
        int64_t run = rt_work_before(&ptr, 1, bound[c]) - rt_work_before(&ptr, 1, bound[c - 1]);
        if (run > largest) largest = run;
    }
    if (work < FEW || largest <= mean + mean / 64) return;
    limit_runs(ptr, n_rows, least_of_largest(ptr, n_rows, mean, largest), bound);
}

/* Equal numbers of rows, in whole multiples of CUT_ALIGN where that adds a twentieth to a share at
 * most.  Chunks, each of which is many rows, are too few for that. */
static int64_t equal_rows(int64_t extent, int64_t share, int64_t n) {
    enum { CUT_ALIGN = 16 /* rows: a cache line of f32, a vector */, LEAST = 20 * CUT_ALIGN };
    if (share >= n) return extent;
    int64_t at = rt_fraction(extent, share, n);
    return extent / n >= LEAST ? at / CUT_ALIGN * CUT_ALIGN : at;
}

int64_t rt_cut_bound(const RtCut *c, int64_t share, int64_t n) {
    if (c->at && RT_CHUNKS % n == 0) return c->at[RT_CHUNKS / n * share];
    if (!c->n_ptr) return c->first + equal_rows(c->extent, share, n);
    int64_t lo = c->first, hi = lo + c->extent;
    if (share >= n) return hi;
    int64_t start = rt_work_before(c->ptr, c->n_ptr, lo);
    int64_t work = rt_work_before(c->ptr, c->n_ptr, hi) - start;
    return row_near(c->ptr, c->n_ptr, lo, hi, start + rt_fraction(work, share, n));
}
