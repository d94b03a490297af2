/* The front end's entry: files and imports, top-level names, which model. */
#include "frontend/fe.h"
#include "frontend/elab/elab.h"
#include "frontend/syntax/parse.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/data/io.h"

#define PRELUDE "layers/prelude.gnn"
enum { MAX_FILES = 1000 };

typedef struct {
    Elab *e;
    StrMap loaded; /* canonical paths */
    int n_files;
    const char *library; /* the folder of the prelude; NULL = it is what is compiled */
} Loader;

/* ---- top-level names ------------------------------------------------------------------- */
static bool is_declaration(const Ast *d) {
    return d->kind == AST_LAYER || d->kind == AST_FN || d->kind == AST_EXTERN ||
           d->kind == AST_GRAPH || d->kind == AST_MODEL || d->kind == AST_CONST;
}

/* Adds a declaration to the names of the prelude or of the user's files. A second one of a name
 * is reported. */
static void declare(Elab *e, const Ast *d, bool prelude) {
    StrMap *names = prelude ? &e->prelude : &e->globals;
    const Ast *old = strmap_get(names, d->text);
    if (old && old != d) {
        diag_add(e->c, DIAG_E0202, d->span, "'%s' is declared twice", d->text);
        diag_note(e->c, old->span, "the first one is here");
        return;
    }
    strmap_put(e->a, names, d->text, (void *)d);
}

/* Evaluates a `const`, or takes its -D, and binds its name. Its code must be known when
 * compiling: it is elaborated into a function that is thrown away. */
static void set_constant(Elab *e, const Ast *d) {
    const FeDefine *def = elab_define_find(e, d->text);
    Value *v = NEW(e->a, Value);
    int n_funcs = e->m->funcs.n;
    Func *scratch = func_new(e->m, "const");
    Frame frame;
    e->b = (Builder){.m = e->m, .f = scratch, .span = d->span};
    elab_frame_push(e, &frame, d, NULL, d->span);
    if (!def || !elab_define_value(e, def, NULL, v)) *v = elab_eval(e, d->kid[0]);
    e->frame = NULL;
    if (v->kind == VAL_TENSOR) {
        diag_add(e->c, DIAG_E0210, d->kid[0]->span, "a const must be known when compiling");
        *v = val_poison();
    }
    e->m->funcs.n = n_funcs;
    strmap_put(e->a, &e->constants, d->text, v);
}

/* ---- files and imports ---------------------------------------------------------------------- */
/* The path of the file `name` in the folder of the file `path`. */
static const char *beside(Elab *e, const char *path, const char *name) {
    const char *slash = strrchr(path, '/');
    if (!slash) return name;
    return arena_printf(e->a, "%.*s/%s", (int)(slash - path), path, name);
}

/* The path of an imported file: beside the file that imports it (from; NULL = none), then in the
 * folders of -I and the library. NULL: there is none. */
static const char *find_file(Elab *e, const char *from, const char *name) {
    if (name[0] == '/') return ctx_is_readable(e->c, name) ? name : NULL;
    const char *path = from ? beside(e, from, name) : NULL;
    if (path && ctx_is_readable(e->c, path)) return path;
    for (int i = 0; i < e->opt->n_dirs; i++) {
        path = arena_printf(e->a, "%s/%s", e->opt->dirs[i], name);
        if (ctx_is_readable(e->c, path)) return path;
    }
    return NULL;
}

static Ast *load(Loader *l, const char *path, Span from, bool prelude);

/* Loads the file that the import t of the file `path` names. Reported if there is none. */
static void import(Loader *l, const char *path, const Ast *t) {
    Elab *e = l->e;
    const char *found = find_file(e, path, t->text);
    if (found) {
        load(l, found, t->span, false);
        return;
    }
    StrBuf dirs = sb_new(e->a);
    sb_puts(&dirs, "beside the file");
    for (int i = 0; i < e->opt->n_dirs; i++) sb_printf(&dirs, ", in %s", e->opt->dirs[i]);
    e->names_missing = true;
    diag_add(e->c, DIAG_E0301, t->span, "cannot find \"%s\" (looked %s)", t->text, dirs.s);
}

/* Parses file `id`. For an editor, which asks for notes, the file's tokens and tree are kept
 * there, too. */
static Ast *parse(Elab *e, uint32_t id) {
    if (!e->opt->notes) return fe_parse_file(e->c, id);
    FeFile *f = NEW(e->a, FeFile);
    f->id = id;
    Ast *tree = fe_parse_tokens(e->c, id, &f->tokens);
    f->tree = tree;
    vec_push(e->a, &e->opt->notes->files, f);
    return tree;
}

/* Parses a source that is in memory, then what it imports, then enters its names. */
static Ast *load_source(Loader *l, const char *path, uint32_t id, bool prelude) {
    Elab *e = l->e;
    if (prelude) e->prelude_file = id;
    Ast *file = parse(e, id);
    e->names_missing = e->names_missing || !file;
    if (!file) return NULL;
    for (int i = 0; i < file->n; i++)
        if (file->kid[i]->kind == AST_IMPORT) import(l, path, file->kid[i]);
    for (int i = 0; i < file->n; i++)
        if (file->kid[i]->kind == AST_BAD)
            e->names_missing = true;
        else if (is_declaration(file->kid[i]))
            declare(e, file->kid[i], prelude);
    for (int i = 0; i < file->n; i++)
        if (file->kid[i]->kind == AST_CONST) set_constant(e, file->kid[i]);
    elab_refuse_settable(e, file);
    return file;
}

static const char *folder_of(Elab *e, const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? arena_strndup(e->a, path, (size_t)(slash - path)) : "";
}

/* The path by which a file is known, so that it is read once however it is spelled. */
static const char *file_key(Elab *e, const char *path) {
    char real[PATH_MAX];
    const OutsideFile *given = ctx_memory_file(e->c, path);
    if (given) return given->path;
    return realpath(path, real) ? arena_strndup(e->a, real, strlen(real)) : path;
}

/* Loads a file and what it imports, once. from: the import; line 0 = the file that is compiled.
 * NULL: it was loaded before, or after a diagnostic. */
static Ast *load(Loader *l, const char *path, Span from, bool prelude) {
    Elab *e = l->e;
    const char *key = file_key(e, path);
    if (strmap_has(&l->loaded, key)) return NULL; /* a cycle of imports ends here */
    strmap_put(e->a, &l->loaded, key, NULL);
    if (++l->n_files > MAX_FILES) {
        diag_add(e->c, DIAG_E0301, from, "more than %d files are imported", MAX_FILES);
        return NULL;
    }
    uint32_t id = ctx_add_file(e->c, path, from);
    if (id == UINT32_MAX) return NULL;
    if (e->opt->notes && !prelude && !from.line) e->opt->notes->file = id;
    if (prelude) l->library = folder_of(e, key);
    e->c->sources.v[id].library = l->library && strcmp(folder_of(e, key), l->library) == 0;
    return load_source(l, path, id, prelude);
}

/* Loads the library's prelude, whose names each file has, unless the prelude itself is compiled. */
static void load_prelude(Loader *l, const char *path) {
    const char *found = find_file(l->e, NULL, PRELUDE);
    l->e->prelude_file = UINT32_MAX;
    if (found && strcmp(file_key(l->e, path), file_key(l->e, found)) == 0) return; /* itself */
    if (found)
        load(l, found, (Span){0}, true);
    else
        diag_add(l->e->c, DIAG_E0301, (Span){0},
                 "cannot find the library's \"%s\"; say where it is with -I DIR", PRELUDE);
}

/* ---- models -------- */
/* The last model of that name in the file; name NULL: the last of all. NULL: there is none. */
static const Ast *find_model(const Ast *file, const char *name) {
    const Ast *last = NULL;
    for (int i = 0; i < file->n; i++)
        if (file->kid[i]->kind == AST_MODEL && (!name || strcmp(file->kid[i]->text, name) == 0))
            last = file->kid[i];
    return last;
}

/* The end of a message about an unknown model: names of those there are. */
static const char *model_advice(Elab *e, const Ast *file, const char *wrong) {
    Names known = {0};
    for (int i = 0; i < file->n; i++)
        if (file->kid[i]->kind == AST_MODEL) elab_names_add(e, &known, file->kid[i]->text);
    return elab_names_advice(e, wrong, &known);
}

/* Reports recipes without a model, and second recipes of a model. */
static void check_trains(Elab *e, const Ast *file) {
    for (int i = 0; i < file->n; i++) {
        const Ast *t = file->kid[i];
        if (t->kind != AST_TRAIN) continue;
        const Ast *model = find_model(file, t->text);
        if (!model)
            diag_add(e->c, DIAG_E0306, t->span, "there is no model '%s' in this file%s", t->text,
                     model_advice(e, file, t->text));
        else if (elab_train_of(file, model) != t)
            diag_add(e->c, DIAG_E0306, t->span, "the model '%s' has a recipe already", t->text);
    }
}

/* The name of a file without its folder and suffix, which names the module. */
static const char *file_stem(Elab *e, const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    return arena_printf(e->a, "%.*s", (int)(dot && dot > name ? dot - name : (long)strlen(name)),
                        name);
}

/* The model to compile: that of --model, else the last one of the file. NULL after a diagnostic,
 * or where checking needs none. */
static const Ast *choose_model(Elab *e, const Ast *file) {
    const Ast *model = find_model(file, e->opt->model);
    if (model) return model;
    if (e->opt->model)
        diag_add(e->c, DIAG_E0311, (Span){0}, "there is no model '%s' in this file%s",
                 e->opt->model, model_advice(e, file, e->opt->model));
    else if (!e->opt->check_only)
        diag_add(e->c, DIAG_E0311, file->span, "there is no model in this file");
    return NULL;
}

/* A loader with a new module and the prelude loaded. opt NULL: no options. */
static Loader loader_new(Ctx *c, const char *path, const FeOptions *opt) {
    static const FeOptions no_options = {0};
    Elab *e = NEW(c->a, Elab);
    e->c = c;
    e->a = c->a;
    e->opt = opt ? opt : &no_options;
    e->m = module_new(c, file_stem(e, path));
    e->m->source_path = path;
    Loader l = {.e = e};
    load_prelude(&l, path);
    return l;
}

/* Elaborates the chosen model of a file and checks all else in it. NULL: it has no model, or a
 * mistake. */
static Module *elab_file(Elab *e, const Ast *file) {
    if (!file) return NULL;
    check_trains(e, file);
    const Ast *model = choose_model(e, file);
    if (model) elab_model(e, model, elab_train_of(file, model));
    elab_check_other_models(e, file, model);
    elab_check_unused(e, file);
    if (e->opt->notes) {
        e->opt->notes->globals = e->globals;
        e->opt->notes->prelude = e->prelude;
    }
    return model && e->c->n_errors == 0 ? e->m : NULL;
}

Module *fe_compile(Ctx *c, const char *path, const FeOptions *opt) {
    Loader l = loader_new(c, path, opt);
    return elab_file(l.e, load(&l, path, (Span){0}, false));
}

/* Compiles the text of a model that is no file yet, as an editor has it. path: what it is
 * called. NULL after diagnostics. */
Module *fe_compile_text(Ctx *c, const char *path, const char *text, size_t n,
                        const FeOptions *opt) {
    Loader l = loader_new(c, path, opt);
    return elab_file(l.e, load_source(&l, path, ctx_add_text(c, path, text, n), false));
}

/* Reads and parses one file, without what it imports. NULL after a diagnostic. */
Ast *fe_parse_path(Ctx *c, const char *path) {
    uint32_t file = ctx_add_file(c, path, (Span){0});
    if (file == UINT32_MAX) return NULL;
    Ast *t = fe_parse_file(c, file);
    return c->n_errors == 0 ? t : NULL;
}
