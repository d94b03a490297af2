/* Making the parts of a module.  Names of spaces and symbols are made unique with
 * ".1", ".2"; derived relations and maps are interned, so equal ones are one
 * pointer and passes may compare pointers. */
#include "ir/ir.h"

#include <ctype.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "ir/text.h"
#include "runtime/include/gnnc.h"

/* A new empty module, with its memory in the context's arena. */
Module *module_new(Ctx *c, const char *name) {
    Module *m = NEW(c->a, Module);
    m->ctx = c;
    m->a = c->a;
    m->name = arena_strndup(c->a, name, strlen(name));
    m->text_file = UINT32_MAX;
    return m;
}

/* The name, with ".1", ".2", .. if it is taken. */
static const char *unique_name(Module *m, int table, const char *name) {
    StrMap *taken = &m->by_name[table];
    if (!strmap_get(taken, name)) return arena_strndup(m->a, name, strlen(name));
    for (int i = 1;; i++) {
        const char *s = arena_printf(m->a, "%s.%d", name, i);
        if (!strmap_get(taken, s)) return s;
    }
}

/* What has that name, or NULL. */
static void *find_named(const Module *m, int table, const char *name) {
    return strmap_get(&m->by_name[table], name);
}

/* Enters a name into its table. */
static void enter_name(Module *m, int table, const char *name, void *what) {
    strmap_put(m->a, &m->by_name[table], name, what);
}

/* Renames something in its table. */
static const char *rename_in(Module *m, int table, const char *old, const char *name, void *what) {
    if (strcmp(old, name) == 0) return old;
    CTX_HOLDS(m->ctx, !find_named(m, table, name), (Span){0});
    enter_name(m, table, old, NULL);
    const char *s = arena_strndup(m->a, name, strlen(name));
    enter_name(m, table, s, what);
    return s;
}

/* ---- symbols and spaces ----------------------------------------------------- */
/* Adds a symbol. */
Sym *sym_new(Module *m, const char *name) {
    Sym *s = NEW(m->a, Sym);
    s->name = unique_name(m, NAMES_SYM, name);
    s->id = m->syms.n;
    vec_push(m->a, &m->syms, s);
    enter_name(m, NAMES_SYM, s->name, s);
    return s;
}

void sym_rename(Module *m, Sym *s, const char *name) {
    s->name = rename_in(m, NAMES_SYM, s->name, name, s);
}

void space_rename(Module *m, Space *s, const char *name) {
    s->name = rename_in(m, NAMES_SPACE, s->name, name, s);
}

/* Adds a space. */
static Space *space_new(Module *m, SpaceKind k, const char *name, Span at) {
    Space *s = NEW(m->a, Space);
    s->kind = k;
    s->id = m->spaces.n;
    s->name = unique_name(m, NAMES_SPACE, name);
    s->span = at;
    vec_push(m->a, &m->spaces, s);
    enter_name(m, NAMES_SPACE, s->name, s);
    return s;
}

/* Gives a space a size symbol that is named after it: N_paper, E_cites. */
static Space *set_own_size(Module *m, Space *s, const char *prefix) {
    Sym *own = sym_new(m, arena_printf(m->a, "%s%s", prefix, s->name));
    own->of = s;
    s->size = expr_sym(m->a, own);
    return s;
}

Space *space_dim(Module *m, const char *name, const Expr *size, Span at) {
    Space *s = space_new(m, SP_DIM, name, at);
    if (!size) return set_own_size(m, s, "");
    s->size = size;
    return s;
}

Space *space_node(Module *m, const char *name, Span at) {
    return set_own_size(m, space_new(m, SP_NODE, name, at), "N_");
}

Space *space_graph(Module *m, const char *name, Span at) {
    return set_own_size(m, space_new(m, SP_GRAPH, name, at), "G_");
}

Space *space_edge(Module *m, const char *name, Space *src, Space *dst, Span at) {
    Space *s = set_own_size(m, space_new(m, SP_EDGE, name, at), "E_");
    s->src = src;
    s->dst = dst;
    return s;
}

/* The name of a derived relation. */
static const char *derived_name(Module *m, RelKind k, const Space *x, const Space *y) {
    static const char *const suffix[] = {
        [REL_SELF_LOOPS] = "_sl",   [REL_NO_LOOPS] = "_nl",   [REL_REVERSE] = "_rev",
        [REL_UNDIRECTED] = "_und",  [REL_WHERE] = "_where",   [REL_UNION] = "_and_",
        [REL_LINKS] = "_links",     [REL_POSITIVES] = "_pos", [REL_QUERIES] = "_queries",
        [REL_ANSWERS] = "_answers", [REL_KNOWN] = "_known",   [REL_EARLIER] = "_earlier"};
    return arena_printf(m->a, "%s%s%s", x->name, suffix[k], k == REL_UNION ? y->name : "");
}

/* The derived relation, created if necessary. */
Space *space_derived(Module *m, RelKind k, Space *a, Space *b, const char *cond, Span at) {
    CTX_HOLDS(m->ctx, k != REL_BASE && a->kind == SP_EDGE && (k == REL_UNION) == (b != NULL), at);
    CTX_HOLDS(m->ctx, (k == REL_WHERE) == (cond != NULL), at);
    const char *key =
        arena_printf(m->a, "%d:%d:%d:%s", (int)k, a->id, b ? b->id : -1, cond ? cond : "");
    Space *s = find_named(m, NAMES_DERIVED, key);
    if (s) return s;
    s = set_own_size(m, space_new(m, SP_EDGE, derived_name(m, k, a, b), at), "E_");
    s->rel = k;
    s->src = k == REL_REVERSE ? a->dst : a->src;
    s->dst = k == REL_REVERSE ? a->src : a->dst;
    s->base[0] = a;
    s->base[1] = b;
    s->cond = cond ? arena_strndup(m->a, cond, strlen(cond)) : NULL;
    enter_name(m, NAMES_DERIVED, key, s);
    return s;
}

/* The links or positives of a step, created if necessary. */
Space *space_links(Module *m, RelKind k, Space *base, Space *src, Space *dst, Span at) {
    CTX_HOLDS(m->ctx, k == REL_LINKS || k == REL_POSITIVES, at);
    Space *s = space_derived(m, k, base, NULL, NULL, at);
    s->src = src;
    s->dst = dst;
    return s;
}

/* Whether s is the first rows of `prefix_of` for that many hops. */
static bool is_prefix(const Space *s, const Space *whole, int hops) {
    return s->prefix_of == whole && s->hops == hops && !s->distinct_of;
}

/* The seeds of a node type, created if necessary. */
Space *space_seeds(Module *m, Space *node, Span at) {
    for (int i = 0; i < m->spaces.n; i++)
        if (is_prefix(m->spaces.v[i], node, 0)) return m->spaces.v[i];
    Space *s = space_node(m, arena_printf(m->a, "%s.0", node->name), at);
    s->prefix_of = node;
    return s;
}

/* Whether a step's links join its seeds. */
bool space_joins_seeds(const Space *s) {
    return (s->rel == REL_LINKS || s->rel == REL_POSITIVES) && s->src->prefix_of;
}

/* Whether the space exists in a batch only. */
bool space_of_batch(const Space *s) {
    return s->prefix_of || rel_is_drawn(s->rel) || (s->base[0] && space_of_batch(s->base[0]));
}

/* Whether the space is sampled links. */
bool space_is_drawn(const Space *s) {
    return s->kind == SP_EDGE && rel_is_drawn(s->rel);
}

/* Whether the derived relation leads to other nodes than its base. */
static bool changes_destination(const Space *s) {
    return s->rel == REL_REVERSE || s->rel == REL_UNDIRECTED;
}

/* Whether batches sample neighbours along the relation. */
bool space_is_sampled(const Module *m, const Space *s) {
    if (s->kind != SP_EDGE || space_of_batch(s)) return false;
    return s->rel == REL_BASE || (m->recipe.sample.n_hops > 0 && changes_destination(s));
}

/* Marks a space as read, and those that it is derived from. */
static void mark_read(bool *read, const Space *s) {
    if (!s || read[s->id]) return;
    read[s->id] = true;
    mark_read(read, s->prefix_of);
    mark_read(read, s->base[0]);
    mark_read(read, s->base[1]);
}

/* By Space.id: whether functions read it. */
const bool *module_reads(const Module *m) {
    bool *read = NEWN(m->a, bool, (size_t)m->spaces.n + 1);
    for (int i = 0; i < m->funcs.n; i++)
        for (const Op *op = m->funcs.v[i]->first; op; op = op->next) {
            for (int d = 0; d < op->type.rank; d++) mark_read(read, op->type.dim[d]);
            if (op->map) mark_read(read, op->map->from);
            if (op->map) mark_read(read, op->map->to);
        }
    return read;
}

/* Marks, by Space.id, the spaces of whose rows the operation computes numbers that are i32, or sums
 * that are integers.  What a node sums along its edges is not counted: only with parallel edges are
 * these more than nodes. */
static void mark_numbered(bool *numbered, const Op *op) {
    bool sum = !dtype_is_float(op->type.dt) && (op->kind == OP_CONTRACT || op->red == RED_SUM);
    if (op->kind == OP_IOTA || op->kind == OP_ARGMAX) numbered[op->over[0]->id] = true;
    for (int i = 0; i < op->n_over && sum && op->kind == OP_REDUCE; i++)
        numbered[op->over[i]->id] = true;
    if (sum && op->kind == OP_SEGMENT && op->map->to->kind != SP_NODE)
        numbered[op->map->from->id] = true;
    for (int i = 0; sum && op->kind == OP_CONTRACT && i < op->in[0]->type.rank; i++)
        if (!type_has(&op->type, op->in[0]->type.dim[i]))
            numbered[op->in[0]->type.dim[i]->id] = true;
}

const bool *module_numbers(const Module *m) {
    bool *numbered = NEWN(m->a, bool, (size_t)m->spaces.n + 1);
    for (int i = 0; i < m->funcs.n; i++) {
        const Func *f = m->funcs.v[i];
        bool of_batch = !f->body && module_runs_on_batches(m, f->phase);
        for (const Op *op = f->first; op && !of_batch; op = op->next) mark_numbered(numbered, op);
    }
    return numbered;
}

/* Whether all rows are read, whatever time they have, though the model does not say so. */
bool space_is_untimed(const Module *m, const Space *s) {
    bool data = s->kind == SP_NODE || (s->kind == SP_EDGE && s->rel == REL_BASE);
    const Sampling *how = &m->recipe.sample;
    for (int i = 0; i < how->times.n && how->n_hops; i++)
        if (how->times.v[i]->space == s) return false;
    return data && !s->prefix_of && !s->timeless;
}

/* Of a model with batches: whether each batch has its own number of rows of the space. Where links
 * are drawn and messages pass over the whole graph, only the drawn relations vary, and what is
 * derived from them. */
bool space_varies(const Module *m, const Space *s) {
    const Sampling *sample = &m->recipe.sample;
    if (s->kind == SP_DIM) return false;
    if (!sample->train_links || sample->n_hops) return true;
    if (s->kind == SP_NZ) return space_varies(m, s->nz_of->space);
    return space_is_drawn(s) || (s->base[0] && space_varies(m, s->base[0]));
}

/* The column that is learned, or its split; NULL: none. */
const Column *module_target(const Module *m, bool split) {
    const char *target = m->recipe.target, *dot = target ? strrchr(target, '.') : NULL;
    for (int i = 0; dot && i < m->cols.n; i++) {
        const Column *c = m->cols.v[i];
        size_t n = strlen(c->space->name);
        if (n != (size_t)(dot - target) || strncmp(c->space->name, target, n) != 0) continue;
        if (split ? c->kind == COL_SPLIT : !strcmp(c->name, dot + 1)) return c;
    }
    return NULL;
}

/* Whether the phase sees a batch instead of the whole graph. */
bool module_runs_on_batches(const Module *m, Phase phase) {
    const Sampling *s = &m->recipe.sample;
    /* `serve`: a program for the rows that a request names; without neighbours, whole graphs */
    bool serves_graphs = s->serve && !s->n_hops && !s->train_links;
    /* rows are predicted in batches, not in one pass over the whole graph */
    bool by_row =
        s->batch &&
        (serves_graphs || (s->n_hops && (s->times.n || s->serve || s->evaluate == EVAL_DRAWN)));
    if (phase == PHASE_TRAIN) return s->batch && (!s->train_links || s->n_hops);
    return by_row && (phase == PHASE_PREDICT || phase == PHASE_EMBED || phase == PHASE_EXPLAIN);
}

/* Whether the phase runs before others that read its outputs. */
bool phase_saves(Phase phase) {
    return phase == PHASE_LOAD || phase == PHASE_ENCODE || phase == PHASE_ENDS;
}

/* The output that is saved by the name; NULL: none. */
const Op *module_saved(const Module *m, const char *name) {
    const Op *out = NULL;
    for (int i = 0; i < m->funcs.n && !out; i++)
        if (phase_saves(m->funcs.v[i]->phase)) out = func_output(m->funcs.v[i], name);
    return out;
}

/* The queries of a relation of answers; NULL: it is none. */
Space *space_queries(const Space *answers) {
    Space *s = answers->base[0];
    if (answers->rel == REL_KNOWN || answers->rel == REL_EARLIER) s = s->base[0];
    return answers->rel >= REL_ANSWERS ? s : NULL;
}

/* The prefix of a derived relation, derived from prefixes; NULL: it has none. */
static Space *prefix_of_derived(Module *m, Space *s, int hops, Span at) {
    if (changes_destination(s)) return NULL;
    Space *base[2] = {NULL, NULL};
    for (int k = 0; k < 2 && s->base[k]; k++)
        if (!(base[k] = space_prefix(m, s->base[k], hops, at))) return NULL;
    return space_derived(m, s->rel, base[0], base[1], s->cond, at);
}

/* The first rows of a space that `hops` more layers need, created if necessary. */
Space *space_prefix(Module *m, Space *whole, int hops, Span at) {
    if (hops >= m->recipe.sample.n_hops) return whole;
    if (m->recipe.sample.edges != SAMPLE_DIRECTIONAL && hops > 0) return whole;
    if (whole->kind == SP_EDGE && !space_is_sampled(m, whole))
        return prefix_of_derived(m, whole, hops, at);
    for (int i = 0; i < m->spaces.n; i++)
        if (is_prefix(m->spaces.v[i], whole, hops)) return m->spaces.v[i];
    const char *name = arena_printf(m->a, "%s.%d", whole->name, hops);
    Space *s;
    if (whole->kind == SP_NODE)
        s = space_node(m, name, at);
    else
        s = space_edge(m, name, space_prefix(m, whole->src, hops + 1, at),
                       space_prefix(m, whole->dst, hops, at), at);
    s->prefix_of = whole;
    s->hops = hops;
    return s;
}

/* The distinct rows of a batch's nodes, created if necessary. */
Space *space_distinct(Module *m, Space *node, Span at) {
    CTX_HOLDS(m->ctx, node->kind == SP_NODE && !node->distinct_of, at);
    for (int i = 0; i < m->spaces.n; i++)
        if (m->spaces.v[i]->distinct_of == node) return m->spaces.v[i];
    Space *s = space_node(m, arena_printf(m->a, "%s.rows", node->name), at);
    s->prefix_of = node->prefix_of ? node->prefix_of : node;
    s->hops = node->hops;
    s->distinct_of = node;
    return s;
}

Space *space_find(const Module *m, const char *name) {
    return find_named(m, NAMES_SPACE, name);
}

/* ---- columns --------------------------------------------------------------------- */
const ColumnFacts column_facts[] = {
#define COLUMN(id, rt_id, word, said, size, dt, n_dims, codes, rule)                               \
    {said, size, DT_##dt, n_dims, codes, rule},
#include "runtime/contract.def"
};

/* Adds a column. */
Column *column_new(Module *m, ColKind k, Space *space, const char *name, int n_dims,
                   Space *const *dims, Space *cat, Span at) {
    CTX_HOLDS(m->ctx, n_dims + 1 <= MAX_RANK && (k != COL_CSR || n_dims == 1), at);
    CTX_HOLDS(m->ctx, column_facts[k].codes == (cat != NULL), at);
    Column *c = NEW(m->a, Column);
    c->kind = k;
    c->space = space;
    c->name = arena_strndup(m->a, name, strlen(name));
    c->type = (Type){.dt = column_facts[k].dt, .rank = n_dims + 1, .dim = {space}};
    for (int i = 0; i < n_dims; i++) c->type.dim[i + 1] = dims[i];
    c->cat = cat;
    c->id = m->cols.n;
    c->span = at;
    if (k == COL_CSR) {
        c->type.layout = LAYOUT_CSR;
        const char *nz = arena_printf(m->a, "%s_%s", space->name, name);
        c->nz = set_own_size(m, space_new(m, SP_NZ, nz, at), "nnz_");
        c->nz->nz_of = c;
    }
    vec_push(m->a, &m->cols, c);
    enter_name(m, NAMES_COL, arena_printf(m->a, "%s.%s", space->name, name), c);
    return c;
}

/* Finds a column. */
Column *column_find(const Module *m, const char *space, const char *name) {
    for (int i = 0; i < m->cols.n; i++) {
        Column *c = m->cols.v[i];
        if (strcmp(c->space->name, space) == 0 && strcmp(c->name, name) == 0) return c;
    }
    return NULL;
}

/* ---- maps ---------------------------------------------------------------------------- */
/* A map, created if necessary. */
static Map *map_get(Module *m, MapKind k, Space *from, Space *to, Column *col, int which) {
    char key[64];
    snprintf(key, sizeof key, "%d:%d:%d:%d:%d", (int)k, from->id, col ? col->id : -1, which,
             to->id);
    Map *map = find_named(m, NAMES_MAP, key);
    if (map) return map;
    map = NEW(m->a, Map);
    *map = (Map){.kind = k, .from = from, .to = to, .col = col, .which = which, .id = m->maps.n};
    vec_push(m->a, &m->maps, map);
    enter_name(m, NAMES_MAP, arena_strndup(m->a, key, strlen(key)), map);
    return map;
}

Map *map_src(Module *m, Space *edge) {
    CTX_HOLDS(m->ctx, edge->kind == SP_EDGE, (Span){0});
    return map_get(m, MAP_SRC, edge, edge->src, NULL, 0);
}

Map *map_dst(Module *m, Space *edge) {
    CTX_HOLDS(m->ctx, edge->kind == SP_EDGE, (Span){0});
    return map_get(m, MAP_DST, edge, edge->dst, NULL, 0);
}

Map *map_graph(Module *m, Space *node) {
    CTX_HOLDS(m->ctx, node->kind == SP_NODE && node->graph, (Span){0});
    return map_get(m, MAP_GRAPH, node, node->graph, NULL, 0);
}

Map *map_col(Module *m, Column *c) {
    CTX_HOLDS(m->ctx, c->cat, (Span){0});
    return map_get(m, MAP_COL, c->space, c->cat, c, 0);
}

Map *map_row(Module *m, Space *nz) {
    CTX_HOLDS(m->ctx, nz->kind == SP_NZ, (Span){0});
    return map_get(m, MAP_ROW, nz, nz->nz_of->type.dim[0], NULL, 0);
}

Map *map_nzcol(Module *m, Space *nz) {
    CTX_HOLDS(m->ctx, nz->kind == SP_NZ, (Span){0});
    return map_get(m, MAP_NZCOL, nz, nz->nz_of->type.dim[1], NULL, 0);
}

Map *map_orig(Module *m, Space *derived, int which) {
    CTX_HOLDS(m->ctx,
              derived->kind == SP_EDGE && (which == 0 || which == 1) && derived->base[which],
              (Span){0});
    return map_get(m, MAP_ORIG, derived, derived->base[which], NULL, which);
}

Map *map_cell(Module *m, Space *answers, Space *to) {
    CTX_HOLDS(m->ctx, space_queries(answers) && to->kind == SP_DIM, (Span){0});
    return map_get(m, MAP_CELL, answers, to, NULL, 0);
}

/* Whether all nodes are among those whose distinct rows `distinct_of` are. */
bool space_is_within(const Space *node, const Space *once) {
    const Space *all = once->distinct_of;
    if (!all || node->kind != SP_NODE || node->distinct_of) return false;
    return node == all ||
           (node->prefix_of == once->prefix_of && (!all->prefix_of || node->hops <= all->hops));
}

Map *map_distinct(Module *m, Space *node, Space *once) {
    CTX_HOLDS(m->ctx, space_is_within(node, once), (Span){0});
    return map_get(m, MAP_DISTINCT, node, once, NULL, 0);
}

Map *map_first(Module *m, Space *once) {
    CTX_HOLDS(m->ctx, once->distinct_of, (Span){0});
    return map_get(m, MAP_FIRST, once, once->prefix_of, NULL, 0);
}

/* The column's map, behind the map from distinct rows. */
Map *map_via(Module *m, Map *col, Space *once) {
    CTX_HOLDS(m->ctx, once->distinct_of && col->kind == MAP_COL && col->from == once->prefix_of,
              (Span){0});
    Map *first = map_first(m, once), *map = map_get(m, MAP_VIA, once, col->to, col->col, 0);
    map->pair[0] = col;
    map->via = first;
    return map;
}

/* The key of a pair of maps. */
static const char *pair_key(const Module *m, const Map *first, const Map *second, const Map *via) {
    return arena_printf(m->a, "pair %d %d %d", first->id, second->id, via ? via->id : -1);
}

/* Enters all pairs of maps into the table, or removes them. */
static void enter_pairs(Module *m, bool found) {
    for (int i = 0; i < m->maps.n; i++) {
        Map *p = m->maps.v[i];
        if (p->kind != MAP_PAIR) continue;
        const char *key = pair_key(m, p->pair[0], p->pair[1], p->via);
        strmap_put(m->a, &m->by_name[NAMES_MAP], key, found ? p : NULL);
    }
}

/* Moves the given maps to the front; false: one is there twice. */
bool module_order_maps(Module *m, int n, Map *const *first) {
    enter_pairs(m, false);
    int i = 0;
    for (; i < n && first[i]->id >= i; i++) {
        Map *other = m->maps.v[i], *here = first[i];
        m->maps.v[other->id = here->id] = other;
        m->maps.v[here->id = i] = here;
    }
    enter_pairs(m, true);
    return i == n;
}

/* The map by a pair of maps, created if necessary. */
Map *map_pair(Module *m, Map *first, Map *second, Map *via, Space *to) {
    const char *key = pair_key(m, first, second, via);
    Map *map = find_named(m, NAMES_MAP, key);
    if (map) return map;
    if (!to) {
        const char *name = arena_printf(m->a, "%s_%s", first->to->name, second->to->name);
        const Expr *size = expr_mul(m->a, first->to->size, second->to->size);
        to = space_dim(m, name, size, first->from->span);
    }
    map = NEW(m->a, Map);
    *map = (Map){.kind = MAP_PAIR, .to = to, .pair = {first, second}, .id = m->maps.n};
    map->via = via;
    map->from = via ? via->from : first->from;
    vec_push(m->a, &m->maps, map);
    enter_name(m, NAMES_MAP, key, map);
    return map;
}

/* ---- options of the model -------------------------------------------------------------- */
ModelOption *module_option(const Module *m, const char *name) {
    for (int i = 0; i < m->options.n; i++)
        if (strcmp(m->options.v[i].name, name) == 0) return &m->options.v[i];
    return NULL;
}

/* Adds an option, of any size or number. */
ModelOption *module_option_new(Module *m, const char *name, Space *dim, double first, Span at) {
    ModelOption o = {.name = arena_strndup(m->a, name, strlen(name)),
                     .dim = dim,
                     .input = arena_printf(m->a, "option.%s", name),
                     .first = first,
                     .least = dim ? 1 : -(double)FLT_MAX,
                     .most = dim ? INT32_MAX : (double)FLT_MAX,
                     .span = at};
    CTX_HOLDS(m->ctx, !module_option(m, name), at);
    vec_push(m->a, &m->options, o);
    return &m->options.v[m->options.n - 1];
}

const char *module_option_name_fault(const char *name) {
    static const char *const of_trainers[] = {
#define NAME(name, ...) #name,
        GNNC_OPTION_MAP(NAME, NAME, NAME)
#undef NAME
    };
    for (size_t i = 0; i < COUNT(of_trainers); i++)
        if (strcmp(of_trainers[i], name) == 0)
            return "every trainer has an option of that name already";
    bool ok = isalpha((unsigned char)*name) || *name == '_';
    for (const char *at = name; *at && ok; at++) ok = isalnum((unsigned char)*at) || *at == '_';
    return ok ? NULL : "a name has letters, digits and '_' alone";
}

/* Whether an option may have the value v or the bound v: a size is whole, a number is an f32's. */
static bool is_possible(const ModelOption *o, double v) {
    if (!o->dim) return fabs(v) <= (double)FLT_MAX;
    return v >= 1 && v <= INT32_MAX && v == floor(v);
}

bool module_option_fits(const ModelOption *o) {
    if (!is_possible(o, o->first) || !is_possible(o, o->least) || !is_possible(o, o->most))
        return false;
    double first = o->dim ? o->first : (double)(float)o->first;
    return o->least <= first && first <= o->most;
}

ModelOption *module_option_of(const Module *m, const Op *op) {
    for (int i = 0; op->kind == OP_INPUT && i < m->options.n; i++)
        if (!m->options.v[i].dim && strcmp(m->options.v[i].input, op->name) == 0)
            return &m->options.v[i];
    return NULL;
}

/* ---- variables and functions --------------------------------------------------------- */
/* Adds a variable. */
Var *var_new(Module *m, VarKind k, const char *path, Type t, Init init, Span at) {
    CTX_HOLDS(m->ctx, !var_find(m, path), at);
    Var *v = NEW(m->a, Var);
    v->kind = k;
    v->path = arena_strndup(m->a, path, strlen(path));
    v->type = t;
    v->init = init;
    v->id = m->vars.n;
    v->span = at;
    vec_push(m->a, &m->vars, v);
    enter_name(m, NAMES_VAR, v->path, v);
    return v;
}

/* The variable of the role, or NULL. */
Var *var_of_role(const Module *m, VarRole role) {
    for (int i = 0; i < m->vars.n; i++)
        if (m->vars.v[i]->role == role) return m->vars.v[i];
    return NULL;
}

/* The type that the model gives the variable, before any transposition. */
Type var_written_type(const Var *v) {
    Type t = v->type;
    for (int i = 0; i < t.rank; i++) t.dim[i] = v->type.dim[(i + v->transposed) % t.rank];
    return t;
}

Var *var_find(const Module *m, const char *path) {
    return find_named(m, NAMES_VAR, path);
}

/* Finds a C function. Linear, since a model has few. */
Extern *extern_find(const Module *m, const char *name) {
    for (int i = 0; i < m->externs.n; i++)
        if (strcmp(m->externs.v[i]->name, name) == 0) return m->externs.v[i];
    return NULL;
}

/* Adds a C function. */
Extern *extern_new(Module *m, const char *name, const char *file, Span at) {
    CTX_HOLDS(m->ctx, !extern_find(m, name), at);
    Extern *f = NEW(m->a, Extern);
    f->name = arena_strndup(m->a, name, strlen(name));
    f->file = arena_strndup(m->a, file, strlen(file));
    f->id = m->externs.n;
    f->span = at;
    vec_push(m->a, &m->externs, f);
    return f;
}

/* Records a note; false: it was there. */
bool module_note_of(Module *m, const char *func, Span at, bool stops, const char *text) {
    const char *key = arena_printf(m->a, "%s %u %u %u %s", func, at.file, at.line, at.col, text);
    if (strmap_has(&m->noted, key)) return false;
    strmap_put(m->a, &m->noted, key, NULL);
    vec_push(m->a, &m->notes, ((Note){func, at, stops, text}));
    return true;
}

/* Records a note about a function. */
void module_note(Module *m, const Func *f, Span at, bool stops, const char *text) {
    if (f && at.line) module_note_of(m, f->name, at, stops, text);
}

/* Adds a function. */
Func *func_new(Module *m, const char *name) {
    Func *f = NEW(m->a, Func);
    int phase = text_find(&text_Phase, name, strlen(name));
    f->name = arena_strndup(m->a, name, strlen(name));
    f->phase = phase < 0 ? PHASE_NONE : (Phase)phase;
    vec_push(m->a, &m->funcs, f);
    enter_name(m, NAMES_FUNC, f->name, f);
    return f;
}

/* Adds the function of a phase. */
Func *func_new_phase(Module *m, Phase phase) {
    return func_new(m, text_Phase.word[phase]);
}

/* The function of a phase, or NULL. */
Func *func_of(const Module *m, Phase phase) {
    for (int i = 0; i < m->funcs.n; i++)
        if (m->funcs.v[i]->phase == phase) return m->funcs.v[i];
    return NULL;
}

/* Adds the body of a loop, before its function. */
Func *func_new_body(Module *m, Func *f) {
    const char *name = NULL;
    do {
        name = arena_printf(m->a, "%s.loop", f->name);
        if (f->n_bodies++) name = arena_printf(m->a, "%s%d", name, f->n_bodies);
    } while (func_find(m, name));
    Func *body = func_new(m, name);
    body->body = true;
    int at = m->funcs.n - 1;
    for (; at > 0 && m->funcs.v[at] != f; at--) m->funcs.v[at] = m->funcs.v[at - 1];
    m->funcs.v[at] = body;
    return body;
}

/* Finds a function, from the last one on, since a body stands right before its loop's function. A
 * pass may have dropped a function whose name is in the table. */
Func *func_find(const Module *m, const char *name) {
    for (int i = find_named(m, NAMES_FUNC, name) ? m->funcs.n - 1 : -1; i >= 0; i--)
        if (strcmp(m->funcs.v[i]->name, name) == 0) return m->funcs.v[i];
    return NULL;
}
