/* Which buffer each stored value of a phase has: an output's or a variable's own where that is
 * safe, that of an operand which nobody needs any more, else a temporary. */
#include <string.h>

#include "codegen/lower/lower.h"

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
    int last_loop_group; /* the last unit that is a loop: it reads its operands again and again */
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
        if (us->v[u].kind == UNIT_LOOP) rs.last_loop_group = u;
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

/* ---- variables and outputs ------------------------------------------------------------------ */
/* An op that reads the old value which an `assign` (of a variable) or `next` (of a loop's operand)
 * replaces. */
static Op replaced_value(const Op *assign) {
    if (assign->kind == OP_ASSIGN)
        return (Op){.kind = OP_VAR, .var = assign->var, .type = assign->var->type};
    return (Op){.kind = OP_ARG, .imm = assign->imm, .type = assign->in[0]->type};
}

/* Whether the group that computes the new value may write it over the old one: nothing reads the
 * old value later, nor does this group read it at another index. */
static bool may_update_in_place(const Lower *lo, const FusionGroups *us, const ReadIndex *index,
                                const Op *assign) {
    const Op *x = cg_info(lo, assign->in[0])->base;
    Op var = replaced_value(assign);
    if (!type_eq(&x->type, &var.type)) return false;
    int group = us->group_of[x->id];
    CTX_HOLDS(lo->c, group >= 0, x->span);
    if (index->last_loop_group >= group) return false; /* its operands, again and again */
    const Op *old = reads_key(index, &var);
    for (int i = 0; old && i < index->reads[old->id].n; i++) {
        const GroupRead *r = &index->reads[old->id].v[i];
        const FusionGroup *u = &us->v[r->group];
        if (r->group < group) continue;
        bool rows = u->kind == UNIT_ROWS && !u->several_shapes && op_has(r->root, OPT_ELEM);
        if (r->how.at_other_index || (r->how.at_own_index && (r->group > group || !rows)))
            return false;
    }
    return true;
}

/* Whether another phase reads this output of @load. */
static bool is_saved(const Lower *lo, const char *name) {
    for (int i = 0; i < lo->m->funcs.n; i++)
        for (Op *op = lo->m->funcs.v[i]->first; op; op = op->next)
            if (op->kind == OP_SAVED && !strcmp(op->name, name)) return true;
    return false;
}

/* The buffer of an output. What @load and @encode output for other phases is saved, and so are
 * layers of all rows. */
static int output_buf(Lower *lo, const Op *out) {
    bool read = is_saved(lo, out->name) || out->use.role == OUT_EMBED;
    bool saved = phase_saves(lo->f->phase) && read;
    const Type *t = &out->in[0]->type;
    const char *name =
        arena_printf(lo->a, "%s_%s", cg_ident(lo->a, lo->f->name), cg_ident(lo->a, out->name));
    int id = saved ? cg_saved_buf(lo, out->name, t)
                   : cg_new_buf(lo, PB_OUTPUT, name, t->dt, cg_count(lo, t))->id;
    PBuf *b = lo->p->bufs.v[id];
    b->type = *t;
    b->phase = lo->phase;
    b->io_name = out->name;
    b->use = out->use;
    return b->id;
}

/* Makes an output's value be computed in the output's own buffer, or records that it must be copied
 * there. */
static void bind_output_buf(CgBuild *b, const Op *out) {
    Lower *lo = b->lo;
    const OpInfo *in = cg_info(lo, out->in[0]);
    OpInfo *base = cg_info(lo, in->base);
    int buf = output_buf(lo, out);
    if (base->storage == HOW_STORED && base->buf < 0) {
        base->buf = buf;
        return;
    }
    CgCopy c = {.effect = out, .to = buf};
    if (base->storage == HOW_SOURCE)
        vec_push(lo->a, &b->copies_at_output, c);
    else
        vec_push(lo->a, &b->copies_at_end, c);
}

/* Makes a variable's new value be computed in the variable's own buffer, or records that it must be
 * copied there. */
static void bind_assigned_buf(CgBuild *b, const ReadIndex *rs, const Op *assign) {
    Lower *lo = b->lo;
    OpInfo *base = cg_info(lo, cg_info(lo, assign->in[0])->base);
    Op var = replaced_value(assign);
    int buf = cg_input_buf(lo, &var);
    if (base->storage == HOW_STORED && base->buf < 0 &&
        may_update_in_place(lo, &b->groups, rs, assign)) {
        base->buf = buf;
        return;
    }
    CgCopy c = {.effect = assign, .to = buf};
    vec_push(lo->a, &b->copies_at_end, c);
}

/* ---- temporaries ---------------------------------------------------------------------------- */
/* By op: the last group that reads its value; the number of groups where a copy at the end of the
 * phase reads it. */
static int *last_reads(const CgBuild *b, const ReadIndex *rs) {
    const Lower *lo = b->lo;
    int *last = NEWN(lo->a, int, (size_t)lo->f->n_ops + 1);
    for (int id = 0; id < lo->f->n_ops; id++)
        for (int i = 0; i < rs->reads[id].n; i++) /* in the order of units */
            last[rs->reads[id].v[i].how.base->id] = rs->reads[id].v[i].group;
    for (int u = 0; u < b->groups.n; u++) {
        const Guard *g = b->groups.v[u].guard; /* nor is its condition written by the unit */
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
    OpList *dying;         /* by unit: values of others that nobody reads after it */
    signed char *row_sums; /* by Op.id: accumulates_in_row(), 1 or -1; 0 = not known */
} TempChoice;

/* Whether group u may write a result over temporary x: nothing reads x later, and the group reads
 * it only at the index that it writes. */
static bool may_reuse(const CgBuild *b, const int *last, const Op *x, int u) {
    const Lower *lo = b->lo;
    const OpInfo *i = cg_info(lo, x);
    const FusionGroup *unit = &b->groups.v[u];
    if (i->storage != HOW_STORED || i->overwritten || i->buf < 0 || last[x->id] != u) return false;
    if (lo->p->bufs.v[i->buf]->kind != PB_TEMP) return false;
    for (int k = 0; k < unit->roots.n; k++) {
        const Op *r = unit->roots.v[k];
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
static int dying_operand_buf(CgBuild *b, const TempChoice *t, const Op *op) {
    const Lower *lo = b->lo;
    int u = b->groups.group_of[op->id];
    const FusionGroup *unit = &b->groups.v[u];
    if (unit->kind != UNIT_ROWS || unit->several_shapes || !op_has(op, OPT_ELEM)) return -1;
    if (accumulates_in_row(lo, op, true, t->row_sums)) return -1;
    for (int i = 0; i < t->dying[u].n && t->dying[u].v[i]->id < op->id; i++) {
        const Op *x = t->dying[u].v[i];
        if (!type_eq(&x->type, &op->type) || !may_reuse(b, t->last, x, u)) continue;
        cg_info(lo, x)->overwritten = true;
        return cg_info(lo, x)->buf;
    }
    return -1;
}

/* Finds the last reader of each temporary, and which temporaries die with each group. */
static TempChoice prepare_temps(const CgBuild *b, const ReadIndex *rs) {
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
static void bind_temps(CgBuild *b, const ReadIndex *rs) {
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

/* Gives each stored value of the phase a buffer. */
void cg_bind_buffers(CgBuild *b) {
    Lower *lo = b->lo;
    const ReadIndex rs = index_reads(lo, &b->groups);
    for (Op *op = lo->f->first; op; op = op->next)
        if (op->kind == OP_ASSIGN || op->kind == OP_NEXT) bind_assigned_buf(b, &rs, op);
    for (Op *op = lo->f->first; op; op = op->next)
        if (op->kind == OP_OUTPUT) bind_output_buf(b, op);
    bind_temps(b, &rs);
}
