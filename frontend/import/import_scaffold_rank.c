/* Starter models for tasks that rank.  Each pair of a row of the task and an item is a link by
 * time, seen with the rows by which the one who asks had to do with items, marked as his (ID-GNN:
 * You et al. 2021), and with the last of each item; so that both the own past and popularity are
 * read. */
#include "import_scaffold_rank.h"

#include <string.h>

#include "import_scaffold_names.h"
#include "runtime/data/encoder.h"
#include "runtime/import/import_task.h"
#include "runtime/import/import_time.h"

enum {
    ITS_ROWS = 60,     /* of who asks, by the last reference of the way to him */
    ROWS_OF_EACH = 20, /* .. of each of them, by those before */
    OF_AN_ITEM = 30,
    NEGATIVES = 20,
    ROWS_OF_A_NAME = 4,
    FEW = 5000, /* links to learn from */
    MANY = 50000,
};

typedef struct {
    RtText *text;
    const RtDataset *d;
    ScaffoldNames names;
    const ScaffoldHow *how;
    const RtTaskRanks *ranks;
    RtError *err;
    gnnc_status st;
    const RtTable *task, *items, *links, *ask; /* ask: edges from the task to who asks */
    const RtTable *way[RT_QUERY_STEPS], *key[RT_QUERY_KEYS];
    const RtTable *last;               /* edges from `near` to the items */
    const RtTable *who, *near, *first; /* first: whose rows refer to `who` */
    bool *seen;                        /* [n_nodes] */
} Ranked;

#define PUT(s, ...)                                                                                \
    do {                                                                                           \
        if ((s)->st == GNNC_OK && !rt_text_printf((s)->text, __VA_ARGS__))                         \
            (s)->st = rt_fail_nomem((s)->err, "scaffold");                                         \
    } while (0)

/* ---- what there is ------------------------------------------------------------------------ */
static const RtTable *at_end(const Ranked *s, const RtTable *edge, bool dst) {
    return &s->d->nodes[dst ? edge->dst_type : edge->src_type];
}

static void look_at(Ranked *s, const RtTable *edge) {
    s->seen[edge->src_type] = s->seen[edge->dst_type] = true;
}

/* Finds the tables of a ranking task: what is ranked, for whom, and the relations from one to
 * the other. */
static gnnc_status find_all(Ranked *s, RtPool *pool) {
    const RtTaskRanks *r = s->ranks;
    if (!r->event)
        return rt_fail(s->err, GNNC_E_MISSING,
                       "--scaffold: no table with times refers both to who is asked about and to "
                       "'%s': a starter reads no other",
                       r->items);
    s->seen = RT_NEWN(pool, bool, s->d->n_nodes + 1);
    if (!s->seen) return rt_fail_nomem(s->err, "scaffold");
    s->task = rt_dataset_nodes(s->d, s->how->task);
    s->items = rt_dataset_nodes(s->d, r->items);
    s->links = rt_dataset_edges(s->d, r->links);
    for (int i = 0; i < r->n_way; i++) look_at(s, s->way[i] = rt_dataset_edges(s->d, r->way[i]));
    for (int i = 0; i < r->n_keys; i++) look_at(s, s->key[i] = rt_dataset_edges(s->d, r->key[i]));
    s->last = s->key[r->n_keys - 1];
    s->near = at_end(s, s->last, false);
    s->who = at_end(s, s->way[r->n_way - 1], true);
    s->first = at_end(s, s->way[r->n_way - 1], false);
    for (int i = 0; i < s->d->n_edges; i++) {
        const RtTable *e = &s->d->edges[i];
        if (at_end(s, e, false) == s->task && e != s->links) s->ask = e;
    }
    look_at(s, s->ask);
    return GNNC_OK;
}

static const char *time_of(const Ranked *s, const RtTable *t) {
    const RtColumn *c = rt_import_row_time(t, s->how->by_time);
    return c ? c->name : NULL;
}

static bool has_unknown(const RtColumn *c) {
    return c->encoder && c->encoder->unknown;
}

/* What tells who asks, or an item, beside its past.  Names that few rows share tell which row it
 * is: of those that come later, or come back, nothing is learned by them. */
static bool is_feature(const RtColumn *c) {
    if (rt_column_is_label(c) || c->rank != 1) return false;
    bool shared = c->n_categories > 1 && c->n_categories <= c->n_rows / ROWS_OF_A_NAME;
    return c->kind == RT_COL_FLOAT || (c->kind == RT_COL_CAT && shared);
}

/* Whether the model reads a column of a table: its time, or a feature of the items or of those
 * they are ranked for. */
static bool is_read(const Ranked *s, const RtTable *t, const RtColumn *c) {
    const char *time = time_of(s, t);
    if (time && strcmp(time, c->name) == 0) return true;
    return (t == s->who || t == s->items) && is_feature(c);
}

/* How many links there are to learn from. */
static int64_t n_trained(const Ranked *s) {
    const RtColumn *c = rt_table_column(s->links, "split");
    int64_t n = 0;
    for (int64_t i = 0; i < s->links->count; i++) n += c->splits[i] == 1;
    return n;
}

/* ---- the graph ------------------------------------------------------------------------------ */
/* Writes the declaration of a node type with the columns that the model reads. */
static void put_node(Ranked *s, const RtTable *t) {
    const char *between = " { ";
    PUT(s, "  node %s", t->name);
    for (int i = 0; i < t->n_columns; i++) {
        const RtColumn *c = &t->columns[i];
        if (!is_read(s, t, c)) continue;
        PUT(s, "%s%s: ", between, c->name);
        if (c->kind == RT_COL_CAT)
            PUT(s, "cat[K_%s]", scaffold_column_name(&s->names, c));
        else
            PUT(s, c->kind == RT_COL_TIME ? "time" : "f32");
        between = ";  ";
    }
    PUT(s, "%s\n", *between == ';' ? " }" : "");
}

/* Whether the edge type e is on the path from the asked entity to the items. */
static bool is_on_item_path(const Ranked *s, const RtTable *e) {
    bool found = e == s->ask || e == s->links;
    for (int i = 0; i < s->ranks->n_way; i++) found |= e == s->way[i];
    for (int i = 0; i < s->ranks->n_keys; i++) found |= e == s->key[i];
    return found;
}

/* Writes the declaration of the graph: what the way to the items needs. */
static void put_graph(Ranked *s) {
    const RtDataset *d = s->d;
    PUT(s, "graph Data {\n");
    for (int i = 0; i < d->n_nodes; i++)
        if (s->seen[i]) put_node(s, &d->nodes[i]);
    for (int i = 0; i < d->n_edges; i++) {
        const RtTable *e = &d->edges[i];
        if (!is_on_item_path(s, e)) continue;
        PUT(s, "  edge %s: %s -> %s%s\n", e->name, at_end(s, e, false)->name,
            at_end(s, e, true)->name, e == s->links ? " { time: time;  split }" : "");
    }
    PUT(s, "}\n\n");
}

/* ---- the model ------------------------------------------------------------------------------ */
static const char *features_of(const Ranked *s, const RtTable *t) {
    return t == s->items ? "item" : "who";
}

/* Writes the layers that encode the features of a table. */
static void put_encoders(Ranked *s, const RtTable *t) {
    for (int i = 0; i < t->n_columns; i++) {
        const RtColumn *c = &t->columns[i];
        if (!is_feature(c)) continue;
        PUT(s, "  %s_%s = ", features_of(s, t), c->name);
        if (c->kind == RT_COL_CAT)
            PUT(s, "%s(K_%s, hidden)\n", has_unknown(c) ? "embedding_unknown" : "embedding",
                scaffold_column_name(&s->names, c));
        else
            PUT(s, "linear(hidden)\n");
    }
}

/* Writes the encoded features of a table as terms of a sum: " +
 * item_price(expand(g.products.price, 1))". */
static void put_features(Ranked *s, const RtTable *t) {
    for (int i = 0; i < t->n_columns; i++) {
        const RtColumn *c = &t->columns[i];
        if (!is_feature(c)) continue;
        PUT(s, " + %s_%s(%sg.%s.%s%s)", features_of(s, t), c->name,
            c->kind == RT_COL_CAT ? "" : "expand(", t->name, c->name,
            c->kind == RT_COL_CAT ? "" : ", 1)");
    }
}

/* Writes `name` = the days from the time of each edge's source to the moment that its
 * destination is asked at; 0 if the source has no time. */
static void put_days(Ranked *s, const char *name, const char *now, const RtTable *edge,
                     const char *of) {
    const RtTable *src = at_end(s, edge, false);
    if (time_of(s, src))
        PUT(s, "  %s = f32(%s[%s.dst] - g.%s.%s[%s.src]) / 86400\n", name, now, of, src->name,
            time_of(s, src), of);
    else
        PUT(s, "  %s = zeros(%s)\n", name, of);
}

/* Writes the lines of the model that compute `his`: for each row of the table that names the items,
 * whether it belongs to the entity that the query is about, step by step along the edges from it
 * (`way`). A table with two keys is one step more, back along the first. */
static void put_query_mask(Ranked *s) {
    const RtTaskRanks *r = s->ranks;
    PUT(s,
        "  # Whose rows they are is told, step by step, to what leads from the one who asks to the "
        "items.\n"
        "  back = reverse(g.%s)\n"
        "  asks = min(sum(ones(p), over = p.src), 1)\n"
        "  his = sum(asks[back.dst], over = back.src)\n",
        s->ask->name);
    for (int i = r->n_way - 1; i >= 0; i--)
        PUT(s, "  his = sum(his[g.%s.dst], over = g.%s.src)\n", s->way[i]->name, s->way[i]->name);
    if (r->n_keys == 2)
        PUT(s, "  to = reverse(g.%s)\n  his = sum(his[to.dst], over = to.src)\n", s->key[0]->name);
}

/* Writes the model that ranks: features of users and of items, the history between them, and a
 * score for each pair. */
static void put_model(Ranked *s) {
    double days = s->how->window / 86400;
    PUT(s,
        "model Starter(g: Data; hidden: int = 32, p_drop: float = 0.1) -> f32[links] {\n"
        "  p = links(g.%s)\n",
        s->links->name);
    put_query_mask(s);
    PUT(s,
        "  # What an item had to do with him, and with anybody: how often, and how lately.\n"
        "  e = g.%s\n  now = max(p.time, over = p.dst)\n",
        s->last->name);
    put_days(s, "days", "now", s->last, "e");
    PUT(s,
        "  own = history(e, his[e.src], days, window = %.6g)\n"
        "  all = history(e, ones(e), days, window = %.6g)\n",
        days, days);
    PUT(s,
        "  # What he did.\n  r = g.%s\n"
        "  his_now = sum(max(p.time, over = p.src)[back.dst], over = back.src)\n",
        s->way[s->ranks->n_way - 1]->name);
    put_days(s, "since", "his_now", s->way[s->ranks->n_way - 1], "r");
    PUT(s, "  did = history(r, ones(r), since, window = %.6g)\n", days);
    put_encoders(s, s->items);
    if (s->who != s->items) put_encoders(s, s->who);
    PUT(s, "  from_own = linear(hidden)\n  from_all = linear(hidden)\n  from_him = linear(hidden)\n"
           "  item = from_own(own) + from_all(all)");
    put_features(s, s->items);
    PUT(s, "\n  who = from_him(did)");
    if (s->who != s->items) put_features(s, s->who);
    PUT(s, "\n  him = sum(who[back.src], over = back.dst)\n"
           "  second = linear(hidden)\n  out = linear(1)\n"
           "  x = relu(second(dropout(relu(item[p.dst] + him[p.src]), p_drop)))\n"
           "  return sum(out(dropout(x, p_drop)), 1)\n}\n");
}

/* ---- the recipe ------------------------------------------------------------------------------ */
/* Neighbours along an edge type, or its reverse, at each hop. */
typedef struct {
    const RtTable *edge;
    bool reversed;
    int n[RT_QUERY_STEPS + RT_QUERY_KEYS];
} Fan;

typedef struct {
    Fan v[2 * (RT_QUERY_STEPS + RT_QUERY_KEYS + 2)]; /* both ways of each */
    int n;
} Fans;

/* Adds n to the fan-out of an edge type. One type may lead both to the user and to the item: then
 * their fan-outs add up. */
static void add_fanout(Fans *f, const RtTable *edge, bool reversed, int hop, int n) {
    int i = 0;
    while (i < f->n && (f->v[i].edge != edge || f->v[i].reversed != reversed)) i++;
    if (i == f->n) f->v[f->n++] = (Fan){.edge = edge, .reversed = reversed};
    f->v[i].n[hop] += n;
}

/* The fan-outs of the starter's recipe: along the path from the entity's rows to the items, one
 * hop for each edge type. */
static Fans find_fanouts(const Ranked *s) {
    const RtTaskRanks *r = s->ranks;
    Fans f = {.n = 0};
    add_fanout(&f, s->ask, true, 0, 1);
    add_fanout(&f, s->ask, false, 0, 0);
    for (int i = r->n_way - 1; i >= 0; i--)
        add_fanout(&f, s->way[i], false, r->n_way - i, i == r->n_way - 1 ? ITS_ROWS : ROWS_OF_EACH);
    if (r->n_keys == 2) {
        add_fanout(&f, s->key[0], true, r->n_way + 1, 1);
        add_fanout(&f, s->key[0], false, 0, 0);
    }
    add_fanout(&f, s->last, false, 0, OF_AN_ITEM);
    add_fanout(&f, s->links, false, 0, 0);
    return f;
}

/* Writes the fan-outs of the recipe, for each relation and hop. */
static void put_fanout(Ranked *s) {
    const Fans f = find_fanouts(s);
    int hops = s->ranks->n_way + s->ranks->n_keys;
    for (int i = 0; i < f.n; i++) {
        const Fan *x = &f.v[i];
        PUT(s, i ? ",\n                   " : "  sample { fanout [");
        PUT(s, "%sg.%s%s: [", x->reversed ? "reverse(" : "", x->edge->name, x->reversed ? ")" : "");
        for (int k = 0; k < hops; k++) PUT(s, "%s%d", k ? ", " : "", x->n[k]);
        PUT(s, "]");
    }
    PUT(s, "]\n");
}

/* Writes the recipe: loss, metrics, batches, and times by which rows see older ones only. */
static void put_recipe(Ranked *s) {
    int64_t n = n_trained(s);
    int top = s->ranks->top;
    int64_t most = s->items->count - 1;
    PUT(s,
        "\ntrain Starter {\n"
        "  target links    loss sampled_softmax    metric map(k = %d), precision(k = %d), recall(k "
        "= %d)\n"
        "  optimizer adam(lr = 3e-3, weight_decay = 1e-5)    schedule cosine\n"
        "  # Each row sees what is older than itself, or of its time, the newest first.\n",
        top, top, top);
    put_fanout(s);
    PUT(s,
        "           batch 128  negatives %d  avoid true  edges induced  pick recent  inclusive "
        "true\n           time g.%s.time",
        most < NEGATIVES ? (int)most : NEGATIVES, s->links->name);
    for (int i = 0; i < s->d->n_nodes; i++)
        if (s->seen[i] && time_of(s, &s->d->nodes[i]))
            PUT(s, ", g.%s.%s", s->d->nodes[i].name, time_of(s, &s->d->nodes[i]));
    PUT(s, " }\n  epochs %d    keep best on val map\n}\n", n < FEW ? 12 : n < MANY ? 5 : 2);
}

/* Writes a starter model that ranks items to `text`. */
gnnc_status scaffold_rank(RtPool *pool, const RtDataset *d, const ScaffoldHow *how, RtText *text,
                          RtError *err) {
    Ranked s = {.text = text, .d = d, .how = how, .ranks = how->ranks, .err = err, .st = GNNC_OK};
    gnnc_status st = find_all(&s, pool);
    if (st == GNNC_OK) st = scaffold_names(pool, d, &s.names, err);
    if (st != GNNC_OK) return st;
    PUT(&s,
        "# A starter for %s, as `gnnc import --scaffold` writes it: change it freely.\n"
        "# Which `%s` each of `%s` will have to do with, the likeliest first.\n"
        "import \"layers/links.gnn\"\nimport \"layers/history.gnn\"\n"
        "import \"layers/categories.gnn\"\n\n",
        how->dir, s.items->name, s.who->name);
    put_graph(&s);
    put_model(&s);
    put_recipe(&s);
    return s.st;
}
