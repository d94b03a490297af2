/* Common subexpression elimination: of two operations with equal kind,
 * attributes and operands, only the first stays.
 *
 *     %1 = gather @src %x            %1 = gather @src %x
 *     %2 = gather @src %x     ->     %3 = mul %1 %1
 *     %3 = mul %1 %2
 *
 * A function is one basic block, so "the first" dominates.  Reads of a variable
 * merge: `var` is its value at the start of the step wherever it stands.  Two
 * random operations never merge, nor do effects, nor what layers of different
 * precision compute (`conv @bf16`). */
#include "passes/rewrite.h"

#include <string.h>

/* Adds v to a hash. The table uses the low bits; those of a double carry little, so high bits are
 * mixed down. */
static uint64_t mix_hash(uint64_t h, uint64_t v) {
    h ^= v + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
    h *= 0xff51afd7ed558ccdu;
    return h ^ h >> 32;
}

/* The bits of a double. */
static uint64_t bits_of(double d) {
    uint64_t u;
    memcpy(&u, &d, sizeof u);
    return u;
}

/* Adds a text to a hash. */
static uint64_t hash_text(uint64_t h, const char *s) {
    for (; s && *s; s++) h = mix_hash(h, (unsigned char)*s);
    return h;
}

/* A hash of kind, type, operands and attributes. */
uint64_t pass_op_hash(const Op *op) {
    uint64_t h = mix_hash(op->kind, (uint64_t)op->type.dt);
    for (int i = 0; i < op->type.rank; i++) h = mix_hash(h, (uint64_t)op->type.dim[i]->id);
    for (int i = 0; i < op->n_in; i++) h = mix_hash(h, (uint64_t)(uintptr_t)op->in[i]);
    for (int i = 0; i < op->n_over; i++) h = mix_hash(h, (uint64_t)op->over[i]->id);
    h = mix_hash(h, (uint64_t)(uintptr_t)op->map ^ (uint64_t)(uintptr_t)op->col);
    h = mix_hash(h, (uint64_t)(uintptr_t)op->var ^ bits_of(op->imm));
    h = mix_hash(h, (uint64_t)(uintptr_t)op->ext ^ (uint64_t)(uintptr_t)op->body);
    return hash_text(mix_hash(h, (uint64_t)op->stream), op->name);
}

/* Whether two texts are equal, or both absent. */
static bool same_text(const char *x, const char *y) {
    return x == y || (x && y && strcmp(x, y) == 0);
}

/* Whether two size expressions are equal, or both absent. */
static bool same_expr(const Expr *x, const Expr *y) {
    return x == y || (x && y && expr_eq(x, y));
}

/* Whether two operations of one kind have equal attributes. */
static bool same_attributes(const Op *x, const Op *y) {
    if (x->map != y->map || x->red != y->red || x->col != y->col || x->var != y->var) return false;
    if (x->body != y->body || x->dtype != y->dtype) return false;
    if (x->ext != y->ext || x->stream != y->stream || bits_of(x->imm) != bits_of(y->imm))
        return false;
    if (x->n_over != y->n_over) return false;
    for (int i = 0; i < x->n_over; i++)
        if (x->over[i] != y->over[i]) return false;
    return same_text(x->name, y->name) && same_expr(x->off, y->off);
}

/* Whether two operations are stored in the same precision, or in one that no layer decides
 * (sources, and what stays f32 everywhere). */
static bool same_precision(const Op *x, const Op *y) {
    bool any = op_has(x, OPT_SOURCE) || (x->type.rank < 2 && x->kind != OP_CONTRACT);
    return any || x->want == y->want;
}

/* Whether two operations compute the same value. */
bool pass_op_equal(const Op *x, const Op *y) {
    if (x->kind != y->kind || x->n_in != y->n_in || !type_eq(&x->type, &y->type)) return false;
    if (!same_precision(x, y)) return false;
    for (int i = 0; i < x->n_in; i++)
        if (x->in[i] != y->in[i]) return false;
    return same_attributes(x, y);
}

/* Whether the operation is a constant, broadcast or not. */
bool pass_is_const(const Op *op, double *v) {
    if (op->kind == OP_COPY) op = op->in[0];
    if (op->kind != OP_CONST) return false;
    *v = op->imm;
    return true;
}

/* Whether the operation is a copy in another order of spaces. */
bool pass_is_transpose(const Op *op) {
    if (op->kind != OP_COPY) return false;
    int last = -1;
    for (int i = 0; i < op->in[0]->type.rank; i++) {
        int at = type_find(&op->type, op->in[0]->type.dim[i]);
        if (at < last) return true;
        last = at;
    }
    return false;
}

/* ---- table: open addressing, at most half full ------------------------------ */
/* The slot of an equal operation, or the empty slot for it. */
static int find_slot(const OpTable *t, const Op *op) {
    int i = (int)(pass_op_hash(op) & (uint64_t)(t->cap - 1));
    while (t->slot[i] && !pass_op_equal(t->slot[i], op)) i = (i + 1) & (t->cap - 1);
    return i;
}

/* Doubles the table. */
static void grow_table(OpTable *t) {
    OpTable old = *t;
    t->cap = old.cap ? 2 * old.cap : 64;
    t->slot = NEWN(t->a, Op *, (size_t)t->cap);
    for (int i = 0; i < old.cap; i++)
        if (old.slot[i]) t->slot[find_slot(t, old.slot[i])] = old.slot[i];
}

/* The equal operation in the table, or NULL. */
Op *pass_table_find(const OpTable *t, const Op *op) {
    return t->cap ? t->slot[find_slot(t, op)] : NULL;
}

Op *pass_table_add(OpTable *t, Op *op) {
    if (2 * (t->n + 1) > t->cap) grow_table(t);
    int i = find_slot(t, op);
    if (t->slot[i]) return t->slot[i];
    t->n++;
    return t->slot[i] = op;
}

/* ---- the pass ------------------------------------------------------------------ */
/* Puts the operands of a commutative operation in a canonical order. The result's spaces follow the
 * first operand, so types must be equal. */
static void sort_operands(Op *op) {
    if (op->n_in < 2 || !op_has(op, OPT_COMM) || op->in[0]->id <= op->in[1]->id) return;
    /* The result's space order follows operand 0; swapping is only free when it stays. */
    if (!type_eq(&op->in[0]->type, &op->in[1]->type)) return;
    Op *x = op->in[0];
    op->in[0] = op->in[1];
    op->in[1] = x;
}

/* Adds a remark about two equal operations that must not be merged: two samples of random numbers,
 * or layers of different precision. */
static void report_unmerged(PassCtx *p, const OpTable *known, OpTable *random, Op *op) {
    static const DType wants[] = {DT_VOID, DT_F32, DT_BF16, DT_F16};
    const DType want = op->want;
    if (op_acts(op)) return;
    if (op_has(op, OPT_NOCSE)) {
        if (pass_table_add(random, op) != op)
            pass_refusal(p, op->span, "cse", "'%s' is drawn twice", pass_named(op));
        return;
    }
    if (pass_table_find(known, op)) return;
    for (size_t i = 0; i < COUNT(wants); i++) {
        op->want = wants[i];
        const Op *other = wants[i] == want ? NULL : pass_table_find(known, op);
        op->want = want;
        if (!other || other->want == want) continue;
        pass_refusal(p, op->span, "cse", "'%s' is computed twice, in layers of different precision",
                     pass_named(op));
        return;
    }
}

/* Merges equal operations of a function. A duplicate's tag names the operation that replaces it; it
 * is left without users and removed at the end. */
static void cse_func(PassCtx *p, Func *f) {
    OpTable t = {.a = p->a}, random = {.a = p->a};
    PassOps merged = {0};
    int n = 0;
    func_number(f);
    for (Op *op = f->first; op; op = op->next) {
        for (int i = 0; i < op->n_in; i++)
            if (op->in[i]->tag) op->in[i] = op->in[i]->tag;
        if (p->remarks) report_unmerged(p, &t, &random, op);
        if (op_acts(op) || op_has(op, OPT_NOCSE)) continue;
        sort_operands(op);
        Op *first = pass_table_add(&t, op);
        if (first == op || !pass_may_rewrite(p)) continue;
        if (!first->ask) first->ask = op->ask;
        op->tag = first;
        pass_ops_add(p, &merged, op);
        n++;
    }
    if (n)
        pass_remark(p, f->span, "cse", "@%s: %d operations are ones that are there already%s",
                    f->name, n, pass_ops_text(p, &merged));
    for (Op *op = f->first, *next; op; op = next) {
        next = op->next;
        if (op->tag) op_remove(op);
    }
}

static bool run(PassCtx *p, Module *m) {
    for (int i = 0; i < m->funcs.n; i++) cse_func(p, m->funcs.v[i]);
    return true;
}

const Pass pass_cse = {
    .name = "cse",
    .summary = "merge equal operations",
    .needs = IR_TYPED,
    .breaks = IR_FUSED,
    .run = run,
};
