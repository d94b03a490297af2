/* Values of Arrow arrays.  What has no nulls and is a number stays where it lies; bits become
 * bytes, times seconds, texts codes by their sorted names, and nulls what the kind has for
 * "unknown". */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph_arrow.h"
#include "runtime/data/names.h"

typedef struct ArrowArray Array;

/* ---- types ------------------------------------------------------------------------------ */
typedef enum { NONE, NUMBER, BITS, TIME, TEXT, CODED, LIST } Sort;

/* The element type of a format of one letter; 0: it is none of a number. */
static int32_t number_of(const char *format) {
    static const char letters[] = "efgcsilCSIL";
    static const gnnc_element is[] = {GNNC_DT_F16, GNNC_DT_F32, GNNC_DT_F64, GNNC_DT_I8,
                                      GNNC_DT_I16, GNNC_DT_I32, GNNC_DT_I64, GNNC_DT_U8,
                                      GNNC_DT_U16, GNNC_DT_U32, GNNC_DT_U64};
    const char *at = *format && !format[1] ? strchr(letters, *format) : NULL;
    return at ? (int32_t)is[at - letters] : 0;
}

/* Units of a time per second, and how wide it is; days are negative: seconds per unit. */
static bool time_of(const char *format, int64_t *per_second, bool *wide) {
    static const struct {
        const char *format;
        int64_t per_second;
    } known[] = {{"tdD", -86400}, {"tdm", 1000},     {"tss:", 1},
                 {"tsm:", 1000},  {"tsu:", 1000000}, {"tsn:", 1000000000}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strncmp(format, known[i].format, strlen(known[i].format)) != 0) continue;
        *per_second = known[i].per_second;
        *wide = i > 0;
        return true;
    }
    return false;
}

/* The width of a list of fixed size, 3 of "+w:3"; -1: it is none. */
static int64_t width_of(const char *format) {
    char *end;
    if (strncmp(format, "+w:", 3) != 0) return -1;
    long long n = strtoll(format + 3, &end, 10);
    return *end || n < 1 || n > INT32_MAX ? -1 : n;
}

static bool is_text(const char *format) {
    return !strcmp(format, "u") || !strcmp(format, "U");
}

/* How a field's cells are read, by its Arrow format; NONE: they are not read here. */
static Sort sort_of(const struct ArrowSchema *s) {
    int64_t unit;
    bool wide;
    if (!s->format) return NONE;
    if (s->dictionary) return number_of(s->format) > GNNC_DT_F64 ? CODED : NONE;
    if (number_of(s->format)) return NUMBER;
    if (!strcmp(s->format, "b")) return BITS;
    if (time_of(s->format, &unit, &wide)) return TIME;
    if (is_text(s->format)) return TEXT;
    return width_of(s->format) > 0 && s->n_children == 1 && s->children ? LIST : NONE;
}

/* Fails: cells of this Arrow format cannot be a column of this kind. */
static gnnc_status no_kind(const RtField *f, RtError *err) {
    return rt_fail(err, GNNC_E_DTYPE,
                   "%s: Arrow's format '%.32s' is not read here, or not as this kind", f->where,
                   f->schema->format ? f->schema->format : "");
}

gnnc_status rt_field_kind(const RtField *f, gnnc_kind *kind, RtError *err) {
    Sort s = sort_of(f->schema);
    *kind = s == TIME ? GNNC_COL_TIME : s == TEXT || s == CODED ? GNNC_COL_CAT : GNNC_COL_FLOAT;
    return s == NONE ? no_kind(f, err) : GNNC_OK;
}

/* ---- buffers ---------------------------------------------------------------------------- */
static bool is_set(const uint8_t *bits, int64_t i) {
    return bits[i >> 3] >> (i & 7) & 1;
}

static bool is_null(const Array *a, int64_t i) {
    const uint8_t *bits = a->n_buffers > 0 && a->null_count != 0 ? a->buffers[0] : NULL;
    return bits && !is_set(bits, i);
}

/* Rows up to `end`, with so many buffers, of which the second holds elements of so many bytes.  The
 * interface lets a consumer refuse what is not aligned to these. */
static gnnc_status check_array(const RtField *f, const Array *a, int64_t end, int64_t n_buffers,
                               size_t element, RtError *err) {
    bool ok = a && a->offset >= 0 && a->length >= 0 && end - a->offset <= a->length &&
              a->n_buffers == n_buffers && a->buffers;
    const void *values = ok && n_buffers > 1 ? a->buffers[1] : NULL;
    if (!ok || (n_buffers > 1 && a->length > 0 && !values))
        return rt_fail(err, GNNC_E_ARG, "%s: an Arrow array without its rows or its buffers",
                       f->where);
    if ((uintptr_t)values % element == 0) return GNNC_OK;
    return rt_fail(err, GNNC_E_ARG, "%s: an Arrow buffer that is not aligned to its elements",
                   f->where);
}

static gnnc_status null_row(const RtField *f, int64_t row, RtError *err) {
    return rt_fail(err, GNNC_E_VALUE, "%s: row %lld is null, and the kind has no value for that",
                   f->where, (long long)row);
}

/* The field's column: an array of n rows, or of n rows of `width` elements. */
static void set_out(RtField *f, gnnc_element type, int64_t width, const void *data) {
    f->out = (gnnc_array){.struct_size = sizeof f->out,
                          .data = data,
                          .dtype = (int32_t)type,
                          .rank = width ? 2 : 1,
                          .shape = {f->n, width}};
}

/* ---- numbers and bits, single or in lists of one length ------------------------------------ */
typedef struct {
    const Array *row, *item; /* item: of lists; else NULL */
    int64_t row_start, item_start, width;
    int64_t n;
    RtArray values;
} Cells;

static bool is_unknown(const Cells *c, int64_t i) {
    return is_null(c->row, c->row_start + i / c->width) ||
           (c->item && is_null(c->item, c->item_start + i));
}

/* The first cell that is null, or n. */
static int64_t first_unknown(const Cells *c) {
    int64_t i = 0;
    while (i < c->n && !is_unknown(c, i)) i++;
    return i;
}

/* Finds the n cells from `start` on; single bits are widened to bytes, in `scratch`. */
static gnnc_status open_values(const RtField *f, const struct ArrowSchema *s, const Array *a,
                               int64_t start, RtPool *scratch, Cells *c, RtError *err) {
    int32_t type = number_of(s->format);
    c->values = (RtArray){.rank = 1, .shape = {c->n}, .count = c->n};
    c->values.dt = type ? (RtDtype)(type - 1) : RT_DT_BOOL;
    size_t element = rt_dtype_bytes(c->values.dt);
    gnnc_status st = check_array(f, a, start + c->n, 2, element, err);
    if (st != GNNC_OK) return st;
    if (type) {
        const char *p = a->buffers[1];
        c->values.data = p ? p + (size_t)start * element : NULL;
        return GNNC_OK;
    }
    uint8_t *bytes = RT_NEWN(scratch, uint8_t, c->n);
    if (!bytes) return rt_fail_nomem(err, f->where);
    for (int64_t i = 0; i < c->n; i++) bytes[i] = is_set(a->buffers[1], start + i);
    c->values.data = bytes;
    return GNNC_OK;
}

/* Finds the cells of a field; of a list of fixed width its elements, side by side. */
static gnnc_status open_cells(const RtField *f, RtPool *scratch, Cells *c, RtError *err) {
    *c = (Cells){.row = f->array, .row_start = f->start, .width = 1, .n = f->n};
    if (sort_of(f->schema) != LIST)
        return open_values(f, f->schema, f->array, f->start, scratch, c, err);
    const struct ArrowSchema *of = f->schema->children[0];
    gnnc_status st = check_array(f, f->array, f->start + f->n, 1, 1, err);
    Sort s = of ? sort_of(of) : NONE;
    if (st != GNNC_OK || (s != NUMBER && s != BITS)) return st != GNNC_OK ? st : no_kind(f, err);
    if (f->array->n_children != 1 || !f->array->children || !f->array->children[0])
        return rt_fail(err, GNNC_E_ARG, "%s: a list without its values", f->where);
    c->width = width_of(f->schema->format);
    c->item = f->array->children[0];
    if (__builtin_mul_overflow(f->n, c->width, &c->n) ||
        __builtin_mul_overflow(f->start, c->width, &c->item_start))
        return rt_fail(err, GNNC_E_SHAPE, "%s: too many values", f->where);
    c->item_start += c->item->offset;
    return open_values(f, of, c->item, c->item_start, scratch, c, err);
}

/* Nulls as NaN, of classes -1, of splits none. */
static gnnc_status without_nulls(RtField *f, const Cells *c, RtPool *scratch, RtError *err) {
    bool real = f->kind == GNNC_COL_MULTILABEL || f->kind == GNNC_COL_TIME ||
                (f->kind == GNNC_COL_CLASS && rt_dtype_kind(c->values.dt) == 'f');
    double *wide = real ? RT_NEWN(scratch, double, c->n) : NULL;
    int64_t *whole = real ? NULL : RT_NEWN(scratch, int64_t, c->n);
    if (!wide && !whole) return rt_fail_nomem(err, f->where);
    for (int64_t i = 0; i < c->n; i++) {
        bool unknown = is_unknown(c, i);
        if (real)
            wide[i] = unknown ? NAN : rt_array_f64(&c->values, i);
        else if (unknown)
            whole[i] = f->kind == GNNC_COL_CLASS ? -1 : 0;
        else
            whole[i] = rt_array_i64(&c->values, i);
    }
    f->out.data = real ? (const void *)wide : whole;
    f->out.dtype = real ? GNNC_DT_F64 : GNNC_DT_I64;
    f->out.borrowed = 0;
    return GNNC_OK;
}

/* Reads numbers or bits, in place where it can. Nulls fail, or become unknown, as the kind says. */
static gnnc_status read_cells(RtField *f, RtPool *scratch, RtError *err) {
    Cells c;
    gnnc_status st = open_cells(f, scratch, &c, err);
    if (st != GNNC_OK) return st;
    bool list = sort_of(f->schema) == LIST;
    set_out(f, (gnnc_element)(c.values.dt + 1), list ? c.width : 0, c.values.data);
    f->out.borrowed = c.values.dt != RT_DT_BOOL;
    int64_t at = first_unknown(&c);
    if (at == c.n) return GNNC_OK;
    if (f->kind == GNNC_COL_FLOAT || f->kind == GNNC_COL_CAT || f->kind == GNNC_COL_ID)
        return null_row(f, at / c.width, err);
    if (f->kind == GNNC_COL_SPLIT && rt_dtype_kind(c.values.dt) == 'f')
        return no_kind(f, err); /* NaN would become a number */
    return without_nulls(f, &c, scratch, err);
}

/* ---- times -------------------------------------------------------------------------------- */
/* Whole seconds and the rest apart: nanoseconds since 1970 have more digits than a double. */
static double seconds(int64_t v, int64_t per_second) {
    if (per_second < 0) return (double)v * (double)-per_second;
    return (double)(v / per_second) + (double)(v % per_second) / (double)per_second;
}

/* Reads dates and times as seconds; null is NaN. */
static gnnc_status read_times(RtField *f, RtPool *scratch, RtError *err) {
    int64_t per_second = 1;
    bool wide = false;
    time_of(f->schema->format, &per_second, &wide);
    gnnc_status st = check_array(f, f->array, f->start + f->n, 2, wide ? 8 : 4, err);
    if (st != GNNC_OK) return st;
    double *to = RT_NEWN(scratch, double, f->n);
    if (!to) return rt_fail_nomem(err, f->where);
    const RtArray v = {.dt = wide ? RT_DT_I64 : RT_DT_I32, .data = f->array->buffers[1]};
    for (int64_t i = 0; i < f->n; i++)
        to[i] = is_null(f->array, f->start + i)
                    ? NAN
                    : seconds(rt_array_i64(&v, f->start + i), per_second);
    set_out(f, GNNC_DT_F64, 0, to);
    return GNNC_OK;
}

/* ---- texts ---------------------------------------------------------------------------------- */
typedef struct {
    const RtField *f;
    const Array *a;
    bool wide; /* offsets of 64 bits */
    int64_t start, n;
    char *copy; /* room for the longest */
    RtNames names;
    int32_t *code; /* [n] -1 = null */
    RtPool *scratch;
    RtError *err;
} Texts;

static int64_t offset_at(const Texts *t, int64_t i) {
    const RtArray v = {.dt = t->wide ? RT_DT_I64 : RT_DT_I32, .data = t->a->buffers[1]};
    return rt_array_i64(&v, t->start + i);
}

/* Checks the offsets of all texts, and makes room for a copy of the longest, with a NUL behind
 * it. */
static gnnc_status measure(Texts *t) {
    int64_t most = 0;
    for (int64_t i = 0; i < t->n; i++) {
        int64_t from = offset_at(t, i), to = offset_at(t, i + 1);
        if (from < 0 || to < from || (to > from && !t->a->buffers[2]))
            return rt_fail(t->err, GNNC_E_FORMAT, "%s: row %lld: offsets of texts must ascend",
                           t->f->where, (long long)i);
        if (to - from > most) most = to - from;
    }
    t->copy = most < INT32_MAX ? rt_pool_alloc(t->scratch, (size_t)most + 1, 1) : NULL;
    return t->copy ? GNNC_OK : rt_fail_nomem(t->err, t->f->where);
}

/* Gives text i a code: that of the same text before, or the next; null has -1. */
static gnnc_status number_text(Texts *t, int64_t i) {
    size_t n = (size_t)(offset_at(t, i + 1) - offset_at(t, i));
    t->code[i] = -1;
    if (is_null(t->a, t->start + i)) return GNNC_OK;
    if (n) memcpy(t->copy, (const char *)t->a->buffers[2] + offset_at(t, i), n);
    t->copy[n] = '\0';
    if (memchr(t->copy, 0, n))
        return rt_fail(t->err, GNNC_E_FORMAT, "%s: row %lld holds a NUL byte", t->f->where,
                       (long long)i);
    t->code[i] = rt_names_find(&t->names, t->copy);
    if (t->code[i] >= 0) return GNNC_OK;
    const char *own = rt_pool_strndup(t->scratch, t->copy, n);
    if (!own) return rt_fail_nomem(t->err, t->f->where);
    t->code[i] = rt_names_add(&t->names, own);
    return GNNC_OK;
}

typedef struct {
    const char *name;
    int32_t code;
} Ranked;

static int by_name(const void *a, const void *b) {
    return strcmp(((const Ranked *)a)->name, ((const Ranked *)b)->name);
}

/* Codes in the order of the names, whatever row had one first. */
static gnnc_status sort_names(Texts *t) {
    int64_t n = t->names.n;
    Ranked *all = RT_NEWN(t->scratch, Ranked, n);
    int32_t *rank = RT_NEWN(t->scratch, int32_t, n);
    if (!all || !rank) return rt_fail_nomem(t->err, t->f->where);
    for (int64_t i = 0; i < n; i++) all[i] = (Ranked){t->names.keys[i], (int32_t)i};
    qsort(all, (size_t)n, sizeof *all, by_name);
    for (int64_t i = 0; i < n; i++) {
        rank[all[i].code] = (int32_t)i;
        t->names.keys[i] = all[i].name;
    }
    for (int64_t i = 0; i < t->n; i++)
        if (t->code[i] >= 0) t->code[i] = rank[t->code[i]];
    return GNNC_OK;
}

/* Rows start to start + n of an array of texts: a code for each, and the names in order. */
static gnnc_status read_texts(RtField *f, const struct ArrowSchema *s, const Array *a,
                              int64_t start, int64_t n, RtPool *scratch, const int32_t **code,
                              RtError *err) {
    Texts t = {f, a, s->format[0] == 'U', start, n, NULL, {0}, NULL, scratch, err};
    gnnc_status st;
    TRY(st, check_array(f, a, start + n, 3, t.wide ? 8 : 4, err));
    if (n > 0) TRY(st, measure(&t));
    t.code = RT_NEWN(scratch, int32_t, n);
    if (!t.code || !rt_names_new(scratch, &t.names, n + 1)) return rt_fail_nomem(err, f->where);
    for (int64_t i = 0; i < n; i++) TRY(st, number_text(&t, i));
    TRY(st, sort_names(&t));
    f->names = t.names.keys;
    f->n_categories = t.names.n;
    *code = t.code;
out:
    return st;
}

/* The codes become the column. A column of categories has no unknown ones. */
static gnnc_status give_codes(RtField *f, const int32_t *code, RtError *err) {
    for (int64_t i = 0; i < f->n && f->kind == GNNC_COL_CAT; i++)
        if (code[i] < 0) return null_row(f, i, err);
    set_out(f, GNNC_DT_I32, 0, code);
    return GNNC_OK;
}

/* Reads texts as codes of categories or classes, in the order in which they appear. */
static gnnc_status read_plain(RtField *f, RtPool *scratch, RtError *err) {
    const int32_t *code;
    gnnc_status st = read_texts(f, f->schema, f->array, f->start, f->n, scratch, &code, err);
    return st == GNNC_OK ? give_codes(f, code, err) : st;
}

/* Reads codes of a dictionary. All its names are categories, those without a row, too. */
static gnnc_status read_coded(RtField *f, RtPool *scratch, RtError *err) {
    const struct ArrowSchema *s = f->schema->dictionary;
    const Array *of = f->array->dictionary;
    const int32_t *entry;
    Cells c = {.row = f->array, .row_start = f->start, .width = 1, .n = f->n};
    gnnc_status st;
    if (!s->format || s->dictionary || !is_text(s->format)) return no_kind(f, err);
    if (!of) return rt_fail(err, GNNC_E_ARG, "%s: its dictionary is missing", f->where);
    TRY(st, read_texts(f, s, of, of->offset, of->length, scratch, &entry, err));
    TRY(st, open_values(f, f->schema, f->array, f->start, scratch, &c, err));
    int32_t *code = RT_NEWN(scratch, int32_t, f->n);
    if (!code) return rt_fail_nomem(err, f->where);
    for (int64_t i = 0; i < f->n; i++) {
        int64_t at = is_unknown(&c, i) ? -1 : rt_array_i64(&c.values, i);
        if (at >= of->length || (at < 0 && !is_unknown(&c, i)))
            return rt_fail(err, GNNC_E_RANGE, "%s: row %lld: %lld is no entry of its dictionary",
                           f->where, (long long)i, (long long)at);
        code[i] = at < 0 ? -1 : entry[at];
    }
    st = give_codes(f, code, err);
out:
    return st;
}

gnnc_status rt_field_read(RtField *f, RtPool *scratch, RtError *err) {
    Sort s = sort_of(f->schema);
    bool codes = f->kind == GNNC_COL_CAT || f->kind == GNNC_COL_CLASS;
    f->n_categories = -1;
    if ((s == TEXT || s == CODED) && !codes) return no_kind(f, err);
    if (s == TIME && f->kind != GNNC_COL_TIME) return no_kind(f, err);
    switch (s) {
    case NUMBER:
    case BITS:
    case LIST:
        return read_cells(f, scratch, err);
    case TIME:
        return read_times(f, scratch, err);
    case TEXT:
        return read_plain(f, scratch, err);
    case CODED:
        return read_coded(f, scratch, err);
    default:
        return no_kind(f, err);
    }
}
