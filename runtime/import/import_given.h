/* Columns that are given as they are: embeddings of texts or images, a row of a .npy file for each
 * row of a table. */
#ifndef RUNTIME_IMPORT_GIVEN_H
#define RUNTIME_IMPORT_GIVEN_H

#include "runtime/data/dataset.h"

typedef struct RtNpyColumn {
    char table[80], column[80];
    const char *path; /* of the .npy file */
} RtNpyColumn;

/* "film.poster=posters.npy"; false: it is not of that form.  The path is kept, not copied. */
bool rt_given_parse(const char *text, RtNpyColumn *out);
/* Adds each as a float column, [rows] or [rows, width], of finite numbers; nothing is said of how
 * it was made.  E_MISSING: no such table; E_FORMAT: it has such a column; E_SHAPE: other rows. */
gnnc_status rt_import_given(RtDataset *d, const RtNpyColumn *v, int n, RtError *err);

#endif
