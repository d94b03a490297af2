/* What a gnnc_graph is made of: a data set that grows until it is committed; then a log of rows
 * that are appended to it, and the newest snapshot.
 *
 * A snapshot is a data set that never changes.  Tables that rows were appended to have arrays of
 * their own, a version of the table, and the others are those of the snapshot before.  A version
 * goes with the last snapshot that has it, a snapshot with its last reader. */
#ifndef RUNTIME_GRAPH_H
#define RUNTIME_GRAPH_H

#include <pthread.h>
#include <stdatomic.h>

#include "runtime/data/dataset.h"
#include "runtime/data/names.h"

/* Memory of the caller that the graph reads as long as it lives. */
typedef struct RtLoan {
    struct RtLoan *next;
    gnnc_done_fn *done; /* NULL = nobody waits for it */
    void *user;         /* of done */
    const char *table;  /* the name of the table that reads it, as that has it */
} RtLoan;

/* ---- once it is committed: tables are counted through, nodes before edges ---- */
typedef struct RtVersion {
    struct RtVersion *next; /* of those that go at once */
    int n_refs;             /* snapshots that have it; the graph's lock */
    bool built;             /* as it was committed first: its arrays lie in the graph's memory */
    RtPool pool;
} RtVersion;

typedef struct RtSnapshot {
    int n_refs;      /* readers, and the graph while it is the newest; the graph's lock */
    RtDataset *data; /* as readers see it */
    RtVersion **of;  /* [tables] */
} RtSnapshot;

/* Rows of one call, in one block of memory; columns as the table has them. */
typedef struct RtLogged {
    struct RtLogged *next; /* appended after this */
    RtTable t;             /* the rows, as a table of their own */
} RtLogged;

/* Codes by the names of a column's categories, in their own memory; found by any thread. */
typedef struct RtDictionary {
    RtPool pool;
    RtNames names;
} RtDictionary;

/* What the log has of a table. */
typedef struct RtTail {
    RtLogged *first, *last; /* since the newest snapshot */
    int64_t count;          /* rows, with those of the newest snapshot */
    int64_t *nnz;           /* [columns] stored entries, likewise */
    RtDictionary **known;   /* [columns] NULL = no call has needed them yet */
} RtTail;

struct gnnc_graph {
    atomic_int n_refs;
    RtAlloc from;
    RtDataset *data; /* as it was built: names, columns and categories are those of all snapshots */
    int room[3];     /* node, edge and graph tables that the arrays have place for */
    RtLoan *loans;   /* all memory of the caller that is read */
    bool committed;  /* then what is above is not written, and err neither */
    bool changed;    /* since it was read, which checked it */
    RtError err;
    /* Once it is committed. */
    pthread_mutex_t lock;       /* of what is below, of loans, and of what is dropped of `data` */
    pthread_mutex_t committing; /* one commit at a time, while rows are appended */
    RtSnapshot *newest;
    RtTail *tail;                  /* [tables] */
    _Atomic(const char *) refused; /* why the last call that failed did; "" = none has */
};

/* A data directory as a committed graph: what gnnc_trainer_load makes of it, which may leave tables
 * of at least `late_edges` edges in their files, and rows of others than the share unread
 * (rt_dataset_open_late). */
gnnc_status rt_graph_open(const RtAlloc *from, const char *dir, bool map, int64_t late_edges,
                          RtShare share, gnnc_graph **out, RtError *err);

/* ---- snapshots (graph_snapshot.c) -------------------------------------------- */
/* The newest one, for a reader that has a reference to the graph. */
RtSnapshot *rt_graph_enter(gnnc_graph *g);
/* One that has a reader, for one more. */
void rt_graph_enter_too(gnnc_graph *g, RtSnapshot *s);
void rt_graph_leave(gnnc_graph *g, RtSnapshot *s);         /* NULL is fine */
static inline int rt_graph_n_tables(const gnnc_graph *g) { /* that can be appended to */
    return g->data->n_nodes + g->data->n_edges;
}
static inline RtTable *rt_snapshot_table(const RtDataset *d, int i) {
    return i < d->n_nodes ? &d->nodes[i] : &d->edges[i - d->n_nodes];
}
/* Ends the building of a graph: makes its first snapshot, one version of each table. From now on
 * rows are only appended. */
gnnc_status rt_graph_freeze(gnnc_graph *g);
/* One more, with what the log has. */
gnnc_status rt_graph_commit_log(gnnc_graph *g);
/* What the log has goes, and what appending made for itself. */
void rt_graph_drop_log(gnnc_graph *g);

/* ---- shared by graph*.c ----------------------------------------------------- */
/* Every building call starts with this: E_ARG where g is NULL, E_STATE once it is committed. */
gnnc_status rt_graph_begin(gnnc_graph *g);
/* For an argument that is NULL; `name` is the argument's. */
gnnc_status rt_graph_null(gnnc_graph *g, const char *name);
/* The table of nodes, edges or graphs that is called so; NULL: recorded as E_MISSING. */
RtTable *rt_graph_table(gnnc_graph *g, const char *name);
/* Puts a column in its table, in place of one of the same name.  rt_graph_table found the table. */
gnnc_status rt_graph_put_column(gnnc_graph *g, RtTable *t, const RtColumn *c);
/* Copies of n names, all different; `where` is whose they are in messages. */
gnnc_status rt_graph_names(gnnc_graph *g, const char *where, const char *const *names, int64_t n,
                           const char *const **out);

/* gnnc_graph_add_edges of edges that g has none of yet; a node type may have their name, too, which
 * then finds neither. */
gnnc_status rt_graph_add_new_edges(gnnc_graph *g, const char *name, const char *src_type,
                                   const char *dst_type, const gnnc_array *src,
                                   const gnnc_array *dst);
/* gnnc_graph_add_column; *kept: the graph goes on reading the array. */
gnnc_status rt_graph_add_column(gnnc_graph *g, const char *table, const char *column,
                                gnnc_kind kind, const gnnc_array *values, int64_t n_categories,
                                const char *const *names, bool *kept);

/* gnnc_graph_add_column of an array in the memory of that GPU. */
gnnc_status rt_graph_add_there(gnnc_graph *g, const char *table, const char *column, gnnc_kind kind,
                               const gnnc_array *values, int ordinal);

/* ---- arrays of the caller (graph_array.c) ------------------------------------- */
/* An array during one call, which takes it over. */
typedef struct RtBorrowed {
    gnnc_array in;     /* a copy of the caller's struct */
    bool is_given;     /* it was an array */
    const char *where; /* "paper.x" in messages */
    const char *table; /* .. whose memory it becomes, once that is found */
    RtArray a;         /* row-major: the caller's own, or a copy in scratch */
    bool is_callers;   /* `a` is the caller's */
    RtLoan *loan;      /* .. and is kept so; NULL = it is not */
    RtPool scratch;
} RtBorrowed;

/* Reads the caller's struct alone; `in` may be NULL. */
void rt_borrowed_begin(RtBorrowed *x, const gnnc_graph *g, const gnnc_array *in, const char *where);
/* E_ARG for what is no array, E_DTYPE, E_SHAPE, E_NOMEM; then x->a is set. */
gnnc_status rt_borrowed_open(gnnc_graph *g, RtBorrowed *x);
/* The same of memory of a device, which is kept as it is: E_DTYPE, E_SHAPE. */
gnnc_status rt_borrowed_to_host(gnnc_graph *g, RtBorrowed *x);
/* Calls `done`, unless the graph goes on reading the array; st: of the whole call. */
void rt_borrowed_end(gnnc_graph *g, RtBorrowed *x, gnnc_status st);
int64_t rt_borrowed_row(const RtBorrowed *x, int64_t element);
/* x->a has this shape: `rank` sizes, -1 = any. E_SHAPE. */
gnnc_status rt_borrowed_shape(gnnc_graph *g, const RtBorrowed *x, int rank, const int64_t *shape);
gnnc_status rt_borrowed_integers(gnnc_graph *g, const RtBorrowed *x);
/* The array's values as they lie, where they may be kept so, else a copy in the graph's memory.
 * align: RT_ALIGN for what kernels read. */
gnnc_status rt_borrowed_keep(gnnc_graph *g, RtBorrowed *x, size_t align, const void **out);
/* .. in another element type; E_RANGE names the row. */
gnnc_status rt_borrowed_f32(gnnc_graph *g, RtBorrowed *x, const float **out);
gnnc_status rt_borrowed_f64(gnnc_graph *g, RtBorrowed *x, const double **out);
gnnc_status rt_borrowed_i64(gnnc_graph *g, RtBorrowed *x, const int64_t **out);
gnnc_status rt_borrowed_i32(gnnc_graph *g, RtBorrowed *x, size_t align, const int32_t **out);
gnnc_status rt_borrowed_as(gnnc_graph *g, RtBorrowed *x, RtDtype dt, const void **out);

/* ---- columns of one call (graph_values.c) ------------------------------------ */
/* It is read during the call alone, so that a copy is none too few: `as`, or what is no array. */
const gnnc_array *rt_borrowed_lock(const gnnc_array *in, gnnc_array *as);
void rt_borrowed_release(const gnnc_array *in); /* nobody took it over; NULL is fine */
/* Calls `done` of all that the graph of a call has borrowed. */
void rt_graph_release_loans(gnnc_graph *one);
/* Can n structs be read?  Where not, *n is how many can. */
gnnc_status rt_values_check(const gnnc_values *all, int32_t *n, RtError *err);
const gnnc_values *rt_values_at(const gnnc_values *all, int i);
void rt_values_release(const gnnc_values *v);
/* cells.c: *own = v, with the names that its encoder has for codes.  E_ARG, E_MISSING, E_STATE:
 * they are not made as `how` (NULL: nobody says) makes table.column of `whose`, or nobody says it.
 */
gnnc_status rt_values_check_encoding(const gnnc_values *v, const char *table,
                                     const struct RtEncoder *expected, const char *whose,
                                     gnnc_values *own, RtError *err);
/* A column of the table, for which its arrays are borrowed.
 *   n_codes  of codes without names of their own: -1 = by the codes
 *   n_columns  of stored entries */
gnnc_status rt_values_add(gnnc_graph *one, const char *table, const gnnc_values *v, gnnc_kind kind,
                          int64_t n_codes, int64_t n_columns);

#endif
