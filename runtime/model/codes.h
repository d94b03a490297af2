/* What a model's codes mean.  A category or class is a number in the data, made by whoever imported
 * them: the same name may have another number in other data.  So files of weights hold the names of
 * the codes that the model was trained with, and data are bound by them: a code of the data becomes
 * the model's code of the same name.
 *
 *     metadata "names:paper.city" = ["ankara", "berlin", "cairo"]    by code, as JSON */
#ifndef RUNTIME_CODES_H
#define RUNTIME_CODES_H

#include "encoders.h"
#include "runtime/data/dataset.h"
#include "runtime/data/safetensors.h"
#include "runtime/exec/exec.h"

typedef struct RtCodes {
    const char *of; /* "paper.city"; NULL = a column without names */
    int64_t n;
    const char *const *names; /* [n] */
} RtCodes;

/* A file of weights, or memory, that was given before the data, which are bound as it says. */
typedef struct RtWeightsFile {
    RtPool pool; /* the file's, until the data are loaded */
    const char *path;
    bool resumes; /* training goes on from it */
    RtTensors f;
    int n;
    RtCodes *codes; /* [n] of the trainer's pool */
    RtEncoders encoders;
} RtWeightsFile;

/* Reads it for the load to come; in the place of one that was given before.  Memory is copied. */
struct RtSource;
gnnc_status rt_weights_file_open(gnnc_trainer *t, const struct RtSource *from, bool resumes);
void rt_weights_file_close(RtWeightsFile *g); /* codes and path stay; NULL is fine */

/* The names in a file, of any columns: a list that repeats a name is E_FORMAT. */
gnnc_status rt_codes_read(RtPool *pool, const char *path, const RtTensors *f, RtCodes **v, int *n,
                          RtError *err);
const RtCodes *rt_codes_find(const RtCodes *v, int n, const char *of); /* NULL: no such */
/* Metadata for a file of weights, with the encoders: to[0 .. *n), at most so many. */
static inline int rt_codes_capacity(const rt_program *p) {
    return 2 * p->n_columns + p->n_spaces;
}
gnnc_status rt_codes_put(const RtExec *x, RtPool *pool, RtMeta *to, int *n);

/* While data are bound, after tables and before columns: their codes become those of the given
 * file.  E_RANGE: a row has a name that is not in the file, and its column has no code for unknown
 * ones; in a column that only training and evaluation read, such a row has no label, and these are
 * refused (rt_bind_require_labels). */
gnnc_status rt_codes_bind(RtExec *x);
/* Dimensions that no column gave a size, from the shapes of the given file's tensors. */
gnnc_status rt_weights_file_sizes(RtExec *x);
/* Without data: every size that these shapes tell, and rows that parameters have; n [n_syms], -1:
 * they do not. */
gnnc_status rt_weights_file_tell_sizes(const RtWeightsFile *g, const rt_program *p, RtPool *pool,
                                       int64_t *n, RtError *err);
/* Categories without names: as many as the given file's model has, if no row has a higher code;
 * of labels as above. */
gnnc_status rt_codes_fit(RtExec *x, int col, int64_t n_categories);
/* A file of weights against the data as they are bound.  E_ARG: other names. */
gnnc_status rt_codes_check(gnnc_trainer *t, const char *path, const RtTensors *f);

/* node_names.c: names of nodes, where parameters have a row for each.
 * The data's; and tensors of a file in their order.  E_RANGE: a node that the file does not have.
 */
gnnc_status rt_node_names_bind(RtExec *x);
gnnc_status rt_node_rows(gnnc_trainer *t, RtPool *pool, const char *path, RtTensors *f);
/* What the rows of a table of the data in `dir` are called, in weights and by users: the first of
 * the file `names`, a column `name` and a column `id` in which all rows differ.  Files of weights
 * hold names of this order: with another they could not be read beside data that have several.
 * *to [rows], NULL: they are not called anything. */
gnnc_status rt_row_names(RtPool *pool, const char *dir, const RtTable *t, const char *const **to,
                         RtError *err);
/* The table whose rows a dimension of a variable has; -1: none.  nodes_alone: node types only, no
 * edges and no graphs.  n: of rt_sizes_of, which it leaves as they are. */
int rt_rows_space(const RtExec *x, int var, int dim, int64_t *n, bool nodes_alone);
int64_t *rt_sizes_of(const RtExec *x, RtPool *pool); /* NULL: no memory */

#endif
