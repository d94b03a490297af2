/* Rows into a table of an SQLite database, in one transaction. */
#include <sqlite3.h>
#include <string.h>

#include "export.h"
#include "runtime/data/number.h"
#include "source.h"

enum { WAIT_MS = 2000 };

typedef struct {
    const char *name;
    const Export *x;
    sqlite3 *db;
    RtPool pool;
    RtError *err;
} Write;

static gnnc_status failed(const Write *w, const char *where) {
    return rt_fail(w->err, GNNC_E_IO, "%s: %s%s", w->name, where, sqlite3_errmsg(w->db));
}

static gnnc_status tell(Write *w, const char *sql) {
    if (!sql) return rt_fail_nomem(w->err, w->name);
    return sqlite3_exec(w->db, sql, NULL, NULL, NULL) == SQLITE_OK ? GNNC_OK : failed(w, "");
}

/* Makes the table to export to, in place of one that is to be replaced; to append to one does
 * nothing. */
static gnnc_status make_table(Write *w) {
    static const char *const type[] = {
        [EXPORT_INTEGER] = " INTEGER", [EXPORT_REAL] = " REAL", [EXPORT_TEXT] = " TEXT"};
    SourceSql drop = {.pool = &w->pool}, sql = {.pool = &w->pool};
    gnnc_status st = GNNC_OK;
    if (w->x->onto == EXPORT_APPEND) return GNNC_OK;
    source_sql(&drop, "DROP TABLE IF EXISTS ");
    source_sql_name(&drop, w->x->table);
    if (w->x->onto == EXPORT_REPLACE) st = tell(w, drop.text);
    if (st != GNNC_OK) return st;
    source_sql(&sql, "CREATE TABLE ");
    source_sql_name(&sql, w->x->table);
    for (int i = 0; i < w->x->csv->n_columns; i++) {
        source_sql(&sql, i ? ", " : " (");
        source_sql_name(&sql, w->x->csv->header[i]);
        source_sql(&sql, type[w->x->type[i]]);
    }
    source_sql(&sql, ")");
    return tell(w, sql.text);
}

/* Prepares the statement *q that inserts one row. */
static gnnc_status begin_rows(Write *w, sqlite3_stmt **q) {
    SourceSql sql = {.pool = &w->pool};
    int n = w->x->csv->n_columns;
    source_sql(&sql, "INSERT INTO ");
    source_sql_name(&sql, w->x->table);
    for (int i = 0; i < n; i++) {
        source_sql(&sql, i ? ", " : " (");
        source_sql_name(&sql, w->x->csv->header[i]);
    }
    for (int i = 0; i < n; i++) source_sql(&sql, i ? ", ?" : ") VALUES (?");
    source_sql(&sql, ")");
    if (!sql.text) return rt_fail_nomem(w->err, w->name);
    return sqlite3_prepare_v2(w->db, sql.text, -1, q, NULL) == SQLITE_OK ? GNNC_OK : failed(w, "");
}

/* Sets the i-th value of the row that q inserts. Returns SQLite's code. */
static int bind_cell(const Write *w, sqlite3_stmt *q, int i, const char *cell) {
    int64_t whole;
    double number;
    if (export_is_null(w->x, i, cell)) return sqlite3_bind_null(q, i + 1);
    if (w->x->type[i] == EXPORT_INTEGER && rt_cell_integer(cell, &whole))
        return sqlite3_bind_int64(q, i + 1, whole);
    if (w->x->type[i] == EXPORT_REAL && rt_cell_number(cell, &number))
        return sqlite3_bind_double(q, i + 1, number);
    return sqlite3_bind_text(q, i + 1, cell, -1, SQLITE_STATIC);
}

/* Inserts all rows. */
static gnnc_status put_rows(Write *w, sqlite3_stmt *q) {
    const RtCsv *t = w->x->csv;
    for (int64_t r = 0; r < t->n_rows; r++) {
        int rc = SQLITE_OK;
        for (int i = 0; i < t->n_columns && rc == SQLITE_OK; i++)
            rc = bind_cell(w, q, i, t->cell[r * t->n_columns + i]);
        if (rc == SQLITE_OK) rc = sqlite3_step(q);
        if (rc != SQLITE_DONE || sqlite3_reset(q) != SQLITE_OK)
            return rt_fail(w->err, GNNC_E_IO, "%s: %s: row %lld: %s", w->name, t->name,
                           (long long)t->line[r], sqlite3_errmsg(w->db));
    }
    return GNNC_OK;
}

/* Writes the whole table in one transaction: after a mistake the database is as before. */
static gnnc_status write_all(Write *w) {
    sqlite3_stmt *q = NULL;
    gnnc_status st;
    int rc = sqlite3_open_v2(w->name, &w->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (!w->db) return rt_fail_nomem(w->err, w->name);
    if (rc != SQLITE_OK) return failed(w, "");
    sqlite3_busy_timeout(w->db, WAIT_MS);
    sqlite3_db_config(w->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(w->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL); /* it may have triggers */
    TRY(st, tell(w, "BEGIN IMMEDIATE"));
    TRY(st, make_table(w));
    TRY(st, begin_rows(w, &q));
    st = put_rows(w, q);
    sqlite3_finalize(q);
    if (st == GNNC_OK) st = tell(w, "COMMIT");
out:
    return st;
}

/* Writes a table into an SQLite database. What was not committed is undone when it is closed. */
gnnc_status source_sqlite_write(const char *database, const Export *x, RtError *err) {
    Write w = {.name = database, .x = x, .err = err};
    rt_pool_init(&w.pool, NULL);
    gnnc_status st = write_all(&w);
    sqlite3_close(w.db);
    rt_pool_free(&w.pool);
    return st;
}
