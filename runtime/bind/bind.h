/* A program meets its data: sizes, columns, relations and maps. */
#ifndef RUNTIME_BIND_H
#define RUNTIME_BIND_H

#include "runtime/model/codes.h"
#include "runtime/data/dataset.h"
#include "runtime/exec/exec.h"
#include "runtime/memory.h"
#include "runtime/data/relation.h"

/* The rows of the data that nodes of a batch are, each once. */
typedef struct RtDistinctRows {
    int64_t n;
    const int32_t *distinct; /* of each node: the number of its row */
    const int32_t *first;    /* of each row: the first node that it is */
} RtDistinctRows;

/* A column of which only some rows are read here: those of others come from other processes
 * (runtime/batch/pull.h). */
typedef struct RtPulledColumn {
    bool is;
    int64_t lo, hi; /* rows that are read */
    RtBytes seen;   /* what the fingerprint sees of all rows */
} RtPulledColumn;

typedef struct RtBound {
    RtDataset *data; /* a view of those that are bound */
    const char *dir; /* what messages call them */
    int split;       /* which of the columns of splits in one is read, from 0 */
    RtMemory *memory;
    RtDataset *alone;      /* the data that only this trainer reads; NULL = others may */
    const RtTable **table; /* [n_spaces] of node, base edge and graph spaces */
    RtRelation *rel;       /* [n_spaces] of edge spaces */
    bool *ready;           /* [n_spaces] rel is built */
    const RtColumn **col;  /* [n_columns] edge columns in canonical order; NULL = absent, unused */
    const RtPulledColumn *pulled; /* [n_columns] NULL: all rows are read */
    RtNz *nz;                     /* [n_columns] of CSR columns */
    RtEncoded *encoded;           /* [n_columns] */
    RtCodes *codes;        /* [n_columns] names of the codes of a model's categories and classes */
    RtCodes *rows;         /* [n_spaces] names of nodes that parameters have rows for */
    int missing_label;     /* a column of labels that the data do not have; -1 = none */
    const char *unknown;   /* they have it, with a class that the model does not: says which */
    const char **bound_by; /* [n_syms] who set the size, for messages */
    const int64_t **balance; /* [n_maps] */
    const RtDistinctRows
        *distinct;        /* [n_spaces] of a batch, its `distinct` spaces; NULL: no batch */
    uint64_t fingerprint; /* of what the program reads of the data */
    bool has_conditions;  /* those of `where` were computed before */
    bool judges_some; /* of the split that batches have, the buffer has only rows that are judged */
    struct RtDeviceMaps *maps; /* of a mini-batch: what the device makes of it (device_bind.h); NULL
                                  = nothing */
    struct RtIndexFile *file;  /* index_file.h; NULL = index arrays are made, and not kept */
    bool found;                /* .. in it: those of relations are there */
    bool for_request;          /* a batch, or what batches are cut from for one request: only what
                             their phases read is bound */
} RtBound;

/* What is bound: data, which outlive the trainer, and which of their splits.  alone: nobody else
 * reads them, so that edges go once index arrays are made of them. */
typedef struct RtDataSource {
    RtDataset *data;
    int64_t split;
    bool alone;
    struct RtIndexFile *file; /* where their index arrays are kept; NULL = nowhere */
    const int64_t *known;     /* [n_syms] a subgraph that a request brings, of a model whose sizes
                                 are these (-1: each tells its own); NULL: data */
    const double
        *at; /* the rows that are predicted are asked about then; NULL: when the data say */
    /* .. which rt_bind_at() does: libraries that only predict are without it. */
    gnnc_status (*put_at)(RtExec *x, RtDataset *view, double at);
} RtDataSource;

/* Binds every size that can be told without an index array: of derived
 * relations too, but those that depend on which edges are equal or on a computed condition,
 * which count as empty. */
gnnc_status rt_bind_sizes(RtExec *x, RtMemory *memory, const RtDataSource *data);
/* In the view of the data: in place of the rows that the model predicts one for each entity that is
 * there at a date.  E_ARG: they are no entities at times.  bind_at.c */
gnnc_status rt_bind_at(RtExec *x, RtDataset *view, double at);
/* Then builds the relations that need no computed condition and points the DATA, MAP and
 * LOGICAL buffers at their arrays: mapped files where the element type and order allow,
 * converted copies elsewhere.  Arrays that only building needed are given back. */
gnnc_status rt_bind_arrays(RtExec *x);
/* After the sizes of a subgraph: its relations that batches are drawn along, and its columns in
 * their order.  Buffers are the batches'. */
gnnc_status rt_bind_subgraph(RtExec *x);
/* A table of the data has a time, and the program reads its rows whatever that is.  Where what is
 * learned has a time, too, E_ASSERT if the data say that it is the row time (also of a program that
 * goes by another time), else one message; with `refuse` always E_ASSERT. */
gnnc_status rt_bind_check_times(const RtExec *x, bool refuse);
void rt_bind_close(RtExec *x);
/* A hash of the names, sizes and contents of the columns and edges that the program reads; of large
 * arrays samples at equal distances, so it costs no pass over the data.  bind_fingerprint.c */
uint64_t rt_bind_fingerprint(const RtExec *x);
/* Does DATA buffer `buf` lie in a mapped file? */
bool rt_bind_is_mapped(const RtExec *x, int buf);
/* The arrays of a column that it sees: so many. */
typedef struct RtSeenArray {
    const void *values;
    int64_t n;
    size_t element; /* bytes */
} RtSeenArray;
enum { RT_SEEN_ARRAYS = 3 };
int rt_bind_arrays_of(const RtColumn *c, RtSeenArray out[RT_SEEN_ARRAYS]);
/* What rt_bind_fingerprint sees of an array of n_bytes: so many of them, to `to`. */
size_t rt_bind_seen_bytes(size_t n_bytes);
size_t rt_bind_seen_at(size_t n_bytes, size_t k); /* where the k-th of them lies */
void rt_bind_copy_samples(const void *data, size_t n_bytes, uint8_t *to);

/* For minibatch.c, whose tables lie elsewhere.
 * Does a phase read this column? */
bool rt_bind_reads(const rt_program *p, int col);
/* .. one that runs over batches, or is it drawn by? */
bool rt_bind_batches_read(const rt_program *p, int col);
/* Is the map's index array made of the column's values or stored entries? */
bool rt_bind_is_of_column(const rt_program *p, int map, int col);
/* Does a phase over the whole data read the column, that batches read, or such an index array? */
bool rt_bind_reads_whole(const rt_program *p, int col);
/* Of the column only some rows are read here, and batches alone have arrays of what comes. */
static inline bool rt_bind_is_pulled(const RtExec *x, int col) {
    return x->rt->bound->pulled && x->rt->bound->pulled[col].is;
}
/* The type in which the program reads a column of numbers. */
rt_dtype rt_bind_type(const rt_program *p, const rt_column *want);
bool rt_bind_is_used(const rt_program *p, int col); /* .. or what makes batches */
/* The table's space, of a column of a derived relation too; the data's column, NULL = it has none;
 * its name, "paper.y" (NULL: no memory). */
int rt_bind_base(const rt_program *p, int col);
int rt_bind_index(const RtExec *x, const rt_column *c);               /* its number */
const RtTable *rt_bind_table_of(const RtExec *x, const rt_column *c); /* whose rows it has */
RtColumn *rt_bind_data_column(const RtExec *x, int col);
const char *rt_bind_column_name(const RtExec *x, int col);
/* E_MISSING: the data lack labels, E_RANGE: have others than the model: "train" and "eval" cannot
 * run. */
gnnc_status rt_bind_require_labels(const RtExec *x);
/* Runs a phase over the whole graph: columns are read from end to end, whatever batches told the
 * system before. */
gnnc_status rt_bind_run_whole(RtExec *x, const rt_phase *phase);
/* The data's column, as it lies there; NULL: the program does without. */
const RtColumn *rt_bind_source(const RtExec *x, int col);
/* Sizes and buffer of a column that was taken, in canonical order where it is of edges. */
gnnc_status rt_bind_device_gather(RtExec *x, int col);
/* Of a relation that was built when its condition was known: the columns, in canonical order. */
gnnc_status rt_bind_reorder_columns(RtExec *x, int space);

/* bind_relation.c: the number of edges of each, as far as it is known before they are built. */
gnnc_status rt_bind_count_edges(RtExec *x);
/* Every relation that can be derived from those that are ready. */
gnnc_status rt_bind_derived(RtExec *x);
/* Are batches or links drawn from its edges, on the host? */
bool rt_bind_drawn_from(const rt_program *p, int space);
/* The data's row that edge e of a relation comes from, and the space of that row's table; the
 * relations that it is derived from still have their arrays.  -1: none. */
int64_t rt_bind_row(const rt_program *p, const RtRelation *rel, int space, int64_t e, int *table);

/* bind_table.c: the data's table of a space, by its name there; edges that nothing reads are none.
 * E_MISSING: there is no such table; E_SHAPE: edges between other types. */
gnnc_status rt_bind_find_table(const RtExec *x, int space, const RtTable **to);
/* Does a phase over batches read along this relation, or its first edges? */
bool rt_bind_in_batches(const rt_program *p, int space);

/* bind_fetch.c: of a column in a device's memory, `who` in messages: a copy here, checked; the
 * memory itself as its buffer, where kernels read it so; the copies go, where nobody else reads
 * them. E_ARG: this runs elsewhere. */
gnnc_status rt_bind_fetch_from_device(RtExec *x, int col, const char *who);
void rt_bind_borrow_device_column(RtExec *x, int col);
void rt_bind_drop_host_copies(RtExec *x);

/* bind_form.c: stored entries as dense rows and back.
 * Can the column be read as the program wants it, now or converted? */
bool rt_form_fits(const rt_column *want, const RtColumn *have);
int64_t rt_form_stored(const RtColumn *c); /* of a matrix: how many entries are stored, or not 0 */
/* What converting takes; 0 where the column has that form. */
size_t rt_form_bytes(rt_col_kind want, const RtColumn *c, int64_t nnz);
gnnc_status rt_form_column(RtPool *pool, rt_col_kind want, const RtColumn *c, RtColumn *out,
                           RtError *err);
/* Edge lists as they were read, which go once index arrays are made of them. */
size_t rt_bind_ends_bytes(const RtExec *x);
/* What arrange_column() in bind.c will allocate for matrices of features. */
size_t rt_bind_form_bytes(const RtExec *x);

/* bind_map.c: the buffers of maps and row keys whose space is ready. */
gnnc_status rt_bind_space(RtExec *x, int space);
/* Do the map's arrays, or those of buffer `buf` in another map's order, follow from the edges
 * alone, of the whole data? */
bool rt_bind_of_edges(const rt_program *p, int map);
bool rt_bind_by_of_edges(const rt_program *p, int buf);

#endif
