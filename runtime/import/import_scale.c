#include "import_scale.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- mean and deviation ---------------------------------------------------------------- */
static const double FAR = 20; /* deviations */

/* Fits mean and deviation in two passes, which a large mean does not harm. *farthest: the greatest
 * distance from the mean, in deviations. */
static void fit_standard(const double *v, int64_t n, RtEncoder *e, double *farthest) {
    double sum = 0, squares = 0, most = 0;
    for (int64_t i = 0; i < n; i++) sum += v[i];
    e->mean = n ? sum / (double)n : 0;
    for (int64_t i = 0; i < n; i++) {
        squares += (v[i] - e->mean) * (v[i] - e->mean);
        if (fabs(v[i] - e->mean) > most) most = fabs(v[i] - e->mean);
    }
    e->deviation = n ? sqrt(squares / (double)n) : 0;
    if (!(e->deviation > 0) || !isfinite(e->deviation)) e->deviation = 1;
    *farthest = most / e->deviation;
    e->scale = RT_SCALE_STANDARD;
}

/* ---- quantiles ---------------------------------------------------------------------------- */
static int by_number(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* The x of which the normal distribution is below with chance p: by halving, as it is asked for a
 * few marks alone. */
static double normal_quantile(double p) {
    double low = -6, high = 6;
    for (int i = 0; i < 60; i++) {
        double mid = (low + high) / 2;
        if (erfc(-mid / sqrt(2)) / 2 < p)
            low = mid;
        else
            high = mid;
    }
    return (low + high) / 2;
}

/* Finds the range [from, to) of the sorted numbers that have the value v[at]. */
static void equal_range(const double *v, int64_t n, int64_t at, int64_t *from, int64_t *to) {
    int64_t low = -1, high = at;
    while (high - low > 1) {
        int64_t mid = low + (high - low) / 2;
        if (v[mid] < v[at])
            low = mid;
        else
            high = mid;
    }
    *from = high;
    low = at;
    high = n;
    while (high - low > 1) {
        int64_t mid = low + (high - low) / 2;
        if (v[mid] > v[at])
            high = mid;
        else
            low = mid;
    }
    *to = high;
}

/* The k-th of `parts` + 1 numbers of a sorted list, from its first to its last. */
static int64_t place(int64_t n, int k, int parts) {
    return parts ? (int64_t)((double)(n - 1) * k / parts + 0.5) : 0;
}

/* The different ones of parts + 1 marks at equal ranks; the first and the last number are among
 * them. */
static bool put_marks(RtPool *pool, const double *v, int64_t n, int parts, RtEncoder *e) {
    double *marks = RT_NEWN(pool, double, parts + 2);
    int k = 0;
    if (!marks) return false;
    for (int i = 0; i <= parts && n; i++) {
        double x = v[place(n, i, parts)];
        if (!k || x > marks[k - 1]) marks[k++] = x;
    }
    if (!k) k = 1; /* of no number: 0 */
    e->marks = marks;
    e->n_marks = k;
    return true;
}

/* Fits marks and their normal quantiles to sorted numbers. A mark's rank is the middle of the ranks
 * that its number has. */
static bool fit_quantile(RtPool *pool, const double *v, int64_t n, RtEncoder *e) {
    if (!put_marks(pool, v, n, RT_QUANTILE_MARKS - 1, e)) return false;
    double *normal = RT_NEWN(pool, double, e->n_marks);
    if (!normal) return false;
    for (int i = 0, k = 0; k < e->n_marks && n; i++) {
        int64_t at = place(n, i, RT_QUANTILE_MARKS - 1), from, to;
        if (v[at] != e->marks[k]) continue;
        equal_range(v, n, at, &from, &to);
        normal[k++] = normal_quantile((double)(from + to) / 2 / (double)n);
    }
    e->normal = normal;
    e->scale = RT_SCALE_QUANTILE;
    return true;
}

/* Fits the bounds of bins to sorted numbers. Where all are equal, there is one bin that none is
 * in. */
static bool fit_bins(RtPool *pool, const double *v, int64_t n, int bins, RtEncoder *e) {
    if (!put_marks(pool, v, n, bins ? bins : RT_USUAL_BINS, e)) return false;
    double *marks = (double *)(uintptr_t)e->marks; /* just made */
    if (e->n_marks == 1) marks[e->n_marks++] = nextafter(marks[0] + 1, INFINITY);
    e->out = e->n_marks - 1;
    e->scale = RT_SCALE_PIECEWISE;
    return true;
}

gnnc_status rt_scale_fit(RtPool *pool, double *v, int64_t n, RtScaleWish wish, const char *what,
                         RtEncoder *e, RtError *err) {
    double farthest;
    bool ok = true;
    if (wish.as == RT_SCALE_STANDARD) {
        fit_standard(v, n, e, &farthest);
        if (!isfinite(e->mean))
            return rt_fail(err, GNNC_E_VALUE, "%s: its mean is no finite number", what);
        if (!wish.free || farthest <= FAR) return GNNC_OK;
        wish.as = RT_SCALE_QUANTILE;
    }
    if (n) qsort(v, (size_t)n, sizeof *v, by_number);
    if (wish.as == RT_SCALE_QUANTILE) ok = fit_quantile(pool, v, n, e);
    if (wish.as == RT_SCALE_PIECEWISE) ok = fit_bins(pool, v, n, wish.bins, e);
    return ok ? GNNC_OK : rt_fail_nomem(err, what);
}
