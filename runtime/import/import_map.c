#include "import_map.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/data/encoder_cells.h"
#include "runtime/data/encoder_scale.h"
#include "import_build.h"
#include "import_table.h"

const char rt_map_no_memory[] = "out of memory";

gnnc_status rt_map_read(RtPool *pool, const RtNamedBytes *map,
                        const char *rule(void *user, const char *line), void *user, RtError *err) {
    const char **line;
    int64_t n;
    gnnc_status st = rt_lines(pool, map->text, map->name, &line, &n, err);
    for (int64_t i = 0; i < n && st == GNNC_OK; i++) {
        char *s = (char *)(uintptr_t)line[i], *end = s + strcspn(s, "#");
        while (end > s && (end[-1] == ' ' || end[-1] == '\t')) end--;
        *end = 0;
        s += strspn(s, " \t");
        const char *what = *s ? rule(user, s) : NULL;
        if (what == rt_map_no_memory) return rt_fail_nomem(err, map->name);
        if (what)
            return rt_fail(err, GNNC_E_FORMAT, "%s:%lld: %s", map->name, (long long)i + 1, what);
    }
    return st;
}

/* Cuts the next word of a line; false: there is none. */
static bool next_word(const char **s, const char **word, size_t *n) {
    *s += strspn(*s, " \t");
    *word = *s;
    *n = strcspn(*s, " \t");
    *s += *n;
    return *n;
}

static bool is(const char *word, size_t n, const char *what) {
    return strlen(what) == n && memcmp(word, what, n) == 0;
}

/* The number, up to `most`, that may stand behind a word: "unknown 5". */
static bool take_number(const char **s, int64_t most, int64_t *to) {
    const char *at = *s + strspn(*s, " \t");
    char *end;
    if (*at < '1' || *at > '9') return true;
    *to = strtoll(at, &end, 10);
    *s = end;
    return *to <= most && (!*end || *end == ' ' || *end == '\t');
}

static const struct {
    const char *word;
    RtScale as;
} scales[] = {
    {"plain", RT_SCALE_PLAIN},
    {"standard", RT_SCALE_STANDARD},
    {"quantile", RT_SCALE_QUANTILE},
    {"piecewise", RT_SCALE_PIECEWISE},
};
enum { N_SCALES = sizeof scales / sizeof *scales };

/* Reads a scale behind "float"; false: the word is none. */
static bool read_scale(const char **s, const char *word, size_t n, RtWish *w) {
    int64_t bins = 0;
    int i = 0;
    while (i < N_SCALES && !is(word, n, scales[i].word)) i++;
    if (i == N_SCALES) return false;
    w->scale.as = scales[i].as;
    w->scaled = true;
    bool good = w->scale.as != RT_SCALE_PIECEWISE || take_number(s, RT_MOST_BINS, &bins);
    w->scale.bins = (int)bins;
    return good;
}

/* One character that is no blank; nothing: 0. */
static bool take_separator(const char **s, char *to) {
    const char *word;
    size_t n;
    if (next_word(s, &word, &n)) *to = *word;
    return n <= 1;
}

/* Reads what cells hold that are no numbers, behind "float"; false: the word is none of it. */
static bool read_form(const char **s, const char *word, size_t n, RtWish *w) {
    int64_t values = 0;
    bool good = true;
    if (is(word, n, "boolean"))
        w->as = RT_AS_BOOLEAN;
    else if (is(word, n, "vector"))
        w->as = RT_AS_VECTOR;
    else if (is(word, n, "text"))
        w->as = RT_AS_TEXT, good = take_number(s, RT_MOST_VALUES, &values);
    else if (is(word, n, "image"))
        w->as = RT_AS_IMAGE, good = take_number(s, RT_MOST_SIDE, &values);
    else if (is(word, n, "several"))
        w->as = RT_AS_SEVERAL, good = take_separator(s, &w->separator);
    else
        return read_scale(s, word, n, w);
    w->values = w->as == RT_AS_IMAGE ? 3 * (int)(values * values) : (int)values;
    return good;
}

static bool read_names(const char **s, const char *word, size_t n, RtWish *w) {
    if (is(word, n, "known")) return w->known = true;
    return is(word, n, "unknown") && (w->unknown = take_number(s, INT32_MAX, &w->rare));
}

/* Reads whether a time is that of the row ("row"), or is not ("other"). */
static bool read_row_time(const char *word, size_t n, RtWish *w) {
    w->row = is(word, n, "row");
    w->other = is(word, n, "other");
    return w->row || w->other;
}

/* Reads what stands behind a kind. NULL: it is good; else why not. */
static const char *read_wishes(const char *s, rt_col_kind kind, RtWish *w) {
    const char *word;
    size_t n;
    int n_words = 0;
    while (next_word(&s, &word, &n)) {
        bool good = kind == RT_COL_FLOAT  ? read_form(&s, word, n, w)
                    : kind == RT_COL_CAT  ? read_names(&s, word, n, w)
                    : kind == RT_COL_TIME ? read_row_time(word, n, w)
                                          : false;
        if (!good)
            return "behind 'float' may stand 'standard', 'plain', 'quantile', 'piecewise' or "
                   "'piecewise 16', 'boolean', 'text' or 'text 64', 'vector', 'image' or 'image "
                   "8', 'several' or "
                   "'several |', behind 'cat' 'unknown', 'unknown 5' or 'known', behind 'time' "
                   "'row' or 'other'";
        n_words++;
    }
    return n_words > 1 ? "one or the other" : NULL;
}

const char *rt_map_column(RtPool *pool, const char *text, int *kind, RtWish *wish) {
    const char *rest = text, *word;
    char list[RT_COL_KINDS_TEXT];
    size_t n;
    rt_col_kind k;
    *wish = (RtWish){0};
    if (strcmp(text, "drop") == 0) return *kind = RT_KIND_SKIP, NULL;
    next_word(&rest, &word, &n);
    char *name = rt_pool_strndup(pool, word, n);
    if (!name) return rt_map_no_memory;
    if (rt_col_kind_find(name, &k) && rt_kind_of_cells(k)) {
        *kind = (int)k;
        return read_wishes(rest, k, wish);
    }
    rt_col_kinds_list(rt_kind_of_cells, list, sizeof list);
    name = rt_pool_printf(pool, "key, drop, -> table, or a kind is expected: one of %s", list);
    return name ? name : rt_map_no_memory;
}

const char *rt_map_row_time(RtPool *pool, RtImport *how, const RtWish *wish, const char *table,
                            const char *column, size_t n) {
    if (!wish->row && !wish->other) return NULL;
    const char *id = rt_identifier(pool, column, n);
    const char *name = id ? rt_pool_printf(pool, "%s.%s", table, id) : NULL;
    if (!name) return rt_map_no_memory;
    if (rt_import_say_row_time(how, RT_SAID_BY_MAP, name, strlen(name), wish->other)) return NULL;
    return "too long a name, or too many of them";
}

RtWish rt_wish_of(const RtImport *how, const RtWish *w, const char *name) {
    RtWish got = {0};
    bool standard = how->standardize && !rt_is_label(name) && !w->as;
    got.as = w->as;
    got.values = w->values;
    got.separator = w->separator;
    got.scale = w->scaled  ? w->scale
                : standard ? (RtScaleWish){.as = RT_SCALE_STANDARD, .free = true}
                           : got.scale;
    got.unknown = w->unknown || ((how->unknown || how->rare) && !w->known);
    if (got.unknown) got.rare = w->rare ? w->rare : w->unknown ? 0 : how->rare;
    return got;
}

bool rt_kind_of_cells(rt_col_kind k) {
    return k != RT_COL_CSR && k != RT_COL_MULTILABEL;
}
