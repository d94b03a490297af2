/* JSON text (RFC 8259) into a StrBuf, indented, members in the order of the calls. */
#include "codegen/report/report.h"

#include <assert.h>
#include <inttypes.h>

/* The length in bytes of the UTF-8 character at s; 0: what stands there is no valid UTF-8 (RFC
 * 3629). */
static size_t utf8_length(const unsigned char *s) {
    size_t n = s[0] < 0x80 ? 1 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : (s[0] & 0xf0) == 0xe0 ? 3 : 4;
    if (n == 4 && (s[0] < 0xf0 || s[0] > 0xf4)) return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    bool longer = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90);
    bool beyond = (s[0] == 0xed && s[1] >= 0xa0) || (s[0] == 0xf4 && s[1] >= 0x90);
    return longer || beyond ? 0 : n;
}

/* Prints s as a JSON string. Bytes that are no UTF-8, which file names may have, become U+FFFD. */
static void print_string(const Json *j, const char *s) {
    StrBuf *b = j->b;
    sb_puts(b, "\"");
    for (size_t n; *s; s += n) {
        unsigned char c = (unsigned char)*s;
        n = utf8_length((const unsigned char *)s);
        if (!n)
            sb_puts(b, "\\ufffd"), n = 1;
        else if (c == '"' || c == '\\')
            sb_printf(b, "\\%c", c);
        else if (c == '\n')
            sb_puts(b, "\\n");
        else if (c < 0x20 || (c == '<' && j->in_html))
            sb_printf(b, "\\u%04x", c);
        else
            sb_put(b, s, n);
    }
    sb_puts(b, "\"");
}

/* Prints what precedes a member of an object or array: comma, line break and indentation, and the
 * key unless it is NULL. */
static void begin_member(Json *j, const char *key) {
    if (j->depth > 0) {
        if (j->n[j->depth - 1]++) sb_puts(j->b, ",");
        if (!j->in_html) sb_printf(j->b, "\n%*s", j->depth, "");
    }
    if (!key) return;
    print_string(j, key);
    sb_puts(j->b, ": ");
}

/* Begins an object or array as a member with the given key (NULL: without). close: the bracket that
 * json_end() prints for it. */
static void open_nested(Json *j, const char *key, const char *open, char close) {
    begin_member(j, key);
    sb_puts(j->b, open);
    assert(j->depth < JSON_DEPTH);
    j->n[j->depth] = 0;
    j->close[j->depth++] = close;
}

/* Opens an object as a member with this key; json_end() closes it. */
void json_object(Json *j, const char *key) {
    open_nested(j, key, "{", '}');
}

/* Opens an array as a member with this key; json_end() closes it. */
void json_array(Json *j, const char *key) {
    open_nested(j, key, "[", ']');
}

/* Closes the innermost open object or array; behind the outermost one a line ends. */
void json_end(Json *j) {
    int n = j->n[--j->depth];
    if (n && !j->in_html) sb_printf(j->b, "\n%*s", j->depth, "");
    sb_put(j->b, &j->close[j->depth], 1);
    if (j->depth == 0) sb_puts(j->b, "\n");
}

/* Prints a string member with this key; s = NULL is printed as null. */
void json_text(Json *j, const char *key, const char *s) {
    begin_member(j, key);
    if (s)
        print_string(j, s);
    else
        sb_puts(j->b, "null");
}

/* Prints an integer member with this key. */
void json_int(Json *j, const char *key, int64_t v) {
    begin_member(j, key);
    sb_printf(j->b, "%" PRId64, v);
}

/* Prints a boolean member with this key. */
void json_bool(Json *j, const char *key, bool v) {
    begin_member(j, key);
    sb_puts(j->b, v ? "true" : "false");
}
