/* Why a name may be unknown: misspelt, in a file of the library that is not imported, or another
 * language's. */
#include "frontend/elab/elab.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/data/io.h"

#define LIBRARY "layers"

/* ---- other languages' words ------------------------------------------------------ */
/* What to say about a name that other languages and libraries use; NULL: it is none of them. */
static const char *foreign(const char *name) {
    static const struct {
        const char *word, *hint;
    } words[] = {
        {"None", "here it is 'none'"},
        {"True", "here it is 'true'"},
        {"False", "here it is 'false'"},
        {"range", "the numbers from 0 below n are 0..n"},
        {"self", "a layer's parameters and layers are named without it"},
        {"torch", "functions are called by their names alone: relu(x)"},
        {"nn", "layers are called by their names alone: linear(16)"},
        {"zip", "a list is walked by index: for i in 0..len(xs) { xs[i] }"},
        {"enumerate", "a list is walked by index: for i in 0..len(xs) { xs[i] }"},
        {"str", "numbers and texts are not joined"},
        {"bfloat16", "here it is 'bf16'"},
        {"fp16", "here it is 'f16'"},
        {"float16", "here it is 'f16'"},
        {"fp32", "here it is 'f32'"},
        {"float32", "here it is 'f32'"},
        {"global_mean_pool", "rows of a graph are joined by mean(x, over = graph)"},
        {"global_add_pool", "rows of a graph are joined by sum(x, over = graph)"},
        {"global_max_pool", "rows of a graph are joined by max(x, over = graph)"},
        {"cat", "values are joined by concat(a, b)"},
        {"concatenate", "values are joined by concat(a, b)"},
        {"stack", "a list xs is stacked by concat([expand(x, 1) for x in xs], over = 1)"},
        {"sort", "rows are not sorted; one is compared with all by rank"},
        {"topk", "rows are not sorted; one is compared with all by rank"},
        {"cumsum", "sums run over edges, graphs and dimensions, not along rows"},
        {"float", "a number is converted by f32(x)"},
        {"int", "a number is converted by i32(x)"},
    };
    for (size_t i = 0; i < COUNT(words); i++)
        if (strcmp(words[i].word, name) == 0) return words[i].hint;
    return NULL;
}

/* ---- the library ---------------------------------------------------------------------- */
/* The name that a line of a library file declares: "gat_conv" of "layer gat_conv(..". NULL: it
 * declares nothing. */
static const char *declared(Elab *e, const char *line) {
    size_t n = strncmp(line, "layer ", 6) == 0 ? 6 : strncmp(line, "fn ", 3) == 0 ? 3 : 0;
    size_t length = strcspn(line + n, "( \n");
    return n && length ? arena_strndup(e->a, line + n, length) : NULL;
}

/* Adds the names that a file of the library declares to `names`, and the file once for each to
 * `files`. */
static void read_names(Elab *e, const char *path, const char *file, Names *names, Names *files) {
    char line[256];
    FILE *f = fopen(path, "rb");
    while (f && fgets(line, sizeof line, f)) {
        const char *name = declared(e, line);
        if (!name) continue;
        vec_push(e->a, names, name);
        vec_push(e->a, files, file);
    }
    if (f) fclose(f);
}

/* Adds the names that files of the library declare to `names`, and for each its file to `files`. */
static void library_names(Elab *e, Names *names, Names *files) {
    for (int i = 0; i < e->opt->n_dirs; i++) {
        const char *folder = arena_printf(e->a, "%s/" LIBRARY, e->opt->dirs[i]);
        Names entry = {0};
        DIR *d = opendir(folder);
        for (struct dirent *x; d && (x = readdir(d));)
            if (rt_ends_with(x->d_name, ".gnn"))
                vec_push(e->a, &entry, arena_strndup(e->a, x->d_name, strlen(x->d_name)));
        if (d) closedir(d);
        if (entry.n) qsort(entry.v, (size_t)entry.n, sizeof *entry.v, rt_by_text);
        for (int j = 0; j < entry.n; j++)
            read_names(e, arena_printf(e->a, "%s/%s", folder, entry.v[j]),
                       arena_printf(e->a, LIBRARY "/%s", entry.v[j]), names, files);
    }
}

/* Advice to import the library file that declares `name`, or, if not exact, one like it. NULL:
 * there is none. */
static const char *import_of(Elab *e, const char *name, bool exact) {
    Names names = {0}, files = {0};
    library_names(e, &names, &files);
    const char *near = exact ? name : elab_names_nearest(name, &names);
    for (int i = 0; near && i < names.n; i++)
        if (strcmp(names.v[i], near) == 0)
            return exact ? arena_printf(e->a, "; it is in the library: import \"%s\"", files.v[i])
                         : arena_printf(e->a, "; did you mean '%s' of the library: import \"%s\"?",
                                        near, files.v[i]);
    return NULL;
}

/* ---- what can be named here -------------------------------------------------------------- */
static void add_keys(Elab *e, const StrMap *m, Names *to) {
    for (int i = 0; i < m->cap; i++)
        if (m->key[i] && m->val[i]) elab_names_add(e, to, m->key[i]);
}

/* All names that could stand where an unknown one does: bound, of the graph, declared, built in.
 * Sorted. */
static Names names_here(Elab *e) {
    Names n = {0};
    if (e->frame) add_keys(e, &e->frame->vars, &n);
    if (e->frame && e->frame->is_model) {
        for (int i = 0; i < e->nodes.n; i++) elab_names_add(e, &n, e->nodes.v[i].space->name);
        for (int i = 0; i < e->edges.n; i++) elab_names_add(e, &n, e->edges.v[i].space->name);
        for (int i = 0; i < e->m->spaces.n; i++)
            if (e->m->spaces.v[i]->kind == SP_DIM) elab_names_add(e, &n, e->m->spaces.v[i]->name);
    }
    add_keys(e, &e->constants, &n);
    add_keys(e, &e->globals, &n);
    add_keys(e, &e->prelude, &n);
    elab_builtin_names(e, &n);
    if (n.n) qsort(n.v, (size_t)n.n, sizeof *n.v, rt_by_text);
    return n;
}

/* How the message about an unknown name ends: what it is called here, what to import, or a name
 * like it. "" where nothing is known. */
const char *elab_hint_of_name(Elab *e, const char *name) {
    const char *word = foreign(name), *from = import_of(e, name, true);
    if (word) return arena_printf(e->a, "; %s", word);
    if (from) return from;
    Names here = names_here(e);
    const char *near = elab_names_nearest(name, &here);
    if (near) return arena_printf(e->a, "; did you mean '%s'?", near);
    from = import_of(e, name, false);
    return from ? from : "";
}

const char *elab_hint_of_import(Elab *e, const char *name) {
    const char *from = import_of(e, name, true);
    return from ? from : "";
}

/* How a message about `x.name` ends, where x has no members: functions are called by their name.
 * "" where nothing is known. */
const char *elab_hint_of_member(Elab *e, const char *name) {
    if (strcmp(name, "shape") == 0) return "; dimensions have names, and size(F) is a number";
    bool fn =
        elab_builtin_find(name) || strmap_get(&e->globals, name) || strmap_get(&e->prelude, name);
    if (!fn) return "";
    return arena_printf(e->a, "; it is called by its name alone: %s(..)", name);
}
