/* What a query compares values with: numbers, dates and texts, and the keys that a foreign key has.
 */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "runtime/data/csv.h"
#include "runtime/data/encoder.h"
#include "query.h"
#include "runtime/data/number.h"

/* LIKE of SQL: % any characters, _ one; ASCII letters in any case, as SQLite has it. */
static bool is_like(const char *s, const char *pattern) {
    const char *again = NULL, *from = NULL;
    for (; *s;) {
        if (*pattern == '%') {
            again = ++pattern;
            from = s;
        } else if (*pattern == '_' || (*pattern && strncasecmp(pattern, s, 1) == 0)) {
            pattern++, s++;
        } else if (again) {
            pattern = again;
            s = ++from;
        } else {
            return false;
        }
    }
    while (*pattern == '%') pattern++;
    return !*pattern;
}

/* Does the test hold for a value that is less (< 0), equal or greater? */
static bool order_fits(RtTest op, int order) {
    switch (op) {
    case RT_TEST_EQ:
    case RT_TEST_IN:
        return order == 0;
    case RT_TEST_NE:
        return order != 0;
    case RT_TEST_LT:
        return order < 0;
    case RT_TEST_LE:
        return order <= 0;
    case RT_TEST_GT:
        return order > 0;
    default:
        return order >= 0;
    }
}

/* Does the text pass the test against the constant? */
static bool text_fits(RtTest op, const char *s, const RtQueryConst *c) {
    size_t n = strlen(c->text), m = strlen(s);
    switch (op) {
    case RT_TEST_LIKE:
        return is_like(s, c->text);
    case RT_TEST_STARTS:
        return strncmp(s, c->text, n) == 0;
    case RT_TEST_ENDS:
        return m >= n && strcmp(s + m - n, c->text) == 0;
    case RT_TEST_CONTAINS:
        return strstr(s, c->text) != NULL;
    default:
        return order_fits(op, strcmp(s, c->text));
    }
}

static bool is_exact(RtTest op) {
    return op == RT_TEST_EQ || op == RT_TEST_IN;
}

/* Finds out once which of a column's categories pass the test. */
static gnnc_status bind_texts(RtPool *pool, RtQueryExpr *e, const RtColumn *c, RtError *err) {
    bool *fits = RT_NEWN(pool, bool, c->n_categories + 1), found = false;
    if (!fits) return rt_fail_nomem(err, "query");
    for (int64_t i = 0; i < c->n_categories; i++)
        for (int k = 0; k < e->test.n && !fits[i]; k++)
            found |= fits[i] = text_fits(e->test.op, c->names[i], &e->test.v[k]);
    e->rows->fits = fits;
    if (is_exact(e->test.op) && !found)
        return rt_fail(err, GNNC_E_MISSING, "query, character %d: no row of column '%s' is '%.80s'",
                       e->test.v[0].at, c->name, e->test.v[0].text);
    return GNNC_OK;
}

/* narrow: what is compared is f32, and so the constant: 19.99 is 19.99. */
static gnnc_status bind_numbers(RtPool *pool, RtQueryExpr *e, bool time, bool narrow,
                                RtError *err) {
    double *v = RT_NEWN(pool, double, e->test.n + 1);
    bool words = e->test.op >= RT_TEST_LIKE;
    if (!v) return rt_fail_nomem(err, "query");
    if (words)
        return rt_fail(err, GNNC_E_FORMAT, "query, character %d: this test is of texts", e->at);
    for (int i = 0; i < e->test.n; i++) {
        const RtQueryConst *c = &e->test.v[i];
        v[i] = c->number;
        if (time ? rt_cell_time(c->text, &v[i]) : !c->quoted && !isnan(v[i])) {
            if (narrow) v[i] = (double)(float)v[i];
            continue;
        }
        return rt_fail(err, GNNC_E_FORMAT, "query, character %d: '%.60s' is no %s", c->at, c->text,
                       time ? "date" : "number");
    }
    e->rows->constant = v;
    return GNNC_OK;
}

/* ---- foreign keys, by the keys of the rows that they lead to ----------------------------- */
/* The column of the table's keys; NULL: they are texts, or not kept. */
static const RtColumn *key_column(const RtTable *t) {
    for (int i = 0; i < t->n_columns; i++)
        if (t->columns[i].encoder && t->columns[i].encoder->as == RT_AS_KEY) return &t->columns[i];
    return NULL;
}

/* Whole numbers, all of their digits. */
static gnnc_status key_numbers(RtPool *pool, const RtQueryExpr *e, int64_t **out, RtError *err) {
    int64_t *v = *out = RT_NEWN(pool, int64_t, e->test.n + 1);
    if (!v) return rt_fail_nomem(err, "query");
    if (e->test.op >= RT_TEST_LIKE)
        return rt_fail(err, GNNC_E_FORMAT, "query, character %d: this test is of texts", e->at);
    for (int i = 0; i < e->test.n; i++)
        if (!rt_cell_key(e->test.v[i].text, &v[i]))
            return rt_fail(err, GNNC_E_FORMAT, "query, character %d: '%.60s' is no whole number",
                           e->test.v[i].at, e->test.v[i].text);
    return GNNC_OK;
}

/* Finds out once which rows of the table referred to pass the test, by their keys. */
static gnnc_status bind_keys(RtPool *pool, RtQueryExpr *e, const RtTable *to, RtError *err) {
    const RtColumn *key = key_column(to);
    int64_t *number = NULL;
    gnnc_status st = GNNC_OK;
    bool *fits = RT_NEWN(pool, bool, to->count + 1), found = false;
    if (!fits) return rt_fail_nomem(err, "query");
    if (!key && !to->names)
        return rt_fail(err, GNNC_E_FORMAT,
                       "query, character %d: the keys of '%s' are not kept: its rows cannot be "
                       "told apart",
                       e->at, to->name);
    if (key) st = key_numbers(pool, e, &number, err);
    for (int64_t i = 0; st == GNNC_OK && i < to->count; i++)
        for (int k = 0; k < e->test.n && !fits[i]; k++)
            found |= fits[i] =
                key ? order_fits(e->test.op, (key->i64[i] > number[k]) - (key->i64[i] < number[k]))
                    : text_fits(e->test.op, to->names[i], &e->test.v[k]);
    e->rows->fits = fits;
    if (st == GNNC_OK && is_exact(e->test.op) && !found)
        st = rt_fail(err, GNNC_E_MISSING, "query, character %d: no row of '%s' has the key '%.80s'",
                     e->test.v[0].at, to->name, e->test.v[0].text);
    return st;
}

gnnc_status rt_query_bind_test(RtPool *pool, RtQueryExpr *e, RtError *err) {
    const RtQueryExpr *of = e->a;
    const RtColumn *c = of->rows->column;
    RtAgg agg = of->value.agg;
    bool itself = rt_query_keeps(agg);
    if (!(e->rows = RT_NEW(pool, RtQueryRows))) return rt_fail_nomem(err, "query");
    if (agg == RT_AGG_LIST_DISTINCT)
        return rt_fail(err, GNNC_E_FORMAT, "query, character %d: a list is compared with nothing",
                       e->at);
    if (e->test.op == RT_TEST_IS_NULL) return GNNC_OK;
    if (itself && of->rows->leads) return bind_keys(pool, e, of->rows->leads, err);
    if (itself && c && c->names) return bind_texts(pool, e, c, err);
    bool one = itself || agg == RT_AGG_MIN || agg == RT_AGG_MAX;
    bool narrow = one && c && c->kind == RT_COL_FLOAT && !c->exact;
    return bind_numbers(pool, e, itself && c && c->kind == RT_COL_TIME, narrow, err);
}
