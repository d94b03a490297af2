/* How good guesses are, by the metrics that models have (docs/language.md), for what is not a
 * model: baselines.  Values are those of the metrics of models/layers/prelude.gnn. */
#ifndef RUNTIME_JUDGE_H
#define RUNTIME_JUDGE_H

#include <stdint.h>

#include "io.h"

typedef enum {
    RT_EVAL_ROC_AUC,           /* of two classes; the guess is a score of the second */
    RT_EVAL_AVERAGE_PRECISION, /* likewise */
    RT_EVAL_ACCURACY,          /* of two classes: above one half is the second; else a class */
    RT_EVAL_F1_MACRO,          /* likewise */
    RT_EVAL_MAE,
    RT_EVAL_RMSE,
    RT_N_EVAL_METRICS
} RtEvalMetric;

typedef struct RtEvalPair {
    double answer, guess;
} RtEvalPair;

const char *rt_eval_metric_name(RtEvalMetric j); /* "roc_auc" */
/* Does the metric measure answers of so many classes; 0: numbers? */
bool rt_eval_metric_fits(RtEvalMetric j, int64_t n_classes);
/* Puts v in another order.  *out NaN: it cannot be told of these rows.  E_NOMEM. */
gnnc_status rt_eval_metric(RtPool *pool, RtEvalMetric j, RtEvalPair *v, int64_t n,
                           int64_t n_classes, double *out, RtError *err);

/* What was reached without learning, kept with the column that is learned (docs/data.md). */
typedef struct RtBaseline {
    const char *name, *metric; /* "mean of its customers", "roc_auc" */
    double val, test;          /* NaN: it cannot be told */
} RtBaseline;

#endif
