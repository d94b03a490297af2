/* The last step of an import, once there is a split: see import_encode.c. */
#ifndef RUNTIME_IMPORT_ENCODE_H
#define RUNTIME_IMPORT_ENCODE_H

#include "import.h"

/* Numbers that are to be standardised are, by the mean and deviation of the rows of part `train` of
 * their table's split, without a split of all rows; of categories with a code for unknown names
 * the others are those that such rows have.  E_VALUE: a number becomes infinite. */
gnnc_status rt_import_encode(RtDataset *d, RtError *err);

#endif
