/* What there is to learn from: the table with labels, and what a model can read of each table. */
#include <string.h>

#include "import_scaffold_impl.h"
#include "import_scaffold_view.h"
#include "runtime/data/encoder.h"
#include "runtime/import/import_split.h"
#include "runtime/import/import_time.h"

/* Finds the first of n tables that has labels and a split (that of the task, if there is one),
 * unless a table was found before. */
static void find_label(Scaffold *s, const RtTable *t, int n) {
    for (int i = 0; i < n && !s->label; i++) {
        if (s->how->task && strcmp(t[i].name, s->how->task) != 0) continue;
        if (rt_table_column(&t[i], "split") && (s->label = rt_table_label(&t[i]))) s->of = &t[i];
    }
}

const RtColumn *scaffold_time_of(const Scaffold *s, const RtTable *t) {
    return rt_import_row_time(t, s->how->by_time);
}

bool scaffold_has_times(const RtTable *t) {
    for (int i = 0; i < t->n_columns; i++)
        if (t->columns[i].kind == RT_COL_TIME) return true;
    return false;
}

const RtTable *scaffold_split_links(const RtDataset *d) {
    for (int i = 0; i < d->n_edges; i++)
        if (rt_table_column(&d->edges[i], "split")) return &d->edges[i];
    return NULL;
}

const RtTable *scaffold_labelled_table(const RtDataset *d) {
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
    const RtTable *t = s->of ? s->of : scaffold_labelled_table(d), *links = scaffold_split_links(d);
    for (int i = 0; i < d->n_nodes; i++)
        if (t == &d->nodes[i]) return i;
    return links ? links->src_type : scaffold_hub(d);
}

bool scaffold_is_scalar(const RtColumn *c) {
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
        if (strcmp(t->name, s->how->told_table) != 0 || !scaffold_time_of(s, t)) continue;
        const RtColumn *c = rt_table_column(t, s->how->told);
        if (c && scaffold_is_scalar(c)) s->told_of = t, s->told = c;
    }
}

const RtTable *scaffold_told_along(const Scaffold *s, const RtTable *own) {
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

void scaffold_find_task(Scaffold *s, RtDataset *seen) {
    const RtDataset *d = s->all;
    find_label(s, d->graphs, d->n_graphs);
    find_label(s, d->nodes, d->n_nodes);
    s->graphs = s->of && s->of == d->graphs;
    int home = find_target_table(s);
    s->home = d->n_nodes ? &d->nodes[home] : NULL;
    bool timed = s->of && !s->graphs && scaffold_time_of(s, s->of);
    s->st = scaffold_reach(s->pool, d, home, LAYERS, timed ? LAST_HOP : 0, seen, &s->left, s->err);
    s->d = seen;
    s->timed = timed && seen->n_edges;
    if (s->st == GNNC_OK) find_distances(s);
    if (s->st == GNNC_OK && s->how->told && s->timed) find_told(s);
}

bool scaffold_is_feature(const Scaffold *s, const RtColumn *c) {
    if (c == s->label || rt_column_is_label(c)) return false;
    return c->kind == RT_COL_CSR || (c->kind == RT_COL_FLOAT && c->rank <= 2) ||
           (c->kind == RT_COL_CAT && c->rank == 1 && c->n_categories > 1);
}

bool scaffold_is_aged(const Scaffold *s, const RtTable *t) {
    return s->timed && strcmp(t->name, s->home->name) != 0 && scaffold_time_of(s, t);
}

bool scaffold_is_past(const Scaffold *s, const RtTable *t, const RtColumn *c) {
    return s->timed && c->kind == RT_COL_TIME && c != scaffold_time_of(s, t);
}

bool scaffold_is_dated(const Scaffold *s, const RtTable *t, const RtColumn *c) {
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

bool scaffold_any_of_nodes(const Scaffold *s, bool is(const Scaffold *, const RtTable *)) {
    for (int i = 0; i < s->d->n_nodes; i++)
        if (is(s, &s->d->nodes[i])) return true;
    return false;
}

bool scaffold_has_age(const Scaffold *s, const RtTable *t) {
    return scaffold_is_aged(s, t) || any_column(s, t, scaffold_is_past);
}

bool scaffold_has_time(const Scaffold *s, const RtTable *t) {
    return scaffold_has_age(s, t) || any_column(s, t, scaffold_is_dated);
}

/* Whether a table has a column that the model reads as a feature. */
static bool has_features(const Scaffold *s, const RtTable *t) {
    for (int i = 0; i < t->n_columns; i++)
        if (scaffold_is_feature(s, &t->columns[i])) return true;
    return false;
}

bool scaffold_has_edges(const RtDataset *d, int type, bool in) {
    for (int i = 0; i < d->n_edges; i++)
        if ((in ? d->edges[i].dst_type : d->edges[i].src_type) == type) return true;
    return false;
}

Encoded scaffold_encoded(const Scaffold *s, int type) {
    const RtTable *t = &s->d->nodes[type];
    if (has_features(s, t) || scaffold_has_time(s, t)) return BY_COLUMNS;
    if (!scaffold_has_edges(s->d, type, true) && s->d->n_nodes > 1) return BY_NOTHING;
    if (s->graphs || s->timed) return s->d->n_edges ? BY_DEGREE : BY_NOTHING;
    return BY_ITSELF;
}

bool scaffold_any_encoded(const Scaffold *s, Encoded how) {
    for (int i = 0; i < s->d->n_nodes; i++)
        if (scaffold_encoded(s, i) == how) return true;
    return false;
}

bool scaffold_has_unknown(const RtColumn *c) {
    return c->kind == RT_COL_CAT && c->encoder && c->encoder->unknown;
}

bool scaffold_any_feature(const Scaffold *s, bool is(const RtColumn *c)) {
    for (int i = 0; i < s->d->n_nodes; i++)
        for (int j = 0; j < s->d->nodes[i].n_columns; j++) {
            const RtColumn *c = &s->d->nodes[i].columns[j];
            if (scaffold_is_feature(s, c) && is(c)) return true;
        }
    return false;
}

int64_t scaffold_count_part(const RtTable *t, int k) {
    const RtColumn *c = rt_table_column(t, "split");
    int64_t n = 0;
    for (int64_t i = 0; c && c->kind == RT_COL_SPLIT && i < t->count; i++) n += c->splits[i] == k;
    return n;
}

bool scaffold_has_few(const Scaffold *s) {
    return s->of && scaffold_count_part(s->of, 1) < FEW;
}
