/* Estimates of batches, against numbers worked out by hand. */
#include "test.h"

#include "runtime/batch/batch_sizes.h"

enum { N, E, N_SYMS, HOPS = 8 };

static const rt_space spaces[] = {
    {.name = "n", .kind = RT_SP_NODE, .sym = N, .src = -1, .dst = -1, .base = {-1, -1}},
    {.name = "e",
     .kind = RT_SP_EDGE,
     .sym = E,
     .src = 0,
     .dst = 0,
     .base = {-1, -1},
     .sampled = true},
};
static const rt_column columns[] = {{.name = "split", .kind = RT_COL_SPLIT, .space = 0}};

/* Batches of `batch` rows of `nodes` with `edges`, as many in-edges as `fanout` drawn in each hop.
 */
static void estimate(bool disjoint, int n_hops, int32_t fanout, int64_t batch, int64_t nodes,
                     int64_t edges, int64_t n[N_SYMS]) {
    int32_t all[HOPS * 2];
    for (int i = 0; i < HOPS * 2; i++) all[i] = fanout;
    rt_program p = {.n_syms = N_SYMS, .n_spaces = 2, .n_columns = 1};
    p.spaces = spaces;
    p.columns = columns;
    p.sampling = (rt_sampling){.batch = batch,
                               .n_hops = n_hops,
                               .fanout = all,
                               .disjoint = disjoint,
                               .label = -1,
                               .split = 0};
    n[N] = nodes;
    n[E] = edges;
    CHECK(rt_batch_sizes(&p, batch, NULL, RT_BATCH_TRAINS, n));
}

TEST(batch_sizes_follow_the_fan_out) {
    int64_t n[N_SYMS];
    for (int disjoint = 0; disjoint < 2; disjoint++) {
        estimate(disjoint, 2, 5, 10, 1000000, 9000000, n);
        CHECK(n[N] == 10 + 50 + 250 && n[E] == 50 + 250);
        estimate(disjoint, 2, -1, 10, 1000000, 9000000, n); /* 9 in-edges each */
        CHECK(n[N] == 10 + 90 + 810 && n[E] == 90 + 810);
    }
}

/* 500^3 nodes would be in a tree: it has the data's 100,000, however many trees there are. */
TEST(batch_sizes_of_a_tree_end_at_the_data) {
    int64_t n[N_SYMS];
    for (int n_hops = 3; n_hops <= HOPS; n_hops++) {
        estimate(false, n_hops, -1, 4, 100000, 50000000, n);
        CHECK(n[N] == 100000 && n[E] <= 50000000);
        estimate(true, n_hops, -1, 4, 100000, 50000000, n);
        CHECK(n[N] == 4 * 100000 && n[E] > 50000000 && n[E] <= 4 * 50000000);
    }
}

TEST(batch_sizes_past_all_numbers_are_large) {
    int64_t n[N_SYMS];
    estimate(true, HOPS, -1, INT64_C(1) << 31, INT64_C(1) << 31, INT64_C(1) << 50, n);
    CHECK(n[N] > INT64_C(1) << 50 && n[E] > INT64_C(1) << 50);
}

TEST_MAIN()
