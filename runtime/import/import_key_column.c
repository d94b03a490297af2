#include "import_key_column.h"

#include <stdio.h>
#include <string.h>

#include "import_datum.h"
#include "import_index.h"
#include "import_table.h"
#include "runtime/data/number.h"

/* Is the key's cell a whole number? Texts count in columns that are not declared as text. */
static bool is_whole(const RtKeyColumn *k, const RtDatum *c, int64_t *v) {
    rt_declared type = k->t->columns[k->t->key.at[0]].declared;
    if (c->type == RT_DATUM_INTEGER) return *v = c->i, true;
    return c->type == RT_DATUM_TEXT && type != RT_DECLARED_TEXT && type != RT_DECLARED_TIME &&
           rt_cell_key(c->s, v);
}

/* The key as a text, "10248,11" of two columns; NULL: no memory. */
static const char *text_of(RtKeyColumn *k, const RtDatum *const *key) {
    char joined[1024];
    size_t at = 0;
    int n = k->t->key.n;
    if (n == 1 && key[0]->type == RT_DATUM_TEXT)
        return rt_dict_keep(&k->texts, key[0]->s, key[0]->n);
    for (int i = 0; i < n && at < sizeof joined - 1; i++) {
        RtQuoted number = rt_datum_shown(key[i]);
        at += (size_t)snprintf(joined + at, sizeof joined - at, "%s%s", i ? "," : "",
                               key[i]->type == RT_DATUM_TEXT ? key[i]->s : number.s);
    }
    return rt_dict_keep(&k->texts, joined, strlen(joined));
}

/* Keeps keys as texts from row `row` on; those before it get their numbers as names. */
static gnnc_status begin_texts(RtKeyColumn *k, int64_t row) {
    char digits[32];
    k->all_integers = false;
    k->names = rt_import_reserve(k->keep, k->t->n_rows, sizeof *k->names, k->err);
    if (!k->names) return GNNC_E_NOMEM;
    for (int64_t i = 0; k->numbers && i < row; i++) {
        int n = snprintf(digits, sizeof digits, "%lld", (long long)k->numbers[i]);
        if (!(k->names[i] = rt_dict_keep(&k->texts, digits, (size_t)n)))
            return rt_fail_nomem(k->err, k->t->name);
    }
    return GNNC_OK;
}

gnnc_status rt_key_column_begin(RtKeyColumn *k, RtPool *keep, const RtSourceTable *t,
                                RtError *err) {
    *k = (RtKeyColumn){.t = t, .keep = keep, .err = err};
    rt_dict_init(&k->texts, keep);
    k->all_integers = t->key.n == 1 && t->columns[t->key.at[0]].declared != RT_DECLARED_TEXT;
    if (!t->key.n) return GNNC_OK;
    if (!k->all_integers) return begin_texts(k, 0);
    k->numbers = rt_import_reserve(keep, t->n_rows, sizeof *k->numbers, err);
    return k->numbers ? GNNC_OK : GNNC_E_NOMEM;
}

gnnc_status rt_key_column_add(RtKeyColumn *k, const RtDatum *const *key, int64_t row) {
    int64_t v;
    if (k->all_integers && is_whole(k, key[0], &v)) {
        k->numbers[row] = v;
        return GNNC_OK;
    }
    gnnc_status st = k->all_integers ? begin_texts(k, row) : GNNC_OK;
    if (st == GNNC_OK && !(k->names[row] = text_of(k, key))) st = rt_fail_nomem(k->err, k->t->name);
    return st;
}

/* Stores the primary keys of a table as a column of ids where all are integers, else as names. */
gnnc_status rt_key_column_end(RtKeyColumn *k, RtBuild *b, RtTable *node) {
    const RtSourceColumn *column = k->t->key.n ? &k->t->columns[k->t->key.at[0]] : NULL;
    if (!column) return GNNC_OK;
    if (!k->all_integers) node->names = k->names;
    if (!k->all_integers || column->kind == RT_KIND_SKIP) return GNNC_OK;
    RtColumn *c = rt_build_column(b, node, RT_COL_ID, column->name);
    if (!c) return b->st;
    c->i64 = k->numbers;
    c->why = "key of the table";
    c->encoder = rt_key_encoder(k->keep, c->name);
    return c->encoder ? GNNC_OK : rt_fail_nomem(b->err, node->name);
}
