/* gnnc_encoder: rows of cells become what an import makes of them, or an error. */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "csv_util.h"
#include "graph_util.h"
#include "runtime/data/encoder.h"
#include "runtime/import/import_encode.h"
#include "runtime/data/safetensors.h"
#include "tiny_program.h"

static const char NODES[] = "id,age,city,when,x.0,x.1,n,y,split\n"
                            "11,20.5,rome,31/01/2020,1,2,7,old,train\n"
                            "12,,oslo,,3,4,8,young,train\n"
                            "13,33,rome,01/02/2021,5,6.5,,,test\n";
static const char EDGES[] = "src,dst,w\n11,12,1\n12,13,3\n";
enum { ROWS = 3 };

/* The columns of NODES, as texts. */
static const char *const CELLS[][ROWS] = {
    {"11", "12", "13"},        {"20.5", NULL, "33"},
    {"rome", "oslo", "rome"},  {"31/01/2020", NULL, "01/02/2021"},
    {"1", "3", "5"},           {"2", "4", "6.5"},
    {"7", "8", NULL},          {"old", "young", NULL},
    {"train", "train", "test"}};
static const char *const HEADER[] = {"id", "age", "city", "when", "x.0", "x.1", "n", "y", "split"};
enum { COLUMNS = 9 };

typedef struct {
    char dir[64];
    RtDataset *d;
    gnnc_encoder *e;
    gnnc_cells cells[COLUMNS];
    gnnc_raw rows;
} Rig;

static void rig_open(Rig *r, RtImport how) {
    RtError err;
    *r = (Rig){.dir = "/tmp/cells_XXXXXX"};
    CHECK(mkdtemp(r->dir));
    r->d = csv(NODES, EDGES, &how, &err);
    CHECK_MSG(r->d && rt_import_encode(r->d, &(RtFitRows){0}, &err) == GNNC_OK, "%s", err.text);
    CHECK(rt_dataset_write(r->d, r->dir, true, &err) == GNNC_OK);
    CHECK(gnnc_encoder_create(&r->e) == GNNC_OK);
    CHECK_MSG(gnnc_encoder_read(r->e, r->dir) == GNNC_OK, "%s", gnnc_encoder_error(r->e));
    for (int i = 0; i < COLUMNS; i++) /* in any order */
        r->cells[COLUMNS - 1 - i] = (gnnc_cells){sizeof(gnnc_cells), HEADER[i], CELLS[i], NULL};
    r->rows = (gnnc_raw){.struct_size = sizeof r->rows,
                         .table = "vertex",
                         .count = ROWS,
                         .n_columns = COLUMNS,
                         .columns = r->cells};
}

static void rig_close(Rig *r) {
    char command[96];
    snprintf(command, sizeof command, "rm -r %s", r->dir);
    CHECK(system(command) == 0);
    gnnc_encoder_destroy(r->e);
    rt_dataset_close(r->d);
}

/* The cells of one column, for as long as the caller has them. */
static gnnc_cells *cells_of(Rig *r, const char *column) {
    for (int i = 0; i < COLUMNS; i++)
        if (strcmp(r->cells[i].column, column) == 0) return &r->cells[i];
    return NULL;
}

static bool refused(Rig *r, gnnc_status want, int64_t row, const char *says) {
    gnnc_status st = GNNC_OK;
    for (int i = 0; i < gnnc_encoder_n_columns(r->e, "vertex") && st == GNNC_OK; i++) {
        gnnc_encoded c = {.struct_size = sizeof c};
        double values[2 * ROWS];
        CHECK(gnnc_encoder_column(r->e, "vertex", i, &c) == GNNC_OK);
        size_t n = ROWS * rt_dtype_bytes(rt_column_kind((rt_col_kind)c.kind)->element);
        st = gnnc_encoder_encode(r->e, &r->rows, c.column, values, c.width ? 2 * n : n);
    }
    bool good = st == want && r->rows.bad_row == row && strstr(r->rows.error, says);
    if (!good) fprintf(stderr, "%d row %lld: %s\n", st, (long long)r->rows.bad_row, r->rows.error);
    return good;
}

TEST(cells_become_what_an_import_makes_of_them) {
    Rig r;
    for (int k = 0; k < 2; k++) {
        rig_open(&r, (RtImport){.standardize = k == 1, .unknown = k == 1});
        const RtTable *t = r.d->nodes;
        CHECK(gnnc_encoder_n_columns(r.e, "vertex") == t->n_columns);
        for (int i = 0; i < t->n_columns; i++) {
            const RtColumn *c = &t->columns[i];
            gnnc_encoded told = {.struct_size = sizeof told};
            char to[64] = "";
            size_t n = (size_t)(ROWS * rt_column_width(c)) *
                       rt_dtype_bytes(rt_column_kind(c->kind)->element);
            CHECK(gnnc_encoder_column(r.e, "vertex", i, &told) == GNNC_OK);
            CHECK((rt_col_kind)told.kind == c->kind && told.n_categories == c->n_categories);
            CHECK_MSG(gnnc_encoder_encode(r.e, &r.rows, c->name, to, n) == GNNC_OK, "%s",
                      r.rows.error);
            CHECK_MSG(memcmp(to, c->values, n) == 0, "%s", c->name);
        }
        rig_close(&r);
    }
}

TEST(numbers_are_cells_too) {
    Rig r;
    static const double age[ROWS] = {20.5, NAN, 33};
    float to[ROWS];
    rig_open(&r, (RtImport){.standardize = true});
    *cells_of(&r, "age") = (gnnc_cells){sizeof(gnnc_cells), "age", NULL, age};
    CHECK(gnnc_encoder_encode(r.e, &r.rows, "age", to, sizeof to) == GNNC_OK);
    CHECK(memcmp(to, rt_table_column(r.d->nodes, "age")->f32, sizeof to) == 0);
    *cells_of(&r, "city") = (gnnc_cells){sizeof(gnnc_cells), "city", NULL, age};
    CHECK(refused(&r, GNNC_E_RANGE, 0, "20.5 is a number where categories are texts"));
    *cells_of(&r, "city") = (gnnc_cells){sizeof(gnnc_cells), "city", CELLS[2], NULL};
    *cells_of(&r, "when") = (gnnc_cells){sizeof(gnnc_cells), "when", NULL, age};
    CHECK(refused(&r, GNNC_E_VALUE, 0, "20.5 is a number where times are dates"));
    rig_close(&r);
}

TEST(what_does_not_fit_is_told_by_row_and_column) {
    static const struct {
        const char *column, *cell, *says;
        gnnc_status st;
    } wrong[] = {
        {"age", "old", "vertex: row 1: column 'age': 'old' is not a number", GNNC_E_VALUE},
        {"city", "kiev", "row 1: column 'city': 'kiev' is not a category: 'oslo', 'rome', as /tmp",
         GNNC_E_RANGE},
        {"y", "dead", "column 'y': 'dead' is not a class: 'old', 'young'", GNNC_E_RANGE},
        {"when", "2020-01-31", "'2020-01-31' is not a time: day/month/year", GNNC_E_VALUE},
        {"x.1", "", "column 'x.1': an empty cell is not a number", GNNC_E_VALUE},
        {"split", "trn", "column 'split': 'trn' is not one of", GNNC_E_VALUE},
        {"id", "1.5", "column 'id': '1.5' is not a whole number", GNNC_E_VALUE},
    };
    Rig r;
    rig_open(&r, (RtImport){0});
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        gnnc_cells *c = cells_of(&r, wrong[i].column), before = *c;
        const char *texts[ROWS] = {before.texts[0], wrong[i].cell, before.texts[2]};
        c->texts = texts;
        CHECK(refused(&r, wrong[i].st, 1, wrong[i].says));
        *c = before;
    }
    cells_of(&r, "city")->column = "town";
    CHECK(refused(&r, GNNC_E_MISSING, -1, "vertex: the rows lack column 'city', of which /tmp"));
    cells_of(&r, "town")->column = "age";
    CHECK(refused(&r, GNNC_E_ARG, -1, "column 'age' is given twice"));
    r.rows.table = "person";
    CHECK(gnnc_encoder_encode(r.e, &r.rows, "age", NULL, 0) == GNNC_E_MISSING);
    CHECK(strstr(r.rows.error, "says nothing of a table 'person'"));
    CHECK(gnnc_encoder_read(r.e, r.dir) == GNNC_E_STATE);
    rig_close(&r);
}

TEST(rows_go_into_a_graph_and_are_appended) {
    Rig r;
    int64_t first;
    gnnc_graph *g = graph_new();
    rig_open(&r, (RtImport){.standardize = true, .unknown = true});
    OK(g, gnnc_graph_add_nodes(g, "vertex", ROWS));
    CHECK_MSG(gnnc_encoder_add(r.e, &r.rows, g) == GNNC_OK, "%s", r.rows.error);
    const RtColumn *age = column_of(g, "vertex", "age"), *want = &r.d->nodes->columns[0];
    CHECK(!memcmp(age->f32, want->f32, ROWS * sizeof(float)) && age->encoder->scale);
    const char *kiev[ROWS] = {"kiev", "rome", "oslo"}, *bad[ROWS] = {"1", "2", "x"};
    cells_of(&r, "city")->texts = kiev;
    cells_of(&r, "age")->texts = bad;
    CHECK(gnnc_encoder_add(r.e, &r.rows, g) == GNNC_E_VALUE && r.rows.bad_row == 2);
    CHECK(gnnc_encoder_append(r.e, &r.rows, g, NULL, NULL, &first) == GNNC_E_STATE);
    OK(g, gnnc_graph_commit(g));
    CHECK(gnnc_encoder_add(r.e, &r.rows, g) == GNNC_E_STATE);
    CHECK(gnnc_encoder_append(r.e, &r.rows, g, NULL, NULL, &first) == GNNC_E_VALUE && first == -1);
    cells_of(&r, "age")->texts = CELLS[1];
    CHECK_MSG(gnnc_encoder_append(r.e, &r.rows, g, NULL, NULL, &first) == GNNC_OK, "%s",
              r.rows.error);
    OK(g, gnnc_graph_commit(g));
    RtSnapshot *s = rt_graph_enter(g);
    const RtTable *t = rt_dataset_nodes(s->data, "vertex");
    CHECK(first == ROWS && t->count == 2 * ROWS);
    CHECK(rt_table_column(t, "city")->i32[ROWS] == 0 && rt_table_column(t, "city")->i32[0] == 2);
    CHECK(!memcmp(rt_table_column(t, "age")->f32 + ROWS, want->f32, ROWS * sizeof(float)));
    rt_graph_leave(g, s);
    rig_close(&r);
    rig_open(&r, (RtImport){0}); /* numbers as they are */
    CHECK(gnnc_encoder_append(r.e, &r.rows, g, NULL, NULL, &first) == GNNC_E_ARG);
    CHECK(strstr(r.rows.error, "vertex.age is a number standardised: mean 20.5, deviation 1 in "));
    rig_close(&r);
    gnnc_graph_release(g);
}

#define SAYS(g, call, st, text)                                                                    \
    CHECK_MSG((call) == (st) && strstr(gnnc_graph_error(g), text), #call ": %s",                   \
              gnnc_graph_error(g))

/* Two rows of `city` as codes, and of `age`. */
static gnnc_graph *of_arrays(const gnnc_array *age, const gnnc_array *city,
                             const char *const *names) {
    gnnc_graph *g = graph_new();
    OK(g, gnnc_graph_add_nodes(g, "vertex", 2));
    OK(g, gnnc_graph_add_column(g, "vertex", "age", GNNC_COL_FLOAT, age, -1, NULL));
    OK(g, gnnc_graph_add_column(g, "vertex", "city", GNNC_COL_CAT, city, names ? 3 : -1, names));
    return g;
}

TEST(arrays_say_how_they_were_made) {
    static const float ages[4] = {1, 2, 3, 4};
    static const int32_t codes[2] = {2, 0}, high[2] = {3, 0};
    static const char *const turned[] = {"<unknown>", "rome", "oslo"};
    const gnnc_array age = array_of(GNNC_DT_F32, 1, 2, 0, ages),
                     wide = array_of(GNNC_DT_F32, 2, 2, 2, ages),
                     city = array_of(GNNC_DT_I32, 1, 2, 0, codes),
                     cities = array_of(GNNC_DT_I32, 1, 2, 0, high);
    gnnc_encoder *none = NULL;
    Rig r;
    rig_open(&r, (RtImport){.standardize = true, .unknown = true});
    CHECK(gnnc_encoder_create(&none) == GNNC_OK);
    gnnc_graph *g = of_arrays(&age, &city, NULL);
    SAYS(g, gnnc_graph_set_encoded(g, "vertex", "age", NULL), GNNC_E_ARG, "'e' is NULL");
    SAYS(g, gnnc_graph_set_encoded(g, "person", "age", r.e), GNNC_E_MISSING, "'person'");
    SAYS(g, gnnc_graph_set_encoded(g, "vertex", "size", r.e), GNNC_E_MISSING, "no column 'size'");
    SAYS(g, gnnc_graph_set_encoded(g, "vertex", "age", none), GNNC_E_STATE, "has no columns");
    OK(g, gnnc_graph_set_encoded(g, "vertex", "age", r.e));
    OK(g, gnnc_graph_set_encoded(g, "vertex", "city", r.e));
    CHECK(column_of(g, "vertex", "age")->encoder->mean == 20.5);
    CHECK(column_of(g, "vertex", "city")->n_categories == 3);
    CHECK_STR(column_of(g, "vertex", "city")->names[2], "rome");
    OK(g, gnnc_graph_set_encoded(g, "vertex", "age", gnnc_encoder_unchecked()));
    CHECK(column_of(g, "vertex", "age")->encoder->as == RT_AS_UNCHECKED);
    OK(g, gnnc_graph_add_column(g, "vertex", "when", GNNC_COL_FLOAT, &age, -1, NULL));
    SAYS(g, gnnc_graph_set_encoded(g, "vertex", "when", r.e), GNNC_E_ARG,
         "vertex.when is of kind float, and of kind time in ");
    OK(g, gnnc_graph_commit(g));
    SAYS(g, gnnc_graph_set_encoded(g, "vertex", "age", r.e), GNNC_E_STATE, "committed");
    gnnc_graph_release(g);
    g = of_arrays(&wide, &city, turned);
    SAYS(g, gnnc_graph_set_encoded(g, "vertex", "age", r.e), GNNC_E_SHAPE, "has 2 values a row");
    SAYS(g, gnnc_graph_set_encoded(g, "vertex", "city", r.e), GNNC_E_ARG, "has other names than");
    CHECK(!column_of(g, "vertex", "age")->encoder && !column_of(g, "vertex", "city")->encoder);
    gnnc_graph_release(g);
    g = of_arrays(&age, &cities, NULL);
    SAYS(g, gnnc_graph_set_encoded(g, "vertex", "city", r.e), GNNC_E_ARG, "more, or another order");
    gnnc_graph_release(g);
    gnnc_encoder_destroy(none);
    rig_close(&r);
}

TEST(edges_are_rows_too) {
    Rig r;
    int64_t first;
    int n_done = 0;
    rig_open(&r, (RtImport){0});
    gnnc_graph *g = graph_new();
    OK(g, gnnc_graph_read(g, r.dir, 0));
    OK(g, gnnc_graph_commit(g));
    static const int32_t ends[2] = {2, 0};
    const char *w[] = {"0.5", "2"};
    const gnnc_cells cells = {sizeof cells, "w", w, NULL};
    gnnc_raw rows = {
        .struct_size = sizeof rows, .table = "link", .count = 2, .n_columns = 1, .columns = &cells};
    const gnnc_array src = lent(array_of(GNNC_DT_I32, 1, 2, 0, ends), &n_done);
    CHECK_MSG(gnnc_encoder_append(r.e, &rows, g, &src, &src, &first) == GNNC_OK, "%s", rows.error);
    CHECK(first == 2 && n_done == 2);
    w[1] = "much";
    CHECK(gnnc_encoder_append(r.e, &rows, g, &src, &src, NULL) == GNNC_E_VALUE && n_done == 4);
    CHECK(gnnc_encoder_append(NULL, &rows, g, &src, &src, NULL) == GNNC_E_ARG && n_done == 6);
    gnnc_graph_release(g);
    rig_close(&r);
}

TEST(a_model_has_its_encoders) {
    RtMeta meta[] = {
        {"names:vertex.city", "[\"<unknown>\", \"rome\"]"},
        {"encoders:vertex",
         "[{\"column\": \"city\", \"kind\": \"cat\", \"encoder\": {\"as\": \"category\", "
         "\"unknown\": true}}, {\"column\": \"y\", \"kind\": \"class\", \"label\": true, "
         "\"categories\": 3, \"encoder\": {\"as\": \"class\"}}]"}};
    RtTensors f = {.n_meta = 2, .meta = meta};
    gnnc_model *m = NULL;
    gnnc_encoder *e = NULL;
    char path[] = "/tmp/cells_model_XXXXXX";
    int fd = mkstemp(path);
    CHECK(fd >= 0 && close(fd) == 0);
    CHECK(rt_safetensors_save(NULL, path, &f, NULL) == GNNC_OK);
    CHECK(gnnc_model_create(&m, &tiny_model) == GNNC_OK && gnnc_encoder_create(&e) == GNNC_OK);
    CHECK(gnnc_encoder_of_model(e, m) == GNNC_E_STATE);
    CHECK(gnnc_model_load(m, path) == GNNC_OK);
    CHECK_MSG(gnnc_encoder_of_model(e, m) == GNNC_OK, "%s", gnnc_encoder_error(e));
    gnnc_model_release(m);
    const char *city[] = {"kiev", "rome"};
    const gnnc_cells cells = {sizeof cells, "city", city, NULL};
    gnnc_raw rows = {.struct_size = sizeof rows,
                     .table = "vertex",
                     .count = 2,
                     .n_columns = 1,
                     .columns = &cells};
    int32_t to[2];
    CHECK(gnnc_encoder_encode(e, &rows, "city", to, sizeof to) == GNNC_OK && !to[0] && to[1] == 1);
    CHECK(gnnc_encoder_encode(e, &rows, "y", to, sizeof to) == GNNC_E_MISSING);
    CHECK(gnnc_encoder_encode(e, &rows, "city", to, 4) == GNNC_E_SHAPE);
    gnnc_encoder_destroy(e);
    meta[1].value = "[{\"column\": 1}]";
    CHECK(rt_safetensors_save(NULL, path, &f, NULL) == GNNC_OK);
    CHECK(gnnc_encoder_create(&e) == GNNC_OK && gnnc_encoder_read(e, path) == GNNC_E_FORMAT);
    CHECK(strstr(gnnc_encoder_error(e), "metadata 'encoders:vertex': a column, its kind and"));
    gnnc_encoder_destroy(e);
    unlink(path);
}

TEST(a_schema_of_other_shapes_is_refused) {
#define COLUMN "{\"kind\": \"float\", \"encoder\": {\"as\": \"number\"}}"
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"{\"nodes\": [1, 2, {\"columns\": {\"x\": " COLUMN "}}]}", "nodes: an object is expected"},
        {"{\"edges\": 3}", "edges: an object is expected"},
        {"{\"graphs\": {\"g\": [{\"columns\": {\"x\": " COLUMN "}}]}}", "g: an object is expected"},
        {"{\"nodes\": {\"n\": {\"columns\": [" COLUMN "]}}}", "n: an object is expected"},
        {"[" COLUMN "]", "data set: an object is expected"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char dir[] = "/tmp/cells_XXXXXX", path[64];
        gnnc_encoder *e = NULL;
        CHECK(mkdtemp(dir) && gnnc_encoder_create(&e) == GNNC_OK);
        snprintf(path, sizeof path, "%s/schema.json", dir);
        FILE *f = fopen(path, "w");
        CHECK(f && fputs(bad[i].text, f) >= 0 && fclose(f) == 0);
        CHECK_MSG(gnnc_encoder_read(e, dir) == GNNC_E_FORMAT, "%s: not refused", bad[i].text);
        CHECK_MSG(strstr(gnnc_encoder_error(e), bad[i].says), "%s", gnnc_encoder_error(e));
        gnnc_encoder_destroy(e);
        CHECK(unlink(path) == 0 && rmdir(dir) == 0);
    }
}

/* ---- memory ---------------------------------------------------------------------------- */
/* All that allocates, in order; the first failure's status. */
static gnnc_status all_of(Rig *r, FailingAlloc *f, gnnc_encoder **e) {
    float to[ROWS];
    gnnc_graph *g = NULL;
    gnnc_status st;
    TRY(st, gnnc_encoder_create_with(e, failing_alloc, failing_release, f));
    TRY(st, gnnc_encoder_read(*e, r->dir));
    TRY(st, gnnc_encoder_encode(*e, &r->rows, "age", to, sizeof to));
    TRY(st, gnnc_graph_create_with(&g, failing_alloc, failing_release, f));
    TRY(st, gnnc_graph_add_nodes(g, "vertex", ROWS));
    if ((st = gnnc_encoder_add(*e, &r->rows, g)) != GNNC_OK) {
        CHECK(rt_dataset_nodes(g->data, "vertex")->n_columns == 0); /* all or none */
        goto out;
    }
    TRY(st, gnnc_graph_set_encoded(g, "vertex", "age", *e));
    ((RtColumn *)(uintptr_t)column_of(g, "vertex", "city"))->names = NULL;
    TRY(st, gnnc_graph_set_encoded(g, "vertex", "city", *e));
    TRY(st, gnnc_graph_commit(g));
    TRY(st, gnnc_encoder_append(*e, &r->rows, g, NULL, NULL, NULL));
out:
    gnnc_graph_release(g);
    return st;
}

TEST(every_allocation_may_fail) {
    Rig r;
    gnnc_status st = GNNC_E_NOMEM;
    rig_open(&r, (RtImport){.standardize = true, .unknown = true});
    for (long n = 0; st != GNNC_OK && n < 1000; n++) {
        FailingAlloc f;
        gnnc_encoder *e = NULL;
        failing(&f, n);
        st = all_of(&r, &f, &e);
        CHECK_MSG(st == GNNC_OK || st == GNNC_E_NOMEM, "allocation %ld: status %d", n, st);
        gnnc_encoder_destroy(e);
        CHECK_MSG(f.n_live == 0, "allocation %ld: %ld blocks leak", n, f.n_live);
    }
    CHECK(st == GNNC_OK);
    rig_close(&r);
}

TEST_MAIN()
