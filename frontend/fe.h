/* The front end: a .gnn file to a module of graph IR. */
#ifndef FRONTEND_FE_H
#define FRONTEND_FE_H

#include "frontend/syntax/ast.h"
#include "ir/ir.h"

typedef struct {
    const char *name, *value; /* -D name=value */
} FeDefine;

typedef struct {
    const FeDefine *defs; /* override `const`s and the model's parameters */
    int n_defs;
    const char *const *dirs; /* where imports are looked for, after the file's own directory */
    int n_dirs;
    const char *model; /* which model of the file; NULL = the last one */
    bool check_only;   /* a file without a model is fine */
    bool serve;        /* @predict of a model of links scores pairs that are brought */
    bool draw;         /* .. and of rows sees as many neighbours as the recipe draws */
    const char *embed; /* of `serve`: these layers, "h,z" or "all", are given, too; NULL = none */
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
