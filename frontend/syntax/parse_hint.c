/* How gnnc writes what Python or C would write so: hints behind syntax errors. */
#include "frontend/syntax/parse.h"

#include <ctype.h>
#include <string.h>

typedef struct {
    const char *word, *hint;
} Hint;

/* The hint of the word of this length that s begins with; NULL: it is none of the n. */
static const char *find(const Hint *list, size_t n, const char *s, size_t length) {
    for (size_t i = 0; i < n; i++)
        if (strlen(list[i].word) == length && memcmp(list[i].word, s, length) == 0)
            return list[i].hint;
    return NULL;
}

/* How many letters, digits and underscores s begins with. */
static size_t word_length(const char *s) {
    size_t n = 0;
    while (isalnum((unsigned char)s[n]) || s[n] == '_') n++;
    return n;
}

/* The text of the line that the span begins on. */
static const char *line_of(const Parser *p, const Span *at) {
    const char *s = p->c->sources.v[p->file].text;
    for (uint32_t line = 1; line < at->line; line++) {
        const char *nl = strchr(s, '\n');
        if (!nl) return "";
        s = nl + 1;
    }
    return s;
}

/* The word that stands before s, on the line from `line` on. */
static const char *word_before(const char *line, const char *s) {
    while (s > line && s[-1] == ' ') s--;
    while (s > line && (isalnum((unsigned char)s[-1]) || s[-1] == '_')) s--;
    return s;
}

/* In a block of a recipe: `fanout [10, 5], batch 128` */
static bool is_after_comma(const Parser *p, const char *line, const char *word) {
    while (word > line && word[-1] == ' ') word--;
    return p->train_depth && p->n_brackets > p->train_depth && word > line && word[-1] == ',';
}

/* Whether the line of the innermost open bracket has a `//`, by which Python divides: here it
 * begins a comment, which may hide the closing bracket. */
static bool is_commented(const Parser *p) {
    const char *line = NULL, *slashes;
    if (p->n_brackets && p->bracket[p->n_brackets - 1].open != '{')
        line = line_of(p, &p->bracket[p->n_brackets - 1].at);
    slashes = line ? strstr(line, "//") : NULL;
    return slashes && slashes < line + strcspn(line, "\n");
}

static bool ends_line(const char *s) {
    s += strspn(s, " \t\r");
    return !*s || *s == '\n' || *s == '#';
}

/* Whether s, a '(', stands behind `reverse` or `undirected` in a line that begins with `edge`:
 * there it is right, and a hint that edges are written `a -> b` would mislead. */
static bool is_derived_edge(const char *line, const char *s) {
    const char *word = word_before(line, s), *start = line + strspn(line, " \t");
    size_t n = word_length(word);
    return strncmp(start, "edge ", 5) == 0 && ((n == 7 && memcmp(word, "reverse", n) == 0) ||
                                               (n == 10 && memcmp(word, "undirected", n) == 0));
}

/* What to say about '@f16' behind a declared type, `x: f32[F] @f16`; s points to the '@'. NULL:
 * it is no such text. */
static const char *precision_hint(const char *line, const char *s) {
    static const char *const types[] = {"f32", "bf16", "f16"};
    bool precision = false;
    for (size_t i = 0; i < COUNT(types); i++) {
        size_t n = strlen(types[i]);
        precision |= word_length(s + 1) == n && memcmp(s + 1, types[i], n) == 0;
    }
    if (!precision) return NULL;
    const char *before = word_before(line, s);
    if (before > line && before[-1] == '@') return "; a value has one type in memory";
    return "; '@f16' is said of a value (g.n.x @f16), a layer (gcn_conv(16) @f16) or a param, not "
           "of what is declared";
}

/* `return h, c` */
static bool is_returned(const char *line, const char *s) {
    const char *at = strstr(line, "return ");
    return at && at < s && !memchr(at, '(', (size_t)(s - at));
}

/* Whether a keyword is used as a name, as in `state = [..]`: one stands at `start`, and nothing
 * else before the '=' at s. */
static bool keyword_is_assigned(const char *start, const char *s) {
    static const Hint words[] = {{"state", ""}, {"param", ""}, {"layer", ""}, {"model", ""},
                                 {"graph", ""}, {"train", ""}, {"fn", ""},    {"import", ""},
                                 {"const", ""}, {"extern", ""}};
    size_t n = word_length(start);
    return start + n + strspn(start + n, " ") == s && find(words, COUNT(words), start, n);
}

/* What a word that other languages have there is called here: the line's first one, the one at s,
 * or the one before it. NULL: none of them is known. */
static const char *hint_of_word(const char *start, const char *s, const char *before) {
    static const Hint first[] = {
        {"elif", "; write 'else if'"},
        {"def", "; a function is written fn name(x) { .. }"},
        {"class", "; a layer is written layer name(sizes)(inputs) { .. }"},
        {"from", "; a file is read by import \"layers/gat.gnn\""},
        {"import", "; a file is read by import \"layers/gat.gnn\""},
    };
    static const Hint here[] = {
        {"is", "; write '=='"},
        {"lambda", "; a function has a name: fn f(x) { .. }"},
    };
    const char *hint = find(first, COUNT(first), start, word_length(start));
    if (!hint) hint = find(here, COUNT(here), s, word_length(s));
    return hint ? hint : find(here, COUNT(here), before, word_length(before));
}

/* What the character at s, which may not stand there, was probably meant for; "": nobody knows. */
static const char *hint_of_character(const Parser *p, const Span *at, const char *line,
                                     const char *s, const char *before) {
    const char *start = line + strspn(line, " \t");
    if (*s == '{' && word_length(before) == 6 && memcmp(before, "fanout", 6) == 0)
        return "; by relation, too, it is a list: fanout [g.a: [10, 5], g.b: [5, 5]]";
    if (*s == ':' && p->n_brackets && p->bracket[p->n_brackets - 1].open == '[')
        return "; a part of a dimension d is slice(x, d, first, n)";
    if (*s == ',' && is_returned(line, s))
        return "; a result is one value, which may be a list: return [a, b]";
    if (*s == '=' && s > start && keyword_is_assigned(start, s))
        return "; the word before it is a keyword, and names nothing else";
    if (*s == ':' && p->n_brackets && p->bracket[p->n_brackets - 1].open == '(')
        return "; a name is given its value by '=': adam(lr = 1e-2)";
    if (*s == '(' && at->col > 1 && is_derived_edge(line, s))
        return "; the data have no such relation: write reverse(g.r) or undirected(g.r) in the "
               "model";
    if (is_commented(p)) return "; '//' begins a comment: divide by '/'";
    if (*s == ',' && s == start + word_length(start)) return "; names are bound one at a time";
    if (*s == '=' && at->col > 1 && strchr("+-*/", s[-1])) return "; write x = x + .. in full";
    if (*s == ':' && ends_line(s + 1)) return "; a block stands in { }";
    if (*s == '=' && p->train_depth) return "; a recipe's setting takes no '=': epochs 100";
    if (is_after_comma(p, line, before)) return "; no comma stands between settings";
    return "";
}

/* What to say at the end of a message about a syntax error at `at`, from the words around it:
 * how other languages' syntax is written here. "" where nothing is known. */
const char *fe_syntax_hint(const Parser *p, const Span *at) {
    const char *line = line_of(p, at);
    if (!at->line || at->col == 0 || at->col > strcspn(line, "\n") + 1) return "";
    const char *s = line + at->col - 1, *before = word_before(line, s);
    const char *hint = hint_of_word(line + strspn(line, " \t"), s, before);
    if (!hint && *s == '@') hint = precision_hint(line, s);
    return hint ? hint : hint_of_character(p, at, line, s, before);
}

/* What to say about an unknown setting of a recipe: what other frameworks' words are called
 * here. "" where nothing is known. */
const char *fe_setting_hint(const char *word) {
    static const Hint known[] = {
        {"accumulate_grad_batches", "; it is accumulate n"},
        {"batch", "; it stands in a sample block: sample { batch 128 }"},
        {"batch_size", "; the size of a step is batch n of a sample block"},
        {"clip_norm", "; the norm of all gradients is bounded by clip n"},
        {"dropout", "; dropout stands in the model: dropout(x, 0.5)"},
        {"early_stop", "; training stops early by stop after n"},
        {"early_stopping", "; training stops early by stop after n"},
        {"epoch", "; it is epochs n"},
        {"gradient_accumulation", "; it is accumulate n"},
        {"gradient_clip_val", "; the norm of all gradients is bounded by clip n"},
        {"learning_rate", "; the optimizer has it: optimizer adam(lr = 0.01)"},
        {"lr", "; the optimizer has it: optimizer adam(lr = 0.01)"},
        {"max_epochs", "; it is epochs n"},
        {"metrics", "; it is metric a, b"},
        {"neg_ratio", "; it is negatives n"},
        {"neg_sampling_ratio", "; it is negatives n"},
        {"neighbors", "; neighbours drawn for each hop: fanout [10, 5]"},
        {"num_neighbors", "; neighbours drawn for each hop: fanout [10, 5]"},
        {"num_parts", "; it is clusters n"},
        {"num_workers", "; it is workers n"},
        {"optimiser", "; it is optimizer"},
        {"patience", "; training stops early by stop after n"},
        {"scheduler", "; it is schedule"},
        {"seed", "; the trainer has it: --seed n"},
        {"weight_decay", "; the optimizer has it: optimizer adam(weight_decay = 5e-4)"},
    };
    const char *hint = find(known, COUNT(known), word, strlen(word));
    return hint ? hint : "";
}

/* What to say about a character that the language does not have. "" where nothing is known. */
const char *fe_char_hint(char c) {
    static const struct {
        char c;
        const char *hint;
    } known[] = {
        {'!', "; write 'not'"},       {'&', "; write 'and'"},           {'|', "; write 'or'"},
        {'^', "; a power is x ** y"}, {'\'', "; texts stand in \" \""},
    };
    for (size_t i = 0; i < COUNT(known); i++)
        if (known[i].c == c) return known[i].hint;
    return "";
}
