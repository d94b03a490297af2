/* SQLite databases whose reading fails at any step: each failure is told, none gives less data. */
#include "test.h"

#if __has_include(<sqlite3.h>)
#include <sqlite3.h>

static long steps_left; /* until one fails; below 0: none does */

static int step_or_fail(sqlite3_stmt *q) {
    return steps_left-- == 0 ? SQLITE_IOERR : sqlite3_step(q);
}

#define sqlite3_step step_or_fail
#include "frontend/source/sqlite.c"
#undef sqlite3_step

#include <unistd.h>

static void make_database(const char *path) {
    sqlite3 *db;
    CHECK(sqlite3_open(path, &db) == SQLITE_OK);
    CHECK(sqlite3_exec(db,
                       "CREATE TABLE a (k INTEGER PRIMARY KEY, x REAL, s TEXT);"
                       "CREATE TABLE b (a INTEGER REFERENCES a (k), y INTEGER);"
                       "INSERT INTO a VALUES (1, 0.5, 'u'), (2, 1.5, 'v');"
                       "INSERT INTO b VALUES (1, 3), (2, 4), (2, 5);",
                       NULL, NULL, NULL) == SQLITE_OK);
    sqlite3_close(db);
}

static gnnc_status read_rows(RtSource *s, int table, RtError *err) {
    const RtSourceTable *t = &s->tables[table];
    const int column[2] = {0, 1};
    RtDatum cell[2];
    int64_t line = 1, n = 0;
    gnnc_status st = s->form->begin(s, table, column, 2, err);
    while (st == GNNC_OK && line) {
        st = s->form->next(s, cell, &line, err);
        n += line > 0;
    }
    s->form->end(s);
    if (st == GNNC_OK) CHECK_MSG(n == t->n_rows, "%s: %lld rows", t->name, (long long)n);
    return st;
}

/* All of the database, of which the step `fails_at` fails. */
static gnnc_status read_all(const char *path, long fails_at, RtError *err) {
    RtSource s;
    RtImport how = {0};
    steps_left = fails_at;
    gnnc_status st = source_sqlite_open(NULL, path, &how, &s, err);
    if (st == GNNC_OK) {
        CHECK(s.n_tables == 2 && s.tables[0].n_columns == 3 && s.tables[1].n_columns == 2);
        CHECK(s.tables[0].key.n == 1 && s.tables[1].n_references == 1);
        for (int i = 0; i < 2; i++)
            for (int k = 0; k < s.tables[i].n_columns; k++) CHECK(s.tables[i].columns[k].name);
    }
    for (int i = 0; i < 2 && st == GNNC_OK; i++) st = read_rows(&s, i, err);
    if (s.form) s.form->close(&s);
    return st;
}

TEST(each_step_that_fails_is_told) {
    char path[] = "/tmp/sqlite_test_XXXXXX";
    int fd = mkstemp(path);
    CHECK(fd >= 0 && close(fd) == 0);
    make_database(path);
    RtError err = {""};
    CHECK_MSG(read_all(path, -1, &err) == GNNC_OK, "%s", err.text);
    long n = 0;
    while (n < 200) {
        err = (RtError){""};
        gnnc_status st = read_all(path, n, &err);
        if (steps_left >= 0) break; /* there was no such step */
        CHECK_MSG(st == GNNC_E_IO && *err.text, "step %ld: %d %s", n, st, err.text);
        n++;
    }
    CHECK_MSG(n > 20 && n < 200, "%ld steps", n);
    unlink(path);
}
#endif

TEST_MAIN()
