/* What passes share: structural equality of operations, copies, remarks. */
#ifndef PASSES_REWRITE_H
#define PASSES_REWRITE_H

#include "passes/pass.h"
#include "passes/threshold.h"

/* Removes dead pure operations of f; returns how many.  (dce.c) */
int pass_dce_func(Arena *a, Func *f);

/* Does op update a parameter?  (ask.c) */
bool pass_is_update(const Op *op);
/* Does f compute gradients, told or used to update parameters?  (ask.c) */
bool pass_has_gradients(const Func *f);

/* Makes iterations of the loops between a parameter and the loss; false after a diagnostic: one
 * has no limit.  (unroll.c) */
bool pass_unroll_func(PassCtx *p, Module *m, Func *f);

/* Equal kind, attributes, type and operands: the two compute one value.  Random
 * streams differ even then (OPT_NOCSE): callers ask op_has() first.  (cse.c) */
bool pass_op_equal(const Op *x, const Op *y);
uint64_t pass_op_hash(const Op *op);

/* Hash table from operations to themselves under pass_op_equal. */
typedef struct {
    Arena *a;
    Op **slot;
    int n, cap;
} OpTable;
/* The equal operation that is already there, or `op` after adding it. */
Op *pass_table_add(OpTable *t, Op *op);
Op *pass_table_find(const OpTable *t, const Op *op); /* or NULL */

/* Of what a step draws: its links, or its seeds.  (hoist.c) */
bool pass_is_sampled(const Op *op);
/* Not the same in every step, whatever its operands are.  (hoist.c) */
bool pass_may_vary(const Op *op);

/* Do these edges come from more rows of f's batches than they lead to?  So do those of a relation
 * of the data of which more than one are drawn at a row. */
bool pass_draws_several(const Module *m, const Func *f, const Space *edges);

/* A constant, broadcast or not: *v = its value.  (cse.c) */
bool pass_is_const(const Op *op, double *v);
/* A copy in another order of spaces, broadcasting or not: it reads across rows.  (cse.c) */
bool pass_is_transpose(const Op *op);

/* What a softmax divides by: a sum of exponentials.  (late_division.c) */
bool pass_is_softmax_sum(const Op *op);

/* A contraction that a library computes, with its operands in memory.  (fuse.c) */
bool pass_is_matrix_product(const Op *op);

/* Is the loss of f scaled before it is differentiated?  By what; how many steps were skipped; and
 * what becomes of both.  (loss_scale.c) */
bool pass_loss_is_scaled(const Module *m, const Func *f);
Op *pass_loss_scale_now(Builder *b);
Op *pass_loss_skipped(Builder *b);
void pass_loss_scale_next(Builder *b, Op *finite, Op *due); /* due: NULL = in each step */
/* The scale of the first step, where it was measured: the power of two at or below `scale`, from 1
 * on; a loss that is not scaled is none of its business. */
void pass_loss_scale_start(Module *m, double scale);
/* By op id: does it depend on the scale, as gradients do?  New operations, which have no number,
 * are left out: theirs looks like the first one's. */
bool *pass_loss_scaled_ops(Arena *a, const Module *m, const Func *f);
/* Whether a gradient lies in memory in f16. */
bool pass_loss_needs_scale(Arena *a, const Module *m);

/* Ranges of values, before precision rounds (ranges.c).  Adds outputs to f that tell those of the n
 * values, in memory. */
void pass_ranges_add(PassCtx *p, Module *m, Func *f, int n, Op *const *value);
/* Why p->precision does not hold the value; NULL: it does. */
const char *pass_range_refuses(const PassCtx *p, const Func *f, const Op *op);
const char *pass_range_refuses_saved(const PassCtx *p, const char *name); /* by @load */
/* The loss scale that suits the largest of all gradients; infinite: there are none. */
double pass_range_scale(const PassCtx *p);
/* The measured range of a value, in words: "at most 3.2"; NULL: it was not measured. */
const char *pass_range_text(const PassCtx *p, const Func *f, const Op *op);

/* What people know the operation by: its name in the model, or what it is. */
const char *pass_named(const Op *op);

/* The first few operations that a remark is about, by name and the user's line. */
typedef struct {
    StrBuf text;
    int n, n_named;
} PassOps;
void pass_ops_add(PassCtx *p, PassOps *to, const Op *op);
/* The list as text: ": 'z' (gcn.gnn:14), 'const' (gcn.gnn:15) and 3 more". */
const char *pass_ops_text(PassCtx *p, const PassOps *of);

/* One line for --report: "gat.gnn:14: fuse: ..." */
void pass_remark(PassCtx *p, Span at, const char *pass, const char *fmt, ...) PRINTF_LIKE(4, 5);
/* The same of what was not done, which costs something: --report=missed has it, too. */
void pass_refusal(PassCtx *p, Span at, const char *pass, const char *fmt, ...) PRINTF_LIKE(4, 5);
/* The same of what was not done since it would gain nothing: it costs nothing. */
void pass_declined(PassCtx *p, Span at, const char *pass, const char *fmt, ...) PRINTF_LIKE(4, 5);
/* As pass_refusal(), of what makes the value of op lie in memory; cure: what would change that. */
void pass_refusal_of(PassCtx *p, const Op *op, const char *cure, const char *pass, const char *fmt,
                     ...) PRINTF_LIKE(5, 6);

#endif
