/* Removes the CSR layout: a sparse value over [N, F] becomes a dense value over its
 * column's space of stored entries.
 *
 *     %x = data paper.x            : csr f32[paper, F]
 *     %z = contract %x, %W         : f32[paper, O]          (sum over F)
 *  ->
 *     %v = data paper.x            : f32[nz]
 *     %w = gather @nzcol %W        : f32[nz, O]
 *     %z = segment sum @row (mul %v %w)
 *
 * After this a sparse product is an ordinary gather-multiply-segment, fused, balanced
 * and differentiated like message passing.  The row map is sorted; the sum over rows
 * (the weight's gradient) is the segment along @nzcol, the transposed matrix.
 *
 * Everything rests on one question, asked recursively by entry_value(): what is the value of
 * a dense expression at the stored entries?  Along one of N and F it is a gather; an
 * elementwise expression is answered by its operands; a random mask is drawn at (row,
 * column), its key by definition, so only the stored entries are drawn; a contraction
 * over other dimensions becomes one dot product per entry (SDDMM, as in DGL).
 * Anything else is gathered by row and picked by comparing the column with iota. */
#include "passes/rewrite.h"

/* What the pass knows of an operation, hung on its tag. */
typedef struct {
    Space *nz;       /* a CSR value: its stored entries; NULL = dense */
    Op *value;       /* a CSR value at its stored entries */
    Op *dense;       /* a CSR value made dense, once asked for */
    Space *entries;  /* the entries that entry_value is for */
    Op *entry_value; /* last answer of entry_value */
} Info;

typedef struct {
    PassCtx *p;
    Builder b;
} Lowering;

/* The stored entries asked about, and their two maps. */
typedef struct {
    Space *nz;
    Map *row, *col;
} Entries;

static Op *entry_value(Lowering *l, const Entries *at, Op *x);

/* The fact of an operation, created if necessary. */
static Info *fact_of(Lowering *l, Op *op) {
    if (!op->tag) op->tag = NEW(l->p->a, Info);
    return op->tag;
}

/* The stored entries of a sparse value; NULL: it is dense. */
static Space *nz_of(const Op *op) {
    const Info *i = op->tag;
    return i ? i->nz : NULL;
}

/* The stored entries with their two maps. */
static Entries entries_of(Lowering *l, Space *nz) {
    return (Entries){.nz = nz, .row = map_row(l->b.m, nz), .col = map_nzcol(l->b.m, nz)};
}

/* Records that op is sparse and has this value at its entries. */
static void set_sparse(Lowering *l, Op *op, Space *nz, Op *value) {
    Info *i = fact_of(l, op);
    i->nz = nz;
    i->value = value;
}

/* ---- pieces ---------------------------------------------------------------------- */
/* A zero. */
static Op *zero(Lowering *l, DType dt) {
    return b_const(&l->b, dt, 0);
}

/* i1[nz, F]: whether the entry lies in the column. */
static Op *in_column(Lowering *l, const Entries *at) {
    return b_binary(&l->b, OP_EQ, b_index(&l->b, at->col), b_iota(&l->b, at->col->to));
}

/* x in the type's order of spaces. */
static Op *reorder(Lowering *l, Op *x, const Type *want) {
    return type_eq(&x->type, want) ? x : b_copy(&l->b, x, *want);
}

/* x with space s as its first, so that a gathered row is contiguous. */
static Op *to_front(Lowering *l, Op *x, Space *s) {
    if (x->type.dim[0] == s) return x;
    Type t = x->type;
    int n = 0;
    t.dim[n++] = s;
    for (int i = 0; i < x->type.rank; i++)
        if (x->type.dim[i] != s) t.dim[n++] = x->type.dim[i];
    return b_copy(&l->b, x, t);
}

/* Gathers rows of x along a map. */
static Op *gather_along(Lowering *l, Map *m, Op *x) {
    return b_gather(&l->b, m, to_front(l, x, m->to));
}

/* The dense matrix of a sparse value. */
static Op *densify(Lowering *l, Op *x) {
    Space *nz = nz_of(x);
    if (!nz) return x;
    Info *i = fact_of(l, x);
    if (i->dense) return i->dense;
    Entries at = entries_of(l, nz);
    Op *spread = b_select(&l->b, in_column(l, &at), i->value, zero(l, i->value->type.dt));
    Type want = type_make(i->value->type.dt, 2, (Space *[]){at.row->to, at.col->to});
    i->dense = reorder(l, b_segment(&l->b, RED_SUM, at.row, spread), &want);
    pass_refusal(l->p, x->span, "lower-csr", "sparse value made dense for a user that is not");
    return i->dense;
}

/* ---- the value of x at the stored entries ---------------------------------------- */
/* Builds op over new operands; its type is inferred anew. */
static Op *rebuild(Lowering *l, const Op *op, Op *const *in) {
    Op proto = *op;
    proto.in = NEWN(l->p->a, Op *, (size_t)op->n_in);
    for (int i = 0; i < op->n_in; i++) proto.in[i] = in[i];
    proto.tag = NULL;
    proto.type.layout = LAYOUT_DENSE;
    return b_op(&l->b, &proto);
}

/* An elementwise operation at the stored entries. */
static Op *elementwise_at(Lowering *l, const Entries *at, Op *x) {
    Op *in[3];
    for (int i = 0; i < x->n_in; i++) in[i] = entry_value(l, at, x->in[i]);
    return rebuild(l, x, in);
}

/* Random numbers of the stored entries. */
static Op *random_at(Lowering *l, const Entries *at, Op *x) {
    return b_random(&l->b, x->stream, type_make(x->type.dt, 1, (Space *[]){at->nz}));
}

/* A contraction at the stored entries: one dot product per entry. The summed dimensions are not N
 * or F. */
static Op *contract_at(Lowering *l, const Entries *at, Op *x) {
    Op *a = entry_value(l, at, x->in[0]), *b = entry_value(l, at, x->in[1]);
    Type t = x->type;
    t.rank = 0;
    t.dim[t.rank++] = at->nz;
    for (int i = 0; i < x->type.rank; i++)
        if (x->type.dim[i] != at->row->to && x->type.dim[i] != at->col->to)
            t.dim[t.rank++] = x->type.dim[i];
    return b_contract(&l->b, a, b, t);
}

/* The value at the entries of a matrix that is gathered row by row. */
static Op *pick_at(Lowering *l, const Entries *at, Op *x) {
    Op *row = gather_along(l, at->row, x);
    Op *in_entry = b_select(&l->b, in_column(l, at), row, zero(l, x->type.dt));
    return b_reduce(&l->b, RED_SUM, in_entry, 1, (Space *[]){at->col->to});
}

/* Whether a copy adds a space other than the matrix's two. */
static bool copy_broadcasts(const Entries *at, const Op *x) {
    for (int i = 0; i < x->type.rank; i++) {
        const Space *s = x->type.dim[i];
        if (s != at->row->to && s != at->col->to && !type_has(&x->in[0]->type, s)) return true;
    }
    return false;
}

/* The value at the entries of an x that has both of the matrix's spaces. */
static Op *matrix_at(Lowering *l, const Entries *at, Op *x) {
    if (x->kind == OP_COPY && !copy_broadcasts(at, x)) return entry_value(l, at, x->in[0]);
    if (x->kind == OP_RANDOM && x->type.rank == 2) return random_at(l, at, x);
    if (x->kind == OP_CONTRACT) return contract_at(l, at, x);
    if (op_has(x, OPT_ELEM) && x->kind != OP_COPY) return elementwise_at(l, at, x);
    return pick_at(l, at, x);
}

/* The value of x at the entries, from those of its operands. */
static Op *compute_at(Lowering *l, const Entries *at, Op *x) {
    if (nz_of(x) == at->nz) return fact_of(l, x)->value;
    x = densify(l, x);
    bool row = type_has(&x->type, at->row->to), col = type_has(&x->type, at->col->to);
    if (row && col) return matrix_at(l, at, x);
    if (row) return gather_along(l, at->row, x);
    return col ? gather_along(l, at->col, x) : x;
}

/* How many of x's first operands compute_at() needs. */
static int n_operands_needed(const Entries *at, const Op *x) {
    bool both = type_has(&x->type, at->row->to) && type_has(&x->type, at->col->to);
    if (nz_of(x) || !both) return 0;
    if (x->kind == OP_COPY) return !copy_broadcasts(at, x);
    return x->kind == OP_CONTRACT || op_has(x, OPT_ELEM) ? x->n_in : 0;
}

/* An operation whose first `next` operands were asked for. */
typedef struct {
    Op *op;
    int next;
} Pending;

/* The value of the dense or sparse x at the stored entries. An explicit stack is used, since an
 * expression is as deep as the model. */
static Op *entry_value(Lowering *l, const Entries *at, Op *x) {
    VEC(Pending) stack = {0};
    if (fact_of(l, x)->entries != at->nz) vec_push(l->p->a, &stack, ((Pending){x, 0}));
    while (stack.n) {
        Pending *last = &stack.v[stack.n - 1];
        Info *i = fact_of(l, last->op);
        if (last->next < n_operands_needed(at, last->op)) {
            Op *in = last->op->in[last->next++];
            if (fact_of(l, in)->entries != at->nz) vec_push(l->p->a, &stack, ((Pending){in, 0}));
            continue;
        }
        i->entry_value = compute_at(l, at, last->op);
        i->entries = at->nz;
        stack.n--;
    }
    return fact_of(l, x)->entry_value;
}

/* ---- users of sparse values ---------------------------------------------------------- */
/* Sums the entries' contributions over what the result lacks. */
static Op *sum_entries(Lowering *l, const Entries *at, Op *x, const Type *want) {
    Op *y;
    if (type_has(want, at->row->to))
        y = b_segment(&l->b, RED_SUM, at->row, x);
    else if (type_has(want, at->col->to))
        y = b_segment(&l->b, RED_SUM, at->col, x);
    else
        y = b_reduce(&l->b, RED_SUM, x, 1, (Space *[]){at->nz});
    return reorder(l, y, want);
}

/* Whether the type has both of the matrix's spaces. */
static bool keeps_both(const Entries *at, const Type *t) {
    return type_has(t, at->row->to) && type_has(t, at->col->to);
}

/* A contraction with a sparse operand; NULL: its result has both spaces. */
static Op *contract_sparse(Lowering *l, Op *op) {
    int s = nz_of(op->in[0]) ? 0 : 1;
    Entries at = entries_of(l, nz_of(op->in[s]));
    if (keeps_both(&at, &op->type)) return NULL;
    Op *other = entry_value(l, &at, op->in[1 - s]);
    Op *product = b_binary(&l->b, OP_MUL, fact_of(l, op->in[s])->value, other);
    return sum_entries(l, &at, product, &op->type);
}

/* A sum of a sparse operand; NULL: another reduction, in which zeros count. */
static Op *reduce_sparse(Lowering *l, Op *op) {
    if (op->red != RED_SUM) return NULL; /* the zeros that are not stored count */
    Entries at = entries_of(l, nz_of(op->in[0]));
    return sum_entries(l, &at, fact_of(l, op->in[0])->value, &op->type);
}

/* The dense result of an operation with a sparse operand; NULL: its operands must be made dense. */
static Op *dense_result(Lowering *l, Op *op) {
    if (op->kind == OP_CONTRACT) return contract_sparse(l, op);
    if (op->kind == OP_REDUCE) return reduce_sparse(l, op);
    if (op->kind == OP_COPY) return reorder(l, densify(l, op->in[0]), &op->type);
    return NULL;
}

/* The stored entries of the first sparse operand, or NULL. */
static Space *sparse_operand(const Op *op) {
    for (int i = 0; i < op->n_in; i++)
        if (nz_of(op->in[i])) return nz_of(op->in[i]);
    return NULL;
}

/* Lowers one operation. */
static void lower_op(Lowering *l, Op *op) {
    if (op->kind == OP_DATA && op->type.layout == LAYOUT_CSR) {
        op->type = type_make(op->type.dt, 1, (Space *[]){op->col->nz});
        set_sparse(l, op, op->col->nz, op);
        pass_remark(l->p, op->span, "lower-csr", "'%s' of @%s is the stored entries of %s.%s",
                    pass_named(op), l->b.f->name, op->col->space->name, op->col->name);
        return;
    }
    Space *nz = sparse_operand(op);
    if (!nz) return;
    l->b.at = op;
    b_like(&l->b, op);
    if (op->type.dt != DT_VOID && op->type.layout == LAYOUT_CSR) {
        Entries at = entries_of(l, nz);
        set_sparse(l, op, nz, elementwise_at(l, &at, op));
        return;
    }
    Op *y = dense_result(l, op);
    if (y) {
        if (!y->hint) y->hint = op->hint;
        op_replace_uses(l->b.f, op, y);
        return;
    }
    for (int i = 0; i < op->n_in; i++) op_set_in(op, i, densify(l, op->in[i]));
}

/* Runs the pass: replaces operations on CSR values by gathers, segments and elementwise operations
 * on their stored entries. */
static bool run(PassCtx *p, Module *m) {
    for (int i = 0; i < m->funcs.n; i++) {
        Func *f = m->funcs.v[i];
        Lowering l = {.p = p, .b = {.m = m, .f = f}};
        func_keep_users(p->a, f);
        for (Op *op = f->first, *next; op; op = next) {
            next = op->next;
            lower_op(&l, op);
        }
        pass_dce_func(p->a, f);
    }
    return true;
}

const Pass pass_lower_csr = {
    .name = "lower-csr",
    .summary = "rewrite CSR values over their stored entries",
    .needs = IR_TYPED,
    .gives = IR_NO_CSR,
    .breaks = IR_FUSED,
    .run = run,
    .required = true,
};
