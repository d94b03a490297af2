/* Neighbour sampling against its definition: every option on random heterogeneous graphs,
 * the same batches for every team and after a resume, hostile requests, lack of memory. */
#include "sample_util.h"

#include "runtime/batch/minibatch.h"

enum { HOPS = 3 };
static const int32_t FAN[HOPS * N_RELS] = {4, 3, -1, 2, 5, 3, 2, 2, 0, 5, 2, 6, 1, 2, 1};
static const int32_t ALL[HOPS * N_RELS] = {-1, -1, -1, -1, -1, -1, -1, -1,
                                           -1, -1, -1, -1, -1, -1, -1};
static const int32_t SEED[9] = {3, 7, 3, 0, 59, 12, 7, 30, 58}; /* repeated, isolated */
static const double WHEN[9] = {20, 10, 35, 0, 49, 25, 50, 5, NAN};
static const RtSeeds SEEDS = {.type = 0, .n = 9, .id = SEED, .time = WHEN};

static int hop_of(const RtBatchNodes *v, int64_t i) {
    int h = 0;
    while (i >= v->end[h]) h++;
    return h;
}

/* How many edges a destination gets, by the definition. */
static void check_fanouts(const World *w, const RtSampleSpec *spec, const RtBatch *b) {
    for (int r = 0; r < N_RELS; r++) {
        const RtSampleRel *rel = &w->rel[r];
        const RtBatchNodes *to = &b->nodes[rel->dst_type];
        for (int64_t d = 0; d < to->n; d++) {
            int h = hop_of(to, d);
            int64_t n = b->edges[r].ptr[d + 1] - b->edges[r].ptr[d], have = 0;
            for (int64_t e = rel->ptr[to->id[d]]; e < rel->ptr[to->id[d] + 1]; e++) {
                bool is_drawable = !rel->weight || rel->weight[e] > 0;
                have += h < HOPS && (spec->fanout[h * N_RELS + r] < 0 || is_drawable);
            }
            int64_t k = h == HOPS ? 0 : spec->fanout[h * N_RELS + r];
            int64_t want = k < 0 ? have : spec->how.replace ? (have ? k : 0) : have < k ? have : k;
            CHECK_MSG(n == want, "relation %d, node %lld, hop %d: %lld edges, not %lld", r,
                      (long long)d, h, (long long)n, (long long)want);
            for (int64_t i = b->edges[r].ptr[d] + 1; i < b->edges[r].ptr[d + 1]; i++)
                CHECK(spec->how.replace || b->edges[r].pos[i] > b->edges[r].pos[i - 1]);
        }
    }
}

/* A node of hop h > 0 is there since some node of hop h - 1 drew it. */
static void check_hops(const World *w, const RtBatch *b) {
    for (int t = 0; t < N_TYPES; t++)
        for (int64_t i = b->nodes[t].end[0]; i < b->nodes[t].n; i++) {
            int first = HOPS + 1;
            for (int r = 0; r < N_RELS; r++)
                for (int64_t e = 0; w->rel[r].src_type == t && e < b->edges[r].n; e++)
                    if (b->edges[r].src[e] == i) {
                        int h = hop_of(&b->nodes[w->rel[r].dst_type], b->edges[r].dst[e]) + 1;
                        if (h < first) first = h;
                    }
            CHECK(first == hop_of(&b->nodes[t], i));
        }
}

static void check_seeds(const RtSampleSpec *spec, const RtBatch *b) {
    CHECK(b->n_groups == 1 && b->n_seeds[0] == SEEDS.n);
    CHECK(b->nodes[0].end[0] == (spec->how.disjoint ? 9 : 7) && b->nodes[1].end[0] == 0);
    for (int i = 0; i < 9; i++) {
        CHECK(b->nodes[0].id[b->seed[0][i]] == SEED[i]);
        CHECK(!spec->how.disjoint || b->nodes[0].tree[b->seed[0][i]] == i);
    }
}

TEST(batches_are_what_the_options_say) {
    for (uint32_t seed = 0; seed < 12; seed++) {
        World w;
        world_open(&w, seed);
        RtSampleSpec spec = {.how.n_hops = HOPS, .fanout = seed % 6 == 5 ? ALL : FAN};
        spec.how.replace = seed % 2, spec.how.disjoint = seed / 2 % 2;
        if (seed > 5)
            for (int r = 0; r < N_RELS; r++) w.rel[r].weight = w.weight[r];
        RtBatch *b;
        RtSampler *s = sampler_of(&w.g, &spec, &b);
        for (uint64_t k = 0; k < 5; k++) {
            RtError err = {""};
            gnnc_status st = rt_sample_nodes(s, &(RtSampleAt){seed, 0, k}, &SEEDS, b, &err);
            CHECK_MSG(st == GNNC_OK, "%s", err.text);
            check_batch(&w.g, b);
            check_fanouts(&w, &spec, b);
            check_hops(&w, b);
            check_seeds(&spec, b);
        }
        rt_batch_free(b);
        rt_sampler_free(s);
        world_close(&w);
    }
}

/* ---- relations that lead elsewhere ---------------------------------------------------------- */
/* Is there an edge of the data between the ends, this way or (`both`) the other? */
static bool joined(const RtRelation *data, int32_t u, int32_t v, bool both) {
    for (int64_t e = 0; e < data->n_edges; e++) {
        if (data->dst[e] == u && data->src[e] == v) return true;
        if (both && data->src[e] == u && data->dst[e] == v) return true;
    }
    return false;
}

/* All in-edges of a seed along reverse(follows) and undirected(follows), by the definition: whom
 * it follows, and whoever follows it; drawn ones are some of these, with their rows. */
TEST(edges_of_the_other_direction) {
    for (uint32_t seed = 0; seed < 4; seed++) {
        World w;
        world_open(&w, seed);
        RtRelation r[2];
        CHECK(rt_relation_reverse(&w.pool, &w.r[FOLLOWS], &r[0], NULL) == GNNC_OK);
        CHECK(rt_relation_undirected(&w.pool, &w.r[FOLLOWS], &r[1], NULL) == GNNC_OK);
        RtSampleRel rel[2] = {rt_sample_rel("back", 0, 0, &r[0]),
                              rt_sample_rel("both", 0, 0, &r[1])};
        const RtSampleGraph g = {N_TYPES, 2, w.type, rel};
        const int32_t fan[2] = {seed % 2 ? 3 : -1, seed % 2 ? 4 : -1};
        RtSampleSpec spec = {.how.n_hops = 1, .fanout = fan};
        RtBatch *b;
        RtSampler *s = sampler_of(&g, &spec, &b);
        CHECK(rt_sample_nodes(s, &(RtSampleAt){seed, 0, 0}, &SEEDS, b, NULL) == GNNC_OK);
        check_batch(&g, b);
        for (int k = 0; k < 2; k++)
            for (int64_t d = 0; d < b->nodes[0].end[0]; d++) {
                int64_t n = b->edges[k].ptr[d + 1] - b->edges[k].ptr[d], all = 0;
                int32_t v = b->nodes[0].id[d];
                if (k == 0)
                    for (int64_t e = 0; e < w.r[FOLLOWS].n_edges; e++)
                        all += w.r[FOLLOWS].src[e] == v;
                for (int32_t u = 0; k == 1 && u < N_USERS; u++)
                    all += joined(&w.r[FOLLOWS], u, v, true);
                CHECK(n == (fan[k] >= 0 && all > fan[k] ? fan[k] : all));
                for (int64_t i = b->edges[k].ptr[d]; i < b->edges[k].ptr[d + 1]; i++) {
                    int32_t from = r[k].orig[0][b->edges[k].pos[i]];
                    int32_t u = b->nodes[0].id[b->edges[k].src[i]];
                    const RtRelation *data = &w.r[FOLLOWS];
                    bool back = data->dst[from] == u && data->src[from] == v;
                    CHECK(back || (k && data->src[from] == u && data->dst[from] == v));
                }
            }
        rt_batch_free(b);
        rt_sampler_free(s);
        world_close(&w);
    }
}

/* ---- edges beyond those drawn ------------------------------------------------------------- */
static bool has_pos(const RtBatch *b, int r, int64_t d, int64_t pos) {
    for (int64_t i = b->edges[r].ptr[d]; i < b->edges[r].ptr[d + 1]; i++)
        if (b->edges[r].pos[i] == pos) return true;
    return false;
}

static int64_t local_of(const RtBatch *b, int type, int32_t tree, int32_t id) {
    for (int64_t i = 0; i < b->nodes[type].n; i++)
        if (b->nodes[type].id[i] == id && tree_of(b, type, i) == tree) return i;
    return -1;
}

static void same_nodes(const RtBatch *x, const RtBatch *y) {
    for (int t = 0; t < N_TYPES; t++) {
        CHECK(x->nodes[t].n == y->nodes[t].n);
        CHECK(same_bytes(x->nodes[t].id, y->nodes[t].id, y->nodes[t].n, 4));
    }
}

static void check_induced(const World *w, const RtBatch *b) {
    for (int r = 0; r < N_RELS; r++) {
        const RtSampleRel *rel = &w->rel[r];
        for (int64_t d = 0; d < b->nodes[rel->dst_type].n; d++) {
            int32_t v = b->nodes[rel->dst_type].id[d], tree = tree_of(b, rel->dst_type, d);
            for (int64_t e = rel->ptr[v]; e < rel->ptr[v + 1]; e++)
                CHECK(has_pos(b, r, d, e) == (local_of(b, rel->src_type, tree, rel->src[e]) >= 0));
        }
    }
}

/* Expected: drawn (in x), or the answer of a drawn edge. */
static void check_both(const World *w, const RtBatch *x, const RtBatch *b) {
    for (int q = 0; q < N_RELS; q++) {
        const RtSampleRel *rel = &w->rel[q];
        for (int64_t d = 0; d < b->nodes[rel->dst_type].n; d++) {
            int32_t v = b->nodes[rel->dst_type].id[d], tree = tree_of(b, rel->dst_type, d);
            for (int64_t e = rel->ptr[v]; e < rel->ptr[v + 1]; e++) {
                bool want = has_pos(x, q, d, e);
                int64_t u = local_of(b, rel->src_type, tree, rel->src[e]);
                for (int r = 0; u >= 0 && r < N_RELS; r++)
                    for (int64_t i = 0; w->rel[r].reverse == q && i < x->edges[r].n; i++)
                        want = want || (x->edges[r].src[i] == d && x->edges[r].dst[i] == u);
                CHECK(has_pos(b, q, d, e) == want);
            }
            for (int64_t i = b->edges[q].ptr[d] + 1; i < b->edges[q].ptr[d + 1]; i++)
                CHECK(b->edges[q].pos[i] > b->edges[q].pos[i - 1]);
        }
    }
}

TEST(induced_and_bidirectional_edges) {
    for (uint32_t seed = 0; seed < 6; seed++) {
        World w;
        RtBatch *b[3];
        world_open(&w, seed);
        for (int mode = 0; mode < 3; mode++) {
            RtSampleSpec spec = {.how.n_hops = 2, .fanout = FAN, .how.disjoint = seed % 2};
            spec.how.edges = (rt_batch_edges)mode, spec.how.replace = seed % 3 == 2;
            RtSampler *s = sampler_of(&w.g, &spec, &b[mode]);
            CHECK(rt_sample_nodes(s, &(RtSampleAt){seed, 1, 2}, &SEEDS, b[mode], NULL) == GNNC_OK);
            check_batch(&w.g, b[mode]);
            same_nodes(b[0], b[mode]);
            CHECK(b[mode]->by_hop == (mode == 0));
            rt_sampler_free(s);
        }
        check_both(&w, b[0], b[1]);
        check_induced(&w, b[2]);
        for (int mode = 0; mode < 3; mode++) rt_batch_free(b[mode]);
        world_close(&w);
    }
}

/* ---- threads, resuming -------- */
/* Large enough that members share the work; trees, hubs and weights in turn. */
static void big_world(RtPool *pool, RtRelation *r, RtRelation *wide, float *weight, int64_t n,
                      int64_t n_edges) {
    int32_t *src = RT_NEWN(pool, int32_t, n_edges), *dst = RT_NEWN(pool, int32_t, n_edges);
    for (int64_t e = 0; e < n_edges; e++) {
        src[e] = (int32_t)some(1, (uint32_t)e, (uint32_t)n);
        dst[e] = (int32_t)some(2, (uint32_t)e, (uint32_t)n);
        if (e % 50 == 0) dst[e] = 17;
        weight[e] = (float)some(3, (uint32_t)e, 3);
    }
    CHECK(rt_relation_base(pool, n, n, n_edges, src, dst, r, NULL) == GNNC_OK);
    CHECK(rt_relation_base_wide(pool, n, n, n_edges, src, dst, wide, NULL) == GNNC_OK);
    CHECK(rt_relation_group_src(pool, r, NULL) == GNNC_OK);
    CHECK(rt_group_wide(pool, wide->src, n_edges, n, &wide->by_src, NULL) == GNNC_OK);
}

TEST(batches_do_not_depend_on_threads_positions_or_on_where_a_run_resumed) {
    enum { N = 5000, E = 40000, B = 300 };
    static float weight[E];
    RtPool pool;
    RtRelation rel, wide;
    rt_pool_init(&pool, NULL);
    big_world(&pool, &rel, &wide, weight, N, E);
    int32_t order[N];
    for (int i = 0; i < N; i++) order[i] = i;
    rt_sample_shuffle(5, 3, order, N);
    const int32_t fanout[2] = {12, 5};
    RtSampleType type = {.name = "node", .n = N};
    for (int mode = 0; mode < 6; mode++) {
        RtSampleRel r = rt_sample_rel("edge", 0, 0, &rel);
        r.reverse = 0;
        if (mode == 1) r.weight = weight;
        RtSampleRel in_64_bits = r;
        in_64_bits.by_src = &wide.by_src;
        in_64_bits.id = NULL;
        in_64_bits.wide = true;
        in_64_bits.wide_id = wide.wide_id;
        RtSampleGraph narrow_g = {1, 1, &type, &r}, wide_g = {1, 1, &type, &in_64_bits};
        RtSampleSpec spec = {.how.n_hops = 2, .fanout = fanout, .transpose = true};
        spec.how.disjoint = mode == 2 || mode == 5, spec.how.replace = mode == 3;
        spec.how.edges = mode == 4   ? RT_EDGES_INDUCED
                         : mode == 5 ? RT_EDGES_BIDIRECTIONAL
                                     : RT_EDGES_DIRECTIONAL;
        RtBatch *first[4] = {NULL};
        int threads[] = {1, 2, 3, 7};
        for (int t = 0; t < 4; t++) {
            RtTeam *team;
            RtSampler *s;
            RtBatch *b;
            RtAlloc from = rt_alloc_default();
            RtSampleGraph g = t % 2 ? wide_g : narrow_g;
            CHECK(rt_team_start(&team, &from, threads[t], 2, NULL) == GNNC_OK);
            CHECK(rt_sampler_new(&s, NULL, &g, &spec, team, threads[t], NULL) == GNNC_OK);
            /* With one thread in order; the others begin in the middle of the epoch. */
            for (int i = 0; i < 4; i++) {
                int k = t == 0 ? i : (i + 2) % 4;
                RtSeeds seeds = {.n = B, .id = order + k * B};
                CHECK(rt_sampler_batch(s, &b, NULL) == GNNC_OK);
                CHECK(rt_sample_nodes(s, &(RtSampleAt){5, 3, (uint64_t)k}, &seeds, b, NULL) ==
                      GNNC_OK);
                if (t == 0) {
                    first[k] = b;
                    if (k == 0) check_batch(&g, b);
                } else {
                    CHECK(same_batch(b, first[k]));
                    CHECK(same_bytes(b->edges[0].by_src.perm, first[k]->edges[0].by_src.perm,
                                     b->edges[0].n, 4));
                    rt_batch_free(b);
                }
            }
            rt_sampler_free(s);
            rt_team_stop(team);
        }
        CHECK(!same_batch(first[0], first[1]));
        for (int k = 0; k < 4; k++) rt_batch_free(first[k]);
    }
    rt_pool_free(&pool);
}

/* Ids chosen so that all fall into the shard of one of two members. */
/* By comparing each node with all before it; ids below n_all. */
static void check_once(int64_t n, int64_t n_all, int64_t step) {
    RtPool pool;
    RtDistinctRows o;
    rt_pool_init(&pool, NULL);
    int32_t *id = RT_NEWN(&pool, int32_t, n);
    for (int64_t i = 0; i < n; i++)
        id[i] = (int32_t)(some(9, (uint32_t)i, (uint32_t)(n_all / step)) * step);
    RtBatchNodes v = {.n = n, .id = id};
    CHECK(rt_batch_once(&pool, &v, n_all, &o, NULL) == GNNC_OK);
    int64_t n_rows = 0;
    for (int64_t i = 0; i < n; i++) {
        CHECK(rt_distinct_among(&o, i) == n_rows);
        int64_t k = 0;
        while (id[k] != id[i]) k++;
        if (k == i) {
            CHECK(o.first[n_rows] == i);
            n_rows++;
        }
        CHECK(o.distinct[i] == o.distinct[k] && o.first[o.distinct[i]] == k);
    }
    CHECK(o.n == n_rows && rt_distinct_among(&o, n) == n_rows);
    rt_pool_free(&pool);
}

/* Rows with places of their own, and fewer places than rows, whose ids are multiples of these. */
TEST(rows_of_a_batch_are_numbered_as_they_first_come) {
    check_once(0, 5, 1);
    check_once(400, 30, 1);
    check_once(400, 1000000, 1);
    check_once(400, 1 << 20, 1024);
    check_once(400, 1 << 12, 1024);
}

TEST(ids_that_crowd_in_one_shard) {
    enum { N = 20000, E = 4000 };
    RtPool pool;
    RtRelation rel;
    RtTeam *team;
    rt_pool_init(&pool, NULL);
    int32_t *src = RT_NEWN(&pool, int32_t, E), *dst = RT_NEWN(&pool, int32_t, E);
    int32_t n = 0, seeds[20];
    for (int32_t v = 0; n < E; v++)
        if (rt_splitmix64((uint64_t)v) >> 63) src[n++] = v;
    for (int i = 0; i < E; i++) dst[i] = i % 20;
    for (int i = 0; i < 20; i++) seeds[i] = i;
    CHECK(rt_relation_base(&pool, N, N, E, src, dst, &rel, NULL) == GNNC_OK);
    CHECK(rt_relation_group_src(&pool, &rel, NULL) == GNNC_OK);
    RtSampleRel r = rt_sample_rel("edge", 0, 0, &rel);
    RtSampleType type = {.name = "node", .n = N};
    RtSampleGraph g = {1, 1, &type, &r};
    const int32_t all = -1;
    RtSampleSpec spec = {.how.n_hops = 1, .fanout = &all};
    RtAlloc from = rt_alloc_default();
    RtBatch *b[2];
    CHECK(rt_team_start(&team, &from, 2, 2, NULL) == GNNC_OK);
    for (int t = 0; t < 2; t++) {
        RtSampler *s;
        CHECK(rt_sampler_new(&s, NULL, &g, &spec, t ? team : NULL, t + 1, NULL) == GNNC_OK);
        CHECK(rt_sampler_batch(s, &b[t], NULL) == GNNC_OK);
        RtSeeds q = {.n = 20, .id = seeds};
        CHECK(rt_sample_nodes(s, &(RtSampleAt){0}, &q, b[t], NULL) == GNNC_OK);
        CHECK(b[t]->edges[0].n == E);
        rt_sampler_free(s);
    }
    check_batch_edges(&g, b[0], 0);
    CHECK(same_batch(b[0], b[1]));
    rt_batch_free(b[0]);
    rt_batch_free(b[1]);
    rt_team_stop(team);
    rt_pool_free(&pool);
}

TEST(later_epochs_take_no_memory) {
    enum { N = 5000, E = 40000, B = 250 };
    static float weight[E];
    RtPool pool;
    RtRelation rel, wide;
    FailingAlloc f;
    RtAlloc from = failing(&f, -1);
    rt_pool_init(&pool, NULL);
    big_world(&pool, &rel, &wide, weight, N, E);
    RtSampleRel r = rt_sample_rel("edge", 0, 0, &rel);
    RtSampleType type = {.name = "node", .n = N};
    RtSampleGraph g = {1, 1, &type, &r};
    const int32_t fanout[2] = {8, 4};
    RtSampleSpec spec = {.how.n_hops = 2, .fanout = fanout, .transpose = true};
    RtSampler *s;
    RtBatch *b;
    CHECK(rt_sampler_new(&s, &from, &g, &spec, NULL, 1, NULL) == GNNC_OK);
    CHECK(rt_sampler_batch(s, &b, NULL) == GNNC_OK);
    long calls = 0;
    for (uint64_t epoch = 0; epoch < 4; epoch++) {
        int32_t order[N];
        for (int i = 0; i < N; i++) order[i] = i;
        rt_sample_shuffle(1, epoch, order, N);
        for (uint64_t k = 0; k < N / B; k++) {
            RtSeeds q = {.n = B, .id = order + k * B};
            CHECK(rt_sample_nodes(s, &(RtSampleAt){1, epoch, k}, &q, b, NULL) == GNNC_OK);
        }
        if (epoch == 0) calls = f.n_calls;
    }
    CHECK(f.n_calls == calls && b->growth.n_grown > 0);
    CHECK(rt_sampler_counters(s).n_batches == 80 && rt_sampler_counters(s).held_bytes > 0);
    rt_batch_free(b);
    rt_sampler_free(s);
    CHECK(f.n_live == 0);
    rt_pool_free(&pool);
}

/* ---- what cannot be -------- */
static void refuse(const RtSampleGraph *g, RtSampleSpec spec, gnnc_status want, const char *words) {
    RtSampler *s;
    RtError err = {""};
    CHECK(rt_sampler_new(&s, NULL, g, &spec, NULL, 1, &err) == want && !s);
    CHECK_MSG(strstr(err.text, words), "\"%s\" lacks \"%s\"", err.text, words);
}

TEST(hostile_requests) {
    World w;
    world_open(&w, 0);
    int32_t bad[HOPS * N_RELS];
    memcpy(bad, FAN, sizeof bad);
    bad[6] = -2;
    RtSampleSpec ok = {.how.n_hops = HOPS, .fanout = FAN}, spec = ok;
    spec.fanout = bad;
    refuse(&w.g, spec, GNNC_E_RANGE, "'buys': hop 2: a fan-out of -2");
    spec.fanout = NULL;
    refuse(&w.g, spec, GNNC_E_ARG, "fan-out");
    spec = ok, spec.temporal = true;
    refuse(&w.g, spec, GNNC_E_ARG, "disjoint");
    spec = ok, spec.how.pick = RT_PICK_RECENT;
    refuse(&w.g, spec, GNNC_E_ARG, "temporal");
    w.weight[SIMILAR][11] = -1, w.rel[SIMILAR].weight = w.weight[SIMILAR];
    refuse(&w.g, ok, GNNC_E_VALUE, "'similar': edge 11: weight -1");
    w.weight[SIMILAR][11] = INFINITY;
    refuse(&w.g, ok, GNNC_E_VALUE, "inf");
    w.rel[SIMILAR].weight = NULL;
    spec = ok, spec.how.edges = RT_EDGES_BIDIRECTIONAL;
    w.rel[BUYS].reverse = SIMILAR;
    refuse(&w.g, spec, GNNC_E_ARG, "'buys': its reverse");
    w.rel[BUYS].reverse = BOUGHT, w.rel[BOUGHT].by_src = NULL;
    refuse(&w.g, spec, GNNC_E_ARG, "by source");
    w.type[1].n = (int64_t)INT32_MAX + 1;
    refuse(&w.g, ok, GNNC_E_RANGE, "31 bits");
    world_close(&w);
}

TEST(bad_seeds_leave_an_empty_batch) {
    World w;
    RtBatch *b;
    world_open(&w, 0);
    RtSampleSpec spec = {.how.n_hops = HOPS, .fanout = FAN};
    RtSampler *s = sampler_of(&w.g, &spec, &b);
    RtError err = {""};
    const int32_t bad[2] = {3, 60}, tree[2] = {0, -1};
    CHECK(rt_sample_nodes(s, &(RtSampleAt){0}, &SEEDS, b, NULL) == GNNC_OK && b->nodes[0].n > 0);
    CHECK(rt_sample_nodes(s, &(RtSampleAt){0}, &(RtSeeds){.n = 2, .id = bad}, b, &err) ==
          GNNC_E_RANGE);
    CHECK_STR(err.text, "seed 1: 60 is no 'user' node: there are 60");
    CHECK(b->nodes[0].n == 0 && b->edges[0].n == 0 && b->n_groups == 0);
    RtSeeds q = {.n = 2, .id = SEED, .tree = tree};
    CHECK(rt_sample_nodes(s, &(RtSampleAt){0}, &q, b, NULL) == GNNC_E_RANGE);
    q = (RtSeeds){.type = 2, .n = 1, .id = SEED};
    CHECK(rt_sample_nodes(s, &(RtSampleAt){0}, &q, b, NULL) == GNNC_E_RANGE);
    q = (RtSeeds){.n = 0};
    CHECK(rt_sample_nodes(s, &(RtSampleAt){0}, &q, b, NULL) == GNNC_OK);
    check_batch(&w.g, b);
    rt_batch_free(b);
    rt_sampler_free(s);
    world_close(&w);
}

/* Edges beyond 2^31: their number is refused before any of them is looked at. */
TEST(more_edges_than_a_batch_can_hold) {
    const int64_t ptr[3] = {0, 3000000000, 3000000005};
    const int32_t none[1] = {0}, seeds[2] = {0, 1}, all = -1;
    RtSampleRel r = {.name = "huge", .n_edges = ptr[2], .ptr = ptr, .src = none, .reverse = -1};
    RtSampleType type = {.name = "node", .n = 2};
    RtSampleGraph g = {1, 1, &type, &r};
    RtSampleSpec spec = {.how.n_hops = 1, .fanout = &all};
    RtBatch *b;
    RtError err = {""};
    RtSampler *s = sampler_of(&g, &spec, &b);
    CHECK(rt_sample_nodes(s, &(RtSampleAt){0}, &(RtSeeds){.n = 2, .id = seeds}, b, &err) ==
          GNNC_E_RANGE);
    CHECK_MSG(strstr(err.text, "3000000005"), "%s", err.text);
    rt_batch_free(b);
    rt_sampler_free(s);
}

static gnnc_status sample_all(const RtAlloc *from, const World *w, RtTeam *team) {
    RtSampler *s = NULL;
    RtBatch *b = NULL;
    gnnc_status st;
    for (int mode = 0; mode < 3; mode++) {
        RtSampleSpec spec = {
            .how.n_hops = 2, .fanout = FAN, .how.disjoint = true, .transpose = true};
        spec.how.edges = (rt_batch_edges)mode;
        TRY(st, rt_sampler_new(&s, from, &w->g, &spec, team, 2, NULL));
        TRY(st, rt_sampler_batch(s, &b, NULL));
        TRY(st, rt_sample_nodes(s, &(RtSampleAt){0}, &SEEDS, b, NULL));
        rt_batch_free(b);
        rt_sampler_free(s);
        s = NULL;
        b = NULL;
    }
out:
    CHECK(st == GNNC_OK || !b || b->nodes[0].n == 0);
    rt_batch_free(b);
    rt_sampler_free(s);
    return st;
}

TEST(every_failed_allocation_is_survived) {
    World w;
    RtTeam *team;
    RtAlloc plain = rt_alloc_default();
    gnnc_status st = GNNC_E_NOMEM;
    world_open(&w, 3);
    for (int r = 0; r < N_RELS; r++) w.rel[r].weight = w.weight[r];
    CHECK(rt_team_start(&team, &plain, 2, 2, NULL) == GNNC_OK);
    for (long k = 0; st != GNNC_OK && k < 2000; k++) {
        FailingAlloc f;
        RtAlloc from = failing(&f, k);
        st = sample_all(&from, &w, team);
        CHECK(st == GNNC_OK || st == GNNC_E_NOMEM);
        CHECK(f.n_live == 0);
    }
    CHECK(st == GNNC_OK);
    rt_team_stop(team);
    world_close(&w);
}

TEST(shuffled_orders_are_permutations_of_their_own) {
    enum { N = 1000 };
    int32_t a[N], b[N], seen[N] = {0};
    int moved = 0, differ = 0;
    for (int i = 0; i < N; i++) a[i] = b[i] = i;
    rt_sample_shuffle(1, 0, a, N);
    rt_sample_shuffle(1, 1, b, N);
    for (int i = 0; i < N; i++) {
        seen[a[i]]++;
        moved += a[i] != i;
        differ += a[i] != b[i];
    }
    for (int i = 0; i < N; i++) CHECK(seen[i] == 1);
    CHECK(moved > 900 && differ > 900);
    rt_sample_shuffle(1, 0, a, 0);
}

/* ---- memory that grows -------------------------------------------------------- */
static void *summed_alloc(void *user, size_t n_bytes) {
    *(size_t *)user += n_bytes;
    return calloc(1, n_bytes);
}

static void summed_release(void *user, void *block) {
    (void)user;
    free(block);
}

/* What will be taken is told before, to the byte: a limit is kept by it. */
TEST(growth_takes_what_it_told) {
    for (int roomy = 0; roomy < 2; roomy++) {
        size_t sum = 0, grown = 0;
        RtGrowth g = {.from = {summed_alloc, summed_release, &sum}, .roomy = roomy};
        RtGrow b = {0};
        for (size_t need = 0; need < 100000; need += 1 + need / 8) {
            size_t told = rt_grow_takes(&g, &b, need), before = sum;
            CHECK(rt_grow(&g, &b, (int64_t)need, 1, 0, NULL) == GNNC_OK);
            CHECK(sum - before == told && b.n_bytes >= need);
            CHECK(told == 0 || told >= need + need / 4);
            grown += told > 0;
        }
        CHECK(grown > 5 && rt_grow_takes(&g, &b, SIZE_MAX) == SIZE_MAX);
        rt_grow_free(&g, &b);
    }
}

TEST_MAIN()
