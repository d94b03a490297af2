/* Rows by time: what a row may see depends on its own time, so there is no view of the whole graph
 * that is right for all of them.  "predict" and "embed" run over batches of rows with the
 * neighbours that training would draw for them.  These depend on the row alone, so neither the size
 * of batches nor what else is in one changes a result.  What "predict" gives of the labelled rows
 * is put together, and "eval" judges all of it at once: every metric is that of the whole split. */
#ifndef RUNTIME_ROW_BATCHES_H
#define RUNTIME_ROW_BATCHES_H

#include "minibatch.h"
#include "runtime/trainer/trainer.h"
#include "runtime/sample/sample.h"

struct RtDeviceSampler;

/* Rows (or graphs) of a split of the target that have a label, in the order of the data: how many,
 * and which; `out` may be NULL. */
int64_t rt_rows_of_split(const gnnc_trainer *t, int split, int32_t *out);
/* Draws from this graph in batches of so many rows of a type, with at most so many members of the
 * trainer's team; all of it must outlive the trainer's batches.  A program that does not see rows
 * by time: nothing. */
gnnc_status rt_row_batches_start(gnnc_trainer *t, const RtSampleGraph *g, const RtSampleSpec *spec,
                                 const RtBatchMap *map, int type, int64_t batch, int n_members);
/* Then: a device draws them, that has the arrays of `like`, which outlives the batches; space
 * [n_rels] of each relation.  Without such batches: nothing. */
gnnc_status rt_row_batches_draw_there(gnnc_trainer *t, const int *space,
                                      const struct RtDeviceSampler *like);
void rt_row_batches_stop(gnnc_trainer *t);
/* Once columns are bound: with the option eval_rows, others than so many rows of each split are in
 * none for "eval". */
gnnc_status rt_row_batches_limit_judged(gnnc_trainer *t);
/* Runs "eval", over what "predict" gives of the labelled rows of all splits: of batches that
 * several processes share out (eval_shares.h). */
gnnc_status rt_row_batches_evaluate(gnnc_trainer *t, const rt_phase *eval);
/* Runs "eval", over these predictions of all rows; the trainer has such batches and no device. */
gnnc_status rt_row_batches_judge(gnnc_trainer *t, const rt_phase *eval, const float *values);
/* Runs "predict" or "embed" over all rows. */
gnnc_status rt_row_batches_run(gnnc_trainer *t, const rt_phase *phase);
/* What "predict" gives as output `buf`, f32, for rows id[0 .. n), which there are; NULL: the first
 * n. */
gnnc_status rt_row_batches_some(gnnc_trainer *t, int buf, int64_t n, const int64_t *id, float *out);
/* What all gave as output `buf`, of so many rows; NULL: it is none of theirs, or did not run. */
const void *rt_row_batches_value(const gnnc_trainer *t, int buf, int64_t *n_rows);
int64_t rt_row_batches_rows(const gnnc_trainer *t); /* there are; the trainer has such batches */
const int64_t *rt_row_batches_sizes(const gnnc_trainer *t, const rt_phase *ph); /* NULL: none */

#endif
