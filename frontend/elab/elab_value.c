/* Compile-time values (elab.h): making, comparing, naming them. */
#include "frontend/elab/elab.h"

#include <math.h>
#include <string.h>

Value val_poison(void) {
    return (Value){.kind = VAL_POISON};
}

Value val_none(void) {
    return (Value){.kind = VAL_NONE};
}

Value val_dim(const Expr *key, const Expr *size) {
    return (Value){.kind = VAL_INT, .key = key, .size = size};
}

Value val_int(Elab *e, int64_t v) {
    const Expr *x = expr_const(e->a, v);
    return val_dim(x, x);
}

Value val_float(double v) {
    return (Value){.kind = VAL_FLOAT, .num = v};
}

Value val_bool(bool v) {
    return (Value){.kind = VAL_BOOL, .num = v};
}

Value val_string(const char *s) {
    return (Value){.kind = VAL_STRING, .str = s};
}

Value val_tensor(Op *op) {
    return op ? (Value){.kind = VAL_TENSOR, .op = op} : val_poison();
}

Value val_node(Space *s) {
    return (Value){.kind = VAL_NODE, .space = s};
}

Value val_edge(Space *s) {
    return (Value){.kind = VAL_EDGE, .space = s};
}

Value val_end(Map *m) {
    return (Value){.kind = VAL_END, .map = m};
}

Value val_list(Elab *e) {
    return (Value){.kind = VAL_LIST, .list = NEW(e->a, Values)};
}

Value val_dict(Elab *e) {
    return (Value){.kind = VAL_DICT, .dict = NEW(e->a, Dict)};
}

/* Adds an element to a list. Above the limit on all elements elaboration ends with a diagnostic. */
void elab_list_push(Elab *e, Value list, Value v) {
    if (e->gave_up) return;
    vec_push(e->a, list.list, v);
    if (++e->n_elements <= MAX_ELEMENTS) return;
    diag_add(e->c, DIAG_E0313, e->at, "the lists of the model have more than %d elements together",
             MAX_ELEMENTS);
    e->gave_up = true;
}

bool elab_is_poison(Value v) {
    return v.kind == VAL_POISON;
}

bool elab_is_number(Value v) {
    return v.kind == VAL_INT || v.kind == VAL_FLOAT;
}

bool elab_is_handle(Value v) {
    return v.kind == VAL_NODE || v.kind == VAL_END;
}

Space *elab_handle_space(Value v) {
    return v.kind == VAL_END ? v.map->to : v.space;
}

/* Sets *n to an int that is known when compiling. False: it is not. While a layer is checked
 * alone, any number will do for an unknown size, and two is the smallest that finds mistakes. */
bool elab_int_known(Elab *e, Value v, int64_t *n) {
    if (v.kind != VAL_INT) return false;
    if (expr_is_const(v.size, n)) return true;
    if (e->symbolic) *n = 2;
    return e->symbolic;
}

/* Sets *x to a number or bool that is known when compiling. False: it is not. */
bool elab_number_known(Elab *e, Value v, double *x) {
    int64_t n;
    if (v.kind == VAL_FLOAT || v.kind == VAL_BOOL) {
        *x = v.num;
        return true;
    }
    if (v.kind != VAL_INT || !(expr_is_const(v.size, &n) || elab_int_known(e, v, &n))) return false;
    *x = (double)n;
    return true;
}

const char *elab_relation_name(Elab *e, const Space *s) {
    const char *n = strmap_get(&e->relation_names, s->name);
    return n ? n : s->name;
}

/* The text that a dictionary finds a key by. NULL: the value cannot be a key. */
const char *elab_key_text(Elab *e, Value k) {
    int64_t n;
    switch (k.kind) {
    case VAL_INT:
        return elab_int_known(e, k, &n) ? arena_printf(e->a, "i%lld", (long long)n) : NULL;
    case VAL_STRING:
        return arena_printf(e->a, "s%s", k.str);
    case VAL_NODE:
    case VAL_END:
    case VAL_EDGE:
        return arena_printf(e->a, "h%d", elab_handle_space(k)->id);
    default:
        return NULL;
    }
}

/* A key as paths of checkpoints spell it, like torch_geometric.nn.ModuleDict: of a relation
 * <a___r___b>. */
const char *elab_path_text(Elab *e, Value k) {
    if (k.kind == VAL_EDGE)
        return arena_printf(e->a, "<%s___%s___%s>", k.space->src->name,
                            elab_relation_name(e, k.space), k.space->dst->name);
    if (elab_is_handle(k)) return elab_handle_space(k)->name;
    return elab_key_text(e, k) + 1;
}

/* The place of the value under a key in a dictionary. NULL: it has none, unless make adds it; or
 * the value cannot be a key. */
Value *elab_dict_at(Elab *e, Value dict, Value key, bool make) {
    const char *id = elab_key_text(e, key);
    Dict *d = dict.dict;
    if (!id) return NULL;
    for (int i = 0; i < d->id.n; i++)
        if (strcmp(d->id.v[i], id) == 0) return &d->val.v[i];
    if (!make) return NULL;
    vec_push(e->a, &d->id, id);
    vec_push(e->a, &d->key, key);
    vec_push(e->a, &d->val, val_none());
    return &d->val.v[d->val.n - 1];
}

/* What kind of value v is, with its article, for messages. */
const char *elab_kind_text(Value v) {
    static const char *const text[] = {
        [VAL_POISON] = "a mistake",  [VAL_NONE] = "none",
        [VAL_INT] = "an int",        [VAL_FLOAT] = "a float",
        [VAL_BOOL] = "a bool",       [VAL_STRING] = "a string",
        [VAL_TENSOR] = "a tensor",   [VAL_NODE] = "a node type",
        [VAL_EDGE] = "a relation",   [VAL_END] = "an end of a relation",
        [VAL_GRAPH] = "the graph",   [VAL_LAYER] = "a layer that is not instantiated",
        [VAL_INST] = "a layer",      [VAL_FN] = "a function",
        [VAL_LIST] = "a list",       [VAL_BUILTIN] = "a built-in function",
        [VAL_DICT] = "a dictionary",
    };
    return text[v.kind];
}

/* Equality of compile-time values of one kind; *known: it could be decided. */
bool elab_values_equal(Elab *e, Value x, Value y, bool *known) {
    double p, q;
    *known = true;
    if ((elab_is_number(x) || x.kind == VAL_BOOL) && (elab_is_number(y) || y.kind == VAL_BOOL)) {
        if (x.kind == VAL_INT && y.kind == VAL_INT && expr_eq(x.size, y.size)) return true;
        *known = elab_number_known(e, x, &p) && elab_number_known(e, y, &q);
        return *known && p == q;
    }
    if (x.kind == VAL_STRING && y.kind == VAL_STRING) return strcmp(x.str, y.str) == 0;
    if (x.kind == VAL_NONE || y.kind == VAL_NONE) return x.kind == y.kind;
    bool handles =
        (elab_is_handle(x) || x.kind == VAL_EDGE) && (elab_is_handle(y) || y.kind == VAL_EDGE);
    if (handles) return elab_handle_space(x) == elab_handle_space(y);
    *known = false;
    return false;
}

/* The model's text at this place in quotes, for a message; "this value" if it is long. */
const char *elab_source_text(Elab *e, Span at) {
    enum { LONGEST = 40 };
    if (!at.line || at.file >= (uint32_t)e->c->sources.n || at.line != at.end_line ||
        at.end_col <= at.col || at.end_col - at.col > LONGEST)
        return "this value";
    const Source *s = &e->c->sources.v[at.file];
    const char *p = s->text, *end = s->text + s->n_bytes;
    for (uint32_t line = 1; line < at.line; line++) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        if (!nl) return "this value";
        p = nl + 1;
    }
    p += at.col - 1;
    return arena_printf(e->a, "'%.*s'", (int)(at.end_col - at.col), p);
}

/* The path of an instance in checkpoints: the names from the model down to it, with dots. */
const char *elab_inst_path(Elab *e, const Inst *inst) {
    if (!inst) return "";
    const char *up = inst->parent ? elab_inst_path(e, inst->parent) : "";
    if (!inst->name) return up;
    return *up ? arena_printf(e->a, "%s.%s", up, inst->name) : inst->name;
}

/* The value of the argument `name = ..` of a call; NULL: the call has none of that name. */
const Value *elab_arg_named(const Args *args, const char *name) {
    for (int i = 0; i < args->n_named; i++)
        if (strcmp(args->name[i], name) == 0) return &args->named[i];
    return NULL;
}
