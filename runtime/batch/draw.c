#include "draw.h"

#include "runtime/device/device_bind.h"

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

/* Does the host take something by the positions of a batch's edges? */
static bool reads_positions(const rt_program *p, const RtBatchMap *map) {
    bool reads = false;
    for (int c = 0; c < p->n_columns; c++)
        reads |= map->rel_of_space[p->columns[c].space] >= 0 && rt_bind_reads(p, c);
    for (int s = 0; s < p->n_spaces; s++)
        reads |= p->spaces[s].kind == RT_SP_EDGE && p->spaces[s].rel == RT_REL_WHERE;
    return reads;
}

gnnc_status rt_drawer_bind(gnnc_trainer *t, const RtDrawer *d, const RtBatchMap *map,
                           const char *what, RtMinibatch *m, int n) {
    const char *why = rt_device_bind_lacks(t->program);
    gnnc_status st = GNNC_OK;
    if (!d->there) return st;
    for (int i = 0; i < n && !why && st == GNNC_OK; i++)
        st = rt_device_bind_new(&m[i].bound.maps, &m[i].x, d->there, map->space_of_type,
                                map->space_of_rel, d->proof != NULL, i ? m[0].bound.maps : NULL);
    if (st == GNNC_E_NOMEM || st == GNNC_E_RANGE) why = t->rt.err.text;
    if (why) {
        rt_message(&t->rt, "batches: %s: %s; the host binds them", what, why);
        for (int i = n - 1; i >= 0; i--) {
            rt_device_bind_free(m[i].bound.maps);
            m[i].bound.maps = NULL;
        }
        t->rt.err.text[0] = '\0';
        return GNNC_OK;
    }
    if (st == GNNC_OK && !d->proof)
        rt_device_sampler_keep_edges(d->there, reads_positions(t->program, map));
    return st;
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
