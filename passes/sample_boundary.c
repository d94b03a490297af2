/* Sampled boundaries: of the rows of other parts training reads some in each step.
 *
 *     %m = gather src(cites) %z                  %f = input "boundary.cites" : f32[cites]
 *     %s = segment sum dst(cites) %m      ->     %g = gather src(cites) %z
 *                                                %h = mul %g, %f
 *                                                %u = eq %f, 0
 *                                                %m = select %u, 0, %h
 *                                                %s = segment sum dst(cites) %m
 *
 * The runtime gives %f before each step: 1 within a part; else 1 / P where the row of the source
 * was drawn, with probability P, and 0 where it was not (runtime/exec/boundary.c).  These are
 * inverse-probability (Horvitz-Thompson) weights, so the sums are right on average, as in BNS-GCN
 * (Wan et al. 2022), and processes need not send rows that were not drawn
 * (codegen/plan_passes/plan_exchange.c).  The select makes the bits those of a process that has all
 * rows, also where one that was not drawn is infinite.
 *
 * It comes before autodiff, so that gradients are those of the sums that were made.  That takes
 * sums to which each neighbour adds a multiple of its own row; all others are refused.  What
 * depends on the data alone is not sent in each step, and stays as it is; and so does all that
 * does not train. */
#include "ir/text.h"
#include "passes/rewrite.h"
#include "runtime/exec/rng.h"

/* The pass over @train: which values vary, and which are multiples of rows at edges' sources. */
typedef struct {
    PassCtx *p;
    Module *m;
    Func *f;
    bool *varies;        /* by op id: it may be another one in each step */
    const Space **edges; /* by op id: it is a multiple of rows gathered at these edges' sources */
    Op **factor;         /* by Space.id: the input; NULL: none yet */
    int n;               /* gathers that were scaled */
} Boundary;

/* Tells why a value of the step cannot be made of sampled rows; returns false. */
static bool refuse(Boundary *s, const Op *op, const char *why) {
    diag_add(s->p->ctx, DIAG_E0305, op->span,
             "'%s' of rows of other parts is not sampled yet: %s (--sampled-boundary)",
             pass_named(op), why);
    return false;
}

/* Whether op reads, at an edge, the row that the edge comes from. */
static bool reads_sources(const Op *op) {
    return op->kind == OP_GATHER && op->map->kind == MAP_SRC;
}

/* Whether the loop's body, or that of a loop in it, reads or sums along edges. */
static bool loops_over_edges(const Func *body) {
    for (const Op *op = body->first; op; op = op->next) {
        if (op->map && op->map->from->kind == SP_EDGE) return true;
        if (op->kind == OP_LOOP && loops_over_edges(op->body)) return true;
    }
    return false;
}

/* The edges of whose sources operand i is a multiple, or NULL. */
static const Space *edges_of(const Boundary *s, const Op *op, int i) {
    return s->edges[op->in[i]->id];
}

/* Whether the result is a multiple of the operands that are multiples of rows. */
static bool is_linear(const Boundary *s, const Op *op, const Space *e) {
    switch (op->kind) {
    case OP_NEG:
    case OP_CAST:
    case OP_COPY:
    case OP_DETACH:
    case OP_STORE_AS:
    case OP_VIEW:
        return type_has(&op->type, e);
    case OP_ADD:
    case OP_SUB:
        return edges_of(s, op, 0) && edges_of(s, op, 1);
    case OP_MUL:
        return !edges_of(s, op, 0) || !edges_of(s, op, 1);
    case OP_CONTRACT:
        return (!edges_of(s, op, 0) || !edges_of(s, op, 1)) && type_has(&op->type, e);
    case OP_DIV:
        return !edges_of(s, op, 1);
    case OP_SELECT:
        return !edges_of(s, op, 0) && edges_of(s, op, 1) && edges_of(s, op, 2);
    case OP_REDUCE:
        return op->red == RED_SUM && type_has(&op->type, e);
    default:
        return false;
    }
}

/* Finds what the value of op is a multiple of.  False after a diagnostic: its terms cannot be
 * sampled. */
static bool visit(Boundary *s, const Op *op) {
    const Space *e = NULL;
    s->varies[op->id] = pass_may_vary(op);
    for (int i = 0; i < op->n_in; i++) {
        s->varies[op->id] |= s->varies[op->in[i]->id];
        const Space *of = edges_of(s, op, i);
        if (of && e && of != e) return refuse(s, op, "it reads two relations");
        if (of) e = of;
    }
    if (op->kind == OP_LOOP && loops_over_edges(op->body))
        return refuse(s, op, "a loop reads along edges");
    if (op->kind == OP_SEGMENT && op->map->kind == MAP_SRC && s->varies[op->id])
        return refuse(s, op, "it is a sum at the rows that edges come from");
    if (e && op->kind == OP_SEGMENT && op->red == RED_SUM && op->map->kind == MAP_DST) return true;
    if (e && !is_linear(s, op, e))
        return refuse(s, op, "only a sum of multiples of them is right on average");
    s->edges[op->id] = e;
    if (reads_sources(op) && s->varies[op->id]) s->edges[op->id] = op->map->from;
    return true;
}

/* The factors of the edges' terms, given by the runtime. */
static Op *factor_of(Boundary *s, Space *edges) {
    if (!s->factor[edges->id]) {
        Builder b = b_for(s->m, s->f, s->f->first, s->f->first);
        Type t = {.dt = DT_F32, .rank = 1, .dim = {edges}};
        s->factor[edges->id] =
            b_input(&b, arena_printf(s->m->a, RT_BOUNDARY_INPUT "%s", edges->name), t);
    }
    return s->factor[edges->id];
}

/* Multiplies what op gathers by the factors of its edges; 0 where the factor is. */
static void scale(Boundary *s, Op *op) {
    Op *factor = factor_of(s, op->map->from);
    Builder b = b_for(s->m, s->f, op, op);
    Op *rows = b_gather(&b, op->map, op->in[0]);
    Op *is_undrawn = b_binary(&b, OP_EQ, factor, b_const(&b, factor->type.dt, 0));
    if (factor->type.dt != rows->type.dt) factor = b_cast(&b, factor, rows->type.dt);
    Op *product = b_binary(&b, OP_MUL, rows, factor);
    Op *scaled = b_select(&b, is_undrawn, b_const(&b, rows->type.dt, 0), product);
    rows->hint = product->hint = scaled->hint = op->hint;
    pass_remark(s->p, op->span, "sample-boundary", "'%s' is of sampled rows at the ends of %s",
                pass_named(op), op->map->from->name);
    op_replace_uses(s->f, op, scaled);
    op_remove(op);
    s->n++;
}

/* Whether the function has factors already. */
static bool has_factors(const Func *f) {
    for (const Op *op = f->first; op; op = op->next)
        if (op->kind == OP_INPUT && rt_boundary_is_input(op->name)) return true;
    return false;
}

static bool run(PassCtx *p, Module *m) {
    Func *f = func_of(m, PHASE_TRAIN);
    if (!f || m->recipe.sampled_boundary == 0 || func_output_of(f, OUT_GRAD) || has_factors(f))
        return true;
    func_number(f);
    size_t n = (size_t)f->n_ops + 1;
    Boundary s = {.p = p,
                  .m = m,
                  .f = f,
                  .varies = NEWN(p->a, bool, n),
                  .edges = NEWN(p->a, const Space *, n),
                  .factor = NEWN(p->a, Op *, (size_t)m->spaces.n + 1)};
    for (const Op *op = f->first; op; op = op->next)
        if (!visit(&s, op)) return false;
    for (Op *op = f->first, *next; op; op = next) {
        next = op->next;
        if (reads_sources(op) && s.edges[op->id]) scale(&s, op);
    }
    if (s.n) return true;
    diag_add(p->ctx, DIAG_E0305, f->span,
             "training sums no rows of other parts that change: there is nothing to be sampled "
             "(--sampled-boundary)");
    return false;
}

const Pass pass_sample_boundary = {
    .name = "sample-boundary",
    .summary = "with --sampled-boundary, read rows of other parts with a probability",
    .needs = IR_TYPED,
    .run = run,
    .required = true,
};
