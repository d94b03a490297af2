/* Encoders: what cells become, and how they are written down. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/data/encoder.h"
#include "test.h"

static const char *read_from(RtPool *pool, const char *json, rt_col_kind kind, RtEncoder *e) {
    RtJson *v;
    RtError err = {""};
    gnnc_status st =
        rt_json_parse(pool, (RtBytes){(const uint8_t *)json, strlen(json)}, "t", &v, &err);
    return st == GNNC_OK ? rt_encoder_read(pool, v, "age", kind, e) : "no JSON";
}

TEST(what_is_written_is_read) {
    static const struct {
        const char *json;
        rt_col_kind kind;
    } all[] = {
        {"{\"as\": \"number\"}", RT_COL_FLOAT},
        {"{\"as\": \"number\", \"width\": 3}", RT_COL_FLOAT},
        {"{\"as\": \"number\", \"gaps\": true, \"mean\": 0.10000000000000001, \"deviation\": "
         "12345678901.5}",
         RT_COL_FLOAT},
        {"{\"as\": \"number\", \"scale\": \"quantile\", \"marks\": [1, 2.5], \"normal\": [-1, 1]}",
         RT_COL_FLOAT},
        {"{\"as\": \"number\", \"gaps\": true, \"scale\": \"piecewise\", \"marks\": [-1, 0, 64]}",
         RT_COL_FLOAT},
        {"{\"as\": \"boolean\", \"gaps\": true}", RT_COL_FLOAT},
        {"{\"as\": \"text\", \"values\": 64}", RT_COL_FLOAT},
        {"{\"as\": \"vector\", \"gaps\": true, \"values\": 3}", RT_COL_FLOAT},
        {"{\"as\": \"several\", \"separator\": \"|\", \"names\": [\"<unknown>\", \"a \\\"b\\\"\"]}",
         RT_COL_FLOAT},
        {"{\"as\": \"several\", \"names\": [\"<unknown>\"]}", RT_COL_FLOAT},
        {"{\"as\": \"image\", \"gaps\": true, \"values\": 192}", RT_COL_FLOAT},
        {"{\"as\": \"missing\", \"from\": \"a \\\"b\\\"\"}", RT_COL_CAT},
        {"{\"as\": \"category\", \"unknown\": true, \"rare\": 5}", RT_COL_CAT},
        {"{\"as\": \"class\"}", RT_COL_CLASS},
        {"{\"as\": \"time\", \"form\": \"day/month/year\"}", RT_COL_TIME},
        {"{\"as\": \"time\", \"form\": \"seconds or year-month-day\"}", RT_COL_TIME},
        {"{\"as\": \"key\"}", RT_COL_ID},
        {"{\"as\": \"split\"}", RT_COL_SPLIT},
    };
    RtPool pool;
    rt_pool_init(&pool, NULL);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        RtEncoder e;
        RtText text = {.pool = &pool};
        const char *what = read_from(&pool, all[i].json, all[i].kind, &e);
        CHECK_MSG(!what, "%s: %s", all[i].json, what);
        CHECK(!what && rt_encoder_put(&text, &e, "age"));
        CHECK_STR(text.s, all[i].json);
    }
    rt_pool_free(&pool);
}

TEST(what_makes_no_sense_is_refused) {
    static const struct {
        const char *json, *says;
        rt_col_kind kind;
    } all[] = {
        {"[]", "an object", RT_COL_FLOAT},
        {"{}", "'as'", RT_COL_FLOAT},
        {"{\"as\": \"colour\"}", "unknown 'as'", RT_COL_FLOAT},
        {"{\"as\": \"category\"}", "another kind", RT_COL_FLOAT},
        {"{\"as\": \"number\"}", "another kind", RT_COL_CAT},
        {"{\"as\": \"number\", \"mean\": 1}", "'mean' and", RT_COL_FLOAT},
        {"{\"as\": \"number\", \"mean\": 1, \"deviation\": 0}", "above 0", RT_COL_FLOAT},
        {"{\"as\": \"number\", \"mean\": 1e999, \"deviation\": 1}", "", RT_COL_FLOAT},
        {"{\"as\": \"number\", \"marks\": [1, 2]}", "'scale' goes with", RT_COL_FLOAT},
        {"{\"as\": \"number\", \"scale\": \"log\", \"marks\": [1, 2]}", "'scale' must",
         RT_COL_FLOAT},
        {"{\"as\": \"number\", \"scale\": \"piecewise\", \"marks\": [1]}", "'marks'", RT_COL_FLOAT},
        {"{\"as\": \"number\", \"scale\": \"piecewise\", \"marks\": [1, 1]}", "'marks'",
         RT_COL_FLOAT},
        {"{\"as\": \"number\", \"scale\": \"piecewise\", \"marks\": [1, 2], \"normal\": [1, 2]}",
         "does not have", RT_COL_FLOAT},
        {"{\"as\": \"number\", \"scale\": \"quantile\", \"marks\": [1, 2], \"normal\": [1]}",
         "'normal'", RT_COL_FLOAT},
        {"{\"as\": \"number\", \"scale\": \"piecewise\", \"marks\": [1, 2], \"mean\": 1}",
         "without 'mean'", RT_COL_FLOAT},
        {"{\"as\": \"number\", \"width\": 2, \"scale\": \"piecewise\", \"marks\": [1, 2]}",
         "one raw column", RT_COL_FLOAT},
        {"{\"as\": \"text\"}", "'values'", RT_COL_FLOAT},
        {"{\"as\": \"vector\", \"values\": 5000}", "'values'", RT_COL_FLOAT},
        {"{\"as\": \"boolean\", \"values\": 2}", "does not have", RT_COL_FLOAT},
        {"{\"as\": \"several\", \"names\": []}", "'names'", RT_COL_FLOAT},
        {"{\"as\": \"several\", \"names\": [\"a\"]}", "the first of", RT_COL_FLOAT},
        {"{\"as\": \"several\", \"names\": [\"<unknown>\", \"a\", \"a\"]}", "are one",
         RT_COL_FLOAT},
        {"{\"as\": \"several\", \"separator\": \"||\", \"names\": [\"<unknown>\"]}", "'separator'",
         RT_COL_FLOAT},
        {"{\"as\": \"image\", \"values\": 190}", "three times a square", RT_COL_FLOAT},
        {"{\"as\": \"number\", \"width\": -1}", "'width'", RT_COL_FLOAT},
        {"{\"as\": \"number\", \"gaps\": 1}", "'gaps'", RT_COL_FLOAT},
        {"{\"as\": \"number\", \"form\": \"seconds\"}", "does not have", RT_COL_FLOAT},
        {"{\"as\": \"time\"}", "'form'", RT_COL_TIME},
        {"{\"as\": \"time\", \"form\": \"moons\"}", "'form'", RT_COL_TIME},
        {"{\"as\": \"category\", \"unknown\": false}", "'unknown'", RT_COL_CAT},
        {"{\"as\": \"category\", \"rare\": 1.5}", "'rare'", RT_COL_CAT},
        {"{\"as\": \"id\", \"from\": \"\"}", "'from'", RT_COL_ID},
    };
    RtPool pool;
    rt_pool_init(&pool, NULL);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        RtEncoder e;
        const char *what = read_from(&pool, all[i].json, all[i].kind, &e);
        CHECK_MSG(what && strstr(what, all[i].says), "%s: %s", all[i].json, what ? what : "fine");
    }
    rt_pool_free(&pool);
}

/* What is wrong with a cell, NULL: nothing. */
static const char *encode(const RtEncoder *e, const char *text, double number, void *to) {
    int at;
    return rt_encode(e, &(RtCell){text, number}, to, 0, &at);
}

TEST(numbers_are_less_the_mean_in_deviations) {
    RtEncoder e = {.as = RT_AS_NUMBER, .kind = RT_COL_FLOAT};
    float v;
    CHECK(!encode(&e, "2.5", 0, &v) && v == 2.5f && encode(&e, "", 0, &v));
    e.scale = RT_SCALE_STANDARD;
    e.gaps = true;
    e.mean = 1e9;
    e.deviation = 0.25;
    CHECK(!encode(&e, "1000000001.5", 0, &v) && v == 6); /* in f32 it would be 0 */
    CHECK(!encode(&e, NULL, 1000000001.5, &v) && v == 6);
    CHECK(!encode(&e, "NULL", 0, &v) && v == 0 && !encode(&e, NULL, NAN, &v) && v == 0);
    CHECK_STR(encode(&e, "1e300", 0, &v), "too large: 3.4e38 at most");
    CHECK_STR(encode(&e, "5 kg", 0, &v), "not a number");
    CHECK_STR(encode(&e, NULL, INFINITY, &v), "not a number");
}

TEST(categories_and_classes_are_those_of_the_names) {
    static const char *const names[] = {RT_UNKNOWN_NAME, "", "ankara"};
    RtPool pool;
    rt_pool_init(&pool, NULL);
    RtEncoder e = {.as = RT_AS_CATEGORY, .kind = RT_COL_CAT, .n_categories = 3, .names = names};
    int32_t v;
    CHECK(rt_encoder_index(&pool, &e));
    CHECK(!encode(&e, "ankara", 0, &v) && v == 2 && !encode(&e, NULL, NAN, &v) && v == 1);
    CHECK_STR(encode(&e, "berlin", 0, &v), "not a category");
    CHECK(encode(&e, NULL, 3, &v));
    e.unknown = true;
    CHECK(!encode(&e, "berlin", 0, &v) && v == 0 && encode(&e, NULL, 3, &v));
    e.as = RT_AS_CLASS;
    CHECK(!encode(&e, "", 0, &v) && v == -1 && encode(&e, "berlin", 0, &v));
    e.names = NULL;
    CHECK(!encode(&e, "2.0", 0, &v) && v == 2 && !encode(&e, NULL, NAN, &v) && v == -1);
    CHECK_STR(encode(&e, "3", 0, &v), "not a class");
    CHECK_STR(encode(&e, NULL, 0.5, &v), "not a class number");
    rt_pool_free(&pool);
}

TEST(times_have_one_form) {
    RtEncoder e = {.as = RT_AS_TIME, .kind = RT_COL_TIME, .form = RT_DATE_DAY_FIRST};
    double v;
    CHECK(!encode(&e, "31/01/2020", 0, &v) && v == 1580428800);
    CHECK_STR(encode(&e, "01/31/2020", 0, &v), "not a time");
    CHECK_STR(encode(&e, "1580428800", 0, &v), "not a time");
    CHECK_STR(encode(&e, NULL, 1580428800, &v), "a number where times are dates");
    e.form = RT_DATE_SECONDS;
    CHECK(!encode(&e, "2020", 0, &v) && v == 2020 && !encode(&e, NULL, 2020, &v) && v == 2020);
    CHECK_STR(encode(&e, "2020-01-01", 0, &v), "not a time");
    CHECK(!encode(&e, "-62167219200", 0, &v) && v == -62167219200);
    CHECK_STR(encode(&e, "1e300", 0, &v), "not a time");
    CHECK_STR(encode(&e, NULL, INFINITY, &v), "not a time");
    CHECK(!encode(&e, "", 0, &v) && isnan(v));
}

TEST(ids_and_splits) {
    RtEncoder e = {.as = RT_AS_ID, .kind = RT_COL_ID};
    int64_t v;
    int8_t part;
    CHECK(!encode(&e, "9007199254740993", 0, &v) && v == 9007199254740993);
    CHECK(!encode(&e, NULL, 4294967296, &v) && v == 4294967296 && encode(&e, NULL, 1e18, &v));
    CHECK(!encode(&e, NULL, -0x1p53 + 1, &v) && v == -9007199254740991);
    CHECK(encode(&e, NULL, 0x1p53, &v) && encode(&e, NULL, -0x1p53, &v)); /* or one more */
    CHECK(!encode(&e, NULL, NAN, &v) && v == RT_ID_ABSENT && encode(&e, "x1", 0, &v));
    e.as = RT_AS_SPLIT;
    CHECK(!encode(&e, "Val", 0, &part) && part == 2 && !encode(&e, NULL, 3, &part) && part == 3);
    CHECK(encode(&e, "trn", 0, &part) && encode(&e, NULL, 4, &part));
}

TEST(encoders_of_other_values_differ) {
    RtEncoder a = {.as = RT_AS_NUMBER, .scale = RT_SCALE_STANDARD, .mean = 1, .deviation = 2},
              b = a;
    char text[120];
    CHECK(!rt_encoder_differs(&a, &b, text, sizeof text));
    b.mean = 3;
    CHECK_STR(rt_encoder_differs(&a, &b, text, sizeof text),
              "number standardised: mean 1, deviation 2");
    b.scale = RT_SCALE_PLAIN;
    CHECK_STR(rt_encoder_differs(&b, &a, text, sizeof text), "number as it is");
    b = (RtEncoder){.as = RT_AS_TEXT, .out = 64};
    CHECK_STR(rt_encoder_differs(&b, &a, text, sizeof text), "text of 64 values");
    a = b;
    CHECK(!rt_encoder_differs(&b, &a, text, sizeof text));
    a.out = 32;
    CHECK(rt_encoder_differs(&b, &a, text, sizeof text));
    a = (RtEncoder){.as = RT_AS_TIME, .form = RT_DATE_SECONDS};
    b = (RtEncoder){.as = RT_AS_TIME, .form = RT_DATE_DAY_FIRST};
    CHECK_STR(rt_encoder_differs(&a, &b, text, sizeof text), "time as a number");
    a.form = RT_DATE_ISO;
    CHECK(!rt_encoder_differs(&a, &b, text, sizeof text));
}

TEST_MAIN()
