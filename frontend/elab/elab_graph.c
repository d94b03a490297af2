/* The graph declaration: node types, relations and columns of the module. */
#include "frontend/elab/elab.h"
#include "ir/text.h"

#include <string.h>

/* The node type of that name in the graph. NULL after a diagnostic. */
static Space *node_named(Elab *e, const Ast *name) {
    for (int i = 0; i < e->nodes.n; i++)
        if (strcmp(e->nodes.v[i].space->name, name->text) == 0) return e->nodes.v[i].space;
    Names known = {0};
    for (int i = 0; i < e->nodes.n; i++) elab_names_add(e, &known, e->nodes.v[i].space->name);
    diag_add(e->c, DIAG_E0201, name->span, "there is no node type '%s' in this graph%s", name->text,
             elab_names_advice(e, name->text, &known));
    return NULL;
}

/* ---- columns ----------------------------------------------------------------------- */
/* The dimension of a column that t names: a number, or a size of the data, one for the whole
 * graph. NULL after a diagnostic. */
static Space *column_dim(Elab *e, const Ast *t) {
    if (t->kind == AST_INT && t->num >= 1) {
        const Expr *n = expr_const(e->a, (int64_t)t->num);
        return elab_space_of_dim(e, n, n, t->span);
    }
    if (t->kind != AST_NAME) {
        diag_add(e->c, DIAG_E0314, t->span, "the size of a column is a positive number or a name");
        return NULL;
    }
    return elab_space_of_data(e, t->text, t->span);
}

/* The kind of column that the type t declares, -1: none. A sparse one is f32 here, and the word
 * `csr` before it says more. */
static int column_kind(const Ast *t) {
    for (int k = 0; k < text_ColKind.n; k++)
        if (strcmp(column_facts[k].said, t->text) == 0 && !(t->flag & TYPE_ARGS)) return k;
    return -1;
}

/* The types of columns for a message: "f32[..], csr f32[F], cat[K]". */
static const char *column_types(Elab *e) {
    StrBuf b = sb_new(e->c->a);
    for (int k = 0; k < text_ColKind.n; k++) {
        const ColumnFacts *f = &column_facts[k];
        sb_printf(&b, "%s%s", k ? ", " : "", f->said);
        if (f->n_dims) sb_printf(&b, "[%s]", f->n_dims < 0 ? ".." : f->size);
    }
    return b.s;
}

/* Whether s has a column of that name already: reported as an error. */
static bool declared(Elab *e, const Space *s, const Ast *col) {
    const Column *old = elab_graph_column(e, s, col->text);
    if (!old) return false;
    diag_add(e->c, DIAG_E0202, col->span, "'%s' already has a column '%s'", s->name, col->text);
    diag_note(e->c, old->span, "it is declared here");
    return true;
}

/* Adds a column of kind k with the dimensions that its type names to the table of s. Reports
 * mistakes in its dimensions. */
static void add_column(Elab *e, Space *s, const Ast *col, ColKind k, const Ast *type) {
    Space *dims[MAX_RANK];
    int n = type ? type->n : 0;
    for (int i = 0; i < n; i++)
        if (!(dims[i] = column_dim(e, type->kid[i]))) return;
    for (int i = 1; i < n; i++)
        for (int j = 0; j < i; j++)
            if (dims[i] == dims[j]) {
                diag_add(e->c, DIAG_E0207, type->span,
                         "the column would have the dimension %s twice",
                         elab_space_text(e, dims[i]));
                return;
            }
    bool cat = column_facts[k].codes;
    column_new(e->m, k, s, col->text, cat ? 0 : n, dims, cat ? dims[0] : NULL, col->span);
}

/* Adds a column to the table of s as the graph declares it: a split, which has no type, or one
 * of a known type with its sizes. */
static void elab_column(Elab *e, Space *s, const Ast *col) {
    if (col->kind != AST_COLUMN || declared(e, s, col)) return;
    const Ast *type = col->kid[0];
    if (!type) {
        if (strcmp(col->text, "split") == 0)
            add_column(e, s, col, COL_SPLIT, NULL);
        else
            diag_add(e->c, DIAG_E0314, col->span, "the column '%s' needs a type: %s: f32[..]",
                     col->text, col->text);
        return;
    }
    int kind = column_kind(type);
    bool csr = type->flag & TYPE_CSR;
    if (kind < 0 || (csr && kind != COL_FLOAT)) {
        diag_add(e->c, DIAG_E0314, type->span, "'%s' is not the type of a column; there are %s",
                 type->text, column_types(e));
        return;
    }
    if (csr) kind = COL_CSR;
    int n_dims = column_facts[kind].n_dims;
    if (n_dims < 0 ? type->n >= MAX_RANK : type->n != n_dims) {
        diag_add(e->c, DIAG_E0314, type->span, "'%s' takes %s", type->text,
                 n_dims == 1   ? "one size in brackets"
                 : n_dims == 0 ? "no size"
                               : "at most seven sizes");
        return;
    }
    add_column(e, s, col, (ColKind)kind, type);
}

/* The column of that name in the table of s; NULL: there is none. */
Column *elab_graph_column(Elab *e, const Space *s, const char *name) {
    for (int i = 0; i < e->m->cols.n; i++) {
        Column *c = e->m->cols.v[i];
        if (c->space == s && strcmp(c->name, name) == 0) return c;
    }
    return NULL;
}

/* The names of all columns of the table of s, for messages. */
Names elab_column_names(Elab *e, const Space *s) {
    Names n = {0};
    for (int i = 0; i < e->m->cols.n; i++)
        if (e->m->cols.v[i]->space == s) elab_names_add(e, &n, e->m->cols.v[i]->name);
    return n;
}

/* ---- nodes, relations ------------------------------------------------------------------ */
/* Whether a node type of that name is declared already: reported as an error. */
static bool taken(Elab *e, const Ast *t) {
    for (int i = 0; i < e->nodes.n; i++)
        if (strcmp(e->nodes.v[i].space->name, t->text) == 0) {
            diag_add(e->c, DIAG_E0202, t->span, "'%s' is declared twice in this graph", t->text);
            diag_note(e->c, e->nodes.v[i].space->span, "the first one is here");
            return true;
        }
    return false;
}

/* How many relations of that name the graph declares; they differ in their ends then. */
static int count_relations(const Ast *decl, const char *name) {
    int n = 0;
    for (int i = 0; i < decl->n; i++)
        n += decl->kid[i]->kind == AST_EDGE_DECL && strcmp(decl->kid[i]->text, name) == 0;
    return n;
}

/* Adds a relation of the graph with its columns. The IR calls it by its name, if that is the
 * only one, else source__name__destination. */
static void elab_edge(Elab *e, const Ast *decl, const Ast *t) {
    Space *src = node_named(e, t->kid[0]), *dst = node_named(e, t->kid[1]);
    if (!src || !dst || taken(e, t)) return;
    const char *name = t->text;
    if (count_relations(decl, name) > 1)
        name = arena_printf(e->a, "%s__%s__%s", src->name, t->text, dst->name);
    if (space_find(e->m, name)) {
        diag_add(e->c, DIAG_E0202, t->span, "the relation '%s' from '%s' to '%s' is declared twice",
                 t->text, src->name, dst->name);
        return;
    }
    Space *s = space_edge(e->m, name, src, dst, t->span);
    strmap_put(e->a, &e->relation_names, s->name, (void *)t->text);
    s->timeless = t->flag & DECL_TIMELESS;
    vec_push(e->a, &e->edges, val_edge(s));
    for (int i = 2; i < t->n; i++) elab_column(e, s, t->kid[i]);
}

/* Adds a relation of the model that is not one of the data: `rev_buys = reverse(buys)`. */
static void elab_alias(Elab *e, const Ast *t) {
    static const struct {
        const char *name;
        RelKind rel;
    } how[] = {{"reverse", REL_REVERSE}, {"undirected", REL_UNDIRECTED}};
    const Value *base = NULL;
    size_t k = 0;
    Names known = {0};
    while (k < COUNT(how) && strcmp(how[k].name, t->kid[0]->text) != 0) k++;
    for (int i = 0; i < e->edges.n; i++) {
        elab_names_add(e, &known, e->edges.v[i].space->name);
        if (strcmp(e->edges.v[i].space->name, t->kid[1]->text) == 0) base = &e->edges.v[i];
    }
    if (k == COUNT(how)) {
        diag_add(e->c, DIAG_E0312, t->kid[0]->span,
                 "an edge type is declared with its ends, 'edge %s: a -> b', or as 'reverse(r)' or "
                 "'undirected(r)' of another",
                 t->text);
        return;
    }
    if (!base) {
        diag_add(e->c, DIAG_E0201, t->kid[1]->span, "there is no relation '%s' in this graph%s",
                 t->kid[1]->text, elab_names_advice(e, t->kid[1]->text, &known));
        return;
    }
    if (taken(e, t)) return;
    int before = e->m->spaces.n;
    Value v = space_find(e->m, t->text) ? val_none()
                                        : elab_relation_derive(e, how[k].rel, *base, NULL, t->span);
    if (elab_is_poison(v)) return;
    if (v.kind == VAL_NONE || e->m->spaces.n == before) {
        diag_add(e->c, DIAG_E0202, t->span, "the relation '%s' is declared twice",
                 v.kind == VAL_NONE ? t->text : v.space->name);
        return;
    }
    space_rename(e->m, v.space, t->text);
    strmap_put(e->a, &e->relation_names, v.space->name, (void *)t->text);
    vec_push(e->a, &e->edges, v);
}

/* Adds a node type of the graph. */
static void elab_node(Elab *e, const Ast *t) {
    if (taken(e, t)) return;
    Space *s = space_node(e->m, t->text, t->span);
    s->graph = e->graph_space;
    s->timeless = t->flag & DECL_TIMELESS;
    vec_push(e->a, &e->nodes, val_node(s));
}

/* Adds all that the model's graph declares to the module: node types first, so that relations
 * may name those that follow. */
void elab_graph(Elab *e, const Ast *decl) {
    e->graph_decl = decl;
    for (int i = 0; i < decl->n; i++)
        if (decl->kid[i]->kind == AST_GRAPH_DECL && !e->graph_space)
            e->graph_space = space_graph(e->m, "graph", decl->kid[i]->span);
    for (int i = 0; i < decl->n; i++)
        if (decl->kid[i]->kind == AST_NODE_DECL) elab_node(e, decl->kid[i]);
    for (int i = 0; i < decl->n; i++) {
        const Ast *t = decl->kid[i];
        if (t->kind == AST_EDGE_DECL) elab_edge(e, decl, t);
        if (t->kind == AST_EDGE_ALIAS) elab_alias(e, t);
        Space *s = t->kind == AST_GRAPH_DECL ? e->graph_space
                   : t->kind == AST_NODE_DECL
                       ? node_named(e, &(Ast){.text = t->text, .span = t->span})
                       : NULL;
        for (int j = 0; s && j < t->n; j++) elab_column(e, s, t->kid[j]);
    }
}
