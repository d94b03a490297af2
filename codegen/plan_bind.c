/* Which buffer each stored value of a phase has: an output's or a variable's own where that is
 * safe, that of an operand which nobody needs any more, else a temporary. */
#include <assert.h>
#include <string.h>

#include "codegen/lower.h"

int cg_unit_of(const Units *us, const Op *op) {
    for (int i = 0; i < us->n; i++)
        for (int k = 0; k < us->v[i].roots.n; k++)
            if (us->v[i].roots.v[k] == op) return i;
    return -1;
}

/* ---- variables and outputs ------------------------------------------------------------------ */
/* What an `assign` or `next` replaces, as it is read. */
static Op replaced_by(const Op *as) {
    if (as->kind == OP_ASSIGN) return (Op){.kind = OP_VAR, .var = as->var, .type = as->var->type};
    return (Op){.kind = OP_ARG, .imm = as->imm, .type = as->in[0]->type};
}

/* May the unit that computes x write it over the old value?  Only when nobody reads that
 * later, nor this unit at another index. */
static bool in_place(const Lower *lo, const Units *us, const Op *assign) {
    const Op *x = cg_info(lo, assign->in[0])->base;
    Op var = replaced_by(assign);
    if (!type_eq(&x->type, &var.type)) return false;
    int at = cg_unit_of(us, x);
    assert(at >= 0);
    for (int i = at; i < us->n; i++) {
        if (us->v[i].kind == UNIT_LOOP) return false; /* its operands, again and again */
        for (int k = 0; k < us->v[i].roots.n; k++) {
            const Op *root = us->v[i].roots.v[k];
            CgReads r = cg_reads(lo, root, &var);
            bool rows = us->v[i].kind == UNIT_ROWS && !us->v[i].group && op_has(root, OPT_ELEM);
            if (r.elsewhere || (r.aligned && (i > at || !rows))) return false;
        }
    }
    return true;
}

static bool is_saved(const Lower *lo, const char *name) {
    for (int i = 0; i < lo->m->funcs.n; i++)
        for (Op *op = lo->m->funcs.v[i]->first; op; op = op->next)
            if (op->kind == OP_SAVED && !strcmp(op->name, name)) return true;
    return false;
}

/* What @load and @encode output for others to read is saved. */
static int output_buf(Lower *lo, const Op *out) {
    bool saved = phase_saves(lo->f->name) && is_saved(lo, out->name);
    const Type *t = &out->in[0]->type;
    const char *name =
        arena_printf(lo->a, "%s_%s", cg_ident(lo->a, lo->f->name), cg_ident(lo->a, out->name));
    int id = saved ? cg_saved_buf(lo, out->name, t)
                   : cg_new_buf(lo, PB_OUTPUT, name, t->dt, cg_count(lo, t))->id;
    PBuf *b = lo->p->bufs.v[id];
    b->type = *t;
    b->phase = lo->phase;
    b->io_name = out->name;
    return b->id;
}

static void bind_output(CgBuild *b, const Op *out) {
    Lower *lo = b->lo;
    const OpInfo *in = cg_info(lo, out->in[0]);
    OpInfo *base = cg_info(lo, in->base);
    int buf = output_buf(lo, out);
    if (base->how == HOW_STORED && base->buf < 0) {
        base->buf = buf;
        return;
    }
    CgCopy c = {.effect = out, .to = buf};
    if (base->how == HOW_SOURCE)
        vec_push(lo->a, &b->now, c);
    else
        vec_push(lo->a, &b->last, c);
}

static void bind_assign(CgBuild *b, const Op *as) {
    Lower *lo = b->lo;
    OpInfo *base = cg_info(lo, cg_info(lo, as->in[0])->base);
    Op var = replaced_by(as);
    int buf = cg_source_buf(lo, &var);
    if (base->how == HOW_STORED && base->buf < 0 && in_place(lo, &b->units, as)) {
        base->buf = buf;
        return;
    }
    CgCopy c = {.effect = as, .to = buf};
    vec_push(lo->a, &b->last, c);
}

/* ---- temporaries ---------------------------------------------------------------------------- */
/* Notes unit u as the last reader of every stored value that op is computed from. */
static void note_reads(const Lower *lo, const Op *op, bool root, int u, int *last) {
    const OpInfo *i = cg_info(lo, op);
    if (lo->seen[op->id]) return;
    lo->seen[op->id] = 1;
    if (!root && i->how != HOW_INLINE) {
        last[i->base->id] = u;
        return;
    }
    for (int k = 0; k < op->n_in; k++) note_reads(lo, op->in[k], false, u, last);
}

/* The last unit that reads each stored value, or one after all units where a copy does. */
static int *last_reads(const CgBuild *b) {
    const Lower *lo = b->lo;
    int *last = NEWN(lo->a, int, (size_t)lo->f->n_ops + 1);
    for (int u = 0; u < b->units.n; u++)
        for (int k = 0; k < b->units.v[u].roots.n; k++) {
            memset(lo->seen, 0, (size_t)lo->f->n_ops + 1);
            note_reads(lo, b->units.v[u].roots.v[k], true, u, last);
            const Guard *g = b->units.v[u].guard;
            if (g) last[cg_info(lo, g->cond)->base->id] = u + 1; /* nor is it written by the unit */
        }
    for (int i = 0; i < b->last.n; i++)
        last[cg_info(lo, b->last.v[i].effect->in[0])->base->id] = b->units.n;
    return last;
}

/* Is x a temporary that unit u may write over, as nobody reads it later, nor this unit at
 * another index than it writes? */
static bool may_take(const CgBuild *b, const int *last, const Op *x, int u) {
    const Lower *lo = b->lo;
    const OpInfo *i = cg_info(lo, x);
    const Unit *unit = &b->units.v[u];
    if (i->how != HOW_STORED || i->given || i->buf < 0 || last[x->id] != u) return false;
    if (lo->p->bufs.v[i->buf]->kind != PB_TEMP) return false;
    for (int k = 0; k < unit->roots.n; k++) {
        const Op *r = unit->roots.v[k];
        if (r == x || !op_has(r, OPT_ELEM) || cg_reads(lo, r, x).elsewhere) return false;
    }
    return true;
}

/* Sums that a kernel makes in a row of its result, where data decides the row's width: the row
 * cannot hold an operand, too. */
static bool sums_in_row(const Lower *lo, const Op *op, bool root) {
    int64_t n;
    if (!root && cg_info(lo, op)->how != HOW_INLINE) return false;
    const Type *t = &op->type;
    if (op_has(op, OPT_REDUCE)) return !t->rank || !expr_is_const(t->dim[t->rank - 1]->size, &n);
    for (int i = 0; i < op->n_in; i++)
        if (sums_in_row(lo, op->in[i], false)) return true;
    return false;
}

/* An operand of the same type whose buffer op may be computed in; -1: none. */
static int operand_buf(CgBuild *b, const int *last, const Op *op) {
    const Lower *lo = b->lo;
    int u = cg_unit_of(&b->units, op);
    const Unit *unit = &b->units.v[u];
    if (unit->kind != UNIT_ROWS || unit->group || !op_has(op, OPT_ELEM)) return -1;
    if (sums_in_row(lo, op, true)) return -1;
    for (const Op *x = lo->f->first; x != op; x = x->next)
        if (type_eq(&x->type, &op->type) && may_take(b, last, x, u)) {
            cg_info(lo, x)->given = true;
            return cg_info(lo, x)->buf;
        }
    return -1;
}

static void bind_temps(CgBuild *b) {
    Lower *lo = b->lo;
    const int *last = last_reads(b);
    for (Op *op = lo->f->first; op; op = op->next) {
        OpInfo *i = cg_info(lo, op);
        if (i->how == HOW_SOURCE) i->buf = cg_source_buf(lo, op);
        if (i->how != HOW_STORED || i->buf >= 0) continue;
        i->buf = operand_buf(b, last, op);
        if (i->buf >= 0) continue;
        i->buf = cg_temp(lo, cg_value_name(lo, op), op->type.dt, cg_count(lo, &op->type));
        lo->p->bufs.v[i->buf]->type = op->type;
    }
}

void cg_bind_buffers(CgBuild *b) {
    Lower *lo = b->lo;
    for (Op *op = lo->f->first; op; op = op->next)
        if (op->kind == OP_ASSIGN || op->kind == OP_NEXT) bind_assign(b, op);
    for (Op *op = lo->f->first; op; op = op->next)
        if (op->kind == OP_OUTPUT) bind_output(b, op);
    bind_temps(b);
}
