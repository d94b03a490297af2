/* Statements, bindings, and the names of layer instances. */
#include "frontend/elab/elab.h"

#include <string.h>

/* ---- guards --------------------------------------------------------------------------- */
/* Counts a step of elaboration and a level of nesting. False after a diagnostic: it is too deep
 * or takes too many steps, and elaboration ends. Each true needs an elab_leave. */
bool elab_enter(Elab *e, Span at) {
    if (e->gave_up) return false;
    if (e->n_nested >= MAX_NESTED) {
        diag_add(e->c, DIAG_E0104, at, "elaboration is nested too deep here");
        e->gave_up = true;
        return false;
    }
    if (++e->n_steps > MAX_STEPS) {
        diag_add(e->c, DIAG_E0313, at, "after %d steps the model is still not elaborated",
                 MAX_STEPS);
        e->gave_up = true;
        return false;
    }
    e->n_nested++;
    e->at = at;
    return true;
}

void elab_leave(Elab *e) {
    e->n_nested--;
}

/* ---- bindings --------------------------------------------------------------------------- */
/* Binds a name in the present frame to a copy of v, as a comprehension does: instances are not
 * named after it. */
void elab_comprehend(Elab *e, const char *name, Value v) {
    Value *p = NEW(e->a, Value);
    *p = v;
    strmap_put(e->a, &e->frame->vars, name, p);
}

void elab_bind(Elab *e, const char *name, Value v) {
    elab_comprehend(e, name, v);
    if (e->pure) vec_push(e->a, &e->frame->written, name);
}

/* ---- names of instances -------------------------------------------------------------------- */
/* Whether v is a layer instance without a name, or holds one. */
static bool has_unnamed(Value v) {
    if (v.kind == VAL_INST) return !v.inst->name;
    const Values *xs = NULL;
    if (v.kind == VAL_LIST) xs = v.list;
    for (int i = 0; xs && i < xs->n; i++)
        if (has_unnamed(xs->v[i])) return true;
    for (int i = 0; v.kind == VAL_DICT && i < v.dict->val.n; i++)
        if (has_unnamed(v.dict->val.v[i])) return true;
    return false;
}

/* Names the instances in v, which have no name yet, after `name`; in a list or dictionary, with
 * their index or key. */
void elab_name_instances(Elab *e, Value v, Inst *parent, const char *name, Span at) {
    if (v.kind == VAL_INST && !v.inst->name) {
        v.inst->name = name;
        v.inst->parent = parent;
        if (e->frame && e->frame->is_model) vec_push(e->a, &e->model_insts, v.inst);
    }
    if (v.kind == VAL_LIST && has_unnamed(v))
        for (int i = 0; i < v.list->n; i++)
            elab_name_instances(e, v.list->v[i], parent, arena_printf(e->a, "%s.%d", name, i), at);
    if (v.kind == VAL_DICT && has_unnamed(v))
        for (int i = 0; i < v.dict->val.n; i++)
            elab_name_instances(
                e, v.dict->val.v[i], parent,
                arena_printf(e->a, "%s.%s", name, elab_path_text(e, v.dict->key.v[i])), at);
}

/* Names the instances in v after the name that a statement binds them to. Two under one name in
 * a body are an error, as they would share their parameters' paths. */
static void name_bound(Elab *e, Value v, const char *name, Span at) {
    if (!has_unnamed(v)) return;
    if (strmap_has(&e->frame->instance_names, name))
        diag_add(
            e->c, DIAG_E0308, at,
            "'%s' was bound to another layer already; both would have the checkpoint path '%s' "
            "(make "
            "a list: [layer(..) for i in 0..n])",
            name, name);
    strmap_put(e->a, &e->frame->instance_names, name, (void *)name);
    elab_name_instances(e, v, e->frame->inst, name, at);
}

/* ---- let ------------------------------------------------------------------------------------- */
/* Notes the name of a value: as a hint in the text of the IR and, for floating-point tensors of
 * the model's body, as a name by which the user may ask for the value (@embed). */
static void note_binding(Elab *e, const char *name, Value v) {
    for (int i = 0; v.kind == VAL_DICT && i < v.dict->val.n; i++)
        note_binding(e, arena_printf(e->a, "%s.%s", name, elab_path_text(e, v.dict->key.v[i])),
                     v.dict->val.v[i]);
    if (v.kind != VAL_TENSOR) return;
    if (!v.op->hint) v.op->hint = name;
    if (!e->frame->is_model || !dtype_is_float(v.op->type.dt)) return;
    for (int i = 0; i < e->bindings.n; i++)
        if (strcmp(e->bindings.v[i].name, name) == 0) {
            e->bindings.v[i].op = v.op;
            return;
        }
    vec_push(e->a, &e->bindings, ((NamedOp){name, v.op}));
}

void elab_bind_noted(Elab *e, const char *name, Value v) {
    elab_bind(e, name, v);
    note_binding(e, name, v);
}

/* A copy of a list or dictionary, so that an assignment to an element does not change other
 * names' values. */
static Value copy_container(Elab *e, Value x) {
    Value y = x.kind == VAL_LIST ? val_list(e) : val_dict(e);
    for (int i = 0; x.kind == VAL_LIST && i < x.list->n; i++) elab_list_push(e, y, x.list->v[i]);
    for (int i = 0; x.kind == VAL_DICT && i < x.dict->key.n; i++)
        *elab_dict_at(e, y, x.dict->key.v[i], true) = x.dict->val.v[i];
    return y;
}

/* Executes `name[key] = v`: binds the name to a copy of its list or dictionary with that
 * element. */
static void let_element(Elab *e, const Ast *target, Value v) {
    const Ast *name = target->kid[0];
    if (name->kind != AST_NAME || target->n != 2) {
        diag_add(e->c, DIAG_E0204, target->span,
                 "only name = .. and name[key] = .. can be assigned");
        return;
    }
    Value x = elab_eval(e, name), k = elab_eval(e, target->kid[1]);
    int64_t i;
    if (elab_is_poison(x) || elab_is_poison(k)) return;
    if (x.kind == VAL_DICT && elab_key_text(e, k)) {
        x = copy_container(e, x);
        *elab_dict_at(e, x, k, true) = v;
    } else if (x.kind == VAL_LIST && elab_int_known(e, k, &i) && i >= 0 && i < x.list->n) {
        x = copy_container(e, x);
        x.list->v[i] = v;
    } else {
        diag_add(e->c, DIAG_E0214, target->span, "%s has no element that this could set",
                 elab_kind_text(x));
        return;
    }
    name_bound(e, x, name->text, target->span);
    elab_bind_noted(e, name->text, x);
}

/* Executes an assignment: to a name, to an element, or to a state. */
static void exec_let(Elab *e, const Ast *t) {
    const Ast *target = t->kid[0];
    Value v = elab_eval(e, t->kid[1]);
    if (target->kind == AST_INDEX) {
        let_element(e, target, v);
        return;
    }
    if (target->kind != AST_NAME) {
        if (target->kind != AST_BAD)
            diag_add(e->c, DIAG_E0204, target->span,
                     "only name = .. and name[key] = .. can be assigned");
        return;
    }
    VarInfo *state = elab_state_of(e, target);
    if (state) {
        elab_assign_state(e, target->text, state, v, t->span);
        return;
    }
    name_bound(e, v, target->text, t->span);
    elab_bind_noted(e, target->text, v);
}

/* ---- branches on computed values ------------------------------------------------------------- */
typedef struct {
    Op *now;
    bool assigned;
} StateValue;
typedef VEC(StateValue) StateValues; /* of all_vars */

typedef struct {
    StrMap vars; /* after the branch */
    StateValues states;
    bool returned;
    Value result;
    Span result_at;
} Branch;

/* The values of all states at this place, to return to after a branch. */
static StateValues states_now(Elab *e) {
    StateValues s = {0};
    for (int i = 0; i < e->all_vars.n; i++)
        vec_push(e->a, &s, ((StateValue){e->all_vars.v[i]->now, e->all_vars.v[i]->assigned}));
    return s;
}

/* Sets the values of all states to those that were noted. States that were declared since had no
 * value then. */
static void set_states(Elab *e, const StateValues *s) {
    for (int i = 0; i < e->all_vars.n; i++) {
        VarInfo *v = e->all_vars.v[i];
        v->now = i < s->n ? s->v[i].now : NULL;
        v->assigned = i < s->n && s->v[i].assigned;
    }
}

static Op *state_after(Elab *e, const StateValues *s, int i) {
    Op *now = i < s->n ? s->v[i].now : NULL;
    return now ? now : b_var(&e->b, e->all_vars.v[i]->var);
}

/* Sets each state to its value after one of two branches, selected by cond; one that a branch
 * does not assign keeps its value there. */
static void merge_states(Elab *e, Op *cond, const StateValues *x, const StateValues *y) {
    for (int i = 0; i < e->all_vars.n; i++) {
        VarInfo *v = e->all_vars.v[i];
        Op *p = i < x->n ? x->v[i].now : NULL, *q = i < y->n ? y->v[i].now : NULL;
        v->assigned = (i < x->n && x->v[i].assigned) || (i < y->n && y->v[i].assigned);
        v->now = p == q ? p : b_select(&e->b, cond, state_after(e, x, i), state_after(e, y, i));
    }
}

/* A copy of a map; the values are shared. */
StrMap elab_copy_map(Elab *e, const StrMap *m) {
    StrMap r = {0};
    for (int i = 0; i < m->cap; i++)
        if (m->key[i]) strmap_put(e->a, &r, m->key[i], m->val[i]);
    return r;
}

/* Executes one branch of an `if` on a computed value, from the bindings `before`, and returns
 * what it bound. when: the condition under which its effects happen. */
static Branch run_branch(Elab *e, const Ast *block, const StrMap *before, Op *when) {
    Frame *f = e->frame;
    StateValues states = states_now(e);
    Op *outer = e->when;
    e->when = outer ? b_binary(&e->b, OP_AND, outer, when) : when;
    f->vars = elab_copy_map(e, before);
    f->returned = false;
    e->pure++;
    if (block && block->kind == AST_IF)
        elab_exec_block(e, &(Ast){.kind = AST_BLOCK, .n = 1, .kid = (Ast *[]){(Ast *)block}});
    else if (block)
        elab_exec_block(e, block);
    e->pure--;
    e->when = outer;
    Branch b = {f->vars, states_now(e), f->returned, f->result, f->result_at};
    f->returned = false;
    set_states(e, &states);
    return b;
}

/* The value of `name` after an `if` on the computed condition cond: x where it holds, else y.
 * Poison after a diagnostic: they are not of one kind. */
static Value choose(Elab *e, Op *cond, Value x, Value y, const char *name, Span at) {
    bool known, same = x.kind == y.kind && x.kind == VAL_TENSOR && x.op == y.op;
    if (elab_is_poison(x) || elab_is_poison(y)) return val_poison();
    if (same || (x.kind != VAL_TENSOR && elab_values_equal(e, x, y, &known) && known)) return x;
    bool sums =
        (x.kind == VAL_TENSOR || elab_is_number(x)) && (y.kind == VAL_TENSOR || elab_is_number(y));
    if (sums) return elab_tensor_select(e, cond, x, y, at);
    diag_add(e->c, DIAG_E0310, at, "'%s' would be %s or %s, depending on a computed value", name,
             elab_kind_text(x), elab_kind_text(y));
    return val_poison();
}

/* Binds each name that a branch has written, from the given one on, to the choice between both
 * branches. A name that only one binds is unbound then. */
static void merge(Elab *e, Op *cond, Branch *x, Branch *y, int from, Span at) {
    Frame *f = e->frame;
    for (int i = from; i < f->written.n; i++) {
        const char *name = f->written.v[i];
        Value *p = strmap_get(&x->vars, name), *q = strmap_get(&y->vars, name), *r = NULL;
        if (p && q && p == q)
            r = p;
        else if (p && q) {
            r = NEW(e->a, Value);
            *r = choose(e, cond, *p, *q, name, at);
        }
        strmap_put(e->a, &f->vars, name, r);
        strmap_put(e->a, &x->vars, name, r);
        strmap_put(e->a, &y->vars, name, r);
    }
}

/* Executes an `if` on a computed condition: both branches are elaborated, and their values are
 * selected. */
static void exec_computed_if(Elab *e, const Ast *t, Op *cond) {
    Frame *f = e->frame;
    StrMap before = elab_copy_map(e, &f->vars);
    int from = f->written.n;
    module_note(e->m, e->b.f, t->span, true,
                "'if' on a computed value: results are selected, effects happen where it holds");
    Op *otherwise = t->kid[2] ? b_unary(&e->b, OP_NOT, cond) : NULL;
    Branch x = run_branch(e, t->kid[1], &before, cond);
    Branch y = run_branch(e, t->kid[2], &before, otherwise ? otherwise : cond);
    f->vars = before;
    e->b.span = t->span;
    merge_states(e, cond, &x.states, &y.states);
    if (x.returned != y.returned && !e->gave_up) {
        diag_add(e->c, DIAG_E0310, t->span,
                 "one branch returns and the other does not, depending on a computed value");
        f->returned = true;
        f->result = val_poison();
        return;
    }
    if (x.returned) {
        f->returned = true;
        f->result = choose(e, cond, x.result, y.result, "the result", t->span);
        f->result_at = x.result_at;
        return;
    }
    merge(e, cond, &x, &y, from, t->span);
    if (!e->pure) f->written.n = from;
}

static void exec_one(Elab *e, const Ast *t);

/* Executes an `if`: by a known condition only the branch that is taken. */
static void exec_if(Elab *e, const Ast *t) {
    Value c = elab_eval(e, t->kid[0]);
    if (elab_is_poison(c)) { /* check both, as far as it goes */
        elab_exec_block(e, t->kid[1]);
        return;
    }
    if (c.kind == VAL_BOOL) {
        const Ast *b = t->kid[c.num ? 1 : 2];
        if (b && b->kind == AST_IF)
            exec_one(e, b);
        else if (b)
            elab_exec_block(e, b);
    } else if (c.kind == VAL_TENSOR && c.op->type.dt == DT_I1 && c.op->type.rank == 0)
        exec_computed_if(e, t, c.op);
    else if (c.kind == VAL_TENSOR)
        diag_add(
            e->c, DIAG_E0310, t->kid[0]->span,
            "the condition is %s; 'if' needs one truth value, select(c, x, y) chooses by element",
            elab_type_text(e, &c.op->type));
    else
        diag_add(e->c, DIAG_E0204, t->kid[0]->span, "a condition is a bool, not %s",
                 elab_kind_text(c));
}

/* ---- loops -------- */
/* Executes `for x in list { .. }`: elaborates the body for each element. */
static void exec_for(Elab *e, const Ast *t) {
    Value in = elab_eval(e, t->kid[0]);
    if (in.kind == VAL_TENSOR) {
        diag_add(e->c, DIAG_E0305, t->kid[0]->span, "'for' over computed values is not there yet");
        return;
    }
    const Values *xs = elab_list_of(e, in, t->kid[0]->span);
    if (xs) module_note(e->m, e->b.f, t->span, false, "'for' is unrolled");
    for (int i = 0; xs && i < xs->n && !e->frame->returned && !e->gave_up; i++) {
        elab_bind(e, t->text, xs->v[i]);
        elab_exec_block(e, t->kid[1]);
    }
}

/* Executes `for edge in r { .. }`: elaborates the body once, with src and dst as the ends of r's
 * edges. */
static void exec_for_edge(Elab *e, const Ast *t) {
    Value r = elab_eval(e, t->kid[0]);
    if (r.kind != VAL_EDGE) {
        if (!elab_is_poison(r))
            diag_add(e->c, DIAG_E0204, t->kid[0]->span, "'for edge' is over a relation, not %s",
                     elab_kind_text(r));
        r = val_poison();
    }
    Value *src = strmap_get(&e->frame->vars, "src"), *dst = strmap_get(&e->frame->vars, "dst");
    elab_comprehend(e, "src", elab_is_poison(r) ? r : val_end(map_src(e->m, r.space)));
    elab_comprehend(e, "dst", elab_is_poison(r) ? r : val_end(map_dst(e->m, r.space)));
    elab_exec_block(e, t->kid[1]);
    strmap_put(e->a, &e->frame->vars, "src", src);
    strmap_put(e->a, &e->frame->vars, "dst", dst);
}

/* ---- any statement -------- */
/* Executes `return x`: the statements behind it do not run. */
static void exec_return(Elab *e, const Ast *t) {
    Frame *f = e->frame;
    f->result = elab_eval(e, t->kid[0]);
    f->result_at = t->kid[0]->span;
    f->returned = true;
}

/* Executes an expression as a statement: it must have no value. */
static void exec_eval(Elab *e, const Ast *t) {
    Value v = elab_eval(e, t->kid[0]);
    if (v.kind != VAL_NONE && !elab_is_poison(v))
        diag_add(e->c, DIAG_E0204, t->span, "the value of this statement (%s) is not used",
                 elab_kind_text(v));
}

/* Executes `store x` or `fuse x`: notes what the user asks fusion to do with the value of that
 * name. */
static void ask(Elab *e, const Ast *hint, const Ast *name) {
    OpAsk what = strcmp(hint->text, "store") == 0 ? ASK_STORE : ASK_FUSE;
    Value v = elab_eval(e, name);
    if (elab_is_poison(v)) return;
    if (v.kind != VAL_TENSOR)
        diag_add(e->c, DIAG_E0204, name->span, "'%s' is said of a computed value, not of %s",
                 hint->text, elab_kind_text(v));
    else if (v.op->ask && v.op->ask != what)
        diag_add(e->c, DIAG_E0320, name->span, "'%s' is to be stored and to be fused: one of them",
                 name->text);
    else {
        v.op->ask = what;
        v.op->hint = name->text; /* what is told of it has the name that was used */
    }
}

static void exec_hint(Elab *e, const Ast *t) {
    for (int i = 0; i < t->n; i++) ask(e, t, t->kid[i]);
}

/* Executes one statement by its kind. Another kind is one that could not be parsed. */
static void exec_one(Elab *e, const Ast *t) {
    switch (t->kind) {
    case AST_HINT:
        exec_hint(e, t);
        break;
    case AST_LET:
        exec_let(e, t);
        break;
    case AST_EVAL:
        exec_eval(e, t);
        break;
    case AST_VAR:
        elab_exec_var(e, t);
        break;
    case AST_FOR:
        exec_for(e, t);
        break;
    case AST_FOR_EDGE:
        exec_for_edge(e, t);
        break;
    case AST_IF:
        exec_if(e, t);
        break;
    case AST_WHILE:
        elab_exec_while(e, t);
        break;
    case AST_RETURN:
        exec_return(e, t);
        break;
    default:
        e->frame->broken = true;
        break;
    }
}

/* Executes the statements of a block until one returns. Statements directly behind a `return`
 * are an error. */
void elab_exec_block(Elab *e, const Ast *block) {
    for (int i = 0; i < block->n; i++) {
        const Ast *t = block->kid[i];
        if (e->frame->returned) {
            if (block->kid[i - 1]->kind == AST_RETURN)
                diag_add(e->c, DIAG_E0302, t->span, "nothing behind 'return' is ever reached");
            return;
        }
        if (!elab_enter(e, t->span)) return;
        exec_one(e, t);
        elab_leave(e);
    }
}
