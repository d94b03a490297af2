/* Dead code elimination: a pure operation that nobody uses is removed.
 *
 *     %0 = exp %x            ->      (gone)
 *     assign "mean" %x               %1 = var "mean"
 *     %1 = var "mean"                output "y" %1
 *     output "y" %1                  assign "mean" %x
 *
 * One walk from the end suffices: operands stand before their users.  Assignments
 * sink to the end of the function, in their order: a `var` is its value at the
 * start of the step wherever it stands, so this changes no meaning, and it lets
 * kernels read variables in place. */
#include "passes/rewrite.h"

typedef VEC(const Op *) DeadOps;

/* Removes operations without users, from the last to the first. */
static void remove_dead(Arena *a, Func *f, DeadOps *removed) {
    int *uses = func_use_counts(a, f);
    for (Op *op = f->last, *prev; op; op = prev) {
        prev = op->prev;
        if (uses[op->id] || op_acts(op)) continue;
        for (int i = 0; i < op->n_in; i++) uses[op->in[i]->id]--;
        op_remove(op);
        vec_push(a, removed, op);
    }
}

/* Removes dead operations; how many there were. */
int pass_dce_func(Arena *a, Func *f) {
    DeadOps removed = {0};
    remove_dead(a, f, &removed);
    return removed.n;
}

/* Adds a remark about the removed operations. */
static void report_removed(PassCtx *p, const Func *f, const DeadOps *removed) {
    PassOps ops = {0};
    for (int i = removed->n - 1; i >= 0; i--) pass_ops_add(p, &ops, removed->v[i]);
    if (removed->n)
        pass_remark(p, f->span, "dce", "@%s: %d operations that nobody reads are gone%s", f->name,
                    removed->n, pass_ops_text(p, &ops));
}

/* Moves assignments to the end of the function; how many moved. */
static int sink_assigns(Func *f) {
    Op *first_moved = NULL;
    int n = 0;
    for (Op *op = f->first, *next; op && op != first_moved; op = next) {
        next = op->next;
        if (op->kind != OP_ASSIGN) continue;
        if (!first_moved) first_moved = op;
        n += op->next && op->next->kind != OP_ASSIGN;
        op_move_before(op, NULL);
    }
    return n;
}

/* Adds remarks about operations that nobody reads but that have an effect. */
static void report_effects(PassCtx *p, Func *f) {
    const int *uses = func_use_counts(p->a, f);
    for (const Op *op = f->first; op; op = op->next)
        if (op_has_result(op) && op_acts(op) && !uses[op->id])
            pass_declined(p, op->span, "dce", "'%s' of @%s is read by nobody and stays: it acts",
                          pass_named(op), f->name);
}

/* Marks the loop bodies that a function runs. */
static void mark_bodies(const Func *f) {
    for (const Op *op = f->first; op; op = op->next)
        if (op->kind == OP_LOOP) op->body->tag = op->body;
}

/* Removes loop bodies that nothing runs, from the last function on: a body stands before its loop.
 */
static void remove_dead_bodies(Module *m) {
    for (int i = m->funcs.n - 1; i >= 0; i--) {
        Func *f = m->funcs.v[i];
        if (!f->body || f->tag) mark_bodies(f);
    }
    int n = 0;
    for (int i = 0; i < m->funcs.n; i++) {
        Func *f = m->funcs.v[i];
        if (!f->body || f->tag) m->funcs.v[n++] = f;
        f->tag = NULL;
    }
    m->funcs.n = n;
}

/* Runs the pass: moves assignments to the end, and removes the operations of each function that
 * nothing needs and bodies of loops that nothing runs. */
static bool run(PassCtx *p, Module *m) {
    for (int i = 0; i < m->funcs.n; i++) {
        Func *f = m->funcs.v[i];
        DeadOps removed = {0};
        int moved = sink_assigns(f);
        remove_dead(p->a, f, &removed);
        if (moved)
            pass_remark(p, f->span, "dce", "@%s: %d assignments go to the end", f->name, moved);
        report_removed(p, f, &removed);
        if (p->remarks) report_effects(p, f);
    }
    remove_dead_bodies(m);
    return true;
}

const Pass pass_dce = {
    .name = "dce",
    .summary = "remove what nobody uses, move assignments to the end",
    .needs = IR_TYPED,
    .run = run,
    .required = true,
};
