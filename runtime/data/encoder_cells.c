#include "encoder_cells.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "csv.h"
#include "number.h"

typedef struct {
    char s[RT_NUMBER_TEXT];
} Digits;

/* The cell as a text; `digits` has room for that of a number. */
static const char *text_of(const RtCell *c, Digits *digits) {
    if (c->text) return c->text;
    if (isnan(c->number)) return "";
    rt_number_text(c->number, digits->s);
    return digits->s;
}

static bool is_empty(const RtCell *c) {
    return c->text ? rt_cell_absent(c->text) : isnan(c->number);
}

/* ---- booleans ------------------------------------------------------------------------ */
bool rt_cell_boolean(const char *text, bool *v) {
    static const char *const words[] = {"false", "f", "no",  "n", "off", "0",
                                        "true",  "t", "yes", "y", "on",  "1"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasecmp(words[i], text) == 0) return *v = i > 5, true;
    return false;
}

/* Encodes true as 1, false as 0; with `gaps` an empty cell is allowed. */
const char *rt_encode_boolean(const RtEncoder *e, const RtCell *c, void *to, int64_t row, int *at) {
    float *x = (float *)to + row;
    bool v = false;
    (void)at;
    *x = 0;
    if (is_empty(c)) return e->gaps ? NULL : "neither true nor false";
    bool good = c->text ? rt_cell_boolean(c->text, &v) : c->number == 0 || c->number == 1;
    *x = c->text ? v : (float)c->number;
    return good ? NULL : "neither true nor false";
}

/* ---- images --------------------------------------------------------------------------- */
int rt_image_side(int values) {
    for (int side = 1; side <= RT_MOST_SIDE; side++)
        if (3 * side * side == values) return side;
    return 0;
}

const char *rt_encode_image(const RtEncoder *e, const RtCell *c, void *to, int64_t row, int *at) {
    (void)at;
    memset((float *)to + row * e->out, 0, (size_t)e->out * sizeof(float));
    if (!is_empty(c)) return "an image, which gnnc import alone reads";
    return e->gaps ? NULL : "not an image";
}

/* ---- texts --------------------------------------------------------------------------- */
/* FNV-1a of 64 bits (Fowler, Noll & Vo), over pieces. */
static uint64_t hash_bytes(uint64_t h, const char *s, size_t n) {
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        h = (h ^ (c >= 'A' && c <= 'Z' ? c + 32u : c)) * 0x100000001b3u;
    }
    return h;
}

static const uint64_t HASH_BEGIN = 0xcbf29ce484222325u;

/* The hashing trick with signs (Weinberger et al. 2009): the upper half says where, the lowest bit
 * which sign. */
static void add_hash(float *v, int n, uint64_t h) {
    h ^= h >> 29; /* the low bits of FNV alone are poor */
    v[(h >> 32) % (uint64_t)n] += h & 1 ? -1.0f : 1.0f;
}

static bool in_word(char c) {
    unsigned char u = (unsigned char)c;
    return u >= 0x80 || (u >= '0' && u <= '9') || (u >= 'a' && u <= 'z') || (u >= 'A' && u <= 'Z');
}

/* Bytes of the character at s, of which more may follow that begin with 10. */
static size_t character(const char *s, size_t n) {
    size_t k = 1;
    while (k < n && ((unsigned char)s[k] & 0xc0) == 0x80) k++;
    return k;
}

/* The word between '<' and '>', and its triples of characters there (Bojanowski et al. 2017). */
static void add_word(float *v, int n, const char *s, size_t length) {
    uint64_t all = hash_bytes(hash_bytes(hash_bytes(HASH_BEGIN, "<", 1), s, length), ">", 1);
    size_t before = 0, here = character(s, length);
    bool single = here == length;
    add_hash(v, n, all);
    for (size_t at = 0; at < length && !single;) {
        size_t after = at + here < length ? character(s + at + here, length - at - here) : 0;
        uint64_t h = before ? hash_bytes(HASH_BEGIN, s + at - before, before)
                            : hash_bytes(HASH_BEGIN, "<", 1);
        h = hash_bytes(h, s + at, here);
        h = after ? hash_bytes(h, s + at + here, after) : hash_bytes(h, ">", 1);
        add_hash(v, n, h);
        at += here;
        before = here;
        here = after;
    }
}

/* Encodes a text by its words: each adds to one of e->out values, and all are scaled to length
 * 1. */
const char *rt_encode_text(const RtEncoder *e, const RtCell *c, void *to, int64_t row, int *at) {
    Digits digits;
    const char *s = text_of(c, &digits);
    float *v = (float *)to + row * e->out;
    double squares = 0;
    (void)at;
    memset(v, 0, (size_t)e->out * sizeof *v);
    while (*s) {
        size_t n = 0;
        while (in_word(s[n])) n++;
        if (n) add_word(v, e->out, s, n);
        s += n ? n : 1;
    }
    for (int i = 0; i < e->out; i++) squares += (double)v[i] * (double)v[i];
    for (int i = 0; i < e->out && squares > 0; i++) v[i] = (float)((double)v[i] / sqrt(squares));
    return NULL;
}

/* ---- vectors --------------------------------------------------------------------------- */
static char closing(char open) {
    return open == '[' ? ']' : open == '{' ? '}' : open == '(' ? ')' : 0;
}

static const char *skip_blanks(const char *s) {
    return s + strspn(s, " \t\r\n");
}

/* Puts at most n numbers to v; how many there are, -1: it is no list of finite numbers. */
static int64_t read_vector(const char *s, float *v, int64_t n) {
    int64_t k = 0;
    s = skip_blanks(s);
    char end = closing(*s);
    if (!end) return -1;
    for (s = skip_blanks(s + 1); *s != end; k++) {
        const char *stop;
        float x = (float)rt_strtod(s, &stop);
        if (stop == s || !isfinite(x)) return -1;
        if (k < n) v[k] = x;
        s = skip_blanks(stop);
        if (*s == ',' && *(s = skip_blanks(s + 1)) == end) return -1;
        if (*s != end && s[-1] != ',' && s[-1] != ' ' && s[-1] != '\t' && s[-1] != '\n') return -1;
    }
    return *skip_blanks(s + 1) ? -1 : k;
}

int64_t rt_cell_vector(const char *text) {
    return read_vector(text, NULL, 0);
}

/* Encodes a list of e->out numbers; with `gaps` an empty cell is allowed, and all are 0. */
const char *rt_encode_vector(const RtEncoder *e, const RtCell *c, void *to, int64_t row, int *at) {
    float *v = (float *)to + row * e->out;
    (void)at;
    memset(v, 0, (size_t)e->out * sizeof *v);
    if (is_empty(c)) return e->gaps ? NULL : "not a vector";
    if (!c->text) return "not a vector";
    return read_vector(c->text, v, e->out) == e->out ? NULL : "not a vector of that many numbers";
}

/* ---- several categories ----------------------------------------------------------------- */
/* Begins to read the parts of a cell; without a separator it is a list in brackets. */
void rt_parts_open(RtParts *p, const char *text, char separator) {
    *p = (RtParts){.s = text, .separator = separator};
    if (separator) return;
    p->s = skip_blanks(text);
    p->separator = ',';
    p->end = *p->s == '(' ? 0 : closing(*p->s);
    p->bad = !p->end;
    p->s += !p->bad;
}

static bool is_end(const RtParts *p, char c) {
    return !c || c == p->separator || (p->end && c == p->end);
}

/* Within quotes, of lists alone; a backslash takes the next byte as it is. */
static size_t take_quoted(RtParts *p, char *part) {
    size_t n = 0;
    for (p->s++; *p->s && *p->s != '"'; p->s++) {
        if (*p->s == '\\' && p->s[1]) p->s++;
        if (n < RT_PART_TEXT) part[n++] = *p->s;
    }
    p->bad = *p->s != '"';
    p->s += !p->bad;
    p->s = skip_blanks(p->s);
    p->bad = p->bad || !is_end(p, *p->s);
    return n;
}

/* Takes an element that is not in quotes, without blanks at its end; in a list in brackets "null"
 * is empty. Returns its length. */
static size_t take_plain(RtParts *p, char *part) {
    size_t n = 0;
    for (; !is_end(p, *p->s); p->s++)
        if (n < RT_PART_TEXT) part[n++] = *p->s;
    while (n && (part[n - 1] == ' ' || part[n - 1] == '\t')) n--;
    if (p->end && n == 4 && strncasecmp(part, "null", 4) == 0) n = 0;
    return n;
}

/* Behind a part: its separator, or the list's end, behind which nothing may follow. */
static void take_end(RtParts *p) {
    if (p->end && !*p->s) p->bad = true;
    if (p->end && *p->s == p->end) {
        if (*skip_blanks(p->s + 1)) p->bad = true;
        p->s = "";
        p->end = 0;
        return;
    }
    if (*p->s) p->s++;
}

bool rt_parts_next(RtParts *p, char part[RT_PART_TEXT]) {
    while (!p->bad && (*p->s || p->end)) {
        p->s = skip_blanks(p->s);
        size_t n = p->end && *p->s == '"' ? take_quoted(p, part) : take_plain(p, part);
        if (!p->bad) take_end(p);
        p->bad = p->bad || n >= RT_PART_TEXT;
        if (p->bad || !n) continue;
        part[n] = '\0';
        return true;
    }
    return false;
}

bool rt_cell_several(const char *text, char separator) {
    char part[RT_PART_TEXT];
    RtParts p;
    rt_parts_open(&p, text, separator);
    while (rt_parts_next(&p, part)) continue;
    return !p.bad;
}

/* Names that have no value of their own share the first. */
const char *rt_encode_several(const RtEncoder *e, const RtCell *c, void *to, int64_t row, int *at) {
    float *v = (float *)to + row * e->out;
    char part[RT_PART_TEXT];
    Digits digits;
    RtParts p;
    (void)at;
    memset(v, 0, (size_t)e->out * sizeof *v);
    if (is_empty(c)) return NULL;
    rt_parts_open(&p, text_of(c, &digits), e->separator);
    while (rt_parts_next(&p, part)) {
        int32_t k = rt_names_find(&e->codes, part);
        v[k < 0 ? 0 : k] = 1;
    }
    return p.bad ? "not a list of categories" : NULL;
}

bool rt_cell_absent(const char *cell) {
    static const char *const words[] = {"NULL", "NaN", "nan", "NA", "N/A", "\\N"};
    if (!*cell) return true;
    if (*cell != 'N' && *cell != 'n' && *cell != '\\') return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i], cell) == 0) return true;
    return false;
}
