/* The recipe of a starter, or why there is none. */
#include <string.h>

#include "import_scaffold_impl.h"
#include "runtime/import/import_split.h"
#include "runtime/import/import_time.h"

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
    if (scaffold_time_of(s, t))
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
    const RtTable *labelled = scaffold_labelled_table(s->all),
                  *links = scaffold_split_links(s->all);
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
    if (!time || time != scaffold_time_of(s, t)) return;
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
    if (s->graphs)
        PUT(s, "  sample { batch %d }\n", scaffold_count_part(s->of, 1) < 10000 ? 32 : 128);
    if (!s->timed) return;
    for (int i = 0; i < d->n_nodes; i++) tell_choice(s, &d->nodes[i]);
    for (int i = 0; i < d->n_edges; i++) tell_choice(s, &d->edges[i]);
    PUT(s,
        "  # Each row sees what is older than itself%s, the newest first%s.\n"
        "  sample { ",
        s->how->of_future ? ", or of its time" : "", s->how->task ? ", and what it refers to" : "");
    put_fanout(s);
    PUT(s, "  batch %d  pick recent%s%s  time ", scaffold_has_few(s) ? 64 : 256,
        s->how->of_future ? "  inclusive true" : "", s->how->task ? "  own true" : "");
    for (int k = 0; k < d->n_nodes + d->n_edges; k++) {
        const RtTable *t = k < d->n_nodes ? &d->nodes[k] : &d->edges[k - d->n_nodes];
        const RtColumn *time = scaffold_time_of(s, t);
        if (!time) continue;
        PUT(s, "%sg.%s.%s", comma, t->name, time->name);
        comma = ", ";
    }
    PUT(s, " }\n");
}

/* A thousand steps or more; of many rows an epoch has as many. */
static int epochs_of(const Scaffold *s) {
    if (!s->timed) return s->graphs ? 50 : 100;
    return scaffold_has_few(s) ? 30 : scaffold_count_part(s->of, 1) < MANY ? 20 : 5;
}

void scaffold_put_recipe(Scaffold *s) {
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
    if (scaffold_count_part(s->of, 2))
        PUT(s, "    keep best on val %s\n}\n", metric);
    else
        PUT(s, "    keep last    # the split has no validation rows\n}\n");
}
