/* Questions about a database, whose answers are learned: docs/data.md, "Tasks".
 *
 *     PREDICT COUNT(orders.*, 0, 90, days) = 0
 *     FOR EACH customers WHERE COUNT(orders.*, -365, 0, days) > 0
 *
 * A query is parsed from text, bound to the tables of a data set, and then evaluated for rows of
 * one table, the entities, each at a time. */
#ifndef RUNTIME_QUERY_H
#define RUNTIME_QUERY_H

#include "runtime/data/dataset.h"

typedef enum {
    RT_AGG_NONE, /* the entity's own column */
    RT_AGG_COUNT,
    RT_AGG_COUNT_DISTINCT,
    RT_AGG_SUM,
    RT_AGG_AVG,
    RT_AGG_MIN,
    RT_AGG_MAX,
    RT_AGG_FIRST,
    RT_AGG_LAST,
    RT_AGG_LIST_DISTINCT, /* which categories, or rows that a foreign key leads to */
} RtAgg;

/* Is it a value of the column itself, a category or a time as well as a number? */
static inline bool rt_query_keeps(RtAgg agg) {
    return agg == RT_AGG_NONE || agg == RT_AGG_FIRST || agg == RT_AGG_LAST;
}

typedef enum {
    RT_TEST_EQ,
    RT_TEST_NE,
    RT_TEST_LT,
    RT_TEST_LE,
    RT_TEST_GT,
    RT_TEST_GE,
    RT_TEST_IN,
    RT_TEST_IS_NULL,
    RT_TEST_LIKE,
    RT_TEST_STARTS,
    RT_TEST_ENDS,
    RT_TEST_CONTAINS,
} RtTest;

typedef enum { RT_QUERY_VALUE, RT_QUERY_TEST, RT_QUERY_AND, RT_QUERY_OR, RT_QUERY_NOT } RtQueryKind;

/* A number, or a text: 'paid', 2020-01-31. */
typedef struct RtQueryConst {
    const char *text; /* as it was written, without quotes */
    bool quoted;      /* it was a text */
    double number;    /* NaN: it is none */
    int at;           /* its place in the text, from 1 */
} RtQueryConst;

typedef struct RtQueryExpr {
    RtQueryKind kind;
    int at;                    /* its place in the text, from 1 */
    struct RtQueryExpr *a, *b; /* of AND, OR, NOT; of a TEST, a is the VALUE */
    struct {
        RtAgg agg;
        const char *table, *column; /* table NULL: that of the rows around; column NULL: '*' */
        const char *via; /* the first foreign key on the way to the entity; NULL: the only
                          * one */
        int table_at, column_at, via_at; /* their places in the text */
        struct RtQueryExpr *where;       /* of the rows that are aggregated; NULL: all */
        double from, to;                 /* seconds after the time asked at: (from, to]; from may be
                                          * -infinity */
    } value;
    struct {
        RtTest op;
        bool negated; /* NOT IN, IS NOT NULL, NOT LIKE, .. */
        int n;
        RtQueryConst *v;
    } test;
    struct RtQueryRows *rows; /* rt_query_bind's */
} RtQueryExpr;

typedef struct RtQuery {
    const char *text;
    RtQueryExpr *target;      /* what is predicted */
    const char *entity, *key; /* FOR EACH entity.key; key NULL: not said */
    int entity_at, key_at;    /* their places in the text */
    RtQueryExpr *where;       /* of entities, when they are asked about; NULL: all */
    RtQueryExpr *assuming;    /* what is taken to happen in the window, too; NULL: nothing */
    int top;                  /* RANK TOP: so many of a list, the likeliest first; 0: not said */
    int ranked_at;            /* where it stands in the text */
    int n_after;              /* KNOWN AFTER: columns of the entity that come with the answer */
    const char **after;
    int *after_at; /* their places in the text */
} RtQuery;

/* What is learned of the rows that a SELECT gives:
 *
 *     task dnf {
 *       entity drivers   window 30 days   inclusive
 *       val_time 2005-01-01   test_time 2010-01-01
 *       sql "SELECT driverId, date, max(statusId <> 1) FROM .."
 *     } */
typedef struct RtTaskText {
    const char *name, *entity;  /* as imports call them */
    const char *sql;            /* the SELECT */
    double window;              /* seconds from the time asked at until the answer is known */
    bool inclusive;             /* rows of the time asked at are known then */
    double val_time, test_time; /* NaN: not said */
} RtTaskText;

/* E_FORMAT: the place in the text, from 1. */
gnnc_status rt_query_parse_task(RtPool *pool, const char *text, RtTaskText *out, RtError *err);

/* Texts live in the pool.  E_FORMAT names the place in the text, from 1. */
gnnc_status rt_query_parse(RtPool *pool, const char *text, RtQuery *out, RtError *err);
/* Does it, or its parts, aggregate rows of other tables? */
bool rt_query_aggregates(const RtQueryExpr *e);
/* Calls see(user, value) for each value of the expression, but of rows that are aggregated. */
void rt_query_each(const RtQueryExpr *e, void see(void *user, const RtQueryExpr *value),
                   void *user);

/* ---- query_bind.c: a query over tables ---------------------------------------------- */
enum { RT_QUERY_STEPS = 8, RT_QUERY_KEYS = 2 };
/* What a value reads.  Rows of an aggregate lie by entity, then by time. */
typedef struct RtQueryRows {
    const RtTable *table;
    const RtColumn *column;  /* NULL: '*', or a foreign key */
    const RtColumn *missing; /* 1 where the number is absent; NULL: never */
    const int32_t *refers;   /* a foreign key: the row that each row leads to, -1 none */
    const RtTable *leads;    /* .. and of which table; NULL: no foreign key */
    int n_keys, n_way;
    const RtTable *key[RT_QUERY_KEYS];  /* .. by which edges */
    const RtTable *way[RT_QUERY_STEPS]; /* of an aggregate: from its rows to their entity */
    const int64_t *ptr;                 /* [entities + 1] of an aggregate */
    const int32_t *row;                 /* rows of the table */
    const double *time;                 /* .. and their times */
    const bool *fits; /* of a TEST of categories, or of a foreign key: [categories], or
                       * [rows] that it leads to, which pass */
    double *constant; /* of a TEST of numbers and times: [n] */
} RtQueryRows;

typedef struct RtQueryData {
    const RtDataset *d;
    /* When a row of node type i happened; NULL: it has no time. */
    const RtColumn *const *time; /* [n_nodes] */
} RtQueryData;

/* Finds tables, columns, foreign keys; sorts rows.  *entity: the table that is asked about.
 * E_FORMAT, E_MISSING: what the query names is not there, or does not fit; E_NOMEM. */
gnnc_status rt_query_bind(RtPool *pool, const RtQueryData *data, RtQuery *q, const RtTable **entity,
                          RtError *err);
/* The table that a query asks about, before it is bound. */
gnnc_status rt_query_entity(const RtDataset *d, const RtQuery *q, const RtTable **entity,
                            RtError *err);
/* Is the column among those of foreign key `edge`?  In any case of the letters. */
bool rt_query_is_key(const RtTable *edge, const char *column);
/* Where foreign key `edge` leads from each row of its table: [rows], -1 = nowhere.  NULL: no
 * memory. */
const int32_t *rt_query_refers(RtPool *pool, const RtDataset *d, const RtTable *edge);

/* ---- query_test.c ------------------------------------------------------------------- */
/* What a TEST, whose value is bound, compares with.  E_FORMAT, E_MISSING: constants that do not
 * fit, or that no row has; E_NOMEM. */
gnnc_status rt_query_bind_test(RtPool *pool, RtQueryExpr *e, RtError *err);

/* ---- query_eval.c ------------------------------------------------------------------- */
/* A value for `row` of the entities at time t: a number, seconds, a category's code; NaN: missing.
 * `scratch`: room for as many numbers as an entity has rows, for COUNT_DISTINCT. */
double rt_query_value(const RtQueryExpr *e, int64_t row, double t, double *scratch);
/* Of LIST_DISTINCT: labels[code] = 1 for each that is there, 0 for the others, of n codes. */
void rt_query_list(const RtQueryExpr *e, int64_t row, double t, double *labels, int64_t n);
/* .. those that are there, ascending, into `scratch`; how many. */
int64_t rt_query_distinct(const RtQueryExpr *e, int64_t row, double t, double *scratch);
/* 1 true, 0 false, -1 unknown, by SQL's rules for missing values. */
int rt_query_test(const RtQueryExpr *e, int64_t row, double t, double *scratch);
/* The most rows of an entity that a value of the expression reads. */
int64_t rt_query_most_rows(const RtQueryExpr *e, int64_t n_entities);

#endif
