/* What a gnnc_legend is made of: what rows of predictions are called, and what their numbers mean.
 * legend.c says what these are, legend_rows.c finds rows, legend_write.c writes them. */
#ifndef RUNTIME_LEGEND_H
#define RUNTIME_LEGEND_H

#include "runtime/data/dataset.h"
#include "runtime/data/names.h"
#include "runtime/data/relation.h"
#include "runtime/trainer/trainer.h"

struct gnnc_legend {
    RtAlloc from;
    RtPool pool;
    RtError err;
    int space;                /* of nodes, edges or graphs, whose rows are predicted */
    int end[2];               /* .. and of their ends, or the same twice */
    const char *what[2];      /* "paper" */
    const RtRelation *edges;  /* of edges; else NULL */
    RtRelation own;           /* .. where the trainer has them no more */
    RtDataset *again;         /* of data that were opened once more for them */
    RtGroups by_source;       /* .. once links are asked for */
    const char *const *id[2]; /* by end: what its rows are called; NULL = by number */
    RtNames names;            /* of id[0]; cap 0: not asked for yet */
    int64_t n_rows, n_nodes;  /* there are to predict; of end 0 */
    bool pairs;               /* rows are of any pair, not of edges alone */
    int64_t width;            /* numbers of a row */
    int rank;                 /* .. as the model gives them */
    int64_t dim[GNNC_MAX_RANK];
    rt_outcome is;      /* what they are */
    bool classes;       /* one of them is true */
    bool labels;        /* or any: the highest can be picked */
    bool numbered;      /* their names are whole numbers */
    const char *word;   /* "probability" */
    const char **value; /* [width] what they are called, without the word */
};

/* The edges of g->space, whose rows are predicted. */
gnnc_status rt_legend_edges(gnnc_legend *g, const gnnc_trainer *t, RtError *err);

#endif
