/* What an import fits: means and deviations, codes for unknown names, and the file that says so. */
#include <math.h>

#include "csv_util.h"
#include "runtime/data/encoder.h"
#include "runtime/import/import_encode.h"
#include "runtime/import/import_split.h"

static const char NODES[] = "id,age,city,y:float,split\n"
                            "1,1000000001,rome,5,train\n2,,rome,6,train\n"
                            "3,1000000003,oslo,7,train\n4,7,kiev,8,test\n5,,<unknown>,9,none\n";
static const char EDGES[] = "src,dst,w\n1,2,1\n2,3,3\n";

/* Imported with these settings and a file of rules, "": none. */
static RtDataset *encoded(RtImport *how, const char *map, RtError *err) {
    RtNamedBytes rules = {"map", bytes(map)};
    how->map = *map ? &rules : NULL;
    RtDataset *d = csv(NODES, EDGES, how, err);
    how->map = NULL;
    if (!d || rt_import_encode(d, &(RtFitRows){0}, err) == GNNC_OK) return d;
    rt_dataset_close(d);
    return NULL;
}

static const RtColumn *column(const RtDataset *d, const char *name) {
    return rt_table_column(d->nodes, name);
}

TEST(numbers_are_standardised_by_the_rows_that_are_learned_from) {
    RtImport how = {.standardize = true};
    RtError err;
    RtDataset *d = encoded(&how, "", &err);
    CHECK_MSG(d, "%s", err.text);
    if (!d) return;
    const RtColumn *c = column(d, "age");
    const RtEncoder *e = c->encoder;
    CHECK(e->scale == RT_SCALE_STANDARD && e->gaps && e->mean == 1000000002 && e->deviation == 1);
    CHECK(c->f32[0] == -1 && c->f32[1] == 0 && c->f32[2] == 1 && c->f32[4] == 0);
    CHECK(c->f32[3] == (float)(7 - 1000000002.0) && column(d, "age_missing")->i32[1] == 1);
    CHECK(column(d, "y")->f32[0] == 5 && !column(d, "y")->encoder->scale); /* a label */
    c = &d->edges->columns[0];
    CHECK(c->f32[0] == -1 && c->f32[1] == 1 && c->encoder->mean == 2);
    rt_dataset_close(d);
    how.undirected = true; /* both directions, each with the edge's number */
    d = encoded(&how, "", &err);
    CHECK(d && d->edges->count == 4 && d->edges->columns->f32[3] * d->edges->columns->f32[0] == -1);
    rt_dataset_close(d);
}

TEST(a_split_that_is_made_says_which_rows_count) {
    RtImport how = {.standardize = true, .unknown = true};
    RtSplitHow by_time = {.part = {0.5, 0.25, 0.25}, .by_time = "t"};
    RtError err;
    RtDataset *d =
        csv("id,a,b,t,y\n1,1,x,1,0\n2,3,y,2,1\n3,100,z,3,0\n4,200,z,4,1\n", EDGES, &how, &err);
    CHECK_MSG(d, "%s", err.text);
    if (!d) return;
    CHECK(rt_import_split(d, &by_time, &err) == GNNC_OK &&
          rt_import_encode(d, &(RtFitRows){0}, &err) == GNNC_OK);
    CHECK(column(d, "a")->encoder->mean == 2 && column(d, "a")->encoder->deviation == 1);
    CHECK(column(d, "b")->n_categories == 3 && column(d, "b")->i32[2] == 0);
    rt_dataset_close(d);
}

TEST(names_that_nobody_learns_from_are_unknown) {
    RtImport how = {.unknown = true};
    RtError err;
    RtDataset *d = encoded(&how, "", &err);
    CHECK_MSG(d, "%s", err.text);
    if (!d) return;
    const RtColumn *c = column(d, "city");
    CHECK(c->n_categories == 3 && !memcmp(c->i32, (int32_t[]){2, 2, 1, 0, 0}, 20));
    CHECK_STR(c->names[0], RT_UNKNOWN_NAME);
    CHECK_STR(c->names[1], "oslo");
    rt_dataset_close(d);
    how = (RtImport){.rare = 2};
    d = encoded(&how, "", &err);
    CHECK(d && column(d, "city")->n_categories == 2 && column(d, "city")->i32[2] == 0);
    CHECK(d && column(d, "city")->encoder->rare == 2 && column(d, "city")->i32[0] == 1);
    rt_dataset_close(d);
}

TEST(a_file_says_what_columns_are) {
    static const struct {
        const char *map, *says;
    } wrong[] = {
        {"vertex.age\n", "map:1: key, drop"},
        {"\n vertex.age colour", "map:2: key, drop"},
        {"vertex.age float unknown", "behind 'float' may stand"},
        {"vertex.city cat standard", "behind 'float' may stand"},
        {"vertex.city cat unknown 5x", "behind 'float' may stand"},
        {"vertex.age float standard plain", "one or the other"},
        {"vertex.age float piecewise 2000", "behind 'float' may stand"},
        {"age float", "'table.column what'"},
        {"vertex.height float", "there is no column 'vertex.height'"},
        {"vertex.id float", "there is no column 'vertex.id' beside the keys"},
    };
    RtImport how = {.standardize = true, .unknown = true};
    RtError err;
    RtDataset *d = encoded(&how,
                           "vertex.age float plain # years\nvertex.city cat known\n"
                           "link.w drop\nvertex.y  float  standard",
                           &err);
    CHECK_MSG(d, "%s", err.text);
    if (!d) return;
    CHECK(column(d, "age")->f32[3] == 7 && !column(d, "city")->encoder->unknown);
    CHECK(d->edges->n_columns == 0 && column(d, "y")->encoder->mean == 6);
    rt_dataset_close(d);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK(!encoded(&how, wrong[i].map, &err));
        CHECK_MSG(strstr(err.text, wrong[i].says), "%s", err.text);
    }
}

TEST(what_cannot_be_standardised_is_left_or_told) {
    RtImport how = {.standardize = true};
    RtError err;
    RtDataset *d = csv("id,a,b:float\n1,5,\n2,5,\n3,5,\n", EDGES, &how, &err);
    CHECK_MSG(d && rt_import_encode(d, &(RtFitRows){0}, &err) == GNNC_OK, "%s", err.text);
    if (!d) return;
    CHECK(column(d, "a")->f32[1] == 0 && column(d, "a")->encoder->deviation == 1);
    CHECK(column(d, "b")->f32[1] == 0 && column(d, "b")->encoder->mean == 0);
    rt_dataset_close(d);
}

/* Rows 0 .. 999: `a` ascends, row 998 is an outlier of it, row 999 is held out. */
static RtDataset *thousand(const char *map, RtImport *how, RtError *err) {
    static char nodes[32768], edges[16384];
    RtNamedBytes rules = {"map", bytes(map)};
    size_t at = (size_t)sprintf(nodes, "id,a,split\n"), n = (size_t)sprintf(edges, "src,dst\n");
    for (int i = 0; i < 998; i++) {
        at += (size_t)sprintf(nodes + at, "%d,%d,train\n", i, i);
        n += (size_t)sprintf(edges + n, "%d,%d\n", i, i + 1);
    }
    sprintf(nodes + at, "998,1000000,train\n999,77777777,test\n");
    how->map = *map ? &rules : NULL;
    RtDataset *d = csv(nodes, edges, how, err);
    how->map = NULL;
    if (!d || rt_import_encode(d, &(RtFitRows){0}, err) == GNNC_OK) return d;
    rt_dataset_close(d);
    return NULL;
}

TEST(numbers_become_normal_by_their_quantiles) {
    RtImport how = {0};
    RtError err;
    RtDataset *d = thousand("vertex.a float quantile", &how, &err);
    CHECK_MSG(d, "%s", err.text);
    if (!d) return;
    const RtColumn *c = column(d, "a");
    const RtEncoder *e = c->encoder;
    CHECK(e->scale == RT_SCALE_QUANTILE && e->n_marks == 128 && c->rank == 1);
    CHECK(e->marks[0] == 0 && e->marks[127] == 1000000); /* not the one that is held out */
    double squares = 0, sum = 0;
    for (int i = 0; i < 999; i++) {
        sum += (double)c->f32[i];
        squares += (double)(c->f32[i] * c->f32[i]);
    }
    CHECK_MSG(fabs(sum / 999) < 0.01 && fabs(squares / 999 - 1) < 0.05, "%g %g", sum, squares);
    CHECK(fabsf(c->f32[499]) < 0.01f && fabsf(c->f32[840] - 1) < 0.02f); /* of 0.841 it is 1 */
    CHECK(c->f32[998] > 3 && c->f32[999] == c->f32[998]);
    rt_dataset_close(d);
    how.standardize = true; /* nobody says which: an outlier does */
    d = thousand("", &how, &err);
    CHECK(d && column(d, "a")->encoder->scale == RT_SCALE_QUANTILE);
    rt_dataset_close(d);
    d = thousand("vertex.a float standard", &how, &err);
    CHECK(d && column(d, "a")->encoder->scale == RT_SCALE_STANDARD);
    rt_dataset_close(d);
}

TEST(numbers_become_the_bins_that_they_pass) {
    RtImport how = {0};
    RtError err;
    RtDataset *d = thousand("vertex.a float piecewise 4", &how, &err);
    CHECK_MSG(d, "%s", err.text);
    if (!d) return;
    const RtColumn *c = column(d, "a");
    CHECK(c->rank == 2 && c->shape[1] == 4 && c->encoder->out == 4);
    CHECK(c->encoder->marks[1] == 250 && c->encoder->marks[4] == 1000000);
    const float *half = &c->f32[4 * 125], *held = &c->f32[4 * 999];
    CHECK(half[0] == 0.5f && half[1] == 0 && half[3] == 0);
    CHECK(held[0] == 1 && held[3] == 1 && c->f32[0] == 0 && c->f32[4 * 998 + 3] == 1);
    rt_dataset_close(d);
    RtNamedBytes rules = {"map", bytes("vertex.a float piecewise")};
    how.map = &rules;
    d = csv("id,a\n1,5\n2,\n3,5\n", EDGES, &how, &err);
    CHECK_MSG(d && rt_import_encode(d, &(RtFitRows){0}, &err) == GNNC_OK, "%s", err.text);
    if (!d) return;
    c = column(d, "a"); /* all are equal: one bin, and a gap is told beside */
    CHECK(c->shape[1] == 1 && c->f32[0] == 0 && column(d, "a_missing")->i32[1] == 1);
    rt_dataset_close(d);
}

/* Training rows lead over edges to the rows that tell; what hangs on rows held out does not. */
TEST(without_a_time_rows_tell_that_training_rows_reach) {
    static const RtNamedBytes files[] = {
        FILE_OF("shop.csv", "id,size\n1,10\n2,20\n3,600\n4,800\n"),
        FILE_OF("town.csv",
                "id,shop_id,big\n1,,1\n2,,3\n3,,900\n4,4,700\n"), /* nothing is sold in the last */
        FILE_OF("sale.csv", "id,shop_id,town_id,y,split\n1,1,1,0,train\n2,2,2,1,train\n"
                            "3,2,2,1,val\n4,3,3,1,test\n"),
    };
    RtImport how = {.standardize = true};
    RtError err;
    RtDataset *d = tables_of(files, 3, &how, &err);
    CHECK_MSG(d && rt_import_encode(d, &(RtFitRows){0}, &err) == GNNC_OK, "%s", err.text);
    if (!d) return;
    const RtColumn *size = rt_table_column(rt_dataset_nodes(d, "shop"), "size");
    const RtColumn *big = rt_table_column(rt_dataset_nodes(d, "town"), "big");
    CHECK(size->encoder->mean == 15 && size->encoder->deviation == 5 && size->f32[2] == 117);
    CHECK(big->encoder->mean == 2 && big->encoder->deviation == 1);
    rt_dataset_close(d);
}

/* A split by time says what was before it in tables that have no split, and of tables without a
 * time those rows tell that it leads to. */
TEST(with_a_split_by_time_rows_tell_that_are_older) {
    static const RtNamedBytes files[] = {
        FILE_OF("sale.csv", "id,date,y\n1,2020-01-01,0\n2,2020-01-02,1\n3,2020-01-03,0\n"
                            "4,2020-01-04,1\n"),
        FILE_OF("visit.csv", "id,sale_id,place_id,date,n\n1,1,1,2020-01-01,1\n"
                             "2,1,2,2020-01-02,3\n3,1,3,2020-01-03,800\n4,2,3,2020-01-09,900\n"
                             "5,1,3,,700\n"), /* nobody knows when */
        FILE_OF("place.csv", "id,size\n1,10\n2,20\n3,600\n"),
    };
    RtSplitHow by_time = {.part = {0.5, 0.25, 0.25}, .by_time = "date"};
    RtImport how = {.standardize = true};
    RtError err;
    RtDataset *d = tables_of(files, 3, &how, &err);
    CHECK_MSG(d && rt_import_split(d, &by_time, &err) == GNNC_OK, "%s", err.text);
    if (!d) return;
    CHECK(rt_import_encode(d, &(RtFitRows){.by_time = "date"}, &err) == GNNC_OK);
    const RtColumn *n = rt_table_column(rt_dataset_nodes(d, "visit"), "n");
    CHECK_MSG(n->encoder->mean == 2 && n->encoder->deviation == 1, "%g", n->encoder->mean);
    const RtColumn *size = rt_table_column(rt_dataset_nodes(d, "place"), "size");
    CHECK_MSG(size->encoder->mean == 15, "%g", size->encoder->mean);
    rt_dataset_close(d);
}

TEST_MAIN()
