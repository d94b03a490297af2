/* The IR parser's inside: ir/lex.c makes tokens, ir/parse.c reads the small
 * parts, ir/parse_module.c statements, ir/parse_func.c functions. */
#ifndef IR_PARSE_H
#define IR_PARSE_H

#include "ir/text.h"

typedef enum {
    T_END,
    T_NAME,   /* s: word, column name or keyword */
    T_STRING, /* s: decoded */
    T_NUMBER, /* real; num when is_int */
    T_VALUE,  /* s: %name without the % */
    T_FUNC,   /* s: @name without the @ */
    T_ARROW,
    T_PUNCT, /* ch */
    T_BAD,   /* already reported */
} TokKind;

typedef struct {
    TokKind kind;
    const char *s; /* in the arena */
    char ch;
    double real;
    int64_t num;
    bool is_int;
    Span span;
} Tok;

/* A function, and its values by the names that the text gave them. */
typedef struct {
    Func *f;
    StrMap values;
} ParseNames;

typedef struct {
    Ctx *c;
    Arena *a;
    Module *m;
    const char *p, *end, *line_start; /* p: just after tok */
    uint32_t file, line;
    Tok tok;
    uint32_t prev_line; /* of the token before tok */
    bool ok;            /* nothing was reported yet */
    StrMap files;       /* path in a span -> source index + 1 */
    StrMap funcs;
    StrMap values;         /* of the function being read */
    StrMap hints;          /* of them, as text_hint_of() keeps them */
    bool sourced;          /* the text lists the files of its positions: what has none, has none */
    VEC(ParseNames) names; /* of those that were */
} Parser;

void parse_lex_next(Parser *p);

/* Reports and returns false; the statement loop then skips to the next line. */
bool parse_fail(Parser *p, DiagCode code, Span at, const char *fmt, ...) PRINTF_LIKE(4, 5);
bool parse_expected(Parser *p, const char *what); /* "expected .." at the current token */
bool parse_stop(const Parser *p);                 /* end of text, or enough errors */
void parse_skip_line(Parser *p);

bool parse_is(const Parser *p, char ch);
bool parse_accept(Parser *p, char ch);
bool parse_accept_word(Parser *p, const char *word);
bool parse_expect(Parser *p, char ch);
bool parse_name(Parser *p, const char *what, const char **name);  /* word or string */
bool parse_ident(Parser *p, const char *what, const char **name); /* word that is one in C, too */
bool parse_text(Parser *p, const char *what, const char **text);  /* string */
bool parse_word(Parser *p, const Words *w, const char *what, int *value);
bool parse_int(Parser *p, const char *what, int64_t lo, int64_t hi, int64_t *n);
bool parse_real(Parser *p, const char *what, double *x);
bool parse_expr(Parser *p, const Expr **e);
bool parse_space(Parser *p, Space **s);
bool parse_spaces(Parser *p, int max, int *n, Space **v); /* [a, b, ..] without repeats */
bool parse_column(Parser *p, Column **c);
bool parse_var(Parser *p, Var **v);   /* by its path in quotes */
bool parse_map(Parser *p, Map **map); /* src(cites) */
bool parse_type(Parser *p, Type *t);
bool parse_span(Parser *p, Span *at); /* optional !file:line:col; else *at stays */

Parser parse_begin(Ctx *c, uint32_t file); /* at its first token */
bool parse_module(Parser *p);              /* p->m, up to and with its closing brace */
void parse_func(Parser *p, bool body);     /* after `func` or `body` */

#endif
