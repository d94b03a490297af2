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
static Scope *scope_new(Gen *g, Scope *parent, LStmt *owner) {
    Scope *s = NEW(g->a, Scope);
    s->parent = parent;
    s->owner = owner;
    s->tail = &s->head;
    s->depth = parent ? parent->depth + 1 : 0;
    s->open = true;
    return s;
}

/* Appends a statement to a scope. */
static void append(Scope *s, LStmt *st) {
    *s->tail = st;
    s->tail = &st->next;
}

/* Whether the scope is open. */
bool cg_scope_open(const Gen *g, const Scope *s) {
    for (const Scope *c = g->scope; c; c = c->parent)
        if (c == s) return true;
    return false;
}

Scope *cg_reg_scope(const Gen *g, const LReg *r) {
    return g->reg_scope.v[r->id];
}

/* The innermost scope that defines one of the registers; the kernel's list without any. */
Scope *cg_innermost_scope(const Gen *g, int n, LReg *const *r) {
    Scope *s = g->root;
    for (int i = 0; i < n; i++) {
        Scope *t = cg_reg_scope(g, r[i]);
        if (t->depth > s->depth) s = t;
    }
    return s;
}

/* Begins a kernel that is named after op. */
void cg_begin_kernel(Gen *g, Lower *lo, const Op *op, const char *suffix) {
    *g = (Gen){.lo = lo, .a = lo->a, .span = op->span};
    ir_marks_start(lo->computed);
    g->k = NEW(g->a, LKernel);
    g->k->span = op->span;
    g->k->name = arena_printf(g->a, "%s_%s_%s%s", cg_ident(g->a, lo->m->name),
                              cg_ident(g->a, lo->f->name), cg_value_name(lo, op), suffix);
    g->root = g->scope = scope_new(g, NULL, NULL);
}

/* Numbers the registers of s and what follows in the order of the text. */
void cg_number_registers(LStmt *s, int *next) {
    for (; s; s = s->next) {
        LReg *defines = s->kind == L_FOR ? s->var : s->dst;
        if (defines) defines->id = (*next)++;
        cg_number_registers(s->body, next);
    }
}

/* ---- what nobody reads ---------------------------------------------------------- */
/* Counts how often each register is read. */
static void count_uses(const LStmt *s, int *uses) {
    for (; s; s = s->next) {
        for (int i = 0; i < s->n_arg; i++) uses[s->arg[i]->id]++;
        bool access = s->kind == L_LOAD || s->kind == L_STORE || s->kind == L_ACC;
        for (int i = 0; access && i < s->buf->rank; i++) uses[s->idx[i]->id]++;
        if (s->src) uses[s->src->id]++;
        if (s->cond) uses[s->cond->id]++;
        if (s->at) uses[s->at->id]++;
        count_uses(s->body, uses);
    }
}

/* Removes values that nobody reads, such as element numbers that are loaded wherever a segment is
 * opened; true if there were some. */
static bool drop_unused(LStmt **at, const int *uses) {
    bool dropped = false;
    for (LStmt *s = *at; s; s = *at) {
        if (s->body) dropped |= drop_unused(&s->body, uses);
        if (s->dst && uses[s->dst->id] == 0) {
            *at = s->next;
            dropped = true;
        } else {
            at = &s->next;
        }
    }
    return dropped;
}

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

/* Removes unused arguments. */
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

/* Removes unused values and arguments. */
static void drop_dead(Gen *g) {
    int *uses = NEWN(g->a, int, (size_t)g->reg_scope.n);
    do {
        memset(uses, 0, (size_t)g->reg_scope.n * sizeof *uses);
        count_uses(g->k->body, uses);
    } while (drop_unused(&g->k->body, uses));
    drop_arguments(g);
}

/* Finishes the kernel. */
LKernel *cg_finish_kernel(Gen *g) {
    CTX_HOLDS(g->lo->c, g->scope == g->root, g->k->span);
    g->k->body = g->root->head;
    drop_dead(g);
    cg_number_registers(g->k->body, &g->k->n_regs);
    return g->k;
}

/* ---- statements ----------------------------------------------------------------- */
/* A new register, defined in scope s. */
LReg *cg_reg(Gen *g, DType dt, const char *hint, Scope *s) {
    LReg *r = NEW(g->a, LReg);
    r->id = g->reg_scope.n;
    r->dt = dt;
    r->hint = hint;
    vec_push(g->a, &g->reg_scope, s);
    return r;
}

/* A new statement. */
static LStmt *new_stmt(Gen *g, LStmtKind kind) {
    LStmt *s = NEW(g->a, LStmt);
    s->kind = kind;
    s->span = g->span;
    return s;
}

/* A scalar function of registers, in the outermost scope where they are all defined. */
LReg *cg_let(Gen *g, LFn fn, OpKind op, DType dt, const char *hint, int n, LReg *const *arg) {
    Scope *s = cg_innermost_scope(g, n, arg);
    LStmt *st = new_stmt(g, L_LET);
    st->fn = fn;
    st->op = op;
    st->n_arg = n;
    for (int i = 0; i < n; i++) st->arg[i] = arg[i];
    st->dst = cg_reg(g, dt, hint, s);
    st->dst->def = st;
    append(s, st);
    return st->dst;
}

/* A constant of the kernel, made once. */
static LReg *constant(Gen *g, ConstMemo want) {
    for (int i = 0; i < g->consts.n; i++) {
        ConstMemo *m = &g->consts.v[i];
        if (m->fn != want.fn || m->dt != want.dt) continue;
        if (want.fn == L_FN_SIZE ? expr_eq(m->size, want.size)
                                 : !memcmp(&m->imm, &want.imm, sizeof want.imm))
            return m->reg;
    }
    LStmt *st = new_stmt(g, L_LET);
    st->fn = want.fn;
    st->imm = want.imm;
    st->size = want.size;
    st->dst = want.reg = cg_reg(g, want.dt, want.fn == L_FN_SIZE ? "n" : "c", g->root);
    st->dst->def = st;
    append(g->root, st);
    vec_push(g->a, &g->consts, want);
    return want.reg;
}

LReg *cg_const(Gen *g, DType dt, double v) {
    return constant(g, (ConstMemo){.fn = L_FN_CONST, .dt = dt, .imm = v});
}

LReg *cg_size(Gen *g, const Expr *e) {
    return constant(g, (ConstMemo){.fn = L_FN_SIZE, .dt = DT_I64, .size = e});
}

LReg *cg_index(Gen *g, LFn fn, LReg *x, LReg *y) {
    bool cmp = fn == L_FN_ILT || fn == L_FN_IGE || fn == L_FN_IEQ;
    return cg_let(g, fn, 0, cmp ? DT_I1 : DT_I64, cmp ? "is" : "i", 2, (LReg *[]){x, y});
}

LReg *cg_cast(Gen *g, LReg *x, DType dt) {
    return x->dt == dt ? x : cg_let(g, L_FN_OP, OP_CAST, dt, x->hint, 1, &x);
}

/* Appends a load: of a read-only buffer as far out as its indices allow; of a buffer that the
 * kernel writes at the current place. */
static LStmt *append_load(Gen *g, LBuf *b, LReg *const *idx, const char *hint) {
    Scope *s = b->written || b->kind == LB_LOCAL ? g->scope : cg_innermost_scope(g, b->rank, idx);
    LStmt *st = new_stmt(g, L_LOAD);
    st->buf = b;
    for (int i = 0; i < b->rank; i++) st->idx[i] = idx[i];
    st->dst = cg_reg(g, b->dt, hint, s);
    st->dst->def = st;
    append(s, st);
    return st;
}

LReg *cg_load(Gen *g, LBuf *b, LReg *const *idx, const char *hint) {
    return append_load(g, b, idx, hint)->dst;
}

/* Loads a value from its buffer. If the kernel writes another value there, this one is the buffer's
 * earlier contents. */
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
    append(g->scope, st);
    return st;
}

void cg_store(Gen *g, LBuf *b, LReg *const *idx, LReg *v) {
    append_write(g, L_STORE, b, idx, v);
}

void cg_acc(Gen *g, RedKind red, LBuf *b, LReg *const *idx, LReg *v) {
    append_write(g, L_ACC, b, idx, v)->red = red;
}

/* ---- loops ------------------------------------------------------------------------- */
/* Opens a loop. */
static LStmt *open_loop(Gen *g, LRangeKind range, const char *hint) {
    LStmt *st = new_stmt(g, L_FOR);
    st->range = range;
    g->scope = scope_new(g, g->scope, st);
    st->var = cg_reg(g, DT_I64, hint, g->scope);
    st->var->def = st;
    return st;
}

LReg *cg_open_for(Gen *g, const Expr *extent, const char *hint) {
    LStmt *st = open_loop(g, LR_EXTENT, hint);
    st->extent = extent;
    return st->var;
}

LStmt *cg_open_parallel(Gen *g, const Expr *extent, const char *hint, LReg **var) {
    LStmt *st = open_loop(g, LR_EXTENT, hint);
    st->extent = extent;
    st->sched.parallel = true;
    g->parallel_scope = g->scope;
    *var = st->var;
    return st;
}

/* Opens a loop over the elements that map m sends to `at`; returns the element. */
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

LReg *cg_open_chunk(Gen *g, LReg *chunk, const Expr *n_chunks, const Expr *extent, LBuf *cuts,
                    const char *hint) {
    LStmt *st = open_loop(g, LR_CHUNK, hint);
    st->at = chunk;
    st->n_chunks = n_chunks;
    st->ptr = cuts;
    st->extent = extent;
    return st->var;
}

void cg_open_if(Gen *g, LReg *cond) {
    LStmt *st = new_stmt(g, L_IF);
    st->cond = cond;
    g->scope = scope_new(g, g->scope, st);
}

/* Whether a loop is among the statements. */
static bool has_loop(const LStmt *s) {
    for (; s; s = s->next)
        if (s->kind == L_FOR || (s->kind == L_IF && has_loop(s->body))) return true;
    return false;
}

/* Closes the innermost scope. A loop without loops in it becomes a vector loop; a short one is
 * unrolled. */
LStmt *cg_close_scope(Gen *g) {
    Scope *s = g->scope;
    LStmt *st = s->owner;
    st->body = s->head;
    s->open = false;
    g->scope = s->parent;
    append(g->scope, st);
    if (st->kind == L_FOR && st->range != LR_SEGMENT && !has_loop(st->body)) {
        int64_t n, max = pass_threshold(g->lo->c, PASS_T_FORM_COLUMNS);
        st->sched.vector = true;
        st->sched.unroll = st->range == LR_EXTENT && expr_is_const(st->extent, &n) && n <= max;
    }
    return st;
}

/* ---- buffers ------------------------------------------------------------------------ */
/* A name that no other argument or local has. */
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
    append(g->scope, st);
    return b;
}

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

/* The place in the hash table of arguments for a buffer with these dimensions: it holds the
 * argument's number from 1, or 0. */
static int *find_slot(const Gen *g, int buf, int rank, const Expr *const *dim) {
    unsigned mask = (unsigned)g->n_arg_table - 1, i = (unsigned)buf * 2654435761u & mask;
    for (; g->arg_table[i]; i = (i + 1) & mask) {
        int at = g->arg_table[i] - 1;
        if (g->arg_buf.v[at] == buf && same_dims(g->k->bufs.v[at], rank, dim)) break;
    }
    return &g->arg_table[i];
}

/* The same, after the table has been grown so that it is at most half full. */
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

/* The kernel's argument for a buffer with these dimensions, added if it is new. */
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

/* The name of an argument. A variable that is updated in place keeps its name. */
static const char *short_name(Gen *g, const Op *op) {
    const PBuf *b = g->lo->p->bufs.v[cg_buf(g->lo, op)];
    if (b->kind == PB_DATA) return cg_ident(g->a, b->col->name);
    if (b->kind == PB_VAR) return cg_ident(g->a, b->var->path);
    if (b->io_name) return cg_ident(g->a, b->io_name);
    return cg_value_name(g->lo, cg_info(g->lo, op)->base);
}

LBuf *cg_arg_value(Gen *g, const Op *op, const Type *as) {
    const Expr *dim[MAX_RANK];
    for (int i = 0; i < as->rank; i++) dim[i] = as->dim[i]->size;
    LBuf *b =
        add_argument(g, LB_VALUE, cg_buf(g->lo, op), short_name(g, op), op->type.dt, as->rank, dim);
    if (!b->value) b->value = op;
    return b;
}

LBuf *cg_arg_flat(Gen *g, const Op *op) {
    const Expr *n = cg_count(g->lo, &op->type);
    LBuf *b = add_argument(g, LB_VALUE, cg_buf(g->lo, op), short_name(g, op), op->type.dt, 1, &n);
    if (!b->value) b->value = op;
    return b;
}

LBuf *cg_arg_partial(Gen *g, int buf, int number, DType dt, int rank, const Expr *const *dim) {
    LBuf *b = add_argument(g, LB_VALUE, buf, "partial", dt, rank, dim);
    b->partial = number + 1;
    return b;
}

LBuf *cg_arg_map(Gen *g, Map *m, LBufKind part) {
    static const char *const suffix[] = {
        [LB_MAP_IDX] = "", [LB_MAP_PTR] = "_ptr", [LB_MAP_PERM] = "_perm"};
    const Expr *one = expr_const(g->a, 1);
    const Expr *n = part == LB_MAP_PTR ? expr_add(g->a, m->to->size, one) : m->from->size;
    LBuf *b = add_argument(g, part, cg_map_buf(g->lo, m, part, NULL),
                           arena_printf(g->a, "%s%s", text_MapKind.word[m->kind], suffix[part]),
                           part == LB_MAP_PTR ? DT_I64 : DT_I32, 1, &n);
    b->map = m;
    return b;
}

LBuf *cg_arg_map_by(Gen *g, Map *m, Map *by) {
    const char *name =
        arena_printf(g->a, "%s_by_%s", text_MapKind.word[m->kind], text_MapKind.word[by->kind]);
    int buf = cg_map_buf(g->lo, m, LB_MAP_IDX, by);
    LBuf *b = add_argument(g, LB_MAP_IDX, buf, name, DT_I32, 1, &m->from->size);
    b->map = m;
    b->sorted_by = by;
    return b;
}

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

/* The argument with the two key words of random stream number `stream` (of the counter-based
 * generator). */
LBuf *cg_arg_rng_key(Gen *g, int stream) {
    const Expr *n = expr_const(g->a, 2);
    LBuf *b = add_argument(g, LB_KEY, cg_key_buf(g->lo, stream),
                           arena_printf(g->a, "key%d", stream), DT_I32, 1, &n);
    b->stream = stream;
    return b;
}

/* ---- environments --------------------------------------------------------------------- */
const Env *cg_bind(Gen *g, const Env *up, const Space *s, LReg *r) {
    Env *e = NEW(g->a, Env);
    e->up = up;
    e->space = s;
    e->reg = r;
    return e;
}

LReg *cg_lookup(const Env *e, const Space *s) {
    while (e && e->space != s) e = e->up;
    return e ? e->reg : NULL;
}
