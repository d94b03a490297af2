/* The keys of the rows that stay: a column of whole numbers, or where one is none the names of the
 * rows, so that results can be joined back. */
#ifndef RUNTIME_IMPORT_KEPT_H
#define RUNTIME_IMPORT_KEPT_H

#include "import_build.h"
#include "import_dict.h"
#include "import_source.h"

typedef struct RtKeyColumn {
    const RtSourceTable *t;
    RtPool *keep;
    RtError *err;
    bool all_integers;  /* so far */
    int64_t *numbers;   /* [rows] while all are */
    const char **names; /* [rows] once one is none */
    RtDict texts;       /* owns the names */
} RtKeyColumn;

/* Nothing is kept of a table without a key.  What is lives in `keep`. */
gnnc_status rt_key_column_begin(RtKeyColumn *k, RtPool *keep, const RtSourceTable *t, RtError *err);
/* The key of row `row`; rows are added in turn. */
gnnc_status rt_key_column_add(RtKeyColumn *k, const RtDatum *const *key, int64_t row);
gnnc_status rt_key_column_end(RtKeyColumn *k, RtBuild *b, RtTable *node);

#endif
