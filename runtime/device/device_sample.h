/* Batches of neighbours drawn by a device (cuda/sample.h): those of rt_sample_nodes(), in every
 * array.  The graph's arrays are those that the trainer's maps have there, and copies of what these
 * lack; all memory is taken when the sampler is made, for the largest batch that fan-outs and the
 * graph allow.  Used by one thread at a time, which waits
 * for its batch; work goes into a queue of its own. */
#ifndef RUNTIME_DEVICE_SAMPLE_H
#define RUNTIME_DEVICE_SAMPLE_H

#include "runtime/device/device.h"
#include "runtime/sample/sample.h"

typedef struct RtDeviceSampler RtDeviceSampler;

/* Why a program's batches cannot be drawn there; NULL = they can. */
const char *rt_device_sampler_lacks(const rt_program *p);

/* For batches of at most n_seeds rows of node type `type`, in n_slots slots.  space [n_rels]: of
 * each relation of the graph, in the program.  The graph must outlive the sampler.  GNNC_E_RANGE
 * where a hop might have 2^31 edges; GNNC_E_NOMEM names the memory that was asked for.  Failures
 * are the trainer's (x->rt->err). */
gnnc_status rt_device_sampler_new(RtDeviceSampler **out, RtExec *x, const RtSampleGraph *g,
                                  const int *space, const RtSampleSpec *spec, int type,
                                  int64_t n_seeds, int n_slots);
void rt_device_sampler_free(RtDeviceSampler *s); /* NULL is fine */

/* As rt_sample_nodes() of seeds of which each is its own tree (GNNC_E_ARG: trees, their keys and
 * links are not drawn here); arrays of `out` lie in the slot's memory until its next batch. */
gnnc_status rt_device_sample(RtDeviceSampler *s, const RtSampleAt *at, const RtSeeds *seeds,
                             int slot, RtBatch *out, RtError *err);

/* Proves that what it drew is what the host draws, array by array: GNNC_E_ASSERT names the first
 * that differs. */
gnnc_status rt_device_sample_check(const RtDeviceSampler *s, const RtBatch *drawn,
                                   const RtBatch *by_host, RtError *err);

#endif
