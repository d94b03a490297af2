/* The last step of an import, once there is a split: see import_encode.c. */
#ifndef RUNTIME_IMPORT_ENCODE_H
#define RUNTIME_IMPORT_ENCODE_H

#include "import.h"
#include "runtime/model/encoders.h"

/* Which rows may tell, of tables without a split: of those without a time, or where rows are not
 * dated, those that training rows lead to (import_reached.h); all where no nodes or edges have a
 * split. */
typedef struct RtFitRows {
    bool dated;
    double before;       /* dated: rows with a row time (import_time.h), of this time on, may not */
    const char *by_time; /* what says when rows happened; NULL = as names suggest.  Not dated: of a
                          * table with a split by time the first that is held out is `before` */
} RtFitRows;

/* Numbers that are to be scaled are, as the rows of part `train` of their table's split tell,
 * without a split the rows that `rows` says; of categories with a code for unknown names the others
 * are those that such rows have.  E_VALUE: a number becomes infinite. */
gnnc_status rt_import_encode(RtDataset *d, const RtFitRows *rows, RtError *err);
/* Instead, with --like: numbers that are still to be scaled, as a task's older answers are, become
 * what `like` makes of them. */
gnnc_status rt_import_encode_like(RtDataset *d, const RtEncoders *like, RtError *err);

#endif
