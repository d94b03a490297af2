/* Element types and tensor types. */
#include "ir/ir.h"

#include <assert.h>

static const struct {
    const char *name;
    int bytes;
    const char *c_name;
} dtypes[] = {
#define DTYPE(id, name, bytes, c_name) {name, bytes, c_name},
#include "runtime/contract.def"
};

const char *dtype_name(DType t) {
    return dtypes[t].name;
}

int dtype_bytes(DType t) {
    return dtypes[t].bytes;
}

const char *dtype_c_name(DType t) {
    return dtypes[t].c_name;
}

bool dtype_is_float(DType t) {
    return t == DT_F32 || t == DT_F64 || t == DT_F16 || t == DT_BF16;
}

Type type_scalar(DType dt) {
    return (Type){.dt = dt};
}

Type type_make(DType dt, int rank, Space *const *dims) {
    assert(rank >= 0 && rank <= MAX_RANK);
    Type t = {.dt = dt, .rank = rank};
    for (int i = 0; i < rank; i++) t.dim[i] = dims[i];
    return t;
}

bool type_same_spaces(const Type *x, const Type *y) {
    bool same = x->rank == y->rank;
    for (int i = 0; i < x->rank && same; i++) same = x->dim[i] == y->dim[i];
    return same;
}

bool type_eq(const Type *x, const Type *y) {
    return x->dt == y->dt && x->layout == y->layout && type_same_spaces(x, y);
}

int type_find(const Type *t, const Space *s) {
    for (int i = 0; i < t->rank; i++)
        if (t->dim[i] == s) return i;
    return -1;
}

bool type_has(const Type *t, const Space *s) {
    return type_find(t, s) >= 0;
}

const Expr *type_count(Arena *a, const Type *t) {
    const Expr *n = expr_const(a, 1);
    for (int i = 0; i < t->rank; i++) n = expr_mul(a, n, t->dim[i]->size);
    return n;
}

bool rel_is_drawn(RelKind k) {
    return k >= REL_LINKS;
}

/* Whether the map's entries come in the order of their targets. */
bool map_is_sorted(const Map *m) {
    return (m->kind == MAP_DST && !rel_is_drawn(m->from->rel)) || m->kind == MAP_GRAPH ||
           m->kind == MAP_ROW;
}

/* Whether the pair is valid: both maps lead from its rows, or from those behind `via`, and its
 * size is their sizes' product. */
bool map_pair_holds(Arena *a, const Map *m) {
    const Map *t = m->via;
    if (t && (t->from != m->from || t->kind == MAP_PAIR)) return false;
    for (int i = 0; i < 2; i++) {
        const Map *component = m->pair[i];
        bool from_via = t && component->kind == MAP_COL && component->from == t->to;
        if (component->kind == MAP_PAIR || (component->from != m->from && !from_via)) return false;
    }
    return m->to->kind == SP_DIM &&
           expr_eq(m->to->size, expr_mul(a, m->pair[0]->to->size, m->pair[1]->to->size));
}

/* Whether the map may lead to no row. */
bool map_is_partial(const Map *m) {
    if (m->kind == MAP_PAIR) return map_is_partial(m->pair[0]) || map_is_partial(m->pair[1]);
    return m->kind == MAP_COL || m->kind == MAP_ORIG || m->kind == MAP_VIA;
}

bool map_is_of_column(const Map *m, const Column *col) {
    if (m->kind == MAP_PAIR)
        return map_is_of_column(m->pair[0], col) || map_is_of_column(m->pair[1], col);
    const Column *of = m->kind == MAP_ROW || m->kind == MAP_NZCOL ? m->from->nz_of : m->col;
    return of && (!col || of == col);
}
