/* Sparse products: which sums over edges a device's library can make (cuSPARSE's SpMM).
 *
 *     h = sum(x[e.src] * w, over = e.dst)        H = A X,  A in CSR: the map's segments
 *
 * A kernel is such a product if it gathers rows of one dense matrix, multiplies each by at most one
 * weight per entry, sums them and does nothing else.  That is what it computes, not which layer.
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
#include "codegen/plan_passes/plan_order.h"
#include "codegen/plan_passes/plan_pass.h"
#include "passes/rewrite.h"

#include <string.h>

/* ---- in the graph ------------------------------------------------------------------------- */
/* A sparse product in the graph: a segment sum of rows of `dense`, each times a weight. */
typedef struct {
    const LKernel *k;                   /* that computes it; NULL = it is to be formed */
    const Op *segment, *dense, *weight; /* weight: NULL = none */
    const Map *idx;                     /* of the rows that entries gather, .. */
    const Map *weight_idx;              /* .. of their weights; NULL = each entry has its own */
} SparseProduct;

/* Whether op is computed in the product's kernel, or would be once that is formed. */
static bool is_inline(const SparseProduct *p, const Op *op) {
    return p->k ? plan_computes(p->k, op) : op->fused;
}

/* Whether op gathers, for each entry of the sum, a value through another map of the entries than
 * the one that the sum is over. */
static bool is_lookup(const SparseProduct *p, const Op *op) {
    return op->kind == OP_GATHER && is_inline(p, op) && op->map->from == p->segment->map->from &&
           op->map != p->segment->map && !map_is_partial(op->map);
}

/* Whether op, computed in the product's kernel, widens values of 16 bits. */
static bool is_widening(const SparseProduct *p, const Op *op) {
    return op->kind == OP_CAST && is_inline(p, op) && dtype_bytes(op->in[0]->type.dt) == 2;
}

/* Whether op is a product of one gathered row of a dense matrix and at most one weight per entry.
 * It records in p what they are. */
static bool match_factors(SparseProduct *p, const Op *op) {
    if (is_widening(p, op)) return match_factors(p, op->in[0]);
    if (op->kind == OP_MUL && is_inline(p, op))
        return match_factors(p, op->in[0]) && match_factors(p, op->in[1]);
    bool lookup = is_lookup(p, op);
    if (lookup && op->in[0]->type.rank == 2 && !p->dense) {
        p->dense = op->in[0];
        p->idx = op->map;
        return p->dense->type.dim[1] == p->segment->type.dim[1];
    }
    bool at_entries = op->type.rank == 1 && op->type.dim[0] == p->segment->map->from;
    if (!at_entries || p->weight || (is_inline(p, op) && !lookup)) return false;
    p->weight = lookup ? op->in[0] : op;
    p->weight_idx = lookup ? op->map : NULL;
    return true;
}

/* Whether the segment sum of p is a sparse product: it adds up, for each row, weighted rows of a
 * dense matrix. It records the operands in p. */
static bool match_product(SparseProduct *p) {
    const Op *op = p->segment;
    return op->kind == OP_SEGMENT && op->red == RED_SUM && op->type.rank == 2 &&
           op->type.dim[0] == op->map->to && match_factors(p, op->in[0]) && p->dense;
}

/* Whether the operands and the result of the product are f32. */
static bool is_f32(const SparseProduct *p) {
    return p->dense->type.dt == DT_F32 && p->segment->type.dt == DT_F32 &&
           (!p->weight || p->weight->type.dt == DT_F32);
}

/* Whether the value of op is known when data have been loaded and constant from then on; what
 * @encode saves is not. */
static bool is_constant_after_load(const Module *m, const Op *op) {
    const Func *load = op->kind == OP_SAVED ? func_of(m, PHASE_LOAD) : NULL;
    return op->kind == OP_DATA || (load && func_output(load, op->name));
}

/* Whether the product's weights are in the order of the library's entries, or known so early that a
 * copy in that order can be made. */
static bool has_weights_in_order(const Module *m, const SparseProduct *p) {
    bool in_order = !p->weight || (!p->weight_idx && map_is_sorted(p->segment->map));
    return in_order || is_constant_after_load(m, p->weight);
}

/* Whether the map's edges are sampled in this phase: batches have sizes of their own, and what the
 * library prepares is for one size. */
static bool is_sampled(const Module *m, Phase phase, const Map *map) {
    return module_runs_on_batches(m, phase) || space_is_drawn(map->from);
}

/* Whether rows of type t, of rank 2, are one number each. */
static bool is_one_column(const Type *t) {
    int64_t width;
    return expr_is_const(t->dim[1]->size, &width) && width == 1;
}

/* ---- where to cut -------------------------------------------------------------------------- */
/* Whether op is computed only under a condition that saves much work. */
static bool is_guarded(const Lower *lo, const Op *op) {
    const Guard *g = lo->guard[op->id];
    return g && g->top->worth_test;
}

/* Whether the segment sum op is to have a kernel to itself, so that the library can compute it
 * (--spmm=cusparse). *dense: its dense matrix, which must then be in memory. */
bool cg_wants_spmm(const Lower *lo, const Op *op, const Op **dense) {
    SparseProduct p = {.segment = op};
    const Phase phase = lo->p->phases.v[lo->phase]->func->phase;
    if (lo->p->spmm != SPMM_LIBRARY || phase == PHASE_LOAD || !match_product(&p)) return false;
    if (is_sampled(lo->p->m, phase, op->map) || is_guarded(lo, op)) return false;
    if (is_one_column(&op->type) || !is_f32(&p) || !has_weights_in_order(lo->p->m, &p))
        return false;
    *dense = p.dense;
    return true;
}

/* ---- in a plan ------------------------------------------------------------------------------- */
/* What a kernel with a sparse product stores. */
typedef struct {
    int n_sums;         /* over the product's entries */
    int n_stored;       /* of them: as they are */
    bool computes_more; /* it stores other values, too */
} Sums;

/* Whether op is a sum over the entries of the product p. */
static bool is_sum_of(const SparseProduct *p, const Op *op) {
    return op->kind == OP_SEGMENT && op->red == RED_SUM && op->map == p->segment->map;
}

/* Counts what the product's kernel sums over the product's entries and what it stores. */
static Sums count_sums(const SparseProduct *p) {
    Sums n = {0};
    for (int i = 0; i < p->k->computes.n; i++) n.n_sums += is_sum_of(p, p->k->computes.v[i]);
    for (int i = 0; i < p->k->bufs.n; i++) {
        const LBuf *b = p->k->bufs.v[i];
        if (!b->written) continue;
        bool sum = b->value && is_sum_of(p, b->value);
        n.n_stored += sum;
        n.computes_more |= !sum;
    }
    return n;
}

/* ---- both sides ------------------------------------------------------------------------------ */
/* e times a number. */
static const Expr *scaled(Arena *a, const Expr *e, int64_t by) {
    return expr_mul(a, e, expr_const(a, by));
}

/* The bytes that the library would move, where the kernel moves x->own_bytes. For each sum the
 * library reads bounds of 4 bytes, of which the kernel reads one of 8, and for each entry its row
 * and a weight, which the kernel reads once. Sums that the kernel has in registers are written and
 * read again; those that it stores are read by the rest. */
static const Expr *library_bytes(Arena *a, const PSpmm *x, Sums s) {
    bool looked_up = x->perm >= 0 && x->perm != x->idx;
    int64_t of_entry = 4 + (x->weight >= 0 ? 4 : 0) + (looked_up ? 4 : 0);
    int64_t of_row = 8 * (s.n_sums - s.n_stored) + (s.computes_more ? 4 * s.n_stored : 0);
    const Expr *bounds = expr_add(a, x->rows, expr_const(a, 1));
    const Expr *e = expr_add(a, x->own_bytes, scaled(a, x->entries, 8 * s.n_sums - of_entry));
    e = expr_add(a, e, scaled(a, bounds, 4 * s.n_sums - 8));
    return expr_add(a, e, scaled(a, expr_mul(a, x->rows, x->width), of_row));
}

/* Whether the buffer is constant after data are loaded, so that the library's copy of it is made
 * once. */
static bool is_known_early(const Plan *p, int buf) {
    const PBuf *b = p->bufs.v[buf];
    bool saved = b->kind == PB_SAVED && p->phases.v[b->phase]->func->phase == PHASE_LOAD;
    return saved || b->kind == PB_DATA;
}

/* Why the step's own kernel must compute the sparse product m; NULL: the library may. x, sums: what
 * is known of it. */
static const char *own_reason(const Plan *p, const PPhase *ph, const PStep *s,
                              const SparseProduct *m, const PSpmm *x, Sums sums) {
    if (sums.n_sums > 1) return "it makes several sums over these entries";
    if (sums.computes_more || !sums.n_stored) return "its rows go on in the same kernel";
    if (!is_f32(m)) return "its values are of 16 bits, and the library's weights would be";
    if (is_sampled(p->m, ph->func->phase, m->segment->map))
        return "batches have sizes of their own";
    if (s->pred >= 0) return "it is not always wanted";
    if (is_one_column(&m->segment->type)) return "its rows are one number";
    if (x->perm >= 0 && !is_known_early(p, x->weight))
        return "its weights change from step to step, and stand in another order";
    if (!plan_is_as_computed(p->m->a, s)) return "its loops are not what its facts say";
    return NULL;
}

/* The buffers and sizes of the product p of step s, as the library takes them. Buffers that the
 * kernel does not have are -1. */
static PSpmm describe_product(const PStep *s, const SparseProduct *p) {
    const LKernel *k = p->k;
    Map *map = p->segment->map;
    const Map *by = map_is_sorted(map) ? NULL : map; /* whose order entries are in */
    const LBuf *perm = p->weight_idx ? plan_map_argument(k, p->weight_idx, LB_MAP_IDX, by)
                                     : plan_map_argument(k, map, LB_MAP_PERM, NULL);
    const LBuf *out = NULL;
    for (int i = 0; i < k->bufs.n && !out; i++)
        if (k->bufs.v[i]->written && k->bufs.v[i]->value == p->segment) out = k->bufs.v[i];
    return (PSpmm){.index = -1,
                   .ptr = plan_argument_buf(s, plan_map_argument(k, map, LB_MAP_PTR, NULL)),
                   .idx = plan_argument_buf(s, plan_map_argument(k, p->idx, LB_MAP_IDX, by)),
                   .perm = p->weight ? plan_argument_buf(s, perm) : -1,
                   .weight = p->weight ? plan_argument_buf(s, plan_argument(k, p->weight)) : -1,
                   .dense = plan_argument_buf(s, plan_argument(k, p->dense)),
                   .out = plan_argument_buf(s, out),
                   .rows = map->to->size,
                   .cols = p->dense->type.dim[0]->size,
                   .entries = map->from->size,
                   .width = p->segment->type.dim[1]->size};
}

/* Whether the product p can be described to the library, as *x: the kernel of step s has a row for
 * each row of the sum, and all buffers that are needed. */
static bool describe(const PStep *s, const SparseProduct *p, PSpmm *x) {
    if (!s->extent || !expr_eq(s->extent, p->segment->map->to->size)) return false;
    *x = describe_product(s, p);
    bool looked_up = p->weight_idx || !map_is_sorted(p->segment->map);
    return x->ptr >= 0 && x->idx >= 0 && x->dense >= 0 &&
           (!p->weight || (x->weight >= 0 && (!looked_up || x->perm >= 0)));
}

/* Finds the first sparse product that the kernel of step s computes, as *p and its buffers and
 * sizes as *x. False: there is none. */
static bool find_product(const PStep *s, SparseProduct *p, PSpmm *x) {
    for (int i = 0; i < s->kernel->computes.n; i++) {
        *p = (SparseProduct){.k = s->kernel, .segment = s->kernel->computes.v[i]};
        if (match_product(p) && describe(s, p, x)) return true;
    }
    return false;
}

/* Decides whether the library may compute the sparse product of step s, if there is one, and
 * remarks on that. *n: how many it may so far. */
static void choose_spmm(PassCtx *pc, const Plan *p, const PPhase *ph, PStep *s, int *n) {
    SparseProduct m;
    PSpmm found;
    if (!find_product(s, &m, &found)) return;
    PSpmm *x = s->spmm = NEW(pc->a, PSpmm);
    *x = found;
    StepCost cost = cg_step_cost(pc->a, p, s);
    const Sums sums = count_sums(&m);
    x->own_bytes = expr_add(pc->a, cost.read, cost.written);
    x->has_rest = sums.computes_more;
    x->library_bytes = library_bytes(pc->a, x, sums);
    x->why_not = own_reason(p, ph, s, &m, x, sums);
    if (x->why_not)
        x->out = -1;
    else
        x->index = (*n)++;
    (x->why_not ? pass_refusal : pass_remark)(pc, s->span, "sparse-products", "'%s' %s%s", s->note,
                                              x->why_not ? "stays a kernel: "
                                                         : "is a sparse product of the library",
                                              x->why_not ? x->why_not : "");
}

/* Looks for sparse products in all kernels of the plan, unless --spmm=own. @load runs once, so it
 * is left out. */
static bool run(PassCtx *pc, Plan *p) {
    int n = 0;
    for (int i = 0; i < p->phases.n && p->spmm != SPMM_OWN; i++) {
        PPhase *ph = p->phases.v[i];
        if (ph->func->phase == PHASE_LOAD) continue; /* it runs once */
        for (int k = 0; k < ph->steps.n; k++) {
            ph->steps.v[k]->spmm = NULL;
            if (ph->steps.v[k]->kind == PS_KERNEL) choose_spmm(pc, p, ph, ph->steps.v[k], &n);
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

/* The number of sparse products of the plan that the library may compute. */
int plan_spmm_count(const Plan *p) {
    int n = 0;
    for (int i = 0; i < p->phases.n; i++)
        for (int k = 0; k < p->phases.v[i]->steps.n; k++) {
            const PSpmm *m = p->phases.v[i]->steps.v[k]->spmm;
            n += m && m->index >= 0;
        }
    return n;
}
