/* Bytes and FLOPs of a step.
 *
 * A load counts once per value of the loop variables that its index depends on: a bias
 * b[f] inside a loop over rows is F elements (it stays in the cache), x[v, f] is N * F,
 * and x[src(e), f], whose row is data, is E * F.  A loop over the segment of row v visits
 * each entry of the map once over all rows, so it counts as E and takes the place of the
 * loop over v; a chunk loop likewise.  Two loads of one buffer with the same count and the
 * same way to the index are one: the second pass over a row finds it in the cache.
 *
 * Conditions count as taken.  So reads are what leaves the caches only where rows are
 * gathered from more memory than they hold: the roofline's usual convention (Williams,
 * Waterman, Patterson 2009, with traffic counted from the program as in DESIGN.md). */
#include "codegen/cost.h"
#include "ir/text.h"

#include <string.h>

enum { MAX_DEPTH = 64 };

/* What the value of a register depends on. */
typedef struct {
    uint64_t loops;        /* bit d: depends on the loop at depth d */
    bool data_dependent;   /* some load decides it */
    const LBuf *index_buf; /* that load's buffer */
} IndexDep;

/* An open loop: how many iterations it has over all iterations of the loops that it replaces. */
typedef struct {
    const LReg *var;
    const Expr *extent;
    const Map *segment; /* NULL: no segment loop */
    uint64_t replaces;  /* the loops around it whose iterations `extent` already contains */
} LoopCost;

/* A counted access to a buffer. */
typedef struct {
    const LBuf *buf;
    const LBuf *index_buf; /* where the index comes from; NULL = loop variables alone */
    const Expr *count;
    bool write;
    Span at; /* of the first statement */
} Access;

/* A walk over the statements of a kernel. */
typedef struct {
    Arena *a;
    IndexDep *reg;     /* by LReg.id */
    StrMap local_deps; /* of local arrays, by name */
    LoopCost loops[MAX_DEPTH];
    int depth;
    VEC(Access) accesses;
    CostLines *lines; /* of FLOPs; NULL: nobody asks */
    const Expr *flops;
} CostWalk;

/* ---- how often ------------------------------------------------------------------------ */
/* The bit that stands for the loop at depth d in a set of loops. */
static uint64_t loop_bit(int d) {
    return (uint64_t)1 << (d < MAX_DEPTH ? d : MAX_DEPTH - 1);
}

/* The set of all open loops. */
static uint64_t open_loops(const CostWalk *w) {
    return w->depth >= MAX_DEPTH ? ~(uint64_t)0 : loop_bit(w->depth) - 1;
}

/* The set of loops without those that another loop of the set replaces: a loop over the entries of
 * row v, over all rows, counts all entries and so replaces the loop over v. */
static uint64_t without_replaced(const CostWalk *w, uint64_t loops) {
    uint64_t kept = loops;
    for (int d = 0; d < w->depth; d++)
        if (loops & loop_bit(d)) kept &= ~w->loops[d].replaces;
    return kept;
}

/* The number of iterations of a set of nested loops together. */
static const Expr *iteration_count(const CostWalk *w, uint64_t loops) {
    const Expr *count = expr_const(w->a, 1);
    loops = without_replaced(w, loops);
    for (int d = 0; d < w->depth; d++)
        if (loops & loop_bit(d)) count = expr_mul(w->a, count, w->loops[d].extent);
    return count;
}

/* The depth of the open loop with variable r; -1: there is none. */
static int depth_of_variable(const CostWalk *w, const LReg *r) {
    for (int d = w->depth - 1; d >= 0; d--)
        if (w->loops[d].var == r) return d;
    return -1;
}

/* Whether another open loop counts instead of the one at depth d. */
static bool is_replaced(const CostWalk *w, int d) {
    for (int k = 0; k < w->depth; k++)
        if (w->loops[k].replaces & loop_bit(d)) return true;
    return false;
}

/* How often a loop iterates, over all iterations of the loops around it that its count already
 * contains (cost.replaces). A loop over the entries of a row's segment, in a loop over all rows,
 * has an iteration for each entry of the map; where the rows are not all rows, the mean length of a
 * segment is taken, rounded up. */
static LoopCost loop_cost(const CostWalk *w, const LStmt *loop) {
    LoopCost cost = {.var = loop->var, .extent = loop->extent};
    if (loop->range == LR_EXTENT) return cost;
    int outer = depth_of_variable(w, loop->at);
    if (loop->range == LR_CHUNK) { /* its number may be computed: of a part and a piece of it */
        const uint64_t numbering = w->reg[loop->at->id].loops & open_loops(w);
        for (int d = 0; d < w->depth; d++)
            if (numbering & loop_bit(d)) cost.replaces |= loop_bit(d) | w->loops[d].replaces;
        return cost;
    }
    const Map *map = cost.segment = loop->ptr->map;
    bool is_all_rows =
        outer >= 0 && !is_replaced(w, outer) && expr_eq(w->loops[outer].extent, map->to->size);
    cost.extent =
        is_all_rows ? map->from->size : expr_ceildiv(w->a, map->from->size, map->to->size);
    if (is_all_rows) cost.replaces = loop_bit(outer) | w->loops[outer].replaces;
    return cost;
}

/* ---- what an index depends on ------------------------------------------------------------ */
/* What an index depends on that is computed from two others: the loops of both, and data if one
 * depends on data. */
static IndexDep union_deps(IndexDep x, IndexDep y) {
    x.loops |= y.loops;
    x.data_dependent |= y.data_dependent;
    if (!x.index_buf) x.index_buf = y.index_buf;
    return x;
}

/* What the contents of local array b depend on. */
static IndexDep local_dep(const CostWalk *w, const LBuf *b) {
    const IndexDep *d = strmap_get(&w->local_deps, b->name);
    return d ? *d : (IndexDep){0};
}

/* Adds a dependence to those of local array b. */
static void add_local_dep(CostWalk *w, const LBuf *b, IndexDep dep) {
    IndexDep *known = strmap_get(&w->local_deps, b->name);
    if (!known) strmap_put(w->a, &w->local_deps, b->name, known = NEW(w->a, IndexDep));
    *known = union_deps(*known, dep);
}

/* What the indices of access s depend on. */
static IndexDep index_dep(const CostWalk *w, const LStmt *s) {
    IndexDep dep = {0};
    for (int i = 0; i < s->buf->rank; i++) dep = union_deps(dep, w->reg[s->idx[i]->id]);
    return dep;
}

/* How many different elements access s reaches. A dimension that several loops index together (a
 * tile and the position in it) counts with its extent. */
static const Expr *access_count(const CostWalk *w, const LStmt *s, IndexDep dep) {
    uint64_t loops = without_replaced(w, dep.loops & open_loops(w));
    const Expr *count = expr_const(w->a, 1);
    for (int i = 0; i < s->buf->rank && !dep.data_dependent; i++) {
        uint64_t dim_loops = without_replaced(w, w->reg[s->idx[i]->id].loops & open_loops(w));
        uint64_t other_dims = 0;
        for (int k = 0; k < s->buf->rank; k++)
            if (k != i) other_dims |= w->reg[s->idx[k]->id].loops;
        bool several = dim_loops & (dim_loops - 1);
        if (!several || (dim_loops & other_dims) || !s->buf->dim[i]) continue;
        count = expr_mul(w->a, count, s->buf->dim[i]);
        loops &= ~dim_loops;
    }
    return expr_mul(w->a, count, iteration_count(w, loops));
}

/* Records that the kernel accesses `count` elements of b. Accesses of one buffer by the same index
 * buffer with the same count are taken to be of the same elements, which memory moves once.
 * index_buf: the buffer whose contents are the index; NULL = the index follows from loop
 * variables. */
static void record_access(CostWalk *w, const LBuf *b, const LBuf *index_buf, const Expr *count,
                          bool write, Span at) {
    for (int i = 0; i < w->accesses.n; i++) {
        const Access *x = &w->accesses.v[i];
        if (x->buf == b && x->index_buf == index_buf && x->write == write &&
            expr_eq(x->count, count))
            return;
    }
    Access x = {b, index_buf, count, write, at};
    vec_push(w->a, &w->accesses, x);
}

/* ---- statements ---------------------------------------------------------------------------- */
/* Whether the statement counts as a floating-point operation. */
static bool is_arithmetic(const LStmt *s) {
    bool counts = s->fn == L_FN_OP && op_cost(s->op) > 0 && s->op != OP_SELECT;
    return counts && dtype_is_float(s->dst->dt);
}

/* Adds a cost to a source line of the model. Costs of one line that is inlined at one call of the
 * user are one entry. */
static void add_to_line(Arena *a, CostLines *l, Span at, const Expr *bytes, const Expr *flops) {
    int i = 0;
    while (i < l->n &&
           !(l->v[i].at.file == at.file && l->v[i].at.line == at.line &&
             l->v[i].at.site_file == at.site_file && l->v[i].at.site_line == at.site_line))
        i++;
    if (i == l->n) vec_push(a, l, ((CostLine){at, expr_const(a, 0), expr_const(a, 0)}));
    l->v[i].bytes = expr_add(a, l->v[i].bytes, bytes);
    l->v[i].flops = expr_add(a, l->v[i].flops, flops);
}

/* Counts a floating-point operation once for each iteration of the open loops. */
static void add_flops(CostWalk *w, Span at) {
    const Expr *count = iteration_count(w, open_loops(w));
    w->flops = expr_add(w->a, w->flops, count);
    if (w->lines) add_to_line(w->a, w->lines, at, expr_const(w->a, 0), count);
}

/* Counts an L_LET, and notes what its result depends on. */
static void visit_let(CostWalk *w, const LStmt *s) {
    IndexDep dep = {0};
    for (int i = 0; i < s->n_arg; i++) dep = union_deps(dep, w->reg[s->arg[i]->id]);
    w->reg[s->dst->id] = dep;
    if (is_arithmetic(s)) add_flops(w, s->span);
}

/* Counts a load, and notes that the loaded register depends on data. */
static void visit_load(CostWalk *w, const LStmt *s) {
    IndexDep dep = index_dep(w, s);
    if (s->buf->kind == LB_LOCAL) {
        w->reg[s->dst->id] = union_deps(local_dep(w, s->buf), dep);
        return;
    }
    record_access(w, s->buf, dep.index_buf, access_count(w, s, dep), false, s->span);
    w->reg[s->dst->id] = (IndexDep){dep.loops, true, s->buf};
}

/* Counts a store or accumulation to a buffer. One to a local array costs nothing: it only notes the
 * loops and the index array that the local's value varies with, for the loads of it that follow. */
static void visit_store(CostWalk *w, const LStmt *s) {
    IndexDep dep = index_dep(w, s);
    if (s->buf->kind == LB_LOCAL)
        add_local_dep(w, s->buf, union_deps(w->reg[s->src->id], dep));
    else
        record_access(w, s->buf, dep.index_buf, access_count(w, s, dep), true, s->span);
    if (s->kind == L_ACC && dtype_is_float(s->src->dt)) add_flops(w, s->span);
}

static void visit_list(CostWalk *w, const LStmt *s);

/* Counts the reads of the bounds of each row's segment by a loop over entries. */
static void count_segment_bounds(CostWalk *w, const LStmt *loop) {
    IndexDep row_dep = w->reg[loop->at->id];
    const Expr *rows = iteration_count(w, row_dep.loops & open_loops(w));
    record_access(w, loop->ptr, row_dep.index_buf, expr_add(w->a, rows, expr_const(w->a, 1)), false,
                  loop->span);
}

/* Notes which loops the variable of a loop varies with, and visits the body. The extent of a loop
 * over segments is the number of all entries, so that it stands for the loop over rows around it,
 * too (`replaces`): its variable varies with that one as well, but without_replaced() leaves that
 * one out where extents are multiplied. */
static void visit_loop(CostWalk *w, const LStmt *loop) {
    if (w->depth == MAX_DEPTH) return; /* deeper than any model's kernel: not counted */
    if (loop->range == LR_SEGMENT) count_segment_bounds(w, loop);
    w->loops[w->depth] = loop_cost(w, loop);
    IndexDep dep = {.loops = loop_bit(w->depth)};
    if (loop->at) dep = union_deps(dep, w->reg[loop->at->id]);
    dep.loops |= w->loops[w->depth].replaces;
    w->reg[loop->var->id] = dep;
    w->depth++;
    visit_list(w, loop->body);
    w->depth--;
}

/* Counts a list of statements. Of two versions of a loop only the first counts. */
static void visit_list(CostWalk *w, const LStmt *s) {
    for (; s; s = s->next) switch (s->kind) {
        case L_FOR: /* of two versions of a loop the first: both do the same */
            if (!s->sched.is_second) visit_loop(w, s);
            break;
        case L_IF:
        case L_TILE:
        case L_COLUMNS:
            visit_list(w, s->body);
            break;
        case L_LET:
            visit_let(w, s);
            break;
        case L_LOAD:
            visit_load(w, s);
            break;
        case L_STORE:
        case L_ACC:
            visit_store(w, s);
            break;
        case L_LOCAL:
        case L_BARRIER:
        case L_FOLD:
        case L_PREFETCH:
            break;
        }
}

/* The bytes of so many elements of type dt. */
static const Expr *bytes_of(Arena *a, const Expr *count, DType dt) {
    return expr_mul(a, count, expr_const(a, dtype_bytes(dt)));
}

/* The bytes and FLOPs of a kernel; lines: also by source line, if not NULL. */
static StepCost kernel_cost(Arena *a, const LKernel *k, CostLines *lines) {
    CostWalk w = {.a = a, .lines = lines, .flops = expr_const(a, 0)};
    w.reg = NEWN(a, IndexDep, (size_t)k->n_regs + 1);
    visit_list(&w, k->body);
    for (int i = 0; i < k->stages.n; i++) {
        w.reg = NEWN(a, IndexDep, (size_t)k->stages.v[i]->n_regs + 1);
        visit_list(&w, k->stages.v[i]->body);
    }
    const Expr *none = expr_const(a, 0);
    StepCost cost = {none, none, none, w.flops};
    for (int i = 0; i < w.accesses.n; i++) {
        const Access *access = &w.accesses.v[i];
        const Expr *bytes = bytes_of(a, access->count, access->buf->dt);
        if (access->write)
            cost.written = expr_add(a, cost.written, bytes);
        else
            cost.read = expr_add(a, cost.read, bytes);
        if (!access->write && access->index_buf) cost.gathered = expr_add(a, cost.gathered, bytes);
        if (lines) add_to_line(a, lines, access->at, bytes, none);
    }
    return cost;
}

CostAccesses cg_kernel_accesses(Arena *a, const LKernel *k, const Expr **flops) {
    CostWalk w = {.a = a, .flops = expr_const(a, 0)};
    CostAccesses out = {0};
    w.reg = NEWN(a, IndexDep, (size_t)k->n_regs + 1);
    visit_list(&w, k->body);
    for (int i = 0; i < w.accesses.n; i++) {
        const Access *x = &w.accesses.v[i];
        vec_push(a, &out, ((CostAccess){x->buf, x->count, x->index_buf != NULL, x->write}));
    }
    *flops = w.flops;
    return out;
}

/* ---- library calls ------------------------------------------------------------------------ */
/* Whether the operand's batch stride is 0: all products of the batch use the same matrix. */
static bool is_shared_by_batch(const Expr *batch_stride) {
    int64_t c;
    return expr_is_const(batch_stride, &c) && c == 0;
}

/* The bytes that a batched matrix product reads or writes of one operand. */
static const Expr *matrix_bytes(Arena *a, const PGemm *g, const PBuf *b, const Expr *rows,
                                const Expr *cols, const Expr *batch_stride) {
    const Expr *n = bytes_of(a, expr_mul(a, rows, cols), b->dt);
    return is_shared_by_batch(batch_stride) ? n : expr_mul(a, g->batch, n);
}

/* The bytes and FLOPs of a matrix product. */
static StepCost gemm_cost(Arena *a, const Plan *p, const PStep *s) {
    const PGemm *g = &s->gemm;
    const PBuf *x = p->bufs.v[s->bufs[0]], *y = p->bufs.v[s->bufs[1]], *z = p->bufs.v[s->bufs[2]];
    const Expr *mnk = expr_mul(a, expr_mul(a, g->m, g->n), g->k);
    return (StepCost){
        .read = expr_add(a, matrix_bytes(a, g, x, g->m, g->k, g->a_batch),
                         matrix_bytes(a, g, y, g->k, g->n, g->b_batch)),
        .gathered = expr_const(a, 0),
        .written = matrix_bytes(a, g, z, g->m, g->n, g->c_batch),
        .flops = expr_mul(a, expr_mul(a, g->batch, mnk), expr_const(a, 2)),
    };
}

/* The cost of a step of which its buffers alone are known: all of each is read or written. */
static StepCost buffers_cost(Arena *a, const Plan *p, const PStep *s) {
    const Expr *none = expr_const(a, 0);
    bool in_place = plan_step_facts(s->kind)->writes == PWRITES_ROWS;
    StepCost c = {none, none, none, none};
    for (int i = 0; i < s->n_bufs; i++) {
        const PBuf *b = p->bufs.v[s->bufs[i]];
        const Expr **moved = plan_step_writes_at(s, i) && !in_place ? &c.written : &c.read;
        *moved = expr_add(a, *moved, bytes_of(a, b->count, b->dt));
    }
    return c;
}

StepCost cg_step_cost(Arena *a, const Plan *p, const PStep *s) {
    switch (s->kind) {
    case PS_KERNEL:
        return kernel_cost(a, s->kernel, NULL);
    case PS_GEMM:
        return gemm_cost(a, p, s);
    default:
        return buffers_cost(a, p, s);
    }
}

CostLines cg_step_cost_lines(Arena *a, const Plan *p, const PStep *s) {
    CostLines lines = {0};
    StepCost c = s->kind == PS_KERNEL ? kernel_cost(a, s->kernel, &lines) : cg_step_cost(a, p, s);
    if (s->kind != PS_KERNEL)
        add_to_line(a, &lines, s->span, expr_add(a, c.read, c.written), c.flops);
    return lines;
}

/* ---- names ---------------------------------------------------------------------------------- */
/* The name of a step: that of its kernel or C function, else of its kind. */
const char *cg_step_name(const PStep *s) {
    if (s->kind == PS_CALL) return cg_symbol(s->op);
    return s->kernel ? s->kernel->name : text_PStepKind.word[s->kind];
}

/* The sizes of a step as text: "m x n x k" of a matrix product, else the extent of its loop. */
const char *cg_step_shape(Arena *a, const PStep *s) {
    StrBuf b = sb_new(a);
    sb_puts(&b, "");
    const Expr *const mnk[] = {s->gemm.m, s->gemm.n, s->gemm.k};
    int64_t batch;
    if (s->kind != PS_GEMM) {
        if (s->extent) expr_print(&b, s->extent);
        return b.s;
    }
    if (!expr_is_const(s->gemm.batch, &batch) || batch != 1) {
        expr_print(&b, s->gemm.batch);
        sb_puts(&b, " of ");
    }
    for (int i = 0; i < 3; i++) {
        if (i) sb_puts(&b, " x ");
        expr_print(&b, mnk[i]);
    }
    return b.s;
}

/* A line of a source file; file: index in Ctx.sources. */
typedef struct {
    uint32_t file, line;
} Line;
typedef VEC(Line) Lines;

/* Adds a source line to a list sorted by file and line, if it is not there. */
static void add_line(Arena *a, Lines *lines, Span at) {
    if (!at.line) return;
    int i = 0;
    for (; i < lines->n; i++)
        if (lines->v[i].file == at.file && lines->v[i].line == at.line) return;
    Line line = {at.file, at.line};
    vec_push(a, lines, line);
    for (i = lines->n - 1; i > 0; i--) { /* sorted by file, then line */
        const Line *p = &lines->v[i - 1];
        if (p->file < line.file || (p->file == line.file && p->line < line.line)) break;
        lines->v[i] = *p;
    }
    lines->v[i] = line;
}

/* The path of a source as seen from the model's folder; a library file is in "layers". */
const char *cg_path_short(const Module *m, uint32_t file) {
    const Source *s = &m->ctx->sources.v[file];
    const char *from = m->source_path ? m->source_path : "", *slash = strrchr(from, '/');
    size_t n = slash ? (size_t)(slash - from) + 1 : 0;
    if (n && strncmp(s->path, from, n) == 0) return s->path + n;
    return ctx_source_name(m->ctx, file);
}

/* A list of source lines, sorted by file, as "a.gnn:3,7 b.gnn:1". full_paths: with the paths that
 * were given to the compiler, otherwise short ones. */
static const char *lines_text(const Module *m, Arena *a, const Lines *l, bool full_paths) {
    StrBuf b = sb_new(a);
    sb_puts(&b, "");
    for (int i = 0; i < l->n; i++) {
        uint32_t file = l->v[i].file;
        const char *path = full_paths ? ctx_source_name(m->ctx, file) : cg_path_short(m, file);
        if (i > 0 && l->v[i - 1].file == file)
            sb_printf(&b, ",%u", l->v[i].line);
        else
            sb_printf(&b, "%s%s:%u", b.n ? " " : "", path, l->v[i].line);
    }
    return b.s;
}

/* The source lines of all ops that the step computes. at_user: the user's lines that call them,
 * where they are a library's. */
static Lines step_source_lines(const Ctx *c, Arena *a, const PStep *s, bool at_user) {
    Lines l = {0};
    for (int i = -1; i < (s->kernel ? s->kernel->computes.n : 0); i++) {
        Span at = i < 0 ? s->span : s->kernel->computes.v[i]->span;
        if ((int)at.file < c->sources.n) add_line(a, &l, at_user ? ctx_user_span(c, at) : at);
    }
    return l;
}

/* The lines of the model and of library layers that the step computes, as text. */
const char *cg_step_lines(const Module *m, Arena *a, const PStep *s, bool full_paths) {
    Lines l = step_source_lines(m->ctx, a, s, false);
    return lines_text(m, a, &l, full_paths);
}

/* The user's lines that the step computes, or that call the library layers which it computes, as
 * text. */
const char *cg_step_site(const Module *m, Arena *a, const PStep *s) {
    Lines l = step_source_lines(m->ctx, a, s, true);
    return lines_text(m, a, &l, false);
}

/* The user's lines, followed by the names of the layers that they call: "gcn.gnn:13 (in conv1)". */
const char *cg_step_origin(const Module *m, Arena *a, const PStep *s) {
    VEC(const char *) names = {0};
    StrBuf b = sb_new(a);
    sb_puts(&b, cg_step_site(m, a, s));
    for (int i = -1; i < (s->kernel ? s->kernel->computes.n : 0); i++) {
        const char *name = i < 0 ? s->span.site_name : s->kernel->computes.v[i]->span.site_name;
        bool is_known = !name;
        for (int k = 0; k < names.n; k++) is_known = is_known || !strcmp(names.v[k], name);
        if (is_known) continue;
        sb_printf(&b, "%s%s", names.n ? ", " : " (in ", name);
        vec_push(a, &names, name);
    }
    if (names.n) sb_puts(&b, ")");
    return b.s;
}
