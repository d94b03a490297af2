/* Keywords of the IR's text form, and how names, strings and numbers are spelled. */
#include "ir/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ENUM(type, rt_type) static const char *const type##_words[] = {
#define VALUE(id, rt_id, word) word,
#define END(type, rt_type)                                                                         \
    }                                                                                              \
    ;                                                                                              \
    const Words text_##type = {type##_words, (int)COUNT(type##_words)};
#include "runtime/contract.def"

#define WORDS(name, ...)                                                                           \
    static const char *const name##_words[] = {__VA_ARGS__};                                       \
    const Words text_##name = {name##_words, (int)COUNT(name##_words)}

WORDS(reds, "sum", "max", "min");
WORDS(asks, "", "store", "fuse", "apart");
WORDS(facts, "typed", "grad", "optim", "no_csr", "fused"); /* bit i of Module.has */

/* The index of a word, or -1. */
int text_find(const Words *w, const char *s, size_t n) {
    for (int i = 0; i < w->n; i++)
        if (strlen(w->word[i]) == n && memcmp(w->word[i], s, n) == 0) return i;
    return -1;
}

/* The words as a list. */
const char *text_list(Arena *a, const Words *w, int first) {
    StrBuf b = sb_new(a);
    for (int i = first; i < w->n; i++) sb_printf(&b, "%s%s", i > first ? ", " : "", w->word[i]);
    return b.s;
}

const RecipeField text_recipe[] = {
#define RECIPE(kind, name, word) {word, RF_##kind, offsetof(Recipe, name), NULL},
#define RECIPE_ENUM(type, rt_type, name, word)                                                     \
    {word, RF_WORD, offsetof(Recipe, name), &text_##type},
#define SAMPLING(kind, name, word, first, of)                                                      \
    {word, RF_##kind, offsetof(Recipe, sample.name), NULL},
#define SAMPLING_ENUM(type, rt_type, name, word, first, of)                                        \
    {word, RF_WORD, offsetof(Recipe, sample.name), &text_##type},
#include "runtime/contract.def"
};
const int text_n_recipe = (int)COUNT(text_recipe);

/* ---- spelling --------------------------------------------------------------- */
static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

bool text_is_bare_name(const char *s) {
    if (!is_letter(*s)) return false;
    for (; *s; s++)
        if (!is_letter(*s) && !is_digit(*s) && *s != '.') return false;
    return true;
}

bool text_is_bare_path(const char *s) {
    if (!*s) return false;
    for (; *s; s++)
        if (!is_letter(*s) && !is_digit(*s) && !strchr("./-+", *s)) return false;
    return true;
}

void ir_name_print(StrBuf *b, const char *name) {
    if (text_is_bare_name(name))
        sb_puts(b, name);
    else
        ir_string_print(b, name);
}

/* Prints the text in double quotes, with escapes for quotes, backslashes and control characters. */
void ir_string_print(StrBuf *b, const char *text) {
    sb_puts(b, "\"");
    for (const char *s = text; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            sb_printf(b, "\\%c", c);
        else if (c == '\n')
            sb_puts(b, "\\n");
        else if (c == '\t')
            sb_puts(b, "\\t");
        else if (c < 32 || c == 127)
            sb_printf(b, "\\x%02x", c);
        else
            sb_put(b, s, 1);
    }
    sb_puts(b, "\"");
}

/* Prints x with the fewest digits (6 to 17) that read back as the same number. */
void text_real(StrBuf *b, double x) {
    char s[40];
    if (isnan(x)) {
        sb_puts(b, "nan");
        return;
    }
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(s, sizeof s, "%.*g", digits, x);
        if (strtod(s, NULL) == x) break;
    }
    sb_puts(b, s);
}

/* ---- names of values ---------------------------------------------------------------------- */
typedef struct {
    int n; /* names made of this one */
    const char *hint;
} NameUse;

/* Records a name as taken. */
static void take_name(Arena *a, StrMap *taken, const char *name, const char *hint) {
    NameUse *u = NEW(a, NameUse);
    u->hint = hint;
    strmap_put(a, taken, name, u);
}

/* The first of base.1, base.2, .. that is free. The count that is kept makes n equal hints cost n
 * steps, not n^2. */
static const char *free_name(Arena *a, const StrMap *taken, const char *base, int *n) {
    const char *s;
    do {
        s = arena_printf(a, "%s.%d", base, ++*n);
    } while (strmap_has(taken, s));
    return s;
}

/* The "z" of "z.2", if it is taken and 2 comes next; NULL: it is a name of its own. */
static NameUse *base_of(Arena *a, StrMap *taken, const char *name, int *n) {
    const char *dot = strrchr(name, '.');
    if (!dot || !dot[1] || dot[1] == '0' || dot[1 + strspn(dot + 1, "0123456789")]) return NULL;
    const char *base = arena_strndup(a, name, (size_t)(dot - name));
    NameUse *u = strmap_get(taken, base);
    if (!u) return NULL;
    *n = u->n;
    bool next = strcmp(free_name(a, taken, base, n), name) == 0;
    u->n = *n - 1; /* those before it are taken */
    return next ? u : NULL;
}

/* Whether the name ends in a dot. */
static bool ends_in_dot(const char *name) {
    size_t n = strlen(name);
    return n > 0 && name[n - 1] == '.';
}

/* Whether the term is the name, or "z" of "z.1". */
static bool term_matches(const char *term, size_t n, const char *name) {
    size_t k = strlen(name);
    if (n == k && !memcmp(term, name, k)) return true;
    while (k && name[k - 1] >= '0' && name[k - 1] <= '9') k--;
    return k > 1 && name[k - 1] == '.' && n == k - 1 && !memcmp(term, name, n);
}

/* The term of a list that matches the name; NULL: none. */
const char *text_asked(Arena *a, const char *list, const char *name) {
    size_t n;
    for (const char *t = list; t && *t; t += n, t += *t == ',') {
        t += *t == '%';
        n = strcspn(t, ",");
        if (term_matches(t, n, name)) return arena_strndup(a, t, n);
    }
    return NULL;
}

/* The first term of a list that matched nothing; NULL: none. */
const char *text_unmet(Arena *a, const char *list, const StrMap *matched) {
    size_t n;
    for (const char *t = list; t && *t; t += n, t += *t == ',') {
        t += *t == '%';
        n = strcspn(t, ",");
        const char *term = arena_strndup(a, t, n);
        if (!strmap_has(matched, term)) return term;
    }
    return NULL;
}

bool text_is_number(const char *s) {
    return s[strspn(s, "0123456789")] == 0;
}

/* Whether the hint would be read as a numbered name. */
static bool is_misread(Arena *a, StrMap *taken, const char *hint) {
    int n;
    return ends_in_dot(hint) || text_is_number(hint) || base_of(a, taken, hint, &n);
}

/* The name of a value by its hint. */
const char *text_name_for(Arena *a, StrMap *taken, const char *hint) {
    const char *name = hint;
    NameUse *u = strmap_get(taken, name);
    if (u ? strcmp(u->hint, hint) != 0 : is_misread(a, taken, hint))
        name = arena_printf(a, "%s.", name);
    u = strmap_get(taken, name);
    if (u) name = free_name(a, taken, name, &u->n);
    take_name(a, taken, name, hint);
    return name;
}

/* The hint of a value by its name. */
const char *text_hint_of(Arena *a, StrMap *taken, const char *name) {
    int n;
    NameUse *u = base_of(a, taken, name, &n);
    const char *hint = u                   ? u->hint
                       : ends_in_dot(name) ? arena_strndup(a, name, strlen(name) - 1)
                                           : name;
    if (u) u->n = n;
    take_name(a, taken, name, hint);
    return hint;
}
