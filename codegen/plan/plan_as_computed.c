/* Whether a step's loops are what its facts say.  A plan's text has both, and people edit either;
 * where a library does a step, it does what the facts say.
 *
 * Compared are how often each operation is there, constants, and how sums combine, in loops that no
 * pass has rearranged.  Which elements are read and stored is not. */
#include "codegen/plan/plan.h"

#include <math.h>
#include <stdlib.h>

/* How often each operation is in the loops of a kernel, and among what its facts say. */
typedef struct {
    int in_loops[N_OPS], computed[N_OPS];
    unsigned reds;    /* bit RedKind: a reduction that is computed combines values so */
    double *constant; /* values of the constants that are computed, in order */
    size_t n_constants;
} Counts;

/* Whether the statement carries out an operation of the graph; a cast to an index is none. */
static bool is_operation(const LStmt *s) {
    bool is_index = s->op == OP_CAST && s->kind == L_LET && s->dst->dt == DT_I64;
    return s->kind == L_LET && s->fn == L_FN_OP && !is_index;
}

/* Counts the operations among the statements. */
static void count_operations(Counts *c, const LStmt *s) {
    for (; s; s = s->next) {
        if (is_operation(s)) c->in_loops[s->op]++;
        if (loop_has_body(s)) count_operations(c, s->body);
    }
}

/* The order of two numbers, as qsort() wants it. */
static int compare_numbers(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* Counts what the step computes. A kernel that adds up partial sums combines as its step's own
 * operation does. */
static void count_computed(Counts *c, Arena *a, const PStep *s) {
    const LKernel *k = s->kernel;
    c->constant = NEWN(a, double, (size_t)k->computes.n + 1);
    for (int i = -1; i < k->computes.n; i++) {
        const Op *op = i < 0 ? s->op : k->computes.v[i];
        if (op && (op->kind == OP_SEGMENT || op->kind == OP_REDUCE)) c->reds |= 1u << op->red;
        if (i < 0) continue;
        c->computed[op->kind]++;
        if (op->kind == OP_CONST && !isnan(op->imm)) c->constant[c->n_constants++] = op->imm;
    }
    qsort(c->constant, c->n_constants, sizeof *c->constant, compare_numbers);
}

/* Whether the step computes a constant of this value; 0 is where sums begin. */
static bool has_constant(const Counts *c, double imm) {
    if (imm == 0) return true;
    return !isnan(imm) &&
           bsearch(&imm, c->constant, c->n_constants, sizeof imm, compare_numbers) != NULL;
}

/* For loop_find(): whether the statement does what the facts of the step do not say. */
static bool is_unsaid(const LStmt *s, const void *counts) {
    const Counts *c = counts;
    if (is_operation(s)) return c->in_loops[s->op] != c->computed[s->op];
    if (s->kind == L_ACC) return !(c->reds >> s->red & 1);
    if (s->kind != L_LET) return false;
    bool is_random = s->fn == L_FN_RANDOM || s->fn == L_FN_LE_RANDOM;
    return is_random ? !c->computed[OP_RANDOM] : s->fn == L_FN_CONST && !has_constant(c, s->imm);
}

bool plan_passes_on(const Op *op) {
    return op->kind == OP_DETACH || op->kind == OP_STORE_AS;
}

/* Whether operation op, which the facts say, is missing from the loops. */
static bool is_missing(const Counts *c, const Op *op) {
    bool emits = op_has(op, OPT_ELEM) && !plan_passes_on(op) && op->kind != OP_COPY;
    return emits && !c->in_loops[op->kind];
}

bool plan_is_as_computed(Arena *a, const PStep *s) {
    const LKernel *k = s->kernel;
    Counts c = {.reds = 0};
    if (!k || k->stages.n) return false;
    count_operations(&c, k->body);
    count_computed(&c, a, s);
    if (loop_find(k->body, is_unsaid, &c)) return false;
    for (int i = 0; i < k->computes.n; i++)
        if (is_missing(&c, k->computes.v[i])) return false;
    return loop_count_entry_loops(k->body) == c.computed[OP_SEGMENT];
}
