/* What the scanner, the grammar and parse.c share. */
#ifndef FRONTEND_PARSE_H
#define FRONTEND_PARSE_H

#include "frontend/syntax/ast.h"
#include "frontend/syntax/tokens.h"

/* Brackets open at once, in one file. */
enum { MAX_BRACKETS = 200 };

typedef struct Parser Parser;
#include "frontend/syntax/grammar.h"
#ifndef YYSTYPE
#define YYSTYPE FE_STYPE
#endif
#ifndef YYLTYPE
#define YYLTYPE Span
#endif

/* Tokens that only the scanner and parse.c know. */
enum { FE_NEWLINE = 60000 };

typedef struct {
    int code;
    FE_STYPE val;
    Span span;
    bool first_on_line;
} Token;

struct Parser {
    Ctx *c;
    TokenList *record; /* NULL: nobody asks */
    uint32_t file;
    uint32_t line, col;
    void *scanner;
    Ast *result;
    Token ahead; /* read and not yet given out */
    bool has_ahead;
    int last;              /* the token given out last; 0 at the start */
    Span last_at;          /* of the token taken last */
    const char *last_text; /* of the last NAME */
    uint32_t stmt_col;     /* column in which the current statement started */
    struct {
        int open; /* '(', '[' or '{' */
        Span at;
    } bracket[MAX_BRACKETS];
    int n_brackets;
    int train_depth;                   /* bracket depth inside `train { }`, 0 elsewhere */
    bool saw_train;                    /* between `train` and its '{' */
    int block_depth[MAX_BRACKETS + 1]; /* n_brackets inside each open block of the grammar */
    int n_blocks;
    long n_given, sync_given; /* tokens given out: now, at the last recovery */
    bool silent;              /* brackets are being closed for the user: one message is enough */
    bool mute;                /* a string was cut off: the next syntax error is its echo */
    bool stopped;             /* nested too deep: only end of file follows */
};

/* for the scanner */
void fe_advance(Parser *p, Span *at, const char *text, size_t n);
int fe_keyword(const char *word);
/* All keywords, and those of recipes; NULL behind the last. */
const char *fe_word(int i);
const char *fe_recipe_word(int i);
int fe_number(Parser *p, FE_STYPE *val, const Span *at, bool whole);
const char *fe_unquote(Parser *p, const Span *at, const char *text, size_t n);
void fe_bad_char(Parser *p, Span at, const char *text);
int fe_scan_lex(FE_STYPE *val, Span *at, void *scanner);

void fe_comment(Parser *p, const Span *at);

/* for the grammar */
void fe_mark(Parser *p, Span at, TokenRole role); /* of the token that begins there */
int fe_lex(FE_STYPE *val, Span *at, Parser *p);
void fe_error(const Span *at, Parser *p, const char *text);
void fe_block_open(Parser *p);
void fe_block_close(Parser *p);
/* parse_hint.c: the end of a message, "" where nothing is known */
const char *fe_syntax_hint(const Parser *p, const Span *at);
const char *fe_char_hint(char c);
/* How a recipe says what other libraries call `word`; "" where nothing is known. */
const char *fe_setting_hint(const char *word);
/* Skips to the end of the broken statement or declaration.  `next` is the token
 * that the grammar could not take; true: it was skipped too. */
bool fe_sync_statement(Parser *p, int next);
bool fe_sync_declaration(Parser *p, int next);

/* A file's tree; NULL after diagnostics when nothing could be made of it.  With
 * syntax errors the tree holds AST_BAD nodes. */
Ast *fe_parse_file(Ctx *c, uint32_t file);
/* The same, and every token and comment of it in order. */
Ast *fe_parse_tokens(Ctx *c, uint32_t file, TokenList *to);

#endif
