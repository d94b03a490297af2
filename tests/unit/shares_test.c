/* What the threads of a large machine get of a loop: the largest share against the mean, by the
 * cuts that loops use, without running a thread.  The graph has the size of ogbn-arxiv with its
 * edges both ways, degrees by a power law, and its largest hub. */
#include "test.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/exec/exec.h"

enum { NODES = 169343, EDGES = 2315598, HUB = 13161, MOST_THREADS = 192 };

/* ptr of rows whose degrees fall as (rank + 1)^-power from the hub's, the order being shuffled. */
static int64_t *segments(double power, uint64_t seed) {
    int64_t *ptr = malloc((NODES + 1) * sizeof *ptr), left = EDGES;
    int64_t *degree = calloc(NODES, sizeof *degree);
    for (int64_t i = 0; i < NODES; i++) {
        degree[i] = (int64_t)((double)HUB * pow((double)(i + 1), -power));
        left -= degree[i];
    }
    for (int64_t i = 0; left > 0; i = (i + 1) % NODES) degree[i] += i > 100, left -= i > 100;
    for (int64_t i = NODES - 1; i > 0; i--) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        int64_t k = (int64_t)((seed >> 33) % (uint64_t)(i + 1)), was = degree[i];
        degree[i] = degree[k], degree[k] = was;
    }
    ptr[0] = 0;
    for (int64_t i = 0; i < NODES; i++) ptr[i + 1] = ptr[i] + degree[i];
    free(degree);
    return ptr;
}

static int64_t work_of(const RtCut *c, int64_t lo, int64_t hi) {
    return rt_work_before(c->ptr, c->n_ptr, hi) - rt_work_before(c->ptr, c->n_ptr, lo);
}

/* Largest over mean; every row is in one share. */
static double largest(const RtCut *c, int64_t n) {
    int64_t most = 0, at = c->first;
    CHECK(rt_cut_bound(c, 0, n) == c->first && rt_cut_bound(c, n, n) == c->first + c->extent);
    for (int64_t i = 0; i < n; i++) {
        int64_t lo = rt_cut_bound(c, i, n), hi = rt_cut_bound(c, i + 1, n);
        int64_t work = work_of(c, lo, hi);
        CHECK(lo == at && lo <= hi);
        at = hi;
        if (work > most) most = work;
    }
    return (double)most * (double)n / (double)work_of(c, c->first, c->first + c->extent);
}

TEST(equal_rows_for_any_number_of_threads) {
    RtCut c = {.extent = NODES};
    for (int64_t n = 1; n <= MOST_THREADS; n++)
        CHECK_MSG(largest(&c, n) <= 1.05, "%lld threads: %g", (long long)n, largest(&c, n));
}

/* Such as 64 chunks of rows on 3 threads, or 1152 rows on 48: a share may have one more than the
 * mean, or a twentieth. */
TEST(few_rows_are_shared_equally) {
    static const int64_t extents[] = {33, 40, 63, 64, 100, 640, 660, 1000, 1152, 6399, 6400, 20000};
    for (size_t i = 0; i < sizeof extents / sizeof *extents; i++)
        for (int64_t n = 1; n <= MOST_THREADS; n++) {
            RtCut c = {.first = 7, .extent = extents[i]};
            double mean = (double)c.extent / (double)n, most = fmax(ceil(mean), 1.05 * mean);
            CHECK_MSG(largest(&c, n) * mean <= most + 1e-6, "%lld rows, %lld threads: %g",
                      (long long)c.extent, (long long)n, largest(&c, n));
        }
}

TEST(shares_of_many_rows_begin_at_vectors) {
    RtCut c = {.extent = 48 * 320 + 1000};
    for (int64_t i = 0; i < 48; i++) CHECK(rt_cut_bound(&c, i, 48) % 16 == 0);
}

TEST(rows_with_hubs) {
    static const int divides[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 192};
    for (uint64_t seed = 1; seed <= 8; seed++) {
        int64_t *ptr = segments(0.75, seed), bound[RT_CHUNKS + 1];
        rt_balance_rows(ptr, NODES, bound);
        RtCut c = {.extent = NODES, .at = bound, .ptr = {ptr}, .n_ptr = 1};
        for (size_t i = 0; i < sizeof divides / sizeof *divides; i++) {
            double most = divides[i] <= 2 ? 1.01 : 1.05;
            if (divides[i] > 64) most = 1.2; /* a hub alone is more than the mean */
            CHECK_MSG(largest(&c, divides[i]) <= most, "%d threads: %g", divides[i],
                      largest(&c, divides[i]));
        }
        free(ptr);
    }
}

/* Found when the loop runs, so that only half a hub is what a share may have more. */
TEST(rows_of_two_maps) {
    int64_t *to = segments(0.75, 1), *from = segments(0.7, 2);
    RtCut c = {.extent = NODES, .ptr = {to, from}, .n_ptr = 2};
    double half = HUB / 2.0 / ((2.0 * EDGES + NODES) / 64);
    CHECK_MSG(largest(&c, 64) <= 1 + 2 * half, "%g", largest(&c, 64));
    free(to), free(from);
}

TEST(few_rows_and_one_that_has_all) {
    int64_t ptr[8] = {0, 0, 0, 1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20};
    int64_t bound[RT_CHUNKS + 1];
    for (int64_t rows = 0; rows < 8; rows++) {
        rt_balance_rows(ptr, rows, bound);
        CHECK(bound[0] == 0 && bound[RT_CHUNKS] == rows);
        for (int c = 0; c < RT_CHUNKS; c++) CHECK(bound[c] <= bound[c + 1]);
    }
}

TEST_MAIN()
