/* Weights stored the way the step reads them.
 *
 *     %w = var "w"                    : f32[O, F]      %w = var "w"              : f32[F, O]
 *     %t = copy %w                    : f32[F, O]      %g = gather nzcol(x) %w   : f32[nz, O]
 *     %g = gather nzcol(x) %t         : f32[nz, O]     ..
 *     ..                                               %d = segment sum nzcol(x) : f32[F, O]
 *     %d = segment sum nzcol(x) ..    : f32[F, O]  ->  %s = mul %d, %lr          : f32[F, O]
 *     %e = copy %d                    : f32[O, F]      %n = sub %w, %s           : f32[F, O]
 *     %s = mul %e, %lr                : f32[O, F]      assign "w" %n
 *     %n = sub %w, %s                 : f32[O, F]
 *     assign "w" %n
 *
 * A sparse product gathers rows of the weight, so it wants the summed space first, where PyG's
 * Linear has it last; its gradient comes in that order, too.  Each step would transpose both.  So
 * the variable and its optimizer slots are stored in the other order (Var.transposed) and the
 * update is made in it, where nothing else wants the old one: the update's elementwise operations,
 * sums over all of it (the norm that gradients are clipped by), and matrix products, which read
 * either order. Files, initial values and the C API keep the written order.
 *
 * The layout is chosen for all phases at once, as in the data layout assignment of XLA and of
 * Liu et al. 2019, "Optimizing CNN Model Inference on CPUs" (NeoCPU), where a weight is
 * transposed when the program is compiled. */
#include "passes/rewrite.h"

#include <stdlib.h>

typedef VEC(Op *) Ops;

/* Where a variable is read and written, in all functions. */
typedef struct {
    Ops reads, copies, assigns; /* copies: of a read, in another order */
    VEC(Var *) slots;           /* of its optimizer state */
} Places;

typedef struct {
    PassCtx *p;
    Module *m;
    Places *places; /* by var id */
    const Var *var;
    Type from, to;    /* the order of spaces now, and the one that is wanted */
    int by;           /* its last `by` spaces come first */
    Ops members;      /* of the variable's spaces, to be made in the other order; their tag is.. */
    void *mark;       /* ..this */
    int saved_copies; /* that are saved, less those that are made */
    const char *why;  /* it stays as it is */
} Transpose;

/* Whether op is among those that are made in the other order. */
static bool is_member(const Transpose *t, const Op *op) {
    return op->tag == t->mark;
}

/* Where a variable is read and written. */
static const Places *places_of(const Transpose *t, const Var *v) {
    return &t->places[v->id];
}

/* Records a read, assignment or copy of a variable. */
static void record_op(Transpose *t, Op *op) {
    Arena *a = t->p->a;
    if (op->kind == OP_VAR) vec_push(a, &t->places[op->var->id].reads, op);
    if (op->kind == OP_ASSIGN) vec_push(a, &t->places[op->var->id].assigns, op);
    const Op *x = op->kind == OP_COPY ? op->in[0] : NULL;
    if (x && x->kind == OP_VAR && pass_is_transpose(op))
        vec_push(a, &t->places[x->var->id].copies, op);
}

/* Finds all reads, assignments and copies of variables. */
static void find_places(Transpose *t) {
    t->places = NEWN(t->p->a, Places, (size_t)t->m->vars.n + 1);
    for (int i = 0; i < t->m->vars.n; i++) {
        Var *v = t->m->vars.v[i];
        if (v->of) vec_push(t->p->a, &t->places[v->of->id].slots, v);
    }
    for (int i = 0; i < t->m->funcs.n; i++) {
        func_number(t->m->funcs.v[i]);
        func_keep_users(t->p->a, t->m->funcs.v[i]);
        for (Op *op = t->m->funcs.v[i]->first; op; op = op->next) record_op(t, op);
    }
}

/* ---- which order ------------------------------------------------------------------------ */
/* Whether two types have the same spaces in the same order. */
static bool same_order(const Type *x, const Type *y) {
    return type_same_spaces(x, y);
}

/* The type with its last `by` spaces first. */
static Type transposed(const Type *t, int by) {
    Type y = *t;
    for (int i = 0; i < t->rank; i++) y.dim[i] = t->dim[(i + t->rank - by) % t->rank];
    return y;
}

/* How many of the last spaces of x come first in y; 0: another order, or the same. */
static int transposed_by(const Type *x, const Type *y) {
    for (int by = 1; by < x->rank; by++) {
        Type t = transposed(x, by);
        if (same_order(&t, y)) return by;
    }
    return 0;
}

/* Whether v is the variable or a slot of its optimizer state in the same order. */
static bool is_same_family(const Transpose *t, const Var *v) {
    if (v == t->var) return true;
    return v->of == t->var && same_order(&v->type, &t->from);
}

/* Finds the one other order that copies of the variable have. */
static bool find_order(Transpose *t) {
    const Ops *copies = &places_of(t, t->var)->copies;
    t->by = 0;
    for (int i = 0; i < copies->n; i++) {
        const Op *op = copies->v[i];
        if (!op->func || op->in[0]->kind != OP_VAR || op->in[0]->var != t->var) continue;
        int by = transposed_by(&t->from, &op->type);
        if (!by || (t->by && t->by != by)) return false;
        t->by = by;
    }
    if (t->by) t->to = transposed(&t->from, t->by);
    return t->by > 0;
}

/* ---- what must follow --------------------------------------------------------------------- */
/* Whether the operation is elementwise and no copy. */
static bool is_elementwise(const Op *op) {
    return op_has(op, OPT_ELEM) && op->kind != OP_COPY;
}

/* Whether op copies from the wanted order to the current one. */
static bool is_copy_back(const Transpose *t, const Op *op) {
    return op->kind == OP_COPY && same_order(&op->type, &t->from) &&
           same_order(&op->in[0]->type, &t->to);
}

/* Whether op can be made in the other order. */
static bool can_transpose(const Transpose *t, const Op *op) {
    if (op->type.dt == DT_VOID || !same_order(&op->type, &t->from)) return false;
    if (op->kind == OP_VAR) return is_same_family(t, op->var);
    return is_elementwise(op) || is_copy_back(t, op) ||
           (op->kind == OP_CONTRACT && op->type.rank == 2);
}

/* Whether `user` accepts its operand in the other order. */
static bool accepts_order(const Transpose *t, const Op *user) {
    switch (user->kind) {
    case OP_COPY:
        return same_order(&user->type, &t->to);
    case OP_ASSIGN:
        return is_same_family(t, user->var);
    case OP_CONTRACT:
        return t->from.rank == 2;
    case OP_REDUCE:
        return user->n_over == t->from.rank;
    default:
        return is_elementwise(user) && can_transpose(t, user);
    }
}

/* Adds op to the members, if it can be made in the other order. */
static void add_member(Transpose *t, Op *op) {
    if (is_member(t, op) || !can_transpose(t, op)) return;
    op->tag = t->mark;
    vec_push(t->p->a, &t->members, op);
}

/* Adds all reads of a variable. */
static void add_reads(Transpose *t, const Var *v) {
    const Ops *reads = &places_of(t, v)->reads;
    for (int i = 0; i < reads->n; i++)
        if (reads->v[i]->func) add_member(t, reads->v[i]);
}

/* Compares two operations by position, for qsort. */
static int compare_position(const void *x, const void *y) {
    const Op *a = *(Op *const *)x, *b = *(Op *const *)y;
    return (a->id > b->id) - (a->id < b->id);
}

/* Finds all that reads of the variable and its slots reach through elementwise operations. */
static void find_members(Transpose *t) {
    const Places *of = places_of(t, t->var);
    t->members.n = 0;
    t->mark = NEW(t->p->a, char);
    add_reads(t, t->var);
    for (int i = 0; i < of->slots.n; i++) add_reads(t, of->slots.v[i]);
    for (int i = 0; i < t->members.n; i++) {
        const Op *op = t->members.v[i];
        for (const Use *u = op->users; u; u = u->next)
            if (u->user->func && is_elementwise(u->user)) add_member(t, u->user);
        for (int k = 0; k < op->n_in && is_elementwise(op); k++) add_member(t, op->in[k]);
    }
    if (t->members.n)
        qsort(t->members.v, (size_t)t->members.n, sizeof *t->members.v, compare_position);
}

/* Whether x is an operand in the current order that no member makes, and must be copied. */
static bool is_foreign(const Transpose *t, const Op *x) {
    return x->type.dt != DT_VOID && same_order(&x->type, &t->from) && !is_member(t, x);
}

/* Counts the copies that are saved, less those that are added. False: a reader needs the current
 * order, or nothing is saved. */
static bool count_saved_copies(Transpose *t) {
    t->saved_copies = 0;
    for (int i = 0; i < t->members.n; i++) {
        const Op *op = t->members.v[i];
        t->saved_copies += is_copy_back(t, op);
        for (const Use *u = op->users; u; u = u->next) {
            if (!u->user->func) continue;
            if (!is_member(t, u->user) && !accepts_order(t, u->user)) {
                t->why = arena_printf(t->p->a, "'%s' reads it as it is", pass_named(u->user));
                return false;
            }
            t->saved_copies += u->user->kind == OP_COPY;
        }
        for (int k = 0; k < op->n_in && is_elementwise(op); k++)
            t->saved_copies -= is_foreign(t, op->in[k]);
    }
    return t->saved_copies > 0;
}

/* Whether all assignments of v assign members. */
static bool assigns_fit(const Transpose *t, const Var *v) {
    const Ops *assigns = &places_of(t, v)->assigns;
    for (int i = 0; i < assigns->n; i++)
        if (is_same_family(t, v) && !is_member(t, assigns->v[i]->in[0])) return false;
    return true;
}

/* The same for the variable and its slots. */
static bool all_assigns_fit(const Transpose *t) {
    const Places *of = places_of(t, t->var);
    bool fit = assigns_fit(t, t->var);
    for (int i = 0; i < of->slots.n && fit; i++) fit = assigns_fit(t, of->slots.v[i]);
    return fit;
}

/* ---- the other order ------------------------------------------------------------------------- */
/* Gives a type the other order. */
static void reorder(const Transpose *t, Type *type) {
    for (int i = 0; i < type->rank; i++) type->dim[i] = t->to.dim[i];
}

/* Adds copies of an operation's foreign operands. */
static void transpose_operands(Transpose *t, Op *op) {
    Builder b = b_for(t->m, op->func, op, op);
    bool any = false;
    for (int k = 0; k < op->n_in; k++) {
        Op *x = op->in[k];
        if (!is_foreign(t, x)) continue;
        Type want = x->type;
        reorder(t, &want);
        op_set_in(op, k, b_copy(&b, x, want));
        record_op(t, op->in[k]);
        any = true;
    }
    if (any) func_number(op->func);
}

/* Adds the copies of a value to a list. */
static void add_copies(Transpose *t, Ops *found, const Op *of) {
    for (const Use *u = of->users; u; u = u->next)
        if (u->user->func && u->user->kind == OP_COPY) vec_push(t->p->a, found, u->user);
}

/* The copies among and of the members, and copies of those; some more than once. */
static Ops find_copies(Transpose *t) {
    Ops found = {0};
    for (int i = 0; i < t->members.n; i++) {
        if (t->members.v[i]->kind == OP_COPY) vec_push(t->p->a, &found, t->members.v[i]);
        add_copies(t, &found, t->members.v[i]);
    }
    for (int i = 0; i < found.n; i++)
        if (!is_member(t, found.v[i])) add_copies(t, &found, found.v[i]);
    if (found.n) qsort(found.v, (size_t)found.n, sizeof *found.v, compare_position);
    return found;
}

/* Rewrites the members in the other order and removes the copies. */
static void rewrite(Transpose *t) {
    const Ops copies = find_copies(t);
    for (int i = 0; i < t->members.n; i++)
        if (is_elementwise(t->members.v[i])) transpose_operands(t, t->members.v[i]);
    for (int i = 0; i < t->members.n; i++) reorder(t, &t->members.v[i]->type);
    for (int i = 0; i < copies.n; i++) {
        Op *op = copies.v[i];
        if (!op->func || (!is_member(t, op) && !is_member(t, op->in[0]))) continue;
        op_replace_uses(op->func, op, op->in[0]);
        op_remove(op);
    }
}

/* Changes the order of the variable and its slots. */
static void transpose_variables(const Transpose *t) {
    const Places *of = places_of(t, t->var);
    for (int i = 0; i < of->slots.n; i++) {
        Var *v = of->slots.v[i];
        if (!is_same_family(t, v)) continue;
        v->transposed = t->by;
        reorder(t, &v->type);
    }
    Var *v = var_find(t->m, t->var->path); /* last: slots are told by its order */
    v->transposed = t->by;
    reorder(t, &v->type);
}

/* Stores the variable in another order, if that pays. */
static bool transpose_variable(Transpose *t, const Var *v) {
    t->var = v;
    t->from = v->type;
    if (v->transposed || !find_order(t)) return false;
    find_members(t);
    t->why = NULL;
    bool pays = count_saved_copies(t);
    if (!pays && !t->why) t->why = "as many copies would come as go";
    if (pays && !all_assigns_fit(t)) t->why = "what it becomes is made in the order that it has";
    if (t->why) {
        pass_refusal(t->p, v->span, "transpose-weights", "'%s' keeps the order of its spaces: %s",
                     v->path, t->why);
        return false;
    }
    rewrite(t);
    transpose_variables(t);
    pass_remark(t->p, v->span, "transpose-weights",
                "'%s' is stored with its last %d of %d spaces first", v->path, t->by, v->type.rank);
    return true;
}

/* Runs the pass: parameters that are read only transposed are stored transposed. */
static bool run(PassCtx *p, Module *m) {
    Transpose t = {.p = p, .m = m};
    bool any = false;
    find_places(&t);
    for (int i = 0; i < m->vars.n; i++)
        if (m->vars.v[i]->kind == VAR_PARAM) any |= transpose_variable(&t, m->vars.v[i]);
    for (int i = 0; any && i < m->funcs.n; i++) pass_dce_func(p->a, m->funcs.v[i]);
    return true;
}

const Pass pass_transpose_weights = {
    .name = "transpose-weights",
    .summary = "store weights in the order in which the step reads them",
    .needs = IR_TYPED | IR_NO_CSR,
    .breaks = IR_FUSED,
    .run = run,
};
