/* Rows of the target's table by split. */
#ifndef RUNTIME_SPLITS_H
#define RUNTIME_SPLITS_H

#include "trainer.h"

/* Fills split_rows, once columns are bound. */
void rt_splits_count(gnnc_trainer *t);
/* E_MISSING: a row of a split whose target is not known. */
gnnc_status rt_splits_known(gnnc_trainer *t);
/* E_MISSING: that, or training needs a split that has no rows. */
gnnc_status rt_splits_check(gnnc_trainer *t);
/* "accuracy.val": 2; 0 = of no split. */

#endif
