/* Edge lists as SNAP and others publish them: "12 7" or "12,7" a line, a third
 * number being the edge's weight; '#' and '%' start comments.  Numbers are node
 * numbers; there are as many nodes as the largest one says. */
#include "import.h"
#include "import_pairs.h"

#include <stdio.h>
#include <string.h>

#include "runtime/data/csv.h"
#include "runtime/data/number.h"

typedef struct {
    RtBytes text;
    const char *name;
    RtImport *how;
    RtError *err;
    int n_fields; /* of the first good row: 2, or 3 with a weight */
    int64_t n, n_nodes;
    int32_t *src, *dst;
    float *weight;
    char what[120]; /* is wrong with a line */
} EdgeList;

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == ',' || c == ';' || c == '\r';
}

/* Copies the next field of [*s, end) into a buffer; false at the end. Too long a
 * field is cut, which no number survives. */
static bool next_field(const char **s, const char *end, char *to, size_t cap) {
    size_t n = 0;
    while (*s < end && is_blank(**s)) ++*s;
    for (; *s < end && !is_blank(**s); ++*s)
        if (n + 1 < cap) to[n++] = **s ? **s : '?';
    if (n + 1 == cap) to[0] = '?';
    to[n] = 0;
    return n > 0;
}

static const char *bad_field(EdgeList *l, const char *field, const char *wanted) {
    snprintf(l->what, sizeof l->what, "%s is no %s", rt_cell_quoted(field).s, wanted);
    return l->what;
}

/* One line that is neither blank nor a comment; NULL or what is wrong. */
static const char *read_line(EdgeList *l, const char *s, const char *end) {
    char field[3][64], rest[64];
    int64_t node[2];
    double w = 1;
    int n = 0;
    while (n < 3 && next_field(&s, end, field[n], sizeof field[n])) n++;
    if (n == 3 && next_field(&s, end, rest, sizeof rest)) return "more than three fields";
    if (n < 2) return "two node numbers are expected";
    if (l->n_fields && n != l->n_fields) return "not as many fields as the rows before";
    for (int i = 0; i < 2; i++)
        if (!rt_cell_integer(field[i], &node[i]) || node[i] < 0 || node[i] >= INT32_MAX)
            return bad_field(l, field[i], "node number");
    if (n == 3 && !rt_cell_number(field[2], &w)) return bad_field(l, field[2], "weight");
    l->n_fields = n;
    l->src[l->n] = (int32_t)node[0];
    l->dst[l->n] = (int32_t)node[1];
    l->weight[l->n++] = (float)w;
    for (int i = 0; i < 2; i++)
        if (node[i] >= l->n_nodes) l->n_nodes = node[i] + 1;
    return NULL;
}

/* Reads an edge from each line; blank lines and comments (# or %) are skipped, bad rows told. */
static void read_lines(EdgeList *l) {
    const char *s = (const char *)l->text.p, *end = s + l->text.n;
    for (int64_t row = 1; s < end; row++) {
        const char *eol = memchr(s, '\n', (size_t)(end - s));
        if (!eol) eol = end;
        const char *first = s;
        while (first < eol && is_blank(*first)) first++;
        if (first < eol && *first != '#' && *first != '%') {
            const char *what = read_line(l, first, eol);
            if (what) rt_import_bad_row(l->how, l->name, row, what);
        }
        s = eol < end ? eol + 1 : end;
    }
}

/* Lines of the text; the last may lack its end. */
static int64_t count_lines(RtBytes text) {
    int64_t n = 1;
    for (size_t i = 0; i < text.n; i++) n += text.p[i] == '\n';
    return n;
}

/* Reads a file that is lines of two numbers behind what comments stand above, as most large graphs
 * are; false: it is not. */
static bool read_pairs(EdgeList *l, RtPool *pool) {
    const char *s = (const char *)l->text.p, *end = s + l->text.n, *eol;
    RtPairs p;
    while (s < end && (*s == '#' || *s == '%') && (eol = memchr(s, '\n', (size_t)(end - s))))
        s = eol + 1;
    if (!rt_pairs_read(pool, (RtBytes){(const uint8_t *)s, (size_t)(end - s)}, 0, &p)) return false;
    l->src = p.first;
    l->dst = p.second;
    l->n = p.n;
    l->n_nodes = (int64_t)p.most + 1;
    l->n_fields = 2;
    return true;
}

/* Reads all edges, where they are not all pairs of whole numbers; false: no memory. */
static bool read_by_line(EdgeList *l, RtPool *pool) {
    int64_t cap = count_lines(l->text);
    l->src = RT_NEWN(pool, int32_t, cap);
    l->dst = RT_NEWN(pool, int32_t, cap);
    l->weight = RT_NEWN(pool, float, cap);
    bool ok = l->src && l->dst && l->weight;
    if (ok) read_lines(l);
    return ok;
}

/* Makes a data set of the edges that were read, with their weights if lines have three fields. */
static gnnc_status make(EdgeList *l, const RtAlloc *from, RtDataset **d) {
    RtColumn *weight;
    bool weighs = l->n_fields == 3;
    gnnc_status st;
    TRY(st, rt_import_check_ids(l->how, l->name, l->n_nodes, l->n, l->err));
    if (l->n_nodes < l->how->n_nodes) l->n_nodes = l->how->n_nodes;
    TRY(st, rt_import_begin(from, l->how, l->n_nodes, 0, d, l->err));
    RtPool *pool = &(*d)->pool;
    int32_t *ends = RT_NEWN(pool, int32_t, 2 * l->n);
    float *w = RT_NEWN(pool, float, weighs ? l->n : 0);
    weight = RT_NEW(pool, RtColumn);
    if (!ends || !w || !weight) return rt_fail_nomem(l->err, l->name);
    memcpy(ends, l->src, (size_t)l->n * sizeof *ends);
    memcpy(ends + l->n, l->dst, (size_t)l->n * sizeof *ends);
    if (weighs) memcpy(w, l->weight, (size_t)l->n * sizeof *w);
    *weight = (RtColumn){.name = "weight",
                         .kind = RT_COL_FLOAT,
                         .n_rows = l->n,
                         .rank = 1,
                         .shape = {l->n},
                         .f32 = w};
    TRY(st, rt_import_edges(*d, l->how, l->n, ends, ends + l->n, weighs, weight, l->err));
    st = rt_import_finish(*d, l->how, l->err);
out:
    return st;
}

/* Reads a list of edges, a line each. */
gnnc_status rt_import_edge_list_bytes(const RtAlloc *from, RtBytes text, const char *name,
                                      RtImport *how, RtDataset **out, RtError *err) {
    EdgeList l = {.text = text, .name = name, .how = how, .err = err};
    RtDataset *d = NULL;
    RtPool pool;
    *out = NULL;
    gnnc_status st = rt_text_check(text, name, err);
    if (st != GNNC_OK) return st;
    rt_pool_init(&pool, from);
    bool ok = read_pairs(&l, &pool) || read_by_line(&l, &pool);
    st = ok ? GNNC_OK : rt_fail_nomem(err, name);
    if (st == GNNC_OK) st = make(&l, from, &d);
    rt_pool_free(&pool);
    if (st == GNNC_OK)
        *out = d;
    else
        rt_dataset_close(d);
    return st;
}

gnnc_status rt_import_edge_list(const RtAlloc *from, const char *path, RtImport *how,
                                RtDataset **out, RtError *err) {
    RtPool pool;
    RtBytes text;
    *out = NULL;
    rt_pool_init(&pool, from);
    gnnc_status st = rt_file_map(&pool, path, &text, err);
    if (st == GNNC_OK) st = rt_import_edge_list_bytes(from, text, path, how, out, err);
    rt_pool_free(&pool);
    return st;
}
