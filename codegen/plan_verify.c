/* What every plan must hold: buffers fit what is done with them, nothing is read
 * before it is written, and what a kernel writes it reads under one name only. */
#include "codegen/plan.h"

typedef struct {
    Ctx *c;
    const Plan *p;
    const PPhase *phase;
    const PStep *step;
    bool *full; /* temporaries and outputs that hold a value, by id */
    bool ok;
} Check;

static bool bad(Check *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
static bool bad(Check *c, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    const char *what = arena_vprintf(c->c->a, fmt, ap);
    va_end(ap);
    diag_add(c->c, DIAG_E0542, c->step->span, "@%s, '%s': %s", c->phase->name,
             c->step->note ? c->step->note : "", what);
    return c->ok = false;
}

static bool is_written_here(const PBuf *b) {
    return b->kind == PB_TEMP || b->kind == PB_OUTPUT || b->kind == PB_SAVED;
}

static int phase_of(const Check *c) {
    for (int i = 0; i < c->p->phases.n; i++)
        if (c->p->phases.v[i] == c->phase) return i;
    return -1;
}

static bool reads(Check *c, int id) {
    const PBuf *b = c->p->bufs.v[id];
    bool own = is_written_here(b) && b->phase == phase_of(c);
    if (own && !c->full[id]) return bad(c, "%s is read before it is written", b->name);
    if (b->kind == PB_TEMP && !own) return bad(c, "%s belongs to another phase", b->name);
    return true;
}

static bool writes(Check *c, int id) {
    const PBuf *b = c->p->bufs.v[id];
    bool own = is_written_here(b) && b->phase == phase_of(c);
    if (!own && b->kind != PB_VAR) return bad(c, "%s must not be written here", b->name);
    c->full[id] = true;
    return true;
}

static const Expr *count_of(Arena *a, const LBuf *b) {
    const Expr *n = expr_const(a, 1);
    for (int i = 0; i < b->rank; i++) n = expr_mul(a, n, b->dim[i]);
    return n;
}

/* The first rows of a longer buffer may be read as a value of their own. */
static bool is_part(const LBuf *l) {
    const Op *op = l->written ? NULL : l->value;
    while (op && op->kind == OP_VIEW) op = op->in[0];
    return op && op->kind == OP_SLICE;
}

static bool argument(Check *c, int i) {
    const LKernel *k = c->step->kernel;
    const LBuf *l = k->bufs.v[i];
    const PBuf *b = c->p->bufs.v[c->step->bufs[i]];
    if (l->dt != b->dt)
        return bad(c, "%s is %s, not %s", b->name, dtype_name(b->dt), dtype_name(l->dt));
    if (!expr_eq(count_of(c->c->a, l), b->count) && !is_part(l))
        return bad(c, "%s has another size", b->name);
    for (int j = 0; j < k->bufs.n; j++)
        if (j != i && c->step->bufs[j] == b->id && (l->written || k->bufs.v[j]->written))
            return bad(c, "%s is written and read under two names", b->name);
    return true;
}

static bool kernel(Check *c) {
    const PStep *s = c->step;
    if (!s->kernel || s->kernel->bufs.n != s->n_bufs) return bad(c, "arguments do not fit");
    if (!loop_verify(c->c, c->p->m, s->kernel)) return c->ok = false;
    for (int i = 0; i < s->n_bufs; i++)
        if (!argument(c, i)) return false;
    for (int i = 0; i < s->n_bufs; i++)
        if (!s->kernel->bufs.v[i]->written && !reads(c, s->bufs[i])) return false;
    for (int i = 0; i < s->n_bufs; i++)
        if (s->kernel->bufs.v[i]->written && !writes(c, s->bufs[i])) return false;
    return true;
}

static bool call(Check *c, int n, bool last_written) {
    const PStep *s = c->step;
    if (n >= 0 && s->n_bufs != n) return bad(c, "%d buffers, not %d", s->n_bufs, n);
    for (int i = 0; i < s->n_bufs - last_written; i++)
        if (!reads(c, s->bufs[i])) return false;
    return !last_written || writes(c, s->bufs[s->n_bufs - 1]);
}

static bool gemm(Check *c) {
    const PGemm *g = &c->step->gemm;
    int64_t one;
    bool a =
        (expr_is_const(g->a_row, &one) && one == 1) || (expr_is_const(g->a_col, &one) && one == 1);
    bool b =
        (expr_is_const(g->b_row, &one) && one == 1) || (expr_is_const(g->b_col, &one) && one == 1);
    return call(c, 3, true) && ((a && b) || bad(c, "no stride of an operand is 1"));
}

static bool copies(Check *c) {
    if (!call(c, 2, true)) return false;
    const PBuf *x = c->p->bufs.v[c->step->bufs[0]], *y = c->p->bufs.v[c->step->bufs[1]];
    bool fit = x->dt == y->dt && expr_eq(x->count, y->count);
    return fit || bad(c, "%s and %s differ in size", x->name, y->name);
}

/* Results are written; none of them is an input too, which C code would not expect. */
static bool user_call(Check *c) {
    const PStep *s = c->step;
    if (!s->op || !s->op->ext || s->n_in > s->n_bufs) return bad(c, "no function");
    for (int i = 0; i < s->n_in; i++)
        if (!reads(c, s->bufs[i])) return false;
    for (int i = s->n_in; i < s->n_bufs; i++) {
        for (int j = 0; j < i; j++)
            if (s->bufs[j] == s->bufs[i])
                return bad(c, "%s is given twice", c->p->bufs.v[s->bufs[i]]->name);
        if (!writes(c, s->bufs[i])) return false;
    }
    for (int i = 0; i < s->n_bufs; i++)
        if (!expr_eq(type_count(c->c->a, s->types[i]), c->p->bufs.v[s->bufs[i]]->count))
            return bad(c, "%s has another size", c->p->bufs.v[s->bufs[i]]->name);
    return true;
}

static bool condition(Check *c) {
    const PBuf *b = c->p->bufs.v[c->step->pred];
    return (b->dt == DT_I1 || bad(c, "%s is no condition", b->name)) && reads(c, c->step->pred);
}

static bool pairs(Check *c) {
    const PStep *s = c->step;
    bool in = s->other >= 0 && s->other < c->phase->steps.n;
    const PStep *o = in ? c->phase->steps.v[s->other] : s;
    bool fit =
        o->kind != s->kind && o->bufs[0] == s->bufs[0] && (o->kind == PS_LOOP || o->kind == PS_END);
    return (fit || bad(c, "a loop without its end")) &&
           (c->p->bufs.v[s->bufs[0]]->dt == DT_I1 || bad(c, "no condition"));
}

static bool step(Check *c) {
    for (int i = 0; i < c->step->n_bufs; i++)
        if (c->step->bufs[i] < 0 || c->step->bufs[i] >= c->p->bufs.n)
            return bad(c, "no such buffer");
    if (c->step->pred >= c->p->bufs.n) return bad(c, "no such buffer");
    if (c->step->pred >= 0 && !condition(c)) return false;
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
        return call(c, 1, false) && pairs(c);
    case PS_PRINT:
    case PS_ASSERT:
        return call(c, -1, false);
    }
    return bad(c, "an unknown step");
}

static bool lives(Check *c, int at) {
    for (int i = 0; i < c->step->n_bufs; i++) {
        const PBuf *b = c->p->bufs.v[c->step->bufs[i]];
        if (b->kind == PB_TEMP && (at < b->first || at > b->last))
            return bad(c, "%s is used outside of its life", b->name);
    }
    return true;
}

bool plan_verify(Ctx *ctx, const Plan *p) {
    Check c = {.c = ctx, .p = p, .ok = true};
    c.full = NEWN(ctx->a, bool, (size_t)p->bufs.n + 1);
    for (int i = 0; i < p->phases.n; i++) {
        c.phase = p->phases.v[i];
        for (int k = 0; k < c.phase->steps.n; k++) {
            c.step = c.phase->steps.v[k];
            if (!step(&c) || !lives(&c, k)) break;
        }
    }
    return c.ok;
}
