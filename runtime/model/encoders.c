#include "encoders.h"

#include <string.h>
#include <sys/stat.h>

#include "runtime/bind/bind.h"

static const char PREFIX[] = "encoders:";

/* ---- in files ---------------------------------------------------------------------- */
typedef struct {
    RtPool *pool;
    const char *path, *key;
    const RtCodes *codes;
    int n_codes;
    RtError *err;
} File;

static gnnc_status bad(const File *f, const char *column, const char *what) {
    return rt_fail(f->err, GNNC_E_FORMAT, "%s: metadata '%s': %s%s%s", f->path, f->key, column,
                   *column ? ": " : "", what);
}

/* Reads the names of an encoding's categories, which the file keeps among its codes. */
static gnnc_status read_names(const File *f, const RtJson *v, RtEncoding *to) {
    const char *of = rt_pool_printf(f->pool, "%s.%s", to->table, to->column);
    const RtJson *n = rt_json_get(v, "categories");
    if (!of) return rt_fail_nomem(f->err, f->path);
    const RtCodes *k = rt_codes_find(f->codes, f->n_codes, of);
    int64_t none = to->e.as == RT_AS_MISSING ? 2 : 0;
    bool counted = n && n->kind == RT_JSON_NUMBER && n->is_int && n->i >= 0 && n->i <= INT32_MAX;
    if (n && !counted) return bad(f, to->column, "'categories' must be a whole number");
    const char *what = rt_encoder_names(&to->e, k ? k->n : n ? n->i : none, k ? k->names : NULL);
    if (what) return bad(f, to->column, what);
    return rt_encoder_index(f->pool, &to->e) ? GNNC_OK : rt_fail_nomem(f->err, f->path);
}

/* Reads how one column was made: its kind, its encoder, and names of categories. */
static gnnc_status read_one(const File *f, const RtJson *v, RtEncoding *to) {
    const RtJson *column = rt_json_get(v, "column"), *kind = rt_json_get(v, "kind");
    const RtJson *encoder = rt_json_get(v, "encoder"), *label = rt_json_get(v, "label");
    rt_col_kind k;
    bool named = column && column->kind == RT_JSON_STRING && kind && kind->kind == RT_JSON_STRING;
    if (!named || !encoder || !rt_col_kind_find(kind->text, &k))
        return bad(f, "", "a column, its kind and its encoder are expected");
    to->column = column->text;
    to->label = label && label->kind == RT_JSON_BOOL && label->number != 0;
    const char *what = rt_encoder_read(f->pool, encoder, to->column, k, &to->e);
    if (!what && to->e.as == RT_AS_UNCHECKED) what = "it makes nothing of cells";
    if (what) return bad(f, to->column, what);
    return rt_col_facts[k].codes ? read_names(f, v, to) : GNNC_OK;
}

/* Reads how the columns of a table were made. */
static gnnc_status read_table(const File *f, const RtJson *list, const char *table,
                              RtEncoders *out) {
    gnnc_status st = GNNC_OK;
    for (const RtJson *v = list->first; v && st == GNNC_OK; v = v->next) {
        RtEncoding *to = &out->v[out->n];
        to->table = table;
        st = read_one(f, v, to);
        if (st == GNNC_OK && rt_encoders_find(out, table, to->column))
            return bad(f, to->column, "it is there twice");
        out->n++;
    }
    return st;
}

/* Parses one metadata text, which holds a list. */
static gnnc_status parse(const File *f, const char *text, RtJson **list) {
    const RtBytes bytes = {(const uint8_t *)text, strlen(text)};
    gnnc_status st = rt_json_parse(f->pool, bytes, f->path, list, f->err);
    if (st != GNNC_OK || (*list)->kind == RT_JSON_ARRAY) return st;
    return bad(f, "", "a list is expected");
}

/* Reads how all columns were made from the metadata of a file of weights. */
gnnc_status rt_encoders_read(RtPool *pool, const char *path, const RtTensors *t,
                             const RtCodes *codes, int n_codes, RtEncoders *out, RtError *err) {
    File f = {pool, path, NULL, codes, n_codes, err};
    RtJson **list = RT_NEWN(pool, RtJson *, t->n_meta + 1);
    gnnc_status st = GNNC_OK;
    int n = 0;
    *out = (RtEncoders){.of = path};
    if (!list) return rt_fail_nomem(err, path);
    for (int i = 0; i < t->n_meta; i++) {
        f.key = t->meta[i].key;
        if (strncmp(f.key, PREFIX, sizeof PREFIX - 1) != 0) continue;
        TRY(st, parse(&f, t->meta[i].value, &list[i]));
        n += list[i]->n;
    }
    if (!(out->v = RT_NEWN(pool, RtEncoding, n + 1))) return rt_fail_nomem(err, path);
    for (int i = 0; i < t->n_meta; i++) {
        if (!list[i]) continue;
        f.key = rt_pool_strndup(pool, t->meta[i].key, strlen(t->meta[i].key));
        if (!f.key) return rt_fail_nomem(err, path);
        TRY(st, read_table(&f, list[i], f.key + sizeof PREFIX - 1, out));
    }
out:
    return st;
}

/* ---- of a data directory: its schema alone ------------------------------------------ */
static gnnc_status bad_column(const File *f, const RtJson *v, const char *what) {
    return rt_fail(f->err, GNNC_E_FORMAT, "%s/schema.json:%d: %s: encoder: %s", f->path, v->line,
                   v->key, what);
}

/* Reads the number of a column's categories, and their names, from a schema.json. */
static gnnc_status read_schema_names(const File *f, const RtJson *v, RtEncoder *e) {
    const RtJson *n = rt_json_get(v, "categories"), *names = rt_json_get(v, "names");
    if (!n || !n->is_int || n->i < 0 || n->i > INT32_MAX)
        return bad_column(f, v, "'categories' must be a whole number");
    const char **text = names ? RT_NEWN(f->pool, const char *, names->n + 1) : NULL;
    if (names && !text) return rt_fail_nomem(f->err, f->path);
    if (names && (names->kind != RT_JSON_ARRAY || names->n != n->i))
        return bad_column(f, v, "'names' must list one name per category");
    int64_t k = 0;
    for (const RtJson *s = names ? names->first : NULL; s; s = s->next) {
        if (s->kind != RT_JSON_STRING) return bad_column(f, v, "a name must be a string");
        text[k++] = s->text;
    }
    const char *what = rt_encoder_names(e, n->i, text);
    if (what) return bad_column(f, v, what);
    if (!rt_encoder_index(f->pool, e)) return rt_fail_nomem(f->err, f->path);
    bool all = !e->names || e->codes.n == n->i;
    return all ? GNNC_OK : bad_column(f, v, "two categories have one name");
}

/* Reads how a column was made from a schema.json; a column that does not say it is left out. */
static gnnc_status read_column(const File *f, const RtJson *v, const char *table, RtEncoders *out) {
    const RtJson *kind = rt_json_get(v, "kind"), *encoder = rt_json_get(v, "encoder");
    RtColumn c = {.name = v->key, .rank = 1};
    if (!encoder) return GNNC_OK;
    if (!kind || kind->kind != RT_JSON_STRING || !rt_col_kind_find(kind->text, &c.kind))
        return bad_column(f, v, "unknown 'kind'");
    bool label = c.kind == RT_COL_SPLIT || rt_column_is_label(&c);
    RtEncoding *to = &out->v[out->n++];
    *to = (RtEncoding){.table = table, .column = v->key, .label = label};
    const char *what = rt_encoder_read(f->pool, encoder, v->key, c.kind, &to->e);
    if (what) return bad_column(f, v, what);
    if (to->e.as == RT_AS_UNCHECKED) return out->n--, GNNC_OK;
    return rt_col_facts[c.kind].codes ? read_schema_names(f, v, &to->e) : GNNC_OK;
}

/* Fails unless v is an object, or not there. */
static gnnc_status want_object(const File *f, const RtJson *v, const char *what) {
    if (!v || v->kind == RT_JSON_OBJECT) return GNNC_OK;
    return rt_fail(f->err, GNNC_E_FORMAT, "%s/schema.json:%d: %s: an object is expected", f->path,
                   v->line, what);
}

/* Reads how the columns of a table were made; *n counts them (`to` NULL: only that). */
static gnnc_status read_columns(const File *f, const RtJson *table, RtEncoders *to, int *n) {
    const RtJson *columns = rt_json_get(table, "columns");
    gnnc_status st = want_object(f, table, table->key);
    if (st == GNNC_OK) st = want_object(f, columns, table->key);
    if (st != GNNC_OK || !columns) return st;
    *n += columns->n;
    for (const RtJson *c = columns->first; to && c && st == GNNC_OK; c = c->next)
        st = read_column(f, c, table->key, to);
    return st;
}

/* Columns of all tables: to = NULL counts them. */
static gnnc_status read_sections(const File *f, const RtJson *root, RtEncoders *to, int *n) {
    static const char *const sections[] = {"nodes", "edges", "graphs"};
    gnnc_status st = want_object(f, root, "data set");
    *n = 0;
    for (int k = 0; k < 3 && st == GNNC_OK; k++) {
        const RtJson *section = rt_json_get(root, sections[k]);
        st = want_object(f, section, sections[k]);
        for (const RtJson *t = section ? section->first : NULL; t && st == GNNC_OK; t = t->next)
            st = read_columns(f, t, to, n);
    }
    return st;
}

gnnc_status rt_encoders_of_schema(RtPool *pool, const char *dir, RtBytes text, RtEncoders *out,
                                  RtError *err) {
    const char *path = rt_pool_printf(pool, "%s/schema.json", dir);
    File f = {.pool = pool, .path = dir, .err = err};
    RtJson *root;
    gnnc_status st;
    int n;
    *out = (RtEncoders){.of = dir};
    if (!path) return rt_fail_nomem(err, dir);
    TRY(st, rt_json_parse(pool, text, path, &root, err));
    TRY(st, read_sections(&f, root, NULL, &n));
    if (!(out->v = RT_NEWN(pool, RtEncoding, n + 1))) return rt_fail_nomem(err, dir);
    st = read_sections(&f, root, out, &n);
out:
    return st;
}

/* Reads how all columns were made from a data directory. */
gnnc_status rt_encoders_of_data(RtPool *pool, const char *dir, RtEncoders *out, RtError *err) {
    const char *path = rt_pool_printf(pool, "%s/schema.json", dir);
    RtBytes text;
    *out = (RtEncoders){.of = dir};
    if (!path) return rt_fail_nomem(err, dir);
    gnnc_status st = rt_file_read(pool, path, &text, err);
    return st == GNNC_OK ? rt_encoders_of_schema(pool, dir, text, out, err) : st;
}

/* Fails if nothing is known of how columns were made. */
static gnnc_status need_some(const RtEncoders *v, RtError *err) {
    if (v->n) return GNNC_OK;
    return rt_fail(
        err, GNNC_E_MISSING,
        "%s: nothing in it says how columns are made of cells: it is of no import of CSV, "
        "or older",
        v->of);
}

gnnc_status rt_encoders_of_weights(RtPool *pool, const char *path, const RtTensors *f,
                                   RtEncoders *out, RtError *err) {
    RtCodes *codes;
    int n;
    gnnc_status st = rt_codes_read(pool, path, f, &codes, &n, err);
    if (st == GNNC_OK) st = rt_encoders_read(pool, path, f, codes, n, out, err);
    return st == GNNC_OK ? need_some(out, err) : st;
}

/* ---- of either ---------------------------------------------------------------------- */
gnnc_status rt_encoders_open(RtPool *pool, const char *path, RtEncoders *out, RtError *err) {
    RtTensors f;
    struct stat s;
    gnnc_status st;
    if (stat(path, &s) == 0 && S_ISDIR(s.st_mode)) {
        TRY(st, rt_encoders_of_data(pool, path, out, err));
        st = need_some(out, err);
    } else {
        TRY(st, rt_safetensors_open(pool, path, &f, err));
        TRY(st, rt_encoders_of_weights(pool, path, &f, out, err));
    }
out:
    return st;
}

/* How the column of a table was made; NULL: nothing is said of it. */
const RtEncoding *rt_encoders_find(const RtEncoders *v, const char *table, const char *column) {
    for (int i = 0; i < v->n; i++)
        if (strcmp(v->v[i].table, table) == 0 && strcmp(v->v[i].column, column) == 0)
            return &v->v[i];
    return NULL;
}

const RtEncoding *rt_encoders_of(const RtEncoders *v, const char *of) {
    for (int i = 0; i < v->n; i++) {
        size_t n = strlen(v->v[i].table);
        if (strncmp(v->v[i].table, of, n) == 0 && of[n] == '.' &&
            strcmp(v->v[i].column, of + n + 1) == 0)
            return &v->v[i];
    }
    return NULL;
}

/* ---- with a program ------------------------------------------------------------------ */
/* [{..}, {..}] of a table, as it grows. */
typedef struct {
    const char *table;
    RtText list;
} Listed;

/* Writes how a column was made, as an element of a list. */
static bool put_encoding(RtText *to, const rt_column *want, const char *column,
                         const RtEncoder *e) {
    bool label = want->is_label || want->kind == RT_COL_SPLIT;
    bool ok = rt_text_printf(to, "%s{\"column\": ", to->n ? ", " : "[");
    ok = ok && rt_text_json_string(to, column);
    ok = ok && rt_text_printf(to, ", \"kind\": \"%s\"", rt_col_kind_name(e->kind));
    if (ok && label) ok = rt_text_printf(to, ", \"label\": true");
    if (ok && rt_col_facts[e->kind].codes && !e->names && e->n_categories >= 0)
        ok = rt_text_printf(to, ", \"categories\": %lld", (long long)e->n_categories);
    ok = ok && rt_text_printf(to, ", \"encoder\": ") && rt_encoder_put(to, e, column);
    return ok && rt_text_put(to, "}", 1);
}

/* The list of the table that `of` ("table.column") names, begun if it is the first; NULL: no
 * memory. */
static Listed *list_of(RtPool *pool, Listed *lists, int *n, const char *of) {
    size_t length = strcspn(of, ".");
    for (int i = 0; i < *n; i++)
        if (strncmp(lists[i].table, of, length) == 0 && !lists[i].table[length]) return &lists[i];
    Listed *l = &lists[(*n)++];
    *l = (Listed){rt_pool_strndup(pool, of, length), {.pool = pool}};
    return l->table ? l : NULL;
}

gnnc_status rt_encoders_put(const RtExec *x, RtPool *pool, RtMeta *to, int *n) {
    const rt_program *p = x->program;
    const RtEncoded *v = x->rt->bound->encoded;
    Listed *lists = RT_NEWN(pool, Listed, p->n_columns + 1);
    *n = 0;
    bool ok = lists;
    for (int i = 0; i < p->n_columns && ok; i++) {
        if (!v[i].how || v[i].how->as == RT_AS_UNCHECKED) continue;
        Listed *l = list_of(pool, lists, n, v[i].of);
        const char *column = v[i].of + strcspn(v[i].of, ".") + 1;
        ok = l && put_encoding(&l->list, &p->columns[i], column, v[i].how);
    }
    for (int i = 0; i < *n && ok; i++) {
        ok = rt_text_put(&lists[i].list, "]", 1);
        to[i] = (RtMeta){rt_pool_printf(pool, "%s%s", PREFIX, lists[i].table), lists[i].list.s};
        ok = ok && to[i].key;
    }
    return ok ? GNNC_OK : GNNC_E_NOMEM;
}

/* Fails: the data do not say how a column was made, and the model has a fitted encoder for it. */
static gnnc_status does_not_say(RtExec *x, const char *of, const RtEncoder *wants,
                                const char *path) {
    char text[120];
    const char *dir = x->rt->bound->dir;
    return rt_fail(&x->rt->err, GNNC_E_ARG,
                   "%s does not say how '%s' was made, which in the model of %s is a %s: "
                   "gnnc_graph_set_encoded says it, of a directory \"encoder\" in its schema.json, "
                   "as gnnc import --like writes it",
                   dir, of, path, rt_encoder_named(wants, text, sizeof text));
}

/* Were the data's column and the model's made in the same way? The message names both. */
static gnnc_status compare(RtExec *x, int col, const char *of, const RtEncoder *wants,
                           const char *path) {
    char text[120], other[120];
    const RtColumn *c = rt_bind_data_column(x, col);
    const char *dir = x->rt->bound->dir;
    const RtEncoder *has = c ? c->encoder : NULL;
    if (c && !has && rt_encoder_is_fitted(wants)) return does_not_say(x, of, wants, path);
    if (!has || !rt_encoder_differs(has, wants, text, sizeof text)) return GNNC_OK;
    rt_encoder_differs(wants, has, other, sizeof other);
    return rt_fail(
        &x->rt->err, GNNC_E_ARG,
        "%s: '%s' is a %s, and in the model of %s a %s: gnnc import --like %s makes data "
        "as it wants them",
        dir, of, text, path, other, path);
}

gnnc_status rt_encoders_check(RtExec *x, const RtEncoders *given) {
    const RtEncoded *v = x->rt->bound->encoded;
    gnnc_status st = GNNC_OK;
    for (int i = 0; i < x->program->n_columns && st == GNNC_OK; i++) {
        const RtEncoding *k = v[i].of ? rt_encoders_of(given, v[i].of) : NULL;
        if (k) st = compare(x, i, v[i].of, &k->e, given->of);
    }
    return st;
}

/* Several columns of a program may be made of one: the first of them stands for all. */
gnnc_status rt_encoders_bind(RtExec *x) {
    const rt_program *p = x->program;
    const RtWeightsFile *g = x->rt->given;
    RtEncoded *v = x->rt->bound->encoded;
    RtNames seen;
    if (!rt_names_new(&x->rt->pool, &seen, p->n_columns))
        return rt_fail_nomem(&x->rt->err, "columns");
    for (int i = 0; i < p->n_columns; i++) {
        if (!rt_bind_is_used(p, i)) continue;
        const char *of = rt_bind_column_name(x, i);
        int64_t before = seen.n;
        if (!of) return rt_fail_nomem(&x->rt->err, p->columns[i].name);
        if (rt_names_add(&seen, of) != before) continue;
        const RtEncoding *k = g ? rt_encoders_of(&g->encoders, of) : NULL;
        const RtColumn *c = rt_bind_data_column(x, i);
        v[i] = (RtEncoded){of, k ? &k->e : c ? c->encoder : NULL};
    }
    return g ? rt_encoders_check(x, &g->encoders) : GNNC_OK;
}
