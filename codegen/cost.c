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
    uint64_t replaces;  /* loops whose place it takes */
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
/* The bit of the loop at depth d. */
static uint64_t bit(int d) {
    return (uint64_t)1 << (d < MAX_DEPTH ? d : MAX_DEPTH - 1);
}

/* The bits of all open loops. */
static uint64_t all_loops(const CostWalk *w) {
    return w->depth >= MAX_DEPTH ? ~(uint64_t)0 : bit(w->depth) - 1;
}

/* The set without loops that another loop of it replaces. */
static uint64_t without_replaced(const CostWalk *w, uint64_t loops) {
    uint64_t kept = loops;
    for (int d = 0; d < w->depth; d++)
        if (loops & bit(d)) kept &= ~w->loops[d].replaces;
    return kept;
}

/* The number of iterations of a set of loops together. */
static const Expr *iteration_count(const CostWalk *w, uint64_t loops) {
    const Expr *e = expr_const(w->a, 1);
    loops = without_replaced(w, loops);
    for (int d = 0; d < w->depth; d++)
        if (loops & bit(d)) e = expr_mul(w->a, e, w->loops[d].extent);
    return e;
}

/* The depth of the open loop with variable r; -1: there is none. */
static int loop_of(const CostWalk *w, const LReg *r) {
    for (int d = w->depth - 1; d >= 0; d--)
        if (w->loops[d].var == r) return d;
    return -1;
}

/* Whether another open loop replaces the one at depth d. */
static bool is_replaced(const CostWalk *w, int d) {
    for (int k = 0; k < w->depth; k++)
        if (w->loops[k].replaces & bit(d)) return true;
    return false;
}

/* The number of iterations of a loop. One over the entries of a row's segment has, over all rows,
 * an iteration for each entry of the map. */
static LoopCost loop_cost(const CostWalk *w, const LStmt *f) {
    LoopCost n = {.var = f->var, .extent = f->extent};
    if (f->range == LR_EXTENT) return n;
    int d = loop_of(w, f->at);
    if (f->range == LR_CHUNK) {
        if (d >= 0) n.replaces = bit(d) | w->loops[d].replaces;
        return n;
    }
    const Map *m = n.segment = f->ptr->map;
    bool whole = d >= 0 && !is_replaced(w, d) && expr_eq(w->loops[d].extent, m->to->size);
    n.extent = whole ? m->from->size : expr_ceildiv(w->a, m->from->size, m->to->size);
    if (whole) n.replaces = bit(d) | w->loops[d].replaces;
    return n;
}

/* ---- what an index depends on ------------------------------------------------------------ */
/* The union of two dependences. */
static IndexDep join(IndexDep x, IndexDep y) {
    x.loops |= y.loops;
    x.data_dependent |= y.data_dependent;
    if (!x.index_buf) x.index_buf = y.index_buf;
    return x;
}

/* The dependence of what a local array holds. */
static IndexDep local_dep(const CostWalk *w, const LBuf *b) {
    const IndexDep *d = strmap_get(&w->local_deps, b->name);
    return d ? *d : (IndexDep){0};
}

/* Adds to it. */
static void add_to_local(CostWalk *w, const LBuf *b, IndexDep d) {
    IndexDep *at = strmap_get(&w->local_deps, b->name);
    if (!at) strmap_put(w->a, &w->local_deps, b->name, at = NEW(w->a, IndexDep));
    *at = join(*at, d);
}

/* The dependence of the access's index. */
static IndexDep index_dep(const CostWalk *w, const LStmt *s) {
    IndexDep d = {0};
    for (int i = 0; i < s->buf->rank; i++) d = join(d, w->reg[s->idx[i]->id]);
    return d;
}

/* How many different elements the access reaches. A dimension indexed by several loops together
 * (tile and position in it) counts with its extent. */
static const Expr *access_count(const CostWalk *w, const LStmt *s, IndexDep all) {
    uint64_t loops = without_replaced(w, all.loops & all_loops(w));
    const Expr *e = expr_const(w->a, 1);
    for (int i = 0; i < s->buf->rank && !all.data_dependent; i++) {
        uint64_t here = without_replaced(w, w->reg[s->idx[i]->id].loops & all_loops(w));
        uint64_t others = 0;
        for (int k = 0; k < s->buf->rank; k++)
            if (k != i) others |= w->reg[s->idx[k]->id].loops;
        bool several = here & (here - 1);
        if (!several || (here & others) || !s->buf->dim[i]) continue;
        e = expr_mul(w->a, e, s->buf->dim[i]);
        loops &= ~here;
    }
    return expr_mul(w->a, e, iteration_count(w, loops));
}

/* Records an access, once for each buffer, index buffer and count. by: the buffer whose contents
 * are the index; NULL = only loop variables are. */
static void record_access(CostWalk *w, const LBuf *b, const LBuf *by, const Expr *count, bool write,
                          Span at) {
    for (int i = 0; i < w->accesses.n; i++) {
        const Access *x = &w->accesses.v[i];
        if (x->buf == b && x->index_buf == by && x->write == write && expr_eq(x->count, count))
            return;
    }
    Access x = {b, by, count, write, at};
    vec_push(w->a, &w->accesses, x);
}

/* ---- statements ---------------------------------------------------------------------------- */
/* Whether the statement counts as a floating-point operation. */
static bool is_arithmetic(const LStmt *s) {
    bool counts = s->fn == L_FN_OP && op_cost(s->op) > 0 && s->op != OP_SELECT;
    return counts && dtype_is_float(s->dst->dt);
}

/* Adds a cost to a source line. Costs of the same line, inlined at the same call of the user, are
 * one. */
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

/* Counts an operation once for each iteration of the open loops. */
static void add_flops(CostWalk *w, Span at) {
    const Expr *n = iteration_count(w, all_loops(w));
    w->flops = expr_add(w->a, w->flops, n);
    if (w->lines) add_to_line(w->a, w->lines, at, expr_const(w->a, 0), n);
}

/* Visits an L_LET. */
static void visit_let(CostWalk *w, const LStmt *s) {
    IndexDep d = {0};
    for (int i = 0; i < s->n_arg; i++) d = join(d, w->reg[s->arg[i]->id]);
    w->reg[s->dst->id] = d;
    if (is_arithmetic(s)) add_flops(w, s->span);
}

/* Visits a load: the loaded register depends on data. */
static void visit_load(CostWalk *w, const LStmt *s) {
    IndexDep d = index_dep(w, s);
    if (s->buf->kind == LB_LOCAL) {
        w->reg[s->dst->id] = join(local_dep(w, s->buf), d);
        return;
    }
    record_access(w, s->buf, d.index_buf, access_count(w, s, d), false, s->span);
    w->reg[s->dst->id] = (IndexDep){d.loops, true, s->buf};
}

/* Visits a store or accumulation. */
static void visit_store(CostWalk *w, const LStmt *s) {
    IndexDep d = index_dep(w, s);
    if (s->buf->kind == LB_LOCAL)
        add_to_local(w, s->buf, join(w->reg[s->src->id], d));
    else
        record_access(w, s->buf, d.index_buf, access_count(w, s, d), true, s->span);
    if (s->kind == L_ACC && dtype_is_float(s->src->dt)) add_flops(w, s->span);
}

static void visit_list(CostWalk *w, const LStmt *s);

/* Counts the reads of the segment bounds of a loop over entries. */
static void read_segment_bounds(CostWalk *w, const LStmt *f) {
    IndexDep at = w->reg[f->at->id];
    const Expr *rows = iteration_count(w, at.loops & all_loops(w));
    record_access(w, f->ptr, at.index_buf, expr_add(w->a, rows, expr_const(w->a, 1)), false,
                  f->span);
}

/* Visits a loop. */
static void visit_loop(CostWalk *w, const LStmt *f) {
    if (w->depth == MAX_DEPTH) return; /* deeper than any model's kernel: not counted */
    if (f->range == LR_SEGMENT) read_segment_bounds(w, f);
    w->loops[w->depth] = loop_cost(w, f);
    IndexDep d = {.loops = bit(w->depth)};
    if (f->at) d = join(d, w->reg[f->at->id]);
    d.loops |= w->loops[w->depth].replaces;
    w->reg[f->var->id] = d;
    w->depth++;
    visit_list(w, f->body);
    w->depth--;
}

/* Visits a list of statements. A loop that has a second version for other sizes counts once. */
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

/* The bytes of so many elements. */
static const Expr *bytes_of(Arena *a, const Expr *count, DType dt) {
    return expr_mul(a, count, expr_const(a, dtype_bytes(dt)));
}

/* The cost of a kernel; lines: also by source line, if not NULL. */
static StepCost kernel_cost(Arena *a, const LKernel *k, CostLines *lines) {
    CostWalk w = {.a = a, .lines = lines, .flops = expr_const(a, 0)};
    w.reg = NEWN(a, IndexDep, (size_t)k->n_regs + 1);
    visit_list(&w, k->body);
    for (int i = 0; i < k->stages.n; i++) {
        w.reg = NEWN(a, IndexDep, (size_t)k->stages.v[i]->n_regs + 1);
        visit_list(&w, k->stages.v[i]->body);
    }
    const Expr *none = expr_const(a, 0);
    StepCost c = {none, none, none, w.flops};
    for (int i = 0; i < w.accesses.n; i++) {
        const Access *x = &w.accesses.v[i];
        const Expr *n = bytes_of(a, x->count, x->buf->dt);
        if (x->write)
            c.written = expr_add(a, c.written, n);
        else
            c.read = expr_add(a, c.read, n);
        if (!x->write && x->index_buf) c.gathered = expr_add(a, c.gathered, n);
        if (lines) add_to_line(a, lines, x->at, n, none);
    }
    return c;
}

/* ---- library calls ------------------------------------------------------------------------ */
/* Whether all matrices of the batch are one. */
static bool is_broadcast(const Expr *batch_stride) {
    int64_t c;
    return expr_is_const(batch_stride, &c) && c == 0;
}

/* The bytes of an operand of a matrix product. */
static const Expr *matrix_bytes(Arena *a, const PGemm *g, const PBuf *b, const Expr *rows,
                                const Expr *cols, const Expr *batch_stride) {
    const Expr *n = bytes_of(a, expr_mul(a, rows, cols), b->dt);
    return is_broadcast(batch_stride) ? n : expr_mul(a, g->batch, n);
}

/* The cost of a matrix product. */
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

/* The cost of a step that reads its first n buffers and writes the one at `out` (-1: none). */
static StepCost buffers_cost(Arena *a, const Plan *p, const PStep *s, int n, int out) {
    const Expr *none = expr_const(a, 0);
    StepCost c = {none, none, none, none};
    for (int i = 0; i < n && i < s->n_bufs; i++) {
        const PBuf *b = p->bufs.v[s->bufs[i]];
        c.read = expr_add(a, c.read, bytes_of(a, b->count, b->dt));
    }
    if (out >= 0) {
        const PBuf *b = p->bufs.v[s->bufs[out]];
        c.written = bytes_of(a, b->count, b->dt);
    }
    return c;
}

/* The cost of a call of a C function: its arguments and results; what it computes is unknown. */
static StepCost call_cost(Arena *a, const Plan *p, const PStep *s) {
    StepCost c = buffers_cost(a, p, s, s->n_in, -1);
    for (int i = s->n_in; i < s->n_bufs; i++) {
        const PBuf *b = p->bufs.v[s->bufs[i]];
        c.written = expr_add(a, c.written, bytes_of(a, b->count, b->dt));
    }
    return c;
}

StepCost cg_step_cost(Arena *a, const Plan *p, const PStep *s) {
    switch (s->kind) {
    case PS_KERNEL:
        return kernel_cost(a, s->kernel, NULL);
    case PS_GEMM:
        return gemm_cost(a, p, s);
    case PS_RANK:
        return buffers_cost(a, p, s, 2, 2);
    case PS_COPY:
        return buffers_cost(a, p, s, 1, 1);
    case PS_CALL:
        return call_cost(a, p, s);
    default:
        return buffers_cost(a, p, s, s->n_bufs, -1);
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
const char *cg_step_name(const PStep *s) {
    if (s->kind == PS_CALL) return cg_symbol(s->op);
    return s->kernel ? s->kernel->name : text_PStepKind.word[s->kind];
}

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

typedef struct {
    uint32_t file, line;
} Line;
typedef VEC(Line) Lines;

/* Adds a source line to a sorted list, once. */
static void add_line(Arena *a, Lines *l, Span at) {
    if (!at.line) return;
    int i = 0;
    for (; i < l->n; i++)
        if (l->v[i].file == at.file && l->v[i].line == at.line) return;
    Line x = {at.file, at.line};
    vec_push(a, l, x);
    for (i = l->n - 1; i > 0; i--) { /* sorted by file, then line */
        const Line *p = &l->v[i - 1];
        if (p->file < x.file || (p->file == x.file && p->line < x.line)) break;
        l->v[i] = *p;
    }
    l->v[i] = x;
}

/* The path of a source as seen from the model's folder; a library file is in "layers". */
const char *cg_path_short(const Module *m, uint32_t file) {
    const Source *s = &m->ctx->sources.v[file];
    const char *from = m->source_path ? m->source_path : "", *slash = strrchr(from, '/');
    size_t n = slash ? (size_t)(slash - from) + 1 : 0;
    if (n && strncmp(s->path, from, n) == 0) return s->path + n;
    const char *last = strrchr(s->path, '/');
    return s->library && last ? arena_printf(m->a, "layers%s", last) : s->path;
}

/* The lines as "a.gnn:3,7 b.gnn:1"; whole: with full paths. */
static const char *lines_text(const Module *m, Arena *a, const Lines *l, bool whole) {
    StrBuf b = sb_new(a);
    sb_puts(&b, "");
    for (int i = 0; i < l->n; i++) {
        uint32_t file = l->v[i].file;
        const char *path = whole ? m->ctx->sources.v[file].path : cg_path_short(m, file);
        if (i > 0 && l->v[i - 1].file == file)
            sb_printf(&b, ",%u", l->v[i].line);
        else
            sb_printf(&b, "%s%s:%u", b.n ? " " : "", path, l->v[i].line);
    }
    return b.s;
}

/* The source lines of everything that the step computes; user: the user's lines that call these. */
static Lines lines_of(const Ctx *c, Arena *a, const PStep *s, bool user) {
    Lines l = {0};
    for (int i = -1; i < (s->kernel ? s->kernel->computes.n : 0); i++) {
        Span at = i < 0 ? s->span : s->kernel->computes.v[i]->span;
        if ((int)at.file < c->sources.n) add_line(a, &l, user ? ctx_user_span(c, at) : at);
    }
    return l;
}

const char *cg_step_lines(const Module *m, Arena *a, const PStep *s, bool whole) {
    Lines l = lines_of(m->ctx, a, s, false);
    return lines_text(m, a, &l, whole);
}

const char *cg_step_site(const Module *m, Arena *a, const PStep *s) {
    Lines l = lines_of(m->ctx, a, s, true);
    return lines_text(m, a, &l, false);
}

const char *cg_step_origin(const Module *m, Arena *a, const PStep *s) {
    VEC(const char *) of = {0};
    StrBuf b = sb_new(a);
    sb_puts(&b, cg_step_site(m, a, s));
    for (int i = -1; i < (s->kernel ? s->kernel->computes.n : 0); i++) {
        const char *name = i < 0 ? s->span.site_name : s->kernel->computes.v[i]->span.site_name;
        bool said = !name;
        for (int k = 0; k < of.n; k++) said = said || !strcmp(of.v[k], name);
        if (said) continue;
        sb_printf(&b, "%s%s", of.n ? ", " : " (in ", name);
        vec_push(a, &of, name);
    }
    if (of.n) sb_puts(&b, ")");
    return b.s;
}
