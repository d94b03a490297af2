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
WORDS(facts, "typed", "grad", "optim", "no_csr", "fused"); /* bit i of Module.has */

int text_find(const Words *w, const char *s, size_t n) {
    for (int i = 0; i < w->n; i++)
        if (strlen(w->word[i]) == n && memcmp(w->word[i], s, n) == 0) return i;
    return -1;
}

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
