/* Which kind a column of texts is, and its values. */
#include "import_table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "import_build.h"

static const char *cell_of(const RtCsv *t, int64_t row, int col) {
    return t->cell[row * t->n_columns + col];
}

/* ---- kinds ------------------------------------------------------------------ */
/* The number k of "x.k" and the length of "x"; -1: no such form. */
static int64_t matrix_column(const char *header, size_t *n_base) {
    const char *dot = strrchr(header, '.');
    int64_t k;
    if (!dot || dot == header || !rt_cell_integer(dot + 1, &k)) return -1;
    *n_base = (size_t)(dot - header);
    return k;
}

static bool continues(const RtCsv *t, const RtField *before, int col) {
    size_t n, m;
    const char *first = t->header[before->first], *here = t->header[col];
    return before->first + before->width == col && matrix_column(first, &n) == 0 &&
           matrix_column(here, &m) == before->width && n == m && memcmp(first, here, n) == 0;
}

bool rt_cell_absent(const char *cell) {
    static const char *const words[] = {"NULL", "NaN", "nan", "NA", "N/A", "\\N"};
    if (!*cell) return true;
    if (*cell != 'N' && *cell != 'n' && *cell != '\\') return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i], cell) == 0) return true;
    return false;
}

static bool whole_cell(const char *s) {
    int64_t v;
    return rt_cell_integer(s, &v);
}

enum { MAX_CLASSES = 1 << 24 };

bool rt_cell_whole(const char *s, int64_t *v) {
    double x;
    if (rt_cell_integer(s, v)) return true;
    if (!rt_cell_number(s, &x) || x != floor(x) || fabs(x) >= MAX_CLASSES) return false;
    *v = (int64_t)x;
    return true;
}

static bool class_cell(const char *s) {
    int64_t v;
    return rt_cell_whole(s, &v);
}

static bool time_cell(const char *s) {
    double v;
    return rt_cell_time(s, &v);
}

/* "1,5", "1,500", "1.234,56": numbers to somebody. */
static bool comma_cell(const char *s) {
    return strchr(s, ',') && !s[strspn(s, "+-.,0123456789")] && strpbrk(s, "0123456789");
}

/* How many of the cells that are not empty, which are `all`. */
static int64_t count_cells(const RtCsv *t, int col, bool is(const char *), int64_t *n_all) {
    int64_t good = 0, all = 0;
    for (int64_t r = 0; r < t->n_rows; r++) {
        const char *s = cell_of(t, r, col);
        bool absent = rt_cell_absent(s);
        all += !absent;
        good += !absent && is(s);
    }
    *n_all = all;
    return good;
}

/* At least half, because one slip in a column of numbers is a bad row and not a column of texts. */
static bool mostly(const RtCsv *t, int col, bool is(const char *)) {
    int64_t all, good = count_cells(t, col, is, &all);
    return 2 * good >= all;
}

bool rt_column_whole(const RtCsv *t, int col) {
    return mostly(t, col, whole_cell);
}

/* Of the cells of a column that are not empty: how many are numbers, and whole ones. */
typedef struct {
    int64_t all, numbers, whole, commas; /* commas: numbers to somebody */
} Cells;

static Cells count_kinds(const RtCsv *t, int col) {
    Cells n = {0};
    double v;
    for (int64_t r = 0; r < t->n_rows; r++) {
        const char *s = cell_of(t, r, col);
        if (rt_cell_absent(s)) continue;
        bool whole = whole_cell(s), number = whole || rt_cell_number(s, &v);
        n.all++;
        n.whole += whole;
        n.numbers += number;
        n.commas += !number && t->commas && comma_cell(s);
    }
    return n;
}

static const char *why_dates(RtDateForm form) {
    switch (form) {
    case RT_DATE_YEAR_FIRST:
        return "all cells are dates, year/month/day";
    case RT_DATE_DAY_FIRST:
        return "all cells are dates, day/month/year";
    case RT_DATE_MONTH_FIRST:
        return "all cells are dates, month/day/year";
    case RT_DATE_DIGITS:
        return "all cells are dates, yearmonthday";
    default:
        return "all cells are dates";
    }
}

/* By name and values, as of arrays (import_array.c). */
static rt_col_kind guess_kind(const RtCsv *t, int col, const Cells *n, const RtDates *dates,
                              RtField *f) {
    const char *name = f->name, **why = &f->why;
    bool numbers = 2 * n->numbers >= n->all, whole = 2 * n->whole >= n->all;
    if (rt_is_label(name))
        return *why = rt_why_label, numbers && !whole ? RT_COL_FLOAT : RT_COL_CLASS;
    if (rt_is_time(name) && (f->date || mostly(t, col, time_cell)))
        return *why = "its name is a time's", RT_COL_TIME;
    if (f->date && dates->n_fit == dates->n) return *why = why_dates(f->date), RT_COL_TIME;
    if (strcmp(name, "split") == 0) return *why = "its name", RT_COL_SPLIT;
    if (rt_is_id(name) && (whole || mostly(t, col, class_cell)))
        return *why = "its name is a key's", RT_COL_ID;
    *why = numbers ? "numbers" : "texts";
    return numbers ? RT_COL_FLOAT : RT_COL_CAT;
}

/* Numbers with a decimal comma get a point.  Where a comma separates cells, or thousands, too,
 * nobody knows what it means in a number. */
static gnnc_status read_commas(const RtCsv *t, int col, const RtFieldsWanted *wanted, Cells *n,
                               RtError *err) {
    if (!n->commas || 2 * (n->numbers + n->commas) < n->all) return GNNC_OK;
    for (int64_t r = 0; r < t->n_rows; r++) {
        char *s = (char *)(uintptr_t)cell_of(t, r, col);
        if (!comma_cell(s)) continue;
        if (t->separator == ',' || !rt_cell_comma(s))
            return rt_fail(err, GNNC_E_FORMAT,
                           "%s: row %lld: column '%.40s': %s: a comma in a number is read as a "
                           "decimal one where ';' or a tab separates the cells and no thousands "
                           "are set apart; --kind %.60s.%.40s=cat if these are texts",
                           t->name, (long long)t->line[r], t->header[col], rt_cell_quoted(s).s,
                           wanted->table, t->header[col]);
        *strchr(s, ',') = '.';
    }
    n->numbers += n->commas;
    n->commas = 0;
    return GNNC_OK;
}

bool rt_kind_of_cells(rt_col_kind k) {
    return k != RT_COL_CSR && k != RT_COL_MULTILABEL;
}

/* Who says the kind: --kind, the mapping or the header; NULL: nobody.  *known: there is such one.
 */
static const char *stated_kind(const RtFieldsWanted *wanted, int col, const char *colon, RtField *f,
                               bool *known) {
    *known = true;
    if (rt_import_kind(wanted->how, wanted->table, f->name, &f->kind)) return "--kind says so";
    if (wanted->kind[col] >= 0) {
        f->kind = (rt_col_kind)wanted->kind[col];
        return "the mapping says so";
    }
    if (colon) *known = rt_col_kind_find(colon + 1, &f->kind);
    return colon ? "its header says so" : NULL;
}

/* Numbers below 2 are no keys, whatever their column is called ("paid"). */
static bool large_cell(const char *s) {
    int64_t v;
    return rt_cell_whole(s, &v) && (v < 0 || v > 1);
}

static void warn_of_key(const RtCsv *t, int col, const RtFieldsWanted *wanted, const RtField *f) {
    bool sure;
    int64_t all;
    if (f->kind != RT_COL_FLOAT || !f->guessed || !rt_id_stem(f->name, strlen(f->name), &sure) ||
        !mostly(t, col, class_cell) || !count_cells(t, col, large_cell, &all))
        return;
    rt_import_warn(wanted->how,
                   "%s: column '%s' looks like a key and became a feature (float); --kind %s.%s=id "
                   "keeps it out, and tables in a folder can refer to each other (--map)",
                   t->name, f->name, wanted->table, f->name);
}

/* ---- dates -------------------------------------------------------------------- */
/* Most columns show by a few cells that they have none. */
static RtDates find_dates(const RtCsv *t, int col) {
    enum { ENOUGH = 16 };
    RtDates d = {0};
    for (int64_t r = 0; r < t->n_rows && (d.n_fit || d.n < ENOUGH); r++)
        if (!rt_cell_absent(cell_of(t, r, col))) rt_dates_add(&d, cell_of(t, r, col), r);
    return d;
}

/* The form that the column is read in; NONE: as numbers, texts or what its name says. */
static RtDateForm date_form(const RtField *f, const RtDates *d, RtDateForm form) {
    bool timely = rt_is_time(f->name) || f->kind == RT_COL_TIME;
    if (form == RT_DATE_DIGITS && !timely && !rt_may_be_time(f->name)) return RT_DATE_NONE;
    if (d->n_fit == d->n || (timely && 2 * d->n_fit >= d->n)) return form;
    return RT_DATE_NONE;
}

/* Why dates became something else. */
static void warn_of_dates(const RtCsv *t, int col, const RtFieldsWanted *wanted, const RtField *f,
                          const RtDates *d, bool ambiguous) {
    const char *kind = rt_col_kind_name(f->kind);
    RtQuoted first = rt_cell_quoted(cell_of(t, d->first_row, col));
    if (ambiguous)
        rt_import_warn(wanted->how,
                       "%s: column '%s' became %s: %s may be day/month/year or month/day/year, and "
                       "no row tells which; write year-month-day",
                       t->name, f->name, kind, first.s);
    else if (d->n_fit < d->n)
        rt_import_warn(wanted->how,
                       "%s: row %lld: column '%s' became %s: %s is no date, others are, as %s; "
                       "--kind %s.%s=time makes it a bad row",
                       t->name, (long long)t->line[d->bad_row], f->name, kind,
                       rt_cell_quoted(cell_of(t, d->bad_row, col)).s, first.s, wanted->table,
                       f->name);
    else if (f->kind == RT_COL_FLOAT)
        rt_import_warn(
            wanted->how,
            "%s: column '%s' became %s, though %s and all others look like dates; --kind "
            "%s.%s=time reads them",
            t->name, f->name, kind, first.s, wanted->table, f->name);
    else
        rt_import_warn(wanted->how,
                       "%s: column '%s' became %s: its dates, as %s, have several forms; write "
                       "year-month-day",
                       t->name, f->name, kind, first.s);
}

static void warn_of_no_time(const RtCsv *t, int col, const RtFieldsWanted *wanted,
                            const RtField *f) {
    for (int64_t r = 0; r < t->n_rows; r++) {
        const char *s = cell_of(t, r, col);
        if (rt_cell_absent(s) || time_cell(s)) continue;
        rt_import_warn(
            wanted->how,
            "%s: row %lld: column '%s' became %s: it is called like a time, and %s is no "
            "date; write 2020-01-31 10:00:00, or seconds",
            t->name, (long long)t->line[r], f->name, rt_col_kind_name(f->kind),
            rt_cell_quoted(s).s);
        return;
    }
}

static void tell_of_dates(const RtCsv *t, int col, const RtFieldsWanted *wanted, const RtField *f,
                          const RtDates *d, bool ambiguous) {
    bool told = f->kind == RT_COL_CAT || f->kind == RT_COL_FLOAT;
    if (!f->guessed || !told) return;
    if (2 * d->n_fit >= d->n && d->n_fit)
        warn_of_dates(t, col, wanted, f, d, ambiguous);
    else if (rt_is_time(f->name) && f->kind == RT_COL_CAT)
        warn_of_no_time(t, col, wanted, f);
}

/* ---- the kind of a column ------------------------------------------------------- */
static gnnc_status find_kind(const RtCsv *t, int col, const RtFieldsWanted *wanted, RtField *f,
                             RtError *err) {
    const char *header = t->header[col], *colon = strchr(header, ':');
    bool known;
    f->kind = RT_COL_FLOAT;
    f->why = stated_kind(wanted, col, colon, f, &known);
    f->guessed = !f->why && !f->matrix;
    if (!known || !rt_kind_of_cells(f->kind)) {
        char kinds[RT_COL_KINDS_TEXT];
        return rt_fail(err, GNNC_E_FORMAT, "%s: row 1: '%s': the kind of a column is one of %s",
                       t->name, header, rt_col_kinds_list(rt_kind_of_cells, kinds, sizeof kinds));
    }
    bool numbers = f->guessed || (f->kind == RT_COL_FLOAT && t->commas);
    Cells n = numbers ? count_kinds(t, col) : (Cells){0};
    gnnc_status st = read_commas(t, col, wanted, &n, err);
    bool ambiguous = false, dated = f->guessed || f->kind == RT_COL_TIME;
    RtDates dates = dated ? find_dates(t, col) : (RtDates){0};
    RtDateForm form = rt_dates_form(&dates, &ambiguous);
    f->date = date_form(f, &dates, form);
    if (ambiguous && f->kind == RT_COL_TIME)
        return rt_fail(err, GNNC_E_FORMAT,
                       "%s: row %lld: column '%s': %s may be day/month/year or month/day/year, and "
                       "no row tells which; write year-month-day",
                       t->name, (long long)t->line[dates.first_row], f->name,
                       rt_cell_quoted(cell_of(t, dates.first_row, col)).s);
    if (f->guessed) f->kind = guess_kind(t, col, &n, &dates, f);
    tell_of_dates(t, col, wanted, f, &dates, ambiguous);
    const RtColFacts *facts = &rt_col_facts[f->kind];
    f->matrix |= facts->n_dims == 1 && !facts->codes; /* a kind of rows, even of width 1 */
    if (f->matrix && !f->why) f->why = "columns numbered in their names";
    if (st == GNNC_OK) warn_of_key(t, col, wanted, f);
    return st;
}

static gnnc_status new_field(RtPool *keep, const RtCsv *t, int col, const RtFieldsWanted *wanted,
                             RtField *f, RtError *err) {
    const char *header = t->header[col], *colon = strchr(header, ':');
    size_t n = colon ? (size_t)(colon - header) : strlen(header);
    bool matrix = matrix_column(header, &n) == 0;
    *f = (RtField){
        .first = col, .width = 1, .matrix = matrix, .name = rt_identifier(keep, header, n)};
    if (!f->name) return rt_fail_nomem(err, t->name);
    if (!*f->name) return rt_fail(err, GNNC_E_FORMAT, "%s: row 1: a column has no name", t->name);
    return find_kind(t, col, wanted, f, err);
}

/* Categories are numbered in sorted order, whatever the order of the rows. */
static bool collect_categories(RtPool *keep, RtPool *scratch, const RtCsv *t, RtField *f) {
    if (!rt_names_new(scratch, &f->names, t->n_rows)) return false;
    for (int64_t r = 0; r < t->n_rows; r++) {
        const char *s = cell_of(t, r, f->first);
        if (*s || f->kind == RT_COL_CAT) rt_names_add(&f->names, s);
    }
    int64_t n = f->n_categories = f->names.n;
    f->categories = RT_NEWN(keep, const char *, n);
    f->order = RT_NEWN(scratch, int32_t, n);
    if (!f->categories || !f->order) return false;
    memcpy(f->categories, f->names.keys, (size_t)n * sizeof *f->categories);
    qsort(f->categories, (size_t)n, sizeof *f->categories, rt_by_text);
    for (int64_t i = 0; i < n; i++) {
        const char *s = f->categories[i];
        f->order[rt_names_find(&f->names, s)] = (int32_t)i;
        if (!(f->categories[i] = rt_pool_strndup(keep, s, strlen(s)))) return false;
    }
    return true;
}

static bool has_empty(const RtCsv *t, int col) {
    for (int64_t r = 0; r < t->n_rows; r++)
        if (rt_cell_absent(cell_of(t, r, col))) return true;
    return false;
}

static bool make_room(RtPool *keep, RtPool *scratch, const RtCsv *t, RtField *f) {
    const RtColumnKind *kind = rt_column_kind(f->kind);
    if (kind->of_number && !f->matrix && has_empty(t, f->first) &&
        !(f->absent = RT_NEWN(keep, int32_t, t->n_rows)))
        return false;
    f->whole = f->kind == RT_COL_CLASS && mostly(t, f->first, class_cell);
    bool texts = f->kind == RT_COL_CAT || (f->kind == RT_COL_CLASS && !f->whole);
    if (texts && !collect_categories(keep, scratch, t, f)) return false;
    size_t row = rt_dtype_bytes(kind->element) * (size_t)f->width;
    return (f->to.all = rt_pool_alloc(keep, (size_t)t->n_rows, row));
}

static gnnc_status check_repeated(RtPool *scratch, const RtCsv *t, const RtFields *f,
                                  RtError *err) {
    RtNames seen;
    if (!rt_names_new(scratch, &seen, f->n)) return rt_fail_nomem(err, t->name);
    for (int i = 0; i < f->n; i++)
        if (rt_names_add(&seen, f->v[i].name) != i)
            return rt_fail(err, GNNC_E_FORMAT, "%s: row 1: column '%s' is repeated", t->name,
                           f->v[i].name);
    return GNNC_OK;
}

gnnc_status rt_fields_make(RtPool *keep, RtPool *scratch, const RtCsv *t,
                           const RtFieldsWanted *wanted, RtFields *out, RtError *err) {
    gnnc_status st;
    *out = (RtFields){
        .v = RT_NEWN(keep, RtField, t->n_columns), .table = wanted->table, .how = wanted->how};
    if (!out->v) return rt_fail_nomem(err, t->name);
    for (int col = 0; col < t->n_columns; col++) {
        RtField *last = out->n ? &out->v[out->n - 1] : NULL;
        if (wanted->kind[col] == RT_KIND_SKIP) continue;
        if (last && continues(t, last, col)) {
            Cells n = t->commas ? count_kinds(t, col) : (Cells){0};
            TRY(st, read_commas(t, col, wanted, &n, err));
            last->width++;
        } else
            TRY(st, new_field(keep, t, col, wanted, &out->v[out->n++], err));
    }
    TRY(st, check_repeated(scratch, t, out, err));
    for (int i = 0; i < out->n; i++)
        if (!make_room(keep, scratch, t, &out->v[i])) return rt_fail_nomem(err, t->name);
out:
    return st;
}

/* ---- values ------------------------------------------------------------------- */
/* Each returns NULL, or what the cell is not; of several columns *at is set to the bad one. */
static const char *store_numbers(const RtField *f, const RtCsv *t, int64_t from, int64_t to,
                                 int *at) {
    const RtColumnKind *kind = rt_column_kind(f->kind);
    double v;
    if (f->absent) f->absent[to] = rt_cell_absent(cell_of(t, from, f->first));
    if (f->absent && f->absent[to]) return kind->of_number(0, f->to.all, to);
    for (int i = 0; i < f->width; i++) {
        *at = f->first + i;
        if (!rt_cell_number(cell_of(t, from, *at), &v)) return "not a number";
        const char *what = kind->of_number(v, f->to.all, to * f->width + i);
        if (what) return what;
    }
    return NULL;
}

static const char *store_class(RtField *f, const char *s, int64_t to) {
    int64_t v = -1;
    if (f->whole && rt_cell_absent(s)) s = "";
    if (*s && !f->whole) v = f->order[rt_names_find(&f->names, s)];
    if (*s && f->whole && (!rt_cell_whole(s, &v) || v < -1 || v >= MAX_CLASSES))
        return "not a class number";
    f->to.i32[to] = (int32_t)v;
    if (v >= f->n_categories) f->n_categories = v + 1;
    return NULL;
}

static const char *store_split(const RtField *f, const char *s, int64_t to) {
    static const struct {
        const char *text;
        int8_t part;
    } parts[] = {{"none", 0}, {"0", 0},       {"train", 1},      {"training", 1}, {"1", 1},
                 {"val", 2},  {"valid", 2},   {"validation", 2}, {"dev", 2},      {"2", 2},
                 {"test", 3}, {"testing", 3}, {"3", 3}};
    f->to.i8[to] = 0;
    if (rt_cell_absent(s)) return NULL;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (strcasecmp(parts[i].text, s) != 0) continue;
        f->to.i8[to] = parts[i].part;
        return NULL;
    }
    return "not one of train (1), val, valid, validation, dev (2), test (3), none (0)";
}

static const char *store_time(const RtField *f, const char *s, int64_t to) {
    f->to.f64[to] = NAN; /* empty: unknown */
    if (rt_cell_absent(s)) return NULL;
    bool plain = f->date == RT_DATE_NONE || f->date == RT_DATE_ISO;
    bool good = plain ? rt_cell_time(s, &f->to.f64[to]) : rt_cell_date(s, f->date, &f->to.f64[to]);
    return good ? NULL : "not a time";
}

static const char *store_id(const RtField *f, const char *s, int64_t to) {
    f->to.i64[to] = RT_ID_ABSENT;
    return rt_cell_absent(s) || rt_cell_whole(s, &f->to.i64[to]) ? NULL : "not a whole number";
}

static const char *store_field(RtField *f, const RtCsv *t, int64_t from, int64_t to, int *at) {
    const char *s = cell_of(t, from, f->first);
    switch (f->kind) {
    case RT_COL_CLASS:
        return store_class(f, s, to);
    case RT_COL_CAT:
        f->to.i32[to] = f->order[rt_names_find(&f->names, s)];
        return NULL;
    case RT_COL_SPLIT:
        return store_split(f, s, to);
    case RT_COL_TIME:
        return store_time(f, s, to);
    case RT_COL_ID:
        return store_id(f, s, to);
    default:
        return store_numbers(f, t, from, to, at);
    }
}

/* Texts that come back, or are many, are no slips: the column is one of texts, of which most look
 * like numbers. */
static void note_bad_cell(RtFields *f, RtField *x, int64_t n_rows, const char *cell) {
    char *cure = f->how->cure;
    size_t n = strlen(cure), room = sizeof f->how->cure - n;
    bool again = x->n_bad++ && strcmp(x->bad, cell) == 0;
    if (x->n_bad == 1) x->bad = cell;
    bool many = x->n_bad >= 3 && x->n_bad * 20 >= n_rows;
    if ((!again && !many) || !x->guessed || x->told || room < 160) return;
    x->told = true;
    bool number = x->kind == RT_COL_CLASS && class_cell(cell);
    const char *what = number ? "numbers to learn are read by" : "texts among numbers are read by";
    snprintf(cure + n, room, "%s --kind %.60s.%.60s=%s", n ? "" : what, f->table, x->name,
             number ? "float" : "cat");
}

const char *rt_fields_store(RtFields *f, const RtCsv *t, int64_t from, int64_t to) {
    for (int i = 0; i < f->n; i++) {
        int at = f->v[i].first;
        const char *what = store_field(&f->v[i], t, from, to, &at), *cell = cell_of(t, from, at);
        if (!what) continue;
        note_bad_cell(f, &f->v[i], t->n_rows, cell);
        snprintf(f->what, sizeof f->what, "column '%.*s': %s is %s",
                 (int)strcspn(t->header[at], ":") % 64, t->header[at],
                 *cell ? rt_cell_quoted(cell).s : "an empty cell", what);
        return f->what;
    }
    return NULL;
}

static RtColumn field_column(const RtField *x, int64_t n_rows) {
    RtColumn c = {.name = x->name,
                  .kind = x->kind,
                  .why = x->why,
                  .n_rows = n_rows,
                  .rank = 1,
                  .shape = {n_rows},
                  .n_categories = x->n_categories,
                  .names = x->categories,
                  .values = x->to.all,
                  .n_splits = x->kind == RT_COL_SPLIT};
    if (x->matrix) c.rank = 2, c.shape[1] = x->width;
    return c;
}

RtColumn *rt_fields_columns(RtPool *keep, const RtFields *f, int64_t n_rows, int *n) {
    RtColumn *columns = RT_NEWN(keep, RtColumn, 2 * (size_t)f->n + 1);
    *n = 0;
    for (int i = 0; columns && i < f->n; i++) {
        const RtField *x = &f->v[i];
        columns[(*n)++] = field_column(x, n_rows);
        if (!x->absent) continue;
        char *name = rt_pool_printf(keep, "%.54s_missing", x->name);
        if (!name) return NULL;
        columns[(*n)++] = (RtColumn){.name = name,
                                     .kind = RT_COL_CAT,
                                     .why = "1 where the number is absent",
                                     .n_rows = n_rows,
                                     .rank = 1,
                                     .shape = {n_rows},
                                     .n_categories = 2,
                                     .i32 = x->absent};
    }
    return columns;
}

/* ---- keys --------------------------------------------------------------------- */
/* "007" is a text: as a number it might be that of another key. */
static bool plain_integer(const char *s, int64_t *v) {
    const char *digits = s + (*s == '-');
    return rt_cell_integer(s, v) && (*digits != '0' || (!digits[1] && digits == s));
}

static const int64_t *whole_keys(RtPool *keep, const RtNames *keys, bool *whole) {
    int64_t *v = RT_NEWN(keep, int64_t, keys->n);
    *whole = true;
    for (int64_t i = 0; v && i < keys->n && *whole; i++)
        *whole = plain_integer(keys->keys[i], &v[i]);
    return v;
}

gnnc_status rt_keep_keys(RtPool *keep, RtTable *t, const RtNames *keys, const int64_t **v,
                         RtError *err) {
    bool whole;
    *v = whole_keys(keep, keys, &whole);
    if (!*v) return rt_fail_nomem(err, t->name);
    if (whole) return GNNC_OK;
    *v = NULL;
    const char **names = RT_NEWN(keep, const char *, keys->n);
    bool ok = names;
    for (int64_t i = 0; ok && i < keys->n; i++)
        ok = (names[i] = rt_pool_strndup(keep, keys->keys[i], strlen(keys->keys[i])));
    t->names = names;
    return ok ? GNNC_OK : rt_fail_nomem(err, t->name);
}
