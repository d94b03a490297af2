/* Arrow arrays as columns: graph_arrow.c walks a record batch, graph_arrow_values.c reads one of
 * its columns. */
#ifndef RUNTIME_GRAPH_ARROW_H
#define RUNTIME_GRAPH_ARROW_H

#include "gnnc_arrow.h"
#include "graph.h"

/* A column of a batch; then what it becomes. */
typedef struct RtField {
    const struct ArrowSchema *schema;
    const struct ArrowArray *array;
    int64_t start, n;  /* rows start to start + n of the array's buffers */
    const char *where; /* "paper.x" in messages */
    gnnc_kind kind;
    gnnc_array out;           /* the buffer itself, borrowed, or an array in the scratch pool */
    int64_t n_categories;     /* of codes */
    const char *const *names; /* [n_categories]; NULL = none */
} RtField;

/* The kind of a column of which the caller says nothing.  E_DTYPE: a type that no kind has. */
gnnc_status rt_field_kind(const RtField *f, gnnc_kind *kind, RtError *err);
/* Sets out, n_categories, names.  E_DTYPE: not for the kind; E_VALUE: a null that the kind has no
 * value for; E_RANGE, E_FORMAT, E_ARG: no array as the interface wants them. */
gnnc_status rt_field_read(RtField *f, RtPool *scratch, RtError *err);

#endif
