/* The buffers of a plan and their names.  Data, variables, inputs, maps and keys
 * have one buffer each, shared by all phases. */
#include "codegen/lower/lower.h"
#include "ir/text.h"
#include "runtime/exec/blocks.h"

#include <ctype.h>
#include <string.h>

/* ---- names ------------------------------------------------------------------------ */
/* s with all characters but letters and digits replaced by '_'. */
const char *cg_ident(Arena *a, const char *s) {
    StrBuf b = sb_new(a);
    sb_puts(&b, "");
    for (; *s; s++) {
        char c = isalnum((unsigned char)*s) ? *s : '_';
        sb_put(&b, &c, 1);
    }
    return b.s;
}

/* A readable name of the value that is unique in the function: "z_12". */
const char *cg_value_name(Lower *lo, const Op *op) {
    const char *hint = op->hint ? op->hint : op_mnemonic(op->kind);
    const char *kind = op->ask == ASK_APART ? "_dump" : "";
    return arena_printf(lo->a, "%s%s_%d", cg_ident(lo->a, hint), kind,
                        cg_info(lo, op)->name_number);
}

/* The name, or the name with a number if it is in `taken`; adds it there. */
const char *cg_unique_name(Lower *lo, StrMap *taken, const char *name) {
    const char *unique = name;
    for (int i = 2; strmap_has(taken, unique); i++) unique = arena_printf(lo->a, "%s_%d", name, i);
    strmap_put(lo->a, taken, unique, lo);
    return unique;
}

PBuf *cg_new_buf(Lower *lo, PBufKind kind, const char *name, DType dt, const Expr *count) {
    const char *unique = cg_unique_name(lo, &lo->names, name);
    PBuf *b = NEW(lo->a, PBuf);
    b->id = lo->p->bufs.n;
    b->kind = kind;
    b->name = unique;
    b->dt = dt;
    b->type = type_scalar(dt);
    b->count = count;
    b->phase = b->first = b->last = b->block = -1;
    vec_push(lo->a, &lo->p->bufs, b);
    return b;
}

const Expr *cg_count(Lower *lo, const Type *t) {
    return type_count(lo->a, t);
}

int cg_temp_buf(Lower *lo, const char *name, DType dt, const Expr *count) {
    PBuf *b = cg_new_buf(
        lo, PB_TEMP, arena_printf(lo->a, "%s_%s", cg_ident(lo->a, lo->f->name), name), dt, count);
    b->phase = lo->phase;
    return b->id;
}

/* The C symbol that a call runs. */
const char *cg_symbol(const Op *call) {
    return call->kind == OP_CALL_GRAD ? call->ext->grad : call->ext->name;
}

/* Whether the step is inside a loop of the phase. */
bool plan_in_loop(const PPhase *ph, int step) {
    for (int i = 0; i < step; i++)
        if (ph->steps.v[i]->kind == PS_LOOP && ph->steps.v[i]->other > step) return true;
    return false;
}

/* Whether the step interrupts the phase: the host must wait for the device. */
bool plan_step_interrupts(const PStep *s, bool on_device) {
    if (s->kind == PS_CALL) return s->op->ext->effect || (on_device && !s->op->ext->device);
    if (s->kind == PS_LOOP) return on_device && !s->recorded;
    return plan_step_facts(s->kind)->by == PBY_HOST && s->kind != PS_END;
}

bool plan_runs_on_batches(const Plan *p, const PPhase *ph) {
    const Sampling *s = &p->m->recipe.sample;
    Phase phase = ph->func->phase;
    if (phase == PHASE_EVAL) return s->batch && s->eval_links;
    if (phase == PHASE_PREDICT && s->serve && s->train_links) return true;
    return s->batch && (phase == PHASE_TRAIN || module_runs_on_batches(p->m, phase));
}

/* ---- sources ------------------------------------------------------------------------- */
/* The buffer with this key, if there is one. */
static PBuf *find_source(Lower *lo, const char *key) {
    return strmap_get(&lo->source_bufs, key);
}

/* Records a buffer under a key. */
static void add_source(Lower *lo, const char *key, PBuf *b) {
    strmap_put(lo->a, &lo->source_bufs, key, b);
}

/* The key of the buffer of a column, and of a variable. */
static const char *column_key(Lower *lo, const Column *c) {
    return arena_printf(lo->a, "data %d", c->id);
}

static const char *var_key(Lower *lo, const Var *v) {
    return arena_printf(lo->a, "var %d", v->id);
}

/* The key of the buffer of a source op. */
static const char *source_key(Lower *lo, const Op *op) {
    if (op->kind == OP_DATA) return column_key(lo, op->col);
    if (op->kind == OP_VAR) return var_key(lo, op->var);
    return arena_printf(lo->a, "%s %s", op_mnemonic(op->kind), op->name);
}

/* The name of that buffer. */
static const char *source_name(Lower *lo, const Op *op) {
    Arena *a = lo->a;
    switch (op->kind) {
    case OP_DATA:
        return arena_printf(a, "data_%s_%s", cg_ident(a, op->col->space->name),
                            cg_ident(a, op->col->name));
    case OP_VAR:
        return arena_printf(a, "var_%s", cg_ident(a, op->var->path));
    default:
        return arena_printf(a, "in_%s", cg_ident(a, op->name));
    }
}

/* Checks that each sparse column is read in one form, as the runtime provides one. False after a
 * diagnostic. */
bool cg_read_one_way(Lower *lo) {
    const Op **first = NEWN(lo->a, const Op *, (size_t)lo->m->cols.n + 1);
    for (int i = 0; i < lo->m->funcs.n; i++)
        for (const Op *op = lo->m->funcs.v[i]->first; op; op = op->next) {
            if (op->kind != OP_DATA) continue;
            const Op **seen = &first[op->col->id];
            if (!*seen) *seen = op;
            if (type_eq(&(*seen)->type, &op->type)) continue;
            diag_add(lo->c, DIAG_E0540, op->span,
                     "'%s.%s' is read both as stored entries and as dense rows",
                     op->col->space->name, op->col->name);
            return false;
        }
    return true;
}

int cg_input_buf(Lower *lo, const Op *op) {
    static const PBufKind kinds[] = {
        [OP_DATA] = PB_DATA, [OP_VAR] = PB_VAR, [OP_INPUT] = PB_INPUT, [OP_SAVED] = PB_SAVED};
    if (op->kind == OP_ARG) return lo->operand_bufs[(int)op->imm];
    const char *key = source_key(lo, op);
    PBuf *b = find_source(lo, key);
    if (b) return b->id;
    Type t = op->kind == OP_VAR ? op->var->type : op->type;
    b = cg_new_buf(lo, kinds[op->kind], source_name(lo, op), t.dt, cg_count(lo, &t));
    b->type = t;
    b->col = op->kind == OP_DATA ? op->col : NULL;
    b->var = op->kind == OP_VAR ? op->var : NULL;
    b->io_name = op->kind == OP_INPUT || op->kind == OP_SAVED ? op->name : NULL;
    add_source(lo, key, b);
    return b->id;
}

/* Whether another phase reads this output of @load. */
static bool is_saved(const Lower *lo, const char *name) {
    for (int i = 0; i < lo->m->funcs.n; i++)
        for (Op *op = lo->m->funcs.v[i]->first; op; op = op->next)
            if (op->kind == OP_SAVED && !strcmp(op->name, name)) return true;
    return false;
}

/* The key of the buffer of an output. What @load and @encode output for other phases is saved, and
 * so are layers of all rows. */
static const char *output_key(Lower *lo, const Op *out, bool *saved) {
    bool read = is_saved(lo, out->name) || out->use.role == OUT_EMBED;
    *saved = phase_saves(lo->f->phase) && read;
    return *saved ? arena_printf(lo->a, "saved %s", out->name)
                  : arena_printf(lo->a, "output %d %s", lo->phase, out->name);
}

int cg_output_buf(Lower *lo, const Op *out) {
    bool saved = false;
    const char *key = output_key(lo, out, &saved);
    if (find_source(lo, key)) return find_source(lo, key)->id;
    const Type *t = &out->in[0]->type;
    const char *func = saved ? "saved" : cg_ident(lo->a, lo->f->name),
               *name = arena_printf(lo->a, "%s_%s", func, cg_ident(lo->a, out->name));
    PBuf *b = cg_new_buf(lo, saved ? PB_SAVED : PB_OUTPUT, name, t->dt, cg_count(lo, t));
    b->type = *t;
    b->phase = lo->phase;
    b->io_name = out->name;
    b->use = out->use;
    add_source(lo, key, b);
    return b->id;
}

/* ---- maps, random keys ------------------------------------------------------------------ */
/* The name of a map for its buffers. */
static const char *map_name(Lower *lo, const Map *m) {
    const char *at =
        m->col ? arena_printf(lo->a, "%s_%s", m->from->name, m->col->name) : m->from->name;
    const char *name = arena_printf(lo->a, "%s_%s", text_MapKind.word[m->kind], at);
    if (m->kind == MAP_ORIG) name = arena_printf(lo->a, "%s_%d", name, m->which);
    return cg_ident(lo->a, name);
}

/* The keys of the buffers of an index array, of global ids, of bounds of chunks, of a random key.
 */
static const char *map_key(Lower *lo, const Map *m, LBufKind array, const Map *order) {
    return arena_printf(lo->a, "map %d %d %d", m->id, (int)array, order ? order->id : -1);
}

static const char *space_key(Lower *lo, const char *what, const Space *s) {
    return arena_printf(lo->a, "%s %d", what, s->id);
}

static const char *stream_key(Lower *lo, int stream) {
    return arena_printf(lo->a, "key %d", stream);
}

/* The buffer of one of the index arrays of map m; order: the array is permuted into the segment
 * order of that map, or NULL. */
int cg_map_buf(Lower *lo, Map *m, LBufKind array, Map *order) {
    static const char *const suffix[] = {
        [LB_MAP_IDX] = "idx", [LB_MAP_PTR] = "ptr", [LB_MAP_PERM] = "perm"};
    const char *key = map_key(lo, m, array, order);
    if (find_source(lo, key)) return find_source(lo, key)->id;
    bool ptr = array == LB_MAP_PTR;
    const Expr *n = ptr ? expr_add(lo->a, m->to->size, expr_const(lo->a, 1)) : m->from->size;
    const char *name = arena_printf(lo->a, "%s_%s", map_name(lo, m), suffix[array]);
    if (order) name = arena_printf(lo->a, "%s_by_%s", name, map_name(lo, order));
    PBuf *b = cg_new_buf(lo, PB_MAP, name, ptr ? DT_I64 : DT_I32, n);
    b->map = m;
    b->by = order;
    b->map_part = array;
    add_source(lo, key, b);
    return b->id;
}

int cg_global_ids_buf(Lower *lo, Space *s) {
    const char *key = space_key(lo, "logical", s);
    if (find_source(lo, key)) return find_source(lo, key)->id;
    const char *name = arena_printf(lo->a, "logical_%s", cg_ident(lo->a, s->name));
    PBuf *b = cg_new_buf(lo, PB_LOGICAL, name, DT_I32, s->size);
    b->space = s;
    add_source(lo, key, b);
    return b->id;
}

int cg_chunk_bounds_buf(Lower *lo, Space *s) {
    const char *key = space_key(lo, "cuts", s);
    if (find_source(lo, key)) return find_source(lo, key)->id;
    const char *name = arena_printf(lo->a, "cuts_%s", cg_ident(lo->a, s->name));
    PBuf *b = cg_new_buf(lo, PB_CUTS, name, DT_I64, expr_const(lo->a, RT_SUM_CHUNKS + 1));
    b->space = s;
    add_source(lo, key, b);
    return b->id;
}

int cg_key_buf(Lower *lo, int stream) {
    const char *key = stream_key(lo, stream);
    if (find_source(lo, key)) return find_source(lo, key)->id;
    PBuf *b =
        cg_new_buf(lo, PB_KEY, arena_printf(lo->a, "key_%d", stream), DT_I32, expr_const(lo->a, 2));
    b->stream = stream;
    add_source(lo, key, b);
    return b->id;
}

/* ---- the buffer of a value -------- */
/* The buffer that holds op. */
int cg_buf(const Lower *lo, const Op *op) {
    const OpInfo *base = cg_info(lo, cg_info(lo, op)->base);
    if (base->buf < 0) ctx_fault(lo->c, op->span, "'%s' has no buffer", op_mnemonic(op->kind));
    return base->buf;
}

/* ---- what a plan has -------- */
/* The key under which a buffer of the plan is found; NULL: a temporary. */
static const char *key_of_buf(Lower *lo, const PBuf *b) {
    switch (b->kind) {
    case PB_DATA:
        return column_key(lo, b->col);
    case PB_VAR:
        return var_key(lo, b->var);
    case PB_INPUT:
        return arena_printf(lo->a, "input %s", b->io_name);
    case PB_SAVED:
        return arena_printf(lo->a, "saved %s", b->io_name);
    case PB_OUTPUT:
        return arena_printf(lo->a, "output %d %s", b->phase, b->io_name);
    case PB_MAP:
        return map_key(lo, b->map, b->map_part, b->by);
    case PB_LOGICAL:
        return space_key(lo, "logical", b->space);
    case PB_CUTS:
        return space_key(lo, "cuts", b->space);
    case PB_KEY:
        return stream_key(lo, b->stream);
    case PB_TEMP:
        break;
    }
    return NULL;
}

/* For a pass over the plan: names of the buffers that it has. */
Lower cg_lower(PassCtx *pc, Plan *p) {
    Lower lo = {.pc = pc, .c = pc->ctx, .a = p->m->a, .m = p->m, .p = p};
    for (int i = 0; i < p->bufs.n; i++) {
        PBuf *b = p->bufs.v[i];
        const char *key = key_of_buf(&lo, b);
        cg_unique_name(&lo, &lo.names, b->name);
        if (key) add_source(&lo, key, b);
    }
    return lo;
}
