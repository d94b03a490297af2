/* A sum over all rows is made in as many pieces as keep a device busy.
 *
 *     for %c in 64 parallel {                    for %c in 64 parallel {               NAME_pieces
 *       for %f in F { store y[%c, %f] 0 }          for %s in P collapse {
 *       for %i in chunk %c of 64: N {                for %f in F { store pieces[%c, %s, %f] 0 }
 *         .. acc sum y[%c, %f] ..          =>        for %i in chunk %c * P + %s of 64 * P: N {
 *       }                                              .. acc sum pieces[%c, %s, %f] ..
 *     }
 *                                                for %c in 64 parallel {               NAME_sums
 *                                                  for %f in F { store y[%c, %f] 0 }
 *                                                  for %p in chunk %c of 64: 64 * P {
 *                                                    .. acc sum y[%c, %f] pieces[%p, %f]
 *
 * A reduction tree of fixed shape (as of Harris 2007, "Optimizing Parallel Reduction in CUDA"): the
 * plan has as many parts as a processor wants, a device has hundreds of blocks at a time.  P
 * follows from sizes and from the target's data alone, and pieces are added in their order, so the
 * bits do not depend on the machine.  P is 1 where rows are few or results are large: then `pieces`
 * is y itself, and only the first kernel is launched. */
#include "codegen/loop_passes/loops.h"
#include "codegen/lower/lower.h"
#include "passes/rewrite.h"
#include "runtime/exec/blocks.h"

/* An argument that gets a number, or a row of them, for each part of the rows. */
typedef struct {
    LBuf *buf;
    const LBuf *scalar; /* of the kernel, in which a part's number is added up; NULL = in buf */
    RedKind red;        /* how a part's rows are combined */
    Span span;          /* of what is combined */
} PartSum;
typedef VEC(PartSum) PartSums;

/* A kernel of parts of long sums, and what is made of it. */
typedef struct {
    Loops *l;
    const LKernel *k;
    const LStmt *parallel; /* over the parts */
    const Expr *rows;      /* of which all parts are; NULL = no loop over a part was seen */
    PartSums sums;
    const Expr *n_pieces; /* of each part */
    const char *why;      /* it is left as it is; NULL = it is not */
} SumSplit;

/* Records why the kernel is left as it is, if nothing was recorded before. */
static void refuse(SumSplit *x, const char *why) {
    if (!x->why) x->why = why;
}

/* ---- what is summed ---------------------------------------------------------------------- */
/* Whether register r is the constant that a reduction begins with. */
static bool is_identity(const LReg *r, RedKind red) {
    const LStmt *d = r->def;
    return d->kind == L_LET && d->fn == L_FN_CONST && d->imm == cg_identity(red, r->dt);
}

/* The reduction by which all statements of the list add to buffer b. False: nothing is added to it,
 * or not always by the same reduction. *at: the first statement that does. */
static bool find_reduction(const LStmt *s, const LBuf *b, const LStmt **at) {
    for (; s; s = s->next) {
        if (loop_has_body(s) && !find_reduction(s->body, b, at)) return false;
        if (s->kind != L_ACC || s->buf != b) continue;
        if (*at && (*at)->red != s->red) return false;
        if (!*at) *at = s;
    }
    return true;
}

/* Whether every store to buffer b in the list is what the reduction begins with, or the sum of a
 * part, which was added up in a scalar that began so. */
static bool stores_begin_or_end(const LStmt *list, const LStmt *s, const LBuf *b, RedKind red) {
    for (; s; s = s->next) {
        if (loop_has_body(s) && !stores_begin_or_end(list, s->body, b, red)) return false;
        if (s->kind != L_STORE || s->buf != b || is_identity(s->src, red)) continue;
        const LStmt *from = s->src->def, *acc = NULL;
        const LBuf *scalar = from->kind == L_LOAD ? from->buf : NULL;
        if (!scalar || scalar == b || scalar->kind != LB_LOCAL || scalar->rank) return false;
        if (!find_reduction(list, scalar, &acc) || !acc || acc->red != red) return false;
        if (!stores_begin_or_end(list, list, scalar, red)) return false;
    }
    return true;
}

/* The scalar that is stored to buffer b; NULL = there is none. */
static const LBuf *stored_scalar(const LStmt *s, const LBuf *b) {
    for (const LBuf *found; s; s = s->next) {
        if (loop_has_body(s) && (found = stored_scalar(s->body, b))) return found;
        bool is_load = s->kind == L_STORE && s->buf == b && s->src->def->kind == L_LOAD;
        if (is_load && s->src->def->buf->kind == LB_LOCAL) return s->src->def->buf;
    }
    return NULL;
}

/* Adds the sums that the kernel writes to memory: each argument that it writes must be one. */
static void find_sums(SumSplit *x) {
    const LStmt *list = x->parallel->body;
    for (int i = 0; i < x->k->bufs.n && !x->why; i++) {
        LBuf *b = x->k->bufs.v[i];
        const LStmt *acc = NULL;
        if (!b->written) continue;
        const LBuf *scalar = stored_scalar(list, b);
        if (!b->partial || !b->rank || b->rank == MAX_RANK ||
            !expr_eq(b->dim[0], x->parallel->extent))
            refuse(x, arena_printf(x->l->a, "%s has no row for each part", b->name));
        else if (!find_reduction(list, scalar ? scalar : b, &acc) || !acc ||
                 !stores_begin_or_end(list, list, b, acc->red))
            refuse(x, arena_printf(x->l->a, "%s is no sum of rows", b->name));
        else
            vec_push(x->l->a, &x->sums, ((PartSum){b, scalar, acc->red, acc->span}));
    }
    if (!x->sums.n) refuse(x, "it adds up no rows");
}

/* Whether operand i of the statement may be the number of the part: it says which rows, or whose
 * sum is written. */
static bool may_be_part(const LStmt *s, int i) {
    if (s->kind == L_FOR) return s->range == LR_CHUNK;
    return loop_is_write(s) && s->buf->kind != LB_LOCAL && i == 0;
}

/* Whether a part's number is added up in local array b. */
static bool is_scalar_of_sum(const SumSplit *x, const LBuf *b) {
    for (int i = 0; i < x->sums.n; i++)
        if (x->sums.v[i].scalar == b) return true;
    return false;
}

/* Checks what the statements do with the number of the part, with the rows of a part, and with the
 * sums. in_part: they are run for each row. */
static void check_list(SumSplit *x, const LStmt *s, bool in_part) {
    for (; s && !x->why; s = s->next) {
        const bool is_part = s->kind == L_FOR && s->range == LR_CHUNK;
        const bool is_array = loop_is_access(s) && s->buf->kind != LB_LOCAL && s->buf->written;
        const bool is_sum = is_array || (loop_is_access(s) && is_scalar_of_sum(x, s->buf));
        LReg *const *r;
        for (int i = 0; (r = loop_operand(s, i)); i++)
            if (*r == x->parallel->var && !may_be_part(s, i))
                refuse(x, "its number is more than the name of a part");
        if (is_part) {
            if (s->ptr) refuse(x, "processes own its parts");
            if (s->at != x->parallel->var || !expr_eq(s->n_chunks, x->parallel->extent))
                refuse(x, "rows are cut in other ways, too");
            if (x->rows && !expr_eq(x->rows, s->extent)) refuse(x, "it adds up other rows, too");
            x->rows = s->extent;
        }
        if (is_array && (s->kind == L_LOAD || s->idx[0] != x->parallel->var))
            refuse(x, arena_printf(x->l->a, "%s is no sum of rows", s->buf->name));
        if (is_sum && (s->kind == L_ACC) != in_part)
            refuse(x, arena_printf(x->l->a, "%s is no sum of rows", s->buf->name));
        if (loop_has_body(s)) check_list(x, s->body, in_part || is_part);
    }
}

/* ---- how many pieces --------------------------------------------------------------------- */
/* The bytes of one piece of all parts. */
static const Expr *piece_bytes(const SumSplit *x) {
    Arena *a = x->l->a;
    const Expr *bytes = expr_const(a, 0);
    for (int i = 0; i < x->sums.n; i++) {
        const LBuf *b = x->sums.v[i].buf;
        const Expr *n = expr_const(a, RT_SUM_CHUNKS * (int64_t)dtype_bytes(b->dt));
        for (int d = 1; d < b->rank; d++) n = expr_mul(a, n, b->dim[d]);
        bytes = expr_add(a, bytes, n);
    }
    return bytes;
}

/* Finds into how many pieces each part is cut: as many as make the target's number of all parts, of
 * enough rows each, and as fit the memory that stages have. */
static void choose_pieces(SumSplit *x) {
    Arena *a = x->l->a;
    const Target *on = x->l->on;
    const int rows = pass_threshold(x->l->c, PASS_T_PIECE_ROWS);
    const Expr *one = expr_const(a, 1);
    const Expr *most = expr_const(a, (on->sum_parts + RT_SUM_CHUNKS - 1) / RT_SUM_CHUNKS);
    const Expr *room = expr_const(a, on->room_bytes - (int64_t)on->room_align * x->sums.n + 1);
    const Expr *fit =
        expr_add(a, expr_ceildiv(a, room, expr_max(a, one, piece_bytes(x))), expr_const(a, -1));
    const Expr *wanted =
        expr_ceildiv(a, x->rows, expr_const(a, (int64_t)RT_SUM_CHUNKS * (int64_t)rows));
    x->n_pieces = expr_max(a, one, expr_min(a, expr_min(a, most, fit), wanted));
    int64_t n;
    if (expr_is_const(fit, &n) && n < 2) refuse(x, "pieces do not fit into a stage's memory");
    if (expr_is_const(x->n_pieces, &n) && n < 2) refuse(x, "it has few rows");
}

/* ---- statements ---------------------------------------------------------------------------- */
/* Adds a statement behind those that end at *tail, and returns it. */
static LStmt *add(const SumSplit *x, LStmt ***tail, LStmtKind kind, Span span) {
    LStmt *s = NEW(x->l->a, LStmt);
    *s = (LStmt){.kind = kind, .span = span};
    **tail = s;
    *tail = &s->next;
    return s;
}

/* Adds a value of an index, and returns its register. */
static LReg *add_index(const SumSplit *x, LKernel *k, LStmt ***tail, LStmt of) {
    LStmt *s = add(x, tail, L_LET, x->parallel->span);
    *s = of;
    s->kind = L_LET;
    s->span = x->parallel->span;
    return s->dst = loop_new_register(x->l->a, k, DT_I64, "i", s);
}

static LReg *add_size(const SumSplit *x, LKernel *k, LStmt ***tail, const Expr *size) {
    return add_index(x, k, tail, (LStmt){.fn = L_FN_SIZE, .size = size});
}

/* Adds a loop over 0 .. extent - 1, and returns it. */
static LStmt *add_loop(const SumSplit *x, LKernel *k, LStmt ***tail, const Expr *extent,
                       const char *hint) {
    LStmt *s = add(x, tail, L_FOR, x->parallel->span);
    s->extent = extent;
    s->var = loop_new_register(x->l->a, k, DT_I64, hint, s);
    return s;
}

/* Adds an access to buffer b. */
static LStmt *add_access(const SumSplit *x, LStmt ***tail, LStmtKind kind, LBuf *b,
                         LReg *const *idx, LReg *src) {
    LStmt *s = add(x, tail, kind, x->parallel->span);
    s->buf = b;
    s->src = src;
    for (int i = 0; i < b->rank; i++) s->idx[i] = idx[i];
    return s;
}

/* Adds a load, and returns its register. */
static LReg *add_load(const SumSplit *x, LKernel *k, LStmt ***tail, LBuf *b, LReg *const *idx) {
    LStmt *s = add_access(x, tail, L_LOAD, b, idx, NULL);
    return s->dst = loop_new_register(x->l->a, k, b->dt, b->name, s);
}

/* Adds the array of pieces of a sum to the arguments of a stage: cut_by_part: [parts, pieces, ..],
 * else [parts * pieces, ..]. */
static LBuf *add_room(const SumSplit *x, LKernel *k, const LBuf *sum, bool cut_by_part) {
    Arena *a = x->l->a;
    LBuf *b = NEW(a, LBuf);
    *b = (LBuf){.kind = LB_ROOM, .id = k->bufs.n, .dt = sum->dt, .room_of = sum->id};
    b->name = loop_unique_name(a, k, "pieces");
    b->dim[b->rank++] = cut_by_part ? sum->dim[0] : expr_mul(a, sum->dim[0], x->n_pieces);
    if (cut_by_part) b->dim[b->rank++] = x->n_pieces;
    for (int i = 1; i < sum->rank; i++) b->dim[b->rank++] = sum->dim[i];
    b->written = cut_by_part;
    vec_push(a, &k->bufs, b);
    return b;
}

/* A copy of the kernel for a stage, which writes none of its sums. */
static LKernel *copy_for_stage(const SumSplit *x, const char *suffix) {
    LKernel *k = loop_copy(x->l->a, x->k);
    k->name = arena_printf(x->l->a, "%s_%s", x->k->name, suffix);
    for (int i = 0; i < x->sums.n; i++) k->bufs.v[x->sums.v[i].buf->id]->written = false;
    return k;
}

/* ---- the first stage ----------------------------------------------------------------------- */
/* Makes the writes to a sum write its piece, and the loops over a part's rows go through the
 * piece's. */
static void redirect(const SumSplit *x, LStmt *s, LBuf *const *room, LReg *piece, LReg *number) {
    for (; s; s = s->next) {
        if (loop_has_body(s)) redirect(x, s->body, room, piece, number);
        if (s->kind == L_FOR && s->range == LR_CHUNK) {
            s->at = number;
            s->n_chunks = expr_mul(x->l->a, s->n_chunks, x->n_pieces);
        }
        if (!loop_is_access(s) || s->buf->kind == LB_LOCAL || !room[s->buf->id]) continue;
        for (int i = s->buf->rank; i > 1; i--) s->idx[i] = s->idx[i - 1];
        s->idx[1] = piece;
        s->buf = room[s->buf->id];
    }
}

/* The kernel that adds up pieces of parts. */
static LKernel *make_pieces(const SumSplit *x) {
    LKernel *k = copy_for_stage(x, "pieces");
    LBuf **room = NEWN(x->l->a, LBuf *, (size_t)x->k->bufs.n + (size_t)x->sums.n);
    LStmt *parallel = loop_parallel(k), *old_body = parallel->body, *first = NULL, **tail = &first;
    for (int i = 0; i < x->sums.n; i++)
        room[x->sums.v[i].buf->id] = add_room(x, k, x->sums.v[i].buf, true);
    LReg *n = add_size(x, k, &tail, x->n_pieces);
    *tail = k->body;
    k->body = first;
    parallel->body = NULL;
    tail = &parallel->body;
    LStmt *loop = add_loop(x, k, &tail, x->n_pieces, "s");
    loop->sched.collapse = true;
    tail = &loop->body;
    LReg *before =
        add_index(x, k, &tail, (LStmt){.fn = L_FN_IMUL, .n_arg = 2, .arg = {parallel->var, n}});
    LReg *number =
        add_index(x, k, &tail, (LStmt){.fn = L_FN_IADD, .n_arg = 2, .arg = {before, loop->var}});
    *tail = old_body;
    redirect(x, old_body, room, loop->var, number);
    loop_renumber_registers(k);
    return k;
}

/* ---- the second stage ---------------------------------------------------------------------- */
/* Opens loops over a sum's columns: idx gets their variables, from the second on. Returns where
 * statements in the innermost go; of a single column, *tail. */
static LStmt ***open_columns(const SumSplit *x, LKernel *k, const LBuf *b, LReg *zero, LReg **idx,
                             LStmt ***tail) {
    LStmt ***at = tail, *loop = NULL;
    for (int i = 1; i < b->rank; i++) {
        idx[i] = zero;
        if (loop_is_unit_extent(b->dim[i])) continue;
        loop = add_loop(x, k, at, b->dim[i], "f");
        idx[i] = loop->var;
        at = NEW(x->l->a, LStmt **);
        *at = &loop->body;
    }
    int64_t n, most = pass_threshold(x->l->c, PASS_T_LOWER_COLUMNS);
    if (loop) loop->sched.vector = true;
    if (loop) loop->sched.unroll = expr_is_const(loop->extent, &n) && n <= most;
    return at;
}

/* Whether the sum of a part is one number. */
static bool is_number(const LBuf *b) {
    for (int i = 1; i < b->rank; i++)
        if (!loop_is_unit_extent(b->dim[i])) return false;
    return true;
}

/* Adds the loop over the pieces of a part. */
static LStmt *add_piece_loop(const SumSplit *x, LKernel *k, LStmt ***tail, LReg *part) {
    const Expr *n_parts = x->parallel->extent;
    LStmt *loop = add_loop(x, k, tail, expr_mul(x->l->a, n_parts, x->n_pieces), "p");
    loop->range = LR_CHUNK;
    loop->n_chunks = n_parts;
    loop->at = part;
    return loop;
}

/* Adds the sum of a part's pieces where it is one number: it is added up in a register. */
static void add_number(const SumSplit *x, LKernel *k, LStmt ***tail, LBuf *sum, LBuf *room,
                       RedKind red, LReg **idx, LReg *identity) {
    LBuf *acc = NEW(x->l->a, LBuf);
    *acc = (LBuf){.kind = LB_LOCAL, .id = k->locals.n, .dt = sum->dt, .written = true};
    acc->name = loop_unique_name(x->l->a, k, "acc");
    vec_push(x->l->a, &k->locals, acc);
    add(x, tail, L_LOCAL, x->parallel->span)->buf = acc;
    add_access(x, tail, L_STORE, acc, NULL, identity);
    LStmt *loop = add_piece_loop(x, k, tail, idx[0]), **in = &loop->body;
    LReg *at[MAX_RANK];
    for (int i = 0; i < sum->rank; i++) at[i] = i ? idx[i] : loop->var;
    loop->sched.vector = true;
    LReg *v = add_load(x, k, &in, room, at);
    add_access(x, &in, L_ACC, acc, NULL, v)->red = red;
    v = add_load(x, k, tail, acc, NULL);
    add_access(x, tail, L_STORE, sum, idx, v);
}

/* Adds the sums of a part's pieces, column by column. */
static void add_columns(const SumSplit *x, LKernel *k, LStmt ***tail, LBuf *sum, LBuf *room,
                        RedKind red, LReg **idx, LReg *identity, LReg *zero) {
    LStmt ***at = open_columns(x, k, sum, zero, idx, tail);
    add_access(x, at, L_STORE, sum, idx, identity);
    LStmt *loop = add_piece_loop(x, k, tail, idx[0]), **in = &loop->body;
    at = open_columns(x, k, sum, zero, idx, &in);
    LReg *part = idx[0];
    idx[0] = loop->var;
    LReg *v = add_load(x, k, at, room, idx);
    idx[0] = part;
    add_access(x, at, L_ACC, sum, idx, v)->red = red;
}

/* Adds the constant that a reduction begins with, and returns its register. */
static LReg *add_identity(const SumSplit *x, LKernel *k, LStmt ***tail, const PartSum *sum) {
    LStmt *s = add(x, tail, L_LET, sum->span);
    s->fn = L_FN_CONST;
    s->imm = cg_identity(sum->red, sum->buf->dt);
    return s->dst = loop_new_register(x->l->a, k, sum->buf->dt, "c", s);
}

/* The kernel that adds up the pieces of each part. */
static LKernel *make_sums(const SumSplit *x) {
    LKernel *k = copy_for_stage(x, "sums");
    LReg **identity = NEWN(x->l->a, LReg *, (size_t)x->sums.n + 1);
    LStmt **tail = &k->body;
    k->body = NULL;
    k->locals.n = k->n_regs = 0;
    LReg *zero = add_size(x, k, &tail, expr_const(x->l->a, 0));
    for (int i = 0; i < x->sums.n; i++) identity[i] = add_identity(x, k, &tail, &x->sums.v[i]);
    LStmt *parallel = add_loop(x, k, &tail, x->parallel->extent, "c"), **in = &parallel->body;
    parallel->sched.parallel = true;
    for (int i = 0; i < x->sums.n; i++) {
        const PartSum *s = &x->sums.v[i];
        LBuf *sum = k->bufs.v[s->buf->id], *room = add_room(x, k, s->buf, false);
        LReg *idx[MAX_RANK] = {parallel->var};
        sum->written = true;
        for (int d = 1; d < sum->rank; d++) idx[d] = zero;
        if (is_number(sum))
            add_number(x, k, &in, sum, room, s->red, idx, identity[i]);
        else
            add_columns(x, k, &in, sum, room, s->red, idx, identity[i], zero);
    }
    (void)loop_drop_unused(x->l->a, k);
    loop_renumber_registers(k);
    return k;
}

/* ---- all ------------------------------------------------------------------------------------- */
/* Cuts the parts of a kernel's sums into pieces; false: it stays as it is. */
static bool split_kernel(Loops *l, const LKernel *k, LKernels *out) {
    SumSplit x = {.l = l, .k = k, .parallel = loop_parallel(k)};
    if (!x.parallel || k->threads.kind || !loop_sums_chunks(x.parallel)) return false;
    if (l->on->sum_parts <= RT_SUM_CHUNKS) return false;
    find_sums(&x);
    if (!x.why) check_list(&x, x.parallel->body, false);
    if (!x.why) choose_pieces(&x);
    if (x.why) {
        pass_refusal(l->pass, k->span, "split-sums", "%s: not: %s", k->name, x.why);
        return false;
    }
    StrBuf n = sb_new(l->a);
    expr_print(&n, x.n_pieces);
    pass_remark(l->pass, k->span, "split-sums", "%s: each part in %s pieces", k->name, n.s);
    vec_push(l->a, out, make_pieces(&x));
    vec_push(l->a, out, make_sums(&x));
    return true;
}

/* Runs the pass: cuts the parts of long sums into pieces, which another stage adds up. */
static bool run_split_sums(PassCtx *p, Loops *l) {
    LKernels out = {0};
    (void)p;
    for (int i = 0; i < l->k.n; i++)
        if (!split_kernel(l, l->k.v[i], &out)) vec_push(l->a, &out, l->k.v[i]);
    l->k = out;
    return true;
}

const Pass loop_pass_split_sums = {
    .name = "split-sums",
    .summary = "sums over all rows are made in as many pieces as keep a device busy",
    .run_loops = run_split_sums,
};
