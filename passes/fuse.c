/* Fusion: decides which values are computed inside their users' kernels and never
 * stored (Op.fused).  The loop structure itself is the lowering's; this is the policy.
 *
 *     %g = gather @src %z                       fused %g
 *     %m = mul %g %norm               ->        fused %m
 *     %y = segment sum @dst %m                  %y, one kernel: no edge tensor is stored
 *
 * Every operation that is not fused is the root of one kernel, which evaluates the
 * fused operations above it in place.  Sources, contractions and library calls are never
 * fused; nor are operands of matrix products, library calls and effects, which must lie in
 * memory.  A row's sum is fused where all that reads it is elementwise, over the same rows.
 *
 * A value with one root is computed there, once per element.  With several roots, or
 * under a root that visits its elements repeatedly (a gather reads a node once per edge, a
 * broadcast once per feature), it is computed again only when that is cheap: less than the
 * traffic of storing it and little to read.  The maximal-fusion
 * set is found backwards, the cuts forwards, and a last backward walk undoes cuts that
 * a later cut made unnecessary.
 *
 * Random masks are recomputed wherever they are used once per element, so forward and
 * backward share no stored mask (as in PyTorch's flash attention); the cost is a few
 * integer operations.  Recompute-or-store by cost follows Halide's compute_root and
 * Chen et al. 2016 in spirit, on a block small enough to need no search. */
#include "ir/guard.h"
#include "passes/rewrite.h"

#include <string.h>

/* The cost of computing a value inside a kernel. */
typedef struct {
    int ops;
    int flops;
    int loads;          /* tensors read */
    bool random_access; /* reads across rows: a transposition */
    bool random;
} Cost;

/* What the pass decides of a value. */
typedef struct {
    unsigned visited;    /* last visit of the walk that counts costs */
    Op *root;            /* the one kernel it would be computed in */
    bool multiple_roots; /* more than one root */
    bool repeated;       /* some root visits its elements repeatedly */
    bool fusible;        /* kind and users allow it */
    bool same_row;       /* from here to the root the same row: op's spaces come first in each */
    Map *via;            /* per entry: the one map along which it is summed; see also astray */
    bool no_single_map;  /* per entry: summed along several maps, stored, or not back to its row */
    bool deferred;       /* an operand's cut was put off to here */
    bool materialised;   /* stored for its cost */
    bool
        replaces_row_sum; /* stored in the stead of a row's sum, which it is the only one to read */
    Cost cost;            /* of computing it in place */
} Node;

typedef struct {
    PassCtx *p;
    Func *f;
    Node *node; /* by op id */
    int **user; /* by op id: ids of users */
    int *n_users;
    Op **op; /* by id */
    int n;
    unsigned walk;       /* of count_cost */
    const Guard **guard; /* by op id: where it is wanted */
} Fuse;

/* A threshold of the pass. */
static int threshold(const Fuse *f, PassThreshold t) {
    return pass_threshold(f->p->ctx, t);
}

/* ---- what may be fused ------------------------------------------------------------ */
/* Whether the value lies in memory already. */
static bool is_source(const Op *op) {
    return op_has(op, OPT_SOURCE);
}

/* Whether the operation sums for each node, edge or graph. (A sum without rows is made in chunks,
 * by two kernels.) */
static bool is_row_sum(const Op *op) {
    if (op->kind != OP_SEGMENT && op->kind != OP_REDUCE) return false;
    for (int i = 0; i < op->type.rank; i++)
        if (op->type.dim[i]->kind != SP_DIM) return true;
    return false;
}

/* Whether the value has a row for each edge. Stored, it would be by far the largest tensor;
 * computed again from the nodes' values that its kernels read in any case, it costs arithmetic. */
static bool is_per_entry(const Op *op) {
    return op->type.rank > 0 && op->type.dim[0]->kind == SP_EDGE;
}

/* Whether a row has few elements, as many as are known at compile time. */
static bool is_short_row(const Fuse *f, const Op *op) {
    int64_t all = 1, n;
    for (int i = 1; i < op->type.rank; i++) {
        if (!expr_is_const(op->type.dim[i]->size, &n)) return false;
        all *= n;
    }
    return op->type.rank > 0 && all > 0 && all <= threshold(f, PASS_T_ROW);
}

/* Whether the kind allows fusion: an element is a function of operand elements at known indices. */
static bool kind_allows(const Op *op) {
    if (is_row_sum(op)) return true;
    if (!op_has(op, OPT_PURE) || is_source(op) || op_has(op, OPT_REDUCE | OPT_LIB)) return false;
    if (op->n_in == 0 || op->kind == OP_SLICE) return true;
    return op_has(op, OPT_ELEM) || op_has(op, OPT_INDEX) || op_has(op, OPT_VIEW);
}

/* Whether c has a space that x has and y has not. */
static bool has_exclusive_dim(const Type *c, const Type *x, const Type *y) {
    for (int i = 0; i < c->rank; i++)
        if (type_has(x, c->dim[i]) && !type_has(y, c->dim[i])) return true;
    return false;
}

/* Whether the contraction is a matrix product, whose operands a library reads from memory. Dot
 * products, one for each row, edge or stored entry, and products with a vector are loops like any
 * other. */
bool pass_is_matrix_product(const Op *op) {
    const Type *x = &op->in[0]->type, *y = &op->in[1]->type, *c = &op->type;
    for (int i = 0; i < c->rank; i++)
        if (c->dim[i]->kind != SP_DIM && type_has(x, c->dim[i]) && type_has(y, c->dim[i]))
            return false;
    return has_exclusive_dim(c, x, y) && has_exclusive_dim(c, y, x);
}

/* Whether the kernel of `user` evaluates operands in place. */
static bool user_allows(const Op *user) {
    if (user->kind == OP_CONTRACT && pass_is_matrix_product(user)) return false;
    return !op_has(user, OPT_EFFECT) && !op_has(user, OPT_LIB);
}

/* Whether `user` reads elements of x more than once. A value is computed in the outermost loop that
 * knows its indices, so a broadcast along the result's inner spaces repeats nothing: f32[e, h] in
 * f32[e, h, f] is computed once per (e, h). */
static bool user_repeats(const Op *user, const Op *x) {
    if (op_has(user, OPT_INDEX)) return true;
    if (user->kind == OP_CONTRACT) return has_exclusive_dim(&user->type, &user->type, &x->type);
    if (!op_has(user, OPT_ELEM)) return false;
    for (int i = 0; i < x->type.rank; i++)
        if (i >= user->type.rank || user->type.dim[i] != x->type.dim[i])
            return x->type.rank < user->type.rank;
    return x->type.rank == 0 && user->type.rank > 0;
}

/* ---- cost ---------------------------------------------------------------------------- */
/* The cost of the operation without its operands. */
static Cost op_cost_alone(const Fuse *f, const Op *op) {
    Cost c = {.flops = op_cost(op->kind),
              .loads = op->kind == OP_INDEX || op->kind == OP_VALID,
              .random_access =
                  op->kind == OP_COPY && pass_is_transpose(op), /* it is read across rows */
              .random = op->kind == OP_RANDOM};
    if (op->kind == OP_SEGMENT || op->kind == OP_REDUCE)
        c.flops = threshold(f, PASS_T_FUSE_CHEAP) + 1; /* never twice */
    return c;
}

/* Whether the value is computed inside its users' kernels. */
static bool is_inlined(const Fuse *f, const Op *op) {
    const Node *n = &f->node[op->id];
    return n->fusible && !n->materialised;
}

/* Adds the cost of computing op in place; what this walk has visited is free. */
static void count_cost(Fuse *f, const Op *op, Cost *c) {
    Cost alone = op_cost_alone(f, op);
    c->ops++;
    c->flops += alone.flops;
    c->loads += alone.loads;
    c->random_access |= alone.random_access;
    c->random |= alone.random;
    for (int i = 0; i < op->n_in; i++) {
        const Op *x = op->in[i];
        Node *n = &f->node[x->id];
        if (n->visited == f->walk) continue;
        n->visited = f->walk;
        if (is_inlined(f, x))
            count_cost(f, x, c);
        else
            c->loads += x->type.rank > 0;
    }
}

/* The cost of computing op, with the operands that are inlined. */
static Cost cost_of(Fuse *f, const Op *op) {
    Cost c = {0};
    f->walk++;
    count_cost(f, op, &c);
    return c;
}

/* Whether the operation has no operands. */
static bool is_leaf(const Op *op) {
    return op->n_in == 0;
}

/* Whether the value is a scalar that a kernel computes once, before its loops. */
static bool is_scalar(const Op *op) {
    return op->type.rank == 0 && !op_has(op, OPT_REDUCE);
}

/* Whether the value may be computed in several kernels, or repeatedly. */
static bool is_cheap(const Fuse *f, const Op *op, const Node *n) {
    const Cost *c = &n->cost;
    int repeated = threshold(f, PASS_T_FUSE_REPEATED);
    if (is_leaf(op)) return !(c->random && n->repeated);
    if (c->random_access || op_has(op, OPT_REDUCE)) return false;
    if (n->repeated && !is_scalar(op)) return !c->random && c->flops <= repeated && c->loads <= 1;
    if (op->kind == OP_GATHER) return c->flops <= repeated && c->loads <= 1;
    return c->flops <= threshold(f, PASS_T_FUSE_CHEAP) && c->loads <= 2;
}

/* Whether a kernel of this cost is within the thresholds. */
static bool fits_kernel(const Fuse *f, const Cost *c) {
    return c->loads <= threshold(f, PASS_T_FUSE_LOADS) &&
           c->flops <= threshold(f, PASS_T_FUSE_FLOPS) && c->ops <= threshold(f, PASS_T_FUSE_OPS);
}

/* ---- walks ------------------------------------------------------------------------------ */
/* Adds a kernel that would compute the value. */
static void add_root(Node *n, Op *root) {
    if (n->root && n->root != root) n->multiple_roots = true;
    n->root = root;
}

/* Whether x's spaces are the first ones of y. */
static bool is_prefix_of(const Op *x, const Op *y) {
    bool same = x->type.rank <= y->type.rank;
    for (int i = 0; i < x->type.rank && same; i++) same = x->type.dim[i] == y->type.dim[i];
    return same;
}

/* Whether `user` is a segment sum of op. */
static bool is_sum_of(const Op *user, const Op *op) {
    return user->kind == OP_SEGMENT && op->type.rank > 0 && user->map->from == op->type.dim[0];
}

/* Whether user computes a row (or entry) of its own from each row of x. */
static bool same_rows(const Op *user, const Op *x) {
    bool kind = op_has(user, OPT_ELEM) || user->kind == OP_REDUCE;
    return kind && user->type.rank > 0 && x->type.rank > 0 && user->type.dim[0] == x->type.dim[0];
}

/* Finds the one map along which an entry's value is summed. */
static void find_summing_map(Fuse *f, const Op *op) {
    Node *n = &f->node[op->id];
    n->via = NULL;
    n->no_single_map = false;
    for (int i = 0; i < f->n_users[op->id]; i++) {
        const Op *u = f->op[f->user[op->id][i]];
        const Node *un = &f->node[u->id];
        Map *via = NULL;
        if (is_sum_of(u, op) && (!is_inlined(f, u) || un->same_row))
            via = u->map;
        else if (same_rows(u, op) && is_inlined(f, u) && !un->no_single_map)
            via = un->via;
        n->no_single_map |= !via || (n->via && n->via != via);
        n->via = via;
    }
}

/* Whether a user reads the row sum x in the row that its kernel makes: elementwise, or for the
 * entries that the kernel sums, so that sums are made one after the other. */
static bool reads_same_row(const Fuse *f, const Op *u, const Op *x) {
    const Node *un = &f->node[u->id];
    if (op_has(u, OPT_ELEM)) return is_prefix_of(x, u) && (!is_inlined(f, u) || un->same_row);
    bool same_map =
        u->kind == OP_GATHER && is_inlined(f, u) && !un->no_single_map && un->via == u->map;
    return same_map && x->kind == OP_SEGMENT && is_short_row(f, x) && map_is_sorted(u->map);
}

/* Whether an entry's sum over its features is read in that entry only. */
static bool stays_in_entry(const Fuse *f, const Op *op) {
    for (int i = 0; i < f->n_users[op->id]; i++) {
        const Op *u = f->op[f->user[op->id][i]];
        if (!is_sum_of(u, op) && !(same_rows(u, op) && is_prefix_of(op, u))) return false;
    }
    return true;
}

/* Finds the kernels that would compute op, and whether one would do so repeatedly, from the
 * decisions about its users. */
static void find_roots(Fuse *f, Op *op) {
    Node *n = &f->node[op->id];
    n->root = NULL;
    n->multiple_roots = n->repeated = false;
    n->same_row = f->n_users[op->id] > 0;
    for (int i = 0; i < f->n_users[op->id]; i++) {
        Op *u = f->op[f->user[op->id][i]];
        const Node *un = &f->node[u->id];
        n->repeated |= user_repeats(u, op);
        n->same_row &= reads_same_row(f, u, op);
        if (is_inlined(f, u)) {
            add_root(n, un->root);
            n->multiple_roots |= un->multiple_roots;
            n->repeated |= un->repeated;
        } else {
            add_root(n, u);
        }
    }
    find_summing_map(f, op);
}

/* Whether a row sum may be computed inside its users' kernel. */
static bool sum_allows(const Fuse *f, const Op *op) {
    if (is_per_entry(op) && op->kind == OP_REDUCE) return stays_in_entry(f, op);
    return f->node[op->id].same_row;
}

/* Whether the operation is a view that must lie in memory: its operand's bytes under other spaces.
 */
static bool is_stored_view(const Fuse *f, const Op *op) {
    return op->kind == OP_VIEW && !f->node[op->id].fusible;
}

/* Whether all users evaluate op in place. */
static bool users_allow(const Fuse *f, const Op *op) {
    for (int i = 0; i < f->n_users[op->id]; i++) {
        const Op *user = f->op[f->user[op->id][i]];
        if (!user_allows(user) || is_stored_view(f, user)) return false;
    }
    return f->n_users[op->id] > 0;
}

/* Whether the model asks for the value to be stored. A constant is always recomputed. */
static bool is_store_hint(const Op *op) {
    return op->ask == ASK_STORE && op->n_in > 0;
}

/* Finds the values that kind and users allow to be fused, backwards. */
static void find_candidates(Fuse *f) {
    for (int i = f->n - 1; i >= 0; i--) {
        f->node[i].fusible = kind_allows(f->op[i]) && users_allow(f, f->op[i]);
        if (is_store_hint(f->op[i])) f->node[i].fusible = false;
        find_roots(f, f->op[i]);
        if (is_row_sum(f->op[i]) && !sum_allows(f, f->op[i])) f->node[i].fusible = false;
    }
}

/* Whether op is computed under a condition, at some cost, and has a user outside of it: then it has
 * a step of its own, which is skipped where the condition does not hold. */
static bool leaves_guard(const Fuse *f, const Op *op, const Node *n) {
    const Guard *g = f->guard[op->id];
    if (!g || !g->worth_test || n->cost.flops <= threshold(f, PASS_T_FUSE_CHEAP)) return false;
    for (int i = 0; i < f->n_users[op->id]; i++)
        if (f->guard[f->user[op->id][i]] != g) return true;
    return false;
}

/* Whether a kernel can have that cost if the model asks for fusion. */
static bool fits_on_request(const Fuse *f, const Cost *c) {
    return c->loads <= threshold(f, PASS_T_FUSE_LOADS) && c->ops <= threshold(f, PASS_T_FUSE_OPS);
}

/* Whether the value must be stored, for its cost or because its users are in other rows or regions.
 */
static bool must_materialise(const Fuse *f, const Op *op, const Node *n) {
    if (is_row_sum(op) && !sum_allows(f, op)) return true;
    if (leaves_guard(f, op, n)) return true;
    if (op->ask == ASK_FUSE) return !fits_on_request(f, &n->cost);
    if (is_per_entry(op) && !n->repeated && !n->cost.random_access && op->kind != OP_SEGMENT)
        return !fits_kernel(f, &n->cost);
    return ((n->multiple_roots || n->repeated) && !is_cheap(f, op, n)) || !fits_kernel(f, &n->cost);
}

/* Whether two types have the same spaces, in any order. */
static bool same_spaces(const Type *x, const Type *y) {
    if (x->rank != y->rank) return false;
    for (int i = 0; i < x->rank; i++)
        if (!type_has(y, x->dim[i])) return false;
    return true;
}

/* The only user, if it can be stored in op's stead: it takes no more room, and what else it reads
 * is read once. */
static Node *deferred_to(Fuse *f, const Op *op) {
    if (pass_is_transpose(op)) return NULL; /* or the user could not be one flat loop */
    const int *u = f->user[op->id];
    for (int i = 1; i < f->n_users[op->id]; i++)
        if (u[i] != u[0]) return NULL;
    const Op *user = f->op[u[0]];
    bool fits_in =
        op_has(user, OPT_ELEM) && user->ask != ASK_FUSE && same_spaces(&user->type, &op->type);
    return fits_in && f->node[u[0]].fusible ? &f->node[u[0]] : NULL;
}

/* Whether a row sum could be fused if its users were stored. */
static bool is_deferrable_sum(const Fuse *f, const Op *op) {
    return is_row_sum(op) && users_allow(f, op) && !is_store_hint(op);
}

/* Decides forwards which values are stored. */
static void materialise(Fuse *f) {
    for (int i = 0; i < f->n; i++) {
        Node *n = &f->node[i];
        n->cost = cost_of(f, f->op[i]);
        n->materialised = n->fusible && (n->deferred || must_materialise(f, f->op[i], n));
        bool sum = !n->fusible && is_deferrable_sum(f, f->op[i]);
        bool may_wait =
            (n->materialised || sum) && fits_kernel(f, &n->cost) && !leaves_guard(f, f->op[i], n);
        Node *heir = may_wait ? deferred_to(f, f->op[i]) : NULL;
        if (!heir) continue;
        n->materialised = false;
        heir->deferred = true;
        heir->replaces_row_sum |= sum || n->replaces_row_sum;
        n->replaces_row_sum = false;
    }
}

/* Whether a row sum can be computed in its users' kernel after all, because they are stored. */
static bool sum_is_fusible(const Fuse *f, const Op *op) {
    return is_deferrable_sum(f, op) && sum_allows(f, op);
}

/* Undoes, backwards, decisions that those about later values made unnecessary. */
static void undo_materialised(Fuse *f) {
    for (int i = f->n - 1; i >= 0; i--) {
        Node *n = &f->node[i];
        find_roots(f, f->op[i]);
        if (!n->fusible && sum_is_fusible(f, f->op[i])) n->fusible = n->materialised = true;
        if (n->materialised)
            n->materialised = n->replaces_row_sum || must_materialise(f, f->op[i], n);
    }
}

/* Stores values in long chains of cheap operations, where each was inlined for the cost it had
 * while its operands were stored. Whether there were any. */
static bool split_chains(Fuse *f) {
    bool any = false;
    for (int i = 0; i < f->n; i++) {
        Node *n = &f->node[i];
        if (!n->fusible || n->materialised || is_leaf(f->op[i])) continue;
        const Cost c = cost_of(f, f->op[i]);
        bool recomputed = n->multiple_roots && !is_per_entry(f->op[i]) && f->op[i]->ask != ASK_FUSE;
        n->materialised = c.ops > threshold(f, PASS_T_FUSE_OPS) ||
                          (recomputed && c.flops > threshold(f, PASS_T_FUSE_AGAIN));
        any |= n->materialised;
    }
    return any;
}

/* Stores row sums whose kernel was split. */
static void split_sums(Fuse *f) {
    for (int i = f->n - 1; i >= 0; i--) {
        Node *n = &f->node[i];
        find_roots(f, f->op[i]);
        n->materialised |= n->fusible && is_row_sum(f->op[i]) && !sum_allows(f, f->op[i]);
    }
}

/* ---- the pass ------------------------------------------------------------------------------ */
/* Which threshold a kernel would exceed, in words. */
static const char *exceeded_text(Fuse *f, const Cost *c) {
    PassThreshold t = c->loads > threshold(f, PASS_T_FUSE_LOADS)   ? PASS_T_FUSE_LOADS
                      : c->flops > threshold(f, PASS_T_FUSE_FLOPS) ? PASS_T_FUSE_FLOPS
                                                                   : PASS_T_FUSE_OPS;
    int is = t == PASS_T_FUSE_LOADS ? c->loads : t == PASS_T_FUSE_FLOPS ? c->flops : c->ops;
    const char *of = t == PASS_T_FUSE_LOADS   ? "tensors"
                     : t == PASS_T_FUSE_FLOPS ? "flops"
                                              : "operations";
    return arena_printf(f->p->a, "with it a kernel has %d %s (--fuse.%s=%d)", is, of,
                        pass_threshold_text(t)->name, threshold(f, t));
}

/* Why the value is stored, in words. */
static const char *materialise_reason(Fuse *f, const Op *op, const Node *n) {
    if (leaves_guard(f, op, n)) return "it is wanted only where a condition holds";
    if (is_row_sum(op) && !sum_allows(f, op)) return "who reads its sum walks other rows";
    if (!fits_kernel(f, &n->cost)) return exceeded_text(f, &n->cost);
    return arena_printf(f->p->a, "%s would compute it again (%d flops, %d tensors)",
                        n->multiple_roots ? "several kernels" : "a gather or broadcast",
                        n->cost.flops, n->cost.loads);
}

/* The option or hint that would have the value fused; NULL: none. */
static const char *remedy(Fuse *f, const Op *op, const Node *n) {
    const Cost *c = &n->cost;
    if (leaves_guard(f, op, n) || (is_row_sum(op) && !sum_allows(f, op))) return NULL;
    if (!fits_kernel(f, c))
        return arena_printf(f->p->a, "a larger --fuse.%s",
                            c->loads > threshold(f, PASS_T_FUSE_LOADS)   ? "max-loads"
                            : c->flops > threshold(f, PASS_T_FUSE_FLOPS) ? "max-flops"
                                                                         : "max-ops");
    if (op->hint && strncmp(op->hint, "d.", 2) != 0)
        return arena_printf(f->p->a, "`fuse %s` where the model names it", op->hint);
    bool recomputable = !c->random_access && !c->random && !op_has(op, OPT_REDUCE);
    if (n->repeated && recomputable && c->loads <= 1 &&
        c->flops > threshold(f, PASS_T_FUSE_REPEATED))
        return arena_printf(f->p->a, "--fuse.repeated-flops=%d", c->flops);
    if (!n->repeated && recomputable && c->loads <= 2 && c->flops > threshold(f, PASS_T_FUSE_CHEAP))
        return arena_printf(f->p->a, "--fuse.cheap-flops=%d", c->flops);
    return NULL;
}

/* Adds the remark about a value. */
static void remark(Fuse *f, const Op *op, const Node *n) {
    const char *what = op->hint ? op->hint : op_mnemonic(op->kind);
    if (is_inlined(f, op)) {
        if (!is_leaf(op))
            pass_remark(f->p, op->span, "fuse", "'%s' is computed in the kernel of '%s'%s%s", what,
                        n->root->hint ? n->root->hint : op_mnemonic(n->root->kind),
                        n->multiple_roots ? " and others" : "",
                        op->ask == ASK_FUSE ? ", as the model asks" : "");
    } else if (is_store_hint(op)) {
        pass_remark(f->p, op->span, "fuse", "'%s' is stored, as the model asks", what);
    } else if (n->materialised) {
        const char *fix = remedy(f, op, n), *why = materialise_reason(f, op, n);
        if (fix)
            pass_refusal_of(f->p, op, fix, "fuse", "'%s' is stored: %s", what, why);
        else
            pass_remark(f->p, op->span, "fuse", "'%s' is stored: %s", what, why);
    } else if (kind_allows(op) && !is_leaf(op)) {
        pass_remark(f->p, op->span, "fuse", "'%s' is stored: a user needs it in memory", what);
    }
}

/* The name of a value for remarks. */
static const char *name_of(const Op *op) {
    return op->kind == OP_OUTPUT ? op->name : op->hint ? op->hint : op_mnemonic(op->kind);
}

/* Which user needs op in memory, in words. */
static const char *memory_user(Fuse *f, const Op *op) {
    for (int i = 0; i < f->n_users[op->id]; i++) {
        const Op *u = f->op[f->user[op->id][i]];
        const char *by = op_has(u, OPT_EFFECT)    ? "it is a result of the phase or of the step"
                         : u->kind == OP_CONTRACT ? "the matrix product '%s' reads it in memory"
                         : op_has(u, OPT_LIB)     ? "the call '%s' reads it in memory"
                                                  : "'%s' shows it in memory";
        if (user_allows(u) && !is_stored_view(f, u)) continue;
        return op_has(u, OPT_EFFECT) ? by : arena_printf(f->p->a, by, name_of(u));
    }
    return "nothing reads it";
}

/* Why the model's request to fuse cannot be met, in words. */
static const char *hint_obstacle(Fuse *f, const Op *op, const Node *n) {
    if (is_source(op)) return "it is data, a parameter or state, which lie in memory";
    if (op->kind == OP_CONTRACT) return "it is a matrix product, which has a step of its own";
    if (op_has(op, OPT_LIB)) return "it is a call, which has a step of its own";
    if (op_has(op, OPT_REDUCE) && !is_row_sum(op)) return "it is a sum over all rows";
    if (!kind_allows(op)) return "it is put together in memory";
    if (!users_allow(f, op)) return memory_user(f, op);
    if (n->materialised || !sum_allows(f, op)) return materialise_reason(f, op, n);
    return "who reads it is stored with it";
}

/* Warns if a hint is not followed, once per line. Hidden layers are results of @embed, which says
 * nothing about the model. */
static void check_hint(Fuse *f, const Op *op, const Node *n) {
    if (f->f->phase == PHASE_EMBED) return;
    const char *why = op->ask == ASK_FUSE && !is_inlined(f, op) ? hint_obstacle(f, op, n)
                      : op->ask == ASK_STORE && op->n_in == 0 && !is_source(op)
                          ? "it is computed of nothing, wherever it is read"
                          : NULL;
    if (!why) return;
    diag_warn(f->p->ctx, DIAG_E0320, ctx_user_span(f->p->ctx, op->span),
              "'%s %s' is not followed in @%s: %s", op->ask == ASK_FUSE ? "fuse" : "store",
              name_of(op), f->f->name, why);
}

/* Lists the users of each value. */
static void link_users(Fuse *f) {
    int *count = func_use_counts(f->p->a, f->f);
    int n = 0;
    for (Op *op = f->f->first; op; op = op->next) f->op[n++] = op;
    for (int i = 0; i < n; i++) f->user[i] = NEWN(f->p->a, int, (size_t)count[i]);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < f->op[i]->n_in; k++) {
            int x = f->op[i]->in[k]->id;
            f->user[x][f->n_users[x]++] = i;
        }
}

/* Decides fusion for a function. */
static void fuse_func(PassCtx *p, Func *fn) {
    func_number(fn);
    size_t n = (size_t)fn->n_ops;
    Fuse f = {.p = p, .f = fn, .n = fn->n_ops};
    f.node = NEWN(p->a, Node, n);
    f.user = NEWN(p->a, int *, n);
    f.n_users = NEWN(p->a, int, n);
    f.op = NEWN(p->a, Op *, n);
    link_users(&f);
    f.guard = ir_guards(p->a, fn, NULL);
    find_candidates(&f);
    materialise(&f);
    undo_materialised(&f);
    if (split_chains(&f)) split_sums(&f);
    for (int i = 0; i < f.n; i++) {
        f.op[i]->fused = is_inlined(&f, f.op[i]) && pass_may_rewrite(p);
        if (p->remarks) remark(&f, f.op[i], &f.node[i]);
        if (f.op[i]->ask) check_hint(&f, f.op[i], &f.node[i]);
    }
}

static bool run(PassCtx *p, Module *m) {
    for (int i = 0; i < m->funcs.n; i++) fuse_func(p, m->funcs.v[i]);
    return true;
}

const Pass pass_fuse = {
    .name = "fuse",
    .summary = "fusion: which values are computed inside their users' kernels",
    .needs = IR_TYPED | IR_NO_CSR,
    .gives = IR_FUSED,
    .run = run,
};
