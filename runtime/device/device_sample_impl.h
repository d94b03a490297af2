/* What the files of the device's sampler share. */
#ifndef RUNTIME_DEVICE_SAMPLE_IMPL_H
#define RUNTIME_DEVICE_SAMPLE_IMPL_H

#include "device_sample.h"
#include "runtime/cuda/sample_list.h"

/* Arrays of a relation that were there before; those that are not, NULL, are the sampler's own.
 * Weights and times are columns, which are nobody's index arrays: another sampler's, or its own. */
typedef struct RtDrawHas {
    const void *ptr, *src, *id, *weight, *time, *by_time;
} RtDrawHas;

typedef struct RtDrawSlot {
    char *host, *there; /* page-locked; on the device */
} RtDrawSlot;

/* Offsets in a slot. */
typedef struct RtDrawLayout {
    size_t types, rels, n_seeds, key, fanout, seed_tree, tree_key, tree_time;
    size_t hide_first, hide_node, hide_src, n_links, negative_key, edge;
    size_t seed, seed_end, asked_end; /* asked_end: before or behind the seeds */
    size_t sizes, seed_at, sizes_end;
    size_t *id, *tree;                     /* [n_types] */
    size_t *ptr, *src, *dst, *pos, *names; /* [n_rels] */
    size_t end;
} RtDrawLayout;

/* The most there can be. */
typedef struct RtDrawMost {
    int64_t *nodes;              /* [n_types] */
    int64_t *edges;              /* [n_rels] */
    int64_t *degree;             /* [n_rels] edges of one row */
    int64_t rows, drawn;         /* of the largest hop */
    int64_t all_nodes, all_ends; /* of all types; ends of all relations */
} RtDrawMost;

/* Of a node of a type: a source that it does not see. */
typedef struct RtDrawHidden {
    int type;
    int32_t src;
    uint64_t node; /* tree << 32 | its row */
} RtDrawHidden;

/* Links on the device, and how negatives are drawn for them. */
typedef struct RtDrawEnds {
    const RtLinks *links; /* NULL: there are none, as seeds are given */
    RtDrawnNegatives how;
    RtDrawLinks had, there; /* arrays that were there before; all that are read */
} RtDrawEnds;

struct RtDeviceSampler {
    RtPool pool;
    RtDevice *d;
    void *queue;
    rt_device_kernel *kernel;
    RtSampleGraph g; /* borrowed */
    RtSampleSpec spec;
    int n_groups, type[RT_DRAW_GROUPS], n_slots;
    int64_t n_seeds, n_trees;    /* of a group; of trees, or links */
    const RtDeviceSampler *like; /* whose arrays of the graph these are; NULL: its own */
    RtDrawEnds ends;             /* links that it chooses negatives for */
    RtDrawHidden *hidden;        /* [2 n_trees] NULL: nothing is hidden */
    size_t n_bytes;              /* there */
    RtDrawMost most;
    RtDrawLayout at;
    RtDrawSlot *slot;
    void *work;
    size_t marks_bytes;                /* of it, from where it begins: what batches leave 0 */
    bool reads_edges, reads_positions; /* the host, of batches: the arrays of edges; `pos` */
    bool unfinished;  /* the last batch did not come to its end: marks may be there */
    RtDraw draw;      /* but for the slot's pointers */
    RtDrawType *of;   /* [n_types] marks */
    RtDrawRel *graph; /* [n_rels + 1] the graph there */
    RtDrawHas *has;   /* [n_rels] */
};

/* ---- device_sample_room.c ------------------------------------------------------------------ */
/* Calls with `n` of `size` bytes give the offsets of one thing after another. */
typedef struct RtLay {
    size_t align, used;
} RtLay;

static inline size_t rt_lay(RtLay *l, int64_t n, size_t size) {
    size_t at = l->used;
    l->used += ((size_t)n * size + l->align) / l->align * l->align;
    return at;
}

/* s->most, for fan-outs, the graph's sizes and its largest in-degrees. */
gnnc_status rt_draw_bound(RtDeviceSampler *s, RtError *err);
/* s->at. */
gnnc_status rt_draw_lay_slot(RtDeviceSampler *s, RtError *err);

/* Copies n elements to the device, unless they were there before or the host has none. */
static inline gnnc_status rt_draw_bring(RtDevice *d, const void *had, const void *to,
                                        const void *from, int64_t n, size_t size) {
    if (had || !from) return GNNC_OK;
    return d->ops->upload(d, (void *)to, from, (size_t)n * size);
}

/* ---- device_sample_links.c ----------------------------------------------------------------- */
/* The arrays of links that are there already: of maps, or of `like` (NULL: there is none), which
 * must outlive these; `base` is the space of the links. */
gnnc_status rt_draw_ends_find(RtDevice *d, RtDrawEnds *e, int base, const RtDrawEnds *like);
/* Room for the others; base: the memory there. */
void rt_draw_ends_lay(RtDrawEnds *e, RtLay *l, char *base);
/* Copies them there. */
gnnc_status rt_draw_ends_bring(RtDevice *d, const RtDrawEnds *e);
/* All that kernels read of them. */
RtDrawLinks rt_draw_ends_links(const RtDrawEnds *e);

/* ---- device_sample_ask.c ------------------------------------------------------------------- */
/* What is asked for, to the slot's memory on the host. */
gnnc_status rt_draw_ask(const RtDeviceSampler *s, const RtDrawSlot *slot, const RtSampleAt *at,
                        const RtSeeds *groups, const RtDrawnPairs *pairs, RtError *err);

#endif
