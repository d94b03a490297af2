/* Completion.  A name that nothing has stands where the cursor is, and the text is compiled: what
 * the compiler would advise in its place is offered, and beside it what the body, the files and the
 * language have. */
#include <string.h>

#include "frontend/editor/lsp_impl.h"
#include "frontend/syntax/parse.h"

#define PLACEHOLDER "gnnc_placeholder"

enum { ITEM_FUNCTION = 3, ITEM_FIELD = 5, ITEM_VARIABLE = 6, ITEM_CLASS = 7 };
enum { ITEM_MODULE = 9, ITEM_PROPERTY = 10, ITEM_KEYWORD = 14 };

typedef struct {
    Request *r;
    StrMap seen;
    const char *prefix;
    size_t n_prefix;
} Items;

/* Offers a word, if it begins with what was typed and was not offered before. insert: the text to
 * put in, if it is not the word. */
static void offer(Items *to, const char *label, int kind, const char *detail, const char *insert) {
    Json *j = to->r->j;
    if (strncmp(label, to->prefix, to->n_prefix) != 0 || strmap_has(&to->seen, label)) return;
    if (strcmp(label, PLACEHOLDER) == 0) return;
    strmap_put(to->r->a, &to->seen, label, (void *)label);
    json_object(j, NULL);
    json_text(j, "label", label);
    json_int(j, "kind", kind);
    if (detail) json_text(j, "detail", detail);
    if (insert) json_text(j, "insertText", insert);
    json_end(j);
}

/* The token that stands in for the word being typed; -1: the file has none. */
static int placeholder_in(const ScopeFile *f) {
    for (int i = 0; i < f->file->tokens.token.n; i++)
        if (f->text[i] && strcmp(f->text[i], PLACEHOLDER) == 0) return i;
    return -1;
}

/* Is the placeholder in this tree? */
static bool has_placeholder(const Ast *t) {
    if (!t) return false;
    if (t->text && strcmp(t->text, PLACEHOLDER) == 0) return true;
    for (int i = 0; i < t->n; i++)
        if (has_placeholder(t->kid[i])) return true;
    return false;
}

/* The innermost call with the placeholder among its arguments. */
static const Ast *call_around(const Ast *t) {
    for (int i = 0; t && i < t->n; i++) {
        if (!has_placeholder(t->kid[i])) continue;
        const Ast *inner = call_around(t->kid[i]);
        return inner ? inner : t->kind == AST_CALL && i > 0 ? t : NULL;
    }
    return NULL;
}

/* Offers the names of arguments of the call that is being typed: a layer's settings, or the inputs
 * of one that is made. */
static void offer_arguments(Items *to, const Scope *s, const ScopeFile *f) {
    const Ast *call = call_around(f->file->tree);
    const Ast *d = call ? scope_callee(s, f, call->kid[0]) : NULL;
    int lists = d && d->kind == AST_LAYER ? 2 : d && d->kind != AST_CONST ? 1 : 0;
    const FeNote *note = d ? fe_note_of(s->notes, call->kid[0]) : NULL;
    bool instance = note && strncmp(note->type, "layer ", 6) == 0; /* its inputs, else settings */
    for (int k = 0; k < lists; k++)
        for (int i = 0; i < d->kid[k]->n; i++) {
            const char *name = d->kid[k]->kid[i]->text;
            if (lists == 2 && k != instance) continue;
            offer(to, name, ITEM_PROPERTY, arena_printf(to->r->a, "an argument of %s", d->text),
                  arena_printf(to->r->a, "%s = ", name));
        }
}

static void offer_bound(Items *to, const ScopeRegion *r) {
    for (int i = 0; r && i < r->bound.cap; i++)
        if (r->bound.key[i]) offer(to, r->bound.key[i], ITEM_VARIABLE, NULL, NULL);
}

/* Offers the names of tables, relations and columns that the file uses. */
static void offer_data(Items *to, const Scope *s, const ScopeFile *f) {
    for (int i = 0; i < f->file->tokens.token.n; i++) {
        Symbol found = scope_symbol(s, f, i);
        if (found.kind == SYMBOL_DATA) offer(to, found.name, ITEM_FIELD, "of the graph", NULL);
    }
}

/* Offers functions, layers and constants. */
static void offer_declared(Items *to, const StrMap *names) {
    for (int i = 0; i < names->cap; i++) {
        const Ast *d = names->key[i] ? names->val[i] : NULL;
        if (!d || d->kind == AST_MODEL) continue;
        bool fn = d->kind == AST_FN || d->kind == AST_EXTERN;
        offer(to, d->text, fn ? ITEM_FUNCTION : ITEM_CLASS,
              fn                     ? "function"
              : d->kind == AST_LAYER ? "layer"
                                     : NULL,
              NULL);
    }
}

/* Offers the words of a recipe, or of the language. */
static void offer_words(Items *to, bool recipe) {
    for (int i = 0; recipe && fe_recipe_word(i); i++)
        offer(to, fe_recipe_word(i), ITEM_KEYWORD, NULL, NULL);
    for (int i = 0; !recipe && fe_word(i); i++) offer(to, fe_word(i), ITEM_KEYWORD, NULL, NULL);
}

/* Offers all that may stand at the cursor. member: after a '.', so only what the value has. */
static void offer_all(Items *to, Ctx *c, const FeNotes *notes, bool member) {
    Scope *s = scope_new(to->r->a, c, notes);
    const ScopeFile *f = scope_file(s, notes->file);
    int at = f ? placeholder_in(f) : -1;
    const ScopeRegion *r = at >= 0 ? scope_region(f, at) : NULL;
    int code = r ? f->file->tokens.token.v[r->from].code : 0;
    for (int i = 0; i < notes->known.n; i++)
        offer(to, notes->known.v[i], member ? ITEM_FIELD : ITEM_PROPERTY, NULL, NULL);
    if (member || !f) return;
    if (code == TRAIN) offer_words(to, true);
    if (notes->known.n) return;
    offer_arguments(to, s, f);
    offer_bound(to, r);
    if (code == MODEL || code == GRAPH || code == TRAIN) offer_data(to, s, f);
    offer_declared(to, &notes->globals);
    offer_declared(to, &notes->prelude);
    for (int i = 0; fe_builtin_name(i); i++)
        offer(to, fe_builtin_name(i), ITEM_FUNCTION, "built in", NULL);
    if (code != TRAIN) offer_words(to, false);
}

static void free_ctx(void *c) {
    ctx_free(c);
}

/* A Ctx that goes with the request's: offer_all() may run out of memory and jump away. */
static Ctx *fresh_ctx(Request *r) {
    Ctx *c = NEW(r->a, Ctx);
    if (!ctx_init(c, r->all->from)) return NULL;
    ctx_defer(r->c, free_ctx, c);
    return c;
}

/* The text with `word` in place of [from, end), compiled; NULL: no memory, or a fault. */
static Ctx *try_word(Request *r, const Document *d, size_t from, size_t end, const char *word,
                     FeNotes *notes) {
    StrBuf b = sb_new(r->a);
    Ctx *c = fresh_ctx(r);
    sb_put(&b, d->text, from);
    sb_puts(&b, word);
    sb_put(&b, d->text + end, d->n - end);
    if (!c) return NULL;
    return document_try(r->all, d, b.s, b.n, PLACEHOLDER, c, notes) ? c : NULL;
}

/* Whether the cursor, where the text has the placeholder, is between the brackets of a call in a
 * recipe: an optimizer's or a schedule's, whose settings are given by name. */
static bool is_in_recipe_call(Request *r, Ctx *c, const FeNotes *notes) {
    Scope *s = scope_new(r->a, c, notes);
    const ScopeFile *f = scope_file(s, notes->file);
    int at = f ? placeholder_in(f) : -1;
    const ScopeRegion *region = at >= 0 ? scope_region(f, at) : NULL;
    bool recipe = region && f->file->tokens.token.v[region->from].code == TRAIN;
    return recipe && call_around(f->file->tree);
}

/* textDocument/completion: compiles the text with a placeholder at the cursor and offers what the
 * front end then knows. */
void lsp_completion(Request *r) {
    Document *d = lsp_document(r);
    TextPlace at;
    FeNotes notes;
    if (!d) return;
    if (!lsp_place(rt_json_get(r->params, "position"), &at)) {
        lsp_fail(r, LSP_INVALID_PARAMS, "there is no position");
        return;
    }
    size_t offset = text_offset(d->text, d->n, at), end;
    size_t from = text_name(d->text, d->n, offset, &end);
    Items items = {.r = r, .prefix = d->text + from, .n_prefix = offset - from};
    bool member = from && d->text[from - 1] == '.' && !(from > 1 && d->text[from - 2] == '.');
    Ctx *c = try_word(r, d, from, end, PLACEHOLDER, &notes);
    if (c && !notes.known.n && is_in_recipe_call(r, c, &notes))
        c = try_word(r, d, from, end, PLACEHOLDER " = 0", &notes);
    json_array(r->j, "result");
    if (c)
        offer_all(&items, c, &notes, member);
    else
        lsp_fail(r, LSP_FAILED, "the text could not be compiled");
    json_end(r->j);
}
