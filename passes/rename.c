/* Values are numbered, so one that goes gives all behind it another name.  Before two texts are
 * compared, the first has the names of the second:
 *
 *     before                    after                    before, as it is compared
 *     %4 = cast %3              %4 = gather %x           %4' = cast %3
 *     %5 = gather %x            %5 = neg %4              %4 = gather %x
 *     %6 = neg %5                                        %5 = neg %4
 *
 * Lines that differ in numbers alone are laid side by side, and what each of them names first in
 * its function or kernel is one value. */
#include "passes/dump.h"

#include <ctype.h>
#include <string.h>

typedef struct {
    const char *s;  /* "%z.1"; the number of a step */
    size_t n, stem; /* without what numbers it */
} Name;

/* Whether the character may be part of a name. */
static bool is_name_char(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

/* Finds the next name of the line from `at` on. */
static bool next_name(const char *line, const char *at, const char *end, Name *to) {
    const char *first = line + strspn(line, " ");
    if (at <= first && first < end && isdigit((unsigned char)*first)) {
        *to = (Name){first, strspn(first, "0123456789"), 0};
        if (first + to->n < end && first[to->n] == ':') return true;
    }
    at = memchr(at, '%', (size_t)(end - at));
    if (!at) return false;
    *to = (Name){at, 1, 1};
    if (at + 1 < end && at[1] == '"') {
        const char *quote = memchr(at + 2, '"', (size_t)(end - at - 2));
        to->stem = to->n = quote ? (size_t)(quote + 1 - at) : 1;
        return true;
    }
    while (at + to->n < end && is_name_char(at[to->n])) to->n++;
    to->stem = to->n;
    while (isdigit((unsigned char)at[to->stem - 1])) to->stem--;
    if (to->stem > 1 && at[to->stem - 1] == '.')
        to->stem--;
    else if (to->stem > 1)
        to->stem = to->n;
    return true;
}

/* The text with another word for each of its names. */
typedef const char *WordFn(void *user, const char *line, const Name *name, size_t *n);

/* Prints a line with another word for each of its names. */
static void print_renamed(StrBuf *b, const char *line, size_t n, WordFn *word, void *user) {
    const char *at = line, *end = line + n;
    Name name;
    while (next_name(line, at, end, &name)) {
        size_t len;
        const char *s = word(user, line, &name, &len);
        sb_put(b, at, (size_t)(name.s - at));
        sb_put(b, s, len);
        at = name.s + name.n;
    }
    sb_put(b, at, (size_t)(end - at));
}

/* The length of a line with its newline. */
static size_t line_len(const char *line) {
    size_t n = strcspn(line, "\n");
    return n + (line[n] == '\n');
}

/* The name without the number that makes it unique. */
static const char *stem_of(void *user, const char *line, const Name *name, size_t *n) {
    (void)user, (void)line;
    *n = name->stem;
    return name->s;
}

/* The text without the numbers of names, and without what passes say of a value (`fused`, `again`).
 */
static const char *without_numbers(Arena *a, const char *text) {
    StrBuf b = sb_new(a);
    sb_puts(&b, "");
    for (size_t n, at; *text; text += n) {
        n = line_len(text);
        const char *is = memchr(text, '=', n);
        at = is ? (size_t)(is - text) + 1 : 0;
        print_renamed(&b, text, at, stem_of, NULL);
        if (at && strncmp(text + at, " fused ", 7) == 0) at += 6;
        if (at && strncmp(text + at, " again ", 7) == 0) at += 6;
        print_renamed(&b, text + at, n - at, stem_of, NULL);
    }
    return b.s;
}

/* ---- lines, and what they name ------------------------------------------------------------- */
/* The names of a function, phase or kernel; lines outside of one are in a block without a name. */
typedef struct {
    const char *name;
    StrMap names, seen; /* all of them; those of the lines so far */
    StrMap new_names;   /* of the old text: what the new one calls it */
    StrMap taken;       /* of the new text: what one of the old text is called */
} Block;

typedef struct {
    const char *s;
    Block *block;
} Line;

typedef struct {
    Line *line;
    int n;
} Lines;

/* Records the names of a line. */
static void record_names(Arena *a, StrMap *in, const Line *l) {
    const char *at = l->s, *end = l->s + line_len(l->s);
    for (Name x; next_name(l->s, at, end, &x); at = x.s + x.n)
        strmap_put(a, in, arena_strndup(a, x.s, x.n), l->block);
}

/* Splits a text into lines with their blocks. */
static Lines lines_of(Arena *a, const char *text) {
    int n = 1;
    for (const char *p = text; *p; p++) n += *p == '\n';
    Lines l = {.line = NEWN(a, Line, (size_t)n)};
    Block *none = NEW(a, Block), *in = none;
    none->name = "";
    size_t indent = 0;
    for (; *text; text += line_len(text)) {
        const char *name;
        size_t len = in == none ? dump_block(text, &name) : 0;
        if (len) {
            in = NEW(a, Block);
            in->name = arena_strndup(a, name, len);
            indent = strspn(text, " ");
        }
        Line *at = &l.line[l.n++];
        *at = (Line){text, in};
        record_names(a, &in->names, at);
        if (!len && in != none && strspn(text, " ") == indent && text[indent] == '}') in = none;
    }
    return l;
}

/* Pairs the names of two lines that are equal but for numbers: what both name for the first time is
 * one value. */
static void pair_names(Arena *a, const Line *old, const Line *new) {
    const char *x_end = old->s + line_len(old->s), *y_end = new->s + line_len(new->s);
    const char *x_at = old->s, *y_at = new->s;
    Name x, y;
    for (; next_name(old->s, x_at, x_end, &x) && next_name(new->s, y_at, y_end, &y);
         x_at = x.s + x.n, y_at = y.s + y.n) {
        const char *from = arena_strndup(a, x.s, x.n), *to = arena_strndup(a, y.s, y.n);
        if (strmap_has(&old->block->seen, from) || strmap_has(&new->block->seen, to) ||
            strmap_has(&old->block->new_names, from))
            continue;
        strmap_put(a, &old->block->new_names, from, (void *)(uintptr_t)to);
        strmap_put(a, &new->block->taken, to, new->block);
    }
}

/* The block of that name in the new text, or NULL. */
static const Block *find_partner(const Lines *new, const Block *b) {
    for (int i = 0; i < new->n; i++)
        if (strcmp(new->line[i].block->name, b->name) == 0) return new->line[i].block;
    return NULL;
}

typedef struct {
    Arena *a;
    const Line *line;
    const Block *partner;
} Renaming;

/* The new text's name of a value of the old text. */
static const char *new_name(void *user, const char *line, const Name *name, size_t *n) {
    const Renaming *r = user;
    const char *s = arena_strndup(r->a, name->s, name->n);
    const char *to = strmap_get(&r->line->block->new_names, s);
    (void)line;
    bool exists = !to && *s == '%' && r->partner && strmap_has(&r->partner->names, s);
    /* A name that the model gave is another value's only where that is seen. */
    if (exists && (name->stem == 1 || strmap_has(&r->partner->taken, s)))
        to = arena_printf(r->a, "%s'", s);
    if (!to) to = s;
    *n = strlen(to);
    return to;
}

/* The old text with the names of the new one. */
const char *dump_renamed(Arena *a, const char *old, const char *new) {
    Lines x = lines_of(a, old), y = lines_of(a, new);
    const int *to = dump_align(a, without_numbers(a, old), without_numbers(a, new));
    for (int i = 0, k = 0; i < x.n; i++) {
        for (; to[i] >= 0 && k < to[i]; k++) record_names(a, &y.line[k].block->seen, &y.line[k]);
        if (to[i] >= 0 && strcmp(x.line[i].block->name, y.line[to[i]].block->name) == 0)
            pair_names(a, &x.line[i], &y.line[to[i]]);
        record_names(a, &x.line[i].block->seen, &x.line[i]);
    }
    StrBuf b = sb_new(a);
    sb_puts(&b, "");
    Renaming r = {.a = a};
    for (int i = 0; i < x.n; i++) {
        if (i == 0 || x.line[i].block != x.line[i - 1].block)
            r.partner = find_partner(&y, x.line[i].block);
        r.line = &x.line[i];
        print_renamed(&b, x.line[i].s, line_len(x.line[i].s), new_name, &r);
    }
    return b.s;
}
