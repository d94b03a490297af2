/* How many edges rows of the data have, for reports: each relation of the model that is a table of
 * the data, its edges counted by the rows where they end. */
#include "codegen/report/report.h"
#include "frontend/cli/cli.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/data/dataset.h"

static int more_first(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* The bin of a degree in the report: 0 for 0, then one for each power of two. */
static int bin_of(int64_t n) {
    int i = 0;
    for (; n && i + 1 < REPORT_DEGREE_BINS; n >>= 1) i++;
    return i;
}

/* Counts the degrees of a relation into d: bins, the largest, how many edges are drawn, and how
 * many the hundredth part of the nodes with most has. */
static void count(Arena *a, const RtTable *edges, int64_t rows, ReportDegrees *d) {
    int64_t *n = NEWN(a, int64_t, (size_t)rows + 1);
    for (int64_t e = 0; e < edges->count; e++) n[edges->dst[e]]++;
    for (int64_t v = 0; v < rows; v++) {
        d->bin[bin_of(n[v])]++;
        d->none += n[v] == 0;
        if (n[v] > d->max_degree) d->max_degree = n[v];
        for (int i = 0; i < d->n_hops; i++)
            d->sampled[i] += d->fanout[i] >= 0 && n[v] > d->fanout[i] ? d->fanout[i] : n[v];
    }
    qsort(n, (size_t)rows, sizeof *n, more_first);
    for (int64_t v = 0; v < (rows + 99) / 100; v++) d->hub_edges += n[v];
}

/* The fan-outs of a relation in the recipe; NULL: it draws none. */
static const int64_t *fanout_of(const Module *m, const Space *s) {
    for (int i = 0; i < m->recipe.sample.rels.n; i++)
        if (m->recipe.sample.rels.v[i].rel == s) return m->recipe.sample.rels.v[i].fanout;
    return NULL;
}

/* Fills *d with the degrees of one relation and its fan-outs. */
static void add(Ctx *c, const Module *m, const RtDataset *data, const Space *s, ReportDegrees *d) {
    const RtTable *edges = rt_dataset_edges(data, s->name);
    const RtTable *to = &data->nodes[edges->dst_type];
    const int64_t *fanout = fanout_of(m, s);
    *d = (ReportDegrees){.name = s->name, .to = to->name, .rows = to->count, .edges = edges->count};
    for (int i = 0; fanout && i < m->recipe.sample.n_hops && i < REPORT_HOPS; i++)
        d->fanout[d->n_hops++] = fanout[i];
    count(c->a, edges, to->count, d);
}

static void close_degrees(void *data) {
    rt_dataset_close(data);
}

/* The degrees of all relations of the data, for the report; *n: how many. NULL after a
 * diagnostic. */
const ReportDegrees *cli_degrees(Ctx *c, const Module *m, const char *path, int *n) {
    ReportDegrees *all = NEWN(c->a, ReportDegrees, (size_t)m->spaces.n + 1);
    RtDataset *data = NULL;
    RtError err = {""};
    *n = 0;
    if (rt_dataset_open(NULL, path, true, &data, &err) != GNNC_OK) {
        diag_add(c, DIAG_E0005, (Span){0}, "--specialize: %s", err.text);
        return NULL;
    }
    ctx_defer(c, close_degrees, data);
    for (int i = 0; i < m->spaces.n; i++) {
        const Space *s = m->spaces.v[i];
        const RtTable *t = s->kind == SP_EDGE ? rt_dataset_edges(data, s->name) : NULL;
        if (t && t->dst) add(c, m, data, s, &all[(*n)++]);
    }
    return all;
}
