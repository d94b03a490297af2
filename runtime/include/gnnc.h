/* gnnc run-time library, public interface.
 *
 * A trainer is a compiled model, the data it runs on, its parameters and the state
 * of its training.  In order: create, options, load, then any mix of the rest.
 *
 *     gnnc_trainer *t = NULL;
 *     gnnc_status st = gnnc_trainer_create(&t, &churn_program);
 *     if (st == GNNC_OK) st = gnnc_trainer_set_int(t, "epochs", 100);
 *     if (st == GNNC_OK) st = gnnc_trainer_load(t, "models/data/cora");
 *     while (st == GNNC_OK && !gnnc_trainer_done(t)) st = gnnc_trainer_epoch(t);
 *     if (st != GNNC_OK) report(t ? gnnc_trainer_error(t) : gnnc_status_text(st));
 *     gnnc_trainer_destroy(t);
 *
 * Every call that can fail returns a gnnc_status from the one list below; the
 * library never exits, aborts or prints, and has no global state.
 *
 * A pointer may be NULL only where it says so: else the call returns GNNC_E_ARG, or, where it
 * returns no status, 0, NULL or "" (gnnc_trainer_done: 1).
 *
 * A trainer's call that works on data returns GNNC_E_STATE before load.  One that computes may
 * return GNNC_E_NOMEM, GNNC_E_LIMIT, GNNC_E_DEVICE, and of the model's own GNNC_E_ASSERT and
 * GNNC_E_EXTERN.  Below stands what a call returns beside these.
 *
 * Threads: one thread at a time per trainer (a call uses the threads it was given by
 * itself); different trainers are independent, also over one graph.  gnnc_trainer_stop alone may be
 * called from any thread and from a signal handler.
 *
 * What lasts: handles are opaque, and behind a function; a structure has its own size first
 * ("structures").  Values and functions are added, never changed in their meaning.
 *
 * Usable from C99 and C++. */
#ifndef GNNC_H
#define GNNC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
/* All else of the library is compiled hidden: a shared library exports this interface alone. */
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* X(name, value, text).  Values are part of the ABI: append, never renumber. */
#define GNNC_STATUS_MAP(X)                                                                         \
    X(OK, 0, "success")                                                                            \
    X(E_NOMEM, -1, "out of memory")                                                                \
    X(E_SHAPE, -2, "tensor shape mismatch")                                                        \
    X(E_RANGE, -3, "value out of range")                                                           \
    X(E_IO, -4, "input or output failed")                                                          \
    X(E_FORMAT, -5, "malformed file")                                                              \
    X(E_DTYPE, -6, "element type mismatch")                                                        \
    X(E_VALUE, -7, "NaN or infinite value")                                                        \
    X(E_MISSING, -8, "no such name")                                                               \
    X(E_ARG, -9, "invalid argument")                                                               \
    X(E_STATE, -10, "call not possible now")                                                       \
    X(E_LIMIT, -11, "memory limit exceeded")                                                       \
    X(E_ASSERT, -12, "an assertion of the model failed")                                           \
    X(E_DEVICE, -13, "the device failed")                                                          \
    X(E_EXTERN, -14, "a C function of the model failed")                                           \
    X(E_STOPPED, -15, "stopped before its end")

typedef enum gnnc_status {
#define GNNC_STATUS(name, value, text) GNNC_##name = value,
    GNNC_STATUS_MAP(GNNC_STATUS)
#undef GNNC_STATUS
} gnnc_status;

/* A short text for a status, never NULL; static, valid for ever. */
const char *gnnc_status_text(gnnc_status status);

/* ---- version -------------------------------------------------------------- */
#define GNNC_VERSION_MAJOR 0
#define GNNC_VERSION_MINOR 1
#define GNNC_VERSION_PATCH 0
#define GNNC_VERSION "0.1.0"
const char *gnnc_version(void); /* of the library linked; GNNC_VERSION is the header's */

/* Where a handle's memory comes from, for the host's own accounting.  `alloc` returns
 * zeroed bytes aligned for any type, or NULL. */
typedef void *gnnc_alloc_fn(void *user, size_t n_bytes);
typedef void gnnc_release_fn(void *user, void *block);

/* ---- structures ------------------------------------------------------------- */
/* Public structures begin with `struct_size`, which the caller sets before the call:
 *
 *     gnnc_memory m = {.struct_size = sizeof m};
 *
 * The library fills that many bytes: of a structure that has grown since the caller was compiled
 * those he knows, and of one that has not grown yet the rest with zeros.  They only grow, at their
 * end.  GNNC_E_ARG: a size that none of its versions has. */

/* ---- a graph: the data -------------------------------------------------------- */
/* Tables of nodes, edges and graphs with columns, from a directory (gnnc import makes one), from
 * the caller's arrays, or both.  It is built by one thread at a time; once it is committed what
 * trainers and sessions read of it never changes, and any number of them and of threads share it:
 *
 *     gnnc_graph *g = NULL;
 *     gnnc_status st = gnnc_graph_create(&g);
 *     if (st == GNNC_OK) st = gnnc_graph_add_nodes(g, "paper", n);
 *     if (st == GNNC_OK) st = gnnc_graph_add_edges(g, "cites", "paper", "paper", &src, &dst);
 *     if (st == GNNC_OK) st = gnnc_graph_add_column(g, "paper", "x", GNNC_COL_FLOAT, &x, -1, NULL);
 *     if (st == GNNC_OK) st = gnnc_graph_commit(g);
 *     if (st == GNNC_OK) st = gnnc_trainer_load_graph(t, g);
 *     gnnc_graph_release(g);                               the trainer keeps a reference
 *
 * A call that fails leaves the graph as it was.  Every building call (read, add_.., divide, commit)
 * may return GNNC_E_NOMEM, and after commit, but for commit itself, GNNC_E_STATE. */
typedef struct gnnc_graph gnnc_graph;

/* Makes an empty graph with one reference, the caller's.  *out is NULL after a failure.
 * `alloc` as of gnnc_trainer_create_with; `release` is called by whoever gives up the last
 * reference.  Returns GNNC_E_ARG, GNNC_E_NOMEM. */
gnnc_status gnnc_graph_create(gnnc_graph **out);
gnnc_status gnnc_graph_create_with(gnnc_graph **out, gnnc_alloc_fn *alloc, gnnc_release_fn *release,
                                   void *user);
/* One more reference, one fewer: from any thread, also while others use the graph.  With the last
 * one the graph goes, and `done` of all borrowed memory is called.  NULL is allowed. */
void gnnc_graph_retain(gnnc_graph *g);
void gnnc_graph_release(gnnc_graph *g);
/* What went wrong in the last building call that failed: one line, never NULL; valid until the
 * next building call, once the graph is committed for ever. */
const char *gnnc_graph_error(const gnnc_graph *g);

/* Reads all of a data directory into a graph in which nothing is yet.  map: 1 = large columns of
 * numbers stay in their files, as the trainer's option "map" has it; 0 = all is read.
 * Returns GNNC_E_IO, _FORMAT, _MISSING, _DTYPE, _SHAPE, _RANGE, _VALUE for a directory that is no
 * data set; GNNC_E_STATE: there is something in the graph. */
gnnc_status gnnc_graph_read(gnnc_graph *g, const char *directory, int map);

/* Element types; values are part of the ABI. */
typedef enum gnnc_element {
    GNNC_DT_F16 = 1,
    GNNC_DT_F32 = 2,
    GNNC_DT_F64 = 3,
    GNNC_DT_I8 = 4,
    GNNC_DT_I16 = 5,
    GNNC_DT_I32 = 6,
    GNNC_DT_I64 = 7,
    GNNC_DT_U8 = 8,
    GNNC_DT_U16 = 9,
    GNNC_DT_U32 = 10,
    GNNC_DT_U64 = 11,
    GNNC_DT_BOOL = 12, /* a byte, 0 = false */
    GNNC_DT_BF16 = 13
} gnnc_element;

enum { GNNC_MAX_RANK = 8, GNNC_ALIGN = 64 };
typedef void gnnc_done_fn(void *user);

/* An array of the caller's, for one call, which takes it over: `done` is called exactly once,
 * whatever the call returns, from then on the memory is the caller's again.  Set all to 0 first,
 * and struct_size to sizeof(gnnc_array); of an array with another struct_size nothing is read.
 *
 * Copied (default): the memory is read during the call alone.  Borrowed: the graph may read it
 * until the last snapshot with it goes, so that it must not change; without a copy it does where
 * elements lie row by row without gaps, have the type that is wanted, and begin at a multiple of
 * GNNC_ALIGN bytes (edges: of their own size).  Everything else is converted at once. */
typedef struct gnnc_array {
    size_t struct_size;
    const void *data; /* element [0, .., 0]; NULL where there is no element */
    int32_t dtype;    /* a gnnc_element */
    int32_t rank;     /* 1 to GNNC_MAX_RANK */
    int64_t shape[GNNC_MAX_RANK];
    int64_t stride[GNNC_MAX_RANK]; /* bytes from one index to the next, of any sign */
    int32_t strided;               /* 0 = row by row without gaps: `stride` is not read */
    int32_t borrowed;
    gnnc_done_fn *done; /* may be NULL; in the thread of the call, or of who reads it last */
    void *user;
} gnnc_array;

/* A node type of `count` rows, an id being a row's number from 0; a type of graphs.
 * Returns GNNC_E_RANGE (count beyond 2^31 - 1), GNNC_E_ARG (a table of that name is there). */
gnnc_status gnnc_graph_add_nodes(gnnc_graph *g, const char *type, int64_t count);
gnnc_status gnnc_graph_add_graphs(gnnc_graph *g, const char *type, int64_t count);
/* Of many graphs: nodes ptr[i] to ptr[i + 1] of `nodes` are those of graph i of `graphs`.
 *   ptr [graphs + 1] integers, ascending from 0 to the number of nodes
 * Returns GNNC_E_MISSING, _DTYPE, _SHAPE, _RANGE; the order is checked by commit. */
gnnc_status gnnc_graph_divide(gnnc_graph *g, const char *nodes, const char *graphs,
                              const gnnc_array *ptr);

/* An edge type, as two lists of ends.  An edge's number is its place in them, which columns of
 * edges follow.  An edge type of that name is replaced, and its columns go.
 *   src, dst [E] integers, row numbers of src_type, dst_type
 * Returns GNNC_E_MISSING (no such node type), _DTYPE, _SHAPE, _RANGE (an end is no node),
 * GNNC_E_ARG (a table of nodes or graphs has that name). */
gnnc_status gnnc_graph_add_edges(gnnc_graph *g, const char *name, const char *src_type,
                                 const char *dst_type, const gnnc_array *src,
                                 const gnnc_array *dst);
/* The same, compressed: edges ptr[v] to ptr[v + 1] are those of node v of src_type (by ==
 * GNNC_BY_SOURCE) or dst_type (GNNC_BY_DESTINATION), `idx` has their other ends.
 *   ptr [nodes + 1] integers, ascending from 0 to E     idx [E] integers
 * Returns GNNC_E_FORMAT, too: ptr does not ascend from 0 to E. */
typedef enum gnnc_by { GNNC_BY_SOURCE, GNNC_BY_DESTINATION } gnnc_by;
gnnc_status gnnc_graph_add_edges_csr(gnnc_graph *g, const char *name, const char *src_type,
                                     const char *dst_type, gnnc_by by, const gnnc_array *ptr,
                                     const gnnc_array *idx);

/* What a column is to a model (docs/data.md).  "wanted" is the type that is kept without a copy. */
typedef enum gnnc_kind {
    GNNC_COL_FLOAT,      /* [N, ..] finite numbers; wanted: f32, of 16 bits f16 or bf16 */
    GNNC_COL_CSR,        /* rows of stored entries: gnnc_graph_add_csr */
    GNNC_COL_CAT,        /* [N, ..] codes of categories from 0; wanted: i32 */
    GNNC_COL_CLASS,      /* [N] codes of classes, -1 or NaN = none; wanted: i32 */
    GNNC_COL_MULTILABEL, /* [N, T] 0 or 1, NaN = unknown; wanted: f32 */
    GNNC_COL_TIME,       /* [N] seconds, NaN = unknown; wanted: f64 */
    GNNC_COL_ID,         /* [N] integers, never computed with; wanted: i64 */
    GNNC_COL_SPLIT       /* [N], or [K, N] of K splits: 0 none, 1 train, 2 validation, 3 test;
                          * wanted: i8 */
} gnnc_kind;

/* "class", as schema.json spells it; "f32".  Valid for ever; "" of what is none. */
const char *gnnc_kind_text(gnnc_kind kind);
const char *gnnc_element_text(gnnc_element element);

/* A column of a table, whose row count N is; one of that name is replaced (what it held goes with
 * the graph).
 *   n_categories  of CAT and CLASS: codes are below it; -1 = one more than the largest code
 *   names         [n_categories] texts, all different, copied; or NULL
 * Returns GNNC_E_MISSING (no such table), _DTYPE, _SHAPE, _RANGE, _VALUE (NaN or infinite where
 * the kind has none): the message has table, column and row; GNNC_E_ARG. */
gnnc_status gnnc_graph_add_column(gnnc_graph *g, const char *table, const char *column,
                                  gnnc_kind kind, const gnnc_array *values, int64_t n_categories,
                                  const char *const *names);
/* A column of kind CSR, [N, n_columns]: entries ptr[i] to ptr[i + 1] are those of row i.
 *   ptr [N + 1]   idx [nnz] columns, ascending within a row   val [nnz], NULL = all 1
 * wanted: i64, i32, f32.  Returns as add_column does, and GNNC_E_FORMAT: out of order. */
gnnc_status gnnc_graph_add_csr(gnnc_graph *g, const char *table, const char *column,
                               int64_t n_columns, const gnnc_array *ptr, const gnnc_array *idx,
                               const gnnc_array *val);
/* A column of kind SPLIT from three masks, [N] or [K, N] each, a row that is not 0 being in that
 * part.  Returns as add_column does; GNNC_E_RANGE: a row is in two parts. */
gnnc_status gnnc_graph_add_masks(gnnc_graph *g, const char *table, const char *column,
                                 const gnnc_array *train, const gnnc_array *validation,
                                 const gnnc_array *test);

/* A DLPack tensor (gnnc_dlpack.h) as an array that any call above takes: borrowed, with the
 * tensor's deleter as `done`.  The graph never writes to it.  The call owns the tensor: where it
 * fails the deleter was called.
 * For gnnc_graph_append, too: then from any thread, and why it failed the status alone tells.
 *   tensor  in the host's memory (kDLCPU, kDLCUDAHost), of a gnnc_element's type, rank 1 or more
 *   out     struct_size set; all else is written
 * Returns GNNC_E_ARG (another major version, of which nothing else is read; memory of a device),
 * GNNC_E_DTYPE, GNNC_E_SHAPE. */
struct DLManagedTensorVersioned;
gnnc_status gnnc_graph_array_dlpack(gnnc_graph *g, struct DLManagedTensorVersioned *tensor,
                                    gnnc_array *out);
/* A column of one: both calls in one, with the errors of both.
 * Here the tensor may lie in a GPU's memory (kDLCUDA), as a column of kind FLOAT of nodes or
 * graphs, f32, row by row without gaps.  Trainers and sessions on that GPU read it where it lies,
 * if it begins at a multiple of GNNC_ALIGN bytes and the model reads it as it is, else they convert
 * it.  Not so in a subgraph (gnnc_session_subgraph), which takes columns of the host alone,
 * wherever the session runs: predicting is GNNC_E_ARG.  Loading goes behind the stream that was
 * set, or else the default stream: there its values are complete.  It reads them once on the host,
 * for what add_column checks of others (GNNC_E_VALUE) and for the hash that a checkpoint has of
 * data.  Elsewhere loading is GNNC_E_ARG.  No rows are appended to its table. */
gnnc_status gnnc_graph_add_dlpack(gnnc_graph *g, const char *table, const char *column,
                                  gnnc_kind kind, struct DLManagedTensorVersioned *tensor,
                                  int64_t n_categories, const char *const *names);

/* Columns of a record batch of the Arrow C data interface (gnnc_arrow.h): format "+s", as many rows
 * as the table.  All of them become columns, or, after a failure, none.
 *   numbers                  FLOAT; any kind          read where they lie, as a borrowed array
 *   booleans                 FLOAT, 0 or 1; any kind
 *   fixed-size lists of both FLOAT [N, k]; any kind of several values
 *   timestamps, dates        TIME, seconds since 1970
 *   texts, dictionaries      CAT; CLASS               names, sorted, are the categories; of a
 *                                                     dictionary all of them
 * Null is NaN of TIME and MULTILABEL, -1 of CLASS, none of SPLIT; else GNNC_E_VALUE with the row.
 *   columns, kinds [n_kinds]  columns whose kind is not the first one named above; NULL where
 *                             n_kinds is 0
 * schema and array move to the call, also where it fails: they are released ones when it returns
 * (release is NULL), and their release is called exactly once, the array's, where a column reads
 * its memory on, with the graph's last reference.
 * Returns as add_column does; GNNC_E_DTYPE: a format that is not read here, or not as that kind;
 * GNNC_E_MISSING: the batch has no column of `columns`; GNNC_E_FORMAT: broken offsets of texts;
 * GNNC_E_ARG: a buffer that is not aligned to its elements. */
struct ArrowSchema;
struct ArrowArray;
gnnc_status gnnc_graph_add_arrow(gnnc_graph *g, const char *table, struct ArrowSchema *schema,
                                 struct ArrowArray *array, int n_kinds, const char *const *columns,
                                 const gnnc_kind *kinds);

/* Ends building: everything that opening a directory checks holds from now on, and there is a first
 * snapshot, which never changes.  After a failure building can go on, to mend it.
 * Returns GNNC_E_RANGE, GNNC_E_FORMAT: ends of edges, or graph pointers, do not fit.
 *
 * From then on, from any thread: what was appended before the call makes the next snapshot, which
 * trainers and sessions that load the graph from then on see.  Who has loaded it keeps the snapshot
 * that he has, which goes with its last reader.  Tables that rows were appended to are copied, and
 * no others; where nothing was appended there is nothing to do.  GNNC_E_NOMEM: all is as it was. */
gnnc_status gnnc_graph_commit(gnnc_graph *g);

/* ---- rows that come later ----------------------------------------------------------- */
/* Nodes and edges are appended to a committed graph by any number of threads, beside commits and
 * readers, and are seen by nobody before the next gnnc_graph_commit.  A graph that was appended to
 * gives, to the bit, what one gives that is built of the rows of all calls behind one another.
 *
 *     const gnnc_values column = {.struct_size = sizeof column, .column = "x", .values = &x};
 *     gnnc_rows rows = {.struct_size = sizeof rows, .table = "paper", .count = n,
 *                       .n_columns = 1, .columns = &column};
 *     st = gnnc_graph_append(g, &rows);                    they are rows.first, rows.first + 1, ..
 */
/* Values of the new rows in one column, as of gnnc_graph_add_column and gnnc_graph_add_csr.  The
 * kind, what a row's shape is, and the categories are the column's as it was committed. */
typedef struct gnnc_encoder gnnc_encoder; /* rows of cells, below */
typedef struct gnnc_values {
    size_t struct_size;
    const char *column;
    const gnnc_array *values;    /* [count, ..]; of CSR [nnz], NULL = all 1; of SPLIT [K, count] */
    const gnnc_array *ptr, *idx; /* of CSR: [count + 1], [nnz]; else NULL */
    const char *const *names; /* of CAT and CLASS: what the codes here mean, [n_categories] texts;
                               * NULL = what they mean in the column */
    int64_t n_categories;     /* of `names` */
    const gnnc_encoder *encoder; /* that made the values, as of gnnc_graph_set_encoded; NULL where
                                  * nothing was fitted to the column's */
} gnnc_values;
/* Rows for one table of nodes or edges. */
typedef struct gnnc_rows {
    size_t struct_size;
    const char *table;
    int64_t count;
    const gnnc_array *src, *dst; /* [count] of edges: row numbers, also of nodes in the log; of
                                  * nodes NULL */
    const gnnc_values *columns;  /* [n_columns], all of the table's, each once; those of kind CLASS,
                                  * MULTILABEL and SPLIT may be left out: no label, in no split */
    int32_t n_columns;
    int64_t first;   /* written: the number of the first of them; -1 after a failure */
    char error[512]; /* written: why it failed, in one line; "" else */
} gnnc_rows;
/* All of the rows are in the log, or, after a failure, none.  The arrays are read during the call
 * alone, borrowed or not, and their `done` was called when it returns; the graph's allocator is
 * called in this thread.  Nodes of many graphs (gnnc_graph_divide), and graphs, are not appended
 * to; a node type whose rows are named by a file of its directory has no names from then on.
 * Returns GNNC_E_STATE (the graph is not committed), GNNC_E_MISSING (no such table or column; a
 * column is lacking), GNNC_E_DTYPE, _SHAPE, _RANGE (an end is no node, a code or name no category
 * of the column, more than 2^31 - 1 rows), _VALUE, _FORMAT, _NOMEM: `error` has table, column and
 * row, counted from 0 in this call; GNNC_E_ARG (values that do not say how they were made, or were
 * made otherwise than the column's; of another struct_size nothing is read, and none of the columns
 * behind one of another struct_size). */
gnnc_status gnnc_graph_append(gnnc_graph *g, gnnc_rows *rows);

/* What is in it, while it is built (by the thread that builds), or in its newest snapshot (by any):
 * tables of nodes, then of edges, then of graphs, and the columns of each. */
typedef enum gnnc_table { GNNC_NODES, GNNC_EDGES, GNNC_GRAPHS } gnnc_table;
typedef struct gnnc_table_info {
    size_t struct_size;
    const char *name; /* names are the graph's; until commit, valid until the next building call */
    int64_t count;    /* rows */
    int32_t kind;     /* a gnnc_table */
    int32_t n_columns;
    const char *src_type, *dst_type; /* of edges; else NULL */
    const char *graphs;              /* of nodes that are divided into graphs; else NULL */
} gnnc_table_info;
typedef struct gnnc_column_info {
    size_t struct_size;
    const char *name;
    int32_t kind; /* a gnnc_kind */
    int32_t rank;
    int64_t shape[GNNC_MAX_RANK]; /* [rows, ..] */
    int64_t n_categories;         /* of CAT and CLASS */
    const char *const *names;     /* [n_categories]; NULL = they have none */
    int64_t n_entries;            /* stored, of CSR */
    int64_t n_splits;             /* of SPLIT */
} gnnc_column_info;
int gnnc_graph_n_tables(const gnnc_graph *g);
/* GNNC_E_RANGE: no such table, no such column; GNNC_E_ARG: struct_size. */
gnnc_status gnnc_graph_table_info(const gnnc_graph *g, int table, gnnc_table_info *out);
gnnc_status gnnc_graph_column_info(const gnnc_graph *g, int table, int column,
                                   gnnc_column_info *out);

/* ---- a trainer ------------------------------------------------------------- */
/* A compiled model: `churn_program` of what `gnnc --emit=lib -o churn` makes. */
typedef struct gnnc_program gnnc_program;
typedef struct gnnc_trainer gnnc_trainer;

/* Makes a trainer for `model`, which must outlive it.  *out is NULL after a failure.
 * Returns GNNC_E_ARG (model from another version of the compiler), GNNC_E_NOMEM. */
gnnc_status gnnc_trainer_create(gnnc_trainer **out, const gnnc_program *model);
/* Frees everything; pointers that the trainer gave become invalid.  NULL is allowed. */
void gnnc_trainer_destroy(gnnc_trainer *t);
/* What went wrong in the last call that failed: one line, never NULL; valid until the next call. */
const char *gnnc_trainer_error(const gnnc_trainer *t);

/* ---- options: after create, before load; "epochs" also later ------------------ */
/* The one table of options: setters, list and the command line's --help are made of it.
 *
 *     INT(name, default, least, most, help)   REAL(name, default, least, help)   TEXT(.., help)
 *
 * Of an option from 0 to 1 the help says what 1 does.  Defaults that are the model's (epochs, lr,
 * weight_decay, batch, fanout, tf32) stand here as 0 or "".  Results depend on epochs, eval_every,
 * seed, eval_every_steps, eval_rows, split, batch, fanout, lr, weight_decay, seeds_by_part,
 * stale_halos; their last bits may on tf32, amx, variant, device, group_products, reduce_fast; on
 * nothing else.
 */
#define GNNC_OPTION_MAP(INT, REAL, TEXT)                                                           \
    INT(epochs, 0, 0, INT64_MAX / 2, "epochs in all")                                              \
    INT(eval_every, 1, 1, INT64_MAX, "evaluate after every N epochs")                              \
    INT(eval_every_steps, 0, 0, INT64_MAX,                                                         \
        "also evaluate after every N steps within an epoch, 0 = never")                            \
    INT(eval_rows, 0, 0, INT32_MAX, "evaluate at most N rows of each split, 0 = all")              \
    INT(seed, 0, INT64_MIN, INT64_MAX, "the random seed: all random numbers follow from it")       \
    REAL(lr, 0, 0, "initial learning rate")                                                        \
    REAL(weight_decay, 0, 0, "weight decay, if the recipe's is not 0")                             \
    INT(batch, 0, 1, INT32_MAX, "mini-batches: rows that a step learns from")                      \
    TEXT(fanout, "", "mini-batches: neighbours drawn in each hop, 15,10; -1 = all of them")        \
    INT(split, 0, 0, INT32_MAX, "which of the data's splits, from 0")                              \
    TEXT(device, "auto", "where to run: auto, cpu, cuda, cuda:N")                                  \
    TEXT(at, "", "for a model of the future: predict all rows at this date")                       \
    INT(threads, 0, 0, 4096, "number of threads, 0 = one per core; results do not depend on it")   \
    INT(workers, -1, -1, 64,                                                                       \
        "threads that make batches ahead of the steps, -1 = the model's; results do not depend "   \
        "on it")                                                                                   \
    INT(serial_ns, -1, -1, INT64_MAX,                                                              \
        "run a step on one thread if it is estimated to take fewer nanoseconds; -1 = as tuned, "   \
        "else 10000")                                                                              \
    INT(tuned, 1, 0, 1, "use what tune kept beside the data")                                      \
    INT(variant, -1, -1, 63,                                                                       \
        "which of the program's variants, -1 = by the data's sizes, or as tuned; info lists them") \
    INT(max_memory, 0, 0, INT64_MAX, "bytes: refuse to load above it, 0 = what is free")           \
    INT(spill, 0, 0, 1, "working memory that does not fit goes to a file in TMPDIR, or /var/tmp")  \
    INT(map, 0, 0, 1, "large columns of numbers stay in their files, mapped")                      \
    INT(cache, 0, 0, INT64_MAX, "keep index arrays beside data of at least N edges, 0 = never")    \
    INT(labels, 0, 0, 1, "refuse data without the columns that only training and evaluation read") \
    INT(other_data, 0, 0, 1, "resume although the data are not those of the checkpoint")           \
    INT(signals, 0, 0, 1, "leave an endless loop of the model when a blocked signal waits")        \
    INT(check_times, 0, 0, 1, "mini-batches with time: fail if a row newer than its seed is read") \
    INT(amx, 1, 0, 1, "compute matrix products with AMX, if the CPU has it")                       \
    INT(reduce_fast, 0, 0, 1,                                                                      \
        "processes that share rows: sums by a library; bits depend on how many they are")          \
    INT(stale_halos, 0, 0, INT32_MAX,                                                              \
        "processes that share rows: N training steps go on with rows of others of an earlier one") \
    INT(seeds_by_part, 0, 0, 1,                                                                    \
        "data in parts: the rows that a batch learns from are of one part")                        \
    INT(pull_rows, 0, 0, 1,                                                                        \
        "processes that share steps: features of other processes' parts come from these")          \
    INT(pull_cache, 0, 0, INT64_MAX,                                                               \
        "with pull_rows: bytes for rows of others that stay, those with most edges")               \
    INT(tf32, 0, 0, 1, "on a GPU: round the factors of matrix products to TF32")                   \
    INT(buckets, 1, 0, 1, "on a GPU: round sizes of batches up, so that a step is one launch")     \
    INT(group_products, 1, 0, 1,                                                                   \
        "on a GPU: several matrix products in one call where that is faster")                      \
    INT(device_features, 1, 0, 2,                                                                  \
        "on a GPU: 1 = it gathers a batch's rows of columns, 2 = out of the host's memory")        \
    INT(feature_cache, 0, 0, INT64_MAX,                                                            \
        "with device_features 2: bytes on the GPU for rows that stay there, those with most "      \
        "edges")                                                                                   \
    INT(device_sampler, 0, 0, 1, "on a GPU: it samples neighbours")                                \
    INT(check_sampler, 0, 0, 1, "the host repeats and compares what a GPU samples")                \
    INT(device_sums, 1, 0, 1,                                                                      \
        "processes on GPUs: these send each other gradients and add them, if there is NCCL")       \
    INT(device_maps, 1, 0, 1, "on a GPU: it builds index arrays when data are loaded")             \
    INT(check_maps, 0, 0, 1, "the host repeats and compares what a GPU builds")
/* More of some:
 *   device       auto: cuda where the model was compiled for it and a GPU can be used, else cpu.
 *                GNNC_E_MISSING: not compiled for that
 *   at           2024-01-31, 2024-01-31 10:00:00, or seconds since 1970; "": as the data say.  In
 *                place of the rows that the model learned of (each an entity at a time, as gnnc
 *                import --predict makes them) there is one for each entity whose row is there by
 *                then, in their order, and without a label.  GNNC_E_RANGE: no date; load is
 *                GNNC_E_ARG where the model's rows are others
 *   fanout       a number for each hop that the model was compiled with, the seeds' own first, for
 *                all relations along which it draws any in that hop; "": the model's own.
 *                GNNC_E_RANGE: no such list; GNNC_E_MISSING: the model draws no neighbours
 *   map          the mapped files must not shrink or change while the trainer lives: the process
 *                gets SIGBUS (the library installs no handler), or other values.  What indexes is
 *                always read.  gnnc_trainer_main sets 1
 *   eval_every   an epoch whose number is no multiple of it has no metrics of splits and is not
 *                kept as the best one; a plateau and the end of patience are not looked for
 *   eval_every_steps  behind steps, counted from the first one, whose number is a multiple of it
 *                there are metrics, too, unless the step ends an epoch, and what is best is kept
 *                (gnnc_trainer_kept_step); plateau and patience count epochs alone
 *   eval_rows    drawn by the data alone: the same rows of each split at every evaluation of every
 *                run.  GNNC_E_MISSING: the model evaluates the whole graph at once
 *   cache        of a directory, on the cpu: files *.kept in it (docs/runtime.md), mapped as `map`
 *                says; what cannot be written is not.  gnnc_trainer_main sets 2^18
 *   spill        that of batches stays in memory, a device's stays there; without it GNNC_E_LIMIT
 *   labels       without it training and evaluating fail with GNNC_E_MISSING, and the rest works
 *   signals      SIGINT, SIGTERM, SIGHUP or SIGPIPE, as after gnnc_trainer_stop; the host takes
 *                them
 *   check_times  a step that reads such a row fails with GNNC_E_ASSERT, and so does load where a
 *                table has a time of which the model says nothing
 *   stale_halos  an approximation: of N + 1 training steps that follow each other the first alone
 *                receives the rows that others own, of layers and of gradients, and the others read
 *                these again; what is learned depends on how many processes share the rows.
 *                GNNC_E_STATE: processes that share steps
 *   seeds_by_part of mini-batches: parts take turns, and a process makes the batches of its own.
 *                GNNC_E_STATE: data in no parts, or in fewer than processes; seeds that are links,
 *                or clusters
 *   pull_rows    of data in parts, on the cpu: a process reads and checks its parts' rows alone of
 *                the float columns that batches read, and of cat and csr ones that nothing else
 *                reads; all evaluate, predict and embed together.  GNNC_E_STATE: fewer parts than
 *                processes, no `exchange`, a model that scores links
 *   pull_cache   each process may be told another number
 *   device_features  2: columns of several numbers a row take as much page-locked memory; the bits
 *                are those of 0 and 1.  GNNC_E_LIMIT, GNNC_E_DEVICE: there is none
 *   amx          asked for by gnnc_trainer_load (arch_prctl(2), ARCH_REQ_XCOMP_PERM)
 *   check_*      a difference is GNNC_E_ASSERT; what a GPU does not draw or build (docs/cuda.md)
 *                the host does, with a message */

/* Numbers that the model calls settable, or gnnc --settable does, are options, too.
 * Return GNNC_E_MISSING (no such option of that type, or not of this model), GNNC_E_RANGE,
 * GNNC_E_STATE (after load). */
gnnc_status gnnc_trainer_set_int(gnnc_trainer *t, const char *option, int64_t value);
gnnc_status gnnc_trainer_set_real(gnnc_trainer *t, const char *option, double value);
gnnc_status gnnc_trainer_set_text(gnnc_trainer *t, const char *option, const char *value);

typedef enum gnnc_option_type {
    GNNC_OPTION_INT,
    GNNC_OPTION_REAL,
    GNNC_OPTION_TEXT
} gnnc_option_type;
/* An option as it is now; fields of other types are 0. */
typedef struct gnnc_option {
    size_t struct_size;
    const char *name, *help; /* valid for ever; help: one line */
    gnnc_option_type type;
    int settable; /* of this model, and now */
    int is_set;   /* by the host */
    int64_t int_value, int_default, int_least, int_most;
    double real_value, real_default, real_least, real_most;
    const char *text_value, *text_default; /* text_value: valid until the next set_text */
} gnnc_option;
int gnnc_trainer_n_options(const gnnc_trainer *t);
/* GNNC_E_RANGE: no option i.  Behind those of GNNC_OPTION_MAP are the model's own, which a file of
 * weights records; given before load it sets those that the host has not.  After load threads,
 * serial_ns and variant are those in use; resume sets epochs, seed, lr and weight_decay, where the
 * host has not. */
gnnc_status gnnc_trainer_option(gnnc_trainer *t, int i, gnnc_option *out);

const char *gnnc_trainer_device(const gnnc_trainer *t); /* "cpu" or "cuda"; known after load */
/* Steps return before a GPU has done them: waits for it.  On the cpu there is nothing to wait for.
 * GNNC_E_DEVICE: what was waited for has failed. */
gnnc_status gnnc_trainer_wait(gnnc_trainer *t);
/* Work of the calls from here on is ordered with a CUDA stream of the host's, of the same GPU: it
 * comes after what is in `stream` when a call begins, and what is put there when the call has
 * returned comes after it.  The host waits no more than without one, and nothing is put into the
 * stream but what makes it wait; a graph must not be recorded from it while a call runs.  Before
 * load or later, and as often as wanted; the stream lives until the next call is done after
 * another one was set.
 *   stream  a cudaStream_t, NULL being the default stream; GNNC_NO_STREAM, at first: none
 * On the cpu there is nothing to order.  What is no stream of the GPU the calls say that use it
 * (GNNC_E_DEVICE). */
#define GNNC_NO_STREAM ((void *)(intptr_t)-1)
gnnc_status gnnc_trainer_set_stream(gnnc_trainer *t, void *stream);
int64_t gnnc_trainer_device_bytes(const gnnc_trainer *t); /* the trainer's in a GPU's memory */

/* Receives what the model prints and what the library warns of, one line per call without
 * a newline, in the thread of the call that caused it.  NULL (default): dropped. */
typedef void gnnc_message_fn(void *user, const char *text);
gnnc_status gnnc_trainer_set_message(gnnc_trainer *t, gnnc_message_fn *fn, void *user);

/* gnnc_trainer_create with the host's allocator; files being written and the libraries underneath
 * (BLAS, OpenMP) allocate by themselves.  Returns GNNC_E_ARG, GNNC_E_NOMEM. */
gnnc_status gnnc_trainer_create_with(gnnc_trainer **out, const gnnc_program *model,
                                     gnnc_alloc_fn *alloc, gnnc_release_fn *release, void *user);

/* ---- several processes --------------------------------------------------------- */
/* They share the steps of an update, or the rows of data in parts (gnnc_program_info.shares_rows),
 * as those of gnnc --mpi do (docs/distributed.md), by whatever
 * the host sends bytes with: each has a trainer of the same program with the same data and options,
 * and all do the same calls that train, in the same order; their parameters are the same to the
 * bit.  Only one need evaluate, save and predict; where they share rows all evaluate, predict and
 * embed, and the first saves: it alone has the optimizer's state of all rows.  Where they pull rows
 * (option pull_rows) all evaluate, predict and embed, too, and, within an update, save.
 *
 * Sends: n_bytes at `bytes` (also more than 2^31) of process `from` are written there in all
 * others, and the call returns when they may be used again.  All processes do it in the same order.
 * In the thread of the call that loads, trains or saves; it must not call the trainer.  What is not
 * GNNC_OK the trainer's call returns.  Processes that share steps may then make that call again,
 * behind load, if it failed in all of them.  How long one waits for another is the host's to
 * decide, and once it gave up in one alone none of them trains on. */
typedef gnnc_status gnnc_broadcast_fn(void *user, void *bytes, size_t n_bytes, int from);
/* Point to point: to process r go n_out[r] bytes at out[r], and from it come n_in[r] bytes, to
 * in[r]; nothing goes to the process itself, and what has no bytes is no message.  All processes
 * call it in the same order, with sizes that fit each other, and it returns when what was sent may
 * be changed and what comes is there.  Else as gnnc_broadcast_fn. */
typedef gnnc_status gnnc_exchange_fn(void *user, const void *const *out, const size_t *n_out,
                                     void *const *in, const size_t *n_in);
/* sums[0..n-1] of all processes are added up, in each of them to the same bits.  All call it in the
 * same order; else as gnnc_broadcast_fn. */
typedef gnnc_status gnnc_all_reduce_fn(void *user, float *sums, size_t n);
typedef struct gnnc_processes {
    size_t struct_size;
    int rank, n;                  /* this process, from 0; how many there are */
    gnnc_broadcast_fn *broadcast; /* may be NULL where n is 1 */
    void *user;                   /* the host's, until the trainer is destroyed */
    gnnc_exchange_fn *exchange;   /* NULL: they neither share nor pull rows */
    /* Not 0: `exchange` may also be called in a thread of the trainer's own, while the trainer
     * computes what needs nothing of it, and with option pull_rows between two calls that train;
     * never two calls of `broadcast` and `exchange` at once. */
    int exchange_in_thread;
    gnnc_all_reduce_fn *all_reduce; /* NULL: they have none (option reduce_fast) */
    /* Of the processes on this one's machine: its number, from 0, and how many they are; 0: not
     * told.  Where several train and "device" names no GPU, they take the machine's GPUs by turns,
     * in the order of these numbers. */
    int local_rank, n_local;
    /* Seconds that one on a GPU waits for what the others' GPUs send to it, at most; 0: 1800.  For
     * all else the functions above decide. */
    int64_t patience_s;
} gnnc_processes;
/* Before load; *p is copied.  n = 1 is no other than several: a program that was never told of
 * processes adds gradients in another order, which changes the last bits.
 * Returns GNNC_E_ARG (its struct_size; rank, n, local_rank, n_local, patience_s or broadcast),
 * GNNC_E_STATE (after load).  GNNC_E_STATE, too, is what load returns where several cannot train
 * the model, with the reason, or where the first cannot run it, and what the first step returns
 * where a process has other data, options or another kind of processor or GPU than the first. */
gnnc_status gnnc_trainer_set_processes(gnnc_trainer *t, const gnnc_processes *p);
/* What one process asks of all, for all to do it behind the same step: `asked` is a number, 0 =
 * nothing.  Returns what one of them has asked, once, in each of them behind the same update, the
 * next or the one after it; else 0.  All call it behind the same steps: behind each, also in a
 * gnnc_progress_fn, or between epochs.  Of several that ask at once one is heard; who makes no
 * step but the updates' last, as some do where n is k or more of `accumulate k`, is not.  Alone:
 * `asked`. */
int gnnc_trainer_agree(gnnc_trainer *t, int asked);

/* ---- data -------------------------------------------------------------------- */
/* Opens a data directory, checks it against the model, allocates everything, runs what
 * depends on the data alone and initialises the parameters.  Once per trainer: after a failure
 * only destroy is left.
 * Returns GNNC_E_MISSING, _DTYPE, _SHAPE, _RANGE, _VALUE, _FORMAT, _IO for data that do not
 * fit, GNNC_E_LIMIT when memory would not suffice (nothing was allocated for the run yet),
 * GNNC_E_STATE: it was called before. */
gnnc_status gnnc_trainer_load(gnnc_trainer *t, const char *directory);
/* The same with a committed graph, of which the trainer keeps a reference until it is destroyed:
 * what it converts or changes for its model is its own, so that several trainers may load and use
 * one graph at the same time.  The graph's memory is not in gnnc_trainer_memory.
 * GNNC_E_STATE, too: the graph is not committed; GNNC_E_ARG: a column lies in another GPU's memory
 * than the one where this runs. */
gnnc_status gnnc_trainer_load_graph(gnnc_trainer *t, gnnc_graph *graph);

/* ---- training ------------------------------------------------------------------ */
/* Told after each step of gnnc_trainer_epoch and gnnc_trainer_step, in the thread of that call. Not
 * 0 = cancel: the call returns GNNC_E_STOPPED with the step done, and that is where training
 * stands: it can be saved, and goes on with the next call.  It must not call the trainer, except
 * gnnc_trainer_stop, gnnc_trainer_agree and what reads metrics.  On a GPU it is told of steps that
 * are queued.  NULL (default): nobody is told, at no cost. */
typedef struct gnnc_progress {
    size_t struct_size; /* the library's */
    int64_t steps;      /* done in all, with those of a checkpoint that was resumed */
    int64_t epochs_done, epochs_total;
    int64_t steps_done, steps_left; /* of the epoch under way, after this step */
    double loss;    /* of this step's rows, before it; NaN on a GPU, where it is not read back,
                     * and where another process makes the step, but the
                     * last of an update and one with an evaluation */
    double seconds; /* since the call began */
    int evaluated;  /* metrics are those behind this step (eval_every_steps) */
} gnnc_progress;
typedef int gnnc_progress_fn(void *user, const gnnc_progress *now);
gnnc_status gnnc_trainer_set_progress(gnnc_trainer *t, gnnc_progress_fn *fn, void *user);

/* One optimisation step, on the whole graph or on the next mini-batch, nothing else: no metric is
 * read.  GNNC_E_MISSING: the model has no recipe, the data have no labels, or no row is in the
 * train split, or in that by which the recipe keeps an epoch.  GNNC_E_RANGE: a label is of a class
 * that the model does not know.  GNNC_E_VALUE: there are fewer links to learn from than a batch
 * wants. GNNC_E_STOPPED: cancelled, behind the step; or as of gnnc_trainer_stop. */
gnnc_status gnnc_trainer_step(gnnc_trainer *t);
/* Steps that are left of the epoch under way; of a whole one between epochs; 0 where only its
 * evaluation is left, which failed. */
int64_t gnnc_trainer_steps_left(const gnnc_trainer *t);
/* Steps that are done of the epoch under way; 0 between epochs. */
int64_t gnnc_trainer_steps_done(const gnnc_trainer *t);
/* One epoch, or what is left of it: its steps, the metrics of every split, the schedule, best-model
 * keeping. GNNC_E_VALUE: the loss became NaN or infinite; the parameters are those after that step.
 * GNNC_E_STATE: the kept parameters are in place.  GNNC_E_MISSING, GNNC_E_RANGE, GNNC_E_STOPPED: as
 * of step; the next call does what is left of the epoch. */
gnnc_status gnnc_trainer_epoch(gnnc_trainer *t);
/* All epochs are done, early stopping struck, or stop was asked for. */
int gnnc_trainer_done(const gnnc_trainer *t);
/* Asks for an end after the epoch under way; async-signal-safe.  A loop of the model that does not
 * end within a second after that is left: the step fails with GNNC_E_STOPPED, half done. */
void gnnc_trainer_stop(gnnc_trainer *t);
int64_t gnnc_trainer_epochs_done(const gnnc_trainer *t);
int64_t gnnc_trainer_epochs_total(const gnnc_trainer *t); /* as set, resumed or the model's */
/* Puts the kept parameters (best epoch; the last where the model says so) in place and
 * evaluates them, with evaluate's errors.  Training can go on only after a resume.  *epoch
 * (may be NULL): the kept epoch, counted from 1; one more than are done where parameters are kept
 * as a step of the epoch under way left them (gnnc_trainer_kept_step); 0 = none yet. */
gnnc_status gnnc_trainer_keep_best(gnnc_trainer *t, int64_t *epoch);
/* Of the kept epoch: so many of its steps were done when it was kept; 0 = all, or, of the epoch
 * under way where the last parameters are kept, gnnc_trainer_steps_done. */
int64_t gnnc_trainer_kept_step(const gnnc_trainer *t);

/* Computes loss and metrics of every split with the present parameters.  GNNC_E_MISSING: the model
 * has no recipe, or the data no labels; GNNC_E_RANGE: a label is of a class that it does not know.
 */
gnnc_status gnnc_trainer_evaluate(gnnc_trainer *t);
/* Computes loss and metrics of every split from `predictions`, one for each row in the layout of
 * gnnc_trainer_predict, as the mean of several models' predictions.  Only for a model with `time`,
 * on the CPU; else GNNC_E_STATE. */
gnnc_status gnnc_trainer_evaluate_predictions(gnnc_trainer *t, const float *predictions);
/* Scalars by name: "loss" (of the last step), "lr", "loss.val", "accuracy.test", ..: as of the
 * last epoch or evaluate.  GNNC_E_MISSING: no such metric, nothing was computed yet, or its split
 * has no row. */
gnnc_status gnnc_trainer_metric(gnnc_trainer *t, const char *name, double *value);
/* The i-th of them; texts are the trainer's.  GNNC_E_RANGE: no such. */
typedef struct gnnc_metric_info {
    size_t struct_size;
    const char *name;  /* "accuracy.test" */
    const char *of;    /* "accuracy": without the split */
    const char *split; /* "train", "val", "test"; "" = of none: "loss", "lr", what the model logs */
    int is_logged;     /* by the model's `log` */
    int known;
    double value; /* NaN where it is not known */
} gnnc_metric_info;
int gnnc_trainer_n_metrics(const gnnc_trainer *t);
gnnc_status gnnc_trainer_metric_info(gnnc_trainer *t, int i, gnnc_metric_info *out);

/* What is reached without learning, by one of the model's metrics, as the data have it beside the
 * column that is learned (gnnc import --predict): of the rows of the first split, so that there are
 * none where another one is chosen.  Texts are those of the data: until the trainer goes. */
typedef struct gnnc_baseline {
    size_t struct_size;
    const char *name;   /* "mean of its customers" */
    const char *metric; /* "roc_auc" */
    double val, test;   /* NaN where it cannot be told */
} gnnc_baseline;
int gnnc_trainer_n_baselines(const gnnc_trainer *t); /* 0 before data are loaded */
/* The i-th.  GNNC_E_STATE: no data; GNNC_E_RANGE: no such. */
gnnc_status gnnc_trainer_baseline(gnnc_trainer *t, int i, gnnc_baseline *out);

/* The model's result for every row of its space, with the present parameters.
 *   data [dim[0], .., dim[rank - 1]] row-major, the trainer's, valid until its next call
 * GNNC_E_MISSING: the model predicts nothing. */
gnnc_status gnnc_trainer_predict(gnnc_trainer *t, const float **data, int *rank,
                                 int64_t dim[GNNC_MAX_RANK]);
/* A hidden layer by its name in the model's body (`h = ..`), in inference mode; n_layers and
 * layer_name list them.  `data` as of predict.  GNNC_E_MISSING: no such layer. */
gnnc_status gnnc_trainer_embed(gnnc_trainer *t, const char *layer, const float **data, int *rank,
                               int64_t dim[GNNC_MAX_RANK]);
int gnnc_trainer_n_layers(const gnnc_trainer *t);
const char *gnnc_trainer_layer_name(const gnnc_trainer *t, int i);

/* The same of some rows, as gnnc_session_predict has it.  Where rows are predicted by batches, of a
 * model by time, no others are computed; else all are, and a session computes fewer.
 *   id   [n] numbers of rows, in any order, also the same twice; NULL: the first n
 *   out  [n, dim[1], ..] the caller's
 * Returns GNNC_E_RANGE (no such row), GNNC_E_ARG, and what gnnc_trainer_predict returns. */
gnnc_status gnnc_trainer_predict_rows(gnnc_trainer *t, int64_t n, const int64_t *id, float *out);
/* Writes such values as an array (.npy), f32 [dim[0], .., dim[rank - 1]].  The file is replaced as
 * a whole or not at all.  Returns GNNC_E_IO, GNNC_E_ARG, GNNC_E_NOMEM. */
gnnc_status gnnc_trainer_save_values(gnnc_trainer *t, const char *path, const float *data, int rank,
                                     const int64_t dim[GNNC_MAX_RANK]);

/* What predict and embed give as a DLPack tensor (gnnc_dlpack.h), without a copy: f32, row by row,
 * READ_ONLY, in the memory of the device where the trainer runs (kDLCUDA and which GPU, or kDLCPU);
 * rows that are predicted by batches are the host's.
 *   *out  the caller's until he calls its deleter, once, from any thread; NULL after a failure.
 *         What it shows lasts to the trainer's next call that computes.  Its memory lasts until the
 *         deleter is called: gnnc_trainer_destroy only says that no more calls come, and the
 *         last deleter frees the trainer, in its thread.
 * It can be read in the stream of gnnc_trainer_set_stream, where there is one, and the host waits
 * for nothing; where there is none the call returns when its values are there.
 * Returns what predict and embed return. */
gnnc_status gnnc_trainer_predict_dlpack(gnnc_trainer *t, struct DLManagedTensorVersioned **out);
gnnc_status gnnc_trainer_embed_dlpack(gnnc_trainer *t, const char *layer,
                                      struct DLManagedTensorVersioned **out);

/* ---- parameters ------------------------------------------------------------------ */
/* Names and shapes are PyTorch Geometric's: "conv1.lin.weight" [out, in].  Parameters first,
 * then state (running means); optimizer state is not listed.  After load.  GNNC_E_RANGE: no
 * parameter i. */
int gnnc_trainer_n_parameters(const gnnc_trainer *t);
gnnc_status gnnc_trainer_parameter_info(gnnc_trainer *t, int i, const char **name, int *rank,
                                        int64_t dim[GNNC_MAX_RANK]);
/* Copy out and in; n must be the number of elements (GNNC_E_SHAPE).  GNNC_E_MISSING: no such
 * parameter; GNNC_E_DTYPE: it is not f32. */
gnnc_status gnnc_trainer_get_parameter(gnnc_trainer *t, const char *name, float *data, size_t n);
gnnc_status gnnc_trainer_set_parameter(gnnc_trainer *t, const char *name, const float *data,
                                       size_t n);
/* A parameter as a tensor, as of gnnc_trainer_predict_dlpack: what it shows changes with training,
 * in the order of the streams.  Its strides may be those of a transposed matrix.
 * Returns GNNC_E_MISSING, GNNC_E_DTYPE. */
gnnc_status gnnc_trainer_parameter_dlpack(gnnc_trainer *t, const char *name,
                                          struct DLManagedTensorVersioned **out);

/* ---- files and memory ---------------------------------------------------------------- */
/* What `_to` writes and `_from` reads is what the file would hold, byte for byte. */

/* Takes n_bytes, which n_left more follow in later calls: n_bytes + n_left of the first call is the
 * size of all.  Not 0 = it failed: the call that writes returns GNNC_E_IO, and what was taken is to
 * be dropped.  In the thread of that call; it must not call the trainer. */
typedef int gnnc_write_fn(void *user, const void *data, size_t n_bytes, size_t n_left);
/* Writes everything that training needs to go on to the same bits, as safetensors with
 * PyTorch Geometric's names.  The file is replaced as a whole or not at all.
 * Returns GNNC_E_IO, GNNC_E_NOMEM, GNNC_E_STATE (before load; the kept parameters are in place;
 * what an epoch's steps leave did not come, which the next gnnc_trainer_epoch asks for again; of
 * processes that share rows, another than the first, where it lacks rows). */
gnnc_status gnnc_trainer_save(gnnc_trainer *t, const char *path);
gnnc_status gnnc_trainer_save_to(gnnc_trainer *t, gnnc_write_fn *write, void *user);
/* The parameters and states alone, for other programs.  Returns GNNC_E_IO, GNNC_E_NOMEM. */
gnnc_status gnnc_trainer_save_weights(gnnc_trainer *t, const char *path);
gnnc_status gnnc_trainer_save_weights_to(gnnc_trainer *t, gnnc_write_fn *write, void *user);
/* Goes on where `save` was called.  The model must be the one that wrote it
 * (GNNC_E_ARG otherwise), on the same data (unless "other_data" is set: what it reads is compared
 * by a hash of sizes and samples) and the same split; a seed that was set must be its seed.  On
 * failure nothing changed.  Before load as of load_weights.  Returns, too, GNNC_E_IO;
 * GNNC_E_FORMAT, _MISSING, _SHAPE, _DTYPE, _RANGE for a file that no trainer of this model wrote.
 *   data  [n_bytes] read in the call alone; any alignment */
gnnc_status gnnc_trainer_resume(gnnc_trainer *t, const char *path);
gnnc_status gnnc_trainer_resume_from(gnnc_trainer *t, const void *data, size_t n_bytes);
/* Parameters and states from any safetensors file with PyTorch Geometric's names; shapes may
 * differ in dimensions of 1 and in how dimensions are merged.  GNNC_E_MISSING lists names
 * that the file lacks, unknown ones are reported as messages; GNNC_E_SHAPE, _DTYPE, _FORMAT, _IO.
 * On failure nothing changed.
 *
 * Called before load, with one file, the data are read by it: their categories and classes become
 * the model's of the same names (GNNC_E_RANGE: a row has a name that the file does not), and
 * dimensions that they do not tell have the weights' sizes.  After load, names that differ are
 * GNNC_E_ARG. */
gnnc_status gnnc_trainer_load_weights(gnnc_trainer *t, const char *path);
gnnc_status gnnc_trainer_load_weights_from(gnnc_trainer *t, const void *data, size_t n_bytes);

/* ---- insight -------------------------------------------------------------------------- */
typedef struct gnnc_memory {
    size_t struct_size;
    size_t data_bytes;      /* columns used in mapped files (option "map") */
    size_t index_bytes;     /* index arrays, converted columns, tables: allocated while binding */
    size_t parameter_bytes; /* parameters, states, optimizer state, kept copy */
    size_t saved_bytes;     /* computed at load; outputs and inputs */
    size_t arena_bytes;     /* working memory of a step, packed by lifetime */
    size_t unpacked_bytes;  /* what that would be without sharing */
    size_t library_bytes;   /* working memory of library calls */
    size_t loading_bytes;   /* more than all of this, while index arrays are built */
    size_t all_bytes;       /* the peak: everything here but unpacked_bytes and file_bytes */
    size_t file_bytes;      /* with option "spill": of arena_bytes this much is in a file */
    size_t batch_bytes;     /* estimated: mini-batches, of training and evaluation */
} gnnc_memory;
/* Needs of this model on these data.  After load, or after GNNC_E_LIMIT; else GNNC_E_STATE. */
gnnc_status gnnc_trainer_memory(gnnc_trainer *t, gnnc_memory *out);

typedef struct gnnc_counters {
    size_t struct_size;
    int64_t steps;           /* train phases run */
    int64_t allocations;     /* by the trainer, since create */
    int64_t allocated_bytes; /* of these */
    int64_t launches;        /* kernels */
    int64_t library_calls;   /* matrix products, ranks */
    int64_t read_backs;      /* times results were read on the host */
    int64_t live_bytes;      /* allocated and not returned: what only loading needs goes back */
    int64_t peak_bytes;      /* the most that live_bytes was */
    int64_t eval_ns;         /* gnnc_trainer_epoch: the time its evaluations took */
    int64_t sent_bytes;      /* rows and sums, to other processes that share rows, or pull them */
    int64_t messages;        /* .. so often */
    int64_t beside_bytes;    /* of these bytes: while rows, or a step, were computed */
    int64_t pulled_rows;     /* that came for batches (option pull_rows), each once for a batch */
} gnnc_counters;
gnnc_status gnnc_trainer_counters(gnnc_trainer *t, gnnc_counters *out);

/* What n processes that share rows send in one run of a phase, all of them together: what their
 * counters count. */
typedef struct gnnc_traffic {
    size_t struct_size;
    int64_t bytes, messages;
    /* Of the bytes: rows that a process reads and another owns, each once, which is the least that
     * can be; rows that all get, whoever reads them; sums over rows. */
    int64_t halo_bytes, whole_bytes, sum_bytes;
    int64_t halo_rows;
    /* The least for the same steps: halo rows; rows that all need; 2 (n - 1) times each sum. */
    int64_t least_bytes;
} gnnc_traffic;
/* n: as many as the data have parts at most, whatever this trainer was told of; nothing is sent.
 * GNNC_E_STATE: before load, or the program shares no rows; GNNC_E_MISSING: no such phase;
 * GNNC_E_RANGE: n. */
gnnc_status gnnc_trainer_traffic(gnnc_trainer *t, const char *phase, int n, gnnc_traffic *out);
/* .. of step i alone, as gnnc_trainer_step_info numbers them: zeros where it sends nothing. */
gnnc_status gnnc_trainer_step_traffic(gnnc_trainer *t, int i, int n, gnnc_traffic *out);

/* Steps of the program: kernels, library calls, copies, host effects, all phases in order. */
typedef struct gnnc_step_info {
    size_t struct_size;
    const char *phase, *name; /* "train", "gcn_train_h_17"; "gemm", "rank", .. */
    int is_kernel;
    const char *note, *lines; /* "h = segment m", "models/layers/gcn.gnn:33" */
    /* Of one run on these data, as docs/passes.md counts them; 0 before load. */
    int64_t read_bytes, gathered_bytes, written_bytes, flops;
    int64_t calls; /* since gnnc_trainer_profile */
    double seconds;
    const char *site;       /* the user's own lines among `lines`, or his calls that led there, and
                             * whose those are: "gcn.gnn:13 (in conv1)" */
    int64_t batch, m, n, k; /* of a matrix product, [m, k] by [k, n]; 0 else */
    int64_t runs;           /* of the phase; of its first one, which finds nothing in caches: */
    int64_t first_calls;
    double first_seconds;
    int foreseen; /* no batch has been made yet: bytes, flops and sizes are of an estimated one */
} gnnc_step_info;
int gnnc_trainer_n_steps(const gnnc_trainer *t);
/* Names are valid as long as the model.  GNNC_E_RANGE: no step i. */
gnnc_status gnnc_trainer_step_info(gnnc_trainer *t, int i, gnnc_step_info *out);

/* Measures every step from now on (before or after load) and keeps the first max_events
 * of them for a trace (0 = none).  Results do not change; unasked it costs nothing.
 * On a GPU its own clock is read, and the host waits after each phase. */
gnnc_status gnnc_trainer_profile(gnnc_trainer *t, int64_t max_events);
/* Writes the kept events as a Chrome trace (JSON, for chrome://tracing and Perfetto); the
 * file is replaced as a whole or not at all.  *n_dropped (may be NULL): events that came
 * after the first max_events.  GNNC_E_STATE: nothing was profiled; GNNC_E_IO. */
gnnc_status gnnc_trainer_trace(gnnc_trainer *t, const char *path, int64_t *n_dropped);

/* How making mini-batches and the steps that use them overlap, since load.  GNNC_E_STATE: the model
 * has no `sample` block. */
typedef struct gnnc_pipeline {
    size_t struct_size;
    int64_t batches, workers;
    double prepare_s;     /* making batches, all workers together */
    double worker_wait_s; /* workers waiting for a free place, all together */
    double step_wait_s;   /* steps waiting for a batch */
} gnnc_pipeline;
gnnc_status gnnc_trainer_pipeline(gnnc_trainer *t, gnnc_pipeline *out);

/* What this machine does at best with the trainer's threads: a stream through memory and a
 * matrix product, measured now (about a third of a second, 192 MB).  After load. */
typedef struct gnnc_limits {
    size_t struct_size;
    double bytes_per_s, flops_per_s;
} gnnc_limits;
gnnc_status gnnc_trainer_measure_limits(gnnc_trainer *t, gnnc_limits *out);

/* Times the ways there are to run this program on these data (numbers of threads; which
 * steps are too short to share) for at most `seconds` and at least once each, chooses
 * the fastest and keeps it in tuned.json in the data directory, where later trainers of the
 * same program on the same kind of machine find it.  Results never depend on it.  Trains
 * on the way: destroy the trainer afterwards.  Each way is told as a message.
 * GNNC_E_IO: the choice could not be kept; GNNC_E_STATE: its graph was read from no directory;
 * GNNC_E_MISSING: the program has no phase to time. */
gnnc_status gnnc_trainer_tune(gnnc_trainer *t, double seconds);

/* Runs one phase of the program ("train", "eval", "predict", ..) as it is: for tests and
 * tools.  A train phase uses and advances the step number.  GNNC_E_MISSING: no such phase. */
gnnc_status gnnc_trainer_run_phase(gnnc_trainer *t, const char *phase);
/* The value of an output, f32, as the last phase that computes it left it.  Valid until the
 * next call that runs a phase.  GNNC_E_MISSING: no such output; GNNC_E_DTYPE: it is not f32;
 * GNNC_E_STATE: its memory has been used again since. */
gnnc_status gnnc_trainer_output(gnnc_trainer *t, const char *name, const float **data, int *rank,
                                int64_t dim[GNNC_MAX_RANK]);
/* The name of the ith output that --dump-values made, "train.z": the value z of a training step,
 * which gnnc_trainer_output() gives behind the step.  The program's; NULL: there are not so many.
 */
const char *gnnc_trainer_dumped(const gnnc_trainer *t, int i);

/* ---- what runs ------------------------------------------------------------------------- */
/* Phases of the variant that runs, before load of the first. GNNC_E_RANGE: no phase i. */
typedef struct gnnc_phase_info {
    size_t struct_size;
    const char *name;                        /* "train", "predict", .. */
    int n_steps, n_kernels, n_library_calls; /* of a run */
} gnnc_phase_info;
int gnnc_trainer_n_phases(const gnnc_trainer *t);
gnnc_status gnnc_trainer_phase_info(gnnc_trainer *t, int i, gnnc_phase_info *out);

/* Programs with the same results in other orders of work, of which load takes the one estimated
 * fastest, or option "variant".  0: there is one only.  GNNC_E_RANGE: no variant i. */
typedef struct gnnc_variant_info {
    size_t struct_size;
    const char *choice; /* what it decided */
    double estimate_ms; /* of a step on these data by one thread; 0 before load */
    int in_use;
} gnnc_variant_info;
int gnnc_trainer_n_variants(const gnnc_trainer *t);
gnnc_status gnnc_trainer_variant_info(gnnc_trainer *t, int i, gnnc_variant_info *out);

/* Columns of the data that the program reads: their type in the data, and in memory after load.
 * GNNC_E_RANGE: no column i. */
typedef struct gnnc_loaded_column {
    size_t struct_size;
    const char *table, *column;
    int32_t data_kind, data_element; /* a gnnc_kind, a gnnc_element */
    int32_t kind, element;
    int32_t is_mapped; /* it is read in its file */
} gnnc_loaded_column;
int gnnc_trainer_n_columns(const gnnc_trainer *t);
gnnc_status gnnc_trainer_column_info(gnnc_trainer *t, int i, gnnc_loaded_column *out);

/* The kind of machine that it computes on, "x86-64-v4, amx"; "" where memory ran out.  Valid as
 * long as the trainer, which keeps the text of each call. */
const char *gnnc_trainer_machine(gnnc_trainer *t);
/* Of a model with values in f16: the factor of the loss now, and steps that were skipped because a
 * gradient overflowed, since the first one.  GNNC_E_MISSING: it has none. */
gnnc_status gnnc_trainer_loss_scale(gnnc_trainer *t, double *scale, double *skipped_steps);

/* ---- a model with its weights -------------------------------------------------------------- */
/* A program that predicts (gnnc --emit=infer) and weights that a trainer of the same model kept.
 *
 *     gnnc_model *m = NULL;                          gnnc_session *s = NULL;
 *     gnnc_model_create(&m, &churn_program);         gnnc_session_create(&s);
 *     gnnc_model_load(m, "churn.safetensors");       gnnc_session_open(s, m, graph);
 *                                                    gnnc_session_predict(s, n, ids, out);
 *
 * One thread makes it; once it has its weights nothing of it changes, and any number of threads and
 * sessions share it.
 *
 * A library of --emit=infer with a runtime of its own has everything here but gnnc_trainer_*. */
typedef struct gnnc_model gnnc_model;
/* With one reference, the caller's.  `program` must outlive the model.
 * Returns GNNC_E_ARG (a program of another version of the compiler), GNNC_E_NOMEM. */
gnnc_status gnnc_model_create(gnnc_model **out, const gnnc_program *program);
gnnc_status gnnc_model_create_with(gnnc_model **out, const gnnc_program *program,
                                   gnnc_alloc_fn *alloc, gnnc_release_fn *release, void *user);
/* One more reference, one fewer, from any thread; with the last one the model goes.  NULL is
 * allowed. */
void gnnc_model_retain(gnnc_model *m);
void gnnc_model_release(gnnc_model *m);
/* What went wrong in the last load: one line, never NULL. */
const char *gnnc_model_error(const gnnc_model *m);
/* Reads weights, once: a file of gnnc_trainer_save_weights, a checkpoint, or what
 * gnnc_trainer_save_weights_to wrote, which is copied.  Names and shapes are compared with the
 * program's by gnnc_session_open, as data tell sizes.
 * A file is mapped until the model and its sessions have gone, and read where it lies: it may be
 * replaced by a rename, and must neither be written over nor be cut short (SIGBUS).
 * Returns GNNC_E_IO, GNNC_E_FORMAT, GNNC_E_STATE (it has its weights), GNNC_E_NOMEM, GNNC_E_ARG
 * (they have learned another target than the program's). */
gnnc_status gnnc_model_load(gnnc_model *m, const char *path);
gnnc_status gnnc_model_load_from(gnnc_model *m, const void *data, size_t n_bytes);
const char *gnnc_model_name(const gnnc_model *m); /* "churn"; lives as long as the program */
/* Metrics of all splits as they were when the weights were kept: of the epoch that was, or of a
 * later gnnc_trainer_evaluate.  0: the weights are none of a trainer's, or were changed since then.
 * The i-th; texts are the model's.  Returns GNNC_E_ARG, GNNC_E_RANGE: no such. */
int gnnc_model_n_metrics(const gnnc_model *m);
gnnc_status gnnc_model_metric_info(const gnnc_model *m, int i, gnnc_metric_info *out);
/* A model of what the trainer has learned so far, with the caller's one reference and the trainer's
 * allocator: `program` is that of --emit=infer of the trainer's model, or of another one with its
 * parameters.  Threads that serve can be given it while training goes on.
 * Returns GNNC_E_ARG (a program of another version of the compiler), GNNC_E_NOMEM. */
gnnc_status gnnc_trainer_to_model(gnnc_trainer *t, const gnnc_program *program, gnnc_model **out);
/* The way back, to train further from a model that is served: gnnc_trainer_load_weights with the
 * model's weights, which are read in the call alone, from any thread beside its sessions.
 * Returns GNNC_E_STATE (it has no weights), and what that returns. */
gnnc_status gnnc_trainer_load_model(gnnc_trainer *t, const gnnc_model *m);

/* ---- a session: predictions of some rows --------------------------------------------------- */
/* One thread's working memory over a model and a graph.  A row is predicted from its neighbourhood:
 * all in-edges of as many hops as the model reads (of a model by time, the recipe's fan-outs at the
 * row's time), and equals that of gnnc_trainer_predict over all rows; compiled with --draw, from
 * what the recipe's fan-outs draw.  Of a model of many graphs, with a row for each, a row is
 * predicted from its graph.  What the model needs of the whole graph, such as degrees, or of all
 * graphs, is computed by open.
 *
 * A prediction takes no lock, and after the first ones of their sizes no memory.  It depends on the
 * row, the graph and the weights alone, to rounding: not on what else is asked for, nor on earlier
 * calls.  The functions of an allocator are called from every thread that has a session with it. */
typedef struct gnnc_session gnnc_session;
/* Without a model yet.  *out is NULL after a failure.  Returns GNNC_E_ARG, GNNC_E_NOMEM. */
gnnc_status gnnc_session_create(gnnc_session **out);
gnnc_status gnnc_session_create_with(gnnc_session **out, gnnc_alloc_fn *alloc,
                                     gnnc_release_fn *release, void *user);
void gnnc_session_destroy(gnnc_session *s); /* NULL is allowed */
/* What went wrong in the last call that failed: one line, never NULL. */
const char *gnnc_session_error(const gnnc_session *s);
/* Where it is to run, before open: "cpu" (the default), "cuda", the GPU of the thread that opens
 * it, "cuda:1", that one, or "auto".  Columns, weights and what open computes are in the GPU's
 * memory once, for a session and its clones, each of which has a queue of its own there.  Calls
 * make the GPU the calling thread's, and leave it so.  What it is not compiled for, and which GPU
 * there is not, open says (GNNC_E_MISSING, GNNC_E_DEVICE).
 * Returns GNNC_E_ARG, GNNC_E_STATE (it is open), GNNC_E_MISSING (a longer name than any has). */
gnnc_status gnnc_session_set_device(gnnc_session *s, const char *device);
const char *gnnc_session_device(const gnnc_session *s); /* "cpu" or "cuda"; "" before open */
/* As gnnc_trainer_set_message, of what open warns of; before it.  Returns GNNC_E_ARG. */
gnnc_status gnnc_session_set_message(gnnc_session *s, gnnc_message_fn *fn, void *user);
/* As gnnc_trainer_set_stream; a clone has none at first.  Returns GNNC_E_ARG. */
gnnc_status gnnc_session_set_stream(gnnc_session *s, void *stream);
/* Binds the model to a committed graph and computes what predictions need of all of it.  The
 * session and its clones keep a reference to both.  Labels and splits need not be there.  Once per
 * session; after a failure it can be called again.
 * Returns GNNC_E_STATE (no weights, a graph that is not committed, a program that trains),
 * GNNC_E_VALUE (of a model with a row for each graph: an edge that joins two of them), and what
 * gnnc_trainer_load_weights and gnnc_trainer_load_graph return. */
gnnc_status gnnc_session_open(gnnc_session *s, gnnc_model *m, gnnc_graph *g);
/* The same of a model of questions about the future (docs/data.md, "Tasks"): its rows are all
 * entities that are there at the date `at`, in their order and by their names, asked about then.
 * Nothing later is read, and neither the task's rows nor their labels need be there.
 *   at  "2024-06-01", "2024-06-01 10:00:00" (UTC, or with a zone), or seconds since 1970
 * Returns GNNC_E_RANGE (no date), GNNC_E_ARG (nobody asks about such rows at a time of his choice),
 * and what gnnc_session_open returns. */
gnnc_status gnnc_session_open_at(gnnc_session *s, gnnc_model *m, gnnc_graph *g, const char *at);
/* A session of the same model and graph for another thread: they share all but working memory.  To
 * put another model in place: open a session of it, clone that where requests are served, and
 * destroy each thread's old one when its request is done.  No thread waits for another.
 * Returns GNNC_E_ARG (s is not open), GNNC_E_NOMEM. */
gnnc_status gnnc_session_clone(gnnc_session **out, const gnnc_session *s);
/* What is drawn for a row of a model by time, or compiled with --draw, is a function of this (at
 * first 0), the row and the graph alone.  Returns GNNC_E_ARG (s is NULL). */
gnnc_status gnnc_session_set_seed(gnnc_session *s, int64_t seed);
/* Rows there are to predict, 0 before open, and what is predicted of each: dim[0 .. *rank - 1]
 * numbers, row-major.  GNNC_E_ARG: before open. */
int64_t gnnc_session_rows(const gnnc_session *s);
gnnc_status gnnc_session_row_shape(const gnnc_session *s, int *rank, int64_t dim[GNNC_MAX_RANK]);
/* What the model gives for n rows, as gnnc_trainer_predict does.
 *   id   [n] numbers of rows, from 0; in any order, also the same twice; NULL: the first n
 *   out  [n, dim[0], ..] the caller's
 * Returns GNNC_E_RANGE (no such row, or a neighbourhood of 2^31 edges: what was written of `out`
 * means nothing), GNNC_E_STATE, GNNC_E_NOMEM; GNNC_E_ASSERT, GNNC_E_EXTERN of the model's own. */
gnnc_status gnnc_session_predict(gnnc_session *s, int64_t n, const int64_t *id, float *out);
/* The same as a DLPack tensor (gnnc_dlpack.h), f32 [n, dim[0], ..], READ_ONLY, where the session
 * runs: on a GPU nothing but indices and numbers of rows crosses.
 *   id    [n], or NULL: as there
 *   *out  the caller's until he calls its deleter, once, from any thread; NULL after a failure
 * Its memory is the session's, which writes there again when the tensor is back, and stays until
 * then, also after gnnc_session_destroy.  It can be read in the stream of gnnc_session_set_stream,
 * where there is one, and the host waits for nothing; where there is none the call returns when its
 * values are there.  Returns, too, GNNC_E_STATE: the last tensor was not given back. */
gnnc_status gnnc_session_predict_dlpack(gnnc_session *s, int64_t n, const int64_t *id,
                                        struct DLManagedTensorVersioned **out);

/* Hidden layers, of a program compiled with --embed: 0 before open.  A name lives as long as the
 * program; NULL: no layer i. */
int gnnc_session_n_layers(const gnnc_session *s);
const char *gnnc_session_layer_name(const gnnc_session *s, int i);
/* Whose rows a layer has, a type of nodes or graphs, that lives as long as the program; how many
 * these are, 0 without a graph; and what there is of each: dim[0 .. *rank - 1] numbers.  Any of
 * these may be NULL.
 * Returns GNNC_E_MISSING (no such layer), GNNC_E_STATE (it is not open). */
gnnc_status gnnc_session_layer(gnnc_session *s, const char *layer, const char **table,
                               int64_t *n_rows, int *rank, int64_t dim[GNNC_MAX_RANK]);
/* Rows of a layer, as gnnc_trainer_embed gives them; `id` and `out` as of gnnc_session_predict.  Of
 * a model of links, too.  Returns what both functions above return. */
gnnc_status gnnc_session_embed(gnnc_session *s, const char *layer, int64_t n, const int64_t *id,
                               float *out);

/* ---- .. of subgraphs that requests bring ---------------------------------------------------- */
/* A session of a model alone, without a graph: whoever asks brings nodes, edges, columns and what
 * was computed of the whole graph, and gets predictions of some of the nodes.
 *
 *     gnnc_session_open_model(s, m);
 *     gnnc_session_subgraph(s, &g);                        for each request
 *     gnnc_graph_add_nodes(g, "paper", n);
 *     gnnc_graph_add_edges(g, "cites", "paper", "paper", &src, &dst);
 *     gnnc_graph_add_column(g, "paper", "x", GNNC_COL_FLOAT, &x, -1, NULL);
 *     gnnc_graph_add_column(g, "paper", "whole.degree.cites", GNNC_COL_FLOAT, &degree, -1, NULL);
 *     gnnc_graph_commit(g);
 *     gnnc_session_predict_subgraph(s, 1, &row, out);
 *
 * A row is predicted from all neighbours that the subgraph has, of a model by time from those that
 * are known at the row's, and where the recipe picks the most recent from its number of them. Where
 * it has all in-edges of as many hops as the model reads, the result is that of the whole graph. Of
 * a model with a row for each graph one or several graphs are brought, by gnnc_graph_add_graphs and
 * gnnc_graph_divide, each with all of its nodes and edges.
 *
 * Sizes that only data tell, such as numbers of columns and of classes, are those of the weights;
 * what no parameter tells each subgraph tells.  Categories have the model's names, or codes.  Of a
 * parameter with a row for each node or graph a row is told by a column `name` or `id` of its
 * table, as they were called in training; where they were not called anything, `id` is the row's
 * number.
 *
 * Once per session, as gnnc_session_open; gnnc_session_rows is 0.
 * Of a model of links, gnnc_session_predict_subgraph_pairs and gnnc_session_top_subgraph_pairs.
 * Returns GNNC_E_STATE (no weights, a program that trains, a parameter with a row for each edge),
 * GNNC_E_MISSING (no parameter tells the width of what is predicted, or of a column of pairs), and
 * what gnnc_trainer_load_weights returns. */
gnnc_status gnnc_session_open_model(gnnc_session *s, gnnc_model *m);
/* An empty graph in the session's memory, in place of the one before, which goes.  It is filled and
 * committed as any graph, takes no memory once there was one of its size, and is the session's:
 * valid until the next call of this or the session's end, retained and released by nobody.
 * Returns GNNC_E_STATE (not of open_model; somebody has a reference to the last one),
 * GNNC_E_NOMEM. */
gnnc_status gnnc_session_subgraph(gnnc_session *s, gnnc_graph **out);
/* What the model gives for n rows of the committed subgraph.
 *   id   [n] numbers of rows of the type that is predicted, or of graphs, from 0; in any order,
 *        also the same twice
 *   out  [n, dim[0], ..] the caller's
 * Returns GNNC_E_STATE (no subgraph, or not committed), GNNC_E_MISSING (a table, a column, or what
 * was computed of the whole graph), GNNC_E_SHAPE, _DTYPE, _RANGE (no such row; a name that the
 * model does not know), GNNC_E_VALUE (what is not finite; an edge between graphs), GNNC_E_ARG (a
 * column that was made otherwise than in training, or lies in a GPU's memory, where the session
 * runs there, too; `id` is NULL), GNNC_E_NOMEM; GNNC_E_ASSERT, GNNC_E_EXTERN of the model's own. */
gnnc_status gnnc_session_predict_subgraph(gnnc_session *s, int64_t n, const int64_t *id,
                                          float *out);
/* Rows of a layer (gnnc_session_layer) over it, of a model of links, too, by what all edges around
 * them tell; `id` [n] rows of the layer's type.  Returns what that and predict_subgraph return;
 * GNNC_E_MISSING: no parameter tells its width; GNNC_E_STATE: it is of the whole graph alone. */
gnnc_status gnnc_session_embed_subgraph(gnnc_session *s, const char *layer, int64_t n,
                                        const int64_t *id, float *out);
/* Values that predictions read and that depend on the whole graph: degrees, means over all nodes,
 * which edges a condition keeps (0 or 1).  A session over a graph computes them, and gives them by
 * row.  With a subgraph the host gives them, as columns of kind GNNC_COL_FLOAT of the table, under
 * this name.  Weights and program decide how many there are; 0 before open. */
typedef struct gnnc_whole_graph_value {
    size_t struct_size;
    const char *name;             /* "whole.degree.cites"; as long as the session */
    const char *table;            /* whose rows have it; NULL: it is of no table, one row */
    int32_t kind;                 /* a gnnc_table: a name may be that of nodes and of edges */
    int32_t rank;                 /* of a row: 0 = a number */
    int64_t shape[GNNC_MAX_RANK]; /* [rank] */
} gnnc_whole_graph_value;
int gnnc_session_n_whole_graph_values(const gnnc_session *s);
/* Returns GNNC_E_ARG (it is not open), GNNC_E_RANGE: there is no value i. */
gnnc_status gnnc_session_whole_graph_value(const gnnc_session *s, int i,
                                           gnnc_whole_graph_value *out);
/* Value i, of a session over a graph.
 *   id   [n] rows of its table, as the graph has them; of no table: n is 1, and id not read
 *   out  [n, shape[0], ..] the caller's
 * Returns GNNC_E_RANGE (no such value or row; an integer that f32 does not hold), GNNC_E_ARG,
 * GNNC_E_STATE (not open, without a graph, of edges that are made of several of the graph's),
 * GNNC_E_NOMEM. */
gnnc_status gnnc_session_read_whole_graph_value(gnnc_session *s, int i, int64_t n,
                                                const int64_t *id, float *out);
/* Gives value i, which is of no table, to a session without a graph, for all subgraphs to come;
 * clones made later have it, too.
 *   values  [shape[0], ..] finite
 * Returns GNNC_E_RANGE, GNNC_E_VALUE, GNNC_E_ARG (it has rows), GNNC_E_STATE (not of open_model).
 */
gnnc_status gnnc_session_set_whole_graph_value(gnnc_session *s, int i, const float *values);

/* ---- .. of links -------------------------------------------------------------------------- */
/* Of a model of links (`links(e)`): the nodes at both ends, and one more than the
 * highest kind that the data have a link of, at least 1.  Any may be NULL.  Kinds are numbers: that
 * of the category that `links(e, kind)` tells them by, times the ways of what is scored, plus the
 * way; a union has twice the ways of its parts, those of the second one behind.  A relation without
 * either has kind 0 alone.
 * Returns GNNC_E_ARG (it is not open, or predicts rows). */
gnnc_status gnnc_session_link_sizes(const gnnc_session *s, int64_t *n_src, int64_t *n_dst,
                                    int64_t *n_kinds);
/* The model's scores of n pairs, which need not be edges of the data: gnnc_session_predict_pairs of
 * a model that reads no columns of theirs.
 *   src, dst  [n] rows of both ends
 *   kind      [n], or NULL: 0
 *   out       [n] the caller's
 * Returns GNNC_E_RANGE (no such row; no link of that kind in the data, and the model reads what
 * kind it is), GNNC_E_MISSING (a column of pairs), GNNC_E_STATE (it is not open, or predicts rows),
 * GNNC_E_NOMEM; GNNC_E_ASSERT, GNNC_E_EXTERN of the model's own. */
gnnc_status gnnc_session_predict_links(gnnc_session *s, int64_t n, const int64_t *src,
                                       const int64_t *dst, const int64_t *kind, float *out);
/* The k destinations of each of n sources that score highest, the best first; of equal scores the
 * lower row.  Left out are those that the source has a link of that kind to, in the training,
 * validation or test split, unless `with_known`: edges in no split are pairs that may become links.
 * Of links by time those that are known at the source's time are left out.
 * Memory does not grow with the number of destinations.
 *   src, kind   as above
 *   dst, score  [n, k] the caller's; where fewer are left, -1 and minus infinity.  A score that is
 *               no number is none.
 * Returns GNNC_E_ARG (k below 1), and what gnnc_session_predict_links returns. */
gnnc_status gnnc_session_top_links(gnnc_session *s, int64_t n, const int64_t *src,
                                   const int64_t *kind, int64_t k, int with_known, int64_t *dst,
                                   float *score);

/* What the model reads of each pair itself, columns of the links (`p.w`) other than their kind, and
 * of links by time when it is asked for: the column of the edges' times.  Their number, 0 before
 * open; the name of column i, which lives as long as the program, and its gnnc_kind.
 *   kind  may be NULL
 * Returns NULL: no column i. */
int gnnc_session_n_pair_columns(const gnnc_session *s);
const char *gnnc_session_pair_column(const gnnc_session *s, int i, int32_t *kind);
/* Pairs with columns of theirs.  Set all to 0 first, and struct_size to sizeof(gnnc_pairs). */
typedef struct gnnc_pairs {
    size_t struct_size;
    int64_t n;
    const int64_t *src, *dst;   /* [n] rows of both ends; dst: gnnc_session_top_pairs reads none */
    const int64_t *kind;        /* [n], or NULL: 0 */
    const gnnc_values *columns; /* [n_columns] n rows each, as of gnnc_graph_append: all that there
                                 * are, each once, in any order */
    int32_t n_columns;
} gnnc_pairs;
/* The model's scores of the pairs.  Links by time are seen with what is known at the pair's time,
 * drawn as the recipe draws: what is, is a function of gnnc_session_set_seed, the pair, its time
 * and the graph alone.  The columns' arrays are read during the call alone, and their `done` was
 * called when it returns.
 *   out  [n] the caller's
 * Returns what gnnc_session_predict_links returns; GNNC_E_MISSING (a column is lacking), GNNC_E_ARG
 * (one that the model does not read, is given twice, does not say how it was made or was made
 * otherwise than in training; of another struct_size nothing is read),
 * GNNC_E_DTYPE, _SHAPE, _FORMAT, GNNC_E_VALUE (what is not finite), GNNC_E_RANGE (a code or name
 * that is no category of the model): the message has column and row. */
gnnc_status gnnc_session_predict_pairs(gnnc_session *s, const gnnc_pairs *pairs, float *out);
/* gnnc_session_top_links with columns: those of source i are the columns of all pairs with it.
 * Returns what both return. */
gnnc_status gnnc_session_top_pairs(gnnc_session *s, const gnnc_pairs *pairs, int64_t k,
                                   int with_known, int64_t *dst, float *score);
/* The same of a session without a graph (gnnc_session_open_model), over the subgraph that was
 * committed last: ends are its rows, and a kind that the model reads is one that it has an edge of.
 *
 * A score is that of the whole graph where the subgraph has, of as many hops as the model reads
 * around both ends, all edges at the nodes, whichever way they lead; of links by time those that
 * are known at the pair's time are seen, as many as the recipe draws where it picks the most recent
 * (equal times in the order of the data), else all.  The best destinations are among the subgraph's
 * rows.  Its edges need no split: then each is a link that the source has; else one in no split is
 * none.
 * Returns what gnnc_session_predict_subgraph and the functions above return. */
gnnc_status gnnc_session_predict_subgraph_pairs(gnnc_session *s, const gnnc_pairs *pairs,
                                                float *out);
gnnc_status gnnc_session_top_subgraph_pairs(gnnc_session *s, const gnnc_pairs *pairs, int64_t k,
                                            int with_known, int64_t *dst, float *score);

/* ---- what predictions mean ------------------------------------------------------------------ */
/* What rows of predictions are called, by the names that they were imported under; which class or
 * label each number is of, as it was called in training; and probabilities, where the loss defines
 * them (docs/runtime.md, "What predict writes").
 *
 *     gnnc_legend *g = NULL;  int64_t row;
 *     gnnc_session_legend(s, &g);
 *     gnnc_legend_find(g, "anna", &row);               gnnc_session_predict(s, 1, &row, out);
 *     gnnc_legend_value(g, gnnc_legend_highest(g, out))                 is a class: "stays"
 *
 * Find, links, ends and write are for one thread at a time; of the others any number may run. */
typedef struct gnnc_legend gnnc_legend;
/* Of what a trainer that has its data predicts, or an open session: which is to live as long.  Its
 * memory comes from the same allocator.  *out is NULL after a failure, which the trainer's or the
 * session's error tells.
 * Returns GNNC_E_STATE (no data; no graph), GNNC_E_MISSING (nothing is predicted), GNNC_E_ARG (what
 * is predicted has no row for each node, edge or graph of the data), GNNC_E_NOMEM, and of a
 * directory that is read again GNNC_E_IO, GNNC_E_FORMAT. */
gnnc_status gnnc_trainer_legend(gnnc_trainer *t, gnnc_legend **out);
gnnc_status gnnc_session_legend(gnnc_session *s, gnnc_legend **out);
void gnnc_legend_destroy(gnnc_legend *g); /* NULL is allowed */
/* What went wrong in the last call of find, links, ends or write: one line, never NULL. */
const char *gnnc_legend_error(const gnnc_legend *g);

/* Texts live as long as the legend. */
typedef struct gnnc_legend_info {
    size_t struct_size;
    const char *table;        /* whose rows these are; of edges and pairs: of their sources */
    const char *destinations; /* .. of their destinations; NULL: rows are no edges */
    int64_t n_rows;           /* there are to predict; of a session of pairs: edges of the data */
    int64_t n_table, n_destinations; /* rows of both tables */
    int64_t width;                   /* numbers of a row, in all */
    int32_t rank;                    /* .. [dim[0], .., dim[rank - 1]] */
    int64_t dim[GNNC_MAX_RANK];
    const char *outcome; /* what these are: of gnnc_recipe */
    const char *word;    /* what gnnc_legend_convert gives: "probability", "prediction", "score" */
    int32_t has_classes; /* the numbers are of classes, of which one is true */
    int32_t has_labels;  /* .. or of labels: the highest mean something */
    int32_t has_ids;     /* rows of `table` have names; else their numbers are their names */
} gnnc_legend_info;
/* Returns GNNC_E_ARG. */
gnnc_status gnnc_legend_describe(const gnnc_legend *g, gnnc_legend_info *out);
/* What number i of a row is called: "stays", "3", "y", "y_3"; "" where the word alone says it;
 * NULL: there is no such. */
const char *gnnc_legend_value(const gnnc_legend *g, int64_t i);
/* What row `row` of the table is called, or with end 1 of that of destinations; NULL: nothing. */
const char *gnnc_legend_id(const gnnc_legend *g, int end, int64_t row);
/* Which of a row's numbers, values [width], is highest, of equal ones the first; -1: all are NaN.
 */
int64_t gnnc_legend_highest(const gnnc_legend *g, const float *values);
/* What the loss makes of rows: probabilities of scores of classes (softmax) and of log odds
 * (sigmoid); else they stay as they are.  Of scores of classes those that are infinite share the
 * row as a limit of finite ones would: of plus infinity alone, all the row; of NaN all are NaN.
 *   values, out  [n, width] as the model gives them; may be the same
 * Returns GNNC_E_ARG. */
gnnc_status gnnc_legend_convert(const gnnc_legend *g, int64_t n, const float *values, float *out);
/* The row of the table that is called `id`.
 * Returns GNNC_E_RANGE (there is no such), GNNC_E_MISSING (the data do not name its rows),
 * GNNC_E_NOMEM, GNNC_E_ARG. */
gnnc_status gnnc_legend_find(gnnc_legend *g, const char *id, int64_t *row);
/* Where rows are edges: those that begin at row `source` of the table.
 *   n    how many these are
 *   row  [room] the first of them, the caller's; NULL where room is 0
 * Returns GNNC_E_RANGE (no such row), GNNC_E_ARG (rows are no edges), GNNC_E_NOMEM. */
gnnc_status gnnc_legend_links(gnnc_legend *g, int64_t source, int64_t *n, int64_t room,
                              int64_t *row);
/* .. and both ends of edge `row`.  Returns GNNC_E_RANGE, GNNC_E_ARG. */
gnnc_status gnnc_legend_ends(gnnc_legend *g, int64_t row, int64_t *source, int64_t *destination);

/* The forms in which predictions are written. */
typedef enum gnnc_format {
    GNNC_WRITE_NPY,  /* the model's numbers, f32 [n, ..] */
    GNNC_WRITE_CSV,  /* a line for each row: ids, class, probabilities; after one of names */
    GNNC_WRITE_JSONL /* the same as an object a line */
} gnnc_format;
typedef struct gnnc_written {
    size_t struct_size;
    int32_t format;             /* a gnnc_format */
    int64_t top;                /* only the so many highest classes or labels of a row; 0 = all */
    int64_t n;                  /* rows */
    const int64_t *row;         /* [n] which they are, in any order; NULL = the first n */
    const int64_t *destination; /* [n] of pairs, of which `row` has the sources; else NULL */
    const float *values;        /* [n, ..] as the model gave them */
} gnnc_written;
/* The file is replaced as a whole or not at all.
 * Returns GNNC_E_IO, GNNC_E_RANGE (no such row), GNNC_E_ARG (`top` of what has no labels, or of an
 * array; destinations of rows that are no pairs), GNNC_E_NOMEM. */
gnnc_status gnnc_legend_write(gnnc_legend *g, const char *path, const gnnc_written *what);

/* ---- explanations --------------------------------------------------------------------------- */
/* What the prediction of a row hangs on (docs/explain.md).  Of a session over a graph, on the cpu,
 * whose program was compiled with --explain; libgnnrt has this, and what is made with --emit=infer
 * alone has not.
 *
 *     gnnc_explanation *e = NULL;
 *     gnnc_session_explain(s, row, -1, &e);
 *     gnnc_part p = {.struct_size = sizeof p};
 *     for (int64_t i = 0; gnnc_explanation_part(e, i, &p) == GNNC_OK; i++)
 *         ..                                                    p.name, p.gradient, p.ablation
 *     gnnc_explanation_destroy(e); */
typedef struct gnnc_explanation gnnc_explanation;
typedef enum gnnc_part_kind {
    GNNC_PART_TABLE,  /* all rows of a table but the one that is asked about */
    GNNC_PART_PATH,   /* rows that relations lead to from there */
    GNNC_PART_COLUMN, /* "orders.total" */
    GNNC_PART_AGE     /* rows by how long before the row's time they were */
} gnnc_part_kind;
/* Texts live as long as the explanation. */
typedef struct gnnc_part {
    size_t struct_size;
    int32_t kind; /* a gnnc_part_kind */
    const char
        *name;      /* "orders", "task -task__customer-> customer", "orders.total", "1 to 7 days" */
    int64_t n_rows; /* that the prediction is made of */
    double gradient; /* of the score by the part's values, times these, added up */
    double ablation; /* the score less what it is without the part; NaN: that is not defined */
} gnnc_part;
typedef struct gnnc_explanation_info {
    size_t struct_size;
    int64_t row, output;
    double at;       /* seconds: when the row is asked; NaN: the model knows no times */
    double score;    /* what is explained: the output; of a class less the mean of all others */
    double without;  /* .. with no edge, and nothing known in any column */
    double gradient; /* of all parts of a kind together */
    int64_t n_parts; /* tables, then paths, columns and ages; but for ages the weightiest first */
} gnnc_explanation_info;
/* Of row `row`, from 0.  It predicts anew once for each part; memory comes from the session's
 * allocator.  *out is NULL after a failure.
 *   output  which of the row's numbers; -1: the highest
 * Returns GNNC_E_RANGE (no such row, no such output), GNNC_E_STATE (not open, no graph, on a
 * device, scores of links, compiled without --explain), GNNC_E_ARG, GNNC_E_NOMEM; GNNC_E_ASSERT,
 * GNNC_E_EXTERN of the model's own. */
gnnc_status gnnc_session_explain(gnnc_session *s, int64_t row, int64_t output,
                                 gnnc_explanation **out);
void gnnc_explanation_destroy(gnnc_explanation *e); /* NULL is allowed */
/* Returns GNNC_E_ARG. */
gnnc_status gnnc_explanation_describe(const gnnc_explanation *e, gnnc_explanation_info *out);
/* Returns GNNC_E_RANGE (there are no more), GNNC_E_ARG. */
gnnc_status gnnc_explanation_part(const gnnc_explanation *e, int64_t i, gnnc_part *out);

/* ---- rows of cells ----------------------------------------------------------------------- */
/* What made the columns of a model's data of raw cells, when they were imported (gnnc import, of
 * CSV), goes with its weights: names of categories and classes, means and deviations, forms of
 * dates.  An encoder makes rows that come later into the same columns, without gnnc:
 *
 *     gnnc_encoder *e = NULL;
 *     gnnc_encoder_create(&e);  gnnc_encoder_of_model(e, m);
 *     const char *city[] = {"ankara", NULL};  double age[] = {31, 44.5};
 *     gnnc_cells cells[] = {{sizeof *cells, "city", city, NULL},
 *                           {sizeof *cells, "age", NULL, age}};
 *     gnnc_raw rows = {.struct_size = sizeof rows, .table = "person", .count = 2,
 *                      .n_columns = 2, .columns = cells};
 *     gnnc_encoder_append(e, &rows, g, NULL, NULL, &first);  they are rows first, first + 1
 *
 * One thread makes it; from then on nothing of it changes, and any number of threads share it.  Its
 * allocator's functions are called from each thread that encodes. */
/* Without columns yet.  *out is NULL after a failure.  Returns GNNC_E_ARG, GNNC_E_NOMEM. */
gnnc_status gnnc_encoder_create(gnnc_encoder **out);
gnnc_status gnnc_encoder_create_with(gnnc_encoder **out, gnnc_alloc_fn *alloc,
                                     gnnc_release_fn *release, void *user);
void gnnc_encoder_destroy(gnnc_encoder *e); /* NULL is allowed */
/* What went wrong in the last call of the two that follow: one line, never NULL. */
const char *gnnc_encoder_error(const gnnc_encoder *e);
/* The encoders of a file of weights, a checkpoint, or a data directory; of a model that has its
 * weights, which may go before the encoder does.  Once per encoder; after a failure again.
 * Returns GNNC_E_IO, GNNC_E_FORMAT, GNNC_E_MISSING (it says nothing of how columns are made),
 * GNNC_E_STATE (there are columns already; a model without weights), GNNC_E_NOMEM. */
gnnc_status gnnc_encoder_read(gnnc_encoder *e, const char *path);
gnnc_status gnnc_encoder_of_model(gnnc_encoder *e, const gnnc_model *m);

/* A column that it makes.  Texts live as long as the encoder. */
typedef struct gnnc_encoded {
    size_t struct_size;
    const char *column;
    const char *from;         /* the raw column; of several the stem: "x" of "x.0", "x.1", .. */
    gnnc_kind kind;           /* of the column */
    int32_t dtype;            /* a gnnc_element, of its values */
    int32_t width;            /* values of a row, [rows, width]; 0 = one, [rows] */
    int64_t n_categories;     /* of CAT and CLASS */
    const char *const *names; /* [n_categories], of codes; NULL = numbers */
    int may_lack;             /* a label, split, key or image: rows may come without its cells */
    int32_t n_from;           /* raw columns "x.0", "x.1", ..; 0 = `from` alone */
} gnnc_encoded;
/* Columns that it makes of a table: 0 of one that it does not know.  The i-th.
 * Returns GNNC_E_RANGE (no such column), GNNC_E_ARG. */
int32_t gnnc_encoder_n_columns(const gnnc_encoder *e, const char *table);
gnnc_status gnnc_encoder_column(const gnnc_encoder *e, const char *table, int32_t i,
                                gnnc_encoded *out);

/* The cells of a raw column: texts as in a CSV file, or numbers. */
typedef struct gnnc_cells {
    size_t struct_size;
    const char *column;       /* "age", "x.0" */
    const char *const *texts; /* [count] UTF-8; NULL among them = an empty cell */
    const double *numbers;    /* [count], NaN = an empty cell; where texts is NULL */
} gnnc_cells;
/* Rows of one table; read during the call alone. */
typedef struct gnnc_raw {
    size_t struct_size;
    const char *table;
    int64_t count;
    const gnnc_cells *columns; /* [n_columns], in any order; others than are wanted are not read */
    int32_t n_columns;
    int64_t bad_row; /* written: the row of `error`, from 0; -1 = of none */
    char error[512]; /* written: why it failed, in one line; "" else */
} gnnc_raw;
/* One column, as gnnc import --like makes it of the same cells, to the bit.
 *   to  [count] or [count, width] of the column's type, the caller's; n_bytes: its size
 * Returns GNNC_E_MISSING (no such table or column; a raw column is lacking), GNNC_E_VALUE (a cell
 * is no number, no time of that form, a number where dates are, empty where none may be),
 * GNNC_E_RANGE (a name that is no category or class, and there is no code for unknown ones; too
 * many rows), GNNC_E_SHAPE (n_bytes), GNNC_E_STATE (no columns yet), GNNC_E_ARG, GNNC_E_NOMEM:
 * `error` has table, row and column; what was written of `to` means nothing. */
gnnc_status gnnc_encoder_encode(const gnnc_encoder *e, gnnc_raw *rows, const char *column, void *to,
                                size_t n_bytes);
/* Says of a column of a graph that is being built that this encoder made its values, as
 * gnnc_encoder_encode does; its codes then have the encoder's names.  Where a model learned of
 * numbers that were fitted (standardised), of texts, or of categories with names, it refuses a
 * column that does not say how it was made:
 *
 *     gnnc_graph_set_encoded(g, "person", "age", e);
 *     gnnc_graph_set_encoded(g, "person", "age", gnnc_encoder_unchecked());
 *
 * The second line is for pipelines of the caller's own: he answers for it that the values are as
 * the model has them, and nothing is compared.  The encoder may go before the graph does.
 * Returns GNNC_E_MISSING (no such table or column; the encoder makes none that is called so),
 * GNNC_E_ARG (the encoder's are of another kind, or have other names, or fewer), GNNC_E_SHAPE (..
 * or are more or fewer a row), GNNC_E_STATE (the graph is committed; no columns yet), GNNC_E_NOMEM.
 */
gnnc_status gnnc_graph_set_encoded(gnnc_graph *g, const char *table, const char *column,
                                   const gnnc_encoder *e);
/* Makes nothing, lasts for ever, and is not destroyed; never NULL. */
const gnnc_encoder *gnnc_encoder_unchecked(void);
/* All columns that there are cells for, added to a table of `count` rows of a graph that is being
 * built, or none.  Labels, splits and keys may be lacking.
 * Returns what gnnc_encoder_encode and gnnc_graph_add_column return. */
gnnc_status gnnc_encoder_add(const gnnc_encoder *e, gnnc_raw *rows, gnnc_graph *g);
/* The same of rows that are appended to a committed graph (gnnc_graph_append), from any thread.
 *   src, dst  of edges, as in gnnc_rows; of nodes NULL
 *   first     the number of the first row, -1 after a failure; may be NULL
 * Returns what both return, and GNNC_E_ARG: a column of the graph was made otherwise. */
gnnc_status gnnc_encoder_append(const gnnc_encoder *e, gnnc_raw *rows, gnnc_graph *g,
                                const gnnc_array *src, const gnnc_array *dst, int64_t *first);

/* ---- what a program is -------------------------------------------------------------------- */
/* Nothing of it is computed, and all of it lasts as long as the program. */
typedef struct gnnc_program_info {
    size_t struct_size;
    const char *name;           /* "churn": what it was called when it was compiled */
    const char *model, *source; /* in its file: "GCN"; the file */
    const char *compiler;       /* who compiled it */
    const char *options;        /* .. and how */
    uint64_t fingerprint;       /* of what it computes: a checkpoint has it */
    int has_recipe;             /* a train block */
    int trains, evaluates;      /* phases that it has */
    int predicts, embeds;
    int shares_rows; /* processes may share the rows of data in parts (gnnc --mpi, --parts) */
} gnnc_program_info;
/* GNNC_E_ARG, of all that return a status here: a program of another version of the compiler. */
gnnc_status gnnc_program_describe(const gnnc_program *program, gnnc_program_info *out);

/* How it is trained unless options say otherwise; fields of other schedules and optimizers are 0.
 */
typedef struct gnnc_recipe {
    size_t struct_size;
    const char *target;  /* "paper.y", "links"; of a program that only predicts: what was learned */
    const char *outcome; /* what a result is to the loss: "classes", scores before a softmax;
                          * "log_odds", before a sigmoid; "numbers", as the target has them;
                          * "scores": nothing is known */
    int n_metrics;
    const char *const *metrics; /* [n_metrics] "accuracy" */
    const char *optimizer;      /* "sgd", "adam", "adamw", "none" */
    double lr, weight_decay, momentum;
    int nesterov;
    double clip_norm;     /* 0 = gradients are not clipped */
    const char *schedule; /* "constant", "step", "cosine", "linear", "plateau" */
    int64_t warmup_epochs, step_epochs, patience;
    double gamma, min_lr;
    int64_t epochs, early_stop_patience;  /* 0 = all epochs are run */
    const char *keep_metric, *keep_split; /* "accuracy" of "val"; NULL = the last epoch is kept */
    int keep_max;                         /* the highest is */
    int64_t batch;                        /* 0 = all at once */
    const char *batch_of; /* "rows", "graphs", "clusters", "links", "queries"; NULL = no batches */
    int n_hops;           /* along which neighbours are drawn */
    int n_times;          /* columns of times that batches heed */
    int64_t negatives;    /* of each link */
} gnnc_recipe;
/* GNNC_E_MISSING: it has none. */
gnnc_status gnnc_program_recipe(const gnnc_program *program, gnnc_recipe *out);

/* Tables that data must hold, and columns of each. */
typedef struct gnnc_needed_table {
    size_t struct_size;
    const char *name;
    int32_t kind; /* a gnnc_table */
    int32_t n_columns;
    const char *src_type, *dst_type; /* of edges; else NULL */
} gnnc_needed_table;
typedef struct gnnc_needed_column {
    size_t struct_size;
    const char *name;
    const char *declared;            /* as models say its kind: "csr f32", "class" */
    int32_t kind;                    /* a gnnc_kind */
    int32_t is_label;                /* only training and evaluating read it */
    int32_t rank;                    /* of a row's value */
    const char *size[GNNC_MAX_RANK]; /* [rank] what the model calls these sizes */
    const char *categories;          /* .. and the number of them; NULL = it has none */
} gnnc_needed_column;
int gnnc_program_n_tables(const gnnc_program *program);
/* GNNC_E_RANGE: no such table, no such column. */
gnnc_status gnnc_program_table(const gnnc_program *program, int table, gnnc_needed_table *out);
gnnc_status gnnc_program_column(const gnnc_program *program, int table, int column,
                                gnnc_needed_column *out);

/* Names of parameters, in the program's order, then those of state (is_state, which may be NULL:
 * 1); data tell their shapes.  NULL: no parameter i. */
int gnnc_program_n_parameters(const gnnc_program *program);
const char *gnnc_program_parameter(const gnnc_program *program, int i, int *is_state);

/* ---- the command line of a compiled trainer --------------------------------------------- */
/* What a generated main() calls: subcommands train, eval, predict, embed, bench, info.
 * The one function here that prints.  While it trains, SIGINT, SIGTERM, SIGHUP and SIGPIPE
 * are blocked and asked for after each step (no handler, no global); the mask is restored.
 * SIGBUS ends the process with a message while it runs: a mapped file has shrunk.
 * Returns 0, 1 (diagnosed failure), 2 (usage), 128 + n (stopped by signal n, saved). */
int gnnc_trainer_main(const gnnc_program *model, int argc, char **argv);
/* The same with the model's program of --emit=infer, by which predict gives the rows that it is
 * asked for, without the others; NULL: there is none. */
int gnnc_trainer_main_with(const gnnc_program *model, const gnnc_program *rows, int argc,
                           char **argv);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
