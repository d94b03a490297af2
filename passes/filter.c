/* The part of an IR's text that is asked for.  It is found in the text, which is the same way for
 * all levels: what stands in a block and which words a line has. */
#include "passes/dump.h"

#include <ctype.h>
#include <fnmatch.h>
#include <string.h>

/* Parses the first line of a block: the length of its name, or 0. */
size_t dump_block(const char *line, const char **name) {
    static const char *const words[] = {"func ", "body ", "phase ", "facts ", "kernel "};
    const char *s = line + strspn(line, " ");
    for (size_t i = 0; i < COUNT(words); i++)
        if (strncmp(s, words[i], strlen(words[i])) == 0) {
            *name = s + strlen(words[i]);
            return strcspn(*name, " (\n{");
        }
    return 0;
}

typedef VEC(const char *) Terms;
typedef struct {
    Terms blocks, values, lines;
} Filter;

/* Parses the terms of a filter. */
static Filter filter_of(Arena *a, const char *terms) {
    Filter f = {.blocks = {0}};
    for (size_t n; *terms; terms += n + (terms[n] == ',')) {
        n = strcspn(terms, ",");
        const char *t = arena_strndup(a, terms, n), *colon = strrchr(t, ':');
        if (*t == '%')
            vec_push(a, &f.values, t);
        else if (colon && *t != '@')
            vec_push(a, &f.lines, t);
        else
            vec_push(a, &f.blocks, t);
    }
    return f;
}

/* What is wrong with a filter; NULL: nothing. */
const char *dump_bad_filter(Arena *a, const char *terms) {
    for (size_t n;; terms += n + 1) {
        n = strcspn(terms, ",");
        const char *t = arena_strndup(a, terms, n), *colon = strrchr(t, ':');
        bool place = colon && *t != '@' && *t != '%';
        if (n == 0 || (n == 1 && strchr("@%:", *t))) return "it has a name that is empty";
        if (place && (!colon[1] || colon[1 + strspn(colon + 1, "0123456789")]))
            return arena_printf(a, "'%s' is no line of a file: gcn.gnn:12", t);
        if (!terms[n]) return NULL;
    }
}

/* Whether the character may be part of a value's name. */
static bool is_name_char(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

/* Whether the line mentions the value. */
static bool has_value(const char *line, size_t n, const char *value) {
    size_t len = strlen(value);
    for (const char *p = line; p + len <= line + n; p++)
        if (memcmp(p, value, len) == 0 && !is_name_char(p[len])) return true;
    return false;
}

/* Whether the line comes from the source line: "!models/gcn.gnn:12:3-9" and "<gcn.gnn:12" are at
 * gcn.gnn:12, and at :12. */
static bool has_line_number(const char *line, size_t n, const char *place) {
    size_t len = strlen(place);
    for (const char *p = line + 1; p + len <= line + n; p++) {
        bool begins = *place == ':' ? !isdigit((unsigned char)p[-1]) : !!strchr("!</\"", p[-1]);
        if (begins && memcmp(p, place, len) == 0 && !isdigit((unsigned char)p[len]) &&
            memchr(line, '!', n))
            return true;
    }
    return false;
}

/* Whether the filter selects the line. */
static bool line_matches(const Filter *f, const char *line, size_t n) {
    if (!f->values.n && !f->lines.n) return true;
    for (int i = 0; i < f->values.n; i++)
        if (has_value(line, n, f->values.v[i])) return true;
    for (int i = 0; i < f->lines.n; i++)
        if (has_line_number(line, n, f->lines.v[i])) return true;
    return false;
}

/* Whether the filter selects the block. */
static bool block_matches(const Filter *f, const char *name) {
    for (int i = 0; i < f->blocks.n; i++)
        if (fnmatch(f->blocks.v[i], name, 0) == 0) return true;
    return f->blocks.n == 0;
}

/* The lines that the filter selects, each with the first and last line of its block. */
const char *dump_filter(Arena *a, const char *text, const char *terms) {
    if (!terms) return text;
    Filter f = filter_of(a, terms);
    StrBuf b = sb_new(a);
    const char *head = NULL, *name; /* of the block that the line is in */
    size_t indent = 0, n_head = 0;
    bool in_block = f.blocks.n == 0, has_head = false;
    for (size_t n; *text; text += n) {
        n = strcspn(text, "\n");
        n += text[n] == '\n';
        size_t len = dump_block(text, &name);
        bool begins = len && !head;
        bool ends = head && strspn(text, " ") == indent && text[indent] == '}';
        if (begins) {
            head = text, n_head = n, indent = strspn(text, " "), has_head = false;
            in_block = block_matches(&f, arena_strndup(a, name, len));
        }
        bool matches = in_block && (line_matches(&f, text, n) || (ends && has_head));
        if (matches && head && !has_head && !begins) sb_put(&b, head, n_head);
        if (matches) sb_put(&b, text, n);
        has_head |= matches && head;
        if (ends) head = NULL, in_block = f.blocks.n == 0;
    }
    return b.s ? b.s : "";
}
