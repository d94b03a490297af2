/* When several products are one call on a GPU of 132 multiprocessors. */
#include "test.h"

#include "runtime/cuda/group_cost.h"

static bool pays(const RtProduct *p, int n, bool low) {
    RtGroupCost c = rt_group_cost(p, n, 132, low);
    return rt_group_pays(&c);
}

TEST(few_rows_share_the_gpu) {
    RtProduct cora[] = {{2708, 7, 16}, {2708, 7, 16}}, shapes[] = {{900, 64, 334}, {50, 64, 128}};
    CHECK(pays(cora, 2, false));
    CHECK(pays(cora, 2, true));
    CHECK(pays(shapes, 2, false));
}

/* Each of them fills the GPU ten times. */
TEST(many_rows_gain_nothing) {
    RtProduct arxiv[] = {{169343, 128, 128}, {169343, 128, 128}};
    RtProduct more[] = {{1693430, 64, 64}, {1693430, 64, 64}, {1693430, 64, 64}};
    CHECK(!pays(arxiv, 2, false));
    CHECK(!pays(more, 3, false));
    CHECK(!pays(more, 3, true));
}

/* A weight's gradient: one tile, whose sum the library cuts in parts when it is alone. */
TEST(long_sums_stay_alone) {
    RtProduct two[] = {{64, 64, 169343}, {64, 64, 169343}},
              batch[] = {{64, 64, 512}, {64, 32, 300}};
    CHECK(!pays(two, 2, false));
    CHECK(pays(batch, 2, false));
    RtProduct cora[] = {{16, 7, 2708}, {16, 7, 2708}};
    CHECK(!pays(cora, 2, false));
}

TEST(one_product_is_no_group) {
    RtProduct one[] = {{2708, 16, 1433}};
    CHECK(!pays(one, 1, false));
}

/* A node type without rows: the report asks of any data. */
TEST(no_rows_cost_nothing) {
    RtProduct none[] = {{0, 64, 64}, {0, 64, 64}};
    RtGroupCost c = rt_group_cost(none, 2, 132, false);
    CHECK(c.apart_ns == 0);
    CHECK(!pays(none, 2, false));
}

TEST_MAIN()
