/* Canonical order, logical ids and back references of every kind of relation, against
 * a table written by hand and against a plain definition on random graphs. */
#include "test.h"

#include "runtime/data/relation.h"
#include "rt_test_util.h"

/* 0->1, 2->1, 1->1, 0->2, 2->1, 1->0 : a loop, parallel edges, node 3 isolated */
static const int32_t SRC[6] = {0, 2, 1, 0, 2, 1}, DST[6] = {1, 1, 1, 2, 1, 0};

typedef struct {
    RtPool pool;
    RtRelation base;
} Fixture;

static Fixture fixture(void) {
    Fixture f;
    rt_pool_init(&f.pool, NULL);
    CHECK(rt_relation_base(&f.pool, 4, 4, 6, SRC, DST, &f.base, NULL) == GNNC_OK);
    return f;
}

/* Every edge as "src>dst#id@orig0". */
static const char *show(const RtRelation *r) {
    static char text[512];
    size_t n = 0;
    text[0] = 0;
    for (int64_t e = 0; e < r->n_edges; e++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%d>%d#%d@%d", e ? " " : "", r->src[e],
                              r->dst[e], r->id[e], r->orig[0][e]);
    return text;
}

/* What must hold of any relation. */
static void check_invariants(RtRelation *r) {
    RtPool pool;
    rt_pool_init(&pool, NULL);
    CHECK(rt_relation_group_src(&pool, r, NULL) == GNNC_OK);
    CHECK(r->ptr[0] == 0 && r->ptr[r->n_dst] == r->n_edges);
    for (int64_t v = 0; v < r->n_dst; v++)
        for (int64_t e = r->ptr[v]; e < r->ptr[v + 1]; e++) CHECK(r->dst[e] == v);
    const RtGroups *t = &r->by_src;
    CHECK(t->n == r->n_edges && t->n_groups == r->n_src);
    for (int64_t u = 0; u < r->n_src; u++)
        for (int64_t k = t->ptr[u]; k < t->ptr[u + 1]; k++) {
            CHECK(r->src[t->perm[k]] == u);
            CHECK(k == t->ptr[u] || t->perm[k] > t->perm[k - 1]);
        }
    uint8_t *seen = calloc(1, (size_t)r->id_bound + 1); /* ids are unique */
    for (int64_t e = 0; e < r->n_edges; e++) {
        CHECK(r->id[e] >= 0 && r->id[e] < r->id_bound && !seen[r->id[e]]);
        seen[r->id[e]] = 1;
    }
    free(seen);
    rt_pool_free(&pool);
}

TEST(base) {
    Fixture f = fixture();
    CHECK_STR(show(&f.base), "1>0#5@5 0>1#0@0 2>1#1@1 1>1#2@2 2>1#4@4 0>2#3@3");
    check_invariants(&f.base);
    rt_pool_free(&f.pool);
}

TEST(self_loops_follow_the_edges_of_their_node) {
    Fixture f = fixture();
    RtRelation r;
    CHECK(rt_relation_self_loops(&f.pool, &f.base, &r, NULL) == GNNC_OK);
    CHECK_STR(show(&r), "1>0#5@0 0>0#6@-1 0>1#0@1 2>1#1@2 2>1#4@4 1>1#7@-1 0>2#3@5 2>2#8@-1 "
                        "3>3#9@-1");
    check_invariants(&r);
    rt_pool_free(&f.pool);
}

TEST(no_loops_reverse_where) {
    Fixture f = fixture();
    RtRelation r;
    CHECK(rt_relation_no_loops(&f.pool, &f.base, &r, NULL) == GNNC_OK);
    CHECK_STR(show(&r), "1>0#5@0 0>1#0@1 2>1#1@2 2>1#4@4 0>2#3@5");
    check_invariants(&r);
    CHECK(rt_relation_reverse(&f.pool, &f.base, &r, NULL) == GNNC_OK);
    CHECK_STR(show(&r), "1>0#0@1 2>0#3@5 0>1#5@0 1>1#2@3 1>2#1@2 1>2#4@4");
    check_invariants(&r);
    const uint8_t mask[6] = {0, 1, 0, 1, 0, 1};
    CHECK(rt_relation_where(&f.pool, &f.base, mask, &r, NULL) == GNNC_OK);
    CHECK_STR(show(&r), "0>1#0@1 1>1#2@3 0>2#3@5");
    check_invariants(&r);
    rt_pool_free(&f.pool);
}

TEST(undirected_keeps_the_first_of_equal_edges) {
    Fixture f = fixture();
    RtRelation r;
    CHECK(rt_relation_undirected(&f.pool, &f.base, &r, NULL) == GNNC_OK);
    CHECK_STR(show(&r), "1>0#0@0 2>0#6@5 0>1#1@1 2>1#2@2 1>1#3@3 0>2#4@5 1>2#5@2");
    check_invariants(&r);
    rt_pool_free(&f.pool);
}

TEST(union_lists_one_after_the_other) {
    Fixture f = fixture();
    RtRelation r, w;
    const uint8_t mask[6] = {0, 1, 0, 0, 0, 1};
    CHECK(rt_relation_where(&f.pool, &f.base, mask, &w, NULL) == GNNC_OK);
    CHECK(rt_relation_union(&f.pool, &f.base, &w, &r, NULL) == GNNC_OK);
    CHECK_STR(show(&r), "1>0#0@0 0>1#1@1 2>1#2@2 1>1#3@3 2>1#4@4 0>1#6@-1 0>2#5@5 0>2#7@-1");
    CHECK(r.orig[1][5] == 0 && r.orig[1][7] == 1 && r.orig[1][0] == -1);
    check_invariants(&r);
    rt_pool_free(&f.pool);
}

TEST(nested_ids_stay_unique) {
    Fixture f = fixture();
    RtRelation n, l, r;
    CHECK(rt_relation_no_loops(&f.pool, &f.base, &n, NULL) == GNNC_OK);
    CHECK(rt_relation_self_loops(&f.pool, &n, &l, NULL) == GNNC_OK);
    check_invariants(&l);
    CHECK(rt_relation_self_loops(&f.pool, &l, &r, NULL) == GNNC_OK);
    check_invariants(&r);
    CHECK(r.n_edges == 9);
    rt_pool_free(&f.pool);
}

TEST(bipartite_and_empty) {
    RtPool pool;
    RtRelation b, r;
    RtError err = {""};
    const int32_t src[3] = {4, 0, 4}, dst[3] = {1, 0, 0};
    rt_pool_init(&pool, NULL);
    CHECK(rt_relation_base(&pool, 5, 2, 3, src, dst, &b, NULL) == GNNC_OK);
    check_invariants(&b);
    CHECK(rt_relation_reverse(&pool, &b, &r, NULL) == GNNC_OK && r.n_src == 2 && r.n_dst == 5);
    check_invariants(&r);
    CHECK(rt_relation_self_loops(&pool, &b, &r, &err) == GNNC_E_SHAPE);
    CHECK(rt_relation_undirected(&pool, &b, &r, NULL) == GNNC_E_SHAPE);
    RtRelation other;
    CHECK(rt_relation_union(&pool, &b, &r, &other, NULL) == GNNC_E_SHAPE);
    CHECK(rt_relation_base(&pool, 0, 0, 0, NULL, NULL, &b, NULL) == GNNC_OK);
    check_invariants(&b);
    CHECK(rt_relation_self_loops(&pool, &b, &r, NULL) == GNNC_OK && r.n_edges == 0);
    CHECK(rt_relation_undirected(&pool, &b, &r, NULL) == GNNC_OK && r.n_edges == 0);
    rt_pool_free(&pool);
}

/* ---- positions of 64 bits ------------------------------------------------------------------ */
/* What is derived from b, in a fixed order: seven relations. */
enum { DERIVED = 7 };
static void derive_each(RtPool *pool, const RtRelation *b, const uint8_t *mask, RtRelation *r) {
    CHECK(rt_relation_self_loops(pool, b, &r[0], NULL) == GNNC_OK);
    CHECK(rt_relation_no_loops(pool, b, &r[1], NULL) == GNNC_OK);
    CHECK(rt_relation_reverse(pool, b, &r[2], NULL) == GNNC_OK);
    CHECK(rt_relation_undirected(pool, b, &r[3], NULL) == GNNC_OK);
    CHECK(rt_relation_where(pool, b, mask, &r[4], NULL) == GNNC_OK);
    CHECK(rt_relation_union(pool, b, &r[4], &r[5], NULL) == GNNC_OK);
    CHECK(rt_relation_self_loops(pool, &r[3], &r[6], NULL) == GNNC_OK);
}

static void check_same(RtPool *pool, RtRelation *wide, RtRelation *narrow) {
    CHECK(wide->wide && !narrow->wide && !wide->id && !wide->orig[0]);
    CHECK(wide->n_edges == narrow->n_edges && wide->id_bound == narrow->id_bound);
    CHECK(rt_group_wide(pool, wide->src, wide->n_edges, wide->n_src, &wide->by_src, NULL) ==
          GNNC_OK);
    CHECK(wide->by_src.wide_perm && !wide->by_src.perm);
    CHECK(rt_relation_group_src(pool, narrow, NULL) == GNNC_OK && narrow->by_src.perm);
    for (int64_t v = 0; v <= wide->n_dst; v++) CHECK(wide->ptr[v] == narrow->ptr[v]);
    for (int64_t u = 0; u <= wide->n_src; u++) CHECK(wide->by_src.ptr[u] == narrow->by_src.ptr[u]);
    for (int64_t e = 0; e < wide->n_edges; e++) {
        CHECK(wide->src[e] == narrow->src[e] && wide->dst[e] == narrow->dst[e]);
        CHECK(rt_edge_id(wide, e) == narrow->id[e]);
        CHECK(rt_edge_orig(wide, 0, e) == narrow->orig[0][e]);
        if (narrow->orig[1]) CHECK(rt_edge_orig(wide, 1, e) == narrow->orig[1][e]);
        CHECK(rt_group_at(&wide->by_src, e) == narrow->by_src.perm[e]);
    }
}

TEST(positions_of_64_bits_are_those_of_32) {
    enum { N = 9, E = 70 };
    uint64_t x = 88172645463325252u;
    for (int round = 0; round < 20; round++) {
        int32_t src[E], dst[E];
        uint8_t mask[E];
        for (int e = 0; e < E; e++) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            src[e] = (int32_t)(x % N);
            dst[e] =
                round % 2 ? e * N / E : (int32_t)(x / 1000 % N); /* in canonical order, or not */
            mask[e] = x / 100000 % 3 != 0;
        }
        RtPool pool;
        RtRelation wide, narrow, of_wide[DERIVED], of_narrow[DERIVED];
        rt_pool_init(&pool, NULL);
        CHECK(rt_relation_base_wide(&pool, N, N, E, src, dst, &wide, NULL) == GNNC_OK);
        CHECK(rt_relation_base(&pool, N, N, E, src, dst, &narrow, NULL) == GNNC_OK);
        CHECK((wide.src == src) == (round % 2)); /* nothing is copied */
        derive_each(&pool, &wide, mask, of_wide);
        derive_each(&pool, &narrow, mask, of_narrow);
        check_same(&pool, &wide, &narrow);
        for (int k = 0; k < DERIVED; k++) check_same(&pool, &of_wide[k], &of_narrow[k]);
        for (int k = 0; k < DERIVED; k++) rt_relation_drop(&pool, &of_wide[k], &(RtCacheFile){0});
        rt_relation_drop(&pool, &wide, &(RtCacheFile){0});
        rt_pool_free(&pool);
    }
}

static bool has_edge(const RtRelation *r, int32_t s, int32_t d) {
    for (int64_t e = r->ptr[d]; e < r->ptr[d + 1]; e++)
        if (r->src[e] == s) return true;
    return false;
}

TEST(undirected_of_random_graphs) {
    uint64_t x = 88172645463325252u; /* xorshift: Marsaglia 2003 */
    for (int round = 0; round < 50; round++) {
        int32_t src[60], dst[60], n = 1 + round % 12;
        for (int e = 0; e < 60; e++) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            src[e] = (int32_t)(x % (uint64_t)n);
            dst[e] = (int32_t)(x / 1000 % (uint64_t)n);
        }
        RtPool pool;
        RtRelation b, r;
        rt_pool_init(&pool, NULL);
        CHECK(rt_relation_base(&pool, n, n, round, src, dst, &b, NULL) == GNNC_OK);
        CHECK(rt_relation_undirected(&pool, &b, &r, NULL) == GNNC_OK);
        check_invariants(&r);
        int64_t pairs = 0;
        for (int32_t i = 0; i < n; i++)
            for (int32_t j = 0; j < n; j++) {
                bool want = has_edge(&b, i, j) || has_edge(&b, j, i);
                pairs += want;
                CHECK(has_edge(&r, i, j) == want);
            }
        CHECK(pairs == r.n_edges); /* so no duplicates */
        rt_pool_free(&pool);
    }
}

TEST(stored_entries_by_column) {
    /* [[5 0 6] [0 0 0] [7 8 0]] */
    const int64_t ptr[4] = {0, 2, 2, 4};
    const int32_t col[4] = {0, 2, 0, 1};
    const float val[4] = {5, 6, 7, 8};
    RtCsr m = {3, 3, 4, ptr, col, val};
    RtPool pool;
    RtNz nz;
    rt_pool_init(&pool, NULL);
    CHECK(rt_csr_nz(&pool, &m, &nz, NULL) == GNNC_OK);
    const int32_t row[4] = {0, 0, 2, 2}, perm[4] = {0, 2, 3, 1};
    const int64_t cptr[4] = {0, 2, 3, 4};
    CHECK(memcmp(nz.row, row, sizeof row) == 0);
    CHECK(memcmp(nz.by_col.perm, perm, sizeof perm) == 0);
    CHECK(memcmp(nz.by_col.ptr, cptr, sizeof cptr) == 0);
    rt_pool_free(&pool);
}

TEST(groups_leave_out_minus_one) {
    const int32_t keys[5] = {2, -1, 0, 2, -1};
    RtPool pool;
    RtGroups g;
    rt_pool_init(&pool, NULL);
    CHECK(rt_group(&pool, keys, 5, 3, &g, NULL) == GNNC_OK);
    CHECK(g.n == 3 && g.ptr[1] == 1 && g.ptr[2] == 1 && g.ptr[3] == 3);
    CHECK(g.perm[0] == 2 && g.perm[1] == 0 && g.perm[2] == 3);
    rt_pool_free(&pool);
}

static gnnc_status derive_all(RtPool *pool) {
    RtRelation b, r;
    const uint8_t mask[6] = {1, 1, 0, 0, 1, 1};
    gnnc_status st;
    TRY(st, rt_relation_base(pool, 4, 4, 6, SRC, DST, &b, NULL));
    TRY(st, rt_relation_self_loops(pool, &b, &r, NULL));
    TRY(st, rt_relation_undirected(pool, &b, &r, NULL));
    TRY(st, rt_relation_union(pool, &b, &b, &r, NULL));
    st = rt_relation_where(pool, &b, mask, &r, NULL);
out:
    return st;
}

TEST(every_failed_allocation_is_survived) {
    gnnc_status st = GNNC_E_NOMEM;
    for (long k = 0; st != GNNC_OK && k < 1000; k++) {
        FailingAlloc f;
        RtPool pool;
        RtAlloc from = failing(&f, k);
        rt_pool_init(&pool, &from);
        st = derive_all(&pool);
        CHECK(st == GNNC_OK || st == GNNC_E_NOMEM);
        rt_pool_free(&pool);
        CHECK(f.n_live == 0);
    }
    CHECK(st == GNNC_OK);
}

TEST_MAIN()
