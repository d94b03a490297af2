/* `gnnc import`: other people's data into a data directory. */
#ifndef FRONTEND_IMPORT_MAIN_H
#define FRONTEND_IMPORT_MAIN_H

#include <stdbool.h>
#include <stdio.h>

#include "runtime/import/import_source.h"

/* Its options by number from 0; NULL behind the last. */
typedef struct {
    const char *name, *value, *help; /* "--kind"; "COLUMN=KIND", NULL = a flag */
} ImportOption;
const ImportOption *gnnc_import_option(int i);

/* A sort of database that is an input; NULL behind the last. */
typedef struct ImportDatabase {
    const char *name, *library;
    bool (*takes)(const char *input);
    /* NULL: gnnc was built without its library.  See frontend/source/source.h. */
    gnnc_status (*open)(const RtAlloc *from, const char *input, RtImport *how, RtSource *out,
                        RtError *err);
    bool folder; /* it is one */
} ImportDatabase;

/* What only the compiler's program links. */
typedef struct ImportReaders {
    const ImportDatabase *databases;
    const char *(*read_image)(const char *path, int side, float *to); /* RtImport.read_image */
} ImportReaders;

/* argv[0] is "import"; `readers` may be NULL: there are none. Returns the exit code: 0, 1
 * (diagnosed), 2 (usage). */
int gnnc_import_main(int argc, char **argv, const ImportReaders *readers, FILE *out, FILE *err);

#endif
