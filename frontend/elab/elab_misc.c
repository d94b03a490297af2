/* Built-in functions on relations, on compile-time values, and with effects. */
#include "frontend/elab/elab.h"

#include <string.h>

/* ---- relations --------------------------------------------------------------------- */
/* Whether the i-th argument is a relation; if not, it is reported. */
static bool relation_arg(Elab *e, const Args *args, int i) {
    if (args->v[i].kind == VAL_EDGE) return true;
    diag_add(e->c, DIAG_E0204, args->at[i], "%s is %s; a relation is needed",
             elab_source_text(e, args->at[i]), elab_kind_text(args->v[i]));
    return false;
}

/* reverse, undirected, with_self_loops, union, ..: a relation of the kind b->op, derived from
 * one or two. fill: what values are on edges that it adds. */
static Value call_derive(Elab *e, const Builtin *b, const Args *args) {
    if (!relation_arg(e, args, 0) || (args->n > 1 && !relation_arg(e, args, 1)))
        return val_poison();
    Value r = elab_relation_derive(e, (RelKind)b->op, args->v[0], args->n > 1 ? &args->v[1] : NULL,
                                   args->span);
    const Value *fill = elab_arg_named(args, "fill");
    if (elab_is_poison(r)) return r;
    r.fill = args->v[0].fill;
    if (fill) {
        Value *keep = NEW(e->a, Value);
        *keep = *fill;
        r.fill = keep;
    }
    return r;
}

/* carry(x, r): a value of a relation's edges on those of the relation r that is derived from it. */
static Value call_carry(Elab *e, const Builtin *b, const Args *args) {
    (void)b;
    if (!relation_arg(e, args, 1)) return val_poison();
    Op *x = elab_to_tensor(e, args->v[0], DT_VOID, args->at[0]);
    return x ? elab_relation_carry(e, x, args->v[1], elab_arg_named(args, "fill"), args->span)
             : val_poison();
}

/* index(r.src): the index of the node at an end of each edge. */
static Value call_index(Elab *e, const Builtin *b, const Args *args) {
    (void)b;
    if (args->v[0].kind == VAL_END) return val_tensor(b_index(&e->b, args->v[0].map));
    bool node = args->v[0].kind == VAL_NODE;
    diag_add(e->c, DIAG_E0204, args->at[0], "'index' is of an end of a relation, not of %s%s",
             elab_kind_text(args->v[0]),
             node ? arena_printf(
                        e->a, "; each '%s' has a vector by 'param e: f32[%s, 16] = normal(0, 0.1)'",
                        args->v[0].space->name, args->v[0].space->name)
                  : "");
    return val_poison();
}

/* ---- compile time ------------------------------------------------------------------- */
/* sequential(f, g, ..): an instance that applies its members one after another. Their parameters
 * are named by position. */
static Value call_sequential(Elab *e, const Builtin *b, const Args *args) {
    (void)b;
    Inst *inst = NEW(e->a, Inst);
    inst->sequential = true;
    inst->at = args->span;
    for (int i = 0; i < args->n; i++) {
        Value v = args->v[i];
        if (v.kind != VAL_INST && v.kind != VAL_FN && v.kind != VAL_BUILTIN) {
            diag_add(e->c, DIAG_E0204, args->at[i],
                     "%s is %s; 'sequential' takes layers and functions",
                     elab_source_text(e, args->at[i]), elab_kind_text(v));
            return val_poison();
        }
        elab_name_instances(e, v, inst, arena_printf(e->a, "%d", i), args->at[i]);
        vec_push(e->a, &inst->members, v);
    }
    return (Value){.kind = VAL_INST, .inst = inst};
}

/* len(xs): how many elements a list has, or keys a dictionary. */
static Value call_len(Elab *e, const Builtin *b, const Args *args) {
    (void)b;
    const Values *xs = elab_list_of(e, args->v[0], args->at[0]);
    return xs ? val_int(e, xs->n) : val_poison();
}

/* keys(d): the keys of a dictionary as a list, in the order in which they were added. */
static Value call_keys(Elab *e, const Builtin *b, const Args *args) {
    (void)b;
    Value l = val_list(e);
    if (args->v[0].kind != VAL_DICT) {
        diag_add(e->c, DIAG_E0204, args->at[0], "'keys' is of a dictionary, not of %s",
                 elab_kind_text(args->v[0]));
        return val_poison();
    }
    for (int i = 0; i < args->v[0].dict->key.n; i++)
        elab_list_push(e, l, args->v[0].dict->key.v[i]);
    return l;
}

/* name(h): the name of a node type; of a relation source__name__destination, as torch_geometric
 * spells the keys of a ParameterDict. */
static Value call_name(Elab *e, const Builtin *b, const Args *args) {
    (void)b;
    Value h = args->v[0];
    if (h.kind == VAL_EDGE)
        return val_string(arena_printf(e->a, "%s__%s__%s", h.space->src->name,
                                       elab_relation_name(e, h.space), h.space->dst->name));
    if (elab_is_handle(h)) return val_string(elab_handle_space(h)->name);
    diag_add(e->c, DIAG_E0204, args->at[0], "'name' is of a node type or relation, not of %s",
             elab_kind_text(h));
    return val_poison();
}

/* kind(x): the word for what kind of value x is, so that a layer can treat kinds differently. */
static Value call_kind(Elab *e, const Builtin *b, const Args *args) {
    (void)e;
    (void)b;
    static const char *const text[] = {
        [VAL_POISON] = "none",   [VAL_NONE] = "none",   [VAL_INT] = "int",
        [VAL_FLOAT] = "float",   [VAL_BOOL] = "bool",   [VAL_STRING] = "string",
        [VAL_TENSOR] = "tensor", [VAL_NODE] = "node",   [VAL_EDGE] = "edge",
        [VAL_END] = "end",       [VAL_GRAPH] = "graph", [VAL_LAYER] = "layer",
        [VAL_INST] = "layer",    [VAL_FN] = "fn",       [VAL_BUILTIN] = "fn",
        [VAL_LIST] = "list",     [VAL_DICT] = "dict",
    };
    Value v = args->v[0];
    bool csr = v.kind == VAL_TENSOR && v.op->type.layout == LAYOUT_CSR;
    return val_string(csr ? "csr" : text[v.kind]);
}

/* dtype(x): the word for the element type of a tensor. */
static Value call_dtype(Elab *e, const Builtin *b, const Args *args) {
    (void)b;
    Value v = args->v[0];
    if (v.kind == VAL_TENSOR)
        return val_string(v.op->type.dt == DT_I1 ? "bool" : dtype_name(v.op->type.dt));
    diag_add(e->c, DIAG_E0204, args->at[0], "'dtype' is of a tensor, not of %s", elab_kind_text(v));
    return val_poison();
}

/* has(h, "name"): whether a table has a column of that name (or, for "graph", whether its nodes
 * are in graphs). Derived relations have the columns of their base. */
static Value call_has(Elab *e, const Builtin *b, const Args *args) {
    (void)b;
    Value h = args->v[0], name = args->v[1];
    if ((!elab_is_handle(h) && h.kind != VAL_EDGE) || name.kind != VAL_STRING) {
        diag_add(e->c, DIAG_E0204, args->span, "'has' takes a node type or relation and a string");
        return val_poison();
    }
    Space *s = elab_handle_space(h);
    if (strcmp(name.str, "graph") == 0) return val_bool(s->kind == SP_NODE && s->graph);
    while (s->kind == SP_EDGE && s->rel != REL_BASE) s = s->base[0];
    return val_bool(elab_graph_column(e, s, name.str) != NULL);
}

/* ---- effects ---------------------------------------------------------------------------- */
/* print("text", x, ..): adds an operation that prints when the program runs. In a further run of
 * one body it prints nothing, as it did already. */
static Value call_print(Elab *e, const Builtin *b, const Args *args) {
    (void)b;
    if (args->v[0].kind != VAL_STRING) {
        diag_add(e->c, DIAG_E0206, args->span, "'print' starts with a string");
        return val_poison();
    }
    if (e->links.again) return val_none();
    Op proto = {.kind = OP_PRINT, .name = args->v[0].str, .when = e->when != NULL};
    proto.in = NEWN(e->a, Op *, (size_t)args->n + 1);
    if (e->when) proto.in[proto.n_in++] = e->when;
    for (int i = 1; i < args->n; i++) {
        Op *x = elab_to_tensor(e, args->v[i], DT_VOID, args->at[i]);
        if (!x) return val_poison();
        proto.in[proto.n_in++] = elab_to_dense(e, x);
    }
    e->b.span = args->span;
    b_op(&e->b, &proto);
    return val_none();
}

/* The name under which the present body logs `text`: with the path of its layer, "conv1.norm"; a
 * second one in a phase gets a number. */
static const char *log_name(Elab *e, const char *text) {
    const char *path = elab_inst_path(e, e->frame->inst);
    const char *name = *path ? arena_printf(e->a, "%s.%s", path, text) : text, *unique = name;
    for (int i = 2; func_output(e->b.f, arena_printf(e->a, "log:%s", unique)); i++)
        unique = arena_printf(e->a, "%s_%d", name, i);
    return unique;
}

/* A logged scalar is an output of its phase, which the runtime reads with the metrics; under a
 * condition a second output says whether it happened.  Nobody reads them in other phases. */
static Value call_log_value(Elab *e, const Args *args) {
    Op *x = elab_to_tensor(e, args->v[1], DT_F32, args->at[1]);
    if (!x) return val_poison();
    if (x->type.rank || x->type.dt == DT_I1) {
        diag_add(e->c, DIAG_E0206, args->at[1], "'log' takes one number, not %s",
                 elab_type_text(e, &x->type));
        return val_poison();
    }
    if (e->b.f->body) {
        diag_add(
            e->c, DIAG_E0317, args->span,
            "'log' in a 'while' on a computed value: carry the number, and log it behind the loop");
        return val_poison();
    }
    if (!e->logs || e->links.again) return val_none();
    e->b.span = args->span;
    const char *name = log_name(e, args->v[0].str);
    if (x->type.dt != DT_F32) x = b_cast(&e->b, x, DT_F32);
    OutputUse log = {.role = OUT_LOG, .of = name}, logged = {.role = OUT_LOGGED, .of = name};
    b_output_as(&e->b, arena_printf(e->a, "log:%s", name), log,
                e->when ? b_select(&e->b, e->when, x, b_const(&e->b, DT_F32, 0)) : x);
    if (e->when)
        b_output_as(&e->b, arena_printf(e->a, "log?:%s", name), logged,
                    b_cast(&e->b, e->when, DT_F32));
    module_note(e->m, e->b.f, args->span, true, "'log' is read at the end of the epoch");
    return val_none();
}

/* log("name", x): logs a value under a name, as opposed to the logarithm log(x). */
Value elab_log_call(Elab *e, const Args *args) {
    if (args->n == 2 && args->v[0].kind == VAL_STRING) return call_log_value(e, args);
    diag_add(e->c, DIAG_E0206, args->span,
             "'log' takes a number x, or a name and a number: "
             "log(\"name\", x)");
    return val_poison();
}

/* One bool of many, c: whether all of them are true. */
static Op *all_of(Elab *e, Op *c) {
    if (c->type.rank == 0) return c;
    Op *bad = b_cast(&e->b, b_unary(&e->b, OP_NOT, c), DT_I32);
    bad = b_reduce(&e->b, RED_MAX, bad, c->type.rank, c->type.dim);
    return b_binary(&e->b, OP_EQ, bad, b_const(&e->b, DT_I32, 0));
}

/* assert(c, "text"): a known condition is checked when compiling, one about an option becomes
 * its range, any other is checked when the program runs. */
static Value call_assert(Elab *e, const Builtin *b, const Args *args) {
    (void)b;
    Value c = args->v[0], text = args->v[1];
    bool tensor = c.kind == VAL_TENSOR && c.op->type.dt == DT_I1;
    if (text.kind != VAL_STRING || (c.kind != VAL_BOOL && !tensor)) {
        diag_add(e->c, DIAG_E0206, args->span, "'assert' takes a bool and a string");
        return val_poison();
    }
    e->b.span = args->span;
    if (tensor && !e->when && elab_option_range(e, c.op, text.str)) return val_none();
    Op *holds = tensor ? all_of(e, elab_to_dense(e, c.op)) : NULL;
    Op *idle = e->when ? b_unary(&e->b, OP_NOT, e->when) : NULL;
    if (tensor || (!c.num && idle)) {
        if (idle) holds = holds ? b_binary(&e->b, OP_OR, idle, holds) : idle;
        b_assert(&e->b, text.str, holds);
    } else if (!c.num)
        diag_add(e->c, DIAG_E0315, args->span, "%s", text.str);
    return val_none();
}

const Builtin elab_builtin_misc[] = {
    {"with_self_loops", 1, 1, "fill", call_derive, REL_SELF_LOOPS},
    {"without_self_loops", 1, 1, NULL, call_derive, REL_NO_LOOPS},
    {"reverse", 1, 1, NULL, call_derive, REL_REVERSE},
    {"undirected", 1, 1, NULL, call_derive, REL_UNDIRECTED},
    {"union", 2, 2, NULL, call_derive, REL_UNION},
    {"carry", 2, 2, "fill", call_carry, 0},
    {"index", 1, 1, NULL, call_index, 0},
    {"sequential", 1, -1, NULL, call_sequential, 0},
    {"len", 1, 1, NULL, call_len, 0},
    {"keys", 1, 1, NULL, call_keys, 0},
    {"name", 1, 1, NULL, call_name, 0},
    {"kind", 1, 1, NULL, call_kind, 0},
    {"dtype", 1, 1, NULL, call_dtype, 0},
    {"has", 2, 2, NULL, call_has, 0},
    {"print", 1, -1, NULL, call_print, 0},
    {"assert", 2, 2, NULL, call_assert, 0},
    {NULL, 0, 0, NULL, NULL, 0},
};
