/* Binding sizes and columns.  A dimension takes the size of the first column that has
 * it; whoever disagrees later is reported together with that column.  Columns that no
 * phase reads may be missing from the data, unless a dimension needs them. */
#include "bind.h"
#include "runtime/device/device_maps.h"
#include "runtime/index_file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static RtError *err_of(RtExec *x) {
    return &x->rt->err;
}

static RtBound *bound_of(RtExec *x) {
    return x->rt->bound;
}

/* ---- sizes ------------------------------------------------------------------ */
/* Fails: the data have another size than the model fixes. A dimension that is written as a number
 * has no name that anybody gave it. */
static gnnc_status other_size(RtExec *x, const rt_space *s, int64_t size, const char *what,
                              const char *by) {
    char unnamed[32];
    snprintf(unnamed, sizeof unnamed, "d%lld", (long long)s->fixed);
    bool named = strcmp(s->name, unnamed) != 0;
    return rt_fail(err_of(x), GNNC_E_SHAPE, "%s: %s has %lld %s, but the model (%s) %s%s%s%lld",
                   bound_of(x)->dir, by, (long long)size, what, x->program->source,
                   named ? "fixes " : "has ", named ? s->name : "", named ? " = " : "",
                   (long long)s->fixed);
}

/* `by` has so many of `what`: "'paper.y'" 7 "classes". */
static gnnc_status bind_size(RtExec *x, int space, int64_t size, const char *what, const char *by) {
    const rt_space *s = &x->program->spaces[space];
    RtBound *b = bound_of(x);
    if (s->fixed >= 0 && s->fixed != size) return other_size(x, s, size, what, by);
    if (s->sym < 0) return GNNC_OK;
    if (x->n[s->sym] < 0) {
        x->n[s->sym] = size;
        b->bound_by[s->sym] = by;
    }
    if (x->n[s->sym] == size) return GNNC_OK;
    return rt_fail(err_of(x), GNNC_E_SHAPE, "%s: dimension '%s' is %lld by %s and %lld by %s",
                   b->dir, s->name, (long long)x->n[s->sym], b->bound_by[s->sym], (long long)size,
                   by);
}

/* ---- tables ------------------------------------------------------------------ */
/* Finds the data's table for a space, whose rows are the space's size. */
static gnnc_status bind_table(RtExec *x, int space) {
    const rt_space *s = &x->program->spaces[space];
    bool wanted = s->kind == RT_SP_NODE || s->kind == RT_SP_GRAPH ||
                  (s->kind == RT_SP_EDGE && s->rel == RT_REL_BASE);
    if (s->first || !wanted) return GNNC_OK;
    const RtTable **t = &bound_of(x)->table[space];
    gnnc_status st = rt_bind_find_table(x, space, t);
    return st == GNNC_OK ? bind_size(x, space, (*t)->count, "rows", (*t)->name) : st;
}

/* Is what the model learns of a table whose rows have times? */
static bool have_seeds_times(const RtExec *x) {
    const rt_program *p = x->program;
    for (int i = 0; i < p->n_columns; i++) {
        bool seeds = p->columns[i].is_label || p->columns[i].kind == RT_COL_SPLIT;
        if (seeds && rt_table_time(x->rt->bound->table[rt_bind_base(p, i)])) return true;
    }
    return false;
}

/* The column that batches are drawn by lists of a space; NULL: none. */
static const char *drawn_by(const rt_program *p, int space) {
    const rt_sampling *s = &p->sampling;
    for (int i = 0; i < s->n_times; i++)
        if (p->columns[s->times[i]].space == space) return p->columns[s->times[i]].name;
    return NULL;
}

/* Tells (or refuses) that a model reads rows with times as if they were known at any time, so that
 * it may learn from what came later. */
static gnnc_status read_whenever(const RtExec *x, const rt_space *s, const RtColumn *time,
                                 bool refuse) {
    const RtTable *t = x->rt->bound->table[s - x->program->spaces];
    const char *known = t->time ? "the row time" : "the time";
    const char *text = rt_pool_printf(
        &x->rt->pool,
        "%s: rows of '%s' have %s '%s', and the model (%s) reads them whatever it is: "
        "declare the column and say 'time g.%s.%s' in 'sample', or declare the table "
        "'timeless'",
        x->rt->bound->dir, s->name, known, time->name, x->program->source, s->name, time->name);
    if (!text) return rt_fail_nomem(&x->rt->err, s->name);
    if (refuse) return rt_fail(&x->rt->err, GNNC_E_ASSERT, "%s", text);
    rt_message(x->rt, "%s", text);
    return GNNC_OK;
}

gnnc_status rt_bind_check_times(const RtExec *x, bool refuse) {
    const RtBound *b = x->rt->bound;
    bool timed = have_seeds_times(x), told = false;
    gnnc_status st = GNNC_OK;
    if (!refuse && !timed) return GNNC_OK;
    for (int i = 0; i < x->program->n_spaces && st == GNNC_OK; i++) {
        const rt_space *s = &x->program->spaces[i];
        const RtColumn *time = rt_table_time(b->table[i]);
        if (!time) continue;
        bool said = b->table[i]->time && timed; /* the data say when rows happened */
        const char *by = drawn_by(x->program, i);
        if (s->untimed && (refuse || said || !told)) {
            st = read_whenever(x, s, time, refuse || said);
            told = true;
        } else if (said && by && strcmp(by, time->name) != 0) {
            st = rt_fail(&x->rt->err, GNNC_E_ASSERT,
                         "%s: rows of '%s' happened at '%s', and the model (%s) reads them by "
                         "'%s': in 'sample' say 'time g.%s.%s', or import the data with --row-time "
                         "%s.%s",
                         b->dir, s->name, time->name, x->program->source, by, s->name, time->name,
                         s->name, by);
        }
    }
    return st;
}

/* ---- columns -------------------------------------------------------------------- */
/* Of a subgraph what only the whole graph's phases read need not be there. */
static bool is_wanted(const RtExec *x, int col) {
    return x->rt->bound->for_request ? rt_bind_batches_read(x->program, col)
                                     : rt_bind_is_used(x->program, col);
}

/* Can the program read the data's column: its kind, and the dimensions of a row? */
static gnnc_status check_column(RtExec *x, const rt_column *want, const RtColumn *c,
                                const char *who) {
    RtBound *b = bound_of(x);
    char declared[64];
    rt_column_declared(c, declared, sizeof declared);
    if (!rt_form_fits(want, c))
        return rt_fail(err_of(x), GNNC_E_DTYPE,
                       "%s: %s is of kind %s, in the model (%s) %s; declare it '%s: %s', or import "
                       "it as what the model wants (gnnc import --kind)",
                       b->dir, who, rt_col_kind_name(c->kind), x->program->source,
                       rt_col_kind_name(want->kind), want->name, declared);
    /* A model's scalar column may be stored [rows, 1]. */
    bool column_of_one = want->rank == 0 && c->rank == 2 && c->shape[1] == 1;
    if (c->rank - 1 == want->rank || column_of_one) return GNNC_OK;
    return rt_fail(err_of(x), GNNC_E_SHAPE,
                   "%s: %s has %d dimensions per row, in the model (%s) %d; declare it '%s: %s'",
                   b->dir, who, c->rank - 1, x->program->source, want->rank, want->name, declared);
}

/* Sets the sizes that the column tells: elements of a row, and stored entries of a sparse
 * column. */
static gnnc_status bind_dims(RtExec *x, const rt_column *want, const RtColumn *c, const char *who) {
    gnnc_status st = GNNC_OK;
    if (want->kind == RT_COL_CSR && want->nz >= 0)
        st = bind_size(x, want->nz, rt_form_stored(c), "stored entries", who);
    for (int i = 0; i < want->rank && st == GNNC_OK; i++)
        st = bind_size(x, want->dim[i], c->shape[i + 1], want->rank > 1 ? "elements" : "columns",
                       who);
    return st;
}

/* -1: nobody has said it yet. */
static int64_t known_size(const RtExec *x, const rt_space *s) {
    return s->fixed >= 0 ? s->fixed : s->sym >= 0 ? x->n[s->sym] : -1;
}

/* Sets the number of categories of a column: that of the weights' file, if there is one (the
 * data may lack some), else that of the data. */
static gnnc_status bind_categories(RtExec *x, int col) {
    const rt_column *want = &x->program->columns[col];
    const RtColumn *c = bound_of(x)->col[col];
    if (!c || want->cat < 0) return GNNC_OK;
    int64_t known = known_size(x, &x->program->spaces[want->cat]);
    gnnc_status st = known >= 0 ? rt_codes_fit(x, col, known) : GNNC_OK;
    if (st != GNNC_OK) return st;
    const char *who =
        rt_pool_printf(&x->rt->pool, "'%s.%s'", rt_bind_table_of(x, want)->name, want->name);
    if (!who) return rt_fail_nomem(err_of(x), "column names");
    return bind_size(x, want->cat, c->n_categories,
                     c->kind == RT_COL_CLASS ? "classes" : "categories", who);
}

/* For each edge of a derived relation the row of the data's table, in memory that the caller drops;
 * NULL: no memory. */
static int32_t *rows_of_edges(RtExec *x, int space) {
    const RtRelation *rel = bound_of(x)->rel;
    int32_t *row = RT_NEWN(&x->rt->pool, int32_t, rel[space].n_edges + 1);
    int table;
    for (int64_t e = 0; row && e < rel[space].n_edges; e++)
        row[e] = (int32_t)rt_bind_row(x->program, rel, space, e, &table);
    return row;
}

/* What as_read() made of the file's values, which go once the canonical ones are made; NULL:
 * nothing. */
static const void *converted(const RtExec *x, const rt_column *want, const RtColumn *c) {
    const RtColumn *own = rt_bind_data_column(x, rt_bind_index(x, want));
    if (!own || c->kind != RT_COL_FLOAT || (c->f32 ? c->f32 == own->f32 : c->low == own->low))
        return NULL;
    return rt_column_values(c);
}

/* Puts an edge column in the order that the relation has its edges in; the column that it was is
 * dropped if it was made by a conversion. */
static gnnc_status to_canonical(RtExec *x, int col, const RtColumn **c) {
    const rt_column *want = &x->program->columns[col];
    if (x->program->spaces[want->space].kind != RT_SP_EDGE) return GNNC_OK;
    const RtRelation *r = &bound_of(x)->rel[want->space];
    gnnc_status st =
        rt_device_maps(x) ? rt_device_relation_to_host(x, want->space, false) : GNNC_OK;
    if (st != GNNC_OK) return st;
    bool base = x->program->spaces[want->space].rel == RT_REL_BASE;
    if (r->wide && base && !r->wide_orig[0]) return GNNC_OK; /* edges lie as in the file */
    if (r->wide)
        return rt_fail(err_of(x), GNNC_E_RANGE,
                       "'%s' of %lld edges: columns of more than 2^31 - 1 edges are possible where "
                       "the edges are the data's, and lie by their destinations",
                       want->name, (long long)r->n_edges);
    const int32_t *row = r->orig[0];
    RtColumn *y = RT_NEW(&x->rt->pool, RtColumn);
    int32_t *rows = NULL;
    if (!base) row = rows = rows_of_edges(x, want->space);
    if (!y || !row) return rt_fail_nomem(err_of(x), "an edge column");
    st = rt_column_take(&x->rt->pool, *c, row, r->n_edges, y, err_of(x));
    rt_pool_drop(&x->rt->pool, rows);
    rt_pool_drop(&bound_of(x)->data->pool, converted(x, want, *c));
    *c = y;
    return st;
}

/* Points the buffer of a column to its values, in the chosen split, which kernels only read. */
static gnnc_status fill_buffer(RtExec *x, const rt_column *want, const RtColumn *c) {
    const void *p = NULL;
    gnnc_status st = rt_column_read(&x->rt->pool, c, bound_of(x)->split, &p, err_of(x));
    if (st == GNNC_OK) x->buf[want->buf] = (void *)p; /* kernels only read DATA buffers */
    return st;
}

/* A column of numbers in type t: as it lies, or converted once. */
static gnnc_status as_read(RtExec *x, rt_dtype t, const RtColumn **c) {
    return rt_column_as(&bound_of(x)->data->pool, x->rt->team, *c, t, c, err_of(x));
}

/* Nor need edges that a request brings say of which split they are. */
static bool may_lack(const RtExec *x, const rt_column *want) {
    return want->is_label || (want->kind == RT_COL_SPLIT && x->rt->bound->for_request);
}

/* Finds the data's column for column `col` of the program, checks it, sets the sizes that it tells,
 * and points its buffer into the data where both are stored alike. A column in another form (dense
 * for sparse) is only read here and converted later; those of edges are put in order later. */
static gnnc_status bind_column(RtExec *x, int col) {
    const rt_column *want = &x->program->columns[col];
    RtBound *b = bound_of(x);
    const RtTable *t = rt_bind_table_of(x, want);
    if (x->program->spaces[want->space].of_batch) return GNNC_OK;
    const RtColumn *c = rt_table_column(t, want->name);
    bool used = is_wanted(x, col), edges, as_is;
    if (!c && (!used || may_lack(x, want))) return GNNC_OK; /* see stand_in() */
    if (!c)
        return rt_fail(err_of(x), GNNC_E_MISSING,
                       "%s: '%s' has no column '%s', which the model (%s) needs", b->dir, t->name,
                       want->name, x->program->source);
    const char *who = rt_pool_printf(&x->rt->pool, "'%s.%s'", t->name, want->name);
    if (!who) return rt_fail_nomem(err_of(x), "column names");
    gnnc_status st;
    TRY(st, check_column(x, want, c, who));
    if (used) TRY(st, rt_bind_fetch_from_device(x, col, who));
    edges = x->program->spaces[want->space].kind == RT_SP_EDGE;
    as_is = c->kind == want->kind;
    if (used || !as_is) TRY(st, as_read(x, as_is ? rt_bind_type(x->program, want) : RT_F32, &c));
    b->col[col] = c;
    TRY(st, bind_dims(x, want, c, who));
    if (want->buf >= 0 && !edges && as_is) st = fill_buffer(x, want, c);
    if (used) rt_bind_borrow_device_column(x, col);
out:
    return st;
}

/* ---- labels that the data lack ------------------------------------------------------- */
/* Sizes of the dimensions that the column would have given. */
static gnnc_status stand_in_shape(RtExec *x, const rt_column *want, const RtTable *t, RtColumn *c) {
    c->rank = want->rank + 1;
    c->n_rows = c->shape[0] = t->count;
    for (int i = -1; i < want->rank; i++) {
        int space = i < 0 ? want->cat : want->dim[i];
        if (space < 0) continue;
        const rt_space *s = &x->program->spaces[space];
        int64_t size = known_size(x, s);
        if (size < 0)
            return rt_fail(err_of(x), GNNC_E_MISSING,
                           "%s: '%s' has no column '%s', which the model (%s) needs to be trained "
                           "or evaluated, and to know the size of '%s' where no weights were "
                           "given before the data",
                           bound_of(x)->dir, t->name, want->name, x->program->source, s->name);
        *(i < 0 ? &c->n_categories : &c->shape[i + 1]) = size;
    }
    return GNNC_OK;
}

/* Makes values for a column that the data lack: each is unknown, and in no split. In a request
 * every row is put in the train split, so that all labels it brings may be seen. */
static gnnc_status stand_in_values(RtExec *x, RtColumn *c) {
    RtPool *pool = &x->rt->pool;
    int64_t n = 1;
    bool ok = true;
    for (int i = 0; i < c->rank; i++)
        ok = ok && !__builtin_mul_overflow(n, c->shape[i], &n) && n < INT64_MAX / 8;
    if (!ok) return rt_fail_nomem(err_of(x), c->name);
    c->n_splits = bound_of(x)->split + 1;
    const RtColumnKind *k = rt_column_kind(c->kind);
    size_t bytes = rt_dtype_bytes(k->element);
    if (k->layout == RT_LAYOUT_SPLITS) bytes *= (size_t)c->n_splits;
    c->values = rt_pool_alloc(pool, (size_t)n, bytes);
    if (!c->values) return rt_fail_nomem(err_of(x), c->name);
    rt_column_fill_unknown(c, n);
    if (c->kind == RT_COL_SPLIT && bound_of(x)->for_request)
        memset((void *)(uintptr_t)c->values, RT_SPLIT_TRAIN, (size_t)n * bytes);
    return GNNC_OK;
}

/* Makes a column that the data may lack, as only training and judging read it: these fail when they
 * are asked for. */
static gnnc_status stand_in(RtExec *x, int col) {
    const rt_column *want = &x->program->columns[col];
    RtBound *b = bound_of(x);
    bool of_batch = x->program->spaces[want->space].of_batch;
    if (b->col[col] || of_batch || !may_lack(x, want) || !is_wanted(x, col)) return GNNC_OK;
    RtColumn *c = RT_NEW(&x->rt->pool, RtColumn);
    if (!c) return rt_fail_nomem(err_of(x), want->name);
    *c = (RtColumn){.name = want->name, .kind = want->kind};
    gnnc_status st;
    TRY(st, stand_in_shape(x, want, rt_bind_table_of(x, want), c));
    TRY(st, stand_in_values(x, c));
    if (b->missing_label < 0) b->missing_label = col;
    b->col[col] = c;
    TRY(st, as_read(x, rt_bind_type(x->program, want), &b->col[col]));
    if (want->buf >= 0 && x->program->spaces[want->space].kind != RT_SP_EDGE)
        st = fill_buffer(x, want, b->col[col]);
out:
    return st;
}

/* An error if the data lack the labels that training and evaluation need. */
gnnc_status rt_bind_require_labels(const RtExec *x) {
    const RtBound *b = x->rt->bound;
    if (b->missing_label < 0) return GNNC_OK;
    if (b->unknown) return rt_fail(&x->rt->err, GNNC_E_RANGE, "%s", b->unknown);
    const rt_column *c = &x->program->columns[b->missing_label];
    return rt_fail(&x->rt->err, GNNC_E_MISSING,
                   "%s: '%s' has no column '%s', which the model (%s) needs to be trained or "
                   "evaluated",
                   b->dir, rt_bind_table_of(x, c)->name, c->name, x->program->source);
}

/* ---- forms and orders ------------------------------------------------------------------ */
/* Converts a column to the form (dense or sparse) that the program reads. */
static gnnc_status to_form(RtExec *x, const rt_column *want, const RtColumn **c) {
    RtColumn *y = RT_NEW(&x->rt->pool, RtColumn);
    if (!y) return rt_fail_nomem(err_of(x), "a column");
    gnnc_status st = rt_form_column(&x->rt->pool, want->kind, *c, y, err_of(x));
    *c = y;
    if (st == GNNC_OK) st = as_read(x, rt_bind_type(x->program, want), c);
    if (st == GNNC_OK && (*c)->low) rt_pool_drop(&x->rt->pool, y->f32);
    return st;
}

/* Makes what kernels read of a column: edges in canonical order, another form, or the places of
 * stored entries. */
static gnnc_status reorder_column(RtExec *x, int col) {
    const rt_column *want = &x->program->columns[col];
    RtBound *b = bound_of(x);
    if (!b->col[col] || !is_wanted(x, col)) return GNNC_OK;
    gnnc_status st;
    bool edges = x->program->spaces[want->space].kind == RT_SP_EDGE;
    bool as_is = b->col[col]->kind == want->kind;
    if (edges) TRY(st, to_canonical(x, col, &b->col[col]));
    if (!as_is) TRY(st, to_form(x, want, &b->col[col]));
    bool whole = !b->for_request && !rt_bind_is_pulled(x, col);
    if (want->kind == RT_COL_CSR && !rt_device_maps(x) && whole)
        TRY(st, rt_csr_nz(&x->rt->pool, &b->col[col]->csr, &b->nz[col], err_of(x)));
    st = want->buf >= 0 && (edges || !as_is) ? fill_buffer(x, want, b->col[col]) : GNNC_OK;
out:
    return st;
}

/* Puts the columns of a relation into the order of its edges. */
gnnc_status rt_bind_reorder_columns(RtExec *x, int space) {
    gnnc_status st = GNNC_OK;
    for (int c = 0; c < x->program->n_columns && st == GNNC_OK; c++)
        if (x->program->columns[c].space == space) st = reorder_column(x, c);
    return st;
}

size_t rt_bind_ends_bytes(const RtExec *x) {
    const RtDataset *d = x->rt->bound->alone;
    size_t n = 0;
    for (int i = 0; d && i < d->n_edges; i++) {
        const RtTable *t = &d->edges[i]; /* maybe not read yet, or mapped */
        if (t->src && !rt_dataset_maps(d, t->src)) n += (size_t)t->count * 2 * sizeof(int32_t);
    }
    return n;
}

/* Bytes that columns will take in the forms (dense, sparse) that the program wants, with what
 * gradients by sparse values index; foreseen before they are converted. */
size_t rt_bind_form_bytes(const RtExec *x) {
    const rt_program *p = x->program;
    size_t n = 0;
    for (int i = 0; i < p->n_columns; i++) {
        const rt_column *want = &p->columns[i];
        const RtColumn *c = x->rt->bound->col[i];
        if (!c || !rt_bind_is_used(p, i)) continue;
        bool stored = want->kind == RT_COL_CSR && want->nz >= 0;
        int64_t nnz = stored ? x->n[p->spaces[want->nz].sym] : 0;
        n += rt_form_bytes(want->kind, c, nnz);
        if (want->kind == RT_COL_CSR && !rt_device_maps(x)) /* rt_csr_nz */
            n += (size_t)nnz * 2 * sizeof(int32_t) + (size_t)(c->shape[1] + 2) * sizeof(int64_t);
    }
    return n;
}

/* Prepares a column from which the device gathers the rows of each batch itself: the whole
 * column in the program's form. */
gnnc_status rt_bind_device_gather(RtExec *x, int col) {
    const rt_column *want = &x->program->columns[col];
    RtBound *b = bound_of(x);
    const RtColumn *c = b->col[col];
    gnnc_status st = GNNC_OK;
    if (c->kind == RT_COL_CSR) {
        TRY(st, rt_csr_nz(&x->rt->pool, &c->csr, &b->nz[col], err_of(x)));
        if (want->nz >= 0) x->n[x->program->spaces[want->nz].sym] = c->csr.nnz;
    }
    if (want->buf >= 0) st = fill_buffer(x, want, c);
out:
    return st;
}

/* ---- all of it --------------------------------------------------------------------- */
/* Makes the tables of what is bound; all sizes are unknown (-1). */
static gnnc_status bound_new(RtExec *x) {
    const rt_program *p = x->program;
    RtPool *pool = &x->rt->pool;
    RtBound *b = x->rt->bound;
    b->table = RT_NEWN(pool, const RtTable *, p->n_spaces);
    b->rel = RT_NEWN(pool, RtRelation, p->n_spaces);
    b->ready = RT_NEWN(pool, bool, p->n_spaces);
    b->col = RT_NEWN(pool, const RtColumn *, p->n_columns);
    b->nz = RT_NEWN(pool, RtNz, p->n_columns);
    b->codes = RT_NEWN(pool, RtCodes, p->n_columns);
    b->encoded = RT_NEWN(pool, RtEncoded, p->n_columns);
    b->rows = RT_NEWN(pool, RtCodes, p->n_spaces);
    b->missing_label = -1;
    b->bound_by = RT_NEWN(pool, const char *, p->n_syms);
    b->balance = RT_NEWN(pool, const int64_t *, p->n_maps);
    if (!b->table || !b->rel || !b->ready || !b->col || !b->nz || !b->codes || !b->encoded ||
        !b->rows || !b->bound_by || !b->balance)
        return rt_fail_nomem(err_of(x), "tables of the data");
    x->balance = b->balance;
    for (int i = 0; i < p->n_syms; i++) x->n[i] = -1;
    return GNNC_OK;
}

/* Is the relation one that is built after @load, of values that @load computes (the conditions of
 * `where`)? */
static bool is_late(const RtExec *x, int space) {
    if (x->program->spaces[space].of_batch) return false;
    return x->program->spaces[space].kind == RT_SP_EDGE && !bound_of((RtExec *)x)->ready[space];
}

/* Sizes that only the load phase can tell are 0 until then. */
static gnnc_status check_all_bound(RtExec *x) {
    for (int s = 0; s < x->program->n_spaces; s++) {
        const rt_space *sp = &x->program->spaces[s];
        if (sp->sym < 0 || x->n[sp->sym] >= 0 || sp->kind == RT_SP_EDGE) continue;
        if (sp->kind == RT_SP_NZ || sp->first) continue; /* nothing reads it; of batches */
        return rt_fail(err_of(x), GNNC_E_MISSING,
                       "%s: no column gives the size of dimension '%s' of the model (%s)",
                       bound_of(x)->dir, sp->name, x->program->source);
    }
    for (int i = 0; i < x->program->n_syms; i++)
        if (x->n[i] < 0) x->n[i] = 0;
    return GNNC_OK;
}

/* Frees what binding needed and running does not: conversions of the edge lists, and arrays of
 * relations that no buffer points to. Where a relation is built late, after @load, arrays stay: it
 * is made of them. */
static void drop_unused(RtExec *x) {
    const rt_program *p = x->program;
    RtBound *b = bound_of(x);
    bool late = false, lent = false; /* wide relations may be the data's arrays */
    for (int s = 0; s < p->n_spaces; s++) {
        const int32_t *src = b->rel[s].src;
        late |= is_late(x, s);
        lent |= b->rel[s].wide && b->table[s] && src == b->table[s]->src;
    }
    if (!lent) rt_dataset_drop_edges(b->data);
    if (!lent && b->alone) rt_dataset_drop_edges(b->alone);
    const RtCacheFile kept = {x->buf, p->n_bufs};
    rt_device_maps_trim(x, late);
    for (int s = 0; s < p->n_spaces && !late; s++) {
        if (p->spaces[s].kind == RT_SP_EDGE && !rt_bind_drawn_from(p, s))
            rt_relation_drop(&x->rt->pool, &b->rel[s], &kept);
    }
    rt_dataset_forget_pages(b->data);
}

gnnc_status rt_bind_arrays(RtExec *x) {
    RtBound *b = bound_of(x);
    gnnc_status st;
    if (b->file) TRY(st, b->file->find(b->file, x, &b->found));
    TRY(st, rt_bind_derived(x));
    for (int c = 0; c < x->program->n_columns; c++)
        if (!is_late(x, x->program->columns[c].space)) TRY(st, reorder_column(x, c));
    for (int s = 0; s < x->program->n_spaces; s++)
        if (!is_late(x, s) && !x->program->spaces[s].of_batch) TRY(st, rt_bind_space(x, s));
    b->fingerprint = rt_bind_fingerprint(x);
    if (b->file && !b->found) b->file->keep(b->file, x);
    rt_bind_drop_host_copies(x);
    drop_unused(x);
out:
    return st;
}

/* Binds what follows from the tables of a batch or a request: derived relations, then edge
 * columns in the order of their edges. */
gnnc_status rt_bind_subgraph(RtExec *x) {
    const rt_program *p = x->program;
    gnnc_status st;
    TRY(st, rt_bind_derived(x));
    for (int c = 0; c < p->n_columns; c++) {
        const rt_space *rows = &p->spaces[p->columns[c].space];
        if (rows->kind != RT_SP_EDGE || rows->sampled) TRY(st, reorder_column(x, c));
    }
out:
    return st;
}

/* Takes the sizes that are known before there are data, and notes who says them. */
static void take_known(RtExec *x, const int64_t *known) {
    const char *by = x->rt->given ? x->rt->given->path : x->program->source;
    for (int i = 0; i < x->program->n_syms; i++) {
        x->n[i] = known[i];
        bound_of(x)->bound_by[i] = by;
    }
}

/* Sizes that are options of the model: those that somebody said, then those that are still open. */
static void bind_options(RtExec *x, bool known) {
    for (int i = 0; i < x->program->n_options; i++) {
        const rt_model_option *o = &x->program->option[i];
        if (o->sym < 0 || x->n[o->sym] >= 0) continue;
        if (known && !(x->rt->option_known && x->rt->option_known[i])) continue;
        x->n[o->sym] = (int64_t)(x->rt->option_value ? x->rt->option_value[i] : o->first);
        bound_of(x)->bound_by[o->sym] = "an option of the model";
    }
}

gnnc_status rt_bind_sizes(RtExec *x, RtMemory *memory, const RtDataSource *data) {
    RtBound *b = x->rt->bound = RT_NEW(&x->rt->pool, RtBound);
    if (!b) return rt_fail_nomem(err_of(x), "tables of the data");
    b->dir = data->data->dir ? data->data->dir : data->known ? "the subgraph" : "the graph";
    b->for_request = data->known != NULL;
    b->split = (int)data->split;
    b->memory = memory;
    b->alone = data->alone ? data->data : NULL;
    b->file = data->file;
    gnnc_status st;
    b->data = rt_dataset_view(&x->rt->pool.from, data->data);
    if (!b->data) return rt_fail_nomem(err_of(x), "tables of the data");
    if (data->at) TRY(st, data->put_at(x, b->data, *data->at));
    TRY(st, bound_new(x));
    if (data->known) take_known(x, data->known);
    bind_options(x, true);
    for (int s = 0; s < x->program->n_spaces; s++) TRY(st, bind_table(x, s));
    TRY(st, rt_bind_count_edges(x));
    TRY(st, rt_encoders_bind(x));
    TRY(st, rt_codes_bind(x));
    for (int c = 0; c < x->program->n_columns; c++) TRY(st, bind_column(x, c));
    TRY(st, rt_weights_file_sizes(x));
    bind_options(x, false);
    for (int c = 0; c < x->program->n_columns; c++) TRY(st, bind_categories(x, c));
    for (int c = 0; c < x->program->n_columns; c++) TRY(st, stand_in(x, c));
    if (!data->known) TRY(st, rt_node_names_bind(x));
    st = check_all_bound(x);
out:
    return st;
}

void rt_bind_close(RtExec *x) {
    if (x->rt->bound) rt_dataset_close(bound_of(x)->data);
}
