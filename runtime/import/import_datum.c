/* The kind of a column follows from its declared type, and where that says nothing from the first
 * cell that is not NULL; docs/data.md has the table.  Values are made by encoders, as those of CSV,
 * but for texts: these are numbered as they come, and get their codes when all are known. */
#include "import_datum.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "runtime/data/encoder_cells.h"
#include "import_build.h"
#include "import_image.h"
#include "import_index.h"
#include "import_table.h"
#include "runtime/data/number.h"
#include "runtime/model/encoders.h"

/* ---- declared types ------------------------------------------------------------------- */
rt_declared rt_declared_type(const char *words) {
    static const struct {
        const char *word;
        rt_declared type;
    } known[] = {
        {"DATE", RT_DECLARED_TIME},     {"TIMESTAMP", RT_DECLARED_TIME},
        {"INTERVAL", RT_DECLARED_TEXT}, {"POINT", RT_DECLARED_TEXT},
        {"INT", RT_DECLARED_INTEGER},   {"SERIAL", RT_DECLARED_INTEGER},
        {"BOOL", RT_DECLARED_BOOLEAN},  {"REAL", RT_DECLARED_REAL},
        {"FLOA", RT_DECLARED_REAL},     {"DOUB", RT_DECLARED_REAL},
        {"NUMERIC", RT_DECLARED_REAL},  {"DECIMAL", RT_DECLARED_REAL},
        {"NUMBER", RT_DECLARED_REAL},   {"MONEY", RT_DECLARED_REAL},
        {"BLOB", RT_DECLARED_BLOB},     {"BYTEA", RT_DECLARED_BLOB},
        {"BINARY", RT_DECLARED_BLOB},
    };
    if (!words || !*words || strcasecmp(words, "NUM") == 0) return RT_DECLARED_NONE;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcasestr(words, known[i].word)) return known[i].type;
    return RT_DECLARED_TEXT;
}

/* ---- cells -------------------------------------------------------------------------------- */
RtQuoted rt_datum_shown(const RtDatum *c) {
    RtQuoted q = {"NULL"};
    if (c->type == RT_DATUM_TEXT) return rt_cell_quoted(c->s);
    if (c->type == RT_DATUM_INTEGER) snprintf(q.s, sizeof q.s, "%lld", (long long)c->i);
    if (c->type == RT_DATUM_REAL) rt_number_text(c->d, q.s);
    if (c->type == RT_DATUM_BLOB) snprintf(q.s, sizeof q.s, "a blob");
    return q;
}

static const char *const holds_nul = "binary: it holds a NUL byte";

const char *rt_datum_bad_text(const RtDatum *c) {
    const unsigned char *s = (const unsigned char *)c->s;
    for (size_t at = 0, k; at < c->n; at += k) {
        if (!s[at]) return holds_nul;
        if (!(k = rt_utf8_length(s + at, c->n - at))) return "no UTF-8 text";
    }
    return NULL;
}

/* NaN is absent to encoders.  A text that begins with a NUL byte only looks so. */
bool rt_datum_empty(const RtDatum *c) {
    bool begins = c->type == RT_DATUM_TEXT && (*c->s || !c->n);
    return c->type == RT_DATUM_NULL || (begins && rt_cell_absent(c->s)) ||
           (c->type == RT_DATUM_REAL && isnan(c->d));
}

/* The database's cell as encoders have it. Some databases write booleans as words. */
static RtCell cell_of(const RtDatumField *f, const RtDatum *c) {
    if (c->type == RT_DATUM_INTEGER) return (RtCell){.number = (double)c->i};
    if (c->type == RT_DATUM_REAL) return (RtCell){.number = c->d};
    if (c->type != RT_DATUM_TEXT) return (RtCell){.text = ""};
    if (f->declared == RT_DECLARED_BOOLEAN) {
        bool yes = strcasecmp(c->s, "true") == 0 || strcasecmp(c->s, "t") == 0;
        bool no = strcasecmp(c->s, "false") == 0 || strcasecmp(c->s, "f") == 0;
        if (yes || no) return (RtCell){.number = yes};
    }
    return (RtCell){.text = c->s};
}

/* ---- the kind of a column ------------------------------------------------------------------ */
static bool is_number(rt_declared d) {
    return d == RT_DECLARED_INTEGER || d == RT_DECLARED_REAL || d == RT_DECLARED_BOOLEAN;
}

/* Numbers called so are seconds; not `dep_time`, which may be 1430, or minutes. */
static bool is_seconds(const char *name) {
    return rt_is_time(name) && !strchr(name, '_');
}

/* Guesses what kind of column a database's column makes, by name and declared type. */
static void guess_kind(RtDatumField *f, rt_declared type) {
    bool numbers = is_number(type);
    f->decided = true;
    if (rt_is_label(f->name)) {
        f->kind = type == RT_DECLARED_REAL ? RT_COL_FLOAT : RT_COL_CLASS;
        f->texts = f->kind == RT_COL_CLASS && !numbers;
        f->why = rt_why_label;
    } else if (type == RT_DECLARED_TIME) {
        f->kind = RT_COL_TIME;
        f->why = "declared as a time";
    } else if (numbers && is_seconds(f->name)) {
        f->kind = RT_COL_TIME;
        f->why = "its name is a time's";
    } else if (strcmp(f->name, "split") == 0) {
        f->kind = RT_COL_SPLIT;
        f->why = "its name";
    } else if (type == RT_DECLARED_INTEGER && rt_is_id(f->name)) {
        f->kind = RT_COL_ID;
        f->why = "its name is a key's";
    } else {
        f->kind = numbers ? RT_COL_FLOAT : RT_COL_CAT;
        f->texts = !numbers;
        f->why = numbers ? "declared as numbers" : "declared as texts";
    }
}

/* Decides the kind of a column whose type says nothing, or of texts that are called like a time, by
 * its first cell. NULL: it is good; else why not. */
static const char *decide(RtDatumField *f, const RtDatum *c) {
    double v;
    rt_declared type = f->declared;
    if (f->stated) { /* a vector, whose length is known now */
        f->looks.width = c->type == RT_DATUM_TEXT ? rt_cell_vector(c->s) : -1;
        f->decided = f->looks.width > 0 && f->looks.width <= RT_MOST_VALUES;
        return f->decided ? NULL : "no list of numbers, [1, 2.5] or {1,2.5}";
    }
    if (c->type == RT_DATUM_TEXT && rt_may_be_time(f->name) && !rt_cell_number(c->s, &v) &&
        rt_cell_time(c->s, &v)) {
        guess_kind(f, RT_DECLARED_TIME);
        f->why = f->kind == RT_COL_TIME ? "its first text is a date" : f->why;
        return NULL;
    }
    if (type == RT_DECLARED_NONE)
        type = c->type == RT_DATUM_INTEGER ? RT_DECLARED_INTEGER
               : c->type == RT_DATUM_REAL  ? RT_DECLARED_REAL
                                           : RT_DECLARED_TEXT;
    guess_kind(f, type);
    return NULL;
}

/* Takes the kind of column that an option or the mapping says, if one does. */
static void state_kind(const RtSourceColumn *c, const char *type, RtImport *how, RtDatumField *f) {
    bool by_option = rt_import_kind(how, type, f->name, &f->kind);
    if (!by_option && c->kind < 0) return;
    if (!by_option) f->kind = (rt_col_kind)c->kind;
    f->why = by_option ? "--kind says so" : "the mapping says so";
    const RtWish *w = &c->wish;
    bool form = !by_option && f->kind == RT_COL_FLOAT;
    if (form && w->as == RT_AS_SEVERAL) f->kind = RT_COL_CAT;
    f->texts = f->kind == RT_COL_CAT || (f->kind == RT_COL_CLASS && !is_number(c->declared));
    f->stated = true;
    f->decided = !form || w->as != RT_AS_VECTOR;
}

static const char *store(RtDatumFields *x, RtDatumField *f, const RtDatum *c, int64_t to);

/* Is it one number a row, which a query may ask for? */
static bool is_single(const RtDatumField *f) {
    RtAs as = f->encoder ? f->encoder->as : RT_AS_NUMBER;
    return f->kind == RT_COL_FLOAT && (as == RT_AS_NUMBER || as == RT_AS_BOOLEAN) &&
           !(f->encoder && f->encoder->out);
}

/* Makes the encoder that options and mapping wish; numbers and names are fitted once it is known
 * which rows are learned from. */
static bool make_encoder(RtDatumFields *x, RtDatumField *f) {
    RtWish w = rt_wish_of(x->how, &x->t->columns[f->column].wish, f->name);
    RtEncoder *e = f->encoder = RT_NEW(x->keep, RtEncoder);
    if (!e) return false;
    *e = (RtEncoder){.kind = f->kind,
                     .as = rt_encoder_of_kind(f->kind),
                     .from = f->name,
                     .form = f->kind == RT_COL_TIME ? RT_DATE_ISO : RT_DATE_NONE,
                     .n_categories = -1};
    if (f->kind == RT_COL_FLOAT && w.as) e->as = w.as;
    bool yes_no = f->kind == RT_COL_FLOAT && f->declared == RT_DECLARED_BOOLEAN;
    bool scaled = x->t->columns[f->column].wish.scaled;
    if (yes_no && !scaled && !e->as) e->as = RT_AS_BOOLEAN;
    if (f->kind == RT_COL_FLOAT && !e->as) f->scale = w.scale;
    if (e->as == RT_AS_TEXT) e->out = w.values ? w.values : RT_TEXT_VALUES;
    if (e->as == RT_AS_VECTOR) e->out = (int)f->looks.width;
    if (e->as == RT_AS_IMAGE) e->out = w.values ? w.values : 3 * RT_IMAGE_SIDE * RT_IMAGE_SIDE;
    e->unknown = f->kind == RT_COL_CAT && w.unknown;
    e->rare = e->unknown ? w.rare : 0;
    return true;
}

/* Room for all rows, and the n_before NULLs that were before the kind was known. */
static bool make_room(RtDatumFields *x, RtDatumField *f, int64_t n_before) {
    const RtDatum null = {.type = RT_DATUM_NULL};
    size_t size = rt_dtype_bytes(rt_column_kind(f->kind)->element);
    bool made = make_encoder(x, f);
    if (made && f->encoder->out) size *= (size_t)f->encoder->out;
    if (!rt_kind_of_cells(f->kind)) {
        x->st = rt_fail(x->err, GNNC_E_ARG, "%s.%s: a column of a table is no %s", x->t->type,
                        f->name, rt_col_kind_name(f->kind));
        return false;
    }
    f->to.all = rt_import_reserve(x->keep, x->t->n_rows, size, x->err);
    bool ok = f->to.all && made;
    bool kept = f->scale.as != RT_SCALE_PLAIN;
    bool asked = x->how->keeps_numbers && is_single(f);
    if (ok && (kept || asked))
        ok = (f->exact = rt_import_reserve(x->keep, x->t->n_rows, sizeof *f->exact, x->err));
    if (!ok) x->st = rt_fail_nomem(x->err, f->name);
    rt_dict_init(&f->dict, x->scratch);
    for (int64_t i = 0; i < n_before && x->st == GNNC_OK; i++) store(x, f, &null, i);
    return x->st == GNNC_OK;
}

/* The column of this name in the language, of those that are to be taken; -1: none. */
static gnnc_status find_raw(const RtDatumFields *x, const bool *take, const char *from, int *at) {
    *at = -1;
    for (int i = 0; i < x->t->n_columns; i++) {
        const char *raw = x->t->columns[i].name, *id = rt_identifier(x->scratch, raw, strlen(raw));
        if (!id) return rt_fail_nomem(x->err, x->t->name);
        if (take[i] && strcmp(id, from) == 0) *at = i;
    }
    return GNNC_OK;
}

/* Adds a column that is made as another import's was (--like). */
static gnnc_status add_alike(RtDatumFields *x, const RtEncoding *k, int column) {
    RtDatumField *f = &x->v[x->n++];
    *f = (RtDatumField){.column = column,
                        .declared = x->t->columns[column].declared,
                        .name = rt_pool_strndup(x->keep, k->column, strlen(k->column)),
                        .kind = k->e.kind,
                        .why = rt_pool_printf(x->keep, "as %.120s has it", x->how->like->of),
                        .alike = true,
                        .decided = true,
                        .encoder = RT_NEW(x->keep, RtEncoder)};
    if (!f->name || !f->why || !f->encoder) return rt_fail_nomem(x->err, x->t->name);
    *f->encoder = k->e;
    size_t size = rt_dtype_bytes(rt_column_kind(f->kind)->element);
    size *= (size_t)(k->e.out ? k->e.out : 1);
    f->to.all = rt_import_reserve(x->keep, x->t->n_rows, size, x->err);
    bool kept = x->how->keeps_numbers && is_single(f);
    if (f->to.all && kept)
        f->exact = rt_import_reserve(x->keep, x->t->n_rows, sizeof *f->exact, x->err);
    return f->to.all && (f->exact || !kept) ? GNNC_OK : GNNC_E_NOMEM;
}

/* The columns that a model or other data have, made by their encoders (--like). */
static gnnc_status make_alike(RtDatumFields *x, const bool *take) {
    const RtEncoders *like = x->how->like;
    gnnc_status st = GNNC_OK;
    if (!(x->v = RT_NEWN(x->scratch, RtDatumField, like->n + 1)))
        return rt_fail_nomem(x->err, x->t->name);
    for (int i = 0; i < like->n && st == GNNC_OK; i++) {
        const RtEncoding *k = &like->v[i];
        int column;
        if (strcmp(k->table, x->t->type) != 0 || k->e.as == RT_AS_KEY) continue;
        st = find_raw(x, take, k->e.from, &column);
        if (st == GNNC_OK && column >= 0 && !k->e.width)
            st = add_alike(x, k, column);
        else if (st == GNNC_OK && k->label)
            rt_import_warn(x->how, "%s: there is no '%s', which %s has: rows have no labels",
                           x->t->name, k->e.from, like->of);
        else if (st == GNNC_OK)
            st = rt_fail(x->err, GNNC_E_MISSING, "%s: there is no column '%.60s' for '%s.%s' of %s",
                         x->t->name, k->e.from, k->table, k->column, like->of);
    }
    return st;
}

gnnc_status rt_datum_fields_make(RtPool *keep, RtPool *scratch, const RtSourceTable *t,
                                 const bool *take, RtImport *how, RtDatumFields *out,
                                 RtError *err) {
    *out = (RtDatumFields){.v = RT_NEWN(scratch, RtDatumField, t->n_columns),
                           .t = t,
                           .how = how,
                           .keep = keep,
                           .scratch = scratch,
                           .err = err};
    if (!out->v) return rt_fail_nomem(err, t->name);
    if (how->like && !t->sql) return make_alike(out, take); /* a task's answers are its own */
    for (int i = 0; i < t->n_columns; i++) {
        const RtSourceColumn *c = &t->columns[i];
        RtDatumField *f = &out->v[out->n];
        if (!take[i] || c->kind == RT_KIND_SKIP) continue;
        *f = (RtDatumField){.column = i,
                            .declared = c->declared,
                            .name = rt_identifier(keep, c->name, strlen(c->name))};
        if (!f->name) return rt_fail_nomem(err, t->name);
        state_kind(c, t->type, how, f);
        bool guess = !f->decided;
        if (guess && (c->computed || c->declared == RT_DECLARED_BLOB)) {
            rt_import_warn(how, "%s: column '%.80s' is left out: it is %s", t->name, c->name,
                           c->computed ? "computed from others" : "binary data");
            continue;
        }
        if (guess && c->declared != RT_DECLARED_NONE && c->declared != RT_DECLARED_TEXT)
            guess_kind(f, c->declared);
        if (f->decided && !make_room(out, f, 0)) return out->st;
        out->n++;
    }
    return GNNC_OK;
}

/* ---- values ------------------------------------------------------------------------------- */
/* Whether a column's texts are too many for categories, which its kind was not said to be. Many
 * that are below all limits are categories as long as they look as if they told something (see
 * import_looks.h), but not where the task's query asks for the column. */
static bool too_many(const RtDatumFields *x, const RtDatumField *f) {
    if (f->stated || f->kind != RT_COL_CAT) return false;
    int64_t half = x->t->n_rows / 2;
    if (f->dict.n > RT_MOST_TEXTS || f->dict.bytes > RT_MOST_TEXT_BYTES) return true;
    if (f->dict.n <= RT_FEW_TEXTS || f->dict.n <= half) return false;
    return !rt_looks_worth(&f->looks) || rt_import_is_asked(x->how, f->name);
}

/* Told while its row is known. */
static bool is_bad_list(const RtDatumFields *x, const RtDatumField *f, const char *s) {
    const RtWish *w = &x->t->columns[f->column].wish;
    bool asked = f->stated && f->kind == RT_COL_CAT && w->as == RT_AS_SEVERAL;
    return asked && !rt_cell_absent(s) && !rt_cell_several(s, w->separator);
}

/* Stores a text by its code, which is new if the text is. NULL: it is good; else why it is not. */
static const char *store_text(RtDatumFields *x, RtDatumField *f, const RtDatum *c, int64_t to) {
    RtQuoted number;
    const char *s = c->s;
    size_t n = c->n;
    f->to.i32[to] = -1;
    if (f->left_out) return NULL;
    if (c->type == RT_DATUM_NULL) s = "", n = 0;
    if (c->type == RT_DATUM_INTEGER || c->type == RT_DATUM_REAL) {
        number = rt_datum_shown(c);
        s = number.s;
        n = strlen(s);
    }
    if (!n && f->kind == RT_COL_CLASS) return NULL;
    int64_t k = rt_dict_find(&f->dict, s, n);
    bool fresh = k < 0;
    const char *bad = fresh && c->type == RT_DATUM_TEXT ? rt_datum_bad_text(c) : NULL;
    if (bad) return bad;
    if (fresh && is_bad_list(x, f, s)) return "not a list of categories";
    if (fresh && (k = rt_dict_add(&f->dict, s, n)) < 0)
        x->st = rt_fail_nomem(x->err, f->name);
    else if (fresh)
        rt_looks_add(&f->looks, f->dict.texts[k].s);
    f->to.i32[to] = (int32_t)k;
    f->left_out = too_many(x, f);
    return NULL;
}

bool rt_datum_missing(RtDatumFields *x, RtDatumField *f) {
    f->absent = rt_import_reserve(x->keep, x->t->n_rows, sizeof *f->absent, x->err);
    f->missing = f->absent ? RT_NEW(x->keep, RtEncoder) : NULL;
    if (!f->missing) {
        x->st = rt_fail_nomem(x->err, f->name);
        return false;
    }
    *f->missing =
        (RtEncoder){.as = RT_AS_MISSING, .kind = RT_COL_CAT, .from = f->name, .n_categories = 2};
    f->encoder->gaps = true;
    return true;
}

/* Keeps the number as it was, before it is scaled or rounded: a scale is fitted to such numbers,
 * and queries ask for them. */
static void keep_number(RtDatumField *f, const RtDatum *c, int64_t to) {
    RtCell cell = cell_of(f, c);
    f->exact[to] = NAN;
    if (!rt_datum_empty(c)) rt_encode_raw(&cell, &f->exact[to]);
}

/* Stores a number, and whether the cell was empty. NULL: it is good; else why it is not. */
static const char *store_number(RtDatumFields *x, RtDatumField *f, const RtDatum *c, int64_t to) {
    RtCell cell = cell_of(f, c);
    int at;
    bool empty = rt_datum_empty(c);
    bool text = f->encoder->as == RT_AS_TEXT;
    if (text && c->type == RT_DATUM_TEXT && rt_datum_bad_text(c)) return rt_datum_bad_text(c);
    if (empty && !text && !f->missing && !rt_datum_missing(x, f)) return NULL;
    const char *what = rt_import_cell(x->how, f->encoder, &cell, f->to.all, to, &at);
    if (what) return what;
    if (f->exact) keep_number(f, c, to);
    return f->missing ? rt_encode(f->missing, &cell, f->absent, to, &at) : NULL;
}

/* Stores a cell in row `to` of a column. NULL: it is good; else why it is not. */
static const char *store(RtDatumFields *x, RtDatumField *f, const RtDatum *c, int64_t to) {
    int at;
    if (c->type == RT_DATUM_BLOB) return "binary data";
    if (f->texts) return store_text(x, f, c, to);
    if (c->type == RT_DATUM_TEXT && memchr(c->s, 0, c->n)) return holds_nul;
    if (f->kind == RT_COL_FLOAT && !f->alike) return store_number(x, f, c, to);
    if (f->kind == RT_COL_ID && c->type == RT_DATUM_INTEGER) return f->to.i64[to] = c->i, NULL;
    RtCell cell = cell_of(f, c);
    if (f->kind == RT_COL_TIME && !f->formed && !f->alike && !rt_datum_empty(c)) {
        f->encoder->form = cell.text ? RT_DATE_ISO : RT_DATE_SECONDS;
        f->formed = true;
    }
    const char *what = rt_import_cell(x->how, f->encoder, &cell, f->to.all, to, &at);
    if (!what && f->exact) keep_number(f, c, to);
    if (!what && f->kind == RT_COL_CLASS && f->to.i32[to] >= f->n_categories)
        f->n_categories = (int64_t)f->to.i32[to] + 1;
    return what;
}

/* Why a row is bad: its column, the cell, and what it is. */
static const char *tell(RtDatumFields *x, const RtDatumField *f, const RtDatum *c,
                        const char *what) {
    snprintf(x->what, sizeof x->what, "column '%.64s': %s is %s", x->t->columns[f->column].name,
             rt_datum_shown(c).s, what);
    return x->what;
}

const char *rt_datum_fields_store(RtDatumFields *x, const RtDatum *const *cell, int64_t to) {
    for (int i = 0; i < x->n; i++) {
        RtDatumField *f = &x->v[i];
        const RtDatum *c = cell[i];
        if (!f->decided) {
            if (c->type == RT_DATUM_NULL) continue;
            const char *bad = decide(f, c);
            if (bad) return tell(x, f, c, bad);
            if (!make_room(x, f, to)) return NULL;
        }
        f->n_full += c->type != RT_DATUM_NULL;
        const char *what = store(x, f, c, to);
        if (what) return tell(x, f, c, what);
    }
    return NULL;
}

/* ---- columns -------------------------------------------------------------------------------- */
/* Numbers categories in the order of their texts, and leaves out those that no row has that stays.
 * The unknown one, where it is wished, is the first. */
static gnnc_status sort_categories(RtDatumFields *x, RtDatumField *f, int64_t n_rows) {
    RtEncoder *e = f->encoder;
    int32_t *number = RT_NEWN(x->scratch, int32_t, f->dict.n);
    const char **list = RT_NEWN(x->keep, const char *, f->dict.n + 1);
    int64_t n = e->unknown;
    if (!number || !list) return rt_fail_nomem(x->err, f->name);
    if (e->unknown) list[0] = RT_UNKNOWN_NAME;
    for (int64_t i = 0; i < n_rows; i++)
        if (f->to.i32[i] >= 0) number[f->to.i32[i]] = 1;
    for (int64_t i = 0; i < f->dict.n; i++) {
        const char *s = f->dict.texts[i].s;
        bool unknown = e->unknown && strcmp(s, RT_UNKNOWN_NAME) == 0;
        if (number[i] && !unknown) list[n++] = s;
        number[i] = 0;
    }
    qsort(list + e->unknown, (size_t)(n - e->unknown), sizeof *list, rt_by_text);
    for (int64_t i = e->unknown; i < n; i++) {
        number[rt_dict_find(&f->dict, list[i], strlen(list[i]))] = (int32_t)i;
        if (!(list[i] = rt_pool_strndup(x->keep, list[i], strlen(list[i]))))
            return rt_fail_nomem(x->err, f->name);
    }
    for (int64_t i = 0; i < n_rows; i++)
        if (f->to.i32[i] >= 0) f->to.i32[i] = number[f->to.i32[i]];
    f->n_categories = n;
    e->names = list;
    return GNNC_OK;
}

/* Whether the texts of a column that nobody said a kind of are dates, each that is there. */
static bool holds_dates(const RtDatumField *f) {
    int64_t n = 0;
    double v;
    if (f->kind != RT_COL_CAT || f->stated) return false;
    for (int64_t i = 0; i < f->dict.n; i++) {
        const char *s = f->dict.texts[i].s;
        if (rt_cell_absent(s)) continue;
        if (rt_cell_number(s, &v) || !rt_cell_time(s, &v)) return false;
        n++;
    }
    return n > 0;
}

/* A database's column is read as it comes, so only its name and declared type make it a time. One
 * of dates that is none may hide the future: rows then count as if they had always been there. */
static void warn_dates(const RtDatumFields *x, const RtDatumField *f, const char *now) {
    rt_import_warn(x->how,
                   "%s: column '%.80s' %s, though its texts are dates: neither its declared type "
                   "nor its name says time; --kind %.60s.%.60s=time makes it one",
                   x->t->name, x->t->columns[f->column].name, now, x->t->type, f->name);
}

/* Tells that a column is left out, and how it is kept. */
static void warn_left_out(const RtDatumFields *x, const RtDatumField *f) {
    const char *name = x->t->columns[f->column].name;
    if (f->decided && holds_dates(f)) {
        warn_dates(x, f, "is left out");
        return;
    }
    if (!f->decided)
        rt_import_warn(x->how, "%s: column '%.80s' is left out: all its cells are NULL", x->t->name,
                       name);
    else
        rt_import_warn(
            x->how,
            "%s: column '%.80s' is left out: nearly each row has a text of its own; "
            "--kind %.60s.%.60s=cat keeps it, 'float text' in the file of --map reads it",
            x->t->name, name, x->t->type, f->name);
}

/* Makes the column of the rows that were stored. */
static gnnc_status make_column(RtDatumFields *x, RtDatumField *f, int64_t n_rows, RtColumn *c) {
    gnnc_status st = f->texts ? sort_categories(x, f, n_rows) : GNNC_OK;
    bool codes = rt_col_facts[f->kind].codes;
    if (codes && !f->alike) f->encoder->n_categories = f->n_categories;
    if (f->alike) f->n_categories = f->encoder->n_categories;
    if (codes && f->n_categories < 0) f->n_categories = 0;
    f->encoder->codes = (RtNames){0}; /* they go with the table */
    *c = (RtColumn){.name = f->name,
                    .kind = f->kind,
                    .why = f->why,
                    .n_rows = n_rows,
                    .rank = 1,
                    .shape = {n_rows},
                    .n_categories = codes ? f->n_categories : 0,
                    .names = codes ? f->encoder->names : NULL,
                    .encoder = f->encoder,
                    .exact = f->exact,
                    .scale = f->scale,
                    .values = f->to.all,
                    .n_splits = f->kind == RT_COL_SPLIT};
    if (f->encoder->out) c->rank = 2, c->shape[1] = f->encoder->out;
    return st;
}

gnnc_status rt_datum_fields_columns(RtDatumFields *x, int64_t n_rows, RtColumn **out, int *n) {
    RtColumn *columns = RT_NEWN(x->scratch, RtColumn, 2 * (size_t)x->n + 1);
    gnnc_status st = GNNC_OK;
    *n = 0;
    *out = columns;
    if (!columns) return rt_fail_nomem(x->err, x->t->name);
    for (int i = 0; i < x->n && st == GNNC_OK; i++) {
        RtDatumField *f = &x->v[i];
        if (f->decided && !f->left_out && (st = rt_datum_form(x, f, n_rows)) != GNNC_OK) return st;
        int64_t many = f->dict.n > RT_FEW_TEXTS ? f->dict.n : 0;
        bool guessed = f->kind == RT_COL_CAT && !f->stated;
        if (!f->decided || f->left_out || (guessed && 2 * many > f->n_full)) {
            warn_left_out(x, f);
            rt_pool_drop(x->keep, f->to.all);
            continue;
        }
        if (holds_dates(f)) warn_dates(x, f, "is a category");
        st = make_column(x, f, n_rows, &columns[(*n)++]);
        if (st == GNNC_OK && f->absent &&
            !rt_missing_column(x->keep, f->name, f->missing, f->absent, n_rows, &columns[(*n)++]))
            st = rt_fail_nomem(x->err, f->name);
    }
    return st;
}
