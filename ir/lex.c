/* Tokens of the IR's text form.  `//` starts a comment.  Line breaks are blanks to
 * the grammar, but error recovery goes on at the next line. */
#include "ir/parse.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* Whether the character may be in a word. */
static bool is_word_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' || is_digit(c);
}

/* The character k places ahead, or 0. */
static char peek(const Parser *p, int k) {
    return p->end - p->p > k ? p->p[k] : 0;
}

/* Skips blanks and comments. */
static void skip_blanks(Parser *p) {
    for (; p->p < p->end; p->p++) {
        if (*p->p == '\n') {
            p->line++;
            p->line_start = p->p + 1;
        } else if (*p->p == '/' && peek(p, 1) == '/') {
            const char *nl = memchr(p->p, '\n', (size_t)(p->end - p->p));
            p->p = (nl ? nl : p->end) - 1;
        } else if (*p->p != ' ' && *p->p != '\t' && *p->p != '\r') {
            return;
        }
    }
}

/* Reads a word. */
static const char *lex_word(Parser *p) {
    const char *from = p->p;
    while (p->p < p->end && is_word_char(*p->p)) p->p++;
    return arena_strndup(p->a, from, (size_t)(p->p - from));
}

/* The value of a hexadecimal digit, or -1. */
static int hex_digit(char c) {
    if (is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
}

/* Reads what follows a backslash; 0 when the escape is unknown. */
static char lex_escape(Parser *p) {
    char c = peek(p, 0);
    p->p += p->p < p->end;
    if (c == 'n') return '\n';
    if (c == 't') return '\t';
    if (c == '"' || c == '\\') return c;
    if (c != 'x' || hex_digit(peek(p, 0)) < 0 || hex_digit(peek(p, 1)) < 0) return 0;
    p->p += 2;
    return (char)(hex_digit(p->p[-2]) * 16 + hex_digit(p->p[-1]));
}

/* Reports a bad token. */
static void lex_error(Parser *p, Tok *t, const char *why) {
    t->kind = T_BAD;
    t->span.end_col = (uint32_t)(p->p - p->line_start) + 1;
    parse_fail(p, DIAG_E0401, t->span, "%s", why);
}

/* Reads a string. */
static void lex_string(Parser *p, Tok *t) {
    StrBuf b = sb_new(p->a);
    bool known = true;
    sb_puts(&b, "");
    p->p++;
    while (p->p < p->end && *p->p != '"') {
        char c = *p->p++;
        if (c == '\n' || c == 0) {
            p->p--;
            break;
        }
        if (c == '\\' && (c = lex_escape(p)) == 0) {
            known = false;
            continue;
        }
        sb_put(&b, &c, 1);
    }
    if (peek(p, 0) != '"') {
        lex_error(p, t, "this string is not closed on its line");
        return;
    }
    p->p++;
    t->kind = T_STRING;
    t->s = b.s;
    if (!known) lex_error(p, t, "unknown escape in this string");
}

/* The length of a number: digits and letters, with a sign where it follows an exponent's e. */
static size_t number_length(const char *s, const char *end) {
    size_t n = 1;
    for (; s + n < end; n++) {
        bool exponent = (s[n] == '+' || s[n] == '-') && (s[n - 1] == 'e' || s[n - 1] == 'E');
        if (!is_word_char(s[n]) && !exponent) break;
    }
    return n;
}

/* Reads a number. */
static void lex_number(Parser *p, Tok *t) {
    char s[64] = "", *end = s;
    size_t n = number_length(p->p, p->end);
    if (n < sizeof s) {
        memcpy(s, p->p, n);
        t->real = strtod(s, &end);
    }
    p->p += n;
    if (n >= sizeof s || end != s + n || !isfinite(t->real) || strpbrk(s, "xXpP")) {
        lex_error(p, t, "this is not a number");
        return;
    }
    t->kind = T_NUMBER;
    t->is_int = strspn(s, "0123456789") == n && t->real < 9.2e18;
    if (t->is_int) t->num = strtoll(s, NULL, 10);
}

/* Reads a name with its sigil. */
static void lex_sigil(Parser *p, Tok *t) {
    TokKind kind = t->kind = *p->p == '%' ? T_VALUE : T_FUNC;
    p->p++;
    if (peek(p, 0) == '"') {
        lex_string(p, t);
        if (t->kind == T_STRING) t->kind = kind;
        return;
    }
    t->s = lex_word(p);
    if (!*t->s) lex_error(p, t, "a name must follow here");
}

/* Reads a punctuation character. */
static void lex_punct(Parser *p, Tok *t) {
    t->kind = T_PUNCT;
    t->ch = *p->p;
    if (t->ch == '-' && peek(p, 1) == '>') {
        t->kind = T_ARROW;
        p->p++;
    }
    p->p++;
    if (!t->ch || !strchr("{}[](),:=!+-*>", t->ch))
        lex_error(p, t, "unexpected character in the IR");
}

/* Reads the next token. */
void parse_lex_next(Parser *p) {
    p->prev_line = p->tok.span.line;
    skip_blanks(p);
    uint32_t col = (uint32_t)(p->p - p->line_start) + 1;
    Tok t = {.span = span_of(p->file, p->line, col, p->line, col)};
    char c = peek(p, 0);
    if (p->p == p->end)
        t.kind = T_END;
    else if (c == '"')
        lex_string(p, &t);
    else if (is_digit(c))
        lex_number(p, &t);
    else if (c == '%' || c == '@')
        lex_sigil(p, &t);
    else if (is_word_char(c)) {
        t.kind = T_NAME;
        t.s = lex_word(p);
    } else
        lex_punct(p, &t);
    t.span.end_col = (uint32_t)(p->p - p->line_start) + 1;
    p->tok = t;
}

/* Reports an error; false. */
bool parse_fail(Parser *p, DiagCode code, Span at, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    const char *text = arena_vprintf(p->a, fmt, ap);
    va_end(ap);
    diag_add(p->c, code, at, "%s", text);
    p->ok = false;
    return false;
}
