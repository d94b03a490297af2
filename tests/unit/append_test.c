/* Rows that are appended to a committed graph: every kind of column, what is refused, whose memory
 * it is. */
#include "append_util.h"

#include <math.h>

#include "gnnc_dlpack.h"

/* ---- kinds -------- */
static gnnc_status all_kinds(gnnc_graph *g, int64_t n) {
    static const char *const names[] = {"red", "green", "blue"};
    static const float real[] = {0, 1, NAN, 1};
    static const double when[] = {1, NAN, 3, 4};
    static const int64_t id[] = {-5, 7, 8, 9}, ptr[] = {0, 2, 2, 3, 3};
    static const int32_t code[] = {2, 0, 1, 2}, col[] = {0, 3, 1};
    static const float val[] = {1, 2, 3};
    static const int8_t split[] = {1, 2, 3, 0, 3, 1, 2, 0};
    static const uint16_t low[] = {0x3f80, 0x4000, 0x4040, 0x4080, 0, 0, 0x3f80, 0x3f80};
    int8_t part[8];
    for (int k = 0; k < 2; k++) memcpy(part + k * n, split + k * 4, (size_t)n);
    gnnc_array r = array_of(GNNC_DT_F32, 1, n, 0, real), t = array_of(GNNC_DT_F64, 1, n, 0, when),
               i = array_of(GNNC_DT_I64, 1, n, 0, id), c = array_of(GNNC_DT_I32, 1, n, 0, code),
               s = array_of(GNNC_DT_I8, 2, 2, n, part), l = array_of(GNNC_DT_BF16, 2, n, 2, low),
               l1 = array_of(GNNC_DT_BF16, 1, n, 0, low),
               p = array_of(GNNC_DT_I64, 1, n + 1, 0, ptr),
               k = array_of(GNNC_DT_I32, 1, ptr[n], 0, col),
               w = array_of(GNNC_DT_F32, 1, ptr[n], 0, val);
    gnnc_status st;
    TRY(st, gnnc_graph_add_nodes(g, "a", n));
    TRY(st, gnnc_graph_add_column(g, "a", "low", GNNC_COL_FLOAT, &l, -1, NULL));
    TRY(st, gnnc_graph_add_column(g, "a", "low1", GNNC_COL_FLOAT, &l1, -1, NULL));
    TRY(st, gnnc_graph_add_column(g, "a", "time", GNNC_COL_TIME, &t, -1, NULL));
    TRY(st, gnnc_graph_add_column(g, "a", "id", GNNC_COL_ID, &i, -1, NULL));
    TRY(st, gnnc_graph_add_column(g, "a", "cat", GNNC_COL_CAT, &c, 3, names));
    TRY(st, gnnc_graph_add_column(g, "a", "y", GNNC_COL_CLASS, &r, 2, NULL));
    TRY(st, gnnc_graph_add_column(g, "a", "m", GNNC_COL_MULTILABEL, &r, -1, NULL));
    TRY(st, gnnc_graph_add_csr(g, "a", "csr", 4, &p, &k, &w));
    TRY(st, gnnc_graph_add_column(g, "a", "split", GNNC_COL_SPLIT, &s, -1, NULL));
    st = gnnc_graph_commit(g);
out:
    return st;
}

/* Rows 2 and 3 of all_kinds: the categories by names of their own. */
static gnnc_status append_kinds(gnnc_graph *g, bool labels, gnnc_rows *out) {
    static const char *const names[] = {"blue", "unused", "green"};
    static const float real[] = {NAN, 1};
    static const double when[] = {3, 4};
    static const int64_t whole[] = {8, 9};
    static const uint8_t code[] = {2, 0};
    static const int32_t ptr[] = {0, 1, 1};
    static const int64_t col[] = {1};
    static const double val[] = {3};
    static const int64_t split[] = {3, 0, 2, 0};
    static const uint16_t low[] = {0, 0, 0x3f80, 0x3f80}, low1[] = {0x4040, 0x4080};
    gnnc_array a[] = {array_of(GNNC_DT_BF16, 2, 2, 2, low), array_of(GNNC_DT_BF16, 1, 2, 0, low1),
                      array_of(GNNC_DT_F64, 1, 2, 0, when), array_of(GNNC_DT_I64, 1, 2, 0, whole),
                      array_of(GNNC_DT_U8, 1, 2, 0, code),  array_of(GNNC_DT_F64, 1, 1, 0, val),
                      array_of(GNNC_DT_I32, 1, 3, 0, ptr),  array_of(GNNC_DT_I64, 1, 1, 0, col),
                      array_of(GNNC_DT_F32, 1, 2, 0, real), array_of(GNNC_DT_F32, 1, 2, 0, real),
                      array_of(GNNC_DT_I64, 2, 2, 2, split)};
    gnnc_values v[] = {
        values_of("low", &a[0]), values_of("low1", &a[1]), values_of("time", &a[2]),
        values_of("id", &a[3]),  values_of("cat", &a[4]),  values_of("csr", &a[5]),
        values_of("y", &a[8]),   values_of("m", &a[9]),    values_of("split", &a[10])};
    v[4].names = names, v[4].n_categories = 3;
    v[5].ptr = &a[6], v[5].idx = &a[7];
    *out = rows_of("a", 2, labels ? 9 : 6, v);
    gnnc_status st = gnnc_graph_append(g, out);
    out->columns = NULL;
    return st;
}

static void same_values(const RtColumn *a, const RtColumn *b) {
    size_t n = (size_t)(a->n_rows * rt_column_width(a));
    bool ok = a->n_rows == b->n_rows && a->rank == b->rank && a->n_splits == b->n_splits &&
              a->n_categories == b->n_categories && !a->low == !b->low && !a->values == !b->values;
    CHECK_MSG(ok, "%s", a->name);
    if (!ok) return;
    switch (rt_column_kind(a->kind)->layout) {
    case RT_LAYOUT_CSR:
        ok = a->csr.nnz == b->csr.nnz && a->csr.n_rows == b->csr.n_rows &&
             !memcmp(a->csr.ptr, b->csr.ptr, (size_t)(a->n_rows + 1) * 8) &&
             !memcmp(a->csr.col, b->csr.col, (size_t)a->csr.nnz * 4) &&
             !memcmp(a->csr.val, b->csr.val, (size_t)a->csr.nnz * 4);
        break;
    case RT_LAYOUT_SPLITS:
        ok = !memcmp(a->splits, b->splits, n * (size_t)a->n_splits);
        break;
    case RT_LAYOUT_ROWS:
        ok = !a->low || !memcmp(a->low, b->low, n * sizeof *a->low);
        for (size_t i = 0; a->values && i < n && ok; i++) /* NaN has more than one pattern */
            ok = a->kind == RT_COL_MULTILABEL
                     ? a->f32[i] == b->f32[i] || (isnan(a->f32[i]) && isnan(b->f32[i]))
                     : !memcmp((const char *)a->values + i * rt_column_value_bytes(a),
                               (const char *)b->values + i * rt_column_value_bytes(b),
                               rt_column_value_bytes(a));
        break;
    }
    CHECK_MSG(ok, "%s differs", a->name);
}

TEST(every_kind_of_column) {
    gnnc_graph *whole = graph_new(), *g = graph_new();
    gnnc_rows r;
    OK(whole, all_kinds(whole, 4));
    OK(g, all_kinds(g, 2));
    CHECK_MSG(append_kinds(g, true, &r) == GNNC_OK, "%s", r.error);
    CHECK(r.first == 2);
    OK(g, gnnc_graph_commit(g));
    const RtTable *t = &g->newest->data->nodes[0];
    for (int k = 0; k < t->n_columns; k++)
        same_values(&t->columns[k], column_of(whole, "a", t->columns[k].name));
    CHECK_MSG(append_kinds(g, false, &r) == GNNC_OK, "%s", r.error);
    OK(g, gnnc_graph_commit(g));
    CHECK(newest(g, "a", "y")->i32[4] == -1 && newest(g, "a", "y")->i32[5] == -1);
    CHECK(isnan(newest(g, "a", "m")->f32[5]) && newest(g, "a", "m")->f32[3] == 1);
    static const int8_t splits[] = {1, 2, 3, 0, 0, 0, 3, 1, 2, 0, 0, 0};
    CHECK(!memcmp(newest(g, "a", "split")->splits, splits, sizeof splits));
    gnnc_column_info c = {.struct_size = sizeof c};
    CHECK(gnnc_graph_column_info(g, 0, 7, &c) == GNNC_OK && c.n_entries == 3 + 1);
    CHECK(gnnc_graph_column_info(g, 0, 4, &c) == GNNC_OK && c.shape[0] == 6);
    CHECK_STR(c.names[2], "blue");
    gnnc_graph_release(whole);
    gnnc_graph_release(g);
}

/* 16 bits are no less in a column of f32; a column of 16 bits takes no other numbers. */
TEST(numbers_are_not_rounded) {
    static const uint16_t bf16[] = {0x3f80, 0x4000};
    static const float f32[] = {1.5f, 0.1f};
    gnnc_graph *g = graph_new();
    gnnc_array low = array_of(GNNC_DT_BF16, 2, 1, 2, bf16),
               wide = array_of(GNNC_DT_F32, 2, 1, 2, f32);
    OK(g, gnnc_graph_add_nodes(g, "a", 1));
    OK(g, gnnc_graph_add_nodes(g, "b", 1));
    OK(g, gnnc_graph_add_column(g, "a", "x", GNNC_COL_FLOAT, &low, -1, NULL));
    OK(g, gnnc_graph_add_column(g, "b", "x", GNNC_COL_FLOAT, &wide, -1, NULL));
    OK(g, gnnc_graph_commit(g));
    gnnc_values a = values_of("x", &wide), b = values_of("x", &low);
    gnnc_rows r = rows_of("a", 1, 1, &a), s = rows_of("b", 1, 1, &b);
    CHECK(gnnc_graph_append(g, &r) == GNNC_E_DTYPE && r.first == -1);
    CHECK_STR(r.error, "a.x: holds F32, the column BF16");
    APPEND(g, &s);
    OK(g, gnnc_graph_commit(g));
    CHECK(newest(g, "b", "x")->f32[0] == 1.5f && newest(g, "b", "x")->f32[3] == 2);
    CHECK(!newest(g, "b", "x")->low && newest(g, "a", "x")->low == column_of(g, "a", "x")->low);
    gnnc_graph_release(g);
}

/* ---- what is refused -------- */
/* Nothing is in the log, every array goes back once, and the next good call does well. */
static void refuse(Good *k, gnnc_rows *r, gnnc_status want, const char *text) {
    int arrays = r->n_columns + (r->src != NULL) + (r->dst != NULL);
    gnnc_status st = gnnc_graph_append(k->g, r);
    CHECK_MSG(st == want, "%s: %d, %s", text, st, r->error);
    CHECK_STR(r->error, text);
    CHECK_MSG(r->first == -1 && k->n_done == arrays, "%s: %d of %d are back", text, k->n_done,
              arrays);
    for (int i = 0; i < 2; i++) CHECK(!k->g->tail[i].first && k->g->tail[i].count == 3);
    gnnc_graph_release(k->g);
    good(k);
}

TEST(every_refusal_of_rows_has_its_name) {
    static const float nan_row[] = {0, 1, 2, NAN}, half[] = {0, 0.5f};
    static const int64_t far[] = {5, 1 << 20}, high[] = {0, 2}, less[] = {0, -1};
    static const char *const names[] = {"blue", "grey"};
    Good k;
    good(&k);
    k.nodes.table = "b";
    refuse(&k, &k.nodes, GNNC_E_MISSING, "there is no table 'b'");
    k.nodes.table = NULL;
    refuse(&k, &k.nodes, GNNC_E_ARG, "the name of the table is NULL");
    k.nodes.table = "whole";
    refuse(&k, &k.nodes, GNNC_E_ARG, "whole: nodes and edges are appended, not graphs");
    k.nodes.table = "e";
    refuse(&k, &k.nodes, GNNC_E_ARG, "e: edges have sources and destinations");
    k.edges.table = "a";
    refuse(&k, &k.edges, GNNC_E_ARG, "a: nodes have no sources and destinations");
    k.nodes.count = -1;
    refuse(&k, &k.nodes, GNNC_E_RANGE, "a: -1 rows: 0 to 2^31 - 1 are possible");
    k.nodes.count = 3;
    refuse(&k, &k.nodes, GNNC_E_SHAPE, "a.x: size 2 in dimension 0, 3 wanted");
    k.src.data = k.dst.data = high;
    k.edges.count = 1;
    refuse(&k, &k.edges, GNNC_E_SHAPE, "e: 2 edges, and their count is 1");
    k.nodes.n_columns = 1;
    refuse(&k, &k.nodes, GNNC_E_MISSING, "a.c: the new rows lack this column");
    k.v[1].column = "d";
    refuse(&k, &k.nodes, GNNC_E_MISSING, "a: there is no column 'd'");
    k.v[1].column = NULL;
    refuse(&k, &k.nodes, GNNC_E_ARG, "a: a column has no name");
    k.v[1] = k.v[0];
    refuse(&k, &k.nodes, GNNC_E_ARG, "a.x: given twice");
    k.x.shape[1] = 1;
    refuse(&k, &k.nodes, GNNC_E_SHAPE, "a.x: size 1 in dimension 1, 2 wanted");
    k.x.rank = 1;
    refuse(&k, &k.nodes, GNNC_E_SHAPE, "a.x: 1 dimensions, 2 wanted");
    k.x.data = nan_row;
    refuse(&k, &k.nodes, GNNC_E_VALUE, "a.x: row 1: value is NaN");
    k.c.data = high;
    refuse(&k, &k.nodes, GNNC_E_RANGE, "a.c: row 1: 2 is no category of 2");
    k.c.data = less;
    refuse(&k, &k.nodes, GNNC_E_RANGE, "a.c: row 1: -1 is no category of 2");
    k.c.data = half, k.c.dtype = GNNC_DT_F32;
    refuse(&k, &k.nodes, GNNC_E_VALUE, "a.c: row 1: 0.5 is no category");
    k.v[1].names = names, k.v[1].n_categories = 2;
    refuse(&k, &k.nodes, GNNC_E_RANGE,
           "a.c: row 0: 'grey' is no category of the column, which has 2");
    k.c.dtype = 99;
    refuse(&k, &k.nodes, GNNC_E_DTYPE, "a.c: 99 is no element type");
    k.edges.src = &k.w;
    refuse(&k, &k.edges, GNNC_E_DTYPE, "e: sources: holds F32, integers wanted");
    refuse(&k, &k.edges, GNNC_E_RANGE, "e: edge 0: source 3 is no 'a' node: there are 3");
    k.dst.data = far;
    k.src.data = high;
    refuse(&k, &k.edges, GNNC_E_RANGE, "e: edge 0: destination 5 is no 'a' node: there are 3");
    k.src.shape[0] = 1;
    refuse(&k, &k.edges, GNNC_E_SHAPE, "e: sources: size 1 in dimension 0, 2 wanted");
    k.src.data = k.dst.data = high;
    k.edges.n_columns = 0;
    refuse(&k, &k.edges, GNNC_E_MISSING, "e.w: the new rows lack this column");
    gnnc_graph_release(k.g);
}

TEST(calls_that_are_none) {
    Good k;
    good(&k);
    CHECK_STR(gnnc_graph_error(k.g), ""); /* its commit went well */
    CHECK(gnnc_graph_add_nodes(k.g, "b", 1) == GNNC_E_STATE);
    CHECK(strstr(gnnc_graph_error(k.g), "the graph is committed"));
    k.v[0].struct_size = 8;
    CHECK(gnnc_graph_append(k.g, &k.nodes) == GNNC_E_ARG && k.n_done == 0);
    CHECK_STR(k.nodes.error, "struct_size of the gnnc_values is 8: set it to sizeof(gnnc_values)");
    k.v[0].struct_size = sizeof k.v[0];
    k.v[1].struct_size = 8;
    CHECK(gnnc_graph_append(k.g, &k.nodes) == GNNC_E_ARG && k.n_done == 1); /* x is read */
    k.v[1].struct_size = sizeof k.v[1];
    k.n_done = 0;
    CHECK(gnnc_graph_append(NULL, &k.nodes) == GNNC_E_ARG && k.n_done == 2);
    CHECK(gnnc_graph_append(k.g, NULL) == GNNC_E_ARG);
    k.nodes.n_columns = -1;
    CHECK(gnnc_graph_append(k.g, &k.nodes) == GNNC_E_ARG && k.n_done == 2);
    k.nodes.n_columns = 2;
    k.nodes.struct_size = 16;
    CHECK(gnnc_graph_append(k.g, &k.nodes) == GNNC_E_ARG && k.n_done == 2);
    k.nodes.struct_size = sizeof k.nodes;
    gnnc_graph *g = graph_new();
    OK(g, gnnc_graph_add_nodes(g, "a", 3));
    CHECK(gnnc_graph_append(g, &k.nodes) == GNNC_E_STATE && k.n_done == 4);
    CHECK(strstr(k.nodes.error, "not committed"));
    gnnc_graph_release(g);
    k.nodes.count = 0;
    k.x.shape[0] = k.c.shape[0] = 0;
    APPEND(k.g, &k.nodes); /* no row is no mistake */
    OK(k.g, gnnc_graph_commit(k.g));
    CHECK(k.nodes.first == 3 && rows_in(k.g, "a") == 3);
    k.g->tail[0].count = INT32_MAX - 1;
    k.nodes.count = k.x.shape[0] = k.c.shape[0] = 2;
    CHECK(gnnc_graph_append(k.g, &k.nodes) == GNNC_E_RANGE);
    CHECK_STR(k.nodes.error, "a: 1 more rows than 2^31 - 1");
    gnnc_graph_release(k.g);
}

static void deleted(DLManagedTensorVersioned *t) {
    ++*(int *)t->manager_ctx;
}

TEST(dlpack_tensors_are_appended) {
    Good k;
    float x[] = {5, 6, 7, 8};
    int64_t shape[] = {2, 2};
    int n = 0;
    good(&k);
    DLManagedTensorVersioned t = {.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
                                  .manager_ctx = &n,
                                  .deleter = deleted,
                                  .dl_tensor = {.data = x,
                                                .device = {kDLCPU, 0},
                                                .ndim = 2,
                                                .dtype = {kDLFloat, 32, 1},
                                                .shape = shape}};
    k.x = (gnnc_array){.struct_size = sizeof k.x};
    CHECK(gnnc_graph_array_dlpack(k.g, &t, &k.x) == GNNC_OK);
    APPEND(k.g, &k.nodes);
    CHECK(n == 1);
    t.dl_tensor.device.device_type = kDLCUDA;
    CHECK(gnnc_graph_array_dlpack(k.g, &t, &k.x) == GNNC_E_ARG && n == 2);
    CHECK(gnnc_graph_array_dlpack(k.g, NULL, &k.x) == GNNC_E_ARG);
    CHECK(gnnc_graph_array_dlpack(k.g, &t, NULL) == GNNC_E_ARG && n == 3);
    OK(k.g, gnnc_graph_commit(k.g));
    CHECK(newest(k.g, "a", "x")->f32[9] == 8);
    gnnc_graph_release(k.g);
}

TEST(nodes_of_graphs_are_not_appended_to) {
    static const int32_t ptr[] = {0, 2};
    gnnc_graph *g = graph_new();
    gnnc_array p = array_of(GNNC_DT_I32, 1, 2, 0, ptr);
    OK(g, gnnc_graph_add_nodes(g, "atom", 2));
    OK(g, gnnc_graph_add_graphs(g, "molecule", 1));
    OK(g, gnnc_graph_divide(g, "atom", "molecule", &p));
    OK(g, gnnc_graph_commit(g));
    gnnc_rows r = rows_of("atom", 1, 0, NULL);
    CHECK(gnnc_graph_append(g, &r) == GNNC_E_ARG);
    CHECK_STR(r.error, "atom: nodes that are divided into graphs are not appended to");
    gnnc_graph_release(g);
}

/* A directory may call edges as their nodes. */
TEST(edges_with_the_name_of_their_nodes_are_appended) {
    static const char schema[] =
        "{\"format\": 1, \"nodes\": {\"n\": {\"count\": 40, \"columns\": {}}},"
        "\"edges\": {\"n\": {\"count\": 160, \"src\": \"n\", \"dst\": \"n\", \"file\": \"e.npy\","
        "\"columns\": {\"w\": {\"kind\": \"float\", \"shape\": [160], \"file\": \"w.npy\"}}}}}";
    static const int32_t from[] = {0}, to[] = {40};
    static const float w[] = {7};
    gnnc_array src = array_of(GNNC_DT_I32, 1, 1, 0, from), dst = array_of(GNNC_DT_I32, 1, 1, 0, to),
               a = array_of(GNNC_DT_F32, 1, 1, 0, w);
    gnnc_values v = values_of("w", &a);
    gnnc_rows node = rows_of("n", 1, 0, NULL), edge = rows_of("n", 1, 1, &v);
    edge.src = &src, edge.dst = &dst;
    const char *dir = scratch_new();
    make_data(dir);
    write_text(dir, "schema.json", schema);
    gnnc_graph *g = graph_new();
    OK(g, gnnc_graph_read(g, dir, 0));
    OK(g, gnnc_graph_commit(g));
    CHECK(gnnc_graph_append(g, &edge) == GNNC_E_RANGE);
    CHECK_STR(edge.error, "n: edge 0: destination 40 is no 'n' node: there are 40");
    APPEND(g, &node);
    APPEND(g, &edge);
    OK(g, gnnc_graph_commit(g));
    const RtDataset *d = g->newest->data;
    CHECK(node.first == 40 && d->nodes[0].count == 41);
    CHECK(edge.first == 160 && d->edges[0].count == 161 && d->edges[0].dst[160] == 40);
    CHECK(rt_table_column(&d->edges[0], "w")->f32[160] == 7);
    gnnc_graph_release(g);
    scratch_remove(dir);
}

typedef struct {
    FailingAlloc f;
    size_t n_bytes;
} Counted;

static void *counted_alloc(void *user, size_t n) {
    Counted *c = user;
    c->n_bytes += n;
    return failing_alloc(&c->f, n);
}

static void counted_release(void *user, void *p) {
    failing_release(&((Counted *)user)->f, p);
}

enum { MANY = 20000 };

/* A column of MANY named categories, and a row whose category has the name of the last one. */
static gnnc_status append_named(gnnc_graph *g) {
    static const char *const last = "19999";
    static const int32_t zero = 0;
    gnnc_array a = array_of(GNNC_DT_I32, 1, 1, 0, &zero);
    gnnc_values v = values_of("c", &a);
    v.names = &last, v.n_categories = 1;
    gnnc_rows r = rows_of("a", 1, 1, &v);
    return gnnc_graph_append(g, &r);
}

static gnnc_graph *many_names(Counted *c) {
    static char text[MANY][12];
    static const char *names[MANY];
    static const int32_t zero = 0;
    for (int i = 0; i < MANY; i++) {
        snprintf(text[i], sizeof text[i], "%d", i);
        names[i] = text[i];
    }
    gnnc_graph *g = NULL;
    gnnc_array a = array_of(GNNC_DT_I32, 1, 1, 0, &zero);
    *c = (Counted){.f = {.fail_at = -1}};
    CHECK(gnnc_graph_create_with(&g, counted_alloc, counted_release, c) == GNNC_OK);
    OK(g, gnnc_graph_add_nodes(g, "a", 1));
    OK(g, gnnc_graph_add_column(g, "a", "c", GNNC_COL_CAT, &a, MANY, names));
    OK(g, gnnc_graph_commit(g));
    return g;
}

/* A row by name costs a row, not all names of its column. */
TEST(a_columns_names_are_hashed_once) {
    Counted c;
    gnnc_graph *g = many_names(&c);
    for (int i = 0; i < 3; i++) {
        size_t before = c.n_bytes;
        CHECK(append_named(g) == GNNC_OK);
        CHECK_MSG(i == 0 || c.n_bytes - before < MANY * sizeof(char *), "%zu bytes",
                  c.n_bytes - before);
    }
    OK(g, gnnc_graph_commit(g));
    CHECK(newest(g, "a", "c")->i32[1] == MANY - 1 && newest(g, "a", "c")->i32[3] == MANY - 1);
    gnnc_graph_release(g);
    CHECK(c.f.n_live == 0);
}

TEST(names_survive_every_failing_allocation) {
    bool failed = true;
    long n = 0;
    for (; failed && n < 100; n++) {
        Counted c;
        gnnc_graph *g = many_names(&c);
        c.f.fail_at = c.f.n_calls + n;
        gnnc_status st = append_named(g);
        failed = st != GNNC_OK;
        CHECK(!failed || st == GNNC_E_NOMEM);
        c.f.fail_at = -1;
        if (failed) CHECK(append_named(g) == GNNC_OK);
        gnnc_graph_release(g);
        CHECK_MSG(c.f.n_live == 0, "allocation %ld: %ld blocks leak", n, c.f.n_live);
    }
    CHECK(n > 4 && n < 100);
}

TEST_MAIN()
