/* Starter models.  The declaration follows from the tables; the model encodes every column
 * (a linear layer for reals, a table for categories; the number of edges where there is none), adds
 * them up per node type, passes messages along all edge types in both directions and reads out the
 * labels.  Where rows with labels have a time, it sees what is older; else times are not read. */
#include "import_scaffold.h"

#include <string.h>
#include <unistd.h>

#include "import_scaffold_impl.h"
#include "import_scaffold_rank.h"
#include "runtime/data/encoder.h"

/* Writes the declaration of a column: its name, type and sizes. */
static void put_column(Scaffold *s, const RtColumn *c) {
    if (c->kind == RT_COL_SPLIT && strcmp(c->name, "split") == 0) {
        PUT(s, "split");
        return;
    }
    const RtColFacts *f = &rt_col_facts[c->kind];
    int n = rt_column_has_codes(c) ? 1 : c->rank - 1;
    PUT(s, "%s: %s", c->name, f->said);
    for (int i = 1; i <= n; i++)
        PUT(s, "%s%s_%s%s%.0d%s", i == 1 ? "[" : ", ", f->size, scaffold_name_of(s, c),
            i > 1 ? "_" : "", i > 1 ? i : 0, i == n ? "]" : "");
}

/* Writes the columns of a table's declaration; `timeless`, if it has times by which the recipe
 * does not read it. */
static void put_columns(Scaffold *s, const RtTable *t) {
    bool read = s->timed && scaffold_time_of(s, t); /* the recipe lists it */
    if (t != s->d->graphs && scaffold_has_times(t) && !read) PUT(s, " timeless");
    if (t->n_columns == 0) {
        PUT(s, "\n");
        return;
    }
    PUT(s, " {\n");
    for (int i = 0; i < t->n_columns; i++) {
        PUT(s, "    ");
        put_column(s, &t->columns[i]);
        PUT(s, "\n");
    }
    PUT(s, "  }\n");
}

/* Writes the declaration of the graph, and which node types it leaves out. */
static void put_graph(Scaffold *s) {
    const RtDataset *d = s->d;
    PUT(s, "graph Data {\n");
    if (d->n_graphs) PUT(s, "  graph");
    if (d->n_graphs && d->graphs->n_columns)
        put_columns(s, d->graphs);
    else if (d->n_graphs)
        PUT(s, " { }\n");
    for (int i = 0; i < d->n_nodes; i++) {
        PUT(s, "  node %s", d->nodes[i].name);
        put_columns(s, &d->nodes[i]);
    }
    for (int i = 0; i < d->n_edges; i++) {
        const RtTable *t = &d->edges[i];
        PUT(s, "  edge %s: %s -> %s", t->name, d->nodes[t->src_type].name,
            d->nodes[t->dst_type].name);
        put_columns(s, t);
    }
    PUT(s, "}\n");
    if (*s->left)
        PUT(s, "# Left out, because nothing of them reaches `%s` in %d layers: %s.\n",
            s->home->name, s->layers, s->left);
    PUT(s, "\n");
}

/* Writes the whole starter model. */
static void put_all(Scaffold *s) {
    const RtDataset *d = s->d;
    PUT(s, "# A starter for %s, as `gnnc import --scaffold` writes it: change it freely.\n",
        s->how->dir);
    if (d->n_edges) PUT(s, "import \"layers/sage.gnn\"\n");
    if (s->graphs && d->n_edges) PUT(s, "import \"layers/batch_norm.gnn\"\n");
    if (scaffold_any_feature(s, scaffold_has_unknown)) PUT(s, "import \"layers/categories.gnn\"\n");
    if (scaffold_any_of_nodes(s, scaffold_has_time)) PUT(s, "import \"layers/time.gnn\"\n");
    if (s->told) PUT(s, "import \"layers/history.gnn\"\n");
    PUT(s, "\n");
    put_graph(s);
    scaffold_put_parts(s);
    scaffold_put_model(s);
    scaffold_put_recipe(s);
}

/* Writes a starter model for a dataset to the file `path`. A model that ranks is written by
 * import_scaffold_rank.c. */
gnnc_status gnnc_import_scaffold(const RtDataset *d, const ScaffoldHow *how, const char *path,
                                 RtError *err) {
    RtPool pool;
    RtOut o;
    RtDataset seen;
    Scaffold s = {
        .all = d, .pool = &pool, .how = how, .err = err, .text.pool = &pool, .st = GNNC_OK};
    if (!how->replace && access(path, F_OK) == 0)
        return rt_fail(err, GNNC_E_IO, "%s: exists already; --force replaces it", path);
    rt_pool_init(&pool, &d->pool.from);
    if (how->ranks)
        s.st = scaffold_rank(&pool, d, how, &s.text, err);
    else
        scaffold_find_task(&s, &seen);
    if (s.st == GNNC_OK && !how->ranks) s.st = scaffold_names(&pool, &seen, &s.names, err);
    if (s.st == GNNC_OK && !how->ranks) put_all(&s);
    gnnc_status st = s.st;
    if (st == GNNC_OK) TRY(st, rt_out_open(&o, &pool.from, path, err));
    if (st == GNNC_OK) st = rt_out_write(&o, s.text.s, s.text.n, err);
    if (st == GNNC_OK)
        st = rt_out_commit(&o, err);
    else if (s.st == GNNC_OK)
        rt_out_abort(&o);
out:
    rt_pool_free(&pool);
    return st;
}
