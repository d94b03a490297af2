/* The register that holds a value at an index.
 *
 * A stored value is loaded; a fused one is computed, its operands asked for at
 * their own indices.  What was computed once in a scope that is still open is
 * found again in the memo, so a value used twice at the same index is computed
 * once, and common index arithmetic likewise. */
#include "codegen/lower/lower.h"
#include "ir/text.h"

#include <string.h>

/* ---- memo ------------------------------------------------------------------------ */
/* The head of the hash chain of memoised values of an op, map or space, the newest first. */
static int *memo_chain_head(Gen *g, const void *what) {
    uint64_t h = (uint64_t)(uintptr_t)what * 0x9e3779b97f4a7c15u;
    return &g->memo_last[h >> (64 - CG_MEMO_BITS)];
}

/* The register that holds a value at these n indices, if it was computed in a scope that is still
 * open; NULL = it was not. */
static LReg *find_memoised(Gen *g, const void *what, int n, LReg *const *key) {
    for (int i = *memo_chain_head(g, what); i; i = g->memo.v[i - 1].prev) {
        const Memo *m = &g->memo.v[i - 1];
        if (m->what == what && m->n == n && !memcmp(m->key, key, (size_t)n * sizeof *key) &&
            cg_scope_open(g, cg_reg_scope(g, m->reg)))
            return m->reg;
    }
    return NULL;
}

/* Remembers that `reg` holds the value at these n indices. */
static void memoise(Gen *g, const void *what, int n, LReg *const *key, LReg *reg) {
    int *last = memo_chain_head(g, what);
    Memo m = {.what = what, .n = n, .reg = reg, .prev = *last};
    for (int i = 0; i < n; i++) m.key[i] = key[i];
    vec_push(g->a, &g->memo, m);
    *last = g->memo.n;
}

/* ---- walks -------------------------------------------------------------------------- */
/* Begins a walk over the ops that a row computes. */
void cg_walk_start(Gen *g) {
    ir_marks_start(g->lo->row_marks);
    g->walk_maps.n = 0;
}

bool cg_walk_visit(Gen *g, const Op *op, const Map *through) {
    int i = 0;
    while (i < g->walk_maps.n && g->walk_maps.v[i] != through) i++;
    if (i == g->walk_maps.n && i < CG_PLACES - 1) vec_push(g->a, &g->walk_maps, through);
    return ir_marks_first(g->lo->row_marks, op->id * CG_PLACES + i);
}

/* ---- maps -------------------------------------------------------------------------- */
/* The register with the target of index `from` under map m, such as src(e): the segment's own row,
 * a remembered value, or a load from the index array. */
LReg *cg_map_at(Gen *g, Map *m, LReg *from) {
    const SegVar *segment = NULL;
    for (int i = g->segs.n - 1; i >= 0 && !segment; i--)
        if (g->segs.v[i].var == from) segment = &g->segs.v[i];
    if (segment && segment->map == m) return segment->at;
    LReg *to = find_memoised(g, m, 1, &from);
    if (to) return to;
    bool is_sorted_by_segment = segment && segment->pos != segment->var;
    LBuf *idx =
        is_sorted_by_segment ? cg_arg_map_by(g, m, segment->map) : cg_arg_map(g, m, LB_MAP_IDX);
    LReg *at = is_sorted_by_segment ? segment->pos : from;
    to = cg_cast(g, cg_load(g, idx, &at, text_MapKind.word[m->kind]), DT_I64);
    memoise(g, m, 1, &from, to);
    return to;
}

/* Emits the test whether a partial map has a target for `from`; NULL: the map is total. */
static LReg *emit_is_mapped(Gen *g, Map *m, LReg *from) {
    LReg *to = cg_map_at(g, m, from);
    return map_is_partial(m) ? cg_index(g, L_FN_IGE, to, cg_size(g, expr_const(g->a, 0))) : NULL;
}

/* ---- values that need a branch: 0 outside of it -------------------------------------- */
/* A value that is computed under a condition and is 0 otherwise. */
typedef struct {
    LBuf *cell;
    Scope *back;
} Branch;

/* Begins a value that is computed under a condition and is 0 otherwise: declares its cell and sets
 * it to 0, in the innermost scope that defines the result's indices (key [n]), but inside the
 * parallel loop, as each iteration has its own cell. The caller then opens the `if` and stores the
 * value. Indices that are valid only under the condition must be copied into the `if`
 * (copy_index_into_branch()). */
static Branch begin_branch(Gen *g, const Op *op, int n, LReg *const *key) {
    Branch b = {.back = g->scope};
    g->scope = cg_innermost_scope(g, n, key);
    if (g->parallel_scope && g->scope->depth < g->parallel_scope->depth &&
        cg_scope_open(g, g->parallel_scope))
        g->scope = g->parallel_scope;
    b.cell = cg_local(g, op->type.dt, "cell");
    cg_store(g, b.cell, NULL, cg_const(g, op->type.dt, 0));
    return b;
}

/* Ends a value that begin_branch() began: statements are added after the branch again. Returns the
 * value's register. */
static LReg *end_branch(Gen *g, Branch branch, const Op *op) {
    LReg *r = cg_load(g, branch.cell, NULL, op->hint);
    g->scope = branch.back;
    return r;
}

/* A copy of index i that is defined in the open branch only, so that loads at it are not moved out
 * of the branch. */
static LReg *copy_index_into_branch(Gen *g, LReg *i) {
    LReg *inner = cg_reg(g, DT_I64, i->hint, g->scope);
    LStmt *st = NEW(g->a, LStmt);
    st->kind = L_LET;
    st->span = g->span;
    st->fn = L_FN_IADD;
    st->dst = inner;
    inner->def = st;
    st->n_arg = 2;
    st->arg[0] = i;
    st->arg[1] = cg_size(g, expr_const(g->a, 0));
    *g->scope->tail = st;
    g->scope->tail = &st->next;
    return inner;
}

/* Emits a gathered value: the operand at the map's target, or 0 where a partial map has none. */
static LReg *emit_gather(Gen *g, const Op *op, const Env *env, int n, LReg *const *key) {
    LReg *from = cg_lookup(env, op->map->from);
    LReg *to = cg_map_at(g, op->map, from);
    LReg *valid = emit_is_mapped(g, op->map, from);
    if (!valid) return cg_value(g, op->in[0], cg_bind(g, env, op->map->to, to));
    Branch b = begin_branch(g, op, n, key);
    cg_open_if(g, valid);
    LReg *v = cg_value(g, op->in[0], cg_bind(g, env, op->map->to, copy_index_into_branch(g, to)));
    cg_store(g, b.cell, NULL, v);
    cg_close_scope(g);
    return end_branch(g, b, op);
}

/* Emits one element of a concatenation: a branch for each operand. op->over: the spaces of both
 * operands and of the result, along the dimension that is concatenated. key[n]: the registers that
 * index the element. */
static LReg *emit_concat(Gen *g, const Op *op, const Env *env, int n, LReg *const *key) {
    Branch b = begin_branch(g, op, n, key);
    LReg *i = cg_lookup(env, op->over[2]), *split = cg_size(g, op->over[0]->size);
    for (int k = 0; k < 2; k++) {
        LReg *in = cg_index(g, k ? L_FN_IGE : L_FN_ILT, i, split);
        cg_open_if(g, in);
        LReg *j = copy_index_into_branch(g, i);
        if (k) j = cg_index(g, L_FN_ISUB, j, split);
        cg_store(g, b.cell, NULL, cg_value(g, op->in[k], cg_bind(g, env, op->over[k], j)));
        cg_close_scope(g);
    }
    return end_branch(g, b, op);
}

/* ---- views ------------------------------------------------------------------------- */
/* The product of the sizes of n dimensions. */
static const Expr *size_product(Gen *g, Space *const *dims, int n) {
    const Expr *e = expr_const(g->a, 1);
    for (int i = 0; i < n; i++) e = expr_mul(g->a, e, dims[i]->size);
    return e;
}

/* The row-major index over n dimensions, from their indices in env. */
static LReg *flatten_index(Gen *g, Space *const *dims, int n, const Env *env) {
    LReg *i = n ? cg_lookup(env, dims[0]) : cg_size(g, expr_const(g->a, 0));
    for (int k = 1; k < n; k++) {
        i = cg_index(g, L_FN_IMUL, i, cg_size(g, dims[k]->size));
        i = cg_index(g, L_FN_IADD, i, cg_lookup(env, dims[k]));
    }
    return i;
}

/* Binds n dimensions to the loop variables from which index `whole` was computed; NULL = it was not
 * computed from these dimensions. */
static const Env *bind_known_parts(Gen *g, const Env *env, Space *const *dims, int n,
                                   const LReg *whole) {
    for (int i = 0; i < g->splits.n; i++) {
        Split *s = &g->splits.v[i];
        if (s->index != whole || s->n != n) continue;
        if (memcmp(s->space, dims, (size_t)n * sizeof *dims)) continue;
        for (int k = 0; k < n; k++) env = cg_bind(g, env, dims[k], s->part[k]);
        return env;
    }
    return NULL;
}

/* Binds n dimensions to the parts of the row-major index `whole`, by division and remainder where
 * they are not known. */
static const Env *split_index(Gen *g, const Env *env, Space *const *dims, int n, LReg *whole) {
    const Env *known = bind_known_parts(g, env, dims, n, whole);
    if (known) return known;
    for (int k = n - 1; k > 0; k--) {
        LReg *size = cg_size(g, dims[k]->size);
        env = cg_bind(g, env, dims[k], cg_index(g, L_FN_IREM, whole, size));
        whole = cg_index(g, L_FN_IDIV, whole, size);
    }
    return n ? cg_bind(g, env, dims[0], whole) : env;
}

/* Finds the smallest numbers of dimensions, from number i of one type and number j of the other,
 * whose sizes have equal products; all that is left where there are none. */
static void match_groups(Gen *g, const Type *from, int i, const Type *to, int j, int *n_from,
                         int *n_to) {
    for (int total = 2; total <= from->rank - i + to->rank - j; total++)
        for (*n_from = 1; *n_from < total && *n_from <= from->rank - i; (*n_from)++) {
            *n_to = total - *n_from;
            if (*n_to > to->rank - j) continue;
            if (expr_eq(size_product(g, from->dim + i, *n_from),
                        size_product(g, to->dim + j, *n_to)))
                return;
        }
    *n_from = from->rank - i;
    *n_to = to->rank - j;
}

const Env *cg_view_env(Gen *g, const Op *op, const Env *env) {
    const Type *view = &op->type, *operand = &op->in[0]->type;
    const Env *out = env;
    for (int i = 0, j = 0, ni, nj; i < view->rank || j < operand->rank; i += ni, j += nj) {
        ni = nj = 1;
        if (i < view->rank && j < operand->rank && view->dim[i] == operand->dim[j]) {
            out = cg_bind(g, out, operand->dim[j], cg_lookup(env, view->dim[i]));
            continue;
        }
        match_groups(g, view, i, operand, j, &ni, &nj);
        out = split_index(g, out, operand->dim + j, nj, flatten_index(g, view->dim + i, ni, env));
    }
    return out;
}

/* The dimensions of the view's operand that together are dimension `dim` of the view; returns how
 * many, 0 = there are none. */
int cg_view_split(Gen *g, const Op *op, const Space *dim, Space *const **parts) {
    const Type *view = &op->type, *operand = &op->in[0]->type;
    for (int i = 0, j = 0, ni, nj; i < view->rank && j < operand->rank; i += ni, j += nj) {
        ni = nj = 1;
        if (view->dim[i] == operand->dim[j]) continue;
        match_groups(g, view, i, operand, j, &ni, &nj);
        *parts = operand->dim + j;
        if (view->dim[i] == dim) return ni == 1 ? nj : 0;
    }
    return 0;
}

/* Finds how a view among the fused operands of op splits dimension `axis`; returns the number of
 * parts, 0 = no view does. Ops visited before in the walk had none. */
static int find_view_split(Gen *g, const Op *op, const Space *axis, Space *const **parts) {
    if (!cg_is_inline(g, op) || !ir_marks_first(g->lo->marks, op->id)) return 0;
    if (op->kind == OP_VIEW) return cg_view_split(g, op, axis, parts);
    int n = 0;
    for (int i = 0; i < op->n_in && op_has(op, OPT_ELEM) && n < 2; i++)
        n = find_view_split(g, op->in[i], axis, parts);
    return n;
}

/* The dimensions that a view under op has in place of `axis`; returns how many, 0 = no view splits
 * it. */
int cg_value_split(Gen *g, const Op *op, const Space *axis, Space *const **parts) {
    ir_marks_start(g->lo->marks);
    return find_view_split(g, op, axis, parts);
}

/* ---- random: runtime/exec/rng.h says what the row and the column are -------- */
/* Whether random numbers for rows of the space are keyed by global row ids: edges, and rows that a
 * partition moved. */
static bool has_global_ids(const Gen *g, const Space *s) {
    bool moves = s->kind == SP_NODE || s->kind == SP_GRAPH;
    return s->kind == SP_EDGE || (moves && g->lo->p->partitioned && plan_is_partitioned_space(s));
}

/* The row key of random numbers for the row with index i: its global id, so that results do not
 * depend on sampling or partition. */
static LReg *random_row_key(Gen *g, Space *s, LReg *i) {
    if (s->kind == SP_NZ) {
        Map *row = map_row(g->lo->m, s);
        return random_row_key(g, row->to, cg_map_at(g, row, i));
    }
    if (!has_global_ids(g, s)) return i;
    LReg *r = find_memoised(g, s, 1, &i);
    if (r) return r;
    r = cg_cast(g, cg_load(g, cg_arg_global_ids(g, s), &i, "row"), DT_I64);
    memoise(g, s, 1, &i, r);
    return r;
}

LReg *cg_random(Gen *g, const Op *op, const Env *env) {
    const Type *t = &op->type;
    LReg *zero = cg_size(g, expr_const(g->a, 0)), *one = cg_size(g, expr_const(g->a, 1));
    LReg *row = zero, *col = zero;
    if (t->rank) {
        LReg *i = cg_lookup(env, t->dim[0]);
        row = random_row_key(g, t->dim[0], i);
        bool is_sparse = t->dim[0]->kind == SP_NZ;
        if (is_sparse) col = cg_map_at(g, map_nzcol(g->lo->m, t->dim[0]), i);
        if (t->rank > 1) {
            LReg *rest = flatten_index(g, t->dim + 1, t->rank - 1, env);
            LReg *width = is_sparse ? cg_size(g, size_product(g, t->dim + 1, t->rank - 1)) : NULL;
            col =
                is_sparse ? cg_index(g, L_FN_IADD, cg_index(g, L_FN_IMUL, col, width), rest) : rest;
        }
    }
    LBuf *key = cg_arg_rng_key(g, op->stream);
    LReg *arg[] = {cg_load(g, key, &zero, "k0"), cg_load(g, key, &one, "k1"), row, col};
    return cg_let(g, L_FN_RANDOM, 0, DT_F32, "u", 4, arg);
}

/* ---- everything ------------------------------------------------------------------------------ */
/* Emits the value of an elementwise op at env. */
static LReg *emit_elementwise(Gen *g, const Op *op, const Env *env) {
    CTX_HOLDS(g->lo->c, op_has(op, OPT_ELEM), op->span);
    LReg *arg[4] = {0};
    for (int i = 0; i < op->n_in; i++) arg[i] = cg_value(g, op->in[i], env);
    return cg_let(g, L_FN_OP, op->kind, op->type.dt, op->hint, op->n_in, arg);
}

/* Emits the computation of op at env. key: its n indices. */
static LReg *emit_compute(Gen *g, const Op *op, const Env *env, int n, LReg *const *key) {
    switch (op->kind) {
    case OP_CONST:
        return cg_const(g, op->type.dt, op->imm);
    case OP_IOTA:
        return cg_cast(g, cg_lookup(env, op->type.dim[0]), op->type.dt);
    case OP_SIZE:
        return cg_cast(g, cg_size(g, op->over[0]->size), op->type.dt);
    case OP_RANDOM:
        return cg_random(g, op, env);
    case OP_COPY:
    case OP_DETACH:
    case OP_STORE_AS:
        return cg_value(g, op->in[0], env);
    case OP_GATHER:
        return emit_gather(g, op, env, n, key);
    case OP_VALID: {
        LReg *from = cg_lookup(env, op->map->from), *zero = cg_size(g, expr_const(g->a, 0));
        return cg_index(g, L_FN_IGE, cg_map_at(g, op->map, from), zero);
    }
    case OP_INDEX:
        return cg_cast(g, cg_map_at(g, op->map, cg_lookup(env, op->map->from)), DT_I32);
    case OP_SEGMENT:
    case OP_REDUCE:
    case OP_CONTRACT:
        return cg_reduce_inline(g, op, env);
    case OP_ARGMAX:
        return cg_argmax_inline(g, op, env);
    case OP_VIEW:
        return cg_value(g, op->in[0], g->flat_index ? env : cg_view_env(g, op, env));
    case OP_CONCAT:
        return emit_concat(g, op, env, n, key);
    case OP_SLICE: {
        LReg *i = cg_lookup(env, op->over[1]), *off = cg_size(g, op->off);
        env = cg_bind(g, env, op->over[0], cg_index(g, L_FN_IADD, i, off));
        return cg_value(g, op->in[0], env);
    }
    default:
        return emit_elementwise(g, op, env);
    }
}

/* Emits the load of stored value op at n indices. */
static LReg *emit_load(Gen *g, const Op *op, int n, LReg *const *key) {
    if (g->flat_index && n) return cg_load_value(g, cg_arg_flat(g, op), &g->flat_index, op);
    return cg_load_value(g, cg_arg_value(g, op, &op->type), key, op);
}

/* Records that the kernel computes op: reports ask, and passes that look for library calls. */
void cg_record_computed(Gen *g, const Op *op) {
    if (ir_marks_first(g->lo->computed, op->id)) vec_push(g->a, &g->k->computes, op);
}

/* Sets the values that the kernel computes and stores. */
void cg_set_roots(Gen *g, const Op *const *roots, int n) {
    g->roots = roots;
    g->n_roots = n;
    for (int i = n - 1; i >= 0; i--) cg_info(g->lo, roots[i])->root = i;
}

/* Whether the kernel computes op: it is fused into its users, or a root that is not stored yet. */
bool cg_is_inline(const Gen *g, const Op *op) {
    const OpInfo *info = cg_info(g->lo, op);
    if (info->storage == HOW_INLINE) return true;
    bool is_root = info->root < g->n_roots && g->roots[info->root] == op;
    return is_root && !(g->stored && g->stored[info->root]);
}

/* Fills key with the indices of op at env; returns how many. */
static int indices_of(const Gen *g, const Op *op, const Env *env, LReg **key) {
    int n = op->type.rank;
    if (g->flat_index) {
        key[0] = g->flat_index;
        return n > 0;
    }
    for (int i = 0; i < n; i++) {
        key[i] = cg_lookup(env, op->type.dim[i]);
        if (!key[i])
            ctx_fault(g->lo->c, op->span, "'%s' is asked for where '%s' has no index",
                      op_mnemonic(op->kind), op->type.dim[i]->name);
    }
    return n;
}

LReg *cg_value(Gen *g, const Op *op, const Env *env) {
    LReg *key[MAX_RANK];
    int n = indices_of(g, op, env, key);
    LReg *reg = find_memoised(g, op, n, key);
    if (!reg) reg = cg_from_tile(g, op, n, key);
    if (reg) return reg;
    Span saved = g->span;
    bool inline_it = cg_is_inline(g, op);
    if (inline_it) {
        if (op->span.line) g->span = op->span;
        reg = emit_compute(g, op, env, n, key);
        cg_record_computed(g, op);
        g->span = saved;
    } else {
        reg = emit_load(g, op, n, key);
    }
    memoise(g, op, n, key, reg);
    return reg;
}
