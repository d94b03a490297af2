/* The model of a starter: encoders of columns, layers along relations, and what reads the result.
 */
#include <math.h>
#include <string.h>

#include "import_scaffold_impl.h"
#include "runtime/data/encoder.h"

/* The number of edges at a node: of those that lead to it, and of those that lead away where
 * messages go both ways. */
static void put_degree(Scaffold *s, int type) {
    const RtDataset *d = s->d;
    bool first = true;
    for (int i = 0; i < d->n_edges; i++)
        for (int end = 0; end < 2; end++) {
            const RtTable *t = &d->edges[i];
            if ((end ? t->src_type : t->dst_type) != type || (end && d->n_nodes == 1)) continue;
            PUT(s, "%sdegree(g.%s, g.%s.%s)", first ? "" : " + ", t->name, t->name,
                end ? "src" : "dst");
            first = false;
        }
}

/* Writes h[g.TABLE] = the sum of encoders: of the row's age, of its columns, and of what stands
 * in for columns where there are none. The 1e11 takes away what put_now added to the times. */
static void put_encoding(Scaffold *s, int type) {
    const RtTable *t = &s->d->nodes[type];
    const char *plus = "";
    PUT(s, "  h[g.%s] = ", t->name);
    if (scaffold_is_aged(s, t)) {
        PUT(s, "%s(f32(now[g.%s] - g.%s.%s - 1e11))", scaffold_role_of(s, t, SCAFFOLD_AGE), t->name,
            t->name, scaffold_time_of(s, t)->name);
        plus = " + ";
    }
    for (int i = 0; i < t->n_columns; i++) {
        const RtColumn *c = &t->columns[i];
        bool past = scaffold_is_past(s, t, c);
        if (past)
            PUT(s, "%s%s(f32(now[g.%s] - g.%s.%s - 1e11))", plus, scaffold_name_of(s, c), t->name,
                t->name, c->name);
        else if (scaffold_is_dated(s, t, c))
            PUT(s, "%s%s(g.%s.%s)", plus, scaffold_name_of(s, c), t->name, c->name);
        if (past || scaffold_is_dated(s, t, c)) plus = " + ";
        if (!scaffold_is_feature(s, c)) continue;
        bool thin = c->kind == RT_COL_CSR; /* words of a text: some are left out in each step */
        PUT(s, "%s%s(%sg.%s.%s%s)", plus, scaffold_name_of(s, c), thin ? "dropout(" : "", t->name,
            c->name, thin ? ", p)" : "");
        plus = " + ";
    }
    if (scaffold_encoded(s, type) == BY_DEGREE) {
        PUT(s, "%s(", scaffold_role_of(s, t, SCAFFOLD_DEGREE));
        put_degree(s, type);
        PUT(s, ")");
    }
    if (scaffold_encoded(s, type) == BY_ITSELF) PUT(s, "%s", scaffold_role_of(s, t, SCAFFOLD_SELF));
    if (scaffold_encoded(s, type) == BY_NOTHING) PUT(s, "ones(g.%s, hidden)", t->name);
    PUT(s, "\n");
}

/* Writes the layers and parameters that make the first vectors of a node type. */
static void put_encoder(Scaffold *s, int type) {
    const RtTable *t = &s->d->nodes[type];
    if (scaffold_is_aged(s, t))
        PUT(s, "  %s = age(hidden)\n", scaffold_role_of(s, t, SCAFFOLD_AGE));
    for (int j = 0; j < t->n_columns; j++) {
        const RtColumn *c = &t->columns[j];
        bool past = scaffold_is_past(s, t, c);
        if (past || scaffold_is_dated(s, t, c))
            PUT(s, "  %s = %s(hidden)\n", scaffold_name_of(s, c), past ? "age" : "calendar");
    }
    for (int j = 0; j < t->n_columns; j++) {
        const RtColumn *c = &t->columns[j];
        if (!scaffold_is_feature(s, c)) continue;
        if (c->kind == RT_COL_CAT)
            PUT(s, "  %s = %s(K_%s, hidden)\n", scaffold_name_of(s, c),
                scaffold_has_unknown(c) ? "embedding_unknown" : "embedding",
                scaffold_name_of(s, c));
        else
            PUT(s, "  %s = %s(hidden)\n", scaffold_name_of(s, c),
                scaffold_is_scalar(c) ? "scale" : "linear");
    }
    if (scaffold_encoded(s, type) == BY_DEGREE)
        PUT(s, "  %s = degrees(hidden)\n", scaffold_role_of(s, t, SCAFFOLD_DEGREE));
    if (scaffold_encoded(s, type) == BY_ITSELF)
        PUT(s, "  param %s: f32[%s, hidden] = normal(0, 0.1)   # no column: a vector each\n",
            scaffold_role_of(s, t, SCAFFOLD_SELF), t->name);
}

/* Writes the times of the rows that read the rows of a node type, one hop nearer to the seeds
 * (print), and returns by how many relations. */
static int put_nearer(Scaffold *s, int type, const int *far, bool print) {
    const RtDataset *d = s->d;
    int n = 0;
    for (int i = 0; i < d->n_edges; i++)
        for (int end = 0; end < 2; end++) { /* 0: the type is the edges' source */
            const RtTable *e = &d->edges[i];
            int own = end ? e->dst_type : e->src_type, other = end ? e->src_type : e->dst_type;
            if (own != type || far[other] != far[type] - 1) continue;
            const char *open = end ? "reverse(g." : "g.", *close = end ? ")" : "";
            if (print)
                PUT(s, "%smax(now[g.%s][%s%s%s.dst], over = %s%s%s.src)", n ? ", " : "",
                    d->nodes[other].name, open, e->name, close, open, e->name, close);
            n++;
        }
    return n;
}

/* Writes how the time that each row is asked at goes to the rows that it reads. Times are moved
 * by 1e11 seconds above 0, which is what max gives of no rows. */
static void put_now(Scaffold *s) {
    const RtDataset *d = s->d;
    if (!scaffold_any_of_nodes(s, scaffold_has_age)) return;
    PUT(s,
        "  # The time that each row is asked at, carried to the rows that it reads.\n  now = [:]\n"
        "  now[g.%s] = g.%s.%s + 1e11\n",
        s->home->name, s->home->name, scaffold_time_of(s, s->home)->name);
    for (int k = 1; k <= s->layers; k++)
        for (int i = 0; i < d->n_nodes; i++) {
            if (s->hops[i] != k) continue;
            bool several = put_nearer(s, i, s->hops, false) > 1;
            PUT(s, "  now[g.%s] = %s", d->nodes[i].name, several ? "max([" : "");
            put_nearer(s, i, s->hops, true);
            PUT(s, "%s\n", several ? "])" : "");
        }
}

/* Writes how each row gets its first vector. */
static void put_encoders(Scaffold *s) {
    put_now(s);
    for (int i = 0; i < s->d->n_nodes; i++) put_encoder(s, i);
    PUT(s, "  h = [:]\n");
    for (int i = 0; i < s->d->n_nodes; i++) put_encoding(s, i);
}

/* Graphs are told apart by sums, which count (Xu et al. 2019); their scale wants a norm. */
static const char *conv_of(const Scaffold *s) {
    return s->graphs ? "sage_conv(hidden, aggr = \"sum\")" : "sage_conv(hidden)";
}

/* Writes how a layer updates a node type: from what leads to it and, if both, from what it leads
 * to. */
static void put_layer(Scaffold *s, int type, bool both) {
    const char *t = s->d->nodes[type].name, *norm = s->graphs ? ")" : "";
    PUT(s, "    h[g.%s] = relu(", t);
    if (s->graphs) PUT(s, "norms[i][g.%s](", t);
    PUT(s, "old[g.%s]", t);
    if (scaffold_has_edges(s->d, type, true))
        PUT(s, " + sum([along[i][r](r, old[r.src], old[r.dst]) for r in g.edges if r.dst == g.%s])",
            t);
    if (both && scaffold_has_edges(s->d, type, false))
        PUT(s,
            " + sum([against[i][r](reverse(r), old[r.dst], old[r.src]) for r in g.edges if r.src "
            "== g.%s])",
            t);
    PUT(s, "%s)\n", norm);
}

/* Writes the layers that pass messages, in both directions where there are several node types. */
static void put_layers(Scaffold *s) {
    const RtDataset *d = s->d;
    bool both = d->n_nodes > 1; /* else along the edges only */
    if (d->n_edges == 0) return;
    PUT(s, "  along = [[r: %s for r in g.edges] for i in 0..layers]\n", conv_of(s));
    if (both) PUT(s, "  against = [[r: %s for r in g.edges] for i in 0..layers]\n", conv_of(s));
    if (s->graphs) PUT(s, "  norms = [[t: batch_norm() for t in g.nodes] for i in 0..layers]\n");
    PUT(s, "  for i in 0..layers {\n    old = [t: dropout(h[t], p) for t in g.nodes]\n"
           "    h = [:]\n");
    for (int i = 0; i < d->n_nodes; i++) put_layer(s, i, both);
    PUT(s, "  }\n");
}

/* Writes the size of the label: how many numbers a row predicts. */
static void put_size(Scaffold *s) {
    const RtColumn *c = s->label;
    if (c->kind == RT_COL_FLOAT && c->rank == 1)
        PUT(s, "1");
    else
        PUT(s, "%s_%s", rt_col_facts[c->kind].size, scaffold_name_of(s, c));
}

/* Sets the mean and deviation of the numbers that are learned, in the training rows; both stay
 * if there are none. */
static void find_scale(const Scaffold *s, double *mean, double *deviation) {
    const RtColumn *split = rt_table_column(s->of, "split"), *c = s->label;
    double sum = 0, squares = 0, n = 0;
    if (split->kind != RT_COL_SPLIT || !c->f32) return;
    for (int64_t i = 0; i < c->n_rows; i++)
        if (split->splits[i] == 1) sum += (double)c->f32[i], n++;
    if (n < 1) return;
    for (int64_t i = 0; i < c->n_rows; i++) {
        double x = (double)c->f32[i] - sum / n;
        if (split->splits[i] == 1) squares += x * x;
    }
    *mean = sum / n;
    if (squares > 0) *deviation = sqrt(squares / n);
}

/* How past labels are standardised: *mean and *deviation, or *scaled, where the column is
 * standardised already. False: it has another scale, which cannot be undone. */
static bool past_label_scale(const Scaffold *s, double *mean, double *deviation, bool *scaled) {
    const RtEncoder *e = s->told->encoder;
    *scaled = e && e->as == RT_AS_NUMBER && e->scale == RT_SCALE_STANDARD;
    if (*scaled) *mean = e->mean, *deviation = e->deviation;
    return *scaled || !e || (e->as == RT_AS_NUMBER && e->scale == RT_SCALE_PLAIN);
}

/* Writes the model's text that sums up past labels: of earlier rows with the same foreign key, for
 * each of these keys. */
static void put_past_labels(Scaffold *s, double mean, double deviation, bool scaled) {
    const RtDataset *d = s->d;
    const char *of = s->told_of->name;
    PUT(s,
        "  # What earlier rows of the same references had.\n"
        "  said = f32(now[g.%s] - g.%s.%s - 1e11)\n",
        of, of, scaffold_time_of(s, s->told_of)->name);
    if (scaled)
        PUT(s, "  had = g.%s.%s\n", of, s->told->name);
    else
        PUT(s, "  had = (g.%s.%s - %.9g) / %.9g\n", of, s->told->name, mean, deviation);
    for (int i = 0; i < d->n_edges; i++) {
        const RtTable *own = &d->edges[i], *e = scaffold_told_along(s, own);
        if (!e) continue;
        PUT(s,
            "  told_%s = sum(earlier()(g.%s, had, said)[reverse(g.%s).src], over = "
            "reverse(g.%s).dst)\n"
            "  from_%s = linear(1, bias = false)\n"
            "  y = y + from_%s(told_%s)\n",
            own->name, e->name, own->name, own->name, own->name, own->name, own->name);
    }
}

/* Writes the model's result: the average of past labels, where there are some, plus the
 * network's correction. */
static void put_result_from_past_labels(Scaffold *s, double mean, double deviation) {
    const char *plus = "";
    bool scaled, back = past_label_scale(s, &mean, &deviation, &scaled);
    PUT(s, "  y = out(dropout(x, p))\n");
    put_past_labels(s, mean, deviation, scaled || !back);
    if (back) PUT(s, "  begin = ");
    for (int i = 0; back && i < s->d->n_edges; i++) {
        const RtTable *own = &s->d->edges[i];
        if (!scaffold_told_along(s, own)) continue;
        PUT(s, "%ssettled()(told_%s)", plus, own->name);
        plus = " + ";
    }
    PUT(s,
        "%s  # The mean of what is learned, and its deviation: the rest is of size 1.\n"
        "  return %.9g + %.9g * ",
        back ? "\n" : "", mean, deviation);
    PUT(s, back ? "(sum(slice(begin, 2, 0, 1), 1) / max(sum(slice(begin, 2, 1, 1), 1), 1e-6) + "
                  "slight()(sum(y, 1)))\n"
                : "sum(y, 1)\n");
}

/* Writes the end of the model: the prediction of a row, or of a graph from the mean and maximum
 * of its nodes. one: it is one number. */
static void put_readout(Scaffold *s, const char *of, bool one) {
    const char *nodes = s->d->nodes->name;
    PUT(s, "  out = linear(");
    put_size(s);
    PUT(s, ")\n");
    if (s->graphs)
        PUT(s,
            "  x = concat(mean(h[g.%s], over = graph), max(h[g.%s], over = graph), over = "
            "hidden)\n",
            nodes, nodes);
    else
        PUT(s, "  x = h[g.%s]\n", of);
    const char *y = "out(dropout(x, p))";
    double mean = 0, deviation = 1;
    if (one) find_scale(s, &mean, &deviation);
    if (one && s->told)
        put_result_from_past_labels(s, mean, deviation);
    else if (one && (mean != 0 || deviation != 1))
        PUT(s,
            "  # The mean of what is learned, and its deviation: the rest is of size 1.\n"
            "  return %.6g + %.6g * sum(%s, 1)\n",
            mean, deviation, y);
    else
        PUT(s, "  return %s%s%s\n", one ? "sum(" : "", y, one ? ", 1)" : "");
}

/* Numbers are blurred by what is left out, classes are not. */
static const char *dropout_of(const Scaffold *s, bool number) {
    if (s->timed && number) return "0.1";
    return s->graphs || !scaffold_has_few(s) ? "0.2" : "0.5";
}

void scaffold_put_model(Scaffold *s) {
    const char *of = s->graphs ? "graph" : s->home->name;
    bool one = s->label && s->label->kind == RT_COL_FLOAT && s->label->rank == 1;
    PUT(s, "model Starter(g: Data; hidden: int = 32, layers: int = %d, p: float = %s) -> f32[%s",
        s->layers, dropout_of(s, one), of);
    if (!one) PUT(s, ", ");
    if (!s->label) PUT(s, "hidden");
    if (s->label && !one) put_size(s);
    PUT(s, "] {\n");
    put_encoders(s);
    put_layers(s);
    if (s->label)
        put_readout(s, of, one);
    else
        PUT(s, "  return h[g.%s]\n", of);
    PUT(s, "}\n");
}

void scaffold_put_parts(Scaffold *s) {
    if (scaffold_any_feature(s, scaffold_is_scalar))
        PUT(s, "# A number per node, spread over `out` dimensions.\n"
               "layer scale(out: int)(x: f32[N]) -> f32[N, out] {\n"
               "  param w: f32[out] = normal(0, 1)\n"
               "  return expand(x, out) * w\n"
               "}\n\n");
    if (scaffold_any_encoded(s, BY_DEGREE))
        PUT(s, "# How many edges a node has, where it has nothing else: a row of a table each.\n"
               "layer degrees(out: int; most: int = 64)(d: f32[N]) -> f32[N, out] {\n"
               "  table = linear(out)\n"
               "  return table(one_hot(i32(min(d, most - 1)), most))\n"
               "}\n\n");
}
