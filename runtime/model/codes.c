#include "codes.h"

#include <string.h>

#include "runtime/bind/bind.h"
#include "runtime/data/json.h"
#include "runtime/data/names.h"
#include "runtime/trainer/checkpoint.h"
#include "runtime/trainer/trainer.h"

static const char PREFIX[] = "names:";

/* ---- in files ----------------------------------------------------------------- */
static gnnc_status bad_list(const char *path, const char *of, const char *why, RtError *err) {
    return rt_fail(err, GNNC_E_FORMAT, "%s: metadata '%s%s' %s", path, PREFIX, of, why);
}

/* Reads the names of one column's codes from the file's metadata; each name is there once. */
static gnnc_status read_list(RtPool *pool, const char *path, const RtMeta *m, RtCodes *to,
                             RtError *err) {
    RtJson *list;
    RtNames seen;
    const char *of = m->key + sizeof PREFIX - 1;
    gnnc_status st = rt_json_parse(pool, (RtBytes){(const uint8_t *)m->value, strlen(m->value)},
                                   path, &list, err);
    if (st != GNNC_OK) return st;
    if (list->kind != RT_JSON_ARRAY) return bad_list(path, of, "is no list of names", err);
    char *key = rt_pool_strndup(pool, of, strlen(of));
    if (!key || !rt_names_new(pool, &seen, list->n + 1)) return rt_fail_nomem(err, path);
    for (const RtJson *s = list->first; s; s = s->next) {
        if (s->kind != RT_JSON_STRING) return bad_list(path, of, "is no list of names", err);
        int64_t before = seen.n;
        if (rt_names_add(&seen, s->text) != before)
            return rt_fail(err, GNNC_E_FORMAT, "%s: metadata '%s%s' has '%s' twice", path, PREFIX,
                           of, s->text);
    }
    *to = (RtCodes){key, seen.n, seen.keys};
    return GNNC_OK;
}

gnnc_status rt_codes_read(RtPool *pool, const char *path, const RtTensors *f, RtCodes **v, int *n,
                          RtError *err) {
    *n = 0;
    if (!(*v = RT_NEWN(pool, RtCodes, f->n_meta + 1))) return rt_fail_nomem(err, path);
    for (int i = 0; i < f->n_meta; i++) {
        if (strncmp(f->meta[i].key, PREFIX, sizeof PREFIX - 1) != 0) continue;
        gnnc_status st = read_list(pool, path, &f->meta[i], &(*v)[(*n)++], err);
        if (st != GNNC_OK) return st;
    }
    return GNNC_OK;
}

const RtCodes *rt_codes_find(const RtCodes *v, int n, const char *of) {
    for (int i = 0; i < n; i++)
        if (v[i].of && strcmp(v[i].of, of) == 0) return &v[i];
    return NULL;
}

/* Writes the names of one column's codes as metadata. */
static gnnc_status put_list(RtPool *pool, const RtCodes *c, RtMeta *to) {
    RtText text = {.pool = pool};
    bool ok = rt_text_put(&text, "[", 1);
    for (int64_t i = 0; i < c->n && ok; i++)
        ok = (i == 0 || rt_text_put(&text, ",", 1)) && rt_text_json_string(&text, c->names[i]);
    ok = ok && rt_text_put(&text, "]", 1);
    *to = (RtMeta){rt_pool_printf(pool, "%s%s", PREFIX, c->of), text.s};
    return ok && to->key ? GNNC_OK : GNNC_E_NOMEM;
}

/* Writes the names of codes and rows, and how columns were made, as metadata: *n of them. */
gnnc_status rt_codes_put(const RtExec *x, RtPool *pool, RtMeta *to, int *n) {
    const RtCodes *v = x->rt->bound->codes;
    gnnc_status st = GNNC_OK;
    *n = 0;
    for (int c = 0; c < x->program->n_columns && st == GNNC_OK; c++)
        if (v[c].of && !rt_codes_find(v, c, v[c].of)) st = put_list(pool, &v[c], &to[(*n)++]);
    for (int s = 0; s < x->program->n_spaces && st == GNNC_OK; s++)
        if (x->rt->bound->rows[s].of) st = put_list(pool, &x->rt->bound->rows[s], &to[(*n)++]);
    int more = 0;
    if (st == GNNC_OK) st = rt_encoders_put(x, pool, to + *n, &more);
    *n += more;
    return st;
}

/* ---- given before the data ------------------------------------------------------ */
/* The host's memory is his again after the call. */
static gnnc_status own_memory(RtWeightsFile *g, RtSource *from, RtError *err) {
    size_t n = from->memory.n;
    if (!from->memory.p) return GNNC_OK;
    uint8_t *own = rt_pool_alloc(&g->pool, n, 1);
    if (!own) return rt_fail_nomem(err, from->name);
    if (n) memcpy(own, from->memory.p, n);
    from->memory.p = own;
    return GNNC_OK;
}

/* Reads a file of weights that comes before the data, in place of one that came before. */
gnnc_status rt_weights_file_open(gnnc_trainer *t, const RtSource *from, bool resumes) {
    const char *path = from->name;
    RtSource own = *from;
    RtWeightsFile *g = t->given ? t->given : RT_NEW(&t->rt.pool, RtWeightsFile);
    if (!g) return rt_fail_nomem(&t->rt.err, path);
    rt_weights_file_close(t->given);
    *g = (RtWeightsFile){.resumes = resumes};
    rt_pool_init(&g->pool, &t->rt.pool.from);
    t->given = NULL; /* what cannot be read is not given */
    t->rt.given = NULL;
    gnnc_status st;
    if (!(g->path = rt_pool_strndup(&t->rt.pool, path, strlen(path))))
        return rt_fail_nomem(&t->rt.err, path);
    TRY(st, own_memory(g, &own, &t->rt.err));
    TRY(st, rt_source_read(&g->pool, &own, &g->f, &t->rt.err));
    TRY(st, rt_codes_read(&t->rt.pool, g->path, &g->f, &g->codes, &g->n, &t->rt.err));
    TRY(st,
        rt_encoders_read(&t->rt.pool, g->path, &g->f, g->codes, g->n, &g->encoders, &t->rt.err));
    t->rt.given = t->given = g;
out:
    if (st != GNNC_OK) rt_weights_file_close(g);
    return st;
}

void rt_weights_file_close(RtWeightsFile *g) {
    if (!g) return;
    g->f = (RtTensors){0};
    rt_pool_free(&g->pool);
}

/* ---- codes of the data become the model's ----------------------------------------- */
/* Values in all rows of the column. */
static int64_t n_values(const RtColumn *c) {
    int64_t n = 1;
    for (int i = 0; i < c->rank; i++) n *= c->shape[i];
    return n;
}

static bool has_codes(const RtColumn *c) {
    return c && rt_column_has_codes(c);
}

static int64_t row_of(const RtColumn *c, int64_t value) {
    return c->n_rows ? value / (n_values(c) / c->n_rows) : 0;
}

/* Writes the first names: "'ankara', 'berlin', .."; NULL: no memory. */
static const char *some_names(RtPool *pool, const RtCodes *k) {
    enum { TOLD = 8 };
    const char *text = k->n ? "" : "no name at all";
    for (int64_t i = 0; i < k->n && i < TOLD && text; i++)
        text = rt_pool_printf(pool, "%s%s'%.32s'", text, i ? ", " : "", k->names[i]);
    return text && k->n > TOLD ? rt_pool_printf(pool, "%s, .. (%lld)", text, (long long)k->n)
                               : text;
}

/* Who reads a column of the data. */
typedef enum { NOBODY, JUDGES, ANYONE } Readers;

/* Rows of a batch are the whole's, which has the table. */
static const RtTable *table_of(const RtExec *x, int col) {
    int s = rt_bind_base(x->program, col);
    while (!x->rt->bound->table[s] && x->program->spaces[s].whole >= 0)
        s = x->program->spaces[s].whole;
    return x->rt->bound->table[s];
}

/* Several of the program's columns may be made of it. */
static Readers readers_of(const RtExec *x, int col) {
    const rt_program *p = x->program;
    Readers by = NOBODY;
    for (int i = 0; i < p->n_columns && by != ANYONE; i++) {
        bool same = !strcmp(p->columns[i].name, p->columns[col].name);
        if (same && table_of(x, i) == table_of(x, col) && rt_bind_is_used(p, i))
            by = p->columns[i].is_label ? JUDGES : ANYONE;
    }
    return by;
}

/* Notes a code that the model does not have, and why that is wrong; in a label it is an error only
 * once the label is read. */
static gnnc_status unknown_code(RtExec *x, int col, gnnc_status st, const char *why) {
    RtBound *b = x->rt->bound;
    Readers by = readers_of(x, col);
    if (!why) return rt_fail_nomem(&x->rt->err, x->program->columns[col].name);
    if (by == ANYONE) return rt_fail(&x->rt->err, st, "%s", why);
    if (by == JUDGES && b->missing_label < 0) {
        b->missing_label = col;
        b->unknown = why;
    }
    return GNNC_OK;
}

/* Notes that a row's category is none that the model knows, and which it knows. */
static gnnc_status unknown_name(RtExec *x, int col, const RtCodes *k, int64_t at) {
    RtPool *pool = &x->rt->pool;
    const RtColumn *c = rt_bind_data_column(x, col);
    const char *known = some_names(pool, k);
    if (!known) return rt_fail_nomem(&x->rt->err, k->of);
    return unknown_code(
        x, col, GNNC_E_RANGE,
        rt_pool_printf(pool,
                       "%s: row %lld of '%s' is '%.64s', which the model of %s does not know: it "
                       "was trained with %s",
                       x->rt->bound->dir, (long long)row_of(c, at), k->of, c->names[c->i32[at]],
                       x->rt->given->path, known));
}

/* Makes a table of what each code of the column becomes; a name that the model does not have is the
 * unknown one, if there is one, else -1. NULL: no memory. */
static int32_t *translation(RtPool *pool, const RtColumn *c, const RtCodes *k, bool unknown) {
    RtNames known;
    int32_t *to = RT_NEWN(pool, int32_t, c->n_categories + 1);
    if (!to || !rt_names_new(pool, &known, k->n + 1)) return NULL;
    for (int64_t i = 0; i < k->n; i++) rt_names_add(&known, k->names[i]);
    for (int64_t i = 0; i < c->n_categories; i++) {
        to[i] = rt_names_find(&known, c->names[i]);
        if (to[i] < 0 && unknown) to[i] = 0;
    }
    return to;
}

/* The row's category; -1: it has none.  Rows that another process sends may hold anything here, at
 * each look (pull_rows). */
static int32_t code_at(const RtColumn *c, int64_t at) {
    const int32_t v = c->i32[at];
    return v >= 0 && v < c->n_categories ? v : -1;
}

/* Replaces the data's codes by the model's. Where all are equal nothing is written, which leaves a
 * mapped file mapped. */
static gnnc_status translate(RtExec *x, int col, const RtCodes *k) {
    RtPool *pool = &x->rt->bound->data->pool;
    RtColumn *c = rt_bind_data_column(x, col);
    const RtEncoding *how = rt_encoders_of(&x->rt->given->encoders, k->of);
    const int32_t *to = translation(pool, c, k, how && how->e.unknown);
    int64_t n = n_values(c), unknown = -1;
    bool same = true;
    if (!to) return rt_fail_nomem(&x->rt->err, k->of);
    for (int64_t i = 0; i < n; i++) {
        const int32_t v = code_at(c, i);
        same &= v < 0 ? c->i32[i] < 0 : to[v] == v;
        if (v >= 0 && to[v] < 0 && unknown < 0) unknown = i;
    }
    gnnc_status st = unknown < 0 ? GNNC_OK : unknown_name(x, col, k, unknown);
    if (st != GNNC_OK) return st;
    int32_t *own = same ? NULL : RT_NEWN(pool, int32_t, n);
    if (!same && !own) return rt_fail_nomem(&x->rt->err, k->of);
    for (int64_t i = 0; i < n && own; i++) {
        const int32_t v = code_at(c, i);
        own[i] = v < 0 ? -1 : to[v];
    }
    if (own) c->i32 = own;
    c->n_categories = k->n;
    c->names = k->names;
    return GNNC_OK;
}

/* Codes that nobody can tell the meaning of, beside names of the model's.  NULL: no memory. */
static const char *nameless(RtExec *x, const RtCodes *k, const char *path) {
    const char *known = some_names(&x->rt->pool, k);
    return known ? rt_pool_printf(&x->rt->pool,
                                  "%s has no names for the codes of '%s', and the model of %s was "
                                  "trained with %s: the names are given with the column, or "
                                  "gnnc_graph_set_encoded says which they are",
                                  x->rt->bound->dir, k->of, path, known)
                 : NULL;
}

static bool is_nameless(const RtColumn *c) {
    bool unchecked = c && c->encoder && c->encoder->as == RT_AS_UNCHECKED;
    return has_codes(c) && !c->names && !unchecked;
}

/* Renumbers a column's categories to the model's codes, by their names. Without names in the
 * model there is nothing to do; without names in the data alone it is an error. */
static gnnc_status bind_codes(RtExec *x, int col, const RtCodes *k) {
    const RtColumn *c = rt_bind_data_column(x, col);
    if (k && has_codes(c) && c->names && c->names != k->names) return translate(x, col, k);
    if (!k || !is_nameless(c)) return GNNC_OK;
    return unknown_code(x, col, GNNC_E_ARG, nameless(x, k, x->rt->given->path));
}

gnnc_status rt_codes_bind(RtExec *x) {
    const RtWeightsFile *g = x->rt->given;
    RtBound *b = x->rt->bound;
    for (int i = 0; i < x->program->n_columns; i++) {
        RtColumn *c = rt_bind_data_column(x, i);
        const rt_column *want = &x->program->columns[i];
        if (!rt_col_facts[want->kind].codes) continue;
        const char *of = rt_bind_column_name(x, i);
        if (!of) return rt_fail_nomem(&x->rt->err, want->name);
        const RtCodes *k = g ? rt_codes_find(g->codes, g->n, of) : NULL;
        bool named = has_codes(c) && c->names;
        gnnc_status st = bind_codes(x, i, k);
        if (st != GNNC_OK) return st;
        if (k)
            b->codes[i] = *k;
        else if (named && rt_bind_is_used(x->program, i))
            b->codes[i] = (RtCodes){of, c->n_categories, c->names};
    }
    return GNNC_OK;
}

/* Notes that a row's code is beyond those that the model was trained with. */
static gnnc_status high_code(RtExec *x, int col, int64_t at, int64_t n_categories) {
    const RtColumn *c = rt_bind_data_column(x, col);
    return unknown_code(x, col, GNNC_E_RANGE,
                        rt_pool_printf(&x->rt->pool,
                                       "%s: row %lld of '%s.%s' is %s %d, the model of %s has %lld",
                                       x->rt->bound->dir, (long long)row_of(c, at),
                                       x->rt->bound->table[rt_bind_base(x->program, col)]->name,
                                       c->name, c->kind == RT_COL_CLASS ? "class" : "category",
                                       c->i32[at], x->rt->given->path, (long long)n_categories));
}

/* Rows whose code the model does not have become rows without one. */
static gnnc_status cut_codes(RtExec *x, int col, int64_t n_categories) {
    RtColumn *c = rt_bind_data_column(x, col);
    int buf = x->program->columns[col].buf;
    int64_t n = n_values(c);
    int32_t *own = RT_NEWN(&x->rt->bound->data->pool, int32_t, n);
    if (!own) return rt_fail_nomem(&x->rt->err, c->name);
    for (int64_t i = 0; i < n; i++) {
        const int32_t v = code_at(c, i);
        own[i] = v < n_categories ? v : -1;
    }
    if (buf >= 0 && x->buf[buf] == c->i32) x->buf[buf] = own;
    c->i32 = own;
    return GNNC_OK;
}

gnnc_status rt_codes_fit(RtExec *x, int col, int64_t n_categories) {
    RtColumn *c = rt_bind_data_column(x, col);
    if (!has_codes(c) || !x->rt->given || c->n_categories == n_categories) return GNNC_OK;
    int64_t n = n_values(c), high = 0;
    while (high < n && code_at(c, high) < n_categories) high++;
    gnnc_status st = high < n ? high_code(x, col, high, n_categories) : GNNC_OK;
    if (st == GNNC_OK && high < n) st = cut_codes(x, col, n_categories);
    if (st == GNNC_OK) c->n_categories = n_categories;
    return st;
}

/* ---- sizes by shapes ---------------------------------------------------------------- */
/* Elements of a variable where symbol `s` has this size. */
static int64_t count_at(const RtExec *x, int var, int64_t *n, int s, int64_t size) {
    rt_var_shape shape = {.rank = 0};
    n[s] = size;
    x->program->var_shape(var, n, &shape);
    return shape.count;
}

/* The one symbol without a size that the variable's shape depends on; -1: none, or several. */
static int only_unknown(const RtExec *x, int var, int64_t *n) {
    int only = -1;
    for (int i = 0; i < x->program->n_syms; i++) {
        if (x->n[i] >= 0) continue;
        bool depends = count_at(x, var, n, i, 2) != count_at(x, var, n, i, 1);
        if (depends && only >= 0) return -1;
        if (depends) only = i;
    }
    return only;
}

/* Sizes of parameters grow by equal steps with each dimension: the file's size tells it. */
static bool solve(RtExec *x, int var, int64_t *n, const RtWeightsFile *g) {
    const RtTensor *f = rt_tensors_find(&g->f, x->program->vars[var].path);
    int s = f ? only_unknown(x, var, n) : -1;
    if (s < 0) return false;
    int64_t three = count_at(x, var, n, s, 3), two = count_at(x, var, n, s, 2),
            one = count_at(x, var, n, s, 1), step = two - one, more = f->a.count - one;
    if (step <= 0 || three - two != step || more % step || more / step < -1) return false;
    int64_t size = 1 + more / step;
    if (size > INT32_MAX) return false;
    x->n[s] = n[s] = size;
    x->rt->bound->bound_by[s] = g->path;
    return true;
}

/* Is it the size of a dimension, and not a number of rows? */
static bool is_dimension(const rt_program *p, int sym) {
    for (int s = 0; s < p->n_spaces; s++)
        if (p->spaces[s].sym == sym) return p->spaces[s].kind == RT_SP_DIM;
    return false;
}

/* Finds sizes that only the file's tensors tell, from their shapes; as long as one tells
 * another. */
static gnnc_status solve_all(RtExec *x) {
    const rt_program *p = x->program;
    const RtWeightsFile *g = x->rt->given;
    int64_t *n = RT_NEWN(&x->rt->pool, int64_t, p->n_syms + 1);
    if (!n) return rt_fail_nomem(&x->rt->err, g->path);
    for (int i = 0; i < p->n_syms; i++) n[i] = x->n[i] < 0 ? 1 : x->n[i];
    for (bool more = true; more;) {
        more = false;
        for (int v = 0; v < p->n_vars; v++)
            if (p->vars[v].kind == RT_VAR_PARAM || p->vars[v].kind == RT_VAR_STATE)
                more |= solve(x, v, n, g);
    }
    return GNNC_OK;
}

gnnc_status rt_weights_file_sizes(RtExec *x) {
    const rt_program *p = x->program;
    bool wanted = false;
    for (int i = 0; i < p->n_syms; i++) wanted |= x->n[i] < 0 && is_dimension(p, i);
    return x->rt->given && wanted ? solve_all(x) : GNNC_OK;
}

gnnc_status rt_weights_file_tell_sizes(const RtWeightsFile *g, const rt_program *p, RtPool *pool,
                                       int64_t *n, RtError *err) {
    RtBound bound = {.bound_by = RT_NEWN(pool, const char *, p->n_syms + 1)};
    RtRuntime rt = {.bound = &bound, .given = g};
    RtExec x = {.program = p, .n = n, .rt = &rt};
    if (!bound.bound_by) return rt_fail_nomem(err, g->path);
    for (int i = 0; i < p->n_syms; i++) n[i] = -1;
    rt_pool_init(&rt.pool, &pool->from);
    gnnc_status st = solve_all(&x);
    rt_pool_free(&rt.pool);
    return st == GNNC_OK ? st : rt_fail(err, st, "%s", rt.err.text);
}

/* ---- once the data are bound ---------------------------------------------------------- */
/* Are the names the same, in the same order? */
static bool equal(const RtCodes *a, const RtCodes *b) {
    bool same = a->n == b->n;
    for (int64_t i = 0; i < a->n && same; i++) same = strcmp(a->names[i], b->names[i]) == 0;
    return same;
}

/* Fails if the data have no names for a column for which the model has some. */
static gnnc_status check_nameless(RtExec *x, int col, const char *path, const RtCodes *v, int n) {
    if (!is_nameless(rt_bind_data_column(x, col)) || !rt_bind_is_used(x->program, col))
        return GNNC_OK;
    const char *of = rt_bind_column_name(x, col);
    if (!of) return rt_fail_nomem(&x->rt->err, path);
    const RtCodes *k = rt_codes_find(v, n, of);
    const char *why = k ? nameless(x, k, path) : NULL;
    if (!k) return GNNC_OK;
    return why ? rt_fail(&x->rt->err, GNNC_E_ARG, "%s", why) : rt_fail_nomem(&x->rt->err, path);
}

/* Do the codes of a column mean what they meant when the file's weights were trained? */
static gnnc_status check_column(gnnc_trainer *t, int col, const char *path, const RtCodes *v,
                                int n) {
    const RtCodes *has = &t->rt.bound->codes[col];
    if (!has->of) return check_nameless(&t->x, col, path, v, n);
    if (rt_codes_find(t->rt.bound->codes, col, has->of)) return GNNC_OK;
    const RtCodes *k = rt_codes_find(v, n, has->of);
    if (!k)
        rt_message(&t->rt,
                   "%s has no names for '%s': that its codes mean what those of %s do "
                   "could not be compared",
                   path, has->of, t->rt.bound->dir);
    if (!k || equal(has, k)) return GNNC_OK;
    return rt_fail(&t->rt.err, GNNC_E_ARG,
                   "%s: the names of '%s' are other ones than those of %s, or in another order: "
                   "the file is to be given before the data are loaded, which are then read by it",
                   path, has->of, t->rt.bound->dir);
}

gnnc_status rt_codes_check(gnnc_trainer *t, const char *path, const RtTensors *f) {
    RtPool pool;
    RtCodes *v;
    RtEncoders encoders;
    int n;
    rt_pool_init(&pool, &t->rt.pool.from);
    bool bound = t->given && t->given->path == path; /* by it, and compared then */
    gnnc_status st = rt_codes_read(&pool, path, f, &v, &n, &t->rt.err);
    if (st == GNNC_OK && !bound) st = rt_encoders_read(&pool, path, f, v, n, &encoders, &t->rt.err);
    if (st == GNNC_OK && !bound) st = rt_encoders_check(&t->x, &encoders);
    for (int c = 0; c < t->program->n_columns && st == GNNC_OK; c++)
        st = check_column(t, c, path, v, n);
    rt_pool_free(&pool);
    return st;
}
