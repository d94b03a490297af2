/* Training and evaluating a model that scores links: what each step has beside the graph.
 *
 * A step's links are edge spaces of the program that only the step has (RT_REL_LINKS and so on): a
 * batch binds them, their columns and their maps, in memory that the next one reuses.  Batches of
 * training are train_batches.h's: their seeds are edges, or queries. */
#ifndef RUNTIME_LINK_BATCHES_H
#define RUNTIME_LINK_BATCHES_H

#include "draw.h"
#include "links.h"
#include "minibatch.h"
#include "runtime/trainer/trainer.h"

typedef struct RtLinkBatches RtLinkBatches; /* link_impl.h */

/* What was drawn for a step; ends are rows of the data. */
typedef struct RtLinkBatch {
    bool queries, held_out; /* of queries, not links; of an evaluation */
    int64_t n;              /* links or queries */
    RtStepEdges pairs;      /* links, then their negatives, as many of each */
    uint64_t negative_key;  /* .. of training: what these are drawn by */
    RtStepQueries asked;    /* of queries; held out, with the lists that metrics read */
    /* Of pairs that a request brings, which are no edges of the data, else NULL: */
    const RtColumn *pair_columns; /* [n_columns] those that are brought */
    const int32_t *pair_rows;     /* [n] .. and the pairs' rows in them */
    const double *when;           /* [n] of links by time */
    const int32_t *key;           /* [n] what they draw by */
} RtLinkBatch;

/* Who draws what lies around links. */
typedef struct RtLinkDrawer {
    const RtDrawer *by;
    RtSampler *here;
    int slot;     /* of the device's */
    bool chooses; /* the device draws the negatives, too */
} RtLinkDrawer;

/* Columns of links whose values come with requests. */
bool rt_link_column_is_in_request(const rt_program *p, int column);

gnnc_status rt_link_batches_start(gnnc_trainer *t);
/* Of the edges that x is bound to, whose splits and kinds (NULL: of one) are given: what they ask,
 * their columns and times, in x's memory; which relation b is of is there. */
gnnc_status rt_link_batches_index(RtExec *x, RtLinkBatches *b, const int32_t *split,
                                  const int32_t *kind);
void rt_link_batches_stop(gnnc_trainer *t); /* a program without links: nothing */
/* Are edges along the sampled relation `space` not drawn where they join the ends of a link, being
 * edges of what is scored? */
bool rt_link_batches_hides(const gnnc_trainer *t, int space);
/* Edges, or queries that have one, of the training split: how many, and which. */
int64_t rt_link_batches_seeds(const gnnc_trainer *t, int32_t *out);
const RtRelation *rt_link_batches_scored(const gnnc_trainer *t); /* NULL: the model scores none */
int rt_link_batches_base(const gnnc_trainer *t);                 /* .. its space; -1 */
/* The relation that is scored, and of which types of a batch its ends are. */
const RtRelation *rt_link_batches_ends(const gnnc_trainer *t, const RtBatchMap *map, int type[2]);
/* For n seeds, with negatives that are a function of `at`; in `pool`.  elsewhere: their ends are
 * chosen when their neighbours are drawn (link_draw.h). */
gnnc_status rt_link_batches_draw(const gnnc_trainer *t, RtPool *pool, const RtSampleAt *at,
                                 const int32_t *seed, int64_t n, bool elsewhere, RtLinkBatch *out,
                                 RtError *err);
/* Cuts what lies around the pairs out of the graph, into the batch of m, and makes their ends rows
 * of it.  A link and its negatives share a tree and its time, where there are such. */
gnnc_status rt_link_batches_neighbourhood(const RtLinkBatches *b, RtSampler *s,
                                          const RtSampleAt *at, const RtBatchMap *map,
                                          RtMinibatch *m, RtLinkBatch *of, RtError *err);
/* Its two halves: the seeds, in two groups, and, once they are drawn, the pairs' ends. */
gnnc_status rt_link_batches_ends_as_seeds(const RtLinkBatches *b, const RtBatchMap *map,
                                          RtMinibatch *m, const RtLinkBatch *of, RtSeeds seeds[2],
                                          RtError *err);
void rt_link_batches_take_ends(const RtMinibatch *m, RtLinkBatch *of);
/* As rt_link_batches_neighbourhood(). */
gnnc_status rt_link_batches_draw_around(const RtLinkBatches *b, const RtLinkDrawer *by,
                                        const RtSampleAt *at, const RtBatchMap *map, RtMinibatch *m,
                                        RtLinkBatch *of, RtError *err);
/* The seeds of a device's sampler for batches of so many links of the training split, whose
 * negatives it chooses. */
void rt_link_batches_seeds_there(const gnnc_trainer *t, const RtBatchMap *map, int64_t batch,
                                 RtDeviceSamplerSpec *spec);
/* Links by time are judged and predicted with what a device draws, too, that has the arrays of
 * `like`, which must outlive the batches; space [n_rels] of each relation of the graph.  Other
 * links, or none: nothing. */
gnnc_status rt_link_scores_draw_there(gnnc_trainer *t, const RtSampleGraph *g,
                                      const RtSampleSpec *spec, const int *space,
                                      const RtDeviceSampler *like);
/* The device draws negatives of held-out links, too, with the arrays of `like`, which must outlive
 * the trainer's batches.  Links that have none drawn: nothing. */
gnnc_status rt_link_negatives_draw_there(gnnc_trainer *t, const RtDeviceSampler *like);
/* Links by time are judged and predicted with neighbours from this graph, too, by at most so many
 * members of the trainer's team; all of it must outlive the trainer's batches.  Other links:
 * nothing.
 */
gnnc_status rt_link_batches_set_sampler(gnnc_trainer *t, const RtSampleGraph *g,
                                        const RtSampleSpec *spec, const RtBatchMap *map,
                                        int n_members);
/* Binds them beside the batch, or the whole graph, that m is bound to; ends are its rows. */
gnnc_status rt_link_batches_bind(const RtLinkBatches *b, RtMinibatch *m, const RtLinkBatch *of,
                                 RtError *err);
/* A device notes metrics from `first` on: so many. */
gnnc_status rt_link_batches_notes(gnnc_trainer *t, int64_t first, int64_t *n);
/* Runs "eval": every metric of both held-out splits; of links by time "predict": all edges. */
gnnc_status rt_link_batches_run(gnnc_trainer *t, const rt_phase *phase);
/* What that gave as output `buf`, in canonical order; NULL: it is none of theirs, or did not run.
 */
const void *rt_link_batches_value(const gnnc_trainer *t, int buf, int64_t *n_rows);
/* Training needs edges to learn from, and some to choose an epoch by. */
gnnc_status rt_link_batches_check(gnnc_trainer *t);
gnnc_status rt_link_batches_check_train(gnnc_trainer *t); /* the former alone */
/* Of a phase that rt_link_batches_run runs, and of no other; NULL: it is none. */
const int64_t *rt_link_batches_sizes(const gnnc_trainer *t, const rt_phase *ph);

#endif
