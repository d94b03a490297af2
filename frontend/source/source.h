/* Databases that gnnc import reads.  Only the compiler's program links them: their libraries are
 * no part of libgnncc.a, libgnnrt.a or of what gnnc makes. */
#ifndef FRONTEND_SOURCE_H
#define FRONTEND_SOURCE_H

#include "frontend/import/import_main.h"
#include "runtime/import/import_source.h"
#include "runtime/data/json.h"

/* The database at `input`, its catalogue read; the caller closes it by its form, also when it
 * failed and out->form is set. */
gnnc_status source_sqlite_open(const RtAlloc *from, const char *input, RtImport *how, RtSource *out,
                               RtError *err);
gnnc_status source_postgres_open(const RtAlloc *from, const char *input, RtImport *how,
                                 RtSource *out, RtError *err);
/* .. and RelBench's folders. */
gnnc_status source_relbench_open(const RtAlloc *from, const char *input, RtImport *how,
                                 RtSource *out, RtError *err);
/* All of them, for gnnc_import_main(); a form whose library was absent cannot be opened. */
extern const ImportDatabase source_databases[];

/* ---- shared ---------------------------------------------------------------------------- */
/* SQL as it grows; NULL text: no memory. */
typedef struct {
    RtPool *pool;
    char *text;
    size_t n, room;
} SourceSql;
void source_sql(SourceSql *s, const char *text);
/* "a ""quoted"" name" */
void source_sql_name(SourceSql *s, const char *name);
/* WITH "task" ("entity", ..) AS (SELECT ..), before what reads a table that a SELECT gives; nothing
 * for others. */
void source_sql_with(SourceSql *s, const RtSourceTable *t);
/* The columns that rows are ordered by, in *order (room for all): the key, or all of which
 * something can be made.  How many. */
int source_order(const RtSourceTable *t, int *order);
/* YAML as the JSON reader's tree, all its scalars texts, or NULL: empty, or null.  E_FORMAT. */
gnnc_status source_yaml(RtPool *pool, RtBytes text, const char *name, RtJson **out, RtError *err);
/* What a library says, on one line, without the end. */
const char *source_line(RtPool *pool, const char *text);

#endif
