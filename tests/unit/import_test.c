/* CSV tables, edge lists, Planetoid's pickles, and the command. */
#include "test.h"

#include <math.h>

#include "csv_util.h"
#include "frontend/import/import_main.h"
#include "runtime/data/dates.h"
#include "runtime/data/number.h"
#include "runtime/import/import_split.h"
#include "runtime/import/pickle.h"
#include "rt_test_util.h"

/* ---- CSV ------------------------------------------------------------------------- */
/* Each column becomes a file: a million of them took minutes, and no message. */
TEST(a_csv_has_so_many_columns_at_most) {
    enum { N = 70000 };
    RtImport how = {0};
    RtError err;
    char *wide = malloc(2 * N + 10);
    memcpy(wide, "id", 2);
    for (int i = 0; i < N; i++) memcpy(wide + 2 + 2 * i, ",a", 2);
    memcpy(wide + 2 + 2 * N, "\n", 2);
    CHECK(!csv(wide, "src,dst\n1,2\n", &how, &err));
    CHECK_MSG(strstr(err.text, "70001 fields: at most 65536 columns are possible"), "%s", err.text);
    free(wide);
}

TEST(all_kinds_of_columns) {
    RtImport how = {.node = "user"};
    RtError err;
    RtDataset *d = csv("\xef\xbb\xbfid;age;city:cat;x.0;x.1;y;split;t:time;code:id\r\n"
                       "ann;31;Rome;0.5;1e-1;2;train;2020-01-01;5\r\n"
                       "bob;40;\"Os\"\"lo; N\";-1;2;;val;1970-01-01T00:01:00.5Z;6\r\n"
                       "\r\n"
                       "cy;1;Rome;1;2;0;none;;7",
                       "dst,src,w\nbob,ann,2\ncy,bob,3\n", &how, &err);
    CHECK_MSG(d, "%s", err.text);
    if (!d) return;
    const RtTable *t = d->nodes;
    CHECK(t->count == 3 && t->n_columns == 7);
    const RtColumn *c = rt_table_column(t, "x");
    CHECK(c && c->rank == 2 && c->shape[1] == 2 && c->f32[1] == 0.1f && c->f32[2] == -1);
    c = rt_table_column(t, "city");
    CHECK(c && c->kind == RT_COL_CAT && c->n_categories == 2 && c->i32[0] == 1 && c->i32[1] == 0);
    CHECK_STR(c->names[0], "Os\"lo; N");
    c = rt_table_column(t, "y");
    CHECK(c && c->kind == RT_COL_CLASS && c->n_categories == 3 && c->i32[1] == -1);
    c = rt_table_column(t, "split");
    CHECK(c && c->splits[0] == 1 && c->splits[1] == 2 && c->splits[2] == 0);
    c = rt_table_column(t, "t");
    CHECK(c && c->f64[0] == 1577836800 && c->f64[1] == 60.5 && isnan(c->f64[2]));
    c = rt_table_column(t, "code");
    CHECK(c && c->kind == RT_COL_ID && c->i64[2] == 7);
    const RtTable *e = d->edges;
    CHECK(e->count == 2 && e->src[0] == 0 && e->dst[0] == 1 && e->src[1] == 1 && e->dst[1] == 2);
    CHECK(e->n_columns == 1 && e->columns[0].f32[1] == 3);
    rt_dataset_close(d);
}

static const char BAD_NODES[] = "id,age,y\n"
                                "1,30,a\n"
                                "2,x,b\n"   /* row 3: no number */
                                "1,31,b\n"  /* row 4: repeated */
                                "3,1,b,9\n" /* row 5: too many */
                                "4\n"       /* row 6: too few */
                                ",5,a\n"    /* row 7: no id */
                                "5,7,c\n"
                                "6,\"8,c\n"; /* row 9: open quote */
static const char BAD_EDGES[] = "src,dst\n1,5\n1,2\n9,5\n5,1\n";

TEST(bad_rows_are_all_told_and_fail) {
    Told told = {.n = 0};
    RtImport how = {.on_bad = tell, .user = &told};
    RtError err;
    CHECK(!csv(BAD_NODES, BAD_EDGES, &how, &err));
    CHECK_STR(err.text, "n.csv: row 5: too many fields (8 bad rows in all)");
    CHECK_STR(told.text, "n.csv: row 5: too many fields\n"
                         "n.csv: row 6: too few fields\n"
                         "n.csv: row 9: a quote is never closed\n"
                         "n.csv: row 3: column 'age': 'x' is not a number\n"
                         "n.csv: row 4: the id '1' is repeated: row 2 has it\n"
                         "n.csv: row 7: no id\n"
                         "e.csv: row 3: its destination '2' is no node\n"
                         "e.csv: row 4: its source '9' is no node\n");
}

TEST(a_column_taken_for_an_end_is_named) {
    RtImport how = {0};
    RtError err;
    CHECK(!csv("id,x\n1,2\n", "order_id,user\n7,1\n", &how, &err));
    CHECK_MSG(strstr(err.text, "its source '7' is no node (column 'order_id')"), "%s", err.text);
}

TEST(classes_may_be_written_as_reals) {
    RtDataset *d = csv_of("id,sort:class\n1,10.0\n2,\n3,2.0\n4,0\n", "src,dst\n1,2\n");
    if (!d) return;
    const RtColumn *c = &d->nodes[0].columns[0];
    CHECK(c->kind == RT_COL_CLASS && c->n_categories == 11);
    CHECK(c->i32[0] == 10 && c->i32[1] == -1 && c->i32[2] == 2 && c->i32[3] == 0);
    rt_dataset_close(d);
}

TEST(empty_numbers_are_zero_and_marked) {
    RtDataset *d = csv_of("id,a\n1,0.5\n2,\n3,1\n", "src,dst,w\n1,2,\n2,3,4\n");
    if (!d) return;
    const RtColumn *a = d->nodes[0].columns, *w = d->edges[0].columns;
    CHECK(a->kind == RT_COL_FLOAT && a->f32[0] == 0.5f && a->f32[1] == 0);
    CHECK(strcmp(a[1].name, "a_missing") == 0 && a[1].n_categories == 2);
    CHECK(a[1].i32[0] == 0 && a[1].i32[1] == 1 && a[1].i32[2] == 0);
    CHECK(w->f32[0] == 0 && strcmp(w[1].name, "w_missing") == 0 && w[1].i32[0] == 1);
    rt_dataset_close(d);
}

/* Whatever the column is called; numbers are times by its name alone. */
TEST(dates_are_times) {
    RtDataset *d = csv_of("id,created_at,measured_at,named,paid\n1,2024-01-31 10:00:00,7,2024,no\n"
                          "2,,8,soon,2020-01-05\n3,2024-02-01,9,later,2020-01-06\n",
                          "src,dst,since\n1,2,2020-01-02\n2,1,2020-01-03\n");
    if (!d) return;
    CHECK(d->nodes[0].columns[0].kind == RT_COL_TIME);
    CHECK(d->nodes[0].columns[1].kind == RT_COL_FLOAT);
    CHECK(d->nodes[0].columns[2].kind == RT_COL_CAT);
    CHECK(d->nodes[0].columns[3].kind == RT_COL_CAT); /* not a bad row */
    CHECK(d->edges[0].columns[0].kind == RT_COL_TIME);
    rt_dataset_close(d);
}

/* The kind of a column follows from its name and values, as in an .npz. */
TEST(kinds_of_columns) {
    RtImport how = {0};
    RtError err;
    RtDataset *d = csv("id,date,birth_date,date_text,y,labels,shop_id\n"
                       "1,2020-01-01,5,soon,0.5,b,7\n"
                       "2,,6.5,later,1,a,8\n"
                       "3,x,1970-01-02,never,2.5,,9\n",
                       "src,dst\n1,2\n", &how, &err);
    CHECK(!d && strstr(err.text, "row 4: column 'date': 'x' is not a time (1 bad row in all)"));
    how = (RtImport){.skip_bad = true};
    d = csv("id,date,birth_date,date_text,y,labels,shop_id\n"
            "1,2020-01-01,5,soon,0.5,b,7\n"
            "2,,6.5,later,1,a,8\n"
            "3,x,1970-01-02,never,2.5,,9\n",
            "src,dst\n1,2\n", &how, &err);
    CHECK_MSG(d, "%s", err.text);
    if (!d) return;
    static const rt_col_kind want[] = {RT_COL_TIME,  RT_COL_TIME,  RT_COL_CAT,
                                       RT_COL_FLOAT, RT_COL_CLASS, RT_COL_ID};
    for (int i = 0; i < 6; i++)
        CHECK_MSG(d->nodes->columns[i].kind == want[i], "%s is %s", d->nodes->columns[i].name,
                  rt_col_kind_name(d->nodes->columns[i].kind));
    rt_dataset_close(d);
}

TEST(an_id_is_taken_even_where_its_row_is_bad) {
    Told told = {.n = 0};
    RtImport how = {.on_bad = tell, .user = &told};
    RtError err;
    CHECK(!csv("id,age\n1,x\n1,2\n2,3\n3,4\n", "src,dst\n2,3\n", &how, &err));
    CHECK_STR(told.text, "n.csv: row 2: column 'age': 'x' is not a number\n"
                         "n.csv: row 3: the id '1' is repeated: row 2 has it\n");
}

TEST(bad_rows_can_be_left_out) {
    RtImport how = {.skip_bad = true};
    RtError err;
    RtDataset *d = csv(BAD_NODES, BAD_EDGES, &how, &err);
    CHECK_MSG(d, "%s", err.text);
    if (!d) return;
    CHECK(how.n_bad == 8 && d->nodes->count == 2 && d->edges->count == 2);
    CHECK(rt_table_column(d->nodes, "id")->i64[1] == 5);
    rt_dataset_close(d);
}

TEST(edges_alone_name_their_nodes) {
    RtImport how = {0};
    RtError err;
    RtDataset *d = csv(NULL, "from\tto\n10\t9\n9\t200\n", &how, &err);
    CHECK_MSG(d, "%s", err.text);
    if (!d) return;
    CHECK(d->nodes->count == 3 && d->edges->src[0] == 1 && d->edges->dst[1] == 2);
    CHECK(rt_table_column(d->nodes, "id")->i64[2] == 200);
    rt_dataset_close(d);
    d = csv(NULL, "a,b\nann,bob\nbob,cy\n", &how, &err);
    CHECK(d && d->nodes->count == 3 && d->edges->dst[1] == 2);
    CHECK(d && !rt_table_column(d->nodes, "id"));
    rt_dataset_close(d);
}

TEST(undirected_carries_columns) {
    RtImport how = {.undirected = true};
    RtError err;
    RtDataset *d = csv(NULL, "src,dst,w\n0,1,5\n1,2,6\n1,0,7\n", &how, &err);
    CHECK_MSG(d, "%s", err.text);
    if (!d) return;
    CHECK(d->edges->count == 4);
    for (int64_t e = 0; e < d->edges->count; e++) {
        int32_t s = d->edges->src[e], t = d->edges->dst[e];
        float want = s == 0 ? 5 : t == 0 ? 7 : 6;
        CHECK(d->edges->columns[0].f32[e] == want);
    }
    rt_dataset_close(d);
}

TEST(headers_are_checked) {
    static const struct {
        const char *edges, *text;
    } bad[] = {
        {"", "e.csv: row 1: a header with column names is expected"},
        {"src\n1\n", "e.csv: row 1: two columns of node ids are needed"},
        {"src,dst,a,a\n1,2,3,4\n", "e.csv: row 1: column 'a' is repeated"},
        {"src,dst,a:csr\n1,2,3\n", "e.csv: row 1: 'a:csr': the kind of a column is one of float, "
                                   "cat, class, time, id, split"},
        {"src,dst,\n1,2,3\n", "e.csv: row 1: a column has no name"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        RtImport how = {0};
        RtError err;
        CHECK(!csv(NULL, bad[i].edges, &how, &err));
        CHECK_STR(err.text, bad[i].text);
    }
}

TEST(cells) {
    double v;
    int64_t i;
    CHECK(rt_cell_number("-1.5e3", &v) && v == -1500);
    CHECK(!rt_cell_number("", &v) && !rt_cell_number("nan", &v) && !rt_cell_number("0x1", &v));
    CHECK(!rt_cell_number("1e999", &v) && !rt_cell_number("1 ", &v));
    CHECK(rt_cell_integer("-7", &i) && i == -7);
    CHECK(!rt_cell_integer("-", &i) && !rt_cell_integer("99999999999999999999", &i));
    CHECK(rt_cell_time("2000-02-29 12:00", &v) && v == 951825600);
    CHECK(rt_cell_time("1969-12-31", &v) && v == -86400);
    CHECK(!rt_cell_time("2000-13-01", &v) && !rt_cell_time("2000-01-01 25:00", &v));
    CHECK(!rt_cell_time("2001-02-31", &v) && !rt_cell_time("1900-02-29", &v));
    CHECK(!rt_cell_time("2001-04-31", &v) && rt_cell_time("2001-12-31", &v));
    CHECK(rt_cell_time("2000-02-29T12:00Z", &v) && v == 951825600);
    CHECK(rt_cell_time("2000-02-29 14:30+02:30", &v) && v == 951825600);
    CHECK(rt_cell_time("2000-02-29T09:00:00.5-03", &v) && v == 951825600.5);
    CHECK(rt_cell_time("2000-02-29 13:00:00+0100", &v) && v == 951825600);
    CHECK(rt_cell_time("0000-01-01", &v) && v < -62e9 && rt_cell_time("9999-12-31", &v));
    static const char *const none[] = {"2000-02-29+01:00",        "2000-02-29 12:00+1",
                                       "2000-02-29 12:00+01:",    "2000-02-29 12:00+24:00",
                                       "2000-02-29 12:00+01:60",  "2000-02-29 12:00Z+01",
                                       "2000-02-29 12:00+01:00Z", "2000-02-29 12:00+01:001"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        CHECK_MSG(!rt_cell_time(none[i], &v), "%s", none[i]);
    CHECK(!rt_cell_time("2000-01-01x", &v) && !rt_cell_time("2000", &(double){0}) == false);
}

/* ---- what was lost without a word ---------------------------------------------------- */
TEST(a_first_row_of_numbers_is_an_edge) {
    Told told = {.n = 0};
    RtImport how = {.on_warning = tell, .user = &told};
    RtError err;
    RtDataset *d = csv(NULL, "0,1,0.5\n1,2,1\n0,2,2\n", &how, &err);
    CHECK_MSG(d && d->edges->count == 3 && d->edges->src[0] == 0, "%s", err.text);
    CHECK(d && rt_table_column(d->edges, "weight")->f32[0] == 0.5f);
    rt_dataset_close(d);
    CHECK(!csv(NULL, "ann,bob,3\nbob,cy,4\n", &how, &err));
    CHECK_STR(err.text, "e.csv: row 1: '3' among names of columns: is this a header? --header "
                        "e.csv=yes, or no");
    CHECK(!csv(NULL, "ann,bob\nbob,cy\n", &how, &err));
    CHECK_STR(err.text, "e.csv: row 1: 'bob' is the name of a node, too: is this a header? "
                        "--header e.csv=yes, or no");
    CHECK(!csv("id,a\nann,1\nbob,1\n", "ann,bob\n", &how, &err));
    CHECK(told.n == 0);
    d = csv(NULL, "a,b\nann,bob\nbob,cy\n", &how, &err);
    CHECK(d && d->edges->count == 2);
    CHECK(warned(&told, "e.csv: row 1 is taken for names of columns, 'a' and 'b' for the ends"));
    rt_dataset_close(d);
    how.header = RT_HEADER_NO;
    d = csv(NULL, "ann,bob\nbob,cy\n", &how, &err);
    CHECK_MSG(d && d->edges->count == 2 && d->nodes->count == 3, "%s", err.text);
    rt_dataset_close(d);
    how.header = RT_HEADER_YES;
    d = csv(NULL, "1,2\n3,4\n", &how, &err);
    CHECK(d && d->edges->count == 1);
    rt_dataset_close(d);
}

TEST(names_of_nodes_are_kept) {
    char names[64];
    RtImport how = {.skip_bad = true};
    RtError err;
    RtDataset *d = csv("id,a\nann,1\nbob,x\n\"c\\\ny\",2\n", "src,dst\nann,\"c\\\ny\"\n", &how,
                       &err),
              *back;
    CHECK_MSG(d && d->nodes->count == 2 && d->nodes->names, "%s", err.text);
    if (!d) return;
    CHECK_STR(d->nodes->names[1], "c\\\ny");
    const char *dir = scratch_new();
    char to[128], file[192];
    snprintf(to, sizeof to, "%s/d", dir);
    snprintf(file, sizeof file, "%s/node.vertex.names.txt", to);
    CHECK(rt_dataset_write(d, to, false, &err) == GNNC_OK);
    FILE *f = fopen(file, "rb");
    CHECK(f && fread(names, 1, sizeof names, f) == 11 && !memcmp(names, "ann\nc\\\\\\ny\n", 11));
    if (f) fclose(f);
    CHECK_MSG(rt_dataset_open(NULL, to, true, &back, &err) == GNNC_OK, "%s", err.text);
    rt_dataset_close(back);
    rt_dataset_close(d);
    scratch_remove(dir);
    d = csv("id\n007\n7\n", "src,dst\n7,007\n", &how, &err); /* two nodes, and one number */
    CHECK(d && d->nodes->names && !rt_table_column(d->nodes, "id"));
    rt_dataset_close(d);
}

TEST(decimal_commas_are_numbers) {
    RtImport how = {0};
    RtError err;
    RtDataset *d = csv("id;v;x.0;x.1\n0;1,5;0;2,5\n1;2;1;-1,25\n", "src;dst\n0;1\n", &how, &err);
    CHECK_MSG(d, "%s", err.text);
    const RtColumn *v = d ? d->nodes->columns : NULL;
    CHECK(v && v->kind == RT_COL_FLOAT && v->f32[0] == 1.5f && v[1].f32[3] == -1.25f);
    rt_dataset_close(d);
    CHECK(!csv("id,v\n0,\"1,5\"\n1,2\n", "src,dst\n0,1\n", &how, &err));
    CHECK_MSG(strstr(err.text, "n.csv: row 2: column 'v': '1,5': a comma in a number"), "%s",
              err.text);
    CHECK(!csv("id;v\n0;1.234,5\n1;2\n", "src;dst\n0;1\n", &how, &err));
    d = csv("id,v:cat\n0,\"1,5\"\n1,2\n", "src,dst\n0,1\n", &how, &err);
    CHECK(d && d->nodes->columns->kind == RT_COL_CAT);
    rt_dataset_close(d);
}

/* A text that comes back is no slip, and its rows are not to be left out. */
TEST(texts_among_numbers_are_offered_their_kind) {
    RtImport how = {0};
    RtError err;
    CHECK(!csv("id,Size\n1,40\n2,S\n3,41\n4,S\n5,42\n", "src,dst\n1,3\n", &how, &err));
    CHECK_STR(how.cure, "texts among numbers are read by --kind vertex.Size=cat");
    how = (RtImport){0};
    CHECK(!csv("id,Size\n1,40\n2,x\n3,41\n4,4\n5,42\n", "src,dst\n1,3\n", &how, &err));
    CHECK_STR(how.cure, "");
}

TEST(absent_numbers_have_many_names) {
    RtDataset *d =
        csv_of("id,shop_id,a,when_time\n1,3.0,NULL,5\n2,,1,NaN\n3,\\N,2,7\n", "src,dst\n1,2\n");
    if (!d) return;
    const RtColumn *id = rt_table_column(d->nodes, "shop_id"), *a = rt_table_column(d->nodes, "a");
    CHECK(id && id->i64[0] == 3 && id->i64[1] == INT64_MIN && id->i64[2] == INT64_MIN);
    CHECK(a && a->kind == RT_COL_FLOAT && a->f32[0] == 0 && a[1].i32[0] == 1);
    CHECK(isnan(rt_table_column(d->nodes, "when_time")->f64[1]));
    rt_dataset_close(d);
}

TEST(each_column_says_why) {
    RtImport how = {.n_kinds = 1, .kinds = {{.column = "b", .kind = RT_COL_CAT}}};
    RtError err;
    RtDataset *d =
        csv("id,a,b,c,y,when,e:float,t\n1,2,3,u,1,2020-01-02,4,5\n", "src,dst\n1,1\n", &how, &err);
    static const char *const want[] = {"numbers",
                                       "--kind says so",
                                       "texts",
                                       "its name is a label's",
                                       "all cells are dates",
                                       "its header says so",
                                       "its name is a time's",
                                       "names the nodes"};
    CHECK_MSG(d, "%s", err.text);
    for (int i = 0; d && i < 8; i++) CHECK_STR(d->nodes->columns[i].why, want[i]);
    rt_dataset_close(d);
}

TEST(keys_that_became_features_are_told) {
    Told told = {.n = 0};
    RtImport how = {.on_warning = tell, .user = &told};
    RtError err;
    RtDataset *d =
        csv("id,customerid,paid,CityID\n1,17,1,3\n2,18,0,4\n", "src,dst\n1,2\n", &how, &err);
    CHECK(d && rt_table_column(d->nodes, "CityID")->kind == RT_COL_ID);
    CHECK(d && rt_table_column(d->nodes, "paid")->kind == RT_COL_FLOAT);
    CHECK(
        warned(&told, "n.csv: column 'customerid' looks like a key and became a feature (float)"));
    CHECK(!strstr(told.text, "paid") && !strstr(told.text, "CityID"));
    rt_dataset_close(d);
}

/* ---- splits ------------------------------------------------------------------------- */
static RtDataset *split_of(const char *nodes, const char *edges, const char *parts,
                           const char *by_time, RtError *err) {
    RtImport how = {0};
    RtSplitHow split = {.by_time = by_time};
    RtDataset *d = csv(nodes, edges, &how, err);
    CHECK_MSG(d && rt_split_parse(parts, &split), "%s: %s", parts, err->text);
    if (d && rt_import_split(d, &split, err) == GNNC_OK) return d;
    rt_dataset_close(d);
    return NULL;
}

/* How many rows are in parts 0 to 3. */
static bool counts(const RtTable *t, int none, int train, int val, int test) {
    const RtColumn *c = rt_table_column(t, "split");
    int n[4] = {0};
    for (int64_t i = 0; c && i < t->count; i++) n[c->splits[i]]++;
    return c && n[0] == none && n[1] == train && n[2] == val && n[3] == test;
}

TEST(splits_of_labelled_nodes_are_drawn) {
    char nodes[1024] = "id,y\n";
    RtError err;
    for (int i = 0; i < 100; i++)
        snprintf(nodes + strlen(nodes), sizeof nodes - strlen(nodes), i < 90 ? "%d,%d\n" : "%d,\n",
                 i, i % 3);
    RtDataset *a = split_of(nodes, "src,dst\n0,1\n", "80/10/10", NULL, &err);
    RtDataset *b = split_of(nodes, "src,dst\n0,1\n", "vertex=0.8/0.1/0.1", NULL, &err);
    CHECK_MSG(a && counts(a->nodes, 10, 72, 9, 9), "%s", err.text); /* those with a label */
    CHECK(b && !memcmp(rt_table_column(a->nodes, "split")->splits,
                       rt_table_column(b->nodes, "split")->splits, 100));
    CHECK(a && !rt_table_column(a->edges, "split"));
    CHECK(a && rt_import_split(a, &(RtSplitHow){.part = {0.5, 0, 0.5}}, &err) == GNNC_E_STATE);
    CHECK_MSG(strstr(err.text, "'vertex' has a split; --replace-split makes another"), "%s",
              err.text);
    RtSplitHow other = {.part = {0.5, 0, 0.5}, .replace = true, .seed = 7};
    CHECK(a && rt_import_split(a, &other, &err) == GNNC_OK && counts(a->nodes, 10, 45, 0, 45));
    rt_dataset_close(a);
    rt_dataset_close(b);
}

/* Rows of one time are never on two sides of a cut, and the newest test. */
TEST(splits_by_time_are_cut_at_moments) {
    static const char nodes[] =
        "id,y,date\n1,0,2020-01-03\n2,0,2020-01-01\n3,1,2020-01-02\n"
        "4,1,2020-01-02\n5,0,2020-01-02\n6,1,2020-01-04\n7,1,\n8,,2020-01-01\n";
    RtError err;
    RtDataset *d = split_of(nodes, "src,dst\n1,2\n", "50/25/25", "date", &err);
    CHECK_MSG(d, "%s", err.text);
    static const int8_t want[] = {2, 1, 1, 1, 1, 3, 0, 0};
    CHECK(d && !memcmp(rt_table_column(d->nodes, "split")->splits, want, 8));
    rt_dataset_close(d);
    CHECK(
        !split_of("id,y,date\n1,0,5\n2,1,5\n3,1,5\n", "src,dst\n1,2\n", "80/10/10", "date", &err));
    CHECK_MSG(strstr(err.text, "those of one time together: 80/10/10 leaves a part empty"), "%s",
              err.text);
    CHECK(!split_of(nodes, "src,dst\n1,2\n", "80/10/10", "y", &err));
    CHECK_MSG(strstr(err.text, "column 'y' of 'vertex' is no time; --kind vertex.y=time"), "%s",
              err.text);
    CHECK(!split_of(nodes, "src,dst\n1,2\n", "80/10/10", "when", &err));
    CHECK(!split_of(nodes, "src,dst\n1,2\n", "people=80/10/10", NULL, &err));
    CHECK_MSG(strstr(err.text, "there is no table 'people'"), "%s", err.text);
}

/* Both directions of an edge, and its doubles, are in one part. */
TEST(splits_of_edges_keep_pairs_together) {
    char edges[4096] = "src,dst\n";
    RtError err;
    for (int i = 0; i < 300; i++)
        snprintf(edges + strlen(edges), sizeof edges - strlen(edges), "%d,%d\n",
                 i < 150 ? i % 30 : i / 5 % 30, i < 150 ? i / 5 : i % 30);
    RtDataset *d = split_of(NULL, edges, "70/10/20", NULL, &err);
    CHECK_MSG(d, "%s", err.text);
    const int8_t *part = d ? rt_table_column(d->edges, "split")->splits : NULL;
    int n[4] = {0};
    for (int i = 0; part && i < 300; i++) n[part[i]]++;
    for (int i = 0; part && i < 300; i++)
        for (int k = 0; k < i; k++) {
            const RtTable *t = d->edges;
            bool same = (t->src[i] == t->src[k] && t->dst[i] == t->dst[k]) ||
                        (t->src[i] == t->dst[k] && t->dst[i] == t->src[k]);
            CHECK(!same || part[i] == part[k]);
        }
    CHECK(n[0] == 0 && abs(n[1] - 210) <= 3 && abs(n[2] - 30) <= 3);
    rt_dataset_close(d);
}

TEST(a_split_survives_every_failed_allocation) {
    gnnc_status st = GNNC_E_NOMEM;
    for (long k = 0; st != GNNC_OK && k < 200; k++) {
        FailingAlloc f;
        RtDataset *d;
        RtImport how = {0};
        RtError err = {""};
        RtAlloc from = failing(&f, k);
        RtNamedBytes n = {"n", bytes("id,y,t\n1,0,5\n2,1,6\n3,1,7\n")},
                     e = {"e", bytes("src,dst\n1,2\n")};
        st = rt_import_csv_bytes(&from, &n, &e, &how, &d, &err);
        RtSplitHow split = {.part = {0.34, 0.33, 0.33}, .by_time = "t"};
        if (st == GNNC_OK) st = rt_import_split(d, &split, &err);
        CHECK_MSG(st == GNNC_OK || st == GNNC_E_NOMEM, "call %ld: %d %s", k, st, err.text);
        rt_dataset_close(d);
        CHECK(f.n_live == 0);
    }
    CHECK(st == GNNC_OK);
}

TEST(parts_of_a_split_are_checked) {
    static const char *const bad[] = {"80/20", "80/10/20",  "a/b/c",    "80/10/10/0", "0/50/50",
                                      "",      "=80/10/10", "80,10,10", "-80/90/90"};
    RtSplitHow how;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_MSG(!rt_split_parse(bad[i], &how), "%s", bad[i]);
    CHECK(rt_split_parse("n=90/0/10", &how) && how.part[2] == 0.1);
    CHECK_STR(how.table, "n");
}

/* ---- edge lists -------------------------------------------------------------------- */
static RtDataset *edge_list(const char *text, RtImport *how, RtError *err) {
    RtDataset *d;
    *err = (RtError){""};
    rt_import_edge_list_bytes(NULL, bytes(text), "e.txt", how, &d, err);
    return d;
}

TEST(edge_lists) {
    RtImport how = {.n_nodes = 3};
    RtError err;
    RtDataset *d = edge_list("# c\n% d\n\n0 1\n1\t0\r\n 5, 2", &how, &err);
    CHECK(d && d->nodes->count == 6 && d->edges->count == 3 && d->edges->src[2] == 5);
    CHECK(d && d->edges->n_columns == 0);
    rt_dataset_close(d);
    how.n_nodes = 10;
    d = edge_list("0 1 0.5\n1 2 3\n", &how, &err);
    CHECK(d && d->nodes->count == 10 && d->edges->columns[0].f32[0] == 0.5f);
    rt_dataset_close(d);
    d = edge_list("", &how, &err);
    CHECK(d && d->edges->count == 0 && d->nodes->count == 10);
    rt_dataset_close(d);
}

/* 13 bytes made a data set of 2^31 nodes. */
TEST(a_few_edges_do_not_make_a_graph_of_gigabytes) {
    RtImport how = {0};
    RtError err;
    CHECK(!edge_list("0 2147483646\n", &how, &err));
    CHECK_STR(err.text,
              "e.txt: node 2147483646 is the largest of 1 row, so nearly every node would "
              "have no edge; --nodes 2147483647 says that there are so many");
    CHECK(!edge_list("0 2000\n", &how, &err));
    how.n_nodes = 2001;
    RtDataset *d = edge_list("0 2000\n", &how, &err);
    CHECK(d && d->nodes->count == 2001);
    rt_dataset_close(d);
}

TEST(bad_lines_of_edge_lists) {
    Told told = {.n = 0};
    RtImport how = {.on_bad = tell, .user = &told};
    RtError err;
    CHECK(!edge_list("0 1\nx 1\n1\n0 -1\n0 1 2\n0 1 2 3\n0 99999999999\n", &how, &err));
    CHECK_STR(told.text, "e.txt: row 2: 'x' is no node number\n"
                         "e.txt: row 3: two node numbers are expected\n"
                         "e.txt: row 4: '-1' is no node number\n"
                         "e.txt: row 5: not as many fields as the rows before\n"
                         "e.txt: row 6: more than three fields\n"
                         "e.txt: row 7: '99999999999' is no node number\n");
    CHECK_STR(err.text, "e.txt: row 2: 'x' is no node number (6 bad rows in all)");
}

/* ---- Planetoid ------------------------------------------------------------------------ */
static const char FIXTURES[] = "tests/fixtures/planetoid";

static bool have_fixtures(void) {
    return access("tests/fixtures/planetoid/ind.tiny2.x", R_OK) == 0; /* run from the root */
}

static void check_tiny(const char *name) {
    RtImport how = {0};
    RtError err = {""};
    RtDataset *d;
    rt_import_planetoid(NULL, FIXTURES, name, &how, &d, &err);
    CHECK_MSG(d, "%s", err.text);
    if (!d) return;
    CHECK(d->nodes->count == 9);
    const RtColumn *x = rt_table_column(d->nodes, "x"), *y = rt_table_column(d->nodes, "y");
    const int32_t labels[9] = {0, 1, 0, 1, 0, 1, -1, 1, 0};
    CHECK(y && !memcmp(y->i32, labels, sizeof labels) && y->n_categories == 2);
    const int64_t ptr[10] = {0, 2, 3, 4, 6, 7, 9, 9, 10, 11};
    CHECK(x && !memcmp(x->csr.ptr, ptr, sizeof ptr) && x->csr.n_cols == 4);
    CHECK(x && x->csr.val[9] == 5 && x->csr.val[10] == 4); /* node 7 is tx[2], 8 is tx[1] */
    const int8_t split[9] = {1, 1, 2, 2, 2, 3, 0, 3, 3};
    CHECK(!memcmp(rt_table_column(d->nodes, "split")->splits, split, sizeof split));
    const int32_t src[10] = {0, 0, 1, 2, 3, 4, 4, 5, 7, 8},
                  dst[10] = {1, 5, 0, 3, 2, 7, 8, 0, 4, 4};
    CHECK(d->edges->count == 10 && !memcmp(d->edges->src, src, sizeof src));
    CHECK(!memcmp(d->edges->dst, dst, sizeof dst));
    rt_dataset_close(d);
}

TEST(planetoid) {
    if (!have_fixtures()) return;
    check_tiny("tiny2");
    check_tiny("tiny4");
    RtImport how = {0};
    RtError err = {""};
    RtDataset *d;
    CHECK(rt_import_planetoid(NULL, FIXTURES, "none", &how, &d, &err) == GNNC_E_IO);
    CHECK_STR(err.text,
              "tests/fixtures/planetoid/ind.none.x: cannot open: No such file or directory");
}

static void load_tiny(RtPool *pool, RtBytes file[RT_PLANETOID_FILES]) {
    for (int i = 0; i < RT_PLANETOID_FILES; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/ind.tiny4.%s", FIXTURES, rt_planetoid_parts[i]);
        CHECK(rt_file_map(pool, path, &file[i], NULL) == GNNC_OK);
    }
}

TEST(no_changed_or_missing_byte_of_a_pickle_crashes) {
    RtPool pool;
    RtBytes file[RT_PLANETOID_FILES];
    if (!have_fixtures()) return;
    rt_pool_init(&pool, NULL);
    load_tiny(&pool, file);
    for (int part = 0; part < RT_PLANETOID_FILES; part++) {
        RtBytes whole = file[part];
        for (size_t i = 0; i < 2 * whole.n; i++) {
            RtImport how = {0};
            RtDataset *d;
            size_t n = i < whole.n ? i : whole.n;
            uint8_t *copy = malloc(n ? n : 1);
            memcpy(copy, whole.p, n);
            if (i >= whole.n) copy[i - whole.n] ^= 0x55;
            file[part] = (RtBytes){copy, n};
            rt_import_planetoid_bytes(NULL, file, &how, &d, NULL);
            rt_dataset_close(d);
            free(copy);
        }
        file[part] = whole;
    }
    rt_pool_free(&pool);
}

TEST(pickles_are_never_executed) {
    static const char evil[] = "\x80\x02"
                               "cos\nsystem\nU\x04true\x85R.";
    RtPool pool;
    RtPy *v;
    RtError err = {""};
    RtArray a;
    rt_pool_init(&pool, NULL);
    CHECK(rt_pickle_parse(&pool, (RtBytes){(const uint8_t *)evil, sizeof evil - 1}, "p", &v,
                          NULL) == GNNC_OK);
    CHECK(v->kind == RT_PY_OBJECT && rt_pickle_array(&pool, v, "p", &a, &err) == GNNC_E_FORMAT);
    CHECK_STR(err.text, "p: a NumPy array is expected");
    rt_pool_free(&pool);
}

TEST(every_failed_allocation_is_survived) {
    RtPool pool;
    RtBytes file[RT_PLANETOID_FILES];
    rt_pool_init(&pool, NULL);
    if (have_fixtures()) load_tiny(&pool, file);
    RtNamedBytes n = {"n", bytes("id,a,c:cat,y\n1,2,u,a\n2,3,v,b\n")},
                 e = {"e", bytes("src,dst,w\n1,2,3\n2,1,3\n")};
    for (int form = 0; form < (have_fixtures() ? 5 : 4); form++) {
        gnnc_status st = GNNC_E_NOMEM;
        for (long k = 0; st != GNNC_OK && k < 2000; k++) {
            FailingAlloc f;
            RtDataset *d = NULL;
            RtImport how = {.undirected = form != 3, .node = form == 3 ? "a,b" : NULL};
            RtAlloc from = failing(&f, k);
            if (form == 0) st = rt_import_csv_bytes(&from, &n, &e, &how, &d, NULL);
            if (form == 1) st = rt_import_csv_bytes(&from, NULL, &e, &how, &d, NULL);
            if (form == 2)
                st = rt_import_edge_list_bytes(&from, bytes("0 1\n"), "e", &how, &d, NULL);
            if (form == 3) st = rt_import_csv_bytes(&from, NULL, &e, &how, &d, NULL);
            if (form == 4) st = rt_import_planetoid_bytes(&from, file, &how, &d, NULL);
            CHECK(st == GNNC_OK || st == GNNC_E_NOMEM);
            rt_dataset_close(d);
            CHECK(f.n_live == 0);
        }
        CHECK(st == GNNC_OK);
    }
    rt_pool_free(&pool);
}

/* ---- the command ------------------------------------------------------------------------- */
static int command(char *out_text, char *err_text, size_t cap, int argc, char **argv) {
    FILE *out = fmemopen(out_text, cap, "w"), *err = fmemopen(err_text, cap, "w");
    int rc = gnnc_import_main(argc, argv, NULL, out, err);
    fclose(out);
    fclose(err);
    return rc;
}

#define RUN(...)                                                                                   \
    command(out, err, sizeof out, (int)(sizeof((char *[]){__VA_ARGS__}) / sizeof(char *)),         \
            (char *[]){__VA_ARGS__})

TEST(the_command) {
    char out[4096] = "", err[4096] = "", edges[128], to[128], other[128], link[128];
    const char *dir = scratch_new();
    snprintf(edges, sizeof edges, "%s/e.csv", dir);
    snprintf(to, sizeof to, "%s/data", dir);
    snprintf(other, sizeof other, "%s/other", dir);
    snprintf(link, sizeof link, "%s/link", dir);
    write_file(edges, "src,dst\n1,2\n2,3\n2,\n", 19);
    CHECK(RUN("import") == 2 && strstr(err, "no input"));
    CHECK(RUN("import", edges) == 2 && strstr(err, "-o DIR"));
    CHECK(RUN("import", edges, "-o") == 2 && strstr(err, "-o needs a value"));
    CHECK(RUN("import", edges, "--nodes=x", "-o", to) == 2);
    CHECK(RUN("import", edges, edges, edges, "-o", to) == 2 && strstr(err, "by their folder"));
    CHECK(RUN("import", edges, "--what", "-o", to) == 2 && strstr(err, "unknown option --what"));
    CHECK(RUN("import", edges, "--kind", "y=clas", "-o", to) == 2);
    CHECK_MSG(strstr(err, "there is no kind 'clas'; there are float, cat, class,"), "%s", err);
    CHECK(RUN("import", "--help") == 0 && strstr(out, "usage:"));
    CHECK(RUN("import", edges, "-o", to, "--node", "n", "--edge=e") == 1);
    CHECK_MSG(strstr(err, "e.csv: row 4: it has no destination"), "%s", err);
    CHECK(count_entries(dir) == 1); /* nothing half-written */
    CHECK(RUN("import", edges, "-o", to, "--node", "n", "--edge=e", "--skip-bad") == 0);
    CHECK_MSG(strstr(out, "node n: 3\n") && strstr(out, "edge e: n -> n: 2\n"), "%s", out);
    CHECK_MSG(strstr(out, "1 bad row left out of "), "%s", out);
    CHECK(RUN("import", edges, "-o", to, "--skip-bad") == 1);
    CHECK_MSG(strstr(err, "data: exists already; --force replaces it"), "%s", err);
    CHECK(RUN("import", edges, "-o", other, "--skip-bad", "--scaffold", edges) == 1);
    CHECK_MSG(strstr(err, "e.csv: exists already; --force"), "%s", err);
    CHECK(count_entries(dir) == 2); /* not written: the model's place was taken */
    CHECK(symlink(to, link) == 0);
    CHECK(RUN("import", edges, "-o", link, "--skip-bad", "--force") == 1 &&
          strstr(err, "is a symbolic link; name the directory it leads to: ") && strstr(err, to));
    strcat(link, "/");
    CHECK(RUN("import", edges, "-o", link, "--force") == 1 && strstr(err, "is a symbolic link"));
    link[strlen(link) - 1] = 0;
    unlink(link);
    CHECK(RUN("import", "/nowhere.npz", "-o", (char *)dir, "--force") ==
          1); /* told before reading */
    CHECK_MSG(strstr(err, "exists and is not a data directory"), "%s", err);
    CHECK(RUN("import", "/nowhere.npz", "-o", edges) == 1);
    CHECK_MSG(strstr(err, "e.csv: exists and is not a directory"), "%s", err);
    CHECK(RUN("import", edges, "-o", to, "--skip-bad", "--force") == 0);
    CHECK(RUN("import", "/nowhere.npz", "-o", to, "--force") == 1 && strstr(err, "/nowhere.npz"));
    CHECK(count_entries(dir) == 2);
    CHECK(RUN("import", edges, "-o", to, "--split", "80/20") == 2 && strstr(err, "80/10/10"));
    CHECK(RUN("import", edges, "-o", to, "--by-time", "t") == 2 &&
          strstr(err, "goes with --split"));
    CHECK(RUN("import", edges, "-o", to, "--split=60/20/20", "--by-time=t", "--seed=1") == 2);
    CHECK(RUN("import", edges, "-o", to, "--split=60/20/20", "--seed=x") == 2);
    CHECK(RUN("import", edges, "-o", to, "--header", "maybe") == 2);
    CHECK(RUN("import", edges, "-o", to, "--header", "e.csv=maybe") == 2);
    CHECK(RUN("import", edges, "-o", to, "--header", "x.csv=no", "--skip-bad", "--force") == 1 &&
          strstr(err, "--header: there is no CSV file 'x.csv'"));
    CHECK(RUN("import", edges, "-o", to, "--skip-bad", "--force", "--split", "50/0/50") == 0);
    CHECK_MSG(strstr(out, "1 split, first: 1 train, 0 validation, 1 test  (--split, seed 0)"), "%s",
              out);
    scratch_remove(dir);
}

/* Writes `text` as the input; the command must fail, and say so. */
static void refuses(const char *name, const char *text, size_t n, const char *says) {
    char out[4096] = "", err[4096] = "", input[128], to[128];
    const char *dir = scratch_new();
    snprintf(input, sizeof input, "%s/%s", dir, name);
    snprintf(to, sizeof to, "%s/data", dir);
    write_file(input, text, n);
    CHECK(RUN("import", input, "-o", to) == 1);
    CHECK_MSG(strstr(err, says), "%s: %s", name, err);
    int lines = 0;
    for (const char *s = err; *s; s++) lines += *s == '\n';
    CHECK_MSG(lines <= 12, "%s: %d lines", name, lines);
    CHECK(count_entries(dir) == 1);
    scratch_remove(dir);
}

TEST(what_is_no_table_of_edges_is_refused) {
    static const char nodes[] = "id,x.0\n1,2\n", alike[] = "name,split\na,train\n";
    refuses("n.csv", nodes, strlen(nodes),
            "row 1: this is a table of nodes; edges have columns src");
    refuses("n.csv", alike, strlen(alike), "gnnc import NODES.csv EDGES.csv");
    RtImport how = {0};
    RtError err;
    CHECK(!csv("src,dst\n1,2\n", nodes, &how, &err));
    CHECK_MSG(strstr(err.text,
                     "n.csv: row 1: 'src' and 'dst' are ends of edges: the table of nodes comes"),
              "%s", err.text);
    CHECK(!csv(nodes, nodes, &how, &err));
    CHECK_MSG(strstr(err.text, "e.csv: row 1: this is a table of nodes, too"), "%s", err.text);
}

TEST(binary_files_are_refused) {
    static const struct {
        const char *bytes, *says;
    } files[] = {
        {"\x93NUMPY\1\n\n", "it is a .npy array; pack the arrays into an .npz"},
        {"PK\3\4abc", "it is a zip archive"},
        {"\x1f\x8b\x08", "it is packed with gzip"},
        {"SQLite format 3", "it is an SQLite database"},
        {"\xff\xfes\n", "it is UTF-16; save it as UTF-8"},
        {"ab\1\2\3\4,\n", "not a text file: it is binary data"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        for (int csv_file = 0; csv_file < 2; csv_file++)
            refuses(csv_file ? "e.csv" : "e.txt", files[i].bytes, strlen(files[i].bytes),
                    files[i].says);
}

TEST(few_bad_rows_are_told) {
    char text[4000] = "";
    for (int i = 0; i < 300; i++) strcat(text, "a b\n");
    refuses("e.txt", text, strlen(text), "and 290 more bad rows");
    refuses("e.txt", text, strlen(text), "row 1: 'a' is no node number (300 bad rows in all)");
}

TEST_MAIN()
