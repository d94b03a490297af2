/* `while` on a value that only running knows: a loop in the graph (ir/op/loop.c).
 *
 *     diff = 1.0                                  %go = lt %eps, %diff
 *     while diff > eps limit 20 {                 %r = loop @train.loop limit 20 %go, %diff, %h, %z
 *       old = h                           ->      %diff' = result 1 %r
 *       h = step(h) + z                           %h' = result 2 %r
 *       diff = max(abs(h - old))
 *     }                                         with the body, then the condition again, in
 * @train.loop
 *
 * What the body assigns and what stood before it is carried from iteration to iteration; its other
 * names end with the iteration.  The condition is elaborated twice: for the first iteration, and
 * behind the body for the next ones.  Values from outside that the body reads are found afterwards,
 * as operands of another function: small ones are computed again inside, the others become operands
 * of the loop.  While the condition is known when compiling, iterations are elaborated one by one,
 * as `for` does it; so the first iteration of the example is, if diff starts as a number. */
#include "frontend/elab/elab.h"

#include <string.h>

typedef struct {
    const char *name;      /* for messages; NULL = read only */
    Op *init, *arg, *next; /* before the loop, in the body, behind it (NULL: as it was) */
} Slot;

typedef struct {
    Elab *e;
    const Ast *at;
    Func *outer, *body;
    VEC(const char *) names; /* that the body assigns */
    VEC(Slot) slots;         /* the condition first */
    Op **results;            /* by slot */
    int n_seen;              /* leaves of carried values, while they are walked */
    bool ok;
} While;

/* ---- what is carried --------------------------------------------------------------------- */
/* Adds a name to those that the body of the `while` assigns, unless it is there. */
static void add_name(While *w, const char *name) {
    for (int i = 0; i < w->names.n; i++)
        if (strcmp(w->names.v[i], name) == 0) return;
    vec_push(w->e->a, &w->names, name);
}

/* Adds the names that the statements below t assign. */
static void assigned(While *w, const Ast *t) {
    if (!t) return;
    if (t->kind == AST_FOR) add_name(w, t->text);
    if (t->kind == AST_LET) {
        const Ast *name = t->kid[0]->kind == AST_INDEX ? t->kid[0]->kid[0] : t->kid[0];
        if (name->kind == AST_NAME) add_name(w, name->text);
    }
    for (int i = 0; i < t->n; i++) assigned(w, t->kid[i]);
}

static bool is_leaf(Value v) {
    return v.kind == VAL_TENSOR || elab_is_number(v) || v.kind == VAL_BOOL;
}

typedef Value LeafFn(While *w, Value leaf, const char *name);

/* v with its tensors and numbers replaced, in lists and dictionaries too. */
static Value map_leaves(While *w, Value v, const char *name, LeafFn *fn) {
    Elab *e = w->e;
    if (is_leaf(v)) return fn(w, v, name);
    Value r = v;
    if (v.kind == VAL_LIST) {
        r = val_list(e);
        for (int i = 0; i < v.list->n; i++)
            elab_list_push(e, r, map_leaves(w, v.list->v[i], name, fn));
    } else if (v.kind == VAL_DICT) {
        r = val_dict(e);
        for (int i = 0; i < v.dict->key.n; i++)
            *elab_dict_at(e, r, v.dict->key.v[i], true) = map_leaves(w, v.dict->val.v[i], name, fn);
    }
    return r;
}

/* Called for each leaf of an assigned name's value before the loop: makes a slot that carries it
 * from one iteration to the next. */
static Value start(While *w, Value v, const char *name) {
    Op *x = elab_to_tensor(w->e, v, DT_F32, w->at->span);
    if (x) vec_push(w->e->a, &w->slots, ((Slot){.name = name, .init = elab_to_dense(w->e, x)}));
    return v;
}

/* Called for each leaf of an assigned name within the loop's body: it is the body's argument for
 * its slot. */
static Value inside(While *w, Value v, const char *name) {
    (void)v;
    Slot *s = &w->slots.v[w->n_seen++];
    s->arg = b_arg(&w->e->b, 0, s->init->type); /* its number is known in the end */
    s->arg->hint = name;
    return val_tensor(s->arg);
}

/* Called for each leaf of an assigned name after the loop: it is the loop's result for its slot. */
static Value after(While *w, Value v, const char *name) {
    (void)v;
    Op *x = w->results[w->n_seen++];
    if (!x->hint) x->hint = name;
    return val_tensor(x);
}

/* Binds the carried names to what fn makes of their values in `before`. */
static void rebind(While *w, const StrMap *before, LeafFn *fn) {
    w->n_seen = 1;
    for (int i = 0; i < w->names.n; i++) {
        const char *name = w->names.v[i];
        const Value *v = strmap_get(before, name);
        if (v && !elab_is_poison(*v)) elab_bind_noted(w->e, name, map_leaves(w, *v, name, fn));
    }
}

/* ---- an iteration --------------------------------------------------------------------------- */
/* Reports a value that has another type after an iteration than before. */
static void misfit(While *w, const Slot *s, const char *what) {
    diag_add(w->e->c, DIAG_E0317, w->at->span,
             "'%s' is %s before this 'while' and %s after an iteration", s->name,
             elab_type_text(w->e, &s->init->type), what);
    w->ok = false;
}

/* Called for each leaf of an assigned name at the end of the loop's body: sets what its slot
 * holds next, with the type that it had before the loop. */
static Value behind(While *w, Value v, const char *name) {
    (void)name;
    Slot *s = &w->slots.v[w->n_seen++];
    const Type *t = &s->init->type;
    Op *x = elab_to_tensor(w->e, v, t->dt, w->at->span);
    if (!x) {
        w->ok = false;
        return v;
    }
    x = elab_to_dense(w->e, x);
    bool fits = x->type.dt == t->dt;
    for (int i = 0; i < x->type.rank; i++) fits = fits && type_has(t, x->type.dim[i]);
    if (!fits) {
        misfit(w, s, elab_type_text(w->e, &x->type));
        return v;
    }
    x = elab_tensor_order(w->e, x, t->rank, t->dim, w->at->span).op;
    s->next = x == s->arg ? NULL : x;
    return v;
}

/* Whether two values have the same structure, so that their leaves correspond. */
static bool same_leaves(Value x, Value y) {
    if (is_leaf(x)) return is_leaf(y);
    if (x.kind != y.kind) return false;
    if (x.kind == VAL_LIST) {
        bool same = x.list->n == y.list->n;
        for (int i = 0; same && i < x.list->n; i++) same = same_leaves(x.list->v[i], y.list->v[i]);
        return same;
    }
    bool same = x.kind != VAL_DICT || x.dict->key.n == y.dict->key.n;
    for (int i = 0; x.kind == VAL_DICT && same && i < x.dict->val.n; i++)
        same = same_leaves(x.dict->val.v[i], y.dict->val.v[i]);
    return same;
}

/* Sets what the slot of each assigned name holds after an iteration. before: the bindings before
 * the loop. w->ok is false after a mistake. */
static void find_nexts(While *w, const StrMap *before) {
    w->n_seen = 1;
    for (int i = 0; i < w->names.n; i++) {
        const char *name = w->names.v[i];
        Value *v = strmap_get(before, name), *now = strmap_get(&w->e->frame->vars, name);
        if (!v || elab_is_poison(*v)) continue;
        if (!now || elab_is_poison(*now)) {
            w->ok = false;
            return;
        }
        if (!same_leaves(*v, *now)) {
            diag_add(w->e->c, DIAG_E0317, w->at->span,
                     "'%s' is %s before this 'while' and %s after an iteration%s", name,
                     elab_kind_text(*v), elab_kind_text(*now),
                     v->kind == now->kind ? " with other members" : "");
            w->ok = false;
            return;
        }
        map_leaves(w, *now, name, behind);
    }
}

/* Evaluates the condition of the `while` to one bool; a constant where it is known. NULL after a
 * diagnostic. */
static Op *condition(While *w) {
    Elab *e = w->e;
    const Ast *t = w->at->kid[0];
    Value c = elab_eval(e, t);
    e->b.span = t->span;
    if (c.kind == VAL_BOOL) return b_const(&e->b, DT_I1, c.num);
    if (c.kind == VAL_TENSOR && c.op->type.dt == DT_I1 && c.op->type.rank == 0) return c.op;
    if (c.kind == VAL_TENSOR)
        diag_add(e->c, DIAG_E0317, t->span,
                 "the condition is %s; 'while' needs one truth value, such as max(abs(x)) > eps",
                 elab_type_text(e, &c.op->type));
    else if (!elab_is_poison(c))
        diag_add(e->c, DIAG_E0204, t->span, "a condition is a bool, not %s", elab_kind_text(c));
    return NULL;
}

/* Whether the loop's body assigns no state; if it does, it is reported. */
static bool state_untouched(While *w) {
    for (int i = 0; i < w->e->all_vars.n; i++) {
        VarInfo *v = w->e->all_vars.v[i];
        if (!v->now || v->now->func != w->body) continue;
        diag_add(w->e->c, DIAG_E0317, w->at->span,
                 "the state '%s' is assigned in this 'while': how often is not known",
                 v->var->path);
        v->now = NULL;
        v->assigned = false;
        return false;
    }
    return true;
}

/* Elaborates the body and the condition behind it, both in a function of their own. */
static void run_iteration(While *w, const StrMap *before) {
    Elab *e = w->e;
    Frame *f = e->frame;
    Op *when = e->when;
    e->when = NULL; /* an iteration happens as a whole */
    rebind(w, before, inside);
    elab_exec_block(e, w->at->kid[1]);
    e->when = when;
    if (f->returned) {
        diag_add(e->c, DIAG_E0317, f->result_at, "'return' in a 'while' on a computed value");
        f->returned = w->ok = false;
    }
    if (w->ok) find_nexts(w, before);
    if (w->ok) w->slots.v[0].next = condition(w);
    w->ok = state_untouched(w) && w->slots.v[0].next && w->ok;
}

/* ---- values from outside -------- */
static bool is_small(const Op *x) {
    return x->n_in == 0 && x->kind != OP_VAR && x->kind != OP_ARG;
}

/* What the loop's body reads for x, which is computed outside: a copy of a small operation, else
 * an argument in a slot of its own. x->tag keeps it, so that one x is brought once. */
static Op *bring(While *w, Op *x) {
    Elab *e = w->e;
    Builder b = b_for(e->m, w->body, w->body->first, x);
    if (x->tag) return x->tag;
    if (x->type.layout != LAYOUT_DENSE && !is_small(x)) {
        diag_add(e->c, DIAG_E0317, w->at->span,
                 "the body of this 'while' reads %s; write dense(..) before it",
                 elab_type_text(e, &x->type));
        w->ok = false;
        return x;
    }
    Op *y = is_small(x) ? b_op(&b, x) : b_arg(&b, 0, x->type);
    y->hint = x->hint;
    y->tag = NULL;
    if (!is_small(x)) vec_push(e->a, &w->slots, ((Slot){.init = x, .arg = y}));
    return x->tag = y;
}

/* Reads a variable before the loop in place of within it, as its gradient is formed there. */
static void move_out(While *w, Op *var) {
    Builder b = b_for(w->e->m, w->outer, NULL, var);
    op_replace_uses(w->body, var, bring(w, b_op(&b, var)));
    op_remove(var);
}

/* Makes slots for what the loop's body uses from outside; variables are read before the loop. */
static void find_outer(While *w) {
    VEC(Op *) brought = {0};
    func_keep_users(w->e->a, w->body);
    for (Op *op = w->body->first, *next; op; op = next) {
        next = op->next;
        if (op->kind == OP_VAR) move_out(w, op);
    }
    func_drop_users(w->body);
    for (Op *op = w->body->first; op; op = op->next)
        for (int i = 0; i < op->n_in; i++) {
            Op *x = op->in[i];
            if (x->func == w->body) continue;
            op->in[i] = bring(w, x);
            vec_push(w->e->a, &brought, x);
        }
    for (int i = 0; i < w->slots.n; i++)
        if (w->slots.v[i].init) w->slots.v[i].init->tag = NULL;
    for (int i = 0; i < brought.n; i++) brought.v[i]->tag = NULL;
}

/* ---- the loop -------- */
/* Adds the loop with its operands: slots that change come first, then those that stay. limit:
 * the most iterations; 0 = any number. */
static void build(While *w, int64_t limit) {
    Elab *e = w->e;
    int n = 0, n_slots = w->slots.n;
    Op **in = NEWN(e->a, Op *, (size_t)n_slots);
    Builder body = {.m = e->m, .f = w->body, .span = w->at->span};
    for (int changes = 1; changes >= 0; changes--)
        for (int i = 0; i < n_slots; i++) {
            Slot *s = &w->slots.v[i];
            if ((s->next != NULL) != changes) continue;
            if (s->arg) s->arg->imm = n;
            if (s->next) b_next(&body, n, s->next);
            in[n++] = s->init;
        }
    e->b.span = w->at->span;
    Op *loop = b_loop(&e->b, w->body, limit, n, in);
    w->results = NEWN(e->a, Op *, (size_t)n_slots);
    for (int i = 0, k = 0; i < n_slots; i++) {
        const Slot *s = &w->slots.v[i];
        w->results[i] = s->next ? b_result(&e->b, loop, k++) : s->init;
    }
}

/* Unbinds the names that only the loop's body has bound. */
static void forget_locals(While *w, const StrMap *before) {
    for (int i = 0; i < w->names.n; i++)
        if (!strmap_get(before, w->names.v[i]))
            strmap_put(w->e->a, &w->e->frame->vars, w->names.v[i], NULL);
}

/* Executes a `while` on a computed condition: its body is elaborated once, and what it assigns
 * goes through the slots of a loop operation. */
static void computed_while(Elab *e, const Ast *t, Op *cond, int64_t limit) {
    While w = {.e = e, .at = t, .outer = e->b.f, .ok = true};
    StrMap before = elab_copy_map(e, &e->frame->vars);
    module_note(e->m, e->b.f, t->span, true, "'while' on a computed value: a loop of the graph");
    assigned(&w, t->kid[1]);
    e->b.span = t->span;
    if (e->when) cond = b_binary(&e->b, OP_AND, e->when, cond);
    vec_push(e->a, &w.slots, ((Slot){.name = "the condition", .init = cond}));
    for (int i = 0; i < w.names.n; i++) {
        const Value *v = strmap_get(&before, w.names.v[i]);
        if (v && !elab_is_poison(*v)) map_leaves(&w, *v, w.names.v[i], start);
    }
    w.body = func_new_body(e->m, e->b.f);
    w.body->span = t->span;
    Builder outer = e->b;
    e->b = (Builder){.m = e->m, .f = w.body, .span = t->span, .want = outer.want};
    run_iteration(&w, &before);
    e->b = outer;
    if (w.ok) find_outer(&w);
    if (w.ok) {
        build(&w, limit);
        rebind(&w, &before, after);
    } else {
        for (int i = 0; i < w.names.n; i++) elab_bind(e, w.names.v[i], val_poison());
    }
    forget_locals(&w, &before);
}

/* Sets *limit to what `while c limit n` says, 0 if it has no limit. False after a diagnostic. */
static bool limit_of(Elab *e, const Ast *t, int64_t *limit) {
    *limit = 0;
    if (!t->text) return true;
    if (strcmp(t->text, "limit") != 0) {
        diag_add(e->c, DIAG_E0103, t->span,
                 "expected 'limit' or '{' behind the condition, not '%s'", t->text);
        return false;
    }
    Value v = elab_eval(e, t->kid[2]);
    if (elab_is_poison(v)) return false;
    if (elab_int_known(e, v, limit) && *limit > 0 && *limit <= MAX_LOOP) return true;
    diag_add(e->c, DIAG_E0210, t->kid[2]->span,
             "a limit is an int from 1 to %d, known when compiling", MAX_LOOP);
    return false;
}

/* Executes a `while`: unrolled as long as its condition is known, then as a loop of the program. */
void elab_exec_while(Elab *e, const Ast *t) {
    int64_t limit;
    if (!limit_of(e, t, &limit)) return;
    for (int64_t iteration = 0; !e->frame->returned && !e->gave_up; iteration++) {
        Value c = elab_eval(e, t->kid[0]);
        if (elab_is_poison(c) || (limit && iteration == limit)) return;
        if (c.kind == VAL_BOOL && !c.num) return;
        if (c.kind != VAL_BOOL) {
            While w = {.e = e, .at = t};
            bool one = c.kind == VAL_TENSOR && c.op->type.dt == DT_I1 && c.op->type.rank == 0;
            if (one)
                computed_while(e, t, c.op, limit ? limit - iteration : 0);
            else
                condition(&w); /* tells what is wrong */
            return;
        }
        if (!elab_enter(e, t->span)) return;
        elab_exec_block(e, t->kid[1]);
        elab_leave(e);
    }
}
