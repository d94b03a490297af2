#include "frontend/editor/text.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- places ------------------------------------------------------------------------------- */
static size_t bytes_of(unsigned char lead) {
    return lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
}

/* The offset at which a line begins, numbered from 0; n: there is no such line. */
static size_t line_at(const char *text, size_t n, int64_t line) {
    size_t at = 0;
    while (line-- > 0) {
        const char *end = memchr(text + at, '\n', n - at);
        if (!end) return n;
        at = (size_t)(end - text) + 1;
    }
    return at;
}

size_t text_offset(const char *text, size_t n, TextPlace to) {
    size_t at = line_at(text, n, to.line);
    for (int64_t unit = 0; at < n && text[at] != '\n' && unit < to.unit; unit++) {
        size_t bytes = bytes_of((unsigned char)text[at]);
        if (text[at] == '\r' && at + 1 < n && text[at + 1] == '\n') break;
        unit += bytes == 4; /* a pair of surrogates */
        at = bytes < n - at ? at + bytes : n;
    }
    return at;
}

TextPlace text_place(const char *text, size_t n, size_t offset) {
    TextPlace p = {0, 0};
    for (size_t at = 0; at < n && at < offset;) {
        size_t bytes = bytes_of((unsigned char)text[at]);
        p.unit += bytes == 4 ? 2 : 1;
        if (text[at] == '\n') p = (TextPlace){p.line + 1, 0};
        at += bytes;
    }
    return p;
}

size_t text_offset_of(const char *text, size_t n, uint32_t line, uint32_t col) {
    size_t at = line_at(text, n, (int64_t)line - 1);
    return col - 1 < n - at ? at + col - 1 : n;
}

/* ---- names -------------------------------------------------------------------------------- */
static bool is_part(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '\'';
}

size_t text_name(const char *text, size_t n, size_t offset, size_t *end) {
    size_t from = offset;
    while (from && is_part(text[from - 1])) from--;
    while (offset < n && is_part(text[offset])) offset++;
    *end = offset;
    return from;
}

bool text_is_name(const char *s) {
    size_t n = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
    return n && !isdigit((unsigned char)*s) && s[n + strspn(s + n, "'")] == 0;
}

/* ---- addresses ------------------------------------------------------------------------------ */
/* The value of a hexadecimal digit; -1: it is none. */
static int hex(char c) {
    return isdigit((unsigned char)c)    ? c - '0'
           : isxdigit((unsigned char)c) ? (c | 0x20) - 'a' + 10
                                        : -1;
}

const char *text_path_of_uri(Arena *a, const char *uri) {
    StrBuf b = sb_new(a);
    if (strncmp(uri, "file://", 7) != 0) return arena_strndup(a, uri, strlen(uri));
    sb_puts(&b, "");
    for (const char *s = uri + 7 + strcspn(uri + 7, "/"); *s; s++) {
        bool coded = *s == '%' && hex(s[1]) >= 0 && hex(s[2]) >= 0;
        char c = coded ? (char)(hex(s[1]) * 16 + hex(s[2])) : *s;
        if (c) sb_put(&b, &c, 1);
        s += coded ? 2 : 0;
    }
    return b.s;
}

const char *text_uri_of_path(Arena *a, const char *path) {
    char here[PATH_MAX];
    StrBuf b = sb_new(a);
    if (*path != '/' && strchr(path, ':')) return path; /* an address of another kind */
    sb_puts(&b, "file://");
    if (*path != '/' && getcwd(here, sizeof here)) path = arena_printf(a, "%s/%s", here, path);
    for (path = ctx_plain_path(a, path); *path; path++)
        if (isalnum((unsigned char)*path) || strchr("/._-~", *path))
            sb_put(&b, path, 1);
        else
            sb_printf(&b, "%%%02X", (unsigned char)*path);
    return b.s;
}
