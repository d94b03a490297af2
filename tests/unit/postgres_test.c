/* Rows of PostgreSQL as a server sends them: answers made here, no server. */
#include "test.h"

#if __has_include(<libpq-fe.h>)
#include "frontend/source/postgres.c"

/* An answer of one row and one column. */
static PGresult *answer(const char *bytes, int n) {
    char name[] = "x";
    PGresAttDesc column = {.name = name, .format = 1};
    PGresult *r = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    CHECK(r && PQsetResultAttrs(r, 1, &column));
    CHECK(PQsetvalue(r, 0, 0, (char *)(uintptr_t)bytes, n));
    return r;
}

static gnnc_status read_one(Form as, const char *bytes, int n, RtDatum *cell, RtError *err) {
    Postgres x = {.table = "t", .n = 1, .size = 1, .form = &as, .open = true};
    RtSource s = {.form = &form, .state = &x, .name = "shop"};
    int64_t line;
    rt_pool_init(&s.pool, NULL);
    x.batch = answer(bytes, n);
    gnnc_status st = next_row(&s, cell, &line, err);
    PQclear(x.batch);
    rt_pool_free(&s.pool);
    return st;
}

TEST(numbers_are_of_eight_bytes) {
    static const char half[8] = {0x3f, (char)0xe0}, seven[8] = {0, 0, 0, 0, 0, 0, 0, 7};
    static const int wrong[] = {0, 1, 4, 7, 9};
    char bytes[9] = "";
    RtDatum c;
    RtError err = {""};
    CHECK(read_one(AS_FLOAT8, half, 8, &c, &err) == GNNC_OK && c.type == RT_DATUM_REAL);
    CHECK(c.d == 0.5);
    CHECK(read_one(AS_INT8, seven, 8, &c, &err) == GNNC_OK && c.type == RT_DATUM_INTEGER);
    CHECK(c.i == 7);
    CHECK(read_one(AS_FLOAT8, NULL, -1, &c, &err) == GNNC_OK && c.type == RT_DATUM_NULL);
    CHECK(read_one(AS_TEXT, "abc", 3, &c, &err) == GNNC_OK && c.n == 3);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        for (Form as = AS_INT8; as <= AS_FLOAT8; as++) {
            err = (RtError){""};
            CHECK(read_one(as, bytes, wrong[i], &c, &err) == GNNC_E_IO);
            CHECK_MSG(strstr(err.text, "shop: t: row 1: a number of another size"), "%s", err.text);
        }
}

/* Decimals are what a copy in SQLite has: whole ones integers, others reals. */
TEST(decimals_are_numbers) {
    static const struct {
        const char *text;
        rt_datum_type type;
        int64_t i;
        double d;
    } of[] = {
        {"5", RT_DATUM_INTEGER, 5, 0},
        {"-5.00", RT_DATUM_INTEGER, -5, 0},
        {"9223372036854775807", RT_DATUM_INTEGER, INT64_MAX, 0},
        {"2251799813685247.0", RT_DATUM_INTEGER, 2251799813685247, 0},
        {"2251799813685248.0", RT_DATUM_REAL, 0, 0x1p51},
        {"9223372036854775808", RT_DATUM_REAL, 0, 0x1p63},
        {"1.50", RT_DATUM_REAL, 0, 1.5},
    };
    RtDatum c;
    RtError err = {""};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        const char *text = of[i].text;
        CHECK(read_one(AS_NUMBER, text, (int)strlen(text), &c, &err) == GNNC_OK);
        CHECK_MSG(c.type == of[i].type, "%s", text);
        CHECK_MSG(c.type == RT_DATUM_REAL ? c.d == of[i].d : c.i == of[i].i, "%s", text);
    }
    CHECK(read_one(AS_NUMBER, "NaN", 3, &c, &err) == GNNC_OK && isnan(c.d));
}
#endif

TEST_MAIN()
