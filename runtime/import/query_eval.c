/* Values and tests of a bound query. */
#include <math.h>
#include <stdlib.h>

#include "import_table.h"
#include "query.h"

/* ---- cells --------------------------------------------------------------------------- */
static double code_of(int32_t code) {
    return code < 0 ? NAN : code;
}

/* A row's value as a number: codes by number, rows alone as 1; NaN: it is unknown. */
static double cell(const RtQueryRows *r, int64_t row) {
    const RtColumn *c = r->column;
    if (r->refers) return code_of(r->refers[row]);
    if (!c) return 1;
    if (c->exact) return c->exact[row]; /* what it was before it is standardised, or rounded */
    if (r->missing && r->missing->i32[row] == 1) return NAN;
    switch (c->kind) {
    case RT_COL_FLOAT:
        return (double)c->f32[row];
    case RT_COL_TIME:
        return c->f64[row];
    case RT_COL_ID:
        return c->i64[row] == RT_ID_ABSENT ? NAN : (double)c->i64[row];
    case RT_COL_SPLIT:
        return c->splits[row];
    default:
        return code_of(c->i32[row]);
    }
}

/* ---- windows ----------------------------------------------------------------------------- */
/* The first of times[from..to) that is later than t. */
static int64_t after(const double *times, int64_t from, int64_t to, double t) {
    while (from < to) {
        int64_t mid = from + (to - from) / 2;
        if (times[mid] > t)
            to = mid;
        else
            from = mid + 1;
    }
    return from;
}

static int by_number(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* Lists the different values of rows in scratch, ascending; returns how many. */
static int64_t distinct(const RtQueryRows *r, int64_t from, int64_t to, double *scratch) {
    int64_t n = 0, kept = 0;
    for (int64_t i = from; i < to; i++) {
        double v = cell(r, r->row[i]);
        if (!isnan(v)) scratch[n++] = v;
    }
    if (n) qsort(scratch, (size_t)n, sizeof *scratch, by_number);
    for (int64_t i = 0; i < n; i++)
        if (kept == 0 || scratch[i] != scratch[kept - 1]) scratch[kept++] = scratch[i];
    return kept;
}

/* Missing values are left out, as in SQL; without any, a sum is 0 and all but counts are missing.
 */
static double aggregate(RtAgg agg, const RtQueryRows *r, int64_t from, int64_t to,
                        double *scratch) {
    double sum = 0, first = NAN, last = NAN, least = INFINITY, most = -INFINITY;
    int64_t n = 0;
    if (agg == RT_AGG_COUNT_DISTINCT) return (double)distinct(r, from, to, scratch);
    for (int64_t i = from; i < to; i++) {
        double v = cell(r, r->row[i]);
        if (isnan(v)) continue;
        if (n++ == 0) first = v;
        last = v;
        sum += v;
        if (v < least) least = v;
        if (v > most) most = v;
    }
    switch (agg) {
    case RT_AGG_COUNT:
        return (double)n;
    case RT_AGG_SUM:
        return sum;
    case RT_AGG_AVG:
        return n ? sum / (double)n : NAN;
    case RT_AGG_MIN:
        return n ? least : NAN;
    case RT_AGG_MAX:
        return n ? most : NAN;
    case RT_AGG_FIRST:
        return first;
    default:
        return last;
    }
}

double rt_query_value(const RtQueryExpr *e, int64_t row, double t, double *scratch) {
    const RtQueryRows *r = e->rows;
    if (e->value.agg == RT_AGG_NONE) return cell(r, row);
    int64_t from = r->ptr[row], to = r->ptr[row + 1];
    int64_t first = after(r->time, from, to, t + e->value.from);
    return aggregate(e->value.agg, r, first, after(r->time, first, to, t + e->value.to), scratch);
}

void rt_query_list(const RtQueryExpr *e, int64_t row, double t, double *labels, int64_t n) {
    const RtQueryRows *r = e->rows;
    int64_t from = r->ptr[row], to = r->ptr[row + 1];
    for (int64_t i = 0; i < n; i++) labels[i] = 0;
    from = after(r->time, from, to, t + e->value.from);
    to = after(r->time, from, to, t + e->value.to);
    for (int64_t i = from; i < to; i++) {
        double v = cell(r, r->row[i]);
        if (v >= 0 && v < (double)n) labels[(int64_t)v] = 1;
    }
}

int64_t rt_query_distinct(const RtQueryExpr *e, int64_t row, double t, double *scratch) {
    const RtQueryRows *r = e->rows;
    int64_t from = r->ptr[row], to = r->ptr[row + 1];
    from = after(r->time, from, to, t + e->value.from);
    return distinct(r, from, after(r->time, from, to, t + e->value.to), scratch);
}

/* ---- tests ---------------------------------------------------------------------------------- */
/* Does number v pass the test against c? */
static bool number_fits(RtTest op, double v, double c) {
    switch (op) {
    case RT_TEST_EQ:
    case RT_TEST_IN:
        return v == c;
    case RT_TEST_NE:
        return v != c;
    case RT_TEST_LT:
        return v < c;
    case RT_TEST_LE:
        return v <= c;
    case RT_TEST_GT:
        return v > c;
    case RT_TEST_GE:
        return v >= c;
    default:
        return false;
    }
}

/* Does v pass the test? 1, 0, or -1: unknown. */
static int compare(const RtQueryExpr *e, double v) {
    if (e->test.op == RT_TEST_IS_NULL) return isnan(v) != e->test.negated;
    if (isnan(v)) return -1;
    bool fits = false;
    if (e->rows->fits)
        fits = e->rows->fits[(int64_t)v];
    else
        for (int i = 0; i < e->test.n && !fits; i++)
            fits = number_fits(e->test.op, v, e->rows->constant[i]);
    return fits != e->test.negated;
}

int rt_query_test(const RtQueryExpr *e, int64_t row, double t, double *scratch) {
    if (e->kind == RT_QUERY_TEST) return compare(e, rt_query_value(e->a, row, t, scratch));
    int a = rt_query_test(e->a, row, t, scratch);
    if (e->kind == RT_QUERY_NOT) return a < 0 ? -1 : !a;
    bool and = e->kind == RT_QUERY_AND;
    if (a == !and) return a; /* whatever b is */
    int b = rt_query_test(e->b, row, t, scratch);
    if (b == !and) return b;
    return a < 0 ? a : b;
}

typedef struct {
    int64_t n_entities, most;
} Longest;

/* Notes the most rows that an entity has in a value of the query. */
static void see_rows(void *user, const RtQueryExpr *e) {
    Longest *l = user;
    const RtQueryRows *r = e->rows;
    for (int64_t i = 0; r && r->ptr && i < l->n_entities; i++)
        if (r->ptr[i + 1] - r->ptr[i] > l->most) l->most = r->ptr[i + 1] - r->ptr[i];
}

int64_t rt_query_most_rows(const RtQueryExpr *e, int64_t n_entities) {
    Longest l = {.n_entities = n_entities};
    rt_query_each(e, see_rows, &l);
    return l.most;
}
