/* Knowledge graphs: triples become edges, and train.txt, valid.txt, test.txt with
 * "head<tab>relation<tab>tail" lines, as ConvE, OpenKE and others publish them.
 * Numbers follow entities.txt and relations.txt, or else the order of appearance. */
#include <stdio.h>
#include <string.h>

#include "import_build.h"
#include "import_folder.h"
#include "runtime/data/names.h"

enum { MOST_TYPES = 4096, MOST_RELATIONS = 1 << 16 };

/* ---- edges of triples ---------------------------------------------------------- */
int rt_triples_tables(const RtImport *how, int64_t n_relations) {
    return how->relation_types ? (int)n_relations : 1;
}

/* Edges `row`[0..n) of the triples, all of them where it is NULL. */
static gnnc_status add_edges(RtBuild *b, const RtTriples *t, const RtTable *entities,
                             const char *name, const int32_t *row, int64_t n, RtTable **out) {
    int32_t *src = RT_NEWN(&b->d->pool, int32_t, n), *dst = RT_NEWN(&b->d->pool, int32_t, n);
    RtColumn *split;
    if (!src || !dst) return rt_fail_nomem(b->err, name);
    for (int64_t i = 0; i < n; i++) {
        src[i] = t->head[row ? row[i] : i];
        dst[i] = t->tail[row ? row[i] : i];
    }
    gnnc_status st = rt_build_edges(b, name, entities, entities, n, src, dst, out);
    if (st != GNNC_OK || !t->split) return st;
    st = rt_build_split(b, *out, 1, &split);
    if (st != GNNC_OK) return st;
    int8_t *to = (int8_t *)(uintptr_t)split->splits;
    for (int64_t i = 0; i < n; i++) to[i] = t->split[row ? row[i] : i];
    return st;
}

/* Adds each triple's relation as a column of categories. */
static gnnc_status add_relation_column(RtBuild *b, const RtTriples *t, RtTable *edges) {
    RtPool *pool = &b->d->pool;
    int32_t *v = RT_NEWN(pool, int32_t, t->n);
    const char **names = t->relations ? RT_NEWN(pool, const char *, t->n_relations) : NULL;
    if (!v || (t->relations && !names)) return rt_fail_nomem(b->err, "rel");
    if (t->n) memcpy(v, t->rel, (size_t)t->n * sizeof *v);
    for (int64_t i = 0; names && i < t->n_relations; i++)
        if (!(names[i] = rt_pool_strndup(pool, t->relations[i], strlen(t->relations[i]))))
            return rt_fail_nomem(b->err, "rel");
    RtColumn *c = rt_build_column(b, edges, RT_COL_CAT, "rel");
    if (!c) return b->st;
    c->i32 = v;
    c->n_categories = t->n_relations;
    c->names = names;
    return GNNC_OK;
}

/* Makes a name of a relation's: "r7_country" of "/location/location/country". The number keeps
 * names apart. */
static char *relation_name(RtPool *pool, const RtTriples *t, int64_t r) {
    const char *s = t->relations ? t->relations[r] : "";
    const char *cut = strpbrk(s, "/#") ? s + strlen(s) : s;
    while (cut > s && cut[-1] != '/' && cut[-1] != '#') cut--;
    return rt_pool_printf(pool, "r%lld%s%.40s", (long long)r, *cut ? "_" : "", cut);
}

/* Makes an edge type of each relation. */
static gnnc_status add_relation_types(RtBuild *b, const RtTriples *t, const RtTable *entities) {
    RtGroups g;
    RtTable *edges;
    if (t->n_relations > MOST_TYPES)
        return rt_fail(b->err, GNNC_E_LIMIT, "%s: %lld relations are too many for a type each",
                       b->name, (long long)t->n_relations);
    gnnc_status st = rt_group(&b->d->pool, t->rel, t->n, t->n_relations, &g, b->err);
    for (int64_t r = 0; r < t->n_relations && st == GNNC_OK; r++) {
        char *name = relation_name(&b->d->pool, t, r);
        if (!name) return rt_fail_nomem(b->err, "relation");
        st = add_edges(b, t, entities, name, g.perm + g.ptr[r], g.ptr[r + 1] - g.ptr[r], &edges);
    }
    return st;
}

gnnc_status rt_build_triples(RtBuild *b, const RtTriples *t, RtTable **entities) {
    RtTable *edges;
    gnnc_status st;
    TRY(st, rt_build_nodes(b, b->how->node ? b->how->node : "entity", t->n_entities, entities));
    if (t->entities) TRY(st, rt_build_names(b, *entities, t->entities));
    if (b->how->relation_types) return add_relation_types(b, t, *entities);
    const char *name = b->how->edge ? b->how->edge : "triple";
    TRY(st, add_edges(b, t, *entities, name, NULL, t->n, &edges));
    st = add_relation_column(b, t, edges);
out:
    return st;
}

/* ---- names ---------------------------------------------------------------------- */
/* Reads a file of names, a line each; *names stays as it is if there is none. */
static gnnc_status read_names(RtPool *pool, const RtFolder *f, const char *file,
                              const char *const **names, int64_t *n, RtError *err) {
    RtBytes text;
    bool found;
    const char **line;
    gnnc_status st = rt_folder_text(pool, f, file, &text, &found, err);
    if (st != GNNC_OK || !found) return st;
    st = rt_lines(pool, text, file, &line, n, err);
    *names = line;
    return st;
}

/* names.txt: the sections are parted by lines that begin with "# ". */
static void cut_sections(const char *const *line, int64_t n, RtVocabulary *v) {
    const char *const **to = NULL;
    int64_t *count = NULL;
    for (int64_t i = 0; i < n; i++) {
        bool entities = strcmp(line[i], "# entities") == 0;
        bool relations = strcmp(line[i], "# relations") == 0;
        if (entities || relations) {
            to = entities ? &v->entities : &v->relations;
            count = entities ? &v->n_entities : &v->n_relations;
            *to = line + i + 1;
            *count = 0;
        } else if (strcmp(line[i], "# classes") == 0) {
            to = NULL;
        } else if (to) {
            ++*count;
        }
    }
}

/* Reads the names of entities and relations, if the folder has files of them. */
gnnc_status rt_vocabulary_read(RtPool *pool, const RtFolder *f, RtVocabulary *out, RtError *err) {
    const char *const *line = NULL;
    int64_t n = 0;
    gnnc_status st;
    *out = (RtVocabulary){0};
    TRY(st, read_names(pool, f, "entities.txt", &out->entities, &out->n_entities, err));
    TRY(st, read_names(pool, f, "relations.txt", &out->relations, &out->n_relations, err));
    if (out->entities || out->relations) return GNNC_OK;
    TRY(st, read_names(pool, f, "names.txt", &line, &n, err));
    if (line) cut_sections(line, n, out);
out:
    return st;
}

/* ---- text ------------------------------------------------------------------------ */
typedef struct {
    RtPool pool;
    const RtFolder *f;
    RtImport *how;
    RtError *err;
    RtNames entities, relations;
    bool closed[2]; /* entities, relations: all names are known */
    int32_t *v[3];
    int8_t *split;
    int64_t n;
    struct {
        const char *name, **line;
        int64_t n;
        int part;
    } file[4];
    int n_files;
} Text;

/* Reads the lines of all parts' files. */
static gnnc_status read_files(Text *t, int64_t *n_lines) {
    static const char *const names[] = {"train.txt", "valid.txt", "val.txt", "test.txt"};
    static const int parts[] = {1, 2, 2, 3};
    gnnc_status st = GNNC_OK;
    *n_lines = 0;
    for (int i = 0; i < 4; i++) {
        RtBytes text;
        bool found;
        TRY(st, rt_folder_text(&t->pool, t->f, names[i], &text, &found, t->err));
        if (!found) continue;
        int k = t->n_files++;
        t->file[k].name = names[i];
        t->file[k].part = parts[i];
        TRY(st, rt_lines(&t->pool, text, names[i], &t->file[k].line, &t->file[k].n, t->err));
        *n_lines += t->file[k].n;
    }
    if (t->n_files == 0)
        st = rt_fail(t->err, GNNC_E_MISSING, "%s: no train.txt, valid.txt or test.txt", t->f->name);
out:
    return st;
}

/* One line; NULL or what is wrong with it.  Cuts it in place: rt_lines' copy is ours. */
static const char *read_triple(Text *t, char *s, int part) {
    char *cell[3];
    for (int k = 0; k < 3; k++) {
        cell[k] = s;
        char *tab = strchr(s, '\t');
        if ((k < 2) != (tab != NULL)) return "three names parted by tabs are expected";
        if (tab) *tab = 0, s = tab + 1;
        if (!*cell[k]) return "a name is empty";
    }
    int32_t id[3];
    for (int k = 0; k < 3; k++) {
        RtNames *names = k == 1 ? &t->relations : &t->entities;
        id[k] = t->closed[k == 1] ? rt_names_find(names, cell[k]) : rt_names_add(names, cell[k]);
        if (id[k] < 0)
            return k == 1 ? "relations.txt lacks its relation" : "entities.txt lacks an entity";
    }
    for (int k = 0; k < 3; k++) t->v[k][t->n] = id[k];
    t->split[t->n++] = (int8_t)part;
    return NULL;
}

/* Begins a table of names: those of a list, which then are all there are, or of as many as lines
 * can have. */
static gnnc_status known_names(Text *t, int which, const char *const *names, int64_t n,
                               int64_t n_lines) {
    RtNames *to = which ? &t->relations : &t->entities;
    int64_t cap = names ? n : (which ? 1 : 2) * n_lines;
    if (!rt_names_new(&t->pool, to, cap)) return rt_fail_nomem(t->err, t->f->name);
    t->closed[which] = names;
    for (int64_t i = 0; names && i < n; i++) {
        int64_t first = rt_names_add(to, names[i]);
        if (first != i)
            return rt_fail(t->err, GNNC_E_FORMAT,
                           "%s: row %lld: '%.60s' is repeated: row %lld has it",
                           which ? "relations.txt" : "entities.txt", (long long)i + 1, names[i],
                           (long long)first + 1);
    }
    return GNNC_OK;
}

/* Reads the triples of all files, and counts entities and relations. */
static gnnc_status read_text(Text *t) {
    RtVocabulary names;
    int64_t n_lines;
    gnnc_status st;
    TRY(st, read_files(t, &n_lines));
    TRY(st, rt_vocabulary_read(&t->pool, t->f, &names, t->err));
    TRY(st, known_names(t, 0, names.entities, names.n_entities, n_lines));
    TRY(st, known_names(t, 1, names.relations, names.n_relations, n_lines));
    for (int k = 0; k < 3; k++)
        if (!(t->v[k] = RT_NEWN(&t->pool, int32_t, n_lines)))
            return rt_fail_nomem(t->err, t->f->name);
    if (!(t->split = RT_NEWN(&t->pool, int8_t, n_lines))) return rt_fail_nomem(t->err, t->f->name);
    for (int i = 0; i < t->n_files; i++)
        for (int64_t r = 0; r < t->file[i].n; r++) {
            char *s = (char *)(uintptr_t)t->file[i].line[r];
            const char *what = *s ? read_triple(t, s, t->file[i].part) : NULL;
            if (what) rt_import_bad_row(t->how, t->file[i].name, r + 1, what);
        }
    if (t->relations.n > MOST_RELATIONS)
        st = rt_fail(t->err, GNNC_E_LIMIT, "%s: more than 65536 relations", t->f->name);
out:
    return st;
}

/* Reads a folder of triples, train.txt and so on. */
gnnc_status rt_import_triples(const RtAlloc *from, const RtFolder *f, RtImport *how,
                              RtDataset **out, RtError *err) {
    Text t = {.f = f, .how = how, .err = err};
    RtBuild b = {.d = NULL};
    RtTable *entities;
    gnnc_status st;
    rt_pool_init(&t.pool, from);
    TRY(st, read_text(&t));
    RtTriples all = {t.n,    t.entities.n, t.relations.n,   t.v[0],          t.v[1],
                     t.v[2], t.split,      t.entities.keys, t.relations.keys};
    TRY(st,
        rt_build_begin(&b, from, f->name, how, 1, rt_triples_tables(how, t.relations.n), 0, err));
    TRY(st, rt_build_triples(&b, &all, &entities));
    st = rt_build_finish(&b);
out:
    return rt_build_end(&b, &t.pool, st, out);
}
