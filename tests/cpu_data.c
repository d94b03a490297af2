#include "cpu_data.h"

#include <string.h>

#include "runtime/data/dataset.h"

typedef struct {
    bool given;
    int64_t count;
    const int32_t *src, *dst;
    const int64_t *graph_ptr;
    VEC(RtColumn) columns;
} Table;

struct CpuData {
    Ctx *c;
    const Module *m;
    int64_t *sym;
    Table *table; /* by Space.id */
};

CpuData *cpu_data_new(Ctx *c, const Module *m) {
    CpuData *d = NEW(c->a, CpuData);
    *d = (CpuData){.c = c, .m = m};
    d->sym = NEWN(c->a, int64_t, (size_t)m->syms.n + 1);
    d->table = NEWN(c->a, Table, (size_t)m->spaces.n + 1);
    return d;
}

void cpu_data_size(CpuData *d, const Space *s, int64_t n) {
    Table *t = &d->table[s->id];
    t->given = true;
    t->count = n;
    d->sym[s->size->sym->id] = n;
}

void cpu_data_edges(CpuData *d, const Space *e, int64_t n, const int32_t *src, const int32_t *dst) {
    static const int32_t none[1];
    cpu_data_size(d, e, n);
    d->table[e->id].src = src ? src : none;
    d->table[e->id].dst = dst ? dst : none;
}

void cpu_data_graphs(CpuData *d, const Space *node, const int32_t *graph) {
    const Table *nodes = &d->table[node->id];
    int64_t n = d->table[node->graph->id].count;
    int64_t *ptr = NEWN(d->c->a, int64_t, (size_t)n + 1);
    for (int64_t i = 0; i < nodes->count; i++) ptr[graph[i] + 1]++;
    for (int64_t i = 0; i < n; i++) ptr[i + 1] += ptr[i];
    d->table[node->id].graph_ptr = ptr;
}

/* ---- columns ------------------------------------------------------------------------- */

static int64_t size_of(const CpuData *d, const Space *s) {
    return expr_eval(s->size, d->sym);
}

static void *converted(CpuData *d, DType dt, int64_t n, const double *v) {
    Arena *a = d->c->a;
    float *f = NEWN(a, float, (size_t)n + 1);
    double *g = NEWN(a, double, (size_t)n + 1);
    int32_t *i = NEWN(a, int32_t, (size_t)n + 1);
    int64_t *l = NEWN(a, int64_t, (size_t)n + 1);
    for (int64_t k = 0; k < n; k++) {
        f[k] = (float)v[k];
        g[k] = v[k];
        i[k] = dt == DT_I32 ? (int32_t)v[k] : 0;
        l[k] = dt == DT_I64 ? (int64_t)v[k] : 0;
    }
    return dt == DT_F32 ? (void *)f : dt == DT_F64 ? (void *)g : dt == DT_I32 ? (void *)i : l;
}

static const int8_t *splits(CpuData *d, int64_t n, const double *v) {
    int8_t *s = NEWN(d->c->a, int8_t, (size_t)n + 1);
    for (int64_t k = 0; k < n; k++) s[k] = (int8_t)v[k];
    return s;
}

static RtColumn column_of(CpuData *d, const Column *col) {
    RtColumn c = {.name = col->name, .kind = (rt_col_kind)col->kind, .rank = col->type.rank};
    for (int i = 0; i < c.rank; i++) c.shape[i] = size_of(d, col->type.dim[i]);
    c.n_rows = c.shape[0];
    if (col->cat) c.n_categories = size_of(d, col->cat);
    return c;
}

void cpu_data_column(CpuData *d, const Column *col, const double *v) {
    RtColumn c = column_of(d, col);
    int64_t n = 1;
    for (int i = 0; i < c.rank; i++) n *= c.shape[i];
    if (col->kind == COL_SPLIT) {
        c.n_splits = 1;
        c.splits = splits(d, n, v);
    } else {
        c.values = converted(d, col->type.dt, n, v);
    }
    vec_push(d->c->a, &d->table[col->space->id].columns, c);
}

void cpu_data_csr(CpuData *d, const Column *col, const int64_t *ptr, const int32_t *idx,
                  const double *v) {
    RtColumn c = column_of(d, col);
    int64_t rows = c.n_rows, nnz = ptr[rows];
    int64_t *p = NEWN(d->c->a, int64_t, (size_t)rows + 1);
    int32_t *i = NEWN(d->c->a, int32_t, (size_t)nnz + 1);
    memcpy(p, ptr, ((size_t)rows + 1) * sizeof *p);
    memcpy(i, idx, (size_t)nnz * sizeof *i);
    c.csr = (RtCsr){.n_rows = rows, .n_cols = c.shape[1], .nnz = nnz, .ptr = p, .col = i};
    c.csr.val = converted(d, DT_F32, nnz, v);
    vec_push(d->c->a, &d->table[col->space->id].columns, c);
}

/* ---- the directory --------------------------------------------------------------------- */

static int position(const CpuData *d, const Space *s) {
    int n = 0;
    for (int i = 0; i < s->id; i++) n += d->m->spaces.v[i]->kind == s->kind && d->table[i].given;
    return n;
}

static RtTable table_of(CpuData *d, const Space *s) {
    const Table *t = &d->table[s->id];
    RtTable x = {.name = s->name, .count = t->count, .n_columns = t->columns.n};
    x.columns = t->columns.v;
    x.graph = s->kind == SP_NODE && t->graph_ptr ? position(d, s->graph) : -1;
    x.graph_ptr = t->graph_ptr;
    x.src_type = x.dst_type = -1;
    if (s->kind != SP_EDGE) return x;
    x.src = t->src;
    x.dst = t->dst;
    x.src_type = position(d, s->src);
    x.dst_type = position(d, s->dst);
    return x;
}

static RtTable *tables(CpuData *d, SpaceKind kind, int *n) {
    RtTable *t = NEWN(d->c->a, RtTable, (size_t)d->m->spaces.n + 1);
    *n = 0;
    for (int i = 0; i < d->m->spaces.n; i++)
        if (d->m->spaces.v[i]->kind == kind && d->table[i].given)
            t[(*n)++] = table_of(d, d->m->spaces.v[i]);
    return t;
}

bool cpu_data_write(CpuData *d, const char *dir) {
    RtError err = {.text = ""};
    RtAlloc from = rt_alloc_default();
    RtDataset *set = rt_dataset_new(&from);
    if (!set) return false;
    set->name = "test";
    set->nodes = tables(d, SP_NODE, &set->n_nodes);
    set->edges = tables(d, SP_EDGE, &set->n_edges);
    set->graphs = tables(d, SP_GRAPH, &set->n_graphs);
    bool ok = rt_dataset_write(set, dir, true, &err) == GNNC_OK;
    if (!ok) diag_add(d->c, DIAG_E0003, (Span){0}, "%s", err.text);
    rt_dataset_close(set);
    return ok;
}
