/* How often neighbours are drawn, by chi-square with fixed seeds; times that seeds may
 * see; links, triples, graphs and clusters as seeds. */
#include "sample_util.h"

/* ---- chances -------------------------------------------------------------------------- */
enum { DEG = 12, ROUNDS = 6000 };

/* One node with DEG in-edges from nodes 1 .. DEG; how often each is drawn. */
typedef struct {
    RtPool pool;
    RtRelation rel;
    RtSampleRel r;
    RtSampleType type;
    RtSampleGraph g;
    float weight[DEG];
    double time[DEG];
} Star;

static void star_open(Star *w) {
    int32_t src[DEG], dst[DEG] = {0};
    *w = (Star){.type = {.name = "node", .n = DEG + 1}};
    for (int i = 0; i < DEG; i++) {
        src[i] = i + 1;
        w->weight[i] = (float)(i % 4); /* 0 .. 3 */
        w->time[i] = i;
    }
    rt_pool_init(&w->pool, NULL);
    CHECK(rt_relation_base(&w->pool, DEG + 1, DEG + 1, DEG, src, dst, &w->rel, NULL) == GNNC_OK);
    CHECK(rt_relation_group_src(&w->pool, &w->rel, NULL) == GNNC_OK);
    w->r = rt_sample_rel("edge", 0, 0, &w->rel);
    w->g = (RtSampleGraph){1, 1, &w->type, &w->r};
}

static void draw_often(Star *w, int32_t fanout, RtSampleSpec spec, double at, int *count,
                       int *pairs) {
    const int32_t seed = 0;
    spec.how.n_hops = 1, spec.fanout = &fanout, spec.check = true;
    RtBatch *b;
    RtSampler *s = sampler_of(&w->g, &spec, &b);
    memset(count, 0, DEG * sizeof *count);
    if (pairs) memset(pairs, 0, DEG * DEG * sizeof *pairs);
    for (uint64_t k = 0; k < ROUNDS; k++) {
        RtSeeds q = {.n = 1, .id = &seed, .time = &at};
        CHECK(rt_sample_nodes(s, &(RtSampleAt){9, k / 100, k % 100}, &q, b, NULL) == GNNC_OK);
        for (int64_t i = 0; i < b->edges[0].n; i++) {
            count[b->edges[0].pos[i]]++;
            for (int64_t j = 0; pairs && j < i; j++)
                pairs[b->edges[0].pos[j] * DEG + b->edges[0].pos[i]]++;
        }
    }
    rt_batch_free(b);
    rt_sampler_free(s);
    rt_pool_free(&w->pool);
}

static double chi_square(const int *count, const double *want, int n) {
    double x = 0;
    for (int i = 0; i < n; i++)
        if (want[i] > 0) x += (count[i] - want[i]) * (count[i] - want[i]) / want[i];
    return x;
}

/* 99.9 % points: 31.3 for 11 degrees of freedom, 107 for 65; without replacement counts
 * vary less, so the first is generous there. */
TEST(uniform_draws) {
    int count[DEG], pairs[DEG * DEG];
    double want[DEG], want_pair[DEG * DEG] = {0};
    for (int replace = 0; replace < 2; replace++) {
        Star w;
        star_open(&w);
        draw_often(&w, 4, (RtSampleSpec){.how.replace = replace}, 0, count, pairs);
        for (int i = 0; i < DEG; i++) want[i] = ROUNDS * 4.0 / DEG;
        CHECK_MSG(chi_square(count, want, DEG) < 31.3, "%g", chi_square(count, want, DEG));
        for (int i = 0; i < DEG; i++)
            for (int j = i + 1; j < DEG; j++)
                want_pair[i * DEG + j] = replace ? 0 : ROUNDS * 6.0 / (DEG * (DEG - 1) / 2);
        CHECK_MSG(chi_square(pairs, want_pair, DEG * DEG) < 107, "pairs: %g",
                  chi_square(pairs, want_pair, DEG * DEG));
    }
}

/* The chance of i among k draws without replacement, one after the other by weight. */
static double chance(const float *weight, int i, unsigned gone, int k) {
    double total = 0, sum = 0;
    for (int j = 0; j < DEG; j++) total += gone >> j & 1 ? 0 : weight[j];
    for (int j = 0; j < DEG && k > 0; j++) {
        if (gone >> j & 1 || weight[j] == 0) continue;
        double p = weight[j] / total;
        sum += j == i ? p : p * chance(weight, i, gone | 1u << j, k - 1);
    }
    return sum;
}

/* Either way, and the others are drawn as if there were no such edge. */
TEST(an_edge_between_the_ends_of_a_link_is_not_drawn) {
    enum { HIDDEN = 2 };
    for (int mode = 0; mode < 8; mode++) {
        bool replace = mode & 1, weighted = mode & 2, back = mode & 4;
        const int32_t of[2] = {back ? 0 : HIDDEN + 1, back ? HIDDEN + 1 : 0}, fanout = 3;
        int count[DEG] = {0};
        double want[DEG], x;
        float weight[DEG] = {0};
        Star w;
        RtBatch *b;
        star_open(&w);
        w.r.hides = true;
        if (weighted) w.r.weight = w.weight;
        RtSampleSpec spec = {.how.n_hops = 1, .fanout = &fanout, .how.replace = replace};
        RtSampler *s = sampler_of(&w.g, &spec, &b);
        RtSeeds q[2] = {{.n = 1, .id = &of[0], .n_links = 1}, {.n = 1, .id = &of[1]}};
        for (uint64_t k = 0; k < ROUNDS; k++) {
            RtSampleAt at = {9, k / 100, k % 100};
            CHECK(rt_sample_groups(s, &at, q, 2, b, NULL) == GNNC_OK);
            CHECK(b->edges[0].n == fanout);
            for (int64_t i = 0; i < b->edges[0].n; i++) count[b->edges[0].pos[i]]++;
        }
        float all = 0;
        for (int i = 0; i < DEG; i++)
            all += weight[i] = i == HIDDEN ? 0 : weighted ? w.weight[i] : 1;
        for (int i = 0; i < DEG; i++) {
            want[i] = ROUNDS * (replace ? 3 * weight[i] / all : chance(weight, i, 0, 3));
            CHECK(weight[i] > 0 || count[i] == 0);
        }
        x = chi_square(count, want, DEG);
        CHECK_MSG(x < 29.6, "mode %d: %g", mode, x);
        rt_batch_free(b);
        rt_sampler_free(s);
        rt_pool_free(&w.pool);
    }
}

/* To 2 units in the last place of the logarithm. */
TEST(logarithms_of_what_is_drawn) {
    CHECK(rt_neg_log(1) == 0);
    for (int i = 1; i <= 53; i++) CHECK(rt_neg_log(ldexp(1, -i)) == i * 0.69314718055994530942);
    for (uint64_t i = 0; i < 20000; i++) {
        double u = rt_draw_real(5, i), near_one = 1 - ldexp(u, -20);
        CHECK(fabs(rt_neg_log(u) + log(u)) <= ldexp(-log(u), -51));
        CHECK(fabs(rt_neg_log(near_one) + log(near_one)) <= ldexp(-log(near_one), -51));
    }
}

TEST(weighted_draws) {
    int count[DEG];
    double want[DEG];
    for (int replace = 0; replace < 2; replace++) {
        Star w;
        star_open(&w);
        w.r.weight = w.weight;
        draw_often(&w, 3, (RtSampleSpec){.how.replace = replace}, 0, count, NULL);
        for (int i = 0; i < DEG; i++)
            want[i] = ROUNDS * (replace ? 3 * w.weight[i] / 18 : chance(w.weight, i, 0, 3));
        for (int i = 0; i < DEG; i += 4) CHECK(count[i] == 0); /* weight 0 */
        CHECK_MSG(chi_square(count, want, DEG) < 27.9, "%g", chi_square(count, want, DEG));
    }
}

TEST(temporal_draws_are_uniform_over_what_is_known) {
    int count[DEG];
    double want[DEG];
    for (int sorted = 0; sorted < 2; sorted++) {
        Star w;
        star_open(&w);
        w.r.time = w.time, w.r.time_sorted = sorted;
        RtSampleSpec spec = {.how.disjoint = true, .temporal = true};
        draw_often(&w, 2, spec, 8, count, NULL);
        for (int i = 0; i < DEG; i++) want[i] = i < 8 ? ROUNDS * 2.0 / 8 : 0;
        for (int i = 8; i < DEG; i++) CHECK(count[i] == 0); /* 8 itself is not before 8 */
        CHECK_MSG(chi_square(count, want, DEG) < 24.3, "%g", chi_square(count, want, DEG));
    }
}

/* Weights count among what is known alone. */
TEST(weighted_temporal_draws) {
    enum { KNOWN = 7 };
    int count[DEG];
    double want[DEG];
    for (int mode = 0; mode < 4; mode++) {
        Star w;
        float weight[DEG] = {0}, all = 0;
        star_open(&w);
        for (int i = 0; i < KNOWN; i++) all += weight[i] = w.weight[i];
        w.r.weight = w.weight, w.r.time = w.time, w.r.time_sorted = mode & 2;
        RtSampleSpec spec = {.how.disjoint = true, .temporal = true, .how.replace = mode & 1};
        draw_often(&w, 3, spec, KNOWN, count, NULL);
        for (int i = 0; i < DEG; i++)
            want[i] = ROUNDS * (spec.how.replace ? 3 * weight[i] / all : chance(weight, i, 0, 3));
        for (int i = 0; i < DEG; i++) CHECK(weight[i] > 0 || count[i] == 0);
        CHECK_MSG(chi_square(count, want, DEG) < 20.6, "%g", chi_square(count, want, DEG));
    }
}

/* Where the first and the last of a list go. */
TEST(shuffled_places_are_uniform) {
    int first[DEG] = {0}, last[DEG] = {0};
    double want[DEG];
    for (uint64_t epoch = 0; epoch < ROUNDS; epoch++) {
        int32_t order[DEG];
        for (int i = 0; i < DEG; i++) order[i] = i;
        rt_sample_shuffle(4, epoch, order, DEG);
        for (int i = 0; i < DEG; i++) {
            first[i] += order[i] == 0;
            last[i] += order[i] == DEG - 1;
        }
    }
    for (int i = 0; i < DEG; i++) want[i] = (double)ROUNDS / DEG;
    CHECK_MSG(chi_square(first, want, DEG) < 31.3, "%g", chi_square(first, want, DEG));
    CHECK_MSG(chi_square(last, want, DEG) < 31.3, "%g", chi_square(last, want, DEG));
}

/* Long lists of draws take another algorithm. */
TEST(large_fanouts_without_replacement) {
    enum { D = 3000, K = 700 };
    RtPool pool;
    RtRelation rel;
    rt_pool_init(&pool, NULL);
    int32_t *src = RT_NEWN(&pool, int32_t, D), *dst = RT_NEWN(&pool, int32_t, D), seed = 0, k = K;
    for (int i = 0; i < D; i++) src[i] = i;
    CHECK(rt_relation_base(&pool, D, D, D, src, dst, &rel, NULL) == GNNC_OK);
    CHECK(rt_relation_group_src(&pool, &rel, NULL) == GNNC_OK);
    RtSampleRel r = rt_sample_rel("edge", 0, 0, &rel);
    RtSampleType type = {.name = "node", .n = D};
    RtSampleGraph g = {1, 1, &type, &r};
    RtSampleSpec spec = {.how.n_hops = 1, .fanout = &k};
    RtBatch *b;
    RtSampler *s = sampler_of(&g, &spec, &b);
    int tenth[10] = {0};
    double want[10];
    for (uint64_t n = 0; n < 50; n++) {
        RtSeeds q = {.n = 1, .id = &seed};
        CHECK(rt_sample_nodes(s, &(RtSampleAt){1, 0, n}, &q, b, NULL) == GNNC_OK);
        CHECK(b->edges[0].n == K);
        for (int64_t i = 0; i < K; i++) {
            CHECK(i == 0 || b->edges[0].pos[i] > b->edges[0].pos[i - 1]);
            tenth[b->edges[0].pos[i] * 10 / D]++;
        }
    }
    for (int i = 0; i < 10; i++) want[i] = 50 * K / 10.0;
    CHECK_MSG(chi_square(tenth, want, 10) < 27.9, "%g", chi_square(tenth, want, 10));
    rt_batch_free(b);
    rt_sampler_free(s);
    rt_pool_free(&pool);
}

/* ---- times ----------------------------------------------------------------------------------- */
static const int32_t FAN[2 * N_RELS] = {4, 3, -1, 2, 5, 3, 2, 2, 3, 5};
static const int32_t SEED[6] = {3, 7, 3, 0, 59, 12};

static bool known(double t, double at, bool inclusive) {
    return inclusive ? t <= at : t < at;
}

static bool may_see(const World *w, int r, int64_t e, double at) {
    const RtSampleType *t = &w->type[w->rel[r].src_type];
    if (w->rel[r].time && !known(w->rel[r].time[e], at, w->rel[r].inclusive)) return false;
    return !t->time || known(t->time[w->rel[r].src[e]], at, t->inclusive);
}

/* Everything drawn may be seen; as much is drawn as there is; of the recent, none left out is
 * newer than one taken. */
static void check_times(const World *w, const RtBatch *b, const double *when, bool recent) {
    for (int r = 0; r < N_RELS; r++)
        for (int64_t d = 0; d < b->nodes[w->rel[r].dst_type].end[1]; d++) {
            const RtBatchNodes *to = &b->nodes[w->rel[r].dst_type];
            double at = when[to->tree[d]], oldest = INFINITY, missed = -INFINITY;
            const double *time = w->rel[r].time;
            int64_t n = 0, i = b->edges[r].ptr[d], have = b->edges[r].ptr[d + 1] - i;
            for (int64_t e = w->rel[r].ptr[to->id[d]]; e < w->rel[r].ptr[to->id[d] + 1]; e++) {
                bool is_drawn = i < b->edges[r].ptr[d + 1] && b->edges[r].pos[i] == e;
                bool may = may_see(w, r, e, at);
                i += is_drawn, n += may;
                CHECK(!is_drawn || may);
                if (time && is_drawn) oldest = fmin(oldest, time[e]);
                if (time && may && !is_drawn) missed = fmax(missed, time[e]);
            }
            int k = FAN[(d < to->end[0] ? 0 : 1) * N_RELS + r];
            CHECK(have == (k < 0 || n < k ? n : k));
            CHECK(!recent || missed <= oldest);
        }
}

TEST(nothing_newer_than_the_seed_is_seen) {
    for (uint32_t seed = 0; seed < 16; seed++) {
        World w;
        RtBatch *b;
        double when[6];
        world_open(&w, seed);
        for (int r = 0; r < N_RELS; r++) w.rel[r].time = r == SIMILAR ? NULL : w.edge_time[r];
        w.rel[BUYS].inclusive = seed & 1;
        if (seed & 2) w.type[0].time = w.user_time, w.type[0].inclusive = seed & 4;
        w.type[1].time = w.item_time;
        for (int i = 0; i < 6; i++) /* a seed is not newer than its own time */
            when[i] = fmax(some(seed, (uint32_t)i, 45), w.user_time[SEED[i]]);
        RtSampleSpec spec = {
            .how.n_hops = 2, .fanout = FAN, .how.disjoint = true, .temporal = true};
        spec.how.pick = seed & 8 ? RT_PICK_RECENT : RT_PICK_UNIFORM, spec.check = true;
        RtSampler *s = sampler_of(&w.g, &spec, &b);
        RtSeeds q = {.n = 6, .id = SEED, .time = when};
        RtError err = {""};
        gnnc_status st = rt_sample_nodes(s, &(RtSampleAt){seed, 0, 0}, &q, b, &err);
        CHECK_MSG(st == GNNC_OK, "%s", err.text);
        check_batch(&w.g, b);
        check_times(&w, b, when, spec.how.pick == RT_PICK_RECENT);
        rt_batch_free(b);
        rt_sampler_free(s);
        for (int mode = 1; mode < 3; mode++) { /* the other edges too, says the check */
            spec.how.edges = (rt_batch_edges)mode;
            s = sampler_of(&w.g, &spec, &b);
            CHECK(rt_sample_nodes(s, &(RtSampleAt){seed, 0, 0}, &q, b, NULL) == GNNC_OK);
            check_batch(&w.g, b);
            rt_batch_free(b);
            rt_sampler_free(s);
        }
        world_close(&w);
    }
}

/* ---- the order of times --------------------------------------------------------------- */
/* Of some relations edges have times, of others sources do, of SIMILAR both do. */
static void time_some(World *w, uint32_t seed) {
    w->type[1].time = w->item_time;
    w->item_time[9] = NAN;
    w->item_time[3] = w->item_time[7] = 2; /* seeds are no newer than their own times */
    w->type[1].inclusive = w->rel[FOLLOWS].inclusive = w->rel[SIMILAR].inclusive = seed & 1;
    w->rel[FOLLOWS].time = w->edge_time[FOLLOWS];
    w->rel[SIMILAR].time = w->edge_time[SIMILAR];
    for (int64_t e = 0; e < w->rel[SIMILAR].n_edges; e++) /* no edge is there before its source */
        w->edge_time[SIMILAR][e] =
            fmax(w->edge_time[SIMILAR][e], w->item_time[w->r[SIMILAR].src[e]]);
}

static void order_all(World *w) {
    for (int r = 0; r < N_RELS; r++) {
        RtSampleRel *rel = &w->rel[r];
        int64_t n_dst = w->type[rel->dst_type].n;
        CHECK(rt_sample_order(&w->pool, &w->type[rel->src_type], n_dst, rel, NULL) == GNNC_OK);
    }
}

static RtBatch *drawn(const World *w, const RtSampleSpec *spec, uint64_t seed, int64_t n_links) {
    RtBatch *b;
    RtSampler *s = sampler_of(&w->g, spec, &b);
    double when[3] = {25, 31, 49}, late[3] = {25, 31, 49};
    int32_t item[3] = {7, 3, 7};
    RtSeeds q[2] = {{.n = 3, .id = SEED, .time = when, .n_links = n_links},
                    {.type = 1, .n = 3, .id = item, .time = late}};
    RtError err = {""};
    gnnc_status st = rt_sample_groups(s, &(RtSampleAt){seed, 0, 0}, q, 2, b, &err);
    CHECK_MSG(st == GNNC_OK, "%s", err.text);
    check_batch(&w->g, b);
    rt_sampler_free(s);
    return b;
}

/* It is found sooner, and is no other: the newest, also where edges are hidden, all, and what is
 * drawn by weight. */
TEST(an_order_of_times_finds_what_scanning_does) {
    static const int32_t fan[2 * N_RELS] = {4, 3, -1, 6, 5, 60, 2, 20, 3, 5};
    for (uint32_t seed = 0; seed < 24; seed++) {
        World w;
        world_open(&w, seed);
        time_some(&w, seed);
        bool by_weight = seed % 3 == 2, hides = seed % 3 == 1;
        for (int r = 0; by_weight && r < N_RELS; r++) w.rel[r].weight = w.weight[r];
        w.rel[BOUGHT].hides = w.rel[BUYS].hides = hides;
        RtSampleSpec spec = {.how.n_hops = 2, .fanout = fan, .how.disjoint = true};
        spec.temporal = spec.check = true;
        spec.how.replace = by_weight && seed & 4;
        spec.how.pick = by_weight && seed & 2 ? RT_PICK_UNIFORM : RT_PICK_RECENT;
        RtBatch *scanned = drawn(&w, &spec, seed, hides ? 3 : 0);
        order_all(&w);
        for (int r = FOLLOWS; r <= SIMILAR; r++) {
            bool timed = r != BUYS;
            CHECK(w.rel[r].time_sorted == timed && !w.rel[r].by_time == !timed);
        }
        RtBatch *searched = drawn(&w, &spec, seed, hides ? 3 : 0);
        CHECK(same_batch(scanned, searched));
        rt_batch_free(scanned);
        rt_batch_free(searched);
        world_close(&w);
    }
}

/* Uniform draws choose among what is known, whatever the order it lies in. */
TEST(draws_by_an_order_of_times_are_uniform) {
    int count[DEG];
    double want[DEG], node_time[DEG + 1];
    for (int replace = 0; replace < 2; replace++) {
        Star w;
        star_open(&w);
        for (int i = 0; i <= DEG; i++) node_time[i] = i * 5 % 13;
        node_time[4] = NAN;
        w.type.time = node_time;
        CHECK(rt_sample_order(&w.pool, &w.type, w.type.n, &w.r, NULL) == GNNC_OK && w.r.by_time);
        RtSampleSpec spec = {.how.disjoint = true, .temporal = true, .how.replace = replace};
        draw_often(&w, 2, spec, 7, count, NULL);
        for (int i = 0; i < DEG; i++) want[i] = node_time[i + 1] < 7 ? ROUNDS * 2.0 / 6 : 0;
        for (int i = 0; i < DEG; i++) CHECK(want[i] > 0 || count[i] == 0);
        CHECK_MSG(chi_square(count, want, DEG) < 20.6, "%g", chi_square(count, want, DEG));
    }
}

/* No order: an edge that is older than its source, or sees its own time otherwise. */
TEST(times_without_an_order_are_scanned) {
    for (int mode = 0; mode < 3; mode++) {
        World w;
        world_open(&w, 1);
        time_some(&w, 0);
        RtSampleRel *r = &w.rel[SIMILAR];
        if (mode == 1) w.edge_time[SIMILAR][0] = w.item_time[r->src[0]] - 1;
        if (mode == 2) r->inclusive = true;
        CHECK(rt_sample_order(&w.pool, &w.type[1], N_ITEMS, r, NULL) == GNNC_OK);
        CHECK(r->time_sorted == (mode == 0));
        world_close(&w);
    }
}

/* What a seed refers to is there; what others do, and what lies further, is as old as it must be.
 */
TEST(a_seed_knows_what_its_own_edges_lead_to) {
    static const int32_t all[2 * N_RELS] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
    for (int own = 0; own < 2; own++) {
        World w;
        world_open(&w, 5);
        w.type[1].time = w.item_time;
        w.rel[BOUGHT].own = own;
        for (int i = 0; i < N_ITEMS; i += 2) w.item_time[i] = 100 + i;
        order_all(&w);
        RtSampleSpec spec = {.how.n_hops = 2, .fanout = all, .how.disjoint = true};
        spec.temporal = spec.check = true;
        RtBatch *b;
        RtSampler *s = sampler_of(&w.g, &spec, &b);
        double when[3] = {30, 30, 30};
        RtSeeds q = {.n = 3, .id = SEED, .time = when};
        RtError err = {""};
        gnnc_status st = rt_sample_nodes(s, &(RtSampleAt){1, 0, 0}, &q, b, &err);
        CHECK_MSG(st == GNNC_OK, "%s", err.text);
        check_batch(&w.g, b);
        const RtBatchNodes *to = &b->nodes[0];
        for (int64_t d = 0; d < to->end[1]; d++) {
            int64_t lo = w.r[BOUGHT].ptr[to->id[d]], hi = w.r[BOUGHT].ptr[to->id[d] + 1], n = 0;
            for (int64_t e = lo; e < hi; e++)
                n += (own && d < to->end[0]) || w.item_time[w.r[BOUGHT].src[e]] < 30;
            CHECK(b->edges[BOUGHT].ptr[d + 1] - b->edges[BOUGHT].ptr[d] == n);
        }
        rt_batch_free(b);
        rt_sampler_free(s);
        world_close(&w);
    }
}

/* The debug mode finds what a wrong claim lets through, and seeds newer than their time. */
TEST(the_check_finds_newer_rows) {
    Star w;
    star_open(&w);
    int32_t all = -1, seed = 0;
    double at = 11.5, node_time[DEG + 1] = {12};
    w.time[1] = 20; /* not ascending: the search passes over it */
    w.r.time = w.time, w.r.time_sorted = true;
    RtSampleSpec spec = {.how.n_hops = 1, .fanout = &all, .how.disjoint = true, .temporal = true};
    RtSeeds q = {.n = 1, .id = &seed, .time = &at};
    for (int mode = 0; mode < 3; mode++) {
        RtBatch *b;
        RtError err = {""};
        spec.check = mode > 0;
        if (mode == 2) w.r.time = NULL, w.type.time = node_time;
        RtSampler *s = sampler_of(&w.g, &spec, &b);
        gnnc_status st = rt_sample_nodes(s, &(RtSampleAt){0}, &q, b, &err);
        if (mode == 0) CHECK(st == GNNC_OK && b->edges[0].n == DEG);
        if (mode == 1)
            CHECK_MSG(st == GNNC_E_ASSERT && strstr(err.text, "'edge' at 20"), "%s", err.text);
        if (mode == 2)
            CHECK_MSG(st == GNNC_E_ASSERT && strstr(err.text, "'node' at 12"), "%s", err.text);
        rt_batch_free(b);
        rt_sampler_free(s);
    }
    rt_pool_free(&w.pool);
}

/* ---- graphs and clusters -------- */
TEST(batches_of_graphs) {
    /* three graphs of 3, 0 and 2 nodes: 0>1, 1>2, 2>0; 3>4, 4>3, 4>4 */
    const int32_t src[6] = {0, 1, 2, 3, 4, 4}, dst[6] = {1, 2, 0, 4, 3, 4}, take[4] = {2, 0, 2, 1};
    const int64_t ptr[4] = {0, 3, 3, 5}, *const ptrs[1] = {ptr};
    RtParts parts = {.n = 3, .ptr = ptrs};
    RtPool pool;
    RtRelation rel;
    RtBatch *b;
    rt_pool_init(&pool, NULL);
    CHECK(rt_relation_base(&pool, 5, 5, 6, src, dst, &rel, NULL) == GNNC_OK);
    CHECK(rt_relation_group_src(&pool, &rel, NULL) == GNNC_OK);
    RtSampleRel r = rt_sample_rel("bond", 0, 0, &rel);
    RtSampleType type = {.name = "atom", .n = 5};
    RtSampleGraph g = {1, 1, &type, &r};
    RtSampleSpec spec = {.how.disjoint = true, .how.edges = RT_EDGES_INDUCED};
    RtSampler *s = sampler_of(&g, &spec, &b);
    CHECK(rt_sample_parts(s, &(RtSampleAt){0}, &parts, take, 4, b, NULL) == GNNC_OK);
    const int32_t id[7] = {3, 4, 0, 1, 2, 3, 4}, graph[7] = {0, 0, 1, 1, 1, 2, 2};
    CHECK(b->nodes[0].n == 7 && b->edges[0].n == 9);
    CHECK(same_bytes(b->nodes[0].id, id, 7, 4) && same_bytes(b->nodes[0].tree, graph, 7, 4));
    check_batch(&g, b);
    parts.n = 2;
    CHECK(rt_sample_parts(s, &(RtSampleAt){0}, &parts, take, 4, b, NULL) == GNNC_E_RANGE);
    rt_batch_free(b);
    rt_sampler_free(s);
    spec.how.edges = RT_EDGES_DIRECTIONAL;
    s = sampler_of(&g, &spec, &b);
    parts.n = 3;
    CHECK(rt_sample_parts(s, &(RtSampleAt){0}, &parts, take, 4, b, NULL) == GNNC_E_ARG);
    rt_batch_free(b);
    rt_sampler_free(s);
    /* Clusters: rows in any order, an edge between two parts is there where both are. */
    spec = (RtSampleSpec){.how.edges = RT_EDGES_INDUCED};
    const int32_t row[5] = {0, 2, 4, 1, 3}, *const rows[1] = {row};
    const int64_t cut[3] = {0, 3, 5}, *const cuts[1] = {cut};
    const int32_t both[2] = {1, 0};
    s = sampler_of(&g, &spec, &b);
    parts = (RtParts){.n = 2, .ptr = cuts, .row = rows};
    CHECK(rt_sample_parts(s, &(RtSampleAt){0}, &parts, both, 2, b, NULL) == GNNC_OK);
    CHECK(b->nodes[0].n == 5 && b->edges[0].n == 6 && b->nodes[0].id[0] == 1);
    CHECK(rt_sample_parts(s, &(RtSampleAt){0}, &parts, both + 1, 1, b, NULL) == GNNC_OK);
    CHECK(b->nodes[0].n == 3 && b->edges[0].n == 2); /* 2>0, 4>4 */
    check_batch(&g, b);
    rt_batch_free(b);
    rt_sampler_free(s);
    rt_pool_free(&pool);
}

/* Two rings joined by one edge fall apart there; without METIS the error says what to do. */
TEST(clusters) {
    enum { N = 40 };
    int32_t src[N + 1], dst[N + 1], part[N], *const parts[1] = {part};
    RtPool pool;
    RtRelation rel;
    RtError err = {""};
    for (int i = 0; i < N; i++) src[i] = i, dst[i] = i / 20 * 20 + (i + 1) % 20;
    src[N] = 3, dst[N] = 33;
    rt_pool_init(&pool, NULL);
    CHECK(rt_relation_base(&pool, N, N, N + 1, src, dst, &rel, NULL) == GNNC_OK);
    CHECK(rt_relation_group_src(&pool, &rel, NULL) == GNNC_OK);
    RtSampleRel r = rt_sample_rel("edge", 0, 0, &rel);
    RtSampleType type = {.name = "node", .n = N};
    RtSampleGraph g = {1, 1, &type, &r};
    gnnc_status st = rt_sample_clusters(&g, 2, 1, NULL, parts, &err);
    if (!rt_sample_has_clusters()) {
        CHECK(st == GNNC_E_STATE && strstr(err.text, "libmetis-dev"));
    } else {
        CHECK(st == GNNC_OK);
        for (int i = 0; i < N; i++) CHECK(part[i] == part[i / 20 * 20]);
        CHECK(part[0] != part[20]);
        CHECK(rt_sample_clusters(&g, 0, 1, NULL, parts, &err) == GNNC_E_RANGE);
        CHECK(rt_sample_clusters(&g, 1, 1, NULL, parts, NULL) == GNNC_OK && part[39] == 0);
        st = GNNC_E_NOMEM;
        for (long k = 0; st != GNNC_OK && k < 50; k++) {
            FailingAlloc f;
            RtAlloc from = failing(&f, k);
            st = rt_sample_clusters(&g, 2, 1, &from, parts, NULL);
            CHECK((st == GNNC_OK || st == GNNC_E_NOMEM) && f.n_live == 0);
        }
    }
    rt_pool_free(&pool);
}

TEST_MAIN()
