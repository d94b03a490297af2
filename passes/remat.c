/* Rematerialisation: what the backward reads again is computed again where that is cheap.
 *
 *     %d = mul %x %mask   [N, F]       %d = mul %x %mask
 *     %y = contract %d, %W             %y = contract %d, %W
 *     ..                         ->    ..
 *     %g = contract %dy, %d            %e = again mul %x %mask
 *                                      %g = contract %dy, %e
 *
 * A stored value that is read early and then, many values later, once more, lies in memory in
 * between, through the fullest step.  Where it is elementwise in what is there anyway (data,
 * variables, random masks, and values that later operations read, too), another copy of it is
 * made for the late readers: about the traffic of reading it back, and with its readers in
 * one loop over blocks of rows it never exists as a whole (codegen/plan_blocks.c).
 *
 * A product by a weight is made again on the way, one at most, where the value would outlive so
 * many others that its time is a small part of the step's and a hidden layer is a large part of its
 * memory:
 *
 *     %p = contract %s, %W             %p = contract %s, %W
 *     %h = max %p, 0                   %h = max %p, 0
 *     ..                         ->    ..
 *                                      %q = again contract %s, %W
 *     %dw = contract %dy, %h           %i = again max %q, 0
 *     %du = contract %ds, %s           %dw = contract %dy, %i
 *                                      %du = contract %ds, %s
 *
 * Chen, Xu, Zhang and Guestrin 2016, "Training Deep Nets with Sublinear Memory Cost", with
 * segments of one library call at most, so the time it costs is small.  `again` keeps the copy from
 * the kernel that makes the first one. */
#include "ir/walk.h"
#include "passes/rewrite.h"

#include <string.h>

enum {
    GAP = 4,          /* stored values over the same rows that a value must outlive.. */
    PRODUCT_GAP = 16, /* ..when a product is made again for it */
    DEPTH = 32        /* elementwise operations on the way to a leaf */
};

typedef struct {
    Func *f;
    Arena *a;
    int *last;         /* by op id: the last reader's id, looking through views */
    Op **copy;         /* by op id: as the late readers see it; NULL = not looked at */
    bool *leaves;      /* by op id: an effect reads it */
    int cap;           /* of all by op id */
    IrMarks marks;     /* by op id: found to be there */
    const Op *product; /* the one that is made again */
} Remat;

static bool is_big(const Op *op) {
    return op->type.rank > 1 && op->type.layout == LAYOUT_DENSE && op->type.dim[0]->kind != SP_DIM;
}

static bool is_stored(const Op *op) {
    return !op->fused && op->n_in > 0 && op->kind != OP_VIEW && !op_has(op, OPT_EFFECT);
}

static void make_room(Remat *r) {
    if (r->f->n_ops < r->cap) return;
    r->cap = 2 * r->f->n_ops + 1;
    r->last = NEWN(r->a, int, (size_t)r->cap);
    r->leaves = NEWN(r->a, bool, (size_t)r->cap);
    r->copy = NEWN(r->a, Op *, (size_t)r->cap);
    r->marks = ir_marks_new(r->a, r->cap);
}

static void find_last(Remat *r) {
    make_room(r);
    func_number(r->f);
    memset(r->last, 0, (size_t)r->cap * sizeof *r->last);
    memset(r->leaves, 0, (size_t)r->cap * sizeof *r->leaves);
    memset(r->copy, 0, (size_t)r->cap * sizeof *r->copy);
    for (Op *op = r->f->last; op; op = op->prev) {
        int at = op->kind == OP_VIEW ? r->last[op->id] : op->id;
        for (int i = 0; i < op->n_in; i++) {
            r->leaves[op->in[i]->id] |= op_has(op, OPT_EFFECT);
            if (r->last[op->in[i]->id] < at) r->last[op->in[i]->id] = at;
        }
    }
}

static bool are_there(Remat *r, const Op *x, int at, int depth);

/* A product of rows by a weight that was not chosen before, and only it. */
static bool choose_product(Remat *r, const Op *x, int at, int depth) {
    if (x == r->product) return true;
    if (r->product || x->kind != OP_CONTRACT || x->again) return false;
    if (is_big(x->in[0]) == is_big(x->in[1])) return false;
    r->product = x;
    return are_there(r, x, at, depth);
}

/* Is x, an operand of what is computed again at `at`, there then? */
static bool is_there(Remat *r, const Op *x, int at, int depth) {
    if (depth == DEPTH) return false;
    if (op_has(x, OPT_SOURCE) || !is_big(x)) return x->n_in == 0 || !x->fused;
    if (x->kind == OP_VIEW) return is_there(r, x->in[0], at, depth + 1);
    if (!x->fused && x->n_in > 0)
        return r->last[x->id] >= at || choose_product(r, x, at, depth + 1);
    if (x->n_in && !op_has(x, OPT_ELEM)) return false;
    return !ir_marks_first(&r->marks, x->id) || are_there(r, x, at, depth + 1);
}

static bool are_there(Remat *r, const Op *x, int at, int depth) {
    for (int i = 0; i < x->n_in; i++)
        if (!is_there(r, x->in[i], at, depth)) return false;
    return true;
}

/* The reader behind the longest gap between readers, looking through views; NULL: none is that
 * far behind the others. */
static Op *late_reader(const Remat *r, Op *v, int *gap) {
    Op *late = NULL;
    int n = 0, most = GAP - 1;
    for (Op *u = v->next; u && u->id <= r->last[v->id]; u = u->next) {
        bool reads = false;
        for (int i = 0; i < u->n_in; i++) {
            Op *x = u->in[i];
            while (x->kind == OP_VIEW && x != v) x = x->in[0];
            reads |= x == v;
        }
        if (!reads && is_stored(u) && is_big(u) && u->type.dim[0] == v->type.dim[0]) n++;
        if (!reads || u->kind == OP_VIEW) continue;
        if (n > most && u != v->next) {
            late = u;
            most = n;
        }
        n = 0;
    }
    *gap = most;
    return late;
}

/* Elementwise, over rows, and read by nothing that wants it outside of the step. */
static bool is_candidate(const Remat *r, const Op *v) {
    if (!op_has(v, OPT_ELEM) || !is_stored(v) || !is_big(v)) return false;
    return !r->leaves[v->id] && r->last[v->id] > v->id;
}

/* x where the product is made again: itself, or a copy. */
static Op *made_again(Remat *r, Builder *b, Op *x, const Op *v) {
    bool inner = x == v || x == r->product || x->kind == OP_VIEW || (x->fused && is_big(x));
    if (!inner || x->n_in == 0) return x;
    if (r->copy[x->id]) return r->copy[x->id];
    Op **in = NEWN(r->a, Op *, (size_t)x->n_in);
    bool same = x != v && x != r->product;
    for (int i = 0; i < x->n_in; i++) {
        in[i] = x == r->product ? x->in[i] : made_again(r, b, x->in[i], v);
        same &= in[i] == x->in[i];
    }
    if (same) return r->copy[x->id] = x;
    Op proto = *x;
    proto.in = in;
    Op *y = b_op(b, &proto);
    y->again = x == v || x == r->product;
    return r->copy[x->id] = y;
}

/* v, or a view of it, as the late readers see it. */
static Op *copy_of(Remat *r, Builder *b, Op *x, const Op *v) {
    if (x == v || r->copy[x->id]) return r->copy[x->id];
    Op *below = copy_of(r, b, x->in[0], v), proto = *x;
    proto.in = &below;
    return r->copy[x->id] = b_op(b, &proto);
}

static void again(Remat *r, PassCtx *p, Module *m, Op *v, Op *late) {
    Builder b = b_for(m, r->f, late, v);
    made_again(r, &b, v, v);
    for (Op *u = late; u; u = u->next)
        for (int i = 0; i < u->n_in; i++) {
            const Op *x = u->in[i];
            while (x->kind == OP_VIEW && x != v) x = x->in[0];
            if (x == v && u->kind != OP_VIEW) u->in[i] = copy_of(r, &b, u->in[i], v);
        }
    pass_remark(p, v->span, "remat", "'%s' is computed again for '%s'",
                v->hint ? v->hint : op_mnemonic(v->kind),
                late->hint ? late->hint : op_mnemonic(late->kind));
}

static void remat_func(PassCtx *p, Module *m, Func *f) {
    Remat r = {.f = f, .a = p->a};
    find_last(&r);
    for (Op *v = f->first; v; v = v->next) {
        if (!op_has(v, OPT_ELEM) || !is_big(v) || v->again) continue;
        int gap = 0;
        Op *late = is_candidate(&r, v) ? late_reader(&r, v, &gap) : NULL;
        r.product = NULL;
        ir_marks_start(&r.marks);
        bool there = late && are_there(&r, v, late->id, 0);
        if (!there || (r.product && gap < PRODUCT_GAP)) continue;
        again(&r, p, m, v, late);
        find_last(&r);
    }
    pass_dce_func(p->a, f);
}

static bool run(PassCtx *p, Module *m) {
    for (int i = 0; i < m->funcs.n; i++) remat_func(p, m, m->funcs.v[i]);
    return true;
}

const Pass pass_remat = {
    .name = "remat",
    .summary = "compute cheap values again where they are read much later",
    .needs = IR_TYPED | IR_FUSED,
    .run = run,
};
