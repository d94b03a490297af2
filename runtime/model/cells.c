/* Rows of cells into columns, in a program that serves a model: by the encoders that came with it.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "codes.h"
#include "runtime/graph/graph.h"
#include "model.h"

struct gnnc_encoder {
    RtAlloc from;
    RtPool pool;
    RtEncoders all;
    bool ready;
    RtError err; /* of making it */
};

/* ---- its life ------------------------------------------------------------------------ */
gnnc_status gnnc_encoder_create_with(gnnc_encoder **out, gnnc_alloc_fn *alloc,
                                     gnnc_release_fn *release, void *user) {
    if (out) *out = NULL;
    if (!out || !alloc || !release) return GNNC_E_ARG;
    gnnc_encoder *e = alloc(user, sizeof *e);
    if (!e) return GNNC_E_NOMEM;
    *e = (gnnc_encoder){.from = {alloc, release, user}};
    rt_pool_init(&e->pool, &e->from);
    *out = e;
    return GNNC_OK;
}

gnnc_status gnnc_encoder_create(gnnc_encoder **out) {
    RtAlloc a = rt_alloc_default();
    return gnnc_encoder_create_with(out, a.alloc, a.release, a.user);
}

void gnnc_encoder_destroy(gnnc_encoder *e) {
    if (!e) return;
    RtAlloc from = e->from;
    rt_pool_free(&e->pool);
    from.release(from.user, e);
}

const char *gnnc_encoder_error(const gnnc_encoder *e) {
    return e ? e->err.text : "";
}

/* Clears the last error; an encoder gets its columns once. */
static gnnc_status begin(gnnc_encoder *e) {
    e->err.text[0] = '\0';
    if (e->ready) return rt_fail(&e->err, GNNC_E_STATE, "the encoder has its columns already");
    return GNNC_OK;
}

/* Ends reading an encoder; of one that failed nothing stays. */
static gnnc_status end(gnnc_encoder *e, gnnc_status st) {
    e->ready = st == GNNC_OK;
    if (e->ready) return st;
    e->all = (RtEncoders){0};
    rt_pool_free(&e->pool);
    return st;
}

gnnc_status gnnc_encoder_read(gnnc_encoder *e, const char *path) {
    if (!e || !path) return GNNC_E_ARG;
    gnnc_status st = begin(e);
    if (st != GNNC_OK) return st;
    char *own = rt_pool_strndup(&e->pool, path, strlen(path));
    st = own ? rt_encoders_open(&e->pool, own, &e->all, &e->err) : rt_fail_nomem(&e->err, path);
    return end(e, st);
}

gnnc_status gnnc_encoder_of_model(gnnc_encoder *e, const gnnc_model *m) {
    if (!e || !m) return GNNC_E_ARG;
    RtTensors f;
    gnnc_status st = begin(e);
    if (st != GNNC_OK) return st;
    if (!m->weights.memory.p) return rt_fail(&e->err, GNNC_E_STATE, "the model has no weights");
    const char *of = m->weights.name;
    char *own = rt_pool_strndup(&e->pool, of, strlen(of));
    if (!own)
        st = rt_fail_nomem(&e->err, of);
    else if ((st = rt_source_read(&e->pool, &m->weights, &f, &e->err)) == GNNC_OK)
        st = rt_encoders_of_weights(&e->pool, own, &f, &e->all, &e->err);
    return end(e, st);
}

/* ---- what it makes --------------------------------------------------------------------- */
/* The columns of a table lie side by side; *n of them. */
static const RtEncoding *columns_of(const gnnc_encoder *e, const char *table, int *n) {
    const RtEncoding *first = NULL;
    *n = 0;
    for (int i = 0; i < e->all.n; i++) {
        if (strcmp(e->all.v[i].table, table) != 0) continue;
        if (!first) first = &e->all.v[i];
        ++*n;
    }
    return first;
}

int32_t gnnc_encoder_n_columns(const gnnc_encoder *e, const char *table) {
    int n = 0;
    if (e && table) columns_of(e, table, &n);
    return n;
}

/* Rows may come without cells of it: none make a picture in a product. */
static bool may_lack(const RtEncoding *k) {
    return k->label || k->e.as == RT_AS_KEY || k->e.as == RT_AS_IMAGE;
}

/* The type of the elements that the encoder writes. */
static gnnc_element element_of(const RtEncoder *e) {
    switch (rt_column_kind(e->kind)->element) {
    case RT_DT_I32:
        return GNNC_DT_I32;
    case RT_DT_I64:
        return GNNC_DT_I64;
    case RT_DT_F64:
        return GNNC_DT_F64;
    case RT_DT_I8:
        return GNNC_DT_I8;
    case RT_DT_U8:
        return GNNC_DT_U8;
    default:
        return GNNC_DT_F32;
    }
}

static size_t row_bytes(const RtEncoder *e) {
    int n = rt_encoder_values(e) ? rt_encoder_values(e) : 1;
    return rt_dtype_bytes(rt_column_kind(e->kind)->element) * (size_t)n;
}

gnnc_status gnnc_encoder_column(const gnnc_encoder *e, const char *table, int32_t i,
                                gnnc_encoded *out) {
    int n;
    if (!e || !table || !out || RT_STRUCT_CHECK(NULL, gnnc_encoded, out, may_lack) != GNNC_OK)
        return GNNC_E_ARG;
    const RtEncoding *k = columns_of(e, table, &n);
    if (i < 0 || i >= n) return GNNC_E_RANGE;
    const RtEncoder *c = &k[i].e;
    gnnc_encoded own = {.column = k[i].column,
                        .from = c->from,
                        .kind = (gnnc_kind)c->kind,
                        .dtype = element_of(c),
                        .width = rt_encoder_values(c),
                        .may_lack = may_lack(&k[i]),
                        .n_from = c->width};
    if (rt_col_facts[c->kind].codes) {
        own.n_categories = c->n_categories;
        own.names = c->names;
    }
    rt_struct_copy_out(out, &own, sizeof own);
    return GNNC_OK;
}

/* ---- one call ---------------------------------------------------------------------------- */
typedef struct {
    const gnnc_encoder *e;
    gnnc_raw in;
    RtPool scratch;
    RtError err;
    int64_t bad_row;
} Call;

static const gnnc_cells *cells_at(const Call *c, int i) {
    return (const gnnc_cells *)((const char *)c->in.columns +
                                (size_t)i * c->in.columns->struct_size);
}

/* Do the given columns have names and cells, all by structs of one size? */
static gnnc_status check_cells(Call *c) {
    for (int i = 0; i < c->in.n_columns; i++) {
        const gnnc_cells *v = cells_at(c, i);
        gnnc_status st = RT_STRUCT_CHECK(&c->err, gnnc_cells, v, numbers);
        if (st != GNNC_OK) return st;
        if (v->struct_size != c->in.columns->struct_size)
            return rt_fail(&c->err, GNNC_E_ARG, "the columns of one call have one struct_size");
        if (!v->column || (c->in.count && !v->texts == !v->numbers))
            return rt_fail(&c->err, GNNC_E_ARG,
                           "%.100s: column %d has a name, and either texts or numbers", c->in.table,
                           i);
    }
    return GNNC_OK;
}

/* Takes over the caller's rows and checks them against the encoder. Memory of the call is in
 * c->scratch. */
static gnnc_status open_call(Call *c, const gnnc_encoder *e, const gnnc_raw *rows) {
    size_t n = rows->struct_size;
    int n_made;
    *c = (Call){.e = e, .bad_row = -1};
    memcpy(&c->in, rows, n < sizeof c->in ? n : sizeof c->in);
    rt_pool_init(&c->scratch, &e->from);
    if (!e->ready)
        return rt_fail(&c->err, GNNC_E_STATE, "the encoder has no columns: gnnc_encoder_read");
    if (!c->in.table) return rt_fail(&c->err, GNNC_E_ARG, "the table has no name");
    if (c->in.count < 0 || c->in.count > INT32_MAX || c->in.n_columns < 0)
        return rt_fail(&c->err, GNNC_E_RANGE, "%.100s: 0 to 2^31 - 1 rows are possible",
                       c->in.table);
    if (c->in.n_columns && !c->in.columns)
        return rt_fail(&c->err, GNNC_E_ARG, "%.100s: the columns are NULL", c->in.table);
    if (!columns_of(e, c->in.table, &n_made))
        return rt_fail(&c->err, GNNC_E_MISSING, "%s says nothing of a table '%.100s'", e->all.of,
                       c->in.table);
    return check_cells(c);
}

/* Tells the caller which row was bad, and why, and frees the call's memory. */
static gnnc_status close_call(Call *c, gnnc_raw *rows, gnnc_status st) {
    rows->bad_row = st == GNNC_OK ? -1 : c->bad_row;
    memcpy(rows->error, c->err.text, sizeof rows->error);
    rt_pool_free(&c->scratch);
    return st;
}

/* Is the given column cell i of the encoder: "age", or "x.3" of several? */
static bool is_column(const gnnc_cells *v, const RtEncoder *e, int i) {
    char number[16] = "";
    size_t n = strlen(e->from);
    if (e->width) snprintf(number, sizeof number, ".%d", i);
    return strncmp(v->column, e->from, n) == 0 && strcmp(v->column + n, number) == 0;
}

/* Finds the given column that cell i of the encoding is read from; *out NULL: it is not given. */
static gnnc_status find_cells(Call *c, const RtEncoding *k, int i, const gnnc_cells **out) {
    *out = NULL;
    for (int j = 0; j < c->in.n_columns; j++) {
        const gnnc_cells *v = cells_at(c, j);
        if (!is_column(v, &k->e, i)) continue;
        if (*out)
            return rt_fail(&c->err, GNNC_E_ARG, "%s: column '%s' is given twice", k->table,
                           v->column);
        *out = v;
    }
    return GNNC_OK;
}

/* The raw columns of k; *out NULL: they are not there, and may be lacking. */
static gnnc_status find_raw(Call *c, const RtEncoding *k, const gnnc_cells ***out) {
    int n = rt_encoder_cells(&k->e);
    const gnnc_cells **v = RT_NEWN(&c->scratch, const gnnc_cells *, n);
    *out = NULL;
    if (!v) return rt_fail_nomem(&c->err, k->table);
    for (int i = 0; i < n; i++) {
        gnnc_status st = find_cells(c, k, i, &v[i]);
        if (st != GNNC_OK) return st;
        if (!v[i] && i == 0 && may_lack(k)) return GNNC_OK;
        if (!v[i])
            return rt_fail(&c->err, GNNC_E_MISSING,
                           "%s: the rows lack column '%s%s', of which %s makes '%s'", k->table,
                           k->e.from, k->e.width ? "." : "", c->e->all.of, k->column);
    }
    *out = v;
    return GNNC_OK;
}

static RtCell cell_of(const gnnc_cells *v, int64_t row) {
    if (!v->texts) return (RtCell){NULL, v->numbers[row]};
    return (RtCell){v->texts[row] ? v->texts[row] : "", 0};
}

/* Fails with the cell that could not be encoded, its row and the reason. */
static gnnc_status bad_cell(Call *c, const RtEncoding *k, const gnnc_cells *v, int64_t row,
                            const RtCell *cell, const char *what) {
    char told[400];
    rt_encode_explain(told, sizeof told, v->column, cell, what, &k->e, c->e->all.of);
    c->bad_row = row;
    return rt_fail(&c->err, rt_col_facts[k->e.kind].codes ? GNNC_E_RANGE : GNNC_E_VALUE,
                   "%.64s: row %lld: %s", k->table, (long long)row, told);
}

/* Encodes all rows of a column into `to`; v [cells of an encoding] are the given columns. */
static gnnc_status encode_rows(Call *c, const RtEncoding *k, const gnnc_cells **v, void *to) {
    int n = rt_encoder_cells(&k->e), at;
    RtCell *cell = RT_NEWN(&c->scratch, RtCell, n);
    if (!cell) return rt_fail_nomem(&c->err, k->table);
    for (int64_t row = 0; row < c->in.count; row++) {
        for (int i = 0; i < n; i++) cell[i] = cell_of(v[i], row);
        const char *what = rt_encode(&k->e, cell, to, row, &at);
        if (what) return bad_cell(c, k, v[at], row, &cell[at], what);
    }
    return GNNC_OK;
}

/* Encodes one column of the data from the given cells, into the caller's n_bytes. */
static gnnc_status encode_one(Call *c, const char *column, void *to, size_t n_bytes) {
    const RtEncoding *k = rt_encoders_find(&c->e->all, c->in.table, column);
    const gnnc_cells **v;
    if (!k)
        return rt_fail(&c->err, GNNC_E_MISSING, "%s says nothing of a column '%.64s.%.64s'",
                       c->e->all.of, c->in.table, column);
    gnnc_status st = find_raw(c, k, &v);
    if (st != GNNC_OK) return st;
    if (!v)
        return rt_fail(&c->err, GNNC_E_MISSING, "%s: the rows lack column '%s'", k->table,
                       k->e.from);
    if (n_bytes != row_bytes(&k->e) * (size_t)c->in.count)
        return rt_fail(&c->err, GNNC_E_SHAPE, "%s.%s: %zu bytes for %lld rows of %zu", k->table,
                       k->column, n_bytes, (long long)c->in.count, row_bytes(&k->e));
    return encode_rows(c, k, v, to);
}

gnnc_status gnnc_encoder_encode(const gnnc_encoder *e, gnnc_raw *rows, const char *column, void *to,
                                size_t n_bytes) {
    if (!rows || RT_STRUCT_CHECK(NULL, gnnc_raw, rows, error) != GNNC_OK) return GNNC_E_ARG;
    Call c;
    if (!e || !column || (!to && n_bytes)) return GNNC_E_ARG;
    gnnc_status st = open_call(&c, e, rows);
    if (st == GNNC_OK) st = encode_one(&c, column, to, n_bytes);
    return close_call(&c, rows, st);
}

/* ---- into a graph ------------------------------------------------------------------------- */
typedef struct {
    const RtEncoding *how;
    gnnc_array values;
} Made;

/* Encodes all columns that the rows have cells for, into the call's memory. */
static gnnc_status encode_all(Call *c, Made *made, int *n_made) {
    int n;
    const RtEncoding *k = columns_of(c->e, c->in.table, &n);
    const gnnc_cells **v;
    *n_made = 0;
    for (int i = 0; i < n; i++) {
        gnnc_status st = find_raw(c, &k[i], &v);
        if (st != GNNC_OK) return st;
        if (!v) continue;
        void *to = rt_pool_alloc(&c->scratch, (size_t)c->in.count, row_bytes(&k[i].e));
        if (!to) return rt_fail_nomem(&c->err, k[i].column);
        if ((st = encode_rows(c, &k[i], v, to)) != GNNC_OK) return st;
        made[(*n_made)++] = (Made){&k[i],
                                   {.struct_size = sizeof(gnnc_array),
                                    .data = to,
                                    .dtype = (int32_t)element_of(&k[i].e),
                                    .rank = rt_encoder_values(&k[i].e) ? 2 : 1,
                                    .shape = {c->in.count, rt_encoder_values(&k[i].e)}}};
    }
    return GNNC_OK;
}

/* Notes how a graph's column was made, so that what binds it can compare. */
static gnnc_status keep_encoder(gnnc_graph *g, RtColumn *to, const RtEncoder *e) {
    RtEncoder *own = RT_NEW(&g->data->pool, RtEncoder);
    if (!own || !rt_encoder_copy(&g->data->pool, e, own)) return rt_fail_nomem(&g->err, to->name);
    if (rt_col_facts[e->kind].codes) {
        own->codes = (RtNames){0};
        own->names = e->names ? to->names : NULL;
    }
    to->encoder = own;
    return GNNC_OK;
}

static RtColumn *column_of(RtTable *t, const char *name) {
    return (RtColumn *)(uintptr_t)rt_table_column(t, name);
}

/* Adds an encoded column to a graph that is being built, with how it was made. */
static gnnc_status add_made(Call *c, gnnc_graph *g, const Made *made) {
    const RtEncoding *k = made->how;
    int64_t n = rt_col_facts[k->e.kind].codes ? k->e.n_categories : -1;
    gnnc_status st = gnnc_graph_add_column(g, k->table, k->column, (gnnc_kind)k->e.kind,
                                           &made->values, n, n < 0 ? NULL : k->e.names);
    RtTable *t = st == GNNC_OK ? rt_graph_table(g, k->table) : NULL;
    if (t) st = keep_encoder(g, column_of(t, k->column), &k->e);
    return st == GNNC_OK ? st : rt_fail(&c->err, st, "%s", gnnc_graph_error(g));
}

/* ---- columns that came without their cells ------------------------------------------------- */
static const gnnc_encoder unchecked;

const gnnc_encoder *gnnc_encoder_unchecked(void) {
    return &unchecked;
}

/* Finds what made table.column; what is unchecked has no encoding (NULL). */
static gnnc_status find_encoding(const gnnc_encoder *e, const char *table, const char *column,
                                 const RtEncoding **k, RtError *err) {
    *k = NULL;
    if (e == &unchecked) return GNNC_OK;
    if (!e->ready)
        return rt_fail(err, GNNC_E_STATE, "the encoder has no columns: gnnc_encoder_read");
    *k = rt_encoders_find(&e->all, table, column);
    if (*k) return GNNC_OK;
    return rt_fail(err, GNNC_E_MISSING, "%s says nothing of a column '%.64s.%.64s'", e->all.of,
                   table, column);
}

/* Do the codes of a column mean what the model's do? Codes without names are taken as the
 * encoder's, and must be below its number of categories. */
static bool names_match(const RtColumn *c, const RtEncoder *e) {
    int64_t n = e->n_categories;
    if (!c->names || !e->names) return n < 0 || c->n_categories <= n;
    bool same = c->n_categories == n;
    for (int64_t i = 0; same && i < n; i++) same = strcmp(c->names[i], e->names[i]) == 0;
    return same;
}

/* Has the graph's column the kind, width and names that the encoding makes? */
static gnnc_status check_form(gnnc_graph *g, const RtEncoding *k, const RtColumn *c,
                              const char *of) {
    int64_t values = rt_encoder_values(&k->e) ? rt_encoder_values(&k->e) : 1;
    if (c->kind != k->e.kind)
        return rt_fail(&g->err, GNNC_E_ARG, "%s.%s is of kind %s, and of kind %s in %s", k->table,
                       k->column, rt_col_kind_name(c->kind), rt_col_kind_name(k->e.kind), of);
    if (rt_column_width(c) != values)
        return rt_fail(&g->err, GNNC_E_SHAPE, "%s.%s has %lld values a row, and %lld in %s",
                       k->table, k->column, (long long)rt_column_width(c), (long long)values, of);
    if (!rt_col_facts[c->kind].codes || names_match(c, &k->e)) return GNNC_OK;
    return rt_fail(&g->err, GNNC_E_ARG, "%s.%s has other names than %s, more, or another order",
                   k->table, k->column, of);
}

/* Its codes have the encoder's names, too. */
static gnnc_status set_encoded(gnnc_graph *g, const RtEncoding *k, RtColumn *c, const char *of) {
    RtColumn own = *c;
    gnnc_status st = check_form(g, k, c, of);
    if (st == GNNC_OK && rt_col_facts[c->kind].codes && !c->names && k->e.names) {
        own.n_categories = k->e.n_categories;
        st = rt_graph_names(g, k->column, k->e.names, own.n_categories, &own.names);
    }
    if (st == GNNC_OK) st = keep_encoder(g, &own, &k->e);
    if (st == GNNC_OK) *c = own;
    return st;
}

gnnc_status gnnc_graph_set_encoded(gnnc_graph *g, const char *table, const char *column,
                                   const gnnc_encoder *e) {
    const RtEncoding *k;
    gnnc_status st = rt_graph_begin(g);
    if (st != GNNC_OK) return st;
    if (!table || !column || !e)
        return rt_graph_null(g, !table ? "table" : !column ? "column" : "e");
    RtTable *t = rt_graph_table(g, table);
    if (!t) return GNNC_E_MISSING;
    RtColumn *c = column_of(t, column);
    if (!c)
        return rt_fail(&g->err, GNNC_E_MISSING, "%s: there is no column '%.64s'", table, column);
    if ((st = find_encoding(e, table, column, &k, &g->err)) != GNNC_OK) return st;
    if (k) return set_encoded(g, k, c, e->all.of);
    c->encoder = &rt_encoder_unchecked;
    return GNNC_OK;
}

/* Fails if values of a column with a fitted encoder do not say that they were made by it: they
 * might be raw. */
static gnnc_status not_made(const gnnc_values *v, const char *table, const RtEncoder *how,
                            const char *whose, RtError *err) {
    char text[120];
    if (v->encoder || !how || !rt_encoder_is_fitted(how)) return GNNC_OK;
    return rt_fail(err, GNNC_E_ARG,
                   "%s.%s: the values do not say how they were made, and are a %s in %s: "
                   "gnnc_values.encoder says it",
                   table, v->column, rt_encoder_named(how, text, sizeof text), whose);
}

/* Checks that values are encoded as those of the model's data were. */
gnnc_status rt_values_check_encoding(const gnnc_values *v, const char *table,
                                     const RtEncoder *expected, const char *whose, gnnc_values *own,
                                     RtError *err) {
    const RtEncoding *k = NULL;
    char text[120], other[120];
    *own = (gnnc_values){0};
    memcpy(own, v, v->struct_size < sizeof *own ? v->struct_size : sizeof *own);
    gnnc_status st = not_made(own, table, expected, whose, err);
    if (st == GNNC_OK && own->encoder)
        st = find_encoding(own->encoder, table, own->column, &k, err);
    if (st != GNNC_OK || !k) return st;
    if (!own->names && k->e.names && rt_col_facts[k->e.kind].codes) {
        own->names = k->e.names;
        own->n_categories = k->e.n_categories;
    }
    if (!expected || !rt_encoder_differs(expected, &k->e, text, sizeof text)) return GNNC_OK;
    rt_encoder_differs(&k->e, expected, other, sizeof other);
    return rt_fail(err, GNNC_E_ARG, "%s.%s is a %s in %s, and a %s in %s", table, own->column, text,
                   whose, other, own->encoder->all.of);
}

/* Adds all columns or none: after a failure the table's columns are those of before. */
static gnnc_status add_all(Call *c, gnnc_graph *g) {
    int n, n_made;
    columns_of(c->e, c->in.table, &n);
    gnnc_status st = rt_graph_begin(g);
    RtTable *t = st == GNNC_OK ? rt_graph_table(g, c->in.table) : NULL;
    if (!t) return rt_fail(&c->err, st == GNNC_OK ? GNNC_E_MISSING : st, "%s", gnnc_graph_error(g));
    int n_before = t->n_columns;
    Made *made = RT_NEWN(&c->scratch, Made, n);
    RtColumn *before = RT_NEWN(&c->scratch, RtColumn, n_before);
    if (!made || !before) return rt_fail_nomem(&c->err, c->in.table);
    if (n_before) memcpy(before, t->columns, (size_t)n_before * sizeof *before);
    if ((st = encode_all(c, made, &n_made)) != GNNC_OK) return st;
    for (int i = 0; i < n_made && st == GNNC_OK; i++) st = add_made(c, g, &made[i]);
    if (st == GNNC_OK) return st;
    if (n_before) memcpy(t->columns, before, (size_t)n_before * sizeof *before);
    t->n_columns = n_before;
    return st;
}

gnnc_status gnnc_encoder_add(const gnnc_encoder *e, gnnc_raw *rows, gnnc_graph *g) {
    if (!rows || RT_STRUCT_CHECK(NULL, gnnc_raw, rows, error) != GNNC_OK) return GNNC_E_ARG;
    Call c;
    if (!e || !g) return GNNC_E_ARG;
    gnnc_status st = open_call(&c, e, rows);
    if (st == GNNC_OK) st = add_all(&c, g);
    return close_call(&c, rows, st);
}

/* Does the committed graph, of which nothing changes, have such a column? */
static bool is_there(const gnnc_graph *g, const RtEncoding *k) {
    const RtTable *t = rt_dataset_nodes(g->data, k->table);
    if (!t) t = rt_dataset_edges(g->data, k->table);
    return t && rt_table_column(t, k->column);
}

/* Encodes all columns, and lists those that the graph's table has as rows to append. */
static gnnc_status append_all(Call *c, gnnc_graph *g, gnnc_rows *r) {
    int n, n_made;
    columns_of(c->e, c->in.table, &n);
    Made *made = RT_NEWN(&c->scratch, Made, n);
    gnnc_values *values = RT_NEWN(&c->scratch, gnnc_values, n);
    gnnc_status st;
    if (!made || !values) return rt_fail_nomem(&c->err, c->in.table);
    if ((st = encode_all(c, made, &n_made)) != GNNC_OK) return st;
    for (int i = 0; i < n_made; i++) {
        const RtEncoding *k = made[i].how;
        if (may_lack(k) && !is_there(g, k)) continue;
        values[r->n_columns++] = (gnnc_values){.struct_size = sizeof(gnnc_values),
                                               .column = k->column,
                                               .values = &made[i].values,
                                               .encoder = c->e};
    }
    r->columns = values;
    return GNNC_OK;
}

/* gnnc_graph_append gives src and dst back to who lent them, so it is called even after an error:
 * with no graph it does only that. */
gnnc_status gnnc_encoder_append(const gnnc_encoder *e, gnnc_raw *rows, gnnc_graph *g,
                                const gnnc_array *src, const gnnc_array *dst, int64_t *first) {
    gnnc_rows r = {.struct_size = sizeof r, .src = src, .dst = dst};
    Call c;
    if (first) *first = -1;
    bool good = e && g && rows && RT_STRUCT_CHECK(NULL, gnnc_raw, rows, error) == GNNC_OK;
    gnnc_status st = good ? open_call(&c, e, rows) : GNNC_E_ARG;
    if (st == GNNC_OK && !g->committed)
        st = rt_fail(&c.err, GNNC_E_STATE,
                     "the graph is not committed: its first rows are added, not appended");
    if (st == GNNC_OK) st = append_all(&c, g, &r);
    if (st == GNNC_OK) {
        r.table = c.in.table;
        r.count = c.in.count;
    } else {
        r.n_columns = 0;
    }
    gnnc_status appended = gnnc_graph_append(st == GNNC_OK ? g : NULL, &r);
    if (!good) return GNNC_E_ARG;
    if (st == GNNC_OK && appended != GNNC_OK) st = rt_fail(&c.err, appended, "%s", r.error);
    if (first) *first = r.first;
    return close_call(&c, rows, st);
}
