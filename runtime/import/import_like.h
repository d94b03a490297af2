/* Rows that come later: columns made by the encoders of a model or of other data. */
#ifndef RUNTIME_IMPORT_LIKE_H
#define RUNTIME_IMPORT_LIKE_H

#include "import_table.h"
#include "runtime/model/encoders.h"

/* rt_fields_make() with how->like. */
gnnc_status rt_fields_like(RtPool *keep, RtPool *scratch, const RtCsv *t,
                           const RtFieldsWanted *wanted, RtFields *out, RtError *err);
/* E_MISSING: the data lack a table that `like` has columns of. */
gnnc_status rt_import_like_check(const RtDataset *d, const RtEncoders *like, const char *input,
                                 RtError *err);

#endif
