/* What a plan's fusions must hold before there are steps: they are of their function's operations,
 * each in one; what they read is made before them; and where they have buffers, these fit. */
#include "codegen/plan/plan.h"
#include "passes/rewrite.h"

/* The verification of the fusions of a function: a phase's, or of a loop's body. */
typedef struct {
    Ctx *c;
    const Plan *p;
    int phase;
    const Func *f;
    int *made_at; /* by Op.id: 1 + the number of the fusion that makes it; 0 = none does */
    int *needs;   /* by Op.id: the last of these numbers among what it is computed of */
} Check;

static bool fusion_error(const Check *c, const Op *op, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Adds an error about a fusion; returns false. */
static bool fusion_error(const Check *c, const Op *op, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    const char *what = arena_vprintf(c->c->a, fmt, ap);
    va_end(ap);
    diag_add(c->c, DIAG_E0542, op->span, "@%s: the fusion of '%s': %s", c->f->name, pass_named(op),
             what);
    return false;
}

/* Whether op is one that a fusion of this kind is for. */
static bool fits_kind(const PFusion *f, int i) {
    const Op *op = f->roots.v[i], *first = f->roots.v[0];
    bool is_result = op->kind == OP_RESULT && op->in[0] == first;
    switch (f->kind) {
    case PF_LOOP:
        return i ? is_result : op->kind == OP_LOOP && op->body;
    case PF_CALL:
        return i ? is_result : op->ext != NULL;
    case PF_EFFECT:
        return !i && op_has(op, OPT_EFFECT) && op->kind != OP_ASSIGN && op->kind != OP_NEXT;
    case PF_COPY:
        return !i && (op->kind == OP_OUTPUT || op->kind == OP_ASSIGN || op->kind == OP_NEXT);
    case PF_ROWS:
        return op->type.dt != DT_VOID;
    default:
        return !i && op->type.dt != DT_VOID;
    }
}

/* Checks the values of fusion number n: each is the function's, stands in one fusion, and in the
 * order of operations. */
static bool check_roots(Check *c, const PFusion *f, int n) {
    for (int i = 0; i < f->roots.n; i++) {
        const Op *op = f->roots.v[i];
        if (op->func != c->f) return fusion_error(c, op, "it is of another function");
        if (!fits_kind(f, i)) return fusion_error(c, op, "it is of another kind");
        if (f->kind == PF_COPY) continue;
        if (c->made_at[op->id]) return fusion_error(c, op, "the value stands in two");
        if (i && op->id < f->roots.v[i - 1]->id)
            return fusion_error(c, op, "its values do not stand in the order of operations");
        c->made_at[op->id] = n + 1;
    }
    return true;
}

/* Whether buffer id can be that of op in this phase. */
static bool fits_buffer(const Check *c, int id, const Op *op) {
    const PBuf *b = c->p->bufs.v[id];
    bool own = b->phase == c->phase || b->kind == PB_VAR;
    bool written =
        b->kind == PB_TEMP || b->kind == PB_OUTPUT || b->kind == PB_SAVED || b->kind == PB_VAR;
    return own && written && b->dt == op->type.dt &&
           expr_eq(b->count, type_count(c->c->a, &op->type));
}

/* Checks the buffers of a fusion: as many as its kind has, each of the value's type and size. */
static bool check_bufs(const Check *c, const PFusion *f) {
    const Op *first = f->roots.v[0];
    bool has = c->p->flags & PLAN_BUFFERS;
    int n = !has || f->kind == PF_EFFECT ? 0
            : f->kind == PF_LOOP         ? first->n_in
            : f->kind == PF_COPY         ? 2
                                         : f->roots.n;
    if (!has && f->kind == PF_COPY) return fusion_error(c, first, "values have no buffers yet");
    if (f->n_bufs != n) return fusion_error(c, first, "%d buffers, not %d", f->n_bufs, n);
    for (int i = 0; i < n; i++) {
        const Op *op = f->kind == PF_COPY   ? first->in[0]
                       : f->kind == PF_LOOP ? first->in[i]
                                            : f->roots.v[i];
        bool written = f->kind == PF_COPY   ? i == 1
                       : f->kind == PF_LOOP ? i < func_n_carried(first->body)
                                            : f->bufs[i] >= 0;
        if (f->bufs[i] < 0 && (f->kind == PF_COPY || f->kind == PF_LOOP))
            return fusion_error(c, first, "a buffer is missing");
        if (written && !fits_buffer(c, f->bufs[i], op))
            return fusion_error(c, op, "%s is not a buffer for it", c->p->bufs.v[f->bufs[i]]->name);
    }
    return true;
}

/* Checks that what each fusion reads is made before it, or by itself. */
static bool check_order(const Check *c) {
    for (const Op *op = c->f->first; op; op = op->next) {
        int last = 0;
        for (int i = 0; i < op->n_in; i++) {
            const Op *x = op->in[i];
            int at = c->made_at[x->id] ? c->made_at[x->id] : c->needs[x->id];
            if (at > last) last = at;
        }
        c->needs[op->id] = last;
        if (c->made_at[op->id] && last > c->made_at[op->id])
            return fusion_error(c, op, "what it reads is made behind it");
    }
    return true;
}

/* Checks the fusions of a function. */
static bool check_function(Ctx *ctx, const Plan *p, int phase, const Func *f,
                           const PFusions *list) {
    size_t n = (size_t)f->n_ops + 1;
    Check c = {.c = ctx, .p = p, .phase = phase, .f = f};
    c.made_at = NEWN(ctx->a, int, n);
    c.needs = NEWN(ctx->a, int, n);
    for (int i = 0; i < list->n; i++)
        if (!check_roots(&c, list->v[i], i) || !check_bufs(&c, list->v[i])) return false;
    if (!check_order(&c)) return false;
    for (int i = 0; i < list->n; i++)
        if (list->v[i]->kind == PF_LOOP &&
            !check_function(ctx, p, phase, list->v[i]->roots.v[0]->body, &list->v[i]->body))
            return false;
    return true;
}

/* Checks the fusions of a plan. False after diagnostics. */
bool plan_verify_fusions(Ctx *ctx, const Plan *p) {
    bool ok = true;
    for (int i = 0; i < p->phases.n && ok; i++) {
        const PPhase *ph = p->phases.v[i];
        if (p->flags & PLAN_FUSIONS)
            ok = check_function(ctx, p, i, ph->func, &ph->fusions);
        else if (ph->fusions.n)
            ok = false,
            diag_add(ctx, DIAG_E0542, (Span){0},
                     "@%s has fusions, and the plan does not say so: 'has fusions'", ph->name);
    }
    return ok;
}
