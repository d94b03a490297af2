/* What every plan must hold: buffers fit what is done with them, nothing is read
 * before it is written nor after another value took its place, what a kernel writes it
 * reads under one name only, and what has room for a block of rows is used in its loop. */
#include <string.h>

#include "codegen/plan/plan.h"

/* What a buffer holds. */
typedef struct {
    bool full;      /* temporaries and outputs: written in this phase */
    bool scratch;   /* what no operation of the graph names */
    const Op *made; /* NULL: what it held when the phase began */
} Holds;

typedef struct {
    Ctx *c;
    const Plan *p;
    const PPhase *phase;
    const PStep *step;
    Holds *holds;       /* by buffer id */
    VEC(Holds *) loops; /* the same before the first iteration of each open loop */
    bool ok;
} Check;

static bool bad(Check *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Adds an error about the current step; false. */
static bool bad(Check *c, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    const char *what = arena_vprintf(c->c->a, fmt, ap);
    va_end(ap);
    diag_add(c->c, DIAG_E0542, c->step->span, "@%s, '%s': %s", c->phase->name,
             c->step->note ? c->step->note : "", what);
    return c->ok = false;
}

/* Whether phases write this kind of buffer. */
static bool is_written_here(const PBuf *b) {
    return b->kind == PB_TEMP || b->kind == PB_OUTPUT || b->kind == PB_SAVED;
}

/* The number of the current phase. */
static int phase_of(const Check *c) {
    for (int i = 0; i < c->p->phases.n; i++)
        if (c->p->phases.v[i] == c->phase) return i;
    return -1;
}

/* Checks that a buffer may be read. */
static bool reads(Check *c, int id) {
    const PBuf *b = c->p->bufs.v[id];
    bool own = is_written_here(b) && b->phase == phase_of(c);
    if (own && !c->holds[id].full) return bad(c, "%s is read before it is written", b->name);
    if (b->kind == PB_TEMP && !own) return bad(c, "%s belongs to another phase", b->name);
    return true;
}

/* Checks that a buffer may be written. made: the value that it holds from now on; NULL: scratch. */
static bool writes(Check *c, int id, const Op *made) {
    const PBuf *b = c->p->bufs.v[id];
    bool own = is_written_here(b) && b->phase == phase_of(c);
    if (!own && b->kind != PB_VAR) return bad(c, "%s must not be written here", b->name);
    c->holds[id] = (Holds){.full = true, .scratch = !made, .made = made};
    return true;
}

/* ---- whose value it is ------------------------------------------------------------------ */
/* Whether the buffer still holds the first value of a loop's operand. */
static bool is_operand(const Check *c, int id) {
    const Holds *h = &c->holds[id], *first = &c->loops.v[c->loops.n - 1][id];
    return h->made == first->made && h->full == first->full;
}

/* Whether the buffer holds op. */
static bool holds(const Check *c, int id, const Op *op) {
    const Holds *h = &c->holds[id];
    if (h->scratch) return true;
    for (; op; op = op->kind == OP_VIEW || op->kind == OP_SLICE ? op->in[0] : NULL) {
        if (h->made == op || (op->kind == OP_RESULT && h->made == op->in[0])) return true;
        if (op->kind == OP_ARG && c->loops.n) return is_operand(c, id);
        if (op_has(op, OPT_SOURCE)) return !h->made;
    }
    return false;
}

/* Checks a read of op. */
static bool reads_value(Check *c, int id, const Op *op) {
    if (!reads(c, id)) return false;
    if (!op || holds(c, id, op)) return true;
    return bad(c, "%s is read as '%s', which another value has overwritten", c->p->bufs.v[id]->name,
               op->hint ? op->hint : op_mnemonic(op->kind));
}

/* Checks a read of one of the step's operands, or a copy of one. */
static bool reads_operand(Check *c, int id) {
    const Op *op = c->step->op;
    if (!reads(c, id)) return false;
    for (int i = 0; i < op->n_in; i++)
        if (holds(c, id, op->in[i])) return true;
    return bad(c, "%s is read as an operand, which another value has overwritten",
               c->p->bufs.v[id]->name);
}

/* The number of elements of an argument. */
static const Expr *count_of(Arena *a, const LBuf *b) {
    const Expr *n = expr_const(a, 1);
    for (int i = 0; i < b->rank; i++) n = expr_mul(a, n, b->dim[i]);
    return n;
}

/* Whether the argument is the first rows of a longer buffer. */
static bool is_part(const LBuf *l) {
    const Op *op = l->written ? NULL : l->value;
    while (op && op->kind == OP_VIEW) op = op->in[0];
    return op && op->kind == OP_SLICE;
}

/* Checks an argument of a kernel. */
static bool argument(Check *c, const LKernel *k, const int *bufs, int i) {
    const LBuf *l = k->bufs.v[i];
    const PBuf *b = c->p->bufs.v[bufs[i]];
    if (l->dt != b->dt)
        return bad(c, "%s is %s, not %s", b->name, dtype_name(b->dt), dtype_name(l->dt));
    if (!expr_eq(count_of(c->c->a, l), b->count) && !is_part(l))
        return bad(c, "%s has another size", b->name);
    for (int j = 0; j < k->bufs.n; j++)
        if (j != i && bufs[j] == b->id && (l->written || k->bufs.v[j]->written))
            return bad(c, "%s is written and read under two names", b->name);
    return true;
}

static bool loops(Check *c, const LKernel *k, const int *bufs, int n) {
    if (!k || k->bufs.n != n) return bad(c, "arguments do not fit");
    if (!c->p->arranged && loop_is_for_processor(k))
        return bad(c, "loops are arranged for a processor, and those of the plan are not");
    if (!k->stages.n && !loop_verify(c->c, c->p->m, k)) return c->ok = false;
    for (int i = 0; i < k->stages.n; i++)
        if (!loop_verify(c->c, c->p->m, k->stages.v[i])) return c->ok = false;
    for (int i = 0; i < n; i++)
        if (!argument(c, k, bufs, i)) return false;
    return true;
}

/* Rows behind the batch's own, of its operands and of nothing else. */
static bool clears(Check *c) {
    const PStep *s = c->step;
    const PClear *x = s->clear;
    if (!x) return true;
    if (s->kind != PS_GEMM || !c->p->device) return bad(c, "only a device's products clear rows");
    for (int i = 0; i < x->n_bufs; i++)
        if (x->bufs[i] != s->bufs[0] && x->bufs[i] != s->bufs[1])
            return bad(c, "rows are cleared of what is no operand");
    for (const LStmt *l = x->kernel->body; l; l = l->next)
        if (l->kind != L_FOR || l->range != LR_BEHIND)
            return bad(c, "rows are cleared that are the batch's own");
    return loops(c, x->kernel, x->bufs, x->n_bufs);
}

/* Checks a kernel step. */
static bool kernel(Check *c) {
    const PStep *s = c->step;
    if (!loops(c, s->kernel, s->bufs, s->n_bufs)) return false;
    if (loop_is_behind(s->kernel)) return bad(c, "no product needs rows behind the batch's own");
    for (int i = 0; i < s->n_bufs; i++) {
        const LBuf *b = s->kernel->bufs.v[i];
        const Op *value = b->written ? b->old : b->value;
        if ((!b->written || b->old) && !reads_value(c, s->bufs[i], value)) return false;
    }
    for (int i = 0; i < s->n_bufs; i++) {
        const LBuf *b = s->kernel->bufs.v[i];
        if (b->written && !writes(c, s->bufs[i], b->value)) return false;
    }
    return true;
}

/* Checks a call of the runtime with n buffers, the last of which may be its result. */
static bool call(Check *c, int n, bool last_written) {
    const PStep *s = c->step;
    if (n >= 0 && s->n_bufs != n) return bad(c, "%d buffers, not %d", s->n_bufs, n);
    for (int i = 0; i < s->n_bufs - last_written; i++)
        if (!reads_operand(c, s->bufs[i])) return false;
    return !last_written || writes(c, s->bufs[s->n_bufs - 1], s->op);
}

/* Checks a matrix product. */
static bool gemm(Check *c) {
    const PGemm *g = &c->step->gemm;
    int64_t one;
    bool a =
        (expr_is_const(g->a_row, &one) && one == 1) || (expr_is_const(g->a_col, &one) && one == 1);
    bool b =
        (expr_is_const(g->b_row, &one) && one == 1) || (expr_is_const(g->b_col, &one) && one == 1);
    return call(c, 3, true) && clears(c) && ((a && b) || bad(c, "no stride of an operand is 1"));
}

/* Checks a copy. One of a loop's operand holds the loop's value; any other holds the copied one. */
static bool copies(Check *c) {
    const PStep *s = c->step;
    if (!call(c, 2, true)) return false;
    if (s->op->kind != OP_LOOP) c->holds[s->bufs[1]].made = s->op->in[0];
    const PBuf *x = c->p->bufs.v[s->bufs[0]], *y = c->p->bufs.v[s->bufs[1]];
    bool fit = x->dt == y->dt && expr_eq(x->count, y->count);
    return fit || bad(c, "%s and %s differ in size", x->name, y->name);
}

/* Checks a call of a C function: results do not alias other arguments, as C functions assume. */
static bool user_call(Check *c) {
    const PStep *s = c->step;
    if (!s->op || !s->op->ext || s->n_in > s->n_bufs) return bad(c, "no function");
    for (int i = 0; i < s->n_in; i++)
        if (!reads_value(c, s->bufs[i], s->op->in[i + s->op->when])) return false;
    for (int i = s->n_in; i < s->n_bufs; i++) {
        for (int j = 0; j < i; j++)
            if (s->bufs[j] == s->bufs[i])
                return bad(c, "%s is given twice", c->p->bufs.v[s->bufs[i]]->name);
        if (!writes(c, s->bufs[i], s->op)) return false;
    }
    for (int i = 0; i < s->n_bufs; i++)
        if (!expr_eq(type_count(c->c->a, s->types[i]), c->p->bufs.v[s->bufs[i]]->count))
            return bad(c, "%s has another size", c->p->bufs.v[s->bufs[i]]->name);
    return true;
}

/* Where index arrays lead: rows of `space`, or, where it is NULL, positions in the segments of
 * `pos`. */
typedef struct {
    const Space *space;
    const Map *pos;
} Place;

/* Whether an index array may follow; *at is where it leads. */
static bool follows(const PBuf *b, Place *at) {
    const Map *m = b->map;
    if (b->kind != PB_MAP || !m) return false;
    bool bounds = b->map_part == LB_MAP_PTR, sorted = map_is_sorted(m);
    bool orders = b->map_part == LB_MAP_PERM;
    if (bounds            ? at->space != m->to
        : orders || b->by ? at->space || at->pos != (orders ? m : b->by)
                          : at->space != m->from)
        return false;
    if (bounds)
        *at = (Place){sorted ? m->from : NULL, sorted ? NULL : m};
    else
        *at = (Place){orders ? m->from : m->to, NULL};
    return true;
}

/* Whether the buffer is state of an optimizer. */
static bool is_optimizer_state(const Plan *p, int buf) {
    return p->bufs.v[buf]->kind == PB_VAR && p->bufs.v[buf]->var->kind == VAR_SLOT;
}

/* Checks an exchange: its halos lead to rows of the buffer's space. */
static bool exchanges(Check *c) {
    const PStep *s = c->step;
    if (s->n_bufs != 1 || !s->own) return bad(c, "rows of no value");
    if (s->cuts && s->reach.n) return bad(c, "partial sums go to all");
    if (s->to_first && (s->cuts || !is_optimizer_state(c->p, s->bufs[0])))
        return bad(c, "rows for the first process alone, of what is no state of an optimizer");
    if (s->folds && (!s->cuts || c->p->bufs.v[s->bufs[0]]->dt != DT_F32))
        return bad(c, "a sum of what are no partial sums of f32");
    for (int i = 0; i < s->reach.n; i++) {
        const PReach *r = &s->reach.v[i];
        Place at = {r->from, NULL};
        if (!plan_is_owned(r->from)) return bad(c, "rows are reached from what nobody owns");
        for (int k = 0; k < r->n; k++)
            if (r->hop[k] < 0 || r->hop[k] >= c->p->bufs.n ||
                !follows(c->p->bufs.v[r->hop[k]], &at))
                return bad(c, "rows are reached through no index array of such rows");
        if (at.space != s->own) return bad(c, "rows are reached of another space");
    }
    return reads(c, s->bufs[0]);
}

/* Checks that a step on partitioned rows is in a program for partitions. */
static bool owns(Check *c) {
    const PStep *s = c->step;
    if (!s->own) return !s->cuts || bad(c, "cuts of no rows");
    if (!c->p->by_parts) return bad(c, "own rows in a program without 'by_parts'");
    return plan_is_owned(s->own) || bad(c, "rows of %s belong to nobody", s->own->name);
}

/* Checks the condition of a step. */
static bool condition(Check *c) {
    const PBuf *b = c->p->bufs.v[c->step->pred];
    return (b->dt == DT_I1 || bad(c, "%s is no condition", b->name)) && reads(c, c->step->pred);
}

static void enter_loop(Check *c) {
    size_t n = (size_t)c->p->bufs.n;
    Holds *first = NEWN(c->c->a, Holds, n + 1);
    memcpy(first, c->holds, n * sizeof *first);
    vec_push(c->c->a, &c->loops, first);
}

/* What the loop replaces holds its operands again, or its results. */
static void leave_loop(Check *c) {
    const Holds *first = c->loops.v[--c->loops.n];
    for (int i = 0; i < c->p->bufs.n; i++)
        if (first[i].made == c->step->op) c->holds[i] = first[i];
}

/* Checks that a loop and its end belong together. */
static bool pairs(Check *c) {
    const PStep *s = c->step;
    bool in = s->other >= 0 && s->other < c->phase->steps.n;
    const PStep *o = in ? c->phase->steps.v[s->other] : s;
    bool fit =
        o->kind != s->kind && o->bufs[0] == s->bufs[0] && (o->kind == PS_LOOP || o->kind == PS_END);
    if (!fit || (s->kind == PS_END && !c->loops.n)) return bad(c, "a loop without its end");
    if (c->p->bufs.v[s->bufs[0]]->dt != DT_I1) return bad(c, "no condition");
    if (!reads(c, s->bufs[0])) return false;
    (s->kind == PS_LOOP ? enter_loop : leave_loop)(c);
    return true;
}

/* Checks a step. */
static bool step(Check *c) {
    for (int i = 0; i < c->step->n_bufs; i++)
        if (c->step->bufs[i] < 0 || c->step->bufs[i] >= c->p->bufs.n)
            return bad(c, "no such buffer");
    if (c->step->pred >= c->p->bufs.n) return bad(c, "no such buffer");
    if (c->step->pred >= 0 && !condition(c)) return false;
    if (!owns(c)) return false;
    switch (c->step->kind) {
    case PS_KERNEL:
        return kernel(c);
    case PS_GEMM:
        return gemm(c);
    case PS_RANK:
        return call(c, 3, true);
    case PS_COPY:
        return copies(c);
    case PS_RELATION:
        return (c->step->space || bad(c, "no relation")) && call(c, 1, false);
    case PS_CALL:
        return user_call(c);
    case PS_LOOP:
    case PS_END:
        return pairs(c);
    case PS_PRINT:
    case PS_ASSERT:
        return call(c, -1, false);
    case PS_EXCHANGE:
        return exchanges(c);
    }
    return bad(c, "an unknown step");
}

/* Checks that temporaries are used while they are live. */
static bool lives(Check *c, int at) {
    for (int i = 0; i < c->step->n_bufs; i++) {
        const PBuf *b = c->p->bufs.v[c->step->bufs[i]];
        if (c->p->has & PLAN_LIVES && b->kind == PB_TEMP && (at < b->first || at > b->last))
            return bad(c, "%s is used outside of its life", b->name);
    }
    return true;
}

/* ---- loops over blocks of rows ---------------------------------------------------------- */
/* The loop over blocks that a buffer is local to, or NULL. */
static const PBlocks *loop_of(const PPhase *ph, const PBuf *b) {
    return b->block < ph->blocks.n ? &ph->blocks.v[b->block] : NULL;
}

/* Checks that a buffer for one block is used in its loop only. */
static bool is_in_block(Check *c, int at, int id) {
    const PBuf *b = c->p->bufs.v[id];
    const PBlocks *l = b->block < 0 ? NULL : loop_of(c->phase, b);
    if (b->block < 0 || (l && at >= l->first && at <= l->last)) return true;
    return bad(c, "%s is used outside of the loop over blocks that has it", b->name);
}

/* Checks this for the buffers of a step. */
static bool blocks(Check *c, int at) {
    for (int i = 0; i < c->step->n_bufs; i++)
        if (!is_in_block(c, at, c->step->bufs[i])) return false;
    return c->step->pred < 0 || is_in_block(c, at, c->step->pred);
}

/* Checks that each buffer for one block has a loop. */
static bool have_loops(Ctx *ctx, const Plan *p) {
    bool ok = true;
    for (int i = 0; i < p->bufs.n; i++) {
        const PBuf *b = p->bufs.v[i];
        bool has = b->block < 0 || (b->kind == PB_TEMP && b->phase >= 0 && b->phase < p->phases.n &&
                                    loop_of(p->phases.v[b->phase], b));
        if (!has)
            diag_add(ctx, DIAG_E0542, (Span){0}, "%s holds a block, and no loop has it", b->name);
        ok &= has;
    }
    return ok;
}

bool plan_verify(Ctx *ctx, const Plan *p) {
    Check c = {.c = ctx, .p = p, .ok = have_loops(ctx, p)};
    c.holds = NEWN(ctx->a, Holds, (size_t)p->bufs.n + 1);
    for (int i = 0; i < p->phases.n; i++) {
        c.phase = p->phases.v[i];
        c.loops.n = 0;
        memset(c.holds, 0, (size_t)p->bufs.n * sizeof *c.holds);
        for (int k = 0; k < c.phase->steps.n; k++) {
            c.step = c.phase->steps.v[k];
            if (!step(&c) || !lives(&c, k) || !blocks(&c, k)) break;
        }
    }
    return c.ok;
}
