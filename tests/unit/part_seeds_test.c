/* Seeds by part: each seed once in an epoch, batches of one part, equal ones, parts by turns. */
#include "test.h"

#include "runtime/batch/part_seeds.h"

enum { PARTS = 5, EACH = 40, ROWS = PARTS * EACH };

typedef struct {
    RtPool pool;
    int64_t ptr[PARTS + 1];
    int32_t was[ROWS], seed[ROWS];
    RtTable table;
    RtError err;
} Data;

/* Parts of EACH rows, of which every third is a seed, but in part 3, which has 4 seeds; rows of a
 * part were in another order. */
static int64_t data_make(Data *d, int shift) {
    int64_t n = 0;
    *d = (Data){.table = {.name = "v", .n_parts = PARTS}};
    rt_pool_init(&d->pool, NULL);
    for (int k = 0; k <= PARTS; k++) d->ptr[k] = (int64_t)k * EACH;
    for (int32_t i = 0; i < ROWS; i++) {
        int32_t k = i / EACH, at = (i % EACH + shift) % EACH;
        d->was[i] = k + PARTS * at; /* the row `at` of its part */
        bool few = k == 3;
        if (few ? at < 4 : at % 3 == 0) d->seed[n++] = i;
    }
    d->table.part_ptr = d->ptr;
    d->table.part_rows = d->was;
    return n;
}

static int part_of(const Data *d, int32_t row) {
    int k = 0;
    while (row >= d->ptr[k + 1]) k++;
    return k;
}

TEST(each_seed_once_in_batches_of_one_part) {
    Data d;
    int64_t n = data_make(&d, 0), seen = 0;
    RtPartSeeds p;
    CHECK(rt_part_seeds_make(&d.pool, &d.table, d.seed, n, 5, false, &p, &d.err) == GNNC_OK);
    CHECK_MSG(p.n_batches == 4 * 3 + 1, "%lld", (long long)p.n_batches); /* 14 and 4 seeds */
    CHECK(rt_part_seeds_most(&p) == 5);
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        int32_t order[ROWS];
        bool had[ROWS] = {false};
        for (int64_t i = 0; i < n; i++) order[i] = d.seed[i];
        rt_part_seeds_shuffle(&p, 7, epoch, order);
        for (int64_t b = 0; b < p.n_batches; b++) {
            int64_t many, from = rt_part_seeds_of(&p, b, &many);
            CHECK(many == 4 || many == 5); /* of 14: 4, 5, 5 */
            for (int64_t i = from; i < from + many; i++) {
                CHECK(part_of(&d, order[i]) == p.part[b] && !had[order[i]]);
                had[order[i]] = true;
                seen++;
            }
        }
    }
    CHECK(seen == 3 * n);
    rt_pool_free(&d.pool);
}

/* As their numbers read from behind do: those of one process are apart.  Part 3 has one batch, of
 * the middle. */
TEST(parts_take_turns) {
    Data d;
    int64_t n = data_make(&d, 0);
    RtPartSeeds p;
    static const int want[] = {0, 4, 2, 1, 0, 4, 2, 1, 3, 0, 4, 2, 1};
    CHECK(rt_part_seeds_make(&d.pool, &d.table, d.seed, n, 5, false, &p, &d.err) == GNNC_OK);
    int at[PARTS] = {0};
    for (int64_t b = 0; b < p.n_batches; b++)
        CHECK(p.part[b] == want[b] && p.turn[b] == at[p.part[b]]++);
    rt_pool_free(&d.pool);
}

/* Which rows these were, not where they lie in the part, decides. */
TEST(the_order_is_of_the_rows_that_they_were) {
    Data a, b;
    RtPartSeeds p, q;
    int64_t n = data_make(&a, 0), m = data_make(&b, 11);
    CHECK(n == m);
    CHECK(rt_part_seeds_make(&a.pool, &a.table, a.seed, n, 5, false, &p, &a.err) == GNNC_OK);
    CHECK(rt_part_seeds_make(&b.pool, &b.table, b.seed, n, 5, false, &q, &b.err) == GNNC_OK);
    rt_part_seeds_shuffle(&p, 1, 2, a.seed);
    rt_part_seeds_shuffle(&q, 1, 2, b.seed);
    for (int64_t i = 0; i < n; i++) CHECK(a.was[a.seed[i]] == b.was[b.seed[i]]);
    rt_pool_free(&a.pool);
    rt_pool_free(&b.pool);
}

TEST(whole_batches_alone) {
    Data d;
    int64_t n = data_make(&d, 0), many;
    RtPartSeeds p;
    CHECK(rt_part_seeds_make(&d.pool, &d.table, d.seed, n, 4, true, &p, &d.err) == GNNC_OK);
    CHECK(p.n_batches == 4 * 3 + 1 && rt_part_seeds_most(&p) == 4);
    for (int64_t b = 0; b < p.n_batches; b++) {
        rt_part_seeds_of(&p, b, &many);
        CHECK(many == 4);
    }
    rt_pool_free(&d.pool);
    n = data_make(&d, 0);
    CHECK(rt_part_seeds_make(&d.pool, &d.table, d.seed, n, 5, true, &p, &d.err) == GNNC_E_VALUE);
    CHECK_STR(d.err.text,
              "seeds_by_part: part 3 of 'v' has 4 rows to learn from, and a whole batch "
              "5 ('drop_last')");
    rt_pool_free(&d.pool);
}

TEST_MAIN()
