/* Zip archives and the one-graph .npz forms, whole and hostile. */
#include "test.h"

#include "runtime/import/import.h"
#include "runtime/import/zip.h"
#include "rt_test_util.h"
#include "zip_util.h"

static const int32_t EDGES[6] = {0, 1, 3, 1, 2, 0}; /* 0->1, 1->2, 3->0 */
static const int32_t Y[4] = {1, -1, 0, 1}, TRAIN[2] = {0, 3}, VAL[1] = {2}, NONE[1] = {0};
static const int64_t FOUR = 4, SHAPE[2] = {4, 5};
static const int32_t PTR[5] = {0, 2, 2, 3, 3}, COL[3] = {1, 4, 0};
static const float VALUES[3] = {1, 3, 5}, DENSE[8] = {1, 3, 0, 0, 2, 2, 5, 0};

static gnnc_status import(const Zip *z, RtImport *how, RtDataset **d, RtError *err) {
    *err = (RtError){""};
    return rt_import_npz_bytes(NULL, (RtBytes){z->bytes, z->n}, "g.npz", how, d, err);
}

static void add_graph(Zip *z) {
    zip_add_npy(z, "edge_index", "<i4", "(2, 3)", EDGES, sizeof EDGES);
    zip_add_npy(z, "num_nodes", "<i8", "()", &FOUR, 8);
}

static void add_csr(Zip *z) {
    zip_add_npy(z, "x_indptr", "<i4", "(5,)", PTR, sizeof PTR);
    zip_add_npy(z, "x_indices", "<i4", "(3,)", COL, sizeof COL);
    zip_add_npy(z, "x_data", "<f4", "(3,)", VALUES, sizeof VALUES);
    zip_add_npy(z, "x_shape", "<i8", "(2,)", SHAPE, sizeof SHAPE);
}

static void add_labels(Zip *z) {
    zip_add_npy(z, "y", "<i4", "(4,)", Y, sizeof Y);
    zip_add_npy(z, "train_idx", "<i4", "(2,)", TRAIN, sizeof TRAIN);
    zip_add_npy(z, "val_idx", "<i4", "(1,)", VAL, sizeof VAL);
    zip_add_npy(z, "test_idx", "<i4", "(0,)", NONE, 0);
}

TEST(sparse_features_and_index_split) {
    Zip z = {0};
    RtDataset *d;
    RtError err;
    RtImport how = {.node = "paper", .edge = "cites", .normalize_rows = true};
    add_graph(&z), add_csr(&z), add_labels(&z), zip_end(&z);
    CHECK_MSG(import(&z, &how, &d, &err) == GNNC_OK, "%s", err.text);
    if (!d) return;
    CHECK_STR(d->nodes->name, "paper");
    CHECK_STR(d->edges->name, "cites");
    CHECK(d->nodes->count == 4 && d->edges->count == 3 && d->edges->src[2] == 3);
    const RtColumn *x = rt_table_column(d->nodes, "x");
    CHECK(x && x->csr.nnz == 3 && x->csr.val[0] == 0.25f && x->csr.val[1] == 0.75f);
    CHECK(x && x->csr.val[2] == 1);
    const RtColumn *y = rt_table_column(d->nodes, "y");
    CHECK(y && y->n_categories == 2 && y->i32[1] == -1);
    const RtColumn *s = rt_table_column(d->nodes, "split");
    CHECK(s && !memcmp(s->splits, (int8_t[]){1, 0, 2, 1}, 4));
    rt_dataset_close(d);
}

TEST(dense_features_and_masks) {
    Zip z = {0};
    RtDataset *d;
    RtError err;
    RtImport how = {.normalize_rows = true};
    const uint8_t train[8] = {1, 0, 0, 0, 0, 1, 0, 0}, val[8] = {0, 1, 0, 0, 0, 0, 0, 1};
    const uint8_t test[8] = {0, 0, 1, 0, 1, 0, 0, 0};
    add_graph(&z);
    zip_add_npy(&z, "x", "<f4", "(4, 2)", DENSE, sizeof DENSE);
    zip_add_npy(&z, "train_masks", "|b1", "(2, 4)", train, 8);
    zip_add_npy(&z, "val_masks", "|b1", "(2, 4)", val, 8);
    zip_add_npy(&z, "test_masks", "|b1", "(2, 4)", test, 8);
    zip_end(&z);
    CHECK_MSG(import(&z, &how, &d, &err) == GNNC_OK, "%s", err.text);
    if (!d) return;
    const RtColumn *x = rt_table_column(d->nodes, "x"), *s = rt_table_column(d->nodes, "split");
    CHECK(x && x->f32[0] == 0.25f && x->f32[2] == 0 && x->f32[6] == 1); /* zero rows stay */
    CHECK(s && s->n_splits == 2 && !memcmp(s->splits, (int8_t[]){1, 2, 3, 0, 3, 1, 0, 2}, 8));
    rt_dataset_close(d);
}

/* As PyTorch Geometric calls them: [rows], or [rows, splits]. */
TEST(masks_of_rows_are_a_split) {
    static const uint8_t train[8] = {1, 0, 0, 0, 0, 1, 0, 0}, val[8] = {0, 1, 0, 0, 0, 0, 0, 1};
    static const uint8_t test[8] = {0, 0, 1, 0, 1, 0, 0, 0};
    for (int wide = 0; wide < 2; wide++) {
        Zip z = {0};
        RtDataset *d;
        RtError err;
        RtImport how = {0};
        const char *shape = wide ? "(4, 2)" : "(4,)";
        add_graph(&z);
        zip_add_npy(&z, "train_mask", "|b1", shape, train, wide ? 8 : 4);
        zip_add_npy(&z, "val_mask", "|b1", shape, val, wide ? 8 : 4);
        zip_add_npy(&z, "test_mask", "|b1", shape, test, wide ? 8 : 4);
        zip_end(&z);
        CHECK_MSG(import(&z, &how, &d, &err) == GNNC_OK, "%s", err.text);
        const RtColumn *s = d ? rt_table_column(d->nodes, "split") : NULL;
        CHECK(s && s->n_splits == 1 + wide && d->nodes->n_columns == 1);
        CHECK(s &&
              !memcmp(s->splits, wide ? (int8_t[]){1, 3, 3, 0, 2, 0, 1, 2} : (int8_t[]){1, 2, 3, 0},
                      wide ? 8 : 4));
        rt_dataset_close(d);
    }
}

TEST(adjacency_without_features) {
    Zip z = {0};
    RtDataset *d;
    RtError err;
    RtImport how = {.undirected = true};
    zip_add_npy(&z, "indptr", "<i4", "(5,)", PTR, sizeof PTR);
    zip_add_npy(&z, "indices", "<i4", "(3,)", (int32_t[]){1, 3, 0}, 12);
    zip_end(&z);
    CHECK_MSG(import(&z, &how, &d, &err) == GNNC_OK, "%s", err.text);
    if (!d) return;
    CHECK(d->nodes->count == 4 && d->nodes->n_columns == 0);
    CHECK(d->edges->count == 6); /* 0-1, 0-3, 2-0 both ways */
    rt_dataset_close(d);
}

/* The archive `z` must fail with this text. */
static void expect(Zip *z, const char *text) {
    RtDataset *d;
    RtError err;
    RtImport how = {0};
    zip_end(z);
    CHECK(import(z, &how, &d, &err) != GNNC_OK && !d);
    CHECK_STR(err.text, text);
}

TEST(contradictions_are_named) {
    Zip a = {0}, b = {0}, c = {0}, d = {0}, e = {0}, f = {0}, g = {0};
    expect(&a, "g.npz: num_nodes: no such entry");
    zip_add_npy(&b, "num_nodes", "<i8", "()", &FOUR, 8);
    expect(&b, "g.npz: edge_index: no such entry");
    add_graph(&c);
    zip_add_npy(&c, "y", "<i4", "(3,)", Y, 12);
    expect(&c, "g.npz: y: 3 rows, 'vertex' has 4");
    add_graph(&d);
    zip_add_npy(&d, "train_idx", "<i4", "(1,)", (int32_t[]){4}, 4);
    expect(&d, "g.npz: train_idx: there is no row 4: there are 4");
    add_graph(&e);
    zip_add_npy(&e, "train_idx", "<i4", "(1,)", (int32_t[]){2}, 4);
    zip_add_npy(&e, "val_idx", "<i4", "(1,)", (int32_t[]){2}, 4);
    expect(&e, "g.npz: val_idx: row 2 is in two parts of the split");
    zip_add_npy(&f, "num_nodes", "<i8", "()", (int64_t[]){3}, 8);
    zip_add_npy(&f, "edge_index", "<i4", "(2, 3)", EDGES, sizeof EDGES);
    expect(&f, "link: edge 2: source 3 is no 'vertex' node: there are 3");
    add_graph(&g);
    zip_add_npy(&g, "x", "<f4", "(4, 2)", (float[]){1, 2, 3, 1.0f / 0.0f, 5, 6, 7, 8}, 32);
    expect(&g, "vertex.x: row 1: value is infinite");
}

TEST(no_byte_changed_or_missing_crashes) {
    static Zip z, broken;
    RtError err;
    RtImport how = {0};
    add_graph(&z), add_csr(&z), add_labels(&z), zip_end(&z);
    for (size_t i = 0; i < z.n; i++) {
        RtDataset *d;
        broken = z;
        broken.bytes[i] ^= 0xff;
        import(&broken, &how, &d, &err); /* some bytes do not matter */
        rt_dataset_close(d);
    }
    for (size_t n = 0; n < z.n; n += 7) {
        RtDataset *d;
        uint8_t *copy = malloc(n ? n : 1);
        memcpy(copy, z.bytes, n);
        CHECK(rt_import_npz_bytes(NULL, (RtBytes){copy, n}, "g", &how, &d, NULL) != GNNC_OK);
        free(copy);
    }
}

/* Two entries of 2000 zeros, where n bytes of the directory at `at` say something else. */
static void refused(size_t at, uint64_t value, int n, const char *says) {
    Zip z = {0};
    RtZip zip;
    RtError err = {""};
    RtPool pool;
    rt_pool_init(&pool, NULL);
    uint8_t zeros[2000] = {0};
    zip_add(&z, "a", zeros, sizeof zeros, 1);
    zip_add(&z, "b", zeros, sizeof zeros, 1);
    put_le(z.central + at, value, n);
    zip_end(&z);
    CHECK(rt_zip_open(&pool, (RtBytes){z.bytes, z.n}, "z", &zip, &err) == GNNC_E_FORMAT);
    CHECK_STR(err.text, says);
    rt_pool_free(&pool);
}

TEST(a_bomb_is_refused_before_it_is_unpacked) {
    refused(24, 0xfffffff0u, 4, "z: a zip entry's sizes contradict each other"); /* 4 GiB */
}

TEST(entries_over_the_same_bytes_are_refused) {
    refused(46 + 1 + 42, 0, 4, "z: two zip entries lie over each other"); /* b is where a is */
}

/* As zip writers end an archive of more than 65,535 entries or 4 GiB. */
TEST(a_zip64_end_record_is_read) {
    Zip z = {0};
    RtZip zip;
    RtError err = {""};
    RtPool pool;
    RtBytes text;
    rt_pool_init(&pool, NULL);
    zip_add(&z, "a", (const uint8_t *)"text", 4, 0);
    size_t start = z.n;
    memcpy(z.bytes + z.n, z.central, z.n_central);
    z.n += z.n_central;
    uint8_t *end64 = z.bytes + z.n, *locator = end64 + 56, *end = locator + 20;
    put_le(end64, 0x06064b50, 4), put_le(end64 + 4, 44, 8), put_le(end64 + 24, 1, 8);
    put_le(end64 + 32, 1, 8), put_le(end64 + 40, z.n_central, 8), put_le(end64 + 48, start, 8);
    put_le(locator, 0x07064b50, 4), put_le(locator + 8, z.n, 8), put_le(locator + 16, 1, 4);
    put_le(end, 0x06054b50, 4), put_le(end + 8, UINT16_MAX, 2), put_le(end + 10, UINT16_MAX, 2);
    put_le(end + 12, UINT32_MAX, 4), put_le(end + 16, UINT32_MAX, 4);
    z.n += 56 + 20 + 22;
    CHECK_MSG(rt_zip_open(&pool, (RtBytes){z.bytes, z.n}, "z", &zip, &err) == GNNC_OK, "%s",
              err.text);
    CHECK(zip.n == 1 && rt_zip_read(&pool, &zip, zip.entries, &text, &err) == GNNC_OK);
    CHECK(text.n == 4 && memcmp(text.p, "text", 4) == 0);
    put_le(locator + 8, z.n - 3, 8);
    CHECK(rt_zip_open(&pool, (RtBytes){z.bytes, z.n}, "z", &zip, NULL) == GNNC_E_FORMAT);
    /* A file that begins behind the locator, or within it, has none. */
    for (const uint8_t *from = locator + 1; from <= end; from++) {
        RtBytes rest = {from, (size_t)(end + 22 - from)};
        CHECK(rt_zip_open(&pool, rest, "z", &zip, &err) == GNNC_E_FORMAT);
        CHECK_STR(err.text, "z: malformed zip directory");
    }
    rt_pool_free(&pool);
}

TEST(every_failed_allocation_is_survived) {
    static Zip z;
    gnnc_status st = GNNC_E_NOMEM;
    add_graph(&z), add_csr(&z), add_labels(&z), zip_end(&z);
    for (long k = 0; st != GNNC_OK && k < 2000; k++) {
        FailingAlloc f;
        RtDataset *d;
        RtImport how = {.normalize_rows = true, .undirected = true};
        RtAlloc from = failing(&f, k);
        st = rt_import_npz_bytes(&from, (RtBytes){z.bytes, z.n}, "g", &how, &d, NULL);
        CHECK(st == GNNC_OK || st == GNNC_E_NOMEM);
        rt_dataset_close(d);
        CHECK(f.n_live == 0);
    }
    CHECK(st == GNNC_OK);
}

TEST_MAIN()
