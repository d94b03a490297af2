/* What every plan must hold: buffers fit what is done with them, nothing is read
 * before it is written nor after another value took its place, what a kernel writes it
 * reads under one name only, and what has room for a block of rows is used in its loop. */
#include <string.h>

#include "codegen/plan/plan.h"

/* What a buffer holds. */
typedef struct {
    bool is_written; /* temporaries and outputs: written in this phase */
    bool scratch;    /* what no operation of the graph names */
    const Op *value; /* NULL: what it held when the phase began */
} Contents;

typedef struct {
    Ctx *c;
    const Plan *p;
    const PPhase *phase;
    const PStep *step;
    Contents *holds;       /* by buffer id */
    VEC(Contents *) loops; /* the same before the first iteration of each open loop */
    bool ok;
} Check;

static bool report(Check *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Adds an error about the current step; false. */
static bool report(Check *c, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    const char *what = arena_vprintf(c->c->a, fmt, ap);
    va_end(ap);
    diag_add(c->c, DIAG_E0542, c->step->span, "@%s, '%s': %s", c->phase->name,
             c->step->note ? c->step->note : "", what);
    return c->ok = false;
}

/* Whether phases write this kind of buffer. */
static bool is_phase_written(const PBuf *b) {
    return b->kind == PB_TEMP || b->kind == PB_OUTPUT || b->kind == PB_SAVED;
}

/* The number of the current phase. */
static int phase_index(const Check *c) {
    for (int i = 0; i < c->p->phases.n; i++)
        if (c->p->phases.v[i] == c->phase) return i;
    return -1;
}

/* Checks that a buffer may be read. */
static bool check_read(Check *c, int id) {
    const PBuf *b = c->p->bufs.v[id];
    bool own = is_phase_written(b) && b->phase == phase_index(c);
    if (own && !c->holds[id].is_written)
        return report(c, "%s is read before it is written", b->name);
    if (b->kind == PB_TEMP && !own) return report(c, "%s belongs to another phase", b->name);
    return true;
}

/* Checks that a buffer may be written. made: the value that it holds from now on; NULL: scratch. */
static bool check_write(Check *c, int id, const Op *made) {
    const PBuf *b = c->p->bufs.v[id];
    bool own = is_phase_written(b) && b->phase == phase_index(c);
    if (!own && b->kind != PB_VAR) return report(c, "%s must not be written here", b->name);
    c->holds[id] = (Contents){.is_written = true, .scratch = !made, .value = made};
    return true;
}

/* ---- whose value it is ------------------------------------------------------------------ */
/* Whether the buffer still holds the first value of a loop's operand. */
static bool holds_first_operand(const Check *c, int id) {
    const Contents *h = &c->holds[id], *first = &c->loops.v[c->loops.n - 1][id];
    return h->value == first->value && h->is_written == first->is_written;
}

/* Whether the buffer holds op. */
static bool holds_value(const Check *c, int id, const Op *op) {
    const Contents *h = &c->holds[id];
    if (h->scratch) return true;
    for (; op; op = op->kind == OP_VIEW || op->kind == OP_SLICE ? op->in[0] : NULL) {
        if (h->value == op || (op->kind == OP_RESULT && h->value == op->in[0])) return true;
        if (op->kind == OP_ARG && c->loops.n) return holds_first_operand(c, id);
        if (op_has(op, OPT_SOURCE)) return !h->value;
    }
    return false;
}

/* Checks a read of op. */
static bool check_reads_value(Check *c, int id, const Op *op) {
    if (!check_read(c, id)) return false;
    if (!op || holds_value(c, id, op)) return true;
    return report(c, "%s is read as '%s', which another value has overwritten",
                  c->p->bufs.v[id]->name, op->hint ? op->hint : op_mnemonic(op->kind));
}

/* Checks a read of one of the step's operands, or a copy of one. */
static bool check_reads_operand(Check *c, int id) {
    const Op *op = c->step->op;
    if (!check_read(c, id)) return false;
    for (int i = 0; i < op->n_in; i++)
        if (holds_value(c, id, op->in[i])) return true;
    return report(c, "%s is read as an operand, which another value has overwritten",
                  c->p->bufs.v[id]->name);
}

/* The number of elements of an argument. */
static const Expr *element_count(Arena *a, const LBuf *b) {
    const Expr *n = expr_const(a, 1);
    for (int i = 0; i < b->rank; i++) n = expr_mul(a, n, b->dim[i]);
    return n;
}

/* Whether the argument is the first rows of a longer buffer. */
static bool is_prefix(const LBuf *l) {
    const Op *op = l->written ? NULL : l->value;
    while (op && op->kind == OP_VIEW) op = op->in[0];
    return op && op->kind == OP_SLICE;
}

/* Checks an argument of a kernel. */
static bool check_argument(Check *c, const LKernel *k, const int *bufs, int i) {
    const LBuf *l = k->bufs.v[i];
    const PBuf *b = c->p->bufs.v[bufs[i]];
    if (l->dt != b->dt)
        return report(c, "%s is %s, not %s", b->name, dtype_name(b->dt), dtype_name(l->dt));
    if (!expr_eq(element_count(c->c->a, l), b->count) && !is_prefix(l))
        return report(c, "%s has another size", b->name);
    for (int j = 0; j < k->bufs.n; j++)
        if (j != i && bufs[j] == b->id && (l->written || k->bufs.v[j]->written))
            return report(c, "%s is written and read under two names", b->name);
    return true;
}

static bool loops(Check *c, const LKernel *k, const int *bufs, int n) {
    if (!k || k->bufs.n != n) return report(c, "arguments do not fit");
    if (!c->p->scheduled_for && loop_is_scheduled_for_cpu(k))
        return report(c, "loops are arranged for a processor, and those of the plan are not");
    if (!k->stages.n && !loop_verify(c->c, c->p->m, k)) return c->ok = false;
    for (int i = 0; i < k->stages.n; i++)
        if (!loop_verify(c->c, c->p->m, k->stages.v[i])) return c->ok = false;
    for (int i = 0; i < n; i++)
        if (!check_argument(c, k, bufs, i)) return false;
    return true;
}

/* Rows behind the batch's own, of its operands and of nothing else. */
static bool clears(Check *c) {
    const PStep *s = c->step;
    const PClear *x = s->clear;
    if (!x) return true;
    if (s->kind != PS_GEMM || !c->p->device)
        return report(c, "only a device's products clear rows");
    for (int i = 0; i < x->n_bufs; i++)
        if (x->bufs[i] != s->bufs[0] && x->bufs[i] != s->bufs[1])
            return report(c, "rows are cleared of what is no operand");
    if (x->n_bufs != 1 + (s->bufs[0] != s->bufs[1]))
        return report(c, "rows are cleared of one operand, and the product has two");
    if (x->kernel->stages.n || !x->kernel->body)
        return report(c, "what clears rows is loops over them alone");
    for (const LStmt *l = x->kernel->body; l; l = l->next)
        if (l->kind != L_FOR || l->range != LR_BEHIND)
            return report(c, "rows are cleared that are the batch's own");
    return loops(c, x->kernel, x->bufs, x->n_bufs);
}

/* Checks a kernel step. */
static bool check_kernel(Check *c) {
    const PStep *s = c->step;
    if (!loops(c, s->kernel, s->bufs, s->n_bufs)) return false;
    if (loop_is_behind(s->kernel)) return report(c, "no product needs rows behind the batch's own");
    for (int i = 0; i < s->n_bufs; i++) {
        const LBuf *b = s->kernel->bufs.v[i];
        const Op *value = b->written ? b->value_before : b->value;
        if ((!b->written || b->value_before) && !check_reads_value(c, s->bufs[i], value))
            return false;
    }
    for (int i = 0; i < s->n_bufs; i++) {
        const LBuf *b = s->kernel->bufs.v[i];
        if (b->written && !check_write(c, s->bufs[i], b->value)) return false;
    }
    return true;
}

/* Checks a call of the runtime with n buffers, the last of which may be its result. */
static bool check_call(Check *c, int n, bool last_written) {
    const PStep *s = c->step;
    if (n >= 0 && s->n_bufs != n) return report(c, "%d buffers, not %d", s->n_bufs, n);
    for (int i = 0; i < s->n_bufs - last_written; i++)
        if (!check_reads_operand(c, s->bufs[i])) return false;
    return !last_written || check_write(c, s->bufs[s->n_bufs - 1], s->op);
}

/* Checks a matrix product. */
static bool check_gemm(Check *c) {
    const PGemm *g = &c->step->gemm;
    int64_t one;
    bool a =
        (expr_is_const(g->a_row, &one) && one == 1) || (expr_is_const(g->a_col, &one) && one == 1);
    bool b =
        (expr_is_const(g->b_row, &one) && one == 1) || (expr_is_const(g->b_col, &one) && one == 1);
    return check_call(c, 3, true) && clears(c) &&
           ((a && b) || report(c, "no stride of an operand is 1"));
}

/* Checks a copy. One of a loop's operand holds the loop's value; any other holds the copied one. */
static bool check_copy(Check *c) {
    const PStep *s = c->step;
    if (!check_call(c, 2, true)) return false;
    if (s->op->kind != OP_LOOP) c->holds[s->bufs[1]].value = s->op->in[0];
    const PBuf *x = c->p->bufs.v[s->bufs[0]], *y = c->p->bufs.v[s->bufs[1]];
    bool fit = x->dt == y->dt && expr_eq(x->count, y->count);
    return fit || report(c, "%s and %s differ in size", x->name, y->name);
}

/* Checks a call of a C function: results do not alias other arguments, as C functions assume. */
static bool check_user_call(Check *c) {
    const PStep *s = c->step;
    if (!s->op || !s->op->ext || s->n_in > s->n_bufs) return report(c, "no function");
    for (int i = 0; i < s->n_in; i++)
        if (!check_reads_value(c, s->bufs[i], s->op->in[i + s->op->when])) return false;
    for (int i = s->n_in; i < s->n_bufs; i++) {
        for (int j = 0; j < i; j++)
            if (s->bufs[j] == s->bufs[i])
                return report(c, "%s is given twice", c->p->bufs.v[s->bufs[i]]->name);
        if (!check_write(c, s->bufs[i], s->op)) return false;
    }
    for (int i = 0; i < s->n_bufs; i++)
        if (!expr_eq(type_count(c->c->a, s->types[i]), c->p->bufs.v[s->bufs[i]]->count))
            return report(c, "%s has another size", c->p->bufs.v[s->bufs[i]]->name);
    return true;
}

/* Where index arrays lead: rows of `space`, or, where it is NULL, positions in the segments of
 * `segments_of`. */
typedef struct {
    const Space *space;
    const Map *segments_of;
} IndexTarget;

/* Whether an index array may follow; *at is where it leads. */
static bool follow(const PBuf *b, IndexTarget *at) {
    const Map *m = b->map;
    if (b->kind != PB_MAP || !m) return false;
    bool bounds = b->map_part == LB_MAP_PTR, sorted = map_is_sorted(m);
    bool orders = b->map_part == LB_MAP_PERM;
    if (bounds            ? at->space != m->to
        : orders || b->by ? at->space || at->segments_of != (orders ? m : b->by)
                          : at->space != m->from)
        return false;
    if (bounds)
        *at = (IndexTarget){sorted ? m->from : NULL, sorted ? NULL : m};
    else
        *at = (IndexTarget){orders ? m->from : m->to, NULL};
    return true;
}

/* Whether the buffer is state of an optimizer. */
static bool is_optimizer_state(const Plan *p, int buf) {
    return p->bufs.v[buf]->kind == PB_VAR && p->bufs.v[buf]->var->kind == VAR_SLOT;
}

/* Checks an exchange: its halos lead to rows of the buffer's space. */
static bool check_exchange(Check *c) {
    const PStep *s = c->step;
    if (s->n_bufs != 1 || !s->partition) return report(c, "rows of no value");
    if (s->partials && s->halos.n) return report(c, "partial sums go to all");
    if (s->to_first && (s->partials || !is_optimizer_state(c->p, s->bufs[0])))
        return report(c, "rows for the first process alone, of what is no state of an optimizer");
    if (s->folds && (!s->partials || c->p->bufs.v[s->bufs[0]]->dt != DT_F32))
        return report(c, "a sum of what are no partial sums of f32");
    for (int i = 0; i < s->halos.n; i++) {
        const PHalo *r = &s->halos.v[i];
        IndexTarget at = {r->from, NULL};
        if (!plan_is_partitioned_space(r->from))
            return report(c, "rows are reached from what nobody owns");
        for (int k = 0; k < r->n_via; k++)
            if (r->via[k] < 0 || r->via[k] >= c->p->bufs.n || !follow(c->p->bufs.v[r->via[k]], &at))
                return report(c, "rows are reached through no index array of such rows");
        if (at.space != s->partition) return report(c, "rows are reached of another space");
    }
    return check_read(c, s->bufs[0]);
}

/* Checks that a step on partitioned rows is in a program for partitions. */
static bool check_partition(Check *c) {
    const PStep *s = c->step;
    if (!s->partition) return !s->partials || report(c, "cuts of no rows");
    if (!c->p->partitioned) return report(c, "own rows in a program without 'by_parts'");
    return plan_is_partitioned_space(s->partition) ||
           report(c, "rows of %s belong to nobody", s->partition->name);
}

/* Checks the condition of a step. */
static bool check_condition(Check *c) {
    const PBuf *b = c->p->bufs.v[c->step->pred];
    return (b->dt == DT_I1 || report(c, "%s is no condition", b->name)) &&
           check_read(c, c->step->pred);
}

static void enter_loop(Check *c) {
    size_t n = (size_t)c->p->bufs.n;
    Contents *first = NEWN(c->c->a, Contents, n + 1);
    memcpy(first, c->holds, n * sizeof *first);
    vec_push(c->c->a, &c->loops, first);
}

/* What the loop replaces holds its operands again, or its results. */
static void leave_loop(Check *c) {
    const Contents *first = c->loops.v[--c->loops.n];
    for (int i = 0; i < c->p->bufs.n; i++)
        if (first[i].value == c->step->op) c->holds[i] = first[i];
}

/* Checks that a loop and its end belong together. */
static bool check_loop(Check *c) {
    const PStep *s = c->step;
    bool in = s->other >= 0 && s->other < c->phase->steps.n;
    const PStep *o = in ? c->phase->steps.v[s->other] : s;
    bool fit =
        o->kind != s->kind && o->bufs[0] == s->bufs[0] && (o->kind == PS_LOOP || o->kind == PS_END);
    if (!fit || (s->kind == PS_END && !c->loops.n)) return report(c, "a loop without its end");
    if (c->p->bufs.v[s->bufs[0]]->dt != DT_I1) return report(c, "no condition");
    if (!check_read(c, s->bufs[0])) return false;
    (s->kind == PS_LOOP ? enter_loop : leave_loop)(c);
    return true;
}

/* Checks a step. */
static bool check_step(Check *c) {
    for (int i = 0; i < c->step->n_bufs; i++)
        if (c->step->bufs[i] < 0 || c->step->bufs[i] >= c->p->bufs.n)
            return report(c, "no such buffer");
    if (c->step->pred >= c->p->bufs.n) return report(c, "no such buffer");
    if (c->step->pred >= 0 && !check_condition(c)) return false;
    if (!check_partition(c)) return false;
    switch (c->step->kind) {
    case PS_KERNEL:
        return check_kernel(c);
    case PS_GEMM:
        return check_gemm(c);
    case PS_RANK:
        return check_call(c, 3, true);
    case PS_COPY:
        return check_copy(c);
    case PS_RELATION:
        return (c->step->space || report(c, "no relation")) && check_call(c, 1, false);
    case PS_CALL:
        return check_user_call(c);
    case PS_LOOP:
    case PS_END:
        return check_loop(c);
    case PS_PRINT:
    case PS_ASSERT:
        return check_call(c, -1, false);
    case PS_EXCHANGE:
        return check_exchange(c);
    }
    return report(c, "an unknown step");
}

/* Checks that temporaries are used while they are live. */
static bool check_lifetimes(Check *c, int at) {
    for (int i = 0; i < c->step->n_bufs; i++) {
        const PBuf *b = c->p->bufs.v[c->step->bufs[i]];
        if (c->p->flags & PLAN_LIVES && b->kind == PB_TEMP && (at < b->first || at > b->last))
            return report(c, "%s is used outside of its life", b->name);
    }
    return true;
}

/* ---- loops over blocks of rows ---------------------------------------------------------- */
/* The loop over blocks that a buffer is local to, or NULL. */
static const PBlocks *block_loop(const PPhase *ph, const PBuf *b) {
    return b->block < ph->blocks.n ? &ph->blocks.v[b->block] : NULL;
}

/* Checks that a buffer for one block is used in its loop only. */
static bool check_block_local(Check *c, int at, int id) {
    const PBuf *b = c->p->bufs.v[id];
    const PBlocks *l = b->block < 0 ? NULL : block_loop(c->phase, b);
    if (b->block < 0 || (l && at >= l->first && at <= l->last)) return true;
    return report(c, "%s is used outside of the loop over blocks that has it", b->name);
}

/* Checks this for the buffers of a step. */
static bool check_blocks(Check *c, int at) {
    for (int i = 0; i < c->step->n_bufs; i++)
        if (!check_block_local(c, at, c->step->bufs[i])) return false;
    return c->step->pred < 0 || check_block_local(c, at, c->step->pred);
}

/* Checks that each buffer for one block has a loop. */
static bool check_block_loops(Ctx *ctx, const Plan *p) {
    bool ok = true;
    for (int i = 0; i < p->bufs.n; i++) {
        const PBuf *b = p->bufs.v[i];
        bool has = b->block < 0 || (b->kind == PB_TEMP && b->phase >= 0 && b->phase < p->phases.n &&
                                    block_loop(p->phases.v[b->phase], b));
        if (!has)
            diag_add(ctx, DIAG_E0542, (Span){0}, "%s holds a block, and no loop has it", b->name);
        ok &= has;
    }
    return ok;
}

bool plan_verify(Ctx *ctx, const Plan *p) {
    Check c = {.c = ctx, .p = p, .ok = check_block_loops(ctx, p)};
    c.holds = NEWN(ctx->a, Contents, (size_t)p->bufs.n + 1);
    for (int i = 0; i < p->phases.n; i++) {
        c.phase = p->phases.v[i];
        c.loops.n = 0;
        memset(c.holds, 0, (size_t)p->bufs.n * sizeof *c.holds);
        for (int k = 0; k < c.phase->steps.n; k++) {
            c.step = c.phase->steps.v[k];
            if (!check_step(&c) || !check_lifetimes(&c, k) || !check_blocks(&c, k)) break;
        }
    }
    return c.ok;
}
