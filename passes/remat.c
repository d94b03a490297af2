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
 * one loop over blocks of rows it never exists as a whole (codegen/plan_passes/plan_blocks.c).
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
 * segments of one library call at most, so the time it costs is small.  `recompute_for` keeps the
 * copy from the kernel that makes the first one. */
#include "passes/rewrite.h"

typedef VEC(Op *) Ops;

/* What is known of an operation. Positions are 1, 3, 5, .. when the pass begins; a copy stands
 * right before one of them. */
typedef struct {
    int position, last_read; /* its own; the last reader's, looking through views */
    Op *value;               /* what it is, looking through views */
    Op *copy;                /* as the late readers see it; NULL = not looked at */
    bool read_by_effect;     /* an effect reads it */
    unsigned visited;        /* the last one that found it to be there */
    Ops readers;             /* looking through views, in order */
} Fact;

/* Stored values over the same rows: how many stand between two places. */
typedef struct {
    Ops first; /* these and who reads one of them, in order */
    int *tree; /* what a Fenwick tree keeps of [2 * at.n]: copies before at.v[i], then itself */
} Rows;

typedef struct {
    Func *f;
    Arena *a;
    int gap, product_gap, depth; /* thresholds */
    VEC(Fact) fact;              /* by op id */
    Rows *rows;                  /* by space id */
    Ops copied;                  /* have a Fact.copy */
    unsigned walk;
    const Op *product; /* the one that is made again */
} Remat;

/* The fact of an operation. */
static Fact *fact(const Remat *r, const Op *op) {
    return &r->fact.v[op->id];
}

/* Whether the value has rows of features. */
static bool is_big(const Op *op) {
    return op->type.rank > 1 && op->type.layout == LAYOUT_DENSE && op->type.dim[0]->kind != SP_DIM;
}

/* Whether a kernel stores the value. */
static bool is_stored(const Op *op) {
    return !op->fused && op->n_in > 0 && op->kind != OP_VIEW && !op_has(op, OPT_EFFECT);
}

/* ---- places -------------------------------------------------------------------------------- */
/* The index of the first element of rows->at at or behind the position. */
static int find_position(const Remat *r, const Rows *rows, int place) {
    int from = 0, to = rows->first.n;
    while (from < to) {
        int i = (from + to) / 2;
        if (fact(r, rows->first.v[i])->position < place)
            from = i + 1;
        else
            to = i;
    }
    return from;
}

/* Adds one to the Fenwick tree. */
static void tree_add(Rows *rows, int i) {
    for (i++; i <= 2 * rows->first.n; i += i & -i) rows->tree[i]++;
}

/* The count of the Fenwick tree's first i elements. */
static int tree_count(const Rows *rows, int i) {
    int n = 0;
    for (; i > 0; i -= i & -i) n += rows->tree[i];
    return n;
}

/* The number of stored values over these rows between two operations. */
static int count_between(const Remat *r, const Rows *rows, const Op *from, const Op *to) {
    int i = find_position(r, rows, fact(r, from)->position),
        k = find_position(r, rows, fact(r, to)->position);
    return tree_count(rows, 2 * k + 1) - tree_count(rows, 2 * i + 2);
}

/* The values over the same rows. */
static Rows *rows_of(const Remat *r, const Op *op) {
    return &r->rows[op->type.dim[0]->id];
}

/* Adds an operation to the sorted list. */
static void add_position(Remat *r, Rows *rows, Op *op) {
    if (!rows->first.n || rows->first.v[rows->first.n - 1] != op) vec_push(r->a, &rows->first, op);
}

/* Counts a stored value. */
static void count_stored(Remat *r, const Op *op) {
    Rows *rows = is_stored(op) && is_big(op) ? rows_of(r, op) : NULL;
    int i = rows ? find_position(r, rows, fact(r, op)->position) : 0;
    if (rows && i < rows->first.n) tree_add(rows, 2 * i + (rows->first.v[i] == op));
}

/* ---- readers ------------------------------------------------------------------------------ */
/* Adds the fact of an operation and updates the last reads of its operands. */
static void add_op(Remat *r, Op *op, int place) {
    op->id = r->fact.n;
    vec_push(r->a, &r->fact, ((Fact){.position = place, .value = op}));
    if (op->kind == OP_VIEW) fact(r, op)->value = fact(r, op->in[0])->value;
    for (int i = 0; i < op->n_in && op->kind != OP_VIEW; i++) {
        Fact *x = fact(r, fact(r, op->in[i])->value);
        if (x->last_read < place) x->last_read = place;
    }
}

/* Adds an operation to its operands' readers. */
static void find_readers(Remat *r, Op *op) {
    for (int i = 0; i < op->n_in; i++) {
        Op *x = fact(r, op->in[i])->value;
        Ops *readers = &fact(r, x)->readers;
        fact(r, op->in[i])->read_by_effect |= op_has(op, OPT_EFFECT);
        if (op->kind == OP_VIEW || (readers->n && readers->v[readers->n - 1] == op)) continue;
        vec_push(r->a, readers, op);
        if (is_big(x)) add_position(r, rows_of(r, x), op);
    }
    if (is_stored(op) && is_big(op)) add_position(r, rows_of(r, op), op);
}

/* The pass's state of a function. */
static Remat remat_of(PassCtx *p, const Module *m, Func *f) {
    Remat r = {.f = f, .a = p->a, .rows = NEWN(p->a, Rows, (size_t)m->spaces.n + 1)};
    r.gap = pass_threshold(p->ctx, PASS_T_REMAT_GAP);
    r.product_gap = pass_threshold(p->ctx, PASS_T_REMAT_PRODUCT);
    r.depth = pass_threshold(p->ctx, PASS_T_REMAT_DEPTH);
    for (Op *op = f->first; op; op = op->next) {
        add_op(&r, op, 2 * r.fact.n + 1);
        find_readers(&r, op);
    }
    for (int i = 0; i < m->spaces.n; i++)
        r.rows[i].tree = NEWN(p->a, int, 2 * (size_t)r.rows[i].first.n + 1);
    for (Op *op = f->first; op; op = op->next) count_stored(&r, op);
    return r;
}

/* ---- what is there -------- */
static bool are_available(Remat *r, const Op *x, int at, int depth);

/* Whether x is a product of rows by a weight that may be recomputed at position `at`, where its
 * operands must be available (depth: of that search). Only the first such product that is met may,
 * even if it turns out not to be available: a second one would cost more time than it saves. */
static bool choose_product(Remat *r, const Op *x, int at, int depth) {
    if (x == r->product) return true;
    if (r->product || x->kind != OP_CONTRACT || x->again) return false;
    if (is_big(x->in[0]) == is_big(x->in[1])) return false;
    r->product = x;
    return are_available(r, x, at, depth);
}

/* Whether this walk visits x for the first time. */
static bool is_first_visit(Remat *r, const Op *x) {
    bool first = fact(r, x)->visited != r->walk;
    fact(r, x)->visited = r->walk;
    return first;
}

/* Whether x, an operand of what is recomputed at the position, is available there: in memory, or
 * recomputed, too. */
static bool is_available(Remat *r, const Op *x, int at, int depth) {
    if (depth == r->depth) return false;
    if (op_has(x, OPT_SOURCE) || !is_big(x)) return x->n_in == 0 || !x->fused;
    if (x->kind == OP_VIEW) return is_available(r, x->in[0], at, depth + 1);
    if (!x->fused && x->n_in > 0)
        return fact(r, x)->last_read >= at || choose_product(r, x, at, depth + 1);
    if (x->n_in && !op_has(x, OPT_ELEM)) return false;
    return !is_first_visit(r, x) || are_available(r, x, at, depth + 1);
}

/* Whether all operands of x are available at the position. */
static bool are_available(Remat *r, const Op *x, int at, int depth) {
    for (int i = 0; i < x->n_in; i++)
        if (!is_available(r, x->in[i], at, depth)) return false;
    return true;
}

/* The reader behind the longest gap between readers; NULL: no gap is long enough. */
static Op *late_reader(const Remat *r, Op *v, int *gap) {
    const Ops *readers = &fact(r, v)->readers;
    Op *late = NULL;
    const Op *before = v;
    *gap = r->gap - 1;
    for (int i = 0; i < readers->n; before = readers->v[i++]) {
        int n = count_between(r, rows_of(r, v), before, readers->v[i]);
        if (n <= *gap) continue;
        late = readers->v[i];
        *gap = n;
    }
    return late;
}

/* Whether v may be recomputed: it is stored, elementwise, over rows, and read inside the step only.
 */
static bool is_candidate(const Remat *r, const Op *v) {
    if (!op_has(v, OPT_ELEM) || !is_stored(v) || !is_big(v) || v->again) return false;
    if (v->ask == ASK_STORE) return false;
    return !fact(r, v)->read_by_effect;
}

/* ---- once more -------- */
/* Records the copy of x. */
static Op *record_copy(Remat *r, const Op *x, Op *copy) {
    vec_push(r->a, &r->copied, (Op *)x);
    return fact(r, x)->copy = copy;
}

/* Copies x with other operands. */
static Op *make_copy(Remat *r, Builder *b, const Op *x, Op **in, bool again) {
    Op proto = *x;
    proto.in = in;
    Op *y = b_op(b, &proto);
    y->again = again;
    add_op(r, y, fact(r, b->at)->position - 1);
    count_stored(r, y);
    return record_copy(r, x, y);
}

/* x recomputed at b: itself, or a copy with recomputed operands. */
static Op *recompute(Remat *r, Builder *b, Op *x, const Op *v) {
    bool inner = x == v || x == r->product || x->kind == OP_VIEW || (x->fused && is_big(x));
    if (!inner || x->n_in == 0) return x;
    if (fact(r, x)->copy) return fact(r, x)->copy;
    Op **in = NEWN(r->a, Op *, (size_t)x->n_in);
    bool same = x != v && x != r->product;
    for (int i = 0; i < x->n_in; i++) {
        in[i] = x == r->product ? x->in[i] : recompute(r, b, x->in[i], v);
        same &= in[i] == x->in[i];
    }
    if (same) return record_copy(r, x, x);
    return make_copy(r, b, x, in, x == v || x == r->product);
}

/* v, or a view of it, as late readers see it. */
static Op *copy_of(Remat *r, Builder *b, Op *x, const Op *v) {
    if (x == v || fact(r, x)->copy) return fact(r, x)->copy;
    Op *below = copy_of(r, b, x->in[0], v);
    return make_copy(r, b, x, &below, x->again);
}

/* Recomputes v before `late` and makes the readers from there on read the copy. */
static void recompute_for(Remat *r, PassCtx *p, Module *m, Op *v, Op *late) {
    Builder b = b_for(m, r->f, late, v);
    int copy = recompute(r, &b, v, v)->id;
    const Ops *readers = &fact(r, v)->readers;
    int first = 0;
    while (readers->v[first] != late) first++;
    for (int i = first; i < readers->n; i++) {
        Op *u = readers->v[i];
        for (int k = 0; k < u->n_in; k++)
            if (fact(r, u->in[k])->value == v) u->in[k] = copy_of(r, &b, u->in[k], v);
        readers = &fact(r, v)->readers;
    }
    r->fact.v[copy].last_read = fact(r, v)->last_read;
    fact(r, v)->last_read = first ? fact(r, readers->v[first - 1])->position : 0;
    for (int i = 0; i < r->copied.n; i++) fact(r, r->copied.v[i])->copy = NULL;
    r->copied.n = 0;
    pass_remark(p, v->span, "remat", "'%s' is computed again for '%s'",
                v->hint ? v->hint : op_mnemonic(v->kind),
                late->hint ? late->hint : op_mnemonic(late->kind));
}

/* Recomputes the candidates of a function. */
static void remat_func(PassCtx *p, Module *m, Func *f) {
    Remat r = remat_of(p, m, f);
    for (Op *v = f->first; v; v = v->next) {
        int gap = 0;
        Op *late = is_candidate(&r, v) ? late_reader(&r, v, &gap) : NULL;
        r.product = NULL;
        r.walk++;
        bool available = late && are_available(&r, v, fact(&r, late)->position, 0);
        const char *why =
            !late        ? NULL
            : !available ? "what it is made of is not there then"
            : r.product && gap < r.product_gap
                ? arena_printf(p->a,
                               "a product is made again where %d values of its rows come "
                               "between, and here are %d",
                               r.product_gap, gap)
                : NULL;
        if (why)
            pass_refusal(p, v->span, "remat", "'%s' is kept for '%s': %s", pass_named(v),
                         pass_named(late), why);
        else if (late && pass_may_rewrite(p))
            recompute_for(&r, p, m, v, late);
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
