/* What becomes of the numbers of an encoder: parameters, values, and how they are written down.
 * What fits them to rows is in import_scale.c. */
#ifndef RUNTIME_ENCODER_SCALE_H
#define RUNTIME_ENCODER_SCALE_H

#include "encoder.h"

enum { RT_MOST_MARKS = 1024, RT_MOST_BINS = RT_MOST_MARKS - 1 };

/* But for PIECEWISE. */
double rt_scale_number(const RtEncoder *e, double v);
/* PIECEWISE: e->out values behind to[at * e->out].  NULL, or what v is not. */
const char *rt_scale_bins(const RtEncoder *e, double v, void *to, int64_t at);

/* "standardised: mean 3.5, deviation 1.2", "as it is". */
void rt_scale_describe(const RtEncoder *e, char *to, size_t n);
bool rt_scale_same(const RtEncoder *a, const RtEncoder *b);
/* The members of its JSON; false: no memory. */
bool rt_scale_put(RtText *to, const RtEncoder *e);
/* NULL, or what is wrong with them; of PIECEWISE e->out is set. */
const char *rt_scale_read(RtPool *pool, const RtJson *v, RtEncoder *e);
/* Copies what `e` points to; false: no memory. */
bool rt_scale_copy(RtPool *pool, const RtEncoder *e, RtEncoder *out);

#endif
