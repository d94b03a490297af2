/* Parameters with a row for each node belong to the nodes that they were trained on.  Where data
 * name those, files of weights keep the names, by row (metadata "names:entity"), and rows are read
 * by name: other data may have them in another order, or fewer of them.  By name, too, a user asks
 * for rows. */
#include <string.h>

#include "runtime/bind/bind.h"
#include "runtime/data/encoder.h"
#include "runtime/data/io.h"
#include "runtime/data/names.h"
#include "runtime/trainer/trainer.h"

/* ---- which dimension ------------------------------------------------------------ */
int rt_rows_space(const RtExec *x, int var, int dim, int64_t *n, bool nodes_alone) {
    const rt_program *p = x->program;
    rt_var_shape is, more;
    p->var_shape(var, n, &is);
    for (int s = 0; s < p->n_spaces && dim < is.rank; s++) {
        int sym = p->spaces[s].sym;
        rt_space_kind k = p->spaces[s].kind;
        bool rows = k == RT_SP_NODE || (!nodes_alone && (k == RT_SP_EDGE || k == RT_SP_GRAPH));
        if (!rows || p->spaces[s].first || sym < 0) continue;
        if (is.dim[dim] != n[sym]) continue; /* maybe its size: it grows with it, or not */
        n[sym]++;
        p->var_shape(var, n, &more);
        n[sym]--;
        if (more.dim[dim] == n[sym] + 1) return s;
    }
    return -1;
}

int64_t *rt_sizes_of(const RtExec *x, RtPool *pool) {
    int64_t *n = RT_NEWN(pool, int64_t, x->program->n_syms + 1);
    for (int i = 0; n && i < x->program->n_syms; i++) n[i] = x->n[i] < 0 ? 0 : x->n[i];
    return n;
}

/* ---- names of the data ------------------------------------------------------------- */
/* The name in a line as import wrote it: \n, \r and \\ stand for themselves. */
static const char *line_text(RtPool *pool, const char *s, size_t n) {
    char *to = rt_pool_strndup(pool, s, n);
    size_t at = 0;
    for (size_t i = 0; to && i < n; i++) {
        bool escaped = s[i] == '\\' && i + 1 < n;
        char c = s[escaped ? ++i : i];
        to[at++] = !escaped ? c : c == 'n' ? '\n' : c == 'r' ? '\r' : c;
    }
    if (to) to[at] = '\0';
    return to;
}

/* Each gives names[count] for the rows, from a place of its own; *has: there is such a place. */
typedef gnnc_status NamesFrom(RtPool *pool, const char *dir, const RtTable *t, const char **names,
                              bool *has, RtError *err);

/* Takes the names that the graph was given in memory. */
static gnnc_status names_given(RtPool *pool, const char *dir, const RtTable *t, const char **names,
                               bool *has, RtError *err) {
    (void)pool, (void)dir, (void)err;
    *has = t->names != NULL;
    for (int64_t i = 0; i < t->count && *has; i++) names[i] = t->names[i];
    return GNNC_OK;
}

/* Reads the names of nodes from the table's file, a line each; *has: it has such a file. */
static gnnc_status names_of_file(RtPool *pool, const char *dir, const RtTable *t,
                                 const char **names, bool *has, RtError *err) {
    *has = t->names_file != NULL;
    if (!*has) return GNNC_OK;
    RtBytes text;
    RtPool file;
    int64_t n = 0;
    rt_pool_init(&file, &pool->from);
    const char *path = rt_pool_printf(&file, "%s/%s", dir, t->names_file);
    gnnc_status st = path ? rt_file_read(&file, path, &text, err) : rt_fail_nomem(err, t->name);
    for (size_t at = 0; st == GNNC_OK && at < text.n;) {
        const uint8_t *end = memchr(text.p + at, '\n', text.n - at);
        size_t len = end ? (size_t)(end - text.p) - at : text.n - at;
        if (n < t->count && !(names[n] = line_text(pool, (const char *)text.p + at, len)))
            st = rt_fail_nomem(err, path);
        n++;
        at += len + 1;
    }
    if (st == GNNC_OK && n != t->count)
        st = rt_fail(err, GNNC_E_FORMAT, "%s: %lld lines, '%s' has %lld nodes", path, (long long)n,
                     t->name, (long long)t->count);
    rt_pool_free(&file);
    return st;
}

/* Takes the texts of a column `name` as names, where no row lacks one. */
static gnnc_status names_of_texts(RtPool *pool, const char *dir, const RtTable *t,
                                  const char **names, bool *has, RtError *err) {
    (void)pool, (void)dir, (void)err;
    const RtColumn *c = rt_table_column(t, "name");
    *has = c && c->kind == RT_COL_CAT && c->rank == 1 && c->names;
    for (int64_t i = 0; i < t->count && *has; i++)
        if ((*has = c->i32[i] >= 0 && c->i32[i] < c->n_categories)) names[i] = c->names[c->i32[i]];
    return GNNC_OK;
}

/* The column of keys that are numbers, or a column `id`. */
static const RtColumn *key_of(const RtTable *t) {
    for (int i = 0; i < t->n_columns; i++)
        if (t->columns[i].encoder && t->columns[i].encoder->as == RT_AS_KEY) return &t->columns[i];
    return rt_table_column(t, "id");
}

/* Takes the numbers of the key column as names; *has: the table has one. */
static gnnc_status names_of_keys(RtPool *pool, const char *dir, const RtTable *t,
                                 const char **names, bool *has, RtError *err) {
    (void)dir;
    const RtColumn *c = key_of(t);
    *has = c && c->kind == RT_COL_ID && c->rank == 1;
    for (int64_t i = 0; i < t->count && *has; i++)
        if (!(names[i] = rt_pool_printf(pool, "%lld", (long long)c->i64[i])))
            return rt_fail_nomem(err, t->name);
    return GNNC_OK;
}

/* Do the names fit a file's header? One of more bytes than that few programs would read. */
static bool all_fit(const char *const *names, int64_t n) {
    enum { MOST_BYTES = 32 << 20 };
    size_t bytes = 0;
    for (int64_t i = 0; i < n && bytes < MOST_BYTES; i++) bytes += strlen(names[i]) + 3;
    return bytes < MOST_BYTES;
}

/* Are all names different, so that each stands for one row? */
static gnnc_status all_differ(const RtAlloc *from, const char *const *names, int64_t n,
                              bool *differ, RtError *err) {
    RtPool pool;
    RtNames seen;
    rt_pool_init(&pool, from);
    bool ok = rt_names_new(&pool, &seen, n + 1);
    *differ = ok;
    for (int64_t i = 0; i < n && *differ; i++) *differ = rt_names_add(&seen, names[i]) == i;
    rt_pool_free(&pool);
    return ok ? GNNC_OK : rt_fail_nomem(err, "names of nodes");
}

gnnc_status rt_row_names(RtPool *pool, const char *dir, const RtTable *t, const char *const **to,
                         RtError *err) {
    static NamesFrom *const from[] = {names_given, names_of_file, names_of_texts, names_of_keys};
    const char **names = RT_NEWN(pool, const char *, t->count + 1);
    bool differ = false;
    gnnc_status st = names ? GNNC_OK : rt_fail_nomem(err, t->name);
    for (size_t i = 0; i < sizeof from / sizeof *from && st == GNNC_OK && !differ; i++) {
        bool has;
        st = from[i](pool, dir, t, names, &has, err);
        if (st == GNNC_OK && has) st = all_differ(&pool->from, names, t->count, &differ, err);
    }
    *to = st == GNNC_OK && differ ? names : NULL;
    return st;
}

/* Notes the names of a node type's rows, by which parameters for these rows can be matched with
 * other data. */
static gnnc_status bind_space(RtExec *x, int space) {
    RtBound *b = x->rt->bound;
    const RtTable *t = b->table[space];
    const char *const *names;
    if (!t || b->rows[space].of) return GNNC_OK;
    gnnc_status st = rt_row_names(&x->rt->pool, b->dir, t, &names, &x->rt->err);
    if (st == GNNC_OK && names && all_fit(names, t->count))
        b->rows[space] = (RtCodes){x->program->spaces[space].name, t->count, names};
    return st;
}

/* Finds the names of the rows of each node type that a parameter has a row for, by which a file of
 * weights is read into other data. */
gnnc_status rt_node_names_bind(RtExec *x) {
    RtPool pool;
    rt_pool_init(&pool, &x->rt->pool.from);
    int64_t *n = rt_sizes_of(x, &pool);
    gnnc_status st = n ? GNNC_OK : rt_fail_nomem(&x->rt->err, "names of nodes");
    for (int v = 0; v < x->program->n_vars && st == GNNC_OK; v++)
        for (int d = 0; d < RT_MAX_RANK && st == GNNC_OK; d++) {
            int space = rt_rows_space(x, v, d, n, true);
            if (space >= 0) st = bind_space(x, space);
        }
    rt_pool_free(&pool);
    return st;
}

/* ---- rows of a file ------------------------------------------------------------------ */
typedef struct {
    gnnc_trainer *t;
    RtPool *pool;
    const char *path;
    RtTensors *f;
    int64_t *n;
    int space;
    const RtCodes *has, *known; /* the data's, the file's */
    int32_t *row;               /* [has->n] of the file; NULL = the same */
} Rows;

/* The first parameter with rows of the space: what new nodes have no values in. */
static const char *parameter_of(const Rows *r) {
    const rt_program *p = r->t->program;
    for (int v = 0; v < p->n_vars; v++)
        for (int d = 0; d < RT_MAX_RANK && p->vars[v].kind == RT_VAR_PARAM; d++)
            if (rt_rows_space(&r->t->x, v, d, r->n, true) == r->space) return p->vars[v].path;
    return "";
}

/* Finds for each row of the data the row of the file's parameters with its name. r->row NULL: they
 * are the same. */
static gnnc_status match_rows(Rows *r) {
    RtNames known;
    bool same = r->has->n == r->known->n;
    RtError *err = &r->t->rt.err;
    int32_t *row = RT_NEWN(r->pool, int32_t, r->has->n + 1);
    if (!row || !rt_names_new(r->pool, &known, r->known->n + 1)) return rt_fail_nomem(err, r->path);
    for (int64_t i = 0; i < r->known->n; i++) rt_names_add(&known, r->known->names[i]);
    for (int64_t i = 0; i < r->has->n; i++) {
        row[i] = rt_names_find(&known, r->has->names[i]);
        same &= row[i] == i;
        if (row[i] < 0)
            return rt_fail(err, GNNC_E_RANGE,
                           "%s: row %lld of '%s' is '%.64s', of which %s knows nothing: '%s' has "
                           "rows for the %lld nodes that it was trained with, and here are %lld",
                           r->t->rt.bound->dir, (long long)i, r->has->of, r->has->names[i], r->path,
                           parameter_of(r), (long long)r->known->n, (long long)r->has->n);
    }
    r->row = same ? NULL : row;
    return GNNC_OK;
}

/* Fails: a tensor has not a row for each of the names. */
static gnnc_status other_shape(const Rows *r, const RtTensor *of) {
    return rt_fail(
        &r->t->rt.err, GNNC_E_SHAPE,
        "%s: '%s' has another shape than the model's, so that its rows cannot be read by "
        "the names of '%s'",
        r->path, of->name, r->has->of);
}

/* Rows of dimension d in the data's order. */
static gnnc_status take_rows(const Rows *r, int var, int d, RtTensor *of) {
    rt_var_shape want;
    int64_t outer = 1, inner = (int64_t)rt_dtype_bytes(of->a.dt);
    r->t->program->var_shape(var, r->n, &want);
    if (of->a.rank != want.rank || of->a.shape[d] != r->known->n) return other_shape(r, of);
    for (int i = 0; i < want.rank; i++) {
        if (i != d && of->a.shape[i] != want.dim[i]) return other_shape(r, of);
        if (i < d) outer *= want.dim[i];
        if (i > d) inner *= want.dim[i];
    }
    char *to = rt_pool_alloc(r->pool, (size_t)(outer * r->has->n), (size_t)inner);
    if (!to) return rt_fail_nomem(&r->t->rt.err, of->name);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < r->has->n; i++)
            memcpy(to + (o * r->has->n + i) * inner,
                   (const char *)of->a.data + (o * r->known->n + r->row[i]) * inner, (size_t)inner);
    of->a.data = to;
    of->a.shape[d] = r->has->n;
    of->a.count = of->a.count / (r->known->n ? r->known->n : 1) * r->has->n;
    return GNNC_OK;
}

/* The variable's tensors: the kept value, and that of the last step. */
static gnnc_status take_variable(const Rows *r, int var) {
    const char *path = r->t->program->vars[var].path;
    const char *name[] = {path, rt_pool_printf(r->pool, "train.%s", path)};
    gnnc_status st = name[1] ? GNNC_OK : rt_fail_nomem(&r->t->rt.err, path);
    for (int k = 0; k < 2 && st == GNNC_OK; k++) {
        RtTensor *of = rt_tensors_find(r->f, name[k]);
        for (int d = 0; of && d < RT_MAX_RANK && st == GNNC_OK; d++)
            if (rt_rows_space(&r->t->x, var, d, r->n, true) == r->space)
                st = take_rows(r, var, d, of);
    }
    return st;
}

/* Finds for each row of the data the row of the same name in the weights, and puts the rows of
 * parameters in the data's order. Without names in the weights a message says so. */
static gnnc_status match_node_type(Rows *r) {
    if (!r->known) {
        rt_message(&r->t->rt,
                   "%s has no names for the rows of '%s': that its nodes are those of %s "
                   "could not be compared",
                   r->path, r->has->of, r->t->rt.bound->dir);
        return GNNC_OK;
    }
    gnnc_status st = match_rows(r);
    for (int v = 0; v < r->t->program->n_vars && st == GNNC_OK && r->row; v++)
        st = take_variable(r, v);
    return st;
}

/* Puts the rows of a file's parameters in the order of the data's rows, by their names. */
gnnc_status rt_node_rows(gnnc_trainer *t, RtPool *pool, const char *path, RtTensors *f) {
    RtCodes *known;
    int n_known;
    Rows r = {.t = t, .pool = pool, .path = path, .f = f, .n = rt_sizes_of(&t->x, pool)};
    gnnc_status st = r.n ? rt_codes_read(pool, path, f, &known, &n_known, &t->rt.err)
                         : rt_fail_nomem(&t->rt.err, path);
    for (int s = 0; s < t->program->n_spaces && st == GNNC_OK; s++) {
        r.has = &t->rt.bound->rows[s];
        if (!r.has->of) continue;
        r.space = s;
        r.known = rt_codes_find(known, n_known, r.has->of);
        st = match_node_type(&r);
    }
    return st;
}
