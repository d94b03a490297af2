/* A data directory: schema.json and the .npy files it names (docs/data.md).
 *
 * Opening maps files of values where that is wanted, so columns in their native element
 * type cost no copy, reads the others, and checks everything that later code relies on: sizes
 * agree, ids and categories are in range, stored entries are sorted, features are finite. */
#ifndef RUNTIME_DATASET_H
#define RUNTIME_DATASET_H

#include "csr.h"
#include "npy.h"
#include "runtime/exec/team.h"
#include "runtime/program.h" /* rt_col_kind */

typedef struct RtColumn {
    const char *name;
    rt_col_kind kind;
    int64_t n_rows;
    int rank;                     /* with the rows */
    int64_t shape[RT_ARRAY_RANK]; /* shape[0] = n_rows; SPLIT: [n_rows] */
    RtDtype stored;               /* of the file with its values */
    int64_t n_categories;         /* CAT, CLASS */
    const char *const *names;     /* [n_categories] or NULL */
    /* Row-major; which one is set follows from the kind. */
    const float *f32;    /* FLOAT, MULTILABEL */
    const uint16_t *low; /* FLOAT in 16 bits, else NULL; where f32 is NULL, this is what there is */
    RtDtype low_dt;
    const int32_t *i32;   /* CAT, CLASS (-1 = none) */
    const double *f64;    /* TIME: seconds, NaN = unknown */
    const int64_t *i64;   /* ID */
    RtCsr csr;            /* CSR */
    int n_splits;         /* SPLIT */
    const int8_t *splits; /* [n_splits, n_rows]: 0 none, 1 train, 2 validation, 3 test */
    const char *why;      /* why an import made it of this kind; NULL = the form says so */
} RtColumn;

typedef struct RtTable {
    const char *name;
    int64_t count;
    int n_columns, room; /* room: columns that the array has place for, or 0 */
    RtColumn *columns;
    /* nodes of a data set of many graphs */
    int graph;                /* index in graphs, -1 = none */
    const int64_t *graph_ptr; /* [n_graphs + 1] rows of a graph are consecutive */
    /* edges, in file order */
    int src_type, dst_type; /* indices in nodes */
    const int32_t *src, *dst;
    const char *why;          /* edges: the column an import made them of; NULL = the form's own */
    const char *const *names; /* [count] of nodes whose keys are texts; only importers have them */
    const char *names_file;   /* nodes: their names in the directory, a line each; NULL = none */
} RtTable;

typedef struct RtDataset {
    RtPool pool;                         /* owns everything but what is borrowed */
    const struct RtDataset *of;          /* whose values these are; NULL = its own */
    const char *dir;                     /* where its files lie; NULL = in no directory */
    const char *name, *source, *licence; /* "" when the schema is silent */
    int n_nodes, n_edges, n_graphs;
    RtTable *nodes, *edges, *graphs;
} RtDataset;

/* The caller closes *out; on failure *out is NULL.  map_values: columns of values (float, csr's
 * values, multilabel, time, id) stay in their files where these hold the element type that is
 * wanted; what indexes (ends, pointers, categories, splits) is read, as it is checked here and
 * then relied on. */
gnnc_status rt_dataset_open(const RtAlloc *from, const char *dir, bool map_values, RtDataset **out,
                            RtError *err);
void rt_dataset_close(RtDataset *d); /* NULL is fine */
/* A view of `of`, which must outlive it and is not changed through it: tables and columns of its
 * own that may be changed, over the values of `of`.  What is converted for it is in its own pool.
 * Any number of views of one data set may be made and used at the same time.  NULL: no memory. */
RtDataset *rt_dataset_view(const RtAlloc *from, const RtDataset *of);
/* What of the data set's is used to build index arrays alone goes: its edges. */
void rt_dataset_drop_edges(RtDataset *d);
bool rt_dataset_maps(const RtDataset *d, const void *p); /* does p lie in a file of it? */

const RtTable *rt_dataset_nodes(const RtDataset *d, const char *name); /* NULL: no such */
const RtTable *rt_dataset_edges(const RtDataset *d, const char *name);
const RtTable *rt_dataset_graphs(const RtDataset *d, const char *name);
const RtColumn *rt_table_column(const RtTable *t, const char *name);
const RtColumn *rt_table_time(const RtTable *t); /* the first; NULL: none, or no table */

const char *rt_col_kind_name(rt_col_kind k); /* "class", as the schema spells it */
bool rt_col_kind_find(const char *name, rt_col_kind *out);

/* *out = a FLOAT column's values as RT_F32, RT_BF16 or RT_F16 alone: c's own where it has them,
 * else made in the pool by the team (NULL: the caller), the same bits whatever its size.  Columns
 * of other kinds are c. */
gnnc_status rt_column_as(RtPool *pool, RtTeam *team, const RtColumn *c, rt_dtype t,
                         const RtColumn **out, RtError *err);
/* Values of a FLOAT or MULTILABEL column, and the bytes of one. */
static inline const void *rt_column_values(const RtColumn *c) {
    return c->f32 ? (const void *)c->f32 : c->low;
}
static inline size_t rt_column_value_bytes(const RtColumn *c) {
    return c->low && !c->f32 ? sizeof *c->low : sizeof *c->f32;
}
/* Rows idx[0..n) of a column, e.g. an edge column in canonical order. */
gnnc_status rt_column_take(RtPool *pool, const RtColumn *c, const int32_t *idx, int64_t n,
                           RtColumn *out, RtError *err);
/* Split k as the IR's i32 column (values as in RtColumn.splits). E_RANGE: no such split. */
gnnc_status rt_column_split(RtPool *pool, const RtColumn *c, int k, const int32_t **out,
                            RtError *err);
/* The graph of each node, from graph_ptr. */
gnnc_status rt_table_graph_of(RtPool *pool, const RtTable *nodes, int64_t n_graphs,
                              const int32_t **out, RtError *err);

/* ---- for importers and tests --------------------------------------------- */
/* A data set without anything in it; NULL: no memory. */
RtDataset *rt_dataset_new(const RtAlloc *from);
/* One more column, which the caller fills: the array doubles.  NULL: no memory. */
RtColumn *rt_table_add_column(RtPool *pool, RtTable *t);
/* What mask `a`, of [n_splits, n_rows] or [n_rows], says of a column of splits: part 1, 2 or 3.
 * E_RANGE: a row is in two. */
gnnc_status rt_split_mask(int8_t *splits, const RtArray *a, int part, int64_t n_rows,
                          const char *where, RtError *err);
/* Checks as open does: `where` is the table's name in messages. */
gnnc_status rt_column_check(const RtColumn *c, const char *where, RtError *err);
gnnc_status rt_dataset_check(const RtDataset *d, RtError *err);
/* Of one table of edges alone, which need not be in d yet. */
gnnc_status rt_dataset_check_ends(const RtDataset *d, const RtTable *t, RtError *err);
/* Before there is anything to write: what would be in its way; taken: it is there already. */
gnnc_status rt_dataset_place(RtPool *pool, const char *dir, bool *taken, RtError *err);
/* Writes the directory beside `dir` and renames it: nothing half-written is ever
 * seen.  An existing data directory is replaced when `replace` is set; anything
 * else in the way is an error. */
gnnc_status rt_dataset_write(const RtDataset *d, const char *dir, bool replace, RtError *err);

/* Where open gets its files; the directory reader and the fuzzer differ here.  map: the bytes may
 * lie in a file, as they index nothing. */
typedef struct RtFiles {
    gnnc_status (*get)(void *user, RtPool *pool, const char *name, bool map, RtBytes *out,
                       RtError *err);
    void *user;
    bool map_values;
} RtFiles;
gnnc_status rt_dataset_open_files(const RtAlloc *from, const RtFiles *files, RtDataset **out,
                                  RtError *err);

#endif
