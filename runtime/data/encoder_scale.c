/* Numbers by their quantiles.  Both forms are broken lines through marks:
 *
 *   quantile   from mark to mark, ends included, the normal distribution's quantile of the rank
 * that the mark has; beyond them as at the ends (Bartlett 1947; rank-based inverse normal)
 *   piecewise  a value for each bin between two marks: 0 before it, 1 behind it, and in it the part
 *              of the way that is gone (Gorishniy et al. 2022, eq. 1, but held in 0..1 at the ends,
 *              so that a later number beyond all others is like the farthest of them) */
#include "encoder_scale.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- values ------------------------------------------------------------------------ */
/* The last mark that is not above v; -1: all are. */
static int mark_before(const RtEncoder *e, double v) {
    int low = -1, high = e->n_marks;
    while (high - low > 1) {
        int mid = low + (high - low) / 2;
        if (e->marks[mid] <= v)
            low = mid;
        else
            high = mid;
    }
    return low;
}

/* How much of the way from mark i to the next one is gone; halves, as their distance may be more
 * than a double holds. */
static double part_of(const RtEncoder *e, int i, double v) {
    double from = e->marks[i] / 2, width = e->marks[i + 1] / 2 - from;
    return width > 0 ? (v / 2 - from) / width : 0;
}

/* Maps v to a normal distribution, by the marks around it; what is outside of them gets the
 * outermost. */
static double quantile(const RtEncoder *e, double v) {
    int i = mark_before(e, v), last = e->n_marks - 1;
    if (i < 0) return e->normal[0];
    if (i == last) return e->normal[last];
    return e->normal[i] + part_of(e, i, v) * (e->normal[i + 1] - e->normal[i]);
}

double rt_scale_number(const RtEncoder *e, double v) {
    if (e->scale == RT_SCALE_STANDARD) return (v - e->mean) / e->deviation;
    return e->scale == RT_SCALE_QUANTILE ? quantile(e, v) : v;
}

const char *rt_scale_bins(const RtEncoder *e, double v, void *to, int64_t at) {
    int in = mark_before(e, v);
    for (int i = 0; i < e->out; i++) {
        double x = i < in ? 1 : i > in ? 0 : part_of(e, i, v);
        const char *what = rt_column_kind(e->kind)->of_number(x, to, at * e->out + i);
        if (what) return what;
    }
    return NULL;
}

/* ---- in words ---------------------------------------------------------------------- */
void rt_scale_describe(const RtEncoder *e, char *to, size_t n) {
    double first = e->n_marks ? e->marks[0] : 0, last = e->n_marks ? e->marks[e->n_marks - 1] : 0;
    switch (e->scale) {
    case RT_SCALE_PLAIN:
        snprintf(to, n, "as it is");
        break;
    case RT_SCALE_STANDARD:
        snprintf(to, n, "standardised: mean %.6g, deviation %.6g", e->mean, e->deviation);
        break;
    case RT_SCALE_QUANTILE:
        snprintf(to, n, "quantile-normal: from %.6g to %.6g", first, last);
        break;
    case RT_SCALE_PIECEWISE:
        snprintf(to, n, "piecewise linear: %d bins from %.6g to %.6g", e->out, first, last);
        break;
    }
}

/* Are both lists of n numbers the same? */
static bool same_numbers(const double *a, const double *b, int n) {
    for (int i = 0; i < n; i++)
        if (a[i] != b[i]) return false;
    return true;
}

/* Do both encoders scale numbers in the same way? */
bool rt_scale_same(const RtEncoder *a, const RtEncoder *b) {
    if (a->scale != b->scale || a->n_marks != b->n_marks) return false;
    if (a->scale == RT_SCALE_STANDARD) return a->mean == b->mean && a->deviation == b->deviation;
    return same_numbers(a->marks, b->marks, a->n_marks) &&
           same_numbers(a->normal, b->normal, a->normal ? a->n_marks : 0);
}

/* ---- JSON ---------------------------------------------------------------------------- */
/* Writes n numbers as a JSON list, so that they are read back the same; false: no memory. */
static bool put_numbers(RtText *to, const char *key, const double *v, int n) {
    bool ok = rt_text_printf(to, ", \"%s\": [", key);
    for (int i = 0; i < n && ok; i++) ok = rt_text_printf(to, "%s%.17g", i ? ", " : "", v[i]);
    return ok && rt_text_printf(to, "]");
}

bool rt_scale_put(RtText *to, const RtEncoder *e) {
    bool bins = e->scale == RT_SCALE_PIECEWISE;
    if (e->scale == RT_SCALE_PLAIN) return true;
    if (e->scale == RT_SCALE_STANDARD)
        return rt_text_printf(to, ", \"mean\": %.17g, \"deviation\": %.17g", e->mean, e->deviation);
    return rt_text_printf(to, ", \"scale\": \"%s\"", bins ? "piecewise" : "quantile") &&
           put_numbers(to, "marks", e->marks, e->n_marks) &&
           (bins || put_numbers(to, "normal", e->normal, e->n_marks));
}

/* The finite numbers of a list that ascends; NULL: it is none. */
static const double *get_numbers(RtPool *pool, const RtJson *v, const char *key, bool strictly) {
    const RtJson *list = rt_json_get(v, key);
    if (!list || list->kind != RT_JSON_ARRAY || list->n < 1 || list->n > RT_MOST_MARKS) return NULL;
    double *to = RT_NEWN(pool, double, list->n);
    int n = 0;
    for (const RtJson *x = list->first; to && x; x = x->next) {
        if (x->kind != RT_JSON_NUMBER || !isfinite(x->number)) return NULL;
        to[n++] = x->number;
        if (n > 1 && (strictly ? to[n - 1] <= to[n - 2] : to[n - 1] < to[n - 2])) return NULL;
    }
    return to;
}

/* Reads the marks of a scale by quantiles, or of one in pieces. */
static const char *read_marks(RtPool *pool, const RtJson *v, const RtJson *scale, RtEncoder *e) {
    const RtJson *marks = rt_json_get(v, "marks"), *normal = rt_json_get(v, "normal");
    bool bins = scale->kind == RT_JSON_STRING && strcmp(scale->text, "piecewise") == 0;
    if (!bins && (scale->kind != RT_JSON_STRING || strcmp(scale->text, "quantile") != 0))
        return "'scale' must be \"quantile\" or \"piecewise\"";
    e->scale = bins ? RT_SCALE_PIECEWISE : RT_SCALE_QUANTILE;
    e->marks = get_numbers(pool, v, "marks", true);
    if (!e->marks || (bins && marks->n < 2))
        return "'marks' must be numbers that ascend, two at least of 'piecewise'";
    e->n_marks = marks->n;
    if (e->width) return "'marks' are for one raw column";
    if (bins) e->out = e->n_marks - 1;
    if (bins) return normal ? "a key that its kind does not have" : NULL;
    e->normal = get_numbers(pool, v, "normal", false);
    return e->normal && normal->n == marks->n ? NULL : "'normal' must have a number for each mark";
}

const char *rt_scale_read(RtPool *pool, const RtJson *v, RtEncoder *e) {
    const RtJson *mean = rt_json_get(v, "mean"), *deviation = rt_json_get(v, "deviation");
    const RtJson *scale = rt_json_get(v, "scale");
    bool marked = scale || rt_json_get(v, "marks") || rt_json_get(v, "normal");
    if (marked && (!scale || mean || deviation))
        return "'scale' goes with 'marks', and without 'mean' and 'deviation'";
    if (marked) return read_marks(pool, v, scale, e);
    if (!mean && !deviation) return NULL;
    e->scale = RT_SCALE_STANDARD;
    bool numbers = mean && mean->kind == RT_JSON_NUMBER && isfinite(mean->number) && deviation &&
                   deviation->kind == RT_JSON_NUMBER && isfinite(deviation->number) &&
                   deviation->number > 0;
    if (!numbers) return "'mean' and 'deviation' must be numbers, the deviation above 0";
    e->mean = mean->number;
    e->deviation = deviation->number;
    return NULL;
}

/* Copies n numbers into the pool; NULL stays NULL; false: no memory. */
static bool copy_numbers(RtPool *pool, const double *from, int n, const double **to) {
    double *own = from ? RT_NEWN(pool, double, n) : NULL;
    if (own) memcpy(own, from, (size_t)n * sizeof *own);
    *to = own;
    return !from || own;
}

bool rt_scale_copy(RtPool *pool, const RtEncoder *e, RtEncoder *out) {
    return copy_numbers(pool, e->marks, e->n_marks, &out->marks) &&
           copy_numbers(pool, e->normal, e->n_marks, &out->normal);
}
