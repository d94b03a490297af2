#include "import_index.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "import_table.h"
#include "runtime/data/number.h"

void *rt_import_reserve(RtPool *pool, int64_t n, size_t size, RtError *err) {
    enum { LARGE = 4 << 20 };
    void *p = NULL;
    size_t bytes;
    if (n < 0 || __builtin_mul_overflow((size_t)n, size, &bytes))
        return rt_fail_nomem(err, "import"), NULL;
    if (bytes >= LARGE)
        rt_file_scratch(pool, bytes, &p, err);
    else if (!(p = rt_pool_alloc(pool, bytes, 1)))
        rt_fail_nomem(err, "import");
    return p;
}

/* Begins an index over these columns of the table. */
void rt_key_index_init(RtKeyIndex *x, RtPool *pool, const RtSourceTable *t, const RtKeyColumns *c) {
    *x = (RtKeyIndex){.pool = pool, .n = c->n, .n_rows = t->n_rows};
    rt_dict_init(&x->dict, pool);
    for (int i = 0; i < c->n; i++) {
        rt_declared type = t->columns[c->at[i]].declared;
        x->column[i] = c->at[i];
        x->number[i] = type == RT_DECLARED_INTEGER || type == RT_DECLARED_REAL;
        x->text[i] = type == RT_DECLARED_TEXT;
    }
}

/* ---- a key's form ------------------------------------------------------------------- */
/* The number as a cell: a whole one as an integer, so that both are the same key. */
static RtDatum of_real(double d) {
    if (d == floor(d) && fabs(d) < 0x1p53)
        return (RtDatum){.type = RT_DATUM_INTEGER, .i = (int64_t)d};
    return (RtDatum){.type = RT_DATUM_REAL, .d = d};
}

/* The cell as all cells of the same value have it; `digits` is room for a number. */
static RtDatum plain(const RtKeyIndex *x, int i, const RtDatum *c, char digits[32]) {
    int64_t v;
    double d;
    RtDatum p = c->type == RT_DATUM_REAL ? of_real(c->d) : *c;
    if (p.type == RT_DATUM_TEXT && x->number[i]) {
        if (rt_cell_integer(p.s, &v)) return (RtDatum){.type = RT_DATUM_INTEGER, .i = v};
        if (rt_cell_number(p.s, &d)) return of_real(d);
    }
    if (p.type == RT_DATUM_INTEGER && x->text[i]) {
        int n = snprintf(digits, 32, "%lld", (long long)p.i);
        return (RtDatum){.type = RT_DATUM_TEXT, .n = (size_t)n, .s = digits};
    }
    return p;
}

/* Has the key a part that is NULL, so that it leads to no row? */
static bool has_null(const RtKeyIndex *x, const RtDatum *const *key) {
    for (int i = 0; i < x->n; i++)
        if (key[i]->type == RT_DATUM_NULL || key[i]->type == RT_DATUM_BLOB) return true;
    return false;
}

/* Makes room for n bytes in the buffer; false: no memory. */
static bool more_room(RtKeyIndex *x, size_t n) {
    if (n <= x->buffer_n) return true;
    size_t room = n < 256 ? 256 : 2 * n;
    char *p = rt_pool_alloc(x->pool, room, 1);
    if (!p) return false;
    if (x->buffer) memcpy(p, x->buffer, x->buffer_n);
    rt_pool_drop(x->pool, x->buffer);
    x->buffer = p;
    x->buffer_n = room;
    return true;
}

/* Type, length and bytes of each cell: no two keys have the same; -1: no memory. */
static int64_t written(RtKeyIndex *x, const RtDatum *const *key) {
    size_t at = 0;
    for (int i = 0; i < x->n; i++) {
        char digits[32];
        RtDatum p = plain(x, i, key[i], digits);
        bool text = p.type == RT_DATUM_TEXT;
        size_t n = text ? p.n : sizeof p.i;
        if (!more_room(x, at + 1 + sizeof n + n)) return -1;
        x->buffer[at++] = (char)p.type;
        memcpy(x->buffer + at, &n, sizeof n);
        at += sizeof n;
        memcpy(x->buffer + at, text ? (const void *)p.s : (const void *)&p.i, n);
        at += n;
    }
    return (int64_t)at;
}

/* ---- whole numbers --------------------------------------------------------------------- */
/* Is the key one whole number? */
static bool is_whole(const RtKeyIndex *x, const RtDatum *const *key, int64_t *v) {
    char digits[32];
    if (x->n != 1) return false;
    RtDatum p = plain(x, 0, key[0], digits);
    *v = p.i;
    return p.type == RT_DATUM_INTEGER;
}

/* The slot of a whole number, or the free one where it would be; there is always a free one. */
static int64_t slot_of(const RtKeyIndex *x, int64_t v) {
    uint64_t h = (uint64_t)v * 0x9e3779b97f4a7c15u;
    for (uint64_t i = h ^ h >> 32;; i++) {
        int64_t at = (int64_t)(i & (uint64_t)(x->cap - 1));
        if (!x->whole_row[at] || x->whole[at] == v) return at;
    }
}

/* Makes room for all rows of the table, a quarter staying free. */
static gnnc_status make_slots(RtKeyIndex *x, RtError *err) {
    int64_t cap = 16;
    while (cap / 4 * 3 < x->n_rows) cap *= 2;
    x->whole = rt_import_reserve(x->pool, cap, sizeof *x->whole, err);
    x->whole_row = x->whole ? rt_import_reserve(x->pool, cap, sizeof *x->whole_row, err) : NULL;
    if (x->whole_row) x->cap = cap;
    return x->cap ? GNNC_OK : GNNC_E_NOMEM;
}

/* ---- keys --------------------------------------------------------------------------------- */
/* Adds a key that is a text of n bytes in the buffer. *first: the row that has it, `row` if it is
 * new. */
static gnnc_status add_text(RtKeyIndex *x, int64_t n, int32_t row, int32_t *first, RtError *err) {
    int64_t before = x->dict.n, k = n < 0 ? -1 : rt_dict_add(&x->dict, x->buffer, (size_t)n);
    if (k < 0) return rt_fail_nomem(err, "keys");
    if (x->dict.n == before) {
        *first = x->dict_row[k];
        return GNNC_OK;
    }
    if (k == x->dict_room) {
        int64_t room = k ? 2 * k : 64;
        int32_t *rows = RT_NEWN(x->pool, int32_t, room);
        if (!rows) return rt_fail_nomem(err, "keys");
        if (k) memcpy(rows, x->dict_row, (size_t)k * sizeof *rows);
        rt_pool_drop(x->pool, x->dict_row);
        x->dict_row = rows;
        x->dict_room = room;
    }
    x->dict_row[k] = *first = row;
    return GNNC_OK;
}

gnnc_status rt_key_index_add(RtKeyIndex *x, const RtDatum *const *key, int32_t row, int32_t *first,
                             RtError *err) {
    int64_t v;
    *first = -1;
    if (has_null(x, key)) return GNNC_OK;
    if (!is_whole(x, key, &v)) return add_text(x, written(x, key), row, first, err);
    gnnc_status st = x->cap ? GNNC_OK : make_slots(x, err);
    if (st != GNNC_OK) return st;
    int64_t at = slot_of(x, v);
    if (!x->whole_row[at]) {
        x->whole[at] = v;
        x->whole_row[at] = row + 1;
    }
    *first = x->whole_row[at] - 1;
    return GNNC_OK;
}

gnnc_status rt_key_index_find(RtKeyIndex *x, const RtDatum *const *key, int32_t *row,
                              RtError *err) {
    int64_t v;
    *row = -1;
    if (has_null(x, key)) return GNNC_OK;
    if (is_whole(x, key, &v)) {
        if (x->cap) *row = x->whole_row[slot_of(x, v)] - 1;
        return GNNC_OK;
    }
    int64_t n = written(x, key);
    if (n < 0) return rt_fail_nomem(err, "keys");
    int64_t k = rt_dict_find(&x->dict, x->buffer, (size_t)n);
    if (k >= 0) *row = x->dict_row[k];
    return GNNC_OK;
}
