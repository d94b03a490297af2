/* What session.c, of rows of nodes and graphs, session_graphs.c, session_embed.c, session_links.c,
 * session_whole.c, session_subgraph.c and session_subgraph_links.c share. */
#ifndef RUNTIME_SESSION_H
#define RUNTIME_SESSION_H

#include <stdatomic.h>

#include "runtime/batch/batch_source.h"
#include "runtime/batch/batch_step.h"
#include "runtime/batch/graph_parts.h"
#include "runtime/batch/link_batches.h"
#include "runtime/model/codes.h"
#include "runtime/data/names.h"
#include "runtime/graph/graph.h"
#include "runtime/model/model.h"
#include "runtime/trainer/trainer.h"

/* A column that is brought with pairs. */
typedef struct RtPairColumn {
    const char *name;
    int column;    /* of the program's; a link's time has that of the edges' where it is not read */
    bool is_time;  /* what is known to the pair is told by it */
    bool is_read;  /* by kernels */
    RtNames names; /* of its categories, by the model's codes; cap 0: they have none */
    const char *table;    /* of the edges */
    const RtEncoder *how; /* what it was made of for the model; NULL: nobody says */
} RtPairColumn;

/* Links of a pair's kind, by their number: gnnc_session_link_sizes. */
typedef struct RtEdgeKinds {
    int64_t n;     /* one more than the highest that an edge is of */
    int32_t *edge; /* [n] an edge of this kind; -1: none is */
} RtEdgeKinds;

/* What is computed over the whole graph and read by predictions. */
typedef struct RtFullGraphValue {
    const char *name; /* "whole.degree.cites" */
    int buf, space;   /* whose rows it has; -1: it is of no table */
    int table;        /* .. and the data's table of these; -1: several of its rows make one */
    rt_dtype dt;
    int rank; /* of a row */
    int64_t dim[GNNC_MAX_RANK], width;
} RtFullGraphValue;

/* Rows of parameters that nodes of a subgraph have. */
typedef struct RtParameterRows {
    const char *parameter; /* the first that has them; NULL: none */
    int64_t n;
    RtNames names; /* of the rows; cap 0: they are called by their numbers */
} RtParameterRows;

/* Of a model whose requests bring subgraphs. */
typedef struct RtSubgraphModel {
    int64_t *known;        /* [n_syms] sizes that the weights tell; -1: a request's own */
    RtParameterRows *rows; /* [n_spaces] */
} RtSubgraphModel;

/* What is given by rows: the prediction, or a layer. */
typedef struct RtRowOutput {
    const char *name; /* of a layer */
    int buf;
    bool precomputed; /* all rows were computed by open: no batch gives them */
    int type;  /* of a batch's nodes, whose rows are asked for; -1: they are graphs, or links */
    int hops;  /* that a batch draws for them */
    int64_t n; /* rows of that type */
    int space; /* .. which in the program is this one */
    int rank;  /* of a row of it */
    int64_t dim[GNNC_MAX_RANK], row_width;
    const char
        *unknown_dim; /* without a graph: a dimension of it that no parameter tells; NULL: none */
} RtRowOutput;

/* What sessions share. */
typedef struct RtSessionShared {
    atomic_int n_sessions;
    gnnc_model *model;
    gnnc_trainer *t;
    RtBatchSource source; /* of rows */
    RtRowOutput rows;     /* what is predicted */
    bool links;           /* .. which is scores of links */
    bool graphs;          /* batches are of whole graphs */
    RtParts parts;        /* .. which lie in the data so */
    RtRowOutput *layer;   /* [n_layers] */
    int n_layers;
    RtFullGraphValue *full_graph; /* [n_full_graph] */
    int n_full_graph;
    RtSubgraphModel *subgraph_model; /* NULL: the trainer's graph is what is predicted on */
    RtEdgeKinds kinds;
    bool reads_edges;          /* of a pair's kind, what it is scored from */
    bool samples_neighbours;   /* .. of what is around it at its time */
    RtPairColumn *pair_column; /* [n_pair_columns] */
    int n_pair_columns;
} RtSessionShared;

/* A request: the graph that the caller fills, and what it is bound as. */
typedef struct RtSubgraphRequest {
    RtRecycle graph_memory, memory;
    gnnc_graph *graph; /* NULL: none was asked for yet */
    RtRuntime rt;
    RtExec x;
    RtSampleType *type;   /* [n_types] */
    RtSampleRel *rel;     /* [n_rels] */
    RtParts parts;        /* of many graphs */
    const int32_t **row;  /* [n_spaces] RtMinibatch.row */
    void **full_graph;    /* [n_full_graph] values of no table */
    bool *has_full_graph; /* [n_full_graph] .. that are there */
    RtLinkBatches *links; /* of links: its edges */
    RtEdgeKinds kinds;
    RtBatchStep ends; /* what scores read of its nodes */
    bool has_memory;  /* once: there is room */
} RtSubgraphRequest;

/* What came with the pairs of a request. */
typedef struct RtPairs {
    gnnc_pairs in;
    gnnc_graph one;     /* whose only table they are */
    RtRecycle memory;   /* of it */
    RtColumn *column;   /* [n_columns] of the program */
    const double *time; /* [n] NULL: links are not by time */
} RtPairs;

struct gnnc_session {
    RtAlloc from;
    char device[RT_OPTION_TEXT_SIZE]; /* where it is to run; "": the host */
    RtSessionShared *of;              /* NULL: no data yet */
    RtRuntime rt;
    RtExec x;           /* the whole data, with errors and working memory of the session's */
    RtSampler *sampler; /* of rows */
    RtMinibatch m;
    RtBatchStep step, embed, explain;
    RtSubgraphRequest *request; /* NULL: rows are the graph's */
    RtPairs pairs;              /* of links */
    int32_t *id;                /* [BATCH] the rows of a batch */
    int32_t *graph; /* [BATCH] .. the graphs that it is made of; NULL: it is drawn around rows */
    int32_t *row;   /* [BATCH] .. and what its rows are in it */
    double *time;   /* [BATCH] .. and their times; NULL: the model knows none */
    uint64_t seed;
    bool ran, embedded, explained; /* once: there is room */
    double **baselines; /* [n_columns] explain.h; NULL: no explanation was asked for yet */
    struct RtSessionTensor *tensor; /* session_dlpack.c; NULL: none was given yet */
    atomic_int n_holders;           /* the host, and the tensor that it has */
};

/* When rows are asked about; put: rt_bind_at, which only who calls session_at.c is linked with. */
typedef struct RtSessionAt {
    double time;
    gnnc_status (*put)(RtExec *x, RtDataset *view, double at);
} RtSessionAt;

/* g NULL: requests bring subgraphs; at NULL: rows are asked about when the data say. */
gnnc_status rt_session_open(gnnc_session *s, gnnc_model *m, gnnc_graph *g, const RtSessionAt *at);
/* Before each call: GNNC_E_STATE where there are no data. */
gnnc_status rt_session_opened(gnnc_session *s);
/* .. or the model gives the other sort of predictions: rows of nodes, or scores of links. */
gnnc_status rt_session_begin(gnnc_session *s, bool links);
gnnc_status rt_session_no_row(gnnc_session *s, const char *what, int64_t i, int64_t n);

/* What a batch gave of its rows row[n], to `out`. */
typedef gnnc_status RtStoreRows(gnnc_session *s, const RtRowOutput *what, const int32_t *row,
                                int64_t n, void *out);
/* The same, batch by batch: `out` moves on. */
gnnc_status rt_session_rows(gnnc_session *s, const RtRowOutput *what, int64_t n, const int64_t *id,
                            RtStoreRows *take, void *out);
/* What that row is predicted from, to s->m.batch. */
gnnc_status rt_session_draw(gnnc_session *s, int64_t row);
/* GNNC_E_STATE where rows are not those of a graph. */
gnnc_status rt_session_begin_on_graph(gnnc_session *s);
/* What the rows of an output are. */
gnnc_status rt_session_rows_of(RtSessionShared *of, int buf, RtRowOutput *out);
/* Rows id[0..n), NULL: the first n, of the graph, or of the request that is bound. */
gnnc_status rt_session_predict_rows(gnnc_session *s, const RtRowOutput *what, int64_t n,
                                    const int64_t *id, float *out);

/* session_graphs.c: batches of whole graphs.  of->parts; edges between two graphs are refused. */
gnnc_status rt_session_graphs_share(RtSessionShared *of);
/* The graphs of the request that is bound. */
gnnc_status rt_session_graphs_read(gnnc_session *s);
/* Rows s->id[0..n) of `what`: the graphs that have them, and s->row. */
gnnc_status rt_session_graphs_draw(gnnc_session *s, const RtRowOutput *what, int64_t n);

/* of->layer; the rest is there. */
gnnc_status rt_session_find_layers(RtSessionShared *of);

/* of->whole. */
gnnc_status rt_session_find_full_graph(RtSessionShared *of);
/* n rows of f32 as the program has them: GNNC_E_RANGE for what is no integer, where it has these.
 */
gnnc_status rt_session_full_graph_store(const RtFullGraphValue *w, const float *from, int64_t n,
                                        void *to, RtError *err);

/* A graph with the program's tables and columns, of the sizes that the weights given to the trainer
 * tell, and otherwise without rows; the caller's. */
gnnc_status rt_session_empty_graph(gnnc_trainer *t, RtSubgraphModel **brings, gnnc_graph **out);
/* What all sessions without a graph read. */
gnnc_status rt_session_subgraph_share(RtSessionShared *of);
/* Makes what the session needs for requests that bring a subgraph. */
gnnc_status rt_session_subgraph_open(gnnc_session *s, RtSessionShared *of);
/* Frees what belongs to requests that bring a subgraph. */
void rt_session_subgraph_drop(gnnc_session *s);
/* Gives a clone the values of the full graph that the session was given. */
void rt_session_subgraph_copy(gnnc_session *to, const gnnc_session *from);
/* Before each request over one, whose subgraph is then bound. */
gnnc_status rt_session_subgraph_begin(gnnc_session *s, bool links);
gnnc_status rt_session_subgraph_bind(gnnc_session *s);

/* session_subgraph_links.c: the subgraph's edges, and what scores read of its nodes. */
/* Refuses a model that subgraphs cannot be brought to: one that reads, in batches, edges which a
 * condition chooses among derived ones. */
gnnc_status rt_session_ends_share(RtSessionShared *of);
/* Of a session; of a request whose sizes, columns and base relations are bound. */
gnnc_status rt_session_ends_open(gnnc_session *s, const RtSessionShared *of);
void rt_session_ends_drop(RtSubgraphRequest *b);
gnnc_status rt_session_ends_bind(gnnc_session *s);

/* session_device.c: where predictions are made.  What all sessions read is there, and nothing
 * changes it from now on; a session's own queue; who calls works with that device, behind the
 * host's stream. */
gnnc_status rt_session_device_share(RtSessionShared *of);
gnnc_status rt_session_device_open(gnnc_session *s, const RtSessionShared *of);
gnnc_status rt_session_device_begin(gnnc_session *s);
void rt_session_tensor_drop(gnnc_session *s);

/* What all sessions of links read; the trainer has its data and weights. */
gnnc_status rt_session_links_share(RtSessionShared *of);
/* The kinds of l's edges. */
gnnc_status rt_session_find_kinds(RtPool *pool, const RtLinkBatches *l, RtEdgeKinds *k,
                                  RtError *err);
/* Scores of the pairs that were taken, and the best destinations of their sources. */
gnnc_status rt_session_score(gnnc_session *s, float *out);
/* The k best destinations of each source, best first. with_known: also those that the data list. */
gnnc_status rt_session_best(gnnc_session *s, int64_t k, bool with_known, int64_t *dst,
                            float *score);

/* session_pairs.c: columns that come with pairs.  of->pair_column. */
gnnc_status rt_session_pairs_share(RtSessionShared *of);
gnnc_status rt_session_pairs_init(gnnc_session *s, const RtSessionShared *of);
void rt_session_pairs_drop(gnnc_session *s);
/* s->pairs, of a request that the caller made; then pairs_end(), whatever this gave. */
gnnc_status rt_session_pairs_read(gnnc_session *s, const gnnc_pairs *in);
void rt_session_pairs_end(gnnc_session *s);

#endif
