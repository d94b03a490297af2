/* What holds for every module between passes.  A pass that breaks one of these is
 * named, with the operation and the model line it came from:
 *
 *   - lists are linked both ways, counted, and belong to their function;
 *   - every operand has a result and stands before its user, in the same function;
 *   - arity and attributes are those of the op table, and refer to this module;
 *   - infer() gives the type that is stored; no space occurs twice in it;
 *   - outputs have names of their own, a variable is assigned once per function,
 *     and `saved` values and conditions of relations are outputs of @load;
 *   - only pure operations, and no library call, are marked fused;
 *   - a loop's body stands before the function that repeats it, and has no outputs.
 */
#include "ir/ir.h"
#include "runtime/exec/rng.h"

#include <string.h>

typedef struct {
    Ctx *c;
    Module *m;
    const char *after;
    Func *f;
    bool ok;
} Verifier;

/* Adds the diagnostic of a broken rule. */
static void vbroken(Verifier *v, Span at, const char *fmt, va_list ap) {
    const char *what = arena_vprintf(v->c->a, fmt, ap);
    diag_add(v->c, DIAG_E0501, at, "%s%s: %s%s%s", v->after ? "after " : "",
             v->after ? v->after : "broken IR", what, v->f ? " in @" : "", v->f ? v->f->name : "");
    v->ok = false;
}

static void broken(Verifier *v, Span at, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Adds the diagnostic of a broken rule. */
static void broken(Verifier *v, Span at, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vbroken(v, at, fmt, ap);
    va_end(ap);
}

/* The operation as the printer names it: "'gather' (%z)". */
static const char *op_text(Verifier *v, const Op *op) {
    if (op->hint) return arena_printf(v->c->a, "'%s' (%%%s)", op_mnemonic(op->kind), op->hint);
    return arena_printf(v->c->a, "'%s' (%%%d)", op_mnemonic(op->kind), op->id);
}

/* ---- the module's parts ---------------------------------------------------------- */
/* Whether the space is the module's. */
static bool owns_space(const Module *m, const Space *s) {
    return s && s->id >= 0 && s->id < m->spaces.n && m->spaces.v[s->id] == s;
}

/* Whether the column is the module's. */
static bool owns_column(const Module *m, const Column *c) {
    return c && c->id >= 0 && c->id < m->cols.n && m->cols.v[c->id] == c;
}

/* Whether the map is the module's. */
static bool owns_map(const Module *m, const Map *map) {
    return map && map->id >= 0 && map->id < m->maps.n && m->maps.v[map->id] == map;
}

/* Whether the variable is the module's. By path: a pass may drop variables, so ids need not be
 * positions. */
static bool owns_var(const Module *m, const Var *var) {
    return var && var_find(m, var->path) == var;
}

/* Whether a type is valid. */
static bool type_holds(Verifier *v, Span at, const char *whose, const Type *t) {
    bool ok = t->rank >= 0 && t->rank <= MAX_RANK && (t->layout == LAYOUT_DENSE || t->rank == 2);
    for (int i = 0; ok && i < t->rank; i++) {
        ok = owns_space(v->m, t->dim[i]);
        for (int j = 0; ok && j < i; j++) ok = t->dim[i] != t->dim[j];
    }
    if (!ok) broken(v, at, "%s has a type with a repeated or foreign space", whose);
    return ok;
}

/* Whether the condition of a `where` relation is an i1[base] that @load outputs. */
static bool cond_holds(const Module *m, const Space *s) {
    const Func *load = func_of(m, PHASE_LOAD);
    const Op *out = load ? func_output(load, s->cond) : NULL;
    if (!out || out->n_in != 1 || !out->in[0]) return false;
    if (s->base[0]->prefix_of) return true; /* the condition is that of the whole relation */
    Type want = type_make(DT_I1, 1, (Space *const *)&s->base[0]);
    return out->in[0]->untyped || type_eq(&out->in[0]->type, &want);
}

/* Checks a space. */
static void check_space(Verifier *v, const Space *s) {
    const Module *m = v->m;
    bool ok = s->size && (s->kind == SP_DIM || s->size->kind == EX_SYM);
    if (s->kind == SP_EDGE) {
        ok = ok && owns_space(m, s->src) && s->src->kind == SP_NODE && owns_space(m, s->dst) &&
             s->dst->kind == SP_NODE;
        ok = ok && (s->rel == REL_BASE) == (s->base[0] == NULL);
        if (s->rel == REL_ANSWERS) ok = ok && s->base[0]->rel == REL_QUERIES;
        if (s->rel > REL_ANSWERS) ok = ok && s->base[0]->rel == REL_ANSWERS;
    }
    if (s->distinct_of)
        ok = ok && owns_space(m, s->distinct_of) && s->distinct_of->kind == SP_NODE &&
             !s->distinct_of->distinct_of &&
             s->prefix_of ==
                 (s->distinct_of->prefix_of ? s->distinct_of->prefix_of : s->distinct_of);
    if (s->prefix_of)
        ok = ok && owns_space(m, s->prefix_of) && s->prefix_of->kind == s->kind &&
             !s->prefix_of->prefix_of &&
             (s->kind == SP_NODE || (s->kind == SP_EDGE && s->rel == REL_BASE));
    if (s->kind == SP_NZ) ok = ok && owns_column(m, s->nz_of) && s->nz_of->nz == s;
    if (s->kind == SP_NODE && s->graph) ok = ok && s->graph->kind == SP_GRAPH;
    if (!ok)
        broken(v, s->span, "the space '%s' is inconsistent", s->name);
    else if (s->rel == REL_WHERE && s->cond && !cond_holds(m, s))
        broken(v, s->span, "'%s' needs an output \"%s\" of type i1[%s] in @load", s->name, s->cond,
               s->base[0]->name);
}

/* Whether the map has a cell for every node that a query may ask for. */
static bool cells_hold(const Verifier *v, const Map *m) {
    const Space *q = space_queries(m->from);
    return q && m->to->kind == SP_DIM &&
           expr_eq(m->to->size, expr_mul(v->c->a, q->size, q->dst->size));
}

/* Checks a map. */
static void check_map(Verifier *v, const Map *m) {
    const Space *from = m->from, *to = NULL;
    switch (m->kind) {
    case MAP_SRC:
        to = from->src;
        break;
    case MAP_DST:
        to = from->dst;
        break;
    case MAP_GRAPH:
        to = from->graph;
        break;
    case MAP_COL:
        to = m->col && m->col->space == from ? m->col->cat : NULL;
        break;
    case MAP_ROW:
        to = from->nz_of ? from->nz_of->type.dim[0] : NULL;
        break;
    case MAP_NZCOL:
        to = from->nz_of ? from->nz_of->type.dim[1] : NULL;
        break;
    case MAP_ORIG:
        to = from->base[m->which & 1];
        break;
    case MAP_CELL:
        to = cells_hold(v, m) ? m->to : NULL;
        break;
    case MAP_PAIR:
        to = map_pair_holds(v->c->a, m) ? m->to : NULL;
        break;
    case MAP_DISTINCT:
        to = m->to && space_is_within(from, m->to) ? m->to : NULL;
        break;
    case MAP_FIRST:
        to = from->distinct_of ? from->prefix_of : NULL;
        break;
    case MAP_VIA:
        to = from->distinct_of && m->pair[0] && m->pair[0]->from == from->prefix_of ? m->pair[0]->to
                                                                                    : NULL;
        break;
    }
    if (!to || to != m->to)
        broken(v, from->span, "a map from '%s' to '%s' does not fit its spaces", from->name,
               m->to ? m->to->name : "nothing");
}

/* Whether the checkpoint's shape holds as many elements as the variable. */
static bool save_holds(Verifier *v, const Var *var) {
    const Expr *n = expr_const(v->c->a, 1);
    for (int i = 0; i < var->save_rank; i++) n = expr_mul(v->c->a, n, var->save_shape[i]);
    return var->save_rank == 0 || expr_eq(n, type_count(v->c->a, &var->type));
}

/* Checks a variable. */
static void check_var(Verifier *v, const Var *var) {
    const char *whose = arena_printf(v->c->a, "the variable \"%s\"", var->path);
    if (!type_holds(v, var->span, whose, &var->type)) return;
    if (var->type.layout != LAYOUT_DENSE) broken(v, var->span, "%s is not dense", whose);
    if (var->transposed < 0 || (var->transposed && var->transposed >= var->type.rank))
        broken(v, var->span, "%s cannot be transposed by %d of its %d spaces", whose,
               var->transposed, var->type.rank);
    if (!save_holds(v, var))
        broken(v, var->span, "%s and its checkpoint shape differ in their number of elements",
               whose);
}

/* ---- operations --------------------------------------------------------------------- */
/* The number of spaces that the attributes need. */
static int over_wanted(unsigned at) {
    return at & OPA_OVER1 ? 1 : at & OPA_OVER2 ? 2 : at & OPA_OVER3 ? 3 : 0;
}

/* Whether the loop's body stands before its function, so that no function can run itself. */
static bool is_body_before(const Module *m, const Op *loop) {
    for (int i = 0; i < m->funcs.n && m->funcs.v[i] != loop->func; i++)
        if (m->funcs.v[i] == loop->body) return loop->body->body;
    return false;
}

/* Which attribute is missing, or NULL. */
static const char *attr_missing(const Module *m, const Op *op) {
    unsigned at = op_attrs(op->kind);
    int want = over_wanted(at);
    if (at & OPA_MAP && !owns_map(m, op->map)) return "a map of this module";
    if (at & OPA_COL && !owns_column(m, op->col)) return "a column of this module";
    if (at & OPA_VAR && !owns_var(m, op->var)) return "a variable of this module";
    if (at & OPA_NAME && !op->name) return "a name";
    if (at & OPA_EXT && (!op->ext || extern_find(m, op->ext->name) != op->ext))
        return "a function of this module";
    if (at & OPA_BODY && !is_body_before(m, op)) return "a body that stands before its function";
    if (op->when && !(at & OPA_WHEN)) return "an effect that 'when' could decide";
    if (at & OPA_OFF && !op->off) return "an offset";
    if (at & OPA_STREAM && (op->stream < 0 || op->stream >= m->n_streams)) return "a known stream";
    if (want && op->n_over != want) return "another number of spaces";
    if (at & OPA_OVER && (op->n_over < 1 || op->n_over > MAX_RANK)) return "spaces";
    for (int i = 0; i < op->n_over; i++)
        if (!owns_space(m, op->over[i])) return "spaces of this module";
    return NULL;
}

/* Whether all operands stand before their user. order[id] is the operation of that number: one that
 * was removed, or moved behind its user, is not found there. */
static bool operands_hold(Verifier *v, const Op *op, Op *const *order) {
    int want = op_arity(op->kind);
    if (want >= 0 && op->n_in != want) {
        broken(v, op->span, "%s has %d operands, not %d", op_text(v, op), op->n_in, want);
        return false;
    }
    for (int i = 0; i < op->n_in; i++) {
        const Op *x = op->in[i];
        bool known = x && x->func == v->f && x->id < v->f->n_ops && order[x->id] == x;
        if (known && x->id < op->id && op_has_result(x)) continue;
        broken(v, op->span, "operand %d of %s %s", i + 1, op_text(v, op),
               !known            ? "is not in the function"
               : x->id >= op->id ? "is defined after it"
                                 : "has no result");
        return false;
    }
    return true;
}

/* A type, as text. */
static const char *type_text(Verifier *v, const Type *t) {
    StrBuf b = sb_new(v->c->a);
    type_print(&b, t);
    return b.s;
}

/* Checks the type of an operation. */
static void check_type(Verifier *v, const Op *op) {
    if (op->type.dt != DT_VOID && !type_holds(v, op->span, op_text(v, op), &op->type)) return;
    if (op->untyped) return;
    Op tried = *op;
    const char *why = op_infer(v->m, &tried);
    if (why)
        broken(v, op->span, "%s is ill-typed: %s", op_text(v, op), why);
    else if (!type_eq(&tried.type, &op->type))
        broken(v, op->span, "%s is %s, but its operands make it %s", op_text(v, op),
               type_text(v, &op->type), type_text(v, &tried.type));
}

/* Checks a read of a saved value. */
static void check_saved(Verifier *v, const Op *op) {
    const Op *out = module_saved(v->m, op->name);
    if (v->f->phase == PHASE_LOAD || (out && v->f == out->func))
        broken(v, op->span, "%s stands in @%s itself", op_text(v, op), v->f->name);
    else if (!out || out->n_in != 1 || !out->in[0])
        broken(v, op->span, "%s: @load has no output \"%s\"", op_text(v, op), op->name);
    else if (!out->in[0]->untyped && !type_eq(&out->in[0]->type, &op->type))
        broken(v, op->span, "%s is %s, but @%s puts out %s", op_text(v, op),
               type_text(v, &op->type), out->func->name, type_text(v, &out->in[0]->type));
}

/* Checks that a name is used once. */
static void check_unique(Verifier *v, StrMap *seen, const Op *op, const char *name) {
    if (strmap_has(seen, name))
        broken(v, op->span, "a second '%s' \"%s\"", op_mnemonic(op->kind), name);
    strmap_put(v->c->a, seen, name, v);
}

/* Whether the kind of operation may be in the function. */
static bool fits_function(const Op *op, bool body) {
    if (op->kind == OP_ARG || op->kind == OP_NEXT) return body;
    return !body || (op->kind != OP_OUTPUT && op->kind != OP_ASSIGN);
}

/* Checks an operation. */
static void check_op(Verifier *v, const Op *op, Op *const *order) {
    if (!fits_function(op, v->f->body)) {
        broken(v, op->span, "%s stands %s the body of a loop", op_text(v, op),
               v->f->body ? "in" : "outside of");
        return;
    }
    const char *missing = attr_missing(v->m, op);
    if (missing) {
        broken(v, op->span, "%s lacks %s", op_text(v, op), missing);
        return;
    }
    if (!operands_hold(v, op, order)) return;
    if (op->kind == OP_SAVED) check_saved(v, op);
    if (op->kind != OP_SAVED || v->ok) check_type(v, op);
    if (op->fused && (!op_has(op, OPT_PURE) || op_has(op, OPT_LIB)))
        broken(v, op->span, "%s cannot be fused", op_text(v, op));
}

/* ---- functions ------------------------------------------------------------------------- */
/* The operations by number, or NULL when the list is broken. */
static Op **number_ops(Verifier *v) {
    Func *f = v->f;
    int n = 0;
    const Op *prev = NULL;
    for (Op *op = f->first; op && n <= f->n_ops; prev = op, op = op->next, n++) {
        if (op->func == f && op->prev == prev && op->kind < N_OPS) continue;
        broken(v, op->span, "the list of operations is broken at number %d", n);
        return NULL;
    }
    if (n != f->n_ops || f->last != prev) {
        broken(v, f->span, "the list of operations does not have %d members", f->n_ops);
        return NULL;
    }
    func_number(f);
    Op **order = NEWN(v->c->a, Op *, (size_t)n);
    for (Op *op = f->first; op; op = op->next) order[op->id] = op;
    return order;
}

/* Checks a function. */
static void check_func(Verifier *v) {
    Op **order = number_ops(v);
    StrMap outputs = {0}, assigned = {0};
    if (!order) return;
    for (const Op *op = v->f->first; op; op = op->next) {
        check_op(v, op, order);
        if (op->kind == OP_NEXT)
            check_unique(v, &assigned, op, arena_printf(v->c->a, "%g", op->imm));
        if (op->kind == OP_OUTPUT && op->name) check_unique(v, &outputs, op, op->name);
        if (op->kind == OP_ASSIGN && op->var) check_unique(v, &assigned, op, op->var->path);
    }
}

/* Checks a module. */
bool module_verify(Ctx *c, Module *m, const char *after) {
    Verifier v = {.c = c, .m = m, .after = after, .ok = true};
    StrMap names = {0};
    for (int i = 0; i < m->spaces.n; i++) check_space(&v, m->spaces.v[i]);
    for (int i = 0; i < m->maps.n; i++) check_map(&v, m->maps.v[i]);
    for (int i = 0; i < m->vars.n; i++) check_var(&v, m->vars.v[i]);
    if (m->recipe.sampled_boundary != 0 && !rt_boundary_can_draw(m->recipe.sampled_boundary))
        broken(&v, (Span){0}, "'sampled_boundary' is not at least 2^-20 and less than 1");
    for (int i = 0; i < m->funcs.n; i++) {
        const char *name = m->funcs.v[i]->name;
        if (strmap_has(&names, name)) broken(&v, m->funcs.v[i]->span, "a second @%s", name);
        strmap_put(c->a, &names, name, m);
    }
    for (int i = 0; i < m->funcs.n; i++) {
        v.f = m->funcs.v[i];
        check_func(&v);
    }
    return v.ok;
}
