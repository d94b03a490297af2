/* What elaboration learned of expressions, for editors: the type of each, where what it names is
 * declared, and which names a placeholder might have been. */
#include "frontend/elab/elab.h"

#include <string.h>

/* The slot of the note about t in the hash table: its own, or the free one that it would take. */
static size_t slot_of(const FeNotes *n, const Ast *t) {
    size_t mask = (size_t)n->cap - 1, i = ((uintptr_t)t >> 4) * 0x9e3779b97f4a7c15u >> 20 & mask;
    while (n->slot[i].at && n->slot[i].at != t) i = (i + 1) & mask;
    return i;
}

/* Doubles the hash table of notes, so that it has free slots. */
static void grow(Elab *e, FeNotes *n) {
    FeNotes wider = *n;
    wider.cap = n->cap ? 2 * n->cap : 1024;
    wider.slot = NEWN(e->a, FeNote, (size_t)wider.cap);
    for (int i = 0; i < n->cap; i++)
        if (n->slot[i].at) wider.slot[slot_of(&wider, n->slot[i].at)] = n->slot[i];
    *n = wider;
}

const FeNote *fe_note_of(const FeNotes *n, const Ast *t) {
    const FeNote *found = n->cap ? &n->slot[slot_of(n, t)] : NULL;
    return found && found->at ? found : NULL;
}

/* The kind and value of a known number, or the formula of a size, as an editor shows it. */
static const char *number_text(Elab *e, Value v) {
    int64_t n;
    if (v.kind == VAL_FLOAT) return arena_printf(e->a, "float = %g", v.num);
    if (v.kind == VAL_BOOL) return v.num ? "bool = true" : "bool = false";
    if (elab_int_known(e, v, &n)) return arena_printf(e->a, "int = %lld", (long long)n);
    return arena_printf(e->a, "int %s, a size of the data", elab_key_print(e, v.key));
}

static const char *relation_text(Elab *e, const Space *s) {
    return arena_printf(e->a, "edge %s: %s -> %s", elab_relation_name(e, s), s->src->name,
                        s->dst->name);
}

/* The type of a value as an editor shows it. */
static const char *value_text(Elab *e, Value v) {
    switch (v.kind) {
    case VAL_TENSOR:
        return elab_type_text(e, &v.op->type);
    case VAL_INT:
    case VAL_FLOAT:
    case VAL_BOOL:
        return number_text(e, v);
    case VAL_STRING:
        return arena_printf(e->a, "string = \"%s\"", v.str);
    case VAL_NODE:
        return arena_printf(e->a, "node %s", v.space->name);
    case VAL_EDGE:
        return relation_text(e, v.space);
    case VAL_END:
        return arena_printf(e->a, "%s, an end of %s", v.map->to->name, v.map->from->name);
    case VAL_GRAPH:
        return arena_printf(e->a, "graph %s", e->graph_decl ? e->graph_decl->text : "");
    case VAL_INST:
        return arena_printf(e->a, "layer %s%s%s", v.inst->decl ? v.inst->decl->text : "",
                            v.inst->name ? ", its parameters at " : "",
                            v.inst->name ? elab_inst_path(e, v.inst) : "");
    case VAL_LIST:
        return arena_printf(e->a, "list of %d%s%s", v.list->n, v.list->n ? ", the first: " : "",
                            v.list->n ? value_text(e, v.list->v[0]) : "");
    case VAL_DICT:
        return arena_printf(e->a, "dictionary of %d", v.dict->key.n);
    default:
        return elab_kind_text(v);
    }
}

/* The declaration of the layer or function that v is, or of the layer that v is an instance of;
 * NULL: v is something else. */
static const Ast *declaration_of(Value v) {
    return v.kind == VAL_LAYER || v.kind == VAL_FN ? v.decl
           : v.kind == VAL_INST                    ? v.inst->decl
                                                   : NULL;
}

/* Where the declaration of what v stands for is; line 0: nowhere. */
static Span place_of(Value v) {
    const Ast *decl = declaration_of(v);
    if (decl) return decl->span;
    if (v.kind == VAL_NODE || v.kind == VAL_EDGE) return v.space->span;
    if (v.kind == VAL_TENSOR && v.op->kind == OP_DATA) return v.op->col->span;
    return (Span){0};
}

/* Notes the type of the value v at the tree's node t for the editor. The first note of a node
 * stays, as a body may be elaborated for several callers. */
void elab_note(Elab *e, const Ast *t, Value v) {
    FeNotes *n = e->opt->notes;
    if (!n || elab_is_poison(v) || t->span.file != n->file) return;
    if (4 * n->n >= 3 * n->cap) grow(e, n);
    FeNote *note = &n->slot[slot_of(n, t)];
    if (note->at) return;
    n->n++;
    *note = (FeNote){t, value_text(e, v), place_of(v), declaration_of(v),
                     v.kind == VAL_BUILTIN ? v.builtin->name : NULL};
}

/* Keeps the names that could stand for `wrong`, if it is the placeholder that the editor asks
 * about. */
void elab_note_known(Elab *e, const char *wrong, const Names *known) {
    FeNotes *n = e->opt->notes;
    if (!n || !n->ask || strcmp(n->ask, wrong) != 0) return;
    for (int i = 0; i < known->n; i++) vec_push(e->a, &n->known, known->v[i]);
}
