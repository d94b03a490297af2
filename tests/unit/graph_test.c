/* Graphs of the caller's arrays: what they hold, what they refuse, who owns what. */
#include "graph_util.h"

#include <math.h>
#include <pthread.h>
#include <sys/mman.h>

#include "gnnc_dlpack.h"

#include "tiny_program.h"

/* ---- the same bits as from a directory ------------------------------------------------- */
typedef struct {
    const char *dir, *ckpt;
    gnnc_graph *g; /* NULL: from dir */
    double loss;
    bool gives; /* its reference to g, once the trainer has one */
} Run;

static void *train(void *arg) {
    Run *r = arg;
    gnnc_trainer *t = NULL;
    CHECK(gnnc_trainer_create(&t, &tiny_model) == GNNC_OK);
    CHECK(gnnc_trainer_set_int(t, "threads", 2) == GNNC_OK);
    gnnc_status st = r->g ? gnnc_trainer_load_graph(t, r->g) : gnnc_trainer_load(t, r->dir);
    CHECK_MSG(st == GNNC_OK, "load: %s", gnnc_trainer_error(t));
    if (r->gives) gnnc_graph_release(r->g);
    for (int i = 0; i < 4 && st == GNNC_OK; i++) st = gnnc_trainer_epoch(t);
    CHECK_MSG(st == GNNC_OK, "epoch: %s", gnnc_trainer_error(t));
    CHECK(gnnc_trainer_metric(t, "loss.val", &r->loss) == GNNC_OK);
    if (r->ckpt) CHECK(gnnc_trainer_save(t, r->ckpt) == GNNC_OK);
    gnnc_trainer_destroy(t);
    return NULL;
}

typedef struct {
    char dir[64], a[100], b[100];
    RtDataset *d;
} Place;

static Place place_new(void) {
    Place p;
    snprintf(p.dir, sizeof p.dir, "%s", scratch_new());
    snprintf(p.a, sizeof p.a, "%s/a.ckpt", p.dir);
    snprintf(p.b, sizeof p.b, "%s/b.ckpt", p.dir);
    make_data(p.dir);
    CHECK(rt_dataset_open(NULL, p.dir, false, &p.d, NULL) == GNNC_OK);
    return p;
}

static void place_end(Place *p) {
    rt_dataset_close(p->d);
    scratch_remove(p->dir);
}

static bool same_file(const char *a, const char *b) {
    char x[1 << 14], y[1 << 14];
    FILE *f = fopen(a, "rb"), *g = fopen(b, "rb");
    size_t n = f ? fread(x, 1, sizeof x, f) : 0, m = g ? fread(y, 1, sizeof y, g) : 0;
    if (f) fclose(f);
    if (g) fclose(g);
    return n > 0 && n == m && n < sizeof x && memcmp(x, y, n) == 0;
}

TEST(arrays_train_to_the_bits_of_the_directory) {
    Place p = place_new();
    for (int borrow = 0; borrow < 2; borrow++) {
        int n_done = 0;
        gnnc_graph *g = graph_new();
        OK(g, fill_tiny(g, p.d, borrow ? &n_done : NULL));
        Run dir = {p.dir, p.a, NULL, 0, false}, arrays = {NULL, p.b, g, 0, false};
        train(&dir);
        train(&arrays);
        CHECK(dir.loss == arrays.loss && same_file(p.a, p.b));
        CHECK(n_done == 0);
        gnnc_graph_release(g);
        CHECK(n_done == (borrow ? 6 : 0));
    }
    place_end(&p);
}

TEST(a_directory_takes_more_columns) {
    Place p = place_new();
    gnnc_graph *g = graph_new();
    float t[N];
    double d[N];
    for (int i = 0; i < N; i++) d[i] = t[i] = (float)i / N;
    gnnc_array a = array_of(GNNC_DT_F64, 1, N, 0, d);
    OK(g, gnnc_graph_read(g, p.dir, 1));
    CHECK(gnnc_graph_read(g, p.dir, 1) == GNNC_E_STATE);
    CHECK(strstr(gnnc_graph_error(g), "before anything is in the graph"));
    OK(g, gnnc_graph_add_column(g, "n", "t", GNNC_COL_FLOAT, &a, -1, NULL));
    for (int i = 0; i < 9; i++) {
        char name[16];
        snprintf(name, sizeof name, "c%d", i);
        OK(g, gnnc_graph_add_column(g, "n", name, GNNC_COL_TIME, &a, -1, NULL));
    }
    OK(g, gnnc_graph_commit(g));
    CHECK(memcmp(column_of(g, "n", "t")->f32, t, sizeof t) == 0);
    CHECK(memcmp(column_of(g, "n", "c8")->f64, d, sizeof d) == 0);
    Run changed = {NULL, NULL, g, 0, false}, dir = {p.dir, NULL, NULL, 0, false};
    train(&changed);
    train(&dir);
    CHECK(changed.loss != dir.loss);
    gnnc_graph_release(g);
    place_end(&p);
}

/* Each converts, drops and renames what it reads; the sanitizers see them do it (tests/tsan). */
TEST(two_trainers_share_a_graph_at_once) {
    Place p = place_new();
    for (int from_dir = 0; from_dir < 2; from_dir++) {
        gnnc_graph *g = graph_new();
        OK(g, from_dir ? gnnc_graph_read(g, p.dir, 1) : fill_tiny(g, p.d, NULL));
        if (from_dir) OK(g, gnnc_graph_commit(g));
        Run alone = {NULL, NULL, g, 0, false},
            both[2] = {{NULL, NULL, g, 0, true}, {NULL, NULL, g, 0, true}};
        pthread_t id[2];
        train(&alone);
        gnnc_graph_retain(g);
        for (int i = 0; i < 2; i++) CHECK(pthread_create(&id[i], NULL, train, &both[i]) == 0);
        for (int i = 0; i < 2; i++) pthread_join(id[i], NULL);
        CHECK(both[0].loss == alone.loss && both[1].loss == alone.loss);
    }
    place_end(&p);
}

/* ---- arrays ------------------------------------------------------------------------------- */
TEST(borrowed_memory_is_read_where_it_lies) {
    _Alignas(GNNC_ALIGN) static float x[33];
    _Alignas(GNNC_ALIGN) static int32_t y[8], ends[8];
    _Alignas(GNNC_ALIGN) static double when[8];
    int n_done = 0, n_odd = 0, n_wide = 0;
    gnnc_graph *g = graph_new();
    OK(g, gnnc_graph_add_nodes(g, "n", 8));
    gnnc_array a = lent(array_of(GNNC_DT_F32, 2, 8, 4, x), &n_done),
               odd = lent(array_of(GNNC_DT_F32, 2, 8, 4, x + 1), &n_odd),
               wide = lent(array_of(GNNC_DT_I32, 1, 8, 0, y), &n_wide);
    OK(g, gnnc_graph_add_column(g, "n", "x", GNNC_COL_FLOAT, &a, -1, NULL));
    CHECK(column_of(g, "n", "x")->f32 == x && n_done == 0);
    OK(g, gnnc_graph_add_column(g, "n", "odd", GNNC_COL_FLOAT, &odd, -1, NULL));
    CHECK(column_of(g, "n", "odd")->f32 != x + 1 && n_odd == 1);
    OK(g, gnnc_graph_add_column(g, "n", "wide", GNNC_COL_FLOAT, &wide, -1, NULL));
    CHECK(n_wide == 1);
    wide = lent(array_of(GNNC_DT_I32, 1, 8, 0, y), &n_done);
    OK(g, gnnc_graph_add_column(g, "n", "y", GNNC_COL_CLASS, &wide, 3, NULL));
    CHECK(column_of(g, "n", "y")->i32 == y);
    gnnc_array t = lent(array_of(GNNC_DT_F64, 1, 8, 0, when), &n_done);
    OK(g, gnnc_graph_add_column(g, "n", "when", GNNC_COL_TIME, &t, -1, NULL));
    CHECK(column_of(g, "n", "when")->f64 == when);
    gnnc_array src = lent(array_of(GNNC_DT_I32, 1, 4, 0, ends), &n_done), dst = src;
    dst.data = ends + 4; /* ends need no more than their own alignment */
    OK(g, gnnc_graph_add_edges(g, "e", "n", "n", &src, &dst));
    CHECK(g->data->edges[0].src == ends && g->data->edges[0].dst == ends + 4);
    gnnc_array copied = lent(array_of(GNNC_DT_F32, 2, 8, 4, x), &n_odd);
    copied.borrowed = 0;
    OK(g, gnnc_graph_add_column(g, "n", "copied", GNNC_COL_FLOAT, &copied, -1, NULL));
    CHECK(column_of(g, "n", "copied")->f32 != x && n_odd == 2);
    OK(g, gnnc_graph_commit(g));
    gnnc_graph_retain(g);
    gnnc_graph_release(g);
    CHECK(n_done == 0);
    gnnc_graph_release(g);
    CHECK(n_done == 5 && n_odd == 2 && n_wide == 1);
}

/* An array goes back once, also where nothing comes of it. */
TEST(what_a_failed_call_was_lent_goes_back) {
    static float x[4] = {0, 1, NAN, 3};
    int n = 0;
    gnnc_array a = lent(array_of(GNNC_DT_F32, 1, 4, 0, x), &n), b = a;
    gnnc_graph *g = graph_new();
    CHECK(gnnc_graph_add_column(NULL, "n", "x", GNNC_COL_FLOAT, &a, -1, NULL) == GNNC_E_ARG);
    CHECK(gnnc_graph_add_column(g, "n", "x", GNNC_COL_FLOAT, &a, -1, NULL) == GNNC_E_MISSING);
    OK(g, gnnc_graph_add_nodes(g, "n", 4));
    CHECK(gnnc_graph_add_column(g, "n", "x", GNNC_COL_FLOAT, &a, -1, NULL) == GNNC_E_VALUE);
    CHECK_STR(gnnc_graph_error(g), "n.x: row 2: value is NaN");
    CHECK(n == 3);
    CHECK(gnnc_graph_add_edges(g, "e", "n", "n", &a, &b) == GNNC_E_DTYPE && n == 5);
    OK(g, gnnc_graph_commit(g));
    CHECK(gnnc_graph_add_column(g, "n", "x", GNNC_COL_FLOAT, &a, -1, NULL) == GNNC_E_STATE);
    CHECK(n == 6 && g->data->nodes[0].n_columns == 0);
    CHECK(strstr(gnnc_graph_error(g), "committed"));
    gnnc_graph_release(g);
    CHECK(n == 6);
}

TEST(strides_of_any_sign) {
    static const int16_t m[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    static const float want[2][8] = {{0, 4, 1, 5, 2, 6, 3, 7}, {11, 9, 7, 5, 3, 1, 0, 0}};
    gnnc_graph *g = graph_new();
    gnnc_array a = array_of(GNNC_DT_I16, 2, 4, 2, m), b = array_of(GNNC_DT_I16, 1, 6, 0, m + 11);
    a.strided = b.strided = 1;
    a.stride[0] = 2, a.stride[1] = 8; /* the transpose of [3, 4], its first two columns */
    b.stride[0] = -4;
    OK(g, gnnc_graph_add_nodes(g, "a", 4));
    OK(g, gnnc_graph_add_nodes(g, "b", 6));
    OK(g, gnnc_graph_add_column(g, "a", "x", GNNC_COL_FLOAT, &a, -1, NULL));
    OK(g, gnnc_graph_add_column(g, "b", "x", GNNC_COL_FLOAT, &b, -1, NULL));
    CHECK(memcmp(column_of(g, "a", "x")->f32, want[0], sizeof want[0]) == 0);
    CHECK(memcmp(column_of(g, "b", "x")->f32, want[1], 6 * sizeof(float)) == 0);
    /* One value for all rows; strides that say what there is anyway cost no copy. */
    _Alignas(GNNC_ALIGN) static const float one[6] = {7, 0, 0, 0, 0, 0};
    int n = 0;
    gnnc_array c = lent(array_of(GNNC_DT_F32, 1, 6, 0, one), &n), d = c;
    c.strided = d.strided = 1;
    d.stride[0] = sizeof(float);
    OK(g, gnnc_graph_add_column(g, "b", "one", GNNC_COL_FLOAT, &c, -1, NULL));
    OK(g, gnnc_graph_add_column(g, "b", "same", GNNC_COL_FLOAT, &d, -1, NULL));
    CHECK(column_of(g, "b", "one")->f32[5] == 7 && column_of(g, "b", "same")->f32 == one && n == 1);
    gnnc_graph_release(g);
}

TEST(every_element_type) {
    static const uint16_t f16[3] = {0x3c00, 0x4000, 0x4200}, bf16[3] = {0x3f80, 0x4000, 0x4040};
    static const float f32[3] = {1, 2, 3};
    static const double f64[3] = {1, 2, 3};
    static const int8_t i8[3] = {1, 2, 3};
    static const int16_t i16[3] = {1, 2, 3};
    static const int32_t i32[3] = {1, 2, 3};
    static const int64_t i64[3] = {1, 2, 3};
    static const uint8_t yes[3] = {1, 1, 1};
    const void *at[] = {f16, f32, f64, i8, i16, i32, i64, i8, i16, i32, i64, yes, bf16};
    gnnc_graph *g = graph_new();
    OK(g, gnnc_graph_add_nodes(g, "n", 3));
    for (int t = 1; t <= 13; t++) {
        gnnc_array a = array_of((gnnc_element)t, 1, 3, 0, at[t - 1]);
        bool real = rt_dtype_kind((RtDtype)(t - 1)) == 'f', yes_no = t == GNNC_DT_BOOL;
        OK(g, gnnc_graph_add_column(g, "n", "f", GNNC_COL_FLOAT, &a, -1, NULL));
        CHECK(column_of(g, "n", "f")->f32[2] == (yes_no ? 1 : 3));
        OK(g, gnnc_graph_add_column(g, "n", "t", GNNC_COL_TIME, &a, -1, NULL));
        CHECK(column_of(g, "n", "t")->f64[1] == (yes_no ? 1 : 2));
        OK(g, gnnc_graph_add_column(g, "n", "c", GNNC_COL_CLASS, &a, -1, NULL));
        CHECK(column_of(g, "n", "c")->n_categories == (yes_no ? 2 : 4));
        CHECK(gnnc_graph_add_column(g, "n", "i", GNNC_COL_ID, &a, -1, NULL) ==
              (real ? GNNC_E_DTYPE : GNNC_OK));
        if (!real) CHECK(column_of(g, "n", "i")->i64[2] == (yes_no ? 1 : 3));
        CHECK(gnnc_graph_add_column(g, "n", "s", GNNC_COL_SPLIT, &a, -1, NULL) ==
              (real ? GNNC_E_DTYPE : GNNC_OK));
    }
    gnnc_array low = array_of(GNNC_DT_BF16, 2, 3, 1, bf16);
    OK(g, gnnc_graph_add_column(g, "n", "low", GNNC_COL_FLOAT, &low, -1, NULL));
    CHECK(!column_of(g, "n", "low")->f32 && column_of(g, "n", "low")->low[2] == bf16[2]);
    CHECK(g->data->nodes[0].n_columns == 6); /* five were replaced each time */
    gnnc_graph_release(g);
}

/* ---- edges --------------------------------------------------------------------------------- */
TEST(compressed_edges) {
    static const int64_t ptr[] = {0, 2, 2, 3};
    static const uint8_t idx[] = {1, 0, 1};
    gnnc_graph *g = graph_new();
    gnnc_array p = array_of(GNNC_DT_I64, 1, 4, 0, ptr), i = array_of(GNNC_DT_U8, 1, 3, 0, idx);
    OK(g, gnnc_graph_add_nodes(g, "a", 3));
    OK(g, gnnc_graph_add_nodes(g, "b", 2));
    OK(g, gnnc_graph_add_edges_csr(g, "ab", "a", "b", GNNC_BY_SOURCE, &p, &i));
    OK(g, gnnc_graph_add_edges_csr(g, "ba", "b", "a", GNNC_BY_DESTINATION, &p, &i));
    static const int32_t rows[] = {0, 0, 2}, others[] = {1, 0, 1};
    const RtTable *ab = rt_dataset_edges(g->data, "ab"), *ba = rt_dataset_edges(g->data, "ba");
    CHECK(!memcmp(ab->src, rows, sizeof rows) && !memcmp(ab->dst, others, sizeof others));
    CHECK(!memcmp(ba->dst, rows, sizeof rows) && !memcmp(ba->src, others, sizeof others));
    static const int32_t bad[][4] = {{0, 2, 1, 3}, {1, 2, 2, 3}, {0, 2, 2, 2}, {0, 2, 2, 4}};
    for (int k = 0; k < 4; k++) {
        gnnc_array b = array_of(GNNC_DT_I32, 1, 4, 0, bad[k]);
        CHECK(gnnc_graph_add_edges_csr(g, "no", "a", "b", GNNC_BY_SOURCE, &b, &i) == GNNC_E_FORMAT);
        CHECK(strstr(gnnc_graph_error(g), "no: pointers: "));
    }
    CHECK(gnnc_graph_add_edges_csr(g, "no", "b", "a", GNNC_BY_SOURCE, &p, &i) == GNNC_E_SHAPE);
    CHECK(gnnc_graph_add_edges_csr(g, "no", "a", "b", (gnnc_by)2, &p, &i) == GNNC_E_ARG);
    CHECK(g->data->n_edges == 2);
    gnnc_graph_release(g);
}

TEST(replaced_edges_lose_their_columns) {
    static const int32_t src[] = {0, 1}, dst[] = {1, 0};
    gnnc_graph *g = graph_new();
    gnnc_array s = array_of(GNNC_DT_I32, 1, 2, 0, src), d = array_of(GNNC_DT_I32, 1, 2, 0, dst);
    OK(g, gnnc_graph_add_nodes(g, "a", 2));
    OK(g, gnnc_graph_add_edges(g, "e", "a", "a", &s, &d));
    OK(g, gnnc_graph_add_column(g, "e", "w", GNNC_COL_FLOAT, &s, -1, NULL));
    s.shape[0] = d.shape[0] = 1;
    OK(g, gnnc_graph_add_edges(g, "e", "a", "a", &s, &d));
    CHECK(g->data->n_edges == 1 && g->data->edges[0].count == 1);
    CHECK(g->data->edges[0].n_columns == 0);
    gnnc_graph_release(g);
}

/* ---- kinds ---------------------------------------------------------------------------------- */
TEST(codes_and_their_names) {
    static const char *const names[] = {"red", "blue"}, *const twice[] = {"red", "red"};
    static const char *const lacks[] = {"red", NULL};
    static const float y[] = {1, NAN, 0};
    static const int64_t c[] = {0, 1, 1};
    gnnc_graph *g = graph_new();
    gnnc_array real = array_of(GNNC_DT_F32, 1, 3, 0, y), whole = array_of(GNNC_DT_I64, 1, 3, 0, c);
    OK(g, gnnc_graph_add_nodes(g, "n", 3));
    OK(g, gnnc_graph_add_column(g, "n", "y", GNNC_COL_CLASS, &real, 2, names));
    CHECK(column_of(g, "n", "y")->i32[1] == -1 && column_of(g, "n", "y")->i32[0] == 1);
    CHECK_STR(column_of(g, "n", "y")->names[1], "blue");
    CHECK(column_of(g, "n", "y")->names[1] != names[1]);
    CHECK(gnnc_graph_add_column(g, "n", "c", GNNC_COL_CAT, &real, 2, names) == GNNC_E_VALUE);
    CHECK_STR(gnnc_graph_error(g), "n.c: row 1: nan is no category");
    CHECK(gnnc_graph_add_column(g, "n", "c", GNNC_COL_CAT, &whole, 1, NULL) == GNNC_E_RANGE);
    CHECK_STR(gnnc_graph_error(g), "n.c: row 1: 1 is no category of 1");
    CHECK(gnnc_graph_add_column(g, "n", "c", GNNC_COL_CAT, &whole, 2, twice) == GNNC_E_ARG);
    CHECK(gnnc_graph_add_column(g, "n", "c", GNNC_COL_CAT, &whole, 2, lacks) == GNNC_E_ARG);
    CHECK(gnnc_graph_add_column(g, "n", "c", GNNC_COL_CAT, &whole, -1, names) == GNNC_E_ARG);
    OK(g, gnnc_graph_add_column(g, "n", "c", GNNC_COL_CAT, &whole, -1, NULL));
    CHECK(column_of(g, "n", "c")->n_categories == 2);
    gnnc_graph_release(g);
}

TEST(splits_and_masks) {
    static const uint8_t train[] = {1, 0, 0, 0, 1, 0}, val[] = {0, 1, 0, 0, 0, 1},
                         test[] = {0, 0, 1, 0, 0, 0};
    static const int8_t want[] = {1, 2, 3, 0, 1, 2};
    gnnc_graph *g = graph_new();
    gnnc_array a = array_of(GNNC_DT_BOOL, 2, 2, 3, train), b = a, c = a;
    b.data = val, c.data = test;
    OK(g, gnnc_graph_add_nodes(g, "n", 3));
    OK(g, gnnc_graph_add_masks(g, "n", "split", &a, &b, &c));
    CHECK(column_of(g, "n", "split")->n_splits == 2);
    CHECK(memcmp(column_of(g, "n", "split")->splits, want, sizeof want) == 0);
    CHECK(gnnc_graph_add_masks(g, "n", "split", &a, &b, &a) == GNNC_E_RANGE);
    CHECK_STR(gnnc_graph_error(g), "n.split: row 0 is in two parts of split 0");
    gnnc_array codes = array_of(GNNC_DT_I8, 2, 2, 3, want);
    OK(g, gnnc_graph_add_column(g, "n", "other", GNNC_COL_SPLIT, &codes, -1, NULL));
    CHECK(column_of(g, "n", "other")->n_splits == 2);
    c.rank = 1, c.shape[0] = 3;
    CHECK(gnnc_graph_add_masks(g, "n", "split", &a, &b, &c) == GNNC_E_SHAPE);
    gnnc_graph_release(g);
}

TEST(stored_entries) {
    _Alignas(GNNC_ALIGN) static const int64_t ptr[] = {0, 2, 3}, back[] = {0, 2, 1};
    _Alignas(GNNC_ALIGN) static const int32_t col[] = {0, 3, 1}, down[] = {3, 0, 1};
    _Alignas(GNNC_ALIGN) static const float val[] = {1, 2, 3};
    gnnc_graph *g = graph_new();
    int n = 0;
    gnnc_array p = lent(array_of(GNNC_DT_I64, 1, 3, 0, ptr), &n),
               i = lent(array_of(GNNC_DT_I32, 1, 3, 0, col), &n),
               v = lent(array_of(GNNC_DT_F32, 1, 3, 0, val), &n), bad;
    OK(g, gnnc_graph_add_nodes(g, "n", 2));
    OK(g, gnnc_graph_add_csr(g, "n", "x", 4, &p, &i, &v));
    const RtCsr *m = &column_of(g, "n", "x")->csr;
    CHECK(m->ptr == ptr && m->col == col && m->val == val && m->n_cols == 4 && n == 0);
    OK(g, gnnc_graph_add_csr(g, "n", "ones", 4, &p, &i, NULL));
    CHECK(column_of(g, "n", "ones")->csr.val[2] == 1);
    CHECK(gnnc_graph_add_csr(g, "n", "no", 3, &p, &i, &v) == GNNC_E_RANGE);
    CHECK_STR(gnnc_graph_error(g), "n.no: row 0: column index out of range");
    bad = p, bad.data = back;
    CHECK(gnnc_graph_add_csr(g, "n", "no", 4, &bad, &i, &v) == GNNC_E_FORMAT);
    bad = i, bad.data = down;
    CHECK(gnnc_graph_add_csr(g, "n", "no", 4, &p, &bad, &v) == GNNC_E_FORMAT);
    bad = v, bad.shape[0] = 2;
    CHECK(gnnc_graph_add_csr(g, "n", "no", 4, &p, &i, &bad) == GNNC_E_SHAPE);
    CHECK(gnnc_graph_add_csr(g, "n", "no", -1, &p, &i, &v) == GNNC_E_RANGE);
    CHECK(g->data->nodes[0].n_columns == 2 && n == 15);
    gnnc_graph_release(g);
    CHECK(n == 20);
}

TEST(many_graphs) {
    static const int32_t ptr[] = {0, 2, 5}, back[] = {0, 6, 5};
    gnnc_graph *g = graph_new();
    gnnc_array p = array_of(GNNC_DT_I32, 1, 3, 0, ptr), b = array_of(GNNC_DT_I32, 1, 3, 0, back);
    OK(g, gnnc_graph_add_nodes(g, "atom", 5));
    CHECK(gnnc_graph_divide(g, "atom", "molecule", &p) == GNNC_E_MISSING);
    OK(g, gnnc_graph_add_graphs(g, "molecule", 2));
    CHECK(gnnc_graph_divide(g, "molecule", "molecule", &p) == GNNC_E_MISSING);
    OK(g, gnnc_graph_divide(g, "atom", "molecule", &b));
    CHECK(gnnc_graph_commit(g) == GNNC_E_FORMAT);
    CHECK_STR(gnnc_graph_error(g), "atom: graph 1: graph pointers must ascend");
    OK(g, gnnc_graph_divide(g, "atom", "molecule", &p)); /* it can be mended */
    OK(g, gnnc_graph_commit(g));
    gnnc_table_info t = {.struct_size = sizeof t};
    CHECK(gnnc_graph_table_info(g, 0, &t) == GNNC_OK && t.kind == GNNC_NODES);
    CHECK_STR(t.graphs, "molecule");
    gnnc_graph_release(g);
}

/* ---- what is refused -------- */
static void refuse(gnnc_graph *g, gnnc_kind kind, gnnc_array a, gnnc_status want,
                   const char *text) {
    gnnc_status st = gnnc_graph_add_column(g, "n", "c", kind, &a, -1, NULL);
    CHECK_MSG(st == want, "%s: %d", text, st);
    CHECK_STR(gnnc_graph_error(g), text);
}

TEST(every_refusal_has_its_name) {
    static const double far[] = {0, 1e300}, endless[] = {0, INFINITY};
    static const uint64_t high[] = {0, UINT64_MAX};
    static const int64_t wide[] = {0, 1ll << 40}, ends[] = {0, 2};
    static const float half[] = {0, 0.5f};
    gnnc_graph *g = graph_new();
    OK(g, gnnc_graph_add_nodes(g, "n", 2));
    gnnc_array f = array_of(GNNC_DT_F64, 1, 2, 0, far), i = array_of(GNNC_DT_I64, 1, 2, 0, wide);
    gnnc_array u = array_of(GNNC_DT_U64, 1, 2, 0, high), h = array_of(GNNC_DT_F32, 1, 2, 0, half);
    gnnc_array e = array_of(GNNC_DT_F64, 1, 2, 0, endless), bad;
    refuse(g, GNNC_COL_FLOAT, f, GNNC_E_RANGE, "n.c: row 1: 1e+300 is beyond f32");
    refuse(g, GNNC_COL_FLOAT, e, GNNC_E_VALUE, "n.c: row 1: value is infinite");
    refuse(g, GNNC_COL_MULTILABEL, e, GNNC_E_VALUE, "n.c: row 1: value is infinite");
    refuse(g, GNNC_COL_TIME, e, GNNC_E_VALUE, "n.c: row 1: time is infinite");
    refuse(g, GNNC_COL_CLASS, i, GNNC_E_RANGE, "n.c: row 1: 1099511627776 is beyond i32");
    refuse(g, GNNC_COL_CLASS, h, GNNC_E_VALUE, "n.c: row 1: 0.5 is no class");
    refuse(g, GNNC_COL_ID, u, GNNC_E_RANGE, "n.c: row 1: 9223372036854775807 is beyond i64");
    refuse(g, GNNC_COL_ID, h, GNNC_E_DTYPE, "n.c: holds F32, integers wanted");
    refuse(g, GNNC_COL_SPLIT, i, GNNC_E_RANGE,
           "n.c: row 1: a split is 0 none, 1 train, 2 validation or 3 test");
    refuse(g, GNNC_COL_CSR, h, GNNC_E_ARG, "n.c: 1 is no kind of column that has one array");
    refuse(g, (gnnc_kind)99, h, GNNC_E_ARG, "n.c: 99 is no kind of column that has one array");
    bad = h, bad.shape[0] = 3;
    refuse(g, GNNC_COL_FLOAT, bad, GNNC_E_SHAPE, "n.c: size 3 in dimension 0, 2 wanted");
    bad = h, bad.shape[0] = -1;
    refuse(g, GNNC_COL_FLOAT, bad, GNNC_E_SHAPE, "n.c: a size is negative, or all is too large");
    bad = h, bad.rank = 9;
    refuse(g, GNNC_COL_FLOAT, bad, GNNC_E_SHAPE, "n.c: rank 9: 1 to 8 are possible");
    bad = h, bad.dtype = 14;
    refuse(g, GNNC_COL_FLOAT, bad, GNNC_E_DTYPE, "n.c: 14 is no element type");
    bad = h, bad.data = NULL;
    refuse(g, GNNC_COL_FLOAT, bad, GNNC_E_ARG, "n.c: the array's data are NULL");
    bad = h, bad.struct_size = 8;
    refuse(g, GNNC_COL_FLOAT, bad, GNNC_E_ARG,
           "n.c: no array was given, or its struct_size is not 176");
    bad = h, bad.rank = 2, bad.shape[1] = 1;
    refuse(g, GNNC_COL_TIME, bad, GNNC_E_SHAPE, "n.c: 2 dimensions, 1 wanted");
    gnnc_array out = array_of(GNNC_DT_I64, 1, 2, 0, ends), in = out, far_end = i;
    in.shape[0] = 1;
    CHECK(gnnc_graph_add_edges(g, "e", "n", "n", &out, &out) == GNNC_E_RANGE);
    CHECK_STR(gnnc_graph_error(g), "e: edge 1: source 2 is no 'n' node: there are 2");
    CHECK(gnnc_graph_add_edges(g, "e", "n", "n", &far_end, &out) == GNNC_E_RANGE);
    CHECK_STR(gnnc_graph_error(g), "e: sources: row 1: 1099511627776 is beyond i32");
    CHECK(gnnc_graph_add_edges(g, "e", "n", "n", &out, &in) == GNNC_E_SHAPE);
    CHECK(gnnc_graph_add_edges(g, "e", "n", "m", &out, &out) == GNNC_E_MISSING);
    CHECK_STR(gnnc_graph_error(g), "there is no node type 'm'");
    CHECK(gnnc_graph_add_edges(g, "n", "n", "n", &out, &out) == GNNC_E_ARG);
    CHECK(gnnc_graph_add_nodes(g, "n", 1) == GNNC_E_ARG);
    CHECK(gnnc_graph_add_nodes(g, "", 1) == GNNC_E_ARG);
    CHECK(gnnc_graph_add_nodes(g, "m", -1) == GNNC_E_RANGE);
    CHECK(gnnc_graph_add_graphs(g, "m", 1ll << 31) == GNNC_E_RANGE);
    CHECK(gnnc_graph_read(g, "/nowhere", 0) == GNNC_E_STATE);
    CHECK(gnnc_graph_n_tables(g) == 1);
    gnnc_graph_release(g);
    g = graph_new();
    CHECK(gnnc_graph_read(g, "/nowhere", 0) == GNNC_E_IO);
    OK(g, gnnc_graph_add_nodes(g, "n", 1)); /* it is as it was */
    gnnc_graph_release(g);
}

TEST(a_trainer_wants_a_committed_graph_that_fits) {
    Place p = place_new();
    gnnc_graph *g = graph_new();
    gnnc_trainer *t = NULL;
    CHECK(gnnc_trainer_create(&t, &tiny_model) == GNNC_OK);
    CHECK(gnnc_trainer_load_graph(t, NULL) == GNNC_E_ARG);
    CHECK(gnnc_trainer_load_graph(t, g) == GNNC_E_STATE);
    OK(g, gnnc_graph_add_nodes(g, "other", 3));
    OK(g, gnnc_graph_commit(g));
    CHECK(gnnc_trainer_load_graph(t, g) == GNNC_E_MISSING);
    CHECK(strstr(gnnc_trainer_error(t), "the graph: no node type 'n'"));
    CHECK(gnnc_trainer_load(t, p.dir) == GNNC_E_STATE);
    gnnc_trainer_destroy(t);
    gnnc_graph_release(g);
    g = graph_new();
    OK(g, fill_tiny(g, p.d, NULL));
    CHECK(gnnc_trainer_create(&t, &tiny_model) == GNNC_OK);
    CHECK(gnnc_trainer_load_graph(t, g) == GNNC_OK);
    CHECK(gnnc_trainer_tune(t, 0) == GNNC_E_STATE);
    CHECK(strstr(gnnc_trainer_error(t), "no directory"));
    gnnc_trainer_destroy(t);
    gnnc_graph_release(g);
    place_end(&p);
}

TEST(null_is_an_argument_that_is_refused) {
    static const int32_t i[] = {0};
    gnnc_graph *g = graph_new();
    gnnc_array a = array_of(GNNC_DT_I32, 1, 1, 0, i);
    gnnc_table_info t = {.struct_size = sizeof t};
    const gnnc_status bad = GNNC_E_ARG;
    OK(g, gnnc_graph_add_nodes(g, "n", 1));
    CHECK(gnnc_graph_create(NULL) == bad);
    CHECK(gnnc_graph_read(NULL, "x", 0) == bad && gnnc_graph_read(g, NULL, 0) == bad);
    CHECK(gnnc_graph_add_nodes(NULL, "m", 1) == bad && gnnc_graph_add_nodes(g, NULL, 1) == bad);
    CHECK(gnnc_graph_add_graphs(g, NULL, 1) == bad);
    CHECK(gnnc_graph_divide(g, NULL, "n", &a) == bad && gnnc_graph_divide(g, "n", NULL, &a) == bad);
    CHECK(gnnc_graph_add_edges(g, NULL, "n", "n", &a, &a) == bad);
    CHECK(gnnc_graph_add_edges(g, "e", NULL, "n", &a, &a) == bad);
    CHECK(gnnc_graph_add_edges(g, "e", "n", NULL, &a, &a) == bad);
    CHECK(gnnc_graph_add_edges(g, "e", "n", "n", NULL, &a) == bad);
    CHECK(gnnc_graph_add_edges(g, "e", "n", "n", &a, NULL) == bad);
    CHECK(gnnc_graph_add_column(g, NULL, "c", GNNC_COL_ID, &a, -1, NULL) == bad);
    CHECK(gnnc_graph_add_column(g, "n", NULL, GNNC_COL_ID, &a, -1, NULL) == bad);
    CHECK(gnnc_graph_add_column(g, "n", "", GNNC_COL_ID, &a, -1, NULL) == bad);
    CHECK(gnnc_graph_add_column(g, "n", "c", GNNC_COL_ID, NULL, -1, NULL) == bad);
    CHECK(gnnc_graph_add_csr(g, "n", "c", 1, NULL, &a, &a) == bad);
    CHECK(gnnc_graph_add_masks(g, "n", "c", &a, &a, NULL) == bad);
    CHECK(gnnc_graph_table_info(NULL, 0, &t) == bad && gnnc_graph_table_info(g, 0, NULL) == bad);
    CHECK(gnnc_graph_column_info(NULL, 0, 0, NULL) == bad && gnnc_graph_n_tables(NULL) == 0);
    CHECK(gnnc_graph_commit(NULL) == bad);
    CHECK_STR(gnnc_graph_error(NULL), "");
    gnnc_graph_retain(NULL);
    gnnc_graph_release(NULL);
    gnnc_graph_release(g);
}

/* ---- DLPack -------- */
static void count_deleted(DLManagedTensorVersioned *t) {
    ++*(int *)t->manager_ctx;
}

static DLManagedTensorVersioned tensor_of(int code, int bits, int32_t ndim, int64_t *shape,
                                          void *data, int *n_deleted) {
    return (DLManagedTensorVersioned){.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
                                      .manager_ctx = n_deleted,
                                      .deleter = count_deleted,
                                      .dl_tensor = {.data = data,
                                                    .device = {kDLCPU, 0},
                                                    .ndim = ndim,
                                                    .dtype = {(uint8_t)code, (uint8_t)bits, 1},
                                                    .shape = shape}};
}

static gnnc_status add_tensor(gnnc_graph *g, DLManagedTensorVersioned *t) {
    return gnnc_graph_add_dlpack(g, "n", "x", GNNC_COL_FLOAT, t, -1, NULL);
}

TEST(dlpack_tensors_are_read_where_they_lie) {
    size_t page = 4096;
    float *x = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int64_t shape[] = {4, 2}, down[] = {1, 4}, n = 4;
    int n_deleted = 0;
    gnnc_graph *g = graph_new();
    for (int i = 0; i < 64; i++) x[i] = (float)i;
    CHECK(mprotect(x, page, PROT_READ) == 0); /* as the flag says */
    OK(g, gnnc_graph_add_nodes(g, "n", 4));
    DLManagedTensorVersioned t = tensor_of(kDLFloat, 32, 2, shape, x, &n_deleted);
    t.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
    t.dl_tensor.byte_offset = 64;
    OK(g, add_tensor(g, &t));
    CHECK(column_of(g, "n", "x")->f32 == x + 16 && n_deleted == 0);
    DLManagedTensorVersioned u = tensor_of(kDLFloat, 32, 2, shape, x, &n_deleted);
    u.dl_tensor.strides = down; /* of elements: the transpose of [2, 4] */
    u.version.minor = 99;
    OK(g, add_tensor(g, &u));
    const float *y = column_of(g, "n", "x")->f32;
    CHECK(y[0] == 0 && y[1] == 4 && y[2] == 1 && y[7] == 7 && n_deleted == 1);
    int32_t ends[4] = {0, 1, 2, 3};
    DLManagedTensorVersioned e = tensor_of(kDLInt, 32, 1, &n, ends, &n_deleted);
    gnnc_array a = {.struct_size = sizeof a}, b = a;
    OK(g, gnnc_graph_array_dlpack(g, &e, &a));
    OK(g, gnnc_graph_array_dlpack(g, &e, &b));
    OK(g, gnnc_graph_add_edges(g, "e", "n", "n", &a, &b));
    CHECK(g->data->edges[0].src == ends && n_deleted == 1);
    gnnc_graph_release(g);
    CHECK(n_deleted == 4);
    munmap(x, page);
}

TEST(dlpack_tensors_that_are_refused_are_deleted) {
    float x[4] = {0};
    int64_t n = 4;
    int n_deleted = 0;
    gnnc_graph *g = graph_new();
    OK(g, gnnc_graph_add_nodes(g, "n", 4));
    DLManagedTensorVersioned good = tensor_of(kDLFloat, 32, 1, &n, x, &n_deleted), t = good;
    memset(&t.flags, 0x5a, sizeof t - offsetof(DLManagedTensorVersioned, flags));
    t.version.major = 2; /* nothing behind the deleter is where it was */
    CHECK(add_tensor(g, &t) == GNNC_E_ARG && n_deleted == 1);
    CHECK_STR(gnnc_graph_error(g), "a DLPack tensor of version 2.1, 1 is read here");
    t = good, t.dl_tensor.device.device_type = kDLROCM;
    CHECK(add_tensor(g, &t) == GNNC_E_ARG && n_deleted == 2);
    CHECK(strstr(gnnc_graph_error(g), "on device 10 (not kDLCPU): only the host's memory is read"));
    t = good, t.dl_tensor.dtype.code = kDLComplex;
    CHECK(add_tensor(g, &t) == GNNC_E_DTYPE && n_deleted == 3);
    t = good, t.dl_tensor.dtype.lanes = 4;
    CHECK(add_tensor(g, &t) == GNNC_E_DTYPE && n_deleted == 4);
    t = good, t.dl_tensor.ndim = 0;
    CHECK(add_tensor(g, &t) == GNNC_E_SHAPE && n_deleted == 5);
    t = good, n = 3;
    CHECK(add_tensor(g, &t) == GNNC_E_SHAPE && n_deleted == 6);
    CHECK(gnnc_graph_add_dlpack(g, "m", "x", GNNC_COL_FLOAT, &t, -1, NULL) == GNNC_E_MISSING);
    gnnc_array a = {.struct_size = 1};
    CHECK(gnnc_graph_array_dlpack(g, &t, &a) == GNNC_E_ARG && n_deleted == 8);
    CHECK(gnnc_graph_array_dlpack(NULL, &t, &a) == GNNC_E_ARG && n_deleted == 9);
    CHECK(gnnc_graph_array_dlpack(g, &t, NULL) == GNNC_E_ARG && n_deleted == 10);
    CHECK(add_tensor(g, NULL) == GNNC_E_ARG);
    OK(g, gnnc_graph_commit(g));
    CHECK(add_tensor(g, &t) == GNNC_E_STATE && n_deleted == 11);
    t.version.major = 2; /* whatever it is: the graph takes none */
    CHECK(add_tensor(g, &t) == GNNC_E_STATE && n_deleted == 12);
    CHECK(strstr(gnnc_graph_error(g), "the graph is committed"));
    t.version.major = DLPACK_MAJOR_VERSION;
    t.deleter = NULL; /* a producer need not have one */
    CHECK(add_tensor(g, &t) == GNNC_E_STATE && g->data->nodes[0].n_columns == 0);
    gnnc_graph_release(g);
    CHECK(n_deleted == 12);
}

/* ---- what is in it -------- */
TEST(tables_and_columns_are_listed) {
    Place p = place_new();
    gnnc_graph *g = graph_new();
    OK(g, gnnc_graph_read(g, p.dir, 0));
    gnnc_table_info t = {.struct_size = sizeof t};
    gnnc_column_info c = {.struct_size = sizeof c};
    CHECK(gnnc_graph_n_tables(g) == 2);
    CHECK(gnnc_graph_table_info(g, 0, &t) == GNNC_OK);
    CHECK_STR(t.name, "n");
    CHECK(t.kind == GNNC_NODES && t.count == N && t.n_columns == 3 && !t.src_type && !t.graphs);
    CHECK(gnnc_graph_table_info(g, 1, &t) == GNNC_OK && t.kind == GNNC_EDGES && t.count == E);
    CHECK_STR(t.src_type, "n");
    CHECK(gnnc_graph_table_info(g, 2, &t) == GNNC_E_RANGE);
    CHECK(gnnc_graph_table_info(g, -1, &t) == GNNC_E_RANGE);
    CHECK(gnnc_graph_column_info(g, 0, 0, &c) == GNNC_OK && c.kind == GNNC_COL_FLOAT);
    CHECK_STR(c.name, "x");
    CHECK(c.rank == 2 && c.shape[0] == N && c.shape[1] == F && c.n_entries == 0);
    CHECK(gnnc_graph_column_info(g, 0, 2, &c) == GNNC_OK && c.n_splits == 1);
    CHECK(gnnc_graph_column_info(g, 0, 3, &c) == GNNC_E_RANGE);
    t.struct_size = 3;
    CHECK(gnnc_graph_table_info(g, 0, &t) == GNNC_E_ARG);
    struct {
        gnnc_table_info is;
        char more[8]; /* of a header of later */
    } later = {{.struct_size = sizeof later}, "later"};
    CHECK(gnnc_graph_table_info(g, 0, &later.is) == GNNC_OK && later.more[0] == 0);
    CHECK(later.is.struct_size == sizeof later && later.is.count == N);
    gnnc_graph_release(g);
    place_end(&p);
}

/* ---- memory -------- */
static gnnc_status add_all_kinds(gnnc_graph *g, int *n_done) {
    static const char *const names[] = {"a", "b"};
    static const int32_t ptr[] = {0, 1, 2}, idx[] = {0, 1};
    static const uint8_t yes[] = {1, 1}, no[] = {0, 0};
    gnnc_array p = lent(array_of(GNNC_DT_I32, 1, 3, 0, ptr), n_done), i = p, y = p, z = p;
    i.data = idx, i.shape[0] = 2;
    y.data = yes, y.dtype = GNNC_DT_BOOL, y.shape[0] = 2;
    z = y, z.data = no;
    gnnc_status st;
    TRY(st, gnnc_graph_add_nodes(g, "a", 2));
    TRY(st, gnnc_graph_add_graphs(g, "b", 2));
    TRY(st, gnnc_graph_divide(g, "a", "b", &p));
    TRY(st, gnnc_graph_add_edges_csr(g, "ab", "a", "a", GNNC_BY_SOURCE, &p, &i));
    TRY(st, gnnc_graph_add_column(g, "a", "c", GNNC_COL_CAT, &i, 2, names));
    TRY(st, gnnc_graph_add_column(g, "a", "f", GNNC_COL_FLOAT, &i, -1, NULL));
    TRY(st, gnnc_graph_add_column(g, "a", "t", GNNC_COL_TIME, &i, -1, NULL));
    TRY(st, gnnc_graph_add_column(g, "a", "i", GNNC_COL_ID, &i, -1, NULL));
    TRY(st, gnnc_graph_add_csr(g, "a", "x", 2, &p, &i, NULL));
    st = gnnc_graph_add_masks(g, "a", "s", &y, &z, &z);
out:
    return st;
}

static gnnc_status whole_life(const Place *p, FailingAlloc *f, bool read, int *n_done) {
    gnnc_graph *g = NULL;
    gnnc_trainer *t = NULL;
    gnnc_status st = gnnc_graph_create_with(&g, failing_alloc, failing_release, f);
    if (st == GNNC_OK && read) st = gnnc_graph_read(g, p->dir, 1);
    if (st == GNNC_OK) st = add_all_kinds(g, n_done);
    if (st == GNNC_OK) st = read ? gnnc_graph_commit(g) : fill_tiny(g, p->d, n_done);
    if (st != GNNC_OK && g) CHECK(gnnc_graph_error(g)[0] != '\0');
    if (st == GNNC_OK)
        st = gnnc_trainer_create_with(&t, &tiny_model, failing_alloc, failing_release, f);
    if (st == GNNC_OK) st = gnnc_trainer_load_graph(t, g);
    if (st == GNNC_OK) st = gnnc_trainer_epoch(t);
    gnnc_graph_release(g);
    gnnc_trainer_destroy(t);
    return st;
}

TEST(every_failing_allocation_leaves_a_graph_that_can_go) {
    Place p = place_new();
    for (int read = 0; read < 2; read++) {
        FailingAlloc f;
        long n = 0;
        int n_done = 0;
        gnnc_status st;
        do {
            failing(&f, n++);
            n_done = 0;
            st = whole_life(&p, &f, read, &n_done);
            CHECK_MSG(st == GNNC_OK || st == GNNC_E_NOMEM, "allocation %ld: status %d", n - 1, st);
            CHECK_MSG(f.n_live == 0, "allocation %ld: %ld blocks leak", n - 1, f.n_live);
        } while (st != GNNC_OK && n < 2000);
        CHECK(n > 10 && n < 2000 && n_done == (read ? 12 : 18));
    }
    place_end(&p);
}

TEST_MAIN()
