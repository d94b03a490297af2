/* Hop trimming: in a sampled step a layer computes what later layers read, and no more.
 *
 *     %g = gather src(cites) %h            %g = gather src(cites.0) (first paper.1 of %h)
 *     %s = segment sum dst(cites) %g  ->   %s = segment sum dst(cites.0) %g     [paper.0]
 *     %l = slice %s paper -> paper.0       %l = %s
 *
 * A batch's nodes come by hop and its edges by destination, so what h more layers need are the
 * first rows, whose number the batch knows (runtime/batch/batch.h).  The front end takes the loss
 * of the first rows, the seeds.  Backwards from there: values along destinations are needed as far
 * as their result, those that edges read at their sources one hop further.  Then, forwards, each
 * value is computed over the prefix that is needed; a user that needs less slices, which costs
 * nothing where rows lie outermost.
 *
 * Whatever looks across rows (sums over all nodes, ranks, functions in C, random numbers of a
 * union's edges) gets all of them, and columns of the data are never cut: the slice stands behind
 * them.  Runs before autodiff, so gradients follow.  Cf. trim_to_layer of PyTorch Geometric, which
 * trims by hand. */
#include "passes/rewrite.h"

#include <string.h>

typedef struct {
    PassCtx *p;
    Module *m;
    Func *f;
    Builder b;
    int max_level; /* hops from which on everything is needed */
    struct Fact {
        Space *rows;       /* the one space of its rows, before they are cut */
        bool full;         /* stays as it is, over all rows */
        int prefix_hops;   /* a slice that the front end made: of so many hops; else -1 */
        int level;         /* hops its rows are needed for; -1 = not at all */
    } *fact;               /* by op id */
    VEC(Op *) seed_slices; /* the front end's slices: what they take is that long by now */
} Trim;

/* ---- which rows ------------------------------------------------------------------------- */
/* Whether the space is rows of the data that can be cut. */
static bool is_row_space(const Space *s) {
    return (s->kind == SP_NODE || s->kind == SP_EDGE) && !space_of_batch(s);
}

/* The only space of rows of a type; NULL: none, or several. */
static Space *rows_of(const Type *t, int *n) {
    Space *s = NULL;
    *n = 0;
    for (int i = 0; i < t->rank; i++)
        if (is_row_space(t->dim[i])) s = t->dim[i], ++*n;
    return *n == 1 ? s : NULL;
}

/* Whether the first edges of the relation are those of the first nodes. */
static bool has_prefixes(const Module *m, const Space *s) {
    if (s->kind != SP_EDGE || space_is_sampled(m, s)) return true;
    if (s->rel == REL_REVERSE || s->rel == REL_UNDIRECTED) return false;
    return has_prefixes(m, s->base[0]) && (!s->base[1] || has_prefixes(m, s->base[1]));
}

/* Whether the map leads from edges. */
static bool is_edge_map(const Map *m) {
    return m->kind == MAP_SRC || m->kind == MAP_DST || m->kind == MAP_ORIG;
}

/* The number of hops of the prefix that an existing slice takes, or -1. */
static int prefix_hops_of(const Op *op) {
    int64_t off;
    bool first =
        op->kind == OP_SLICE && op->over[1]->prefix_of && op->over[1]->prefix_of == op->over[0];
    return first && expr_is_const(op->off, &off) && off == 0 ? op->over[1]->hops : -1;
}

/* Whether the operation's rows follow from rows of its operands. */
static bool is_rowwise(const Op *op) {
    switch (op->kind) {
    case OP_IOTA:
    case OP_RANDOM:
    case OP_VALID:
    case OP_INDEX:
    case OP_CONCAT:
    case OP_SLICE:
        return true;
    default:
        return op_has(op, OPT_ELEM | OPT_INDEX | OPT_REDUCE | OPT_VIEW);
    }
}

/* Whether random numbers of the edges depend on their position in a union of relations, which
 * changes where these are cut. (Others depend on the edge's key: runtime/exec/rng.h.) */
static bool has_listed_keys(const Module *m, const Space *s) {
    if (s->kind != SP_EDGE || space_is_sampled(m, s)) return false;
    return s->rel == REL_UNION || (s->base[0] && has_listed_keys(m, s->base[0]));
}

/* Whether the operation must run over all rows. */
static bool is_full(const Module *m, const Op *op) {
    int n;
    Space *s = rows_of(&op->type, &n);
    if (!is_rowwise(op)) return true;
    if (n != 1 || !has_prefixes(m, s) || op_has(op, OPT_SOURCE | OPT_EFFECT | OPT_LIB)) return true;
    if (op->type.layout == LAYOUT_CSR) return true;
    if (op->kind == OP_RANDOM && has_listed_keys(m, s)) return true;
    if (op->kind == OP_SEGMENT && op->map->kind != MAP_DST) return true;
    if (op->map && (!is_edge_map(op->map) || !has_prefixes(m, op->map->from))) return true;
    for (int i = 0; i < op->n_in; i++) {
        int k;
        Space *r = rows_of(&op->in[i]->type, &k);
        if (op->in[i]->type.layout == LAYOUT_CSR || k > 1) return true;
        if (k == 1 && r != s && !op->map) return true;
    }
    for (int i = 0; i < op->n_over; i++)
        if (op->over[i]->kind != SP_DIM && op->kind != OP_IOTA) return true;
    return false;
}

/* Why it must, in a few words. */
static const char *full_reason(const Op *op) {
    int n;
    rows_of(&op->type, &n);
    if (!is_rowwise(op)) return "its rows are not those of what it is made of";
    if (n != 1) return "it has rows of two kinds";
    if (op_has(op, OPT_LIB)) return "a library makes it";
    if (op->kind == OP_SEGMENT && op->map->kind != MAP_DST) return "it sums along sources";
    if (op->kind == OP_RANDOM) return "its numbers go by places in a listing of edges";
    return "what it reads is over all rows";
}

/* Finds the facts of all operations. */
static void find_facts(Trim *t) {
    func_number(t->f);
    t->fact = NEWN(t->p->a, struct Fact, (size_t)t->f->n_ops + 1);
    for (Op *op = t->f->first; op; op = op->next) {
        int n;
        Space *rows = rows_of(&op->type, &n);
        t->fact[op->id] = (struct Fact){rows, is_full(t->m, op), prefix_hops_of(op), -1};
    }
}

/* The number of hops for which `op` needs its operand i. */
static int need_of(const Trim *t, const Op *op, int i) {
    const struct Fact *f = &t->fact[op->id], *x = &t->fact[op->in[i]->id];
    if (f->prefix_hops >= 0) return f->prefix_hops;
    if (f->full || !x->rows) return t->max_level;
    int need = f->level + (op->map && op->map->kind == MAP_SRC);
    return need < t->max_level ? need : t->max_level;
}

/* Finds, backwards, for how many hops each value is needed. */
static void find_levels(Trim *t) {
    for (Op *op = t->f->last; op; op = op->prev) {
        struct Fact *f = &t->fact[op->id];
        if (op_has(op, OPT_EFFECT) || (f->level >= 0 && f->full)) f->level = t->max_level;
        for (int i = 0; i < op->n_in && f->level >= 0; i++) {
            int need = need_of(t, op, i);
            struct Fact *x = &t->fact[op->in[i]->id];
            if (need > x->level) x->level = need;
        }
    }
}

/* ---- rewriting ------------------------------------------------------------------------------ */
/* The first rows of s that `level` more hops need. */
static Space *prefix_space(Trim *t, Space *s, int level) {
    return level >= t->max_level ? s : space_prefix(t->m, s, level, s->span);
}

/* x cut to the rows that `level` needs, before `at`. The tags lead from slice to slice. */
static Op *slice_rows(Trim *t, Op *x, const struct Fact *f, int level, Op *at) {
    Space *from = prefix_space(t, f->rows, f->level), *to = prefix_space(t, f->rows, level);
    if (from == to) return x;
    for (Op *slice = x->tag; slice; slice = slice->tag)
        if (slice->over[1] == to) return slice;
    t->b.at = at;
    b_like(&t->b, x);
    Op *y = b_slice(&t->b, x, from, to, expr_const(t->m->a, 0));
    y->hint = x->hint;
    y->tag = x->tag;
    return x->tag = y;
}

/* The map from the prefix. */
static Map *prefix_map(Trim *t, Map *m, int level) {
    Space *from = prefix_space(t, m->from, level);
    if (m->kind == MAP_SRC) return map_src(t->m, from);
    if (m->kind == MAP_DST) return map_dst(t->m, from);
    return map_orig(t->m, from, m->which);
}

/* Cuts an operation and its operands. Operands were trimmed before. */
static void trim_op(Trim *t, Op *op) {
    const struct Fact *f = &t->fact[op->id];
    for (int i = 0; i < op->n_in; i++) {
        const struct Fact *x = &t->fact[op->in[i]->id];
        if (x->rows) op->in[i] = slice_rows(t, op->in[i], x, need_of(t, op, i), op);
    }
    if (f->prefix_hops >= 0) vec_push(t->p->a, &t->seed_slices, op);
    if (f->full || f->level >= t->max_level) return;
    if (op->map) op->map = prefix_map(t, op->map, f->level);
    Space *to = prefix_space(t, f->rows, f->level);
    for (int i = 0; i < op->n_over; i++)
        if (op->over[i] == f->rows) op->over[i] = to;
    op->type.dim[type_find(&op->type, f->rows)] = to;
}

/* Trims a function. */
static void trim_func(PassCtx *p, Module *m, Func *f) {
    Trim t = {.p = p, .m = m, .f = f, .max_level = m->recipe.sample.n_hops, .b = {.m = m, .f = f}};
    find_facts(&t);
    find_levels(&t);
    int n_trimmed = 0, n_full = 0;
    const Op *first_full = NULL;
    for (Op *op = f->first, *next; op; op = next) {
        next = op->next;
        const struct Fact *x = &t.fact[op->id];
        if (x->level < 0) continue;
        n_trimmed += x->rows && !x->full && x->level < t.max_level;
        if (x->rows && x->full && !op_has(op, OPT_SOURCE))
            n_full++, first_full = first_full ? first_full : op;
        trim_op(&t, op);
    }
    func_keep_users(p->a, f);
    for (int i = 0; i < t.seed_slices.n; i++)
        op_replace_uses(f, t.seed_slices.v[i], t.seed_slices.v[i]->in[0]);
    pass_dce_func(p->a, f);
    if (n_full)
        pass_refusal(p, first_full->span, "trim", "%d values of @%s over all rows, '%s' first: %s",
                     n_full, f->name, pass_named(first_full), full_reason(first_full));
    if (n_trimmed)
        pass_remark(p, m->recipe.sample.span, "trim", "%d values of @%s over the rows needed",
                    n_trimmed, f->name);
}

static bool run(PassCtx *p, Module *m) {
    if (m->recipe.sample.edges != SAMPLE_DIRECTIONAL) return true;
    for (int i = 0; i < m->funcs.n; i++)
        if (module_runs_on_batches(m, m->funcs.v[i]->phase)) trim_func(p, m, m->funcs.v[i]);
    return true;
}

const Pass pass_trim = {
    .name = "trim",
    .summary = "compute in a sampled step only the rows that later layers read",
    .needs = IR_TYPED,
    .breaks = IR_FUSED,
    .run = run,
};
