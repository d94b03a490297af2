/* Buffers that grow, and views of a batch. */
#include "batch.h"

#include <string.h>

/* ---- memory that grows --------------------------------------------------------- */
static gnnc_status too_large(RtError *err) {
    return rt_fail(err, GNNC_E_NOMEM, "a batch: more memory than addresses");
}

/* Of a block for `need` bytes, without what aligns it: while roomy a half more than asked. */
static size_t to_get(const RtGrowth *g, const RtGrow *b, size_t need) {
    size_t want = g->roomy ? need + need / 4 : need;
    return want <= b->n_bytes && b->p ? 0 : want + need / 4 + RT_ALIGN;
}

size_t rt_grow_takes(const RtGrowth *g, const RtGrow *b, size_t need) {
    if (need > SIZE_MAX / 4) return SIZE_MAX; /* which rt_grow refuses */
    size_t get = to_get(g, b, need);
    return get ? get + RT_ALIGN : 0;
}

/* Gives the buffer a block of `get` bytes, of which the first n_keep are those of the old one. */
static gnnc_status replace(RtGrowth *g, RtGrow *b, size_t get, size_t n_keep, RtError *err) {
    char *block = g->from.alloc(g->from.user, get + RT_ALIGN);
    if (!block) return rt_fail_nomem(err, "a batch");
    void *p = block + (RT_ALIGN - (uintptr_t)block % RT_ALIGN) % RT_ALIGN;
    if (n_keep) memcpy(p, b->p, n_keep);
    if (b->block) g->from.release(g->from.user, b->block);
    g->held_bytes += (int64_t)get - (int64_t)b->n_bytes;
    g->n_grown++;
    *b = (RtGrow){p, block, get};
    return GNNC_OK;
}

gnnc_status rt_grow_like(RtGrowth *g, RtGrow *b, const RtGrow *like, RtError *err) {
    if (!like->p || like->n_bytes <= b->n_bytes) return GNNC_OK;
    return replace(g, b, like->n_bytes, 0, err);
}

gnnc_status rt_grow(RtGrowth *g, RtGrow *b, int64_t n, size_t size, int64_t n_keep, RtError *err) {
    if (n < 0 || (uint64_t)n > SIZE_MAX / 4 / size) return too_large(err);
    size_t get = to_get(g, b, (size_t)n * size);
    return get ? replace(g, b, get, (size_t)n_keep * size, err) : GNNC_OK;
}

/* Releases the buffer's memory. */
void rt_grow_free(RtGrowth *g, RtGrow *b) {
    if (b->block) g->from.release(g->from.user, b->block);
    g->held_bytes -= (int64_t)b->n_bytes;
    *b = (RtGrow){0};
}

/* ---- life ------------------------------------------------------------------------ */
/* Makes the batch's tables, for the types, relations and hops that it has; false: no memory. */
static bool tables_new(RtBatch *b) {
    RtPool *pool = &b->pool;
    size_t n_ends = (size_t)b->n_hops + 1;
    b->n_groups = 0;
    int most = b->n_types > 2 ? b->n_types : 2;
    b->nodes = RT_NEWN(pool, RtBatchNodes, b->n_types);
    b->edges = RT_NEWN(pool, RtBatchEdges, b->n_rels);
    b->n_seeds = RT_NEWN(pool, int64_t, most);
    b->seed = RT_NEWN(pool, int32_t *, most);
    b->seed_buf = RT_NEWN(pool, RtGrow, most);
    bool ok = b->nodes && b->edges && b->n_seeds && b->seed && b->seed_buf;
    for (int t = 0; ok && t < b->n_types; t++)
        ok = (b->nodes[t].end = RT_NEWN(pool, int64_t, n_ends));
    for (int r = 0; ok && r < b->n_rels; r++)
        ok = (b->edges[r].end = RT_NEWN(pool, int64_t, n_ends));
    return ok;
}

gnnc_status rt_batch_new(RtBatch **out, const RtAlloc *from, int n_types, int n_rels, int n_hops,
                         RtError *err) {
    RtPool pool;
    *out = NULL;
    rt_pool_init(&pool, from);
    RtBatch *b = RT_NEW(&pool, RtBatch); /* inside its own pool */
    if (!b) return rt_fail_nomem(err, "a batch");
    b->pool = pool;
    b->growth.from = pool.from;
    b->n_types = n_types;
    b->n_rels = n_rels;
    b->n_hops = n_hops;
    if (tables_new(b)) {
        *out = b;
        return GNNC_OK;
    }
    pool = b->pool;
    rt_pool_free(&pool);
    return rt_fail_nomem(err, "a batch");
}

/* Releases the arrays of a relation's edges. */
static void free_edges(RtGrowth *g, RtBatchEdges *e) {
    RtGrow *all[] = {&e->ptr_buf, &e->src_buf, &e->dst_buf, &e->pos_buf,
                     &e->id_buf,  &e->by_buf,  &e->perm_buf};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) rt_grow_free(g, all[i]);
}

void rt_batch_free(RtBatch *b) {
    if (!b) return;
    RtGrowth *g = &b->growth;
    for (int t = 0; t < b->n_types; t++) {
        rt_grow_free(g, &b->nodes[t].id_buf);
        rt_grow_free(g, &b->nodes[t].tree_buf);
    }
    for (int r = 0; r < b->n_rels; r++) free_edges(g, &b->edges[r]);
    for (int i = 0; i < (b->n_types > 2 ? b->n_types : 2); i++) rt_grow_free(g, &b->seed_buf[i]);
    RtPool pool = b->pool; /* b itself goes away with it */
    rt_pool_free(&pool);
}

/* Buffer k of the batch; NULL: there are no more. */
static RtGrow *buffer(RtBatch *b, int k) {
    enum { OF_NODES = 2, OF_EDGES = 7 };
    if (k < OF_NODES * b->n_types) {
        RtBatchNodes *n = &b->nodes[k / OF_NODES];
        return k % OF_NODES ? &n->tree_buf : &n->id_buf;
    }
    k -= OF_NODES * b->n_types;
    if (k >= OF_EDGES * b->n_rels) return NULL;
    RtBatchEdges *e = &b->edges[k / OF_EDGES];
    RtGrow *all[OF_EDGES] = {&e->ptr_buf, &e->src_buf, &e->dst_buf, &e->pos_buf,
                             &e->id_buf,  &e->by_buf,  &e->perm_buf};
    return all[k % OF_EDGES];
}

gnnc_status rt_batch_reserve(RtBatch *b, const RtBatch *like, RtError *err) {
    RtGrow *to;
    gnnc_status st = GNNC_OK;
    for (int k = 0; st == GNNC_OK && (to = buffer(b, k)); k++)
        st = rt_grow_like(&b->growth, to, buffer((RtBatch *)like, k), err);
    return st;
}

/* ---- views ------------------------------------------------------------------------- */
/* Where edges may come from any node, one layer back is already everything. */
static int64_t needed(const RtBatch *b, const int64_t *end, int h) {
    if (h > b->n_hops || (h > 0 && !b->by_hop)) h = b->n_hops;
    return end[h];
}

int64_t rt_batch_nodes_needed(const RtBatch *b, int type, int h) {
    return needed(b, b->nodes[type].end, h);
}

int64_t rt_batch_edges_needed(const RtBatch *b, int rel, int h) {
    return needed(b, b->edges[rel].end, h);
}

RtRelation rt_batch_relation(const RtBatch *b, int rel, int src_type, int dst_type) {
    const RtBatchEdges *e = &b->edges[rel];
    return (RtRelation){
        .n_src = b->nodes[src_type].n,
        .n_dst = b->nodes[dst_type].n,
        .n_edges = e->n,
        .ptr = e->ptr,
        .src = e->src,
        .dst = e->dst,
        .by_src = e->by_src,
        .id = e->id,
        .id_bound = e->id_bound,
    };
}

/* ---- the transpose ---------------------------------------------------------------------- */
/* Groups a relation's edges by source, as rt_group does it: pointers go from starts to ends while
 * edges are placed. */
static void transpose(RtBatchEdges *e, int64_t n_src) {
    int64_t *ptr = e->by_buf.p;
    int32_t *perm = e->perm_buf.p;
    memset(ptr, 0, (size_t)(n_src + 2) * sizeof *ptr);
    for (int64_t i = 0; i < e->n; i++) ptr[e->src[i] + 2]++;
    for (int64_t k = 2; k <= n_src; k++) ptr[k] += ptr[k - 1];
    for (int64_t i = 0; i < e->n; i++) perm[ptr[e->src[i] + 1]++] = (int32_t)i;
    e->by_src = (RtGroups){.n_groups = n_src, .n = e->n, .ptr = ptr, .perm = perm};
}

typedef struct {
    RtBatch *b;
    const int *src_type;
} Transpose;

/* A member transposes every n_members-th relation of the batch. */
static void transpose_share(void *arg, int member, int n_members) {
    const Transpose *t = arg;
    for (int r = member; r < t->b->n_rels; r += n_members)
        transpose(&t->b->edges[r], t->b->nodes[t->src_type[r]].n);
}

gnnc_status rt_batch_transpose(RtBatch *b, const int *src_type, RtTeam *team, RtError *err) {
    for (int r = 0; r < b->n_rels; r++) {
        RtBatchEdges *e = &b->edges[r];
        int64_t n_src = b->nodes[src_type[r]].n;
        gnnc_status st = rt_grow(&b->growth, &e->by_buf, n_src + 2, sizeof(int64_t), 0, err);
        if (st == GNNC_OK) st = rt_grow(&b->growth, &e->perm_buf, e->n, sizeof(int32_t), 0, err);
        if (st != GNNC_OK) return st;
    }
    Transpose t = {b, src_type};
    rt_team_run(b->n_rels > 1 ? team : NULL, transpose_share, &t);
    return GNNC_OK;
}
