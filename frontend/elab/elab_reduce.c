/* sum, mean, max, min: over dimensions of a value, or along a map (the edges of a
 * node, the nodes of a graph). */
#include "frontend/elab/elab.h"

#include <string.h>

/* The map that x is reduced along, `over` its target: an end of the relation that x is over, or
 * the graph of x's nodes. NULL: `over` is no such map. */
Map *elab_segment_map(Elab *e, const Op *x, Value over) {
    if (over.kind == VAL_END && type_has(&x->type, over.map->from)) return over.map;
    if (over.kind != VAL_NODE || over.space->kind != SP_GRAPH || type_has(&x->type, over.space))
        return NULL;
    for (int i = 0; i < x->type.rank; i++) {
        Space *s = x->type.dim[i];
        if (s->kind == SP_NODE && s->graph == over.space) return map_graph(e->m, s);
    }
    return NULL;
}

static RedKind kind_of(const char *name) {
    return strcmp(name, "max") == 0 ? RED_MAX : strcmp(name, "min") == 0 ? RED_MIN : RED_SUM;
}

static Value divide(Elab *e, Op *x, Op *by, Span at) {
    return elab_tensor_binary(e, OP_DIV, val_tensor(x), val_tensor(by), at, at, at);
}

/* Reduces x along the map m. If m leads to the seeds of a batch alone, the result has a row for
 * each node of the batch, 0 for those that are no seeds. */
static Op *segment(Elab *e, RedKind red, Map *m, Op *x) {
    Op *y = b_segment(&e->b, red, m, x);
    Space *whole = m->to->prefix_of;
    if (!whole) return y;
    const Expr *rest = expr_mul(e->a, expr_const(e->a, -1), m->to->size);
    Space *other = space_dim(e->m, "others", expr_add(e->a, whole->size, rest), e->b.span);
    Type t = y->type;
    t.dim[type_find(&t, m->to)] = other;
    return b_concat(&e->b, y, b_copy(&e->b, b_const(&e->b, t.dt, 0), t), m->to, other, whole);
}

/* Reduces x along the map m, one result for each row of m->to; `mean` divides by the number of
 * rows, of none by 1. */
static Value along_map(Elab *e, const char *name, Op *x, Map *m, Span at) {
    if (type_has(&x->type, m->to->prefix_of ? m->to->prefix_of : m->to)) {
        diag_add(e->c, DIAG_E0207, at,
                 "the result would have the dimension %s twice: the value is %s",
                 elab_space_text(e, m->to), elab_type_text(e, &x->type));
        return val_poison();
    }
    x = elab_to_dense(e, x);
    Op *y = segment(e, kind_of(name), m, x);
    if (strcmp(name, "mean") != 0) return val_tensor(y);
    Op *one = b_copy(&e->b, b_const(&e->b, x->type.dt, 1), type_make(x->type.dt, 1, &m->from));
    Op *count = segment(e, RED_SUM, m, one);
    Op *least = b_const(&e->b, x->type.dt, 1);
    return divide(e, y, b_binary(&e->b, OP_MAX, count, least), at);
}

/* Reduces x over n of its dimensions; `mean` divides by their size, at least by 1. With none it
 * is x. */
static Value over_dims(Elab *e, const char *name, Op *x, int n, Space *const *over, Span at) {
    if (n == 0) return val_tensor(x);
    if (strcmp(name, "sum") != 0 && strcmp(name, "mean") != 0) x = elab_to_dense(e, x);
    Op *y = b_reduce(&e->b, kind_of(name), x, n, over);
    if (strcmp(name, "mean") != 0) return val_tensor(y);
    Op *count = NULL;
    for (int i = 0; i < n; i++) {
        Op *size = b_size(&e->b, over[i]);
        count = count ? b_binary(&e->b, OP_MUL, count, size) : size;
    }
    count = b_binary(&e->b, OP_MAX, count, b_const(&e->b, DT_F32, 1));
    if (x->type.dt != DT_F32) count = b_cast(&e->b, count, x->type.dt);
    return divide(e, y, count, at);
}

/* Whether the values of x can be reduced so: no bools, and a mean of floating-point numbers
 * only. Reported if not. */
static bool reducible(Elab *e, const char *name, const Op *x, Span at) {
    bool mean = strcmp(name, "mean") == 0;
    if (x->type.dt != DT_I1 && (!mean || dtype_is_float(x->type.dt))) return true;
    diag_add(e->c, DIAG_E0205, at, "'%s' of %s; convert with f32(..)", name,
             elab_type_text(e, &x->type));
    return false;
}

/* Reports a reduction over the end of a relation that x is not on; if x is on its nodes, an
 * [src] was forgotten. */
static void not_on_relation(Elab *e, const Op *x, const Map *end, Span at) {
    const char *of = end->from->name;
    diag_add(e->c, DIAG_E0211, at, "the value is %s; it does not live on %s '%s'%s",
             elab_type_text(e, &x->type),
             end->from->kind == SP_EDGE ? "the relation" : "the nodes of", of,
             type_has(&x->type, end->to)
                 ? "; read it at an end, x[src] or x[dst], or name a node type as "
                   "what is reduced over"
                 : "");
}

/* sum, mean, max or min of x over n dimensions or along a map; n = 0: over all its dimensions.
 * Poison after a diagnostic. */
Value elab_reduce_call(Elab *e, const char *name, Op *x, int n, const Value *over,
                       const Span *over_at, Span at) {
    if (!reducible(e, name, x, at)) return val_poison();
    e->b.span = at;
    if (n == 0) return over_dims(e, name, x, x->type.rank, x->type.dim, at);
    Map *m = n == 1 ? elab_segment_map(e, x, over[0]) : NULL;
    if (m) return along_map(e, name, x, m, at);
    Space *s[MAX_RANK];
    int k = 0;
    for (int i = 0; i < n && i < MAX_RANK; i++) {
        Space *d;
        if (over[i].kind == VAL_END) {
            not_on_relation(e, x, over[i].map, at);
            return val_poison();
        }
        if (!(d = elab_dim_in(e, x, over[i], over_at ? over_at[i] : at))) return val_poison();
        for (int j = 0; j < k; j++)
            if (s[j] == d) {
                diag_add(e->c, DIAG_E0206, at, "the dimension %s is given twice",
                         elab_space_text(e, d));
                return val_poison();
            }
        s[k++] = d;
    }
    return over_dims(e, name, x, k, s, at);
}
