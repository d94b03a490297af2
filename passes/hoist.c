/* Invariant hoisting: what depends on the data alone is computed once, when it is loaded.
 *
 *     @train                          @load
 *       %d = segment sum @dst ..        %d = segment sum @dst ..
 *       %r = rsqrt %d           ->      %r = rsqrt %d
 *       %m = mul %x %r                  output "saved.0" %r
 *                                     @train
 *                                       %r = saved "saved.0"
 *                                       %m = mul %x %r
 *
 * Invariant is what no variable, input or random number reaches: degrees, GCN's
 * normalisation, label counts, first-layer aggregations without dropout.  All phases share
 * one copy, found by structural equality in @load, so train and eval read the same array.
 *
 * Not everything invariant is worth its memory.  Walking up from the place of use, a
 * reduction is saved, and so is what takes real work per element or is a scalar; a cheap
 * elementwise value is not, nor is one per edge *and* feature, because the kernel that
 * uses it rebuilds it from less: then its operands are asked.  Rows of features (a first
 * layer's aggregation) are saved where each training step reads them: for an evaluation once
 * in an epoch they would stay in memory all the time.
 *
 * An evaluation of links runs @eval for each held-out split, of queries for so many at a time. What
 * depends on variables, but not on the links, is the same in all of these runs: it moves to @encode
 * in the same way, which the runtime has run before them. */
#include "ir/text.h"
#include "ir/walk.h"
#include "passes/rewrite.h"

#include <string.h>

typedef struct {
    bool invariant;
    bool reduces; /* a reduction is among what computes it */
    bool works;   /* exp, division, or arithmetic on gathered values, once per element */
    bool gathers;
    bool in_step; /* computed in this phase, every step */
    bool used;    /* by something that stays */
} Fact;

typedef struct {
    PassCtx *p;
    Phase target;   /* @load, or @encode, where variables are known */
    Builder into;   /* appends to it */
    OpTable known;  /* of it */
    StrMap outputs; /* of it, by name */
    int n_saved;
    bool trains; /* there is a @train, which is done first */
    Func *f;
    Fact *fact; /* by op id */
    Op **saved; /* by op id: what is saved of it; NULL = nothing */
    IrMarks marks;
} Hoist;

/* ---- what is invariant, and what it costs --------------------------------------------- */
/* Whether the size is that of sampled rows. */
static bool is_sampled_size(const Expr *x) {
    if (!x || x->kind == EX_CONST) return false;
    if (x->kind == EX_SYM)
        return x->sym->of && (space_is_drawn(x->sym->of) || x->sym->of->prefix_of);
    return is_sampled_size(x->a) || is_sampled_size(x->b);
}

/* Whether the operation runs over sampled links or seeds. */
bool pass_is_sampled(const Op *op) {
    for (int i = 0; i < op->type.rank; i++)
        if (is_sampled_size(op->type.dim[i]->size)) return true;
    for (int i = 0; i < op->n_over; i++)
        if (is_sampled_size(op->over[i]->size)) return true;
    return op->map && space_is_drawn(op->map->from);
}

/* Whether the operation may give another value in each step, even if its operands do not change. */
bool pass_may_vary(const Op *op) {
    return pass_is_sampled(op) || !op_has(op, OPT_PURE) || op_has(op, OPT_NOCSE) ||
           op->kind == OP_VAR || op->kind == OP_INPUT || op->kind == OP_ARG || op->kind == OP_LOOP;
}

/* Whether the operation costs more than an addition per element. */
static bool takes_work(const Op *op) {
    return op_has(op, OPT_ELEM) && op->type.dt != DT_I1 && op_cost(op->kind) > 1;
}

/* Whether the operation combines values element by element. */
static bool is_arithmetic(const Op *op) {
    return op_has(op, OPT_ELEM) && op->n_in > 1;
}

/* Whether the value may change after the target phase ran: @encode knows variables. */
static bool may_vary(const Hoist *h, const Op *op) {
    bool known = op->kind == OP_VAR && h->target == PHASE_ENCODE;
    return pass_may_vary(op) && !known;
}

/* Finds what is invariant, and what computing it costs. */
static void find_facts(Hoist *h) {
    for (Op *op = h->f->first; op; op = op->next) {
        Fact *x = &h->fact[op->id];
        x->invariant = !may_vary(h, op);
        x->reduces = op_has(op, OPT_REDUCE | OPT_LIB);
        x->gathers = op_has(op, OPT_INDEX);
        x->works = takes_work(op);
        for (int i = 0; i < op->n_in; i++) {
            const Fact *y = &h->fact[op->in[i]->id];
            x->invariant &= y->invariant;
            x->reduces |= y->reduces;
            bool per_element = op->in[i]->type.rank == op->type.rank;
            x->works |= per_element && (y->works || (y->gathers && is_arithmetic(op)));
            x->gathers |= per_element && y->gathers;
        }
    }
}

/* Whether the value has a row of features per edge or stored entry, without being a reduction. */
static bool is_message(const Op *op) {
    if (op_has(op, OPT_REDUCE) || op->type.rank < 2) return false;
    for (int i = 0; i < op->type.rank; i++)
        if (op->type.dim[i]->kind == SP_EDGE || op->type.dim[i]->kind == SP_NZ) return true;
    return false;
}

/* Whether the value has rows of features: as large as the data. */
static bool is_large(const Op *op) {
    for (int i = 0; i < op->type.rank; i++)
        if (op->type.rank > 1 && op->type.dim[i]->kind != SP_DIM) return true;
    return false;
}

static Op *copy_value(Hoist *h, Op *op);

/* Whether a value of that size may be saved: rows of features only for training steps. */
static bool has_room(Hoist *h, Op *op) {
    if (!is_large(op) || !h->trains || h->f->phase == PHASE_TRAIN) return true;
    return h->into.f && copy_value(h, op)->tag; /* saved already */
}

/* Whether saving the value pays. */
static bool is_worth_saving(const Hoist *h, const Op *op) {
    const Fact *x = &h->fact[op->id];
    if (op->n_in == 0 || is_message(op)) return false;
    if (op->kind == OP_GATHER) return false; /* its operand is smaller and as good */
    if (op->type.rank == 0) return x->reduces || x->works;
    return op_has(op, OPT_REDUCE | OPT_LIB) || x->works;
}

/* Decides, backwards from the uses, which invariant values are computed in each step all the same.
 */
static void find_in_step(Hoist *h) {
    for (Op *op = h->f->last; op; op = op->prev) {
        Fact *x = &h->fact[op->id];
        x->in_step = !x->invariant || (x->used && (!is_worth_saving(h, op) || !has_room(h, op)));
        for (int i = 0; i < op->n_in && x->in_step; i++) h->fact[op->in[i]->id].used = true;
    }
}

/* Why an invariant value is computed in each step, in words; NULL: it is no work. */
static const char *in_step_reason(Hoist *h, const Op *op) {
    const Fact *x = &h->fact[op->id];
    bool work = x->works || x->reduces || op_has(op, OPT_REDUCE | OPT_LIB) || op->kind == OP_GATHER;
    if (op->n_in == 0 || !work) return NULL;
    if (op->kind == OP_GATHER) return "what it gathers is smaller";
    if (is_message(op)) return "it has a row for each edge or stored entry";
    if (!is_worth_saving(h, op)) return "it is cheap";
    return "rows as many as the data's are saved for @train alone";
}

/* Adds remarks about invariant values that are computed in each step. */
static void report_in_step(Hoist *h) {
    bool *reported = NEWN(h->p->a, bool, (size_t)h->f->n_ops);
    for (Op *op = h->f->first; op; op = op->next)
        for (int i = 0; i < op->n_in && !h->fact[op->id].invariant; i++) {
            const Op *x = op->in[i];
            bool stays = h->fact[x->id].invariant && h->fact[x->id].in_step && !reported[x->id];
            const char *why = stays ? in_step_reason(h, x) : NULL;
            if (why)
                pass_refusal(h->p, x->span, "hoist", "'%s' of @%s is computed in each step: %s",
                             pass_named(x), h->f->name, why);
            reported[x->id] = true;
        }
}

/* ---- moving ------------------------------------------------------------------------------ */
/* The value in @load or @encode that a `saved` reads; NULL: it reads another phase's. */
static Op *value_behind(const Hoist *h, const Op *op) {
    const Op *out = op->kind == OP_SAVED ? strmap_get(&h->outputs, op->name) : NULL;
    return out ? out->in[0] : NULL;
}

/* Copies an operation, whose operands are copied already, into the target phase. */
static Op *copy_op(Hoist *h, const Op *op) {
    Op *existing = value_behind(h, op);
    if (existing) return existing;
    Op proto = *op;
    proto.tag = NULL;
    proto.in = NEWN(h->p->a, Op *, (size_t)op->n_in);
    for (int i = 0; i < op->n_in; i++) proto.in[i] = op->in[i]->tag;
    Op *copied = b_op(&h->into, &proto);
    Op *first = pass_table_add(&h->known, copied);
    if (first != copied) op_remove(copied);
    return first;
}

/* Whether the walk may enter: the value is not in the target phase yet. */
static bool is_missing(void *user, const Op *op) {
    return !op->tag && !value_behind(user, op);
}

/* The value of op in the target phase, copied if necessary. The tag remembers it. */
static Op *copy_value(Hoist *h, Op *op) {
    if (op->tag) return op->tag;
    IrOps missing = ir_walk(h->p->a, &h->marks, op, is_missing, h);
    for (int i = 0; i < missing.n; i++)
        if (!missing.v[i]->tag) missing.v[i]->tag = copy_op(h, missing.v[i]);
    return op->tag;
}

/* Records an output of the target phase. The value's tag names the output. */
static void record_output(Hoist *h, Op *out) {
    strmap_put(h->p->a, &h->outputs, out->name, out);
    if (!out->in[0]->tag) out->in[0]->tag = out;
}

/* The name that the value is saved by. */
static const char *saved_name(Hoist *h, Op *value) {
    if (value->tag) return ((const Op *)value->tag)->name;
    const char *name;
    const char *what = h->target == PHASE_LOAD ? "saved" : text_Phase.word[h->target];
    do name = arena_printf(h->into.m->a, "%s.%d", what, h->n_saved++);
    while (strmap_has(&h->outputs, name));
    record_output(h, b_output(&h->into, name, value));
    return name;
}

/* Creates the target phase, before the phases that read it: @load first, @encode before the one
 * that it serves. */
static void open_target(Hoist *h, Module *m) {
    if (h->into.f) return;
    h->into = (Builder){.m = m, .f = func_new_phase(m, h->target)};
    bool first = h->target == PHASE_LOAD;
    int at = m->funcs.n - 1;
    for (bool placed = false; at > 0 && !placed; at--) {
        placed = !first && m->funcs.v[at - 1] == h->f;
        m->funcs.v[at] = m->funcs.v[at - 1];
    }
    m->funcs.v[at] = h->into.f;
}

/* Moves a value to the target phase and reads it by its name. */
static void save_value(Hoist *h, Module *m, Op *op) {
    open_target(h, m);
    b_like(&h->into, op);
    Op *value = copy_value(h, op);
    Builder b = b_for(m, h->f, op, op);
    Op *s = b_saved(&b, saved_name(h, value), value->type);
    s->hint = op->hint;
    h->saved[op->id] = s;
    pass_remark(h->p, op->span, "hoist", "'%s' of @%s is computed %s (%s)",
                op->hint ? op->hint : op_mnemonic(op->kind), h->f->name,
                h->target == PHASE_LOAD ? "at load" : "once for all links", s->name);
}

/* Moves the invariant values of a function. */
static void hoist_func(Hoist *h, Module *m, Func *f) {
    h->f = f;
    func_number(f);
    for (Op *op = f->first; op; op = op->next) op->tag = NULL; /* it may be from @load */
    h->fact = NEWN(h->p->a, Fact, (size_t)f->n_ops);
    h->saved = NEWN(h->p->a, Op *, (size_t)f->n_ops);
    h->marks = ir_marks_new(h->p->a, f->n_ops);
    find_facts(h);
    find_in_step(h);
    if (h->p->remarks) report_in_step(h);
    VEC(Op *) found = {0};
    for (Op *op = f->first; op; op = op->next)
        if (h->fact[op->id].used && !h->fact[op->id].in_step) vec_push(h->p->a, &found, op);
    for (int i = 0; i < found.n; i++)
        if (pass_may_rewrite(h->p)) save_value(h, m, found.v[i]);
    for (Op *op = f->first; op; op = op->next)
        for (int i = 0; i < op->n_in; i++)
            if (h->saved[op->in[i]->id]) op->in[i] = h->saved[op->in[i]->id];
    pass_dce_func(h->p->a, f);
}

/* Whether the function runs the loop body, directly or nested. */
static bool runs_body(const Func *f, const Func *body) {
    for (const Op *op = f ? f->first : NULL; op; op = op->next)
        if (op->kind == OP_LOOP && (op->body == body || runs_body(op->body, body))) return true;
    return false;
}

/* Moves what depends on variables, but not on the links, from @eval to @encode. */
static void hoist_encode(PassCtx *p, Module *m) {
    Hoist h = {.p = p, .target = PHASE_ENCODE, .known = {.a = p->a}, .into = {.m = m}};
    Func *eval = func_of(m, PHASE_EVAL);
    if (!eval || !m->recipe.sample.eval_links || func_of(m, h.target)) return;
    hoist_func(&h, m, eval);
    if (h.into.f) pass_dce_func(p->a, h.into.f);
}

/* Runs the pass: moves what does not change from step to step out of the functions that run for
 * each step, into one that runs once, such as @load. */
static bool run(PassCtx *p, Module *m) {
    Hoist h = {.p = p,
               .target = PHASE_LOAD,
               .known = {.a = p->a},
               .into = {.m = m, .f = func_of(m, PHASE_LOAD)}};
    for (Op *op = h.into.f ? h.into.f->first : NULL; op; op = op->next) {
        if (op_has(op, OPT_PURE) && !op_has(op, OPT_NOCSE)) pass_table_add(&h.known, op);
        if (op->kind == OP_OUTPUT) record_output(&h, op);
    }
    VEC(Func *) todo = {0};
    Func *train = func_of(m, PHASE_TRAIN);
    h.trains = train != NULL;
    /* What depends on the data of a sampled step changes with each step. */
    bool sampled = module_runs_on_batches(m, PHASE_TRAIN);
    if (train && !sampled) vec_push(p->a, &todo, train);
    for (int i = 0; i < m->funcs.n; i++) {
        Func *f = m->funcs.v[i]; /* what @load repeats runs before anything is saved */
        bool stays = module_runs_on_batches(m, f->phase) || f->phase == PHASE_ENDS ||
                     (f->body && runs_body(h.into.f, f));
        for (int k = 0; f->body && k < m->funcs.n; k++)
            stays |= module_runs_on_batches(m, m->funcs.v[k]->phase) && runs_body(m->funcs.v[k], f);
        if (f != h.into.f && f != train && !stays) vec_push(p->a, &todo, f);
    }
    for (int i = 0; i < todo.n; i++) hoist_func(&h, m, todo.v[i]);
    if (h.into.f) pass_dce_func(p->a, h.into.f);
    hoist_encode(p, m);
    return true;
}

const Pass pass_hoist = {
    .name = "hoist",
    .summary = "compute at load what depends on the data alone",
    .needs = IR_TYPED | IR_NO_CSR,
    .breaks = IR_FUSED,
    .run = run,
};
