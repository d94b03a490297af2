/* Folders of the Open Graph Benchmark (Hu et al. 2020) as its csv.gz releases hold them:
 *     raw/edge, num-node-list, num-edge-list           one or many graphs; node numbers of
 *         node-feat, edge-feat, node-label, ..         many graphs begin at 0 in each
 *     raw/num-node-dict, triplet-type-list             several types:
 *         relations/<h>___<r>___<t>/edge, ..           and node-feat/<type>/, node-label/<type>/
 *     raw/graph-label                                  labels of graphs
 *     split/<scheme>/[<type>/]train, valid, test       indices; links: import_ogb_links.c
 * Every other raw/node_*.csv.gz and edge_*.csv.gz is a column. */
#include "import_ogb.h"

#include <string.h>

/* ---- files --------------------------------------------------------------------- */
gnnc_status rt_ogb_numbers(Ogb *o, const char *dir, const char *stem, RtArray *a, bool *found) {
    char *file = rt_pool_printf(&o->pool, "%s/%s.csv", dir, stem);
    if (!file) return rt_fail_nomem(o->b.err, stem);
    return rt_folder_numbers(&o->b.d->pool, o->f, file, a, found, o->b.err);
}

/* Reads a file of numbers that must be there. */
static gnnc_status need_numbers(Ogb *o, const char *dir, const char *stem, RtArray *a) {
    bool found;
    gnnc_status st = rt_ogb_numbers(o, dir, stem, a, &found);
    if (st == GNNC_OK && !found)
        return rt_fail(o->b.err, GNNC_E_MISSING, "%s: no %s/%s.csv.gz", o->f->name, dir, stem);
    return st;
}

/* The column that a file is of: "node-feat.csv.gz" is x of a node type, "node_year.csv.gz" is year;
 * NULL: it is none. */
static const char *column_of(const char *stem, const char *section) {
    size_t n = strlen(section);
    if (strncmp(stem, section, n) != 0 || (stem[n] != '-' && stem[n] != '_')) return NULL;
    stem += n + 1;
    if (strcmp(stem, "feat") == 0) return strcmp(section, "edge") == 0 ? "attr" : "x";
    if (strcmp(stem, "label") == 0) return "y";
    return strcmp(stem, "reltype") == 0 ? "rel" : stem;
}

/* One column [rows, 1] is a scalar column; labels of tasks keep their width. */
static gnnc_status add_column(Ogb *o, RtTable *t, const char *dir, const char *stem,
                              const char *column) {
    RtArray a;
    bool found;
    gnnc_status st = rt_ogb_numbers(o, dir, stem, &a, &found);
    if (st != GNNC_OK || !found) return st;
    if (a.shape[1] == 1 && a.dt == RT_DT_I64) a.rank = 1;
    char *where = rt_pool_printf(&o->pool, "%s/%s/%s.csv.gz", o->f->name, dir, stem);
    if (!where) return rt_fail_nomem(o->b.err, stem);
    return rt_build_array(&o->b, t, column, where, &a);
}

/* Adds all files of a folder that begin with "<section>-" or "<section>_" as columns. */
static gnnc_status add_columns(Ogb *o, RtTable *t, const char *dir, const char *section) {
    const char **names;
    int n;
    gnnc_status st = rt_folder_list(&o->pool, o->f, dir, &names, &n, o->b.err);
    for (int i = 0; i < n && st == GNNC_OK; i++) {
        const char *dot = strstr(names[i], ".csv");
        char *stem = rt_pool_strndup(&o->pool, names[i], dot ? (size_t)(dot - names[i]) : 0);
        if (!stem) return rt_fail_nomem(o->b.err, dir);
        const char *column = column_of(stem, section);
        if (column) st = add_column(o, t, dir, stem, column);
    }
    return st;
}

/* ---- edges ----------------------------------------------------------------------- */
/* Node numbers plus the offset of their graph, or as they are without offsets. */
static gnnc_status add_edges(Ogb *o, const char *dir, const char *name, const RtTable *src,
                             const RtTable *dst, const RtArray *per_graph, RtTable **out) {
    RtArray a;
    gnnc_status st;
    TRY(st, need_numbers(o, dir, "edge", &a));
    bool empty = a.count == 0;
    if (!empty && (a.shape[1] != 2 || a.dt != RT_DT_I64))
        return rt_fail(o->b.err, GNNC_E_SHAPE,
                       "%s: %s/edge.csv.gz: rows of two node numbers are "
                       "expected",
                       o->f->name, dir);
    int64_t n = a.shape[0], e = 0, n_graphs = per_graph ? per_graph->count : 1;
    int32_t *from = RT_NEWN(&o->b.d->pool, int32_t, n), *to = RT_NEWN(&o->b.d->pool, int32_t, n);
    if (!from || !to) return rt_fail_nomem(o->b.err, dir);
    for (int64_t g = 0; g < n_graphs; g++) {
        int64_t m = per_graph ? rt_array_i64(per_graph, g) : n;
        int64_t low = per_graph ? src->graph_ptr[g] : 0;
        int64_t room = per_graph ? src->graph_ptr[g + 1] - low : INT32_MAX;
        if (m < 0 || m > n - e)
            return rt_fail(o->b.err, GNNC_E_FORMAT,
                           "%s: num-edge-list: graph %lld: more edges than edge.csv.gz has",
                           o->f->name, (long long)g);
        for (int64_t end = e + m; e < end; e++) {
            int64_t u = rt_array_i64(&a, 2 * e), v = rt_array_i64(&a, 2 * e + 1);
            if (u < 0 || v < 0 || u >= room || v >= room)
                return rt_fail(o->b.err, GNNC_E_RANGE,
                               "%s: %s/edge.csv.gz: row %lld: there is no "
                               "node %lld",
                               o->f->name, dir, (long long)e + 1,
                               (long long)(u < 0 || u >= room ? u : v));
            from[e] = (int32_t)(low + u), to[e] = (int32_t)(low + v);
        }
    }
    if (e != n)
        return rt_fail(o->b.err, GNNC_E_FORMAT, "%s: num-edge-list does not count all edges",
                       o->f->name);
    st = rt_build_edges(&o->b, name, src, dst, n, from, to, out);
out:
    return st;
}

/* ---- splits ----------------------------------------------------------------------- */
/* Reads the split of a table: a file of row numbers for each part. */
static gnnc_status add_split(Ogb *o, RtTable *t, const char *dir) {
    static const char *const parts[] = {"train", "valid", "test"};
    RtColumn *split = NULL;
    gnnc_status st = GNNC_OK;
    for (int p = 0; p < 3 && st == GNNC_OK; p++) {
        RtArray a;
        bool found;
        TRY(st, rt_ogb_numbers(o, dir, parts[p], &a, &found));
        if (!found) continue;
        if (a.count && (a.shape[1] != 1 || a.dt != RT_DT_I64))
            return rt_fail(o->b.err, GNNC_E_SHAPE,
                           "%s: %s/%s.csv.gz: a row number a line is expected", o->f->name, dir,
                           parts[p]);
        char *where = rt_pool_printf(&o->pool, "%s/%s/%s.csv.gz", o->f->name, dir, parts[p]);
        if (!where) return rt_fail_nomem(o->b.err, dir);
        if (!split) TRY(st, rt_build_split(&o->b, t, 1, &split));
        for (int64_t i = 0; i < a.count && st == GNNC_OK; i++)
            st = rt_build_part(&o->b, split, 0, where, rt_array_i64(&a, i), p + 1);
    }
out:
    return st;
}

/* split/<scheme>: the first by name; the folders hold one. NULL: none. */
static gnnc_status find_scheme(Ogb *o, const char **dir) {
    const char **names;
    int n;
    gnnc_status st = rt_folder_list(&o->pool, o->f, "split", &names, &n, o->b.err);
    *dir = NULL;
    if (st != GNNC_OK || n == 0) return st;
    *dir = rt_pool_printf(&o->pool, "split/%s", names[0]);
    return *dir ? GNNC_OK : rt_fail_nomem(o->b.err, "split");
}

/* ---- one type ---------------------------------------------------------------------- */
/* Makes the table of graphs; sizes[g] nodes belong to graph g. */
static gnnc_status add_graphs(Ogb *o, RtTable *nodes, const RtArray *sizes, RtTable **graphs) {
    gnnc_status st = rt_build_graphs(&o->b, "graphs", sizes->count, graphs);
    int64_t *ptr = RT_NEWN(&o->b.d->pool, int64_t, sizes->count + 1);
    if (st != GNNC_OK) return st;
    if (!ptr) return rt_fail_nomem(o->b.err, "graphs");
    for (int64_t g = 0; g < sizes->count; g++) ptr[g + 1] = ptr[g] + rt_array_i64(sizes, g);
    nodes->graph = 0;
    nodes->graph_ptr = ptr;
    return GNNC_OK;
}

/* Adds up the nodes of all graphs. */
static gnnc_status count_nodes(Ogb *o, const RtArray *sizes, int64_t *n) {
    *n = 0;
    for (int64_t g = 0; g < sizes->count; g++) {
        int64_t k = rt_array_i64(sizes, g);
        if (sizes->dt != RT_DT_I64 || sizes->shape[1] != 1 || k < 0 || k > INT32_MAX - *n)
            return rt_fail(o->b.err, GNNC_E_RANGE,
                           "%s: raw/num-node-list.csv.gz: row %lld: no "
                           "number of nodes",
                           o->f->name, (long long)g + 1);
        *n += k;
    }
    return GNNC_OK;
}

/* Reads a data set of one node type: one graph, or many. */
static gnnc_status read_one_type(Ogb *o) {
    RtArray sizes, per_graph;
    RtTable *nodes, *edges, *graphs = NULL;
    RtImport *how = o->b.how;
    const char *dir;
    int64_t n;
    gnnc_status st;
    bool many = rt_folder_has(o->f, "raw/graph-label.csv");
    TRY(st, need_numbers(o, "raw", "num-node-list", &sizes));
    many |= sizes.count > 1;
    TRY(st, count_nodes(o, &sizes, &n));
    TRY(st, rt_build_nodes(&o->b, how->node ? how->node : "vertex", n, &nodes));
    if (many) {
        TRY(st, add_graphs(o, nodes, &sizes, &graphs));
        TRY(st, need_numbers(o, "raw", "num-edge-list", &per_graph));
        if (per_graph.count != sizes.count || (sizes.count && per_graph.shape[1] != 1))
            return rt_fail(o->b.err, GNNC_E_SHAPE,
                           "%s: num-node-list and num-edge-list differ in length", o->f->name);
    }
    TRY(st, add_edges(o, "raw", how->edge ? how->edge : "link", nodes, nodes,
                      many ? &per_graph : NULL, &edges));
    TRY(st, add_columns(o, nodes, "raw", "node"));
    TRY(st, add_columns(o, edges, "raw", "edge"));
    if (many) TRY(st, add_columns(o, graphs, "raw", "graph"));
    TRY(st, find_scheme(o, &dir));
    if (dir) TRY(st, add_split(o, many ? graphs : nodes, dir));
    if (dir) st = rt_ogb_links(o, nodes, dir);
out:
    return st;
}

/* ---- several types -------------------------------------------------------------------- */
/* num-node-dict: a row of types, then one of counts. */
static gnnc_status read_node_types(Ogb *o) {
    RtBytes text;
    RtArray counts;
    bool found;
    const char **line;
    int64_t n_lines;
    RtTable *t;
    gnnc_status st;
    const char *name = "raw/num-node-dict.csv";
    TRY(st, rt_folder_text(&o->pool, o->f, name, &text, &found, o->b.err));
    if (!found) return rt_fail(o->b.err, GNNC_E_MISSING, "%s: no %s.gz", o->f->name, name);
    TRY(st, rt_lines(&o->pool, text, name, &line, &n_lines, o->b.err));
    if (n_lines != 2)
        return rt_fail(o->b.err, GNNC_E_FORMAT,
                       "%s: %s: types and their counts for one graph are "
                       "expected",
                       o->f->name, name);
    RtBytes row = {(const uint8_t *)line[1], strlen(line[1])};
    TRY(st, rt_numbers(&o->pool, row, name, &counts, o->b.err));
    const char *s = line[0];
    for (int64_t i = 0; i < counts.count; i++) {
        size_t n = strcspn(s, ",");
        char *type = rt_pool_strndup(&o->pool, s, n);
        if (!type) return rt_fail_nomem(o->b.err, name);
        TRY(st, rt_build_nodes(&o->b, type, rt_array_i64(&counts, i), &t));
        s += n + (s[n] == ',');
    }
    if (*s)
        st = rt_fail(o->b.err, GNNC_E_FORMAT, "%s: %s: fewer counts than types", o->f->name, name);
out:
    return st;
}

/* The node type of that name; NULL: there is none. */
static RtTable *node_type(const Ogb *o, const char *name) {
    for (int i = 0; i < o->b.d->n_nodes; i++)
        if (strcmp(o->b.d->nodes[i].name, name) == 0) return &o->b.d->nodes[i];
    return NULL;
}

/* Adds the edges of a line: "paper,has_topic,field_of_study" is edge type
 * paper__has_topic__field_of_study. */
static gnnc_status add_relation(Ogb *o, const char *line) {
    const char *part[3] = {line, "", ""};
    char *s = rt_pool_strndup(&o->pool, line, strlen(line));
    if (!s) return rt_fail_nomem(o->b.err, line);
    for (int i = 0; i < 3; i++) {
        part[i] = s;
        s += strcspn(s, ",");
        if (*s) *s++ = 0;
    }
    RtTable *src = node_type(o, part[0]), *dst = node_type(o, part[2]), *t;
    if (!src || !dst)
        return rt_fail(o->b.err, GNNC_E_FORMAT, "%s: triplet-type-list: '%s' names no node types",
                       o->f->name, line);
    char *dir = rt_pool_printf(&o->pool, "raw/relations/%s___%s___%s", part[0], part[1], part[2]);
    char *name = rt_pool_printf(&o->pool, "%s__%s__%s", part[0], part[1], part[2]);
    if (!dir || !name) return rt_fail_nomem(o->b.err, line);
    gnnc_status st = add_edges(o, dir, name, src, dst, NULL, &t);
    return st == GNNC_OK ? add_columns(o, t, dir, "edge") : st;
}

/* Reads the edge types that the data set lists. */
static gnnc_status read_relations(Ogb *o) {
    RtBytes text;
    bool found;
    const char **line;
    int64_t n;
    const char *name = "raw/triplet-type-list.csv";
    gnnc_status st;
    TRY(st, rt_folder_text(&o->pool, o->f, name, &text, &found, o->b.err));
    if (!found) return rt_fail(o->b.err, GNNC_E_MISSING, "%s: no %s.gz", o->f->name, name);
    TRY(st, rt_lines(&o->pool, text, name, &line, &n, o->b.err));
    for (int64_t i = 0; i < n && st == GNNC_OK; i++)
        if (*line[i]) st = add_relation(o, line[i]);
out:
    return st;
}

/* Reads a data set of several node types: relations, then features, labels and splits of each
 * type. */
static gnnc_status read_types(Ogb *o) {
    const char *scheme;
    gnnc_status st;
    TRY(st, read_node_types(o));
    TRY(st, read_relations(o));
    TRY(st, find_scheme(o, &scheme));
    for (int i = 0; i < o->b.d->n_nodes && st == GNNC_OK; i++) {
        RtTable *t = &o->b.d->nodes[i];
        static const char *const folders[] = {"raw/node-feat/%s", "raw/node-label/%s"};
        for (int k = 0; k < 2; k++) {
            char *dir = rt_pool_printf(&o->pool, k ? folders[1] : folders[0], t->name);
            if (!dir) return rt_fail_nomem(o->b.err, t->name);
            TRY(st, add_columns(o, t, dir, "node"));
        }
        char *dir = rt_pool_printf(&o->pool, "%s/%s", scheme ? scheme : "split", t->name);
        if (!dir) return rt_fail_nomem(o->b.err, t->name);
        if (scheme) st = add_split(o, t, dir);
    }
out:
    return st;
}

/* Reads a folder of the Open Graph Benchmark. */
gnnc_status rt_import_ogb(const RtAlloc *from, const RtFolder *f, RtImport *how, RtDataset **out,
                          RtError *err) {
    Ogb o = {.f = f};
    gnnc_status st;
    rt_pool_init(&o.pool, from);
    TRY(st, rt_build_begin(&o.b, from, f->name, how, 256, 1024, 1, err));
    if (rt_folder_has(f, "raw/data.npz")) {
        st =
            rt_fail(err, GNNC_E_FORMAT,
                    "%s: raw/data.npz: the binary release is not read, the csv.gz one is", f->name);
        goto out;
    }
    TRY(st, rt_folder_has(f, "raw/num-node-dict.csv") ? read_types(&o) : read_one_type(&o));
    st = rt_build_finish(&o.b);
out:
    return rt_build_end(&o.b, &o.pool, st, out);
}
