/* Fits what numbers become to the rows that are learned from. */
#ifndef RUNTIME_IMPORT_SCALE_H
#define RUNTIME_IMPORT_SCALE_H

#include "runtime/data/encoder.h"

enum { RT_USUAL_BINS = 8, RT_QUANTILE_MARKS = 128 };

/* Of n finite numbers, whose order is changed: e->scale and its parameters.  A standardised column
 * that is free becomes quantile-normal where a number is more than 20 deviations from the mean.
 * E_VALUE: their mean is no finite number; `what` names the column. */
gnnc_status rt_scale_fit(RtPool *pool, double *v, int64_t n, RtScaleWish wish, const char *what,
                         RtEncoder *e, RtError *err);

#endif
