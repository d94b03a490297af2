/* The syntax tree: one node type with a kind, a text, a number and children, so
 * that printing and walking are one function each.  ast.def says what the
 * children of each kind are.  Nodes live in the compiler's arena. */
#ifndef FRONTEND_AST_H
#define FRONTEND_AST_H

#include "ir/base.h"

typedef enum {
#define AST(id, name, kids) AST_##id,
#include "ast.def"
#undef AST
    N_ASTS
} AstKind;

typedef enum {
#define OPERATOR(id, text) OPR_##id,
#include "operators.def"
#undef OPERATOR
    N_OPERATORS
} Operator;
const char *ast_operator_text(Operator o);

enum { TYPE_CSR = 1, TYPE_DIMS = 2 /* brackets were written */, TYPE_ARGS = 4 /* parentheses */ };
enum { DECL_TIMELESS = 1 }; /* Ast.flag of NODE_DECL and EDGE_DECL */

/* Nesting beyond this is a diagnostic: later stages recurse over the tree. */
enum { AST_MAX_DEPTH = 250 };

typedef struct Ast Ast;
struct Ast {
    AstKind kind;
    Span span;
    const char *text;
    double num;
    int op;   /* Operator of UNARY and BINARY */
    int flag; /* see ast.def */
    int depth;
    int n, cap;
    Ast **kid;
};

Ast *ast_new(Ctx *c, AstKind k, Span at, const char *text);
/* Appends a child (NULL is kept as an absent one) and widens the span over it. */
Ast *ast_add(Ctx *c, Ast *parent, Ast *kid);
Ast *ast_make(Ctx *c, AstKind k, Span at, const char *text, int n, Ast *const *kids);
void ast_print(StrBuf *b, const Ast *t); /* indented, one node per line, with positions */
Span span_join(Span a, Span b);

#endif
