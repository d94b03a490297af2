#include "ir_data.h"

#include <math.h>
#include <string.h>

const double ir_data_lr = 0.125;

static uint32_t hash(const char *s) {
    uint32_t h = 2166136261u;
    for (; *s; s++) h = (h ^ (unsigned char)*s) * 16777619u;
    return h;
}

static uint32_t draw(uint32_t what, int64_t i, int64_t bound) {
    float u = rt_uniform(rt_stream_key(IR_DATA_SEED, 1, what), (uint32_t)i, 0);
    return (uint32_t)(u * (float)bound);
}

static double number(uint32_t what, int64_t i) {
    return (double)draw(what, i, 65) / 16 - 2;
}

static bool starts(const char *s, const char *with) {
    return strncmp(s, with, strlen(with)) == 0;
}

/* ---- sizes ------------------------------------------------------------------------------ */

static int64_t size_of_name(const char *s) {
    if (starts(s, "none")) return 0;
    if (starts(s, "one")) return 1;
    if (starts(s, "hub")) return 40;
    if (starts(s, "large")) return 600;
    return 4 + hash(s) % 6;
}

static int64_t n_edges(const Module *m, const Space *e) {
    int64_t src = ir_data_size(m, e->src), dst = ir_data_size(m, e->dst);
    return src == 0 || dst == 0 ? 0 : src + dst;
}

static int64_t n_stored(const Module *m, const Column *c);

int64_t ir_data_size(const Module *m, const Space *s) {
    int64_t n;
    if (expr_is_const(s->size, &n)) return n;
    if (s->kind == SP_NZ) return n_stored(m, s->nz_of);
    if (s->kind != SP_EDGE) return size_of_name(s->name);
    if (s->rel == REL_BASE) return n_edges(m, s);
    n = ir_data_size(m, s->base[0]);
    if (s->rel == REL_UNION) return n + ir_data_size(m, s->base[1]);
    if (s->rel == REL_UNDIRECTED) return 2 * n;
    return s->rel == REL_SELF_LOOPS ? n + ir_data_size(m, s->src) : n;
}

static int64_t count(const Module *m, const Type *t) {
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++) n *= ir_data_size(m, t->dim[i]);
    return n;
}

/* ---- values ------------------------------------------------------------------------------- */

/* The last edges repeat the first and, where ends agree, close a loop. */
static void ends(const Module *m, const Space *e, int32_t *src, int32_t *dst) {
    int64_t n = n_edges(m, e), ns = ir_data_size(m, e->src), nd = ir_data_size(m, e->dst);
    for (int64_t i = 0; i < n; i++) {
        src[i] = (int32_t)draw(hash(e->name), i, ns);
        dst[i] = starts(e->dst->name, "hub") ? 0 : (int32_t)draw(hash(e->name) + 1, i, nd);
    }
    if (n < 4) return;
    src[n - 1] = src[0], dst[n - 1] = dst[0];
    if (e->src == e->dst) src[n - 2] = dst[n - 2];
}

static double element(const Module *m, const Column *c, int64_t i) {
    uint32_t what = hash(c->name) + 7 * hash(c->space->name);
    int64_t k = c->cat ? ir_data_size(m, c->cat) : 1;
    switch (c->kind) {
    case COL_CAT:
        return draw(what, i, k);
    case COL_CLASS:
        return (double)draw(what, i, k + 1) - 1;
    case COL_MULTILABEL:
        return draw(what, i, 3) == 2 ? NAN : draw(what, i, 2);
    case COL_SPLIT:
        return draw(what, i, 4);
    case COL_ID:
        return (double)i;
    default:
        return number(what, i);
    }
}

static double *column(const Module *m, const Column *c) {
    int64_t n = count(m, &c->type);
    double *v = NEWN(m->a, double, (size_t)n + 1);
    for (int64_t i = 0; i < n; i++) v[i] = element(m, c, i);
    return v;
}

typedef struct {
    int64_t *ptr;
    int32_t *col;
    double *v;
} Stored;

/* Row 1 is empty; the others have every third column. */
static bool is_stored(int64_t r, int64_t c) {
    return r != 1 && (r + c) % 3 == 0;
}

static int64_t n_stored(const Module *m, const Column *c) {
    int64_t n = 0, rows = ir_data_size(m, c->space), cols = ir_data_size(m, c->type.dim[1]);
    for (int64_t i = 0; i < rows * cols; i++) n += is_stored(i / cols, i % cols);
    return n;
}

static Stored stored(const Module *m, const Column *c) {
    int64_t rows = ir_data_size(m, c->space), cols = ir_data_size(m, c->type.dim[1]);
    int64_t all = n_stored(m, c), n = 0;
    Stored s = {NEWN(m->a, int64_t, (size_t)rows + 1), NEWN(m->a, int32_t, (size_t)all + 1),
                NEWN(m->a, double, (size_t)all + 1)};
    for (int64_t r = 0; r < rows; s.ptr[++r] = n)
        for (int64_t k = 0; k < cols; k++) {
            if (!is_stored(r, k)) continue;
            s.col[n] = (int32_t)k;
            s.v[n] = number(hash(c->name), n);
            n++;
        }
    return s;
}

/* The second graph is empty; there may be fewer nodes than graphs. */
static int32_t *graph_of(const Module *m, const Space *node) {
    int64_t n = ir_data_size(m, node), graphs = ir_data_size(m, node->graph);
    int32_t *g = NEWN(m->a, int32_t, (size_t)n + 1);
    for (int64_t i = 0; i < n; i++) {
        g[i] = (int32_t)(i * graphs / n);
        if (g[i] == 1) g[i] = 0;
    }
    return g;
}

double *ir_data_var(const Module *m, const Var *v, int64_t *n) {
    *n = count(m, &v->type);
    double *x = NEWN(m->a, double, (size_t)*n + 1);
    for (int64_t i = 0; i < *n && v->kind < VAR_SLOT; i++) x[i] = number(hash(v->path), i);
    return x;
}

/* ---- to whom --------------------------------------------------------------------------------- */

static bool has_own_size(const Space *s) {
    bool open_dim = s->kind == SP_DIM && !expr_is_const(s->size, NULL);
    return s->kind == SP_NODE || s->kind == SP_GRAPH || open_dim;
}

static bool is_base(const Space *s) {
    return s->kind == SP_EDGE && s->rel == REL_BASE;
}

static void edges_of(const Module *m, const Space *e, int32_t **src, int32_t **dst) {
    size_t n = (size_t)n_edges(m, e) + 1;
    *src = NEWN(m->a, int32_t, n);
    *dst = NEWN(m->a, int32_t, n);
    ends(m, e, *src, *dst);
}

static void interp_relations(Interp *in, const Module *m) {
    int32_t *src, *dst;
    for (int i = 0; i < m->spaces.n; i++)
        if (has_own_size(m->spaces.v[i]))
            interp_set_size(in, m->spaces.v[i], ir_data_size(m, m->spaces.v[i]));
    for (int i = 0; i < m->spaces.n; i++) {
        const Space *s = m->spaces.v[i];
        if (s->kind == SP_NODE && s->graph) interp_set_graphs(in, s, graph_of(m, s));
        if (!is_base(s)) continue;
        edges_of(m, s, &src, &dst);
        interp_set_edges(in, s, n_edges(m, s), src, dst);
    }
}

void ir_data_interp(Interp *in, const Module *m) {
    interp_set_seed(in, IR_DATA_SEED, 0);
    interp_relations(in, m);
    for (int i = 0; i < m->cols.n; i++) {
        const Column *c = m->cols.v[i];
        if (c->kind != COL_CSR) {
            interp_set_column(in, c, column(m, c));
            continue;
        }
        Stored s = stored(m, c);
        interp_set_csr(in, c, s.ptr, s.col, s.v);
    }
    for (int i = 0; i < m->vars.n; i++) {
        int64_t n;
        interp_set_var(in, m->vars.v[i], ir_data_var(m, m->vars.v[i], &n));
    }
    interp_set_input(in, "lr", ir_data_lr);
    interp_set_input(in, "step", 1);
    interp_set_input(in, "weight_decay", 0);
}

static void data_relations(CpuData *d, const Module *m) {
    int32_t *src, *dst;
    for (int i = 0; i < m->spaces.n; i++)
        if (has_own_size(m->spaces.v[i]))
            cpu_data_size(d, m->spaces.v[i], ir_data_size(m, m->spaces.v[i]));
    for (int i = 0; i < m->spaces.n; i++) {
        const Space *s = m->spaces.v[i];
        if (s->kind == SP_NODE && s->graph) cpu_data_graphs(d, s, graph_of(m, s));
        if (!is_base(s)) continue;
        edges_of(m, s, &src, &dst);
        cpu_data_edges(d, s, n_edges(m, s), src, dst);
    }
}

bool ir_data_write(Ctx *c, const Module *m, const char *dir) {
    CpuData *d = cpu_data_new(c, m);
    data_relations(d, m);
    for (int i = 0; i < m->cols.n; i++) {
        const Column *col = m->cols.v[i];
        if (col->kind != COL_CSR) {
            cpu_data_column(d, col, column(m, col));
            continue;
        }
        Stored s = stored(m, col);
        cpu_data_csr(d, col, s.ptr, s.col, s.v);
    }
    return cpu_data_write(d, dir);
}
