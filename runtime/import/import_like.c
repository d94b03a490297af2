#include "import_like.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import_build.h"

typedef struct {
    RtPool *keep, *scratch;
    const RtCsv *t;
    const RtFieldsWanted *wanted;
    const RtEncoders *like;
    const char **name; /* [columns] as the language has them; NULL: a key, or dropped */
    int *number;       /* [columns] k of a header x.k, else -1 */
    bool *used;
    RtError *err;
} Like;

/* ---- raw columns ---------------------------------------------------------------------- */
/* Cuts a header such as "x.3" into name and number (-1: it has none); false: no memory. */
static bool read_header(Like *x, int col) {
    const char *header = x->t->header[col];
    size_t n = strcspn(header, ":"), base = n;
    while (base && header[base - 1] >= '0' && header[base - 1] <= '9') base--;
    bool numbered = base > 1 && base < n && header[base - 1] == '.';
    x->number[col] = numbered && n - base < 8 ? atoi(header + base) : -1;
    x->name[col] = rt_identifier(x->scratch, header, numbered ? base - 1 : n);
    return x->name[col];
}

/* Finds for each column that is imported its name, and which column of the reference data it is
 * made like. */
static gnnc_status read_headers(Like *x) {
    int n = x->t->n_columns;
    x->name = RT_NEWN(x->scratch, const char *, n);
    x->number = RT_NEWN(x->scratch, int, n);
    x->used = RT_NEWN(x->scratch, bool, n);
    bool ok = x->name && x->number && x->used;
    for (int i = 0; i < n && ok; i++) ok = x->wanted->kind[i] == RT_KIND_SKIP || read_header(x, i);
    return ok ? GNNC_OK : rt_fail_nomem(x->err, x->t->name);
}

/* The raw column `from`, or from.k; -1: there is none, -2: there are two. */
static int find_raw(const Like *x, const char *from, int k) {
    int found = -1;
    for (int i = 0; i < x->t->n_columns; i++) {
        if (!x->name[i] || x->number[i] != k || strcmp(x->name[i], from) != 0) continue;
        found = found == -1 ? i : -2;
    }
    return found;
}

/* Lists the names of the file's columns for a message. */
static void list_headers(const Like *x, char *to, size_t n) {
    size_t at = 0;
    *to = '\0';
    for (int i = 0; i < x->t->n_columns && at < n; i++)
        at += (size_t)snprintf(to + at, n - at, "%s'%.*s'", i ? ", " : "",
                               (int)strcspn(x->t->header[i], ":") % 40, x->t->header[i]);
}

/* Fails: the file lacks a column that the other import has, or has two that may be it (found
 * -2). */
static gnnc_status no_raw(const Like *x, const RtEncoding *k, int i, int found) {
    char number[16] = "", headers[240];
    if (k->e.width) snprintf(number, sizeof number, ".%d", i);
    list_headers(x, headers, sizeof headers);
    return rt_fail(x->err, found == -2 ? GNNC_E_FORMAT : GNNC_E_MISSING,
                   "%s: row 1: %s column '%.60s%s' for '%s.%s' of %s; there are %s", x->t->name,
                   found == -2 ? "two are the" : "there is no", k->e.from, number, k->table,
                   k->column, x->like->of, headers);
}

/* ---- fields --------------------------------------------------------------------------- */
/* Fails if the header or the mapping says another kind than the model has. */
static gnnc_status check_kind(const Like *x, const RtEncoding *k, int col) {
    const char *header = x->t->header[col], *colon = strchr(header, ':');
    int kind = x->wanted->kind[col];
    const RtWish *w = &x->wanted->wish[col];
    rt_col_kind said = (rt_col_kind)kind;
    if (w->scaled || w->as || w->unknown || w->known)
        return rt_fail(x->err, GNNC_E_ARG,
                       "%s: column '%s': how '%s.%s' is made %s says, not the mapping", x->t->name,
                       x->name[col], k->table, k->column, x->like->of);
    if (kind < 0 && (!colon || !rt_col_kind_find(colon + 1, &said))) return GNNC_OK;
    if (said == k->e.kind || k->e.as == RT_AS_MISSING) return GNNC_OK;
    return rt_fail(x->err, GNNC_E_ARG,
                   "%s: row 1: column '%s' is said to be %s, '%s.%s' of %s is %s", x->t->name,
                   x->name[col], rt_col_kind_name(said), k->table, k->column, x->like->of,
                   rt_col_kind_name(k->e.kind));
}

/* Makes a field as the other import has it. Only labels may be missing. */
static gnnc_status add_field(Like *x, const RtEncoding *k, RtFields *out) {
    int width = rt_encoder_cells(&k->e);
    int *place = RT_NEWN(x->scratch, int, width);
    RtField *f = &out->v[out->n];
    gnnc_status st = GNNC_OK;
    if (!place) return rt_fail_nomem(x->err, x->t->name);
    for (int i = 0; i < width; i++) {
        place[i] = find_raw(x, k->e.from, k->e.width ? i : -1);
        if (place[i] == -1 && k->label) {
            rt_import_warn(x->wanted->how,
                           "%s: there is no '%s', which %s has: rows have no labels", x->t->name,
                           k->e.from, x->like->of);
            return GNNC_OK;
        }
        if (place[i] < 0) return no_raw(x, k, i, place[i]);
        TRY(st, check_kind(x, k, place[i]));
        x->used[place[i]] = true;
        if (k->e.as == RT_AS_NUMBER) TRY(st, rt_column_commas(x->t, place[i], x->wanted, x->err));
    }
    *f = (RtField){.name = rt_pool_strndup(x->keep, k->column, strlen(k->column)),
                   .kind = k->e.kind,
                   .why = rt_pool_printf(x->keep, "as %.120s has it", x->like->of),
                   .width = width,
                   .out = k->e.out,
                   .matrix = rt_encoder_values(&k->e) > 0,
                   .place = place,
                   .encoder = RT_NEW(x->keep, RtEncoder)};
    if (!f->name || !f->why || !f->encoder || !rt_field_reserve(x->keep, x->wanted->how, x->t, f))
        return rt_fail_nomem(x->err, x->t->name);
    *f->encoder = k->e;
    out->n++;
out:
    return st;
}

/* Tells which columns of the file are left out, as the other import has none of them. */
static void tell_others(const Like *x) {
    for (int i = 0; i < x->t->n_columns; i++)
        if (x->name[i] && !x->used[i])
            rt_import_warn(x->wanted->how, "%s: column '%s' is left out: %s has none of it in '%s'",
                           x->t->name, x->t->header[i], x->like->of, x->wanted->table);
}

/* Keys are the new table's own. */
gnnc_status rt_fields_like(RtPool *keep, RtPool *scratch, const RtCsv *t,
                           const RtFieldsWanted *wanted, RtFields *out, RtError *err) {
    const RtEncoders *like = wanted->how->like;
    Like x = {keep, scratch, t, wanted, like, .err = err};
    gnnc_status st;
    TRY(st, read_headers(&x));
    if (!(out->v = RT_NEWN(keep, RtField, like->n + 1))) return rt_fail_nomem(err, t->name);
    for (int i = 0; i < like->n; i++) {
        const RtEncoding *k = &like->v[i];
        if (strcmp(k->table, wanted->table) != 0 || k->e.as == RT_AS_KEY) continue;
        TRY(st, add_field(&x, k, out));
    }
    tell_others(&x);
out:
    return st;
}

gnnc_status rt_import_like_check(const RtDataset *d, const RtEncoders *like, const char *input,
                                 RtError *err) {
    for (int i = 0; i < like->n; i++) {
        const char *name = like->v[i].table;
        if (rt_dataset_nodes(d, name) || rt_dataset_edges(d, name) || rt_dataset_graphs(d, name))
            continue;
        return rt_fail(err, GNNC_E_MISSING, "%s: there is no table '%s', which %s has", input, name,
                       like->of);
    }
    return GNNC_OK;
}
