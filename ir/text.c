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

const char *text_list(Arena *a, const Words *w) {
    StrBuf b = sb_new(a);
    for (int i = 0; i < w->n; i++) sb_printf(&b, "%s%s", i ? ", " : "", w->word[i]);
    return b.s;
}

#define FIELD(name, kind) {#name, kind, offsetof(Recipe, name), NULL}
const RecipeField text_recipe[] = {
    {"model", RF_TEXT, offsetof(Recipe, model_name), NULL},
    FIELD(target, RF_TEXT),
    {"optimizer", RF_WORD, offsetof(Recipe, kind), &text_OptimKind},
    FIELD(lr, RF_REAL),
    FIELD(weight_decay, RF_REAL),
    FIELD(momentum, RF_REAL),
    FIELD(beta1, RF_REAL),
    FIELD(beta2, RF_REAL),
    FIELD(eps, RF_REAL),
    FIELD(clip_norm, RF_REAL),
    FIELD(nesterov, RF_BOOL),
    FIELD(bf16_moments, RF_BOOL),
    FIELD(accumulate, RF_INT),
    FIELD(ema, RF_REAL),
    {"schedule", RF_WORD, offsetof(Recipe, sched), &text_SchedKind},
    FIELD(warmup_epochs, RF_INT),
    FIELD(step_epochs, RF_INT),
    FIELD(patience, RF_INT),
    FIELD(gamma, RF_REAL),
    FIELD(min_lr, RF_REAL),
    FIELD(epochs, RF_INT),
    FIELD(early_stop_patience, RF_INT),
    FIELD(keep_metric, RF_TEXT),
    FIELD(keep_max, RF_BOOL),
    FIELD(keep_split, RF_INT32),
    {"batch", RF_INT, offsetof(Recipe, sample.batch), NULL},
    {"edges", RF_WORD, offsetof(Recipe, sample.edges), &text_SampleEdges},
    {"drop_last", RF_BOOL, offsetof(Recipe, sample.drop_last), NULL},
    {"replace", RF_BOOL, offsetof(Recipe, sample.replace), NULL},
    {"disjoint", RF_BOOL, offsetof(Recipe, sample.disjoint), NULL},
    {"inclusive", RF_BOOL, offsetof(Recipe, sample.inclusive), NULL},
    {"recent", RF_BOOL, offsetof(Recipe, sample.recent), NULL},
    {"clusters", RF_INT, offsetof(Recipe, sample.clusters), NULL},
    {"train_links", RF_WORD, offsetof(Recipe, sample.train_links), &text_LinksForm},
    {"eval_links", RF_WORD, offsetof(Recipe, sample.eval_links), &text_LinksForm},
    {"negatives", RF_INT, offsetof(Recipe, sample.negatives), NULL},
    {"corrupt", RF_WORD, offsetof(Recipe, sample.corrupt), &text_SampleCorrupt},
    {"avoid", RF_BOOL, offsetof(Recipe, sample.avoid), NULL},
    {"exclude_seed_edges", RF_BOOL, offsetof(Recipe, sample.exclude), NULL},
    {"workers", RF_INT, offsetof(Recipe, sample.workers), NULL},
    {"prefetch", RF_INT, offsetof(Recipe, sample.prefetch), NULL},
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
