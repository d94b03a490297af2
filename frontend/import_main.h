/* `gnnc import`: other people's data into a data directory. */
#ifndef FRONTEND_IMPORT_MAIN_H
#define FRONTEND_IMPORT_MAIN_H

#include <stdio.h>

/* Its options by number from 0; NULL behind the last. */
typedef struct {
    const char *name, *value, *help; /* "--kind"; "COLUMN=KIND", NULL = a flag */
} ImportOption;
const ImportOption *gnnc_import_option(int i);

/* argv[0] is "import". Returns the exit code: 0, 1 (diagnosed), 2 (usage). */
int gnnc_import_main(int argc, char **argv, FILE *out, FILE *err);

#endif
