/* JSON text (RFC 8259) into a StrBuf, indented, members in the order of the calls. */
#include "codegen/report/report.h"

#include <assert.h>
#include <inttypes.h>

static void string(StrBuf *b, const char *s) {
    sb_puts(b, "\"");
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            sb_printf(b, "\\%c", c);
        else if (c < 0x20)
            sb_printf(b, "\\u%04x", c);
        else
            sb_put(b, s, 1);
    }
    sb_puts(b, "\"");
}

static void begin(Json *j, const char *key) {
    if (j->depth > 0) {
        if (j->n[j->depth - 1]++) sb_puts(j->b, ",");
        sb_printf(j->b, "\n%*s", j->depth, "");
    }
    if (!key) return;
    string(j->b, key);
    sb_puts(j->b, ": ");
}

static void open_with(Json *j, const char *key, const char *open, char close) {
    begin(j, key);
    sb_puts(j->b, open);
    assert(j->depth < JSON_DEPTH);
    j->n[j->depth] = 0;
    j->close[j->depth++] = close;
}

void json_object(Json *j, const char *key) {
    open_with(j, key, "{", '}');
}

void json_array(Json *j, const char *key) {
    open_with(j, key, "[", ']');
}

void json_end(Json *j) {
    int n = j->n[--j->depth];
    if (n) sb_printf(j->b, "\n%*s", j->depth, "");
    sb_put(j->b, &j->close[j->depth], 1);
    if (j->depth == 0) sb_puts(j->b, "\n");
}

void json_text(Json *j, const char *key, const char *s) {
    begin(j, key);
    if (s)
        string(j->b, s);
    else
        sb_puts(j->b, "null");
}

void json_int(Json *j, const char *key, int64_t v) {
    begin(j, key);
    sb_printf(j->b, "%" PRId64, v);
}

void json_bool(Json *j, const char *key, bool v) {
    begin(j, key);
    sb_puts(j->b, v ? "true" : "false");
}
