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

/* The record of stored value `base` among those that the root reads; it is added if it is new. */
static CgRead *read_record(Reader *r, const Op *base) {
    int *slot = &r->lo->slot[base->id];
    if (*slot >= r->reads->n || r->reads->v[*slot].base != base) {
        *slot = r->reads->n;
        vec_push(r->lo->a, r->reads, ((CgRead){.base = base}));
    }
    return &r->reads->v[*slot];
}

/* Records that the root's kernel reads the stored value behind s.op, at the root's own index or at
 * another one. */
static void record_read(Reader *r, ReadStep s) {
    const Op *base = cg_info(r->lo, s.op)->base;
    CgRead *record = read_record(r, base);
    /* Through a view of a view it is the same element, but read from memory. */
    if (s.aligned && s.op == base && type_same_spaces(&s.op->type, &r->root->type))
        record->at_own_index = true;
    else
        record->at_other_index = true;
}

/* Visits a value on the walk from the root: records a stored one, and goes on to the operands of a
 * fused one. */
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

/* The stored values that the kernel of root reads, each once; remembered by root. */
const CgReads *cg_reads(const Lower *lo, const Op *root) {
    CgReads **memo = &lo->reads[root->id];
    if (*memo) return *memo;
    Reader reader = {.lo = lo, .root = root, .reads = NEW(lo->a, CgReads)};
    ir_marks_start(lo->marks);
    vec_push(lo->a, &reader.ahead, ((ReadStep){root, true}));
    while (reader.ahead.n) visit_read(&reader, reader.ahead.v[--reader.ahead.n]);
    return *memo = reader.reads;
}

/* Whether two ops read the same value: also two reads of one variable, or of one loop operand. */
bool cg_is_same_value(const Op *x, const Op *y) {
    bool rewritten = x->kind == OP_VAR || x->kind == OP_ARG;
    return x == y || (rewritten && x->kind == y->kind && x->var == y->var && x->imm == y->imm);
}

CgRead cg_how_read(const Lower *lo, const Op *root, const Op *target) {
    const CgReads *reads = cg_reads(lo, root);
    CgRead result = {.base = target};
    for (int i = 0; i < reads->n; i++) {
        if (!cg_is_same_value(reads->v[i].base, target)) continue;
        result.at_own_index |= reads->v[i].at_own_index;
        result.at_other_index |= reads->v[i].at_other_index;
    }
    return result;
}

/* The number of elements of a row of type t, if it is known at compile time; else false. */
bool cg_row_size(const Type *t, int64_t *n) {
    *n = 1;
    for (int i = 1; i < t->rank; i++) {
        int64_t d;
        if (!expr_is_const(t->dim[i]->size, &d)) return false;
        *n *= d;
    }
    return true;
}

bool cg_has_op(const OpList *list, const Op *op) {
    for (int i = 0; i < list->n; i++)
        if (list->v[i] == op) return true;
    return false;
}

bool cg_has_map(const MapList *list, const Map *m) {
    for (int i = 0; i < list->n; i++)
        if (list->v[i] == m) return true;
    return false;
}

/* The fused value under op, if op is a stored view: the kernel can store that value under the
 * view's dimensions. */
const Op *cg_skip_views(const Lower *lo, const Op *op) {
    while (op->kind == OP_VIEW && cg_info(lo, op->in[0])->storage == HOW_INLINE &&
           op->in[0]->type.rank > 0)
        op = op->in[0];
    return op;
}
