#include "import_map.h"

#include <stdlib.h>
#include <string.h>

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

/* Behind "unknown": how many rows a name needs. */
static bool take_rare(const char **s, RtWish *w) {
    const char *at = *s + strspn(*s, " \t");
    char *end;
    if (*at < '1' || *at > '9') return true;
    w->rare = strtoll(at, &end, 10);
    *s = end;
    return w->rare <= INT32_MAX && (!*end || *end == ' ' || *end == '\t');
}

static const char *read_wishes(const char *s, rt_col_kind kind, RtWish *w) {
    const char *word;
    size_t n;
    while (next_word(&s, &word, &n)) {
        bool number = kind == RT_COL_FLOAT, names = kind == RT_COL_CAT;
        if (number && is(word, n, "standard"))
            w->standard = true;
        else if (number && is(word, n, "plain"))
            w->plain = true;
        else if (names && is(word, n, "known"))
            w->known = true;
        else if (!names || !is(word, n, "unknown") || !(w->unknown = take_rare(&s, w)))
            return "behind 'float' may stand 'standard' or 'plain', behind 'cat' 'unknown', "
                   "'unknown 5' or 'known'";
    }
    return (w->standard && w->plain) || (w->unknown && w->known) ? "one or the other" : NULL;
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

RtWish rt_wish_of(const RtImport *how, const RtWish *w, const char *name) {
    RtWish got = {0};
    got.standard = w->standard || (how->standardize && !w->plain && !rt_is_label(name));
    got.unknown = w->unknown || ((how->unknown || how->rare) && !w->known);
    if (got.unknown) got.rare = w->rare ? w->rare : w->unknown ? 0 : how->rare;
    return got;
}
