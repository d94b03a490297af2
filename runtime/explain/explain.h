/* What explain.c, explain_paths.c and explain_mask.c share: how a prediction is taken apart. */
#ifndef RUNTIME_EXPLAIN_H
#define RUNTIME_EXPLAIN_H

#include "runtime/session/session.h"

struct gnnc_explanation {
    RtAlloc from;
    RtPool pool;
    gnnc_explanation_info is;
    gnnc_part *part; /* [is.n_parts] */
};

/* Relations from the row that is asked about: a path is another one and a relation more. */
typedef struct RtExplainPath {
    int parent, rel; /* -1: a row of a table alone */
    const char *name;
    int64_t n_rows; /* that it leads to, once for each way there */
} RtExplainPath;

/* What of the neighbourhood is left out. */
typedef enum {
    RT_CUT_NOTHING,
    RT_CUT_TYPE, /* edges to and from rows of that type but the one that is asked about */
    RT_CUT_RELATION,
    RT_CUT_PATH, /* edges at its end */
    RT_CUT_AGE,  /* edges of that age, and those to and from such rows */
    RT_CUT_ALL
} RtExplainCut;

/* The edges of a relation as they were drawn. */
typedef struct RtExplainEdges {
    int64_t n, *ptr, *pos, *end;
    int32_t *src, *dst, *id; /* id NULL: there are none */
} RtExplainEdges;

enum { RT_N_AGES = 9, RT_AGE_LATER = 7, RT_AGE_NONE = 8, RT_MASK_NONE = -1, RT_MASK_ALL = -2 };

typedef struct RtExplain {
    gnnc_session *s;
    gnnc_explanation *e;
    RtPool *pool; /* of what is dropped when it is made */
    const rt_program *p;
    const RtBatchMap *map;
    RtBatch *b;
    double others; /* weight of a row's other numbers beside the one that is explained */
    RtExplainPath *path;
    int n_paths, path_room;
    int **node_path, **edge_path; /* [n_types][n], [n_rels][n] numbers of paths; -1: none leads
                                     there */
    int8_t **node_age, **edge_age;
    RtExplainEdges *edges; /* [n_rels] */
    double **usual;        /* [n_columns] what stands for an unknown value: of each of a row's; the
                              session's, as it does not hang on the row */
    int masked;            /* column; or RT_MASK_* */
} RtExplain;

/* The type or relation of the batch whose rows a space has; -1: none. */
int rt_explain_type(const RtExplain *x, int space);
int rt_explain_relation(const RtExplain *x, int space);
const char *rt_explain_table(const RtExplain *x, int space); /* of the data: "orders" */
bool rt_explain_is_asked(const RtExplain *x, int type, int64_t node);

/* explain_paths.c: how rows were reached, and how old they were then. */
gnnc_status rt_explain_paths(RtExplain *x);
const char *rt_explain_age(int age); /* "7 to 30 days" */

/* explain_mask.c.  Copies the edges of the batch, as it was drawn, to x->edges. */
gnnc_status rt_explain_keep(RtExplain *x);
/* Gives the batch those edges of x->edges that are not cut.  which: number of the type, relation,
 * path or age that `how` cuts. */
void rt_explain_cut(RtExplain *x, RtExplainCut how, int which);
/* What columns are masked by: the first time a pass over all of them. */
gnnc_status rt_explain_usual(RtExplain *x);
RtEditColumn rt_explain_edit;

#endif
