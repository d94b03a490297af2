/* A record batch of the Arrow C data interface as columns of a table. */
#include "graph_arrow.h"

#include <string.h>

typedef struct {
    gnnc_graph *g;
    const char *table;
    RtTable *t;
    struct ArrowSchema schema;
    struct ArrowArray
        *array; /* moved here: in the graph's memory, as columns may go on reading it */
    int n_kinds;
    const char *const *columns;
    const gnnc_kind *kinds;
    RtPool scratch;
    bool kept; /* a column reads the batch's buffers */
} Batch;

static void release_array(void *user) {
    struct ArrowArray *a = user;
    if (a->release) a->release(a);
}

/* Is it a record batch with as many rows as the table, and no row that is null as a whole? */
static gnnc_status check_batch(const Batch *b) {
    const struct ArrowSchema *s = &b->schema;
    const struct ArrowArray *a = b->array;
    RtError *err = &b->g->err;
    if (!s->format || strcmp(s->format, "+s") != 0)
        return rt_fail(err, GNNC_E_DTYPE, "%s: a record batch is wanted, Arrow's format '+s'",
                       b->table);
    if (s->n_children != a->n_children || s->n_children < 0 || a->offset < 0 ||
        (s->n_children && (!s->children || !a->children)))
        return rt_fail(err, GNNC_E_ARG, "%s: schema and array have not as many columns", b->table);
    if (a->length != b->t->count)
        return rt_fail(err, GNNC_E_SHAPE, "%s: a batch of %lld rows, the table has %lld", b->table,
                       (long long)a->length, (long long)b->t->count);
    const uint8_t *valid =
        a->n_buffers > 0 && a->null_count != 0 && a->buffers ? a->buffers[0] : NULL;
    for (int64_t i = 0; valid && i < a->length; i++)
        if (!(valid[(a->offset + i) >> 3] >> ((a->offset + i) & 7) & 1))
            return rt_fail(err, GNNC_E_VALUE, "%s: row %lld is null as a whole", b->table,
                           (long long)i);
    return GNNC_OK;
}

/* Has the batch a column for each kind that the caller states? */
static gnnc_status check_kinds(const Batch *b) {
    for (int k = 0; k < b->n_kinds; k++) {
        bool found = false;
        for (int64_t i = 0; i < b->schema.n_children && b->columns[k]; i++) {
            const struct ArrowSchema *c = b->schema.children[i];
            found |= c && c->name && strcmp(c->name, b->columns[k]) == 0;
        }
        if (!found)
            return rt_fail(&b->g->err, GNNC_E_MISSING, "%s: the batch has no column '%s'", b->table,
                           b->columns[k] ? b->columns[k] : "");
    }
    return GNNC_OK;
}

/* The kind of a column: as the caller says, else as its Arrow type is read. */
static gnnc_status kind_of(const Batch *b, RtField *f) {
    for (int k = 0; k < b->n_kinds; k++) {
        if (strcmp(b->columns[k], f->schema->name) != 0) continue;
        f->kind = b->kinds[k];
        return GNNC_OK;
    }
    return rt_field_kind(f, &f->kind, &b->g->err);
}

/* Adds column i of the batch to the table. b->kept: the graph reads its memory in place, so the
 * batch must stay. */
static gnnc_status add_field(Batch *b, int64_t i) {
    RtField f = {.schema = b->schema.children[i], .array = b->array->children[i]};
    gnnc_status st;
    bool kept = false;
    if (!f.schema || !f.array || !f.schema->name)
        return rt_fail(&b->g->err, GNNC_E_ARG, "%s: column %lld of the batch has no name", b->table,
                       (long long)i);
    f.where = rt_pool_printf(&b->scratch, "%s.%s", b->table, f.schema->name);
    if (!f.where) return rt_fail_nomem(&b->g->err, b->table);
    f.n = b->array->length;
    if (f.array->offset < 0 || __builtin_add_overflow(f.array->offset, b->array->offset, &f.start))
        return rt_fail(&b->g->err, GNNC_E_ARG, "%s: its offset is negative", f.where);
    TRY(st, kind_of(b, &f));
    TRY(st, rt_field_read(&f, &b->scratch, &b->g->err));
    st = rt_graph_add_column(b->g, b->table, f.schema->name, f.kind, &f.out, f.n_categories,
                             f.names, &kept);
    b->kept |= kept;
out:
    return st;
}

/* Adds all columns or none: after a failure the table's columns are those of before. */
static gnnc_status add_fields(Batch *b) {
    gnnc_status st = GNNC_OK;
    int n = b->t->n_columns;
    RtColumn *before = RT_NEWN(&b->scratch, RtColumn, n);
    RtLoan *loans = b->g->loans;
    if (!before) return rt_fail_nomem(&b->g->err, b->table);
    if (n) memcpy(before, b->t->columns, (size_t)n * sizeof *before);
    for (int64_t i = 0; i < b->schema.n_children && st == GNNC_OK; i++) st = add_field(b, i);
    if (st == GNNC_OK) return st;
    if (n) memcpy(b->t->columns, before, (size_t)n * sizeof *before);
    b->t->n_columns = n;
    b->g->loans = loans; /* none of the columns' has anybody to tell */
    return st;
}

/* Adds all columns of a batch to the table; what is read in place is released with the graph. */
static gnnc_status add_batch(Batch *b) {
    gnnc_status st;
    RtLoan *loan = RT_NEW(&b->g->data->pool, RtLoan);
    if (!loan) return rt_fail_nomem(&b->g->err, b->table);
    if (!(b->t = rt_graph_table(b->g, b->table))) return GNNC_E_MISSING;
    TRY(st, check_batch(b));
    TRY(st, check_kinds(b));
    TRY(st, add_fields(b));
    if (!b->kept) return GNNC_OK;
    *loan = (RtLoan){b->g->loans, release_array, b->array, b->t->name};
    b->g->loans = loan;
out:
    return st;
}

/* Checks the arguments. A batch that was released already has nothing to read. */
static gnnc_status begin(gnnc_graph *g, const char *table, const struct ArrowSchema *schema,
                         const struct ArrowArray *array, const Batch *b) {
    if (!g || !table || !schema || !array)
        return rt_graph_null(g, !table ? "table" : !schema ? "schema" : "array");
    if (b->n_kinds > 0 && (!b->columns || !b->kinds))
        return rt_graph_null(g, b->columns ? "kinds" : "columns");
    gnnc_status st = rt_graph_begin(g);
    if (st != GNNC_OK) return st;
    if (schema->release && array->release) return GNNC_OK;
    return rt_fail(&g->err, GNNC_E_ARG, "%s: the batch was released already", table);
}

gnnc_status gnnc_graph_add_arrow(gnnc_graph *g, const char *table, struct ArrowSchema *schema,
                                 struct ArrowArray *array, int n_kinds, const char *const *columns,
                                 const gnnc_kind *kinds) {
    Batch b = {.g = g, .table = table, .n_kinds = n_kinds, .columns = columns, .kinds = kinds};
    gnnc_status st = begin(g, table, schema, array, &b);
    if (st == GNNC_OK && !(b.array = RT_NEW(&g->data->pool, struct ArrowArray)))
        st = rt_fail_nomem(&g->err, table);
    if (st == GNNC_OK) {
        b.schema = *schema; /* moved, as the interface says: the caller's are released ones now */
        *b.array = *array;
        schema->release = NULL;
        array->release = NULL;
        rt_pool_init(&b.scratch, &g->from);
        st = add_batch(&b);
        if (st != GNNC_OK || !b.kept) release_array(b.array);
        b.schema.release(&b.schema);
        rt_pool_free(&b.scratch);
        return st;
    }
    if (schema && schema->release) schema->release(schema);
    if (array && array->release) array->release(array);
    return st;
}
