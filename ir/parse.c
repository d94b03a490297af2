/* The small parts of the IR's text form: words, numbers, size expressions, types,
 * references and positions.  The text may be hostile: recursion and the size of
 * expressions are bounded, and names are looked up in constant time. */
#include "ir/parse.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

/* ---- helpers ------------------------------------------------------------------ */
bool parse_stop(const Parser *p) {
    return p->tok.kind == T_END || p->c->n_errors >= p->c->max_errors;
}

void parse_skip_line(Parser *p) {
    uint32_t line = p->prev_line;
    while (p->tok.kind != T_END && p->tok.span.line <= line && !parse_is(p, '}')) parse_lex_next(p);
}

bool parse_expected(Parser *p, const char *what) {
    if (p->tok.kind == T_BAD) return false;
    return parse_fail(p, DIAG_E0401, p->tok.span, "expected %s", what);
}

bool parse_is(const Parser *p, char ch) {
    return p->tok.kind == T_PUNCT && p->tok.ch == ch;
}

bool parse_accept(Parser *p, char ch) {
    if (!parse_is(p, ch)) return false;
    parse_lex_next(p);
    return true;
}

/* Whether the current token is the word. */
static bool is_word(const Parser *p, const char *word) {
    return p->tok.kind == T_NAME && strcmp(p->tok.s, word) == 0;
}

bool parse_accept_word(Parser *p, const char *word) {
    if (!is_word(p, word)) return false;
    parse_lex_next(p);
    return true;
}

bool parse_expect(Parser *p, char ch) {
    char what[] = {'\'', ch, '\'', 0};
    return parse_accept(p, ch) || parse_expected(p, what);
}

bool parse_name(Parser *p, const char *what, const char **name) {
    if (p->tok.kind != T_NAME && p->tok.kind != T_STRING) return parse_expected(p, what);
    *name = p->tok.s;
    parse_lex_next(p);
    return true;
}

bool parse_ident(Parser *p, const char *what, const char **name) {
    bool ident = p->tok.kind == T_NAME && !strchr(p->tok.s, '.');
    return ident ? parse_name(p, what, name) : parse_expected(p, what);
}

bool parse_text(Parser *p, const char *what, const char **text) {
    if (p->tok.kind != T_STRING) return parse_expected(p, what);
    return parse_name(p, what, text);
}

bool parse_word(Parser *p, const Words *w, const char *what, int *value) {
    *value = p->tok.kind == T_NAME ? text_find(w, p->tok.s, strlen(p->tok.s)) : -1;
    if (*value < 0) return parse_expected(p, what);
    parse_lex_next(p);
    return true;
}

/* Reads a whole number from lo to hi into *n. what: how a diagnostic calls the number. False after
 * diagnostics. */
bool parse_int(Parser *p, const char *what, int64_t lo, int64_t hi, int64_t *n) {
    if (p->tok.kind != T_NUMBER) return parse_expected(p, what);
    if (!p->tok.is_int || p->tok.num < lo || p->tok.num > hi)
        return parse_fail(p, DIAG_E0407, p->tok.span, "%s must be a whole number from %lld to %lld",
                          what, (long long)lo, (long long)hi);
    *n = p->tok.num;
    parse_lex_next(p);
    return true;
}

/* Reads a number, with sign, `nan` or `inf`, into *x. what: how a diagnostic calls it. False after
 * diagnostics. */
bool parse_real(Parser *p, const char *what, double *x) {
    double sign = parse_accept(p, '-') ? -1 : 1;
    if (is_word(p, "nan"))
        *x = NAN;
    else if (is_word(p, "inf"))
        *x = sign * INFINITY;
    else if (p->tok.kind == T_NUMBER)
        *x = sign * p->tok.real;
    else
        return parse_expected(p, what);
    parse_lex_next(p);
    return true;
}

/* ---- sizes ----------------------------------------------------------------------- */
enum { MAX_WEIGHT = 256, MAX_DEPTH = 32 };

/* Counts the nodes of an expression, up to a limit. */
static int count_nodes(const Expr *e, int sum) {
    if (sum > MAX_WEIGHT || !e) return sum;
    return count_nodes(e->b, count_nodes(e->a, sum + 1));
}

static bool sum_expr(Parser *p, int depth, const Expr **e);

/* Whether the expression is small enough; else an error. */
static bool small_enough(Parser *p, Span at, const Expr *e) {
    if (count_nodes(e, 0) <= MAX_WEIGHT) return true;
    return parse_fail(p, DIAG_E0408, at, "this size expression is too large");
}

/* A symbol, or a space, which stands for its size. */
static bool named_size(Parser *p, Span at, const char *name, const Expr **e) {
    const Sym *sym = strmap_get(&p->m->by_name[NAMES_SYM], name);
    const Space *s = space_find(p->m, name);
    if (!sym && !s)
        return parse_fail(p, DIAG_E0402, at, "there is no size '%s' in this module", name);
    *e = sym ? expr_sym(p->a, sym) : s->size;
    return true;
}

/* Parses max, min or ceildiv. */
static bool call_expr(Parser *p, int depth, Span at, const char *fn, const Expr **e) {
    const Expr *x = NULL, *y = NULL;
    if (!parse_expect(p, '(') || !sum_expr(p, depth, &x) || !parse_expect(p, ',')) return false;
    if (!sum_expr(p, depth, &y) || !parse_expect(p, ')')) return false;
    if (strcmp(fn, "max") == 0)
        *e = expr_max(p->a, x, y);
    else if (strcmp(fn, "min") == 0)
        *e = expr_min(p->a, x, y);
    else if (strcmp(fn, "ceildiv") == 0)
        *e = expr_ceildiv(p->a, x, y);
    else
        return parse_fail(p, DIAG_E0401, at, "'%s' is not max, min or ceildiv", fn);
    return true;
}

/* Parses a factor. */
static bool factor_expr(Parser *p, int depth, const Expr **e) {
    Span at = p->tok.span;
    int64_t n = 0;
    const char *name = NULL;
    if (depth > MAX_DEPTH) return parse_fail(p, DIAG_E0408, at, "nested too deeply");
    if (parse_accept(p, '(')) return sum_expr(p, depth + 1, e) && parse_expect(p, ')');
    if (parse_accept(p, '-')) {
        if (!factor_expr(p, depth + 1, e)) return false;
        *e = expr_mul(p->a, expr_const(p->a, -1), *e);
        return true;
    }
    if (p->tok.kind == T_NUMBER) {
        if (!parse_int(p, "a size", 0, INT64_MAX, &n)) return false;
        *e = expr_const(p->a, n);
        return true;
    }
    if (!parse_name(p, "a size", &name)) return false;
    if (parse_is(p, '(')) return call_expr(p, depth + 1, at, name, e);
    return named_size(p, at, name, e);
}

/* Parses a product. */
static bool product_expr(Parser *p, int depth, const Expr **e) {
    Span at = p->tok.span;
    if (!factor_expr(p, depth, e)) return false;
    while (parse_accept(p, '*')) {
        const Expr *y = NULL;
        if (!factor_expr(p, depth, &y)) return false;
        *e = expr_mul(p->a, *e, y);
        if (!small_enough(p, at, *e)) return false;
    }
    return true;
}

/* Parses a sum. */
static bool sum_expr(Parser *p, int depth, const Expr **e) {
    Span at = p->tok.span;
    if (!product_expr(p, depth, e)) return false;
    while (parse_is(p, '+') || parse_is(p, '-')) {
        int64_t sign = parse_is(p, '-') ? -1 : 1;
        const Expr *y = NULL;
        parse_lex_next(p);
        if (!product_expr(p, depth, &y)) return false;
        *e = expr_add(p->a, *e, expr_mul(p->a, expr_const(p->a, sign), y));
        if (!small_enough(p, at, *e)) return false;
    }
    return small_enough(p, at, *e);
}

bool parse_expr(Parser *p, const Expr **e) {
    return sum_expr(p, 0, e);
}

/* ---- references --------------------------------------------------------------------- */
bool parse_space(Parser *p, Space **s) {
    Span at = p->tok.span;
    const char *name = NULL;
    if (!parse_name(p, "the name of a space", &name)) return false;
    *s = space_find(p->m, name);
    return *s || parse_fail(p, DIAG_E0402, at, "there is no space '%s' in this module", name);
}

/* Reads a list "[a, b]" of at most `max` different spaces into v, their number into *n. False after
 * diagnostics. */
bool parse_spaces(Parser *p, int max, int *n, Space **v) {
    *n = 0;
    if (!parse_expect(p, '[')) return false;
    do {
        Span at = p->tok.span;
        Space *s;
        if (!parse_space(p, &s)) return false;
        for (int i = 0; i < *n; i++)
            if (v[i] == s)
                return parse_fail(p, DIAG_E0409, at, "'%s' stands twice in this list", s->name);
        if (*n == max)
            return parse_fail(p, DIAG_E0409, at, "more than %d space%s here", max,
                              max == 1 ? "" : "s");
        v[(*n)++] = s;
    } while (parse_accept(p, ','));
    return parse_expect(p, ']');
}

/* Reads the name "space.name" of a column of the module into *c. False after diagnostics. */
bool parse_column(Parser *p, Column **c) {
    Span at = p->tok.span;
    const char *name = NULL;
    if (!parse_name(p, "a column, as 'space.name'", &name)) return false;
    *c = strmap_get(&p->m->by_name[NAMES_COL], name);
    return *c || parse_fail(p, DIAG_E0402, at, "there is no column '%s' in this module", name);
}

static const char *const dtype_words[] = {
#define DTYPE(id, name, bytes, c_name) name,
#include "runtime/contract.def"
};
static const Words dtypes = {dtype_words, N_DTYPES};

/* Reads the type of a value, such as "f32[N, 16]" or "csr f32[N, F]", into *t. False after
 * diagnostics. */
bool parse_type(Parser *p, Type *t) {
    Span at = p->tok.span;
    int dt;
    *t = (Type){.layout = parse_accept_word(p, "csr") ? LAYOUT_CSR : LAYOUT_DENSE};
    if (!parse_word(p, &dtypes, "an element type", &dt)) return false;
    t->dt = (DType)dt;
    if (dt == DT_VOID) return parse_fail(p, DIAG_E0409, at, "a value cannot be void");
    if (parse_is(p, '[')) {
        if (!parse_spaces(p, MAX_RANK, &t->rank, t->dim)) return false;
    }
    if (t->layout == LAYOUT_CSR && t->rank != 2)
        return parse_fail(p, DIAG_E0409, at, "a csr value has exactly two spaces");
    return true;
}

/* ---- positions: !path:line:col-[line:]col[<path:line[@name]] -------- */
/* Parses the path of a position. */
static bool span_path(Parser *p, const char **path) {
    if (p->p < p->end && *p->p == '"') {
        parse_lex_next(p);
        *path = p->tok.s;
        return p->tok.kind == T_STRING;
    }
    const char *from = p->p;
    while (p->p < p->end && !strchr(" \t\r\n:\"", *p->p)) p->p++;
    *path = arena_strndup(p->a, from, (size_t)(p->p - from));
    return p->p > from;
}

/* Parses the name of a layer's instance, in quotes if it is not bare. */
static bool span_name(Parser *p, const char **name) {
    if (p->p < p->end && *p->p == '"') return span_path(p, name);
    const char *from = p->p;
    while (p->p < p->end && (isalnum((unsigned char)*p->p) || (*p->p && strchr("_./-+", *p->p))))
        p->p++;
    *name = arena_strndup(p->a, from, (size_t)(p->p - from));
    return p->p > from;
}

/* Parses a number of a position. */
static bool span_number(Parser *p, uint32_t *n) {
    uint64_t v = 0;
    const char *from = p->p;
    for (; p->p < p->end && *p->p >= '0' && *p->p <= '9' && v <= UINT32_MAX; p->p++)
        v = v * 10 + (uint64_t)(*p->p - '0');
    *n = (uint32_t)v;
    return p->p > from && v <= UINT32_MAX;
}

/* Parses a character of a position. */
static bool span_char(Parser *p, char ch) {
    if (p->p == p->end || *p->p != ch) return false;
    p->p++;
    return true;
}

/* The source of that path. Its text is not read: IR may come from elsewhere and name any path. */
static uint32_t file_index(Parser *p, const char *path) {
    size_t known = (size_t)strmap_get(&p->files, path);
    if (known) return (uint32_t)(known - 1);
    uint32_t i = 0;
    while (i < (uint32_t)p->c->sources.n &&
           (i == p->file || strcmp(p->c->sources.v[i].path, path) != 0))
        i++;
    if (i == (uint32_t)p->c->sources.n) ctx_add_text(p->c, path, "", 0);
    strmap_put(p->a, &p->files, path, (void *)((size_t)i + 1));
    return i;
}

/* Reads a place in the model, "!path:line:column" with an optional end, into *at. Where a text
 * brings sources and has no mark, it is a place in no file. False after diagnostics. */
bool parse_span(Parser *p, Span *at) {
    if (!parse_is(p, '!')) {
        if (p->sourced) *at = (Span){0};
        return true;
    }
    Span s = {0};
    const char *path = NULL;
    bool ok = span_path(p, &path) && span_char(p, ':') && span_number(p, &s.line) &&
              span_char(p, ':') && span_number(p, &s.col);
    if (ok && span_char(p, '-')) {
        s.end_line = s.line;
        ok = span_number(p, &s.end_col);
        if (ok && span_char(p, ':')) {
            s.end_line = s.end_col;
            ok = span_number(p, &s.end_col);
        }
    }
    const char *site = NULL;
    if (ok && span_char(p, '<'))
        ok = span_path(p, &site) && span_char(p, ':') && span_number(p, &s.site_line);
    if (ok && site && span_char(p, '@')) ok = span_name(p, &s.site_name);
    if (!ok) return parse_expected(p, "a position, as '!file:line:column', after the '!'");
    s.file = file_index(p, path);
    if (site) s.site_file = file_index(p, site);
    *at = s;
    parse_lex_next(p);
    return true;
}
