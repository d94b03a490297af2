/* Along which relations a sampled step draws neighbours: those of the data and, each by itself,
 * those that lead where the data's do not, `reverse(r)` and `undirected(r)`.  What the model does
 * not read in training is not drawn along where something else of the same edges is. */
#include "frontend/elab/elab.h"

static bool leads_back(const Space *s) {
    return s->rel == REL_REVERSE || s->rel == REL_UNDIRECTED;
}

/* The entry of a relation among those that neighbours are drawn along, added for one that leads
 * back along an edge (reverse, undirected). NULL: it is not drawn along. */
SampleRel *elab_sample_rel(Elab *e, Sampling *s, Space *rel) {
    for (int i = 0; i < s->rels.n; i++)
        if (s->rels.v[i].rel == rel) return &s->rels.v[i];
    if (!leads_back(rel) || space_of_batch(rel)) return NULL;
    SampleRel own = {.rel = rel};
    vec_push(e->a, &s->rels, own);
    return &s->rels.v[s->rels.n - 1];
}

/* ---- which are read --------------------------------------------------------------------- */
/* Marks the space s as read, and those that it is derived from. A relation that is drawn along
 * by itself does not need its base. */
static void mark_read(const Module *m, const Space *s, bool *read) {
    if (!s || read[s->id]) return;
    read[s->id] = true;
    mark_read(m, s->prefix_of, read);
    if (s->kind != SP_EDGE || space_is_sampled(m, s)) return;
    for (int k = 0; k < 2; k++) mark_read(m, s->base[k], read);
}

/* Marks the spaces that operations of f read. What nothing uses is not read: columns of the data
 * from which those along a derived relation were made. */
static void mark_read_by(Elab *e, Func *f, bool *read) {
    int *uses = func_use_counts(e->a, f);
    for (const Op *op = f->last; op; op = op->prev) {
        if (!uses[op->id] && !op_acts(op)) {
            for (int i = 0; i < op->n_in; i++) uses[op->in[i]->id]--;
            continue;
        }
        if (op->kind == OP_LOOP) mark_read_by(e, op->body, read);
        if (op->map) mark_read(e->m, op->map->from, read);
        for (int d = 0; d < op->type.rank; d++) mark_read(e->m, op->type.dim[d], read);
    }
}

/* For each space, whether @train reads it, or one that is derived from it in each batch. */
static const bool *find_read(Elab *e) {
    Func *f = func_of(e->m, PHASE_TRAIN);
    bool *read = NEWN(e->a, bool, (size_t)e->m->spaces.n + 1);
    if (f) mark_read_by(e, f, read);
    return read;
}

/* ---- what they have ---------------------------------------------------------------------- */
static const Space *base_of(const Space *s) {
    while (s->rel != REL_BASE) s = s->base[0];
    return s;
}

static bool is_of_one_table(const Space *s) {
    if (s->rel == REL_UNION || s->rel == REL_SELF_LOOPS) return false;
    return s->rel == REL_BASE || is_of_one_table(s->base[0]);
}

/* The name of a relation as the model writes it, such as reverse(g.buys). */
static const char *written(Elab *e, const Space *s) {
    const char *own = strmap_get(&e->relation_names, s->name);
    if (own || !leads_back(s)) return own ? own : s->name;
    return arena_printf(e->a, "%s(%s)", s->rel == REL_REVERSE ? "reverse" : "undirected",
                        written(e, s->base[0]));
}

/* The weights or times c of a base relation as a column of `rel`, which is derived from it:
 * rel's own, or one that is made where all edges of rel are rows of one table. NULL after a
 * diagnostic. */
static Column *column_along(Elab *e, const Column *c, Space *rel) {
    Column *own = elab_graph_column(e, rel, c->name);
    if (own) return own;
    if (is_of_one_table(rel))
        return column_new(e->m, c->kind, rel, c->name, 0, NULL, NULL, c->span);
    diag_add(
        e->c, DIAG_E0305, e->m->recipe.sample.span,
        "'%s' has edges without a '%s' of their own: drawing along it by weights or times is not "
        "there yet",
        written(e, rel), c->name);
    return NULL;
}

/* Gives a derived relation that is drawn along the weights and times of its base. */
static void give_columns(Elab *e, Sampling *s, Space *rel) {
    const Space *base = base_of(rel);
    for (int i = 0, n = s->weights.n; i < n; i++) {
        if (s->weights.v[i]->space != base) continue;
        Column *c = column_along(e, s->weights.v[i], rel);
        if (c) vec_push(e->a, &s->weights, c);
    }
    for (int i = 0, n = s->times.n; i < n; i++) {
        if (s->times.v[i]->space != base) continue;
        Column *c = column_along(e, s->times.v[i], rel);
        if (c) vec_push(e->a, &s->times, c);
    }
}

/* ---- all of them --------------------------------------------------------------------------- */
/* Gives a derived relation that is drawn along its own fan-outs, or those of the relation of the
 * data that it comes from. */
static void draw_along(Elab *e, Sampling *s, Space *rel) {
    SampleRel *own = elab_sample_rel(e, s, rel);
    int64_t *told = own->fanout;
    for (int i = 0; i < s->rels.n && !told; i++)
        if (s->rels.v[i].rel == base_of(rel)) told = s->rels.v[i].fanout;
    own->fanout = told;
}

/* Whether a relation that is derived from `rel` is drawn along and read. */
static bool has_other(const Module *m, const Space *rel, const bool *read) {
    for (int i = 0; i < m->spaces.n; i++) {
        const Space *s = m->spaces.v[i];
        if (s != rel && read[i] && space_is_sampled(m, s) && base_of(s) == rel) return true;
    }
    return false;
}

/* Reports weights of a derived relation, as of reverse(r), along which the model reads nothing
 * in training. */
static void check_weights(Elab *e, const Sampling *s, const bool *read) {
    for (int i = 0; i < s->weights.n; i++) {
        const Space *rel = s->weights.v[i]->space;
        if (rel->rel == REL_BASE || read[rel->id]) continue;
        diag_add(e->c, DIAG_E0306, s->span,
                 "the weights '%s.%s' have no say: the model reads nothing along '%s' in training",
                 written(e, rel), s->weights.v[i]->name, written(e, rel));
    }
}

/* Finds the relations that neighbours are drawn along: those that the model reads, and those of
 * the data that none is read in place of. Others get a fan-out of 0 in each hop. */
void elab_sampled_relations(Elab *e) {
    Sampling *s = &e->m->recipe.sample;
    const bool *read = find_read(e);
    check_weights(e, s, read);
    for (int i = 0; i < e->m->spaces.n; i++) {
        Space *rel = e->m->spaces.v[i];
        if (rel->rel == REL_BASE || !space_is_sampled(e->m, rel)) continue;
        draw_along(e, s, rel);
        if (read[rel->id]) give_columns(e, s, rel);
    }
    int64_t *none = NEWN(e->a, int64_t, (size_t)s->n_hops);
    for (int i = 0; i < s->rels.n; i++) {
        const Space *rel = s->rels.v[i].rel;
        bool wanted = read[rel->id] || (rel->rel == REL_BASE && !has_other(e->m, rel, read));
        if (!wanted) s->rels.v[i].fanout = none;
    }
}
