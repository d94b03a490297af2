/* What a plan's fusions must hold before there are steps: they are of their function's operations,
 * each in one; what they read is made before them; and where they have buffers, these fit, loops
 * find their operands there, and in the end outputs, variables and what a loop carries on have
 * their values. */
#include <string.h>

#include "codegen/plan/plan.h"
#include "passes/rewrite.h"

/* What a buffer holds behind a fusion. */
typedef struct {
    bool is_written; /* by a fusion of the function; else it holds what it held before */
    const Op *value; /* the value that was written; NULL: one of a loop's body, or of no reader */
} Contents;

/* The verification of the fusions of a function: a phase's, or of a loop's body. */
typedef struct {
    Ctx *c;
    const Plan *p;
    int phase;
    const Func *f;
    const PFusions *list;
    const PFusion *loop; /* whose body it is; NULL = a phase's function */
    int *made_at;        /* by Op.id: 1 + the number of the fusion that makes it; 0 = none does */
    int *needs;          /* by Op.id: the last of these numbers among what it is computed of */
    Contents *holds;     /* by buffer id, behind the fusions that have been looked at */
} Check;

/* Where the plan's text has the fusion of op; of a plan that was not read from one, op's line. */
static Span place_of(const Check *c, const Op *op) {
    for (int i = 0; i < c->list->n; i++)
        for (int k = 0; k < c->list->v[i]->roots.n; k++)
            if (c->list->v[i]->roots.v[k] == op) return span_or(c->list->v[i]->in_text, op->span);
    return op->span;
}

static bool fusion_error(const Check *c, const Op *op, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Adds an error about a fusion; returns false. */
static bool fusion_error(const Check *c, const Op *op, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    const char *what = arena_vprintf(c->c->a, fmt, ap);
    va_end(ap);
    diag_add(c->c, DIAG_E0542, place_of(c, op), "@%s: the fusion of '%s': %s", c->f->name,
             pass_named(op), what);
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
        for (int k = 0; k < n && written && f->kind != PF_COPY; k++)
            if (k != i && f->bufs[k] == f->bufs[i])
                return fusion_error(c, op, "%s is another value's, too",
                                    c->p->bufs.v[f->bufs[i]]->name);
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

/* ---- what buffers hold ------------------------------------------------------------------- */
/* Whether the buffer has the value of a source from the start. */
static bool is_source_buf(const Check *c, int id, const Op *source) {
    const PBuf *b = c->p->bufs.v[id];
    switch (source->kind) {
    case OP_DATA:
        return b->kind == PB_DATA && b->col == source->col;
    case OP_VAR:
        return b->kind == PB_VAR && b->var == source->var;
    case OP_INPUT:
        return b->kind == PB_INPUT && strcmp(b->io_name, source->name) == 0;
    case OP_SAVED:
        return b->kind == PB_SAVED && strcmp(b->io_name, source->name) == 0;
    default:
        return c->loop && c->loop->bufs[(int)source->imm] == id;
    }
}

/* Whether the buffer holds the value of x now. */
static bool holds_value(const Check *c, int id, const Op *x) {
    const Contents *now = &c->holds[id];
    for (; x; x = x->kind == OP_VIEW || plan_is_first_rows(x) ? x->in[0] : NULL) {
        if (now->is_written && now->value == x) return true;
        if (op_has(x, OPT_SOURCE)) return !now->is_written && is_source_buf(c, id, x);
    }
    return false;
}

static bool check_function(const Check *around, const Func *f, const PFusion *loop,
                           const PFusions *list);

/* Checks the body of a loop, and that what does not change is where the loop finds it. */
static bool check_loop(const Check *c, const PFusion *f) {
    const Op *op = f->roots.v[0];
    int n_carried = func_n_carried(op->body);
    for (int i = n_carried; i < f->n_bufs; i++)
        if (!holds_value(c, f->bufs[i], op->in[i]))
            return fusion_error(c, op, "%s does not hold its operand %d",
                                c->p->bufs.v[f->bufs[i]]->name, i);
    if (!check_function(c, op->body, f, &f->body)) return false;
    for (int i = 0; i < n_carried && i < f->n_bufs; i++)
        c->holds[f->bufs[i]] = (Contents){.is_written = true};
    for (int i = 0; i < f->roots.n && f->n_bufs; i++) {
        const Op *result = f->roots.v[i];
        c->holds[f->bufs[i ? (int)result->imm : 0]].value = result;
    }
    return true;
}

/* Goes on over a fusion: its buffers hold its values now. False after a diagnostic. */
static bool follow_fusion(const Check *c, const PFusion *f) {
    if (f->kind == PF_LOOP) return check_loop(c, f);
    if (f->kind == PF_COPY)
        c->holds[f->bufs[1]] = (Contents){.is_written = true, .value = f->roots.v[0]->in[0]};
    for (int i = 0; i < f->n_bufs && f->kind != PF_COPY; i++)
        if (f->bufs[i] >= 0)
            c->holds[f->bufs[i]] = (Contents){.is_written = true, .value = f->roots.v[i]};
    return true;
}

/* Whether the buffer is where this effect puts its operand: an output's, a variable's, or that of
 * what a loop carries on. */
static bool is_target(const Check *c, const PBuf *b, const Op *effect) {
    switch (effect->kind) {
    case OP_OUTPUT:
        return (b->kind == PB_OUTPUT || b->kind == PB_SAVED) && b->phase == c->phase &&
               strcmp(b->io_name, effect->name) == 0;
    case OP_ASSIGN:
        return b->kind == PB_VAR && b->var == effect->var;
    default:
        return effect->kind == OP_NEXT && c->loop && c->loop->bufs[(int)effect->imm] == b->id;
    }
}

/* Checks that what has a place of its own is there in the end. */
static bool check_end(const Check *c) {
    for (const Op *op = c->f->first; op; op = op->next) {
        if (op->kind != OP_OUTPUT && op->kind != OP_ASSIGN && op->kind != OP_NEXT) continue;
        int id = 0;
        while (id < c->p->bufs.n && !is_target(c, c->p->bufs.v[id], op)) id++;
        if (id < c->p->bufs.n && holds_value(c, id, op->in[0])) continue;
        return fusion_error(c, op->in[0], "it is not where %s wants it in the end",
                            op->kind == OP_OUTPUT   ? "an output"
                            : op->kind == OP_ASSIGN ? "a variable"
                                                    : "the next iteration");
    }
    return true;
}

/* Whether every iteration of the loop may read what the buffer held before the first one: an
 * operand that does not change, or a variable. */
static bool is_read_again(const PFusion *loop, const PBuf *b) {
    int n_carried = func_n_carried(loop->roots.v[0]->body);
    for (int i = 0; i < loop->n_bufs; i++)
        if (loop->bufs[i] == b->id) return i >= n_carried;
    return b->kind == PB_VAR;
}

/* Checks that the body of a loop writes nothing that its next iteration reads, and tells the
 * function around what it writes. */
static bool leave_body(const Check *around, const Check *body) {
    for (int i = 0; i < body->p->bufs.n; i++) {
        const PBuf *b = body->p->bufs.v[i];
        if (!body->holds[i].is_written) continue;
        if (is_read_again(body->loop, b))
            return fusion_error(around, body->loop->roots.v[0],
                                "its body writes %s, which the next iteration reads", b->name);
        around->holds[i] = (Contents){.is_written = true};
    }
    return true;
}

/* Checks the fusions of a function, or of the body of a loop in the function `around`. */
static bool check_function(const Check *around, const Func *f, const PFusion *loop,
                           const PFusions *list) {
    Arena *a = around->c->a;
    Check c = *around;
    c.f = f;
    c.list = list;
    c.loop = loop;
    c.made_at = NEWN(a, int, (size_t)f->n_ops + 1);
    c.needs = NEWN(a, int, (size_t)f->n_ops + 1);
    c.holds = NEWN(a, Contents, (size_t)c.p->bufs.n + 1);
    for (int i = 0; i < list->n; i++)
        if (!check_roots(&c, list->v[i], i) || !check_bufs(&c, list->v[i])) return false;
    if (!check_order(&c)) return false;
    for (int i = 0; i < list->n; i++)
        if (!follow_fusion(&c, list->v[i])) return false;
    if (c.p->flags & PLAN_BUFFERS && !check_end(&c)) return false;
    return !loop || leave_body(around, &c);
}

/* Checks the fusions of a plan. False after diagnostics. */
bool plan_verify_fusions(Ctx *ctx, const Plan *p) {
    bool ok = true;
    for (int i = 0; i < p->phases.n && ok; i++) {
        const PPhase *ph = p->phases.v[i];
        if (p->flags & PLAN_FUSIONS)
            ok = check_function(&(Check){.c = ctx, .p = p, .phase = i}, ph->func, NULL,
                                &ph->fusions);
        else if (ph->fusions.n)
            ok = false,
            diag_add(ctx, DIAG_E0542, (Span){0},
                     "@%s has fusions, and the plan does not say so: 'has fusions'", ph->name);
    }
    return ok;
}
