/* A link is not to be seen where it is to be told: the edges between its ends, either way, stay out
 * of the batch.  DGL and GraphBolt exclude the edge itself and, where they are told of one, its
 * reverse; NBFNet (Zhu et al., NeurIPS 2021) all edges between the two ends, as here: so it does
 * not matter how the data store an edge, once or both ways.  They are left out before the draw, so
 * a node draws as many neighbours as another one: their number tells nothing. */
#include <string.h>

#include "sample_impl.h"

/* Lists n links, so that the seeds of `end` do not see those of `other` (NULL: only counts
 * them). */
static void list(RtHidden *h, const int32_t *end, const int32_t *other, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        if (other)
            h->src[h->ptr[end[i] + 1]++] = other[i];
        else
            h->ptr[end[i] + 2]++;
    }
}

static void sort(int32_t *x, int64_t n) { /* heap sort: a hub may have many links */
    for (int64_t k = n / 2, last = n; last > 1;) {
        int32_t v;
        if (k > 0) {
            v = x[--k];
        } else {
            v = x[--last];
            x[last] = x[0];
        }
        int64_t i = k;
        for (int64_t c; (c = 2 * i + 1) < last; i = c) {
            if (c + 1 < last && x[c + 1] > x[c]) c++;
            if (x[c] <= v) break;
            x[i] = x[c];
        }
        x[i] = v;
    }
}

/* Links' ends of this type, in one or both groups. */
static gnnc_status hide_in(RtSampler *s, const RtBatch *b, int type, const RtSeeds *ends,
                           RtError *err) {
    RtHidden *h = &s->hidden[type];
    int64_t n = b->nodes[type].n, links = ends->n_links, most = ends[0].n + ends[1].n;
    gnnc_status st = rt_grow(&s->growth, &h->ptr_buf, most + 2, sizeof *h->ptr, 0, err);
    if (st == GNNC_OK) st = rt_grow(&s->growth, &h->src_buf, 2 * links, sizeof *h->src, 0, err);
    if (st != GNNC_OK) return st;
    h->n = n;
    h->ptr = h->ptr_buf.p;
    h->src = h->src_buf.p;
    memset(h->ptr, 0, (size_t)(n + 2) * sizeof *h->ptr);
    for (int k = 0; k < 2; k++)
        if (ends[k].type == type) list(h, b->seed[k], NULL, links);
    for (int64_t d = 0; d < n; d++) h->ptr[d + 2] += h->ptr[d + 1];
    for (int k = 0; k < 2; k++)
        if (ends[k].type == type) list(h, b->seed[k], ends[!k].id, links);
    for (int64_t d = 0; d < n; d++) sort(h->src + h->ptr[d], h->ptr[d + 1] - h->ptr[d]);
    return GNNC_OK;
}

gnnc_status rt_sample_hide(RtSampler *s, const RtBatch *b, const RtSeeds *ends, int n_groups,
                           RtError *err) {
    gnnc_status st = GNNC_OK;
    for (int t = 0; t < s->g.n_types; t++) s->hidden[t].n = 0;
    if (n_groups != 2 || !ends->n_links) return st;
    st = hide_in(s, b, ends[0].type, ends, err);
    if (st == GNNC_OK && ends[1].type != ends[0].type) st = hide_in(s, b, ends[1].type, ends, err);
    return st;
}
