#include "eval_metric.h"

#include <math.h>
#include <stdlib.h>

static const struct {
    const char *name;
    bool of_two, of_classes;
} judges[RT_N_EVAL_METRICS] = {
    [RT_EVAL_ROC_AUC] = {"roc_auc", true, false},
    [RT_EVAL_AVERAGE_PRECISION] = {"average_precision", true, false},
    [RT_EVAL_ACCURACY] = {"accuracy", true, true},
    [RT_EVAL_F1_MACRO] = {"f1_macro", true, true},
    [RT_EVAL_MAE] = {"mae", false, false},
    [RT_EVAL_RMSE] = {"rmse", false, false},
};

const char *rt_eval_metric_name(RtEvalMetric j) {
    return judges[j].name;
}

bool rt_eval_metric_fits(RtEvalMetric j, int64_t n_classes) {
    if (!n_classes) return !judges[j].of_two && !judges[j].of_classes;
    return n_classes == 2 ? judges[j].of_two : judges[j].of_classes;
}

static int by_guess(const void *x, const void *y) {
    double a = ((const RtEvalPair *)x)->guess, b = ((const RtEvalPair *)y)->guess;
    return (a > b) - (a < b);
}

/* Area under the ROC curve: the chance that a row of class 1 has the larger guess, ties half.  The
 * average precision: of each guess that a row of class 1 has, how many of those above are of it. */
static double of_ranks(RtEvalPair *v, int64_t n, bool precision) {
    double below = 0, pairs = 0, ones = 0, all = 0, sum = 0;
    qsort(v, (size_t)n, sizeof *v, by_guess);
    for (int64_t i = 0; i < n; i++) all += v[i].answer == 1;
    for (int64_t i = 0; i < n;) {
        double one = 0, zero = 0, left = (double)(n - i);
        int64_t from = i;
        for (; i < n && v[i].guess == v[from].guess; i++) {
            one += v[i].answer == 1;
            zero += v[i].answer != 1;
        }
        sum += one * (all - ones) / left;
        pairs += one * (below + zero / 2);
        below += zero;
        ones += one;
    }
    if (precision) return all > 0 ? sum / all : NAN;
    return ones > 0 && below > 0 ? pairs / (ones * below) : NAN;
}

static int64_t class_of(double guess, int64_t n_classes) {
    return n_classes == 2 ? guess > 0.5 : (int64_t)guess;
}

/* The mean of the F1 of the classes that an answer or a guess names. */
static gnnc_status f1_macro(RtPool *pool, const RtEvalPair *v, int64_t n, int64_t n_classes,
                            double *out, RtError *err) {
    int64_t *count = RT_NEWN(pool, int64_t, 3 * n_classes); /* of each: right, guessed, answers */
    double sum = 0, named = 0;
    if (!count) return rt_fail_nomem(err, "baselines");
    for (int64_t i = 0; i < n; i++) {
        int64_t guess = class_of(v[i].guess, n_classes), answer = (int64_t)v[i].answer;
        count[3 * guess + 1]++;
        count[3 * answer + 2]++;
        if (guess == answer) count[3 * guess]++;
    }
    for (int64_t k = 0; k < n_classes; k++) {
        double all = (double)(count[3 * k + 1] + count[3 * k + 2]);
        if (all > 0) sum += 2 * (double)count[3 * k] / all, named++;
    }
    rt_pool_drop(pool, count);
    *out = named > 0 ? sum / named : NAN;
    return GNNC_OK;
}

gnnc_status rt_eval_metric(RtPool *pool, RtEvalMetric j, RtEvalPair *v, int64_t n,
                           int64_t n_classes, double *out, RtError *err) {
    double sum = 0;
    *out = NAN;
    if (!n) return GNNC_OK;
    if (j == RT_EVAL_F1_MACRO) return f1_macro(pool, v, n, n_classes, out, err);
    if (j == RT_EVAL_ROC_AUC || j == RT_EVAL_AVERAGE_PRECISION) {
        *out = of_ranks(v, n, j == RT_EVAL_AVERAGE_PRECISION);
        return GNNC_OK;
    }
    for (int64_t i = 0; i < n; i++) {
        double off = v[i].guess - v[i].answer;
        if (j == RT_EVAL_ACCURACY) sum += class_of(v[i].guess, n_classes) == v[i].answer;
        if (j == RT_EVAL_MAE) sum += fabs(off);
        if (j == RT_EVAL_RMSE) sum += off * off;
    }
    *out = j == RT_EVAL_RMSE ? sqrt(sum / (double)n) : sum / (double)n;
    return GNNC_OK;
}
