#include "encoder.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "csv.h"
#include "dataset.h"
#include "encoder_cells.h"
#include "encoder_scale.h"
#include "number.h"

/* ---- cells ------------------------------------------------------------------------- */
enum { MAX_CLASSES = 1 << 24 };

/* Is x a whole number that can be a class? */
static bool whole(double x, int64_t *v) {
    if (x != floor(x) || fabs(x) >= MAX_CLASSES) return false;
    *v = (int64_t)x;
    return true;
}

bool rt_cell_is_integer(const char *s, int64_t *v) {
    double x;
    return rt_cell_integer(s, v) || (rt_cell_number(s, &x) && whole(x, v));
}

static bool is_absent(const RtCell *c) {
    return c->text ? rt_cell_absent(c->text) : isnan(c->number);
}

/* Reads a whole number. A cell that is a double has only those below 2^53, as it does not tell
 * greater ones apart. */
static bool cell_whole(const RtCell *c, int64_t *v) {
    const double most = 0x1p53; /* which 2^53 + 1 is, too */
    if (c->text) return rt_cell_is_integer(c->text, v);
    if (c->number != floor(c->number) || fabs(c->number) >= most) return false;
    *v = (int64_t)c->number;
    return true;
}

/* ---- kinds ------------------------------------------------------------------------- */
const char *rt_encode_raw(const RtCell *c, double *v) {
    if (!c->text) *v = c->number;
    bool good = c->text ? rt_cell_number(c->text, v) : isfinite(*v);
    return good ? NULL : "not a number";
}

const char *rt_encode_number(const RtEncoder *e, double v, void *to, int64_t at) {
    if (e->scale == RT_SCALE_PIECEWISE) return rt_scale_bins(e, v, to, at);
    return rt_column_kind(e->kind)->of_number(rt_scale_number(e, v), to, at);
}

/* What stands for no number: zeros. */
static void no_number(const RtEncoder *e, void *to, int64_t at) {
    int n = e->out ? e->out : 1;
    for (int i = 0; i < n; i++) rt_column_kind(e->kind)->of_number(0, to, at * n + i);
}

/* Encodes one number from each cell; with `gaps` an empty cell is allowed. */
static const char *encode_number(const RtEncoder *e, const RtCell *cell, void *to, int64_t row,
                                 int *at) {
    int width = rt_encoder_cells(e);
    for (*at = 0; *at < width; ++*at) {
        double v = 0;
        bool absent = e->gaps && is_absent(&cell[*at]);
        const char *what = absent ? NULL : rt_encode_raw(&cell[*at], &v);
        if (absent)
            no_number(e, to, row * width + *at);
        else if (!what)
            what = rt_encode_number(e, v, to, row * width + *at);
        if (what) return what;
    }
    return NULL;
}

/* Encodes whether the cell is empty: 1 or 0. */
static const char *encode_missing(const RtEncoder *e, const RtCell *cell, void *to, int64_t row,
                                  int *at) {
    (void)e, (void)at;
    ((int32_t *)to)[row] = is_absent(cell);
    return NULL;
}

/* Encodes a category by its name; an empty cell is a category like others. */
static const char *encode_category(const RtEncoder *e, const RtCell *cell, void *to, int64_t row,
                                   int *at) {
    (void)at;
    if (!cell->text && !isnan(cell->number)) return "a number where categories are texts";
    int32_t code = rt_names_find(&e->codes, cell->text ? cell->text : "");
    if (code < 0 && e->unknown) code = 0;
    ((int32_t *)to)[row] = code;
    return code < 0 ? "not a category" : NULL;
}

/* Encodes a class: its name's code, or its number; an empty cell is unknown (-1). */
static const char *encode_class(const RtEncoder *e, const RtCell *cell, void *to, int64_t row,
                                int *at) {
    int32_t *code = (int32_t *)to + row;
    int64_t v = -1;
    (void)at;
    *code = -1;
    bool empty = e->names && cell->text ? !*cell->text : is_absent(cell);
    if (empty) return NULL;
    if (e->names) {
        if (!cell->text) return "a number where classes are texts";
        *code = rt_names_find(&e->codes, cell->text);
        return *code < 0 ? "not a class" : NULL;
    }
    if (!cell_whole(cell, &v) || v < -1 || v >= MAX_CLASSES) return "not a class number";
    *code = (int32_t)v;
    return e->n_categories < 0 || v < e->n_categories ? NULL : "not a class";
}

/* Seconds that 63 bits hold: differences of such times are finite in f32, too. */
static const char *bad_time(double v) {
    return fabs(v) < 0x1p63 ? NULL : "not a time";
}

/* Encodes a time in seconds; an empty cell is unknown (NaN). */
static const char *encode_time(const RtEncoder *e, const RtCell *cell, void *to, int64_t row,
                               int *at) {
    double *v = (double *)to + row;
    (void)at;
    *v = NAN; /* empty: unknown */
    if (is_absent(cell)) return NULL;
    bool seconds = e->form == RT_DATE_SECONDS;
    if (!cell->text) {
        *v = cell->number;
        if (!seconds && e->form != RT_DATE_NONE) return "a number where times are dates";
        return bad_time(*v);
    }
    bool good = seconds                   ? rt_cell_number(cell->text, v)
                : e->form == RT_DATE_NONE ? rt_cell_time(cell->text, v)
                                          : rt_cell_date(cell->text, e->form, v);
    return good ? bad_time(*v) : "not a time";
}

/* Encodes a whole number; an empty cell is absent. */
static const char *encode_id(const RtEncoder *e, const RtCell *cell, void *to, int64_t row,
                             int *at) {
    int64_t *v = (int64_t *)to + row;
    (void)e, (void)at;
    *v = RT_ID_ABSENT;
    return is_absent(cell) || cell_whole(cell, v) ? NULL : "not a whole number";
}

/* Encodes the split that a row is in, by the words in use; an empty cell is in none. */
static const char *encode_split(const RtEncoder *e, const RtCell *cell, void *to, int64_t row,
                                int *at) {
    static const struct {
        const char *text;
        int8_t part;
    } parts[] = {{"none", 0}, {"0", 0},       {"train", 1},      {"training", 1}, {"1", 1},
                 {"val", 2},  {"valid", 2},   {"validation", 2}, {"dev", 2},      {"2", 2},
                 {"test", 3}, {"testing", 3}, {"3", 3}};
    int8_t *part = (int8_t *)to + row;
    int64_t v = -1;
    (void)e, (void)at;
    *part = 0;
    if (is_absent(cell)) return NULL;
    if (!cell->text && cell_whole(cell, &v) && v >= 0 && v <= 3) return *part = (int8_t)v, NULL;
    for (size_t i = 0; cell->text && i < sizeof parts / sizeof *parts; i++) {
        if (strcasecmp(parts[i].text, cell->text) != 0) continue;
        *part = parts[i].part;
        return NULL;
    }
    return "not one of train (1), val, valid, validation, dev (2), test (3), none (0)";
}

/* For columns that are not made of cells. */
static const char *encode_nothing(const RtEncoder *e, const RtCell *cell, void *to, int64_t row,
                                  int *at) {
    (void)e, (void)cell, (void)to, (void)row, (void)at;
    return "in a column that is made of no cells";
}

/* Parameters that a kind has beside `from`, as the JSON has them. */
typedef enum {
    HAS_NOTHING = 0,
    HAS_NUMBER = 1,
    HAS_FORM = 2,
    HAS_UNKNOWN = 4,
    HAS_GAPS = 8,
    HAS_VALUES = 16,
    HAS_NAMES = 32
} Has;

static const struct {
    const char *word;
    rt_col_kind kind;
    int has; /* a sum */
    const char *(*encode)(const RtEncoder *e, const RtCell *cell, void *to, int64_t row, int *at);
} kinds[] = {
    [RT_AS_NUMBER] = {"number", RT_COL_FLOAT, HAS_NUMBER | HAS_GAPS, encode_number},
    [RT_AS_MISSING] = {"missing", RT_COL_CAT, HAS_NOTHING, encode_missing},
    [RT_AS_CATEGORY] = {"category", RT_COL_CAT, HAS_UNKNOWN, encode_category},
    [RT_AS_CLASS] = {"class", RT_COL_CLASS, HAS_NOTHING, encode_class},
    [RT_AS_TIME] = {"time", RT_COL_TIME, HAS_FORM, encode_time},
    [RT_AS_ID] = {"id", RT_COL_ID, HAS_NOTHING, encode_id},
    [RT_AS_KEY] = {"key", RT_COL_ID, HAS_NOTHING, encode_id},
    [RT_AS_SPLIT] = {"split", RT_COL_SPLIT, HAS_NOTHING, encode_split},
    [RT_AS_BOOLEAN] = {"boolean", RT_COL_FLOAT, HAS_GAPS, rt_encode_boolean},
    [RT_AS_TEXT] = {"text", RT_COL_FLOAT, HAS_VALUES, rt_encode_text},
    [RT_AS_VECTOR] = {"vector", RT_COL_FLOAT, HAS_GAPS | HAS_VALUES, rt_encode_vector},
    [RT_AS_SEVERAL] = {"several", RT_COL_FLOAT, HAS_NAMES, rt_encode_several},
    [RT_AS_IMAGE] = {"image", RT_COL_FLOAT, HAS_GAPS | HAS_VALUES, rt_encode_image},
    [RT_AS_UNCHECKED] = {"unchecked", RT_COL_FLOAT, HAS_NOTHING, encode_nothing},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };
const RtEncoder rt_encoder_unchecked = {.as = RT_AS_UNCHECKED, .from = ""};

RtAs rt_encoder_of_kind(rt_col_kind k) {
    int i = k == RT_COL_FLOAT ? N_KINDS : RT_AS_CATEGORY; /* not FLOAT's others */
    while (i < N_KINDS && kinds[i].kind != k) i++;
    return i < N_KINDS ? (RtAs)i : RT_AS_NUMBER;
}

const char *rt_encode(const RtEncoder *e, const RtCell *cell, void *to, int64_t row, int *at) {
    *at = 0;
    return kinds[e->as].encode(e, cell, to, row, at);
}

/* Copies the names of categories into the pool, with an index over them; false: no memory. */
static bool copy_names(RtPool *pool, const RtEncoder *e, RtEncoder *out) {
    const char **names = RT_NEWN(pool, const char *, e->n_categories);
    bool ok = names;
    for (int64_t i = 0; ok && i < e->n_categories; i++)
        ok = (names[i] = rt_pool_strndup(pool, e->names[i], strlen(e->names[i])));
    out->names = names;
    return ok && rt_encoder_index(pool, out);
}

bool rt_encoder_copy(RtPool *pool, const RtEncoder *e, RtEncoder *out) {
    *out = *e;
    out->from = rt_pool_strndup(pool, e->from, strlen(e->from));
    if (e->as == RT_AS_SEVERAL && !copy_names(pool, e, out)) return false;
    return out->from && rt_scale_copy(pool, e, out);
}

bool rt_encoder_index(RtPool *pool, RtEncoder *e) {
    if (!e->names) return true;
    if (!rt_names_new(pool, &e->codes, e->n_categories + 1)) return false;
    for (int64_t i = 0; i < e->n_categories; i++) rt_names_add(&e->codes, e->names[i]);
    return true;
}

/* ---- where cells are absent -------- */
bool rt_encoder_tells_gaps(const RtColumn *c, const char *from) {
    const RtEncoder *e = c->encoder;
    return e && e->as == RT_AS_MISSING && strcmp(e->from, from) == 0;
}

const RtColumn *rt_encoder_gaps(const RtTable *t, const RtColumn *of) {
    for (int i = 0; of->encoder && i < t->n_columns; i++)
        if (rt_encoder_tells_gaps(&t->columns[i], of->encoder->from)) return &t->columns[i];
    return NULL;
}

/* ---- in words ---------------------------------------------------------------------- */
static const struct {
    RtDateForm form;
    const char *word;
} forms[] = {
    {RT_DATE_NONE, "seconds or year-month-day"},
    {RT_DATE_SECONDS, "seconds"},
    {RT_DATE_ISO, "year-month-day"},
    {RT_DATE_YEAR_FIRST, "year/month/day"},
    {RT_DATE_DAY_FIRST, "day/month/year"},
    {RT_DATE_MONTH_FIRST, "month/day/year"},
    {RT_DATE_DIGITS, "yearmonthday"},
};
enum { N_FORMS = sizeof forms / sizeof *forms };

/* The word for a form of dates in schema.json. */
static const char *form_word(RtDateForm form) {
    int i = 0;
    while (i < N_FORMS - 1 && forms[i].form != form) i++;
    return forms[i].word;
}

const char *rt_encoder_told(const RtEncoder *e, char *to, size_t n) {
    *to = '\0';
    if (e->scale != RT_SCALE_PLAIN)
        rt_scale_describe(e, to, n);
    else if (e->as == RT_AS_BOOLEAN)
        snprintf(to, n, "true or false");
    else if (e->as == RT_AS_TEXT)
        snprintf(to, n, "words of a text, hashed");
    else if (e->as == RT_AS_VECTOR)
        snprintf(to, n, "lists of numbers");
    else if (e->as == RT_AS_IMAGE)
        snprintf(to, n, "images of %d x %d pixels", rt_image_side(e->out), rt_image_side(e->out));
    else if (e->as == RT_AS_SEVERAL && e->separator)
        snprintf(to, n, "several of %d names, between '%c'", e->out - 1, e->separator);
    else if (e->as == RT_AS_SEVERAL)
        snprintf(to, n, "lists of %d names", e->out - 1);
    else if (e->as == RT_AS_CATEGORY && e->unknown && e->rare > 1)
        snprintf(to, n, "code 0 for unknown names and those of fewer than %lld rows",
                 (long long)e->rare);
    else if (e->as == RT_AS_CATEGORY && e->unknown)
        snprintf(to, n, "code 0 for unknown names");
    return to;
}

const char *rt_encoder_named(const RtEncoder *e, char *to, size_t n) {
    int at = snprintf(to, n, "%s ", kinds[e->as].word);
    if (e->as == RT_AS_NUMBER)
        rt_scale_describe(e, to + at, n - (size_t)at);
    else if (e->out)
        snprintf(to + at, n - (size_t)at, "of %d values", e->out);
    else
        to[at - 1] = '\0';
    return to;
}

/* Do both have the same names, in the same order? Both have a->out of them. */
static bool same_names(const RtEncoder *a, const RtEncoder *b) {
    for (int i = 0; i < a->out; i++)
        if (strcmp(a->names[i], b->names[i]) != 0) return false;
    return true;
}

/* Do both encoders make the same numbers of a cell? A boolean is a number that is taken as it
 * is. */
static bool same_float(const RtEncoder *a, const RtEncoder *b) {
    if (a->as == RT_AS_NUMBER && b->as == RT_AS_NUMBER) return rt_scale_same(a, b);
    if (!a->out && !b->out)
        return a->scale == RT_SCALE_PLAIN && b->scale == RT_SCALE_PLAIN && a->width == b->width;
    if (a->as != b->as || a->out != b->out) return false;
    return a->as != RT_AS_SEVERAL || (a->separator == b->separator && same_names(a, b));
}

const char *rt_encoder_differs(const RtEncoder *a, const RtEncoder *b, char *text, size_t n) {
    if (a->as == RT_AS_UNCHECKED || b->as == RT_AS_UNCHECKED) return NULL;
    if (kinds[a->as].kind == RT_COL_FLOAT && kinds[b->as].kind == RT_COL_FLOAT)
        return same_float(a, b) ? NULL : rt_encoder_named(a, text, n);
    if (a->as != b->as) return NULL; /* their columns are of two kinds, or mean the same */
    if (a->as != RT_AS_TIME || a->form == RT_DATE_NONE || b->form == RT_DATE_NONE) return NULL;
    /* Dates of all forms are seconds since 1970 */
    if ((a->form == RT_DATE_SECONDS) == (b->form == RT_DATE_SECONDS)) return NULL;
    snprintf(text, n, "%s", a->form == RT_DATE_SECONDS ? "time as a number" : "time of dates");
    return text;
}

bool rt_encoder_is_fitted(const RtEncoder *e) {
    return e->scale != RT_SCALE_PLAIN || e->as == RT_AS_TEXT || e->as == RT_AS_SEVERAL ||
           e->as == RT_AS_IMAGE;
}

/* Writes the first categories: "'ankara', 'berlin', ..". */
static void tell_names(const RtEncoder *e, char *to, size_t n) {
    enum { TOLD = 6 };
    size_t at = 0;
    *to = '\0';
    for (int64_t i = e->unknown; i < e->n_categories && i < TOLD && at < n; i++)
        at += (size_t)snprintf(to + at, n - at, "%s'%.24s'", at ? ", " : "", e->names[i]);
    if (e->n_categories > TOLD && at < n)
        snprintf(to + at, n - at, ", .. (%lld)", (long long)e->n_categories);
}

/* Writes the cell as messages show it. */
static void tell_cell(const RtCell *c, char *to, size_t n) {
    if (!c->text && isnan(c->number))
        snprintf(to, n, "an empty cell");
    else if (!c->text)
        snprintf(to, n, "%g", c->number);
    else
        snprintf(to, n, "%s", *c->text ? rt_cell_quoted(c->text).s : "an empty cell");
}

void rt_encode_explain(char *to, size_t n, const char *column, const RtCell *cell, const char *what,
                       const RtEncoder *e, const char *like) {
    char value[64], wants[256] = "";
    tell_cell(cell, value, sizeof value);
    if (e->as == RT_AS_VECTOR)
        snprintf(wants, sizeof wants, "%d numbers", e->out);
    else if (e->names && e->n_categories > 0)
        tell_names(e, wants, sizeof wants);
    else if (e->as == RT_AS_CLASS && e->n_categories >= 0)
        snprintf(wants, sizeof wants, "%lld classes", (long long)e->n_categories);
    else if (e->as == RT_AS_TIME)
        snprintf(wants, sizeof wants, "%s", form_word(e->form));
    int at = snprintf(to, n, "column '%.64s': %s is %s", column, value, what);
    if (like && at > 0 && (size_t)at < n)
        snprintf(to + at, n - (size_t)at, "%s%s, as %.100s has it", *wants ? ": " : "", wants,
                 like);
}

/* ---- JSON ----------------------------------------------------------------------------- */
/* Writes the encoder of a cell that holds several categories: their separator and names. */
static bool write_multi_hot(RtText *to, const RtEncoder *e) {
    const char separator[2] = {e->separator, 0};
    bool ok = true;
    if (e->separator)
        ok = rt_text_printf(to, ", \"separator\": ") && rt_text_json_string(to, separator);
    ok = ok && rt_text_printf(to, ", \"names\": [");
    for (int i = 0; i < e->out && ok; i++)
        ok = (!i || rt_text_printf(to, ", ")) && rt_text_json_string(to, e->names[i]);
    return ok && rt_text_printf(to, "]");
}

bool rt_encoder_put(RtText *to, const RtEncoder *e, const char *column) {
    bool ok = rt_text_printf(to, "{\"as\": \"%s\"", kinds[e->as].word);
    if (ok && strcmp(e->from, column) != 0)
        ok = rt_text_printf(to, ", \"from\": ") && rt_text_json_string(to, e->from);
    if (ok && e->width) ok = rt_text_printf(to, ", \"width\": %d", e->width);
    if (ok && e->gaps) ok = rt_text_printf(to, ", \"gaps\": true");
    if (ok) ok = rt_scale_put(to, e);
    if (ok && e->as == RT_AS_TIME)
        ok = rt_text_printf(to, ", \"form\": \"%s\"", form_word(e->form));
    if (ok && e->unknown) ok = rt_text_printf(to, ", \"unknown\": true");
    if (ok && e->rare > 1) ok = rt_text_printf(to, ", \"rare\": %lld", (long long)e->rare);
    if (ok && kinds[e->as].has & HAS_VALUES) ok = rt_text_printf(to, ", \"values\": %d", e->out);
    if (ok && e->as == RT_AS_SEVERAL) ok = write_multi_hot(to, e);
    return ok && rt_text_printf(to, "}");
}

/* Reads a key that is true, or not there; false: it is anything else. */
static bool get_true(const RtJson *v, const char *key, bool *to) {
    const RtJson *b = rt_json_get(v, key);
    *to = b && b->kind == RT_JSON_BOOL && b->number != 0;
    return !b || *to;
}

/* Reads a number above 0; *to = 0: it is not there; false: it is anything else. */
static bool get_count(const RtJson *v, const char *key, int64_t *to) {
    const RtJson *n = rt_json_get(v, key);
    *to = n && n->kind == RT_JSON_NUMBER && n->is_int ? n->i : 0;
    return !n || (*to > 0 && *to <= INT32_MAX);
}

/* Reads an encoder of numbers: its number of cells and its scale. */
static const char *read_number(RtPool *pool, const RtJson *v, RtEncoder *e) {
    int64_t width;
    if (!get_count(v, "width", &width)) return "'width' must be a number of columns";
    e->width = (int)width;
    return rt_scale_read(pool, v, e);
}

/* Reads the number of values that a cell becomes. */
static const char *read_values(const RtJson *v, RtEncoder *e) {
    int64_t n;
    if (!get_count(v, "values", &n) || n < 1 || n > RT_MOST_VALUES)
        return "'values' must be a number from 1 to 4096";
    e->out = (int)n;
    bool image = e->as != RT_AS_IMAGE || rt_image_side(e->out);
    return image ? NULL : "'values' of an image must be three times a square";
}

/* Reads an encoder of cells that hold several names: separator and names, the first being that for
 * unknown ones. */
static const char *read_several(RtPool *pool, const RtJson *v, RtEncoder *e) {
    const RtJson *separator = rt_json_get(v, "separator"), *names = rt_json_get(v, "names");
    bool one = separator && separator->kind == RT_JSON_STRING && strlen(separator->text) == 1;
    if (separator && !one) return "'separator' must be one character";
    e->separator = separator ? *separator->text : '\0';
    if (!names || names->kind != RT_JSON_ARRAY || names->n < 1 || names->n > RT_MOST_VALUES)
        return "'names' must list 1 to 4096 names";
    const char **list = RT_NEWN(pool, const char *, names->n);
    int64_t n = 0;
    if (!list) return "out of memory";
    for (const RtJson *s = names->first; s; s = s->next) {
        if (s->kind != RT_JSON_STRING) return "a name must be a string";
        list[n++] = s->text;
    }
    e->names = list;
    e->n_categories = e->out = names->n;
    if (strcmp(list[0], RT_UNKNOWN_NAME) != 0) return "the first of its names is " RT_UNKNOWN_NAME;
    if (!rt_encoder_index(pool, e)) return "out of memory";
    return e->codes.n == n ? NULL : "two of its names are one";
}

/* Reads the form that dates have. */
static const char *read_form(const RtJson *v, RtEncoder *e) {
    const RtJson *form = rt_json_get(v, "form");
    for (int i = 0; form && form->kind == RT_JSON_STRING && i < N_FORMS; i++) {
        if (strcmp(forms[i].word, form->text) != 0) continue;
        e->form = forms[i].form;
        return NULL;
    }
    return "'form' must be \"seconds\", \"year-month-day\", or another form of dates";
}

/* Reads what kind of encoder it is; that must fit the kind of the column. */
static const char *read_kind(const RtJson *v, RtEncoder *e) {
    const RtJson *as = rt_json_get(v, "as");
    int k = 0;
    bool number = rt_column_kind(e->kind)->of_number;
    if (!as || as->kind != RT_JSON_STRING) return "'as' must say what it is";
    while (k < N_KINDS && strcmp(kinds[k].word, as->text) != 0) k++;
    if (k == N_KINDS) return "unknown 'as'";
    e->as = (RtAs)k;
    bool fits = k == RT_AS_NUMBER ? number : k == RT_AS_UNCHECKED || kinds[k].kind == e->kind;
    return fits ? NULL : "it makes columns of another kind";
}

/* Fails on a key that such an encoder does not have; has: the groups of keys that it has. */
static const char *check_keys(const RtJson *v, int has) {
    static const struct {
        const char *key;
        int has;
    } keys[] = {{"as", 0},
                {"from", 0},
                {"width", HAS_NUMBER},
                {"gaps", HAS_GAPS},
                {"values", HAS_VALUES},
                {"separator", HAS_NAMES},
                {"names", HAS_NAMES},
                {"mean", HAS_NUMBER},
                {"deviation", HAS_NUMBER},
                {"scale", HAS_NUMBER},
                {"marks", HAS_NUMBER},
                {"normal", HAS_NUMBER},
                {"form", HAS_FORM},
                {"unknown", HAS_UNKNOWN},
                {"rare", HAS_UNKNOWN}};
    for (const RtJson *m = v->first; m; m = m->next) {
        size_t i = 0;
        while (i < sizeof keys / sizeof *keys && strcmp(keys[i].key, m->key) != 0) i++;
        bool known = i < sizeof keys / sizeof *keys && (!keys[i].has || keys[i].has & has);
        if (!known) return "a key that its kind does not have";
    }
    return NULL;
}

const char *rt_encoder_read(RtPool *pool, const RtJson *v, const char *column, rt_col_kind kind,
                            RtEncoder *e) {
    const RtJson *from = rt_json_get(v, "from");
    *e = (RtEncoder){.kind = kind, .n_categories = -1};
    if (v->kind != RT_JSON_OBJECT) return "an object is expected";
    const char *what = read_kind(v, e);
    int has = what ? 0 : kinds[e->as].has;
    if (!what) what = check_keys(v, has);
    if (!what && from && (from->kind != RT_JSON_STRING || !*from->text))
        what = "'from' must name a column";
    if (!what && has & HAS_GAPS && !get_true(v, "gaps", &e->gaps))
        what = "'gaps' must be true, or absent";
    if (!what && has & HAS_VALUES) what = read_values(v, e);
    if (!what && has & HAS_NAMES) what = read_several(pool, v, e);
    if (!what && has & HAS_NUMBER) what = read_number(pool, v, e);
    if (!what && has & HAS_FORM) what = read_form(v, e);
    if (!what && has & HAS_UNKNOWN &&
        (!get_true(v, "unknown", &e->unknown) || !get_count(v, "rare", &e->rare)))
        what = "'unknown' must be true, or absent, and 'rare' a number of rows";
    const char *name = from && !what ? from->text : column;
    e->from = rt_pool_strndup(pool, name, strlen(name));
    return what || e->from ? what : "out of memory";
}

const char *rt_encoder_names(RtEncoder *e, int64_t n, const char *const *names) {
    bool unknown = names && n > 0 && strcmp(names[0], RT_UNKNOWN_NAME) == 0;
    e->n_categories = n;
    if (e->as == RT_AS_MISSING) return NULL;
    e->names = names;
    if (e->as == RT_AS_CATEGORY && !names) return "categories need names";
    return e->unknown && !unknown ? "the first of its names is " RT_UNKNOWN_NAME : NULL;
}
