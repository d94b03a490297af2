/* What the server answers of a document.  All of it comes from one compile of the text
 * (document.c): tokens and what they stand for from scope.c, types from the elaborator's notes. */
#include "frontend/editor/lsp_impl.h"

#include <string.h>

#include "frontend/editor/fmt.h"
#include "frontend/syntax/parse.h"

/* ---- parameters ------------------------------------------------------------------------------ */
static const char *text_param(Request *r, const RtJson *object, const char *key) {
    const RtJson *t = rt_json_get(object, key);
    if (t && t->kind == RT_JSON_STRING) return t->text;
    lsp_fail(r, LSP_INVALID_PARAMS, arena_printf(r->a, "'%s' is missing", key));
    return NULL;
}

Document *lsp_document(Request *r) {
    const char *uri = text_param(r, rt_json_get(r->params, "textDocument"), "uri");
    Document *d = uri ? documents_find(r->all, uri) : NULL;
    if (uri && !d) lsp_fail(r, LSP_INVALID_PARAMS, "that document is not open");
    return d;
}

bool lsp_place(const RtJson *position, TextPlace *to) {
    const RtJson *line = rt_json_get(position, "line"), *unit = rt_json_get(position, "character");
    if (!line || !unit || !line->is_int || !unit->is_int || line->i < 0 || unit->i < 0)
        return false;
    *to = (TextPlace){line->i, unit->i};
    return true;
}

/* ---- places --------------------------------------------------------------------------------- */
/* Writes a place in a text as a JSON object. */
static void put_place(Json *j, const char *key, TextPlace p) {
    json_object(j, key);
    json_int(j, "line", p.line);
    json_int(j, "character", p.unit);
    json_end(j);
}

void lsp_put_range(Json *j, const char *key, const char *text, size_t n, size_t from, size_t to) {
    json_object(j, key);
    put_place(j, "start", text_place(text, n, from));
    put_place(j, "end", text_place(text, n, to));
    json_end(j);
}

/* Writes a span of a source as a range; one without a line as the file's begin. */
static void put_span(Json *j, const char *key, const Source *s, Span at) {
    bool placed = at.line != 0;
    size_t from = placed ? text_offset_of(s->text, s->n_bytes, at.line, at.col) : 0;
    size_t to = placed ? text_offset_of(s->text, s->n_bytes, at.end_line, at.end_col) : 0;
    lsp_put_range(j, key, s->text, s->n_bytes, from, to < from ? from : to);
}

static const Source *source_of(const Ctx *c, Span at) {
    return at.line && at.file < (uint32_t)c->sources.n ? &c->sources.v[at.file] : NULL;
}

/* The document's own address is the editor's, to the letter. */
static const char *uri_of(Arena *a, const Document *d, const Source *s) {
    return strcmp(s->path, d->path) == 0 ? d->uri : text_uri_of_path(a, s->path);
}

/* Writes a span with the URI of its file. */
static void put_location(Request *r, const char *key, const Document *d, Span at) {
    const Source *s = source_of(&d->ctx, at);
    json_object(r->j, key);
    json_text(r->j, "uri", uri_of(r->a, d, s));
    put_span(r->j, "range", s, at);
    json_end(r->j);
}

/* ---- diagnostics ---------------------------------------------------------------------------- */
static const char *import_text(Arena *a, const Source *s, const Diag *d) {
    return arena_printf(a, "%s:%u:%u: %s", s->path, d->span.line, d->span.col, d->text);
}

/* Where a mistake in another file shows in this one: the import that leads there, else its top. */
static Span shown_at(const Document *d, const Diag *g) {
    Span user = ctx_user_span(&d->ctx, g->span);
    return user.file == d->notes.file ? user : (Span){0};
}

/* Writes the notes that follow diagnostic g, before `end`, as related information. */
static void put_related(Json *j, Arena *a, const Document *d, const Diag *g, const Diag *end) {
    json_array(j, "relatedInformation");
    for (g++; g < end && g->sev == SEV_NOTE; g++) {
        const Source *s = source_of(&d->ctx, g->span);
        if (!s) continue;
        json_object(j, NULL);
        json_object(j, "location");
        json_text(j, "uri", uri_of(a, d, s));
        put_span(j, "range", s, g->span);
        json_end(j);
        json_text(j, "message", g->text);
        json_end(j);
    }
    json_end(j);
}

static const Source *own_source(const Document *d) {
    for (int i = 0; i < d->ctx.sources.n; i++)
        if (strcmp(d->ctx.sources.v[i].path, d->path) == 0) return &d->ctx.sources.v[i];
    return NULL;
}

void lsp_diagnostics(Json *j, Document *d) {
    Arena *a = j->b->a;
    const Source *own = own_source(d), text = {.text = d->text, .n_bytes = d->n};
    const DiagVec *all = &d->ctx.diags;
    json_object(j, "params");
    json_text(j, "uri", d->uri);
    json_array(j, "diagnostics");
    for (int i = 0; i < all->n; i++) {
        const Diag *g = &all->v[i];
        if (g->sev == SEV_NOTE) continue;
        const Source *s = source_of(&d->ctx, g->span);
        bool here = !s || s == own;
        json_object(j, NULL);
        put_span(j, "range", own ? own : &text, here ? g->span : shown_at(d, g));
        json_int(j, "severity", g->sev == SEV_ERROR ? 1 : 2);
        json_text(j, "code", diag_code_name(g->code));
        json_text(j, "source", "gnnc");
        json_text(j, "message", here ? g->text : import_text(a, s, g));
        put_related(j, a, d, g, all->v + all->n);
        json_end(j);
    }
    json_end(j);
    json_end(j);
}

/* ---- what is at a place --------------------------------------------------------------------- */
typedef struct {
    Document *d;
    Scope *scope;
    const ScopeFile *file;
    uint32_t line, col;
    int token; /* -1: none */
    Symbol symbol;
} Spot;

/* Compiles the request's document, if its text is new. False: it was not read, or (an error is set)
 * there is no memory. */
static bool know(Request *r, Document *d) {
    if (document_analyse(r->all, d)) return d->notes.files.n > 0;
    lsp_fail(r, LSP_INTERNAL, "out of memory");
    return false;
}

/* False: there is nothing, or a mistake was said. */
static bool find_spot(Request *r, Spot *s) {
    TextPlace at;
    *s = (Spot){.d = lsp_document(r), .token = -1};
    if (!s->d) return false;
    if (!lsp_place(rt_json_get(r->params, "position"), &at)) {
        lsp_fail(r, LSP_INVALID_PARAMS, "there is no position");
        return false;
    }
    if (!know(r, s->d)) return false;
    size_t offset = text_offset(s->d->text, s->d->n, at);
    size_t from = offset;
    while (from && s->d->text[from - 1] != '\n') from--;
    s->line = (uint32_t)text_place(s->d->text, s->d->n, offset).line + 1;
    s->col = (uint32_t)(offset - from) + 1;
    s->scope = scope_new(r->a, &s->d->ctx, &s->d->notes);
    s->file = scope_file(s->scope, s->d->notes.file);
    if (!s->file) return false;
    s->token = scope_token_at(s->file, s->line, s->col);
    if (s->token >= 0) s->symbol = scope_symbol(s->scope, s->file, s->token);
    return true;
}

static bool holds(Span at, uint32_t line, uint32_t col) {
    bool after = line > at.line || (line == at.line && col >= at.col);
    return after && (line < at.end_line || (line == at.end_line && col <= at.end_col));
}

static bool is_within(Span inner, Span outer) {
    return holds(outer, inner.line, inner.col) && holds(outer, inner.end_line, inner.end_col);
}

/* The smallest expression with a note that holds the place. */
static const FeNote *note_at(const Spot *s, const Ast *t, const FeNote *best) {
    for (int i = 0; t && i < t->n; i++) {
        const Ast *k = t->kid[i];
        if (!k) continue;
        const FeNote *note = holds(k->span, s->line, s->col) ? fe_note_of(&s->d->notes, k) : NULL;
        if (note && (!best || is_within(k->span, best->at->span))) best = note;
        /* `x = value`: at x, the value's */
        bool binds = k->kind == AST_LET && k->kid[0] && holds(k->kid[0]->span, s->line, s->col);
        if (binds && k->kid[0]->kind == AST_NAME) {
            note = fe_note_of(&s->d->notes, k->kid[1]);
            if (note) return note;
        }
        best = note_at(s, k, best);
    }
    return best;
}

/* ---- declarations as text ------------------------------------------------------------------- */
/* The span of the body of a declaration; line 0: it has none. */
static Span block_of(const Ast *d) {
    const Ast *last = d->kind == AST_LAYER                        ? d->kid[3]
                      : d->kind == AST_FN || d->kind == AST_MODEL ? d->kid[2]
                                                                  : NULL;
    return last ? last->span : (Span){0};
}

/* "layer gcn_conv(out: int)(e: edge(S -> S), x: f32[S, I]) -> f32[S, out]" */
static const char *signature(Arena *a, const Ctx *c, const Ast *d) {
    const Source *s = source_of(c, d->span);
    if (!s) return d->text;
    size_t from = text_offset_of(s->text, s->n_bytes, d->span.line, 1);
    Span block = block_of(d);
    size_t to = block.line ? text_offset_of(s->text, s->n_bytes, block.line, block.col)
                           : from + strcspn(s->text + from, "\n{");
    while (to > from && strchr(" \t\r\n", s->text[to - 1])) to--;
    return arena_strndup(a, s->text + from, to - from);
}

/* The comment right above, without its signs. */
static const char *comment_above(Arena *a, const Ctx *c, const Ast *d) {
    const Source *s = source_of(c, d->span);
    uint32_t line = d->span.line, first = line;
    StrBuf b = sb_new(a);
    sb_puts(&b, "");
    while (s && first > 1) {
        size_t at = text_offset_of(s->text, s->n_bytes, first - 1, 1);
        if (s->text[at] != '#' && strncmp(s->text + at, "//", 2) != 0) break;
        first--;
    }
    for (; first < line; first++) {
        const char *t = s->text + text_offset_of(s->text, s->n_bytes, first, 1);
        t += *t == '#' ? 1 : 2;
        t += *t == ' ';
        sb_printf(&b, "%.*s\n", (int)strcspn(t, "\n"), t);
    }
    return b.s;
}

static void put_code(StrBuf *b, const char *code) {
    sb_printf(b, "```gnn\n%s\n```\n", code);
}

/* Adds a declaration's head and the comment above it to the hover text. */
static void describe_decl(StrBuf *b, const Ctx *c, const Ast *d) {
    const char *above = comment_above(b->a, c, d);
    put_code(b, signature(b->a, c, d));
    if (*above) sb_printf(b, "\n```text\n%s```\n", above);
}

/* ---- hover ---------------------------------------------------------------------------------- */
static const char *token_text(const Spot *s) {
    return s->token >= 0 ? s->file->text[s->token] : NULL;
}

/* Adds the type of the value at the cursor, and the declaration that it comes from. */
static void describe_value(StrBuf *b, const Spot *s) {
    const FeNote *note = note_at(s, s->file->file->tree, NULL);
    const char *name = token_text(s);
    if (!note) return;
    put_code(b, name ? arena_printf(b->a, "%s: %s", name, note->type) : note->type);
    if (note->decl && s->symbol.kind != SYMBOL_GLOBAL) describe_decl(b, &s->d->ctx, note->decl);
}

/* Adds what the line under the cursor costs per step. */
static void describe_cost(StrBuf *b, Request *r, const Spot *s) {
    bool any = false;
    document_price(r->all, s->d);
    for (int i = 0; i < s->d->costs.n; i++) {
        if (s->d->costs.v[i].line != s->line) continue;
        if (!any) sb_puts(b, "\nThis line, per step:\n\n");
        sb_printf(b, "- %s\n", s->d->costs.v[i].text);
        any = true;
    }
}

/* Adds whose parameter the named argument at the cursor is. */
static void describe_argument(StrBuf *b, const Spot *s) {
    const Source *src = source_of(&s->d->ctx, s->symbol.declared);
    const ScopeRegion *r = s->symbol.region;
    if (!src || !r) return;
    put_code(b, arena_printf(b->a, "%s, a parameter of %s", s->symbol.name, r->name));
}

/* textDocument/hover: what the name at the cursor is, and what its line costs. */
void lsp_hover(Request *r) {
    Spot s;
    StrBuf b = sb_new(r->a);
    sb_puts(&b, "");
    if (!find_spot(r, &s) || s.token < 0) {
        json_text(r->j, "result", NULL);
        return;
    }
    const GivenToken *t = &s.file->file->tokens.token.v[s.token];
    if (s.symbol.kind == SYMBOL_GLOBAL)
        describe_decl(&b, &s.d->ctx, s.symbol.decl);
    else if (s.symbol.kind == SYMBOL_BUILTIN)
        put_code(&b, arena_printf(r->a, "%s: a built-in function", s.symbol.name));
    else if (t->role == ROLE_NAMED)
        describe_argument(&b, &s);
    else
        describe_value(&b, &s);
    describe_cost(&b, r, &s);
    if (!b.n) {
        json_text(r->j, "result", NULL);
        return;
    }
    json_object(r->j, "result");
    json_object(r->j, "contents");
    json_text(r->j, "kind", "markdown");
    json_text(r->j, "value", b.s);
    json_end(r->j);
    put_span(r->j, "range", own_source(s.d), t->span);
    json_end(r->j);
}

/* ---- definition, references ----------------------------------------------------------------- */
/* `import "layers/gcn.gnn"`: the file, which was read where it could be found. */
static Span imported(const Spot *s) {
    const TokenList *list = &s->file->file->tokens;
    if (s->token < 1 || list->token.v[s->token].code != STRING ||
        list->token.v[s->token - 1].code != IMPORT)
        return (Span){0};
    const Source *own = own_source(s->d);
    Span at = list->token.v[s->token].span;
    size_t from = text_offset_of(own->text, own->n_bytes, at.line, at.col) + 1;
    size_t n = at.end_col - at.col - 2;
    for (int i = 0; i < s->d->ctx.sources.n; i++) {
        const char *path = s->d->ctx.sources.v[i].path;
        size_t m = strlen(path);
        bool ends = m >= n && memcmp(path + m - n, own->text + from, n) == 0;
        if (ends && (m == n || path[m - n - 1] == '/')) return span_of((uint32_t)i, 1, 1, 1, 1);
    }
    return (Span){0};
}

/* Where the name at the cursor is declared; line 0: nobody knows. */
static Span declared_at(const Spot *s) {
    if (s->token < 0) return (Span){0};
    if (s->symbol.declared.line) return s->symbol.declared;
    bool member = s->file->file->tokens.token.v[s->token].role == ROLE_MEMBER;
    const FeNote *note = member ? note_at(s, s->file->file->tree, NULL) : NULL;
    return note ? note->declared : imported(s);
}

/* textDocument/definition */
void lsp_definition(Request *r) {
    Spot s;
    Span at = find_spot(r, &s) ? declared_at(&s) : (Span){0};
    if (at.line && source_of(&s.d->ctx, at))
        put_location(r, "result", s.d, at);
    else
        json_text(r->j, "result", NULL);
}

/* textDocument/references: all uses in the files that were read. */
void lsp_references(Request *r) {
    Spot s;
    SymbolUses uses = {0};
    if (find_spot(r, &s) && s.symbol.kind != SYMBOL_NONE && s.symbol.kind != SYMBOL_BUILTIN)
        scope_uses(s.scope, &s.symbol, &uses);
    json_array(r->j, "result");
    for (int i = 0; i < uses.n; i++) put_location(r, NULL, s.d, uses.v[i].at);
    json_end(r->j);
}

/* ---- rename --------------------------------------------------------------------------------- */
static const char *why_not(const Spot *s) {
    const Source *src = source_of(&s->d->ctx, s->symbol.declared);
    TokenRole role = s->token >= 0 ? s->file->file->tokens.token.v[s->token].role : ROLE_WORD;
    if (role == ROLE_MEMBER) return "this is a name of the data, or of the language";
    if (s->symbol.kind == SYMBOL_DATA) return "this is a name of the data";
    if (s->symbol.kind == SYMBOL_BUILTIN) return "this is a function of the language";
    if (s->symbol.kind == SYMBOL_NONE || !src) return "there is no name to change";
    return src->library ? "this is declared in the library" : NULL;
}

/* textDocument/prepareRename: the range of the name at the cursor, or why it cannot be changed. */
void lsp_prepare_rename(Request *r) {
    Spot s;
    if (!find_spot(r, &s)) {
        lsp_fail(r, LSP_FAILED, "there is no name to change");
        return;
    }
    if (why_not(&s)) {
        lsp_fail(r, LSP_FAILED, why_not(&s));
        return;
    }
    Span at = s.file->file->tokens.token.v[s.token].span;
    at.end_col = at.col + (uint32_t)strlen(s.symbol.name);
    put_span(r->j, "result", own_source(s.d), at);
}

/* A name that some place would take for another thing. */
static const char *in_the_way(const Request *r, const Spot *s, const char *name) {
    const Symbol *of = &s->symbol;
    if (strmap_get(&s->d->notes.globals, name) || strmap_get(&s->d->notes.prelude, name))
        return arena_printf(r->a, "there is a '%s' already", name);
    for (int k = 0; k < s->scope->files.n; k++) {
        const ScopeFile *f = &s->scope->files.v[k];
        if (of->kind == SYMBOL_LOCAL && f != of->file) continue;
        for (int i = 0; i < f->file->tokens.token.n; i++) {
            TokenRole role = f->file->tokens.token.v[i].role;
            bool other = of->kind == SYMBOL_LOCAL && scope_region(f, i) != of->region;
            if (!f->text[i] || other || role == ROLE_MEMBER || role == ROLE_NAMED ||
                role == ROLE_WORD)
                continue;
            if (strncmp(f->text[i], name, strlen(name)) == 0 &&
                f->text[i][strlen(name) + strspn(f->text[i] + strlen(name), "'")] == 0)
                return arena_printf(r->a, "line %u has a '%s' already",
                                    f->file->tokens.token.v[i].span.line, name);
        }
    }
    return NULL;
}

static const char *check_rename(const Request *r, const Spot *s, const char *name,
                                SymbolUses *uses) {
    const char *why = why_not(s);
    if (why) return why;
    if (!text_is_name(name) || fe_keyword(name) != NAME)
        return arena_printf(r->a, "'%s' cannot be a name", name);
    why = in_the_way(r, s, name);
    if (why) return why;
    if (!scope_uses(s->scope, &s->symbol, uses))
        return "a call has an argument of that name, and it is not known what it calls";
    for (int i = 0; i < uses->n; i++)
        if (source_of(&s->d->ctx, uses->v[i].at)->library) return "the library uses this name";
    return NULL;
}

/* Writes an edit: a span of a source, and its new text. */
static void put_edit(Json *j, const Source *s, Span at, const char *text) {
    json_object(j, NULL);
    put_span(j, "range", s, at);
    json_text(j, "newText", text);
    json_end(j);
}

/* textDocument/rename: the edits, by file. */
void lsp_rename(Request *r) {
    Spot s;
    SymbolUses uses = {0};
    const char *name = text_param(r, r->params, "newName");
    Document *d = name ? lsp_document(r) : NULL;
    if (!d) return;
    d->known = false; /* what it imports may have changed on the disk, and is edited there */
    const char *why = find_spot(r, &s) ? check_rename(r, &s, name, &uses) : "there is no name here";
    if (why) {
        lsp_fail(r, LSP_FAILED, why);
        return;
    }
    json_object(r->j, "result");
    json_object(r->j, "changes");
    for (int i = 0; i < uses.n; i++) { /* they stand together by files */
        const Source *src = source_of(&s.d->ctx, uses.v[i].at);
        bool first = i == 0 || uses.v[i - 1].at.file != uses.v[i].at.file;
        if (first) json_array(r->j, uri_of(r->a, s.d, src));
        put_edit(r->j, src, uses.v[i].at, name);
        if (i + 1 == uses.n || uses.v[i + 1].at.file != uses.v[i].at.file) json_end(r->j);
    }
    json_end(r->j);
    json_end(r->j);
}

/* ---- formatting ----------------------------------------------------------------------------- */
/* The lines that differ alone: cursors elsewhere stay. */
static void put_difference(Json *j, const char *old, size_t n, const char *new, size_t m) {
    size_t head = 0, tail = 0, least = n < m ? n : m;
    while (head < least && old[head] == new[head]) head++;
    while (head && old[head - 1] != '\n') head--;
    while (tail < least - head && old[n - 1 - tail] == new[m - 1 - tail]) tail++;
    while (tail && old[n - tail - 1] != '\n') tail--;
    if (n == m && head == n) return;
    json_object(j, NULL);
    lsp_put_range(j, "range", old, n, head, n - tail);
    json_text(j, "newText", arena_strndup(j->b->a, new + head, m - tail - head));
    json_end(j);
}

/* textDocument/formatting: the edits that gnnc fmt would make. */
void lsp_formatting(Request *r) {
    Document *d = lsp_document(r);
    size_t n;
    if (!d) return;
    const char *text = fmt_text(r->c, ctx_add_text(r->c, d->path, d->text, d->n), &n);
    if (!text) {
        lsp_fail(r, LSP_FAILED, "the text has a syntax error");
        return;
    }
    json_array(r->j, "result");
    put_difference(r->j, d->text, d->n, text, n);
    json_end(r->j);
}

/* ---- symbols -------------------------------------------------------------------------------- */
enum { LSP_CLASS = 5, LSP_FIELD = 8, LSP_FUNCTION = 12, LSP_CONSTANT = 14, LSP_OBJECT = 19 };
enum { LSP_NAMESPACE = 3, LSP_MODULE = 2 };

/* The editor's kind of symbol for a declaration, by its first token. */
static int symbol_kind(int code) {
    return code == GRAPH                  ? LSP_NAMESPACE
           : code == LAYER                ? LSP_CLASS
           : code == MODEL                ? LSP_MODULE
           : code == FN || code == EXTERN ? LSP_FUNCTION
           : code == CONST                ? LSP_CONSTANT
                                          : LSP_OBJECT;
}

/* Writes the tables and columns that a graph declares, as its children. */
static void put_members(Json *j, const Source *src, const ScopeFile *f, const ScopeRegion *r) {
    json_array(j, "children");
    for (int i = r->from; i < r->to; i++) {
        const GivenToken *t = &f->file->tokens.token.v[i];
        if (t->role != ROLE_DATA || !f->text[i]) continue;
        json_object(j, NULL);
        json_text(j, "name", f->text[i]);
        json_int(j, "kind", LSP_FIELD);
        put_span(j, "range", src, t->span);
        put_span(j, "selectionRange", src, t->span);
        json_end(j);
    }
    json_end(j);
}

/* textDocument/documentSymbol: the declarations of the file, as an outline. */
void lsp_symbols(Request *r) {
    Document *d = lsp_document(r);
    if (!d || !know(r, d)) {
        if (!r->error) json_text(r->j, "result", NULL);
        return;
    }
    Scope *s = scope_new(r->a, &d->ctx, &d->notes);
    const ScopeFile *f = scope_file(s, d->notes.file);
    const Source *src = own_source(d);
    json_array(r->j, "result");
    for (int i = 0; f && src && i < f->regions.n; i++) {
        const ScopeRegion *region = &f->regions.v[i];
        const GivenToken *t = f->file->tokens.token.v;
        int name = region->from, last = region->to - 1;
        while (name < region->to && !f->text[name]) name++;
        while (last > region->from && t[last].code == SEP) last--;
        if (name == region->to || t[region->from].code == IMPORT) continue;
        json_object(r->j, NULL);
        json_text(r->j, "name", region->name);
        json_int(r->j, "kind", symbol_kind(t[region->from].code));
        put_span(r->j, "range", src,
                 span_of(0, t[region->from].span.line, t[region->from].span.col,
                         t[last].span.end_line, t[last].span.end_col));
        put_span(r->j, "selectionRange", src, t[name].span);
        if (t[region->from].code == GRAPH) put_members(r->j, src, f, region);
        json_end(r->j);
    }
    json_end(r->j);
}

void lsp_fail(Request *r, LspError error, const char *why) {
    if (!r->error) r->message = why;
    if (!r->error) r->error = error;
}
