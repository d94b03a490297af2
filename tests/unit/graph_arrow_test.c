/* Record batches of the Arrow C data interface, made by hand: what becomes of each type, of nulls,
 * offsets and dictionaries, and who releases what. */
#include "gnnc_arrow.h"
#include "graph_util.h"

#include <math.h>

enum { ROWS = 4, MOST = 8 };

/* A batch whose arrays are this struct's; released_* count. */
typedef struct {
    struct ArrowSchema schema, of[MOST], item, words_of;
    struct ArrowArray array, at[MOST], item_at, words;
    struct ArrowSchema *schemas[MOST], *items[1];
    struct ArrowArray *arrays[MOST], *items_at[1];
    const void *buffers[MOST + 2][3], *none[1];
    int n, n_schema, n_array; /* columns; calls of release */
} TestBatch;

static void release_schema(struct ArrowSchema *s) {
    ++*(int *)s->private_data;
    s->release = NULL;
}

static void release_array(struct ArrowArray *a) {
    ++*(int *)a->private_data;
    a->release = NULL;
}

static void batch_new(TestBatch *b) {
    memset(b, 0, sizeof *b);
    b->schema = (struct ArrowSchema){.format = "+s",
                                     .children = b->schemas,
                                     .release = release_schema,
                                     .private_data = &b->n_schema};
    b->array = (struct ArrowArray){.length = ROWS,
                                   .n_buffers = 1,
                                   .buffers = b->none,
                                   .children = b->arrays,
                                   .release = release_array,
                                   .private_data = &b->n_array};
}

/* valid: a byte of bits, the first row lowest; NULL = all. */
static struct ArrowArray *batch_add(TestBatch *b, const char *name, const char *format,
                                    const uint8_t *valid, const void *values, const void *texts) {
    int i = b->n++;
    b->of[i] = (struct ArrowSchema){.format = format, .name = name, .flags = ARROW_FLAG_NULLABLE};
    b->buffers[i][0] = valid;
    b->buffers[i][1] = values;
    b->buffers[i][2] = texts;
    b->at[i] = (struct ArrowArray){.length = ROWS,
                                   .null_count = valid ? -1 : 0,
                                   .n_buffers = texts    ? 3
                                                : values ? 2
                                                         : 1,
                                   .buffers = b->buffers[i]};
    b->schemas[i] = &b->of[i];
    b->arrays[i] = &b->at[i];
    b->schema.n_children = b->array.n_children = b->n;
    return &b->at[i];
}

static gnnc_graph *graph_of_rows(void) {
    gnnc_graph *g = graph_new();
    OK(g, gnnc_graph_add_nodes(g, "n", ROWS));
    return g;
}

static gnnc_status add(gnnc_graph *g, TestBatch *b) {
    gnnc_status st = gnnc_graph_add_arrow(g, "n", &b->schema, &b->array, 0, NULL, NULL);
    CHECK(!b->schema.release && !b->array.release && b->n_schema == 1);
    return st;
}

/* One column of this kind is refused, and released. */
static void refuse(TestBatch *b, gnnc_kind kind, gnnc_status want, const char *text) {
    gnnc_graph *g = graph_of_rows();
    gnnc_status st = gnnc_graph_add_arrow(g, "n", &b->schema, &b->array, 1, &b->of[0].name, &kind);
    CHECK_MSG(st == want, "%s: %d", text, st);
    CHECK_STR(gnnc_graph_error(g), text);
    CHECK(b->n_schema == 1 && b->n_array == 1 && g->data->nodes[0].n_columns == 0);
    gnnc_graph_release(g);
    CHECK(b->n_array == 1);
}

/* ---- types --------------------------------------------------------------------------------- */
TEST(numbers_stay_where_they_are) {
    _Alignas(GNNC_ALIGN) static const float x[ROWS] = {1, 2, 3, 4};
    static const int16_t small[ROWS] = {-1, 2, -3, 4};
    static const uint8_t bits[] = {0x0a};
    TestBatch b;
    gnnc_graph *g = graph_of_rows();
    batch_new(&b);
    batch_add(&b, "x", "f", NULL, x, NULL);
    batch_add(&b, "small", "s", NULL, small, NULL);
    batch_add(&b, "flag", "b", NULL, bits, NULL);
    OK(g, add(g, &b));
    CHECK(column_of(g, "n", "x")->f32 == x && b.n_array == 0);
    CHECK(column_of(g, "n", "small")->f32[2] == -3);
    static const float want[ROWS] = {0, 1, 0, 1};
    CHECK(memcmp(column_of(g, "n", "flag")->f32, want, sizeof want) == 0);
    gnnc_graph_release(g);
    CHECK(b.n_array == 1);
    batch_new(&b);
    batch_add(&b, "small", "s", NULL, small, NULL);
    g = graph_of_rows();
    OK(g, add(g, &b)); /* nothing of it is read on */
    CHECK(b.n_array == 1);
    gnnc_graph_release(g);
    CHECK(b.n_array == 1);
}

TEST(every_number_has_its_format) {
    static const double real[ROWS] = {1, 2, 3, 4};
    static const int64_t whole[ROWS] = {1, 2, 3, 4};
    static const int32_t i32[ROWS] = {1, 2, 3, 4};
    static const int16_t i16[ROWS] = {1, 2, 3, 4};
    static const int8_t i8[ROWS] = {1, 2, 3, 4};
    static const uint16_t half[ROWS] = {0x3c00, 0x4000, 0x4200, 0x4400};
    static const struct {
        const char *format;
        const void *at;
    } all[] = {{"c", i8},  {"C", i8},    {"s", i16},   {"S", i16},  {"i", i32},
               {"I", i32}, {"l", whole}, {"L", whole}, {"e", half}, {"g", real}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        TestBatch b;
        gnnc_graph *g = graph_of_rows();
        batch_new(&b);
        batch_add(&b, "x", all[i].format, NULL, all[i].at, NULL);
        OK(g, add(g, &b));
        const float *x = column_of(g, "n", "x")->f32;
        CHECK_MSG(x[0] == 1 && x[3] == 4, "format %s: %g %g", all[i].format, x[0], x[3]);
        gnnc_graph_release(g);
    }
}

TEST(times_are_seconds) {
    static const int32_t days[ROWS] = {0, 1, -1, 20000};
    static const int64_t nano[ROWS] = {0, 1700000000123456789, -500000000, 1};
    static const int64_t ms[ROWS] = {1500, 0, -1, 2}, s[ROWS] = {7, 8, 9, 10};
    static const uint8_t valid[] = {0x0b}; /* not the third */
    TestBatch b;
    gnnc_graph *g = graph_of_rows();
    batch_new(&b);
    batch_add(&b, "day", "tdD", NULL, days, NULL);
    batch_add(&b, "nano", "tsn:UTC", valid, nano, NULL);
    batch_add(&b, "ms", "tsm:", NULL, ms, NULL);
    batch_add(&b, "s", "tss:Europe/Berlin", NULL, s, NULL);
    batch_add(&b, "date", "tdm", NULL, ms, NULL);
    OK(g, add(g, &b));
    const double *day = column_of(g, "n", "day")->f64, *at = column_of(g, "n", "nano")->f64;
    CHECK(day[1] == 86400 && day[2] == -86400 && day[3] == 1728000000.0);
    CHECK(at[0] == 0 && at[1] == 1700000000.123456789 && isnan(at[2]) && at[3] == 1e-9);
    CHECK(column_of(g, "n", "ms")->f64[0] == 1.5 && column_of(g, "n", "ms")->f64[2] == -0.001);
    CHECK(column_of(g, "n", "s")->f64[3] == 10 && column_of(g, "n", "date")->f64[0] == 1.5);
    CHECK(column_of(g, "n", "s")->kind == RT_COL_TIME);
    gnnc_graph_release(g);
}

TEST(texts_are_codes_by_sorted_names) {
    static const int32_t at[] = {0, 5, 10, 15, 18};
    static const int64_t wide[] = {0, 5, 10, 15, 15};
    static const char text[] = "cairoankaracairobud"; /* cairo ankar acair obu, cut below */
    static const char words[] = "cairoadanacairobud";
    static const uint8_t valid[] = {0x07};
    TestBatch b;
    gnnc_graph *g = graph_of_rows();
    const gnnc_kind kind = GNNC_COL_CLASS;
    const char *y = "y";
    batch_new(&b);
    batch_add(&b, "city", "u", NULL, at, words);
    batch_add(&b, "y", "U", valid, wide, text);
    OK(g, gnnc_graph_add_arrow(g, "n", &b.schema, &b.array, 1, &y, &kind));
    const RtColumn *c = column_of(g, "n", "city");
    CHECK(c->kind == RT_COL_CAT && c->n_categories == 3);
    CHECK_STR(c->names[0], "adana");
    CHECK_STR(c->names[1], "bud");
    CHECK_STR(c->names[2], "cairo");
    CHECK(c->i32[0] == 2 && c->i32[1] == 0 && c->i32[2] == 2 && c->i32[3] == 1);
    c = column_of(g, "n", "y");
    CHECK(c->kind == RT_COL_CLASS && c->n_categories == 3 && c->i32[3] == -1);
    CHECK_STR(c->names[0], "acair");
    CHECK(b.n_array == 1);
    gnnc_graph_release(g);
}

static void batch_dictionary(TestBatch *b, const void *index, const uint8_t *valid) {
    static const int32_t at[] = {0, 2, 4, 6, 7};
    static const char words[] = "zzbbaac"; /* zz bb aa c; the first is cut away by an offset */
    b->words_of = (struct ArrowSchema){.format = "u"};
    b->buffers[MOST][1] = at;
    b->buffers[MOST][2] = words;
    b->words =
        (struct ArrowArray){.length = 3, .offset = 1, .n_buffers = 3, .buffers = b->buffers[MOST]};
    batch_add(b, "c", "c", valid, index, NULL)->dictionary = &b->words;
    b->of[b->n - 1].dictionary = &b->words_of;
}

TEST(dictionaries_keep_all_their_names) {
    static const int8_t index[ROWS] = {0, 2, 2, 0}, high[ROWS] = {0, 3, 0, 0};
    static const int8_t low[ROWS] = {0, -1, 0, 0};
    static const uint8_t valid[] = {0x0d};
    TestBatch b;
    gnnc_graph *g = graph_of_rows();
    batch_new(&b);
    batch_dictionary(&b, index, NULL);
    OK(g, add(g, &b));
    const RtColumn *c = column_of(g, "n", "c");
    CHECK(c->n_categories == 3 && c->i32[0] == 1 && c->i32[1] == 2 && c->i32[3] == 1);
    CHECK_STR(c->names[0], "aa");
    gnnc_graph_release(g);
    batch_new(&b);
    batch_dictionary(&b, high, NULL);
    refuse(&b, GNNC_COL_CAT, GNNC_E_RANGE, "n.c: row 1: 3 is no entry of its dictionary");
    batch_new(&b);
    batch_dictionary(&b, low, NULL);
    refuse(&b, GNNC_COL_CAT, GNNC_E_RANGE, "n.c: row 1: -1 is no entry of its dictionary");
    batch_new(&b);
    batch_dictionary(&b, high, valid); /* the second is null, whatever it says */
    refuse(&b, GNNC_COL_CAT, GNNC_E_VALUE,
           "n.c: row 1 is null, and the kind has no value for that");
    batch_new(&b);
    batch_dictionary(&b, index, NULL);
    refuse(&b, GNNC_COL_FLOAT, GNNC_E_DTYPE,
           "n.c: Arrow's format 'c' is not read here, or not as this kind");
}

/* A list's values begin at its own offset, and at that of the list. */
static void batch_list(TestBatch *b, const char *item, const void *values, const uint8_t *valid,
                       const uint8_t *item_valid) {
    struct ArrowArray *a = batch_add(b, "v", "+w:2", valid, NULL, NULL);
    b->item = (struct ArrowSchema){.format = item, .name = "item"};
    b->buffers[MOST + 1][0] = item_valid;
    b->buffers[MOST + 1][1] = values;
    b->item_at = (struct ArrowArray){.length = 9,
                                     .null_count = -1,
                                     .offset = 1,
                                     .n_buffers = 2,
                                     .buffers = b->buffers[MOST + 1]};
    b->items[0] = &b->item;
    b->items_at[0] = &b->item_at;
    b->of[b->n - 1].n_children = a->n_children = 1;
    b->of[b->n - 1].children = b->items;
    a->children = b->items_at;
}

TEST(lists_of_one_length_are_rows) {
    static const double v[10] = {99, 0, 1, 2, 3, 4, 5, 6, 7, 8};
    static const float want[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    static const uint8_t rows[] = {0x0d}, items[] = {0xff, 0x02}; /* row 1; value 8, the last's */
    TestBatch b;
    gnnc_graph *g = graph_of_rows();
    batch_new(&b);
    batch_list(&b, "g", v, NULL, NULL);
    OK(g, add(g, &b));
    const RtColumn *c = column_of(g, "n", "v");
    CHECK(c->kind == RT_COL_FLOAT && c->rank == 2 && c->shape[1] == 2);
    CHECK(memcmp(c->f32, want, sizeof want) == 0);
    const gnnc_kind labels = GNNC_COL_MULTILABEL;
    const char *name = "v";
    batch_new(&b);
    batch_list(&b, "g", v, rows, items);
    OK(g, gnnc_graph_add_arrow(g, "n", &b.schema, &b.array, 1, &name, &labels));
    c = column_of(g, "n", "v");
    CHECK(c->f32[0] == 0 && isnan(c->f32[2]) && isnan(c->f32[3]) && c->f32[6] == 6 &&
          isnan(c->f32[7]));
    gnnc_graph_release(g);
    batch_new(&b);
    batch_list(&b, "g", v, rows, NULL);
    refuse(&b, GNNC_COL_FLOAT, GNNC_E_VALUE,
           "n.v: row 1 is null, and the kind has no value for that");
    batch_new(&b);
    batch_list(&b, "u", v, NULL, NULL);
    refuse(&b, GNNC_COL_FLOAT, GNNC_E_DTYPE,
           "n.v: Arrow's format '+w:2' is not read here, or not as this kind");
    batch_new(&b);
    batch_list(&b, "g", v, NULL, NULL);
    b.item_at.length = 7;
    refuse(&b, GNNC_COL_FLOAT, GNNC_E_ARG, "n.v: an Arrow array without its rows or its buffers");
}

/* ---- nulls and offsets -------- */
TEST(nulls_are_what_the_kind_has_for_them) {
    static const int32_t y[ROWS] = {2, 0, 1, 3};
    static const double t[ROWS] = {1, 2, 3, 4};
    static const uint8_t valid[] = {0x0d};
    static const char *const names[] = {"y", "t", "m", "split"};
    static const gnnc_kind kinds[] = {GNNC_COL_CLASS, GNNC_COL_TIME, GNNC_COL_MULTILABEL,
                                      GNNC_COL_SPLIT};
    TestBatch b;
    gnnc_graph *g = graph_of_rows();
    batch_new(&b);
    batch_add(&b, "y", "i", valid, y, NULL);
    batch_add(&b, "t", "g", valid, t, NULL);
    batch_add(&b, "m", "g", valid, t, NULL);
    batch_add(&b, "split", "i", valid, y, NULL);
    OK(g, gnnc_graph_add_arrow(g, "n", &b.schema, &b.array, 4, names, kinds));
    CHECK(column_of(g, "n", "y")->i32[1] == -1 && column_of(g, "n", "y")->i32[3] == 3);
    CHECK(isnan(column_of(g, "n", "t")->f64[1]) && column_of(g, "n", "t")->f64[2] == 3);
    CHECK(isnan(column_of(g, "n", "m")->f32[1]) && column_of(g, "n", "m")->f32[0] == 1);
    CHECK(column_of(g, "n", "split")->splits[1] == 0 && column_of(g, "n", "split")->splits[0] == 2);
    CHECK(b.n_array == 1);
    gnnc_graph_release(g);
    static const gnnc_kind none[] = {GNNC_COL_FLOAT, GNNC_COL_CAT, GNNC_COL_ID};
    for (int k = 0; k < 3; k++) {
        batch_new(&b);
        batch_add(&b, "y", "i", valid, y, NULL);
        refuse(&b, none[k], GNNC_E_VALUE, "n.y: row 1 is null, and the kind has no value for that");
    }
}

TEST(offsets_of_a_slice) {
    _Alignas(GNNC_ALIGN) static const float x[32] = {[16] = 16, 17, 18, 19};
    static const uint8_t bits[] = {0xa0, 0x00}, valid[] = {0xff, 0xff, 0x0d};
    static const int32_t at[] = {0, 9, 9, 9, 1, 2, 3, 4, 5};
    TestBatch b;
    gnnc_graph *g = graph_of_rows();
    batch_new(&b);
    b.array.offset = 1; /* of the batch, beside each column's own */
    batch_add(&b, "x", "f", valid, x, NULL)->offset = 15;
    b.at[0].null_count = 0;
    batch_add(&b, "flag", "b", NULL, bits, NULL)->offset = 4;
    batch_add(&b, "word", "u", NULL, at, "abcde")->offset = 3;
    for (int i = 0; i < 3; i++) b.at[i].length = ROWS + 1;
    OK(g, add(g, &b));
    CHECK(column_of(g, "n", "x")->f32 == x + 16);
    CHECK(column_of(g, "n", "flag")->f32[0] == 1 && column_of(g, "n", "flag")->f32[2] == 1);
    CHECK(column_of(g, "n", "flag")->f32[1] == 0);
    CHECK_STR(column_of(g, "n", "word")->names[0], "b");
    gnnc_graph_release(g);
    batch_new(&b);
    b.array.offset = 1;
    batch_add(&b, "x", "f", NULL, x, NULL);
    refuse(&b, GNNC_COL_FLOAT, GNNC_E_ARG, "n.x: an Arrow array without its rows or its buffers");
    const gnnc_kind time = GNNC_COL_MULTILABEL;
    const char *name = "x";
    g = graph_of_rows();
    batch_new(&b);
    batch_add(&b, "x", "f", valid, x, NULL)->offset = 16;
    b.at[0].null_count = -1; /* unknown: the bits of row 17 tell */
    OK(g, gnnc_graph_add_arrow(g, "n", &b.schema, &b.array, 1, &name, &time));
    CHECK(isnan(column_of(g, "n", "x")->f32[1]) && column_of(g, "n", "x")->f32[3] == 19);
    gnnc_graph_release(g);
}

/* ---- what is refused -------- */
TEST(a_batch_is_added_whole_or_not_at_all) {
    static const float good[ROWS] = {1, 2, 3, 4}, bad[ROWS] = {1, NAN, 3, 4}, old[ROWS] = {9};
    gnnc_graph *g = graph_of_rows();
    gnnc_array a = array_of(GNNC_DT_F32, 1, ROWS, 0, old);
    OK(g, gnnc_graph_add_column(g, "n", "a", GNNC_COL_FLOAT, &a, -1, NULL));
    TestBatch b;
    batch_new(&b);
    batch_add(&b, "a", "f", NULL, good, NULL);
    for (int i = 0; i < 5; i++)
        batch_add(&b,
                  i ? i < 2   ? "c"
                      : i < 3 ? "d"
                      : i < 4 ? "e"
                              : "f"
                    : "b",
                  "f", NULL, good, NULL);
    batch_add(&b, "z", "f", NULL, bad, NULL);
    CHECK(add(g, &b) == GNNC_E_VALUE);
    CHECK_STR(gnnc_graph_error(g), "n.z: row 1: value is NaN");
    CHECK(g->data->nodes[0].n_columns == 1 && column_of(g, "n", "a")->f32[0] == 9);
    CHECK(b.n_array == 1);
    gnnc_graph_release(g);
    CHECK(b.n_array == 1);
}

TEST(every_refusal_has_its_name) {
    static const int32_t i[ROWS] = {0}, down[] = {0, 3, 2, 3, 4};
    static const uint8_t valid[] = {0x0d};
    static const int32_t nul[] = {0, 1, 2, 3, 4};
    TestBatch b;
    gnnc_graph *g = graph_of_rows();
    batch_new(&b);
    batch_add(&b, "t", "ttn", NULL, i, NULL);
    refuse(&b, GNNC_COL_TIME, GNNC_E_DTYPE,
           "n.t: Arrow's format 'ttn' is not read here, or not as this kind");
    batch_new(&b);
    batch_add(&b, "t", "tdD", NULL, i, NULL);
    refuse(&b, GNNC_COL_FLOAT, GNNC_E_DTYPE,
           "n.t: Arrow's format 'tdD' is not read here, or not as this kind");
    batch_new(&b);
    batch_add(&b, "s", "u", NULL, down, "abcd");
    refuse(&b, GNNC_COL_CAT, GNNC_E_FORMAT, "n.s: row 1: offsets of texts must ascend");
    batch_new(&b);
    batch_add(&b, "s", "u", NULL, nul, "ab\0d");
    refuse(&b, GNNC_COL_CAT, GNNC_E_FORMAT, "n.s: row 2 holds a NUL byte");
    batch_new(&b);
    batch_add(&b, "x", "i", NULL, i, NULL)->n_buffers = 1;
    refuse(&b, GNNC_COL_ID, GNNC_E_ARG, "n.x: an Arrow array without its rows or its buffers");
    static const struct {
        const char *format, *texts;
        gnnc_kind kind;
    } odd[] = {{"i", NULL, GNNC_COL_ID}, {"tsn:", NULL, GNNC_COL_TIME}, {"U", "a", GNNC_COL_CAT}};
    for (int k = 0; k < 3; k++) {
        batch_new(&b);
        batch_add(&b, "x", odd[k].format, NULL, (const char *)i + 1, odd[k].texts);
        refuse(&b, odd[k].kind, GNNC_E_ARG,
               "n.x: an Arrow buffer that is not aligned to its elements");
    }
    batch_new(&b);
    batch_add(&b, "x", "i", NULL, i, NULL);
    b.array.length = 3;
    refuse(&b, GNNC_COL_ID, GNNC_E_SHAPE, "n: a batch of 3 rows, the table has 4");
    batch_new(&b);
    batch_add(&b, "x", "i", NULL, i, NULL);
    b.schema.format = "i";
    refuse(&b, GNNC_COL_ID, GNNC_E_DTYPE, "n: a record batch is wanted, Arrow's format '+s'");
    batch_new(&b);
    batch_add(&b, "x", "i", NULL, i, NULL);
    b.none[0] = valid, b.array.null_count = 1;
    refuse(&b, GNNC_COL_ID, GNNC_E_VALUE, "n: row 1 is null as a whole");
    const char *other = "y";
    const gnnc_kind id = GNNC_COL_ID;
    batch_new(&b);
    batch_add(&b, "x", "i", NULL, i, NULL);
    CHECK(gnnc_graph_add_arrow(g, "n", &b.schema, &b.array, 1, &other, &id) == GNNC_E_MISSING);
    CHECK_STR(gnnc_graph_error(g), "n: the batch has no column 'y'");
    CHECK(b.n_schema == 1 && b.n_array == 1);
    CHECK(gnnc_graph_add_arrow(g, "n", &b.schema, &b.array, 0, NULL, NULL) == GNNC_E_ARG);
    CHECK_STR(gnnc_graph_error(g), "n: the batch was released already");
    batch_new(&b);
    CHECK(gnnc_graph_add_arrow(g, "n", &b.schema, NULL, 0, NULL, NULL) == GNNC_E_ARG);
    CHECK(gnnc_graph_add_arrow(g, "n", NULL, &b.array, 0, NULL, NULL) == GNNC_E_ARG);
    CHECK(b.n_schema == 1 && b.n_array == 1);
    batch_new(&b);
    CHECK(gnnc_graph_add_arrow(g, "n", &b.schema, &b.array, 1, NULL, NULL) == GNNC_E_ARG);
    CHECK(b.n_schema == 1 && b.n_array == 1);
    batch_new(&b);
    CHECK(gnnc_graph_add_arrow(NULL, "n", &b.schema, &b.array, 0, NULL, NULL) == GNNC_E_ARG);
    CHECK(b.n_schema == 1 && b.n_array == 1);
    gnnc_graph_release(g);
}

/* ---- memory -------- */
static gnnc_status whole_life(FailingAlloc *f, TestBatch *b) {
    _Alignas(GNNC_ALIGN) static const float x[ROWS] = {1, 2, 3, 4};
    static const double v[10] = {0};
    static const int32_t days[ROWS] = {0}, at[] = {0, 1, 2, 3, 4};
    static const int8_t index[ROWS] = {0, 2, 2, 0};
    static const uint8_t bits[] = {0x0a};
    gnnc_graph *g = NULL;
    gnnc_status st = gnnc_graph_create_with(&g, failing_alloc, failing_release, f);
    if (st == GNNC_OK) st = gnnc_graph_add_nodes(g, "n", ROWS);
    batch_new(b);
    batch_add(b, "x", "f", NULL, x, NULL);
    batch_add(b, "flag", "b", NULL, bits, NULL);
    batch_add(b, "day", "tdD", bits, days, NULL);
    batch_add(b, "word", "u", NULL, at, "abcd");
    batch_dictionary(b, index, NULL);
    batch_list(b, "g", v, NULL, NULL);
    if (st == GNNC_OK)
        st = add(g, b);
    else
        b->n_array = 1; /* it did not come so far */
    if (st == GNNC_OK) CHECK(b->n_array == 0);
    if (st == GNNC_OK) st = gnnc_graph_commit(g);
    gnnc_graph_release(g);
    return st;
}

TEST(every_failing_allocation_releases_the_batch) {
    FailingAlloc f;
    TestBatch b;
    long n = 0;
    gnnc_status st;
    do {
        failing(&f, n++);
        st = whole_life(&f, &b);
        CHECK_MSG(st == GNNC_OK || st == GNNC_E_NOMEM, "allocation %ld: status %d", n - 1, st);
        CHECK_MSG(f.n_live == 0, "allocation %ld: %ld blocks leak", n - 1, f.n_live);
        CHECK(b.n_array == 1);
    } while (st != GNNC_OK && n < 200);
    CHECK(n > 3 && n < 200);
}

TEST_MAIN()
