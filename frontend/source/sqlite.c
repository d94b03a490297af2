/* SQLite databases, read in one transaction: what others write meanwhile is not seen. */
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "source.h"

enum { WAIT_MS = 2000, LARGEST_CELL = 256 << 20 };

typedef struct {
    sqlite3 *db;
    sqlite3_stmt *rows;
    const char *table; /* that is read */
    int n;
    int64_t row;
    RtPool pool; /* of its SQL */
    RtImport *how;
} Sqlite;

/* Reports what SQLite says about its last call. table NULL: it was about none. */
static gnnc_status failed(const RtSource *s, const char *table, RtError *err) {
    Sqlite *x = s->state;
    return rt_fail(err, sqlite3_errcode(x->db) == SQLITE_NOMEM ? GNNC_E_NOMEM : GNNC_E_IO,
                   "%s: %s%s%s", s->name, table ? table : "", table ? ": " : "",
                   sqlite3_errmsg(x->db));
}

/* ---- the catalogue ------------------------------------------------------------------------ */
/* Prepares the statement *q, whose one parameter is `table`; NULL: it has none. */
static gnnc_status ask(RtSource *s, const char *sql, const char *table, sqlite3_stmt **q,
                       RtError *err) {
    Sqlite *x = s->state;
    if (sqlite3_prepare_v2(x->db, sql, -1, q, NULL) != SQLITE_OK ||
        (table && sqlite3_bind_text(*q, 1, table, -1, SQLITE_STATIC) != SQLITE_OK)) {
        sqlite3_finalize(*q);
        return failed(s, table, err);
    }
    return GNNC_OK;
}

/* Ends a statement whose last step gave rc: an error, unless that is SQLITE_DONE. */
static gnnc_status answered(RtSource *s, sqlite3_stmt *q, int rc, const char *table, RtError *err) {
    gnnc_status st = rc == SQLITE_DONE ? GNNC_OK : failed(s, table, err);
    sqlite3_finalize(q);
    return st;
}

static const char *text_of(sqlite3_stmt *q, int i) {
    const char *t = (const char *)sqlite3_column_text(q, i);
    return t ? t : "";
}

/* Sets *n to the number that a statement gives. */
static gnnc_status count(RtSource *s, const char *sql, const char *table, int64_t *n,
                         RtError *err) {
    sqlite3_stmt *q;
    gnnc_status st = ask(s, sql, NULL, &q, err);
    if (st != GNNC_OK) return st;
    int rc = sqlite3_step(q);
    if (rc == SQLITE_ROW) {
        *n = sqlite3_column_int64(q, 0);
        rc = sqlite3_step(q);
    }
    return answered(s, q, rc, table, err);
}

static const char tables_sql[] =
    "SELECT name, type FROM pragma_table_list WHERE schema = 'main' AND "
    "substr(name, 1, 7) <> 'sqlite_' ORDER BY name";

/* Lists the tables of the database. Views and virtual tables are left out with a warning. */
static gnnc_status list_tables(RtSource *s, RtError *err) {
    Sqlite *x = s->state;
    sqlite3_stmt *q;
    int64_t n = 0;
    int rc;
    gnnc_status st = count(s, "SELECT count(*) FROM pragma_table_list", NULL, &n, err);
    if (st != GNNC_OK || (st = ask(s, tables_sql, NULL, &q, err)) != GNNC_OK) return st;
    s->tables = RT_NEWN(&s->pool, RtSourceTable, n + 1);
    while ((rc = sqlite3_step(q)) == SQLITE_ROW && s->tables && s->n_tables <= n) {
        const char *name = text_of(q, 0), *type = text_of(q, 1);
        if (strcmp(type, "table") == 0) {
            RtSourceTable *t = &s->tables[s->n_tables++];
            if (!(t->name = rt_pool_strndup(&s->pool, name, strlen(name)))) break;
        } else if (strcmp(type, "shadow") != 0) {
            rt_import_warn(x->how, "%s: '%.80s' is left out: it is a %s%s", s->name, name, type,
                           strcmp(type, "virtual") == 0 ? " table" : "");
        }
    }
    if (rc == SQLITE_ROW) {
        sqlite3_finalize(q);
        return rt_fail_nomem(err, s->name);
    }
    return answered(s, q, rc, NULL, err);
}

static const char columns_sql[] = "SELECT name, type, pk, hidden FROM pragma_table_xinfo(?1)";

/* Fills the i-th column of a table from a row of columns_sql, and its place in the key. False:
 * memory ran out. */
static bool read_column(RtSource *s, RtSourceTable *t, int i, sqlite3_stmt *q) {
    RtSourceColumn *c = &t->columns[i];
    int key = sqlite3_column_int(q, 2), hidden = sqlite3_column_int(q, 3);
    const char *name = text_of(q, 0);
    c->name = rt_pool_strndup(&s->pool, name, strlen(name));
    c->declared = rt_declared_type(text_of(q, 1));
    c->computed = hidden > 1;
    if (key > 0 && key <= RT_KEY_COLUMNS) {
        t->key.at[key - 1] = i;
        if (key > t->key.n) t->key.n = key;
    }
    return c->name;
}

/* Reads the columns of a table, its key and how many rows it has. */
static gnnc_status read_columns(RtSource *s, RtSourceTable *t, RtError *err) {
    sqlite3_stmt *q;
    int rc, i = 0, n = 0;
    SourceSql sql = {.pool = &s->pool};
    source_sql(&sql, "SELECT count(*) FROM ");
    source_sql_name(&sql, t->name);
    if (!sql.text) return rt_fail_nomem(err, s->name);
    gnnc_status st = count(s, sql.text, t->name, &t->n_rows, err);
    if (st == GNNC_OK) st = ask(s, columns_sql, t->name, &q, err);
    if (st != GNNC_OK) return st;
    while ((rc = sqlite3_step(q)) == SQLITE_ROW) n++;
    if (rc == SQLITE_DONE) {
        sqlite3_reset(q);
        bool ok = rt_source_columns(&s->pool, t, n);
        while (ok && (rc = sqlite3_step(q)) == SQLITE_ROW && i < n) ok = read_column(s, t, i++, q);
        if (!ok) {
            sqlite3_finalize(q);
            return rt_fail_nomem(err, s->name);
        }
    }
    t->unique = t->key.n;
    st = answered(s, q, rc, t->name, err);
    if (st == GNNC_OK && i < n)
        st = rt_fail(err, GNNC_E_IO, "%s: %s: its columns are others now", s->name, t->name);
    return st;
}

/* The place of the table of that name in any case, as SQLite has names; -1: there is none. */
static int find_table(const RtSource *s, const char *name) {
    for (int i = 0; i < s->n_tables; i++)
        if (strcasecmp(s->tables[i].name, name) == 0) return i;
    return -1;
}

/* The place of the column of that name in any case; -1: there is none. */
static int find_column(const RtSourceTable *t, const char *name) {
    for (int i = 0; i < t->n_columns; i++)
        if (strcasecmp(t->columns[i].name, name) == 0) return i;
    return -1;
}

/* Adds a column of a foreign key to the reference r. False: there is no such column, or too
 * many. */
static bool read_part(RtSource *s, const RtSourceTable *t, sqlite3_stmt *q, RtReference *r) {
    int from = find_column(t, text_of(q, 2));
    bool named = sqlite3_column_type(q, 3) != SQLITE_NULL;
    int to = named ? find_column(&s->tables[r->table], text_of(q, 3)) : 0;
    if (from < 0 || to < 0 || r->from.n == RT_KEY_COLUMNS) return false;
    r->from.at[r->from.n++] = from;
    if (named) r->to.at[r->to.n++] = to;
    return true;
}

/* Adds a foreign key, all of whose columns were read, to the references of t. good: it leads to
 * columns that exist. Else it is left out with a warning. */
static gnnc_status end_reference(RtSource *s, RtSourceTable *t, RtReference *r, bool good,
                                 RtError *err) {
    Sqlite *x = s->state;
    if (!r->from.n) return GNNC_OK;
    const RtSourceTable *to = &s->tables[r->table];
    int n = r->to.n ? r->to.n : to->key.n;
    if (good && n == r->from.n)
        return rt_source_refer(&s->pool, t, r) ? GNNC_OK : rt_fail_nomem(err, s->name);
    rt_import_warn(x->how,
                   "%s: column '%.80s': its foreign key leads to no key of '%.80s': no edges",
                   t->name, t->columns[r->from.at[0]].name, to->name);
    return GNNC_OK;
}

static const char references_sql[] =
    "SELECT seq, \"table\", \"from\", \"to\" FROM pragma_foreign_key_list(?1) ORDER BY id, seq";

/* Reads the foreign keys of a table. A row of the answer is one column of a key; number 0 begins
 * the next key. */
static gnnc_status read_references(RtSource *s, RtSourceTable *t, RtError *err) {
    Sqlite *x = s->state;
    sqlite3_stmt *q;
    RtReference r = {0};
    bool good = true;
    int rc;
    gnnc_status st = ask(s, references_sql, t->name, &q, err);
    if (st != GNNC_OK) return st;
    while ((rc = sqlite3_step(q)) == SQLITE_ROW && st == GNNC_OK) {
        s->declares = true;
        if (sqlite3_column_int(q, 0) == 0) {
            st = end_reference(s, t, &r, good, err);
            r = (RtReference){.table = find_table(s, text_of(q, 1))};
            good = true;
            if (r.table < 0)
                rt_import_warn(x->how, "%s: column '%.80s': there is no table '%.80s': no edges",
                               t->name, text_of(q, 2), text_of(q, 1));
        }
        if (r.table >= 0) good = read_part(s, t, q, &r) && good;
    }
    if (st != GNNC_OK) {
        sqlite3_finalize(q);
        return st;
    }
    st = answered(s, q, rc, t->name, err);
    return st == GNNC_OK ? end_reference(s, t, &r, good, err) : st;
}

/* ---- rows ------------------------------------------------------------------------------------ */
/* Adds ORDER BY n columns to a statement. Texts are compared byte by byte. */
static void put_order(SourceSql *sql, const RtSourceTable *t, const int *order, int n) {
    for (int i = 0; i < n; i++) {
        rt_declared type = t->columns[order[i]].declared;
        source_sql(sql, i ? ", " : " ORDER BY ");
        source_sql_name(sql, t->columns[order[i]].name);
        if (type == RT_DECLARED_TEXT || type == RT_DECLARED_NONE)
            source_sql(sql, " COLLATE BINARY");
    }
}

/* Begins to read n columns of a table in a fixed order. */
static gnnc_status begin_rows(RtSource *s, int table, const int *column, int n, RtError *err) {
    Sqlite *x = s->state;
    const RtSourceTable *t = &s->tables[table];
    SourceSql sql = {.pool = &x->pool};
    int *order = RT_NEWN(&x->pool, int, t->n_columns + RT_KEY_COLUMNS);
    if (!order) return rt_fail_nomem(err, t->name);
    x->table = t->name;
    x->row = 0;
    x->n = n;
    source_sql_with(&sql, t);
    source_sql(&sql, n ? "SELECT " : "SELECT 0");
    for (int i = 0; i < n; i++) {
        source_sql(&sql, i ? ", " : "");
        source_sql_name(&sql, t->columns[column[i]].name);
    }
    source_sql(&sql, " FROM ");
    source_sql_name(&sql, t->name);
    put_order(&sql, t, order, source_order(t, order));
    if (!sql.text) return rt_fail_nomem(err, t->name);
    if (sqlite3_prepare_v2(x->db, sql.text, -1, &x->rows, NULL) != SQLITE_OK)
        return failed(s, t->name, err);
    return GNNC_OK;
}

/* Sets *c to the i-th value of the present row. False: memory ran out. */
static bool read_cell(sqlite3_stmt *q, int i, RtDatum *c) {
    switch (sqlite3_column_type(q, i)) {
    case SQLITE_INTEGER:
        *c = (RtDatum){.type = RT_DATUM_INTEGER, .i = sqlite3_column_int64(q, i)};
        return true;
    case SQLITE_FLOAT:
        *c = (RtDatum){.type = RT_DATUM_REAL, .d = sqlite3_column_double(q, i)};
        return true;
    case SQLITE_TEXT:
        *c = (RtDatum){.type = RT_DATUM_TEXT, .s = (const char *)sqlite3_column_text(q, i)};
        c->n = (size_t)sqlite3_column_bytes(q, i);
        return c->s;
    case SQLITE_BLOB:
        *c = (RtDatum){.type = RT_DATUM_BLOB};
        return true;
    default:
        *c = (RtDatum){.type = RT_DATUM_NULL};
        return true;
    }
}

/* Sets the cells of the next row and *line to its number; *line is 0 when there is none. */
static gnnc_status next_row(RtSource *s, RtDatum *cell, int64_t *line, RtError *err) {
    Sqlite *x = s->state;
    *line = 0;
    int rc = sqlite3_step(x->rows);
    if (rc == SQLITE_DONE) return GNNC_OK;
    if (rc != SQLITE_ROW)
        return rt_fail(err, GNNC_E_IO, "%s: %s: row %lld: %s", s->name, x->table,
                       (long long)x->row + 1, sqlite3_errmsg(x->db));
    *line = ++x->row;
    for (int i = 0; i < x->n; i++)
        if (!read_cell(x->rows, i, &cell[i])) return rt_fail_nomem(err, x->table);
    return GNNC_OK;
}

/* Ends reading a table, whether all its rows were read or not. */
static void end_rows(RtSource *s) {
    Sqlite *x = s->state;
    sqlite3_finalize(x->rows);
    x->rows = NULL;
    rt_pool_free(&x->pool);
}

/* Closes the database and frees all that was read. */
static void close_database(RtSource *s) {
    Sqlite *x = s->state;
    end_rows(s);
    sqlite3_close_v2(x->db);
    rt_pool_free(&s->pool);
}

/* ---- a SELECT -------- */
/* Sets *n to how many columns a query has, which must be one statement that only reads. */
static gnnc_status select_columns(RtSource *s, const char *name, const char *sql, int *n,
                                  RtError *err) {
    Sqlite *x = s->state;
    sqlite3_stmt *q;
    const char *rest;
    if (sqlite3_prepare_v2(x->db, sql, -1, &q, &rest) != SQLITE_OK) return failed(s, name, err);
    *n = sqlite3_column_count(q);
    bool reads = q && sqlite3_stmt_readonly(q);
    sqlite3_finalize(q);
    if (reads && *n && !*rest) return GNNC_OK;
    return rt_fail(err, GNNC_E_FORMAT, "%s: one SELECT is expected, without a ';'", name);
}

/* Adds the result of a SELECT as a table `name`. columns: gives names to its n columns. */
static gnnc_status ask_select(RtSource *s, const char *name, const char *sql,
                              const char *columns(RtPool *pool, int i, int n), RtError *err) {
    int n = 0;
    gnnc_status st = select_columns(s, name, sql, &n, err);
    if (st != GNNC_OK) return st;
    RtSourceTable *t = rt_source_add(s);
    if (!t || !rt_source_columns(&s->pool, t, n)) return rt_fail_nomem(err, name);
    t->name = name;
    t->sql = sql;
    for (int i = 0; i < n; i++)
        if (!(t->columns[i].name = columns(&s->pool, i, n))) return rt_fail_nomem(err, name);
    SourceSql all = {.pool = &s->pool};
    source_sql_with(&all, t);
    source_sql(&all, "SELECT count(*) FROM ");
    source_sql_name(&all, name);
    return all.text ? count(s, all.text, name, &t->n_rows, err) : rt_fail_nomem(err, name);
}

static const RtSourceForm form = {begin_rows, next_row, end_rows, close_database, ask_select};

/* Opens a database to read it. A schema that was made to harm runs nothing: no functions in it,
 * no writes. */
static gnnc_status open_file(RtSource *s, const char *path, RtError *err) {
    Sqlite *x = s->state;
    FILE *f = fopen(path, "rbe");
    if (!f) return rt_fail_errno(err, path, "open");
    fclose(f);
    if (sqlite3_open_v2(path, &x->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL) !=
        SQLITE_OK)
        return x->db ? failed(s, NULL, err) : rt_fail_nomem(err, path);
    sqlite3_busy_timeout(x->db, WAIT_MS);
    sqlite3_limit(x->db, SQLITE_LIMIT_LENGTH, LARGEST_CELL);
    sqlite3_db_config(x->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(x->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    if (sqlite3_exec(x->db, "PRAGMA cell_size_check = 1; BEGIN", NULL, NULL, NULL) != SQLITE_OK)
        return failed(s, NULL, err);
    return GNNC_OK;
}

/* Opens an SQLite database and reads what tables, columns and keys it has. */
gnnc_status source_sqlite_open(const RtAlloc *from, const char *input, RtImport *how, RtSource *out,
                               RtError *err) {
    gnnc_status st;
    *out = (RtSource){.name = input};
    rt_pool_init(&out->pool, from);
    Sqlite *x = RT_NEW(&out->pool, Sqlite);
    if (!x) return rt_fail_nomem(err, input);
    x->how = how;
    rt_pool_init(&x->pool, from);
    out->state = x;
    out->form = &form;
    TRY(st, open_file(out, input, err));
    TRY(st, list_tables(out, err));
    for (int i = 0; i < out->n_tables; i++) TRY(st, read_columns(out, &out->tables[i], err));
    for (int i = 0; i < out->n_tables; i++) TRY(st, read_references(out, &out->tables[i], err));
out:
    return st;
}
