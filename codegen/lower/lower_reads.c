/* What the kernel of a root reads, and whether at its own index or at others. */
#include "codegen/lower/lower.h"

/* A value on the walk from a root; aligned: at the root's own index. */
typedef struct {
    const Op *op;
    bool aligned;
} ReadStep;

typedef struct {
    const Lower *lo;
    const Op *root;
    CgReads *reads;
    VEC(ReadStep) ahead; /* the next one last */
} Reader;

/* The record of a stored value that the root reads, added if it is new. */
static CgRead *read_record(Reader *r, const Op *base) {
    int *at = &r->lo->slot[base->id];
    if (*at >= r->reads->n || r->reads->v[*at].base != base) {
        *at = r->reads->n;
        vec_push(r->lo->a, r->reads, ((CgRead){.base = base}));
    }
    return &r->reads->v[*at];
}

static void record_read(Reader *r, ReadStep s) {
    const Op *base = cg_info(r->lo, s.op)->base;
    CgRead *x = read_record(r, base);
    /* Through a view of a view it is the same element, but read from memory. */
    if (s.aligned && s.op == base && type_same_spaces(&s.op->type, &r->root->type))
        x->at_own_index = true;
    else
        x->at_other_index = true;
}

/* Visits a value on the walk. */
static void visit_read(Reader *r, ReadStep s) {
    const Op *op = s.op;
    if (!ir_marks_first(r->lo->marks, 2 * op->id + s.aligned)) return;
    if (op != r->root && cg_info(r->lo, op)->storage != HOW_INLINE) {
        record_read(r, s);
        return;
    }
    for (int i = op->n_in - 1; i >= 0; i--)
        vec_push(r->lo->a, &r->ahead, ((ReadStep){op->in[i], s.aligned && op_has(op, OPT_ELEM)}));
}

/* The stored values that the kernel of root reads. */
const CgReads *cg_reads(const Lower *lo, const Op *root) {
    CgReads **known = &lo->reads[root->id];
    if (*known) return *known;
    Reader r = {.lo = lo, .root = root, .reads = NEW(lo->a, CgReads)};
    ir_marks_start(lo->marks);
    vec_push(lo->a, &r.ahead, ((ReadStep){root, true}));
    while (r.ahead.n) visit_read(&r, r.ahead.v[--r.ahead.n]);
    return *known = r.reads;
}

/* Whether two ops read the same value: two reads of one variable or loop operand do. */
bool cg_is_same_value(const Op *x, const Op *y) {
    bool rewritten = x->kind == OP_VAR || x->kind == OP_ARG;
    return x == y || (rewritten && x->kind == y->kind && x->var == y->var && x->imm == y->imm);
}

/* How root reads the stored value `target`. */
CgRead cg_how_read(const Lower *lo, const Op *root, const Op *target) {
    const CgReads *all = cg_reads(lo, root);
    CgRead is = {.base = target};
    for (int i = 0; i < all->n; i++) {
        if (!cg_is_same_value(all->v[i].base, target)) continue;
        is.at_own_index |= all->v[i].at_own_index;
        is.at_other_index |= all->v[i].at_other_index;
    }
    return is;
}

/* The number of elements of a row, if it is constant. */
bool cg_row_size(const Type *t, int64_t *n) {
    *n = 1;
    for (int i = 1; i < t->rank; i++) {
        int64_t d;
        if (!expr_is_const(t->dim[i]->size, &d)) return false;
        *n *= d;
    }
    return true;
}

bool cg_has_op(const OpList *v, const Op *op) {
    for (int i = 0; i < v->n; i++)
        if (v->v[i] == op) return true;
    return false;
}

bool cg_has_map(const MapList *v, const Map *m) {
    for (int i = 0; i < v->n; i++)
        if (v->v[i] == m) return true;
    return false;
}

/* The fused value that a stored view shows: it can be stored under its own dimensions. */
const Op *cg_skip_views(const Lower *lo, const Op *op) {
    while (op->kind == OP_VIEW && cg_info(lo, op->in[0])->storage == HOW_INLINE &&
           op->in[0]->type.rank > 0)
        op = op->in[0];
    return op;
}
