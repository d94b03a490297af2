/* The pass lower-kernels: steps of each fusion, and the loops of its kernels.
 *
 *     rows %z, %s in train_z, train_s    ->    kernel gcn_train_z_3(x, train_z, train_s) over=N_v
 *     gemm %h in train_h                       gemm(train_z, var_w, train_h) m=N_v ..
 *
 * A kernel is made by asking for its values at an index (codegen/lower/). */
#include "codegen/lower/lower.h"
#include "codegen/plan_passes/plan_pass.h"
#include "passes/rewrite.h"

#include <string.h>

/* ---- steps ---------------------------------------------------------------------------------- */
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

/* Appends the steps of an effect: of an output those that build relations, of print and assert
 * their call on the host. */
static void step_effect(Lower *lo, const Op *op) {
    if (op->kind == OP_OUTPUT) {
        step_relations(lo, op);
        return;
    }
    int first = op->when;
    PStep *s = cg_step(lo, op->kind == OP_PRINT ? PS_PRINT : PS_ASSERT, op, op->n_in - first);
    for (int i = first; i < op->n_in; i++) s->bufs[i - first] = cg_buf(lo, op->in[i]);
    if (op->when) s->pred = cg_buf(lo, op->in[0]);
    s->text = op->name;
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
        const Op *r = cg_result_of(&u->roots, k);
        const Type *t = types[n_in + k];
        const char *name = arena_printf(lo->a, "%s_unused", cg_value_name(lo, op));
        s->bufs[n_in + k] = r && cg_info(lo, r)->storage != HOW_DEAD
                                ? cg_buf(lo, r)
                                : cg_temp_buf(lo, name, t->dt, cg_count(lo, t));
    }
}

/* ---- loops ---------------------------------------------------------------------------------- */
/* The buffers of the plan in the order in which the steps come to them: first those of a function's
 * values, then what its kernels add. */
typedef struct {
    Lower *lo;
    VEC(int) ids;
    bool *listed; /* by buffer, of those that there were before */
    int n_before, n_seen;
} BufOrder;

static bool lower_in(BufOrder *o, const PFusions *list);

/* Puts a buffer that there was before into the order. */
static void list_buf(BufOrder *o, int id) {
    if (id < 0 || id >= o->n_before || o->listed[id]) return;
    o->listed[id] = true;
    vec_push(o->lo->a, &o->ids, id);
}

/* Puts the new buffers into the order. */
static void list_new_bufs(BufOrder *o) {
    for (; o->n_seen < o->lo->p->bufs.n; o->n_seen++) vec_push(o->lo->a, &o->ids, o->n_seen);
}

/* Appends the steps of a loop: a copy of each value that changes to its buffer, PS_LOOP, the steps
 * of the body, and PS_END. */
static bool step_loop(BufOrder *o, const PFusion *f) {
    Lower *lo = o->lo;
    const Op *op = f->roots.v[0];
    int carried = func_n_carried(op->body);
    for (int k = 0; k < op->n_in; k++) list_buf(o, f->bufs[k]);
    for (int k = 0; k < carried; k++) step_copy(lo, op, cg_buf(lo, op->in[k]), f->bufs[k]);
    const PPhase *ph = lo->p->phases.v[lo->phase];
    PStep *begin = cg_step(lo, PS_LOOP, op, 1);
    int at = ph->steps.n - 1;
    begin->bufs[0] = f->bufs[0];
    begin->limit = (int64_t)op->imm;
    Lower around = *lo;
    bool ok = cg_enter_body(lo, f) && lower_in(o, &f->body);
    cg_back_to(lo, &around);
    PStep *end = cg_step(lo, PS_END, op, 1);
    end->bufs[0] = f->bufs[0];
    end->other = at;
    begin->other = ph->steps.n - 1;
    return ok;
}

/* ---- fusions -------------------------------------------------------------------------------- */
/* Makes the phase's steps from number `from` on conditional, if fusion u is wanted only under a
 * condition and that is known by then. Calls, loops and effects have conditions of their own. */
static void guard_steps(Lower *lo, const FusionGroups *groups, int u, int from) {
    const FusionGroup *group = &groups->v[u];
    const Guard *g = group->guard;
    if (!g || group->kind == PF_CALL || group->kind == PF_LOOP || group->kind == PF_EFFECT) return;
    const OpInfo *i = cg_info(lo, g->cond);
    bool known =
        i->storage == HOW_SOURCE || (i->storage == HOW_STORED && groups->group_of[g->cond->id] < u);
    const PPhase *ph = lo->p->phases.v[lo->phase];
    if (!known)
        pass_declined(lo->pc, group->roots.v[0]->span, "lower-kernels",
                      "'%s' is not skipped where nobody wants it: '%s' is known later",
                      pass_named(group->roots.v[0]), pass_named(g->cond));
    for (int k = from; k < ph->steps.n && known; k++) {
        ph->steps.v[k]->pred = i->buf;
        ph->steps.v[k]->pred_not = !g->holds;
        ph->steps.v[k]->pred_at = g->cond->span;
    }
}

/* Appends the steps of a fusion: a kernel over its values, or the library calls and host effects
 * that it consists of. */
static bool step_group(BufOrder *o, const FusionGroup *u) {
    Lower *lo = o->lo;
    const PFusion *f = u->fusion;
    const Op *op = f->roots.v[0];
    switch (u->kind) {
    case PF_ROWS:
        if (u->several_shapes)
            cg_lower_group(lo, u->roots.v, u->roots.n, &u->maps);
        else
            cg_lower_rows(lo, u->roots.v, u->roots.n);
        break;
    case PF_SUM:
        cg_lower_long(lo, op);
        break;
    case PF_CONCAT:
        cg_lower_concat(lo, op);
        break;
    case PF_GEMM:
        cg_lower_gemm(lo, op);
        break;
    case PF_RANK:
        step_rank(lo, op);
        break;
    case PF_CALL:
        step_call(lo, u);
        break;
    case PF_LOOP:
        return step_loop(o, f);
    case PF_EFFECT:
        step_effect(lo, op);
        break;
    case PF_COPY:
        step_copy(lo, op, f->bufs[0], f->bufs[1]);
        break;
    }
    return true;
}

/* Sets the buffers of the function's values as its fusions have them. False after a diagnostic: one
 * has none. */
static bool set_bufs(Lower *lo, const PFusions *list) {
    for (Op *op = lo->f->first; op; op = op->next)
        if (cg_info(lo, op)->storage == HOW_SOURCE) cg_info(lo, op)->buf = cg_input_buf(lo, op);
    for (int i = 0; i < list->n; i++) {
        const PFusion *f = list->v[i];
        bool by_root = f->kind != PF_LOOP && f->kind != PF_EFFECT && f->kind != PF_COPY;
        for (int k = 0; k < f->roots.n && by_root; k++)
            cg_info(lo, f->roots.v[k])->buf = f->bufs[k];
        for (int k = 0; k < f->n_bufs && f->kind == PF_LOOP; k++) {
            const Op *r = cg_result_of(&f->roots, k);
            if (r && cg_info(lo, r)->storage == HOW_STORED) cg_info(lo, r)->buf = f->bufs[k];
        }
    }
    for (Op *op = lo->f->first; op; op = op->next) {
        if (cg_info(lo, op)->storage != HOW_STORED || cg_info(lo, op)->buf >= 0) continue;
        diag_add(lo->c, DIAG_E0542, op->span, "@%s: '%s' is stored, and its fusion has no buffer",
                 lo->f->name, pass_named(op));
        return false;
    }
    return true;
}

/* Puts the buffers of the function's values into the order: those of what others saved, of
 * variables, of outputs, of all values, of copies. */
static void list_function(BufOrder *o, const PFusions *list) {
    Lower *lo = o->lo;
    for (const Op *op = lo->f->first; op; op = op->next)
        if (op->kind == OP_SAVED) list_buf(o, cg_input_buf(lo, op));
    for (const Op *op = lo->f->first; op; op = op->next) {
        if (op->kind != OP_ASSIGN && op->kind != OP_NEXT) continue;
        Op var = cg_replaced_value(op);
        list_buf(o, cg_input_buf(lo, &var));
    }
    for (const Op *op = lo->f->first; op; op = op->next)
        if (op->kind == OP_OUTPUT) list_buf(o, cg_output_buf(lo, op));
    for (const Op *op = lo->f->first; op; op = op->next) list_buf(o, cg_info(lo, op)->buf);
    for (int i = 0; i < list->n; i++)
        for (int k = 0; k < list->v[i]->n_bufs && list->v[i]->kind == PF_COPY; k++)
            list_buf(o, list->v[i]->bufs[k]);
}

/* Appends the steps of the current function to the phase. False after diagnostics. */
static bool lower_in(BufOrder *o, const PFusions *list) {
    Lower *lo = o->lo;
    FusionGroups groups;
    if (!cg_find_groups(lo, list, &groups) || !set_bufs(lo, list)) return false;
    list_function(o, list);
    for (int i = 0; i < groups.n; i++) {
        int from = lo->p->phases.v[lo->phase]->steps.n;
        if (!step_group(o, &groups.v[i])) return false;
        guard_steps(lo, &groups, i, from);
        list_new_bufs(o);
    }
    return true;
}

/* ---- the order of buffers ------------------------------------------------------------------- */
/* Numbers the plan's buffers anew, in this order. */
static void number_bufs(BufOrder *o) {
    Plan *p = o->lo->p;
    int *number = NEWN(o->lo->a, int, (size_t)p->bufs.n + 1);
    PBuf **all = NEWN(o->lo->a, PBuf *, (size_t)p->bufs.n + 1);
    for (int i = 0; i < o->n_before; i++) list_buf(o, i); /* what no function has */
    for (int i = 0; i < p->bufs.n; i++) {
        all[i] = p->bufs.v[o->ids.v[i]];
        number[o->ids.v[i]] = all[i]->id = i;
    }
    for (int i = 0; i < p->bufs.n; i++) p->bufs.v[i] = all[i];
    for (int i = 0; i < p->phases.n; i++)
        for (int k = 0; k < p->phases.v[i]->steps.n; k++) {
            PStep *s = p->phases.v[i]->steps.v[k];
            for (int j = 0; j < s->n_bufs; j++) s->bufs[j] = number[s->bufs[j]];
            if (s->pred >= 0) s->pred = number[s->pred];
        }
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

/* ---- the pass -------------------------------------------------------------------------------- */
/* Adds the remark on a phase: how many steps it has. */
static void remark_phase(PassCtx *pc, const PPhase *ph) {
    int kernels = 0;
    for (int i = 0; i < ph->steps.n; i++) kernels += ph->steps.v[i]->kernel != NULL;
    pass_remark(pc, ph->func->span, "lower-kernels", "@%s: %d kernels, %d other steps", ph->name,
                kernels, ph->steps.n - kernels);
}

/* Makes the steps of each phase. */
static bool run(PassCtx *pc, Plan *p) {
    Lower lower = cg_lower(pc, p);
    BufOrder o = {.lo = &lower, .n_before = p->bufs.n, .n_seen = p->bufs.n};
    o.listed = NEWN(lower.a, bool, (size_t)p->bufs.n + 1);
    for (int i = 0; i < p->phases.n; i++) {
        PPhase *ph = p->phases.v[i];
        lower.phase = i;
        if (!cg_enter_func(&lower, ph->func) || !lower_in(&o, &ph->fusions)) return false;
        ph->fusions = (PFusions){0};
        if (pc->remarks) remark_phase(pc, ph);
    }
    number_bufs(&o);
    if (p->partitioned) add_all_partition_bounds(&lower);
    return true;
}

const Pass plan_pass_lower_kernels = {
    .name = "lower-kernels",
    .summary = "make steps of fusions, and the loops of their kernels",
    .needs = PLAN_BUFFERS,
    .bars = PLAN_STEPS,
    .gives = PLAN_STEPS,
    .breaks = PLAN_FUSIONS | PLAN_FORMED | PLAN_BUFFERS,
    .run_plan = run,
    .required = true,
};
