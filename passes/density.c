/* Sparse inputs: stored entries or dense rows, by density, decided when data are loaded.
 *
 *     %x = data paper.x : csr f32[paper, F]         %x = data paper.x : f32[paper, F]
 *     %d = mul %x, %mask : csr f32[paper, F]   ->   %d = mul %x, %mask : f32[paper, F]
 *     %z = contract %d, %W                          %z = contract %d, %W
 *
 * A product over stored entries reads a row of W per entry; one over dense rows computes with
 * zeros, but at the rate of a matrix product.  Which is less work is known with the density of
 * the data alone, so the program gets a variant for each, the stored entries first (devices
 * run that); both read either form of file (runtime/bind_form.c).  All columns are asked for
 * in one question: a second one would double the variants, and with them the time to compile.
 *
 * Operations on a CSR value mean the same on dense rows: a zero stays a zero, and a random
 * mask has the same key, (row, column), at a stored entry as in a row. */
#include "passes/rewrite.h"

static bool is_read(const Module *m, const Column *c) {
    for (int i = 0; i < m->funcs.n; i++)
        for (const Op *op = m->funcs.v[i]->first; op; op = op->next)
            if (op->kind == OP_DATA && op->col == c && op->type.layout == LAYOUT_CSR) return true;
    return false;
}

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

static bool reads_sparse(const Op *op) {
    for (int i = 0; i < op->n_in; i++)
        if (op->in[i]->type.layout == LAYOUT_CSR) return true;
    return false;
}

static void make_dense(Module *m) {
    for (int i = 0; i < m->funcs.n; i++)
        for (Op *op = m->funcs.v[i]->first; op; op = op->next)
            if (op->type.layout == LAYOUT_CSR && !reads_sparse(op)) op->type.layout = LAYOUT_DENSE;
}

static bool run(PassCtx *p, Module *m) {
    const char *names = names_of(p, m);
    if (!names) return true;
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
