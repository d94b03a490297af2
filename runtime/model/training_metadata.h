/* What weights have learned, and how well, in the files of these:
 *
 *     metadata "gnnc_task"    = {"target": "paper.y", "outcome": "classes"}
 *     metadata "gnnc_metrics" = {"accuracy.val": 0.79, "loss.val": 0.64}
 *
 *     metadata "gnnc_options" = {"hidden": 64, "p": 0.2, "fanout": "15,10"}
 *     metadata "gnnc_variant" = 1, of a program that has several, on a CPU
 *
 * The metrics are those of every split, of the parameters that the file has as its model's. */
#ifndef RUNTIME_REACHED_H
#define RUNTIME_REACHED_H

#include "runtime/data/safetensors.h"
#include "runtime/trainer/trainer.h"

typedef struct RtMetricValue {
    const char *name, *of, *split; /* "accuracy.val", "accuracy", "val" */
    double value;
} RtMetricValue;

enum { RT_TRAINING_METADATA_MAX = 4 };
/* Metadata for a file of weights behind to[0 .. *n), RT_TRAINING_METADATA_MAX at most.  values
 * [n_scalars]: of the trainer's scalars, NaN where one is not known; NULL: as they are now, which
 * are the parameters' where t->judged. */
gnnc_status rt_training_metadata_put(const gnnc_trainer *t, const double *values, RtPool *pool,
                                     RtMeta *to, int *n);
/* Have the weights of a file learned what the program gives?  They have where either says nothing
 * of it.  Else *other tells both. */
gnnc_status rt_task_check(const rt_program *p, RtPool *pool, const char *path, const RtTensors *f,
                          const char **other);
/* The variant of the program that made a file; -1: it says none, or no number. */
int64_t rt_variant_recorded(const RtTensors *f);
/* None of a file that says nothing of it. */
gnnc_status rt_metric_values_read(RtPool *pool, const char *path, const RtTensors *f,
                                  RtMetricValue **out, int *n, RtError *err);

#endif
