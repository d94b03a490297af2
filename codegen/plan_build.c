/* From a module to its step plan, one phase per function.
 *
 *   1. decide what each operation becomes (lower.h: How), backwards from the effects
 *   2. cut the stored ones into units: a kernel over several roots, a library call, ..
 *   3. give every stored value a buffer: an output's or a variable's own where that is
 *      safe, that of an operand which nobody needs any more, else a temporary
 *   4. generate the steps of each unit in order, then the copies that must come last
 *   5. order the steps and find those that run in blocks of rows (plan_order.c, plan_blocks.c),
 *      join neighbouring elementwise kernels in one launch (plan_join.c), bring products together
 *      that a device makes with one call (plan_group.c), and find the life of every temporary */
#include "codegen/lower.h"

#include <assert.h>
#include <string.h>

/* ---- 1. what each operation becomes ---------------------------------------------------- */
static bool is_source(const Op *op) {
    return op_has(op, OPT_SOURCE);
}

/* Cheap enough to be computed wherever it is read. */
static bool always_inline(const Op *op) {
    switch (op->kind) {
    case OP_CONST:
    case OP_IOTA:
    case OP_SIZE:
    case OP_RANDOM:
    case OP_VALID:
    case OP_INDEX:
        return true;
    default:
        return false;
    }
}

/* A reduction without rows of its own would be repeated in every row of its user. */
static bool has_rows(const Op *op) {
    for (int i = 0; i < op->type.rank; i++)
        if (op->type.dim[i]->kind != SP_DIM) return true;
    return false;
}

static bool may_inline(const Lower *lo, const Op *op) {
    if (op_has(op, OPT_LIB) || cg_info(lo, op)->gemm || cg_info(lo, op)->spmm) return false;
    if (always_inline(op)) return true;
    if (!op->fused) return false;
    return !(op_has(op, OPT_REDUCE) && !has_rows(op));
}

/* Operands that must lie in memory: of effects and of library calls. */
static bool wants_memory(const Lower *lo, const Op *user) {
    return op_has(user, OPT_EFFECT) || op_has(user, OPT_LIB) || cg_info(lo, user)->gemm;
}

/* By whom a value is read. */
typedef struct {
    int n;
    const Op *last;
} Uses;

/* Nobody but a concatenation reads it, which writes its parts itself. */
static bool is_part(const Op *op, const Uses *u) {
    return u->n == 1 && cg_concat_continues(op, u->last);
}

static void decide(Lower *lo, Op *op, bool used, bool in_memory) {
    OpInfo *i = cg_info(lo, op);
    i->base = op;
    if (!used)
        i->how = HOW_DEAD;
    else if (is_source(op))
        i->how = HOW_SOURCE;
    else if (op->type.dt != DT_VOID)
        i->how = may_inline(lo, op) && !in_memory ? HOW_INLINE : HOW_STORED;
}

/* The first rows of a value are where it is. */
static bool is_first_rows(const Op *op) {
    int64_t off;
    return op->kind == OP_SLICE && op->type.rank && op->over[1] == op->type.dim[0] &&
           op->in[0]->type.dim[0] == op->over[0] && expr_is_const(op->off, &off) && off == 0;
}

/* A view of bytes that exist is those bytes.  `whole`: effects take the buffer as it is. */
static void find_aliases(Lower *lo, const bool *whole) {
    for (Op *op = lo->f->first; op; op = op->next) {
        OpInfo *i = cg_info(lo, op);
        if (i->how == HOW_DEAD || (op->kind != OP_VIEW && (!is_first_rows(op) || whole[op->id])))
            continue;
        const OpInfo *x = cg_info(lo, op->in[0]);
        if (x->how != HOW_ALIAS && x->how != HOW_STORED && x->how != HOW_SOURCE) continue;
        i->how = HOW_ALIAS;
        i->base = x->base;
    }
}

static void classify(Lower *lo) {
    func_number(lo->f);
    int n = lo->f->n_ops;
    lo->info = NEWN(lo->a, OpInfo, (size_t)n + 1);
    lo->seen = NEWN(lo->a, unsigned char, (size_t)n + 1);
    bool *used = NEWN(lo->a, bool, (size_t)n + 1), *memory = NEWN(lo->a, bool, (size_t)n + 1);
    bool *whole = NEWN(lo->a, bool, (size_t)n + 1);
    Uses *uses = NEWN(lo->a, Uses, (size_t)n + 1);
    for (Op *op = lo->f->first; op; op = op->next) {
        cg_info(lo, op)->buf = -1;
        cg_info(lo, op)->gemm = cg_gemm_fits(lo, op);
    }
    lo->guard = guards_of(lo->a, lo->f);
    for (int i = 0; i < n; i++) /* conditions of steps */
        for (const Guard *g = lo->guard[i]; g; g = g->up) memory[g->cond->id] |= g->heavy;
    for (Op *op = lo->f->last; op; op = op->prev) {
        const Op *dense;
        used[op->id] |= op_acts(op);
        cg_info(lo, op)->spmm = used[op->id] && cg_wants_spmm(lo, op, &dense);
        if (cg_info(lo, op)->spmm) memory[dense->id] = true;
        decide(lo, op, used[op->id], memory[op->id]);
        if (used[op->id] && !memory[op->id] && is_part(op, &uses[op->id]))
            cg_info(lo, op)->how = HOW_INLINE;
        for (int k = 0; k < op->n_in && used[op->id]; k++) {
            used[op->in[k]->id] = true;
            uses[op->in[k]->id].n++;
            uses[op->in[k]->id].last = op;
            memory[op->in[k]->id] |= wants_memory(lo, op);
            whole[op->in[k]->id] |=
                op_has(op, OPT_EFFECT) || op->ext || (op->kind == OP_VIEW && whole[op->id]);
        }
    }
    find_aliases(lo, whole);
}

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

static int unit_of(const Units *us, const Op *op) {
    for (int i = 0; i < us->n; i++)
        for (int k = 0; k < us->v[i].roots.n; k++)
            if (us->v[i].roots.v[k] == op) return i;
    return -1;
}

/* ---- 3. buffers --------------------------------------------------------------------------------
 */
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
    int at = unit_of(us, x);
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

typedef struct {
    const Op *effect;
    int from, to;
} Copy;

typedef struct {
    Lower *lo;
    Units units;
    VEC(Copy) now;  /* outputs of values that stay: where the output stands */
    VEC(Copy) last; /* at the end of the phase */
} Build;

static void bind_output(Build *b, const Op *out) {
    Lower *lo = b->lo;
    const OpInfo *in = cg_info(lo, out->in[0]);
    OpInfo *base = cg_info(lo, in->base);
    int buf = output_buf(lo, out);
    if (base->how == HOW_STORED && base->buf < 0) {
        base->buf = buf;
        return;
    }
    Copy c = {.effect = out, .to = buf};
    if (base->how == HOW_SOURCE)
        vec_push(lo->a, &b->now, c);
    else
        vec_push(lo->a, &b->last, c);
}

static void bind_assign(Build *b, const Op *as) {
    Lower *lo = b->lo;
    OpInfo *base = cg_info(lo, cg_info(lo, as->in[0])->base);
    Op var = replaced_by(as);
    int buf = cg_source_buf(lo, &var);
    if (base->how == HOW_STORED && base->buf < 0 && in_place(lo, &b->units, as)) {
        base->buf = buf;
        return;
    }
    Copy c = {.effect = as, .to = buf};
    vec_push(lo->a, &b->last, c);
}

/* The last unit that reads each stored value, or one after all units where a copy does. */
static int *last_reads(const Build *b) {
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
static bool may_take(const Build *b, const int *last, const Op *x, int u) {
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
static int operand_buf(Build *b, const int *last, const Op *op) {
    const Lower *lo = b->lo;
    int u = unit_of(&b->units, op);
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

static void bind_temps(Build *b) {
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

static void bind_buffers(Build *b) {
    Lower *lo = b->lo;
    for (Op *op = lo->f->first; op; op = op->next)
        if (op->kind == OP_ASSIGN || op->kind == OP_NEXT) bind_assign(b, op);
    for (Op *op = lo->f->first; op; op = op->next)
        if (op->kind == OP_OUTPUT) bind_output(b, op);
    bind_temps(b);
}

/* ---- 4. steps
 * ------------------------------------------------------------------------------------- */
static const char *note_of(Lower *lo, const Op *op) {
    StrBuf b = sb_new(lo->a);
    const char *name = op->hint ? op->hint : op->name ? op->name : op->var ? op->var->path : NULL;
    if (name) sb_printf(&b, "%s = ", name);
    sb_puts(&b, op_mnemonic(op->kind));
    for (int i = 0; i < op->n_in; i++) {
        const char *h = op->in[i]->hint;
        sb_printf(&b, "%s %s", i ? "," : "", h ? h : op_mnemonic(op->in[i]->kind));
    }
    return b.s;
}

PStep *cg_step(Lower *lo, PStepKind kind, const Op *op, int n_bufs) {
    PStep *s = NEW(lo->a, PStep);
    s->kind = kind;
    s->pred = -1;
    s->op = op;
    s->span = op->span;
    s->note = note_of(lo, op);
    s->n_bufs = n_bufs;
    s->bufs = NEWN(lo->a, int, (size_t)n_bufs + 1);
    vec_push(lo->a, &lo->p->phases.v[lo->phase]->steps, s);
    return s;
}

void cg_step_kernel(Gen *g, const Op *op) {
    LKernel *k = cg_gen_done(g);
    PStep *s = cg_step(g->lo, PS_KERNEL, op, k->bufs.n);
    for (int i = 0; i < k->bufs.n; i++) s->bufs[i] = g->arg_buf.v[i];
    s->kernel = k;
    for (const LStmt *st = k->body; st; st = st->next)
        if (st->kind == L_FOR && st->sched.parallel) {
            s->extent = st->extent;
            s->balance = st->sched.balance;
        }
    vec_push(g->a, &g->lo->p->kernels, k);
}

static void step_copy(Lower *lo, const Op *effect, int from, int to) {
    PStep *s = cg_step(lo, PS_COPY, effect, 2);
    s->bufs[0] = from;
    s->bufs[1] = to;
}

/* The library wants a mask for every element. */
static void step_rank(Lower *lo, const Op *op) {
    Type full = op->in[0]->type;
    full.dt = DT_I1;
    bool same = type_eq(&op->in[1]->type, &full);
    int mask = same ? cg_buf(lo, op->in[1]) : cg_copy_as(lo, op->in[1], &full, op, "_mask");
    PStep *s = cg_step(lo, PS_RANK, op, 3);
    s->bufs[0] = cg_buf(lo, op->in[0]);
    s->bufs[1] = mask;
    s->bufs[2] = cg_buf(lo, op);
    s->rank_axis = type_find(&op->in[0]->type, op->over[0]);
}

/* Relations that the output `name` of @load selects the edges of. */
static void step_relations(Lower *lo, const Op *out) {
    if (strcmp(lo->f->name, "load")) return;
    for (int i = 0; i < lo->m->spaces.n; i++) {
        Space *s = lo->m->spaces.v[i];
        if (s->kind != SP_EDGE || s->rel != REL_WHERE || strcmp(s->cond, out->name)) continue;
        PStep *st = cg_step(lo, PS_RELATION, out, 1);
        st->bufs[0] = cg_buf(lo, out->in[0]);
        st->space = s;
    }
}

static void step_effect(Build *b, const Op *op) {
    Lower *lo = b->lo;
    if (op->kind == OP_OUTPUT) {
        for (int i = 0; i < b->now.n; i++)
            if (b->now.v[i].effect == op) step_copy(lo, op, cg_buf(lo, op->in[0]), b->now.v[i].to);
        step_relations(lo, op);
        return;
    }
    int first = op->when;
    PStep *s = cg_step(lo, op->kind == OP_PRINT ? PS_PRINT : PS_ASSERT, op, op->n_in - first);
    for (int i = first; i < op->n_in; i++) s->bufs[i - first] = cg_buf(lo, op->in[i]);
    if (op->when) s->pred = cg_buf(lo, op->in[0]);
    s->text = op->name;
}

/* The k-th result of a call: itself, or the `result` that asks for it. */
static const Op *result_of(const Unit *u, int k) {
    for (int i = 1; i < u->roots.n; i++)
        if ((int)u->roots.v[i]->imm == k) return u->roots.v[i];
    return k == 0 ? u->roots.v[0] : NULL;
}

/* Types of what a call gives; those of a gradient follow its inputs. */
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

/* A result that nobody reads is written all the same, into scratch. */
static void step_call(Lower *lo, const Unit *u) {
    const Op *op = u->roots.v[0];
    const Type **types = NEWN(lo->a, const Type *, 2 * (size_t)op->n_in + 1);
    int n_in = op->n_in - op->when, n_out = call_results(op, types + n_in);
    PStep *s = cg_step(lo, PS_CALL, op, n_in + n_out);
    s->n_in = n_in;
    s->types = types;
    if (op->when) s->pred = cg_buf(lo, op->in[0]);
    for (int i = 0; i < n_in; i++) {
        types[i] = &op->in[i + op->when]->type;
        s->bufs[i] = cg_buf(lo, op->in[i + op->when]);
    }
    for (int k = 0; k < n_out; k++) {
        const Op *r = result_of(u, k);
        const Type *t = types[n_in + k];
        const char *name = arena_printf(lo->a, "%s_unused", cg_value_name(lo, op));
        s->bufs[n_in + k] = r && cg_info(lo, r)->how != HOW_DEAD
                                ? cg_buf(lo, r)
                                : cg_temp(lo, name, t->dt, cg_count(lo, t));
    }
}

static bool lower_body(Lower *lo, Func *f, const int *args, int carried);

/* What changes starts as a copy of its operand and ends as the loop's result; the body's steps
 * stand between PS_LOOP and PS_END. */
static void step_loop(Lower *lo, const Unit *u) {
    const Op *op = u->roots.v[0];
    int carried = body_carried(op->body), *args = NEWN(lo->a, int, (size_t)op->n_in);
    for (int k = 0; k < op->n_in; k++) {
        const Op *r = k < carried ? result_of(u, k) : NULL, *x = op->in[k];
        const char *name = arena_printf(lo->a, "%s_%d", cg_value_name(lo, op), k);
        args[k] = k >= carried ? cg_buf(lo, x)
                  : r && cg_info(lo, r)->how != HOW_DEAD
                      ? cg_buf(lo, r)
                      : cg_temp(lo, name, x->type.dt, cg_count(lo, &x->type));
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

/* Steps from `from` on are wanted only where the unit is, if its condition is known by then. */
static void skip_steps(Build *b, int u, int from) {
    Lower *lo = b->lo;
    const Unit *unit = &b->units.v[u];
    const Guard *g = unit->guard;
    if (!g || unit->kind == UNIT_CALL || unit->kind == UNIT_LOOP || unit->kind == UNIT_EFFECT)
        return;
    const OpInfo *i = cg_info(lo, g->cond);
    bool known = i->how == HOW_SOURCE || (i->how == HOW_STORED && unit_of(&b->units, g->cond) < u);
    const PPhase *ph = lo->p->phases.v[lo->phase];
    for (int k = from; k < ph->steps.n && known; k++) {
        ph->steps.v[k]->pred = i->buf;
        ph->steps.v[k]->pred_not = !g->holds;
        ph->steps.v[k]->pred_at = g->cond->span;
    }
}

static void step_unit(Build *b, const Unit *u) {
    Lower *lo = b->lo;
    const Op *op = u->roots.v[0];
    switch (u->kind) {
    case UNIT_ROWS:
        if (u->group)
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

/* Copies that read a variable which another copy or kernel writes go through a
 * temporary, taken before anything is written. */
static void save_old_values(Build *b) {
    Lower *lo = b->lo;
    for (int i = 0; i < b->last.n; i++) {
        Copy *c = &b->last.v[i];
        const Op *base = cg_info(lo, c->effect->in[0])->base;
        c->from = cg_buf(lo, c->effect->in[0]);
        bool changes = base->kind == OP_VAR || (base->kind == OP_ARG && base->imm < lo->carried);
        if (!changes || c->from == c->to) continue;
        int t = cg_temp(lo, arena_printf(lo->a, "%s_old", cg_value_name(lo, base)), base->type.dt,
                        cg_count(lo, &base->type));
        lo->p->bufs.v[t]->type = base->type;
        step_copy(lo, c->effect, c->from, t);
        c->from = t;
    }
}

static void last_copies(Build *b) {
    for (int i = 0; i < b->last.n; i++) {
        const Copy *c = &b->last.v[i];
        if (c->from != c->to) step_copy(b->lo, c->effect, c->from, c->to);
    }
}

/* ---- 5. lifetimes
 * ---------------------------------------------------------------------------------- */
static void used_in(Plan *p, int buf, int step) {
    PBuf *b = p->bufs.v[buf];
    if (b->kind != PB_TEMP) return;
    if (b->first < 0 || step < b->first) b->first = step;
    if (step > b->last) b->last = step;
}

/* What is there before a loop and used in it is there until it ends. */
static void live_through(Plan *p, int phase, int from, int to) {
    for (int i = 0; i < p->bufs.n; i++) {
        PBuf *b = p->bufs.v[i];
        bool across = b->first >= 0 && b->first < from && b->last >= from && b->last < to;
        if (b->kind == PB_TEMP && b->phase == phase && across) b->last = to;
    }
}

static void lifetimes(Plan *p, int phase) {
    const PPhase *ph = p->phases.v[phase];
    for (int i = 0; i < ph->steps.n; i++) {
        const PStep *s = ph->steps.v[i];
        for (int k = 0; k < s->n_bufs; k++) used_in(p, s->bufs[k], i);
        if (s->pred >= 0) used_in(p, s->pred, i);
        for (int k = 0; s->epilogue && k < s->epilogue->n_covers; k++)
            for (int j = 0; j < s->epilogue->covers[k]->n_bufs; j++)
                used_in(p, s->epilogue->covers[k]->bufs[j], i);
        for (int k = 0; s->group && k < s->group->steps.n; k++) /* all at once */
            for (int j = 0; j < 3; j++) used_in(p, s->group->steps.v[k]->bufs[j], i);
    }
    for (int i = ph->steps.n - 1; i >= 0; i--) /* inner loops first */
        if (ph->steps.v[i]->kind == PS_LOOP) live_through(p, phase, i, ph->steps.v[i]->other);
}

/* ---- all
 * -------------------------------------------------------------------------------------------- */
static bool check_dense(Lower *lo) {
    for (Op *op = lo->f->first; op; op = op->next) {
        if (op->type.layout != LAYOUT_CSR) continue;
        diag(lo->c, DIAG_E0540, op->span,
             "a value is still sparse: pass 'lower-csr' must run first");
        return false;
    }
    return true;
}

static bool check_saved(Lower *lo) {
    bool ok = true;
    for (Op *op = lo->f->first; op; op = op->next) {
        if (op->kind != OP_SAVED) continue;
        int id = cg_source_buf(lo, op);
        const PBuf *b = lo->p->bufs.v[id];
        if (b->phase >= 0) continue;
        diag(lo->c, DIAG_E0540, op->span, "no output of @load is called '%s'", op->name);
        ok = false;
    }
    return ok;
}

/* The steps of a function, at the end of the phase. */
static bool lower_steps(Lower *lo) {
    if (!check_dense(lo) || !check_saved(lo)) return false;
    Build b = {.lo = lo};
    classify(lo);
    b.units = cg_cut_units(lo);
    bind_buffers(&b);
    save_old_values(&b);
    for (int i = 0; i < b.units.n; i++) {
        int from = lo->p->phases.v[lo->phase]->steps.n;
        step_unit(&b, &b.units.v[i]);
        skip_steps(&b, i, from);
    }
    last_copies(&b);
    return true;
}

static bool lower_body(Lower *lo, Func *f, const int *args, int carried) {
    Lower outer = *lo;
    lo->f = f;
    lo->args = args;
    lo->carried = carried;
    bool ok = lower_steps(lo);
    lo->f = outer.f;
    lo->args = outer.args;
    lo->carried = outer.carried;
    lo->info = outer.info;
    lo->guard = outer.guard;
    lo->seen = outer.seen;
    return ok;
}

static bool lower_func(Lower *lo, Func *f) {
    PPhase *ph = NEW(lo->a, PPhase);
    ph->name = f->name;
    ph->func = f;
    lo->f = f;
    lo->phase = lo->p->phases.n;
    vec_push(lo->a, &lo->p->phases, ph);
    return lower_steps(lo);
}

Plan *plan_build(Ctx *c, Module *m) {
    return plan_build_for(c, m, NULL, SPMM_OWN);
}

Plan *plan_build_for(Ctx *c, Module *m, const char *device, SpmmChoice spmm) {
    Plan *p = NEW(m->a, Plan);
    p->m = m;
    p->device = device;
    p->spmm = device ? spmm : SPMM_OWN;
    Lower lo = {.c = c, .a = m->a, .m = m, .p = p};
    if (!cg_read_one_way(&lo)) return NULL;
    Func *load = func_find(m, "load");
    if (load && !lower_func(&lo, load)) return NULL;
    for (int i = 0; i < m->funcs.n; i++)
        if (m->funcs.v[i] != load && !m->funcs.v[i]->body && !lower_func(&lo, m->funcs.v[i]))
            return NULL;
    cg_order_steps(&lo);
    for (int i = 0; i < p->phases.n; i++) {
        if (device) cg_epilogues(&lo, i);
        cg_join_steps(&lo, i);
        if (device) cg_group_products(&lo, i);
        lifetimes(p, i);
    }
    if (p->spmm != SPMM_OWN) cg_sparse_products(&lo);
    if (device) cg_record_loops(p);
    return p;
}
