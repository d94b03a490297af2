/* The importer's forms of several tables, from small fixtures: .npz with types, triples,
 * links, events and many graphs; folders of triples, GraphBolt, the Open Graph Benchmark
 * and CSV tables.  Each whole, hostile, out of memory, and read back from its directory. */
#include "test.h"

#include <locale.h>
#include <math.h>

#include "csv_util.h"
#include "frontend/import/import_scaffold.h"
#include "runtime/data/number.h"
#include "runtime/import/yaml.h"
#include "rt_test_util.h"
#include "zip_util.h"

#define I32(z, name, shape, ...)                                                                   \
    zip_add_npy(z, name, "<i4", shape, (int32_t[]){__VA_ARGS__}, sizeof((int32_t[]){__VA_ARGS__}))
#define F32(z, name, shape, ...)                                                                   \
    zip_add_npy(z, name, "<f4", shape, (float[]){__VA_ARGS__}, sizeof((float[]){__VA_ARGS__}))
#define F64(z, name, shape, ...)                                                                   \
    zip_add_npy(z, name, "<f8", shape, (double[]){__VA_ARGS__}, sizeof((double[]){__VA_ARGS__}))
#define COUNT(z, name, n) zip_add_npy(z, name, "<i8", "()", &(int64_t){n}, 8)

/* ---- the fixtures ------------------------------------------------------------------- */
static void typed(Zip *z) {
    COUNT(z, "num_paper", 3), COUNT(z, "num_author", 2);
    I32(z, "paper__author", "(2, 3)", 0, 1, 2, 0, 1, 1);
    I32(z, "paper__cites__paper", "(2, 2)", 0, 1, 1, 2);
    F64(z, "paper__author_time", "(3,)", 1, 2, 3);
    I32(z, "paper_x_indptr", "(4,)", 0, 1, 1, 2);
    I32(z, "paper_x_indices", "(2,)", 4, 0);
    F32(z, "paper_x_data", "(2,)", 1, 2);
    zip_add_npy(z, "paper_x_shape", "<i8", "(2,)", (int64_t[]){3, 5}, 16);
    F32(z, "author_x", "(2, 2)", 1, 2, 3, 4);
    I32(z, "author_kind", "(2,)", 1, 0);
    I32(z, "paper_y", "(3,)", 1, 0, -1);
    F64(z, "paper_time", "(3,)", 10, NAN, 30);
    I32(z, "train_20", "(1,)", 0), I32(z, "test_20", "(1,)", 1);
    I32(z, "train_5", "(1,)", 1), I32(z, "val_5", "(1,)", 0);
}

static void graphs(Zip *z) {
    I32(z, "node_ptr", "(3,)", 0, 2, 5), I32(z, "edge_ptr", "(3,)", 0, 2, 4);
    I32(z, "edge_index", "(2, 4)", 0, 1, 2, 3, 1, 0, 3, 4);
    zip_add_npy(z, "x_int", "|u1", "(5, 2)", "\0\3\1\0\2\0\0\1\0\0", 10);
    zip_add_npy(z, "edge_attr_int", "|u1", "(4, 1)", "\0\1\1\0", 4);
    F32(z, "pos", "(5, 1)", 1, 2, 3, 4, 5);
    I32(z, "node_label", "(5,)", 0, 1, 2, 0, 1);
    F32(z, "y", "(2, 3)", 1, 0, NAN, 0, NAN, 1);
    F32(z, "graph_mass", "(2,)", 18, 44);
    I32(z, "train_idx", "(1,)", 1), I32(z, "test_idx", "(1,)", 0);
}

static void folds(Zip *z) {
    I32(z, "node_ptr", "(4,)", 0, 1, 2, 3), I32(z, "edge_ptr", "(4,)", 0, 0, 0, 0);
    zip_add_npy(z, "edge_index", "<i4", "(2, 0)", "", 0);
    I32(z, "y", "(3,)", 1, 0, 1), I32(z, "test_fold", "(3,)", 2, 0, 1);
}

static void triples(Zip *z) {
    I32(z, "train", "(2, 3)", 0, 0, 1, 1, 1, 2);
    I32(z, "valid", "(1, 3)", 2, 0, 0), I32(z, "test", "(1, 3)", 0, 1, 3);
}

static void rdf(Zip *z) {
    I32(z, "triples", "(2, 3)", 0, 0, 1, 2, 1, 1);
    COUNT(z, "num_nodes", 4), COUNT(z, "num_relations", 2);
    I32(z, "train_idx", "(2,)", 0, 3), I32(z, "train_y", "(2,)", 1, 0);
    I32(z, "test_idx", "(1,)", 1), I32(z, "test_y", "(1,)", 2);
}

static void links(Zip *z) {
    COUNT(z, "num_nodes", 4);
    I32(z, "train_edges", "(2, 2)", 0, 1, 1, 2), I32(z, "val_edges", "(2, 1)", 2, 3);
    I32(z, "test_edges", "(2, 1)", 0, 3), I32(z, "val_neg", "(2, 1)", 0, 2);
    I32(z, "test_neg", "(2, 1)", 1, 3);
}

static void rated(Zip *z) {
    COUNT(z, "num_users", 2), COUNT(z, "num_items", 3);
    I32(z, "train", "(2, 2)", 0, 1, 2, 0), I32(z, "test", "(2, 1)", 1, 1);
}

static void events(Zip *z) {
    I32(z, "src", "(4,)", 0, 1, 2, 0), I32(z, "dst", "(4,)", 1, 2, 0, 2);
    F64(z, "t", "(4,)", 1, 2, 3, 4), F32(z, "msg", "(4, 2)", 1, 2, 3, 4, 5, 6, 7, 8);
    zip_add_npy(z, "rating", "|i1", "(4,)", "\1\377\2\3", 4);
    COUNT(z, "train_end", 2), COUNT(z, "val_end", 3);
}

static uint8_t edge_gz[256];
static size_t n_edge_gz;

static void make_gz(const char *s) {
    z_stream z = {.next_in = (Bytef *)(uintptr_t)s,
                  .avail_in = (uInt)strlen(s),
                  .next_out = edge_gz,
                  .avail_out = sizeof edge_gz};
    deflateInit2(&z, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
    deflate(&z, Z_FINISH);
    n_edge_gz = sizeof edge_gz - z.avail_out;
    deflateEnd(&z);
}

static const RtNamedBytes kg_files[] = {FILE_OF("train.txt", "ann\tknows\tbob\nbob\tlikes\tann\n"),
                                        FILE_OF("valid.txt", "ann\tlikes\tcy\r\n"),
                                        FILE_OF("test.txt", "cy\tknows\tann\n")};

static const RtNamedBytes ogb_types[] = {
    FILE_OF("raw/num-node-dict.csv", "author,paper\n2,3\n"),
    FILE_OF("raw/triplet-type-list.csv", "author,writes,paper\npaper,cites,paper\n"),
    FILE_OF("raw/relations/author___writes___paper/edge.csv", "0,2\n1,1\n1,0\n"),
    FILE_OF("raw/relations/paper___cites___paper/edge.csv", "0,1\n"),
    FILE_OF("raw/relations/paper___cites___paper/edge_reltype.csv", "3\n"),
    FILE_OF("raw/node-feat/paper/node-feat.csv", "0.5,1\n1,2\n3,4\n"),
    FILE_OF("raw/node-feat/paper/node_year.csv", "2010\n2011\n2012\n"),
    FILE_OF("raw/node-label/paper/node-label.csv", "1\n0\n1\n"),
    FILE_OF("split/time/paper/train.csv", "0\n"),
    FILE_OF("split/time/paper/valid.csv", "1\n"),
    FILE_OF("split/time/paper/test.csv", "2\n")};

static const RtNamedBytes ogb_graphs[] = {FILE_OF("raw/edge.csv", "0,1\n1,0\n0,2\n"),
                                          FILE_OF("raw/num-node-list.csv", "2\n3\n"),
                                          FILE_OF("raw/num-edge-list.csv", "2\n1\n"),
                                          FILE_OF("raw/node-feat.csv", "1,0\n2,0\n0,1\n0,0\n5,1\n"),
                                          FILE_OF("raw/edge-feat.csv", "1\n0\n2\n"),
                                          FILE_OF("raw/graph-label.csv", "0.0,\n1.0,0.0\n"),
                                          FILE_OF("split/scaffold/train.csv", "1\n"),
                                          FILE_OF("split/scaffold/test.csv", "0\n")};

static const RtNamedBytes ondisk[] = {FILE_OF("metadata.yaml",
                                              "dataset_name: toy  # a comment\n"
                                              "graph:\n"
                                              "  nodes:\n"
                                              "  - type: user\n"
                                              "    num: 3\n"
                                              "  - type: item\n"
                                              "    num: 2\n"
                                              "  edges:\n"
                                              "  - type: \"user:buys:item\"\n"
                                              "    format: csv\n"
                                              "    path: edges/buys.csv\n"
                                              "feature_data:\n"
                                              "  - domain: node\n"
                                              "    type: item\n"
                                              "    name: price\n"
                                              "    format: csv\n"
                                              "    in_memory: true\n"
                                              "    path: price.csv\n"
                                              "  - domain: edge\n"
                                              "    type: \"user:buys:item\"\n"
                                              "    name: t\n"
                                              "    format: csv\n"
                                              "    path: t.csv\n"
                                              "tasks:\n"
                                              "  - name: kinds\n"
                                              "    num_classes: 4\n"
                                              "    train_set:\n"
                                              "      - type: user\n"
                                              "        data:\n"
                                              "          - name: seeds\n"
                                              "            format: csv\n"
                                              "            path: seeds.csv\n"
                                              "          - name: labels\n"
                                              "            format: csv\n"
                                              "            path: labels.csv\n"
                                              "    test_set:\n"
                                              "      - type: \"user:buys:item\"\n"
                                              "        data:\n"
                                              "          - name: seeds\n"
                                              "            format: csv\n"
                                              "            path: pairs.csv\n"
                                              "          - name: labels\n"
                                              "            format: csv\n"
                                              "            path: pair_labels.csv\n"),
                                      FILE_OF("edges/buys.csv", "0,1\n2,0\n"),
                                      FILE_OF("price.csv", "1.5\n2\n"),
                                      FILE_OF("t.csv", "7\n8\n"),
                                      FILE_OF("seeds.csv", "2\n0\n"),
                                      FILE_OF("labels.csv", "1\n3\n"),
                                      FILE_OF("pairs.csv", "0,0\n1,1\n"),
                                      FILE_OF("pair_labels.csv", "1\n0\n")};

static const RtNamedBytes tables[] = {
    FILE_OF("drivers.csv", "driverId,name,born\n10,ann,1990-02-28\n20,bob,\n"),
    FILE_OF("results.csv",
            "raceId,driverId,points,won:class\n1,10,2.5,0\n1,20,,1\n2,10,1,0\n2,,3,1\n"),
    FILE_OF("races.csv", "raceId,year,date:time\n1,2000,2000-01-01\n2,2001,2001-01-01\n"),
    FILE_OF("notes.txt", "not a table")};
static const char MAPPING[] = "# the keys\n"
                              "races.raceId     key\n"
                              "races.year\tcat   # few\n"
                              "drivers.driverId key\n"
                              "drivers.name     drop\n"
                              "drivers.born     time\n"
                              "results.raceId   -> races\n"
                              "results.driverId -> drivers\n";

/* ---- every form by number ------------------------------------------------------------ */
typedef void MakeZip(Zip *z);
static MakeZip *const archives[] = {typed, graphs, folds, triples, rdf, links, rated, events};
enum { N_ZIP = 8, KG = N_ZIP, OGB_TYPES, OGB_GRAPHS, ONDISK, TABLES, N_FORMS };

static const struct {
    const RtNamedBytes *files;
    int n;
} folders[] = {{kg_files, 3}, {ogb_types, 11}, {ogb_graphs, 8}, {ondisk, 8}, {tables, 4}};

static gnnc_status read_folder(const RtAlloc *from, int form, const RtNamedBytes *files, int n,
                               RtImport *how, RtDataset **d, RtError *err) {
    RtFolder f = {"f", files, n};
    RtNamedBytes map = {"m", bytes(MAPPING)};
    if (form == KG) return rt_import_triples(from, &f, how, d, err);
    if (form == ONDISK) return rt_import_ondisk(from, &f, how, d, err);
    if (form == TABLES) return rt_import_tables(from, &f, &map, how, d, err);
    return rt_import_ogb(from, &f, how, d, err);
}

static gnnc_status read_form(const RtAlloc *from, int form, RtImport *how, RtDataset **d,
                             RtError *err) {
    if (form >= N_ZIP)
        return read_folder(from, form, folders[form - N_ZIP].files, folders[form - N_ZIP].n, how, d,
                           err);
    static Zip z; /* the bytes must outlive nothing: all is unpacked */
    z.n = z.n_central = 0, z.n_entries = 0;
    archives[form](&z), zip_end(&z);
    return rt_import_npz_bytes(from, (RtBytes){z.bytes, z.n}, "z", how, d, err);
}

static RtDataset *whole(int form, RtImport how) {
    RtDataset *d;
    RtError err = {""};
    read_form(NULL, form, &how, &d, &err);
    CHECK_MSG(d, "form %d: %s", form, err.text);
    return d;
}

static const RtColumn *node_column(const RtDataset *d, const char *table, const char *name) {
    const RtTable *t = rt_dataset_nodes(d, table);
    const RtColumn *c = t ? rt_table_column(t, name) : NULL;
    CHECK_MSG(c, "%s.%s", table, name);
    return c;
}

static const RtColumn *edge_column(const RtDataset *d, const char *table, const char *name) {
    const RtTable *t = rt_dataset_edges(d, table);
    const RtColumn *c = t ? rt_table_column(t, name) : NULL;
    CHECK_MSG(c, "%s.%s", table, name);
    return c;
}

#define SAME(p, T, ...) (!memcmp((p), (T[]){__VA_ARGS__}, sizeof((T[]){__VA_ARGS__})))

/* ---- .npz ------------------------------------------------------------------------------ */
TEST(several_types) {
    RtDataset *d = whole(0, (RtImport){0});
    if (!d) return;
    CHECK(d->n_nodes == 2 && d->n_edges == 2);
    const RtTable *e = rt_dataset_edges(d, "paper__author");
    CHECK(e && e->count == 3 && e->src_type == 0 && e->dst_type == 1 && e->dst[2] == 1);
    CHECK(rt_dataset_edges(d, "paper__cites__paper")->dst_type == 0);
    CHECK(SAME(edge_column(d, "paper__author", "time")->f64, double, 1, 2, 3));
    const RtColumn *x = node_column(d, "paper", "x");
    CHECK(x->kind == RT_COL_CSR && x->csr.n_cols == 5 && x->csr.col[0] == 4);
    CHECK(node_column(d, "author", "x")->shape[1] == 2);
    CHECK(node_column(d, "author", "kind")->kind == RT_COL_CAT);
    CHECK(node_column(d, "paper", "time")->kind == RT_COL_TIME);
    CHECK(SAME(node_column(d, "paper", "y")->i32, int32_t, 1, 0, -1));
    const RtColumn *s = node_column(d, "paper", "split"); /* 5 before 20 */
    CHECK(s->n_splits == 2 && SAME(s->splits, int8_t, 2, 1, 0, 1, 3, 0));
    rt_dataset_close(d);
}

TEST(many_graphs) {
    RtDataset *d = whole(1, (RtImport){.node = "atom", .edge = "bond"});
    if (!d) return;
    CHECK(d->n_graphs == 1 && d->graphs->count == 2 && d->nodes->graph == 0);
    CHECK(SAME(d->nodes->graph_ptr, int64_t, 0, 2, 5));
    CHECK(SAME(node_column(d, "atom", "x_0")->i32, int32_t, 0, 1, 2, 0, 0));
    CHECK(node_column(d, "atom", "x_1")->n_categories == 4);
    CHECK(node_column(d, "atom", "pos")->kind == RT_COL_FLOAT);
    CHECK(node_column(d, "atom", "label")->kind == RT_COL_CAT); /* a feature here */
    CHECK(SAME(edge_column(d, "bond", "attr_0")->i32, int32_t, 0, 1, 1, 0));
    const RtColumn *y = rt_table_column(d->graphs, "y");
    CHECK(y && y->kind == RT_COL_MULTILABEL && isnan(y->f32[2]) && y->f32[5] == 1);
    CHECK(rt_table_column(d->graphs, "mass")->f32[1] == 44);
    CHECK(SAME(rt_table_column(d->graphs, "split")->splits, int8_t, 3, 1));
    rt_dataset_close(d);
    if (!(d = whole(2, (RtImport){0}))) return;
    CHECK(SAME(rt_table_column(d->graphs, "split")->splits, int8_t, 1, 1, 3, 3, 1, 1));
    CHECK(rt_table_column(d->graphs, "y")->kind == RT_COL_CLASS);
    rt_dataset_close(d);
}

TEST(triples_as_a_column_or_as_types) {
    RtDataset *d = whole(3, (RtImport){0});
    if (!d) return;
    CHECK(d->nodes->count == 4 && d->edges->count == 4);
    CHECK(SAME(edge_column(d, "triple", "rel")->i32, int32_t, 0, 1, 0, 1));
    CHECK(SAME(edge_column(d, "triple", "split")->splits, int8_t, 1, 1, 2, 3));
    rt_dataset_close(d);
    if (!(d = whole(3, (RtImport){.relation_types = true}))) return;
    CHECK(d->n_edges == 2 && SAME(d->edges[1].src, int32_t, 1, 0));
    CHECK(SAME(edge_column(d, "r1", "split")->splits, int8_t, 1, 3));
    rt_dataset_close(d);
    if (!(d = whole(4, (RtImport){0}))) return;
    CHECK(SAME(node_column(d, "entity", "y")->i32, int32_t, 1, 2, -1, 0));
    CHECK(node_column(d, "entity", "y")->n_categories == 3);
    CHECK(SAME(node_column(d, "entity", "split")->splits, int8_t, 1, 3, 0, 1));
    rt_dataset_close(d);
}

TEST(links_ratings_and_events) {
    RtDataset *d = whole(5, (RtImport){.undirected = true});
    if (d) CHECK(d->n_edges == 2 && d->edges[0].count == 8 && d->edges[1].count == 4);
    rt_dataset_close(d);
    if (!(d = whole(5, (RtImport){0}))) return;
    CHECK(SAME(edge_column(d, "link", "split")->splits, int8_t, 1, 1, 2, 3));
    CHECK(SAME(edge_column(d, "no_link", "split")->splits, int8_t, 2, 3));
    rt_dataset_close(d);
    if (!(d = whole(6, (RtImport){.edge = "rates"}))) return;
    const RtTable *e = rt_dataset_edges(d, "rates");
    CHECK(e && e->src_type == 0 && e->dst_type == 1 && SAME(e->dst, int32_t, 2, 0, 1));
    rt_dataset_close(d);
    RtImport how = {.n_kinds = 1, .kinds = {{"event.rating", RT_COL_FLOAT, false}}};
    if (!(d = whole(7, how))) return;
    CHECK(d->nodes->count == 3 && edge_column(d, "event", "t")->f64[3] == 4);
    CHECK(edge_column(d, "event", "rating")->f32[1] == -1);
    CHECK(edge_column(d, "event", "msg")->shape[1] == 2);
    CHECK(SAME(edge_column(d, "event", "split")->splits, int8_t, 1, 1, 2, 3));
    rt_dataset_close(d);
}

/* Each entry is added to a whole archive, so that it is the one that is wrong. */
static void expect(Zip *z, const char *want) {
    RtDataset *d;
    RtError err = {""};
    RtImport how = {0};
    zip_end(z);
    CHECK(rt_import_npz_bytes(NULL, (RtBytes){z->bytes, z->n}, "z", &how, &d, &err) != GNNC_OK);
    CHECK_STR(err.text, want);
    rt_dataset_close(d);
}

TEST(contradictions_are_named) {
    static Zip z[9];
    graphs(&z[0]), I32(&z[0], "edge_attr", "(3,)", 1, 2, 3);
    expect(&z[0], "z: edge_attr: 3 rows, 'link' has 4");
    I32(&z[1], "node_ptr", "(3,)", 0, 4, 2), I32(&z[1], "edge_ptr", "(3,)", 0, 0, 0);
    expect(&z[1], "vertex: graph 1: graph pointers must ascend");
    I32(&z[2], "node_ptr", "(3,)", 0, 1, 2), I32(&z[2], "edge_ptr", "(3,)", 0, 1, 1);
    I32(&z[2], "edge_index", "(2, 1)", 0, 1);
    expect(&z[2], "z: edge_index: edge 0 leaves its graph 0");
    typed(&z[3]), I32(&z[3], "venue_x", "(1,)", 1);
    expect(&z[3], "z: venue_x: no table is called like the entry's beginning");
    COUNT(&z[4], "num_a", 2), I32(&z[4], "a__a", "(2, 1)", 0, 2);
    expect(&z[4], "a__a: edge 0: destination 2 is no 'a' node: there are 2");
    I32(&z[5], "triples", "(1, 3)", 0, -1, 1);
    expect(&z[5], "z: triples: row 0: -1 is no number of a relation");
    I32(&z[6], "triples", "(1, 3)", 0, 0, 7), COUNT(&z[6], "num_nodes", 3);
    expect(&z[6], "z: a triple names number 7, num_nodes has 3");
    events(&z[7]), F32(&z[7], "bad", "(4,)", 1, 2, INFINITY, 4);
    expect(&z[7], "event.bad: row 2: value is infinite");
    I32(&z[8], "src", "(2,)", 0, 1), I32(&z[8], "dst", "(1,)", 0);
    expect(&z[8], "z: dst: not as long as src");
}

/* ---- folders ---------------------------------------------------------------------------- */
TEST(triples_in_text) {
    RtDataset *d = whole(KG, (RtImport){0});
    if (!d) return;
    const RtColumn *name = node_column(d, "entity", "name");
    CHECK(name->n_categories == 3 && SAME(name->i32, int32_t, 0, 1, 2));
    CHECK_STR(name->names[2], "cy");
    const RtColumn *rel = edge_column(d, "triple", "rel");
    CHECK(SAME(rel->i32, int32_t, 0, 1, 1, 0));
    CHECK_STR(rel->names[1], "likes");
    CHECK(SAME(edge_column(d, "triple", "split")->splits, int8_t, 1, 1, 2, 3));
    rt_dataset_close(d);
}

TEST(benchmark_folders) {
    RtDataset *d =
        whole(OGB_TYPES, (RtImport){.n_kinds = 1, .kinds = {{"year", RT_COL_TIME, false}}});
    if (!d) return;
    const RtTable *e = rt_dataset_edges(d, "author__writes__paper");
    CHECK(e && e->count == 3 && e->src_type == 0 && e->dst[1] == 1);
    CHECK(edge_column(d, "paper__cites__paper", "rel")->i32[0] == 3);
    CHECK(node_column(d, "paper", "x")->f32[4] == 3);
    CHECK(node_column(d, "paper", "year")->f64[2] == 2012);
    CHECK(node_column(d, "paper", "y")->kind == RT_COL_CLASS);
    CHECK(SAME(node_column(d, "paper", "split")->splits, int8_t, 1, 2, 3));
    rt_dataset_close(d);
    if (!(d = whole(OGB_GRAPHS, (RtImport){0}))) return;
    CHECK(d->graphs->count == 2 && SAME(d->nodes->graph_ptr, int64_t, 0, 2, 5));
    CHECK(SAME(d->edges->src, int32_t, 0, 1, 2) && SAME(d->edges->dst, int32_t, 1, 0, 4));
    const RtColumn *y = rt_table_column(d->graphs, "y");
    CHECK(y && y->kind == RT_COL_MULTILABEL && isnan(y->f32[1]) && y->f32[2] == 1);
    CHECK(node_column(d, "vertex", "x_0")->n_categories == 6);
    CHECK(edge_column(d, "link", "attr")->i32[2] == 2);
    rt_dataset_close(d);
}

/* {'edge': array([[0, 1], [2, 1]]), 'year': array([5, 6])}, as torch.save() of PyTorch 1.5
 * leaves it: three pickles of its own, then the dict. */
static const char LINKS_PT[] = "\x80\x02\x8a\x0al\xfc\x9c"
                               "F\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02}q\x00."
                               "\x80\x02}("
                               "X\x04\0\0\0edge"
                               "cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\0\x85"
                               "U\x01"
                               "b\x87R(K\x01K\x02K\x02\x86"
                               "cnumpy\ndtype\nU\x02i4K\0K\x01\x87R(K\x03U\x01<NNN"
                               "J\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb\x89"
                               "U\x10\0\0\0\0\1\0\0\0\2\0\0\0\1\0\0\0tb"
                               "X\x04\0\0\0year"
                               "cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\0\x85"
                               "U\x01"
                               "b\x87R(K\x01K\x02\x85"
                               "cnumpy\ndtype\nU\x02i4K\0K\x01\x87R(K\x03U\x01<NNN"
                               "J\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb\x89"
                               "U\x08\5\0\0\0\6\0\0\0tb"
                               "u.";

TEST(links_of_the_benchmark_are_pickles) {
    RtNamedBytes files[] = {FILE_OF("raw/edge.csv", "0,1\n"),
                            FILE_OF("raw/num-node-list.csv", "3\n"),
                            FILE_OF("split/time/train.pt", LINKS_PT)};
    RtImport how = {0};
    RtError err = {""};
    RtDataset *d;
    read_folder(NULL, OGB_TYPES, files, 3, &how, &d, &err);
    CHECK_MSG(d, "%s", err.text);
    if (!d) return;
    const RtTable *e = rt_dataset_edges(d, "target");
    CHECK(e && SAME(e->src, int32_t, 0, 2) && SAME(e->dst, int32_t, 1, 1));
    CHECK(SAME(edge_column(d, "target", "year")->i32, int32_t, 5, 6));
    CHECK(SAME(edge_column(d, "target", "split")->splits, int8_t, 1, 1));
    rt_dataset_close(d);
    files[1].text = bytes("2\n");
    CHECK(read_folder(NULL, OGB_TYPES, files, 3, &how, &d, &err) == GNNC_E_RANGE);
    CHECK_STR(err.text, "split/time/train.pt: row 1: there is no node 2");
}

TEST(graphbolt_folders) {
    RtDataset *d = whole(ONDISK, (RtImport){0});
    if (!d) return;
    CHECK_STR(d->name, "toy");
    CHECK(rt_dataset_edges(d, "user__buys__item")->src[1] == 2);
    CHECK(node_column(d, "item", "price")->f32[0] == 1.5f);
    CHECK(edge_column(d, "user__buys__item", "t")->f64[1] == 8);
    const RtColumn *y = node_column(d, "user", "y");
    CHECK(y->n_categories == 4 && SAME(y->i32, int32_t, 3, -1, 1));
    CHECK(SAME(node_column(d, "user", "split")->splits, int8_t, 1, 0, 1));
    CHECK(SAME(edge_column(d, "target__user__buys__item", "label")->i32, int32_t, 1, 0));
    CHECK(SAME(edge_column(d, "target__user__buys__item", "split")->splits, int8_t, 3, 3));
    rt_dataset_close(d);
}

TEST(tables_that_refer_to_each_other) {
    RtDataset *d = whole(TABLES, (RtImport){0});
    if (!d) return;
    CHECK(d->n_nodes == 3 && d->n_edges == 2);
    const RtTable *e = rt_dataset_edges(d, "results__driverId");
    CHECK(e && e->count == 3 && SAME(e->src, int32_t, 0, 1, 2) && SAME(e->dst, int32_t, 0, 1, 0));
    CHECK(SAME(node_column(d, "results", "points")->f32, float, 2.5f, 0, 1, 3));
    CHECK(SAME(node_column(d, "results", "points_missing")->i32, int32_t, 0, 1, 0, 0));
    CHECK(node_column(d, "races", "year")->kind == RT_COL_CAT);
    CHECK(SAME(node_column(d, "drivers", "driverId")->i64, int64_t, 10, 20));
    CHECK(!rt_table_column(rt_dataset_nodes(d, "drivers"), "name"));
    CHECK(isnan(node_column(d, "drivers", "born")->f64[1]));
    rt_dataset_close(d);
    RtFolder f = {"f", tables, 4}; /* the names alone say the same */
    RtImport how = {0};
    RtError err = {""};
    rt_import_tables(NULL, &f, NULL, &how, &d, &err);
    CHECK_MSG(d && d->n_edges == 2 && rt_dataset_edges(d, "results__raceId"), "%s", err.text);
    rt_dataset_close(d);
}

/* File `which` of a form has the text `s` instead. */
static void expect_file(int form, const char *name, const char *s, const char *want) {
    RtNamedBytes files[16];
    RtDataset *d;
    RtError err = {""};
    RtImport how = {0};
    int n = folders[form - N_ZIP].n;
    for (int i = 0; i < n; i++) {
        files[i] = folders[form - N_ZIP].files[i];
        if (strcmp(files[i].name, name) == 0) files[i].text = bytes(s);
    }
    CHECK(read_folder(NULL, form, files, n, &how, &d, &err) != GNNC_OK);
    CHECK_STR(err.text, want);
    rt_dataset_close(d);
}

TEST(keys_match_in_any_case) {
    Told told = {.n = 0};
    RtImport how = {.on_warning = tell, .user = &told};
    RtError err;
    RtNamedBytes files[] = {
        FILE_OF("Author.csv", "AuthorID,Born\n1,1900\n2,1910\n"),
        FILE_OF("Book.csv", "BookID,AuthorId,CATEGORY_ID,ReportsId\n1,1,7,1\n2,,8,2\n3,2.0,7,3\n"),
        FILE_OF("Categories.csv", "CategoryID\n7\n8\n")};
    RtDataset *d = tables_of(files, 3, &how, &err);
    CHECK_MSG(d && d->n_edges == 2, "%s", err.text);
    const RtTable *e = d ? rt_dataset_edges(d, "Book__AuthorId") : NULL;
    CHECK(e && e->count == 2 && e->src[1] == 2 && e->dst[1] == 1);
    CHECK_STR(e ? e->why : "", "column 'AuthorId', absent in 1 rows");
    CHECK(d && rt_dataset_edges(d, "Book__CATEGORY_ID"));
    CHECK(warned(&told, "Book.csv: column 'ReportsId' looks like a reference, and no table has"));
    rt_dataset_close(d);
    RtNamedBytes twins[] = {FILE_OF("Race.csv", "id\n1\n"), FILE_OF("race.csv", "id\n1\n"),
                            FILE_OF("r.csv", "race_id,RACE_ID\n1,1\n")};
    told = (Told){.n = 0};
    d = tables_of(twins, 3, &how, &err);
    CHECK_MSG(d && d->n_edges == 1, "%s", err.text);
    CHECK(warned(&told, "r.csv: column 'RACE_ID' may refer to several tables"));
    rt_dataset_close(d);
}

TEST(a_folder_without_edges_is_told) {
    Told told = {.n = 0};
    RtImport how = {.on_warning = tell, .user = &told};
    RtError err;
    RtNamedBytes files[] = {FILE_OF("a.csv", "x\n1\n"), FILE_OF("b.csv", "1,2\n3,4\n")};
    RtDataset *d = tables_of(files, 1, &how, &err);
    CHECK(d && d->n_edges == 0);
    CHECK(warned(&told, "folder: no table refers to another, so there are no edges"));
    rt_dataset_close(d);
    RtNamedBytes edges[] = {FILE_OF("e.csv", "src,dst\n1,2\n"), FILE_OF("n.csv", "id\n1\n2\n")};
    told = (Told){.n = 0};
    rt_dataset_close(tables_of(edges, 2, &how, &err));
    CHECK(warned(&told, "e.csv: its rows became nodes, 'src' and 'dst' features: edges are gnnc "
                        "import [folder/NODES.csv] folder/e.csv, or --map FILE with "
                        "'e.src -> TABLE' and 'e.dst -> TABLE'"));
    CHECK(!tables_of(files, 2, &how, &err));
    CHECK_MSG(strstr(err.text, "b.csv: row 1: a header with column names is expected, not numbers"),
              "%s", err.text);
}

TEST(bad_files_are_told_with_row_and_reason) {
    expect_file(KG, "test.txt", "a\tb\tc\na b c\n",
                "test.txt: row 2: three names parted by tabs are expected (1 bad row in all)");
    expect_file(OGB_TYPES, "raw/relations/paper___cites___paper/edge.csv", "0,9\n",
                "paper__cites__paper: edge 0: destination 9 is no 'paper' node: there are 3");
    expect_file(OGB_TYPES, "raw/node-feat/paper/node-feat.csv", "1,2\n3\n",
                "f/raw/node-feat/paper/node-feat.csv: row 2, column 1: too few fields");
    expect_file(OGB_TYPES, "raw/node-feat/paper/node-feat.csv", "1,2\n3,x\n",
                "f/raw/node-feat/paper/node-feat.csv: row 2, column 2: not a number");
    expect_file(OGB_TYPES, "raw/node-feat/paper/node-feat.csv", "1,2\n3,4\n",
                "f/raw/node-feat/paper/node-feat.csv.gz: 2 rows, 'paper' has 3");
    expect_file(OGB_TYPES, "split/time/paper/test.csv", "1\n",
                "f/split/time/paper/test.csv.gz: row 1 is in two parts of the split");
    expect_file(OGB_GRAPHS, "raw/edge.csv", "0,1\n1,0\n0,3\n",
                "f: raw/edge.csv.gz: row 3: there is no node 3");
    expect_file(OGB_GRAPHS, "raw/num-edge-list.csv", "2\n99999999999\n",
                "f: num-edge-list: graph 1: more edges than edge.csv.gz has");
    expect_file(OGB_GRAPHS, "raw/num-node-list.csv", "2\n99999999999\n",
                "f: raw/num-node-list.csv.gz: row 2: no number of nodes");
    expect_file(ONDISK, "metadata.yaml", "graph:\n  nodes:\n    - num: x\n",
                "f/metadata.yaml:3: 'num' is no number of nodes");
    expect_file(ONDISK, "metadata.yaml",
                "graph:\n  nodes:\n    - num: 2\n  edges:\n    - format: csv\n      path: ../up\n",
                "f: '../up' is not inside the folder");
    expect_file(ONDISK, "metadata.yaml",
                "graph:\n  nodes:\n    - num: 2\n  edges:\n    - format: torch\n      path: x\n",
                "f/metadata.yaml:5: format: 'numpy' and 'csv' are read, 'torch' is not");
    expect_file(ONDISK, "seeds.csv", "2\n3\n", "f/seeds.csv: there is no row 3: there are 3");
    expect_file(TABLES, "races.csv", "raceId,year,date:time\n1,2000,2000-02-31\n1,2,\n",
                "races.csv: row 2: column 'date': '2000-02-31' is not a time (4 bad rows in all)");
    expect_file(TABLES, "drivers.csv", "driverId,name,born\n10,ann,\n20,bob,\n30,cid,\n10,eve,\n",
                "drivers.csv: row 5: its key '10' is repeated: row 2 has it (1 bad row in all)");
    expect_file(
        TABLES, "drivers.csv", "driverId,name,born\n10,ann,\n",
        "results.csv: row 3: column 'driverId': '20' is no key of drivers (1 bad row in all)");
}

TEST(mappings_are_checked) {
    static const char *const bad[][2] = {
        {"races key", "m:1: 'table.column what' is expected"},
        {"\ncars.id key", "m:2: there is no table 'cars'; there are drivers, races, results"},
        {"races.id key", "m:1: races has no column 'id'; it has raceId, year, date"},
        {"races.year -> cars", "m:1: there is no table 'cars'; there are drivers, races, results"},
        {"races.year number", "m:1: key, drop, -> table, or a kind is expected: one of float, cat, "
                              "class, time, id, split"},
        {"races.raceId key\nraces.year key", "m:2: the table has a key already"},
        {"results.raceId -> races\nraces.raceId drop",
         "m: results.raceId refers to races, which has no key"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        RtFolder f = {"f", tables, 4};
        RtNamedBytes map = {"m", bytes(bad[i][0])};
        RtImport how = {0};
        RtError err = {""};
        RtDataset *d;
        CHECK(rt_import_tables(NULL, &f, &map, &how, &d, &err) != GNNC_OK);
        CHECK_STR(err.text, bad[i][1]);
    }
}

/* A rule for one column leaves the others to be found out: no edge is lost. */
TEST(mappings_leave_other_columns_alone) {
    static const struct {
        const char *rules;
        int n_edges;
    } c[] = {{"races.year cat", 2}, {"results.raceId id", 1}, {"races.raceId drop", 1}};
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        RtFolder f = {"f", tables, 4};
        RtNamedBytes map = {"m", bytes(c[i].rules)};
        RtImport how = {.skip_bad = true};
        RtError err = {""};
        RtDataset *d;
        CHECK_MSG(rt_import_tables(NULL, &f, &map, &how, &d, &err) == GNNC_OK, "%s", err.text);
        if (d) CHECK_MSG(d->n_edges == c[i].n_edges, "%s: %d", c[i].rules, d->n_edges);
        rt_dataset_close(d);
    }
}

/* ---- gzip, YAML, numbers --------------------------------------------------------------------- */
TEST(gzip_whole_and_cut) {
    RtPool pool;
    RtBytes out;
    RtError err = {""};
    rt_pool_init(&pool, NULL);
    make_gz("0,1\n1,2\n");
    CHECK(rt_gunzip(&pool, (RtBytes){edge_gz, n_edge_gz}, "e", &out, NULL) == GNNC_OK);
    CHECK(out.n == 8 && !memcmp(out.p, "0,1\n1,2\n", 8));
    for (size_t n = 0; n < n_edge_gz; n++)
        CHECK(rt_gunzip(&pool, (RtBytes){edge_gz, n}, "e", &out, NULL) == GNNC_E_FORMAT);
    RtNamedBytes files[] = {{"raw/edge.csv.gz", {edge_gz, n_edge_gz - 3}},
                            FILE_OF("raw/num-node-list.csv", "3\n")};
    RtImport how = {0};
    RtDataset *d;
    CHECK(read_folder(NULL, OGB_TYPES, files, 2, &how, &d, &err) == GNNC_E_FORMAT);
    CHECK_STR(err.text, "raw/edge.csv.gz: not gzip, damaged or truncated");
    files[0].text.n = n_edge_gz;
    CHECK(read_folder(NULL, OGB_TYPES, files, 2, &how, &d, NULL) == GNNC_OK &&
          d->edges->count == 2);
    rt_dataset_close(d);
    rt_pool_free(&pool);
}

TEST(yaml) {
    static const char *const bad[][2] = {
        {"", "y:1: is empty"},
        {"a: 1\n  b: 2\n", "y:2: unexpected indentation"},
        {"a: [1, 2]\n", "y:1: only plain and quoted values are read"},
        {"a: 1\na: 2\n", "y:2: a key is repeated"},
        {"a:\n\tb: 1\n", "y:2: a tab cannot indent"},
        {"- a\nb: 1\n", "y:2: unexpected indentation"},
        {"just text\n", "y:1: 'key: value' is expected"},
        {"a: \"x\n", "y:1: a quoted value without escapes is expected"},
    };
    RtPool pool;
    RtJson *v;
    rt_pool_init(&pool, NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        RtError err = {""};
        CHECK(rt_yaml_parse(&pool, bytes(bad[i][0]), "y", &v, &err) == GNNC_E_FORMAT);
        CHECK_STR(err.text, bad[i][1]);
    }
    CHECK(rt_yaml_parse(&pool, bytes("---\na:\n- - 1\n  - 'x: #'\n- b: ~\n  c: d # e\nf:\n"), "y",
                        &v, NULL) == GNNC_OK);
    const RtJson *a = rt_json_get(v, "a");
    CHECK(a && a->n == 2 && a->first->n == 2 && !strcmp(a->first->first->next->text, "x: #"));
    CHECK(a && !strcmp(rt_json_get(a->first->next, "c")->text, "d"));
    CHECK(rt_json_get(v, "f")->kind == RT_JSON_NULL);
    rt_pool_free(&pool);
}

TEST(numbers_do_not_heed_the_locale) {
    static const char *const all[] = {"0.5",
                                      "-1.25e3",
                                      "1e-5",
                                      "123456789012345678",
                                      "3.14",
                                      "+7.",
                                      "1e22",
                                      "0.1234567890123456789",
                                      "1e-300",
                                      "2.5E+10x",
                                      "9007199254740993"};
    bool comma = setlocale(LC_NUMERIC, "de_DE.UTF-8");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const char *end;
        char *stop;
        double v = rt_strtod(all[i], &end);
        setlocale(LC_NUMERIC, "C");
        double want = strtod(all[i], &stop);
        if (comma) setlocale(LC_NUMERIC, "de_DE.UTF-8");
        CHECK_MSG(v == want && end == stop, "%s", all[i]);
    }
    setlocale(LC_NUMERIC, "C");
    const char *end;
    CHECK(rt_strtod("x", &end) == 0 && *end == 'x');
}

/* ---- every form -------- */
TEST(every_form_reads_back_and_has_a_model) {
    static const char *const says[N_FORMS][2] = {
        [1] = {"sample { batch 32 }", "layers/batch_norm.gnn"},
        [KG] = {"models/complex.gnn completes such triples"}};
    const char *dir = scratch_new();
    for (int form = 0; form < N_FORMS; form++) {
        char to[128], model[128];
        RtDataset *d = whole(form, (RtImport){0}), *back = NULL;
        RtError err = {""};
        if (!d) continue;
        snprintf(to, sizeof to, "%s/%d", dir, form);
        snprintf(model, sizeof model, "%s/%d.gnn", dir, form);
        CHECK_MSG(rt_dataset_write(d, to, false, &err) == GNNC_OK, "%s", err.text);
        CHECK_MSG(rt_dataset_open(NULL, to, true, &back, &err) == GNNC_OK, "%s", err.text);
        CHECK(back && back->n_nodes == d->n_nodes && back->n_edges == d->n_edges &&
              back->n_graphs == d->n_graphs);
        for (int i = 0; back && i < d->n_edges; i++) {
            CHECK(back->edges[i].n_columns == d->edges[i].n_columns);
            CHECK(back->edges[i].count == d->edges[i].count);
        }
        ScaffoldHow starter = {.dir = to};
        CHECK_MSG(gnnc_import_scaffold(d, &starter, model, &err) == GNNC_OK, "%s", err.text);
        CHECK(gnnc_import_scaffold(d, &starter, model, NULL) == GNNC_E_IO);
        for (int i = 0; i < 2 && says[form][i]; i++)
            CHECK_MSG(strstr(file_text(model), says[form][i]), "no '%s'", says[form][i]);
        rt_dataset_close(back);
        rt_dataset_close(d);
    }
    scratch_remove(dir);
}

TEST(every_failed_allocation_is_survived) {
    for (int form = 0; form < N_FORMS; form++) {
        gnnc_status st = GNNC_E_NOMEM;
        for (long k = 0; st != GNNC_OK && k < 5000; k++) {
            FailingAlloc f;
            RtDataset *d;
            RtImport how = {.relation_types = form % 2};
            RtAlloc from = failing(&f, k);
            st = read_form(&from, form, &how, &d, NULL);
            CHECK_MSG(st == GNNC_OK || st == GNNC_E_NOMEM, "form %d, call %ld: %d", form, k, st);
            rt_dataset_close(d);
            CHECK_MSG(f.n_live == 0, "form %d, call %ld", form, k);
        }
        CHECK_MSG(st == GNNC_OK, "form %d", form);
    }
}

/* Each file of each folder cut at every byte, and with every byte changed. */
TEST(no_changed_or_missing_byte_crashes) {
    for (int form = N_ZIP; form < N_FORMS; form++) {
        RtNamedBytes files[16];
        int n = folders[form - N_ZIP].n;
        memcpy(files, folders[form - N_ZIP].files, (size_t)n * sizeof *files);
        for (int i = 0; i < n; i++) {
            RtBytes all = files[i].text;
            for (size_t at = 0; at < 2 * all.n; at++) {
                RtImport how = {.skip_bad = true};
                RtDataset *d;
                size_t k = at < all.n ? at : all.n;
                uint8_t *copy = malloc(k ? k : 1);
                memcpy(copy, all.p, k);
                if (at >= all.n) copy[at - all.n] ^= 0x15;
                files[i].text = (RtBytes){copy, k};
                read_folder(NULL, form, files, n, &how, &d, NULL);
                rt_dataset_close(d);
                free(copy);
            }
            files[i].text = all;
        }
    }
}

TEST_MAIN()
