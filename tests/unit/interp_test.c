/* The reference interpreter against small independent loops and written-out
 * results: it is the oracle of every other test, so nothing here goes through it
 * twice. */
#include "ctx_test.h"

#include <math.h>

#include "ir/interp.h"

/* A module with one homogeneous and one bipartite relation, and a builder in "f". */
typedef struct {
    Ctx *c;
    Module *m;
    Builder b;
    Space *node, *edge, *src, *dst, *link, *k, *o;
    Interp *in;
} Fixture;

enum { N = 6, E = 8, S = 5, D = 4, L = 6, K = 3, O = 2 };
static const int32_t from[E] = {5, 1, 0, 3, 1, 2, 0, 3}, to[E] = {0, 2, 0, 2, 2, 1, 5, 3};
static const int32_t lfrom[L] = {4, 0, 1, 0, 4, 2}, lto[L] = {3, 0, 3, 3, 3, 0};

static double val(int i) {
    return (i * 37 % 101) / 8.0 - 6;
}

static Fixture fixture(Ctx *c) {
    Fixture x = {.c = c, .m = module_new(c, "t")};
    Span at = {0};
    x.node = space_node(x.m, "node", at);
    x.edge = space_edge(x.m, "edge", x.node, x.node, at);
    x.src = space_node(x.m, "src", at);
    x.dst = space_node(x.m, "dst", at);
    x.link = space_edge(x.m, "link", x.src, x.dst, at);
    x.k = space_dim(x.m, "k", expr_const(c->a, K), at);
    x.o = space_dim(x.m, "o", expr_const(c->a, O), at);
    x.b = (Builder){.m = x.m, .f = func_new(x.m, "f")};
    return x;
}

static Type f32(int rank, Space *const *dims) {
    return type_make(DT_F32, rank, dims);
}
#define T(...)                                                                                     \
    f32((int)(sizeof((Space *[]){__VA_ARGS__}) / sizeof(Space *)), (Space *[]){__VA_ARGS__})

static Op *var(Fixture *x, const char *name, Type t) {
    return b_var(&x->b, var_new(x->m, VAR_STATE, name, t, (Init){0}, (Span){0}));
}

/* After building: everything but the variables is given; those get val(0), val(1), .. */
static void start(Fixture *x) {
    x->in = interp_new(x->c, x->m);
    interp_set_size(x->in, x->node, N);
    interp_set_size(x->in, x->src, S);
    interp_set_size(x->in, x->dst, D);
    interp_set_edges(x->in, x->edge, E, from, to);
    interp_set_edges(x->in, x->link, L, lfrom, lto);
}

static void give_vars(Fixture *x) {
    double v[1024];
    for (int i = 0; i < 1024; i++) v[i] = val(i);
    for (int i = 0; i < x->m->vars.n; i++) interp_set_var(x->in, x->m->vars.v[i], v);
}

static bool run(Fixture *x) {
    bool ok = interp_run(x->in, x->b.f);
    CHECK_MSG(ok, "%s", interp_error(x->in));
    return ok;
}

static void check_values(Fixture *x, const char *output, int n, const double *want) {
    const OpTensor *y = interp_output(x->in, output);
    CHECK_MSG(y && y->count == n, "%s: %d values, not %d", output, y ? (int)y->count : -1, n);
    for (int i = 0; y && i < n && i < y->count; i++)
        CHECK_MSG(y->v[i] == want[i], "%s[%d] is %.9g, not %.9g", output, i, y->v[i], want[i]);
}

#define UNUSED_ARG (void)arg

/* ---- maps ----------------------------------------------------------------------- */

CTX_TEST(edges_are_sorted_by_destination_then_by_place) {
    UNUSED_ARG;
    Fixture x = fixture(c);
    start(&x);
    const InterpEdges *e = interp_edges(x.in, x.edge);
    static const int64_t want[E] = {0, 2, 5, 1, 3, 4, 7, 6};
    for (int i = 0; i < E; i++) {
        CHECK(e->pos[i] == want[i] && e->key[i] == want[i]);
        CHECK(e->src[i] == from[want[i]] && e->dst[i] == to[want[i]]);
    }
}

CTX_TEST(gather_and_segment_follow_the_edges) {
    UNUSED_ARG;
    Fixture x = fixture(c);
    Op *v = var(&x, "v", T(x.src, x.k));
    Op *g = b_gather(&x.b, map_src(x.m, x.link), v);
    const char *names[] = {"sum", "max", "min"};
    for (int r = 0; r < 3; r++)
        b_output(&x.b, names[r], b_segment(&x.b, (RedKind)r, map_dst(x.m, x.link), g));
    start(&x);
    give_vars(&x);
    if (!run(&x)) return;
    for (int r = 0; r < 3; r++) {
        double want[D * K] = {0};
        bool any[D] = {false};
        for (int e = 0; e < L; e++) {
            for (int k = 0; k < K; k++) {
                double *y = &want[lto[e] * K + k], a = val(lfrom[e] * K + k);
                *y = !any[lto[e]] ? a : r == 0 ? *y + a : r == 1 ? fmax(*y, a) : fmin(*y, a);
            }
            any[lto[e]] = true;
        }
        check_values(&x, names[r], D * K, want);
    }
}

CTX_TEST(a_category_of_minus_one_reads_zero_and_belongs_to_no_row) {
    UNUSED_ARG;
    Fixture x = fixture(c);
    Column *kind = column_new(x.m, COL_CAT, x.node, "kind", 0, NULL, x.k, (Span){0});
    Map *m = map_col(x.m, kind);
    b_output(&x.b, "gather", b_gather(&x.b, m, var(&x, "v", T(x.k))));
    b_output(&x.b, "segment", b_segment(&x.b, RED_SUM, m, var(&x, "w", T(x.node))));
    b_output(&x.b, "valid", b_valid(&x.b, m));
    b_output(&x.b, "index", b_index(&x.b, m));
    start(&x);
    give_vars(&x);
    interp_set_column(x.in, kind, (double[]){2, -1, 0, 2, 2, -1});
    if (!run(&x)) return;
    check_values(&x, "gather", N, (double[]){val(2), 0, val(0), val(2), val(2), 0});
    check_values(&x, "segment", K, (double[]){val(2), 0, val(0) + val(3) + val(4)});
    check_values(&x, "valid", N, (double[]){1, 0, 1, 1, 1, 0});
    check_values(&x, "index", N, (double[]){2, -1, 0, 2, 2, -1});
}

CTX_TEST(nodes_are_summed_per_graph) {
    UNUSED_ARG;
    Fixture x = fixture(c);
    Space *graph = space_graph(x.m, "graph", (Span){0});
    x.node->graph = graph;
    b_output(&x.b, "y", b_segment(&x.b, RED_SUM, map_graph(x.m, x.node), var(&x, "v", T(x.node))));
    start(&x);
    interp_set_size(x.in, graph, 3);
    interp_set_graphs(x.in, x.node, (int32_t[]){0, 0, 2, 2, 2, 2});
    give_vars(&x);
    if (!run(&x)) return;
    double want[] = {val(0) + val(1), 0, val(2) + val(3) + val(4) + val(5)};
    check_values(&x, "y", 3, want);
}

/* ---- derived relations ------------------------------------------------------------- */

typedef struct {
    int n;
    int64_t src[16], dst[16], key[16], orig[16], n_keys;
} Want;

static void check_relation(Fixture *x, const Space *s, const Want *w) {
    const InterpEdges *e = interp_edges(x->in, s);
    CHECK_MSG(e && e->n == w->n && e->n_keys == w->n_keys, "%s: %d edges", s->name,
              e ? (int)e->n : -1);
    for (int i = 0; e && i < w->n && i < e->n; i++) {
        CHECK_MSG(e->src[i] == w->src[i] && e->dst[i] == w->dst[i], "%s: edge %d", s->name, i);
        CHECK_MSG(e->key[i] == w->key[i], "%s: key %d is %d", s->name, i, (int)e->key[i]);
        CHECK_MSG(e->orig[0][i] == w->orig[i], "%s: orig %d", s->name, i);
    }
}

/* The relation, canonical: 5>0 0>0 2>1 1>2 3>2 1>2 3>3 0>5, file places 0 2 5 1 3 4 7 6. */
CTX_TEST(derived_relations_are_what_the_rules_say) {
    UNUSED_ARG;
    Fixture x = fixture(c);
    Span at = {0};
    Space *loops = space_derived(x.m, REL_SELF_LOOPS, x.edge, NULL, NULL, at);
    Space *none = space_derived(x.m, REL_NO_LOOPS, x.edge, NULL, NULL, at);
    Space *back = space_derived(x.m, REL_REVERSE, x.edge, NULL, NULL, at);
    Space *both = space_derived(x.m, REL_UNDIRECTED, x.edge, NULL, NULL, at);
    Space *all = space_derived(x.m, REL_UNION, none, back, NULL, at);
    start(&x);
    check_relation(&x, none,
                   &(Want){.n = 6,
                           .src = {5, 2, 1, 3, 1, 0},
                           .dst = {0, 1, 2, 2, 2, 5},
                           .key = {0, 5, 1, 3, 4, 6},
                           .orig = {0, 2, 3, 4, 5, 7},
                           .n_keys = 8});
    check_relation(&x, loops,
                   &(Want){.n = 12,
                           .src = {5, 0, 2, 1, 1, 3, 1, 2, 3, 4, 0, 5},
                           .dst = {0, 0, 1, 1, 2, 2, 2, 2, 3, 4, 5, 5},
                           .key = {0, 8, 5, 9, 1, 3, 4, 10, 11, 12, 6, 13},
                           .orig = {0, -1, 2, -1, 3, 4, 5, -1, -1, -1, 7, -1},
                           .n_keys = 14});
    check_relation(&x, back,
                   &(Want){.n = 8,
                           .src = {0, 5, 2, 2, 1, 2, 3, 0},
                           .dst = {0, 0, 1, 1, 2, 3, 3, 5},
                           .key = {2, 6, 1, 4, 5, 3, 7, 0},
                           .orig = {1, 7, 3, 5, 2, 4, 6, 0},
                           .n_keys = 8});
    check_relation(&x, both,
                   &(Want){.n = 8,
                           .src = {5, 0, 2, 1, 3, 3, 2, 0},
                           .dst = {0, 0, 1, 2, 2, 3, 3, 5},
                           .key = {0, 1, 2, 3, 4, 5, 7, 6},
                           .orig = {0, 1, 2, 3, 4, 6, 4, 7},
                           .n_keys = 8});
    CHECK(interp_edges(x.in, all)->n == 14 && interp_edges(x.in, all)->n_keys == 14);
    static const int64_t first[] = {0, 6, 7}; /* into node 0: 5>0 of none; 0>0, 5>0 of back */
    for (int i = 0; i < 3; i++) CHECK(interp_edges(x.in, all)->key[i] == first[i]);
    CHECK(interp_edges(x.in, all)->orig[1][1] == 0 && interp_edges(x.in, all)->orig[1][0] == -1);
}

CTX_TEST(where_keeps_the_edges_that_load_marks) {
    UNUSED_ARG;
    Fixture x = fixture(c);
    Column *w = column_new(x.m, COL_FLOAT, x.edge, "w", 0, NULL, NULL, (Span){0});
    Space *heavy = space_derived(x.m, REL_WHERE, x.edge, NULL, "heavy", (Span){0});
    Builder load = {.m = x.m, .f = func_new(x.m, "load")};
    Op *limit = b_const(&load, DT_F32, 0.5);
    b_output(&load, "heavy", b_binary(&load, OP_LT, limit, b_data(&load, w)));
    Op *weight = b_gather(&load, map_orig(x.m, heavy, 0), b_data(&load, w));
    b_output(&load, "kept", weight);
    b_output(&x.b, "y", b_saved(&x.b, "kept", T(heavy)));
    start(&x);
    interp_set_column(x.in, w, (double[]){1, 0, 0.75, 0.25, 3, 0, 5, 0});
    CHECK_MSG(interp_run(x.in, load.f), "%s", interp_error(x.in));
    if (!run(&x)) return;
    check_values(&x, "y", 4, (double[]){1, 0.75, 3, 5}); /* 5>0 0>0 1>2 0>5 */
}

/* ---- along spaces ---------------------------------------------------------------------- */

CTX_TEST(contract_is_the_matrix_product) {
    UNUSED_ARG;
    Fixture x = fixture(c);
    Op *a = var(&x, "a", T(x.node, x.k)), *w = var(&x, "w", T(x.o, x.k));
    b_output(&x.b, "y", b_contract(&x.b, a, w, T(x.node, x.o)));
    b_output(&x.b, "t", b_contract(&x.b, a, w, T(x.o, x.node)));
    start(&x);
    give_vars(&x);
    if (!run(&x)) return;
    double want[N * O] = {0}, turned[N * O];
    for (int n = 0; n < N; n++)
        for (int o = 0; o < O; o++) {
            for (int k = 0; k < K; k++) want[n * O + o] += val(n * K + k) * val(o * K + k);
            turned[o * N + n] = want[n * O + o];
        }
    check_values(&x, "y", N * O, want);
    check_values(&x, "t", N * O, turned);
}

CTX_TEST(operands_are_aligned_by_name) {
    UNUSED_ARG;
    Fixture x = fixture(c);
    Op *a = var(&x, "a", T(x.node, x.k)), *p = var(&x, "p", T(x.k, x.node));
    b_output(&x.b, "permuted", b_binary(&x.b, OP_SUB, a, p));
    b_output(&x.b, "row", b_binary(&x.b, OP_SUB, var(&x, "r", T(x.node)), a));
    start(&x);
    give_vars(&x);
    if (!run(&x)) return;
    double permuted[N * K], row[N * K];
    for (int n = 0; n < N; n++)
        for (int k = 0; k < K; k++) {
            permuted[n * K + k] = val(n * K + k) - val(k * N + n);
            row[n * K + k] = val(n) - val(n * K + k);
        }
    check_values(&x, "permuted", N * K, permuted);
    check_values(&x, "row", N * K, row);
}

CTX_TEST(reductions_and_ranks) {
    UNUSED_ARG;
    Fixture x = fixture(c);
    Op *v = var(&x, "v", T(x.node)), *m = b_binary(&x.b, OP_LT, v, b_const(&x.b, DT_F32, 9));
    b_output(&x.b, "sum", b_reduce(&x.b, RED_SUM, v, 1, &x.node));
    b_output(&x.b, "max", b_reduce(&x.b, RED_MAX, v, 1, &x.node));
    b_output(&x.b, "argmax", b_argmax(&x.b, v, x.node));
    b_output(&x.b, "rank", b_rank(&x.b, v, m, x.node, 0.5));
    b_output(&x.b, "lowest", b_rank(&x.b, v, m, x.node, 0));
    b_output(&x.b, "highest", b_rank(&x.b, v, m, x.node, 1));
    Op *parts = b_copy(&x.b, v, T(x.node, x.o));
    b_output(&x.b, "view", b_view(&x.b, parts, T(x.node, x.o)));
    start(&x);
    interp_set_var(x.in, x.m->vars.v[0], (double[]){2, 9, -1, 2, 9, 0});
    if (!run(&x)) return;
    check_values(&x, "sum", 1, (double[]){21});
    check_values(&x, "max", 1, (double[]){9});
    check_values(&x, "argmax", 1, (double[]){1});
    check_values(&x, "rank", N, (double[]){3.5, 0, 1, 3.5, 0, 2});
    check_values(&x, "lowest", N, (double[]){3, 0, 1, 3, 0, 2});
    check_values(&x, "highest", N, (double[]){4, 0, 1, 4, 0, 2});
    check_values(&x, "view", N * O, (double[]){2, 2, 9, 9, -1, -1, 2, 2, 9, 9, 0, 0});
}

CTX_TEST(concat_and_slice) {
    UNUSED_ARG;
    Fixture x = fixture(c);
    Space *both = space_dim(x.m, "both", expr_const(c->a, K + O), (Span){0});
    Op *k = var(&x, "k", T(x.dst, x.k)), *o = var(&x, "o", T(x.dst, x.o));
    Op *y = b_concat(&x.b, k, o, x.k, x.o, both);
    b_output(&x.b, "y", y);
    b_output(&x.b, "s", b_slice(&x.b, y, both, x.o, expr_const(c->a, 2)));
    start(&x);
    give_vars(&x);
    if (!run(&x)) return;
    double want[D * (K + O)], cut[D * O];
    for (int d = 0; d < D; d++) {
        for (int i = 0; i < K + O; i++)
            want[d * (K + O) + i] = i < K ? val(d * K + i) : val(d * O + i - K);
        for (int i = 0; i < O; i++) cut[d * O + i] = want[d * (K + O) + 2 + i];
    }
    check_values(&x, "y", D * (K + O), want);
    check_values(&x, "s", D * O, cut);
}

/* ---- csr and random streams -------------------------------------------------------------- */

CTX_TEST(a_mask_is_the_same_dense_and_csr) {
    UNUSED_ARG;
    Fixture x = fixture(c);
    Column *col = column_new(x.m, COL_CSR, x.dst, "x", 1, &x.k, NULL, (Span){0});
    Builder *b = &x.b;
    Op *mask = b_random(b, 3, T(x.dst, x.k));
    b_output(b, "nz", b_random(b, 3, T(col->nz)));
    b_output(b, "dense", mask);
    b_output(b, "csr", b_binary(b, OP_MUL, b_data(b, col), mask));
    b_output(b, "copy", b_copy(b, b_data(b, col), T(x.dst, x.k)));
    b_output(b, "sum", b_reduce(b, RED_SUM, b_data(b, col), 1, &x.k));
    start(&x);
    interp_set_csr(x.in, col, (int64_t[]){0, 2, 2, 3, 5}, (int32_t[]){0, 2, 1, 0, 2},
                   (double[]){1, 2, 3, 4, 5});
    interp_set_seed(x.in, 9, 4);
    if (!run(&x)) return;
    static const int at[] = {0, 2, 7, 9, 11};
    const double *dense = interp_output(x.in, "dense")->v;
    double nz[5], csr[5];
    for (int i = 0; i < 5; i++) nz[i] = dense[at[i]], csr[i] = (double)(float)((i + 1) * nz[i]);
    check_values(&x, "nz", 5, nz);
    check_values(&x, "csr", 5, csr);
    check_values(&x, "copy", D * K, (double[]){1, 0, 2, 0, 0, 0, 0, 3, 0, 4, 0, 5});
    check_values(&x, "sum", D, (double[]){3, 0, 3, 9});
}

CTX_TEST(a_mask_follows_its_edge_into_derived_relations) {
    UNUSED_ARG;
    Fixture x = fixture(c);
    Space *loops = space_derived(x.m, REL_SELF_LOOPS, x.edge, NULL, NULL, (Span){0});
    b_output(&x.b, "base", b_random(&x.b, 0, T(x.edge, x.k)));
    b_output(&x.b, "loops", b_random(&x.b, 0, T(loops, x.k)));
    b_output(&x.b, "other", b_random(&x.b, 1, T(x.edge, x.k)));
    start(&x);
    if (!run(&x)) return;
    const InterpEdges *e = interp_edges(x.in, loops);
    const double *base = interp_output(x.in, "base")->v, *loop = interp_output(x.in, "loops")->v;
    const double *other = interp_output(x.in, "other")->v;
    for (int i = 0; i < e->n; i++)
        for (int k = 0; k < K && e->orig[0][i] >= 0; k++)
            CHECK(loop[i * K + k] == base[e->orig[0][i] * K + k]);
    for (int i = 0; i < E * K; i++) CHECK(base[i] != other[i] && base[i] >= 0 && base[i] < 1);
}

/* Fixed: a change of the generator would silently change every trained model. */
TEST(the_random_stream_keeps_its_values) {
    RtKey k = rt_stream_key(1, 2, 3);
    CHECK(rt_mix32(1) == 0x06d3fa73u && rt_mix32(0xdeadbeefu) == 0x8a2b8af2u);
    CHECK(k.k0 == 0xfde362b3u && k.k1 == 0xd0734750u);
    CHECK(rt_uniform(k, 5, 7) == 0x1.93a5bcp-1f && rt_uniform(k, 0, 0) == 0x1.e947p-5f);
    CHECK(rt_splitmix64(0) == 0xe220a8397b1dcdafu); /* the published first output */
    double mean = 0, square = 0;
    enum { ROWS = 300, COLS = 100 };
    for (uint32_t r = 0; r < ROWS; r++)
        for (uint32_t c = 0; c < COLS; c++) {
            double u = (double)rt_uniform(k, r, c);
            mean += u, square += u * u;
        }
    mean /= ROWS * COLS, square /= ROWS * COLS;
    CHECK(fabs(mean - 0.5) < 0.005 && fabs(square - 1.0 / 3) < 0.005);
}

/* ---- runs ------------------------------------------------------------------------------------ */

CTX_TEST(an_assignment_takes_effect_after_the_run) {
    UNUSED_ARG;
    Fixture x = fixture(c);
    Op *v = var(&x, "v", T(x.k));
    Op *next = b_binary(&x.b, OP_ADD, v, b_const(&x.b, DT_F32, 1));
    b_assign(&x.b, x.m->vars.v[0], next);
    b_output(&x.b, "before", b_var(&x.b, x.m->vars.v[0]));
    start(&x);
    interp_set_var(x.in, x.m->vars.v[0], (double[]){1, 2, 3});
    if (!run(&x)) return;
    check_values(&x, "before", K, (double[]){1, 2, 3});
    if (!run(&x)) return;
    check_values(&x, "before", K, (double[]){2, 3, 4});
}

CTX_TEST(values_are_rounded_to_their_element_type) {
    UNUSED_ARG;
    Fixture x = fixture(c);
    static const DType types[] = {DT_F32, DT_F16, DT_BF16, DT_I32, DT_I1};
    static const char *const names[] = {"f32", "f16", "bf16", "i32", "i1"};
    Op *v = var(&x, "v", type_make(DT_F64, 1, &x.node));
    for (size_t i = 0; i < COUNT(types); i++) b_output(&x.b, names[i], b_cast(&x.b, v, types[i]));
    start(&x);
    interp_set_var(x.in, x.m->vars.v[0], (double[]){1.0 / 3, -65520, 1e-7, 0, 2.998, 3e38});
    if (!run(&x)) return;
    check_values(&x, "f32", N,
                 (double[]){1.0f / 3, -65520, (double)1e-7f, 0, (double)2.998f, (double)3e38f});
    check_values(&x, "f16", N, (double[]){0x1.554p-2, -INFINITY, 0x1p-23, 0, 0x1.7fcp+1, INFINITY});
    check_values(&x, "bf16", N, (double[]){0x1.56p-2, -65536, 0x1.aep-24, 0, 3, 0x1.c4p+127});
    check_values(&x, "i32", N, (double[]){0, -65520, 0, 0, 2, 0});
    check_values(&x, "i1", N, (double[]){1, 1, 1, 0, 1, 1});
}

CTX_TEST(rows_that_another_phase_gave) {
    UNUSED_ARG;
    Fixture x = fixture(c);
    const double rows[N] = {3, 1, 4, 1, 5, 9};
    Op *pred = b_input(&x.b, "pred", T(x.node));
    b_output(&x.b, "y", b_unary(&x.b, OP_NEG, pred));
    start(&x);
    interp_set_input(x.in, "pred", 1);
    CHECK(!interp_run(x.in, x.b.f)); /* one number is not all of them */
    interp_set_rows(x.in, "pred", N, rows);
    if (!run(&x)) return;
    check_values(&x, "y", N, (double[]){-3, -1, -4, -1, -5, -9});
}

CTX_TEST(what_is_not_given_is_an_error) {
    UNUSED_ARG;
    Fixture x = fixture(c);
    b_output(&x.b, "y", b_input(&x.b, "lr", type_scalar(DT_F32)));
    start(&x);
    CHECK(!interp_run(x.in, x.b.f));
    CHECK(strstr(interp_error(x.in), "not given") != NULL);
    interp_set_input(x.in, "lr", 0.5);
    if (!run(&x)) return;
    check_values(&x, "y", 1, (double[]){0.5});
    b_assert(&x.b, "lr must be below 0.25",
             b_binary(&x.b, OP_LT, b_input(&x.b, "lr", type_scalar(DT_F32)),
                      b_const(&x.b, DT_F32, 0.25)));
    CHECK(!interp_run(x.in, x.b.f));
    CHECK(strstr(interp_error(x.in), "lr must be below") != NULL);
}

TEST_MAIN()
