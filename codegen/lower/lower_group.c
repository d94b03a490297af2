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

/* The number of the root whose value is op and that is not stored yet; -1 = there is none. */
static int unstored_root(const GroupKernel *p, const Op *op) {
    for (int i = 0; i < p->n; i++)
        if (p->value[i] == op && !p->stored[i]) return i;
    return -1;
}

/* The accumulator (local array or row of a result) that holds the finished sum op; NULL = it is not
 * computed yet. */
static Accumulator *find_accumulator(const GroupKernel *p, const Op *op) {
    for (int i = 0; i < p->g->accumulators.n; i++)
        if (p->g->accumulators.v[i].op == op && p->g->accumulators.v[i].scope)
            return &p->g->accumulators.v[i];
    return NULL;
}

/* Whether op sums over the entries (edges) of a row into this row. map: op is read at entries of
 * this map's segments; NULL = at the row itself. */
static bool is_row_sum(const GroupKernel *p, const Op *op, const Map *map) {
    return op->kind == OP_SEGMENT && !map && op->map->to == p->rows;
}

/* ---- which sums are to be made, and which can be now -------- */
/* Whether a walk goes on from op to its operands, since this kernel computes them. *operand_map:
 * the map at whose entries the operands are read, NULL = at the row. map: the same of op itself. */
static bool visits_operands(const GroupKernel *p, const Op *op, Map *map, Map **operand_map) {
    *operand_map = map;
    if (is_row_sum(p, op, map)) {
        *operand_map = op->map;
        return true;
    }
    if (op->kind == OP_GATHER) {
        *operand_map = NULL;
        return map && op->map == map;
    }
    return op_has(op, OPT_ELEM) || op->kind == OP_VIEW || op->kind == OP_REDUCE ||
           op->kind == OP_CONTRACT || op->kind == OP_ARGMAX;
}

/* Whether x has a value per row (or per entry of `map`), rather than one for all rows. */
static bool is_per_row(const GroupKernel *p, const Op *x, const Map *map) {
    return x->type.rank > 0 && x->type.dim[0] == (map ? map->from : p->rows);
}

/* Collects in `out` the sums over entries that op needs and that are not computed yet, inner sums
 * first. */
static void collect_sums(GroupKernel *p, const Op *op, Map *map, OpList *out) {
    Map *operand_map;
    if (!cg_is_inline(p->g, op) || find_accumulator(p, op) || !cg_walk_visit(p->g, op, map)) return;
    bool goes_on = visits_operands(p, op, map, &operand_map);
    for (int i = 0; i < op->n_in && goes_on; i++)
        if (is_per_row(p, op->in[i], operand_map)) collect_sums(p, op->in[i], operand_map, out);
    if (is_row_sum(p, op, map) && !cg_has_op(out, op)) vec_push(p->g->a, out, op);
}

/* The sums over entries that op needs and that are not computed yet. */
static OpList missing_sums(GroupKernel *p, const Op *op) {
    OpList out = {0};
    cg_walk_start(p->g);
    collect_sums(p, op, NULL, &out);
    return out;
}

/* Whether all row values that op reads are computed or stored, so that op can be computed. map: the
 * map along whose entries op is read; NULL = at the row itself. sum: the sum whose operands are
 * asked about; it itself need not be computed. An op that was visited before is ready. */
static bool operands_are_ready(GroupKernel *p, const Op *op, Map *map, const Op *sum) {
    Map *operand_map;
    if (!cg_is_inline(p->g, op) || (op != sum && find_accumulator(p, op))) return true;
    if (!cg_walk_visit(p->g, op, map)) return true;
    if (op != sum && !map && (unstored_root(p, op) >= 0 || is_row_sum(p, op, map))) return false;
    if (!visits_operands(p, op, map, &operand_map)) return true;
    for (int i = 0; i < op->n_in; i++)
        if (is_per_row(p, op->in[i], operand_map) &&
            !operands_are_ready(p, op->in[i], operand_map, sum))
            return false;
    return true;
}

/* Whether the next traversal of the entries can compute the sum: all that it reads is known. */
static bool can_sum_now(GroupKernel *p, const Op *op) {
    cg_walk_start(p->g);
    return operands_are_ready(p, op, NULL, op);
}

/* ---- one traversal of the entries -------- */
/* Whether computing op would compute a reduction that has no accumulator yet. The answer is
 * remembered for one traversal, as twice the traversal's number plus the answer. */
static bool contains_missing_reduction(GroupKernel *p, const Op *op) {
    const Lower *lo = p->g->lo;
    unsigned *memo = &lo->sums[op->id];
    if (!cg_is_inline(p->g, op) || find_accumulator(p, op)) return false;
    if (*memo / 2 == lo->sums_mark) return *memo % 2;
    bool found = op_has(op, OPT_REDUCE);
    for (int i = 0; i < op->n_in && !found; i++) found = contains_missing_reduction(p, op->in[i]);
    *memo = 2 * lo->sums_mark + found;
    return found;
}

/* Whether env has an index for each dimension of op. */
static bool env_binds_all(const Op *op, const Env *env) {
    for (int i = 0; i < op->type.rank; i++)
        if (!cg_lookup(env, op->type.dim[i])) return false;
    return true;
}

/* Emits scalars that op needs before the loops over its dimensions: a target may compute those of
 * several heads or entries at once. */
static void emit_scalars(GroupKernel *p, const Op *op, const Env *env) {
    if (!cg_is_inline(p->g, op) || find_accumulator(p, op) || !cg_walk_visit(p->g, op, NULL))
        return;
    if (env_binds_all(op, env) && !contains_missing_reduction(p, op)) {
        if (op->n_in) cg_value(p->g, op, env);
        return;
    }
    for (int i = 0; i < op->n_in && op_has(op, OPT_ELEM); i++) emit_scalars(p, op->in[i], env);
}

/* Opens a loop over a dimension and binds it; a dimension of size 1 needs no loop. Counts loops in
 * *depth. */
static const Env *open_dim_loop(Gen *g, const Env *env, Space *s, int *depth) {
    int64_t n;
    if (expr_is_const(s->size, &n) && n == 1)
        return cg_bind(g, env, s, cg_size(g, expr_const(g->a, 0)));
    ++*depth;
    return cg_bind(g, env, s, cg_open_for(g, s->size, "f"));
}

/* Closes so many loops over dimensions. */
static void close_dim_loops(Gen *g, int depth) {
    while (depth-- > 0) cg_close_outer_loop(g);
}

/* Fills idx with the index of the accumulator's element at env: without the row if it is a local
 * array. */
static LReg *const *accumulator_index(const Accumulator *accumulator, const Env *env, LReg **idx) {
    int n_skipped = accumulator->acc->kind == LB_LOCAL;
    for (int i = n_skipped; i < accumulator->op->type.rank; i++)
        idx[i - n_skipped] = cg_lookup(env, accumulator->op->type.dim[i]);
    return idx;
}

typedef VEC(Accumulator) Tiles;

/* Emits the accumulation of sums over one entry, whose first `depth` dimensions env binds; sums
 * with the same next dimension share a loop over it. */
static void emit_accumulations(GroupKernel *p, const Tiles *accumulators, int depth,
                               const Env *env) {
    Gen *g = p->g;
    LReg *idx[MAX_RANK];
    Tiles rest = {0};
    cg_walk_start(g);
    for (int i = 0; i < accumulators->n; i++) emit_scalars(p, accumulators->v[i].op->in[0], env);
    for (int i = 0; i < accumulators->n; i++) {
        const Accumulator *accumulator = &accumulators->v[i];
        if (accumulator->op->type.rank == depth)
            cg_acc(g, accumulator->op->red, accumulator->acc,
                   accumulator_index(accumulator, env, idx),
                   cg_cast(g, cg_value(g, accumulator->op->in[0], env), accumulator->acc->dt));
        else
            vec_push(g->a, &rest, *accumulator);
    }
    while (rest.n) {
        Tiles same = {0}, others = {0};
        Space *s = rest.v[0].op->type.dim[depth];
        for (int i = 0; i < rest.n; i++)
            vec_push(g->a, rest.v[i].op->type.dim[depth] == s ? &same : &others, rest.v[i]);
        int opened = 0;
        emit_accumulations(p, &same, depth + 1, open_dim_loop(g, env, s, &opened));
        close_dim_loops(g, opened);
        rest = others;
    }
}

/* Emits a store of v to all elements of an accumulator. */
static void emit_fill_accumulator(GroupKernel *p, const Accumulator *accumulator, double v) {
    Gen *g = p->g;
    LReg *idx[MAX_RANK];
    const Env *env = p->env;
    int opened = 0;
    for (int i = 1; i < accumulator->op->type.rank; i++)
        env = open_dim_loop(g, env, accumulator->op->type.dim[i], &opened);
    cg_store(g, accumulator->acc, accumulator_index(accumulator, env, idx),
             cg_const(g, accumulator->acc->dt, v));
    close_dim_loops(g, opened);
}

/* The result in memory whose row can serve as accumulator of a sum too long for a local array; NULL
 * = there is none. */
static LBuf *accumulator_row(const GroupKernel *p, const Op *op) {
    for (int i = 0; i < p->n; i++) {
        const Type *t = &p->value[i]->type;
        bool same = t->rank == op->type.rank && t->dt == op->type.dt && !p->stored[i];
        for (int k = 0; k < t->rank && same; k++) same = t->dim[k] == op->type.dim[k];
        if (same && (p->value[i] == op || p->row_sum[i] == op)) return p->out[i];
    }
    return NULL;
}

/* The buffer in which a sum is accumulated: a local array if the row is short, else the row of a
 * result. */
static LBuf *new_accumulator(const GroupKernel *p, const Op *op) {
    int64_t extent[MAX_RANK], n_elements = 1;
    for (int i = 1; i < op->type.rank && n_elements; i++)
        n_elements =
            expr_is_const(op->type.dim[i]->size, &extent[i - 1]) ? n_elements * extent[i - 1] : 0;
    if (n_elements > 0 && n_elements <= pass_threshold(p->g->lo->c, PASS_T_ROW))
        return cg_local_array(p->g, cg_sum_dtype(op->type.dt), op->type.rank - 1, extent, "acc");
    LBuf *row = accumulator_row(p, op);
    if (!row) ctx_fault(p->g->lo->c, op->span, "a sum has no place");
    return row;
}

/* Makes an accumulator for a sum, fills it with the identity and appends it to `out`. */
static void begin_accumulator(GroupKernel *p, const Op *op, Tiles *out) {
    Accumulator accumulator = {
        .op = op, .scope = p->g->scope, .whole_axes = true, .acc = new_accumulator(p, op)};
    accumulator.key[0] = p->row;
    for (int i = 1; i < op->type.rank; i++) accumulator.is_axis[i] = true;
    emit_fill_accumulator(p, &accumulator, cg_identity(op->red, accumulator.acc->dt));
    vec_push(p->g->a, out, accumulator);
}

/* Completes a sum after its traversal: a maximum or minimum over no entries becomes 0. If the sum
 * was accumulated in its own result's row, that result is stored now. */
static void end_accumulator(GroupKernel *p, const Accumulator *accumulator) {
    Gen *g = p->g;
    Reduction reduction;
    bool ok = cg_reduction(accumulator->op, &reduction);
    CTX_HOLDS(g->lo->c, ok, accumulator->op->span);
    LReg *empty = reduction.red == RED_SUM ? NULL : cg_reduction_is_empty(g, &reduction, p->env);
    if (empty) {
        cg_open_if(g, empty);
        emit_fill_accumulator(p, accumulator, 0);
        cg_close_scope(g);
    }
    vec_push(g->a, &g->accumulators, *accumulator);
    cg_record_computed(g, accumulator->op);
    for (int i = 0; i < p->n; i++) /* its root is the row it was gathered in */
        if (p->value[i] == accumulator->op && p->out[i] == accumulator->acc) p->stored[i] = true;
}

/* Emits one loop over the row's entries that computes all of these sums. */
static void emit_traversal(GroupKernel *p, const OpList *sums) {
    Gen *g = p->g;
    Tiles accumulators = {0};
    Map *m = sums->v[0]->map;
    p->g->lo->sums_mark++; /* forgets what contains_missing_reduction() remembers */
    for (int i = 0; i < sums->n; i++) begin_accumulator(p, sums->v[i], &accumulators);
    LReg *entry = cg_open_segment(g, m, p->row, "e");
    emit_accumulations(p, &accumulators, 1, cg_bind(g, p->env, m->from, entry));
    cg_close_scope(g);
    for (int i = 0; i < accumulators.n; i++) end_accumulator(p, &accumulators.v[i]);
}

/* Emits traversals of the entries until all sums that root number `root` needs are computed; each
 * also computes what it can for later roots. */
static void emit_sums(GroupKernel *p, int root) {
    for (;;) {
        OpList missing = missing_sums(p, p->value[root]), now = {0};
        if (!missing.n) return;
        for (int i = root; i < p->n; i++) {
            OpList more = missing_sums(p, p->value[i]);
            for (int k = 0; k < more.n; k++)
                if (!cg_has_op(&now, more.v[k]) && can_sum_now(p, more.v[k]) &&
                    (!now.n || now.v[0]->map == more.v[k]->map))
                    vec_push(p->g->a, &now, more.v[k]);
        }
        if (!now.n) ctx_fault(p->g->lo->c, p->value[root]->span, "sums wait for each other");
        emit_traversal(p, &now);
    }
}

/* ---- results -------- */
/* Opens a loop over a dimension of a result; where a view splits the dimension, nested loops over
 * its parts, so that no index needs a division. */
static const Env *open_result_loop(GroupKernel *p, const Op *op, const Env *env, Space *s,
                                   int *depth) {
    Gen *g = p->g;
    Space *const *part = NULL;
    Split split = {0};
    int n = cg_value_split(g, op, s, &part);
    if (n < 2) return open_dim_loop(g, env, s, depth);
    for (int k = 0; k < n; k++) {
        const Env *in = open_dim_loop(g, NULL, part[k], depth);
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

/* Emits the loops that compute and store n roots of the same type. */
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
    close_dim_loops(g, depth);
    for (int i = 0; i < n; i++) p->stored[roots[i]] = true;
}

/* Forgets sums whose accumulator was the row of a result that now holds its final value. */
static void drop_overwritten(GroupKernel *p) {
    for (int i = 0; i < p->g->accumulators.n; i++) {
        Accumulator *accumulator = &p->g->accumulators.v[i];
        for (int k = 0; k < p->n; k++)
            if (accumulator->acc == p->out[k] && p->stored[k] && p->value[k] != accumulator->op)
                accumulator->scope = NULL;
    }
}

/* Whether root number `candidate` can be computed in the same loops as the n roots in `sharing`,
 * which may be its operands there. */
static bool can_share_loops(GroupKernel *p, const int *sharing, int n, int candidate) {
    if (p->stored[candidate] ||
        !type_same_spaces(&p->value[sharing[0]]->type, &p->value[candidate]->type))
        return false;
    for (int k = 0; k < n; k++)
        if (cg_how_read(p->g->lo, p->value[candidate], p->value[sharing[k]]).at_other_index)
            return false;
    for (int k = 0; k < n; k++) p->stored[sharing[k]] = true;
    OpList sums = missing_sums(p, p->value[candidate]);
    bool ready = sums.n == 0 && can_sum_now(p, p->value[candidate]);
    for (int k = 0; k < n; k++) p->stored[sharing[k]] = false;
    return ready;
}

/* Emits all roots in order, with the sums that they need; roots of one type share loops. */
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
/* Whether another root's row is the accumulator of this sum already. */
static bool is_row_taken(const GroupKernel *p, int i, const Op *sum) {
    for (int k = 0; k < p->n; k++)
        if (k != i && (p->value[k] == sum || p->row_sum[k] == sum)) return true;
    return false;
}

/* The sum that root number i accumulates in its own row in memory, since a local array would be too
 * long; NULL = none. */
static const Op *choose_row_sum(GroupKernel *p, int i) {
    int64_t n;
    OpList sums = missing_sums(p, p->value[i]);
    int max_local = pass_threshold(p->g->lo->c, PASS_T_ROW);
    for (int k = 0; k < sums.n; k++) {
        bool is_wide = !cg_row_size(&sums.v[k]->type, &n) || n > max_local;
        if (is_wide && !is_row_taken(p, i, sums.v[k])) return sums.v[k];
    }
    return NULL;
}

/* Sets up the state of the kernel: its roots, their buffers, and the sums accumulated in them. */
static void init_kernel_state(GroupKernel *p, Lower *lo, const Op *const *roots, int n) {
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

void cg_lower_group(Lower *lo, const Op *const *roots, int n, const MapList *maps) {
    Gen gen, *g = &gen;
    GroupKernel p = {.g = g};
    cg_begin_kernel(g, lo, roots[n - 1], "");
    init_kernel_state(&p, lo, roots, n);
    LStmt *loop = cg_open_parallel(g, p.rows->size, "v", &p.row);
    loop->sched.balance = *maps;
    p.env = cg_bind(g, NULL, p.rows, p.row);
    emit_roots(&p);
    cg_close_scope(g);
    cg_step_kernel(g, roots[n - 1]);
}
