/* A data directory: schema.json and the .npy files it names (docs/data.md).
 *
 * Opening maps files of values where that is wanted, so columns in their native element
 * type cost no copy, reads the others, and checks everything that later code relies on: sizes
 * agree, ids and categories are in range, stored entries are sorted, features are finite. */
#ifndef RUNTIME_DATASET_H
#define RUNTIME_DATASET_H

#include "column.h"

enum { RT_PARTS_MOST = 4096 }; /* of a partitioned data set */
/* Of an edge table: bytes of rows, and sums of a few counts, do not overflow. */
#define RT_MOST_EDGES (INT64_MAX >> 16)

typedef struct RtTable {
    const char *name;
    int64_t count;
    int n_columns, room; /* room: columns that the array has place for, or 0 */
    RtColumn *columns;
    /* nodes of a data set of many graphs */
    int graph;                /* index in graphs, -1 = none */
    const int64_t *graph_ptr; /* [n_graphs + 1] rows of a graph are consecutive */
    /* nodes and graphs of a data set that `gnnc partition` wrote; all of them have the same n_parts
     */
    int n_parts;              /* 0 = it was not partitioned */
    const int64_t *part_ptr;  /* [n_parts + 1] rows of a part are consecutive */
    const int32_t *part_rows; /* [count] the row that each was before */
    /* edges, in file order */
    int src_type, dst_type; /* indices in nodes */
    const int32_t *src, *dst;
    const char *key;          /* edges of an import of tables: the columns of the source that refer,
                               * by their names in the language, "buyer" or "shop,day"; NULL */
    const char *why;          /* edges: the column an import made them of; NULL = the form's own */
    const char *const *names; /* [count] of nodes whose keys are texts; only importers have them */
    const char *time;         /* the column that says when its rows happened; "" = none of its times
                               * does; NULL = nobody says */
    const char *time_why;     /* .. why an import chose it */
    const char *names_file;   /* nodes: their names in the directory, a line each; NULL = none */
    /* Edges that were not read yet (rt_dataset_open_late): src and dst are NULL. */
    const char *ends_file;
    int64_t n_loops;      /* of them; -1 = nobody knows */
    const RtBytes *facts; /* [2] what the fingerprint sees of src and dst; NULL = nobody knows */
} RtTable;

/* What the files were when they were opened, told without reading them. */
typedef struct RtStamp {
    uint64_t key[2]; /* a hash of their names, sizes, times of change and inodes */
    bool known;      /* of a directory, and all of them could be asked */
    int64_t newest;  /* ns since 1970: when one of them was changed last, */
    int64_t taken;   /* .. and when the first of them was asked */
} RtStamp;

typedef struct RtDataset {
    RtPool pool;                         /* owns everything but what is borrowed */
    const struct RtDataset *of;          /* whose values these are; NULL = its own */
    const char *dir;                     /* where its files lie; NULL = in no directory */
    const char *name, *source, *licence; /* "" when the schema is silent */
    int n_nodes, n_edges, n_graphs;
    RtTable *nodes, *edges, *graphs;
    RtStamp stamp;
} RtDataset;

/* The caller closes *out; on failure *out is NULL.  map_values: columns of values (float, csr's
 * values, multilabel, time, id) stay in their files where these hold the element type that is
 * wanted; what indexes (ends, pointers, categories, splits) is read, as it is checked here and
 * then relied on, but for columns of nodes in parts, which several processes share.  Only the ends
 * of 2^31 edges or more are mapped in any case. */
gnnc_status rt_dataset_open(const RtAlloc *from, const char *dir, bool map_values, RtDataset **out,
                            RtError *err);
/* Which of several processes opens data in parts; n below 2: it is alone. */
typedef struct RtShare {
    int rank, n;
} RtShare;
/* Its rows of a table in parts: those of parts P * rank / n to P * (rank + 1) / n - 1 of P. */
static inline int64_t rt_share_begin(const RtTable *t, int rank, int n) {
    return t->part_ptr[(int64_t)t->n_parts * rank / n];
}
/* As rt_dataset_open, but tables of at least so many edges (0 = no table) are left in their files,
 * of which only the shape is looked at: who needs them reads them, and then they are checked.  Of
 * float, cat and csr columns of nodes in parts only the share's rows are checked. */
gnnc_status rt_dataset_open_late(const RtAlloc *from, const char *dir, bool map_values,
                                 int64_t late_edges, RtShare share, RtDataset **out, RtError *err);
/* The same, but all files are mapped, edges as well, for who goes through them once and ends soon.
 */
gnnc_status rt_dataset_open_mapped(const RtAlloc *from, const char *dir, RtDataset **out,
                                   RtError *err);
gnnc_status rt_dataset_read_ends(RtDataset *d, RtError *err); /* of all tables that lack them */
void rt_dataset_close(RtDataset *d);                          /* NULL is fine */
/* A view of `of`, which must outlive it and is not changed through it: tables and columns of its
 * own that may be changed, over the values of `of`.  What is converted for it is in its own pool.
 * Any number of views of one data set may be made and used at the same time.  NULL: no memory. */
RtDataset *rt_dataset_view(const RtAlloc *from, const RtDataset *of);
/* What of the data set's is used to build index arrays alone goes: its edges. */
void rt_dataset_drop_edges(RtDataset *d);
bool rt_dataset_maps(const RtDataset *d, const void *p); /* does p lie in a file of it? */
/* Pages of its mapped files leave this process until they are read again. */
void rt_dataset_forget_pages(const RtDataset *d);

const RtTable *rt_dataset_nodes(const RtDataset *d, const char *name); /* NULL: no such */
const RtTable *rt_dataset_edges(const RtDataset *d, const char *name);
const RtTable *rt_dataset_graphs(const RtDataset *d, const char *name);
const RtColumn *rt_table_column(const RtTable *t, const char *name);
/* When rows happened: what the data say, else the first time; NULL: at none, or no table. */
const RtColumn *rt_table_time(const RtTable *t);

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
/* Checks as open does. */
gnnc_status rt_dataset_check(const RtDataset *d, RtError *err);
/* Of one table of edges alone, which need not be in d yet. */
gnnc_status rt_dataset_check_ends(const RtDataset *d, const RtTable *t, RtError *err);
/* Before there is anything to write: what would be in its way; taken: it is there already. */
gnnc_status rt_dataset_place(RtPool *pool, const char *dir, bool *taken, RtError *err);
/* Writes the directory beside `dir` and renames it: nothing half-written is ever
 * seen.  An existing data directory is replaced when `replace` is set; anything
 * else in the way is an error. */
gnnc_status rt_dataset_write(const RtDataset *d, const char *dir, bool replace, RtError *err);

/* How the rows of a table move into parts: row i is the row rows[i] of the data. */
typedef struct RtMove {
    const int32_t *rows, *place; /* [count] each; place[rows[i]] = i */
    const int64_t *ptr;          /* [n_parts + 1] */
    const int32_t *original;     /* [count] part_rows of the result */
} RtMove;
typedef struct RtMoves {
    int n_parts;
    const RtMove *nodes, *graphs; /* [n_nodes], [n_graphs] */
} RtMoves;

/* "<dir>.partition" beside the data directory to be: there a run that may be killed leaves what it
 * has done, and the next one goes on.  Locked for one of them. */
typedef struct RtWork {
    const char *dir, *path;
    const char *state; /* a file (cache.h) that says of what and how far the work is */
    int lock;          /* -1: the file system knows no locks */
} RtWork;
/* E_STATE: another run has it.  What `w` refers to lies in the pool. */
gnnc_status rt_work_open(RtPool *pool, const char *dir, RtWork *w, RtError *err);
/* What an earlier run left goes: it was of something else. */
gnnc_status rt_work_clear(RtPool *pool, const RtWork *w, RtError *err);
/* st: how the run ended.  What it did stays after an error of the disk alone. */
void rt_work_close(RtPool *pool, RtWork *w, gnnc_status st);

/* The same data in that order as w->dir; edges stay in theirs.  Files are written a piece at a
 * time, and those that stand in w->path already are not written again. */
gnnc_status rt_dataset_write_moved(const RtDataset *d, const RtMoves *m, const RtWork *w,
                                   bool replace, RtError *err);

/* Where open gets its files; the directory reader and the fuzzer differ here.  map: the bytes may
 * lie in a file, as they index nothing. */
typedef struct RtFiles {
    gnnc_status (*get)(void *user, RtPool *pool, const char *name, bool map, RtBytes *out,
                       RtError *err);
    void *user;
    bool map_values, map_all; /* what indexes nothing is mapped; everything is */
    int64_t late_edges; /* tables of so many edges are looked at alone, their ends read later; 0:
                           none */
    RtShare share;
} RtFiles;
gnnc_status rt_dataset_open_files(const RtAlloc *from, const RtFiles *files, RtDataset **out,
                                  RtError *err);

#endif
