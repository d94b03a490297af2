/* The pass assign-buffers: which buffer each stored value of a phase has, an output's or a
 * variable's own where that is safe, that of an operand which nobody needs any more, else a
 * temporary.
 *
 *     gemm %z                                  gemm %z in train_z_3
 *     rows %h                                  rows %h in train_z_3
 *     rows %w.new                        ->    rows %w.new in var_w
 *     effect op 9                              effect op 9
 *                                              copy op 9 in var_b, train_b
 *
 * What cannot be computed where it belongs is copied there, in the end. */
#include <string.h>

#include "codegen/lower/lower.h"
#include "codegen/plan_passes/plan_pass.h"
#include "passes/rewrite.h"

/* A copy of a stored value to the buffer of an output or of a variable: ids of buffers. */
typedef struct {
    const Op *effect; /* the output or assignment */
    int from, to;
} Copy;

/* The assignment of buffers in a function. */
typedef struct {
    Lower *lo;
    FusionGroups groups;
    VEC(Copy) copies_at_output; /* copies that are made where the output stands */
    VEC(Copy) copies_at_end;    /* copies that are made at the end of the phase */
    int n_in_place, n_shared;   /* variables and outputs, other values */
} Assignment;

/* A read of a stored value by a root of a fusion group. */
typedef struct {
    int group;
    const Op *root;
    CgRead how;
} GroupRead;
typedef VEC(GroupRead) ReadByList;

/* Who reads each stored value. */
typedef struct {
    ReadByList *reads;   /* by Op.id of the value; of several reads of one variable, of the first */
    const Op **var;      /* by Var.id: the first read of the variable */
    const Op **arg;      /* by number: of the loop's operand */
    int last_loop_group; /* the last group that is a loop: it reads its operands again and again */
} ReadIndex;

/* The op under whose number the reads of op are listed: all reads of one variable, or of one loop
 * operand, are listed under the first. NULL: there are none. */
static const Op *reads_key(const ReadIndex *rs, const Op *op) {
    if (op->kind == OP_VAR) return rs->var[op->var->id];
    return op->kind == OP_ARG ? rs->arg[(int)op->imm] : op;
}

/* Finds the first read of each variable and loop operand. */
static void find_first_reads(ReadIndex *rs, const Lower *lo) {
    int n_args = 0;
    for (const Op *op = lo->f->first; op; op = op->next)
        if ((op->kind == OP_ARG || op->kind == OP_NEXT) && op->imm >= n_args)
            n_args = (int)op->imm + 1;
    rs->var = NEWN(lo->a, const Op *, (size_t)lo->m->vars.n + 1);
    rs->arg = NEWN(lo->a, const Op *, (size_t)n_args + 1);
    for (const Op *op = lo->f->last; op; op = op->prev) {
        if (op->kind == OP_VAR) rs->var[op->var->id] = op;
        if (op->kind == OP_ARG) rs->arg[(int)op->imm] = op;
    }
}

/* Lists the reads of each stored value, by fusion group. */
static ReadIndex index_reads(const Lower *lo, const FusionGroups *us) {
    ReadIndex rs = {.last_loop_group = -1};
    rs.reads = NEWN(lo->a, ReadByList, (size_t)lo->f->n_ops + 1);
    find_first_reads(&rs, lo);
    for (int u = 0; u < us->n; u++) {
        if (us->v[u].kind == PF_LOOP) rs.last_loop_group = u;
        for (int k = 0; k < us->v[u].roots.n; k++) {
            const Op *root = us->v[u].roots.v[k];
            const CgReads *all = cg_reads(lo, root);
            for (int i = 0; i < all->n; i++) {
                int under = reads_key(&rs, all->v[i].base)->id;
                vec_push(lo->a, &rs.reads[under], ((GroupRead){u, root, all->v[i]}));
            }
        }
    }
    return rs;
}

Op cg_replaced_value(const Op *assign) {
    if (assign->kind == OP_ASSIGN)
        return (Op){.kind = OP_VAR, .var = assign->var, .type = assign->var->type};
    return (Op){.kind = OP_ARG, .imm = assign->imm, .type = assign->in[0]->type};
}

/* Why the group that computes the new value may not write it over the old one; NULL: it may, since
 * nothing reads the old value later, nor does this group read it at another index. */
static const char *in_place_obstacle(const Lower *lo, const FusionGroups *us,
                                     const ReadIndex *index, const Op *assign) {
    const Op *x = cg_info(lo, assign->in[0])->base;
    Op var = cg_replaced_value(assign);
    if (!type_eq(&x->type, &var.type)) return "it has another type";
    int group = us->group_of[x->id];
    CTX_HOLDS(lo->c, group >= 0, x->span);
    if (index->last_loop_group >= group) return "a loop behind it may read the old value";
    const Op *old = reads_key(index, &var);
    for (int i = 0; old && i < index->reads[old->id].n; i++) {
        const GroupRead *r = &index->reads[old->id].v[i];
        const FusionGroup *u = &us->v[r->group];
        if (r->group < group) continue;
        bool rows = u->kind == PF_ROWS && !u->several_shapes && op_has(r->root, OPT_ELEM);
        if (r->how.at_other_index || (r->how.at_own_index && (r->group > group || !rows)))
            return arena_printf(lo->a, "'%s' reads the old value%s", pass_named(r->root),
                                r->group > group ? " later" : "");
    }
    return NULL;
}

/* Makes an output's value be computed in the output's own buffer, or records that it must be copied
 * there. */
static void bind_output_buf(Assignment *b, const Op *out) {
    Lower *lo = b->lo;
    const OpInfo *in = cg_info(lo, out->in[0]);
    OpInfo *base = cg_info(lo, in->base);
    int buf = cg_output_buf(lo, out);
    if (base->storage == HOW_STORED && base->buf < 0) {
        base->buf = buf;
        b->n_in_place++;
        return;
    }
    Copy c = {.effect = out, .to = buf};
    if (base->storage == HOW_SOURCE)
        vec_push(lo->a, &b->copies_at_output, c);
    else
        vec_push(lo->a, &b->copies_at_end, c);
}

/* Makes a variable's new value be computed in the variable's own buffer, or records that it must be
 * copied there. */
static void bind_assigned_buf(Assignment *b, const ReadIndex *rs, const Op *assign) {
    Lower *lo = b->lo;
    OpInfo *base = cg_info(lo, cg_info(lo, assign->in[0])->base);
    Op var = cg_replaced_value(assign);
    int buf = cg_input_buf(lo, &var);
    const char *why_not = base->storage != HOW_STORED ? "no kernel of the step computes it"
                          : base->buf >= 0            ? "it is in another one's memory, too"
                                           : in_place_obstacle(lo, &b->groups, rs, assign);
    if (!why_not) {
        base->buf = buf;
        b->n_in_place++;
        return;
    }
    pass_declined(lo->pc, assign->span, "assign-buffers", "'%s' is copied to %s in the end: %s",
                  pass_named(assign->in[0]), lo->p->bufs.v[buf]->name, why_not);
    Copy c = {.effect = assign, .to = buf};
    vec_push(lo->a, &b->copies_at_end, c);
}

/* ---- temporaries ---------------------------------------------------------------------------- */
/* By op: the last group that reads its value; the number of groups where a copy at the end of the
 * phase reads it. */
static int *last_reads(const Assignment *b, const ReadIndex *rs) {
    const Lower *lo = b->lo;
    int *last = NEWN(lo->a, int, (size_t)lo->f->n_ops + 1);
    for (int id = 0; id < lo->f->n_ops; id++)
        for (int i = 0; i < rs->reads[id].n; i++) /* in the order of groups */
            last[rs->reads[id].v[i].how.base->id] = rs->reads[id].v[i].group;
    for (int u = 0; u < b->groups.n; u++) {
        const Guard *g = b->groups.v[u].guard; /* nor is its condition written by the group */
        int *of = g ? &last[cg_info(lo, g->cond)->base->id] : NULL;
        if (of && *of < u + 1) *of = u + 1;
    }
    for (int i = 0; i < b->copies_at_end.n; i++)
        last[cg_info(lo, b->copies_at_end.v[i].effect->in[0])->base->id] = b->groups.n;
    return last;
}

/* What the choice of buffers for temporaries needs. */
typedef struct {
    const int *last;
    OpList *dying;         /* by group: values of others that nobody reads after it */
    signed char *row_sums; /* by Op.id: accumulates_in_row(), 1 or -1; 0 = not known */
} TempChoice;

/* Whether group u may write a result over temporary x: nothing reads x later, and the group reads
 * it only at the index that it writes. */
static bool may_reuse(const Assignment *b, const int *last, const Op *x, int u) {
    const Lower *lo = b->lo;
    const OpInfo *i = cg_info(lo, x);
    const FusionGroup *group = &b->groups.v[u];
    if (i->storage != HOW_STORED || i->overwritten || i->buf < 0 || last[x->id] != u) return false;
    if (lo->p->bufs.v[i->buf]->kind != PB_TEMP) return false;
    for (int k = 0; k < group->roots.n; k++) {
        const Op *r = group->roots.v[k];
        if (!op_has(r, OPT_ELEM) || cg_how_read(lo, r, x).at_other_index) return false;
    }
    return true;
}

/* Whether the kernel of op uses the row of its result as accumulator of a sum, since the row's
 * width depends on the data. The result must then not share the buffer of an operand. */
static bool accumulates_in_row(const Lower *lo, const Op *op, bool is_root, signed char *known) {
    int64_t n;
    if (!is_root && cg_info(lo, op)->storage != HOW_INLINE) return false;
    const Type *t = &op->type;
    if (op_has(op, OPT_REDUCE)) return !t->rank || !expr_is_const(t->dim[t->rank - 1]->size, &n);
    if (known[op->id]) return known[op->id] > 0;
    bool found = false;
    for (int i = 0; i < op->n_in && !found; i++)
        found = accumulates_in_row(lo, op->in[i], false, known);
    known[op->id] = found ? 1 : -1;
    return found;
}

/* The buffer of an operand that nothing reads after op, in which op can be computed; -1: there is
 * none. */
static int dying_operand_buf(Assignment *b, const TempChoice *t, const Op *op) {
    const Lower *lo = b->lo;
    int u = b->groups.group_of[op->id];
    const FusionGroup *group = &b->groups.v[u];
    if (group->kind != PF_ROWS || group->several_shapes || !op_has(op, OPT_ELEM)) return -1;
    if (accumulates_in_row(lo, op, true, t->row_sums)) return -1;
    for (int i = 0; i < t->dying[u].n && t->dying[u].v[i]->id < op->id; i++) {
        const Op *x = t->dying[u].v[i];
        if (!type_eq(&x->type, &op->type) || !may_reuse(b, t->last, x, u)) continue;
        cg_info(lo, x)->overwritten = true;
        b->n_shared++;
        return cg_info(lo, x)->buf;
    }
    return -1;
}

/* Finds the last reader of each temporary, and which temporaries die with each group. */
static TempChoice prepare_temps(const Assignment *b, const ReadIndex *rs) {
    const Lower *lo = b->lo;
    TempChoice t = {.last = last_reads(b, rs)};
    t.dying = NEWN(lo->a, OpList, (size_t)b->groups.n + 2);
    t.row_sums = NEWN(lo->a, signed char, (size_t)lo->f->n_ops + 1);
    for (const Op *op = lo->f->first; op; op = op->next) {
        int u = t.last[op->id];
        if (cg_info(lo, op)->storage == HOW_STORED && b->groups.group_of[op->id] != u)
            vec_push(lo->a, &t.dying[u], op);
    }
    return t;
}

/* Gives each stored value that has no buffer yet one: a dying operand's, or a new temporary. */
static void bind_temps(Assignment *b, const ReadIndex *rs) {
    Lower *lo = b->lo;
    const TempChoice t = prepare_temps(b, rs);
    for (Op *op = lo->f->first; op; op = op->next) {
        OpInfo *i = cg_info(lo, op);
        if (i->storage == HOW_SOURCE) i->buf = cg_input_buf(lo, op);
        if (i->storage != HOW_STORED || i->buf >= 0) continue;
        i->buf = dying_operand_buf(b, &t, op);
        if (i->buf >= 0) continue;
        i->buf = cg_temp_buf(lo, cg_value_name(lo, op), op->type.dt, cg_count(lo, &op->type));
        lo->p->bufs.v[i->buf]->type = op->type;
    }
}

/* Gives each stored value of the function a buffer. */
static void bind_buffers(Assignment *b) {
    Lower *lo = b->lo;
    const ReadIndex rs = index_reads(lo, &b->groups);
    for (Op *op = lo->f->first; op; op = op->next)
        if (op->kind == OP_ASSIGN || op->kind == OP_NEXT) bind_assigned_buf(b, &rs, op);
    for (Op *op = lo->f->first; op; op = op->next)
        if (op->kind == OP_OUTPUT) bind_output_buf(b, op);
    bind_temps(b, &rs);
}

/* ---- copies ---------------------------------------------------------------------------------- */
/* Appends the fusion that copies buffer `from` to buffer `to` for the effect. */
static void add_copy(const Assignment *b, PFusions *list, const Op *effect, int from, int to) {
    Arena *a = b->lo->a;
    PFusion *f = NEW(a, PFusion);
    f->kind = PF_COPY;
    vec_push(a, &f->roots, effect);
    f->n_bufs = 2;
    f->bufs = NEWN(a, int, 2);
    f->bufs[0] = from;
    f->bufs[1] = to;
    vec_push(a, list, f);
}

/* Copies variables to temporaries where a copy at the end of the phase reads the old value and a
 * step may have overwritten that by then. */
static void save_old_values(Assignment *b, PFusions *list) {
    Lower *lo = b->lo;
    for (int i = 0; i < b->copies_at_end.n; i++) {
        Copy *c = &b->copies_at_end.v[i];
        const Op *base = cg_info(lo, c->effect->in[0])->base;
        c->from = cg_buf(lo, c->effect->in[0]);
        bool changes = base->kind == OP_VAR || (base->kind == OP_ARG && base->imm < lo->n_carried);
        if (!changes || c->from == c->to) continue;
        int t = cg_temp_buf(lo, arena_printf(lo->a, "%s_old", cg_value_name(lo, base)),
                            base->type.dt, cg_count(lo, &base->type));
        lo->p->bufs.v[t]->type = base->type;
        add_copy(b, list, c->effect, c->from, t);
        c->from = t;
    }
}

/* ---- the pass -------------------------------------------------------------------------------- */
/* The op that stands for result k of a call or loop: the call itself for result 0, or the `result`
 * op that reads it. NULL: nobody reads result k. */
const Op *cg_result_of(const OpList *roots, int k) {
    for (int i = 1; i < roots->n; i++)
        if ((int)roots->v[i]->imm == k) return roots->v[i];
    return k == 0 ? roots->v[0] : NULL;
}

static bool assign_in(Lower *lo, PFusions *list);

/* Gives the operands of a loop their buffers, and the values of its body. A value that changes has
 * the buffer in which it ends as the loop's result. */
static bool assign_loop(Lower *lo, PFusion *f) {
    const Op *op = f->roots.v[0];
    int carried = func_n_carried(op->body), *args = NEWN(lo->a, int, (size_t)op->n_in + 1);
    for (int k = 0; k < op->n_in; k++) {
        const Op *r = k < carried ? cg_result_of(&f->roots, k) : NULL, *x = op->in[k];
        const char *name = arena_printf(lo->a, "%s_%d", cg_value_name(lo, op), k);
        args[k] = k >= carried ? cg_buf(lo, x)
                  : r && cg_info(lo, r)->storage != HOW_DEAD
                      ? cg_buf(lo, r)
                      : cg_temp_buf(lo, name, x->type.dt, cg_count(lo, &x->type));
        if (k < carried) lo->p->bufs.v[args[k]]->type = x->type;
    }
    f->n_bufs = op->n_in;
    f->bufs = args;
    Lower around = *lo;
    bool ok = cg_enter_body(lo, f) && assign_in(lo, &f->body);
    cg_back_to(lo, &around);
    return ok;
}

/* Writes the buffers of its values into a fusion; of a loop its operands'. */
static bool assign_fusion(Lower *lo, PFusion *f) {
    if (f->kind == PF_LOOP) return assign_loop(lo, f);
    if (f->kind == PF_EFFECT || f->kind == PF_COPY) return true;
    f->n_bufs = f->roots.n;
    f->bufs = NEWN(lo->a, int, (size_t)f->roots.n + 1);
    for (int i = 0; i < f->roots.n; i++) f->bufs[i] = cg_info(lo, f->roots.v[i])->buf;
    return true;
}

/* Checks that for each saved value that the function reads there is an output of a phase that runs
 * before: of @load, @encode or @ends. False after diagnostics. */
static bool check_saved(Lower *lo) {
    bool ok = true;
    for (Op *op = lo->f->first; op; op = op->next) {
        if (op->kind != OP_SAVED) continue;
        int id = cg_input_buf(lo, op);
        const PBuf *b = lo->p->bufs.v[id];
        if (b->phase >= 0) continue;
        diag_add(lo->c, DIAG_E0540, op->span, "no phase saves an output called '%s'", op->name);
        ok = false;
    }
    return ok;
}

/* Gives the values of the current function buffers, and adds copies to its fusions. False after
 * diagnostics. */
static bool assign_in(Lower *lo, PFusions *list) {
    Assignment b = {.lo = lo};
    if (!check_saved(lo) || !cg_find_groups(lo, list, &b.groups)) return false;
    bind_buffers(&b);
    PFusions all = {0};
    save_old_values(&b, &all);
    for (int i = 0; i < list->n; i++) {
        PFusion *f = list->v[i];
        const Op *op = f->roots.v[0];
        for (int k = 0; k < b.copies_at_output.n && f->kind == PF_EFFECT; k++)
            if (b.copies_at_output.v[k].effect == op)
                add_copy(&b, &all, op, cg_buf(lo, op->in[0]), b.copies_at_output.v[k].to);
        if (!assign_fusion(lo, f)) return false;
        vec_push(lo->a, &all, f);
    }
    for (int i = 0; i < b.copies_at_end.n; i++) {
        const Copy *c = &b.copies_at_end.v[i];
        if (c->from != c->to) add_copy(&b, &all, c->effect, c->from, c->to);
    }
    *list = all;
    pass_remark(lo->pc, lo->f->span, "assign-buffers",
                "@%s: %d values are computed in an output's or a variable's memory, %d in that of "
                "an operand which nobody reads after them, %d are copied in the end",
                lo->f->name, b.n_in_place, b.n_shared, b.copies_at_end.n);
    return true;
}

/* Gives the values of each phase buffers. */
static bool run(PassCtx *pc, Plan *p) {
    Lower lo = cg_lower(pc, p);
    for (int i = 0; i < p->phases.n; i++) {
        lo.phase = i;
        if (!cg_enter_func(&lo, p->phases.v[i]->func) || !assign_in(&lo, &p->phases.v[i]->fusions))
            return false;
    }
    return true;
}

const Pass plan_pass_assign_buffers = {
    .name = "assign-buffers",
    .summary = "give each stored value a buffer, in place where that is safe",
    .needs = PLAN_FUSIONS,
    .bars = PLAN_BUFFERS,
    .gives = PLAN_BUFFERS,
    .run_plan = run,
    .required = true,
};
