#include "frontend/editor/scope.h"

#include <string.h>

#include "frontend/syntax/parse.h"

/* ---- tokens --------------------------------------------------------------------------------- */
/* Is the token a name? Words such as `edge` are, where they are used as one. */
static bool is_name(const GivenToken *t) {
    switch (t->role) {
    case ROLE_USES:
    case ROLE_BINDS:
    case ROLE_NAMED:
        return true; /* "edge" and "node", too */
    default:
        return t->code == NAME;
    }
}

static const char **name_texts(Arena *a, Ctx *c, const FeFile *f) {
    const Source *src = &c->sources.v[f->id];
    const char **text = NEWN(a, const char *, (size_t)f->tokens.token.n + 1);
    size_t line_at = 0;
    uint32_t line = 1;
    for (int i = 0; i < f->tokens.token.n; i++) {
        const GivenToken *t = &f->tokens.token.v[i];
        for (; line < t->span.line; line++) {
            const char *end = memchr(src->text + line_at, '\n', src->n_bytes - line_at);
            line_at = end ? (size_t)(end - src->text) + 1 : src->n_bytes;
        }
        if (is_name(t))
            text[i] = arena_strndup(a, src->text + line_at + t->span.col - 1,
                                    t->span.end_col - t->span.col);
    }
    return text;
}

int scope_token_at(const ScopeFile *f, uint32_t line, uint32_t col) {
    int found = -1;
    for (int i = 0; i < f->file->tokens.token.n; i++) {
        Span at = f->file->tokens.token.v[i].span;
        if (at.line != line || col < at.col || col > at.end_col || at.end_col == at.col) continue;
        if (f->file->tokens.token.v[i].code == SEP && !f->text[i]) continue;
        if (found < 0 || col < at.end_col || f->text[i]) found = i;
        if (col < at.end_col) break;
    }
    return found;
}

/* ---- declarations --------------------------------------------------------------------------- */
static bool declares(int code) {
    return code == IMPORT || code == CONST || code == GRAPH || code == LAYER || code == FN ||
           code == EXTERN || code == MODEL || code == TRAIN;
}

static void bind(Arena *a, ScopeFile *f, ScopeRegion *r, int i) {
    if (!strmap_get(&r->bound, f->text[i]))
        strmap_put(a, &r->bound, f->text[i], &f->file->tokens.token.v[i]);
}

/* Names in the brackets of a type, or `edge(S -> D)`, of a parameter: unknown ones are bound. */
static bool binds_dims(const ScopeFile *f, int open) {
    if (open <= 0) return false;
    int code = f->file->tokens.token.v[open].code, before = f->file->tokens.token.v[open - 1].code;
    return code == '[' ? before == ETYPE : code == '(' && (before == EDGE || before == LAYER);
}

/* Records the names that one top-level declaration binds: parameters, locals, and the dimension
 * names of its head. */
static void bind_names_of_declaration(const Scope *s, ScopeFile *f, ScopeRegion *r) {
    const GivenToken *t = f->file->tokens.token.v;
    int code = t[r->from].code;
    VEC(int) open = {0};
    bool head = code == LAYER || code == FN || code == EXTERN;
    bool body = head || code == MODEL || code == CONST;
    for (int i = r->from; i < r->to; i++) {
        if (t[i].role == ROLE_BINDS && body && f->text[i]) bind(s->a, f, r, i);
        if (t[i].code == '{') head = false;
        if (t[i].code == '(' || t[i].code == '[') vec_push(s->a, &open, i);
        if ((t[i].code == ')' || t[i].code == ']') && open.n) open.n--;
        bool dim = head && open.n && f->text[i] && binds_dims(f, open.v[open.n - 1]);
        if (dim && !strmap_get(&s->notes->globals, f->text[i])) bind(s->a, f, r, i);
    }
}

/* Divides the file's tokens into its top-level declarations and binds the names of each. */
static void find_regions(Scope *s, ScopeFile *f) {
    const TokenList *list = &f->file->tokens;
    int depth = 0;
    for (int i = 0; i < list->token.n; i++) {
        const GivenToken *t = &list->token.v[i];
        depth += (t->code == '{') - (t->code == '}');
        if (depth < 0) depth = 0;
        if (depth || !t->begins || !declares(t->code)) continue;
        if (f->regions.n) f->regions.v[f->regions.n - 1].to = i;
        vec_push(s->a, &f->regions, ((ScopeRegion){.from = i, .to = list->token.n, .name = ""}));
    }
    for (int k = 0; k < f->regions.n; k++) {
        ScopeRegion *r = &f->regions.v[k];
        for (int i = r->from; i < r->to && i < r->from + 3; i++)
            if (f->text[i]) {
                r->name = f->text[i];
                break;
            }
        bind_names_of_declaration(s, f, r);
    }
}

Scope *scope_new(Arena *a, Ctx *c, const FeNotes *notes) {
    Scope *s = NEW(a, Scope);
    *s = (Scope){.c = c, .a = a, .notes = notes};
    for (int i = 0; i < notes->files.n; i++) {
        ScopeFile f = {.file = notes->files.v[i]};
        f.text = name_texts(a, c, f.file);
        vec_push(a, &s->files, f);
    }
    for (int i = 0; i < s->files.n; i++) find_regions(s, &s->files.v[i]);
    return s;
}

const ScopeFile *scope_file(const Scope *s, uint32_t id) {
    for (int i = 0; i < s->files.n; i++)
        if (s->files.v[i].file->id == id) return &s->files.v[i];
    return NULL;
}

const ScopeRegion *scope_region(const ScopeFile *f, int token) {
    for (int i = 0; i < f->regions.n; i++)
        if (f->regions.v[i].from <= token && token < f->regions.v[i].to) return &f->regions.v[i];
    return NULL;
}

static int region_code(const ScopeFile *f, const ScopeRegion *r) {
    return r ? f->file->tokens.token.v[r->from].code : 0;
}

/* ---- what a name stands for ----------------------------------------------------------------- */
/* The symbol that a declaration binds to this name; SYMBOL_NONE: it binds none. */
static Symbol local(const ScopeFile *f, const ScopeRegion *r, const char *name) {
    const GivenToken *t = strmap_get(&r->bound, name);
    if (!t) return (Symbol){.kind = SYMBOL_NONE};
    return (Symbol){
        .kind = SYMBOL_LOCAL, .name = name, .file = f, .region = r, .declared = t->span};
}

/* I' where only I is bound is another dimension of its size. */
static Symbol local_or_primed(Arena *a, const ScopeFile *f, const ScopeRegion *r,
                              const char *name) {
    Symbol s = local(f, r, name);
    for (size_t n = strlen(name); s.kind == SYMBOL_NONE && n > 1 && name[n - 1] == '\''; n--)
        s = local(f, r, arena_strndup(a, name, n - 1));
    return s;
}

/* Node types and relations stand in a graph's braces; names of sizes in the brackets of columns. */
static Symbol data(const Scope *s, const char *name) {
    for (int k = 0; k < s->files.n; k++) {
        const ScopeFile *f = &s->files.v[k];
        for (int i = 0; i < f->file->tokens.token.n; i++) {
            const GivenToken *t = &f->file->tokens.token.v[i];
            if (!f->text[i] || strcmp(f->text[i], name) != 0) continue;
            if (region_code(f, scope_region(f, i)) != GRAPH || i == 0) continue;
            bool size = t->role == ROLE_USES && t[-1].code != '(';
            bool table = t->role == ROLE_DATA && (t[-1].code == NODE_ || t[-1].code == EDGE);
            if (size || table)
                return (Symbol){.kind = SYMBOL_DATA, .name = name, .file = f, .declared = t->span};
        }
    }
    return (Symbol){.kind = SYMBOL_NONE};
}

/* The symbol of a declared or built-in name. The file's own declarations go before the library's,
 * except within the library. */
static Symbol global(const Scope *s, const ScopeFile *f, const char *name) {
    const Ast *mine = strmap_get(&s->notes->globals, name);
    const Ast *library = strmap_get(&s->notes->prelude, name);
    bool inside = library && library->span.file == f->file->id;
    const Ast *d = inside || !mine ? library : mine;
    if (d) return (Symbol){.kind = SYMBOL_GLOBAL, .name = name, .decl = d, .declared = d->span};
    for (int i = 0; fe_builtin_name(i); i++)
        if (strcmp(fe_builtin_name(i), name) == 0)
            return (Symbol){.kind = SYMBOL_BUILTIN, .name = name};
    return (Symbol){.kind = SYMBOL_NONE};
}

/* Where a declaration is, as a region. */
static const ScopeFile *file_of_decl(const Scope *s, const Ast *decl, const ScopeRegion **r) {
    const ScopeFile *f = scope_file(s, decl->span.file);
    for (int i = 0; f && i < f->file->tokens.token.n; i++) {
        Span at = f->file->tokens.token.v[i].span;
        bool here = f->text[i] && at.line == decl->span.line && at.col >= decl->span.col;
        if (here && strcmp(f->text[i], decl->text) == 0) {
            *r = scope_region(f, i);
            return *r ? f : NULL;
        }
    }
    return NULL;
}

/* The parameter that a named argument, `adam(lr = 1e-2)`, names. */
static Symbol named_argument(const Scope *s, const ScopeFile *f, int token) {
    const Ast *call = scope_call_of(s, f, f->file->tokens.token.v[token].span);
    const Ast *decl = call ? scope_callee(s, f, call->kid[0]) : NULL;
    const ScopeRegion *r = NULL;
    const ScopeFile *home = decl ? file_of_decl(s, decl, &r) : NULL;
    if (!home || !scope_formal(decl, f->text[token])) return (Symbol){.kind = SYMBOL_NONE};
    return local(home, r, f->text[token]);
}

/* `group conv1.lin { }` is of what the model of the recipe binds. */
static Symbol path(const ScopeFile *f, const ScopeRegion *recipe, const char *name) {
    for (int i = 0; recipe && i < f->regions.n; i++) {
        const ScopeRegion *r = &f->regions.v[i];
        if (region_code(f, r) == MODEL && strcmp(r->name, recipe->name) == 0)
            return local(f, r, name);
    }
    return (Symbol){.kind = SYMBOL_NONE};
}

/* A recipe is elaborated where the model's body ends, and sees its names behind the functions of
 * files. */
static Symbol seen_by_recipe(const Scope *s, const ScopeFile *f, const ScopeRegion *recipe,
                             const char *name) {
    if (global(s, f, name).kind == SYMBOL_GLOBAL) return (Symbol){.kind = SYMBOL_NONE};
    return path(f, recipe, name);
}

Symbol scope_symbol(const Scope *s, const ScopeFile *f, int token) {
    const char *name = token >= 0 ? f->text[token] : NULL;
    const ScopeRegion *r = name ? scope_region(f, token) : NULL;
    Symbol found = {.kind = SYMBOL_NONE};
    if (!r) return found;
    TokenRole role = f->file->tokens.token.v[token].role;
    int code = region_code(f, r);
    if (role == ROLE_MEMBER || role == ROLE_WORD || role == ROLE_ITEM) return found;
    if (role == ROLE_NAMED) return named_argument(s, f, token);
    if (role == ROLE_PATH) return path(f, r, name);
    if (role == ROLE_DECLARES) return global(s, f, name);
    if (code != GRAPH && code != TRAIN) found = local_or_primed(s->a, f, r, name);
    if (code == TRAIN) found = seen_by_recipe(s, f, r, name);
    bool of_data = code == GRAPH || code == TRAIN || code == MODEL;
    if (found.kind == SYMBOL_NONE && of_data) found = data(s, name);
    return found.kind == SYMBOL_NONE && role != ROLE_DATA ? global(s, f, name) : found;
}

bool scope_same(const Symbol *a, const Symbol *b) {
    if (a->kind != b->kind || a->kind == SYMBOL_NONE) return false;
    if (a->kind == SYMBOL_LOCAL && a->region != b->region) return false;
    if (a->kind == SYMBOL_GLOBAL) return a->decl == b->decl;
    return strcmp(a->name, b->name) == 0;
}

/* Collects where the symbol is used. False: some use of its name could not be resolved, and may be
 * one. */
bool scope_uses(const Scope *s, const Symbol *of, SymbolUses *to) {
    bool sure = true;
    for (int k = 0; k < s->files.n; k++) {
        const ScopeFile *f = &s->files.v[k];
        for (int i = 0; i < f->file->tokens.token.n; i++) {
            const GivenToken *t = &f->file->tokens.token.v[i];
            if (!f->text[i] || strncmp(f->text[i], of->name, strlen(of->name)) != 0) continue;
            Symbol found = scope_symbol(s, f, i);
            if (t->role == ROLE_NAMED && found.kind == SYMBOL_NONE)
                sure = sure && strcmp(f->text[i], of->name) != 0;
            if (!scope_same(of, &found)) continue;
            Span at = t->span;
            at.end_col = at.col + (uint32_t)strlen(found.name);
            vec_push(s->a, to, ((SymbolUse){at, t->role}));
        }
    }
    return sure;
}

/* ---- calls ---------------------------------------------------------------------------------- */
static const Ast *call_in(const Ast *t, Span named) {
    const Ast *found = NULL;
    for (int i = 0; t && i < t->n && !found; i++) {
        const Ast *k = t->kid[i];
        bool here =
            k && k->kind == AST_NAMED && k->span.line == named.line && k->span.col == named.col;
        found = here ? t : call_in(k, named);
    }
    return found;
}

const Ast *scope_call_of(const Scope *s, const ScopeFile *f, Span named) {
    (void)s;
    const Ast *t = call_in(f->file->tree, named);
    return t && t->kind == AST_CALL ? t : NULL;
}

const Ast *scope_callee(const Scope *s, const ScopeFile *f, const Ast *callee) {
    const FeNote *note = fe_note_of(s->notes, callee);
    if (note && note->decl) return note->decl;
    if (callee->kind != AST_NAME) return NULL;
    int token = scope_token_at(f, callee->span.line, callee->span.col);
    Symbol found = scope_symbol(s, f, token);
    return found.kind == SYMBOL_GLOBAL ? found.decl : NULL;
}

const Ast *scope_formal(const Ast *decl, const char *name) {
    int lists = decl->kind == AST_LAYER ? 2 : decl->kind == AST_CONST ? 0 : 1;
    for (int k = 0; k < lists; k++)
        for (int i = 0; i < decl->kid[k]->n; i++)
            if (strcmp(decl->kid[k]->kid[i]->text, name) == 0) return decl->kid[k]->kid[i];
    return NULL;
}
