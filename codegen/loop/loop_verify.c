/* What every kernel must hold, whoever made it; targets rely on it without asking. */
#include <string.h>

#include "codegen/loop_passes/loops.h"

/* A load of what a buffer held before the kernel wrote there, in the loops of `loops`. */
typedef struct {
    const LStmt *load;
    int depth;
    const LStmt *const *loops;
} OldLoad;

typedef VEC(OldLoad) OldLoads;

enum { PATH_MAX_DEPTH = 64 }; /* one bit of a mask each */

typedef struct {
    Ctx *c;
    const LKernel *k;
    bool *defined;           /* registers in scope, by id */
    bool *declared;          /* locals in scope, by id */
    bool *ever_defined;      /* registers defined anywhere */
    bool *ever_declared;     /* locals declared anywhere */
    uint64_t *distinct_over; /* by register: in which of the open loops no two iterations give it
                                one value */
    bool *stored;            /* arguments written so far, by id */
    bool *local_stored;      /* .. and locals */
    OldLoads *old_loads;     /* by argument, so far */
    const LStmt *path[PATH_MAX_DEPTH]; /* the open loops */
    int depth;
    const LStmt *tile; /* the open one; NULL: none, or it is jammed */
    Span span;         /* of the statement being checked */
    bool serial_loop, in_columns, ok;
} Check;

static bool kernel_error(Check *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Adds an error about the current statement; returns false. */
static bool kernel_error(Check *c, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    const char *what = arena_vprintf(c->c->a, fmt, ap);
    va_end(ap);
    diag_add(c->c, DIAG_E0541, c->span, "kernel %s: %s", c->k->name, what);
    return c->ok = false;
}

/* Checks that a register is defined here and has type dt (DT_VOID: any). */
static bool check_register(Check *c, const LReg *r, DType dt) {
    if (!r) return kernel_error(c, "a register is missing");
    if (r->id < 0 || r->id >= c->k->n_regs)
        return kernel_error(c, "register %d is out of range", r->id);
    if (!c->defined[r->id])
        return kernel_error(c, "register %d is used where it is not defined", r->id);
    if (dt != DT_VOID && r->dt != dt)
        return kernel_error(c, "register %d is %s, not %s", r->id, dtype_name(r->dt),
                            dtype_name(dt));
    return true;
}

/* Checks that the statement defines a new register of type dt, and records it as defined. */
static bool check_definition(Check *c, const LStmt *s, DType dt) {
    const LReg *r = loop_result(s);
    if (!r) return kernel_error(c, "a result is missing");
    if (r->id < 0 || r->id >= c->k->n_regs)
        return kernel_error(c, "register %d is out of range", r->id);
    if (c->ever_defined[r->id]) return kernel_error(c, "register %d is defined twice", r->id);
    if (r->def != s) return kernel_error(c, "register %d is another statement's", r->id);
    c->defined[r->id] = c->ever_defined[r->id] = true;
    if (r->dt != dt)
        return kernel_error(c, "register %d is %s, not %s", r->id, dtype_name(r->dt),
                            dtype_name(dt));
    return true;
}

/* ---- memory ------------------------------------------------------------------------ */
/* Whether the buffer is in the kernel's list. */
static bool is_listed(const LBuf *b, int n, LBuf *const *v) {
    return b->id >= 0 && b->id < n && v[b->id] == b;
}

/* Checks that a buffer is an argument, or a local array declared here. */
static bool check_buffer(Check *c, const LBuf *b) {
    if (!b) return kernel_error(c, "a buffer is missing");
    if (b->kind != LB_LOCAL)
        return is_listed(b, c->k->bufs.n, c->k->bufs.v) ||
               kernel_error(c, "%s is no argument", b->name);
    if (!is_listed(b, c->k->locals.n, c->k->locals.v))
        return kernel_error(c, "%s is not listed", b->name);
    return c->declared[b->id] ||
           kernel_error(c, "local %s is used where it is not declared", b->name);
}

/* Checks the declaration of a local array. */
static bool check_local(Check *c, const LBuf *b) {
    if (!b || b->kind != LB_LOCAL || !is_listed(b, c->k->locals.n, c->k->locals.v))
        return kernel_error(c, "a local array that is not listed");
    if (c->ever_declared[b->id]) return kernel_error(c, "local %s is declared twice", b->name);
    c->ever_declared[b->id] = c->declared[b->id] = true;
    for (int i = 0; i < b->rank; i++)
        if (!expr_is_const(b->dim[i], NULL))
            return kernel_error(c, "the size of local %s is not constant", b->name);
    return true;
}

/* ---- old values --------------------------------------------------------------------- */
/* The flag whether the buffer has been written so far. */
static bool *was_stored(const Check *c, const LBuf *b) {
    return b->kind == LB_LOCAL ? &c->local_stored[b->id] : &c->stored[b->id];
}

/* Checks that a load reads what the kernel has written, or, by `load_old`, what the buffer held
 * before while that still exists. No write may precede a load_old of its buffer. A write after it
 * must be to the same element in each loop around both; else an earlier iteration has overwritten
 * what a later one reads. */
static bool check_load(Check *c, const LStmt *s) {
    const LBuf *b = s->buf;
    bool stored = *was_stored(c, b);
    if (s->before_write && (b->kind == LB_LOCAL || !b->written))
        return kernel_error(c, "%s has no old value, as the kernel does not write it", b->name);
    if (s->before_write && stored)
        return kernel_error(c, "%s is overwritten before its old value is read", b->name);
    if (!s->before_write && b->written && !stored)
        return kernel_error(c, "%s is read before it is written", b->name);
    if (!s->before_write) return true;
    OldLoad old = {.load = s, .depth = c->depth};
    const LStmt **path = NEWN(c->c->a, const LStmt *, (size_t)c->depth + 1);
    for (int i = 0; i < c->depth; i++) path[i] = c->path[i];
    old.loops = path;
    vec_push(c->c->a, &c->old_loads[b->id], old);
    return true;
}

/* The loops (as bits, by depth) in each iteration of which the load and the store access the same
 * element, and one that no other iteration accesses. */
static uint64_t loops_at_same_element(const Check *c, const LStmt *load, const LStmt *store) {
    uint64_t loops = 0;
    for (int i = 0; i < store->buf->rank; i++)
        if (load->idx[i] == store->idx[i]) loops |= c->distinct_over[store->idx[i]->id];
    return loops;
}

/* Whether the loop may have more than one iteration. */
static bool has_many_iterations(const LStmt *loop) {
    int64_t n;
    return loop->range != LR_EXTENT || !expr_is_const(loop->extent, &n) || n > 1;
}

/* Checks that a write overwrites no old value that a later iteration still reads. */
static bool check_overwrites(Check *c, const LStmt *s) {
    const LBuf *b = s->buf;
    const OldLoads *old_loads = b->kind == LB_LOCAL ? NULL : &c->old_loads[b->id];
    for (int i = 0; old_loads && i < old_loads->n; i++) {
        uint64_t loops = loops_at_same_element(c, old_loads->v[i].load, s);
        for (int k = 0; k < c->depth && k < old_loads->v[i].depth; k++)
            if (c->path[k] == old_loads->v[i].loops[k] && !(loops >> k & 1) &&
                has_many_iterations(c->path[k]))
                return kernel_error(
                    c, "%s is overwritten before its old value is read in a later iteration",
                    b->name);
    }
    bool *stored = was_stored(c, b);
    if (s->kind == L_ACC && !*stored)
        return kernel_error(c, "%s is added to before it is set", b->name);
    return *stored = true;
}

/* Checks a store or accumulation. */
static bool check_write(Check *c, const LStmt *s) {
    if (!s->buf->written)
        return kernel_error(c, "%s is stored to but not marked as written", s->buf->name);
    return check_overwrites(c, s);
}

/* The loops (as bits) on whose iterations the register of s depends so that no two give the same
 * value: a permutation maps distinct indices to distinct ones, and chunks and segments are
 * disjoint. Of index arithmetic that is so of forms such as v*n + f with f < n; it is not checked.
 */
static uint64_t distinct_loops(const Check *c, const LStmt *s) {
    uint64_t loops = 0;
    switch (s->kind) {
    case L_FOR:
        loops = (uint64_t)1 << c->depth;
        return s->at ? loops | c->distinct_over[s->at->id] : loops;
    case L_LET:
        if (s->fn != L_FN_IADD && s->fn != L_FN_ISUB && s->fn != L_FN_IMUL &&
            !(s->fn == L_FN_OP && s->op == OP_CAST))
            return 0;
        for (int i = 0; i < s->n_arg; i++) loops |= c->distinct_over[s->arg[i]->id];
        return loops;
    case L_LOAD:
        return s->buf->kind == LB_MAP_PERM ? c->distinct_over[s->idx[0]->id] : 0;
    default:
        return 0;
    }
}

/* ---- scalars ----------------------------------------------------------------------- */
/* Checks index arithmetic: two indices in, a register of type `result` out. */
static bool check_index_fn(Check *c, const LStmt *s, DType result) {
    if (s->n_arg != 2) return kernel_error(c, "index arithmetic takes two arguments");
    return check_register(c, s->arg[0], DT_I64) && check_register(c, s->arg[1], DT_I64) &&
           check_definition(c, s, result);
}

/* Checks the arguments of a random number. */
static bool check_random_args(Check *c, const LStmt *s) {
    static const DType key[] = {DT_I32, DT_I32, DT_I64, DT_I64};
    if (s->n_arg != 4) return kernel_error(c, "a random number takes four arguments");
    for (int i = 0; i < 4; i++)
        if (!check_register(c, s->arg[i], key[i])) return false;
    return true;
}

/* Checks a scalar function. */
static bool check_let(Check *c, const LStmt *s) {
    if (!s->dst) return kernel_error(c, "a result is missing");
    switch (s->fn) {
    case L_FN_OP:
        if (!(op_traits(s->op) & OPT_ELEM) || op_arity(s->op) != s->n_arg)
            return kernel_error(c, "'%s' of %d arguments is no scalar function", op_mnemonic(s->op),
                                s->n_arg);
        for (int i = 0; i < s->n_arg; i++)
            if (!check_register(c, s->arg[i], DT_VOID)) return false;
        return check_definition(c, s, s->dst->dt);
    case L_FN_CONST:
        return check_definition(c, s, s->dst->dt);
    case L_FN_SIZE:
        return (s->size || kernel_error(c, "a size is missing")) && check_definition(c, s, DT_I64);
    case L_FN_IADD:
    case L_FN_ISUB:
    case L_FN_IMUL:
    case L_FN_IDIV:
    case L_FN_IREM:
        return check_index_fn(c, s, DT_I64);
    case L_FN_ILT:
    case L_FN_IGE:
    case L_FN_IEQ:
        return check_index_fn(c, s, DT_I1);
    case L_FN_RANDOM:
        return check_random_args(c, s) && check_definition(c, s, DT_F32);
    case L_FN_LE_RANDOM:
        if (!(s->imm >= 0 && s->imm < 1) || (double)(float)s->imm != s->imm)
            return kernel_error(c, "le_random compares an f32 of [0, 1)");
        return check_random_args(c, s) && check_definition(c, s, DT_I1);
    }
    return kernel_error(c, "an unknown scalar function");
}

/* ---- loops ------------------------------------------------------------------------- */
static bool check_list(Check *c, const LStmt *s, int depth);

/* Checks the body of a loop or `if`; what it defines is unknown after it. */
static bool check_body(Check *c, const LStmt *s, int depth) {
    size_t n = (size_t)c->k->n_regs, l = (size_t)c->k->locals.n;
    bool *regs = NEWN(c->c->a, bool, n + l + 1), *locals = regs + n, is_loop = s->kind == L_FOR;
    memcpy(regs, c->defined, n * sizeof *regs);
    memcpy(locals, c->declared, l * sizeof *locals);
    if (is_loop && c->depth == PATH_MAX_DEPTH) return kernel_error(c, "loops nest too deeply");
    bool ok = !is_loop || check_definition(c, s, DT_I64);
    if (ok && is_loop) {
        /* loops of which each iteration gives the variable another value: stores there are apart */
        c->distinct_over[s->var->id] = distinct_loops(c, s);
        c->path[c->depth++] = s;
    }
    ok = ok && check_list(c, s->body, depth + 1);
    c->depth -= is_loop;
    memcpy(c->defined, regs, n * sizeof *regs);
    memcpy(c->declared, locals, l * sizeof *locals);
    return ok;
}

/* Checks the range of a loop. */
static bool check_range(Check *c, const LStmt *s) {
    switch (s->range) {
    case LR_EXTENT:
        return s->extent || kernel_error(c, "a loop has no extent");
    case LR_SEGMENT:
        if (!s->ptr || s->ptr->kind != LB_MAP_PTR)
            return kernel_error(c, "a segment has no bounds");
        return check_buffer(c, s->ptr) && check_register(c, s->at, DT_I64);
    case LR_BEHIND:
        if (!s->own || !s->extent) return kernel_error(c, "a loop has no bounds");
        return s->sched.parallel || kernel_error(c, "rows behind a batch's are of a parallel loop");
    case LR_CHUNK:
        if (!s->extent || !s->n_chunks) return kernel_error(c, "a chunk has no extent");
        if (s->ptr && (s->ptr->kind != LB_CHUNK_BOUNDS || !check_buffer(c, s->ptr)))
            return kernel_error(c, "a chunk is cut by no cuts");
        return check_register(c, s->at, DT_I64);
    }
    return kernel_error(c, "an unknown range");
}

/* Whether the loop can be part of the index of the loop around it: only values stand before it, and
 * nothing after it. */
static bool is_collapsible(const Check *c, const LStmt *s) {
    const LStmt *around = c->depth ? c->path[c->depth - 1] : NULL;
    if (!around || !(around->sched.parallel || around->sched.collapse) || s->next) return false;
    const LStmt *first = around->body;
    while (first && loop_is_value(first)) first = first->next;
    return first == s && s->range == LR_EXTENT;
}

/* Whether n is a power of two. */
static bool is_power_of_2(int n) {
    return n > 0 && (n & (n - 1)) == 0;
}

/* Checks that the loop can be vectorised, flattened, expanded or strip-mined as its schedule says.
 */
static bool check_vectors(Check *c, const LStmt *s) {
    const LSched *sched = &s->sched;
    const int lanes[] = {sched->lanes, sched->flat, sched->expand, sched->strips, sched->rows};
    int64_t extent;
    for (size_t i = 0; i < COUNT(lanes); i++)
        if (lanes[i] && !is_power_of_2(lanes[i]))
            return kernel_error(c, "lanes are a power of two");
    if (sched->lanes && !loop_may_vectorise(c->c->a, c->k, s))
        return kernel_error(c, "the iterations of a vector loop are not independent");
    if (sched->unroll_vectors && (sched->parallel || !loop_extent(s, &extent) ||
                                  extent > sched->lanes * LOOP_WHOLE_VECTORS_MAX))
        return kernel_error(c, "a loop has too many vectors to stand one after the other");
    if (sched->flat && !loop_may_flatten(c->k, s, sched->flat))
        return kernel_error(c, "two loops are no row of whole vectors");
    if (sched->expand && !loop_may_expand(s, sched->expand, sched->prefix))
        return kernel_error(c, "the iterations of a loop cannot be side by side");
    if (sched->strips && (sched->parallel || s->range == LR_CHUNK || !loop_end_of_prefix(s, false)))
        return kernel_error(c, "nothing of a loop can be had for several iterations at once");
    if (sched->jam && (sched->lanes || sched->flat || sched->expand || !loop_jammed_tile(s)))
        return kernel_error(c, "a loop whose iterations are in registers together is no tile");
    if (sched->rows &&
        (!sched->parallel || sched->lanes || !loop_may_vectorise_outer(c->c->a, c->k, s)))
        return kernel_error(c, "the iterations of a loop cannot be side by side in lanes");
    return true;
}

/* Whether the statement is a scalar that a strip-mined loop computes for several iterations at
 * once, and so may compute twice. */
static bool is_in_strip_prefix(const Check *c, const LStmt *s) {
    const LStmt *around = c->depth ? c->path[c->depth - 1] : NULL;
    if (!around || !around->sched.strips) return false;
    const LStmt *end = loop_end_of_prefix(around, false);
    for (const LStmt *p = around->body; p && p != end; p = p->next)
        if (p == s) return true;
    return false;
}

/* Checks that a prefetch is at the start of a loop over entries that is not vectorised, and that it
 * names rows in memory. */
static bool check_prefetch(Check *c, const LStmt *s) {
    const LStmt *around = c->depth ? c->path[c->depth - 1] : NULL,
                *first = around ? around->body : NULL;
    if (s->buf->kind == LB_LOCAL || !s->buf->rank)
        return kernel_error(c, "%s has no rows in memory that could be asked for", s->buf->name);
    if (s->ptr->kind == LB_LOCAL || s->ptr->rank != 1 || dtype_is_float(s->ptr->dt))
        return kernel_error(c, "%s is no index of rows", s->ptr->name);
    while (first && first != s && first->kind == L_PREFETCH) first = first->next;
    const LSched *sched = around ? &around->sched : NULL;
    if (first != s || s->at != around->var || sched->lanes || sched->flat || sched->expand ||
        sched->unroll || sched->rows)
        return kernel_error(c, "what is asked for early stands first in the loop of its entries");
    return s->n_lines || c->tile ||
           kernel_error(c, "there is no tile whose part of a row is asked for");
}

/* Checks a tile of columns. A `jam` loop around it makes it one tile for several heads, which must
 * be possible for all of them (loop_may_tile()); statements in it cannot ask for the tile's part of
 * a row then, so c->tile is not set. */
static bool check_tile(Check *c, const LStmt *s, int depth) {
    const LStmt *around = c->depth ? c->path[c->depth - 1] : NULL;
    const LStmt *jam = around && around->sched.jam && loop_jammed_tile(around) == s ? around : NULL;
    c->tile = jam ? NULL : s;
    bool ok = check_body(c, s, depth);
    c->tile = NULL;
    if (!ok) return false;
    if (!is_power_of_2(s->lanes)) return kernel_error(c, "lanes are a power of two");
    return loop_may_tile(c->k, s, jam) ||
           kernel_error(c, "loops cannot be done for a tile of columns at a time");
}

/* Whether the loop around runs with a row per vector lane. */
static bool is_in_row_lanes(const Check *c) {
    return c->depth && c->path[c->depth - 1]->sched.rows;
}

/* Checks a loop. */
static bool check_loop(Check *c, const LStmt *s, int depth) {
    bool after_serial = c->serial_loop; /* parallel ones come first, one behind the other */
    if (!s->sched.parallel && depth == 0) c->serial_loop = true;
    const bool is_full_range = s->range == LR_EXTENT || s->range == LR_BEHIND;
    if (s->sched.parallel && (after_serial || depth > 0 || !is_full_range))
        return kernel_error(c, "only the first outermost loops may be parallel");
    if (s->sched.balance.n && !s->sched.parallel)
        return kernel_error(c, "a loop that is not parallel is balanced");
    if (s->sched.collapse && !is_collapsible(c, s))
        return kernel_error(c, "a loop cannot be part of the index of the loop around it");
    if (s->sched.share && c->k->threads.kind != LT_TEAM && c->k->threads.kind != LT_BLOCK)
        return kernel_error(c, "a loop is shared by threads that are no team");
    if (s->sched.hub_entries && (!s->sched.parallel || c->k->threads.kind != LT_TEAM))
        return kernel_error(
            c, "a block takes rows with many entries of a loop whose rows have no teams");
    if (s->sched.split_entries && s->sched.share != LS_WAYS && s->sched.share != LS_TEAM)
        return kernel_error(c, "a loop is split among blocks and no threads share it");
    if (s->sched.ahead && s->sched.share != LS_WAYS)
        return kernel_error(c, "a loop is loaded ahead and no ways share it");
    if (s->sched.serial && !is_in_row_lanes(c))
        return kernel_error(c, "no iterations are side by side around a loop that is serial");
    return check_body(c, s, depth) && check_vectors(c, s);
}

/* Whether teams or blocks of threads run the kernel's rows. */
static bool has_thread_group(const Check *c) {
    return c->k->threads.kind == LT_TEAM || c->k->threads.kind == LT_BLOCK;
}

/* Checks a region of feature columns. Registers that it defines are known after it; arrays are not,
 * since lanes have only their columns of them. */
static bool check_columns(Check *c, const LStmt *s, int depth) {
    if (!has_thread_group(c))
        return kernel_error(c, "columns are shared by threads that are no team");
    if (c->in_columns) return kernel_error(c, "columns stand among others");
    if (s->sched.share == LS_WAYS) return kernel_error(c, "columns are no ways' by turns");
    if (s->sched.masked && s->sched.share == LS_TEAM)
        return kernel_error(c, "lanes are masked where all threads take columns");
    for (int i = 0; i < s->in_registers.n; i++) {
        const LBuf *b = s->in_registers.v[i];
        if (b->kind == LB_LOCAL || !b->written)
            return kernel_error(c, "%s is promoted and not written", b->name);
    }
    c->in_columns = true;
    bool ok = check_list(c, s->body, depth);
    c->in_columns = false;
    for (int i = 0; i < c->k->locals.n; i++)
        if (c->k->locals.v[i]->rank && loop_declares(s->body, c->k->locals.v[i]))
            c->declared[i] = false;
    return ok;
}

/* Checks a barrier. */
static bool check_barrier(Check *c) {
    if (!has_thread_group(c) || c->in_columns)
        return kernel_error(c, "threads wait for each other in a team, and not among columns");
    return true;
}

/* Checks that the registers and buffers of the statement's parts are known here, and of the types
 * that these want. */
static bool check_parts(Check *c, const LStmt *s) {
    const unsigned parts = loop_parts[s->kind];
    if (parts & (LP_ELEMENT | LP_AHEAD | LP_BUFFER) && !check_buffer(c, s->buf)) return false;
    for (int i = 0; parts & LP_ELEMENT && i < s->buf->rank; i++)
        if (!check_register(c, s->idx[i], DT_I64)) return false;
    for (int i = 0; parts & LP_BUFFERS && i < s->in_registers.n; i++)
        if (!check_buffer(c, s->in_registers.v[i])) return false;
    if (parts & LP_SOURCE) return check_register(c, s->src, s->buf->dt);
    if (parts & LP_CONDITION) return check_register(c, s->cond, DT_I1);
    if (parts & LP_RANGE) return check_range(c, s);
    return !(parts & LP_AHEAD) || (check_buffer(c, s->ptr) && check_register(c, s->at, DT_I64));
}

/* Checks a statement. */
static bool check_statement(Check *c, const LStmt *s, int depth) {
    if (s->remat && !is_in_strip_prefix(c, s))
        return kernel_error(c, "there are no lanes that a scalar could be taken from instead");
    if (s->packed && c->k->threads.pack < 2)
        return kernel_error(c, "an access is of several elements, and a thread has one");
    if (!check_parts(c, s)) return false;
    switch (s->kind) {
    case L_FOR:
        return check_loop(c, s, depth);
    case L_IF:
        return check_body(c, s, depth);
    case L_PREFETCH:
        return check_prefetch(c, s);
    case L_TILE:
        return check_tile(c, s, depth);
    case L_LET:
        if (!check_let(c, s)) return false;
        c->distinct_over[s->dst->id] = distinct_loops(c, s);
        return true;
    case L_LOAD:
        if (!check_load(c, s) || !check_definition(c, s, s->buf->dt)) return false;
        c->distinct_over[s->dst->id] = distinct_loops(c, s);
        return true;
    case L_STORE:
    case L_ACC:
        return check_write(c, s);
    case L_LOCAL:
        return check_local(c, s->buf);
    case L_COLUMNS:
        return check_columns(c, s, depth);
    case L_BARRIER:
        return check_barrier(c);
    case L_FOLD:
        return has_thread_group(c) ||
               kernel_error(c, "what threads have added up is folded in no team");
    }
    return kernel_error(c, "an unknown statement");
}

/* ---- versions of a parallel loop ---------------------------------------------------- */
/* Whether two neighbouring loops are the two versions of one parallel loop. */
static bool are_versions(const LStmt *first, const LStmt *second) {
    if (!second || second->kind != L_FOR || first->kind != L_FOR) return false;
    const LSched *x = &first->sched, *y = &second->sched;
    return x->where && y->where && !x->is_second && y->is_second && x->max == y->max &&
           x->parallel && y->parallel && expr_eq(x->where, y->where) &&
           expr_eq(first->extent, second->extent);
}

/* Checks two versions of a parallel loop: one of them runs, so each must find memory as it was
 * before both, and both must write the same. */
static bool check_versions(Check *c, const LStmt *s, int depth) {
    size_t n = (size_t)c->k->bufs.n + 1;
    bool *stored_before = NEWN(c->c->a, bool, n), *stored_by_first = NEWN(c->c->a, bool, n);
    OldLoads *old = NEWN(c->c->a, OldLoads, n);
    memcpy(stored_before, c->stored, n * sizeof *stored_before);
    memcpy(old, c->old_loads, n * sizeof *old);
    if (!check_statement(c, s, depth)) return false;
    memcpy(stored_by_first, c->stored, n * sizeof *stored_by_first);
    memcpy(c->stored, stored_before, n * sizeof *stored_before);
    memcpy(c->old_loads, old, n * sizeof *old);
    c->span = loop_place(c->k, s->next);
    if (!check_statement(c, s->next, depth)) return false;
    return !memcmp(stored_by_first, c->stored, n * sizeof *stored_by_first) ||
           kernel_error(c, "the versions of a parallel loop do not write the same");
}

/* Checks a list of statements. */
static bool check_list(Check *c, const LStmt *s, int depth) {
    for (; s; s = s->next) {
        c->span = loop_place(c->k, s);
        bool is_version = are_versions(s, s->next);
        if (s->kind == L_FOR && s->sched.where && !is_version)
            return kernel_error(c, "a version of a parallel loop stands alone");
        if (is_version ? !check_versions(c, s, depth) : !check_statement(c, s, depth)) return false;
        if (is_version) s = s->next;
    }
    return true;
}

/* Checks the numbers of lanes, packs and columns of the kernel's threads. */
static bool check_threads(Check *c) {
    const LThreads *t = &c->k->threads;
    if (t->kind == LT_THREAD && t->pack && !is_power_of_2(t->pack))
        return kernel_error(c, "elements of a thread are a power of two");
    if (t->kind != LT_TEAM && t->kind != LT_BLOCK) return true;
    if ((t->pack && !is_power_of_2(t->pack)) || !is_power_of_2(t->columns) ||
        (t->lanes && !is_power_of_2(t->lanes)))
        return kernel_error(c, "lanes, packs and columns are powers of two");
    return true;
}

/* Checks memory between stages: it stands behind all arguments, and is for sums of one of them. */
static bool check_room(Check *c, const LBuf *b) {
    const int n = loop_n_arguments(c->k);
    if (b->id < n) return kernel_error(c, "%s stands before an argument", b->name);
    const LBuf *of = b->room_of >= 0 && b->room_of < n ? c->k->bufs.v[b->room_of] : NULL;
    return (of && of->kind == LB_VALUE && of->dt == b->dt && of->rank && b->rank) ||
           kernel_error(c, "%s has no pieces of an argument's sums", b->name);
}

/* Checks the kernel's arguments: index arrays are in the order of segments that exist. */
static bool check_arguments(Check *c) {
    for (int i = 0; i < c->k->bufs.n; i++) {
        const LBuf *b = c->k->bufs.v[i];
        if (b->sorted_by && (b->kind != LB_MAP_IDX || b->sorted_by->from != b->map->from ||
                             map_is_sorted(b->sorted_by)))
            return kernel_error(c, "%s cannot be in the order of that map's segments", b->name);
        if (b->kind == LB_ROOM && !check_room(c, b)) return false;
    }
    return true;
}

/* Whether the kernel has several parallel loops, besides versions of one. */
bool loop_is_joined(const LKernel *k) {
    int n = 0;
    for (const LStmt *s = k->body; s; s = s->next)
        n += s->kind == L_FOR && s->sched.parallel && !s->sched.is_second;
    return n > 1;
}

/* Checks a kernel. False after diagnostics. */
bool loop_verify(Ctx *ctx, const Module *m, const LKernel *k) {
    (void)m;
    Check c = {.c = ctx, .k = k, .span = loop_place(k, NULL), .ok = true};
    size_t n = (size_t)k->n_regs + 1, l = (size_t)k->locals.n + 1;
    c.defined = NEWN(ctx->a, bool, n);
    c.ever_defined = NEWN(ctx->a, bool, n);
    c.declared = NEWN(ctx->a, bool, l);
    c.ever_declared = NEWN(ctx->a, bool, l);
    c.distinct_over = NEWN(ctx->a, uint64_t, n);
    c.stored = NEWN(ctx->a, bool, (size_t)k->bufs.n + 1);
    for (int i = 0; i < k->bufs.n; i++) c.stored[i] = k->bufs.v[i]->begun;
    c.local_stored = NEWN(ctx->a, bool, l);
    c.old_loads = NEWN(ctx->a, OldLoads, (size_t)k->bufs.n + 1);
    if (check_arguments(&c) && check_threads(&c)) check_list(&c, k->body, 0);
    return c.ok;
}
