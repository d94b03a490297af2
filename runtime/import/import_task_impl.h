/* A task while it is made: rows are added, by a query's answers (import_task.c) or a SELECT's
 * (import_task_sql.c), and become a table (import_task_table.c). */
#ifndef RUNTIME_IMPORT_TASK_IMPL_H
#define RUNTIME_IMPORT_TASK_IMPL_H

#include "import_task.h"

/* Of a task that ranks: the items that each row is answered by. */
typedef struct RtTaskLists {
    const RtTable *of;          /* what is ranked; NULL: the task is none of these */
    const RtQueryExpr *asked;   /* the aggregate that lists them; NULL: no rows tell */
    int64_t n, room, room_rows; /* items; room for items, for rows */
    int32_t *item;              /* [n] ascending within a row */
    int64_t *end;               /* [rows.n] of each row */
} RtTaskLists;

typedef struct RtTask {
    RtDataset *d;
    RtPool *pool; /* goes when the task is made */
    const RtTaskOptions *how;
    RtTaskMade *made;
    RtError *err;
    RtQuery q;                       /* all 0: there is none */
    const char *why;                 /* what is asked, as it was written */
    const RtTable *entity;           /* whose rows are asked about */
    const RtColumn *const *row_time; /* of node types */
    RtTaskRows rows;
    RtTaskLists lists;
    int64_t room;               /* for rows */
    double *scratch;            /* [most rows of an entity, + 1] to compute an answer in */
    double *answer;             /* of one row, room for all of its answers */
    int unknown;                /* 1: code 0 stands for unknown names, which are no answer */
    const char *const *classes; /* what classes are called; NULL: by their numbers, or none */
    bool of_column;             /* the rows are those of the entities' table */
} RtTask;

extern const char *const rt_task_no_yes[]; /* the classes of conditions */

/* The name of the table, and nothing else of it; `t` is over with the pool. */
gnnc_status rt_task_begin(RtTask *t, RtPool *pool, RtDataset *d, const RtTaskOptions *how,
                          const char *name, RtTaskMade *made, RtError *err);
/* Times of rows, of which tables without any get a column; t->row_time is of them. */
gnnc_status rt_task_times(RtTask *t);
/* answer: as many as a row has. */
gnnc_status rt_task_add(RtTask *t, int64_t entity, double at, const double *answer, int part);
/* KNOWN AFTER names columns that are there; of rows of a table, neither it nor the target is their
 * time. */
gnnc_status rt_task_check_after(const RtTask *t);
/* Makes the table of older answers, and the edges to whom they are about; of how->history. */
gnnc_status rt_task_history(RtTask *t, RtTable *table, RtTable *edges);
/* Takes the node type of that name, which is there, as it was read, out of the data with its
 * references: *table, and the first `most` of its edges; others keep their places among one
 * another.  How many edges. */
int rt_task_take_out(RtDataset *d, const char *name, RtTable *table, RtTable *edges, int most);
/* ---- import_task_items.c ---- */
/* E_FORMAT: what RANK TOP stands behind is no list of rows; E_RANGE: there are fewer than two. */
gnnc_status rt_task_find_items(RtTask *t);
/* .. of a table whose rows are ranked, without a query.  E_RANGE, E_ARG: as above. */
gnnc_status rt_task_rank(RtTask *t, const RtTable *items);
/* A row, where its list is not empty. */
gnnc_status rt_task_add_list(RtTask *t, int64_t entity, double at, int part);
/* .. of n items, ascending. */
gnnc_status rt_task_add_items(RtTask *t, int64_t entity, double at, int part, const int32_t *item,
                              int64_t n);
/* The edges from rows to their items, of a table that will be the last one. */
gnnc_status rt_task_put_items(RtTask *t, RtTable *to);
/* ---- import_guess_items.c ---- */
gnnc_status rt_task_guess_items(RtTask *t);
/* E_RANGE: a part is empty.  Adds the table, its edges, its baselines. */
gnnc_status rt_task_end(RtTask *t);

#endif
