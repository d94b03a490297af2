/* What an import fits: means and deviations, codes for unknown names, and the file that says so. */
#include <math.h>

#include "csv_util.h"
#include "runtime/data/encoder.h"
#include "runtime/data/import_encode.h"
#include "runtime/data/import_split.h"

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
    CHECK(e->standard && e->gaps && e->mean == 1000000002 && e->deviation == 1);
    CHECK(c->f32[0] == -1 && c->f32[1] == 0 && c->f32[2] == 1 && c->f32[4] == 0);
    CHECK(c->f32[3] == (float)(7 - 1000000002.0) && column(d, "age_missing")->i32[1] == 1);
    CHECK(column(d, "y")->f32[0] == 5 && !column(d, "y")->encoder->standard); /* a label */
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

TEST_MAIN()
