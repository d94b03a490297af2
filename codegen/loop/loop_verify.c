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
    const LStmt *tile; /* that we are in, by itself */
    Span span;         /* of the statement being checked */
    bool serial_loop, in_columns, ok;
} Check;

static bool report(Check *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Adds an error about the current statement; false. */
static bool report(Check *c, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    const char *what = arena_vprintf(c->c->a, fmt, ap);
    va_end(ap);
    diag_add(c->c, DIAG_E0541, c->span, "kernel %s: %s", c->k->name, what);
    return c->ok = false;
}

/* Checks that a register is defined and has the type. */
static bool check_use(Check *c, const LReg *r, DType dt) {
    if (!r) return report(c, "a register is missing");
    if (r->id < 0 || r->id >= c->k->n_regs) return report(c, "register %d is out of range", r->id);
    if (!c->defined[r->id]) return report(c, "register %d is used where it is not defined", r->id);
    if (dt != DT_VOID && r->dt != dt)
        return report(c, "register %d is %s, not %s", r->id, dtype_name(r->dt), dtype_name(dt));
    return true;
}

/* Checks the definition of a register. */
static bool check_define(Check *c, const LStmt *s, DType dt) {
    const LReg *r = s->kind == L_FOR ? s->var : s->dst;
    if (!r) return report(c, "a result is missing");
    if (r->id < 0 || r->id >= c->k->n_regs) return report(c, "register %d is out of range", r->id);
    if (c->ever_defined[r->id]) return report(c, "register %d is defined twice", r->id);
    if (r->def != s) return report(c, "register %d is another statement's", r->id);
    c->defined[r->id] = c->ever_defined[r->id] = true;
    if (r->dt != dt)
        return report(c, "register %d is %s, not %s", r->id, dtype_name(r->dt), dtype_name(dt));
    return true;
}

/* ---- memory ------------------------------------------------------------------------ */
/* Whether the buffer is in the kernel's list. */
static bool is_listed(const LBuf *b, int n, LBuf *const *v) {
    return b->id >= 0 && b->id < n && v[b->id] == b;
}

/* Checks that a buffer may be used. */
static bool check_buffer(Check *c, const LBuf *b) {
    if (!b) return report(c, "a buffer is missing");
    if (b->kind != LB_LOCAL)
        return is_listed(b, c->k->bufs.n, c->k->bufs.v) || report(c, "%s is no argument", b->name);
    if (!is_listed(b, c->k->locals.n, c->k->locals.v))
        return report(c, "%s is not listed", b->name);
    return c->declared[b->id] || report(c, "local %s is used where it is not declared", b->name);
}

/* Checks an access. */
static bool check_element(Check *c, const LBuf *b, LReg *const *idx) {
    if (!check_buffer(c, b)) return false;
    for (int i = 0; i < b->rank; i++)
        if (!check_use(c, idx[i], DT_I64)) return false;
    return true;
}

/* Checks the declaration of a local array. */
static bool check_local(Check *c, const LBuf *b) {
    if (!b || b->kind != LB_LOCAL || !is_listed(b, c->k->locals.n, c->k->locals.v))
        return report(c, "a local array that is not listed");
    if (c->ever_declared[b->id]) return report(c, "local %s is declared twice", b->name);
    c->ever_declared[b->id] = c->declared[b->id] = true;
    for (int i = 0; i < b->rank; i++)
        if (!expr_is_const(b->dim[i], NULL))
            return report(c, "the size of local %s is not constant", b->name);
    return true;
}

/* ---- old values --------------------------------------------------------------------- */
/* Whether the buffer has been written so far. */
static bool *stored_flag(const Check *c, const LBuf *b) {
    return b->kind == LB_LOCAL ? &c->local_stored[b->id] : &c->stored[b->id];
}

/* Checks that a load reads what has been written, or the old value as long as it exists. An update
 * in place reads an element before it is overwritten, in the same iteration of each loop: `for v:
 * for f: %x = load_old y[v, f]; ..; store y[v, f] %z`. A sum accumulated in y before that would be
 * read instead: so no write may stand before a load_old of the same buffer, and one behind it must
 * be to the element that the loops around both have got to, or an earlier iteration has overwritten
 * what a later one reads. */
static bool check_load(Check *c, const LStmt *s) {
    const LBuf *b = s->buf;
    bool stored = *stored_flag(c, b);
    if (s->before_write && (b->kind == LB_LOCAL || !b->written))
        return report(c, "%s has no old value, as the kernel does not write it", b->name);
    if (s->before_write && stored)
        return report(c, "%s is overwritten before its old value is read", b->name);
    if (!s->before_write && b->written && !stored)
        return report(c, "%s is read before it is written", b->name);
    if (!s->before_write) return true;
    OldLoad o = {.load = s, .depth = c->depth};
    const LStmt **path = NEWN(c->c->a, const LStmt *, (size_t)c->depth + 1);
    for (int i = 0; i < c->depth; i++) path[i] = c->path[i];
    o.loops = path;
    vec_push(c->c->a, &c->old_loads[b->id], o);
    return true;
}

/* The loops, as bits, in whose iterations the load and the store access the same element and no
 * other. */
static uint64_t common_loops(const Check *c, const LStmt *load, const LStmt *store) {
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

/* Checks that a write overwrites no old value that is read later. */
static bool check_overwrites(Check *c, const LStmt *s) {
    const LBuf *b = s->buf;
    const OldLoads *old = b->kind == LB_LOCAL ? NULL : &c->old_loads[b->id];
    for (int i = 0; old && i < old->n; i++) {
        uint64_t loops = common_loops(c, old->v[i].load, s);
        for (int k = 0; k < c->depth && k < old->v[i].depth; k++)
            if (c->path[k] == old->v[i].loops[k] && !(loops >> k & 1) &&
                has_many_iterations(c->path[k]))
                return report(c,
                              "%s is overwritten before its old value is read in a later iteration",
                              b->name);
    }
    bool *stored = stored_flag(c, b);
    if (s->kind == L_ACC && !*stored) return report(c, "%s is added to before it is set", b->name);
    return *stored = true;
}

/* Checks a store or accumulation. */
static bool check_write(Check *c, const LStmt *s) {
    if (!check_element(c, s->buf, s->idx) || !check_use(c, s->src, s->buf->dt)) return false;
    if (!s->buf->written)
        return report(c, "%s is stored to but not marked as written", s->buf->name);
    return check_overwrites(c, s);
}

/* The loops over whose iterations the value of the register is distinct: a permutation maps
 * distinct to distinct, and chunks and segments are disjoint. */
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
/* Checks index arithmetic. */
static bool check_index_fn(Check *c, const LStmt *s, DType result) {
    if (s->n_arg != 2) return report(c, "index arithmetic takes two arguments");
    return check_use(c, s->arg[0], DT_I64) && check_use(c, s->arg[1], DT_I64) &&
           check_define(c, s, result);
}

/* Checks the arguments of a random number. */
static bool check_random_args(Check *c, const LStmt *s) {
    static const DType key[] = {DT_I32, DT_I32, DT_I64, DT_I64};
    if (s->n_arg != 4) return report(c, "a random number takes four arguments");
    for (int i = 0; i < 4; i++)
        if (!check_use(c, s->arg[i], key[i])) return false;
    return true;
}

/* Checks a scalar function. */
static bool check_let(Check *c, const LStmt *s) {
    if (!s->dst) return report(c, "a result is missing");
    switch (s->fn) {
    case L_FN_OP:
        if (!(op_traits(s->op) & OPT_ELEM) || op_arity(s->op) != s->n_arg)
            return report(c, "'%s' of %d arguments is no scalar function", op_mnemonic(s->op),
                          s->n_arg);
        for (int i = 0; i < s->n_arg; i++)
            if (!check_use(c, s->arg[i], DT_VOID)) return false;
        return check_define(c, s, s->dst->dt);
    case L_FN_CONST:
        return check_define(c, s, s->dst->dt);
    case L_FN_SIZE:
        return (s->size || report(c, "a size is missing")) && check_define(c, s, DT_I64);
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
        return check_random_args(c, s) && check_define(c, s, DT_F32);
    case L_FN_LE_RANDOM:
        if (!(s->imm >= 0 && s->imm < 1) || (double)(float)s->imm != s->imm)
            return report(c, "le_random compares an f32 of [0, 1)");
        return check_random_args(c, s) && check_define(c, s, DT_I1);
    }
    return report(c, "an unknown scalar function");
}

/* ---- loops ------------------------------------------------------------------------- */
static bool check_list(Check *c, const LStmt *s, int depth);

/* Checks a body; what it defines ends with it. */
static bool check_body(Check *c, const LStmt *s, int depth) {
    size_t n = (size_t)c->k->n_regs, l = (size_t)c->k->locals.n;
    bool *regs = NEWN(c->c->a, bool, n + l + 1), *locals = regs + n, is_loop = s->kind == L_FOR;
    memcpy(regs, c->defined, n * sizeof *regs);
    memcpy(locals, c->declared, l * sizeof *locals);
    if (is_loop && c->depth == PATH_MAX_DEPTH) return report(c, "loops nest too deeply");
    bool ok = !is_loop || check_define(c, s, DT_I64);
    if (ok && is_loop) {
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
        return s->extent || report(c, "a loop has no extent");
    case LR_SEGMENT:
        if (!s->ptr || s->ptr->kind != LB_MAP_PTR) return report(c, "a segment has no bounds");
        return check_buffer(c, s->ptr) && check_use(c, s->at, DT_I64);
    case LR_BEHIND:
        if (!s->own || !s->extent) return report(c, "a loop has no bounds");
        return s->sched.parallel || report(c, "rows behind a batch's are of a parallel loop");
    case LR_CHUNK:
        if (!s->extent || !s->n_chunks) return report(c, "a chunk has no extent");
        if (s->ptr && (s->ptr->kind != LB_CHUNK_BOUNDS || !check_buffer(c, s->ptr)))
            return report(c, "a chunk is cut by no cuts");
        return check_use(c, s->at, DT_I64);
    }
    return report(c, "an unknown range");
}

/* Whether only values stand before the loop in the loop around it, and nothing behind it. */
static bool is_collapsible(const Check *c, const LStmt *s) {
    const LStmt *up = c->depth ? c->path[c->depth - 1] : NULL;
    if (!up || !(up->sched.parallel || up->sched.collapse) || s->next) return false;
    const LStmt *first = up->body;
    while (first && (first->kind == L_LET || first->kind == L_LOAD)) first = first->next;
    return first == s && s->range == LR_EXTENT;
}

/* Whether n is a power of two. */
static bool is_power_of_2(int n) {
    return n > 0 && (n & (n - 1)) == 0;
}

/* Checks that the loop can be vectorised as its schedule says. */
static bool check_vectors(Check *c, const LStmt *s) {
    const LSched *h = &s->sched;
    const int lanes[] = {h->lanes, h->flat, h->expand, h->strips, h->rows};
    int64_t n;
    for (size_t i = 0; i < COUNT(lanes); i++)
        if (lanes[i] && !is_power_of_2(lanes[i])) return report(c, "lanes are a power of two");
    if (h->lanes && !loop_may_vectorise(c->c->a, c->k, s))
        return report(c, "the iterations of a vector loop are not independent");
    if (h->unroll_vectors &&
        (h->parallel || !loop_extent(s, &n) || n > h->lanes * LOOP_WHOLE_VECTORS_MAX))
        return report(c, "a loop has too many vectors to stand one after the other");
    if (h->flat && !loop_may_flatten(c->k, s, h->flat))
        return report(c, "two loops are no row of whole vectors");
    if (h->expand && !loop_may_expand(s, h->expand, h->prefix))
        return report(c, "the iterations of a loop cannot be side by side");
    if (h->strips && (h->parallel || s->range == LR_CHUNK || !loop_end_of_prefix(s, false)))
        return report(c, "nothing of a loop can be had for several iterations at once");
    if (h->jam && (h->lanes || h->flat || h->expand || !loop_jammed_tile(s)))
        return report(c, "a loop whose iterations are in registers together is no tile");
    if (h->rows && (!h->parallel || h->lanes || !loop_may_vectorise_outer(c->c->a, c->k, s)))
        return report(c, "the iterations of a loop cannot be side by side in lanes");
    return true;
}

/* Whether the statement is in the prefix of a strip-mined loop, whose scalars can be computed
 * twice. */
static bool is_in_strip_prefix(const Check *c, const LStmt *s) {
    const LStmt *up = c->depth ? c->path[c->depth - 1] : NULL;
    if (!up || !up->sched.strips) return false;
    const LStmt *end = loop_end_of_prefix(up, false);
    for (const LStmt *p = up->body; p && p != end; p = p->next)
        if (p == s) return true;
    return false;
}

/* Checks that a prefetch stands first in a loop over entries that is not vectorised. */
static bool check_prefetch(Check *c, const LStmt *s) {
    const LStmt *up = c->depth ? c->path[c->depth - 1] : NULL, *p = up ? up->body : NULL;
    if (!check_buffer(c, s->buf) || !check_buffer(c, s->ptr) || !check_use(c, s->at, DT_I64))
        return false;
    if (s->buf->kind == LB_LOCAL || !s->buf->rank)
        return report(c, "%s has no rows in memory that could be asked for", s->buf->name);
    if (s->ptr->kind == LB_LOCAL || s->ptr->rank != 1 || dtype_is_float(s->ptr->dt))
        return report(c, "%s is no index of rows", s->ptr->name);
    while (p && p != s && p->kind == L_PREFETCH) p = p->next;
    const LSched *h = up ? &up->sched : NULL;
    if (p != s || s->at != up->var || h->lanes || h->flat || h->expand || h->unroll || h->rows)
        return report(c, "what is asked for early stands first in the loop of its entries");
    return s->n_lines || c->tile || report(c, "there is no tile whose part of a row is asked for");
}

/* Checks a tile. */
static bool check_tile(Check *c, const LStmt *s, int depth) {
    const LStmt *up = c->depth ? c->path[c->depth - 1] : NULL;
    const LStmt *jam = up && up->sched.jam && loop_jammed_tile(up) == s ? up : NULL;
    for (int i = 0; i < s->n_in_registers; i++)
        if (!check_buffer(c, s->in_registers[i])) return false;
    c->tile = jam ? NULL : s;
    bool ok = check_body(c, s, depth);
    c->tile = NULL;
    if (!ok) return false;
    if (!is_power_of_2(s->lanes)) return report(c, "lanes are a power of two");
    return loop_may_tile(c->k, s, jam) ||
           report(c, "loops cannot be done for a tile of columns at a time");
}

/* Whether the loop around has a row per lane. */
static bool is_in_row_lanes(const Check *c) {
    return c->depth && c->path[c->depth - 1]->sched.rows;
}

/* Checks a loop. */
static bool check_loop(Check *c, const LStmt *s, int depth) {
    bool after = c->serial_loop; /* parallel ones come first, one behind the other */
    if (!s->sched.parallel && depth == 0) c->serial_loop = true;
    const bool whole = s->range == LR_EXTENT || s->range == LR_BEHIND;
    if (s->sched.parallel && (after || depth > 0 || !whole))
        return report(c, "only the first outermost loops may be parallel");
    if (s->sched.balance.n && !s->sched.parallel)
        return report(c, "a loop that is not parallel is balanced");
    if (s->sched.collapse && !is_collapsible(c, s))
        return report(c, "a loop cannot be part of the index of the loop around it");
    if (s->sched.share && c->k->threads.kind != LT_TEAM && c->k->threads.kind != LT_BLOCK)
        return report(c, "a loop is shared by threads that are no team");
    if (s->sched.hub_entries && (!s->sched.parallel || c->k->threads.kind != LT_TEAM))
        return report(c, "a block takes rows with many entries of a loop whose rows have no teams");
    if (s->sched.split_entries && s->sched.share != LS_WAYS)
        return report(c, "a loop is split among blocks and no ways share it");
    if (s->sched.serial && !is_in_row_lanes(c))
        return report(c, "no iterations are side by side around a loop that is serial");
    return check_range(c, s) && check_body(c, s, depth) && check_vectors(c, s);
}

/* Whether teams or blocks run the kernel. */
static bool has_thread_group(const Check *c) {
    return c->k->threads.kind == LT_TEAM || c->k->threads.kind == LT_BLOCK;
}

/* Checks a column region. What it computes is defined behind it, but arrays are not: lanes have
 * their columns. */
static bool check_columns(Check *c, const LStmt *s, int depth) {
    if (!has_thread_group(c)) return report(c, "columns are shared by threads that are no team");
    if (c->in_columns) return report(c, "columns stand among others");
    if (s->sched.share == LS_WAYS) return report(c, "columns are no ways' by turns");
    if (s->sched.masked && s->sched.share == LS_TEAM)
        return report(c, "lanes are masked where all threads take columns");
    if (!check_range(c, s)) return false;
    for (int i = 0; i < s->promoted.n; i++) {
        const LBuf *b = s->promoted.v[i];
        if (!check_buffer(c, b)) return false;
        if (b->kind == LB_LOCAL || !b->written)
            return report(c, "%s is promoted and not written", b->name);
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
        return report(c, "threads wait for each other in a team, and not among columns");
    return true;
}

/* Checks a statement. */
static bool check_stmt(Check *c, const LStmt *s, int depth) {
    if (s->remat && !is_in_strip_prefix(c, s))
        return report(c, "there are no lanes that a scalar could be taken from instead");
    if (s->packed && c->k->threads.pack < 2)
        return report(c, "an access is of several elements, and a thread has one");
    switch (s->kind) {
    case L_FOR:
        return check_loop(c, s, depth);
    case L_IF:
        return check_use(c, s->cond, DT_I1) && check_body(c, s, depth);
    case L_PREFETCH:
        return check_prefetch(c, s);
    case L_TILE:
        return check_tile(c, s, depth);
    case L_LET:
        if (!check_let(c, s)) return false;
        c->distinct_over[s->dst->id] = distinct_loops(c, s);
        return true;
    case L_LOAD:
        if (!check_element(c, s->buf, s->idx) || !check_load(c, s) ||
            !check_define(c, s, s->buf->dt))
            return false;
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
        return check_buffer(c, s->buf) &&
               (has_thread_group(c) ||
                report(c, "what threads have added up is folded in no team"));
    }
    return report(c, "an unknown statement");
}

/* ---- versions of a parallel loop ---------------------------------------------------- */
/* Whether two loops are versions of one parallel loop. */
static bool are_versions(const LStmt *s, const LStmt *t) {
    if (!t || t->kind != L_FOR || s->kind != L_FOR) return false;
    const LSched *x = &s->sched, *y = &t->sched;
    return x->where && y->where && !x->is_second && y->is_second && x->max == y->max &&
           x->parallel && y->parallel && expr_eq(x->where, y->where) &&
           expr_eq(s->extent, t->extent);
}

/* Checks two versions of a loop: one of them runs, and each finds memory as it was before both. */
static bool check_versions(Check *c, const LStmt *s, int depth) {
    size_t n = (size_t)c->k->bufs.n + 1;
    bool *before = NEWN(c->c->a, bool, n), *first = NEWN(c->c->a, bool, n);
    OldLoads *old = NEWN(c->c->a, OldLoads, n);
    memcpy(before, c->stored, n * sizeof *before);
    memcpy(old, c->old_loads, n * sizeof *old);
    if (!check_stmt(c, s, depth)) return false;
    memcpy(first, c->stored, n * sizeof *first);
    memcpy(c->stored, before, n * sizeof *before);
    memcpy(c->old_loads, old, n * sizeof *old);
    c->span = s->next->span;
    if (!check_stmt(c, s->next, depth)) return false;
    return !memcmp(first, c->stored, n * sizeof *first) ||
           report(c, "the versions of a parallel loop do not write the same");
}

/* Checks a list of statements. */
static bool check_list(Check *c, const LStmt *s, int depth) {
    for (; s; s = s->next) {
        c->span = s->span;
        bool versions = are_versions(s, s->next);
        if (s->kind == L_FOR && s->sched.where && !versions)
            return report(c, "a version of a parallel loop stands alone");
        if (versions ? !check_versions(c, s, depth) : !check_stmt(c, s, depth)) return false;
        if (versions) s = s->next;
    }
    return true;
}

/* Checks which threads run the kernel. */
static bool check_threads(Check *c) {
    const LThreads *t = &c->k->threads;
    if (t->kind == LT_THREAD && t->pack && !is_power_of_2(t->pack))
        return report(c, "elements of a thread are a power of two");
    if (t->kind != LT_TEAM && t->kind != LT_BLOCK) return true;
    if ((t->pack && !is_power_of_2(t->pack)) || !is_power_of_2(t->columns) ||
        (t->lanes && !is_power_of_2(t->lanes)))
        return report(c, "lanes, packs and columns are powers of two");
    return true;
}

/* Checks the arguments. */
static bool check_arguments(Check *c) {
    for (int i = 0; i < c->k->bufs.n; i++) {
        const LBuf *b = c->k->bufs.v[i];
        if (b->sorted_by && (b->kind != LB_MAP_IDX || b->sorted_by->from != b->map->from ||
                             map_is_sorted(b->sorted_by)))
            return report(c, "%s cannot be in the order of that map's segments", b->name);
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
    Check c = {.c = ctx, .k = k, .span = k->span, .ok = true};
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
