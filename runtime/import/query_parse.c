/* The grammar of docs/tasks.md, by recursive descent.  Words are those of SQL, in any case
 * of the letters. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "runtime/data/dates.h"
#include "import_build.h"
#include "runtime/data/number.h"
#include "query.h"

enum { MOST_DEPTH = 64, MOST_ITEMS = 1024, MOST_BYTES = 1 << 16 };

typedef enum { T_END, T_WORD, T_NAME, T_TEXT, T_NUMBER, T_SIGN } TokenKind; /* NAME: "in quotes" */

typedef struct {
    TokenKind kind;
    const char *text; /* in the pool, without quotes */
    double number;
    int at;
} Token;

typedef struct {
    RtPool *pool;
    const char *text, *s;
    const char *what; /* in messages: "query" */
    Token now;
    int depth;
    RtError *err;
    gnnc_status st;   /* the first failure; no token follows */
    RtQueryExpr none; /* stands where there is no memory */
} Parser;

/* Notes the first error, and makes all further tokens the end. */
static RT_PRINTF(3, 4) void fail(Parser *p, int at, const char *fmt, ...) {
    char what[300];
    va_list args;
    if (p->st != GNNC_OK) return;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    p->st = rt_fail(p->err, GNNC_E_FORMAT, "%s, character %d: %s", p->what, at, what);
    p->now = (Token){.kind = T_END, .text = "", .at = at};
}

static void fail_nomem(Parser *p) {
    if (p->st == GNNC_OK) p->st = rt_fail_nomem(p->err, p->what);
    p->now = (Token){.kind = T_END, .text = ""};
}

/* ---- tokens ------------------------------------------------------------------------- */
static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 128;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* Reads a text in quotes, which are doubled inside: 'O''Hara'. */
static void quoted(Parser *p, char quote) {
    size_t n = 0;
    const char *from = p->s + 1, *s = from;
    while (*s && (*s != quote || s[1] == quote)) s += *s == quote ? 2 : 1;
    if (!*s) {
        fail(p, p->now.at, "the text that begins here does not end");
        return;
    }
    char *to = rt_pool_strndup(p->pool, from, (size_t)(s - from));
    if (!to) {
        fail_nomem(p);
        return;
    }
    for (const char *c = from; c < s; c += *c == quote ? 2 : 1) to[n++] = *c;
    to[n] = 0;
    p->now.kind = quote == '\'' ? T_TEXT : T_NAME;
    p->now.text = to;
    p->s = s + 1;
}

/* Takes n characters as a token. */
static void cut(Parser *p, TokenKind kind, size_t n) {
    p->now.kind = kind;
    p->now.text = rt_pool_strndup(p->pool, p->s, n);
    p->s += n;
    if (!p->now.text) fail_nomem(p);
}

/* Reads 12, -3.5e2, or a date: 2020-01-31. */
static void number(Parser *p) {
    const char *end;
    double v = rt_strtod(p->s, &end);
    size_t n = (size_t)(end - p->s);
    if (strspn(p->s, "0123456789") == 4 && p->s[4] == '-' && is_digit(p->s[5])) {
        n = strspn(p->s, "0123456789-");
        v = NAN;
    }
    cut(p, T_NUMBER, n);
    p->now.number = v;
}

/* Reads the next token. */
static void next(Parser *p) {
    static const char *const pairs[] = {"<=", ">=", "!=", "<>", "=="};
    if (p->st != GNNC_OK) return;
    p->s += strspn(p->s, " \t\r\n");
    while (*p->s == '#') { /* a comment */
        p->s += strcspn(p->s, "\n");
        p->s += strspn(p->s, " \t\r\n");
    }
    p->now = (Token){.kind = T_END, .text = "", .number = NAN, .at = (int)(p->s - p->text) + 1};
    size_t n = 0;
    while (is_letter(p->s[n]) || (n && is_digit(p->s[n]))) n++;
    bool negative = *p->s == '-' && (is_digit(p->s[1]) || p->s[1] == '.');
    if (!*p->s) return;
    if (*p->s == '\'' || *p->s == '"') {
        quoted(p, *p->s);
    } else if (n) {
        cut(p, T_WORD, n);
    } else if (is_digit(*p->s) || negative) {
        number(p);
    } else {
        n = 1;
        for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
            if (strncmp(p->s, pairs[i], 2) == 0) n = 2;
        cut(p, T_SIGN, n);
    }
}

static bool is_word(const Parser *p, const char *word) {
    return p->now.kind == T_WORD && strcasecmp(p->now.text, word) == 0;
}

/* Takes the word, if it is next. */
static bool take_word(Parser *p, const char *word) {
    bool found = is_word(p, word);
    if (found) next(p);
    return found;
}

static bool is_sign(const Parser *p, const char *sign) {
    return p->now.kind == T_SIGN && strcmp(p->now.text, sign) == 0;
}

/* Takes the sign, if it is next. */
static bool take_sign(Parser *p, const char *sign) {
    bool found = is_sign(p, sign);
    if (found) next(p);
    return found;
}

static void want(Parser *p, const char *what) {
    fail(p, p->now.at, "%s is expected%s%.40s%s", what, p->now.kind == T_END ? "" : ", not '",
         p->now.text, p->now.kind == T_END ? ", and the query ends" : "'");
}

/* Takes the sign, which must be next. */
static void want_sign(Parser *p, const char *sign) {
    char what[8];
    if (take_sign(p, sign)) return;
    snprintf(what, sizeof what, "'%s'", sign);
    want(p, what);
}

/* Takes a name as imports call it: "Order Details" is Order_Details. */
static const char *take_name(Parser *p, const char *what) {
    const char *name = rt_identifier(p->pool, p->now.text, strlen(p->now.text));
    if (!name) {
        fail_nomem(p);
        return "";
    }
    if (p->now.kind != T_WORD && p->now.kind != T_NAME) {
        want(p, what);
        return "";
    }
    next(p);
    return name;
}

/* ---- values ------------------------------------------------------------------------- */
static const struct {
    const char *name;
    RtAgg agg;
} aggregates[] = {
    {"COUNT", RT_AGG_COUNT},
    {"COUNT_DISTINCT", RT_AGG_COUNT_DISTINCT},
    {"SUM", RT_AGG_SUM},
    {"AVG", RT_AGG_AVG},
    {"MIN", RT_AGG_MIN},
    {"MAX", RT_AGG_MAX},
    {"FIRST", RT_AGG_FIRST},
    {"LAST", RT_AGG_LAST},
    {"LIST_DISTINCT", RT_AGG_LIST_DISTINCT},
};

static const struct {
    const char *name; /* and with an s */
    double seconds;
} units[] = {{"second", 1}, {"minute", 60}, {"hour", 3600}, {"day", 86400}, {"week", 7 * 86400}};

static RtQueryExpr *condition(Parser *p);

/* A new expression; without memory a common one, as all fails anyway. */
static RtQueryExpr *new_expr(Parser *p, RtQueryKind kind, int at) {
    RtQueryExpr *e = RT_NEW(p->pool, RtQueryExpr);
    if (!e) {
        fail_nomem(p);
        return &p->none;
    }
    e->kind = kind;
    e->at = at;
    return e;
}

/* Reads the bound of a window: a number or -INF. */
static double bound(Parser *p) {
    double v = p->now.number;
    if (take_sign(p, "-")) {
        if (!take_word(p, "INF")) want(p, "a number or -INF");
        return -INFINITY;
    }
    if (p->now.kind != T_NUMBER || !isfinite(v)) {
        want(p, "a number or -INF");
        return 0;
    }
    next(p);
    return v;
}

/* Reads a unit of time; its seconds. */
static double unit(Parser *p) {
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        char many[16];
        snprintf(many, sizeof many, "%ss", units[i].name);
        if (take_word(p, units[i].name) || take_word(p, many)) return units[i].seconds;
    }
    want(p, "seconds, minutes, hours, days or weeks");
    return 0;
}

/* Reads the window of an aggregate, ", 0, 90, days"; days where no unit is said. */
static void window(Parser *p, RtQueryExpr *e) {
    int at = p->now.at;
    e->value.from = -INFINITY;
    e->value.to = 0;
    if (!take_sign(p, ",")) return;
    double from = bound(p), scale = 86400;
    want_sign(p, ",");
    double to = bound(p);
    if (take_sign(p, ",")) scale = unit(p);
    e->value.from = from * scale;
    e->value.to = to * scale;
    if (p->st == GNNC_OK && !(from < to)) fail(p, at, "the window ends before it begins");
}

/* Reads TABLE.COLUMN or COLUMN; with `star` TABLE.* for rows, too. */
static void column_of(Parser *p, RtQueryExpr *e, bool star) {
    e->value.table_at = e->value.column_at = p->now.at;
    const char *name = take_name(p, star ? "TABLE.COLUMN or TABLE.*" : "a column");
    if (!take_sign(p, ".")) {
        e->value.column = name;
        if (star) want(p, "'.', then a column or *,");
        return;
    }
    e->value.table = name;
    if (star && take_sign(p, "*")) return;
    e->value.column_at = p->now.at;
    e->value.column = take_name(p, "a column");
}

/* Reads an aggregate with its condition and window. */
static RtQueryExpr *aggregate(Parser *p, RtQueryExpr *e) {
    e->value.agg = RT_AGG_NONE;
    for (size_t i = 0; i < sizeof aggregates / sizeof *aggregates; i++)
        if (strcasecmp(aggregates[i].name, p->now.text) == 0) e->value.agg = aggregates[i].agg;
    if (e->value.agg == RT_AGG_NONE) {
        want(p, "COUNT, COUNT_DISTINCT, SUM, AVG, MIN, MAX, FIRST, LAST or LIST_DISTINCT");
        return e;
    }
    next(p);
    want_sign(p, "(");
    int at = p->now.at;
    column_of(p, e, true);
    if (p->st == GNNC_OK && !e->value.column && e->value.agg != RT_AGG_COUNT)
        fail(p, at, "only COUNT counts rows (.*): a column is expected");
    if (take_word(p, "VIA")) {
        e->value.via_at = p->now.at;
        e->value.via = take_name(p, "a foreign key");
    }
    if (take_word(p, "WHERE")) e->value.where = condition(p);
    window(p, e);
    want_sign(p, ")");
    return e;
}

/* Reads a column or an aggregate. */
static RtQueryExpr *value(Parser *p) {
    RtQueryExpr *e = new_expr(p, RT_QUERY_VALUE, p->now.at);
    const char *s = p->s + strspn(p->s, " \t\r\n");
    if (p->st != GNNC_OK) return e;
    if (p->now.kind == T_WORD && *s == '(') return aggregate(p, e);
    column_of(p, e, false);
    return e;
}

/* ---- conditions ----------------------------------------------------------------------- */
/* Reads a number or text. */
static RtQueryConst constant(Parser *p) {
    RtQueryConst c = {p->now.text, p->now.kind == T_TEXT, p->now.number, p->now.at};
    if (p->now.kind != T_TEXT && p->now.kind != T_NUMBER) want(p, "a number or a 'text'");
    next(p);
    return c;
}

/* Reads the constant that is compared with, or a list of them in brackets. */
static void take_constants(Parser *p, RtQueryExpr *e, bool list) {
    int room = 0;
    if (list) want_sign(p, "(");
    do {
        if (e->test.n == MOST_ITEMS) fail(p, p->now.at, "more than %d items", MOST_ITEMS);
        if (e->test.n == room) {
            room = room ? 2 * room : 1;
            RtQueryConst *v = RT_NEWN(p->pool, RtQueryConst, room);
            if (!v) fail_nomem(p);
            if (v && e->test.n) memcpy(v, e->test.v, (size_t)e->test.n * sizeof *v);
            e->test.v = v;
        }
        if (p->st != GNNC_OK) return;
        e->test.v[e->test.n++] = constant(p);
    } while (list && take_sign(p, ","));
    if (list) want_sign(p, ")");
}

/* Takes a sign that compares, if it is next. */
static bool comparison(Parser *p, RtTest *op) {
    static const struct {
        const char *sign;
        RtTest op;
    } signs[] = {{"=", RT_TEST_EQ}, {"==", RT_TEST_EQ}, {"!=", RT_TEST_NE}, {"<>", RT_TEST_NE},
                 {"<", RT_TEST_LT}, {"<=", RT_TEST_LE}, {">", RT_TEST_GT},  {">=", RT_TEST_GE}};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (take_sign(p, signs[i].sign)) {
            *op = signs[i].op;
            return true;
        }
    return false;
}

/* LIKE, IN, STARTS WITH, .. behind a value and NOT; false: none stands here. */
static bool word_test(Parser *p, RtQueryExpr *e) {
    if (take_word(p, "IN")) {
        e->test.op = RT_TEST_IN;
        take_constants(p, e, true);
        return true;
    }
    bool starts = is_word(p, "STARTS"), ends = is_word(p, "ENDS");
    if (starts || ends) {
        next(p);
        if (!take_word(p, "WITH")) want(p, "WITH");
        e->test.op = starts ? RT_TEST_STARTS : RT_TEST_ENDS;
    } else if (take_word(p, "LIKE")) {
        e->test.op = RT_TEST_LIKE;
    } else if (take_word(p, "CONTAINS")) {
        e->test.op = RT_TEST_CONTAINS;
    } else {
        return false;
    }
    take_constants(p, e, false);
    return true;
}

/* Reads a value, and the test that may stand behind it. */
static RtQueryExpr *test(Parser *p) {
    RtQueryExpr *of = value(p), *e;
    RtTest op = RT_TEST_EQ;
    int at = p->now.at;
    bool compared = comparison(p, &op), is = !compared && take_word(p, "IS");
    bool negated = take_word(p, "NOT");
    if (p->st != GNNC_OK) return of;
    bool more = compared || is || negated || is_word(p, "IN") || is_word(p, "LIKE") ||
                is_word(p, "STARTS") || is_word(p, "ENDS") || is_word(p, "CONTAINS");
    if (!more) return of;
    e = new_expr(p, RT_QUERY_TEST, at);
    if (p->st != GNNC_OK) return e;
    e->a = of;
    e->test.op = op;
    e->test.negated = negated;
    if (compared) {
        take_constants(p, e, false);
    } else if (is && take_word(p, "NULL")) {
        e->test.op = RT_TEST_IS_NULL;
    } else if (is || !word_test(p, e)) {
        want(p, is ? "NULL" : "IN, LIKE, STARTS WITH, ENDS WITH or CONTAINS");
    }
    return e;
}

/* Fails if e is a value alone: what AND, OR and NOT join is true or false. */
static RtQueryExpr *truth(Parser *p, RtQueryExpr *e) {
    if (p->st == GNNC_OK && e->kind == RT_QUERY_VALUE)
        fail(p, e->at, "a condition is expected: this value is compared with nothing");
    return e;
}

static RtQueryExpr *any(Parser *p);

/* Reads a test, a negation, or what stands in brackets. */
static RtQueryExpr *factor(Parser *p) {
    int at = p->now.at;
    if (++p->depth > MOST_DEPTH) fail(p, at, "more than %d levels of brackets", MOST_DEPTH);
    RtQueryExpr *e;
    if (p->st == GNNC_OK && take_word(p, "NOT")) {
        RtQueryExpr *of = truth(p, factor(p));
        e = new_expr(p, RT_QUERY_NOT, at);
        if (p->st == GNNC_OK) e->a = of;
    } else if (p->st == GNNC_OK && take_sign(p, "(")) {
        e = any(p);
        want_sign(p, ")");
    } else {
        e = test(p);
    }
    p->depth--;
    return e;
}

/* Reads parts that are joined by the word, AND or OR. */
static RtQueryExpr *joined(Parser *p, RtQueryKind kind, const char *word,
                           RtQueryExpr *part(Parser *p)) {
    RtQueryExpr *e = part(p);
    while (p->st == GNNC_OK && is_word(p, word)) {
        int at = p->now.at;
        next(p);
        RtQueryExpr *a = truth(p, e), *b = truth(p, part(p));
        e = new_expr(p, kind, at);
        if (p->st != GNNC_OK) break;
        e->a = a;
        e->b = b;
    }
    return e;
}

static RtQueryExpr *all(Parser *p) {
    return joined(p, RT_QUERY_AND, "AND", factor);
}

static RtQueryExpr *any(Parser *p) {
    return joined(p, RT_QUERY_OR, "OR", all);
}

/* Reads a condition, which is true or false. */
static RtQueryExpr *condition(Parser *p) {
    if (++p->depth > MOST_DEPTH) fail(p, p->now.at, "more than %d levels", MOST_DEPTH);
    RtQueryExpr *e = truth(p, any(p));
    p->depth--;
    return e;
}

/* ---- the query -------------------------------------------------------------------------- */
/* Reads the columns that are known only after the row. */
static void known_after(Parser *p, RtQuery *q) {
    q->after = RT_NEWN(p->pool, const char *, MOST_ITEMS);
    q->after_at = RT_NEWN(p->pool, int, MOST_ITEMS);
    if (!q->after || !q->after_at) {
        fail_nomem(p);
        return;
    }
    do {
        if (q->n_after == MOST_ITEMS) fail(p, p->now.at, "more than %d columns", MOST_ITEMS);
        if (p->st != GNNC_OK) return;
        q->after_at[q->n_after] = p->now.at;
        q->after[q->n_after++] = take_name(p, "a column");
    } while (take_sign(p, ","));
}

enum { MOST_RANKED = 1000 };

/* Reads RANK TOP 10, if it is there. */
static void ranked(Parser *p, RtQuery *q) {
    q->ranked_at = p->now.at;
    if (!take_word(p, "RANK")) return;
    if (!take_word(p, "TOP")) want(p, "TOP");
    double n = p->now.number;
    bool fits = p->now.kind == T_NUMBER && n >= 1 && n <= MOST_RANKED && n == (double)(int)n;
    if (p->st == GNNC_OK && !fits) want(p, "a number of 1 to 1000");
    if (p->st == GNNC_OK) q->top = (int)n;
    next(p);
}

gnnc_status rt_query_parse(RtPool *pool, const char *text, RtQuery *out, RtError *err) {
    Parser p = {.pool = pool, .text = text, .s = text, .what = "query", .err = err};
    *out = (RtQuery){.text = text};
    if (strlen(text) > MOST_BYTES)
        return rt_fail(err, GNNC_E_LIMIT, "query: more than %d bytes", MOST_BYTES);
    next(&p);
    take_word(&p, "PREDICT");
    out->target = any(&p);
    ranked(&p, out);
    if (take_word(&p, "FOR")) {
        take_word(&p, "EACH");
        out->entity_at = p.now.at;
        out->entity = take_name(&p, "a table");
        if (take_sign(&p, ".")) {
            out->key_at = p.now.at;
            out->key = take_name(&p, "its key");
        }
    }
    if (take_word(&p, "WHERE")) out->where = condition(&p);
    if (take_word(&p, "ASSUMING")) out->assuming = condition(&p);
    if (take_word(&p, "KNOWN")) {
        if (!take_word(&p, "AFTER")) want(&p, "AFTER");
        known_after(&p, out);
    }
    if (p.st == GNNC_OK && p.now.kind != T_END)
        want(&p, "RANK TOP, FOR EACH, WHERE, ASSUMING, KNOWN AFTER or the end of the query");
    return p.st;
}

/* ---- a task by SQL ---------------------------------------------------------------------- */
/* Reads a date; its seconds since 1970. */
static double date(Parser *p) {
    double v = NAN;
    bool found = p->now.kind == T_NUMBER || p->now.kind == T_TEXT;
    if (p->st == GNNC_OK && (!found || !rt_cell_time(p->now.text, &v))) want(p, "2010-01-31");
    next(p);
    return v;
}

/* Reads one line of a task in SQL. */
static void task_line(Parser *p, RtTaskText *to) {
    if (take_word(p, "entity")) {
        to->entity = take_name(p, "a table");
    } else if (take_word(p, "window")) {
        double n = bound(p);
        to->window = n * unit(p);
        if (p->st == GNNC_OK && !(to->window >= 0 && isfinite(to->window)))
            fail(p, p->now.at, "the window ends before it begins");
    } else if (take_word(p, "val_time")) {
        to->val_time = date(p);
    } else if (take_word(p, "test_time")) {
        to->test_time = date(p);
    } else if (take_word(p, "inclusive")) {
        to->inclusive = true;
    } else if (take_word(p, "sql")) {
        size_t n = strlen(p->now.text);
        while (n && strchr(" \t\r\n;", p->now.text[n - 1])) n--;
        to->sql = rt_pool_strndup(p->pool, p->now.text, n);
        if (!to->sql) fail_nomem(p);
        if (p->now.kind != T_NAME && p->now.kind != T_TEXT) want(p, "\"SELECT ..\"");
        next(p);
    } else {
        want(p, "entity, window, val_time, test_time, inclusive, sql or '}'");
    }
}

gnnc_status rt_query_parse_task(RtPool *pool, const char *text, RtTaskText *out, RtError *err) {
    Parser p = {.pool = pool, .text = text, .s = text, .what = "task", .err = err};
    *out = (RtTaskText){.window = NAN, .val_time = NAN, .test_time = NAN};
    if (strlen(text) > MOST_BYTES)
        return rt_fail(err, GNNC_E_LIMIT, "task: more than %d bytes", MOST_BYTES);
    next(&p);
    if (!take_word(&p, "task")) want(&p, "task NAME { .. }");
    out->name = take_name(&p, "the task's name");
    want_sign(&p, "{");
    while (p.st == GNNC_OK && !take_sign(&p, "}")) task_line(&p, out);
    if (p.st == GNNC_OK && p.now.kind != T_END) want(&p, "the end of the file");
    const char *lacks = !out->entity         ? "entity TABLE"
                        : !out->sql          ? "sql \"SELECT ..\""
                        : isnan(out->window) ? "window 30 days"
                                             : NULL;
    if (lacks) fail(&p, p.now.at, "it lacks %s", lacks);
    return p.st;
}

/* ---- walks ---------------------------------------------------------------------------- */
void rt_query_each(const RtQueryExpr *e, void see(void *user, const RtQueryExpr *value),
                   void *user) {
    if (!e) return;
    if (e->kind == RT_QUERY_VALUE) {
        see(user, e);
        return;
    }
    rt_query_each(e->a, see, user);
    rt_query_each(e->b, see, user);
}

static void see_aggregate(void *user, const RtQueryExpr *value) {
    if (value->value.agg != RT_AGG_NONE) *(bool *)user = true;
}

bool rt_query_aggregates(const RtQueryExpr *e) {
    bool found = false;
    rt_query_each(e, see_aggregate, &found);
    return found;
}
