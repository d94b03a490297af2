/* The text form of a module.  It parses back to itself (ir/parse.c): spaces and
 * columns come out in the order in which they were made, so names and symbols are
 * found again; values are named by their hint, made unique, or numbered.
 *
 *     module "gat" {
 *       node paper                                   !gat.gnn:4:8
 *       edge cites: paper -> paper
 *       func @train {
 *         %x = data paper.x : csr f32[paper, F]      !gat.gnn:12:20-29
 *
 * Positions in the text that a module itself was parsed from are left out. */
#include "ir/sources.h"

#include <string.h>

/* What is printed: all of a module, or the computation alone. */
typedef struct {
    const Module *m;
    bool computation;
    uint32_t own_file; /* positions in it are left out */
    bool sites;        /* with the calls that led to a library's lines */
    bool notes;        /* with what became of breaks */
    bool file;         /* with the passes that are to come, and the order of maps */
} PrintContext;

/* Prints a path, in quotes if necessary. */
static void print_path(StrBuf *b, const char *path) {
    if (text_is_bare_path(path))
        sb_puts(b, path);
    else
        ir_string_print(b, path);
}

/* Prints a position. */
void ir_span_print(StrBuf *b, const Ctx *c, uint32_t own_file, bool site, Span at) {
    uint32_t n = (uint32_t)c->sources.n;
    if (at.line == 0 || at.file == own_file || at.file >= n) return;
    sb_puts(b, "  !");
    print_path(b, ctx_source_name(c, at.file));
    sb_printf(b, ":%u:%u", at.line, at.col);
    if (at.end_line == at.line)
        sb_printf(b, "-%u", at.end_col);
    else if (at.end_line)
        sb_printf(b, "-%u:%u", at.end_line, at.end_col);
    if (!site || !at.site_line || at.site_file == own_file || at.site_file >= n) return;
    sb_puts(b, "<");
    print_path(b, ctx_source_name(c, at.site_file));
    sb_printf(b, ":%u", at.site_line);
    if (!at.site_name) return;
    sb_puts(b, "@");
    print_path(b, at.site_name);
}

/* Ends a line, with its position. */
static void end_line(StrBuf *b, const PrintContext *w, Span at) {
    if (!w->computation) ir_span_print(b, w->m->ctx, w->own_file, w->sites, at);
    sb_puts(b, "\n");
}

/* Prints a list of spaces. */
static void print_spaces(StrBuf *b, int n, Space *const *v) {
    sb_puts(b, "[");
    for (int i = 0; i < n; i++) {
        if (i) sb_puts(b, ", ");
        ir_name_print(b, v[i]->name);
    }
    sb_puts(b, "]");
}

/* Prints a type. */
void type_print(StrBuf *b, const Type *t) {
    if (t->layout == LAYOUT_CSR) sb_puts(b, "csr ");
    sb_puts(b, dtype_name(t->dt));
    if (t->rank) print_spaces(b, t->rank, t->dim);
}

/* Prints the name of a column. */
void ir_column_print(StrBuf *b, const Column *c) {
    if (text_is_bare_name(c->space->name) && text_is_bare_name(c->name)) {
        sb_printf(b, "%s.%s", c->space->name, c->name);
        return;
    }
    StrBuf whole = sb_new(b->a);
    sb_printf(&whole, "%s.%s", c->space->name, c->name);
    ir_string_print(b, whole.s);
}

/* ---- spaces, columns, variables ------------------------------------------------ */
/* Prints ` size NAME`, where the symbol is not the one that a parser would choose. */
static void print_own_size(StrBuf *b, const Space *s, const char *prefix) {
    const Sym *sym = s->size->sym;
    size_t n = strlen(prefix);
    if (strncmp(sym->name, prefix, n) == 0 && strcmp(sym->name + n, s->name) == 0) return;
    sb_puts(b, " size ");
    ir_name_print(b, sym->name);
}

/* Whether the space's size is a symbol of its own. */
static bool has_own_size(const Space *s) {
    return s->size->kind == EX_SYM && s->size->sym->of == s;
}

/* Prints a dimension. */
static void print_dim(StrBuf *b, const Space *s) {
    sb_puts(b, "  dim ");
    ir_name_print(b, s->name);
    if (has_own_size(s)) {
        print_own_size(b, s, "");
        return;
    }
    sb_puts(b, " = ");
    expr_print(b, s->size);
}

/* Prints what a prefix or distinct space is of. */
static void print_prefix(StrBuf *b, const Space *s) {
    if (s->distinct_of) {
        sb_puts(b, " = distinct(");
        ir_name_print(b, s->distinct_of->name);
        sb_puts(b, ")");
        return;
    }
    sb_puts(b, " = first(");
    ir_name_print(b, s->prefix_of->name);
    sb_printf(b, ", %d)", s->hops);
}

/* Prints the ends of a relation. */
static void print_ends(StrBuf *b, const Space *s) {
    sb_puts(b, ": ");
    ir_name_print(b, s->src->name);
    sb_puts(b, " -> ");
    ir_name_print(b, s->dst->name);
}

/* Prints a relation. */
static void print_edge(StrBuf *b, const Space *s) {
    sb_puts(b, "  edge ");
    ir_name_print(b, s->name);
    if (s->prefix_of) print_prefix(b, s);
    if (s->prefix_of || s->rel == REL_BASE) {
        print_ends(b, s);
        if (s->timeless) sb_puts(b, " timeless");
        return;
    }
    sb_printf(b, " = %s(", text_RelKind.word[s->rel]);
    ir_name_print(b, s->base[0]->name);
    if (s->base[1]) {
        sb_puts(b, ", ");
        ir_name_print(b, s->base[1]->name);
    }
    if (s->cond) {
        sb_puts(b, ", ");
        ir_string_print(b, s->cond);
    }
    sb_puts(b, ")");
    if (space_joins_seeds(s)) print_ends(b, s);
}

/* Prints a column. */
static void print_column(StrBuf *b, const PrintContext *w, const Column *c) {
    sb_puts(b, "  column ");
    ir_column_print(b, c);
    sb_puts(b, ": ");
    if (c->kind == COL_FLOAT || c->kind == COL_CSR) {
        type_print(b, &c->type);
    } else {
        sb_puts(b, text_ColKind.word[c->kind]);
        if (c->type.rank > 1) print_spaces(b, c->type.rank - 1, c->type.dim + 1);
    }
    if (c->cat) print_spaces(b, 1, &c->cat);
    if (c->nz) {
        sb_puts(b, " nz ");
        ir_name_print(b, c->nz->name);
        print_own_size(b, c->nz, "nnz_");
    }
    end_line(b, w, c->span);
}

/* Prints a space. */
static void print_space(StrBuf *b, const PrintContext *w, const Space *s) {
    switch (s->kind) {
    case SP_DIM:
        print_dim(b, s);
        break;
    case SP_EDGE:
        print_edge(b, s);
        print_own_size(b, s, "E_");
        break;
    default:
        sb_puts(b, s->kind == SP_NODE ? "  node " : "  graph ");
        ir_name_print(b, s->name);
        if (s->prefix_of) print_prefix(b, s);
        if (s->timeless) sb_puts(b, " timeless");
        print_own_size(b, s, s->kind == SP_NODE ? "N_" : "G_");
    }
    end_line(b, w, s->span);
}

/* Prints spaces and columns. A column makes its space of stored entries, so it is printed in that
 * space's place, after the columns made before it. */
static void print_data(StrBuf *b, const PrintContext *w) {
    const Module *m = w->m;
    int next = 0;
    for (int i = 0; i < m->syms.n; i++) {
        if (m->syms.v[i]->of) continue;
        sb_puts(b, "  sym ");
        ir_name_print(b, m->syms.v[i]->name);
        sb_puts(b, "\n");
    }
    for (int i = 0; i < m->spaces.n; i++) {
        const Space *s = m->spaces.v[i];
        if (s->kind != SP_NZ)
            print_space(b, w, s);
        else
            while (next <= s->nz_of->id) print_column(b, w, m->cols.v[next++]);
    }
    while (next < m->cols.n) print_column(b, w, m->cols.v[next++]);
    for (int i = 0; i < m->spaces.n; i++) {
        const Space *s = m->spaces.v[i];
        if (s->kind != SP_NODE || !s->graph) continue;
        sb_puts(b, "  member ");
        ir_name_print(b, s->name);
        sb_puts(b, ": ");
        ir_name_print(b, s->graph->name);
        sb_puts(b, "\n");
    }
}

/* Prints an initial value. */
static void print_init(StrBuf *b, const Init *in) {
    sb_printf(b, "%s(", text_InitKind.word[in->kind]);
    text_real(b, in->a);
    if (in->b != 0) {
        sb_puts(b, ", ");
        text_real(b, in->b);
    }
    if (in->fan_in) {
        sb_puts(b, ", fan_in ");
        expr_print(b, in->fan_in);
    }
    if (in->fan_out) {
        sb_puts(b, ", fan_out ");
        expr_print(b, in->fan_out);
    }
    sb_puts(b, ")");
}

/* Prints a variable. */
static void print_var(StrBuf *b, const PrintContext *w, const Var *v) {
    sb_printf(b, "  %s ", text_VarKind.word[v->kind]);
    ir_string_print(b, v->path);
    sb_puts(b, ": ");
    type_print(b, &v->type);
    if (v->transposed) sb_printf(b, " transposed %d", v->transposed);
    sb_puts(b, " = ");
    print_init(b, &v->init);
    for (int i = 0; i < v->save_rank; i++) {
        sb_puts(b, i ? ", " : " as [");
        expr_print(b, v->save_shape[i]);
    }
    if (v->save_rank) sb_puts(b, "]");
    if (v->group) {
        sb_puts(b, " group ");
        ir_string_print(b, v->group);
    }
    if (v->of) {
        sb_puts(b, " of ");
        ir_string_print(b, v->of->path);
    }
    if (v->role) sb_printf(b, " role %s", text_VarRole.word[v->role]);
    end_line(b, w, v->span);
}

/* ---- options of the model --------------------------------------------------------- */
/* Prints a bound of an option with the reason for it. */
static void print_bound(StrBuf *b, const PrintContext *w, double bound, const char *why) {
    text_real(b, bound);
    if (!why || w->computation) return;
    sb_puts(b, " why ");
    ir_string_print(b, why);
}

/* Prints an option of the model. */
static void print_option(StrBuf *b, const PrintContext *w, const ModelOption *o) {
    sb_puts(b, "  option ");
    ir_string_print(b, o->name);
    if (o->dim) {
        sb_puts(b, " dim ");
        ir_name_print(b, o->dim->name);
    }
    sb_puts(b, " = ");
    text_real(b, o->first);
    sb_puts(b, " from ");
    print_bound(b, w, o->least, o->why_least);
    sb_puts(b, " to ");
    print_bound(b, w, o->most, o->why_most);
    end_line(b, w, o->span);
}

/* ---- functions in C --------------------------------------------------------------- */
/* Prints a C function. */
static void print_extern(StrBuf *b, const PrintContext *w, const Extern *f) {
    sb_puts(b, "  extern ");
    ir_string_print(b, f->name);
    if (!w->computation) {
        sb_puts(b, " from ");
        ir_string_print(b, f->file);
    }
    if (f->grad) {
        sb_puts(b, " grad ");
        ir_string_print(b, f->grad);
    }
    if (f->effect) sb_puts(b, " effect");
    if (f->device) sb_puts(b, " device");
    end_line(b, w, f->span);
}

/* ---- recipe ------------------------------------------------------------------------ */
/* Prints a field of the recipe. */
static void print_field(StrBuf *b, const Recipe *r, const RecipeField *f) {
    const void *at = (const char *)r + f->offset;
    const char *text = f->kind == RF_TEXT ? *(const char *const *)at : NULL;
    double real = f->kind == RF_REAL ? *(const double *)at : 0;
    int64_t n = 0;
    if (f->kind == RF_INT) n = *(const int64_t *)at;
    if (f->kind == RF_WORD) n = *(const int *)at;
    if (f->kind == RF_BOOL) n = *(const bool *)at;
    if (!text && real == 0 && n == 0) return;
    sb_printf(b, "    %s = ", f->name);
    if (text)
        ir_string_print(b, text);
    else if (f->kind == RF_REAL)
        text_real(b, real);
    else if (f->kind == RF_WORD)
        sb_puts(b, f->words->word[n]);
    else
        sb_printf(b, "%lld", (long long)n);
    sb_puts(b, "\n");
}

/* Prints a list of columns. */
static void print_columns(StrBuf *b, const char *what, Column *const *c, int n) {
    for (int i = 0; i < n; i++) {
        sb_printf(b, "    %s ", what);
        ir_column_print(b, c[i]);
        sb_puts(b, "\n");
    }
}

/* Prints how batches are sampled: fanouts, columns of weights and times, and the columns that
 * requests bring. */
static void print_sampling(StrBuf *b, const Sampling *s) {
    for (int i = 0; s->n_hops && i < s->rels.n; i++) {
        sb_puts(b, "    fanout ");
        ir_name_print(b, s->rels.v[i].rel->name);
        for (int h = 0; h < s->n_hops; h++) {
            int64_t n = s->rels.v[i].fanout[h];
            sb_puts(b, h ? ", " : " = [");
            n < 0 ? sb_puts(b, "all") : sb_printf(b, "%lld", (long long)n);
        }
        sb_puts(b, "]\n");
    }
    print_columns(b, "weight", s->weights.v, s->weights.n);
    print_columns(b, "time", s->times.v, s->times.n);
    print_columns(b, "brought", s->request_columns.v, s->request_columns.n);
}

/* Prints the recipe. */
static void print_recipe(StrBuf *b, const PrintContext *w) {
    const Recipe *r = &w->m->recipe;
    if (!r->present) return;
    sb_puts(b, "  recipe {");
    end_line(b, w, r->optimizer);
    for (int i = 0; i < text_n_recipe; i++) print_field(b, r, &text_recipe[i]);
    for (int i = 0; i < r->groups.n; i++) {
        const ParamGroup *g = &r->groups.v[i];
        sb_puts(b, "    group");
        if (g->name) {
            sb_puts(b, " ");
            ir_string_print(b, g->name);
        }
        sb_puts(b, " lr_scale = ");
        text_real(b, g->lr_scale);
        sb_puts(b, " weight_decay = ");
        text_real(b, g->weight_decay);
        sb_puts(b, "\n");
    }
    print_sampling(b, &r->sample);
    sb_puts(b, "  }\n");
}

/* ---- functions ------------------------------------------------------------------------ */
/* A name in quotes. */
static const char *quoted(Arena *a, const char *name) {
    StrBuf b = sb_new(a);
    ir_name_print(&b, name);
    return b.s;
}

/* The names of a function's values. */
static const char **name_values(Arena *a, const Func *f, bool hints) {
    const char **names = NEWN(a, const char *, (size_t)f->n_ops);
    StrMap taken = {0};
    func_number((Func *)f);
    for (const Op *op = f->first; op; op = op->next) {
        if (!op_has_result(op)) continue;
        names[op->id] = hints && op->hint && *op->hint
                            ? quoted(a, text_name_for(a, &taken, op->hint))
                            : arena_printf(a, "%d", op->id);
    }
    return names;
}

const char **ir_value_names(Arena *a, const Func *f) {
    return name_values(a, f, true);
}

/* Prints a map by a pair. */
static void print_pair(StrBuf *b, const Map *m) {
    sb_puts(b, "pair(");
    for (int i = 0; i < 2; i++) {
        ir_map_print(b, m->pair[i]);
        sb_puts(b, ", ");
    }
    ir_name_print(b, m->to->name);
    if (m->via) {
        sb_puts(b, ", ");
        ir_map_print(b, m->via);
    }
    sb_puts(b, ")");
}

/* Prints a map. */
void ir_map_print(StrBuf *b, const Map *m) {
    if (m->kind == MAP_PAIR) {
        print_pair(b, m);
        return;
    }
    sb_printf(b, "%s(", text_MapKind.word[m->kind]);
    if (m->kind == MAP_COL || m->kind == MAP_VIA)
        ir_column_print(b, m->col);
    else
        ir_name_print(b, m->from->name);
    if (m->kind == MAP_VIA || m->kind == MAP_DISTINCT) {
        sb_puts(b, ", ");
        ir_name_print(b, m->kind == MAP_VIA ? m->from->name : m->to->name);
    }
    if (m->kind == MAP_ORIG) sb_printf(b, ", %d", m->which);
    if (m->kind == MAP_CELL) {
        sb_puts(b, ", ");
        ir_name_print(b, m->to->name);
    }
    sb_puts(b, ")");
}

/* Whether the text of the operation is for people. */
static bool is_message(const Op *op) {
    return op->kind == OP_PRINT || op->kind == OP_ASSERT;
}

/* Prints the attributes of an operation. */
static void print_attrs(StrBuf *b, const PrintContext *w, const Op *op) {
    unsigned at = op_attrs(op->kind);
    if (op->when) sb_puts(b, " when");
    if (at & OPA_RED) sb_printf(b, " %s", text_reds.word[op->red]);
    if (at & (OPA_RED | OPA_MAP | OPA_OVER | OPA_OVER1 | OPA_OVER2 | OPA_OVER3)) sb_puts(b, " ");
    if (at & OPA_MAP) ir_map_print(b, op->map);
    if (at & OPA_OVER1) ir_name_print(b, op->over[0]->name);
    if (at & (OPA_OVER | OPA_OVER2 | OPA_OVER3)) print_spaces(b, op->n_over, op->over);
    if (at & (OPA_COL | OPA_VAR | OPA_NAME | OPA_IMM | OPA_EXT | OPA_BODY)) sb_puts(b, " ");
    if (at & OPA_COL) ir_column_print(b, op->col);
    if (at & OPA_VAR) ir_string_print(b, op->var->path);
    if (at & OPA_NAME && !(w->computation && is_message(op))) ir_string_print(b, op->name);
    if (at & OPA_EXT) ir_string_print(b, op->ext->name);
    if (at & OPA_IMM) text_real(b, op->imm);
    if (at & OPA_BODY) {
        sb_puts(b, "@");
        ir_name_print(b, op->body->name);
    }
    if (at & OPA_LIMIT && op->imm) {
        sb_puts(b, " limit ");
        text_real(b, op->imm);
    }
    if (at & OPA_DTYPE) sb_printf(b, " %s", dtype_name(op->dtype));
    if (at & OPA_STREAM) sb_printf(b, " %d", op->stream);
    if (at & OPA_OFF) {
        sb_puts(b, " at ");
        expr_print(b, op->off);
    }
}

/* Prints what an output is for: ` as metric "accuracy" val`. */
static void print_use(StrBuf *b, const Op *op) {
    const OutputUse *u = &op->use;
    if (op->kind != OP_OUTPUT || u->role == OUT_VALUE) return;
    sb_printf(b, " as %s", text_OutputRole.word[u->role]);
    if (u->of || u->var) {
        sb_puts(b, " ");
        ir_string_print(b, u->var ? u->var->path : u->of);
    }
    if (u->split) sb_printf(b, " %s", text_SplitKind.word[u->split]);
    if (u->hops) sb_printf(b, " hops %d", u->hops);
}

/* Prints an operation. */
static void print_op(StrBuf *b, const PrintContext *w, const Op *op, const char **names) {
    sb_puts(b, "    ");
    if (op_has_result(op)) sb_printf(b, "%%%s = ", names[op->id]);
    if (op->fused) sb_puts(b, "fused ");
    if (op->again) sb_puts(b, "again ");
    if (op->ask) sb_printf(b, "%s ", text_asks.word[op->ask]);
    sb_puts(b, op_mnemonic(op->kind));
    print_attrs(b, w, op);
    for (int i = 0; i < op->n_in; i++) {
        const Op *x = op->in[i];
        bool known = x && x->func == op->func && op_has_result(x);
        sb_printf(b, "%s%%%s", i ? ", " : " ", known ? names[x->id] : "?");
    }
    print_use(b, op);
    if (op->type.dt != DT_VOID) {
        sb_puts(b, " : ");
        type_print(b, &op->type);
    }
    if (op->want) sb_printf(b, " @%s%s", dtype_name(op->want), op->update ? " update" : "");
    end_line(b, w, op->span);
}

/* Prints a function. */
static void print_func(StrBuf *b, const PrintContext *w, const Func *f) {
    const char **names = name_values(b->a, f, !w->computation);
    sb_puts(b, f->body ? "  body @" : "  func @");
    ir_name_print(b, f->name);
    sb_puts(b, " {");
    end_line(b, w, f->span);
    for (const Op *op = f->first; op; op = op->next) print_op(b, w, op, names);
    sb_puts(b, "  }\n");
}

void func_print(StrBuf *b, const Module *m, const Func *f) {
    print_func(b, &(PrintContext){.m = m, .own_file = m->text_file}, f);
}

/* ---- module ------------------------------------------------------------------------------ */
/* Prints the facts and pending passes. */
static void print_names(StrBuf *b, const Module *m) {
    sb_puts(b, " ");
    ir_string_print(b, m->name);
    sb_puts(b, " {\n");
    if (!m->source_path) return;
    sb_puts(b, "  source ");
    ir_string_print(b, m->source_path);
    sb_puts(b, "\n");
}

/* Prints the maps in the order of their numbers, which the functions do not show. */
static void print_maps(StrBuf *b, const Module *m) {
    for (int i = 0; i < m->maps.n; i++) {
        sb_puts(b, i ? ", " : "  maps ");
        ir_map_print(b, m->maps.v[i]);
    }
    if (m->maps.n) sb_puts(b, "\n");
}

/* Whether the text lists its sources. A text that was read and names no files has all of them in
 * itself. */
static bool has_sources(const Module *m) {
    return m->sourced || m->text_file == UINT32_MAX;
}

/* Prints the notes of --report=breaks. */
static void print_notes(StrBuf *b, const PrintContext *w) {
    const Module *m = w->m;
    if (m->effects_counted && m->n_effects) sb_printf(b, "  effects %d\n", m->n_effects);
    for (int i = 0; i < m->notes.n; i++) {
        const Note *x = &m->notes.v[i];
        if (x->span.file == w->own_file) continue;
        sb_puts(b, "  note @");
        ir_name_print(b, x->func);
        sb_puts(b, x->stops ? " stops " : " ");
        ir_string_print(b, x->text);
        end_line(b, w, x->span);
    }
}

/* Prints a module. */
static void print_module(StrBuf *b, const PrintContext *w) {
    const Module *m = w->m;
    sb_puts(b, "module");
    if (w->computation)
        sb_puts(b, " {\n");
    else
        print_names(b, m);
    if (m->has) {
        sb_puts(b, "  has");
        for (int i = 0; i < text_facts.n; i++)
            if (m->has & 1u << i) sb_printf(b, " %s", text_facts.word[i]);
        sb_puts(b, "\n");
    }
    if (m->pending && w->file) {
        sb_puts(b, "  pending ");
        ir_string_print(b, m->pending);
        sb_puts(b, "\n");
    }
    if (m->n_streams) sb_printf(b, "  streams %d\n", m->n_streams);
    print_data(b, w);
    if (w->file) print_maps(b, m);
    for (int i = 0; i < m->options.n; i++) print_option(b, w, &m->options.v[i]);
    for (int i = 0; i < m->vars.n; i++) print_var(b, w, m->vars.v[i]);
    for (int i = 0; i < m->externs.n; i++) print_extern(b, w, m->externs.v[i]);
    print_recipe(b, w);
    for (int i = 0; i < m->funcs.n; i++) {
        sb_puts(b, "\n");
        print_func(b, w, m->funcs.v[i]);
    }
    if (w->notes) print_notes(b, w);
    sb_puts(b, "}\n");
}

void module_print(StrBuf *b, const Module *m) {
    print_module(b, &(PrintContext){.m = m, .own_file = m->text_file});
}

/* Prints the module as a complete text that parse_module() reads: with the places of operations
 * and, where the module has them, the sources that they point to. */
void module_print_file(StrBuf *b, const Module *m) {
    print_module(b, &(PrintContext){.m = m,
                                    .own_file = m->text_file,
                                    .sites = true,
                                    .file = true,
                                    .notes = has_sources(m)});
    if (!has_sources(m)) return;
    sb_puts(b, "sources {\n");
    module_print_sources(b, m, m->text_file);
    sb_puts(b, "}\n");
}

void module_print_of(StrBuf *b, const Module *m, uint32_t own_file) {
    print_module(b, &(PrintContext){.m = m, .own_file = own_file, .sites = true, .notes = true});
}

/* Prints only the module's names and data (spaces, columns, relations), not its functions. */
void module_print_spaces(StrBuf *b, const Module *m) {
    const PrintContext w = {.m = m, .own_file = m->text_file};
    sb_puts(b, "module");
    print_names(b, m);
    print_data(b, &w);
    sb_puts(b, "}\n");
}

void module_print_computation(StrBuf *b, const Module *m) {
    print_module(b, &(PrintContext){.m = m, .computation = true});
}
