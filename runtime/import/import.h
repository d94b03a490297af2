/* Readers of other people's forms: each makes an RtDataset in memory, checked as
 * an opened one is; rt_dataset_write() makes it a data directory. */
#ifndef RUNTIME_IMPORT_H
#define RUNTIME_IMPORT_H

#include "runtime/data/csv.h"
#include "runtime/data/dataset.h"

/* Of a reference that leads to no row. */
typedef enum {
    RT_DANGLING_BAD,  /* its row is a bad one, though with skip_bad it stays, without the edge */
    RT_DANGLING_KEEP, /* the row stays, without the edge */
    RT_DANGLING_DROP, /* the row is left out */
    RT_DANGLING_STOP, /* the import fails, also with skip_bad */
} rt_dangling;

enum { RT_BAD_ROWS_TOLD = 10, RT_IMPORT_KINDS = 64 };
/* "paper.year=cat" or "year=cat": the kind of a column, against the guess. */
typedef struct RtKindOf {
    char column[160];
    rt_col_kind kind;
    bool used; /* out: there was such a column */
} RtKindOf;

/* "x=bf16": a float column in 16 bits; without a name: all rows of features. */
typedef struct RtLowOf {
    char column[160]; /* "" = every float column of several values a row that is no label */
    RtDtype dt;       /* of 16 bits */
    bool used;        /* out: it was rounded */
} RtLowOf;

/* Who says something of a table; what a later one says of it is not heard. */
typedef enum RtSaidBy { RT_SAID_BY_OPTION, RT_SAID_BY_MAP, RT_SAID_BY_SOURCE } RtSaidBy;

/* "orders.shipped": the rows happened then; other: they did not, and without a column not at any
 * time of the table. */
typedef struct RtRowTimeOf {
    char column[160];
    RtSaidBy by;
    bool other;
    bool used; /* out: there was such a time */
} RtRowTimeOf;

/* "nodes.csv=no": whether a file's first row has the names of its columns. */
typedef struct RtHeaderOf {
    char file[160]; /* its path or its last part */
    RtHeader header;
    bool used; /* out: there was such a file */
} RtHeaderOf;

/* Bad rows of one file. */
typedef struct RtBadFile {
    char file[160];
    int64_t n;
} RtBadFile;

/* A task that a source comes with: rows with answers, or a question. */
typedef struct RtSourceTask {
    const char *name;           /* the one that is wanted; NULL = none */
    const char *table;          /* .. as which */
    bool found;                 /* out: it is there */
    char query[2048];           /* out: what it asks; "" = the table is there */
    double val_time, test_time; /* out: of the question, and of what may be fitted to */
    struct {
        int top;                     /* so many items are ranked; 0: rows are no links */
        double window;               /* seconds from the time asked at until they are known */
        char entity[160], item[160]; /* the columns that refer to who asks, and to an item */
        char sql[4096];              /* the SELECT that made them, as far as it fits; "" = none */
    } links;                         /* out: of rows that are elements of the lists to predict */
} RtSourceTask;

typedef struct RtImport {
    const char *node, *edge;             /* names of the types; NULL = what the form suggests */
    const char *name, *source, *licence; /* for the schema; NULL = silent */
    bool normalize_rows;                 /* rows of a node's x sum to 1; rows of zeros stay */
    bool undirected;                     /* add the reverse of every edge, drop duplicates */
    bool relation_types; /* knowledge graphs: an edge type per relation, not a column `rel` */
    int n_kinds;
    RtKindOf kinds[RT_IMPORT_KINDS];
    int n_lows;
    RtLowOf lows[RT_IMPORT_KINDS];
    RtSourceTask source_task;
    int n_row_times;
    RtRowTimeOf row_times[RT_IMPORT_KINDS];
    int64_t n_nodes; /* where numbers are named: at least so many nodes; 0 = as many as are named */
    /* Text forms: every row that cannot be read is told to on_bad ("edges.csv: row
     * 7: .."; at most RT_BAD_ROWS_TOLD of them). With skip_bad they are left out,
     * else the import fails once all are told. */
    bool skip_bad;
    void (*on_bad)(void *user, const char *text);
    void *user;    /* of on_bad, on_warning, on_progress */
    int64_t n_bad; /* out; and of the first files that have some */
    int n_bad_files;
    RtBadFile bad_files[RT_IMPORT_KINDS];
    char first_bad[480];
    char cure[512]; /* out: of bad rows, where leaving them out is not the way; else "" */
    /* Told of what was read in a way that may not be meant. */
    void (*on_warning)(void *user, const char *text);
    /* Of tables of texts, where nothing else is said of a column: */
    bool keeps_numbers; /* a query asks for them: they stay as they were (RtColumn.exact) */
    /* Of cells that are paths of pictures: side * side numbers from 0 to 1 of red, then green, then
     * blue.  NULL, or what the file is not.  NULL: pictures are not read. */
    const char *(*read_image)(const char *path, int side, float *to);
    const char *folder; /* where their paths begin; NULL: where the import runs */
    const char *asked;  /* the query; texts of columns that it names stay names.  NULL: none */
    bool standardize;   /* numbers but labels are standardised (import_encode.h) */
    bool unknown;       /* categories have a code for names that are not there */
    int64_t rare;       /* .. and for those of fewer rows */
    const struct RtEncoders *like;  /* columns of tables of texts are made by these; NULL: fitted */
    const struct RtNamedBytes *map; /* of a lone table or two: the rules of --map; NULL: none */
    rt_dangling dangling;           /* what becomes of references that lead to no row */
    /* Told now and then of the rows of a table that were read, of how many; NULL: nobody. */
    void (*on_progress)(void *user, const char *table, int64_t n, int64_t n_all);
    RtHeader header; /* of CSV: whether row 1 has the names, in files that `headers` leaves out */
    int n_headers;
    RtHeaderOf headers[RT_IMPORT_KINDS];
} RtImport;

/* The .npz forms of docs/data.md: one graph, many graphs, several types, triples,
 * links, events.  Names of entities and relations are read from files beside it. */
gnnc_status rt_import_npz(const RtAlloc *from, const char *path, RtImport *how, RtDataset **out,
                          RtError *err);
gnnc_status rt_import_npz_bytes(const RtAlloc *from, RtBytes file, const char *name, RtImport *how,
                                RtDataset **out, RtError *err);
/* An edge list: two whole numbers a line, '#' and '%' start comments. */
gnnc_status rt_import_edge_list(const RtAlloc *from, const char *path, RtImport *how,
                                RtDataset **out, RtError *err);
/* CSV with headers, see docs/data.md; nodes may be NULL: ids are then collected
 * from the edges in order of appearance. */
gnnc_status rt_import_csv(const RtAlloc *from, const char *nodes, const char *edges, RtImport *how,
                          RtDataset **out, RtError *err);
typedef struct RtNamedBytes {
    const char *name; /* in messages */
    RtBytes text;
} RtNamedBytes;
gnnc_status rt_import_csv_bytes(const RtAlloc *from, const RtNamedBytes *nodes,
                                const RtNamedBytes *edges, RtImport *how, RtDataset **out,
                                RtError *err);
gnnc_status rt_import_edge_list_bytes(const RtAlloc *from, RtBytes text, const char *name,
                                      RtImport *how, RtDataset **out, RtError *err);
/* The Planetoid files ind.<name>.{x,tx,allx,y,ty,ally,graph,test.index} in `dir`. */
gnnc_status rt_import_planetoid(const RtAlloc *from, const char *dir, const char *name,
                                RtImport *how, RtDataset **out, RtError *err);
enum { RT_PLANETOID_FILES = 8 };
extern const char *const rt_planetoid_parts[RT_PLANETOID_FILES]; /* "x", "tx", ... */
gnnc_status rt_import_planetoid_bytes(const RtAlloc *from, const RtBytes file[RT_PLANETOID_FILES],
                                      RtImport *how, RtDataset **out, RtError *err);

/* A folder as DGL's GraphBolt (metadata.yaml), the Open Graph Benchmark (raw/, split/)
 * or a knowledge graph's publisher (train.txt, ..) leaves it; see docs/data.md. */
struct RtFolder;
gnnc_status rt_import_ondisk(const RtAlloc *from, const struct RtFolder *f, RtImport *how,
                             RtDataset **out, RtError *err);
gnnc_status rt_import_ogb(const RtAlloc *from, const struct RtFolder *f, RtImport *how,
                          RtDataset **out, RtError *err);
gnnc_status rt_import_triples(const RtAlloc *from, const struct RtFolder *f, RtImport *how,
                              RtDataset **out, RtError *err);
/* Several CSV tables that refer to each other; `mapping` names the keys. */
gnnc_status rt_import_tables(const RtAlloc *from, const struct RtFolder *f,
                             const RtNamedBytes *mapping, RtImport *how, RtDataset **out,
                             RtError *err);

/* ---- shared by the readers (import.c) ---------------------------------------- */
/* A data set of one node type with n rows and room for n_columns. */
gnnc_status rt_import_begin(const RtAlloc *from, const RtImport *how, int64_t n_nodes,
                            int n_columns, RtDataset **out, RtError *err);
/* Where the largest number in a file says how many nodes there are: a file of a few bytes must not
 * make a graph of gigabytes.  More than 1,000 nodes a row need the word of the user,
 * `how->n_nodes`: GNNC_E_RANGE. */
gnnc_status rt_import_check_ids(const RtImport *how, const char *name, int64_t n_nodes,
                                int64_t n_rows, RtError *err);
/* Adds the edge type; src, dst must outlive the data set. Columns stay in step
 * with `undirected`. */
gnnc_status rt_import_edges(RtDataset *d, const RtImport *how, int64_t n, const int32_t *src,
                            const int32_t *dst, int n_columns, RtColumn *columns, RtError *err);
/* Both directions of every edge, each once; columns follow their edge. The ends
 * are of one type. */
gnnc_status rt_import_undirected(RtDataset *d, RtTable *t, RtError *err);
/* The next free column of the node type: name, rows and rank 1 are set. */
RtColumn *rt_import_column(RtDataset *d, rt_col_kind kind, const char *name);
/* Does the query name the column? */
bool rt_import_is_asked(const RtImport *how, const char *column);
/* What --kind says of a column; false: nothing. */
bool rt_import_kind(RtImport *how, const char *table, const char *column, rt_col_kind *kind);
/* Adds what is said of the row time: `column` [n].  false: too many, or too long a name. */
bool rt_import_say_row_time(RtImport *how, RtSaidBy by, const char *column, size_t n, bool other);
/* RtColumn.why of a column that is a label by its name alone. */
extern const char rt_why_label[];
/* Whether the file has a header, as far as the user says. */
RtHeader rt_import_header(RtImport *how, const char *file);
/* Normalises rows if asked for, checks everything, warns of labels with too many classes. */
gnnc_status rt_import_finish(RtDataset *d, const RtImport *how, RtError *err);
/* Rounds what how->lows asks for to nearest even: RtColumn.low, and f32 to the same values.
 * E_RANGE: a value that would become infinite; E_MISSING: nothing to round; E_ARG: a label. */
gnnc_status rt_import_round(RtDataset *d, RtImport *how, RtError *err);
void rt_import_warn(const RtImport *how, const char *fmt, ...) RT_PRINTF(2, 3);
/* Notes a row that cannot be read. */
void rt_import_bad_row(RtImport *how, const char *file, int64_t row, const char *what);

#endif
