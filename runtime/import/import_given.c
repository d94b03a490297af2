#include "import_given.h"

#include <string.h>

#include "import_build.h"

/* Copies the n characters of a name; false: there are none, or too many. */
static bool take(char *to, size_t room, const char *s, size_t n) {
    if (!n || n >= room) return false;
    memcpy(to, s, n);
    to[n] = '\0';
    return true;
}

bool rt_given_parse(const char *text, RtNpyColumn *out) {
    const char *eq = strchr(text, '='), *dot = strchr(text, '.');
    if (!eq || !dot || dot > eq || !eq[1]) return false;
    out->path = eq + 1;
    return take(out->table, sizeof out->table, text, (size_t)(dot - text)) &&
           take(out->column, sizeof out->column, dot + 1, (size_t)(eq - dot - 1));
}

static RtTable *find_table(const RtDataset *d, const char *name) {
    const RtTable *t = rt_dataset_nodes(d, name);
    return (RtTable *)(uintptr_t)(t ? t : rt_dataset_edges(d, name)); /* the import's own */
}

/* Has the array a row for each of the table's? */
static gnnc_status check_rows(const RtTable *t, const RtNpyColumn *v, const RtArray *a,
                              RtError *err) {
    bool rows = a->rank == 1 || (a->rank == 2 && a->shape[1] > 0);
    if (!rows)
        return rt_fail(err, GNNC_E_SHAPE,
                       "%s: [rows] or [rows, width] is expected, not %d dimensions", v->path,
                       a->rank);
    if (a->shape[0] == t->count) return GNNC_OK;
    return rt_fail(err, GNNC_E_SHAPE, "%s: %lld rows for the %lld of '%s'", v->path,
                   (long long)a->shape[0], (long long)t->count, t->name);
}

/* Adds a column that comes ready made from an .npy file. */
static gnnc_status add(RtDataset *d, const RtNpyColumn *v, RtError *err) {
    RtPool *pool = &d->pool;
    RtTable *t = find_table(d, v->table);
    const char *name = rt_identifier(pool, v->column, strlen(v->column));
    RtArray a;
    gnnc_status st;
    if (!name) return rt_fail_nomem(err, v->column);
    if (!t)
        return rt_fail(err, GNNC_E_MISSING, "--given %s.%s: there is no table '%s'", v->table,
                       v->column, v->table);
    if (rt_table_column(t, name))
        return rt_fail(
            err, GNNC_E_FORMAT,
            "--given %s.%s: there is such a column; another name, or '%s.%s drop' in the "
            "file of --map",
            v->table, v->column, v->table, v->column);
    TRY(st, rt_npy_open(pool, v->path, &a, err));
    TRY(st, check_rows(t, v, &a, err));
    RtColumn c = {.name = name, .kind = RT_COL_FLOAT, .n_rows = t->count, .rank = a.rank};
    memcpy(c.shape, a.shape, sizeof c.shape);
    c.stored = RT_DT_F32;
    c.why = rt_pool_printf(pool, "given as %.120s", v->path);
    RtColumn *to = c.why ? rt_table_add_column(pool, t) : NULL;
    if (!to) return rt_fail_nomem(err, name);
    *to = c;
    TRY(st, rt_array_as(pool, &a, RT_DT_F32, v->path, &to->values, err));
    st = rt_column_check(to, t->name, err);
out:
    return st;
}

gnnc_status rt_import_given(RtDataset *d, const RtNpyColumn *v, int n, RtError *err) {
    gnnc_status st = GNNC_OK;
    for (int i = 0; i < n && st == GNNC_OK; i++) st = add(d, &v[i], err);
    return st;
}
