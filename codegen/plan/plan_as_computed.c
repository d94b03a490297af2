/* Whether a step's loops are what its facts say.  A plan's text has both, and people edit either;
 * where a library does a step, it does what the facts say.
 *
 * Compared are how often each operation is there, constants, and how sums combine, in loops that no
 * pass has rearranged.  Which elements are read and stored is not. */
#include "codegen/plan/plan.h"

/* How many operations of the kind the kernel computes. */
static int count_computed(const LKernel *k, OpKind kind) {
    int n = 0;
    for (int i = 0; i < k->computes.n; i++) n += k->computes.v[i]->kind == kind;
    return n;
}

/* Whether the statement carries out an operation of the graph; a cast to an index is none. */
static bool is_operation(const LStmt *s) {
    bool is_index = s->op == OP_CAST && s->kind == L_LET && s->dst->dt == DT_I64;
    return s->kind == L_LET && s->fn == L_FN_OP && !is_index;
}

/* How many operations of the kind are among the statements. */
static int count_operations(const LStmt *s, OpKind kind) {
    int n = 0;
    for (; s; s = s->next) {
        n += is_operation(s) && s->op == kind;
        if (loop_has_body(s)) n += count_operations(s->body, kind);
    }
    return n;
}

/* Whether a constant in the step's kernel is explained: an operation that the step computes has
 * this value, or it is 0, which sums begin with. */
static bool has_constant(const PStep *s, double imm) {
    const LKernel *k = s->kernel;
    for (int i = 0; i < k->computes.n; i++)
        if (k->computes.v[i]->kind == OP_CONST && k->computes.v[i]->imm == imm) return true;
    return imm == 0;
}

/* Whether the step computes a reduction that combines values like this: of a kernel that adds up
 * partial sums, it is the step's own operation. */
static bool has_reduction(const PStep *s, RedKind red) {
    const LKernel *k = s->kernel;
    for (int i = -1; i < k->computes.n; i++) {
        const Op *op = i < 0 ? s->op : k->computes.v[i];
        bool reduces = op && (op->kind == OP_SEGMENT || op->kind == OP_REDUCE);
        if (reduces && op->red == red) return true;
    }
    return false;
}

/* For loop_find(): whether the statement does what the facts of the step do not say. */
static bool is_unsaid(const LStmt *s, const void *step) {
    const PStep *of = step;
    const LKernel *k = of->kernel;
    if (is_operation(s)) return count_operations(k->body, s->op) != count_computed(k, s->op);
    if (s->kind == L_ACC) return !has_reduction(of, s->red);
    if (s->kind != L_LET) return false;
    bool is_random = s->fn == L_FN_RANDOM || s->fn == L_FN_LE_RANDOM;
    return is_random ? !count_computed(k, OP_RANDOM)
                     : s->fn == L_FN_CONST && !has_constant(of, s->imm);
}

bool plan_passes_on(const Op *op) {
    return op->kind == OP_DETACH || op->kind == OP_STORE_AS;
}

/* Whether operation op, which the facts say, is missing from the loops. */
static bool is_missing(const LKernel *k, const Op *op) {
    bool emits = op_has(op, OPT_ELEM) && !plan_passes_on(op) && op->kind != OP_COPY;
    return emits && !count_operations(k->body, op->kind);
}

bool plan_is_as_computed(const PStep *s) {
    const LKernel *k = s->kernel;
    if (!k || k->stages.n || loop_find(k->body, is_unsaid, s)) return false;
    for (int i = 0; i < k->computes.n; i++)
        if (is_missing(k, k->computes.v[i])) return false;
    return loop_count_entry_loops(k->body) == count_computed(k, OP_SEGMENT);
}
