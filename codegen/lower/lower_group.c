/* Kernels with roots of several shapes over the same rows, and with several sums over the
 * entries of a row: attention, a layer with the statistics of its result.
 *
 *     for v in N parallel balanced dst(e)
 *       for e in segment of v: for h: acc max m[h] score(e, h)
 *       for e in segment of v: for h: w = exp(score(e, h) - m[h])
 *                                     acc sum l[h] w
 *                                     for f: acc sum y[h, f] w * x[src, h, f]
 *       for h: store m[v, h];  for h, f: store y[v, h, f] / l[h];  ..
 *
 * Sums that can be made together share one traversal of the entries; a sum that needs another one
 * of the same row comes in a later traversal.  Rows of sums are local arrays; one too long for
 * that is gathered in its root's row in memory.  What a later root needs of an earlier one is read
 * back from memory: the row is in cache.
 *
 * For short segments this beats the rescaling of an online softmax (Milakov and Gimelshein
 * 2018): the scores of a row's entries are in cache when they are read again. */
#include "codegen/lower/lower.h"

/* A kernel with several roots. */
typedef struct {
    Gen *g;
    int n;
    const Op *const *root; /* whose buffers are written */
    const Op **value;      /* what is computed: cg_skip_views(root) */
    LBuf **out;
    const Op **row_sum; /* by root: the sum that is gathered in its row; or NULL */
    bool *stored;       /* by root: stored */
    const Space *rows;
    LReg *row;
    const Env *env; /* binds the row */
} GroupKernel;

/* The root that is computed as op and is not stored yet; -1 = there is none. */
static int find_root(const GroupKernel *p, const Op *op) {
    for (int i = 0; i < p->n; i++)
        if (p->value[i] == op && !p->stored[i]) return i;
    return -1;
}

/* The accumulator that holds the sum op; NULL = it is not made yet. */
static Accumulator *find_accumulator(const GroupKernel *p, const Op *op) {
    for (int i = 0; i < p->g->accumulators.n; i++)
        if (p->g->accumulators.v[i].op == op && p->g->accumulators.v[i].scope)
            return &p->g->accumulators.v[i];
    return NULL;
}

/* Whether op, read at the row itself, sums over the entries of a map into that row. */
static bool is_row_sum(const GroupKernel *p, const Op *op, const Map *through) {
    return op->kind == OP_SEGMENT && !through && op->map->to == p->rows;
}

/* ---- which sums are to be made, and which can be now -------- */
/* Whether the operands of op are computed in this kernel at op's own place; *below: the map at
 * whose entry they are read, NULL = at the row. through: the same of op. */
static bool operand_context(const GroupKernel *p, const Op *op, Map *through, Map **below) {
    *below = through;
    if (is_row_sum(p, op, through)) {
        *below = op->map;
        return true;
    }
    if (op->kind == OP_GATHER) {
        *below = NULL;
        return through && op->map == through;
    }
    return op_has(op, OPT_ELEM) || op->kind == OP_VIEW || op->kind == OP_REDUCE ||
           op->kind == OP_CONTRACT || op->kind == OP_ARGMAX;
}

/* Whether x has a value per row (or entry); one that has not is the same for all. */
static bool is_per_row(const GroupKernel *p, const Op *x, const Map *through) {
    return x->type.rank > 0 && x->type.dim[0] == (through ? through->from : p->rows);
}

/* Collects the sums that op needs and that are not made yet, those that others need first. */
static void collect_sums(GroupKernel *p, const Op *op, Map *through, OpList *out) {
    Map *below;
    if (!cg_is_inline(p->g, op) || find_accumulator(p, op) || !cg_walk_visit(p->g, op, through))
        return;
    bool enter = operand_context(p, op, through, &below);
    for (int i = 0; i < op->n_in && enter; i++)
        if (is_per_row(p, op->in[i], below)) collect_sums(p, op->in[i], below, out);
    if (is_row_sum(p, op, through) && !cg_has_op(out, op)) vec_push(p->g->a, out, op);
}

/* These sums of one op. */
static OpList pending_sums(GroupKernel *p, const Op *op) {
    OpList out = {0};
    cg_walk_start(p->g);
    collect_sums(p, op, NULL, &out);
    return out;
}

/* Whether everything that op needs, except `top` itself, is made or stored. */
static bool is_ready(GroupKernel *p, const Op *op, Map *through, const Op *top) {
    Map *below;
    if (!cg_is_inline(p->g, op) || (op != top && find_accumulator(p, op))) return true;
    if (!cg_walk_visit(p->g, op, through)) return true;
    if (op != top && !through && (find_root(p, op) >= 0 || is_row_sum(p, op, through)))
        return false;
    if (!operand_context(p, op, through, &below)) return true;
    for (int i = 0; i < op->n_in; i++)
        if (is_per_row(p, op->in[i], below) && !is_ready(p, op->in[i], below, top)) return false;
    return true;
}

/* Whether the sum can be made in the next traversal. */
static bool can_be_made(GroupKernel *p, const Op *op) {
    cg_walk_start(p->g);
    return is_ready(p, op, NULL, op);
}

/* ---- one traversal of the entries -------- */
/* Whether op contains a reduction that is not made yet. The answer is remembered during one
 * traversal: the number of the traversal, twice, plus the answer. */
static bool has_sum(GroupKernel *p, const Op *op) {
    const Lower *lo = p->g->lo;
    unsigned *known = &lo->sums[op->id];
    if (!cg_is_inline(p->g, op) || find_accumulator(p, op)) return false;
    if (*known / 2 == lo->sums_mark) return *known % 2;
    bool sum = op_has(op, OPT_REDUCE);
    for (int i = 0; i < op->n_in && !sum; i++) sum = has_sum(p, op->in[i]);
    *known = 2 * lo->sums_mark + sum;
    return sum;
}

/* Whether env binds all dimensions of op. */
static bool is_bound(const Op *op, const Env *env) {
    for (int i = 0; i < op->type.rank; i++)
        if (!cg_lookup(env, op->type.dim[i])) return false;
    return true;
}

/* Emits the scalars that op needs ahead of the loops: a target may compute those of several heads
 * or entries at once. */
static void emit_scalars(GroupKernel *p, const Op *op, const Env *env) {
    if (!cg_is_inline(p->g, op) || find_accumulator(p, op) || !cg_walk_visit(p->g, op, NULL))
        return;
    if (is_bound(op, env) && !has_sum(p, op)) {
        if (op->n_in) cg_value(p->g, op, env);
        return;
    }
    for (int i = 0; i < op->n_in && op_has(op, OPT_ELEM); i++) emit_scalars(p, op->in[i], env);
}

/* Opens a loop over a space; one of a single element needs none. */
static const Env *open_space(Gen *g, const Env *env, Space *s, int *depth) {
    int64_t n;
    if (expr_is_const(s->size, &n) && n == 1)
        return cg_bind(g, env, s, cg_size(g, expr_const(g->a, 0)));
    ++*depth;
    return cg_bind(g, env, s, cg_open_for(g, s->size, "f"));
}

/* Closes so many loops. */
static void close_spaces(Gen *g, int depth) {
    while (depth-- > 0) cg_close_outer_loop(g);
}

/* The index of the accumulator's element at env. */
static LReg *const *accumulator_index(const Accumulator *t, const Env *env, LReg **idx) {
    int skip = t->acc->kind == LB_LOCAL;
    for (int i = skip; i < t->op->type.rank; i++)
        idx[i - skip] = cg_lookup(env, t->op->type.dim[i]);
    return idx;
}

typedef VEC(Accumulator) Tiles;

/* Emits the accumulation of all sums whose first `depth` dimensions env binds; sums with the same
 * next dimension share its loop. */
static void emit_accumulations(GroupKernel *p, const Tiles *tiles, int depth, const Env *env) {
    Gen *g = p->g;
    LReg *idx[MAX_RANK];
    Tiles rest = {0};
    cg_walk_start(g);
    for (int i = 0; i < tiles->n; i++) emit_scalars(p, tiles->v[i].op->in[0], env);
    for (int i = 0; i < tiles->n; i++) {
        const Accumulator *t = &tiles->v[i];
        if (t->op->type.rank == depth)
            cg_acc(g, t->op->red, t->acc, accumulator_index(t, env, idx),
                   cg_cast(g, cg_value(g, t->op->in[0], env), t->acc->dt));
        else
            vec_push(g->a, &rest, *t);
    }
    while (rest.n) {
        Tiles same = {0}, others = {0};
        Space *s = rest.v[0].op->type.dim[depth];
        for (int i = 0; i < rest.n; i++)
            vec_push(g->a, rest.v[i].op->type.dim[depth] == s ? &same : &others, rest.v[i]);
        int opened = 0;
        emit_accumulations(p, &same, depth + 1, open_space(g, env, s, &opened));
        close_spaces(g, opened);
        rest = others;
    }
}

/* Emits a store of v to all elements of an accumulator. */
static void emit_fill(GroupKernel *p, const Accumulator *t, double v) {
    Gen *g = p->g;
    LReg *idx[MAX_RANK];
    const Env *env = p->env;
    int opened = 0;
    for (int i = 1; i < t->op->type.rank; i++)
        env = open_space(g, env, t->op->type.dim[i], &opened);
    cg_store(g, t->acc, accumulator_index(t, env, idx), cg_const(g, t->acc->dt, v));
    close_spaces(g, opened);
}

/* The row of a result in memory that serves as accumulator of a sum too long for a local array;
 * NULL = there is none. */
static LBuf *accumulator_row(const GroupKernel *p, const Op *op) {
    for (int i = 0; i < p->n; i++) {
        const Type *t = &p->value[i]->type;
        bool same = t->rank == op->type.rank && t->dt == op->type.dt && !p->stored[i];
        for (int k = 0; k < t->rank && same; k++) same = t->dim[k] == op->type.dim[k];
        if (same && (p->value[i] == op || p->row_sum[i] == op)) return p->out[i];
    }
    return NULL;
}

/* The buffer that a sum is accumulated in: a local array, or a row of a result. */
static LBuf *new_accumulator(const GroupKernel *p, const Op *op) {
    int64_t n[MAX_RANK], all = 1;
    for (int i = 1; i < op->type.rank && all; i++)
        all = expr_is_const(op->type.dim[i]->size, &n[i - 1]) ? all * n[i - 1] : 0;
    if (all > 0 && all <= pass_threshold(p->g->lo->c, PASS_T_ROW))
        return cg_local_array(p->g, cg_sum_dtype(op->type.dt), op->type.rank - 1, n, "acc");
    LBuf *row = accumulator_row(p, op);
    if (!row) ctx_fault(p->g->lo->c, op->span, "a sum has no place");
    return row;
}

/* Begins the accumulation of a sum. */
static void begin_accumulator(GroupKernel *p, const Op *op, Tiles *tiles) {
    Accumulator t = {
        .op = op, .scope = p->g->scope, .whole_axes = true, .acc = new_accumulator(p, op)};
    t.key[0] = p->row;
    for (int i = 1; i < op->type.rank; i++) t.is_axis[i] = true;
    emit_fill(p, &t, cg_identity(op->red, t.acc->dt));
    vec_push(p->g->a, tiles, t);
}

/* Ends it: a maximum or minimum over no entries is 0. */
static void end_accumulator(GroupKernel *p, const Accumulator *t) {
    Gen *g = p->g;
    Reduction r;
    bool ok = cg_reduction(t->op, &r);
    CTX_HOLDS(g->lo->c, ok, t->op->span);
    LReg *empty = r.red == RED_SUM ? NULL : cg_reduction_is_empty(g, &r, p->env);
    if (empty) {
        cg_open_if(g, empty);
        emit_fill(p, t, 0);
        cg_close_scope(g);
    }
    vec_push(g->a, &g->accumulators, *t);
    cg_record_computed(g, t->op);
    for (int i = 0; i < p->n; i++) /* its root is the row it was gathered in */
        if (p->value[i] == t->op && p->out[i] == t->acc) p->stored[i] = true;
}

/* Emits one traversal of the entries that makes these sums. */
static void emit_traversal(GroupKernel *p, const OpList *sums) {
    Gen *g = p->g;
    Tiles tiles = {0};
    Map *m = sums->v[0]->map;
    p->g->lo->sums_mark++;
    for (int i = 0; i < sums->n; i++) begin_accumulator(p, sums->v[i], &tiles);
    LReg *e = cg_open_segment(g, m, p->row, "e");
    emit_accumulations(p, &tiles, 1, cg_bind(g, p->env, m->from, e));
    cg_close_scope(g);
    for (int i = 0; i < tiles.n; i++) end_accumulator(p, &tiles.v[i]);
}

/* Emits traversals until all sums that the root needs are made; each makes all sums that it can,
 * also of later roots. */
static void emit_sums(GroupKernel *p, int root) {
    for (;;) {
        OpList need = pending_sums(p, p->value[root]), now = {0};
        if (!need.n) return;
        for (int i = root; i < p->n; i++) {
            OpList more = pending_sums(p, p->value[i]);
            for (int k = 0; k < more.n; k++)
                if (!cg_has_op(&now, more.v[k]) && can_be_made(p, more.v[k]) &&
                    (!now.n || now.v[0]->map == more.v[k]->map))
                    vec_push(p->g->a, &now, more.v[k]);
        }
        if (!now.n) ctx_fault(p->g->lo->c, p->value[root]->span, "sums wait for each other");
        emit_traversal(p, &now);
    }
}

/* ---- results -------- */
/* Opens a loop over a space of a result, or nested loops over the spaces that a view splits it in,
 * so that no index is divided. */
static const Env *open_result_loop(GroupKernel *p, const Op *op, const Env *env, Space *s,
                                   int *depth) {
    Gen *g = p->g;
    Space *const *part = NULL;
    Split split = {0};
    int n = cg_value_split(g, op, s, &part);
    if (n < 2) return open_space(g, env, s, depth);
    for (int k = 0; k < n; k++) {
        const Env *in = open_space(g, NULL, part[k], depth);
        LReg *size = cg_size(g, part[k]->size);
        split.space[k] = part[k];
        split.part[k] = in->reg;
        split.index = k ? cg_index(g, L_FN_IADD, cg_index(g, L_FN_IMUL, split.index, size), in->reg)
                        : in->reg;
    }
    split.n = n;
    vec_push(g->a, &g->splits, split);
    return cg_bind(g, env, s, split.index);
}

/* Emits the loops that compute and store roots of one type. */
static void emit_results(GroupKernel *p, const int *roots, int n) {
    Gen *g = p->g;
    const Op *first = p->value[roots[0]];
    const Env *env = p->env;
    LReg *idx[MAX_RANK], **v = NEWN(g->a, LReg *, (size_t)n);
    int depth = 0;
    for (int k = 1; k < first->type.rank; k++)
        env = open_result_loop(p, first, env, first->type.dim[k], &depth);
    for (int k = 0; k < first->type.rank; k++) idx[k] = cg_lookup(env, first->type.dim[k]);
    for (int i = 0; i < n; i++) v[i] = cg_value(g, p->value[roots[i]], env);
    for (int i = 0; i < n; i++) cg_store(g, p->out[roots[i]], idx, v[i]);
    close_spaces(g, depth);
    for (int i = 0; i < n; i++) p->stored[roots[i]] = true;
}

/* Forgets sums whose accumulator was the row of a result that is stored now. */
static void drop_overwritten(GroupKernel *p) {
    for (int i = 0; i < p->g->accumulators.n; i++) {
        Accumulator *t = &p->g->accumulators.v[i];
        for (int k = 0; k < p->n; k++)
            if (t->acc == p->out[k] && p->stored[k] && p->value[k] != t->op) t->scope = NULL;
    }
}

/* Whether root i can be computed in the loops of the roots in `batch`, which may be its operands
 * there. */
static bool can_share_loops(GroupKernel *p, const int *sharing, int n, int i) {
    if (p->stored[i] || !type_same_spaces(&p->value[sharing[0]]->type, &p->value[i]->type))
        return false;
    for (int k = 0; k < n; k++)
        if (cg_how_read(p->g->lo, p->value[i], p->value[sharing[k]]).at_other_index) return false;
    for (int k = 0; k < n; k++) p->stored[sharing[k]] = true;
    OpList sums = pending_sums(p, p->value[i]);
    bool ready = sums.n == 0 && can_be_made(p, p->value[i]);
    for (int k = 0; k < n; k++) p->stored[sharing[k]] = false;
    return ready;
}

/* Emits all roots, with the sums that they need. */
static void emit_roots(GroupKernel *p) {
    int *sharing = NEWN(p->g->a, int, (size_t)p->n);
    for (int i = 0; i < p->n; i++) {
        if (!p->stored[i]) emit_sums(p, i);
        if (p->stored[i]) continue;
        int n = 0;
        sharing[n++] = i;
        for (int k = i + 1; k < p->n && can_share_loops(p, sharing, n, k); k++) sharing[n++] = k;
        emit_results(p, sharing, n);
        drop_overwritten(p);
    }
}

/* ---- the kernel -------- */
/* Whether the row of another root is the accumulator of the sum, or is to be. */
static bool is_row_taken(const GroupKernel *p, int i, const Op *sum) {
    for (int k = 0; k < p->n; k++)
        if (k != i && (p->value[k] == sum || p->row_sum[k] == sum)) return true;
    return false;
}

/* The sum that is accumulated in the row of root i, since a local array would be too long; NULL =
 * none. */
static const Op *choose_row_sum(GroupKernel *p, int i) {
    int64_t n;
    OpList sums = pending_sums(p, p->value[i]);
    int most = pass_threshold(p->g->lo->c, PASS_T_ROW);
    for (int k = 0; k < sums.n; k++) {
        bool wide = !cg_row_size(&sums.v[k]->type, &n) || n > most;
        if (wide && !is_row_taken(p, i, sums.v[k])) return sums.v[k];
    }
    return NULL;
}

/* Begins the kernel's state. */
static void init_group(GroupKernel *p, Lower *lo, const Op *const *roots, int n) {
    p->n = n;
    p->root = roots;
    p->value = NEWN(lo->a, const Op *, (size_t)n);
    p->row_sum = NEWN(lo->a, const Op *, (size_t)n);
    p->out = NEWN(lo->a, LBuf *, (size_t)n);
    p->stored = NEWN(lo->a, bool, (size_t)n);
    for (int i = 0; i < n; i++) p->value[i] = cg_skip_views(lo, roots[i]);
    p->rows = p->value[0]->type.dim[0];
    cg_set_roots(p->g, p->value, n);
    p->g->stored = p->stored;
    for (int i = 0; i < n; i++) {
        p->out[i] = cg_arg_value(p->g, roots[i], &p->value[i]->type);
        p->out[i]->written = true;
    }
    for (int i = 0; i < n; i++)
        p->row_sum[i] = choose_row_sum(p, i); /* operands come before users */
}

/* Lowers roots of several shapes, or with several sums, to one kernel. */
void cg_lower_group(Lower *lo, const Op *const *roots, int n, const MapList *maps) {
    Gen gen, *g = &gen;
    GroupKernel p = {.g = g};
    cg_begin_kernel(g, lo, roots[n - 1], "");
    init_group(&p, lo, roots, n);
    LStmt *loop = cg_open_parallel(g, p.rows->size, "v", &p.row);
    loop->sched.balance = *maps;
    p.env = cg_bind(g, NULL, p.rows, p.row);
    emit_roots(&p);
    cg_close_scope(g);
    cg_step_kernel(g, roots[n - 1]);
}
