/* How good guesses are, by the metrics that models have (docs/language.md), for what is not a
 * model: baselines.  Values are those of the metrics of models/layers/prelude.gnn. */
#ifndef RUNTIME_JUDGE_H
#define RUNTIME_JUDGE_H

#include <stdint.h>

#include "io.h"

typedef enum {
    RT_JUDGE_ROC_AUC,           /* of two classes; the guess is a score of the second */
    RT_JUDGE_AVERAGE_PRECISION, /* likewise */
    RT_JUDGE_ACCURACY,          /* of two classes: above one half is the second; else a class */
    RT_JUDGE_F1_MACRO,          /* likewise */
    RT_JUDGE_MAE,
    RT_JUDGE_RMSE,
    RT_N_JUDGES
} RtJudge;

typedef struct RtJudged {
    double answer, guess;
} RtJudged;

const char *rt_judge_name(RtJudge j); /* "roc_auc" */
/* Does the metric measure answers of so many classes; 0: numbers? */
bool rt_judge_fits(RtJudge j, int64_t n_classes);
/* Puts v in another order.  *out NaN: it cannot be told of these rows.  E_NOMEM. */
gnnc_status rt_judge(RtPool *pool, RtJudge j, RtJudged *v, int64_t n, int64_t n_classes,
                     double *out, RtError *err);

/* What was reached without learning, kept with the column that is learned (docs/data.md). */
typedef struct RtBaseline {
    const char *name, *metric; /* "mean of its customers", "roc_auc" */
    double val, test;          /* NaN: it cannot be told */
} RtBaseline;

#endif
