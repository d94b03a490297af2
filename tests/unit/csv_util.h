/* CSV tables in memory, and what their import says, for tests. */
#ifndef CSV_UTIL_H
#define CSV_UTIL_H

#include <stdio.h>
#include <string.h>

#include "runtime/data/csv.h"
#include "runtime/import/import.h"
#include "runtime/import/import_folder.h"
#include "test.h"

/* What was told so far, a line each. */
typedef struct {
    char text[2048];
    size_t n;
} Told;

static inline void tell(void *user, const char *text) {
    Told *t = user;
    t->n += (size_t)snprintf(t->text + t->n, sizeof t->text - t->n, "%s\n", text);
}

static inline RtBytes bytes(const char *s) {
    return (RtBytes){(const uint8_t *)s, strlen(s)};
}

static inline RtDataset *csv(const char *nodes, const char *edges, RtImport *how, RtError *err) {
    RtDataset *d;
    RtNamedBytes n = {"n.csv", bytes(nodes ? nodes : "")}, e = {"e.csv", bytes(edges)};
    *err = (RtError){""};
    rt_import_csv_bytes(NULL, nodes ? &n : NULL, &e, how, &d, err);
    return d;
}

/* With no settings, and nothing wrong. */
static inline RtDataset *csv_of(const char *nodes, const char *edges) {
    RtImport how = {0};
    RtError err;
    RtDataset *d = csv(nodes, edges, &how, &err);
    CHECK_MSG(d, "%s", err.text);
    return d;
}

#define FILE_OF(name, s) {name, {(const uint8_t *)(s), sizeof(s) - 1}}

/* A folder of tables. */
static inline RtDataset *tables_of(const RtNamedBytes *files, int n, RtImport *how, RtError *err) {
    RtFolder f = {.name = "folder", .files = files, .n_files = n};
    RtDataset *d;
    *err = (RtError){""};
    rt_import_tables(NULL, &f, NULL, how, &d, err);
    return d;
}

static inline bool warned(const Told *t, const char *says) {
    if (!strstr(t->text, says)) fprintf(stderr, "%s", t->text);
    return strstr(t->text, says);
}

#endif
