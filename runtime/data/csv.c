/* The text is copied once and cut in place: unquoting only shortens a cell. */
#include "csv.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dates.h"
#include "number.h"

enum { MAX_COLUMNS = 65536 };

typedef struct {
    char *at, *end; /* *end = 0 */
    char sep;
    int64_t line;
    bool open_quote, nul, commas;
} Cursor;

/* The text between quotes, a doubled one standing for itself. */
static char *cut_quoted(Cursor *c, char *to) {
    for (c->at++; c->at < c->end; *to++ = *c->at++) {
        if (*c->at == '\n') c->line++;
        if (*c->at != '"') continue;
        c->at++;
        if (c->at == c->end || *c->at != '"') return to;
    }
    c->open_quote = true;
    return to;
}

/* Cuts one cell; *last = it ends its row. */
static char *cut_cell(Cursor *c, bool *last) {
    char *start = c->at, *to = c->at;
    bool quoted = c->at < c->end && *c->at == '"';
    if (quoted) to = cut_quoted(c, to);
    while (c->at < c->end && *c->at != c->sep && *c->at != '\n') *to++ = *c->at++;
    *last = c->at >= c->end || *c->at == '\n';
    if (*last && c->at < c->end) c->line++;
    if (c->at < c->end) c->at++;
    if (*last && to > start && to[-1] == '\r') to--;
    *to = 0;
    if (memchr(start, 0, (size_t)(to - start))) c->nul = true;
    if (!c->commas && (quoted || c->sep != ','))
        c->commas = memchr(start, ',', (size_t)(to - start));
    return start;
}

/* The separator that the first line has most of: comma, semicolon or tab. */
static char find_separator(const char *s, const char *end) {
    static const char all[] = ",;\t";
    int best = 0, n[3] = {0};
    for (; s < end && *s != '\n'; s++) {
        const char *p = *s ? strchr(all, *s) : NULL;
        if (p) n[p - all]++;
    }
    for (int i = 1; i < 3; i++)
        if (n[i] > n[best]) best = i;
    return all[best];
}

/* Lines of the text; the last may lack its end. */
static int64_t count_lines(const char *s, const char *end) {
    int64_t n = 1;
    for (; (s = memchr(s, '\n', (size_t)(end - s))); s++) n++;
    return n;
}

/* Reads the first line as names of columns. */
static gnnc_status read_header(RtPool *pool, Cursor *c, RtHeader header, RtCsv *out, RtError *err) {
    bool last = false;
    int64_t cap = 1;
    for (const char *s = c->at; s < c->end && *s != '\n'; s++) cap += *s == c->sep;
    if (cap > MAX_COLUMNS) /* each becomes a file */
        return rt_fail(err, GNNC_E_LIMIT, "%s: row 1: %lld fields: at most %d columns are possible",
                       out->name, (long long)cap, MAX_COLUMNS);
    out->header = RT_NEWN(pool, const char *, cap);
    if (!out->header) return rt_fail_nomem(err, out->name);
    while (!last && out->n_columns < cap) out->header[out->n_columns++] = cut_cell(c, &last);
    if (last && !c->open_quote && !c->nul && (*out->header[0] || header == RT_HEADER_NO))
        return GNNC_OK;
    return rt_fail(err, GNNC_E_FORMAT, "%s: row 1: a header with column names is expected",
                   out->name);
}

/* Is the cell a number or date, and so no name of a column? */
static bool is_value(const char *cell, char separator) {
    double v;
    return rt_cell_time(cell, &v) || rt_date_form(cell) != RT_DATE_NONE ||
           (separator != ',' && rt_cell_comma(cell));
}

/* Row 1 becomes row 1 of the data where it is one. */
static gnnc_status judge_header(RtPool *pool, RtHeader header, RtCsv *t, RtError *err) {
    int n_values = 0;
    const char *value = "";
    for (int i = 0; i < t->n_columns; i++)
        if (is_value(t->header[i], t->separator)) n_values++, value = t->header[i];
    t->headerless = header == RT_HEADER_NO ||
                    (header == RT_HEADER_AUTO && n_values && n_values == t->n_columns);
    if (header == RT_HEADER_AUTO && n_values && !t->headerless)
        return rt_fail(
            err, GNNC_E_FORMAT,
            "%s: row 1: %s among names of columns: is this a header? --header %s=yes, or no",
            t->name, rt_cell_quoted(value).s, t->name);
    if (!t->headerless) return GNNC_OK;
    memcpy(t->cell, t->header, (size_t)t->n_columns * sizeof *t->cell);
    t->line[t->n_rows++] = 1;
    for (int i = 0; i < t->n_columns; i++)
        if (!(t->header[i] = rt_pool_printf(pool, "column_%d", i + 1)))
            return rt_fail_nomem(err, t->name);
    return GNNC_OK;
}

/* Cuts one row into cells; returns what is wrong with it, or NULL. */
static const char *read_row(Cursor *c, const RtCsv *t, const char **cell) {
    bool last = false;
    int n = 0;
    c->open_quote = c->nul = false;
    while (!last) {
        char *s = cut_cell(c, &last);
        if (n < t->n_columns) cell[n] = s;
        n++;
    }
    if (c->open_quote) return "a quote is never closed";
    if (c->nul) return "holds a NUL byte";
    if (n < t->n_columns) return "too few fields";
    return n > t->n_columns ? "too many fields" : NULL;
}

/* Skips a line of blanks; false: there is something in it. */
static bool skip_blank_line(Cursor *c) {
    char *s = c->at;
    while (s < c->end && (*s == ' ' || *s == '\r')) s++;
    if (s < c->end && *s != '\n') return false;
    c->at = s < c->end ? s + 1 : s;
    c->line++;
    return true;
}

/* Reads all rows; one that is not as wide as the header, or broken, is told to on_bad and left
 * out. */
static void read_rows(Cursor *c, RtCsv *t, RtCsvBadRow *on_bad, void *user) {
    while (c->at < c->end) {
        if (t->n_columns > 1 && skip_blank_line(c)) continue;
        int64_t line = c->line;
        const char *what = read_row(c, t, &t->cell[t->n_rows * t->n_columns]);
        if (what)
            on_bad(user, t->name, line, what);
        else
            t->line[t->n_rows++] = line;
    }
}

gnnc_status rt_csv_parse(RtPool *pool, RtBytes text, const char *name, RtHeader header,
                         RtCsvBadRow *on_bad, void *user, RtCsv *out, RtError *err) {
    *out = (RtCsv){.name = name};
    gnnc_status st = rt_text_check(text, name, err);
    if (st != GNNC_OK) return st;
    char *s = rt_pool_strndup(pool, (const char *)text.p, text.n);
    if (!s) return rt_fail_nomem(err, name);
    Cursor c = {.at = s, .end = s + text.n, .line = 1};
    if (text.n >= 3 && memcmp(s, "\xef\xbb\xbf", 3) == 0) c.at += 3; /* UTF-8 mark */
    out->separator = c.sep = find_separator(c.at, c.end);
    st = read_header(pool, &c, header, out, err);
    if (st != GNNC_OK) return st;
    /* A row takes a line, and a cell in a good row a byte of separator. */
    int64_t cap = count_lines(c.at, c.end);
    int64_t bytes = (int64_t)(c.end - c.at) / out->n_columns + 2;
    if (cap > bytes) cap = bytes;
    cap++; /* the first row may be data */
    out->cell = RT_NEWN(pool, const char *, (size_t)cap *(size_t)out->n_columns);
    out->line = RT_NEWN(pool, int64_t, cap);
    if (!out->cell || !out->line) return rt_fail_nomem(err, name);
    st = judge_header(pool, header, out, err);
    if (st == GNNC_OK) read_rows(&c, out, on_bad, user);
    out->commas = c.commas;
    return st;
}

/* ---- what is no text -------------------------------------------------------- */
/* What a file is that is no text, for a message; NULL: it is none of these. */
static const char *known_binary(RtBytes t) {
    static const struct {
        const char *begin, *what;
    } known[] = {
        {"\x93NUMPY", "a .npy array; pack the arrays into an .npz"},
        {"PK\x03\x04",
         "a zip archive; a NumPy archive is called .npz, a spreadsheet is saved as CSV"},
        {"\x1f\x8b", "packed with gzip; unpack it"},
        {"PAR1", "Parquet; write it as CSV"},
        {"SQLite format 3", "an SQLite database, which gnnc import reads alone"},
        {"\xff\xfe", "UTF-16; save it as UTF-8"},
        {"\xfe\xff", "UTF-16; save it as UTF-8"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t n = strlen(known[i].begin);
        if (t.n >= n && memcmp(t.p, known[i].begin, n) == 0) return known[i].what;
    }
    return NULL;
}

gnnc_status rt_text_check(RtBytes text, const char *name, RtError *err) {
    size_t n = text.n < 4096 ? text.n : 4096, control = 0;
    const char *what = known_binary(text);
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        control += c < ' ' && (c < '\t' || c > '\r');
    }
    if (!what && control * 16 <= n) return GNNC_OK;
    return rt_fail(err, GNNC_E_FORMAT, "%s: not a text file: it is %s", name,
                   what ? what : "binary data");
}

/* ---- cells ---------------------------------------------------------------- */
size_t rt_utf8_length(const unsigned char *s, size_t n) {
    size_t k = *s < 0x80 ? 1 : *s < 0xc2 ? 0 : *s < 0xe0 ? 2 : *s < 0xf0 ? 3 : *s < 0xf5 ? 4 : 0;
    if (k > n) return 0;
    for (size_t i = 1; i < k; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    bool bad = k > 2 && ((*s == 0xe0 && s[1] < 0xa0) || (*s == 0xed && s[1] > 0x9f) ||
                         (*s == 0xf0 && s[1] < 0x90) || (*s == 0xf4 && s[1] > 0x8f));
    return bad ? 0 : k;
}

/* The cell in quotes for a message, cut if it is long. */
RtQuoted rt_cell_quoted(const char *cell) {
    enum { MOST = 36 };
    RtQuoted q;
    size_t n = 0;
    q.s[n++] = '\'';
    for (; *cell && n < MOST; cell++) q.s[n++] = (unsigned char)*cell < ' ' ? '?' : *cell;
    snprintf(q.s + n, sizeof q.s - n, *cell ? "..'" : "'");
    return q;
}
