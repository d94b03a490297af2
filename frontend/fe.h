/* The front end: a .gnn file to a module of graph IR. */
#ifndef FRONTEND_FE_H
#define FRONTEND_FE_H

#include "frontend/syntax/ast.h"
#include "frontend/syntax/tokens.h"
#include "ir/ir.h"

typedef struct {
    const char *name, *value; /* -D name=value */
} FeDefine;

/* Of an expression or a parameter, as it was elaborated first. */
typedef struct {
    const Ast *at;
    const char *type;    /* "f32[paper, hidden]", "int = 8", .. */
    Span declared;       /* what it names in the graph or calls; line 0: nothing */
    const Ast *decl;     /* the layer or function that it is; NULL: none */
    const char *builtin; /* .. or the built-in one */
} FeNote;

/* A file that was read. */
typedef struct {
    uint32_t id;
    const Ast *tree; /* NULL: it is no text */
    TokenList tokens;
} FeFile;

/* What editors ask for beside the module: it stays, whatever is wrong with the file.  Lives in the
 * arena of the compile. */
typedef struct {
    const char *ask;         /* a name that nothing has; NULL: none */
    VEC(const char *) known; /* .. what could stand in its place, where the compiler can say */
    uint32_t file;           /* the one that was asked for: notes are of it alone */
    VEC(FeFile *) files;
    StrMap globals, prelude; /* name -> Ast * of a declaration */
    FeNote *slot;
    int n, cap;
} FeNotes;
const FeNote *fe_note_of(const FeNotes *n, const Ast *t); /* NULL: it was not elaborated */
const char *fe_builtin_name(int i);                       /* NULL behind the last */

typedef struct {
    const FeDefine *defs; /* override `const`s and the model's parameters */
    int n_defs;
    const char *const *dirs; /* where imports are looked for, after the file's own directory */
    int n_dirs;
    const char *model;    /* which model of the file; NULL = the last one */
    bool check_only;      /* a file without a model is fine */
    bool serve;           /* @predict of a model of links scores pairs that are brought */
    bool draw;            /* .. and of rows sees as many neighbours as the recipe draws */
    const char *settable; /* parameters of the model that are options of the program, "hidden,p", as
                           * if the model said so; NULL = none */
    const char *embed; /* of `serve`: these layers, "h,z" or "all", are given, too; NULL = none */
    FeNotes *notes;    /* NULL: nobody asks */
} FeOptions;

/* Parses, checks and elaborates.  The module has a function per phase: @train (with
 * a recipe; output "loss"), @eval ("loss.val", "accuracy.test", ..), @predict
 * ("pred"), @embed ("embed.h", ..), and @load where a relation needs a condition.
 * NULL after errors, and for a file without a model. */
Module *fe_compile(Ctx *c, const char *path, const FeOptions *opt);

/* The same for text in memory; `path` names it in messages, and is where imports start. */
Module *fe_compile_text(Ctx *c, const char *path, const char *text, size_t n, const FeOptions *opt);

/* The syntax tree of one file, for --emit=ast; NULL after errors. */
Ast *fe_parse_path(Ctx *c, const char *path);

#endif
