/* When the rows of a table happened. */
#ifndef RUNTIME_IMPORT_TIME_H
#define RUNTIME_IMPORT_TIME_H

#include "runtime/data/dataset.h"
#include "import.h"

/* Says of every table when its rows happened, RtTable.time: by what how->row_times say, else by the
 * column `by_time` (NULL: none is), else by names.  Tables that refer to others get RT_ROW_TIME, as
 * below.  Warns of rows that are newer than rows which refer to them.  E_MISSING: a column that is
 * named is no time; what rt_import_row_times returns. */
gnnc_status rt_import_times(RtDataset *d, const char *by_time, RtImport *how, RtError *err);

/* The column that says when a row happened: what RtTable.time says, else the one called `by_time`
 * (NULL: none is), else one with the name of an event, else the first that is not a birth date, a
 * deadline or the like. NULL: the table has no time.  *why it is that one. */
const RtColumn *rt_import_time(const RtTable *t, const char *by_time, const char **why);
/* The times of the table but `chosen`, "RequiredDate, ShippedDate"; "": none; NULL: no memory. */
const char *rt_import_other_times(RtPool *pool, const RtTable *t, const RtColumn *chosen);

#define RT_ROW_TIME "row_time"
/* The same where a birth date, a deadline or a last change is none: the row was there before, or
 * was not there then.  A column RT_ROW_TIME is it. */
const RtColumn *rt_import_row_time(const RtTable *t, const char *by_time);
/* Gives node types without a row time, whose rows refer to rows that have one, a column RT_ROW_TIME
 * with the latest of these: lines of an order are as old as the order.  References among such rows
 * are followed.  E_LIMIT: over more than 1,000 steps; E_NOMEM. */
gnnc_status rt_import_row_times(RtDataset *d, const char *by_time, RtError *err);

#endif
