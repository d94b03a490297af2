/* The files that a text's positions name, with the lines that code is made for:
 *
 *     sources {
 *       "models/gcn.gnn"
 *         12:   h = relu(conv1(g.cites, dropout(g.paper.x, p)))
 *       "models/layers/gcn.gnn" library
 *     }
 *
 * So comments in generated code, debug information and reports are the same whether the text was
 * read or the model.  The lines are in the text: no file that it names is opened. */
#include "ir/sources.h"

#include <string.h>

enum { MAX_LINES = 100000 };

/* The end of a line. */
const char *text_line_end(const char *s, const char *end) {
    const char *nl = memchr(s, '\n', (size_t)(end - s));
    return nl ? nl + 1 : end;
}

/* ---- print -------------------------------------------------------------------------------- */
/* What the text says of one file. */
typedef struct {
    uint32_t file;
    bool named; /* a position names it */
    bool *seen; /* by line: operations come from it, or what passes make for variables will */
    uint32_t n;
} Listing;

/* Records that a position names the file. */
static void name_file(Listing *l, Span at) {
    l->named |= at.line && (at.file == l->file || (at.site_line && at.site_file == l->file));
}

/* Records that a position names the line. */
static void record_line(Listing *l, Span at) {
    name_file(l, at);
    if (at.file != l->file || at.line > MAX_LINES) return;
    l->seen[at.line] = true;
    if (at.line > l->n) l->n = at.line;
}

/* Lists the lines of a file that positions name. */
static Listing list_file(Arena *a, const Module *m, uint32_t file) {
    Listing l = {.file = file, .seen = NEWN(a, bool, MAX_LINES + 1)};
    for (int i = 0; i < m->spaces.n; i++) name_file(&l, m->spaces.v[i]->span);
    for (int i = 0; i < m->cols.n; i++) name_file(&l, m->cols.v[i]->span);
    for (int i = 0; i < m->externs.n; i++) name_file(&l, m->externs.v[i]->span);
    for (int i = 0; i < m->vars.n; i++) record_line(&l, m->vars.v[i]->span);
    record_line(&l, m->recipe.optimizer);
    for (int i = 0; i < m->notes.n; i++) name_file(&l, m->notes.v[i].span);
    for (int i = 0; i < m->funcs.n; i++) {
        name_file(&l, m->funcs.v[i]->span);
        for (const Op *op = m->funcs.v[i]->first; op; op = op->next) record_line(&l, op->span);
    }
    return l;
}

/* Prints these lines. */
static void print_listing(StrBuf *b, const Ctx *c, const Listing *l) {
    const Source *from = &c->sources.v[l->file];
    const char *s = from->text;
    sb_puts(b, "  ");
    ir_string_print(b, ctx_source_name(c, l->file));
    sb_puts(b, from->library ? " library\n" : "\n");
    for (uint32_t line = 1; line <= l->n && *s; line++) {
        int len = (int)strcspn(s, "\n");
        if (l->seen[line] && len) sb_printf(b, "    %u: %.*s\n", line, len, s);
        s += len + (s[len] == '\n');
    }
}

/* Prints the section of sources. */
void module_print_sources(StrBuf *b, const Module *m, uint32_t own_file) {
    const Ctx *c = m->ctx;
    for (uint32_t i = 0; i < (uint32_t)c->sources.n; i++) {
        if (i == own_file || (m->sourced && i == m->text_file)) continue;
        Listing l = list_file(b->a, m, i);
        if (l.named) print_listing(b, c, &l);
    }
}

/* ---- parse -------------------------------------------------------------------------------- */
/* Parses `17: the line`, and fills the file's text up to there. */
static bool source_line(Parser *p, const char *end, StrBuf *text, uint32_t *at) {
    int64_t line = 0;
    if (!parse_int(p, "a line's number", *at, MAX_LINES, &line) || !parse_is(p, ':'))
        return parse_expected(p, "':' and the line, behind the lines before it");
    const char *from = p->p + (p->p < end && *p->p == ' ');
    for (; *at < line; ++*at) sb_puts(text, "\n");
    sb_put(text, from, (size_t)(end - from));
    ++*at;
    return true;
}

/* Adds one source text of the file to the context. *first gets the index of the first one. False:
 * there is no room for it. */
static bool add_source(Parser *p, const char *path, bool library, const StrBuf *text,
                       uint32_t *first) {
    uint32_t i = ctx_add_text(p->c, path, text->n ? text->s : "", text->n);
    if (i == UINT32_MAX) return false;
    p->c->sources.v[i].library = library;
    if (!*first) *first = i;
    return true;
}

/* Parses the section of sources. */
bool parse_sources(Parser *p, const char *from, const char *to, uint32_t line, uint32_t *first) {
    const char *end = text_line_end(from, to), *path = NULL;
    bool library = false;
    uint32_t at = 1;
    StrBuf text = sb_new(p->a);
    for (line++; end < to && *end != '}'; line++) {
        const char *start = end;
        end = text_line_end(start, to);
        p->p = p->line_start = start;
        p->end = end;
        p->line = line;
        parse_lex_next(p);
        if (p->tok.kind == T_END) continue;
        if (path && p->tok.kind == T_NUMBER) {
            if (!source_line(p, end, &text, &at)) return false;
            continue;
        }
        if (path && !add_source(p, path, library, &text, first)) return false;
        if (!parse_text(p, "a file's path in quotes", &path)) return false;
        library = parse_accept_word(p, "library");
        text = sb_new(p->a);
        at = 1;
    }
    if (path && !add_source(p, path, library, &text, first)) return false;
    p->p = p->line_start = end;
    p->end = to;
    p->line = line;
    parse_lex_next(p);
    return parse_expect(p, '}');
}
