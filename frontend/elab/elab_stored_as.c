/* `x @bf16`: in which type a value lies in memory, or all that a layer or function computes.  What
 * becomes of it the precision pass decides (passes/precision.c). */
#include "frontend/elab/elab.h"

#include <string.h>

/* The element type that `x @bf16` names; DT_VOID: t is no such expression. */
DType elab_stored_as_word(const Ast *t) {
    if (t->kind != AST_BINARY || t->op != OPR_AT || t->kid[1]->kind != AST_NAME) return DT_VOID;
    for (int d = 0; d < N_DTYPES; d++)
        if (strcmp(dtype_name((DType)d), t->kid[1]->text) == 0) return (DType)d;
    return DT_VOID;
}

static bool may_be_kept(DType dt) {
    return dt == DT_F32 || dt == DT_BF16 || dt == DT_F16;
}

/* Whether x is a value in memory, as opposed to a number that is known when compiling; reported
 * if not. */
static bool is_in_memory(Elab *e, Value x, DType dt, Span of) {
    if (x.kind != VAL_INT && x.kind != VAL_FLOAT && x.kind != VAL_BOOL) return true;
    diag_add(e->c, DIAG_E0205, of,
             "'@%s' is said of values in memory: %s is %s, known when compiling", dtype_name(dt),
             elab_source_text(e, of), elab_kind_text(x));
    return false;
}

/* x, kept in memory as dt: of a tensor an operation, of a layer or function a note that its
 * results are. Poison after a diagnostic. */
Value elab_stored_as(Elab *e, Value x, DType dt, Span of, Span at) {
    if (elab_is_poison(x)) return x;
    if (!may_be_kept(dt)) {
        diag_add(e->c, DIAG_E0205, at, "values in memory are '@f32', '@bf16' or '@f16', not '@%s'",
                 dtype_name(dt));
        return val_poison();
    }
    if (x.kind == VAL_INST || x.kind == VAL_FN) {
        x.kept = dt;
        return x;
    }
    Op *op = is_in_memory(e, x, dt, of) ? elab_to_tensor(e, x, DT_F32, of) : NULL;
    if (!op) return val_poison();
    if (op->type.layout == LAYOUT_CSR && op->type.dt == DT_F32) {
        if (dt != DT_F32)
            diag_warn(e->c, DIAG_E0205, at,
                      "the stored entries of %s stay f32: '@%s' says nothing of them",
                      elab_source_text(e, of), dtype_name(dt));
        return x;
    }
    return elab_tensor_store_as(e, op, dt, at);
}

/* Evaluates `x @bf16`; a second such word after it is an error. */
Value elab_eval_stored_as(Elab *e, const Ast *t) {
    const Ast *x = t->kid[0];
    DType dt = elab_stored_as_word(t), before = elab_stored_as_word(x);
    if (before == DT_VOID) return elab_stored_as(e, elab_eval(e, x), dt, x->span, t->span);
    diag_add(e->c, DIAG_E0205, t->kid[1]->span, "'@%s' after '@%s': a value has one type in memory",
             dtype_name(dt), dtype_name(before));
    diag_note(e->c, x->kid[1]->span, "the first one is here");
    return val_poison();
}

/* ---- two words for one value -------- */
static DType word_of(const Op *op) {
    return op->kind == OP_STORE_AS ? op->dtype : DT_VOID;
}

/* The value that it is said of. */
static const Op *said_of(const Op *op) {
    while (word_of(op) != DT_VOID) op = op->in[0];
    return op;
}

/* A column, or a parameter, is one value wherever it is read. */
static bool is_same_value(const Op *x, const Op *y) {
    if (x == y) return true;
    if (x->kind != y->kind) return false;
    return (x->kind == OP_DATA && x->col == y->col) || (x->kind == OP_VAR && x->var == y->var);
}

/* An operation before op that keeps the same value in another type; NULL: there is none. */
static const Op *other_word(const Func *f, const Op *op) {
    for (const Op *x = f->first; x != op; x = x->next)
        if (word_of(x) != DT_VOID && word_of(x) != word_of(op) &&
            is_same_value(said_of(x), said_of(op)))
            return x;
    return NULL;
}

/* Warns of values that the model keeps in two types, which are one value in memory. */
void elab_check_stored_as(Elab *e) {
    for (int i = 0; i < e->m->funcs.n; i++)
        for (const Op *op = e->m->funcs.v[i]->first; op; op = op->next) {
            const Op *before = word_of(op) != DT_VOID ? other_word(e->m->funcs.v[i], op) : NULL;
            if (!before) continue;
            diag_warn(
                e->c, DIAG_E0205, op->span,
                "'@%s' here, and '@%s' elsewhere, are said of one value, which has one type in "
                "memory: leave one out",
                dtype_name(word_of(op)), dtype_name(word_of(before)));
            diag_note(e->c, before->span, "the first one is here");
        }
}
