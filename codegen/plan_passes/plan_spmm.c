/* Sparse products: which sums over edges a device's library can make (cuSPARSE's SpMM).
 *
 *     h = sum(x[e.src] * w, over = e.dst)        H = A X,  A in CSR: the map's segments and their
 * entries
 *
 * A kernel is such a product if it gathers rows of one dense matrix, multiplies each by at most one
 * weight per entry, sums them and does nothing else.  That is read off its loops, not off layers.
 * It stays in the plan and is what runs on the host, for batches, and where the library is missing.
 *
 * What fusion adds to a sum (a bias, an activation, a second sum over the same entries) the library
 * has no place for.  --spmm=cusparse cuts the graph there, so that the product stands alone and the
 * rest reads it; auto takes the cut as it is, because it writes and reads the rows once more.
 *
 * The library's weights are in the order of its entries.  Where a kernel looks them up (through a
 * permutation, or as a column of another relation or of nodes), a copy in that order is made when
 * data are loaded, so they must be known by then. */
#include "codegen/cost.h"
#include "codegen/lower/lower.h"
#include "codegen/plan_passes/plan_pass.h"
#include "passes/rewrite.h"

#include <string.h>

/* ---- in the graph: where to cut -------------------------------------------------------------- */
/* A sparse product in the graph. */
typedef struct {
    const Module *m;
    const Op *segment, *dense, *weight;
} SparseProduct;

/* Whether op is known when data have been loaded and constant from then on; what @encode saves is
 * not. */
static bool is_constant_after_load(const Module *m, const Op *op) {
    const Func *load = op->kind == OP_SAVED ? func_of(m, PHASE_LOAD) : NULL;
    return op->kind == OP_DATA || (load && func_output(load, op->name));
}

/* Matches the factors of the summed term: a gathered dense row and at most one weight. */
static bool match_factors(SparseProduct *p, const Op *op) {
    if (op->kind == OP_MUL && op->fused)
        return match_factors(p, op->in[0]) && match_factors(p, op->in[1]);
    bool gathers = op->kind == OP_GATHER && op->fused && op->map->from == p->segment->map->from;
    if (gathers && op->in[0]->type.rank == 2 && op->type.dt == DT_F32 && !p->dense) {
        p->dense = op->in[0];
        return op->map != p->segment->map && !map_is_partial(op->map);
    }
    bool at_entries = op->type.rank == 1 && op->type.dim[0] == p->segment->map->from;
    if (!at_entries || op->type.dt != DT_F32 || p->weight) return false;
    p->weight = op;
    if (op->kind == OP_GATHER && op->fused)
        return is_constant_after_load(p->m, op->in[0]) && op->map != p->segment->map &&
               !map_is_partial(op->map);
    return is_constant_after_load(p->m, op) || (!op->fused && map_is_sorted(p->segment->map));
}

/* Whether the map's edges are sampled: batches have their own sizes, and what the library prepares
 * is for one size. */
static bool is_sampled(const Module *m, Phase phase, const Map *map) {
    return module_runs_on_batches(m, phase) || space_is_drawn(map->from);
}

/* Whether op is computed under a condition. */
static bool is_guarded(const Lower *lo, const Op *op) {
    const Guard *g = lo->guard[op->id];
    return g && g->top->heavy;
}

/* Whether the segment sum is to be the library's product; *dense: its dense matrix. */
bool cg_wants_spmm(const Lower *lo, const Op *op, const Op **dense) {
    int64_t width;
    SparseProduct p = {.m = lo->p->m, .segment = op};
    if (lo->p->spmm != SPMM_LIBRARY || op->kind != OP_SEGMENT || op->red != RED_SUM) return false;
    if (lo->p->phases.v[lo->phase]->func->phase == PHASE_LOAD) return false;
    if (is_sampled(lo->p->m, lo->p->phases.v[lo->phase]->func->phase, op->map)) return false;
    if (is_guarded(lo, op)) return false;
    if (op->type.rank != 2 || op->type.dt != DT_F32) return false;
    if (expr_is_const(op->type.dim[1]->size, &width) && width == 1) return false;
    if (!match_factors(&p, op->in[0]) || !p.dense) return false;
    *dense = p.dense;
    return true;
}

/* ---- in a kernel -------- */
/* A sparse product in a kernel. */
typedef struct {
    const LKernel *k;
    const LStmt *rows, *entries, *columns; /* loops, from the outside */
    const LStmt *accumulation;             /* what is added, and where */
    const LStmt *dense, *weight;           /* loads of its factors, .. */
    const LStmt *idx, *perm;               /* .. and of their places */
    const LStmt *store;
    int n_sums;
} KernelMatch;

/* The register before casts. */
static const LReg *skip_casts(const LReg *r) {
    const LStmt *d = r->def;
    bool cast = d && d->kind == L_LET && d->fn == L_FN_OP && d->op == OP_CAST;
    return cast ? skip_casts(d->arg[0]) : r;
}

/* The load that defines r, possibly through a cast. */
static const LStmt *load_of(const LReg *r) {
    const LStmt *d = r->def;
    bool cast = d && d->kind == L_LET && d->fn == L_FN_OP && d->op == OP_CAST;
    if (cast) d = d->arg[0]->def;
    return d && d->kind == L_LOAD ? d : NULL;
}

/* The load from a map's array, at the variable of the loop over entries, that defines r; or NULL.
 */
static const LStmt *entry_load(const KernelMatch *m, const LReg *r, LBufKind part) {
    const LStmt *d = skip_casts(r)->def;
    bool load = d && d->kind == L_LOAD && d->buf->kind == part;
    return load && skip_casts(d->idx[0]) == m->entries->var ? d : NULL;
}

/* Matches a factor of the term in a kernel. */
static bool match_factor(KernelMatch *m, const LReg *r) {
    const LStmt *d = r->def;
    if (!d) return false;
    if (d->kind == L_LET && d->fn == L_FN_OP && d->op == OP_MUL)
        return match_factor(m, d->arg[0]) && match_factor(m, d->arg[1]);
    d = load_of(r);
    if (!d || d->buf->kind != LB_VALUE || d->buf->written) return false;
    bool row = d->buf->rank == 2 && d->idx[1] == m->columns->var;
    if (row && !m->dense && expr_eq(d->buf->dim[1], m->columns->extent)) {
        m->dense = d;
        return (m->idx = entry_load(m, d->idx[0], LB_MAP_IDX)) != NULL;
    }
    if (d->buf->rank != 1 || m->weight) return false;
    m->weight = d;
    if (skip_casts(d->idx[0]) == m->entries->var) return true;
    m->perm = entry_load(m, d->idx[0], LB_MAP_PERM);
    if (!m->perm) m->perm = entry_load(m, d->idx[0], LB_MAP_IDX);
    return m->perm != NULL;
}

/* The loop that ends the list behind arithmetic only; or NULL. */
static const LStmt *only_loop(const LStmt *s) {
    while (s && loop_is_value(s)) s = s->next;
    return s && s->kind == L_FOR && !s->next ? s : NULL;
}

/* Matches the loop over rows. */
static bool match_rows(KernelMatch *m) {
    m->rows = only_loop(m->k->body);
    return m->rows && m->rows->sched.parallel && m->rows->range == LR_EXTENT;
}

/* How many sums the statements make. */
static int count_sums(const LStmt *s) {
    int n = 0;
    for (; s; s = s->next) n += s->kind == L_ACC && s->red == RED_SUM;
    return n;
}

/* Matches the first sum over the entries of the row. */
static bool match_sum(KernelMatch *m) {
    const LStmt *s = m->rows->body;
    while (s && !(s->kind == L_FOR && s->range == LR_SEGMENT)) s = s->next;
    if (!s || skip_casts(s->at) != m->rows->var) return false;
    m->entries = s;
    m->columns = only_loop(s->body);
    if (!m->columns || m->columns->range != LR_EXTENT) return false;
    for (s = m->columns->body; s && loop_is_value(s);) s = s->next;
    m->accumulation = s;
    m->n_sums = count_sums(m->columns->body);
    bool adds = s && s->kind == L_ACC && s->red == RED_SUM;
    return adds && match_factor(m, s->src) && m->dense;
}

/* Whether the access is to the sum's element at the loop's column. */
static bool is_sum_element(const KernelMatch *m, const LStmt *s, const LStmt *loop) {
    const LBuf *b = s->buf;
    return b == m->accumulation->buf && s->idx[b->rank - 1] == loop->var &&
           (b->rank == 1 || (b->rank == 2 && skip_casts(s->idx[0]) == m->rows->var));
}

/* Whether the loop clears the sum. */
static bool is_clearing_loop(const KernelMatch *m, const LStmt *loop) {
    const LStmt *s = loop->body;
    const LStmt *d = s && s->kind == L_STORE ? s->src->def : NULL;
    bool zero = d && d->kind == L_LET && d->fn == L_FN_CONST && d->imm == 0;
    return zero && !s->next && is_sum_element(m, s, loop) &&
           expr_eq(loop->extent, m->columns->extent);
}

/* Whether the loop stores the sum as it is. */
static bool match_store_loop(KernelMatch *m, const LStmt *loop) {
    const LStmt *s = loop->body;
    while (s && loop_is_value(s)) s = s->next;
    const LStmt *d = s && s->kind == L_STORE ? load_of(s->src) : NULL;
    bool sum = d && is_sum_element(m, d, loop);
    bool whole = sum && !s->next && s->buf->kind == LB_VALUE && s->buf->rank == 2 &&
                 skip_casts(s->idx[0]) == m->rows->var && s->idx[1] == loop->var &&
                 expr_eq(s->buf->dim[1], loop->extent);
    if (whole) m->store = s;
    return whole && expr_eq(loop->extent, m->columns->extent);
}

/* Whether a row does nothing but the sum. */
static bool is_plain(KernelMatch *m) {
    int cleared = 0, stored = 0;
    for (const LStmt *s = m->rows->body; s; s = s->next) {
        bool local = s->kind == L_LOCAL && s->buf == m->accumulation->buf;
        if (s == m->entries || loop_is_value(s) || local) continue;
        if (s->kind != L_FOR || s->range != LR_EXTENT) return false;
        if (!stored && !cleared && is_clearing_loop(m, s))
            cleared++;
        else if (cleared && !stored && match_store_loop(m, s))
            stored++;
        else
            return false;
    }
    return cleared && stored && m->n_sums == 1 && m->accumulation->next == NULL;
}

/* ---- both sides ------------------------------------------------------------------------------ */
/* e times a number. */
static const Expr *scaled(Arena *a, const Expr *e, int64_t by) {
    return expr_mul(a, e, expr_const(a, by));
}

/* What a row does besides its sums. */
typedef struct {
    int n_stored;
    bool computes_more;
} RowRest;

/* Finds what a row does besides its sums. */
static void analyze_rest(const KernelMatch *m, const LStmt *s, RowRest *r) {
    for (; s; s = s->next) {
        if (s->kind == L_FOR && s != m->entries) analyze_rest(m, s->body, r);
        if (s->kind != L_STORE || s->buf->kind != LB_VALUE) continue;
        const LStmt *d = load_of(s->src), *c = s->src->def;
        bool summed = d && loop_count_accesses(m->columns, d->buf);
        bool zero = c && c->kind == L_LET && c->fn == L_FN_CONST;
        r->n_stored += summed;
        r->computes_more |= !summed && !(zero && loop_count_accesses(m->columns, s->buf));
    }
}

/* The bytes that the library would move, where the kernel moves x->own. For each sum: bounds of 4
 * bytes, of which the kernel reads one of 8, and for each entry its row and a weight, which the
 * kernel reads once. Sums that the kernel has in registers are written and read again; those that
 * it stores are read by the rest. */
static const Expr *library_bytes(Arena *a, const PSpmm *x, int n_sums, RowRest r) {
    bool looked_up = x->perm >= 0 && x->perm != x->idx;
    int64_t of_entry = 4 + (x->weight >= 0 ? 4 : 0) + (looked_up ? 4 : 0);
    int64_t of_row = 8 * (n_sums - r.n_stored) + (r.computes_more ? 4 * r.n_stored : 0);
    const Expr *bounds = expr_add(a, x->rows, expr_const(a, 1));
    const Expr *e = expr_add(a, x->own_bytes, scaled(a, x->entries, 8 * n_sums - of_entry));
    e = expr_add(a, e, scaled(a, bounds, 4 * n_sums - 8));
    return expr_add(a, e, scaled(a, expr_mul(a, x->rows, x->width), of_row));
}

/* Whether all values are f32. */
static bool is_f32(const KernelMatch *m) {
    return m->dense->buf->dt == DT_F32 && m->accumulation->src->dt == DT_F32 &&
           (!m->weight || m->weight->buf->dt == DT_F32) &&
           (!m->store || m->store->buf->dt == DT_F32);
}

/* Whether the buffer is constant after data are loaded: the library's copy of it is made once. */
static bool is_known_early(const Plan *p, int buf) {
    const PBuf *b = p->bufs.v[buf];
    bool saved = b->kind == PB_SAVED && p->phases.v[b->phase]->func->phase == PHASE_LOAD;
    return saved || b->kind == PB_DATA;
}

/* Why the kernel stays; NULL: the library may do it. */
static const char *own_reason(const Plan *p, const PPhase *ph, const PStep *s, const KernelMatch *m,
                              const PSpmm *x, bool plain) {
    int64_t width;
    if (m->n_sums > 1) return "several sums share its entries";
    if (!plain) return "its rows go on in the same kernel";
    if (!is_f32(m)) return "its values are of 16 bits, and the library's weights would be";
    if (is_sampled(p->m, ph->func->phase, m->entries->ptr->map))
        return "batches have sizes of their own";
    if (s->pred >= 0) return "it is not always wanted";
    if (expr_is_const(x->width, &width) && width == 1) return "its rows are one number";
    if (x->perm >= 0 && !is_known_early(p, x->weight))
        return "its weights change from step to step, and stand in another order";
    return NULL;
}

/* Recognises a sparse product in a step's kernel. */
static void recognise_spmm(PassCtx *pc, const Plan *p, const PPhase *ph, PStep *s, int *n) {
    KernelMatch m = {.k = s->kernel};
    if (!match_rows(&m) || !match_sum(&m)) return;
    const Map *map = m.entries->ptr->map;
    if (!expr_eq(m.rows->extent, map->to->size)) return;
    bool plain = is_plain(&m);
    StepCost cost = cg_step_cost(pc->a, p, s);
    PSpmm *x = s->spmm = NEW(pc->a, PSpmm);
    *x = (PSpmm){.index = -1,
                 .ptr = s->bufs[m.entries->ptr->id],
                 .idx = s->bufs[m.idx->buf->id],
                 .perm = m.perm ? s->bufs[m.perm->buf->id] : -1,
                 .weight = m.weight ? s->bufs[m.weight->buf->id] : -1,
                 .dense = s->bufs[m.dense->buf->id],
                 .out = m.store ? s->bufs[m.store->buf->id] : -1,
                 .rows = map->to->size,
                 .cols = m.dense->buf->dim[0],
                 .entries = map->from->size,
                 .width = m.columns->extent,
                 .own_bytes = expr_add(pc->a, cost.read, cost.written)};
    RowRest rest = {0};
    analyze_rest(&m, m.rows->body, &rest);
    x->has_rest = rest.computes_more;
    x->library_bytes = library_bytes(pc->a, x, m.n_sums, rest);
    x->why_not = own_reason(p, ph, s, &m, x, plain);
    if (!x->why_not) x->index = (*n)++;
    (x->why_not ? pass_refusal : pass_remark)(pc, s->span, "sparse-products", "'%s' %s%s", s->note,
                                              x->why_not ? "stays a kernel: "
                                                         : "is a sparse product of the library",
                                              x->why_not ? x->why_not : "");
}

static bool run(PassCtx *pc, Plan *p) {
    int n = 0;
    for (int i = 0; i < p->phases.n && p->spmm != SPMM_OWN; i++) {
        PPhase *ph = p->phases.v[i];
        if (ph->func->phase == PHASE_LOAD) continue; /* it runs once */
        for (int k = 0; k < ph->steps.n; k++) {
            ph->steps.v[k]->spmm = NULL;
            if (ph->steps.v[k]->kind == PS_KERNEL) recognise_spmm(pc, p, ph, ph->steps.v[k], &n);
        }
    }
    return true;
}

const Pass plan_pass_sparse_products = {
    .name = "sparse-products",
    .summary = "with --spmm: find the sums over edges that a device's library makes",
    .needs = PLAN_STEPS,
    .gives = PLAN_SPARSE,
    .run_plan = run,
};

/* How many sparse products the library may do. */
int plan_spmm_count(const Plan *p) {
    int n = 0;
    for (int i = 0; i < p->phases.n; i++)
        for (int k = 0; k < p->phases.v[i]->steps.n; k++) {
            const PSpmm *m = p->phases.v[i]->steps.v[k]->spmm;
            n += m && m->index >= 0;
        }
    return n;
}
