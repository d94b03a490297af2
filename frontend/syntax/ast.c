/* Building and printing the syntax tree (ast.h). */
#include "ast.h"

#include <string.h>

/* The operator as the language writes it. */
const char *ast_operator_text(Operator o) {
    static const char *const text[] = {
#define OPERATOR(id, t) t,
#include "operators.def"
#undef OPERATOR
    };
    return text[o];
}

/* The name of a node's kind in printed trees. */
static const char *kind_name(AstKind k) {
    static const char *const name[] = {
#define AST(id, n, kids) n,
#include "ast.def"
#undef AST
    };
    return name[k];
}

/* The smallest span that holds both. An empty span (line 0) does not count; a span of another file
 * than a's is left out. */
Span span_join(Span a, Span b) {
    if (!a.line) return b;
    if (!b.line || a.file != b.file) return a;
    if (b.line < a.line || (b.line == a.line && b.col < a.col)) a.line = b.line, a.col = b.col;
    if (b.end_line > a.end_line || (b.end_line == a.end_line && b.end_col > a.end_col))
        a.end_line = b.end_line, a.end_col = b.end_col;
    return a;
}

/* A new node of the syntax tree without children. text: its name or word; NULL = none. */
Ast *ast_new(Ctx *c, AstKind k, Span at, const char *text) {
    Ast *t = NEW(c->a, Ast);
    t->kind = k;
    t->span = at;
    t->text = text;
    t->depth = 1;
    return t;
}

/* A tree too deep is cut here, so that nothing after the parser needs a guard
 * against the depth of what a user wrote. */
static Ast *cut_deep(Ctx *c, Ast *kid) {
    diag_add(c, DIAG_E0104, kid->span, "this is nested more than %d deep", AST_MAX_DEPTH);
    return ast_new(c, AST_BAD, kid->span, NULL);
}

/* Adds a child to a node, whose span and depth grow; NULL is a part that is left out. Returns
 * the node. */
Ast *ast_add(Ctx *c, Ast *parent, Ast *kid) {
    if (kid && kid->depth >= AST_MAX_DEPTH) kid = cut_deep(c, kid);
    if (parent->n == parent->cap) {
        int cap = parent->cap ? parent->cap * 2 : 4;
        Ast **v = NEWN(c->a, Ast *, (size_t)cap);
        if (parent->n) memcpy(v, parent->kid, sizeof *v * (size_t)parent->n);
        parent->kid = v;
        parent->cap = cap;
    }
    parent->kid[parent->n++] = kid;
    if (!kid) return parent;
    if (kid->depth >= parent->depth) parent->depth = kid->depth + 1;
    parent->span = span_join(parent->span, kid->span);
    return parent;
}

/* A new node with n children. Its span is `at` alone, not that of the children. */
Ast *ast_make(Ctx *c, AstKind k, Span at, const char *text, int n, Ast *const *kids) {
    Ast *t = ast_new(c, k, at, text);
    for (int i = 0; i < n; i++) ast_add(c, t, kids[i]);
    t->span = at;
    return t;
}

/* Prints a string in quotes, with escapes. */
static void print_quoted(StrBuf *b, const char *s) {
    sb_puts(b, " \"");
    for (; *s; s++) {
        if (*s == '"' || *s == '\\') sb_put(b, "\\", 1);
        if (*s == '\n')
            sb_puts(b, "\\n");
        else
            sb_put(b, s, 1);
    }
    sb_puts(b, "\"");
}

/* Prints a tree, one node a line, with its children indented below it; "-" stands for a part
 * that is left out. */
static void print_at(StrBuf *b, const Ast *t, int indent) {
    sb_printf(b, "%*s", indent * 2, "");
    if (!t) {
        sb_puts(b, "-\n");
        return;
    }
    sb_puts(b, kind_name(t->kind));
    if (t->kind == AST_UNARY || t->kind == AST_BINARY)
        sb_printf(b, " %s", ast_operator_text((Operator)t->op));
    else if (t->kind == AST_STRING || t->kind == AST_IMPORT || t->kind == AST_SAVED)
        print_quoted(b, t->text);
    else if (t->text)
        sb_printf(b, " %s", t->text);
    if (t->kind == AST_INT || t->kind == AST_FLOAT || t->kind == AST_BOOL)
        sb_printf(b, " %.17g", t->num);
    if (t->kind == AST_TYPE && (t->flag & TYPE_CSR)) sb_puts(b, " csr");
    sb_printf(b, "  @%u:%u-%u:%u\n", t->span.line, t->span.col, t->span.end_line, t->span.end_col);
    for (int i = 0; i < t->n; i++) print_at(b, t->kid[i], indent + 1);
}

void ast_print(StrBuf *b, const Ast *t) {
    print_at(b, t, 0);
}
