/* Which kind a column of texts is, and its values. */
#include "import_table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "import_build.h"
#include "import_image.h"
#include "import_like.h"
#include "import_map.h"
#include "runtime/data/number.h"

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

/* Is column col the next of a list of columns name.0, name.1, ..? */
static bool continues(const RtCsv *t, const RtField *before, int col) {
    size_t n, m;
    const char *first = t->header[before->first], *here = t->header[col];
    return before->first + before->width == col && matrix_column(first, &n) == 0 &&
           matrix_column(here, &m) == before->width && n == m && memcmp(first, here, n) == 0;
}

static bool whole_cell(const char *s) {
    int64_t v;
    return rt_cell_integer(s, &v);
}

static bool class_cell(const char *s) {
    int64_t v;
    return rt_cell_is_integer(s, &v);
}

static bool number_cell(const char *s) {
    double v;
    return rt_cell_number(s, &v);
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

bool rt_column_is_integer(const RtCsv *t, int col) {
    return mostly(t, col, whole_cell);
}

/* Of the cells of a column that are not empty: how many are numbers, and whole ones. */
typedef struct {
    int64_t all, numbers, whole, commas; /* commas: numbers to somebody */
} Cells;

/* Counts what the cells of a column can be read as; empty ones are left out. */
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

/* Why a column is a time: the form of its dates. */
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

/* Guesses the kind of a column by name and values, as of arrays (import_array.c); *why says what
 * tells it. */
static rt_col_kind guess_kind(const RtCsv *t, int col, const Cells *n, const RtDates *dates,
                              RtField *f) {
    const char *name = f->name, **why = &f->why;
    bool numbers = 2 * n->numbers >= n->all, whole = 2 * n->whole >= n->all;
    if (rt_is_label(name))
        return *why = rt_why_label, numbers && !whole ? RT_COL_FLOAT : RT_COL_CLASS;
    if (rt_is_time(name) && (f->encoder->form || mostly(t, col, time_cell)))
        return *why = "its name is a time's", RT_COL_TIME;
    if (f->encoder->form && dates->n_fit == dates->n)
        return *why = why_dates(f->encoder->form), RT_COL_TIME;
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

gnnc_status rt_column_commas(const RtCsv *t, int col, const RtFieldsWanted *wanted, RtError *err) {
    Cells n = t->commas ? count_kinds(t, col) : (Cells){0};
    return read_commas(t, col, wanted, &n, err);
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
    return rt_cell_is_integer(s, &v) && (v < 0 || v > 1);
}

/* Tells that a column that looks like a key became a feature. */
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

/* Tells why a column of dates became something else. */
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

/* Tells that a column is called like a time, and which cell is none. */
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

/* Tells that a column nearly is one of dates, where it became something else. */
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
/* Finds the kind of a column: as it is stated, else by its cells, and the form of its numbers and
 * dates. */
static gnnc_status find_kind(RtPool *keep, RtPool *scratch, const RtCsv *t, int col,
                             const RtFieldsWanted *wanted, RtField *f, RtError *err) {
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
    f->encoder->form = date_form(f, &dates, form);
    if (ambiguous && f->kind == RT_COL_TIME)
        return rt_fail(err, GNNC_E_FORMAT,
                       "%s: row %lld: column '%s': %s may be day/month/year or month/day/year, and "
                       "no row tells which; write year-month-day",
                       t->name, (long long)t->line[dates.first_row], f->name,
                       rt_cell_quoted(cell_of(t, dates.first_row, col)).s);
    if (f->guessed) f->kind = guess_kind(t, col, &n, &dates, f);
    if (st == GNNC_OK && f->guessed && f->kind == RT_COL_CAT)
        st = rt_field_guess(keep, scratch, t, wanted, f, err);
    tell_of_dates(t, col, wanted, f, &dates, ambiguous);
    const RtColFacts *facts = &rt_col_facts[f->kind];
    f->matrix |= facts->n_dims == 1 && !facts->codes; /* a kind of rows, even of width 1 */
    if (f->matrix && !f->why) f->why = "columns numbered in their names";
    if (st == GNNC_OK) warn_of_key(t, col, wanted, f);
    return st;
}

/* Begins a field with column col, and finds its kind. `keep` owns what data sets keep. */
static gnnc_status new_field(RtPool *keep, RtPool *scratch, const RtCsv *t, int col,
                             const RtFieldsWanted *wanted, RtField *f, RtError *err) {
    const char *header = t->header[col], *colon = strchr(header, ':');
    size_t n = colon ? (size_t)(colon - header) : strlen(header);
    bool matrix = matrix_column(header, &n) == 0;
    *f = (RtField){
        .first = col, .width = 1, .matrix = matrix, .name = rt_identifier(keep, header, n)};
    f->encoder = RT_NEW(keep, RtEncoder);
    if (!f->name || !f->encoder) return rt_fail_nomem(err, t->name);
    if (!*f->name) return rt_fail(err, GNNC_E_FORMAT, "%s: row 1: a column has no name", t->name);
    return find_kind(keep, scratch, t, col, wanted, f, err);
}

/* ---- encoders --------------------------------------------------------------------- */
/* Categories are numbered in sorted order, whatever the order of the rows. */
static bool collect_categories(RtPool *keep, RtPool *scratch, const RtCsv *t, const RtField *f) {
    RtEncoder *e = f->encoder;
    RtNames seen;
    if (!rt_names_new(scratch, &seen, t->n_rows + 1)) return false;
    if (e->unknown) rt_names_add(&seen, RT_UNKNOWN_NAME);
    for (int64_t r = 0; r < t->n_rows; r++) {
        const char *s = cell_of(t, r, f->first);
        if (*s || f->kind == RT_COL_CAT) rt_names_add(&seen, s);
    }
    const char **names = RT_NEWN(keep, const char *, seen.n);
    if (!names) return false;
    memcpy(names, seen.keys, (size_t)seen.n * sizeof *names);
    qsort(names + e->unknown, (size_t)(seen.n - e->unknown), sizeof *names, rt_by_text);
    for (int64_t i = 0; i < seen.n; i++)
        if (!(names[i] = rt_pool_strndup(keep, names[i], strlen(names[i])))) return false;
    e->names = names;
    e->n_categories = seen.n;
    return rt_encoder_index(scratch, e);
}

/* Has the column an empty cell? */
static bool has_empty(const RtCsv *t, int col) {
    for (int64_t r = 0; r < t->n_rows; r++)
        if (rt_cell_absent(cell_of(t, r, col))) return true;
    return false;
}

/* The form of a time's cells that are no dates of another form: numbers, dates, or both (none). */
static RtDateForm plain_form(const RtCsv *t, int col) {
    int64_t all, numbers = count_cells(t, col, number_cell, &all);
    if (!all || (numbers && numbers < all)) return RT_DATE_NONE;
    return numbers ? RT_DATE_SECONDS : RT_DATE_ISO;
}

/* An encoder for the column that says which cells of `from` are empty; NULL: no memory. */
static RtEncoder *missing_encoder(RtPool *keep, const char *from) {
    RtEncoder *e = RT_NEW(keep, RtEncoder);
    if (e)
        *e = (RtEncoder){.as = RT_AS_MISSING, .kind = RT_COL_CAT, .from = from, .n_categories = 2};
    return e;
}

/* Notes what is to be fitted once it is known which rows are learned from. */
static void wait_for_split(const RtFieldsWanted *wanted, RtField *f) {
    RtWish w = rt_wish_of(wanted->how, &wanted->wish[f->first], f->name);
    RtEncoder *e = f->encoder;
    if (e->as == RT_AS_CATEGORY && w.unknown) {
        e->unknown = true;
        e->rare = w.rare;
    }
    if (e->as == RT_AS_NUMBER && f->kind == RT_COL_FLOAT && !f->matrix) f->scale = w.scale;
}

/* Fits what rows tell of a column, but for what only those that are learned from tell. */
static bool fit(RtPool *keep, RtPool *scratch, const RtCsv *t, const RtFieldsWanted *wanted,
                RtField *f) {
    RtEncoder *e = f->encoder;
    e->kind = f->kind;
    if (!e->as) e->as = rt_encoder_of_kind(f->kind);
    e->from = f->name;
    if (!e->out) e->n_categories = -1;
    if (e->as == RT_AS_NUMBER) e->width = f->matrix ? f->width : 0;
    bool gaps = e->as == RT_AS_NUMBER
                    ? !f->matrix
                    : e->as == RT_AS_BOOLEAN || e->as == RT_AS_VECTOR || e->as == RT_AS_IMAGE;
    e->gaps = gaps && has_empty(t, f->first);
    if (e->gaps && !(f->missing = missing_encoder(keep, f->name))) return false;
    if (e->as == RT_AS_TIME && (e->form == RT_DATE_NONE || e->form == RT_DATE_ISO))
        e->form = plain_form(t, f->first);
    wait_for_split(wanted, f);
    bool texts =
        e->as == RT_AS_CATEGORY || (e->as == RT_AS_CLASS && !mostly(t, f->first, class_cell));
    return !texts || collect_categories(keep, scratch, t, f);
}

/* Values of a row. */
static int values_of(const RtField *f) {
    return f->out ? f->out : f->width;
}

bool rt_field_reserve(RtPool *keep, const RtImport *how, const RtCsv *t, RtField *f) {
    size_t row = rt_dtype_bytes(rt_column_kind(f->kind)->element) * (size_t)values_of(f);
    if (f->missing && !(f->absent = RT_NEWN(keep, int32_t, t->n_rows))) return false;
    f->cell = RT_NEWN(keep, RtCell, f->width);
    bool single = f->kind == RT_COL_FLOAT && f->width == 1 && f->encoder->as == RT_AS_NUMBER;
    bool kept =
        f->scale.as != RT_SCALE_PLAIN || (how->keeps_numbers && single && !f->encoder->width);
    if (kept && !(f->exact = RT_NEWN(keep, double, t->n_rows))) return false;
    return f->cell && (f->to.all = rt_pool_alloc(keep, (size_t)t->n_rows, row));
}

/* Fails if two fields have one name. */
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
    if (wanted->how->like) return rt_fields_like(keep, scratch, t, wanted, out, err);
    for (int col = 0; col < t->n_columns; col++) {
        RtField *last = out->n ? &out->v[out->n - 1] : NULL;
        if (wanted->kind[col] == RT_KIND_SKIP) continue;
        if (last && continues(t, last, col)) {
            TRY(st, rt_column_commas(t, col, wanted, err));
            last->width++;
        } else
            TRY(st, new_field(keep, scratch, t, col, wanted, &out->v[out->n++], err));
    }
    TRY(st, check_repeated(scratch, t, out, err));
    for (int i = 0; i < out->n; i++)
        TRY(st, rt_field_fit(keep, scratch, t, wanted, &out->v[i], err));
    for (int i = 0; i < out->n; i++)
        if (!fit(keep, scratch, t, wanted, &out->v[i]) ||
            !rt_field_reserve(keep, wanted->how, t, &out->v[i]))
            return rt_fail_nomem(err, t->name);
out:
    return st;
}

/* ---- values ------------------------------------------------------------------- */
/* Where raw column i of the field stands. */
static int place_of(const RtField *f, int i) {
    return f->place ? f->place[i] : f->first + i;
}

/* Stores a row's cells of a field. NULL: they are good; else why not, and *at says which. */
static const char *store_field(const RtImport *how, RtField *f, const RtCsv *t, int64_t from,
                               int64_t to, int *at) {
    for (int i = 0; i < f->width; i++) f->cell[i].text = cell_of(t, from, place_of(f, i));
    const char *what = rt_import_cell(how, f->encoder, f->cell, f->to.all, to, at);
    if (!what && f->exact) {
        f->exact[to] = NAN;
        if (!rt_cell_absent(f->cell->text)) rt_encode_raw(f->cell, &f->exact[to]);
    }
    if (!what && f->missing) what = rt_encode(f->missing, f->cell, f->absent, to, &(int){0});
    if (!what && f->kind == RT_COL_CLASS && f->to.i32[to] >= f->n_categories)
        f->n_categories = (int64_t)f->to.i32[to] + 1;
    return what;
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
        int at;
        const char *what = store_field(f->how, &f->v[i], t, from, to, &at);
        if (!what) continue;
        char name[68];
        const RtCell *cell = &f->v[i].cell[at];
        const char *header = t->header[place_of(&f->v[i], at)];
        note_bad_cell(f, &f->v[i], t->n_rows, cell->text);
        snprintf(name, sizeof name, "%.*s", (int)strcspn(header, ":") % 64, header);
        rt_encode_explain(f->what, sizeof f->what, name, cell, what, f->v[i].encoder,
                          f->how->like ? f->how->like->of : NULL);
        return f->what;
    }
    return NULL;
}

/* The column of a field, of n_rows rows. */
static RtColumn field_column(const RtField *x, int64_t n_rows) {
    RtEncoder *e = x->encoder;
    if (x->kind == RT_COL_CLASS && e->n_categories < 0) e->n_categories = x->n_categories;
    e->codes = (RtNames){0}; /* they go with the table */
    RtColumn c = {.name = x->name,
                  .kind = x->kind,
                  .why = x->why,
                  .n_rows = n_rows,
                  .rank = 1,
                  .shape = {n_rows},
                  .n_categories = rt_col_facts[x->kind].codes ? e->n_categories : 0,
                  .names = rt_col_facts[x->kind].codes ? e->names : NULL,
                  .encoder = e,
                  .exact = x->exact,
                  .scale = x->scale,
                  .values = x->to.all,
                  .n_splits = x->kind == RT_COL_SPLIT};
    if (x->matrix) c.rank = 2, c.shape[1] = values_of(x);
    return c;
}

bool rt_missing_column(RtPool *keep, const char *of, const RtEncoder *e, const int32_t *absent,
                       int64_t n_rows, RtColumn *out) {
    const char *name = rt_pool_printf(keep, "%.54s_missing", of);
    *out = (RtColumn){.name = name,
                      .kind = RT_COL_CAT,
                      .why = "1 where the number is absent",
                      .n_rows = n_rows,
                      .rank = 1,
                      .shape = {n_rows},
                      .n_categories = 2,
                      .encoder = e,
                      .i32 = absent};
    return name;
}

RtColumn *rt_fields_columns(RtPool *keep, const RtFields *f, int64_t n_rows, int *n) {
    RtColumn *columns = RT_NEWN(keep, RtColumn, 2 * (size_t)f->n + 1);
    *n = 0;
    for (int i = 0; columns && i < f->n; i++) {
        const RtField *x = &f->v[i];
        columns[(*n)++] = field_column(x, n_rows);
        if (!x->absent) continue;
        if (!rt_missing_column(keep, x->name, x->missing, x->absent, n_rows, &columns[(*n)++]))
            return NULL;
    }
    return columns;
}

/* ---- keys --------------------------------------------------------------------- */
/* The keys as whole numbers; *whole: all of them are. */
static const int64_t *whole_keys(RtPool *keep, const RtNames *keys, bool *whole) {
    int64_t *v = RT_NEWN(keep, int64_t, keys->n);
    *whole = true;
    for (int64_t i = 0; v && i < keys->n && *whole; i++) *whole = rt_cell_key(keys->keys[i], &v[i]);
    return v;
}

RtEncoder *rt_key_encoder(RtPool *keep, const char *from) {
    RtEncoder *e = RT_NEW(keep, RtEncoder);
    if (e) *e = (RtEncoder){.as = RT_AS_KEY, .kind = RT_COL_ID, .from = from};
    return e;
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
