/* The statements of a module's text form: spaces, columns, variables, the recipe
 * (grammar: docs/ir.md).  One statement a line, as the printer writes them; after
 * a mistake, reading goes on at the next line, so that one run reports several. */
#include "ir/sources.h"

#include <string.h>

/* ---- spaces ---------------------------------------------------------------------------------- */
/* Parses a name that must be new. */
static bool new_name(Parser *p, int table, const char *what, const char **name) {
    Span at = p->tok.span;
    if (!parse_name(p, what, name)) return false;
    if (**name && !strmap_get(&p->m->by_name[table], *name)) return true;
    return parse_fail(p, DIAG_E0403, at, "'%s' is already taken", *name);
}

/* Parses the name of a space's size symbol, NAME of `size NAME`, or takes the one that the space's
 * name implies. */
static bool own_size(Parser *p, Space *s, const char *prefix) {
    Span at = p->tok.span;
    const char *name = arena_printf(p->a, "%s%s", prefix, s->name);
    if (parse_accept_word(p, "size")) {
        at = p->tok.span;
        if (!parse_name(p, "the name of a size", &name)) return false;
    }
    Sym *symbol = (Sym *)s->size->sym;
    if (strcmp(symbol->name, name) == 0) return true;
    if (strmap_get(&p->m->by_name[NAMES_SYM], name))
        return parse_fail(p, DIAG_E0403, at, "the size '%s' is already taken", name);
    sym_rename(p->m, symbol, name);
    return true;
}

/* Whether a constant size is at most 2^40; else an error. Beyond it products saturate and would
 * look equal. */
static bool is_plausible_size(Parser *p, Span at, const Expr *size) {
    int64_t n;
    if (!expr_is_const(size, &n) || (n >= 0 && n <= (int64_t)1 << 40)) return true;
    return parse_fail(p, DIAG_E0407, at, "a dimension has 0 to 2^40 entries, not %lld",
                      (long long)n);
}

/* Parses a dimension. */
static bool dim_stmt(Parser *p) {
    Span at = p->tok.span;
    const char *name = NULL;
    const Expr *size = NULL;
    if (!new_name(p, NAMES_SPACE, "the name of a dimension", &name)) return false;
    if (parse_accept(p, '=') && (!parse_expr(p, &size) || !is_plausible_size(p, at, size)))
        return false;
    Space *s = space_dim(p->m, name, size, at);
    return (size || own_size(p, s, "")) && parse_span(p, &s->span);
}

/* Parses the name of a space of a kind. */
static bool space_of(Parser *p, SpaceKind k, const char *what, Space **s) {
    Span at = p->tok.span;
    if (!parse_space(p, s)) return false;
    return (*s)->kind == k || parse_fail(p, DIAG_E0409, at, "'%s' is not %s", (*s)->name, what);
}

/* Parses (paper, 1) after `first`. */
static bool parse_prefix(Parser *p, SpaceKind k, const char *what, Space **full, int *hops) {
    int64_t n = 0;
    Span at = p->tok.span;
    if (!parse_expect(p, '(') || !space_of(p, k, what, full) || !parse_expect(p, ',')) return false;
    if (!parse_int(p, "a number of hops", 0, 64, &n) || !parse_expect(p, ')')) return false;
    *hops = (int)n;
    RelKind rel = (*full)->rel; /* the recipe comes later: space_is_sampled */
    bool sampled = rel == REL_BASE || rel == REL_REVERSE || rel == REL_UNDIRECTED;
    if (sampled && !space_of_batch(*full)) return true;
    return parse_fail(p, DIAG_E0409, at, "'%s' is not of the data", (*full)->name);
}

/* Parses (paper) after `distinct`, and adds the distinct rows of the node type. */
static bool parse_distinct(Parser *p, Span at, const char *name) {
    Space *node = NULL;
    if (!parse_expect(p, '(') || !space_of(p, SP_NODE, "a node type", &node)) return false;
    if (!parse_expect(p, ')')) return false;
    int n_spaces = p->m->spaces.n;
    Space *s = node->distinct_of ? NULL : space_distinct(p->m, node, at);
    if (!s || p->m->spaces.n == n_spaces)
        return parse_fail(p, DIAG_E0403, at, "'%s' has each of its rows once in '%s'", node->name,
                          s ? s->name : node->name);
    if (strcmp(name, s->name) != 0) space_rename(p->m, s, name);
    return own_size(p, s, "N_") && parse_span(p, &s->span);
}

/* Parses a node type: one of the data (`timeless`: its rows are visible at any time), the first
 * rows of one, or its distinct rows. */
static bool node_stmt(Parser *p) {
    Span at = p->tok.span;
    const char *name = NULL;
    if (!new_name(p, NAMES_SPACE, "the name of a node type", &name)) return false;
    Space *full = NULL;
    int hops = 0;
    if (parse_accept(p, '=')) {
        if (parse_accept_word(p, "distinct")) return parse_distinct(p, at, name);
        if (!parse_accept_word(p, "first")) return parse_expected(p, "'first' or 'distinct'");
        if (!parse_prefix(p, SP_NODE, "a node type", &full, &hops)) return false;
    }
    Space *s = space_node(p->m, name, at);
    s->prefix_of = full;
    s->hops = hops;
    s->timeless = !full && parse_accept_word(p, "timeless");
    return own_size(p, s, "N_") && parse_span(p, &s->span);
}

/* Parses a graph type. */
static bool graph_stmt(Parser *p) {
    Span at = p->tok.span;
    const char *name = NULL;
    if (!new_name(p, NAMES_SPACE, "the name of a graph type", &name)) return false;
    Space *s = space_graph(p->m, name, at);
    return own_size(p, s, "G_") && parse_span(p, &s->span);
}

/* Whether the derived relation may have these bases; else an error. */
static bool check_bases(Parser *p, Span at, RelKind k, const Space *x, const Space *y) {
    if ((k == REL_SELF_LOOPS || k == REL_UNDIRECTED) && x->src != x->dst && !space_of_batch(x))
        return parse_fail(p, DIAG_E0409, at, "'%s' joins two node types: no %s", x->name,
                          text_RelKind.word[k]);
    if (k == REL_UNION && (x->src != y->src || x->dst != y->dst))
        return parse_fail(p, DIAG_E0409, at, "'%s' and '%s' join different node types", x->name,
                          y->name);
    RelKind of = k == REL_ANSWERS ? REL_QUERIES : REL_ANSWERS;
    if (k >= REL_ANSWERS ? x->rel != of : space_of_batch(x) && rel_is_drawn(k))
        return parse_fail(p, DIAG_E0409, at, "'%s' has no %s", x->name, text_RelKind.word[k]);
    return true;
}

/* Parses `: user.0 -> item.0`, the ends of links that are seeds. */
static bool seed_ends(Parser *p, Space **src, Space **dst, const Space *base) {
    Space **end[] = {src, dst};
    for (int i = 0; i < 2; i++) {
        Span at = p->tok.span;
        if (i && p->tok.kind != T_ARROW) return parse_expected(p, "'->'");
        if (i) {
            parse_lex_next(p);
            at = p->tok.span;
        }
        if (!space_of(p, SP_NODE, "a node type", end[i])) return false;
        const Space *s = *end[i];
        if (s->prefix_of != (i ? base->dst : base->src) || s->hops)
            return parse_fail(p, DIAG_E0409, at, "'%s' is not the seeds of '%s'", s->name,
                              (i ? base->dst : base->src)->name);
    }
    return true;
}

/* Parses a derived relation. */
static bool derived_edge(Parser *p, Span at, const char *name, Space **s) {
    int k = 0;
    Space *x = NULL, *y = NULL;
    const char *cond = NULL;
    if (!parse_word(p, &text_RelKind, "a relation expression", &k)) return false;
    if (k == REL_BASE) return parse_fail(p, DIAG_E0401, at, "'base' is not a relation expression");
    if (!parse_expect(p, '(') || !space_of(p, SP_EDGE, "an edge type", &x)) return false;
    if (k == REL_UNION || k == REL_WHERE) {
        if (!parse_expect(p, ',')) return false;
        if (k == REL_UNION && !space_of(p, SP_EDGE, "an edge type", &y)) return false;
        if (k == REL_WHERE && !parse_text(p, "the name of an output of @load", &cond)) return false;
    }
    if (!parse_expect(p, ')') || !check_bases(p, at, (RelKind)k, x, y)) return false;
    int before = p->m->spaces.n;
    Space *src = NULL, *dst = NULL;
    bool joins = (k == REL_LINKS || k == REL_POSITIVES) && parse_accept(p, ':');
    if (joins && !seed_ends(p, &src, &dst, x)) return false;
    *s = joins ? space_links(p->m, (RelKind)k, x, src, dst, at)
               : space_derived(p->m, (RelKind)k, x, y, cond, at);
    if (p->m->spaces.n == before)
        return parse_fail(p, DIAG_E0403, at, "'%s' is the same relation as '%s'", name, (*s)->name);
    if (strcmp(name, (*s)->name) != 0) space_rename(p->m, *s, name);
    return true;
}

/* Parses a relation. */
static bool edge_stmt(Parser *p) {
    Span at = p->tok.span;
    const char *name = NULL;
    Space *s = NULL, *src = NULL, *dst = NULL, *whole = NULL;
    int hops = 0;
    if (!new_name(p, NAMES_SPACE, "the name of an edge type", &name)) return false;
    bool made = parse_accept(p, '=');
    bool first = made && parse_accept_word(p, "first");
    if (first && !parse_prefix(p, SP_EDGE, "an edge type", &whole, &hops)) return false;
    if (made && !first) {
        if (!derived_edge(p, at, name, &s)) return false;
    } else {
        if (!parse_expect(p, ':') || !space_of(p, SP_NODE, "a node type", &src)) return false;
        if (p->tok.kind != T_ARROW) return parse_expected(p, "'->'");
        parse_lex_next(p);
        if (!space_of(p, SP_NODE, "a node type", &dst)) return false;
        s = space_edge(p->m, name, src, dst, at);
        s->prefix_of = whole;
        s->hops = hops;
        s->timeless = !whole && parse_accept_word(p, "timeless");
    }
    return own_size(p, s, "E_") && parse_span(p, &s->span);
}

/* Parses which graph type a node type's rows belong to. */
static bool member_stmt(Parser *p) {
    Space *node, *graph;
    Span at = p->tok.span;
    if (!space_of(p, SP_NODE, "a node type", &node) || !parse_expect(p, ':')) return false;
    if (!space_of(p, SP_GRAPH, "a graph type", &graph)) return false;
    if (node->graph)
        return parse_fail(p, DIAG_E0403, at, "'%s' already belongs to '%s'", node->name,
                          node->graph->name);
    node->graph = graph;
    return true;
}

/* Parses a size symbol. */
static bool sym_stmt(Parser *p) {
    const char *name = NULL;
    if (!new_name(p, NAMES_SYM, "the name of a size", &name)) return false;
    sym_new(p->m, name);
    return true;
}

/* ---- columns -------- */
/* Parses "space.name": the longest prefix that names a space. */
static bool column_name(Parser *p, Space **space, const char **name) {
    Span at = p->tok.span;
    const char *whole = NULL;
    if (!new_name(p, NAMES_COL, "a column, as 'space.name'", &whole)) return false;
    for (size_t n = strlen(whole); n-- > 0;) {
        if (whole[n] != '.' || !whole[n + 1]) continue;
        *space = space_find(p->m, arena_strndup(p->a, whole, n));
        *name = whole + n + 1;
        if (*space) break;
    }
    if (!*space)
        return parse_fail(p, DIAG_E0402, at, "'%s' starts with no space of this module", whole);
    bool loaded = !(*space)->prefix_of && ((*space)->kind == SP_NODE ||
                                           (*space)->kind == SP_GRAPH || (*space)->kind == SP_EDGE);
    return loaded || parse_fail(p, DIAG_E0409, at, "'%s' cannot have data", (*space)->name);
}

/* What stands after the colon. */
typedef struct {
    int kind, n_dims;
    Space *dims[MAX_RANK], *cat;
} ColumnSpec;

/* Parses the type of a column of numbers. */
static bool float_column(Parser *p, Space *space, ColumnSpec *c) {
    Span at = p->tok.span;
    Type t;
    if (!parse_type(p, &t)) return false;
    if (t.dt != DT_F32 || t.rank < 1 || t.dim[0] != space)
        return parse_fail(p, DIAG_E0409, at, "this column must be f32[%s, ..]", space->name);
    c->kind = t.layout == LAYOUT_CSR ? COL_CSR : COL_FLOAT;
    c->n_dims = t.rank - 1;
    for (int i = 1; i < t.rank; i++) c->dims[i - 1] = t.dim[i];
    return true;
}

/* Parses the kind and type of a column. */
static bool column_spec(Parser *p, Space *space, ColumnSpec *c) {
    Span at = p->tok.span;
    c->kind = p->tok.kind == T_NAME ? text_find(&text_ColKind, p->tok.s, strlen(p->tok.s)) : -1;
    if (c->kind < 0 || c->kind == COL_CSR || c->kind == COL_FLOAT) return float_column(p, space, c);
    parse_lex_next(p);
    int n = 0;
    if (column_facts[c->kind].codes) return parse_spaces(p, 1, &n, &c->cat);
    if (column_facts[c->kind].n_dims == 0) return true;
    if (!parse_spaces(p, MAX_RANK - 1, &c->n_dims, c->dims)) return false;
    for (int i = 0; i < c->n_dims; i++)
        if (c->dims[i] == space)
            return parse_fail(p, DIAG_E0409, at, "'%s' stands twice in this column", space->name);
    return true;
}

/* Parses a column. */
static bool column_stmt(Parser *p) {
    Span at = p->tok.span, nz_at = at;
    Space *space = NULL;
    const char *name = NULL, *nz = NULL;
    ColumnSpec spec = {0};
    if (!column_name(p, &space, &name) || !parse_expect(p, ':')) return false;
    if (!column_spec(p, space, &spec)) return false;
    if (spec.kind == COL_CSR) {
        if (!parse_accept_word(p, "nz"))
            return parse_expected(p, "'nz' and the name of its entries");
        nz_at = p->tok.span;
        if (!new_name(p, NAMES_SPACE, "the name of its stored entries", &nz)) return false;
    }
    Column *c =
        column_new(p->m, (ColKind)spec.kind, space, name, spec.n_dims, spec.dims, spec.cat, at);
    if (nz) {
        if (strcmp(nz, c->nz->name) != 0) space_rename(p->m, c->nz, nz);
        c->nz->span = nz_at;
        if (!own_size(p, c->nz, "nnz_")) return false;
    }
    return parse_span(p, &c->span);
}

/* ---- variables -------- */
/* Parses an initial value. */
static bool parse_init(Parser *p, Init *in) {
    int kind = 0;
    Span at = p->tok.span;
    if (!parse_word(p, &text_InitKind, "an initialiser", &kind)) return false;
    in->kind = (InitKind)kind;
    if (!parse_expect(p, '(') || !parse_real(p, "a number", &in->a)) return false;
    while (parse_accept(p, ',')) {
        if (parse_accept_word(p, "fan_in")) {
            if (!parse_expr(p, &in->fan_in)) return false;
        } else if (parse_accept_word(p, "fan_out")) {
            if (!parse_expr(p, &in->fan_out)) return false;
        } else if (!parse_real(p, "a number, fan_in or fan_out", &in->b))
            return false;
    }
    bool needs_in = kind == INIT_GLOROT || kind == INIT_KAIMING_UNIFORM;
    if ((needs_in && !in->fan_in) || (kind == INIT_GLOROT && !in->fan_out))
        return parse_fail(p, DIAG_E0409, at, "'%s' needs fan_in%s", text_InitKind.word[kind],
                          kind == INIT_GLOROT ? " and fan_out" : "");
    return parse_expect(p, ')');
}

/* Parses the shape in checkpoints. */
static bool save_shape(Parser *p, Var *v) {
    if (!parse_expect(p, '[')) return false;
    do {
        Span at = p->tok.span;
        if (v->save_rank == MAX_RANK)
            return parse_fail(p, DIAG_E0409, at, "more than %d sizes here", MAX_RANK);
        if (!parse_expr(p, &v->save_shape[v->save_rank])) return false;
        v->save_rank++;
    } while (parse_accept(p, ','));
    return parse_expect(p, ']');
}

/* Parses ` of "w"`, ` role updates`: what a slot is for. */
static bool var_use(Parser *p, Var *v) {
    int role = ROLE_NONE;
    if (v->kind != VAR_SLOT) return true;
    if (parse_accept_word(p, "of") && !parse_var(p, &v->of)) return false;
    if (parse_accept_word(p, "role") && !parse_word(p, &text_VarRole, "a role", &role))
        return false;
    v->role = (VarRole)role;
    return true;
}

/* Parses a variable. */
static bool var_stmt(Parser *p, VarKind k) {
    Span at = p->tok.span;
    const char *path = NULL;
    Type t;
    Init in = {0};
    if (p->tok.kind != T_STRING) return parse_expected(p, "a path in quotes");
    if (!new_name(p, NAMES_VAR, "a path", &path) || !parse_expect(p, ':')) return false;
    Span type_at = p->tok.span;
    int64_t transposed = 0;
    if (!parse_type(p, &t)) return false;
    if (parse_accept_word(p, "transposed") &&
        !parse_int(p, "how many of its spaces are the last as written", 1, t.rank - 1, &transposed))
        return false;
    if (!parse_expect(p, '=') || !parse_init(p, &in)) return false;
    if (t.layout != LAYOUT_DENSE) return parse_fail(p, DIAG_E0409, type_at, "a variable is dense");
    Var *v = var_new(p->m, k, path, t, in, at);
    v->transposed = (int)transposed;
    if (parse_accept_word(p, "as") && !save_shape(p, v)) return false;
    if (parse_accept_word(p, "group") && !parse_text(p, "a group's name", &v->group)) return false;
    return var_use(p, v) && parse_span(p, &v->span);
}

/* ---- options of the model ------------------------------------------------------------------ */
/* Parses a bound of an option and the reason for it. */
static bool option_bound(Parser *p, const char *what, double *to, const char **why) {
    if (!parse_real(p, what, to)) return false;
    return !parse_accept_word(p, "why") || parse_text(p, "the reason in quotes", why);
}

/* Parses an option of the model. */
static bool option_stmt(Parser *p) {
    Span at = p->tok.span;
    const char *name = NULL;
    Space *dim = NULL;
    double first;
    if (!parse_text(p, "the name of an option in quotes", &name)) return false;
    if (module_option(p->m, name))
        return parse_fail(p, DIAG_E0403, at, "the option '%s' is declared twice", name);
    const char *fault = module_option_name_fault(name);
    if (fault) return parse_fail(p, DIAG_E0409, at, "the option '%s': %s", name, fault);
    if (parse_accept_word(p, "dim") && !space_of(p, SP_DIM, "a dimension", &dim)) return false;
    if (dim && dim->size->kind != EX_SYM)
        return parse_fail(p, DIAG_E0409, at, "the size of '%s' is known already", dim->name);
    if (!parse_expect(p, '=') || !parse_real(p, "a number", &first)) return false;
    ModelOption *o = module_option_new(p->m, name, dim, first, at);
    if (!parse_accept_word(p, "from")) return parse_expected(p, "'from'");
    if (!option_bound(p, "the least number", &o->least, &o->why_least)) return false;
    if (!parse_accept_word(p, "to")) return parse_expected(p, "'to'");
    if (!option_bound(p, "the largest number", &o->most, &o->why_most)) return false;
    if (!module_option_fits(o))
        return parse_fail(p, DIAG_E0409, at, "the option '%s' is %g, not %sfrom %g to %g", name,
                          first, dim ? "one of the sizes " : "", o->least, o->most);
    return parse_span(p, &o->span);
}

/* ---- functions in C ----------------------------------------------------------------------- */
/* Parses a C function. */
static bool extern_stmt(Parser *p) {
    Span at = p->tok.span;
    const char *name = NULL, *file = NULL;
    if (!parse_text(p, "the name of a C function in quotes", &name)) return false;
    if (extern_find(p->m, name))
        return parse_fail(p, DIAG_E0403, at, "the function '%s' is declared twice", name);
    if (!parse_accept_word(p, "from")) return parse_expected(p, "'from' and a file in quotes");
    if (!parse_text(p, "a file in quotes", &file)) return false;
    Extern *f = extern_new(p->m, name, file, at);
    if (parse_accept_word(p, "grad") && !parse_text(p, "a C function's name", &f->grad))
        return false;
    f->effect = parse_accept_word(p, "effect");
    f->device = parse_accept_word(p, "device");
    return parse_span(p, &f->span);
}

/* ---- recipe -------- */
/* Parses a field of the recipe. */
static bool recipe_value(Parser *p, const RecipeField *f) {
    void *at = (char *)&p->m->recipe + f->offset;
    int64_t n = 0;
    switch (f->kind) {
    case RF_TEXT:
        return parse_text(p, "a text in quotes", (const char **)at);
    case RF_REAL:
        return parse_real(p, "a number", at);
    case RF_WORD:
        return parse_word(p, f->words, "a known word", at);
    case RF_INT:
        return parse_int(p, f->name, 0, INT64_MAX, at);
    default:
        if (!parse_int(p, f->name, 0, 1, &n)) return false;
        *(bool *)at = n != 0;
        return true;
    }
}

/* Parses a parameter group. */
static bool group_stmt(Parser *p) {
    ParamGroup g = {.lr_scale = 1};
    if (p->tok.kind == T_STRING && !parse_text(p, "a group's name", &g.name)) return false;
    if (!parse_accept_word(p, "lr_scale")) return parse_expected(p, "'lr_scale'");
    if (!parse_expect(p, '=') || !parse_real(p, "a number", &g.lr_scale)) return false;
    if (!parse_accept_word(p, "weight_decay")) return parse_expected(p, "'weight_decay'");
    if (!parse_expect(p, '=') || !parse_real(p, "a number", &g.weight_decay)) return false;
    vec_push(p->a, &p->m->recipe.groups, g);
    return true;
}

/* Parses the fanouts of a relation. */
static bool fanout_list(Parser *p, SampleRel *r, int *n) {
    enum { MAX_HOPS = 64 };
    r->fanout = NEWN(p->a, int64_t, MAX_HOPS);
    if (!parse_expect(p, '=') || !parse_expect(p, '[')) return false;
    do {
        int64_t *to = &r->fanout[*n];
        if (++*n > MAX_HOPS)
            return parse_fail(p, DIAG_E0407, p->tok.span, "more than %d hops", MAX_HOPS);
        if (parse_accept_word(p, "all"))
            *to = -1;
        else if (!parse_int(p, "a number of edges", 0, INT32_MAX, to))
            return false;
    } while (parse_accept(p, ','));
    return parse_expect(p, ']');
}

/* Parses a line of fanouts. */
static bool fanout_stmt(Parser *p) {
    Sampling *s = &p->m->recipe.sample;
    SampleRel r = {0};
    int n = 0;
    Span at = p->tok.span;
    if (!parse_space(p, &r.rel) || !fanout_list(p, &r, &n)) return false;
    bool twice = false;
    for (int i = 0; i < s->rels.n; i++) twice |= s->rels.v[i].rel == r.rel;
    bool alike = !twice && (!s->rels.n || s->n_hops == n);
    s->n_hops = n;
    if (!alike || !space_is_sampled(p->m, r.rel))
        return parse_fail(p, DIAG_E0403, at,
                          "each relation that is drawn along has one fan-out, all of as many hops");
    vec_push(p->a, &s->rels, r);
    return true;
}

/* Parses a column of weights or times. */
static bool sampled_column(Parser *p, bool weight) {
    Sampling *s = &p->m->recipe.sample;
    Column *c;
    Span at = p->tok.span;
    if (!parse_column(p, &c)) return false;
    bool edges = c->space->kind == SP_EDGE;
    if (weight ? c->kind != COL_FLOAT || c->type.rank != 1 || !edges : c->kind != COL_TIME)
        return parse_fail(p, DIAG_E0403, at,
                          weight ? "a weight is an f32 column of a relation"
                                 : "a time is a time column");
    if (weight)
        vec_push(p->a, &s->weights, c);
    else
        vec_push(p->a, &s->times, c);
    return true;
}

/* Parses a column that requests bring. */
static bool request_column(Parser *p) {
    Column *c;
    Span at = p->tok.span;
    if (!parse_column(p, &c)) return false;
    if (!space_is_drawn(c->space))
        return parse_fail(p, DIAG_E0403, at, "a column that is brought is one of a step's links");
    for (int i = 0; i < p->m->recipe.sample.request_columns.n; i++)
        if (p->m->recipe.sample.request_columns.v[i] == c)
            return parse_fail(p, DIAG_E0403, at, "it is brought twice");
    vec_push(p->a, &p->m->recipe.sample.request_columns, c);
    return true;
}

/* Parses a line of the recipe. */
static bool recipe_line(Parser *p) {
    const char *name = NULL;
    Span at = p->tok.span;
    if (!parse_name(p, "a setting of the recipe", &name)) {
        parse_lex_next(p);
        return false;
    }
    if (strcmp(name, "group") == 0) return group_stmt(p);
    if (strcmp(name, "fanout") == 0) return fanout_stmt(p);
    if (strcmp(name, "weight") == 0) return sampled_column(p, true);
    if (strcmp(name, "time") == 0) return sampled_column(p, false);
    if (strcmp(name, "brought") == 0) return request_column(p);
    for (int i = 0; i < text_n_recipe; i++)
        if (strcmp(text_recipe[i].name, name) == 0)
            return parse_expect(p, '=') && recipe_value(p, &text_recipe[i]);
    return parse_fail(p, DIAG_E0402, at, "a recipe has no setting '%s'", name);
}

/* Parses the recipe. */
static bool recipe_stmt(Parser *p) {
    Span at = p->tok.span;
    if (p->m->recipe.present) parse_fail(p, DIAG_E0403, at, "a second recipe");
    p->m->recipe.present = true;
    if (!parse_expect(p, '{') || !parse_span(p, &p->m->recipe.optimizer)) return false;
    while (!parse_stop(p) && !parse_is(p, '}'))
        if (!recipe_line(p)) parse_skip_line(p);
    return parse_expect(p, '}');
}

/* ---- module -------- */
/* Parses the facts of the module. */
static bool has_stmt(Parser *p) {
    int bit;
    uint32_t line = p->prev_line;
    while (p->tok.kind == T_NAME && p->tok.span.line == line) {
        if (!parse_word(p, &text_facts, "typed, grad, optim, no_csr or fused", &bit)) return false;
        p->m->has |= 1u << bit;
    }
    return true;
}

/* Parses the passes that are still to run. */
static bool pending_stmt(Parser *p) {
    return parse_text(p, "names of passes in quotes", &p->m->pending);
}

/* Parses a note: note @train stops "'log' is read at the end of the epoch" !gcn.gnn:9:3-20 */
static bool note_stmt(Parser *p) {
    const char *func = p->tok.s, *text = NULL;
    Span at = p->tok.span;
    if (p->tok.kind != T_FUNC)
        return parse_fail(p, DIAG_E0401, at, "expected a function's name, as '@train'");
    parse_lex_next(p);
    bool stops = parse_accept_word(p, "stops");
    if (!parse_text(p, "what became of it, in quotes", &text)) return false;
    if (!parse_span(p, &at)) return false;
    if (!at.line) return parse_fail(p, DIAG_E0401, p->tok.span, "a note has a position");
    return module_note_of(p->m, func, at, stops, text) ||
           parse_fail(p, DIAG_E0403, at, "this note stands there already");
}

/* Parses the number of effects. */
static bool effects_stmt(Parser *p) {
    int64_t n = 0;
    if (!parse_int(p, "the number of host effects in the model", 0, INT32_MAX, &n)) return false;
    p->m->effects_counted = true;
    p->m->n_effects = (int)n;
    return true;
}

/* Parses the order of maps. */
static bool maps_stmt(Parser *p) {
    VEC(Map *) all = {0};
    Span at = p->tok.span;
    do {
        Map *m = NULL;
        if (!parse_map(p, &m)) return false;
        vec_push(p->a, &all, m);
    } while (parse_accept(p, ','));
    return module_order_maps(p->m, all.n, all.v) ||
           parse_fail(p, DIAG_E0403, at, "a map stands twice in this list");
}

/* Parses the number of random streams. */
static bool streams_stmt(Parser *p) {
    int64_t n = 0;
    if (!parse_int(p, "the number of streams", 0, 1 << 20, &n)) return false;
    p->m->n_streams = (int)n;
    return true;
}

/* Parses a statement. */
static bool parse_statement(Parser *p, const char *word, Span at) {
    static const struct {
        const char *word;
        bool (*read)(Parser *);
    } table[] = {{"dim", dim_stmt},         {"node", node_stmt},     {"graph", graph_stmt},
                 {"edge", edge_stmt},       {"member", member_stmt}, {"sym", sym_stmt},
                 {"column", column_stmt},   {"recipe", recipe_stmt}, {"has", has_stmt},
                 {"streams", streams_stmt}, {"extern", extern_stmt}, {"pending", pending_stmt},
                 {"maps", maps_stmt},       {"note", note_stmt},     {"effects", effects_stmt},
                 {"option", option_stmt}};
    for (size_t i = 0; i < COUNT(table); i++)
        if (strcmp(table[i].word, word) == 0) return table[i].read(p);
    int var = text_find(&text_VarKind, word, strlen(word));
    if (var >= 0) return var_stmt(p, (VarKind)var);
    if (strcmp(word, "source") == 0) return parse_text(p, "a path", &p->m->source_path);
    bool body = strcmp(word, "body") == 0;
    if (!body && strcmp(word, "func") != 0)
        return parse_fail(p, DIAG_E0401, at, "'%s' does not start a statement of a module", word);
    parse_func(p, body);
    return true;
}

/* Parses the statements of a module. */
static void module_body(Parser *p) {
    while (!parse_stop(p) && !parse_is(p, '}')) {
        Tok first = p->tok;
        parse_lex_next(p);
        bool ok = first.kind == T_NAME
                      ? parse_statement(p, first.s, first.span)
                      : first.kind != T_BAD && parse_fail(p, DIAG_E0401, first.span,
                                                          "expected a statement of a module");
        if (!ok) parse_skip_line(p);
    }
}

/* Begins to parse a source. */
Parser parse_begin(Ctx *c, uint32_t file) {
    const Source *s = &c->sources.v[file];
    Parser p = {.c = c, .a = c->a, .file = file, .line = 1, .ok = true};
    p.p = p.line_start = s->text;
    p.end = s->text + s->n_bytes;
    parse_lex_next(&p);
    return p;
}

/* Parses a module. */
bool parse_module(Parser *p) {
    const char *name = NULL;
    if (!parse_accept_word(p, "module")) return parse_expected(p, "'module'");
    if (!parse_text(p, "the module's name in quotes", &name)) return false;
    p->m = module_new(p->c, name);
    p->m->text_file = p->file;
    if (!parse_expect(p, '{')) return false;
    module_body(p);
    return p->c->n_errors < p->c->max_errors && parse_expect(p, '}');
}

/* The line `sources {` in the first column; NULL: there is none. */
static const char *find_sources(const char *s, const char *end, uint32_t *line) {
    static const char word[] = "sources {";
    for (*line = 1; s < end; s = text_line_end(s, end), ++*line)
        if ((size_t)(end - s) >= sizeof word - 1 && !memcmp(s, word, sizeof word - 1)) return s;
    return NULL;
}

/* Reads the section of sources, which ends the text, before the positions that name them. */
static bool read_sources(Parser *p, uint32_t *first) {
    uint32_t line;
    const char *from = find_sources(p->line_start, p->end, &line);
    if (!from) return true;
    if (from < p->p) return parse_expected(p, "'module', before the 'sources'");
    Parser q = *p;
    bool ok = parse_sources(&q, from, p->end, line, first) && q.ok;
    if (ok && q.tok.kind != T_END) ok = parse_expected(&q, "the end of the text");
    p->end = from;
    p->sourced = true;
    return ok;
}

/* Parses a module with all positions. */
Module *module_parse(Ctx *c, uint32_t file) {
    Parser p = parse_begin(c, file);
    uint32_t first = 0;
    if (!read_sources(&p, &first) || !parse_module(&p)) return NULL;
    p.m->sourced = p.sourced;
    p.m->main_file = first;
    if (p.tok.kind != T_END) parse_expected(&p, "the end of the text");
    return p.ok && p.tok.kind != T_BAD ? p.m : NULL;
}
