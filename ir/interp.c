/* Runs of the reference interpreter, and the walks that op evaluation is written
 * with.  See interp.h. */
#include <math.h>
#include <string.h>

#include "ir/interp_impl.h"

/* Frees the interpreter's memory. */
static void release(void *arg) {
    Interp *in = arg;
    if (in->run) arena_free(in->run);
    in->run = NULL;
}

/* Makes an interpreter of a module. */
Interp *interp_new(Ctx *c, Module *m) {
    Interp *in = NEW(c->a, Interp);
    in->ctx = c;
    in->m = m;
    in->a = c->a;
    ctx_defer(c, release, in);
    interp_fit(in);
    return in;
}

void interp_set_exact(Interp *in, bool exact) {
    in->exact = exact;
}

void interp_set_noise(Interp *in, uint64_t noise) {
    in->noise = noise;
}

void interp_set_seed(Interp *in, uint64_t seed, uint64_t step) {
    in->seed = seed;
    in->step = step;
}

const char *interp_error(const Interp *in) {
    return in->error ? in->error : "";
}

/* Records the first failure, which is the cause of others. */
bool interp_fail(Interp *in, const Op *op, const char *why) {
    if (in->error) return false;
    in->error = op ? arena_printf(in->a, "%%%d = %s: %s", op->id, op_mnemonic(op->kind), why)
                   : arena_printf(in->a, "%s", why);
    return false;
}

Arena *interp_scratch(Interp *in) {
    return in->run;
}

/* The size of a space. That of a derived relation is known once it is built. */
int64_t interp_size(Interp *in, const Space *s) {
    if (s->kind == SP_EDGE && !interp_edges(in, s)) return 0;
    const InterpSpace *of = &in->space[s->id];
    if (s->distinct_of && !of->distinct) return interp_size(in, s->distinct_of);
    if (s->kind == SP_NODE && s->prefix_of && !of->cut && !s->distinct_of)
        return interp_size(in, s->prefix_of);
    return interp_expr(in, s->size);
}

/* The value of a size. */
int64_t interp_expr(Interp *in, const Expr *e) {
    return expr_eval(e, in->sym);
}

/* acc combined with x by the reduction: sum, maximum or minimum. */
double interp_combine(RedKind r, double acc, double x) {
    switch (r) {
    case RED_SUM:
        return acc + x;
    case RED_MAX:
        return x > acc ? x : acc;
    default:
        return x < acc ? x : acc;
    }
}

/* ---- rounding ------------------------------------------------------------------- */

/* x rounded to a binary format of `bits` significant bits, ties to even, smallest normal exponent
 * e_min (as frexp counts), infinity from `limit` on. */
static double round_to(double x, int bits, int e_min, double limit) {
    int e;
    if (x == 0 || !isfinite(x)) return x;
    frexp(x, &e);
    if (e < e_min) e = e_min;
    double r = ldexp(nearbyint(ldexp(x, bits - e)), e - bits);
    return fabs(r) >= limit ? copysign(INFINITY, r) : r;
}

/* The number that an element of type t holds after x was stored to it; i32 wraps around. */
static double round_store(DType t, double x) {
    switch (t) {
    case DT_F32:
        return (double)(float)x;
    case DT_F16:
        return round_to(x, 11, -13, 65536);
    case DT_BF16:
        return round_to(x, 8, -125, 0x1p128);
    case DT_I32:
        return (double)(int32_t)(uint32_t)(int64_t)x;
    default:
        return x;
    }
}

/* x rounded to one of the two f32 that it lies between. */
static double round_stochastically(Interp *in, double x) {
    float y = (float)x;
    if ((double)y == x || !isfinite(y)) return x;
    bool up = rt_splitmix64(in->noise ^ rt_splitmix64(in->n_noise++)) >> 63;
    if (up == ((double)y > x)) return (double)y;
    return (double)nextafterf(y, up ? INFINITY : -INFINITY);
}

/* Rounds all elements of a value. */
static void round_all(Interp *in, OpTensor *x) {
    if (in->exact && dtype_is_float(x->type.dt)) return;
    for (int64_t i = 0; i < x->count && in->noise && x->type.dt == DT_F32; i++)
        x->v[i] = round_stochastically(in, x->v[i]);
    for (int64_t i = 0; i < x->count; i++) x->v[i] = round_store(x->type.dt, x->v[i]);
}

/* ---- one function ------------------------------------------------------------------ */

/* Prepares the run of a function: releases the memory of the last run, and numbers the operations.
 */
static void begin_run(Interp *in, Func *f) {
    release(in);
    in->run = arena_new(NULL);
    if (!in->run) longjmp(in->ctx->oom, 1);
    arena_on_oom(in->run, &in->ctx->oom);
    interp_fit(in);
    func_number(f);
    in->func = f;
    in->error = NULL;
    in->now = in->then = NULL;
    in->value = NEWN(in->run, OpTensor, (size_t)f->n_ops + 1);
    in->done = NEWN(in->run, bool, (size_t)f->n_ops + 1);
    memset(&in->outputs, 0, sizeof in->outputs); /* they lived in the old arena */
    memset(&in->assigns, 0, sizeof in->assigns);
    memset(&in->results, 0, sizeof in->results);
}

/* The number of elements of a type. */
int64_t interp_count(Interp *in, const Type *t) {
    int64_t n = 1, most = INT64_MAX / (int64_t)sizeof(double) - 1;
    bool fits = true;
    for (int i = 0; i < t->rank; i++)
        fits = !__builtin_mul_overflow(n, interp_size(in, t->dim[i]), &n) && fits;
    if (fits && n >= 0 && n <= most) return n;
    interp_fail(in, NULL, "there is no memory for so many elements");
    return 0;
}

/* Sets the shape of an operation's value for the sizes at hand, and allocates it. False after an
 * error. */
static bool shape_value(Interp *in, const Op *op, OpTensor *x) {
    x->type = op->type;
    for (int i = 0; i < op->type.rank; i++) x->shape[i] = interp_size(in, op->type.dim[i]);
    bool stored = op->type.layout == LAYOUT_CSR; /* rows times columns it has no memory for */
    x->count = op->type.dt == DT_VOID || stored ? 0 : interp_count(in, &op->type);
    if (in->error) return false;
    if (op->type.layout == LAYOUT_CSR) {
        const InterpCsr *c = interp_csr(in, op);
        if (!c) return false;
        x->count = c->n;
    }
    x->v = NEWN(in->run, double, (size_t)x->count + 1);
    return !in->error;
}

/* Evaluates an operation. */
static bool eval_op(Interp *in, Op *op) {
    OpTensor *x = &in->value[op->id];
    if (op->untyped) return interp_fail(in, op, "has no type yet: shape-propagation gives it");
    if (!shape_value(in, op, x)) return false;
    if (!op_impl(op->kind)->eval(in, op, x) || in->error) return false;
    round_all(in, x);
    in->done[op->id] = true;
    return true;
}

/* Makes the assignments of a run take effect. */
static void finish_run(Interp *in) {
    bool stale = in->stale; /* what a step writes, it writes whole */
    for (int i = 0; i < in->assigns.n; i++) {
        const InterpAssign *s = &in->assigns.v[i];
        double *x = NEWN(in->run, double, (size_t)s->x->count + 1);
        interp_as_written(in, s->var, s->x->v, x);
        interp_set_var(in, s->var, x);
    }
    in->stale = stale;
    if (!phase_saves(in->func->phase)) return;
    for (int i = 0; i < in->outputs.n; i++) {
        const InterpOutput *o = &in->outputs.v[i];
        interp_set_saved(in, o->name, o->x->count, o->x->v);
    }
}

/* Evaluates all operations of a function. */
static bool eval_all(Interp *in, Func *f) {
    for (Op *op = f->first; op; op = op->next)
        if (!eval_op(in, op)) return interp_fail(in, op, "cannot be computed");
    return true;
}

/* Runs a function. */
static bool run_func(Interp *in, Func *f) {
    begin_run(in, f);
    if (!eval_all(in, f)) return false;
    finish_run(in);
    return true;
}

/* Runs a function with out-of-memory caught. */
bool interp_run(Interp *in, Func *f) {
    Func *refresh = func_of(in->m, PHASE_REFRESH);
    bool first = f->phase == PHASE_LOAD;
    if (in->stale && refresh && !first) {
        if (!run_func(in, refresh)) return false;
        in->stale = false;
    }
    return run_func(in, f);
}

/* ---- loops --------------------------------------------------------------------------- */
const OpTensor *interp_arg(Interp *in, int which) {
    return in->now ? in->now[which] : NULL;
}

void interp_put_next(Interp *in, int which, const OpTensor *x) {
    in->then[which] = x;
}

/* Runs one iteration of a loop: the values of the last one are its operands. */
bool interp_body(Interp *in, Func *body, const OpTensor **now) {
    int n = func_n_carried(body);
    Interp outer = *in;
    func_number(body);
    in->func = body;
    in->now = now;
    in->then = NEWN(in->run, const OpTensor *, (size_t)n);
    in->value = NEWN(in->run, OpTensor, (size_t)body->n_ops + 1);
    in->done = NEWN(in->run, bool, (size_t)body->n_ops + 1);
    bool ok = eval_all(in, body);
    for (int k = 0; k < n && ok; k++) now[k] = in->then[k];
    in->func = outer.func;
    in->now = outer.now;
    in->then = outer.then;
    in->value = outer.value;
    in->done = outer.done;
    return ok;
}

/* ---- values ---------------------------------------------------------------------------- */

const OpTensor *interp_output(const Interp *in, const char *name) {
    for (int i = 0; i < in->outputs.n; i++)
        if (!strcmp(in->outputs.v[i].name, name)) return in->outputs.v[i].x;
    return NULL;
}

const OpTensor *interp_value(const Interp *in, const Op *op) {
    return op->func == in->func && in->done[op->id] ? &in->value[op->id] : NULL;
}

/* An output of @load, which the condition of a `where` may need before the output was evaluated. */
const OpTensor *interp_load_value(Interp *in, const char *name) {
    if (!in->func || in->func->phase != PHASE_LOAD) return NULL;
    const Op *out = func_output(in->func, name);
    return out ? interp_value(in, out->in[0]) : NULL;
}

const OpTensor *interp_in(Interp *in, const Op *op, int i) {
    return &in->value[op->in[i]->id];
}

/* Operand i of the operation as a dense tensor: a CSR operand is copied into one, zeros where
 * nothing is stored. NULL: the rows of the CSR value were not given. */
const OpTensor *interp_in_dense(Interp *in, const Op *op, int i) {
    const OpTensor *x = interp_in(in, op, i);
    if (x->type.layout == LAYOUT_DENSE) return x;
    const InterpCsr *c = interp_csr(in, op->in[i]);
    if (!c) return NULL;
    OpTensor *y = NEW(in->run, OpTensor);
    *y = *x;
    y->type.layout = LAYOUT_DENSE;
    y->count = x->shape[0] * x->shape[1];
    y->v = NEWN(in->run, double, (size_t)y->count + 1);
    for (int64_t k = 0; k < c->n; k++) y->v[c->row[k] * x->shape[1] + c->col[k]] = x->v[k];
    return y;
}

/* Records an assignment, which takes effect at the end of the run. */
bool interp_assign_later(Interp *in, const Var *v, const OpTensor *x) {
    vec_push(in->run, &in->assigns, ((InterpAssign){v, x}));
    return true;
}

/* ---- the user's functions ------------------------------------------------------------------ */
void interp_set_extern(Interp *in, const char *symbol, InterpFn *fn, void *user) {
    vec_push(in->a, &in->externs, ((InterpExtern){symbol, fn, user}));
}

/* Runs the C function that the interpreter was given for `symbol` (the last such one) on args, and
 * rounds its results to their element types. False: there is none, or it returned a status other
 * than 0. */
bool interp_call(Interp *in, const Op *op, const char *symbol, int n_in,
                 const OpTensor *const *args, int n_out, OpTensor *const *out) {
    for (int i = in->externs.n - 1; i >= 0; i--) {
        const InterpExtern *e = &in->externs.v[i];
        if (strcmp(e->symbol, symbol) != 0) continue;
        int status = e->fn(e->user, n_in, args, n_out, out);
        if (status)
            return interp_fail(
                in, op, arena_printf(in->a, "the C function '%s' gave status %d", symbol, status));
        for (int k = 0; k < n_out; k++) round_all(in, out[k]);
        return true;
    }
    return interp_fail(in, op,
                       arena_printf(in->a, "the interpreter was given no C function '%s'", symbol));
}

void interp_put_result(Interp *in, const Op *op, int which, const OpTensor *x) {
    vec_push(in->run, &in->results, ((InterpResult){op, which, x}));
}

const OpTensor *interp_result(Interp *in, const Op *op, int which) {
    for (int i = in->results.n - 1; i >= 0; i--) /* the last iteration's, in a loop */
        if (in->results.v[i].op == op && in->results.v[i].which == which) return in->results.v[i].x;
    return NULL;
}

bool interp_put_output(Interp *in, const char *name, const OpTensor *x) {
    vec_push(in->run, &in->outputs, ((InterpOutput){name, x}));
    return true;
}

/* ---- walks ------------------------------------------------------------------------------- */

/* The index of a space in a walk, or -1. */
static int walk_find(const Walk *w, const Space *s) {
    for (int d = 0; d < w->n; d++)
        if (w->s[d] == s) return d;
    return -1;
}

/* A walk over all elements of a type. */
Walk interp_walk_new(Interp *in, const Type *t) {
    Walk w = {.count = 1};
    for (int d = 0; d < t->rank; d++) interp_walk_add(in, &w, t->dim[d]);
    return w;
}

/* Adds a space to a walk. */
void interp_walk_add(Interp *in, Walk *w, const Space *s) {
    if (walk_find(w, s) >= 0) return;
    w->s[w->n] = s;
    w->count *= w->size[w->n++] = interp_size(in, s);
}

/* The place where both walks stand, over the spaces of both, for interp_walk_offset(). It is not to
 * be advanced: its count is that of x alone. */
Walk interp_walk_place(const Walk *x, const Walk *y) {
    Walk w = *x;
    for (int d = 0; d < y->n; d++) {
        w.s[w.n] = y->s[d];
        w.size[w.n] = y->size[d];
        w.i[w.n++] = y->i[d];
    }
    return w;
}

/* Moves to the next element. */
void interp_walk_next(Walk *w) {
    w->at++;
    for (int d = w->n - 1; d >= 0; d--) {
        if (++w->i[d] < w->size[d]) return;
        w->i[d] = 0;
    }
}

/* The current index along a space. */
int64_t interp_walk_index(const Walk *w, const Space *s) {
    int d = walk_find(w, s);
    return d < 0 ? 0 : w->i[d];
}

/* The offset of the current element of x, with index i along `sub`. */
int64_t interp_walk_offset_at(const Walk *w, const OpTensor *x, const Space *sub, int64_t i) {
    int64_t at = 0;
    for (int d = 0; d < x->type.rank; d++) {
        const Space *s = x->type.dim[d];
        at = at * x->shape[d] + (s == sub ? i : interp_walk_index(w, s));
    }
    return at;
}

/* The offset of the current element of x. */
int64_t interp_walk_offset(const Walk *w, const OpTensor *x) {
    return interp_walk_offset_at(w, x, NULL, 0);
}
