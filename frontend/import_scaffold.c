/* Starter models.  The declaration follows from the tables; the model encodes every column
 * (a linear layer for reals, a table for categories), adds them up per node type, passes
 * messages along all edge types in both directions and reads out the labels. */
#include "import_scaffold.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/data/json.h"

typedef struct {
    RtText text;
    const RtDataset *d;
    RtError *err;
    gnnc_status st;
    const RtTable *of;     /* the table with labels */
    const RtColumn *label; /* NULL: none */
    bool scalars;          /* some node type has a column of single numbers */
} Scaffold;

#define PUT(s, ...)                                                                                \
    do {                                                                                           \
        if ((s)->st == GNNC_OK && !rt_text_printf(&(s)->text, __VA_ARGS__))                        \
            (s)->st = rt_fail_nomem((s)->err, "scaffold");                                         \
    } while (0)

/* ---- what there is ------------------------------------------------------------------ */
static bool is_label(const RtColumn *c) {
    static const char *const names[] = {"y", "label", "labels"};
    bool kind = c->kind == RT_COL_CLASS || c->kind == RT_COL_MULTILABEL ||
                (c->kind == RT_COL_FLOAT && c->rank <= 2);
    for (size_t i = 0; kind && i < sizeof names / sizeof *names; i++)
        if (strcmp(c->name, names[i]) == 0) return true;
    return c->kind == RT_COL_CLASS;
}

static void find_label(Scaffold *s, const RtTable *t, int n) {
    for (int i = 0; i < n && !s->label; i++) {
        if (!rt_table_column(&t[i], "split")) continue;
        for (int j = 0; j < t[i].n_columns && !s->label; j++)
            if (is_label(&t[i].columns[j])) s->label = &t[i].columns[j], s->of = &t[i];
    }
}

static bool is_feature(const Scaffold *s, const RtColumn *c) {
    if (c == s->label || is_label(c)) return false;
    return c->kind == RT_COL_CSR || (c->kind == RT_COL_FLOAT && c->rank <= 2) ||
           (c->kind == RT_COL_CAT && c->rank == 1 && c->n_categories > 0);
}

static bool is_scalar(const RtColumn *c) {
    return c->kind == RT_COL_FLOAT && c->rank == 1;
}

/* ---- the graph ---------------------------------------------------------------------- */
static void put_column(Scaffold *s, const RtTable *t, const RtColumn *c, const char *table) {
    if (c->kind == RT_COL_SPLIT && strcmp(c->name, "split") == 0) {
        PUT(s, "split");
        return;
    }
    PUT(s, "%s: ", c->name);
    (void)t;
    switch (c->kind) {
    case RT_COL_FLOAT:
        PUT(s, "f32");
        for (int i = 1; i < c->rank; i++)
            PUT(s, "%sF_%s_%s%s%.0d%s", i == 1 ? "[" : ", ", table, c->name, i > 1 ? "_" : "",
                i > 1 ? i : 0, i + 1 == c->rank ? "]" : "");
        break;
    case RT_COL_CSR:
        PUT(s, "csr f32[F_%s_%s]", table, c->name);
        break;
    case RT_COL_CAT:
        PUT(s, "cat[K_%s_%s]", table, c->name);
        break;
    case RT_COL_CLASS:
        PUT(s, "class[C_%s_%s]", table, c->name);
        break;
    case RT_COL_MULTILABEL:
        PUT(s, "multilabel[T_%s_%s]", table, c->name);
        break;
    default:
        PUT(s, "%s", rt_col_kind_name(c->kind));
        break;
    }
}

static void put_columns(Scaffold *s, const RtTable *t, const char *table) {
    if (t->n_columns == 0) {
        PUT(s, "\n");
        return;
    }
    PUT(s, " {\n");
    for (int i = 0; i < t->n_columns; i++) {
        PUT(s, "    ");
        put_column(s, t, &t->columns[i], table);
        PUT(s, "\n");
    }
    PUT(s, "  }\n");
}

static void put_graph(Scaffold *s) {
    const RtDataset *d = s->d;
    PUT(s, "graph Data {\n");
    if (d->n_graphs) PUT(s, "  graph");
    if (d->n_graphs && d->graphs->n_columns)
        put_columns(s, d->graphs, "graph");
    else if (d->n_graphs)
        PUT(s, " { }\n");
    for (int i = 0; i < d->n_nodes; i++) {
        PUT(s, "  node %s", d->nodes[i].name);
        put_columns(s, &d->nodes[i], d->nodes[i].name);
    }
    for (int i = 0; i < d->n_edges; i++) {
        const RtTable *t = &d->edges[i];
        PUT(s, "  edge %s: %s -> %s", t->name, d->nodes[t->src_type].name,
            d->nodes[t->dst_type].name);
        put_columns(s, t, t->name);
    }
    PUT(s, "}\n\n");
}

/* ---- the model ---------------------------------------------------------------------- */
/* Without any column every node begins alike; its edges tell it apart. */
static void put_encoder(Scaffold *s, const RtTable *t) {
    bool any = false;
    PUT(s, "  h[g.%s] = ", t->name);
    for (int i = 0; i < t->n_columns; i++) {
        const RtColumn *c = &t->columns[i];
        if (!is_feature(s, c)) continue;
        PUT(s, "%s%s_%s(g.%s.%s)", any ? " + " : "", t->name, c->name, t->name, c->name);
        any = true;
    }
    if (any)
        PUT(s, "\n");
    else
        PUT(s, "ones(g.%s, hidden)\n", t->name);
}

static void put_encoders(Scaffold *s) {
    for (int i = 0; i < s->d->n_nodes; i++) {
        const RtTable *t = &s->d->nodes[i];
        for (int j = 0; j < t->n_columns; j++) {
            const RtColumn *c = &t->columns[j];
            if (!is_feature(s, c)) continue;
            if (c->kind == RT_COL_CAT)
                PUT(s, "  %s_%s = embedding(K_%s_%s, hidden)\n", t->name, c->name, t->name,
                    c->name);
            else
                PUT(s, "  %s_%s = %s(hidden)\n", t->name, c->name,
                    is_scalar(c) ? "scale" : "linear");
        }
    }
    PUT(s, "  h = [:]\n");
    for (int i = 0; i < s->d->n_nodes; i++) put_encoder(s, &s->d->nodes[i]);
}

static bool has_edges(const RtDataset *d, int type, bool in) {
    for (int i = 0; i < d->n_edges; i++)
        if ((in ? d->edges[i].dst_type : d->edges[i].src_type) == type) return true;
    return false;
}

static void put_layers(Scaffold *s) {
    const RtDataset *d = s->d;
    bool both = d->n_nodes > 1; /* else along the edges only */
    if (d->n_edges == 0) return;
    PUT(s, "  along = [[r: sage_conv(hidden) for r in g.edges] for i in 0..layers]\n");
    if (both) PUT(s, "  against = [[r: sage_conv(hidden) for r in g.edges] for i in 0..layers]\n");
    PUT(s, "  for i in 0..layers {\n    old = h\n    h = [:]\n");
    for (int i = 0; i < d->n_nodes; i++) {
        const char *t = d->nodes[i].name;
        PUT(s, "    h[g.%s] = relu(old[g.%s]", t, t);
        if (has_edges(d, i, true))
            PUT(s,
                " + sum([along[i][r](r, old[r.src], old[r.dst]) for r in g.edges if r.dst == "
                "g.%s])",
                t);
        if (both && has_edges(d, i, false))
            PUT(s,
                " + sum([against[i][r](reverse(r), old[r.dst], old[r.src]) for r in g.edges if "
                "r.src == g.%s])",
                t);
        PUT(s, ")\n");
    }
    PUT(s, "  }\n");
}

static void put_size(Scaffold *s, const char *table) {
    const RtColumn *c = s->label;
    const char letter = c->kind == RT_COL_CLASS ? 'C' : c->kind == RT_COL_MULTILABEL ? 'T' : 'F';
    if (c->kind == RT_COL_FLOAT && c->rank == 1)
        PUT(s, "1");
    else
        PUT(s, "%c_%s_%s", letter, table, c->name);
}

static void put_model(Scaffold *s) {
    const RtDataset *d = s->d;
    bool graphs = s->of && s->of == d->graphs;
    const char *of = graphs ? "graph" : s->of ? s->of->name : d->nodes->name;
    PUT(s, "model Starter(g: Data; hidden: int = 32, layers: int = 2) -> f32[%s", of);
    bool one = s->label && s->label->kind == RT_COL_FLOAT && s->label->rank == 1;
    if (!one) PUT(s, ", ");
    if (!s->label) PUT(s, "hidden");
    if (s->label && !one) put_size(s, of);
    PUT(s, "] {\n");
    put_encoders(s);
    put_layers(s);
    if (s->label) {
        PUT(s, "  out = linear(");
        put_size(s, of);
        PUT(s, ")\n  return %sout(%s%s%s)%s\n", one ? "sum(" : "", graphs ? "mean(h[g." : "h[g.",
            graphs ? d->nodes->name : of, graphs ? "], over = graph)" : "]", one ? ", 1)" : "");
    } else {
        PUT(s, "  return h[g.%s]\n", of);
    }
    PUT(s, "}\n");
}

static void put_recipe(Scaffold *s) {
    const RtColumn *c = s->label;
    if (!c) {
        PUT(s, "\n# No table has labels (`y`, `label`, or a class: --kind COLUMN=class) and a "
               "split: this gives embeddings only.\n");
        for (int i = 0; i < s->d->n_edges; i++)
            if (rt_table_column(&s->d->edges[i], "split")) {
                PUT(s, "# The edges `%s` have a split: models/link.gnn learns such links.\n",
                    s->d->edges[i].name);
                break;
            }
        return;
    }
    bool graphs = s->of == s->d->graphs;
    const char *loss = c->kind == RT_COL_CLASS        ? "cross_entropy"
                       : c->kind == RT_COL_MULTILABEL ? "bce_with_logits"
                                                      : "mse";
    const char *metric = c->kind == RT_COL_CLASS        ? "accuracy"
                         : c->kind == RT_COL_MULTILABEL ? "roc_auc"
                                                        : "mae";
    PUT(s, "\ntrain Starter {\n  target %s.%s    loss %s    metric %s\n",
        graphs ? "graph" : s->of->name, c->name, loss, metric);
    PUT(s, "  optimizer adam(lr = 1e-2)\n  epochs 100\n}\n");
}

static void put_all(Scaffold *s, const char *dir) {
    const RtDataset *d = s->d;
    PUT(s, "# A starter for %s, as `gnnc import --scaffold` writes it: change it freely.\n", dir);
    if (d->n_edges) PUT(s, "import \"layers/sage.gnn\"\n");
    PUT(s, "\n");
    put_graph(s);
    for (int i = 0; i < d->n_nodes; i++)
        for (int j = 0; j < d->nodes[i].n_columns; j++)
            s->scalars |=
                is_feature(s, &d->nodes[i].columns[j]) && is_scalar(&d->nodes[i].columns[j]);
    if (s->scalars)
        PUT(s, "# A number per node, spread over `out` dimensions.\n"
               "layer scale(out: int)(x: f32[N]) -> f32[N, out] {\n"
               "  param w: f32[out] = normal(0, 1)\n"
               "  return expand(x, out) * w\n"
               "}\n\n");
    put_model(s);
    put_recipe(s);
}

gnnc_status gnnc_import_scaffold(const RtDataset *d, const char *dir, const char *path,
                                 bool replace, RtError *err) {
    RtPool pool;
    RtOut o;
    Scaffold s = {.d = d, .err = err, .text.pool = &pool, .st = GNNC_OK};
    if (!replace && access(path, F_OK) == 0)
        return rt_fail(err, GNNC_E_IO, "%s: exists already; --force replaces it", path);
    rt_pool_init(&pool, &d->pool.from);
    find_label(&s, d->graphs, d->n_graphs);
    find_label(&s, d->nodes, d->n_nodes);
    put_all(&s, dir);
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
