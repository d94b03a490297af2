/* Sparse inputs: stored entries or dense rows, by density, decided when data are loaded.
 *
 *     %x = data paper.x : csr f32[paper, F]         %x = data paper.x : f32[paper, F]
 *     %d = mul %x, %mask : csr f32[paper, F]   ->   %d = mul %x, %mask : f32[paper, F]
 *     %z = contract %d, %W                          %z = contract %d, %W
 *
 * A product over stored entries reads a row of W per entry; one over dense rows computes with
 * zeros, but at the rate of a matrix product.  Which is less work is known with the density of
 * the data alone, so the program gets a variant for each, the stored entries first (devices
 * run that); both read either form of file (runtime/bind/bind_form.c).  All columns are asked for
 * in one question: a second one would double the variants, and with them the time to compile.
 *
 * Operations on a CSR value mean the same on dense rows: a zero stays a zero, and a random
 * mask has the same key, (row, column), at a stored entry as in a row.  Not so where a zero may
 * meet what is not finite: x / sum(x) over an empty row is nothing among stored entries, but 0 / 0
 * in a row, and so is the gradient of sqrt(x w).  Programs that do so keep to stored entries. */
#include "passes/rewrite.h"

#include <math.h>

/* ---- do zeros stay zeros? ---------------------------------------------------------------- */
/* What is known of a value, by op id. */
typedef struct {
    bool finite;    /* as is_finite() says */
    bool parameter; /* a variable is among what computes it */
} Fact;

/* Whether the value is known to be finite, as long as parameters are. */
static bool is_finite(const Fact *fact, const Op *op) {
    double v;
    if (pass_is_const(op, &v)) return isfinite(v);
    switch (op->kind) {
    case OP_RANDOM:
    case OP_IOTA:
    case OP_SIZE:
    case OP_VAR:
        return true;
    case OP_DIV:
        return fact[op->in[0]->id].finite && pass_is_const(op->in[1], &v) && v != 0;
    case OP_MUL:
    case OP_ADD:
    case OP_SUB:
    case OP_MAX:
    case OP_MIN:
        return fact[op->in[0]->id].finite && fact[op->in[1]->id].finite;
    case OP_SELECT:
        return fact[op->in[1]->id].finite && fact[op->in[2]->id].finite;
    case OP_CAST:
    case OP_COPY:
    case OP_VIEW:
    case OP_NEG:
    case OP_DETACH:
        return fact[op->in[0]->id].finite;
    default: /* comparisons, and what is made of them */
        return op->type.dt == DT_I1;
    }
}

/* The facts of all values of a function. */
static Fact *facts_of(Arena *a, Func *f) {
    func_number(f);
    Fact *fact = NEWN(a, Fact, (size_t)f->n_ops + 1);
    for (const Op *op = f->first; op; op = op->next) {
        fact[op->id].finite = is_finite(fact, op);
        fact[op->id].parameter = op->kind == OP_VAR;
        for (int i = 0; i < op->n_in; i++) fact[op->id].parameter |= fact[op->in[i]->id].parameter;
    }
    return fact;
}

/* Whether an operation on dense rows makes zeros of zeros, as on stored entries. */
static bool preserves_zeros(const Fact *fact, const Op *op) {
    double v;
    switch (op->kind) {
    case OP_MUL:
        for (int i = 0; i < 2; i++)
            if (op->in[i]->type.layout != LAYOUT_CSR && !fact[op->in[i]->id].finite) return false;
        return true;
    case OP_DIV:
        return pass_is_const(op->in[1], &v) && v != 0;
    case OP_SQRT: /* its slope at 0 is infinite */
        return !fact[op->in[0]->id].parameter;
    default:
        return true;
    }
}

/* The first operation whose dense rows could hold other numbers than zero; NULL: none. */
static const Op *find_zero_filler(PassCtx *p, const Module *m) {
    for (int i = 0; i < m->funcs.n; i++) {
        const Fact *fact = facts_of(p->a, m->funcs.v[i]);
        for (const Op *op = m->funcs.v[i]->first; op; op = op->next)
            if (op->type.layout == LAYOUT_CSR && !preserves_zeros(fact, op)) return op;
    }
    return NULL;
}

/* ---- the variants ------------------------------------------------------------------------ */
/* Whether a function reads the column as stored entries. */
static bool is_read(const Module *m, const Column *c) {
    for (int i = 0; i < m->funcs.n; i++)
        for (const Op *op = m->funcs.v[i]->first; op; op = op->next)
            if (op->kind == OP_DATA && op->col == c && op->type.layout == LAYOUT_CSR) return true;
    return false;
}

/* The names of the sparse columns that are read, as a list. */
static const char *names_of(PassCtx *p, const Module *m) {
    const char *names = NULL;
    for (int i = 0; i < m->cols.n; i++) {
        const Column *c = m->cols.v[i];
        if (c->kind != COL_CSR || !is_read(m, c)) continue;
        names = arena_printf(p->a, "%s%s%s.%s", names ? names : "", names ? ", " : "",
                             c->space->name, c->name);
    }
    return names;
}

/* Whether an operand is sparse. */
static bool reads_sparse(const Op *op) {
    for (int i = 0; i < op->n_in; i++)
        if (op->in[i]->type.layout == LAYOUT_CSR) return true;
    return false;
}

/* Makes all sparse values dense. */
static void make_dense(Module *m) {
    for (int i = 0; i < m->funcs.n; i++)
        for (Op *op = m->funcs.v[i]->first; op; op = op->next)
            if (op->type.layout == LAYOUT_CSR && !reads_sparse(op)) op->type.layout = LAYOUT_DENSE;
}

/* Runs the pass: decides whether sparse columns are computed with as stored entries (CSR) or as
 * dense rows, and makes all of them dense in the second case. */
static bool run(PassCtx *p, Module *m) {
    const char *names = names_of(p, m);
    if (!names) return true;
    const Op *bad = find_zero_filler(p, m);
    if (bad) {
        pass_refusal(
            p, bad->span, "density",
            "computes with the stored entries of %s: '%s' of dense rows could make more of "
            "a zero",
            names, op_mnemonic(bad->kind));
        return true;
    }
    const char *stored = arena_printf(p->a, "computes with the stored entries of %s", names);
    const char *rows = arena_printf(p->a, "computes with dense rows of %s", names);
    bool dense = pass_choose(p, arena_printf(p->a, "density %s", names), stored, rows);
    if (dense) make_dense(m);
    pass_remark(p, (Span){0}, "density", "%s", dense ? rows : stored);
    return true;
}

const Pass pass_density = {
    .name = "density",
    .summary = "sparse inputs as stored entries or as dense rows",
    .needs = IR_TYPED,
    .run = run,
};
