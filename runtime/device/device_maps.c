/* Orders for the device that builds relations and index arrays, and the memory that they are in. */
#include "device_maps_impl.h"

#include <string.h>

#include "runtime/cuda/maps_list.h"

/* Each [n] elements of a list, until the next one. */
typedef struct {
    int32_t *key, *keys[2], *tmp, *at[2], *count;
    int64_t *ends; /* [2] */
} Work;

static RtError *err_of(const RtDeviceMaps *m) {
    return &m->x->rt->err;
}

/* ---- life -------------------------------------------------------------------------------- */
gnnc_status rt_device_maps_open(RtExec *x, bool check) {
    RtPool *pool = &x->rt->pool;
    if (!x->program->device_maps) return GNNC_OK;
    RtDeviceMaps *m = RT_NEW(pool, RtDeviceMaps);
    if (!m) return rt_fail_nomem(&x->rt->err, "the device's tables");
    *m = (RtDeviceMaps){.d = x->rt->device,
                        .x = x,
                        .on = true,
                        .check = check,
                        .rel = RT_NEWN(pool, RtRelation, x->program->n_spaces),
                        .buf = RT_NEWN(pool, void *, x->program->n_bufs)};
    if (!m->rel || !m->buf) return rt_fail_nomem(&x->rt->err, "the device's tables");
    m->d->maps = m;
    m->d->built = m->buf;
    return GNNC_OK;
}

/* Frees the scratch memory that building index arrays takes. */
static void free_work(RtDeviceMaps *m) {
    m->d->ops->release(m->d, m->work);
    m->work = NULL;
    m->work_bytes = 0;
}

/* Releases all index arrays that were built on the device. */
void rt_device_maps_close(RtDevice *d) {
    RtDeviceMaps *m = d->maps;
    if (!m) return;
    free_work(m);
    for (RtMapsArray *a = m->arrays; a; a = a->next) d->ops->release(d, a->there);
    d->maps = NULL;
    d->built = NULL;
    d->built_bytes = 0;
}

RtDeviceMaps *rt_device_maps(const RtExec *x) {
    const RtDevice *d = x->rt->device;
    RtDeviceMaps *m = d ? d->maps : x->rt->bound->maps; /* mini-batches have no device */
    return m && m->on ? m : NULL;
}

bool rt_device_maps_check(const RtDeviceMaps *m) {
    return m->check;
}

/* ---- what is made of a mini-batch -------- */
bool rt_device_has_edges(const RtDeviceMaps *m, int space) {
    return !m->room || m->rel[space].src;
}

/* Of nodes the codes of categories; what else leads from them the host finds. */
bool rt_device_makes(const RtDeviceMaps *m, int map) {
    const rt_program *p = m->x->program;
    const rt_map *of = &p->maps[map];
    if (!m->room) return true;
    if (of->kind == RT_MAP_COL && p->spaces[of->from].kind == RT_SP_NODE) return true;
    return rt_device_binds(of->kind) && rt_device_has_edges(m, of->from);
}

/* ---- memory there -------------------------------------------------------------------------- */
/* The next part of a mini-batch's room. */
static gnnc_status take_room(RtDeviceMaps *m, size_t n_bytes, void **p) {
    size_t align = m->d->ops->align, at = m->used;
    m->used += (n_bytes + align) / align * align;
    if (m->used > m->room_bytes)
        return rt_fail(err_of(m), GNNC_E_RANGE, "a batch larger than any there should be");
    *p = m->room + at;
    return GNNC_OK;
}

/* Allocates an index array of n elements on the device, which lives as long as the data, or until
 * the next batch. */
static gnnc_status new_array(RtDeviceMaps *m, int64_t n, size_t size, void **to) {
    RtMapsArray *a = RT_NEW(&m->x->rt->pool, RtMapsArray);
    *to = NULL;
    if (!a) return rt_fail_nomem(err_of(m), "index arrays");
    a->n_bytes = (size_t)n * size;
    gnnc_status st = m->room ? take_room(m, a->n_bytes, &a->there)
                             : m->d->ops->alloc(m->d, a->n_bytes, &a->there);
    if (st != GNNC_OK) return st;
    a->next = m->arrays;
    m->arrays = a;
    if (!m->room) m->d->built_bytes += a->n_bytes;
    *to = a->there;
    return GNNC_OK;
}

/* new_array() for elements of i32. */
static gnnc_status new_i32(RtDeviceMaps *m, int64_t n, int32_t **to) {
    void *p;
    gnnc_status st = new_array(m, n, sizeof **to, &p);
    *to = p;
    return st;
}

/* new_array() for elements of i64. */
static gnnc_status new_i64(RtDeviceMaps *m, int64_t n, int64_t **to) {
    void *p;
    gnnc_status st = new_array(m, n, sizeof **to, &p);
    *to = p;
    return st;
}

static bool is_in_relation(const RtRelation *r, const void *p) {
    return p == r->ptr || p == r->src || p == r->dst || p == r->id || p == r->orig[0] ||
           p == r->orig[1];
}

/* What the device's sampler reads. */
static bool is_drawn_from(const RtRelation *r, const void *p) {
    return p == r->ptr || p == r->src || p == r->id;
}

/* Whether a buffer of the program, a relation that is drawn from, or, with `relations`, any
 * relation uses the device array p. */
static bool is_wanted(const RtDeviceMaps *m, const void *p, bool relations) {
    const rt_program *of = m->x->program;
    for (int b = 0; b < of->n_bufs; b++)
        if (m->buf[b] == p) return true;
    for (int s = 0; s < of->n_spaces; s++) {
        const RtRelation *r = &m->rel[s];
        bool drawn = m->d->samples && of->spaces[s].sampled && is_drawn_from(r, p);
        if (drawn || (relations && is_in_relation(r, p))) return true;
    }
    return false;
}

/* Removes the device array p from all relations, before it is released. */
static void forget(RtDeviceMaps *m, const void *p) {
    for (int s = 0; s < m->x->program->n_spaces; s++) {
        RtRelation *r = &m->rel[s];
        const int32_t **of[] = {&r->src, &r->dst, &r->id, &r->orig[0], &r->orig[1]};
        if (r->ptr == p) r->ptr = NULL;
        for (size_t i = 0; i < sizeof of / sizeof *of; i++)
            if (*of[i] == p) *of[i] = NULL;
    }
}

/* Releases the arrays on the device that nothing uses any more, and all working memory.
 * keep_relations: what relations use stays, too. */
void rt_device_maps_trim(RtExec *x, bool keep_relations) {
    RtDeviceMaps *m = x->rt->device ? x->rt->device->maps : NULL;
    if (!m) return;
    free_work(m);
    m->grouped = NULL;
    for (RtMapsArray **at = &m->arrays; *at;) {
        RtMapsArray *a = *at;
        a->here = NULL; /* the host may free it */
        if (is_wanted(m, a->there, keep_relations && m->on)) {
            at = &a->next;
            continue;
        }
        *at = a->next;
        forget(m, a->there);
        m->d->ops->release(m->d, a->there);
        m->d->built_bytes -= a->n_bytes;
    }
}

/* Of one array of n elements. */
static size_t work_of(int64_t n) {
    return ((size_t)n * sizeof(int32_t) / 256 + 1) * 256;
}

static size_t bins_bytes(int64_t n) {
    return (size_t)rt_sort_parts(n) * RT_SORT_BINS * sizeof(int32_t);
}

size_t rt_maps_work_bytes(int64_t n) {
    return 6 * work_of(n) + bins_bytes(n) + 2 * sizeof(int64_t);
}

/* Makes the working memory for sorting n edges at least that large; of batches it is. */
static gnnc_status work_for(RtDeviceMaps *m, int64_t n, Work *w) {
    size_t one = work_of(n), bins = bins_bytes(n), all = rt_maps_work_bytes(n);
    if (all > m->work_bytes && m->room)
        return rt_fail(err_of(m), GNNC_E_RANGE, "a batch larger than any there should be");
    if (all > m->work_bytes) {
        free_work(m);
        gnnc_status st = m->d->ops->alloc(m->d, all, &m->work);
        if (st != GNNC_OK) return st;
        m->work_bytes = all;
    }
    char *p = m->work;
    int32_t **const array[] = {&w->key, &w->keys[0], &w->keys[1], &w->tmp, &w->at[0], &w->at[1]};
    for (int i = 0; i < 6; i++) *array[i] = (int32_t *)(void *)(p + (size_t)i * one);
    w->count = (int32_t *)(void *)(p + 6 * one);
    w->ends = (int64_t *)(void *)(p + 6 * one + bins);
    return GNNC_OK;
}

/* ---- orders ---------------------------------------------------------------------------------- */
static gnnc_status run(RtDeviceMaps *m, RtMapsOp op, void *with) {
    void *const arg[] = {&op, with};
    rt_device_kernel *k = m->x->program->device_maps;
    const RtDeviceOps *ops = m->d->ops;
    return m->room ? ops->side_launch(m->d, m->queue, k, "index arrays", arg, err_of(m))
                   : ops->launch(m->d, k, "index arrays", arg);
}

/* Copies n_bytes from there, behind what was queued, and waits for them. */
static gnnc_status download(RtDeviceMaps *m, void *to, const void *there, size_t n_bytes) {
    const RtDeviceOps *ops = m->d->ops;
    if (!m->room) return ops->download(m->d, to, there, n_bytes);
    gnnc_status st = ops->side_download(m->d, m->queue, to, there, n_bytes, err_of(m));
    return st == GNNC_OK ? ops->side_wait(m->d, m->queue, err_of(m)) : st;
}

/* Sorts the positions `at` (NULL: 0 .. n) by key on the device, stably: perm gets the order, ptr
 * the bounds of the groups of equal keys. */
static gnnc_status sort(RtDeviceMaps *m, const Work *w, const int32_t *key, const int32_t *at,
                        int64_t n, int64_t n_groups, int32_t *perm, int64_t *ptr) {
    RtKeySort s = {.n = n,
                   .n_groups = n_groups,
                   .key = key,
                   .at = at,
                   .perm = perm,
                   .ptr = ptr,
                   .keys = {w->keys[0], w->keys[1]},
                   .tmp = w->tmp,
                   .count = w->count};
    return run(m, RT_MAPS_SORT, &s);
}

static gnnc_status read_one(RtDeviceMaps *m, const int64_t *there, int64_t *n) {
    return download(m, n, there, sizeof *n);
}

/* *to gets a device copy of n elements of the host's array `here`. */
static gnnc_status upload(RtDeviceMaps *m, const void *here, int64_t n, size_t size,
                          const void **to) {
    void *p;
    gnnc_status st = new_array(m, n, size, &p);
    *to = p;
    const RtDeviceOps *ops = m->d->ops;
    size_t n_bytes = (size_t)n * size;
    if (st != GNNC_OK) return st;
    return m->room ? ops->side_upload(m->d, m->queue, p, here, n_bytes, err_of(m))
                   : ops->upload(m->d, p, here, n_bytes);
}

/* The device's copy of an array of the host: it is uploaded once. */
gnnc_status rt_on_device_copy(RtDeviceMaps *m, const void *here, int64_t n, size_t size,
                              const void **to) {
    for (const RtMapsArray *a = m->arrays; a && n; a = a->next)
        if (a->here == here && a->n_bytes == (size_t)n * size) {
            *to = a->there;
            return GNNC_OK;
        }
    gnnc_status st = upload(m, here, n, size, to);
    if (st == GNNC_OK) m->arrays->here = here;
    return st;
}

/* Groups n entries by key on the device, as rt_group() does on the host; the same keys are grouped
 * only once. */
gnnc_status rt_on_device_group(RtDeviceMaps *m, const int32_t *key, int64_t n, int64_t n_groups,
                               RtGroups *out) {
    Work w;
    gnnc_status st;
    for (const RtMapsGrouped *g = m->grouped; g; g = g->next)
        if (g->key == key && g->n == n && g->groups.n_groups == n_groups) {
            *out = g->groups;
            return GNNC_OK;
        }
    RtMapsGrouped *g = RT_NEW(&m->x->rt->pool, RtMapsGrouped);
    if (!g) return rt_fail_nomem(err_of(m), "index arrays");
    if (n > INT32_MAX) return rt_fail(err_of(m), GNNC_E_RANGE, "2^31 entries or more");
    *g = (RtMapsGrouped){.next = m->grouped, .key = key, .n = n, .groups = {.n_groups = n_groups}};
    TRY(st, work_for(m, n, &w));
    TRY(st, new_i32(m, n, &g->groups.perm));
    TRY(st, new_i64(m, n_groups + 1, &g->groups.ptr));
    TRY(st, sort(m, &w, key, NULL, n, n_groups, g->groups.perm, g->groups.ptr));
    m->grouped = g;
    *out = g->groups;
out:
    return st;
}

/* *to gets, on the device, the number of the row of each of the n entries, made of the bounds ptr
 * of rows. */
gnnc_status rt_on_device_rows(RtDeviceMaps *m, const int64_t *ptr, int64_t rows, int64_t n,
                              const int32_t **to) {
    RtRowsTo r = {.n = n, .rows = rows, .ptr = ptr};
    gnnc_status st = new_i32(m, n, &r.y);
    *to = r.y;
    return st == GNNC_OK ? run(m, RT_MAPS_ROWS, &r) : st;
}

/* *to gets, on the device, x[perm[i]] for each i. */
gnnc_status rt_on_device_gather(RtDeviceMaps *m, const int32_t *x, const int32_t *perm,
                                const int64_t *n, int64_t count, const int32_t **to) {
    RtTakeTo t = {.count = count, .n = n, .x = x, .perm = perm};
    gnnc_status st = new_i32(m, count, &t.y);
    *to = t.y;
    return st == GNNC_OK ? run(m, RT_MAPS_TAKE, &t) : st;
}

bool rt_on_device_takes_codes(const RtDeviceMaps *m, int column) {
    return m->codes && m->codes[column].all && m->codes[column].row;
}

/* *to gets, on the device, codes of a batch's rows; several maps may ask for them. */
gnnc_status rt_on_device_codes(RtDeviceMaps *m, int column, int64_t n, const int32_t **to) {
    RtDeviceCodes *c = &m->codes[column];
    RtTakeTo t = {.count = n, .x = c->all};
    *to = c->taken;
    if (c->taken && c->n >= n) return GNNC_OK;
    if (c->wide)
        t.wide = c->row;
    else
        t.perm = c->row;
    gnnc_status st = new_i32(m, n, &t.y);
    *to = c->taken = t.y;
    c->n = n;
    return st == GNNC_OK ? run(m, RT_MAPS_TAKE, &t) : st;
}

/* ---- relations -------- */
const RtRelation *rt_device_relation_arrays(const RtDeviceMaps *m, int space) {
    return &m->rel[space];
}

RtRelation rt_device_relation_kept(const RtExec *x, int space) {
    const RtDevice *d = x->rt->device;
    return d && d->maps ? d->maps->rel[space] : (RtRelation){0};
}

static RtEdgesOf all_of(const RtRelation *r) {
    return (RtEdgesOf){.n = r->n_edges, .src = r->src, .dst = r->dst, .id = r->id};
}

/* The same edges in the other direction. */
static RtEdgesOf turned(RtEdgesOf e) {
    const int32_t *src = e.src;
    e.src = e.dst;
    e.dst = src;
    return e;
}

/* Logical ids are places in the list. */
static RtEdgesOf numbered(RtEdgesOf e, int64_t first) {
    e.id = NULL;
    e.id_first = first;
    return e;
}

/* Uploads the edges of a relation as the file lists them (the ends were checked to be valid node
 * numbers), and sets the sizes of relation r. */
static gnnc_status base_list(RtDeviceMaps *m, int space, RtEdgeList *l, RtRelation *r) {
    const RtBound *b = m->x->rt->bound;
    const rt_space *s = &m->x->program->spaces[space];
    const RtTable *t = b->table[space];
    const void *src, *dst;
    gnnc_status st;
    TRY(st, upload(m, t->src, t->count, sizeof *t->src, &src));
    TRY(st, upload(m, t->dst, t->count, sizeof *t->dst, &dst));
    l->of[0] = (RtEdgesOf){.n = t->count, .src = src, .dst = dst, .orig = -1};
    *r = (RtRelation){
        .n_src = b->table[s->src]->count, .n_dst = b->table[s->dst]->count, .id_bound = t->count};
out:
    return st;
}

/* The condition of the n edges of a relation; the host has gathered a batch's. */
static gnnc_status mask_of(RtDeviceMaps *m, int buf, int64_t n, const uint8_t **mask) {
    const void *p = m->d->at.buf[buf];
    gnnc_status st = m->room ? rt_on_device_copy(m, m->x->buf[buf], n, 1, &p) : GNNC_OK;
    *mask = p;
    return st;
}

/* Makes the list of edges from which a relation of the program is built, in the order that
 * data/relation.h gives for its kind. */
static gnnc_status list_of(RtDeviceMaps *m, int space, RtEdgeList *l, RtRelation *r) {
    const rt_space *s = &m->x->program->spaces[space];
    if (s->rel == RT_REL_BASE) return base_list(m, space, l, r);
    const RtRelation *base = &m->rel[s->base[0]];
    *r = (RtRelation){.n_src = base->n_src, .n_dst = base->n_dst, .id_bound = base->id_bound};
    RtEdgesOf *of = l->of;
    of[0] = all_of(base);
    switch (s->rel) {
    case RT_REL_SELF_LOOPS:
        of[0].no_loops = true;
        of[1] = (RtEdgesOf){.n = base->n_dst, .id_first = base->id_bound, .orig = -1};
        r->id_bound += base->n_dst;
        break;
    case RT_REL_NO_LOOPS:
        of[0].no_loops = true;
        break;
    case RT_REL_REVERSE:
        of[0] = turned(of[0]);
        r->n_src = base->n_dst;
        r->n_dst = base->n_src;
        break;
    case RT_REL_UNDIRECTED:
        of[1] = turned(of[0]);
        break;
    case RT_REL_UNION:
        of[1] = numbered(all_of(&m->rel[s->base[1]]), of[0].n);
        of[1].orig = 1;
        of[0] = numbered(of[0], 0);
        r->id_bound = of[0].n + of[1].n;
        break;
    case RT_REL_WHERE:
        return mask_of(m, s->cond_buf, base->n_edges, &l->mask);
    default:
        return GNNC_E_ARG; /* drawn, not derived */
    }
    return GNNC_OK;
}

/* Of equal edges the first in the list: ordered by both ends, which keeps their order, they stand
 * side by side. */
static gnnc_status choose_first(RtDeviceMaps *m, const Work *w, RtEdgeList *l,
                                const RtRelation *r) {
    RtEdgeKeys k = {.list = *l, .by_src = true, .key = w->key};
    gnnc_status st;
    TRY(st, run(m, RT_MAPS_KEYS, &k));
    TRY(st, sort(m, w, w->key, NULL, l->n, r->n_src, w->at[0], NULL));
    k.by_src = false;
    k.at = w->at[0];
    TRY(st, run(m, RT_MAPS_KEYS, &k));
    TRY(st, sort(m, w, w->key, w->at[0], l->n, r->n_dst, w->at[1], NULL));
    k.at = w->at[1];
    TRY(st, run(m, RT_MAPS_FIRST, &k));
    TRY(st, sort(m, w, w->key, NULL, l->n, 1, w->at[0], w->ends));
    l->chosen = w->at[0];
    st = read_one(m, w->ends + 1, &l->n);
out:
    return st;
}

/* Sorts the edges of the list canonically on the device and fills in the arrays of the relation r.
 */
static gnnc_status put_in_order(RtDeviceMaps *m, const Work *w, const RtEdgeList *l, int n_orig,
                                RtRelation *r) {
    RtEdgeKeys k = {.list = *l, .key = w->key};
    RtEdgesTo to = {.list = *l, .perm = w->at[1]};
    int64_t *ptr;
    gnnc_status st;
    TRY(st, new_i64(m, r->n_dst + 1, &ptr));
    TRY(st, run(m, RT_MAPS_KEYS, &k));
    TRY(st, sort(m, w, w->key, NULL, l->n, r->n_dst, w->at[1], ptr));
    TRY(st, read_one(m, ptr + r->n_dst, &r->n_edges));
    TRY(st, new_i32(m, r->n_edges, &to.src));
    TRY(st, new_i32(m, r->n_edges, &to.dst));
    TRY(st, new_i32(m, r->n_edges, &to.id));
    for (int i = 0; i < n_orig; i++) TRY(st, new_i32(m, r->n_edges, &to.orig[i]));
    to.n = ptr + r->n_dst;
    TRY(st, run(m, RT_MAPS_EDGES, &to));
    r->ptr = ptr;
    r->src = to.src;
    r->dst = to.dst;
    r->id = to.id;
    r->orig[0] = n_orig ? to.orig[0] : to.id;
    r->orig[1] = to.orig[1];
out:
    return st;
}

/* Releases one array on the device and takes it off the list. */
static void drop_copy(RtDeviceMaps *m, const void *there) {
    for (RtMapsArray **at = &m->arrays; *at; at = &(*at)->next) {
        RtMapsArray *a = *at;
        if (a->there != there) continue;
        *at = a->next;
        m->d->built_bytes -= a->n_bytes;
        m->d->ops->release(m->d, a->there);
        return;
    }
}

/* Builds a relation on the device from those that it is made of; *sizes gets its numbers of edges
 * and ids. */
gnnc_status rt_device_relation(RtDeviceMaps *m, int space, RtRelation *sizes) {
    rt_rel_kind kind = m->x->program->spaces[space].rel;
    int n_orig = kind == RT_REL_BASE ? 0 : kind == RT_REL_UNION ? 2 : 1;
    RtEdgeList l = {0};
    RtRelation r;
    Work w;
    gnnc_status st;
    TRY(st, list_of(m, space, &l, &r));
    l.n = l.of[0].n + l.of[1].n;
    if (l.n > INT32_MAX || r.id_bound > INT32_MAX)
        return rt_fail(err_of(m), GNNC_E_RANGE, "2^31 edges or more");
    TRY(st, work_for(m, l.n, &w));
    if (kind == RT_REL_UNDIRECTED) {
        TRY(st, choose_first(m, &w, &l, &r));
        r.id_bound = l.n;
    }
    TRY(st, put_in_order(m, &w, &l, n_orig, &r));
    m->rel[space] = r;
    *sizes = (RtRelation){
        .n_src = r.n_src, .n_dst = r.n_dst, .n_edges = r.n_edges, .id_bound = r.id_bound};
    if (kind == RT_REL_BASE) {
        drop_copy(m, l.of[0].src);
        drop_copy(m, l.of[0].dst);
    }
out:
    return st;
}

/* ---- back to the host -------- */
/* Copies an array of n elements from the device into new memory of the host, *here, unless the host
 * has it already or the device has none. */
static gnnc_status bring(RtDeviceMaps *m, const void *there, int64_t n, size_t size,
                         const void **here) {
    if (*here || !there) return GNNC_OK;
    void *p = rt_pool_alloc(&m->x->rt->pool, (size_t)n, size);
    if (!p) return rt_fail_nomem(err_of(m), "edges of a relation");
    *here = p;
    return download(m, p, there, (size_t)n * size);
}

/* bring() for arrays of i32: copies one from the device to the host. */
static gnnc_status download_i32(RtDeviceMaps *m, const int32_t *there, int64_t n,
                                const int32_t **here) {
    const void *p = *here;
    gnnc_status st = bring(m, there, n, sizeof *there, &p);
    *here = p;
    return st;
}

/* Copies to the host the arrays of a relation that the host needs; whole: all of them. */
gnnc_status rt_device_relation_to_host(RtExec *x, int space, bool whole) {
    RtDeviceMaps *m = x->rt->device->maps;
    const rt_space *s = &x->program->spaces[space];
    const RtRelation *from = &m->rel[space];
    RtRelation *to = &x->rt->bound->rel[space];
    int64_t n = from->n_edges;
    const void *ptr = to->ptr;
    gnnc_status st;
    if (s->rel == RT_REL_BASE || whole) TRY(st, download_i32(m, from->id, n, &to->id));
    if (s->rel == RT_REL_BASE) to->orig[0] = to->id;
    for (int k = 0; k < 2; k++) TRY(st, download_i32(m, from->orig[k], n, &to->orig[k]));
    if (whole) {
        TRY(st, download_i32(m, from->src, n, &to->src));
        TRY(st, download_i32(m, from->dst, n, &to->dst));
        TRY(st, bring(m, from->ptr, from->n_dst + 1, sizeof *from->ptr, &ptr));
        to->ptr = ptr;
    }
    for (int k = 0; k < 2 && !whole; k++)
        if (s->base[k] >= 0) TRY(st, rt_device_relation_to_host(x, s->base[k], whole));
out:
    return st;
}

/* After building on the device failed: true if the host is to build instead, because memory or
 * 32-bit numbers did not suffice (*st is then OK); other errors stay. */
bool rt_device_maps_fall_back(RtExec *x, const char *name, gnnc_status *st) {
    RtDeviceMaps *m = rt_device_maps(x);
    RtError *err = &x->rt->err, was = *err;
    if (*st == GNNC_OK || m->room) return false; /* a batch's room was made before */
    err->text[0] = '\0';
    if (*st != GNNC_E_NOMEM && *st != GNNC_E_RANGE) {
        rt_fail(err, *st, "building '%s' on the device: %s", name, was.text);
        return false;
    }
    m->on = false;
    rt_message(x->rt, "maps: '%s': %s; the host builds them", name,
               *st == GNNC_E_NOMEM ? "too little memory on the device" : was.text);
    *st = GNNC_OK;
    for (int s = 0; s < x->program->n_spaces && *st == GNNC_OK; s++)
        if (m->rel[s].ptr) *st = rt_device_relation_to_host(x, s, true);
    return true;
}

/* ---- buffers -------- */
void rt_on_device_point(RtDeviceMaps *m, int buf, const void *there) {
    if (buf >= 0) m->buf[buf] = (void *)there; /* kernels only read MAP and LOGICAL buffers */
}

/* Compares the index array of a buffer that was built on the device with the one that the host
 * built, `here`, and fails with the first entry that differs. */
gnnc_status rt_on_device_compare(RtDeviceMaps *m, int buf, const void *here, int64_t n,
                                 size_t size) {
    RtPool pool;
    gnnc_status st = GNNC_OK;
    if (!m->buf[buf]) return GNNC_OK;
    rt_pool_init(&pool, &m->x->rt->pool.from);
    char *there = rt_pool_alloc(&pool, (size_t)n, size);
    if (!there)
        st = rt_fail_nomem(err_of(m), "index arrays");
    else
        st = download(m, there, m->buf[buf], (size_t)n * size);
    int64_t i = 0;
    while (st == GNNC_OK && i < n &&
           !memcmp(there + (size_t)i * size, (const char *)here + (size_t)i * size, size))
        i++;
    if (st == GNNC_OK && i < n)
        st = rt_fail(err_of(m), GNNC_E_ASSERT, "map '%s': entry %lld of %lld differs on the device",
                     m->x->program->bufs[buf].name, (long long)i, (long long)n);
    rt_pool_free(&pool);
    return st;
}
