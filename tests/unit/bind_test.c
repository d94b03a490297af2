/* Binding: every kind of map and column of a small heterogeneous graph, against values
 * worked out by hand, and what must be refused. */
#include "test.h"

#include <math.h>

#include "rt_test_util.h"
#include "runtime/bind/bind.h"
#include "runtime/data/npy.h"
#include "runtime/data/safetensors.h"
#include "runtime/trainer/trainer.h"

enum { S_N, S_G, S_E, S_F, S_C, S_K, S_NZ, S_LOOPS, S_REV, S_UNION, N_SYMS };
enum {
    B_X,
    B_Y,
    B_KIND,
    B_W,
    B_LABEL,
    B_ROW,
    B_ROW_PTR,
    B_NZCOL,
    B_NZCOL_PTR,
    B_NZCOL_PERM,
    B_GRAPH,
    B_GRAPH_PTR,
    B_CAT,
    B_CAT_PTR,
    B_CAT_PERM,
    B_SRC,
    B_SRC_PTR,
    B_SRC_PERM,
    B_DST,
    B_DST_PERM,
    B_DST_PTR,
    B_LOOP_ORIG,
    B_LOOP_ORIG_PTR,
    B_LOOP_ORIG_PERM,
    B_UNION_ORIG,
    B_IDS,
    B_REV_SRC,
    B_PARAM,
    N_BUFS
};
#define NO -1

/* What spaces have of their kind; all that is not said is none. */
#define ROWS(size) .sym = size, .fixed = NO, .whole = NO, .varies = true
#define NODES(size) .src = NO, .dst = NO, .base = {NO, NO}, .cond_buf = NO, ROWS(size)
#define DIM(size, constant)                                                                        \
    .kind = RT_SP_DIM, .sym = size, .fixed = constant, .src = NO, .dst = NO, .base = {NO, NO},     \
    .cond_buf = NO, .col = NO, .graph = NO, .whole = NO
#define EDGES(how, size, a, b)                                                                     \
    .kind = RT_SP_EDGE, .rel = how, .base = {a, b}, .cond_buf = NO, .col = NO, .graph = NO,        \
    ROWS(size)
static const rt_space spaces[] = {
    {.name = "n", .kind = RT_SP_NODE, .col = NO, .graph = 1, NODES(S_N)},
    {.name = "g", .kind = RT_SP_GRAPH, .col = NO, .graph = NO, NODES(S_G)},
    {.name = "e", .sampled = true, EDGES(RT_REL_BASE, S_E, NO, NO)},
    {.name = "F", DIM(S_F, NO)},
    {.name = "C", DIM(S_C, NO)},
    {.name = "K", DIM(NO, 3)},
    {.name = "x.nz", .kind = RT_SP_NZ, .col = 0, .graph = NO, NODES(S_NZ)},
    {.name = "union", EDGES(RT_REL_UNION, S_UNION, 8, 9)},
    {.name = "loops", EDGES(RT_REL_SELF_LOOPS, S_LOOPS, 2, NO)},
    {.name = "rev", EDGES(RT_REL_REVERSE, S_REV, 2, NO)},
};
static const rt_column columns[] = {
    {"x", RT_COL_CSR, 0, 1, {3}, NO, 6, B_X, false},
    {"y", RT_COL_CLASS, 0, 0, {0}, 4, NO, B_Y, false},
    {"kind", RT_COL_CAT, 0, 0, {0}, 5, NO, B_KIND, false},
    {"w", RT_COL_FLOAT, 2, 0, {0}, NO, NO, B_W, false},
    {"label", RT_COL_FLOAT, 1, 0, {0}, NO, NO, B_LABEL, false},
    {"unused", RT_COL_TIME, 0, 0, {0}, NO, NO, NO, false},
};
static const rt_map maps[] = {
    {RT_MAP_ROW, 6, 0, NO, 0, B_ROW, B_ROW_PTR, NO, {NO, NO}, NO},
    {RT_MAP_NZCOL, 6, 3, NO, 0, B_NZCOL, B_NZCOL_PTR, B_NZCOL_PERM, {NO, NO}, NO},
    {RT_MAP_GRAPH, 0, 1, NO, 0, B_GRAPH, B_GRAPH_PTR, NO, {NO, NO}, NO},
    {RT_MAP_COL, 0, 5, 2, 0, B_CAT, B_CAT_PTR, B_CAT_PERM, {NO, NO}, NO},
    {RT_MAP_SRC, 2, 0, NO, 0, B_SRC, B_SRC_PTR, B_SRC_PERM, {NO, NO}, NO},
    {RT_MAP_DST, 2, 0, NO, 0, B_DST, B_DST_PTR, B_DST_PERM, {NO, NO}, NO},
    {RT_MAP_ORIG, 8, 2, NO, 0, B_LOOP_ORIG, B_LOOP_ORIG_PTR, B_LOOP_ORIG_PERM, {NO, NO}, NO},
    {RT_MAP_ORIG, 7, 9, NO, 1, B_UNION_ORIG, NO, NO, {NO, NO}, NO},
    {RT_MAP_SRC, 9, 0, NO, 0, B_REV_SRC, NO, NO, {NO, NO}, NO},
};
static const rt_var vars[] = {
    {"lin.weight", RT_VAR_PARAM, RT_F32, B_PARAM, 0, RT_INIT_CONST, 5, 0, RT_ROLE_NONE, false, 0},
    {"never.used", RT_VAR_PARAM, RT_F32, NO, 0, RT_INIT_CONST, 5, 0, RT_ROLE_NONE, false, 0},
};
static rt_buf bufs[N_BUFS];

static int64_t count(int b, const int64_t *n) {
    return b == B_PARAM ? 4 * n[S_F] : b == B_X ? n[S_NZ] : n[S_N];
}
static void buf_shape(int b, const int64_t *n, int64_t *dim) {
    dim[0] = count(b, n);
}
static void var_shape(int v, const int64_t *n, rt_var_shape *s) {
    (void)v;
    *s = (rt_var_shape){.rank = 3, .dim = {2, 2, n[S_F]}, .count = 4 * n[S_F]};
}

static rt_program program(void) {
    for (int i = 0; i < N_BUFS; i++)
        bufs[i] = (rt_buf){.name = "b",
                           .kind = i <= B_LABEL  ? RT_BUF_DATA
                                   : i == B_IDS  ? RT_BUF_LOGICAL
                                   : i < B_PARAM ? RT_BUF_MAP
                                                 : RT_BUF_VAR,
                           .dt = RT_F32,
                           .space = i == B_IDS ? 8 : NO,
                           .map = NO,
                           .by = NO,
                           .phase = NO};
    return (rt_program){.name = "bind",
                        .source = "bind.gnn",
                        .compiler = "",
                        .options = "",
                        .n_syms = N_SYMS,
                        .n_spaces = 10,
                        .n_columns = 6,
                        .n_maps = 9,
                        .n_vars = 2,
                        .n_bufs = N_BUFS,
                        .spaces = spaces,
                        .columns = columns,
                        .maps = maps,
                        .vars = vars,
                        .bufs = bufs,
                        .buf_count = count,
                        .buf_shape = buf_shape,
                        .var_shape = var_shape};
}

/* ---- data: 4 nodes in 2 graphs, 5 edges --------------------------------------------- */
static const char SCHEMA[] =
    "{\"format\": 1, \"graphs\": {\"g\": {\"count\": 2, \"columns\": {"
    "\"label\": {\"kind\": \"float\", \"shape\": [2], \"file\": \"label.npy\"}}}},"
    "\"nodes\": {\"n\": {\"count\": 4, \"graph\": \"g\", \"graph_ptr\": \"ptr.npy\", \"columns\": {"
    "\"x\": {\"kind\": \"csr\", \"shape\": [4, 6], \"ptr\": \"xp.npy\", \"col\": \"xc.npy\", "
    "\"val\": \"xv.npy\"},"
    "\"y\": {\"kind\": \"class\", \"categories\": 2, \"file\": \"y.npy\"},"
    "\"kind\": {\"kind\": \"cat\", \"categories\": 3, \"file\": \"kind.npy\"}}}},"
    "\"edges\": {\"e\": {\"count\": 5, \"src\": \"n\", \"dst\": \"n\", \"file\": \"e.npy\","
    "\"columns\": {\"w\": {\"kind\": \"float\", \"shape\": [5], \"file\": \"w.npy\"}}}}}";

static char *data_new(const char *schema) {
    char *dir = scratch_new(), path[100];
    save_npy(dir, "ptr.npy", RT_DT_I64, 1, 3, 0, (int64_t[]){0, 3, 4});
    save_npy(dir, "label.npy", RT_DT_F32, 1, 2, 0, (float[]){.5f, 1.5f});
    save_npy(dir, "xp.npy", RT_DT_I64, 1, 5, 0, (int64_t[]){0, 2, 2, 3, 4});
    save_npy(dir, "xc.npy", RT_DT_I32, 1, 4, 0, (int32_t[]){1, 4, 4, 0});
    save_npy(dir, "xv.npy", RT_DT_F32, 1, 4, 0, (float[]){1, 2, 3, 4});
    save_npy(dir, "y.npy", RT_DT_I64, 1, 4, 0, (int64_t[]){0, 1, -1, 1});
    save_npy(dir, "kind.npy", RT_DT_I32, 1, 4, 0, (int32_t[]){2, 0, 2, 1});
    /* file order: 2->1, 0->0, 1->1 (loop), 0->1, 3->0 */
    save_npy(dir, "e.npy", RT_DT_I32, 2, 2, 5, (int32_t[]){2, 0, 1, 0, 3, 1, 0, 1, 1, 0});
    save_npy(dir, "w.npy", RT_DT_F32, 1, 5, 0, (float[]){10, 11, 12, 13, 14});
    snprintf(path, sizeof path, "%s/schema.json", dir);
    write_file(path, schema, strlen(schema));
    return dir;
}

static bool is_i32(gnnc_trainer *t, int b, int n, const int32_t *want) {
    return t->x.buf[b] && memcmp(t->x.buf[b], want, sizeof *want * (size_t)n) == 0;
}
static bool is_i64(gnnc_trainer *t, int b, int n, const int64_t *want) {
    return t->x.buf[b] && memcmp(t->x.buf[b], want, sizeof *want * (size_t)n) == 0;
}
static bool is_f32(gnnc_trainer *t, int b, int n, const float *want) {
    return t->x.buf[b] && memcmp(t->x.buf[b], want, sizeof *want * (size_t)n) == 0;
}
#define I32(...)                                                                                   \
    (int)(sizeof((int32_t[]){__VA_ARGS__}) / 4), (int32_t[]) {                                     \
        __VA_ARGS__                                                                                \
    }
#define I64(...)                                                                                   \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / 8), (int64_t[]) {                                     \
        __VA_ARGS__                                                                                \
    }
#define F32(...)                                                                                   \
    (int)(sizeof((float[]){__VA_ARGS__}) / 4), (float[]) {                                         \
        __VA_ARGS__                                                                                \
    }

TEST(columns_and_maps_are_bound) {
    rt_program p = program();
    gnnc_trainer *t = NULL;
    char *dir = data_new(SCHEMA);
    CHECK(gnnc_trainer_create(&t, MODEL_OF(&p)) == GNNC_OK);
    gnnc_status st = gnnc_trainer_load(t, dir);
    CHECK_MSG(st == GNNC_OK, "%s", gnnc_trainer_error(t));
    if (st != GNNC_OK) return;
    const int64_t *n = t->x.n;
    CHECK(n[S_N] == 4 && n[S_G] == 2 && n[S_E] == 5 && n[S_F] == 6 && n[S_C] == 2 && n[S_NZ] == 4);
    CHECK(n[S_LOOPS] == 7 && n[S_REV] == 5 && n[S_UNION] == 12);
    CHECK(is_f32(t, B_X, F32(1, 2, 3, 4)) && is_i32(t, B_Y, I32(0, 1, -1, 1)));
    CHECK(is_f32(t, B_LABEL, F32(.5f, 1.5f)));
    /* stored entries */
    CHECK(is_i32(t, B_ROW, I32(0, 0, 2, 3)) && is_i64(t, B_ROW_PTR, I64(0, 2, 2, 3, 4)));
    CHECK(is_i32(t, B_NZCOL, I32(1, 4, 4, 0)) && is_i64(t, B_NZCOL_PTR, I64(0, 1, 2, 2, 2, 4, 4)));
    CHECK(is_i32(t, B_NZCOL_PERM, I32(3, 0, 1, 2)));
    /* graphs, categories */
    CHECK(is_i32(t, B_GRAPH, I32(0, 0, 0, 1)) && is_i64(t, B_GRAPH_PTR, I64(0, 3, 4)));
    CHECK(is_i32(t, B_CAT, I32(2, 0, 2, 1)) && is_i64(t, B_CAT_PTR, I64(0, 1, 2, 4)));
    CHECK(is_i32(t, B_CAT_PERM, I32(1, 3, 0, 2)));
    /* canonical edges: 0->0 (file 1), 3->0 (4), 2->1 (0), 1->1 (2), 0->1 (3) */
    CHECK(is_i32(t, B_SRC, I32(0, 3, 2, 1, 0)) && is_i32(t, B_DST, I32(0, 0, 1, 1, 1)));
    CHECK(is_f32(t, B_W, F32(11, 14, 10, 12, 13)));
    CHECK(is_i64(t, B_SRC_PTR, I64(0, 2, 3, 4, 5)) && is_i32(t, B_SRC_PERM, I32(0, 4, 3, 2, 1)));
    CHECK(is_i64(t, B_DST_PTR, I64(0, 2, 5, 5, 5)) && is_i32(t, B_DST_PERM, I32(0, 1, 2, 3, 4)));
    /* with loops: 3->0, loop 0, 2->1, 0->1, loops 1 2 3 */
    CHECK(is_i32(t, B_LOOP_ORIG, I32(1, -1, 2, 4, -1, -1, -1)));
    CHECK(is_i64(t, B_LOOP_ORIG_PTR, I64(0, 0, 1, 2, 2, 3)));
    CHECK(is_i32(t, B_LOOP_ORIG_PERM, I32(0, 2, 3)) && is_i32(t, B_IDS, I32(4, 5, 0, 3, 6, 7, 8)));
    CHECK(is_i32(t, B_REV_SRC, I32(0, 1, 1, 1, 0)));
    gnnc_trainer_destroy(t);
    scratch_remove(dir);
}

/* ---- other data than the model's ------------------------------------------------------------ */
static char *data_of_names(const char *names) {
    static const char where[] = "\"categories\": 3";
    char schema[sizeof SCHEMA + 100];
    const char *at = strstr(SCHEMA, where) + sizeof where - 1;
    snprintf(schema, sizeof schema, "%.*s, \"names\": %s%s", (int)(at - SCHEMA), SCHEMA, names, at);
    return data_new(schema);
}

static gnnc_status load_given(const char *weights, const char *dir, const RtAlloc *a,
                              gnnc_trainer **t) {
    static rt_program p;
    p = program();
    gnnc_status st = gnnc_trainer_create_with(t, MODEL_OF(&p), a->alloc, a->release, a->user);
    if (st == GNNC_OK) st = gnnc_trainer_load_weights(*t, weights);
    return st == GNNC_OK ? gnnc_trainer_load(*t, dir) : st;
}

TEST(codes_are_read_by_their_names) {
    const RtAlloc normal = rt_alloc_default();
    char weights[100], here[64], other[64], strange[64];
    rt_program p = program();
    gnnc_trainer *t = NULL;
    snprintf(here, sizeof here, "%s", data_of_names("[\"u\", \"v\", \"w\"]"));
    snprintf(other, sizeof other, "%s", data_of_names("[\"w\", \"u\", \"v\"]"));
    snprintf(strange, sizeof strange, "%s", data_of_names("[\"u\", \"x\", \"w\"]"));
    snprintf(weights, sizeof weights, "%s/w.st", here);
    CHECK(gnnc_trainer_create(&t, MODEL_OF(&p)) == GNNC_OK &&
          gnnc_trainer_load(t, here) == GNNC_OK);
    CHECK_MSG(gnnc_trainer_save_weights(t, weights) == GNNC_OK, "%s", gnnc_trainer_error(t));
    CHECK(is_i32(t, B_CAT, I32(2, 0, 2, 1)));
    gnnc_trainer_destroy(t);
    CHECK(load_given(weights, other, &normal, &t) == GNNC_OK);
    CHECK(is_i32(t, B_CAT, I32(1, 2, 1, 0)) && is_i32(t, B_KIND, I32(1, 2, 1, 0)));
    gnnc_trainer_destroy(t);
    CHECK(load_given(weights, strange, &normal, &t) == GNNC_E_RANGE);
    CHECK_MSG(strstr(gnnc_trainer_error(t), "row 3 of 'n.kind' is 'x'"), "%s",
              gnnc_trainer_error(t));
    gnnc_trainer_destroy(t);
    gnnc_status st = GNNC_E_NOMEM;
    for (long n = 0; st == GNNC_E_NOMEM && n < 1000; n++) {
        FailingAlloc f = {.fail_at = n};
        RtAlloc a = {failing_alloc, failing_release, &f};
        st = load_given(weights, other, &a, &t);
        CHECK_MSG(st == GNNC_OK || st == GNNC_E_NOMEM, "allocation %ld: %s", n,
                  gnnc_trainer_error(t));
        gnnc_trainer_destroy(t);
        CHECK_MSG(f.n_live == 0, "allocation %ld: %ld blocks leak", n, f.n_live);
    }
    CHECK(st == GNNC_OK);
    scratch_remove(here);
    scratch_remove(other);
    scratch_remove(strange);
}

/* The same matrix as dense rows: what the program reads is made of either form. */
static const char ROWS[] =
    "\"x\": {\"kind\": \"float\", \"shape\": [4, 6], \"file\": \"rows.npy\"},";
static const float rows[24] = {[1] = 1, [4] = 2, [16] = 3, [18] = 4};

static char *data_of_rows(void) {
    char schema[sizeof SCHEMA + sizeof ROWS];
    const char *x = strstr(SCHEMA, "\"x\""), *y = strstr(SCHEMA, "\"y\"");
    snprintf(schema, sizeof schema, "%.*s%s%s", (int)(x - SCHEMA), SCHEMA, ROWS, y);
    char *dir = data_new(schema);
    save_npy(dir, "rows.npy", RT_DT_F32, 2, 4, 6, (void *)rows);
    return dir;
}

TEST(dense_rows_are_read_as_stored_entries) {
    rt_program p = program();
    gnnc_trainer *t = NULL;
    char *dir = data_of_rows();
    CHECK(gnnc_trainer_create(&t, MODEL_OF(&p)) == GNNC_OK);
    CHECK_MSG(gnnc_trainer_load(t, dir) == GNNC_OK, "%s", gnnc_trainer_error(t));
    CHECK(t->x.n[S_NZ] == 4 && t->x.n[S_F] == 6 && is_f32(t, B_X, F32(1, 2, 3, 4)));
    CHECK(is_i32(t, B_ROW, I32(0, 0, 2, 3)) && is_i64(t, B_ROW_PTR, I64(0, 2, 2, 3, 4)));
    CHECK(is_i32(t, B_NZCOL, I32(1, 4, 4, 0)) && is_i64(t, B_NZCOL_PTR, I64(0, 1, 2, 2, 2, 4, 4)));
    CHECK(is_i32(t, B_NZCOL_PERM, I32(3, 0, 1, 2)));
    gnnc_trainer_destroy(t);
    scratch_remove(dir);
}

TEST(stored_entries_are_read_as_dense_rows) {
    rt_column as_rows[sizeof columns / sizeof *columns];
    rt_map others[sizeof maps / sizeof *maps - 2];
    memcpy(as_rows, columns, sizeof columns);
    memcpy(others, maps + 2, sizeof others); /* without those of stored entries */
    as_rows[0].kind = RT_COL_FLOAT;
    for (int dense = 0; dense < 2; dense++) {
        rt_program p = program();
        gnnc_trainer *t = NULL;
        char *dir = dense ? data_of_rows() : data_new(SCHEMA);
        p.columns = as_rows;
        p.maps = others;
        p.n_maps = sizeof others / sizeof *others;
        CHECK(gnnc_trainer_create(&t, MODEL_OF(&p)) == GNNC_OK);
        CHECK_MSG(gnnc_trainer_load(t, dir) == GNNC_OK, "%s", gnnc_trainer_error(t));
        CHECK(t->x.n[S_F] == 6 && is_f32(t, B_X, 24, rows));
        gnnc_trainer_destroy(t);
        scratch_remove(dir);
    }
}

TEST(balanced_cuts_cover_every_row_once) {
    rt_program p = program();
    gnnc_trainer *t = NULL;
    char *dir = data_new(SCHEMA);
    CHECK(gnnc_trainer_create(&t, MODEL_OF(&p)) == GNNC_OK && gnnc_trainer_load(t, dir) == GNNC_OK);
    for (int m = 0; m < p.n_maps; m++) {
        const int64_t *cut = t->x.balance[m];
        if (maps[m].ptr_buf < 0) continue;
        const rt_space *to = &spaces[maps[m].to];
        CHECK(cut && cut[0] == 0 &&
              cut[RT_CHUNKS] == (to->fixed >= 0 ? to->fixed : t->x.n[to->sym]));
        for (int c = 0; cut && c < RT_CHUNKS; c++) CHECK(cut[c] <= cut[c + 1]);
    }
    gnnc_trainer_destroy(t);
    scratch_remove(dir);
}

static void refuses(const char *from, const char *to, gnnc_status want, const char *says) {
    char schema[2 * sizeof SCHEMA];
    const char *at = strstr(SCHEMA, from);
    snprintf(schema, sizeof schema, "%.*s%s%s", (int)(at - SCHEMA), SCHEMA, to, at + strlen(from));
    rt_program p = program();
    gnnc_trainer *t = NULL;
    char *dir = data_new(schema);
    CHECK(gnnc_trainer_create(&t, MODEL_OF(&p)) == GNNC_OK);
    gnnc_status st = gnnc_trainer_load(t, dir);
    CHECK_MSG(st == want && strstr(gnnc_trainer_error(t), says), "'%s': %d %s", to, st,
              gnnc_trainer_error(t));
    gnnc_trainer_destroy(t);
    scratch_remove(dir);
}

TEST(what_does_not_fit_is_named) {
    refuses("\"categories\": 3", "\"categories\": 4", GNNC_E_SHAPE, "fixes K = 3");
    refuses("\"graph\": \"g\", \"graph_ptr\": \"ptr.npy\", ", "", GNNC_E_MISSING, "graph_ptr");
    refuses("\"kind\": \"class\", \"categories\": 2, \"file\": \"y.npy\"",
            "\"kind\": \"id\", \"file\": \"y.npy\"", GNNC_E_DTYPE, "'n.y' is of kind id");
}

/* The pointers of the small table were read to the end of the large one. */
TEST(nodes_divided_into_other_graphs_are_refused) {
    refuses("\"graphs\": {\"g\": {\"count\": 2",
            "\"graphs\": {\"few\": {\"count\": 2}, \"g\": {\"count\": 2", GNNC_OK, "");
    refuses("\"label.npy\"}}}},\"nodes\": {\"n\": {\"count\": 4, \"graph\": \"g\"",
            "\"label.npy\"}}}, \"few\": {\"count\": 2}},"
            "\"nodes\": {\"n\": {\"count\": 4, \"graph\": \"few\"",
            GNNC_E_SHAPE, "'n' is divided into 'few', in the model into 'g'");
}

/* ---- weights of other programs ---------------------------------------------------------- */
TEST(weights_of_other_shapes_and_types_load) {
    rt_program p = program();
    gnnc_trainer *t = NULL;
    char *dir = data_new(SCHEMA), path[100];
    double v[24];
    float got[24];
    for (int i = 0; i < 24; i++) v[i] = i;
    snprintf(path, sizeof path, "%s/w.safetensors", dir);
    CHECK(gnnc_trainer_create(&t, MODEL_OF(&p)) == GNNC_OK && gnnc_trainer_load(t, dir) == GNNC_OK);
    RtTensor x[2] = {{"lin.weight", {RT_DT_F64, 2, {4, 6}, 24, v, false}},
                     {"other", {RT_DT_F64, 1, {3}, 3, v, false}}};
    RtTensors f = {.n = 2, .v = x};
    RtAlloc from = rt_alloc_default();
    CHECK(rt_safetensors_save(&from, path, &f, NULL) == GNNC_OK);
    CHECK_MSG(gnnc_trainer_load_weights(t, path) == GNNC_OK, "%s", gnnc_trainer_error(t));
    CHECK(gnnc_trainer_get_parameter(t, "lin.weight", got, 24) == GNNC_OK && got[23] == 23);
    x[0].a.shape[0] = 6, x[0].a.shape[1] = 4, v[23] = 0;
    CHECK(rt_safetensors_save(&from, path, &f, NULL) == GNNC_OK);
    CHECK(gnnc_trainer_load_weights(t, path) == GNNC_E_SHAPE);
    CHECK(strstr(gnnc_trainer_error(t), "is [6, 4], in the model [2, 2, 6]") != NULL);
    x[0].name = "lin.weight_g";
    CHECK(rt_safetensors_save(&from, path, &f, NULL) == GNNC_OK);
    CHECK(gnnc_trainer_load_weights(t, path) == GNNC_E_MISSING);
    CHECK(strstr(gnnc_trainer_error(t), "missing 'lin.weight'") != NULL);
    CHECK(gnnc_trainer_get_parameter(t, "lin.weight", got, 24) == GNNC_OK && got[23] == 23);
    gnnc_trainer_destroy(t);
    scratch_remove(dir);
}

/* ---- weights that are stored in another order than they are written in -------- */
static void turned_shape(int v, const int64_t *n, rt_var_shape *s) {
    var_shape(v, n, s);
    s->transposed = n[S_F];
}

/* In memory [6, 2, 2]: what is written as (i, k), a row of 6 in 4, is at 4 k + i. */
TEST(turned_weights_keep_their_order_outside) {
    static const rt_var drawn[] = {
        {.path = "lin.weight", .dt = RT_F32, .buf = B_PARAM, .init = RT_INIT_UNIFORM, .b = 1}};
    rt_program plain = program(), p = program();
    char *dir = data_new(SCHEMA), path[100];
    float first[2][24], got[24], given[24];
    plain.n_vars = p.n_vars = 1;
    plain.vars = p.vars = drawn;
    p.var_shape = turned_shape;
    snprintf(path, sizeof path, "%s/w.safetensors", dir);
    for (int i = 0; i < 24; i++) given[i] = (float)i;
    for (int k = 0; k < 2; k++) {
        gnnc_trainer *t = NULL;
        CHECK(gnnc_trainer_create(&t, MODEL_OF(k ? &p : &plain)) == GNNC_OK);
        CHECK_MSG(gnnc_trainer_load(t, dir) == GNNC_OK, "%s", gnnc_trainer_error(t));
        CHECK(gnnc_trainer_get_parameter(t, "lin.weight", first[k], 24) == GNNC_OK);
        CHECK(gnnc_trainer_set_parameter(t, "lin.weight", given, 24) == GNNC_OK);
        const float *memory = t->x.buf[B_PARAM];
        for (int i = 0; i < 24; i++) CHECK(memory[k ? i % 6 * 4 + i / 6 : i] == given[i]);
        if (k) { /* from the file that the other one wrote, and back */
            CHECK(gnnc_trainer_set_parameter(t, "lin.weight", first[k], 24) == GNNC_OK);
            CHECK(gnnc_trainer_load_weights(t, path) == GNNC_OK);
            CHECK(gnnc_trainer_get_parameter(t, "lin.weight", got, 24) == GNNC_OK);
            CHECK(memcmp(got, given, sizeof got) == 0);
        }
        CHECK(gnnc_trainer_save_weights(t, path) == GNNC_OK);
        gnnc_trainer_destroy(t);
    }
    CHECK(first[0][1] != first[0][2] && memcmp(first[0], first[1], sizeof first[0]) == 0);
    RtPool pool;
    RtTensors f;
    RtAlloc from = rt_alloc_default();
    rt_pool_init(&pool, &from);
    CHECK(rt_safetensors_open(&pool, path, &f, NULL) == GNNC_OK && f.n == 1);
    CHECK(memcmp(f.v[0].a.data, given, sizeof given) == 0);
    rt_pool_free(&pool);
    scratch_remove(dir);
}

/* Of these edges there are no arrays: they are refused by their number, where kernels number or
 * count them in 32 bits. */
TEST(more_edges_than_32_bits_count_are_refused) {
    rt_space space = {.name = "knows", .kind = RT_SP_EDGE, .numbered = true};
    const rt_program p = {.spaces = &space, .n_spaces = 1, .source = "m.gnn"};
    RtRelation rel = {.n_edges = (INT64_C(1) << 31) - 1};
    RtBound bound = {.rel = &rel};
    RtRuntime rt = {.bound = &bound};
    RtExec x = {.program = &p, .rt = &rt};
    CHECK(rt_bind_space(&x, 0) == GNNC_OK);
    rel.n_edges++;
    CHECK(rt_bind_space(&x, 0) == GNNC_E_RANGE);
    CHECK_MSG(strstr(rt.err.text, "edge type 'knows': its 2147483648 edges") &&
                  strstr(rt.err.text, "m.gnn numbers and counts at most 2^31 - 1"),
              "%s", rt.err.text);
    space.numbered = false;
    CHECK(rt_bind_space(&x, 0) == GNNC_OK);
}

TEST_MAIN()
