/* A starter model for imported data. */
#ifndef FRONTEND_IMPORT_SCAFFOLD_H
#define FRONTEND_IMPORT_SCAFFOLD_H

#include "runtime/import/import.h"

typedef struct ScaffoldHow {
    const char *dir;        /* the data directory, for the heading */
    const char *by_time;    /* the column that says when a row happened, where a table has several;
                             * NULL = as their names suggest */
    const char *task;       /* the node type whose rows are learned; NULL = one with labels */
    bool of_future;         /* .. which are asked at a time, and know what is of that time */
    const char *told_table; /* .. or are asked for a number that older rows of this table have */
    const char *told;       /* .. in this column; NULL = for something else */
    const struct RtTaskRanks *ranks; /* .. or rank items; NULL = they do not */
    double window;                   /* .. of so many seconds */
    bool replace;                    /* a file that is there */
    const RtImport *import; /* warned of a choice that may not be meant; NULL = nobody is */
} ScaffoldHow;

/* Writes to `path` a graph declaration with the tables and columns of `d` that messages reach the
 * result from, a small model that reads their features, and a recipe where there are labels with a
 * split.  E_IO: the file exists and may not be replaced, or cannot be written; E_NOMEM. */
gnnc_status gnnc_import_scaffold(const RtDataset *d, const ScaffoldHow *how, const char *path,
                                 RtError *err);

#endif
