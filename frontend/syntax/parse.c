/* Between the scanner and the grammar: which line breaks end a statement (as Go's
 * automatic semicolons, but looking at both neighbours, docs/language.md section 1),
 * which words are keywords only inside a recipe, and how to get past a mistake. */
#include "frontend/syntax/parse.h"
#include "frontend/syntax/lex.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *word;
    int token;
} Word;

/* ---- for the scanner --------------------------------------------------- */
/* Sets *at to the span of a token's text and moves the parser's place behind it. Line breaks are
 * tokens of their own. */
void fe_advance(Parser *p, Span *at, const char *text, size_t n) {
    *at = span_of(p->file, p->line, p->col, p->line, p->col + (uint32_t)n);
    if (n == 1 && text[0] == '\n') {
        p->line++;
        p->col = 1;
    } else {
        p->col += (uint32_t)n;
    }
}

/* The token of a keyword; 0: the text is none of the n. */
static int word_find(const Word *w, size_t n, const char *text) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(w[i].word, text) == 0) return w[i].token;
    return 0;
}

static const Word keywords[] = {
    {"import", IMPORT}, {"const", CONST}, {"graph", GRAPH},   {"node", NODE_},  {"edge", EDGE},
    {"model", MODEL},   {"train", TRAIN}, {"layer", LAYER},   {"fn", FN},       {"extern", EXTERN},
    {"param", PARAM},   {"state", STATE}, {"for", FOR},       {"in", IN},       {"if", IF},
    {"else", ELSE},     {"while", WHILE}, {"return", RETURN}, {"as", AS},       {"true", TRUE_},
    {"false", FALSE_},  {"none", NONE},   {"csr", CSR},       {"where", WHERE}, {"and", AND},
    {"or", OR},         {"not", NOT},     {"f32", ETYPE},     {"f64", ETYPE},   {"f16", ETYPE},
    {"bf16", ETYPE},    {"i32", ETYPE},   {"i64", ETYPE},     {"bool", ETYPE},
};

static const Word recipe_words[] = {
    {"target", TARGET}, {"loss", LOSS},         {"metric", METRIC}, {"optimizer", OPTIMIZER},
    {"group", GROUP},   {"schedule", SCHEDULE}, {"clip", CLIP},     {"epochs", EPOCHS},
    {"keep", KEEP},     {"stop", STOP},         {"sample", SAMPLE}, {"accumulate", ACCUMULATE},
    {"ema", EMA},
};

int fe_keyword(const char *word) {
    int t = word_find(keywords, COUNT(keywords), word);
    return t ? t : NAME;
}

static int recipe_keyword(const char *word) {
    return word_find(recipe_words, COUNT(recipe_words), word);
}

const char *fe_word(int i) {
    return i < (int)COUNT(keywords) ? keywords[i].word : NULL;
}

const char *fe_recipe_word(int i) {
    return i < (int)COUNT(recipe_words) ? recipe_words[i].word : NULL;
}

/* Reads the number in val->text into val->num, and reports one that is too large. Returns its
 * token: INT if it is written as a whole number, else FLOAT. */
int fe_number(Parser *p, FE_STYPE *val, const Span *at, bool whole) {
    errno = 0;
    double v = strtod(val->text, NULL);
    bool bad = errno == ERANGE && v != 0 && (v > 1 || v < -1);
    if (bad || (whole && v > 9007199254740992.0)) { /* 2^53: exact in a double */
        diag_add(p->c, DIAG_E0105, *at, "the number is too large");
        v = 0;
    }
    val->num = v;
    return whole ? INT : FLOAT;
}

/* The string that a quoted text of n bytes stands for; an unknown escape is reported. */
const char *fe_unquote(Parser *p, const Span *at, const char *text, size_t n) {
    StrBuf b = sb_new(p->c->a);
    sb_puts(&b, "");
    for (size_t i = 1; i + 1 < n; i++) {
        char ch = text[i];
        if (ch == '\\') {
            ch = text[++i];
            if (ch == 'n')
                ch = '\n';
            else if (ch == 't')
                ch = '\t';
            else if (ch != '\\' && ch != '"')
                diag_add(p->c, DIAG_E0102, *at, "unknown escape '\\%c' in a string", ch);
        }
        sb_put(&b, &ch, 1);
    }
    return b.s;
}

void fe_bad_char(Parser *p, Span at, const char *text) {
    diag_add(p->c, DIAG_E0101, at, "the character '%s' has no meaning here%s", text,
             fe_char_hint(*text));
}

/* ---- tokens as the scanner gives them, brackets counted ------------------ */
static int closer_of(int open) {
    return open == '(' ? ')' : open == '[' ? ']' : '}';
}

/* Remembers an open bracket, so that its partner is known. Too many end parsing with a
 * diagnostic. */
static void open_bracket(Parser *p, const Token *t) {
    if (p->n_brackets == MAX_BRACKETS) {
        diag_add(p->c, DIAG_E0104, t->span, "brackets are nested more than %d deep", MAX_BRACKETS);
        p->stopped = true;
        return;
    }
    p->bracket[p->n_brackets].open = t->code;
    p->bracket[p->n_brackets++].at = t->span;
    if (t->code == '{' && p->saw_train) {
        p->train_depth = p->n_brackets;
        p->saw_train = false;
    }
}

/* Takes a closing bracket off the count. A '}' also closes what '(' and '[' were left open
 * inside its '{'. */
static void close_bracket(Parser *p, int code) {
    int n = p->n_brackets;
    while (code == '}' && n && p->bracket[n - 1].open != '{') n--;
    if (n && closer_of(p->bracket[n - 1].open) == code) p->n_brackets = n - 1;
    if (p->n_brackets < p->train_depth) p->train_depth = 0;
    if (!p->n_brackets) p->silent = false;
}

/* The next token that is not a line break, without taking it. */
static Token *peek(Parser *p) {
    Token *t = &p->ahead;
    if (p->has_ahead) return t;
    p->has_ahead = true;
    t->first_on_line = p->last == 0;
    while ((t->code = fe_scan_lex(&t->val, &t->span, p->scanner)) == FE_NEWLINE)
        t->first_on_line = true;
    if (t->code == 0) t->span = span_of(p->file, p->line, p->col, p->line, p->col);
    return t;
}

static bool is_word(int code) {
    return code == NAME || code == ETYPE || (code >= IMPORT && code <= CSR) || code == WHERE ||
           code == AND || code == OR || code == NOT;
}

/* What a word means here: after a dot every word is a name, and directly inside `train { }` some
 * names are keywords, but not where only a name can stand: `target target.y`. */
static int word_token(const Parser *p, const Token *t) {
    if (p->last == '.') return NAME;
    if (t->code == NAME && (p->last == TARGET || p->last == LOSS || p->last == METRIC)) return NAME;
    if (t->code != NAME || !p->train_depth || p->n_brackets != p->train_depth) return t->code;
    bool split_before = p->last == TRAIN || (p->last == NAME && strcmp(p->last_text, "val") == 0);
    int k = recipe_keyword(t->val.text);
    return k && !(k == LOSS && split_before) ? k : NAME;
}

/* Takes the token that was looked at: decides whether a word is a keyword here, and keeps count
 * of brackets and of where a statement begins. */
static void take(Parser *p) {
    Token *t = &p->ahead;
    p->has_ahead = false;
    if (is_word(t->code)) t->code = word_token(p, t);
    if (t->code == TRAIN && !p->n_brackets) p->saw_train = true;
    if (p->last == SEP || p->last == '{' || p->last == 0) p->stmt_col = t->span.col;
    p->last = t->code;
    p->last_at = t->span;
    if (t->code == NAME) p->last_text = t->val.text;
    if (t->code == '(' || t->code == '[' || t->code == '{') open_bracket(p, t);
    if (t->code == ')' || t->code == ']' || t->code == '}') close_bracket(p, t->code);
}

/* ---- which tokens the grammar sees ------------------------------------------ */
static bool ends_statement(int code) {
    return is_word(code) || code == STRING || code == INT || code == FLOAT || code == ')' ||
           code == ']' || code == '}';
}

/* Whether a line that begins with this token goes on with the statement above it. 0 is the end
 * of the file. */
static bool cannot_begin_statement(int code) {
    switch (code) {
    case 0:
    case AS:
    case ELSE:
    case WHERE:
    case AND:
    case OR:
    case IN:
    case ARROW:
    case EQ:
    case NE:
    case LE:
    case GE:
    case POW:
    case DOTDOT:
        return true;
    default:
        return code < 128 && strchr("+-*/%@=<>?:,.(){}[];", code) != NULL;
    }
}

static bool inside_parens(const Parser *p) {
    return p->n_brackets && p->bracket[p->n_brackets - 1].open != '{';
}

static bool starts_declaration(const Token *t) {
    return t->code == IMPORT || t->code == CONST || t->code == LAYER || t->code == FN ||
           t->code == EXTERN || t->code == MODEL || t->code == TRAIN;
}

/* A declaration's keyword at the start of a line inside brackets: one was left
 * open.  It is closed for the user, so that the rest still makes sense.  (`layer`
 * and `train` may also start a line inside parentheses, as a formal's type.) */
static bool is_left_open(const Parser *p, const Token *t) {
    if (p->n_brackets && t->code == 0) return true;
    return p->n_brackets && t->first_on_line && starts_declaration(t) &&
           (t->span.col == 1 || !inside_parens(p));
}

/* Reports the innermost open bracket, where something else must stand, and returns the bracket
 * that closes it as a token that the parser gets. Brackets around it are closed without reports. */
static int close_for_user(Parser *p, Span *at) {
    int i = p->n_brackets - 1, open = p->bracket[i].open;
    if (!p->silent) diag_add(p->c, DIAG_E0107, p->bracket[i].at, "this '%c' is never closed", open);
    bool more = p->n_brackets > 1;
    close_bracket(p, closer_of(open));
    p->silent = more;
    *at = p->ahead.span;
    return p->last = closer_of(open);
}

static bool is_statement_end(const Parser *p, const Token *t) {
    return (t->first_on_line || p->last == '}') && !inside_parens(p) && ends_statement(p->last) &&
           !cannot_begin_statement(t->code);
}

/* `store h`, `fuse h, z`: these words are names elsewhere.  The statement's first token was taken.
 */
static bool is_hint(Parser *p, const char *word) {
    if (!p->n_blocks || (strcmp(word, "store") != 0 && strcmp(word, "fuse") != 0)) return false;
    const Token *next = peek(p);
    return next->code == NAME && !next->first_on_line;
}

/* The place behind a token: what a missing one is told at. */
static Span end_of(Span s) {
    return span_of(s.file, s.end_line, s.end_col, s.end_line, s.end_col + 1);
}

/* Gives the parser its next token and returns its code, 0 at the end. *first: it is the first
 * one on its line. Ends of statements and brackets that are closed for the user are tokens, too. */
static int next_token(FE_STYPE *val, Span *at, Parser *p, bool *first) {
    Token *t = peek(p);
    while (t->code == ';' && (p->last == SEP || p->last == '{' || p->last == 0)) {
        p->has_ahead = false;
        t = peek(p);
    }
    *at = t->span;
    *first = t->first_on_line;
    p->n_given++;
    if (p->stopped) return 0;
    if (is_left_open(p, t)) return close_for_user(p, at);
    if (is_statement_end(p, t)) {
        if (t->first_on_line) *at = end_of(p->last_at);
        return p->last = SEP;
    }
    bool begins = p->last == SEP || p->last == '{';
    take(p);
    *val = t->val;
    int code = t->code;
    if (code == NAME && begins && is_hint(p, val->text)) return p->last = HINT;
    if (code != ';') return code;
    return p->last = inside_parens(p) ? SEMI : SEP;
}

/* The parser's next token, 0 at the end. It is recorded for those who want tokens, such as
 * editors. */
int fe_lex(FE_STYPE *val, Span *at, Parser *p) {
    bool first, begins = p->last == SEP || p->last == '{' || p->last == 0;
    int code = next_token(val, at, p, &first);
    if (p->record && code)
        vec_push(p->c->a, &p->record->token, ((GivenToken){code, *at, first, begins, ROLE_PLAIN}));
    return code;
}

/* ---- for those who write the text again ------------------------------------ */
void fe_comment(Parser *p, const Span *at) {
    if (p->record) vec_push(p->c->a, &p->record->comment, *at);
}

static bool stands_before(Span a, Span b) {
    return a.line < b.line || (a.line == b.line && a.col < b.col);
}

/* Gives the recorded token that begins at `at` a role, for editors and the formatter. Nothing
 * happens if no token does. */
void fe_mark(Parser *p, Span at, TokenRole role) {
    int lo = 0, hi = p->record ? p->record->token.n : 0;
    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;
        if (stands_before(p->record->token.v[mid].span, at))
            lo = mid + 1;
        else
            hi = mid;
    }
    if (!p->record) return;
    const int n = p->record->token.n;
    GivenToken *t = p->record->token.v;
    /* The end of a statement that a '}' makes begins where the next token of the line does. */
    while (lo < n && t[lo].code == SEP && !stands_before(at, t[lo].span)) lo++;
    if (lo < n && !stands_before(at, t[lo].span)) t[lo].role = role;
}

/* ---- mistakes -------------------------------------------------------------- */
/* Reports a syntax error, but for those that follow from one before. */
void fe_error(const Span *at, Parser *p, const char *text) {
    bool echo = p->mute;
    p->mute = false;
    if (p->stopped || p->silent || echo) return;
    if (strcmp(text, "memory exhausted") == 0)
        diag_add(p->c, DIAG_E0104, *at, "this is nested too deep");
    else if (p->train_depth && p->n_brackets == p->train_depth &&
             strcmp(text, "unexpected name") == 0)
        diag_add(
            p->c, DIAG_E0103, *at,
            "a recipe has no '%s'; it has target, loss, metric, optimizer, group, schedule, clip, "
            "accumulate, ema, epochs, keep, stop, sample%s",
            p->last_text, fe_setting_hint(p->last_text));
    else
        diag_add(p->c, DIAG_E0103, *at, "%s%s", text, fe_syntax_hint(p, at));
}

void fe_block_open(Parser *p) {
    if (p->n_blocks <= MAX_BRACKETS) p->block_depth[p->n_blocks++] = p->n_brackets;
}

void fe_block_close(Parser *p) {
    if (p->n_blocks) p->n_blocks--;
}

/* Whether the statement ends before the token t, if the brackets above `depth` were left open: a
 * new line that starts at the statement's own column, or further left, ends it. */
static bool at_statement_end(const Parser *p, const Token *t, int depth) {
    if (p->n_brackets <= depth)
        return t->code == '}' || t->code == ';' ||
               (t->first_on_line && !cannot_begin_statement(t->code));
    for (int i = depth; i < p->n_brackets; i++)
        if (p->bracket[i].open == '{') return false;
    return t->first_on_line && (t->code == '}' || t->span.col <= p->stmt_col);
}

/* Whether two recoveries from an error have had no token between them, so that the token in the
 * way must be skipped. */
static bool is_stuck(Parser *p) {
    bool stuck = p->n_given == p->sync_given;
    p->sync_given = p->n_given;
    return stuck;
}

/* After a syntax error in a statement: skips to the statement's end in the present block. next:
 * the parser's lookahead token, 0 at the end. True: the lookahead was skipped, too, and is to be
 * dropped. */
bool fe_sync_statement(Parser *p, int next) {
    if (is_stuck(p)) return next != 0;
    int depth = p->n_blocks ? p->block_depth[p->n_blocks - 1] : 0;
    if (next == 0 || p->n_brackets < depth || (next == SEP && p->n_brackets == depth)) return false;
    for (Token *t = peek(p); t->code && !p->stopped; t = peek(p)) {
        if (at_statement_end(p, t, depth)) break;
        if (p->n_brackets <= depth + 1 && is_left_open(p, t)) break;
        take(p);
    }
    if (p->n_brackets > depth) p->n_brackets = depth;
    p->last = NAME; /* so that a line break ends the statement */
    p->last_text = "";
    return true;
}

/* After a syntax error outside of statements: skips to where the next declaration begins. next:
 * the parser's lookahead token, 0 at the end. True: the lookahead was skipped, too, and is to be
 * dropped. */
bool fe_sync_declaration(Parser *p, int next) {
    bool stuck = is_stuck(p);
    if (next == 0) return false;
    bool keep = next == IMPORT || next == CONST || next == GRAPH || next == LAYER || next == FN ||
                next == EXTERN || next == MODEL || next == TRAIN;
    keep = keep && !stuck;
    for (Token *t = peek(p); !keep && t->code && !p->stopped; t = peek(p)) {
        bool graph = t->code == GRAPH && (t->span.col == 1 || !p->n_brackets);
        if (t->first_on_line && (starts_declaration(t) || graph)) break;
        take(p);
    }
    if (!keep) p->last = SEP;
    p->n_brackets = p->n_blocks = p->train_depth = 0;
    p->silent = false;
    return !keep;
}

/* ---- whole files --------------------------------------------------------------- */
/* The length of the UTF-8 sequence at s, 0 when there is none (truncated,
 * overlong, a surrogate, beyond U+10FFFF). */
static size_t utf8_length(const unsigned char *s, size_t n) {
    if (s[0] < 0x80) return 1;
    size_t len = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || n < len) return 0;
    for (size_t i = 1; i < len; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f)) return 0;
    if ((s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f)) return 0;
    return len;
}

/* Whether a file that is no UTF-8 is one of data: a zip archive, a NumPy array, or gzip. */
static bool is_data(const unsigned char *s, size_t n) {
    static const char *const begins[] = {"PK\x03\x04", "\x93NUMPY", "\x1f\x8b"};
    for (size_t i = 0; i < COUNT(begins); i++)
        if (n >= strlen(begins[i]) && memcmp(s, begins[i], strlen(begins[i])) == 0) return true;
    return false;
}

/* Whether a file is UTF-8 without NUL bytes; its first bad byte is reported if not. */
static bool text_is_sound(Ctx *c, uint32_t file) {
    const Source *src = &c->sources.v[file];
    const unsigned char *s = (const unsigned char *)src->text;
    uint32_t line = 1;
    size_t start = 0;
    for (size_t i = 0; i < src->n_bytes;) {
        size_t len = s[i] ? utf8_length(s + i, src->n_bytes - i) : 0;
        if (len == 0) {
            uint32_t col = (uint32_t)(i - start) + 1;
            bool data = is_data(s, src->n_bytes);
            diag_add(c, DIAG_E0106, span_of(file, line, col, line, col + 1),
                     data   ? "byte 0x%02x: this is a file of data, no model: gnnc import makes a "
                              "data directory of it"
                     : s[i] ? "byte 0x%02x: the file is not valid UTF-8"
                            : "a NUL byte (0x%02x): this is not a text file",
                     s[i]);
            return false;
        }
        if (s[i] == '\n') line++, start = i + 1;
        i += len;
    }
    return true;
}

Ast *fe_parse_file(Ctx *c, uint32_t file) {
    return fe_parse_tokens(c, file, NULL);
}

/* Parses a file that the context has read. to: gets its tokens; NULL = nobody wants them. NULL
 * after a mistake that leaves no tree. */
Ast *fe_parse_tokens(Ctx *c, uint32_t file, TokenList *to) {
    if (!text_is_sound(c, file)) return NULL;
    Parser *p = NEW(c->a, Parser);
    p->c = c;
    p->file = file;
    p->record = to;
    p->line = p->col = 1;
    p->last_text = "";
    size_t n = c->sources.v[file].n_bytes;
    char *text = NEWN(c->a, char, n + 2); /* flex wants two NULs behind */
    memcpy(text, c->sources.v[file].text, n);
    if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        memset(text, ' ', 3); /* a byte order mark */
    if (fe_scan_lex_init_extra(p, &p->scanner) != 0) return NULL;
    fe_scan__scan_buffer(text, n + 2, p->scanner);
    fe_parse(p);
    return p->result;
}
