/* Starter models.  The declaration follows from the tables; the model encodes every column
 * (a linear layer for reals, a table for categories; the number of edges where there is none), adds
 * them up per node type, passes messages along all edge types in both directions and reads out the
 * labels.  Where rows with labels have a time, it sees what is older; else times are not read. */
#include "import_scaffold.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "import_scaffold_names.h"
#include "import_scaffold_rank.h"
#include "import_scaffold_view.h"
#include "runtime/data/encoder.h"
#include "runtime/import/import_split.h"
#include "runtime/import/import_time.h"
#include "runtime/data/json.h"

enum {
    LAYERS = 2,
    LAST_HOP = 3, /* of rows by time: so many references after one another are followed */
    FEW = 5000,   /* rows to learn from */
    MANY = 50000,
};

typedef struct {
    RtText text;
    RtPool *pool;
    const ScaffoldHow *how;
    const RtDataset *d, *all; /* what the model reads, and all there is */
    ScaffoldNames names;
    const char *left; /* node types that no message of arrives, "city, country" */
    RtError *err;
    gnnc_status st;
    const RtTable *home;    /* the rows that the result is of; NULL: no nodes */
    const RtTable *of;      /* the table with labels */
    const RtColumn *label;  /* NULL: none */
    int layers, *hops;      /* [d->n_nodes] layers after which the result knows of a type */
    const RtTable *told_of; /* rows that have told what is asked for, .. */
    const RtColumn *told;   /* .. a number; NULL: there are none */
    bool graphs;            /* labels are of graphs */
    bool timed;             /* rows with labels have a time, and the model sees what is older */
} Scaffold;

#define PUT(s, ...)                                                                                \
    do {                                                                                           \
        if ((s)->st == GNNC_OK && !rt_text_printf(&(s)->text, __VA_ARGS__))                        \
            (s)->st = rt_fail_nomem((s)->err, "scaffold");                                         \
    } while (0)

/* ---- what there is ------------------------------------------------------------------ */
/* Finds the first of n tables that has labels and a split (that of the task, if there is one),
 * unless a table was found before. */
static void find_label(Scaffold *s, const RtTable *t, int n) {
    for (int i = 0; i < n && !s->label; i++) {
        if (s->how->task && strcmp(t[i].name, s->how->task) != 0) continue;
        if (rt_table_column(&t[i], "split") && (s->label = rt_table_label(&t[i]))) s->of = &t[i];
    }
}

static const RtColumn *time_of(const Scaffold *s, const RtTable *t) {
    return rt_import_row_time(t, s->how->by_time);
}

/* Whether a table has a column of times. */
static bool has_times(const RtTable *t) {
    for (int i = 0; i < t->n_columns; i++)
        if (t->columns[i].kind == RT_COL_TIME) return true;
    return false;
}

/* The first relation that a split was made for, which models for links begin at. NULL: there is
 * none. */
static const RtTable *split_links(const RtDataset *d) {
    for (int i = 0; i < d->n_edges; i++)
        if (rt_table_column(&d->edges[i], "split")) return &d->edges[i];
    return NULL;
}

/* The last table that has labels, whether they are split or not. NULL: there is none. */
static const RtTable *labelled_table(const RtDataset *d) {
    const RtTable *found = NULL;
    for (int i = 0; i < d->n_nodes; i++)
        if (rt_table_label(&d->nodes[i])) found = &d->nodes[i];
    for (int i = 0; i < d->n_graphs; i++)
        if (rt_table_label(&d->graphs[i])) found = &d->graphs[i];
    return found;
}

/* The node type for which the starter predicts: the one with labels, or the source of the links,
 * or the one with most edges. */
static int find_target_table(const Scaffold *s) {
    const RtDataset *d = s->all;
    const RtTable *t = s->of ? s->of : labelled_table(d), *links = split_links(d);
    for (int i = 0; i < d->n_nodes; i++)
        if (t == &d->nodes[i]) return i;
    return links ? links->src_type : scaffold_hub(d);
}

static bool is_scalar(const RtColumn *c) {
    return c->kind == RT_COL_FLOAT && c->rank == 1;
}

/* Finds after how many layers the result knows of each node type, and how many layers the model
 * has. */
static void find_distances(Scaffold *s) {
    const RtDataset *d = s->d;
    int home = 0;
    s->layers = LAYERS;
    s->hops = RT_NEWN(s->pool, int, d->n_nodes + 1);
    if (!s->hops) {
        s->st = rt_fail_nomem(s->err, "scaffold");
        return;
    }
    while (home < d->n_nodes && strcmp(d->nodes[home].name, s->home->name) != 0) home++;
    scaffold_distances(d, home, LAST_HOP, s->hops);
    for (int i = 0; i < d->n_nodes; i++)
        if (s->timed && s->hops[i] == LAST_HOP) s->layers = LAST_HOP;
}

/* Finds the column of older rows that tells the number that the task asks for, if there is one:
 * the model reads it as history. */
static void find_told(Scaffold *s) {
    for (int i = 0; i < s->d->n_nodes; i++) {
        const RtTable *t = &s->d->nodes[i];
        if (strcmp(t->name, s->how->told_table) != 0 || !time_of(s, t)) continue;
        const RtColumn *c = rt_table_column(t, s->how->told);
        if (c && is_scalar(c)) s->told_of = t, s->told = c;
    }
}

/* The relation of `told_of` that is made of the same reference as the task's relation `own`.
 * NULL: there is none. */
static const RtTable *told_along(const Scaffold *s, const RtTable *own) {
    size_t n = strlen(s->home->name), m = s->told ? strlen(s->told_of->name) : 0;
    for (int i = 0; i < s->d->n_edges && s->told; i++) {
        const RtTable *e = &s->d->edges[i];
        if (own->dst_type == e->dst_type &&
            strcmp(s->d->nodes[own->src_type].name, s->home->name) == 0 &&
            strncmp(own->name, s->home->name, n) == 0 &&
            strncmp(e->name, s->told_of->name, m) == 0 && strcmp(own->name + n, e->name + m) == 0)
            return e;
    }
    return NULL;
}

/* Finds what the starter model predicts and of which table, then puts into `seen` the tables
 * that its layers reach from there. s->left names those left out. At most LAST_HOP steps go from
 * a child to its parent tables. */
static void find_task(Scaffold *s, RtDataset *seen) {
    const RtDataset *d = s->all;
    find_label(s, d->graphs, d->n_graphs);
    find_label(s, d->nodes, d->n_nodes);
    s->graphs = s->of && s->of == d->graphs;
    int home = find_target_table(s);
    s->home = d->n_nodes ? &d->nodes[home] : NULL;
    bool timed = s->of && !s->graphs && time_of(s, s->of);
    s->st = scaffold_reach(s->pool, d, home, LAYERS, timed ? LAST_HOP : 0, seen, &s->left, s->err);
    s->d = seen;
    s->timed = timed && seen->n_edges;
    if (s->st == GNNC_OK) find_distances(s);
    if (s->st == GNNC_OK && s->how->told && s->timed) find_told(s);
}

/* Whether the model reads a column as a feature: no label, and of a kind that has an encoder. */
static bool is_feature(const Scaffold *s, const RtColumn *c) {
    if (c == s->label || rt_column_is_label(c)) return false;
    return c->kind == RT_COL_CSR || (c->kind == RT_COL_FLOAT && c->rank <= 2) ||
           (c->kind == RT_COL_CAT && c->rank == 1 && c->n_categories > 1);
}

/* Rows that are read from others, with a time: how old they are is told. */
static bool is_aged(const Scaffold *s, const RtTable *t) {
    return s->timed && strcmp(t->name, s->home->name) != 0 && time_of(s, t);
}

/* A time beside the row's own: how long it was before the row is asked for; what is later than that
 * is not seen. */
static bool is_past(const Scaffold *s, const RtTable *t, const RtColumn *c) {
    return s->timed && c->kind == RT_COL_TIME && c != time_of(s, t);
}

/* What hour, day and season it is, where nothing has a moment that it is asked at.  Rows that are
 * learned from lie before those that are judged: of a season that only these are in, nothing is
 * known, and ratings of films were predicted worse by it (mean error 0.60 for 0.59). */
static bool is_dated(const Scaffold *s, const RtTable *t, const RtColumn *c) {
    (void)t;
    return !s->timed && c->kind == RT_COL_TIME;
}

/* Whether a column of the table satisfies the test. */
static bool any_column(const Scaffold *s, const RtTable *t,
                       bool is(const Scaffold *, const RtTable *, const RtColumn *)) {
    for (int i = 0; i < t->n_columns; i++)
        if (is(s, t, &t->columns[i])) return true;
    return false;
}

/* Whether a node type satisfies the test. */
static bool any_of_nodes(const Scaffold *s, bool is(const Scaffold *, const RtTable *)) {
    for (int i = 0; i < s->d->n_nodes; i++)
        if (is(s, &s->d->nodes[i])) return true;
    return false;
}

static bool has_age(const Scaffold *s, const RtTable *t) {
    return is_aged(s, t) || any_column(s, t, is_past);
}

static bool has_time(const Scaffold *s, const RtTable *t) {
    return has_age(s, t) || any_column(s, t, is_dated);
}

/* Whether a table has a column that the model reads as a feature. */
static bool has_features(const Scaffold *s, const RtTable *t) {
    for (int i = 0; i < t->n_columns; i++)
        if (is_feature(s, &t->columns[i])) return true;
    return false;
}

/* Whether some relation leads into a node type (in) or out of it. */
static bool has_edges(const RtDataset *d, int type, bool in) {
    for (int i = 0; i < d->n_edges; i++)
        if ((in ? d->edges[i].dst_type : d->edges[i].src_type) == type) return true;
    return false;
}

/* What stands for a node without a feature. */
typedef enum {
    BY_COLUMNS,
    BY_DEGREE,  /* where other nodes than those that are learned from will come */
    BY_ITSELF,  /* a vector of its own */
    BY_NOTHING, /* a row that only refers to others: they tell it apart */
} Encoded;

/* What the first vectors of a node type are made of. */
static Encoded encoded(const Scaffold *s, int type) {
    const RtTable *t = &s->d->nodes[type];
    if (has_features(s, t) || has_time(s, t)) return BY_COLUMNS;
    if (!has_edges(s->d, type, true) && s->d->n_nodes > 1) return BY_NOTHING;
    if (s->graphs || s->timed) return s->d->n_edges ? BY_DEGREE : BY_NOTHING;
    return BY_ITSELF;
}

/* Whether the first vectors of some node type are made in this way. */
static bool any_encoded(const Scaffold *s, Encoded how) {
    for (int i = 0; i < s->d->n_nodes; i++)
        if (encoded(s, i) == how) return true;
    return false;
}

/* Code 0 is for names that other data will have. */
static bool has_unknown(const RtColumn *c) {
    return c->kind == RT_COL_CAT && c->encoder && c->encoder->unknown;
}

/* Whether a feature of some node type satisfies the test. */
static bool any_feature(const Scaffold *s, bool is(const RtColumn *c)) {
    for (int i = 0; i < s->d->n_nodes; i++)
        for (int j = 0; j < s->d->nodes[i].n_columns; j++) {
            const RtColumn *c = &s->d->nodes[i].columns[j];
            if (is_feature(s, c) && is(c)) return true;
        }
    return false;
}

/* How many rows of a table its first split puts into part k: 1 train, 2 validation, 3 test. */
static int64_t count_part(const RtTable *t, int k) {
    const RtColumn *c = rt_table_column(t, "split");
    int64_t n = 0;
    for (int64_t i = 0; c && c->kind == RT_COL_SPLIT && i < t->count; i++) n += c->splits[i] == k;
    return n;
}

/* ---- names -------------------------------------------------------------------------- */
static const char *name_of(const Scaffold *s, const RtColumn *c) {
    return scaffold_column_name(&s->names, c);
}

static const char *role_name(const Scaffold *s, const RtTable *t, ScaffoldRole role) {
    return scaffold_role_name(&s->names, t, role);
}

/* ---- the graph ---------------------------------------------------------------------- */
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
        PUT(s, "%s%s_%s%s%.0d%s", i == 1 ? "[" : ", ", f->size, name_of(s, c), i > 1 ? "_" : "",
            i > 1 ? i : 0, i == n ? "]" : "");
}

/* Writes the columns of a table's declaration; `timeless`, if it has times by which the recipe
 * does not read it. */
static void put_columns(Scaffold *s, const RtTable *t) {
    bool read = s->timed && time_of(s, t); /* the recipe lists it */
    if (t != s->d->graphs && has_times(t) && !read) PUT(s, " timeless");
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

/* ---- the model ---------------------------------------------------------------------- */
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
    if (is_aged(s, t)) {
        PUT(s, "%s(f32(now[g.%s] - g.%s.%s - 1e11))", role_name(s, t, SCAFFOLD_AGE), t->name,
            t->name, time_of(s, t)->name);
        plus = " + ";
    }
    for (int i = 0; i < t->n_columns; i++) {
        const RtColumn *c = &t->columns[i];
        bool past = is_past(s, t, c);
        if (past)
            PUT(s, "%s%s(f32(now[g.%s] - g.%s.%s - 1e11))", plus, name_of(s, c), t->name, t->name,
                c->name);
        else if (is_dated(s, t, c))
            PUT(s, "%s%s(g.%s.%s)", plus, name_of(s, c), t->name, c->name);
        if (past || is_dated(s, t, c)) plus = " + ";
        if (!is_feature(s, c)) continue;
        bool thin = c->kind == RT_COL_CSR; /* words of a text: some are left out in each step */
        PUT(s, "%s%s(%sg.%s.%s%s)", plus, name_of(s, c), thin ? "dropout(" : "", t->name, c->name,
            thin ? ", p)" : "");
        plus = " + ";
    }
    if (encoded(s, type) == BY_DEGREE) {
        PUT(s, "%s(", role_name(s, t, SCAFFOLD_DEGREE));
        put_degree(s, type);
        PUT(s, ")");
    }
    if (encoded(s, type) == BY_ITSELF) PUT(s, "%s", role_name(s, t, SCAFFOLD_SELF));
    if (encoded(s, type) == BY_NOTHING) PUT(s, "ones(g.%s, hidden)", t->name);
    PUT(s, "\n");
}

/* Writes the layers and parameters that make the first vectors of a node type. */
static void put_encoder(Scaffold *s, int type) {
    const RtTable *t = &s->d->nodes[type];
    if (is_aged(s, t)) PUT(s, "  %s = age(hidden)\n", role_name(s, t, SCAFFOLD_AGE));
    for (int j = 0; j < t->n_columns; j++) {
        const RtColumn *c = &t->columns[j];
        bool past = is_past(s, t, c);
        if (past || is_dated(s, t, c))
            PUT(s, "  %s = %s(hidden)\n", name_of(s, c), past ? "age" : "calendar");
    }
    for (int j = 0; j < t->n_columns; j++) {
        const RtColumn *c = &t->columns[j];
        if (!is_feature(s, c)) continue;
        if (c->kind == RT_COL_CAT)
            PUT(s, "  %s = %s(K_%s, hidden)\n", name_of(s, c),
                has_unknown(c) ? "embedding_unknown" : "embedding", name_of(s, c));
        else
            PUT(s, "  %s = %s(hidden)\n", name_of(s, c), is_scalar(c) ? "scale" : "linear");
    }
    if (encoded(s, type) == BY_DEGREE)
        PUT(s, "  %s = degrees(hidden)\n", role_name(s, t, SCAFFOLD_DEGREE));
    if (encoded(s, type) == BY_ITSELF)
        PUT(s, "  param %s: f32[%s, hidden] = normal(0, 0.1)   # no column: a vector each\n",
            role_name(s, t, SCAFFOLD_SELF), t->name);
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
    if (!any_of_nodes(s, has_age)) return;
    PUT(s,
        "  # The time that each row is asked at, carried to the rows that it reads.\n  now = [:]\n"
        "  now[g.%s] = g.%s.%s + 1e11\n",
        s->home->name, s->home->name, time_of(s, s->home)->name);
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
    if (has_edges(s->d, type, true))
        PUT(s, " + sum([along[i][r](r, old[r.src], old[r.dst]) for r in g.edges if r.dst == g.%s])",
            t);
    if (both && has_edges(s->d, type, false))
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
        PUT(s, "%s_%s", rt_col_facts[c->kind].size, name_of(s, c));
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
        of, of, time_of(s, s->told_of)->name);
    if (scaled)
        PUT(s, "  had = g.%s.%s\n", of, s->told->name);
    else
        PUT(s, "  had = (g.%s.%s - %.9g) / %.9g\n", of, s->told->name, mean, deviation);
    for (int i = 0; i < d->n_edges; i++) {
        const RtTable *own = &d->edges[i], *e = told_along(s, own);
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
        if (!told_along(s, own)) continue;
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

static bool has_few(const Scaffold *s) {
    return s->of && count_part(s->of, 1) < FEW;
}

/* Numbers are blurred by what is left out, classes are not. */
static const char *dropout_of(const Scaffold *s, bool number) {
    if (s->timed && number) return "0.1";
    return s->graphs || !has_few(s) ? "0.2" : "0.5";
}

/* Writes the model: encoders, layers and, if there are labels, what reads the result out. */
static void put_model(Scaffold *s) {
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

/* ---- the recipe --------------------------------------------------------------------- */
/* What to say about the relation with pairs that are no links, which only evaluation needs; ""
 * if the data have it. */
static const char *negatives_hint(const Scaffold *s, const char *name) {
    if (rt_dataset_edges(s->all, name)) return "";
    bool events = strcmp(name, "no_event") == 0;
    return events ? "; without its lines of `no_event`, which the data lack"
                  : "; without its lines of `no_link`, which the data lack";
}

/* Writes which model of models/ learns such links, and what it calls their types. */
static void put_links_hint(Scaffold *s, const RtTable *t) {
    bool same = t->src_type == t->dst_type;
    const RtColumn *rel = rt_table_column(t, "rel");
    if (time_of(s, t))
        PUT(s,
            "# models/events.gnn learns which event `%s` comes next (vertex, event with `t`%s).\n",
            t->name, negatives_hint(s, "no_event"));
    else if (rel && rel->kind == RT_COL_CAT && same)
        PUT(s, "# models/complex.gnn completes such triples (entity, triple with `rel`).\n");
    else if (!same)
        PUT(s, "# models/lightgcn.gnn recommends by such edges (user, item, link).\n");
    else
        PUT(s, "# models/link.gnn learns such links (vertex, link%s).\n",
            negatives_hint(s, "no_link"));
}

/* Writes, in place of a recipe, why there is none. */
static void put_no_recipe(Scaffold *s) {
    const RtTable *labelled = labelled_table(s->all), *links = split_links(s->all);
    if (labelled)
        PUT(s,
            "\n# `%s` has labels (`%s`) and no split, so nothing is learned: gnnc import --split "
            "80/10/10 makes one.\n",
            labelled->name, rt_table_label(labelled)->name);
    else
        PUT(s,
            "\n# No table has labels (`y`, `label`, or a class: --kind COLUMN=class) and a split: "
            "this gives embeddings only.\n");
    if (links) PUT(s, "# The edges `%s` have a split.\n", links->name);
    if (links) put_links_hint(s, links);
}

/* If a table has several times, says which one is read, in the model and as a warning. */
static void tell_choice(Scaffold *s, const RtTable *t) {
    const char *why = "", *others;
    const RtColumn *time = rt_import_time(t, s->how->by_time, &why);
    if (!time || time != time_of(s, t)) return;
    if (!(others = rt_import_other_times(s->pool, t, time))) {
        s->st = rt_fail_nomem(s->err, "scaffold");
        return;
    }
    if (!*others) return;
    PUT(s, "  # When a row of `%s` happened says %s (%s), not %s.\n", t->name, time->name, why,
        others);
    if (s->how->import)
        rt_import_warn(
            s->how->import,
            "--scaffold: '%s' has several times: the starter reads '%s' (%s), not %.200s", t->name,
            time->name, why, others);
}

/* Writes the fan-outs of the recipe: ten edges in each of two hops. Relations into a type that only
 * references lead to are drawn in the third hop alone, the one row that a row refers to. */
static void put_fanout(Scaffold *s) {
    const RtDataset *d = s->d;
    if (s->layers == LAYERS) {
        PUT(s, "fanout [10, 10]");
        return;
    }
    PUT(s, "fanout [");
    for (int i = 0; i < d->n_edges; i++)
        PUT(s, "%sg.%s: [%s]", i ? ",\n                   " : "", d->edges[i].name,
            s->hops[d->edges[i].dst_type] == LAST_HOP ? "0, 0, 1" : "10, 10, 0");
    PUT(s, "]\n          ");
}

/* Writes the sample block: batches of graphs, or of rows that see older rows and edges only, by
 * the times of all tables. */
static void put_sample(Scaffold *s) {
    const RtDataset *d = s->d;
    const char *comma = "";
    if (s->graphs) PUT(s, "  sample { batch %d }\n", count_part(s->of, 1) < 10000 ? 32 : 128);
    if (!s->timed) return;
    for (int i = 0; i < d->n_nodes; i++) tell_choice(s, &d->nodes[i]);
    for (int i = 0; i < d->n_edges; i++) tell_choice(s, &d->edges[i]);
    PUT(s,
        "  # Each row sees what is older than itself%s, the newest first%s.\n"
        "  sample { ",
        s->how->of_future ? ", or of its time" : "", s->how->task ? ", and what it refers to" : "");
    put_fanout(s);
    PUT(s, "  batch %d  pick recent%s%s  time ", has_few(s) ? 64 : 256,
        s->how->of_future ? "  inclusive true" : "", s->how->task ? "  own true" : "");
    for (int k = 0; k < d->n_nodes + d->n_edges; k++) {
        const RtTable *t = k < d->n_nodes ? &d->nodes[k] : &d->edges[k - d->n_nodes];
        const RtColumn *time = time_of(s, t);
        if (!time) continue;
        PUT(s, "%sg.%s.%s", comma, t->name, time->name);
        comma = ", ";
    }
    PUT(s, " }\n");
}

/* A thousand steps or more; of many rows an epoch has as many. */
static int epochs_of(const Scaffold *s) {
    if (!s->timed) return s->graphs ? 50 : 100;
    return has_few(s) ? 30 : count_part(s->of, 1) < MANY ? 20 : 5;
}

/* Writes the recipe that learns the labels: loss and metric by their kind, batches by the data's
 * size. */
static void put_recipe(Scaffold *s) {
    const RtColumn *c = s->label;
    if (!c) {
        put_no_recipe(s);
        return;
    }
    bool class = c->kind == RT_COL_CLASS, bits = c->kind == RT_COL_MULTILABEL;
    const char *loss = class ? "cross_entropy" : bits ? "bce_with_logits" : "l1";
    const char *metric = bits                   ? "roc_auc"
                         : !class               ? "mae"
                         : c->n_categories == 2 ? "roc_auc"
                                                : "accuracy";
    PUT(s, "\ntrain Starter {\n  target %s.%s    loss %s    metric %s%s\n",
        s->graphs ? "graph" : s->of->name, c->name, loss, metric,
        class && c->n_categories == 2 ? ", accuracy" : "");
    PUT(s, "  optimizer adam(lr = %s, weight_decay = 5e-4)%s\n",
        s->graphs  ? "5e-3"
        : s->timed ? "3e-3"
                   : "1e-2",
        s->graphs ? "    schedule cosine" : "");
    put_sample(s);
    PUT(s, "  epochs %d", epochs_of(s));
    if (count_part(s->of, 2))
        PUT(s, "    keep best on val %s\n}\n", metric);
    else
        PUT(s, "    keep last    # the split has no validation rows\n}\n");
}

/* Writes the layers that are not in the library and that this model needs. */
static void put_parts(Scaffold *s) {
    if (any_feature(s, is_scalar))
        PUT(s, "# A number per node, spread over `out` dimensions.\n"
               "layer scale(out: int)(x: f32[N]) -> f32[N, out] {\n"
               "  param w: f32[out] = normal(0, 1)\n"
               "  return expand(x, out) * w\n"
               "}\n\n");
    if (any_encoded(s, BY_DEGREE))
        PUT(s, "# How many edges a node has, where it has nothing else: a row of a table each.\n"
               "layer degrees(out: int; most: int = 64)(d: f32[N]) -> f32[N, out] {\n"
               "  table = linear(out)\n"
               "  return table(one_hot(i32(min(d, most - 1)), most))\n"
               "}\n\n");
}

/* Writes the whole starter model. */
static void put_all(Scaffold *s) {
    const RtDataset *d = s->d;
    PUT(s, "# A starter for %s, as `gnnc import --scaffold` writes it: change it freely.\n",
        s->how->dir);
    if (d->n_edges) PUT(s, "import \"layers/sage.gnn\"\n");
    if (s->graphs && d->n_edges) PUT(s, "import \"layers/batch_norm.gnn\"\n");
    if (any_feature(s, has_unknown)) PUT(s, "import \"layers/categories.gnn\"\n");
    if (any_of_nodes(s, has_time)) PUT(s, "import \"layers/time.gnn\"\n");
    if (s->told) PUT(s, "import \"layers/history.gnn\"\n");
    PUT(s, "\n");
    put_graph(s);
    put_parts(s);
    put_model(s);
    put_recipe(s);
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
        find_task(&s, &seen);
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
