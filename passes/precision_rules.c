/* Which values may lie in 16 bits: the rules of the precision pass (precision.c), which say of each
 * value that stays f32 why. */
#include "passes/precision.h"

#include <string.h>

/* ---- what a value is --------------------------------------------------------------------- */
/* Whether the operation shows another value, or a part of it, in memory. */
bool prec_is_view(const Op *op) {
    return !op->fused && (op->kind == OP_VIEW || op->kind == OP_SLICE);
}

/* Whether the type has 16 bits. */
bool prec_is_half(DType dt) {
    return dt == DT_BF16 || dt == DT_F16;
}

/* Whether the value is f32 or has 16 bits. */
static bool is_f32_or_half(const Op *op) {
    return op->type.dt == DT_F32 || prec_is_half(op->type.dt);
}

/* Whether the operation is a matrix product in memory, of types that this pass deals with. */
bool prec_is_product(const Op *op) {
    return op->kind == OP_CONTRACT && !op->fused && is_f32_or_half(op->in[0]) &&
           is_f32_or_half(op->in[1]) && pass_is_matrix_product(op);
}

/* Whether the type is rows of features of a node, edge or graph, which are at least as long as the
 * threshold of rows in 16 bits, or of unknown length. */
bool prec_is_wide(const Precision *p, const Type *t) {
    int64_t all = 1, n;
    if (t->rank < 2 || t->dim[0]->kind == SP_DIM || t->layout != LAYOUT_DENSE) return false;
    for (int i = 1; i < t->rank; i++) {
        if (!expr_is_const(t->dim[i]->size, &n)) return true;
        all *= n;
    }
    return all >= pass_threshold(p->p->ctx, PASS_T_PRECISION_ROW);
}

/* Whether computing op accumulates into its own row in memory, since only data know the row's
 * length (codegen/lower/lower_rows.c): the row must be f32. */
static bool has_row_sum(const Precision *p, const Op *op, bool root) {
    int64_t n;
    if ((!root && !op->fused) || !ir_marks_first(p->marks, op->id)) return false;
    const Type *t = &op->type;
    if (op_has(op, OPT_REDUCE) && !prec_is_product(op))
        return t->rank > 1 && !expr_is_const(t->dim[t->rank - 1]->size, &n);
    for (int i = 0; i < op->n_in; i++)
        if (has_row_sum(p, op->in[i], false)) return true;
    return false;
}

/* The same, as a walk of its own. */
bool prec_sums_in_row(const Precision *p, const Op *op) {
    ir_marks_start(p->marks);
    return has_row_sum(p, op, true);
}

/* Whether op goes, element by element, into a sum along features, with a function of wide range on
 * the way. `range`: there was one before. */
static bool goes_into_sum(const Precision *p, const Op *op, bool range) {
    for (int i = 0; i < p->n_users[op->id]; i++) {
        const Op *u = p->op[p->user[op->id][i]];
        bool wide = range || op_has(u, OPT_RANGE);
        if (u->kind == OP_REDUCE && wide && u->over[0]->kind == SP_DIM) return true;
        if (op_has(u, OPT_ELEM) && p->fact[u->id] & (wide ? PREC_RANGED : PREC_SUMMED)) return true;
    }
    return false;
}

/* Whether the value is computed from the learned column, element by element. */
static bool is_of_target(const Precision *p, const Op *op, const Column *target) {
    if (op->kind == OP_DATA) return op->col == target;
    bool any = false;
    for (int i = 0; i < op->n_in; i++) any |= (p->fact[op->in[i]->id] & PREC_ERROR) != 0;
    return any && op_has(op, OPT_ELEM) && op->type.dt == DT_F32;
}

/* Finds the facts of all values. */
void prec_find_facts(Precision *p) {
    const Column *target = module_target(p->m, false);
    for (int i = p->n - 1; i >= 0; i--) {
        if (goes_into_sum(p, p->op[i], false)) p->fact[i] |= PREC_SUMMED;
        if (goes_into_sum(p, p->op[i], true)) p->fact[i] |= PREC_RANGED;
    }
    for (int i = 0; i < p->n; i++)
        if (is_of_target(p, p->op[i], target)) p->fact[i] |= PREC_ERROR;
}

/* Whether the value is subtracted from exponents of a softmax: a rounding error there is a factor
 * of all results. */
static bool is_subtracted_from_exponent(const Precision *p, const Op *op) {
    for (int i = 0; i < p->n_users[op->id]; i++) {
        const Op *u = p->op[p->user[op->id][i]];
        if (u->kind == OP_GATHER && is_subtracted_from_exponent(p, u)) return true;
        if (u->kind != OP_SUB || u->in[1] != op) continue;
        for (int k = 0; k < p->n_users[u->id]; k++)
            if (p->op[p->user[u->id][k]]->kind == OP_EXP) return true;
    }
    return false;
}

/* Whether the operation passes its operand's elements on. */
static bool is_copy(const Op *op) {
    return op->kind == OP_GATHER || op->kind == OP_COPY || op->kind == OP_VIEW;
}

/* Whether the value is compared for equality. */
static bool is_compared(const Precision *p, const Op *op) {
    for (int i = 0; i < p->n_users[op->id]; i++) {
        const Op *u = p->op[p->user[op->id][i]];
        if (u->kind == OP_EQ || (is_copy(u) && is_compared(p, u))) return true;
    }
    return false;
}

/* Whether the value is a maximum or minimum that the gradient compares with the elements: rounded,
 * it would equal none of them. */
static bool is_compared_extremum(const Precision *p, const Op *op) {
    const Op *x = op;
    while ((x->kind == OP_COPY || x->kind == OP_VIEW) && x->in[0]->fused) x = x->in[0];
    bool extremum = (x->kind == OP_SEGMENT || x->kind == OP_REDUCE) && x->red != RED_SUM;
    return extremum && (is_compared(p, op) || is_compared(p, x));
}

DType prec_requested(const Precision *p, const Op *x) {
    while (prec_is_view(x) && !x->in[0]->fused) x = x->in[0];
    return p->op[x->id] == x ? p->requested[x->id] : DT_VOID; /* new ones have no number */
}

/* Why a measured range requests f32; NULL: the model does. */
static const char *range_reason_of(const Precision *p, const Op *x) {
    while (prec_is_view(x) && !x->in[0]->fused) x = x->in[0];
    return p->op[x->id] == x ? p->range_reason[x->id] : NULL;
}

/* The type requested of a value: by the model, else its layer, else the command line. */
DType prec_type_for(const Precision *p, const Op *op) {
    DType wish = prec_requested(p, op);
    return wish ? wish : op->want ? op->want : p->default_type;
}

/* What the model requests of a product, by its operands, result or layer; DT_VOID: nothing. Of two
 * 16-bit types the one of the wider range. */
static DType product_request(const Precision *p, const Op *op) {
    DType x = prec_requested(p, op->in[0]), y = prec_requested(p, op->in[1]),
          z = prec_requested(p, op);
    if (x == DT_F32 || y == DT_F32) return DT_F32;
    if (x || y) return x == DT_BF16 || y == DT_BF16 ? DT_BF16 : DT_F16;
    return prec_is_half(z) ? z : op->want;
}

/* Finds the requests for all products. */
void prec_find_products(Precision *p) {
    for (int i = 0; i < p->n; i++)
        if (prec_is_product(p->op[i])) p->product[i] = product_request(p, p->op[i]);
}

/* Whether the product is requested in f32. */
bool prec_is_f32_product(const Precision *p, const Op *op) {
    return p->product[op->id] == DT_F32;
}

/* The type of both operands of a product. */
DType prec_product_type(const Precision *p, const Op *op) {
    if (prec_is_half(op->type.dt)) return op->type.dt; /* decided, or written so */
    DType wish = p->product[op->id], x = op->in[0]->type.dt, y = op->in[1]->type.dt;
    if (wish || prec_is_half(p->default_type)) return wish ? wish : p->default_type;
    if (!prec_is_half(x) && !prec_is_half(y)) return DT_F32;
    return x == DT_BF16 || y == DT_BF16 ? DT_BF16 : DT_F16;
}

const char *prec_reader_refuses(const Precision *p, const Op *op) {
    for (int i = 0; i < p->n_users[op->id]; i++) {
        const Op *u = p->op[p->user[op->id][i]];
        if (op_has(u, OPT_EFFECT)) return "it leaves the step";
        if (op_has(u, OPT_LIB)) return "a function of its own reads it";
        if (prec_is_product(u) && prec_is_f32_product(p, u)) return "a product in f32 reads it";
        const char *why = prec_is_view(u) ? prec_reader_refuses(p, u) : NULL;
        if (why) return why;
    }
    return NULL;
}

/* The text "it is the next w" if a variable is assigned op; else NULL. */
const char *prec_is_next(const Precision *p, const Op *op) {
    for (int i = 0; i < p->n_users[op->id]; i++) {
        const Op *u = p->op[p->user[op->id][i]];
        if (u->kind == OP_ASSIGN) return arena_printf(p->p->a, "it is the next %s", u->var->path);
    }
    return NULL;
}

/* Why the value is not wide, in words. */
static const char *how_small(const Precision *p, const Type *t) {
    if (!t->rank) return "it is a scalar";
    for (int i = 1; i < t->rank && t->dim[0]->kind == SP_DIM; i++)
        if (t->dim[i]->kind != SP_DIM) return "its first dimension is none of nodes, edges, graphs";
    if (t->dim[0]->kind == SP_DIM) return "it has no row for each node, edge or graph";
    if (t->rank > 1)
        return arena_printf(p->p->a, "its rows have fewer than %d numbers",
                            pass_threshold(p->p->ctx, PASS_T_PRECISION_ROW));
    return t->dim[0]->kind == SP_NZ ? "it is one number a stored entry" : "it is one number a row";
}

const char *prec_refuses(const Precision *p, const Op *op) {
    bool wish = prec_is_half(prec_requested(p, op));
    const char *next = prec_is_next(p, op);
    if (!prec_is_half(prec_type_for(p, op)))
        return range_reason_of(p, op)  ? range_reason_of(p, op)
               : prec_requested(p, op) ? "the model says so"
               : !op->want             ? "as written"
               : next                  ? next
               : op->update            ? "the optimizer computes in f32"
                                       : "its layer says so";
    if (!wish && next) return next;
    if (!wish && !prec_is_wide(p, &op->type)) return how_small(p, &op->type);
    if (!wish && op_has(op, OPT_RANGE)) return "its range is wide";
    if (op_has(op, OPT_LIB)) return "a function of its own makes it";
    if (prec_is_product(op) && prec_is_f32_product(p, op)) return "it is a product in f32";
    if (is_compared_extremum(p, op)) return "its gradient looks for the element that is equal";
    if (prec_sums_in_row(p, op)) return "it is summed in place: only data knows how wide it is";
    const char *why = prec_reader_refuses(p, op);
    if (why || wish) return why;
    if (p->fact[op->id] & PREC_ERROR) return "it is an error of what is learned";
    if (is_subtracted_from_exponent(p, op)) return "a softmax takes it off its exponents";
    if (pass_is_softmax_sum(op)) return "it is the sum of a softmax";
    return p->fact[op->id] & PREC_SUMMED ? "a softmax or loss reads it" : NULL;
}

/* Whether a kernel computes and stores the value in f32. */
bool prec_is_computed(const Op *op) {
    return op->type.dt == DT_F32 && !op->fused && op->n_in > 0 && !prec_is_view(op) &&
           op_has(op, OPT_PURE);
}

/* Whether the value is dense f32 data or saved. */
bool prec_is_loaded(const Op *op) {
    return op->type.dt == DT_F32 && op->type.layout == LAYOUT_DENSE &&
           (op->kind == OP_DATA || op->kind == OP_SAVED);
}
