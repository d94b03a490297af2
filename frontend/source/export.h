/* `gnnc export`: a table of CSV or JSON lines, predictions say, into a table of a database. */
#ifndef FRONTEND_SOURCE_EXPORT_H
#define FRONTEND_SOURCE_EXPORT_H

#include <stdio.h>

#include "runtime/data/csv.h"

typedef enum { EXPORT_INTEGER, EXPORT_REAL, EXPORT_TEXT } ExportType;
/* Where there is a table of the name already. */
typedef enum { EXPORT_STOP, EXPORT_APPEND, EXPORT_REPLACE } ExportOnto;

typedef struct {
    const char *table;
    const RtCsv *csv;
    const ExportType *type; /* of the columns */
    ExportOnto onto;
} Export;

/* Is the cell NULL in the database?  An empty one, and what is no number among numbers. */
bool export_is_null(const Export *x, int column, const char *cell);

/* An object a line, as the table that CSV is.  E_FORMAT: told with the row. */
gnnc_status export_read_json(RtPool *pool, RtBytes text, const char *name, RtCsv *out,
                             RtError *err);

/* All rows, in one transaction: where one fails, the database is as it was. */
gnnc_status source_sqlite_write(const char *database, const Export *x, RtError *err);
gnnc_status source_postgres_write(const char *database, const Export *x, RtError *err);

/* argv[0] is "export".  Returns the exit code: 0, 1 (diagnosed), 2 (usage). */
int gnnc_export_main(int argc, char **argv, FILE *out, FILE *err);

#endif
