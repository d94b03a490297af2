/* Who draws a batch: a sampler of the host's, or one of the device's; with option check_sampler
 * both, and they must draw the same. */
#ifndef RUNTIME_DRAW_H
#define RUNTIME_DRAW_H

#include "minibatch.h"
#include "runtime/device/device_sample.h"
#include "runtime/trainer/trainer.h"

typedef struct RtDrawer {
    RtDeviceSampler *there; /* NULL: the host's draws */
    RtBatch *proof;         /* what the host draws, to be compared; NULL = nobody asked */
} RtDrawer;

/* A sampler of the device's; `here` would draw the same. */
gnnc_status rt_drawer_open(gnnc_trainer *t, const RtDeviceSamplerSpec *spec, const RtSampler *here,
                           RtDrawer *out);
/* The same of batches, named `what`, without which training goes on: if there is too little memory
 * for them a line says so, and the host draws them. */
gnnc_status rt_drawer_try(gnnc_trainer *t, const RtDeviceSamplerSpec *spec, const RtSampler *here,
                          const char *what, RtDrawer *out);
void rt_drawer_close(RtDrawer *d);
/* Then its n mini-batches, one a slot, are bound where they are drawn.  If there is too little
 * memory there, or the device cannot, the host binds them, after a line that names `what`. */
gnnc_status rt_drawer_bind(gnnc_trainer *t, const RtDrawer *d, const RtBatchMap *map,
                           const char *what, RtMinibatch *m, int n);

/* As rt_sample_groups().  pairs: links that the device chooses negatives for, where it draws;
 * unless rt_drawer_reads_ids() the groups need no ids then. */
gnnc_status rt_drawer_draw(const RtDrawer *d, RtSampler *here, const RtSampleAt *at,
                           const RtSeeds *groups, int n_groups, const RtDrawnPairs *pairs, int slot,
                           RtBatch *out, RtError *err);
static inline bool rt_drawer_reads_ids(const RtDrawer *d) {
    return !d->there || d->proof;
}

#endif
