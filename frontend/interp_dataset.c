#include "frontend/interp_dataset.h"

#include <string.h>

/* The table of the dataset that a space's rows are in: a batch has all rows, and a derived
 * relation has the columns of its base. */
static const RtTable *table_of(const RtDataset *d, const Space *s) {
    while (s->prefix_of || (s->kind == SP_EDGE && s->rel != REL_BASE))
        s = s->prefix_of ? s->prefix_of : s->base[0];
    if (s->kind == SP_GRAPH) return rt_dataset_graphs(d, s->name);
    return s->kind == SP_NODE ? rt_dataset_nodes(d, s->name) : rt_dataset_edges(d, s->name);
}

/* ---- sizes and structure ------------------------------------------------------------------ */

/* Tells the interpreter which graph each node of a table belongs to. */
static void set_graphs(Interp *in, const Module *m, const Space *node, const RtTable *t) {
    int32_t *graph = NEWN(m->a, int32_t, (size_t)t->count + 1);
    for (int64_t v = 0, g = 0; v < t->count; v++) {
        while (t->graph_ptr[g + 1] <= v) g++;
        graph[v] = (int32_t)g;
    }
    interp_set_graphs(in, node, graph);
}

/* Tells the interpreter how many rows the node types and graphs have. False: the dataset lacks
 * one. */
static bool set_rows(Interp *in, const Module *m, const RtDataset *d) {
    for (int i = 0; i < m->spaces.n; i++) {
        const Space *s = m->spaces.v[i];
        if (s->kind != SP_NODE && s->kind != SP_GRAPH) continue;
        const RtTable *t = table_of(d, s);
        if (!t) return false;
        interp_set_size(in, s, t->count);
    }
    for (int i = 0; i < m->spaces.n; i++) { /* a node's graph needs the number of graphs */
        const Space *s = m->spaces.v[i];
        const RtTable *t = s->kind == SP_NODE && s->graph ? table_of(d, s) : NULL;
        if (t && t->graph_ptr) set_graphs(in, m, s, t);
    }
    return true;
}

/* Tells the interpreter the edges of each relation of the data. */
static void set_edges(Interp *in, const Module *m, const RtDataset *d) {
    for (int i = 0; i < m->spaces.n; i++) {
        const Space *s = m->spaces.v[i];
        if (s->kind != SP_EDGE || s->rel != REL_BASE || s->prefix_of) continue;
        const RtTable *t = table_of(d, s);
        if (t) interp_set_edges(in, s, t->count, t->src, t->dst);
    }
}

/* Links that are scored: the first edges, then negatives of each with another destination. */
static void set_links(Interp *in, const Module *m, const Space *s) {
    enum { SOME = 5 };
    const InterpEdges *e = interp_edges(in, s->base[0]);
    int64_t p = e && e->n < SOME ? e->n : SOME, nodes = interp_size(in, s->dst);
    int64_t n = s->rel == REL_LINKS ? p * (1 + m->recipe.sample.negatives) : p;
    int32_t *src = NEWN(m->a, int32_t, (size_t)n + 1), *dst = NEWN(m->a, int32_t, (size_t)n + 1);
    int32_t *orig = NEWN(m->a, int32_t, (size_t)n + 1);
    for (int64_t i = 0; e && i < n; i++) {
        src[i] = (int32_t)e->src[i % p], orig[i] = (int32_t)(i % p);
        dst[i] = (int32_t)((e->dst[i % p] + i / p) % nodes);
    }
    if (e) interp_set_drawn(in, s, n, src, dst, orig);
}

/* Gives the interpreter some links for models that score them, in place of those that the
 * runtime draws. */
static void set_drawn(Interp *in, const Module *m) {
    for (int i = 0; i < m->spaces.n; i++) {
        const Space *s = m->spaces.v[i];
        if (s->kind == SP_EDGE && (s->rel == REL_LINKS || s->rel == REL_POSITIVES))
            set_links(in, m, s);
    }
}

/* ---- columns -------------------------------------------------------------------------------- */

static const RtColumn *column_of(const RtDataset *d, const Column *c) {
    const RtTable *t = table_of(d, c->space);
    return t ? rt_table_column(t, c->name) : NULL;
}

/* Binds the sizes of a column's dimensions. interp_set_size leaves alone what is not a symbol of
 * its own. */
static void set_widths(Interp *in, const Column *c, const RtColumn *x) {
    for (int k = 1; k < c->type.rank && k < x->rank; k++)
        interp_set_size(in, c->type.dim[k], x->shape[k]);
    if (c->cat) interp_set_size(in, c->cat, x->n_categories);
}

/* The i-th element of a column, as a double, from the array that it is stored in. */
static double element(const RtColumn *x, int64_t i) {
    bool low = x->kind == RT_COL_FLOAT && !x->f32 && x->low;
    RtArray a = {.dt = rt_column_kind(x->kind)->element, .data = x->values};
    if (low) a = (RtArray){.dt = x->low_dt, .data = x->low};
    return rt_array_f64(&a, i);
}

/* How many elements a column has. */
static int64_t count_of(const RtColumn *x) {
    int64_t n = 1;
    for (int k = 0; k < x->rank; k++) n *= x->shape[k];
    return n;
}

/* Tells the interpreter the values of a column that the model has as a dense one; sparse data
 * are spread out. */
static void set_dense(Interp *in, const Module *m, const Column *c, const RtColumn *x) {
    int64_t n = count_of(x);
    double *v = NEWN(m->a, double, (size_t)n + 1);
    for (int64_t i = 0; x->kind != RT_COL_CSR && i < n; i++) v[i] = element(x, i);
    for (int64_t r = 0; x->kind == RT_COL_CSR && r < x->n_rows; r++)
        for (int64_t k = x->csr.ptr[r]; k < x->csr.ptr[r + 1]; k++)
            v[r * x->shape[1] + x->csr.col[k]] = (double)x->csr.val[k];
    interp_set_column(in, c, v);
}

/* Tells the interpreter the values of a dense column that the model has as a sparse one: its
 * entries that are not 0. */
static void set_entries(Interp *in, const Module *m, const Column *c, const RtColumn *x) {
    int64_t n = count_of(x), width = x->shape[1], nnz = 0;
    for (int64_t i = 0; i < n; i++) nnz += element(x, i) != 0;
    int64_t *ptr = NEWN(m->a, int64_t, (size_t)x->n_rows + 1);
    int32_t *col = NEWN(m->a, int32_t, (size_t)nnz + 1);
    double *v = NEWN(m->a, double, (size_t)nnz + 1);
    for (int64_t i = 0, k = 0; i < n; i++) {
        double e = element(x, i);
        if (e != 0) v[k] = e, col[k++] = (int32_t)(i % width);
        ptr[i / width + 1] = k;
    }
    interp_set_csr(in, c, ptr, col, v);
}

/* Tells the interpreter the values of a column that the model has as a sparse one; dense data
 * are stored by their entries. */
static void set_csr(Interp *in, const Module *m, const Column *c, const RtColumn *x) {
    if (x->kind != RT_COL_CSR) {
        set_entries(in, m, c, x);
        return;
    }
    double *v = NEWN(m->a, double, (size_t)x->csr.nnz + 1);
    for (int64_t i = 0; i < x->csr.nnz; i++) v[i] = (double)x->csr.val[i];
    interp_set_csr(in, c, x->csr.ptr, x->csr.col, v);
}

/* Called twice: first with `widths`, for the sizes that the columns bind, then for their values,
 * since an array is allocated by its sizes. */
static void set_columns(Interp *in, const Module *m, const RtDataset *d, bool widths) {
    for (int i = 0; i < m->cols.n; i++) {
        const Column *c = m->cols.v[i];
        const RtColumn *x = column_of(d, c);
        if (!x) continue; /* reading it is an error */
        if (widths)
            set_widths(in, c, x);
        else if (c->kind == COL_CSR)
            set_csr(in, m, c, x);
        else
            set_dense(in, m, c, x);
    }
}

/* Gives a whole dataset to the interpreter of a module. False: it lacks a node type of the
 * model. */
bool interp_dataset(Interp *in, const Module *m, const RtDataset *d) {
    if (!set_rows(in, m, d)) return false;
    set_edges(in, m, d);
    set_columns(in, m, d, true);
    set_columns(in, m, d, false);
    set_drawn(in, m);
    return true;
}

/* ---- the batch ------------------------------------------------------------------------------ */

/* The interpreter has no sampler: the first half of the target's rows are the seeds of its one
 * batch. end[i] is how many rows of space i are seeds. For links all nodes are, since their ends
 * may lie anywhere. */
static void set_seeds(Interp *in, const Module *m, int64_t *end) {
    const Column *target = module_target(m, false);
    for (int i = 0; i < m->spaces.n; i++) {
        const Space *s = m->spaces.v[i];
        if (s->kind != SP_NODE || s->prefix_of) continue;
        end[i] = interp_size(in, s);
        if (target && !m->recipe.sample.train_links)
            end[i] = s == target->space ? (end[i] + 1) / 2 : 0;
    }
}

/* Grows end[], a prefix of each node type, by one hop: to the smallest prefix that also holds
 * all sources of edges into the old one. */
static void extend_by_hop(Interp *in, const Module *m, int64_t *end) {
    int64_t *next = NEWN(m->a, int64_t, (size_t)m->spaces.n + 1);
    memcpy(next, end, (size_t)m->spaces.n * sizeof *end);
    for (int i = 0; i < m->spaces.n; i++) {
        const Space *s = m->spaces.v[i];
        const InterpEdges *e = space_is_sampled(m, s) ? interp_edges(in, s) : NULL;
        for (int64_t k = 0; e && k < e->n && e->dst[k] < end[s->dst->id]; k++)
            if (e->src[k] >= next[s->src->id]) next[s->src->id] = e->src[k] + 1;
    }
    memcpy(end, next, (size_t)m->spaces.n * sizeof *end);
}

/* Treats the full graph as one sampled batch: the nodes of hop h are a prefix of the node order,
 * which holds those of all lower hops. */
void interp_batch(Interp *in, const Module *m) {
    int64_t *end = NEWN(m->a, int64_t, (size_t)m->spaces.n + 1);
    set_seeds(in, m, end);
    for (int h = 0; h < m->recipe.sample.n_hops; h++) {
        for (int i = 0; i < m->spaces.n; i++) {
            const Space *s = m->spaces.v[i];
            if (s->kind == SP_NODE && s->prefix_of && s->hops == h && !s->distinct_of)
                interp_set_first(in, s, end[s->prefix_of->id]);
        }
        extend_by_hop(in, m, end);
    }
}
