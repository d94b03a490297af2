/* Options with a value, as the commands of this folder read them. */
#ifndef FRONTEND_SOURCE_OPTIONS_H
#define FRONTEND_SOURCE_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>

typedef struct {
    const char *name;
    const char **to;
} SourceOption;

typedef enum { OPTION_OTHER, OPTION_READ, OPTION_WRONG } SourceOptionRead;

/* "--table T" or "--table=T" at argv[*i], among `options`, which end with a name that is NULL: *i
 * becomes its last word.  A value that is absent is told, as of `gnnc command`. */
SourceOptionRead source_option(const SourceOption *options, int argc, char **argv, int *i,
                               const char *command, FILE *err);

#endif
