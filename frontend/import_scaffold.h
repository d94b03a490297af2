/* A starter model for imported data. */
#ifndef FRONTEND_IMPORT_SCAFFOLD_H
#define FRONTEND_IMPORT_SCAFFOLD_H

#include "runtime/data/dataset.h"

/* Writes to `path` a graph declaration with every table and column of `d`, a small model
 * that reads its features, and a recipe where there are labels with a split.  An existing
 * file is replaced with `replace` only. */
gnnc_status gnnc_import_scaffold(const RtDataset *d, const char *dir, const char *path,
                                 bool replace, RtError *err);

#endif
