/* Data directories: all kinds of columns written, read back, broken one by one. */
#include "test.h"

#include <sys/time.h>

#include <math.h>
#include <sys/stat.h>

#include "runtime/data/data.h"
#include "runtime/exec/round_16.h"
#include "rt_test_util.h"

/* ---- a small data set with everything in it ------------------------------------ */
/* 4 users, 3 items in 2 baskets; users buy items, users follow users. */
static const float AGE[4] = {20, 30, 40, 50};
static const float FEATURES[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
static const int32_t CITY[4] = {0, 1, 1, 0}, LABEL[4] = {2, -1, 0, 1};
static const float TAGS[8] = {0, 1, NAN, 1, 0, 0, 1, NAN};
static const double WHEN[4] = {1.5, 2.5, NAN, 0};
static const int64_t KEY[4] = {100, (int64_t)1 << 40, -1, 7};
static const int8_t SPLITS[8] = {1, 2, 3, 0, 3, 2, 1, 1};
static const int64_t PTR[5] = {0, 2, 2, 3, 4}, BASKET[3] = {0, 1, 3};
static const int32_t COL[4] = {0, 4, 2, 1};
static const float VAL[4] = {1, 2, 3, 4}, PRICE[3] = {9, 8, 7}, TOTAL[2] = {9, 15};
static const int32_t BUYS_SRC[3] = {3, 0, 1}, BUYS_DST[3] = {2, 0, 2};
static const int32_t FOLLOWS_SRC[2] = {0, 1}, FOLLOWS_DST[2] = {1, 0};
static const char *const CITIES[2] = {"Rome", "Os\"lo"};

#define COLUMN(k, n, NAME) .kind = RT_COL_##k, .n_rows = n, .rank = 1, .shape = {n}, .name = NAME

static RtColumn user_columns[] = {
    {COLUMN(FLOAT, 4, "age"), .f32 = AGE},
    {.kind = RT_COL_FLOAT, .n_rows = 4, .rank = 2, .shape = {4, 3}, .name = "f", .f32 = FEATURES},
    {COLUMN(CAT, 4, "city"), .i32 = CITY, .n_categories = 2, .names = CITIES},
    {COLUMN(CLASS, 4, "y"), .i32 = LABEL, .n_categories = 3},
    {.kind = RT_COL_MULTILABEL,
     .n_rows = 4,
     .rank = 2,
     .shape = {4, 2},
     .name = "tags",
     .f32 = TAGS},
    {COLUMN(TIME, 4, "since"), .f64 = WHEN},
    {COLUMN(ID, 4, "key"), .i64 = KEY},
    {COLUMN(SPLIT, 4, "split"), .splits = SPLITS, .n_splits = 2},
    {.kind = RT_COL_CSR,
     .n_rows = 4,
     .rank = 2,
     .shape = {4, 5},
     .name = "x",
     .csr = {4, 5, 4, PTR, COL, VAL}},
};
static RtColumn buys_columns[] = {{COLUMN(FLOAT, 3, "price"), .f32 = PRICE}};
static RtColumn basket_columns[] = {{COLUMN(FLOAT, 2, "total"), .f32 = TOTAL}};

static RtTable node_tables[] = {
    {.name = "user", .count = 4, .n_columns = 9, .columns = user_columns, .graph = -1},
    {.name = "item", .count = 3, .graph = 0, .graph_ptr = BASKET},
};
static RtTable edge_tables[] = {
    {.name = "buys",
     .count = 3,
     .n_columns = 1,
     .columns = buys_columns,
     .src_type = 0,
     .dst_type = 1,
     .src = BUYS_SRC,
     .dst = BUYS_DST},
    {.name = "follows", .count = 2, .src = FOLLOWS_SRC, .dst = FOLLOWS_DST},
};
static RtTable graph_tables[] = {
    {.name = "basket", .count = 2, .n_columns = 1, .columns = basket_columns},
};

static RtDataset sample(const RtAlloc *from) {
    RtDataset d = {.name = "shop",
                   .source = "a test",
                   .licence = "none",
                   .n_nodes = 2,
                   .n_edges = 2,
                   .n_graphs = 1,
                   .nodes = node_tables,
                   .edges = edge_tables,
                   .graphs = graph_tables};
    rt_pool_init(&d.pool, from);
    return d;
}

static char dir[128];

static gnnc_status write_sample(const RtAlloc *from, bool replace, RtError *err) {
    RtDataset d = sample(from);
    return rt_dataset_write(&d, dir, replace, err);
}

static const char *begin(void) {
    const char *scratch = scratch_new();
    RtError err = {""};
    snprintf(dir, sizeof dir, "%s/shop", scratch);
    CHECK_MSG(write_sample(NULL, false, &err) == GNNC_OK, "%s", err.text);
    return scratch;
}

/* ---- reading back ----------------------------------------------------------------- */
static void check_columns(const RtTable *user) {
    const RtColumn *c = rt_table_column(user, "f");
    CHECK(c && c->rank == 2 && c->shape[1] == 3 && !memcmp(c->f32, FEATURES, sizeof FEATURES));
    c = rt_table_column(user, "city");
    CHECK(c && c->n_categories == 2 && !memcmp(c->i32, CITY, sizeof CITY));
    CHECK_STR(c->names[1], "Os\"lo");
    c = rt_table_column(user, "y");
    CHECK(c && c->kind == RT_COL_CLASS && !memcmp(c->i32, LABEL, sizeof LABEL));
    c = rt_table_column(user, "tags");
    CHECK(c && isnan(c->f32[2]) && c->f32[3] == 1);
    c = rt_table_column(user, "since");
    CHECK(c && isnan(c->f64[2]) && c->f64[0] == 1.5);
    c = rt_table_column(user, "key");
    CHECK(c && !memcmp(c->i64, KEY, sizeof KEY));
    c = rt_table_column(user, "split");
    CHECK(c && c->n_splits == 2 && !memcmp(c->splits, SPLITS, sizeof SPLITS));
    c = rt_table_column(user, "x");
    CHECK(c && c->csr.nnz == 4 && c->csr.n_cols == 5 && !memcmp(c->csr.col, COL, sizeof COL));
    CHECK(!memcmp(c->csr.ptr, PTR, sizeof PTR) && !memcmp(c->csr.val, VAL, sizeof VAL));
    CHECK(!rt_table_column(user, "none"));
}

TEST(written_data_read_back) {
    const char *scratch = begin();
    RtDataset *d;
    RtError err = {""};
    CHECK_MSG(rt_dataset_open(NULL, dir, true, &d, &err) == GNNC_OK, "%s", err.text);
    if (!d) return;
    CHECK_STR(d->name, "shop");
    CHECK_STR(d->licence, "none");
    const RtTable *user = rt_dataset_nodes(d, "user"), *item = rt_dataset_nodes(d, "item");
    CHECK(user && user->count == 4 && user->n_columns == 9 && user->graph == -1);
    check_columns(user);
    CHECK(item && item->graph == 0 && !memcmp(item->graph_ptr, BASKET, sizeof BASKET));
    const RtTable *buys = rt_dataset_edges(d, "buys");
    CHECK(buys && buys->src_type == 0 && buys->dst_type == 1);
    CHECK(!memcmp(buys->src, BUYS_SRC, sizeof BUYS_SRC));
    CHECK(!memcmp(buys->dst, BUYS_DST, sizeof BUYS_DST));
    CHECK(rt_dataset_graphs(d, "basket") && !rt_dataset_graphs(d, "user"));
    const int32_t *of;
    CHECK(rt_table_graph_of(&d->pool, item, 2, &of, NULL) == GNNC_OK);
    CHECK(of[0] == 0 && of[1] == 1 && of[2] == 1);
    rt_dataset_close(d);
    scratch_remove(scratch);
}

TEST(columns_follow_another_order) {
    RtPool pool;
    rt_pool_init(&pool, NULL);
    const int32_t order[3] = {3, 0, 0};
    for (int i = 0; i < 9; i++) {
        RtColumn c;
        CHECK(rt_column_take(&pool, &user_columns[i], order, 3, &c, NULL) == GNNC_OK);
        CHECK(c.n_rows == 3 && c.shape[0] == 3);
        CHECK(rt_column_check(&c, "t", NULL) == GNNC_OK);
        if (i == 1) CHECK(c.f32[0] == 10 && c.f32[3] == 1 && c.f32[8] == 3);
        if (i == 3) CHECK(c.i32[0] == 1 && c.i32[1] == 2);
        if (i == 7) CHECK(c.splits[0] == 0 && c.splits[3] == 1 && c.splits[4] == 3);
        if (i == 8) CHECK(c.csr.nnz == 5 && c.csr.col[0] == 1 && c.csr.ptr[1] == 1);
    }
    const void *read;
    RtError err = {""};
    CHECK(rt_column_read(&pool, &user_columns[7], 1, &read, &err) == GNNC_OK);
    const int32_t *split = read;
    CHECK(split[0] == 3 && split[3] == 1);
    CHECK(rt_column_read(&pool, &user_columns[7], 2, &read, &err) == GNNC_E_RANGE);
    CHECK_STR(err.text, "split 2: column 'split' has splits 0 to 1");
    CHECK(rt_column_read(&pool, &user_columns[0], 0, &read, &err) == GNNC_OK && read == AGE);
    rt_pool_free(&pool);
}

/* ---- directories -------------------------------------------------------------------- */
TEST(replaces_only_data_directories) {
    const char *scratch = begin();
    RtError err = {""};
    char other[160];
    CHECK(write_sample(NULL, false, &err) == GNNC_E_IO);
    CHECK_MSG(strstr(err.text, "exists already"), "%s", err.text);
    CHECK(write_sample(NULL, true, NULL) == GNNC_OK);
    CHECK(count_entries(scratch) == 1);
    snprintf(other, sizeof other, "%s/schema.json", dir);
    unlink(other);
    err = (RtError){""};
    CHECK(write_sample(NULL, true, &err) == GNNC_E_IO);
    CHECK_MSG(strstr(err.text, "not a data directory"), "%s", err.text);
    CHECK(count_entries(scratch) == 1);
    scratch_remove(dir);
    mkdir(dir, 0777); /* an empty directory is no loss */
    CHECK(write_sample(NULL, false, NULL) == GNNC_OK);
    scratch_remove(scratch);
}

/* Checkpoints and notes beside the data are not the importer's to delete. */
TEST(replaces_only_what_an_import_wrote) {
    const char *scratch = begin();
    RtError err = {""};
    char path[200], old[160];
    int n = count_entries(dir);
    snprintf(path, sizeof path, "%s/best.ckpt", dir);
    write_file(path, "mine", 4);
    CHECK_MSG(write_sample(NULL, true, &err) == GNNC_OK, "%s", err.text);
    CHECK(access(path, F_OK) == 0 && count_entries(dir) == n + 1 && count_entries(scratch) == 1);
    snprintf(path, sizeof path, "%s/shop", dir); /* the data set's name */
    write_file(path, "mine", 4);
    CHECK_MSG(write_sample(NULL, true, &err) == GNNC_OK, "%s", err.text);
    CHECK(access(path, F_OK) == 0 && count_entries(dir) == n + 2 && count_entries(scratch) == 1);
    snprintf(path, sizeof path, "%s/runs", dir);
    mkdir(path, 0777);
    CHECK(write_sample(NULL, true, &err) == GNNC_E_IO);
    CHECK_MSG(strstr(err.text, "'runs' is not of an import"), "%s", err.text);
    CHECK(access(path, F_OK) == 0 && count_entries(scratch) == 1);
    rmdir(path);
    /* What a killed import left is removed by the next one; what is new may be at work. */
    snprintf(old, sizeof old, "%s.tmp.99999", dir);
    mkdir(old, 0777);
    CHECK(write_sample(NULL, true, NULL) == GNNC_OK && count_entries(scratch) == 2);
    snprintf(path, sizeof path, "%s/thesis.txt", old); /* nor is a directory with more in it */
    write_file(path, "mine", 4);
    utimes(old, (struct timeval[]){{1, 0}, {1, 0}});
    CHECK(write_sample(NULL, true, NULL) == GNNC_OK && access(path, F_OK) == 0);
    unlink(path);
    utimes(old, (struct timeval[]){{1, 0}, {1, 0}});
    CHECK(write_sample(NULL, true, NULL) == GNNC_OK && count_entries(scratch) == 1);
    scratch_remove(scratch);
}

TEST(makes_the_folders_above) {
    const char *scratch = begin();
    RtError err = {""};
    char old[sizeof dir];
    memcpy(old, dir, sizeof dir);
    snprintf(dir, sizeof dir, "%s/a/b//c/", scratch);
    CHECK_MSG(write_sample(NULL, false, &err) == GNNC_OK, "%s", err.text);
    CHECK(write_sample(NULL, false, &err) == GNNC_E_IO &&
          write_sample(NULL, true, NULL) == GNNC_OK);
    snprintf(dir, sizeof dir, "%s/a/b/c/schema.json/d", scratch);
    err = (RtError){""};
    CHECK(write_sample(NULL, false, &err) == GNNC_E_IO);
    CHECK_MSG(strstr(err.text, "schema.json"), "%s", err.text);
    memcpy(dir, old, sizeof dir);
    scratch_remove(scratch);
}

TEST(refuses_names_that_are_no_identifiers) {
    const char *scratch = begin();
    RtError err = {""};
    char old[sizeof dir];
    memcpy(old, dir, sizeof dir);
    snprintf(dir, sizeof dir, "%s/two", scratch);
    edge_tables[1].name = "../follows";
    CHECK(write_sample(NULL, false, &err) == GNNC_E_ARG);
    CHECK_MSG(strstr(err.text, "'../follows' cannot name"), "%s", err.text);
    edge_tables[1].name = "follows";
    CHECK(count_entries(scratch) == 1);
    scratch_remove(scratch);
}

/* ---- broken data ---------------------------------------------------------------------- */
/* The sample directory with one file replaced. */
typedef struct {
    const char *name;
    const void *p;
    size_t n;
} Patch;

static gnnc_status get(void *user, RtPool *pool, const char *name, bool map, RtBytes *out,
                       RtError *err) {
    (void)map;
    const Patch *p = user;
    char path[400];
    if (strcmp(name, p->name) == 0) {
        *out = (RtBytes){p->p, p->n};
        return GNNC_OK;
    }
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return rt_file_map(pool, path, out, err);
}

static gnnc_status open_patched(const Patch *p, RtError *err) {
    RtDataset *d;
    RtFiles files = {.get = get, .user = (void *)(uintptr_t)p, .map_values = true};
    *err = (RtError){""};
    gnnc_status st = rt_dataset_open_files(NULL, &files, &d, err);
    rt_dataset_close(d);
    return st;
}

static void expect(const char *file, RtDtype dt, int rank, const int64_t *shape, const void *data,
                   gnnc_status want, const char *text) {
    char path[200];
    RtPool pool;
    RtBytes bytes;
    RtError err;
    RtArray a = {.dt = dt, .rank = rank, .data = data};
    memcpy(a.shape, shape, (size_t)rank * sizeof *shape);
    rt_pool_init(&pool, NULL);
    snprintf(path, sizeof path, "%s.tmp.npy", dir);
    CHECK(rt_npy_save(NULL, path, &a, NULL) == GNNC_OK);
    CHECK(rt_file_map(&pool, path, &bytes, NULL) == GNNC_OK);
    gnnc_status st = open_patched(&(Patch){file, bytes.p, bytes.n}, &err);
    CHECK_MSG(st == want, "%s: status %d, %s", file, st, err.text);
    CHECK_STR(err.text, text);
    rt_pool_free(&pool);
}

#define SHAPE(...)                                                                                 \
    (int64_t[]) {                                                                                  \
        __VA_ARGS__                                                                                \
    }

TEST(each_broken_column_is_named_with_its_row) {
    const char *scratch = begin();
    expect("node.user.age.npy", RT_DT_F32, 1, SHAPE(4), (float[]){1, 2, NAN, 4}, GNNC_E_VALUE,
           "user.age: row 2: value is NaN");
    expect("node.user.f.npy", RT_DT_F32, 2, SHAPE(4, 3),
           (float[]){1, 2, 3, 4, -INFINITY, 6, 7, 8, 9, 1, 1, 1}, GNNC_E_VALUE,
           "user.f: row 1: value is infinite");
    expect("node.user.f.npy", RT_DT_F32, 2, SHAPE(4, 2), FEATURES, GNNC_E_SHAPE,
           "node.user.f.npy: size 2 in dimension 1, the schema says 3");
    expect("node.user.f.npy", RT_DT_F32, 1, SHAPE(4), FEATURES, GNNC_E_SHAPE,
           "node.user.f.npy: 1 dimensions, the schema says 2");
    expect("node.user.city.npy", RT_DT_I32, 1, SHAPE(4), (int32_t[]){0, 1, 2, 0}, GNNC_E_RANGE,
           "user.city: row 2: 2 is no category of 2");
    expect("node.user.city.npy", RT_DT_I32, 1, SHAPE(4), (int32_t[]){0, -1, 1, 0}, GNNC_E_RANGE,
           "user.city: row 1: -1 is no category of 2");
    expect("node.user.city.npy", RT_DT_F32, 1, SHAPE(4), AGE, GNNC_E_DTYPE,
           "node.user.city.npy: holds F32, integers wanted");
    expect("node.user.y.npy", RT_DT_I64, 1, SHAPE(4), (int64_t[]){0, 1, 2, (int64_t)1 << 33},
           GNNC_E_RANGE, "node.user.y.npy: element 3 is 8589934592, beyond 32 bits");
    expect("node.user.split.npy", RT_DT_I8, 2, SHAPE(2, 4), (int8_t[]){0, 1, 2, 3, 0, 0, 4, 0},
           GNNC_E_RANGE, "user.split: row 2: a split is 0 none, 1 train, 2 validation or 3 test");
    expect("node.user.since.npy", RT_DT_F64, 1, SHAPE(4), (double[]){1, INFINITY, 2, 3},
           GNNC_E_VALUE, "user.since: row 1: time is infinite");
    expect("node.user.key.npy", RT_DT_F64, 1, SHAPE(4), WHEN, GNNC_E_DTYPE,
           "node.user.key.npy: holds F64, integers wanted");
    expect("edge.buys.npy", RT_DT_I32, 2, SHAPE(2, 3), (int32_t[]){3, 0, 4, 2, 0, 2}, GNNC_E_RANGE,
           "buys: edge 2: source 4 is no 'user' node: there are 4");
    expect("edge.buys.npy", RT_DT_I32, 2, SHAPE(2, 3), (int32_t[]){3, 0, 1, 2, -1, 2}, GNNC_E_RANGE,
           "buys: edge 1: destination -1 is no 'item' node: there are 3");
    expect("node.item.graph_ptr.npy", RT_DT_I64, 1, SHAPE(3), (int64_t[]){0, 2, 1}, GNNC_E_FORMAT,
           "item: graph 1: graph pointers must ascend");
    expect("node.item.graph_ptr.npy", RT_DT_I64, 1, SHAPE(3), (int64_t[]){0, 1, 2}, GNNC_E_FORMAT,
           "item: graph pointers must run from 0 to 3");
    scratch_remove(scratch);
}

TEST(each_broken_csr_is_named_with_its_row) {
    const char *scratch = begin(), *ptr = "node.user.x.ptr.npy", *col = "node.user.x.col.npy";
    expect(ptr, RT_DT_I64, 1, SHAPE(5), (int64_t[]){0, 2, 1, 3, 4}, GNNC_E_FORMAT,
           "user.x: row 1: row pointers must ascend and stay inside");
    expect(ptr, RT_DT_I64, 1, SHAPE(5), (int64_t[]){0, 2, 2, 3, 1 << 20}, GNNC_E_FORMAT,
           "user.x: row 3: row pointers must ascend and stay inside");
    expect(ptr, RT_DT_I64, 1, SHAPE(5), (int64_t[]){1, 2, 2, 3, 4}, GNNC_E_FORMAT,
           "user.x: row 0: row pointers must start at 0");
    expect(ptr, RT_DT_I64, 1, SHAPE(5), (int64_t[]){0, 2, 2, 3, 3}, GNNC_E_FORMAT,
           "user.x: row pointers end at 3 of 4 entries");
    expect(ptr, RT_DT_I64, 1, SHAPE(4), (int64_t[]){0, 2, 2, 3}, GNNC_E_SHAPE,
           "node.user.x.ptr.npy: size 4 in dimension 0, the schema says 5");
    expect(col, RT_DT_I32, 1, SHAPE(4), (int32_t[]){0, 5, 2, 1}, GNNC_E_RANGE,
           "user.x: row 0: column index out of range");
    expect(col, RT_DT_I32, 1, SHAPE(4), (int32_t[]){4, 0, 2, 1}, GNNC_E_FORMAT,
           "user.x: row 0: column indices must ascend");
    expect(col, RT_DT_I32, 1, SHAPE(4), (int32_t[]){3, 3, 2, 1}, GNNC_E_FORMAT,
           "user.x: row 0: column indices must ascend");
    expect("node.user.x.val.npy", RT_DT_F32, 1, SHAPE(4), (float[]){1, 2, 3, INFINITY},
           GNNC_E_VALUE, "user.x: row 3: value is infinite");
    scratch_remove(scratch);
}

TEST(other_element_types_are_converted) {
    const char *scratch = begin();
    expect("node.user.age.npy", RT_DT_I16, 1, SHAPE(4), (int16_t[]){1, 2, 3, 4}, GNNC_OK, "");
    expect("node.user.f.npy", RT_DT_F64, 2, SHAPE(4, 3), (double[12]){1}, GNNC_OK, "");
    expect("node.user.y.npy", RT_DT_U8, 1, SHAPE(4), (uint8_t[]){0, 1, 2, 0}, GNNC_OK, "");
    expect("node.user.split.npy", RT_DT_I32, 1, SHAPE(4), (int32_t[]){0, 1, 2, 3}, GNNC_OK, "");
    expect("node.user.x.ptr.npy", RT_DT_I32, 1, SHAPE(5), (int32_t[]){0, 2, 2, 3, 4}, GNNC_OK, "");
    expect("edge.buys.npy", RT_DT_I64, 2, SHAPE(2, 3), (int64_t[]){3, 0, 1, 2, 0, 2}, GNNC_OK, "");
    scratch_remove(scratch);
}

TEST(broken_schemas) {
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"", "schema.json:1: text ends where a value is expected"},
        {"{", "schema.json:1: a key in quotes is expected"},
        {"[]", "schema.json:1: data set: an object is expected"},
        {"{}", "schema.json:1: data set: 'format' must be 1"},
        {"{\"format\": 2}", "schema.json:1: data set: 'format' must be 1"},
        {"{\"format\": 1} x", "schema.json:1: unexpected text after the value"},
        {"{\"format\": 1,\n \"node\": {}}", "schema.json:2: data set: unknown key 'node'"},
        {"{\"format\": 1, \"nodes\": {\"a\": {\"count\": 0, \"time\": \"at\", \"columns\": {}}}}",
         "schema.json:1: a: 'time' names no column of kind time"},
        {"{\"format\": 1, \"nodes\": {\"a\": {\"count\": 0, \"time\": 1, \"columns\": {}}}}",
         "schema.json:1: a: 'time' is the name of a column, or null"},
        {"{\"format\": 1, \"format\": 1}", "schema.json:1: key 'format' is repeated"},
        {"{\"format\": 1, \"nodes\": []}", "schema.json:1: nodes: an object is expected"},
        {"{\"format\": 1, \"nodes\": {\"a\": {}}}",
         "schema.json:1: a: 'count' must be a whole number below 2^31"},
        {"{\"format\": 1, \"nodes\": {\"a\": {\"count\": -1}}}",
         "schema.json:1: a: 'count' must be a whole number below 2^31"},
        {"{\"format\": 1, \"nodes\": {\"a\": {\"count\": 1e3}}}",
         "schema.json:1: a: 'count' must be a whole number below 2^31"},
        {"{\"format\": 1, \"nodes\": {\"a\": {\"count\": 1, \"columns\": {\"x\": {\"kind\": "
         "\"q\"}}}}}",
         "schema.json:1: a.x: unknown 'kind'"},
        {"{\"format\": 1, \"nodes\": {\"a\": {\"count\": 1, \"columns\": {\"x\": {\"kind\": "
         "\"float\", \"file\": \"../x.npy\"}}}}}",
         "schema.json:1: a.x: 'file' must name a file here"},
        {"{\"format\": 1, \"nodes\": {\"a\": {\"count\": 0, \"columns\": {\"x\": {\"kind\": "
         "\"float\", \"shape\": [0, 2000000000, 2000000000, 2000000000], \"file\": \"x.npy\"}}}}}",
         "schema.json:1: a.x: a row has more than 2^31 - 1 elements"},
        {"{\"format\": 1, \"nodes\": {\"a\": {\"count\": 1, \"columns\": {\"x\": {\"kind\": "
         "\"class\", \"file\": \"x.npy\"}}}}}",
         "schema.json:1: a.x: 'categories' must be a whole number"},
        {"{\"format\": 1, \"nodes\": {\"a\": {\"count\": 1, \"columns\": {\"x\": {\"kind\": "
         "\"cat\", \"categories\": 2, \"names\": [\"u\", \"u\"], \"file\": \"x.npy\"}}}}}",
         "schema.json:1: a.x: two categories have one name"},
        {"{\"format\": 1, \"nodes\": {\"a\": {\"count\": 1, \"columns\": {\"x\": {\"kind\": "
         "\"csr\"}}}}}",
         "schema.json:1: a.x: 'shape' must be an array of sizes"},
        {"{\"format\": 1, \"nodes\": {\"a\": {\"count\": 1, \"graph\": \"g\"}}}",
         "schema.json:1: a: 'graph' names no graph type"},
        {"{\"format\": 1, \"edges\": {\"e\": {\"count\": 1, \"src\": \"a\", \"dst\": \"a\"}}}",
         "schema.json:1: e: 'src' and 'dst' must name node types"},
        {"{\"format\": 1, \"edges\": {\"e\": {\"count\": 140737488355328}}}",
         "schema.json:1: e: 'count' must be a whole number below 2^47"},
        {"{\"format\": 1, \"name\": \"\\u0000\"}", "schema.json:1: invalid escape inside a string"},
        {"{\"format\": 01}", "schema.json:1: malformed value"},
    };
    const char *scratch = begin();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        RtError err;
        Patch p = {"schema.json", bad[i].text, strlen(bad[i].text)};
        CHECK_MSG(open_patched(&p, &err) == GNNC_E_FORMAT, "accepted: %s", bad[i].text);
        CHECK_STR(err.text, bad[i].message);
    }
    static char deep[100001];
    memset(deep, '[', sizeof deep - 1);
    RtError err;
    CHECK(open_patched(&(Patch){"schema.json", deep, sizeof deep - 1}, &err) == GNNC_E_FORMAT);
    CHECK_STR(err.text, "schema.json:1: nested too deeply");
    scratch_remove(scratch);
}

/* 2^31 edges or more are possible; their file must have them. */
TEST(more_edges_than_32_bits_number) {
    static const char schema[] =
        "{\"format\": 1, \"nodes\": {\"a\": {\"count\": 4, \"columns\": {}}}, \"edges\": {\"e\": "
        "{\"src\": \"a\", \"dst\": \"a\", \"count\": 2147483648, \"file\": \"edge.buys.npy\", "
        "\"columns\": {}}}}";
    const char *scratch = begin();
    RtError err;
    Patch p = {"schema.json", schema, strlen(schema)};
    CHECK(open_patched(&p, &err) == GNNC_E_SHAPE);
    CHECK_STR(err.text, "edge.buys.npy: size 3 in dimension 1, the schema says 2147483648");
    scratch_remove(scratch);
}

/* ---- 16 bits ---------------------------------------------------------------------------- */
static const char *low_schema(char *text, size_t cap, const char *column) {
    snprintf(text, cap,
             "{\"format\": 1, \"nodes\": {\"a\": {\"count\": 2, \"columns\": {\"x\": {%s}}}}}",
             column);
    return text;
}

static void low_file(RtDtype dt, int rank, const uint16_t *data) {
    char path[200];
    snprintf(path, sizeof path, "%s/low.npy", dir);
    RtArray a = {.dt = dt, .rank = rank, .shape = {2, 2}, .data = data};
    CHECK(rt_npy_save(NULL, path, &a, NULL) == GNNC_OK);
}

static void opens_low(const char *schema, float first, float last, bool mapped) {
    RtDataset *d;
    RtPool pool;
    const RtColumn *wide;
    RtError err = {""};
    RtFiles files = {
        .get = get, .user = &(Patch){"schema.json", schema, strlen(schema)}, .map_values = true};
    CHECK_MSG(rt_dataset_open_files(NULL, &files, &d, &err) == GNNC_OK, "%s", err.text);
    if (!d) return;
    const RtColumn *x = d->nodes->columns;
    rt_pool_init(&pool, NULL);
    CHECK(x->low && !x->f32 == mapped);
    CHECK(rt_column_as(&pool, NULL, x, RT_F32, &wide, &err) == GNNC_OK && (wide == x) == !mapped);
    CHECK(wide->f32[0] == first && wide->f32[x->rank > 1 ? 3 : 1] == last);
    RtColumn taken;
    CHECK(rt_column_take(&pool, x, (int32_t[]){1}, 1, &taken, NULL) == GNNC_OK);
    CHECK(mapped ? taken.low[1] == x->low[3] : taken.f32[0] == last);
    rt_pool_free(&pool);
    rt_dataset_close(d);
}

TEST(columns_in_sixteen_bits) {
    static const uint16_t ones[4] = {0x3f80, 0x4000, 0xbf80, 0x3f00},
                          half[4] = {0x3c00, 0x4000, 0, 0x7bff};
    char text[400];
    const char *scratch = begin();
    low_file(RT_DT_U16, 2, ones);
    low_schema(
        text, sizeof text,
        "\"kind\": \"float\", \"shape\": [2, 2], \"dtype\": \"bf16\", \"file\": \"low.npy\"");
    opens_low(text, 1, 0.5f, true);
    low_file(RT_DT_F16, 2, half);
    low_schema(text, sizeof text,
               "\"kind\": \"float\", \"shape\": [2, 2], \"dtype\": \"f16\", \"file\": \"low.npy\"");
    opens_low(text, 1, 65504, true);
    low_file(RT_DT_U16, 1, ones);
    low_schema(text, sizeof text,
               "\"kind\": \"float\", \"dtype\": \"bf16\", \"file\": \"low.npy\"");
    opens_low(text, 1, 2, false);
    scratch_remove(scratch);
}

enum { MANY = 300001 }; /* more than one member's share, and no whole number of pieces */

static gnnc_status converted(const RtAlloc *from, RtTeam *team, const RtColumn *c, rt_dtype t,
                             void *to) {
    RtPool pool;
    const RtColumn *y;
    rt_pool_init(&pool, from);
    gnnc_status st = rt_column_as(&pool, team, c, t, &y, NULL);
    if (st == GNNC_OK) {
        CHECK(rt_column_value_bytes(y) == (t == RT_F32 ? 4 : 2));
        memcpy(to, rt_column_values(y), (size_t)y->n_rows * rt_column_value_bytes(y));
    }
    rt_pool_free(&pool);
    return st;
}

/* Every type as every other, by one thread and by three: what the plain functions give. */
TEST(columns_are_converted_by_a_team) {
    static float f32[MANY], wide[MANY];
    static uint16_t bf16[MANY], f16[MANY], both[MANY], got[2][MANY];
    RtAlloc plain = rt_alloc_default();
    RtTeam *team;
    CHECK(rt_team_start(&team, &plain, 3, 2, NULL) == GNNC_OK);
    for (int i = 0; i < MANY; i++) f32[i] = (float)(i % 70001 - 35000) / 7;
    rt_from_f32(RT_BF16, bf16, f32, MANY);
    rt_from_f32(RT_F16, f16, f32, MANY);
    rt_to_f32(RT_BF16, wide, bf16, MANY);
    rt_from_f32(RT_F16, both, wide, MANY);
    RtColumn c = {COLUMN(FLOAT, MANY, "x"), .f32 = f32};
    RtColumn low = {COLUMN(FLOAT, MANY, "x"), .low = bf16, .low_dt = RT_DT_BF16};
    for (int k = 0; k < 2; k++) {
        RtTeam *who = k ? team : NULL;
        CHECK(converted(NULL, who, &c, RT_BF16, got[k]) == GNNC_OK);
        CHECK(!memcmp(got[k], bf16, sizeof bf16));
        CHECK(converted(NULL, who, &c, RT_F16, got[k]) == GNNC_OK);
        CHECK(!memcmp(got[k], f16, sizeof f16));
        CHECK(converted(NULL, who, &low, RT_F16, got[k]) == GNNC_OK);
        CHECK(!memcmp(got[k], both, sizeof both));
        CHECK(converted(NULL, who, &low, RT_F32, got) == GNNC_OK &&
              !memcmp(got, wide, sizeof wide));
    }
    gnnc_status st = GNNC_E_NOMEM;
    long n = 0;
    for (; st != GNNC_OK && n < 10; n++) {
        FailingAlloc f;
        RtAlloc from = failing(&f, n);
        st = converted(&from, team, &c, RT_F16, got[0]);
        CHECK((st == GNNC_OK || st == GNNC_E_NOMEM) && f.n_live == 0);
    }
    CHECK(st == GNNC_OK && n > 1);
    rt_team_stop(team);
}

/* What there is in the type that is asked for is not made again. */
TEST(columns_that_are_there_are_not_converted) {
    static const float f32[2] = {1, 2};
    static const uint16_t low[2] = {0x3f80, 0x4000};
    RtPool pool;
    const RtColumn *y;
    rt_pool_init(&pool, NULL);
    RtColumn c = {COLUMN(FLOAT, 2, "x"), .f32 = f32, .low = low, .low_dt = RT_DT_BF16};
    CHECK(rt_column_as(&pool, NULL, &c, RT_F32, &y, NULL) == GNNC_OK && y == &c);
    CHECK(rt_column_as(&pool, NULL, &c, RT_BF16, &y, NULL) == GNNC_OK);
    CHECK(y->low == low && !y->f32);
    c.f32 = NULL;
    CHECK(rt_column_as(&pool, NULL, &c, RT_BF16, &y, NULL) == GNNC_OK && y == &c);
    RtColumn label = {COLUMN(CLASS, 4, "y"), .i32 = LABEL};
    CHECK(rt_column_as(&pool, NULL, &label, RT_BF16, &y, NULL) == GNNC_OK && y == &label);
    rt_pool_free(&pool);
}

TEST(broken_columns_in_sixteen_bits) {
    static const struct {
        const char *column;
        RtDtype dt;
        uint16_t last;
        gnnc_status status;
        const char *message;
    } bad[] = {
        {"\"kind\": \"float\", \"dtype\": \"bf16\"", RT_DT_F16, 0, GNNC_E_DTYPE,
         "low.npy: holds F16, U16 wanted for a dtype of bf16"},
        {"\"kind\": \"float\", \"dtype\": \"f16\"", RT_DT_U16, 0, GNNC_E_DTYPE,
         "low.npy: holds U16, F16 wanted for a dtype of f16"},
        {"\"kind\": \"float\", \"dtype\": \"f8\"", RT_DT_U16, 0, GNNC_E_FORMAT,
         "schema.json:1: a.x: 'dtype' must be \"bf16\" or \"f16\""},
        {"\"kind\": \"float\", \"dtype\": 16", RT_DT_U16, 0, GNNC_E_FORMAT,
         "schema.json:1: a.x: 'dtype' must be \"bf16\" or \"f16\""},
        {"\"kind\": \"multilabel\", \"dtype\": \"bf16\"", RT_DT_U16, 0, GNNC_E_FORMAT,
         "schema.json:1: a.x: only a float column has a 'dtype'"},
        {"\"kind\": \"float\", \"dtype\": \"bf16\"", RT_DT_U16, 0x7f80, GNNC_E_VALUE,
         "a.x: row 1: value is infinite"},
        {"\"kind\": \"float\", \"dtype\": \"bf16\"", RT_DT_U16, 0xffc0, GNNC_E_VALUE,
         "a.x: row 1: value is NaN"},
        {"\"kind\": \"float\", \"dtype\": \"f16\"", RT_DT_F16, 0xfc00, GNNC_E_VALUE,
         "a.x: row 1: value is infinite"},
        {"\"kind\": \"float\", \"dtype\": \"f16\"", RT_DT_F16, 0x7e00, GNNC_E_VALUE,
         "a.x: row 1: value is NaN"},
    };
    const char *scratch = begin();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[400], column[200];
        RtError err;
        low_file(bad[i].dt, 2, (uint16_t[]){0, 0, 0, bad[i].last});
        snprintf(column, sizeof column, "%s, \"shape\": [2, 2], \"file\": \"low.npy\"",
                 bad[i].column);
        low_schema(text, sizeof text, column);
        CHECK(open_patched(&(Patch){"schema.json", text, strlen(text)}, &err) == bad[i].status);
        CHECK_STR(err.text, bad[i].message);
    }
    scratch_remove(scratch);
}

TEST(masks_instead_of_codes) {
    static const char schema[] =
        "{\"format\": 1, \"nodes\": {\"a\": {\"count\": 4, \"columns\": {\"s\": {\"kind\": "
        "\"split\", "
        "\"train\": \"node.user.city.npy\", \"val\": \"none.npy\", \"test\": \"none.npy\"}}}}}";
    const char *scratch = begin();
    char path[200];
    RtDataset *d;
    RtError err;
    snprintf(path, sizeof path, "%s/none.npy", dir);
    RtArray none = {.dt = RT_DT_BOOL, .rank = 1, .shape = {4}, .data = (uint8_t[]){1, 0, 0, 0}};
    CHECK(rt_npy_save(NULL, path, &none, NULL) == GNNC_OK);
    CHECK(open_patched(&(Patch){"schema.json", schema, strlen(schema)}, &err) == GNNC_E_RANGE);
    CHECK_STR(err.text, "none.npy: row 0 is in two parts of split 0"); /* val and test */
    none.data = (uint8_t[]){0, 0, 0, 0};
    CHECK(rt_npy_save(NULL, path, &none, NULL) == GNNC_OK);
    RtFiles files = {
        .get = get, .user = &(Patch){"schema.json", schema, strlen(schema)}, .map_values = true};
    CHECK(rt_dataset_open_files(NULL, &files, &d, NULL) == GNNC_OK);
    const int8_t want[4] = {0, 1, 1, 0};
    CHECK(d && !memcmp(d->nodes->columns->splits, want, 4));
    rt_dataset_close(d);
    scratch_remove(scratch);
}

TEST(missing_files_are_named) {
    RtDataset *d = (RtDataset *)1;
    RtError err = {""};
    CHECK(rt_dataset_open(NULL, "/nowhere/data", true, &d, &err) == GNNC_E_IO);
    CHECK_STR(err.text, "/nowhere/data/schema.json: cannot open: No such file or directory");
    CHECK(d == NULL);
    err = (RtError){""};
    CHECK(rt_dataset_open(NULL, "tests/fixtures", true, &d, &err) == GNNC_E_IO);
    CHECK_STR(err.text,
              "tests/fixtures: no data directory, it has no schema.json: 'gnnc import' makes one");
    const char *scratch = begin();
    char path[200];
    snprintf(path, sizeof path, "%s/node.user.y.npy", dir);
    unlink(path);
    err = (RtError){""};
    CHECK(rt_dataset_open(NULL, dir, true, &d, &err) == GNNC_E_IO);
    CHECK_MSG(strstr(err.text, "/shop/node.user.y.npy: cannot open"), "%s", err.text);
    mkdir(path, 0777);
    err = (RtError){""};
    CHECK(rt_dataset_open(NULL, dir, true, &d, &err) == GNNC_E_IO);
    CHECK_MSG(strstr(err.text, "not a regular file"), "%s", err.text);
    scratch_remove(scratch);
}

TEST(every_failed_allocation_is_survived) {
    const char *scratch = begin();
    gnnc_status st = GNNC_E_NOMEM;
    for (long k = 0; st != GNNC_OK && k < 2000; k++) {
        FailingAlloc f;
        RtDataset *d;
        RtError err = {""};
        RtAlloc from = failing(&f, k);
        st = rt_dataset_open(&from, dir, true, &d, &err);
        CHECK(st == GNNC_OK || (st == GNNC_E_NOMEM && !d && err.text[0]));
        rt_dataset_close(d);
        CHECK(f.n_live == 0);
    }
    CHECK(st == GNNC_OK);
    scratch_remove(dir);
    st = GNNC_E_NOMEM;
    for (long k = 0; st != GNNC_OK && k < 2000; k++) {
        FailingAlloc f;
        RtAlloc from = failing(&f, k);
        st = write_sample(&from, false, NULL);
        CHECK(f.n_live == 0);
        CHECK(count_entries(scratch) == (st == GNNC_OK)); /* whole or not there */
    }
    CHECK(st == GNNC_OK);
    scratch_remove(scratch);
}

TEST(cora_opens) {
    RtDataset *d;
    RtError err = {""};
    if (access("models/data/cora/schema.json", R_OK) != 0) return; /* not run from the root */
    CHECK_MSG(rt_dataset_open(NULL, "models/data/cora", true, &d, &err) == GNNC_OK, "%s", err.text);
    if (!d) return;
    const RtTable *paper = rt_dataset_nodes(d, "paper"), *cites = rt_dataset_edges(d, "cites");
    CHECK(paper && paper->count == 2708 && cites && cites->count == 10556);
    const RtColumn *x = rt_table_column(paper, "x");
    CHECK(x && x->csr.nnz == 49216 && x->csr.n_cols == 1433);
    for (int64_t r = 0; x && r < paper->count; r++) {
        double sum = 0;
        for (int64_t e = x->csr.ptr[r]; e < x->csr.ptr[r + 1]; e++) sum += x->csr.val[e];
        CHECK(fabs(sum - 1) < 1e-5);
    }
    rt_dataset_close(d);
}

TEST_MAIN()
