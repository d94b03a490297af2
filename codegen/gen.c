/* Building one kernel: scopes, registers, statements, arguments.
 *
 * A scope is a statement list that can still grow; the open ones form a chain
 * from the kernel's list to the innermost loop.  A loop is linked into its parent
 * only when it is closed, so a statement put into an outer scope while an inner
 * one is open comes before the inner loop: that is all the code motion there is. */
#include "codegen/lower/lower.h"
#include "ir/text.h"
#include "runtime/exec/blocks.h"

#include <string.h>

/* ---- scopes ------------------------------------------------------------------ */
/* A new open scope inside `parent`; owner: the loop or `if` whose body it is. */
static Scope *new_scope(Gen *g, Scope *parent, LStmt *owner) {
    Scope *s = NEW(g->a, Scope);
    s->parent = parent;
    s->owner = owner;
    s->tail = &s->head;
    s->depth = parent ? parent->depth + 1 : 0;
    s->open = true;
    return s;
}

/* Appends a statement to a scope. */
static void append_stmt(Scope *s, LStmt *stmt) {
    *s->tail = stmt;
    s->tail = &stmt->next;
}

bool cg_scope_open(const Gen *g, const Scope *s) {
    for (const Scope *c = g->scope; c; c = c->parent)
        if (c == s) return true;
    return false;
}

Scope *cg_reg_scope(const Gen *g, const LReg *r) {
    return g->reg_scope.v[r->id];
}

Scope *cg_innermost_scope(const Gen *g, int n, LReg *const *regs) {
    Scope *innermost = g->root;
    for (int i = 0; i < n; i++) {
        Scope *scope = cg_reg_scope(g, regs[i]);
        if (scope->depth > innermost->depth) innermost = scope;
    }
    return innermost;
}

/* Begins a new kernel, whose name is made of the model's, the function's and op's names. */
void cg_begin_kernel(Gen *g, Lower *lo, const Op *op, const char *suffix) {
    *g = (Gen){.lo = lo, .a = lo->a, .span = op->span};
    ir_marks_start(lo->computed);
    g->k = NEW(g->a, LKernel);
    g->k->span = op->span;
    g->k->name = arena_printf(g->a, "%s_%s_%s%s", cg_ident(g->a, lo->m->name),
                              cg_ident(g->a, lo->f->name), cg_value_name(lo, op), suffix);
    g->root = g->scope = new_scope(g, NULL, NULL);
}

/* ---- what nobody reads ---------------------------------------------------------- */
/* Records that an argument is used. */
static void mark_argument(bool *used, const LBuf *b) {
    if (b && b->kind != LB_LOCAL) used[b->id] = true;
}

/* Records the arguments that the statements use. */
static void mark_arguments(const LStmt *s, bool *used) {
    for (; s; s = s->next) {
        mark_argument(used, s->buf);
        mark_argument(used, s->ptr);
        mark_arguments(s->body, used);
    }
}

/* Removes arguments that no statement uses. */
static void drop_arguments(Gen *g) {
    int n = 0;
    bool *used = NEWN(g->a, bool, (size_t)g->k->bufs.n + 1);
    mark_arguments(g->k->body, used);
    for (int i = 0; i < g->k->bufs.n; i++) {
        LBuf *b = g->k->bufs.v[i];
        if (!used[b->id]) continue;
        b->id = n;
        g->arg_buf.v[n] = g->arg_buf.v[i];
        g->k->bufs.v[n++] = b;
    }
    g->k->bufs.n = g->arg_buf.n = n;
}

/* Removes unused values, again and again, then unused arguments. */
static void drop_dead_values(Gen *g) {
    int *n_reads = NEWN(g->a, int, (size_t)g->reg_scope.n);
    do {
        memset(n_reads, 0, (size_t)g->reg_scope.n * sizeof *n_reads);
        loop_count_reads(g->k->body, n_reads);
    } while (loop_drop_values(&g->k->body, n_reads));
    drop_arguments(g);
}

LKernel *cg_finish_kernel(Gen *g) {
    CTX_HOLDS(g->lo->c, g->scope == g->root, g->k->span);
    g->k->body = g->root->head;
    drop_dead_values(g);
    loop_number_registers(g->k->body, &g->k->n_regs);
    return g->k;
}

/* ---- statements ----------------------------------------------------------------- */
/* Makes a new scalar register of element type dt, which is defined in scope s. hint: the start of
 * its printed name. */
LReg *cg_reg(Gen *g, DType dt, const char *hint, Scope *s) {
    LReg *r = NEW(g->a, LReg);
    r->id = g->reg_scope.n;
    r->dt = dt;
    r->hint = hint;
    vec_push(g->a, &g->reg_scope, s);
    return r;
}

/* Makes a statement of a kind, at the current source position; the caller fills and appends it. */
static LStmt *new_stmt(Gen *g, LStmtKind kind) {
    LStmt *s = NEW(g->a, LStmt);
    s->kind = kind;
    s->span = g->span;
    return s;
}

LReg *cg_let(Gen *g, LFn fn, OpKind op, DType dt, const char *hint, int n, LReg *const *arg) {
    Scope *scope = cg_innermost_scope(g, n, arg);
    LStmt *st = new_stmt(g, L_LET);
    st->fn = fn;
    st->op = op;
    st->n_arg = n;
    for (int i = 0; i < n; i++) st->arg[i] = arg[i];
    st->dst = cg_reg(g, dt, hint, scope);
    st->dst->def = st;
    append_stmt(scope, st);
    return st->dst;
}

/* The register with this constant or size, defined once per kernel. */
static LReg *memoised_constant(Gen *g, ConstMemo want) {
    for (int i = 0; i < g->consts.n; i++) {
        ConstMemo *known = &g->consts.v[i];
        if (known->fn != want.fn || known->dt != want.dt) continue;
        if (want.fn == L_FN_SIZE ? expr_eq(known->size, want.size)
                                 : !memcmp(&known->imm, &want.imm, sizeof want.imm))
            return known->reg;
    }
    LStmt *st = new_stmt(g, L_LET);
    st->fn = want.fn;
    st->imm = want.imm;
    st->size = want.size;
    st->dst = want.reg = cg_reg(g, want.dt, want.fn == L_FN_SIZE ? "n" : "c", g->root);
    st->dst->def = st;
    append_stmt(g->root, st);
    vec_push(g->a, &g->consts, want);
    return want.reg;
}

/* The register with constant v. */
LReg *cg_const(Gen *g, DType dt, double v) {
    return memoised_constant(g, (ConstMemo){.fn = L_FN_CONST, .dt = dt, .imm = v});
}

LReg *cg_size(Gen *g, const Expr *e) {
    return memoised_constant(g, (ConstMemo){.fn = L_FN_SIZE, .dt = DT_I64, .size = e});
}

/* The result of an integer operation or comparison on two indices. */
LReg *cg_index(Gen *g, LFn fn, LReg *x, LReg *y) {
    bool is_comparison = fn == L_FN_ILT || fn == L_FN_IGE || fn == L_FN_IEQ;
    return cg_let(g, fn, 0, is_comparison ? DT_I1 : DT_I64, is_comparison ? "is" : "i", 2,
                  (LReg *[]){x, y});
}

/* The register x converted to type dt; x itself if it has this type. */
LReg *cg_cast(Gen *g, LReg *x, DType dt) {
    return x->dt == dt ? x : cg_let(g, L_FN_OP, OP_CAST, dt, x->hint, 1, &x);
}

/* Appends a load. From a read-only buffer it is placed as far out as its indices allow; from one
 * that the kernel writes, at the current place. */
static LStmt *append_load(Gen *g, LBuf *b, LReg *const *idx, const char *hint) {
    Scope *s = b->written || b->kind == LB_LOCAL ? g->scope : cg_innermost_scope(g, b->rank, idx);
    LStmt *st = new_stmt(g, L_LOAD);
    st->buf = b;
    for (int i = 0; i < b->rank; i++) st->idx[i] = idx[i];
    st->dst = cg_reg(g, b->dt, hint, s);
    st->dst->def = st;
    append_stmt(s, st);
    return st;
}

LReg *cg_load(Gen *g, LBuf *b, LReg *const *idx, const char *hint) {
    return append_load(g, b, idx, hint)->dst;
}

/* Loads value op from its buffer. If the kernel writes another value to that buffer, op is the
 * buffer's earlier contents, which the load is marked to read. */
LReg *cg_load_value(Gen *g, LBuf *b, LReg *const *idx, const Op *op) {
    LStmt *st = append_load(g, b, idx, op->hint);
    const Op *base = cg_info(g->lo, op)->base;
    st->before_write = b->written && b->value && cg_info(g->lo, b->value)->base != base;
    if (st->before_write) b->value_before = base;
    return st->dst;
}

/* Appends a store or accumulation at the current place. */
static LStmt *append_write(Gen *g, LStmtKind kind, LBuf *b, LReg *const *idx, LReg *v) {
    LStmt *st = new_stmt(g, kind);
    st->buf = b;
    st->src = v;
    for (int i = 0; i < b->rank; i++) st->idx[i] = idx[i];
    b->written = true;
    append_stmt(g->scope, st);
    return st;
}

/* Appends a store of v to the element of b at these indices. */
void cg_store(Gen *g, LBuf *b, LReg *const *idx, LReg *v) {
    append_write(g, L_STORE, b, idx, v);
}

void cg_acc(Gen *g, RedKind red, LBuf *b, LReg *const *idx, LReg *v) {
    append_write(g, L_ACC, b, idx, v)->red = red;
}

/* ---- loops ------------------------------------------------------------------------- */
/* Opens a loop with this kind of range: what follows is in its body until the scope is closed. */
static LStmt *open_loop(Gen *g, LRangeKind range, const char *hint) {
    LStmt *st = new_stmt(g, L_FOR);
    st->range = range;
    g->scope = new_scope(g, g->scope, st);
    st->var = cg_reg(g, DT_I64, hint, g->scope);
    st->var->def = st;
    return st;
}

LReg *cg_open_for(Gen *g, const Expr *extent, const char *hint) {
    LStmt *st = open_loop(g, LR_EXTENT, hint);
    st->extent = extent;
    return st->var;
}

/* Opens the parallel loop of the kernel, over 0 .. extent - 1; *var gets its variable. */
LStmt *cg_open_parallel(Gen *g, const Expr *extent, const char *hint, LReg **var) {
    LStmt *st = open_loop(g, LR_EXTENT, hint);
    st->extent = extent;
    st->sched.parallel = true;
    g->parallel_scope = g->scope;
    *var = st->var;
    return st;
}

LReg *cg_open_segment(Gen *g, Map *m, LReg *at, const char *hint) {
    LBuf *ptr = cg_arg_map(g, m, LB_MAP_PTR);
    bool sorted = map_is_sorted(m);
    LBuf *perm = sorted ? NULL : cg_arg_map(g, m, LB_MAP_PERM);
    LStmt *st = open_loop(g, LR_SEGMENT, sorted ? hint : "k");
    st->ptr = ptr;
    st->at = at;
    LReg *e = sorted ? st->var : cg_cast(g, cg_load(g, perm, &st->var, hint), DT_I64);
    SegVar sv = {.var = e, .pos = st->var, .map = m, .at = at};
    vec_push(g->a, &g->segs, sv);
    return e;
}

/* Opens a loop over chunk number `chunk` of n_chunks equal parts of 0 .. extent - 1; bounds: the
 * array with the chunks' limits where they are not equal, or NULL. Returns its variable. */
LReg *cg_open_chunk(Gen *g, LReg *chunk, const Expr *n_chunks, const Expr *extent, LBuf *bounds,
                    const char *hint) {
    LStmt *st = open_loop(g, LR_CHUNK, hint);
    st->at = chunk;
    st->n_chunks = n_chunks;
    st->ptr = bounds;
    st->extent = extent;
    return st->var;
}

void cg_open_if(Gen *g, LReg *cond) {
    LStmt *st = new_stmt(g, L_IF);
    st->cond = cond;
    g->scope = new_scope(g, g->scope, st);
}

/* Closes the innermost scope and links its loop or `if` into the list around it. A loop without
 * loops in it, unless it runs over a segment, becomes a vector loop, and a short one is unrolled.
 */
LStmt *cg_close_scope(Gen *g) {
    Scope *s = g->scope;
    LStmt *st = s->owner;
    st->body = s->head;
    s->open = false;
    g->scope = s->parent;
    append_stmt(g->scope, st);
    if (st->kind == L_FOR && st->range != LR_SEGMENT && !loop_has_loop(st->body)) {
        int64_t extent, max_unrolled = pass_threshold(g->lo->c, PASS_T_LOWER_COLUMNS);
        st->sched.vector = true;
        st->sched.unroll =
            st->range == LR_EXTENT && expr_is_const(st->extent, &extent) && extent <= max_unrolled;
    }
    return st;
}

/* ---- buffers ------------------------------------------------------------------------ */
/* A name that no other argument or local of the kernel has: `want`, or that with a number. */
static const char *unique_name(Gen *g, const char *want) {
    const char *name = want;
    for (int i = 2; strmap_has(&g->names, name); i++) name = arena_printf(g->a, "%s_%d", want, i);
    strmap_put(g->a, &g->names, name, g);
    return name;
}

/* Declares a local array of constant extents in the current scope. */
LBuf *cg_local_array(Gen *g, DType dt, int rank, const int64_t *n, const char *hint) {
    LBuf *b = NEW(g->a, LBuf);
    b->kind = LB_LOCAL;
    b->id = g->k->locals.n;
    b->name = unique_name(g, hint);
    b->dt = dt;
    b->rank = rank;
    for (int i = 0; i < rank; i++) b->dim[i] = expr_const(g->a, n[i]);
    b->written = true;
    vec_push(g->a, &g->k->locals, b);
    LStmt *st = new_stmt(g, L_LOCAL);
    st->buf = b;
    append_stmt(g->scope, st);
    return b;
}

/* Declares a local scalar in the current scope. */
LBuf *cg_local(Gen *g, DType dt, const char *hint) {
    return cg_local_array(g, dt, 0, NULL, hint);
}

/* Whether the buffer has these dimensions. */
static bool same_dims(const LBuf *b, int rank, const Expr *const *dim) {
    if (b->rank != rank) return false;
    for (int i = 0; i < rank; i++)
        if (!expr_eq(b->dim[i], dim[i])) return false;
    return true;
}

/* The place in the hash table of arguments for buffer number buf with these dimensions: it holds
 * the argument's number plus 1, or 0. */
static int *find_slot(const Gen *g, int buf, int rank, const Expr *const *dim) {
    unsigned mask = (unsigned)g->n_arg_table - 1, i = (unsigned)buf * 2654435761u & mask;
    for (; g->arg_table[i]; i = (i + 1) & mask) {
        int at = g->arg_table[i] - 1;
        if (g->arg_buf.v[at] == buf && same_dims(g->k->bufs.v[at], rank, dim)) break;
    }
    return &g->arg_table[i];
}

/* The same place, after growing the table so that it is at most half full. */
static int *arg_slot(Gen *g, int buf, int rank, const Expr *const *dim) {
    if (2 * (g->k->bufs.n + 1) > g->n_arg_table) {
        g->n_arg_table = g->n_arg_table ? 2 * g->n_arg_table : 32;
        g->arg_table = NEWN(g->a, int, (size_t)g->n_arg_table);
        for (int i = 0; i < g->k->bufs.n; i++) {
            const LBuf *b = g->k->bufs.v[i];
            *find_slot(g, g->arg_buf.v[i], b->rank, b->dim) = i + 1;
        }
    }
    return find_slot(g, buf, rank, dim);
}

/* The kernel's argument for buffer number buf with these dimensions, added if it is new. */
static LBuf *add_argument(Gen *g, LBufKind kind, int buf, const char *name, DType dt, int rank,
                          const Expr *const *dim) {
    int *slot = arg_slot(g, buf, rank, dim);
    if (*slot) return g->k->bufs.v[*slot - 1];
    LBuf *b = NEW(g->a, LBuf);
    b->kind = kind;
    b->id = g->k->bufs.n;
    b->name = unique_name(g, name);
    b->dt = dt;
    b->rank = rank;
    for (int i = 0; i < rank; i++) b->dim[i] = dim[i];
    vec_push(g->a, &g->k->bufs, b);
    vec_push(g->a, &g->arg_buf, buf);
    *slot = g->k->bufs.n;
    return b;
}

/* The name of the argument that holds op: that of the column, variable or input where it is one. */
static const char *short_name(Gen *g, const Op *op) {
    const PBuf *b = g->lo->p->bufs.v[cg_buf(g->lo, op)];
    if (b->kind == PB_DATA) return cg_ident(g->a, b->col->name);
    if (b->kind == PB_VAR) return cg_ident(g->a, b->var->path);
    if (b->io_name) return cg_ident(g->a, b->io_name);
    return cg_value_name(g->lo, cg_info(g->lo, op)->base);
}

/* The argument that holds op, under the dimensions of type `as`. */
LBuf *cg_arg_value(Gen *g, const Op *op, const Type *as) {
    const Expr *dim[MAX_RANK];
    for (int i = 0; i < as->rank; i++) dim[i] = as->dim[i]->size;
    LBuf *b =
        add_argument(g, LB_VALUE, cg_buf(g->lo, op), short_name(g, op), op->type.dt, as->rank, dim);
    if (!b->value) b->value = op;
    return b;
}

/* The argument that holds op, as a one-dimensional array of all its elements. */
LBuf *cg_arg_flat(Gen *g, const Op *op) {
    const Expr *n_elements = cg_count(g->lo, &op->type);
    LBuf *b = add_argument(g, LB_VALUE, cg_buf(g->lo, op), short_name(g, op), op->type.dt, 1,
                           &n_elements);
    if (!b->value) b->value = op;
    return b;
}

LBuf *cg_arg_partial(Gen *g, int buf, int number, DType dt, int rank, const Expr *const *dim) {
    LBuf *b = add_argument(g, LB_VALUE, buf, "partial", dt, rank, dim);
    b->partial = number + 1;
    return b;
}

LBuf *cg_arg_map(Gen *g, Map *m, LBufKind array) {
    static const char *const suffix[] = {
        [LB_MAP_IDX] = "", [LB_MAP_PTR] = "_ptr", [LB_MAP_PERM] = "_perm"};
    const Expr *one = expr_const(g->a, 1);
    const Expr *n = array == LB_MAP_PTR ? expr_add(g->a, m->to->size, one) : m->from->size;
    LBuf *b = add_argument(g, array, cg_map_buf(g->lo, m, array, NULL),
                           arena_printf(g->a, "%s%s", text_MapKind.word[m->kind], suffix[array]),
                           array == LB_MAP_PTR ? DT_I64 : DT_I32, 1, &n);
    b->map = m;
    return b;
}

/* The argument with the targets of map m, permuted into the segment order of map `order`. */
LBuf *cg_arg_map_by(Gen *g, Map *m, Map *order) {
    const char *name =
        arena_printf(g->a, "%s_by_%s", text_MapKind.word[m->kind], text_MapKind.word[order->kind]);
    int buf = cg_map_buf(g->lo, m, LB_MAP_IDX, order);
    LBuf *b = add_argument(g, LB_MAP_IDX, buf, name, DT_I32, 1, &m->from->size);
    b->map = m;
    b->sorted_by = order;
    return b;
}

/* The argument with the row keys of random numbers for space s: ids of its rows that do not depend
 * on the order in which rows are stored, on batches or on partitions. The text of the kernel calls
 * it `logical`. */
LBuf *cg_arg_global_ids(Gen *g, Space *s) {
    const Expr *n = s->size;
    LBuf *b = add_argument(g, LB_GLOBAL_IDS, cg_global_ids_buf(g->lo, s), "logical", DT_I32, 1, &n);
    b->space = s;
    return b;
}

LBuf *cg_arg_chunk_bounds(Gen *g, Space *s) {
    const Expr *n = expr_const(g->a, RT_SUM_CHUNKS + 1);
    LBuf *b =
        add_argument(g, LB_CHUNK_BOUNDS, cg_chunk_bounds_buf(g->lo, s), "cuts", DT_I64, 1, &n);
    b->space = s;
    return b;
}

LBuf *cg_arg_rng_key(Gen *g, int stream) {
    const Expr *n = expr_const(g->a, 2);
    LBuf *b = add_argument(g, LB_KEY, cg_key_buf(g->lo, stream),
                           arena_printf(g->a, "key%d", stream), DT_I32, 1, &n);
    b->stream = stream;
    return b;
}

/* ---- environments --------------------------------------------------------------------- */
/* The environment `up` with an index for dimension `dim` added. */
const Env *cg_bind(Gen *g, const Env *up, const Space *dim, LReg *r) {
    Env *e = NEW(g->a, Env);
    e->up = up;
    e->space = dim;
    e->reg = r;
    return e;
}

LReg *cg_lookup(const Env *env, const Space *dim) {
    while (env && env->space != dim) env = env->up;
    return env ? env->reg : NULL;
}
