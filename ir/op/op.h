/* What the files of ir/op share: words for error phrases, the structure of CSR
 * values, and the small change of writing gradients. */
#ifndef IR_OP_OP_H
#define IR_OP_OP_H

#include "ir/ir.h"

/* One per impl name of ops.def; op_impl() picks. */
extern const OpImpl op_source, op_elementwise, op_gather, op_segment, op_reduce, op_contract,
    op_view, op_concat, op_rank, op_call, op_loop, op_effect;

/* ---- infer ------------------------------------------------------------------ */
const char *op_err(Module *m, const char *fmt, ...) PRINTF_LIKE(2, 3);
const char *op_who(Module *m, const Op *op, int i); /* "'z' (f32[paper, heads])" */
const char *op_type_text(Module *m, const Type *t); /* "f32[paper, heads]" */
bool op_same_spaces(const Type *x, const Type *y);  /* as sets */
bool op_has_spaces(const Type *t, const Type *of);  /* every space of `of` */
/* Error unless operand i is dense: "... is csr, which 'gather' cannot read: ..." */
const char *op_need_dense(Module *m, const Op *op, int i);
const char *op_need_float(Module *m, const Op *op, int i);
/* t with `from` replaced by `to`, or an error; op's own order of the same spaces stands. */
const char *op_swap_space(Module *m, const Op *op, const Space *from, Space *to, Type *t);
void op_keep_order(Type *t, const Type *given); /* t takes given's order when the spaces agree */

/* The column whose stored entries a CSR value has. */
Column *op_csr_column(const Module *m, const Op *x);

/* ---- vjp ---------------------------------------------------------------------- */
/* While gradients are built, `tag` is set on every value that needs one, so that
 * vjp writes nothing for data. */
static inline bool ad_wants(const Op *op, int i) {
    return op->in[i]->tag != NULL;
}
Op *ad_const(Builder *b, const Op *like, double v); /* of like's element type */
Op *ad_zeros(Builder *b, const Type *t);
bool ad_is_flat(const Op *op); /* derivative zero or none: floor, detach, comparisons, integers */

#endif
