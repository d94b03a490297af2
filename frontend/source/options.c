#include "options.h"

#include <string.h>

/* The option that an argument is, alone or as `--name=value`. NULL: none of them. */
static const SourceOption *find(const SourceOption *options, const char *word) {
    for (const SourceOption *o = options; o->name; o++) {
        size_t n = strlen(o->name);
        if (strncmp(word, o->name, n) == 0 && (!word[n] || word[n] == '=')) return o;
    }
    return NULL;
}

/* Reads the i-th argument if it is one of these options with a value, which may be the next
 * argument: then *i moves on. command: the name for messages. */
SourceOptionRead source_option(const SourceOption *options, int argc, char **argv, int *i,
                               const char *command, FILE *err) {
    const char *word = argv[*i];
    const SourceOption *o = find(options, word);
    if (!o) return OPTION_OTHER;
    const char *after = word + strlen(o->name), *value = *after ? after + 1 : NULL;
    if (!value) value = *i + 1 < argc ? argv[++*i] : NULL;
    if (!value) {
        fprintf(err, "gnnc %s: %s needs a value\n", command, word);
        return OPTION_WRONG;
    }
    *o->to = value;
    return OPTION_READ;
}
