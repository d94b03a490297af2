/* Data sets of several tables, made piece by piece: what the readers of the many-type
 * forms share.  A data set begun with rt_build_begin() has room for the tables that
 * it announced; columns may be added without limit. */
#ifndef RUNTIME_IMPORT_BUILD_H
#define RUNTIME_IMPORT_BUILD_H

#include "import.h"

typedef struct RtBuild {
    RtDataset *d;
    RtImport *how;
    RtError *err;
    const char *name; /* of the file or folder, in messages */
    int room[3];      /* node, edge and graph tables */
    gnnc_status st;   /* why the last rt_build_column() that failed did */
} RtBuild;

/* On failure there is no data set; otherwise the caller closes b->d. */
gnnc_status rt_build_begin(RtBuild *b, const RtAlloc *from, const char *name, RtImport *how,
                           int n_nodes, int n_edges, int n_graphs, RtError *err);
/* Checks all columns, ends and pointers, and that every --kind was needed. */
gnnc_status rt_build_finish(RtBuild *b);
/* How every reader ends: frees its pool; *out = the data set if st is OK, else NULL.  Returns st.
 */
gnnc_status rt_build_end(RtBuild *b, RtPool *scratch, gnnc_status st, RtDataset **out);

/* Each sets *out to the new table, which stays where it is.  A name that is no
 * identifier is made one ("written by" -> written_by); E_FORMAT: taken already. */
gnnc_status rt_build_nodes(RtBuild *b, const char *name, int64_t count, RtTable **out);
gnnc_status rt_build_graphs(RtBuild *b, const char *name, int64_t count, RtTable **out);
/* Ends [2, n] are kept, not copied.  With `undirected` edges within one type become
 * both directions when the data set is finished. */
gnnc_status rt_build_edges(RtBuild *b, const char *name, const RtTable *src, const RtTable *dst,
                           int64_t n, const int32_t *from, const int32_t *to, RtTable **out);

/* A new column of rank 1 without values yet; NULL: b->st, no memory or a name that is taken. */
RtColumn *rt_build_column(RtBuild *b, RtTable *t, rt_col_kind kind, const char *name);
/* An array [rows, ..] as a column of the kind that its name and element type suggest
 * (docs/data.md); whole numbers [rows, W] as W columns name_0, name_1, ..
 * `where` names the array in messages. */
gnnc_status rt_build_array(RtBuild *b, RtTable *t, const char *name, const char *where,
                           const RtArray *a);
/* The vocabulary of a table: column `name`, row i is category i. */
gnnc_status rt_build_names(RtBuild *b, RtTable *t, const char *const *names);

/* The column `split` of n_splits parts, all "none"; or the one that is there. */
gnnc_status rt_build_split(RtBuild *b, RtTable *t, int n_splits, RtColumn **out);
/* Row `row` of split k is in part 1, 2 or 3; E_RANGE: no such row, or twice. */
gnnc_status rt_build_part(RtBuild *b, RtColumn *split, int k, const char *where, int64_t row,
                          int part);

/* "_3d_shape" from "3d shape": letters, digits and '_', no word of the language; of an identifier
 * itself. */
char *rt_identifier(RtPool *pool, const char *s, size_t n);
/* What a column's name says of its kind, in all forms alike. */
bool rt_is_label(const char *name);    /* y, label, labels, class */
bool rt_is_time(const char *name);     /* t, time, timestamp, date, .._time, .._date */
bool rt_may_be_time(const char *name); /* ..date, ..time, ..day, in any case */
bool rt_is_id(const char *name);       /* id, .._id, ..Id, ..ID, in any case */
/* The length of "race" in "race_id", "raceId", "RaceID", "raceid"; 0: no such name.  *sure: the
 * name says so by itself, which "raceid" does not ("paid"). */
size_t rt_id_stem(const char *name, size_t n, bool *sure);
/* Texts cut at line ends; empty lines and a last one without its end count as lines. */
gnnc_status rt_lines(RtPool *pool, RtBytes text, const char *name, const char ***line, int64_t *n,
                     RtError *err);

/* ---- knowledge graphs ------------------------------------------------------------- */
typedef struct RtTriples {
    int64_t n, n_entities, n_relations;
    const int32_t *head, *rel, *tail;               /* [n] each, checked */
    const int8_t *split;                            /* [n] or NULL */
    const char *const *entities, *const *relations; /* names or NULL */
} RtTriples;
/* Node type `entity` and its edges: type `triple` with a column `rel`, or with
 * how->relation_types an edge type per relation. */
gnnc_status rt_build_triples(RtBuild *b, const RtTriples *t, RtTable **entities);
int rt_triples_tables(const RtImport *how, int64_t n_relations); /* edge types it makes */

#endif
