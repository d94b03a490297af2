/* Lines are cut first; a block is a run of lines at one depth.  "- a: 1" is a sequence's
 * item that holds a mapping which begins two columns further right: the reader cuts the
 * dash off the line and goes on with the rest as a deeper line. */
#include "yaml.h"

#include <string.h>

#include "import_build.h"

enum { MOST_DEPTH = 32 };

typedef struct {
    const char *text; /* without indentation and comment, never empty */
    int indent, number;
} Line;

typedef struct {
    RtPool *pool;
    const char *name;
    RtError *err;
    Line *line;
    int64_t n, at;
} Yaml;

static gnnc_status bad(Yaml *y, int line, const char *what) {
    return rt_fail(y->err, GNNC_E_FORMAT, "%s:%d: %s", y->name, line, what);
}

/* ---- lines ---------------------------------------------------------------------- */
/* Finds where the comment begins, or the line's end: '#' at the start or after a blank, not in
 * quotes. */
static char *find_comment(char *s) {
    char quote = 0;
    for (char *p = s; *p; p++) {
        if (quote ? *p == quote : (*p == '"' || *p == '\'')) quote = quote ? 0 : *p;
        if (*p == '#' && !quote && (p == s || p[-1] == ' ' || p[-1] == '\t')) return p;
    }
    return s + strlen(s);
}

/* Lists the lines that are not blank, without comments, with their indentation. */
static gnnc_status cut_lines(Yaml *y, RtBytes text) {
    const char **all;
    int64_t n;
    gnnc_status st = rt_lines(y->pool, text, y->name, &all, &n, y->err);
    if (st != GNNC_OK) return st;
    if (n > 1 << 20) return bad(y, 1 << 20, "more than 2^20 lines");
    y->line = RT_NEWN(y->pool, Line, n + 1);
    if (!y->line) return rt_fail_nomem(y->err, y->name);
    for (int64_t i = 0; i < n; i++) {
        char *s = (char *)(uintptr_t)all[i], *start = s + strspn(s, " "), *end = find_comment(s);
        while (end > start && (end[-1] == ' ' || end[-1] == '\t')) end--;
        if (end <= start || (i == 0 && strcmp(start, "---") == 0)) continue;
        if (*start == '\t') return bad(y, (int)i + 1, "a tab cannot indent");
        *end = 0;
        y->line[y->n++] = (Line){start, (int)(start - s), (int)i + 1};
    }
    return GNNC_OK;
}

/* ---- scalars --------------------------------------------------------------------- */
/* A new node, of that line. */
static gnnc_status new_node(Yaml *y, RtJsonKind kind, int line, RtJson **out) {
    *out = RT_NEW(y->pool, RtJson);
    if (!*out) return rt_fail_nomem(y->err, y->name);
    (*out)->kind = kind;
    (*out)->line = line;
    return GNNC_OK;
}

/* Reads a plain or quoted value. */
static gnnc_status scalar(Yaml *y, const char *s, int line, RtJson **out) {
    size_t n = strlen(s);
    bool quoted = *s == '"' || *s == '\'';
    bool nothing = strcmp(s, "null") == 0 || strcmp(s, "~") == 0 || !*s;
    if (!quoted && strchr("&*!|>[{%@`", *s) && *s && strcmp(s, "[]") != 0)
        return bad(y, line, "only plain and quoted values are read");
    if (quoted && (n < 2 || s[n - 1] != *s || memchr(s + 1, *s, n - 2) || strchr(s, '\\')))
        return bad(y, line, "a quoted value without escapes is expected");
    gnnc_status st = new_node(y, nothing ? RT_JSON_NULL : RT_JSON_STRING, line, out);
    if (st != GNNC_OK) return st;
    if (strcmp(s, "[]") == 0) (*out)->kind = RT_JSON_ARRAY;
    (*out)->text = rt_pool_strndup(y->pool, quoted ? s + 1 : s, quoted ? n - 2 : n);
    return (*out)->text ? GNNC_OK : rt_fail_nomem(y->err, y->name);
}

/* The colon that ends a key, or NULL; keys are not quoted. */
static const char *key_end(const char *s) {
    if (*s == '"' || *s == '\'') return NULL;
    for (const char *p = s; (p = strchr(p, ':')); p++)
        if (p > s && (!p[1] || p[1] == ' ')) return p;
    return NULL;
}

/* ---- blocks ------------------------------------------------------------------------ */
static gnnc_status block(Yaml *y, int depth, RtJson **out);

/* Adds a child behind the last one. */
static void append(RtJson *parent, RtJson **last, RtJson *child) {
    if (*last)
        (*last)->next = child;
    else
        parent->first = child;
    *last = child;
    parent->n++;
}

static bool is_item(const Line *l) {
    return l->text[0] == '-' && (!l->text[1] || l->text[1] == ' ');
}

/* Reads what stands below the line just read, or NULL as a value. */
static gnnc_status below(Yaml *y, int indent, bool in_mapping, int line, int depth, RtJson **out) {
    bool deeper = y->at < y->n && y->line[y->at].indent > indent;
    bool same =
        in_mapping && y->at < y->n && y->line[y->at].indent == indent && is_item(&y->line[y->at]);
    return deeper || same ? block(y, depth + 1, out) : new_node(y, RT_JSON_NULL, line, out);
}

/* Reads a list: items of one indentation. */
static gnnc_status sequence(Yaml *y, int depth, RtJson **out) {
    int indent = y->line[y->at].indent;
    RtJson *last = NULL, *item;
    gnnc_status st = new_node(y, RT_JSON_ARRAY, y->line[y->at].number, out);
    while (st == GNNC_OK && y->at < y->n && y->line[y->at].indent == indent &&
           is_item(&y->line[y->at])) {
        Line *l = &y->line[y->at];
        size_t skip = 1 + strspn(l->text + 1, " ");
        if (!l->text[skip]) {
            y->at++;
            st = below(y, indent, false, l->number, depth, &item);
        } else {
            l->text += skip;
            l->indent += (int)skip;
            if (is_item(l) || key_end(l->text))
                st = block(y, depth + 1, &item);
            else
                y->at++, st = scalar(y, l->text, l->number, &item);
        }
        if (st == GNNC_OK) append(*out, &last, item);
    }
    return st;
}

/* Reads keys and values of one indentation. */
static gnnc_status mapping(Yaml *y, int depth, RtJson **out) {
    int indent = y->line[y->at].indent;
    RtJson *last = NULL, *item;
    gnnc_status st = new_node(y, RT_JSON_OBJECT, y->line[y->at].number, out);
    while (st == GNNC_OK && y->at < y->n && y->line[y->at].indent == indent) {
        const Line *l = &y->line[y->at++];
        const char *colon = key_end(l->text), *value;
        if (!colon || is_item(l)) return bad(y, l->number, "'key: value' is expected");
        char *key = rt_pool_strndup(y->pool, l->text, (size_t)(colon - l->text));
        if (!key) return rt_fail_nomem(y->err, y->name);
        if (rt_json_get(*out, key)) return bad(y, l->number, "a key is repeated");
        value = colon + 1 + strspn(colon + 1, " ");
        st = *value ? scalar(y, value, l->number, &item)
                    : below(y, indent, true, l->number, depth, &item);
        if (st != GNNC_OK) return st;
        item->key = key;
        append(*out, &last, item);
    }
    return st;
}

/* Reads the list or mapping that begins at this line. */
static gnnc_status block(Yaml *y, int depth, RtJson **out) {
    int indent = y->line[y->at].indent, line = y->line[y->at].number;
    if (depth > MOST_DEPTH) return bad(y, line, "nested too deeply");
    gnnc_status st = is_item(&y->line[y->at]) ? sequence(y, depth, out) : mapping(y, depth, out);
    if (st == GNNC_OK && y->at < y->n && y->line[y->at].indent > indent)
        return bad(y, y->line[y->at].number, "unexpected indentation");
    return st;
}

gnnc_status rt_yaml_parse(RtPool *pool, RtBytes text, const char *name, RtJson **out,
                          RtError *err) {
    Yaml y = {.pool = pool, .name = name, .err = err};
    gnnc_status st = cut_lines(&y, text);
    if (st != GNNC_OK) return st;
    if (y.n == 0) return bad(&y, 1, "is empty");
    st = block(&y, 0, out);
    if (st == GNNC_OK && y.at < y.n) return bad(&y, y.line[y.at].number, "unexpected indentation");
    return st;
}
