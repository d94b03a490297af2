/* Expressions: compile-time values are computed, tensors become operations. */
#include "frontend/elab/elab.h"

#include <math.h>
#include <string.h>

/* ---- names ------------------------------------------------------------------------ */
/* Sets *v to what the graph calls by that name: a node type, a relation or a size of the data.
 * False: nothing. */
static bool data_name(Elab *e, const char *name, Value *v) {
    for (int i = 0; i < e->nodes.n; i++)
        if (strcmp(e->nodes.v[i].space->name, name) == 0) return *v = e->nodes.v[i], true;
    for (int i = 0; i < e->edges.n; i++)
        if (strcmp(e->edges.v[i].space->name, name) == 0) return *v = e->edges.v[i], true;
    *v = elab_dim_of_data(e, name);
    return v->kind != VAL_NONE;
}

/* Sets *v to what a name is bound to: by the body, in the model by the graph, or by a constant.
 * False: it is unbound. */
bool elab_name_find(Elab *e, const char *name, Value *v) {
    Frame *f = e->frame;
    Value *p = f ? strmap_get(&f->vars, name) : NULL;
    if (!p && f && f->is_model && data_name(e, name, v)) return true;
    if (!p) p = strmap_get(&e->constants, name);
    if (p) *v = *p;
    return p != NULL;
}

/* The declaration of that name. Within the prelude its own come first; elsewhere a file's own
 * hide them. NULL: there is none. */
static const Ast *global_find(Elab *e, const char *name) {
    bool inside = e->frame && e->frame->decl && e->frame->decl->span.file == e->prelude_file;
    const Ast *d = inside ? strmap_get(&e->prelude, name) : NULL;
    if (!d) d = strmap_get(&e->globals, name);
    return d ? d : strmap_get(&e->prelude, name);
}

static Value global_value(const Ast *d) {
    if (d->kind == AST_LAYER) return (Value){.kind = VAL_LAYER, .decl = d};
    return (Value){.kind = VAL_FN, .decl = d};
}

/* Sets *v to the dimension F', where only F is bound: another one of F's size, which is bound to
 * that name then. False: it is no such name. */
static bool primed(Elab *e, const char *name, Value *v) {
    size_t n = strlen(name);
    if (!e->frame || n < 2 || name[n - 1] != '\'') return false;
    const char *plain = arena_strndup(e->a, name, n - 1);
    if (!elab_name_find(e, plain, v) && !primed(e, plain, v)) return false;
    if (v->kind != VAL_INT) return false;
    *v = val_dim(elab_atom_of_frame(e, e->frame, name, v->size), v->size);
    elab_bind(e, name, *v);
    return true;
}

/* The value of a name where an expression uses it: bound names first, then declarations, then
 * built-in functions. Poison after a diagnostic. */
Value elab_lookup(Elab *e, const char *name, Span at) {
    Value v;
    if (elab_name_find(e, name, &v) || primed(e, name, &v)) return v;
    if (strcmp(name, "training") == 0) return val_bool(e->training);
    if (strcmp(name, "graph") == 0) {
        if (e->graph_space) return val_node(e->graph_space);
        diag_add(e->c, DIAG_E0209, at,
                 "the graph declares no graphs: it has no member 'graph { }'");
        return val_poison();
    }
    const Ast *d = global_find(e, name);
    if (d && (d->kind == AST_LAYER || d->kind == AST_FN || d->kind == AST_EXTERN))
        return global_value(d);
    const Builtin *b = elab_builtin_find(name);
    if (b) return (Value){.kind = VAL_BUILTIN, .builtin = b};
    if (d)
        diag_add(e->c, DIAG_E0204, at, "'%s' is not a value", name);
    else if (!e->names_missing && !(e->frame && e->frame->broken))
        diag_add(e->c, DIAG_E0201, at, "unknown name '%s'%s", name, elab_hint_of_name(e, name));
    return val_poison();
}

/* ---- members ------------------------------------------------------------------------- */
/* The column of a table as a tensor. Columns of ids and splits are no values: poison after a
 * diagnostic. */
static Value column_value(Elab *e, Column *c, Span at) {
    if (c->kind == COL_ID || c->kind == COL_SPLIT) {
        diag_add(e->c, DIAG_E0209, at, "'%s.%s' is %s column and not a value", c->space->name,
                 c->name, c->kind == COL_ID ? "an id" : "a split");
        return val_poison();
    }
    e->b.span = at;
    return val_tensor(b_data(&e->b, c));
}

/* `node.name`: the column of that name, or the node's graph. Poison after a diagnostic. */
Value elab_node_member(Elab *e, Space *s, const char *name, Span at) {
    if (strcmp(name, "graph") == 0 && s->kind == SP_NODE && s->graph)
        return val_end(map_graph(e->m, s));
    Column *c = elab_graph_column(e, s, name);
    if (c) return column_value(e, c, at);
    Names known = elab_column_names(e, s);
    diag_add(e->c, DIAG_E0209, at, "'%s' has no column '%s'%s", s->name, name,
             elab_names_advice(e, name, &known));
    if (s->span.line) diag_note(e->c, s->span, "'%s' is declared here", s->name);
    return val_poison();
}

/* A new list of the same elements, which may be changed without changing v. */
static Value list_value(Elab *e, const Values *v) {
    Value l = val_list(e);
    for (int i = 0; i < v->n; i++) elab_list_push(e, l, v->v[i]);
    return l;
}

/* `g.name` of the model's graph: its node types, its relations, or the one of that name. Poison
 * after a diagnostic. */
static Value graph_member(Elab *e, const char *name, Span at) {
    Value v;
    if (strcmp(name, "nodes") == 0) return list_value(e, &e->nodes);
    if (strcmp(name, "edges") == 0) return list_value(e, &e->edges);
    if (strcmp(name, "graph") == 0) return elab_lookup(e, "graph", at);
    if (data_name(e, name, &v) && v.kind != VAL_INT) return v;
    Names known = {0};
    for (int i = 0; i < e->nodes.n; i++) elab_names_add(e, &known, e->nodes.v[i].space->name);
    for (int i = 0; i < e->edges.n; i++) elab_names_add(e, &known, e->edges.v[i].space->name);
    diag_add(e->c, DIAG_E0209, at, "the graph '%s' has no node type or relation '%s'%s",
             e->graph_decl ? e->graph_decl->text : "?", name, elab_names_advice(e, name, &known));
    return val_poison();
}

/* Evaluates `x.name`: a column, an end of a relation, or a part of the graph. */
static Value eval_member(Elab *e, const Ast *t) {
    Value x = elab_eval(e, t->kid[0]);
    switch (x.kind) {
    case VAL_POISON:
        return x;
    case VAL_GRAPH:
        return graph_member(e, t->text, t->span);
    case VAL_NODE:
    case VAL_END:
        return elab_node_member(e, elab_handle_space(x), t->text, t->span);
    case VAL_EDGE:
        return elab_relation_member(e, x, t->text, t->span);
    default:
        diag_add(e->c, DIAG_E0209, t->span, "%s is %s and has no member '%s'%s",
                 elab_source_text(e, t->kid[0]->span), elab_kind_text(x), t->text,
                 elab_hint_of_member(e, t->text));
        return val_poison();
    }
}

/* ---- indexing --------------------------------------------------------------------------- */
static Value no_element(Elab *e, Span at, const char *why) {
    diag_add(e->c, DIAG_E0214, at, "%s", why);
    return val_poison();
}

/* The relation of xs[source, name, destination]. Poison after a diagnostic. */
static Value relation_of_triple(Elab *e, const Ast *t) {
    Value a = elab_eval(e, t->kid[1]), b = elab_eval(e, t->kid[3]);
    const Ast *r = t->kid[2];
    if (elab_is_poison(a) || elab_is_poison(b)) return val_poison();
    const char *name = r->kind == AST_NAME || r->kind == AST_STRING ? r->text : "";
    for (int i = 0; i < e->edges.n && elab_is_handle(a) && elab_is_handle(b); i++) {
        Space *s = e->edges.v[i].space;
        const char *own = strmap_get(&e->relation_names, s->name);
        if (s->src == elab_handle_space(a) && s->dst == elab_handle_space(b) && own &&
            !strcmp(own, name))
            return e->edges.v[i];
    }
    return no_element(e, t->span, "there is no such relation (source, name, destination)");
}

/* `xs[k]` of a list: the k-th element, or, of relations, k itself if the list has it. */
static Value index_list(Elab *e, const Ast *t, Value x, Value k) {
    int64_t i;
    if (k.kind == VAL_EDGE) { /* g.edges[a, r, b] */
        for (int j = 0; j < x.list->n; j++)
            if (x.list->v[j].kind == VAL_EDGE && x.list->v[j].space == k.space) return k;
        return no_element(e, t->span, "the list has no such relation");
    }
    if (!elab_int_known(e, k, &i)) return no_element(e, t->span, "the index of a list is an int");
    if (i >= 0 && i < x.list->n) return x.list->v[i];
    return no_element(
        e, t->span,
        arena_printf(e->a, "there is no element %lld: the list has %d", (long long)i, x.list->n));
}

/* A key of a dictionary as messages show it. */
static const char *key_shown(Elab *e, Value k) {
    return k.kind == VAL_STRING ? arena_printf(e->a, "\"%s\"", k.str)
           : k.kind == VAL_EDGE ? elab_relation_name(e, k.space)
           : elab_is_handle(k)  ? elab_handle_space(k)->name
                                : elab_path_text(e, k) + (k.kind == VAL_INT);
}

/* The message that a dictionary has no key k, with the keys that it has. */
static const char *no_key(Elab *e, const Dict *d, Value k) {
    Names known = {0};
    for (int i = 0; i < d->key.n; i++) elab_names_add(e, &known, key_shown(e, d->key.v[i]));
    return arena_printf(e->a, "the dictionary has no key %s%s%s", key_shown(e, k),
                        known.n ? "; it has " : "", elab_names_list(e, &known));
}

/* `d[k]` of a dictionary. Poison after a diagnostic. */
static Value index_dict(Elab *e, const Ast *t, Value x, Value k) {
    Value *v = elab_dict_at(e, x, k, false);
    if (v) module_note(e->m, e->b.f, t->span, false, "the dictionary is looked up when compiling");
    if (v) return *v;
    return no_element(e, t->span,
                      elab_key_text(e, k)
                          ? no_key(e, x.dict, k)
                          : arena_printf(e->a, "%s is not a key", elab_kind_text(k)));
}

/* Edges without an origin get a fill, which is a category, too; not a row of zeros. */
static bool lacks_origin(const Map *m) {
    RelKind k = m->from->rel;
    return m->kind == MAP_ORIG && (k == REL_SELF_LOOPS || k == REL_UNION);
}

static bool is_category(const Op *x);

/* Whether x is a category on a union of relations: for each edge that of the relation which it
 * comes from. */
static bool is_of_halves(const Op *x) {
    bool halves = x->kind == OP_SELECT && x->in[0]->kind == OP_VALID;
    for (int i = 1; halves && i < 3; i++)
        halves = x->in[i]->kind == OP_GATHER && x->in[i]->map->from->rel == REL_UNION &&
                 is_category(x->in[i]->in[0]);
    return halves;
}

/* A category column, or one that is read at an end or carried to a derived relation. */
static bool is_category(const Op *x) {
    while (x->kind == OP_GATHER && !lacks_origin(x->map)) x = x->in[0];
    return (x->kind == OP_DATA && x->col->cat) || is_of_halves(x);
}

/* x[k], k a value for which is_category holds: the rows of x by the category column, by each
 * branch of a select, or by a gathered column. */
static Value index_category(Elab *e, Op *x, const Op *k, Span at) {
    if (k->kind == OP_DATA) return elab_tensor_gather(e, x, map_col(e->m, k->col), at);
    if (k->kind == OP_SELECT) {
        Value y = index_category(e, x, k->in[1], at), z = index_category(e, x, k->in[2], at);
        return elab_is_poison(y) || elab_is_poison(z) ? val_poison()
                                                      : elab_tensor_select(e, k->in[0], y, z, at);
    }
    Value y = index_category(e, x, k->in[0], at);
    return elab_is_poison(y) ? y : elab_tensor_gather(e, y.op, k->map, at);
}

/* `x[k]` of a tensor: rows at an end of a relation, or by a category. Poison after a diagnostic. */
static Value index_tensor(Elab *e, const Ast *t, Value x, Value k) {
    if (k.kind == VAL_END) return elab_tensor_gather(e, x.op, k.map, t->span);
    if (k.kind == VAL_NODE && type_has(&x.op->type, k.space)) return x; /* every row */
    if (k.kind == VAL_TENSOR && is_category(k.op)) return index_category(e, x.op, k.op, t->span);
    if (k.kind == VAL_TENSOR && e->symbolic) return val_poison();
    diag_add(
        e->c, DIAG_E0211, t->kid[1]->span,
        "a tensor is read at an end of a relation (x[src]) or by a category column, not at %s%s",
        elab_kind_text(k),
        k.kind == VAL_TENSOR ? "; rows of a table are chosen by a computed number i below K so: "
                               "one_hot(i, K) to linear(..)"
        : k.kind == VAL_INT  ? "; entry i of a dimension d is sum(slice(x, d, i, 1), 1)"
                             : "");
    return val_poison();
}

/* Evaluates `x[k]`, or `x[a, r, b]` for a relation between two node types. */
static Value eval_index(Elab *e, const Ast *t) {
    Value x = elab_eval(e, t->kid[0]);
    if (elab_is_poison(x)) {
        if (t->n == 2) elab_eval(e, t->kid[1]); /* for its own mistakes */
        return x;
    }
    bool triple = t->n == 4 && (x.kind == VAL_LIST || x.kind == VAL_DICT);
    Value k = triple ? relation_of_triple(e, t) : elab_eval(e, t->kid[1]);
    if (elab_is_poison(k)) return k;
    if (t->n != 2 && !triple) {
        diag_add(e->c, DIAG_E0206, t->span, "one index is needed, not %d", t->n - 1);
        return val_poison();
    }
    if (x.kind == VAL_LIST) return index_list(e, t, x, k);
    if (x.kind == VAL_DICT) return index_dict(e, t, x, k);
    if (x.kind == VAL_TENSOR) return index_tensor(e, t, x, k);
    diag_add(e->c, DIAG_E0204, t->span, "%s is %s and has no elements",
             elab_source_text(e, t->kid[0]->span), elab_kind_text(x));
    return val_poison();
}

/* ---- arithmetic ------------------------------------------------------------------------------ */
/* Reports that a number depends on a size of the data. Always poison. */
static Value needs_known(Elab *e, Span at) {
    diag_add(e->c, DIAG_E0210, at,
             "%s depends on a size of the data; it must be known when compiling",
             elab_source_text(e, at));
    return val_poison();
}

/* x + y, x - y or x * y of ints, which may be sizes of the data: keys and sizes are computed as
 * polynomials. */
static Value int_binary(Elab *e, Operator o, Value x, Value y) {
    Arena *a = e->a;
    const Expr *minus = expr_const(a, -1);
    switch (o) {
    case OPR_ADD:
        return val_dim(expr_add(a, x.key, y.key), expr_add(a, x.size, y.size));
    case OPR_SUB:
        return val_dim(expr_add(a, x.key, expr_mul(a, minus, y.key)),
                       expr_add(a, x.size, expr_mul(a, minus, y.size)));
    default:
        return val_dim(expr_mul(a, x.key, y.key), expr_mul(a, x.size, y.size));
    }
}

/* An arithmetic operation of two known numbers. The result is an int if both are and it is
 * whole. */
static Value number_binary(Elab *e, Operator o, double x, double y, bool ints, Span at) {
    double r = 0;
    if ((o == OPR_DIV || o == OPR_MOD) && y == 0) {
        diag_add(e->c, DIAG_E0206, at, "division by zero");
        return val_poison();
    }
    switch (o) {
    case OPR_ADD:
        r = x + y;
        break;
    case OPR_SUB:
        r = x - y;
        break;
    case OPR_MUL:
        r = x * y;
        break;
    case OPR_DIV:
        r = x / y;
        break;
    case OPR_MOD:
        r = fmod(x, y);
        break;
    default:
        r = pow(x, y);
        break;
    }
    bool exact = fabs(r) < 9007199254740992.0 && r == floor(r);
    return ints && exact ? val_int(e, (int64_t)r) : val_float(r);
}

/* An arithmetic operation of two numbers: computed here where both are known, else by an
 * operation on the sizes of the data. */
static Value arithmetic(Elab *e, Operator o, Value x, Value y, Span at) {
    double p, q;
    bool ints = x.kind == VAL_INT && y.kind == VAL_INT;
    if (ints && (o == OPR_ADD || o == OPR_SUB || o == OPR_MUL)) return int_binary(e, o, x, y);
    if (elab_number_known(e, x, &p) && elab_number_known(e, y, &q))
        return number_binary(e, o, p, q, ints, at);
    if (o == OPR_MOD) return needs_known(e, at);
    static const OpKind ops[] = {[OPR_ADD] = OP_ADD,
                                 [OPR_SUB] = OP_SUB,
                                 [OPR_MUL] = OP_MUL,
                                 [OPR_DIV] = OP_DIV,
                                 [OPR_POW] = OP_POW};
    return elab_tensor_binary(e, ops[o], x, y, at, at, at);
}

static Value compare_numbers(Operator o, double p, double q) {
    return val_bool(o == OPR_LT ? p < q : o == OPR_LE ? p <= q : o == OPR_GT ? p > q : p >= q);
}

/* A binary operator of which at least one operand is a tensor. xa, ya: where the operands stand. */
static Value tensor_operator(Elab *e, Operator o, Value x, Value y, Span xa, Span ya, Span at) {
    static const OpKind ops[N_OPERATORS] = {
        [OPR_ADD] = OP_ADD, [OPR_SUB] = OP_SUB, [OPR_MUL] = OP_MUL, [OPR_DIV] = OP_DIV,
        [OPR_POW] = OP_POW, [OPR_EQ] = OP_EQ,   [OPR_NE] = OP_EQ,   [OPR_LT] = OP_LT,
        [OPR_LE] = OP_LE,   [OPR_GT] = OP_LT,   [OPR_GE] = OP_LE,   [OPR_AND] = OP_AND,
        [OPR_OR] = OP_OR,
    };
    if (o == OPR_MOD) { /* x - floor(x / y) * y */
        Value q = elab_tensor_binary(e, OP_DIV, x, y, xa, ya, at);
        q = elab_is_poison(q) ? q : elab_tensor_unary(e, OP_FLOOR, q.op, at);
        q = elab_tensor_binary(e, OP_MUL, q, y, at, ya, at);
        return elab_tensor_binary(e, OP_SUB, x, q, xa, at, at);
    }
    if (o == OPR_GT || o == OPR_GE) return elab_tensor_binary(e, ops[o], y, x, ya, xa, at);
    Value v = elab_tensor_binary(e, ops[o], x, y, xa, ya, at);
    return o == OPR_NE && !elab_is_poison(v) ? elab_tensor_unary(e, OP_NOT, v.op, at) : v;
}

/* x @ y: the contraction over the one dimension that both have. Poison after a diagnostic. */
static Value matmul(Elab *e, Value x, Value y, Span xa, Span ya, Span at) {
    Op *p = elab_to_tensor(e, x, DT_VOID, xa), *q = p ? elab_to_tensor(e, y, DT_VOID, ya) : NULL;
    if (!q) return val_poison();
    Space *shared = NULL;
    int n = 0;
    for (int i = 0; i < p->type.rank; i++)
        if (type_has(&q->type, p->type.dim[i])) shared = p->type.dim[i], n++;
    if (n == 1) return elab_tensor_contract(e, p, q, 1, &shared, at);
    diag_add(e->c, DIAG_E0208, at,
             "'@' sums over the one dimension that both have; %s is %s, %s is %s: "
             "they share %s",
             elab_source_text(e, xa), elab_type_text(e, &p->type), elab_source_text(e, ya),
             elab_type_text(e, &q->type), n ? "several, say which with contract(x, y, d)" : "none");
    if (p->span.line) diag_note(e->c, p->span, "%s comes from here", elab_source_text(e, xa));
    if (q->span.line) diag_note(e->c, q->span, "%s comes from here", elab_source_text(e, ya));
    return val_poison();
}

/* x..y as the list of the ints from x below y. Poison after a diagnostic. */
static Value range(Elab *e, Value x, Value y, Span at) {
    int64_t from, to;
    if (x.kind != VAL_INT || y.kind != VAL_INT) {
        diag_add(e->c, DIAG_E0204, at, "a range is between two ints");
        return val_poison();
    }
    if (!elab_int_known(e, x, &from) || !elab_int_known(e, y, &to)) return needs_known(e, at);
    if (to < from && to < 0) { /* 1..0 is what a count of none makes of 1..n */
        diag_add(e->c, DIAG_E0216, at, "the range %lld..%lld ends before it begins",
                 (long long)from, (long long)to);
        return val_poison();
    }
    if (to - from > MAX_LOOP) {
        diag_add(e->c, DIAG_E0313, at, "a range of %lld; the most is %d", (long long)(to - from),
                 MAX_LOOP);
        return val_poison();
    }
    Value l = val_list(e);
    for (int64_t i = from; i < to; i++) elab_list_push(e, l, val_int(e, i));
    return l;
}

/* x + y of lists: a new list of the elements of both. */
static Value join(Elab *e, Value x, Value y) {
    Value l = list_value(e, x.list);
    for (int i = 0; i < y.list->n; i++) elab_list_push(e, l, y.list->v[i]);
    return l;
}

/* Reports an operator between two kinds of values that do not go together. Always poison. */
static Value mixed(Elab *e, Operator o, Value x, Value y, Span at) {
    diag_add(e->c, DIAG_E0204, at, "'%s' between %s and %s", ast_operator_text(o),
             elab_kind_text(x), elab_kind_text(y));
    return val_poison();
}

static bool is_tensor(Value v) {
    return v.kind == VAL_TENSOR;
}

/* x == y or x != y of values that are no tensors, if that is known when compiling; else poison
 * after a diagnostic. */
static Value equality(Elab *e, Operator o, Value x, Value y, Span at) {
    bool known, same = elab_values_equal(e, x, y, &known);
    if (known) return val_bool(o == OPR_EQ ? same : !same);
    return elab_is_number(x) && elab_is_number(y) ? needs_known(e, at) : mixed(e, o, x, y, at);
}

static bool is_truth(Value v) {
    return is_tensor(v) && v.op->type.dt == DT_I1 && v.op->type.rank == 0;
}

/* Sets *v to the value of `x and y` or `x or y`, if one of them is a known bool and the other is
 * computed. Thus a phase does not read what only the other branch reads. False: it is not
 * decided. */
static bool decided(Operator o, Value x, Value y, Value *v) {
    if (y.kind == VAL_BOOL && is_truth(x)) return decided(o, y, x, v);
    if ((o != OPR_AND && o != OPR_OR) || x.kind != VAL_BOOL || !is_truth(y)) return false;
    *v = (x.num != 0) == (o == OPR_OR) ? x : y;
    return true;
}

/* Applies the operator o to two values of any kind. xa, ya, at: where x, y and all of it stand. */
Value elab_binary(Elab *e, Operator o, Value x, Value y, Span xa, Span ya, Span at) {
    double p, q;
    if (elab_is_poison(x) || elab_is_poison(y)) return val_poison();
    if (o == OPR_AT) return matmul(e, x, y, xa, ya, at);
    if (o == OPR_RANGE) return range(e, x, y, at);
    bool none = x.kind == VAL_NONE || y.kind == VAL_NONE;
    if ((o == OPR_EQ || o == OPR_NE) && (none || !(is_tensor(x) || is_tensor(y))))
        return equality(e, o, x, y, at);
    Value v;
    if (decided(o, x, y, &v)) return v;
    if (is_tensor(x) || is_tensor(y)) return tensor_operator(e, o, x, y, xa, ya, at);
    if (o == OPR_AND || o == OPR_OR) {
        if (x.kind != VAL_BOOL || y.kind != VAL_BOOL) return mixed(e, o, x, y, at);
        return val_bool(o == OPR_AND ? x.num && y.num : x.num || y.num);
    }
    if (o == OPR_ADD && x.kind == VAL_LIST && y.kind == VAL_LIST) return join(e, x, y);
    if (!elab_is_number(x) || !elab_is_number(y)) return mixed(e, o, x, y, at);
    if (o < OPR_EQ) return arithmetic(e, o, x, y, at);
    if (!elab_number_known(e, x, &p) || !elab_number_known(e, y, &q)) return needs_known(e, at);
    return compare_numbers(o, p, q);
}

/* Evaluates `relation where condition`: the relation of those edges for which the condition
 * holds. */
static Value eval_where(Elab *e, const Ast *t) {
    Value r = elab_eval(e, t->kid[0]), c = elab_eval(e, t->kid[1]);
    if (elab_is_poison(r) || elab_is_poison(c)) return val_poison();
    if (r.kind == VAL_EDGE && c.kind == VAL_TENSOR) return elab_relation_where(e, r, c, t->span);
    diag_add(e->c, DIAG_E0312, t->span,
             "'where' is between a relation and a condition on its edges, not "
             "%s and %s",
             elab_kind_text(r), elab_kind_text(c));
    return val_poison();
}

/* Evaluates an expression with a binary operator; `and` and `or` skip the right operand where
 * the left decides. */
static Value eval_binary(Elab *e, const Ast *t) {
    Operator o = (Operator)t->op;
    const Ast *r = t->kid[1];
    if (o == OPR_WHERE) return eval_where(e, t);
    if (elab_stored_as_word(t) != DT_VOID) return elab_eval_stored_as(e, t);
    Value x = elab_eval(e, t->kid[0]);
    if (x.kind == VAL_BOOL && o == OPR_AND && !x.num) return x;
    if (x.kind == VAL_BOOL && o == OPR_OR && x.num) return x;
    return elab_binary(e, o, x, elab_eval(e, r), t->kid[0]->span, r->span, t->span);
}

/* Evaluates `-x` or `not x`. */
static Value eval_unary(Elab *e, const Ast *t) {
    Value x = elab_eval(e, t->kid[0]);
    if (elab_is_poison(x)) return x;
    if (t->op == OPR_NOT && x.kind == VAL_BOOL) return val_bool(!x.num);
    if (is_tensor(x))
        return elab_tensor_unary(e, t->op == OPR_NOT ? OP_NOT : OP_NEG, x.op, t->span);
    if (t->op == OPR_NEG && x.kind == VAL_FLOAT) return val_float(-x.num);
    if (t->op == OPR_NEG && x.kind == VAL_INT) return int_binary(e, OPR_SUB, val_int(e, 0), x);
    diag_add(e->c, DIAG_E0204, t->span, "'%s' of %s", t->op == OPR_NOT ? "not" : "-",
             elab_kind_text(x));
    return val_poison();
}

/* Evaluates `c ? x : y`: by a known condition only the branch that is taken, by a tensor both. */
static Value eval_select(Elab *e, const Ast *t) {
    Value c = elab_eval(e, t->kid[0]);
    if (c.kind == VAL_BOOL) return elab_eval(e, t->kid[c.num ? 1 : 2]);
    if (is_tensor(c)) {
        Value x = elab_eval(e, t->kid[1]), y = elab_eval(e, t->kid[2]);
        return elab_tensor_select(e, c.op, x, y, t->span);
    }
    if (!elab_is_poison(c))
        diag_add(e->c, DIAG_E0204, t->kid[0]->span, "a condition is a bool, not %s",
                 elab_kind_text(c));
    return val_poison();
}

/* ---- lists and dictionaries -------- */
/* What a loop over v runs through: the elements of a list or the keys of a dictionary. NULL
 * after a diagnostic, or if v is poison. */
const Values *elab_list_of(Elab *e, Value v, Span at) {
    if (v.kind == VAL_LIST) return v.list;
    if (v.kind == VAL_DICT) return &v.dict->key;
    if (!elab_is_poison(v))
        diag_add(e->c, DIAG_E0204, at, "%s is %s; a list, a dictionary or a range is needed",
                 elab_source_text(e, at), elab_kind_text(v));
    return NULL;
}

/* Puts the value v under the key k into the dictionary d. False: k is no key, or poison. */
static bool add_pair(Elab *e, Value d, Value k, Value v, Span at) {
    if (elab_is_poison(k)) return false;
    if (!elab_key_text(e, k)) {
        diag_add(e->c, DIAG_E0214, at,
                 "%s cannot be a key; node types, relations, strings and ints can",
                 elab_kind_text(k));
        return false;
    }
    *elab_dict_at(e, d, k, true) = v;
    return true;
}

/* Evaluates `[a, b, ..]` to a new list. */
static Value eval_array(Elab *e, const Ast *t) {
    Value l = val_list(e);
    for (int i = 0; i < t->n; i++) elab_list_push(e, l, elab_eval(e, t->kid[i]));
    return l;
}

/* Evaluates `[a: x, b: y, ..]` to a new dictionary. A key that stands twice is an error. */
static Value eval_dict(Elab *e, const Ast *t) {
    Value d = val_dict(e);
    for (int i = 0; i < t->n; i++) {
        const Ast *pair = t->kid[i];
        Value k = elab_eval(e, pair->kid[0]);
        if (!elab_is_poison(k) && elab_key_text(e, k) && elab_dict_at(e, d, k, false)) {
            diag_add(e->c, DIAG_E0214, pair->kid[0]->span, "the key %s stands here twice",
                     key_shown(e, k));
            return val_poison();
        }
        if (!add_pair(e, d, k, elab_eval(e, pair->kid[1]), pair->kid[0]->span)) return val_poison();
    }
    return d;
}

/* [f(x) for x in xs if c] and [k(x): f(x) for x in xs if c] */
static Value eval_comprehension(Elab *e, const Ast *t, bool dict) {
    const Ast *list = t->kid[dict ? 2 : 1], *cond = t->kid[dict ? 3 : 2];
    Value in = elab_eval(e, list), out = dict ? val_dict(e) : val_list(e);
    const Values *xs = elab_list_of(e, in, list->span);
    Value *old = strmap_get(&e->frame->vars, t->text);
    for (int i = 0; xs && i < xs->n && !e->gave_up; i++) {
        module_note(e->m, e->b.f, t->span, false, "'for' is unrolled");
        elab_comprehend(e, t->text, xs->v[i]);
        Value c = cond ? elab_eval(e, cond) : val_bool(true);
        if (c.kind != VAL_BOOL) {
            if (!elab_is_poison(c))
                diag_add(e->c, DIAG_E0210, cond->span,
                         "this condition must be known when compiling");
            xs = NULL;
        } else if (c.num && !dict)
            elab_list_push(e, out, elab_eval(e, t->kid[0]));
        else if (c.num) {
            Value k = elab_eval(e, t->kid[0]);
            if (!add_pair(e, out, k, elab_eval(e, t->kid[1]), t->kid[0]->span)) xs = NULL;
        }
    }
    strmap_put(e->a, &e->frame->vars, t->text, old);
    return xs ? out : val_poison();
}

/* ---- any expression -------- */
/* Evaluates an expression by its kind; elab_eval, which calls it, limits the depth and keeps
 * notes for editors. */
static Value eval_kind(Elab *e, const Ast *t) {
    switch (t->kind) {
    case AST_NAME:
        return elab_lookup(e, t->text, t->span);
    case AST_INT:
        return val_int(e, (int64_t)t->num);
    case AST_FLOAT:
        return val_float(t->num);
    case AST_STRING:
        return val_string(t->text);
    case AST_BOOL:
        return val_bool(t->num != 0);
    case AST_NONE:
        return val_none();
    case AST_UNARY:
        return eval_unary(e, t);
    case AST_BINARY:
        return eval_binary(e, t);
    case AST_SELECT:
        return eval_select(e, t);
    case AST_CALL:
        return elab_eval_call(e, t);
    case AST_INDEX:
        return eval_index(e, t);
    case AST_MEMBER:
        return eval_member(e, t);
    case AST_ARRAY:
        return eval_array(e, t);
    case AST_DICT:
        return eval_dict(e, t);
    case AST_ARRAY_FOR:
        return eval_comprehension(e, t, false);
    case AST_DICT_FOR:
        return eval_comprehension(e, t, true);
    default:
        return val_poison();
    }
}

/* Evaluates the expression t in the present frame. Poison after a diagnostic. */
Value elab_eval(Elab *e, const Ast *t) {
    if (!elab_enter(e, t->span)) return val_poison();
    Value v = eval_kind(e, t);
    if (e->opt->notes) elab_note(e, t, v);
    elab_leave(e);
    return v;
}
