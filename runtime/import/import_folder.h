/* A folder of files to import: on disk, or in memory for tests and the fuzzers. */
#ifndef RUNTIME_IMPORT_FOLDER_H
#define RUNTIME_IMPORT_FOLDER_H

#include "import.h"
#include "runtime/data/npy.h"

typedef struct RtFolder {
    const char *name;          /* in messages; on disk its path */
    const RtNamedBytes *files; /* NULL = on disk; names like "raw/edge.csv.gz" */
    int n_files;
} RtFolder;

void rt_folder_open(RtFolder *f, const char *path);
/* A file as it is; *found = false: there is none.  Names that are absolute or lead
 * upwards are refused. */
gnnc_status rt_folder_get(RtPool *pool, const RtFolder *f, const char *file, RtBytes *out,
                          bool *found, RtError *err);
/* The same file, or "<file>.gz" unpacked. */
gnnc_status rt_folder_text(RtPool *pool, const RtFolder *f, const char *file, RtBytes *out,
                           bool *found, RtError *err);
bool rt_folder_has(const RtFolder *f, const char *file); /* it, or it with ".gz" */
/* The names in a folder of it ("" = itself), sorted, without "." and "..". */
gnnc_status rt_folder_list(RtPool *pool, const RtFolder *f, const char *dir, const char ***names,
                           int *n, RtError *err);

/* gzip members, checked (RFC 1952). */
gnnc_status rt_gunzip(RtPool *pool, RtBytes packed, const char *name, RtBytes *out, RtError *err);
/* Lines of numbers, separated by commas, without a header: int64 [rows, columns] where all
 * are whole, else float64, empty cells being NaN. */
gnnc_status rt_numbers(RtPool *pool, RtBytes text, const char *name, RtArray *out, RtError *err);
/* rt_folder_text and rt_numbers in one. */
gnnc_status rt_folder_numbers(RtPool *pool, const RtFolder *f, const char *file, RtArray *out,
                              bool *found, RtError *err);

/* entities.txt and relations.txt, a name a line; or names.txt, parted by "# entities",
 * "# relations", "# classes".  NULL where there is no such file. */
typedef struct RtVocabulary {
    const char *const *entities, *const *relations;
    int64_t n_entities, n_relations;
} RtVocabulary;
gnnc_status rt_vocabulary_read(RtPool *pool, const RtFolder *f, RtVocabulary *out, RtError *err);

#endif
