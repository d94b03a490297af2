/* Room and tables for what the device binds of mini-batches. */
#include "device_bind.h"

#include <string.h>

#include "device_maps_impl.h"
#include "device_sample_impl.h"

static bool is_derived(const rt_space *s) {
    return s->kind == RT_SP_EDGE && !s->first && !s->sampled && s->rel != RT_REL_BASE &&
           s->rel < RT_REL_LINKS;
}

/* Edges that a batch has: drawn, the first of these, or derived. */
static bool are_bound(const rt_space *s) {
    return s->kind == RT_SP_EDGE && (s->sampled || s->first || is_derived(s));
}

const char *rt_device_bind_lacks(const rt_program *p) {
    if (!p->device_maps || !p->device_gather) return "the program has no kernels for it";
    if (p->by_parts) return "the program is for data in parts";
    for (int m = 0; m < p->n_maps; m++)
        if (p->maps[m].kind == RT_MAP_PAIR) return "an index is made of two others";
    for (int s = 0; s < p->n_spaces; s++)
        if (p->spaces[s].kind == RT_SP_EDGE && p->spaces[s].rel == RT_REL_BASE &&
            !are_bound(&p->spaces[s]))
            return "edges are read that are not drawn";
    return NULL;
}

/* ---- room ------------------------------------------------------------------------------------ */
typedef struct {
    const rt_program *p;
    const int64_t *n; /* [n_syms] the most there may be */
    size_t align, used;
    int64_t longest; /* list that is sorted */
} Room;

static void add(Room *r, int64_t n, size_t size) {
    r->used += ((size_t)n * size + r->align) / r->align * r->align;
}

/* Edges of the list that a relation is made of (device_maps.c: list_of), sizes being n. */
static int64_t listed(const rt_program *p, const rt_space *s, const int64_t *n) {
    int64_t base = n[p->spaces[s->base[0]].sym];
    switch (s->rel) {
    case RT_REL_SELF_LOOPS:
        return base + n[p->spaces[s->dst].sym];
    case RT_REL_UNDIRECTED:
        return 2 * base;
    case RT_REL_UNION:
        return base + n[p->spaces[s->base[1]].sym];
    default:
        return base;
    }
}

/* Sizes of the largest batch: of what is drawn, of the first of it, of what is derived. */
static void largest(const rt_program *p, const RtDrawMost *most, int n_types, int n_rels,
                    const int *space_of_type, const int *space_of_rel, int64_t *n) {
    for (int s = 0; s < p->n_spaces; s++)
        if (is_derived(&p->spaces[s])) n[p->spaces[s].sym] = 0;
    for (int t = 0; t < n_types; t++) n[p->spaces[space_of_type[t]].sym] = most->nodes[t];
    for (int r = 0; r < n_rels; r++) n[p->spaces[space_of_rel[r]].sym] = most->edges[r];
    for (int s = 0; s < p->n_spaces; s++)
        if (p->spaces[s].first) n[p->spaces[s].sym] = n[p->spaces[p->spaces[s].whole].sym];
    for (int i = 0; i < p->n_spaces; i++) /* bases may come in any order */
        for (int s = 0; s < p->n_spaces; s++)
            if (is_derived(&p->spaces[s])) n[p->spaces[s].sym] = listed(p, &p->spaces[s], n);
}

/* A derived relation, and the condition of its edges. */
static void add_relation(Room *r, const rt_space *s) {
    enum { ENDS_IDS_AND_ORIGINS = 5 };
    int64_t n = r->n[s->sym];
    add(r, r->n[r->p->spaces[s->dst].sym] + 1, sizeof(int64_t));
    for (int k = 0; k < ENDS_IDS_AND_ORIGINS; k++) add(r, n, sizeof(int32_t));
    if (s->rel == RT_REL_WHERE) add(r, n, 1);
    if (n > r->longest) r->longest = n;
}

/* Codes, and elements grouped by the map. */
static void add_map(Room *r, int map) {
    const rt_map *m = &r->p->maps[map];
    int64_t n = rt_size(r->p, r->n, m->from);
    if (m->kind == RT_MAP_COL) add(r, n, sizeof(int32_t));
    add(r, n, sizeof(int32_t));
    add(r, rt_map_rows(r->p, r->n, map) + 1, sizeof(int64_t));
    if (n > r->longest) r->longest = n;
}

static bool has_map(const rt_program *p, int map) {
    const rt_map *m = &p->maps[map];
    const rt_space *from = &p->spaces[m->from];
    bool codes = m->kind == RT_MAP_COL && from->kind == RT_SP_NODE;
    return codes || (rt_device_binds(m->kind) && are_bound(from));
}

/* Computes what all arrays of the largest batch take. */
static void measure(Room *r) {
    const rt_program *p = r->p;
    for (int s = 0; s < p->n_spaces; s++)
        if (is_derived(&p->spaces[s])) add_relation(r, &p->spaces[s]);
    for (int m = 0; m < p->n_maps; m++)
        if (has_map(p, m)) add_map(r, m);
    for (int b = 0; b < p->n_bufs; b++) {
        const rt_buf *buf = &p->bufs[b];
        if (buf->kind != RT_BUF_MAP || buf->by < 0 || !has_map(p, buf->map)) continue;
        int64_t n = rt_size(p, r->n, p->maps[buf->map].from);
        add(r, n, sizeof(int32_t)); /* the order, where it is that of the edges .. */
        add(r, n, sizeof(int32_t)); /* .. and what is in it */
    }
}

/* ---- life ------------------------------------------------------------------------------------ */
static gnnc_status take_memory(RtDeviceMaps *m, const Room *r, const RtDeviceMaps *like) {
    RtDevice *d = m->d;
    size_t work = rt_maps_work_bytes(r->longest);
    void *room = NULL;
    gnnc_status st;
    m->borrows = like != NULL;
    m->work_bytes = work;
    if (like) m->work = like->work;
    if (!like) TRY(st, d->ops->alloc(d, work, &m->work));
    TRY(st, d->ops->alloc(d, r->used + 1, &room));
    m->room = room;
    m->room_bytes = r->used;
    d->sampler_bytes += m->room_bytes + (like ? 0 : work);
    st = d->ops->wait(d); /* what zeroes it is in another queue */
out:
    return st;
}

/* Codes of all rows are there where they are an index array of the data. */
static gnnc_status find_codes(RtDeviceMaps *m) {
    const rt_program *p = m->x->program;
    const RtDevice *d = m->d;
    gnnc_status st = GNNC_OK;
    for (int i = 0; i < p->n_maps && st == GNNC_OK; i++) {
        const rt_map *of = &p->maps[i];
        const int b = of->idx_buf;
        if (of->kind != RT_MAP_COL || b < 0 || of->from != p->columns[of->col].space) continue;
        const void *there = d->built ? d->built[b] : NULL;
        if (!there && d->x->buf[b]) st = rt_device_has_buffer(d->x, b, &there);
        if (there) m->codes[of->col].all = there;
    }
    return st;
}

gnnc_status rt_device_bind_new(RtDeviceMaps **out, RtExec *x, const RtDeviceSampler *s,
                               const int *space_of_type, const int *space_of_rel, bool check,
                               const RtDeviceMaps *like) {
    const rt_program *p = x->program;
    RtDevice *d = s->d;
    RtPool *pool = &d->x->rt->pool;
    RtError *err = &d->x->rt->err;
    *out = NULL;
    RtDeviceMaps *m = RT_NEW(pool, RtDeviceMaps);
    int64_t *n = RT_NEWN(pool, int64_t, p->n_syms);
    if (!m || !n) return rt_fail_nomem(err, "a batch's tables");
    *m = (RtDeviceMaps){.d = d,
                        .x = x,
                        .on = true,
                        .check = check,
                        .queue = s->queue,
                        .rel = RT_NEWN(pool, RtRelation, p->n_spaces),
                        .buf = RT_NEWN(pool, void *, p->n_bufs),
                        .codes = RT_NEWN(pool, RtDeviceCodes, p->n_columns + 1)};
    if (!m->rel || !m->buf || !m->codes) return rt_fail_nomem(err, "a batch's tables");
    memcpy(n, d->x->n, (size_t)p->n_syms * sizeof *n);
    largest(p, &s->most, s->g.n_types, s->g.n_rels, space_of_type, space_of_rel, n);
    Room r = {.p = p, .n = n, .align = d->ops->align};
    measure(&r);
    rt_pool_drop(pool, n);
    gnnc_status st = GNNC_E_RANGE;
    if (r.longest < INT32_MAX) {
        st = find_codes(m);
        if (st == GNNC_OK) st = take_memory(m, &r, like);
    } else {
        rt_fail(err, st, "a batch may have 2^31 - 1 edges or more");
    }
    if (st == GNNC_OK)
        *out = m;
    else
        rt_device_bind_free(m);
    return st;
}

void rt_device_bind_free(RtDeviceMaps *m) {
    if (!m) return;
    if (m->room) m->d->sampler_bytes -= m->room_bytes + (m->borrows ? 0 : m->work_bytes);
    if (!m->borrows) m->d->ops->release(m->d, m->work);
    m->d->ops->release(m->d, m->room);
    m->work = m->room = NULL;
}

/* ---- a batch -------- */
void rt_device_bind_begin(RtDeviceMaps *m) {
    const rt_program *p = m->x->program;
    m->arrays = NULL; /* they were the batch's */
    m->grouped = NULL;
    m->used = 0;
    memset(m->rel, 0, (size_t)p->n_spaces * sizeof *m->rel);
    memset(m->buf, 0, (size_t)p->n_bufs * sizeof *m->buf);
    for (int c = 0; c < p->n_columns; c++) m->codes[c].row = m->codes[c].taken = NULL;
}

void rt_device_bind_rows(RtDeviceMaps *m, int column, const RtDeviceGather *rows) {
    m->codes[column].row = rows->row;
    m->codes[column].wide = rows->wide;
}

bool rt_device_bind_takes(const RtDeviceMaps *m, int map) {
    return !m->check && rt_device_makes(m, map) &&
           rt_on_device_takes_codes(m, m->x->program->maps[map].col);
}

void rt_device_bind_edges(RtDeviceMaps *m, int space, const RtRelation *there) {
    m->rel[space] = *there;
}

/* Buffer b as rows of the widest word that the gather has: arrays end with room for one. */
static gnnc_status take(const RtDeviceMaps *m, int b, RtDeviceGather *g) {
    enum { WORD = 16 };
    size_t n_bytes = 0;
    gnnc_status st = rt_buf_bytes(m->x, b, &n_bytes);
    *g = (RtDeviceGather){.row_bytes = WORD,
                          .space = -1,
                          .rows.n = (int64_t)((n_bytes + WORD - 1) / WORD),
                          .made = m->buf[b]};
    return st;
}

gnnc_status rt_device_bind_end(RtDeviceMaps *m, gnnc_status st, RtDeviceGather *gathers) {
    for (int b = 0; b < m->x->program->n_bufs && st == GNNC_OK; b++)
        if (m->buf[b]) st = take(m, b, &gathers[b]);
    gnnc_status done = m->d->ops->side_wait(m->d, m->queue, &m->x->rt->err);
    return st == GNNC_OK ? done : st;
}
