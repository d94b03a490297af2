/* Symbolic shape propagation: each result's element type, layout and spaces follow from its
 * operands.
 *
 *     %m = gather src(cites) %x              %m = gather src(cites) %x : f32[cites, F]
 *     %s = segment sum dst(cites) %m   ->    %s = segment sum dst(cites) %m : f32[paper, F]
 *     %z = contract %s, %w : f32[paper, H]   %z = contract %s, %w : f32[paper, H]
 *
 * Spaces have symbolic sizes (ir/expr.c), so one walk settles the shapes of every data set, and a
 * step asks for none.  What the front end makes has its types already: the pass holds them against
 * the rules
 * (`infer` of ir/op/) once more.  IR written or edited by hand may leave out those that follow;
 * `const`, `input`, `copy`, `contract` and the like, whose result their operands do not tell, say
 * theirs.  The idea is ShapeDtypeStruct propagation of JAX and shape inference of ONNX, over named
 * dimensions. */
#include "passes/rewrite.h"

/* A type, as text. */
static const char *shown(PassCtx *p, const Type *t) {
    StrBuf b = sb_new(p->a);
    type_print(&b, t);
    return b.s;
}

/* Infers the type of an operation, or checks the one that it has. False after a diagnostic. */
static bool infer_type(PassCtx *p, Module *m, Op *op) {
    Op inferred = *op;
    const char *why = op_infer(m, &inferred);
    if (why) {
        diag_add(p->ctx, DIAG_E0406, op->span, "'%s': %s", op_mnemonic(op->kind), why);
        return false;
    }
    if (op->type.dt != DT_VOID && !type_eq(&inferred.type, &op->type)) {
        diag_add(p->ctx, DIAG_E0406, op->span, "the result of this '%s' is %s, not %s",
                 op_mnemonic(op->kind), shown(p, &inferred.type), shown(p, &op->type));
        return false;
    }
    if (op->type.dt != inferred.type.dt)
        pass_remark(p, op->span, "shape-propagation", "the result of '%s' is %s",
                    op_mnemonic(op->kind), shown(p, &inferred.type));
    op->type = inferred.type;
    op->untyped = false;
    return true;
}

/* Whether the value is sparse. */
static bool is_csr(const Op *op) {
    return op->type.dt != DT_VOID && op->type.layout == LAYOUT_CSR;
}

/* Infers all types. A body stands before the loops that run it, so its types are known by then. */
static bool run(PassCtx *p, Module *m) {
    bool csr = false, had = m->has & IR_TYPED;
    for (int i = 0; i < m->funcs.n; i++)
        for (Op *op = m->funcs.v[i]->first; op; op = op->next) {
            if (!infer_type(p, m, op)) return false;
            csr |= is_csr(op);
        }
    if (!had && !csr) m->has |= IR_NO_CSR;
    return had || module_verify(p->ctx, m, "shape-propagation");
}

const Pass pass_shape_propagation = {
    .name = "shape-propagation",
    .summary = "symbolic shapes: what each result's type is, from its operands'",
    .gives = IR_TYPED,
    .run = run,
    .required = true,
};
