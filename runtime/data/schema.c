/* Opens a data directory: schema.json first, then every file it names.  The
 * format is described in docs/data-format.md. */
#include "dataset.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "encoder.h"
#include "json.h"
#include "eval_metric.h"
#include "names.h"
#include "runtime/memory.h"

#define SCHEMA "schema.json"

typedef struct {
    RtDataset *d;
    const RtFiles *files;
    RtError *err;
} Opener;

static gnnc_status bad(Opener *o, const RtJson *at, const char *table, const char *what) {
    return rt_fail(o->err, GNNC_E_FORMAT, SCHEMA ":%d: %s: %s", at->line, table, what);
}

static const char *get_text(const RtJson *object, const char *key) {
    const RtJson *v = rt_json_get(object, key);
    return v && v->kind == RT_JSON_STRING ? v->text : NULL;
}

/* Every key must be known: a misspelt one would otherwise be ignored. */
static gnnc_status check_keys(Opener *o, const RtJson *object, const char *table,
                              const char *const *known) {
    if (object->kind != RT_JSON_OBJECT) return bad(o, object, table, "an object is expected");
    for (const RtJson *v = object->first; v; v = v->next) {
        const char *const *k = known;
        while (*k && strcmp(*k, v->key) != 0) k++;
        if (!*k)
            return rt_fail(o->err, GNNC_E_FORMAT, SCHEMA ":%d: %s: unknown key '%s'", v->line,
                           table, v->key);
    }
    return GNNC_OK;
}

/* ---- files ---------------------------------------------------------------- */
/* A name inside the directory: no path may lead out of it. */
static bool plain_name(const char *s) {
    return s && *s && *s != '.' && !strchr(s, '/') && strlen(s) < 200;
}

/* Elements alone, in a block of their own, which can be dropped once they are converted. */
static gnnc_status read_array(Opener *o, const char *name, RtArray *out) {
    RtBytes file;
    RtPool scratch;
    gnnc_status st;
    void *to = NULL;
    size_t n = 0;
    rt_pool_init(&scratch, &o->d->pool.from);
    TRY(st, o->files->get(o->files->user, &scratch, name, false, &file, o->err));
    TRY(st, rt_npy_parse(&scratch, file, name, out, o->err));
    rt_array_bytes(out, &n);
    to = rt_pool_alloc(&o->d->pool, n, 1);
    if (to)
        out->data = memcpy(to, out->data, n);
    else
        st = rt_fail_nomem(o->err, name);
out:
    rt_pool_free(&scratch);
    return st;
}

/* Reads the name of a file, which must lie in this directory. */
static gnnc_status name_of_file(Opener *o, const RtJson *object, const char *table, const char *key,
                                const char **name) {
    *name = get_text(object, key);
    if (plain_name(*name)) return GNNC_OK;
    return rt_fail(o->err, GNNC_E_FORMAT, SCHEMA ":%d: %s: '%s' must name a file here",
                   object->line, table, key);
}

/* Mapped: nothing is read before somebody does. */
static gnnc_status look_at_array(Opener *o, const RtJson *object, const char *table,
                                 const char *key, const char **name, RtArray *out) {
    RtBytes file;
    gnnc_status st = name_of_file(o, object, table, key, name);
    if (st == GNNC_OK) st = o->files->get(o->files->user, &o->d->pool, *name, true, &file, o->err);
    if (st == GNNC_OK) st = rt_npy_parse(&o->d->pool, file, *name, out, o->err);
    return st;
}

/* Opens an array's file. `values`: nothing needs to be checked before it is used, so that it may
 * only be mapped. */
static gnnc_status open_array(Opener *o, const RtJson *object, const char *table, const char *key,
                              bool values, const char **name, RtArray *out) {
    if (o->files->map_all || (values && o->files->map_values))
        return look_at_array(o, object, table, key, name, out);
    gnnc_status st = name_of_file(o, object, table, key, name);
    return st == GNNC_OK ? read_array(o, *name, out) : st;
}

/* Has the array the shape that the schema says? */
static gnnc_status want_shape(Opener *o, const char *file, const RtArray *a, int rank,
                              const int64_t *shape) {
    for (int i = 0; a->rank == rank && i < rank; i++) {
        if (a->shape[i] == shape[i]) continue;
        return rt_fail(o->err, GNNC_E_SHAPE, "%s: size %lld in dimension %d, the schema says %lld",
                       file, (long long)a->shape[i], i, (long long)shape[i]);
    }
    if (a->rank == rank) return GNNC_OK;
    return rt_fail(o->err, GNNC_E_SHAPE, "%s: %d dimensions, the schema says %d", file, a->rank,
                   rank);
}

/* Fails unless the array holds integers. */
static gnnc_status want_integers(Opener *o, const char *file, const RtArray *a) {
    if (strchr("iub", rt_dtype_kind(a->dt))) return GNNC_OK;
    return rt_fail(o->err, GNNC_E_DTYPE, "%s: holds %s, integers wanted", file,
                   rt_dtype_name(a->dt));
}

/* ---- columns -------------------------------------------------------------- */
/* Reads the shape of a column; by default it has one value per row. */
static gnnc_status read_shape(Opener *o, const RtJson *v, const char *table, RtColumn *c) {
    const RtJson *shape = rt_json_get(v, "shape");
    c->rank = 1;
    c->shape[0] = c->n_rows;
    if (!shape && c->kind != RT_COL_CSR) return GNNC_OK;
    if (!shape || shape->kind != RT_JSON_ARRAY || shape->n < 1 || shape->n > RT_ARRAY_RANK)
        return bad(o, v, table, "'shape' must be an array of sizes");
    c->rank = 0;
    for (const RtJson *s = shape->first; s; s = s->next) {
        if (s->kind != RT_JSON_NUMBER || !s->is_int || s->i < 0 || s->i > INT32_MAX)
            return bad(o, s, table, "a size must be a whole number below 2^31");
        c->shape[c->rank++] = s->i;
    }
    if (c->shape[0] != c->n_rows) return bad(o, shape, table, "shape[0] is not the row count");
    int64_t width = 1; /* of no rows at all, nothing else bounds the product */
    for (int i = 1; i < c->rank; i++)
        if (__builtin_mul_overflow(width, c->shape[i], &width) || width > INT32_MAX)
            return bad(o, shape, table, "a row has more than 2^31 - 1 elements");
    return GNNC_OK;
}

/* Reads the number of categories, and their names, which all differ. */
static gnnc_status read_categories(Opener *o, const RtJson *v, const char *table, RtColumn *c) {
    const RtJson *n = rt_json_get(v, "categories"), *names = rt_json_get(v, "names");
    if (!n || n->kind != RT_JSON_NUMBER || !n->is_int || n->i < 0 || n->i > INT32_MAX)
        return bad(o, v, table, "'categories' must be a whole number");
    c->n_categories = n->i;
    if (!names) return GNNC_OK;
    if (names->kind != RT_JSON_ARRAY || names->n != c->n_categories)
        return bad(o, names, table, "'names' must list one name per category");
    RtNames list;
    if (!rt_names_new(&o->d->pool, &list, names->n + 1)) return rt_fail_nomem(o->err, SCHEMA);
    for (const RtJson *s = names->first; s; s = s->next) {
        if (s->kind != RT_JSON_STRING) return bad(o, s, table, "a category name must be a string");
        int64_t before = list.n;
        if (rt_names_add(&list, s->text) != before)
            return bad(o, s, table, "two categories have one name");
    }
    c->names = list.keys;
    return GNNC_OK;
}

static double number_of(const RtJson *parts, const char *part, const char *metric) {
    const RtJson *v = rt_json_get(rt_json_get(parts, part), metric);
    return v && v->kind == RT_JSON_NUMBER ? v->number : NAN;
}

/* {"name": "mean of its customers", "val": {"roc_auc": 0.7, ..}, "test": {..}}, by each metric that
 * either part has. */
static gnnc_status read_baseline(Opener *o, const RtJson *v, const char *table, RtColumn *c,
                                 RtBaseline *to) {
    static const char *const known[] = {"name", "val", "test", NULL};
    const char *name = get_text(v, "name");
    gnnc_status st = check_keys(o, v, table, known);
    if (st != GNNC_OK) return st;
    if (!name) return bad(o, v, table, "a baseline has a 'name'");
    const RtJson *val = rt_json_get(v, "val"), *test = rt_json_get(v, "test");
    for (const RtJson *m = val ? val->first : NULL; m; m = m->next)
        to[c->n_baselines++] =
            (RtBaseline){name, m->key, number_of(v, "val", m->key), number_of(v, "test", m->key)};
    for (const RtJson *m = test ? test->first : NULL; m; m = m->next)
        if (!rt_json_get(val, m->key))
            to[c->n_baselines++] = (RtBaseline){name, m->key, NAN, number_of(v, "test", m->key)};
    return GNNC_OK;
}

/* Reads what simple predictions reach on a task's target. */
static gnnc_status read_baselines(Opener *o, const RtJson *v, const char *table, RtColumn *c) {
    const RtJson *list = rt_json_get(v, "baselines");
    int64_t n = 0;
    if (!list) return GNNC_OK;
    if (list->kind != RT_JSON_ARRAY) return bad(o, list, table, "'baselines' must be an array");
    for (const RtJson *b = list->first; b; b = b->next)
        for (int test = 0; test < 2; test++) {
            const RtJson *part = rt_json_get(b, test ? "test" : "val");
            if (part && part->kind != RT_JSON_OBJECT)
                return bad(o, part, table, "an object of metrics is expected");
            n += part ? part->n : 0;
        }
    RtBaseline *to = RT_NEWN(&o->d->pool, RtBaseline, n + 1);
    if (!to) return rt_fail_nomem(o->err, SCHEMA);
    gnnc_status st = GNNC_OK;
    c->baselines = to;
    for (const RtJson *b = list->first; b && st == GNNC_OK; b = b->next)
        st = read_baseline(o, b, table, c, to);
    return st;
}

/* Reads how the column was made of cells; that must fit its shape. */
static gnnc_status read_encoder(Opener *o, const RtJson *v, const char *table, RtColumn *c) {
    const RtJson *at = rt_json_get(v, "encoder");
    if (!at) return GNNC_OK;
    RtEncoder *e = RT_NEW(&o->d->pool, RtEncoder);
    if (!e) return rt_fail_nomem(o->err, SCHEMA);
    const char *what = rt_encoder_read(&o->d->pool, at, c->name, c->kind, e);
    int values = rt_encoder_values(e);
    bool rows = c->rank == (values ? 2 : 1) && (!values || c->shape[1] == values);
    if (!what && !rows && e->as != RT_AS_UNCHECKED) what = "it makes rows of another shape";
    if (!what && rt_column_has_codes(c)) what = rt_encoder_names(e, c->n_categories, c->names);
    if (what)
        return rt_fail(o->err, GNNC_E_FORMAT, SCHEMA ":%d: %s: encoder: %s", at->line, table, what);
    c->encoder = e;
    return GNNC_OK;
}

/* Do several processes have its rows, and this one some of them?  Then what indexes is mapped, too:
 * whoever reads it checks it (runtime/batch/pull_open.c, minibatch.c). */
static bool is_shared(const Opener *o, const RtTable *t, const RtColumn *c) {
    RtShare s = o->files->share;
    return s.n > 1 && t->n_parts >= s.n && rt_column_may_be_shared(c);
}

/* Loads a sparse column from its three files. */
static gnnc_status load_csr(Opener *o, const RtJson *v, const RtTable *t, const char *table,
                            RtColumn *c) {
    bool shared = is_shared(o, t, c);
    RtArray ptr, col, val;
    const char *ptr_file, *col_file, *val_file;
    RtPool *pool = &o->d->pool;
    gnnc_status st = GNNC_OK;
    if (c->rank != 2) return bad(o, v, table, "a csr column has two dimensions");
    TRY(st, open_array(o, v, table, "ptr", shared, &ptr_file, &ptr));
    TRY(st, want_integers(o, ptr_file, &ptr));
    TRY(st, want_shape(o, ptr_file, &ptr, 1, (int64_t[]){c->n_rows + 1}));
    TRY(st, open_array(o, v, table, "col", shared, &col_file, &col));
    TRY(st, want_shape(o, col_file, &col, 1, (int64_t[]){col.count}));
    c->csr = (RtCsr){.n_rows = c->n_rows, .n_cols = c->shape[1], .nnz = col.count};
    c->csr.ptr = rt_array_as_i64(pool, &ptr);
    TRY(st, rt_array_as_i32(pool, &col, col_file, &c->csr.col, o->err));
    TRY(st, open_array(o, v, table, "val", true, &val_file, &val));
    TRY(st, want_shape(o, val_file, &val, 1, &col.count));
    c->stored = val.dt;
    c->csr.val = rt_array_as_f32(pool, &val);
    if (!c->csr.ptr || !c->csr.val) st = rt_fail_nomem(o->err, val_file);
out:
    return st;
}

/* [K, N] int8, or [N] for one split. */
static gnnc_status split_shape(Opener *o, const char *file, const RtArray *a, RtColumn *c) {
    int64_t k = a->rank == 2 ? a->shape[0] : 1;
    gnnc_status st = want_shape(o, file, a, a->rank == 2 ? 2 : 1,
                                a->rank == 2 ? (int64_t[]){k, c->n_rows} : &c->n_rows);
    if (st == GNNC_OK) st = want_integers(o, file, a);
    if (st == GNNC_OK && (k < 1 || k > 10000 || (c->n_splits && c->n_splits != k)))
        st = rt_fail(o->err, GNNC_E_SHAPE, "%s: %lld splits", file, (long long)k);
    c->n_splits = (int)k;
    return st;
}

/* Three masks instead of one array of codes. */
static gnnc_status load_masks(Opener *o, const RtJson *v, const char *table, RtColumn *c) {
    static const char *const keys[] = {"train", "val", "test"};
    int8_t *to = NULL;
    for (int part = 0; part < 3; part++) {
        RtArray a;
        const char *file;
        gnnc_status st = open_array(o, v, table, keys[part], false, &file, &a);
        if (st == GNNC_OK) st = split_shape(o, file, &a, c);
        if (st != GNNC_OK) return st;
        c->stored = a.dt;
        a = rt_array_row_major(&o->d->pool, &a);
        if (!to) to = RT_NEWN(&o->d->pool, int8_t, a.count);
        if (!to || !a.data) return rt_fail_nomem(o->err, file);
        st = rt_split_mask(to, &a, part + 1, c->n_rows, file, o->err);
        if (st != GNNC_OK) return st;
    }
    c->splits = to;
    return GNNC_OK;
}

/* Loads splits: 0 none, 1 train, 2 validation, 3 test; or masks, a file each. */
static gnnc_status load_split(Opener *o, const RtJson *v, const char *table, RtColumn *c) {
    RtArray a;
    const char *file;
    gnnc_status st;
    if (c->rank != 1) return bad(o, v, table, "a split column has no further dimension");
    if (rt_json_get(v, "train")) return load_masks(o, v, table, c);
    TRY(st, open_array(o, v, table, "file", false, &file, &a));
    TRY(st, split_shape(o, file, &a, c));
    c->stored = a.dt;
    a = rt_array_row_major(&o->d->pool, &a);
    c->splits = a.data;
    if (a.data && a.dt != RT_DT_I8) {
        int8_t *to = RT_NEWN(&o->d->pool, int8_t, a.count);
        for (int64_t i = 0; to && i < a.count; i++) {
            int64_t part = rt_array_i64(&a, i);
            to[i] = part < 0 || part > 3 ? -1 : (int8_t)part; /* the check reports -1 */
        }
        c->splits = to;
    }
    if (!c->splits) st = rt_fail_nomem(o->err, file);
out:
    return st;
}

/* Reads "dtype", the 16-bit floating-point numbers of a float column. NumPy has no bf16, so their
 * bits are those of <u2. */
static gnnc_status read_low(Opener *o, const RtJson *v, const char *table, const char *file,
                            RtArray *a, RtColumn *c) {
    const char *text = get_text(v, "dtype");
    bool bf16 = text && !strcmp(text, "bf16");
    if (!rt_json_get(v, "dtype")) return GNNC_OK;
    if (!bf16 && (!text || strcmp(text, "f16") != 0))
        return bad(o, v, table, "'dtype' must be \"bf16\" or \"f16\"");
    RtDtype want = bf16 ? RT_DT_U16 : RT_DT_F16;
    if (a->dt != want)
        return rt_fail(o->err, GNNC_E_DTYPE, "%s: holds %s, %s wanted for a dtype of %s", file,
                       rt_dtype_name(a->dt), rt_dtype_name(want), text);
    a->dt = c->low_dt = bf16 ? RT_DT_BF16 : RT_DT_F16;
    *a = rt_array_row_major(&o->d->pool, a);
    c->low = a->data;
    return a->data ? GNNC_OK : rt_fail_nomem(o->err, file);
}

/* Loads a column with a value or list of values per row. */
static gnnc_status load_dense(Opener *o, const RtJson *v, const RtTable *t, const char *table,
                              RtColumn *c) {
    RtArray a;
    const char *file;
    gnnc_status st;
    TRY(st,
        open_array(o, v, table, "file", !rt_column_has_codes(c) || is_shared(o, t, c), &file, &a));
    TRY(st, want_shape(o, file, &a, c->rank, c->shape));
    TRY(st, read_low(o, v, table, file, &a, c));
    c->stored = a.dt;
    if (c->low && c->rank > 1) return GNNC_OK;
    st = rt_array_as(&o->d->pool, &a, rt_column_kind(c->kind)->element, file, &c->values, o->err);
out:
    return st;
}

/* Checks a column, or what a process reads of it. */
static gnnc_status check_column(Opener *o, const RtTable *t, const RtColumn *c) {
    RtShare s = o->files->share;
    if (!is_shared(o, t, c)) return rt_column_check(c, t->name, o->err);
    int64_t lo = rt_share_begin(t, s.rank, s.n), hi = rt_share_begin(t, s.rank + 1, s.n);
    if (lo < 0 || lo > hi || hi > t->count) return GNNC_OK; /* which rt_dataset_check() refuses */
    return rt_column_check_rows(c, lo, hi, t->name, o->err);
}

/* Loads a column: its entry in the schema and its arrays, which are checked. */
static gnnc_status load_column(Opener *o, const RtJson *v, const RtTable *t, RtColumn *c) {
    const char *table = t->name;
    static const char *const known[] = {"kind",  "shape",      "file",    "ptr",       "col",
                                        "val",   "categories", "names",   "train",     "test",
                                        "dtype", "why",        "encoder", "baselines", NULL};
    const char *where = rt_pool_printf(&o->d->pool, "%s.%s", table, v->key);
    if (!where) return rt_fail_nomem(o->err, SCHEMA);
    gnnc_status st;
    TRY(st, check_keys(o, v, where, known));
    const char *kind = get_text(v, "kind");
    c->name = v->key;
    c->why = get_text(v, "why");
    c->n_rows = t->count;
    if (!kind || !rt_col_kind_find(kind, &c->kind)) return bad(o, v, where, "unknown 'kind'");
    TRY(st, read_shape(o, v, where, c));
    if (rt_column_has_codes(c)) TRY(st, read_categories(o, v, where, c));
    TRY(st, read_encoder(o, v, where, c));
    TRY(st, read_baselines(o, v, where, c));
    if (rt_json_get(v, "dtype") && c->kind != RT_COL_FLOAT)
        return bad(o, v, where, "only a float column has a 'dtype'");
    switch (rt_column_kind(c->kind)->layout) {
    case RT_LAYOUT_ROWS:
        st = load_dense(o, v, t, where, c);
        break;
    case RT_LAYOUT_CSR:
        st = load_csr(o, v, t, where, c);
        break;
    case RT_LAYOUT_SPLITS:
        st = load_split(o, v, where, c);
        break;
    }
    if (st == GNNC_OK) st = check_column(o, t, c);
out:
    return st;
}

/* ---- tables --------------------------------------------------------------- */
/* Loads all columns of a table. */
static gnnc_status load_columns(Opener *o, const RtJson *v, RtTable *t) {
    const RtJson *columns = rt_json_get(v, "columns");
    if (!columns) return GNNC_OK;
    if (columns->kind != RT_JSON_OBJECT) return bad(o, columns, t->name, "'columns' is no object");
    t->columns = RT_NEWN(&o->d->pool, RtColumn, columns->n);
    if (!t->columns) return rt_fail_nomem(o->err, SCHEMA);
    gnnc_status st = GNNC_OK;
    for (const RtJson *c = columns->first; c && st == GNNC_OK; c = c->next)
        st = load_column(o, c, t, &t->columns[t->n_columns++]);
    return st;
}

/* The number of the table of that name; -1: there is none. */
static int find_table(const RtTable *t, int n, const char *name) {
    for (int i = 0; name && i < n; i++)
        if (strcmp(t[i].name, name) == 0) return i;
    return -1;
}

/* Loads which nodes belong to which graph, if the node type has graphs. */
static gnnc_status load_graph_ptr(Opener *o, const RtJson *v, RtTable *t) {
    RtArray a;
    const char *file, *graph = get_text(v, "graph");
    gnnc_status st;
    t->graph = find_table(o->d->graphs, o->d->n_graphs, graph);
    if (!rt_json_get(v, "graph")) return GNNC_OK;
    if (t->graph < 0) return bad(o, v, t->name, "'graph' names no graph type");
    TRY(st, open_array(o, v, t->name, "graph_ptr", false, &file, &a));
    TRY(st, want_integers(o, file, &a));
    TRY(st, want_shape(o, file, &a, 1, (int64_t[]){o->d->graphs[t->graph].count + 1}));
    t->graph_ptr = rt_array_as_i64(&o->d->pool, &a);
    if (!t->graph_ptr) st = rt_fail_nomem(o->err, file);
out:
    return st;
}

/* Parts of rows that `gnnc partition` made: where each begins, and what rows were before. */
static gnnc_status load_parts(Opener *o, const RtJson *v, RtTable *t) {
    RtArray a;
    const char *file;
    gnnc_status st;
    if (!rt_json_get(v, "part_ptr") && !rt_json_get(v, "part_rows")) return GNNC_OK;
    TRY(st, open_array(o, v, t->name, "part_ptr", false, &file, &a));
    TRY(st, want_integers(o, file, &a));
    if (a.rank != 1 || a.count < 2 || a.count > RT_PARTS_MOST + 1)
        return rt_fail(o->err, GNNC_E_SHAPE, "%s: bounds of 1 to %d parts are expected", file,
                       RT_PARTS_MOST);
    t->n_parts = (int)a.count - 1;
    t->part_ptr = rt_array_as_i64(&o->d->pool, &a);
    if (!t->part_ptr) return rt_fail_nomem(o->err, file);
    TRY(st, open_array(o, v, t->name, "part_rows", false, &file, &a));
    TRY(st, want_integers(o, file, &a));
    TRY(st, want_shape(o, file, &a, 1, &t->count));
    st = rt_array_as_i32(&o->d->pool, &a, file, &t->part_rows, o->err);
out:
    return st;
}

/* Takes sources and destinations out of the array of both. */
static gnnc_status take_ends(Opener *o, const char *file, const RtArray *a, RtTable *t) {
    const int32_t *ends;
    gnnc_status st = rt_array_as_i32(&o->d->pool, a, file, &ends, o->err);
    if (st != GNNC_OK) return st;
    t->src = ends;
    t->dst = ends + t->count;
    return st;
}

/* Loads the ends of edges, or, of very many, only looks at their file: index arrays that were kept
 * may do. */
static gnnc_status load_ends(Opener *o, const RtJson *v, RtTable *t) {
    RtArray a;
    const char *file;
    bool late;
    gnnc_status st;
    t->src_type = find_table(o->d->nodes, o->d->n_nodes, get_text(v, "src"));
    t->dst_type = find_table(o->d->nodes, o->d->n_nodes, get_text(v, "dst"));
    if (t->src_type < 0 || t->dst_type < 0)
        return bad(o, v, t->name, "'src' and 'dst' must name node types");
    t->n_loops = -1;
    late = o->files->late_edges > 0 && t->count >= o->files->late_edges;
    TRY(st, late || t->count > INT32_MAX ? look_at_array(o, v, t->name, "file", &file, &a)
                                         : open_array(o, v, t->name, "file", false, &file, &a));
    TRY(st, want_shape(o, file, &a, 2, (int64_t[]){2, t->count}));
    if (late) t->ends_file = file;
    if (!late) st = take_ends(o, file, &a, t);
out:
    return st;
}

/* Reads which column is the table's row time. JSON null: none is, although there are columns of
 * times. */
static gnnc_status load_time(Opener *o, const RtJson *v, RtTable *t) {
    const RtJson *time = rt_json_get(v, "time");
    if (!time) return GNNC_OK;
    t->time = time->kind == RT_JSON_NULL ? "" : get_text(v, "time");
    if (!t->time || (!*t->time && time->kind != RT_JSON_NULL))
        return bad(o, time, t->name, "'time' is the name of a column, or null");
    const RtColumn *c = *t->time ? rt_table_column(t, t->time) : NULL;
    if (*t->time && (!c || c->kind != RT_COL_TIME))
        return bad(o, time, t->name, "'time' names no column of kind time");
    return GNNC_OK;
}

typedef enum { NODES, EDGES, GRAPHS } Section;

/* Loads a table: number of rows, what tables of its kind have, and columns. */
static gnnc_status load_table(Opener *o, const RtJson *v, Section section, RtTable *t) {
    static const char *const known[][9] = {
        {"count", "columns", "graph", "graph_ptr", "names", "time", "part_ptr", "part_rows", NULL},
        {"count", "columns", "src", "dst", "file", "why", "time", NULL},
        {"count", "columns", "part_ptr", "part_rows", NULL},
    };
    gnnc_status st;
    t->name = v->key;
    t->graph = t->src_type = t->dst_type = -1;
    TRY(st, check_keys(o, v, t->name, known[section]));
    const RtJson *count = rt_json_get(v, "count");
    /* Rows have numbers of 32 bits, edges need none. */
    int64_t most = section == EDGES ? RT_MOST_EDGES : INT32_MAX;
    if (!count || count->kind != RT_JSON_NUMBER || !count->is_int || count->i < 0 ||
        count->i > most)
        return bad(o, v, t->name,
                   section == EDGES ? "'count' must be a whole number below 2^47"
                                    : "'count' must be a whole number below 2^31");
    t->count = count->i;
    t->names_file = get_text(v, "names");
    if (rt_json_get(v, "names") && !plain_name(t->names_file))
        return bad(o, v, t->name, "'names' must name a file here");
    if (section == NODES) TRY(st, load_graph_ptr(o, v, t));
    if (section == EDGES) TRY(st, load_ends(o, v, t));
    if (section != EDGES) TRY(st, load_parts(o, v, t));
    t->why = get_text(v, "why");
    TRY(st, load_columns(o, v, t));
    st = load_time(o, v, t);
out:
    return st;
}

/* Loads all node types, edge types or kinds of graphs. */
static gnnc_status load_section(Opener *o, const RtJson *root, const char *key, Section section,
                                RtTable **tables, int *n) {
    const RtJson *v = rt_json_get(root, key);
    if (!v) return GNNC_OK;
    if (v->kind != RT_JSON_OBJECT) return bad(o, v, key, "an object is expected");
    *tables = RT_NEWN(&o->d->pool, RtTable, v->n);
    if (!*tables) return rt_fail_nomem(o->err, SCHEMA);
    gnnc_status st = GNNC_OK;
    for (const RtJson *t = v->first; t && st == GNNC_OK; t = t->next) {
        st = load_table(o, t, section, &(*tables)[*n]);
        ++*n;
    }
    return st;
}

/* Loads the whole schema, kinds of graphs first, as node types name them. */
static gnnc_status load_root(Opener *o, const RtJson *root) {
    static const char *const known[] = {"format", "name",  "source", "licence",
                                        "nodes",  "edges", "graphs", NULL};
    RtDataset *d = o->d;
    gnnc_status st;
    TRY(st, check_keys(o, root, "data set", known));
    const RtJson *format = rt_json_get(root, "format");
    if (!format || !format->is_int || format->i != 1)
        return bad(o, root, "data set", "'format' must be 1");
    const char *name = get_text(root, "name"), *source = get_text(root, "source");
    const char *licence = get_text(root, "licence");
    d->name = name ? name : "";
    d->source = source ? source : "";
    d->licence = licence ? licence : "";
    TRY(st, load_section(o, root, "graphs", GRAPHS, &d->graphs, &d->n_graphs));
    TRY(st, load_section(o, root, "nodes", NODES, &d->nodes, &d->n_nodes));
    TRY(st, load_section(o, root, "edges", EDGES, &d->edges, &d->n_edges));
    st = rt_dataset_check(d, o->err);
out:
    return st;
}

/* Reads a data set from its files, which come from wherever `files` gets them. */
gnnc_status rt_dataset_open_files(const RtAlloc *from, const RtFiles *files, RtDataset **out,
                                  RtError *err) {
    RtBytes text;
    RtJson *root;
    gnnc_status st;
    *out = NULL;
    RtDataset *d = rt_dataset_new(from);
    if (!d) return rt_fail_nomem(err, SCHEMA);
    TRY(st, files->get(files->user, &d->pool, SCHEMA, false, &text, err));
    TRY(st, rt_json_parse(&d->pool, text, SCHEMA, &root, err));
    TRY(st, load_root(&(Opener){d, files, err}, root));
    *out = d;
out:
    if (st != GNNC_OK) rt_dataset_close(d);
    return st;
}

/* Marks the columns that memory does not hold; behind all checks, which read them from end to end.
 */
static void find_columns_beyond_memory(RtDataset *d) {
    size_t memory = rt_memory_limit(0).n_bytes;
    for (int k = 0; k < 3; k++) {
        RtTable *t = k == 0 ? d->nodes : k == 1 ? d->edges : d->graphs;
        int n = k == 0 ? d->n_nodes : k == 1 ? d->n_edges : d->n_graphs;
        for (int i = 0; i < n; i++)
            for (int c = 0; c < t[i].n_columns; c++)
                rt_column_beyond_memory(&t[i].columns[c], &d->pool, memory);
    }
}

/* ---- directories ----------------------------------------------------------------- */
typedef struct {
    const char *dir;
    RtStamp stamp;
} Directory;

/* Mixes a word into both halves of the stamp. */
static void mix(RtStamp *s, uint64_t word) {
    s->key[0] = (s->key[0] ^ word) * 0x9e3779b97f4a7c15u;
    s->key[0] ^= s->key[0] >> 32;
    s->key[1] = (s->key[1] + word) * 0xd6e8feb86659fd93u;
    s->key[1] ^= s->key[1] >> 29;
}

static int64_t in_ns(const struct timespec *t) {
    return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

/* Asked before the file is opened: should it be replaced in between, the stamp is of neither. */
static void stamp_file(RtStamp *s, const char *name, const char *path) {
    struct stat f;
    s->known = s->known && stat(path, &f) == 0;
    if (!s->known) return;
    const uint64_t words[] = {(uint64_t)f.st_size, (uint64_t)f.st_ino, (uint64_t)in_ns(&f.st_mtim),
                              (uint64_t)in_ns(&f.st_ctim)};
    for (const char *c = name; *c; c++) mix(s, (unsigned char)*c);
    for (int i = 0; i < 4; i++) mix(s, words[i]);
    const int64_t changed[] = {in_ns(&f.st_mtim), in_ns(&f.st_ctim)};
    for (int i = 0; i < 2; i++)
        if (changed[i] > s->newest) s->newest = changed[i];
}

/* Reads or maps a file of the directory, and adds it to the stamp by which later changes are
 * seen. */
static gnnc_status get_from_dir(void *user, RtPool *pool, const char *name, bool map, RtBytes *out,
                                RtError *err) {
    Directory *d = user;
    const char *path = rt_pool_printf(pool, "%s/%s", d->dir, name);
    if (!path) return rt_fail_nomem(err, name);
    stamp_file(&d->stamp, name, path);
    return map ? rt_file_map(pool, path, out, err) : rt_file_read(pool, path, out, err);
}

/* Is it there, but no data directory: a folder of CSV or other files, the folder above the data, a
 * file? */
static bool lacks_schema(const char *dir) {
    char path[4096];
    int n = snprintf(path, sizeof path, "%s/" SCHEMA, dir);
    return n > 0 && n < (int)sizeof path && access(path, F_OK) != 0 && access(dir, F_OK) == 0;
}

/* Messages of the readers start with the file's name; say where it lies. */
static gnnc_status say_where(gnnc_status st, const char *dir, const RtError *inner, RtError *err) {
    if (st == GNNC_OK) return st;
    bool said = strncmp(inner->text, dir, strlen(dir)) == 0;
    return said ? rt_fail(err, st, "%s", inner->text)
                : rt_fail(err, st, "%s/%.400s", dir, inner->text);
}

gnnc_status rt_dataset_open(const RtAlloc *from, const char *dir, bool map_values, RtDataset **out,
                            RtError *err) {
    return rt_dataset_open_late(from, dir, map_values, 0, (RtShare){0}, out, err);
}

/* Opens a data directory. */
static gnnc_status open_dir(const RtAlloc *from, const char *dir, RtFiles files, RtDataset **out,
                            RtError *err) {
    RtError inner = {""};
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    Directory from_dir = {dir, {.known = true, .taken = in_ns(&now)}};
    files.get = get_from_dir;
    files.user = &from_dir;
    if (lacks_schema(dir))
        return rt_fail(err, GNNC_E_IO,
                       "%s: no data directory, it has no " SCHEMA ": 'gnnc import' makes one", dir);
    gnnc_status st = rt_dataset_open_files(from, &files, out, &inner);
    if (st == GNNC_OK && !((*out)->dir = rt_pool_strndup(&(*out)->pool, dir, strlen(dir)))) {
        rt_dataset_close(*out);
        *out = NULL;
        return rt_fail_nomem(err, dir);
    }
    if (st == GNNC_OK) (*out)->stamp = from_dir.stamp;
    if (st == GNNC_OK && files.map_values) find_columns_beyond_memory(*out);
    return say_where(st, dir, &inner, err);
}

gnnc_status rt_dataset_open_late(const RtAlloc *from, const char *dir, bool map_values,
                                 int64_t late_edges, RtShare share, RtDataset **out, RtError *err) {
    const RtFiles files = {.map_values = map_values, .late_edges = late_edges, .share = share};
    return open_dir(from, dir, files, out, err);
}

gnnc_status rt_dataset_open_mapped(const RtAlloc *from, const char *dir, RtDataset **out,
                                   RtError *err) {
    return open_dir(from, dir, (RtFiles){.map_all = true}, out, err);
}

gnnc_status rt_dataset_read_ends(RtDataset *d, RtError *err) {
    RtError inner = {""};
    Directory from_dir = {.dir = d->dir};
    const RtFiles files = {.get = get_from_dir, .user = &from_dir};
    Opener o = {d, &files, &inner};
    gnnc_status st = GNNC_OK;
    for (int i = 0; i < d->n_edges && st == GNNC_OK; i++) {
        RtTable *t = &d->edges[i];
        RtArray a;
        if (t->src || !t->ends_file) continue;
        if (t->count > INT32_MAX) { /* relations may use them as they lie */
            RtBytes file;
            TRY(st, files.get(files.user, &d->pool, t->ends_file, true, &file, &inner));
            TRY(st, rt_npy_parse(&d->pool, file, t->ends_file, &a, &inner));
        } else
            TRY(st, read_array(&o, t->ends_file, &a));
        TRY(st, want_shape(&o, t->ends_file, &a, 2, (int64_t[]){2, t->count}));
        TRY(st, take_ends(&o, t->ends_file, &a, t));
        st = rt_dataset_check_ends(d, t, &inner);
    }
out:
    return say_where(st, d->dir, &inner, err);
}
