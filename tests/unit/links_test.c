/* The index of links, pairs with negatives and queries, against what a loop over all edges says. */
#include "test.h"

#include "rt_test_util.h"
#include "runtime/batch/links.h"
#include "runtime/exec/rng.h"
#include "runtime/sample/sample_key.h"

enum { N_SRC = 12, N_DST = 9, N_EDGES = 120, N_KINDS = 3 };

typedef struct {
    RtPool pool;
    RtError err;
    RtRelation rel;
    int32_t split[N_EDGES];
    int64_t kind[N_EDGES];
    RtLinks links;
} World;

static uint32_t some(uint32_t seed, uint32_t i, uint32_t below) {
    return rt_mix32(rt_mix32(i + 1) ^ (seed * 0x9E3779B9u)) % below;
}

static void world(World *w, uint32_t seed, int64_t n) {
    static int32_t src[N_EDGES], dst[N_EDGES];
    RtAlloc from = rt_alloc_default();
    rt_pool_init(&w->pool, &from);
    for (int64_t e = 0; e < n; e++) {
        src[e] = (int32_t)some(seed, (uint32_t)e, N_SRC);
        dst[e] = e % 5 == 0 ? 2 : (int32_t)some(seed + 1, (uint32_t)e, N_DST);
        w->split[e] = (int32_t)some(seed + 2, (uint32_t)e, 4);
        w->kind[e] = some(seed + 3, (uint32_t)e, N_KINDS);
    }
    CHECK(rt_relation_base(&w->pool, N_SRC, N_DST, n, src, dst, &w->rel, &w->err) == GNNC_OK);
    CHECK(rt_links_index(&w->pool, &w->rel, w->split, w->kind, &w->links, &w->err) == GNNC_OK);
}

static bool has(const World *w, int32_t u, int64_t kind, int32_t v, int first, int last) {
    for (int64_t e = 0; e < w->rel.n_edges; e++)
        if (w->rel.src[e] == u && w->rel.dst[e] == v && w->kind[e] == kind &&
            w->split[e] >= first && w->split[e] <= last)
            return true;
    return false;
}

TEST(index_groups_what_asks_alike) {
    for (uint32_t seed = 0; seed < 20; seed++) {
        World w = {0};
        world(&w, seed, seed ? N_EDGES : 0);
        const RtLinks *l = &w.links;
        CHECK(l->query[l->n_queries] == w.rel.n_edges);
        for (int64_t q = 0; q < l->n_queries; q++)
            for (int64_t i = l->query[q]; i < l->query[q + 1]; i++) {
                int32_t e = l->by_query[i], first = l->by_query[l->query[q]];
                CHECK(l->query_of[e] == q);
                CHECK(w.rel.src[e] == w.rel.src[first] && w.kind[e] == w.kind[first]);
                CHECK(i == l->query[q] || w.rel.dst[l->by_query[i - 1]] <= w.rel.dst[e]);
            }
        for (int32_t u = 0; u < N_SRC; u++)
            for (int64_t k = 0; k < N_KINDS; k++)
                for (int32_t v = 0; v < N_DST; v++)
                    for (int first = 1; first < 3; first++)
                        CHECK(rt_links_have(l, u, k, v, first, 2) == has(&w, u, k, v, first, 2));
        rt_pool_free(&w.pool);
    }
}

static void check_negatives(const World *w, rt_negative how, bool avoid) {
    int32_t edge[N_EDGES];
    int64_t n = 0, k = 7;
    RtStepEdges d, again;
    RtError err;
    RtPool pool;
    rt_pool_init(&pool, &w->pool.from);
    for (int32_t e = 0; e < w->rel.n_edges; e++)
        if (w->split[e] == RT_SPLIT_TRAIN) edge[n++] = e;
    RtNegatives neg = {.k = k, .drawn = {.how = how, .avoid = avoid, .first = 1, .last = 1}};
    neg.key = rt_draw_key(5, 6, 7, RT_DRAW_NEGATIVE);
    CHECK(rt_links_pairs(&w->links, &pool, edge, n, &neg, &d, &err) == GNNC_OK);
    CHECK(rt_links_pairs(&w->links, &pool, edge, n, &neg, &again, &err) == GNNC_OK);
    CHECK(d.n == n * (k + 1) && !memcmp(d.dst, again.dst, (size_t)d.n * sizeof *d.dst));
    for (int64_t i = 0; i < n; i++) {
        int32_t u = w->rel.src[edge[i]], v = w->rel.dst[edge[i]];
        CHECK(d.src[i] == u && d.dst[i] == v && d.orig[i] == edge[i] && d.row[i] == edge[i]);
        for (int64_t j = n + i * k; j < n + (i + 1) * k; j++) {
            CHECK(d.src[j] >= 0 && d.src[j] < N_SRC && d.dst[j] >= 0 && d.dst[j] < N_DST);
            CHECK(how != RT_NEG_TAIL || d.src[j] == u);
            CHECK(how != RT_NEG_HEAD || d.dst[j] == v);
            CHECK(how != RT_NEG_SIDE || d.src[j] == u || d.dst[j] == v);
            CHECK(d.orig[j] == edge[i]);
            CHECK(!avoid || !has(w, d.src[j], w->kind[edge[i]], d.dst[j], 1, 1));
        }
    }
    rt_pool_free(&pool);
}

TEST(negatives_are_no_edges_and_end_where_they_should) {
    World w = {0};
    world(&w, 3, N_EDGES);
    for (int how = RT_NEG_TAIL; how <= RT_NEG_BOTH; how++)
        for (int avoid = 0; avoid < 2; avoid++) check_negatives(&w, (rt_negative)how, avoid);
    rt_pool_free(&w.pool);
}

/* A source linked to every node: there is no other, and drawing ends. */
TEST(negatives_of_a_node_linked_to_all) {
    int32_t src[N_DST] = {0}, dst[N_DST], split[N_DST], edge[1] = {0};
    int64_t kind[N_DST] = {0};
    RtAlloc from = rt_alloc_default();
    RtRelation rel;
    RtLinks l;
    RtError err;
    RtStepEdges d;
    RtPool pool;
    rt_pool_init(&pool, &from);
    for (int i = 0; i < N_DST; i++) dst[i] = i, split[i] = 1;
    CHECK(rt_relation_base(&pool, 1, N_DST, N_DST, src, dst, &rel, &err) == GNNC_OK);
    CHECK(rt_links_index(&pool, &rel, split, kind, &l, &err) == GNNC_OK);
    RtNegatives neg = {.k = 3, .drawn = {.avoid = true, .first = 1, .last = 1}};
    CHECK(rt_links_pairs(&l, &pool, edge, 1, &neg, &d, &err) == GNNC_OK && d.n == 4);
    rt_pool_free(&pool);
}

/* Other destinations of an edge of a source that has no other: uniform over all but its own. */
TEST(negatives_are_uniform) {
    enum { N = 21, ROUNDS = 20000, EACH = 4 };
    int32_t src = 0, dst = 0, split = 1, edge = 0;
    int64_t kind = 0;
    RtAlloc from = rt_alloc_default();
    RtRelation rel;
    RtLinks l;
    RtError err;
    RtPool pool;
    int count[N] = {0};
    rt_pool_init(&pool, &from);
    CHECK(rt_relation_base(&pool, 1, N, 1, &src, &dst, &rel, &err) == GNNC_OK);
    CHECK(rt_links_index(&pool, &rel, &split, &kind, &l, &err) == GNNC_OK);
    for (uint64_t r = 0; r < ROUNDS; r++) {
        RtPool of_round;
        RtStepEdges d;
        RtNegatives neg = {.k = EACH, .drawn = {.avoid = true, .first = 1, .last = 1}};
        neg.key = rt_draw_key(9, r / 100, r % 100, RT_DRAW_NEGATIVE);
        rt_pool_init(&of_round, &from);
        CHECK(rt_links_pairs(&l, &of_round, &edge, 1, &neg, &d, &err) == GNNC_OK);
        for (int i = 1; i <= EACH; i++) count[d.dst[i]]++;
        rt_pool_free(&of_round);
    }
    double want = (double)ROUNDS * EACH / (N - 1), sum = 0;
    for (int i = 1; i < N; i++) sum += (count[i] - want) * (count[i] - want) / want;
    CHECK(count[0] == 0);
    CHECK_MSG(sum < 43.8, "chi-square %g of 19", sum); /* p = 0.001 */
    rt_pool_free(&pool);
}

/* A node that is not there yet at the link's time is no negative; where none is, drawing ends. */
TEST(negatives_are_there_at_the_time) {
    enum { N = 200 };
    int32_t src = 0, dst = 1, split = 1, edge = 0;
    int64_t kind = 0;
    double when = 5, since[N];
    RtAlloc from = rt_alloc_default();
    RtRelation rel;
    RtLinks l;
    RtError err;
    RtStepEdges d;
    RtPool pool;
    rt_pool_init(&pool, &from);
    for (int i = 0; i < N; i++) since[i] = i == 150 ? 5 : 6;
    CHECK(rt_relation_base(&pool, 1, N, 1, &src, &dst, &rel, &err) == GNNC_OK);
    CHECK(rt_links_index(&pool, &rel, &split, &kind, &l, &err) == GNNC_OK);
    RtNegatives neg = {.k = 3,
                       .drawn = {.first = 1, .last = 1, .when = &when, .since = {NULL, since}}};
    for (uint64_t r = 0; r < 50; r++) {
        neg.key = rt_draw_key(1, 2, r, RT_DRAW_NEGATIVE);
        CHECK(rt_links_pairs(&l, &pool, &edge, 1, &neg, &d, &err) == GNNC_OK);
        for (int i = 1; i <= 3; i++) CHECK_MSG(d.dst[i] == 150, "%d", d.dst[i]);
    }
    when = 4;
    CHECK(rt_links_pairs(&l, &pool, &edge, 1, &neg, &d, &err) == GNNC_OK && d.n == 4);
    rt_pool_free(&pool);
}

/* The other true answers of an answer's query, each once. */
static int64_t count_others(const World *w, int32_t e, int last) {
    int64_t n = 0;
    for (int32_t v = 0; v < N_DST; v++)
        n += v != w->rel.dst[e] && has(w, w->rel.src[e], w->kind[e], v, 1, last);
    return n;
}

static void check_others(const World *w, const RtStepQueries *a, const RtStepEdges *d, int last) {
    int64_t n = 0;
    for (int64_t i = 0; i < a->answers.n; i++) n += count_others(w, a->answers.row[i], last);
    CHECK(d->n == n);
    for (int64_t i = 0; i < d->n; i++) {
        int64_t t = d->orig[i], q = a->answers.orig[t];
        CHECK(d->src[i] == a->queries.src[q] && d->dst[i] != a->answers.dst[t]);
        CHECK(d->cell[i] == q * N_DST + d->dst[i]);
        CHECK(has(w, d->src[i], w->kind[a->answers.row[t]], d->dst[i], 1, last));
    }
}

TEST(queries_ask_for_their_edges) {
    for (uint32_t seed = 1; seed < 10; seed++) {
        World w = {0};
        world(&w, seed, N_EDGES);
        for (int split = 1; split <= 3; split++) {
            int32_t query[N_EDGES];
            int64_t n = 0, answers = 0;
            RtStepQueries a;
            for (int64_t q = 0; q < w.links.n_queries; q += 2) query[n++] = (int32_t)q;
            CHECK(rt_links_query(&w.links, &w.pool, query, n, split,
                                 RT_QUERY_KNOWN | RT_QUERY_EARLIER, &a, &w.err) == GNNC_OK);
            for (int64_t e = 0; e < w.rel.n_edges; e++)
                answers += w.split[e] == split && w.links.query_of[e] % 2 == 0;
            CHECK(a.queries.n == n && a.answers.n == answers);
            for (int64_t i = 0; i < a.answers.n; i++) {
                CHECK(w.split[a.answers.row[i]] == split);
                CHECK(w.links.query_of[a.answers.row[i]] == query[a.answers.orig[i]]);
                CHECK(a.answers.cell[i] == a.answers.orig[i] * N_DST + a.answers.dst[i]);
            }
            check_others(&w, &a, &a.known, 3);
            check_others(&w, &a, &a.earlier, split - 1);
            CHECK(rt_links_query(&w.links, &w.pool, query, n, split, RT_QUERY_EARLIER, &a,
                                 &w.err) == GNNC_OK);
            check_others(&w, &a, &a.earlier, split - 1);
            CHECK(!a.known.src && a.known.n == 0);
        }
        rt_pool_free(&w.pool);
    }
}

TEST(scores_that_no_index_reaches_are_refused) {
    World w = {0};
    RtStepQueries a;
    world(&w, 1, N_EDGES);
    w.rel.n_dst = (int64_t)1 << 30;
    int32_t query[2] = {0, 1};
    CHECK(rt_links_query(&w.links, &w.pool, query, 2, 1, 0, &a, &w.err) == GNNC_E_RANGE);
    rt_pool_free(&w.pool);
}

TEST_MAIN()
