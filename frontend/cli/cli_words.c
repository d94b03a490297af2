/* gnnc help words: the words of the language by what they are, for the grammars of editors. */
#include "frontend/cli/cli.h"
#include "frontend/syntax/parse.h"

/* What kind of keyword a word is, for grammars of editors. */
static const char *kind_of(const char *word) {
    int token = fe_keyword(word);
    return token == ETYPE                                       ? "type"
           : token == TRUE_ || token == FALSE_ || token == NONE ? "constant"
                                                                : "keyword";
}

/* Prints all words of the language with their kinds, for grammars of editors. */
void cli_words(FILE *to) {
    for (int i = 0; fe_word(i); i++) fprintf(to, "%s %s\n", kind_of(fe_word(i)), fe_word(i));
    for (int i = 0; fe_recipe_word(i); i++) fprintf(to, "recipe %s\n", fe_recipe_word(i));
    for (int i = 0; fe_builtin_name(i); i++) fprintf(to, "function %s\n", fe_builtin_name(i));
}
