/* Recursive descent over the text, at most MAX_DEPTH deep. */
#include "json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "number.h"

enum { MAX_DEPTH = 64 };

typedef struct {
    RtPool *pool;
    const char *name;
    const char *at, *end;
    int line;
    RtError *err;
} Parser;

static gnnc_status bad(Parser *p, const char *what) {
    return rt_fail(p->err, GNNC_E_FORMAT, "%s:%d: %s", p->name, p->line, what);
}

static gnnc_status no_memory(Parser *p) {
    return rt_fail_nomem(p->err, p->name);
}

/* Skips blanks, counting lines. */
static void skip_blanks(Parser *p) {
    for (; p->at < p->end; p->at++) {
        if (*p->at == '\n')
            p->line++;
        else if (*p->at != ' ' && *p->at != '\t' && *p->at != '\r')
            return;
    }
}

/* Takes character c, behind blanks; false: another one is there. */
static bool take(Parser *p, char c) {
    skip_blanks(p);
    if (p->at == p->end || *p->at != c) return false;
    p->at++;
    return true;
}

/* ---- strings ------------------------------------------------------------ */
/* The number that four hexadecimal digits are; -1: they are none. */
static int hex4(const char *s) {
    int v = 0;
    for (int i = 0; i < 4; i++) {
        char c = s[i];
        int d = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : -1;
        if (d < 0) return -1;
        v = v * 16 + d;
    }
    return v;
}

/* Writes character c as UTF-8; returns its bytes. */
static size_t put_utf8(char *to, uint32_t c) {
    if (c < 0x80) return to[0] = (char)c, 1;
    if (c < 0x800) {
        to[0] = (char)(0xc0 | c >> 6);
        to[1] = (char)(0x80 | (c & 63));
        return 2;
    }
    if (c < 0x10000) {
        to[0] = (char)(0xe0 | c >> 12);
        to[1] = (char)(0x80 | (c >> 6 & 63));
        to[2] = (char)(0x80 | (c & 63));
        return 3;
    }
    to[0] = (char)(0xf0 | c >> 18);
    to[1] = (char)(0x80 | (c >> 12 & 63));
    to[2] = (char)(0x80 | (c >> 6 & 63));
    to[3] = (char)(0x80 | (c & 63));
    return 4;
}

/* Reads what follows "\u": one code point, from two escapes where it is a surrogate pair. */
static bool unicode_escape(Parser *p, uint32_t *c) {
    int hi = p->end - p->at >= 4 ? hex4(p->at) : -1;
    if (hi <= 0) return false; /* NUL would end the C string early */
    p->at += 4;
    *c = (uint32_t)hi;
    if (hi < 0xd800 || hi > 0xdfff) return true;
    if (hi > 0xdbff || p->end - p->at < 6 || p->at[0] != '\\' || p->at[1] != 'u') return false;
    int lo = hex4(p->at + 2);
    if (lo < 0xdc00 || lo > 0xdfff) return false;
    p->at += 6;
    *c = 0x10000u + ((uint32_t)(hi - 0xd800) << 10) + (uint32_t)(lo - 0xdc00);
    return true;
}

/* Reads what follows a backslash; false: nothing that may. */
static bool escape(Parser *p, char *to, size_t *n) {
    static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
    if (p->at == p->end) return false;
    char c = *p->at++;
    const char *s = c ? strchr(from, c) : NULL;
    if (s) {
        to[(*n)++] = into[s - from];
        return true;
    }
    uint32_t code;
    if (c != 'u' || !unicode_escape(p, &code)) return false;
    *n += put_utf8(to + *n, code);
    return true;
}

/* Reads a string behind its opening quote. An escape is never shorter than what it stands for. */
static gnnc_status string(Parser *p, const char **out) {
    const char *end = p->at;
    while (end < p->end && *end != '"') end += *end == '\\' && p->end - end > 1 ? 2 : 1;
    if (end >= p->end) return bad(p, "text ends inside a string");
    char *to = rt_pool_alloc(p->pool, (size_t)(end - p->at) + 1, 1);
    if (!to) return no_memory(p);
    size_t n = 0;
    while (*p->at != '"') {
        char c = *p->at++;
        if ((unsigned char)c < 0x20) return bad(p, "control character inside a string");
        if (c != '\\')
            to[n++] = c;
        else if (!escape(p, to, &n))
            return bad(p, "invalid escape inside a string");
    }
    p->at++;
    *out = to;
    return GNNC_OK;
}

/* ---- numbers ------------------------------------------------------------ */
/* How many digits the text begins with. */
static size_t digits(const char *s) {
    size_t n = 0;
    while (s[n] >= '0' && s[n] <= '9') n++;
    return n;
}

/* Reads a number. One that no int64 holds keeps its text. */
static gnnc_status number(Parser *p, RtJson *v) {
    char text[64]; /* strtod needs a terminator; longer numbers carry no information */
    size_t cap = (size_t)(p->end - p->at), n = 0, k;
    while (n < cap && n + 1 < sizeof text && p->at[n] && strchr("+-.0123456789eE", p->at[n]))
        text[n] = p->at[n], n++;
    text[n] = 0;
    const char *s = text;
    if (*s == '-') s++;
    k = digits(s);
    if (k == 0 || (k > 1 && *s == '0')) return bad(p, "malformed value");
    s += k;
    v->is_int = *s == 0;
    if (*s == '.') {
        k = digits(++s);
        if (k == 0) return bad(p, "malformed number");
        s += k;
    }
    if (*s == 'e' || *s == 'E') {
        s++;
        if (*s == '+' || *s == '-') s++;
        k = digits(s);
        if (k == 0) return bad(p, "malformed number");
        s += k;
    }
    if (*s || n + 1 == sizeof text) return bad(p, "malformed number");
    v->kind = RT_JSON_NUMBER;
    v->number = rt_strtod(text, &(const char *){NULL});
    errno = 0;
    v->i = v->is_int ? strtoll(text, NULL, 10) : 0;
    p->at += n;
    if (errno != ERANGE) return GNNC_OK;
    v->is_int = false;
    v->text = rt_pool_strndup(p->pool, text, n);
    return v->text ? GNNC_OK : no_memory(p);
}

/* ---- values ------------------------------------------------------------- */
static gnnc_status value(Parser *p, int depth, RtJson **out);

static int by_key(const void *x, const void *y) {
    return strcmp((*(RtJson *const *)x)->key, (*(RtJson *const *)y)->key);
}

/* Fails if a key is there twice; sorted, as there may be very many. */
static gnnc_status check_keys(Parser *p, const RtJson *object) {
    RtJson **all = RT_NEWN(p->pool, RtJson *, object->n);
    if (!all) return no_memory(p);
    int n = 0;
    for (RtJson *v = object->first; v; v = v->next) all[n++] = v;
    qsort(all, (size_t)n, sizeof *all, by_key);
    for (int i = 1; i < n; i++)
        if (strcmp(all[i - 1]->key, all[i]->key) == 0)
            return rt_fail(p->err, GNNC_E_FORMAT, "%s:%d: key '%s' is repeated", p->name,
                           all[i]->line, all[i]->key);
    return GNNC_OK;
}

/* Reads the elements of an array or object, up to `close`. */
static gnnc_status children(Parser *p, int depth, RtJson *v, char close) {
    RtJson **tail = &v->first;
    gnnc_status st = GNNC_OK;
    if (take(p, close)) return GNNC_OK;
    do {
        const char *key = NULL;
        if (v->kind == RT_JSON_OBJECT) {
            if (!take(p, '"')) return bad(p, "a key in quotes is expected");
            TRY(st, string(p, &key));
            if (!take(p, ':')) return bad(p, "':' is expected after a key");
        }
        TRY(st, value(p, depth + 1, tail));
        (*tail)->key = key;
        tail = &(*tail)->next;
        v->n++;
    } while (take(p, ','));
    if (!take(p, close))
        st =
            bad(p, v->kind == RT_JSON_OBJECT ? "',' or '}' is expected" : "',' or ']' is expected");
    if (st == GNNC_OK && v->kind == RT_JSON_OBJECT) st = check_keys(p, v);
out:
    return st;
}

/* Takes the word; false: something else is there. */
static bool take_word(Parser *p, const char *word) {
    size_t n = strlen(word);
    if ((size_t)(p->end - p->at) < n || memcmp(p->at, word, n) != 0) return false;
    p->at += n;
    return true;
}

/* Reads a value, `depth` levels deep. */
static gnnc_status value(Parser *p, int depth, RtJson **out) {
    if (depth > MAX_DEPTH) return bad(p, "nested too deeply");
    RtJson *v = RT_NEW(p->pool, RtJson);
    if (!v) return no_memory(p);
    *out = v;
    skip_blanks(p);
    v->line = p->line;
    if (take(p, '{')) return v->kind = RT_JSON_OBJECT, children(p, depth, v, '}');
    if (take(p, '[')) return v->kind = RT_JSON_ARRAY, children(p, depth, v, ']');
    if (take(p, '"')) return v->kind = RT_JSON_STRING, string(p, &v->text);
    if (take_word(p, "null")) return GNNC_OK;
    v->kind = RT_JSON_BOOL;
    if (take_word(p, "false")) return GNNC_OK;
    v->number = 1;
    if (take_word(p, "true")) return GNNC_OK;
    if (p->at == p->end) return bad(p, "text ends where a value is expected");
    return number(p, v);
}

gnnc_status rt_json_parse(RtPool *pool, RtBytes text, const char *name, RtJson **out,
                          RtError *err) {
    const char *s = (const char *)text.p;
    Parser p = {pool, name, s, s + text.n, 1, err};
    gnnc_status st = value(&p, 0, out);
    if (st != GNNC_OK) return st;
    skip_blanks(&p);
    return p.at == p.end ? GNNC_OK : bad(&p, "unexpected text after the value");
}

const RtJson *rt_json_get(const RtJson *object, const char *key) {
    if (!object || object->kind != RT_JSON_OBJECT) return NULL;
    for (const RtJson *v = object->first; v; v = v->next)
        if (strcmp(v->key, key) == 0) return v;
    return NULL;
}

/* ---- writing ------------------------------------------------------------ */
/* Appends n bytes; the text doubles when it grows. False: no memory. */
bool rt_text_put(RtText *t, const char *s, size_t n) {
    if (t->n + n + 1 > t->cap) {
        size_t cap = (t->n + n + 1) * 2;
        char *grown = rt_pool_alloc(t->pool, cap, 1);
        if (!grown) return false;
        if (t->n) memcpy(grown, t->s, t->n);
        t->s = grown;
        t->cap = cap;
    }
    memcpy(t->s + t->n, s, n);
    t->n += n;
    t->s[t->n] = 0;
    return true;
}

/* Appends formatted text; false: no memory. */
bool rt_text_printf(RtText *t, const char *fmt, ...) {
    char small[512];
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = rt_vsnprintf(small, sizeof small, fmt, ap);
    va_end(ap);
    char *text = small;
    if (n >= (int)sizeof small && (text = rt_pool_alloc(t->pool, (size_t)n + 1, 1)))
        rt_vsnprintf(text, (size_t)n + 1, fmt, again);
    va_end(again);
    return n >= 0 && text && rt_text_put(t, text, (size_t)n);
}

/* Appends s as a JSON string; false: no memory. */
bool rt_text_json_string(RtText *t, const char *s) {
    bool ok = rt_text_put(t, "\"", 1);
    for (; *s && ok; s++) {
        if (*s == '"' || *s == '\\')
            ok = rt_text_printf(t, "\\%c", *s);
        else if ((unsigned char)*s < 0x20)
            ok = rt_text_printf(t, "\\u%04x", (unsigned)*s);
        else
            ok = rt_text_put(t, s, 1);
    }
    return ok && rt_text_put(t, "\"", 1);
}
