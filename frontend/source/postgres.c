/* PostgreSQL databases, read in one transaction that sees what was there when it began.  Whole
 * numbers and doubles come in binary form; whatever else is a text of the server's. */
#include <endian.h>
#include <libpq-fe.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/data/csv.h"
#include "runtime/data/number.h"
#include "source.h"

/* How a column comes; AS_NUMBER: as the text of a number. */
typedef enum { AS_TEXT, AS_NUMBER, AS_INT8, AS_FLOAT8 } Form;

typedef struct {
    PGconn *db;
    PGresult *batch;
    const char *table;
    int n, at, size;
    Form *form; /* of the columns that are read */
    int64_t row;
    bool open; /* a cursor */
    RtPool pool;
    RtImport *how;
} Postgres;

/* A table's `state`: how its columns are asked for ("a"::int8), and come. */
typedef struct {
    Form *form;
    const char **cast;
} Asked;

/* Fails with what went wrong, in the server's words or ours, after the name of the source and the
 * row that was read. */
static gnnc_status failed(RtSource *s, const char *what, RtError *err) {
    Postgres *x = s->state;
    char where[160] = "";
    if (x->table && x->open)
        snprintf(where, sizeof where, "%.100s: row %lld: ", x->table, (long long)x->row + 1);
    return rt_fail(err, GNNC_E_IO, "%s: %s%s", s->name, where, source_line(&s->pool, what));
}

/* Asks the server for the answer to a statement, which may have one parameter. NULL and an
 * error: there is none. */
static PGresult *ask(RtSource *s, const char *sql, const char *parameter, RtError *err) {
    Postgres *x = s->state;
    PGresult *r = PQexecParams(x->db, sql, parameter ? 1 : 0, NULL, &parameter, NULL, NULL, 0);
    ExecStatusType is = PQresultStatus(r);
    if (is == PGRES_TUPLES_OK || is == PGRES_COMMAND_OK) return r;
    failed(s, r && *PQresultErrorMessage(r) ? PQresultErrorMessage(r) : PQerrorMessage(x->db), err);
    PQclear(r);
    return NULL;
}

/* Runs a statement that gives no rows. */
static gnnc_status tell(RtSource *s, const char *sql, RtError *err) {
    PGresult *r = ask(s, sql, NULL, err);
    PQclear(r);
    return r ? GNNC_OK : GNNC_E_IO;
}

/* ---- the catalogue ------------------------------------------------------------------------ */
static const char tables_sql[] =
    "SELECT c.relname, c.relkind, c.oid::text FROM pg_catalog.pg_class c "
    "WHERE c.relnamespace = pg_catalog.quote_ident(current_schema())::regnamespace "
    "AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition "
    "ORDER BY c.relname COLLATE \"C\"";

static const char *kept(RtSource *s, PGresult *r, int row, int column) {
    return rt_pool_strndup(&s->pool, PQgetvalue(r, row, column),
                           (size_t)PQgetlength(r, row, column));
}

/* Lists the tables of the database; oids[i]: the server's number of the i-th. Views and foreign
 * tables are left out with a warning. */
static gnnc_status list_tables(RtSource *s, const char ***oids, RtError *err) {
    Postgres *x = s->state;
    PGresult *r = ask(s, tables_sql, NULL, err);
    if (!r) return GNNC_E_IO;
    int n = PQntuples(r);
    bool ok = true;
    s->tables = RT_NEWN(&s->pool, RtSourceTable, n);
    *oids = RT_NEWN(&s->pool, const char *, n);
    ok = s->tables && *oids;
    for (int i = 0; i < n && ok; i++) {
        const char *kind = PQgetvalue(r, i, 1);
        if (*kind != 'r' && *kind != 'p') {
            rt_import_warn(x->how, "%s: '%.80s' is left out: it is a %s", s->name,
                           PQgetvalue(r, i, 0), *kind == 'f' ? "foreign table" : "view");
            continue;
        }
        (*oids)[s->n_tables] = kept(s, r, i, 2);
        s->tables[s->n_tables].name = kept(s, r, i, 0);
        ok = (*oids)[s->n_tables] && s->tables[s->n_tables].name;
        s->n_tables++;
    }
    PQclear(r);
    return ok ? GNNC_OK : rt_fail_nomem(err, s->name);
}

/* A domain is what it stands for. */
static const char columns_sql[] =
    "SELECT a.attname, a.attgenerated <> '', b.typname, b.typcategory, a.attnum "
    "FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid "
    "JOIN pg_catalog.pg_type b ON b.oid = CASE t.typtype WHEN 'd' THEN t.typbasetype ELSE t.oid "
    "END "
    "WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum";

/* A text whose order is that of its bytes, whatever the database's language. */
#define BY_BYTES "::text COLLATE \"C\""

/* A float4 is the number that its text says, 0.1, as in a copy of the database, and not the nearest
 * of 24 bits. */
static const struct {
    const char *type;
    rt_declared declared;
    const char *before, *after;
    Form form;
} known[] = {
    {"int2", RT_DECLARED_INTEGER, "", "::int8", AS_INT8},
    {"int4", RT_DECLARED_INTEGER, "", "::int8", AS_INT8},
    {"int8", RT_DECLARED_INTEGER, "", "::int8", AS_INT8},
    {"bool", RT_DECLARED_BOOLEAN, "", "::int4::int8", AS_INT8},
    {"float4", RT_DECLARED_REAL, "", "::text::float8", AS_FLOAT8},
    {"float8", RT_DECLARED_REAL, "", "::float8", AS_FLOAT8},
    {"numeric", RT_DECLARED_REAL, "", "::text", AS_NUMBER},
    {"money", RT_DECLARED_REAL, "", "::numeric::text", AS_NUMBER},
    {"date", RT_DECLARED_TIME, "", BY_BYTES, AS_TEXT},
    {"timestamp", RT_DECLARED_TIME, "", BY_BYTES, AS_TEXT},
    {"timestamptz", RT_DECLARED_TIME, "(", " AT TIME ZONE 'UTC')" BY_BYTES, AS_TEXT},
    {"bytea", RT_DECLARED_BLOB, "", " IS NULL", AS_TEXT},
};

/* The column as a SELECT asks for it: its name between `before` and `after`, such as "a"::int8.
 * NULL: memory ran out. */
static const char *cast_of(RtSource *s, const char *name, const char *before, const char *after) {
    SourceSql sql = {.pool = &s->pool};
    source_sql(&sql, before);
    source_sql_name(&sql, name);
    source_sql(&sql, after);
    return sql.text;
}

/* Fills the i-th column of a table by the server's type name; types that are not known are read
 * as text. False: memory ran out. */
static bool put_column(RtSource *s, RtSourceTable *t, int i, const char *name, const char *type) {
    Asked *asked = t->state;
    RtSourceColumn *c = &t->columns[i];
    const char *before = "", *after = BY_BYTES;
    c->name = name;
    c->declared = RT_DECLARED_TEXT;
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        if (strcmp(type, known[k].type) != 0) continue;
        c->declared = known[k].declared;
        before = known[k].before;
        after = known[k].after;
        asked->form[i] = known[k].form;
    }
    asked->cast[i] = c->name ? cast_of(s, c->name, before, after) : NULL;
    return asked->cast[i];
}

static bool read_column(RtSource *s, RtSourceTable *t, int i, PGresult *r) {
    t->columns[i].computed = *PQgetvalue(r, i, 1) == 't';
    return put_column(s, t, i, kept(s, r, i, 0), PQgetvalue(r, i, 2));
}

/* Takes memory for n columns of a table. False: it ran out. */
static bool room_for_columns(RtSource *s, RtSourceTable *t, int n) {
    Asked *asked = t->state = RT_NEW(&s->pool, Asked);
    if (asked) *asked = (Asked){RT_NEWN(&s->pool, Form, n), RT_NEWN(&s->pool, const char *, n)};
    return asked && asked->form && asked->cast && rt_source_columns(&s->pool, t, n);
}

static const char keys_sql[] =
    "SELECT c.contype, c.conrelid, c.confrelid::text, "
    "(SELECT string_agg((SELECT count(*) FROM pg_catalog.pg_attribute a WHERE a.attrelid = "
    "c.conrelid AND a.attnum > 0 AND a.attnum < k.n AND NOT a.attisdropped)::text, ' ' ORDER BY "
    "k.i) FROM unnest(c.conkey) WITH ORDINALITY k(n, i)), "
    "(SELECT string_agg((SELECT count(*) FROM pg_catalog.pg_attribute a WHERE a.attrelid = "
    "c.confrelid AND a.attnum > 0 AND a.attnum < k.n AND NOT a.attisdropped)::text, ' ' ORDER BY "
    "k.i) FROM unnest(c.confkey) WITH ORDINALITY k(n, i)) "
    "FROM pg_catalog.pg_constraint c WHERE c.conrelid = $1::oid AND c.contype IN ('p', 'f') "
    "ORDER BY c.contype DESC, c.conname COLLATE \"C\"";

/* Reads places of columns, "0 2". False: there are none, or more than a key may have. */
static bool read_places(const char *text, RtKeyColumns *c) {
    c->n = 0;
    for (char *end; *text; text = *end ? end + 1 : end) {
        if (c->n == RT_KEY_COLUMNS) return false;
        c->at[c->n++] = (int)strtol(text, &end, 10);
        if (end == text) return false;
    }
    return c->n > 0;
}

/* Adds the foreign key in this row of the answer to the references of t. One that leads to
 * another schema is left out with a warning. */
static gnnc_status add_reference(RtSource *s, RtSourceTable *t, PGresult *r, int row,
                                 const char *const *oids, RtError *err) {
    Postgres *x = s->state;
    RtReference ref = {.table = -1};
    s->declares = true;
    for (int i = 0; i < s->n_tables; i++)
        if (strcmp(oids[i], PQgetvalue(r, row, 2)) == 0) ref.table = i;
    bool good = ref.table >= 0 && read_places(PQgetvalue(r, row, 3), &ref.from) &&
                read_places(PQgetvalue(r, row, 4), &ref.to);
    if (!good) {
        rt_import_warn(x->how, "%s: a foreign key leads to a table of another schema: no edges",
                       t->name);
        return GNNC_OK;
    }
    return rt_source_refer(&s->pool, t, &ref) ? GNNC_OK : rt_fail_nomem(err, s->name);
}

/* Reads the foreign keys of a table as its references, and its primary key. unique: it has one,
 * of few enough columns for t->key. */
static gnnc_status read_keys(RtSource *s, int table, const char *const *oids, RtError *err) {
    RtSourceTable *t = &s->tables[table];
    PGresult *r = ask(s, keys_sql, oids[table], err);
    gnnc_status st = r ? GNNC_OK : GNNC_E_IO;
    for (int i = 0; st == GNNC_OK && i < PQntuples(r); i++) {
        if (*PQgetvalue(r, i, 0) == 'f')
            st = add_reference(s, t, r, i, oids, err);
        else
            t->unique = read_places(PQgetvalue(r, i, 3), &t->key);
    }
    PQclear(r);
    return st;
}

/* Sets how many rows a table or query has. */
static gnnc_status count_rows(RtSource *s, RtSourceTable *t, RtError *err) {
    SourceSql sql = {.pool = &s->pool};
    source_sql_with(&sql, t);
    source_sql(&sql, "SELECT count(*) FROM ");
    source_sql_name(&sql, t->name);
    if (!sql.text) return rt_fail_nomem(err, s->name);
    PGresult *r = ask(s, sql.text, NULL, err);
    if (!r) return GNNC_E_IO;
    t->n_rows = strtoll(PQgetvalue(r, 0, 0), NULL, 10);
    PQclear(r);
    return GNNC_OK;
}

/* Reads the columns of a table and how many rows it has. */
static gnnc_status read_table(RtSource *s, int table, const char *const *oids, RtError *err) {
    RtSourceTable *t = &s->tables[table];
    PGresult *r = ask(s, columns_sql, oids[table], err);
    if (!r) return GNNC_E_IO;
    int n = PQntuples(r);
    bool ok = room_for_columns(s, t, n);
    for (int i = 0; i < n && ok; i++) ok = read_column(s, t, i, r);
    PQclear(r);
    gnnc_status st = ok ? GNNC_OK : rt_fail_nomem(err, s->name);
    if (st == GNNC_OK) st = count_rows(s, t, err);
    return st;
}

/* ---- rows ------------------------------------------------------------------------------------ */
/* Adds ORDER BY n columns to a statement, NULL before all, as SQLite does. A column is ordered by
 * what is selected of it, texts by their bytes; but decimals as numbers, of the table, as their
 * name alone is that of the text which is selected. */
static void put_order(SourceSql *sql, const RtSourceTable *t, const int *order, int n) {
    const Asked *asked = t->state;
    for (int i = 0; i < n; i++) {
        bool number = asked->form[order[i]] == AS_NUMBER;
        source_sql(sql, i ? ", " : " ORDER BY ");
        source_sql(sql, number ? "gnnc." : asked->cast[order[i]]);
        if (number) source_sql_name(sql, t->columns[order[i]].name);
        source_sql(sql, " NULLS FIRST");
    }
}

/* Begins to read n columns of a table in a fixed order, by a cursor of the server. */
static gnnc_status begin_rows(RtSource *s, int table, const int *column, int n, RtError *err) {
    Postgres *x = s->state;
    const RtSourceTable *t = &s->tables[table];
    const Asked *asked = t->state;
    SourceSql sql = {.pool = &x->pool};
    int *order = RT_NEWN(&x->pool, int, t->n_columns + RT_KEY_COLUMNS);
    x->form = RT_NEWN(&x->pool, Form, n);
    if (!order || !x->form) return rt_fail_nomem(err, t->name);
    x->table = t->name;
    x->row = x->at = x->size = 0;
    x->n = n;
    source_sql(&sql, "DECLARE gnnc NO SCROLL CURSOR FOR ");
    source_sql_with(&sql, t);
    source_sql(&sql, "SELECT ");
    for (int i = 0; i < n; i++) {
        x->form[i] = asked->form[column[i]];
        source_sql(&sql, i ? ", " : "");
        source_sql(&sql, asked->cast[column[i]]);
    }
    source_sql(&sql, " FROM ");
    source_sql_name(&sql, t->name);
    source_sql(&sql, " AS gnnc");
    put_order(&sql, t, order, source_order(t, order));
    if (!sql.text) return rt_fail_nomem(err, t->name);
    gnnc_status st = tell(s, sql.text, err);
    x->open = st == GNNC_OK;
    return st;
}

/* Fetches the next rows from the cursor. */
static gnnc_status next_batch(RtSource *s, RtError *err) {
    Postgres *x = s->state;
    PQclear(x->batch);
    x->batch = PQexecParams(x->db, "FETCH 4096 FROM gnnc", 0, NULL, NULL, NULL, NULL, 1);
    if (PQresultStatus(x->batch) != PGRES_TUPLES_OK) return failed(s, PQerrorMessage(x->db), err);
    x->size = PQntuples(x->batch);
    x->at = 0;
    return GNNC_OK;
}

/* The number that a text says. As SQLite keeps decimals: one that is whole, 5.00, is an integer. */
static RtDatum number_of(const char *text, size_t n) {
    enum { MOST_BITS = 51 }; /* of the whole numbers that SQLite makes integers */
    const char *end;
    int64_t whole;
    if (rt_cell_integer(text, &whole)) return (RtDatum){.type = RT_DATUM_INTEGER, .i = whole};
    double v = rt_strtod(text, &end);
    if (end != text + n) return (RtDatum){.type = RT_DATUM_TEXT, .s = text, .n = n};
    if (v == floor(v) && fabs(v) < ldexp(1, MOST_BITS))
        return (RtDatum){.type = RT_DATUM_INTEGER, .i = (int64_t)v};
    return (RtDatum){.type = RT_DATUM_REAL, .d = v};
}

/* Sets *c to the i-th value of the present row. False: a number of another size, which no honest
 * server sends. */
static bool read_cell(const Postgres *x, int i, RtDatum *c) {
    uint64_t bits;
    const char *v = PQgetvalue(x->batch, x->at, i);
    size_t n = (size_t)PQgetlength(x->batch, x->at, i);
    *c = (RtDatum){.type = RT_DATUM_NULL};
    if (PQgetisnull(x->batch, x->at, i)) return true;
    if (x->form[i] == AS_TEXT) {
        *c = (RtDatum){.type = RT_DATUM_TEXT, .s = v, .n = n};
        return true;
    }
    if (x->form[i] == AS_NUMBER) {
        *c = number_of(v, n);
        return true;
    }
    if (n != sizeof bits) return false;
    memcpy(&bits, v, sizeof bits);
    bits = be64toh(bits);
    c->type = x->form[i] == AS_INT8 ? RT_DATUM_INTEGER : RT_DATUM_REAL;
    if (c->type == RT_DATUM_INTEGER)
        c->i = (int64_t)bits;
    else
        memcpy(&c->d, &bits, sizeof bits);
    return true;
}

/* Sets the cells of the next row and *line to its number; *line is 0 when there is none. */
static gnnc_status next_row(RtSource *s, RtDatum *cell, int64_t *line, RtError *err) {
    Postgres *x = s->state;
    gnnc_status st = GNNC_OK;
    *line = 0;
    if (x->at == x->size) st = next_batch(s, err);
    if (st != GNNC_OK || x->at == x->size) return st;
    for (int i = 0; i < x->n; i++)
        if (!read_cell(x, i, &cell[i]))
            return failed(s, "a number of another size than it was asked for", err);
    x->at++;
    *line = ++x->row;
    return GNNC_OK;
}

/* Ends reading a table, whether all its rows were read or not. */
static void end_rows(RtSource *s) {
    Postgres *x = s->state;
    PQclear(x->batch);
    x->batch = NULL;
    if (x->open) tell(s, "CLOSE gnnc", NULL);
    x->open = false;
    rt_pool_free(&x->pool);
}

/* Closes the connection and frees all that was read. */
static void close_database(RtSource *s) {
    Postgres *x = s->state;
    end_rows(s);
    PQfinish(x->db);
    rt_pool_free(&s->pool);
}

/* ---- a SELECT -------- */
/* The name of a type of the server; of a domain, that of the type it stands for. NULL: an error. */
static const char *type_name(RtSource *s, Oid type, RtError *err) {
    char oid[16];
    snprintf(oid, sizeof oid, "%u", type);
    PGresult *r = ask(s,
                      "SELECT b.typname FROM pg_catalog.pg_type t JOIN pg_catalog.pg_type b ON "
                      "b.oid = CASE t.typtype WHEN 'd' THEN t.typbasetype ELSE t.oid END WHERE "
                      "t.oid = $1::oid",
                      oid, err);
    const char *name = r && PQntuples(r) ? kept(s, r, 0, 0) : r ? "text" : NULL;
    PQclear(r);
    return name;
}

/* Adds the result of a SELECT as a table `name`. columns: gives names to its n columns. */
static gnnc_status ask_select(RtSource *s, const char *name, const char *sql,
                              const char *columns(RtPool *pool, int i, int n), RtError *err) {
    SourceSql none = {.pool = &s->pool};
    source_sql(&none, "SELECT * FROM (");
    source_sql(&none, sql);
    source_sql(&none, "\n) AS gnnc LIMIT 0");
    if (!none.text) return rt_fail_nomem(err, name);
    PGresult *r = ask(s, none.text, NULL, err);
    RtSourceTable *t = r ? rt_source_add(s) : NULL;
    int n = r ? PQnfields(r) : 0;
    gnnc_status st = r ? GNNC_OK : GNNC_E_IO;
    if (r && (!t || !room_for_columns(s, t, n))) st = rt_fail_nomem(err, name);
    for (int i = 0; i < n && st == GNNC_OK; i++) {
        const char *type = type_name(s, PQftype(r, i), err);
        if (!type)
            st = GNNC_E_IO;
        else if (!put_column(s, t, i, columns(&s->pool, i, n), type))
            st = rt_fail_nomem(err, name);
    }
    PQclear(r);
    if (st != GNNC_OK) return st;
    t->name = name;
    t->sql = sql;
    return count_rows(s, t, err);
}

static const RtSourceForm form = {begin_rows, next_row, end_rows, close_database, ask_select};

/* Connects to the database and begins one transaction for all reading. Messages call it by the
 * database's name, as the address may have a password. */
static gnnc_status connect_to(RtSource *s, const char *input, RtError *err) {
    Postgres *x = s->state;
    static const char *const first[] = {
        "SET client_encoding TO 'UTF8'",
        "SET DateStyle TO 'ISO, YMD'",
        "SET TimeZone TO 'UTC'",
        "SET extra_float_digits TO 1",
        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
    };
    x->db = PQconnectdb(input);
    if (!x->db) return rt_fail_nomem(err, "postgresql");
    if (PQstatus(x->db) != CONNECTION_OK) return failed(s, PQerrorMessage(x->db), err);
    const char *name = rt_pool_printf(&s->pool, "%s", PQdb(x->db));
    if (name) s->name = name;
    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        if (tell(s, first[i], err) != GNNC_OK) return GNNC_E_IO;
    return GNNC_OK;
}

/* Connects to the database `input` and reads what tables, columns and keys it has. */
gnnc_status source_postgres_open(const RtAlloc *from, const char *input, RtImport *how,
                                 RtSource *out, RtError *err) {
    const char **oids = NULL;
    gnnc_status st;
    *out = (RtSource){.name = "postgresql"};
    rt_pool_init(&out->pool, from);
    Postgres *x = RT_NEW(&out->pool, Postgres);
    if (!x) return rt_fail_nomem(err, "postgresql");
    x->how = how;
    rt_pool_init(&x->pool, from);
    out->state = x;
    out->form = &form;
    TRY(st, connect_to(out, input, err));
    TRY(st, list_tables(out, &oids, err));
    for (int i = 0; i < out->n_tables; i++) TRY(st, read_table(out, i, oids, err));
    for (int i = 0; i < out->n_tables; i++) TRY(st, read_keys(out, i, oids, err));
out:
    return st;
}
