/* What stands between a database and its importer: a catalogue of tables with their keys, and one
 * cursor over the rows of one table.  A folder of CSV (import_tables_csv.c) is one; SQLite and
 * PostgreSQL are in frontend/source/, as only the compiler's program links their libraries. */
#ifndef RUNTIME_IMPORT_SOURCE_H
#define RUNTIME_IMPORT_SOURCE_H

#include "import_map.h"

/* What a column's declared type says; docs/data.md has the table. */
typedef enum {
    RT_DECLARED_NONE, /* nothing: the first cell that is not NULL decides */
    RT_DECLARED_INTEGER,
    RT_DECLARED_REAL,
    RT_DECLARED_BOOLEAN,
    RT_DECLARED_TIME,
    RT_DECLARED_TEXT,
    RT_DECLARED_BLOB,
} rt_declared;
/* Of the words of SQL, in any case: "varchar(20)" is a text; NULL or "" is NONE. */
rt_declared rt_declared_type(const char *words);

typedef enum {
    RT_DATUM_NULL,
    RT_DATUM_INTEGER,
    RT_DATUM_REAL,
    RT_DATUM_TEXT,
    RT_DATUM_BLOB, /* without its bytes: nothing is made of them */
} rt_datum_type;

typedef struct RtDatum {
    rt_datum_type type;
    union {
        int64_t i;
        double d;
        size_t n; /* bytes of the text */
    };
    const char *s; /* TEXT: ended by a NUL, which may stand in it as well; until the next row */
} RtDatum;

typedef struct RtSourceColumn {
    const char *name;
    rt_declared declared;
    bool computed; /* from other columns: nothing is made of it */
    int kind;      /* what is made of it: an rt_col_kind, RT_KIND_GUESS or RT_KIND_SKIP */
    RtWish wish;   /* .. beside its kind */
    bool refers;   /* it is a reference, or a part of one */
} RtSourceColumn;

enum { RT_KEY_COLUMNS = 32 };
typedef struct RtKeyColumns {
    int n;
    int at[RT_KEY_COLUMNS]; /* numbers of columns */
} RtKeyColumns;

typedef struct RtReference {
    RtKeyColumns from; /* the columns that refer */
    int table;         /* number of the one that they refer to */
    RtKeyColumns to;   /* none: the table's key */
} RtReference;

typedef struct RtSourceTable {
    const char *name; /* in messages: "Order Details", "orders.csv" */
    const char *type; /* the node type: Order_Details, orders */
    int n_columns;
    RtSourceColumn *columns;
    RtKeyColumns key; /* n = 0: it has none */
    bool unique;      /* the source sees to it that no key is repeated */
    int n_references, room;
    RtReference *references;
    int64_t n_rows;   /* at most */
    void *state;      /* the source's own */
    const char *sql;  /* the SELECT that gives its rows; NULL: it is a table of the source */
    const RtCsv *csv; /* cells without declared types, which are judged by all of them; else NULL */
} RtSourceTable;

struct RtSource;
typedef struct RtSourceForm {
    /* Begins to read these columns of a table, its rows ordered by its key, or where it has none
     * by all columns.  One table at a time. */
    gnnc_status (*begin)(struct RtSource *s, int table, const int *column, int n, RtError *err);
    /* The next row's cells [n]; *line: its number in messages, 0 where there is none. */
    gnnc_status (*next)(struct RtSource *s, RtDatum *cell, int64_t *line, RtError *err);
    void (*end)(struct RtSource *s); /* of begin, also after a failure */
    void (*close)(struct RtSource *s);
    /* Adds a table of the rows that a SELECT gives, whose columns are called as `columns` says for
     * so many of them.  NULL: the source knows no SQL. */
    gnnc_status (*ask)(struct RtSource *s, const char *name, const char *sql,
                       const char *columns(RtPool *pool, int i, int n), RtError *err);
} RtSourceForm;

typedef struct RtSource {
    const RtSourceForm *form;
    void *state;      /* of the form */
    RtPool pool;      /* of the catalogue */
    const char *name; /* in messages */
    bool declares;    /* there are foreign keys: nothing is guessed by names */
    int n_tables;
    RtSourceTable *tables; /* sorted by name */
} RtSource;

/* ---- for those who make a catalogue ------------------------------------------------- */
/* One more table behind the others, empty; NULL: no memory. */
RtSourceTable *rt_source_add(RtSource *s);
/* Room for n columns, all to be guessed; false: no memory. */
bool rt_source_columns(RtPool *pool, RtSourceTable *t, int n);
/* A copy of r; false: no memory. */
bool rt_source_refer(RtPool *pool, RtSourceTable *t, const RtReference *r);
/* Puts the tables and each one's references in the order in which the importer wants them, and
 * names the node types: E_FORMAT where two have one name. */
gnnc_status rt_source_order(RtSource *s, RtError *err);
int rt_source_column(const RtSourceTable *t, const char *name, size_t n); /* -1: none */

/* ---- the importer --------------------------------------------------------------------- */
/* Every row a node, every reference an edge.  `mapping` says what columns are; NULL: nothing. */
gnnc_status rt_import_source(const RtAlloc *from, RtSource *s, const RtNamedBytes *mapping,
                             RtImport *how, RtDataset **out, RtError *err);
/* Keys and references by the mapping, and where the source declares none by names. */
gnnc_status rt_source_keys(RtSource *s, const RtNamedBytes *mapping, RtImport *how, RtError *err);

#endif
