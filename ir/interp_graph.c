/* Relations and maps of the reference interpreter.  The rules stand in
 * runtime/exec/rng.h; runtime/data/relation.c is the fast twin. */
#include <stdlib.h>

#include "ir/op/op.h"

#include "ir/interp_impl.h"

typedef struct {
    int64_t src, dst, key, orig[2];
} Edge;

typedef VEC(Edge) Listing;

static void list(Interp *in, Listing *l, int64_t src, int64_t dst, int64_t key, int64_t o0,
                 int64_t o1) {
    vec_push(in->a, l, ((Edge){src, dst, key, {o0, o1}}));
}

/* Sorts edges by destination, stably. */
static const InterpEdges *sort_canonical(Interp *in, const Space *s, const Listing *l,
                                         int64_t n_keys) {
    int64_t n = l->n, n_dst = interp_size(in, s->dst), at = 0;
    InterpEdges *e = NEW(in->a, InterpEdges);
    int64_t **part[] = {&e->src, &e->dst, &e->key, &e->pos, &e->orig[0], &e->orig[1]};
    for (size_t i = 0; i < COUNT(part); i++) *part[i] = NEWN(in->a, int64_t, (size_t)n + 1);
    int64_t *count = NEWN(in->a, int64_t, (size_t)n_dst + 1);
    for (int64_t i = 0; i < n; i++) count[l->v[i].dst + 1]++;
    for (int64_t v = 0; v < n_dst; v++) count[v + 1] += count[v];
    for (int64_t i = 0; i < n; i++) {
        const Edge *x = &l->v[i];
        at = count[x->dst]++;
        e->src[at] = x->src, e->dst[at] = x->dst, e->key[at] = x->key, e->pos[at] = i;
        e->orig[0][at] = x->orig[0], e->orig[1][at] = x->orig[1];
    }
    e->n = n, e->n_keys = n_keys;
    in->space[s->id].edges = e;
    interp_set_size(in, s, n);
    return e;
}

/* Gives the interpreter the n edges of a relation of the data, from src[i] to dst[i]. They are
 * copied in canonical order (sorted, as the runtime stores edges). */
void interp_set_edges(Interp *in, const Space *s, int64_t n, const int32_t *src,
                      const int32_t *dst) {
    interp_fit(in);
    Listing l = {0};
    for (int64_t i = 0; i < n; i++) list(in, &l, src[i], dst[i], i, -1, -1);
    sort_canonical(in, s, &l, n);
}

/* Drawn relations keep the order in which they are given. */
void interp_set_drawn(Interp *in, const Space *s, int64_t n, const int32_t *src, const int32_t *dst,
                      const int32_t *orig) {
    interp_fit(in);
    InterpEdges *e = NEW(in->a, InterpEdges);
    int64_t **part[] = {&e->src, &e->dst, &e->key, &e->pos, &e->orig[0], &e->orig[1]};
    for (size_t i = 0; i < COUNT(part); i++) *part[i] = NEWN(in->a, int64_t, (size_t)n + 1);
    for (int64_t i = 0; i < n; i++) {
        e->src[i] = src[i], e->dst[i] = dst[i], e->orig[0][i] = orig[i];
        e->key[i] = e->pos[i] = i, e->orig[1][i] = -1;
    }
    e->n = e->n_keys = n;
    in->space[s->id].edges = e;
    interp_set_size(in, s, n);
}

/* Sets the graph of each node. */
void interp_set_graphs(Interp *in, const Space *node, const int32_t *graph) {
    interp_fit(in);
    int64_t n = interp_size(in, node), *g = NEWN(in->a, int64_t, (size_t)n + 1);
    for (int64_t i = 0; i < n; i++) g[i] = graph[i];
    in->space[node->id].graph = g;
}

/* Sets the distinct rows of a batch's nodes, numbered as they first come. */
void interp_set_rows_of(Interp *in, const Space *s, const int32_t *row) {
    interp_fit(in);
    int64_t n = interp_size(in, s->distinct_of), n_rows = 0;
    int64_t *to = NEWN(in->a, int64_t, (size_t)n + 1), *first = NEWN(in->a, int64_t, (size_t)n + 1);
    for (int64_t i = 0; i < n; i++) {
        int64_t k = 0;
        while (k < n_rows && row[first[k]] != row[i]) k++;
        if (k == n_rows) first[n_rows++] = i;
        to[i] = k;
    }
    in->space[s->id].distinct = to;
    in->space[s->id].first = first;
    interp_set_size(in, s, n_rows);
}

/* ---- derived relations --------------------------------------------------------- */

typedef struct {
    int64_t src, dst, pos;
} Pair;

/* The order of two edges, for qsort. */
static int compare_pairs(const void *x, const void *y) {
    const Pair *p = x, *q = y;
    if (p->src != q->src) return p->src < q->src ? -1 : 1;
    if (p->dst != q->dst) return p->dst < q->dst ? -1 : 1;
    return p->pos < q->pos ? -1 : p->pos > q->pos;
}

/* Lists the edges of both directions; of equal (src, dst) only the first stays. */
static void list_undirected(Interp *in, Listing *l, const InterpEdges *b) {
    int64_t n = 2 * b->n;
    Pair *p = NEWN(in->a, Pair, (size_t)n + 1);
    bool *repeated = NEWN(in->a, bool, (size_t)n + 1);
    for (int64_t i = 0; i < b->n; i++) {
        p[i] = (Pair){b->src[i], b->dst[i], i};
        p[b->n + i] = (Pair){b->dst[i], b->src[i], b->n + i};
    }
    qsort(p, (size_t)n, sizeof *p, compare_pairs);
    for (int64_t k = 1; k < n; k++)
        repeated[p[k].pos] = p[k].src == p[k - 1].src && p[k].dst == p[k - 1].dst;
    for (int64_t i = 0; i < n; i++) {
        int64_t e = i % b->n;
        if (repeated[i]) continue;
        list(in, l, i < b->n ? b->src[e] : b->dst[e], i < b->n ? b->dst[e] : b->src[e], l->n, e,
             -1);
    }
}

/* The mask of a `where`, computed by @load in this run or an earlier one. */
static bool where_mask(Interp *in, const Space *s, const InterpEdges *b, const double **mask) {
    const OpTensor *x = interp_load_value(in, s->cond);
    *mask = x ? x->v : interp_saved_first(in, s->cond, b->n);
    if (*mask) return true;
    return interp_fail(
        in, NULL,
        arena_printf(in->a, "'%s', which %s depends on, is not computed yet", s->cond, s->name));
}

/* Adds to the listing the edges of relation s, which is made of relation b: those that the mask
 * keeps (NULL = all), reversed where s is the reverse, without self-loops where s removes or
 * replaces them. */
static void list_edges(Interp *in, Listing *l, const Space *s, const InterpEdges *b,
                       const double *mask) {
    bool swap = s->rel == REL_REVERSE;
    bool loops = s->rel != REL_SELF_LOOPS && s->rel != REL_NO_LOOPS;
    for (int64_t i = 0; i < b->n; i++) {
        if (mask && !mask[i]) continue;
        if (!loops && b->src[i] == b->dst[i]) continue;
        int64_t src = swap ? b->dst[i] : b->src[i], dst = swap ? b->src[i] : b->dst[i];
        list(in, l, src, dst, b->key[i], i, -1);
    }
}

/* Builds a derived relation. */
static const InterpEdges *derive_edges(Interp *in, const Space *s) {
    const InterpEdges *b = interp_edges(in, s->base[0]);
    if (!b) return NULL;
    Listing l = {0};
    const double *mask = NULL;
    if (s->rel == REL_UNDIRECTED) {
        list_undirected(in, &l, b);
        return sort_canonical(in, s, &l, l.n);
    }
    if (s->rel == REL_UNION) {
        const InterpEdges *c = interp_edges(in, s->base[1]);
        if (!c) return NULL;
        for (int64_t i = 0; i < b->n; i++) list(in, &l, b->src[i], b->dst[i], i, i, -1);
        for (int64_t i = 0; i < c->n; i++) list(in, &l, c->src[i], c->dst[i], b->n + i, -1, i);
        return sort_canonical(in, s, &l, l.n);
    }
    if (s->rel == REL_WHERE && !where_mask(in, s, b, &mask)) return NULL;
    list_edges(in, &l, s, b, mask);
    if (s->rel != REL_SELF_LOOPS) return sort_canonical(in, s, &l, b->n_keys);
    int64_t n = interp_size(in, s->dst);
    for (int64_t v = 0; v < n; v++) list(in, &l, v, v, b->n_keys + v, -1, -1);
    return sort_canonical(in, s, &l, b->n_keys + n);
}

/* The first edges of a relation, those into the first nodes, as edges are sorted by destination. */
static const InterpEdges *first_edges(Interp *in, const Space *s) {
    const InterpEdges *all = interp_edges(in, s->prefix_of);
    if (!all) return NULL;
    int64_t n_src = interp_size(in, s->src), n_dst = interp_size(in, s->dst);
    InterpEdges *e = NEW(in->a, InterpEdges);
    *e = *all;
    for (e->n = 0; e->n < all->n && all->dst[e->n] < n_dst; e->n++) {
        if (all->src[e->n] < n_src) continue;
        interp_fail(
            in, NULL,
            arena_printf(in->a, "an edge of %s leads from beyond %s", s->name, s->src->name));
        return NULL;
    }
    in->space[s->id].edges = e;
    interp_set_size(in, s, e->n);
    return e;
}

/* The edges of a relation, built if necessary. */
const InterpEdges *interp_edges(Interp *in, const Space *s) {
    const InterpEdges *e = in->space[s->id].edges;
    if (e) return e;
    if (s->prefix_of) return first_edges(in, s);
    if (s->rel != REL_BASE && !rel_is_drawn(s->rel)) return derive_edges(in, s);
    interp_fail(in, NULL, arena_printf(in->a, "the edges of %s were not given", s->name));
    return NULL;
}

/* ---- maps ------------------------------------------------------------------------- */

/* Numbers as indices. */
static int64_t *to_index(Interp *in, const double *v, int64_t n) {
    int64_t *x = NEWN(in->a, int64_t, (size_t)n + 1);
    for (int64_t i = 0; i < n; i++) x[i] = (int64_t)v[i];
    return x;
}

/* The map by a column. */
static const int64_t *column_map(Interp *in, const Map *m) {
    if (in->map[m->id]) return in->map[m->id];
    const double *v = interp_column(in, m->col);
    if (v) return in->map[m->id] = to_index(in, v, interp_size(in, m->from));
    interp_fail(in, NULL, arena_printf(in->a, "column '%s' was not given", m->col->name));
    return NULL;
}

/* The cell of each edge: its query's row, its destination's column. */
static const int64_t *cell_map(Interp *in, const Map *m, const InterpEdges *e) {
    int64_t *at = NEWN(in->a, int64_t, (size_t)e->n + 1);
    int64_t n = interp_size(in, m->from->dst);
    const InterpEdges *a = m->from->rel == REL_ANSWERS ? NULL : interp_edges(in, m->from->base[0]);
    for (int64_t i = 0; i < e->n; i++) {
        int64_t q = e->orig[0][i];
        at[i] = (a ? a->orig[0][q] : q) * n + e->dst[i];
    }
    return at;
}

/* A map from edges. */
static const int64_t *edge_map(Interp *in, const Map *m) {
    const InterpEdges *e = interp_edges(in, m->from);
    if (!e) return NULL;
    if (m->kind == MAP_SRC) return e->src;
    if (m->kind == MAP_CELL) return cell_map(in, m, e);
    return m->kind == MAP_DST ? e->dst : e->orig[m->which];
}

/* The map by a pair: -1 where one of them has no target. */
static const int64_t *pair_map(Interp *in, const Map *m) {
    const int64_t *one[2], *base = m->via ? interp_map(in, m->via) : NULL;
    for (int k = 0; k < 2; k++) one[k] = interp_map(in, m->pair[k]);
    if (!one[0] || !one[1] || (m->via && !base)) return NULL;
    int64_t rows = interp_size(in, m->from), n = interp_size(in, m->pair[1]->to);
    int64_t *at = NEWN(in->a, int64_t, (size_t)rows + 1);
    for (int64_t i = 0; i < rows; i++) {
        int64_t place[2];
        for (int k = 0; k < 2; k++) {
            int64_t row = m->pair[k]->from == m->from ? i : base[i];
            place[k] = row < 0 ? -1 : one[k][row];
        }
        at[i] = place[0] < 0 || place[1] < 0 ? -1 : place[0] * n + place[1];
    }
    return at;
}

/* The numbers 0, 1, .. */
static const int64_t *iota_map(Interp *in, int64_t n) {
    int64_t *x = NEWN(in->a, int64_t, (size_t)n + 1);
    for (int64_t i = 0; i < n; i++) x[i] = i;
    return x;
}

/* The column's map behind the map from distinct rows. */
static const int64_t *via_map(Interp *in, const Map *m) {
    const int64_t *first = interp_map(in, m->via), *col = interp_map(in, m->pair[0]);
    int64_t n = interp_size(in, m->from);
    int64_t *at = first && col ? NEWN(in->a, int64_t, (size_t)n + 1) : NULL;
    for (int64_t i = 0; at && i < n; i++) at[i] = col[first[i]];
    return at;
}

/* A map, built if necessary. */
const int64_t *interp_map(Interp *in, const Map *m) {
    const InterpSpace *from = &in->space[m->from->id];
    const int64_t *index = NULL;
    switch (m->kind) {
    case MAP_SRC:
    case MAP_DST:
    case MAP_ORIG:
    case MAP_CELL:
        return edge_map(in, m);
    case MAP_COL:
        return column_map(in, m);
    case MAP_PAIR:
        return pair_map(in, m);
    case MAP_DISTINCT:
        index = in->space[m->to->id].distinct;
        return index ? index : iota_map(in, interp_size(in, m->from));
    case MAP_FIRST:
        return from->distinct ? from->first : iota_map(in, interp_size(in, m->from));
    case MAP_VIA:
        return via_map(in, m);
    case MAP_GRAPH:
        index = from->graph;
        break;
    case MAP_ROW:
        index = from->csr ? from->csr->row : NULL;
        break;
    case MAP_NZCOL:
        index = from->csr ? from->csr->col : NULL;
        break;
    }
    if (!index)
        interp_fail(in, NULL, arena_printf(in->a, "the rows of %s were not given", m->from->name));
    return index;
}

const InterpCsr *interp_csr(Interp *in, const Op *op) {
    const Column *c = op_csr_column(in->m, op);
    const InterpCsr *s = c ? in->space[c->nz->id].csr : NULL;
    if (!s) interp_fail(in, op, "the entries of its csr column were not given");
    return s;
}

/* ---- random streams ----------------------------------------------------------------- */

/* The key of row i. */
static bool random_row(Interp *in, const Space *s, int64_t i, int64_t *row) {
    *row = i;
    if (s->kind == SP_EDGE) {
        const InterpEdges *e = interp_edges(in, s);
        if (e) *row = e->key[i];
        return e != NULL;
    }
    if (s->kind != SP_NZ) return true;
    const InterpCsr *c = in->space[s->id].csr;
    if (!c) return interp_fail(in, NULL, "the entries of a csr column were not given");
    *row = c->row[i];
    return true;
}

/* The row and column by which an element is random. */
bool interp_random_index(Interp *in, const Walk *w, uint32_t *row, uint32_t *col) {
    int64_t r = 0, c = 0;
    if (w->n && !random_row(in, w->s[0], w->i[0], &r)) return false;
    if (w->n && w->s[0]->kind == SP_NZ) c = in->space[w->s[0]->id].csr->col[w->i[0]];
    for (int d = 1; d < w->n; d++) c = c * w->size[d] + w->i[d];
    *row = (uint32_t)r, *col = (uint32_t)c;
    return true;
}
