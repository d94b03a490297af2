/* Links on the device: what negatives of them are drawn by, and those of links that are judged,
 * which are drawn alone, as no neighbours are drawn around a whole split at once. */
#include <string.h>

#include "device_sample_impl.h"
#include "runtime/device/device_maps.h"

/* ---- the links there ------------------------------------------------------------------------- */
gnnc_status rt_draw_ends_find(RtDevice *d, RtDrawEnds *e, int base, const RtDrawEnds *like) {
    if (!e->links) return GNNC_OK;
    if (like && like->links == e->links) {
        e->had = like->there;
        return GNNC_OK;
    }
    const RtRelation kept = rt_device_relation_kept(d->x, base), *rel = e->links->rel;
    const int32_t *const there[2] = {kept.src, kept.dst}, *const here[2] = {rel->src, rel->dst};
    gnnc_status st = GNNC_OK;
    for (int k = 0; k < 2 && st == GNNC_OK; k++) {
        const void *p;
        st = rt_device_has(d->x, here[k], &p);
        e->had.end[k] = there[k] ? there[k] : p;
    }
    return st;
}

/* What was there before stays where it is; anything else gets room for n elements. */
#define LAY(p, n)                                                                                  \
    (e->there.p = e->had.p ? e->had.p : (void *)(base + rt_lay(l, (n), sizeof *e->there.p)))
void rt_draw_ends_lay(RtDrawEnds *e, RtLay *l, char *base) {
    const RtLinks *links = e->links;
    e->there = (RtDrawLinks){0};
    if (!links) return;
    const int64_t n_nodes[2] = {links->rel->n_src, links->rel->n_dst}, n = links->rel->n_edges;
    for (int k = 0; k < 2; k++) {
        LAY(end[k], n);
        if (e->how.when && e->how.since[k]) LAY(since[k], n_nodes[k]);
    }
    if (e->how.when) LAY(when, n);
    if (!e->how.avoid) return;
    LAY(by_query, n);
    LAY(split, n);
    LAY(kind, n);
    LAY(query, links->n_queries + 1);
    LAY(of_source, n_nodes[0] + 1);
}
#undef LAY

#define BRING(p, from, n)                                                                          \
    TRY(st, rt_draw_bring(d, e->had.p, e->there.p, (from), (n), sizeof *e->there.p))
gnnc_status rt_draw_ends_bring(RtDevice *d, const RtDrawEnds *e) {
    const RtLinks *l = e->links;
    gnnc_status st = GNNC_OK;
    if (!l) return st;
    const int64_t n_nodes[2] = {l->rel->n_src, l->rel->n_dst}, n = l->rel->n_edges;
    const int32_t *const end[2] = {l->rel->src, l->rel->dst};
    for (int k = 0; k < 2; k++) {
        BRING(end[k], end[k], n);
        if (e->there.since[k]) BRING(since[k], e->how.since[k], n_nodes[k]);
    }
    if (e->there.when) BRING(when, e->how.when, n);
    if (!e->there.by_query) goto out;
    BRING(by_query, l->by_query, n);
    BRING(split, l->split, n);
    BRING(kind, l->kind, n);
    BRING(query, l->query, l->n_queries + 1);
    BRING(of_source, l->of_source, n_nodes[0] + 1);
out:
    return st;
}
#undef BRING

RtDrawLinks rt_draw_ends_links(const RtDrawEnds *e) {
    RtDrawLinks l = e->there;
    if (!e->links) return l;
    l.n_nodes[0] = e->links->rel->n_src;
    l.n_nodes[1] = e->links->rel->n_dst;
    l.either = e->how.how == RT_NEG_SIDE;
    l.both = e->how.how == RT_NEG_BOTH;
    l.side = e->how.how != RT_NEG_HEAD;
    l.first = e->how.first;
    l.last = e->how.last;
    return l;
}

/* ---- negatives alone ------------------------------------------------------------------------- */
/* Memory of a launch, the same on both sides: what is asked, then sources, then destinations. */
typedef struct {
    int64_t n_links[3], n_seeds;
    uint64_t key;
} Asked;

struct RtDevicePairs {
    RtPool pool;
    RtDevice *d;
    void *queue;
    rt_device_kernel *kernel;
    RtDrawEnds ends;
    int64_t k, most_links; /* negatives of each link; links of a launch */
    void *links;           /* those arrays of `ends` that were not there */
    char *here, *there;    /* an Asked, edge [most_links], seed [2][most_links (1 + k)] */
    size_t edge, seed, n_bytes, all_bytes;
};

static gnnc_status take_memory(RtDevicePairs *s) {
    RtDevice *d = s->d;
    RtLay slot = {.align = d->ops->align}, links = slot;
    void *here, *there;
    gnnc_status st;
    rt_lay(&slot, 1, sizeof(Asked));
    s->edge = rt_lay(&slot, s->most_links, sizeof(int32_t));
    s->seed = rt_lay(&slot, 2 * s->most_links * (1 + s->k), sizeof(int32_t));
    s->n_bytes = slot.used;
    rt_draw_ends_lay(&s->ends, &links,
                     (char *)d->ops->align); /* some address: the size is wanted */
    TRY(st, d->ops->alloc(d, links.used + 1, &s->links));
    links.used = 0;
    rt_draw_ends_lay(&s->ends, &links, s->links);
    TRY(st, d->ops->alloc(d, s->n_bytes, &there));
    s->there = there;
    TRY(st, d->ops->pin(d, s->n_bytes, &here));
    s->here = here;
    s->all_bytes = links.used + s->n_bytes;
    d->sampler_bytes += s->all_bytes;
    TRY(st, rt_draw_ends_bring(d, &s->ends));
    st = d->ops->wait(d); /* what comes is in another queue */
out:
    return st;
}

gnnc_status rt_device_pairs_new(RtDevicePairs **out, RtExec *x, const RtLinks *links, int base,
                                const RtDrawnNegatives *how, int64_t k,
                                const RtDeviceSampler *like) {
    RtPool pool;
    gnnc_status st;
    *out = NULL;
    rt_pool_init(&pool, &x->rt->pool.from);
    RtDevicePairs *s = RT_NEW(&pool, RtDevicePairs); /* inside its own pool */
    if (!s) return rt_fail_nomem(&x->rt->err, "negatives on the device");
    *s = (RtDevicePairs){.pool = pool,
                         .d = x->rt->device,
                         .kernel = x->program->device_sample,
                         .ends = {.links = links, .how = *how},
                         .k = k,
                         .most_links = x->rt->device->ops->pairs / (1 + k) + 1};
    if (s->most_links > links->rel->n_edges) s->most_links = links->rel->n_edges + 1;
    TRY(st, s->d->ops->side_open(s->d, &s->queue));
    TRY(st, rt_draw_ends_find(s->d, &s->ends, base, like ? &like->ends : NULL));
    st = take_memory(s);
out:
    if (st == GNNC_OK)
        *out = s;
    else
        rt_device_pairs_free(s);
    return st;
}

void rt_device_pairs_free(RtDevicePairs *s) {
    if (!s) return;
    RtDevice *d = s->d;
    d->ops->unpin(d, s->here);
    d->ops->release(d, s->there);
    d->ops->release(d, s->links);
    if (s->queue) d->ops->side_close(d, s->queue);
    d->sampler_bytes -= s->all_bytes;
    RtPool pool = s->pool; /* s itself goes away with it */
    rt_pool_free(&pool);
}

/* What the kernel reads of n links from number `first` on. */
static RtDraw ask(const RtDevicePairs *s, uint64_t key, const int32_t *edge, int64_t first,
                  int64_t n) {
    const Asked *there = (const void *)s->there;
    *(Asked *)(void *)s->here =
        (Asked){.n_links = {n, s->k, first}, .n_seeds = n * (1 + s->k), .key = key};
    memcpy(s->here + s->edge, edge + first, (size_t)n * sizeof *edge);
    return (RtDraw){.pairs = true,
                    .alone = true,
                    .links = rt_draw_ends_links(&s->ends),
                    .n_groups = RT_DRAW_GROUPS,
                    .most_seeds = RT_DRAW_GROUPS * n * (1 + s->k),
                    .n_links = there->n_links,
                    .n_seeds = &there->n_seeds,
                    .negative_key = &there->key,
                    .edge = (const void *)(s->there + s->edge),
                    .seed = (void *)(s->there + s->seed)};
}

gnnc_status rt_device_pairs_draw(const RtDevicePairs *s, uint64_t key, const int32_t *edge,
                                 int64_t n, int32_t *src, int32_t *dst, RtError *err) {
    const RtDeviceOps *ops = s->d->ops;
    gnnc_status st = GNNC_OK;
    for (int64_t first = 0, some; first < n; first += some) {
        some = n - first < s->most_links ? n - first : s->most_links;
        const int64_t pairs = some * (1 + s->k), at = first * s->k;
        const size_t drawn = (size_t)(some * s->k) * sizeof *src;
        const int32_t *seed = (const void *)(s->here + s->seed);
        RtDraw draw = ask(s, key, edge, first, some);
        void *const arg[] = {&draw};
        TRY(st, ops->side_upload(s->d, s->queue, s->there, s->here, s->seed, err));
        TRY(st, ops->side_launch(s->d, s->queue, s->kernel, "negatives", arg, err));
        TRY(st, ops->side_download(s->d, s->queue, s->here + s->seed, s->there + s->seed,
                                   2 * (size_t)pairs * sizeof *seed, err));
        TRY(st, ops->side_wait(s->d, s->queue, err));
        memcpy(src + at, seed + some, drawn);
        memcpy(dst + at, seed + pairs + some, drawn);
    }
out:
    if (st != GNNC_OK) ops->side_wait(s->d, s->queue, NULL); /* nothing reads the memory any more */
    return st;
}
