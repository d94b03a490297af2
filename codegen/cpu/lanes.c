/* Short constant loops with loops inside: the heads of an attention.
 *
 *     for h in 8 unroll {                      lanes      scores, exp, random of all heads
 *       scalars of h                           head 0     loop over its features, sums per lane
 *       local dot; for f in 8 vector {   =>    ..
 *         acc sum dot ..                       head 7
 *       }                                      lanes      the heads' sums folded together,
 *       scalars from dot; acc y[h] ..                     what is computed from them, acc y[0 .. 7]
 *     }
 *
 * What stands between the loops is computed for all iterations at once, one per lane; the loops
 * run one iteration after the other.  That is loop distribution (Kennedy and McKinley 1990) with
 * scalar expansion into one vector: allowed where iterations share no element that is written.
 * Sums that end in the lanes of different iterations are folded together, by the same additions
 * (cpu_reduce_lanes): eight rows of eight lanes take 21 instructions instead of 56. */
#include "codegen/cpu/cpu.h"

/* ---- one iteration's part of the lanes --------------------------------------------------- */

/* A loop whose iterations are expanded into the lanes of one vector. */
typedef struct {
    CgFn *f;
    const LStmt *loop;
    int n_iterations, lanes; /* lanes: at least as many */
    CgVal *reg;              /* [n_regs] values that were computed in lanes */
    CgLocal *local;          /* [locals] arrays with an element per lane */
} ExpandedLoop;

/* The value of v in lane i, as a scalar. */
static CgVal extract_lane(CgFn *f, CgVal v, int64_t i) {
    Cg *g = f->g;
    if (v.shape == SHAPE_CONSECUTIVE) v.v = LLVMBuildNSWAdd(g->b, v.v, cpu_i64(g, i), "");
    if (v.shape == SHAPE_VARYING)
        v.v = LLVMBuildExtractElement(g->b, v.v, LLVMConstInt(g->i32, (unsigned)i, 0), "");
    return (CgVal){v.v, SHAPE_UNIFORM, false};
}

/* One lane's part of local array b, which has an element per lane in the memory l. lane: the lane's
 * number, as an LLVM value. */
CgLocal cpu_local_lane(CgFn *f, const LBuf *b, CgLocal l, LLVMValueRef lane) {
    LLVMTypeRef t = cpu_mem_type(f->g, b->dt);
    return (CgLocal){LLVMBuildInBoundsGEP2(f->g->b, t, l.at, &lane, 1, ""), 1, 1};
}

/* Makes scalars and local arrays that were computed in lanes, by statements of the expanded loop
 * before `end`, available to scalar code for iteration i. */
static void use_lane(ExpandedLoop *c, const LStmt *end, int64_t i) {
    CgFn *f = c->f;
    f->reg[c->loop->var->id] = (CgVal){cpu_i64(f->g, i), SHAPE_UNIFORM, false};
    for (const LStmt *s = c->loop->body; s != end; s = s->next) {
        if (s->dst) f->reg[s->dst->id] = extract_lane(f, c->reg[s->dst->id], i);
        if (s->kind == L_LOCAL)
            f->local[s->buf->id] =
                cpu_local_lane(f, s->buf, c->local[s->buf->id], cpu_i64(f->g, i));
    }
}

/* Makes scalars and local arrays that were computed in lanes, by statements before `end`, available
 * to code that again computes all iterations, one per lane. */
static void use_all_lanes(ExpandedLoop *c, const LStmt *end) {
    for (const LStmt *s = c->loop->body; s != end; s = s->next) {
        if (s->dst) c->f->reg[s->dst->id] = c->reg[s->dst->id];
        if (s->kind == L_LOCAL) c->f->local[s->buf->id] = c->local[s->buf->id];
    }
}

/* ---- emission ------------------------------------------------------------------------------ */

/* Emits the statements from .. to (exclusive) for all iterations at once, one per lane. Lanes
 * behind the last iteration are masked. */
static void emit_lanes(ExpandedLoop *c, const LStmt *from, const LStmt *to) {
    CgFn *f = c->f;
    f->lanes = c->lanes;
    f->mask = f->tail_mask =
        c->n_iterations < c->lanes ? cpu_first_lanes_mask(f, cpu_i64(f->g, c->n_iterations)) : NULL;
    f->reg[c->loop->var->id] = (CgVal){cpu_i64(f->g, 0), SHAPE_CONSECUTIVE, true};
    for (const LStmt *s = from; s != to; s = s->next) {
        cpu_stmt(f, s);
        if (s->dst) c->reg[s->dst->id] = f->reg[s->dst->id];
        if (s->kind == L_LOCAL) c->local[s->buf->id] = f->local[s->buf->id];
    }
    f->lanes = 1, f->mask = f->tail_mask = NULL;
}

/* Reduces the sums that loops inside left per lane, those of all iterations together, and adds the
 * result of iteration i to lane i of the accumulator. */
static void emit_deferred_sums(ExpandedLoop *c, const CgDeferredSums *late) {
    Cg *g = c->f->g;
    for (int i = 0; i < late->n; i++) {
        const LStmt *acc = late->acc[i];
        CgLocal l = c->local[acc->buf->id];
        LLVMValueRef x = cpu_reduce_vectors(c->f, acc->red, acc->buf->dt, late->row[i],
                                            c->n_iterations, c->lanes);
        LLVMValueRef old = LLVMBuildLoad2(g->b, LLVMTypeOf(x), l.at, "");
        LLVMBuildStore(g->b, cpu_combine(c->f, acc->red, acc->buf->dt, old, x), l.at);
    }
}

/* Emits a loop s inside the expanded loop: once for each iteration of that. Its sums are reduced
 * together at the end. */
static void emit_loop(ExpandedLoop *c, const LStmt *s) {
    CgDeferredSums late = {.expanded = c->loop, .loop = s};
    c->f->deferred = &late;
    for (late.i = 0; late.i < c->n_iterations; late.i++) {
        late.n = 0;
        use_lane(c, s, late.i);
        cpu_stmt(c->f, s);
    }
    c->f->deferred = NULL;
    use_all_lanes(c, s);
    emit_deferred_sums(c, &late);
}

/* Emits the body in its order: scalars in lanes for all iterations at once, and each inner loop
 * iteration after iteration. */
static void emit_distributed(ExpandedLoop *c) {
    for (const LStmt *s = c->loop->body; s;) {
        const LStmt *to = s;
        while (to && to->kind != L_FOR) to = to->next;
        emit_lanes(c, s, to);
        if (to) emit_loop(c, to);
        s = to ? to->next : NULL;
    }
}

/* Emits the statements before `rest` in lanes for all iterations at once, then the rest of the body
 * for one iteration after the other. */
static void emit_prefix(ExpandedLoop *c, const LStmt *rest) {
    emit_lanes(c, c->loop->body, rest);
    for (int64_t i = 0; i < c->n_iterations; i++) {
        use_lane(c, rest, i);
        cpu_block(c->f, rest);
    }
}

void cpu_expanded_loop(CgFn *f, const LStmt *loop, int64_t n) {
    ExpandedLoop c = {.f = f, .loop = loop, .n_iterations = (int)n, .lanes = loop->sched.expand};
    c.reg = NEWN(f->g->a, CgVal, f->k->n_regs + 1);
    c.local = NEWN(f->g->a, CgLocal, f->k->locals.n + 1);
    if (loop->sched.prefix)
        emit_prefix(&c, loop_end_of_prefix(loop, true));
    else
        emit_distributed(&c);
}

/* ---- two loops that are one row ------------------------------------------------------------- */
/* Emits two nested loops over rows that lie side by side in memory as one vector loop over all
 * their elements (sched.flat). n: iterations of the outer loop. */
void cpu_flat_loop(CgFn *f, const LStmt *loop, int64_t n) {
    Cg *g = f->g;
    const LStmt *in = loop_flat_row(loop);
    int64_t len = 0;
    bool known = loop_extent(in, &len);
    CTX_HOLDS(g->c, known, loop->span);
    f->lanes = loop->sched.flat;
    for (int64_t i = 0; i < n * len; i += f->lanes) {
        f->reg[loop->var->id] = (CgVal){cpu_i64(g, 0), SHAPE_UNIFORM, false};
        f->reg[in->var->id] = (CgVal){cpu_i64(g, i), SHAPE_CONSECUTIVE, true};
        cpu_block_until(f, loop->body, in); /* h * 8 + f is f then */
        cpu_block(f, in->body);
    }
    f->lanes = 1;
}

/* ---- sums of all iterations --------------------------------------------------------------- */

/* Leaves the sum of statement acc, v per lane, to the expanded loop around, which reduces the sums
 * of all its iterations together. False: the caller must reduce it now. */
bool cpu_defer_reduction(CgFn *f, const LStmt *loop, const LStmt *acc, LLVMValueRef v) {
    CgDeferredSums *t = f->deferred;
    bool plain = cpu_type(f->g, acc->buf->dt) == cpu_mem_type(f->g, acc->buf->dt);
    if (!t || t->loop != loop || !plain || !loop_declares_directly(t->expanded, acc->buf))
        return false;
    t->acc[t->n] = acc;
    t->row[t->n++][t->i] = v;
    return true;
}

/* One half of each of `groups` equal groups of lanes: the lower or upper half of those of x, then
 * of those of y (NULL: of x alone). */
static LLVMValueRef halves(Cg *g, LLVMValueRef x, LLVMValueRef y, int groups, bool upper) {
    LLVMValueRef at[64];
    int w = cpu_width(x), len = w / groups, n = 0;
    for (int k = 0; k < (y ? 2 * groups : groups); k++)
        for (int i = 0; i < len / 2; i++, n++)
            at[n] = LLVMConstInt(g->i32, (unsigned)(k * len + i + (upper ? len / 2 : 0)), 0);
    if (!y) y = LLVMGetPoison(LLVMTypeOf(x));
    return LLVMBuildShuffleVector(g->b, x, y, LLVMConstVector(at, (unsigned)n), "");
}

/* A vector with the lanes of x, then those of y. */
static LLVMValueRef concatenate(Cg *g, LLVMValueRef x, LLVMValueRef y) {
    LLVMValueRef at[64];
    int w = 2 * cpu_width(x);
    for (int i = 0; i < w; i++) at[i] = LLVMConstInt(g->i32, (unsigned)i, 0);
    return LLVMBuildShuffleVector(g->b, x, y, LLVMConstVector(at, (unsigned)w), "");
}

/* Reduces each of the n vectors row[] to one element and returns these in the first lanes of a
 * vector of w lanes. A tree of shuffles makes the same additions as cpu_reduce_lanes() for each. */
LLVMValueRef cpu_reduce_vectors(CgFn *f, RedKind r, DType dt, LLVMValueRef const *row, int n,
                                int w) {
    Cg *g = f->g;
    LLVMValueRef x[CPU_LANES_MAX];
    for (int i = 0; i < w; i++) x[i] = i < n ? row[i] : LLVMGetPoison(LLVMTypeOf(row[0]));
    int left = w, groups = 1;
    while (left > 1 || cpu_width(x[0]) > groups) {
        bool reduces = cpu_width(x[0]) > groups;
        for (int i = 0; i < (left > 1 ? left / 2 : 1); i++) {
            LLVMValueRef a = x[left > 1 ? 2 * i : 0], b = left > 1 ? x[2 * i + 1] : NULL;
            x[i] = reduces ? cpu_combine(f, r, dt, halves(g, a, b, groups, false),
                                         halves(g, a, b, groups, true))
                           : concatenate(g, a, b);
        }
        if (left > 1) left /= 2, groups *= 2;
    }
    return x[0];
}
