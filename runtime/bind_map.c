/* Index arrays of the maps that leave one space: where relations and columns already
 * hold them they are used as they are; the rest is made here, and only when asked for.
 *
 * Balanced loops: the rows of a map are cut into RT_CHUNKS runs of nearly equal work,
 * where a row costs one plus its entries.  Hub rows make a run of their own; the cut
 * depends on the data only, never on the thread count (cf. the edge-balanced "merge
 * path" of Merrill and Garland 2016, of which this is the row-aligned form). */
#include "bind.h"

typedef struct {
    const int32_t *idx;
    const int64_t *ptr;
    const int32_t *perm;
    int64_t n_from, n_to;
} Arrays;

static const RtGroups NO_GROUPS = {0};

static void set_groups(Arrays *a, const RtGroups *g) {
    a->ptr = g->ptr;
    a->perm = g->perm;
}

static gnnc_status of_graph(RtExec *x, const rt_map *m, Arrays *a) {
    const RtTable *t = x->rt->bound->table[m->from];
    const RtBound *b = x->rt->bound;
    if (!t->graph_ptr || t->graph < 0)
        return rt_fail(&x->rt->err, GNNC_E_MISSING,
                       "%s: node type '%s' is not divided into graphs (no graph_ptr)", b->dir,
                       t->name);
    if (&b->data->graphs[t->graph] != b->table[m->to])
        return rt_fail(&x->rt->err, GNNC_E_SHAPE,
                       "%s: node type '%s' is divided into '%s', in the model into '%s'", b->dir,
                       t->name, b->data->graphs[t->graph].name, b->table[m->to]->name);
    a->ptr = t->graph_ptr;
    if (m->idx_buf < 0) return GNNC_OK;
    return rt_table_graph_of(&x->rt->pool, t, a->n_to, &a->idx, &x->rt->err);
}

static gnnc_status arrays_of(RtExec *x, const rt_map *m, Arrays *a) {
    const RtBound *b = x->rt->bound;
    RtRelation *r = &b->rel[m->from];
    int nz_col = x->program->spaces[m->from].col;
    gnnc_status st;
    switch (m->kind) {
    case RT_MAP_SRC:
        a->idx = r->src;
        if (m->ptr_buf < 0 && m->perm_buf < 0) break;
        st = rt_relation_group_src(&x->rt->pool, r, &x->rt->err);
        if (st != GNNC_OK) return st;
        set_groups(a, &r->by_src);
        break;
    case RT_MAP_DST:
        a->idx = r->dst;
        a->ptr = r->ptr;
        break;
    case RT_MAP_GRAPH:
        return of_graph(x, m, a);
    case RT_MAP_COL:
        a->idx = b->col[m->col]->i32;
        break;
    case RT_MAP_ROW:
        a->idx = b->nz[nz_col].row;
        a->ptr = b->col[nz_col]->csr.ptr;
        break;
    case RT_MAP_NZCOL:
        a->idx = b->col[nz_col]->csr.col;
        set_groups(a, &b->nz[nz_col].by_col);
        break;
    case RT_MAP_ORIG:
        a->idx = r->orig[m->which];
        break;
    case RT_MAP_CELL:
        a->idx = r->cell;
        break;
    }
    return GNNC_OK;
}

/* Segments of a map that nobody has grouped yet; the identity where they are in order. */
static gnnc_status complete(RtExec *x, const rt_map *m, Arrays *a) {
    RtPool *pool = &x->rt->pool;
    bool wants_groups = (m->ptr_buf >= 0 && !a->ptr) || (m->perm_buf >= 0 && !a->perm);
    if (!wants_groups) return GNNC_OK;
    if (!a->ptr) {
        RtGroups g = NO_GROUPS;
        gnnc_status st = rt_group(pool, a->idx, a->n_from, a->n_to, &g, &x->rt->err);
        set_groups(a, &g);
        return st;
    }
    int32_t *perm = RT_NEWN(pool, int32_t, a->n_from);
    if (!perm) return rt_fail_nomem(&x->rt->err, "index arrays");
    for (int64_t i = 0; i < a->n_from; i++) perm[i] = (int32_t)i;
    a->perm = perm;
    return GNNC_OK;
}

int64_t rt_work_before(const int64_t *const *ptr, int n, int64_t row) {
    int64_t work = row;
    for (int i = 0; i < n; i++) work += ptr[i][row];
    return work;
}

/* Binary search, as all terms ascend. */
int64_t rt_row_at(const int64_t *const *ptr, int n, int64_t lo, int64_t hi, int64_t work) {
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (rt_work_before(ptr, n, mid) < work)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static gnnc_status balance(RtExec *x, int map, const Arrays *a) {
    int64_t *bound = RT_NEWN(&x->rt->pool, int64_t, RT_CHUNKS + 1);
    if (!bound) return rt_fail_nomem(&x->rt->err, "index arrays");
    int64_t work = a->ptr[a->n_to] + a->n_to;
    for (int c = 0; c <= RT_CHUNKS; c++)
        bound[c] = rt_row_at(&a->ptr, 1, 0, a->n_to,
                             work / RT_CHUNKS * c + work % RT_CHUNKS * c / RT_CHUNKS);
    x->rt->bound->balance[map] = bound;
    return GNNC_OK;
}

static void point(RtExec *x, int buf, const void *p) {
    if (buf >= 0) x->buf[buf] = (void *)p; /* kernels only read MAP buffers */
}

static int64_t size_of(const RtExec *x, int space) {
    const rt_space *s = &x->program->spaces[space];
    return s->fixed >= 0 ? s->fixed : s->sym >= 0 ? x->n[s->sym] : 0;
}

static gnnc_status bind_map(RtExec *x, int map) {
    const rt_map *m = &x->program->maps[map];
    if (m->idx_buf < 0 && m->ptr_buf < 0 && m->perm_buf < 0) return GNNC_OK;
    Arrays a = {.n_from = size_of(x, m->from), .n_to = size_of(x, m->to)};
    gnnc_status st;
    TRY(st, arrays_of(x, m, &a));
    TRY(st, complete(x, m, &a));
    point(x, m->idx_buf, a.idx);
    point(x, m->ptr_buf, a.ptr);
    point(x, m->perm_buf, a.perm);
    if (m->ptr_buf >= 0) st = balance(x, map, &a);
out:
    return st;
}

/* A map's targets in the order of another map's segments: the far ends of a node's edges
 * side by side, where a kernel runs through them. */
static gnnc_status bind_by(RtExec *x, int buf) {
    const rt_buf *b = &x->program->bufs[buf];
    rt_map m = x->program->maps[b->map], by = x->program->maps[b->by];
    Arrays to = {.n_from = size_of(x, m.from), .n_to = size_of(x, m.to)};
    Arrays order = {.n_from = to.n_from, .n_to = size_of(x, by.to)};
    gnnc_status st;
    m.idx_buf = by.ptr_buf = by.perm_buf = buf; /* wanted */
    TRY(st, arrays_of(x, &m, &to));
    TRY(st, arrays_of(x, &by, &order));
    TRY(st, complete(x, &by, &order));
    int32_t *idx = RT_NEWN(&x->rt->pool, int32_t, to.n_from);
    if (!idx) return rt_fail_nomem(&x->rt->err, "index arrays");
    for (int64_t k = 0; k < order.ptr[order.n_to]; k++) idx[k] = to.idx[order.perm[k]];
    point(x, buf, idx);
out:
    return st;
}

gnnc_status rt_bind_space(RtExec *x, int space) {
    const rt_program *p = x->program;
    for (int m = 0; m < p->n_maps; m++) {
        if (p->maps[m].from != space) continue;
        gnnc_status st = bind_map(x, m);
        if (st != GNNC_OK) return st;
    }
    for (int b = 0; b < p->n_bufs; b++) {
        const rt_buf *buf = &p->bufs[b];
        if (buf->kind == RT_BUF_LOGICAL && buf->space == space)
            point(x, b, x->rt->bound->rel[space].id);
        if (buf->kind != RT_BUF_MAP || buf->by < 0 || p->maps[buf->map].from != space) continue;
        gnnc_status st = bind_by(x, b);
        if (st != GNNC_OK) return st;
    }
    return GNNC_OK;
}
