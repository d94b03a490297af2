/* What metrics were when weights were kept, in the files of these:
 *
 *     metadata "gnnc_metrics" = {"accuracy.val": 0.79, "loss.val": 0.64}
 *
 * Those of every split, of the parameters that the file has as its model's. */
#ifndef RUNTIME_REACHED_H
#define RUNTIME_REACHED_H

#include "runtime/data/safetensors.h"
#include "trainer.h"

typedef struct RtReached {
    const char *name, *of, *split; /* "accuracy.val", "accuracy", "val" */
    double value;
} RtReached;

/* Metadata of values [n_scalars] of the trainer's scalars, NaN where one is not known; NULL: as
 * they are now, which are the parameters' where t->judged.  to->key NULL: there is nothing to say.
 */
gnnc_status rt_reached_put(const gnnc_trainer *t, const double *values, RtPool *pool, RtMeta *to);
/* None of a file that says nothing of it. */
gnnc_status rt_reached_read(RtPool *pool, const char *path, const RtTensors *f, RtReached **out,
                            int *n, RtError *err);

#endif
