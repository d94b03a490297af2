/* Batches of neighbours drawn by a device (cuda/sample.h): those of rt_sample_groups(), in every
 * array.  The graph's arrays are those that the trainer's maps have there, and copies of what these
 * lack; all memory is taken when the sampler is made, for the largest batch that fan-outs and the
 * graph allow.  Used by one thread at a time, which waits
 * for its batch; work goes into a queue of its own. */
#ifndef RUNTIME_DEVICE_SAMPLE_H
#define RUNTIME_DEVICE_SAMPLE_H

#include "runtime/batch/links.h"
#include "runtime/device/device.h"
#include "runtime/sample/sample.h"

typedef struct RtDeviceSampler RtDeviceSampler;

/* Why a program's batches cannot be drawn there; NULL = they can. */
const char *rt_device_sampler_lacks(const rt_program *p);

typedef struct RtDeviceSamplerSpec {
    const RtSampleGraph *g; /* must outlive the sampler */
    const int *space;       /* [n_rels] of each relation of the graph, in the program */
    const RtSampleSpec *how;
    int n_groups, type[2]; /* of seeds */
    int64_t n_seeds;       /* of a group, at most */
    int64_t n_trees;       /* trees at most; or, where links are hidden, links */
    int n_slots;
    const RtDeviceSampler *like; /* of the same graph, for the arrays that it has there, and must
                                    outlive this one; NULL: there is none */
    /* Links around which it draws, with negatives that it chooses; NULL: seeds are given.  They
     * must outlive it; `base` is their space. */
    const RtLinks *links;
    int base;
    RtDrawnNegatives negatives;
} RtDeviceSamplerSpec;

/* GNNC_E_RANGE where a hop might have 2^31 edges; GNNC_E_NOMEM names the memory that was asked for.
 * Failures are the trainer's (x->rt->err). */
gnnc_status rt_device_sampler_new(RtDeviceSampler **out, RtExec *x,
                                  const RtDeviceSamplerSpec *spec);
void rt_device_sampler_free(RtDeviceSampler *s); /* NULL is fine */
/* From now on arrays of edges stay there, but, if they are read here, positions; option check_times
 * reads all of them. */
void rt_device_sampler_keep_edges(RtDeviceSampler *s, bool positions);

/* Edges of the links, then k negatives of each by a key, as of rt_links_pairs(). */
typedef struct RtDrawnPairs {
    int64_t n, k;
    const int32_t *edge;
    uint64_t key;
} RtDrawnPairs;

/* Negatives of links that are judged, a whole split at once: those of rt_links_pairs().  It waits
 * for them; used by one thread at a time.  base, like: RtDeviceSamplerSpec; k of each link. */
typedef struct RtDevicePairs RtDevicePairs;
gnnc_status rt_device_pairs_new(RtDevicePairs **out, RtExec *x, const RtLinks *links, int base,
                                const RtDrawnNegatives *how, int64_t k,
                                const RtDeviceSampler *like);
void rt_device_pairs_free(RtDevicePairs *s); /* NULL is fine */
/* Of the n links edge[]: the ends of their negatives, src and dst [n k]. */
gnnc_status rt_device_pairs_draw(const RtDevicePairs *s, uint64_t key, const int32_t *edge,
                                 int64_t n, int32_t *src, int32_t *dst, RtError *err);

/* As rt_sample_groups(); with pairs, the groups are their ends, whatever ids they have.  Arrays of
 * `out` lie in the slot's memory until its next batch. */
gnnc_status rt_device_sample(RtDeviceSampler *s, const RtSampleAt *at, const RtSeeds *groups,
                             const RtDrawnPairs *pairs, int slot, RtBatch *out, RtError *err);

/* Proves that what it drew is what the host draws, array by array: GNNC_E_ASSERT names the first
 * that differs. */
gnnc_status rt_device_sample_check(const RtDeviceSampler *s, const RtBatch *drawn,
                                   const RtBatch *by_host, RtError *err);

#endif
