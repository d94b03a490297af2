/* Rows into a table of a PostgreSQL database, in one transaction: by COPY, in its text form. */
#include <libpq-fe.h>
#include <string.h>

#include "export.h"
#include "runtime/data/json.h"
#include "source.h"

enum { FLUSH_BYTES = 1 << 16 };

typedef struct {
    const char *name; /* the database's, as the address may have a password */
    const Export *x;
    PGconn *db;
    RtPool pool;
    RtError *err;
} Write;

/* Reports what the server said about r; NULL: about the connection. */
static gnnc_status failed(Write *w, const PGresult *r) {
    const char *said =
        r && *PQresultErrorMessage(r) ? PQresultErrorMessage(r) : PQerrorMessage(w->db);
    return rt_fail(w->err, GNNC_E_IO, "%s: %s", w->name, source_line(&w->pool, said));
}

/* Runs a statement, whose answer must have the status `wanted`. sql NULL: memory ran out before. */
static gnnc_status tell(Write *w, const char *sql, ExecStatusType wanted) {
    if (!sql) return rt_fail_nomem(w->err, w->name);
    PGresult *r = PQexec(w->db, sql);
    gnnc_status st = PQresultStatus(r) == wanted ? GNNC_OK : failed(w, r);
    PQclear(r);
    return st;
}

/* Makes the table to export to, in place of one that is to be replaced; to append to one does
 * nothing. */
static gnnc_status make_table(Write *w) {
    static const char *const type[] = {
        [EXPORT_INTEGER] = " BIGINT", [EXPORT_REAL] = " DOUBLE PRECISION", [EXPORT_TEXT] = " TEXT"};
    SourceSql drop = {.pool = &w->pool}, sql = {.pool = &w->pool};
    gnnc_status st = GNNC_OK;
    if (w->x->onto == EXPORT_APPEND) return GNNC_OK;
    source_sql(&drop, "DROP TABLE IF EXISTS ");
    source_sql_name(&drop, w->x->table);
    if (w->x->onto == EXPORT_REPLACE) st = tell(w, drop.text, PGRES_COMMAND_OK);
    if (st != GNNC_OK) return st;
    source_sql(&sql, "CREATE TABLE ");
    source_sql_name(&sql, w->x->table);
    for (int i = 0; i < w->x->csv->n_columns; i++) {
        source_sql(&sql, i ? ", " : " (");
        source_sql_name(&sql, w->x->csv->header[i]);
        source_sql(&sql, type[w->x->type[i]]);
    }
    source_sql(&sql, ")");
    return tell(w, sql.text, PGRES_COMMAND_OK);
}

/* Begins to send rows, by COPY. */
static gnnc_status begin_rows(Write *w) {
    SourceSql sql = {.pool = &w->pool};
    source_sql(&sql, "COPY ");
    source_sql_name(&sql, w->x->table);
    for (int i = 0; i < w->x->csv->n_columns; i++) {
        source_sql(&sql, i ? ", " : " (");
        source_sql_name(&sql, w->x->csv->header[i]);
    }
    source_sql(&sql, ") FROM STDIN");
    return tell(w, sql.text, PGRES_COPY_IN);
}

/* Adds a cell to the text for COPY, with backslashes before what would end a cell or a row.
 * False: memory ran out. */
static bool put_cell(const Write *w, RtText *to, int i, const char *cell) {
    bool ok = i == 0 || rt_text_put(to, "\t", 1);
    if (export_is_null(w->x, i, cell)) return ok && rt_text_put(to, "\\N", 2);
    for (size_t n; *cell && ok; cell += n) {
        static const char special[] = "\\\t\n\r", letter[] = "\\tnr";
        const char *at = strchr(special, *cell);
        n = at ? 1 : strcspn(cell, special);
        const char text[2] = {'\\', at ? letter[at - special] : 0};
        ok = at ? rt_text_put(to, text, 2) : rt_text_put(to, cell, n);
    }
    return ok;
}

/* Sends the rows that are written in `text` and empties it. */
static gnnc_status flush(Write *w, RtText *text) {
    if (text->n && PQputCopyData(w->db, text->s, (int)text->n) != 1) return failed(w, NULL);
    text->n = 0;
    return GNNC_OK;
}

/* Sends all rows. */
static gnnc_status put_rows(Write *w) {
    const RtCsv *t = w->x->csv;
    RtText text = {.pool = &w->pool};
    gnnc_status st = GNNC_OK;
    for (int64_t r = 0; r < t->n_rows && st == GNNC_OK; r++) {
        bool ok = true;
        for (int i = 0; i < t->n_columns && ok; i++)
            ok = put_cell(w, &text, i, t->cell[r * t->n_columns + i]);
        if (!ok || !rt_text_put(&text, "\n", 1)) return rt_fail_nomem(w->err, w->name);
        if (text.n >= FLUSH_BYTES) st = flush(w, &text);
    }
    return st == GNNC_OK ? flush(w, &text) : st;
}

/* Ends sending rows; what the server says of them comes now. */
static gnnc_status end_rows(Write *w) {
    if (PQputCopyEnd(w->db, NULL) != 1) return failed(w, NULL);
    PGresult *r = PQgetResult(w->db);
    gnnc_status st = PQresultStatus(r) == PGRES_COMMAND_OK ? GNNC_OK : failed(w, r);
    while (r) {
        PQclear(r);
        r = PQgetResult(w->db);
    }
    return st;
}

/* Writes the whole table in one transaction: after a mistake the database is as before. */
static gnnc_status write_all(Write *w, const char *database) {
    gnnc_status st;
    w->db = PQconnectdb(database);
    if (!w->db) return rt_fail_nomem(w->err, w->name);
    if (PQstatus(w->db) != CONNECTION_OK) return failed(w, NULL);
    w->name = PQdb(w->db);
    TRY(st, tell(w, "SET client_encoding TO 'UTF8'", PGRES_COMMAND_OK));
    TRY(st, tell(w, "SET client_min_messages TO error", PGRES_COMMAND_OK));
    TRY(st, tell(w, "BEGIN", PGRES_COMMAND_OK));
    TRY(st, make_table(w));
    TRY(st, begin_rows(w));
    TRY(st, put_rows(w));
    TRY(st, end_rows(w));
    st = tell(w, "COMMIT", PGRES_COMMAND_OK);
out:
    return st;
}

/* Writes a table into a PostgreSQL database. What was not committed is undone when the
 * connection ends. */
gnnc_status source_postgres_write(const char *database, const Export *x, RtError *err) {
    Write w = {.name = "postgresql", .x = x, .err = err};
    rt_pool_init(&w.pool, NULL);
    gnnc_status st = write_all(&w, database);
    PQfinish(w.db);
    rt_pool_free(&w.pool);
    return st;
}
