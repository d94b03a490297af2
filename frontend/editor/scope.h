/* What each name of a file stands for.  A declaration's body is one scope (docs/language.md,
 * section 5), so a name that a body binds anywhere is its own; whether branches are taken plays no
 * part. */
#ifndef FRONTEND_EDITOR_SCOPE_H
#define FRONTEND_EDITOR_SCOPE_H

#include "frontend/fe.h"

typedef enum {
    SYMBOL_NONE,
    SYMBOL_LOCAL,   /* of a body: parameters, values, dimensions */
    SYMBOL_GLOBAL,  /* a declaration of a file */
    SYMBOL_DATA,    /* of a graph: node types, relations, sizes */
    SYMBOL_BUILTIN, /* a function of the language */
} SymbolKind;

/* A declaration's tokens, [from, to), and what it binds: name -> GivenToken *. */
typedef struct {
    int from, to;
    const char *name; /* "" where it has none */
    StrMap bound;
} ScopeRegion;

typedef struct {
    const FeFile *file;
    const char **text; /* of each token that is a name; else NULL */
    VEC(ScopeRegion) regions;
} ScopeFile;

typedef struct {
    Ctx *c; /* of the compile: sources */
    Arena *a;
    const FeNotes *notes;
    VEC(ScopeFile) files;
} Scope;

typedef struct {
    SymbolKind kind;
    const char *name;          /* without primes, where those are not bound by themselves */
    const ScopeFile *file;     /* LOCAL, DATA */
    const ScopeRegion *region; /* LOCAL */
    const Ast *decl;           /* GLOBAL */
    Span declared;
} Symbol;

typedef struct {
    Span at; /* of the name without primes that it does not bind */
    TokenRole role;
} SymbolUse;
typedef VEC(SymbolUse) SymbolUses;

/* The names in all files that a compilation read. */
Scope *scope_new(Arena *a, Ctx *c, const FeNotes *notes);
const ScopeFile *scope_file(const Scope *s, uint32_t id); /* NULL: it was not read */
/* The token that holds that column, or ends there; -1: none. Where two tokens touch it is the later
 * one, unless only the earlier is a name. */
int scope_token_at(const ScopeFile *f, uint32_t line, uint32_t col);
/* The top-level declaration that the token is in; NULL: none. */
const ScopeRegion *scope_region(const ScopeFile *f, int token);
/* What the name at a token means; SYMBOL_NONE: nothing, or nobody knows. */
Symbol scope_symbol(const Scope *s, const ScopeFile *f, int token);
/* Are both the same symbol? */
bool scope_same(const Symbol *a, const Symbol *b);
/* All uses in the files that were read.  False: an argument of that name goes to who knows what. */
bool scope_uses(const Scope *s, const Symbol *of, SymbolUses *to);
/* The call that has the named argument which begins there. */
const Ast *scope_call_of(const Scope *s, const ScopeFile *f, Span named);
/* What a callee is: a layer or function; its parameters are looked for in both lists of a layer. */
const Ast *scope_callee(const Scope *s, const ScopeFile *f, const Ast *callee);
/* The parameter of a declaration that is called so; NULL: it has none. */
const Ast *scope_formal(const Ast *decl, const char *name);

#endif
