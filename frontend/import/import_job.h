/* What `gnnc import` was asked to do, and the steps that do it. */
#ifndef FRONTEND_IMPORT_JOB_H
#define FRONTEND_IMPORT_JOB_H

#include "import_main.h"
#include "runtime/import/import_given.h"
#include "runtime/import/import_split.h"
#include "runtime/import/import_task.h"

/* The command line, and what became of the task in it. */
typedef struct {
    const char *input[2], *dir, *scaffold, *map, *write_map, *like;
    int n_input;
    const ImportDatabase *databases;
    bool force, help, splits, seeded;
    RtSplitHow split;
    RtTaskOptions task; /* query NULL: none is asked for */
    const char *task_file;
    RtTaskText text; /* sql NULL: none is asked for */
    RtTaskMade made;
    RtImport how;
    int n_given;
    RtNpyColumn given[RT_IMPORT_KINDS];
} ImportJob;

/* Whether training rows are made: by a query, or by a SELECT. */
static inline bool import_has_task(const ImportJob *o) {
    return o->task.query || o->task_file;
}

/* ---- import_options.c ---- */
/* Prints the help of `gnnc import`: its usage and all its options. */
void import_put_help(FILE *out);
/* Reads the command line of `gnnc import`. False after a message. */
bool import_parse_options(int argc, char **argv, ImportJob *o, FILE *err);

/* ---- import_input.c ---- */
/* Reads the file of --task-sql. Its input must be a database, as others know no SQL. */
gnnc_status import_read_task(ImportJob *o, RtPool *pool, RtError *e);
/* Reads the input into *d, by what it is: a database, a folder, or a file by its name. */
gnnc_status import_read_input(ImportJob *o, RtPool *pool, RtDataset **d, RtError *e);
/* Encodes the columns of cells as numbers, as --like says or by the rows to learn from. Options
 * about cells are an error for data that have none. */
gnnc_status import_encode_columns(const ImportJob *o, RtDataset *d, RtError *e);
/* Sets the folder that paths of images begin at: where the input lies. */
gnnc_status import_find_folder(ImportJob *o, RtPool *pool, RtError *e);
/* Takes the task that the source has: a query, or a table that is there already. */
void import_take_source_task(ImportJob *o);

/* ---- import_messages.c ---- */
/* Prints what was imported: the tables, their rows and columns, and the task. */
void import_print_counts(FILE *out, const ImportJob *o, const RtDataset *d);
/* Lets the import print its messages to err, and its progress if that is a terminal. */
void import_listen(ImportJob *o, FILE *err);
/* Prints the error, with the option that avoids it, if there is one. */
void import_print_error(FILE *err, const ImportJob *o, const RtError *e);

#endif
