/* What all importers share: one node type, one edge type, normalisation. */
#include "import.h"

#include <stdarg.h>
#include <stdio.h>
#include <ctype.h>
#include <string.h>

#include "runtime/data/relation.h"

static char *copy(RtPool *pool, const char *s, const char *otherwise) {
    if (!s) s = otherwise;
    return rt_pool_strndup(pool, s, strlen(s));
}

gnnc_status rt_import_begin(const RtAlloc *from, const RtImport *how, int64_t n_nodes,
                            int n_columns, RtDataset **out, RtError *err) {
    *out = NULL;
    if (n_nodes < 0 || n_nodes > INT32_MAX)
        return rt_fail(err, GNNC_E_RANGE, "%lld nodes: at most 2^31 - 1 are possible",
                       (long long)n_nodes);
    RtDataset *d = rt_dataset_new(from);
    if (!d) return rt_fail_nomem(err, "import");
    d->name = copy(&d->pool, how->name, "");
    d->source = copy(&d->pool, how->source, "");
    d->licence = copy(&d->pool, how->licence, "");
    d->nodes = RT_NEW(&d->pool, RtTable);
    RtColumn *columns = RT_NEWN(&d->pool, RtColumn, n_columns);
    char *node = copy(&d->pool, how->node, "vertex");
    if (!d->name || !d->source || !d->licence || !d->nodes || !columns || !node) {
        rt_dataset_close(d);
        return rt_fail_nomem(err, "import");
    }
    *d->nodes = (RtTable){.name = node,
                          .count = n_nodes,
                          .columns = columns,
                          .graph = -1,
                          .src_type = -1,
                          .dst_type = -1};
    d->n_nodes = 1;
    *out = d;
    return GNNC_OK;
}

gnnc_status rt_import_check_ids(const RtImport *how, const char *name, int64_t n_nodes,
                                int64_t n_rows, RtError *err) {
    enum { PER_ROW = 1000 };
    if (n_nodes <= how->n_nodes || n_nodes / PER_ROW <= n_rows) return GNNC_OK;
    return rt_fail(err, GNNC_E_RANGE,
                   "%s: node %lld is the largest of %lld row%s, so nearly every node would have no "
                   "edge; --nodes %lld says that there are so many",
                   name, (long long)n_nodes - 1, (long long)n_rows, n_rows == 1 ? "" : "s",
                   (long long)n_nodes);
}

RtColumn *rt_import_column(RtDataset *d, rt_col_kind kind, const char *name) {
    RtTable *t = d->nodes;
    RtColumn *c = &t->columns[t->n_columns++];
    *c = (RtColumn){.name = name, .kind = kind, .n_rows = t->count, .rank = 1};
    c->shape[0] = t->count;
    return c;
}

gnnc_status rt_import_undirected(RtDataset *d, RtTable *t, RtError *err) {
    RtRelation base, both;
    int64_t n = d->nodes[t->src_type].count;
    gnnc_status st;
    TRY(st, rt_dataset_check(d, err)); /* ends in range */
    TRY(st, rt_relation_base(&d->pool, n, n, t->count, t->src, t->dst, &base, err));
    TRY(st, rt_relation_undirected(&d->pool, &base, &both, err));
    if (both.n_edges > INT32_MAX)
        return rt_fail(err, GNNC_E_RANGE,
                       "%s: both ways they are %lld edges: at most 2^31 - 1 are possible", t->name,
                       (long long)both.n_edges);
    int32_t *row = RT_NEWN(&d->pool, int32_t, both.n_edges);
    if (!row) return rt_fail_nomem(err, "undirected edges");
    for (int64_t e = 0; e < both.n_edges; e++)
        row[e] = (int32_t)rt_edge_orig(&base, 0, rt_edge_orig(&both, 0, e));
    for (int i = 0; i < t->n_columns; i++) {
        RtColumn c = t->columns[i];
        TRY(st, rt_column_take(&d->pool, &c, row, both.n_edges, &t->columns[i], err));
    }
    t->src = both.src;
    t->dst = both.dst;
    t->count = both.n_edges;
out:
    return st;
}

gnnc_status rt_import_edges(RtDataset *d, const RtImport *how, int64_t n, const int32_t *src,
                            const int32_t *dst, int n_columns, RtColumn *columns, RtError *err) {
    if (n > INT32_MAX)
        return rt_fail(err, GNNC_E_RANGE, "%lld edges: at most 2^31 - 1 are possible",
                       (long long)n);
    char *name = copy(&d->pool, how->edge, "link");
    d->edges = RT_NEW(&d->pool, RtTable);
    if (!name || !d->edges) return rt_fail_nomem(err, "import");
    *d->edges = (RtTable){.name = name,
                          .count = n,
                          .n_columns = n_columns,
                          .columns = columns,
                          .graph = -1,
                          .src = src,
                          .dst = dst};
    d->n_edges = 1;
    return how->undirected ? rt_import_undirected(d, d->edges, err) : GNNC_OK;
}

/* Sums in double: the order of a long row's terms must not matter. */
static void normalize(const float *from, float *to, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += from[i];
    for (int64_t i = 0; i < n; i++) to[i] = sum == 0 ? from[i] : (float)(from[i] / sum);
}

/* Divides each row of the column by its sum. The encoder goes: it makes single cells, not whole
 * rows. */
static gnnc_status normalize_column(RtPool *pool, RtColumn *c, const char *table, RtError *err) {
    bool csr = c->kind == RT_COL_CSR;
    int64_t width = c->rank > 1 ? c->shape[1] : 1;
    const float *from = csr ? c->csr.val : c->f32;
    float *to = RT_NEWN(pool, float, csr ? c->csr.nnz : c->n_rows *width);
    if (!to) return rt_fail_nomem(err, c->name);
    for (int64_t r = 0; r < c->n_rows; r++) {
        int64_t at = csr ? c->csr.ptr[r] : r * width;
        normalize(from + at, to + at, csr ? c->csr.ptr[r + 1] - at : width);
    }
    if (csr)
        c->csr.val = to;
    else
        c->f32 = to;
    c->encoder = NULL;                     /* cells alone do not make a row any more */
    return rt_column_check(c, table, err); /* a sum near 0 makes quotients infinite */
}

static bool in_name(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

bool rt_import_is_asked(const RtImport *how, const char *column) {
    size_t n = strlen(column);
    for (const char *s = how->asked; s && n && (s = strstr(s, column)); s++)
        if ((s == how->asked || !in_name(s[-1])) && !in_name(s[n])) return true;
    return false;
}

bool rt_import_kind(RtImport *how, const char *table, const char *column, rt_col_kind *kind) {
    size_t n = strlen(table);
    for (int i = 0; i < how->n_kinds; i++) {
        const char *c = how->kinds[i].column;
        bool ours = strncmp(c, table, n) == 0 && c[n] == '.' && strcmp(c + n + 1, column) == 0;
        if (!ours && strcmp(c, column) != 0) continue;
        how->kinds[i].used = true;
        *kind = how->kinds[i].kind;
        return true;
    }
    return false;
}

bool rt_import_say_row_time(RtImport *how, RtSaidBy by, const char *column, size_t n, bool other) {
    if (how->n_row_times == RT_IMPORT_KINDS || n >= sizeof how->row_times->column) return false;
    RtRowTimeOf *r = &how->row_times[how->n_row_times++];
    memcpy(r->column, column, n);
    r->column[n] = '\0';
    r->by = by;
    r->other = other;
    return true;
}

RtHeader rt_import_header(RtImport *how, const char *file) {
    const char *slash = strrchr(file, '/');
    for (int i = 0; i < how->n_headers; i++) {
        RtHeaderOf *h = &how->headers[i];
        if (strcmp(h->file, file) != 0 && (!slash || strcmp(h->file, slash + 1) != 0)) continue;
        h->used = true;
        return h->header;
    }
    return how->header;
}

const char rt_why_label[] = "its name is a label's";

/* Classes that some row has; -1: no memory. */
static int64_t count_classes(const RtAlloc *from, const RtColumn *c, int64_t *n_labelled) {
    RtPool pool;
    int64_t n = 0;
    rt_pool_init(&pool, from);
    bool *seen = RT_NEWN(&pool, bool, c->n_categories);
    *n_labelled = 0;
    for (int64_t i = 0; seen && i < c->n_rows; i++) {
        if (c->i32[i] < 0) continue;
        ++*n_labelled;
        n += !seen[c->i32[i]];
        seen[c->i32[i]] = true;
    }
    if (!seen) n = -1;
    rt_pool_free(&pool);
    return n;
}

/* Tells that a column became very many classes for the rows that have one. */
static void tell_classes(const RtImport *how, const RtTable *t, const RtColumn *c, int64_t n,
                         int64_t n_labelled) {
    char cure[200] = "";
    if (!c->names)
        snprintf(cure, sizeof cure, "; --kind %.60s.%.60s=float learns a number", t->name, c->name);
    rt_import_warn(
        how, "%s.%s became %lld classes, %lld of which occur, for %lld rows with a label%s",
        t->name, c->name, (long long)c->n_categories, (long long)n, (long long)n_labelled, cure);
}

/* Prices and years are whole numbers, too: a class each is nothing to learn. */
static gnnc_status warn_of_classes(const RtImport *how, const RtAlloc *from, const RtTable *t,
                                   RtError *err) {
    enum { FEW = 50, MANY = 1000, ROWS_EACH = 5 };
    for (int i = 0; i < t->n_columns; i++) {
        const RtColumn *c = &t->columns[i];
        if (c->kind != RT_COL_CLASS || c->why != rt_why_label || c->n_categories <= FEW) continue;
        int64_t n_labelled, n = count_classes(from, c, &n_labelled);
        if (n < 0) return rt_fail_nomem(err, c->name);
        if (c->n_categories <= MANY && (n <= FEW || n * ROWS_EACH <= n_labelled)) continue;
        tell_classes(how, t, c, n, n_labelled);
    }
    return GNNC_OK;
}

gnnc_status rt_import_finish(RtDataset *d, const RtImport *how, RtError *err) {
    for (int i = 0; i < how->n_kinds; i++)
        if (!how->kinds[i].used)
            return rt_fail(err, GNNC_E_MISSING, "--kind: there is no column '%s'",
                           how->kinds[i].column);
    for (int i = 0; i < how->n_headers; i++)
        if (!how->headers[i].used)
            return rt_fail(err, GNNC_E_MISSING, "--header: there is no CSV file '%s'",
                           how->headers[i].file);
    if (how->n_bad && !how->skip_bad)
        return rt_fail(err, GNNC_E_FORMAT, "%s (%lld bad row%s in all)", how->first_bad,
                       (long long)how->n_bad, how->n_bad == 1 ? "" : "s");
    gnnc_status st = rt_dataset_check(d, err);
    for (int i = 0; i < d->n_nodes && st == GNNC_OK; i++) {
        RtTable *t = &d->nodes[i];
        for (int j = 0; j < t->n_columns && st == GNNC_OK; j++) {
            RtColumn *c = &t->columns[j];
            st = rt_column_check(c, t->name, err);
            bool features = c->kind == RT_COL_CSR || (c->kind == RT_COL_FLOAT && c->rank == 2);
            if (st == GNNC_OK && how->normalize_rows && features && strcmp(c->name, "x") == 0)
                st = normalize_column(&d->pool, c, t->name, err);
        }
    }
    for (int i = 0; i < d->n_edges; i++)
        for (int j = 0; j < d->edges[i].n_columns && st == GNNC_OK; j++)
            st = rt_column_check(&d->edges[i].columns[j], d->edges[i].name, err);
    RtTable *all[] = {d->nodes, d->edges, d->graphs};
    const int n[] = {d->n_nodes, d->n_edges, d->n_graphs};
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < n[k] && st == GNNC_OK; i++)
            st = warn_of_classes(how, &d->pool.from, &all[k][i], err);
    return st;
}

/* Tells the caller something about the data that it may want to change. */
void rt_import_warn(const RtImport *how, const char *fmt, ...) {
    char text[512];
    va_list args;
    if (!how->on_warning) return;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    how->on_warning(how->user, text);
}

/* Counts a bad row of the file; only the first RT_IMPORT_KINDS files are told apart. */
static void count_bad_row(RtImport *how, const char *file) {
    int i = 0;
    while (i < how->n_bad_files &&
           strncmp(how->bad_files[i].file, file, sizeof how->bad_files->file - 1) != 0)
        i++;
    if (i == RT_IMPORT_KINDS) return;
    if (i == how->n_bad_files)
        snprintf(how->bad_files[how->n_bad_files++].file, sizeof how->bad_files->file, "%s", file);
    how->bad_files[i].n++;
}

void rt_import_bad_row(RtImport *how, const char *file, int64_t row, const char *what) {
    char text[sizeof how->first_bad];
    snprintf(text, sizeof text, "%s: row %lld: %s", file, (long long)row, what);
    count_bad_row(how, file);
    if (how->n_bad++ == 0) memcpy(how->first_bad, text, sizeof text);
    if (how->on_bad && how->n_bad <= RT_BAD_ROWS_TOLD) how->on_bad(how->user, text);
}
