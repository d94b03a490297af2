#include "draw.h"

gnnc_status rt_drawer_open(gnnc_trainer *t, const RtDeviceSamplerSpec *spec, const RtSampler *here,
                           RtDrawer *d) {
    gnnc_status st = rt_device_sampler_new(&d->there, &t->x, spec);
    if (st != GNNC_OK || !t->options.check_sampler) return st;
    return rt_sampler_batch(here, &d->proof, &t->rt.err);
}

gnnc_status rt_drawer_try(gnnc_trainer *t, const RtDeviceSamplerSpec *spec, const RtSampler *here,
                          const char *what, RtDrawer *d) {
    gnnc_status st = rt_drawer_open(t, spec, here, d);
    if (st != GNNC_E_NOMEM && st != GNNC_E_RANGE) return st;
    rt_drawer_close(d);
    rt_message(&t->rt, "sampler: %s: %s; the host draws them", what, t->rt.err.text);
    t->rt.err.text[0] = '\0';
    return GNNC_OK;
}

void rt_drawer_close(RtDrawer *d) {
    rt_device_sampler_free(d->there);
    rt_batch_free(d->proof);
    *d = (RtDrawer){0};
}

gnnc_status rt_drawer_draw(const RtDrawer *d, RtSampler *here, const RtSampleAt *at,
                           const RtSeeds *groups, int n_groups, const RtDrawnPairs *pairs, int slot,
                           RtBatch *out, RtError *err) {
    if (!d->there) return rt_sample_groups(here, at, groups, n_groups, out, err);
    gnnc_status st = rt_device_sample(d->there, at, groups, pairs, slot, out, err);
    if (st != GNNC_OK || !d->proof) return st;
    st = rt_sample_groups(here, at, groups, n_groups, d->proof, err);
    return st == GNNC_OK ? rt_device_sample_check(d->there, out, d->proof, err) : st;
}
