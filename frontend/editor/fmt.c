/* The canonical layout.  As gofmt does it: which line a token stands on is the writer's choice, but
 * for braces; spaces, indentation and blank lines are not.  The tokens and what the grammar knows
 * of them come from the parser, so nothing of the language is repeated here.  At the end the result
 * is read again: its tokens must be those of the text, or nothing is given. */
#include "frontend/editor/fmt.h"

#include <string.h>

#include "frontend/syntax/parse.h"

enum {
    INDENT = 2,
    CONTINUE = 4,    /* of a statement's further lines outside brackets */
    COLUMN_GAP = 2,  /* behind ';' in braces, and before a setting */
    CELL_GAP = 4,    /* between items of a recipe on one line */
    CELL_WIDTH = 20, /* a wider item is not lined up with others */
    COMMENT_GAP = 3
};

/* A token, or a comment, and where it goes. */
typedef struct {
    const char *text;
    int n; /* bytes */
    int code;
    TokenRole role;
    bool comment, begins; /* begins a statement; a comment: what follows it does, or ends a block */
    bool new_line, blank; /* before it */
    bool block;           /* '{' and '}': on lines of their own */
    int line;             /* of the text as it was */
} Piece;

typedef VEC(Piece) Pieces;

/* A line of the result; comment: what ends it, NULL = nothing. */
typedef struct {
    const char *text;
    const Piece *comment;
    int width;
    bool blank; /* before it */
} Line;

typedef struct {
    bool brace, hangs; /* hangs: nothing stands behind it on its line */
    int column;        /* behind it */
    int indent;        /* of its line */
} Open;

typedef struct {
    Ctx *c;
    Pieces pieces;
    VEC(Line) lines;
    VEC(Open) open;
    int n_braces;
    int cell_at; /* where second items of the recipe's lines begin; 0 = nowhere */
} Layout;

/* ---- tokens and comments, in order -------------------------------------------------------- */
/* Where each line begins, by its number from 1. */
static const char **line_starts(Ctx *c, const Source *s) {
    VEC(const char *) at = {0};
    vec_push(c->a, &at, s->text);
    vec_push(c->a, &at, s->text);
    for (size_t i = 0; i < s->n_bytes; i++)
        if (s->text[i] == '\n') vec_push(c->a, &at, s->text + i + 1);
    return at.v;
}

static Piece piece_at(const char *const *start, Span s) {
    const char *text = start[s.line] + s.col - 1;
    return (Piece){.text = text, .n = (int)(s.end_col - s.col), .line = (int)s.line};
}

static int trimmed(const char *s, int n) {
    while (n && strchr(" \t\r\f\v", s[n - 1])) n--;
    return n;
}

/* The end of a statement that a line break makes has no text. */
static bool has_text(const GivenToken *t, const char *text) {
    return t->code != SEP || *text == ';';
}

/* The tokens and comments of a source, in the order of the text. */
static Pieces pieces_of(Ctx *c, const Source *s, const TokenList *list) {
    Pieces to = {0};
    const char **start = line_starts(c, s);
    int k = 0;
    for (int i = 0; i <= list->token.n; i++) {
        bool end = i == list->token.n;
        const GivenToken *t = end ? NULL : &list->token.v[i];
        Piece p = end ? (Piece){.text = s->text + s->n_bytes} : piece_at(start, t->span);
        for (; k < list->comment.n; k++) {
            Piece note = piece_at(start, list->comment.v[k]);
            if (note.text > p.text) break;
            note.comment = true;
            note.n = trimmed(note.text, note.n);
            note.new_line = !to.n || to.v[to.n - 1].line != note.line;
            vec_push(c->a, &to, note);
        }
        if (end || !has_text(t, p.text)) continue;
        p.code = t->code;
        p.role = t->role;
        p.begins = t->begins;
        p.new_line = t->first_on_line;
        vec_push(c->a, &to, p);
    }
    return to;
}

/* ---- lines -------------------------------------------------------------------------------- */
/* Blocks on several lines have their braces at the ends of lines. */
static void find_blocks(Ctx *c, Pieces *all) {
    VEC(int) open = {0};
    for (int i = 0; i < all->n; i++) {
        Piece *p = &all->v[i];
        if (p->code == '{') vec_push(c->a, &open, i);
        if (p->code != '}' || !open.n) continue;
        Piece *from = &all->v[open.v[--open.n]];
        from->block = p->block = from->line != p->line;
    }
}

/* Decides before which tokens and comments a line breaks, and where one blank line of the text
 * stays. */
static void break_lines(Pieces *all) {
    for (int i = 0; i < all->n; i++) {
        Piece *p = &all->v[i], *last = i ? p - 1 : NULL;
        bool joined = p->code == '{' || p->code == ELSE || p->code == ';' || p->code == SEP;
        if (last && joined) p->new_line = false;
        if (p->code == '}') p->new_line = p->block;
        if (last && last->code == '{' && !p->comment) p->new_line = last->block;
        if (last && last->code == '}' && last->block && p->begins) p->new_line = true;
        if (!last || last->comment) p->new_line = true;
        int ended = last ? last->line : 0;
        p->blank =
            last && p->new_line && p->line > ended + 1 && last->code != '{' && p->code != '}';
    }
}

/* A comment is indented as what follows it: as the beginning of a statement (also before a '}' and
 * at the end of the file), or as the continuation of one. */
static void place_comments(Pieces *all) {
    bool begins = true;
    for (int i = all->n - 1; i >= 0; i--) {
        Piece *p = &all->v[i];
        if (p->comment) p->begins = begins;
        begins = p->begins || p->code == '}';
    }
}

static bool is_closer(int code) {
    return code == ')' || code == ']';
}

/* The number of spaces between two tokens on a line. */
static int space_between(const Piece *a, const Piece *b) {
    if (b->role == ROLE_ITEM) return a->code == '{' ? 1 : COLUMN_GAP;
    if (b->code == ',' || is_closer(b->code) || b->code == SEP || b->code == SEMI) return 0;
    if (a->code == '(' || a->code == '[' || a->role == ROLE_PREFIX) return 0;
    if (b->code == '.') return a->code == INT; /* "convs.0 .1", not a number 0.1 */
    if (a->code == '.') return 0;
    if (a->code == ',') return 1;
    if (a->code == DOTDOT || b->code == DOTDOT) return a->code == '{' || b->code == '}';
    if (b->code == '(' || b->code == '[') return b->role == ROLE_GROUP || a->code == '{';
    if (b->code == ':') return b->role == ROLE_SELECT;
    if (a->code == '@' && b->code == ETYPE) return 0; /* x @bf16 */
    if (a->code == SEP) return COLUMN_GAP;
    return !(a->code == '{' && b->code == '}');
}

/* Columns are characters. */
static int width_of(const char *s, int n) {
    int width = 0;
    for (int i = 0; i < n; i++) width += ((unsigned char)s[i] & 0xc0) != 0x80;
    return width;
}

static bool is_item(const Piece *p) {
    return p->role == ROLE_ITEM && p->code != NAME;
}

/* The first item of the line that begins at `i`, where another follows it on that line; else 0. */
static int first_cell(const Pieces *all, int i) {
    int width = 0, first = i;
    for (; i < all->n && (i == first || !all->v[i].new_line); i++) {
        if (i > first && is_item(&all->v[i])) return width;
        if (i > first) width += space_between(&all->v[i - 1], &all->v[i]);
        width += width_of(all->v[i].text, all->v[i].n);
    }
    return 0;
}

/* The column at which the recipe whose first line begins at `i` aligns its values. */
static int alignment_column(const Pieces *all, int i) {
    int widest = 0;
    for (int depth = 1; i < all->n && depth; i++) {
        const Piece *p = &all->v[i];
        depth += (p->code == '{') - (p->code == '}');
        int width = depth == 1 && p->new_line && is_item(p) ? first_cell(all, i) : 0;
        if (width <= CELL_WIDTH && width > widest) widest = width;
    }
    return widest ? INDENT + widest + CELL_GAP : 0;
}

static int indent_inside(const Open *o, bool closes) {
    if (o->hangs) return closes ? o->indent : o->indent + INDENT;
    return closes ? o->column - 1 : o->column;
}

/* Of a line that begins with v[i]. */
static int indent_of(const Layout *l, int i) {
    const Piece *p = &l->pieces.v[i];
    const Open *o = l->open.n ? &l->open.v[l->open.n - 1] : NULL;
    if (o && !o->brace) return indent_inside(o, is_closer(p->code));
    int base = INDENT * (l->n_braces - (p->code == '}'));
    return p->begins || p->code == '}' ? base : base + CONTINUE;
}

/* Keeps the list of open brackets after piece i. column: behind it; indent: of its line. */
static void open_or_close(Layout *l, int i, int column, int indent) {
    const Piece *p = &l->pieces.v[i], *next = i + 1 < l->pieces.n ? p + 1 : NULL;
    bool brace = p->code == '{';
    if (p->code == '(' || p->code == '[' || brace) {
        bool hangs = !next || next->new_line || next->comment;
        vec_push(l->c->a, &l->open, ((Open){brace, hangs, column, indent}));
        l->n_braces += brace;
    }
    if ((is_closer(p->code) || p->code == '}') && l->open.n)
        l->n_braces -= l->open.v[--l->open.n].brace;
}

/* Lays out the pieces from `i` on that share a line, the first value of it in the column of its
 * recipe. */
static int put_line(Layout *l, int i) {
    StrBuf b = sb_new(l->c->a);
    Line line = {.blank = l->pieces.v[i].blank};
    int indent = indent_of(l, i), column = indent, cells = 0, first = i;
    sb_printf(&b, "%*s", indent, "");
    for (; i < l->pieces.n && (i == first || !l->pieces.v[i].new_line); i++) {
        const Piece *p = &l->pieces.v[i];
        if (p->comment && i > first) {
            line.comment = p;
            continue;
        }
        int gap = i > first ? space_between(p - 1, p) : 0;
        if (is_item(p) && i > first && p[-1].code != '{') {
            bool lined = cells++ == 0 && column <= INDENT + CELL_WIDTH && column < l->cell_at;
            gap = lined ? l->cell_at - column : CELL_GAP;
        }
        sb_printf(&b, "%*s%.*s", gap, "", p->n, p->text);
        column += gap + width_of(p->text, p->n);
        open_or_close(l, i, column, indent);
        if (p->code == TRAIN && l->n_braces == 0) l->cell_at = -1;
        if (p->code == '{' && l->cell_at < 0) l->cell_at = alignment_column(&l->pieces, i + 1);
    }
    line.text = b.s;
    line.width = column;
    vec_push(l->c->a, &l->lines, line);
    return i;
}

/* Comments behind the code of lines in a row stand below each other. */
static int comment_column(const Layout *l, int i, int *end) {
    int most = 0;
    for (; i < l->lines.n && l->lines.v[i].comment; i++) {
        if (most && l->lines.v[i].blank) break;
        if (l->lines.v[i].width > most) most = l->lines.v[i].width;
    }
    *end = i;
    return most + COMMENT_GAP;
}

/* The text of all lines, with comments at their ends lined up. */
static StrBuf text_of(Layout *l) {
    StrBuf b = sb_new(l->c->a);
    int end = 0, column = 0;
    sb_puts(&b, "");
    for (int i = 0; i < l->lines.n; i++) {
        const Line *line = &l->lines.v[i];
        if (line->comment && i >= end) column = comment_column(l, i, &end);
        sb_printf(&b, "%s%s", line->blank ? "\n" : "", line->text);
        if (line->comment)
            sb_printf(&b, "%*s%.*s", column - line->width, "", line->comment->n,
                      line->comment->text);
        sb_puts(&b, "\n");
    }
    return b;
}

/* ---- the result is the same to the compiler ------------------------------------------------- */
/* Have both texts the same tokens and comments? */
static bool same_pieces(const Pieces *a, const Pieces *b) {
    if (a->n != b->n) return false;
    for (int i = 0; i < a->n; i++) {
        const Piece *x = &a->v[i], *y = &b->v[i];
        if (x->code != y->code || x->n != y->n || memcmp(x->text, y->text, (size_t)x->n) != 0)
            return false;
    }
    return true;
}

/* Have both texts the same tokens, in the same roles? */
static bool same_tokens(const TokenList *a, const TokenList *b) {
    if (a->token.n != b->token.n) return false;
    for (int i = 0; i < a->token.n; i++)
        if (a->token.v[i].code != b->token.v[i].code || a->token.v[i].role != b->token.v[i].role)
            return false;
    return true;
}

/* Reads the result again: it must have the tokens and comments of the text, else nothing is
 * given. */
static void check_result(Ctx *c, uint32_t file, const Layout *l, const TokenList *list,
                         const StrBuf *b) {
    TokenList again = {{0}, {0}};
    uint32_t result = ctx_add_text(c, c->sources.v[file].path, b->s, b->n);
    fe_parse_tokens(c, result, &again);
    Pieces pieces = pieces_of(c, &c->sources.v[result], &again);
    bool same = same_tokens(list, &again) && same_pieces(&l->pieces, &pieces);
    CTX_HOLDS(c, same, span_of(file, 1, 1, 1, 1));
}

const char *fmt_text(Ctx *c, uint32_t file, size_t *n) {
    TokenList list = {{0}, {0}};
    Layout l = {.c = c};
    int n_errors = c->n_errors;
    fe_parse_tokens(c, file, &list);
    if (c->n_errors != n_errors) return NULL;
    l.pieces = pieces_of(c, &c->sources.v[file], &list);
    find_blocks(c, &l.pieces);
    break_lines(&l.pieces);
    place_comments(&l.pieces);
    for (int i = 0; i < l.pieces.n;) i = put_line(&l, i);
    StrBuf b = text_of(&l);
    check_result(c, file, &l, &list, &b);
    *n = b.n;
    return b.s;
}
