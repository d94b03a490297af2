/* The first pass over the plan: steps for each function of the module, a phase per function.
 *
 *   1. decide what each operation becomes (lower.h: How), backwards from the effects
 *   2. cut the stored ones into units: a kernel over several roots, a library call, ..
 *   3. give every stored value a buffer (plan_bind.c): an output's or a variable's own where that
 * is safe, that of an operand which nobody needs any more, else a temporary
 *   4. generate the steps of each unit in order, then the copies that must come last
 *
 * Cutting, choosing buffers and lowering are one walk: a kernel is made by asking for its
 * roots' values, and a loop's body is cut when the walk comes to it. */
#include "codegen/lower/lower.h"
#include "codegen/plan_passes/plan_pass.h"
#include "passes/rewrite.h"

#include <string.h>

/* ---- 1. what each operation becomes ---------------------------------------------------- */
/* Whether the result of op has a buffer from the start: data, a variable, an input or a saved
 * value. */
static bool is_source(const Op *op) {
    return op_has(op, OPT_SOURCE);
}

/* Whether every kernel that reads op computes it by itself, since it has no operands and no buffer:
 * constants and the like. */
static bool always_inline(const Op *op) {
    return op->n_in == 0 && !is_source(op) && op_has(op, OPT_PURE) && !op_has(op, OPT_LIB);
}

/* Whether the result of op has a row per node, edge or graph. A reduction without these rows would
 * be repeated in every row of the kernel that reads it. */
static bool has_rows(const Op *op) {
    for (int i = 0; i < op->type.rank; i++)
        if (op->type.dim[i]->kind != SP_DIM) return true;
    return false;
}

/* Whether the kernels that read op may compute it by themselves instead of reading it from
 * memory. */
static bool may_inline(const Lower *lo, const Op *op) {
    if (op_has(op, OPT_LIB) || cg_info(lo, op)->gemm || cg_info(lo, op)->spmm) return false;
    if (always_inline(op)) return true;
    if (!op->fused) return false;
    return !(op_has(op, OPT_REDUCE) && !has_rows(op));
}

/* Whether `user` needs its operands in memory: host effects, library calls and matrix products
 * do. */
static bool wants_memory(const Lower *lo, const Op *user) {
    return op_has(user, OPT_EFFECT) || op_has(user, OPT_LIB) || cg_info(lo, user)->gemm;
}

/* By whom a value is read. */
typedef struct {
    int n;          /* how often, as operand */
    const Op *last; /* one of the readers: the first in the function */
} Uses;

/* Whether op is a concatenation that only another one reads, whose kernel writes the operands of op
 * itself, so that op needs no buffer. u: the uses of op. */
static bool is_concat_operand(const Op *op, const Uses *u) {
    return u->n == 1 && cg_concat_continues(op, u->last);
}

/* Sets what becomes of op (see Storage). used: something needs its result; in_memory: something
 * needs it in memory. */
static void choose_storage(Lower *lo, Op *op, bool used, bool in_memory) {
    OpInfo *i = cg_info(lo, op);
    i->base = op;
    if (!used)
        i->storage = HOW_DEAD;
    else if (is_source(op))
        i->storage = HOW_SOURCE;
    else if (op->type.dt != DT_VOID)
        i->storage = may_inline(lo, op) && !in_memory ? HOW_INLINE : HOW_STORED;
}

/* Whether op is the first rows of its operand, so that they are found where the operand is, at
 * offset 0. */
static bool is_prefix_slice(const Op *op) {
    int64_t off;
    return op->kind == OP_SLICE && op->type.rank && op->over[1] == op->type.dim[0] &&
           op->in[0]->type.dim[0] == op->over[0] && expr_is_const(op->off, &off) && off == 0;
}

/* Makes views and first rows of values in memory aliases of these, so that they need no copy. full:
 * by Op.id, values whose buffer must hold exactly that value, since an effect or a C function takes
 * it as it is. */
static void find_aliases(Lower *lo, const bool *full) {
    for (Op *op = lo->f->first; op; op = op->next) {
        OpInfo *i = cg_info(lo, op);
        if (i->storage == HOW_DEAD ||
            (op->kind != OP_VIEW && (!is_prefix_slice(op) || full[op->id])))
            continue;
        const OpInfo *x = cg_info(lo, op->in[0]);
        if (x->storage != HOW_ALIAS && x->storage != HOW_STORED && x->storage != HOW_SOURCE)
            continue;
        i->storage = HOW_ALIAS;
        i->base = x->base;
    }
}

/* Decides what becomes of each op of the current function (lo->info), backwards from the effects,
 * and makes the tables by Op.id that lowering uses. */
static void classify(Lower *lo) {
    func_number(lo->f);
    int n = lo->f->n_ops;
    lo->info = NEWN(lo->a, OpInfo, (size_t)n + 1);
    lo->reads = NEWN(lo->a, CgReads *, (size_t)n + 1);
    lo->slot = NEWN(lo->a, int, (size_t)n + 1);
    lo->sums = NEWN(lo->a, unsigned, (size_t)n + 1);
    lo->marks = NEW(lo->a, IrMarks);
    *lo->marks = ir_marks_new(lo->a, 2 * n + 1);
    lo->computed = NEW(lo->a, IrMarks);
    *lo->computed = ir_marks_new(lo->a, n + 1);
    lo->row_marks = NEW(lo->a, IrMarks);
    *lo->row_marks = ir_marks_new(lo->a, CG_PLACES * n);
    bool *used = NEWN(lo->a, bool, (size_t)n + 1), *memory = NEWN(lo->a, bool, (size_t)n + 1);
    bool *full = NEWN(lo->a, bool, (size_t)n + 1);
    Uses *uses = NEWN(lo->a, Uses, (size_t)n + 1);
    int n_dumped = 0, n_others = 0;
    for (Op *op = lo->f->first; op; op = op->next) {
        bool dump = op->ask == ASK_APART || op->use.role == OUT_DUMP;
        cg_info(lo, op)->name_number = dump ? n_dumped++ : n_others++;
        cg_info(lo, op)->buf = -1;
        cg_info(lo, op)->gemm = cg_gemm_fits(lo, op);
    }
    lo->guard = ir_guards(lo->a, lo->f, memory); /* conditions of steps */
    for (Op *op = lo->f->last; op; op = op->prev) {
        const Op *dense;
        used[op->id] |= op_acts(op);
        cg_info(lo, op)->spmm = used[op->id] && cg_wants_spmm(lo, op, &dense);
        if (cg_info(lo, op)->spmm) memory[dense->id] = true;
        choose_storage(lo, op, used[op->id], memory[op->id]);
        if (used[op->id] && !memory[op->id] && is_concat_operand(op, &uses[op->id]))
            cg_info(lo, op)->storage = HOW_INLINE;
        for (int k = 0; k < op->n_in && used[op->id]; k++) {
            used[op->in[k]->id] = true;
            uses[op->in[k]->id].n++;
            uses[op->in[k]->id].last = op;
            memory[op->in[k]->id] |= wants_memory(lo, op);
            full[op->in[k]->id] |=
                op_has(op, OPT_EFFECT) || op->ext || (op->kind == OP_VIEW && full[op->id]);
        }
    }
    find_aliases(lo, full);
}

/* ---- 4. steps -------- */
/* Appends a step that copies buffer `from` to buffer `to`. effect: the op that it is for. */
static void step_copy(Lower *lo, const Op *effect, int from, int to) {
    PStep *s = cg_step(lo, PS_COPY, effect, 2);
    s->bufs[0] = from;
    s->bufs[1] = to;
}

/* Appends a step that ranks elements along an axis by a library call. The library wants a mask with
 * an element for each of the operand's, so a mask of fewer dimensions is expanded first. */
static void step_rank(Lower *lo, const Op *op) {
    Type full = op->in[0]->type;
    full.dt = DT_I1;
    bool same = type_eq(&op->in[1]->type, &full);
    int mask = same ? cg_buf(lo, op->in[1]) : cg_materialize_as(lo, op->in[1], &full, op, "_mask");
    PStep *s = cg_step(lo, PS_RANK, op, 3);
    s->bufs[0] = cg_buf(lo, op->in[0]);
    s->bufs[1] = mask;
    s->bufs[2] = cg_buf(lo, op);
    s->rank_axis = type_find(&op->in[0]->type, op->over[0]);
}

/* Appends, for an output of @load, a step for each edge space that keeps the edges where this
 * output holds. */
static void step_relations(Lower *lo, const Op *out) {
    if (lo->f->phase != PHASE_LOAD) return;
    for (int i = 0; i < lo->m->spaces.n; i++) {
        Space *s = lo->m->spaces.v[i];
        if (s->kind != SP_EDGE || s->rel != REL_WHERE || strcmp(s->cond, out->name)) continue;
        PStep *st = cg_step(lo, PS_RELATION, out, 1);
        st->bufs[0] = cg_buf(lo, out->in[0]);
        st->space = s;
    }
}

/* Appends the steps of a host effect: of an output the copies to its buffer, of print and assert
 * their call on the host. */
static void step_effect(CgBuild *b, const Op *op) {
    Lower *lo = b->lo;
    if (op->kind == OP_OUTPUT) {
        for (int i = 0; i < b->copies_at_output.n; i++)
            if (b->copies_at_output.v[i].effect == op)
                step_copy(lo, op, cg_buf(lo, op->in[0]), b->copies_at_output.v[i].to);
        step_relations(lo, op);
        return;
    }
    int first = op->when;
    PStep *s = cg_step(lo, op->kind == OP_PRINT ? PS_PRINT : PS_ASSERT, op, op->n_in - first);
    for (int i = first; i < op->n_in; i++) s->bufs[i - first] = cg_buf(lo, op->in[i]);
    if (op->when) s->pred = cg_buf(lo, op->in[0]);
    s->text = op->name;
}

/* The op that stands for result k of a call or loop: the call itself for result 0, or the `result`
 * op that reads it. NULL: nobody reads result k. */
static const Op *result_of(const FusionGroup *u, int k) {
    for (int i = 1; i < u->roots.n; i++)
        if ((int)u->roots.v[i]->imm == k) return u->roots.v[i];
    return k == 0 ? u->roots.v[0] : NULL;
}

/* Fills types[] with the types of a call's results and returns how many there are. The gradient of
 * a call has a result for each input of floating point, of its type. */
static int call_results(const Op *op, const Type **types) {
    int n = 0;
    if (op->kind != OP_CALL_GRAD) {
        types[0] = &op->type;
        return op->type.dt != DT_VOID;
    }
    for (int i = 0; i < op->n_in - 2; i++)
        if (dtype_is_float(op->in[i]->type.dt)) types[n++] = &op->in[i]->type;
    return n;
}

/* Makes a list of the types of a call's inputs (*n_in of them), then of its results; returns the
 * length of the list. The condition of a call is none of its inputs. */
int plan_call_types(Arena *a, const Op *op, const Type ***types, int *n_in) {
    const Type **t = *types = NEWN(a, const Type *, 2 * (size_t)op->n_in + 1);
    *n_in = op->n_in - op->when;
    for (int i = 0; i < *n_in; i++) t[i] = &op->in[i + op->when]->type;
    return *n_in + call_results(op, t + *n_in);
}

/* Appends the step that calls the user's C function. A result that nobody reads is written to a
 * temporary, since the function wants a place for it. */
static void step_call(Lower *lo, const FusionGroup *u) {
    const Op *op = u->roots.v[0];
    const Type **types = NULL;
    int n_in = 0, n_all = plan_call_types(lo->a, op, &types, &n_in), n_out = n_all - n_in;
    PStep *s = cg_step(lo, PS_CALL, op, n_all);
    s->n_in = n_in;
    s->types = types;
    if (op->when) s->pred = cg_buf(lo, op->in[0]);
    for (int i = 0; i < n_in; i++) s->bufs[i] = cg_buf(lo, op->in[i + op->when]);
    for (int k = 0; k < n_out; k++) {
        const Op *r = result_of(u, k);
        const Type *t = types[n_in + k];
        const char *name = arena_printf(lo->a, "%s_unused", cg_value_name(lo, op));
        s->bufs[n_in + k] = r && cg_info(lo, r)->storage != HOW_DEAD
                                ? cg_buf(lo, r)
                                : cg_temp_buf(lo, name, t->dt, cg_count(lo, t));
    }
}

static bool lower_body(Lower *lo, Func *f, const int *args, int carried);

/* Appends the steps of a loop: a copy of each value that changes to the buffer in which it ends as
 * the loop's result, PS_LOOP, the steps of the body, and PS_END. */
static void step_loop(Lower *lo, const FusionGroup *u) {
    const Op *op = u->roots.v[0];
    int carried = func_n_carried(op->body), *args = NEWN(lo->a, int, (size_t)op->n_in);
    for (int k = 0; k < op->n_in; k++) {
        const Op *r = k < carried ? result_of(u, k) : NULL, *x = op->in[k];
        const char *name = arena_printf(lo->a, "%s_%d", cg_value_name(lo, op), k);
        args[k] = k >= carried ? cg_buf(lo, x)
                  : r && cg_info(lo, r)->storage != HOW_DEAD
                      ? cg_buf(lo, r)
                      : cg_temp_buf(lo, name, x->type.dt, cg_count(lo, &x->type));
        if (k >= carried) continue;
        lo->p->bufs.v[args[k]]->type = x->type;
        step_copy(lo, op, cg_buf(lo, x), args[k]);
    }
    const PPhase *ph = lo->p->phases.v[lo->phase];
    PStep *begin = cg_step(lo, PS_LOOP, op, 1);
    int at = ph->steps.n - 1;
    begin->bufs[0] = args[0];
    begin->limit = (int64_t)op->imm;
    lower_body(lo, op->body, args, carried);
    PStep *end = cg_step(lo, PS_END, op, 1);
    end->bufs[0] = args[0];
    end->other = at;
    begin->other = ph->steps.n - 1;
}

/* Makes the phase's steps from number `from` on conditional, if fusion group u is wanted only under
 * a condition and that is known by then. Calls, loops and effects have conditions of their own. */
static void guard_steps(CgBuild *b, int u, int from) {
    Lower *lo = b->lo;
    const FusionGroup *unit = &b->groups.v[u];
    const Guard *g = unit->guard;
    if (!g || unit->kind == UNIT_CALL || unit->kind == UNIT_LOOP || unit->kind == UNIT_EFFECT)
        return;
    const OpInfo *i = cg_info(lo, g->cond);
    bool known = i->storage == HOW_SOURCE ||
                 (i->storage == HOW_STORED && b->groups.group_of[g->cond->id] < u);
    const PPhase *ph = lo->p->phases.v[lo->phase];
    for (int k = from; k < ph->steps.n && known; k++) {
        ph->steps.v[k]->pred = i->buf;
        ph->steps.v[k]->pred_not = !g->holds;
        ph->steps.v[k]->pred_at = g->cond->span;
    }
}

/* Appends the steps of a fusion group: a kernel over its roots, or the library calls and host
 * effects that it consists of. */
static void step_group(CgBuild *b, const FusionGroup *u) {
    Lower *lo = b->lo;
    const Op *op = u->roots.v[0];
    switch (u->kind) {
    case UNIT_ROWS:
        if (u->several_shapes)
            cg_lower_group(lo, u->roots.v, u->roots.n, &u->maps);
        else
            cg_lower_rows(lo, u->roots.v, u->roots.n);
        break;
    case UNIT_LONG:
        cg_lower_long(lo, op);
        break;
    case UNIT_CONCAT:
        cg_lower_concat(lo, op);
        break;
    case UNIT_GEMM:
        cg_lower_gemm(lo, op);
        break;
    case UNIT_RANK:
        step_rank(lo, op);
        break;
    case UNIT_CALL:
        step_call(lo, u);
        break;
    case UNIT_LOOP:
        step_loop(lo, u);
        break;
    case UNIT_EFFECT:
        step_effect(b, op);
        break;
    }
}

/* Copies variables to temporaries where a copy at the end of the phase reads the old value and a
 * step may have overwritten that by then. */
static void save_old_values(CgBuild *b) {
    Lower *lo = b->lo;
    for (int i = 0; i < b->copies_at_end.n; i++) {
        CgCopy *c = &b->copies_at_end.v[i];
        const Op *base = cg_info(lo, c->effect->in[0])->base;
        c->from = cg_buf(lo, c->effect->in[0]);
        bool changes = base->kind == OP_VAR || (base->kind == OP_ARG && base->imm < lo->n_carried);
        if (!changes || c->from == c->to) continue;
        int t = cg_temp_buf(lo, arena_printf(lo->a, "%s_old", cg_value_name(lo, base)),
                            base->type.dt, cg_count(lo, &base->type));
        lo->p->bufs.v[t]->type = base->type;
        step_copy(lo, c->effect, c->from, t);
        c->from = t;
    }
}

/* Appends the copies that come last in the phase: new values of variables that could not be
 * computed in place. */
static void append_last_copies(CgBuild *b) {
    for (int i = 0; i < b->copies_at_end.n; i++) {
        const CgCopy *c = &b->copies_at_end.v[i];
        if (c->from != c->to) step_copy(b->lo, c->effect, c->from, c->to);
    }
}

/* ---- all -------- */
/* Checks that no value of the function is sparse any more. False after a diagnostic. */
static bool check_dense(Lower *lo) {
    for (Op *op = lo->f->first; op; op = op->next) {
        if (op->type.layout != LAYOUT_CSR) continue;
        diag_add(lo->c, DIAG_E0540, op->span,
                 "a value is still sparse: pass 'lower-csr' must run first");
        return false;
    }
    return true;
}

/* Checks that long reductions (over all nodes or edges) leave a dimension free for the partial sums
 * of their chunks (lower_long.c). False after a diagnostic. */
static bool check_ranks(Lower *lo) {
    for (Op *op = lo->f->first; op; op = op->next) {
        if (op->type.rank < MAX_RANK || !cg_is_long_reduction(op) || cg_gemm_fits(lo, op)) continue;
        diag_add(lo->c, DIAG_E0540, op->span,
                 "a sum over all nodes or edges leaves %d dimensions: at most %d can be kept",
                 op->type.rank, MAX_RANK - 1);
        return false;
    }
    return true;
}

/* Checks that for each saved value that the function reads there is an output of @load. False after
 * diagnostics. */
static bool check_saved(Lower *lo) {
    bool ok = true;
    for (Op *op = lo->f->first; op; op = op->next) {
        if (op->kind != OP_SAVED) continue;
        int id = cg_input_buf(lo, op);
        const PBuf *b = lo->p->bufs.v[id];
        if (b->phase >= 0) continue;
        diag_add(lo->c, DIAG_E0540, op->span, "no output of @load is called '%s'", op->name);
        ok = false;
    }
    return ok;
}

/* Cuts the current function into fusion groups and appends their steps to the current phase. False
 * after diagnostics. */
static bool lower_steps(Lower *lo) {
    if (!check_dense(lo) || !check_ranks(lo) || !check_saved(lo)) return false;
    CgBuild b = {.lo = lo};
    classify(lo);
    b.groups = cg_form_groups(lo);
    cg_bind_buffers(&b);
    save_old_values(&b);
    for (int i = 0; i < b.groups.n; i++) {
        int from = lo->p->phases.v[lo->phase]->steps.n;
        step_group(&b, &b.groups.v[i]);
        guard_steps(&b, i, from);
    }
    append_last_copies(&b);
    return true;
}

/* Appends the steps of a loop's body f to the current phase, and then restores the state of lo for
 * the function around. args: the buffers of the loop's operands, the first `carried` of which
 * change. */
static bool lower_body(Lower *lo, Func *f, const int *args, int carried) {
    Lower outer = *lo;
    lo->f = f;
    lo->operand_bufs = args;
    lo->n_carried = carried;
    bool ok = lower_steps(lo);
    lo->f = outer.f;
    lo->operand_bufs = outer.operand_bufs;
    lo->n_carried = outer.n_carried;
    lo->info = outer.info;
    lo->guard = outer.guard;
    lo->reads = outer.reads;
    lo->slot = outer.slot;
    lo->sums = outer.sums;
    lo->marks = outer.marks;
    lo->computed = outer.computed;
    lo->row_marks = outer.row_marks;
    return ok;
}

/* Makes a phase of function f and appends it to the plan. False after diagnostics. */
static bool lower_func(Lower *lo, Func *f) {
    PPhase *ph = NEW(lo->a, PPhase);
    ph->name = f->name;
    ph->func = f;
    lo->f = f;
    lo->phase = lo->p->phases.n;
    vec_push(lo->a, &lo->p->phases, ph);
    return lower_steps(lo);
}

/* ---- what is said of it -------- */
static const char *const apart_text[UNFUSED_COUNT_] = {
    [UNFUSED_NOT] = "reads it, in the loop of others over the same elements",
    [UNFUSED_GATHER] = "in place it would be computed once per entry",
    [UNFUSED_ENTRY] = "sums it over entries: it has a row for each of them",
    [UNFUSED_VIEW] = "reads it through a view: only values with the same dimensions share rows",
    [UNFUSED_ALL_ROWS] = "reads it in each row: it must be complete",
    [UNFUSED_OTHER_ROW] = "reads it at other rows",
    [UNFUSED_SCALAR] = "makes a scalar: scalars share a launch with neighbours alone",
    [UNFUSED_DIM] = "has no node's or edge's rows: it shares a launch with neighbours alone",
    [UNFUSED_ASSIGNED] = "makes a variable's next value, in a kernel of its own",
    [UNFUSED_CROWDED] = "sums over too many relations for one kernel",
    [UNFUSED_WIDE] = "makes sums with rows too long, or of unknown length, to stand beside others",
    [UNFUSED_RECOMPUTED] = "is computed again where it is needed, which holds less memory",
    [UNFUSED_GUARD] = "is wanted under another condition",
    [UNFUSED_FULL] = "reads it: its kernel has as many results as one may have",
    [UNFUSED_BOTH_ENDS] = "sums over the other end of the same edges: their rows differ in length",
    [UNFUSED_SIBLING] = "also needs other rows of",
    [UNFUSED_LATER] = "also needs",
    [UNFUSED_PRODUCT] = "reads it: a matrix product's result is in memory",
    [UNFUSED_SPARSE] = "reads it: a sparse product that a library may make has a kernel of its own",
    [UNFUSED_SUM] = "reads it when its sums over all rows are complete",
    [UNFUSED_CONCAT] = "reads it: the parts of a concatenation are copied side by side",
    [UNFUSED_CALL] = "reads it: it is made by a call, not in a kernel",
    [UNFUSED_LONG] = "sums it over all rows, in parts of its own",
    [UNFUSED_COPY] = "copies it beside others",
};

/* Why two kernels are not fused, as a text that follows the name of the one that reads the
 * value. */
const char *plan_unfused_text(UnfusedCause why) {
    return apart_text[why];
}

/* What one may set to have them together; none: that reader needs memory. */
static const char *const apart_cure[UNFUSED_COUNT_] = {
    [UNFUSED_FULL] = "--form-kernels.max-roots or --form-kernels.max-ops",
    [UNFUSED_WIDE] = "--fuse.max-row, or --specialize where the data know the width",
    [UNFUSED_RECOMPUTED] = "--disable-pass=remat",
    [UNFUSED_SPARSE] = "--spmm=own",
};

/* The option that would let the two kernels be fused; NULL: there is none. */
const char *plan_unfused_remedy(UnfusedCause why) {
    return apart_cure[why];
}

/* Adds a pass remark that value and reader have separate kernels, and why. */
static void remark_unfused(PassCtx *pc, const PUnfused *x) {
    const bool needs = x->cause == UNFUSED_SIBLING || x->cause == UNFUSED_LATER;
    const Op *reader = x->via && !needs ? x->via : x->root;
    const char *text = apart_text[x->cause];
    if (needs)
        text = arena_printf(pc->a, "%s '%s', made %s it", text, pass_named(x->via),
                            x->cause == UNFUSED_LATER ? "after" : "with");
    pass_declined(pc, x->value->span, "form-kernels",
                  "'%s' and '%s' have kernels of their own: '%s' %s%s", pass_named(x->value),
                  pass_named(x->root), pass_named(reader),
                  x->cause == UNFUSED_GATHER ? "gathers it: " : "", text);
}

/* Adds the pass remarks on a phase: how many values are in how many kernels, and which kernels were
 * not fused. */
static void remark_phase(PassCtx *pc, const PPhase *ph) {
    int kernels = 0, values = 0;
    for (int i = 0; i < ph->steps.n; i++) {
        kernels += ph->steps.v[i]->kernel != NULL;
        values += ph->steps.v[i]->kernel ? ph->steps.v[i]->kernel->computes.n : 0;
    }
    pass_remark(pc, ph->func->span, "form-kernels", "@%s: %d values in %d kernels, %d other steps",
                ph->name, values, kernels, ph->steps.n - kernels);
    for (int i = 0; i < ph->apart.n; i++)
        if (ph->apart.v[i].cause != UNFUSED_NOT) remark_unfused(pc, &ph->apart.v[i]);
}

/* Gives the plan a buffer with the segment bounds that decide which process owns which rows of
 * space s: those of edges by destination, those of stored entries by row. */
static void add_partition_bounds(Lower *lo, Space *s) {
    if (!plan_is_partitioned_space(s)) return;
    if (s->kind == SP_EDGE) cg_map_buf(lo, map_dst(lo->m, s), LB_MAP_PTR, NULL);
    if (s->kind != SP_NZ) return;
    cg_map_buf(lo, map_row(lo->m, s), LB_MAP_PTR, NULL);
    add_partition_bounds(lo, s->nz_of->type.dim[0]);
}

/* Does this for the first dimension of each buffer: their rows are shared by processes. */
static void add_all_partition_bounds(Lower *lo) {
    for (int i = 0, n = lo->p->bufs.n; i < n; i++) {
        const PBuf *b = lo->p->bufs.v[i];
        add_partition_bounds(lo, b->kind == PB_CUTS ? b->space
                                 : b->type.rank > 0 ? b->type.dim[0]
                                                    : NULL);
    }
}

/* Makes a phase of each function of the module, @load first, since others read what it saves.
 * Bodies of loops become part of the phase around them. */
static bool run(PassCtx *pc, Plan *p) {
    Module *m = p->m;
    Lower lower = {.c = pc->ctx, .a = m->a, .m = m, .p = p};
    if (!cg_read_one_way(&lower)) return false;
    Func *load = func_of(m, PHASE_LOAD);
    if (load && !lower_func(&lower, load)) return false;
    for (int i = 0; i < m->funcs.n; i++)
        if (m->funcs.v[i] != load && !m->funcs.v[i]->body && !lower_func(&lower, m->funcs.v[i]))
            return false;
    if (p->partitioned) add_all_partition_bounds(&lower);
    for (int i = 0; i < p->phases.n && pc->remarks; i++) remark_phase(pc, p->phases.v[i]);
    return true;
}

const Pass plan_pass_form_kernels = {
    .name = "form-kernels",
    .summary = "cut values into kernels and library calls, give them buffers and lower them",
    .bars = PLAN_STEPS,
    .gives = PLAN_STEPS,
    .run_plan = run,
    .required = true,
};
