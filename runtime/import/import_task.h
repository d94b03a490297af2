/* Tasks: what is to be learned of a database, as a table of rows to learn from (docs/data.md,
 * "Tasks").
 *
 * Of a question about the future, each row is an entity at a time; it refers to the entity, and its
 * answer is what happens in the window behind that time.  Of a question about a column, each row is
 * a row of the entities' table at its own time, with its other columns and its references: so that
 * the table itself keeps what was known before. */
#ifndef RUNTIME_IMPORT_TASK_H
#define RUNTIME_IMPORT_TASK_H

#include "import.h"
#include "runtime/data/eval_metric.h"
#include "query.h"

typedef struct RtTaskOptions {
    const char *query;          /* the question (docs/tasks.md) */
    const char *name;           /* of the table; NULL = "task" */
    const char *by_time;        /* what says when rows happened, where tables have several times */
    double val_time, test_time; /* the first of validation and of test; NaN = by the data */
    bool history;               /* older answers as a table that is read */
    double every;               /* seconds from one time asked at to the next; 0 = the window */
} RtTaskOptions;

/* Of a task that ranks rows of a table, the items: which there are is told by rows of `event`. */
typedef struct RtTaskRanks {
    int top;                         /* 0: it does not */
    const char *links;               /* the edge type from rows of the task to items */
    const char *items, *event;       /* node types; event NULL: no rows tell, and there is no way */
    int n_way, n_keys;               /* edge types, one after the other, from the event .. */
    const char *way[RT_QUERY_STEPS]; /* .. to the entity, */
    const char *key[RT_QUERY_KEYS];  /* .. to the item */
} RtTaskRanks;

typedef struct RtTaskMade {
    const char *asked;          /* the question, on one line */
    const char *table;          /* with `y`, `split` and `time`, whose rows are predicted */
    const char *history;        /* .. of older answers; NULL: there is none */
    bool of_future;             /* rows of the time asked at are known, too */
    const char *told_table;     /* whose rows have told, by their times, .. */
    const char *told;           /* .. the number that is asked for; NULL: it is none, or goes */
    double window;              /* seconds; 0: of a column */
    double val_time, test_time; /* NaN: drawn at random */
    int64_t n[4];               /* rows in no part, training, validation, test */
    RtTaskRanks ranks;
    /* What is reached without learning: of one guess after the other, by each of the metrics; the
     * first is a scaffold's. */
    int n_baselines, n_metrics;
    RtBaseline *baselines;
} RtTaskMade;

/* Adds the table and its edges; what a row of the entities' table tells too late goes from it.
 * E_FORMAT, E_MISSING: of the query; E_RANGE: a part would be empty, a time is outside of the data;
 * E_STATE: there is such a table; E_NOMEM. */
gnnc_status rt_import_task(RtDataset *d, const RtTaskOptions *how, RtTaskMade *made, RtError *err);

/* ---- import_task_sql.c ---------------------------------------------------------------------- */
struct RtSource;
/* Before the source is ordered and read: has it read the SELECT, too.  E_ARG: it knows no SQL;
 * E_MISSING, E_FORMAT: no such entity, or what the SELECT gives is no task; what the source says.
 */
gnnc_status rt_task_ask(struct RtSource *s, const RtTaskText *task, RtError *err);
/* What was read becomes the task, as above.  E_RANGE: a row without entity or time, an entity that
 * is asked twice at one time, or before it is there, a window that is open when the data end; each
 * with the row. */
gnnc_status rt_import_task_sql(RtDataset *d, const RtTaskOptions *how, const RtTaskText *text,
                               RtTaskMade *made, RtError *err);

/* ---- import_task_links.c -------------------------------------------------------------------- */
/* What a source has read as links, how->source_task, becomes a task that ranks, as above.  E_RANGE:
 * a row without entity or time, an entity that is asked twice at one time; each with its row. */
gnnc_status rt_import_task_links(RtDataset *d, const RtTaskOptions *options, const RtImport *how,
                                 RtTaskMade *made, RtError *err);

/* ---- import_guess.c ----------------------------------------------------------------------- */
/* Answers by time: row i was asked at time[i], and is known from time[i] + window on. */
typedef struct RtTaskRows {
    int64_t n;
    int32_t *entity;   /* [n] */
    double *time;      /* [n] ascending; NULL: none have one */
    double *answer;    /* [n] a number, or a class; [n, n_labels] 0, 1, NaN unknown */
    int n_labels;      /* several answers of no and yes; 0: one answer */
    int8_t *part;      /* [n] */
    double window;     /* seconds until the answer is known */
    int64_t n_classes; /* 0: numbers */
} RtTaskRows;
/* Answers of a row. */
static inline int rt_task_width(const RtTaskRows *r) {
    return r->n_labels ? r->n_labels : 1;
}
/* One group of rows: those of one entity, or that refer to one row. */
typedef struct RtTaskKey {
    const char *name;  /* "customer", in the names of guesses */
    const int32_t *of; /* [n], -1 none */
    int64_t n;         /* groups */
} RtTaskKey;
/* Fills the baselines, in `keep`. */
gnnc_status rt_task_guess(RtPool *pool, RtPool *keep, const RtTaskRows *rows, const RtTaskKey *keys,
                          int n_keys, RtTaskMade *made, RtError *err);

#endif
