/* The recipe's `sample` block: how the part of the graph that a step sees is drawn. */
#include "frontend/elab/elab.h"
#include "frontend/syntax/parse.h"
#include "ir/text.h"

#include <stddef.h>
#include <string.h>

static void bad(Elab *e, const Ast *at, const char *text) {
    diag_add(e->c, DIAG_E0306, at->span, "%s", text);
}

/* ---- values -------------------------------------------------------------------------- */
/* The one value of a setting. NULL after a diagnostic: it has none or several. */
static const Ast *only(Elab *e, const Ast *s) {
    if (s->n == 1) return s->kid[0];
    diag_add(e->c, DIAG_E0306, s->span, "'%s' takes one value", s->text);
    return NULL;
}

/* Sets *to to the value of a setting, a whole number of at least `least`. On a mistake *to
 * stays. */
static void set_count(Elab *e, const Ast *s, int64_t *to, int64_t least) {
    const Ast *t = only(e, s);
    Value v = t ? elab_eval(e, t) : val_poison();
    int64_t n;
    if (elab_is_poison(v)) return;
    bool whole = v.kind == VAL_INT && elab_int_known(e, v, &n);
    if (whole && n >= least && n <= INT32_MAX)
        *to = n;
    else if (whole && n > INT32_MAX)
        diag_add(e->c, DIAG_E0306, t->span, "'%s' is a whole number of at most %d, not %lld",
                 s->text, INT32_MAX, (long long)n);
    else
        diag_add(e->c, DIAG_E0306, t->span, "'%s' is a whole number of at least %lld, not %s",
                 s->text, (long long)least, elab_source_text(e, t->span));
}

/* Sets *to to the value of a setting, true or false. On a mistake *to stays. */
static void set_flag(Elab *e, const Ast *s, bool *to) {
    const Ast *t = only(e, s);
    Value v = t ? elab_eval(e, t) : val_poison();
    if (elab_is_poison(v)) return;
    if (v.kind == VAL_BOOL)
        *to = v.num != 0;
    else
        diag_add(e->c, DIAG_E0306, t->span, "'%s' is true or false", s->text);
}

/* Sets *to to the number of the setting's value among `words`. On a mistake *to stays. */
static void set_word(Elab *e, const Ast *s, const Words *words, int *to) {
    const Ast *t = only(e, s);
    if (!t) return;
    int i = t->kind == AST_NAME ? text_find(words, t->text, strlen(t->text)) : -1;
    if (i >= 0)
        *to = i;
    else
        diag_add(e->c, DIAG_E0306, t->span, "'%s' is one of %s", s->text,
                 text_list(e->a, words, 0));
}

/* ---- fan-outs --------------------------------------------------------------------------- */
/* Sets the number of hops to the length of a list of fan-outs. False after a diagnostic: it is
 * no such list, or relations differ in their hops. */
static bool hop_count(Elab *e, const Ast *at, Value list, Sampling *s) {
    int n = list.kind == VAL_LIST ? list.list->n : 0;
    if (elab_is_poison(list)) return false;
    if (n < 1 || n > 64) {
        bad(e, at, "a fan-out is a list with a number for each hop: [10, 5]");
        return false;
    }
    if (s->n_hops && s->n_hops != n) {
        diag_add(e->c, DIAG_E0306, at->span, "%d hops here, %d before: all relations have as many",
                 n, s->n_hops);
        return false;
    }
    s->n_hops = n;
    return true;
}

/* Sets the fan-outs of the relation r, one for each hop: how many of the edges into a node are
 * drawn, -1 for all. */
static void set_fanout_of(Elab *e, const Ast *at, Value list, Sampling *s, SampleRel *r) {
    if (!hop_count(e, at, list, s)) return;
    r->fanout = NEWN(e->a, int64_t, (size_t)s->n_hops);
    for (int h = 0; h < s->n_hops; h++) {
        Value v = list.list->v[h];
        int64_t n;
        if (elab_is_poison(v)) return;
        if (v.kind == VAL_INT && elab_int_known(e, v, &n) && n >= -1 && n <= INT32_MAX)
            r->fanout[h] = n;
        else {
            bad(e, at, "edges of a hop are a whole number, or -1 for all of them");
            return;
        }
    }
}

/* Reads fan-outs from a dictionary: relation -> list. Each relation of the graph needs one. */
static void set_fanout_by_relation(Elab *e, const Ast *at, const Dict *d, Sampling *s) {
    for (int i = 0; i < d->key.n; i++) {
        Value k = d->key.v[i];
        SampleRel *r = k.kind == VAL_EDGE ? elab_sample_rel(e, s, k.space) : NULL;
        if (elab_is_poison(k)) return;
        if (!r)
            bad(e, at,
                "the keys of fan-outs are relations of the graph, or 'reverse' or 'undirected' of "
                "one");
        else
            set_fanout_of(e, at, d->val.v[i], s, r);
    }
    for (int i = 0; i < s->rels.n && e->c->n_errors == 0; i++)
        if (!s->rels.v[i].fanout && s->rels.v[i].rel->rel == REL_BASE)
            diag_add(e->c, DIAG_E0306, at->span, "no fan-out is given for '%s'",
                     s->rels.v[i].rel->name);
}

/* Reads `fanout [10, 5]`, for all relations, or `fanout [g.cites: [10, 5], ..]`. */
static void set_fanout(Elab *e, const Ast *s, Sampling *to) {
    const Ast *t = only(e, s);
    Value v = t ? elab_eval(e, t) : val_poison();
    if (elab_is_poison(v)) return;
    if (v.kind == VAL_DICT)
        set_fanout_by_relation(e, t, v.dict, to);
    else
        for (int i = 0; i < to->rels.n && (i == 0 || to->n_hops); i++)
            set_fanout_of(e, t, v, to, &to->rels.v[i]);
}

/* ---- columns ------------------------------------------------------------------------------- */
/* The column of this kind that an expression names. what: a word for it in the message. NULL
 * after a diagnostic. */
static Column *column_of(Elab *e, const Ast *t, ColKind kind, const char *what) {
    Value v = elab_eval(e, t);
    if (elab_is_poison(v)) return NULL;
    bool column = v.kind == VAL_TENSOR && v.op->kind == OP_DATA && v.op->col->kind == kind;
    if (column && v.op->type.rank == 1) return v.op->col;
    diag_add(e->c, DIAG_E0306, t->span, "%s is needed here", what);
    return NULL;
}

/* Reads `weight g.cites.w, ..`: columns by whose values the edges of their relations are drawn. */
static void set_weights(Elab *e, const Ast *s, Sampling *to) {
    for (int i = 0; i < s->n; i++) {
        Column *c = column_of(e, s->kid[i], COL_FLOAT, "an f32 column of a relation");
        if (c && c->space->kind == SP_EDGE)
            vec_push(e->a, &to->weights, c);
        else if (c)
            bad(e, s->kid[i], "weights are of edges: an f32 column of a relation");
    }
}

/* Reads `time g.paper.year, ..`: columns by which rows newer than a seed are left out. */
static void set_times(Elab *e, const Ast *s, Sampling *to) {
    for (int i = 0; i < s->n; i++) {
        Column *c = column_of(e, s->kid[i], COL_TIME, "a time column");
        if (c) vec_push(e->a, &to->times, c);
    }
}

/* ---- all of it ------------------------------------------------------------------------- */
/* Which batches a setting is of, as contract.def has it. */
enum {
    OF_ALL = 0,
    OF_SPEED = 0,
    OF_CLUSTERS = 1 << 0,
    OF_DRAWN = 1 << 1,
    OF_LINKS = 1 << 2,
    OF_DRAWN_LINKS = OF_DRAWN | OF_LINKS,
    OF_NONE = 1 << 3, /* no setting */
};

typedef struct {
    const char *word;
    RecipeFieldKind kind;
    const Words *words;
    size_t offset;                                    /* in Sampling */
    void (*set)(Elab *e, const Ast *s, Sampling *to); /* in place of it */
    unsigned of;
} Setting;

static const Setting settings[] = {
    {"fanout", RF_TEXT, NULL, 0, set_fanout, OF_DRAWN},
    {"weight", RF_TEXT, NULL, 0, set_weights, OF_DRAWN},
    {"time", RF_TEXT, NULL, 0, set_times, OF_DRAWN},
#define SAMPLING(kind, name, word, first, of)                                                      \
    {word, RF_##kind, NULL, offsetof(Sampling, name), NULL, OF_##of},
#define SAMPLING_ENUM(type, rt_type, name, word, first, of)                                        \
    {word, RF_WORD, &text_##type, offsetof(Sampling, name), NULL, OF_##of},
#include "runtime/contract.def"
};

/* The setting of a sample block of that name; NULL: there is none. */
static const Setting *setting_of(const char *word) {
    for (size_t i = 0; i < COUNT(settings); i++)
        if (settings[i].of != OF_NONE && strcmp(settings[i].word, word) == 0) return &settings[i];
    return NULL;
}

static unsigned sort_of(const Ast *s) {
    const Setting *k = setting_of(s->text);
    return k ? k->of : 0;
}

/* Reports a setting that a sample block does not have. */
static void no_setting(Elab *e, const Ast *s) {
    StrBuf b = sb_new(e->a);
    for (size_t i = 0; i < COUNT(settings); i++)
        if (settings[i].of != OF_NONE) sb_printf(&b, "%s%s", i ? ", " : "", settings[i].word);
    diag_add(e->c, DIAG_E0306, s->span, "a sample block has no '%s'; it has %s%s", s->text, b.s,
             fe_setting_hint(s->text));
}

/* Reads one setting of a sample block into *to, by its kind or by a function of its own. */
static void set_one(Elab *e, const Ast *s, Sampling *to) {
    const Setting *k = setting_of(s->text);
    void *at = k ? (char *)to + k->offset : NULL;
    if (!k)
        no_setting(e, s);
    else if (k->set)
        k->set(e, s, to);
    else if (k->kind == RF_BOOL)
        set_flag(e, s, at);
    else if (k->kind == RF_INT)
        set_count(e, s, at, 1);
    else
        set_word(e, s, k->words, at);
}

/* Whether no earlier setting of the block has the name of the i-th; reported if one has. */
static bool once(Elab *e, const Ast *block, int i) {
    for (int j = 0; j < i; j++)
        if (block->kid[j]->kind == AST_SETTING &&
            strcmp(block->kid[j]->text, block->kid[i]->text) == 0) {
            bad(e, block->kid[i], "this stands twice in one sample block");
            return false;
        }
    return true;
}

/* Whether all fan-outs are 0. */
static bool draws_nothing(const Sampling *s) {
    for (int i = 0; i < s->rels.n; i++)
        for (int h = 0; s->rels.v[i].fanout && h < s->n_hops; h++)
            if (s->rels.v[i].fanout[h]) return false;
    return s->n_hops > 0;
}

/* The setting of that name in a sample block; NULL: it has none. */
static const Ast *setting(const Ast *block, const char *name) {
    for (int i = 0; i < block->n; i++)
        if (block->kid[i]->kind == AST_SETTING && strcmp(block->kid[i]->text, name) == 0)
            return block->kid[i];
    return NULL;
}

/* Reports settings of a block that draws neighbours that do not go together, or that lack. */
static void check_settings(Elab *e, const Ast *block, const Sampling *s) {
    const Ast *disjoint = setting(block, "disjoint");
    bool timed = false;
    for (int i = 0; i < s->times.n; i++) timed |= s->times.v[i]->space->kind == SP_NODE;
    if (!s->batch)
        bad(e, block, "a sample block says how many rows a step learns from: batch 1024");
    if (!s->n_hops && !e->links.target)
        bad(e, block, "a sample block says how many edges each hop draws: fanout [10, 5]");
    if (draws_nothing(s)) bad(e, block, "these fan-outs draw no edge at all: fanout [10, 5]");
    if ((s->pick == PICK_RECENT || s->inclusive || s->own) && !s->times.n)
        bad(e, block, "'pick recent', 'inclusive' and 'own' go with time columns: time paper.year");
    if (s->own && s->edges != SAMPLE_DIRECTIONAL)
        bad(e, block, "'own' goes with directional batches: others have edges by time alone");
    if (s->times.n && disjoint && !s->disjoint)
        bad(e, disjoint, "what is known depends on a seed's time: each has a tree of its own");
    if (s->times.n && !timed && !e->links.target)
        bad(e, block, "the rows that are learned from need a time column, too");
    if (s->evaluate == EVAL_DRAWN && e->links.target && !s->times.n)
        bad(e, setting(block, "evaluate"),
            "'evaluate drawn' goes with rows: links without times are judged over the whole graph");
    if (setting(block, "evaluate") && s->evaluate == EVAL_WHOLE && s->times.n)
        bad(e, setting(block, "evaluate"),
            "what is known depends on a row's time: it is evaluated on what is drawn for it");
    if (s->edges == SAMPLE_INDUCED && s->weights.n)
        bad(e, block, "induced batches take every edge between their nodes: weights have no say");
}

/* Reports settings that do not go with what is learned: of links in a recipe of rows, or, in one
 * of links, of clusters, and of neighbours where it draws none. */
static void check_sort(Elab *e, const Ast *block, const Sampling *s) {
    for (int i = 0; i < block->n; i++) {
        const char *name = block->kid[i]->text;
        unsigned of = sort_of(block->kid[i]);
        if (!e->links.target && (of & OF_LINKS))
            diag_add(e->c, DIAG_E0306, block->kid[i]->span,
                     "'%s' goes with links: the target is a column", name);
        if (!e->links.target) continue;
        if (of & OF_CLUSTERS)
            diag_add(e->c, DIAG_E0305, block->kid[i]->span,
                     "links are not learned from clusters yet: fanout [10, 5], or the whole graph");
        else if ((of & OF_DRAWN) && !s->n_hops)
            diag_add(e->c, DIAG_E0306, block->kid[i]->span,
                     "a step over links without 'fanout' sees the whole graph: '%s' has no say",
                     name);
    }
}

/* Reports settings of drawing in a recipe of whole graphs or clusters, which come with all their
 * edges. */
static void check_whole(Elab *e, const Ast *block, const Sampling *s) {
    for (int i = 0; i < block->n; i++)
        if (sort_of(block->kid[i]) & OF_DRAWN_LINKS)
            diag_add(e->c, DIAG_E0306, block->kid[i]->span,
                     "batches of whole %s have all edges of theirs: '%s' has no say",
                     s->clusters ? "clusters" : "graphs", block->kid[i]->text);
    if (!s->batch)
        diag_add(e->c, DIAG_E0306, block->span,
                 "a sample block says how many %s a step sees: batch %d",
                 s->clusters ? "clusters" : "graphs", s->clusters ? 10 : 128);
    else if (s->clusters && s->batch > s->clusters)
        diag_add(e->c, DIAG_E0306, block->span, "a batch of %lld clusters, of which there are %lld",
                 (long long)s->batch, (long long)s->clusters);
}

/* The setting of that name in the sample block of a recipe; NULL: it has none. */
static const Ast *find_setting(const Ast *train, const char *name) {
    for (int i = 0; i < train->n; i++)
        for (int j = 0; train->kid[i]->kind == AST_SAMPLE && j < train->kid[i]->n; j++) {
            const Ast *s = train->kid[i]->kid[j];
            if (s->kind == AST_SETTING && strcmp(s->text, name) == 0) return s;
        }
    return NULL;
}

bool elab_draws(const Ast *train) {
    return find_setting(train, "fanout") != NULL;
}

/* Whether a recipe that draws neighbours draws them for evaluation, too: it says so, or reads
 * rows by time, so that each seed sees other rows. */
bool elab_evaluates_drawn(const Ast *train) {
    const Ast *s = find_setting(train, "evaluate");
    bool drawn = s && s->n == 1 && s->kid[0]->kind == AST_NAME &&
                 strcmp(s->kid[0]->text, text_SampleEval.word[EVAL_DRAWN]) == 0;
    return find_setting(train, "fanout") && (drawn || find_setting(train, "time"));
}

/* Reads the sample block of a recipe and checks that its settings go together. whole: batches of
 * whole graphs or clusters, without neighbours that are drawn. */
void elab_sample(Elab *e, const Ast *block, Recipe *r) {
    Sampling *s = &r->sample;
    int before = e->c->n_errors;
    *s = (Sampling){
#define SAMPLING(kind, name, word, first, of) .name = first,
#define SAMPLING_ENUM(type, rt_type, name, word, first, of) .name = first,
#include "runtime/contract.def"
        .span = block->span};
    s->exclude = e->links.target && setting(block, "fanout");
    for (int i = 0; i < e->edges.n; i++) {
        SampleRel rel = {.rel = e->edges.v[i].space};
        vec_push(e->a, &s->rels, rel);
    }
    bool broken = false;
    for (int i = 0; i < block->n; i++) {
        if (block->kid[i]->kind == AST_BAD)
            broken = true;
        else if (once(e, block, i))
            set_one(e, block->kid[i], s);
    }
    bool graphs = r->target && strncmp(r->target, "graph.", 6) == 0;
    bool whole = (graphs || s->clusters) && !e->links.target;
    if (graphs && s->clusters) bad(e, block, "clusters are of one graph, the target is of many");
    if (!broken && !whole && e->c->n_errors == before) check_sort(e, block, s);
    if (!broken && e->c->n_errors == before)
        whole ? check_whole(e, block, s) : check_settings(e, block, s);
    s->disjoint |= s->times.n > 0 || graphs; /* what is known depends on the seed */
    if (whole) s->edges = SAMPLE_INDUCED;
}

/* ---- what a sampled program cannot have -------- */
static bool is_of_data(const Space *s) {
    return s->kind != SP_DIM;
}

/* Variables outlive a batch, so their shape cannot be a batch's.  A step over links that draws no
 * neighbours sees the whole graph, and parts of nothing but of its links. */
static void check_var(Elab *e, const Var *v) {
    for (int d = 0; d < v->type.rank; d++) {
        const Space *s = v->type.dim[d];
        const Sampling *how = &e->m->recipe.sample;
        bool whole = how->train_links && !how->n_hops && !space_is_drawn(s);
        if (whole || (!is_of_data(s) && !expr_counts_rows(s->size))) continue;
        diag_add(e->c, DIAG_E0305, v->span,
                 "'%s' has an entry for each of '%s': a sampled step sees some of them only",
                 v->path, s->name);
        diag_note(e->c, e->m->recipe.sample.span, "the recipe samples here");
        return;
    }
}

static void check_vars(Elab *e) {
    for (int i = 0; i < e->m->vars.n; i++) check_var(e, e->m->vars.v[i]);
}

/* Reports what of the data or the model cannot be drawn from yet. */
static void check_spaces(Elab *e) {
    for (int i = 0; i < e->m->spaces.n; i++) {
        const Space *s = e->m->spaces.v[i];
        const Sampling *how = &e->m->recipe.sample;
        if (s->kind == SP_GRAPH && (how->n_hops || how->clusters))
            diag_add(e->c, DIAG_E0305, how->span, "%s data of many graphs ('%s') %s not there yet",
                     how->clusters ? "clusters of" : "drawing neighbours from", s->name,
                     how->clusters ? "are" : "is");
        if (space_of_batch(s)) continue;
        if (s->kind == SP_EDGE && s->rel == REL_WHERE && !space_is_sampled(e->m, s->base[0]))
            diag_add(e->c, DIAG_E0305, s->span,
                     "'where' over a derived relation is not there yet in a sampled model");
    }
}

static const Space *base_of_data(const Space *s) {
    while (s->rel != REL_BASE) s = s->base[0];
    return s;
}

/* Reports what a recipe of links that draws neighbours cannot have: a loss over all nodes, or
 * times without that of the link itself. */
static void check_links(Elab *e) {
    const Sampling *s = &e->m->recipe.sample;
    if (s->n_hops && s->train_links == LINKS_FORM_QUERIES)
        diag_add(
            e->c, DIAG_E0306, s->span,
            "the loss asks for the scores of all nodes, and a step with 'fanout' sees some: leave "
            "'fanout' out, or use a loss of negatives");
    if (!s->n_hops || !e->links.base || !s->times.n) return;
    const Column *own = NULL;
    for (int i = 0; i < s->times.n && !own; i++)
        if (s->times.v[i]->space == e->links.base) own = s->times.v[i];
    if (!own || e->links.base->rel != REL_BASE)
        diag_add(e->c, DIAG_E0306, s->span,
                 "what is known to a link is told by its own time, a column of an edge type of the "
                 "data: links(g.%s), time g.%s.<column>, ..",
                 base_of_data(e->links.base)->name, base_of_data(e->links.base)->name);
}

/* Reports rows that are learned from without a time, where what is known to them depends on it. */
static void check_seed_times(Elab *e, const Space *rows) {
    const Sampling *s = &e->m->recipe.sample;
    for (int i = 0; i < s->times.n; i++)
        if (s->times.v[i]->space == rows) return;
    if (s->times.n && rows && rows->kind == SP_NODE && !e->links.base)
        diag_add(e->c, DIAG_E0306, s->span,
                 "the rows that are learned from need a time column, too: time %s.<column>, ..",
                 rows->name);
}

/* Is a value at the sources of edges read: a hop further from the seeds than the result? */
static bool is_hop(const Op *op) {
    return op->kind == OP_GATHER && op->map->kind == MAP_SRC && !space_of_batch(op->map->from);
}

/* Is a value brought to the sources of edges: there, what it is made of lies a hop nearer? */
static bool is_way_back(const Op *op) {
    return op->kind == OP_SEGMENT && op->map->kind == MAP_SRC && !space_of_batch(op->map->from);
}

/* How many hops from the seeds lies, at most, what the loss is computed of. */
static int hops_of_loss(Elab *e) {
    Func *f = func_of(e->m, PHASE_TRAIN);
    Op *loss = f ? func_output_of(f, OUT_LOSS) : NULL;
    if (!loss) return 0;
    func_number(f);
    int *hops = NEWN(e->a, int, (size_t)f->n_ops + 1);
    for (const Op *op = f->first; op != loss; op = op->next) {
        for (int i = 0; i < op->n_in; i++)
            if (hops[op->in[i]->id] > hops[op->id]) hops[op->id] = hops[op->in[i]->id];
        hops[op->id] += is_hop(op) - (is_way_back(op) && hops[op->id] > 0);
    }
    return hops[loss->in[0]->id];
}

/* Warns if the model reads more hops than are drawn. In batches that are not directional there
 * are more edges than were drawn, so it is no mistake. */
static void warn_of_hops(Elab *e, const Ast *train) {
    const Sampling *s = &e->m->recipe.sample;
    int n = hops_of_loss(e);
    if (s->edges != SAMPLE_DIRECTIONAL || n <= s->n_hops) return;
    diag_warn(e->c, DIAG_E0306, find_setting(train, "fanout")->span,
              "the model reads what is %d hops away, and 'fanout' draws %d: nodes of the last hop "
              "have no in-edges, so nothing is aggregated there",
              n, s->n_hops);
}

/* After all phases: reports what a recipe with batches cannot have, and finds the relations that
 * neighbours are drawn along. */
void elab_check_sampled(Elab *e, const Ast *train) {
    const Recipe *r = &e->m->recipe;
    const char *dot = r->target ? strchr(r->target, '.') : NULL;
    if (!r->sample.batch || e->c->n_errors) return;
    const Space *rows =
        dot ? space_find(e->m, arena_strndup(e->a, r->target, (size_t)(dot - r->target))) : NULL;
    if (rows && rows->kind != SP_NODE && rows->kind != SP_GRAPH && !e->links.base)
        diag_add(e->c, DIAG_E0305, train->span,
                 "a sampled recipe learns from nodes or graphs; '%s' is not there yet", r->target);
    check_seed_times(e, rows);
    check_vars(e);
    check_spaces(e);
    check_links(e);
    if (e->c->n_errors || !r->sample.n_hops) return;
    warn_of_hops(e, train);
    elab_sampled_relations(e);
}
